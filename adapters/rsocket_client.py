"""The client's end of an RSocket connection."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import aclosing
from datetime import timedelta
from typing import Any

from rsocket.exceptions import RSocketError
from rsocket.extensions.helpers import composite, metadata_item, route
from rsocket.payload import Payload
from rsocket.request_handler import BaseRequestHandler

from adapters.api import CallFailed, ConnectionLost, Message, Method, Peer
from adapters.rsocket_inbox import Replies, Stop
from adapters.rsocket_outbox import Upload
from adapters.rsocket_wire import Wire, error_of, room, route_metadata, too_large

NO_REQUESTS = b"application/x.no-requests"  # in a channel's metadata: its first payload is no request


class Client(Peer):
    """Calls over one connection, any number at once. `credit` and `low` are those of an Inbox.

    `reading` holds every stream that is being read.
    """

    def __init__(self, wire: Wire, credit: int, low: int, reading: set[Replies]) -> None:
        self._wire = wire
        self._credit = credit
        self._low = low
        self._reading = reading
        self._routes: dict[str, tuple[bytes, int]] = {}

    def held(self) -> int:
        """Items that have arrived and were not asked for yet."""
        return sum(len(replies.queue) for replies in list(self._reading))

    def _alive(self) -> None:
        if self._wire.lost is not None:
            raise ConnectionLost(self._wire.lost)  # the library would never end the call

    def _payload(self, method: Method, request: Message) -> Payload:
        """The first payload of a call. Raises ConnectionLost, NotRepresentable, Unsupported."""
        data = self._wire.encode(request)
        known = self._routes.get(method.name)
        if known is None:
            known = self._routes[method.name] = route_metadata(method), min(self._wire.limit, room(method))
        metadata, limit = known
        if len(data) > limit:
            raise too_large(len(data), limit)
        self._alive()
        return Payload(data, metadata)

    async def unary(self, method: Method, request: Message) -> Message:
        """Raises AdapterError, CodecError."""
        payload = self._payload(method, request)
        try:
            reply = await self._wire.socket.request_response(payload)
        except (RuntimeError, RSocketError) as exc:
            raise error_of(exc) from None
        return self._wire.unpack(method.reply, reply.data)

    def server_stream(self, method: Method, request: Message) -> AsyncGenerator[Message, None]:
        """Errors, also of the request, are raised when an item is asked for."""

        def ask(replies: Replies) -> None:
            stream = self._wire.socket.request_stream(self._payload(method, request))
            stream.initial_request_n(self._credit).subscribe(replies)

        return Replies(self._wire, method.reply, self._credit, self._low, ask, self._reading).items()

    async def client_stream(self, method: Method, requests: AsyncIterable[Message]) -> Message:
        """A channel that is granted one item."""
        async with aclosing(self._channel(method, requests, 1, 0)) as replies:
            async for reply in replies:
                return reply
        raise CallFailed("no_reply", f"{method.name} ended without a reply")

    def bidi_stream(self, method: Method, requests: AsyncIterable[Message]) -> AsyncGenerator[Message, None]:
        """Errors, also of the requests, are raised when an item is asked for."""
        return self._channel(method, requests, self._credit, self._low)

    def _channel(
        self, method: Method, requests: AsyncIterable[Message], credit: int, low: int
    ) -> AsyncGenerator[Message, None]:
        def ask(replies: Replies) -> Stop:
            def open_with(upload: Upload, first: Message | None) -> None:
                if first is None:
                    self._alive()
                    metadata = composite(route(method.name), metadata_item(b"", NO_REQUESTS))
                    payload = Payload(b"", metadata)
                else:
                    payload = self._payload(method, first)
                channel = self._wire.socket.request_channel(payload, upload)
                channel.initial_request_n(credit).subscribe(replies)

            self._alive()
            upload = Upload(self._wire, requests, open_with, replies)
            upload.start()
            return upload.stop

        return Replies(self._wire, method.reply, credit, low, ask, self._reading).items()


class Events(BaseRequestHandler):  # type: ignore[misc]  # the library has no types
    """What the library tells a client besides answers. After either the library would leave calls hanging."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def on_error(self, error_code: Any, payload: Payload) -> None:
        """An error of the whole connection."""
        text = bytes(payload.data or b"").decode("utf-8", "replace")
        self._wire.drop(f"the server ended the connection: {error_code.name.lower()} {text}".rstrip())

    async def on_keepalive_timeout(self, time_since_last_keepalive: timedelta, rsocket: Any) -> None:
        """Nothing came for the life time that the connection was given."""
        self._wire.drop(f"no sign of life from the server for {time_since_last_keepalive.total_seconds():g} s")
