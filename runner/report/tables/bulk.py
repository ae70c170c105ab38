"""UPLOAD and DOWNLOAD: many records in one body, in a stream of batches, or one in each message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from runner.report import resources, wire
from runner.report.compare import UNCLAIMED, Measure, sentences
from runner.report.context import Context
from runner.report.decides import decides
from runner.report.disturbed import disturbed
from runner.report.figures import digits_for, size
from runner.report.rows import NO_ERRORS, Row, Rows
from runner.report.table import NOTHING, Cell, Column, Table, bracket_word, headline, middle, words
from runner.report.transfers import speaks, transfers
from runner.report.unfit import unfit
from runner.report.unstable import unstable

UPLOAD, DOWNLOAD = "upload", "download"
SAY = {
    UPLOAD: "records sent to the server, which checks their number, order and checksum",
    DOWNLOAD: "records asked of the server; the driver checks their number, order and checksum",
}
SHAPES = {
    "single": "one body",
    "batched": "a stream of batches",
    "per_record": "one record in each message",
}
PUSHED = "push"
PUSH = (
    "push: written without looking whether the transport can take more; buffered max: messages that waited in "
    "the sender"
)
AHEAD = (
    "ahead max: messages that the sender had made and the server had not yet taken, and their payload; a sender "
    "that waits gets as far as the transport's windows and buffers reach"
)
AHEAD_COLUMNS = (
    Column("ahead_max_messages", "ahead\nmax"),
    Column("ahead_max_bytes", "ahead\nmax\nbytes"),
)
LEGEND = (
    "payload: bytes of the encoded messages, without the protocol's own; RSS growth: peak resident memory over "
    "what it was before"
)


def upload(context: Context) -> Table | None:
    """None without runs."""
    return _build(context, UPLOAD)


def download(context: Context) -> Table | None:
    """None without runs."""
    return _build(context, DOWNLOAD)


def _build(context: Context, operation: str) -> Table | None:
    rows = context.rows(operation)
    if not rows.all:
        return None
    role = rows.roles[1]
    seconds = _digits(rows, "seconds") + 1
    spread = bracket_word(row.estimate("seconds") for row in rows.all)
    styles = {row.key[5] for row in rows.all if row.key[5]}
    keys = rows.key_columns(Column("shape", "shape", "key"), Column(role, role, "key", shown=len(styles) > 1))
    first = any(row.values("first_ms") for row in rows.all)
    slow = any(row.values("ahead_max") for row in rows.all)
    columns = [
        *(_key(column, rows) for column in keys),
        Column("seconds", f"seconds\n{spread}".strip(), spread=True),
        Column("records_per_s", "records/s"),
        Column("payload_bytes", "payload\nbytes"),
        Column("bytes_per_record", "bytes\n/record"),
        Column("driver_rss_growth_bytes", "driver\nRSS\ngrowth"),
        Column("server_rss_growth_bytes", "server\nRSS\ngrowth"),
        Column("first_ms", "first\nbatch\nms", shown=first),
        Column("messages", "messages"),
        Column("buffered_max_messages", "buffered\nmax", shown=PUSHED in styles),
        *(replace(column, shown=slow) for column in AHEAD_COLUMNS if operation == UPLOAD),
        Column("server_cpu_us", "server\nCPU µs\n/record", shown=False),
        Column("driver_cpu_us", "driver\nCPU µs\n/record", shown=False),
        *resources.columns("record"),
        *wire.ways("record"),
        Column("errors", "errors", "text", shown=not rows.faultless),
        Column("error_kinds", "errors by kind", "text", shown=False),
    ]

    def cells(row: Row) -> dict[str, Cell]:
        return {
            **rows.key_cells(row),
            "shape": words(row.key[4]),
            role: words(row.key[5]),
            "seconds": headline(row.estimate("seconds"), seconds),
            "records_per_s": middle(row.estimate("records_per_s")),
            "payload_bytes": middle(row.estimate("payload_bytes")),
            "bytes_per_record": middle(row.estimate("bytes_per_record"), 1),
            **{f"{side}_rss_growth_bytes": _growth(row, side) for side in ("driver", "server")},
            "first_ms": middle(row.estimate("first_ms"), _digits(rows, "first_ms")),
            "messages": middle(row.estimate("messages")),
            "buffered_max_messages": middle(row.estimate("buffered_max")),
            "ahead_max_messages": middle(row.estimate("ahead_max")),
            "ahead_max_bytes": middle(row.estimate("ahead_max_bytes")),
            **{f"{side}_cpu_us": middle(row.estimate(f"{side}_cpu_us"), 2) for side in ("server", "driver")},
            **resources.cells(row),
            **wire.ways_cells(row),
            "errors": row.errors,
            "error_kinds": row.error_kinds,
        }

    used = [shape for shape in SHAPES if any(row.key[4] == shape for row in rows.all)]
    notes = [*decides(rows), *_compared(context, rows, operation), *transfers(rows, context.published, operation)]
    notes += [*unfit(rows), *disturbed(rows), *unstable(rows, "seconds")]
    notes.append(f"shape: {'; '.join(f'{shape}, {SHAPES[shape]}' for shape in used)}")
    notes += [*([PUSH] if PUSHED in styles else []), *([AHEAD] if slow else [])]
    return Table(
        operation,
        operation.upper(),
        SAY[operation],
        [*rows.conditions(), *(f"{role} {name}" for name in styles if len(styles) == 1)],
        columns,
        [cells(row) for row in rows.all],
        [*notes, LEGEND, *([NO_ERRORS] if rows.faultless else [])],
        sources=[
            source.name
            for source in context.published
            if (transfer := getattr(source, operation)) is not None and speaks(rows, transfer)
        ],
    )


def _key(column: Column, rows: Rows) -> Column:
    """Records and codec always; an engine in every block only where a protocol has several."""
    if column.key in ("records", "codec"):
        return replace(column, shown=True)
    engines = {(row.first.protocol, row.first.engine) for row in rows.all}
    if column.key == "engine" and len(engines) == len({protocol for protocol, _ in engines}):
        return replace(column, kind="text")
    return column


def _compared(context: Context, rows: Rows, operation: str) -> list[str]:
    """Who is faster at the most records; one record a message against batches, at the most sent so."""
    most = _most(rows, lambda row: True)
    at_most = replace(rows, all=[row for row in rows.good if row.under["records"] == most])
    notes = _seconds(context, at_most, operation, most)
    each = _most(rows, lambda row: row.key[4] == "per_record")
    if each is not None and each != most:
        shapes = ("per_record", "batched")
        kept = [row for row in rows.good if row.under["records"] == each and row.key[4] in shapes]
        alone = _by_protocol(context, replace(rows, all=kept), operation, each)
        notes += [line for line in alone if line != UNCLAIMED or line not in notes]
    return notes


def _seconds(context: Context, rows: Rows, operation: str, records: float | None) -> list[str]:
    if records is None:
        return []
    measure = Measure("seconds", f"seconds at {records:,} records", "faster", more_is_better=False)
    return sentences(rows, measure, context.choosing.left_out, (), operation)


def _by_protocol(context: Context, rows: Rows, operation: str, records: float) -> list[str]:
    """As `_seconds`, but of each protocol alone."""
    said: dict[str, None] = {}
    for protocol in dict.fromkeys(row.first.protocol for row in rows.all):
        own = replace(rows, all=[row for row in rows.all if row.first.protocol == protocol])
        said |= dict.fromkeys(_seconds(context, own, operation, records))
    return list(said)


def _most(rows: Rows, matches: Callable[[Row], bool]) -> float | None:
    return max((row.under["records"] for row in rows.good if matches(row) and row.under["records"]), default=None)


def _digits(rows: Rows, metric: str) -> int:
    return digits_for(found.median for row in rows.all if (found := row.estimate(metric)))


def _growth(row: Row, side: str) -> Cell:
    found = row.estimate(f"{side}_rss_growth_bytes")
    return Cell(size(found.median), found.median) if found else NOTHING
