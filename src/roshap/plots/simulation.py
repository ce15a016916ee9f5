"""The simulation study as a figure: the signals' places by method."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import ScalarFormatter

from roshap.errors import DataError
from roshap.plots.style import GREY, INK, RANKER_COLOURS, context

_LOOKS = {
    "SHAP (one run)": (RANKER_COLOURS["shap"], "o"),
    "model gain": (RANKER_COLOURS["gain"], "s"),
    "LIME": (RANKER_COLOURS["lime"], "^"),
    "information gain": (RANKER_COLOURS["ig"], "D"),
}


def signal_places(
    ranks: pd.DataFrame, p: int, *, top: int = 12, title: str = "Places of the signals"
) -> Figure:
    """Draw the place of each signal by method: the median over seeds, and the range.

    Parameters
    ----------
    ranks : DataFrame
        ``seed, method, signal, rank, zero``.
    p : int
        Number of features; a score of zero is drawn at this, the last place.
    top : int
        Places up to this are shaded.
    title : str
        What the figure shows.

    Returns
    -------
    Figure
    """
    if ranks.empty:
        raise DataError("no place to draw")
    methods = list(dict.fromkeys(ranks["method"]))
    seeds = ranks["seed"].nunique()
    drawn = ranks.assign(place=np.where(ranks["zero"], p, ranks["rank"]))
    with context():
        fig = Figure(figsize=(9.0, 4.9), layout="constrained")
        ax = fig.subplots()
        ax.axhspan(0.8, top + 0.5, color="#EFEFEF", lw=0, zorder=0)
        handles = []
        robust = [name for name in methods if name.startswith("RoSHAP")]
        for number, method in enumerate(methods):
            colour, marker = _LOOKS.get(method, (RANKER_COLOURS["roshap"], "P"))
            few = method in robust[:-1]
            part = drawn[drawn["method"] == method].groupby("signal")["place"]
            middle, low, high = part.median(), part.min(), part.max()
            x = middle.index.to_numpy() + 0.12 * (number - (len(methods) - 1) / 2)
            look: dict[str, Any] = {
                "color": colour,
                "marker": marker,
                "ms": 5,
                "lw": 1.2,
                "ls": ":" if few else "-",
                "mfc": "white" if few else colour,
            }
            ax.plot(x, middle, **look, zorder=3)
            if seeds > 1:
                ax.vlines(x, low, high, color=colour, lw=1, alpha=0.6, zorder=2)
            handles.append(Line2D([], [], label=method, **look))
        ax.axhline(p, color=GREY, lw=0.8, ls="--")
        ax.set(yscale="log", ylim=(1.6 * p, 0.8))
        ax.yaxis.set_major_formatter(ScalarFormatter())
        ax.set_xticks(sorted(ranks["signal"].unique()))
        ax.set_xlabel("Signal (1 is the strongest)")
        ax.set_ylabel(f"Place among {p} features (log scale)")
        ax.text(0.995, 0.985, f"shaded: first {top}", transform=ax.transAxes, ha="right", va="top",
                fontsize=8, color=INK)  # fmt: skip
        ax.text(0.6, 1.03 * p, "attribution zero", va="top", fontsize=8, color=INK)
        fig.suptitle(title)
        spread = f"median of {seeds} data sets; lines: their range" if seeds > 1 else None
        fig.legend(
            handles=handles, loc="outside lower center", ncols=3, title=spread, title_fontsize=9
        )
    return fig
