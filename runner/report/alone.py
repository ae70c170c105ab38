"""One table by itself, in any of the formats: what `bakeoff runs` and `bakeoff compare` print."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence

from runner.report.layout import table_text, wrap
from runner.report.render import as_word, bullet, pipes, values_of
from runner.report.table import Table

FORMATS = ("text", "md", "csv", "json")


def table_alone(
    table: Table, form: str, width: int, head: Sequence[str] = (), facts: Mapping[str, object] | None = None
) -> str:
    """`head`: lines above the table, for people. `facts`: what JSON has beside "rows" and "notes"."""
    if form == "csv":
        return _comma_separated(table)
    if form == "json":
        found = {
            **(facts or {}),
            "columns": [{"key": column.key, "head": column.line} for column in table.columns],
            "rows": [values_of(table, row) for row in table.rows],
            "notes": [note.strip() for note in table.notes],
        }
        return json.dumps(found, ensure_ascii=False, allow_nan=False, indent=2) + "\n"
    if form == "md":
        parts = ["  \n".join(head), f"### {table.title}", f"{table.subtitle}."]
        parts += [pipes(table)] if table.rows else []
        parts += ["\n".join(map(bullet, table.notes))]
        return "\n\n".join(filter(None, parts)) + "\n"
    above = "\n".join(line for said in head for line in wrap(said, width, "  "))
    below = [line for note in table.notes for line in wrap(note, width, "  ")]
    shown = table_text(table, width) if table.rows else "\n".join([f"{table.title} · {table.subtitle}", *below])
    return "\n\n".join(filter(None, [above, shown])) + "\n"


def _comma_separated(table: Table) -> str:
    out = io.StringIO()
    rows = [{key: as_word(value) for key, value in values_of(table, row).items()} for row in table.rows]
    keys = dict.fromkeys(key for row in rows for key in row) or [column.key for column in table.columns]
    writer = csv.DictWriter(out, list(keys), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
