"""The RoSHAP score: activity x strength x stability of a feature over bootstrap runs.

Source: arXiv 2605.15154, the robust score. With ``S_bj`` the attribution of feature ``j`` in
run ``b`` (sum over the out-of-bag rows of ``|phi|``)::

    activity_j  = share of runs with S_bj != 0
    strength_j  = median of S_bj over the runs with S_bj != 0
    stability_j = mean_b(S_bj) / sd_b(S_bj)           (all runs, ddof = 1)
    roshap_j    = activity_j * strength_j * stability_j
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roshap.errors import DataError

#: A spread below this share of the largest value is what summing float64 numbers in another
#: order produces; it is not a spread of the attribution.
ROUNDING = 1e-12

#: Values sorted at a time (32 MB of float64), whatever p is.
_BLOCK_VALUES = 2**22


@dataclass(frozen=True)
class Score:
    """The score and its factors, one value per feature.

    Attributes
    ----------
    n_runs : int
        B, the number of runs behind every value.
    n_nonzero : ndarray of int64, shape (p,)
        Runs in which the attribution is not zero.
    p0 : ndarray of float64, shape (p,)
        Share of runs with an attribution of exactly zero.
    activity : ndarray of float64, shape (p,)
        ``1 - p0``.
    strength : ndarray of float64, shape (p,)
        Median over the non-zero runs, in the units of S; 0 where every run is zero.
    stability : ndarray of float64, shape (p,)
        Mean over sd, no units; ``inf`` where ``deterministic``, 0 where every run is zero.
    roshap : ndarray of float64, shape (p,)
        The score, in the units of S; ``inf`` where ``deterministic``, so that sorting by it
        puts these features above all others.
    mean, sd : ndarray of float64, shape (p,)
        Over all runs (ddof = 1), in the units of S.
    deterministic : ndarray of bool, shape (p,)
        Every run gave the same non-zero value, up to rounding: there is no spread to divide by.
    """

    n_runs: int
    n_nonzero: NDArray[np.int64]
    p0: NDArray[np.float64]
    activity: NDArray[np.float64]
    strength: NDArray[np.float64]
    stability: NDArray[np.float64]
    roshap: NDArray[np.float64]
    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    deterministic: NDArray[np.bool_]


def score(S: ArrayLike) -> Score:
    """Score every feature.

    The result does not depend, in any bit, on the order of the runs or of the features.

    Parameters
    ----------
    S : array_like of shape (B, p)
        Attributions, >= 0: one row per run, one column per feature. B >= 2.

    Returns
    -------
    Score

    Raises
    ------
    DataError
        If S is not 2-d, has fewer than 2 runs, or holds NaN, infinite or negative values.
    """
    matrix = check_scores(S)
    n_runs, p = matrix.shape
    counts = np.empty(p, dtype=np.int64)
    strength, mean, sd = np.empty(p), np.empty(p), np.empty(p)
    constant = np.empty(p, dtype=bool)
    for block, x in sorted_blocks(matrix):
        top = x[:, -1]
        # Measured in units of the column's maximum, squares neither overflow nor underflow.
        unit = x / np.where(top > 0, top, 1.0)[:, None]
        counts[block] = np.count_nonzero(x, axis=1)
        strength[block] = _median_of_nonzero(x, counts[block])
        mean[block] = unit.mean(axis=1) * top
        constant[block] = is_constant(x)
        sd[block] = np.where(constant[block], 0.0, unit.std(axis=1, ddof=1) * top)
    activity = counts / n_runs
    deterministic = constant & (counts > 0)
    stability = np.divide(mean, sd, out=np.zeros(p), where=sd > 0)
    stability[deterministic] = np.inf
    return Score(
        n_runs=n_runs,
        n_nonzero=counts,
        p0=(n_runs - counts) / n_runs,
        activity=activity,
        strength=strength,
        stability=stability,
        roshap=activity * strength * stability,
        mean=mean,
        sd=sd,
        deterministic=deterministic,
    )


def check_scores(S: ArrayLike) -> NDArray[np.floating]:
    """Return S as a float array of shape (B, p), without a copy where it already is one.

    Parameters
    ----------
    S : array_like of shape (B, p)

    Returns
    -------
    ndarray of shape (B, p)

    Raises
    ------
    DataError
        If S is not 2-d, has fewer than 2 runs or no feature, or holds NaN, infinite or
        negative values.
    """
    matrix = np.asarray(S)
    if matrix.dtype.kind not in "fiub":
        raise DataError(f"attributions must be numbers, not {matrix.dtype}")
    if matrix.dtype.kind != "f":
        matrix = matrix.astype(np.float64)
    if matrix.ndim != 2:
        raise DataError(
            f"attributions must have 2 dimensions (runs, features), not shape {matrix.shape}"
        )
    n_runs, p = matrix.shape
    if n_runs < 2:
        raise DataError(
            f"a robust score needs at least 2 bootstrap runs, not {n_runs}: "
            "stability is a mean over a standard deviation"
        )
    if p == 0:
        raise DataError(f"attributions of {n_runs} runs have no feature")
    for what, bad in (("NaN or infinite", ~np.isfinite(matrix)), ("negative", matrix < 0)):
        if bad.any():
            run, feature = np.argwhere(bad)[0]
            raise DataError(
                f"attributions must be finite sums of |SHAP|: run {run}, feature {feature} "
                f"is {matrix[run, feature]} ({int(bad.sum())} values are {what})"
            )
    return matrix


def sorted_blocks(matrix: NDArray[np.floating]) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Yield blocks of features, each with its runs in ascending order.

    Sorting makes every statistic independent of the order of runs; a feature per contiguous row
    makes it independent of the feature's neighbours (numpy's summation order follows layout).

    Parameters
    ----------
    matrix : ndarray of shape (B, p)

    Yields
    ------
    block : slice
        Which features.
    x : ndarray of float64, shape (width, B)
        Their values, zeros first, C-contiguous.
    """
    n_runs, p = matrix.shape
    width = max(1, _BLOCK_VALUES // n_runs)
    for start in range(0, p, width):
        block = slice(start, min(start + width, p))
        x = np.array(matrix[:, block].T, dtype=np.float64, order="C")
        x.sort(axis=1)
        yield block, x


def is_constant(x: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Say which rows have no spread, up to rounding.

    Parameters
    ----------
    x : ndarray of shape (m, B)
        Non-negative, each row ascending.

    Returns
    -------
    ndarray of bool, shape (m,)
    """
    return np.asarray(x[:, -1] - x[:, 0] <= ROUNDING * x[:, -1])


def _median_of_nonzero(x: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Median of the last ``counts`` values of each ascending row; 0 where there are none."""
    n_runs = x.shape[1]
    first = n_runs - counts
    middle = np.stack([first + (counts - 1) // 2, first + counts // 2], axis=1)
    # With no non-zero value the indices leave the row; its largest value, 0, is the answer.
    pair = np.take_along_axis(x, np.minimum(middle, n_runs - 1), axis=1)
    return np.asarray(pair[:, 0] + (pair[:, 1] - pair[:, 0]) / 2)
