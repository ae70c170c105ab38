"""The driver process: `python -m runner.driver`, steered over stdin and stdout (runner.control).

Setup: {"config", "run", "cpus"}; then told `connect` (host, port) unless it hosts both ends itself.
Events: `ready` (connected, verified, warmed up), `quiet` (t_ns), `closed` (the window has just closed),
`result` (everything that was found), `failed` (verdict, reason). Told: `go` opens the window, `finish` ends a
quiet period. Questions: `counters`, `usage`.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import time
from array import array
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from adapters.api import AdapterError, Address, CodecError, Exchange, Peer, Unsupported
from runner.blocking import served_by
from runner.connecting import Connecting, Refused
from runner.control import Control, run_as_process
from runner.drive import Drive, Stalled
from runner.host import machine_ticks, pin, process_facts, rss_bytes, run_loop, stolen, usage
from runner.operations.api import Raw
from runner.quotes import quote
from runner.samples import FOLD_FROM, Folded, fold
from runner.server import server_counters, settle
from runner.tcp import Carried, carried, spent_on_wire, tcp_queues
from runner.timer import open_timer

if TYPE_CHECKING:
    from runner.config import Cell


class ControlGate:
    """The phases of a run, over the control channel."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._go: Future[dict[str, Any]] = control.expect("go")
        self._finish: Future[dict[str, Any]] = control.expect("finish")
        self.before: dict[str, int] = {}
        self.after: dict[str, int] = {}
        self.wire_before: Carried | None = None
        self.wire: dict[str, int] = {}  # what the window's calls put on the wire
        self.ticks_before: tuple[int, int] | None = None
        self.port = 0
        self.connected_ns = 0

    async def ready(self) -> None:
        """Say so, and wait for the supervisor to have noted what the server has used."""
        warmup_ns = time.perf_counter_ns() - self.connected_ns
        settle()
        self._control.say("ready", warmup_ns=warmup_ns, **process_facts())
        await asyncio.wrap_future(self._go)
        self.wire_before = self._carried()
        self.ticks_before = machine_ticks()
        self.before = usage()

    async def quiet(self) -> None:
        """Say when, and wait for `finish`."""
        self._control.say("quiet", t_ns=time.perf_counter_ns())
        await asyncio.wrap_future(self._finish)

    def closed(self) -> None:
        """Note what was used, and let the supervisor ask the server."""
        self.after = usage()
        self.wire = spent_on_wire(self.wire_before, self._carried())
        self.wire |= stolen(self.ticks_before, machine_ticks())
        self._control.say("closed")

    def _carried(self) -> Carried | None:
        return carried(tcp_queues(self.port, local=False)) if self.port else None

    def read_bytes(self) -> int | None:
        """What this process has read from its connections to the server since it was ready, in bytes."""
        now, before = self._carried(), self.wire_before
        return None if now is None else now.read_bytes - (before.read_bytes if before else 0)


def driver_counters(drive: Drive, gate: ControlGate) -> dict[str, Any]:
    """What the application has taken and what waits for it. None for what cannot be seen. From any thread."""
    queues = tcp_queues(gate.port, local=False) if gate.port else None
    return {
        "t_ns": time.perf_counter_ns(),
        "cpu_ns": time.process_time_ns(),
        "over": drive.over,
        "consumed": drive.consumed,
        "inbox": len(drive.inbox),
        "held": drive.peers[0].held() if drive.peers else None,
        "rss_bytes": rss_bytes(),
        "receive_queue_bytes": None if queues is None else sum(q.receive_queue_bytes for q in queues),
        "read_bytes": gate.read_bytes(),
    }


