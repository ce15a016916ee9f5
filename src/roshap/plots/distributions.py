"""How attributions vary over bootstrap runs: the paper's figures 1, 3 and 4."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import ArrayLike, NDArray

from roshap.attribution.attributions import Aggregate
from roshap.attribution.distribution import Density, density
from roshap.attribution.score import check_scores
from roshap.errors import DataError
from roshap.plots.style import (
    CATEGORIES,
    FIT,
    GREY,
    HATCHES,
    INK,
    PALE,
    ROSHAP,
    ZERO,
    attribution_label,
    context,
    names_width,
    shorten,
)

#: How single runs are drawn where they have no density.
_DOTS: dict[str, Any] = {"marker": "o", "ls": "", "ms": 3.5}


def single_rounds(
    S: ArrayLike,
    features: Sequence[str],
    *,
    rounds: Sequence[int] = (0, 1, 2),
    top: int = 10,
    units: str = "",
    aggregate: Aggregate = "sum",
    title: str = "Leading features of single runs",
) -> Figure:
    """Draw the leading features of single runs side by side (figure 1 of the paper).

    A feature that leads in several of the runs has the same colour in each; one that leads in a
    single run is grey.

    Parameters
    ----------
    S : array_like of shape (B, p)
        Attributions, >= 0.
    features : sequence of str, length p
    rounds : sequence of int
        Which runs; those that S does not have are left out.
    top : int
        Features per run; those with an attribution of zero are left out.
    units : str
        Units of S.
    aggregate : {"sum", "mean"}
        What S is over a run's out-of-bag rows.
    title : str
        What the figure shows, and of which data and model.

    Returns
    -------
    Figure
    """
    matrix, names = _checked(S, features)
    shown = [number for number in rounds if 0 <= number < len(matrix)]
    if not shown:
        raise DataError(f"no run to draw: {list(rounds)} of runs 0 to {len(matrix) - 1}")
    leaders = [_leaders(matrix[number], names, top) for number in shown]
    looks = _shared_looks(leaders)
    largest = max(float(matrix[number].max()) for number in shown)
    longest = max(1, *(len(best) for best in leaders))
    with context():
        fig = Figure(figsize=(3.3 * len(shown), 1.9 + 0.42 * longest), layout="constrained")
        axes = fig.subplots(1, len(shown), squeeze=False, sharex=True)[0]
        for ax, number, best in zip(axes, shown, leaders, strict=True):
            for place, j in enumerate(best):
                colour, hatch = looks.get(j, (PALE, ""))
                ax.barh(
                    place, matrix[number, j], 0.42, color=colour, hatch=hatch, edgecolor="white"
                )
                ax.annotate(
                    shorten(names[j]),
                    (0, place - 0.26),
                    xytext=(2, 0),
                    textcoords="offset points",
                    va="bottom",
                    fontsize=8,
                )
            if not best:
                _say(ax, "every attribution\nis zero")
            ax.set(title=f"Run {number + 1}", ylim=(longest - 0.5, -0.75), yticks=[])
            ax.set_xlim(0, 1.04 * largest if largest > 0 else 1)
            ax.xaxis.set_major_locator(MaxNLocator(4))
        fig.suptitle(title)
        handles = [
            Patch(color=CATEGORIES[0], label="in colour: leads in several of these runs"),
            Patch(color=PALE, label="grey: leads in one of them"),
        ]
        _outside_legend(fig, handles, attribution_label(units, aggregate))
    return fig


def histograms(
    S: ArrayLike,
    features: Sequence[str],
    top: Sequence[str],
    *,
    units: str = "",
    aggregate: Aggregate = "sum",
    title: str = "Attributions over bootstrap runs",
) -> Figure:
    """Draw the distribution of S with a Gaussian and a kernel fit (figure 3 of the paper).

    The histogram and both fits are of the non-zero runs; the share of zero runs is written, never
    smoothed. Below 20 non-zero runs there is no fit.

    Parameters
    ----------
    S : array_like of shape (B, p)
        Attributions, >= 0.
    features : sequence of str, length p
    top : sequence of str
        The features to draw, in order: one panel each.
    units : str
        Units of S.
    aggregate : {"sum", "mean"}
        What S is over a run's out-of-bag rows.
    title : str
        What the figure shows, and of which data and model.

    Returns
    -------
    Figure
    """
    matrix, names = _checked(S, features)
    chosen = _columns(names, top)
    lines = math.ceil(len(chosen) / 3)
    with context():
        fig = Figure(figsize=(9.6, 1.4 + 1.9 * lines), layout="constrained")
        axes = fig.subplots(lines, 3, squeeze=False).ravel()
        for ax, j in zip(axes, chosen, strict=False):
            _histogram(ax, density(matrix[:, j]))
            ax.set_title(shorten(names[j]), loc="left", fontsize=8)
        for ax in axes[len(chosen) :]:
            ax.remove()
        fig.supylabel("Density of the non-zero runs [1 / S]", fontsize=8)
        fig.suptitle(title)
        handles: list[Patch | Line2D] = [
            Patch(color=PALE, label="non-zero runs"),
            Line2D([], [], color=ROSHAP, label="kernel density"),
            Line2D([], [], color=FIT, ls="--", label="Gaussian with their mean and sd"),
        ]
        _outside_legend(fig, handles, attribution_label(units, aggregate))
    return fig


def ridgelines(
    S: ArrayLike,
    features: Sequence[str],
    top: Sequence[str],
    *,
    units: str = "",
    aggregate: Aggregate = "sum",
    title: str = "Attributions of the leading features",
) -> Figure:
    """Draw the distributions of the leading features above each other (figure 4 of the paper).

    A ridge is the kernel density of a feature's non-zero runs, scaled to the same height; below
    20 non-zero runs the runs themselves are drawn. The bars beside are P0, the share of zero runs.

    Parameters
    ----------
    S : array_like of shape (B, p)
        Attributions, >= 0.
    features : sequence of str, length p
    top : sequence of str
        The features to draw, best first.
    units : str
        Units of S.
    aggregate : {"sum", "mean"}
        What S is over a run's out-of-bag rows.
    title : str
        What the figure shows, and of which data and model.

    Returns
    -------
    Figure
    """
    matrix, names = _checked(S, features)
    chosen = _columns(names, top)
    with context():
        labels = [shorten(names[j]) for j in chosen]
        estimates = [density(matrix[:, j]) for j in chosen]
        fig = Figure(
            figsize=(7.4 + names_width(labels), 1.8 + 0.42 * len(chosen)), layout="constrained"
        )
        ridges, zeros = fig.subplots(1, 2, sharey=True, width_ratios=(3.6, 1))
        for place, estimate in enumerate(estimates):
            _ridge(ridges, place, estimate)
            zeros.barh(place, estimate.p0, 0.5, color=ZERO)
            zeros.annotate(
                _percent(estimate.p0),
                (estimate.p0, place),
                xytext=(3, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
            )
        ridges.set_yticks(range(len(chosen)), labels)
        ridges.set(ylim=(len(chosen) - 0.4, -1.0))
        ridges.set_xlim(0, None if any(len(estimate.values) for estimate in estimates) else 1)
        ridges.tick_params(axis="y", length=0)
        ridges.grid(axis="x")
        ridges.set_xlabel(attribution_label(units, aggregate))
        zeros.tick_params(axis="y", length=0, labelleft=False)
        zeros.set(xlim=(0, 1.35), xticks=[0, 0.5, 1], xlabel="P0\n(share of zero runs)")
        zeros.xaxis.set_major_formatter(PercentFormatter(1.0))
        fig.suptitle(title)
        handles: list[Patch | Line2D] = [
            Patch(color=ROSHAP, alpha=0.55, label="non-zero runs (own height each)"),
            Line2D([], [], color=INK, marker="|", ls="", ms=8, label="their median"),
            Patch(color=ZERO, label="zero runs"),
        ]
        if any(estimate.kde is None and len(estimate.values) for estimate in estimates):
            handles.insert(
                1, Line2D([], [], color=ROSHAP, alpha=0.55, **_DOTS, label="single runs")
            )
        _outside_legend(fig, handles)
    return fig


def _histogram(ax: Axes, estimate: Density) -> None:
    values = estimate.values
    if estimate.kde is None or estimate.gaussian is None:
        _without_shape(ax, estimate)
    else:
        bins = np.clip(len(np.histogram_bin_edges(values, "fd")) - 1, 8, 30)
        ax.hist(values, bins=int(bins), density=True, color=PALE, edgecolor="white")
        ax.plot(estimate.grid, estimate.kde, color=ROSHAP, lw=1.6)
        ax.plot(estimate.grid, estimate.gaussian, color=FIT, lw=1.4, ls="--")
        ax.set_xlim(estimate.grid[0], estimate.grid[-1])
        ax.set_ylim(bottom=0)
        ax.yaxis.set_major_locator(MaxNLocator(3))
    ax.xaxis.set_major_locator(MaxNLocator(4))
    if estimate.p0 > 0:
        ax.text(
            0.99,
            0.97,
            f"zero in {_percent(estimate.p0)}",
            transform=ax.transAxes,
            ha="right",
            va="top",
            color=ZERO,
            fontsize=8,
        )


def _without_shape(ax: Axes, estimate: Density) -> None:
    """Draw the runs themselves, where they are too few for a density or all the same."""
    values = estimate.values
    if not len(values):
        text = "no non-zero run"
    elif estimate.sd == 0:
        text = f"{values[0]:.3g} in every\nnon-zero run"
    else:
        text = f"{len(values)} non-zero {'run' if len(values) == 1 else 'runs'}:\nno shape"
    _say(ax, text)
    ax.plot(values, np.full(len(values), 0.08), "|", color=ROSHAP, ms=9)
    ax.set(xlim=(0, 1.15 * values[-1] if len(values) else 1), ylim=(0, 1), yticks=[])


def _ridge(ax: Axes, place: int, estimate: Density) -> None:
    """Draw one feature with its base line at y = ``place``; up is towards smaller y."""
    ax.axhline(place, color=PALE, lw=0.7, zorder=1)
    values = estimate.values
    if estimate.kde is None:
        ax.plot(values, np.full(len(values), place), color=ROSHAP, alpha=0.55, **_DOTS)
    else:
        height = 0.9 * estimate.kde / estimate.kde.max()
        ax.fill_between(
            estimate.grid, place, place - height, color=ROSHAP, alpha=0.55, lw=0, zorder=2
        )
        ax.plot(estimate.grid, place - height, color=ROSHAP, lw=1, zorder=3)
    if len(values):
        ax.plot(np.median(values), place, "|", color=INK, ms=8, mew=1.4, zorder=4)


def _checked(S: ArrayLike, features: Sequence[str]) -> tuple[NDArray[np.floating], list[str]]:
    matrix = check_scores(S)
    if len(features) != matrix.shape[1]:
        raise DataError(
            f"{len(features)} feature names for attributions of {matrix.shape[1]} features"
        )
    return matrix, [str(name) for name in features]


def _columns(names: list[str], top: Sequence[str]) -> list[int]:
    """Return the columns of the features to draw."""
    if not len(top):
        raise DataError("no feature to draw")
    place = {name: j for j, name in enumerate(names)}
    unknown = [str(name) for name in top if str(name) not in place]
    if unknown:
        raise DataError(f"no feature {unknown[0]!r} among the {len(names)} features")
    return [place[str(name)] for name in top]


def _leaders(s: NDArray[np.floating], names: list[str], top: int) -> list[int]:
    """Return the columns of the largest non-zero values; ties by name."""
    order = sorted(np.flatnonzero(s), key=lambda j: (-s[j], names[j]))
    return [int(j) for j in order[:top]]


def _shared_looks(leaders: list[list[int]]) -> dict[int, tuple[str, str]]:
    """Give the features that lead in several runs a colour and a hatch each."""
    times = Counter(j for best in leaders for j in best)
    shared = [j for j, count in times.items() if count > 1]
    looks = [(colour, hatch) for hatch in HATCHES for colour in CATEGORIES]
    return dict(zip(shared, looks, strict=False))


def _percent(share: float) -> str:
    """Write a share so that neither "some" reads 0 % nor "nearly all" 100 %."""
    return f"{share:.0%}" if share in (0, 1) else f"{100 * share:.3g}%"


def _say(ax: Axes, text: str) -> None:
    ax.text(
        0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", color=GREY, fontsize=8
    )


def _outside_legend(
    fig: Figure, handles: Sequence[Patch | Line2D], axis_label: str | None = None
) -> None:
    """Put a legend below the axes, headed by the label that their x axes share."""
    fig.legend(
        handles=list(handles),
        loc="outside lower center",
        ncols=len(handles),
        title=axis_label,
        title_fontsize=9,
    )
