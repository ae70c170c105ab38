"""RSocket: what the contract of the seam does not ask of every protocol. Exact credit, sizes, ends and errors."""

from __future__ import annotations

import asyncio
import gc
import inspect
import itertools
import socket
import struct
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Any

import pytest
import uvloop

from adapters import rsocket, rsocket_outbox, rsocket_wire
from adapters.api import (
    AdapterError,
    Address,
    AddressInUse,
    CallFailed,
    CodecError,
    ConnectionLost,
    Message,
    Method,
    Peer,
    Served,
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
from adapters.rsocket import RSocket

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
ENGINES = ("stock", "coalescing")
ANY_PORT = Address("127.0.0.1", 0)
BOUND_S = 20
MIB = 2**20
COLLECT = Method("collect", Shape.CLIENT_STREAM, Body, Body)
BODIES = Method("bodies", Shape.SERVER_STREAM, Body, Body)
MIRROR = Method("mirror", Shape.BIDI_STREAM, Body, Body)
PATIENT = Method("patient", Shape.UNARY, Empty, Empty)


def on_both_loops(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Runs a coroutine function as a test, once per event loop: bounded, and nothing may be left behind."""

    async def bounded(arguments: dict[str, Any]) -> None:
        lost: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: lost.append(context))
        async with asyncio.timeout(BOUND_S):
            await test(**arguments)
        gc.collect()
        await asyncio.sleep(0)
        assert lost == []
        assert asyncio.all_tasks() == {asyncio.current_task()}

    def run(loop: str, **arguments: Any) -> None:
        with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
            runner.run(bounded(arguments))

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    loop = inspect.Parameter("loop", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    run.__signature__ = inspect.Signature([loop, *inspect.signature(test).parameters.values()])  # type: ignore[attr-defined]
    return pytest.mark.parametrize("loop", LOOPS)(run)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def more_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    for method in (COLLECT, BODIES, MIRROR, PATIENT):
        monkeypatch.setitem(METHODS, method.name, method)


def of(seq: int) -> Quote:
    return Quote("AAPL", seq, seq / 4, seq / 2, 7)


class Shop(Peer):
    """A service that counts what it makes at the moment it makes it, and notes how its calls ended."""

    def __init__(self) -> None:
        self.made = 0
        self.taken = 0
        self.closed = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def unary(self, method: Method, request: Message) -> Message:
        if method is PATIENT:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
        if method.name == "quote":
            return of(request.seq)
        raise_asked_for(request)
        return request

    async def client_stream(self, method: Method, requests: AsyncIterable[Message]) -> Message:
        bodies = []
        async for request in requests:
            raise_asked_for(request)
            bodies.append(request.data)
            self.taken += 1
        return Body(b"|".join(bodies))

    async def server_stream(self, method: Method, request: Message) -> AsyncGenerator[Message, None]:
        try:
            if method is BODIES:
                raise_asked_for(request)
                for part in request.data.split(b"|"):
                    self.made += 1
                    yield Body(part)
            else:
                for seq in itertools.count() if method.name == "quotes.unbounded" else range(request.count):
                    self.made += 1
                    yield of(seq)
        finally:
            self.closed.set()

    async def bidi_stream(self, method: Method, requests: AsyncIterable[Message]) -> AsyncGenerator[Message, None]:
        try:
            async for request in requests:
                self.taken += 1
                if method is MIRROR:
                    raise_asked_for(request)
                    if request.data == b"enough":
                        return
                    yield request
                else:
                    for _ in range(request.n):
                        self.made += 1
                        yield of(self.made - 1)
        finally:
            self.closed.set()


def raise_asked_for(request: Message) -> None:
    """Bodies that start with a "!" ask for an error."""
    if isinstance(request, Body) and request.data.startswith(b"!"):
        raise ERRORS[request.data]


ERRORS: dict[bytes, BaseException] = {
    b"!failed": CallFailed("invalid_argument", "no: not this one"),
    b"!bare": CallFailed("busy", ""),
    b"!codec": CodecError("a bad message"),
    b"!large": Unsupported("a message of 9 bytes is over the limit of 8"),
    b"!bug": ZeroDivisionError("division by zero"),
    b"!surrogate": ValueError("\ud800"),
    b"!cancelled": asyncio.CancelledError(),
}
SEEN: dict[bytes, tuple[type[Exception], str]] = {
    b"!failed": (CallFailed, "invalid_argument: no: not this one"),
    b"!bare": (CallFailed, "busy"),
    b"!codec": (CallFailed, "codec: a bad message"),
    b"!large": (Unsupported, "a message of 9 bytes is over the limit of 8"),
    b"!bug": (CallFailed, "internal: division by zero"),
    b"!surrogate": (CallFailed, "internal: ?"),
    b"!cancelled": (CallFailed, "cancelled: the service cancelled the call"),
}


def adapter(engine: str = "stock", limit: int = 64 * MIB, codec: str = "cbor", **knobs: Any) -> RSocket:
    return RSocket(codec=CODECS[codec](), max_message_bytes=limit, engine=engine, **knobs)  # type: ignore[arg-type]


@asynccontextmanager
async def serving(
    served: RSocket, credit: int | None = None, shop: Shop | None = None
) -> AsyncIterator[tuple[Peer, Shop, Any]]:
    """A client's peer, the service, and the running server."""
    shop = shop or Shop()
    async with served.serve(shop, ANY_PORT) as server, served.connect(server.address, credit) as peer:
        yield peer, shop, server


async def each(*requests: Message) -> AsyncGenerator[Message, None]:
    for request in requests:
        yield request


async def bodies(*data: bytes) -> AsyncGenerator[Message, None]:
    for part in data:
        yield Body(part)


async def every(items: AsyncGenerator[Message, None]) -> list[Message]:
    return [item async for item in items]


async def watched(count: Callable[[], int]) -> set[int]:
    """Every value of `count` while the loop has ample time to change it."""
    seen = set()
    for _ in range(20):
        seen.add(count())
        await asyncio.sleep(0.003)
    return seen


async def until(true: Callable[[], bool]) -> None:
    while not true():
        await asyncio.sleep(0.002)


def streams(peer: Any, server: Any) -> tuple[int, int]:
    """How many streams the library knows at each end."""
    ends = [peer._wire.socket, *(wire.socket for wire in server.wires)]
    mine, theirs = (len(end._stream_control._streams) for end in ends)
    return mine, theirs


# --- through the wire equals calling directly ---


@pytest.mark.parametrize("credit", [None, 1, 100])
@on_both_loops
async def test_every_shape_carries_what_a_direct_call_would(engine: str, credit: int | None) -> None:
    direct = Shop()
    async with serving(adapter(engine, credit=8), credit) as (peer, _, _):
        for data in (b"", b"\0", b"abc", bytes(70_000)):
            assert await peer.unary(METHODS["echo"], Body(data)) == Body(data)
        for parts in ((b"",), (b"a", b"", b"", b"b"), (b"x",) * 100):
            joined = Body(b"|".join(parts))
            assert await peer.client_stream(COLLECT, bodies(*parts)) == joined
            got = await every(peer.server_stream(BODIES, joined))
            assert got == await every(direct.server_stream(BODIES, joined))
            assert await every(peer.bidi_stream(MIRROR, bodies(*parts))) == [Body(part) for part in parts]
        for count in (0, 1, 8, 500):
            got = await every(peer.server_stream(METHODS["quotes"], StreamRequest("AAPL", count)))
            assert got == [of(seq) for seq in range(count)]


@on_both_loops
async def test_a_channel_without_any_request_is_not_one_with_an_empty_request(engine: str) -> None:
    async with serving(adapter(engine)) as (peer, shop, server):
        assert await peer.client_stream(COLLECT, bodies()) == Body(b"")
        assert await every(peer.bidi_stream(MIRROR, bodies())) == []
        assert shop.taken == 0
        assert await peer.client_stream(COLLECT, bodies(b"")) == Body(b"")
        assert await every(peer.bidi_stream(MIRROR, bodies(b""))) == [Body(b"")]
        assert shop.taken == 2
        await until(lambda: streams(peer, server) == (0, 0))


@pytest.mark.parametrize("codec", ["protobuf", "json", "cbor_definite", "msgpack"])
async def test_the_codec_is_free(codec: str) -> None:
    async with serving(adapter(codec=codec)) as (peer, _, _):
        assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 2**40)) == of(2**40)
        assert await peer.unary(METHODS["echo"], Body(b"")) == Body(b"")


