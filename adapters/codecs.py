"""message <-> bytes: one class per codec, the same types and the same field names for all of them.

What a codec writes (Quote("AAPL", 42, ...) in bytes):

    protobuf        35  proto/quotes.proto; a field at its default is not written
    json            83  compact UTF-8, fields in declared order, int64 as a number, shortest exact floats
    cbor            67  a map of indefinite length; integers as short as they go, floats always 8 bytes
    cbor_definite   66  the same with the length written
    msgpack         65  a map with field names (not the shorter array without them)

`Body` is opaque: all but protobuf carry its bytes as they are, uncopied, and accept any bytes as a `Body`.

Refused at decoding (Malformed): truncated input, anything after the message, a wrong type, a missing field
without a default, text that is not UTF-8; in CBOR a duplicate key as well. Each format also has freedoms of its
own, which are accepted here because its own readers accept them:

    json        unknown fields (whose strings may even be bad UTF-8), duplicate keys (the last one wins, each must
                have the right type), white space around tokens, 100 for a float. Not 42.0 for an integer.
    msgpack     unknown fields, duplicate keys (last wins), longer integer and length forms, an integer for a float
    cbor        unknown fields, definite and indefinite lengths alike, shorter floats, longer integer forms,
                bignums for integers, an integer or a decimal fraction for a float, the self-describing tag
    protobuf    unknown fields; a known field under another wire type counts as unknown; repeated single fields
                (last wins), so two concatenated messages are one; absent fields are their defaults, or for an
                `optional` one the default of our type. Any of this can also be damage: content must be checked.

Refused at encoding (NotRepresentable): NaN and infinities in json (where libraries write null), integers beyond 64
bits in msgpack and protobuf (signed there, so 2**63 too), lone surrogates everywhere. json and cbor carry integers
of any size, exactly; a reader that keeps numbers as doubles (JavaScript) loses digits above 2**53, ours does not.
Fields are taken to hold values of their declared types; only what the library itself notices is refused.
"""

from __future__ import annotations

import io
import os
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

import cbor2
import msgspec
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, EncodeError
from google.protobuf.message import Message as WireMessage

from adapters import messages
from adapters.api import Codec, Malformed, Message, NotRepresentable
from adapters.messages import Body
from adapters.wire import quotes_pb2

T = TypeVar("T")
V = TypeVar("V")
Buffer = bytes | bytearray | memoryview
Encode = Callable[[Message], bytes]
Decode = Callable[[Buffer], Any]

# What the libraries raise for a value they cannot write, and for bytes they cannot read.
_UNWRITABLE = (TypeError, ValueError, OverflowError, RecursionError, cbor2.CBOREncodeError, EncodeError)
_UNREADABLE = (ValueError, RecursionError, cbor2.CBORDecodeError, DecodeError)


class _PerType(dict[type, V], Generic[V]):
    """What `build` makes of a type, made once. A plain dict look-up afterwards: it is in every message's path."""

    def __init__(self, build: Callable[[type], V]) -> None:
        super().__init__()
        self._build = build

    def __missing__(self, kind: type) -> V:
        made = self[kind] = self._build(kind)
        return made


class _TableCodec(Codec):
    """A codec as two tables of functions, one function per message type and direction."""

    def __init__(self) -> None:
        self._encoders = _PerType(self._encoder)
        self._decoders = _PerType(self._decoder)

    @abstractmethod
    def _encoder(self, kind: type) -> Encode:
        """The function that encodes a `kind`. It may raise any of _UNWRITABLE."""

    @abstractmethod
    def _decoder(self, kind: type) -> Decode:
        """The function that decodes a `kind`. It may raise any of _UNREADABLE."""

    def encode(self, message: Message) -> bytes:
        encode = self._encoders[type(message)]
        try:
            return encode(message)
        except _UNWRITABLE as error:
            raise NotRepresentable(f"{self.name}, {type(message).__name__}: {error}") from error

    def decode(self, kind: type[T], data: Buffer) -> T:
        decode = self._decoders[kind]
        try:
            message: T = decode(data)
        except _UNREADABLE as error:
            raise Malformed(f"{self.name}, {kind.__name__}: {error}") from error
        return message


