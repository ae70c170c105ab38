"""One run, from a checked cell to a record. It never names a protocol and never raises for a run that went wrong.

    supervisor                 server process              driver process
    ----------                 --------------              --------------
    launch both ------------>  imports, binds              imports
            <-- ready ------   (host, port, nonce)
    connect --------------------------------------------->  connects, verifies, warms up
            <----------------------------------- ready ---
    settle  -------------->    collects, CPU so far
    go      --------------------------------------------->  THE MEASURED WINDOW
            <----------------------------------- quiet ---  (watched operations: both are asked for counters
    finish  --------------------------------------------->   until enough was seen)
            <---------------------------------- closed ---
    usage   -------------->    CPU so far
            <---------------------------------- result ---  everything that was found
    close both                 gone                        gone

Every arrow has a deadline; a process that ends early is noticed at once. The supervisor holds Hydra's and
SQLAlchemy's heaps and does nothing inside the window but wait (or, for a watched operation, ask).
"""

from __future__ import annotations

import dataclasses
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from adapters.api import CodecError
from runner.arrivals import seed_of, seeded
from runner.ceiling import Ceiling
from runner.checks import machine_checks
from runner.connecting import connecting_measurements
from runner.driver import unpack
from runner.fields import OpenLoad
from runner.host import MALLOC, cores, environment, load_average
from runner.operations.ahead import stamped
from runner.operations.api import Raw, count_check
from runner.placement import Placement, place
from runner.process import Child, ChildFailed, Process, Silent
from runner.quotes import quote
from runner.samples import NS_PER_S
from runner.store.ids import new_id
from runner.store.record import RunRecord, Verdict

if TYPE_CHECKING:
    from runner.config import Cell

ASK_S = 5.0  # a control thread answers in microseconds; this much later something is wrong
LOOK_S = 1.0
SLICE_S = 0.1  # how often a silent driver makes us look whether the server still lives

# What each event of a child means, for who waited for it in vain.
REACHED = {"ready": "ready", "quiet": "quiet", "closed": "done measuring", "result": "done reporting"}

Launch = Callable[[str, str, dict[str, Any]], Child]


class RunEnded(Exception):
    """The run is over before its time, with this verdict and reason."""

    def __init__(self, verdict: Verdict, reason: str) -> None:
        super().__init__(reason)
        self.verdict = verdict
        self.reason = reason


def run(
    cell: Cell,
    *,
    sweep_id: str,
    repeat: int,
    position: int,
    overrides: list[str],
    launch: Launch = Process,
) -> RunRecord:
    """Execute `cell` once. The record's verdict says how it ended; Ctrl-C gives `interrupted`."""
    cell = _seeded(cell)
    operation = cell.operation
    # In an open loop the driver must be free to send while the server works.
    alternate = operation.prefers_one_core and cell.load.arrival == "closed"
    spot = place(cell.load.placement, alternate, cores())
    if _alone(cell):
        spot = Placement("same" if spot.driver_cpus else spot.name, spot.driver_cpus, spot.driver_cpus)
    started, begun = datetime.now(UTC), time.monotonic()
    raw, conditions = Raw(), _conditions(cell, spot)
    verdict: Verdict = "ok"
    reason = ""
    summary = operation.known()
    try:
        _refuse_unsupported(cell)
        raw = _execute(cell, spot, conditions, launch)
        summary = operation.summarize(raw, cell.adapter.codec, conditions)
        # What a run costs beside its warm-up and its window: starting, connecting, verifying, stopping.
        fixed_s = time.monotonic() - begun - raw.counts["busy_ns"] / NS_PER_S
        summary.measurements |= {"fixed_s": (fixed_s, "s"), **connecting_measurements(raw)}
        pct = [summary.measurements.get(f"{side}_cpu_pct", (None, ""))[0] for side in ("server", "driver")]
        if spot.name == "same" and pct[0] is not None and pct[1] is not None:
            summary.measurements["busy_pct"] = (pct[0] + pct[1], "%")  # of the one core that both share
        seen, wanted = conditions.get("peers_seen"), conditions["connections_opened"]
        if seen is not None:
            said = f"the server saw {seen} connections, {wanted} were to be open"
            summary.checks.append(count_check("peers_seen", seen, wanted, said))
        if (steal := raw.usage.get("driver", {}).get("steal_ppm")) is not None:
            conditions["steal_pct"] = steal / 1e4
        service_time_ms, service_work = operation.work()
        summary.checks += machine_checks(
            raw.usage,
            raw.window_ns,
            conditions,
            one_core=spot.name == "same",
            alternating=alternate and (not service_time_ms or service_work == "busy"),
            max_waited_pct=cell.limits.max_waited_pct,
        )
        if summary.void:
            verdict, reason = "void", "; ".join(summary.void)
        elif summary.unsupported:
            verdict, reason = "unsupported", summary.unsupported
    except RunEnded as ended:
        verdict, reason = ended.verdict, ended.reason
    except ChildFailed as failed:
        verdict, reason = "failed", str(failed)
    except KeyboardInterrupt:
        verdict, reason = "interrupted", "stopped by Ctrl-C"
    conditions["load_average_after"] = load_average()
    return RunRecord(
        run_id=new_id(),
        sweep_id=sweep_id,
        scenario=cell.scenario,
        label=cell.label,
        operation=operation.name,
        protocol=cell.protocol,
        engine=cell.adapter.engine,
        codec=cell.codec,
        variant=cell.variant,
        placement=spot.name,
        connections=cell.at_a_time,
        repeat=repeat,
        position=position,
        verdict=verdict,
        reason=reason,
        started_at=started,
        duration_s=time.monotonic() - begun,
        overrides=overrides,
        config=cell.config,
        conditions=conditions,
        environment=environment(),
        facts={**dataclasses.asdict(cell.adapter.facts), "default_codec": cell.adapter.default_codec},
        measurements=summary.measurements,
        findings=summary.findings,
        errors=raw.errors,
        samples=raw.samples,
        folded=raw.folded,
        checks=tuple(summary.checks),
        series=summary.series,
    )


