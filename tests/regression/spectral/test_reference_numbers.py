"""Numbers that were computed independently of this code, to all digits given."""

from __future__ import annotations

import numpy as np
import pytest

from roshap.regression.spectral import SpectralRegressor, decompose, problem, solve


@pytest.mark.parametrize(
    ("name", "sigma"),
    [
        ("shaw", 2.9933281476),
        ("phillips", 5.8035854542),
        ("deriv2", 0.1012398427),
        ("heat", 0.3582713693),
    ],
)
def test_largest_singular_value_of_a_problem(name: str, sigma: float) -> None:
    assert decompose(problem(name, 32).A).sigma.max() == pytest.approx(sigma, abs=5.1e-11)


@pytest.mark.parametrize(("name", "norm"), [("shaw", 13.1873576295), ("phillips", 24.9699224352)])
def test_norm_of_the_data(name: str, norm: float) -> None:
    assert np.linalg.norm(problem(name, 32).b) == pytest.approx(norm, abs=5.1e-11)


def test_tikhonov_on_shaw() -> None:
    shaw = problem("shaw", 32)
    b, _ = shaw.noisy(0.01)
    found = solve(shaw.A, b, lam=1e-3 * decompose(shaw.A).s.max())
    assert np.linalg.norm(found.x) == pytest.approx(5.54209124, abs=5.1e-9)
    assert np.linalg.norm(shaw.A @ found.x - b) == pytest.approx(0.13116847, abs=5.1e-9)
    assert found.path.residual_norm[0] == pytest.approx(0.13116847, abs=5.1e-9)
    assert found.path.solution_norm[0] == pytest.approx(5.54209124, abs=5.1e-9)
    assert found.path.dof[0] == pytest.approx(4.395978, abs=5.1e-7)


@pytest.mark.parametrize(
    ("filter", "level", "norm"),
    [("tsvd", {"components": 7}, 5.64379302), ("landweber", {"steps": 1000}, 5.57570484)],
)
def test_other_filters_on_shaw(filter: str, level: dict[str, int], norm: float) -> None:
    shaw = problem("shaw", 32)
    found = solve(shaw.A, shaw.noisy(0.01)[0], filter, **level)  # type: ignore[arg-type]  # a number
    assert np.linalg.norm(found.x) == pytest.approx(norm, abs=5.1e-9)


def kernel_problem() -> tuple[np.ndarray, np.ndarray]:
    i = np.arange(20)
    x = i / 19
    return x[:, None], np.sin(2 * np.pi * x) + 0.1 * np.cos(37 * i)


@pytest.mark.parametrize(
    ("filter", "level", "value", "digits"),
    [
        ("tikhonov", {"lam": 0.01}, 0.8873051572, 10),
        ("landweber", {"steps": 10}, 0.902017094456, 12),
        ("landweber", {"steps": 100}, 0.927744219922, 12),
        ("tsvd", {"components": 3}, 0.719377869225, 12),
        ("tsvd", {"components": 8}, 0.901278393590, 12),
    ],
)
def test_kernel_prediction(filter: str, level: dict[str, float], value: float, digits: int) -> None:
    model = SpectralRegressor(filter, gamma=10, fit_intercept=False, **level)  # type: ignore[arg-type]  # a number
    found = model.fit(*kernel_problem()).predict([[0.25]])
    assert found[0] == pytest.approx(value, abs=0.51 * 10.0**-digits)


def test_scores_of_a_kernel_fit() -> None:
    model = SpectralRegressor(gamma=10, fit_intercept=False, lam=0.01).fit(*kernel_problem())
    assert model.path_.gcv[0] == pytest.approx(0.0074741181, abs=5.1e-11)
    assert model.path_.loo is not None
    assert model.path_.loo[0] == pytest.approx(0.0096249812, abs=5.1e-11)
    assert model.dof_ == pytest.approx(4.824720, abs=5.1e-7)


def test_singular_values_of_deriv2_approach_those_of_the_integral() -> None:
    sigma = np.sort(decompose(problem("deriv2", 128).A).sigma)[::-1][:5]
    exact = 1 / (np.arange(1, 6) * np.pi) ** 2
    assert np.allclose(sigma, exact, rtol=3e-3)


@pytest.mark.parametrize("name", ["phillips", "deriv2", "foxgood", "baart"])
def test_exact_integrals_agree_with_the_quadrature(name: str) -> None:
    coarse, fine = (problem(name, n) for n in (16, 64))
    errors = [np.linalg.norm(p.A @ p.x - p.b) / np.linalg.norm(p.b) for p in (coarse, fine)]
    assert errors[1] < 1e-3
    assert errors[1] <= errors[0] / 8 or errors[0] < 1e-12
