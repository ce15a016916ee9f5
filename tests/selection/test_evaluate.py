"""The comparison of rankers: nothing leaks, everything is shared, nothing depends on workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from xgboost import XGBClassifier

from roshap.attribution.bootstrap import bootstrap_attributions
from roshap.attribution.ranking import rank_attributions
from roshap.compute import Executor
from roshap.datasets import Dataset, from_frame
from roshap.errors import ConfigError
from roshap.selection import (
    ALL_FEATURES,
    ALL_RANKERS,
    Selection,
    SelectionSettings,
    evaluate,
    make_splits,
)
from roshap.selection.metrics import measure

SERIAL = Executor(workers=1)
SETTINGS = SelectionSettings(
    upto=3,
    runs=3,
    folds=2,
    options={"lime": {"rows": 2, "samples": 60}, "permutation": {"repeats": 1}},
)
MODEL = XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1, random_state=0)
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(80, 6)), columns=list("abcdef"))
TARGET = (FRAME["a"] + 0.5 * FRAME["b"] + 0.5 * RNG.normal(size=80) > 0).astype(int).to_numpy()


def compare(data: Dataset, model: Any = MODEL, **options: Any) -> Selection:
    settings = options.pop("settings", SETTINGS)
    return evaluate(
        data, model, settings=settings, executor=options.pop("executor", SERIAL), **options
    )


@pytest.fixture(scope="module")
def found() -> Selection:
    return compare(from_frame(FRAME, TARGET))


def of_split(selection: Selection, name: str) -> pd.DataFrame:
    table = selection.rankings[selection.rankings["split"] == name]
    return table.drop(columns="score").reset_index(drop=True)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_no_ranker_sees_the_test_rows(number: int) -> None:
    """A feature that tells the target in the test rows alone, and is noise in the training rows."""
    split = make_splits(from_frame(FRAME, TARGET), test_size=0.3, folds=2, seed=0)[number]
    noise = RNG.normal(size=80)
    told = noise.copy()
    told[split.test] = 1000.0 * TARGET[split.test]
    with_leak = compare(from_frame(FRAME.assign(leak=told), TARGET))
    without = compare(from_frame(FRAME.assign(leak=noise), TARGET))
    assert set(with_leak.rankers) == set(ALL_RANKERS)
    pd.testing.assert_frame_equal(of_split(with_leak, split.name), of_split(without, split.name))
    # the plant works: whoever fits to the test rows ranks it first
    whole = LogisticRegression(max_iter=500).fit(
        FRAME.assign(leak=told / 1000).iloc[split.test], TARGET[split.test]
    )
    assert np.argmax(np.abs(whole.coef_[0])) == 6


def test_no_ranker_sees_published_test_rows() -> None:
    held_out = np.arange(80) >= 60
    told = RNG.normal(size=80)
    garbled = FRAME.where(~pd.Series(held_out), 1e6).assign(leak=np.where(held_out, TARGET, told))
    clean = FRAME.assign(leak=told)
    a = compare(from_frame(garbled, TARGET, held_out=held_out))
    b = compare(from_frame(clean, TARGET, held_out=held_out))
    pd.testing.assert_frame_equal(
        a.rankings.drop(columns="score"), b.rankings.drop(columns="score")
    )


def test_every_ranker_has_the_same_splits_and_k(found: Selection) -> None:
    ranked = found.metrics[found.metrics["ranker"] != ALL_FEATURES]
    for ranker in ALL_RANKERS:
        part = ranked[ranked["ranker"] == ranker]
        assert list(zip(part["split"], part["k"], strict=True)) == [
            (split, k) for split in ("held-out", "fold 1", "fold 2") for k in (1, 2, 3)
        ]
    full = found.metrics[found.metrics["ranker"] == ALL_FEATURES]
    assert full["k"].tolist() == [6, 6, 6]


def test_metrics_are_those_of_a_refit_by_hand(found: Selection) -> None:
    split = make_splits(from_frame(FRAME, TARGET), test_size=0.3, folds=2, seed=0)[0]
    X = FRAME.to_numpy()
    for ranker in ("roshap", "gain"):
        places = of_split(found, "held-out")
        names = places[places["ranker"] == ranker]["feature"].head(2)
        columns = sorted(FRAME.columns.get_loc(name) for name in names)
        model = XGBClassifier(**MODEL.get_params()).fit(
            X[np.ix_(split.train, columns)], TARGET[split.train]
        )
        expected = measure(model, X[np.ix_(split.test, columns)], TARGET[split.test], "binary")
        part = found.metrics[found.metrics["ranker"] == ranker]
        row = part.query("split == 'held-out' and k == 2").iloc[0]
        assert {name: row[name] for name in expected} == expected


def test_the_roshap_ranking_is_the_bootstraps_own(found: Selection) -> None:
    data = from_frame(FRAME, TARGET)
    split = make_splits(data, test_size=0.3, folds=2, seed=0)[0]
    result = bootstrap_attributions(data.take(split.train), MODEL, runs=3, seed=0, executor=SERIAL)
    expected = rank_attributions(result)["feature"].tolist()
    assert of_split(found, "held-out").query("ranker == 'roshap'")["feature"].tolist() == expected


def test_equal_sets_are_fitted_once(found: Selection) -> None:
    fitted, wanted = found.refits
    assert wanted == 6 * 3 * 3 + 3
    sets = {
        (split, frozenset(part.head(k)["feature"]))
        for (split, _), part in found.rankings.groupby(["split", "ranker"])
        for k in (1, 2, 3)
    }
    assert fitted == len(sets) + 3


def test_other_workers_give_the_same(found: Selection) -> None:
    again = compare(from_frame(FRAME, TARGET), executor=Executor(workers=2))
    for name in ("rankings", "metrics", "stability", "details"):
        pd.testing.assert_frame_equal(getattr(found, name), getattr(again, name))


def test_the_order_of_columns_does_not_choose_features() -> None:
    settings = SelectionSettings(
        rankers=("gain", "ig", "roshap"), upto=3, runs=3, folds=0, options=SETTINGS.options
    )
    a = compare(from_frame(FRAME, TARGET), LogisticRegression(), settings=settings)
    flipped = from_frame(FRAME[list("fedcba")], TARGET)
    b = compare(flipped, LogisticRegression(), settings=settings)
    assert a.rankings["feature"].tolist() == b.rankings["feature"].tolist()


def test_finished_refits_are_found_again(
    found: Selection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = from_frame(FRAME, TARGET)
    compare(data, store=tmp_path)

    def never(*_: object) -> None:
        raise AssertionError("a finished refit was repeated")

    monkeypatch.setattr("roshap.selection.comparison.refit", never)
    again = compare(data, store=tmp_path)
    pd.testing.assert_frame_equal(found.metrics, again.metrics)


def test_a_ranker_that_cannot_rank_is_left_out_with_the_reason() -> None:
    frame = FRAME.copy()
    frame.loc[3, "c"] = np.nan
    selection = compare(from_frame(frame, TARGET))
    assert selection.left_out == {
        "lime": "the table has missing values",
        "ig": "the table has missing values",
    }
    assert selection.rankers == ("shap", "gain", "roshap", "permutation")


def test_regression_without_folds_has_no_stability() -> None:
    y = FRAME["a"].to_numpy() + 3
    settings = SelectionSettings(rankers=("gain", "roshap"), upto=2, runs=3, folds=0)
    selection = compare(from_frame(FRAME, y), LinearRegression(), settings=settings)
    assert selection.stability.empty
    assert {"rmse", "mae", "mape"} <= set(selection.metrics.columns)
    best = selection.rankings.query("place == 1")["feature"]
    assert set(best) == {"a"}


def test_more_k_than_features() -> None:
    settings = SelectionSettings(rankers=("gain",), upto=50, folds=0)
    selection = compare(from_frame(FRAME, TARGET), settings=settings)
    assert selection.metrics.query("ranker == 'gain'")["k"].tolist() == [1, 2, 3, 4, 5, 6]
    last = selection.metrics.query("ranker == 'gain' and k == 6").iloc[0]
    full = selection.metrics.query("ranker == @ALL_FEATURES").iloc[0]
    assert last["accuracy"] == full["accuracy"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rankers": ("mrmr",)}, "unknown ranker 'mrmr'"),
        ({"rankers": ()}, "nothing to compare"),
        ({"upto": 0}, "upto=0"),
        ({"aside": 1.0}, "aside=1.0"),
    ],
)
def test_settings_are_checked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        SelectionSettings(**options)
