"""What codecs are made of: one function per message type and direction, made when the type is first met."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar, get_args, get_origin

import cbor2
import msgspec
from google.protobuf.message import DecodeError, EncodeError

from adapters.api import Codec, Malformed, Message, NotRepresentable

T = TypeVar("T")
V = TypeVar("V")
Buffer = bytes | bytearray | memoryview
Encode = Callable[[Message], bytes]
Decode = Callable[[Buffer], Any]

# What the libraries raise for a value they cannot write, and for bytes they cannot read.
_UNWRITABLE = (
    AttributeError,  # an item of a list that is no message
    TypeError,
    ValueError,
    OverflowError,
    RecursionError,
    cbor2.CBOREncodeError,
    EncodeError,
)
_UNREADABLE = (ValueError, RecursionError, cbor2.CBORDecodeError, DecodeError)


class PerType(dict[type, V], Generic[V]):
    """What `build` makes of a type, made once. A plain dict look-up afterwards: it is in every message's path."""

    def __init__(self, build: Callable[[type], V]) -> None:
        super().__init__()
        self._build = build

    def __missing__(self, kind: type) -> V:
        made = self[kind] = self._build(kind)
        return made


class TableCodec(Codec):
    """A codec as two tables of functions, one function per message type and direction."""

    def __init__(self) -> None:
        self._encoders = PerType(self._encoder)
        self._decoders = PerType(self._decoder)

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


def item_kind(annotation: Any) -> list[type]:
    """[Item] for a list[Item] of messages, [] for every other type of a field."""
    if get_origin(annotation) is not list:
        return []
    item = get_args(annotation)[0]
    return [item] if isinstance(item, type) and issubclass(item, msgspec.Struct) else []
