"""The frames of the bare TCP wire, and one connection of it.

A frame is `length (4 bytes, big endian, of what follows) | kind (1 byte) | payload`:

    CALL  client  payload = length of the method's name (1 byte), the name, and the request if it is only one
    ITEM  both    payload = one encoded message
    END   both    no more items from this side; a server's END closes the call
    ERR   server  payload = UTF-8 "kind: text"; closes the call
    STOP  client  the rest of a stream is not wanted; answered by END or ERR

One call at a time. Back-pressure is TCP's: a reader that does not ask stops the reading of the socket once
`READ_HIGH` items wait, and a writer waits while the transport's buffer is above its high-water mark.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Callable
from typing import cast

from adapters.api import ConnectionLost, Unsupported

CALL, ITEM, END, ERR, STOP = range(5)
NAME_ROOM = 257  # what a call's frame may hold besides its message: kind, length and name of the method
LARGE = 65_536  # bytes from which a copy costs more than a second buffer
READ_HIGH = 256  # items that may wait unread before the socket is no longer read
HEADER = struct.Struct(">IB")


class Wire(asyncio.Protocol):
    """One connection: frames in a deque, a future for whoever waits."""

    def __init__(self, max_message: int, on_made: Callable[[Wire], None] | None = None) -> None:
        self._on_made = on_made
        self.transport: asyncio.Transport
        self.inbox: deque[tuple[int, bytes]] = deque()
        self.on_stop: asyncio.Task[None] | None = None
        self.lost: Exception | None = None
        self._max_message = max_message
        self._buffer = bytearray()
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None
        self.write_paused = False
        self._read_paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._loop = asyncio.get_running_loop()
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is one only by its methods
        sock = transport.get_extra_info("socket")
        # asyncio leaves Nagle on for sockets whose proto is 0.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._on_made is not None:
            self._on_made(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = ConnectionLost("the connection was closed by the other side")
        for waiter in (self._reader, self._writer):
            if waiter is not None and not waiter.done():
                waiter.set_result(None)
        if self.on_stop is not None:
            self.on_stop.cancel()

    def data_received(self, data: bytes) -> None:
        whole: bytes | memoryview = data
        if self._buffer:
            self._buffer += data
            if not self._complete():
                return
            whole, self._buffer = memoryview(self._buffer), bytearray()
        start, size = 0, len(whole)
        while size - start >= 5:
            length, kind = HEADER.unpack_from(whole, start)
            if length > self._max_message + NAME_ROOM:
                self.transport.abort()
                return
            end = start + 4 + length
            if end > size:
                break
            if kind == STOP:
                if self.on_stop is not None:
                    self.on_stop.cancel()
            else:
                self.inbox.append((kind, bytes(whole[start + 5 : end])))
            start = end
        if start < size:
            self._buffer += whole[start:]
        if self.inbox:
            if self._reader is not None and not self._reader.done():
                self._reader.set_result(None)
            if len(self.inbox) > READ_HIGH and not self._read_paused:
                self._read_paused = True
                self.transport.pause_reading()

    def _complete(self) -> bool:
        """Whether the buffer starts with a whole frame, or with one that will be refused for its length."""
        if len(self._buffer) < HEADER.size:
            return False
        length = int(HEADER.unpack_from(self._buffer)[0])
        return len(self._buffer) >= 4 + length or length > self._max_message + NAME_ROOM

    def pause_writing(self) -> None:
        self.write_paused = True

    def resume_writing(self) -> None:
        self.write_paused = False
        if self._writer is not None and not self._writer.done():
            self._writer.set_result(None)

    async def read(self) -> tuple[int, bytes]:
        """The next frame. Raises ConnectionLost."""
        while not self.inbox:
            if self.lost is not None:
                raise self.lost
            self._reader = self._loop.create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        frame = self.inbox.popleft()
        if self._read_paused and not self.inbox and self.lost is None:
            self._read_paused = False
            self.transport.resume_reading()
        return frame

    def send(self, kind: int, payload: bytes = b"", name: bytes = b"") -> None:
        """One frame; a call's `name` goes before its payload, in the same write.

        Raises ConnectionLost, or Unsupported when the payload is over the limit.
        """
        if self.transport.is_closing():
            raise self.lost or ConnectionLost("the connection is closing")
        if len(payload) > self._max_message:
            raise Unsupported(f"a message of {len(payload):,} bytes is over the limit of {self._max_message:,}")
        head = HEADER.pack(len(payload) + len(name) + 1, kind) + name
        if len(payload) < LARGE:
            self.transport.write(head + payload)
        else:
            self.transport.writelines((head, payload))  # a large body is not copied once more

    async def drain(self) -> None:
        """Wait while the transport's buffer is over its high-water mark. Raises ConnectionLost."""
        while self.write_paused and self.lost is None:
            self._writer = self._loop.create_future()
            try:
                await self._writer
            finally:
                self._writer = None
        if self.lost is not None:
            raise self.lost
