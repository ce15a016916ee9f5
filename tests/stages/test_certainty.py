"""The stop rule, the second seed and the groups through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from roshap.attribution.ranking import read_ranking
from tests.conftest import Checkout

pytestmark = pytest.mark.pipeline

MINE = ("dataset=csv", "dataset.path=my.csv", "dataset.target=y", "compute.workers=1")
LOOKS = ("bootstrap.stop=settled", "bootstrap.looks=[20,30]")


@pytest.fixture
def mine(checkout: Checkout) -> Checkout:
    """Return a checkout with a table of two clear signals, one of them twice."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(80, 5)), columns=["a", "b", "c", "d", "e"])
    X["y"] = 4 * X["a"] + 2 * X["b"] + 0.2 * rng.normal(size=80)
    X["b again"] = X["b"]
    X.to_csv(checkout.root / "my.csv", index=False)
    return checkout


def test_it_stops_by_itself_prints_the_claim_and_reports_it(mine: Checkout) -> None:
    answer = mine.roshap(
        "run", *MINE, *LOOKS, "model=ridge", "selection.k=1", "out=r", "tracking=none"
    )
    assert answer.code == 0, answer.err
    assert "the 1 best features are settled after 20 runs" in answer.out
    assert "error <= 5% over all looks" in answer.out
    summary = json.loads((mine.root / "r" / "rank" / "summary.json").read_text())
    assert summary["runs"] == 20
    assert summary["metrics"]["settled"] == 1
    figures = {path.stem for path in (mine.root / "r" / "rank" / "figures").glob("*.svg")}
    assert {"intervals", "top_k", "ties", "settling"} <= figures
    page = (mine.root / "r" / "index.html").read_text()
    assert "are settled after 20 runs" in page
    assert "exact copies: b = b again" in page


def test_a_tie_is_named_and_copies_are_marked(mine: Checkout) -> None:
    answer = mine.roshap(
        "run", *MINE, *LOOKS, "model=ridge", "selection.k=2", "bootstrap.eps=0", "out=r",
        "tracking=none",
    )  # fmt: skip
    assert answer.code == 0, answer.err
    assert "the 2 best features are not settled after 30 runs" in answer.out
    assert "tie group at k = 2: b, b again" in answer.out
    table = read_ranking(mine.root / "r" / "rank").set_index("feature")
    assert table.loc["b", "copies"] == "b again"
    assert table.loc[["b", "b again"], "interchangeable"].all()
    groups = read_ranking(mine.root / "r" / "rank", name="groups").set_index("group")
    assert groups.loc["b (+1)", "rank"] == 2
    assert groups.loc["b (+1)", "members"] == "b 50%, b again 50%"


def test_the_largest_settled_number(mine: Checkout) -> None:
    answer = mine.roshap(
        "run", *MINE, *LOOKS, "model=ridge", "selection.k=auto", "selection.k_range=[1,3]",
        "out=r", "tracking=none",
    )  # fmt: skip
    assert answer.code == 0, answer.err
    assert "the 3 best features are settled after 20 runs" in answer.out


def test_a_second_seed_gives_the_shares(mine: Checkout) -> None:
    answer = mine.roshap(
        "run", *MINE, "model=random_forest", "model.regression.n_estimators=3",
        "bootstrap.runs=8", "bootstrap.randomness=8", "selection.k=2", "out=r",
    )  # fmt: skip
    assert answer.code == 0, answer.err
    assert "from the data drawn" in answer.out
    assert "8 runs are too few to call a top set settled" in answer.out
    table = read_ranking(mine.root / "r" / "rank")
    assert table["data_share"].dropna().between(0, 1).all()
    assert (mine.root / "r" / "rank" / "figures" / "variance_shares.png").is_file()
    import mlflow

    client = mlflow.MlflowClient(f"sqlite:///{mine.root}/mlflow.db")
    experiment = client.get_experiment_by_name("rank")
    [run] = client.search_runs([experiment.experiment_id])
    assert 0 <= run.data.metrics["data_share"] <= 1
    assert run.data.tags["settled"] == "unknown"


def test_settling_is_a_curve_over_looks_in_mlflow(mine: Checkout) -> None:
    import mlflow

    answer = mine.roshap(
        "run", *MINE, *LOOKS, "model=ridge", "selection.k=2", "bootstrap.eps=0", "out=r"
    )
    assert answer.code == 0, answer.err
    client = mlflow.MlflowClient(f"sqlite:///{mine.root}/mlflow.db")
    [run] = client.search_runs([client.get_experiment_by_name("rank").experiment_id])
    assert [p.step for p in client.get_metric_history(run.info.run_id, "settling.wanted")] == []
    again = mine.roshap("run", *MINE, *LOOKS, "model=ridge", "selection.k=1", "out=r")
    assert again.code == 0, again.err
    latest = client.search_runs([client.get_experiment_by_name("rank").experiment_id])[0]
    steps = [p.step for p in client.get_metric_history(latest.info.run_id, "settling.t_min")]
    assert steps == [20]
    assert latest.data.metrics["settled"] == 1


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("bootstrap.stop=setled", "bootstrap.stop"),
        ("bootstrap.looks=[]", "bootstrap.looks"),
        ("selection.k=0", "selection.k"),
        ("selection.k=7", "k=7: of 6 features at most 5"),
        ("bootstrap.groups_threshold=2", "bootstrap.groups_threshold"),
    ],
)
def test_mistakes_end_in_one_line(mine: Checkout, override: str, words: str) -> None:
    looks = [word for word in LOOKS if word.partition("=")[0] != override.partition("=")[0]]
    answer = mine.roshap("attribute", *MINE, *looks, override, "model=ridge", "tracking=none")
    assert answer.code == 2
    assert words in answer.complaint


def test_runs_say_how_many_unless_they_are_left_open(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    monkeypatch.setattr(
        "roshap.stages.app.stage_function", lambda _: lambda c, _: seen.append(c.bootstrap.runs)
    )
    for words in ([], ["bootstrap.stop=settled"], ["bootstrap.stop=settled", "bootstrap.runs=90"]):
        assert checkout.roshap("attribute", *words).code == 0
    assert seen == [100, 500, 90]


def test_the_rank_stage_judges_a_fixed_number_of_runs_once(mine: Checkout, tmp_path: Path) -> None:
    common = (*MINE, "model=ridge", "out=r", "tracking=none", "selection.k=1")
    assert mine.roshap("attribute", "bootstrap.runs=70", *common).code == 0
    assert mine.roshap("rank", *common).code == 0
    summary = json.loads((mine.root / "r" / "rank" / "summary.json").read_text())
    assert "error <= 5% at this one look" in summary["certainty"]["lines"][0]
