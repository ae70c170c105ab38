"""What makes two rows incomparable: where each condition is recorded and how it is said.

A condition that is the same in all rows of a table is said once, under the title; one that differs becomes a
column, and no ratio crosses it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from runner.report.figures import counted, number, plain
from runner.report.read import Run


@dataclass(frozen=True)
class Condition:
    """`of`: its value in a run, None where not recorded. `say`: how that reads; "" if it goes without saying.

    `covers`: the keys of the configuration that it stands for, dotted.
    """

    key: str
    head: str
    of: Callable[[Run], Any]
    say: Callable[[Any], str]
    covers: tuple[str, ...] = ()

    def words(self, under: Mapping[str, Any]) -> str:
        """How its value among those of the conditions `under` reads."""
        if self in (CONNECTIONS, STREAMS) and under.get(MULTIPLEX.key):
            what = "stream" if self is STREAMS else "call"
            return f"{counted(under[self.key], what)} at a time on 1 connection"
        return self.say(under[self.key])


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


def _lasts(run: Run) -> str | None:
    """How much an open loop was asked for: a time, else a number of calls."""
    duration_s, count = run.setting("load", "duration_s"), run.setting("operation", "count")
    if duration_s is not None:
        return f"{plain(duration_s)} s"
    return None if count is None else counted(count, "call")


_PLACES = {
    "split": "server and driver on different cores",
    "same": "server and driver on one core",
    "free": "not pinned to cores",
}

LABEL = Condition("label", "label", lambda run: run.label, lambda name: f"label {name}" if name else "")
PLACEMENT = Condition(
    "placement", "placement", lambda run: run.placement, lambda at: _PLACES.get(at, at), ("load.placement",)
)
CONNECTIONS = Condition(
    "connections",
    "connections",
    lambda run: run.connections,
    lambda n: counted(n, "connection"),
    ("load.connections",),
)
STREAMS = replace(
    CONNECTIONS,
    head="streams",
    say=lambda n: f"{counted(n, 'stream')} at a time, a connection each" if n > 1 else counted(n, "connection"),
    covers=("operation.streams", *CONNECTIONS.covers),
)
MULTIPLEX = Condition(
    "multiplex",
    "multiplexed",
    lambda run: bool(run.condition("multiplex")),
    lambda _: "",  # said with the connections
    ("load.multiplex",),
)
BODY = Condition("size_bytes", "body\nbytes", _body, _say_body, ("operation.size_bytes",))
ARRIVAL = Condition(
    "arrival",
    "arrival",
    lambda run: run.setting("load", "arrival") or "closed",
    lambda kind: f"{kind} loop",
    ("load.arrival", "load.name"),
)
OPEN_ARRIVAL = Condition(
    "arrival",
    "arrival",
    ARRIVAL.of,
    lambda kind: f"open loop, {kind} arrivals",
    (*ARRIVAL.covers, "load.seed"),  # runs that differ in the seed alone are repeats
)
RATE = Condition(
    "rate_per_s",
    "rate\nasked\n/s",
    lambda run: run.setting("load", "rate"),
    lambda rate: f"{number(rate) if float(rate).is_integer() else plain(rate)} calls/s asked for",
    ("load.rate",),
)
SEARCHED_ARRIVAL = replace(OPEN_ARRIVAL, covers=(*OPEN_ARRIVAL.covers, "load.rate"))  # the search has the rates
OBJECTIVE = Condition(
    "slo_p99_ms",
    "p99 kept\nbelow ms",
    _knob("slo_p99_ms"),
    lambda ms: f"objective: response p99 of {plain(ms)} ms",
    ("operation.slo_p99_ms",),
)
STEP = Condition(
    "step_s", "step s", _knob("step_s"), lambda s: f"each rate for {plain(s)} s", ("operation.step_s",)
)
LASTS = Condition("lasts", "lasts", _lasts, lambda said: said, ("load.duration_s", "operation.count"))
ASKED = Condition("asked", "asked", _asked, lambda n: f"{number(n)} asked for", ("operation.asked",))
SETTLE = Condition(
    "settle_s",
    "settle s",
    _knob("settle_s"),
    lambda s: f"watched until flat, {plain(s)} s longer at most",
    ("operation.settle_s",),
)
CEILING = Condition(
    "max_rss_mb",
    "ceiling MB",
    lambda run: run.setting("limits", "max_rss_mb"),
    lambda mb: f"memory ceiling {number(mb)} MB",
    ("limits.max_rss_mb",),
)
MESSAGE = Condition(
    "message",
    "message",
    lambda run: run.findings.get("message") or run.setting("operation", "message"),
    lambda _: "",
    ("operation.message",),
)
ENVIRONMENT = Condition("environment", "environment", lambda run: run.environment, lambda _: "")

SERVICE_TIME = Condition(
    "service_time_ms",
    "service\ntime ms",
    lambda run: run.setting("operation", "service_time_ms") or 0,
    lambda ms: f"service time {plain(ms)} ms" if ms else "no service time",
    ("operation.service_time_ms",),
)
SERVICE_WORK = Condition(
    "service_work",
    "service\nwork",
    lambda run: (_knob("service_work")(run) or "wait") if run.setting("operation", "service_time_ms") else None,
    lambda work: f"the server's service time is {'a wait' if work == 'wait' else 'busy'}" if work else "",
    ("operation.service_work",),
)
SERVICE_TIME_EACH = replace(
    SERVICE_TIME, say=lambda ms: f"the server takes {plain(ms)} ms for each message" if ms else ""
)
RECORDS = Condition(
    "records",
    "records",
    lambda run: _knob("records")(run) or run.metric("records"),
    lambda n: counted(n, "record"),
    ("operation.records",),
)
BATCH = Condition(
    "batch",
    "records a\nmessage",
    lambda run: _knob("batch")(run) if run.findings.get("shape", _knob("shape")(run)) == "batched" else None,
    lambda n: f"batched: {counted(n, 'record')} a message",
    ("operation.batch",),
)
PROCESS = (
    ENVIRONMENT,
    Condition("loop", "loop", _recorded("loop"), lambda loop: f"loop {loop}"),
    Condition("gc", "gc", _recorded("gc"), lambda gc: f"gc {gc}"),
    Condition("malloc", "malloc", _recorded("malloc"), lambda _: ""),
    _flag("python_debug", "python debug mode"),
    _flag("asyncio_debug", "asyncio debug mode"),
    _flag("debug_logging", "debug logging"),
)


def counted_after_warmup(noun: str, key: str = "count") -> tuple[Condition, Condition]:
    """How many `noun` were measured (`key` of the operation), and how many before that were dropped."""
    return (Condition(key, noun, _knob(key), lambda n: f"{number(n)} {noun}", (f"operation.{key}",)), warmup(noun))


def warmup(noun: str) -> Condition:
    """How many `noun` were dropped before anything was measured."""
    return Condition(
        "warmup",
        "warm-up",
        _knob("warmup"),
        lambda n: f"{number(n)} warm-up {noun} dropped",
        ("operation.warmup",),
    )


def other_settings(runs: Sequence[Run], known: Sequence[Condition], named: Sequence[str]) -> Condition:
    """The keys of the configuration that differ among `runs` and that nothing else tells apart: neither one of the
    conditions `known` nor, for the keys of the operation that are `named`, the name of a row.
    """
    covered = {key for condition in known for key in condition.covers}
    covered |= {f"operation.{name}" for name in named}
    settings = [_settings(run) for run in runs if run.config]
    values: dict[str, set[str]] = {}
    for key in dict.fromkeys(key for found in settings for key in found):
        values[key] = {found[key] for found in settings if key in found}
    differing = [key for key in values if key not in covered and len(values[key]) > 1]

    def of(run: Run) -> str | None:
        found = _settings(run)
        if not found:
            return None
        return " ".join(f"{key.removeprefix('operation.')}={found[key]}" for key in differing if key in found)

    return Condition("settings", "settings", of, lambda said: said)


def _settings(run: Run) -> dict[str, str]:
    """Dotted key -> value, of all that may change what is measured; protocol and codec are in a row's name."""
    found: dict[str, str] = {}
    for section in ("operation", "load", "limits", "record", "host", "port", "tls"):
        _flatten(section, run.config.get(section), found)
    return found


def _flatten(key: str, value: Any, found: dict[str, str]) -> None:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name != "_target_":
                _flatten(f"{key}.{name}", inner, found)
    elif isinstance(value, list | tuple):
        found[key] = f"[{','.join(map(str, value))}]"
    else:
        found[key] = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
