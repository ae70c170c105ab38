"""What is not the same about two sets of runs: settings, conditions, the machine.

What says how the machine felt at that moment (load, clock speed) is no difference: it is never the same twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from runner.report.stored import TOLD_BY_COLUMNS, Stored, flatten, said

# Facts of a moment and what is drawn for each run, wherever they are recorded.
_MOMENTARY = re.compile(
    r"load_?average|loadavg|steal|mhz|uptime|available|free_|temperature|(server|driver)_cpus|peers_seen|seed"
)


@dataclass(frozen=True)
class Change:
    """`key` was `before` and is `after`: every value that occurred, joined."""

    key: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.key} {self.before or '(none)'} -> {self.after or '(none)'}"


def settings(run: Stored) -> Mapping[str, str]:
    """What was asked for."""
    return run.settings


def conditions(run: Stored) -> dict[str, str]:
    """What was found beside what was asked for, placement included."""
    flat: dict[str, Any] = {"placement": run.row["placement"]}
    flatten("", run.row["conditions"], flat)
    return {key: said(value) for key, value in flat.items() if not _momentary(key) and key not in TOLD_BY_COLUMNS}


def machine(run: Stored) -> dict[str, str]:
    """The machine and the versions."""
    return {key: said(value) for key, value in run.row["machine"].items() if not _momentary(key)}


@cache
def _momentary(key: str) -> bool:
    return _MOMENTARY.search(key) is not None


def changes(before: Iterable[Mapping[str, str]], after: Iterable[Mapping[str, str]]) -> list[Change]:
    """The keys whose values differ. A key that one side did not record at all is no change: another version of this
    program, or a run that did not come that far, records less.
    """
    olds, news = _values(before), _values(after)
    return [
        Change(key, " or ".join(sorted(olds[key])), " or ".join(sorted(news[key])))
        for key in olds
        if key in news and olds[key] != news[key]
    ]


def _values(runs: Iterable[Mapping[str, str]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for run in runs:
        for key, value in run.items():
            found.setdefault(key, set()).add(value)
    return found
