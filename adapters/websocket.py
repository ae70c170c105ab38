"""WebSocket over the websockets library's asyncio engine, speaking the grammar of adapters.websocket_grammar.

Back-pressure is TCP's: the library stops reading its socket while `max_queue` messages wait to be received, and a
send waits while more than `write_limit` bytes wait to be written; the rest of the bound is kernel memory, which
`send_buffer_bytes` and `receive_buffer_bytes` set. One read of the socket may bring many messages, so `max_queue`
is where the library stops, not the most it holds.

There are no keepalive pings: a reader that is quiet on purpose would not answer them.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from msgspec import Meta
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve

from adapters.api import (
    Adapter,
    Address,
    AddressInUse,
    Backlog,
    Codec,
    ConnectionLost,
    Facts,
    HandWritten,
    Peer,
    Served,
    Shape,
)
from adapters.messages import METHODS
from adapters.websocket_client import Client
from adapters.websocket_grammar import Limited, Spelling
from adapters.websocket_session import Session

SocketBuffer = Annotated[int, Meta(ge=1, le=2**31 - 1)]  # what setsockopt takes

CLOSE_S = 1.0  # how long a closing handshake may take

# The library logs every stranger whose handshake fails; what fails in a call is answered there.
_LOGGER = logging.getLogger(__name__)
_LOGGER.setLevel(logging.CRITICAL)


class _Server(Served):
    def __init__(self, address: Address) -> None:
        self.address = address
        self.sessions: set[Session] = set()
        self.connections: weakref.WeakSet[ServerConnection] = weakref.WeakSet()

    def accepted(self, *args: Any, **knobs: Any) -> ServerConnection:
        """What makes a connection. The library itself forgets those that never finish the opening handshake."""
        connection = ServerConnection(*args, **knobs)
        self.connections.add(connection)
        return connection

    def drop_all_but_idle(self) -> None:
        """Closing by handshake does not end for who no longer reads, or never said anything."""
        idle = {session.ws for session in self.sessions if session.idle}
        for connection in set(self.connections) - idle:
            if hasattr(connection, "transport"):
                connection.transport.abort()

    def backlog(self) -> Backlog:
        sessions = list(self.sessions)
        return Backlog(size_bytes=sum(session.ws.transport.get_write_buffer_size() for session in sessions))


class WebSocket(Adapter):
    """`max_queue`: messages that wait to be received before the library stops reading. `write_limit`: bytes that
    wait to be written before a send waits. `send_buffer_bytes`, `receive_buffer_bytes`: SO_SNDBUF and SO_RCVBUF of
    both ends' sockets; None leaves them to the kernel.
    """

    shapes = frozenset(Shape)
    default_codec = "json"
    facts = Facts(
        library="websockets",
        transport="HTTP/1.1 upgrade, then frames over TCP",
        schema="none (commands as text)",
        interaction="messages both ways; all four by our grammar",
        demand="TCP window; MORE <n> by our grammar",
        deadlines="none",
        browser="yes",
        accepts="str or bytes",
        wire_type="text or binary frame",
    )
    engine = "websockets"

    def __init__(
        self,
        *,
        codec: Codec,
        max_message_bytes: int,
        max_queue: Annotated[int, Meta(ge=1)] = 16,
        write_limit: Annotated[int, Meta(ge=0)] = 32768,
        send_buffer_bytes: SocketBuffer | None = None,
        receive_buffer_bytes: SocketBuffer | None = None,
    ) -> None:
        self.codec = codec
        self.max_message_bytes = max_message_bytes
        self._messages = Limited(codec, max_message_bytes)
        self._buffers = {socket.SO_SNDBUF: send_buffer_bytes, socket.SO_RCVBUF: receive_buffer_bytes}
        self._both_ends: dict[str, Any] = {
            "compression": None,
            "ping_interval": None,
            "close_timeout": CLOSE_S,
            "max_size": max_message_bytes,
            "max_queue": max_queue,
            "write_limit": write_limit,
            "logger": _LOGGER,
        }

    async def _socket(self, address: Address) -> tuple[socket.socket, Any]:
        """A socket for this address, and the address as it takes it."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        family, kind, _, _, where = found[0]
        sock = socket.socket(family, kind, socket.IPPROTO_TCP)  # with proto 0, asyncio would leave Nagle on
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for option, size in self._buffers.items():
            if size is not None:
                sock.setsockopt(socket.SOL_SOCKET, option, size)
        return sock, where

    @asynccontextmanager
    async def serve(self, peer: Peer, address: Address) -> AsyncIterator[Served]:
        """Raises AddressInUse."""
        spellings = {(spelling := Spelling(method, self.codec)).word: spelling for method in METHODS.values()}
        served = _Server(address)

        async def connected(ws: ServerConnection) -> None:
            session = Session(ws, peer, self._messages, spellings)
            served.sessions.add(session)
            try:
                await session.run()
            finally:
                served.sessions.discard(session)

        sock, where = await self._socket(address)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(where)
            knobs = {**self._both_ends, "create_connection": served.accepted}
            server = await serve(connected, sock=sock, **knobs)
        except OSError as exc:
            sock.close()
            if exc.errno == errno.EADDRINUSE:
                raise AddressInUse(address) from exc
            raise
        try:
            served.address = Address(*server.sockets[0].getsockname()[:2])
            yield served
        finally:
            served.drop_all_but_idle()
            server.close()
            await asyncio.wait([asyncio.ensure_future(server.wait_closed())], timeout=2 * CLOSE_S)

    @asynccontextmanager
    async def connect(self, address: Address, credit: int | None = None) -> AsyncIterator[Peer]:
        """One connection; `credit` means nothing here. Raises ConnectionLost."""
        host = f"[{address.host}]" if ":" in address.host else address.host
        sock, where = await self._socket(address)
        try:
            await asyncio.get_running_loop().sock_connect(sock, where)
            ws = await connect(
                f"ws://{host}:{address.port}/", sock=sock, proxy=None, open_timeout=None, **self._both_ends
            )
        except OSError as exc:
            sock.close()
            raise ConnectionLost(f"nobody listens at {address.host} port {address.port}") from exc
        except Exception as exc:  # of many types: the library even asserts that the other side does not speak first
            sock.close()
            raise ConnectionLost(f"no WebSocket at {address.host} port {address.port}: {exc}") from exc
        except asyncio.CancelledError:
            sock.close()
            raise
        client = Client(ws, self._messages)
        try:
            yield client
        finally:
            if client.idle:
                await ws.close()
            else:
                client.abort("it was closed during a call")
                await ws.wait_closed()

    def hand_written(self) -> type[HandWritten]:
        from adapters.websocket_bare import Bare

        return Bare

    def wire_bytes(self, payload_bytes: int) -> int:
        """A frame from the server, which is not masked: 2, 4 or 10 bytes of header, and the payload."""
        return payload_bytes + (2 if payload_bytes < 126 else 4 if payload_bytes < 65_536 else 10)
