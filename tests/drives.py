"""A driver without processes: the loopback adapter, a clock that ticks once per look, no waiting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adapters.api import Peer
from adapters.codecs import CODECS
from runner.drive import Drive
from runner.fields import Limits, Load
from runner.operations.api import Operation, Summary

TICK_NS = 1_000
LIMITS = Limits(max_rss_mb=1_000, max_message_bytes=2**20, start_s=5, connect_s=5, call_s=5, run_s=5)


class TickClock:
    """Every look is TICK_NS after the last one."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        self.now += TICK_NS
        return self.now


class OpenGate:
    """Nobody to wait for. `during_quiet` runs when the reader has gone quiet."""

    def __init__(self, during_quiet: Callable[[], Any] | None = None) -> None:
        self.steps: list[str] = []
        self._during_quiet = during_quiet

    async def ready(self) -> None:
        self.steps.append("ready")

    async def quiet(self) -> None:
        self.steps.append("quiet")
        if self._during_quiet is not None:
            await self._during_quiet()

    def closed(self) -> None:
        self.steps.append("closed")


def load(connections: int = 1, multiplex: bool = False) -> Load:
    return Load(name="closed", arrival="closed", connections=connections, multiplex=multiplex, placement="auto")


def drive_over(peers: list[Peer], *, codec: str = "json", gate: OpenGate | None = None, **knobs: Any) -> Drive:
    return Drive(
        peers=peers,
        codec=CODECS[codec](),
        load=load(connections=len(peers), **knobs),
        limits=LIMITS,
        gate=gate or OpenGate(),
        clock=TickClock(),
    )


async def run_over(operation: Operation, peers: list[Peer], **knobs: Any) -> tuple[Drive, Summary]:
    """Drive `operation` and summarise what it found."""
    drive = drive_over(peers, **knobs)
    await operation.drive(drive)
    conditions = {"connections": len(peers), "frame_bytes": 0}
    return drive, operation.summarize(drive.raw, drive.codec, conditions)
