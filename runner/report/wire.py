"""Bytes beside speed: what each call or message was, and what it took on the wire. Columns for the tables."""

from __future__ import annotations

from runner.report.compare import named
from runner.report.figures import number, ratio
from runner.report.rows import Row, Rows
from runner.report.table import Cell, Column, figure, middle

WIRE = "wire: bytes above TCP by the kernel's counters, as the driver received and sent them: payload and framing"


def measured(rows: Rows) -> bool:
    """Whether any row knows its wire bytes."""
    return any(row.values("wire_in_bytes") for row in rows.all)


def columns(rows: Rows, unit: str, *, both_ways: bool) -> list[Column]:
    """`unit`: what bytes are counted per. `both_ways`: whether what the driver sent is worth the width."""
    known = measured(rows)
    return [
        Column("payload_bytes", f"payload\nB/{unit}", shown=False),
        Column("wire_in_bytes", f"wire in\nB/{unit}", shown=known),
        Column("wire_out_bytes", f"wire out\nB/{unit}", shown=known and both_ways),
        Column("framing_bytes", f"framing\nB/{unit}", shown=False),
    ]


def ways(unit: str) -> list[Column]:
    """Both directions for CSV and JSON alone, where a table says in its own words what the payload was."""
    return [
        Column("wire_in_bytes", f"wire in\nB/{unit}", shown=False),
        Column("wire_out_bytes", f"wire out\nB/{unit}", shown=False),
    ]


def ways_cells(row: Row) -> dict[str, Cell]:
    """The cells of `ways`."""
    return {name: middle(row.estimate(name), 1) for name in ("wire_in_bytes", "wire_out_bytes")}


def cells(row: Row) -> dict[str, Cell]:
    """framing_bytes: what was received beyond the payload."""
    payload, wire = row.estimate("payload_bytes"), row.estimate("wire_in_bytes")
    return {
        "payload_bytes": middle(payload, 1),
        "wire_in_bytes": middle(wire, 1),
        "wire_out_bytes": middle(row.estimate("wire_out_bytes"), 1),
        "framing_bytes": figure(wire.median - payload.median if wire and payload else None, 1),
    }


def as_text(rows: Rows) -> list[str]:
    """What it costs to carry a binary codec as text, where a protocol says that it does so and the bytes show it:
    what arrived is 4/3 of the payload or more. Beside it, what the others need for the same codec.
    """
    notes = []
    for group in rows.comparable():
        sides = [(side, *found) for side in named(group) if (found := _per_item(side.row))]
        for side, payload, received in sides:
            if "base64" not in str(side.row.first.facts.get("wire_type", "")) or received < payload * 4 / 3:
                continue
            same = [
                f"{number(theirs, 1)} ({other.row.first.protocol})"
                for other, _, theirs in sides
                if other.row.first.codec == side.row.first.codec and other.row.key[4:] == side.row.key[4:]
                if other is not side
            ]
            notes.append(
                f"{side.name}: {number(payload, 1)} bytes of payload travel as {number(received, 1)}, "
                f"{ratio(received / payload)}, because base64 makes four of three"
                + (f"; with the same codec: {', '.join(same)}" if same else "")
            )
    return notes


def _per_item(row: Row) -> tuple[float, float] | None:
    payload, received = row.estimate("payload_bytes"), row.estimate("wire_in_bytes")
    return (payload.median, received.median) if payload and received else None
