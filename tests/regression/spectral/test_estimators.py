"""The estimators' contract, their edge cases and Nystroem features."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from roshap.regression.spectral import (
    FILTERS,
    ParameterWarning,
    SpectralClassifier,
    SpectralError,
    SpectralRegressor,
)

pytestmark = pytest.mark.filterwarnings(
    "ignore::roshap.regression.spectral.errors.ParameterWarning"
)


@parametrize_with_checks([SpectralRegressor(), SpectralClassifier()])
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)


def sample(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.sin(X[:, 0]) + X[:, 1] ** 2 / 2 + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize("rule", ["gcv", "loo", "kfold"])
def test_every_filter_and_rule_learns(filter: str, rule: str) -> None:
    X, y = sample(120)
    new, truth = sample(200, seed=1)
    model = SpectralRegressor(filter, rule=rule, gamma=0.3, random_state=0).fit(X, y)
    assert model.score(new, truth) > 0.94
    assert model.choice_.rule == rule


def test_the_discrepancy_principle_knows_the_noise() -> None:
    X, y = sample(120)
    model = SpectralRegressor(rule="discrepancy", noise=0.1, gamma=0.3).fit(X, y)
    residual = np.sqrt(np.mean((y - model.predict(X)) ** 2))
    assert 0.05 < residual <= 0.1


@pytest.mark.parametrize("data", [load_breast_cancer, load_iris])
@pytest.mark.parametrize("filter", FILTERS)
def test_classification(data: Any, filter: str) -> None:
    X, y = data(return_X_y=True)
    parts = train_test_split(StandardScaler().fit_transform(X), y, random_state=0, stratify=y)
    X_train, X_test, y_train, y_test = parts
    model = SpectralClassifier(filter, gamma=0.02).fit(X_train, y_train)
    assert model.score(X_test, y_test) > 0.92
    proba = model.predict_proba(X_test)
    assert np.allclose(proba.sum(axis=1), 1)
    assert np.array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X_test))
    # calibrated: better than knowing the frequencies, and than no scale
    base = np.tile(np.bincount(y_train) / len(y_train), (len(y_test), 1))
    assert log_loss(y_test, proba) < 0.5 * log_loss(y_test, base)


def test_leave_one_out_error_counts_misses() -> None:
    X, y = sample(40)
    labels = np.where(y > np.median(y), "high", "low")
    model = SpectralClassifier(gamma=0.3, lam=1e-3).fit(X, labels)
    missed = 0
    for i in range(40):
        keep = np.arange(40) != i
        part = SpectralClassifier(gamma=0.3, lam=1e-3 * 40 / 39).fit(X[keep], labels[keep])
        missed += part.predict(X[[i]])[0] != labels[i]
    assert model.path_.loo_error[0] == pytest.approx(missed / 40)


@pytest.mark.parametrize(
    "kernel",
    ["linear", "rbf", "laplacian", "polynomial", RBF(1.3), lambda a, b: float(a @ b) + 1],
)
def test_kernels(kernel: Any) -> None:
    X, y = sample(30)
    model = SpectralRegressor(kernel=kernel, lam=0.1, degree=2).fit(X, y)
    assert np.isfinite(model.predict(X)).all()


def test_precomputed_kernel() -> None:
    X, y = sample(40)
    w = np.r_[np.zeros(5), np.ones(35)]
    new = sample(10, seed=2)[0]
    for rule in ("gcv", "kfold"):
        given = SpectralRegressor(kernel="precomputed", rule=rule, random_state=0)
        given.fit(rbf_kernel(X, gamma=0.3), y, w)
        made = SpectralRegressor(gamma=0.3, rule=rule, random_state=0).fit(X, y, w)
        assert given.value_ == pytest.approx(made.value_)
        assert np.allclose(given.predict(rbf_kernel(new, X, gamma=0.3)), made.predict(new))


def test_several_targets_share_one_parameter() -> None:
    X, y = sample()
    both = SpectralRegressor(gamma=0.3, lam=0.01).fit(X, np.c_[y, -2 * y])
    one = SpectralRegressor(gamma=0.3, lam=0.01).fit(X, y)
    assert np.allclose(both.predict(X), np.c_[one.predict(X), -2 * one.predict(X)])


@pytest.mark.parametrize("filter", FILTERS)
def test_equal_targets_give_that_constant(filter: str) -> None:
    X, _ = sample(20)
    model = SpectralRegressor(filter).fit(X, np.full(20, 3.7))
    assert np.allclose(model.predict(X + 5), 3.7, atol=1e-12)


@pytest.mark.parametrize("filter", FILTERS)
def test_one_row_gives_its_target(filter: str) -> None:
    model = SpectralRegressor(filter).fit([[1.0, 2.0]], [4.5])
    assert model.predict([[0.0, 9.0]])[0] == 4.5


@pytest.mark.parametrize("filter", ["tikhonov", "showalter", "iterated_tikhonov"])
def test_limits_of_the_parameter(filter: str) -> None:
    X, y = sample(25)
    smooth = SpectralRegressor(filter, gamma=0.3, lam=1e12).fit(X, y)
    assert np.allclose(smooth.predict(X), y.mean(), atol=1e-6)
    rough = SpectralRegressor(filter, kernel="laplacian", gamma=1.0, lam=0.0).fit(X, y)
    assert np.allclose(rough.predict(X), y, atol=1e-8)


def kernel_with(value: float) -> np.ndarray:
    K = np.eye(4)
    K[0, 1] = value
    return K


@pytest.mark.parametrize(
    ("options", "X", "words"),
    [
        ({"lam": -0.1}, None, "lam=-0.1: must be finite and not negative"),
        ({"filter": "landweber", "lam": 0.1}, None, "'landweber' has no parameter 'lam'"),
        ({"kernel": "precomputed"}, kernel_with(0.5), "not symmetric: K - K' reaches 0.5"),
        ({"kernel": "precomputed"}, np.ones((4, 3)), "must be a square matrix"),
        ({"kernel": "precomputed"}, kernel_with(np.nan), "NaN"),
        ({"kernel": "precomputed"}, 1 - 2 * np.eye(4), "not positive semi-definite"),
        ({"kernel": "precomputed", "method": "nystroem"}, np.eye(4), "decomposed exactly"),
        ({"kernel": "rfb"}, None, "unknown kernel 'rfb'"),
        ({"kernel": lambda a, b: np.nan}, None, "the kernel gives NaN"),
        ({"rule": "loo_error"}, None, "loo_error counts misclassified rows"),
        ({"rule": "aic"}, None, "unknown rule 'aic'"),
        ({"rule": "discrepancy"}, None, "needs the level of the noise"),
        ({"rule": "kfold", "folds": 9}, None, "folds=9: must be 2 to 4"),
        ({"method": "fast"}, None, "method='fast'"),
        ({"method": "nystroem", "landmarks": 0}, None, "landmarks=0: must be at least 1"),
    ],
)
def test_one_clear_error(options: dict[str, Any], X: Any, words: str) -> None:
    X = np.arange(8.0).reshape(4, 2) if X is None else X
    with pytest.raises(ValueError, match=words):
        SpectralRegressor(**options).fit(X, [1.0, 2.0, 3.0, 5.0])


def test_weights_that_cannot_be_used() -> None:
    X, y = sample(4)
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        SpectralRegressor().fit(X, y, [-1, 1, 1, 1])
    with pytest.raises(ValueError, match="zero"):
        SpectralRegressor().fit(X, y, np.zeros(4))
    with pytest.raises(SpectralError, match="only one class, 'a'"):
        SpectralClassifier().fit(X, ["a"] * 4)


def test_a_warning_where_the_optimum_sits_at_an_end() -> None:
    X, y = sample()
    with pytest.warns(ParameterWarning, match="gcv for tikhonov: the optimum sits at an end"):
        SpectralRegressor(gamma=0.3, levels=[1.0, 0.5, 0.1]).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SpectralRegressor(gamma=0.3).fit(X, y)


# -- Nystroem features


@pytest.mark.parametrize("intercept", [False, True])
def test_all_rows_as_landmarks_give_the_exact_path(intercept: bool) -> None:
    X, y = sample(50)
    w = np.random.default_rng(0).uniform(0.3, 3, size=50)
    options: Any = {
        "kernel": "laplacian",
        "gamma": 1.0,
        "levels": [1.0, 1e-2, 1e-4],
        "rule": "loo",
        "fit_intercept": intercept,
    }
    exact = SpectralRegressor(**options).fit(X, y, w)
    fast = SpectralRegressor(method="nystroem", **options).fit(X, y, w)
    new = sample(20, seed=3)[0]
    assert fast.method_ == "nystroem"
    assert np.allclose(fast.predict(new), exact.predict(new), atol=1e-8)
    for curve in ("residual_norm", "solution_norm", "dof", "gcv", "loo"):
        assert np.allclose(getattr(fast.path_, curve), getattr(exact.path_, curve), rtol=1e-7)


def test_leave_one_out_of_few_landmarks_is_refitting_on_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # several blocks of rows
    monkeypatch.setattr("roshap.regression.spectral.nystroem._CHUNK_BYTES", 8 * 12 * 7)
    from roshap.regression.spectral.nystroem import NystroemProblem

    X, y = sample(40)

    def gram(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return rbf_kernel(a, b, gamma=0.5)

    def made(rows: np.ndarray) -> NystroemProblem:
        ones = np.ones(len(rows))
        return NystroemProblem(gram, X[rows], y[rows, None], ones, X[:12], centre=True)

    shift = 0.05
    whole = made(np.arange(40))
    s = whole.spectrum.s
    found = whole.leave_one_out((shift / (s + shift))[None, :])[:, 0, 0]
    for i in (0, 7, 39):
        part = made(np.delete(np.arange(40), i))
        c, b = part.dual(1 / (part.spectrum.s + shift))
        assert found[i] == pytest.approx(y[i] - (gram(X[[i]], X[:12]) @ c + b)[0, 0], abs=1e-8)


def test_many_rows_take_nystroem_features_and_say_so(caplog: pytest.LogCaptureFixture) -> None:
    X, y = sample(300)
    with caplog.at_level(logging.WARNING):
        model = SpectralRegressor(gamma=0.3, exact_up_to=200, landmarks=50, random_state=0)
        model.fit(X, y)
    assert model.method_ == "nystroem"
    assert "300 rows are more than exact_up_to=200" in caplog.text
    new, truth = sample(300, seed=4)
    assert model.score(new, truth) > 0.95
    again = SpectralRegressor(
        gamma=0.3, exact_up_to=200, landmarks=50, random_state=0, rule="loo"
    ).fit(X, y)
    assert again.path_.loo is not None
    labels = SpectralClassifier(gamma=0.3, method="nystroem", landmarks=50, random_state=0)
    assert labels.fit(X, y > 0.5).score(new, truth > 0.5) > 0.9
