"""Bulk transfer: what uploading and downloading records have in common.

    single      all records in one message
    batched     a stream of messages of `batch` records
    per_record  a stream of messages that are one record

The receiver keeps a tally (runner.records): how many records in how many messages, and a checksum of content and
order. It is compared with what was to be sent, outside the window. Anything lost, short, changed or in another
order makes the run void.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from adapters.api import Codec, Message, Method
from adapters.messages import METHODS, Receipt
from runner.bulk import receipt, taker
from runner.drive import Drive
from runner.fields import Count, Natural
from runner.operations.ahead import ahead
from runner.operations.api import Operation, Raw, Summary, count_check, cpu_per_item
from runner.records import Tally, batches
from runner.samples import NS_PER_S

Shape = Literal["single", "batched", "per_record"]
Style = Literal["awaited", "push"]
PIECE = 10_000  # records encoded at a time where the size of a message of many more is wanted


@dataclass
class Transferred:
    """What a transfer came to. `receipt`: the receiver's. `whole`: the one message of `single`. `first_ns`: from
    asking to the first message, where the driver receives. `buffered_max`: messages that a pushing sender had in
    its buffer at most.
    """

    receipt: Receipt
    whole: Message | None = None
    first_ns: int | None = None
    buffered_max: int | None = None


@dataclass(frozen=True, kw_only=True)
class Transfer(Operation):
    """`records` records over one connection, after a transfer of `warmup` records that is not kept. The warm-up is
    small on purpose: memory that it leaves with the allocator would be missing in the growth that is measured.
    """

    name: str
    records: Count
    shape: Shape
    batch: Count
    warmup: Natural

    one_connection: ClassVar[bool] = True
    names: ClassVar[dict[str, str]]  # shape -> name of the method
    style_key: ClassVar[str]  # sender or producer

    @property
    def method(self) -> Method:
        """What is called."""
        return METHODS[self.names[self.shape]]

    @property
    @abstractmethod
    def style(self) -> str:
        """How the sending side sends: awaited or push."""

    @abstractmethod
    def messages(self, count: int) -> Iterator[Message]:
        """The messages that carry `count` records, each made when it is asked for."""

    @abstractmethod
    def whole(self, numbers: range) -> Message:
        """One message with the records of these numbers."""

    @abstractmethod
    async def transfer(self, drive: Drive, count: int) -> Transferred:
        """`count` records over the first connection. drive.consumed counts messages, those in drive.outbox too."""

    def methods(self) -> list[Method]:
        return [METHODS["quote"], METHODS["run"], self.method]

    def problems(self) -> list[str]:
        if self.shape == "single" and self.style == "push":
            return [
                f"{self.style_key}: push needs a stream, and single is one message; shape=batched or per_record"
            ]
        return []

    def largest_message_bytes(self, codec: Codec) -> int:
        """Of `single`: the exact size up to 65,535 records; beyond, at most 4 bytes short (a longer header of the
        list). Of a stream: its last message.
        """
        if self.shape == "single":
            return self._whole_bytes(codec)
        if self.shape == "batched":
            return len(codec.encode(self.whole(range(max(self.records - self.batch, 0), self.records))))
        return len(codec.encode(self.whole(range(self.records - 1, self.records)).items[0]))

    def _whole_bytes(self, codec: Codec) -> int:
        """Encoded piece by piece: the objects of a million records would fill the supervisor's memory."""
        key = (type(self), self.records, codec.name)
        if key not in _SIZES:
            if self.records <= PIECE:
                size = len(codec.encode(self.whole(range(self.records))))
            else:
                # Of about equal length, so that the headers of their lists are equally long.
                pieces = list(batches(self.records, -(-self.records // -(-self.records // PIECE))))
                size = sum(len(codec.encode(self.whole(piece))) for piece in pieces)
                # What one list costs less than two, from two that are small.
                a, b = self.whole(range(1000)), self.whole(range(1000, 2000))
                both = self.whole(range(2000))
                joined = len(codec.encode(both)) - len(codec.encode(a)) - len(codec.encode(b))
                size += joined * (len(pieces) - 1)
            _SIZES[key] = size
        return _SIZES[key]

    def known(self) -> Summary:
        return Summary(
            measurements={"records": (self.records, "records")},
            findings={"shape": self.shape, self.style_key: self.style},
        )

    async def drive(self, drive: Drive) -> None:
        if self.warmup:
            await drive.bounded(self.transfer(drive, self.warmup), lambda: drive.consumed - len(drive.outbox))
        drive.consumed = 0
        await drive.ready()
        done = await drive.bounded(self.transfer(drive, self.records), lambda: drive.consumed - len(drive.outbox))
        drive.close_window()  # reads CPU and memory: what follows is not the transfer
        expected, payload_bytes = self._sent(drive.codec, done.whole)
        got = done.receipt
        drive.raw.counts |= {
            "records": got.records,
            "messages": got.messages,
            "expected_messages": expected.messages,
            "payload_bytes": payload_bytes,
        }
        if done.first_ns is not None:
            drive.raw.counts["first_ns"] = done.first_ns
        if done.buffered_max is not None:
            drive.raw.counts["buffered_max"] = done.buffered_max
        drive.raw.facts |= {"checksum": got.checksum, "expected_checksum": expected.checksum}
        for kind, n in {
            "missing_record": max(self.records - got.records, 0),
            "surplus_record": max(got.records - self.records, 0),
            "wrong_checksum": int(got.checksum != expected.checksum),
        }.items():
            if n:
                drive.raw.errors[kind] = n

    def _sent(self, codec: Codec, whole: Message | None) -> tuple[Receipt, int]:
        """The receipt for everything that was to be sent, and the sum of its encoded messages in bytes."""
        tally = Tally()
        if whole is not None:
            for numbers in batches(self.records, PIECE):
                tally.add(self.whole(numbers).items)
            tally.messages = 1
            return receipt(tally), len(codec.encode(whole))
        take, size = taker(tally, self.method), 0
        for message in self.messages(self.records):
            take(message)
            size += len(codec.encode(message))
        return receipt(tally), size

    def summarize(self, raw: Raw, codec: Codec, conditions: dict[str, Any]) -> Summary:
        summary, counts = self.known(), raw.counts
        arrived = counts["records"]
        summary.findings["checksum"] = raw.facts["checksum"]
        said = f"{arrived:,} records arrived, {self.records:,} were sent"
        summary.checks.append(count_check("records", arrived, self.records, said))
        if arrived == self.records:
            found, right = raw.facts["checksum"], raw.facts["expected_checksum"]
            said = f"the checksum is {found}, not {right}: a record was changed, or their order"
            summary.checks.append(count_check("wrong_checksum", int(found != right), 0, said))
        came, wanted = counts["messages"], counts["expected_messages"]
        said = f"they came in {came:,} messages, not {wanted:,}"
        summary.checks.append(count_check("messages", came, wanted, said))
        summary.measurements |= {
            "records": (arrived, "records"),
            "messages": (counts["messages"], "messages"),
            "errors": (sum(raw.errors.values()), "errors"),
            "payload_bytes": (counts["payload_bytes"], "bytes"),
            "bytes_per_record": (counts["payload_bytes"] / self.records, "bytes"),
        }
        if "first_ns" in counts:
            summary.measurements["first_ms"] = (counts["first_ns"] / 1e6, "ms")
        if "buffered_max" in counts:
            summary.measurements["buffered_max"] = (counts["buffered_max"], "messages")
        if "made" in raw.series and "taken" in raw.series and came:
            summary.series["ahead"] = ahead(raw.series["made"], raw.series["taken"])
            most = max((int(value or 0) for _, value in summary.series["ahead"]), default=0)
            summary.measurements |= {
                "ahead_max": (most, "messages"),
                "ahead_max_bytes": (round(most * counts["payload_bytes"] / came), "bytes"),
            }
        if raw.window_ns > 0:
            summary.measurements["seconds"] = (raw.window_ns / NS_PER_S, "s")
            summary.measurements["records_per_s"] = (arrived * NS_PER_S / raw.window_ns, "1/s")
        for side in ("driver", "server"):
            grown = raw.usage.get(side, {}).get("high_water_bytes")
            if grown is not None:
                # The kernel's count is exact to some pages: what is below its own start did not grow.
                summary.measurements[f"{side}_rss_growth_bytes"] = (max(grown, 0), "bytes")
        summary.measurements |= cpu_per_item(raw, arrived)
        return summary


_SIZES: dict[tuple[type, int, str], int] = {}  # of whole messages: they are wanted twice for each run
