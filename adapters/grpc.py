"""gRPC over grpc.aio on both sides. The wire of proto/*.proto; with other codecs the same paths, other bytes.

Messages are encoded and decoded here and not by grpc's (de)serializer hooks: grpc logs what such a hook raises and
goes on with None, so neither "not representable" nor "malformed" nor a size would reach the caller.

Back-pressure is HTTP/2's, in bytes, and belongs to the receiver: `bdp_probe` and `lookahead_bytes` are set on the
client's channel. With the probe on, grpc raises the window to 4 MiB whatever else was asked for; without it the
window is `lookahead_bytes` (64 KiB by default).
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable
from contextlib import aclosing, asynccontextmanager
from typing import Annotated, Any

import grpc.aio
from msgspec import Meta

from adapters.api import (
    Adapter,
    AdapterError,
    Address,
    AddressInUse,
    Codec,
    ConnectionLost,
    Facts,
    HandWritten,
    Message,
    Method,
    Peer,
    Served,
    Shape,
)
from adapters.grpc_endpoint import Endpoint
from adapters.grpc_status import Code, ServersOwn, Wire, error, told
from adapters.messages import METHODS

SERVICE = "QuoteService"
_SERVICES = {"readings": "RecordService", "orders": "RecordService"}  # by the first word of the method's name
GRACE_S = 0.1  # what running calls get to end by themselves when the server stops
STOP_S = 2.0  # how long stopping the server may take at all
INT_MAX = 2**31 - 1  # channel arguments are C ints

aio: Any = grpc.aio  # the library ships no types
State: Any = grpc.ChannelConnectivity

_RPCS = {
    "quote": "GetQuote",
    "quotes": "StreamQuotes",
    "quotes.unbounded": "StreamUnbounded",
    "quotes.unbounded.ready": "StreamUnboundedReady",
    "quotes.credited": "StreamCredited",
}


def rpc_name(method: Method) -> str:
    """The method's name in proto/*.proto."""
    return _RPCS.get(method.name) or "".join(part.capitalize() for part in method.name.split("."))


def service_name(method: Method) -> str:
    """The service that has the method: QuoteService, or RecordService of proto/records.proto."""
    return _SERVICES.get(method.name.partition(".")[0], SERVICE)


def _target(address: Address) -> str:
    return f"[{address.host}]:{address.port}" if ":" in address.host else f"{address.host}:{address.port}"