@on_both_loops
async def test_calls_share_a_connection_without_waiting_for_each_other(engine: str) -> None:
    async with serving(adapter(engine)) as (peer, shop, _):
        waiting = asyncio.create_task(peer.unary(PATIENT, Empty()))
        async with aclosing(peer.server_stream(METHODS["quotes.unbounded"], SymbolRequest("AAPL"))) as items:
            assert await anext(items) == of(0)
            replies = await asyncio.gather(
                *(peer.unary(METHODS["quote"], QuoteRequest("AAPL", seq)) for seq in range(50))
            )
        assert replies == [of(seq) for seq in range(50)]
        assert not waiting.done()
        waiting.cancel()
        await shop.cancelled.wait()


# --- credit ---


@on_both_loops
async def test_a_quiet_reader_has_exactly_what_it_granted_made(engine: str) -> None:
    async with serving(adapter(engine), credit=100) as (peer, shop, _):
        stream = peer.server_stream(METHODS["quotes.unbounded"], SymbolRequest("AAPL"))
        assert await watched(lambda: shop.made) == {0}  # nothing is asked for before the first item is

        async with aclosing(stream) as items:
            assert await anext(items) == of(0)
            await until(lambda: shop.made == 100)
            assert await watched(lambda: shop.made) == {100}
            assert peer.held() == 99

            assert [await anext(items) for _ in range(99)] == [of(seq) for seq in range(1, 100)]
            assert await watched(lambda: shop.made) == {100}  # the last one consumed is no request for more
            assert peer.held() == 0

            assert await anext(items) == of(100)
            await until(lambda: shop.made == 200)
            assert await watched(lambda: shop.made) == {200}


