"""The simulation study: the paper's numbers, the layout, the costs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from roshap.attribution.bootstrap import bootstrap_attributions
from roshap.compute import Executor
from roshap.datasets import from_frame
from roshap.datasets.readers import simulation as reader
from roshap.selection.simulation import PUBLISHED, costs, recovery, signal_ranks, table1

SERIAL = Executor(workers=1)


def small() -> pd.DataFrame:
    return reader.read({}, n=120, p=20, signals=10, seed=1).frame


def compute(what: str, function, inputs, count: int) -> list:
    found = dict(SERIAL.run(function, inputs, range(count)))
    return [found[task] for task in range(count)]


@pytest.fixture(scope="module")
def ranks() -> pd.DataFrame:
    frame = small()
    data = from_frame(frame.drop(columns="y"), frame["y"])
    model = LogisticRegression()
    attributions = bootstrap_attributions(data, model, runs=6, seed=0, executor=SERIAL)
    options = {"lime": {"rows": 2, "samples": 100}}
    found = signal_ranks(data, attributions, model, few=3, seed=0, compute=compute, options=options)
    return found.assign(seed=0)


def test_every_method_places_every_signal(ranks: pd.DataFrame) -> None:
    methods = ["RoSHAP, 3 runs", "RoSHAP, 6 runs", "SHAP (one run)", "information gain",
               "model gain", "LIME"]  # fmt: skip
    assert list(dict.fromkeys(ranks["method"])) == methods
    assert ranks.groupby("method")["signal"].apply(list).tolist() == [list(range(1, 11))] * 6
    for _, part in ranks.groupby("method"):
        assert part["rank"].is_unique
        assert part["rank"].between(1, 20).all()


def test_published_places_stand_beside_ours() -> None:
    assert all(len(places) == 10 for places in PUBLISHED.values())
    ours = pd.DataFrame(
        {
            "seed": 0,
            "method": "RoSHAP, 10 runs",
            "signal": range(1, 11),
            "rank": range(1, 11),
            "p0": [0.0] * 9 + [0.3],
            "zero": [False] * 9 + [True],
        }
    )
    table = table1(ours)
    assert table["source"].tolist() == ["published", "seed 0"]
    assert table.iloc[0, 2:].tolist() == [*"1234567", "10", "95 (30)", "317 (40)"]
    assert table.iloc[1, 2:].tolist() == [*"123456789", "zero"]


def test_recovery_counts_no_zero() -> None:
    ranks = pd.DataFrame(
        {"seed": 0, "method": "m", "signal": [1, 2, 3], "rank": [1, 2, 12],
         "zero": [False, True, False]}
    )  # fmt: skip
    assert recovery(ranks, [10, 12]).to_dict("records") == [
        {"method": "m", "seed": 0, "in_top_10": 1, "in_top_12": 2}
    ]


def test_costs_and_coverage() -> None:
    frame = small()
    data = from_frame(frame.drop(columns="y"), frame["y"])
    table = costs(data, [2, 50], seed=0).set_index("runs")
    n = data.n
    assert table.loc[2, "coverage"] == pytest.approx(1 - (1 - 1 / n) ** (2 * n))
    assert table.loc[2, "cost_ratio"] == 0.04
    assert abs(table.loc[2, "bag_coverage"] - table.loc[2, "coverage"]) < 0.1
    assert table.loc[50, "oob_coverage"] == 1
    expected = 1 - (1 - np.exp(-1)) ** 2
    assert table.loc[2, "oob_coverage"] == pytest.approx(expected, abs=0.12)
