"""What each filter is known to be equal to, at 1e-10 or better."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import KernelPCA
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge, RidgeCV
from sklearn.metrics.pairwise import rbf_kernel

from roshap.regression.spectral import SpectralRegressor

GAMMA = 0.3
n = 40


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=n)
    return X, y, rng.normal(size=(15, 3))


def fitted(data: tuple[np.ndarray, ...], filter: str = "tikhonov", **options: Any) -> Any:
    return SpectralRegressor(filter, gamma=GAMMA, **options).fit(data[0], data[1])


def test_tikhonov_is_kernel_ridge_with_alpha_n_lam(data: tuple[np.ndarray, ...]) -> None:
    X, y, new = data
    for lam in (1e-4, 1e-2, 1.0):
        ridge = KernelRidge(alpha=n * lam, kernel="rbf", gamma=GAMMA).fit(X, y)
        model = fitted(data, lam=lam, fit_intercept=False)
        assert np.allclose(model.predict(new), ridge.predict(new), rtol=0, atol=1e-11)
        assert np.allclose(model.dual_coef_[:, 0], ridge.dual_coef_, rtol=1e-9, atol=1e-11)


def test_weighted_tikhonov_is_weighted_kernel_ridge(data: tuple[np.ndarray, ...]) -> None:
    X, y, new = data
    w = np.random.default_rng(1).uniform(0.2, 3, size=n)
    ridge = KernelRidge(alpha=w.sum() * 0.01, kernel="rbf", gamma=GAMMA).fit(X, y, w)
    model = SpectralRegressor(gamma=GAMMA, lam=0.01, fit_intercept=False).fit(X, y, w)
    assert np.allclose(model.predict(new), ridge.predict(new), rtol=0, atol=1e-11)


def test_linear_kernel_with_intercept_is_weighted_ridge(data: tuple[np.ndarray, ...]) -> None:
    X, y, new = data
    w = np.random.default_rng(1).uniform(0.2, 3, size=n)
    ridge = Ridge(alpha=w.sum() * 0.05).fit(X, y, w)
    model = SpectralRegressor(kernel="linear", lam=0.05).fit(X, y, w)
    assert np.allclose(model.predict(new), ridge.predict(new), rtol=0, atol=1e-11)
    assert model.intercept_[0] == pytest.approx(ridge.intercept_, abs=1e-11)


def test_landweber_is_gradient_descent_on_the_dual(data: tuple[np.ndarray, ...]) -> None:
    X, y, new = data
    K = rbf_kernel(X, gamma=GAMMA)
    eta = 1 / np.linalg.eigvalsh(K)[-1]
    c = np.zeros(n)
    for _ in range(200):
        c += eta * (y - K @ c)
    model = fitted(data, "landweber", steps=200, fit_intercept=False)
    assert np.allclose(model.predict(new), rbf_kernel(new, X, gamma=GAMMA) @ c, atol=1e-10, rtol=0)


def test_landweber_is_gradient_descent_on_the_weights(data: tuple[np.ndarray, ...]) -> None:
    X, y, new = data
    eta = 1.7 / np.linalg.norm(X, 2) ** 2  # also beyond one over the largest eigenvalue
    weights = np.zeros(3)
    for _ in range(30):
        weights += eta * X.T @ (y - X @ weights)
    from roshap.regression.spectral import Landweber

    model = SpectralRegressor(Landweber(eta), kernel="linear", steps=30, fit_intercept=False)
    assert np.allclose(model.fit(X, y).predict(new), new @ weights, atol=1e-11, rtol=0)


def test_truncation_is_least_squares_on_uncentred_kernel_components(
    data: tuple[np.ndarray, ...],
) -> None:
    X, y, new = data
    values, vectors = np.linalg.eigh(rbf_kernel(X, gamma=GAMMA))
    top = vectors[:, -6:] / np.sqrt(values[-6:])
    components = rbf_kernel(X, gamma=GAMMA) @ top
    weights = np.linalg.lstsq(components, y, rcond=None)[0]
    model = fitted(data, "tsvd", components=6, fit_intercept=False)
    expected = rbf_kernel(new, X, gamma=GAMMA) @ top @ weights
    assert np.allclose(model.predict(new), expected, atol=1e-10, rtol=0)


def test_centred_truncation_is_kernel_pca_and_least_squares(data: tuple[np.ndarray, ...]) -> None:
    X, y, new = data
    pca = KernelPCA(n_components=6, kernel="rbf", gamma=GAMMA, eigen_solver="dense").fit(X)
    ols = LinearRegression().fit(pca.transform(X), y)
    model = fitted(data, "tsvd", components=6)
    assert np.allclose(model.predict(new), ols.predict(pca.transform(new)), atol=1e-10, rtol=0)


def test_a_threshold_is_a_number_of_components(data: tuple[np.ndarray, ...]) -> None:
    s = np.sort(fitted(data, "tsvd", components=1).spectrum_.s)[::-1]
    model = fitted(data, "tsvd", lam=float(s[4] / n))
    assert model.value_ == 5


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("lam", [1e-9, 1e-3, 0.3])
def test_leave_one_out_is_refitting(
    data: tuple[np.ndarray, ...], intercept: bool, lam: float
) -> None:
    X, y, _ = data
    options: Any = {"gamma": GAMMA, "fit_intercept": intercept}
    model = SpectralRegressor(lam=lam, **options).fit(X, y)
    errors = []
    for i in range(n):
        keep = np.arange(n) != i
        # the shift n lam stays what it was
        part = SpectralRegressor(lam=lam * n / (n - 1), **options).fit(X[keep], y[keep])
        errors.append(y[i] - part.predict(X[[i]])[0])
    assert model.path_.loo_exact
    assert model.path_.loo[0] == pytest.approx(np.mean(np.square(errors)), rel=1e-10)


def test_weighted_leave_one_out_is_refitting_without_one_unit(
    data: tuple[np.ndarray, ...],
) -> None:
    X, y, _ = data
    w = np.random.default_rng(2).uniform(0.3, 3, size=n)
    lam = 0.01
    model = SpectralRegressor(gamma=GAMMA, lam=lam).fit(X, y, w)
    errors = []
    for i in range(n):
        less = w.copy()
        less[i] -= min(1.0, w[i])
        part = SpectralRegressor(gamma=GAMMA, lam=lam * w.sum() / less.sum()).fit(X, y, less)
        errors.append(y[i] - part.predict(X[[i]])[0])
    expected = np.average(np.square(errors), weights=w)
    assert model.path_.loo[0] == pytest.approx(expected, rel=1e-10)


def test_linear_leave_one_out_is_that_of_ridge_cv(data: tuple[np.ndarray, ...]) -> None:
    X, y, new = data
    alphas = np.geomspace(1e-3, 1e3, 13)
    ridge = RidgeCV(alphas=alphas, store_cv_results=True).fit(X, y)
    model = SpectralRegressor(kernel="linear", rule="loo", levels=alphas / n).fit(X, y)
    theirs = ridge.cv_results_.mean(axis=0)[::-1]
    assert np.allclose(model.path_.loo, theirs, rtol=1e-10, atol=0)
    assert model.value_ * n == pytest.approx(ridge.alpha_)
    assert np.allclose(model.predict(new), ridge.predict(new), atol=1e-10, rtol=0)


def test_the_path_is_the_fits_one_by_one(data: tuple[np.ndarray, ...]) -> None:
    for filter in ("tikhonov", "iterated_tikhonov", "tsvd", "landweber", "showalter", "nu_method"):
        path = fitted(data, filter, levels=7, rule="loo").path_
        for place in (1, 4, len(path) - 1):
            level = path.levels[place]
            value = level if path.parameter == "lam" else int(level)
            alone = fitted(data, filter, **{path.parameter: value})
            scale = np.abs(alone.dual_coef_).max()
            assert np.allclose(
                path.coefficients[place], alone.dual_coef_, atol=1e-10 * scale, rtol=0
            )
            assert np.allclose(path.intercepts[place], alone.intercept_, atol=1e-9, rtol=0)
            assert path.dof[place] == pytest.approx(alone.dof_)
