"""`bakeoff merge`: another machine's sweeps, or a run that could not be saved, into one database."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from runner.store import StoreError, open_store
from runner.store.located import without_password
from runner.store.merge import Merged, check_sources, merge

EXAMPLES = """\
Examples
  bakeoff merge laptop.db desktop.db                      both into results.db
  bakeoff merge laptop.db --db all.db                     into another file, made if it is not there
  bakeoff merge results.db.unsaved-01M8QKJZJ60E2R48.json  a run that could not be saved

Merging the same again changes nothing. The merged files stay as they are."""


class _Usage(Exception):
    """A mistake in the command line."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _Usage(message)


def main(argv: Sequence[str]) -> int:
    """The words after `bakeoff merge`. Returns the exit code: 0, or 2, one line on stderr and nothing merged."""
    try:
        asked = _parser().parse_args(argv)
        check_sources(asked.sources)
        with open_store(asked.db) as store:
            done = merge(store, asked.sources)
            shown = store.shown
    except SystemExit as leaving:  # --help
        return int(leaving.code or 0)
    except (_Usage, StoreError) as error:
        print(f"bakeoff merge: {error}", file=sys.stderr)
        return 2
    for source, merged in zip(asked.sources, done, strict=True):
        print(f"{shown}: {told(merged)} from {without_password(source)}")
    return 0


def told(merged: Merged) -> str:
    """`2 runs and 1 sweep added, 3 runs there already`."""
    added = f"{_counted(merged.runs, 'run')} and {_counted(merged.sweeps, 'sweep')} added"
    return f"{added}, {_counted(merged.runs_known, 'run')} there already"


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="bakeoff merge",
        description="Bring sweeps and their runs, samples included, into a database.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "sources", nargs="+", metavar="FILE", help="a database (path or URL), or a run that could not be saved"
    )
    parser.add_argument("--db", default="results.db", metavar="PATH|URL", help="into this (default: results.db)")
    return parser
