from __future__ import annotations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from roshap.attribution.comparison import compare_rankings
from roshap.errors import DataError
from roshap.plots import slopes


def comparison(B: int) -> object:
    rng = np.random.default_rng(0)
    names = [f"a feature with quite a long name {j}" for j in range(20)]
    before = np.linspace(20, 1, 20)
    after = before.copy()
    after[0] = 0.5
    draw = rng.gamma(25, 1 / 25, size=(2, B, 20))
    return compare_rankings(before * draw[0], names, after * draw[1], names, rng=rng).table


def texts(figure: object) -> list[str]:
    (ax,) = figure.axes  # type: ignore[attr-defined]
    return [text.get_text() for text in ax.texts]


def test_every_shown_feature_has_a_line_and_its_two_ranks() -> None:
    figure = slopes(comparison(40), labels=("before", "after"), top=10)
    (ax,) = figure.axes
    shown = [line for line in ax.lines if len(line.get_xdata()) == 2 and line.get_marker() == "o"]
    assert len(shown) == 11  # the first ten of either side: one fell out, one came in
    assert any(text.startswith("20  ") for text in texts(figure))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["before", "after"]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend[0].startswith("more than refit noise")


def test_names_stay_inside_the_figure() -> None:
    figure = slopes(comparison(40), labels=("before", "after"))
    figure.draw_without_rendering()
    renderer = FigureCanvasAgg(figure).get_renderer()
    width = figure.bbox.width
    for text in figure.axes[0].texts:
        box = text.get_window_extent(renderer)
        assert box.x0 >= 0, text.get_text()
        assert box.x1 <= width, text.get_text()


def test_few_runs_are_said_in_the_legend() -> None:
    figure = slopes(comparison(5), labels=("before", "after"))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "too few runs to tell from noise"
    ]


def test_nothing_cannot_be_drawn() -> None:
    with pytest.raises(DataError, match="without features"):
        slopes(comparison(5).head(0), labels=("a", "b"))  # type: ignore[attr-defined]
