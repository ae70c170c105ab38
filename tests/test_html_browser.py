"""The HTML report in a real browser: every figure is drawn, nothing is fetched, nothing is complained of."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from runner.report.command import main
from runner.report.pictures import PICTURES
from tests import browser, golden_db
from tests.browser import Tab
from tests.golden_pictures import pictured

PHONE, DESKTOP = (360, 780), (1280, 900)
SCREENS = [(*size, scheme) for size in (PHONE, DESKTOP) for scheme in ("light", "dark")]
PROGRAM = browser.found()
LEAST_TEXT_PX = 8.0

pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason=f"no Chromium on the PATH, and {browser.CHROMIUM} names none: apt install chromium"
)

FIGURES = """[...document.querySelectorAll('figure svg')].map(svg => {
    const box = svg.getBoundingClientRect(), page = document.documentElement.clientWidth
    const texts = [...svg.querySelectorAll('text')].filter(text => text.textContent)
    const inside = [...svg.querySelectorAll('text, polyline, path')].every(part => {
        const b = part.getBoundingClientRect()
        const across = b.left >= box.left - 2 && b.right <= box.right + 2
        return across && b.top >= box.top - 2 && b.bottom <= box.bottom + 2
    })
    const lines = [...svg.querySelectorAll('polyline.main')].map(line => line.getTotalLength())
    return {
        name: svg.querySelector('title').textContent, width: box.width, height: box.height, inside,
        fits: box.left >= 0 && box.right <= page, lines: lines.length,
        drawn: Math.max(...lines) > 0 || svg.querySelectorAll('path.marker').length > 0,
        text: Math.min(...texts.map(text => text.getBoundingClientRect().height)),
        ink: getComputedStyle(svg.querySelector('text')).fill,
        paper: getComputedStyle(svg).backgroundColor,
        colours: [...svg.querySelectorAll('polyline.main')].map(line => getComputedStyle(line).stroke),
    }
})"""


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file, of a sweep with something for every picture."""
    monkeypatch.chdir(tmp_path)
    pictured(tmp_path / "results.db")
    assert main(["--html", "report.html"]) == 0
    return tmp_path / "report.html"


@pytest.fixture
async def page(report: Path) -> AsyncIterator[Tab]:
    """It in a browser."""
    assert PROGRAM is not None
    async with browser.tab(PROGRAM) as opened:
        await opened.visit(report.as_uri())
        yield opened


def brightness(colour: str) -> float:
    """0 is black, 1 is white; of rgb(r, g, b), as WCAG 2 defines relative luminance."""
    parts = [float(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """1 to 21, as WCAG 2 defines it."""
    dark, light = sorted((brightness(one), brightness(other)))
    return (light + 0.05) / (dark + 0.05)


async def test_every_figure_is_drawn_on_every_screen_and_nothing_leaves_the_page(page: Tab, report: Path) -> None:
    papers = {}
    for width, height, scheme in SCREENS:
        await page.show(width, height, scheme)
        figures = await page.evaluate(FIGURES)

        assert (
            len(figures) == await page.evaluate("document.querySelectorAll('.charts svg').length") >= len(PICTURES)
        )
        for figure in figures:
            where = (figure["name"], width, scheme)
            assert figure["width"] > 250, where
            assert figure["height"] > 150, where
            assert figure["lines"] > 0, where
            assert figure["drawn"], where
            assert figure["fits"], where
            assert figure["inside"], where
            assert figure["text"] >= LEAST_TEXT_PX, where
            assert contrast(figure["ink"], figure["paper"]) >= 7, where
            assert min(contrast(colour, figure["paper"]) for colour in figure["colours"]) >= 3, where
        assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), (width, scheme)
        papers[scheme] = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert brightness(papers["light"]) > 0.8
    assert brightness(papers["dark"]) < 0.05
    assert [address for address in page.requests if not address.startswith("data:")] == [report.as_uri()]
    assert list(page.complaints) == []


async def test_a_screenshot_is_not_blank(page: Tab) -> None:
    await page.show(*DESKTOP, "light")

    shot = await page.ask("Page.captureScreenshot", format="png")

    data = base64.b64decode(shot["data"])
    assert data.startswith(b"\x89PNG")
    assert len(data) > 20_000  # a blank page of this size has 5 kB


async def test_every_link_leads_somewhere_on_the_page(page: Tab) -> None:
    links = "[...document.querySelectorAll('a')].map(a => a.getAttribute('href'))"
    missing = f"{links}.filter(href => !href.startsWith('#') || !document.getElementById(href.slice(1)))"

    assert await page.evaluate(missing) == []
    assert await page.evaluate(f"{links}.length") > len(PICTURES)


async def test_the_points_of_a_picture_open_with_a_click(page: Tab) -> None:
    await page.show(*PHONE, "light")
    height = "document.querySelector('details').getBoundingClientRect().height"

    assert 0 < await page.evaluate(height) < 50
    await page.evaluate("document.querySelector('details summary').click()")

    assert await page.evaluate(height) > 200


async def test_names_of_users_are_shown_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    nasty = "<script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\">"
    runs = [
        golden_db.latency_run("grpc", i, 300.0, label=nasty, variant=nasty, samples={"latency": [1_000] * 200})
        for i in range(2)
    ]
    golden_db.write_sweep(tmp_path / "results.db", runs, suite=nasty, command=nasty)
    assert main(["--html", "report.html"]) == 0
    assert PROGRAM is not None

    async with browser.tab(PROGRAM) as page:
        await page.visit((tmp_path / "report.html").as_uri())

        assert (await page.evaluate("document.title")).startswith("bakeoff")
        assert nasty in await page.evaluate("document.body.textContent")
        assert await page.evaluate("document.querySelectorAll('script, img').length") == 0
        assert list(page.complaints) == []


async def test_the_browser_of_these_tests_does_notice_what_they_look_for(tmp_path: Path) -> None:
    """Else they could not fail."""
    assert PROGRAM is not None
    bad = tmp_path / "bad.html"
    bad.write_text("<img src='http://127.0.0.1:9/x.png'><script>console.error('oh'); missing()</script>")

    async with browser.tab(PROGRAM) as page:
        await page.visit(bad.as_uri())

        assert "http://127.0.0.1:9/x.png" in page.requests
        assert any("oh" in said for said in page.complaints)
        assert any("missing is not defined" in said for said in page.complaints)
