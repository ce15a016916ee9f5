"""What rankers are worth as selectors: the paper's figures 5, 7, 9 and 12-25, and the curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from roshap.errors import DataError
from roshap.plots.style import GREY, INK, RANKER_COLOURS, context
from roshap.selection import ALL_FEATURES, ALL_RANKERS, LABELS, METRICS

#: The paper's five colours, and grey for the ranker that is ours.
COLOURS = {**RANKER_COLOURS, "permutation": GREY}
#: Told apart without colour as well.
MARKERS = {"shap": "o", "gain": "s", "lime": "^", "ig": "D", "roshap": "P", "permutation": "v"}
_ALL: dict[str, Any] = {"color": INK, "lw": 1.1, "ls": "--"}


def selection_bars(
    summary: pd.DataFrame,
    full: pd.DataFrame,
    *,
    upto: int,
    title: str = "Models of the selected features",
) -> Figure:
    """Draw each metric's mean over k with its spread over k, a bar per ranker (figure 5).

    Parameters
    ----------
    summary : DataFrame
        ``ranker, metric, mean, spread`` of one evaluation.
    full : DataFrame
        ``metric, mean`` of the model of all features.
    upto : int
        The largest k.
    title : str
        What the figure shows, and of which data and model.

    Returns
    -------
    Figure
    """
    metrics, rankers = _present(summary)
    with context():
        fig = Figure(figsize=(1.2 + 2.6 * len(metrics), 4.1), layout="constrained")
        axes = fig.subplots(1, len(metrics), squeeze=False)[0]
        for ax, metric in zip(axes, metrics, strict=True):
            part = summary[summary["metric"] == metric].set_index("ranker").reindex(rankers)
            _bars(ax, part, rankers)
            value = _value(full, metric)
            if value is not None:
                ax.axhline(value, **_ALL)
            ax.set_title(_heading(metric))
            _zoom(ax, part["mean"].to_numpy(), part["spread"].to_numpy(), value)
        axes[0].set_ylabel(f"Mean over k = 1 to {upto}; bar: sd over k\n(axes do not start at 0)")
        fig.suptitle(title)
        _legend(fig, [Patch(color=COLOURS[name], label=LABELS[name]) for name in rankers])
    return fig


def selection_curves(
    curves: pd.DataFrame, *, title: str = "Models of the k leading features"
) -> Figure:
    """Draw each metric over k, a line per ranker and one for all features.

    Parameters
    ----------
    curves : DataFrame
        ``ranker, k`` and a column per metric, of one evaluation, all features included.
    title : str
        What the figure shows, and of which data and model.

    Returns
    -------
    Figure
    """
    metrics = [name for name in METRICS if name in curves and curves[name].notna().any()]
    rankers = [name for name in ALL_RANKERS if name in set(curves["ranker"])]
    if not metrics or not rankers:
        raise DataError("no curve to draw: the table has no metric or no ranker")
    columns = 2 if len(metrics) % 2 == 0 else len(metrics)
    rows = len(metrics) // columns
    with context():
        fig = Figure(figsize=(1.0 + 3.5 * columns, 1.4 + 2.6 * rows), layout="constrained")
        axes = fig.subplots(rows, columns, squeeze=False).ravel()
        for ax, metric in zip(axes, metrics, strict=True):
            for name in rankers:
                part = curves[curves["ranker"] == name]
                heavy = name == "roshap"
                ax.plot(
                    part["k"],
                    part[metric],
                    color=COLOURS[name],
                    marker=MARKERS[name],
                    ms=4,
                    lw=2.0 if heavy else 1.2,
                    zorder=4 if heavy else 3,
                )
            whole = curves.loc[curves["ranker"] == ALL_FEATURES, metric]
            if len(whole) and np.isfinite(whole.iloc[0]):
                ax.axhline(whole.iloc[0], **_ALL)
            ax.set_title(_heading(metric))
            ax.set_xlabel("k, number of leading features")
            ax.xaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))
            ax.yaxis.set_major_locator(MaxNLocator(5))
            ax.grid(axis="y")
        fig.suptitle(title)
        _legend(
            fig,
            [
                Line2D([], [], color=COLOURS[name], marker=MARKERS[name], ms=4, label=LABELS[name])
                for name in rankers
            ],
        )
    return fig


def set_stability_curves(
    stability: pd.DataFrame, *, title: str = "Stability of the selected features"
) -> Figure:
    """Draw how much the k selected features agree between the folds, over k.

    Parameters
    ----------
    stability : DataFrame
        ``ranker, k, jaccard, nogueira, low, high``.
    title : str
        What the figure shows, and of which data and model.

    Returns
    -------
    Figure
    """
    rankers = [name for name in ALL_RANKERS if name in set(stability["ranker"])]
    if not rankers:
        raise DataError("no stability to draw: it needs a cross-validation of 2 or more folds")
    with context():
        fig = Figure(figsize=(8.6, 4.4), layout="constrained")
        axes = fig.subplots(1, 2, sharex=True)
        for name in rankers:
            part = stability[stability["ranker"] == name].sort_values("k")
            look = {"color": COLOURS[name], "marker": MARKERS[name], "ms": 4, "lw": 1.3}
            for ax, column in zip(axes, ("nogueira", "jaccard"), strict=True):
                ax.plot(part["k"], part[column], **look)
            if name == "roshap":
                axes[0].fill_between(
                    part["k"], part["low"], part["high"], color=COLOURS[name], alpha=0.15, lw=0
                )
        axes[0].set_title("Nogueira's stability (1: equal sets, 0: chance)")
        axes[1].set_title("Jaccard (shared features / all named)")
        for ax in axes:
            ax.set_xlabel("k, number of leading features")
            ax.xaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))
            ax.grid(axis="y")
        axes[1].set_ylim(-0.03, 1.03)
        handles: list[Line2D | Patch] = [
            Line2D([], [], color=COLOURS[name], marker=MARKERS[name], ms=4, label=LABELS[name])
            for name in rankers
        ]
        if "roshap" in rankers:
            band = Patch(color=COLOURS["roshap"], alpha=0.15, label="95 % interval (RoSHAP)")
            handles.append(band)
        fig.suptitle(title)
        fig.legend(handles=handles, loc="outside lower center", ncols=min(4, len(handles)))
    return fig


def _present(summary: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Return the metrics and rankers that have numbers, each in its order."""
    finite = summary[summary["mean"].notna()]
    metrics = [name for name in METRICS if name in set(finite["metric"])]
    rankers = [name for name in ALL_RANKERS if name in set(finite["ranker"])]
    if not metrics or not rankers:
        raise DataError("no bar to draw: the table has no metric or no ranker")
    return metrics, rankers


