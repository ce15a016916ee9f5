"""Linear inverse problems ``A x = b`` with noisy b."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.linalg import LinearOperator, svds

from roshap.regression.spectral.decomposition import Decomposition, DenseDecomposition
from roshap.regression.spectral.errors import ParameterWarning, SpectralError
from roshap.regression.spectral.filters import (
    Array,
    Filter,
    IterativeFilter,
    Tikhonov,
    make_filter,
)
from roshap.regression.spectral.levels import Levels, wanted_levels
from roshap.regression.spectral.rules import Choice, check_rule, choose
from roshap.regression.spectral.spectrum import Path, trace

#: Rules that need no trace of the filter, which an operator without decomposition does not give.
_FREE_RULES = ("discrepancy", "l_curve", "quasi_optimality")


@dataclass(frozen=True)
class Solution:
    """A regularised solution and how its parameter was found.

    Attributes
    ----------
    x : ndarray
        Of the shape of ``b`` for pictures, else (columns,).
    filter : str
    parameter : str
        ``lam``, ``steps`` or ``components``.
    value : float
        Of the parameter.
    path : Path
        All levels looked at.
    choice : Choice or None
        None where the parameter was given.
    """

    x: Array
    filter: str
    parameter: str
    value: float
    path: Path
    choice: Choice | None


def decompose(A: Any) -> Decomposition:
    """Return the SVD of a matrix; operators that know theirs are returned as they are.

    Use it to solve with one operator many times: :func:`solve` accepts the result.
    """
    if isinstance(A, Decomposition):
        return A
    if isinstance(A, LinearOperator):
        raise SpectralError(
            "a LinearOperator without a known decomposition works with the iterative filters only: "
            "landweber, nu_method"
        )
    return DenseDecomposition(A)


def solve(
    A: Any,
    b: ArrayLike,
    filter: str | Filter = "tikhonov",
    rule: str = "gcv",
    *,
    lam: float | None = None,
    steps: int | None = None,
    components: int | None = None,
    levels: Levels = 50,
    delta: float | None = None,
    tau: float = 1.0,
    folds: int = 5,
    max_steps: int = 1000,
) -> Solution:
    """Solve ``A x = b`` by a spectral filter.

    Parameters
    ----------
    A : array_like of shape (m, n), Decomposition or LinearOperator
        A matrix is decomposed once; the blurs of :mod:`~roshap.regression.spectral.operators` and
        the result of :func:`decompose` need no decomposition. Any other ``LinearOperator`` is
        only applied, which the iterative filters (``landweber``, ``nu_method``) can work with.
    b : array_like
        Data: of m values, or a picture.
    filter : str or Filter
    rule : str
        How the parameter is chosen where none is given: ``discrepancy``, ``gcv``, ``l_curve``,
        ``quasi_optimality``, ``loo`` or ``kfold``. Without a decomposition: ``discrepancy``,
        ``l_curve``, ``quasi_optimality``. Only a matrix has ``loo`` and ``kfold``.
    lam : float, optional
        Shift on the scale of the *squared* singular values: ``phi = sigma^2 / (sigma^2 + lam)``.
        Truncation keeps ``sigma^2 >= lam``.
    steps : int, optional
        Of an iterative filter.
    components : int, optional
        Of truncation.
    levels : int or sequence of float
        How many levels the rule looks at, or which.
    delta : float, optional
        Norm of the noise in b; the discrepancy principle needs it.
    tau : float
        Its safety factor.
    folds : int
        Of ``kfold``: row i is in fold ``i % folds``.
    max_steps : int
        The longest iteration without a decomposition.

    Returns
    -------
    Solution

    Raises
    ------
    SpectralError
        For parameters or data that the filter or the rule is not defined for.

    Warns
    -----
    ParameterWarning
        Where the rule's optimum sits at an end of its path.
    """
    method = make_filter(filter)
    check_rule(rule)
    data = np.asarray(b, dtype=np.float64)
    if not np.isfinite(data).all():
        raise SpectralError("b contains NaN or infinity")
    fixed = {"lam": lam, "steps": steps, "components": components}
    if isinstance(A, LinearOperator) and not isinstance(A, Decomposition):
        solution = _iterate(A, data, method, rule, fixed, levels, delta, tau, max_steps)
    else:
        solution = _filter(A, data, method, rule, fixed, levels, delta, tau, folds)
    if solution.choice is not None and solution.choice.warning:
        text = f"{rule} for {method.name}: {solution.choice.warning}"
        warnings.warn(text, ParameterWarning, stacklevel=2)
    return solution


def _filter(
    A: Any,
    data: Array,
    method: Filter,
    rule: str,
    fixed: dict[str, Any],
    levels: Levels,
    delta: float | None,
    tau: float,
    folds: int,
) -> Solution:
    operator = decompose(A)
    flat = _flat(data, operator.shape)
    on_scale, shown, given = wanted_levels(method, operator.s, **fixed, levels=levels)
    coefficients = operator.analyse(flat)
    spectrum = operator.spectrum(coefficients, flat)
    path = trace(spectrum, method, on_scale, shown)
    if isinstance(operator, DenseDecomposition):
        path = _with_rows(path, operator, method, on_scale, coefficients, flat)
        if rule == "kfold" and not given:
            path = dataclasses.replace(
                path, kfold=_fold_errors(operator, flat, method, on_scale, folds)
            )
    choice = None if given else choose(path, rule, delta=delta, tau=tau)
    index = 0 if choice is None else choice.index
    gain = method.gain(operator.s, float(on_scale[index]))
    x = operator.synthesise(operator.sigma * gain * coefficients)
    shape = data.shape if len(x) == data.size else x.shape
    value = float(shown[index])
    return Solution(x.reshape(shape), method.name, method.parameter, value, path, choice)


def solutions(
    A: Any, b: ArrayLike, filter: str | Filter, levels: Levels = 50
) -> Iterator[tuple[float, Array]]:
    """Yield ``(level, x)`` along a filter's path, the smoothest first.

    What :func:`solve` looks at, for errors against a known solution; see there for parameters.
    """
    method, operator = make_filter(filter), decompose(A)
    flat = _flat(np.asarray(b, dtype=np.float64), operator.shape)
    on_scale, shown, _ = wanted_levels(
        method, operator.s, lam=None, steps=None, components=None, levels=levels
    )
    coefficients = operator.analyse(flat)
    sweep = method.sweep(operator.s, on_scale)
    for level, (gain, _) in zip(shown, sweep, strict=True):
        yield float(level), operator.synthesise(operator.sigma * gain * coefficients)


def _flat(data: Array, shape: tuple[int, int]) -> Array:
    if data.size != shape[0]:
        raise SpectralError(f"b has {data.size} values, A has {shape[0]} rows")
    return data.ravel()


def _with_rows(
    path: Path,
    operator: DenseDecomposition,
    method: Filter,
    levels: Array,
    coefficients: Array,
    b: Array,
) -> Path:
    """Add leave-one-out errors and the solutions of all levels, which a matrix gives cheaply."""
    U = operator.U
    squares = U**2
    missing = 1.0 - squares.sum(axis=1) if U.shape[1] < U.shape[0] else np.zeros(len(b))
    outside = b - U @ coefficients if U.shape[1] < U.shape[0] else np.zeros(len(b))
    loo, xs = [], []
    for gain, residual in method.sweep(operator.s, levels):
        left = missing + squares @ residual
        r = outside + U @ (residual * coefficients)
        loo.append(np.mean(np.divide(r, left, out=np.full_like(r, np.inf), where=left > 0) ** 2))
        xs.append(operator.synthesise(operator.sigma * gain * coefficients))
    return dataclasses.replace(
        path, loo=np.array(loo), loo_exact=isinstance(method, Tikhonov), coefficients=np.array(xs)
    )


def _fold_errors(
    operator: DenseDecomposition, b: Array, method: Filter, levels: Array, folds: int
) -> Array:
    if not 2 <= folds <= len(b):
        raise SpectralError(f"folds={folds}: must be 2 to {len(b)}, the number of rows")
    A = (operator.U * operator.sigma) @ operator.Vt
    total = np.zeros(len(levels))
    for fold in range(folds):
        test = np.arange(len(b)) % folds == fold
        part = DenseDecomposition(A[~test])
        inside = part.analyse(b[~test])
        for place, (gain, _) in enumerate(method.sweep(part.s, levels)):
            x = part.synthesise(part.sigma * gain * inside)
            total[place] += np.sum((b[test] - A[test] @ x) ** 2)
    return total / len(b)


def _iterate(
    A: LinearOperator,
    data: Array,
    method: Filter,
    rule: str,
    fixed: dict[str, Any],
    levels: Levels,
    delta: float | None,
    tau: float,
    max_steps: int,
) -> Solution:
    """Solve with products by A and A' only."""
    if not isinstance(method, IterativeFilter):
        decompose(A)  # says why not
        raise AssertionError("unreachable")  # pragma: no cover
    flat = _flat(data, A.shape)
    largest = np.array([_largest(A)])
    if isinstance(levels, int | np.integer):
        levels = np.unique(np.round(np.geomspace(1, max_steps, int(levels))))
    _, shown, given = wanted_levels(method, largest, **fixed, levels=levels)
    if not given and rule not in _FREE_RULES:
        raise SpectralError(
            f"the rule {rule!r} needs a decomposition; an operator that is only applied has "
            f"{', '.join(_FREE_RULES)}"
        )
    eta = method.step_size(float(largest[0]))
    stop = tau * delta if rule == "discrepancy" and delta is not None and not given else None
    path, x = _follow(A, flat, method, eta, shown, stop)
    choice = None if given else choose(path, rule, delta=delta, tau=tau)
    index = len(path) - 1 if choice is None else choice.index
    if index < len(path) - 1:
        # a second run costs time where keeping every iterate would cost memory
        _, x = _follow(A, flat, method, eta, path.levels[: index + 1], None)
    shape = data.shape if len(x) == data.size else x.shape
    value = float(path.levels[index])
    return Solution(x.reshape(shape), method.name, method.parameter, value, path, choice)


