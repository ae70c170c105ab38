"""Hand-written loops, one per protocol: what somebody would write who wanted just these two numbers.

`python -m tests.bare PROTOCOL server|client rr|stream COUNT WARMUP CPU [PORT]`. Same library, event loop, codec and
message as bakeoff's own adapters, the same check of every answer, and nothing else of bakeoff: no seam, no service.
Prints one JSON line.
tests.overhead runs them against bakeoff, interleaved.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import struct
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import uvloop

from adapters.codecs import CODECS
from adapters.messages import Quote, QuoteRequest, StreamRequest
from runner.host import pin
from runner.quotes import quote

CODEC = {"tcp": "protobuf", "grpc": "protobuf", "rsocket": "cbor", "websocket": "json"}
HOST = "127.0.0.1"
now = time.perf_counter_ns
Ready = Callable[[int], None]


# --- websocket ---


async def websocket_server(codec: Any, ready: Ready) -> None:
    from websockets.asyncio.server import serve
    from websockets.exceptions import ConnectionClosed

    async def handle(ws: Any) -> None:
        while True:
            try:
                command = await ws.recv()
            except ConnectionClosed:
                return
            word, symbol, number, *_ = command.split()
            if word == "QUOTE":
                await ws.send(codec.encode(quote(symbol, int(number))).decode())
                continue
            for seq in range(int(number)):
                if not seq % 64:
                    await asyncio.sleep(0)
                await ws.send(codec.encode(quote(symbol, seq)).decode())
            await ws.send(f"END {number}")

    async with serve(handle, HOST, 0, compression=None) as server:
        ready(server.sockets[0].getsockname()[1])
        await asyncio.Event().wait()


async def websocket_client(codec: Any, port: int) -> Any:
    from websockets.asyncio.client import connect

    ws = await connect(f"ws://{HOST}:{port}", compression=None, proxy=None, close_timeout=0.1)

    async def call(seq: int) -> None:
        await ws.send(f"QUOTE AAPL {seq}")
        check(codec.decode(Quote, (await ws.recv()).encode()), seq)

    async def stream(count: int) -> None:
        await ws.send(f"STREAM AAPL {count}")
        while not (item := await ws.recv()).startswith("END"):
            codec.decode(Quote, item.encode())

    return call, stream


# --- grpc ---


async def grpc_server(codec: Any, ready: Ready) -> None:
    import grpc

    async def one(request: QuoteRequest, context: Any) -> Quote:
        return quote(request.symbol, request.seq)

    async def many(request: StreamRequest, context: Any) -> None:
        for seq in range(request.count):
            await context.write(quote(request.symbol, seq))

    handlers = {
        "GetQuote": grpc.unary_unary_rpc_method_handler(one, lambda b: codec.decode(QuoteRequest, b), codec.encode),
        "StreamQuotes": grpc.unary_stream_rpc_method_handler(
            many, lambda b: codec.decode(StreamRequest, b), codec.encode
        ),
    }
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("QuoteService", handlers),))
    port = server.add_insecure_port(f"{HOST}:0")
    await server.start()
    ready(port)
    await asyncio.Event().wait()


async def grpc_client(codec: Any, port: int) -> Any:
    import grpc

    channel = grpc.aio.insecure_channel(f"{HOST}:{port}", options=[("grpc.enable_http_proxy", 0)])
    decode = lambda data: codec.decode(Quote, data)  # noqa: E731
    get = channel.unary_unary("/QuoteService/GetQuote", codec.encode, decode)
    many = channel.unary_stream("/QuoteService/StreamQuotes", codec.encode, decode)

    async def call(seq: int) -> None:
        check(await get(QuoteRequest("AAPL", seq)), seq)

    async def stream(count: int) -> None:
        async for _ in many(StreamRequest("AAPL", count)):
            pass

    return call, stream


# --- tcp ---

FRAME = struct.Struct(">IB")


class Frames(asyncio.Protocol):
    """Whole frames to `got`, in a deque-less minimum: a buffer and a callback."""

    def __init__(self, got: Callable[[int, bytes], None]) -> None:
        self.got, self.buffer = got, b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        data = self.buffer + data if self.buffer else data
        at = 0
        while len(data) - at >= 5:
            length, kind = FRAME.unpack_from(data, at)
            if len(data) - at < 4 + length:
                break
            self.got(kind, data[at + 5 : at + 4 + length])
            at += 4 + length
        self.buffer = data[at:]

    def send(self, kind: int, payload: bytes) -> None:
        self.transport.write(FRAME.pack(len(payload) + 1, kind) + payload)


async def tcp_server(codec: Any, ready: Ready) -> None:
    class Server(Frames):
        def __init__(self) -> None:
            super().__init__(self.serve)
            self.room = asyncio.Event()
            self.room.set()

        def pause_writing(self) -> None:
            self.room.clear()

        def resume_writing(self) -> None:
            self.room.set()

        def serve(self, kind: int, payload: bytes) -> None:
            if kind == 0:
                request = codec.decode(QuoteRequest, payload)
                self.send(0, codec.encode(quote(request.symbol, request.seq)))
            else:
                self.task = asyncio.create_task(self.stream(codec.decode(StreamRequest, payload)))

        async def stream(self, request: StreamRequest) -> None:
            for seq in range(request.count):
                if not seq % 64:
                    await asyncio.sleep(0)
                self.send(1, codec.encode(quote(request.symbol, seq)))
                if not self.room.is_set():
                    await self.room.wait()
            self.send(2, b"")

    server = await asyncio.get_running_loop().create_server(Server, HOST, 0)
    ready(server.sockets[0].getsockname()[1])
    await asyncio.Event().wait()


async def tcp_client(codec: Any, port: int) -> Any:
    waiter: list[asyncio.Future[Any]] = []
    loop = asyncio.get_running_loop()

    def got(kind: int, payload: bytes) -> None:
        if kind == 0:
            waiter[0].set_result(payload)
        elif kind == 1:
            codec.decode(Quote, payload)
        else:
            waiter[0].set_result(None)

    _, wire = await loop.create_connection(lambda: Frames(got), HOST, port)

    async def call(seq: int) -> None:
        waiter[:] = [loop.create_future()]
        wire.send(0, codec.encode(QuoteRequest("AAPL", seq)))
        check(codec.decode(Quote, await waiter[0]), seq)

    async def stream(count: int) -> None:
        waiter[:] = [loop.create_future()]
        wire.send(1, codec.encode(StreamRequest("AAPL", count)))
        await waiter[0]

    return call, stream


# --- rsocket ---


async def rsocket_server(codec: Any, ready: Ready) -> None:
    from reactivestreams.publisher import Publisher
    from reactivestreams.subscription import Subscription
    from rsocket.helpers import create_response
    from rsocket.payload import Payload
    from rsocket.routing.request_router import RequestRouter
    from rsocket.routing.routing_request_handler import RoutingRequestHandler
    from rsocket.rsocket_server import RSocketServer
    from rsocket.transports.tcp import TransportTCP

    class Quotes(Publisher, Subscription):  # type: ignore[misc]
        """Credit and one task, as the library's users write it."""

        def __init__(self, request: StreamRequest) -> None:
            self.wanted, self.credit, self.seq, self.task = request, 0, 0, None

        def subscribe(self, subscriber: Any) -> None:
            self.subscriber = subscriber
            subscriber.on_subscribe(self)

        def request(self, n: int) -> None:
            self.credit += n
            if self.task is None:
                self.task = asyncio.create_task(self.run())

        def cancel(self) -> None:
            if self.task is not None:
                self.task.cancel()

        async def run(self) -> None:
            count = self.wanted.count
            while self.credit and self.seq < count:
                self.credit -= 1
                data = codec.encode(quote(self.wanted.symbol, self.seq))
                self.seq += 1
                self.subscriber.on_next(Payload(data), is_complete=self.seq == count)
                if not self.seq % 64:
                    await asyncio.sleep(0)
            self.task = None

    router = RequestRouter()

    @router.response("quote")  # type: ignore[untyped-decorator]
    async def one(payload: Any) -> Any:
        request = codec.decode(QuoteRequest, payload.data)
        return create_response(codec.encode(quote(request.symbol, request.seq)))

    @router.stream("quotes")  # type: ignore[untyped-decorator]
    async def many(payload: Any) -> Any:
        return Quotes(codec.decode(StreamRequest, payload.data))

    sessions = []

    def accept(reader: Any, writer: Any) -> None:
        handler = lambda: RoutingRequestHandler(router)  # noqa: E731
        sessions.append(RSocketServer(TransportTCP(reader, writer), handler_factory=handler))

    server = await asyncio.start_server(accept, HOST, 0)
    ready(server.sockets[0].getsockname()[1])
    await asyncio.Event().wait()


