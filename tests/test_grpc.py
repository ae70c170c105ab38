"""What only the gRPC adapter can get wrong: windows, statuses, channels, cancellation; on both loops."""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
import uvloop

from adapters.api import (
    Address,
    AddressInUse,
    CallFailed,
    ConnectionLost,
    Malformed,
    Message,
    Method,
    NotRepresentable,
    Peer,
    Served,
    Shape,
    Unsupported,
)
from adapters.codecs import CODECS
from adapters.grpc import Grpc
from adapters.grpc_paths import rpc_name
from adapters.messages import METHODS, Body, Empty, Quote, QuoteRequest, StreamRequest, SymbolRequest
from runner.quotes import quote
from runner.service import Service

ANY_PORT = Address("127.0.0.1", 0)
BOUND_S = 20
MIB = 2**20
QUOTE, ENDLESS = METHODS["quote"], METHODS["quotes.unbounded"]
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
COLLECT = Method("collect", Shape.CLIENT_STREAM, Quote, Quote)


class Told(Service):
    """The real service with methods of the shapes that it lacks, and a note of what was ended."""

    def __init__(self, **knobs: Any) -> None:
        super().__init__(**knobs)
        self.closed = asyncio.Event()
        self.running = 0
        self.release = asyncio.Event()

    async def unary(self, method: Method, request: Message) -> Message:
        if method is not SLOW:
            return await super().unary(method, request)
        self.running += 1
        try:
            await self.release.wait()
        finally:
            self.running -= 1
            self.closed.set()
        return request

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
        return self._noted(self._mirror(requests) if method is MIRROR else super().bidi_stream(method, requests))

    async def _mirror(self, requests: AsyncIterable[Message]) -> AsyncGenerator[Message, None]:
        async for request in requests:
            yield request
            if request.symbol == "ENOUGH":
                return
            if request.symbol == "WRONG":
                raise CallFailed("invalid_argument", "wrong")

    async def _noted(self, items: AsyncGenerator[Message, None]) -> AsyncGenerator[Message, None]:
        try:
            async with aclosing(items):
                async for item in items:
                    yield item
        finally:
            self.closed.set()


class Relay:
    """Counts the connections to a server, and the bytes that it sends."""

    def __init__(self, target: Address) -> None:
        self._target = target
        self._writers: set[asyncio.StreamWriter] = set()
        self.connections = 0
        self.received = 0

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Address]:
        async with await asyncio.start_server(self._accept, "127.0.0.1", 0) as server:
            yield Address(*server.sockets[0].getsockname())
            self.cut()

    def cut(self) -> None:
        """End every connection."""
        for writer in self._writers:
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        there_reader, there_writer = await asyncio.open_connection(*self._target)
        self._writers |= {writer, there_writer}
        await asyncio.gather(self._pump(reader, there_writer), self._pump(there_reader, writer, counted=True))

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, counted: bool = False) -> None:
        try:
            while data := await source.read(65_536):
                self.received += len(data) if counted else 0
                sink.write(data)
                await sink.drain()
        except ConnectionError:
            pass
        finally:
            sink.close()


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
    for method in (SLOW, MIRROR, COLLECT):
        monkeypatch.setitem(METHODS, method.name, method)


@pytest.fixture(autouse=True)
def no_noise(capfd: pytest.CaptureFixture[str]) -> Any:
    """grpc's core and its Python both write to stderr what nobody raised."""
    yield
    assert capfd.readouterr().err == ""


def adapter(codec: str = "protobuf", limit: int = 4 * MIB, **knobs: Any) -> Grpc:
    return Grpc(codec=CODECS[codec](), max_message_bytes=limit, **knobs)


@asynccontextmanager
async def served(made: Grpc | None = None) -> AsyncIterator[tuple[Peer, Told, Served]]:
    made, service = made or adapter(), Told()
    async with made.serve(service, ANY_PORT) as server, made.connect(server.address) as peer:
        yield peer, service, server


async def answers(peer: Peer) -> bool:
    """Whether the connection still carries a call as it should."""
    return bool(await peer.unary(QUOTE, QuoteRequest("AAPL")) == quote("AAPL", 42))


