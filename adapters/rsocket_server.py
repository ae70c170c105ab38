"""The server's end of an RSocket connection: its routes. A route starts a task or hands out a publisher and returns
at once, because the library waits for it and handles nothing else of the connection meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

from rsocket.extensions.helpers import require_route
from rsocket.payload import Payload
from rsocket.routing.request_router import RequestRouter

from adapters.api import Backlog, CallFailed, Message, Method, Peer, Served, Shape
from adapters.messages import METHODS
from adapters.rsocket_client import NO_REQUESTS
from adapters.rsocket_inbox import Requests
from adapters.rsocket_outbox import Answer, Answers
from adapters.rsocket_wire import Wire, refusal


class Server(Served):
    """A running server: its connections, and the tasks of its calls."""

    def __init__(self) -> None:
        self.wires: set[Wire] = set()
        self.tasks: set[asyncio.Task[Any]] = set()
        self.stopping = False

    def backlog(self) -> Backlog:
        """Frames in the library's queues, and what was taken from those into the transports' buffers, in bytes."""
        waiting = [wire.waiting() for wire in list(self.wires)]
        return Backlog(sum(frames for frames, _ in waiting), sum(size for _, size in waiting))


class Routes:
    """The routes of one connection. `credit` and `low` are those of the Inbox of an upload."""

    def __init__(self, wire: Wire, peer: Peer, credit: int, low: int) -> None:
        self._wire = wire
        self._peer = peer
        self._credit = credit
        self._low = low

    def router(self) -> RequestRouter:
        """A route for each method that there is now."""
        router = RequestRouter()
        router.response_unknown()(self._unknown)
        router.stream_unknown()(self._unknown)
        router.channel_unknown()(self._unknown)
        for method in METHODS.values():
            if method.shape is Shape.UNARY:
                router.response(method.name)(self._unary(method))
            elif method.shape is Shape.SERVER_STREAM:
                router.stream(method.name)(self._stream(method))
            else:
                router.channel(method.name)(self._channel(method))
        return router

    async def _unknown(self, payload: Payload, composite_metadata: Any) -> Any:
        raise refusal(CallFailed("not_found", f"no method {require_route(composite_metadata)!r}"))

    def _unary(self, method: Method) -> Callable[..., Any]:
        wire, peer = self._wire, self._peer

        async def answer(data: bytearray) -> Payload:
            try:
                return wire.pack(await peer.unary(method, wire.unpack(method.request, data)))
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise
                # Not by us, but by something inside the service. The library answers a cancelled call with nothing.
                raise refusal(CallFailed("cancelled", "the service cancelled the call")) from None
            except Exception as exc:
                raise refusal(exc) from None

        async def respond(payload: Payload) -> asyncio.Task[Any]:
            return wire.spawn(answer(payload.data))

        return respond

    def _stream(self, method: Method) -> Callable[..., Any]:
        wire, peer = self._wire, self._peer

        async def respond(payload: Payload) -> Answers:
            return Answers(wire, lambda: peer.server_stream(method, wire.unpack(method.request, payload.data)))

        return respond

    def _channel(self, method: Method) -> Callable[..., Any]:
        wire, peer = self._wire, self._peer

        async def respond(payload: Payload, composite_metadata: Any) -> tuple[Answers, Requests]:
            none = any(item.encoding == NO_REQUESTS for item in composite_metadata.items)
            requests = Requests(wire, method.request, self._credit, self._low, None if none else payload.data)

            async def single() -> AsyncGenerator[Message, None]:
                yield await peer.client_stream(method, requests.stream)

            if method.shape is Shape.CLIENT_STREAM:
                return Answer(wire, single, requests), requests
            return Answers(wire, lambda: peer.bidi_stream(method, requests.stream), requests), requests

        return respond
