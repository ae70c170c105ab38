"""The client's end of one WebSocket connection: it carries one call at a time, and is read only when asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode

from adapters.api import (
    AdapterError,
    CallFailed,
    ConnectionLost,
    Message,
    Method,
    Peer,
    Shape,
    Unsupported,
)
from adapters.websocket_grammar import CONTROL, STOP, UNKNOWN, Limited, Spelling, ended, error

YIELD_EVERY = 64
STOP_S = 1.0  # how long a client waits for the answer to STOP before it drops the connection


class Client(Peer):
    """`messages`: the codec and the limit. Spellings are made as methods are first called."""

    def __init__(self, ws: ClientConnection, messages: Limited) -> None:
        self._ws, self._messages, self._decode = ws, messages, messages.decode
        self._spellings: dict[str, Spelling] = {}
        self._busy = False
        self._lost = ""  # why nothing more comes over this connection

    @property
    def idle(self) -> bool:
        """Whether no call runs and the connection is not known to be lost."""
        return not self._busy and not self._lost

    def held(self) -> int:
        return len(self._ws.recv_messages.frames)

    def _spell(self, method: Method) -> Spelling:
        return self._spellings.setdefault(method.name, Spelling(method, self._messages.codec))

    def _cannot(self) -> AdapterError:
        """Why no call can begin now."""
        return (
            ConnectionLost(self._lost)
            if self._lost
            else CallFailed("busy", "this connection carries one call at a time")
        )

    async def unary(self, method: Method, request: Message) -> Message:
        ws, spelling = self._ws, self._spellings.get(method.name) or self._spell(method)
        command, text = spelling.command(request), spelling.reply_text
        body = self._messages.encode(request) if spelling.framed else None
        if self._busy or self._lost:
            raise self._cannot()
        self._busy = True
        try:
            await ws.send(command)
            if body is not None:
                await ws.send(body, text=spelling.request_text)
            data: Any = await ws.recv(False if text else None)
        except ConnectionClosed as exc:
            raise self._closed(exc) from exc
        except asyncio.CancelledError:
            self.abort("a call was abandoned")  # its answer would be taken for the next call's
            raise
        finally:
            self._busy = False
        if (data[:1] == b"E" and data[:4] in CONTROL) if text else data.__class__ is str:
            raise self._refused(spelling, data.decode(errors="replace") if text else data)
        return self._decode(method.reply, data)

    def server_stream(self, method: Method, request: Message) -> AsyncGenerator[Message, None]:
        return self._items(self._spellings.get(method.name) or self._spell(method), request)

    async def client_stream(self, method: Method, requests: AsyncIterable[Message]) -> Message:
        async with aclosing(self.bidi_stream(method, requests)) as replies:
            async for reply in replies:
                return reply
        raise CallFailed("no_reply", f"{method.name} ended without a reply")

    async def bidi_stream(self, method: Method, requests: AsyncIterable[Message]) -> AsyncGenerator[Message, None]:
        spelling, source, first = self._spellings.get(method.name) or self._spell(method), aiter(requests), None
        if spelling.credit:  # the command takes its symbol from the first credit
            first = await anext(source, None)
            if first is None:
                return
        items = self._items(spelling, first)
        # The upload is a task, so it starts when the command has been written.
        async with self._uploading(spelling, source, first), aclosing(items):
            async for item in items:
                yield item

    async def _items(self, spelling: Spelling, request: Message) -> AsyncGenerator[Message, None]:
        """Say the command (and the request's frame), then yield what arrives up to END."""
        ws, method, decode = self._ws, spelling.method, self._messages.decode
        recv, reply, single = ws.recv, method.reply, method.shape is Shape.CLIENT_STREAM
        text, count, over = spelling.reply_text, 0, False
        raw = False if text else None  # False: text frames as bytes, which is what codecs take
        command = spelling.command(request)
        body = self._messages.encode(request) if spelling.framed else None
        data: Any
        if self._busy or self._lost:
            raise self._cannot()
        self._busy = True
        try:
            await ws.send(command)
            if body is not None:
                await ws.send(body, text=spelling.request_text)
            while True:
                data = await recv(raw)
                if (data[:1] == b"E" and data[:4] in CONTROL) if text else isinstance(data, str):
                    break
                count += 1
                if single:
                    over = True
                yield decode(reply, data)
            over = True
            frame = data.decode(errors="replace") if text else data
            if frame.startswith("ERR "):
                raise self._refused(spelling, frame)
            ended(frame, count)
        except ConnectionClosed as exc:
            over = True
            raise self._closed(exc) from exc
        finally:
            if not over:
                await self._settle(raw, single)
            self._busy = False

    async def _settle(self, raw: bool | None, single: bool) -> None:
        """Stop the running call and read up to its end, so that the connection can carry the next one."""
        data: Any = b""
        try:
            async with asyncio.timeout(STOP_S):
                await self._ws.send(STOP)
                while not (isinstance(data, str) if raw is None else data[:4] in CONTROL):
                    data = await self._ws.recv(raw)
                    if single:
                        return  # a reply that crossed our STOP is the end as well
        except (TimeoutError, ConnectionClosed):
            self.abort("a stream did not stop")
        except asyncio.CancelledError:
            self.abort("a call was abandoned")
            raise

    @asynccontextmanager
    async def _uploading(
        self, spelling: Spelling, source: AsyncIterable[Message], first: Message
    ) -> AsyncIterator[None]:
        """Send `source` while the body runs. What the source or the codec raises stops the call, and wins."""
        send = self._ws.send

        async def upload() -> None:
            count = 0
            try:
                if first is not None and first.n:
                    await send(f"MORE {first.n}")
                async for request in source:
                    if not count % YIELD_EVERY:
                        await asyncio.sleep(0)  # sending waits for nobody; the replies must be read as well
                    if not spelling.credit:
                        await send(self._messages.encode(request), text=spelling.request_text)
                    elif request.n:
                        await send(f"MORE {request.n}")
                    count += 1
                await send(f"END {count}")
            except ConnectionClosed:
                pass  # the reading side says so
            except Exception:
                with suppress(ConnectionClosed):
                    await send(STOP)
                raise

        task = asyncio.create_task(upload())
        try:
            yield
            if cause := _failure(task):
                raise cause
        except AdapterError:
            if cause := _failure(task):
                raise cause from None
            raise
        finally:
            task.cancel()
            await asyncio.wait([task])
            _failure(task)  # retrieved, so that nobody warns about it

    def _refused(self, spelling: Spelling, frame: str) -> AdapterError:
        if frame == UNKNOWN and (spelling.uploads or spelling.framed):
            self.abort(f"the server does not know {spelling.word} and takes what follows it for commands")
        return error(frame)

    def _closed(self, exc: ConnectionClosed) -> AdapterError:
        self._lost = self._lost or f"the connection was closed: {exc}"
        for close in (exc.rcvd, exc.sent):
            if close is not None and close.code == CloseCode.MESSAGE_TOO_BIG:
                return Unsupported(close.reason)  # names the size and the limit
        return ConnectionLost(self._lost)

    def abort(self, why: str) -> None:
        """Drop the connection at once; later calls raise ConnectionLost."""
        self._lost = self._lost or f"the connection was dropped: {why}"
        self._ws.transport.abort()


def _failure(task: asyncio.Task[None]) -> BaseException | None:
    return task.exception() if task.done() and not task.cancelled() else None
