"""`bakeoff report --html FILE`: the same tables, pictures of what the database holds, and a file that is safe to
open and to replace.
"""

from __future__ import annotations

import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from runner.report.pictures import PICTURES
from runner.report.tables import TABLES
from tests import golden_db
from tests.golden_db import latency_run
from tests.golden_pictures import pictured
from tests.reports import Reporter
from tests.svg_values import Drawn, charts

FILE = "report.html"
MOST_BYTES = 1_500_000
NASTY = "<script>alert('x')</script>&\"' 汉字 🙂"


class Page(HTMLParser):
    """What a browser makes of the file: tables as rows of texts by the id of their section, ids, and addresses."""

    VOID = ("meta", "link", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.ids: list[str] = []
        self.addresses: list[tuple[str, str]] = []
        self.tags: list[str] = []
        self.open: list[str] = []
        self._section = ""
        self._cell: list[str] | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        if given.get("id"):
            self.ids.append(str(given["id"]))
        for name in ("href", "src", "xlink:href", "action", "data", "srcset", "poster"):
            if given.get(name) is not None:
                self.addresses.append((tag, str(given[name])))
        if tag == "section":
            self._section = given.get("id") or ""
        elif tag == "tr":
            self.tables.setdefault(self._section, []).append([])
        elif tag in ("td", "th"):
            self._cell = []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag in ("td", "th") and self._cell is not None:
            self.tables[self._section][-1].append(" ".join("".join(self._cell).split()))
            self._cell = None

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Reporter:
    return Reporter(capsys, monkeypatch, tmp_path)


def written(report: Reporter, *argv: str) -> str:
    report(*argv, "--html", FILE)
    return Path(FILE).read_text("utf-8")


@pytest.fixture
def page(report: Reporter) -> str:
    pictured(report.path)
    return written(report)


def test_the_line_that_is_printed_says_what_was_written(report: Reporter) -> None:
    pictured(report.path)

    said = report("--html", FILE)

    assert re.fullmatch(r"report\.html: 12 tables, 7 pictures, \d+ kB\n", said)


def test_the_tables_are_those_of_the_markdown_report(report: Reporter) -> None:
    golden_db.golden(report.path)

    found = Page(written(report)).tables

    markdown = report("--format", "md")
    made = {table["name"]: table["title"] for table in report.json()["sweeps"][-1]["tables"]}
    assert [name for name in TABLES if f"s1-{name}" in found] == list(made)
    for name, title in made.items():
        body = re.search(rf"^### {re.escape(title)}\n\n.*?\n\n(\|.*?)\n\n", markdown, re.MULTILINE | re.DOTALL)
        assert body is not None
        head, _, *rows = body[1].splitlines()
        cells = [[" ".join(cell.split()) for cell in row.strip("|").split("|")] for row in (head, *rows)]
        assert [[cell.replace(" /", "/") for cell in row] for row in found[f"s1-{name}"][:1]] == cells[:1]
        assert found[f"s1-{name}"][1:] == cells[1:]


def test_every_picture_names_its_question_and_leads_to_its_table(page: str) -> None:
    read = Page(page)

    pictures = [name for name in read.ids if re.fullmatch(r"s1-picture-\w+", name)]
    assert len(pictures) == len(PICTURES)
    for name in pictures:
        [body] = re.findall(rf'<section class="picture" id="{name}">.*?</section>', page, re.DOTALL)
        assert re.search(r"<h2>[^<]*\?</h2>", body)
        [link] = re.findall(r'<a href="#(s1-[^"]+)">table', body)
        assert link in read.ids
        assert len(read.tables[name]) > 2  # the points, below <details>


def test_latency_by_percentile_shows_the_stored_distributions(page: str) -> None:
    [text] = charts(page, "request_response_percentiles")
    drawn = Drawn(text, (True, True), percentiles=True)

    lines, thin = drawn.lines(), drawn.lines("thin")
    assert sorted(lines) == ["grpc", "rsocket"]
    assert sorted(thin) == [f"{name}, repeat {i}" for name in ("grpc", "rsocket") for i in range(3)]
    for name, step_us in {"grpc": 10, "rsocket": 20, "grpc, repeat 2": 12, "rsocket, repeat 0": 18}.items():
        by_percentile = {round(100 - 100 / reach, 2): us for reach, us in {**lines, **thin}[name]}
        assert max(by_percentile) == 99.9  # of 1,000 calls
        for percentile in (50.0, 90.0, 99.0, 99.9):
            assert by_percentile[percentile] == pytest.approx(10 * percentile * step_us, rel=0.005)


def test_production_over_time_shows_the_watched_counts_and_what_was_asked_for(page: str) -> None:
    awaited, push = (Drawn(text, (False, True)) for text in charts(page, "production"))

    assert awaited.title.endswith("producer awaited")
    assert awaited.lines()["rsocket pull"] == [
        (pytest.approx(s, abs=0.02), pytest.approx(100, rel=0.002)) for s in (0.0, 0.5, 1.0)
    ]
    assert [made for _, made in awaited.lines()["grpc pull"]] == pytest.approx([100, 10e3, 20e3, 20e3], rel=0.002)
    for drawn in (awaited, push):
        assert drawn.levels() == pytest.approx([100], rel=0.002)
        assert "asked for: 100" in [text.text for text in drawn.svg.iter("text")]
    points = push.lines()["websocket pull"]
    assert len(points) <= 61
    assert points[-1] == (pytest.approx(19.9, abs=0.05), pytest.approx(200_000, rel=0.002))
    assert all(made == pytest.approx(1000 * (10 * s + 1), rel=0.02, abs=60) for s, made in points)


def test_charts_of_one_picture_share_their_scales(page: str) -> None:
    first, second = (Drawn(text, (False, True)) for text in charts(page, "production"))

    assert first.x.ticks == second.x.ticks
    assert first.y.ticks == second.y.ticks


def test_the_ladder_shows_requests_per_second_by_connections(report: Reporter, page: str) -> None:
    rows = [row for row in report.rows("hello") if row["verdict"] == "ok"]
    drawn = [Drawn(text, (True, False)) for text in charts(page, "hello_ladder")]

    for chart, service in zip(drawn, ("0", "100"), strict=True):
        expected = sorted(
            (float(row["connections"]), float(row["requests_per_s"]))
            for row in rows
            if row["service_time_ms"] == service
        )
        shown = sorted(point for points in chart.lines().values() for point in points)
        assert [y for _, y in shown] == [pytest.approx(y, rel=0.01, abs=5) for _, y in expected]


@pytest.mark.parametrize("operation", ["upload", "download"])
def test_bulk_shows_seconds_and_memory_by_records(report: Reporter, page: str, operation: str) -> None:
    rows = [row for row in report.rows(operation) if row["verdict"] == "ok"]
    units = {"time": ("seconds", 1.0), "memory of the driver": ("driver_rss_growth_bytes", 1e6)}
    units["memory of the server"] = ("server_rss_growth_bytes", 1e6)
    seen = set()

    for text in charts(page, f"{operation}_by_records"):
        drawn = Drawn(text, (True, True))
        what = next(name for name in units if f"? {name}" in drawn.title)
        metric, scale = units[what]
        seen.add(what)
        for points in drawn.lines().values():
            for records, value in points:
                assert any(
                    float(row["records"]) == pytest.approx(records, rel=0.01)
                    and float(row[metric]) / scale == pytest.approx(value, rel=0.01)
                    for row in rows
                ), (what, records, value)
    assert seen == set(units)


def test_the_saturation_curve_shows_every_rate_that_was_tried(page: str) -> None:
    [text] = charts(page, "saturation_curve")
    drawn = Drawn(text, (True, True))

    assert drawn.levels() == pytest.approx([10_000], rel=0.002)
    rates = {name: [rate for rate, _ in points] for name, points in drawn.lines().items()}
    assert rates == {
        "grpc": pytest.approx([1_000, 2_000, 4_000, 4_000], rel=0.005),
        "websocket": pytest.approx([4_000, 8_000, 16_000, 16_000], rel=0.005),
    }
    assert [p99 for _, p99 in drawn.lines()["grpc"]] == pytest.approx([4e3, 8e3, 49e4, 49.5e4], rel=0.005)
    hollow = [marker for marker in drawn.svg.iter("path") if marker.get("class") == "marker hollow"]
    assert len(hollow) == 4  # two of each


def test_lines_differ_without_colour(page: str) -> None:
    for name in ("request_response_percentiles", "production", "upload_by_records", "hello_ladder"):
        for text in charts(page, name):
            groups = [g for g in Drawn(text, (True, True)).svg.iter("g") if g.get("data-line")]
            looks = set()
            for group in groups:
                [main] = [line for line in group.iter("polyline") if line.get("class") == "main"]
                shape = next(path.get("d") for path in group.iter("path"))
                looks.add((main.get("stroke-dasharray"), shape))
            assert len(looks) == len(groups)


def test_a_sweep_without_data_for_pictures_has_tables_only(report: Reporter) -> None:
    report.write([latency_run("grpc", repeat, 300) for repeat in range(3)])

    page = written(report)

    assert "<svg" not in page
    assert "REQUEST/RESPONSE" in page


def test_only_pictures_of_the_tables_asked_for_are_there(report: Reporter) -> None:
    pictured(report.path)

    ids = Page(written(report, "hello", "payload")).ids

    assert [name for name in ids if name.startswith("s1-picture-") and name.count("-") == 2] == [
        "s1-picture-hello_ladder"
    ]


def test_all_sweeps_have_ids_of_their_own(report: Reporter) -> None:
    pictured(report.path)
    report.write([latency_run("grpc", 0, 300)], 2)

    read = Page(written(report, "--all"))

    assert len(read.ids) == len(set(read.ids))
    assert {"s1-hello", "s2-request_response"} <= set(read.ids)


def test_published_figures_can_be_left_out(report: Reporter) -> None:
    golden_db.golden(report.path)

    assert "spring_boot_2026" in written(report)
    assert "spring_boot_2026" not in written(report, "--published", "none")


def test_names_that_users_give_are_text_and_nothing_else(report: Reporter) -> None:
    nasty: dict[str, Any] = {"label": NASTY, "variant": f"knob={NASTY}", "engine": NASTY}
    series = {"produced": [(0, 100.0), (10**9, 5_000.0)]}
    runs = [
        *(latency_run("grpc", i, 300.0, samples={"latency": [1_000] * 200}, **nasty) for i in range(2)),
        golden_db.backpressure_run("grpc", 0, [100, 100, 100], **nasty, series=series),
        latency_run("rsocket", 0, verdict="failed", reason=NASTY, **nasty),
    ]
    report.write(runs, suite=NASTY, command=NASTY)

    page = written(report)

    assert "<script" not in page
    read = Page(page)
    assert "script" not in read.tags
    assert read.open == []  # whatever was opened is closed again
    rows = read.tables["s1-request_response"]
    assert any(NASTY in cell for row in rows for cell in row)
    for text in re.findall(r"<svg .*?</svg>", page, re.DOTALL):
        assert NASTY in "".join(Drawn(text, (True, True)).svg.itertext())


def test_a_browser_has_nothing_to_fetch(page: str) -> None:
    read = Page(page)

    assert [address for _, address in read.addresses if not address.startswith(("#", "data:,"))] == []
    assert not {"script", "img", "iframe", "object", "embed"} & set(read.tags)
    assert not re.search(r"@import|url\(", page)
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page


def test_the_file_is_small_even_with_many_long_runs(report: Reporter) -> None:
    from tests.golden_pictures import picture_runs, timed_run, watched_run

    long: list[tuple[float, float | None]] = [(i / 20, 100.0 + 1000 * i) for i in range(440)]
    more = [watched_run("grpc", long, variant=f"k={i}", producer="push", bounded_by="nothing") for i in range(12)]
    more += [timed_run("grpc", repeat, 10, variant=f"k={i}") for i in range(12) for repeat in range(3)]
    report.write([*picture_runs(), *more])

    assert len(written(report).encode()) < MOST_BYTES


def test_what_the_file_held_is_replaced_and_its_rights_are_kept(report: Reporter) -> None:
    golden_db.golden(report.path)
    Path(FILE).write_text("older")
    os.chmod(FILE, 0o640)

    assert written(report).startswith("<!doctype html>")
    assert Path(FILE).stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in Path().iterdir()) == [FILE, "results.db"]


