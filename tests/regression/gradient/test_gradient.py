"""The gradient references against torch's optimisers and known solutions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_regression
from sklearn.linear_model import LinearRegression

from roshap.errors import ModelError
from roshap.regression.divergence import DivergenceError
from roshap.regression.drem import DREMRegressor, HybridRegressor
from roshap.regression.gradient import (
    Adam,
    AdamClassifierReference,
    AdamRegressorReference,
    Sgd,
    SGDClassifierReference,
    SGDRegressorReference,
)
from roshap.regression.iterative import gradient


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_rules_equal_torch(name: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    rng = np.random.default_rng(0)
    A, T = rng.normal(size=(40, 3)), rng.normal(size=(40, 2))
    w = rng.normal(size=(3, 2))
    theirs = torch.tensor(w, requires_grad=True)
    optimiser = getattr(torch.optim, name)([theirs], lr=0.05)
    rule = Sgd(0.05) if name == "SGD" else Adam(0.05)
    for at in range(0, 40, 8):
        a, t = A[at : at + 8], T[at : at + 8]
        w = rule.step(w, gradient(a, t, w))
        optimiser.zero_grad()
        loss = 0.5 * ((torch.tensor(a) @ theirs - torch.tensor(t)) ** 2).sum() / len(a)
        loss.backward()
        optimiser.step()
    np.testing.assert_allclose(w, theirs.detach().numpy(), rtol=1e-10)


def test_adams_first_steps_by_hand() -> None:
    rule = Adam(0.1)
    first = rule.step(np.array([1.0]), np.array([4.0]))
    assert first[0] == pytest.approx(0.9)
    second = rule.step(first, np.array([2.0]))
    mean = (0.9 * 0.4 + 0.1 * 2) / (1 - 0.9**2)
    square = (0.999 * 0.016 + 0.001 * 4) / (1 - 0.999**2)
    assert second[0] == pytest.approx(0.9 - 0.1 * mean / np.sqrt(square))


@pytest.mark.parametrize("kind", [SGDRegressorReference, AdamRegressorReference, HybridRegressor])
def test_they_find_least_squares_without_noise(kind: type) -> None:
    X, y = make_regression(400, 4, noise=0, random_state=0)
    model = kind(epochs=60, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=0.1 * y.std())
    np.testing.assert_allclose(model.coef_, LinearRegression().fit(X, y).coef_, rtol=0.1, atol=2)


def test_a_step_that_is_too_large_is_said() -> None:
    X, y = make_regression(400, 4, random_state=0)
    with pytest.raises(DivergenceError, match="learning_rate=50"):
        SGDRegressorReference(learning_rate=50, epochs=100).fit(X, y)
    with pytest.raises(ModelError, match="learning_rate=0"):
        AdamRegressorReference(learning_rate=0).fit(X, y)


def test_the_hybrid_switches_when_the_first_part_stops_improving() -> None:
    X, y = make_regression(600, 5, noise=10, random_state=0)
    model = HybridRegressor(epochs=20, random_state=0).fit(X, y, validation=(X, y))
    assert 1 <= model.switched_ < 19
    assert len(model.history_["epoch"]) == 20
    assert model.history_["epoch"] == list(range(1, 21))
    ols = np.mean((LinearRegression().fit(X, y).predict(X) - y) ** 2)
    assert model.history_["validation_loss"][-1] < 1.5 * ols


def test_the_hybrid_survives_a_first_part_that_diverges() -> None:
    X, y = make_regression(600, 14, noise=10, random_state=0)
    first = DREMRegressor("standard", alpha=1.0)
    model = HybridRegressor(first, epochs=60, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("kind", [SGDClassifierReference, AdamClassifierReference])
def test_classifiers_learn_iris(kind: type) -> None:
    X, y = load_iris(return_X_y=True)
    model = kind(epochs=50, random_state=0).fit(X, y, validation=(X, y))
    assert model.score(X, y) > 0.85
    assert model.history_["loss"][-1] < model.history_["loss"][0]
