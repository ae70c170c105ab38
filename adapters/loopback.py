"""No wire at all: the client is handed the served peer itself. The engine's floor and test double."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from adapters.api import Adapter, Address, Codec, ConnectionLost, Facts, Peer, Served, Shape


class _Here(Served):
    def __init__(self, address: Address) -> None:
        self.address = address


class Loopback(Adapter):
    """Client and server share one process and one adapter object; nothing is encoded."""

    shapes = frozenset(Shape)
    default_codec = "json"
    facts = Facts(
        library="",
        transport="none",
        schema="none",
        interaction="all four",
        demand="a call that is not made",
        deadlines="none",
        browser="no",
        accepts="objects",
        wire_type="none",
    )
    in_process = True
    multiplexes = True
    engine = "loopback"

    def __init__(self, *, codec: Codec, max_message_bytes: int) -> None:
        self.codec = codec
        self.max_message_bytes = max_message_bytes
        self._peer: Peer | None = None

    @asynccontextmanager
    async def serve(self, peer: Peer, address: Address) -> AsyncIterator[Served]:
        """Hands `peer` to every later connect; the address is only echoed."""
        self._peer = peer
        try:
            yield _Here(address)
        finally:
            self._peer = None

    @asynccontextmanager
    async def connect(self, address: Address, credit: int | None = None) -> AsyncIterator[Peer]:
        """The served peer itself. Raises ConnectionLost when nothing is served."""
        if self._peer is None:
            raise ConnectionLost("nothing is served in this process")
        yield self._peer

    def wire_bytes(self, payload_bytes: int) -> int:
        """There is no wire."""
        return 0
