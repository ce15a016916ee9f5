"""Families by type names, and what a model can take."""

import subprocess
import sys

import pytest
from catboost import CatBoostRegressor
from lightgbm import LGBMClassifier
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    LogisticRegression,
    PoissonRegressor,
    RANSACRegressor,
    Ridge,
    SGDRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBRFClassifier

from roshap.models import columnwise_steps, family, handles_categorical, handles_nan


class OwnBooster(LGBMClassifier):
    """A user's subclass."""


@pytest.mark.parametrize(
    "model, kind",
    [
        (XGBRFClassifier(), "xgboost"),
        (OwnBooster(), "lightgbm"),
        (CatBoostRegressor(), "catboost"),
        (DecisionTreeClassifier(), "tree"),
        (ExtraTreesRegressor(), "tree"),
        (GradientBoostingClassifier(), "tree"),
        (HistGradientBoostingClassifier(), "tree"),
        (LogisticRegression(), "linear"),
        (LinearSVC(), "linear"),
        (SGDRegressor(), "linear"),
        (PoissonRegressor(), "linear"),
        (make_pipeline(StandardScaler(), Ridge()), "linear"),
        (make_pipeline(StandardScaler(), make_pipeline(PCA(), OwnBooster())), "lightgbm"),
        (SVC(), "other"),
        (RANSACRegressor(), "other"),
        (AdaBoostClassifier(), "other"),
        (TransformedTargetRegressor(Ridge()), "other"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_family(model, kind):
    assert family(model) == kind


def test_columnwise_steps():
    ridge = Ridge()
    assert columnwise_steps(ridge) is None
    assert columnwise_steps(make_pipeline(ridge)) is None
    assert columnwise_steps(make_pipeline(StandardScaler(), PCA(), ridge)) is None
    assert len(columnwise_steps(make_pipeline(SimpleImputer(), StandardScaler(), ridge))) == 2
    assert len(columnwise_steps(make_pipeline("passthrough", ridge))) == 1


def test_missing_values():
    assert all(handles_nan(m) for m in (OwnBooster(), CatBoostRegressor(), XGBRFClassifier()))
    assert handles_nan(HistGradientBoostingClassifier())
    assert not handles_nan(GradientBoostingClassifier())
    assert not handles_nan(make_pipeline(StandardScaler(), Ridge()))
    assert handles_nan(make_pipeline(SimpleImputer(), Ridge()))
    assert handles_nan(make_pipeline("passthrough", StandardScaler(), SimpleImputer(), Ridge()))


def test_categories():
    assert all(handles_categorical(m) for m in (OwnBooster(), CatBoostRegressor()))
    assert handles_categorical(HistGradientBoostingClassifier())
    assert not handles_categorical(HistGradientBoostingClassifier(categorical_features=None))
    assert not handles_categorical(Ridge())
    assert not handles_categorical(make_pipeline(StandardScaler(), OwnBooster()))
    assert handles_categorical(make_pipeline(OrdinalEncoder(), Ridge()))


def test_importing_the_models_package_is_light():
    code = (
        "import sys, roshap.models.spec; "
        "print([m for m in ('sklearn','pandas','xgboost','lightgbm','catboost','shap') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
