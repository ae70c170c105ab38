"""The rules of conf/choosing.yaml applied to what was measured. Nothing here knows a protocol by name.

Candidates of a rule are the cells that match it and share every condition; the floor, and what else the file leaves
out, is never among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from runner.report.compare import named
from runner.report.context import OPERATIONS, Context
from runner.report.figures import listed
from runner.report.needs import Need, Rule
from runner.report.ranking import UNMEASURED, Answer, answer
from runner.report.read import ReportError
from runner.report.rows import Row, Rows
from runner.report.standing import Candidate, beside

ADVICE = "advice"


@dataclass(frozen=True)
class Choice:
    """One answer. `picks`: names, none where nothing can be claimed; `pick`: how that reads.

    `published`: the published pick, with "agrees" or "differs" where there is one of ours to compare.
    `support`: how many of how many runs bear it out, or "advice".
    """

    need: str
    pick: str
    picks: Sequence[str]
    because: str
    cost: str
    published: str
    support: str


def choose(context: Context) -> list[Choice]:
    """An answer to every need; several where a sweep measured under several conditions. Raises ReportError."""
    return [choice for need in context.choosing.needs for choice in _choices(context, need)]


def _choices(context: Context, need: Need) -> Iterator[Choice]:
    if need.rule.qualitative:
        yield Choice(
            need.need,
            need.pick,
            (need.pick,),
            need.because,
            need.cost or context.choosing.costs.get(need.pick, ""),
            _published(context, need, ()),
            ADVICE,
        )
        return
    groups = list(_groups(context, need))
    if not groups:
        yield Choice(need.need, "-", (), UNMEASURED, "", _published(context, need, ()), "")
    among = need.rule.among
    for where, measured in groups:
        candidates = [candidate for candidate in measured if not among or candidate.subject in among]
        rest = [candidate for candidate in measured if candidate not in candidates]
        found = answer(need.rule, candidates, rest) if candidates else Answer((), UNMEASURED)
        subjects = list(dict.fromkeys(pick.subject for pick in found.picks))
        names = list(dict.fromkeys(pick.name for pick in found.picks))
        pick = listed(names, "or") or "-"
        yield Choice(
            f"{need.need} ({where})" if where else need.need,
            f"no clear difference: {pick}" if found.tie else pick,
            names,
            "; ".join(filter(None, [found.because, _beside(context, need, subjects)])),
            need.cost or _cost(context, subjects),
            _published(context, need, subjects),
            found.support,
        )


def _beside(context: Context, need: Need, subjects: Sequence[str]) -> str:
    """What the rule asks to be said of the pick besides, where it can be: one pick, measured under one set of
    conditions.
    """
    if need.rule.beside is None or len(subjects) != 1:
        return ""
    other = Need(need.need, msgspec.structs.replace(need.rule, operation=need.rule.beside.operation))
    groups = list(_groups(context, other))
    return beside(need.rule, subjects[0], groups[0][1]) if len(groups) == 1 else ""


def _cost(context: Context, subjects: Sequence[str]) -> str:
    costs = [
        (subject, context.choosing.costs[subject]) for subject in subjects if subject in context.choosing.costs
    ]
    return "; ".join(f"{subject}: {cost}" if len(costs) > 1 else cost for subject, cost in costs)


def _published(context: Context, need: Need, subjects: Sequence[str]) -> str:
    said = need.published
    if said is None or said.source not in [source.name for source in context.published]:
        return ""
    if not subjects:
        return said.pick
    if (said.means or said.pick) not in subjects:
        return f"{said.pick}: differs"
    return f"{said.pick}: agrees" if len(subjects) == 1 else f"{said.pick}: one of ours"


def _groups(context: Context, need: Need) -> Iterator[tuple[str, list[Candidate]]]:
    """(the conditions, where they vary; the candidates) for each set of rows that share every condition."""
    rule = need.rule
    if rule.operation not in OPERATIONS:
        raise ReportError(
            f"conf/choosing.yaml: need '{need.need}': there is no operation {rule.operation}; "
            f"known are {', '.join(OPERATIONS)}"
        )
    rows = context.rows(rule.operation)
    kept = [row for row in rows.all if _matches(row, need) and not _is_reference(context, row, rule)]
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in kept:
        groups.setdefault(tuple(map(str, row.under.values())), []).append(row)
    for group in groups.values():
        if any(row.verdict != "unsupported" for row in group):
            yield (_differing(rows, kept, group[0]) if len(groups) > 1 else ""), _candidates(group, rule)


def _differing(rows: Rows, kept: Sequence[Row], row: Row) -> str:
    """The conditions of `row` that vary among the rows that match."""
    return Rows(kept, rows.known, rows.floor, rows.roles).differing(row)


def _is_reference(context: Context, row: Row, rule: Rule) -> bool:
    return rule.of != "codec" and row.first.protocol in context.choosing.left_out


def _matches(row: Row, need: Need) -> bool:
    for key, wanted in need.rule.where.items():
        options = wanted if isinstance(wanted, list) else [wanted]
        if str(_word(row, key, need)) not in [str(option) for option in options]:
            return False
    return True


def _word(row: Row, key: str, need: Need) -> object:
    if key in ("producer", "consumer"):
        return row.key[4 if key == "producer" else 5]
    if key in row.under:
        return row.under[key]
    if key in ("scenario", "protocol", "engine", "codec", "variant"):
        return getattr(row.first, key)
    raise ReportError(
        f"conf/choosing.yaml: need '{need.need}': where: {key} is not known for {need.rule.operation}; "
        f"known are {', '.join(['scenario', 'protocol', 'engine', 'codec', 'variant', *row.under])}"
    )


def _candidates(group: Sequence[Row], rule: Rule) -> list[Candidate]:
    found: dict[tuple[str, ...], Candidate] = {}
    cells = {row.key: row for row in group}
    for side in named(list(cells.values())):
        run = side.row.first
        if rule.of == "protocol":
            found[side.row.key] = Candidate(side.name, run.protocol, [], side.row.equivalent_pct)
        else:
            subject = run.codec if rule.of == "codec" else side.row.key[4]
            name = f"{subject} ({run.variant})" if run.variant else subject
            found[side.row.key] = Candidate(name, subject, [], side.row.equivalent_pct)
    for row in group:
        found[row.key].runs += row.runs
    return list(found.values())
