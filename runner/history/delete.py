"""`bakeoff delete SWEEP`: a sweep and everything in it leaves the database, in one transaction."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from sqlalchemy import Connection

from runner.command_line import Mistake, Parser, answer
from runner.report.figures import counted
from runner.report.read import Sweep
from runner.report.stored import chosen_sweep
from runner.store import open_store
from runner.store.delete import delete_sweep, extent

EXAMPLES = """\
  bakeoff delete 01M8QRN6RTB80           says what it is and asks; the beginning of an id is enough
  bakeoff delete last last~1 --yes       without asking, for scripts"""


def main(argv: Sequence[str]) -> int:
    """The words after `bakeoff delete`. Returns the exit code: 0, 1 if the answer was no, 2 for a mistake."""
    return answer(_parser(), argv, _answer)


def _parser() -> Parser:
    parser = Parser("delete", "Remove sweeps, with all their runs and samples, from the database.", EXAMPLES)
    parser.add_argument("sweeps", nargs="+", metavar="SWEEP", help="an id or its beginning, last, last~1")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    return parser


def _answer(asked: argparse.Namespace) -> int:
    with open_store(asked.db, create=False) as store:
        with store.engine.connect() as connection:
            chosen = {s.sweep_id: s for s in (chosen_sweep(connection, n, store.shown) for n in asked.sweeps)}
            for sweep in chosen.values():
                print(f"{store.shown}: {_told(connection, sweep)}", flush=True)
        if not asked.yes and not _agreed():
            print("nothing was deleted")
            return 1
        with store.writing() as connection:
            for sweep_id in chosen:
                delete_sweep(connection, sweep_id)
    print(f"deleted: {counted(len(chosen), 'sweep')}")
    return 0


def _told(connection: Connection, sweep: Sweep) -> str:
    has = extent(connection, sweep.sweep_id)
    parts = [counted(has.runs, "run"), counted(has.measurements, "measurement"), counted(has.samples, "sample")]
    unfinished = "" if sweep.ended_at else "; it has not ended: still going, or it was killed"
    started = sweep.started_at[:16].replace("T", " ")
    return f"sweep {sweep.sweep_id}, {started} UTC, {sweep.command}: {', '.join(parts)}{unfinished}"


def _agreed() -> bool:
    """Raises Mistake where there is nobody to ask."""
    if not sys.stdin.isatty():
        raise Mistake("nothing was deleted; this is no terminal to ask at, so add --yes")
    try:
        return input("delete? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False
