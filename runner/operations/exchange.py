"""What calls ask for, and the only right answer to each."""

from __future__ import annotations

from adapters.api import Message, Method
from adapters.messages import METHODS, Body, QuoteRequest
from runner.quotes import quote

SYMBOL = "AAPL"
# Calls ask for these in turn, so that an answer to another call is noticed. All encode to the published sizes:
# seq takes one byte as a varint, two digits in JSON. JSON's bid and ask are a digit shorter in every tenth.
SEQS = range(42, 100)


def exchange(size_bytes: int | None) -> tuple[Method, list[tuple[Message, Message]]]:
    """The method, and (request, reply) pairs to go through in turn: a quote, or a body of that size echoed."""
    if size_bytes is None:
        return METHODS["quote"], [(QuoteRequest(SYMBOL, seq), quote(SYMBOL, seq)) for seq in SEQS]
    # Two bodies that differ in every byte, neither of them one repeated byte.
    ramp = bytes(range(256)) * (size_bytes // 256 + 1)
    bodies = [Body(ramp[:size_bytes]), Body(ramp[::-1][:size_bytes])]
    return METHODS["echo"], [(body, body) for body in bodies]
