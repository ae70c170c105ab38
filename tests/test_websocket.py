"""What only the WebSocket adapter can get wrong: its grammar, one call at a time, its sockets; on both loops."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
import uvloop
from websockets.asyncio.client import connect

from adapters.api import (
    Address,
    AddressInUse,
    Backlog,
    CallFailed,
    ConnectionLost,
    Message,
    Method,
    NotRepresentable,
    Peer,
    Served,
    Shape,
    Unsupported,
)
from adapters.codecs import CODECS
from adapters.messages import METHODS, Body, Credit, Empty, Quote, QuoteRequest, StreamRequest, SymbolRequest
from adapters.websocket import WebSocket
from runner.quotes import quote
from runner.service import Service

ANY_PORT = Address("127.0.0.1", 0)
BOUND_S = 20
MIB = 2**20
QUOTE, ENDLESS = METHODS["quote"], METHODS["quotes.unbounded"]
SMALL: dict[str, Any] = {"send_buffer_bytes": 4096, "receive_buffer_bytes": 4096}
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
Run = Callable[[Coroutine[Any, Any, None]], None]

STRANGER = """
import socket, sys
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    connection, _ = server.accept()
    connection.sendall(b"220 hello")
    sys.stdin.read()
    connection.close()
"""

SLOW = Method("slow", Shape.UNARY, Empty, Empty)
MIRROR = Method("mirror", Shape.BIDI_STREAM, Quote, Quote)
BODIES = Method("bodies", Shape.BIDI_STREAM, Body, Body)
COLLECT = Method("collect", Shape.CLIENT_STREAM, Quote, Quote)


class Told(Service):
    """The real service with methods of the shapes that it lacks, and a note of each stream that was closed."""

    def __init__(self, **knobs: Any) -> None:
        super().__init__(**knobs)
        self.closed = asyncio.Event()
        self.release = asyncio.Event()

    async def unary(self, method: Method, request: Message) -> Message:
        if method is SLOW:
            await self.release.wait()
            return request
        return await super().unary(method, request)

    def server_stream(self, method: Method, request: Message) -> AsyncGenerator[Message, None]:
        return self._noted(super().server_stream(method, request))

    async def client_stream(self, method: Method, requests: AsyncIterable[Message]) -> Message:
        count = 0
        async for request in requests:
            count += 1
            if request.symbol == "ENOUGH":
                break
            if request.symbol == "WRONG":
                raise CallFailed("invalid_argument", "wrong")
        return quote("COUNT", count)

    def bidi_stream(self, method: Method, requests: AsyncIterable[Message]) -> AsyncGenerator[Message, None]:
        mirrored = method in (MIRROR, BODIES)
        return self._noted(self._mirror(requests) if mirrored else super().bidi_stream(method, requests))

    async def _mirror(self, requests: AsyncIterable[Message]) -> AsyncGenerator[Message, None]:
        async for request in requests:
            yield request

    async def _noted(self, items: AsyncGenerator[Message, None]) -> AsyncGenerator[Message, None]:
        try:
            async with aclosing(items):
                async for item in items:
                    yield item
        finally:
            self.closed.set()


@pytest.fixture(params=sorted(LOOPS))
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a test's body on a loop of its own, within a bound."""

    async def bounded(body: Coroutine[Any, Any, None]) -> None:
        async with asyncio.timeout(BOUND_S):
            await body

    def run(body: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            runner.run(bounded(body))

    return run


@pytest.fixture(autouse=True)
def more_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    for method in (SLOW, MIRROR, BODIES, COLLECT):
        monkeypatch.setitem(METHODS, method.name, method)


def adapter(codec: str = "json", limit: int = 4 * MIB, **knobs: Any) -> WebSocket:
    return WebSocket(codec=CODECS[codec](), max_message_bytes=limit, **knobs)


@asynccontextmanager
async def served(made: WebSocket | None = None) -> AsyncIterator[tuple[Peer, Told, Served]]:
    made, service = made or adapter(), Told()
    async with made.serve(service, ANY_PORT) as server, made.connect(server.address) as peer:
        yield peer, service, server


async def answers(peer: Peer) -> bool:
    """Whether the connection still carries a call as it should."""
    return bool(await peer.unary(QUOTE, QuoteRequest("AAPL")) == quote("AAPL", 42))


async def settled(read: Callable[[], int]) -> int:
    """What `read` returns once it has not changed for a while."""
    last, unchanged = -1, 0
    while unchanged < 15:
        await asyncio.sleep(0.02)
        last, unchanged = (last, unchanged + 1) if read() == last else (read(), 0)
    return last


async def quotes(*symbols: str) -> AsyncGenerator[Quote, None]:
    for seq, symbol in enumerate(symbols):
        yield quote(symbol, seq)


@pytest.mark.parametrize("codec", ["json", "cbor", "protobuf"])
def test_all_four_shapes_equal_calling_directly(run: Run, codec: str) -> None:
    async def body() -> None:
        async with served(adapter(codec)) as (peer, _, _):
            assert await answers(peer)
            for size in (0, 1, 125, 126, 65_535, 65_536):
                sent = Body(bytes(range(256)) * (size // 256) + bytes(size % 256))
                assert await peer.unary(METHODS["echo"], sent) == sent
            for count in (0, 1, 300):
                request = StreamRequest("AAPL", count)
                got = [item async for item in peer.server_stream(METHODS["quotes"], request)]
                assert got == [quote("AAPL", seq) for seq in range(count)]
                mirrored = [item async for item in peer.bidi_stream(MIRROR, quotes(*["A"] * count))]
                assert mirrored == [quote("A", seq) for seq in range(count)]
                assert await peer.client_stream(COLLECT, quotes(*["A"] * count)) == quote("COUNT", count)

    run(body())


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_items_are_never_taken_for_control_frames(run: Run, codec: str) -> None:
    texts = [b"", b"END 3", b"ERR busy", b"STOP", b"MORE 1", b"E"]

    async def body() -> None:
        async def bodies() -> AsyncGenerator[Body, None]:
            for text in texts:
                yield Body(text)

        async with served(adapter(codec)) as (peer, _, _):
            assert [item.data async for item in peer.bidi_stream(BODIES, bodies())] == texts
            for symbol in ("END", "STOP", "ERR", "BRK.B", "Ünïcode", "-1"):
                assert (await peer.unary(QUOTE, QuoteRequest(symbol))).symbol == symbol

    run(body())


@pytest.mark.parametrize("symbol", ["", " ", "two words", "tab\tbed", "no\u00a0break", "\ud800"])
async def test_a_symbol_that_is_no_word_is_not_representable(symbol: str) -> None:
    async with served() as (peer, _, _):
        with pytest.raises(NotRepresentable):
            await peer.unary(QUOTE, QuoteRequest(symbol))
        with pytest.raises(NotRepresentable):
            await anext(peer.server_stream(ENDLESS, SymbolRequest(symbol)))

        async def credits() -> AsyncGenerator[Credit, None]:
            yield Credit(symbol, 1)

        with pytest.raises(NotRepresentable):
            await anext(peer.bidi_stream(METHODS["quotes.credited"], credits()))
        assert await answers(peer)


@pytest.mark.parametrize("kind", ["not_found", "busy", "something_else", "unavailable"])
async def test_the_kind_of_an_error_comes_through(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: Any) -> Message:
        raise CallFailed(kind, "a: b, c")

    monkeypatch.setattr(Told, "unary", fail)
    async with served() as (peer, _, _):
        with pytest.raises(CallFailed) as failed:
            await peer.unary(QUOTE, QuoteRequest("AAPL"))
        assert (failed.value.kind, str(failed.value)) == (kind, f"{kind}: a: b, c")


async def test_what_the_service_did_not_expect_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: Any) -> Message:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(Told, "unary", fail)
    async with served() as (peer, _, _):
        with pytest.raises(CallFailed, match="internal: ZeroDivisionError: by zero"):
            await peer.unary(QUOTE, QuoteRequest("AAPL"))


def test_a_stream_that_is_left_early_stops_and_frees_the_connection(run: Run) -> None:
    async def body() -> None:
        async with served() as (peer, service, _):
            async with aclosing(peer.server_stream(ENDLESS, SymbolRequest("AAPL"))) as items:
                assert [(await anext(items)).seq for _ in range(3)] == [0, 1, 2]
            await service.closed.wait()
            assert await answers(peer)

    run(body())


def test_a_deadline_in_a_stream_stops_it(run: Run) -> None:
    async def read(peer: Peer) -> None:
        async with aclosing(peer.server_stream(METHODS["quotes"], StreamRequest("AAPL", 9, 60_000))) as items:
            async for _ in items:
                pass

    async def body() -> None:
        async with served() as (peer, service, _):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(read(peer), 0.1)
            await service.closed.wait()
            assert await answers(peer)

    run(body())


async def test_a_unary_call_that_is_abandoned_takes_its_connection_with_it() -> None:
    """Its answer would be taken for the answer to the next call."""
    async with served() as (peer, service, _):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await peer.unary(SLOW, Empty())
        service.release.set()
        with pytest.raises(ConnectionLost, match="abandoned"):
            await peer.unary(QUOTE, QuoteRequest("AAPL"))


def test_a_server_that_does_not_stop_costs_the_connection(run: Run) -> None:
    class Deaf(Told):
        async def _noted(self, items: AsyncGenerator[Message, None]) -> AsyncGenerator[Message, None]:
            try:
                yield quote("AAPL", 0)
                await asyncio.Event().wait()
            finally:
                await self.release.wait()

    async def body() -> None:
        service = Deaf()
        async with adapter().serve(service, ANY_PORT) as server, adapter().connect(server.address) as peer:
            async with aclosing(peer.server_stream(ENDLESS, SymbolRequest("AAPL"))) as items:
                await anext(items)
            with pytest.raises(ConnectionLost, match="did not stop"):
                await peer.unary(QUOTE, QuoteRequest("AAPL"))
            service.release.set()

    run(body())


async def test_a_second_call_at_the_same_time_is_refused_and_harms_nobody() -> None:
    async with served() as (peer, service, _):
        first = asyncio.create_task(peer.unary(SLOW, Empty()))
        await asyncio.sleep(0)
        for call in (
            peer.unary(QUOTE, QuoteRequest("AAPL")),
            anext(peer.server_stream(ENDLESS, SymbolRequest("A"))),
        ):
            with pytest.raises(CallFailed) as failed:
                await call
            assert failed.value.kind == "busy"
        service.release.set()
        assert await first == Empty()
        assert await answers(peer)


def test_an_upload_whose_source_fails_stops_and_raises_that(run: Run) -> None:
    async def broken(count: int) -> AsyncGenerator[Quote, None]:
        for seq in range(count):
            yield quote("AAPL", seq)
        raise NotRepresentable("the source is dry")

    async def body() -> None:
        async with served() as (peer, _, _):
            for count in (0, 2, 100):
                with pytest.raises(NotRepresentable, match="dry"):
                    await peer.client_stream(COLLECT, broken(count))
                assert await answers(peer)
                with pytest.raises(NotRepresentable, match="dry"):
                    _ = [item async for item in peer.bidi_stream(MIRROR, broken(count))]
                assert await answers(peer)

    run(body())


@pytest.mark.parametrize("codec", ["json", "cbor"])
def test_what_an_upload_sends_after_its_end_confuses_no_later_call(run: Run, codec: str) -> None:
    async def body() -> None:
        async with served(adapter(codec)) as (peer, _, _):
            for _ in range(3):
                early = quotes("A", "ENOUGH", *["LATE"] * 500)
                assert await peer.client_stream(COLLECT, early) == quote("COUNT", 2)
                assert await answers(peer)
                with pytest.raises(CallFailed, match="invalid_argument: wrong"):
                    await peer.client_stream(COLLECT, quotes("A", "WRONG", *["LATE"] * 500))
                assert await answers(peer)
                async with aclosing(peer.bidi_stream(MIRROR, quotes(*["A"] * 500))) as items:
                    assert await anext(items) == quote("A", 0)
                assert await answers(peer)

    run(body())


@pytest.mark.parametrize("size", [MIB - 1, MIB, MIB + 1, 4 * MIB - 1, 4 * MIB])
def test_bodies_around_the_librarys_own_limits_pass(run: Run, size: int) -> None:
    async def body() -> None:
        async with served() as (peer, _, _):
            assert (await peer.unary(METHODS["echo"], Body(b"x" * size))).data == b"x" * size

    run(body())


async def test_a_message_over_the_limit_is_refused_before_it_is_sent() -> None:
    async with served(adapter(limit=MIB)) as (peer, _, _):
        with pytest.raises(Unsupported, match="1,048,577 bytes is over the limit of 1,048,576"):
            await peer.unary(METHODS["echo"], Body(bytes(MIB + 1)))
        assert await answers(peer)


@pytest.mark.parametrize("size", [1001, 300_000])
async def test_the_server_enforces_the_limit_on_what_it_receives(size: int) -> None:
    async with adapter(limit=1000).serve(Told(), ANY_PORT) as server, adapter().connect(server.address) as peer:
        with pytest.raises(Unsupported, match=f"{size} bytes exceeds limit of 1000 bytes"):
            await peer.unary(METHODS["echo"], Body(bytes(size)))
        with pytest.raises(ConnectionLost, match="1009"):
            await peer.unary(QUOTE, QuoteRequest("AAPL"))


async def test_the_client_enforces_the_limit_on_what_it_receives() -> None:
    async with adapter().serve(Told(), ANY_PORT) as server, adapter(limit=79).connect(server.address) as peer:
        with pytest.raises(Unsupported, match="80 bytes exceeds limit of 79 bytes"):
            await peer.unary(QUOTE, QuoteRequest("A"))


async def test_the_server_refuses_to_send_over_the_limit_and_says_so() -> None:
    async with adapter(limit=79).serve(Told(), ANY_PORT) as server, adapter().connect(server.address) as peer:
        for _ in range(2):
            with pytest.raises(Unsupported, match="80 bytes is over the limit of 79"):
                await peer.unary(QUOTE, QuoteRequest("A"))
        with pytest.raises(Unsupported, match="79"):
            _ = [item async for item in peer.server_stream(METHODS["quotes"], StreamRequest("AAPL", 5))]


def test_a_quiet_reader_bounds_the_producer(run: Run) -> None:
    async def body() -> None:
        async with served(adapter(write_limit=0, max_queue=1, **SMALL)) as (peer, service, server):
            async with aclosing(peer.server_stream(ENDLESS, SymbolRequest("AAPL"))) as items:
                for _ in range(100):
                    await anext(items)
                plateau = await settled(lambda: service.produced)
                assert 100 < plateau < 1500  # ahead by two kernel buffers of a few KiB
                assert plateau == await settled(lambda: service.produced)
                held, backlog = peer.held(), await asyncio.to_thread(server.backlog)
                assert held is not None
                assert held > 1
                assert backlog is not None
                assert backlog.size_bytes > 0
                assert [(await anext(items)).seq for _ in range(held)] == list(range(100, 100 + held))
            assert await answers(peer)
        assert server.backlog() == Backlog()

    run(body())


async def test_held_counts_what_has_arrived_and_was_not_asked_for() -> None:
    async with served() as (peer, _, _):
        async with aclosing(peer.server_stream(METHODS["quotes"], StreamRequest("AAPL", 5))) as items:
            assert await anext(items) == quote("AAPL", 0)
            assert await settled(lambda: peer.held() or 0) == 5  # four quotes and END
            assert await anext(items) == quote("AAPL", 1)
            assert peer.held() == 4
        assert peer.held() == 0


@pytest.mark.parametrize("polite", [False, True])
def test_a_stranger_who_disconnects_ends_the_generator(run: Run, polite: bool) -> None:
    async def body() -> None:
        service = Told()
        async with adapter().serve(service, ANY_PORT) as server:
            async with connect(f"ws://127.0.0.1:{server.address.port}/", proxy=None, close_timeout=0.1) as ws:
                await ws.send("UNBOUNDED AAPL")
                await ws.recv()
                if not polite:
                    ws.transport.abort()
            await service.closed.wait()

    run(body())


def test_the_server_stops_in_spite_of_strangers_who_do_not_listen(run: Run) -> None:
    async def body() -> None:
        service = Told()
        async with adapter(**SMALL).serve(service, ANY_PORT) as server:
            silent = socket.create_connection(server.address)
            stalled = await connect(f"ws://127.0.0.1:{server.address.port}/", proxy=None, close_timeout=0.1)
            await stalled.send("UNBOUNDED AAPL")
            await settled(lambda: service.produced)
        await service.closed.wait()
        silent.close()
        await stalled.close()

    run(body())


def test_a_peer_whose_connection_is_closed_under_a_stream_is_told(run: Run) -> None:
    async def body() -> None:
        service = Told()
        async with adapter().serve(service, ANY_PORT) as server:
            async with adapter().connect(server.address) as peer:
                items = peer.server_stream(ENDLESS, SymbolRequest("AAPL"))
                await anext(items)
            with pytest.raises(ConnectionLost):
                async for _ in items:
                    pass
            await service.closed.wait()

    run(body())


def test_sockets_have_no_nagle_and_the_buffers_asked_for(run: Run) -> None:
    seen: list[socket.socket] = []

    async def body() -> None:
        async with served(adapter(send_buffer_bytes=8192, receive_buffer_bytes=16384)) as (peer, _, server):
            assert await answers(peer)
            seen.append(peer._ws.transport.get_extra_info("socket"))  # type: ignore[attr-defined]
            seen.extend(
                session.ws.transport.get_extra_info("socket")
                for session in server.sessions  # type: ignore[attr-defined]
            )
            assert len(seen) == 2
            for sock in seen:
                assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
                # Linux doubles what it is asked for
                assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) in (8192, 2 * 8192)
                assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) in (16384, 2 * 16384)

    run(body())