@pytest.mark.parametrize(("refill_at_half", "after_6", "after_11"), [(True, 15, 20), (False, 10, 20)])
@on_both_loops
async def test_the_knobs_say_when_more_is_granted(
    engine: str, refill_at_half: bool, after_6: int, after_11: int
) -> None:
    async with serving(adapter(engine, credit=10, refill_at_half=refill_at_half)) as (peer, shop, _):
        async with aclosing(peer.server_stream(METHODS["quotes.unbounded"], SymbolRequest("AAPL"))) as items:
            made = {}
            for taken in range(1, 12):
                await anext(items)
                if taken in (1, 5, 6, 10, 11):
                    made[taken] = await watched(lambda: shop.made)
                    made[taken].discard(shop.made - 5)  # a look before the grant arrived
                    made[taken].discard(shop.made - 10)
            assert made == {1: {10}, 5: {10}, 6: {after_6}, 10: {after_6}, 11: {after_11}}


@pytest.mark.parametrize("credit", [None, 100, 7])
@on_both_loops
async def test_credit_of_the_application_bounds_a_channel_exactly(engine: str, credit: int | None) -> None:
    more = asyncio.Event()

    async def credits() -> AsyncGenerator[Message, None]:
        yield Credit("AAPL", 100)
        await more.wait()
        yield Credit(n=7)
        await asyncio.Event().wait()

    async with serving(adapter(engine), credit) as (peer, shop, _):
        async with aclosing(peer.bidi_stream(METHODS["quotes.credited"], credits())) as items:
            assert [await anext(items) for _ in range(100)] == [of(seq) for seq in range(100)]
            assert await watched(lambda: shop.made) == {100}
            more.set()
            assert [await anext(items) for _ in range(7)] == [of(seq) for seq in range(100, 107)]
            assert await watched(lambda: shop.made) == {107}
        await shop.closed.wait()


@on_both_loops
async def test_a_quiet_reader_of_a_channel_has_exactly_what_it_granted_made(engine: str) -> None:
    async with serving(adapter(engine), credit=30) as (peer, shop, _):
        async with aclosing(peer.bidi_stream(METHODS["quotes.credited"], each(Credit("AAPL", 10**6)))) as items:
            assert await anext(items) == of(0)
            await until(lambda: shop.made == 30)
            assert await watched(lambda: shop.made) == {30}


@on_both_loops
async def test_an_upload_runs_ahead_of_the_service_by_the_servers_window_only(engine: str) -> None:
    given = 0
    go = asyncio.Event()

    class Slow(Shop):
        async def client_stream(self, method: Method, requests: AsyncIterable[Message]) -> Message:
            await go.wait()
            return await super().client_stream(method, requests)

    async def source() -> AsyncGenerator[Message, None]:
        nonlocal given
        for _ in range(100):
            given += 1
            yield Body(b"x")

    async with serving(adapter(engine, credit=10), shop=Slow()) as (peer, _, _):
        call = asyncio.create_task(peer.client_stream(COLLECT, source()))
        await until(lambda: given == 11)  # the one that opened the channel, and ten that were granted
        assert await watched(lambda: given) == {11}
        go.set()
        assert await call == Body(b"|".join([b"x"] * 100))


