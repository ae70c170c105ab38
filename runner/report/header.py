"""The first and the last lines of a report: which sweep this is, and which of its rows need attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runner.report.figures import counted, number
from runner.report.read import Problem, Sweep

# Shown whatever was run; the database has the version of every library.
ENCODING = ("protobuf", "cbor2", "msgspec", "uvloop")
VERDICTS = ("ok", "void", "failed", "interrupted", "unsupported")


def header(sweep: Sweep, database: str) -> list[list[str]]:
    """Lines of parts: the sweep and the machine, then versions, loop, and what orders the runs."""
    environments = list(sweep.environments.values())
    first: Mapping[str, Any] = environments[0] if environments else {}
    top = ["bakeoff", database, f"sweep {sweep.sweep_id}", sweep.suite or sweep.command, runs_in_words(sweep)]
    second = [*_versions(sweep, first), *(f"loop {loop}" for loop in sweep.loops)]
    second += [f"order seed {sweep.seed}", f"started {sweep.started_at[:16].replace('T', ' ')} UTC"]
    lines = [[*top, *_machine(first)], second]
    if len(environments) > 1:
        lines.append(["environments: A is the above", *_others(environments)])
    return lines


def facts(sweep: Sweep, database: str) -> dict[str, object]:
    """The same for machines."""
    return {
        "database": database,
        "sweep_id": sweep.sweep_id,
        "suite": sweep.suite,
        "command": sweep.command,
        "seed": sweep.seed,
        "started_at": sweep.started_at,
        "ended_at": sweep.ended_at,
        "planned_runs": sweep.planned,
        "runs_by_verdict": dict(sweep.verdicts),
        "loops": list(sweep.loops),
        "environments": [dict(found) for found in sweep.environments.values()],
    }


def runs_in_words(sweep: Sweep) -> str:
    """63 runs (61 ok, 1 void, 1 unsupported); 41 of 63 runs where the plan was not finished."""
    total = sum(sweep.verdicts.values())
    said = (
        counted(total, "run") if total == sweep.planned else f"{number(total)} of {counted(sweep.planned, 'run')}"
    )
    if set(sweep.verdicts) == {"ok"}:
        return f"{said}, all ok" if total > 1 else f"{said}, ok"
    each = [f"{number(n)} {verdict}" for verdict in VERDICTS if (n := sweep.verdicts.get(verdict))]
    return f"{said} ({', '.join(each)})" if each else said


def attention(sweep: Sweep) -> list[str]:
    """What is not ok, one line for each row of a table, and what of the plan is missing; nothing if all is well."""
    groups: dict[tuple[str, ...], list[Problem]] = {}
    for problem in sweep.problems:
        groups.setdefault((problem.verdict, _cell(problem, sweep)), []).append(problem)
    lines = [
        f"{words} was on: its timings compare with no others"
        for key, words in (("python_debug", "python's debug mode"), ("asyncio_debug", "asyncio's debug mode"))
        if any(found.get(key) for found in sweep.environments.values())
    ]
    never = sweep.planned - sum(sweep.verdicts.values())
    unfinished = f"unfinished: {number(never)} of {counted(sweep.planned, 'run')} never started"
    last = [unfinished] if never > 0 else []
    if not groups:
        return lines + last
    ordered = sorted(groups, key=lambda name: VERDICTS.index(name[0]) if name[0] in VERDICTS else len(VERDICTS))
    noun = "row needs" if len(groups) == 1 else "rows need"
    lines.append(f"{len(groups)} {noun} attention:")
    return [*lines, *(f"  {': '.join(name)} {_why(groups[name])}" for name in ordered), *last]


def _cell(problem: Problem, sweep: Sweep) -> str:
    several = len([engine for protocol, engine in sweep.engines if protocol == problem.protocol]) > 1
    words = [problem.protocol, problem.engine if several else "", problem.operation, problem.codec, problem.variant]
    words += [f"scenario {problem.scenario}" if problem.scenario != problem.operation else ""]
    words += [f"label {problem.label}" if problem.label else ""]
    return " ".join(word for word in words if word)


def _why(problems: Sequence[Problem]) -> str:
    numbers = sorted({problem.repeat for problem in problems})
    reasons = dict.fromkeys(problem.reason or "no reason was recorded" for problem in problems)
    noun = "repeat" if len(numbers) == 1 else "repeats"
    return f"{noun} {', '.join(map(str, numbers))} ({'; '.join(reasons)})"


def _machine(found: Mapping[str, Any]) -> list[str]:
    parts = [counted(cpus, "core") if isinstance(cpus := found.get("cpus"), int) else ""]
    parts += [str(found.get("kernel") or "")]
    parts += [f"Python {found['python']}" if found.get("python") else ""]
    said = [", ".join(part for part in parts if part)]
    return [part for part in said if part]


def _versions(sweep: Sweep, found: Mapping[str, Any]) -> list[str]:
    """The codecs' and loops' libraries, and whatever the protocols that were run are made of."""
    declared = [str(facts.get("library") or "") for facts in sweep.declared.values()]
    names = dict.fromkeys(("bakeoff", *sorted(filter(None, declared)), *ENCODING))
    return [f"{name} {found[name]}" for name in names if found.get(name) is not None]


def _others(environments: Sequence[Mapping[str, Any]]) -> list[str]:
    """B and so on: only what differs from A."""
    first, *others = environments
    said = []
    for i, other in enumerate(others, 1):
        keys = [key for key in {**first, **other} if first.get(key) != other.get(key)]
        said.append(f"{chr(ord('A') + i)}: {', '.join(f'{key} {other.get(key)}' for key in keys)}")
    return said
