"""How sure a score and a place in the ranking are, from the runs that there are.

All of it is about more runs of the same pipeline on the same data. Formulas and the error rates
measured for them: docs/certainty.md. In short (ours throughout; B runs, L the log score):

* score: ``exp(L -+ t_{B-1, .975} sd(L*))``, sd over resamples of whole runs;
* bias-corrected score: raw x J(B), J being Hedges' factor for a ratio mean / sd;
* rank, one feature at a time: from ``1 + #{i: L_i - L_j > t se_ij}`` to
  ``p - #{i: L_j - L_i > t se_ij}``;
* rank, all leading features at once: the same with the 95 % quantile of the largest pair under
  Gaussian multipliers, times ``t_{B-1, .975} / 1.96``, in the place of t;
* P(in the top k): share of the resamples; P(the next one is really better): ``T_{B-1}(-gap / se)``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from numba import njit
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from roshap.attribution.influence import MIN_NONZERO, SAME, Influence, influence
from roshap.attribution.score import check_scores, score

#: Below this number of runs no statement on ranks is made: none was found that holds.
MIN_RUNS_FOR_RANKS = 20

#: Leading features whose rank intervals hold all at once.
SIMULTANEOUS = 50

_LEVEL = 0.975
_BLOCK = 512  # features compared with all others at a time
_FLAT = 1e-9  # a spread below this share of the mean is rounding
_CHILD = 0x5CE  # the child of the study's seed that resamples; replicates use small numbers


@dataclass(frozen=True)
class Resamples:
    """Scores of resamples of whole runs.

    Attributes
    ----------
    scores
        (R, p); ``inf`` where a resample has no spread.
    """

    scores: NDArray[np.float64]

    def log_spread(self) -> NDArray[np.float64]:
        """(p,) standard deviation of the log score over the resamples in which it is finite."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.scores)
        finite = np.isfinite(logs)
        count = finite.sum(axis=0)
        logs = np.where(finite, logs, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = logs.sum(axis=0) / count
            squares = np.where(finite, (logs - mean) ** 2, 0.0).sum(axis=0)
            return np.asarray(np.sqrt(squares / np.where(count > 1, count - 1, np.nan)))

    def in_top(self, sizes: Sequence[int]) -> NDArray[np.float64]:
        """(len(sizes), p) share of resamples in which a feature is among the k best.

        Features that tie share the places that they tie for.
        """
        n, p = self.scores.shape
        totals = np.zeros((len(sizes), p))
        wanted = np.asarray(sizes)[:, None]
        for row in self.scores:
            order = np.argsort(-row, kind="stable")
            ordered = row[order]
            starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
            lengths = np.diff(np.append(starts, p))
            share = np.clip((wanted - starts) / lengths, 0, 1)
            totals[:, order] += np.repeat(share, lengths, axis=1)
        return totals / n


def resample(S: ArrayLike, *, seed: int = 0, count: int | None = None) -> Resamples:
    """Score resamples of whole runs, drawn with replacement.

    The result for a feature does not depend, in any bit, on the other features or their order.

    Parameters
    ----------
    S : array_like of shape (B, p)
        Attributions, >= 0; B >= 2.
    seed : int
        The study's seed.
    count : int, optional
        Number of resamples: 1000 by default, 500 above 1000 features.
    """
    matrix = check_scores(S)
    n_runs, p = matrix.shape
    count = count or _draws(p)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_CHILD, n_runs)))
    times = rng.multinomial(n_runs, np.full(n_runs, 1 / n_runs), size=count).astype(np.int32)
    scores = np.zeros((p, count))
    for j in range(p):
        x = np.array(matrix[:, j], dtype=np.float64)
        if top := x.max():
            order = np.argsort(x, kind="stable")[n_runs - np.count_nonzero(x) :]
            _score_resamples(x[order] / top, order, times, scores[j])
            scores[j] *= top
    return Resamples(scores.T)


def _draws(p: int) -> int:
    """Return how many resamples are drawn for p features."""
    return 1000 if p <= 1000 else 500


