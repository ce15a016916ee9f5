"""The ranking as a figure: the score and the three factors that make it."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, PercentFormatter

from roshap.errors import DataError
from roshap.plots.style import INK, PALE, ROSHAP, context, names_width, shorten

INTERVAL = "95 % Wilson interval of activity, for more runs of this pipeline on this data"


def ranking(
    table: pd.DataFrame,
    *,
    top: int = 20,
    units: str = "",
    title: str = "Features ranked by RoSHAP",
) -> Figure:
    """Draw the leading features' scores, with strength, stability and activity beside them.

    Parameters
    ----------
    table : DataFrame
        Of :func:`roshap.attribution.ranking.rank`, best feature first.
    top : int
        How many features are drawn.
    units : str
        Units of S, which are the score's and the strength's.
    title : str
        What the figure shows, and of which data and model.

    Returns
    -------
    Figure
    """
    if table.empty:
        raise DataError("a ranking without features cannot be drawn")
    leading = table.head(top)
    places = np.arange(len(leading))
    unit = f"\n[{units}]" if units else ""
    with context():
        labels = [shorten(name) for name in leading["feature"]]
        size = (9.0 + names_width(labels), 2.0 + 0.29 * len(leading))
        fig = Figure(figsize=size, layout="constrained")
        main, *factors = fig.subplots(1, 4, sharey=True, width_ratios=(4, 1.5, 1.5, 1.5))
        _scores(main, leading)
        main.set_xlabel(f"RoSHAP score{unit}")
        main.set_yticks(places, labels)
        main.set_ylim(len(leading) - 0.4, -0.6)
        headings = (
            ("strength", f"Strength{unit}"),
            ("stability", "Stability\n(mean / sd)"),
            ("activity", "Activity\n(share of runs)"),
        )
        for ax, (column, heading) in zip(factors, headings, strict=True):
            _dots(ax, leading[column].to_numpy(dtype=float))
            ax.set_xlabel(heading)
            ax.tick_params(labelleft=False)
        activity = factors[-1]
        activity.hlines(
            places, 1 - leading["p0_high"], 1 - leading["p0_low"], color=ROSHAP, lw=1.2, zorder=2
        )
        activity.set(xlim=(-0.04, 1.04), xticks=[0, 0.5, 1])
        activity.xaxis.set_major_formatter(PercentFormatter(1.0))
        for ax in (main, *factors):
            ax.tick_params(axis="y", length=0)
        fig.suptitle(title)
        fig.legend(
            handles=[
                Patch(color=ROSHAP, label="score and its factors"),
                Line2D([], [], color=ROSHAP, lw=1.2, label=INTERVAL),
            ],
            loc="outside lower center",
            ncols=2,
        )
    return fig


def _scores(ax: Axes, leading: pd.DataFrame) -> None:
    """Draw the scores as bars with their values; a deterministic feature has none."""
    scores = leading["roshap"].to_numpy(dtype=float)
    ax.barh(np.arange(len(scores)), np.nan_to_num(scores), 0.62, color=ROSHAP)
    for place, (value, fixed) in enumerate(zip(scores, leading["deterministic"], strict=True)):
        ax.annotate(
            "no spread: above all scores" if fixed else _number(value),
            (0.0 if fixed else value, place),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color=INK,
        )
    highest = np.nanmax(scores, initial=0.0)
    ax.set_xlim(0, 1.12 * highest if highest > 0 else 1)
    ax.xaxis.set_major_locator(MaxNLocator(5))


def _dots(ax: Axes, values: np.ndarray) -> None:
    places = np.arange(len(values))
    ax.hlines(places, 0, np.nan_to_num(values), color=PALE, lw=1, zorder=1)
    ax.plot(values, places, "o", color=ROSHAP, ms=4.5, zorder=3)
    highest = np.nanmax(values, initial=0.0)
    ax.set_xlim(0, 1.1 * highest if highest > 0 else 1)
    ax.xaxis.set_major_locator(MaxNLocator(3))


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
