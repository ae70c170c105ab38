"""One rule, one group of candidates, one answer.

Errors decide before speed: a candidate with errors, failed runs, or more void runs than good ones is looked at only
if no other is left. A pick by speed is a claim, so it needs two good runs and a difference that can be claimed;
otherwise the answer is "no clear difference", or none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runner.report.compare import spread
from runner.report.figures import counted, digits_for, listed, number, plain
from runner.report.needs import Rule
from runner.report.read import Run, made_once_flat
from runner.report.standing import SAY, Candidate, Values, against_the_rest
from runner.report.stats import estimate

UNMEASURED = "not measured here"


@dataclass(frozen=True)
class Answer:
    """What a rule says of one group of candidates."""

    picks: Sequence[Candidate]
    because: str
    support: str = ""
    tie: bool = False


def answer(rule: Rule, candidates: Sequence[Candidate], others: Sequence[Candidate] = ()) -> Answer:
    """What the rule picks of `candidates`, and why. `others`: those that the need rules out, however good they are;
    what that costs is said.
    """
    good = [candidate for candidate in candidates if candidate.good]
    clean = [candidate for candidate in good if not candidate.blemish]
    out = ", ".join(f"{c.name} ({', '.join(_lost(c))})" for c in candidates if not c.good)
    behind = ", ".join(f"{c.name} ({c.blemish})" for c in good if c.blemish) if clean else ""
    left = clean or good
    if not left:
        return Answer((), f"no good run: {out}")
    aside = f"; behind for errors: {behind}" if behind else ""
    aside += f"; no good run: {out}" if out else ""
    found = _bounded(rule, left) if rule.bounded_by else _ranked(rule, left)
    beaten = against_the_rest(rule, found.picks[0], others) if found.picks and others else ""
    return Answer(found.picks, found.because + beaten + aside, found.support, found.tie)


def _lost(candidate: Candidate) -> list[str]:
    seen = [(verdict, candidate.count(verdict)) for verdict in ("void", "failed", "interrupted", "unsupported")]
    return [f"{n} {verdict}" for verdict, n in seen if n]


def _bounded(rule: Rule, candidates: Sequence[Candidate]) -> Answer:
    """Only those that were bounded so in every good run; the ranking, if there is one, decides among them."""
    word = rule.bounded_by

    def holds(run: Run) -> bool:
        return run.findings.get("bounded_by") == word

    kept = [candidate for candidate in candidates if all(map(holds, candidate.good))]
    if not kept:
        seen = ", ".join(f"{c.name} by {_bounds(c)}" for c in candidates)
        said = f"none was bounded by {word}: {seen}"
        if not rule.fewest_produced:
            return Answer((), said)
        ranked = _ranked(rule, candidates)
        return Answer(ranked.picks, f"{said}; {ranked.because}", ranked.support, ranked.tie)
    support = ", ".join(dict.fromkeys(candidate.share(holds) for candidate in kept))
    if len(kept) > 1 and rule.fewest_produced:
        ranked = _ranked(rule, kept)
        return Answer(ranked.picks, ranked.because, support, ranked.tie)
    exact = all(_exact(run) for candidate in kept for run in candidate.good)
    run = kept[0].good[0]
    said = f"bounded by {word}"
    if exact and word == "demand":
        said = f"made exactly the {number(run.metrics.get('asked', 0))} asked for, at every quiet period"
    others = [f"{c.name}{':' if c.name.endswith(')') else ''} {_made(c)}" for c in candidates if c not in kept]
    return Answer(kept, said + (f"; made by the others: {'; '.join(others)}" if others else ""), support)


def _exact(run: Run) -> bool:
    return bool(run.quiet) and set(run.quiet.values()) == {run.metrics.get("asked")}


def _bounds(candidate: Candidate) -> str:
    return listed(sorted({run.findings.get("bounded_by", "?") for run in candidate.good}))


def _made(candidate: Candidate) -> str:
    """The count once it stood still, else the last one that was reached, as medians over runs."""
    ends = [made for run in candidate.good if (made := made_once_flat(run)) is not None]
    flat = estimate(ends)
    if flat and len(ends) == len(candidate.good):
        return f"{number(flat.median)} once flat"
    last = [max((q for q, made in run.quiet.items() if made is not None), default=None) for run in candidate.good]
    found = estimate([run.quiet[q] or 0 for run, q in zip(candidate.good, last, strict=True) if q is not None])
    if not found:
        return "-"
    periods = sorted({q for q in last if q is not None})
    some = f", flat in {counted(len(ends), 'run')}" if ends else ""
    return f"{number(found.median)} at {' / '.join(map(plain, periods))} s, still rising{some}"


def _ranked(rule: Rule, candidates: Sequence[Candidate]) -> Answer:
    metric = rule.lowest or rule.highest or rule.smallest
    last = None if metric else _last_common(candidates)
    of: Values = (lambda run: run.metric(metric)) if metric else _produced(last)
    say, unit = SAY.get(metric, (metric, "")) if metric else ("made", f" at {plain(last or 0)} s")
    medians = {id(c): found.median for c in candidates if (found := estimate(c.values(of)))}
    known = [candidate for candidate in candidates if id(candidate) in medians]
    if not known:
        return Answer((), UNMEASURED)
    sign = -1 if rule.highest else 1
    known.sort(key=lambda candidate: (sign * medians[id(candidate)], candidate.name))
    best, others = known[0], known[1:]
    digits = digits_for(medians.values()) if not rule.smallest and metric else 0
    text = {id(c): _valued(c, of, digits) for c in known}
    first = f"{say} {text[id(best)]}{unit}".strip()
    if not others and len(rule.among) == 1:
        return Answer([best], first, best.share(lambda run: of(run) is not None))
    if not others:
        return Answer((), f"only {best.name} was measured: {first}")
    against = ", ".join(f"{number(medians[id(c)], digits)} ({c.name})" for c in others)
    level = [c for c in others if medians[id(c)] == medians[id(best)]]
    exact = bool(rule.smallest)
    if not exact:
        level += [c for c in others if c not in level and _unclear(best, c, of) == "unclear"]
        unsure = [c for c in others if c not in level and _unclear(best, c, of) == "unknown"]
        if unsure:
            return Answer((), f"n=1, nothing is claimed; seen: {first} ({best.name}), {against}")
    if level:
        tied = [best, *level]
        return Answer(tied, _tied(known, level, first, of, text), tie=True)
    support = best.share(lambda run: exact or _leads(run, others, of, sign))
    return Answer([best], f"{first} against {against}", support)


def _valued(candidate: Candidate, of: Values, digits: int) -> str:
    found = estimate(candidate.values(of))
    assert found is not None
    bracket = f" [{number(found.low, digits)}, {number(found.high, digits)}]" if found.low < found.high else ""
    return number(found.median, digits) + bracket


def _unclear(best: Candidate, other: Candidate, of: Values) -> str:
    found = best.against(other, of)
    return "unknown" if found is None or found.claimed is None else "clear" if found.claimed else "unclear"


def _tied(
    known: Sequence[Candidate], level: Sequence[Candidate], first: str, of: Values, text: Mapping[int, str]
) -> str:
    """Every candidate with its bracket, and for those that are `level` with the best their ratio to it."""
    best, *others = known
    parts = []
    for other in sorted(others, key=lambda candidate: candidate not in level):
        found = best.against(other, of) if other in level else None
        between = f", {spread(found)}" if found and found.claimed is not None and found.low < found.high else ""
        parts.append(f"{text[id(other)]} ({other.name}{between})")
    return f"{first} ({best.name}) against {', '.join(parts)}"


def _leads(run: Run, others: Sequence[Candidate], of: Values, sign: int) -> bool:
    """Whether the run is ahead of every good run of the others with the same repeat number."""
    mine = of(run)
    theirs = [
        value
        for other in others
        for rival in other.good
        if rival.repeat == run.repeat and (value := of(rival)) is not None
    ]
    return mine is not None and bool(theirs) and all(sign * mine < sign * value for value in theirs)


def _last_common(candidates: Sequence[Candidate]) -> float | None:
    """The last quiet period that every good run reached."""
    reached = [
        {quiet for quiet, made in run.quiet.items() if made is not None}
        for candidate in candidates
        for run in candidate.good
    ]
    return max(set.intersection(*reached), default=None) if reached else None


def _produced(last: float | None) -> Values:
    """Messages made by then."""
    return lambda run: None if last is None else run.quiet.get(last)
