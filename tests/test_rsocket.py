"""RSocket beyond the contract of the seam: the shapes, exact credit, errors and addresses."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable
from contextlib import aclosing
from functools import partial
from typing import Any

import pytest

from adapters.api import (
    AdapterError,
    Address,
    AddressInUse,
    CallFailed,
    CodecError,
    ConnectionLost,
    Message,
    Method,
    Shape,
    Unsupported,
)
from adapters.messages import METHODS, Body, Credit, Empty, Quote, QuoteRequest, StreamRequest, SymbolRequest
from tests.rsocket_shop import (
    ANY_PORT,
    BODIES,
    COLLECT,
    ENGINES,
    MIRROR,
    PATIENT,
    Shop,
    adapter,
    bodies,
    each,
    every,
    everywhere,
    frame,
    nothing_open,
    of,
    serving,
    until,
    watched,
)

SEEN: dict[bytes, tuple[type[Exception], str]] = {
    b"!failed": (CallFailed, "invalid_argument: no: not this one"),
    b"!bare": (CallFailed, "busy"),
    b"!codec": (CallFailed, "codec: a bad message"),
    b"!large": (Unsupported, "a message of 9 bytes is over the limit of 8"),
    b"!bug": (CallFailed, "internal: division by zero"),
    b"!surrogate": (CallFailed, "internal: ?"),
    b"!cancelled": (CallFailed, "cancelled: the service cancelled the call"),
}


@pytest.mark.parametrize("credit", [None, 1, 100])
@everywhere
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


@everywhere
async def test_a_channel_without_any_request_is_not_one_with_an_empty_request(engine: str) -> None:
    async with serving(adapter(engine)) as (peer, shop, server):
        assert await peer.client_stream(COLLECT, bodies()) == Body(b"")
        assert await every(peer.bidi_stream(MIRROR, bodies())) == []
        assert shop.taken == 0
        assert await peer.client_stream(COLLECT, bodies(b"")) == Body(b"")
        assert await every(peer.bidi_stream(MIRROR, bodies(b""))) == [Body(b"")]
        assert shop.taken == 2
        await until(partial(nothing_open, peer, server))


@pytest.mark.parametrize("codec", ["protobuf", "json", "cbor_definite", "msgpack"])
async def test_the_codec_is_free(codec: str) -> None:
    async with serving(adapter(codec=codec)) as (peer, _, _):
        assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 2**40)) == of(2**40)
        assert await peer.unary(METHODS["echo"], Body(b"")) == Body(b"")


@everywhere
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


@everywhere
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
@everywhere
async def test_the_knobs_say_when_more_is_granted(
    engine: str, refill_at_half: bool, after_6: int, after_11: int
) -> None:
    async with serving(adapter(engine, credit=10, refill_at_half=refill_at_half)) as (peer, shop, _):

        def made_at_least(count: int) -> bool:
            return shop.made >= count

        async with aclosing(peer.server_stream(METHODS["quotes.unbounded"], SymbolRequest("AAPL"))) as items:
            for taken, made in ((1, 10), (5, 10), (6, after_6), (10, after_6), (11, after_11)):
                while (await anext(items)).seq < taken - 1:
                    pass
                await until(partial(made_at_least, made))
                assert await watched(lambda: shop.made) == {made}


@pytest.mark.parametrize("credit", [None, 100, 7])
@everywhere
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


@everywhere
async def test_a_quiet_reader_of_a_channel_has_exactly_what_it_granted_made(engine: str) -> None:
    async with serving(adapter(engine), credit=30) as (peer, shop, _):
        async with aclosing(peer.bidi_stream(METHODS["quotes.credited"], each(Credit("AAPL", 10**6)))) as items:
            assert await anext(items) == of(0)
            await until(lambda: shop.made == 30)
            assert await watched(lambda: shop.made) == {30}


@everywhere
async def test_an_upload_runs_ahead_of_the_service_by_the_servers_window_only(engine: str) -> None:
    given = 0
    go, go_on = asyncio.Event(), asyncio.Event()

    class Slow(Shop):
        async def client_stream(self, method: Method, requests: AsyncIterable[Message]) -> Message:
            await go.wait()
            async for _ in requests:
                self.taken += 1
                if self.taken == 11:
                    await go_on.wait()
            return Body(b"%d" % self.taken)

    async def source() -> AsyncGenerator[Message, None]:
        nonlocal given
        for _ in range(100):
            given += 1
            yield Body(b"x")

    async with serving(adapter(engine, credit=10, refill_at_half=False), shop=Slow()) as (peer, shop, _):
        call = asyncio.create_task(peer.client_stream(COLLECT, source()))
        await until(lambda: given == 11)  # the one that opened the channel, and ten that were granted
        assert await watched(lambda: given) == {11}
        go.set()
        await until(lambda: shop.taken == 11)
        assert await watched(lambda: given) == {11}
        go_on.set()
        assert await call == Body(b"100")


@everywhere
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
        await until(partial(nothing_open, peer, server))


@everywhere
async def test_a_method_that_is_not_served_is_not_found_whatever_its_shape(
    engine: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(adapter(engine)) as (peer, _, server):
        for name in ("nonsense", "quotes.unbounded.really"):
            unary, one, two, three = (Method(name, shape, Body, Body) for shape in Shape)
            calls: tuple[Awaitable[Any], ...] = (
                peer.unary(unary, Body(b"")),
                every(peer.server_stream(one, Body(b""))),
                peer.client_stream(two, bodies(b"a", b"b")),
                every(peer.bidi_stream(three, bodies(b"a", b"b"))),
            )
            for call in calls:
                with pytest.raises(CallFailed, match=f"no method '{name}'") as raised:
                    await call
                assert raised.value.kind == "not_found"
        with pytest.raises(CallFailed, match="no method 'quotes'"):  # served, but not in this shape
            await peer.unary(METHODS["quotes"], StreamRequest("AAPL", 1))
        assert caplog.records == []  # the caller knows; the library would log a traceback for each
        assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 5)) == of(5)
        await until(partial(nothing_open, peer, server))


@everywhere
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
        await until(partial(nothing_open, peer, server))


@everywhere
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


@everywhere
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


@everywhere
async def test_a_taken_port_is_an_error_and_the_first_server_is_unharmed(engine: str) -> None:
    async with serving(adapter(engine)) as (peer, _, server):
        with pytest.raises(AddressInUse, match=f"port {server.address.port} on 127.0.0.1 is taken"):
            async with adapter(engine).serve(Shop(), server.address):
                pass
        assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 5)) == of(5)
    async with adapter(engine).serve(Shop(), server.address) as again:  # free as soon as it has stopped
        assert again.address == server.address


@everywhere
async def test_an_ipv6_address_is_as_good_as_another(engine: str) -> None:
    served = adapter(engine)
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")
    async with served.serve(Shop(), Address("::1", 0)) as server, served.connect(server.address) as peer:
        assert server.address.host == "::1"
        assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 5)) == of(5)


@everywhere
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
