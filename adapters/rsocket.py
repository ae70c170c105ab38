"""RSocket over TCP or WebSocket, by rsocket-py: four interaction models, and demand that the reader signals in
messages.

A call names its method as a route in composite metadata. Of the two engines, `stock` is the library as it is,
and `coalescing` replaces its transport by one that writes the frames of a batch at once. Streams are read and
fed by code of our own, because the library's helpers do not keep to the credit exactly.

One frame holds 16,777,215 bytes. Beyond that the library corrupts the connection without a word, and its
fragmentation mixes up the items of a stream. So no message is ever fragmented, and one that does not fit is
refused before it is sent.

A channel is opened by its first request: a service that speaks first on a bidirectional stream is not heard
until then.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any, Literal

from rsocket.extensions.mimetypes import WellKnownMimeTypes
from rsocket.frame import MAX_REQUEST_N
from rsocket.helpers import single_transport_provider
from rsocket.routing.routing_request_handler import RoutingRequestHandler
from rsocket.rsocket_client import RSocketClient
from rsocket.rsocket_server import RSocketServer
from rsocket.transports.tcp import TransportTCP

from adapters.api import (
    Adapter,
    Address,
    AddressInUse,
    Codec,
    ConnectionLost,
    Facts,
    HandWritten,
    Peer,
    Served,
    Shape,
)
from adapters.messages import METHODS
from adapters.rsocket_client import Client, Events
from adapters.rsocket_inbox import Replies
from adapters.rsocket_server import Routes, Server
from adapters.rsocket_websocket import Line, WebSocketTransport, dialled, listening
from adapters.rsocket_wire import HEADER, LENGTH, STOP_S, CoalescingTCP, Wire, Writer, room

KEEPALIVE = timedelta(seconds=10)  # the library's half second would put frames into every measurement
Accept = Callable[..., None]  # (writer, the library's transport, what to call when the connection is over)
LIFETIME = timedelta(minutes=10)  # a short one raises false alarms when the client's own loop is busy


class RSocket(Adapter):
    """rsocket-py over `transport`: tcp, or websocket with a message for each frame, for peers in browsers.

    `credit`: how many items a reader grants at a time, where `connect` is not told. `refill_at_half`: it grants
    more when half of them are left, else when none is. A server reads uploads by the same two.
    `read_buffer_bytes`: how much the library takes at once of what the socket has received (tcp).
    """

    shapes = frozenset(Shape)
    default_codec = "cbor"
    facts = Facts(
        library="rsocket",
        transport="TCP, or WebSocket",
        schema="none",
        interaction="all four, and fire-and-forget",
        demand="request(n), in messages",
        deadlines="none",
        browser="over WebSocket",
        accepts="bytes",
        wire_type="MIME type, once per connection",
    )
    multiplexes = True

    def __init__(
        self,
        *,
        codec: Codec,
        max_message_bytes: int,
        engine: Literal["stock", "coalescing"] = "stock",
        transport: Literal["tcp", "websocket"] = "tcp",
        credit: int = 1000,
        refill_at_half: bool = True,
        read_buffer_bytes: int = 1024,
    ) -> None:
        if engine not in ("stock", "coalescing"):
            raise ValueError(f"engine is stock or coalescing, not {engine!r}")
        if transport not in ("tcp", "websocket"):
            raise ValueError(f"transport is tcp or websocket, not {transport!r}")
        if engine == "coalescing" and transport != "tcp":
            raise ValueError("engine coalescing needs transport=tcp")
        if read_buffer_bytes < 1:
            raise ValueError(f"read_buffer_bytes is 1 or more, not {read_buffer_bytes:,}")
        self.codec = codec
        self.max_message_bytes = max_message_bytes
        self.engine = engine
        self._credit = _grant(credit)
        self._low = credit // 2 if refill_at_half else 0
        self._tcp = CoalescingTCP if engine == "coalescing" else TransportTCP
        self._transport = transport
        self._read_buffer_bytes = read_buffer_bytes

    @asynccontextmanager
    async def serve(self, peer: Peer, address: Address) -> AsyncIterator[Served]:
        """Raises AddressInUse."""
        _silence()
        served, limit = Server(), self.limit_bytes()

        def accept(writer: Writer, transport: Any, gone: Callable[[], None] = lambda: None) -> None:
            if served.stopping:
                writer.transport.abort()
                gone()
                return
            wire = Wire(writer, self.codec, limit, served.tasks)
            handler = RoutingRequestHandler(Routes(wire, peer, self._credit, self._low).router())
            wire.socket = RSocketServer(transport, handler_factory=lambda: handler)
            served.wires.add(wire)

            def ended() -> None:
                served.wires.discard(wire)
                gone()

            wire.watch(ended)

        listening = self._listening_tcp if self._transport == "tcp" else self._listening_websocket
        async with listening(address, accept) as served.address:
            try:
                yield served
            finally:
                served.stopping = True
                await asyncio.gather(*(wire.close("the server stopped") for wire in list(served.wires)))
                await _end(served.tasks)

    @asynccontextmanager
    async def _listening_tcp(self, address: Address, accept: Accept) -> AsyncIterator[Address]:
        try:
            server = await asyncio.start_server(
                lambda reader, writer: accept(writer, self._tcp(reader, writer, self._read_buffer_bytes)),
                address.host,
                address.port,
            )
        except OSError as exc:
            if exc.errno == errno.EADDRINUSE:
                raise AddressInUse(address) from exc
            raise
        try:
            yield Address(*server.sockets[0].getsockname()[:2])
        finally:
            server.close()
            with suppress(TimeoutError):
                await asyncio.wait_for(server.wait_closed(), STOP_S)

    @asynccontextmanager
    async def _listening_websocket(self, address: Address, accept: Accept) -> AsyncIterator[Address]:
        async def accepted(line: Line, transport: WebSocketTransport) -> None:
            gone = asyncio.Event()
            accept(line, transport, gone.set)
            await gone.wait()

        async with listening(address, accepted) as where:
            yield where

    @asynccontextmanager
    async def connect(self, address: Address, credit: int | None = None) -> AsyncIterator[Peer]:
        """One TCP connection. Raises ConnectionLost when nobody listens."""
        _silence()
        granted, low = (self._credit, self._low) if credit is None else (_grant(credit), 0)
        writer, transport = await (self._dialled(address) if self._transport == "tcp" else dialled(address))
        reading: set[Replies] = set()
        tasks: set[asyncio.Task[Any]] = set()

        def lost(reason: str) -> None:
            for replies in list(reading):
                replies.fail(ConnectionLost(reason))

        wire = Wire(writer, self.codec, self.limit_bytes(), tasks, lost)
        transports = single_transport_provider(transport)
        wire.socket = RSocketClient(
            transports,
            handler_factory=lambda: Events(wire),
            data_encoding=self.codec.mime,
            metadata_encoding=WellKnownMimeTypes.MESSAGE_RSOCKET_COMPOSITE_METADATA,
            keep_alive_period=KEEPALIVE,
            max_lifetime_period=LIFETIME,
        )
        try:
            await wire.socket.connect()
            wire.watch()
            yield Client(wire, granted, low, reading)
        finally:
            await wire.close("this end closed the connection")
            await transports.aclose()
            await _end(tasks)

    async def _dialled(self, address: Address) -> tuple[Writer, Any]:
        try:
            reader, writer = await asyncio.open_connection(address.host, address.port)
        except OSError as exc:
            raise ConnectionLost(f"nobody listens at {address.host} port {address.port}") from exc
        return writer, self._tcp(reader, writer, self._read_buffer_bytes)

    def hand_written(self) -> type[HandWritten] | None:
        """Over TCP only."""
        if self._transport != "tcp":
            return None
        from adapters.rsocket_bare import Bare

        return Bare

    def wire_bytes(self, payload_bytes: int) -> int:
        """Header and payload behind the length; or in a message of the server's, which is not masked."""
        frame = payload_bytes + HEADER
        if self._transport == "websocket":
            return frame + (2 if frame < 126 else 4 if frame < 65_536 else 10)
        return LENGTH + frame

    def limit_bytes(self) -> int:
        """What fits into a frame beside the longest route, or max_message_bytes where that is less."""
        return min(self.max_message_bytes, *map(room, METHODS.values()))


def _grant(credit: int) -> int:
    if not 1 <= credit <= MAX_REQUEST_N:
        raise ValueError(f"credit is from 1 to {MAX_REQUEST_N:,}, not {credit:,}")
    return credit


async def _end(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancel what runs, once, and wait for it, for STOP_S at most."""
    running = list(tasks)
    for task in running:
        if not task.cancelling():
            task.cancel()
    if running:
        await asyncio.wait(running, timeout=STOP_S)


def _silence() -> None:
    """What the library logs (a traceback for each refused call) is answered or raised here already. A level that
    somebody has set stays.
    """
    logger = logging.getLogger("pyrsocket")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL)
