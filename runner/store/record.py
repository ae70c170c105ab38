"""What the engine hands to the store: one finished run, and the sweep it belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from runner.checks import Check
from runner.samples import Folded

Verdict = Literal["ok", "void", "unsupported", "failed", "interrupted"]
VERDICTS: tuple[Verdict, ...] = ("ok", "void", "unsupported", "failed", "interrupted")


@dataclass
class SweepRecord:
    """All the runs started by one command. Times are UTC."""

    sweep_id: str
    suite: str | None
    command: str
    seed: int
    planned: int  # how many runs the plan has
    started_at: datetime
    ended_at: datetime | None = None


@dataclass
class RunRecord:
    """One execution of a cell in its own processes. Times are UTC; `duration_s` spans launch to stop.

    `measurements`: metric -> (value, unit), named as the columns of the views. `findings`: words, likewise.
    `samples`: name -> nanoseconds in order; `folded`: where there are very many. `series`: name -> [(t_ns, value or
    None)].
    `conditions`: what may make two runs incomparable, besides `environment` (facts of the machine and versions).
    `facts`: the protocol's declared facts (adapters.api.Facts as a dict, and its default codec). `checks`: what the
    verdict rests on.
    """

    run_id: str
    sweep_id: str
    scenario: str
    label: str
    operation: str
    protocol: str
    engine: str
    codec: str
    variant: str
    placement: str
    connections: int
    repeat: int
    position: int
    verdict: Verdict
    reason: str
    started_at: datetime
    duration_s: float
    overrides: Sequence[str] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    conditions: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    measurements: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    findings: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, int] = field(default_factory=dict)
    samples: Mapping[str, Sequence[int]] = field(default_factory=dict)
    series: Mapping[str, Sequence[tuple[int, float | None]]] = field(default_factory=dict)
    folded: Mapping[str, Folded] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
