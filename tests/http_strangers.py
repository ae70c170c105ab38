"""The other end of HTTP without any part of ours: the standard library's client, and a server that only recites."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import NamedTuple

from adapters.api import Address

ANY_PORT = Address("127.0.0.1", 0)


class Reply(NamedTuple):
    status: int
    kind: str  # Content-Type
    body: bytes
    headers: dict[str, str]


async def fetch(
    address: Address,
    path: str,
    verb: str = "GET",
    body: bytes | Iterable[bytes] | None = None,
    headers: dict[str, str] | None = None,
) -> Reply:
    """One request by http.client; an iterable body is sent in chunks."""

    def exchange() -> Reply:
        connection = http.client.HTTPConnection(*address, timeout=10)
        try:
            connection.request(verb, path, body, headers or {})
            got = connection.getresponse()
            headers_got = {name.lower(): value for name, value in got.getheaders()}
            return Reply(got.status, headers_got.get("content-type", ""), got.read(), headers_got)
        finally:
            connection.close()

    return await asyncio.to_thread(exchange)


async def until(condition: Callable[[], object]) -> None:
    """Wait for `condition`, at most 10 s."""
    for _ in range(2_000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come to be within 10 s")


async def still(count: Callable[[], int]) -> int:
    """Wait until `count` no longer changes; returns it."""
    before = -1
    for _ in range(200):
        if (now := count()) == before:
            return now
        before = now
        await asyncio.sleep(0.05)
    raise AssertionError("it did not stand still within 10 s")


async def closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


@asynccontextmanager
async def reciting(*answers: bytes, step: int = 0, then_close: bool = False) -> AsyncIterator[Address]:
    """A server that gives these answers to the requests of a connection, `step` bytes at a time (0: all at once).
    Only the heads of requests count."""

    under_way = set()

    async def recite(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        under_way.add(asyncio.current_task())
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            for answer in answers:
                await reader.readuntil(b"\r\n\r\n")
                for start in range(0, len(answer), step or len(answer)):
                    writer.write(answer[start : start + (step or len(answer))])
                    await writer.drain()
                    await asyncio.sleep(0)
            if not then_close:
                await reader.read()
        await closed(writer)

    server = await asyncio.start_server(recite, *ANY_PORT)
    try:
        yield Address(*server.sockets[0].getsockname()[:2])
    finally:
        server.close()
        await asyncio.gather(*filter(None, under_way))


def chunked(kind: str, *chunks: bytes, end: bool = True) -> bytes:
    """A response in these chunks, cut off after them unless `end`."""
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    return head + b"".join(b"%x\r\n%b\r\n" % (len(c), c) for c in chunks) + (b"0\r\n\r\n" if end else b"")
