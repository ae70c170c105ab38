"""Markdown, CSV and JSON: what programs and pages read of the same tables."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from runner.report import render
from runner.report.command import WHY
from runner.report.render import Report, Section
from runner.report.table import Cell, Column, Table, figure, words
from runner.report.tables import TABLES
from runner.samples import PERCENTILES, latency_measurements
from runner.store import RunRecord
from tests import golden_db
from tests.golden_db import latency_run
from tests.golden_sweeps import OTHER_SWEEPS
from tests.golden_transfers import hello_run
from tests.reports import Reporter

UNITS = (
    "_us",
    "_ns",
    "_ms",
    "_s",
    "_bytes",
    "_pct",
    "_per_s",
    "_ratio",
    "_switches",
    "_messages",
    "_calls",
    "_requests",
    "_per_record",
    "_mb",
    "_low",
    "_high",
)
PLAIN_NUMBERS = {
    "steps",
    "dropped",
    "repeat",
    "connections",
    "runs",
    "errors",
    "count",
    "warmup",
    "asked",
    "seconds",
    "us_per_message",
}
PLAIN_NUMBERS |= {"connections_opened", "workers", "requests", "records", "batch", "messages"}


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Reporter:
    reporter = Reporter(capsys, monkeypatch, tmp_path)
    golden_db.golden(reporter.path)
    return reporter


def written(report: Reporter, table: str) -> None:
    """The last sweep has something for the table."""
    if table in OTHER_SWEEPS:
        report.write(OTHER_SWEEPS[table](), 3)


def one(*rows: dict[str, Cell]) -> Report:
    columns = [Column("name", "name", "key"), Column("p50_us", "p50 µs", spread=True)]
    table = Table("t", "T", "s", ["c"], columns, rows, ["a note", "  under it"])
    return Report([Section("S1", [["bakeoff", "db"]], {"sweep_id": "S1"}, [table], ["1 row needs attention:"])], [])


def test_json_has_every_table_with_numbers_as_computed(report: Reporter) -> None:
    [sweep] = report.json()["sweeps"]

    assert [table["name"] for table in sweep["tables"]] == [
        name for name in TABLES if name not in (*OTHER_SWEEPS, *WHY)
    ]
    assert sweep["runs_by_verdict"] == {"ok": 73, "void": 1, "failed": 1, "interrupted": 1, "unsupported": 1}
    [grpc] = [row for row in sweep["tables"][3]["rows"] if row["protocol"] == "grpc"]
    assert (grpc["p50_us"], grpc["p50_us_low"], grpc["p50_us_high"], grpc["calls_per_s"]) == pytest.approx(
        (300, 294, 306, 1e6 / 330)
    )


@pytest.mark.parametrize("table", TABLES)
def test_every_key_of_a_number_carries_its_unit(report: Reporter, table: str) -> None:
    written(report, table)
    [found] = report.json(table)["sweeps"][0]["tables"]

    numbers = {
        key
        for row in found["rows"]
        for key, value in row.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }

    assert {key for key in numbers if not key.endswith(UNITS)} <= PLAIN_NUMBERS


@pytest.mark.parametrize("table", TABLES)
def test_csv_and_json_hold_the_same_values(report: Reporter, table: str) -> None:
    written(report, table)
    [found] = report.json(table)["sweeps"][0]["tables"]

    def plain(value: Any) -> str:
        return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)

    assert [{k: v for k, v in row.items() if k != "sweep_id"} for row in report.rows(table)] == [
        {key: plain(value) for key, value in row.items()} for row in found["rows"]
    ]


@pytest.mark.parametrize("table", TABLES)
def test_what_text_shows_is_the_exported_value_rounded(report: Reporter, table: str) -> None:
    """The same figures in every format: a printed number is within half a unit of its last digit."""
    written(report, table)
    [found] = report.json(table)["sweeps"][0]["tables"]
    lines = [line for line in report(table, "--format", "md").splitlines() if line.startswith("|")][2:]
    heads = {column["key"]: column["head"] for column in found["columns"]}
    shown = [[cell.strip() for cell in line.replace("\\|", "¦").strip("|").split("|")] for line in lines]
    printed_heads = [
        cell.strip()
        for cell in report(table, "--format", "md").split("\n|", 1)[1].splitlines()[0].strip("|").split("|")
    ]

    checked = 0
    for row, cells in zip(found["rows"], shown, strict=True):
        for key, value in row.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or heads.get(key) not in printed_heads:
                continue
            text = cells[printed_heads.index(heads[key])].partition(" [")[0].rstrip("x").replace(",", "")
            try:
                number = float(text)
            except ValueError:
                continue  # with a unit of its own: 1.0 MB
            digits = len(text.partition(".")[2])
            assert number == pytest.approx(value, abs=0.5000001 * 10**-digits), (key, text)
            checked += 1
    assert checked or table in ("protocols", "codecs", "choosing")


def test_json_has_null_for_what_is_not_finite() -> None:
    printed = render.javascript(one({"name": words("a"), "p50_us": Cell("x", math.nan, math.inf, -math.inf)}))

    assert "NaN" not in printed
    assert "Infinity" not in printed
    assert '"p50_us": null' in printed


def test_csv_has_a_header_and_plain_numbers() -> None:
    cell = Cell("1,234.5", 1234.5, 1000.0, 2000.25, ("1,000.0", "2,000.2"))

    assert render.comma_separated(one({"name": words('a, "b"'), "p50_us": cell})) == (
        'sweep_id,name,p50_us,p50_us_low,p50_us_high\nS1,"a, ""b""",1234.5,1000,2000.25\n'
    )


