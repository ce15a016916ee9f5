"""One contract for every explainer: shapes, units, additivity, sums, data as users bring it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xgboost
import yaml
from catboost import CatBoostClassifier, CatBoostRegressor
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier, XGBRegressor

from roshap import models
from roshap.attribution.explainers import make_explainer
from roshap.attribution.explainers.registry import FACTORIES, Method
from roshap.errors import ModelError
from roshap.models import fit

N, P, CLASSES = 90, 5, 3
CAT = {"iterations": 12, "thread_count": 1, "verbose": 0, "allow_writing_files": False}
LGB = {"n_estimators": 12, "n_jobs": 1, "verbosity": -1, "min_child_samples": 5}
XGB = {"n_estimators": 12, "n_jobs": 1}

# The output that attributions must add up to, asked of the model itself.
OUTPUTS = {
    "margin": lambda m, X: m.predict(X, output_margin=True),
    "raw": lambda m, X: m.predict(X, raw_score=True),
    "formula": lambda m, X: m.predict(X, prediction_type="RawFormulaVal"),
    "probability": lambda m, X: m.predict_proba(X),
    "decision": lambda m, X: m.decision_function(X),
    "predict": lambda m, X: m.predict(X),
}

# (model, method, name of the routine, units, output, tolerance of additivity)
MARGIN, PROBABILITY, TARGET = "log-odds (margin)", "probability", "target units"
DECISION, LOG_ODDS = "decision function", "decision function (log-odds)"
BOTH = ("binary", "multiclass")
CLASSIFIERS = [
    (XGBClassifier(**XGB), "native", "xgboost native", MARGIN, "margin", 1e-5),
    (XGBClassifier(**XGB), "shap", "shap tree", MARGIN, "margin", 1e-5),
    (LGBMClassifier(**LGB), "native", "lightgbm native", MARGIN, "raw", 1e-10),
    (CatBoostClassifier(**CAT), "native", "catboost native", MARGIN, "formula", 1e-8),
    (
        RandomForestClassifier(9, max_depth=4),
        "shap",
        "shap tree",
        PROBABILITY,
        "probability",
        1e-10,
    ),
    (DecisionTreeClassifier(max_depth=4), "shap", "shap tree", PROBABILITY, "probability", 1e-10),
    (HistGradientBoostingClassifier(max_iter=9), "shap", "shap tree", MARGIN, "decision", 1e-8),
    (
        RandomForestClassifier(9, max_depth=4),
        "auto",
        "tree kernel",
        PROBABILITY,
        "probability",
        1e-10,
    ),
    (GradientBoostingClassifier(n_estimators=9), "auto", "tree kernel", MARGIN, "decision", 1e-9),
    (XGBClassifier(**XGB), "auto", "tree kernel", MARGIN, "margin", 1e-5),
    (LGBMClassifier(**LGB), "auto", "tree kernel", MARGIN, "raw", 1e-9),
    (CatBoostClassifier(**CAT), "auto", "catboost native", MARGIN, "formula", 1e-8),
    (
        make_pipeline(StandardScaler(), LGBMClassifier(**LGB)),
        "native",
        "lightgbm native",
        MARGIN,
        "raw",
        1e-10,
    ),
    (
        make_pipeline(StandardScaler(), LogisticRegression()),
        "auto",
        "exact linear",
        LOG_ODDS,
        "decision",
        1e-12,
    ),
    (LinearSVC(), "native", "exact linear", DECISION, "decision", 1e-12),
    (SVC(), "auto", "permutation", DECISION, "decision", 1e-12),
    (AdaBoostClassifier(n_estimators=9), "auto", "permutation", PROBABILITY, "probability", 1e-12),
    (LogisticRegression(), "permutation", "permutation", LOG_ODDS, "decision", 1e-12),
    (
        make_pipeline(PCA(), LogisticRegression()),
        "auto",
        "permutation",
        LOG_ODDS,
        "decision",
        1e-12,
    ),
]
REGRESSORS = [
    (XGBRegressor(**XGB), "native", "xgboost native", TARGET, "margin", 1e-5),
    (LGBMRegressor(**LGB), "native", "lightgbm native", TARGET, "raw", 1e-10),
    (CatBoostRegressor(**CAT), "native", "catboost native", TARGET, "formula", 1e-8),
    (ExtraTreesRegressor(9, max_depth=4), "shap", "shap tree", TARGET, "predict", 1e-10),
    (GradientBoostingRegressor(n_estimators=9), "shap", "shap tree", TARGET, "predict", 1e-10),
    (RandomForestRegressor(9, max_depth=4), "auto", "tree kernel", TARGET, "predict", 1e-10),
    (HistGradientBoostingRegressor(max_iter=9), "auto", "tree kernel", TARGET, "predict", 1e-9),
    (
        make_pipeline(SimpleImputer(), StandardScaler(), Ridge()),
        "auto",
        "exact linear",
        TARGET,
        "predict",
        1e-12,
    ),
    (make_pipeline(PCA(), Ridge()), "permutation", "permutation", TARGET, "predict", 1e-12),
]
CASES = [(*case, task) for case in CLASSIFIERS for task in BOTH]
CASES += [(*case, "regression") for case in REGRESSORS]


def case_id(case):
    model, method, *_, task = case
    steps = getattr(model, "steps", [("", model)])
    return f"{'-'.join(type(step).__name__ for _, step in steps)}-{method}-{task}"


def table(task, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, P)).round(2)  # ties between rows
    signal = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=N)
    if task == "regression":
        return X, signal
    return X, np.digitize(signal, [0.0] if task == "binary" else [-0.5, 0.5]).astype(np.int64)


def seeded(model):
    return model.set_params(**{k: 7 for k in model.get_params() if k.endswith("random_state")})


@pytest.fixture(params=CASES, ids=case_id, scope="module")
def case(request):
    """A fitted model with its explainer, rows to explain, and what is promised of it."""
    model, method, name, space, output, tolerance, task = request.param
    X, y = table(task)
    fitted = fit(seeded(model), X, y)
    explainer = make_explainer(fitted, X, task, method=method)
    rows = X[:6] if name == "permutation" else X  # it costs thousands of evaluations a row
    return fitted, explainer, rows, task, (method, name, space, output, tolerance)


def test_shape_type_and_labels(case):
    _, explainer, rows, task, (_, name, space, *_) = case
    phi = explainer.values(rows)
    assert phi.shape == (len(rows), P, CLASSES if task == "multiclass" else 1)
    assert phi.dtype == np.float64
    assert np.isfinite(phi).all()
    assert explainer.space == space
    assert explainer.name == name


def test_attributions_add_up_to_the_model_s_output(case):
    fitted, explainer, rows, task, (*_, output, tolerance) = case
    raw = np.asarray(OUTPUTS[output](fitted, rows), dtype=np.float64)
    if raw.ndim == 2 and task == "binary":
        raw = raw[:, 1]
    raw = raw.reshape(len(rows), -1)
    base = raw - explainer.values(rows).sum(axis=1)  # the same number in every row
    assert np.ptp(base, axis=0).max() < tolerance * max(1.0, np.abs(raw).max())
    assert np.ptp(raw, axis=0).min() > 0.01  # there was something to add up


def test_sums_agree_with_values_and_take_weights(case):
    _, explainer, rows, *_ = case
    phi = np.abs(explainer.values(rows))
    np.testing.assert_allclose(explainer.abs_sum(rows), phi.sum(axis=0), rtol=1e-10, atol=1e-12)
    weight = np.random.default_rng(3).uniform(0, 2, size=len(rows))
    expected = np.einsum("i,ijk->jk", weight, phi)
    np.testing.assert_allclose(explainer.abs_sum(rows, weight), expected, rtol=1e-10, atol=1e-12)


def test_the_same_seed_gives_the_same_bits(case):
    fitted, explainer, rows, task, (method, *_) = case
    X, y = table(task)
    again = make_explainer(fit(fitted, X, y), X, task, method=method)
    assert np.array_equal(explainer.values(rows), again.values(rows))
    assert np.array_equal(explainer.abs_sum(rows), again.abs_sum(rows))


def test_small_chunks_change_nothing_but_rounding(case):
    fitted, explainer, rows, task, (method, *_) = case
    small = 1e-2 if explainer.name == "permutation" else 1e-3
    chunked = make_explainer(fitted, table(task)[0], task, method=method, chunk_mb=small)
    np.testing.assert_allclose(chunked.values(rows), explainer.values(rows), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        chunked.abs_sum(rows), explainer.abs_sum(rows), rtol=1e-9, atol=1e-12
    )


def test_a_read_only_memory_map_is_read(case, tmp_path):
    fitted, explainer, rows, task, (method, *_) = case
    X, y = table(task)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert not mapped.flags.writeable
    other = make_explainer(fit(fitted, mapped, y), mapped, task, method=method)
    assert np.array_equal(other.values(mapped[: len(rows)]), explainer.values(rows))
    assert np.array_equal(other.abs_sum(mapped[: len(rows)]), explainer.abs_sum(rows))


@pytest.mark.parametrize("method", ["native", "auto"])
@pytest.mark.parametrize(
    "model, output",
    [
        (XGBClassifier(**XGB), "margin"),
        (LGBMClassifier(**LGB), "raw"),
        (CatBoostClassifier(**CAT), "formula"),
    ],
    ids=["xgboost", "lightgbm", "catboost"],
)
def test_missing_values_are_explained(model, output, method):
    X, y = table("binary")
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    fitted = fit(model, X, y)
    phi = make_explainer(fitted, X, "binary", method=method).values(X)
    base = OUTPUTS[output](fitted, X) - phi.sum(axis=(1, 2))
    assert np.ptp(base) < 1e-5


@pytest.mark.parametrize("method", ["auto", "shap"])
def test_missing_values_in_a_forest(method):
    X, y = table("binary")
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    fitted = fit(RandomForestClassifier(9, max_depth=4, random_state=0), X, y)
    phi = make_explainer(fitted, X, "binary", method=method).values(X)
    assert np.ptp(fitted.predict_proba(X)[:, 1] - phi.sum(axis=(1, 2))) < 1e-10


@pytest.mark.parametrize("method", ["auto", "native", "shap"])
def test_values_on_the_edge_of_float32(method):
    """Thresholds lie between neighbours in float32, where float64 data fall on either side."""
    rng = np.random.default_rng(5)
    gap = np.spacing(np.float32(1024.0))  # a forest takes differences below 1e-7 for ties
    steps = np.float32(1024.0) + np.arange(6, dtype=np.float32) * gap
    X = steps[rng.integers(0, 6, size=(N, 3))].astype(np.float64)
    X += rng.choice([-0.25, 0.0, 0.25], size=X.shape) * gap
    y = (X[:, 0].astype(np.float32) > steps[2]).astype(int)
    model = RandomForestClassifier(5, random_state=0) if method == "shap" else XGBClassifier(**XGB)
    fitted = fit(model, X, y)
    output = fitted.predict_proba(X)[:, 1] if method == "shap" else OUTPUTS["margin"](fitted, X)
    phi = make_explainer(fitted, X, "binary", method=method).values(X)
    assert np.ptp(output - phi.sum(axis=(1, 2))) < 1e-5
    assert np.ptp(output) > 0.1


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
@pytest.mark.parametrize("kind", ["xgboost", "lightgbm", "catboost", "hist"])
@pytest.mark.parametrize("method", ["auto", "permutation"])
def test_categories_end_to_end(kind, task, method):
    model, output = {
        "xgboost": (XGBRegressor if task == "regression" else XGBClassifier, "margin"),
        "lightgbm": (LGBMRegressor if task == "regression" else LGBMClassifier, "raw"),
        "catboost": (CatBoostRegressor if task == "regression" else CatBoostClassifier, "formula"),
        "hist": (
            HistGradientBoostingRegressor
            if task == "regression"
            else HistGradientBoostingClassifier,
            "predict" if task == "regression" else "decision",
        ),
    }[kind]
    settings = {
        "xgboost": XGB,
        "lightgbm": LGB,
        "catboost": CAT,
        "hist": {"max_iter": 9, "min_samples_leaf": 3},
    }[kind]
    X, y = table(task)
    data = pd.DataFrame(X[:, :3], columns=["a", "b", "c"])
    third = np.digitize(y, np.quantile(y, [0.3, 0.6])) if task == "regression" else y
    data["kind"] = pd.Categorical(np.array(["x", "y", "z"])[third])  # gives the target away
    fitted = fit(model(**settings), data, y)
    explainer = make_explainer(fitted, data, task, method=method)
    phi = explainer.values(data.iloc[:8])
    assert phi.shape == (8, 4, CLASSES if task == "multiclass" else 1)
    raw = np.asarray(OUTPUTS[output](fitted, data.iloc[:8])).reshape(8, -1)
    assert np.ptp(raw - phi.sum(axis=1), axis=0).max() < 1e-5
    assert np.abs(phi[:, 3]).max() > 1e-3  # the category column is used
    assert (explainer.name == f"{kind} native") == (kind != "hist" and method == "auto")


CONF = Path(__file__).parents[2] / "conf" / "model"
ROUTINES = {
    "catboost": "catboost native",
    "logistic_regression": "exact linear",
    "ridge": "exact linear",
}


@pytest.mark.parametrize(
    "name, task",
    [(name, task) for name in models.CLASSIFIERS for task in BOTH]
    + [(name, "regression") for name in models.REGRESSORS],
)
def test_every_configured_model_is_explained_by_a_fast_routine(name, task):
    spec = models.ModelSpec(**yaml.safe_load((CONF / f"{name}.yaml").read_text()))
    X, y = table(task)
    fitted = fit(models.build(spec, task), X, y)
    explainer = make_explainer(fitted, X, task)
    total = explainer.abs_sum(X)
    assert explainer.name == ROUTINES.get(name, "tree kernel")
    assert total.shape == (P, CLASSES if task == "multiclass" else 1)
    assert (total > 0).any()


def test_a_base_score_in_brackets_is_no_obstacle():
    X, y = table("regression")
    fitted = fit(XGBRegressor(**XGB), X, y + 100.0)
    written = xgboost.XGBRegressor()
    written.load_model(fitted.get_booster().save_raw("json"))
    phi = make_explainer(written, X, "regression", method="native").values(X)
    assert np.ptp(fitted.predict(X) - phi.sum(axis=(1, 2))) < 1e-4


def test_early_stopping_explains_the_rounds_that_predict():
    X, y = table("regression")
    model = XGBRegressor(n_estimators=60, early_stopping_rounds=2, n_jobs=1)
    model.fit(X[:60], y[:60], eval_set=[(X[60:], y[60:])], verbose=False)
    assert model.best_iteration < model.get_booster().num_boosted_rounds() - 1
    phi = make_explainer(model, X, "regression", method="native").values(X)
    assert np.ptp(model.predict(X) - phi.sum(axis=(1, 2))) < 1e-5


def test_a_log_link_is_explained_on_the_log_scale():
    X, y = table("regression")
    fitted = fit(PoissonRegressor(), X, np.exp(y))
    explainer = make_explainer(fitted, X, "regression")
    assert (explainer.name, explainer.space) == ("exact linear", "log of the target (margin)")
    assert np.ptp(np.log(fitted.predict(X)) - explainer.values(X).sum(axis=(1, 2))) < 1e-12
    boosted = fit(XGBRegressor(objective="count:poisson", **XGB), X, np.exp(y))
    assert make_explainer(boosted, X, "regression").space == "log of the target (margin)"


def test_shap_records_its_additivity_error_instead_of_failing():
    X, y = table("binary")
    fitted = fit(RandomForestClassifier(5, random_state=0), X, y)
    explainer = make_explainer(fitted, X, "binary", method="shap")
    explainer.values(X)
    assert explainer.additivity_error < 1e-12
    explainer._explainer.expected_value = np.array([0.0, 0.0])
    explainer.values(X)
    assert explainer.additivity_error > 0.1


def test_every_routine_is_in_a_method():
    in_methods = {f for method in Method.__args__ for f in FACTORIES[method]}
    assert in_methods == set(FACTORIES["auto"])


@pytest.mark.parametrize(
    "model, method, words",
    [
        (SVC(), "native", "'native' cannot explain SVC here; it explains xgboost"),
        (SVC(), "kernel", "'kernel' cannot explain SVC"),
        (make_pipeline(PCA(), DecisionTreeClassifier()), "shap", "cannot explain DecisionTree"),
        (
            SVC(decision_function_shape="ovo"),
            "lime",
            "unknown explainer method 'lime'; valid: auto",
        ),
    ],
)
def test_unfit_methods_are_refused(model, method, words):
    X, y = table("binary")
    with pytest.raises(ModelError, match=words):
        make_explainer(fit(model, X, y), X, "binary", method=method)


def test_missing_classes_wrong_widths_and_weights_are_refused():
    X, y = table("multiclass")
    some = y != 1
    two = fit(LGBMClassifier(**LGB), X[some], y[some])
    with pytest.raises(ModelError, match=r"classes \[0, 2\] of a multiclass target"):
        make_explainer(two, X, "multiclass", method="native")
    explainer = make_explainer(fit(LGBMClassifier(**LGB), X, y), X, "multiclass", method="native")
    with pytest.raises(ModelError, match="X has 4 features; the model was fitted to 5"):
        explainer.values(X[:, :4])
    with pytest.raises(ModelError, match=r"shape \(3,\); expected \(90,\)"):
        explainer.abs_sum(X, np.ones(3))
    with pytest.raises(ModelError, match="chunk_mb must be positive, got 0"):
        make_explainer(two, X, "binary", chunk_mb=0)
    ovo = np.arange(N) % 4
    with pytest.raises(ModelError, match="SVC gives 6 outputs for 4"):
        make_explainer(fit(SVC(decision_function_shape="ovo"), X, ovo), X, "multiclass").values(
            X[:1]
        )
