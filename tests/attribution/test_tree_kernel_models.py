"""The tree kernel against shap, the libraries' own contributions, and the models' outputs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import shap
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from xgboost import XGBClassifier, XGBRegressor, XGBRFRegressor

from roshap.attribution.explainers.outputs import raw_output
from roshap.attribution.explainers.tree_kernel import TreeKernelExplainer, kernel_explainer
from roshap.errors import ModelError
from roshap.models import Task

P = 6


def make_data(task: Task, n: int = 220, *, missing: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Rows that are float32 numbers, so that libraries that round them agree."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, P)).astype(np.float32).astype(np.float64)
    score = X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=n) / 2
    if missing:
        X[rng.random(X.shape) < 0.15] = np.nan
    if task == "regression":
        return X, score
    cuts = [0.0] if task == "binary" else [-0.7, 0.6]
    return X, np.digitize(score, cuts)


def explain(model: Any, task: Task) -> TreeKernelExplainer:
    explainer = kernel_explainer(model, task)
    assert explainer is not None
    return explainer


def assert_additive(model: Any, X: np.ndarray, task: Task, *, tolerance: float = 1e-12) -> None:
    """The attributions and the model's output differ by a constant.

    It is the base value of the trees where nothing else is added to them.
    """
    explainer = explain(model, task)
    rest = raw_output(model, X, task) - explainer.values(X).sum(axis=1)
    scale = 1.0 + np.abs(rest).max()
    np.testing.assert_allclose(rest, rest[:1] + 0 * rest, rtol=0, atol=tolerance * scale)
    if hasattr(model, "predict_proba") and explainer.space == "probability":
        np.testing.assert_allclose(rest[0], explainer.tree_mean, atol=tolerance)


def assert_like(actual: np.ndarray, reference: np.ndarray, tolerance: float) -> None:
    """Equal up to `tolerance` of the largest value of the row, or 1e-12 of the largest of all."""
    row = np.abs(reference).max(axis=1, keepdims=True)
    allowed = np.maximum(tolerance * row, 1e-12 * np.abs(reference).max())
    assert actual.shape == reference.shape
    assert (np.abs(actual - reference) <= allowed).all()


def assert_like_shap(model: Any, X: np.ndarray, task: Task) -> None:
    reference = np.asarray(shap.TreeExplainer(model).shap_values(X, check_additivity=False))
    if reference.ndim == 2:
        reference = reference[:, :, None]
    if task == "binary":
        reference = reference[:, :, -1:]
    assert_like(explain(model, task).values(X), reference, 1e-10)


FORESTS: list[tuple[Any, Task]] = [
    (DecisionTreeClassifier(random_state=0), "binary"),
    (DecisionTreeClassifier(max_depth=4, random_state=0), "multiclass"),
    (DecisionTreeRegressor(max_leaf_nodes=20, random_state=0), "regression"),
    (DecisionTreeRegressor(ccp_alpha=0.02, random_state=0), "regression"),
    (RandomForestClassifier(10, random_state=0), "binary"),
    (RandomForestClassifier(10, random_state=0), "multiclass"),
    (RandomForestClassifier(10, class_weight="balanced_subsample", random_state=0), "multiclass"),
    (RandomForestRegressor(10, random_state=0), "regression"),
    (
        RandomForestRegressor(5, criterion="absolute_error", max_depth=4, random_state=0),
        "regression",
    ),
    (RandomForestClassifier(5, max_depth=1, random_state=0), "binary"),
    (ExtraTreesClassifier(10, random_state=0), "multiclass"),
    (ExtraTreesRegressor(10, random_state=0), "regression"),
    (GradientBoostingClassifier(n_estimators=20, subsample=0.7, random_state=0), "binary"),
    (GradientBoostingRegressor(n_estimators=20, random_state=0), "regression"),
    (HistGradientBoostingClassifier(max_iter=15), "binary"),
    (HistGradientBoostingClassifier(max_iter=5), "multiclass"),
    (HistGradientBoostingRegressor(max_iter=15), "regression"),
]


@pytest.mark.parametrize("model, task", FORESTS, ids=lambda value: str(value)[:60])
def test_sklearn(model: Any, task: Task) -> None:
    X, y = make_data(task)
    model.fit(X, y)
    assert_like_shap(model, X[:40], task)
    assert_additive(model, X, task)


def test_sklearn_multiclass_boosting() -> None:
    X, y = make_data("multiclass")
    model = GradientBoostingClassifier(n_estimators=10, random_state=0).fit(X, y)
    explainer = explain(model, "multiclass")
    assert explainer.space == "log-odds (margin)"
    assert explainer.values(X).shape == (len(X), P, 3)
    assert_additive(model, X, "multiclass")


def test_sklearn_boosting_from_zero() -> None:
    X, y = make_data("regression")
    model = GradientBoostingRegressor(n_estimators=9, init="zero", loss="huber").fit(X, y)
    explainer = explain(model, "regression")
    total = explainer.values(X).sum(axis=1)[:, 0] + explainer.tree_mean
    np.testing.assert_allclose(total, model.predict(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(10, random_state=0),
        ExtraTreesClassifier(10, random_state=0),
        HistGradientBoostingClassifier(max_iter=10),
    ],
)
def test_sklearn_missing_values(model: Any) -> None:
    X, y = make_data("binary", missing=True)
    X[:, 4] = np.where(y == 1, np.nan, X[:, 4])  # a split between missing and not
    model.fit(X, y)
    assert_additive(model, X, "binary")
    X, y = make_data("binary")
    model.fit(X, y)
    if isinstance(model, HistGradientBoostingClassifier):  # the others refuse what they never saw
        assert_additive(model, make_data("binary", missing=True)[0], "binary")


def test_zero_weight_rows() -> None:
    X, y = make_data("multiclass")
    weight = np.where(X[:, 0] > 0, 0.0, np.random.default_rng(1).exponential(size=len(X)))
    for model in (
        DecisionTreeClassifier(random_state=0),
        RandomForestClassifier(10, random_state=0),
        GradientBoostingClassifier(n_estimators=5, random_state=0),
    ):
        model.fit(X, y, sample_weight=weight)
        assert_additive(model, X, "multiclass")
        if not isinstance(model, GradientBoostingClassifier):  # shap knows it for two classes
            assert_like_shap(model, X[:20], "multiclass")


def test_monotonic_constraints() -> None:
    X, y = make_data("binary")
    model = RandomForestClassifier(10, monotonic_cst=[0, 0, 1, 0, 0, -1], random_state=0)
    assert_additive(model.fit(X, y), X, "binary")


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_forest_of_single_leaves(task: Task) -> None:
    X, y = make_data(task)
    kind = RandomForestRegressor if task == "regression" else RandomForestClassifier
    model = kind(5, min_samples_split=10_000, random_state=0).fit(X, y)
    explainer = explain(model, task)
    assert not explainer.values(X).any()
    assert not explainer.abs_sum(X).any()
    assert_additive(model, X, task)


def test_one_feature_and_copies_of_a_feature() -> None:
    X, y = make_data("binary")
    model = RandomForestClassifier(10, random_state=0).fit(X[:, 2:3], y)
    assert_like_shap(model, X[:40, 2:3], "binary")
    copies = np.column_stack([X, X[:, 2], X[:, 2]])
    model = RandomForestClassifier(10, random_state=0).fit(copies, y)
    assert_like_shap(model, copies[:40], "binary")
    assert_additive(model, copies, "binary")


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(20, random_state=0),
        XGBClassifier(n_estimators=20, n_jobs=1),
        HistGradientBoostingClassifier(max_iter=10),
        LGBMClassifier(n_estimators=10, n_jobs=1, verbose=-1),
    ],
    ids=lambda model: type(model).__name__,
)
def test_values_next_to_a_threshold(model: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = make_data("binary")
    # few values, next to each other in float32 or closer
    grid = np.float32([0.1, 0.3, 1.0, -0.7, 0.0])
    grid = np.concatenate([grid, np.nextafter(grid, np.float32(9)), np.nextafter(grid, grid - 1)])
    X = grid[np.argsort(np.argsort(X, axis=0), axis=0) % len(grid)].astype(np.float64)
    y = (X[:, 0] > np.median(X[:, 0])) ^ (X[:, 1] >= np.float32(0.1)) ^ (rng.random(len(X)) < 0.1)
    model.fit(X, y.astype(int))
    near = np.concatenate([X, np.nextafter(X, 9), np.nextafter(X, -9), X * (1 + 3e-8)])
    tolerance = 1e-12 if not isinstance(model, XGBClassifier) else 3e-6
    assert_additive(model, near, "binary", tolerance=tolerance)


XGB: dict[str, Any] = {"n_estimators": 25, "n_jobs": 1, "max_depth": 5}


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(
    "model, task",
    [
        (XGBClassifier(**XGB), "binary"),
        (XGBClassifier(**XGB, subsample=0.7, min_child_weight=0), "multiclass"),
        (XGBRegressor(**XGB), "regression"),
        (XGBRegressor(**XGB, num_parallel_tree=3, tree_method="exact"), "regression"),
        (XGBRFRegressor(n_estimators=10, n_jobs=1), "regression"),
        (XGBClassifier(n_estimators=3, gamma=1e6, n_jobs=1), "binary"),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else str(value),
)
def test_xgboost(model: Any, task: Task, missing: bool) -> None:
    from xgboost import DMatrix

    X, y = make_data(task, missing=missing)
    model.fit(X, y)
    X = np.concatenate([X, make_data(task, missing=True)[0]])
    reference = model.get_booster().predict(DMatrix(X), pred_contribs=True).astype(np.float64)
    reference = reference.reshape(len(X), -1, P + 1).transpose(0, 2, 1)[:, :P]
    phi = explain(model, task).values(X)
    np.testing.assert_allclose(phi, reference, rtol=0, atol=1e-5 * abs(reference).max())
    assert_additive(model, X, task, tolerance=1e-5)


def test_xgboost_early_stopping() -> None:
    X, y = make_data("regression")
    model = XGBRegressor(n_estimators=200, learning_rate=1.0, early_stopping_rounds=3, n_jobs=1)
    model.fit(X[:150], y[:150], eval_set=[(X[150:], y[150:])], verbose=False)
    assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
    assert_additive(model, X, "regression", tolerance=1e-5)


LGB: dict[str, Any] = {"n_estimators": 25, "n_jobs": 1, "verbose": -1, "min_child_samples": 3}


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(
    "model, task",
    [
        (LGBMClassifier(**LGB), "binary"),
        (LGBMClassifier(**LGB, colsample_bytree=0.8), "multiclass"),
        (LGBMRegressor(**LGB), "regression"),
        (LGBMRegressor(**LGB, boosting_type="dart", linear_tree=False), "regression"),
        (LGBMRegressor(n_estimators=3, n_jobs=1, verbose=-1, min_child_samples=999), "regression"),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else str(value),
)
def test_lightgbm(model: Any, task: Task, missing: bool) -> None:
    X, y = make_data(task, missing=missing)
    model.fit(X, y)
    X = np.concatenate([X, make_data(task, missing=True)[0]])
    reference = model.booster_.predict(X, pred_contrib=True)
    reference = reference.reshape(len(X), -1, P + 1).transpose(0, 2, 1)[:, :P]
    assert_like(explain(model, task).values(X), reference, 1e-10)
    assert_additive(model, X, task)


def test_lightgbm_early_stopping() -> None:
    from lightgbm import early_stopping

    X, y = make_data("regression")
    model = LGBMRegressor(n_estimators=200, learning_rate=0.9, n_jobs=1, verbose=-1)
    stop = early_stopping(3, verbose=False)
    model.fit(X[:150], y[:150], eval_set=[(X[150:], y[150:])], callbacks=[stop])
    assert model.best_iteration_ < model.n_estimators
    assert_additive(model, X, "regression")


def test_what_other_routines_explain() -> None:
    X, y = make_data("regression")
    X_binary, labels = make_data("binary")
    frame = pd.DataFrame(X).astype({0: "float32"})
    frame[5] = pd.Categorical((X[:, 5] * 2).round().astype(int))
    frame.columns = [f"x{i}" for i in range(P)]
    start = GradientBoostingRegressor(init=LinearRegression(), n_estimators=3)
    others: list[tuple[Any, Any, Any, Task]] = [
        (XGBRegressor(booster="dart", n_estimators=3), X, y, "regression"),
        (XGBRegressor(booster="gblinear", n_estimators=3), X, y, "regression"),
        (XGBRegressor(missing=-1.0, n_estimators=3), X, y, "regression"),
        (XGBRegressor(n_estimators=3, enable_categorical=True), frame, y, "regression"),
        (
            XGBClassifier(n_estimators=3, objective="multi:softprob", num_class=2),
            X,
            labels,
            "binary",
        ),
        (LGBMRegressor(**LGB), frame, y, "regression"),
        (LGBMRegressor(**LGB, zero_as_missing=True), X, y, "regression"),
        (LGBMRegressor(**LGB, linear_tree=True), X, y, "regression"),
        (
            LGBMRegressor(**LGB, boosting_type="rf", subsample=0.5, subsample_freq=1),
            X,
            y,
            "regression",
        ),
        (HistGradientBoostingRegressor(max_iter=3), frame, y, "regression"),
        (start, X, y, "regression"),
        (RandomForestRegressor(3), X, np.column_stack([y, y]), "regression"),
        (LogisticRegression(), X_binary, labels, "binary"),
        (IsolationForest(n_estimators=3), X, None, "regression"),
        (DummyRegressor(), X, y, "regression"),
    ]
    for model, data, target, task in others:
        assert kernel_explainer(model.fit(data, target), task) is None, model


@pytest.fixture(scope="module")
def forest() -> tuple[TreeKernelExplainer, np.ndarray]:
    X, y = make_data("multiclass", missing=True)
    model = RandomForestClassifier(20, random_state=0).fit(X, y)
    return explain(model, "multiclass"), X


def test_sum_of_absolute_values(forest: tuple[TreeKernelExplainer, np.ndarray]) -> None:
    explainer, X = forest
    size = np.abs(explainer.values(X))
    np.testing.assert_allclose(explainer.abs_sum(X), size.sum(axis=0), rtol=1e-13)
    weight = np.random.default_rng(0).exponential(size=len(X))
    expected = np.einsum("i,ijk->jk", weight, size)
    np.testing.assert_allclose(explainer.abs_sum(X, weight), expected, rtol=1e-13)
    assert explainer.abs_sum(X).tobytes() == explainer.abs_sum(X).tobytes()
    assert not explainer.abs_sum(X[:0]).any()


def test_every_kind_of_matrix(
    forest: tuple[TreeKernelExplainer, np.ndarray], tmp_path: Path
) -> None:
    explainer, X = forest
    expected = explainer.values(X).tobytes()
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for same in (mapped, np.asfortranarray(X), pd.DataFrame(X), np.repeat(X, 2, axis=0)[::2]):
        assert explainer.values(same).tobytes() == expected
    assert X.flags.writeable


def test_threads_give_the_same(forest: tuple[TreeKernelExplainer, np.ndarray]) -> None:
    explainer, X = forest
    expected = explainer.values(X).tobytes()
    with ThreadPoolExecutor(2) as pool:
        assert {phi.tobytes() for phi in pool.map(explainer.values, [X] * 6)} == {expected}


def test_errors_name_what_is_wrong(forest: tuple[TreeKernelExplainer, np.ndarray]) -> None:
    explainer, X = forest
    with pytest.raises(ModelError, match=r"shape \(220, 4\).*6 features"):
        explainer.values(X[:, :4])
    with pytest.raises(ModelError, match=r"shape \(3,\); expected \(220,\)"):
        explainer.abs_sum(X, np.ones(3))
    frame = pd.DataFrame(X).astype({2: "str"})
    with pytest.raises(ModelError, match="'2'"):
        explainer.values(frame)
    model = RandomForestClassifier(2).fit(X, np.zeros(len(X), int))
    with pytest.raises(ModelError, match="lack a class"):
        kernel_explainer(model, "binary")
