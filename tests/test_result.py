"""``roshap.rank_features`` and what it returns."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge

import roshap
from roshap.attribution.ranking import COLUMNS
from roshap.errors import DataError

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(80, 5)), columns=list("abcde"))
Y = 2 * X["b"] + X["d"] + 0.2 * RNG.normal(size=80)


@pytest.fixture(scope="module")
def ranking() -> roshap.Ranking:
    model = RandomForestRegressor(5, max_depth=3, random_state=0)
    return roshap.rank_features(model, X, Y, k=2, runs="settled", randomness=10)


def test_the_signals_lead_and_are_settled(ranking):
    assert ranking.table["feature"].head(2).tolist() == ["b", "d"]
    assert tuple(ranking.table.columns) == COLUMNS
    assert ranking.decision.settled
    assert "the 2 best features are settled after 70 runs" in ranking.claim
    assert set(ranking.glossary) == set(COLUMNS)
    assert ranking.groups["group"].tolist() == ranking.table["feature"].tolist()


def test_every_plot_is_a_figure(ranking):
    plots = [name for name in dir(ranking) if name.startswith("plot_")]
    assert len(plots) == 7
    for name in plots:
        assert isinstance(getattr(ranking, name)(), Figure)


def test_json_is_complete_and_strict(ranking, tmp_path):
    text = ranking.to_json(tmp_path / "ranking.json")
    assert (tmp_path / "ranking.json").read_text() == text

    def refuse(word):
        raise AssertionError(word)

    found = json.loads(text, parse_constant=refuse)
    assert found["decision"]["runs"] == 70
    assert [row["feature"] for row in found["table"]] == ranking.table["feature"].tolist()


def test_a_store_lets_a_longer_call_go_on(tmp_path):
    roshap.rank_features(Ridge(), X, Y, runs=4, store=tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*.npz")}
    longer = roshap.rank_features(Ridge(), X, Y, runs=6, store=tmp_path)
    assert len(before) == 4
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())
    fresh = roshap.rank_features(Ridge(), X, Y, runs=6)
    pd.testing.assert_frame_equal(longer.table, fresh.table)


def test_without_a_second_seed_there_are_no_shares():
    found = roshap.rank_features(Ridge(), X, Y, runs=4)
    with pytest.raises(DataError, match="randomness=30"):
        _ = found.shares
    assert found.decision is None
    assert "too few" in found.claim


def test_importing_roshap_is_light():
    code = (
        "import sys, roshap; heavy = {'numpy', 'pandas', 'sklearn'} & set(sys.modules)"
        "; assert 'rank_features' in dir(roshap); sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = roshap.nothing