def _bars(ax: Axes, part: pd.DataFrame, rankers: Sequence[str]) -> None:
    places = np.arange(len(rankers))
    ax.bar(places, part["mean"], 0.78, color=[COLOURS[name] for name in rankers])
    ax.errorbar(
        places, part["mean"], np.nan_to_num(part["spread"]), fmt="none", ecolor=INK, elinewidth=1,
        capsize=3,
    )  # fmt: skip
    ax.set_xticks([])
    ax.yaxis.set_major_locator(MaxNLocator(5))
    ax.margins(x=0.03)


def _zoom(ax: Axes, mean: np.ndarray, spread: np.ndarray, full: float | None) -> None:
    """Start the axis where differences can be seen."""
    spread = np.nan_to_num(spread)
    low = np.nanmin([*(mean - spread), *([] if full is None else [full])])
    high = np.nanmax([*(mean + spread), *([] if full is None else [full])])
    room = 0.08 * (high - low) if high > low else 0.05 * abs(high) or 0.05
    bottom = max(0.0, low - 2 * room)
    ax.set_ylim(bottom, max(high + room, bottom + 1e-9))


def _heading(metric: str) -> str:
    found = METRICS[metric]
    return f"{found.title} ({'higher' if found.higher_is_better else 'lower'} is better)"


def _value(full: pd.DataFrame, metric: str) -> float | None:
    found = full.loc[full["metric"] == metric, "mean"]
    return float(found.iloc[0]) if len(found) and np.isfinite(found.iloc[0]) else None


def _legend(fig: Figure, handles: Sequence[Patch | Line2D]) -> None:
    """Put the rankers and the line of all features below the axes."""
    shown = [*handles, Line2D([], [], label=LABELS[ALL_FEATURES], **_ALL)]
    fig.legend(handles=shown, loc="outside lower center", ncols=min(4, len(shown)))
