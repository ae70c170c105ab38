"""OVERHEAD: what bakeoff itself costs, against hand-written loops over the same libraries in the same processes."""

from __future__ import annotations

from collections.abc import Iterator

from runner.report.context import Context
from runner.report.disturbed import disturbed
from runner.report.figures import counted, digits_for, number
from runner.report.rows import Row, Rows
from runner.report.stats import compare
from runner.report.table import NOTHING, Cell, Column, Table, bracket_word, headline, middle, words
from runner.report.unstable import unstable

GOAL = 1.03
# operation -> what is compared, in µs, and what that is the time of.
MEASURES = {"call_overhead": ("p50_us", "a call (p50)"), "stream_overhead": ("us_per_message", "a message")}
READING = (
    "cost: bakeoff's time over the hand-written loop's, which stamps and checks each call, and counts the "
    "messages of a stream"
)
FIXED = "fixed: of a run, all but its warm-up and its window: starting, connecting, verifying, stopping"


def build(context: Context) -> Table | None:
    """None without runs."""
    made: list[dict[str, Cell]] = []
    over: list[str] = []
    tables = [rows for name in MEASURES if (rows := context.rows(name)).all]
    if not tables:
        return None
    for operation in MEASURES:
        rows = context.rows(operation)
        for ours, bare in _pairs(rows):
            cells, slower = _cells(rows, ours, bare, operation)
            made.append(cells)
            over += slower
    estimates = [row.estimate(MEASURES[row.first.operation][0]) for rows in tables for row in rows.good]
    columns = [
        *tables[0].key_columns(),
        Column("measure", "time of", "key"),
        Column("hand_written_us", f"hand-written µs\n{bracket_word(estimates)}".strip(), spread=True),
        Column("bakeoff_us", f"bakeoff µs\n{bracket_word(estimates)}".strip(), spread=True),
        Column("cost_ratio", f"cost\n{bracket_word(estimates)}".strip(), spread=True),
        Column("fixed_s", "fixed s\na run"),
    ]
    notes = [*over]
    if made and not over:
        notes.append(f"no cost is claimed to be over {number(GOAL, 2)}x, the goal")
    for operation, (metric, _) in MEASURES.items():
        rows = context.rows(operation)
        notes += [*disturbed(rows), *unstable(rows, metric)]
        bad = [row for row in rows.all if not row.good]
        notes += [f"{row.first.protocol}, {row.key[4]}: {row.verdict}: {row.first.reason}" for row in bad]
    return Table(
        "overhead",
        "OVERHEAD",
        "what bakeoff itself costs",
        [said for said in tables[0].conditions() if said in tables[-1].conditions()],
        columns,
        made,
        [*notes, READING, FIXED],
    )


def _pairs(rows: Rows) -> Iterator[tuple[Row, Row | None]]:
    """Rows driven by bakeoff, each with the hand-written one under the same conditions."""
    by = {(row.key[:4], row.key[5:], str(row.under), row.key[4]): row for row in rows.good}
    for (cell, styles, under, driven_by), row in by.items():
        if driven_by == "bakeoff":
            yield row, by.get((cell, styles, under, "hand_written"))


def _cells(rows: Rows, ours: Row, bare: Row | None, operation: str) -> tuple[dict[str, Cell], list[str]]:
    """The cells of one line, and a sentence if bakeoff's cost is claimed to be over the goal."""
    metric, of = MEASURES[operation]
    values, others = ours.values(metric), bare.values(metric) if bare else []
    found = compare(values, others)
    digits = digits_for([*values, *others])
    cost, said = NOTHING, []
    if found is not None and found.claimed is not None:
        bracket = (number(found.low, 3), number(found.high, 3))
        cost = Cell(f"{number(found.ratio, 3)}x", found.ratio, found.low, found.high, bracket)
        if found.low > GOAL:
            name = f"{ours.first.protocol}, {of}"
            said = [f"{name}: {number(found.ratio, 3)}x, and at the least {number(found.low, 3)}x: over the goal"]
    cells = {
        **rows.key_cells(ours),
        "runs": Cell(f"{counted(len(ours.runs), 'run')} each", len(ours.runs)),
        "measure": words(of),
        "hand_written_us": headline(bare.estimate(metric), digits) if bare else NOTHING,
        "bakeoff_us": headline(ours.estimate(metric), digits),
        "cost_ratio": cost,
        "fixed_s": middle(ours.estimate("fixed_s"), 2),
    }
    return cells, said
