"""`bakeoff report`: the tables of a sweep that is in the database."""

from __future__ import annotations

import argparse
import difflib
import math
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn, TextIO

from runner.report import header, needs, published
from runner.report.context import OPERATIONS, Context
from runner.report.figures import plain
from runner.report.file import check_writable, write_page
from runner.report.pictures import PICTURES
from runner.report.read import ReportError, Sweep, open_report, sweep_named, sweeps
from runner.report.render import FORMATS, Report, Section, comma_separated, javascript, markdown, text
from runner.report.stats import EQUIVALENT_PCT
from runner.report.table import Table
from runner.report.tables import TABLES
from runner.store import StoreError
from runner.store.located import without_password

PIPED_WIDTH = 120
WHY = ("comparisons", "checks")
LEAST_WIDTH = 20
TIMED = {"payload", "request_response", "open_loop", "saturation", "stream", "hello", "upload", "download"}
READING = (
    "[a, b]: least and most of the runs (range, 2 to 4 runs) or a 95 % bootstrap interval over runs (from 5); the "
    "bracket of a ratio is what those allow. A difference is claimed where that bracket excludes 1 and the medians "
    "differ by more than {0} %; equivalent is what an interval within {0} % shows. Of runs that measure the same, "
    "two ranges of 3 separate by chance 1 time in 10, of 2 1 time in 3. A dash: not measured, or too few samples."
)


class _Usage(Exception):
    """A mistake in the command line."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _Usage(message)


def main(argv: list[str]) -> int:
    """The words after `bakeoff report`. Returns the exit code: 0, or 2 with one line on stderr for a mistake."""
    try:
        asked = _parser().parse_args(argv)
        names = [_table(name) for name in asked.tables]
        _check(asked, names)
        out = _report(asked, names)
    except SystemExit as leaving:  # --help
        return int(leaving.code or 0)
    except (_Usage, ReportError, StoreError) as error:
        print(f"bakeoff report: {error}", file=sys.stderr)
        return 2
    return _written(out, sys.stdout)


def sweep_report(url: str, sweep_id: str, width: int | None = None) -> str:
    """The text report of one sweep: the tables that it has data for. Raises StoreError, ReportError."""
    with open_report(url) as connection:
        return text(built([sweep_named(connection, sweep_id)], _shown(url), [], "all"), width or terminal_width())


def equivalence_option(parser: argparse.ArgumentParser) -> None:
    """The option that says which differences are too small to matter."""
    parser.add_argument(
        "--equivalent-pct",
        type=_percent,
        default=EQUIVALENT_PCT,
        metavar="PCT",
        help="medians that differ by so much or less are the same in practice, and no difference is claimed "
        f"(default: {EQUIVALENT_PCT:g})",
    )


def _percent(given: str) -> float:
    try:
        value = float(given)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number of per cent, 0 or more, got {given!r}")
    return value


def terminal_width() -> int:
    """Places in a line: COLUMNS, else the terminal's, else PIPED_WIDTH where there is none."""
    given = os.environ.get("COLUMNS", "")
    if given.isascii() and given.isdigit() and int(given) > 0:
        return max(int(given), LEAST_WIDTH)
    if sys.stdout is None or not sys.stdout.isatty():
        return PIPED_WIDTH
    return max(shutil.get_terminal_size((PIPED_WIDTH, 24)).columns, LEAST_WIDTH)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="bakeoff report",
        description="Print the tables of a sweep in the database: the last one, unless told otherwise.",
        epilog=f"Text is laid out for the terminal, or for {PIPED_WIDTH} columns where the output is no terminal; "
        "COLUMNS=n in the environment decides otherwise. There is no colour, and nothing is ever cut. "
        "Examples: bakeoff report stream choosing; bakeoff report --html report.html",
        allow_abbrev=False,
    )
    parser.add_argument(
        "tables", nargs="*", metavar="TABLE", help=f"which ones: {', '.join(TABLES)} (default: all)"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--sweep", metavar="ID", help="this sweep; the beginning of its id is enough")
    which.add_argument("--all", action="store_true", help="every sweep, one after the other, the oldest first")
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--format", choices=FORMATS, default="text", help="csv takes one table name; csv and json are not rounded"
    )
    how.add_argument(
        "--html",
        metavar="FILE",
        help="write the tables and their pictures to one file that opens offline; what FILE held is replaced",
    )
    parser.add_argument(
        "--explain", action="store_true", help="also why: every check of every verdict, every comparison"
    )
    equivalence_option(parser)
    parser.add_argument("--db", default="results.db", metavar="PATH|URL", help="default: results.db")
    parser.add_argument(
        "--published",
        default="all",
        metavar="none|all|NAME",
        help="figures from elsewhere beside ours (default: all)",
    )
    return parser


