"""The stage ``regress`` with DREM: files, MLflow, the report, mistakes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pandas as pd
import pytest

from roshap.plots import read_provenance
from roshap.stages.report_regression import regression_sections
from tests.conftest import Checkout

MIRROR = os.environ.get("ROSHAP_MIRROR")  # read here: the fixture's checkout has none
FAST = ("tracking=none", "regression.repeats=2")


def small(study: str) -> list[str]:
    values = {
        "epochs": [],
        "noise": ["regression.values=[10]"],
        "rows": ["regression.values=[100,200]"],
        "features": ["regression.values=[2,12]"],
        "criteria": ["regression.values=[5]"],
        "iris": [],
        "signals": [],
    }[study]
    epochs = [] if study == "signals" else ["regression.epochs=4"]
    return [f"regression=drem_{study}", *values, *epochs, *FAST]


@pytest.mark.pipeline
@pytest.mark.parametrize(
    "study", ["epochs", "noise", "rows", "features", "criteria", "iris", "signals"]
)
def test_every_study_writes_what_it_promises(checkout: Checkout, study: str) -> None:
    answer = checkout.roshap("regress", *small(study), "out=x")
    assert answer.code == 0, answer.err
    assert "Warning" not in answer.err
    (section,) = regression_sections({"mine": checkout.root / "x"})
    assert section["tables"]
    for table in section["tables"]:
        assert len(pd.read_csv(checkout.root / "x" / table["file"])) > 0
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
    assert section["figures"] or study == "criteria"
    timing = json.loads((checkout.root / "x" / "timing" / "summary.json").read_text())
    assert bool(timing["tables"]) == (study == "criteria")
    assert bool(timing["captions"]) == (study in {"rows", "features"})
    for svg in (checkout.root / "x").rglob("*.svg"):
        assert json.loads(read_provenance(svg)["parameters"])["regression"]["name"]
    metrics = json.loads((checkout.root / "x" / "metrics" / "regress.json").read_text())
    assert metrics


@pytest.mark.pipeline
def test_results_are_the_same_bytes_again_and_times_are_kept_apart(checkout: Checkout) -> None:
    def content() -> dict[str, bytes]:
        assert checkout.roshap("regress", *small("rows"), "experiment=e", "out=a").code == 0
        folder = checkout.root / "a" / "regress"
        return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*.*")}

    first = content()
    assert first
    assert content() == first
    assert (checkout.root / "a" / "timing" / "figures" / "time_rows.svg").is_file()


@pytest.mark.pipeline
def test_the_report_has_a_section(checkout: Checkout) -> None:
    (checkout.root / "params.yaml").write_text(
        "study: mine\ndatasets: []\nexperiments: {}\n"
        "problems: {waves: {regression: drem_signals, seed: 0}}\n"
    )
    assert checkout.roshap("regress", *small("signals"), "out=results/waves").code == 0
    answer = checkout.roshap("report", "out=page", "tracking=none")
    assert answer.code == 0, answer.err
    page = (checkout.root / "page" / "index.html").read_text()
    assert 'id="waves"' in page
    assert page.count("data:image/png") == 2
    (checkout.root / "results" / "waves" / "regress" / "summary.json").unlink()
    assert "experiment waves has no results" in checkout.roshap("report", "tracking=none").complaint


@pytest.mark.pipeline
def test_mlflow_has_a_child_per_optimiser_with_its_curve(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = f"sqlite:///{checkout.root / 'm.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    words = [word for word in small("epochs") if word != "tracking=none"]
    assert checkout.roshap("regress", *words, "out=x").code == 0
    from mlflow import MlflowClient

    client = MlflowClient(uri)
    (experiment,) = [e for e in client.search_experiments() if e.name == "regress"]
    runs = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    assert {"SGD", "Adam", "DREM standard", "unit noise 2q"} <= set(runs)
    history = client.get_metric_history(runs["Adam"].info.run_id, "ratio_to_ols")
    assert [point.step for point in history] == [1, 2, 3, 4]
    parent = runs["make_regression_small-drem_epochs"]
    assert parent.data.params["regression.epochs"] == "4"
    assert not any(key.startswith(("model", "bootstrap")) for key in parent.data.params)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["regress"], ["which experiment", "drem_epochs"]),
        (["regress", "regression=drem_epoch"], ["unknown regression 'drem_epoch'", "drem_epochs"]),
        (
            ["regress", "regression=drem_epochs", "+regression.epoch=3"],
            ["unknown key 'epoch' in regression", "'epochs'"],
        ),
        (
            ["regress", "regression=drem_epochs", "regression.epochs=0"],
            ["regression.epochs=0"],
        ),
        (["regress", "regression=drem_epochs", "dataset=wine", *FAST], ["wine", "multiclass"]),
        (["regress", "regression=drem_iris", "dataset=diabetes", *FAST], ["classes", "diabetes"]),
        (
            ["regress", "regression=drem_rows", "regression.values=[3]", *FAST],
            ["regression.values=[3]", "rows from 12"],
        ),
        (
            ["regress", "regression=drem_epochs", "+regression.optimisers.SGD.rate=1", *FAST],
            ["no parameter 'rate'", "learning_rate"],
        ),
    ],
)
def test_a_mistake_is_named(checkout: Checkout, arguments: list[str], parts: list[str]) -> None:
    answer = checkout.roshap(*arguments)
    assert answer.code == 2
    for part in parts:
        assert part in answer.complaint


def test_the_other_stages_do_not_know_the_regression(checkout: Checkout) -> None:
    words = ("dataset=wine", "bootstrap.runs=2", "tracking=none", "compute.workers=1")
    assert checkout.roshap("attribute", *words, "out=a").code == 0
    lineage = json.loads((checkout.root / "a" / "attribute" / "lineage.json").read_text())
    assert "regression" not in lineage["parameters"]


@pytest.mark.mirror
@pytest.mark.pipeline
@pytest.mark.skipif(MIRROR is None, reason="real data: ROSHAP_MIRROR is not set")
def test_least_squares_on_the_articles_data(checkout: Checkout) -> None:
    from sklearn.linear_model import LinearRegression

    from roshap.datasets import load
    from roshap.regression.drem import DREMRegressor

    expected = {"salary": (0.956957, None), "auto_mpg": (0.821478, 10.847481)}
    for name, (r2, mse) in expected.items():
        answer = checkout.roshap(
            "fetch", f"dataset={name}", "tracking=none", f"fetch.mirror={MIRROR}"
        )
        assert answer.code == 0, answer.err
        data = load(Path(checkout.root) / "data" / name)
        ols = LinearRegression().fit(data.X, data.y)
        assert ols.score(data.X, data.y) == pytest.approx(r2, abs=5e-7)
        if mse is not None:
            errors = (ols.predict(data.X) - data.y) ** 2
            assert errors.mean() == pytest.approx(mse, abs=5e-7)
        ours = DREMRegressor(batch_rows=len(data.X), epochs=1).fit(data.X, data.y)
        assert ours.score(data.X, data.y) == pytest.approx(r2, abs=5e-7)
        if name == "salary":
            assert ours.intercept_ == pytest.approx(25792.2002, abs=5e-5)
            assert ours.coef_[0] == pytest.approx(9449.9623, abs=5e-5)
