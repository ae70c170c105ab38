"""What makes two rows incomparable: where each condition is recorded and how it is said.

A condition that is the same in all rows of a table is said once, under the title; one that differs becomes a
column, and no ratio crosses it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from runner.report.figures import counted, number, plain
from runner.report.read import Run


@dataclass(frozen=True)
class Condition:
    """`of`: its value in a run, None where not recorded. `say`: how that reads; "" if it goes without saying."""

    key: str
    head: str
    of: Callable[[Run], Any]
    say: Callable[[Any], str]


def _knob(key: str) -> Callable[[Run], Any]:
    return lambda run: run.setting("operation", key)


def _recorded(key: str) -> Callable[[Run], Any]:
    return lambda run: run.condition(key)


def _flag(key: str, words: str) -> Condition:
    return Condition(key, words, lambda run: bool(run.condition(key)), lambda on: f"{words} on" if on else "")


def _body(run: Run) -> int | str:
    """Bytes of the echoed body; 0 for a quote, as in the database. A body of no bytes is something else."""
    asked = run.setting("operation", "size_bytes")
    return "empty" if asked == 0 else int(run.metrics.get("size_bytes", asked or 0))


def _say_body(found: int | str) -> str:
    if isinstance(found, str):
        return "an empty body returned"
    return f"a body of {number(found)} bytes returned" if found else "one quote per call"


def _asked(run: Run) -> int | None:
    found = run.metrics.get("asked", run.setting("operation", "asked"))
    return None if found is None else int(found)


_PLACES = {
    "split": "server and driver on different cores",
    "same": "server and driver on one core",
    "free": "not pinned to cores",
}

LABEL = Condition("label", "label", lambda run: run.label, lambda name: f"label {name}" if name else "")
PLACEMENT = Condition("placement", "placement", lambda run: run.placement, lambda at: _PLACES.get(at, at))
CONNECTIONS = Condition(
    "connections", "connections", lambda run: run.connections, lambda n: counted(n, "connection")
)
MULTIPLEX = Condition(
    "multiplex",
    "multiplexed",
    lambda run: bool(run.condition("multiplex")),
    lambda on: "calls share one connection" if on else "",
)
BODY = Condition("size_bytes", "body\nbytes", _body, _say_body)
ARRIVAL = Condition(
    "arrival", "arrival", lambda run: run.setting("load", "arrival") or "closed", lambda kind: f"{kind} loop"
)
ASKED = Condition("asked", "asked", _asked, lambda n: f"{number(n)} asked for")
SETTLE = Condition(
    "settle_s", "settle s", _knob("settle_s"), lambda s: f"watched until flat, {plain(s)} s longer at most"
)
CEILING = Condition(
    "max_rss_mb",
    "ceiling MB",
    lambda run: run.setting("limits", "max_rss_mb"),
    lambda mb: f"memory ceiling {number(mb)} MB",
)
MESSAGE = Condition("message", "message", lambda run: run.findings.get("message"), lambda _: "")
ENVIRONMENT = Condition("environment", "environment", lambda run: run.environment, lambda _: "")

PROCESS = (
    ENVIRONMENT,
    Condition("loop", "loop", _recorded("loop"), lambda loop: f"loop {loop}"),
    Condition("gc", "gc", _recorded("gc"), lambda gc: f"gc {gc}"),
    Condition("malloc", "malloc", _recorded("malloc"), lambda _: ""),
    _flag("python_debug", "python debug mode"),
    _flag("asyncio_debug", "asyncio debug mode"),
    _flag("debug_logging", "debug logging"),
)


def counted_after_warmup(noun: str) -> tuple[Condition, Condition]:
    """How many `noun` were measured, and how many before that were dropped."""
    return (
        Condition("count", noun, _knob("count"), lambda n: f"{number(n)} {noun}"),
        Condition("warmup", "warm-up", _knob("warmup"), lambda n: f"{number(n)} warm-up {noun} dropped"),
    )