async def settled(read: Callable[[], int]) -> int:
    """What `read` returns once it has not changed for a while."""
    last, unchanged = -1, 0
    while unchanged < 25:
        await asyncio.sleep(0.02)
        last, unchanged = (last, unchanged + 1) if read() == last else (read(), 0)
    return last


async def quotes(*symbols: str) -> AsyncGenerator[Quote, None]:
    for seq, symbol in enumerate(symbols):
        yield quote(symbol, seq)


def test_the_names_are_those_of_the_proto_file() -> None:
    assert {name: rpc_name(method) for name, method in METHODS.items()} == {
        "quote": "GetQuote",
        "quotes": "StreamQuotes",
        "quotes.page": "QuotesPage",
        "quotes.unbounded": "StreamUnbounded",
        "quotes.unbounded.ready": "StreamUnboundedReady",
        "quotes.credited": "StreamCredited",
        "produced": "Produced",
        "echo": "Echo",
        "hello": "Hello",
        "run": "Run",
        "readings": "Readings",
        "readings.batched": "ReadingsBatched",
        "readings.each": "ReadingsEach",
        "orders": "Orders",
        "orders.batched": "OrdersBatched",
        "orders.each": "OrdersEach",
        "slow": "Slow",
        "mirror": "Mirror",
        "collect": "Collect",
    }
    assert rpc_name(Method("two.words", Shape.UNARY, Empty, Empty)) == "TwoWords"


@pytest.mark.parametrize("codec", ["protobuf", "json"])
def test_all_four_shapes_equal_calling_directly(run: Run, codec: str) -> None:
    async def body() -> None:
        async with served(adapter(codec)) as (peer, _, _):
            assert await answers(peer)
            for size in (0, 1, 70_000):
                assert await peer.unary(METHODS["echo"], Body(bytes(size))) == Body(bytes(size))
            for count in (0, 1, 200):
                request = StreamRequest("AAPL", count)
                got = [item async for item in peer.server_stream(METHODS["quotes"], request)]
                assert got == [quote("AAPL", seq) for seq in range(count)]
                mirrored = [item async for item in peer.bidi_stream(MIRROR, quotes(*["A"] * count))]
                assert mirrored == [quote("A", seq) for seq in range(count)]
                assert await peer.client_stream(COLLECT, quotes(*["A"] * count)) == quote("COUNT", count)

    run(body())


@pytest.mark.parametrize("kind", ["not_found", "invalid_argument", "busy", "ok", "unavailable", "unimplemented"])
async def test_the_kind_of_an_error_comes_through(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: Any) -> Message:
        raise CallFailed(kind, "a: b, ü")

    monkeypatch.setattr(Told, "unary", fail)
    async with served() as (peer, _, _):
        with pytest.raises(CallFailed) as failed:
            await peer.unary(QUOTE, QuoteRequest("AAPL"))
        assert (failed.value.kind, str(failed.value)) == (kind, f"{kind}: a: b, ü")


async def test_a_very_long_error_is_cut_and_still_an_error_of_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: Any) -> Message:
        raise CallFailed("busy", "€" * 100_000)

    monkeypatch.setattr(Told, "unary", fail)
    async with served() as (peer, _, _):
        with pytest.raises(CallFailed, match=r"^busy: €+$") as failed:
            await peer.unary(QUOTE, QuoteRequest("AAPL"))
        assert failed.value.kind == "busy"


async def test_what_the_service_did_not_expect_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: Any) -> Message:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(Told, "unary", fail)
    async with served() as (peer, _, _):
        with pytest.raises(CallFailed, match="internal: ZeroDivisionError: by zero"):
            await peer.unary(QUOTE, QuoteRequest("AAPL"))


