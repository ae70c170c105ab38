"""Rows whose numbers do not count, by the reason why: they stand in the table all the same."""

from __future__ import annotations

from runner.report.compare import named
from runner.report.figures import counted
from runner.report.rows import Row, Rows

SAY = {"void": "void, its numbers count for nothing"}


def unfit(rows: Rows) -> list[str]:
    """One sentence for each verdict and reason, with the rows that have them."""
    found: dict[tuple[str, str], list[str]] = {}
    for side in named(rows.all):
        if not side.row.good:
            reasons = "; ".join(dict.fromkeys(run.reason or "no reason was recorded" for run in side.row.runs))
            found.setdefault((side.row.verdict, reasons), []).append(_who(rows, side.row, side.name))
    return [
        f"{SAY.get(verdict, verdict)}: {reasons}: {'; '.join(who)}" for (verdict, reasons), who in found.items()
    ]


def _who(rows: Rows, row: Row, name: str) -> str:
    where = rows.differing(row)
    name = " ".join([name, *(style for style in row.key[4:] if style and style not in name.split())])
    return f"{name}{f', {where}' if where else ''} ({counted(len(row.runs), 'run')})"
