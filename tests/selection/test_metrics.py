"""Metrics against scikit-learn's, and where they are not defined."""

from __future__ import annotations

import numpy as np
import pytest
from catboost import CatBoostClassifier
from sklearn import metrics
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC

from roshap.selection.metrics import measure

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
THREE = np.digitize(X[:, 0] + 0.3 * RNG.normal(size=90), [-0.5, 0.5])
TWO = (THREE > 0).astype(int)


def test_binary() -> None:
    model = LogisticRegression().fit(X, TWO)
    found = measure(model, X, TWO, "binary")
    positive = model.predict_proba(X)[:, 1]
    assert found["accuracy"] == metrics.accuracy_score(TWO, model.predict(X))
    assert found["f1_macro"] == metrics.f1_score(TWO, model.predict(X), average="macro")
    assert found["average_precision"] == metrics.average_precision_score(TWO, positive)
    assert found["roc_auc"] == metrics.roc_auc_score(TWO, positive)


def test_three_classes_with_catboost_whose_predictions_are_a_column() -> None:
    model = CatBoostClassifier(iterations=20, verbose=0, allow_writing_files=False, thread_count=1)
    model.fit(X, THREE)
    assert model.predict(X).shape == (90, 1)
    found = measure(model, X, THREE, "multiclass")
    assert found["accuracy"] == np.mean(model.predict(X).ravel() == THREE)
    assert found["roc_auc"] == pytest.approx(
        metrics.roc_auc_score(THREE, model.predict_proba(X), multi_class="ovr")
    )


def test_without_probabilities_the_decision_function_ranks() -> None:
    model = LinearSVC().fit(X, TWO)
    expected = metrics.roc_auc_score(TWO, model.decision_function(X))
    assert measure(model, X, TWO, "binary")["roc_auc"] == expected


def test_test_rows_of_one_class_have_no_curve() -> None:
    model = LogisticRegression().fit(X, TWO)
    rows = TWO == 1
    found = measure(model, X[rows], TWO[rows], "binary")
    assert np.isnan(found["roc_auc"])
    assert np.isnan(found["average_precision"])
    assert found["accuracy"] > 0


def test_regression() -> None:
    y = 5 + X[:, 0] + 0.1 * RNG.normal(size=90)
    model = LinearRegression().fit(X, y)
    found = measure(model, X, y, "regression")
    assert found["rmse"] == pytest.approx(metrics.root_mean_squared_error(y, model.predict(X)))
    assert found["mae"] == pytest.approx(metrics.mean_absolute_error(y, model.predict(X)))
    expected = metrics.mean_absolute_percentage_error(y, model.predict(X))
    assert found["mape"] == pytest.approx(expected)
    assert np.isnan(measure(model, X, np.r_[0.0, y[1:]], "regression")["mape"])
