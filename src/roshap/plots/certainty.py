"""How sure a ranking is: intervals, top-k probabilities, ties, settling, and data against seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import (
    FixedLocator,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    PercentFormatter,
    ScalarFormatter,
)
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from roshap.attribution.influence import MIN_NONZERO, influence
from roshap.attribution.intervals import MIN_RUNS_FOR_RANKS, resample, told_apart
from roshap.attribution.stopping import Decision, StopRule, separate
from roshap.errors import DataError
from roshap.plots.style import FIT, GREY, INK, PALE, ROSHAP, context, names_width, shorten

COVERS = "for more runs of this pipeline on this data"
_FEWEST = "fewer than 20 runs:\nnothing is said about ranks"
_POINTS = 25  # of the curve between looks


def intervals(
    table: pd.DataFrame,
    *,
    top: int = 20,
    units: str = "",
    title: str = "How sure the ranking is",
) -> Figure:
    """Draw the leading features' scores and ranks with their 95 % intervals.

    Parameters
    ----------
    table : DataFrame
        Of :func:`roshap.attribution.ranking.rank`, best feature first.
    top : int
        How many features are drawn.
    units : str
        Units of the score.
    title : str
        What the figure shows, and of which data and model.
    """
    leading = _leading(table, top)
    places = np.arange(len(leading))
    with context():
        labels = [shorten(name) for name in leading["feature"]]
        fig = Figure(
            figsize=(8.2 + names_width(labels), 1.9 + 0.29 * len(leading)), layout="constrained"
        )
        scores, ranks = fig.subplots(1, 2, sharey=True, width_ratios=(1.2, 1))
        _score_intervals(scores, leading, places)
        scores.set_xlabel(f"RoSHAP score{f' [{units}]' if units else ''}")
        scores.set_yticks(places, labels)
        scores.set_ylim(len(leading) - 0.4, -0.6)
        _rank_intervals(ranks, leading, places)
        ranks.set_xlabel("Rank")
        for ax in (scores, ranks):
            ax.tick_params(axis="y", length=0)
            ax.grid(axis="x")
        ranks.tick_params(labelleft=False)
        fig.suptitle(title)
        fig.legend(
            handles=[
                Line2D([], [], color=ROSHAP, marker="o", ms=4, label=f"95 % interval, {COVERS}"),
                Line2D([], [], color=PALE, lw=5, label="all ranks drawn at once at 95 %"),
            ],
            loc="outside lower center",
            ncols=2,
        )
    return fig


def _score_intervals(ax: Axes, leading: pd.DataFrame, places: NDArray[np.intp]) -> None:
    values, low, high = (
        leading[name].to_numpy(dtype=float) for name in ("roshap", "roshap_low", "roshap_high")
    )
    ax.hlines(places, low, high, color=ROSHAP, lw=1.6)
    ax.plot(values, places, "o", color=ROSHAP, ms=4.5)
    for place in places[leading["deterministic"].to_numpy(dtype=bool)]:
        ax.annotate("no spread: above all scores", (0.02, place), **_IN_AXES, va="center")
    shown = np.concatenate([values, low, high])
    shown = shown[np.isfinite(shown) & (shown > 0)]
    if shown.size and shown.max() > 30 * shown.min() and (values[np.isfinite(values)] > 0).all():
        ax.set_xscale("log")
        _plain_decades(ax, float(shown.min()), float(shown.max()))
    else:
        ax.set_xlim(0, 1.06 * shown.max() if shown.size else 1)
        ax.xaxis.set_major_locator(MaxNLocator(5))


_IN_AXES: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "fontsize": 8, "color": INK}


def _plain_decades(ax: Axes, low: float, high: float) -> None:
    """Tick a logarithmic axis at powers of ten, and at 2 and 5 where there are few of them."""
    few = math.log10(high / low) < 2.5
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,), numticks=12))
    if low >= 1e-3 and high < 1e5:
        formatter = ScalarFormatter()
        formatter.set_scientific(False)
        ax.xaxis.set_major_formatter(formatter)
    ax.xaxis.set_minor_formatter(NullFormatter())


def _rank_intervals(ax: Axes, leading: pd.DataFrame, places: NDArray[np.intp]) -> None:
    low, high, low_all, high_all = (
        leading[name].to_numpy(dtype=float, na_value=np.nan)
        for name in ("rank_low", "rank_high", "rank_low_all", "rank_high_all")
    )
    rank = leading["rank"].to_numpy(dtype=float)
    if np.isnan(low).all():
        ax.text(0.5, 0.5, _FEWEST, transform=ax.transAxes, ha="center", va="center", color=GREY)
    ax.hlines(places, low_all, high_all, color=PALE, lw=5)
    ax.hlines(places, low, high, color=ROSHAP, lw=1.6)
    ax.plot(rank, places, "o", color=ROSHAP, ms=4.5)
    largest = np.nanmax(np.concatenate([rank, high, high_all]))
    ax.set_xlim(0.5, largest + 0.5)
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))


def top_k(
    S: ArrayLike,
    features: Sequence[str],
    *,
    k: int = 10,
    seed: int = 0,
    title: str = "Probability of being among the k best",
) -> Figure:
    """Draw each leading feature's probability of being among the k best, as k grows.

    Parameters
    ----------
    S : array_like of shape (B, p)
        Attributions, >= 0.
    features : sequence of str, length p
    k : int
        The k that is asked for; drawn as a line.
    seed : int
        The study's seed, for the resamples.
    title : str
        What the figure shows, and of which data and model.
    """
    matrix = np.asarray(S)
    p = matrix.shape[1]
    leading = influence(matrix).order(features)[: max(20, min(2 * k, 40))]
    sizes = np.arange(1, min(p, max(20, 2 * k)) + 1)
    with context():
        labels = [shorten(features[j]) for j in leading]
        fig = Figure(
            figsize=(4.2 + names_width(labels) + 0.16 * len(sizes), 1.7 + 0.27 * len(leading)),
            layout="constrained",
        )
        ax = fig.subplots()
        ax.set_yticks(np.arange(len(leading)), labels)
        if len(matrix) < MIN_RUNS_FOR_RANKS:
            ax.set(ylim=(len(leading) - 0.5, -0.5), xlim=(0.5, len(sizes) + 0.5))
            ax.text(0.5, 0.5, _FEWEST, transform=ax.transAxes, ha="center", va="center")
        else:
            chance = resample(matrix, seed=seed).in_top(sizes.tolist())[:, leading].T
            _curves(ax, chance, sizes)
        if k < len(sizes):
            ax.axvline(k + 0.5, color=FIT, lw=1.4, ls="--")
        ax.set_xlabel("k")
        ax.xaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))
        ax.tick_params(axis="y", length=0)
        fig.suptitle(title)
        fig.legend(
            handles=[
                Patch(color=ROSHAP, label="P(among the k best), from 0 to 1 in a row's height"),
                Line2D([], [], color=FIT, ls="--", label=f"k = {k}"),
            ],
            loc="outside lower center",
            ncols=2,
            title=f"Share of resamples of the runs: {COVERS}",
        )
    return fig


def _curves(ax: Axes, chance: NDArray[np.float64], sizes: NDArray[np.intp]) -> None:
    """Draw a step curve for each feature in a lane of its own."""
    edges = np.arange(0.5, len(sizes) + 1.0)
    for place, row in enumerate(chance):
        base = place + 0.42
        ax.hlines(base, edges[0], edges[-1], color=PALE, lw=0.6)
        ax.stairs(base - 0.84 * row, edges, baseline=base, fill=True, color=ROSHAP, lw=0)
    ax.set(ylim=(len(chance) - 0.4, -0.6), xlim=(edges[0], edges[-1]))


def ties(
    S: ArrayLike,
    features: Sequence[str],
    *,
    decision: Decision | None = None,
    top: int = 20,
    title: str = "Which features are told apart",
) -> Figure:
    """Draw groups of leading features that cannot be told apart, and where a top set is settled.

    A bar joins neighbours in the ranking of which the best and the worst are not told apart at
    95 %; a feature under no bar is told from both its neighbours.

    Parameters
    ----------
    S : array_like of shape (B, p)
        Attributions, >= 0.
    features : sequence of str, length p
    decision : Decision, optional
        Which top sets are settled.
    top : int
        How many features are drawn.
    title : str
        What the figure shows, and of which data and model.
    """
    found = influence(S)
    order = found.order(features)[:top]
    bars = _tie_bars(told_apart(found, order.tolist())) if found.n_runs >= 2 else []
    settled = _settled_sizes(decision)
    with context():
        labels = [shorten(features[j]) for j in order]
        fig = Figure(
            figsize=(4.6 + names_width(labels), 1.7 + 0.29 * len(order)),
            layout="constrained",
        )
        ax = fig.subplots()
        lanes = _lanes(bars)
        for (first, last), lane in zip(bars, lanes, strict=True):
            ax.plot([lane, lane], [first - 0.3, last + 0.3], color=ROSHAP, lw=4)
        width = max(lanes, default=0) + 1
        for k in range(1, len(order)):
            if k in settled:
                ax.axhline(k - 0.5, color=FIT, lw=1.4)
        if found.n_runs < MIN_RUNS_FOR_RANKS:
            ax.text(0.5, 0.5, _FEWEST, transform=ax.transAxes, ha="center", va="center")
        ax.set_yticks(np.arange(len(order)), labels)
        ax.set(xlim=(-0.5, max(width, 9)), ylim=(len(order) - 0.4, -0.6), xticks=[])
        ax.tick_params(axis="y", length=0)
        for side in ("bottom", "left"):
            ax.spines[side].set_visible(False)
        fig.suptitle(title)
        handles = [Line2D([], [], color=ROSHAP, lw=4, label="not told apart at 95 %")]
        if settled:
            tolerance = f"{decision.eps:.0%}" if decision else ""
            handles.append(
                Line2D([], [], color=FIT, label=f"the set above is settled ({tolerance} tolerance)")
            )
        fig.legend(handles=handles, loc="outside lower center", ncols=1)
    return fig


def _settled_sizes(decision: Decision | None) -> set[int]:
    if decision is None:
        return set()
    return {*decision.settled_sizes, *([decision.k] if decision.settled else [])}


def _tie_bars(apart: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Find the longest stretches of the ranking whose ends are not told apart."""
    bars: list[tuple[int, int]] = []
    for first in range(len(apart)):
        together = np.flatnonzero(~apart[first, first:])
        last = first + int(together.max())
        if last > first and (not bars or last > bars[-1][1]):
            bars.append((first, last))
    return bars


