"""RSocket over WebSocket: one binary message for each frame, by the websockets library on both sides.

The transport that rsocket-py has for this library puts a second queue without a bound in front of the socket and
does not notice a lost connection; this one sends where the library's sender waits for it, and reads when it asks. A
frame over 16,777,215 bytes would fit into a message; it is refused all the same, so that both transports carry the
same.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from rsocket.frame import InvalidFrame, parse_or_ignore
from rsocket.helpers import wrap_transport_exception
from rsocket.transports.transport import Transport
from websockets.asyncio.client import connect
from websockets.asyncio.connection import Connection
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from adapters.api import Address, AddressInUse, ConnectionLost
from adapters.rsocket_wire import FRAME_MAX, STOP_S

# The library logs every stranger whose handshake fails.
_LOGGER = logging.getLogger(__name__)
_LOGGER.setLevel(logging.CRITICAL)

_BOTH_ENDS: dict[str, Any] = {
    "compression": None,
    "ping_interval": None,  # RSocket has its own keep-alive
    "close_timeout": STOP_S,
    "max_size": FRAME_MAX,
    "logger": _LOGGER,
}


class WebSocketTransport(Transport):  # type: ignore[misc]  # the library has no types
    """What rsocket-py reads frames from and writes them to."""

    def __init__(self, ws: Connection) -> None:
        super().__init__()
        self._ws = ws

    async def send_frame(self, frame: Any) -> None:
        """Waits while the WebSocket's buffer is over its limit."""
        with wrap_transport_exception():
            await self._ws.send(frame.serialize())

    async def next_frame_generator(self) -> AsyncGenerator[Any, None] | None:
        """The frame of the next message; None when the connection is over."""
        try:
            message = await self._ws.recv(decode=False)
        except ConnectionClosed:
            self._ws.transport.close()
            return None
        return _frame(message)

    async def close(self) -> None:
        await self._ws.close()


async def _frame(message: bytes) -> AsyncGenerator[Any, None]:
    # Not the library's parser: given an empty message, it never returns.
    try:
        frame = parse_or_ignore(bytearray(message))
    except Exception:
        frame = InvalidFrame()
    if frame is not None:
        yield frame


class Line:
    """A WebSocket as far as adapters.rsocket_wire.Wire needs a StreamWriter."""

    def __init__(self, ws: Connection) -> None:
        self._ws = ws
        self.transport = ws.transport

    def get_extra_info(self, name: str) -> Any:
        """What the transport knows by this name."""
        return self.transport.get_extra_info(name)

    async def drain(self) -> None:
        """Wait while the buffer is over its limit."""
        await self._ws.drain()


@asynccontextmanager
async def listening(
    address: Address, accept: Callable[[Line, WebSocketTransport], Awaitable[None]]
) -> AsyncIterator[Address]:
    """Call `accept` for every connection; it is over when that returns. Raises AddressInUse."""
    connections: weakref.WeakSet[ServerConnection] = weakref.WeakSet()

    def opened(*args: Any, **knobs: Any) -> ServerConnection:
        connection = ServerConnection(*args, **knobs)
        connections.add(connection)
        return connection

    async def handler(ws: ServerConnection) -> None:
        await accept(Line(ws), WebSocketTransport(ws))

    try:
        server = await serve(handler, address.host, address.port, **{**_BOTH_ENDS, "create_connection": opened})
    except OSError as exc:
        if exc.errno == errno.EADDRINUSE:
            raise AddressInUse(address) from exc
        raise
    try:
        yield Address(*next(iter(server.sockets)).getsockname()[:2])
    finally:
        server.close()
        for connection in set(connections):  # those that never finished the opening handshake, too
            if hasattr(connection, "transport"):
                connection.transport.abort()
        await asyncio.wait([asyncio.ensure_future(server.wait_closed())], timeout=STOP_S)


async def dialled(address: Address) -> tuple[Line, WebSocketTransport]:
    """A connection. Raises ConnectionLost."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    try:
        ws = await connect(f"ws://{host}:{address.port}/", proxy=None, open_timeout=None, **_BOTH_ENDS)
    except OSError as exc:
        raise ConnectionLost(f"nobody listens at {address.host} port {address.port}") from exc
    except Exception as exc:  # of many types: the library even asserts that the other side does not speak first
        raise ConnectionLost(f"no WebSocket at {address.host} port {address.port}: {exc}") from exc
    return Line(ws), WebSocketTransport(ws)
