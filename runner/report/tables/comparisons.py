"""COMPARISONS: why each difference is claimed or not, with the number of runs and what chance alone would do."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from runner.report.compare import Measure, Side, between_labels, named, rank, sets, verdict
from runner.report.context import OPERATIONS, Context
from runner.report.figures import counted, number, plain, ratio
from runner.report.rows import Rows
from runner.report.stats import Comparison, least_p, rank_test
from runner.report.table import Cell, Column, Table, figure, words

# operation -> what its rows are compared by.
MEASURES = {
    "request_response": [
        Measure("p50_us", "p50", "faster", more_is_better=False),
        Measure("p99_us", "p99", "faster", more_is_better=False),
        Measure("server_cpu_us", "server CPU per call", "cheaper", more_is_better=False),
    ],
    "open_loop": [
        Measure("response_p50_us", "response p50", "faster", more_is_better=False),
        Measure("response_p99_us", "response p99", "faster", more_is_better=False),
    ],
    "stream": [
        Measure("messages_per_s", "messages/s", "faster", more_is_better=True),
        Measure("server_cpu_us", "server CPU per message", "cheaper", more_is_better=False),
    ],
    "hello": [
        Measure("requests_per_s", "requests/s", "faster", more_is_better=True),
        Measure("p99_us", "p99", "faster", more_is_better=False),
    ],
    "upload": [Measure("records_per_s", "records/s", "faster", more_is_better=True)],
    "download": [Measure("records_per_s", "records/s", "faster", more_is_better=True)],
}
READING = (
    "p: how often chance alone would separate so many runs at least so much (Mann-Whitney, exact, two-sided); "
    "least p: the smallest that so many runs can show",
)


def build(context: Context) -> Table | None:
    """None without a pair to compare."""
    made = [cells for operation in MEASURES if operation in OPERATIONS for cells in _of(context, operation)]
    if not made:
        return None
    columns = [
        Column("operation", "operation", "key"),
        Column("measure", "measure", "key"),
        Column("of", "one", "text"),
        Column("against", "against", "text"),
        Column("where", "where", "text", wrapped=True),
        Column("runs", "runs", "text"),
        Column("medians_ratio", "ratio [bracket]", spread=True),
        Column("p_ratio", "p"),
        Column("least_p_ratio", "least\np"),
        Column("verdict", "verdict", "text"),
        Column("because", "because", "prose"),
    ]
    return Table(
        "comparisons",
        "COMPARISONS",
        "why each difference is claimed or not",
        [],
        columns,
        made,
        [
            *READING,
            "a difference is claimed where the bracket of the ratio excludes 1 and the medians differ by more than "
            f"{plain(context.equivalent_pct)} %; p is shown beside it and decides nothing",
        ],
        narrow="records",
        by_itself=False,
    )


def _of(context: Context, operation: str) -> Iterator[dict[str, Cell]]:
    rows = context.rows(operation)
    for measure in MEASURES[operation]:
        told: set[frozenset[int]] = set()
        for where, one, other in _pairs(context, rows, measure):
            pair = frozenset((id(one.row), id(other.row)))
            found = one.row.against(other.row, measure.metric)
            if found is not None and pair not in told:
                told.add(pair)
                yield _cells(operation, measure, where, one, other, found)


def _pairs(context: Context, rows: Rows, measure: Measure) -> Iterator[tuple[str, Side, Side]]:
    left_out = context.choosing.left_out
    for group in rows.comparable():
        candidates = [row for row in group if row.first.protocol not in left_out and row.values(measure.metric)]
        for heading, members, _ in sets(candidates, rows.roles, True):
            where = ", ".join(filter(None, (heading, rows.differing(members[0]))))
            ranked = sorted(named(members), key=lambda side: rank(side.row, measure))
            for one, other in itertools.pairwise(ranked):
                yield where, one, other
    for one, other in between_labels(rows, measure, left_out):
        yield "between labels", one, other


def _cells(
    operation: str, measure: Measure, where: str, one: Side, other: Side, found: Comparison
) -> dict[str, Cell]:
    first, second = one.row.values(measure.metric), other.row.values(measure.metric)
    p, least = rank_test(first, second), least_p(len(first), len(second))
    bracket = None if found.kind == "single" else (number(found.low, 2), number(found.high, 2))
    return {
        "operation": words(operation),
        "measure": words(measure.say),
        "of": words(one.name),
        "against": words(other.name),
        "where": words(where),
        "runs": words(f"{len(first)} and {len(second)}"),
        "medians_ratio": Cell(ratio(found.ratio), found.ratio, found.low, found.high, bracket),
        "p_ratio": figure(p, 3),
        "least_p_ratio": figure(least, 3),
        "verdict": words("nothing is claimed" if found.claimed is None else verdict(found, one, other, measure)),
        "because": words(_because(found, min(len(first), len(second)), one.row.equivalent_pct)),
    }


def _because(found: Comparison, runs: int, equivalent_pct: float) -> str:
    if found.claimed is None:
        return f"a side has {counted(runs, 'good run')}: n=1 says nothing of the next one"
    apart = max(found.ratio, 1 / found.ratio)
    excludes = not found.low <= 1 <= found.high
    word = "interval" if found.kind == "interval" else "range"
    side = f"the {word} {'excludes' if excludes else 'includes'} 1"
    over = "over" if apart > 1 + equivalent_pct / 100 else "not over"
    return f"{side}; the medians differ by {number(100 * (apart - 1), 1)} %, {over} {plain(equivalent_pct)} %"
