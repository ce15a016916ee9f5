"""Two rankings as a slope chart: a line per feature, strong where it moved beyond noise."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from roshap.errors import DataError
from roshap.plots.style import GREY, INK, ROSHAP, context, names_width, shorten

#: A change of rank with at least this probability of being more than noise is drawn strong.
SURE = 0.95


def slopes(
    table: pd.DataFrame,
    *,
    labels: tuple[str, str],
    top: int = 15,
    title: str = "Ranks before and after",
) -> Figure:
    """Draw the features that are among the first ``top`` on either side.

    Parameters
    ----------
    table : DataFrame
        Of :func:`roshap.attribution.comparison.compare_rankings`.
    labels : pair of str
        What A and B are.
    top : int
        Places drawn to scale; a feature that falls behind them ends on a last line, with its rank.
    title : str
        What the figure shows.

    Returns
    -------
    Figure
    """
    if table.empty:
        raise DataError("a comparison without features cannot be drawn")
    shown = table[(table["rank_a"] <= top) | (table["rank_b"] <= top)]
    names = [shorten(name, 32) for name in shown["feature"]]
    places = min(top, len(table))
    known = bool(shown["beyond_noise"].notna().any())
    with context():
        width = 4.2 + 2 * names_width([f"{name}  99" for name in names])
        outside = int(max((shown["rank_a"] > top).sum(), (shown["rank_b"] > top).sum()))
        size = (max(width, 6.4), 1.7 + 0.27 * (places + outside))
        fig = Figure(figsize=size, layout="constrained")
        ax = fig.add_subplot()
        left, right = (_heights(shown[side], top) for side in ("rank_a", "rank_b"))
        marked = known & (shown["beyond_noise"] >= SURE) & (shown["change"] != 0)
        ranks = zip(shown["rank_a"], shown["rank_b"], strict=True)
        lines = zip(names, left, right, ranks, marked, strict=True)
        for name, a, b, (rank_a, rank_b), strong in lines:
            colour = ROSHAP if strong else GREY
            ax.plot([0, 1], [a, b], "-o", color=colour, lw=2.2 if strong else 1.1, ms=4.5, zorder=2)
            ends = (
                (f"{name}  {rank_a}", (0, a), (-9, 0), "right"),
                (f"{rank_b}  {name}", (1, b), (9, 0), "left"),
            )
            for text, end, offset, side in ends:
                ax.annotate(
                    text,
                    end,
                    offset,
                    textcoords="offset points",
                    ha=side,
                    va="center",
                    fontsize=8,
                    color=ROSHAP if strong else INK,
                )
        _frame(ax, labels, places + outside, names)
        if outside:
            ax.axhline(top + 0.5, color=GREY, lw=0.7, ls=":", zorder=1)
        fig.suptitle(title)
        handles = [
            Line2D([], [], color=ROSHAP, lw=2.2, label=f"more than refit noise (P ≥ {SURE:.2f})"),
            Line2D([], [], color=GREY, lw=1.1, label="within refit noise, or unchanged"),
        ]
        if not known:
            handles = [Line2D([], [], color=GREY, lw=1.1, label="too few runs to tell from noise")]
        fig.legend(handles=handles, loc="outside lower center", ncols=2)
    return fig


def _heights(ranks: pd.Series, top: int) -> np.ndarray:
    """Return the places on the axis: the rank, or one line each, in order, below the others."""
    heights = ranks.to_numpy(dtype=float)
    behind = np.flatnonzero(heights > top)
    for line, index in enumerate(behind[np.argsort(heights[behind])]):
        heights[index] = top + 1 + line
    return heights


def _frame(ax: Axes, labels: tuple[str, str], lines: int, names: list[str]) -> None:
    # names stand outside the axes' two verticals: the axis is widened to hold them
    side = 0.12 + 0.33 * names_width([f"{name}  99" for name in names])
    ax.set(xlim=(-side, 1 + side), ylim=(lines + 0.6, 0.4))
    ax.vlines([0, 1], 0.6, lines + 0.4, color=GREY, lw=0.8, zorder=1)
    ax.set_xticks([0, 1], [shorten(label, 44) for label in labels])
    ax.xaxis.tick_top()
    ax.tick_params(axis="both", length=0)
    ax.set_yticks([])
    ax.set_ylabel("rank (1 = highest RoSHAP score)")
    for spine in ax.spines.values():
        spine.set_visible(False)
