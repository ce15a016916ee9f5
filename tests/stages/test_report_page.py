"""The report in a headless browser: sorting, links, keyboard, widths, and what readers need."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from roshap.stages.report import render
from tests.conftest import REPOSITORY, copy_checkout, succeed
from tests.stages.browser import CHROMIUM, Page, browser

pytestmark = [pytest.mark.pipeline, pytest.mark.xdist_group("report page")]
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium on the path: the report is looked at nowhere"
)

WIDTHS = (1280, 390)
STYLE = REPOSITORY / "src/roshap/stages/templates/report.css"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of two experiments, one of them with long names."""
    root = tmp_path_factory.mktemp("page")
    copy_checkout(root)
    for number, (data, model) in enumerate(
        [("wine", "logistic_regression"), ("diabetes", "ridge")]
    ):
        succeed(
            f"roshap run dataset={data} model={model} bootstrap.runs=4 tracking=none "
            f"compute.workers=1 out=r{number}",
            root,
        )
    page = root / "index.html"
    page.write_text(render("Study", {"wine-lr": root / "r0", "diabetes-ridge": root / "r1"}))
    return page


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("profile")) as one:
        yield one


@needs_chromium
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_overflows_nothing_complains_nothing_is_fetched(
    report: Path, page: Page, width: int, dark: bool, tmp_path: Path
) -> None:
    page.open(report, width, dark=dark)
    inner, scroll = page.run("[innerWidth, document.documentElement.scrollWidth]")
    assert inner == width
    wide = page.run(
        """[...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll, dialog, .skip')
        && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 120))"""
    )
    assert scroll <= width, wide
    assert wide == []
    page.screenshot(tmp_path / f"report-{width}{'-dark' if dark else ''}.png")
    assert page.complaints == []
    outside = [url for url in page.requests if not url.startswith(("file:", "data:"))]
    assert outside == []
    assert [url for url in page.requests if url.startswith("file:")] == [report.as_uri()]


@needs_chromium
def test_a_heading_sorts_by_number_and_says_so(report: Path, page: Page) -> None:
    page.open(report, 1280)
    column = """[...document.querySelectorAll('[aria-label="Ranking of wine-lr"] tbody tr')]
        .map(row => row.cells[%d].dataset.value)"""
    heads = page.run(
        "[...document.querySelectorAll('[aria-label=\"Ranking of wine-lr\"] th')]"
        ".map(h => h.textContent.trim())"
    )
    ranks = [int(value) for value in page.run(column % 0)]
    assert ranks == sorted(ranks)
    for name in ("RoSHAP", "Stability"):
        place = heads.index(name)
        head = f"document.querySelectorAll('[aria-label=\"Ranking of wine-lr\"] th')[{place}]"
        for order in ("descending", "ascending"):
            page.run(f"{head}.querySelector('button').click()")
            assert page.run(f"{head}.getAttribute('aria-sort')") == order
            values = [float(value) for value in page.run(column % place)]
            assert values == sorted(values, reverse=order == "descending")
    assert page.run("document.querySelectorAll('[aria-sort]').length") == 1


@needs_chromium
def test_links_lead_somewhere(report: Path, page: Page) -> None:
    page.open(report, 1280)
    dead = page.run(
        """[...document.querySelectorAll('a[href]')].map(a => a.getAttribute('href'))
        .filter(h => !h.startsWith('#')
            || !document.getElementById(decodeURIComponent(h.slice(1))))"""
    )
    assert dead == []
    assert page.run("document.querySelectorAll('a[href^=\"#\"]').length") >= 5


@needs_chromium
def test_a_figure_is_enlarged_with_the_keyboard_and_closed_with_escape(
    report: Path, page: Page
) -> None:
    page.open(report, 1280)
    page.run("document.querySelector('figure button').focus()")
    page.press("Enter", 13, "\r")
    assert page.run("document.getElementById('zoom').open") is True
    assert page.run("document.querySelector('#zoom img').alt") == page.run(
        "document.querySelector('figure img').alt"
    )
    page.press("Escape", 27)
    assert page.run("document.getElementById('zoom').open") is False
    assert page.complaints == []


@needs_chromium
def test_the_lineage_of_a_figure_is_one_click_away(report: Path, page: Page) -> None:
    page.open(report, 1280)
    figures = page.run("document.querySelectorAll('figure').length")
    summaries = page.run("document.querySelectorAll('figure details summary').length")
    assert figures == summaries > 0
    page.run("document.querySelector('figure details summary').click()")
    assert page.run("document.querySelector('figure details').open") is True
    text = page.run("document.querySelector('figure details pre').textContent")
    assert "command: roshap run dataset=wine" in text


@needs_chromium
def test_it_prints(report: Path, page: Page) -> None:
    page.open(report, 1280)
    assert page.pdf().startswith(b"%PDF")


#: What axe-core's rules of the same names look at, as far as this page has such parts.
BASICS: dict[str, str] = {
    "image-alt": "[...document.querySelectorAll('main img')].filter(e => !e.alt.trim())",
    "svg-img-alt": "[...document.querySelectorAll('svg[role=img]')]"
    ".filter(e => !e.getAttribute('aria-label'))",
    "button-name": "[...document.querySelectorAll('button')]"
    ".filter(e => !(e.textContent.trim() || e.getAttribute('aria-label')))",
    "link-name": "[...document.querySelectorAll('a')].filter(e => !e.textContent.trim())",
    "duplicate-id": "[...document.querySelectorAll('[id]')]"
    ".filter(e => document.querySelectorAll('#' + CSS.escape(e.id)).length > 1)",
    "aria-labelledby": "[...document.querySelectorAll('[aria-labelledby]')]"
    ".filter(e => !document.getElementById(e.getAttribute('aria-labelledby')))",
    "th-has-scope": "[...document.querySelectorAll('th')].filter(e => !e.scope)",
    "table-caption": "[...document.querySelectorAll('table')].filter(e => !e.caption)",
    "region": "[...document.body.children]"
    ".filter(e => !e.matches('header, main, footer, nav, dialog, script, a.skip'))",
    "scrollable-region-focusable": "[...document.querySelectorAll('.scroll')]"
    ".filter(e => e.scrollWidth > e.clientWidth && e.tabIndex < 0)"
    ".filter(e => !e.querySelector('a, button'))",
}


@needs_chromium
@pytest.mark.parametrize("rule", BASICS)
def test_the_basics_of_accessibility(report: Path, page: Page, rule: str) -> None:
    page.open(report, 390)
    assert page.run(f"{BASICS[rule]}.map(e => e.outerHTML.slice(0, 120))") == []


@needs_chromium
def test_landmarks_language_and_order_of_headings(report: Path, page: Page) -> None:
    page.open(report, 1280)
    assert page.run("document.documentElement.lang") == "en"
    assert page.run("document.title")
    for landmark in ("header", "main", "footer", "h1"):
        assert page.run(f"document.querySelectorAll('{landmark}').length") == 1
    levels = page.run("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert page.run("document.querySelector('a.skip').getAttribute('href')") == "#main"


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2.2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_of_the_colours(scheme: str) -> None:
    """Every text at 4.5 against every ground that it may lie on (WCAG AA)."""
    blocks = re.findall(r":root\s*{(.*?)}", STYLE.read_text(), re.DOTALL)
    colours = dict(re.findall(r"--(\w+):\s*(#[0-9a-f]{6})", blocks[scheme == "dark"]))
    for text in ("text", "quiet", "accent"):
        for ground in ("page", "card", "code"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)


def test_known_contrasts() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
