"""gRPC over grpc.aio on both sides. The wire of proto/*.proto; with other codecs the same paths, other bytes.

Messages are encoded and decoded here and not by grpc's (de)serializer hooks: grpc logs what such a hook raises and
goes on with None, so neither "not representable" nor "malformed" nor a size would reach the caller.

Back-pressure is HTTP/2's, in bytes, and belongs to the receiver: `bdp_probe` and `lookahead_bytes` are set on the
client's channel. With the probe on, grpc raises the window to 4 MiB whatever else was asked for; without it the
window is `lookahead_bytes` (64 KiB by default).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated, Any

import grpc.aio
from msgspec import Meta

from adapters.api import Adapter, Address, AddressInUse, Codec, Facts, HandWritten, Peer, Served, Shape
from adapters.grpc_client import INT_MAX, both_ends, client_only, connected
from adapters.grpc_endpoint import Endpoint
from adapters.grpc_paths import check_free, rpc_name, service_name, target
from adapters.grpc_status import Wire
from adapters.messages import METHODS

GRACE_S = 0.1  # what running calls get to end by themselves when the server stops
STOP_S = 2.0  # how long stopping the server may take at all

aio: Any = grpc.aio  # the library ships no types


class _Server(Served):
    def __init__(self, address: Address) -> None:
        self.address = address


class Grpc(Adapter):
    """`bdp_probe`: grpc estimates the bandwidth on the client, and sets the window to 4 MiB. `lookahead_bytes`: the
    client's window (None: grpc's 64 KiB), which only counts without the probe. ValueError when both are asked for.
    """

    shapes = frozenset(Shape)
    default_codec = "protobuf"
    facts = Facts(
        library="grpcio",
        transport="HTTP/2 over TCP",
        schema="proto/quotes.proto",
        interaction="all four",
        demand="HTTP/2 window, in bytes",
        deadlines="yes, known to both ends",
        browser="through a gRPC-Web proxy",
        accepts="bytes, or anything with a serializer",
        wire_type="content-type application/grpc, whatever the codec",
    )
    multiplexes = True
    engine = "grpc.aio"

    def __init__(
        self,
        *,
        codec: Codec,
        max_message_bytes: int,
        bdp_probe: bool = True,
        lookahead_bytes: Annotated[int, Meta(ge=0, le=INT_MAX)] | None = None,
    ) -> None:
        self.codec = codec
        self.max_message_bytes = max_message_bytes
        self._wire = Wire(codec, self.limit_bytes())
        self._both_ends = both_ends(self.limit_bytes())
        self._client_only = client_only(bdp_probe, lookahead_bytes)

    @asynccontextmanager
    async def serve(self, peer: Peer, address: Address) -> AsyncIterator[Served]:
        """Raises AddressInUse."""
        check_free(address)
        server = aio.server(options=[*self._both_ends, ("grpc.so_reuseport", 0)])
        handlers: dict[str, dict[str, Any]] = {}
        for method in METHODS.values():
            rpcs = handlers.setdefault(service_name(method), {})
            rpcs[rpc_name(method)] = Endpoint(peer, method, self._wire).handler()
        server.add_generic_rpc_handlers(
            tuple(grpc.method_handlers_generic_handler(service, rpcs) for service, rpcs in handlers.items())
        )
        try:
            port = server.add_insecure_port(target(address))
        except RuntimeError as exc:
            raise AddressInUse(address) from exc
        await server.start()
        try:
            yield _Server(Address(address.host, port))
        finally:
            await asyncio.wait([asyncio.ensure_future(server.stop(GRACE_S))], timeout=STOP_S)

    def connect(self, address: Address, credit: int | None = None) -> AbstractAsyncContextManager[Peer]:
        """One TCP connection, ready for calls; `credit` means nothing here. Raises ConnectionLost."""
        return connected(address, self._wire, [*self._both_ends, *self._client_only])

    def hand_written(self) -> type[HandWritten]:
        from adapters.grpc_bare import Bare

        return Bare

    def wire_bytes(self, payload_bytes: int) -> int:
        """One DATA frame: its header (9), gRPC's prefix (5) and the payload."""
        return payload_bytes + 14

    def limit_bytes(self) -> int:
        """`max_message_bytes`, at most what a channel argument holds."""
        return min(self.max_message_bytes, INT_MAX)