def test_a_link_stays_one(report: Reporter) -> None:
    golden_db.golden(report.path)
    Path("real.html").write_text("older")
    Path(FILE).symlink_to("real.html")

    written(report)

    assert Path(FILE).is_symlink()
    assert Path("real.html").read_text().startswith("<!doctype html>")


def test_a_file_that_cannot_be_written_is_one_line(report: Reporter) -> None:
    golden_db.golden(report.path)
    before = report.path.read_bytes()

    def refused(file: str) -> str:
        return report.refused("--html", file).removeprefix(f"bakeoff report: --html {file}: ")

    assert refused("no/such/a.html") == "there is no folder no/such; create it or give another file"
    assert refused(".") == "it is a folder; give the name of a file in it"
    assert refused("results.db") == "it is a database; give another name"
    assert refused(os.devnull) == "it is not a file; give another name"
    assert refused("a" * 300) == "File name too long; give another file"
    assert report.path.read_bytes() == before


def test_html_and_format_exclude_each_other(report: Reporter) -> None:
    golden_db.golden(report.path)

    assert "not allowed with argument" in report.refused("--html", FILE, "--format", "md")
    assert not Path(FILE).exists()


def test_a_refused_report_leaves_the_file_alone(report: Reporter) -> None:
    golden_db.golden(report.path)
    Path(FILE).write_text("older")

    report.refused("nonsense", "--html", FILE)

    assert Path(FILE).read_text() == "older"


def test_the_picture_of_the_readme_is_one_of_the_report_and_stands_alone(report: Reporter) -> None:
    from tests import readme

    pictured(report.path)
    shown = readme.PICTURE.read_text("utf-8")

    assert f"]({readme.PICTURE.relative_to(readme.ROOT)})" in readme.README.read_text("utf-8")
    for text in (shown, readme.picture(str(report.path))):
        root = ElementTree.fromstring(text)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert (root.findtext("{*}title") or "").endswith("? producer awaited")
        assert "prefers-color-scheme:dark" in (root.findtext("{*}style") or "")
        assert text.count("http://") + text.count("https://") == 1  # the name space, which nobody fetches
