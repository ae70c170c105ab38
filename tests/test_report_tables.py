"""Every table of the report, whole, from the shared hand-written database.

After a wanted change: `BAKEOFF_REWRITE_GOLDEN=1 pytest tests/test_report_tables.py`, then read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runner.report.tables import TABLES
from tests import golden_db
from tests.golden_sweeps import OTHER_SWEEPS, TRANSFERS
from tests.reports import Reporter

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Reporter:
    reporter = Reporter(capsys, monkeypatch, tmp_path)
    golden_db.golden(reporter.path)
    return reporter


def same(printed: str, name: str) -> None:
    path = GOLDEN / name
    if os.environ.get("BAKEOFF_REWRITE_GOLDEN"):
        path.write_text(printed, encoding="utf-8", newline="\n")
    assert printed == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("table", TABLES)
def test_a_table_is_printed_as_written_down(report: Reporter, table: str) -> None:
    report.width(120)
    if table in OTHER_SWEEPS:
        report.write(OTHER_SWEEPS[table](), 3)

    same(report(table), f"{table}.txt")


@pytest.mark.parametrize("width", [80, 200])
def test_the_whole_report_is_printed_as_written_down(report: Reporter, width: int) -> None:
    report.width(width)

    same(report(), f"report_{width}.txt")


def test_the_report_of_all_sweeps_is_printed_as_written_down(report: Reporter) -> None:
    report.width(120)

    same(report("--all", "request_response", "--published", "none"), "all.txt")


@pytest.mark.parametrize("form", ["md", "csv", "json"])
def test_other_formats_are_written_as_written_down(report: Reporter, form: str) -> None:
    same(report("stream", "--format", form), f"stream.{form}")


@pytest.mark.parametrize("table", TRANSFERS)
@pytest.mark.parametrize("form", ["md", "csv", "json"])
def test_hello_and_bulk_are_written_in_other_formats_as_written_down(
    report: Reporter, table: str, form: str
) -> None:
    report.write(OTHER_SWEEPS[table](), 3)

    same(report(table, "--format", form), f"{table}.{form}")


def test_every_written_down_output_is_of_a_test() -> None:
    tables = {f"{table}.txt" for table in TABLES}
    others = {"report_80.txt", "report_200.txt", "all.txt", "stream.md", "stream.csv", "stream.json"}
    others |= {f"{table}.{form}" for table in TRANSFERS for form in ("md", "csv", "json")}

    assert {path.name for path in GOLDEN.iterdir()} == tables | others
