"""What every table is before it is rendered: a title, its conditions, columns with units, rows, sentences.

Renderers know only this; the modules of runner.report.tables only make it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from runner.report.figures import DASH, number
from runner.report.stats import Estimate

Value = float | int | str | bool | None
Kind = Literal["key", "text", "number", "prose"]


@dataclass(frozen=True)
class Column:
    """One column. `key` names it in CSV and JSON and carries its unit; `head` is printed, line breaks allowed.

    `kind`: a "key" is repeated in every block of a wrapped table; "number" is right-aligned; "prose" may be broken
    between words. `spread`: CSV and JSON also get <key>_low and <key>_high. `shown`: False for columns that only
    CSV and JSON have. `wrapped`: in text each word has its own line.
    `labelled`: a key that needs its head to be understood.
    """

    key: str
    head: str
    kind: Kind = "number"
    spread: bool = False
    shown: bool = True
    wrapped: bool = False
    labelled: bool = False

    @property
    def line(self) -> str:
        """The head without its line breaks."""
        return " ".join(self.head.split()).replace(" /", "/")


@dataclass(frozen=True)
class Cell:
    """One value and how it reads. `bracket`: the texts of `low` and `high`."""

    text: str = DASH
    value: Value = None
    low: float | None = None
    high: float | None = None
    bracket: tuple[str, str] | None = None


NOTHING = Cell()


@dataclass(frozen=True)
class Table:
    """`rows`: cells by column key. `conditions`: what holds for every row. `notes`: sentences under the table; two
    leading spaces put one under the sentence before it. `narrow`: what a table becomes that is too wide; "turned"
    has a column for each row wherever that fits. `sources`: the published figures that it quotes.
    `by_itself`: False for a table that says too little to be printed without being asked for.
    """

    name: str
    title: str
    subtitle: str
    conditions: Sequence[str]
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Cell]]
    notes: Sequence[str] = ()
    narrow: Literal["blocks", "records", "turned"] = "blocks"
    sources: Sequence[str] = ()
    by_itself: bool = True


def words(value: str | None) -> Cell:
    """A cell of text; a dash if there is none."""
    return Cell(value, value) if value else NOTHING


def figure(value: float | None, digits: int = 0, suffix: str = "") -> Cell:
    """A cell of one number."""
    return NOTHING if value is None else Cell(number(value, digits) + suffix, value)


def headline(found: Estimate | None, digits: int = 0) -> Cell:
    """A cell of a median with its bracket; of one run there is none, and `bracket_word` or "n=1" says so."""
    if found is None:
        return NOTHING
    bracket = None if found.kind == "single" else (number(found.low, digits), number(found.high, digits))
    return Cell(number(found.median, digits), found.median, found.low, found.high, bracket)


def middle(found: Estimate | None, digits: int = 0, suffix: str = "") -> Cell:
    """A cell of a median alone."""
    return figure(None if found is None else found.median, digits, suffix)


def bracket_word(found: Iterable[Estimate | None]) -> str:
    """What stands in the header over headlines: "[range of 3]", "[n=1]", or "[range or n=1]" when mixed."""
    seen = {("n=1" if e.kind == "single" else e.kind, e.n) for e in found if e is not None}
    if not seen:
        return ""
    if len(seen) == 1:
        kind, n = seen.pop()
        return f"[{kind}]" if n == 1 else f"[{kind} of {n}]"
    kinds = {kind for kind, _ in seen}
    return f"[{' or '.join(kind for kind in ('interval', 'range', 'n=1') if kind in kinds)}]"