@on_both_loops
async def test_a_source_waits_for_a_transport_that_is_behind(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger grants everything and reads nothing: memory must not take what the socket does not."""
    large = Body(bytes(40_000))

    class Endless(Shop):
        async def server_stream(self, method: Method, request: Message) -> AsyncGenerator[Message, None]:
            try:
                while True:
                    self.made += 1
                    yield large
            finally:
                self.closed.set()

    shop = Endless()
    async with adapter(engine).serve(shop, ANY_PORT) as server:
        reader, writer = await asyncio.open_connection(*server.address)
        writer.write(setup() + request_stream("bodies", 2**31 - 1))
        made = 0
        while not shop.made or shop.made > made:
            made = shop.made
            await asyncio.sleep(0.2)
        backlog = server.backlog()
        ahead = rsocket_outbox.YIELD_EVERY
        assert rsocket_wire.QUEUE_MAX < backlog.messages <= rsocket_wire.QUEUE_MAX + ahead
        assert backlog.size_bytes > 0
        writer.transport.abort()
        await shop.closed.wait()
        del reader


# --- ends ---


@on_both_loops
async def test_leaving_a_stream_closes_the_services_generator(engine: str) -> None:
    async with serving(adapter(engine)) as (peer, shop, server):
        async with aclosing(peer.server_stream(METHODS["quotes.unbounded"], SymbolRequest("AAPL"))) as items:
            assert [await anext(items) for _ in range(3)] == [of(0), of(1), of(2)]
        await shop.closed.wait()
        assert peer.held() == 0
        assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 5)) == of(5)
        await until(lambda: streams(peer, server) == (0, 0))
        made = shop.made
        assert await watched(lambda: shop.made) == {made}


@pytest.mark.parametrize("endless", [True, False])
@on_both_loops
async def test_leaving_a_channel_closes_both_generators(engine: str, endless: bool) -> None:
    closed = asyncio.Event()

    async def source() -> AsyncGenerator[Message, None]:
        try:
            for n in itertools.count():
                yield Body(b"%d" % n)
                if n == 5 and not endless:
                    await asyncio.Event().wait()
        finally:
            closed.set()

    async with serving(adapter(engine, credit=4)) as (peer, shop, server):
        async with aclosing(peer.bidi_stream(MIRROR, source())) as items:
            assert [await anext(items) for _ in range(3)] == [Body(b"0"), Body(b"1"), Body(b"2")]
        assert closed.is_set()
        await shop.closed.wait()
        await until(lambda: streams(peer, server) == (0, 0))
        assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 5)) == of(5)


@on_both_loops
async def test_a_service_that_has_heard_enough_ends_the_upload(engine: str) -> None:
    closed = asyncio.Event()

    async def source() -> AsyncGenerator[Message, None]:
        try:
            yield Body(b"a")
            yield Body(b"enough")
            while True:
                yield Body(b"more")
        finally:
            closed.set()

    async with serving(adapter(engine, credit=4)) as (peer, shop, server):
        assert await every(peer.bidi_stream(MIRROR, source())) == [Body(b"a")]
        assert closed.is_set()
        assert shop.taken == 2
        await until(lambda: streams(peer, server) == (0, 0))


@on_both_loops
async def test_a_cancelled_call_is_cancelled_on_the_server_and_leaves_the_connection_usable(engine: str) -> None:
    async with serving(adapter(engine)) as (peer, shop, server):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await peer.unary(PATIENT, Empty())
        await shop.cancelled.wait()
        assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 5)) == of(5)
        for turns in range(40):  # one of them cancels in the very turn in which the answer comes
            call = asyncio.create_task(peer.unary(METHODS["quote"], QuoteRequest("AAPL", 6)))
            for _ in range(turns):
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.wait([call])
            assert call.cancelled() or call.result() == of(6)
        assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 7)) == of(7)
        await until(lambda: streams(peer, server) == (0, 0))


@on_both_loops
async def test_a_client_that_goes_away_cancels_everything_it_asked_for(engine: str) -> None:
    shop = Shop()
    served = adapter(engine)
    async with served.serve(shop, ANY_PORT) as server:
        async with served.connect(server.address) as peer:
            stream = peer.server_stream(METHODS["quotes.unbounded"], SymbolRequest("AAPL"))
            assert await anext(stream) == of(0)
            call = asyncio.create_task(peer.unary(PATIENT, Empty()))
            assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 5)) == of(5)
        with pytest.raises(ConnectionLost):
            await call
        await stream.aclose()
        await shop.cancelled.wait()
        await shop.closed.wait()
        await until(lambda: not server.wires)
        assert server.tasks == set()


@on_both_loops
async def test_a_lost_connection_ends_every_call_and_refuses_later_ones(engine: str) -> None:
    served = adapter(engine)
    serve: AbstractAsyncContextManager[Served] = served.serve(Shop(), ANY_PORT)
    server = await serve.__aenter__()

    async def never() -> AsyncGenerator[Message, None]:
        await asyncio.Event().wait()
        yield Body(b"")

    async with served.connect(server.address, 1) as peer:
        stream = peer.server_stream(METHODS["quotes.unbounded"], SymbolRequest("AAPL"))
        channel = peer.bidi_stream(METHODS["quotes.credited"], each(Credit("AAPL", 2)))
        unopened = peer.bidi_stream(MIRROR, never())
        assert await anext(stream) == of(0)
        assert await anext(channel) == of(1)
        pending = [
            asyncio.create_task(peer.unary(PATIENT, Empty())),
            asyncio.create_task(peer.client_stream(COLLECT, never())),
            asyncio.create_task(anext(unopened)),  # type: ignore[arg-type]
        ]
        await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 5))
        await serve.__aexit__(None, None, None)
        results = await asyncio.gather(*pending, return_exceptions=True)
        assert [type(result) for result in results] == [ConnectionLost] * 3
        for items in (stream, channel):
            with pytest.raises(ConnectionLost):
                while True:
                    await anext(items)
        for _ in range(2):
            with pytest.raises(ConnectionLost, match="closed by the other side"):
                await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 5))
            with pytest.raises(ConnectionLost):
                await anext(peer.server_stream(METHODS["quotes.unbounded"], SymbolRequest("AAPL")))
            with pytest.raises(ConnectionLost):
                await peer.client_stream(COLLECT, bodies(b"a"))
            with pytest.raises(ConnectionLost):
                await peer.client_stream(COLLECT, bodies())


@on_both_loops
async def test_a_server_that_stops_does_not_wait_for_a_service_that_will_not(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (rsocket, rsocket_wire, rsocket_outbox):
        monkeypatch.setattr(module, "STOP_S", 0.05)
    let_go = asyncio.Event()
    ended = asyncio.Event()

    class Stubborn(Shop):
        async def unary(self, method: Method, request: Message) -> Message:
            while not let_go.is_set():
                try:
                    await let_go.wait()
                except asyncio.CancelledError:
                    self.cancelled.set()
            ended.set()
            return request

    shop = Stubborn()
    served = adapter(engine)
    async with served.serve(shop, ANY_PORT) as server, served.connect(server.address) as peer:
        call = asyncio.create_task(peer.unary(PATIENT, Empty()))
        await asyncio.sleep(0.02)
    assert shop.cancelled.is_set()
    assert not ended.is_set()
    assert isinstance((await asyncio.gather(call, return_exceptions=True))[0], ConnectionLost)
    let_go.set()
    await ended.wait()


@on_both_loops
async def test_a_server_with_a_stuck_reader_stops_all_the_same(engine: str) -> None:
    shop = Shop()
    async with adapter(engine).serve(shop, ANY_PORT) as server:
        _, writer = await asyncio.open_connection(*server.address)
        writer.write(
            setup() + request_stream("quotes.unbounded", 2**31 - 1, CODECS["cbor"]().encode(SymbolRequest("X")))
        )
        await until(lambda: shop.made > 0)
    await shop.closed.wait()
    writer.transport.abort()


# --- errors ---


@on_both_loops
async def test_an_error_of_the_service_arrives_as_its_kind_and_text(engine: str) -> None:
    async def seen(call: Awaitable[Any]) -> tuple[type[Exception], str]:
        with pytest.raises(AdapterError) as raised:
            await call
        return type(raised.value), str(raised.value)

    async with serving(adapter(engine)) as (peer, _, server):
        for asked, expected in SEEN.items():
            assert await seen(peer.unary(METHODS["echo"], Body(asked))) == expected
            assert await seen(peer.client_stream(COLLECT, bodies(b"a", asked))) == expected
            assert await seen(every(peer.server_stream(BODIES, Body(asked)))) == expected
            assert await seen(every(peer.bidi_stream(MIRROR, bodies(b"a", asked, b"b")))) == expected
        assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 5)) == of(5)
        await until(lambda: streams(peer, server) == (0, 0))


@on_both_loops
async def test_a_method_that_is_not_served_is_not_found_whatever_its_shape(engine: str) -> None:
    async with serving(adapter(engine)) as (peer, _, server):
        for name in ("nonsense", "quotes.unbounded.really"):
            unary, one, two, three = (Method(name, shape, Body, Body) for shape in Shape)
            for call in (
                lambda method=unary: peer.unary(method, Body(b"")),
                lambda method=one: anext(peer.server_stream(method, Body(b""))),
                lambda method=two: peer.client_stream(method, bodies(b"a", b"b")),
                lambda method=three: anext(peer.bidi_stream(method, bodies(b"a", b"b"))),
            ):
                with pytest.raises(CallFailed, match=f"no method '{name}'") as raised:
                    await call()
                assert raised.value.kind == "not_found"
        with pytest.raises(CallFailed, match="no method 'quotes'"):  # served, but not in this shape
            await peer.unary(METHODS["quotes"], StreamRequest("AAPL", 1))
        assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 5)) == of(5)
        await until(lambda: streams(peer, server) == (0, 0))


@on_both_loops
async def test_requests_that_fail_are_raised_to_the_caller_and_fail_the_service(engine: str) -> None:
    heard: list[str] = []

    class Listener(Shop):
        async def bidi_stream(
            self, method: Method, requests: AsyncIterable[Message]
        ) -> AsyncGenerator[Message, None]:
            try:
                async for request in requests:
                    yield request
                heard.append("the end")
            except (CallFailed, asyncio.CancelledError, GeneratorExit) as exc:
                heard.append(type(exc).__name__)
                raise
            finally:
                self.closed.set()

    async def failing() -> AsyncGenerator[Message, None]:
        yield Body(b"a")
        raise ZeroDivisionError("mine")

    async with serving(adapter(engine), shop=Listener()) as (peer, shop, server):
        with pytest.raises(ZeroDivisionError, match="mine"):
            async for item in peer.bidi_stream(MIRROR, failing()):
                assert item == Body(b"a")
        await shop.closed.wait()
        with pytest.raises(ZeroDivisionError, match="mine"):
            await peer.client_stream(COLLECT, failing())
        assert heard in (["CallFailed"], ["CancelledError"], ["GeneratorExit"])
        await until(lambda: streams(peer, server) == (0, 0))


@on_both_loops
async def test_bytes_that_are_no_message_are_an_error_of_that_call(engine: str) -> None:
    wrong = Method("quote", Shape.UNARY, Body, Quote)
    surprising = Method("echo", Shape.UNARY, Body, Quote)
    async with serving(adapter(engine)) as (peer, _, _):
        with pytest.raises(CallFailed) as failed:
            await peer.unary(wrong, Body(b"\xff\xff"))
        assert failed.value.kind == "codec"
        with pytest.raises(CodecError):
            await peer.unary(surprising, Body(b"\xff\xff"))
        assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 5)) == of(5)


@on_both_loops
async def test_an_error_of_the_whole_connection_ends_it(engine: str) -> None:
    async def reject(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(frame(0, 11, 0, struct.pack(">I", 3) + b"not you"))
        await reader.read()
        writer.close()

    rejecting = await asyncio.start_server(reject, *ANY_PORT)
    async with rejecting, adapter(engine).connect(Address(*rejecting.sockets[0].getsockname())) as peer:
        for _ in range(2):
            with pytest.raises(ConnectionLost):
                await peer.unary(METHODS["quote"], QuoteRequest("AAPL"))
        with pytest.raises(ConnectionLost, match="the server ended the connection: rejected_setup not you"):
            await peer.unary(METHODS["quote"], QuoteRequest("AAPL"))


# --- sizes ---


@on_both_loops
async def test_what_a_frame_holds_arrives_whole_and_what_it_does_not_hold_is_refused(engine: str) -> None:
    served = adapter(engine)
    limit = served.limit_bytes()
    longest = max((method for method in METHODS.values()), key=lambda method: len(method.name))
    assert longest.name == "quotes.unbounded.ready"
    assert limit == 2**24 - 1 - 6 - 4 - 3 - (1 + 3 + 1 + len(longest.name))
    async with serving(served) as (peer, _, _):
        for size in (16_700_000, limit):
            body = Body(size.to_bytes(4, "big") * (size // 4) + b"!" * (size % 4))
            assert await peer.unary(METHODS["echo"], body) == body
        for size in (limit + 1, 16_777_197, 16_777_216, 17_000_000):
            with pytest.raises(Unsupported, match=f"a message of {size:,} bytes is over the limit of {limit:,}"):
                await peer.unary(METHODS["echo"], Body(bytes(size)))
        assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 5)) == of(5)


@on_both_loops
async def test_a_reply_that_does_not_fit_is_refused_and_the_connection_lives_on(engine: str) -> None:
    size = 16_777_216

    class Inflating(Shop):
        async def unary(self, method: Method, request: Message) -> Message:
            return Body(bytes(size)) if method.name == "echo" else await super().unary(method, request)

        async def server_stream(self, method: Method, request: Message) -> AsyncGenerator[Message, None]:
            yield Body(b"small")
            yield Body(bytes(size))

    async with serving(adapter(engine), shop=Inflating()) as (peer, _, server):
        with pytest.raises(Unsupported, match=f"a message of {size:,} bytes is over the limit of 16,777,175"):
            await peer.unary(METHODS["echo"], Body(b""))
        async with aclosing(peer.server_stream(BODIES, Body(b""))) as items:
            assert await anext(items) == Body(b"small")
            with pytest.raises(Unsupported, match=f"{size:,} bytes"):
                await anext(items)
        assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 5)) == of(5)
        await until(lambda: streams(peer, server) == (0, 0))


@on_both_loops
async def test_the_configured_limit_holds_in_every_shape_and_both_directions(engine: str) -> None:
    fits, large = b"x" * 100, b"x" * 101
    unlimited, limited = adapter(engine), adapter(engine, limit=100)
    assert limited.limit_bytes() == 100

    async def refused(call: Awaitable[Any]) -> None:
        with pytest.raises(Unsupported, match="a message of 101 bytes is over the limit of 100"):
            await call

    for server_end, client_end in ((limited, limited), (unlimited, limited), (limited, unlimited)):
        async with server_end.serve(Shop(), ANY_PORT) as server, client_end.connect(server.address) as peer:
            assert await peer.unary(METHODS["echo"], Body(fits)) == Body(fits)
            assert await every(peer.bidi_stream(MIRROR, bodies(fits, fits))) == [Body(fits)] * 2
            await refused(peer.unary(METHODS["echo"], Body(large)))
            await refused(peer.client_stream(COLLECT, bodies(fits, large)))
            await refused(peer.client_stream(COLLECT, bodies(fits, b"")))  # each fits, the reply does not
            await refused(every(peer.server_stream(BODIES, Body(large))))
            await refused(every(peer.bidi_stream(MIRROR, bodies(fits, large, b"a"))))
            await refused(every(peer.bidi_stream(MIRROR, bodies(large))))
            assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 5)) == of(5)
            await until(lambda peer=peer, server=server: streams(peer, server) == (0, 0))


# --- on the wire ---


def frame(stream: int, kind: int, flags: int, rest: bytes) -> bytes:
    body = struct.pack(">IH", stream, kind << 10 | flags) + rest
    return len(body).to_bytes(3, "big") + body


def setup() -> bytes:
    metadata, data = b"message/x.rsocket.composite-metadata.v0", b"application/cbor"
    types = b"".join(bytes([len(mime)]) + mime for mime in (metadata, data))
    return frame(0, 1, 0, struct.pack(">HHII", 1, 0, 10_000, 600_000) + types)


def routed(name: str) -> bytes:
    tag = bytes([len(name)]) + name.encode()
    metadata = b"\xfe" + len(tag).to_bytes(3, "big") + tag
    return len(metadata).to_bytes(3, "big") + metadata


def request_stream(name: str, n: int, data: bytes = b"") -> bytes:
    return frame(1, 6, 0x100, struct.pack(">I", n) + routed(name) + data)


@on_both_loops
async def test_a_stranger_who_speaks_the_bare_protocol_is_served(engine: str) -> None:
    codec = CODECS["cbor"]()
    shop = Shop()
    async with adapter(engine).serve(shop, ANY_PORT) as server:
        reader, writer = await asyncio.open_connection(*server.address)

        async def received() -> tuple[int, int, int, bytes]:
            body = await reader.readexactly(int.from_bytes(await reader.readexactly(3), "big"))
            stream, kind = struct.unpack_from(">IH", body)
            return stream, kind >> 10, kind & 0x3FF, body[6:]

        writer.write(setup() + frame(3, 4, 0x100, routed("quote") + codec.encode(QuoteRequest("AAPL", 9))))
        assert await received() == (3, 10, 0x60, codec.encode(of(9)))  # PAYLOAD, next and complete

        writer.write(request_stream("quotes", 2, codec.encode(StreamRequest("AAPL", 3))))
        assert [await received() for _ in range(2)] == [(1, 10, 0x20, codec.encode(of(seq))) for seq in (0, 1)]
        assert await watched(lambda: shop.made) == {2}
        writer.write(frame(1, 8, 0, struct.pack(">I", 5)))  # REQUEST_N
        assert await received() == (1, 10, 0x20, codec.encode(of(2)))
        assert await received() == (1, 10, 0x40, b"")  # complete, and nothing else

        writer.write(frame(5, 4, 0x100, routed("nope")))
        assert await received() == (5, 11, 0, struct.pack(">I", 0x201) + b"not_found: no method 'nope'")
        writer.close()
        await writer.wait_closed()


@on_both_loops
async def test_an_item_costs_its_payload_and_nine_bytes(engine: str) -> None:
    served, parts = adapter(engine), [bytes([65 + n]) * (n + 1) for n in range(20)]
    seen = bytearray()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, log: bytearray | None) -> None:
        while data := await reader.read(65_536):
            if log is not None:
                log += data
            writer.write(data)
        writer.close()

    async with served.serve(Shop(), ANY_PORT) as server:

        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            to_server = await asyncio.open_connection(*server.address)
            await asyncio.gather(pump(reader, to_server[1], None), pump(to_server[0], writer, seen))
            await to_server[1].wait_closed()

        async with await asyncio.start_server(relay, *ANY_PORT) as between:
            async with served.connect(Address(*between.sockets[0].getsockname())) as peer:
                got = [item.data async for item in peer.server_stream(BODIES, Body(b"|".join(parts)))]
            assert got == parts
            await asyncio.wait_for(until(lambda: len(asyncio.all_tasks()) <= 3), BOUND_S)
    last_frame = served.wire_bytes(0)  # the end of the stream
    assert len(seen) == sum(served.wire_bytes(len(part)) for part in parts) + last_frame


@on_both_loops
async def test_nagle_is_off_at_both_ends(engine: str) -> None:
    async with serving(adapter(engine)) as (peer, _, server):
        await peer.unary(METHODS["quote"], QuoteRequest("AAPL"))
        wires = [peer._wire, *server.wires]
        sockets = [wire._writer.get_extra_info("socket") for wire in wires]
        assert [end.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0 for end in sockets] == [True, True]


@on_both_loops
async def test_a_taken_port_is_an_error_and_the_first_server_is_unharmed(engine: str) -> None:
    async with serving(adapter(engine)) as (peer, _, server):
        with pytest.raises(AddressInUse, match=f"port {server.address.port} on 127.0.0.1 is taken"):
            async with adapter(engine).serve(Shop(), server.address):
                pass
        assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 5)) == of(5)
    async with adapter(engine).serve(Shop(), server.address) as again:  # free as soon as it has stopped
        assert again.address == server.address


@on_both_loops
async def test_an_ipv6_address_is_as_good_as_another(engine: str) -> None:
    served = adapter(engine)
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")
    async with served.serve(Shop(), Address("::1", 0)) as server, served.connect(server.address) as peer:
        assert server.address.host == "::1"
        assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 5)) == of(5)


@on_both_loops
async def test_nobody_listening_is_a_lost_connection(engine: str) -> None:
    async with adapter(engine).serve(Shop(), ANY_PORT) as server:
        address = server.address
    with pytest.raises(ConnectionLost, match=f"nobody listens at 127.0.0.1 port {address.port}"):
        async with adapter(engine).connect(address):
            pass


@pytest.mark.parametrize(
    ("knobs", "text"),
    [
        ({"engine": "quick"}, "engine is stock or coalescing, not 'quick'"),
        ({"credit": 0}, "credit is from 1 to 2,147,483,647, not 0"),
        ({"credit": 2**31}, "credit is from 1 to 2,147,483,647, not 2,147,483,648"),
        ({"read_buffer_bytes": 0}, "read_buffer_bytes is 1 or more, not 0"),
    ],
)
def test_a_knob_out_of_range_is_refused(knobs: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        adapter(**knobs)


def test_the_engine_is_the_knob() -> None:
    assert [adapter(name).engine for name in ENGINES] == ["stock", "coalescing"]
