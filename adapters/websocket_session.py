"""The server's end of one WebSocket connection: a reader that answers commands, and the stream it may have started.

A stream runs in a task of its own, while the reader goes on listening for STOP, MORE and the closing of the
connection. A unary call is answered by the reader itself: commands that follow it wait their turn, and it runs to
its end even when its client has left.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from adapters.api import CallFailed, Message, Peer, Shape
from adapters.websocket_grammar import BUSY, STOP, UNKNOWN, Limited, Spelling, ended, spell_error

NO_CREDIT = "ERR no credited stream"
UPLOADS_MAX = 16  # messages of an upload that wait for the service


class Session:
    """Serves `peer` to one connection. `spellings`: command word -> method."""

    def __init__(self, ws: ServerConnection, peer: Peer, messages: Limited, spellings: dict[str, Spelling]) -> None:
        self.ws = ws
        self._peer, self._messages, self._spellings = peer, messages, spellings
        self._answering = False  # a unary call runs
        self._stream: asyncio.Task[None] | None = None
        self._spelling: Spelling | None = None  # of the running stream
        self._stopped = False  # the client ended the running stream
        self._uploads: asyncio.Queue[str | bytes] = asyncio.Queue(UPLOADS_MAX)
        self._credited = False  # the last command was a credited stream, or may have been meant as one
        self._leftovers = False  # items of an upload that ended before its client did may still arrive

    @property
    def idle(self) -> bool:
        """Whether no call runs."""
        return self._stream is None and not self._answering

    async def run(self) -> None:
        """Until the connection is closed; a stream that runs then is ended first.

        A unary call is answered right here: each function more would be paid for in every call's latency.
        """
        recv, send, unary, encode = self.ws.recv, self.ws.send, self._peer.unary, self._messages.codec.encode
        limit, known = self._messages.limit, self._spellings.get
        try:
            while True:
                frame = await recv()
                if self._stream is not None:
                    await self._listen(self._stream, frame)
                    continue
                words = frame.split() if frame.__class__ is str else []
                spelling = known(words[0]) if words else None
                if spelling is None:
                    await self._unknown(words)
                    continue
                self._leftovers, self._credited, self._answering = False, spelling.credit, True
                try:
                    request = await self._body(spelling, words) if spelling.framed else spelling.request(words)
                    if not spelling.unary:
                        await self._start(spelling, request)
                    else:
                        data = encode(await unary(spelling.method, request))
                        if len(data) > limit:
                            raise self._messages.too_large(data)
                        await send(data, text=spelling.reply_text)
                except ConnectionClosed:
                    raise
                except Exception as exc:
                    await send(spell_error(exc))
                self._answering = False
        except ConnectionClosed:
            pass
        finally:
            if self._stream is not None:
                self._stopped = False
                self._stream.cancel()
                await asyncio.wait([self._stream])

    async def _unknown(self, words: list[str]) -> None:
        # A STOP, MORE or END may have crossed the end of the stream that it was meant for.
        if self._leftovers or words[:1] in (["STOP"], ["END"]):
            return
        if words[:1] != ["MORE"]:
            self._credited = True
            await self.ws.send(UNKNOWN)
        elif not self._credited:
            await self.ws.send(NO_CREDIT)

    async def _start(self, spelling: Spelling, request: Message) -> None:
        self._stopped, self._spelling, self._uploads = False, spelling, asyncio.Queue(UPLOADS_MAX)
        self._stream = asyncio.create_task(self._run(spelling, request, self._uploads))
        await asyncio.sleep(0)  # let it start: a STOP right behind would else cancel it unheard

    async def _body(self, spelling: Spelling, words: list[str]) -> Message:
        body = None if len(words) > 1 else await self.ws.recv()
        if body is None or isinstance(body, str) is not spelling.request_text:
            raise CallFailed("invalid_argument", spelling.usage)
        return self._messages.decode(spelling.method.request, body.encode() if isinstance(body, str) else body)

    async def _listen(self, stream: asyncio.Task[None], frame: str | bytes) -> None:
        """What the client says while a stream runs."""
        assert self._spelling is not None
        word = frame.partition(" ")[0] if isinstance(frame, str) else ""
        if frame == STOP:
            if not self._stopped:
                self._stopped = True
                stream.cancel()
        elif self._spelling.uploads and (not self._spelling.credit or word in ("MORE", "END")):
            await self._uploads.put(frame)
        elif word not in ("MORE", "END"):
            await self.ws.send(BUSY)

    async def _run(self, spelling: Spelling, request: Message, uploads: asyncio.Queue[str | bytes]) -> None:
        """One streaming call, from its first item to its last word."""
        method, send, encode = spelling.method, self.ws.send, self._messages.codec.encode
        limit, text, sent = self._messages.limit, spelling.reply_text, 0
        last: str | bytes
        try:
            async with aclosing(self._requests(spelling, request, uploads)) as requests:
                if method.shape is Shape.CLIENT_STREAM:
                    last = self._messages.encode(await self._peer.client_stream(method, requests))
                else:
                    if method.shape is Shape.SERVER_STREAM:
                        items = self._peer.server_stream(method, request)
                    else:
                        items = self._peer.bidi_stream(method, requests)
                    async with aclosing(items):
                        async for item in items:
                            data = encode(item)
                            if len(data) > limit:
                                raise self._messages.too_large(data)
                            sent += 1  # before send: stopping the wait for room does not take the frame back
                            await send(data, text=text)
                    last = f"END {sent}"
        except asyncio.CancelledError:
            if not self._stopped:
                raise
            last = f"END {sent}"
        except ConnectionClosed:
            return
        except Exception as exc:
            last = spell_error(exc)
        finally:
            # Before the last word: once the client has read it, it may say the next command.
            self._stream, self._spelling = None, None
            self._leftovers = spelling.uploads and not spelling.credit
            while not uploads.empty():  # also frees a reader that waits for room
                uploads.get_nowait()
        with suppress(ConnectionClosed):
            await send(last, text=text if isinstance(last, bytes) else None)

    async def _requests(
        self, spelling: Spelling, first: Message, uploads: asyncio.Queue[str | bytes]
    ) -> AsyncGenerator[Message, None]:
        """The messages of an upload, as the service pulls them."""
        decode, count = self._messages.decode, 0
        while True:
            frame = await uploads.get()
            if isinstance(frame, str) and frame.partition(" ")[0] == "END":
                if not spelling.credit:
                    ended(frame, count)
                return
            if spelling.credit:
                yield spelling.granted(first.symbol, frame)
                continue
            if isinstance(frame, str) is not spelling.request_text:
                raise CallFailed("invalid_argument", spelling.usage)
            count += 1
            yield decode(spelling.method.request, frame.encode() if isinstance(frame, str) else frame)
