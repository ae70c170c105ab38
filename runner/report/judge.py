"""Thresholds held against a sweep: which rules hold, and why the others do not.

A rule that nothing answers is broken: a gate that looks at nothing must not open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runner.report.figures import counted, digits_for, listed, number
from runner.report.pairs import CellRuns, Measured, Pair, cells, paired
from runner.report.stats import INTERVAL_FROM, compare, estimate
from runner.report.stored import COLUMNS, near, said, same
from runner.report.thresholds import Rule


@dataclass(frozen=True)
class Judged:
    """A rule and what it found: `broken`: one sentence for each cell that breaks it; `held`: cells that do not."""

    rule: Rule
    broken: Sequence[str]
    held: int


def judged(rule: Rule, new: Measured, base: Measured | None) -> Judged:
    """`base`: needed by a relative rule."""
    chosen = [cell for found in cells(new) if (cell := _narrowed(found, rule)) is not None]
    if not chosen:
        return Judged(rule, [f"no run matches {' and '.join(map(str, rule.where))}{_hint(rule, new)}"], 0)
    if rule.relative:
        assert base is not None
        answers = _relative(rule, chosen, base, new)
    elif isinstance(rule.limit, float) and any(_measures(cell, rule.metric) for cell in chosen):
        answers = [_absolute(rule, cell) for cell in _of_operations_with(rule.metric, chosen)]
    else:
        answers = [_word(rule, cell) for cell in chosen if _has(cell, rule.metric)]
    if not answers:
        known = {
            name
            for cell in chosen
            for run in cell.runs
            for name in (*run.known, *_metrics(cell, run.row["run_id"]))
        }
        return Judged(rule, [f"no run has {rule.metric}{near(rule.metric, sorted(known))}"], 0)
    broken = [answer for answer in answers if answer is not None]
    return Judged(rule, broken, len(answers) - len(broken))


def _narrowed(cell: CellRuns, rule: Rule) -> CellRuns | None:
    runs = [run for run in cell.runs if all(clause.holds(run.known) for clause in rule.where)]
    return CellRuns(cell.side, runs, cell.told) if runs else None


def _hint(rule: Rule, new: Measured) -> str:
    known = sorted({key for run in new.runs for key in run.known})
    for clause in rule.where:
        if clause.key not in known:
            return f"; no run has {clause.key}{near(clause.key, known)}"
        values = sorted({said(run.known.get(clause.key)) or "''" for run in new.runs})
        if not any(same(run.known.get(clause.key), value) for run in new.runs for value in clause.values):
            return f"; {clause.key} there: {', '.join(values[:10])}"
    return ""


def _metrics(cell: CellRuns, run_id: str) -> Sequence[str]:
    return list(cell.side.metrics.get(run_id, {}))


def _measures(cell: CellRuns, metric: str) -> bool:
    return any(metric in cell.side.metrics.get(run.row["run_id"], {}) for run in cell.runs)


def _of_operations_with(metric: str, chosen: Sequence[CellRuns]) -> list[CellRuns]:
    """All cells of the operations that measure it: where it is missing in one of them, something is wrong."""
    operations = {cell.operation for cell in chosen if _measures(cell, metric)}
    found = [cell for cell in chosen if cell.operation in operations]
    # What a protocol cannot carry is a declared fact, and nothing was measured wrongly.
    carried = [cell for cell in found if any(run.row["verdict"] != "unsupported" for run in cell.runs)]
    return carried or found


def _absolute(rule: Rule, cell: CellRuns) -> str | None:
    found = estimate(cell.values(rule.metric))
    if found is None:
        return _nothing(rule, cell)
    if rule.holds(found.median):
        return None
    of = f"median of {counted(found.n, 'run')}" if found.n > 1 else "1 run"
    return f"{cell.name}: {number(found.median, digits_for([found.median]))} ({of})"


def _nothing(rule: Rule, cell: CellRuns) -> str:
    if cell.good:
        return f"{cell.name}: {rule.metric} was not measured"
    reasons = dict.fromkeys(run.row["reason"] for run in cell.runs if run.row["reason"])
    return f"{cell.name}: no good run, {cell.others}{': ' if reasons else ''}{'; '.join(reasons)}"


def _relative(rule: Rule, chosen: Sequence[CellRuns], base: Measured, new: Measured) -> list[str | None]:
    pairs = {frozenset(run.row["run_id"] for run in pair.new.runs): pair for pair in paired(base, new).pairs}
    answers: list[str | None] = []
    for cell in _of_operations_with(rule.metric, chosen):
        ids = {run.row["run_id"] for run in cell.runs}
        matching = [pair for runs, pair in pairs.items() if ids & runs]
        answers.append(
            _ratio(rule, cell, matching[0]) if matching else f"{cell.name}: the baseline has no such cell"
        )
    return answers


def _ratio(rule: Rule, cell: CellRuns, pair: Pair) -> str | None:
    old, new = pair.base.values(rule.metric), cell.values(rule.metric)
    if not new:
        return _nothing(rule, cell)
    if not old:
        return f"{cell.name}: the baseline has no good run with {rule.metric}"
    found = compare(new, old)
    if found is None:
        return f"{cell.name}: no ratio, {rule.metric} is 0 or less"
    marked = f"; not the same: {'; '.join(map(str, pair.differences))}" if pair.differences else ""
    if rule.certain and found.kind != "interval":
        few = listed(f"{len(side)} in {name}" for side, name in ((old, "the baseline"), (new, "this sweep")))
        return f"{cell.name}: an interval needs {INTERVAL_FROM} good runs on each side, there are {few}{marked}"
    values = (found.low, found.high) if rule.certain else (found.ratio,)
    if all(rule.holds(value) for value in values):
        return None
    return f"{cell.name}: {number(found.ratio, 3)} [{number(found.low, 3)}, {number(found.high, 3)}]{marked}"


def _has(cell: CellRuns, name: str) -> bool:
    return name in COLUMNS or any(name in run.known for run in cell.runs)


def _word(rule: Rule, cell: CellRuns) -> str | None:
    """Every run must have it; runs that are not good have no findings, which breaks the rule as well."""
    bad = [run for run in cell.runs if not _is(rule, run.known.get(rule.metric))]
    if not bad:
        return None
    seen = dict.fromkeys(said(run.known.get(rule.metric)) or f"none ({run.row['verdict']})" for run in bad)
    return f"{cell.name}: {listed(seen, 'or')} in {len(bad)} of {counted(len(cell.runs), 'run')}"


def _is(rule: Rule, value: Any) -> bool:
    if rule.comparison in ("=", "==", "!="):
        return same(value, said(rule.limit)) == (rule.comparison != "!=")
    return isinstance(value, int | float) and rule.holds(float(value))