@njit(cache=True, nogil=True)
def _score_resamples(values, order, times, out):  # type: ignore[no-untyped-def]  # numba infers
    """Score one feature in every resample.

    ``values`` (n1,) are its non-zero runs, ascending, in units of the largest; ``order`` (n1,)
    which runs those are; ``times`` (R, B) how often a resample has each run; ``out`` (R,) the
    scores.
    """
    n_runs, n_values = times.shape[1], len(values)
    # moments about the mean of all runs: resamples lie near it, so nothing cancels
    centre = values.sum() / n_runs
    for r in range(times.shape[0]):
        n1, first, second = 0, 0.0, 0.0
        for i in range(n_values):
            t = times[r, order[i]]
            away = values[i] - centre
            n1 += t
            first += t * away
            second += t * away * away
        if n1 == 0:
            out[r] = 0.0
            continue
        reached, i = times[r, order[0]], 0
        while reached <= (n1 - 1) // 2:
            i += 1
            reached += times[r, order[i]]
        low = values[i]
        while reached <= n1 // 2:
            i += 1
            reached += times[r, order[i]]
        first -= (n_runs - n1) * centre
        second += (n_runs - n1) * centre * centre
        mean = centre + first / n_runs
        variance = max(second - first * first / n_runs, 0.0) / (n_runs - 1)
        sd = math.sqrt(variance)
        median = (low + values[i]) / 2
        flat = sd <= _FLAT * mean
        out[r] = math.inf if flat else n1 / n_runs * median * mean / sd


def correction(n_runs: int) -> float:
    """Return J(B), which takes away the upward bias of mean / sd (Hedges 1981); NaN below 3."""
    if n_runs < 3:
        return math.nan
    half = (n_runs - 1) / 2
    return float(math.exp(special.gammaln(half) - special.gammaln(half - 0.5)) / math.sqrt(half))