def _body_bytes(body: Body) -> bytes:
    if type(body.data) is not bytes:
        raise TypeError(f"Body.data is {type(body.data).__name__}, not bytes")
    return body.data


def _body_reader(kind: type[Body]) -> Decode:
    return lambda data: kind(bytes(data))  # bytes() of bytes is no copy


class Json(_TableCodec):
    """Compact UTF-8 JSON by msgspec."""

    name = "json"
    mime = "application/json"
    text = True

    def _encoder(self, kind: type) -> Encode:
        if issubclass(kind, Body):
            return _body_bytes
        encode, small_n = msgspec.json.Encoder().encode, ord("n")

        def checked(message: Message) -> bytes:
            data = encode(message)
            # msgspec writes NaN and infinities as null without a word. Looking for one byte first is several
            # times faster than looking for four, and a quote has no "n".
            if small_n in data and data.find(b"null") >= 0 and not self._keeps(message, data):
                raise ValueError("it would be written as null (JSON has no NaN and no infinity)")
            return data

        return checked

    def _keeps(self, message: Message, data: bytes) -> bool:
        try:
            return bool(self.decode(type(message), data) == message)
        except Malformed:
            return False

    def _decoder(self, kind: type) -> Decode:
        return _body_reader(kind) if issubclass(kind, Body) else msgspec.json.Decoder(kind).decode


class Msgpack(_TableCodec):
    """MessagePack with field names by msgspec."""

    name = "msgpack"
    mime = "application/vnd.msgpack"
    text = False

    def _encoder(self, kind: type) -> Encode:
        return _body_bytes if issubclass(kind, Body) else msgspec.msgpack.Encoder().encode

    def _decoder(self, kind: type) -> Decode:
        return _body_reader(kind) if issubclass(kind, Body) else msgspec.msgpack.Decoder(kind).decode


# cbor2.loads does not say where the data ended, and its CBORDecoder, which does, costs 0.4 µs more per message. So
# the data is read as the only item of an inner array of indefinite length, with a token after it that nobody can
# guess: [[*data], token]. A second item makes the inner array longer; a break that closes it early, or an item
# that swallows the closing break, leaves something else in the token's place, or nothing.
_TOKEN = os.urandom(8)
_OPEN, _CLOSE = b"\x82\x9f", b"\xff\x48" + _TOKEN

# Fields of these types alone need no help from msgspec to be told from their CBOR natives. It writes bytes as
# base64 text unless told not to, and telling costs 0.1 µs each way.
_PLAIN = frozenset({str, int, float, bool})
_NATIVE: dict[str, Any] = {"builtin_types": (bytes,)}


class Cbor(_TableCodec):
    """CBOR by cbor2, as a map of indefinite length unless `definite`."""

    name: str  # one class, two names
    mime = "application/cbor"
    text = False

    def __init__(self, *, definite: bool = False) -> None:
        super().__init__()
        self.name = "cbor_definite" if definite else "cbor"
        # One encoder for all: cbor2.dumps makes one per message. It keeps nothing between two messages, also
        # after an error, and never lets another thread run in the middle of one.
        self._dumps = cbor2.CBOREncoder(io.BytesIO(), indefinite_containers=not definite).encode_to_bytes

    def _encoder(self, kind: type) -> Encode:
        if issubclass(kind, Body):
            return _body_bytes
        plain: Callable[[Message], Any] = msgspec.to_builtins
        if not _is_plain(kind):
            plain = partial(msgspec.to_builtins, **_NATIVE)
        dumps = self._dumps
        return lambda message: dumps(plain(message))

    def _decoder(self, kind: type) -> Decode:
        if issubclass(kind, Body):
            return _body_reader(kind)
        convert: Callable[[Any, type], Any] = msgspec.convert
        if not _is_plain(kind):
            convert = partial(msgspec.convert, **_NATIVE)
        loads = cbor2.loads

        def decode(data: Buffer) -> Any:
            items, token = loads(b"".join((_OPEN, data, _CLOSE)), allow_duplicate_keys=False)
            if token != _TOKEN or len(items) != 1:
                raise ValueError("not exactly one data item")
            return convert(items[0], kind)

        return decode


def _is_plain(kind: type) -> bool:
    return all(field.type in _PLAIN for field in msgspec.structs.fields(kind))


