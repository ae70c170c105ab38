"""RSocket on the wire: frames, their sizes and their number."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from functools import partial
from typing import Any

import pytest

from adapters.api import Address, Message, Method, Shape, Unsupported
from adapters.codecs import CODECS
from adapters.messages import METHODS, Body, QuoteRequest, StreamRequest
from adapters.rsocket_client import Client
from adapters.rsocket_outbox import YIELD_EVERY
from adapters.rsocket_server import Server
from adapters.rsocket_wire import QUEUE_MAX
from tests.rsocket_shop import (
    ANY_PORT,
    BODIES,
    BOUND_S,
    COLLECT,
    MIRROR,
    Shop,
    adapter,
    bodies,
    every,
    everywhere,
    frame,
    nothing_open,
    of,
    request_stream,
    routed,
    serving,
    setup,
    until,
    watched,
)


@everywhere
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
        long_named = Method("n" * 200, Shape.UNARY, Body, Body)  # its route leaves less room than the limit
        with pytest.raises(Unsupported, match="is over the limit of 16,777,001"):
            await peer.unary(long_named, Body(bytes(limit)))
        assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 5)) == of(5)


@everywhere
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
        await until(partial(nothing_open, peer, server))


@everywhere
async def test_the_configured_limit_holds_in_every_shape_and_both_directions(engine: str) -> None:
    fits, large = b"x" * 100, b"x" * 101
    unlimited, limited = adapter(engine), adapter(engine, limit=100)
    assert limited.limit_bytes() == 100

    async def refused(call: Awaitable[Any]) -> None:
        with pytest.raises(Unsupported, match="a message of 101 bytes is over the limit of 100"):
            await call

    for server_end, client_end in ((limited, limited), (unlimited, limited), (limited, unlimited)):
        async with server_end.serve(Shop(), ANY_PORT) as server, client_end.connect(server.address) as peer:
            assert isinstance(peer, Client)
            assert isinstance(server, Server)
            assert await peer.unary(METHODS["echo"], Body(fits)) == Body(fits)
            assert await every(peer.bidi_stream(MIRROR, bodies(fits, fits))) == [Body(fits)] * 2
            await refused(peer.unary(METHODS["echo"], Body(large)))
            await refused(peer.client_stream(COLLECT, bodies(fits, large)))
            await refused(peer.client_stream(COLLECT, bodies(fits, b"")))  # each fits, the reply does not
            await refused(every(peer.server_stream(BODIES, Body(large))))
            await refused(every(peer.bidi_stream(MIRROR, bodies(fits, large, b"a"))))
            await refused(every(peer.bidi_stream(MIRROR, bodies(large))))
            assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL", 5)) == of(5)
            await until(partial(nothing_open, peer, server))


@everywhere
async def test_each_end_keeps_its_own_limit(engine: str) -> None:
    encode, small, large = CODECS["cbor"]().encode, QuoteRequest("AAPL", 1), QuoteRequest("A" * 80, 1)
    reply_bytes, large_bytes = len(encode(of(1))), len(encode(large))
    assert len(encode(small)) < 40 < reply_bytes
    unlimited, limited = adapter(engine), adapter(engine, limit=40)
    for server_end, client_end, request, size in (
        (limited, unlimited, large, large_bytes),
        (limited, unlimited, small, reply_bytes),
        (unlimited, limited, large, large_bytes),
        (unlimited, limited, small, reply_bytes),
    ):
        async with server_end.serve(Shop(), ANY_PORT) as server, client_end.connect(server.address) as peer:
            with pytest.raises(Unsupported, match=f"a message of {size} bytes is over the limit of 40"):
                await peer.unary(METHODS["quote"], request)


@everywhere
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

        # A channel, complete as it is opened, with one reply: REQUEST_N, then the answer with the end on it.
        writer.write(frame(7, 7, 0x140, struct.pack(">I", 1) + routed("collect") + b"only"))
        assert await received() == (7, 8, 0, struct.pack(">I", 1000))
        assert await received() == (7, 10, 0x60, b"only")

        # A channel that is cancelled in the segment that opened it.
        writer.write(frame(9, 7, 0x100, struct.pack(">I", 1) + routed("mirror") + b"a") + frame(9, 9, 0, b""))
        assert await received() == (9, 8, 0, struct.pack(">I", 1000))
        assert await received() == (9, 9, 0, b"")  # CANCEL of the other half
        assert isinstance(server, Server)
        assert [len(wire.socket._stream_control._streams) for wire in server.wires] == [0]

        writer.write(frame(5, 4, 0x100, routed("nope")))
        assert await received() == (5, 11, 0, struct.pack(">I", 0x201) + b"not_found: no method 'nope'")
        writer.close()
        await writer.wait_closed()


@everywhere
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


@everywhere
async def test_nagle_is_off_at_both_ends(engine: str) -> None:
    async with serving(adapter(engine)) as (peer, _, server):
        await peer.unary(METHODS["quote"], QuoteRequest("AAPL"))
        wires = [peer._wire, *server.wires]
        sockets = [wire._writer.get_extra_info("socket") for wire in wires]
        assert [end.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0 for end in sockets] == [True, True]


@everywhere
async def test_a_source_waits_for_a_transport_that_is_behind(engine: str) -> None:
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
        _reader, writer = await asyncio.open_connection(*server.address)
        writer.write(setup() + request_stream("bodies", 2**31 - 1))
        made = 0
        while not shop.made or shop.made > made:
            made = shop.made
            await asyncio.sleep(0.2)
        backlog = server.backlog()
        assert backlog is not None
        assert QUEUE_MAX < backlog.messages <= QUEUE_MAX + YIELD_EVERY
        assert backlog.size_bytes > 0
        writer.transport.abort()
        await shop.closed.wait()
