"""`bakeoff runs`: which runs there are, and what became of them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from sqlalchemy import Connection

from runner.command_line import Parser, answer, write
from runner.report.alone import FORMATS, table_alone
from runner.report.command import terminal_width
from runner.report.figures import counted, number
from runner.report.read import open_report
from runner.report.stored import Clause, Stored, chosen_sweep, clause, said, selected, shown, stored_runs
from runner.report.table import NOTHING, Cell, Column, Kind, Table, words

EXAMPLES = """\
  bakeoff runs                                      those of the last sweep
  bakeoff runs --all --where verdict!=ok            everything that did not go well
  bakeoff runs --where protocol=grpc,rsocket --where operation.consumer=eager
  bakeoff runs --sweep last~1 --format csv

KEY is a column of this list, a condition, a finding, or a dotted key of the configuration."""

# Shown in text and Markdown; CSV and JSON have every column.
_SHOWN = [
    "run_id",
    "sweep_id",
    "scenario",
    "protocol",
    "codec",
    "variant",
    "repeat",
    "verdict",
    "reason",
    "started_at",
    "duration_s",
]
_WHERE_THEY_DIFFER = ("label", "engine", "placement", "connections")
_HEADS = {"run_id": "run", "sweep_id": "sweep", "started_at": "started (UTC)", "duration_s": "duration s"}
_ALL = [
    "run_id",
    "sweep_id",
    "suite",
    "scenario",
    "label",
    "operation",
    "protocol",
    "engine",
    "codec",
    "variant",
    "placement",
    "connections",
    "repeat",
    "verdict",
    "reason",
    "started_at",
    "duration_s",
]


def main(argv: Sequence[str]) -> int:
    """The words after `bakeoff runs`. Returns the exit code: 0, or 2 with one line on stderr for a mistake."""
    return answer(_parser(), argv, _answer)


def _parser() -> Parser:
    parser = Parser("runs", "List the runs of a sweep: the last one, unless told otherwise.", EXAMPLES)
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="KEY=VALUE[,VALUE]",
        help="only these; KEY!=VALUE: not these",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--sweep", default="last", metavar="ID", help="this sweep: an id or its beginning, or last~1"
    )
    which.add_argument("--all", action="store_true", help="the runs of every sweep, the oldest first")
    parser.add_argument("--format", choices=FORMATS, default="text")
    return parser


def _answer(asked: argparse.Namespace) -> int:
    clauses = [clause(text) for text in asked.where]
    with open_report(asked.db) as connection:
        write(listed(connection, clauses, None if asked.all else asked.sweep, asked.format, shown(asked.db)))
    return 0


def listed(connection: Connection, clauses: Sequence[Clause], sweep: str | None, form: str, database: str) -> str:
    """The list in one of FORMATS; `sweep` None: of all sweeps. Raises ReportError."""
    one = None if sweep is None else chosen_sweep(connection, sweep, database)
    runs = stored_runs(connection, sweep_id=one.sweep_id if one else None)
    found = selected(runs, clauses)
    where = f"sweep {one.sweep_id}" if one else "every sweep"
    such = f" with {' and '.join(map(str, clauses))}" if clauses else ""
    notes = [] if found else [f"no run{such} in {where}", *_values(runs, clauses)]
    table = Table(
        "runs",
        "RUNS",
        f"{counted(len(found), 'run')}{such}, {where}",
        [],
        [_column(name, found, one is None) for name in _ALL],
        [_row(run) for run in found],
        notes,
    )
    return table_alone(table, form, terminal_width(), facts={"format": "bakeoff runs 1"})


def _values(runs: Sequence[Stored], clauses: Sequence[Clause]) -> list[str]:
    """What the keys are that were asked for, where nothing was found."""
    found = []
    for one in clauses:
        values = sorted({said(run.known.get(one.key)) or "''" for run in runs})
        if values:
            found.append(f"  {one.key} there: {', '.join(values[:20])}{', …' if len(values) > 20 else ''}")
    return found


def _column(name: str, runs: Sequence[Stored], several: bool) -> Column:
    kind: Kind = "text"
    if name in ("connections", "repeat", "duration_s"):
        kind = "number"
    elif name in ("run_id", "reason"):
        kind = "key" if name == "run_id" else "prose"
    shown = name in _SHOWN or (name in _WHERE_THEY_DIFFER and len({run.row[name] for run in runs}) > 1)
    if name == "sweep_id":
        shown = several
    return Column(name, _HEADS.get(name, name), kind, shown=shown, wrapped=name == "variant")


def _row(run: Stored) -> dict[str, Cell]:
    row = {name: run.row[name] for name in _ALL}
    cells = {
        name: Cell(number(value), value) if isinstance(value, int) else words(str(value)) if value else NOTHING
        for name, value in row.items()
    }
    started = row["started_at"]
    cells["started_at"] = Cell(f"{started:%Y-%m-%d %H:%M:%S}", f"{started:%Y-%m-%dT%H:%M:%S.%fZ}")
    cells["duration_s"] = Cell(number(row["duration_s"], 1), row["duration_s"])
    return cells
