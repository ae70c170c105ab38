"""gRPC whose server is grpcio's synchronous one: each running call has a thread of a pool for itself, a stream as
long as it lasts. Paths, client and channel arguments are those of adapters.grpc.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated, Any

import grpc
from msgspec import Meta

from adapters.api import Adapter, Address, AddressInUse, BlockingPeer, Codec, Facts, Peer, Served, Shape
from adapters.grpc_client import INT_MAX, both_ends, client_only, connected
from adapters.grpc_paths import check_free, rpc_name, service_name, target
from adapters.grpc_pool import Pool
from adapters.grpc_status import Wire
from adapters.grpc_threads_endpoint import BlockingEndpoint
from adapters.messages import METHODS

GRACE_S = 0.1  # what running calls get to end by themselves when the server stops
STOP_S = 2.0  # how long stopping the server may take at all; a thread that is busy then is left behind


class _Server(Served):
    def __init__(self, address: Address) -> None:
        self.address = address


class GrpcThreads(Adapter):
    """`workers`: threads of the pool. `bdp_probe`, `lookahead_bytes`: of the client, as protocol grpc has them."""

    shapes = frozenset(Shape)
    default_codec = "protobuf"
    facts = Facts(
        library="grpcio",
        transport="HTTP/2 over TCP",
        schema="proto/quotes.proto",
        interaction="all four; a thread for each running call",
        demand="HTTP/2 window, in bytes",
        deadlines="yes, known to both ends",
        browser="through a gRPC-Web proxy",
        accepts="bytes, or anything with a serializer",
        wire_type="content-type application/grpc, whatever the codec",
    )
    multiplexes = True
    blocking = True
    model = "threads"
    engine = "grpcio sync"

    def __init__(
        self,
        *,
        codec: Codec,
        max_message_bytes: int,
        workers: Annotated[int, Meta(ge=1)] = 20,
        bdp_probe: bool = True,
        lookahead_bytes: Annotated[int, Meta(ge=0, le=INT_MAX)] | None = None,
    ) -> None:
        self.codec = codec
        self.max_message_bytes = max_message_bytes
        self.workers = workers
        self._wire = Wire(codec, self.limit_bytes())
        self._both_ends = both_ends(self.limit_bytes())
        self._client_only = client_only(bdp_probe, lookahead_bytes)

    @asynccontextmanager
    async def serve(self, peer: BlockingPeer, address: Address) -> AsyncIterator[Served]:
        """Raises AddressInUse."""
        check_free(address)
        assert self.workers is not None
        pool = Pool(self.workers)
        try:
            server: Any = grpc.server(pool, options=[*self._both_ends, ("grpc.so_reuseport", 0)])
            handlers: dict[str, dict[str, Any]] = {}
            for method in METHODS.values():
                rpcs = handlers.setdefault(service_name(method), {})
                rpcs[rpc_name(method)] = BlockingEndpoint(peer, method, self._wire).handler()
            server.add_generic_rpc_handlers(
                tuple(grpc.method_handlers_generic_handler(service, rpcs) for service, rpcs in handlers.items())
            )
            try:
                port = server.add_insecure_port(target(address))
            except RuntimeError as exc:
                raise AddressInUse(address) from exc
            server.start()
            try:
                yield _Server(Address(address.host, port))
            finally:
                await asyncio.to_thread(server.stop(GRACE_S).wait, STOP_S)
        finally:
            pool.shutdown()

    def connect(self, address: Address, credit: int | None = None) -> AbstractAsyncContextManager[Peer]:
        """One TCP connection, ready for calls; `credit` means nothing here. Raises ConnectionLost."""
        return connected(address, self._wire, [*self._both_ends, *self._client_only])

    def wire_bytes(self, payload_bytes: int) -> int:
        """One DATA frame: its header (9), gRPC's prefix (5) and the payload."""
        return payload_bytes + 14

    def limit_bytes(self) -> int:
        """`max_message_bytes`, at most what a channel argument holds."""
        return min(self.max_message_bytes, INT_MAX)
