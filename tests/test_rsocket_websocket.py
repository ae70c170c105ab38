"""RSocket over WebSocket: what it must do as over TCP, and what only a WebSocket can get wrong."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve

from adapters.api import Address, AddressInUse, CallFailed, ConnectionLost, Unsupported
from adapters.codecs import CODECS
from adapters.messages import METHODS, Body, Credit, Empty, Produced, QuoteRequest, StreamRequest, SymbolRequest
from adapters.rsocket import RSocket
from adapters.rsocket_wire import FRAME_MAX, HEADER
from runner.quotes import quote
from runner.service import Service
from tests.cells import cell, check, config
from tests.http_strangers import closed, reciting
from tests.rsocket_shop import ANY_PORT, routed, setup

BOUND_S = 15


def adapter(transport: str = "websocket", codec: str = "json", limit: int = 64 * 2**20, **knobs: Any) -> RSocket:
    return RSocket(codec=CODECS[codec](), max_message_bytes=limit, transport=transport, **knobs)  # type: ignore[arg-type]


@asynccontextmanager
async def stranger(address: Address) -> AsyncIterator[Any]:
    """A WebSocket that has sent SETUP, and nothing more."""
    async with connect(f"ws://{address.host}:{address.port}/", max_size=None, proxy=None) as ws:
        await ws.send(setup()[3:])
        yield ws


def request(number: int, name: str, data: bytes) -> bytes:
    """A REQUEST_RESPONSE frame, without a length in front."""
    return struct.pack(">IH", number, 4 << 10 | 0x100) + routed(name) + data


async def test_a_message_is_a_frame_without_a_length_in_front() -> None:
    async with asyncio.timeout(BOUND_S), adapter().serve(Service(), ANY_PORT) as server:
        async with stranger(server.address) as ws:
            await ws.send(request(1, "quote", b'{"symbol":"AAPL"}'))
            answer = await ws.recv()

    item = CODECS["json"]().encode(quote("AAPL", 42))
    assert isinstance(answer, bytes)
    assert answer == b"\x00\x00\x00\x01" + (0x0A << 10 | 0x60).to_bytes(2, "big") + item


@pytest.mark.parametrize("size", [1, 125, 126, 65_535, 65_536])
def test_wire_bytes_are_those_of_an_unmasked_frame(size: int) -> None:
    body = size + HEADER
    header = 2 if body < 126 else 4 if body < 65_536 else 10

    assert adapter().wire_bytes(size) == header + body
    assert adapter("tcp").wire_bytes(size) == 3 + body


@pytest.mark.parametrize("transport", ["tcp", "websocket"])
async def test_the_largest_message_passes_both_ways_and_one_more_byte_is_unsupported(transport: str) -> None:
    rsocket, echo = adapter(transport), METHODS["echo"]
    limit = rsocket.limit_bytes()
    assert FRAME_MAX - 100 < limit < FRAME_MAX
    largest = bytes(range(256)) * (limit // 256) + b"x" * (limit % 256)
    async with asyncio.timeout(BOUND_S), rsocket.serve(Service(), ANY_PORT) as server:
        async with rsocket.connect(server.address) as peer:
            assert await peer.unary(echo, Body(largest)) == Body(largest)
            with pytest.raises(Unsupported, match=f"{limit + 1:,} bytes is over the limit of {limit:,}"):
                await peer.unary(echo, Body(largest + b"y"))
            assert await peer.unary(METHODS["quote"], QuoteRequest("A")) == quote("A", 42)


async def test_an_answer_over_the_limit_is_unsupported_and_the_connection_lives() -> None:
    large, small = adapter(limit=4000), adapter(limit=100)
    page = METHODS["quotes.page"]
    async with asyncio.timeout(BOUND_S), large.serve(Service(), ANY_PORT) as server:
        async with small.connect(server.address) as peer:
            with pytest.raises(Unsupported, match=r"bytes is over the limit of 100"):
                await peer.unary(page, page.request("A", -1, 5))
            with pytest.raises(Unsupported, match=r"bytes is over the limit of 4,000"):
                await peer.unary(page, page.request("A", -1, 90))
            assert await peer.unary(METHODS["run"], Empty()) == METHODS["run"].reply("")


async def test_a_message_that_no_frame_can_be_ends_its_connection_only() -> None:
    hello = b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    hello += b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    async with asyncio.timeout(BOUND_S), adapter().serve(Service(), ANY_PORT) as server:
        async with adapter().connect(server.address) as peer:
            reader, writer = await asyncio.open_connection(*server.address)
            writer.write(hello)
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"\x82\xff" + (FRAME_MAX + 1).to_bytes(8, "big") + bytes(4))  # says how long it will be
            close = await reader.readexactly(4)
            assert (close[0], int.from_bytes(close[2:])) == (0x88, 1009)  # too big
            await closed(writer)
            assert await peer.unary(METHODS["quote"], QuoteRequest("A")) == quote("A", 42)


@pytest.mark.parametrize("odd", [b"", b"\x00", b"\xff" * 40, "text"])
async def test_what_is_no_frame_is_ignored_and_harms_nobody(odd: bytes | str) -> None:
    async with asyncio.timeout(BOUND_S), adapter().serve(Service(), ANY_PORT) as server:
        async with stranger(server.address) as ws, adapter().connect(server.address) as peer:
            await ws.send(odd)
            await ws.send(request(1, "quote", b'{"symbol":"AAPL","seq":7}'))
            answers = [await ws.recv()]
            while b'"seq":7' not in answers[-1]:
                answers.append(await ws.recv())
            assert await peer.unary(METHODS["quote"], QuoteRequest("A")) == quote("A", 42)


async def test_credit_is_exact() -> None:
    rsocket = adapter()
    async with asyncio.timeout(BOUND_S), rsocket.serve(service := Service(), ANY_PORT) as server:
        async with rsocket.connect(server.address, 100) as peer, rsocket.connect(server.address) as other:
            async with aclosing(peer.server_stream(METHODS["quotes.unbounded"], SymbolRequest("A"))) as items:
                for seq in range(100):
                    assert await anext(items) == quote("A", seq)
                for _ in range(5):
                    assert await other.unary(METHODS["produced"], Empty()) == Produced(100)
            assert service.produced == 100


async def test_a_channel_both_ways() -> None:
    async def credits() -> AsyncIterator[Credit]:
        yield Credit("A", 2)
        yield Credit("", 1)

    rsocket = adapter("websocket", "protobuf")
    async with asyncio.timeout(BOUND_S), rsocket.serve(Service(), ANY_PORT) as server:
        async with rsocket.connect(server.address) as peer:
            got = [item async for item in peer.bidi_stream(METHODS["quotes.credited"], credits())]

    assert got == [quote("A", seq) for seq in range(3)]


async def test_a_client_that_is_gone_ends_its_stream_on_the_server() -> None:
    ended = asyncio.Event()

    class Noted(Service):
        async def server_stream(self, method: Any, request: Any) -> Any:
            try:
                async with aclosing(super().server_stream(method, request)) as items:
                    async for item in items:
                        yield item
            finally:
                ended.set()

    async with asyncio.timeout(BOUND_S), adapter().serve(Noted(), ANY_PORT) as server:
        async with adapter().connect(server.address, 1) as peer:
            items = peer.server_stream(METHODS["quotes.unbounded"], SymbolRequest("A"))
            await anext(items)
        await ended.wait()
        with pytest.raises(ConnectionLost):
            await anext(items)


async def test_a_server_that_stops_ends_every_call_and_returns_in_time() -> None:
    async with asyncio.timeout(BOUND_S):
        async with adapter().serve(Service(), ANY_PORT) as server:
            stack = adapter().connect(server.address)
            peer = await stack.__aenter__()
            items = peer.server_stream(METHODS["quotes"], StreamRequest("A", 10**6, 1000))
            await anext(items)
            silent = socket.create_connection(server.address)  # never finishes the handshake
        with pytest.raises(ConnectionLost):
            await anext(items)
        with pytest.raises(ConnectionLost):
            await peer.unary(METHODS["run"], Empty())
        await stack.__aexit__(None, None, None)
        silent.close()


async def test_addresses_that_cannot_be_had() -> None:
    async with asyncio.timeout(BOUND_S), adapter().serve(Service(), ANY_PORT) as server:
        with pytest.raises(AddressInUse, match=f"port {server.address.port} on 127.0.0.1 is taken"):
            async with adapter().serve(Service(), server.address):
                pass
    with pytest.raises(ConnectionLost, match="nobody listens at"):
        async with adapter().connect(server.address):
            pass


async def test_a_server_that_is_no_websocket_is_said_to_be_none() -> None:
    async with asyncio.timeout(BOUND_S), reciting(b"HTTP/1.1 200 OK\r\n\r\n", then_close=True) as address:
        with pytest.raises(ConnectionLost, match=r"no WebSocket at 127\.0\.0\.1 port"):
            async with adapter().connect(address):
                pass


async def test_a_server_that_closes_politely_is_noticed() -> None:
    async def close_at_once(ws: Any) -> None:
        await ws.recv()

    async with asyncio.timeout(BOUND_S), serve(close_at_once, *ANY_PORT) as server:
        where = Address(*next(iter(server.sockets)).getsockname()[:2])
        async with adapter().connect(where) as peer:
            with pytest.raises((ConnectionLost, CallFailed)) as lost:
                await peer.unary(METHODS["run"], Empty())
            assert isinstance(lost.value, ConnectionLost)


def test_rows_are_told_apart_by_their_variant() -> None:
    assert cell("stream", "rsocket").variant == ""
    assert cell("stream", "rsocket", protocol_={"transport": "websocket"}).variant == "transport=websocket"


@pytest.mark.parametrize(
    ("knobs", "problem"),
    [
        (
            {"transport": "websocket", "engine": "coalescing"},
            "protocol.engine: coalescing needs transport=tcp; add protocol.transport=tcp",
        ),
        ({"transport": "quic"}, 'protocol.transport: expected one of tcp, websocket, got "quic"'),
    ],
)
def test_a_transport_that_cannot_be_is_one_line(knobs: dict[str, Any], problem: str) -> None:
    _, problems = check(config("stream", "rsocket", protocol_=knobs))

    assert problems == [problem]
