"""What the bootstrap distribution of an attribution looks like, and which summary is honest.

The runs with an attribution of exactly zero are a point mass, P0, and are never smoothed into a
density (arXiv 2605.15154: ``pi0 * delta_0 + (1 - pi0) * f``). The remaining, non-zero runs are

* fewer than 20: summarised by mean and sd, and their shape is called unknown;
* 20 or more: summarised by a kernel density estimate, and called ``gaussian-like`` where their
  L-moment ratios lie within 0.1 of the normal distribution's (0, 0.1226).

A test of normality is not used: its p-value measures the number of runs, not the shape.

The paper argues for a Gaussian S from a sum over independent rows (Lyapunov's condition). Where
row sums are given, the Lyapunov ratio and the share of the largest row are reported, so that a
reader sees whether that argument can hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal, Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from roshap.attribution.score import check_scores, is_constant, sorted_blocks
from roshap.errors import DataError

Label = Literal["all zero", "constant", "shape unknown", "gaussian-like", "skewed/heavy"]
Summary = Literal["zero", "constant", "mean and sd", "gaussian", "kde"]

#: Non-zero runs below which nothing is said about shape.
MIN_RUNS_FOR_SHAPE = 20

#: tau4 of the normal distribution (its tau3 is 0), and the distance still called normal.
GAUSSIAN_TAU4 = 0.1226
GAUSSIAN_RADIUS = 0.1

#: Berry-Esseen: a sum of independent terms is within 0.56 x (Lyapunov ratio) of the normal
#: distribution function (Shevtsova 2010), so that below this ratio it is within 0.1.
LYAPUNOV_LIMIT = 0.1 / 0.56


class RowMoments(Protocol):
    """What is needed of the row summaries of a bootstrap: sums over the kept rows.

    With ``x_ib = |phi_ijk|`` where row i was out of bag in run b and 0 elsewhere, ``v_i`` its
    variance over the runs and ``t_i = mean_b |x_ib - mean_i|**3``.
    """

    @property
    def rows(self) -> NDArray[np.integer]:
        """Indices of the kept rows, shape (m,)."""

    @property
    def n_rows_total(self) -> int:
        """All rows, n >= m."""

    @property
    def var_sum(self) -> NDArray[np.floating]:
        """Sum of ``v_i``, shape (p, K)."""

    @property
    def abs3_sum(self) -> NDArray[np.floating]:
        """Sum of ``t_i``, shape (p, K)."""

    @property
    def var_max(self) -> NDArray[np.floating]:
        """Largest ``v_i``, shape (p, K)."""


@dataclass(frozen=True)
class Distribution:
    """Diagnostics of every feature's bootstrap distribution.

    Attributes
    ----------
    p0_low, p0_high : ndarray of float64, shape (p,)
        95 % Wilson interval of P0, for more runs of the same pipeline on the same data.
    skewness : ndarray of float64, shape (p,)
        Of the non-zero runs, bias-corrected; NaN below 3 of them or without spread.
    tau3, tau4 : ndarray of float64, shape (p,)
        L-moment ratios of the non-zero runs; NaN below 3 / 4 of them or without spread.
    lyapunov : ndarray of float64, shape (p,)
        ``sum_i E|x_i - E x_i|^3 / (sum_i Var x_i)^(3/2)`` over rows; 0 for an ideal Gaussian
        sum. NaN without row sums. Estimated where ``row_share_used`` < 1.
    max_row_share : ndarray of float64, shape (p,)
        Largest single row's share of the rows' variance. NaN without row sums; a lower bound
        where ``row_share_used`` < 1.
    label : ndarray of str, shape (p,)
        The shape: a ``Label``.
    summary : ndarray of str, shape (p,)
        How S should be reported: a ``Summary``. ``gaussian`` (mean and sd say it all) needs a
        ``gaussian-like`` shape and no zero run.
    row_share_used : float
        Share of the rows that the row diagnostics were computed from; NaN without row sums.
    """

    p0_low: NDArray[np.float64]
    p0_high: NDArray[np.float64]
    skewness: NDArray[np.float64]
    tau3: NDArray[np.float64]
    tau4: NDArray[np.float64]
    lyapunov: NDArray[np.float64]
    max_row_share: NDArray[np.float64]
    label: NDArray[np.str_]
    summary: NDArray[np.str_]
    row_share_used: float

    def to_frame(self) -> pd.DataFrame:
        """Return the diagnostics as a table, a row per feature, in the order of the features."""
        return pd.DataFrame({field.name: getattr(self, field.name) for field in fields(self)})


def describe(S: ArrayLike, rows: RowMoments | None = None, *, output: int = 0) -> Distribution:
    """Diagnose the bootstrap distribution of every feature.

    Parameters
    ----------
    S : array_like of shape (B, p)
        Attributions of one output, >= 0; B >= 2.
    rows : RowMoments, optional
        Sums over rows of the same bootstrap; without them the row diagnostics are NaN.
    output : int
        Which of the K outputs of ``rows`` S belongs to.

    Returns
    -------
    Distribution

    Raises
    ------
    DataError
        If S is unfit (see :func:`roshap.attribution.score.score`) or ``rows`` does not fit it.
    """
    matrix = check_scores(S)
    n_runs, p = matrix.shape
    counts = np.empty(p, dtype=np.int64)
    constant = np.zeros(p, dtype=bool)
    shape = np.full((3, p), np.nan)
    for block, x in sorted_blocks(matrix):
        counts[block] = np.count_nonzero(x, axis=1)
        # Features with equally many non-zero runs form a rectangle, and so one call.
        for count in np.unique(counts[block]):
            if count == 0:
                continue
            members = np.flatnonzero(counts[block] == count)
            nonzero = x[members, n_runs - count :]
            flat = is_constant(nonzero)
            constant[block.start + members[flat]] = True
            shape[:, block.start + members[~flat]] = _shape_statistics(nonzero[~flat])
    label = _labels(counts, constant, shape[1], shape[2])
    lyapunov, max_row_share, row_share_used = _row_diagnostics(rows, p, output)
    p0_low, p0_high = wilson(n_runs - counts, n_runs)
    return Distribution(
        p0_low=p0_low,
        p0_high=p0_high,
        skewness=shape[0],
        tau3=shape[1],
        tau4=shape[2],
        lyapunov=lyapunov,
        max_row_share=max_row_share,
        label=label,
        summary=_summaries(label, counts, n_runs),
        row_share_used=row_share_used,
    )


def wilson(counts: ArrayLike, n_runs: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """95 % Wilson intervals of shares ``counts / n_runs``.

    Parameters
    ----------
    counts : array_like of int, shape (p,)
        Runs in which the event happened.
    n_runs : int
        All runs.

    Returns
    -------
    low, high : ndarray of float64, shape (p,)
    """
    distinct, place = np.unique(np.asarray(counts, dtype=np.int64), return_inverse=True)
    intervals = np.array(
        [
            stats.binomtest(int(count), n_runs).proportion_ci(0.95, method="wilson")
            for count in distinct
        ],
        dtype=np.float64,
    ).reshape(-1, 2)
    return intervals[place, 0], intervals[place, 1]


def _shape_statistics(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Skewness, tau3 and tau4 of each ascending, non-constant row, shape (3, m)."""
    m, count = x.shape
    result = np.full((3, m), np.nan)
    if m == 0 or count < 3:
        return result
    # Both are free of scale; in units of the maximum no power of x can overflow.
    unit = x / x[:, -1:]
    order = min(count, 4)
    result[0] = stats.skew(unit, axis=1, bias=False)
    result[1 : order - 1] = stats.lmoment(unit, np.arange(3, order + 1), axis=1, sorted=True)
    return result


