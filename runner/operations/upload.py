"""How fast can many records be sent, and what does it take? SensorReadings from driver to server.

And where the server is the slower side: how far does the sender get ahead of it before it has to wait?
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import ClassVar

from adapters.api import Message
from runner.bulk import one_by_one, pushed
from runner.drive import Drive
from runner.fields import Milliseconds
from runner.operations.ahead import MOST, stamped
from runner.operations.transfer import Style, Transfer, Transferred
from runner.records import batches, reading, readings_of


@dataclass(frozen=True, kw_only=True)
class Upload(Transfer):
    """`sender` of a stream: awaited makes the next message when the transport has taken the last one; push makes
    them as fast as it can into a buffer without bound, and never looks at readiness (runner.bulk).
    `service_time_ms`: what the server takes for each message of a stream before it asks for the next one.
    """

    sender: Style
    service_time_ms: Milliseconds = 0.0

    names: ClassVar[dict[str, str]] = {
        "single": "readings",
        "batched": "readings.batched",
        "per_record": "readings.each",
    }
    style_key: ClassVar[str] = "sender"

    @property
    def style(self) -> str:
        return self.sender

    def work(self) -> tuple[float, str]:
        return self.service_time_ms, "wait"

    def problems(self) -> list[str]:
        found = super().problems()
        if self.service_time_ms and self.shape == "single":
            found.append(
                "service_time_ms: it is for each message of a stream, and single is one; "
                "shape=batched or per_record, or leave this 0"
            )
        messages = self.records if self.shape == "per_record" else -(-self.records // self.batch)
        if self.service_time_ms and messages > MOST:
            found.append(
                f"service_time_ms: {messages:,} messages are over the {MOST:,} that are timed one by one; "
                "fewer records, or a larger batch"
            )
        return found

    def messages(self, count: int) -> Iterator[Message]:
        if self.shape == "per_record":
            return map(reading, range(count))
        return map(readings_of, batches(count, self.batch if self.shape == "batched" else count))

    def whole(self, numbers: range) -> Message:
        return readings_of(numbers)

    async def transfer(self, drive: Drive, count: int) -> Transferred:
        peer = drive.peers[0]
        if self.shape == "single":
            body = self.whole(range(count))
            return Transferred(await peer.unary(self.method, body), whole=body)
        push, outbox, most = self.sender == "push", drive.outbox, 0
        stamps, clock = array("q") if self.service_time_ms else None, drive.clock

        def made() -> None:
            nonlocal most
            drive.consumed += 1
            if stamps is not None:
                stamps.append(clock())
            if push and len(outbox) >= most:
                most = len(outbox) + 1  # with the one that is put in next

        messages = self.messages(count)
        requests = pushed(messages, outbox, made) if push else one_by_one(messages, made)
        async with aclosing(requests):
            reply = await peer.client_stream(self.method, requests)
        if stamps is not None:
            drive.raw.series["made"] = stamped(stamps)
        return Transferred(reply, buffered_max=most if push else None)