def _lanes(bars: Sequence[tuple[int, int]]) -> list[int]:
    """Give each bar the first lane in which it meets no other."""
    ends: list[int] = []
    lanes = []
    for first, last in bars:
        lane = next((place for place, end in enumerate(ends) if end < first), len(ends))
        ends[lane : lane + 1] = [last]
        lanes.append(lane)
    return lanes


def settling(
    S: ArrayLike,
    features: Sequence[str],
    rule: StopRule,
    decision: Decision | None = None,
    *,
    title: str = "Are there enough runs?",
) -> Figure:
    """Draw the weakest pair's statistic as runs are added, with the looks that decided.

    Parameters
    ----------
    S : array_like of shape (B, p)
        Attributions, >= 0.
    features : sequence of str, length p
    rule : StopRule
        Its tolerance and level; the size is the decision's where there is one.
    decision : Decision, optional
        With the looks.
    title : str
        What the figure shows, and of which data and model.
    """
    matrix = np.asarray(S, dtype=float)
    n_runs, p = matrix.shape
    k = decision.k if decision else (rule.k if rule.k != "auto" else rule.k_range[0])
    if p < 2:
        raise DataError("one feature: nothing is left out, so nothing has to settle")
    k = min(k, p - 1)
    with context():
        fig = Figure(figsize=(7.4, 4.0), layout="constrained")
        ax = fig.subplots()
        counts = np.unique(np.linspace(min(20, n_runs), n_runs, _POINTS).round().astype(int))
        values = [separate(matrix[:b], features, most=k, eps=rule.eps).t_min(k) for b in counts]
        drawn = np.where(np.isfinite(values), values, np.nan)
        ax.plot(counts, drawn, color=GREY, lw=1.2)
        looks = decision.looks if decision else ()
        level = rule.alpha / (len(rule.looks) if decision is None or decision.planned else 1)
        grid = np.linspace(max(counts[0], 3), max(n_runs, counts[0] + 1), 60)
        wanted = looks[-1].critical if looks else float(stats.t.ppf(1 - level, n_runs - 1))
        ax.plot(
            grid,
            np.full(len(grid), wanted) if looks else stats.t.ppf(1 - level, grid - 1),
            color=FIT,
            ls="--",
        )
        for one in looks:
            if one.t_min is not None:
                face = ROSHAP if one.settled else "white"
                ax.plot(one.runs, one.t_min, "o", ms=7, mec=ROSHAP, mfc=face, zorder=3)
        highest = np.nanmax([wanted, *drawn]) if np.isfinite(drawn).any() else wanted
        ax.set_ylim(min(0.0, float(np.nanmin([0.0, *drawn]))), 1.12 * highest)
        ax.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        ax.set_xlabel("Runs")
        ax.set_ylabel(f"Weakest pair at k = {k}:\n(gap + tolerance) / standard error")
        ax.grid(axis="y")
        if not np.isfinite(drawn).any():
            why = f"a member has fewer than {MIN_NONZERO} non-zero runs, or nothing has spread"
            ax.text(0.5, 0.5, why, transform=ax.transAxes, ha="center", color=GREY)
        fig.suptitle(title)
        fig.legend(
            handles=[
                Line2D([], [], color=ROSHAP, marker="o", ls="", label="look: settled"),
                Line2D([], [], color=ROSHAP, marker="o", ls="", mfc="white", label="not settled"),
                Line2D([], [], color=FIT, ls="--", label="what a look has to reach"),
                Line2D([], [], color=GREY, label="between looks (decides nothing)"),
            ],
            loc="outside lower center",
            ncols=4,
        )
    return fig


