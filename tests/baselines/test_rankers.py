"""The contract of every ranker, and what each says of known data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from xgboost import XGBClassifier, XGBRegressor

from roshap.baselines import RANKERS, Lime, Permutation, RankingData, make_rankers, order
from roshap.baselines.gain import model_importance, used_features
from roshap.errors import ConfigError

QUICK = {"lime": {"rows": 3, "samples": 200}, "permutation": {"repeats": 2}}


def ranking_data(model: Any, task: str, *, p: int = 6, n: int = 120, seed: int = 0) -> RankingData:
    """Column 2 decides, column 0 helps, the others are noise; the last one is constant."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X[:, -1] = 1.0
    signal = 3 * X[:, 2] + X[:, 0]
    if task == "regression":
        y = signal + 0.1 * rng.normal(size=n)
    else:
        y = np.digitize(signal, [-1.5, 1.5] if task == "multiclass" else [0])
    fit_rows, aside = np.arange(90), np.arange(90, n)
    return RankingData(
        X=X,
        y=y,
        features=tuple(f"f{j}" for j in range(p)),
        task=task,
        weights=None,
        fitted=model.fit(X[fit_rows], y[fit_rows]),
        fit_rows=fit_rows,
        aside=aside,
        k=2,
    )


CASES = {
    "binary": lambda: ranking_data(XGBClassifier(n_estimators=10, n_jobs=1), "binary"),
    "multiclass": lambda: ranking_data(
        RandomForestClassifier(20, max_depth=4, random_state=0), "multiclass"
    ),
    "regression": lambda: ranking_data(
        LGBMRegressor(n_estimators=20, verbose=-1, n_jobs=1), "regression"
    ),
    "linear": lambda: ranking_data(LinearRegression(), "regression"),
}


@pytest.fixture(params=CASES, scope="module")
def data(request: pytest.FixtureRequest) -> RankingData:
    return CASES[request.param]()


@pytest.mark.parametrize("name", RANKERS)
def test_every_ranker_finds_the_signal_and_repeats_itself(name: str, data: RankingData) -> None:
    (ranker,) = make_rankers([name], QUICK)
    assert ranker.unfit(data) is None
    before = repr(np.random.get_state())  # noqa: NPY002 - the global generator must stay as it is
    first = ranker.rank(data, np.random.default_rng(5))
    assert repr(np.random.get_state()) == before  # noqa: NPY002
    again = ranker.rank(data, np.random.default_rng(5))
    np.testing.assert_array_equal(first.scores, again.scores)
    assert first.scores.shape == (6,)
    assert np.isfinite(first.scores).all()
    assert order(first.scores, data.features)[0] == 2
    assert first.scores[-1] <= first.scores[2] / 100  # the constant


def test_ties_go_by_name_and_not_by_column() -> None:
    scores = np.array([1.0, 2.0, 1.0, 1.0])
    assert order(scores, ("d", "c", "b", "a")).tolist() == [1, 3, 2, 0]
    flipped = order(scores[::-1], ("a", "b", "c", "d"))
    assert [("a", "b", "c", "d")[j] for j in flipped] == ["c", "a", "b", "d"]


def test_information_gain_does_not_depend_on_the_order_of_the_columns(
    data: RankingData,
) -> None:
    (ranker,) = make_rankers(["ig"])
    flipped = RankingData(
        **{**vars(data), "X": data.X[:, ::-1].copy(), "features": data.features[::-1]}
    )
    a = ranker.rank(data, np.random.default_rng(0)).scores
    b = ranker.rank(flipped, np.random.default_rng(0)).scores
    np.testing.assert_array_equal(a, b[::-1])


