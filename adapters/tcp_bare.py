"""One quote and many over a bare TCP wire: a length, a kind, the payload.

Nothing of the adapter is used, and no more is written than the two exchanges need (adapters.api.HandWritten).
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from adapters.api import Address, Codec, Exchange, HandWritten, Message, Served
from adapters.messages import Quote, QuoteRequest, StreamRequest

_FRAME = struct.Struct(">IB")  # bytes that follow the length, kind
_ONE, _ITEM, _END = 0, 1, 2


class _Served(Served):
    def __init__(self, address: Address) -> None:
        self.address = address


class _Frames(asyncio.Protocol):
    """Whole frames to `got`."""

    transport: Any

    def __init__(self) -> None:
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        data = self.buffer + data if self.buffer else data
        at = 0
        while len(data) - at >= _FRAME.size:
            length, kind = _FRAME.unpack_from(data, at)
            if len(data) - at < 4 + length:
                break
            self.got(kind, data[at + _FRAME.size : at + 4 + length])
            at += 4 + length
        self.buffer = data[at:]

    def send(self, kind: int, payload: bytes) -> None:
        self.transport.write(_FRAME.pack(len(payload) + 1, kind) + payload)

    def got(self, kind: int, payload: bytes) -> None:
        raise NotImplementedError


class _Server(_Frames):
    def __init__(self, bare: Bare) -> None:
        super().__init__()
        self._codec, self._make = bare.codec, bare.make
        self._room = asyncio.Event()
        self._room.set()

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def got(self, kind: int, payload: bytes) -> None:
        if kind == _ONE:
            request = self._codec.decode(QuoteRequest, payload)
            self.send(_ONE, self._codec.encode(self._make(request.symbol, request.seq)))
        else:
            self._task = asyncio.create_task(self._stream(self._codec.decode(StreamRequest, payload)))

    async def _stream(self, request: StreamRequest) -> None:
        for seq in range(request.count):
            if not seq % 64:
                await asyncio.sleep(0)
            self.send(_ITEM, self._codec.encode(self._make(request.symbol, seq)))
            if not self._room.is_set():
                await self._room.wait()
        self.send(_END, b"")


class _Client(_Frames, Exchange):
    def __init__(self, codec: Codec) -> None:
        super().__init__()
        self._codec = codec
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[Any]
        self._n = 0

    def got(self, kind: int, payload: bytes) -> None:
        if kind == _ONE:
            self._waiter.set_result(payload)
        elif kind == _ITEM:
            self._codec.decode(Quote, payload)
            self._n += 1
        else:
            self._waiter.set_result(None)

    async def call(self, request: Message) -> Message:
        self._waiter = self._loop.create_future()
        self.send(_ONE, self._codec.encode(request))
        return self._codec.decode(Quote, await self._waiter)

    async def stream(self, request: Message) -> int:
        self._waiter, self._n = self._loop.create_future(), 0
        self.send(_ITEM, self._codec.encode(request))
        await self._waiter
        return self._n


class Bare(HandWritten):
    """See adapters.api.HandWritten."""

    @asynccontextmanager
    async def serve(self, address: Address) -> AsyncIterator[Served]:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Server(self), address.host, address.port)
        async with server:
            yield _Served(Address(*server.sockets[0].getsockname()[:2]))

    @asynccontextmanager
    async def connect(self, address: Address) -> AsyncIterator[Exchange]:
        loop = asyncio.get_running_loop()
        _, client = await loop.create_connection(lambda: _Client(self.codec), address.host, address.port)
        try:
            yield client
        finally:
            client.transport.close()
