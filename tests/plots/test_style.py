"""Colours that readers tell apart, and names that fit."""

from __future__ import annotations

import itertools
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from roshap.plots import RANKER_COLOURS, context
from roshap.plots.style import CATEGORIES, attribution_label, shorten

# Machado, Oliveira and Fernandes 2009: full dichromacy, on linear RGB.
VISION = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]]
    ),
    "deuteranopia": np.array(
        [[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]]
    ),
    "tritanopia": np.array(
        [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]]
    ),
}


def lab(colour: str, vision: np.ndarray) -> np.ndarray:
    """Return CIE L*a*b* of a colour as seen."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(vision @ linear, 0, 1)
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    xyz = to_xyz @ seen / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("vision", VISION)
def test_rankers_differ_for_colour_blind_readers(vision):
    for a, b in itertools.combinations(RANKER_COLOURS.values(), 2):
        distance = np.linalg.norm(lab(a, VISION[vision]) - lab(b, VISION[vision]))
        assert distance > 15, f"{a} and {b} look alike"


def test_rankers_keep_the_papers_hues_and_order():
    assert list(RANKER_COLOURS) == ["shap", "gain", "lime", "ig", "roshap"]
    strongest = [int(np.argmax(to_rgb(colour))) for colour in RANKER_COLOURS.values()]
    assert strongest == [2, 0, 1, 0, 2]  # blue, orange, green, red, purple


def test_category_colours_are_distinct():
    assert len(set(CATEGORIES)) == len(CATEGORIES)


@pytest.mark.parametrize(
    ("name", "width", "short"),
    [
        ("short", 10, "short"),
        ("exactly_10", 10, "exactly_10"),
        ("eleven_long", 10, "eleve…long"),
        ("two\nlines", 20, "two lines"),
    ],
)
def test_long_names_keep_both_ends(name, width, short):
    assert shorten(name, width) == short
    assert len(shorten(name * 20, width)) == width


def test_axis_label_names_quantity_and_units():
    assert attribution_label("probability", "mean") == (
        "S: mean of |SHAP| over a run's out-of-bag rows [probability]"
    )
    assert "[" not in attribution_label("", "sum")


def test_context_overrides_the_users_settings_and_restores_them():
    with mpl.rc_context({"axes.facecolor": "black", "font.size": 30}):
        with context():
            assert mpl.rcParams["axes.facecolor"] == "white"
            assert mpl.rcParams["font.size"] == 9
        assert mpl.rcParams["axes.facecolor"] == "black"


def test_figures_need_no_pyplot():
    code = "import sys, roshap.plots; assert 'matplotlib.pyplot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