def _follow(
    A: LinearOperator,
    b: Array,
    method: IterativeFilter,
    eta: float,
    levels: Array,
    stop: float | None,
) -> tuple[Path, Array]:
    """Iterate up to the last level, or the first one with a residual norm of at most ``stop``."""
    x: Array = np.zeros(A.shape[1])
    r, step = b, 0
    iterates = method.iterate(A.matvec, A.rmatvec, b, eta)
    rows: list[tuple[float, float, float]] = []
    for level in levels:
        before = x
        while step < level:
            x, r = next(iterates)
            step += 1
        size = float(np.linalg.norm(x))
        if not np.isfinite(size):
            raise SpectralError(f"{method.name} diverged after {step} steps: lower eta")
        rows.append((float(np.linalg.norm(r)), size, float(np.linalg.norm(x - before))))
        if stop is not None and rows[-1][0] <= stop:
            break
    residual_norm, solution_norm, change = np.array(rows).T
    seen = levels[: len(rows)]
    change[0] = np.nan
    if len(seen) > 1:
        with np.errstate(divide="ignore"):
            change[1:] /= np.diff(np.log(seen))
    unknown = np.full(len(seen), np.nan)
    path = Path(
        method.parameter,
        seen,
        residual_norm,
        solution_norm,
        unknown,
        unknown,
        change,
        float(len(b)),
    )
    return path, x


def _largest(A: LinearOperator) -> float:
    """Return the largest eigenvalue of ``A'A``, to rounding."""
    if min(A.shape) <= 2:
        return float(np.linalg.norm(A.matmat(np.eye(A.shape[1])), 2)) ** 2
    start = np.random.default_rng(0).normal(size=min(A.shape))
    sigma = svds(A, k=1, v0=start, return_singular_vectors=False)
    return float(sigma[0]) ** 2 * (1 + 1e-12)
