"""`bakeoff merge`: another machine's sweeps, or a run that could not be saved, into one database."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from runner.command_line import Parser, answer
from runner.store import open_store
from runner.store.located import without_password
from runner.store.merge import Merged, check_sources, merge

EXAMPLES = """\
  bakeoff merge laptop.db desktop.db                      both into results.db
  bakeoff merge laptop.db --db all.db                     into another file, made if it is not there
  bakeoff merge results.db.unsaved-01M8QKJZJ60E2R48.json  a run that could not be saved

Merging the same again changes nothing. The merged files stay as they are."""


def main(argv: Sequence[str]) -> int:
    """The words after `bakeoff merge`. Returns the exit code: 0, or 2, one line on stderr and nothing merged."""
    return answer(_parser(), argv, _answer)


def _answer(asked: argparse.Namespace) -> int:
    check_sources(asked.sources)
    with open_store(asked.db) as store:
        done = merge(store, asked.sources)
        shown = store.shown
    for source, merged in zip(asked.sources, done, strict=True):
        print(f"{shown}: {told(merged)} from {without_password(source)}")
    return 0


def told(merged: Merged) -> str:
    """`2 runs and 1 sweep added, 3 runs there already`."""
    added = f"{_counted(merged.runs, 'run')} and {_counted(merged.sweeps, 'sweep')} added"
    return f"{added}, {_counted(merged.runs_known, 'run')} there already"


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def _parser() -> Parser:
    parser = Parser("merge", "Bring sweeps and their runs, samples included, into a database.", EXAMPLES)
    parser.add_argument(
        "sources", nargs="+", metavar="FILE", help="a database (path or URL), or a run that could not be saved"
    )
    return parser