async def rsocket_client(codec: Any, port: int) -> Any:
    from reactivestreams.subscriber import Subscriber
    from rsocket.extensions.helpers import composite, route
    from rsocket.extensions.mimetypes import WellKnownMimeTypes
    from rsocket.helpers import single_transport_provider
    from rsocket.payload import Payload
    from rsocket.rsocket_client import RSocketClient
    from rsocket.transports.tcp import TransportTCP

    transport = TransportTCP(*await asyncio.open_connection(HOST, port))
    client = RSocketClient(
        single_transport_provider(transport),
        metadata_encoding=WellKnownMimeTypes.MESSAGE_RSOCKET_COMPOSITE_METADATA,
        keep_alive_period=timedelta(seconds=10),
        max_lifetime_period=timedelta(minutes=10),
    )
    await client.connect()
    one, many = composite(route("quote")), composite(route("quotes"))

    class Reader(Subscriber):  # type: ignore[misc]
        def __init__(self) -> None:
            self.n, self.done = 0, asyncio.Event()

        def on_subscribe(self, subscription: Any) -> None:
            self.subscription = subscription

        def on_next(self, value: Any, is_complete: bool = False) -> None:
            codec.decode(Quote, value.data)
            self.n += 1
            if is_complete:
                self.done.set()
            elif not self.n % 500:
                self.subscription.request(500)

        def on_complete(self) -> None:
            self.done.set()

        def on_error(self, exception: Exception) -> None:
            raise exception

    async def call(seq: int) -> None:
        payload = await client.request_response(Payload(codec.encode(QuoteRequest("AAPL", seq)), one))
        check(codec.decode(Quote, payload.data), seq)

    async def stream(count: int) -> None:
        reader = Reader()
        payload = Payload(codec.encode(StreamRequest("AAPL", count)), many)
        client.request_stream(payload).initial_request_n(1000).subscribe(reader)
        await reader.done.wait()

    return call, stream


