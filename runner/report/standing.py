"""Who is looked at when something is chosen, and how the chosen one stands to the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from runner.report.compare import spread
from runner.report.figures import counted, number, ratio
from runner.report.needs import Rule
from runner.report.read import Run
from runner.report.stats import EQUIVALENT_PCT, Comparison, compare, estimate

Values = Callable[[Run], float | None]

# metric -> (how it is called, its unit)
SAY = {
    "p50_us": ("p50", " µs"),
    "p90_us": ("p90", " µs"),
    "p99_us": ("p99", " µs"),
    "mean_us": ("mean", " µs"),
    "server_cpu_us": ("server CPU", " µs"),
    "driver_cpu_us": ("driver CPU", " µs"),
    "calls_per_s": ("", " calls/s"),
    "messages_per_s": ("", " messages/s"),
    "size_bytes": ("", " bytes"),
}


@dataclass
class Candidate:
    """One cell with all its runs. `subject`: what would be picked; `good`: the runs that count."""

    name: str
    subject: str
    runs: list[Run] = field(default_factory=list)
    equivalent_pct: float = EQUIVALENT_PCT

    @property
    def good(self) -> list[Run]:
        return [run for run in self.runs if run.verdict == "ok"]

    def count(self, verdict: str) -> int:
        return sum(run.verdict == verdict for run in self.runs)

    @property
    def blemish(self) -> str:
        """Why it comes after those without errors; "" if it does not."""
        errors = sum(run.error_count for run in self.runs)
        said = [counted(errors, "error")] if errors else []
        said += [f"{self.count('failed')} failed"] if self.count("failed") else []
        said += [f"{self.count('void')} void"] if self.count("void") > len(self.good) else []
        return ", ".join(said)

    def values(self, of: Values) -> list[float]:
        return [value for run in self.good if (value := of(run)) is not None]

    def against(self, other: Candidate, of: Values) -> Comparison | None:
        """This one as a multiple of `other`."""
        return compare(self.values(of), other.values(of), self.equivalent_pct)

    def share(self, holds: Callable[[Run], bool]) -> str:
        """k/n runs: those that are good and for which it holds, of all that were tried."""
        tried = [run for run in self.runs if run.verdict != "unsupported"]
        return f"{sum(run.verdict == 'ok' and holds(run) for run in tried)}/{counted(len(tried), 'run')}"


def against_the_rest(rule: Rule, pick: Candidate, others: Sequence[Candidate]) -> str:
    """How the pick stands to the best of those that the need rules out."""
    metric = rule.lowest or rule.highest
    of = _metric(metric)
    say, unit = SAY.get(metric, (metric, ""))
    clean = [other for other in others if other.good and not other.blemish]
    medians = [(found.median, other) for other in clean if (found := estimate(other.values(of)))]
    if not medians:
        return ""
    middle, best = (max if rule.highest else min)(medians, key=lambda each: each[0])
    stands = _ratio(pick, best, of)
    if not stands:
        return f"; n=1, no ratio is claimed to the best of the rest, {best.name} with {number(middle)}{unit}"
    return f"; {stands} the {say or 'rate'} of the best of the rest, {best.name} with {number(middle)}{unit}"


def beside(rule: Rule, picked: str, candidates: Sequence[Candidate]) -> str:
    """What rule.beside measures of the candidates whose subject is `picked`, against each of the others."""
    assert rule.beside is not None
    of = _metric(rule.beside.metric)
    say, unit = SAY.get(rule.beside.metric, (rule.beside.metric, ""))
    known = [(c, found.median) for c in candidates if not c.blemish and (found := estimate(c.values(of)))]
    mine = [(c, middle) for c, middle in known if c.subject == picked]
    if not mine:
        return ""
    best, middle = max(mine, key=lambda each: each[1])
    parts = [
        f"{number(theirs)} ({other.name}{f', {stands}' if (stands := _ratio(best, other, of)) else '; n=1'})"
        for other, theirs in known
        if other.subject != picked
    ]
    against = f" against {', '.join(parts)}" if parts else ""
    return f"{say} {number(middle)}{unit}".strip() + against


def _metric(name: str) -> Values:
    return lambda run: run.metric(name)


def _ratio(one: Candidate, other: Candidate, of: Values) -> str:
    """1.75x [1.70, 1.80], and whether that is a difference; "" where nothing can be claimed."""
    found = one.against(other, of)
    if found is None or found.claimed is None:
        return ""
    stands = spread(found) if found.low < found.high else ratio(found.ratio)
    return stands if found.claimed else f"{stands}, no clear difference"
