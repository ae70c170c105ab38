"""How many bytes is one message, and what does turning it into bytes and back cost? No wire, no server."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any, ClassVar, Literal

from adapters.api import Codec, Message, Method, NotRepresentable
from adapters.messages import Quote
from runner.drive import Drive
from runner.fields import Count
from runner.operations.api import Operation, Raw, Summary
from runner.quotes import EPOCH_MICROS, quote

BATCHES = 50  # timed separately, so that one interruption does not move the median

MESSAGES: dict[str, Message] = {
    "quote": quote("AAPL", 42),
    "zero": Quote("", 0, 0.0, 0.0, 0),  # every field at protobuf's default
    "int53": Quote("AAPL", 2**53 + 1, 100.42, 100.44, EPOCH_MICROS),  # not exact as a double
    "int64": Quote("AAPL", 2**63 - 1, 100.42, 100.44, EPOCH_MICROS),
    "int65": Quote("AAPL", 2**64, 100.42, 100.44, EPOCH_MICROS),  # beyond 64 bits
    "not_a_number": Quote("AAPL", 42, float("nan"), 100.44, EPOCH_MICROS),
    "cjk": Quote("漢" * 4000, 42, 100.42, 100.44, EPOCH_MICROS),
}


@dataclass(frozen=True, kw_only=True)
class Payload(Operation):
    """`message` encoded and decoded `loops` times, after its round trip was verified."""

    name: str
    message: Literal["quote", "zero", "int53", "int64", "int65", "not_a_number", "cjk"]
    loops: Count

    needs_server: ClassVar[bool] = False

    def methods(self) -> list[Method]:
        return []

    async def drive(self, drive: Drive) -> None:
        codec, message = drive.codec, MESSAGES[self.message]
        raw = drive.raw
        await drive.ready()
        try:
            encoded = codec.encode(message)
        except NotRepresentable as exc:
            raw.facts |= {"representable": "no", "reason": str(exc)}
            drive.close_window()
            return
        if not _same(codec.decode(type(message), encoded), message):
            raw.facts |= {"representable": "no", "reason": "it decodes to another value"}
            drive.close_window()
            return
        raw.facts |= {"representable": "yes", "hex": encoded.hex()}
        raw.counts["size_bytes"] = len(encoded)
        encode, decode, kind, clock = codec.encode, codec.decode, type(message), drive.clock
        loops = max(self.loops // BATCHES, 1)
        # One sample is one batch of `loops` calls; a single call is too short to be timed.
        encodes: list[int] = []
        decodes: list[int] = []
        for _ in range(BATCHES):
            started = clock()
            for _ in range(loops):
                encode(message)
            turned = clock()
            for _ in range(loops):
                decode(kind, encoded)
            ended = clock()
            encodes.append(turned - started)
            decodes.append(ended - turned)
        raw.samples |= {"encode_batch": encodes, "decode_batch": decodes}
        raw.counts["loops"] = loops
        drive.close_window()

    def summarize(self, raw: Raw, codec: Codec, conditions: dict[str, Any]) -> Summary:
        summary = Summary(findings={"message": self.message, **raw.facts})
        if "size_bytes" in raw.counts:
            summary.measurements["size_bytes"] = (raw.counts["size_bytes"], "bytes")
        for name in ("encode", "decode"):
            if raw.samples.get(f"{name}_batch"):
                summary.measurements[f"{name}_ns"] = (
                    median(raw.samples[f"{name}_batch"]) / raw.counts["loops"],
                    "ns",
                )
        if raw.facts.get("representable") == "no":
            summary.unsupported = f"{self.message} is not representable: {raw.facts['reason']}"
        return summary


def _same(one: Message, other: Message) -> bool:
    """Equal, with NaN equal to NaN: what matters is whether the value came through."""
    return bool(one == other) or repr(one) == repr(other)
