"""Figures of selection and of the simulation study: what is drawn, and that nothing is cut off."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from roshap.errors import DataError
from roshap.plots import RANKER_COLOURS, context
from roshap.plots.selection import selection_bars, selection_curves, set_stability_curves
from roshap.plots.simulation import signal_places
from roshap.selection import ALL_FEATURES, ALL_RANKERS, curves, summarise

RNG = np.random.default_rng(0)
CLASSES = ("accuracy", "f1_macro", "average_precision", "roc_auc")
NUMBERS = ("rmse", "mae", "mape")
LONG = "a data set with a name of exactly forty.."


def metrics(names: tuple[str, ...], rankers: tuple[str, ...] = ALL_RANKERS, upto: int = 15):
    rows = [
        {
            "evaluation": "cv",
            "split": "fold 1",
            "ranker": ranker,
            "k": k,
            **{name: 0.9 - 0.3 / k + 0.01 * RNG.random() for name in names},
        }
        for ranker in (*rankers, ALL_FEATURES)
        for k in (range(1, upto + 1) if ranker != ALL_FEATURES else [7129])
    ]
    return pd.DataFrame(rows)


def bars(table: pd.DataFrame, task: str, upto: int = 15) -> Figure:
    summary = summarise(table, task)
    full = summary["ranker"] == ALL_FEATURES
    return selection_bars(summary[~full], summary[full], upto=upto, title=f"Models: {LONG}")


def stability(upto: int = 15) -> pd.DataFrame:
    rows = [
        {"ranker": ranker, "k": k, "jaccard": 0.5, "nogueira": 0.4, "low": 0.2, "high": 0.6}
        for ranker in ALL_RANKERS
        for k in range(1, upto + 1)
    ]
    return pd.DataFrame(rows)


def places(seeds: int = 3) -> pd.DataFrame:
    methods = ("RoSHAP, 10 runs", "RoSHAP, 1000 runs", "SHAP (one run)", "information gain",
               "model gain", "LIME")  # fmt: skip
    rows = [
        {"seed": seed, "method": method, "signal": signal, "rank": 1 + signal * signal + seed,
         "zero": signal == 10 and method == "LIME"}
        for seed in range(seeds) for method in methods for signal in range(1, 11)
    ]  # fmt: skip
    return pd.DataFrame(rows)


FIGURES: dict[str, Callable[[], Figure]] = {
    "bars, classes": lambda: bars(metrics(CLASSES), "binary"),
    "bars, numbers": lambda: bars(metrics(NUMBERS), "regression"),
    "bars, one k": lambda: bars(metrics(CLASSES, upto=1), "binary", 1),
    "bars, two rankers": lambda: bars(metrics(CLASSES, ("gain", "roshap")), "binary"),
    "bars, all equal": lambda: bars(metrics(CLASSES).assign(accuracy=1.0), "binary"),
    "curves, classes": lambda: selection_curves(
        curves(metrics(CLASSES), "binary"), title=f"Models of the k leading features: {LONG}"
    ),
    "curves, numbers": lambda: selection_curves(curves(metrics(NUMBERS), "regression")),
    "curves, one k": lambda: selection_curves(curves(metrics(CLASSES, upto=1), "binary")),
    "stability": lambda: set_stability_curves(stability(), title=f"Agreement of folds: {LONG}"),
    "places": lambda: signal_places(places(), 1000),
    "places, one seed": lambda: signal_places(places(1), 1000),
}


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)
def test_nothing_is_cut_off_and_no_labels_collide(draw: Callable[[], Figure]) -> None:
    fig = draw()
    with context():
        canvas = FigureCanvasAgg(fig)
        canvas.draw()
        renderer = canvas.get_renderer()
    width, height = canvas.get_width_height()
    for artist in (*fig.axes, *fig.legends, fig._suptitle):
        box = artist.get_tightbbox(renderer)
        assert box.x0 >= -1
        assert box.y0 >= -1
        assert box.x1 <= width + 1
        assert box.y1 <= height + 1
    headings = [
        text.get_window_extent(renderer)
        for text in [
            fig._suptitle,
            *[ax.title for ax in fig.axes if ax.get_title()],
            *[ax.xaxis.label for ax in fig.axes if ax.get_xlabel()],
            *[text for legend in fig.legends for text in legend.get_texts()],
        ]
    ]
    for i, box in enumerate(headings):
        for other in headings[i + 1 :]:
            assert not box.overlaps(other)
    assert not [text for text in fig.findobj(Text) if "mathdefault" in text.get_text()]


def test_bars_have_the_papers_colours_in_its_order_and_the_tables_numbers() -> None:
    from matplotlib.colors import to_hex

    table = metrics(CLASSES)
    fig = bars(table, "binary")
    expected = summarise(table, "binary").query("metric == 'accuracy'").set_index("ranker")["mean"]
    drawn = fig.axes[0].patches
    order = ["shap", "gain", "lime", "ig", "roshap"]
    assert [to_hex(bar.get_facecolor()).upper() for bar in drawn[:5]] == [
        RANKER_COLOURS[name].upper() for name in order
    ]
    assert [bar.get_height() for bar in drawn[:5]] == [expected[name] for name in order]
    line = fig.axes[0].lines[-1]
    assert set(line.get_ydata()) == {expected[ALL_FEATURES]}


def test_metrics_that_are_not_defined_have_no_panel() -> None:
    table = metrics(CLASSES).assign(roc_auc=np.nan)
    assert len(bars(table, "binary").axes) == 3
    assert len(selection_curves(curves(table, "binary")).axes) == 3


def test_what_cannot_be_drawn_is_said() -> None:
    empty = metrics(CLASSES).assign(**dict.fromkeys(CLASSES, np.nan))
    with pytest.raises(DataError, match="no bar to draw"):
        bars(empty, "binary")
    with pytest.raises(DataError, match="no curve to draw"):
        selection_curves(curves(empty, "binary"))
    with pytest.raises(DataError, match="cross-validation"):
        set_stability_curves(stability().head(0))
    with pytest.raises(DataError, match="no place"):
        signal_places(places().head(0), 10)
