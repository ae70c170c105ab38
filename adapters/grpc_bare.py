"""One quote and many over bare grpc.aio.

Nothing of the adapter is used, and no more is written than the two exchanges need (adapters.api.HandWritten).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc

from adapters.api import Address, Codec, Exchange, HandWritten, Message, Served
from adapters.messages import Quote, QuoteRequest, StreamRequest

_SERVICE = "QuoteService"


class _Served(Served):
    def __init__(self, address: Address) -> None:
        self.address = address


class _Exchange(Exchange):
    def __init__(self, channel: Any, codec: Codec) -> None:
        decode = lambda data: codec.decode(Quote, data)  # noqa: E731
        self._get = channel.unary_unary(f"/{_SERVICE}/GetQuote", codec.encode, decode)
        self._many = channel.unary_stream(f"/{_SERVICE}/StreamQuotes", codec.encode, decode)

    async def call(self, request: Message) -> Message:
        return await self._get(request)

    async def stream(self, request: Message) -> int:
        n = 0
        async for _ in self._many(request):
            n += 1
        return n


class Bare(HandWritten):
    """See adapters.api.HandWritten."""

    @asynccontextmanager
    async def serve(self, address: Address) -> AsyncIterator[Served]:
        codec, make = self.codec, self.make

        async def one(request: Message, context: Any) -> Message:
            return make(request.symbol, request.seq)

        async def many(request: Message, context: Any) -> None:
            for seq in range(request.count):
                await context.write(make(request.symbol, seq))

        handlers = {
            "GetQuote": grpc.unary_unary_rpc_method_handler(
                one, lambda b: codec.decode(QuoteRequest, b), codec.encode
            ),
            "StreamQuotes": grpc.unary_stream_rpc_method_handler(
                many, lambda b: codec.decode(StreamRequest, b), codec.encode
            ),
        }
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, handlers),))
        port = server.add_insecure_port(f"{address.host}:{address.port}")
        await server.start()
        try:
            yield _Served(Address(address.host, port))
        finally:
            await server.stop(0)

    @asynccontextmanager
    async def connect(self, address: Address) -> AsyncIterator[Exchange]:
        options = [("grpc.enable_http_proxy", 0)]
        async with grpc.aio.insecure_channel(f"{address.host}:{address.port}", options=options) as channel:
            yield _Exchange(channel, self.codec)
