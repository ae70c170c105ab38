"""One RSocket connection, as both ends of `adapters.rsocket` see it: what fits into a frame, how an error is
spelled, and when the connection is over.

The library never ends a call that is made on a dead connection, and its tasks can die without anyone noticing.
So a `Wire` watches them: when one ends, the connection is dropped, every stream is told, and `lost` says why.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Protocol

from rsocket.error_codes import ErrorCode
from rsocket.exceptions import RSocketProtocolError
from rsocket.extensions.helpers import composite, data_mime_type, route
from rsocket.helpers import wrap_transport_exception
from rsocket.payload import Payload
from rsocket.transports.tcp import TransportTCP

from adapters.api import (
    AdapterError,
    CallFailed,
    Codec,
    CodecError,
    ConnectionLost,
    Message,
    Method,
    Shape,
    Unsupported,
)

FRAME_MAX = 0xFFFFFF  # what three bytes of length can say; beyond it the library's length wraps around
LENGTH = 3  # bytes of length before a frame, and before the metadata in one
HEADER = 6  # stream id, type and flags
INITIAL_N = 4  # the first credit, in the request of a stream or a channel
QUEUE_MAX = 256  # frames waiting for the transport above which a source waits too
BATCH_BYTES = 16_384  # what the coalescing engine collects before it writes
STOP_S = 1.0  # how long a shutdown waits for whatever still runs
ERROR_MAX = 65_536  # characters of an error's text that are sent
CLOSED = "the connection was closed by the other side"
_KIND = re.compile(r"[a-z][a-z0-9_.-]{0,39}")
_CONNECTION_CODES = (ErrorCode.CONNECTION_ERROR, ErrorCode.CONNECTION_ERROR_NO_RETRY)


def route_metadata(method: Method) -> bytes:
    """The composite metadata that names a method."""
    metadata: bytes = composite(route(method.name))
    return metadata


def room(method: Method) -> int:
    """The largest request in bytes that fits into one frame beside the route."""
    fixed = HEADER + LENGTH + (0 if method.shape is Shape.UNARY else INITIAL_N)
    return FRAME_MAX - fixed - len(route_metadata(method))


class Refusal(Exception):
    """An error spelled for the wire: the library sends the text of an exception in an ERROR frame."""


def refusal(exc: Exception) -> Refusal:
    """`exc` as "kind: text", in valid Unicode: a lone surrogate would leave the call without any answer."""
    if isinstance(exc, CallFailed):
        text = str(exc)
    elif isinstance(exc, Unsupported):
        text = f"unsupported: {exc}"
    else:
        text = f"{'codec' if isinstance(exc, CodecError) else 'internal'}: {exc}"
    return Refusal(text[:ERROR_MAX].encode("utf-8", "replace").decode())


def error_of(exc: Exception) -> AdapterError:
    """What the library raises for an ERROR frame or a lost connection, as the caller is to see it."""
    if isinstance(exc, RSocketProtocolError):
        if exc.error_code in _CONNECTION_CODES:
            return ConnectionLost(exc.data or CLOSED)
        return CallFailed(exc.error_code.name.lower(), exc.data or "")
    kind, _, text = str(exc).partition(": ")
    if not _KIND.fullmatch(kind):
        return CallFailed("application_error", str(exc))
    return Unsupported(text) if kind == "unsupported" else CallFailed(kind, text)


def too_large(size: int, limit: int) -> Unsupported:
    """The error for a message of `size` bytes."""
    return Unsupported(f"a message of {size:,} bytes is over the limit of {limit:,}")


class Writer(Protocol):
    """What a connection is dropped and waited for by: asyncio.StreamWriter, or a WebSocket that looks like one."""

    @property
    def transport(self) -> Any:
        """Of asyncio."""

    def get_extra_info(self, name: str) -> Any:
        """What the transport knows by this name."""

    async def drain(self) -> None:
        """Wait while the transport's buffer is over its high-water mark."""