def score_intervals(
    S: ArrayLike, *, seed: int = 0, resamples: Resamples | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """95 % intervals of the scores, for more runs of the same pipeline on the same data.

    Returns
    -------
    low, high : ndarray of float64, shape (p,)
        NaN for a feature with fewer than 5 non-zero runs or without spread.
    """
    matrix = check_scores(S)
    scored = score(matrix)
    spread = (resamples or resample(matrix, seed=seed)).log_spread()
    half = stats.t.ppf(_LEVEL, len(matrix) - 1) * spread
    known = (scored.n_nonzero >= MIN_NONZERO) & ~scored.deterministic
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = scored.roshap * np.exp(-half), scored.roshap * np.exp(half)
    return np.where(known, low, np.nan), np.where(known & np.isfinite(high), high, np.nan)


def rank_intervals(found: Influence, factors: Sequence[float] | None = None) -> NDArray[np.int64]:
    """Rank intervals: the places that a feature could have, given those that it is told from.

    Two features are told apart where their log scores differ by more than a factor times the
    standard error of the difference; two that both have fewer than 5 non-zero runs never are.

    Parameters
    ----------
    found
        Influence values of the p features.
    factors
        By default ``t_{B-1, .975}``, with which an interval holds for a feature by itself at 95 %.

    Returns
    -------
    ndarray of int64, shape (len(factors), p, 2)
        Lowest and highest rank.
    """
    p = len(found.log_score)
    factors = [float(stats.t.ppf(_LEVEL, found.n_runs - 1))] if factors is None else factors
    ranks = np.empty((len(factors), p, 2), dtype=np.int64)
    everyone = np.arange(p)
    for start in range(0, p, _BLOCK):
        some = everyone[start : start + _BLOCK]
        gap, error = _gaps(found, some)
        known = found.sure[some][:, None] | found.sure[None, :]
        for place, factor in enumerate(factors):
            apart = known & (np.abs(gap) > np.maximum(factor * error, SAME))
            ranks[place, some, 0] = 1 + (apart & (gap < 0)).sum(axis=1)
            ranks[place, some, 1] = p - (apart & (gap > 0)).sum(axis=1)
    return ranks


def told_apart(found: Influence, columns: Sequence[int]) -> NDArray[np.bool_]:
    """Say which of some features are told apart at 95 %, (m, m)."""
    some = np.asarray(columns, dtype=np.intp)
    gap, error = _gaps(found, some)
    factor = float(stats.t.ppf(_LEVEL, found.n_runs - 1))
    apart = np.abs(gap) > np.maximum(factor * error, SAME)
    known = found.sure[some][:, None] | found.sure[some][None, :]
    return np.asarray(apart[:, some] & known)


def _gaps(
    found: Influence, some: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``L_i - L_j`` and its standard error for i in ``some`` and every j, (len(some), p) each."""
    everyone = np.arange(len(found.log_score))
    variance = found.variance
    squared = variance[some][:, None] + variance[None, :] - 2 * found.covariance(some, everyone)
    with np.errstate(invalid="ignore"):
        gap = found.log_score[some][:, None] - found.log_score[None, :]
    gap[np.isnan(gap)] = 0.0  # two features without spread
    return gap, np.sqrt(np.maximum(squared, 0.0))


def simultaneous_factor(found: Influence, lead: NDArray[np.intp], *, seed: int = 0) -> float:
    """Return the factor with which the rank intervals of ``lead`` hold all at once at 95 %.

    The 95 % quantile of the largest ``|sum_b g_b (f_bi - f_bj)| / se_ij`` over the pairs of a
    leading and any other feature, g standard normal (max-T), times ``t_{B-1, .975} / 1.96``.
    """
    n_runs = found.n_runs
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_CHILD + 1, n_runs)))
    others = np.flatnonzero(found.sure & (found.variance > 0))
    lead = lead[np.isin(lead, others)]
    if lead.size == 0 or others.size < 2:
        return float(stats.t.ppf(_LEVEL, n_runs - 1))
    draws = _draws(len(found.log_score))
    noise = rng.standard_normal((draws, n_runs))
    moved = found.f[others] @ noise.T / math.sqrt((n_runs - 1) * n_runs)
    row = {int(j): place for place, j in enumerate(others)}
    largest = np.zeros(draws)
    for i in lead:
        _, error = _gaps(found, np.array([i]))
        apart = error[0, others] > 1e-9 * math.sqrt(found.variance[i])
        away = np.abs(moved[apart] - moved[row[int(i)]]) / error[0, others][apart, None]
        if away.size:
            np.maximum(largest, away.max(axis=0), out=largest)
    scale = float(stats.t.ppf(_LEVEL, n_runs - 1) / stats.norm.ppf(_LEVEL))
    return float(np.quantile(largest, 0.95)) * scale


def swap_probabilities(found: Influence, order: NDArray[np.intp]) -> NDArray[np.float64]:
    """P(the next feature in the ranking is really the better one), of each feature; last is NaN.

    Returns
    -------
    ndarray of float64, shape (p,)
        In the order of the columns. One half where the two cannot be told apart at all. Below .3
        it is 3-6 points too sure.
    """
    chances = np.full(len(order), np.nan)
    for i, j in pairwise(order):
        with np.errstate(invalid="ignore"):
            gap = found.log_score[i] - found.log_score[j]
        error = found.pair_error(int(i), int(j))
        if not found.sure[i] or gap <= SAME or math.isnan(gap):
            chances[i] = 0.5
        elif error == 0:
            chances[i] = 0.0
        else:
            chances[i] = stats.t.cdf(-gap / error, found.n_runs - 1)
    return chances


def certainty(S: ArrayLike, features: Sequence[str], *, k: int = 10, seed: int = 0) -> pd.DataFrame:
    """Intervals and probabilities of every feature.

    Parameters
    ----------
    S : array_like of shape (B, p)
        Attributions of one output, >= 0; B >= 2.
    features : sequence of str, length p
        Unique names.
    k : int
        Size of the top set.
    seed : int
        The study's seed, for the resamples.

    Returns
    -------
    DataFrame
        p rows in the order of the columns: ``roshap_low``, ``roshap_high``, ``roshap_corrected``,
        ``rank_low``, ``rank_high``, ``rank_low_all``, ``rank_high_all``, ``p_top_k``,
        ``p_swap_next``; see :data:`roshap.attribution.ranking.GLOSSARY`. Below 20 runs nothing is
        said about ranks.
    """
    matrix = check_scores(S)
    n_runs, p = matrix.shape
    scored = score(matrix)
    drawn = resample(matrix, seed=seed)
    low, high = score_intervals(matrix, resamples=drawn)
    finite = np.where(scored.deterministic, np.nan, scored.roshap)
    table: dict[str, object] = {
        "roshap_low": low,
        "roshap_high": high,
        "roshap_corrected": finite * correction(n_runs),
    }
    ranks = np.full((p, 4), -1)
    in_top, swap = np.full(p, np.nan), np.full(p, np.nan)
    if n_runs >= MIN_RUNS_FOR_RANKS:
        found = influence(matrix)
        order = found.order(features)
        lead = order[:SIMULTANEOUS]
        alone = float(stats.t.ppf(_LEVEL, n_runs - 1))
        together = simultaneous_factor(found, lead, seed=seed)
        each, every = rank_intervals(found, [alone, together])
        ranks[:, :2] = each
        ranks[lead, 2:] = every[lead]
        in_top = drawn.in_top([k])[0]
        swap = swap_probabilities(found, order)
    for place, name in enumerate(("rank_low", "rank_high", "rank_low_all", "rank_high_all")):
        column = pd.array(ranks[:, place], dtype="Int64")
        column[ranks[:, place] < 0] = pd.NA
        table[name] = column
    return pd.DataFrame({**table, "p_top_k": in_top, "p_swap_next": swap})
