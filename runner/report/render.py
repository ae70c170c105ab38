"""A report as text, Markdown, CSV or JSON. The locale plays no part in any of them.

Text and Markdown show numbers rounded, for people; CSV and JSON have every value as it was computed, with the unit
in its key, and JSON is strict: what is not finite is null.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tabulate import tabulate

from runner.report.layout import table_text, wrap
from runner.report.pictures.chart import Picture
from runner.report.table import Cell, Column, Table, Value

FORMATS = ("text", "md", "csv", "json")


@dataclass(frozen=True)
class Section:
    """One sweep: its header as `lines` of parts and as `facts`, its tables, and what needs attention.

    `pictures`: of the tables, where they were asked for.
    """

    sweep_id: str
    lines: Sequence[Sequence[str]]
    facts: Mapping[str, object]
    tables: Sequence[Table]
    attention: Sequence[str]
    pictures: Sequence[Picture] = ()


@dataclass(frozen=True)
class Report:
    """Everything that is printed. `closing`: how to read it, and where published figures come from."""

    sections: Sequence[Section]
    closing: Sequence[str]


def text(report: Report, width: int) -> str:
    """For a terminal `width` places wide."""
    parts = []
    for section in report.sections:
        parts.append("\n".join(line for words in section.lines for line in _joined(words, width)))
        parts += [table_text(table, width) for table in section.tables]
        if section.attention:
            parts.append("\n".join(line for note in section.attention for line in wrap(note, width, "  ")))
    closing = "\n".join(line for note in report.closing for line in wrap(note, width, "  "))
    # What needs attention stays last: it is what a reader of a terminal sees first.
    at = -1 if report.sections and report.sections[-1].attention else len(parts)
    parts[at:at] = [closing] if closing else []
    return "\n\n".join(parts) + "\n"


def markdown(report: Report) -> str:
    """For a README or a pull request."""
    parts = []
    for section in report.sections:
        parts.append("  \n".join(" · ".join(words) for words in section.lines))
        for table in section.tables:
            parts += [f"### {table.title}", f"{table.subtitle}. {'; '.join(table.conditions)}."]
            parts.append(pipes(table) if table.rows else "no runs of this kind in this sweep")
            if table.notes:
                parts.append("\n".join(bullet(note) for note in table.notes))
        if section.attention:
            parts.append("\n".join(bullet(note) for note in section.attention))
    if report.closing:
        parts.append("\n".join(bullet(note) for note in report.closing))
    return "\n\n".join(parts) + "\n"


def comma_separated(report: Report) -> str:
    """One table: a row for each of its rows in every sweep, with the sweep's id."""
    keys: dict[str, None] = {"sweep_id": None}
    rows: list[dict[str, Value]] = []
    for section in report.sections:
        for table in section.tables:
            keys |= dict.fromkeys(key for column in table.columns for key in _keys(column))
            for row in table.rows:
                values = {key: as_word(value) for key, value in values_of(table, row).items()}
                rows.append({"sweep_id": section.sweep_id, **values})
    out = io.StringIO()
    writer = csv.DictWriter(out, list(keys), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def javascript(report: Report) -> str:
    """JSON, strict (RFC 8259), two spaces deep."""
    found = {
        "format": "bakeoff report 1",
        "sweeps": [
            {
                **section.facts,
                "tables": [
                    {
                        "name": table.name,
                        "title": table.title,
                        "subtitle": table.subtitle,
                        "conditions": list(table.conditions),
                        "columns": [{"key": column.key, "head": column.line} for column in table.columns],
                        "rows": [values_of(table, row) for row in table.rows],
                        "notes": [note.strip() for note in table.notes],
                    }
                    for table in section.tables
                ],
                "attention": [note.strip() for note in section.attention],
            }
            for section in report.sections
        ],
        "notes": list(report.closing),
    }
    return json.dumps(found, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def _joined(words: Sequence[str], width: int) -> list[str]:
    """The parts with dots between them, broken at the dots where that helps."""
    lines: list[str] = []
    for word in words:
        joined = f"{lines[-1]} · {word}" if lines else word
        if lines and len(joined) <= width:
            lines[-1] = joined
        else:
            lines += wrap(word, width, "  ")
    return lines


def pipes(table: Table) -> str:
    """A Markdown table."""
    shown = [column for column in table.columns if column.shown]
    return tabulate(
        [[_escaped(row.get(column.key, Cell())) for column in shown] for row in table.rows],
        headers=[column.line for column in shown],
        tablefmt="pipe",
        colalign=["right" if column.kind == "number" else "left" for column in shown],
        disable_numparse=True,
    )


def _escaped(cell: Cell) -> str:
    bracket = f" [{cell.bracket[0]}, {cell.bracket[1]}]" if cell.bracket else ""
    return (cell.text + bracket).replace("|", "\\|").replace("\n", " ")


def bullet(note: str) -> str:
    """A note as an item of a Markdown list."""
    return f"{' ' * (len(note) - len(note.lstrip(' ')))}- {note.strip()}"


def _keys(column: Column) -> list[str]:
    return [column.key, f"{column.key}_low", f"{column.key}_high"] if column.spread else [column.key]


def values_of(table: Table, row: Mapping[str, Cell]) -> dict[str, Value]:
    """What the columns of a row hold, unrounded, by key; brackets as <key>_low and <key>_high."""
    found: dict[str, Value] = {}
    for column in table.columns:
        cell = row.get(column.key, Cell())
        values = (cell.value, cell.low, cell.high) if column.spread else (cell.value,)
        found |= {key: _finite(value) for key, value in zip(_keys(column), values, strict=True)}
    return found


FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what spreadsheets compute when a cell begins with it


def as_word(value: Value) -> Value:
    """A value as CSV holds it: true and false as most programs write them, not as Python does; a text that a
    spreadsheet would compute (a label =1+1) begins with an apostrophe, which spreadsheets take for "this is text".
    """
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def _finite(value: Value) -> Value:
    """Whole numbers without a point, and null for what JSON cannot say."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        if value.is_integer() and abs(value) < 2**53:
            return int(value)
    return value
