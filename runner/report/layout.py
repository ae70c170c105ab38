"""One table as text for a terminal of a given width.

No name and no number is ever cut. Prose is broken between words first; then the table is printed in blocks of
columns that repeat the key columns; where not even that fits, or the table is mostly prose, one record under the
other.
Widths are those that a terminal shows: a Chinese character takes two places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tabulate import tabulate
from wcwidth import wcswidth

from runner.report.figures import DASH
from runner.report.table import Cell, Column, Table

GAP = 2  # between columns
LEAST_PROSE = 14  # prose is not broken into narrower lines than this, unless it is that short
RECORD_INDENT = 2


@dataclass(frozen=True)
class _Laid:
    """A column as it will be printed; `cells` and `head` may hold line breaks."""

    column: Column
    head: str
    cells: Sequence[str]

    @property
    def width(self) -> int:
        return max(map(width_of, (line for text in (self.head, *self.cells) for line in text.split("\n"))))

    @property
    def longest(self) -> int:
        return max(map(width_of, self.cells), default=0)

    @property
    def least(self) -> int:
        if self.column.kind != "prose":
            return self.width
        words = (word for text in (self.head, *self.cells) for word in text.split())
        return min(self.width, max(LEAST_PROSE, *map(width_of, words)))

    def narrowed(self, width: int) -> _Laid:
        if self.column.kind != "prose" or width >= self.width:
            return self
        head, *cells = (
            "\n".join(line for part in text.split("\n") for line in wrap(part, width))
            for text in (self.head, *self.cells)
        )
        return _Laid(self.column, head, cells)


def width_of(text: str) -> int:
    """Places that one line takes in a terminal."""
    shown = wcswidth(text)
    return shown if shown >= 0 else len(text)  # -1: there are control characters in it


def wrap(text: str, width: int, indent: str = "") -> list[str]:
    """Lines of at most `width` places, broken at spaces; a longer word keeps its line. `indent`: of later lines."""
    start = text[: len(text) - len(text.lstrip(" "))]
    lines, line = [], start
    for word in text.split():
        joined = line + word if not line.strip() else f"{line} {word}"
        if width_of(joined) > width and line.strip():
            lines.append(line)
            line = start + indent + word
        else:
            line = joined
    return [*lines, line]


def table_text(table: Table, width: int) -> str:
    """Title, conditions, the table, and its sentences."""
    lines = wrap(f"{table.title} · {table.subtitle}", width)
    if table.conditions:
        lines += wrap("; ".join(table.conditions), width)
    lines.append("")
    lines += _body(table, width) if table.rows else ["no runs of this kind in this sweep"]
    if table.notes:
        lines.append("")
        for note in table.notes:
            lines += wrap(note, width, "  ")
    return "\n".join(line.rstrip() for line in lines)


def _body(table: Table, width: int) -> list[str]:
    laid = [
        _laid(column, [row.get(column.key, Cell()) for row in table.rows])
        for column in table.columns
        if column.shown
    ]
    if table.narrow == "turned" and (turned := _fitted(_turned(laid), width)) is not None:
        return _drawn(turned)
    if (fitted := _fitted(laid, width)) is not None:
        return _drawn(fitted)
    keys = [one for one in laid if one.column.kind == "key"]
    others = [one for one in laid if one.column.kind != "key"]
    room = width - _total(keys) - GAP
    if table.narrow == "blocks" and keys and all(one.least <= room for one in others):
        return _blocks(keys, others, room)
    return _records(laid, keys or laid[:1], width)


def _laid(column: Column, cells: Sequence[Cell]) -> _Laid:
    """Numbers with a bracket get its parts aligned, and those without one the room for it."""
    if column.wrapped:
        return _Laid(column, column.head, [cell.text.replace(" ", "\n") for cell in cells])
    brackets = [cell.bracket for cell in cells if cell.bracket]
    if not brackets:
        return _Laid(column, column.head, [cell.text for cell in cells])
    low, high = (max(len(bracket[i]) for bracket in brackets) for i in (0, 1))
    texts = []
    for cell in cells:
        tail = f" [{cell.bracket[0]:>{low}}, {cell.bracket[1]:>{high}}]" if cell.bracket else ""
        tail = tail or (" n=1" if cell.low is not None else "").ljust(low + high + 5)
        texts.append(cell.text + tail)
    return _Laid(column, column.head, texts)


def _turned(columns: Sequence[_Laid]) -> list[_Laid]:
    """A column for each row, headed by its keys; a row for each of the other columns."""
    keys = [one for one in columns if one.column.kind == "key"]
    others = [one for one in columns if one.column.kind != "key"]
    turned = [_Laid(Column("", "", "text"), "", [one.column.line for one in others])]
    for i in range(len(columns[0].cells)):
        head = "\n".join(one.cells[i] for one in keys)
        turned.append(_Laid(Column("", "", "prose"), head, [one.cells[i] for one in others]))
    return turned


def _total(columns: Sequence[_Laid]) -> int:
    return sum(one.width for one in columns) + GAP * max(len(columns) - 1, 0)


def _fitted(columns: Sequence[_Laid], width: int) -> list[_Laid] | None:
    """All columns side by side, prose made narrower until they fit; None if they do not."""
    widths = [one.width for one in columns]
    over = sum(widths) + GAP * (len(columns) - 1) - width
    while over > 0:
        spare = [i for i, size in enumerate(widths) if size > columns[i].least]
        if not spare:
            return None
        # Whichever has the fewest lines after it: a column of short texts before one of long ones.
        narrower = min(spare, key=lambda i: (columns[i].longest / (widths[i] - 1), -widths[i]))
        widths[narrower] -= 1
        over -= 1
    return [one.narrowed(size) for one, size in zip(columns, widths, strict=True)]


def _blocks(keys: Sequence[_Laid], others: Sequence[_Laid], room: int) -> list[str]:
    """The key columns repeated, each time with some of the others: as few blocks as can be, evenly filled."""
    blocks = _packed(others, room)
    while room > 1 and len(tighter := _packed(others, room - 1)) == len(blocks):
        blocks, room = tighter, room - 1
    return [line for i, block in enumerate(blocks) for line in ([""] if i else []) + _drawn([*keys, *block])]


def _packed(columns: Sequence[_Laid], room: int) -> list[list[_Laid]]:
    blocks: list[list[_Laid]] = [[]]
    for one in columns:
        one = one.narrowed(max(room, one.least))
        if blocks[-1] and _total([*blocks[-1], one]) > room:
            blocks.append([])
        blocks[-1].append(one)
    return blocks


def _drawn(columns: Sequence[_Laid]) -> list[str]:
    """The table itself. Heads stand on their rule; where most rows take several lines, an empty one parts them."""
    heads = [one.head.split("\n") for one in columns]
    high = max(map(len, heads))
    above = [[""] * (high - len(head)) + head for head in heads]
    rows = [list(cells) for cells in zip(*(one.cells for one in columns), strict=True)]
    if 2 * sum(any("\n" in cell for cell in row) for row in rows) > len(rows):
        blank = [" "] * len(columns)  # tabulate drops a row of empty cells
        rows = [line for row in rows for line in (row, blank)][:-1]
    # As rows, not as tabulate's headers: those are padded by two places.
    text = tabulate(
        [*zip(*above, strict=True), ["-" * one.width for one in columns], *rows],
        tablefmt="plain",
        colalign=["right" if one.column.kind == "number" else "left" for one in columns],
        disable_numparse=True,
        preserve_whitespace=True,
    )
    return text.split("\n")


def _key_word(one: _Laid, i: int) -> str:
    said = " ".join(one.cells[i].split())
    return f"{one.column.line} {said}" if one.column.labelled else said


def _records(columns: Sequence[_Laid], keys: Sequence[_Laid], width: int) -> list[str]:
    """Each row under its keys: one line for each of the other columns."""
    others = [one for one in columns if one not in keys]
    labels = [one.column.line for one in others]
    label = max(map(width_of, labels), default=0)
    room = width - label - RECORD_INDENT - GAP
    longest = max((width_of(word) for one in others for text in one.cells for word in text.split()), default=0)
    lines: list[str] = []
    for i in range(len(columns[0].cells)):
        names = [_key_word(one, i) for one in keys if one.cells[i] != DASH]
        lines += [*([""] if lines else []), *wrap(" · ".join(names), width, " " * RECORD_INDENT)]
        for one, name in zip(others, labels, strict=True):
            value = " ".join(one.cells[i].split()).replace("[ ", "[")
            if longest <= room:
                start = " " * RECORD_INDENT + name + " " * (label - width_of(name) + GAP)
                first, *more = wrap(value, room)
                lines += [start + first, *(" " * (RECORD_INDENT + label + GAP) + line for line in more)]
            else:
                lines += wrap(" " * RECORD_INDENT + name, width, "  ")
                lines += wrap(" " * 2 * RECORD_INDENT + value, width, "  ")
    return lines
