r"""Server-sent events as items of a stream: the lines, whoever carries them.

    data: {"symbol":"AAPL", ...}     an item; a text codec's message has one data line per line of its own, and a
                                     binary one is base64 (so is an opaque body, under any codec)
    event: end                       the stream is over, and how many items it had: without this it was cut off
    data: 5

    event: error                     the stream failed
    data: kind: message

Each ends with an empty line. One space after the colon belongs to the format and every other one to the text, which
may be empty. What the format cannot carry is a carriage return in a text: it would arrive as a line feed.
"""

from __future__ import annotations

import base64
import binascii

from adapters.api import CallFailed, NotRepresentable
from adapters.http_items import Framing, Inbox, Reader
from adapters.http_status import error, too_large

_DATA, _END = b"data: ", b"\n\n"


class Events(Framing):
    """`text`: messages are valid text and travel as it is."""

    headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]  # noqa: RUF012

    def __init__(self, text: bool) -> None:
        self._text = text

    def item(self, data: bytes) -> bytes:
        """Raises NotRepresentable for a carriage return in a text."""
        return event(data if self._text else base64.b64encode(data))

    def error(self, text: str) -> bytes:
        return b"event: error\n" + event(text.replace("\r", " ").encode("utf-8", "replace"))

    def end(self, count: int) -> bytes:
        return b"event: end\n" + event(b"%d" % count)

    def reader(self, limit: int) -> Reader:
        return EventReader(limit, self._text)


def event(text: bytes) -> bytes:
    """The data lines of one event, and the empty line that ends it. Raises NotRepresentable."""
    if b"\r" in text:
        raise NotRepresentable("an event cannot carry a carriage return")
    if b"\n" in text:
        text = text.replace(b"\n", b"\ndata: ")
    return _DATA + text + _END


class EventReader(Reader):
    """Any server's events, in pieces cut anywhere; ours come one in a piece, unless reading cut them."""

    def __init__(self, limit: int, text: bool) -> None:
        super().__init__(limit)
        self._text = text
        self._kind = b""
        self._lines: list[bytes] = []  # of data, in the event that is being read
        self._size = 0
        self._count = 0
        self._over = False
        self._after_return = False  # the last piece ended with a carriage return: a line feed belongs to it

    def feed(self, data: bytes, inbox: Inbox) -> None:
        if not self._partial and not self._lines and not self._kind and data.startswith(_DATA):
            end = data.find(b"\n")
            if end == len(data) - 2 and data.endswith(_END) and b"\r" not in data:
                self._item(data[len(_DATA) : -2], inbox)
                return
        if self._after_return and data.startswith(b"\n"):
            data = data[1:]
        for line in data.splitlines(keepends=True):
            text = line.rstrip(b"\r\n")
            self._partial += text
            if len(text) < len(line):
                whole = bytes(self._partial)
                self._partial.clear()
                self._line(whole, inbox)
        self._after_return = data.endswith(b"\r")
        size = self._size + len(self._partial) - len(_DATA)  # at least so much text, whatever the partial line is
        if not self._text:
            size = size // 4 * 3
        most = self._error_limit if self._kind == b"error" else self._limit + 2  # two may be base64's padding
        if size > most:
            inbox.append(too_large(size, self._limit))

    def _line(self, line: bytes, inbox: Inbox) -> None:
        if not line:
            self._dispatch(inbox)
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._lines.append(value)
            self._size += len(value) + 1
        elif name == b"event":
            self._kind = value

    def _dispatch(self, inbox: Inbox) -> None:
        lines, kind = self._lines, self._kind
        self._lines, self._kind, self._size = [], b"", 0
        if not lines:
            return
        text = b"\n".join(lines)
        if kind in (b"", b"message"):
            self._item(text, inbox)
        elif kind == b"error":
            self._over = True
            inbox.append(error(text.decode("utf-8", "replace")))
        elif kind == b"end":
            self._over = True
            if text != b"%d" % self._count:
                said = text.decode("utf-8", "replace")
                inbox.append(CallFailed("data_loss", f"{self._count:,} items arrived, {said} were sent"))

    def _item(self, text: bytes, inbox: Inbox) -> None:
        self._count += 1
        if not self._text:
            try:
                text = binascii.a2b_base64(text, strict_mode=True)
            except binascii.Error as exc:
                inbox.append(CallFailed("codec", f"an event that is no base64: {exc}"))
                return
        inbox.append(text if len(text) <= self._limit else too_large(len(text), self._limit))

    def finish(self, inbox: Inbox) -> None:
        if not self._over:
            inbox.append(CallFailed("data_loss", f"the stream stopped after {self._count:,} items without an end"))