class _Client(Peer):
    """One channel with a subchannel of its own: one TCP connection, never replaced by another behind our back."""

    def __init__(self, channel: Any, wire: Wire, address: Address) -> None:
        self._channel, self._wire, self._address = channel, wire, address
        self._calls: dict[str, Any] = {}

    def _callable(self, method: Method) -> Any:
        if self._channel.get_state() is not State.READY:
            # grpc would connect again, to whoever listens there now.
            raise ConnectionLost(f"the connection to {_target(self._address)} was closed")
        try:
            return self._calls[method.name]
        except KeyError:
            open_ = {
                Shape.UNARY: self._channel.unary_unary,
                Shape.SERVER_STREAM: self._channel.unary_stream,
                Shape.CLIENT_STREAM: self._channel.stream_unary,
                Shape.BIDI_STREAM: self._channel.stream_stream,
            }[method.shape]
            return self._calls.setdefault(
                method.name, open_(f"/{service_name(method)}/{rpc_name(method)}", None, None)
            )

    async def unary(self, method: Method, request: Message) -> Message:
        data = self._wire.encode(request)
        return self._wire.decode(method.reply, await self._reply(self._callable(method)(data)))

    async def server_stream(self, method: Method, request: Message) -> AsyncGenerator[Message, None]:
        data = self._wire.encode(request)
        async with aclosing(self._items(method, self._callable(method)(data))) as items:
            async for item in items:
                yield item

    async def client_stream(self, method: Method, requests: AsyncIterable[Message]) -> Message:
        call = self._callable(method)()
        async with self._uploading(call, requests) as own:
            data = await self._reply(call, own)
        return self._wire.decode(method.reply, data)

    async def bidi_stream(self, method: Method, requests: AsyncIterable[Message]) -> AsyncGenerator[Message, None]:
        call = self._callable(method)()
        async with self._uploading(call, requests) as own, aclosing(self._items(method, call, own)) as items:
            async for item in items:
                yield item

    async def _reply(self, call: Awaitable[bytes], own: ServersOwn | None = None) -> bytes:
        try:
            return await call
        except aio.AioRpcError as exc:
            raise error(await own.instead_of(exc) if own else told(exc)) from exc
        except asyncio.CancelledError:
            self._raise_if_closed()
            raise

    async def _items(
        self, method: Method, call: Any, own: ServersOwn | None = None
    ) -> AsyncGenerator[Message, None]:
        decode, reply = self._wire.decode, method.reply
        arriving: AsyncGenerator[bytes, None] = call.__aiter__()
        try:
            async for data in arriving:
                yield decode(reply, data)
        except aio.AioRpcError as exc:
            status = await own.instead_of(exc) if own else told(exc)
            if status[0] is not Code.OK:
                raise error(status) from exc
        except asyncio.CancelledError:
            self._raise_if_closed()
            raise
        finally:
            call.cancel()  # leaving the loop alone does not stop the server
            await arriving.aclose()

    @asynccontextmanager
    async def _uploading(self, call: Any, requests: AsyncIterable[Message]) -> AsyncIterator[ServersOwn]:
        """Send `requests` while the body runs. What the source or the codec raises ends the call, and wins."""

        async def upload() -> None:
            try:
                async for request in requests:
                    data = self._wire.encode(request)
                    try:
                        await call.write(data)
                    except (aio.AioRpcError, aio.BaseError, asyncio.InvalidStateError):
                        return  # the call is over; the reading side says why
                await call.done_writing()
            except Exception:
                call.cancel()
                raise

        own, task = ServersOwn(call), asyncio.create_task(upload())
        try:
            yield own
        except AdapterError:
            if task.done() and not task.cancelled() and (cause := task.exception()):
                raise cause from None
            raise
        finally:
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                task.exception()  # retrieved, so that nobody warns about it
            call.cancel()

    def _raise_if_closed(self) -> None:
        """A call cancelled by closing the channel or by a failed upload, and not by its caller's task."""
        task = asyncio.current_task()
        if task is not None and not task.cancelling():
            raise ConnectionLost(f"the connection to {_target(self._address)} was closed") from None


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
        if bdp_probe and lookahead_bytes is not None:
            raise ValueError("lookahead_bytes needs bdp_probe=false")
        self.codec = codec
        self.max_message_bytes = max_message_bytes
        self._wire = Wire(codec, self.limit_bytes())
        self._both_ends: list[tuple[str, Any]] = [
            ("grpc.max_send_message_length", self.limit_bytes()),
            ("grpc.max_receive_message_length", self.limit_bytes()),
            ("grpc.enable_http_proxy", 0),  # http_proxy and its relatives apply to loopback otherwise
        ]
        self._client_only: list[tuple[str, Any]] = [
            ("grpc.use_local_subchannel_pool", 1),  # else equal channels share one TCP connection
            ("grpc.enable_retries", 0),  # a lost connection is an error here, not a second try
            ("grpc.http2.bdp_probe", int(bdp_probe)),
        ]
        if lookahead_bytes is not None:
            self._client_only.append(("grpc.http2.lookahead_bytes", lookahead_bytes))

    @asynccontextmanager
    async def serve(self, peer: Peer, address: Address) -> AsyncIterator[Served]:
        """Raises AddressInUse."""
        _check_free(address)
        server = aio.server(options=[*self._both_ends, ("grpc.so_reuseport", 0)])
        handlers: dict[str, dict[str, Any]] = {}
        for method in METHODS.values():
            rpcs = handlers.setdefault(service_name(method), {})
            rpcs[rpc_name(method)] = Endpoint(peer, method, self._wire).handler()
        server.add_generic_rpc_handlers(
            tuple(grpc.method_handlers_generic_handler(service, rpcs) for service, rpcs in handlers.items())
        )
        try:
            port = server.add_insecure_port(_target(address))
        except RuntimeError as exc:
            raise AddressInUse(address) from exc
        await server.start()
        try:
            yield _Server(Address(address.host, port))
        finally:
            await asyncio.wait([asyncio.ensure_future(server.stop(GRACE_S))], timeout=STOP_S)

    @asynccontextmanager
    async def connect(self, address: Address, credit: int | None = None) -> AsyncIterator[Peer]:
        """One TCP connection, ready for calls; `credit` means nothing here. Raises ConnectionLost."""
        channel = aio.insecure_channel(_target(address), options=[*self._both_ends, *self._client_only])
        try:
            state = channel.get_state(try_to_connect=True)
            while state is not State.READY:
                if state is State.TRANSIENT_FAILURE:
                    raise ConnectionLost(f"nobody listens at {address.host} port {address.port}")
                await channel.wait_for_state_change(state)
                state = channel.get_state(try_to_connect=True)
            yield _Client(channel, self._wire, address)
        finally:
            await channel.close(None)

    def hand_written(self) -> type[HandWritten]:
        from adapters.grpc_bare import Bare

        return Bare

    def wire_bytes(self, payload_bytes: int) -> int:
        """One DATA frame: its header (9), gRPC's prefix (5) and the payload."""
        return payload_bytes + 14

    def limit_bytes(self) -> int:
        """`max_message_bytes`, at most what a channel argument holds."""
        return min(self.max_message_bytes, INT_MAX)


def _check_free(address: Address) -> None:
    """Raises AddressInUse. grpc tells the reason for a failed bind only to its log on stderr."""
    with socket.socket(socket.AF_INET6 if ":" in address.host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError as exc:
            if exc.errno == errno.EADDRINUSE:
                raise AddressInUse(address) from exc
            raise
