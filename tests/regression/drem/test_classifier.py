"""DREM on linearised batches is logistic regression."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from roshap.errors import ModelError
from roshap.regression.drem import DREMClassifier
from roshap.regression.logistic import log_loss


def test_one_batch_is_penalised_logistic_regression() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    Z = StandardScaler().fit_transform(X)
    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=2000).fit(Z, y)
    ours = DREMClassifier(batch_rows=len(X), epochs=30).fit(X, y)
    # a small penalty on our intercept: 1e-6 of the slopes'
    np.testing.assert_allclose(ours.w_[1:, 0], theirs.coef_[0], atol=1e-4)
    np.testing.assert_allclose(ours.w_[0, 0], theirs.intercept_[0], atol=1e-4)


def test_batches_come_near_the_penalised_optimum() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    Z = StandardScaler().fit_transform(X)
    theirs = LogisticRegression(C=1.0, max_iter=2000).fit(Z, y)
    ours = DREMClassifier(random_state=0).fit(X, y)
    odds = ours.decision_function(X)[:, None]
    best = log_loss(theirs.decision_function(Z)[:, None], y[:, None].astype(float), None)
    assert log_loss(odds, y[:, None].astype(float), None) < 1.6 * best
    assert ours.score(X, y) > 0.97


def test_the_loss_never_rises_and_probabilities_sum_to_one() -> None:
    X, y = load_iris(return_X_y=True)
    model = DREMClassifier(random_state=0).fit(X, y)
    assert model.score(X, y) > 0.88
    assert model.history_["loss"][-1] < 0.3
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_separable_classes_have_a_finite_answer() -> None:
    X, y = load_iris(return_X_y=True)
    model = DREMClassifier(random_state=0).fit(X, y == 0)
    assert model.score(X, y == 0) == 1
    assert np.abs(model.w_).max() < 10


@pytest.mark.parametrize(
    ("options", "match"), [({"ridge": 0}, "ridge=0"), ({"batch_rows": 999}, "1 to 150")]
)
def test_what_cannot_be_done(options: dict[str, object], match: str) -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ModelError, match=match):
        DREMClassifier(**options).fit(X, y)


def test_one_class() -> None:
    with pytest.raises(ValueError, match="one class only"):
        DREMClassifier().fit(np.random.default_rng(0).normal(size=(20, 2)), np.ones(20, dtype=int))
