"""A bare length-prefixed TCP wire (adapters.tcp_wire): the floor under every comparison. As little as four
shapes need.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import aclosing, asynccontextmanager

from adapters.api import (
    Adapter,
    AdapterError,
    Address,
    AddressInUse,
    Backlog,
    CallFailed,
    Codec,
    CodecError,
    ConnectionLost,
    Facts,
    HandWritten,
    Message,
    Method,
    Peer,
    Served,
    Shape,
    Unsupported,
)
from adapters.messages import METHODS
from adapters.tcp_wire import CALL, END, ERR, HEADER, ITEM, STOP, Wire

STOP_S = 1.0  # how long a client waits for the answer to STOP before it drops the connection


def _error(payload: bytes) -> AdapterError:
    kind, _, text = payload.decode("utf-8", "replace").partition(": ")
    return Unsupported(text) if kind == "unsupported" else CallFailed(kind, text)


class _Client(Peer):
    def __init__(self, wire: Wire, codec: Codec) -> None:
        self._wire = wire
        self._codec = codec
        self._busy = False
        self._names: dict[str, bytes] = {}  # method -> its name as a CALL carries it

    def held(self) -> int:
        return len(self._wire.inbox)

    def _begin(self, method: Method, body: bytes = b"") -> None:
        if self._busy:
            raise CallFailed("busy", "this connection carries one call at a time")
        name = self._names.get(method.name)
        if name is None:
            encoded = method.name.encode()
            name = self._names[method.name] = bytes((len(encoded),)) + encoded
        self._wire.send(CALL, body, name)
        self._busy = True

    async def unary(self, method: Method, request: Message) -> Message:
        self._begin(method, self._codec.encode(request))
        try:
            kind, payload = await self._wire.read()
        except asyncio.CancelledError:
            self._wire.transport.abort()  # an answer to nobody would be the next call's answer
            raise
        finally:
            self._busy = False
        if kind == ERR:
            raise _error(payload)
        return self._codec.decode(method.reply, payload)

    async def _settle(self) -> None:
        """Read until the server has closed the call, so that the connection can carry the next one."""
        try:
            async with asyncio.timeout(STOP_S):
                while (await self._wire.read())[0] not in (END, ERR):
                    pass
        except (TimeoutError, ConnectionLost):
            self._wire.transport.abort()

    async def _items(self, method: Method) -> AsyncGenerator[Message, None]:
        decode, reply, wire = self._codec.decode, method.reply, self._wire
        over = False
        try:
            while True:
                kind, payload = await wire.read()
                if kind == ITEM:
                    yield decode(reply, payload)
                else:
                    over = True
                    if kind == ERR:
                        raise _error(payload)
                    return
        except ConnectionLost:
            over = True
            raise
        finally:
            if not over and not wire.transport.is_closing():
                wire.send(STOP)
                await self._settle()
            self._busy = False

    async def server_stream(self, method: Method, request: Message) -> AsyncGenerator[Message, None]:
        self._begin(method, self._codec.encode(request))
        async with aclosing(self._items(method)) as items:
            async for item in items:
                yield item

    async def _upload(self, requests: AsyncIterable[Message]) -> None:
        async for request in requests:
            self._wire.send(ITEM, self._codec.encode(request))
            await self._wire.drain()
        self._wire.send(END)

    async def client_stream(self, method: Method, requests: AsyncIterable[Message]) -> Message:
        async with aclosing(self.bidi_stream(method, requests)) as replies:
            async for reply in replies:
                return reply
        raise CallFailed("no_reply", f"{method.name} ended without a reply")

    async def bidi_stream(self, method: Method, requests: AsyncIterable[Message]) -> AsyncGenerator[Message, None]:
        self._begin(method)
        upload = asyncio.create_task(self._upload(requests))
        try:
            async with aclosing(self._items(method)) as items:
                async for item in items:
                    yield item
        except AdapterError:
            if upload.done() and not upload.cancelled() and (cause := upload.exception()):
                raise cause from None  # why the upload failed says more than how the call ended
            raise
        finally:
            upload.cancel()
            await asyncio.wait([upload])


class _Session:
    """The server's end of one connection: a loop over calls, streams in a task that STOP cancels."""

    def __init__(self, wire: Wire, peer: Peer, codec: Codec) -> None:
        self._wire, self._peer, self._codec = wire, peer, codec
        self._methods = {name.encode(): method for name, method in METHODS.items()}

    async def run(self) -> None:
        try:
            while True:
                kind, payload = await self._wire.read()
                if kind == CALL:
                    start = 1 + payload[0]
                    await self._call(payload[1:start], payload[start:])
                # Items that were under way when their call ended are nobody's any more.
        except ConnectionLost:
            pass
        finally:
            self._wire.transport.abort()

    async def _call(self, name: bytes, request: bytes) -> None:
        wire, method = self._wire, self._methods.get(name)
        try:
            if method is None:
                raise CallFailed("not_found", f"no method {name.decode('utf-8', 'replace')!r}")
            if method.shape is Shape.UNARY:
                reply = await self._peer.unary(method, self._codec.decode(method.request, request))
                wire.send(ITEM, self._codec.encode(reply))
                return
            wire.on_stop = asyncio.create_task(self._stream(method, request))
            await asyncio.wait([wire.on_stop])
            task, wire.on_stop = wire.on_stop, None
            if not task.cancelled() and (cause := task.exception()):
                raise cause
            wire.send(END)
        except ConnectionLost:
            raise
        except Exception as exc:
            wire.send(ERR, _spell(exc).encode())

    async def _stream(self, method: Method, request: bytes) -> None:
        wire, codec = self._wire, self._codec
        if method.shape is Shape.CLIENT_STREAM:
            wire.send(ITEM, codec.encode(await self._peer.client_stream(method, self._requests(method))))
            return
        if method.shape is Shape.SERVER_STREAM:
            items = self._peer.server_stream(method, codec.decode(method.request, request))
        else:
            items = self._peer.bidi_stream(method, self._requests(method))
        async with aclosing(items):
            async for item in items:
                wire.send(ITEM, codec.encode(item))
                if wire.write_paused:
                    await wire.drain()

    async def _requests(self, method: Method) -> AsyncGenerator[Message, None]:
        while True:
            kind, payload = await self._wire.read()
            if kind != ITEM:
                return
            yield self._codec.decode(method.request, payload)


