"""How much selected sets change from one training set to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from roshap.errors import DataError


@dataclass(frozen=True)
class SetStability:
    """Agreement of M selected sets of k out of p features; NaN where a measure is not defined.

    Attributes
    ----------
    jaccard
        Mean over pairs of |A and B| / |A or B|; 0 to 1, not corrected for chance.
    kuncheva
        Mean over pairs of (r p - k^2) / (k (p - k)), r = |A and B| (Kuncheva 2007): 1 for equal
        sets, 0 for chance.
    nogueira
        Stability of Nogueira, Sechidis and Brown (2018), which equals Kuncheva's for sets of one
        size, with its 95 % interval ``low``, ``high`` for M independent training sets.
    """

    jaccard: float
    kuncheva: float
    nogueira: float
    low: float
    high: float


def set_stability(sets: Sequence[Sequence[int]], p: int) -> SetStability:
    """Measure the agreement of selected sets.

    Parameters
    ----------
    sets
        M >= 2 sets of column numbers.
    p
        Number of features that they were selected from.

    Raises
    ------
    DataError
        For fewer than two sets, or a column out of range.
    """
    if len(sets) < 2:
        raise DataError(f"the stability of {len(sets)} selected set is not defined: 2 are needed")
    Z = np.zeros((len(sets), p))
    for row, chosen in zip(Z, sets, strict=True):
        columns = np.asarray(list(chosen), dtype=np.int64)
        if columns.size and (columns.min() < 0 or columns.max() >= p):
            raise DataError(f"a selected set names a column outside 0 to {p - 1}")
        row[columns] = 1.0
    return SetStability(_jaccard(Z), _kuncheva(Z), *_nogueira(Z))


def _jaccard(Z: np.ndarray) -> float:
    pairs = [np.sum(a * b) / np.sum(np.maximum(a, b)) for a, b in combinations(Z, 2)]
    return float(np.mean(pairs))


def _kuncheva(Z: np.ndarray) -> float:
    sizes = Z.sum(axis=1)
    k, p = sizes[0], Z.shape[1]
    if (sizes != k).any() or k in (0, p):
        return float("nan")
    pairs = [(np.sum(a * b) * p - k**2) / (k * (p - k)) for a, b in combinations(Z, 2)]
    return float(np.mean(pairs))


def _nogueira(Z: np.ndarray) -> tuple[float, float, float]:
    """Return the estimate and its 95 % interval (definition 4 and theorem 9 of the source)."""
    M, p = Z.shape
    share = Z.mean(axis=0)
    mean_size = Z.sum(axis=1).mean()
    chance = mean_size / p * (1 - mean_size / p)
    if chance == 0:
        return float("nan"), float("nan"), float("nan")
    estimate = 1 - np.mean(M / (M - 1) * share * (1 - share)) / chance
    sizes = Z.sum(axis=1)
    influence = (
        (Z * share).mean(axis=1)
        - sizes * mean_size / p**2
        + estimate / 2 * (2 * mean_size * sizes / p**2 - sizes / p - mean_size / p + 1)
    ) / chance
    spread = 1.959963984540054 * np.sqrt(4 / M**2 * np.sum((influence - influence.mean()) ** 2))
    return float(estimate), float(estimate - spread), float(estimate + spread)