def _table(name: str) -> str:
    """The table's name; hyphens and capitals are forgiven."""
    known = name.lower().replace("-", "_").replace("/", "_")
    if known in TABLES:
        return known
    near = difflib.get_close_matches(known, TABLES, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise _Usage(f"there is no table {name}{hint} (tables: {', '.join(TABLES)})")


def _check(asked: argparse.Namespace, names: Sequence[str]) -> None:
    if asked.html is not None:
        check_writable(asked.html)
    if asked.format == "csv" and len(names) != 1:
        raise _Usage(f"--format csv takes one table; name one of: {', '.join(TABLES)}")


def _report(asked: argparse.Namespace, names: Sequence[str]) -> str:
    with open_report(asked.db) as connection:
        known = sweeps(connection)
        if asked.sweep is not None:
            chosen = [sweep_named(connection, asked.sweep)]
        elif not known:
            raise ReportError(f"{_shown(asked.db)} holds no sweep yet; run bakeoff first")
        else:
            chosen = known if asked.all else known[-1:]
        why = WHY if asked.explain else ()
        made = built(
            chosen,
            _shown(asked.db),
            names,
            asked.published,
            why,
            pictures=asked.html is not None,
            equivalent_pct=asked.equivalent_pct,
        )
    if asked.html is not None:
        return write_page(made, asked.html)
    writers: dict[str, Callable[[Report], str]] = {
        "text": lambda report: text(report, terminal_width()),
        "md": markdown,
        "csv": comma_separated,
        "json": javascript,
    }
    return writers[asked.format](made)


def built(
    chosen: Sequence[Sweep],
    database: str,
    names: Sequence[str],
    published_names: str,
    more: Sequence[str] = (),
    pictures: bool = False,
    equivalent_pct: float = EQUIVALENT_PCT,
) -> Report:
    """The sections; without `names` every table that has data, with them these, empty where only some of the sweeps
    have data. `more`: further tables, where they have data. `pictures`: those of the tables as well.
    `equivalent_pct`: what differs by so much or less is not called different.

    Raises ReportError for a table that has data in none.
    """
    rules, sources = needs.load(), published.load(published_names)
    sections = []
    found: set[str] = set()
    for sweep in chosen:
        context = Context(sweep, rules, sources, equivalent_pct)
        # What is only shown when asked for may take long to make: every test of every pair.
        wanted = dict.fromkeys([*(names or (name for name in TABLES if name not in WHY)), *more])
        built = [(name, TABLES[name](context)) for name in wanted]
        found |= {name for name, table in built if table}
        tables = [
            table or _empty(name)
            for name, table in built
            if name in names or (table and (table.by_itself or name in more))
        ]
        drawn = [PICTURES[table.name] for table in tables if pictures and table.name in PICTURES]
        sections.append(
            Section(
                sweep.sweep_id,
                header.header(sweep, database),
                header.facts(sweep, database),
                tables,
                header.attention(sweep),
                [picture for make in drawn if (picture := make(context))],
            )
        )
    if missing := [name for name in names if name not in found]:
        raise ReportError(_missing(missing[0], chosen))
    shown = [table for section in sections for table in section.tables]
    quoted = {name for table in shown for name in table.sources}
    timed = any(table.name in TIMED and table.rows for table in shown)
    closing = [READING.format(plain(equivalent_pct))] if timed else []
    closing += [f"published figures, {source.provenance()}" for source in sources if source.name in quoted]
    if quoted:
        closing.append("ratios and shapes compare with published ones, absolute numbers do not")
    return Report(sections, closing)


def _missing(name: str, chosen: Sequence[Sweep]) -> str:
    has = ", ".join(sorted({operation for sweep in chosen for operation in sweep.operations})) or "no runs"
    where = f"sweep {chosen[0].sweep_id}" if len(chosen) == 1 else f"any of {len(chosen)} sweeps"
    what = f"{name} runs" if name in OPERATIONS else f"runs for the table {name}"
    return f"no {what} in {where}; it has: {has}" if len(chosen) == 1 else f"no {what} in {where}; they have: {has}"


def _empty(name: str) -> Table:
    title = name.replace("_", "/" if name == "request_response" else "-").upper()
    return Table(name, title, "nothing was measured", [], [], [])


def _shown(url: str) -> str:
    return without_password(url.removeprefix("sqlite:///"))


def _written(out: str, stream: TextIO) -> int:
    """UTF-8 whatever the locale says. A reader that has seen enough (`| head`) is no failure."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(encoding="utf-8", newline="\n")
    try:
        stream.write(out)
        stream.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return 0
