"""REQUEST/RESPONSE, OPEN LOOP: what arriving users would wait at a rate that does not depend on the answers."""

from __future__ import annotations

from dataclasses import replace

from runner.report import connecting, resources, wire
from runner.report.compare import Measure, sentences
from runner.report.context import Context
from runner.report.disturbed import disturbed
from runner.report.figures import digits_for
from runner.report.rows import NO_ERRORS, Row
from runner.report.table import Cell, Column, Table, bracket_word, headline, middle
from runner.report.unstable import unstable

OPERATION = "open_loop"
P50 = Measure("response_p50_us", "response p50", "faster", more_is_better=False)
READING = (
    "response: from when a call was due to its answer, waiting for a free connection included; service: from its "
    "start. What lies between is the wait that a closed loop cannot see (coordinated omission)",
    "achieved: right answers per second, from the first to the last; late: by how much the driver was late with a "
    "call, which is in the response time; dropped: not made, as load.max_in_flight others were in the system",
    "percentiles: nearest rank; p99 from 100 samples",
)
FAMILY = ("p50_us", "p90_us", "p99_us", "p999_us", "max_us")  # share their decimals
RATES = ("requested_per_s", "sent_per_s", "achieved_per_s")


def build(context: Context) -> Table | None:
    """None without runs."""
    rows = context.rows(OPERATION)
    if not rows.all:
        return None
    digits = digits_for(row.values("p50_us")[0] for row in rows.all if row.values("p50_us"))
    rate = digits_for(e.median for row in rows.all if (e := row.estimate("requested_per_s")))
    cpu = digits_for(e.median for row in rows.all if (e := row.estimate("server_cpu_us")))
    spread = bracket_word(row.estimate("response_p50_us") for row in rows.all)
    dropped = any(any(row.values("dropped")) for row in rows.all)
    columns = [
        *rows.key_columns(),
        Column("response_p50_us", f"response\np50 µs\n{spread}".strip(), spread=True),
        Column("response_p90_us", "response\np90 µs", shown=False),
        Column("response_p99_us", "response\np99 µs"),
        Column("response_p999_us", "response\np99.9 µs", shown=False),
        Column("response_max_us", "response\nmax µs"),
        Column("p50_us", "service\np50 µs"),
        Column("p90_us", "service\np90 µs", shown=False),
        Column("p99_us", "service\np99 µs"),
        Column("p999_us", "service\np99.9 µs", shown=False),
        Column("max_us", "service\nmax µs"),
        Column("requested_per_s", "asked\n/s", shown=False),
        Column("sent_per_s", "sent\n/s"),
        Column("achieved_per_s", "achieved\n/s"),
        Column("schedule_delay_p50_us", "late\np50 µs", shown=False),
        Column("schedule_delay_p99_us", "late\np99 µs"),
        Column("dropped_calls", "dropped\ncalls", shown=dropped),
        Column("driver_cpu_pct", "driver\nCPU %", shown=False),
        Column("server_cpu_us", "server\nCPU µs\n/call"),
        Column("driver_cpu_us", "driver\nCPU µs\n/call", shown=False),
        *resources.columns("call"),
        *(replace(column, shown=False) for column in wire.columns(rows, "call", both_ways=True)),
        Column("errors", "errors", "text", shown=not rows.faultless),
        Column("error_kinds", "errors by kind", "text", shown=False),
        *connecting.columns(),
    ]

    def cells(row: Row) -> dict[str, Cell]:
        return {
            **rows.key_cells(row),
            **{name: middle(row.estimate(name), digits) for name in FAMILY},
            **{f"response_{name}": middle(row.estimate(f"response_{name}"), digits) for name in FAMILY},
            "response_p50_us": headline(row.estimate("response_p50_us"), digits),
            **{name: middle(row.estimate(name), rate) for name in RATES},
            **{name: middle(row.estimate(name)) for name in ("schedule_delay_p50_us", "schedule_delay_p99_us")},
            "dropped_calls": middle(row.estimate("dropped")),
            "driver_cpu_pct": middle(row.estimate("driver_cpu_pct")),
            "server_cpu_us": middle(row.estimate("server_cpu_us"), cpu),
            "driver_cpu_us": middle(row.estimate("driver_cpu_us"), cpu),
            **resources.cells(row),
            **wire.cells(row),
            "errors": row.errors,
            "error_kinds": row.error_kinds,
            **connecting.cells(row),
        }

    return Table(
        OPERATION,
        "REQUEST/RESPONSE, OPEN LOOP",
        "what a caller waits when calls come at their own times",
        rows.conditions(),
        columns,
        [cells(row) for row in rows.all],
        [
            *sentences(rows, P50, context.choosing.left_out, (), OPERATION),
            *disturbed(rows),
            *unstable(rows, "response_p50_us"),
            *READING,
            *connecting.notes(rows),
            *([NO_ERRORS] if rows.faultless else []),
        ],
    )