def _seeded(cell: Cell) -> Cell:
    """`cell` with the seed of its arrivals drawn, so that the driver uses it and the database has it."""
    load = seeded(cell.load)
    if load is cell.load:
        return cell
    config = {**cell.config, "load": {**cell.config["load"], "seed": seed_of(load)}}
    return dataclasses.replace(cell, load=load, config=config)


def _alone(cell: Cell) -> bool:
    """Whether the driver hosts both ends (or there is only one)."""
    return cell.adapter.in_process or not cell.operation.needs_server


def _conditions(cell: Cell, spot: Placement) -> dict[str, Any]:
    """What may make two runs incomparable, as far as it is known before they start."""
    adapter, load = cell.adapter, cell.load
    try:
        size = len(adapter.codec.encode(quote("AAPL", 42)))
    except CodecError:
        size = 0
    knobs = {key: value for key, value in cell.config["protocol"].items() if key not in ("name", "_target_")}
    return {
        "loop": cell.loop,
        "placement": spot.name,
        "server_cpus": spot.server_cpus,
        "driver_cpus": spot.driver_cpus,
        "in_process": _alone(cell),
        "model": adapter.model,
        "workers": adapter.workers,
        "gc": "frozen after warm-up",
        "malloc": " ".join(f"{name}={value}" for name, value in MALLOC.items()),
        "codec": cell.codec,
        "message_bytes": cell.operation.largest_message_bytes(adapter.codec) or size,
        "frame_bytes": adapter.wire_bytes(size) - size,
        "max_message_bytes": adapter.max_message_bytes,
        "load_average": load_average(),
        "connections": cell.at_a_time,
        "connections_opened": cell.connections_opened,
        "multiplex": load.multiplex,
        "arrival": load.arrival,
        **(_arrivals(load) if isinstance(load, OpenLoad) else {}),
        **{f"protocol.{name}": value for name, value in knobs.items()},
    }


def _arrivals(load: OpenLoad) -> dict[str, Any]:
    return {"rate_per_s": load.rate, "max_in_flight": load.max_in_flight, "arrival_seed": seed_of(load)}


def _refuse_unsupported(cell: Cell) -> None:
    """Raises RunEnded("unsupported") for what the adapter declares that it cannot carry."""
    adapter, operation = cell.adapter, cell.operation
    for method in operation.methods():
        if method.shape not in adapter.shapes:
            raise RunEnded("unsupported", f"{cell.protocol} cannot carry {method.shape.value} ({method.name})")
    if operation.hand_written and adapter.hand_written() is None:
        raise RunEnded("unsupported", f"nobody has written the exchange by hand for {cell.protocol}")
    size, limit = operation.largest_message_bytes(adapter.codec), adapter.limit_bytes()
    if size > limit:
        raise RunEnded(
            "unsupported", f"a message of {size:,} bytes is over the {limit:,} that {cell.protocol} carries"
        )


