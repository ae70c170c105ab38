"""What only the bare TCP wire can get wrong: its frames and its limits."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import pytest

from adapters.api import Address, CallFailed, ConnectionLost, Message, Method, Unsupported
from adapters.codecs import CODECS
from adapters.messages import METHODS, Body, QuoteRequest, StreamRequest
from adapters.tcp import Tcp
from runner.quotes import quote
from runner.service import Service

ANY_PORT = Address("127.0.0.1", 0)


def adapter(limit: int = 1000) -> Tcp:
    return Tcp(codec=CODECS["json"](), max_message_bytes=limit)


async def closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


async def test_a_message_of_exactly_the_limit_passes_and_one_more_byte_is_unsupported() -> None:
    tcp = adapter()
    async with asyncio.timeout(5), tcp.serve(Service(), ANY_PORT) as server, tcp.connect(server.address) as peer:
        assert await peer.unary(METHODS["echo"], Body(bytes(1000))) == Body(bytes(1000))
        with pytest.raises(Unsupported, match="a message of 1,001 bytes is over the limit of 1,000"):
            await peer.unary(METHODS["echo"], Body(bytes(1001)))
        assert await peer.unary(METHODS["quote"], QuoteRequest("A")) == quote("A", 42)


async def test_a_reply_over_the_servers_limit_is_unsupported_at_the_client() -> None:
    small, large = adapter(60), adapter(1000)  # one quote in JSON is 80 bytes
    async with (
        asyncio.timeout(5),
        small.serve(Service(), ANY_PORT) as server,
        large.connect(server.address) as peer,
    ):
        with pytest.raises(Unsupported, match="bytes is over the limit of 60"):
            await peer.unary(METHODS["quote"], QuoteRequest("A"))


async def test_a_frame_that_announces_too_much_ends_the_connection() -> None:
    tcp = adapter()
    async with asyncio.timeout(5), tcp.serve(Service(), ANY_PORT) as server:
        reader, writer = await asyncio.open_connection(*server.address)
        writer.write(b"\xff\xff\xff\xff\x00")
        with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
            await reader.readexactly(1)
        await closed(writer)


async def test_too_much_announced_in_pieces_is_refused_before_it_has_arrived() -> None:
    tcp = adapter()
    async with asyncio.timeout(5), tcp.serve(Service(), ANY_PORT) as server:
        reader, writer = await asyncio.open_connection(*server.address)
        for piece in (b"\xff\xff", b"\xff\xff\x00"):
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
            await reader.readexactly(1)
        await closed(writer)


async def test_frames_that_arrive_byte_by_byte_are_put_together() -> None:
    tcp = adapter()
    async with asyncio.timeout(5), tcp.serve(Service(), ANY_PORT) as server:
        reader, writer = await asyncio.open_connection(*server.address)
        body = tcp.codec.encode(QuoteRequest("A", 7))
        frame = (len(body) + 7).to_bytes(4, "big") + b"\x00\x05quote" + body
        for byte in frame + frame:
            writer.write(bytes((byte,)))
            await writer.drain()
        for _ in range(2):
            size = int.from_bytes(await reader.readexactly(4), "big")
            payload = await reader.readexactly(size)
            assert payload[1:] == tcp.codec.encode(quote("A", 7))
        await closed(writer)


async def test_a_second_call_on_a_busy_connection_is_refused() -> None:
    tcp = adapter()
    async with asyncio.timeout(5), tcp.serve(Service(), ANY_PORT) as server, tcp.connect(server.address) as peer:
        stream = peer.server_stream(METHODS["quotes"], StreamRequest("A", 10))
        assert await anext(stream) == quote("A", 0)
        with pytest.raises(CallFailed, match="busy"):
            await peer.unary(METHODS["quote"], QuoteRequest("A"))
        assert [item.seq async for item in stream] == list(range(1, 10))
        assert await peer.unary(METHODS["quote"], QuoteRequest("A")) == quote("A", 42)


async def test_a_cancelled_call_takes_its_connection_with_it() -> None:
    """A late answer to nobody would be the next call's answer."""

    class Slow(Service):
        async def unary(self, method: Method, request: Message) -> Message:
            if method.name == "echo":
                await asyncio.sleep(30)
            return await super().unary(method, request)

    tcp = adapter()
    async with asyncio.timeout(5), tcp.serve(Slow(), ANY_PORT) as server, tcp.connect(server.address) as peer:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await peer.unary(METHODS["echo"], Body(b"x"))
        with pytest.raises(ConnectionLost):
            await peer.unary(METHODS["quote"], QuoteRequest("A"))


async def test_nagle_is_off_on_both_ends() -> None:
    tcp = adapter()
    async with asyncio.timeout(5), tcp.serve(Service(), ANY_PORT) as server, tcp.connect(server.address) as peer:
        assert await peer.unary(METHODS["quote"], QuoteRequest("A")) == quote("A", 42)
        wires = [*server.sessions.values(), peer._wire]  # type: ignore[attr-defined]
        sockets = [wire.transport.get_extra_info("socket") for wire in wires]

        assert [sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0 for sock in sockets] == [True, True]


def test_one_streamed_item_costs_five_bytes_of_frame() -> None:
    assert adapter().wire_bytes(35) == 40
