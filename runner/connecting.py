"""What a connection costs before anything is measured: opening it, and the first call over it.

That call proves whose server it is. It comes before any warm-up, so that neither is in any latency.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field

from adapters.api import Peer
from adapters.messages import METHODS, Empty, QuoteRequest
from runner.operations.api import Raw
from runner.quotes import quote
from runner.samples import nearest_rank

NS_PER_MS = 1_000_000
SAMPLES = ("connect", "first_call")


class Refused(Exception):
    """The server is not the one this run started, or does not answer as it must."""


@dataclass
class Connecting:
    """Opens the connections of `run` (its nonce) one after another. `clock`: nanoseconds, monotonic.

    `samples`, one of each per connection: "connect", from asking to connect until the adapter says that the
    connection is open; "first_call", the first call over it.
    """

    run: str
    clock: Callable[[], int]
    samples: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in SAMPLES})

    async def open(self, stack: AsyncExitStack, connection: AbstractAsyncContextManager[Peer]) -> Peer:
        """Open and verify one: whose server it is on every connection, on the first one also whether it answers as
        it must (a service time would be paid for on each). `stack` closes it. Raises Refused.
        """
        first = not self.samples["connect"]
        asked = self.clock()
        peer = await stack.enter_async_context(connection)
        opened = self.clock()
        which = await peer.unary(METHODS["run"], Empty())
        answered = self.clock()
        self.samples["connect"].append(opened - asked)
        self.samples["first_call"].append(answered - opened)
        if which.run != self.run:
            raise Refused(
                f"the server belongs to run {which.run!r}, not to {self.run!r}: something else listens there"
            )
        if first:
            answer = await peer.unary(METHODS["quote"], QuoteRequest("AAPL"))
            if answer != quote("AAPL", 42):
                raise Refused(f"the server's first answer is wrong: {answer!r}")
        return peer


def connecting_measurements(raw: Raw) -> dict[str, tuple[float, str]]:
    """connect_ms and first_call_ms: the median (nearest rank) over the run's connections; absent where there were
    none to open.
    """
    found = {name: nearest_rank(sorted(raw.samples.get(name, [])), 50.0) for name in SAMPLES}
    return {f"{name}_ms": (value / NS_PER_MS, "ms") for name, value in found.items() if value is not None}
