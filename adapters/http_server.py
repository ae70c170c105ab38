"""The server's end of HTTP: an ASGI application without a framework, and uvicorn around it.

uvicorn writes to a client that has gone without saying so; only asking for the next piece of the request tells. So
every stream has a second task that asks, and that ends the stream when its reader leaves.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import Any

import uvicorn

from adapters.api import (
    Address,
    AddressInUse,
    Backlog,
    CallFailed,
    Codec,
    ConnectionLost,
    Message,
    Method,
    Peer,
    Served,
    Shape,
)
from adapters.http_items import Framing, Inbox, framing, mime
from adapters.http_paths import Route, Routes
from adapters.http_status import OK, RequestTooLarge, spell, status_of, too_large

BACKLOG = 2048  # connections that may wait to be accepted
IDLE_S = 30 * 24 * 3600  # a connection that says nothing is kept: quiet readers are what is measured
STOP_S = 1  # how long running calls may take to end when the server stops
TEXT = "text/plain; charset=utf-8"

Receive = Callable[[], Any]  # awaited, these are ASGI's messages
Send = Callable[[dict[str, Any]], Any]


class Application:
    """Serves `methods` of `peer` as ASGI. `replies`: how a stream of a type is framed. A stream whose reader lets a
    send wait for `send_timeout_s` is dropped; None waits for ever.
    """

    def __init__(
        self,
        peer: Peer,
        codec: Codec,
        limit: int,
        methods: Iterable[Method],
        replies: Callable[[type], Framing],
        send_timeout_s: float | None = None,
    ) -> None:
        self._peer, self._codec, self._limit = peer, codec, limit
        self._routes = Routes(methods)
        self._replies = replies
        self._send_timeout_s = send_timeout_s
        self.drop: Callable[[Any], None] = lambda client: None  # set by serve: drops the connection of this client

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """One request."""
        try:
            path = scope["raw_path"].decode("ascii")
            route, symbol = self._routes.find(scope["method"], path, scope["query_string"])
            method = route.method
            if method.shape is Shape.SERVER_STREAM:
                request = await self._request(route, symbol, scope, receive)
                await _Stream(self, method, request).run(scope, receive, send)
                return
            if method.shape is Shape.CLIENT_STREAM:
                async with aclosing(self._uploads(method, receive)) as uploads:
                    reply = await self._peer.client_stream(method, uploads)
            else:
                request = await self._request(route, symbol, scope, receive)
                reply = await self._peer.unary(method, request)
            kind = TEXT if method.name == "hello" else mime(self._codec, method.reply)
            await _whole(send, OK, kind, self.encode(reply))
        except ConnectionLost:
            pass  # nobody is there to be answered
        except Exception as exc:
            await _whole(send, status_of(exc), TEXT, spell(exc).encode("utf-8", "replace"))

    def encode(self, message: Message) -> bytes:
        """Raises Unsupported over the limit."""
        data = self._codec.encode(message)
        if len(data) > self._limit:
            raise too_large(len(data), self._limit)
        return data

    async def _request(self, route: Route, symbol: str, scope: dict[str, Any], receive: Receive) -> Message:
        if route.get:
            return route.request(symbol, scope["query_string"])
        for name, value in scope["headers"]:
            if name == b"content-length" and int(value) > self._limit:
                raise RequestTooLarge(str(too_large(int(value), self._limit)))
        pieces, size = [], 0
        async for piece in _pieces(receive):
            size += len(piece)
            if size > self._limit:
                raise RequestTooLarge(str(too_large(size, self._limit)))
            pieces.append(piece)
        return self._codec.decode(route.method.request, b"".join(pieces))

    async def _uploads(self, method: Method, receive: Receive) -> AsyncGenerator[Message, None]:
        """The messages of a request's body, as the service pulls them."""
        inbox: Inbox = Inbox()
        reader = framing(self._codec, method.request).reader(self._limit)
        async for piece in _pieces(receive):
            reader.feed(piece, inbox)
            while inbox:
                yield self._upload(method, inbox)
        reader.finish(inbox)
        while inbox:
            yield self._upload(method, inbox)

    def _upload(self, method: Method, inbox: Inbox) -> Message:
        data = inbox.popleft()
        if isinstance(data, bytes):
            return self._codec.decode(method.request, data)
        raise data if isinstance(data, CallFailed) else RequestTooLarge(str(data))


