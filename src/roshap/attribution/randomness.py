"""Where the spread of an attribution comes from: the data drawn, or the model's own seed.

The first R draws are fitted twice, with two model seeds: a two-way design with random effects. On
``Y = S / mean(S)`` of a feature (ours; docs/certainty.md)::

    w      = mean_r (Y_r1 - Y_r2)^2 / 2            seed, given the data
    v_data = var_r((Y_r1 + Y_r2) / 2) - w / 2      data
    share  = v_data / (v_data + w)

"Seed given data" contains the interaction of the two, so that the two parts add up; the spread over
seeds on one sample and that over samples with one seed would not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from roshap.attribution.score import check_scores
from roshap.errors import DataError

#: Draws that are worth repeating: the share is then known to about a tenth.
DEFAULT_DRAWS = 30
MIN_DRAWS = 5

_SEEDS = ("random_state", "random_seed", "seed")
#: How far the second seed is from the first.
_STEP = 1
_RESAMPLES = 500


@dataclass(frozen=True)
class Shares:
    """Parts of the variance of each feature's attribution.

    Attributes
    ----------
    data, seed
        (p,) variance of S / mean(S) from the data drawn and from the model's seed given the data;
        ``data`` is not below 0. NaN for a feature that is zero in all these runs.
    draws
        R.
    """

    data: NDArray[np.float64]
    seed: NDArray[np.float64]
    draws: int
    _pairs: tuple[NDArray[np.float64], NDArray[np.float64]]

    @property
    def share(self) -> NDArray[np.float64]:
        """(p,) the data's share; NaN where there is no spread."""
        return _ratio(self.data, self.seed)

    def pooled(self, columns: ArrayLike) -> tuple[float, float]:
        """Share of the data over some features, and its standard error.

        The mean of the features' shares; the error is the spread over resamples of the R draws.

        Parameters
        ----------
        columns
            Which features, e.g. the leading ten.
        """
        chosen = np.asarray(columns, dtype=np.intp)
        first, second = (half[:, chosen] for half in self._pairs)
        rng = np.random.default_rng(0)
        again = []
        for _ in range(_RESAMPLES):
            rows = rng.integers(self.draws, size=self.draws)
            again.append(_mean(_ratio(*_parts(first[rows], second[rows]))))
        return _mean(self.share[chosen]), float(np.nanstd(again, ddof=1))


def shares(first: ArrayLike, second: ArrayLike) -> Shares:
    """Take the variance of attributions apart.

    Parameters
    ----------
    first, second : array_like of shape (R, p)
        Attributions of the same R draws with the first and with the second model seed.

    Raises
    ------
    DataError
        If the two do not belong together or R is below 5.
    """
    a, b = check_scores(first).astype(np.float64), check_scores(second).astype(np.float64)
    if a.shape != b.shape:
        raise DataError(f"attributions of two model seeds have shapes {a.shape} and {b.shape}")
    if len(a) < MIN_DRAWS:
        raise DataError(f"{len(a)} draws with two seeds: shares need at least {MIN_DRAWS}")
    data, seed = _parts(a, b)
    return Shares(data, seed, len(a), (a, b))


def _parts(
    a: NDArray[np.float64], b: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    scale = (a.mean(axis=0) + b.mean(axis=0)) / 2
    scale = np.where(scale > 0, scale, np.nan)
    a, b = a / scale, b / scale
    within = ((a - b) ** 2).mean(axis=0) / 2
    return np.maximum(((a + b) / 2).var(axis=0, ddof=1) - within / 2, 0.0), within


def _ratio(data: NDArray[np.float64], seed: NDArray[np.float64]) -> NDArray[np.float64]:
    total = data + seed
    return np.divide(data, total, out=np.full(len(total), np.nan), where=total > 0)


def _mean(values: NDArray[np.float64]) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else float("nan")


def seeds_of(model: Any) -> dict[str, int]:
    """Return the model's seed parameters that are numbers, those of its parts included."""
    return {
        name: int(value)
        for name, value in model.get_params(deep=True).items()
        if name.rpartition("__")[2] in _SEEDS
        and isinstance(value, int | np.integer)
        and not isinstance(value, bool)
    }


def with_second_seed(model: Any) -> Any | None:
    """Return a clone of an unfitted model with other seeds; None where it has no seed."""
    seeds = seeds_of(model)
    if not seeds:
        return None
    return clone(model).set_params(**{name: value + _STEP for name, value in seeds.items()})