def _execute(cell: Cell, spot: Placement, conditions: dict[str, Any], launch: Launch) -> Raw:
    """Both processes, the whole timeline. Raises RunEnded, ChildFailed, KeyboardInterrupt."""
    nonce = secrets.token_hex(8)
    setup = {"config": cell.config, "run": nonce}
    children: list[Child] = []
    try:
        server: Child | None = None
        if not _alone(cell):
            server = launch("server", "runner.server", {**setup, "cpus": spot.server_cpus})
            children.append(server)
        driver = launch("driver", "runner.driver", {**setup, "cpus": spot.driver_cpus})
        children.append(driver)
        return _timeline(cell, server, driver, nonce, conditions)
    finally:
        with _undisturbed():
            for child in children:
                child.close()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ctrl-C waits meanwhile: a second press must not leave a process behind. Closing is bounded by itself."""
    if threading.current_thread() is not threading.main_thread():  # signals go to the main thread anyway
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before if before is not None else signal.default_int_handler)


def _timeline(cell: Cell, server: Child | None, driver: Child, nonce: str, conditions: dict[str, Any]) -> Raw:
    limits, operation = cell.limits, cell.operation
    if server is not None:
        ready = _event(server, None, "ready", limits.start_s, "limits.start_s")
        if ready["run"] != nonce:
            raise RunEnded("failed", f"the server answers for run {ready['run']!r}, not for this one")
        at = ready
        driver.tell("connect", host=ready["host"], port=ready["port"])
    # Connecting has its own bound inside the driver; the warm-up is bounded by run_s.
    bound_s = limits.start_s + limits.connect_s + limits.run_s
    # A watched operation looks at memory itself: what it sees is its finding.
    ceiling = None if operation.watched else Ceiling([driver] if server is None else [server, driver], limits)
    ready = _event(driver, server, "ready", bound_s, "limits.start_s + connect_s + run_s", ceiling)
    conditions |= {k: ready[k] for k in ("loop", "asyncio_debug", "python_debug", "debug_logging")}
    before: dict[str, int] = {}
    if server is not None:
        conditions["peers_seen"] = server.ask("counters", ASK_S)["peers"]
        before = server.ask("settle", ASK_S)  # last: what it answers is where the server's CPU is counted from
    opened = time.monotonic_ns()
    driver.tell("go")
    watched = Raw()
    if operation.watched:
        quiet = _event(driver, server, "quiet", limits.run_s, "limits.run_s")
        if cell.adapter.in_process:
            look = lambda: (driver.ask("server_counters", LOOK_S), driver.ask("counters", LOOK_S))  # noqa: E731
        else:
            assert server is not None
            asked = server
            look = lambda: (asked.ask("counters", ASK_S), driver.ask("counters", ASK_S))  # noqa: E731
        operation.watch(watched, quiet["t_ns"], limits.max_rss_mb * 2**20, look)
        driver.tell("finish")
    _event(driver, server, "closed", limits.run_s, "limits.run_s", ceiling)
    busy_ns = ready["warmup_ns"] + time.monotonic_ns() - opened
    usage: dict[str, dict[str, int]] = {}
    if server is not None:
        after = server.ask("usage", ASK_S)
        usage["server"] = {key: after[key] - before[key] for key in after if key != "peak_rss_bytes"}
        usage["server"]["peak_rss_bytes"] = after["peak_rss_bytes"]
        seen = server.ask("counters", ASK_S)
        watched.counts |= {key: seen[key] for key in ("hellos", "peak_in_flight") if seen.get(key) is not None}
        if seen.get("taken_ns"):
            watched.series["taken"] = stamped(seen["taken_ns"])
        url = f"http://{at['host']}:{at['port']}/" if cell.adapter.speaks_http else None
        watched.facts |= operation.afterwards(url, cell.load.connections, conditions["driver_cpus"])
    raw = unpack(_event(driver, server, "result", limits.run_s, "limits.run_s")["raw"])
    raw.usage |= usage
    raw.series |= watched.series
    raw.counts |= watched.counts | {"busy_ns": busy_ns}
    raw.facts |= watched.facts
    return raw


def _event(
    child: Child, other: Child | None, name: str, timeout_s: float, limit: str, ceiling: Ceiling | None = None
) -> dict[str, Any]:
    """The event `name` of `child`; `limit` names the keys that bound the wait.

    Raises RunEnded when it says `failed` instead, or when `other` has ended: that is then the cause, whatever
    `child` makes of it. And when memory passes the `ceiling`: that run is void, not failed.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        left = deadline - time.monotonic()
        if ceiling is not None and (passed := ceiling.passed()):
            raise RunEnded("void", passed)
        try:
            line = child.event(min(SLICE_S, max(left, 0)))
        except Silent:
            if other is not None and (how := other.exited()) is not None:
                raise RunEnded("failed", f"{how} (while waiting for the {child.name}'s {name!r})") from None
            if left <= 0:
                late = f"the {child.name} was not {REACHED[name]} within {timeout_s:g} s"
                reason = f"{late} ({limit}); raise it, or ask for less"
                raise RunEnded("failed", reason) from None
            continue
        if line["event"] == "failed":
            if other is not None and line.get("verdict") != "unsupported":
                time.sleep(SLICE_S)  # a server that died takes the driver with it, by a hair
                if (how := other.exited()) is not None:
                    raise RunEnded("failed", f"{how} (the {child.name} saw: {line['reason']})")
            raise RunEnded(line.get("verdict", "failed"), line["reason"])
        if line["event"] == name:
            return line
