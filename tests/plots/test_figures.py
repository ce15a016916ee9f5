"""Every figure, on ordinary and on awkward data: what is drawn, and that nothing is cut off."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.text import Text

from roshap.attribution.ranking import rank
from roshap.attribution.stopping import StopRule, judge
from roshap.errors import DataError
from roshap.plots import (
    context,
    histograms,
    intervals,
    ranking,
    ridgelines,
    settling,
    single_rounds,
    ties,
    top_k,
    variance_shares,
)

RNG = np.random.default_rng(0)
TYPICAL = RNG.gamma(3.0, size=(40, 15)) * np.linspace(10, 0.1, 15)
TYPICAL[RNG.random((40, 15)) < np.linspace(0, 0.9, 15)] = 0
DETERMINISTIC = np.tile([3.0, 2.0, 1.0, 0.0], (30, 1))
DETERMINISTIC[:, 2] += np.linspace(0, 1, 30)

CASES = {
    "typical": TYPICAL,
    "two runs of three features": np.array([[1.0, 5, 0], [2, 3, 0]]),
    "one feature": TYPICAL[:, :1],
    "all zero": np.zeros((5, 4)),
    "deterministic": DETERMINISTIC,
    "large values": TYPICAL[:, :5] * 1e9,
    "small values": TYPICAL[:, :5] * 1e-9,
}


def long_names(p: int) -> list[str]:
    return [f"{j:02d} a feature name of exactly forty letters"[:40] for j in range(p)]


def draw_rounds(S: np.ndarray, names: list[str]) -> Figure:
    return single_rounds(S, names, units="log-odds (margin)")


def draw_histograms(S: np.ndarray, names: list[str]) -> Figure:
    return histograms(S, names, names[:12], units="log-odds (margin)")


def draw_ridgelines(S: np.ndarray, names: list[str]) -> Figure:
    return ridgelines(S, names, names[:15], units="log-odds (margin)")


def draw_ranking(S: np.ndarray, names: list[str]) -> Figure:
    return ranking(rank(S, names), units="log-odds (margin)")


def draw_intervals(S: np.ndarray, names: list[str]) -> Figure:
    return intervals(rank(S, names), units="log-odds (margin)")


def draw_top_k(S: np.ndarray, names: list[str]) -> Figure:
    return top_k(S, names, k=min(5, S.shape[1]))


def draw_ties(S: np.ndarray, names: list[str]) -> Figure:
    return ties(S, names, decision=judge(S, names, StopRule(k=2, looks=(2, 70))))


def draw_settling(S: np.ndarray, names: list[str]) -> Figure:
    rule = StopRule(k=2, looks=(2, 70))
    if S.shape[1] == 1:
        S, names = np.hstack([S, 0 * S]), [*names, "another"]
    return settling(S, names, rule, judge(S, names, rule))


def draw_shares(S: np.ndarray, names: list[str]) -> Figure:
    table = rank(S, names)
    table["data_share"] = np.where(table["roshap"] > 0, np.linspace(1, 0.3, len(table)), np.nan)
    return variance_shares(table, pooled=(0.8, 0.05), draws=30)


WITH_UNITS = (draw_rounds, draw_histograms, draw_ridgelines, draw_ranking, draw_intervals)
NAMED = (*WITH_UNITS, draw_top_k, draw_ties, draw_shares)
FIGURES = (*NAMED, draw_settling)


def texts(fig: Figure) -> list[str]:
    return [text.get_text() for text in fig.findobj(Text) if text.get_text()]


@pytest.mark.parametrize("S", CASES.values(), ids=CASES)
@pytest.mark.parametrize("draw", FIGURES)
def test_nothing_is_cut_off_and_no_labels_collide(
    draw: Callable[[np.ndarray, list[str]], Figure], S: np.ndarray
):
    fig = draw(S, long_names(S.shape[1]))
    with context(), warnings.catch_warnings():
        warnings.simplefilter("error")  # "axes sizes collapsed to zero" is a warning
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
    for ax in fig.axes:
        assert ax.get_window_extent(renderer).width > 60
        assert ax.get_window_extent(renderer).height > 40
    headings = [
        text.get_window_extent(renderer)
        for text in [
            fig._suptitle,
            *[ax.title for ax in fig.axes if ax.get_title()],
            *[ax._left_title for ax in fig.axes if ax._left_title.get_text()],
            *[ax.xaxis.label for ax in fig.axes if ax.get_xlabel()],
            *[text for legend in fig.legends for text in legend.get_texts()],
            *[legend.get_title() for legend in fig.legends if legend.get_title().get_text()],
        ]
    ]
    for i, box in enumerate(headings):
        for other in headings[i + 1 :]:
            assert not box.overlaps(other)
    for legend in fig.legends:
        for ax in fig.axes:
            assert not legend.get_window_extent(renderer).overlaps(ax.get_window_extent(renderer))


@pytest.mark.parametrize("draw", NAMED)
def test_forty_letters_are_shown_in_full_at_readable_size(draw):
    names = long_names(15)
    fig = draw(TYPICAL, names)
    shown = [text for text in fig.findobj(Text) if text.get_text() in names]
    assert len({text.get_text() for text in shown}) >= 10
    assert min(text.get_fontsize() for text in shown) >= 8


@pytest.mark.parametrize("draw", WITH_UNITS)
def test_axes_say_their_units(draw):
    assert any("log-odds (margin)" in text for text in texts(draw(TYPICAL, long_names(15))))


@pytest.mark.parametrize("draw", NAMED)
def test_names_are_no_formulas(draw):
    fig = draw(TYPICAL[:, :2], [r"$\frac{1}$", "a_b^c"])
    FigureCanvasAgg(fig).draw()  # an invalid formula would raise
    assert {r"$\frac{1}$", "a_b^c"} <= set(texts(fig))


def test_single_runs_share_a_colour_only_for_shared_features():
    S = np.array([[9.0, 8, 7, 0], [8, 9, 0, 7], [9, 0, 0, 8]])
    fig = single_rounds(S, ["a", "b", "c", "d"])
    colours: dict[str, set[tuple[float, ...]]] = {}
    for ax in fig.axes:
        named = [text.get_text() for text in ax.texts]
        for name, bar in zip(named, ax.patches, strict=True):
            colours.setdefault(name, set()).add(bar.get_facecolor())
    assert all(len(of_one) == 1 for of_one in colours.values())
    one = {name: next(iter(of_one)) for name, of_one in colours.items()}
    assert len({one["a"], one["b"], one["d"]}) == 3
    assert one["c"] not in {one["a"], one["b"], one["d"]}
    assert len(set(one["c"][:3])) == 1  # grey


def test_single_runs_are_in_order_and_leave_out_zeros():
    fig = single_rounds(TYPICAL, long_names(15), rounds=[4, 2], top=6)
    assert [ax.get_title() for ax in fig.axes] == ["Run 5", "Run 3"]
    for ax, run in zip(fig.axes, (4, 2), strict=True):
        widths = [bar.get_width() for bar in ax.patches]
        np.testing.assert_array_equal(widths, np.sort(TYPICAL[run])[::-1][:6])
        assert min(widths) > 0


def test_more_shared_leaders_than_colours_are_told_apart_by_hatches():
    fig = single_rounds(np.tile(np.arange(20.0, 0, -1), (3, 1)), long_names(20), top=20)
    looks = [(bar.get_facecolor(), bar.get_hatch()) for bar in fig.axes[0].patches]
    assert len(set(looks)) == 20


def test_histograms_show_nonzero_runs_and_write_the_zeros():
    x = np.r_[np.zeros(10), RNG.normal(50, 5, size=30)]
    fig = histograms(x[:, None], ["a"], ["a"])
    ax = fig.axes[0]
    area = sum(bar.get_width() * bar.get_height() for bar in ax.patches)
    assert area == pytest.approx(1)
    assert min(bar.get_x() for bar in ax.patches) == pytest.approx(x[x > 0].min())
    assert len(ax.lines) == 2
    assert "zero in 25%" in texts(fig)


def test_histograms_fit_nothing_below_twenty_runs():
    x = np.r_[np.zeros(10), np.linspace(1, 2, 19)]
    fig = histograms(x[:, None], ["a"], ["a"])
    assert "19 non-zero runs:\nno shape" in texts(fig)
    assert not fig.axes[0].patches
    np.testing.assert_array_equal(fig.axes[0].lines[0].get_xdata(), x[x > 0])


def test_ridgelines_put_p0_beside_the_density():
    fig = ridgelines(TYPICAL, long_names(15), long_names(15)[:8])
    ridges, zeros = fig.axes
    np.testing.assert_allclose(
        [bar.get_width() for bar in zeros.patches], (TYPICAL[:, :8] == 0).mean(axis=0)
    )
    dense = (np.count_nonzero(TYPICAL[:, :8], axis=0) >= 20).sum()
    assert len(ridges.findobj(PolyCollection)) == dense
    assert [label.get_text() for label in ridges.get_yticklabels()] == long_names(15)[:8]


def test_ridgelines_call_the_dots_single_runs_only_where_there_are_any():
    assert "single runs" in texts(ridgelines(TYPICAL[:10], long_names(15), long_names(15)[:2]))
    assert "single runs" not in texts(ridgelines(TYPICAL, long_names(15), long_names(15)[:2]))


def test_ranking_draws_the_tables_numbers():
    table = rank(TYPICAL, long_names(15))
    fig = ranking(table, top=5)
    main, strength, stability, activity = fig.axes
    np.testing.assert_array_equal([bar.get_width() for bar in main.patches], table["roshap"][:5])
    panels = ((strength, "strength"), (stability, "stability"), (activity, "activity"))
    for ax, column in panels:
        np.testing.assert_array_equal(ax.lines[0].get_xdata(), table[column][:5])
    assert [label.get_text() for label in main.get_yticklabels()] == table["feature"][:5].tolist()


def test_ranking_says_what_has_no_score():
    fig = ranking(rank(DETERMINISTIC, ["a", "b", "c", "d"]))
    assert texts(fig).count("no spread: above all scores") == 2


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda: histograms(TYPICAL, ["a"], ["a"]), "1 feature names for .* 15 features"),
        (lambda: histograms(TYPICAL, long_names(15), []), "no feature to draw"),
        (lambda: ridgelines(TYPICAL, long_names(15), ["b"]), "no feature 'b' among the 15"),
        (lambda: single_rounds(TYPICAL, long_names(15), rounds=[40]), "no run to draw"),
        (lambda: ranking(rank(TYPICAL, long_names(15)).head(0)), "without features"),
    ],
)
def test_what_cannot_be_drawn_is_said(draw, words):
    with pytest.raises(DataError, match=words):
        draw()