def test_csv_of_a_table_without_rows_is_its_header() -> None:
    assert render.comma_separated(one()) == "sweep_id,name,p50_us,p50_us_low,p50_us_high\n"


def test_markdown_is_a_table_with_its_sentences() -> None:
    cell = Cell("301", 301.0, 295.0, 309.0, ("295", "309"))

    assert render.markdown(
        one({"name": words("a|b"), "p50_us": cell}, {"name": words("c"), "p50_us": figure(None)})
    ) == (
        "bakeoff · db\n\n"
        "### T\n\n"
        "s. c.\n\n"
        "| name   |         p50 µs |\n"
        "|:-------|---------------:|\n"
        "| a\\|b   | 301 [295, 309] |\n"
        "| c      |              - |\n\n"
        "- a note\n  - under it\n\n"
        "- 1 row needs attention:\n"
    )


def random_runs(make: Callable[..., RunRecord]) -> list[RunRecord]:
    """Rows of one to three runs of a few samples each; some lie so close that rounding could turn them round.

    What a run keeps of its samples is what its operation would.
    """
    dealer = random.Random(38)
    runs = []
    for number in range(ROWS):
        least, width = dealer.choice(
            [(99_940, 120), (2_400, 200), (900, 200_000), (24_900, 150), (700_000, 10_000)]
        )
        for repeat in range(dealer.randint(1, 3)):
            n = dealer.choice([dealer.randint(1, 60), dealer.randint(98, 102), dealer.randint(990, 1_010)])
            found = latency_measurements([least + dealer.randrange(width) for _ in range(n)])
            record = make("grpc", repeat, 300.0, label=LABEL.format(number), n=n)
            others = {name: value for name, value in record.measurements.items() if name not in OF_SAMPLES}
            runs.append(dataclasses.replace(record, measurements={**others, **found}))
    return runs


ROWS, LABEL = 40, "row{:02}"
LABELS = {LABEL.format(number) for number in range(ROWS)}
OF_SAMPLES = (*PERCENTILES, "mean_us", "max_us")


@pytest.mark.parametrize(
    ("table", "make"), [("request_response", latency_run), ("hello", hello_run)], ids=["calls", "hello"]
)
def test_percentiles_rise_in_every_format_whatever_the_samples(
    report: Reporter, table: str, make: Callable[..., RunRecord]
) -> None:
    runs = random_runs(make)
    report.write(runs, 3)
    report.width(400)  # one line for each row
    keys = [*PERCENTILES, "max_us"]
    [found] = report.json(table)["sweeps"][0]["tables"]
    heads = [column["head"] for column in found["columns"] if column["key"] in keys]

    def rises(values: Sequence[str | float | None]) -> None:
        numbers = [float(str(value).replace(",", "")) for value in values if value not in (None, "", "-")]
        assert numbers == sorted(numbers)

    for row in found["rows"]:
        rises([row.get(key) for key in keys])
    for csv_row in report.rows(table):
        rises([csv_row.get(key) for key in keys])
    printed = [line for line in report(table, "--format", "md").splitlines() if line.startswith("|")]
    split = [[cell.strip() for cell in line.strip("|").split("|")] for line in printed]
    shown = [i for i, head in enumerate(split[0]) if any(head.startswith(one) for one in heads)]
    assert len(shown) == {"request_response": 3, "hello": 5}[table]  # the others are for programs alone
    for cells in split[2:]:
        rises([cells[i].partition(" [")[0] for i in shown])
    # The text has the cells of Markdown, in the same order.
    lines = [line.split() for line in report.lines(table) if line.startswith("grpc ")]
    for cells in split[2:]:
        (line,) = [line for line in lines if set(cells) & LABELS & set(line)]
        words = iter(line)
        assert all(cells[i].partition(" [")[0] in words for i in shown)


def test_a_percentile_that_one_of_the_runs_has_too_few_samples_for_is_a_dash(report: Reporter) -> None:
    """Its median over the others could be below the p90 of all."""
    report.write(
        [
            latency_run("grpc", 0, 10, p90_us=1_000, p99_us=None, p999_us=None, n=99, errors=1),
            latency_run("grpc", 1, 10, p90_us=15, p99_us=20, n=100),
        ],
        3,
    )

    [row] = report.rows("request_response")

    assert (row["p90_us"], row["p99_us"], row["tail_ratio"]) == ("507.5", "", "")


@pytest.mark.parametrize("label", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "=HYPERLINK(0)"])
def test_a_label_that_a_spreadsheet_would_compute_is_text_in_csv_and_itself_in_json(
    report: Reporter, label: str
) -> None:
    report.write([latency_run("grpc", 0, 300, label=label)], 3)

    assert [row["label"] for row in report.rows("request_response")] == [f"'{label}"]
    assert [row["label"] for row in report.json("request_response")["sweeps"][0]["tables"][0]["rows"]] == [label]


def test_a_number_below_zero_stays_a_number_in_csv() -> None:
    printed = render.comma_separated(one({"name": words("a"), "p50_us": figure(-1.5)}))

    assert printed.splitlines()[1].startswith("S1,a,-1.5,")
