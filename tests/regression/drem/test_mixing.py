"""The mixing identity and the laws, against Cramer's rule, enumeration and plain loops."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from roshap.regression.drem.laws import adaptive_gain, blend, exact_average, standard_gain
from roshap.regression.drem.lu import factorise
from roshap.regression.drem.mixing import batches, mix_memory, mix_square, mix_tall

X3 = np.array([[1.0, 1, 0], [1, 2, 1], [1, 0, 3]])
Y3 = np.array([3.0, -1, 4])


def cramer(X: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """The article's mixing: D, and Z by one determinant per weight."""
    Z = np.empty(len(y))
    for i in range(len(y)):
        replaced = X.copy()
        replaced[:, i] = y
        Z[i] = np.linalg.det(replaced)
    return float(np.linalg.det(X)), Z


def article_loop(
    X: np.ndarray, Y: np.ndarray, w: np.ndarray, alpha: float, adaptive: bool
) -> np.ndarray:
    for x, y in zip(X, Y, strict=True):
        D, Z = cramer(x, y)
        step = alpha * D / (1 + alpha * D**2) if adaptive else alpha * D
        w = w + step * (Z - D * w)
    return w


def test_the_worked_example() -> None:
    D, Z = cramer(X3, Y3)
    assert pytest.approx(4) == D
    np.testing.assert_allclose(Z, [25, -13, -3])
    mixed = mix_square(X3[None], Y3[None, :, None])
    np.testing.assert_allclose(mixed.solutions[0, :, 0], [6.25, -3.25, -0.75])
    assert mixed.log_det[0] == pytest.approx(np.log(4))
    start = np.zeros((3, 1))
    standard, _ = blend(start, mixed.solutions, standard_gain(mixed.log_det, 0.01))
    np.testing.assert_allclose(standard[:, 0], [1, -0.52, -0.12], rtol=1e-12)
    adaptive, _ = blend(start, mixed.solutions, adaptive_gain(mixed.log_det, 0.01))
    np.testing.assert_allclose(adaptive[:, 0], [0.862069, -0.448276, -0.103448], atol=5e-7)


@pytest.mark.parametrize("q", [2, 5, 10])
@pytest.mark.parametrize("adaptive", [False, True])
def test_an_epoch_equals_the_articles_loop(q: int, adaptive: bool) -> None:
    rng = np.random.default_rng(q)
    X, Y = rng.normal(size=(40, q, q)), rng.normal(size=(40, q))
    alpha = 1e-3 if adaptive else 0.1 / np.linalg.det(X).max() ** 2
    w = rng.normal(size=q)
    mixed = mix_square(X, Y[..., None])
    gain = (adaptive_gain if adaptive else standard_gain)(mixed.log_det, alpha)
    found, left = blend(w[:, None], mixed.solutions, gain)
    np.testing.assert_allclose(found[:, 0], article_loop(X, Y, w, alpha, adaptive), atol=1e-10)
    assert left == pytest.approx(np.prod(1 - gain))


def test_exact_averaging_over_all_subsets_is_least_squares() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, 3)), rng.normal(size=8)
    ols = np.linalg.lstsq(X, y, rcond=None)[0]
    for rows in (3, 4, 6):
        subsets = np.array(list(itertools.combinations(range(8), rows)))
        mixed = mix_tall(X[subsets], y[subsets][..., None])
        mean, weight = np.zeros((3, 1)), -np.inf
        for part in np.array_split(np.arange(len(subsets)), 4):
            mean, weight = exact_average(mean, weight, mixed.solutions[part], mixed.log_det[part])
        np.testing.assert_allclose(mean[:, 0], ols, rtol=0, atol=1e-14)


def test_information_is_the_inverse_of_the_scalar_noise() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3, 9, 4))
    mixed = mix_tall(X, rng.normal(size=(3, 9, 1)))
    assert mixed.information is not None
    for x, a in zip(X, mixed.information, strict=True):
        np.testing.assert_allclose(a, 1 / np.diag(np.linalg.inv(x.T @ x)))


def test_singular_batches_are_skipped_and_the_others_used() -> None:
    rng = np.random.default_rng(2)
    X, Y = rng.normal(size=(5, 3, 3)), rng.normal(size=(5, 3, 1))
    X[1, :, 2] = X[1, :, 1]
    X[3] = 0
    for mixed in (mix_square(X, Y, eps=1e-12), mix_tall(X, Y)):
        assert mixed.skipped == 2
        np.testing.assert_allclose(
            mixed.solutions, np.linalg.solve(X[[0, 2, 4]], Y[[0, 2, 4]]), rtol=1e-8
        )


@pytest.mark.parametrize("q", [1, 2, 7, 40, 64, 65])
def test_one_lu_gives_solution_and_determinant(q: int) -> None:
    rng = np.random.default_rng(q)
    X, Y = rng.normal(size=(9, q, q)), rng.normal(size=(9, q, 2))
    X[3] = 0
    X[5, :, -1] = 2 * X[5, :, 0] if q > 1 else 0
    solutions, log_det = factorise(X, Y)
    assert log_det[3] == -np.inf
    regular = [0, 1, 2, 4, 6, 7, 8]
    np.testing.assert_allclose(log_det[regular], np.linalg.slogdet(X[regular])[1], rtol=1e-10)
    np.testing.assert_allclose(X[regular] @ solutions[regular], Y[regular], atol=1e-9)


def test_memory_of_everything_is_recursive_least_squares() -> None:
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(6, 4, 3)), rng.normal(size=(6, 4, 1))
    mixed = mix_memory(X, Y, 1.0, (np.zeros((3, 3)), np.zeros((3, 1))))
    for b in range(6):
        rows, side = X[: b + 1].reshape(-1, 3), Y[: b + 1].reshape(-1)
        ols = np.linalg.lstsq(rows, side, rcond=None)[0]
        np.testing.assert_allclose(mixed.solutions[b, :, 0], ols, atol=1e-12)


def test_huge_gains_are_followed_one_by_one() -> None:
    T = np.random.default_rng(4).normal(size=(400, 2, 1))
    gone, _ = blend(np.ones((2, 1)), T, np.full(400, 1e3))
    assert not np.isfinite(gone).all()
    far, left = blend(np.ones((2, 1)), T[:50], np.full(50, 1e3))
    assert np.isfinite(far).all()
    assert left == pytest.approx(999.0**50)


def test_the_adaptive_gain_takes_any_determinant() -> None:
    gain = adaptive_gain(np.array([-1e4, 0.0, 1e4]), 1e-3)
    np.testing.assert_allclose(gain, [0, 1e-3 / 1.001, 1])


def test_a_ragged_batch_is_dropped() -> None:
    assert batches(np.arange(14).reshape(7, 2), 3).shape == (2, 3, 2)
