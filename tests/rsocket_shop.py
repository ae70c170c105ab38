"""What the tests of RSocket share: a service that keeps count, both event loops, and frames as bytes."""

from __future__ import annotations

import asyncio
import gc
import inspect
import itertools
import struct
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import patch

import pytest
import uvloop

from adapters.api import Address, CallFailed, CodecError, Message, Method, Peer, Shape, Unsupported
from adapters.codecs import CODECS
from adapters.messages import METHODS, Body, Empty, Quote
from adapters.rsocket import RSocket
from adapters.rsocket_client import Client
from adapters.rsocket_server import Server

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}
ENGINES = ("stock", "coalescing")
ANY_PORT = Address("127.0.0.1", 0)
BOUND_S = 20
COLLECT = Method("collect", Shape.CLIENT_STREAM, Body, Body)
BODIES = Method("bodies", Shape.SERVER_STREAM, Body, Body)
MIRROR = Method("mirror", Shape.BIDI_STREAM, Body, Body)
PATIENT = Method("patient", Shape.UNARY, Empty, Empty)
MORE_METHODS = {method.name: method for method in (COLLECT, BODIES, MIRROR, PATIENT)}


def everywhere(test: Callable[..., Awaitable[None]]) -> Any:
    """A coroutine function as a test over each event loop and engine: bounded, and nothing may be left behind."""

    async def bounded(arguments: dict[str, Any]) -> None:
        lost: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: lost.append(context))
        async with asyncio.timeout(BOUND_S):
            await test(**arguments)
        gc.collect()
        await asyncio.sleep(0)
        assert lost == []
        assert asyncio.all_tasks() == {asyncio.current_task()}

    def run(loop: str, **arguments: Any) -> None:
        with patch.dict(METHODS, MORE_METHODS), asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
            runner.run(bounded(arguments))

    loop = inspect.Parameter("loop", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    run.__name__, run.__doc__ = test.__name__, test.__doc__
    signature = inspect.Signature([loop, *inspect.signature(test).parameters.values()])
    run.__signature__ = signature  # type: ignore[attr-defined]  # what pytest is to fill in
    return pytest.mark.parametrize("engine", ENGINES)(pytest.mark.parametrize("loop", LOOPS)(run))


def of(seq: int) -> Quote:
    return Quote("AAPL", seq, seq / 4, seq / 2, 7)


class Shop(Peer):
    """A service that counts what it makes at the moment it makes it, and notes how its calls ended."""

    def __init__(self) -> None:
        self.made = 0
        self.taken = 0
        self.closed = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def unary(self, method: Method, request: Message) -> Message:
        if method is PATIENT:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
        if method.name == "quote":
            return of(request.seq)
        raise_asked_for(request)
        return request

    async def client_stream(self, method: Method, requests: AsyncIterable[Message]) -> Message:
        bodies = []
        async for request in requests:
            raise_asked_for(request)
            bodies.append(request.data)
            self.taken += 1
        return Body(b"|".join(bodies))

    async def server_stream(self, method: Method, request: Message) -> AsyncGenerator[Message, None]:
        try:
            if method is BODIES:
                raise_asked_for(request)
                for part in request.data.split(b"|"):
                    self.made += 1
                    yield Body(part)
            else:
                for seq in itertools.count() if method.name == "quotes.unbounded" else range(request.count):
                    self.made += 1
                    yield of(seq)
        finally:
            self.closed.set()

    async def bidi_stream(self, method: Method, requests: AsyncIterable[Message]) -> AsyncGenerator[Message, None]:
        try:
            async for request in requests:
                self.taken += 1
                if method is MIRROR:
                    raise_asked_for(request)
                    if request.data == b"enough":
                        return
                    yield request
                else:
                    for _ in range(request.n):
                        self.made += 1
                        yield of(self.made - 1)
        finally:
            self.closed.set()


def raise_asked_for(request: Message) -> None:
    """Bodies that start with a "!" ask for an error."""
    if isinstance(request, Body) and request.data.startswith(b"!"):
        raise ERRORS[request.data]


ERRORS: dict[bytes, BaseException] = {
    b"!failed": CallFailed("invalid_argument", "no: not this one"),
    b"!bare": CallFailed("busy", ""),
    b"!codec": CodecError("a bad message"),
    b"!large": Unsupported("a message of 9 bytes is over the limit of 8"),
    b"!bug": ZeroDivisionError("division by zero"),
    b"!surrogate": ValueError("\ud800"),
    b"!cancelled": asyncio.CancelledError(),
}


def adapter(engine: str = "stock", limit: int = 64 * 2**20, codec: str = "cbor", **knobs: Any) -> RSocket:
    return RSocket(codec=CODECS[codec](), max_message_bytes=limit, engine=engine, **knobs)  # type: ignore[arg-type]


@asynccontextmanager
async def serving(
    served: RSocket, credit: int | None = None, shop: Shop | None = None
) -> AsyncIterator[tuple[Client, Shop, Server]]:
    """A client's peer, the service, and the running server."""
    shop = shop or Shop()
    async with served.serve(shop, ANY_PORT) as server, served.connect(server.address, credit) as peer:
        assert isinstance(peer, Client)
        assert isinstance(server, Server)
        yield peer, shop, server


async def each(*requests: Message) -> AsyncGenerator[Message, None]:
    for request in requests:
        yield request


async def bodies(*data: bytes) -> AsyncGenerator[Message, None]:
    for part in data:
        yield Body(part)


async def every(items: AsyncGenerator[Message, None]) -> list[Message]:
    return [item async for item in items]


async def watched(count: Callable[[], int]) -> set[int]:
    """Every value of `count` while the loop has ample time to change it."""
    seen = set()
    for _ in range(20):
        seen.add(count())
        await asyncio.sleep(0.003)
    return seen


async def until(true: Callable[[], bool]) -> None:
    while not true():  # noqa: ASYNC110 - what is waited for is the library's, and has no event
        await asyncio.sleep(0.002)


def nothing_open(peer: Client, server: Server) -> bool:
    """Whether the library knows of no stream, at either end."""
    ends = [peer._wire.socket, *(wire.socket for wire in server.wires)]
    return [len(end._stream_control._streams) for end in ends] == [0, 0]


def frame(stream: int, kind: int, flags: int, rest: bytes) -> bytes:
    body = struct.pack(">IH", stream, kind << 10 | flags) + rest
    return len(body).to_bytes(3, "big") + body


def setup() -> bytes:
    metadata, data = b"message/x.rsocket.composite-metadata.v0", b"application/cbor"
    types = b"".join(bytes([len(mime)]) + mime for mime in (metadata, data))
    return frame(0, 1, 0, struct.pack(">HHII", 1, 0, 10_000, 600_000) + types)


def routed(name: str) -> bytes:
    tag = bytes([len(name)]) + name.encode()
    metadata = b"\xfe" + len(tag).to_bytes(3, "big") + tag
    return len(metadata).to_bytes(3, "big") + metadata


def request_stream(name: str, n: int, data: bytes = b"") -> bytes:
    return frame(1, 6, 0x100, struct.pack(">I", n) + routed(name) + data)
