"""How every figure looks: one set of rcParams, colours that colour-blind readers tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any

import matplotlib as mpl

from roshap.attribution.attributions import Aggregate

#: The paper's colours of the rankers, in the paper's order: blue, orange, green, red, purple.
RANKER_COLOURS: MappingProxyType[str, str] = MappingProxyType(
    {
        "shap": "#0077BB",
        "gain": "#EE9A33",
        "lime": "#3BB273",
        "ig": "#C8102E",
        "roshap": "#5B2A86",
    }
)

ROSHAP = RANKER_COLOURS["roshap"]
INK = "#222222"
GREY = "#9A9A9A"
PALE = "#D9D9D9"
ZERO = "#C8102E"  # whatever says "zero runs"
FIT = "#EE9A33"  # a fitted curve that may be wrong

#: Distinct fills for things without an order (Paul Tol's "muted").
CATEGORIES = (
    "#332288",
    "#88CCEE",
    "#44AA99",
    "#117733",
    "#999933",
    "#DDCC77",
    "#CC6677",
    "#882255",
    "#AA4499",
)
#: The same fills again where there are more things than colours.
HATCHES = ("", "////", "....")

_RC: dict[str, Any] = {
    "figure.facecolor": "white",
    "figure.dpi": 100,
    "savefig.dpi": 150,
    "savefig.facecolor": "white",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # ships with matplotlib: the same on every machine
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": False,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.7,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "text.parse_math": False,  # a feature may be called "a$b$"
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.titlesize": 11,
    "figure.titleweight": "bold",
    "svg.fonttype": "path",
    "svg.hashsalt": "roshap",  # element ids that do not change from one drawing to the next
    "path.simplify": True,
}


def context() -> AbstractContextManager[None]:
    """Return the context that figures are drawn and saved in.

    It starts from matplotlib's own defaults, so that a user's matplotlibrc changes nothing.
    """
    settings: dict[Any, Any] = {**mpl.rcParamsDefault, **_RC}
    del settings["backend"]  # the caller's; files need none
    return mpl.rc_context(settings)


def shorten(name: str, width: int = 40) -> str:
    """Return ``name``, its middle replaced by an ellipsis where it is longer than ``width``."""
    name = " ".join(name.split())
    if len(name) <= width:
        return name
    head = width // 2
    return f"{name[:head]}…{name[len(name) - (width - 1 - head) :]}"


def names_width(labels: Sequence[str]) -> float:
    """Return the width in inches that tick labels of 8 points need."""
    return 0.065 * max(map(len, labels), default=0)


def attribution_label(units: str, aggregate: Aggregate) -> str:
    """Return the axis label of S, with its units where they are known."""
    label = f"S: {aggregate} of |SHAP| over a run's out-of-bag rows"
    return f"{label} [{units}]" if units else label