FAMILIES = {
    "xgboost": (XGBClassifier(n_estimators=10, n_jobs=1), "gain"),
    "lightgbm": (LGBMClassifier(n_estimators=10, verbose=-1, n_jobs=1), "gain"),
    "catboost": (
        CatBoostClassifier(iterations=10, verbose=0, allow_writing_files=False, thread_count=1),
        "PredictionValuesChange",
    ),
    "forest": (RandomForestClassifier(10, random_state=0), "impurity"),
    "linear": (make_pipeline(StandardScaler(), LogisticRegression()), "|coefficient|"),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_gain_is_the_librarys_own_importance(family: str) -> None:
    model, word = FAMILIES[family]
    data = ranking_data(model, "binary")
    (ranker,) = make_rankers(["gain"])
    found = ranker.rank(data, np.random.default_rng(0))
    assert word in found.notes[0]
    own = {
        "xgboost": lambda: [
            data.fitted.get_booster().get_score(importance_type="gain").get(f"f{j}", 0)
            for j in range(6)
        ],
        "lightgbm": lambda: data.fitted.booster_.feature_importance("gain"),
        "catboost": lambda: list(data.fitted.get_feature_importance()),
        "forest": lambda: data.fitted.feature_importances_,
        "linear": lambda: np.abs(data.fitted[-1].coef_[0]),
    }[family]()
    np.testing.assert_array_equal(found.scores, own)


def test_features_that_the_model_does_not_use_score_zero() -> None:
    data = ranking_data(XGBClassifier(n_estimators=2, max_depth=2, n_jobs=1), "binary", p=12)
    used = used_features(data.fitted, 12)
    unused = np.setdiff1d(np.arange(12), used)
    assert len(unused) > 3
    for name in ("shap", "gain", "lime", "permutation"):
        (ranker,) = make_rankers([name], QUICK)
        scores = ranker.rank(data, np.random.default_rng(0)).scores
        assert not scores[unused].any(), name


def test_permutation_agrees_with_scikit_learn() -> None:
    from sklearn.inspection import permutation_importance

    data = ranking_data(LinearRegression(), "regression")
    ours = Permutation(repeats=200).rank(data, np.random.default_rng(0)).scores
    theirs = permutation_importance(
        data.fitted,
        data.X[data.aside],
        data.y[data.aside],
        scoring="neg_mean_squared_error",
        n_repeats=200,
        random_state=0,
    ).importances_mean
    np.testing.assert_allclose(ours, theirs, rtol=0.1, atol=0.02)


def test_lime_weights_of_a_linear_model_are_its_coefficients() -> None:
    """Continuous mode explains a linear function exactly: weight = |coef| x sd of the feature."""
    data = ranking_data(LinearRegression(), "regression", p=4)
    scores = Lime(rows=2, samples=500).rank(data, np.random.default_rng(0)).scores
    expected = np.abs(data.fitted.coef_) * data.X[data.fit_rows].std(axis=0)
    # LIME's own ridge has a penalty of 1 on kernel-weighted samples
    np.testing.assert_allclose(scores, expected, rtol=0.05, atol=0.02)


def test_lime_reports_its_instability_and_its_screening() -> None:
    data = ranking_data(LogisticRegression(), "binary", p=12)
    found = Lime(rows=2, samples=60, features=3).rank(data, np.random.default_rng(0))
    assert np.count_nonzero(found.scores) == 3
    assert any(note.startswith("3 of the ") for note in found.notes)
    assert 0 <= found.details["instability_top_2"] <= 1
    assert 0 <= found.details["instability_spearman"] <= 2
    once = Lime(rows=2, repeats=1, samples=60).rank(data, np.random.default_rng(0))
    assert once.details == {}


def test_what_cannot_rank_says_why() -> None:
    knn = ranking_data(KNeighborsClassifier(3), "binary")
    (gain,) = make_rankers(["gain"])
    assert "no importance of its own" in str(gain.unfit(knn))
    assert used_features(knn.fitted, 6).tolist() == [0, 1, 2, 3, 4, 5]
    machine = ranking_data(SVC(), "binary")
    for name in ("lime", "permutation"):
        (ranker,) = make_rankers([name])
        assert ranker.unfit(machine) == "the model gives no probabilities"
    boosted = ranking_data(HistGradientBoostingClassifier(max_iter=5), "binary")
    assert model_importance(boosted.fitted, 6) is None
    boosted.X[0, 0] = np.nan
    for name in ("lime", "ig"):
        (ranker,) = make_rankers([name])
        assert ranker.unfit(boosted) == "the table has missing values"


def test_tables_with_categories() -> None:
    rng = np.random.default_rng(0)
    colour = pd.Categorical(rng.choice(["r", "g", "b"], size=120))
    X = pd.DataFrame({"noise": rng.normal(size=120), "colour": colour})
    y = (colour.codes == 1).astype(int)
    model = XGBRegressor(n_estimators=5, enable_categorical=True, n_jobs=1).fit(X, y)
    data = RankingData(
        X=X, y=y.astype(float), features=("noise", "colour"), task="regression", weights=None,
        fitted=model, fit_rows=np.arange(90), aside=np.arange(90, 120),
    )  # fmt: skip
    for name in ("shap", "ig", "gain", "permutation"):
        (ranker,) = make_rankers([name])
        assert ranker.unfit(data) is None
        scores = ranker.rank(data, np.random.default_rng(0)).scores
        assert order(scores, data.features)[0] == 1, name
    (lime,) = make_rankers(["lime"])
    assert lime.unfit(data) == "the table has columns of categories"


def test_unknown_names_and_options() -> None:
    with pytest.raises(ConfigError, match=r"unknown ranker 'mrmr' .*valid: shap, gain"):
        make_rankers(["mrmr"])
    with pytest.raises(ConfigError, match=r"ranker lime: .*row"):
        make_rankers(["lime"], {"lime": {"row": 1}})
