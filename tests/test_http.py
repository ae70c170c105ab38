"""What only REST over HTTP/1.1 can get wrong, and what a stranger sees of it."""

from __future__ import annotations

import asyncio
import itertools
import json
import signal
import socket
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import AsyncExitStack, aclosing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.api import Backlog, CallFailed, ConnectionLost, Message, Method, Peer, Shape, Unsupported
from adapters.codecs import CODECS
from adapters.http import Http
from adapters.http_items import Frames, Framing, Inbox, Lines
from adapters.messages import METHODS, Body, Empty, Produced, Quote, QuoteRequest, StreamRequest, SymbolRequest
from runner.quotes import quote
from runner.service import Service
from runner.tcp import tcp_queues
from tests.http_strangers import ANY_PORT, chunked, closed, fetch, reciting, still, until
from tests.message_values import UNTIMED

QUOTE, QUOTES, ECHO = METHODS["quote"], METHODS["quotes"], METHODS["echo"]
COLLECT = Method("quotes.collect", Shape.CLIENT_STREAM, Quote, Produced)
PARSERS = ["httptools", "h11"]


@pytest.fixture(autouse=True)
def collect(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method that uploads; none is served yet."""
    monkeypatch.setitem(METHODS, COLLECT.name, COLLECT)


class Quotes(Service):
    """The real service, a method that takes an upload, and a stream that fails after `good` items."""

    def __init__(self, good: int = 3, **knobs: Any) -> None:
        super().__init__(**knobs)
        self.good = good
        self.left = asyncio.Event()
        self.taken = 0

    async def client_stream(self, method: Method, requests: AsyncIterable[Message]) -> Message:
        async for request in requests:
            self.taken += 1
            if request.seq == 13:
                raise CallFailed("invalid_argument", "13 is unlucky")
        return Produced(self.taken)

    async def server_stream(self, method: Method, request: Message) -> AsyncGenerator[Message, None]:
        if getattr(request, "symbol", "") == "FAILS":
            for seq in range(self.good):
                yield quote("FAILS", seq)
            raise CallFailed("out_of_quotes", 'none left, "sorry"\nreally')
        try:
            async with aclosing(super().server_stream(method, request)) as items:
                async for item in items:
                    yield item
        finally:
            self.left.set()


def adapter(codec: str = "json", limit: int = 1000, **knobs: Any) -> Http:
    return Http(codec=CODECS[codec](), max_message_bytes=limit, **knobs)


async def uploaded(*seqs: int) -> AsyncGenerator[Quote, None]:
    for seq in seqs:
        yield quote("A", seq)


# What a stranger sees


@pytest.mark.parametrize("parser", PARSERS)
async def test_a_quote_is_a_resource(parser: Any) -> None:
    async with asyncio.timeout(10), adapter(parser=parser).serve(Service(), ANY_PORT) as server:
        reply = await fetch(server.address, "/quotes/AAPL?seq=42")

        assert (reply.status, reply.kind) == (200, "application/json")
        assert list(json.loads(reply.body)) == ["symbol", "seq", "bid", "ask", "epochMicros"]
        assert json.loads(reply.body)["seq"] == 42
        assert (await fetch(server.address, "/quotes/AAPL")).body == reply.body  # 42 is the default
        assert json.loads((await fetch(server.address, "/quotes/B%20%2F%C3%BC?seq=7")).body)["symbol"] == "B /ü"
        assert (await fetch(server.address, "/produced")).body == b'{"produced":0}'
        assert (await fetch(server.address, "/")).body == b"Hello World!"


@pytest.mark.parametrize("parser", PARSERS)
async def test_a_stream_is_one_line_per_quote_in_a_chunk_of_its_own(parser: Any) -> None:
    http = adapter(parser=parser)
    async with asyncio.timeout(10), http.serve(Service(), ANY_PORT) as server:
        reply = await fetch(server.address, "/quotes/AAPL/stream?count=3&delayMs=1")
        assert (reply.status, reply.kind) == (200, "application/x-ndjson")
        assert reply.body.endswith(b"\n")
        assert [json.loads(line)["seq"] for line in reply.body.splitlines()] == [0, 1, 2]

        reader, writer = await asyncio.open_connection(*server.address)
        writer.write(b"GET /quotes/AAPL/stream?count=1 HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        line = reply.body.splitlines(keepends=True)[0]
        expected = b"%x\r\n%b\r\n0\r\n\r\n" % (len(line), line)
        assert await reader.readexactly(len(expected)) == expected
        assert http.wire_bytes(len(line) - 1) == len(expected) - len(b"0\r\n\r\n")
        await closed(writer)


async def test_a_binary_codec_streams_its_messages_behind_their_lengths() -> None:
    http = adapter("protobuf")
    async with asyncio.timeout(10), http.serve(Service(), ANY_PORT) as server:
        reply = await fetch(server.address, "/quotes/AAPL/stream?count=2")

    assert reply.kind == 'application/x-frames; of="application/vnd.google.protobuf"'
    items = [http.codec.encode(quote("AAPL", seq)) for seq in (0, 1)]
    assert reply.body == b"".join(len(item).to_bytes(4, "big") + item for item in items)
    assert http.wire_bytes(len(items[0])) == len(items[0]) + 4 + 4 + 2


async def test_echo_takes_and_gives_any_bytes_and_compresses_nothing() -> None:
    async with asyncio.timeout(10), adapter(limit=100_000).serve(Service(), ANY_PORT) as server:
        for body in (b"", b"\0\xff\r\n\r\n", b"a" * 100_000):
            reply = await fetch(server.address, "/echo", "POST", body, {"Accept-Encoding": "gzip, br"})
            assert (reply.status, reply.kind, reply.body) == (200, "application/octet-stream", body)
            assert reply.headers["content-length"] == str(len(body))
            assert "content-encoding" not in reply.headers
        in_chunks = await fetch(server.address, "/echo", "POST", iter([b"ab", b"c"]))
        assert in_chunks.body == b"abc"


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize(
    ("verb", "path", "body", "status", "text"),
    [
        ("GET", "/nonsense", None, 404, "not_found: nothing at /nonsense"),
        ("GET", "/quotes", None, 404, "not_found: nothing at /quotes"),
        ("GET", "/quotes/A/stream/more", None, 404, "not_found: nothing at /quotes/A/stream/more"),
        ("POST", "/quotes/A", b"", 405, "method_not_allowed: /quotes/A takes GET"),
        ("GET", "/echo", None, 405, "method_not_allowed: /echo takes POST"),
        ("GET", "/quotes/A?seq=x", None, 400, "invalid_argument: usage: GET /quotes/{symbol}?seq=<int>"),
        ("GET", "/quotes/A?seq=1&seq=2", None, 400, "invalid_argument: usage: GET /quotes/{symbol}?seq=<int>"),
        ("GET", "/quotes/%FF", None, 400, "invalid_argument: usage: GET /quotes/{symbol}?seq=<int>"),
        ("GET", "/run?now=1", None, 400, "invalid_argument: usage: GET /run"),
        (
            "GET",
            "/quotes/A/stream",
            None,
            400,
            "invalid_argument: usage: GET /quotes/{symbol}/stream?count=<int>&delayMs=<int>",
        ),
        ("GET", "/quotes/A/stream?count=-1", None, 400, "invalid_argument: count and delayMs must be 0 or more"),
        ("POST", "/quotes/collect", b"{}\n", 400, "codec: "),
        ("POST", "/echo", bytes(1001), 413, "unsupported: a message of 1,001 bytes is over the limit of 1,000"),
    ],
)
async def test_what_is_asked_wrong_is_a_status_and_a_sentence(
    parser: Any, verb: str, path: str, body: bytes | None, status: int, text: str
) -> None:
    async with asyncio.timeout(10), adapter(parser=parser).serve(Quotes(), ANY_PORT) as server:
        reply = await fetch(server.address, path, verb, body)

        assert (reply.status, reply.kind) == (status, "text/plain; charset=utf-8")
        assert reply.body.decode().startswith(text)
        assert (await fetch(server.address, "/quotes/A")).status == 200


async def test_a_chunked_upload_over_the_limit_is_refused_before_it_is_all_there() -> None:
    async with asyncio.timeout(10), adapter().serve(Quotes(), ANY_PORT) as server:
        reader, writer = await asyncio.open_connection(*server.address)
        writer.write(b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        writer.write(b"3e9\r\n" + bytes(1001) + b"\r\n")  # and no last chunk
        assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 413 ")
        await closed(writer)


@pytest.mark.parametrize("parser", PARSERS)
async def test_a_stranger_uploads_lines(parser: Any) -> None:
    http = adapter(parser=parser)
    lines = [http.codec.encode(quote("A", seq)) + b"\n" for seq in range(3)]
    last_unfinished = b"".join(lines)[:-1]
    async with asyncio.timeout(10), http.serve(Quotes(), ANY_PORT) as server:
        for body in (iter(lines), b"".join(lines), last_unfinished):
            service_so_far = json.loads((await fetch(server.address, "/quotes/collect", "POST", body)).body)
        assert service_so_far == {"produced": 9}
        refused = await fetch(server.address, "/quotes/collect", "POST", b"x" * 1001 + b"\n")
        assert (refused.status, refused.body.decode()[:12]) == (413, "unsupported:")


async def test_a_stranger_that_leaves_in_the_middle_of_an_upload_ends_it() -> None:
    service = Quotes()
    http = adapter()
    async with asyncio.timeout(10), http.serve(service, ANY_PORT) as server:
        _, writer = await asyncio.open_connection(*server.address)
        line = http.codec.encode(quote("A", 1)) + b"\n"
        writer.write(b"POST /quotes/collect HTTP/1.1\r\nHost: x\r\nContent-Length: 999\r\n\r\n" + line)
        await until(lambda: service.taken)
        writer.transport.abort()
        await until(lambda: not server.server.server_state.tasks)  # type: ignore[attr-defined]


# Our client


@pytest.mark.parametrize("symbol", ["", "a/b", "..", "%2F", "ü 漢😀", "a?b#c&d=e+f", "\r\nX: y", "\0", "stream"])
async def test_any_symbol_survives_the_path(symbol: str) -> None:
    async with asyncio.timeout(10), adapter().serve(Service(), ANY_PORT) as server:
        async with adapter().connect(server.address) as peer:
            assert await peer.unary(QUOTE, QuoteRequest(symbol, -(2**63))) == quote(symbol, -(2**63))
            stream = peer.server_stream(QUOTES, StreamRequest(symbol, 2))
            assert [item async for item in stream] == [quote(symbol, 0), quote(symbol, 1)]


async def test_a_message_of_exactly_the_limit_passes_and_one_more_byte_is_unsupported() -> None:
    http = adapter()
    async with asyncio.timeout(10), http.serve(Service(), ANY_PORT) as server, http.connect(server.address) as peer:
        assert await peer.unary(ECHO, Body(bytes(1000))) == Body(bytes(1000))
        with pytest.raises(Unsupported, match="a message of 1,001 bytes is over the limit of 1,000"):
            await peer.unary(ECHO, Body(bytes(1001)))
        assert await peer.unary(QUOTE, QuoteRequest("A")) == quote("A", 42)


@pytest.mark.parametrize("codec", ["json", "protobuf"])
async def test_limits_hold_on_either_end_alone(codec: str) -> None:
    small, large = adapter(codec, 30), adapter(codec, 100_000)  # a quote is 80 or 35 bytes
    async with asyncio.timeout(10), AsyncExitStack() as stack:
        for serving, asking in ((small, large), (large, small)):
            server = await stack.enter_async_context(serving.serve(Quotes(), ANY_PORT))
            peer = await stack.enter_async_context(asking.connect(server.address))
            for _ in range(2):
                with pytest.raises(Unsupported, match="bytes is over the limit of 30"):
                    await peer.unary(QUOTE, QuoteRequest("AAPL", 2**40))
                with pytest.raises(Unsupported, match="bytes is over the limit of 30"):
                    await anext(peer.server_stream(QUOTES, StreamRequest("AAPL", 5)))
                with pytest.raises(Unsupported, match="bytes is over the limit of 30"):
                    await peer.client_stream(COLLECT, uploaded(1, 2, 3))
                assert await peer.unary(ECHO, Body(b"x")) == Body(b"x")
        assert await peer.unary(ECHO, Body(bytes(25))) == Body(bytes(25))


async def test_an_answer_in_many_pieces_over_the_limit_names_its_size() -> None:
    async with asyncio.timeout(10), adapter(limit=10**6).serve(Service(), ANY_PORT) as server:
        async with adapter(limit=200_000).connect(server.address) as peer:
            answer = peer._wire.ask(  # type: ignore[attr-defined]
                b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n" + bytes(900_000)
            )
            with pytest.raises(Unsupported, match="a message of 900,000 bytes is over the limit of 200,000"):
                await answer
            assert await peer.unary(QUOTE, QuoteRequest("A")) == quote("A", 42)


async def test_a_second_call_on_a_busy_connection_is_refused() -> None:
    http = adapter()
    async with asyncio.timeout(10), http.serve(Quotes(), ANY_PORT) as server, http.connect(server.address) as peer:
        stream = peer.server_stream(QUOTES, StreamRequest("A", 10))
        assert await anext(stream) == quote("A", 0)
        with pytest.raises(CallFailed, match="busy"):
            await peer.unary(QUOTE, QuoteRequest("A"))
        with pytest.raises(CallFailed, match="busy"):
            await peer.client_stream(COLLECT, uploaded(1))
        with pytest.raises(CallFailed, match="busy"):
            await anext(peer.server_stream(QUOTES, StreamRequest("A", 10)))
        assert [item.seq async for item in stream] == list(range(1, 10))
        assert await peer.unary(QUOTE, QuoteRequest("A")) == quote("A", 42)


@pytest.mark.parametrize("parser", PARSERS)
async def test_leaving_a_stream_costs_the_connection_and_the_next_one_is_open_already(parser: Any) -> None:
    http, service = adapter(parser=parser), Quotes()
    async with asyncio.timeout(10), http.serve(service, ANY_PORT) as server, http.connect(server.address) as peer:
        before = peer._wire  # type: ignore[attr-defined]
        async with aclosing(peer.server_stream(METHODS["quotes.unbounded"], SymbolRequest("A"))) as items:
            assert [(await anext(items)).seq for _ in range(5)] == list(range(5))
        after = peer._wire  # type: ignore[attr-defined]
        assert after is not before
        assert after.transport.get_extra_info("peername")
        await service.left.wait()
        made = service.produced
        assert await peer.unary(QUOTE, QuoteRequest("A")) == quote("A", 42)
        assert service.produced == made
        await until(lambda: len(tcp_queues(server.address.port, local=True) or [0]) == 1)


async def test_a_stream_that_was_read_to_its_end_keeps_the_connection() -> None:
    http = adapter()
    async with asyncio.timeout(10), http.serve(Quotes(), ANY_PORT) as server, http.connect(server.address) as peer:
        before = peer._wire  # type: ignore[attr-defined]
        for count in (0, 1, 700):
            stream = peer.server_stream(QUOTES, StreamRequest("A", count))
            assert [item.seq async for item in stream] == list(range(count))
        assert await peer.client_stream(COLLECT, uploaded(1, 2)) == Produced(2)
        assert peer._wire is before  # type: ignore[attr-defined]
        assert server.server.server_state.total_requests == 4  # type: ignore[attr-defined]


@pytest.mark.parametrize("good", [0, 1, 300])
@pytest.mark.parametrize("codec", ["json", "protobuf"])
async def test_an_error_in_mid_stream_arrives_behind_the_items_before_it(codec: str, good: int) -> None:
    http = adapter(codec)
    serving = http.serve(Quotes(good), ANY_PORT)
    async with asyncio.timeout(10), serving as server, http.connect(server.address) as peer:
        before, items = peer._wire, []  # type: ignore[attr-defined]
        with pytest.raises(CallFailed, match='out_of_quotes: none left, "sorry"\nreally') as failed:
            async for item in peer.server_stream(QUOTES, StreamRequest("FAILS", 9)):
                items.append(item)
        assert failed.value.kind == "out_of_quotes"
        assert items == [quote("FAILS", seq) for seq in range(good)]
        assert await peer.unary(QUOTE, QuoteRequest("A")) == quote("A", 42)
        assert peer._wire is before  # type: ignore[attr-defined]
        if codec == "json" and good:
            reply = await fetch(server.address, "/quotes/FAILS/stream?count=9")
            last = json.loads(reply.body.splitlines()[-1])
            assert last == {"error": 'out_of_quotes: none left, "sorry"\nreally'}


@pytest.mark.parametrize("parser", PARSERS)
async def test_an_upload_that_is_answered_early_leaves_the_connection_good(parser: Any) -> None:
    http, endless = adapter(parser=parser), asyncio.Event()

    async def requests() -> AsyncGenerator[Quote, None]:
        yield quote("A", 12)
        yield quote("A", 13)
        await endless.wait()

    async with asyncio.timeout(10), http.serve(Quotes(), ANY_PORT) as server, http.connect(server.address) as peer:
        before = peer._wire  # type: ignore[attr-defined]
        for _ in range(2):
            with pytest.raises(CallFailed, match="13 is unlucky"):
                await peer.client_stream(COLLECT, requests())
        assert await peer.unary(QUOTE, QuoteRequest("A")) == quote("A", 42)
        assert peer._wire is before  # type: ignore[attr-defined]


async def test_an_upload_whose_source_fails_says_why_and_ends_on_the_server() -> None:
    class Broken(Exception):
        pass

    async def requests() -> AsyncGenerator[Quote, None]:
        yield quote("A", 1)
        raise Broken

    http, service = adapter(), Quotes()
    async with asyncio.timeout(10), http.serve(service, ANY_PORT) as server, http.connect(server.address) as peer:
        with pytest.raises(Broken):
            await peer.client_stream(COLLECT, requests())
        assert await peer.client_stream(COLLECT, uploaded()) in (Produced(0), Produced(1))


async def test_an_upload_waits_for_a_service_that_takes_nothing() -> None:
    class Slow(Quotes):
        async def client_stream(self, method: Method, requests: AsyncIterable[Message]) -> Message:
            await self.left.wait()
            return await super().client_stream(method, requests)

    sent = 0

    async def requests() -> AsyncGenerator[Quote, None]:
        nonlocal sent
        while sent < 200_000:
            sent += 1
            yield quote("A", 1)

    http, service = adapter(), Slow()
    async with asyncio.timeout(60), http.serve(service, ANY_PORT) as server, http.connect(server.address) as peer:
        call = asyncio.create_task(peer.client_stream(COLLECT, requests()))
        await until(lambda: sent)
        assert await still(lambda: sent) < 200_000
        service.left.set()
        assert await call == Produced(200_000)


async def test_a_cancelled_call_takes_its_connection_with_it() -> None:
    """A late answer to nobody would be the next call's answer."""

    class Slow(Service):
        async def unary(self, method: Method, request: Message) -> Message:
            await asyncio.sleep(30)
            return await super().unary(method, request)

    http = adapter()
    async with asyncio.timeout(10), http.serve(Slow(), ANY_PORT) as server, http.connect(server.address) as peer:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await peer.unary(ECHO, Body(b"x"))
        with pytest.raises(ConnectionLost):
            await peer.unary(QUOTE, QuoteRequest("A"))


async def test_a_quiet_reader_stops_the_writer_and_what_it_holds_is_counted() -> None:
    http, service = adapter(), Quotes()
    async with asyncio.timeout(30), http.serve(service, ANY_PORT) as server, http.connect(server.address) as peer:
        async with aclosing(peer.server_stream(METHODS["quotes.unbounded"], SymbolRequest("A"))) as items:
            assert (await anext(items)).seq == 0
            before = await still(lambda: service.produced)
            held, backlog = peer.held(), server.backlog()
            assert held is not None
            assert held > 256
            assert backlog is not None
            assert backlog.size_bytes > 0
            assert held == len(peer._wire.inbox)  # type: ignore[attr-defined]
            taken = [(await anext(items)).seq for _ in range(held)]
            assert taken == list(range(1, held + 1))
            assert peer.held() == 0  # nothing was read meanwhile
            assert (await anext(items)).seq == held + 1
            while service.produced == before:  # and the writer goes on
                await anext(items)


async def test_three_hundred_connections_have_three_hundred_calls_under_way_at_once() -> None:
    class Rendezvous(Service):
        here = 0
        all_here = asyncio.Event()

        async def unary(self, method: Method, request: Message) -> Message:
            self.here += 1
            if self.here == 300:
                self.all_here.set()
            await self.all_here.wait()
            return await super().unary(method, request)

    http = adapter()
    async with asyncio.timeout(30), http.serve(Rendezvous(), ANY_PORT) as server, AsyncExitStack() as stack:
        peers: list[Peer] = [await stack.enter_async_context(http.connect(server.address)) for _ in range(300)]
        bodies = [Body(b"%d" % i) for i in range(300)]
        calls = [peer.unary(ECHO, body) for peer, body in zip(peers, bodies, strict=True)]
        assert await asyncio.gather(*calls) == bodies


# Servers that are not ours


@pytest.mark.parametrize("step", [0, 1])
async def test_an_answer_that_arrives_in_any_pieces_is_put_together(step: int) -> None:
    data = adapter().codec.encode(quote("A", 42))
    whole = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(data), data)
    in_chunks = chunked("application/json", data[:10], data[10:])
    lines = chunked("application/x-ndjson", data + b"\n" + data[:5], data[5:], b"\n\n" + data + b"\r\n")
    async with asyncio.timeout(10), reciting(whole, in_chunks, lines, whole, step=step) as address:
        async with adapter().connect(address) as peer:
            for _ in range(2):
                assert await peer.unary(QUOTE, QuoteRequest("A")) == quote("A", 42)
            stream = peer.server_stream(QUOTES, StreamRequest("A", 3))
            assert [item async for item in stream] == [quote("A", 42)] * 3
            assert await peer.unary(QUOTE, QuoteRequest("A")) == quote("A", 42)


