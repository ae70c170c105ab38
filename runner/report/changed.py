"""What is not the same about two sets of runs: settings, conditions, the machine.

What says how the machine felt at that moment (load, clock speed) is no difference: it is never the same twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from runner.report.stored import Stored, flatten, said

# Facts of a moment, wherever they are recorded.
_MOMENTARY = re.compile(
    r"load_?average|loadavg|mhz|uptime|available|free_|temperature|(server|driver)_cpus|peers_seen"
)
# Keys of the configuration that do not change what one run measures. Protocol and codec are told by their columns,
# their knobs and the variant; a drawn seed is a new one each time.
_NOT_A_SETTING = re.compile(
    r"plan\..*|.*\b_target_|.*\bseed|(storage|record|report|repeats|fail_fast|suite|label|port)\b.*"
)
_TOLD_BY_COLUMNS = ("scenario", "label", "operation", "protocol", "engine", "codec", "variant", "connections")


@dataclass(frozen=True)
class Change:
    """`key` was `before` and is `after`: every value that occurred, joined."""

    key: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.key} {self.before or '(none)'} -> {self.after or '(none)'}"


def settings(run: Stored) -> dict[str, str]:
    """What was asked for: columns that name the cell, and every dotted key of its configuration that may matter."""
    flat: dict[str, Any] = {}
    flatten("", run.row["config"], flat)
    found = {key: said(value) for key, value in flat.items() if not _NOT_A_SETTING.fullmatch(key)}
    return {name: said(run.row[name]) for name in _TOLD_BY_COLUMNS} | {
        key: value
        for key, value in found.items()
        if key not in ("scenario", "protocol.name", "codec.name", "load.connections")
    }


def conditions(run: Stored) -> dict[str, str]:
    """What was found beside what was asked for, placement included."""
    flat: dict[str, Any] = {"placement": run.row["placement"]}
    flatten("", run.row["conditions"], flat)
    return {
        key: said(value)
        for key, value in flat.items()
        if not _MOMENTARY.search(key) and key not in _TOLD_BY_COLUMNS
    }


def machine(run: Stored) -> dict[str, str]:
    """The machine and the versions."""
    return {key: said(value) for key, value in run.row["machine"].items() if not _MOMENTARY.search(key)}


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
