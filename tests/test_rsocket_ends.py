"""How RSocket calls and connections end: whatever ends, nothing hangs and nothing runs on."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, aclosing
from datetime import timedelta
from functools import partial

import pytest
from rsocket.payload import Payload

from adapters import rsocket, rsocket_outbox, rsocket_wire
from adapters.api import ConnectionLost, Message, Method, Peer, Served
from adapters.codecs import CODECS
from adapters.messages import METHODS, Body, Credit, Empty, QuoteRequest, SymbolRequest
from adapters.rsocket_server import Server
from tests.rsocket_shop import (
    ANY_PORT,
    COLLECT,
    MIRROR,
    PATIENT,
    Shop,
    adapter,
    bodies,
    each,
    every,
    everywhere,
    nothing_open,
    of,
    request_stream,
    serving,
    setup,
    until,
    watched,
)


@everywhere
async def test_leaving_a_stream_closes_the_services_generator(engine: str) -> None:
    async with serving(adapter(engine)) as (peer, shop, server):
        async with aclosing(peer.server_stream(METHODS["quotes.unbounded"], SymbolRequest("AAPL"))) as items:
            assert [await anext(items) for _ in range(3)] == [of(0), of(1), of(2)]
        await shop.closed.wait()
        assert peer.held() == 0
        assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 5)) == of(5)
        await until(partial(nothing_open, peer, server))
        made = shop.made
        assert await watched(lambda: shop.made) == {made}


@pytest.mark.parametrize("endless", [True, False])
@everywhere
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
        await until(partial(nothing_open, peer, server))
        assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 5)) == of(5)


@everywhere
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
        await until(partial(nothing_open, peer, server))


@everywhere
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
        await until(partial(nothing_open, peer, server))


@everywhere
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
        assert isinstance(server, Server)
        await until(lambda: not server.wires)
        assert server.tasks == set()


@everywhere
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
            asyncio.create_task(every(unopened)),
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


@everywhere
async def test_a_caller_who_insists_is_refused_however_soon_after_the_loss(engine: str) -> None:
    served = adapter(engine)

    async def insist(peer: Peer) -> None:
        for _ in range(4):  # the second call is made before the library has wound down
            with pytest.raises(ConnectionLost):
                await peer.unary(PATIENT, Empty())

    async with served.serve(Shop(), ANY_PORT) as server, served.connect(server.address) as peer:
        assert isinstance(server, Server)
        insisting = asyncio.create_task(insist(peer))
        await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 5))
        for wire in list(server.wires):
            wire.drop("on purpose")
        await insisting


@everywhere
async def test_either_end_waits_for_what_has_to_clean_up(engine: str) -> None:
    cleaned: list[str] = []

    async def clean_up(who: str) -> None:
        await asyncio.sleep(0.05)
        cleaned.append(who)

    class Tidy(Shop):
        async def unary(self, method: Method, request: Message) -> Message:
            try:
                return await super().unary(method, request)
            finally:
                await clean_up("service")

    async def source() -> AsyncGenerator[Message, None]:
        try:
            yield Body(b"a")
            await asyncio.Event().wait()
        finally:
            await clean_up("source")

    served = adapter(engine)
    async with served.serve(Tidy(), ANY_PORT) as server:
        async with served.connect(server.address) as peer:
            channel = peer.bidi_stream(MIRROR, source())
            assert await anext(channel) == Body(b"a")
        assert cleaned == ["source"]
        async with served.connect(server.address) as peer:
            call = asyncio.create_task(peer.unary(PATIENT, Empty()))
            await until(lambda: len(server.tasks) == 1)  # type: ignore[attr-defined]
            await asyncio.sleep(0.01)
    assert cleaned == ["source", "service"]
    assert isinstance((await asyncio.gather(call, return_exceptions=True))[0], ConnectionLost)
    await channel.aclose()


@everywhere
async def test_a_call_cancelled_in_the_turn_of_the_loss_does_not_hide_it_from_the_others(engine: str) -> None:
    async with serving(adapter(engine)) as (peer, _, _):
        cancelled, pending = (asyncio.create_task(peer.unary(PATIENT, Empty())) for _ in range(2))
        await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 5))
        cancelled.cancel()
        peer._wire.drop("on purpose")
        with pytest.raises(ConnectionLost):
            await pending
        assert await asyncio.gather(cancelled, return_exceptions=True)
        assert cancelled.cancelled()


@everywhere
async def test_a_library_that_fails_is_a_lost_connection(engine: str) -> None:
    async with serving(adapter(engine)) as (peer, _, server):
        pending = asyncio.create_task(peer.unary(PATIENT, Empty()))
        await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 5))
        peer._wire.socket.send_payload(1, Payload("text kills its sender"))
        with pytest.raises(ConnectionLost):
            await pending
        with pytest.raises(ConnectionLost, match="the library stopped"):
            await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 5))
        await until(lambda: not server.wires)


@everywhere
async def test_a_server_that_gives_no_sign_of_life_is_a_lost_connection(engine: str) -> None:
    async with serving(adapter(engine)) as (peer, _, _):
        pending = asyncio.create_task(peer.unary(PATIENT, Empty()))
        await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 5))
        await peer._wire.socket._handler.on_keepalive_timeout(timedelta(minutes=11), None)
        with pytest.raises(ConnectionLost):
            await pending
        with pytest.raises(ConnectionLost, match="no sign of life from the server for 660 s"):
            await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 5))


@everywhere
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


@everywhere
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
