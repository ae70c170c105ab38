"""`bakeoff report`: which sweep and tables are printed, how mistakes are answered, and where it prints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from runner.report.command import main, sweep_report, terminal_width
from runner.report.tables import TABLES
from runner.store import open_store
from tests import golden_db
from tests.golden_db import latency_run, payload_run
from tests.reports import DB, Reporter

ARTICLE = "01KG0000000000000000000002"
EARLIER = "01KG0000000000000000000001"
SCRIPT = "import sys; from runner.report.command import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Reporter:
    return Reporter(capsys, monkeypatch, tmp_path)


@pytest.fixture
def golden(report: Reporter) -> Reporter:
    golden_db.golden(report.path)
    return report


def test_the_last_sweep_is_printed_unless_told_otherwise(golden: Reporter) -> None:
    assert golden.lines()[0].startswith(f"bakeoff · results.db · sweep {ARTICLE} · article")
    assert golden.lines("--sweep", EARLIER)[0].startswith(
        f"bakeoff · results.db · sweep {EARLIER} · bakeoff protocol="
    )


def test_all_prints_every_sweep_apart_the_oldest_first(golden: Reporter) -> None:
    lines = golden.lines("--all", "request_response")

    assert [line.split(" · ")[2] for line in lines if line.startswith("bakeoff · ")] == [
        f"sweep {EARLIER}",
        f"sweep {ARTICLE}",
    ]
    rows = golden.rows("request_response", "--all")
    assert [(row["sweep_id"], row["p50_us"]) for row in rows if row["protocol"] == "grpc"] == [
        (EARLIER, "405"),
        (ARTICLE, "300"),
    ]


def test_the_beginning_of_an_id_is_enough_if_it_is_one_sweeps(golden: Reporter) -> None:
    newer = golden.write([latency_run("grpc", 0, 500)], 30)

    assert newer in golden("--sweep", newer[:-1].lower())
    assert golden.refused("--sweep", "01KG0").endswith("3 sweeps begin like this; give more of the id")


def test_only_the_tables_asked_for_are_printed(golden: Reporter) -> None:
    printed = golden("payload", "back-pressure".replace("-", ""), "Request-Response")

    assert [title in printed for title in ("PAYLOAD", "BACK-PRESSURE", "REQUEST/RESPONSE")] == [True] * 3
    assert [title in printed for title in ("STREAM", "CHOOSING", "PROTOCOLS")] == [False] * 3


def test_without_names_only_tables_with_data_are_printed(report: Reporter) -> None:
    report.write([payload_run("json")])

    printed = report()

    assert "PAYLOAD" in printed
    assert [title for title in ("PROTOCOLS", "REQUEST", "STREAM", "BACK-PRESSURE") if title in printed] == []


@pytest.mark.parametrize("form", ["text", "md", "csv", "json"])
def test_a_table_asked_for_without_data_is_one_line(report: Reporter, form: str) -> None:
    sweep = report.write([payload_run("json")])

    assert report.refused("stream", "--format", form) == (
        f"bakeoff report: no stream runs in sweep {sweep}; it has: payload"
    )
    assert report.refused("protocols", "--format", form) == (
        f"bakeoff report: no runs for the table protocols in sweep {sweep}; it has: payload"
    )


def test_a_table_that_only_some_of_the_sweeps_have_is_empty_in_the_others(report: Reporter) -> None:
    report.write([payload_run("json")], 1)
    report.write([latency_run("grpc", 0, 300)], 2)

    assert "no runs of this kind in this sweep" in report("payload", "--all")
    assert report.refused("stream", "--all") == (
        "bakeoff report: no stream runs in any of 2 sweeps; they have: payload, request_response"
    )


def test_the_header_counts_runs_by_verdict(golden: Reporter) -> None:
    assert "77 runs (73 ok, 1 void, 1 failed, 1 interrupted, 1 unsupported)" in golden()


def test_an_unfinished_plan_says_how_far_it_came(report: Reporter) -> None:
    report.write([latency_run("grpc", repeat, 300) for repeat in range(3)], planned=63, ended=False)

    assert "3 of 63 runs, all ok" in report()
    assert report.lines()[-1] == "unfinished: 60 of 63 runs never started"


def test_a_sweep_without_runs_is_no_failure(report: Reporter) -> None:
    report.write([], planned=63, ended=False)

    assert "0 of 63 runs" in report()
    assert report.json()["sweeps"][0]["tables"] == []


def test_several_machines_are_listed_with_what_differs(report: Reporter) -> None:
    other = {**golden_db.ENVIRONMENT, "hostname": "second", "grpcio": "1.84.0"}
    report.write(
        [latency_run("grpc", 0, 300), latency_run("grpc", 1, 300), latency_run("grpc", 2, 300, environment=other)]
    )

    assert "environments: A is the above · B: grpcio 1.84.0, hostname second" in report.lines()
    assert [row["environment"] for row in report.json("request_response")["sweeps"][0]["tables"][0]["rows"]] != []


def test_what_needs_attention_comes_last(golden: Reporter) -> None:
    lines = golden.lines()

    assert lines[-6:-1][0] == "4 rows need attention:"
    assert lines[-1].strip().startswith(("unsupported:", "carries at most"))


def test_repeats_of_one_cell_need_attention_once(report: Reporter) -> None:
    report.write([latency_run("grpc", r, verdict="failed", reason="no answer in 5 s") for r in range(3)])

    assert report.lines()[-2:] == [
        "1 row needs attention:",
        "  failed: grpc request_response protobuf repeats 0, 1, 2 (no answer in 5 s)",
    ]


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (
            ["latency"],
            f"bakeoff report: there is no table latency (tables: {', '.join(TABLES)})",
        ),
        (
            ["strem"],
            f"bakeoff report: there is no table strem; did you mean stream? (tables: {', '.join(TABLES)})",
        ),
        (
            ["--format", "csv"],
            f"bakeoff report: --format csv takes one table; name one of: {', '.join(TABLES)}",
        ),
        (
            ["--format", "csv", "stream", "payload"],
            f"bakeoff report: --format csv takes one table; name one of: {', '.join(TABLES)}",
        ),
        (
            ["--sweep", "XYZ"],
            f"bakeoff report: sweep XYZ: there is no such sweep; the last ones are: {EARLIER}, {ARTICLE}",
        ),
        (
            ["--sweep", ""],
            f"bakeoff report: sweep : there is no such sweep; the last ones are: {EARLIER}, {ARTICLE}",
        ),
    ],
)
def test_a_mistake_is_one_line_with_the_way_out(golden: Reporter, argv: list[str], line: str) -> None:
    assert golden.refused(*argv) == line


@pytest.mark.parametrize(
    "argv", [["--format", "html"], ["--all", "--sweep", ARTICLE], ["--frmat", "md"], ["--sweep"], ["--db"]]
)
def test_a_misspelt_option_is_one_line(golden: Reporter, argv: list[str]) -> None:
    assert golden.refused(*argv).startswith("bakeoff report: ")


def test_no_database_is_one_line(report: Reporter) -> None:
    assert report.refused() == f"bakeoff report: {DB} not found; run bakeoff first"
    assert not report.path.exists()


def test_another_programs_file_is_one_line(report: Reporter) -> None:
    report.path.write_text("not a database at all, but long enough to look at its first hundred bytes" * 3)

    assert report.refused().startswith(f"bakeoff report: {DB}: ")


def test_a_database_without_sweeps_is_one_line(report: Reporter) -> None:
    open_store(str(report.path)).close()

    assert report.refused() == f"bakeoff report: {DB} holds no sweep yet; run bakeoff first"


def test_path_and_url_name_the_same_database(golden: Reporter) -> None:
    (golden.path.parent / "deep").mkdir()
    os.rename(golden.path, golden.path.parent / "deep" / "other.db")

    by_path, by_url = golden("--db", "deep/other.db"), golden("--db", "sqlite:///deep/other.db")

    assert by_path == by_url
    assert by_path.startswith("bakeoff · deep/other.db · ")


def test_reading_changes_nothing(golden: Reporter) -> None:
    before = golden.path.read_bytes()

    golden()

    assert golden.path.read_bytes() == before
    assert [path.name for path in golden.path.parent.iterdir()] == [DB]


def test_help_names_tables_formats_and_width(report: Reporter, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0

    said = " ".join(capsys.readouterr().out.split())

    assert ", ".join(TABLES) in said
    assert "120 columns where the output is no terminal" in said
    assert "{text,md,csv,json}" in said


def test_the_report_after_a_sweep_is_the_one_of_the_command(golden: Reporter) -> None:
    assert sweep_report("results.db", ARTICLE) == golden()
    assert sweep_report("sqlite:///results.db", ARTICLE, 80) != golden()


def test_width_is_columns_else_120_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for columns in ("72", "", "0", "wide", "-5", "3"):
        monkeypatch.setenv("COLUMNS", columns)
        found.append(terminal_width())
    monkeypatch.delenv("COLUMNS")

    assert found == [72, 120, 120, 120, 120, 20]
    assert terminal_width() == 120


def test_only_what_is_shown_is_read(golden: Reporter) -> None:
    asked: list[str] = []

    def note(*arguments: object) -> None:
        asked.append(f"{arguments[2]} {arguments[3]}")

    event.listen(Engine, "before_cursor_execute", note)
    try:
        golden("payload", "--format", "csv")
    finally:
        event.remove(Engine, "before_cursor_execute", note)

    assert [query for query in asked if " sample" in query or "distribution" in query] == []
    assert [query for query in asked if "backpressure" in query or "request_response" in query] == []


@pytest.mark.parametrize("form", [["--format", "csv", "stream"], ["--format", "json"], []])
def test_the_locale_changes_no_byte(golden: Reporter, form: list[str]) -> None:
    outputs = []
    for locale in ("C", "de_DE.UTF-8", "de_DE.ISO-8859-1"):
        environment = {
            **os.environ,
            "LC_ALL": locale,
            "LANG": locale,
            "PYTHONUTF8": "0",
            "PYTHONIOENCODING": "latin-1",
        }
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, *form], env=environment, capture_output=True, timeout=60, check=True
        )
        outputs.append(done.stdout)

    assert set(outputs) == {golden(*form).encode()}


def test_a_reader_that_stops_reading_is_no_failure(golden: Reporter) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        done = subprocess.run([sys.executable, "-c", SCRIPT], stdout=closed, stderr=subprocess.PIPE, timeout=60)

    assert (done.returncode, done.stderr) == (0, b"")


def test_piped_output_has_no_colour(golden: Reporter) -> None:
    assert "\x1b" not in golden()
