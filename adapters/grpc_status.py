"""Errors as gRPC statuses, there and back, and the limit of one message.

A kind that is the name of a status travels as that status; any other as the nearest one, with the kind in the
trailing metadata. UNAVAILABLE is what grpc itself says about a lost connection, UNIMPLEMENTED about an unknown
method, RESOURCE_EXHAUSTED (in words of its own) about a message over the limit.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from typing import Any

import grpc

from adapters.api import AdapterError, CallFailed, Codec, CodecError, ConnectionLost, Message, Unsupported

DETAILS_MAX = 500  # characters of an error's text; a status travels in headers, whose size is limited
KIND_KEY = "error-kind-bin"  # trailing metadata; "-bin" takes any bytes

MASK = "Internal error from Core"  # the text of the status that grpc.aio makes up when a write fails
HIDDEN_S = 1.0  # how long the server's status may take to follow it

Status = tuple[Any, str, tuple[tuple[str, Any], ...]]  # code, details, trailing metadata
Code: Any = grpc.StatusCode  # the library ships no types
_CODES = {code.name.lower(): code for code in Code if code not in (Code.OK, Code.UNAVAILABLE, Code.UNIMPLEMENTED)}
_NEAREST = {
    "codec": Code.INVALID_ARGUMENT,
    "unsupported": Code.RESOURCE_EXHAUSTED,
    "unavailable": Code.ABORTED,
    "unimplemented": Code.NOT_FOUND,
}
_TOO_LARGE = re.compile(r"message larger than max \((\d+) vs\. (\d+)\)")


class Wire:
    """The codec and the limit of one message, as both ends use them."""

    def __init__(self, codec: Codec, limit: int) -> None:
        self.decode = codec.decode
        self._encode, self._limit = codec.encode, limit

    def encode(self, message: Message) -> bytes:
        """Raises Unsupported over the limit."""
        data = self._encode(message)
        if len(data) > self._limit:
            raise _too_large(len(data), self._limit)
        return data


def status(exc: Exception) -> Status:
    """What a handler raised, as status code, details and trailing metadata."""
    if isinstance(exc, CallFailed):
        kind, text = exc.kind, str(exc).removeprefix(exc.kind).removeprefix(": ")
    elif isinstance(exc, Unsupported):
        kind, text = "unsupported", str(exc)
    elif isinstance(exc, CodecError):
        kind, text = "codec", str(exc)
    else:
        kind, text = "internal", f"{type(exc).__name__}: {exc}"
    text = text[:DETAILS_MAX]
    if kind in _CODES:
        return _CODES[kind], text, ()
    return _NEAREST.get(kind, Code.UNKNOWN), text, ((KIND_KEY, kind.encode()),)


def told(exc: Any) -> Status:
    """What an AioRpcError says."""
    return exc.code(), exc.details() or "", tuple(exc.trailing_metadata() or ())


def error(status: Status) -> AdapterError:
    """What a status other than OK means."""
    code, details, trailing = status
    if code is Code.UNAVAILABLE:
        return ConnectionLost(f"the connection was lost: {details}")
    if found := _TOO_LARGE.search(details):
        return _too_large(int(found[1]), int(found[2]))
    kind = "not_found" if code is Code.UNIMPLEMENTED else code.name.lower()
    for key, value in trailing:
        if key == KIND_KEY:
            kind = value.decode("utf-8", "replace")
    return Unsupported(details) if kind == "unsupported" else CallFailed(kind, details)


class ServersOwn:
    """The status that the server gave to a call with an upload.

    When the server ends such a call, a write that is under way fails, and grpc.aio puts a status of its own making
    in place of the server's, be it there already or yet to come (grpc/grpc#36066). Each is noted here as it is set.
    """

    def __init__(self, call: Any) -> None:
        self._noted: asyncio.Future[Status] = asyncio.get_running_loop().create_future()
        call.add_done_callback(self._note)

    def _note(self, call: Any) -> None:
        code, details, trailing = map(_at_once, (call.code(), call.details(), call.trailing_metadata()))
        if details != MASK and not self._noted.done():
            self._noted.set_result((code, details or "", tuple(trailing or ())))

    async def instead_of(self, exc: Any) -> Status:
        """What `exc` says, or the server's own status when that is hidden by grpc's."""
        if exc.details() == MASK:
            await asyncio.wait([self._noted], timeout=HIDDEN_S)
            if self._noted.done():
                return self._noted.result()
        return told(exc)


def _at_once(part: Coroutine[Any, Any, Any]) -> Any:
    """The value of a coroutine that need not wait: a part of a status that is known."""
    try:
        part.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("a call that is over has its status")


def _too_large(size: int, limit: int) -> Unsupported:
    return Unsupported(f"a message of {size:,} bytes is over the limit of {limit:,}")
