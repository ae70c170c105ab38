"""What one check found, and what it looks through."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from runner import host
from runner.machine import ROOT

# unfit: what is measured would be wrong. note: it may differ from another machine's, or vary more than it must.
Level = Literal["fit", "note", "unfit", "not told"]


@dataclass(frozen=True)
class Finding:
    """`found` is what is there; for note and unfit, `wanted` is what would be fit and `remedy` the way there."""

    name: str
    level: Level
    found: str
    wanted: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Sight:
    """Where facts come from; tests put their own in place of each.

    `root` holds proc and sys. `clock` in ns, `nap` in s. `cpus`, `cores`: those that we may use. `max_rss_mb`: what
    one measured process may hold. `database`: where results will be saved; None if that is no file here.
    """

    root: Path = ROOT
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    clock: Callable[[], int] = time.perf_counter_ns
    nap: Callable[[float], None] = time.sleep
    cpus: Sequence[int] = field(default_factory=host.available_cpus)
    cores: Sequence[int] = field(default_factory=host.cores)
    max_rss_mb: int = 2048
    database: Path | None = None


def fit(name: str, found: object) -> Finding:
    """Nothing to say against it."""
    return Finding(name, "fit", str(found))


def judged(name: str, found: object, passed: bool, level: Level, wanted: str, remedy: str) -> Finding:
    """Fit if `passed`, else at `level`."""
    return fit(name, found) if passed else Finding(name, level, str(found), wanted, remedy)


def not_told(name: str) -> Finding:
    """The system does not say; nothing is concluded from it."""
    return Finding(name, "not told", "")
