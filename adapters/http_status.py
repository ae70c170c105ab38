"""Errors as HTTP says them: a status, and the text "kind: message" as the body (or in a stream's last item)."""

from __future__ import annotations

from adapters.api import AdapterError, CallFailed, CodecError, Malformed, Unsupported

OK = 200
ERROR_MAX = 65_536  # bytes of an error's text that are waited for, whatever the limit of messages
_STATUS = {
    "not_found": 404,
    "method_not_allowed": 405,
    "invalid_argument": 400,
    "unimplemented": 501,
    "unavailable": 503,
}
INTERNAL = 500


def status_of(exc: Exception) -> int:
    """The status that answers what a handler raised. A reply over the limit is the server's fault, not a 413."""
    if isinstance(exc, RequestTooLarge):
        return 413
    if isinstance(exc, Malformed):
        return 400
    return _STATUS.get(exc.kind, INTERNAL) if isinstance(exc, CallFailed) else INTERNAL


def spell(exc: Exception) -> str:
    """ "kind: message" for what a handler raised."""
    if isinstance(exc, CallFailed):
        return str(exc)
    kind = "unsupported" if isinstance(exc, Unsupported) else "codec" if isinstance(exc, CodecError) else "internal"
    return f"{kind}: {exc}"


def error(text: str, otherwise: str = "failed") -> AdapterError:
    """The error that "kind: message" says; `otherwise`: the kind of a text that names none, a stranger's."""
    kind, colon, message = text.partition(": ")
    if not kind.isidentifier():
        return CallFailed(otherwise, text)
    return Unsupported(message) if kind == "unsupported" and colon else CallFailed(kind, message)


class RequestTooLarge(Unsupported):
    """What the client sent is over the server's limit."""


def too_large(size: int, limit: int) -> Unsupported:
    """A message of `size` bytes."""
    return Unsupported(f"a message of {size:,} bytes is over the limit of {limit:,}")