def _spell(exc: Exception) -> str:
    if isinstance(exc, CallFailed):
        return str(exc)
    kind = "unsupported" if isinstance(exc, Unsupported) else "codec" if isinstance(exc, CodecError) else "internal"
    return f"{kind}: {exc}"


class _Server(Served):
    def __init__(self) -> None:
        self.sessions: dict[asyncio.Task[None], Wire] = {}

    def backlog(self) -> Backlog:
        wires = list(self.sessions.values())
        return Backlog(size_bytes=sum(wire.transport.get_write_buffer_size() for wire in wires))


class Tcp(Adapter):
    """Length-prefixed frames over asyncio's (or uvloop's) own TCP transport."""

    shapes = frozenset(Shape)
    default_codec = "protobuf"
    facts = Facts(
        library="",
        transport="TCP",
        schema="none",
        interaction="all four",
        demand="TCP window",
        deadlines="none",
        browser="no",
        accepts="bytes",
        wire_type="not said",
    )
    engine = "asyncio"

    def __init__(self, *, codec: Codec, max_message_bytes: int) -> None:
        self.codec = codec
        self.max_message_bytes = max_message_bytes

    @asynccontextmanager
    async def serve(self, peer: Peer, address: Address) -> AsyncIterator[Served]:
        """Raises AddressInUse."""
        served, loop = _Server(), asyncio.get_running_loop()

        def begin(wire: Wire) -> None:
            task = loop.create_task(_Session(wire, peer, self.codec).run())
            served.sessions[task] = wire
            task.add_done_callback(served.sessions.pop)

        try:
            server = await loop.create_server(
                lambda: Wire(self.max_message_bytes, begin), address.host, address.port
            )
        except OSError as exc:
            if exc.errno == errno.EADDRINUSE:
                raise AddressInUse(address) from exc
            raise
        try:
            served.address = Address(*server.sockets[0].getsockname()[:2])
            yield served
        finally:
            server.close()
            for wire in list(served.sessions.values()):
                wire.transport.abort()
            if served.sessions:
                await asyncio.wait(list(served.sessions), timeout=STOP_S)

    @asynccontextmanager
    async def connect(self, address: Address, credit: int | None = None) -> AsyncIterator[Peer]:
        """One TCP connection; `credit` means nothing here. Raises ConnectionLost when nobody listens."""
        try:
            _, wire = await asyncio.get_running_loop().create_connection(
                lambda: Wire(self.max_message_bytes), address.host, address.port
            )
        except OSError as exc:
            raise ConnectionLost(f"nobody listens at {address.host} port {address.port}") from exc
        try:
            yield _Client(wire, self.codec)
        finally:
            wire.transport.abort()

    def hand_written(self) -> type[HandWritten]:
        from adapters.tcp_bare import Bare

        return Bare

    def wire_bytes(self, payload_bytes: int) -> int:
        """Length, kind and payload."""
        return payload_bytes + HEADER.size
