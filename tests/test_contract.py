"""The contract of the seam, for every protocol in conf/protocol, every shape and every codec: calling through
the wire equals calling the service directly.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Generator, Iterator
from contextlib import aclosing, asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapters.api import (
    Adapter,
    Address,
    AddressInUse,
    CallFailed,
    ConnectionLost,
    Message,
    Method,
    Peer,
    Shape,
    Unsupported,
)
from adapters.codecs import CODECS
from adapters.messages import (
    METHODS,
    Body,
    Credit,
    Empty,
    Produced,
    Quote,
    QuoteRequest,
    StreamRequest,
    SymbolRequest,
)
from runner.blocking import BlockingService
from runner.quotes import quote
from runner.service import Service
from runner.tcp import tcp_queues

CONF = Path(__file__).parent.parent / "conf"
OPTIONS = {path.stem: yaml.safe_load(path.read_text()) for path in sorted((CONF / "protocol").glob("*.yaml"))}
ANY_PORT = Address("127.0.0.1", 0)
LIMIT = 4 * 2**20
BOUND_S = 10


def variants() -> dict[str, dict[str, Any]]:
    """Every protocol, and every engine of it."""
    found: dict[str, dict[str, Any]] = {}
    for name, knobs in OPTIONS.items():
        found[name] = knobs
        if "engine" in knobs:
            found[f"{name}-coalescing"] = {**knobs, "engine": "coalescing"}
        if "transport" in knobs:
            found[f"{name}-websocket"] = {**knobs, "transport": "websocket"}
        if "parser" in knobs:
            found[f"{name}-h11"] = {**knobs, "parser": "h11"}
    return found


def build(knobs: dict[str, Any], codec: str, limit: int = LIMIT) -> Adapter:
    module, _, cls = knobs["_target_"].rpartition(".")
    own = {key: value for key, value in knobs.items() if key not in ("name", "_target_")}
    adapter = getattr(importlib.import_module(module), cls)(codec=CODECS[codec](), max_message_bytes=limit, **own)
    assert isinstance(adapter, Adapter)
    return adapter


class Recorder(Service):
    """The real service, one client-streaming method more, and a note of whether its streams were closed."""

    def __init__(self, **knobs: Any) -> None:
        super().__init__(**knobs)
        self.closed = asyncio.Event()

    async def client_stream(self, method: Method, requests: AsyncIterable[Message]) -> Message:
        if method.name != "collect":
            return await super().client_stream(method, requests)
        seqs = [request.seq async for request in requests]
        if seqs != list(range(len(seqs))):
            raise CallFailed("invalid_argument", "out of order")
        return Produced(len(seqs))

    async def _noted(self, stream: AsyncGenerator[Message, None]) -> AsyncGenerator[Message, None]:
        try:
            async with aclosing(stream) as items:
                async for item in items:
                    yield item
        finally:
            self.closed.set()

    def server_stream(self, method: Method, request: Message) -> AsyncGenerator[Message, None]:
        return self._noted(super().server_stream(method, request))

    def bidi_stream(self, method: Method, requests: AsyncIterable[Message]) -> AsyncGenerator[Message, None]:
        return self._noted(super().bidi_stream(method, requests))


class BlockingRecorder(BlockingService):
    """The same in threads."""

    def __init__(self, **knobs: Any) -> None:
        super().__init__(**knobs)
        self.closed = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def client_stream(self, method: Method, requests: Iterator[Message]) -> Message:
        if method.name != "collect":
            return super().client_stream(method, requests)
        seqs = [request.seq for request in requests]
        if seqs != list(range(len(seqs))):
            raise CallFailed("invalid_argument", "out of order")
        return Produced(len(seqs))

    def _noted(self, stream: Generator[Message, None, None]) -> Generator[Message, None, None]:
        try:
            with closing(stream) as items:
                yield from items
        finally:
            with suppress(RuntimeError):  # the test is over
                self._loop.call_soon_threadsafe(self.closed.set)

    def server_stream(self, method: Method, request: Message) -> Generator[Message, None, None]:
        return self._noted(super().server_stream(method, request))

    def bidi_stream(self, method: Method, requests: Iterator[Message]) -> Generator[Message, None, None]:
        return self._noted(super().bidi_stream(method, requests))


def recorder_for(adapter: Adapter, **service: Any) -> Recorder | BlockingRecorder:
    """What `adapter` can serve."""
    return BlockingRecorder(**service) if adapter.blocking else Recorder(**service)


@pytest.fixture(params=sorted(variants()))
def knobs(request: pytest.FixtureRequest) -> dict[str, Any]:
    return variants()[request.param]


@pytest.fixture(autouse=True)
def collect(monkeypatch: pytest.MonkeyPatch) -> Method:
    """No served method is client-streaming yet; the adapters must carry that shape all the same."""
    method = Method("collect", Shape.CLIENT_STREAM, Quote, Produced)
    monkeypatch.setitem(METHODS, method.name, method)
    return method


@asynccontextmanager
async def served(adapter: Adapter, **service: Any) -> AsyncIterator[tuple[Peer, Recorder | BlockingRecorder]]:
    recorder = recorder_for(adapter, **service)
    async with asyncio.timeout(BOUND_S), adapter.serve(recorder, ANY_PORT) as server:
        async with adapter.connect(server.address) as peer:
            yield peer, recorder


@pytest.mark.parametrize("codec", sorted(CODECS))
async def test_through_the_wire_equals_calling_directly(knobs: dict[str, Any], codec: str, collect: Method) -> None:
    direct, adapter = Recorder(run="r1"), build(knobs, codec)
    async with served(adapter, run="r1") as (peer, _):
        for name, request in [
            ("quote", QuoteRequest("AAPL")),
            ("quote", QuoteRequest("MSFT", 0)),
            ("quote", QuoteRequest("X", 2**62)),
            ("run", Empty()),
            ("echo", Body(b"")),
            ("echo", Body(b"\0")),
            ("echo", Body(bytes(range(256)) * 300)),
            ("quote", QuoteRequest("AAPL", 43)),
        ]:
            assert await peer.unary(METHODS[name], request) == await direct.unary(METHODS[name], request)
        for count in (0, 1, 200):
            request = StreamRequest("AAPL", count)
            through = [item async for item in peer.server_stream(METHODS["quotes"], request)]
            assert through == [item async for item in direct.server_stream(METHODS["quotes"], request)]
        assert await peer.unary(METHODS["produced"], Empty()) == Produced(200)
        for count in (0, 1, 200) if Shape.CLIENT_STREAM in adapter.shapes else ():

            async def quotes(n: int = count) -> AsyncGenerator[Quote, None]:
                for seq in range(n):
                    yield quote("AAPL", seq)

            assert await peer.client_stream(collect, quotes()) == Produced(count)

        async def credits() -> AsyncGenerator[Credit, None]:
            yield Credit("AAPL", 3)
            yield Credit(n=0)
            yield Credit(n=4)

        if Shape.BIDI_STREAM not in adapter.shapes:
            return
        through = [item async for item in peer.bidi_stream(METHODS["quotes.credited"], credits())]
        assert through == [quote("AAPL", seq) for seq in range(7)]
        assert await peer.unary(METHODS["produced"], Empty()) == Produced(7)


async def test_a_shape_that_is_not_declared_is_unsupported_and_the_connection_stays_good(
    knobs: dict[str, Any], collect: Method
) -> None:
    adapter = build(knobs, "json")
    async with served(adapter) as (peer, _):

        async def nothing() -> AsyncGenerator[Message, None]:
            for message in ():
                yield message

        if Shape.CLIENT_STREAM not in adapter.shapes:
            with pytest.raises(Unsupported, match="client_stream"):
                await peer.client_stream(collect, nothing())
        if Shape.BIDI_STREAM not in adapter.shapes:
            with pytest.raises(Unsupported, match="bidi_stream"):
                await anext(peer.bidi_stream(METHODS["quotes.credited"], nothing()))
        assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL")) == quote("AAPL", 42)


async def test_an_error_of_the_service_arrives_with_its_kind_and_text(knobs: dict[str, Any]) -> None:
    async with served(build(knobs, "json")) as (peer, _):
        with pytest.raises(CallFailed, match="count and delayMs must be 0 or more") as failed:
            async for _ in peer.server_stream(METHODS["quotes"], StreamRequest("AAPL", -1)):
                pass
        assert failed.value.kind == "invalid_argument"
        # and the connection is as good as before
        assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL")) == quote("AAPL", 42)


async def test_an_unknown_method_is_not_found(knobs: dict[str, Any]) -> None:
    async with served(build(knobs, "json")) as (peer, _):
        with pytest.raises(CallFailed) as failed:
            await peer.unary(Method("nonsense", Shape.UNARY, Empty, Empty), Empty())
        assert failed.value.kind == "not_found"
        assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL")) == quote("AAPL", 42)


async def test_leaving_a_stream_early_ends_it_on_the_server_and_frees_the_connection(knobs: dict[str, Any]) -> None:
    async with served(build(knobs, "json")) as (peer, recorder):
        stream = peer.server_stream(METHODS["quotes.unbounded"], SymbolRequest("AAPL"))
        async with aclosing(stream) as items:
            assert [(await anext(items)).seq for _ in range(5)] == [0, 1, 2, 3, 4]
        await recorder.closed.wait()
        assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL")) == quote("AAPL", 42)


async def test_application_credit_bounds_exactly(knobs: dict[str, Any]) -> None:
    adapter = build(knobs, "json")
    if Shape.BIDI_STREAM not in adapter.shapes:
        pytest.skip("declares no such shape")
    async with served(adapter) as (peer, recorder):

        async def credits() -> AsyncGenerator[Credit, None]:
            yield Credit("AAPL", 100)
            await asyncio.Event().wait()

        async with aclosing(peer.bidi_stream(METHODS["quotes.credited"], credits())) as items:
            assert [(await anext(items)).seq for _ in range(100)] == list(range(100))
            for _ in range(20):
                await asyncio.sleep(0.005)
            assert recorder.produced == 100
        await recorder.closed.wait()
        assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL")) == quote("AAPL", 42)


async def test_a_client_that_disconnects_ends_its_stream(knobs: dict[str, Any]) -> None:
    adapter = build(knobs, "json")
    if adapter.in_process:
        pytest.skip("nothing to disconnect")
    recorder = recorder_for(adapter)
    async with asyncio.timeout(BOUND_S), adapter.serve(recorder, ANY_PORT) as server:
        async with adapter.connect(server.address) as peer:
            stream = peer.server_stream(METHODS["quotes.unbounded"], SymbolRequest("AAPL"))
            assert await anext(stream) == quote("AAPL", 0)
        await recorder.closed.wait()
        await stream.aclose()


async def test_a_server_that_goes_away_is_a_lost_connection_not_a_hang(knobs: dict[str, Any]) -> None:
    adapter = build(knobs, "json")
    if adapter.in_process:
        pytest.skip("nothing to lose")
    async with asyncio.timeout(BOUND_S):
        serving = adapter.serve(recorder_for(adapter), ANY_PORT)
        server = await serving.__aenter__()
        async with adapter.connect(server.address) as peer:
            assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL")) == quote("AAPL", 42)
            await serving.__aexit__(None, None, None)
            for _ in range(2):
                with pytest.raises(ConnectionLost):
                    await peer.unary(METHODS["quote"], QuoteRequest("AAPL"))


async def test_nobody_listening_is_a_lost_connection(knobs: dict[str, Any]) -> None:
    adapter = build(knobs, "json")
    async with asyncio.timeout(BOUND_S):
        if not adapter.in_process:
            async with adapter.serve(recorder_for(adapter), ANY_PORT) as server:
                address = server.address  # free again, very likely
        else:
            address = ANY_PORT
        with pytest.raises(ConnectionLost):
            async with adapter.connect(address):
                pass


async def test_a_taken_port_is_an_error(knobs: dict[str, Any]) -> None:
    adapter = build(knobs, "json")
    if adapter.in_process:
        pytest.skip("no port")
    async with asyncio.timeout(BOUND_S), adapter.serve(recorder_for(adapter), ANY_PORT) as server:
        with pytest.raises(AddressInUse, match=f"port {server.address.port} on 127.0.0.1 is taken"):
            async with build(knobs, "json").serve(recorder_for(adapter), server.address):
                pass
        async with adapter.connect(server.address) as peer:  # and the first is unharmed
            assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL")) == quote("AAPL", 42)


async def test_several_connections_are_several(knobs: dict[str, Any]) -> None:
    adapter = build(knobs, "json")
    if adapter.in_process:
        pytest.skip("no connections")
    async with asyncio.timeout(BOUND_S), adapter.serve(recorder_for(adapter), ANY_PORT) as server:
        async with (
            adapter.connect(server.address) as one,
            adapter.connect(server.address) as two,
            adapter.connect(server.address) as three,
        ):
            for peer in (one, two, three):
                assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL")) == quote("AAPL", 42)
            queues = tcp_queues(server.address.port, local=True)
            assert queues is not None
            assert len(queues) == 3


@pytest.mark.parametrize("protocol", sorted(variants()))
def test_the_knobs_are_the_constructor(protocol: str) -> None:
    """conf/protocol/<name>.yaml holds exactly the constructor's own keyword arguments, each annotated."""
    knobs = variants()[protocol]
    module, _, cls = knobs["_target_"].rpartition(".")
    parameters = inspect.signature(getattr(importlib.import_module(module), cls)).parameters
    own = set(parameters) - {"codec", "max_message_bytes"}

    assert own == set(knobs) - {"name", "_target_"}
    assert all(parameter.annotation is not inspect.Parameter.empty for parameter in parameters.values())
    assert all(parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in parameters.values())


@pytest.mark.parametrize("protocol", sorted(variants()))
def test_every_declared_fact_is_a_word(protocol: str) -> None:
    adapter = build(variants()[protocol], "json")

    assert adapter.default_codec in CODECS
    assert adapter.engine
    assert all(getattr(adapter.facts, name) for name in adapter.facts.__dataclass_fields__ if name != "library")
