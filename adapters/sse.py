"""Server-sent events over HTTP/1.1: streams from the server as adapters.sse_events writes them, and single answers
as adapters.http gives them. Paths, server and client are those of HTTP.

A browser's EventSource reads a stream as it is; it must close itself on the event named end, or it would ask again.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Annotated

from msgspec import Meta

from adapters.api import Adapter, Address, Codec, Facts, Peer, Served, Shape
from adapters.http_items import Framing, chunk_bytes
from adapters.http_peer import Client, connected
from adapters.http_server import Application, serve
from adapters.messages import METHODS, Body
from adapters.sse_events import Events


class Sse(Adapter):
    """`send_timeout_s`: how long one send may wait for a reader that does not read before the server gives up the
    stream and drops the connection (up to a quarter longer); None waits for ever.
    """

    shapes = frozenset({Shape.UNARY, Shape.SERVER_STREAM})
    default_codec = "json"
    facts = Facts(
        library="uvicorn",
        transport="HTTP/1.1 over TCP",
        schema="none (paths and queries)",
        interaction="request/response; a stream from the server",
        demand="TCP window",
        deadlines="none",
        browser="yes (EventSource)",
        accepts="text",
        wire_type="text/event-stream; binary as base64",
    )
    engine = "uvicorn httptools"

    def __init__(
        self,
        *,
        codec: Codec,
        max_message_bytes: int,
        send_timeout_s: Annotated[float, Meta(gt=0)] | None = None,
    ) -> None:
        self.codec = codec
        self.max_message_bytes = max_message_bytes
        self._send_timeout_s = send_timeout_s

    def _replies(self, kind: type) -> Framing:
        return Events(text=self.codec.text and kind is not Body)

    def serve(self, peer: Peer, address: Address) -> AbstractAsyncContextManager[Served]:
        """Raises AddressInUse."""
        methods = [method for method in METHODS.values() if method.shape in self.shapes]
        application = Application(
            peer, self.codec, self.max_message_bytes, methods, self._replies, self._send_timeout_s
        )
        return serve(application, address, "httptools")

    def connect(self, address: Address, credit: int | None = None) -> AbstractAsyncContextManager[Peer]:
        """One TCP connection; `credit` means nothing here. Raises ConnectionLost when nobody listens."""
        limit = self.max_message_bytes
        return connected(
            lambda wire: Client(wire, address, self.codec, limit, self._replies, self.shapes, "sse"), address, limit
        )

    def wire_bytes(self, payload_bytes: int) -> int:
        """A chunk that holds "data: ", the text or base64 of the payload, and an empty line."""
        text = payload_bytes if self.codec.text else (payload_bytes + 2) // 3 * 4
        return chunk_bytes(text + 8)
