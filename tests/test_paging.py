"""Pages: what the service answers, what a reader asks for, and what a stranger sees over HTTP."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

import pytest

from adapters.api import CallFailed, Message, Method
from adapters.codecs import CODECS
from adapters.http import Http
from adapters.http_threads import HttpThreads
from adapters.messages import METHODS, PageRequest, Produced, Quote, QuotePage
from adapters.sse import Sse
from runner.blocking import BlockingService
from runner.operations.api import Raw
from runner.operations.watch import Watch, watch
from runner.paging import PAGE_MAX, page_bytes, paged
from runner.quotes import quote
from runner.service import Service
from tests.cells import cell, check, config
from tests.drives import run_over
from tests.http_strangers import ANY_PORT, fetch
from tests.test_backpressure import operation as backpressure
from tests.test_backpressure import quiet_after
from tests.test_stream import operation as stream

PAGE, PRODUCED = METHODS["quotes.page"], METHODS["produced"]


class Asked(Service):
    """The real service; `pages`: (after, limit) of every page that was asked for. `bend` alters an answer."""

    def __init__(self, bend: Any = None) -> None:
        super().__init__()
        self.pages: list[tuple[int, int]] = []
        self._bend = bend

    async def unary(self, method: Method, request: Message) -> Message:
        reply = await super().unary(method, request)
        if method is PAGE:
            self.pages.append((request.after, request.limit))
            return QuotePage(self._bend(reply.items)) if self._bend else reply
        return reply


async def page(after: int = -1, limit: int = 100) -> list[int]:
    return [item.seq for item in (await Service().unary(PAGE, PageRequest("AAPL", after, limit))).items]


async def test_a_page_holds_the_quotes_behind_the_one_that_is_named() -> None:
    assert await page(-1, 3) == [0, 1, 2]
    assert await page(2, 2) == [3, 4]
    assert await page() == list(range(100))
    assert (await Service().unary(PAGE, PageRequest("AAPL", 41, 1))).items == [quote("AAPL", 42)]


@pytest.mark.parametrize(
    ("after", "limit", "said"),
    [
        (-2, 1, "after must be -1 (from the first on) or the seq of a quote"),
        (-1, 0, "limit must be from 1 to 100,000"),
        (-1, PAGE_MAX + 1, "limit must be from 1 to 100,000"),
    ],
)
async def test_a_page_that_cannot_be_is_refused(after: int, limit: int, said: str) -> None:
    with pytest.raises(CallFailed) as refused:
        await page(after, limit)

    assert (refused.value.kind, str(refused.value)) == ("invalid_argument", f"invalid_argument: {said}")


async def test_what_was_made_is_counted_from_the_first_page_on() -> None:
    service = Service()
    for after, made in ((-1, 10), (9, 20), (19, 30), (-1, 10)):
        await service.unary(PAGE, PageRequest("AAPL", after, 10))
        assert await service.unary(PRODUCED, METHODS["produced"].request()) == Produced(made)


async def test_a_page_is_asked_for_when_the_next_item_is_needed_and_not_before() -> None:
    service, waiting = Asked(), deque[Message]()
    items: AsyncIterator[Quote] = paged(service, "AAPL", 10, waiting)
    assert service.pages == []

    assert [(await anext(items)).seq for _ in range(10)] == list(range(10))
    assert (service.pages, len(waiting)) == ([(-1, 10)], 0)
    assert (await anext(items)).seq == 10
    assert (service.pages, len(waiting)) == ([(-1, 10), (9, 10)], 9)


async def test_the_last_page_is_as_small_as_what_is_missing() -> None:
    service = Asked()
    items = [item async for item in paged(service, "AAPL", 10, deque(), 25)]

    assert items == [quote("AAPL", seq) for seq in range(25)]
    assert service.pages == [(-1, 10), (9, 10), (19, 5)]


@pytest.mark.parametrize("consumer", ["pull", "eager"])
async def test_a_stream_of_pages_takes_exactly_what_was_asked_for(consumer: str) -> None:
    service = Asked()
    op = stream(producer="paged", page=100, consumer=consumer, count=250, warmup=0)
    drive, summary = await run_over(op, [service])

    assert (drive.raw.errors, summary.void) == ({}, [])
    assert summary.measurements["messages"] == (250, "messages")
    assert summary.findings["producer"] == "paged"
    assert service.pages == [(-1, 100), (99, 100), (199, 50)]
    json_codec = CODECS["json"]()
    pages = [QuotePage([quote("AAPL", s) for s in seqs]) for seqs in (range(100), range(100, 200), range(200, 250))]
    size = sum(len(json_codec.encode(each)) for each in pages)
    assert summary.measurements["payload_bytes"] == (size / 250, "bytes")


@pytest.mark.parametrize(
    ("bend", "errors"),
    [
        (lambda items: items[:-1], {"missing_message": 151}),  # a short page is the last one
        (lambda items: [*items, items[-1]], {"wrong_message": 150, "surplus_message": 1}),
        (lambda items: [items[1], items[0], *items[2:]], {"wrong_message": 8}),
    ],
)
async def test_pages_that_are_not_what_was_asked_for_are_errors(bend: Any, errors: dict[str, int]) -> None:
    drive, summary = await run_over(stream(producer="paged", page=50, warmup=0), [Asked(bend)])

    assert drive.raw.errors == errors
    assert summary.void


@pytest.mark.parametrize(
    ("asked", "page_size", "produced", "inbox"), [(100, 1000, 100, 0), (100, 50, 100, 0), (100, 30, 120, 20)]
)
async def test_a_quiet_reader_of_pages_holds_the_rest_of_its_page_and_nothing_else_is_made(
    asked: int, page_size: int, produced: int, inbox: int
) -> None:
    _, noted = await quiet_after(backpressure(producer="paged", asked=asked, page=page_size))

    assert noted == {"produced": produced, "inbox": inbox, "outbound": 0}


async def test_a_reader_that_goes_on_turning_pages_is_bounded_by_nothing() -> None:
    _, noted = await quiet_after(backpressure(producer="paged", page=10, consumer="eager"))

    assert noted["produced"] > 1_000
    assert noted["inbox"] == noted["produced"] - 100


def test_the_rest_of_a_page_is_demand_and_its_place_is_known() -> None:
    op = backpressure(producer="paged", page=30, asked=100)
    looks = iter(range(0, 10_000, 50))

    def look() -> tuple[dict[str, Any], dict[str, Any]]:
        at = next(looks) * 1_000_000
        server = {"t_ns": at, "produced": 120, "outbound": 0, "rss_bytes": 0}
        queues = {"backlog_messages": None, "backlog_bytes": 0, "send_queue_bytes": 0}
        driver = {"t_ns": at, "consumed": 100, "inbox": 20, "held": None, "rss_bytes": 0}
        return server | queues, driver | {"receive_queue_bytes": 0, "read_bytes": 30_000}

    raw, seen = Raw(), Watch(op._demand, op.quiet_s, op.settle_s, 0, 2**40)
    watch(seen, look, clock=lambda: 0, sleep=lambda _: None)
    seen.into(raw)
    summary = op.summarize(raw, CODECS["json"](), {"frame_bytes": 2})

    assert summary.findings["bounded_by"] == "demand"
    assert summary.measurements["plateau_messages"] == (20, "messages")
    places = {place: summary.measurements[f"surplus_{place}"][0] for place in ("server", "client", "kernel")}
    assert places == {"server": 0, "client": 20, "kernel": 0}
    assert summary.measurements["surplus_unaccounted"] == (0, "messages")


@pytest.mark.parametrize("page_size", [0, PAGE_MAX + 1])
@pytest.mark.parametrize("operation", ["stream", "backpressure"])
def test_a_page_that_cannot_be_is_a_mistake_in_the_configuration(operation: str, page_size: int) -> None:
    _, problems = check(config(operation, operation_={"producer": "paged", "page": page_size}))

    assert problems == [f"operation.page: expected a whole number from 1 to 100000, got {page_size}"]


@pytest.mark.parametrize("operation", ["stream", "backpressure"])
def test_the_largest_message_is_a_page(operation: str) -> None:
    codec, few = CODECS["json"](), {"page": 50}
    awaited = cell(operation, operation_=few).operation
    pages = cell(operation, operation_={**few, "producer": "paged"}).operation

    assert awaited.largest_message_bytes(codec) == 0
    assert pages.largest_message_bytes(codec) == page_bytes(codec, "AAPL", 50, 50) > 50 * 80


# What a stranger sees


@pytest.mark.parametrize(("kind", "service"), [(Http, Service), (Sse, Service), (HttpThreads, BlockingService)])
async def test_pages_over_http(kind: Any, service: Any) -> None:
    adapter = kind(codec=CODECS["json"](), max_message_bytes=2**20)
    async with adapter.serve(service(), ANY_PORT) as server:

        async def seqs(query: str) -> list[int]:
            reply = await fetch(server.address, f"/quotes/AAPL{query}")
            assert (reply.status, reply.kind) == (200, "application/json")
            return [item["seq"] for item in json.loads(reply.body)["items"]]

        assert await seqs("?after=-1&limit=3") == [0, 1, 2]
        assert await seqs("?limit=2&after=2") == [3, 4]
        assert await seqs("?limit=2") == [0, 1]
        assert await seqs("?after=41") == list(range(42, 142))
        for one in ("", "?seq=42"):
            assert json.loads((await fetch(server.address, f"/quotes/AAPL{one}")).body)["seq"] == 42
        assert await seqs("?limit=7") == list(range(7))
        assert await seqs("?limit=7&after=6") == list(range(7, 14))
        assert (await fetch(server.address, "/produced")).body == b'{"produced":14}'


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("limit=0", "limit must be from 1 to 100,000"),
        ("limit=100001", "limit must be from 1 to 100,000"),
        ("after=-2", "after must be -1 (from the first on) or the seq of a quote"),
        *(
            (query, "usage: GET /quotes/{symbol}?after=<int>&limit=<int>")
            for query in ("limit=", "after=", "limit=ten", "after=1.5", "limit=1&limit=2", "limit=1&seq=2", "limit")
        ),
        *((query, "usage: GET /quotes/{symbol}?seq=<int>") for query in ("seq=1&limit=2", "page=2")),
    ],
)
async def test_a_bad_page_is_answered_400_with_one_line(query: str, said: str) -> None:
    async with Http(codec=CODECS["json"](), max_message_bytes=2**20).serve(Service(), ANY_PORT) as server:
        reply = await fetch(server.address, f"/quotes/AAPL?{query}")

    assert (reply.status, reply.body.decode()) == (400, f"invalid_argument: {said}")
