"""The seam between the engine and the wires. This module imports nothing of ours.

The rule of the seam: calling through an adapter equals calling the served `Peer` directly. The server
implements `Peer`, the client is handed one, so an adapter is a tunnel.

    Peer (service) <- Adapter.serve  <== wire ==>  Adapter.connect -> Peer (client)

A server that is a pool of threads serves a `BlockingPeer` instead, whose functions wait as threads do.

Errors, as the caller of a client `Peer` sees them:

    AdapterError
    +-- CallFailed         the other side answered, and the answer is an error
    +-- ConnectionLost     the connection is gone; nothing more will come over it
    +-- Unsupported        the adapter cannot carry this shape or this size (a fact, not a failure)
    +-- AddressInUse       the port is taken
    CodecError
    +-- Malformed          bytes that are no encoding of the asked-for type
    +-- NotRepresentable   a value that the codec cannot carry unchanged
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

Message = Any  # one of adapters.messages' types; typed Any because METHODS pairs them at run time
T = TypeVar("T")


class Shape(enum.Enum):
    """The four ways a call can go: how many messages travel each way."""

    UNARY = "unary"
    SERVER_STREAM = "server_stream"
    CLIENT_STREAM = "client_stream"
    BIDI_STREAM = "bidi_stream"


@dataclass(frozen=True, slots=True)
class Method:
    """One thing that can be asked of a peer. `name` is dotted and lower case; adapters derive their spelling."""

    name: str
    shape: Shape
    request: type
    reply: type


class Address(NamedTuple):
    """Where a server listens. `host` is a literal address, never a name to be resolved twice."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """What a library's visible outgoing buffers hold: messages where it counts those, else payload+frame bytes."""

    messages: int = 0
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Facts:
    """What a protocol is, in words: the PROTOCOLS and CODECS tables. Qualitative, never measured."""

    library: str  # the distribution whose version is recorded, "" for none
    transport: str
    schema: str
    interaction: str
    demand: str  # how a reader says "wait"
    deadlines: str
    browser: str
    accepts: str  # what the bare library takes as a message
    wire_type: str  # how the wire says which codec or which kind of frame it carries


class AdapterError(Exception):
    """Whatever goes wrong between two peers."""


