"""Stages ``select`` and ``simulate``: files, MLflow, the report, the study."""

from __future__ import annotations

import html
import json

import pandas as pd
import pytest

from roshap.plots import read_provenance
from roshap.selection import ALL_FEATURES, ALL_RANKERS
from roshap.stages.report_selection import CAPTIONS
from roshap.stages.study import load_study
from tests.conftest import Checkout

SMALL = (
    "compute.workers=1", "selection.runs=3", "selection.upto=3", "selection.folds=2",
    "selection.lime.rows=2", "selection.lime.samples=100", "selection.permutation.repeats=1",
)  # fmt: skip
DIABETES = ("dataset=diabetes", "model=ridge", "out=r", *SMALL)


@pytest.mark.pipeline
def test_files_are_the_same_every_time_and_figures_know_their_origin(checkout: Checkout) -> None:
    answer = checkout.roshap("select", *DIABETES, "tracking=none")
    assert answer.code == 0, answer.err
    assert "RoSHAP is" in answer.err
    folder = checkout.root / "r" / "select"
    first = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    figures = sorted(path.stem for path in folder.glob("figures/*.png"))
    assert figures == ["bars_cv", "bars_held_out", "curves_cv", "curves_held_out", "set_stability"]
    for path in folder.glob("figures/*"):
        inside = read_provenance(path)
        assert json.loads(inside["parameters"])["selection"]["upto"] == 3
        assert inside["command"].startswith("roshap select ")
    assert not any(str(checkout.root).encode() in content for content in first.values())
    assert checkout.roshap("select", *DIABETES, "tracking=none", "compute.resume=false").code == 0
    assert all(path.read_bytes() == content for path, content in first.items())
    metrics = json.loads((checkout.root / "r" / "metrics" / "select.json").read_text())
    assert set(metrics) == {"cv", "held_out"}
    assert metrics["cv"]["roshap"]["rmse"] > 0


@pytest.mark.pipeline
def test_a_child_run_per_ranker_with_curves_over_k(checkout: Checkout) -> None:
    import mlflow

    answer = checkout.roshap("select", *DIABETES)
    assert answer.code == 0, answer.err
    client = mlflow.MlflowClient(f"sqlite:///{checkout.root}/mlflow.db")
    experiment = client.get_experiment_by_name("select")
    runs = client.search_runs([experiment.experiment_id])
    children = {run.info.run_name: run for run in runs if "mlflow.parentRunId" in run.data.tags}
    assert set(children) == {*ALL_RANKERS, ALL_FEATURES}
    assert len(runs) == len(children) + 1
    table = pd.read_csv(checkout.root / "r" / "select" / "metrics.csv")
    for ranker, run in children.items():
        points = client.get_metric_history(run.info.run_id, "held_out.rmse")
        assert [point.step for point in points] == [1, 2, 3]
        held_out = table[(table["ranker"] == ranker) & (table["split"] == "held-out")]
        expected = held_out["rmse"].tolist()
        if ranker == ALL_FEATURES:  # a flat line beside the curves
            expected = expected * 3
        assert [point.value for point in points] == pytest.approx(expected)
    assert "stability.nogueira" in children["roshap"].data.metrics
    assert "instability_top_3" in children["lime"].data.metrics
    assert all("seconds" in children[name].data.metrics for name in ALL_RANKERS)


@pytest.mark.pipeline
def test_run_compares_rankers_where_asked_and_the_report_shows_it(checkout: Checkout) -> None:
    answer = checkout.roshap(
        "run", *DIABETES, "bootstrap.runs=3", "selection.enabled=true", "tracking=none"
    )
    assert answer.code == 0, answer.err
    page = (checkout.root / "r" / "index.html").read_text()
    assert "What RoSHAP gained (+) or lost (-), cross-validation." in page
    for name in ("bars_cv", "curves_cv", "bars_held_out", "curves_held_out", "set_stability"):
        assert html.escape(CAPTIONS[name]).replace("&#x27;", "&#39;") in page
    answer = checkout.roshap("run", *DIABETES, "bootstrap.runs=3", "tracking=none", "out=plain")
    assert answer.code == 0, answer.err
    assert not (checkout.root / "plain" / "select").exists()
    assert "<h3>Selection</h3>" not in (checkout.root / "plain" / "index.html").read_text()


@pytest.mark.pipeline
def test_simulation_study(checkout: Checkout) -> None:
    answer = checkout.roshap(
        "simulate", "dataset=simulation", "dataset.reader_options.p=15",
        "dataset.reader_options.n=100", "model=logistic_regression", "simulation.runs=4",
        "simulation.few=2", "simulation.seeds=2", "out=s", "tracking=none", *SMALL,
    )  # fmt: skip
    assert answer.code == 0, answer.err
    assert "in_top_12" in answer.out
    folder = checkout.root / "s" / "simulate"
    table = pd.read_csv(folder / "table1.csv")
    assert {"published", "seed 0", "seed 1"} == set(table["source"])
    assert pd.read_csv(folder / "costs.csv")["runs"].tolist() == [2, 4]
    assert read_provenance(folder / "figures" / "places.png")["stage"] == "simulate"
    wrong = checkout.roshap("simulate", "dataset=wine", "tracking=none")
    assert wrong.code == 2
    assert "dataset=simulation" in wrong.complaint


def test_mistakes_are_said_in_one_line(checkout: Checkout) -> None:
    answer = checkout.roshap("select", "selection.rankers=[gain,mrmr]", "tracking=none")
    assert answer.code == 2
    assert "mrmr" in answer.complaint
    answer = checkout.roshap("select", "selection.folds=1", "tracking=none", "out=r")
    assert answer.code == 2
    assert "selection.folds=1" in answer.complaint


def test_the_paper_study_and_its_runs_in_one_place(checkout: Checkout) -> None:
    assert checkout.roshap("study", "paper").code == 0
    study = load_study(checkout.root / "params.yaml")
    assert study.experiments["golub-xgboost"].runs == 500
    assert study.simulations["table1-xgboost"].runs == 1000
    assert study.selections["golub-xgboost"].upto == 15
    assert study.selections["ujiindoorloc-ridge"].folds == 0
    assert len(study.selections) == 17
    answer = checkout.roshap("study", "paper", "runs=20", "only=[golub-*,table1-*]",
                             "experiments.golub-catboost.runs=5")  # fmt: skip
    assert answer.code == 0, answer.err
    study = load_study(checkout.root / "params.yaml")
    runs = {name: one.runs for name, one in study.experiments.items()}
    assert runs.pop("golub-catboost") == 5
    assert set(runs.values()) == {20}
    assert len(runs) == 5
    chosen = [*study.selections.values(), *study.simulations.values()]
    assert {one.runs for one in chosen} == {20}


def test_an_estimate_names_every_experiment_and_warns_over_a_day(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    from roshap.stages import estimate

    answer = checkout.roshap("study", "quick", "only=[diabetes-*]", "--estimate")
    assert answer.code == 0, answer.err
    for name in ("diabetes-lightgbm", "diabetes-xgboost", "diabetes-ridge", "all"):
        assert f"  {name} " in answer.out
    assert "warning" not in answer.out
    monkeypatch.setattr(estimate, "DAY", 0.0)
    again = checkout.roshap("study", "quick", "only=[diabetes-ridge]", "--estimate")
    assert "warning: more than a day" in again.out


def test_times_are_written_as_people_say_them() -> None:
    from roshap.stages.estimate import as_time

    assert [as_time(s) for s in (4, 600, 9000, 200000)] == ["4 s", "10 min", "2.5 h", "2.3 days"]