async def test_what_a_codec_refuses_is_raised_where_it_was_refused() -> None:
    async with adapter("json").serve(Told(), ANY_PORT) as server:
        async with adapter("json").connect(server.address) as peer:
            with pytest.raises(NotRepresentable):
                await peer.unary(QUOTE, QuoteRequest("\ud800"))
        async with adapter("cbor").connect(server.address) as peer:  # the server's codec is another
            with pytest.raises(CallFailed) as failed:
                await peer.unary(QUOTE, QuoteRequest("AAPL"))
            assert failed.value.kind == "codec"
            reply = Method("echo", Shape.UNARY, Body, Quote)
            with pytest.raises(Malformed):
                await peer.unary(reply, Body(b"no quote"))


def test_leaving_a_stream_early_ends_the_services_generator(run: Run) -> None:
    async def body() -> None:
        async with served() as (peer, service, _):
            async with aclosing(peer.server_stream(ENDLESS, SymbolRequest("AAPL"))) as items:
                assert [(await anext(items)).seq for _ in range(3)] == [0, 1, 2]
            await service.closed.wait()
            assert await answers(peer)

    run(body())


def test_leaving_a_stream_whose_server_waits_for_the_window_ends_it_without_a_word(run: Run) -> None:
    async def body() -> None:
        async with served(adapter(bdp_probe=False, lookahead_bytes=1024)) as (peer, service, _):
            for _ in range(5):
                service.closed.clear()
                async with aclosing(peer.server_stream(ENDLESS, SymbolRequest("AAPL"))) as items:
                    await anext(items)
                    await settled(lambda: service.produced)
                await service.closed.wait()
            assert await answers(peer)

    run(body())


def test_a_deadline_ends_the_call_on_both_ends(run: Run) -> None:
    async def read(peer: Peer) -> None:
        async with aclosing(peer.server_stream(METHODS["quotes"], StreamRequest("AAPL", 9, 60_000))) as items:
            async for _ in items:
                pass

    async def body() -> None:
        async with served() as (peer, service, _):
            for call in (read(peer), peer.unary(SLOW, Empty())):
                service.closed.clear()
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(call, 0.1)
                await service.closed.wait()
            assert await answers(peer)

    run(body())


def test_an_upload_whose_source_fails_ends_the_call_and_raises_that(run: Run) -> None:
    async def broken(count: int) -> AsyncGenerator[Quote, None]:
        for seq in range(count):
            yield quote("AAPL", seq)
        raise NotRepresentable("the source is dry")

    async def body() -> None:
        async with served() as (peer, _, _):
            for count in (0, 2, 100):
                with pytest.raises(NotRepresentable, match="dry"):
                    await peer.client_stream(COLLECT, broken(count))
                with pytest.raises(NotRepresentable, match="dry"):
                    _ = [item async for item in peer.bidi_stream(MIRROR, broken(count))]
            assert await answers(peer)

    run(body())


def test_a_call_that_ends_before_its_upload_keeps_the_servers_own_status(run: Run) -> None:
    """Again and again: whether a write is under way when the status arrives is a matter of luck."""

    async def body() -> None:
        async with served() as (peer, _, _):
            for _ in range(30):
                assert await peer.client_stream(COLLECT, quotes("A", "ENOUGH", *["LATE"] * 50)) == quote("COUNT", 2)
                with pytest.raises(CallFailed, match="invalid_argument: wrong"):
                    await peer.client_stream(COLLECT, quotes("A", "WRONG", *["LATE"] * 50))
                enough = peer.bidi_stream(MIRROR, quotes("A", "ENOUGH", *["LATE"] * 50))
                assert [item.seq async for item in enough] == [0, 1]
                with pytest.raises(CallFailed, match="invalid_argument: wrong"):
                    _ = [item async for item in peer.bidi_stream(MIRROR, quotes("WRONG", *["LATE"] * 50))]
                async with aclosing(peer.bidi_stream(MIRROR, quotes(*["A"] * 50))) as items:
                    assert await anext(items) == quote("A", 0)
            assert await answers(peer)

    run(body())


def test_a_small_window_bounds_the_producer(run: Run) -> None:
    async def body() -> None:
        async with served(adapter(bdp_probe=False, lookahead_bytes=4096)) as (peer, service, _):
            async with aclosing(peer.server_stream(ENDLESS, SymbolRequest("AAPL"))) as items:
                for _ in range(100):
                    await anext(items)
                plateau = await settled(lambda: service.produced)
                assert 100 < plateau <= 300
                assert plateau == await settled(lambda: service.produced)
                assert await answers(peer)  # another call on the same connection is not held up
                assert [(await anext(items)).seq for _ in range(200)] == list(range(100, 300))

    run(body())


