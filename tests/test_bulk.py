"""Serving records: what a receiver says it got, how orders are cut into messages, and a sender that never waits."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

import pytest

from adapters.api import CallFailed, Message
from adapters.messages import METHODS, Orders, OrdersRequest, Receipt
from runner.bulk import one_by_one, order_messages, pushed, received_blocking
from runner.records import Tally, batches, order, orders_of, reading, readings_of
from runner.service import Service


def checksum(count: int) -> str:
    tally = Tally()
    tally.add(readings_of(range(count)).items)
    return tally.checksum


async def each(*messages: Message) -> AsyncGenerator[Message, None]:
    for message in messages:
        yield message


async def test_readings_are_answered_with_a_receipt_in_every_shape() -> None:
    service = Service()
    cut = [readings_of(numbers) for numbers in batches(250, 100)]
    single = [reading(number) for number in range(250)]

    whole = await service.unary(METHODS["readings"], readings_of(range(250)))
    assert whole == Receipt(250, 1, checksum(250))
    assert await service.client_stream(METHODS["readings.batched"], each(*cut)) == Receipt(250, 3, checksum(250))
    assert await service.client_stream(METHODS["readings.each"], each(*single)) == Receipt(250, 250, checksum(250))
    assert received_blocking(METHODS["readings.batched"], cut) == Receipt(250, 3, checksum(250))
    assert received_blocking(METHODS["readings.each"], single) == Receipt(250, 250, checksum(250))


async def test_no_readings_are_a_receipt_of_none() -> None:
    assert await Service().client_stream(METHODS["readings.each"], each()) == Receipt(0, 0, "00000000")


@pytest.mark.parametrize("producer", ["awaited", "push"])
async def test_orders_come_in_every_shape(producer: str) -> None:
    service, request = Service(producer=producer), OrdersRequest(250, 100)

    assert await service.unary(METHODS["orders"], request) == orders_of(range(250))
    cut = [message async for message in service.server_stream(METHODS["orders.batched"], request)]
    assert cut == [orders_of(numbers) for numbers in (range(100), range(100, 200), range(200, 250))]
    assert service.produced == 3
    single = [message async for message in service.server_stream(METHODS["orders.each"], request)]
    assert single == [order(number) for number in range(250)]
    assert service.produced == 250


@pytest.mark.parametrize("request_", [OrdersRequest(-1, 100), OrdersRequest(1, 0)])
async def test_orders_that_cannot_be_made_are_refused(request_: OrdersRequest) -> None:
    with pytest.raises(CallFailed, match="invalid_argument: count must be 0 or more, batch 1 or more"):
        await Service().unary(METHODS["orders"], request_)
    with pytest.raises(CallFailed, match="invalid_argument"):
        async for _ in Service().server_stream(METHODS["orders.batched"], request_):
            pass


def test_messages_are_made_only_when_they_are_asked_for() -> None:
    messages = order_messages(METHODS["orders.batched"], OrdersRequest(10**12, 10))

    assert next(messages) == Orders([order(number) for number in range(10)])


async def test_an_awaited_sender_makes_what_is_taken_and_a_pushing_one_does_not_wait() -> None:
    made: dict[str, int] = {"awaited": 0, "push": 0}

    def counter(style: str) -> Any:
        def count() -> None:
            made[style] += 1

        return count

    buffer: deque[Message] = deque()
    awaited = one_by_one(iter(range(1000)), counter("awaited"))
    push = pushed(iter(range(1000)), buffer, counter("push"))
    async with aclosing(awaited), aclosing(push):
        for stream in (awaited, push):
            assert [await anext(stream) for _ in range(3)] == [0, 1, 2]
        for _ in range(100):
            await asyncio.sleep(0)  # the transport is not ready all this time

        assert made == {"awaited": 3, "push": 1000}
        assert len(buffer) == 997
        assert [item async for item in push] == list(range(3, 1000))


async def test_a_pushing_sender_that_fails_ends_the_stream_with_its_error() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise OSError("no more")

    taken = []
    with pytest.raises(OSError, match="no more"):
        async for item in pushed(failing(), deque(), lambda: None):
            taken.append(item)
    assert taken == [1]