# --- both ends ---


def check(answer: Quote, seq: int) -> None:
    if answer != quote("AAPL", seq):
        raise SystemExit(f"wrong answer: {answer}")


def ready(port: int) -> None:
    gc.collect()
    gc.freeze()
    print(port, flush=True)


async def serve(protocol: str) -> None:
    await globals()[f"{protocol}_server"](CODECS[CODEC[protocol]](), ready)


async def measure(protocol: str, what: str, count: int, warmup: int, port: int) -> None:
    call, stream = await globals()[f"{protocol}_client"](CODECS[CODEC[protocol]](), port)
    if what == "rr":
        for i in range(warmup):
            await call(42 + i % 58)
        spent = []
        for i in range(count):
            started = now()
            await call(42 + i % 58)
            spent.append(now() - started)
        print(json.dumps({"p50_us": sorted(spent)[(count + 1) // 2 - 1] / 1000}), flush=True)
    else:
        await stream(warmup)
        started = now()
        await stream(count)
        print(json.dumps({"messages_per_s": count / (now() - started) * 1e9}), flush=True)


def main() -> None:
    protocol, side, what, count, warmup, cpu, *port = sys.argv[1:]
    pin([int(cpu)])
    gc.collect()
    gc.freeze()
    if side == "server":
        uvloop.run(serve(protocol))
    else:
        uvloop.run(measure(protocol, what, int(count), int(warmup), int(port[0])))
        os._exit(0)  # nothing to tidy: some libraries take longer to close than to measure


if __name__ == "__main__":
    main()