@pytest.mark.parametrize("no_proxy", ["", "localhost"])
async def test_proxy_variables_do_not_apply(monkeypatch: pytest.MonkeyPatch, no_proxy: str) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "ws_proxy", "socks_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
        monkeypatch.setenv(name.upper(), "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", no_proxy)
    async with served() as (peer, _, _):
        assert await answers(peer)


def test_a_port_taken_by_a_stranger_is_an_error_and_the_stranger_lives(run: Run) -> None:
    async def body() -> None:
        with pytest.raises(AddressInUse, match=f"port {address.port} on 127.0.0.1 is taken"):
            async with adapter().serve(Told(), address):
                pass

    with subprocess.Popen(
        [sys.executable, "-c", STRANGER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        address = Address("127.0.0.1", int(process.stdout.readline()))
        run(body())
        assert process.poll() is None
        with socket.create_connection(address, timeout=BOUND_S) as sock:
            assert sock.recv(9) == b"220 hello"
        process.communicate("", timeout=BOUND_S)


def test_what_is_no_websocket_is_a_lost_connection(run: Run) -> None:
    async def body() -> None:
        async def hello(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"220 hello\r\n")
            writer.close()

        async with await asyncio.start_server(hello, "127.0.0.1", 0) as server:
            with pytest.raises(ConnectionLost, match="no WebSocket at 127"):
                async with adapter().connect(Address(*server.sockets[0].getsockname())):
                    pass

    run(body())


async def test_connecting_to_who_never_answers_ends_with_the_callers_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1), adapter().connect(Address(*silent.getsockname())):
            pass


async def test_ipv6_addresses_are_carried() -> None:
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    try:
        async with adapter().serve(Told(), Address("::1", 0)) as server, adapter().connect(server.address) as peer:
            assert await answers(peer)
    except OSError:
        pytest.skip("no IPv6 here")


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
async def test_wire_bytes_are_those_of_a_frame_from_the_server(size: int) -> None:
    async with adapter().serve(Told(), ANY_PORT) as server:
        reader, writer = await asyncio.open_connection(*server.address)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n")
        writer.write(b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        mask = b"\0\0\0\0"  # masks nothing
        writer.write(b"\x81\x84" + mask + b"ECHO" + b"\x82\xff" + size.to_bytes(8) + mask + bytes(size))
        assert (await reader.readexactly(adapter().wire_bytes(size))).endswith(bytes(size))
        writer.write(b"\x81\x87" + mask + b"PRODUCE")
        assert await reader.readexactly(2) == bytes([0x81, len("ERR unknown command")])  # nothing was in between
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize("codec", ["json", "cbor"])
async def test_an_upload_to_an_unknown_method_is_not_found_and_leaves_no_answers_behind(codec: str) -> None:
    unknown = Method("unknown", Shape.CLIENT_STREAM, Quote, Quote)
    async with served(adapter(codec)) as (peer, _, server):
        with pytest.raises(CallFailed) as failed:
            await peer.client_stream(unknown, quotes("A", "B"))
        assert failed.value.kind == "not_found"
        with pytest.raises(ConnectionLost, match="does not know UNKNOWN"):  # every item may have been answered
            await peer.unary(QUOTE, QuoteRequest("AAPL"))
        async with adapter(codec).connect(server.address) as other:
            assert await answers(other)
