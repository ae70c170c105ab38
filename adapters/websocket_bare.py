"""One quote and many over bare `websockets`.

Nothing of the adapter is used, and no more is written than the two exchanges need (adapters.api.HandWritten).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from adapters.api import Address, Codec, Exchange, HandWritten, Message, Served
from adapters.messages import Quote


class _Served(Served):
    def __init__(self, address: Address) -> None:
        self.address = address


class _Exchange(Exchange):
    def __init__(self, ws: ClientConnection, codec: Codec) -> None:
        self._ws, self._codec = ws, codec

    async def call(self, request: Message) -> Message:
        await self._ws.send(f"QUOTE {request.symbol} {request.seq}")
        answer: Any = await self._ws.recv()
        return self._codec.decode(Quote, answer.encode() if self._codec.text else answer)

    async def stream(self, request: Message) -> int:
        recv, decode, text, n = self._ws.recv, self._codec.decode, self._codec.text, 0
        await self._ws.send(f"STREAM {request.symbol} {request.count}")
        while True:
            item: Any = await recv()
            if item.__class__ is str and item.startswith("END"):
                return n
            decode(Quote, item.encode() if text else item)
            n += 1


class Bare(HandWritten):
    """See adapters.api.HandWritten."""

    @asynccontextmanager
    async def serve(self, address: Address) -> AsyncIterator[Served]:
        codec, make = self.codec, self.make

        def encoded(symbol: str, seq: int) -> str | bytes:
            data = codec.encode(make(symbol, seq))
            return data.decode() if codec.text else data

        async def handle(ws: ServerConnection) -> None:
            while True:
                try:
                    command: Any = await ws.recv()
                except ConnectionClosed:
                    return
                word, symbol, number = command.split()
                if word == "QUOTE":
                    await ws.send(encoded(symbol, int(number)))
                    continue
                for seq in range(int(number)):
                    if not seq % 64:
                        await asyncio.sleep(0)
                    await ws.send(encoded(symbol, seq))
                await ws.send(f"END {number}")

        async with serve(handle, address.host, address.port, compression=None) as server:
            yield _Served(Address(*next(iter(server.sockets)).getsockname()[:2]))

    @asynccontextmanager
    async def connect(self, address: Address) -> AsyncIterator[Exchange]:
        where = f"ws://{address.host}:{address.port}"
        async with connect(where, compression=None, proxy=None, close_timeout=0.1) as ws:
            yield _Exchange(ws, self.codec)