async def test_a_stream_that_is_cut_off_is_a_lost_connection_behind_what_arrived() -> None:
    data = adapter().codec.encode(quote("A", 0)) + b"\n"
    answer = chunked("application/x-ndjson", data, end=False)
    async with asyncio.timeout(10), reciting(answer, then_close=True) as address:
        async with adapter().connect(address) as peer:
            stream, items = peer.server_stream(QUOTES, StreamRequest("A", 3)), []
            with pytest.raises(ConnectionLost):
                async for item in stream:
                    items.append(item)
            assert items == [quote("A", 0)]


async def test_a_frame_that_is_cut_off_by_a_proper_end_is_lost_data() -> None:
    answer = chunked("application/x-frames", b"\0\0\0\x09half")
    async with asyncio.timeout(10), reciting(answer) as address, adapter("cbor").connect(address) as peer:
        with pytest.raises(CallFailed, match="data_loss: the last item ends after 8 bytes"):
            await anext(peer.server_stream(QUOTES, StreamRequest("A", 3)))


@pytest.mark.parametrize("status", [404, 502])
async def test_a_refusal_that_is_not_ours_is_counted_by_its_status(status: int) -> None:
    answer = b"HTTP/1.1 %d Sorry\r\nContent-Length: 11\r\n\r\n<html>no!\r\n" % status
    async with asyncio.timeout(10), reciting(answer, answer) as address, adapter().connect(address) as peer:
        with pytest.raises(CallFailed, match="<html>no!") as failed:
            await peer.unary(QUOTE, QuoteRequest("A"))
        assert failed.value.kind == f"http_{status}"
        with pytest.raises(CallFailed, match="<html>no!"):
            await anext(peer.server_stream(QUOTES, StreamRequest("A", 3)))


