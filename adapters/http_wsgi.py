"""The server's end of HTTP in threads: a WSGI application without a framework. The same answers as
adapters.http_server gives.

A WSGI server has read the whole request before it calls the application, so an upload that is a stream starts to be
served when it is over. Each call has a thread for itself, a stream as long as it lasts.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from http import HTTPStatus
from typing import Any

from adapters.api import BlockingPeer, CallFailed, Codec, Message, Method, Shape
from adapters.http_items import Framing, Inbox, framing, mime
from adapters.http_paths import Route, Routes
from adapters.http_status import OK, RequestTooLarge, spell, status_of, too_large

PIECE_BYTES = 65_536  # of an upload, read at a time
TEXT = "text/plain; charset=utf-8"

Environ = dict[str, Any]
Start = Callable[[str, list[tuple[str, str]]], Any]

_LINES = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}


class BlockingApplication:
    """Serves `methods` of `peer` as WSGI. `limit`: bytes of one message."""

    def __init__(self, peer: BlockingPeer, codec: Codec, limit: int, methods: Iterable[Method]) -> None:
        self._peer, self._codec, self._limit = peer, codec, limit
        self._routes = Routes(methods)

    def __call__(self, environ: Environ, start: Start) -> Iterable[bytes]:
        """One request."""
        try:
            path, _, query = environ["REQUEST_URI"].partition("?")
            route, symbol = self._routes.find(environ["REQUEST_METHOD"], path, query.encode("latin-1"))
            method = route.method
            if method.shape is Shape.SERVER_STREAM:
                request = self._request(route, symbol, query, environ)
                return self._streamed(method, self._peer.server_stream(method, request), start)
            if method.shape is Shape.CLIENT_STREAM:
                with closing(self._uploads(method, environ)) as uploads:
                    reply = self._peer.client_stream(method, uploads)
            else:
                reply = self._peer.unary(method, self._request(route, symbol, query, environ))
            kind = TEXT if method.name == "hello" else mime(self._codec, method.reply)
            return _whole(start, OK, kind, self._encode(reply))
        except Exception as exc:
            return _whole(start, status_of(exc), TEXT, spell(exc).encode("utf-8", "replace"))

    def _encode(self, message: Message) -> bytes:
        data = self._codec.encode(message)
        if len(data) > self._limit:
            raise too_large(len(data), self._limit)
        return data

    def _request(self, route: Route, symbol: str, query: str, environ: Environ) -> Message:
        if route.get:
            return route.request(symbol, query.encode("latin-1"))
        size = int(environ.get("CONTENT_LENGTH") or 0)
        if size > self._limit:
            raise RequestTooLarge(str(too_large(size, self._limit)))
        return self._codec.decode(route.method.request, environ["wsgi.input"].read())

    def _uploads(self, method: Method, environ: Environ) -> Generator[Message, None, None]:
        """The messages of a request's body, as the service pulls them."""
        inbox: Inbox = Inbox()
        reader, source = framing(self._codec, method.request).reader(self._limit), environ["wsgi.input"]
        while piece := source.read(PIECE_BYTES):
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

    def _streamed(self, method: Method, items: Generator[Message, None, None], start: Start) -> Iterable[bytes]:
        """The body of a stream. Its first item is made first: only then is it known that the call is no error."""
        encode, written = self._encode, framing(self._codec, method.reply)
        try:
            first = next(items, None)
            head = None if first is None else written.item(encode(first))
        except Exception:
            items.close()
            raise
        start(_LINES[OK], [(name.decode(), value.decode()) for name, value in written.headers])
        return self._items(head, items, written)

    def _items(
        self, head: bytes | None, items: Generator[Message, None, None], written: Framing
    ) -> Iterator[bytes]:
        encode, item = self._encode, written.item
        with closing(items):
            if head is None:
                return
            yield head
            try:
                for message in items:
                    yield item(encode(message))
            except Exception as exc:
                yield written.error(spell(exc))


def _whole(start: Start, status: int, kind: str, body: bytes) -> list[bytes]:
    start(_LINES[status], [("Content-Type", kind), ("Content-Length", str(len(body)))])
    return [body]
