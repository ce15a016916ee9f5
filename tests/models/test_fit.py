"""Fitting: clones, weights through pipelines, categories, errors in one line."""

import numpy as np
import pandas as pd
import pytest
from catboost import CatBoostClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier

from roshap.errors import ModelError
from roshap.models import fit


@pytest.fixture
def data():
    rng = np.random.default_rng(1)
    X = rng.normal(3.0, 2.0, size=(60, 3))
    return X, X[:, 0] - 2 * X[:, 1] + rng.normal(size=60)


def test_the_estimator_passed_stays_unfitted(data):
    model = Ridge()
    fitted = fit(model, *data)
    assert not hasattr(model, "coef_")
    assert fitted.coef_.shape == (3,)


def test_a_weight_of_two_is_a_row_twice_in_every_step(data):
    X, y = data
    weight = np.random.default_rng(0).integers(1, 4, size=len(y))
    model = make_pipeline("passthrough", StandardScaler(), Ridge())
    weighted = fit(model, X, y, weight.astype(float))
    repeated = fit(model, np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-10)
    np.testing.assert_allclose(weighted[1].mean_, repeated[1].mean_, rtol=1e-12)


def test_a_model_without_weights_is_named(data):
    X, y = data
    with pytest.raises(ModelError, match="KNeighborsClassifier takes no sample weights"):
        fit(make_pipeline(StandardScaler(), KNeighborsClassifier()), X, y > 0, np.ones(60))


def test_a_library_s_refusal_is_one_line(data):
    X, _ = data
    with pytest.raises(ModelError, match="LogisticRegression could not be fitted to 60 rows") as e:
        fit(LogisticRegression(), X, np.zeros(60))
    assert "\n" not in str(e.value)


def test_categories_reach_xgboost_and_catboost(data):
    X, y = data
    label = (y > 0).astype(int)
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    table["kind"] = pd.Categorical(np.where(label, "yes", "no"))  # gives the target away
    for model in (
        XGBClassifier(n_estimators=3, n_jobs=1),
        CatBoostClassifier(iterations=3, thread_count=1, verbose=0, allow_writing_files=False),
    ):
        fitted = fit(model, table, label)
        assert np.mean(fitted.predict(table) == label) == 1.0
        assert np.argmax(fitted.feature_importances_) == 3
    table.loc[2, "kind"] = None
    with pytest.raises(ModelError, match="'kind' has some"):
        fit(CatBoostClassifier(), table, label)
