"""REST over HTTP/1.1 as adapters.http spells it, served by a pool of threads: waitress. The client is the same.

Back-pressure is TCP's, behind a buffer of the server's own: a thread that makes items waits once `write_limit`
bytes of its connection are unsent.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Annotated

from msgspec import Meta

from adapters.api import Adapter, Address, BlockingPeer, Codec, Facts, Peer, Served, Shape
from adapters.http_items import FRAME_MAX, chunk_bytes, framing
from adapters.http_peer import Client, connected
from adapters.http_waitress import serve
from adapters.http_wsgi import BlockingApplication
from adapters.messages import METHODS


class HttpThreads(Adapter):
    """`workers`: threads of the pool. `write_limit`: bytes of one connection that may wait in the server.

    waitress's own limit is 16 MiB: with each item it tries again to send all that waits, so that small items need
    over 20 s to fill that, and look as if nothing bounded them.
    """

    shapes = frozenset({Shape.UNARY, Shape.SERVER_STREAM, Shape.CLIENT_STREAM})
    speaks_http = True
    default_codec = "json"
    facts = Facts(
        library="waitress",
        transport="HTTP/1.1 over TCP",
        schema="none (paths and queries)",
        interaction="request/response; a stream one way in one body; a thread for each",
        demand="TCP window, behind a buffer of the server",
        deadlines="none",
        browser="yes",
        accepts="bytes",
        wire_type="Content-Type",
    )
    blocking = True
    model = "threads"
    engine = "waitress"

    def __init__(
        self,
        *,
        codec: Codec,
        max_message_bytes: int,
        workers: Annotated[int, Meta(ge=1)] = 20,
        write_limit: Annotated[int, Meta(ge=1)] = 1_048_576,
    ) -> None:
        self.codec = codec
        self.max_message_bytes = max_message_bytes
        self.workers = workers
        self._write_limit = write_limit

    def limit_bytes(self) -> int:
        """Beyond max_message_bytes, a frame's length has 31 bits."""
        return min(self.max_message_bytes, FRAME_MAX)

    def serve(self, peer: BlockingPeer, address: Address) -> AbstractAsyncContextManager[Served]:
        """Raises AddressInUse."""
        assert self.workers is not None
        methods = [method for method in METHODS.values() if method.shape in self.shapes]
        application = BlockingApplication(peer, self.codec, self.limit_bytes(), methods)
        return serve(application, address, self.workers, self._write_limit)

    def connect(self, address: Address, credit: int | None = None) -> AbstractAsyncContextManager[Peer]:
        """One TCP connection; `credit` means nothing here. Raises ConnectionLost when nobody listens."""
        limit, replies = self.limit_bytes(), partial(framing, self.codec)
        return connected(
            lambda wire: Client(wire, address, self.codec, limit, replies, self.shapes, "http_threads"),
            address,
            limit,
        )

    def wire_bytes(self, payload_bytes: int) -> int:
        """A chunk: its size in hexadecimal, two line ends, the item and its line feed or its length."""
        return chunk_bytes(payload_bytes + (1 if self.codec.text else 4))
