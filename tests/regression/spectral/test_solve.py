"""Linear inverse problems: dense, matrix-free and by fast transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import ndimage
from scipy.sparse.linalg import aslinearoperator

from roshap.regression.spectral import (
    FILTERS,
    PROBLEMS,
    CosineBlur,
    FourierBlur,
    KroneckerOperator,
    Landweber,
    NuMethod,
    SpectralError,
    gaussian_psf,
    make_filter,
    problem,
    solutions,
    solve,
)

SHAPE = (12, 15)


def blurs() -> list[Any]:
    psf = gaussian_psf(1.0, radius=3)
    rng = np.random.default_rng(0)
    skewed = psf * (1 + np.arange(7) / 7)  # not symmetric: complex phases
    return [
        FourierBlur(psf, SHAPE),
        FourierBlur(skewed / skewed.sum(), SHAPE),
        CosineBlur(psf, SHAPE),
        KroneckerOperator(rng.normal(size=(12, 12)), rng.normal(size=(15, 15))),
    ]


@pytest.mark.parametrize("operator", blurs(), ids=["periodic", "skewed", "mirrored", "kron"])
@pytest.mark.parametrize("filter", FILTERS)
def test_a_transform_gives_what_the_dense_svd_gives(operator: Any, filter: str) -> None:
    rng = np.random.default_rng(1)
    A = operator.matmat(np.eye(180))
    b = A @ rng.normal(size=180) + 0.01 * rng.normal(size=180)
    name = make_filter(filter).parameter
    level: Any = {name: {"lam": 1e-3, "steps": 40, "components": 60}[name]}
    fast, dense = solve(operator, b, filter, **level), solve(A, b, filter, **level)
    assert np.allclose(fast.x, dense.x, atol=1e-8)
    assert np.allclose(fast.path.residual_norm, dense.path.residual_norm, atol=1e-9)
    assert np.allclose(fast.path.solution_norm, dense.path.solution_norm, rtol=1e-8)
    assert np.allclose(fast.path.dof, dense.path.dof)
    assert np.allclose(fast.path.gcv, dense.path.gcv)


@pytest.mark.parametrize("operator", blurs(), ids=["periodic", "skewed", "mirrored", "kron"])
def test_the_adjoint_is_the_transpose(operator: Any) -> None:
    x, y = np.random.default_rng(2).normal(size=(2, 180))
    assert operator.matvec(x) @ y == pytest.approx(x @ operator.rmatvec(y))


def test_blurs_are_convolutions() -> None:
    psf = gaussian_psf(0.8, radius=3) * (1 + np.arange(7) / 7)
    picture = np.random.default_rng(3).normal(size=SHAPE)
    periodic = FourierBlur(psf, SHAPE).matvec(picture.ravel()).reshape(SHAPE)
    assert np.allclose(periodic, ndimage.convolve(picture, psf, mode="wrap"))
    even = gaussian_psf(0.8, radius=3)
    mirrored = CosineBlur(even, SHAPE).matvec(picture.ravel()).reshape(SHAPE)
    assert np.allclose(mirrored, ndimage.convolve(picture, even, mode="reflect"))


def test_kronecker_operator_is_kron() -> None:
    R, C = np.random.default_rng(4).normal(size=(2, 5, 5))
    assert np.allclose(KroneckerOperator(R, C).matmat(np.eye(25)), np.kron(R, C))


@pytest.mark.parametrize("filter", ["landweber", "nu_method"])
@pytest.mark.parametrize("rule", ["discrepancy", "quasi_optimality", "l_curve"])
def test_products_alone_give_what_the_svd_gives(filter: str, rule: str) -> None:
    gravity = problem("gravity", 32)
    b, delta = gravity.noisy(0.01)
    levels = np.unique(np.round(np.geomspace(1, 800, 30)))
    free = solve(aslinearoperator(gravity.A), b, filter, rule, delta=delta, levels=levels)
    dense = solve(gravity.A, b, filter, rule, delta=delta, levels=levels)
    assert free.value == dense.value
    assert np.allclose(free.x, dense.x, atol=1e-8)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("filter", FILTERS)
def test_the_error_falls_and_rises_again(name: str, filter: str) -> None:
    known = problem(name, 16 if name == "blur" else 32)
    b, _ = known.noisy(0.02)
    errors = [float(np.linalg.norm(x - known.x)) for _, x in solutions(known.A, b, filter)]
    best = int(np.argmin(errors))
    assert errors[best] < 0.5 * np.linalg.norm(known.x)
    assert errors[best] < errors[0]
    # half of the blur's components are above this noise: truncation may end at its best
    assert errors[best] < errors[-1] or (name, filter) == ("blur", "tsvd")


def test_a_picture_comes_back_as_a_picture() -> None:
    blur = FourierBlur(gaussian_psf(1.0, radius=3), SHAPE)
    picture = np.random.default_rng(5).uniform(size=SHAPE)
    found = solve(blur, blur.matvec(picture.ravel()).reshape(SHAPE), lam=1e-12)
    assert found.x.shape == SHAPE
    assert np.allclose(found.x, picture, atol=1e-3)


def test_more_rows_or_more_columns() -> None:
    rng = np.random.default_rng(6)
    for shape in ((9, 4), (4, 9)):
        A, b = rng.normal(size=shape), rng.normal(size=shape[0])
        lam = 0.3
        expected = np.linalg.solve(A.T @ A + lam * np.eye(shape[1]), A.T @ b)
        found = solve(A, b, lam=lam)
        assert np.allclose(found.x, expected)
        assert found.path.residual_norm[0] == pytest.approx(np.linalg.norm(b - A @ expected))
        hat = A @ np.linalg.solve(A.T @ A + lam * np.eye(shape[1]), A.T)
        assert found.path.dof[0] == pytest.approx(np.trace(hat))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"lam": -1.0}, "lam=-1: must be finite and not negative"),
        ({"steps": 3}, "'tikhonov' has no parameter 'steps': its own is 'lam'"),
        ({"lam": 1.0, "steps": 3}, "give one of lam and steps, not both"),
        ({"b": np.r_[1.0, np.nan]}, "b contains NaN or infinity"),
        ({"A": np.full((2, 2), np.inf)}, "A contains NaN or infinity"),
        ({"b": np.ones(3)}, "b has 3 values, A has 2 rows"),
        ({"A": np.ones(2)}, "A must be a matrix"),
        ({"levels": 0}, "levels=0: must be at least 1"),
        ({"rule": "kfold", "folds": 3}, "folds=3: must be 2 to 2"),
        ({"rule": "discrepancy"}, "needs the level of the noise"),
        ({"rule": "discrepancy", "delta": 1.0, "tau": 0.5}, "tau=0.5: must be at least 1"),
        ({"A": aslinearoperator(np.eye(2))}, "works with the iterative filters only"),
        (
            {"A": aslinearoperator(np.eye(2)), "filter": "landweber", "rule": "gcv"},
            "the rule 'gcv' needs a decomposition",
        ),
        (
            {"A": aslinearoperator(np.eye(2)), "filter": Landweber(eta=2.5), "steps": 3},
            "eta=2.5 is too large",
        ),
        ({"A": np.eye(2), "filter": NuMethod(eta=1.5), "steps": 3}, "eta=1.5 is too large"),
    ],
)
def test_one_clear_error(change: dict[str, Any], words: str) -> None:
    arguments = {"A": np.eye(2), "b": np.ones(2)} | change
    with pytest.raises(SpectralError, match=words):
        solve(**arguments)


def test_errors_of_operators_and_problems() -> None:
    with pytest.raises(SpectralError, match="symmetric in both axes"):
        CosineBlur(np.arange(9.0).reshape(3, 3), SHAPE)
    with pytest.raises(SpectralError, match="larger than the picture"):
        FourierBlur(gaussian_psf(5.0), SHAPE)
    with pytest.raises(SpectralError, match=r"unknown problem 'blurr' \(valid: shaw"):
        problem("blurr", 8)
    with pytest.raises(SpectralError, match="sigma must be finite and positive"):
        gaussian_psf(0.0)