@pytest.mark.parametrize(
    "answer", [b"ERR unknown command\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"]
)
async def test_what_is_no_http_is_a_lost_connection(answer: bytes) -> None:
    async with asyncio.timeout(10), reciting(answer) as address, adapter().connect(address) as peer:
        for _ in range(2):
            with pytest.raises(ConnectionLost):
                await peer.unary(QUOTE, QuoteRequest("A"))


async def test_an_answer_nobody_asked_for_ends_the_connection() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    async with asyncio.timeout(10), reciting(answer * 2) as address, adapter().connect(address) as peer:
        assert await peer.unary(METHODS["echo"], Body(b"")) == Body(b"{}")
        await until(lambda: peer._wire.lost)  # type: ignore[attr-defined]
        with pytest.raises(ConnectionLost, match="nobody asked for"):
            await peer.unary(METHODS["run"], Empty())


# Items


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    """`data` in pieces, cut at these places (modulo its length)."""
    places = sorted({0, len(data), *(place % (len(data) + 1) for place in cuts)})
    return [data[a:b] for a, b in itertools.pairwise(places)]


@UNTIMED
@given(st.lists(st.binary(max_size=20)), st.lists(st.integers(0, 999)), st.booleans(), st.booleans())
def test_items_come_out_as_they_went_in_wherever_they_are_cut(
    items: list[bytes], cuts: list[int], lines: bool, fails: bool
) -> None:
    if lines:
        items = [item.replace(b"\n", b"").replace(b'{"error":', b"") or b"x" for item in items]
    framing: Framing = Lines() if lines else Frames("application/cbor")
    whole = b"".join(map(framing.item, items)) + (
        framing.error("kind: te\nxt") if fails else framing.end(len(items))
    )
    reader, inbox = framing.reader(20), Inbox()
    for piece in cut(whole, cuts):
        reader.feed(piece, inbox)
    reader.finish(inbox)

    if fails:
        assert str(inbox.pop()) == "kind: te\nxt"
    assert list(inbox) == items


