"""The client's end of gRPC, on grpc.aio, whichever server answers; and the channel arguments."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import grpc.aio

from adapters.api import AdapterError, Address, ConnectionLost, Message, Method, Peer, Shape
from adapters.grpc_paths import rpc_name, service_name, target
from adapters.grpc_status import Code, ServersOwn, Wire, error, told

aio: Any = grpc.aio  # the library ships no types
State: Any = grpc.ChannelConnectivity
INT_MAX = 2**31 - 1  # channel arguments are C ints


class _Client(Peer):
    """One channel with a subchannel of its own: one TCP connection, never replaced by another behind our back."""

    def __init__(self, channel: Any, wire: Wire, address: Address) -> None:
        self._channel, self._wire, self._address = channel, wire, address
        self._calls: dict[str, Any] = {}

    def _callable(self, method: Method) -> Any:
        if self._channel.get_state() is not State.READY:
            # grpc would connect again, to whoever listens there now.
            raise ConnectionLost(f"the connection to {target(self._address)} was closed")
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

    def server_stream(self, method: Method, request: Message) -> AsyncGenerator[Message, None]:
        # Not a generator around _items: each layer is paid for with every message.
        return self._items(method, lambda: self._callable(method)(self._wire.encode(request)))

    async def client_stream(self, method: Method, requests: AsyncIterable[Message]) -> Message:
        call = self._callable(method)()
        async with self._uploading(call, requests) as own:
            data = await self._reply(call, own)
        return self._wire.decode(method.reply, data)

    async def bidi_stream(self, method: Method, requests: AsyncIterable[Message]) -> AsyncGenerator[Message, None]:
        call = self._callable(method)()
        async with (
            self._uploading(call, requests) as own,
            aclosing(self._items(method, lambda: call, own)) as items,
        ):
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
        self, method: Method, begin: Callable[[], Any], own: ServersOwn | None = None
    ) -> AsyncGenerator[Message, None]:
        """What arrives for the call that `begin` starts when the first item is asked for."""
        decode, reply, call = self._wire.decode, method.reply, begin()
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
            raise ConnectionLost(f"the connection to {target(self._address)} was closed") from None


def both_ends(limit: int) -> list[tuple[str, Any]]:
    """Channel arguments of client and server. `limit`: bytes of one message."""
    return [
        ("grpc.max_send_message_length", limit),
        ("grpc.max_receive_message_length", limit),
        ("grpc.enable_http_proxy", 0),  # http_proxy and its relatives apply to loopback otherwise
    ]


def client_only(bdp_probe: bool, lookahead_bytes: int | None) -> list[tuple[str, Any]]:
    """Channel arguments of the client alone. ValueError when a window is asked for that the probe would undo."""
    if bdp_probe and lookahead_bytes is not None:
        raise ValueError("lookahead_bytes needs bdp_probe=false")
    arguments: list[tuple[str, Any]] = [
        ("grpc.use_local_subchannel_pool", 1),  # else equal channels share one TCP connection
        ("grpc.enable_retries", 0),  # a lost connection is an error here, not a second try
        ("grpc.http2.bdp_probe", int(bdp_probe)),
    ]
    if lookahead_bytes is not None:
        arguments.append(("grpc.http2.lookahead_bytes", lookahead_bytes))
    return arguments


@asynccontextmanager
async def connected(address: Address, wire: Wire, arguments: list[tuple[str, Any]]) -> AsyncIterator[Peer]:
    """One TCP connection, ready for calls. Raises ConnectionLost when nobody listens."""
    channel = aio.insecure_channel(target(address), options=arguments)
    try:
        state = channel.get_state(try_to_connect=True)
        while state is not State.READY:
            if state is State.TRANSIENT_FAILURE:
                raise ConnectionLost(f"nobody listens at {address.host} port {address.port}")
            await channel.wait_for_state_change(state)
            state = channel.get_state(try_to_connect=True)
        yield _Client(channel, wire, address)
    finally:
        await channel.close(None)
