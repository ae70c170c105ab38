"""`bakeoff compare BASE NEW`: two sweeps cell by cell, and what else is not the same about them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from runner.command_line import Parser, answer, write
from runner.report.alone import FORMATS, table_alone
from runner.report.command import equivalence_option, terminal_width
from runner.report.contrast import contrasts, table
from runner.report.pairs import Measured, Pairs, measured, paired
from runner.report.read import ReportError, open_report
from runner.report.stats import EQUIVALENT_PCT
from runner.report.stored import Clause, chosen_sweep, clause, shown

EXAMPLES = """\
  bakeoff compare last~1 last                         the last two sweeps
  bakeoff compare 01M8QRN6RTB80 last --metric p99_us  the beginning of an id is enough
  bakeoff compare monday.db tuesday.db --format md    the last sweeps of two files
  bakeoff compare monday.db:last~1 results.db
  bakeoff compare last@label=before last@label=after  some runs of a sweep with others of it"""
REFERENCE = (
    "an id or its beginning, last, last~1, a database (its last sweep), or DATABASE:SWEEP; @KEY=VALUE after it "
    "takes only the runs that have it"
)
ONLY = re.compile(r"@([\w.]+!?=[^@]*)$")


def main(argv: Sequence[str]) -> int:
    """The words after `bakeoff compare`. Returns the exit code: 0, or 2 with one line on stderr for a mistake."""
    return answer(_parser(), argv, _answer)


def _parser() -> Parser:
    parser = Parser("compare", "Compare two sweeps, each cell of one with the same cell of the other.", EXAMPLES)
    parser.add_argument("base", metavar="BASE", help=f"a sweep: {REFERENCE}")
    parser.add_argument("new", metavar="NEW", help="what is compared with it: likewise")
    parser.add_argument("--metric", action="append", default=[], metavar="NAME", help="in place of the usual ones")
    parser.add_argument("--format", choices=FORMATS, default="text")
    equivalence_option(parser)
    return parser


def _answer(asked: argparse.Namespace) -> int:
    with opened(asked.base, asked.db) as base, opened(asked.new, asked.db) as new:
        write(compared(base, new, asked.metric, asked.format, asked.equivalent_pct))
    return 0


@contextmanager
def opened(reference: str, db: str) -> Iterator[Measured]:
    """The sweep called `reference`; without a database in it, one of `db`. Raises ReportError, StoreError."""
    only: list[Clause] = []
    while found := ONLY.search(reference):
        only.insert(0, clause(found[1]))
        reference = reference[: found.start()]
    database, name = located(reference, db)
    with ExitStack() as stack:
        connection = stack.enter_context(open_report(database))
        whole = measured(connection, chosen_sweep(connection, name, shown(database)), shown(database))
        yield whole.narrowed(only) if only else whole


def located(reference: str, db: str) -> tuple[str, str]:
    """(database, name of the sweep)."""
    if "://" in reference or Path(reference).is_file():
        return reference, "last"
    file, colon, name = reference.rpartition(":")
    if colon and Path(file).is_file():
        return file, name
    if reference.endswith((".db", ".sqlite")) or "/" in reference:
        return reference, "last"  # opening it says what is wrong
    return db, reference


def compared(
    base: Measured, new: Measured, metrics: Sequence[str], form: str, equivalent_pct: float = EQUIVALENT_PCT
) -> str:
    """The comparison in one of FORMATS. Raises ReportError where no cell is in both, or a metric is unknown."""
    found = paired(base, new)
    if not found.pairs:
        has = [", ".join(dict.fromkeys(cell.name for cell in cells)) for cells in (found.only_base, found.only_new)]
        raise ReportError(f"no cell is in both; BASE has {has[0] or 'no runs'}; NEW has {has[1] or 'no runs'}")
    head = [f"BASE {base.title}", f"NEW  {new.title}"]
    if found.machine:
        head.append(f"the environment is not the same: {'; '.join(map(str, found.machine))}")
    made = table(found, contrasts(found, metrics, equivalent_pct), equivalent_pct)
    return table_alone(made, form, terminal_width(), head, _facts(base, new, found))


def _facts(base: Measured, new: Measured, found: Pairs) -> dict[str, object]:
    sides = {
        name: {
            "database": side.database,
            "sweep_id": side.sweep.sweep_id,
            "command": side.sweep.command,
            "started_at": side.sweep.started_at,
        }
        for name, side in (("base", base), ("new", new))
    }
    return {
        "format": "bakeoff compare 1",
        **sides,
        "environment": [{"key": c.key, "base": c.before, "new": c.after} for c in found.machine],
        "only_in_base": [cell.name for cell in found.only_base],
        "only_in_new": [cell.name for cell in found.only_new],
    }
