"""Permutation sampling: exact where theory says so, seeded by its generator only."""

import itertools
import math

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Ridge
from sklearn.svm import SVR

from roshap.attribution.explainers import make_explainer
from roshap.attribution.explainers.permutation import BACKGROUND_ROWS, PERMUTATIONS


class Formula(RegressorMixin, BaseEstimator):
    """A fixed function of the features."""

    def __init__(self, function):
        self.function = function

    def predict(self, X):
        return self.function(X)


def pairs(X):
    return X[:, 0] * X[:, 1] - 2 * X[:, 2] * X[:, 3] + X[:, 0]


def triple(X):
    return X[:, 0] * X[:, 1] * X[:, 2] + X[:, 3] ** 2


@pytest.fixture
def X():  # noqa: N802 # the field's own name
    return np.random.default_rng(4).normal(size=(30, 4))


def exact(function, x, background):
    """Shapley values by their definition, over all subsets."""
    p = len(x)
    phi = np.zeros(p)

    def value(subset):
        mixed = background.copy()
        mixed[:, list(subset)] = x[list(subset)]
        return function(mixed).mean()

    for j in range(p):
        others = [i for i in range(p) if i != j]
        for size in range(p):
            weight = math.factorial(size) * math.factorial(p - size - 1) / math.factorial(p)
            for subset in itertools.combinations(others, size):
                phi[j] += weight * (value((*subset, j)) - value(subset))
    return phi


def test_interactions_of_two_features_are_exact(X):
    phi = make_explainer(Formula(pairs), X, "regression").values(X[:5])[:, :, 0]
    for x, row in zip(X, phi, strict=False):
        np.testing.assert_allclose(row, exact(pairs, x, X), atol=1e-12)


def test_higher_interactions_are_estimated_without_bias(X):
    draws = [
        make_explainer(Formula(triple), X, "regression", rng=np.random.default_rng(seed)).values(
            X[:1]
        )[0, :, 0]
        for seed in range(60)
    ]
    error = np.mean(draws, axis=0) - exact(triple, X[0], X)
    spread = np.std(draws, axis=0, ddof=1) / np.sqrt(len(draws))
    assert np.ptp([d[0] for d in draws]) > 0
    assert np.all(np.abs(error) <= 4.5 * spread + 1e-12)


def test_rows_do_not_depend_on_their_neighbours(X):
    explainer = make_explainer(Formula(triple), X, "regression")
    assert np.array_equal(explainer.values(X[3:4]), explainer.values(X[:9])[3:4])


def test_only_the_passed_generator_is_used(X):
    def values(seed):
        rng = np.random.default_rng(seed)
        return make_explainer(Formula(triple), X, "regression", rng=rng).values(X[:3])

    state = np.random.get_state()[1].copy()  # noqa: NPY002 # the point: it must not move
    assert np.array_equal(values(1), values(1))
    assert not np.array_equal(values(1), values(2))
    assert np.array_equal(state, np.random.get_state()[1])  # noqa: NPY002


def test_a_large_offset_hides_no_feature(X):
    """shap takes values within 1e-5 of the background's (relative) for unchanged."""
    far = X + 1e7
    phi = make_explainer(Formula(lambda Z: Z[:, 0] - 1e7), far, "regression").values(far)
    np.testing.assert_allclose(phi[:, 0, 0], X[:, 0] - X[:, 0].mean(), atol=1e-7)


def test_a_constant_feature_has_exactly_zero(X):
    X[:, 2] = 3.0
    phi = make_explainer(SVR().fit(X, X[:, 0]), X, "regression").values(X)
    assert np.all(phi[:, 2] == 0.0)
    assert np.all(phi[:, 0] != 0.0)


def test_its_cost_is_told():
    X = np.random.default_rng(0).normal(size=(200, 3))
    explainer = make_explainer(Ridge().fit(X, X[:, 0]), X, "regression", method="permutation")
    assert explainer.evaluations_per_row == 2 * 3 * PERMUTATIONS * BACKGROUND_ROWS
