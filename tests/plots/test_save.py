"""Figure files: the same bytes every time, with their provenance inside."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from roshap.errors import DataError, OutputError
from roshap.plots import histograms, read_provenance, save_figure

PROVENANCE = {"commit": "abc123", "command": "roshap rank dataset=wine 'a & b' <c>", "umlaut": "ä"}


def figure() -> Figure:
    S = np.random.default_rng(0).gamma(2.0, size=(40, 2))
    return histograms(S, ["a", "b"], ["b", "a"])


def test_svg_and_png_are_written_with_their_provenance(tmp_path):
    written = save_figure(figure(), tmp_path / "new" / "figure-v1.5", PROVENANCE)
    assert [path.name for path in written] == ["figure-v1.5.svg", "figure-v1.5.png"]
    assert sorted(written) == sorted((tmp_path / "new").iterdir())
    for path in written:
        assert read_provenance(path) == PROVENANCE


def test_both_files_are_valid(tmp_path):
    svg, png = save_figure(figure(), tmp_path / "f", PROVENANCE)
    assert ET.parse(svg).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    with Image.open(png) as image:
        assert image.size[0] > 1000
        assert image.info["Software"] == "roshap"


def test_bytes_are_the_same_every_time_whatever_the_users_matplotlibrc(tmp_path):
    first = save_figure(figure(), tmp_path / "one", PROVENANCE)
    with mpl.rc_context({"svg.hashsalt": None, "font.size": 30, "savefig.dpi": 30}):
        second = save_figure(figure(), tmp_path / "two", PROVENANCE)
    for a, b in zip(first, second, strict=True):
        assert a.read_bytes() == b.read_bytes()


def test_saving_the_same_figure_twice_gives_the_same_bytes(tmp_path):
    fig = figure()
    first = save_figure(fig, tmp_path / "one", PROVENANCE)
    second = save_figure(fig, tmp_path / "two", PROVENANCE)
    for a, b in zip(first, second, strict=True):
        assert a.read_bytes() == b.read_bytes()


def test_other_provenance_is_another_file(tmp_path):
    first = save_figure(figure(), tmp_path / "one", PROVENANCE)
    second = save_figure(figure(), tmp_path / "two", {"commit": "def"})
    for a, b in zip(first, second, strict=True):
        assert a.read_bytes() != b.read_bytes()


def test_no_time_in_the_files(tmp_path):
    svg, png = save_figure(figure(), tmp_path / "f", {})
    assert "<dc:date>" not in svg.read_text()
    with Image.open(png) as image:
        assert set(image.info) <= {"Software", "dpi", "roshap provenance"}


def test_global_state_is_left_alone(tmp_path):
    before = dict(mpl.rcParams)
    save_figure(figure(), tmp_path / "f", {})
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.pdf", b"x", r"expected .svg or .png, not '.pdf'"),
        ("a.png", None, "no such figure"),
        ("a.png", b"not a picture", "cannot be read as PNG"),
        ("a.svg", b"<svg", "cannot be read as SVG"),
        ("a.svg", b"<svg xmlns='http://www.w3.org/2000/svg'/>", "holds no provenance"),
    ],
)
def test_other_files_are_refused(tmp_path, name, content, words):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=words):
        read_provenance(tmp_path / name)


def test_a_figure_of_another_program_has_no_provenance(tmp_path):
    fig = Figure()
    fig.savefig(tmp_path / "a.png", metadata={"Description": "mine"})
    fig.savefig(tmp_path / "a.svg", metadata={"Description": '{"title": "mine"}'})
    for name in ("a.png", "a.svg"):
        with pytest.raises(DataError, match="holds no provenance"):
            read_provenance(tmp_path / name)


def test_a_place_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write"):
        save_figure(figure(), tmp_path / "file" / "f", {})
