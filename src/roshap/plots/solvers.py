"""Solvers side by side: curves with bands over seeds, signals, classifiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from roshap.errors import DataError
from roshap.plots.style import CATEGORIES, GREY, INK, context

MARKERS = ("o", "s", "p", "D", "v", "P", "X", "<", ">")
#: Curves above so many times the reference leave the axes; a triangle says where.
CUT = 1e4


def sweep(
    frame: pd.DataFrame,
    *,
    x: str,
    panels: Mapping[str, Sequence[str]],
    reference: str | None,
    xlabel: str,
    ylabel: str,
    title: str,
    log_x: bool = False,
) -> Figure:
    """Draw one curve per solver against a swept quantity, in panels that share their axes.

    Parameters
    ----------
    frame : DataFrame
        ``solver``, the column ``x``, and ``median``, ``low``, ``high`` over seeds; ``inf`` where a
        solver has diverged.
    x : str
        Column of the swept quantity.
    panels : mapping
        Title of a panel -> solvers in it; one solver may be in several.
    reference : str or None
        Solver that is drawn as a dashed line in every panel.
    xlabel, ylabel, title : str
        With units.
    log_x : bool
        Logarithmic x axis.

    Returns
    -------
    Figure
    """
    if frame.empty:
        raise DataError("no curve to draw")
    names = list(dict.fromkeys(name for solvers in panels.values() for name in solvers))
    looks = {name: (CATEGORIES[i % 9], MARKERS[i % 9]) for i, name in enumerate(names)}
    top = _top(frame, reference)
    with context():
        fig = Figure(figsize=(1.2 + 3.3 * len(panels), 4.4), layout="constrained")
        axes = fig.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
        off = False
        for ax, (heading, solvers) in zip(axes, panels.items(), strict=True):
            ax.set_title(heading)
            for name in solvers:
                off |= _curve(ax, frame[frame["solver"] == name], x, looks[name], top)
            if reference is not None:
                line = frame[frame["solver"] == reference]
                ax.plot(line[x], line["median"], "--", color=INK, lw=1.2, zorder=2)
            _scales(ax, frame, x, top, log_x)
            ax.set_xlabel(xlabel)
        axes[0].set_ylabel(ylabel)
        fig.suptitle(title)
        fig.legend(
            handles=_handles(looks, reference, off),
            loc="outside lower center",
            ncols=min(5, len(looks) + 2),
        )
    return fig


def _top(frame: pd.DataFrame, reference: str | None) -> float:
    """Return the upper end of the y axis."""
    finite = frame["median"][np.isfinite(frame["median"])]
    base = frame["median"][frame["solver"] == reference] if reference else finite
    cut = CUT * float(base.median())
    return 1.5 * min(float(finite.max()), cut)


def _curve(ax: Axes, part: pd.DataFrame, x: str, look: tuple[str, str], top: float) -> bool:
    """Draw a curve and its band; return whether some of it lies above the axes."""
    colour, marker = look
    inside = part["median"] <= top
    shown = part.assign(median=part["median"].where(inside))
    ms = 4 if len(part) <= 12 else 0
    ax.plot(shown[x], shown["median"], color=colour, marker=marker, ms=ms, lw=1.5, zorder=3)
    if ms == 0:
        every = max(1, len(part) // 5)
        some = shown.iloc[every - 1 :: every]
        ax.plot(some[x], some["median"], marker, color=colour, ms=4, zorder=3)
    band = part[inside]
    # far beyond the axes the layout would overflow
    high = band["high"].clip(upper=10 * top)
    ax.fill_between(band[x], band["low"], high, color=colour, alpha=0.15, lw=0, zorder=1)
    above = part[~inside]
    if above.empty:  # an empty line would count as a point in the corner of the figure
        return False
    ax.plot(
        above[x],
        [0.985] * len(above),
        "^",
        color=colour,
        ms=5,
        clip_on=False,
        zorder=4,
        transform=ax.get_xaxis_transform(),
    )
    return True


def _scales(ax: Axes, frame: pd.DataFrame, x: str, top: float, log_x: bool) -> None:
    plain = FuncFormatter(lambda value, _: f"{value:g}".replace("e+0", "e").replace("e-0", "e-"))
    low = frame["low"][(frame["low"] > 0) & np.isfinite(frame["low"])].min()
    ax.set_yscale("log")
    ax.set_ylim(0.7 * low, top)
    ax.grid(True, axis="y")
    if log_x:
        ax.set_xscale("log")
        values = sorted(frame[x].unique())
        ax.set_xticks(values, [f"{value:g}" for value in values])
        ax.xaxis.set_minor_formatter(NullFormatter())
    else:
        ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    # the style reads no mathematics in text, so that the default 10^k would show its source
    ax.yaxis.set_major_formatter(plain)
    if top / low < 30:
        ax.yaxis.set_minor_locator(LogLocator(subs=(1.5, 2, 3, 5, 7)))
        ax.yaxis.set_minor_formatter(plain)
    else:
        ax.yaxis.set_minor_formatter(NullFormatter())


def _handles(
    looks: Mapping[str, tuple[str, str]], reference: str | None, off: bool
) -> list[Line2D]:
    handles = [
        Line2D([], [], color=colour, marker=marker, ms=4, lw=1.5, label=name)
        for name, (colour, marker) in looks.items()
    ]
    if reference is not None:
        handles.append(Line2D([], [], color=INK, ls="--", lw=1.2, label=reference))
    if off:
        handles.append(
            Line2D([], [], color=GREY, marker="^", ls="", ms=5, label="above the axis or diverged")
        )
    return handles


def trajectories(
    times: np.ndarray,
    paths: Mapping[str, np.ndarray],
    truth: np.ndarray,
    *,
    title: str,
    xlabel: str = "time t",
) -> Figure:
    """Draw weights over time, a panel per law, with the true weights as dashed lines.

    Parameters
    ----------
    times : (n,) array
    paths : mapping
        Law -> (n, q) weights.
    truth : (q,) array
    title, xlabel : str
    """
    with context():
        fig = Figure(figsize=(1.2 + 3.3 * len(paths), 3.8), layout="constrained")
        axes = fig.subplots(1, len(paths), sharex=True, sharey=True, squeeze=False)[0]
        for ax, (law, path) in zip(axes, paths.items(), strict=True):
            ax.set_title(law)
            for i, value in enumerate(truth):
                ax.axhline(value, ls="--", lw=1, color=CATEGORIES[2 * i], zorder=1)
                ax.plot(times, path[:, i], lw=1.6, color=CATEGORIES[2 * i], zorder=2)
            ax.grid(True, axis="y")
            ax.set_xlabel(xlabel)
        axes[0].set_ylabel("weight")
        fig.suptitle(title)
        handles = [
            Line2D([], [], color=CATEGORIES[2 * i], label=f"weight {i + 1}")
            for i in range(len(truth))
        ]
        handles.append(Line2D([], [], color=GREY, ls="--", label="true weight"))
        fig.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return fig


def decay(
    times: np.ndarray,
    theory: Mapping[str, np.ndarray],
    measured: Mapping[str, tuple[np.ndarray, np.ndarray]],
    *,
    title: str,
    ylabel: str,
    xlabel: str = "time t",
) -> Figure:
    """Draw errors as shares of the first error: lines from theory, dots from samples."""
    with context():
        fig = Figure(figsize=(6.2, 4.2), layout="constrained")
        ax = fig.subplots()
        for i, (name, values) in enumerate(theory.items()):
            colour = CATEGORIES[2 * i]
            ax.plot(times, values, color=colour, lw=1.5, label=f"{name}: theory")
            at, seen = measured[name]
            ax.plot(at, seen, "o", color=colour, ms=4, mfc="white", label=f"{name}: samples")
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.grid(True, axis="y")
        ax.set(xlabel=xlabel, ylabel=ylabel)
        fig.suptitle(title)
        fig.legend(loc="outside lower center", ncols=2)
    return fig