def test_a_window_that_the_probe_would_override_is_refused() -> None:
    with pytest.raises(ValueError, match="lookahead_bytes needs bdp_probe=false"):
        adapter(lookahead_bytes=4096)
    with pytest.raises(ValueError, match="lookahead_bytes needs bdp_probe=false"):
        adapter(bdp_probe=True, lookahead_bytes=0)


@pytest.mark.parametrize("knobs", [{}, {"bdp_probe": False}, {"bdp_probe": False, "lookahead_bytes": 4096}])
def test_large_bodies_pass_whatever_the_window(run: Run, knobs: dict[str, Any]) -> None:
    async def body() -> None:
        async with served(adapter("json", **knobs)) as (peer, _, _):
            for size in (MIB - 1, MIB, MIB + 1, 4 * MIB - 1, 4 * MIB):
                assert (await peer.unary(METHODS["echo"], Body(b"x" * size))).data == b"x" * size

    run(body())


async def test_a_message_over_the_limit_is_refused_before_it_is_sent() -> None:
    async with served(adapter("json", limit=MIB)) as (peer, _, _):
        with pytest.raises(Unsupported, match="1,048,577 bytes is over the limit of 1,048,576"):
            await peer.unary(METHODS["echo"], Body(bytes(MIB + 1)))
        assert await answers(peer)


async def test_either_end_enforces_its_limit_on_what_it_receives() -> None:
    small, large = adapter("json", limit=100), adapter("json")
    async with small.serve(Told(), ANY_PORT) as server, large.connect(server.address) as peer:
        with pytest.raises(Unsupported, match="101 bytes is over the limit of 100"):
            await peer.unary(METHODS["echo"], Body(bytes(101)))
        assert await answers(peer)
    async with large.serve(Told(), ANY_PORT) as server, adapter("json", limit=79).connect(server.address) as peer:
        with pytest.raises(Unsupported, match="80 bytes is over the limit of 79"):
            await peer.unary(QUOTE, QuoteRequest("A"))
        with pytest.raises(Unsupported, match="over the limit of 79"):
            _ = [item async for item in peer.server_stream(METHODS["quotes"], StreamRequest("AAPL", 200))]
        assert await peer.unary(METHODS["produced"], Empty())


async def test_the_server_refuses_to_send_over_the_limit_and_says_so() -> None:
    async with adapter("json", limit=79).serve(Told(), ANY_PORT) as server:
        async with adapter("json").connect(server.address) as peer:
            for _ in range(2):
                with pytest.raises(Unsupported, match="80 bytes is over the limit of 79"):
                    await peer.unary(QUOTE, QuoteRequest("A"))


def test_a_limit_larger_than_grpc_can_express_is_said_to_be_smaller() -> None:
    assert adapter(limit=2**40).limit_bytes() == 2**31 - 1
    assert adapter(limit=1000).limit_bytes() == 1000


def test_every_peer_has_a_connection_of_its_own_and_carries_many_calls_on_it(run: Run) -> None:
    async def body() -> None:
        made, service = adapter(), Told()
        async with made.serve(service, ANY_PORT) as server:
            relay = Relay(server.address)
            async with relay.listening() as address:
                async with (
                    made.connect(address) as one,
                    made.connect(address) as two,
                    made.connect(address) as three,
                ):
                    for peer in (one, two, three):
                        assert await answers(peer)
                    assert relay.connections == 3
                    calls = [asyncio.create_task(one.unary(SLOW, Empty())) for _ in range(20)]
                    assert await settled(lambda: service.running) == 20
                    service.release.set()
                    assert await asyncio.gather(*calls) == [Empty()] * 20
                    assert relay.connections == 3

    run(body())


