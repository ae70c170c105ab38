"""The table of `bakeoff compare`: every pair of cells, metric by metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from runner.report.better import DEFAULTS, OTHERWISE, more_is_better
from runner.report.figures import counted, digits_for, number, plain, ratio
from runner.report.layout import wrap
from runner.report.pairs import CellRuns, Pair, Pairs
from runner.report.read import ReportError
from runner.report.stats import EQUIVALENT_PCT, Comparison, compare, estimate
from runner.report.stored import near
from runner.report.table import NOTHING, Cell, Column, Table, headline, words

CELL_WIDTH = 30  # places; a longer name is broken between words
SAME, CHANGED, UNCLEAR = "same", "changed", "no clear difference"
READING = (
    "ratio: NEW / BASE, of the medians of the good runs; its bracket is what their ranges allow (2 to 4 runs) or a "
    "95 % bootstrap interval (from 5 on each side). A difference is claimed where that excludes 1 and is over {} %."
)


@dataclass(frozen=True)
class Contrast:
    """One metric of one pair. `ratio`: None where a value is not positive. `verdict`: better, worse, higher, lower,
    no clear difference, n=1, same, or (of words) changed.
    """

    pair: Pair
    metric: str
    ratio: Comparison | None
    verdict: str


def contrasts(found: Pairs, metrics: Sequence[str], equivalent_pct: float = EQUIVALENT_PCT) -> list[Contrast]:
    """Every metric of every pair: `metrics`, or those that stand for its operation. Raises ReportError for one that
    no pair has.
    """
    known = {name for pair in found.pairs for cell in (pair.base, pair.new) for name in _known(cell)}
    for metric in metrics:
        if metric not in known:
            has = ", ".join(sorted(known))
            raise ReportError(
                f"--metric {metric}: neither sweep has it{near(metric, sorted(known)) or f' (they have: {has})'}"
            )
    return [
        contrast(pair, metric, equivalent_pct)
        for pair in found.pairs
        for metric in metrics or DEFAULTS.get(pair.base.operation, OTHERWISE)
        if metric in _known(pair.base) or metric in _known(pair.new)
    ]


def contrast(pair: Pair, metric: str, equivalent_pct: float = EQUIVALENT_PCT) -> Contrast:
    """What can be said of one metric. `equivalent_pct`: what differs by so much or less is not called different."""
    old, new = pair.base.values(metric), pair.new.values(metric)
    if not old and not new:
        words = [set(cell.words(metric)) for cell in (pair.base, pair.new)]
        both = words[0] and words[1]
        return Contrast(pair, metric, None, (SAME if words[0] == words[1] else CHANGED) if both else "-")
    if not old or not new:
        return Contrast(pair, metric, None, "-")
    found = compare(new, old, equivalent_pct)
    return Contrast(pair, metric, found, _verdict(metric, old, new, found))


def _verdict(metric: str, old: Sequence[float], new: Sequence[float], found: Comparison | None) -> str:
    if set(old) == set(new) and len(set(old)) == 1:
        return SAME  # counts often are
    if found is not None:
        higher = None if found.higher is None else found.higher == 0
        unclaimed = found.claimed is None
    else:  # there is a 0 or less: no ratio, but ranges can still be apart
        higher = True if min(new) > max(old) else False if max(new) < min(old) else None
        unclaimed = min(len(old), len(new)) < 2
    if unclaimed:
        return "n=1"
    if higher is None:
        return UNCLEAR
    good = more_is_better(metric)
    if good is None:
        return "higher" if higher else "lower"
    return "better" if higher == good else "worse"


def _known(cell: CellRuns) -> set[str]:
    found = {name for run in cell.good for name in cell.side.metrics.get(run.row["run_id"], {})}
    return found | {name for run in cell.good for name in run.row["findings"]}


def table(found: Pairs, rows: Sequence[Contrast], equivalent_pct: float = EQUIVALENT_PCT) -> Table:
    """The comparison as a table; what nothing stands against, and what is not the same, under it."""
    letters: dict[str, str] = {}
    for pair in found.pairs:
        if text := _told(pair):
            letters.setdefault(text, _letter(len(letters)))
    made = [_row(row, letters) for row in rows]
    seen = Counter(row.verdict for row in rows)
    order = ("better", "worse", "higher", "lower", CHANGED, UNCLEAR, SAME, "n=1", "-")
    counts = ", ".join(
        f"{number(seen[verdict])} {verdict}" for verdict in order if verdict in seen and verdict != "-"
    )
    return Table(
        "compare",
        "COMPARE",
        f"{counted(len(found.pairs), 'cell')} in both sweeps; {counts or 'no good runs on both sides'}",
        [],
        _columns(made),
        made,
        [
            *(f"({letter}) not the same: {text}" for text, letter in letters.items()),
            *_alone("BASE", found.only_base),
            *_alone("NEW", found.only_new),
            *_left_out(found.pairs),
            READING.format(plain(equivalent_pct)),
        ],
    )


def _columns(rows: Sequence[Mapping[str, Cell]]) -> list[Column]:
    differs = any(row["differs"].value for row in rows)
    exported = ("scenario", "operation", "protocol", "engine", "codec", "variant", "swept")
    return [
        Column("cell", "cell", "key"),
        *(Column(name, name, "text", shown=False) for name in exported),
        Column("metric", "metric", "key"),
        Column("base", "BASE", spread=True),
        Column("new", "NEW", spread=True),
        Column("ratio", "ratio", spread=True),
        Column("verdict", "NEW is", "text"),
        Column("differs", "not the\nsame", "text", shown=differs),
        Column("runs_base", "runs BASE", shown=False),
        Column("runs_new", "runs NEW", shown=False),
    ]


def _row(found: Contrast, letters: Mapping[str, str]) -> dict[str, Cell]:
    pair, metric = found.pair, found.metric
    told = _told(pair)
    cells = {
        name: words(pair.base.column(name))
        for name in ("scenario", "operation", "protocol", "engine", "codec", "variant")
    }
    cells |= {
        "cell": Cell("\n".join(wrap(pair.base.name, CELL_WIDTH)), pair.base.name),
        "swept": words(pair.base.swept),
        "metric": words(metric),
        "verdict": words(found.verdict),
        "differs": Cell(f"({letters[told]})", told) if told else NOTHING,
    }
    for key, cell in (("base", pair.base), ("new", pair.new)):
        values = cell.values(metric)
        both = [*pair.base.values(metric), *pair.new.values(metric)]
        said = " or ".join(sorted(set(cell.words(metric)))) if not both else ""
        spread = replace(headline(estimate(values), digits_for(both)), bracket=None)  # the ratio's is shown
        cells[key] = words(said) if said else spread
        cells[f"runs_{key}"] = Cell(number(len(cell.good)), len(cell.good))
    if (one := found.ratio) is not None:
        bracket = None if one.kind == "single" else (number(one.low, 2), number(one.high, 2))
        cells["ratio"] = Cell(ratio(one.ratio), one.ratio, one.low, one.high, bracket)
    return cells


def _told(pair: Pair) -> str:
    return "; ".join(map(str, pair.differences))


def _letter(index: int) -> str:
    return chr(ord("a") + index) if index < 26 else str(index + 1)


def _alone(side: str, cells: Iterable[CellRuns]) -> list[str]:
    return [f"only in {side}: {cell.name}, {counted(len(cell.runs), 'run')}" for cell in cells]


def _left_out(pairs: Iterable[Pair]) -> list[str]:
    return [
        f"left out of {side}: {cell.name}, {cell.others}"
        for pair in pairs
        for side, cell in (("BASE", pair.base), ("NEW", pair.new))
        if cell.others
    ]
