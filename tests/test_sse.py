"""What only server-sent events can get wrong, read by a parser that was written for these tests."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
from collections.abc import AsyncGenerator
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.api import (
    CallFailed,
    Codec,
    ConnectionLost,
    Message,
    Method,
    NotRepresentable,
    Shape,
    Unsupported,
)
from adapters.codecs import CODECS
from adapters.http_items import Inbox
from adapters.messages import METHODS, Quote, QuoteRequest, StreamRequest, SymbolRequest
from adapters.sse import Sse
from adapters.sse_events import Events
from runner.quotes import quote
from runner.service import Service
from tests.http_strangers import ANY_PORT, chunked, closed, fetch, reciting, until
from tests.message_values import UNTIMED

T = TypeVar("T")
QUOTE, QUOTES = METHODS["quote"], METHODS["quotes"]
TEXTS = [
    "I am\na text.\n\n  Hello ",
    "",
    " ",
    "\n",
    "\n\n",
    "data: x",
    ":",
    "event: end",
    " two  spaces ",
    "ü 漢😀",
]


class Plain(Codec):
    """Text as it is: the symbol of a quote and nothing else, line feeds and all."""

    name, mime, text = "plain", "text/plain", True

    def encode(self, message: Message) -> bytes:
        return str(message.symbol).encode()

    def decode(self, kind: type[T], data: Any) -> T:
        return kind(bytes(data).decode(), 0, 0.0, 0.0, 0) if kind is Quote else kind(bytes(data).decode())  # type: ignore[call-arg]


class Speaker(Service):
    """The real service; `says`: what its stream of quotes says instead, an exception at its end for some."""

    def __init__(self, *says: str | Exception) -> None:
        super().__init__()
        self.says = says
        self.left = asyncio.Event()

    async def server_stream(self, method: Method, request: Message) -> AsyncGenerator[Message, None]:
        try:
            if self.says:
                for text in self.says:
                    if isinstance(text, Exception):
                        raise text
                    yield Quote(text, 0, 0.0, 0.0, 0)
                return
            async for item in super().server_stream(method, request):
                yield item
        finally:
            self.left.set()


def adapter(codec: Codec | str = "json", limit: int = 1000, **knobs: Any) -> Sse:
    return Sse(codec=CODECS[codec]() if isinstance(codec, str) else codec, max_message_bytes=limit, **knobs)


def parsed(body: bytes) -> list[tuple[str, str]]:
    """Events as a browser sees them (type, data), by the letter of the format."""
    events, kind, data = [], "message", ""
    for line in body.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        field, _, value = line.partition(":")
        value = value[1:] if value[:1] == " " else value
        if not line:
            if data:
                events.append((kind, data[:-1]))
            kind, data = "message", ""
        elif field == "event":
            kind = value
        elif field == "data":
            data += value + "\n"
    return events


# What a stranger sees


async def test_a_stream_is_events_and_says_when_it_is_over() -> None:
    async with asyncio.timeout(10), adapter().serve(Service(), ANY_PORT) as server:
        reply = await fetch(server.address, "/quotes/AAPL/stream?count=5")
        one = await fetch(server.address, "/quotes/AAPL?seq=3")
        none = await fetch(server.address, "/quotes/AAPL/stream?count=0")
        bad = await fetch(server.address, "/quotes/AAPL/stream?count=-1")

    assert (reply.status, reply.kind) == (200, "text/event-stream")
    assert reply.headers["cache-control"] == "no-store"
    *items, end = parsed(reply.body)
    assert [(kind, json.loads(data)["seq"]) for kind, data in items] == [("message", seq) for seq in range(5)]
    assert end == ("end", "5")
    assert (one.kind, json.loads(one.body)) == ("application/json", json.loads(items[3][1]))
    assert parsed(none.body) == [("end", "0")]
    assert (bad.status, bad.body[:17]) == (400, b"invalid_argument:")


async def test_a_text_survives_its_line_feeds_spaces_and_emptiness() -> None:
    sse = adapter(Plain())
    async with asyncio.timeout(10), sse.serve(Speaker(*TEXTS), ANY_PORT) as server:
        reply = await fetch(server.address, "/quotes/AAPL/stream?count=1")
        assert parsed(reply.body) == [*(("message", text) for text in TEXTS), ("end", str(len(TEXTS)))]
        async with sse.connect(server.address) as peer:
            stream = peer.server_stream(QUOTES, StreamRequest("A", 1))
            assert [item.symbol async for item in stream] == TEXTS


@pytest.mark.parametrize("codec", ["protobuf", "cbor", "msgpack"])
async def test_a_binary_codec_travels_as_base64(codec: str) -> None:
    sse = adapter(codec)
    async with asyncio.timeout(10), sse.serve(Service(), ANY_PORT) as server:
        reply = await fetch(server.address, "/quotes/AAPL/stream?count=3")

    *items, _ = parsed(reply.body)
    assert [base64.b64decode(data) for _, data in items] == [sse.codec.encode(quote("AAPL", n)) for n in range(3)]


@pytest.mark.parametrize("codec", ["json", "protobuf"])
async def test_the_cost_in_bytes_is_what_goes_over_the_wire(codec: str) -> None:
    sse = adapter(codec)
    async with asyncio.timeout(10), sse.serve(Service(), ANY_PORT) as server:
        reader, writer = await asyncio.open_connection(*server.address)
        writer.write(b"GET /quotes/AAPL/stream?count=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        rest = await reader.read()
        await closed(writer)

    size = len(sse.codec.encode(quote("AAPL", 0)))
    first = rest.index(b"\n\n\r\n") + 4
    assert sse.wire_bytes(size) == first
    assert rest[first:] == b"14\r\nevent: end\ndata: 1\n\n\r\n0\r\n\r\n"


async def test_an_error_in_mid_stream_is_an_event() -> None:
    broken = CallFailed("out_of_quotes", "none left\nsorry")
    sse = adapter(Plain())
    async with asyncio.timeout(10), sse.serve(Speaker("a", "b", broken), ANY_PORT) as server:
        reply = await fetch(server.address, "/quotes/AAPL/stream?count=9")
        assert parsed(reply.body) == [
            ("message", "a"),
            ("message", "b"),
            ("error", "out_of_quotes: none left\nsorry"),
        ]
        async with sse.connect(server.address) as peer:
            before, items = peer._wire, []  # type: ignore[attr-defined]
            with pytest.raises(CallFailed, match="out_of_quotes: none left\nsorry"):
                async for item in peer.server_stream(QUOTES, StreamRequest("A", 9)):
                    items.append(item.symbol)
            assert items == ["a", "b"]
            assert peer._wire is before  # type: ignore[attr-defined]


async def test_a_carriage_return_in_a_text_is_refused_not_changed() -> None:
    sse = adapter(Plain())
    async with asyncio.timeout(10), sse.serve(Speaker("good", "a\r\nb"), ANY_PORT) as server:
        async with sse.connect(server.address) as peer:
            stream = peer.server_stream(QUOTES, StreamRequest("A", 9))
            assert (await anext(stream)).symbol == "good"
            with pytest.raises(CallFailed, match="codec: an event cannot carry a carriage return"):
                await anext(stream)


# Readers that do not read


async def test_a_stream_whose_reader_stalls_is_freed_and_the_others_go_on() -> None:
    sse, service = adapter(send_timeout_s=0.1), Speaker()
    async with asyncio.timeout(20), sse.serve(service, ANY_PORT) as server, sse.connect(server.address) as other:
        async with sse.connect(server.address) as peer:
            stream = peer.server_stream(METHODS["quotes.unbounded"], SymbolRequest("A"))
            assert (await anext(stream)).seq == 0
            await service.left.wait()
            assert await other.unary(QUOTE, QuoteRequest("A")) == quote("A", 42)
            taken = 1
            with pytest.raises(ConnectionLost):
                async for _ in stream:
                    taken += 1
            assert 0 < taken <= service.produced
            with pytest.raises(ConnectionLost):
                await peer.unary(QUOTE, QuoteRequest("A"))
        await until(lambda: len(server.server.server_state.connections) == 1)  # type: ignore[attr-defined]
        assert await other.unary(QUOTE, QuoteRequest("A")) == quote("A", 42)


async def test_a_slow_producer_is_not_a_stalled_reader() -> None:
    sse = adapter(send_timeout_s=0.02)
    async with asyncio.timeout(10), sse.serve(Service(), ANY_PORT) as server, sse.connect(server.address) as peer:
        stream = peer.server_stream(QUOTES, StreamRequest("A", 3, 60))
        assert [item.seq async for item in stream] == [0, 1, 2]


# Servers that are not ours


async def test_a_stream_without_an_end_event_is_lost_data() -> None:
    item = b"data: " + adapter().codec.encode(quote("A", 0)) + b"\n\n"
    short = chunked("text/event-stream", item)
    miscounted = chunked("text/event-stream", item, b"event: end\ndata: 2\n\n")
    async with asyncio.timeout(10), reciting(short, miscounted) as address, adapter().connect(address) as peer:
        for why in ("the stream stopped after 1 items without an end", "1 items arrived, 2 were sent"):
            stream = peer.server_stream(QUOTES, StreamRequest("A", 2))
            assert await anext(stream) == quote("A", 0)
            with pytest.raises(CallFailed, match=f"data_loss: {why}"):
                await anext(stream)


async def test_an_item_that_is_no_base64_is_a_codec_error() -> None:
    answer = chunked("text/event-stream", b"data: %%%\n\n", b"event: end\ndata: 1\n\n")
    async with asyncio.timeout(10), reciting(answer) as address, adapter("cbor").connect(address) as peer:
        with pytest.raises(CallFailed, match="codec: an event that is no base64"):
            await anext(peer.server_stream(QUOTES, StreamRequest("A", 2)))


@pytest.mark.parametrize("codec", ["json", "protobuf"])
async def test_limits_hold_on_either_end_alone(codec: str) -> None:
    small, large = adapter(codec, 30), adapter(codec)
    for serving, asking in ((small, large), (large, small)):
        async with asyncio.timeout(10), serving.serve(Service(), ANY_PORT) as server:
            async with asking.connect(server.address) as peer:
                with pytest.raises(Unsupported, match="bytes is over the limit of 30"):
                    await anext(peer.server_stream(QUOTES, StreamRequest("AAPL", 5)))
                with pytest.raises(Unsupported, match="bytes is over the limit of 30"):
                    await peer.unary(QUOTE, QuoteRequest("AAPL", 2**40))


# The format


@UNTIMED
@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=20)),
    st.lists(st.integers(0, 999)),
    st.sampled_from([b"\n", b"\r", b"\r\n"]),
    st.booleans(),
)
def test_any_text_comes_out_whatever_ends_the_lines_and_wherever_they_are_cut(
    texts: list[str], cuts: list[int], line_end: bytes, text: bool
) -> None:
    items, events = [item.encode() for item in texts], Events(text=text)
    whole = b": hello\n\nid: 7\nretry: 10\n\n" + b"".join(map(events.item, items)) + events.end(len(items))
    whole = whole.replace(b"\n", line_end)
    places = sorted({0, len(whole), *(place % (len(whole) + 1) for place in cuts)})
    reader, inbox = events.reader(100), Inbox()
    for a, b in itertools.pairwise(places):
        reader.feed(whole[a:b], inbox)
    reader.finish(inbox)

    assert list(inbox) == items


@pytest.mark.parametrize("text", [True, False])
def test_an_event_of_exactly_the_limit_passes_and_a_longer_one_is_not_waited_for(text: bool) -> None:
    events = Events(text=text)
    for size in (97, 98, 99, 100):
        for step in (1, 1000):
            reader, inbox, data = events.reader(size), Inbox(), events.item(b"x" * size)
            for start in range(0, len(data), step):
                reader.feed(data[start : start + step], inbox)
            assert list(inbox) == [b"x" * size]
    reader, inbox = events.reader(100), Inbox()
    reader.feed(events.item(b"x" * 101), inbox)
    assert isinstance(inbox[0], Unsupported)
    reader, inbox = events.reader(100), Inbox()
    reader.feed(b"data: " + b"x" * 200, inbox)
    assert isinstance(inbox[0], Unsupported)


def test_a_carriage_return_cannot_be_written() -> None:
    with pytest.raises(NotRepresentable):
        Events(text=True).item(b"a\rb")


def test_only_single_answers_and_streams_from_the_server_are_declared() -> None:
    assert adapter().shapes == {Shape.UNARY, Shape.SERVER_STREAM}
