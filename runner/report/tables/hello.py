"""HELLO: how many small requests a thread pool and an event loop answer, at how many connections."""

from __future__ import annotations

from dataclasses import replace

from runner.report import connecting, resources, wire
from runner.report.compare import UNCLAIMED, Measure, named, sentences
from runner.report.context import Context
from runner.report.disturbed import disturbed
from runner.report.figures import digits_for, number
from runner.report.law import laws, model, workers
from runner.report.readings import readings
from runner.report.rows import NO_ERRORS, Row, Rows
from runner.report.table import Cell, Column, Table, bracket_word, figure, headline, middle, words
from runner.report.unfit import unfit
from runner.report.unstable import unstable

OPERATION = "hello"
LAG_US, LAG_SHARE = 1_000, 0.5  # as in the check that warns of it
RATE = Measure("requests_per_s", "requests/s", "faster", more_is_better=True)
CPU = Measure("requests_per_server_cpu_s", "requests per server-CPU-second", "cheaper", more_is_better=True)
MEASURES = {
    measure.metric: measure
    for measure in (
        RATE,
        CPU,
        *(
            Measure(f"{name}_us", name, "faster", more_is_better=False)
            for name in ("mean", "p50", "p75", "p90", "p99", "max")
        ),
        Measure("server_cpu_pct", "server CPU", "lighter", more_is_better=False),
        Measure("server_peak_rss_bytes", "server peak RSS", "smaller", more_is_better=False),
    )
}
FAMILY = ("mean_us", "p50_us", "p75_us", "p90_us", "p99_us", "p999_us", "max_us")  # share their decimals
LEGEND = (
    "opened: connections that the server counted; requests: those answered in the window; req/server CPU s: "
    "requests per second of the server's CPU time, steadier than requests/s where other programs run; "
    "CPU: % of one core; peak RSS: of the server process"
)
PERCENTILES = "percentiles: nearest rank; p99 from 100 samples, p99.9 from 1,000"


def build(context: Context) -> Table | None:
    """None without runs."""
    rows = context.rows(OPERATION)
    if not rows.all:
        return None
    digits = digits_for(e.median for row in rows.all if (e := row.estimate("p50_us")))
    spread = bracket_word(row.estimate("requests_per_s") for row in rows.all)
    memory, *others = resources.columns("request", server_memory_shown=True)
    columns = [
        *(_key(column, rows) for column in rows.key_columns()),
        Column("model", "model", "text"),
        Column("workers", "workers"),
        Column("connections_opened", "opened"),
        Column("n_requests", "requests"),
        Column("requests_per_s", f"requests/s\n{spread}".strip(), spread=True),
        Column("requests_per_server_cpu_s", "req/\nserver\nCPU s"),
        Column("mean_us", "mean\nµs"),
        *(Column(f"{name}_us", f"{name}\nµs") for name in ("p50", "p75", "p90", "p99")),
        Column("p999_us", "p99.9\nµs", shown=False),
        Column("max_us", "max\nµs"),
        Column("server_cpu_pct", "server\nCPU %"),
        memory,
        Column("driver_cpu_pct", "driver\nCPU %"),
        Column("server_cpu_us", "server\nCPU µs\n/request", shown=False),
        Column("driver_cpu_us", "driver\nCPU µs\n/request", shown=False),
        *others,
        *wire.ways("request"),
        Column("crosscheck_requests_per_s", "crosscheck\nrequests/s", shown=False),
        Column("errors", "errors", "text", shown=not rows.faultless),
        Column("error_kinds", "errors by kind", "text", shown=False),
        *connecting.columns(),
    ]

    def cells(row: Row) -> dict[str, Cell]:
        return {
            **rows.key_cells(row),
            "model": words(model(row)),
            "workers": figure(workers(row)),
            "connections_opened": _opened(row),
            "n_requests": middle(row.estimate("n")),
            "requests_per_s": headline(row.estimate("requests_per_s")),
            "requests_per_server_cpu_s": middle(row.estimate("requests_per_server_cpu_s")),
            **{name: middle(row.estimate(name), digits) for name in FAMILY},
            "server_cpu_pct": middle(row.estimate("server_cpu_pct")),
            **resources.cells(row),
            **wire.ways_cells(row),
            "driver_cpu_pct": middle(row.estimate("driver_cpu_pct")),
            "server_cpu_us": middle(row.estimate("server_cpu_us"), 1),
            "driver_cpu_us": middle(row.estimate("driver_cpu_us"), 1),
            "crosscheck_requests_per_s": middle(row.estimate("crosscheck_requests_per_s")),
            "errors": row.errors,
            "error_kinds": row.error_kinds,
            **connecting.cells(row),
        }

    left_out = context.choosing.left_out
    notes = sentences(rows, RATE, left_out, (), OPERATION, by_codec=False)
    notes += [
        line
        for line in sentences(rows, CPU, left_out, (), OPERATION, by_codec=False)
        if line != UNCLAIMED or line not in notes
    ]
    notes += readings(rows, context.published, OPERATION, MEASURES)
    notes += [
        *laws(rows),
        *unfit(rows),
        *disturbed(rows),
        *unstable(rows, "requests_per_s"),
        *_lagging(rows),
        LEGEND,
        PERCENTILES,
    ]
    notes += connecting.notes(rows)
    return Table(
        OPERATION,
        "HELLO",
        'GET / answered with "Hello World!", or the same over another protocol',
        rows.conditions(),
        columns,
        [cells(row) for row in rows.all],
        [*notes, *([NO_ERRORS] if rows.faultless else [])],
        sources=[source.name for source in context.published if readings(rows, [source], OPERATION, MEASURES)],
    )


def _key(column: Column, rows: Rows) -> Column:
    """Connections always; a variant only where it says more than the engine and the number of workers do."""
    if column.key == "connections":
        return replace(column, shown=True)
    if column.key == "variant":
        knobs = {part.partition("=")[0] for row in rows.all for part in row.first.variant.split()}
        return replace(column, shown=bool(knobs - {"parser", "workers"}))
    return column


def _opened(row: Row) -> Cell:
    """As the server counted; the fewest of the runs, so that one that fell short shows."""
    found = row.values("connections_opened")
    return figure(min(found) if found else None)


def _lagging(rows: Rows) -> list[str]:
    """A sentence with the rows whose latency is the driver's in good part: answers waited there for their turn."""
    found = []
    for side in named(rows.good):
        lag, latency = side.row.estimate("loop_lag_p90_us"), side.row.estimate("p90_us")
        if lag and latency and lag.median > max(LAG_US, LAG_SHARE * latency.median):
            where = rows.differing(side.row)
            name = f"{side.name}, {where}" if where else side.name
            found.append(f"{name} ({number(lag.median)} of {number(latency.median)} µs)")
    what = "late: answers waited for the driver's event loop for over half of p90, so that latency is its as well"
    return [f"{what}: {'; '.join(found)}"] if found else []
