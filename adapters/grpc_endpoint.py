"""The server's end of a gRPC call: one method of the served peer, as grpc.aio calls it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import Any, NoReturn, TypeVar

import grpc.aio

from adapters.api import Message, Method, Peer, Shape
from adapters.grpc_status import Wire, status

T = TypeVar("T")
aio: Any = grpc.aio  # the library ships no types


class Endpoint:
    """The functions that grpc.aio calls, one per shape. They take and return encoded messages."""

    def __init__(self, peer: Peer, method: Method, wire: Wire) -> None:
        self._peer, self._method, self._wire = peer, method, wire

    def handler(self) -> Any:
        """What grpc registers for this method."""
        make: Any = {
            Shape.UNARY: grpc.unary_unary_rpc_method_handler,
            Shape.SERVER_STREAM: grpc.unary_stream_rpc_method_handler,
            Shape.CLIENT_STREAM: grpc.stream_unary_rpc_method_handler,
            Shape.BIDI_STREAM: grpc.stream_stream_rpc_method_handler,
        }[self._method.shape]
        return make(getattr(self, self._method.shape.value))

    async def unary(self, request: bytes, context: Any) -> bytes:
        """One message there, one back."""
        return await _answered(context, self._one(request))

    async def server_stream(self, request: bytes, context: Any) -> None:
        """One message there, any number back."""
        await _answered(context, self._many(request, context))

    async def client_stream(self, _: Any, context: Any) -> bytes:
        """Any number there, one back."""
        return await _answered(context, self._collected(context))

    async def bidi_stream(self, _: Any, context: Any) -> None:
        """Any number each way."""
        await _answered(context, self._both(context))

    async def _one(self, request: bytes) -> bytes:
        asked: Message = self._wire.decode(self._method.request, request)
        return self._wire.encode(await self._peer.unary(self._method, asked))

    async def _many(self, request: bytes, context: Any) -> None:
        asked: Message = self._wire.decode(self._method.request, request)
        await self._write(self._peer.server_stream(self._method, asked), context)

    async def _collected(self, context: Any) -> bytes:
        async with aclosing(self._requests(context)) as requests:
            return self._wire.encode(await self._peer.client_stream(self._method, requests))

    async def _both(self, context: Any) -> None:
        async with aclosing(self._requests(context)) as requests:
            await self._write(self._peer.bidi_stream(self._method, requests), context)

    async def _write(self, items: AsyncGenerator[Message, None], context: Any) -> None:
        encode, write = self._wire.encode, context.write
        async with aclosing(items):
            async for item in items:
                await write(encode(item))  # returns when flow control has let it pass: one item in flight

    async def _requests(self, context: Any) -> AsyncGenerator[Message, None]:
        decode, request = self._wire.decode, self._method.request
        while (data := await context.read()) is not aio.EOF:
            yield decode(request, data)


async def _answered(context: Any, answer: Coroutine[Any, Any, T]) -> T:
    """What `answer` returns; what it raises becomes the call's status.

    A client that leaves shows as CancelledError, which grpc takes without a word, or, while the handler waits for
    flow control, as grpc's InternalError, which it may log: so that becomes the former.
    """
    try:
        return await answer
    except aio.BaseError as exc:
        raise asyncio.CancelledError from exc
    except Exception as exc:
        await _abort(context, exc)


async def _abort(context: Any, exc: Exception) -> NoReturn:
    try:
        await context.abort(*status(exc))
    except aio.AbortError:
        raise
    except aio.BaseError as gone:
        raise asyncio.CancelledError from gone
    raise AssertionError("abort returns by raising")
