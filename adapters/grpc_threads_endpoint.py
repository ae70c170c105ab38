"""The server's end of a gRPC call in a thread of the pool: one method of the served peer, as grpcio calls it."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any, NoReturn

import grpc

from adapters.api import BlockingPeer, Message, Method, Shape
from adapters.grpc_status import Wire, status

RpcError: type[Exception] = grpc.RpcError  # the library ships no types


class BlockingEndpoint:
    """The functions that grpcio calls, one per shape. They take and return encoded messages."""

    def __init__(self, peer: BlockingPeer, method: Method, wire: Wire) -> None:
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

    def unary(self, request: bytes, context: Any) -> bytes:
        """One message there, one back."""
        try:
            asked: Message = self._wire.decode(self._method.request, request)
            return self._wire.encode(self._peer.unary(self._method, asked))
        except Exception as exc:
            _abort(context, exc)

    def server_stream(self, request: bytes, context: Any) -> Iterator[bytes]:
        """One message there, any number back."""
        try:
            asked: Message = self._wire.decode(self._method.request, request)
            yield from self._encoded(self._peer.server_stream(self._method, asked))
        except Exception as exc:
            _abort(context, exc)

    def client_stream(self, requests: Iterator[bytes], context: Any) -> bytes:
        """Any number there, one back."""
        try:
            return self._wire.encode(self._peer.client_stream(self._method, self._decoded(requests)))
        except Exception as exc:
            _abort(context, exc)

    def bidi_stream(self, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        """Any number each way."""
        try:
            yield from self._encoded(self._peer.bidi_stream(self._method, self._decoded(requests)))
        except Exception as exc:
            _abort(context, exc)

    def _encoded(self, items: Generator[Message, None, None]) -> Iterator[bytes]:
        """grpcio asks for the next one when flow control has let the last one pass: one item is in flight."""
        encode = self._wire.encode
        with closing(items):
            for item in items:
                yield encode(item)

    def _decoded(self, requests: Iterator[bytes]) -> Iterator[Message]:
        decode, request = self._wire.decode, self._method.request
        for data in requests:
            yield decode(request, data)


def _abort(context: Any, exc: Exception) -> NoReturn:
    """Ends the call with the status for `exc`; what grpc itself raised (the client has left) goes back to it."""
    if isinstance(exc, RpcError):
        raise exc
    code, details, trailing = status(exc)
    context.set_trailing_metadata(trailing)
    context.abort(code, details)
    raise AssertionError("abort returns by raising")