class CallFailed(AdapterError):
    """The other side answered with an error. `kind` is a short lower-case word that errors are counted by."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}" if message else kind)
        self.kind = kind


class ConnectionLost(AdapterError):
    """The connection ended while something was still expected of it."""


class Unsupported(AdapterError):
    """The adapter cannot carry this shape or size. The text names the size and the limit."""


class AddressInUse(AdapterError):
    """Another process already listens at the address."""

    def __init__(self, address: Address) -> None:
        super().__init__(f"port {address.port} on {address.host} is taken by another process")
        self.address = address


class CodecError(ValueError):
    """A message or its bytes do not fit the codec."""


class Malformed(CodecError):
    """The bytes are no encoding of the asked-for type."""


class NotRepresentable(CodecError):
    """The codec cannot carry this value so that it comes out equal."""


class Codec(ABC):
    """message <-> bytes. Stateless, so that one instance serves every connection."""

    name: str
    mime: ClassVar[str]
    text: ClassVar[bool]  # True when every encoding is valid UTF-8 text (an opaque Body excepted)

    @abstractmethod
    def encode(self, message: Message) -> bytes:
        """The exact bytes of `message`. Raises NotRepresentable."""

    @abstractmethod
    def decode(self, kind: type[T], data: bytes | bytearray | memoryview) -> T:
        """The message of type `kind` that `data` encodes, all of it. Raises Malformed."""


class Peer(ABC):
    """One method per shape. A client's Peer is one connection: one call at a time unless the wire multiplexes.

    Streams are pulled: not asking for the next item is how a reader says "wait". Leave a stream early with
    `contextlib.aclosing`, which also ends it on the other side.
    """

    @abstractmethod
    async def unary(self, method: Method, request: Message) -> Message:
        """One message there, one back."""

    @abstractmethod
    def server_stream(self, method: Method, request: Message) -> AsyncGenerator[Message, None]:
        """One message there, any number back."""

    @abstractmethod
    async def client_stream(self, method: Method, requests: AsyncIterable[Message]) -> Message:
        """Any number there, one back."""

    @abstractmethod
    def bidi_stream(self, method: Method, requests: AsyncIterable[Message]) -> AsyncGenerator[Message, None]:
        """Any number each way, at the same time. Closing the result also ends the consumption of `requests`."""

    def held(self) -> int | None:
        """Messages that have arrived and wait in the library's or adapter's visible queue; None where it hides."""
        return None


class BlockingPeer(ABC):
    """What a server of threads serves: `Peer` with plain functions, each called in a thread of the server's pool.

    Streams are pulled. Whoever leaves one early closes the iterator, from the thread that has used it.
    """

    @abstractmethod
    def unary(self, method: Method, request: Message) -> Message:
        """One message there, one back."""

    @abstractmethod
    def server_stream(self, method: Method, request: Message) -> Generator[Message, None, None]:
        """One message there, any number back."""

    @abstractmethod
    def client_stream(self, method: Method, requests: Iterator[Message]) -> Message:
        """Any number there, one back."""

    @abstractmethod
    def bidi_stream(self, method: Method, requests: Iterator[Message]) -> Generator[Message, None, None]:
        """Any number each way, at the same time."""


class Served(ABC):
    """A running server, as `Adapter.serve` hands it out."""

    address: Address

    def backlog(self) -> Backlog | None:
        """What waits in the library's visible outgoing buffers, over all connections; None where it hides.

        Called from another thread than the loop's, while the loop may be busy: read lengths, await nothing.
        """
        return None


class Exchange(ABC):
    """One connection of a hand-written client. What it answers is not checked by itself."""

    @abstractmethod
    async def call(self, request: Message) -> Message:
        """One `quote`."""

    @abstractmethod
    async def stream(self, request: Message) -> int:
        """`quotes`, each decoded and dropped. Returns how many came."""


class HandWritten(ABC):
    """`quote` and `quotes` as somebody would write them who wanted only these two: over the bare library, without
    the seam, the service and the limits. The yardstick of what bakeoff itself costs.

    `make`: (symbol, seq) -> the quote.
    """

    def __init__(self, codec: Codec, make: Callable[[str, int], Message]) -> None:
        self.codec = codec
        self.make = make

    @abstractmethod
    def serve(self, address: Address) -> AbstractAsyncContextManager[Served]:
        """Serve until the context ends."""

    @abstractmethod
    def connect(self, address: Address) -> AbstractAsyncContextManager[Exchange]:
        """One connection."""


class Adapter(ABC):
    """One protocol (and one engine of it) with one codec.

    A subclass takes `codec` and `max_message_bytes` (set on both ends; one message over it is an error, never a
    cut) and its own knobs as keyword arguments: exactly the keys of conf/protocol/<name>.yaml, each annotated,
    so that a wrong one is caught before anything starts.
    """

    shapes: ClassVar[frozenset[Shape]]
    default_codec: ClassVar[str]
    facts: ClassVar[Facts]
    in_process: ClassVar[bool] = False  # no wire: the driver hosts both ends
    multiplexes: ClassVar[bool] = False  # one connection can carry several calls at once
    blocking: ClassVar[bool] = False  # serve() takes a BlockingPeer
    speaks_http: ClassVar[bool] = False  # any HTTP/1.1 client can ask it
    model: ClassVar[str] = "event loop"  # how the server does many things at once: this, or "threads"
    engine: str  # which implementation; an instance attribute where a knob chooses it
    workers: int | None = None  # threads of the server's pool; None where it has none

    codec: Codec
    max_message_bytes: int

    @abstractmethod
    def serve(self, peer: Any, address: Address) -> AbstractAsyncContextManager[Served]:
        """Serve `peer` at `address` (port 0: any free one) until the context ends; bounded shutdown.

        `peer` is a Peer; a BlockingPeer where `blocking`.

        Raises AddressInUse.
        """

    @abstractmethod
    def connect(self, address: Address, credit: int | None = None) -> AbstractAsyncContextManager[Peer]:
        """One connection. `credit`: how many items of a stream the reader grants before it asks for the first,
        and again only when it asks for an item and none is left. None: the adapter's own knobs decide.
        Wires without demand signalling ignore it.

        Raises ConnectionLost when nobody listens.
        """

    def hand_written(self) -> type[HandWritten] | None:
        """The same exchange without bakeoff; None where nobody has written it."""
        return None

    @abstractmethod
    def wire_bytes(self, payload_bytes: int) -> int:
        """Bytes on the wire (above TCP) of one streamed item with this payload; for attributing kernel queues."""

    def limit_bytes(self) -> int:
        """The largest encoded message that this adapter carries; beyond it a call raises Unsupported."""
        return self.max_message_bytes
