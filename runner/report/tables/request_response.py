"""REQUEST/RESPONSE: how long one call takes, one call at a time on each connection."""

from __future__ import annotations

from runner.report import connecting, resources, wire
from runner.report.compare import Measure, quoted_figures, quoting, sentences
from runner.report.context import Context
from runner.report.disturbed import disturbed
from runner.report.figures import digits_for
from runner.report.rows import NO_ERRORS, Row
from runner.report.table import Cell, Column, Table, bracket_word, headline, middle
from runner.report.unstable import unstable

OPERATION = "request_response"
P50 = Measure("p50_us", "p50", "faster", more_is_better=False)
TAIL = Measure("tail_ratio", "tail (p99/p50)", "steadier", more_is_better=False, values=True)
FLOOR = "x floor: p50 as a multiple of the floor's, with the same codec under the same conditions"
UNSEEN = (
    "closed loop: service time; what a stall does to calls that would have come meanwhile is not in it "
    "(coordinated omission): load=constant shows it"
)
PERCENTILES = "percentiles: nearest rank; p99 from 100 samples, p99.9 from 1,000"
FAMILY = ("p50_us", "p90_us", "p99_us", "p999_us", "mean_us", "max_us")  # share their decimals


def build(context: Context) -> Table | None:
    """None without runs."""
    rows = context.rows(OPERATION)
    if not rows.all:
        return None
    digits = digits_for(row.values("p50_us")[0] for row in rows.all if row.values("p50_us"))
    cpu = digits_for(e.median for row in rows.all if (e := row.estimate("server_cpu_us")))
    uneven = len({value for row in rows.good for value in row.values("n")}) > 1
    spread = bracket_word(row.estimate("p50_us") for row in rows.all)
    columns = [
        *rows.key_columns(),
        Column("n_calls", "calls\nmeasured", shown=uneven),
        Column("p50_us", f"p50 µs\n{spread}".strip(), spread=True),
        Column("p90_us", "p90\nµs"),
        Column("p99_us", "p99\nµs"),
        Column("p999_us", "p99.9\nµs", shown=False),
        Column("max_us", "max\nµs", shown=False),
        Column("tail_ratio", "p99\n/p50"),
        Column("mean_us", "mean\nµs"),
        Column("calls_per_s", "calls/s"),
        Column("floor_ratio", "x\nfloor", spread=True, shown=rows.has_floor()),
        Column("driver_cpu_pct", "driver\nCPU %"),
        Column("server_cpu_us", "server\nCPU µs\n/call"),
        Column("driver_cpu_us", "driver\nCPU µs\n/call", shown=False),
        *resources.columns("call"),
        *wire.columns(rows, "call", both_ways=True),
        Column("errors", "errors", "text", shown=not rows.faultless),
        Column("error_kinds", "errors by kind", "text", shown=False),
        *connecting.columns(),
    ]

    def cells(row: Row) -> dict[str, Cell]:
        return {
            **rows.key_cells(row),
            "n_calls": middle(row.estimate("n")),
            **{name: middle(row.estimate(name), digits) for name in FAMILY},
            "p50_us": headline(row.estimate("p50_us"), digits),
            "tail_ratio": middle(row.estimate("tail_ratio"), 1),
            "calls_per_s": middle(row.estimate("calls_per_s")),
            "floor_ratio": rows.floor_cell(row, "p50_us"),
            "driver_cpu_pct": middle(row.estimate("driver_cpu_pct")),
            "server_cpu_us": middle(row.estimate("server_cpu_us"), cpu),
            "driver_cpu_us": middle(row.estimate("driver_cpu_us"), cpu),
            **resources.cells(row),
            **wire.cells(row),
            "errors": row.errors,
            "error_kinds": row.error_kinds,
            **connecting.cells(row),
        }

    left_out = context.choosing.left_out
    published = context.published
    notes = sentences(rows, P50, left_out, published, OPERATION)
    notes += [line for line in sentences(rows, TAIL, left_out, published, OPERATION) if line not in notes]
    notes += quoted_figures(rows, published, OPERATION, [("p50_us", "p50", "µs", 1), ("p99_us", "p99", "µs", 1)])
    floor = [FLOOR, rows.floor_note("p50_us")] if rows.has_floor() else []
    notes += [*disturbed(rows), *unstable(rows, "p50_us"), *filter(None, floor), UNSEEN, PERCENTILES]
    notes += [*connecting.notes(rows), *([wire.WIRE] if wire.measured(rows) else [])]
    notes += [NO_ERRORS] if rows.faultless else []
    return Table(
        OPERATION,
        "REQUEST/RESPONSE",
        "latency of the calls that were answered",
        rows.conditions(),
        columns,
        [cells(row) for row in rows.all],
        notes,
        sources=quoting(rows, published, OPERATION),
    )
