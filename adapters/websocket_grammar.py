"""What is said over a WebSocket: a grammar that a person can type. Knows text, not connections.

    client                                         server
    QUOTE AAPL                                     one item frame
    STREAM AAPL 5 0                                five item frames, then END 5
    STOP (while a stream runs)                     END <items sent>
    CREDITED AAPL, then MORE 3, MORE 2 ...         three item frames, two ...; STOP or END ends it with END 5
    ECHO, then one binary frame                    one binary frame
    READINGS, then one item frame                  one item frame
    anything else                                  ERR unknown command

A command is a word and the fields of its request in order, separated by spaces; trailing fields that have defaults
may be left out. Commands and END, ERR, STOP and MORE are text frames. Items are text frames with a text codec and
binary frames otherwise; a Body is always a binary frame. A request that holds a list is no command: it follows the
word as an item frame. Methods that take many messages: the word, then item
frames, then END <items sent>; the reply is one item frame, or item frames and END.

An error is "ERR <kind>: <text>", or "ERR <text>" for the two that a kind would only repeat.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, get_origin

import msgspec

from adapters.api import (
    AdapterError,
    CallFailed,
    Codec,
    CodecError,
    Message,
    Method,
    NotRepresentable,
    Shape,
    Unsupported,
)
from adapters.messages import Body, Credit

STOP, BUSY, UNKNOWN = "STOP", "ERR busy", "ERR unknown command"
CONTROL = (b"END ", b"ERR ")  # how the server's control frames begin; no message of a text codec begins so

_WORDS = {
    "quotes": "STREAM",
    "quotes.page": "PAGE",
    "quotes.unbounded": "UNBOUNDED",
    "quotes.unbounded.ready": "UNBOUNDED_READY",
    "quotes.credited": "CREDITED",
}
_BARE = {BUSY: "busy", UNKNOWN: "not_found"}  # errors that are spelled without their kind


class Spelling:
    """One method as text. `framed`: the request is a frame after the word; `credit`: MORE frames follow.

    `request_text`, `reply_text`: whether those messages travel in text frames.

    `command`: a request -> the command, all fields said. Raises NotRepresentable for a field that is no single
    word. `request`: the words that were typed -> the request; the first credit of a stream has n = 0, an upload no
    request. Raises CallFailed("invalid_argument") with the usage.
    """

    command: Callable[[Message], str]
    request: Callable[[Sequence[str]], Any]

    def __init__(self, method: Method, codec: Codec) -> None:
        self.method = method
        self.word = _WORDS.get(method.name) or method.name.upper().replace(".", "_")
        self.unary = method.shape is Shape.UNARY
        self.uploads = method.shape in (Shape.CLIENT_STREAM, Shape.BIDI_STREAM)
        self.framed = not self.uploads and (method.request is Body or _holds_list(method.request))
        self.credit = method.request is Credit and self.uploads
        self.request_text = codec.text and method.request is not Body
        self.reply_text = codec.text and method.reply is not Body
        fields: tuple[msgspec.structs.FieldInfo, ...] = ()
        if self.credit:
            fields = msgspec.structs.fields(Credit)[:1]
        elif not self.uploads and not self.framed:
            fields = msgspec.structs.fields(method.request)
        self._keys = tuple(field.encode_name for field in fields)
        self._fields = [field.name for field in fields]
        self._required = 1 if self.credit else sum(field.required for field in fields)
        self._readers = tuple(_READERS.get(field.type) or _reader(field.type) for field in fields)
        self.command = _command_writer(self, fields)
        self.request = _request_reader(self, fields)

    @property
    def usage(self) -> str:
        """How to say it, for who said it wrong."""
        words = [f"<{key}>" if i < self._required else f"[<{key}>]" for i, key in enumerate(self._keys)]
        then = ""
        if self.credit:
            then = ", then MORE <n>"
        elif self.uploads:
            then = ", then item frames, then END <n>"
        elif self.framed:
            then = f", then one {'text' if self.request_text else 'binary'} frame"
        return "usage: " + " ".join([self.word, *words]) + then

    def spell(self, request: Message) -> str:
        """`command` for any request."""
        return " ".join([self.word, *(_field(getattr(request, name)) for name in self._fields)])

    def read(self, typed: Sequence[str]) -> Any:
        """`request` for any words."""
        if not self._required <= len(typed) - 1 <= len(self._keys):
            raise CallFailed("invalid_argument", self.usage)
        if self.uploads and not self.credit:
            return None
        try:
            return self.method.request(*map(operator.call, self._readers, typed[1:]))
        except (ValueError, msgspec.ValidationError) as exc:
            raise CallFailed("invalid_argument", self.usage) from exc

    def granted(self, symbol: str, frame: str | bytes) -> Credit:
        """The credit that a MORE frame grants. Raises CallFailed("invalid_argument") with the usage."""
        try:
            return Credit(symbol, int(frame.removeprefix("MORE ") if isinstance(frame, str) else ""))
        except ValueError as exc:
            raise CallFailed("invalid_argument", self.usage) from exc


def _holds_list(kind: type) -> bool:
    return any(get_origin(field.type) is list for field in msgspec.structs.fields(kind))


class Limited:
    """The codec, and the limit of one message."""

    def __init__(self, codec: Codec, limit: int) -> None:
        self.codec, self.limit = codec, limit
        self.decode = codec.decode

    def encode(self, message: Message) -> bytes:
        """Raises Unsupported over the limit."""
        data = self.codec.encode(message)
        if len(data) > self.limit:
            raise self.too_large(data)
        return data

    def too_large(self, data: bytes) -> Unsupported:
        """What is wrong with these bytes."""
        return Unsupported(f"a message of {len(data):,} bytes is over the limit of {self.limit:,}")


# The two below are written out once per method, for the fields that it has. Both are in the path of every call,
# where going through the fields in a loop made a round trip 5 % slower (bakeoff suite=overhead).
_PLAIN = {str: "{0}.__class__ is str and {0}.isalnum()", int: "{0}.__class__ is int"}


def _command_writer(spelling: Spelling, fields: Sequence[msgspec.structs.FieldInfo]) -> Callable[[Message], str]:
    """What spells a request whose fields are plain words and numbers; any other goes to Spelling.spell."""
    if not fields or not all(field.type in _PLAIN for field in fields):
        return spelling.spell
    values = [f"v{i}" for i in range(len(fields))]
    read = [f"{value} = request.{field.name}" for value, field in zip(values, fields, strict=True)]
    plain = " and ".join(_PLAIN[field.type].format(value) for value, field in zip(values, fields, strict=True))
    words = " ".join([spelling.word, *(f"{{{value}}}" for value in values)])
    lines = [*read, f"if {plain}:", f'    return f"{words}"', "return spell(request)"]
    return _function("request", lines, {"spell": spelling.spell})


def _request_reader(
    spelling: Spelling, fields: Sequence[msgspec.structs.FieldInfo]
) -> Callable[[Sequence[str]], Any]:
    """What reads a command that says every field; any other, and a wrong one, goes to Spelling.read."""
    if not fields or spelling.uploads or not all(field.type in _PLAIN for field in fields):
        return spelling.read
    values = [f"{'int' if field.type is int else ''}(typed[{i}])" for i, field in enumerate(fields, 1)]
    lines = [
        f"if len(typed) == {len(fields) + 1}:",
        "    try:",
        f"        return kind({', '.join(values)})",
        "    except ValueError:",
        "        pass",
        "return read(typed)",
    ]
    return _function("typed", lines, {"kind": spelling.method.request, "read": spelling.read})


def _function(argument: str, lines: list[str], names: dict[str, Any]) -> Callable[[Any], Any]:
    """The function of `argument` whose body `lines` are, with `names` as its globals."""
    exec("\n    ".join([f"def function({argument}):", *lines]), names)
    function: Callable[[Any], Any] = names["function"]
    return function


_READERS: dict[type, Callable[[str], Any]] = {str: str, int: int, float: float}


def _reader(kind: type) -> Callable[[str], Any]:
    """What reads a field of any other type."""
    return lambda field: msgspec.convert(field, kind, strict=False)


def _field(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        raise NotRepresentable(f"a command cannot carry a field of type {type(value).__name__}")
    if value.split() != [value] or any("\ud800" <= char <= "\udfff" for char in value):
        raise NotRepresentable(f"a command cannot carry {value!r}: a field is one word of text without spaces")
    return value


def ended(frame: str, count: int) -> None:
    """`frame` must be END and say that `count` items were sent. Raises CallFailed("data_loss")."""
    said = frame.removeprefix("END ")
    if said != str(count):
        raise CallFailed("data_loss", f"{count:,} items arrived before {frame!r}")


def error(frame: str) -> AdapterError:
    """The error that an ERR frame says."""
    if frame in _BARE:
        return CallFailed(_BARE[frame], frame.removeprefix("ERR "))
    kind, colon, text = frame.removeprefix("ERR ").partition(": ")
    if not colon or not kind.isidentifier():
        return CallFailed("failed", frame.removeprefix("ERR "))
    return Unsupported(text) if kind == "unsupported" else CallFailed(kind, text)


def spell_error(exc: Exception) -> str:
    """The ERR frame for what a handler raised."""
    if isinstance(exc, CallFailed):
        return f"ERR {exc}" if ": " in str(exc) else f"ERR {exc}: "
    if isinstance(exc, Unsupported):
        return f"ERR unsupported: {exc}"
    if isinstance(exc, CodecError):
        return f"ERR codec: {exc}"
    return f"ERR internal: {type(exc).__name__}: {exc}"
