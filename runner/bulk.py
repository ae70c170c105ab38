"""Bulk transfer as it is served: who receives records and answers with a receipt, who makes them, and how a sender
that never looks at readiness does so. Both ends of a transfer use this, as well as servers that are threads.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Iterator
from typing import Any

from adapters.api import CallFailed, Message, Method
from adapters.messages import METHODS, Orders, OrdersRequest, Receipt
from runner.records import Tally, batches, order, orders_of

YIELD_EVERY = 64  # messages after which the rest of the loop runs, as for every stream (runner.service)
UPLOADS = ("readings.batched", "readings.each")
DOWNLOADS = ("orders.batched", "orders.each")


def taker(tally: Tally, method: Method) -> Callable[[Any], None]:
    """What puts one message of `method` into the tally."""
    if method.name in ("readings.each", "orders.each"):
        return tally.add_one
    return lambda message: tally.add(message.items)


def receipt(tally: Tally) -> Receipt:
    """What the receiver got."""
    return Receipt(tally.records, tally.messages, tally.checksum)


def received(request: Message) -> Receipt:
    """The answer to all readings in one body."""
    tally = Tally()
    tally.add(request.items)
    return receipt(tally)


async def received_stream(method: Method, requests: AsyncIterable[Message]) -> Receipt:
    """The answer to a stream of readings, once it is over."""
    tally = Tally()
    take, messages = taker(tally, method), 0
    async for message in requests:
        take(message)
        messages += 1
        if not messages % YIELD_EVERY:
            await asyncio.sleep(0)
    return receipt(tally)


def received_blocking(method: Method, requests: Iterable[Message]) -> Receipt:
    """The same in a thread."""
    tally = Tally()
    take = taker(tally, method)
    for message in requests:
        take(message)
    return receipt(tally)


def asked(request: OrdersRequest) -> OrdersRequest:
    """The request, when it can be met. Raises CallFailed("invalid_argument")."""
    if request.count < 0 or request.batch < 1:
        raise CallFailed("invalid_argument", "count must be 0 or more, batch 1 or more")
    return request


def all_orders(request: OrdersRequest) -> Orders:
    """The orders in one body. Raises CallFailed("invalid_argument")."""
    return orders_of(range(asked(request).count))


def order_messages(method: Method, request: OrdersRequest) -> Iterator[Message]:
    """The messages of a download, each made when it is asked for. Raises CallFailed("invalid_argument")."""
    count = asked(request).count
    if method is METHODS["orders.each"]:
        return map(order, range(count))
    return map(orders_of, batches(count, request.batch))


async def one_by_one(messages: Iterable[Message], made: Callable[[], None]) -> AsyncGenerator[Message, None]:
    """`awaited`: each message is made when the transport asks for it. `made` is called for each."""
    for number, message in enumerate(messages, 1):
        made()
        yield message
        if not number % YIELD_EVERY:
            await asyncio.sleep(0)


async def pushed(
    messages: Iterable[Message], buffer: deque[Message], made: Callable[[], None]
) -> AsyncGenerator[Message, None]:
    """`push`: a task makes messages as fast as it can and puts them into `buffer`, which has no bound; the
    transport empties it as fast as it can. What a callback API whose send never waits and never says no amounts
    to: how ready the transport is decides only how much piles up. Both let the rest of the loop run every
    YIELD_EVERY messages.
    """
    filled = asyncio.Event()

    async def fill() -> None:
        for number, message in enumerate(messages, 1):
            made()
            buffer.append(message)
            filled.set()
            if not number % YIELD_EVERY:
                await asyncio.sleep(0)

    filler = asyncio.create_task(fill())
    filler.add_done_callback(lambda _: filled.set())
    taken = 0
    try:
        while True:
            while buffer:
                yield buffer.popleft()
                taken += 1
                if not taken % YIELD_EVERY:
                    await asyncio.sleep(0)
            if filler.done():
                filler.result()  # a failed filler ends the stream with its error, not as if complete
                return
            filled.clear()
            await filled.wait()
    finally:
        filler.cancel()
