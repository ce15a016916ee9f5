"""Formulas of the filters, and that they keep their digits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roshap.regression.spectral import (
    FILTERS,
    Filter,
    IteratedTikhonov,
    Landweber,
    NuMethod,
    ShiftFilter,
    SpectralError,
    SpectralRegressor,
    Tikhonov,
    make_filter,
    problem,
    solve,
)

s = np.r_[1.0, 0.5, 0.1, 1e-3, 1e-8, 1e-15, 0.0]
LEVELS = {"lam": 1e-3, "steps": 50.0, "components": 3.0}


@pytest.mark.parametrize("name", FILTERS)
def test_gain_and_residual_belong_together(name: str) -> None:
    method = make_filter(name)
    gain, residual = (f(s, LEVELS[method.parameter]) for f in (method.gain, method.residual))
    assert np.isfinite(gain).all()
    assert np.allclose(s * gain + residual, 1.0, atol=1e-13)
    assert residual[-1] == 1.0  # nothing is known of what the operator removes


@pytest.mark.parametrize("name", FILTERS)
def test_levels_run_from_smooth_to_rough_and_end_near_the_inverse(name: str) -> None:
    method = make_filter(name)
    values = np.geomspace(1, 1e-3, 30)
    levels = method.grid(values, 20)
    factors = np.array([values * gain for gain, _ in method.sweep(values, levels)])
    # the nu-method overshoots a little on its way
    slack = 0.5 if name == "nu_method" else 1e-12
    assert np.all(np.diff(factors.sum(axis=1)) > -slack)
    assert factors[0].sum() < 8
    assert factors[-1].sum() > 29
    assert np.array_equal(method.check(values, levels), levels)


@pytest.mark.parametrize("name", ["tikhonov", "iterated_tikhonov", "showalter", "landweber"])
def test_small_eigenvalues_keep_their_digits(name: str) -> None:
    method = make_filter(name)
    tiny = np.r_[1.0, 1e-14]
    gain = method.gain(tiny, LEVELS[method.parameter])[1]
    limit = method.gain(np.r_[1.0, 0.0], LEVELS[method.parameter])[1]
    assert gain == pytest.approx(limit, rel=1e-10)


@pytest.mark.parametrize("name", ["tikhonov", "iterated_tikhonov", "showalter"])
def test_no_shift_is_the_pseudo_inverse(name: str) -> None:
    values = np.r_[2.0, 0.5, 0.0]
    assert np.array_equal(make_filter(name).gain(values, 0.0), [0.5, 2.0, 0.0])
    assert np.array_equal(make_filter(name).residual(values, 0.0), [0.0, 0.0, 1.0])


def test_iterated_tikhonov_of_order_one_is_tikhonov() -> None:
    one, plain = IteratedTikhonov(order=1), Tikhonov()
    assert np.allclose(one.gain(s, 1e-2), plain.gain(s, 1e-2), rtol=1e-13)


def test_landweber_beyond_one_over_the_largest_eigenvalue() -> None:
    values = np.r_[1.0, 0.6, 0.1]
    method = Landweber(eta=1.9)
    for t in (1.0, 2.0, 7.0):
        expected = (1 - (1 - 1.9 * values) ** t) / values
        assert np.allclose(method.gain(values, t), expected, rtol=1e-13)


@given(nu=st.floats(0.5, 4.0), t=st.integers(1, 60))
@settings(max_examples=40, deadline=None)
def test_nu_method_is_its_recursion_on_a_vector(nu: float, t: int) -> None:
    # on A = diag(sigma), against the iteration as published
    sigma = np.linspace(0.05, 1.0, 8)
    method = NuMethod(nu=nu)
    iterates = method.iterate(lambda x: sigma * x, lambda r: sigma * r, np.ones(8), 1.0)
    for _ in range(t):
        x, r = next(iterates)
    assert np.allclose(x, sigma * method.gain(sigma**2, float(t)), atol=1e-10)
    assert np.allclose(r, method.residual(sigma**2, float(t)), atol=1e-10)


def test_nu_method_does_the_work_of_many_landweber_steps() -> None:
    values = np.geomspace(1, 1e-4, 50)
    fast = NuMethod().residual(values, 100.0)
    slow = Landweber().residual(values, 100.0)
    assert fast[-1] < 0.7 < 0.98 < slow[-1]
    assert np.allclose(fast[-1], Landweber().residual(values, 4400.0)[-1], atol=0.02)


@pytest.mark.parametrize(
    ("filter", "qualification"),
    [
        ("tikhonov", 1),
        (IteratedTikhonov(order=3), 3),
        ("tsvd", math.inf),
        (NuMethod(nu=2), 2),
        ("landweber", math.inf),
        ("showalter", math.inf),
    ],
)
def test_qualification_is_where_the_residual_stops_falling(
    filter: str | Filter, qualification: float
) -> None:
    method = make_filter(filter)
    assert method.qualification == qualification
    if method.parameter == "lam" and math.isfinite(qualification):
        # sup s^mu rho(s) = O(a^min(mu, qualification)): at s = 1 it falls by that power
        ratio = method.residual(np.ones(1), 1e-4) / method.residual(np.ones(1), 1e-3)
        assert np.log10(1 / ratio[0]) == pytest.approx(qualification, abs=0.01)


class Exponential(ShiftFilter):
    """A filter of a user's own: order two of Showalter's by another name."""

    name = "own"

    @property
    def qualification(self) -> float:
        return math.inf

    def gain(self, s: np.ndarray, level: float) -> np.ndarray:
        return np.where(s > 0, -np.expm1(-s / level) / np.where(s > 0, s, 1), 1 / level)

    def residual(self, s: np.ndarray, level: float) -> np.ndarray:
        return np.exp(-s / level)


def test_a_filter_of_ones_own_works_everywhere() -> None:
    shaw = problem("shaw", 16)
    b, delta = shaw.noisy(0.01)
    ours = solve(shaw.A, b, Exponential(), "discrepancy", delta=delta)
    known = solve(shaw.A, b, "showalter", "discrepancy", delta=delta)
    assert np.allclose(ours.x, known.x)
    X = np.linspace(0, 1, 12)[:, None]
    model = SpectralRegressor(Exponential(), lam=0.01).fit(X, X[:, 0] ** 2)
    theirs = SpectralRegressor("showalter", lam=0.01).fit(X, X[:, 0] ** 2)
    assert np.allclose(model.predict(X), theirs.predict(X))


@pytest.mark.parametrize(
    ("filter", "level", "words"),
    [
        (Landweber(eta=2.0), 3, r"eta=2 is too large: landweber diverges; it must be below 2 /"),
        (NuMethod(eta=1.01), 3, r"eta=1.01 is too large: nu_method diverges; it must be at most 1"),
        (Landweber(eta=-1.0), 3, r"eta=-1: must be finite and positive"),
        (NuMethod(nu=0.0), 3, r"nu=0: must be finite and positive"),
        (IteratedTikhonov(order=0), 3, r"order=0: must be a whole number of at least 1"),
        (Tikhonov(), -1.0, r"lam=-1: must be finite and not negative"),
        (Tikhonov(), math.nan, r"lam=nan: must be finite and not negative"),
        (Landweber(), 1.5, r"steps=1.5: must be a whole number"),
        (make_filter("tsvd"), 1.5, r"components=1.5: must be a whole number"),
    ],
)
def test_one_clear_error(filter: Filter, level: float, words: str) -> None:
    with pytest.raises(SpectralError, match=words):
        filter.check(np.r_[1.0, 0.5], [level])


def test_unknown_filter() -> None:
    with pytest.raises(SpectralError, match=r"unknown filter 'lasso' \(valid: tikhonov, "):
        make_filter("lasso")
