"""The client's end of one HTTP/1.1 connection, on httptools: as little as a keep-alive connection needs, so that
the load generator is not what is measured. One exchange at a time, never two in the pipe.

A response is either an answer (its whole body, awaited as one future) or a stream, whose items wait in `inbox`.
Once `READ_HIGH` items wait the socket is not read; it is again when the reader has taken them all.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import deque
from typing import cast

import httptools

from adapters.api import AdapterError, Address, CallFailed, ConnectionLost
from adapters.http_items import Inbox, Reader
from adapters.http_status import ERROR_MAX, OK, error, too_large

READ_HIGH = 256  # items that may wait unread before the socket is no longer read
_AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER: close by a reset, whatever is unsent or unread


class Wire(asyncio.Protocol):
    """`limit`: bytes of one answer's body."""

    def __init__(self, limit: int) -> None:
        self.transport: asyncio.Transport
        self.inbox: Inbox = deque()
        self.lost: AdapterError | None = None
        self.write_paused = False
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._feed = self._parser.feed_data
        self._status = self._parser.get_status_code
        self._taken = False  # by a call that is more than one request and one answer
        self._answer: asyncio.Future[bytes] | None = None
        self._reader: Reader | None = None  # of the running stream
        self._body = b""  # the first piece, most often the only one
        self._pieces: list[bytes] = []  # the others
        self._size = 0  # of the body, kept or not
        self._read_waiter: asyncio.Future[None] | None = None
        self._write_waiter: asyncio.Future[None] | None = None
        self._read_paused = False

    @property
    def mid_response(self) -> bool:
        """Whether more of the running stream is to come."""
        return self._reader is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is one only by its methods
        sock = transport.get_extra_info("socket")
        # asyncio leaves Nagle on for sockets whose proto is 0.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(ConnectionLost("the connection was closed by the other side"))

    def abort(self, why: AdapterError) -> None:
        """Drop the connection at once, so that the other side notices at once. What is asked next raises `why`."""
        self._fail(why)
        if not self.transport.is_closing():
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            self.transport.abort()

    def _fail(self, why: AdapterError) -> None:
        self.lost = self.lost or why
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(self.lost)
        self._wake()
        if self._write_waiter is not None and not self._write_waiter.done():
            self._write_waiter.set_result(None)

    def _begin(self, request: bytes) -> None:
        if self.lost is not None:
            raise self.lost
        if self._answer is not None or self._taken:
            raise CallFailed("busy", "this connection carries one call at a time")
        self.transport.write(request)

    def ask(self, request: bytes) -> asyncio.Future[bytes]:
        """Send a request; the future is the body of the answer, or its error.

        Raises CallFailed("busy") and ConnectionLost.
        """
        self._begin(request)
        self._answer = answer = self._loop.create_future()
        return answer

    def upload(self, head: bytes) -> asyncio.Future[bytes]:
        """As `ask`, for a request whose body is to follow by `write`. Until `leave`, it has the connection."""
        answer = self.ask(head)
        self._taken = True
        return answer

    def open(self, request: bytes, reader: Reader) -> None:
        """Send a request whose response is a stream: see `more`. Until `leave`, it has the connection.

        Raises as `ask` does.
        """
        self._begin(request)
        self._taken = True
        self._reader = reader

    def leave(self) -> None:
        """The call that had the connection is over; what it has not taken is thrown away."""
        self._taken = False
        self.inbox.clear()

    async def more(self) -> bool:
        """Wait for `inbox` to hold something; False when the stream is over.

        Raises ConnectionLost.
        """
        while not self.inbox:
            if self._reader is None:
                return False
            if self.lost is not None:
                raise self.lost
            if self._read_paused:
                self._read_paused = False
                self.transport.resume_reading()
            self._read_waiter = self._loop.create_future()
            try:
                await self._read_waiter
            finally:
                self._read_waiter = None
        return True

    def write(self, data: bytes) -> None:
        """A further piece of the running request."""
        if self.lost is None:
            self.transport.write(data)

    async def drain(self) -> None:
        """Wait while the transport's buffer is over its high-water mark. Raises ConnectionLost."""
        while self.write_paused and self.lost is None:
            self._write_waiter = self._loop.create_future()
            try:
                await self._write_waiter
            finally:
                self._write_waiter = None
        if self.lost is not None:
            raise self.lost

    def pause_writing(self) -> None:
        self.write_paused = True

    def resume_writing(self) -> None:
        self.write_paused = False
        if self._write_waiter is not None and not self._write_waiter.done():
            self._write_waiter.set_result(None)

    def data_received(self, data: bytes) -> None:
        try:
            self._feed(data)
        except httptools.HttpParserError as exc:
            self.abort(ConnectionLost(f"what came is no HTTP: {exc}"))

    def on_body(self, data: bytes) -> None:
        """A piece of the body (called by the parser)."""
        if self._reader is not None and self._status() == OK:
            self._reader.feed(data, self.inbox)
            if self._read_waiter is not None:
                self._wake()
            elif len(self.inbox) > READ_HIGH and not self._read_paused and self.lost is None:
                self._read_paused = True
                self.transport.pause_reading()
        elif not self._size:
            self._body = data
            self._size = len(data)
        else:
            self._size += len(data)
            if self._size <= self._limit or self._size <= ERROR_MAX:
                self._pieces.append(data)

    def on_message_complete(self) -> None:
        """The response is over (called by the parser)."""
        answer, status = self._answer, self._status()
        if answer is not None:
            self._answer = None
            if answer.done():
                return  # cancelled: the connection goes with it
            if status == OK and self._size <= self._limit and not self._pieces:
                answer.set_result(self._body)
                self._body, self._size = b"", 0
                return
            size, body = self._take()
            if status != OK:
                answer.set_exception(_refusal(status, body))
            elif size > self._limit:
                answer.set_exception(too_large(size, self._limit))
            else:
                answer.set_result(body)
        elif self._reader is not None:
            if status == OK:
                self._reader.finish(self.inbox)
            else:
                self.inbox.append(_refusal(status, self._take()[1]))
            self._reader = None
            self._wake()
        else:
            self.abort(ConnectionLost("an answer came that nobody asked for"))

    def _take(self) -> tuple[int, bytes]:
        """Size and content of the body that was kept."""
        size, body = self._size, b"".join([self._body, *self._pieces])
        self._body, self._size, self._pieces = b"", 0, []
        return size, body

    def _wake(self) -> None:
        if self._read_waiter is not None and not self._read_waiter.done():
            self._read_waiter.set_result(None)


def _refusal(status: int, body: bytes) -> AdapterError:
    return error(body.decode("utf-8", "replace"), f"http_{status}")


async def open_wire(address: Address, limit: int) -> Wire:
    """A connection. Raises ConnectionLost when nobody listens."""
    try:
        _, wire = await asyncio.get_running_loop().create_connection(
            lambda: Wire(limit), address.host, address.port
        )
    except OSError as exc:
        raise ConnectionLost(f"nobody listens at {address.host} port {address.port}") from exc
    return wire
