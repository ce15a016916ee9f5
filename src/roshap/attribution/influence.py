"""Influence values of the log score: how each run moves it, and so how sure it is.

With ``x_b = S_bj`` over the runs, ``q`` the share of non-zero runs, ``n1 = q B``, ``m`` the median
of the non-zero ones, ``mu`` and ``s`` mean and sd (ddof = 1) of all, the log of the RoSHAP score is
``L = log(q m mu / s)``, and its influence values are (delta method; ours)::

    f_b = (1[x > 0] - q) / q  +  1[x > 0] sign(x - m) SE_m sqrt(n1) / (m q)
          + (x - mu) / mu  -  ((x - mu)^2 - s^2) / (2 s^2),      centred,

so that ``se(L) = sd(f) / sqrt(B)``, and that of a difference of two features of the same runs
``sd(f_i - f_j) / sqrt(B)``. ``SE_m`` is the standard error of a median of Price and Bonett (2001,
J. Statist. Comput. Simul. 68:295): half the distance of two order statistics, in units of ``z``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from roshap.attribution.score import check_scores, score, sorted_blocks

#: Non-zero runs below which a feature's own score says nothing yet.
MIN_NONZERO = 5

#: Where a feature with a score of zero stands on the log scale, as a share of the largest score.
ZERO_SHARE = 1e-9

#: Log scores that differ by no more are equal: so exact copies are, whatever rounding did to them.
SAME = 1e-9


@dataclass(frozen=True)
class Influence:
    """Log scores and their influence values.

    Attributes
    ----------
    log_score
        (p,) L; ``inf`` for a deterministic feature; for a score of zero the log of 1e-9 of the
        largest finite score, or of the smallest positive one if that is lower.
    f
        (p, B) influence values, centred; zero for deterministic features and for scores of zero.
    n_nonzero
        (p,) runs in which the attribution is not zero.
    mean
        (p,) of S, which breaks ties.
    """

    log_score: NDArray[np.float64]
    f: NDArray[np.float64]
    n_nonzero: NDArray[np.int64]
    mean: NDArray[np.float64]

    @property
    def n_runs(self) -> int:
        """B."""
        return self.f.shape[1]

    @functools.cached_property
    def variance(self) -> NDArray[np.float64]:
        """(p,) variance of each log score: ``sum_b f_b^2 / ((B - 1) B)``."""
        squares = np.einsum("jb,jb->j", self.f, self.f)
        return np.asarray(squares / ((self.n_runs - 1) * self.n_runs))

    @property
    def sure(self) -> NDArray[np.bool_]:
        """(p,) whether a feature has enough non-zero runs for its score to say something."""
        return self.n_nonzero >= MIN_NONZERO

    def covariance(self, left: NDArray[np.intp], right: NDArray[np.intp]) -> NDArray[np.float64]:
        """Covariances of the log scores of two lists of features, (len(left), len(right))."""
        product = self.f[left] @ self.f[right].T
        return np.asarray(product / ((self.n_runs - 1) * self.n_runs))

    def order(self, features: Sequence[str]) -> NDArray[np.intp]:
        """Features from best to worst: by score, then by mean, then by name, as in a ranking."""
        names = np.asarray([str(name) for name in features], dtype=np.str_)
        return np.lexsort((names, -self.mean, -self.log_score))

    def pair_error(self, i: int, j: int) -> float:
        """Return the standard error of ``L_i - L_j``."""
        away = self.f[i] - self.f[j]
        return math.sqrt(float(np.sum(away * away)) / ((self.n_runs - 1) * self.n_runs))


def influence(S: ArrayLike) -> Influence:
    """Return the influence values of every feature's log score.

    Parameters
    ----------
    S : array_like of shape (B, p)
        Attributions, >= 0; B >= 2.

    Raises
    ------
    DataError
        If S is unfit (see :func:`roshap.attribution.score.score`).
    """
    matrix = check_scores(S)
    n_runs, p = matrix.shape
    scored = score(matrix)
    values = np.zeros((p, n_runs))
    log_score = _log_scores(scored.roshap)
    for block, x in sorted_blocks(matrix):
        places = np.arange(p)[block]
        used = (scored.n_nonzero[block] > 0) & ~scored.deterministic[block]
        places, x = places[used], x[used]
        top = x[:, -1:]
        # in units of the column's maximum no square can overflow; f has no units
        unit = np.ascontiguousarray(matrix[:, places].T, dtype=np.float64) / top
        m, mu, s = (of[places][:, None] / top for of in (scored.strength, scored.mean, scored.sd))
        n1 = scored.n_nonzero[places]
        q = n1[:, None] / n_runs
        se_median = _median_error(x / top, n1)[:, None]
        here = unit > 0
        away = unit - mu
        f = (here - q) / q + here * np.sign(unit - m) * se_median * np.sqrt(n1)[:, None] / (m * q)
        f += away / mu - (away**2 - s**2) / (2 * s**2)
        values[places] = f - f.mean(axis=1, keepdims=True)
    return Influence(log_score, values, scored.n_nonzero, scored.mean)


def _log_scores(roshap: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log of the scores, with a floor for those of zero."""
    positive = roshap[(roshap > 0) & np.isfinite(roshap)]
    floor = 0.0
    if positive.size:
        floor = min(math.log(positive.max()) + math.log(ZERO_SHARE), math.log(positive.min()))
    with np.errstate(divide="ignore"):
        return np.where(roshap > 0, np.log(roshap), floor)


def _median_error(x: NDArray[np.float64], n1: NDArray[np.int64]) -> NDArray[np.float64]:
    """Price-Bonett standard errors of the medians of the last ``n1`` values of ascending rows."""
    n_runs = x.shape[1]
    constants = {int(n): _price_bonett(int(n)) for n in np.unique(n1)}
    c = np.array([constants[int(n)][0] for n in n1], dtype=np.intp)
    z = np.array([constants[int(n)][1] for n in n1])
    pair = np.take_along_axis(x, np.stack([n_runs - n1 + c - 1, n_runs - c], axis=1), axis=1)
    return np.asarray((pair[:, 1] - pair[:, 0]) / (2 * z))


@functools.lru_cache(maxsize=4096)
def _price_bonett(n: int) -> tuple[int, float]:
    """Order statistic c and quantile z of Price and Bonett for ``n`` values."""
    if n == 1:  # the two order statistics coincide, whatever z
        return 1, 1.0
    c = max(1, round((n + 1) / 2 - math.sqrt(n)))
    return c, float(stats.norm.ppf(1 - stats.binom.cdf(c - 1, n, 0.5)))