async def _connected(
    stack: AsyncExitStack,
    cell: Cell,
    setup: dict[str, Any],
    control: Control,
    gate: ControlGate,
    connecting: Connecting,
) -> tuple[list[Peer], Exchange | None]:
    """Open and verify every connection, within limits.connect_s; or open the one of a hand-written client."""
    adapter, operation = cell.adapter, cell.operation
    if not operation.needs_server:
        control.listen()
        return [], None
    if adapter.in_process:
        service = served_by(adapter, operation, setup["run"])
        served = await stack.enter_async_context(adapter.serve(service, Address(cell.host, cell.port)))
        control.answer("server_counters", lambda: server_counters(service, served))
        control.listen()
        address = served.address
    else:
        connect = control.expect("connect")
        control.listen()
        told = await asyncio.wrap_future(connect)
        address = Address(told["host"], told["port"])
        gate.port = address.port
    bare = adapter.hand_written()
    if operation.hand_written and bare is not None:
        return [], await stack.enter_async_context(bare(adapter.codec, quote).connect(address))
    peers: list[Peer] = []
    wanted = cell.connections_opened
    try:
        async with asyncio.timeout(cell.limits.connect_s):
            for _ in range(wanted):
                peers.append(await connecting.open(stack, adapter.connect(address, operation.credit())))
    except TimeoutError:
        raise Refused(f"{len(peers)} of {wanted} connections opened within {cell.limits.connect_s:g} s") from None
    except OSError as exc:
        raise Refused(f"{len(peers)} of {wanted} connections opened: {exc.strerror or exc}") from exc
    return peers, None


def pack(raw: Raw, samples_max: int) -> dict[str, Any]:
    """`raw` as JSON can carry it; samples as base64 of little-endian 64-bit integers. Of very many, at most
    `samples_max` single ones.
    """
    many = {name: values for name, values in raw.samples.items() if len(values) > FOLD_FROM}
    samples = {
        name: base64.b64encode(array("q", values).tobytes()).decode()
        for name, values in raw.samples.items()
        if name not in many
    }
    return {
        "folded": {name: dataclasses.asdict(fold(values, samples_max)) for name, values in many.items()},
        "window_ns": raw.window_ns,
        "samples": samples,
        "counts": raw.counts,
        "errors": raw.errors,
        "facts": raw.facts,
        "usage": raw.usage,
        "series": raw.series,
    }


def unpack(packed: dict[str, Any]) -> Raw:
    """The inverse of `pack`."""
    samples: dict[str, Sequence[int]] = {
        name: array("q", base64.b64decode(data)).tolist() for name, data in packed["samples"].items()
    }
    series = {name: [(t_ns, value) for t_ns, value in points] for name, points in packed["series"].items()}
    plain = {name: packed[name] for name in ("window_ns", "counts", "errors", "facts", "usage")}
    folded = {
        name: Folded(**{**found, "counts": {int(value): n for value, n in found["counts"].items()}})
        for name, found in packed["folded"].items()
    }
    return Raw(**plain, samples=samples, series=series, folded=folded)


async def _drive(setup: dict[str, Any], control: Control) -> None:
    from runner.config import check  # after pinning: what it imports may start threads

    cell, problems = check(setup["config"])
    if cell is None:
        control.say("failed", verdict="failed", reason="; ".join(problems))
        return
    gate = ControlGate(control)
    control.answer("usage", usage)
    holder: list[Drive] = []
    control.answer("counters", lambda: driver_counters(holder[0], gate))
    try:
        async with AsyncExitStack() as stack:
            connecting = Connecting(setup["run"], time.perf_counter_ns)
            peers, exchange = await _connected(stack, cell, setup, control, gate, connecting)
            gate.connected_ns = time.perf_counter_ns()
            timed = cell.operation.on_time or cell.load.arrival != "closed"
            drive = Drive(
                peers=peers,
                codec=cell.adapter.codec,
                load=cell.load,
                limits=cell.limits,
                gate=gate,
                clock=time.perf_counter_ns,
                timer=stack.enter_context(open_timer()) if timed else None,
            )
            drive.exchange = exchange
            if peers and not cell.adapter.in_process:  # where both ends are one process, nothing was connected
                drive.raw.samples |= connecting.samples
            holder.append(drive)
            await cell.operation.drive(drive)
            spent = {key: gate.after[key] - gate.before[key] for key in gate.after if key != "peak_rss_bytes"}
            spent |= {key: gate.after[key] for key in gate.after if key == "peak_rss_bytes"} | gate.wire
            drive.raw.usage["driver"] = spent
            control.say("result", raw=pack(drive.raw, cell.record.samples_max))
    except Unsupported as exc:
        control.say("failed", verdict="unsupported", reason=str(exc))
    except (AdapterError, CodecError, Refused, Stalled) as exc:
        control.say("failed", verdict="failed", reason=f"{type(exc).__name__}: {exc}")


def main(control: Control) -> None:
    """Drive one run."""
    setup = control.setup()
    pin(setup["cpus"])
    run_loop(_drive(setup, control), setup["config"].get("loop", "uvloop"))


if __name__ == "__main__":
    run_as_process(main)
