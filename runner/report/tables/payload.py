"""PAYLOAD: how many bytes one message is, and what turning it into bytes and back costs."""

from __future__ import annotations

import json
from collections.abc import Sequence

from runner.report.context import Context
from runner.report.figures import ELLIPSIS, digits_for, number
from runner.report.rows import Row
from runner.report.table import NOTHING, Cell, Column, Table, bracket_word, figure, headline, words

OPERATION = "payload"
FIRST = 18  # characters of text, or hexadecimal digits, that stand for the bytes of a message

KEEPS = (
    "keeps: whether the bytes hold the names of the fields, so that who reads them without a schema can name them"
)


def build(context: Context) -> Table | None:
    """None without runs."""
    rows = context.rows(OPERATION)
    if not rows.all:
        return None
    messages = sorted({_message(row) for row in rows.all})
    smallest = {name: _smallest([row for row in rows.good if _message(row) == name]) for name in messages}
    names = {name: _field_names([row for row in rows.all if _message(row) == name]) for name in messages}
    only = smallest[messages[0]] if len(messages) == 1 else None
    spread = bracket_word(row.estimate("encode_ns") for row in rows.all)
    digits = digits_for(e.median for row in rows.all for m in ("encode_ns", "decode_ns") if (e := row.estimate(m)))
    hidden = ("protocol", "engine", "codec", "variant")
    columns = [
        Column("codec", "codec", "key"),
        *(column for column in rows.key_columns() if column.key not in hidden),
        Column("size_bytes", "bytes"),
        Column("size_ratio", f"bytes vs\n{only.first.codec}" if only else "bytes vs\nsmallest"),
        Column("encode_ns", f"encode ns\n{spread}".strip(), spread=True),
        Column("decode_ns", f"decode ns\n{spread}".strip(), spread=True),
        Column("keeps", "keeps", "text"),
        Column("hex", "first bytes", "text"),
    ]

    def cells(row: Row) -> dict[str, Cell]:
        size, least = row.estimate("size_bytes"), smallest[_message(row)]
        base = least.estimate("size_bytes") if least else None
        relative = size.median / base.median if size and base and base.median else None
        no = row.finding("representable") == "no"
        return {
            **rows.key_cells(row),
            "size_bytes": Cell("not representable", None) if no else figure(size.median if size else None),
            "size_ratio": figure(relative, 2, "x"),
            "encode_ns": headline(row.estimate("encode_ns"), digits),
            "decode_ns": headline(row.estimate("decode_ns"), digits),
            "keeps": _keeps(row, names[_message(row)]),
            "hex": _first_bytes(row.finding("hex")),
        }

    quoted = _published(context, rows.good)
    return Table(
        OPERATION,
        "PAYLOAD",
        f"one message, {messages[0]}" if len(messages) == 1 and messages[0] else "one message",
        [
            "bytes: exact, the same on every machine",
            "ns: of this machine",
            *rows.shared,
            *filter(None, [rows.repeats()]),
        ],
        columns,
        [cells(row) for row in sorted(rows.all, key=_by_size)],
        [*_refused(rows.all), *quoted, *([KEEPS] if any(names.values()) else [])],
        sources=[source.name for source in context.published if source.payload and quoted],
    )


def _message(row: Row) -> str:
    return str(row.under["message"] or "")


def _by_size(row: Row) -> tuple[str, float]:
    size = row.estimate("size_bytes")
    return (_message(row), size.median if size else float("inf"))


def _smallest(rows: Sequence[Row]) -> Row | None:
    sized = [(found.median, row.first.codec, row) for row in rows if (found := row.estimate("size_bytes"))]
    return min(sized, key=lambda item: item[:2])[2] if sized else None


def _field_names(rows: Sequence[Row]) -> list[str]:
    """The names of the message's fields, from whichever encoding is a JSON object; [] if none is."""
    for row in rows:
        try:
            found = json.loads(bytes.fromhex(row.finding("hex")))
        except ValueError:
            continue
        if isinstance(found, dict):
            return [str(name) for name in found]
    return []


def _keeps(row: Row, names: Sequence[str]) -> Cell:
    """Whether the bytes hold the field names, so that a reader needs no schema to name what it sees."""
    data = _bytes(row.finding("hex"))
    if not data or not names:
        return NOTHING
    return words("names" if all(name.encode() in data for name in names) else "no names")


def _first_bytes(digits: str) -> Cell:
    """Text where it is text, else hexadecimal; all of it in CSV and JSON."""
    data = _bytes(digits)
    if not data:
        return NOTHING
    readable = data.isascii() and data.decode("ascii").isprintable()
    shown = data.decode("ascii") if readable else digits
    return Cell(shown if len(shown) <= FIRST else shown[:FIRST] + ELLIPSIS, digits)


def _bytes(digits: str) -> bytes:
    try:
        return bytes.fromhex(digits)
    except ValueError:
        return b""


def _refused(rows: Sequence[Row]) -> list[str]:
    return [
        f"{row.first.codec} cannot carry {_message(row) or 'it'} unchanged: "
        f"{row.finding('reason') or row.first.reason or 'no reason was given'}"
        for row in rows
        if row.finding("representable") == "no"
    ]


def _published(context: Context, rows: Sequence[Row]) -> list[str]:
    """Sizes are exact, so they are equal or they are not."""
    ours = {(_message(row), row.first.codec): found.median for row in rows if (found := row.estimate("size_bytes"))}
    lines = []
    for source in context.published:
        for message, sizes in source.payload.items():
            if not any((message, codec) in ours for codec in sizes):
                continue
            differing = [
                f"{codec} {number(ours[message, codec])} here"
                for codec, n in sizes.items()
                if ours.get((message, codec), n) != n
            ]
            missing = [codec for codec in sizes if (message, codec) not in ours]
            said = f"differs: {', '.join(differing)}" if differing else "equal"
            said += f" ({', '.join(missing)} not measured here)" if missing else ""
            printed = ", ".join(f"{codec} {n}" for codec, n in sizes.items())
            lines.append(f"published ({source.name}): {printed} bytes: {said}")
    return lines
