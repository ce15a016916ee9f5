"""Different routes to the same number: native against shap, exact linear against shap."""

import numpy as np
import pytest
import shap
from catboost import CatBoostClassifier, CatBoostRegressor
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier, XGBRegressor

from roshap.attribution.explainers import make_explainer
from roshap.models import fit

CAT = {"iterations": 15, "thread_count": 1, "verbose": 0, "allow_writing_files": False}


def table(task, seed=2, n=100, p=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    signal = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=n)
    edges = {"binary": [0.0], "multiclass": [-0.5, 0.5]}
    return X, signal if task == "regression" else np.digitize(signal, edges[task])


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
@pytest.mark.parametrize(
    "classifier, regressor, settings, tolerance",
    [
        (XGBClassifier, XGBRegressor, {"n_estimators": 15, "n_jobs": 1}, 1e-5),
        (LGBMClassifier, LGBMRegressor, {"n_estimators": 15, "n_jobs": 1, "verbosity": -1}, 1e-10),
        (CatBoostClassifier, CatBoostRegressor, CAT, 1e-8),
    ],
    ids=["xgboost", "lightgbm", "catboost"],
)
def test_native_routines_agree_with_shap(task, classifier, regressor, settings, tolerance):
    X, y = table(task)
    fitted = fit((regressor if task == "regression" else classifier)(**settings), X, y)
    native = make_explainer(fitted, X, task, method="native").values(X)
    other = make_explainer(fitted, X, task, method="shap").values(X)
    assert np.abs(native - other).max() < tolerance * np.abs(native).max()


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_linear_values_are_shap_s(task):
    X, y = table(task)
    X = X * [1, 10, 100, 1, 1, 1] + 5
    model = Ridge() if task == "regression" else LogisticRegression()
    fitted = fit(make_pipeline(StandardScaler(), model), X, y)
    ours = make_explainer(fitted, X[:50], task).values(X)
    scaled = fitted[0].transform(X)
    masker = shap.maskers.Independent(scaled[:50], max_samples=50)
    theirs = shap.LinearExplainer(fitted[-1], masker).shap_values(scaled)
    np.testing.assert_allclose(ours, np.reshape(theirs, ours.shape), rtol=1e-9, atol=1e-12)


def test_linear_values_are_scale_free():
    """A feature in other units has the same attribution, with the scaler inside the model."""
    X, y = table("regression")
    units = np.array([1.0, 1e3, 1e-3, 1.0, 7.0, 1.0])
    model = make_pipeline(StandardScaler(), Ridge())
    first = make_explainer(fit(model, X, y), X, "regression").values(X)
    second = make_explainer(fit(model, X * units, y), X * units, "regression").values(X * units)
    np.testing.assert_allclose(first, second, rtol=1e-8, atol=1e-10)
