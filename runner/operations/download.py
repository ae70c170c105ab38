"""How fast do many records arrive that were asked for once, and what does it take? OrderResponses from server to
driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import ClassVar

from adapters.api import Message
from adapters.messages import OrdersRequest
from runner.bulk import receipt, taker
from runner.drive import Drive
from runner.operations.transfer import Style, Transfer, Transferred
from runner.records import Tally, batches, order, orders_of


@dataclass(frozen=True, kw_only=True)
class Download(Transfer):
    """`producer` of a stream, in the service: awaited or push, as the sender of an upload."""

    producer: Style

    names: ClassVar[dict[str, str]] = {
        "single": "orders",
        "batched": "orders.batched",
        "per_record": "orders.each",
    }
    style_key: ClassVar[str] = "producer"

    @property
    def style(self) -> str:
        return self.producer

    def producer_style(self) -> str:
        return self.producer

    def messages(self, count: int) -> Iterator[Message]:
        if self.shape == "per_record":
            return map(order, range(count))
        return map(orders_of, batches(count, self.batch if self.shape == "batched" else count))

    def whole(self, numbers: range) -> Message:
        return orders_of(numbers)

    async def transfer(self, drive: Drive, count: int) -> Transferred:
        peer, clock, tally = drive.peers[0], drive.clock, Tally()
        request = OrdersRequest(count, self.batch)
        started = clock()
        if self.shape == "single":
            reply = await peer.unary(self.method, request)
            first_ns = clock() - started
            tally.add(reply.items)
            return Transferred(receipt(tally), whole=reply, first_ns=first_ns)
        first, take, messages = None, taker(tally, self.method), 0
        async with aclosing(peer.server_stream(self.method, request)) as stream:
            async for message in stream:
                if first is None:
                    first = clock() - started
                take(message)
                messages += 1
                drive.consumed = messages
        return Transferred(receipt(tally), first_ns=first)