def variance_shares(
    table: pd.DataFrame,
    *,
    top: int = 20,
    pooled: tuple[float, float] | None = None,
    draws: int | None = None,
    title: str = "Where the spread comes from",
) -> Figure:
    """Draw how much of each leading feature's spread is the data's and how much the model seed's.

    Parameters
    ----------
    table : DataFrame
        Ranking with ``data_share``.
    top : int
        How many features are drawn.
    pooled : (float, float), optional
        Share over the leading features and its standard error.
    draws : int, optional
        Runs that were fitted with two seeds.
    title : str
        What the figure shows, and of which data and model.
    """
    leading = _leading(table, top)
    places = np.arange(len(leading))
    share = leading["data_share"].to_numpy(dtype=float)
    with context():
        labels = [shorten(name) for name in leading["feature"]]
        fig = Figure(
            figsize=(5.2 + names_width(labels), 1.9 + 0.29 * len(leading)), layout="constrained"
        )
        ax = fig.subplots()
        ax.barh(places, np.nan_to_num(share), 0.66, color=ROSHAP)
        rest = np.where(np.isnan(share), 0.0, 1 - share)
        ax.barh(places, rest, 0.66, left=np.nan_to_num(share), color=PALE)
        for place in places[np.isnan(share)]:
            ax.annotate("no spread in these runs", (0.02, place), **_IN_AXES, va="center")
        ax.set_yticks(places, labels)
        ax.set(xlim=(0, 1), ylim=(len(leading) - 0.4, -0.6))
        ax.xaxis.set_major_locator(FixedLocator([0, 0.25, 0.5, 0.75, 1]))
        ax.xaxis.set_major_formatter(PercentFormatter(1.0))
        about = f" ({draws} runs fitted with two seeds)" if draws else ""
        ax.set_xlabel(f"Share of the variance of S{about}")
        ax.tick_params(axis="y", length=0)
        handles: list[Patch | Line2D] = [
            Patch(color=ROSHAP, label="data drawn"),
            Patch(color=PALE, label="model seed, given the data"),
        ]
        if pooled is not None and math.isfinite(pooled[0]):
            ax.axvline(pooled[0], color=FIT, ls="--")
            error = f" ± {pooled[1]:.0%}" if math.isfinite(pooled[1]) else ""
            label = f"mean of the leading: {pooled[0]:.0%}{error}"
            handles.append(Line2D([], [], color=FIT, ls="--", label=label))
        fig.suptitle(title)
        fig.legend(handles=handles, loc="outside lower center", ncols=3)
    return fig


def _leading(table: pd.DataFrame, top: int) -> pd.DataFrame:
    if table.empty:
        raise DataError("a ranking without features cannot be drawn")
    return table.head(top)
