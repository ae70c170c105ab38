"""REST over HTTP/1.1: resources as adapters.http_paths spells them, served by uvicorn, asked by our own client.

One connection carries one call at a time. An answer is 200 and the encoded message; an error is a status and the
text "kind: message". A stream either way is one chunked body of items (adapters.http_items), whose last chunk tells
its end from a cut. Back-pressure is TCP's: the client stops reading its socket, and uvicorn's send waits for its
buffer to drain.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Literal

from adapters.api import Adapter, Address, Codec, Facts, Peer, Served, Shape
from adapters.http_items import FRAME_MAX, chunk_bytes, framing
from adapters.http_peer import Client, connected
from adapters.http_server import Application, serve
from adapters.messages import METHODS


class Http(Adapter):
    """`parser`: what uvicorn reads requests with, httptools (native) or h11 (pure Python)."""

    shapes = frozenset({Shape.UNARY, Shape.SERVER_STREAM, Shape.CLIENT_STREAM})
    speaks_http = True
    default_codec = "json"
    facts = Facts(
        library="uvicorn",
        transport="HTTP/1.1 over TCP",
        schema="none (paths and queries)",
        interaction="request/response; a stream one way in one body",
        demand="TCP window",
        deadlines="none",
        browser="yes",
        accepts="bytes",
        wire_type="Content-Type",
    )

    def __init__(
        self, *, codec: Codec, max_message_bytes: int, parser: Literal["httptools", "h11"] = "httptools"
    ) -> None:
        self.codec = codec
        self.max_message_bytes = max_message_bytes
        self.engine = f"uvicorn {parser}"
        self._parser = parser

    def limit_bytes(self) -> int:
        """Beyond max_message_bytes, a frame's length has 31 bits."""
        return min(self.max_message_bytes, FRAME_MAX)

    def serve(self, peer: Peer, address: Address) -> AbstractAsyncContextManager[Served]:
        """Raises AddressInUse."""
        methods = [method for method in METHODS.values() if method.shape in self.shapes]
        replies = partial(framing, self.codec)
        return serve(Application(peer, self.codec, self.limit_bytes(), methods, replies), address, self._parser)

    def connect(self, address: Address, credit: int | None = None) -> AbstractAsyncContextManager[Peer]:
        """One TCP connection; `credit` means nothing here. Raises ConnectionLost when nobody listens."""
        limit, replies = self.limit_bytes(), partial(framing, self.codec)
        return connected(
            lambda wire: Client(wire, address, self.codec, limit, replies, self.shapes, "http"), address, limit
        )

    def wire_bytes(self, payload_bytes: int) -> int:
        """A chunk: its size in hexadecimal, two line ends, the item and its line feed or its length."""
        return chunk_bytes(payload_bytes + (1 if self.codec.text else 4))