@pytest.mark.parametrize("framing", [Lines(), Frames("application/cbor")])
@pytest.mark.parametrize("step", [1, 7, 100])
def test_an_item_over_the_limit_is_refused_before_it_is_all_there(framing: Framing, step: int) -> None:
    data = framing.item(bytes(b"x" * 61))
    reader, inbox = framing.reader(20), Inbox()
    for start in range(0, 50, step):
        reader.feed(data[start : start + step], inbox)

    assert isinstance(inbox[0], Unsupported)


# The server around it


async def test_signals_are_left_to_whoever_owns_the_process() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    async with asyncio.timeout(10), adapter().serve(Service(), ANY_PORT):
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


async def test_stopping_waits_neither_for_a_stuck_call_nor_for_a_reader_that_does_not_read() -> None:
    class Stuck(Quotes):
        async def unary(self, method: Method, request: Message) -> Message:
            await asyncio.Event().wait()
            return await super().unary(method, request)

    http, service = adapter(), Stuck()
    async with asyncio.timeout(20):
        async with http.serve(service, ANY_PORT) as server, http.connect(server.address) as peer:
            call = asyncio.create_task(peer.unary(ECHO, Body(b"x")))
            _, writer = await asyncio.open_connection(*server.address)
            writer.write(b"GET /quotes/A/unbounded HTTP/1.1\r\nHost: x\r\n\r\n")
            await still(lambda: service.produced)
            assert server.backlog() != Backlog()
        await service.left.wait()
        with pytest.raises(ConnectionLost):
            await call
        await closed(writer)


async def test_nagle_is_off_on_both_ends() -> None:
    http = adapter()
    async with asyncio.timeout(10), http.serve(Service(), ANY_PORT) as server, http.connect(server.address) as peer:
        assert await peer.unary(QUOTE, QuoteRequest("A")) == quote("A", 42)
        (accepted,) = server.server.server_state.connections  # type: ignore[attr-defined]
        ends = [accepted, peer._wire]  # type: ignore[attr-defined]
        sockets = [end.transport.get_extra_info("socket") for end in ends]

        assert [sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0 for sock in sockets] == [True, True]


@pytest.mark.parametrize("parser", PARSERS)
def test_the_engine_names_the_parser(parser: Any) -> None:
    assert adapter(parser=parser).engine == f"uvicorn {parser}"