# Which protobuf message carries which type. Another module may add its own before it first uses the codec.
PROTOBUF_TYPES: dict[type, type[WireMessage]] = {
    messages.Quote: quotes_pb2.Quote,
    messages.QuoteRequest: quotes_pb2.QuoteRequest,
    messages.StreamRequest: quotes_pb2.StreamRequest,
    messages.SymbolRequest: quotes_pb2.SymbolRequest,
    messages.Credit: quotes_pb2.Credit,
    messages.Empty: quotes_pb2.Empty,
    messages.Produced: quotes_pb2.ProducedReply,
    messages.RunInfo: quotes_pb2.RunInfo,
    messages.Body: quotes_pb2.Body,
}

# A 32-bit float rounds what a Python float holds; enums and nested messages have no flat counterpart.
_NOT_CARRIED = {
    FieldDescriptor.TYPE_FLOAT: "a 32-bit float",
    FieldDescriptor.TYPE_ENUM: "an enum",
    FieldDescriptor.TYPE_MESSAGE: "a nested message",
    FieldDescriptor.TYPE_GROUP: "a group",
}


class Protobuf(_TableCodec):
    """Protocol Buffers by google's library, for the types (and their subclasses) in PROTOBUF_TYPES.

    Using another type, or one whose fields are not exactly those of its message, is a TypeError.
    """

    name = "protobuf"
    mime = "application/vnd.google.protobuf"
    text = False

    def _encoder(self, kind: type) -> Encode:
        wire, fields = _wire_fields(kind)
        lines = ["wire = new()"]
        for ours, field in fields:
            target, value = f"wire.{field.name}", f"message.{ours.name}"
            lines.append(f"{target}.extend({value})" if field.is_repeated else f"{target} = {value}")
        return _function("message", [*lines, "return wire.SerializeToString()"], {"new": wire})

    def _decoder(self, kind: type) -> Decode:
        wire, fields = _wire_fields(kind)
        names: dict[str, Any] = {"parse": wire.FromString, "kind": kind}
        values = []
        for ours, field in fields:
            value = f"wire.{field.name}"
            if field.is_repeated:
                value = f"list({value})"
            elif field.has_presence and ours.default is not msgspec.NODEFAULT:
                names[f"default_{ours.name}"] = ours.default
                value = f'{value} if wire.HasField("{field.name}") else default_{ours.name}'
            values.append(f"{ours.name}={value}")
        return _function("data", ["wire = parse(data)", f"return kind({', '.join(values)})"], names)


def _wire_fields(kind: type) -> tuple[type[WireMessage], list[tuple[msgspec.structs.FieldInfo, Any]]]:
    """The protobuf message for `kind`, and which of its fields holds which of ours."""
    wire = next((PROTOBUF_TYPES[parent] for parent in kind.__mro__ if parent in PROTOBUF_TYPES), None)
    if wire is None:
        raise TypeError(f"no protobuf message carries a {kind.__name__}; add it to PROTOBUF_TYPES")
    theirs = {field.name: field for field in wire.DESCRIPTOR.fields}
    ours = msgspec.structs.fields(kind)
    if {field.encode_name for field in ours} != theirs.keys():
        raise TypeError(f"{kind.__name__} and protobuf's {wire.DESCRIPTOR.full_name} have different fields")
    for field in theirs.values():
        if field.type in _NOT_CARRIED:
            raise TypeError(f"{wire.DESCRIPTOR.full_name}.{field.name} is {_NOT_CARRIED[field.type]}")
    return wire, [(field, theirs[field.encode_name]) for field in ours]


def _function(argument: str, lines: list[str], names: dict[str, Any]) -> Callable[[Any], Any]:
    """The function of `argument` whose body `lines` are, with `names` as its globals.

    Source written out once per type, as dataclasses does it: assigning the fields in a loop costs 0.3 µs more
    per Quote, the keyword constructor over msgspec.to_builtins 0.5 µs.
    """
    exec("\n    ".join([f"def function({argument}):", *lines]), names)
    function: Callable[[Any], Any] = names["function"]
    return function


CODECS: dict[str, Callable[[], Codec]] = {
    "protobuf": Protobuf,
    "json": Json,
    "cbor": Cbor,
    "cbor_definite": partial(Cbor, definite=True),
    "msgpack": Msgpack,
}