class _Stream:
    """One response that is a stream."""

    def __init__(self, application: Application, method: Method, request: Message) -> None:
        self._application, self._method, self._request = application, method, request
        self._framing = application._replies(method.reply)
        self._sent = 0
        self._sending = False

    async def run(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """To its end, or until its reader leaves or has stalled for too long."""
        timeout_s = self._application._send_timeout_s
        items, left = asyncio.create_task(self._send(send)), asyncio.create_task(_disconnected(receive))
        tasks = {items, left}
        if timeout_s is not None:
            tasks.add(stalled := asyncio.create_task(self._stalled(timeout_s)))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if timeout_s is not None and stalled.done():
                self._application.drop(scope["client"])
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        if not items.cancelled():
            items.result()

    async def _send(self, send: Send) -> None:
        encode, item, method = self._application.encode, self._framing.item, self._method
        last = b""
        try:
            async with aclosing(self._application._peer.server_stream(method, self._request)) as items:
                async for message in items:
                    data = item(encode(message))
                    if not self._sent:  # only now is it known that the call is no error
                        await self._start(send)
                    self._sending = True
                    await send({"type": "http.response.body", "body": data, "more_body": True})
                    self._sending = False
                    self._sent += 1
            last = self._framing.end(self._sent)
        except Exception as exc:
            if not self._sent:
                raise
            last = self._framing.error(spell(exc))
        if not self._sent:
            await self._start(send)
        await send({"type": "http.response.body", "body": last, "more_body": False})

    async def _start(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": OK, "headers": self._framing.headers})

    async def _stalled(self, timeout_s: float) -> None:
        """Returns when one send has waited for `timeout_s` (up to a quarter more: no timer runs for each item)."""
        seen, since = -1, 0
        while since < 4:
            await asyncio.sleep(timeout_s / 4)
            since = since + 1 if self._sending and self._sent == seen else 0
            seen = self._sent


async def _whole(send: Send, status: int, kind: str, body: bytes) -> None:
    headers = [(b"content-type", kind.encode()), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _pieces(receive: Receive) -> AsyncGenerator[bytes, None]:
    """The body of a request, as it comes. Raises ConnectionLost when the client leaves before its end."""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionLost("the client left in the middle of its request")
        if body := message.get("body"):
            yield body
        more = message.get("more_body", False)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class _Uvicorn(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are for whoever owns this process."""
        yield


class _Served(Served):
    def __init__(self, address: Address, server: uvicorn.Server) -> None:
        self.address = address
        self.server = server

    def backlog(self) -> Backlog:
        connections: list[Any] = list(self.server.server_state.connections)
        return Backlog(size_bytes=sum(connection.transport.get_write_buffer_size() for connection in connections))

    def drop(self, client: Any) -> None:
        """Abort the connections of this client (all for None); a closing that waits for readers may never end."""
        connections: list[Any] = list(self.server.server_state.connections)
        for connection in connections:
            if client is None or connection.client == client:
                connection.transport.abort()


def _listening(address: Address) -> socket.socket:
    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    family, kind, _, _, where = found[0]
    sock = socket.socket(family, kind, socket.IPPROTO_TCP)  # with proto 0, asyncio would leave Nagle on
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(where)
        sock.listen(BACKLOG)
    except OSError as exc:
        sock.close()
        if exc.errno == errno.EADDRINUSE:
            raise AddressInUse(address) from exc
        raise
    return sock


@asynccontextmanager
async def serve(application: Application, address: Address, parser: str) -> AsyncIterator[Served]:
    """uvicorn on the running loop until the context ends. `parser`: httptools or h11. Raises AddressInUse."""
    sock = _listening(address)
    config = uvicorn.Config(
        application,
        http=parser,
        ws="none",
        loop="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=STOP_S,
    )
    server = _Uvicorn(config)
    served = _Served(Address(*sock.getsockname()[:2]), server)
    application.drop = served.drop
    running = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        while not server.started:
            if running.done():
                running.result()
            await asyncio.sleep(0)
        yield served
    finally:
        server.should_exit = True
        for listener in getattr(server, "servers", []):
            listener.close()
        served.drop(None)
        await asyncio.wait([running], timeout=3 * STOP_S)
        running.cancel()
        sock.close()