def test_a_connection_that_breaks_is_lost_and_not_silently_replaced(run: Run) -> None:
    async def body() -> None:
        made = adapter()
        async with made.serve(Told(), ANY_PORT) as server:
            relay = Relay(server.address)
            async with relay.listening() as address, made.connect(address) as peer:
                items = peer.server_stream(ENDLESS, SymbolRequest("AAPL"))
                await anext(items)
                slow = asyncio.create_task(peer.unary(SLOW, Empty()))
                await asyncio.sleep(0)
                relay.cut()
                with pytest.raises(ConnectionLost):
                    await slow
                with pytest.raises(ConnectionLost):
                    async for _ in items:
                        pass
                for _ in range(3):
                    with pytest.raises(ConnectionLost):
                        await peer.unary(QUOTE, QuoteRequest("AAPL"))
                    await asyncio.sleep(0.02)
                assert relay.connections == 1

    run(body())


def test_the_server_stops_in_spite_of_running_calls_and_tells_them(run: Run) -> None:
    async def body() -> None:
        made, service = adapter(), Told()
        serving = made.serve(service, ANY_PORT)
        server = await serving.__aenter__()
        async with made.connect(server.address) as peer:
            items = peer.server_stream(ENDLESS, SymbolRequest("AAPL"))
            await anext(items)
            await serving.__aexit__(None, None, None)
            await service.closed.wait()
            with pytest.raises(ConnectionLost):
                async for _ in items:
                    pass

    run(body())


def test_a_peer_whose_connection_is_closed_under_a_call_is_told(run: Run) -> None:
    async def body() -> None:
        made, service = adapter(), Told()
        async with made.serve(service, ANY_PORT) as server:
            async with made.connect(server.address) as peer:
                slow = asyncio.create_task(peer.unary(SLOW, Empty()))
                items = peer.server_stream(ENDLESS, SymbolRequest("AAPL"))
                await anext(items)
            with pytest.raises(ConnectionLost):
                await slow
            with pytest.raises(ConnectionLost):
                async for _ in items:
                    pass
            with pytest.raises(ConnectionLost):
                await peer.unary(QUOTE, QuoteRequest("AAPL"))

    run(body())


def test_one_streamed_item_is_as_many_bytes_as_said(run: Run) -> None:
    async def body() -> None:
        made = adapter("json", bdp_probe=False)
        async with made.serve(Told(), ANY_PORT) as server:
            relay = Relay(server.address)
            async with relay.listening() as address, made.connect(address) as peer:
                received = []
                for count in (1, 1, 101):  # the first call also sends what a connection sends once
                    before = relay.received
                    items = [i async for i in peer.server_stream(METHODS["quotes"], StreamRequest("AAPL", count))]
                    received.append(relay.received - before)
                payloads = [len(CODECS["json"]().encode(item)) for item in items[1:]]
                assert received[2] - received[1] == sum(map(made.wire_bytes, payloads))

    run(body())


@pytest.mark.parametrize("no_proxy", ["", "localhost"])
async def test_proxy_variables_do_not_apply(monkeypatch: pytest.MonkeyPatch, no_proxy: str) -> None:
    for name in ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
        monkeypatch.setenv(name.upper(), "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", no_proxy)
    async with served() as (peer, _, _):
        assert await answers(peer)


def test_a_port_taken_by_a_stranger_is_an_error_and_the_stranger_lives(run: Run) -> None:
    async def body() -> None:
        with pytest.raises(AddressInUse, match=re.escape(f"port {address.port} on 127.0.0.1 is taken")):
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


async def test_an_address_of_another_machine_is_no_taken_port() -> None:
    with pytest.raises(OSError, match="assign requested address"):
        async with adapter().serve(Told(), Address("192.0.2.1", 0)):
            pass


async def test_connecting_to_who_never_answers_ends_with_the_callers_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1), adapter().connect(Address(*silent.getsockname())):
            pass


async def test_ipv6_addresses_are_carried() -> None:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            pass
    except OSError:
        pytest.skip("no IPv6 here")
    async with adapter().serve(Told(), Address("::1", 0)) as server, adapter().connect(server.address) as peer:
        assert await answers(peer)