def _labels(
    counts: NDArray[np.int64],
    constant: NDArray[np.bool_],
    tau3: NDArray[np.float64],
    tau4: NDArray[np.float64],
) -> NDArray[np.str_]:
    near_normal = np.hypot(tau3, tau4 - GAUSSIAN_TAU4) < GAUSSIAN_RADIUS
    return np.select(
        [counts == 0, counts < MIN_RUNS_FOR_SHAPE, constant, near_normal],
        ["all zero", "shape unknown", "constant", "gaussian-like"],
        "skewed/heavy",
    )


def _summaries(label: NDArray[np.str_], counts: NDArray[np.int64], n_runs: int) -> NDArray[np.str_]:
    return np.select(
        [
            label == "all zero",
            label == "shape unknown",
            label == "constant",
            (label == "gaussian-like") & (counts == n_runs),
        ],
        ["zero", "mean and sd", "constant", "gaussian"],
        "kde",
    )


def _row_diagnostics(
    rows: RowMoments | None, p: int, output: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Lyapunov ratio (p,), largest row's share (p,), and the share of rows they rest on."""
    if rows is None:
        return np.full(p, np.nan), np.full(p, np.nan), float("nan")
    if rows.var_sum.ndim != 2 or len(rows.var_sum) != p:
        raise DataError(
            f"row sums of shape {rows.var_sum.shape} do not belong to attributions "
            f"of {p} features: expected ({p}, outputs)"
        )
    if not 0 <= output < rows.var_sum.shape[1]:
        raise DataError(f"row sums have outputs 0 to {rows.var_sum.shape[1] - 1}, not {output}")
    used = len(rows.rows) / rows.n_rows_total
    variance, third, largest = (
        np.asarray(sums[:, output], dtype=np.float64)
        for sums in (rows.var_sum, rows.abs3_sum, rows.var_max)
    )
    scale = variance**1.5
    # m of n rows kept: the sums grow by n / m, so the ratio shrinks by sqrt(m / n).
    lyapunov = np.divide(third, scale, out=np.full(p, np.nan), where=scale > 0) * used**0.5
    share = np.divide(largest, variance, out=np.full(p, np.nan), where=variance > 0) * used
    return lyapunov, share, used


@dataclass(frozen=True)
class Density:
    """The distribution of one feature's S, for drawing: a mass at zero and a density apart.

    Attributes
    ----------
    p0 : float
        Share of runs that are exactly zero.
    values : ndarray of float64, shape (n1,)
        The non-zero runs, ascending.
    mean, sd : float
        Of the non-zero runs (ddof = 1); NaN for none / for fewer than two.
    grid : ndarray of float64, shape (points,)
        Where the density is given, in the units of S; empty where ``kde`` is None.
    kde : ndarray of float64, shape (points,), or None
        Density of the non-zero runs (integrates to 1, no mass below zero). None where there
        are fewer than 20 or where they do not differ: no shape is claimed then.
    gaussian : ndarray of float64, shape (points,), or None
        Normal density with the same mean and sd, None with ``kde``.
    """

    p0: float
    values: NDArray[np.float64]
    mean: float
    sd: float
    grid: NDArray[np.float64]
    kde: NDArray[np.float64] | None
    gaussian: NDArray[np.float64] | None


def density(x: ArrayLike, *, points: int = 256) -> Density:
    """Estimate the distribution of one feature's S.

    The kernel is Gaussian with Silverman's robust bandwidth (1986, eq. 3.31), and the estimate is
    folded at zero because S cannot be negative.

    Parameters
    ----------
    x : array_like of shape (B,)
        The feature's S over the runs, >= 0.
    points : int
        Length of the grid.

    Returns
    -------
    Density

    Raises
    ------
    DataError
        If x is unfit (see :func:`roshap.attribution.score.score`).
    """
    runs = np.sort(check_scores(np.reshape(np.asarray(x), (-1, 1)))[:, 0].astype(np.float64))
    values = runs[runs > 0]
    p0 = 1 - len(values) / len(runs)
    mean = float(values.mean()) if len(values) else float("nan")
    sd = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
    flat = len(values) > 0 and bool(is_constant(values[None, :])[0])
    if len(values) < MIN_RUNS_FOR_SHAPE or flat:
        return Density(p0, values, mean, 0.0 if flat else sd, np.empty(0), None, None)
    kernel = stats.gaussian_kde(values / mean, bw_method=_bandwidth(values, sd))
    reach = 3 * kernel.factor * sd
    grid = np.linspace(max(0.0, values[0] - reach), values[-1] + reach, points)
    kde = (kernel(grid / mean) + kernel(-grid / mean)) / mean
    return Density(p0, values, mean, sd, grid, kde, stats.norm.pdf(grid, mean, sd))


def _bandwidth(values: NDArray[np.float64], sd: float) -> float:
    """Silverman's rule in units of sd; the quartiles keep a long tail from widening it."""
    quartiles = float(stats.iqr(values)) / 1.349
    spread = min(sd, quartiles) if quartiles > 0 else sd
    return 0.9 * float(len(values)) ** -0.2 * spread / sd


@dataclass(frozen=True)
class Verdict:
    """What can be said of the whole data set.

    Attributes
    ----------
    shape : str
        ``gaussian``, ``mixed``, ``not gaussian`` or ``unknown``.
    sentence : str
        The same for a reader, with the numbers it rests on.
    """

    shape: Literal["gaussian", "mixed", "not gaussian", "unknown"]
    sentence: str


def verdict(table: pd.DataFrame, *, top: int = 10) -> Verdict:
    """Say whether the leading features' distributions are Gaussian.

    Gaussian where at least three quarters of the leading features with a known shape are
    ``gaussian-like`` and have no zero runs, not Gaussian where at most one quarter are.

    Parameters
    ----------
    table : DataFrame
        A ranking of :func:`roshap.attribution.ranking.rank`, best feature first.
    top : int
        How many leading features are judged.

    Returns
    -------
    Verdict
    """
    leading = table.head(top)
    judged = leading[leading["distribution"].isin(["gaussian-like", "skewed/heavy"])]
    if judged.empty:
        return Verdict("unknown", _why_unknown(leading))
    normal = int((judged["summary"] == "gaussian").sum())
    share = normal / len(judged)
    zeros = int((judged["p0"] > 0).sum())
    found = (
        f"{normal} of the {len(judged)} leading features whose shape is known "
        f"{'has' if normal == 1 else 'have'} a Gaussian-like distribution without zero runs"
    )
    if zeros:
        found += f" ({zeros} with zero runs, P0 up to {judged['p0'].max():.0%})"
    found += _row_clause(judged)
    if share >= 0.75:
        return Verdict("gaussian", f"Gaussian: {found}. Mean and sd summarise them.")
    advice = "Read the density of the non-zero runs with P0 beside it, not mean and sd"
    if share <= 0.25:
        return Verdict("not gaussian", f"Not Gaussian: {found}. {advice}.")
    return Verdict("mixed", f"Partly Gaussian: {found}. {advice}, where the label says so.")


def _why_unknown(leading: pd.DataFrame) -> str:
    labels: Sequence[str] = leading["distribution"].tolist()
    if labels and set(labels) == {"all zero"}:
        return "No distribution: every attribution of every run is zero."
    if "shape unknown" in labels:
        return (
            f"Shape unknown: no leading feature has {MIN_RUNS_FOR_SHAPE} non-zero runs; "
            "mean and sd are reported, and nothing is said about shape."
        )
    return "No spread: the leading features' attributions are the same in every run."


def _row_clause(judged: pd.DataFrame) -> str:
    """Say what the row sums show, or nothing where there are none."""
    ratio, share = judged["lyapunov"].median(), judged["max_row_share"].median()
    if np.isnan(ratio):
        return ""
    few = ratio > LYAPUNOV_LIMIT
    reading = "few rows carry the sum" if few else "many rows share the sum"
    sampled = " estimated from a sample of the rows," if judged["row_share_used"].min() < 1 else ""
    return (
        f"; {reading} (median Lyapunov ratio {ratio:.2f},{sampled} "
        f"{'above' if few else 'within'} the {LYAPUNOV_LIMIT:.2f} that a sum of independent rows "
        f"needs to be near-normal; largest single row {share:.1%} of the variance)"
    )
