"""SATURATION: the highest rate that keeps an objective, and the curve on the way to it."""

from __future__ import annotations

from collections.abc import Mapping

from runner.report.compare import Measure, sentences
from runner.report.context import Context
from runner.report.disturbed import disturbed
from runner.report.figures import counted, digits_for, number
from runner.report.read import Run
from runner.report.rows import Row
from runner.report.table import Cell, Column, Table, bracket_word, figure, headline, middle, words
from runner.report.unstable import unstable

OPERATION = "saturation"
CURVE = "saturation_curve"
SUSTAINED = Measure("sustained_per_s", "sustained rate", "higher", more_is_better=True)
READING = (
    "sustained: the highest rate tried that kept the objective, with no call dropped, at most 1 % failed, and "
    "answers at 98 % of the rate or more; broke at: the lowest that did not, twice in a row",
    "limit: the side that used 90 % of its CPU or more, and the lowest rate beyond the objective at which it did; "
    "of a driver's limit, the server may take more; neither: both waited, for each other or for a core that other "
    "programs had",
)
STEP_COLUMNS = (
    Column("rate_per_s", "asked\n/s"),
    Column("achieved_per_s", "achieved\n/s"),
    Column("response_p50_us", "response\np50 µs"),
    Column("response_p99_us", "p99\nµs"),
    Column("schedule_delay_p99_us", "late\np99 µs"),
    Column("errors", "errors"),
    Column("dropped", "dropped"),
    Column("server_cpu_pct", "server\nCPU %"),
    Column("driver_cpu_pct", "driver\nCPU %"),
)


def build(context: Context) -> Table | None:
    """None without runs."""
    rows = context.rows(OPERATION)
    if not rows.all:
        return None
    digits = digits_for(e.median for row in rows.all if (e := row.estimate("sustained_per_s")))
    spread = bracket_word(row.estimate("sustained_per_s") for row in rows.all)
    columns = [
        *rows.key_columns(),
        Column("sustained_per_s", f"sustained\ncalls/s\n{spread}".strip(), spread=True),
        Column("broken_per_s", "broke\nat"),
        Column("response_p50_us", "response\np50 µs"),
        Column("response_p99_us", "p99\nµs"),
        Column("p50_us", "service\np50 µs"),
        Column("saturated", "limit", "text"),
        Column("saturated_at_per_s", "limit\nat /s"),
        Column("server_cpu_pct", "server\nCPU %"),
        Column("driver_cpu_pct", "driver\nCPU %"),
        Column("steps", "steps"),
    ]

    def cells(row: Row) -> dict[str, Cell]:
        return {
            **rows.key_cells(row),
            "sustained_per_s": headline(row.estimate("sustained_per_s"), digits),
            "broken_per_s": middle(row.estimate("broken_per_s"), digits),
            **{name: middle(row.estimate(name)) for name in ("response_p50_us", "response_p99_us", "p50_us")},
            "saturated": words(row.finding("saturated")),
            "saturated_at_per_s": middle(row.estimate("saturated_at_per_s"), digits),
            **{name: middle(row.estimate(name)) for name in ("server_cpu_pct", "driver_cpu_pct", "steps")},
        }

    return Table(
        OPERATION,
        "SATURATION",
        "the highest rate of calls that keeps the objective",
        rows.conditions(),
        columns,
        [cells(row) for row in rows.all],
        [
            *sentences(rows, SUSTAINED, context.choosing.left_out, (), OPERATION),
            *disturbed(rows),
            *unstable(rows, "sustained_per_s"),
            *READING,
        ],
    )


def curve(context: Context) -> Table | None:
    """Every rate that was tried, in ascending order; of repeats, those of the run in the middle."""
    rows = context.rows(OPERATION)
    found = [(row, run) for row in rows.all if (run := in_the_middle(row))]
    if not found:
        return None
    made = [
        {**rows.key_cells(row), **_cells(step)}
        for row, run in found
        for step in sorted(run.steps, key=lambda step: step.get("rate_per_s") or 0.0)
    ]
    keys = [column for column in rows.key_columns() if column.key != "runs"]
    repeats = max(len(row.runs) for row, _ in found)
    which = [f"of {counted(repeats, 'repeat')} the one in the middle"] if repeats > 1 else []
    return Table(
        CURVE,
        "SATURATION CURVE",
        "what became of each rate that was tried",
        which,
        [*keys, *STEP_COLUMNS, Column("kept", "kept", "text")],
        made,
        ["response: from when a call was due; p99 below 100 calls is the longest"],
    )


def in_the_middle(row: Row) -> Run | None:
    """The run with the median of the sustained rates (the lower one of two)."""
    runs = sorted((run for run in row.runs if run.steps), key=lambda run: run.metric("sustained_per_s") or 0.0)
    return runs[(len(runs) - 1) // 2] if runs else None


def _cells(step: Mapping[str, float | None]) -> dict[str, Cell]:
    made = {column.key: figure(step.get(column.key)) for column in STEP_COLUMNS}
    rate = step.get("rate_per_s")
    if rate is not None:
        digits = digits_for([rate])
        made["rate_per_s"] = Cell(number(rate, digits), rate)
        made["achieved_per_s"] = figure(step.get("achieved_per_s"), digits)
    return {**made, "kept": words("yes" if step.get("kept") else "no")}