class CoalescingTCP(TransportTCP):  # type: ignore[misc]  # the library has no types
    """One write for all the frames that wait, where the library's own transport makes two or three for each."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, read_buffer_size: int) -> None:
        super().__init__(reader, writer, read_buffer_size)
        self._pieces: list[bytes] = []
        self._size = 0

    async def send_frame(self, frame: Any) -> None:
        """Collects; writes when BATCH_BYTES are there."""
        prefix = frame.serialize_frame_prefix()  # works out the length, too
        pieces = self._pieces
        pieces.append(frame.length.to_bytes(LENGTH, "big"))
        pieces.append(prefix)
        if frame.metadata:
            pieces.append(frame.metadata)
        if frame.data and not frame.metadata_only:
            pieces.append(frame.data)
        self._size += frame.length
        if self._size >= BATCH_BYTES:
            await self._flush()

    async def on_send_queue_empty(self) -> None:
        """Called by the library after the last frame of its queue."""
        await self._flush()

    async def _flush(self) -> None:
        if self._pieces:
            data = b"".join(self._pieces)
            self._pieces.clear()
            self._size = 0
            with wrap_transport_exception():
                self._writer.write(data)
                await self._writer.drain()


class Wire:
    """A connection and the library's socket on it.

    `lost`: why it is over, None while it is not. `limit`: the largest message in bytes, either way. `tasks`: where
    the tasks of its calls are while they run. `on_lost` is called once, with the reason.
    """

    socket: Any  # the library's RSocketClient or RSocketServer; set before anything else is asked

    def __init__(
        self,
        writer: Writer,
        codec: Codec,
        limit: int,
        tasks: set[asyncio.Task[Any]],
        on_lost: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.encode = codec.encode
        self.decode = codec.decode
        self.limit = limit
        self.lost: str | None = None
        # An item without data and metadata loses its NEXT flag in the library, and never arrives.
        self._mark = composite(data_mime_type(codec.mime.encode()))
        self._writer = writer
        self._tasks = tasks
        self._on_lost = on_lost
        self._engine: set[asyncio.Task[Any]] = set()
        self._loop = asyncio.get_running_loop()
        # asyncio leaves Nagle on for sockets whose proto is 0.
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def watch(self, gone: Callable[[], None] = lambda: None) -> None:
        """Watch the tasks of the started socket. `gone` is called when none runs any more."""
        tasks = [task for task in (self.socket._receiver_task, self.socket._sender_task) if task is not None]
        self._engine.update(tasks)

        def ended(task: asyncio.Task[Any]) -> None:
            self._engine.discard(task)
            failure = None if task.cancelled() else task.exception()
            # Where the other side closed or reset, the transport is closing already. What fails in the library's
            # sender is logged at most.
            by_other_side = failure is None and self._writer.transport.is_closing()
            self.drop(CLOSED if by_other_side else f"the library stopped{f': {failure!r}' if failure else ''}")
            if not self._engine:
                gone()

        for task in tasks:
            task.add_done_callback(ended)
        if not tasks:  # it was closed as soon as it was opened
            self.drop(CLOSED)
            gone()

    def drop(self, reason: str) -> None:
        """End the connection now. The first reason counts."""
        if self.lost is None:
            self.lost = reason
            self._writer.transport.abort()
            self._stop_streams()
            self._on_lost(reason)

    def _stop_streams(self) -> None:
        try:
            self.socket.stop_all_streams()
        except asyncio.InvalidStateError:  # a call was cancelled in this very turn: the others hear in the next
            self._loop.call_soon(self._stop_streams)

    async def close(self, reason: str) -> None:
        """End the connection and wait, for twice STOP_S at most, until nothing of the library runs any more."""
        self.drop(reason)
        if self._engine:
            await asyncio.wait(list(self._engine), timeout=STOP_S)
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                await self.socket.close()

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """A task that is kept until it is done."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def pack(self, message: Message) -> Payload:
        """The payload of an item or a reply. Raises NotRepresentable, Unsupported."""
        data = self.encode(message)
        if 0 < len(data) <= self.limit:
            return Payload(data)
        if data:
            raise too_large(len(data), self.limit)
        return Payload(data, self._mark)

    def unpack(self, kind: type, data: bytearray) -> Message:
        """Raises Malformed, Unsupported."""
        if len(data) > self.limit:
            raise too_large(len(data), self.limit)
        return self.decode(kind, data)

    async def breathe(self) -> None:
        """Let others run, and wait while the transport is behind.

        The library's queue has no bound and tells nobody that the transport is slow: a reader that grants credit
        without limit and reads slowly would have all of it put into memory.
        """
        await asyncio.sleep(0)
        while self.lost is None and self.socket._send_queue.qsize() > QUEUE_MAX:
            await self._writer.drain()
            await asyncio.sleep(0)

    def waiting(self) -> tuple[int, int]:
        """Frames in the library's queue, and bytes in the transport's buffer. From any thread."""
        frames = self.socket._send_queue.qsize()
        try:
            return frames, self._writer.transport.get_write_buffer_size()
        except RuntimeError:  # the buffer changed while it was being added up
            return frames, 0
