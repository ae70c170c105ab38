r"""How many messages share one HTTP body: each is one item, and a server writes each as one chunk.

    Lines    text codecs: one encoded message, which holds no line feed of its own, and a line feed. An error in
             mid-stream is the last line: {"error":"kind: message"}. application/x-ndjson
    Frames   binary codecs, and opaque bodies under any codec: the length (4 bytes, big endian) and the message. An
             error in mid-stream is the last frame: the length with its highest bit set, then UTF-8 "kind: message".
             application/x-frames; of="<media type of one message>"

Both are transferred in chunks (Transfer-Encoding: chunked), whose last one says that nothing was cut off.
"""

from __future__ import annotations

import json
import struct
from abc import ABC, abstractmethod
from collections import deque

from adapters.api import AdapterError, CallFailed, Codec
from adapters.http_status import ERROR_MAX, error, too_large
from adapters.messages import Body

Inbox = deque[bytes | AdapterError]  # encoded messages, and last perhaps why there are no more

LENGTH = struct.Struct(">I")
FAILED = 1 << 31  # in the length of a frame that holds an error
FRAME_MAX = FAILED - 1
_ERROR = b'{"error":'  # no message has a first field of this name


class Reader(ABC):
    """Cuts one body into its items. Not to be fed any more once it has put an error into the inbox."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._error_limit = max(limit, ERROR_MAX)
        self._partial = bytearray()

    @abstractmethod
    def feed(self, data: bytes, inbox: Inbox) -> None:
        """Put what `data` completes into `inbox`. An item over the limit becomes an Unsupported there."""

    @abstractmethod
    def finish(self, inbox: Inbox) -> None:
        """The body is over. If that came too early, an error goes into `inbox`."""


class Framing(ABC):
    """One way to write a stream of items. `headers`: what says so."""

    headers: list[tuple[bytes, bytes]]

    @abstractmethod
    def item(self, data: bytes) -> bytes:
        """One encoded message as an item."""

    @abstractmethod
    def error(self, text: str) -> bytes:
        """The last item of a stream that failed."""

    def end(self, count: int) -> bytes:
        """What follows the last of `count` items."""
        return b""

    @abstractmethod
    def reader(self, limit: int) -> Reader:
        """What reads it. `limit`: bytes of one message."""


class _LineReader(Reader):
    def feed(self, data: bytes, inbox: Inbox) -> None:
        end = data.find(b"\n")
        if end == len(data) - 1 and not self._partial:
            self._line(data[:-1], inbox)  # a chunk is a line, unless reading cut it
            return
        start = 0
        while end >= 0:
            self._partial += data[start:end]
            line = bytes(self._partial)
            self._partial.clear()
            self._line(line, inbox)
            start = end + 1
            end = data.find(b"\n", start)
        self._partial += data[start:]
        if len(self._partial) > self._limit:
            failed = self._partial.startswith(_ERROR)
            if not failed or len(self._partial) > self._error_limit:
                inbox.append(too_large(len(self._partial), self._limit))

    def _line(self, line: bytes, inbox: Inbox) -> None:
        if line.startswith(_ERROR):
            inbox.append(error(_error_of(line)))
        elif len(line) > self._limit:
            inbox.append(too_large(len(line), self._limit))
        elif line:
            inbox.append(line)

    def finish(self, inbox: Inbox) -> None:
        self._line(bytes(self._partial), inbox)  # who types one may have left out the last line feed


def _error_of(line: bytes) -> str:
    try:
        return str(json.loads(line)["error"])
    except ValueError:
        return line.decode("utf-8", "replace")


class Lines(Framing):
    """One message a line."""

    headers = [(b"content-type", b"application/x-ndjson")]  # noqa: RUF012

    def item(self, data: bytes) -> bytes:
        return data + b"\n"

    def error(self, text: str) -> bytes:
        return _ERROR + json.dumps(text).encode() + b"}\n"

    def reader(self, limit: int) -> Reader:
        return _LineReader(limit)


class _FrameReader(Reader):
    def feed(self, data: bytes, inbox: Inbox) -> None:
        if self._partial:
            self._partial += data
            if len(self._partial) < self._wanted():
                self._check(inbox)
                return
            data = bytes(self._partial)
            self._partial.clear()
        start, size = 0, len(data)
        while size - start >= 4:
            (length,) = LENGTH.unpack_from(data, start)
            end = start + 4 + (length & FRAME_MAX)
            if end > size:
                break
            if length > self._limit:
                inbox.append(self._refusal(length, data[start + 4 : end]))
                return
            inbox.append(data[start + 4 : end])
            start = end
        if start < size:
            self._partial += data[start:]
            self._check(inbox)

    def _wanted(self) -> int:
        """Bytes that make the partial frame whole."""
        return 4 + (LENGTH.unpack_from(self._partial)[0] & FRAME_MAX) if len(self._partial) >= 4 else 4

    def _check(self, inbox: Inbox) -> None:
        """A frame that announces too much is not waited for."""
        if len(self._partial) >= 4:
            (length,) = LENGTH.unpack_from(self._partial)
            if length & FRAME_MAX > (self._error_limit if length & FAILED else self._limit):
                inbox.append(too_large(length & FRAME_MAX, self._limit))

    def _refusal(self, length: int, payload: bytes) -> AdapterError:
        if length & FAILED:
            return error(payload.decode("utf-8", "replace"))
        return too_large(length, self._limit)

    def finish(self, inbox: Inbox) -> None:
        if self._partial:
            inbox.append(CallFailed("data_loss", f"the last item ends after {len(self._partial):,} bytes"))


class Frames(Framing):
    """A length before each message. `mime`: of one message."""

    def __init__(self, mime: str) -> None:
        self.headers = [(b"content-type", f'application/x-frames; of="{mime}"'.encode())]

    def item(self, data: bytes) -> bytes:
        return LENGTH.pack(len(data)) + data

    def error(self, text: str) -> bytes:
        payload = text.encode("utf-8", "replace")
        return LENGTH.pack(len(payload) | FAILED) + payload

    def reader(self, limit: int) -> Reader:
        return _FrameReader(limit)


def framing(codec: Codec, kind: type) -> Framing:
    """How a stream of `kind` is written with this codec."""
    return Lines() if codec.text and kind is not Body else Frames(mime(codec, kind))


def mime(codec: Codec, kind: type) -> str:
    """The media type of one encoded `kind`."""
    return "application/octet-stream" if kind is Body else codec.mime


def chunk(data: bytes) -> bytes:
    """`data`, which is not empty, as one chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"


def chunk_bytes(size: int) -> int:
    """Length of a chunk that holds `size` bytes."""
    return len(f"{size:x}") + 4 + size
