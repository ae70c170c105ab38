"""`bakeoff doctor`: every check, what it found, and what to change."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from runner.command_line import Parser, answer, write
from runner.doctor import clock, interpreter, load, network, processor, room
from runner.doctor.finding import Finding, Sight
from runner.options import CONF
from runner.report.figures import counted, listed
from runner.report.layout import width_of

EXAMPLES = """\
  bakeoff doctor                         each check with its value; exit code 1 if what is measured would be wrong
  bakeoff doctor --format json           the same for machines"""
GROUPS: dict[str, Callable[[Sight], list[Finding]]] = {
    "processor": processor.findings,
    "load": load.findings,
    "clock": clock.findings,
    "network": network.findings,
    "room": room.findings,
    "Python": interpreter.findings,
}


def main(argv: Sequence[str]) -> int:
    """The words after `bakeoff doctor`. Returns the exit code: 0 fit to measure, 1 not, 2 for a mistake."""
    return answer(_parser(), argv, _answer)


def _parser() -> Parser:
    parser = Parser("doctor", "Is this machine fit to measure, and what should be changed?", EXAMPLES)
    parser.add_argument("--format", choices=("text", "json"), default="text")
    return parser


def _answer(asked: argparse.Namespace) -> int:
    database = None if "://" in asked.db else Path(asked.db)
    found = look(Sight(max_rss_mb=_max_rss_mb(), database=database))
    write(as_json(found) if asked.format == "json" else as_text(found))
    return 0 if fit(found) else 1


def _max_rss_mb() -> int:
    import yaml

    return int(yaml.safe_load((CONF / "config.yaml").read_text(encoding="utf-8"))["limits"]["max_rss_mb"])


def look(sight: Sight) -> dict[str, list[Finding]]:
    """Every check, by its group."""
    return {group: check(sight) for group, check in GROUPS.items()}


def fit(found: dict[str, list[Finding]]) -> bool:
    """Whether nothing that was found makes measurements wrong."""
    return not any(finding.level == "unfit" for findings in found.values() for finding in findings)


def as_text(found: dict[str, list[Finding]]) -> str:
    """One line for each check; under what is not fit, what is wanted and the way there; the verdict last."""
    every = [finding for findings in found.values() for finding in findings]
    place = max(width_of(finding.name) for finding in every)
    lines = []
    for finding in every:
        name = finding.name + " " * (place - width_of(finding.name))
        lines.append(f"{finding.level:8}  {name}  {finding.found}".rstrip())
        if finding.wanted:
            lines.append(f"{' ' * 10}{' ' * place}  wanted: {finding.wanted}")
            lines.append(f"{' ' * 10}{' ' * place}  remedy: {finding.remedy}")
    unfit = [finding.name for finding in every if finding.level == "unfit"]
    rest = [
        counted(sum(finding.level == "note" for finding in every), "note"),
        f"{sum(finding.level == 'not told' for finding in every)} not told",
    ]
    verdict = f"not fit to measure: {listed(unfit)}" if unfit else "fit to measure"
    return "\n".join([*lines, "", f"{verdict} ({', '.join(rest)})", ""])


def as_json(found: dict[str, list[Finding]]) -> str:
    """{"fit": ..., "checks": [{"group", "name", "level", "found", "wanted", "remedy"}]}."""
    checks = [{"group": group, **asdict(finding)} for group, findings in found.items() for finding in findings]
    return json.dumps({"fit": fit(found), "checks": checks}, ensure_ascii=False, indent=2) + "\n"
