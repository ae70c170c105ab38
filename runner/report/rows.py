"""Runs that measured the same thing under the same conditions: the rows of a table.

A row is a cell of the sweep and one verdict: the good runs of a cell, and beside them (never among them) its void,
failed, interrupted and unsupported ones.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from runner.report.conditions import ENVIRONMENT, Condition
from runner.report.figures import counted, listed, number, plain
from runner.report.read import Run
from runner.report.stats import EQUIVALENT_PCT, Comparison, Estimate, compare, estimate
from runner.report.table import NOTHING, Cell, Column, figure, words

GOOD = "ok"
NO_ERRORS = "no errors in any run"
SETTINGS = "settings"  # the condition whose value is words of its own
_PERCENTILE = re.compile(r"p\d+_(us|ms)$")
_RANK = {verdict: i for i, verdict in enumerate(("ok", "void", "failed", "interrupted", "unsupported"))}


@dataclass(frozen=True)
class Row:
    """Runs of one cell with one verdict. `key`: what is compared; `under`: the conditions, by key;
    `equivalent_pct`: by how much another row must differ to be called different.
    """

    runs: Sequence[Run]
    verdict: str
    key: tuple[str, ...]
    under: Mapping[str, Any]
    equivalent_pct: float = EQUIVALENT_PCT

    @property
    def good(self) -> bool:
        """Whether its numbers count."""
        return self.verdict == GOOD

    @property
    def first(self) -> Run:
        """Any of its runs, for what they have in common."""
        return self.runs[0]

    def values(self, metric: str) -> list[float]:
        """The per-run values in the order of the plan; runs without one are left out."""
        return [value for run in self.runs if (value := run.metric(metric)) is not None]

    def estimate(self, metric: str) -> Estimate | None:
        """The median of the per-run values, with its bracket. None for a percentile that one of the runs has too
        few samples for: medians over different runs need not rise as the percentiles of each run do.
        """
        values = self.values(metric)
        middle = "p50_us" if metric == "tail_ratio" else _PERCENTILE.sub(r"p50_\1", metric)
        if middle != metric and len(values) < len(self.values(middle)):
            return None
        return estimate(values)

    def against(self, other: Row, metric: str) -> Comparison | None:
        """This row as a multiple of `other`."""
        return compare(self.values(metric), other.values(metric), self.equivalent_pct)

    def findings(self, name: str) -> Counter[str]:
        """word -> in how many runs it was found."""
        return Counter(str(run.findings[name]) for run in self.runs if run.findings.get(name))

    def finding(self, name: str) -> str:
        """The word that most runs found, "" if none did."""
        seen = self.findings(name)
        return min(seen, key=lambda word: (-seen[word], word)) if seen else ""

    @property
    def error_kinds(self) -> Cell:
        """kind number, ...: the most frequent first."""
        kinds: Counter[str] = Counter()
        for run in self.runs:
            kinds.update(run.errors)
        ordered = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
        return words(", ".join(f"{kind} {number(n)}" for kind, n in ordered))

    @property
    def errors(self) -> Cell:
        """How many calls or messages went wrong, by kind; a dash where a run did not get as far as counting."""
        total = sum(run.error_count for run in self.runs)
        if not total and not all("errors" in run.metrics for run in self.runs):
            return NOTHING
        kinds = self.error_kinds.value
        return Cell(f"{number(total)} ({kinds})" if kinds else number(total), total)


@dataclass(frozen=True)
class Rows:
    """All rows of a table. `known`: every condition that was looked at; `roles`: what the words of a key that come
    after protocol, engine, codec and variant stand for.
    """

    all: Sequence[Row]
    known: Sequence[Condition]
    floor: str
    roles: Sequence[str] = ()

    @cached_property
    def varying(self) -> list[Condition]:
        """The conditions that tell rows apart."""
        return [c for c in self.known if len({str(row.under[c.key]) for row in self.all}) > 1]

    @cached_property
    def shared(self) -> list[str]:
        """Those that all rows share, in words."""
        if not self.all:
            return []
        same = {c.key: self.all[0].under[c.key] for c in self.known if c not in self.varying}
        found = [c for c in self.known if same.get(c.key) is not None]
        return [said for c in found if (said := c.words(same))]

    @property
    def good(self) -> list[Row]:
        """The rows whose numbers count."""
        return [row for row in self.all if row.good]

    def comparable(self) -> list[list[Row]]:
        """The good rows in groups that share every condition."""
        groups: dict[tuple[str, ...], list[Row]] = {}
        for row in self.good:
            groups.setdefault(_place(row), []).append(row)
        return list(groups.values())

    def against_floor(self, row: Row, metric: str) -> Comparison | None:
        """`row` as a multiple of the floor with the same codec under the same conditions; None without one, and
        where either has fewer than two good runs.
        """
        if not row.good:
            return None
        for other in self.good:
            same = _place(other) == _place(row) and other.key[2:] == (row.first.codec, "", *row.key[4:])
            if same and other.first.protocol == self.floor:
                found = row.against(other, metric)
                return found if found and found.claimed is not None else None
        return None

    def floor_cell(self, row: Row, metric: str) -> Cell:
        """`against_floor` with its bracket; the floor itself is 1 and nothing else."""
        found = self.against_floor(row, metric)
        if found is None:
            return NOTHING
        if row.first.protocol == self.floor and not row.first.variant:
            return figure(found.ratio, 2)
        bracket = (number(found.low, 2), number(found.high, 2))
        return Cell(number(found.ratio, 2), found.ratio, found.low, found.high, bracket)

    def differing(self, row: Row, but: Sequence[str] = ()) -> str:
        """The conditions of `row` that not all rows share, in words, without those `but`; "" if there are none."""
        said = (
            c.words(row.under) or f"{Column(c.key, c.head).line} {_said(row.under[c.key]).text}"
            for c in self.varying
            if c.key not in but
        )
        return ", ".join(said)

    def key_columns(self, *more: Column) -> list[Column]:
        """Protocol, engine, codec; `more`; and what varies: CSV and JSON have every condition."""
        twice = len({(row.key, _place(row), row.verdict) for row in self.all}) < len(self.all)
        uneven = len({len(row.runs) for row in self.all}) > 1 or any(not row.good for row in self.all)
        return [
            Column("protocol", "protocol", "key"),
            Column("engine", "engine", "key"),
            Column("codec", "codec", "key", shown=not self._codec_in_words()),
            Column("variant", "variant", "key", shown=any(row.first.variant for row in self.all), wrapped=True),
            *more,
            Column("scenario", "scenario", "key", shown=twice),
            *(
                Column(c.key, c.head, "key", shown=c in self.varying, wrapped=c.key == SETTINGS, labelled=True)
                for c in self.known
            ),
            Column("runs", "runs", "key", shown=uneven),
            Column("verdict", "verdict", "key", shown=False),
        ]

    def key_cells(self, row: Row) -> dict[str, Cell]:
        """What `key_columns` announces, but for its `more`."""
        run, n = row.first, len(row.runs)
        protocol = f"{run.protocol} (floor)" if run.protocol == self.floor else run.protocol
        return {
            "protocol": Cell(protocol, run.protocol),
            "engine": words(run.engine),
            "codec": words(run.codec),
            "variant": words(run.variant),
            "scenario": words(run.scenario),
            **{c.key: _said(row.under[c.key]) for c in self.known},
            "environment": Cell(str(row.under.get("environment")), run.environment),
            "runs": Cell(f"{n} {row.verdict}", n),
            "verdict": words(row.verdict),
        }

    def conditions(self) -> list[str]:
        """What holds for all rows, in words."""
        return [said for said in (*self.shared, self._codec_in_words(), self.repeats()) if said]

    def has_floor(self) -> bool:
        """Whether there is anything to be a multiple of."""
        return any(row.first.protocol == self.floor for row in self.good)

    @property
    def faultless(self) -> bool:
        """Whether every row counted its errors and there are none: a few words say that, instead of a column."""
        return all(row.errors.value == 0 for row in self.all)

    def floor_note(self, metric: str) -> str:
        """Why no row has a multiple of the floor; "" if one has."""
        others = [row for row in self.good if row.first.protocol != self.floor]
        if not self.has_floor() or not others or any(self.against_floor(row, metric) for row in others):
            return ""
        if not any(self.against_floor(row, metric) for row in self.good):
            return f"x floor: a dash, as it needs 2 good runs of the row and of {self.floor}"
        codecs = sorted({row.first.codec for row in others})
        same = f"{self.floor} with codec {listed(codecs, 'or')} under the same conditions"
        return f"x floor: a dash, as it needs {same}, and 2 good runs of both"

    def _codec_in_words(self) -> str:
        """The codecs, where a few words say them all and no column is needed."""
        codecs = {row.first.codec for row in self.all}
        if len(codecs) == 1:
            return f"codec {codecs.pop()}"
        usual = all(row.first.codec == row.first.facts.get("default_codec") for row in self.all)
        return "each protocol with its default codec" if usual else ""

    def repeats(self) -> str:
        """How often each cell was run, in words; "" where that differs."""
        cells: Counter[Any] = Counter()
        for row in self.all:
            cells[row.key, _place(row), row.first.scenario] += len(row.runs)
        numbers = set(cells.values())
        return counted(numbers.pop(), "repeat") if len(numbers) == 1 else ""


def cell_key(run: Run, *more: str) -> tuple[str, ...]:
    """What tells one cell from another besides its conditions; `more`: findings or knobs of the operation."""
    return (run.protocol, run.engine, run.codec, run.variant, *(style(run, name) for name in more))


def style(run: Run, name: str) -> str:
    """`producer` or `consumer`: as found, else (the run failed early) as configured."""
    return str(run.findings.get(name) or run.setting("operation", name) or "")


def rows_of(
    runs: Iterable[Run],
    conditions: Sequence[Condition],
    floor: str,
    letters: Mapping[str, str],
    more: Sequence[str] = (),
    key: Callable[..., tuple[str, ...]] = cell_key,
    equivalent_pct: float = EQUIVALENT_PCT,
) -> Rows:
    """Groups `runs`; the floor comes first. `letters`: environment hash -> how it is called.

    A condition that a run does not know (it failed before that was recorded) is taken from the other runs where
    those agree.
    """
    runs = list(runs)
    known = {c.key: {str(value): value for run in runs if (value := c.of(run)) is not None} for c in conditions}

    def under(run: Run) -> dict[str, Any]:
        found = {}
        for c in conditions:
            value = letters.get(run.environment) if c is ENVIRONMENT else c.of(run)
            if value is None and len(known[c.key]) == 1:
                value = next(iter(known[c.key].values()))
            found[c.key] = value
        return found

    groups: dict[tuple[Any, ...], Row] = {}
    for run in runs:
        place, name = under(run), key(run, *more)
        where = (name, tuple(map(str, place.values())), run.scenario, run.verdict)
        before = groups[where].runs if where in groups else ()
        groups[where] = Row([*before, run], run.verdict, name, place, equivalent_pct)
    made = sorted(groups.values(), key=lambda row: _order(row, floor))
    return Rows(made, conditions, floor, more)


def _place(row: Row) -> tuple[str, ...]:
    return tuple(map(str, row.under.values()))


def _order(row: Row, floor: str) -> tuple[Any, ...]:
    place = tuple(_sortable(value) for value in row.under.values())
    return (place, row.first.protocol != floor, row.key, row.first.scenario, _RANK.get(row.verdict, 9))


def _sortable(value: Any) -> tuple[int, float, str]:
    return (0, float(value), "") if isinstance(value, int | float) else (1, 0.0, str(value))


def _said(value: Any) -> Cell:
    if value is None or value == "":
        return NOTHING
    if isinstance(value, bool):
        return Cell("yes" if value else "no", value)
    if isinstance(value, int | float):
        return Cell(number(value) if float(value).is_integer() else plain(value), value)
    return Cell(str(value), str(value))
