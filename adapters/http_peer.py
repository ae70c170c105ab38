"""What is called at the client: methods as requests over one keep-alive connection (adapters.http_client)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from adapters.api import AdapterError, Address, Codec, ConnectionLost, Message, Method, Peer, Shape, Unsupported
from adapters.http_client import Wire, open_wire
from adapters.http_items import LAST_CHUNK, Framing, chunk, framing, mime
from adapters.http_paths import Route
from adapters.http_status import too_large

REOPEN_S = 1.0  # how long opening the next connection may take after a stream was left
CLOSED = ConnectionLost("the connection was closed")


class Client(Peer):
    """`name`: of the protocol, for who asks too much of it. `replies`: how a stream of a type is framed.

    HTTP/1.1 cannot take a request back: leaving a stream early drops the TCP connection and opens the next one
    before the leaving is over, so that no later call pays for the handshake.
    """

    def __init__(
        self,
        wire: Wire,
        address: Address,
        codec: Codec,
        limit: int,
        replies: Callable[[type], Framing],
        shapes: frozenset[Shape],
        name: str,
    ) -> None:
        self._wire, self._address, self._codec, self._decode = wire, address, codec, codec.decode
        self._limit, self._replies, self._shapes, self._name = limit, replies, shapes, name
        host = f"[{address.host}]" if ":" in address.host else address.host
        self._host = f"Host: {host}:{address.port}\r\n"
        self._requests: dict[str, Callable[[Message], bytes]] = {}

    def held(self) -> int:
        return len(self._wire.inbox)

    def close(self) -> None:
        """Drop the connection."""
        self._wire.abort(CLOSED)

    async def unary(self, method: Method, request: Message) -> Message:
        spell = self._requests.get(method.name) or self._speller(method)
        answer = self._wire.ask(spell(request))
        try:
            data = await answer
        except asyncio.CancelledError:
            self._wire.abort(ConnectionLost("a call was abandoned"))  # its answer would be taken for the next one's
            raise
        return self._decode(method.reply, data)

    async def server_stream(self, method: Method, request: Message) -> AsyncGenerator[Message, None]:
        self._check(method)
        spell = self._requests.get(method.name) or self._speller(method)
        wire, decode, reply = self._wire, self._decode, method.reply
        wire.open(spell(request), self._replies(reply).reader(self._limit))
        inbox, take = wire.inbox, wire.inbox.popleft
        try:
            while await wire.more():
                while inbox:
                    data = take()
                    if data.__class__ is not bytes:
                        assert isinstance(data, AdapterError)
                        if not isinstance(data, Unsupported):
                            await self._settle(wire)
                        raise data
                    yield decode(reply, data)
        finally:
            if wire.mid_response and wire.lost is None:
                await self._reopen()
            wire.leave()

    async def client_stream(self, method: Method, requests: AsyncIterable[Message]) -> Message:
        self._check(method)
        wire = self._wire
        answer = wire.upload(self._head(Route(method), "Transfer-Encoding: chunked\r\n"))
        upload = asyncio.create_task(self._upload(wire, method, requests))
        try:
            both: list[asyncio.Future[Any]] = [answer, upload]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done() and (cause := upload.exception()) and not isinstance(cause, ConnectionLost):
                raise cause
            return self._decode(method.reply, await answer)
        finally:
            ended = upload.done() and not upload.cancelled() and upload.exception() is None
            upload.cancel()
            await asyncio.wait([upload])
            if not answer.done():
                answer.cancel()
                await self._reopen()
            elif not answer.cancelled():
                answer.exception()  # retrieved, so that nobody warns about it
                if not ended:
                    wire.write(LAST_CHUNK)  # answered before it had heard all
            wire.leave()

    async def bidi_stream(self, method: Method, requests: AsyncIterable[Message]) -> AsyncGenerator[Message, None]:
        self._check(method)
        yield  # never reached: no HTTP/1.1 peer has this shape

    def _check(self, method: Method) -> None:
        if method.shape not in self._shapes:
            raise Unsupported(f"{self._name} cannot carry {method.shape.value} ({method.name})")

    async def _upload(self, wire: Wire, method: Method, requests: AsyncIterable[Message]) -> None:
        encode, item, limit = self._codec.encode, framing(self._codec, method.request).item, self._limit
        async for request in requests:
            data = encode(request)
            if len(data) > limit:
                raise too_large(len(data), limit)
            wire.write(chunk(item(data)))
            if wire.write_paused:
                await wire.drain()
        wire.write(LAST_CHUNK)

    async def _settle(self, wire: Wire) -> None:
        """After an error item: the end of the response is right behind it."""
        wire.inbox.clear()
        try:
            async with asyncio.timeout(REOPEN_S):
                while await wire.more():
                    wire.inbox.clear()
        except (TimeoutError, AdapterError):
            pass  # then the connection is replaced

    async def _reopen(self) -> None:
        """Drop the connection and open another. If that fails, the next call says so."""
        wire = self._wire
        wire.abort(ConnectionLost("the connection was dropped in the middle of a call"))
        if wire.lost is CLOSED:
            return
        try:
            async with asyncio.timeout(REOPEN_S):
                opened = await open_wire(self._address, self._limit)
        except (TimeoutError, ConnectionLost):
            return
        if self._wire is wire and wire.lost is not CLOSED:
            self._wire = opened
        else:
            opened.abort(CLOSED)

    def _head(self, route: Route, rest: str) -> bytes:
        """All of a POST's head."""
        kind = route.method.request
        text = framing(self._codec, kind).headers[0][1].decode() if "chunked" in rest else mime(self._codec, kind)
        return f"POST {route.path} HTTP/1.1\r\n{self._host}Content-Type: {text}\r\n{rest}\r\n".encode()

    def _speller(self, method: Method) -> Callable[[Message], bytes]:
        """What makes the whole request of this method, made once."""
        route = Route(method)
        spell = self._requests[method.name] = self._getter(route) if route.get else self._poster(route)
        return spell

    def _getter(self, route: Route) -> Callable[[Message], bytes]:
        target, rest = route.target(), f" HTTP/1.1\r\n{self._host}\r\n"
        return lambda request: f"GET {target(request)}{rest}".encode()

    def _poster(self, route: Route) -> Callable[[Message], bytes]:
        encode, limit, head = self._codec.encode, self._limit, self._head(route, "Content-Length: ")[:-2]

        def post(request: Any) -> bytes:
            data = encode(request)
            if len(data) > limit:
                raise too_large(len(data), limit)
            return b"%b%d\r\n\r\n%b" % (head, len(data), data)

        return post


@asynccontextmanager
async def connected(make: Callable[[Wire], Client], address: Address, limit: int) -> AsyncIterator[Peer]:
    """One client on a connection of its own. Raises ConnectionLost when nobody listens."""
    client = make(await open_wire(address, limit))
    try:
        yield client
    finally:
        client.close()
