"""One quote and many over bare rsocket-py.

Nothing of the adapter is used, and no more is written than the two exchanges need (adapters.api.HandWritten).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from reactivestreams.publisher import Publisher
from reactivestreams.subscriber import Subscriber
from reactivestreams.subscription import Subscription
from rsocket.extensions.helpers import composite, route
from rsocket.extensions.mimetypes import WellKnownMimeTypes
from rsocket.helpers import create_response, single_transport_provider
from rsocket.payload import Payload
from rsocket.routing.request_router import RequestRouter
from rsocket.routing.routing_request_handler import RoutingRequestHandler
from rsocket.rsocket_client import RSocketClient
from rsocket.rsocket_server import RSocketServer
from rsocket.transports.tcp import TransportTCP

from adapters.api import Address, Codec, Exchange, HandWritten, Message, Served
from adapters.messages import Quote, QuoteRequest, StreamRequest

_ONE, _MANY = "quote", "quotes"


class _Served(Served):
    def __init__(self, address: Address) -> None:
        self.address = address


class _Quotes(Publisher, Subscription):  # type: ignore[misc]
    """Credit and one task, as the library's users write it."""

    def __init__(self, bare: Bare, request: StreamRequest) -> None:
        self._encode, self._make, self._wanted = bare.codec.encode, bare.make, request
        self._credit, self._seq = 0, 0
        self._task: asyncio.Task[None] | None = None

    def subscribe(self, subscriber: Any) -> None:
        self._subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int) -> None:
        self._credit += n
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        count = self._wanted.count
        while self._credit and self._seq < count:
            self._credit -= 1
            data = self._encode(self._make(self._wanted.symbol, self._seq))
            self._seq += 1
            self._subscriber.on_next(Payload(data), is_complete=self._seq == count)
            if not self._seq % 64:
                await asyncio.sleep(0)
        self._task = None


class _Reader(Subscriber):  # type: ignore[misc]
    def __init__(self, codec: Codec) -> None:
        self._decode = codec.decode
        self.n, self.done = 0, asyncio.Event()
        self._subscription: Any = None

    def on_subscribe(self, subscription: Any) -> None:
        self._subscription = subscription

    def on_next(self, value: Any, is_complete: bool = False) -> None:
        self._decode(Quote, value.data)
        self.n += 1
        if is_complete:
            self.done.set()
        elif not self.n % 500:
            self._subscription.request(500)

    def on_complete(self) -> None:
        self.done.set()

    def on_error(self, exception: Exception) -> None:
        self.done.set()  # what is missing is counted


class _Exchange(Exchange):
    def __init__(self, client: Any, codec: Codec) -> None:
        self._client, self._codec = client, codec
        self._one, self._many = composite(route(_ONE)), composite(route(_MANY))

    async def call(self, request: Message) -> Message:
        payload = await self._client.request_response(Payload(self._codec.encode(request), self._one))
        return self._codec.decode(Quote, payload.data)

    async def stream(self, request: Message) -> int:
        reader = _Reader(self._codec)
        payload = Payload(self._codec.encode(request), self._many)
        self._client.request_stream(payload).initial_request_n(1000).subscribe(reader)
        await reader.done.wait()
        return reader.n


class Bare(HandWritten):
    """See adapters.api.HandWritten."""

    @asynccontextmanager
    async def serve(self, address: Address) -> AsyncIterator[Served]:
        codec, make, router = self.codec, self.make, RequestRouter()

        @router.response(_ONE)  # type: ignore[untyped-decorator]
        async def one(payload: Any) -> Any:
            request = codec.decode(QuoteRequest, payload.data)
            return create_response(codec.encode(make(request.symbol, request.seq)))

        @router.stream(_MANY)  # type: ignore[untyped-decorator]
        async def many(payload: Any) -> Any:
            return _Quotes(self, codec.decode(StreamRequest, payload.data))

        sessions: list[Any] = []

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            handler = lambda: RoutingRequestHandler(router)  # noqa: E731
            sessions.append(RSocketServer(TransportTCP(reader, writer), handler_factory=handler))

        server = await asyncio.start_server(accept, address.host, address.port)
        async with server:
            yield _Served(Address(*server.sockets[0].getsockname()[:2]))
            for session in sessions:
                await session.close()

    @asynccontextmanager
    async def connect(self, address: Address) -> AsyncIterator[Exchange]:
        transport = TransportTCP(*await asyncio.open_connection(address.host, address.port))
        client = RSocketClient(
            single_transport_provider(transport),
            metadata_encoding=WellKnownMimeTypes.MESSAGE_RSOCKET_COMPOSITE_METADATA,
            keep_alive_period=timedelta(seconds=10),
            max_lifetime_period=timedelta(minutes=10),
        )
        await client.connect()
        try:
            yield _Exchange(client, self.codec)
        finally:
            await client.close()
