"""STREAM: how fast messages flow, and who holds what has not been consumed."""

from __future__ import annotations

from runner.report import connecting, resources, wire
from runner.report.compare import Measure, quoted_figures, quoting, sentences
from runner.report.context import Context
from runner.report.disturbed import disturbed
from runner.report.figures import DASH, digits_for
from runner.report.rows import NO_ERRORS, Row
from runner.report.table import Cell, Column, Table, bracket_word, headline, middle, words
from runner.report.unstable import unstable

OPERATION = "stream"
FLOOR = "x floor: µs each as a multiple of the floor's, with the same codec under the same conditions"
READING = (
    "busier side: the one that used more CPU, not necessarily a bottleneck, as both may be waiting; "
    "gap: from one message to the next, as the driver sees it"
)
SEVERAL = (
    "of several streams at a time: msgs/s are those of all; first: the median of the streams, last first: the last "
    "of them to get its first message; fastest, slowest: a stream from its request to its last message"
)
EACH = ("first_max_ms", "fastest_ms", "slowest_ms")
RATE = Measure("messages_per_s", "messages/s", "faster", more_is_better=True)


def build(context: Context) -> Table | None:
    """None without runs."""
    rows = context.rows(OPERATION)
    if not rows.all:
        return None

    def digits(metric: str) -> int:
        return digits_for(found.median for row in rows.all if (found := row.estimate(metric)))

    cpu = min(digits("server_cpu_us"), digits("driver_cpu_us"))
    spread = bracket_word(row.estimate("messages_per_s") for row in rows.all)
    several = any(row.first.connections > 1 for row in rows.all)
    styles = {row.key[4] for row in rows.all if row.key[4]}
    columns = [
        *rows.key_columns(
            Column("producer", "producer", "key", shown=len(styles) > 1),
            Column("consumer", "consumer", "key"),
        ),
        Column("seconds", "seconds"),
        Column("messages_per_s", f"msgs/s\n{spread}".strip(), spread=True),
        Column("us_per_message", "µs\neach"),
        Column("first_ms", "first\nms"),
        Column("first_max_ms", "last\nfirst\nms", shown=several),
        Column("fastest_ms", "fastest\nstream\nms", shown=several),
        Column("slowest_ms", "slowest\nstream\nms", shown=several),
        Column("gap_p99_us", "gap\np99\nµs"),
        Column("server_cpu_us", "server\nCPU µs\n/msg"),
        Column("driver_cpu_us", "driver\nCPU µs\n/msg"),
        Column("bound", "busier\nside", "text"),
        Column("client_held_max_messages", "client\nheld\nmax"),
        Column("floor_ratio", "x\nfloor", spread=True, shown=rows.has_floor()),
        *resources.columns("msg"),
        *wire.columns(rows, "msg", both_ways=False),
        Column("errors", "errors", "text", shown=not rows.faultless),
        Column("error_kinds", "errors by kind", "text", shown=False),
        *connecting.columns(),
    ]

    def cells(row: Row) -> dict[str, Cell]:
        held = row.estimate("client_held_max")
        return {
            **rows.key_cells(row),
            "producer": words(row.key[4]),
            "consumer": words(row.key[5]),
            "seconds": middle(row.estimate("seconds"), 3),
            "messages_per_s": headline(row.estimate("messages_per_s")),
            "us_per_message": middle(row.estimate("us_per_message"), digits("us_per_message")),
            "first_ms": middle(row.estimate("first_ms"), digits("first_ms")),
            **{name: middle(row.estimate(name), digits(name)) for name in EACH},
            "gap_p99_us": middle(row.estimate("gap_p99_us"), digits("gap_p99_us")),
            "server_cpu_us": middle(row.estimate("server_cpu_us"), cpu),
            "driver_cpu_us": middle(row.estimate("driver_cpu_us"), cpu),
            "bound": _majority(row, "bound"),
            "client_held_max_messages": middle(held),
            "floor_ratio": rows.floor_cell(row, "us_per_message"),
            **resources.cells(row),
            **wire.cells(row),
            "errors": row.errors,
            "error_kinds": row.error_kinds,
            **connecting.cells(row),
        }

    made = [cells(row) for row in rows.all]
    notes = sentences(rows, RATE, context.choosing.left_out, context.published, OPERATION)
    notes += quoted_figures(
        rows,
        context.published,
        OPERATION,
        [("messages_per_s", "", "messages/s", 0), ("us_per_message", "", "µs each", 2)],
    )
    notes += [*disturbed(rows), *unstable(rows, "messages_per_s")]
    notes += filter(None, [FLOOR, rows.floor_note("us_per_message")] if rows.has_floor() else [])
    notes += [READING, *([SEVERAL] if several else []), *connecting.notes(rows)]
    notes += [*wire.as_text(rows), wire.WIRE] if wire.measured(rows) else []
    notes += [NO_ERRORS] if rows.faultless else []
    if any(row["client_held_max_messages"].text == DASH for row in made):
        notes.append("client held max: a dash where the library hides its queue")
    return Table(
        OPERATION,
        "STREAM",
        "streams, a connection each or all on one" if several else "one stream on one connection",
        [*rows.conditions(), *(f"producer {name}" for name in styles if len(styles) == 1)],
        columns,
        made,
        notes,
        sources=quoting(rows, context.published, OPERATION),
    )


def _majority(row: Row, name: str) -> Cell:
    """The word that most runs found, with how many of them where they differ."""
    seen = row.findings(name)
    word, n = row.finding(name), sum(seen.values())
    if len(seen) < 2:
        return words(word)
    return Cell(f"{word} ({seen[word]}/{n})", word)
