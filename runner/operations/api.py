"""What every measured thing is: a dataclass of its knobs, a driver half and a summary.

The driver half runs in the driver process between `Drive.ready` and its return; the summary runs in the
supervisor, outside every measured process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from adapters.api import Codec, Method
from runner.checks import Check, failed, within
from runner.samples import Folded

if TYPE_CHECKING:
    from runner.drive import Drive
    from runner.fields import Limits, Load


@dataclass
class Raw:
    """What a run brought back, before anything is computed from it.

    `samples`: name -> nanoseconds, in order of happening; `folded`: the same where there are very many of them.
    `counts`: whole numbers by name. `errors`: how many, by
    kind. `facts`: words. `series`: name -> [(t_ns since the start of the watch, value or None)].
    `usage`: "server" and "driver" -> CPU nanoseconds and the like, spent between the start and end of the window.
    """

    window_ns: int = 0
    samples: dict[str, Sequence[int]] = field(default_factory=dict)
    folded: dict[str, Folded] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    series: dict[str, list[tuple[int, float | None]]] = field(default_factory=dict)
    usage: dict[str, dict[str, int]] = field(default_factory=dict)

    def values(self, name: str) -> Sequence[int] | Folded:
        """The samples `name`, folded or not; empty where there are none."""
        return self.folded.get(name) or self.samples.get(name, [])


@dataclass
class Summary:
    """What is saved of a run: numbers with units, words, and what its verdict rests on."""

    measurements: dict[str, tuple[float, str]] = field(default_factory=dict)
    findings: dict[str, str] = field(default_factory=dict)
    series: dict[str, list[tuple[int, float | None]]] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    unsupported: str = ""  # why the value or the exchange cannot be had at all

    @property
    def void(self) -> list[str]:
        """The reasons, if any, why the run is void."""
        return failed(self.checks)


class Operation(ABC):
    """One measured thing. Subclasses are frozen keyword-only dataclasses; their fields are the YAML keys."""

    name: str
    needs_server: ClassVar[bool] = True  # False: the driver measures alone
    one_connection: ClassVar[bool] = False  # it looks at one connection, whatever load.connections says
    connections_key: ClassVar[str] = "load.connections"  # the key that says how many things go on at a time
    watched: ClassVar[bool] = False  # the supervisor samples both processes while the driver is quiet
    on_time: ClassVar[bool] = False  # the driver must wake up on time, as in an open loop
    prefers_one_core: ClassVar[bool] = False  # what placement auto means on fewer than four CPUs

    @abstractmethod
    def methods(self) -> list[Method]:
        """The methods that the adapter must be able to carry."""

    def problems(self) -> list[str]:
        """What is wrong between keys, each a sentence that starts with the key's name."""
        return []

    def load_problems(self, load: Load, limits: Limits) -> list[str]:
        """What is wrong between the load and this operation, each a sentence that starts with a dotted key."""
        if load.arrival != "closed":
            return [f"load.arrival: {self.name} has no open loop; leave load=closed"]
        return []

    def at_a_time(self, load: Load) -> int:
        """Calls or streams under way at once, each on a connection of its own unless load.multiplex."""
        return load.connections

    def largest_message_bytes(self, codec: Codec) -> int:
        """The largest encoded message that the adapter will have to carry; 0 where it is as small as a quote.
        A run whose message is over the adapter's limit is not started.
        """
        return 0

    def known(self) -> Summary:
        """What can be said of a run however it ends: what was asked for. `summarize` replaces it."""
        return Summary()

    def credit(self) -> int | None:
        """How many items a stream's reader grants before it asks (Adapter.connect)."""
        return None

    def producer_style(self) -> str:
        """How the service makes items of an endless or counted stream (runner.service)."""
        return "awaited"

    def gate_mark(self) -> int:
        """Items in the service's buffer at which a `gated` producer waits."""
        return 64

    def work(self) -> tuple[float, str]:
        """How long a call of `quote` or `hello` takes the service, in ms, and how: wait or busy."""
        return 0.0, "wait"

    def afterwards(self, url: str | None, connections: int, cpus: list[int] | None) -> dict[str, str]:
        """What the supervisor does when the window is closed and the server still serves; facts for the summary.
        `url`: of the server, where it speaks HTTP. `cpus`: the driver's.
        """
        return {}

    @property
    def hand_written(self) -> bool:
        """Whether both ends are the adapter's hand-written ones, without the seam (adapters.api.HandWritten)."""
        return False

    @abstractmethod
    async def drive(self, drive: Drive) -> None:
        """The driver half: warm up, call `await drive.ready()`, measure, leave everything in `drive.raw`."""

    def watch(
        self,
        raw: Raw,
        quiet_ns: int,
        ceiling_bytes: int,
        look: Callable[[], tuple[dict[str, Any], dict[str, Any]]],
    ) -> None:
        """The supervisor's part of a `watched` operation, from the driver's going quiet at `quiet_ns` until
        enough was seen. `look()` asks the server and the driver for their counters; either process holding more
        than `ceiling_bytes` ends the watch.
        """
        raise NotImplementedError(f"{self.name} is not watched")

    @abstractmethod
    def summarize(self, raw: Raw, codec: Codec, conditions: dict[str, Any]) -> Summary:
        """What is saved of `raw`."""


ERRORS_BAND = 0.01


def errors_check(errors: int, n: int) -> list[Check]:
    """More than 1 % of `n` that failed make a run void."""
    if not n:
        return []
    said = f"{errors:,} of {n:,} failed ({errors / n:.1%}; over 1 % is void)"
    return [within("errors_pct", 100 * errors / n, "%", said, most=100 * ERRORS_BAND)]


FEWEST = 10  # messages or calls: with fewer there is not even a p90, and starting up is most of what is timed


def samples_check(n: int) -> Check:
    """Whether `n` messages or calls are enough to be compared."""
    return within("samples", n, "", f"too few samples: {n:,}; from {FEWEST} on, a run counts", least=FEWEST)


def count_check(name: str, found: int, wanted: int, reason: str) -> Check:
    """A number that must be exactly right."""
    return within(name, found, "", reason, least=wanted, most=wanted)


def cpu_per_item(raw: Raw, items: int) -> dict[str, tuple[float, str]]:
    """What each item of the window cost: CPU time and context switches of both sides, bytes on the wire as the
    driver saw them; and of the whole window: shares of a CPU, switches by kind, peak memory. What was not measured
    is absent.
    """
    out: dict[str, tuple[float, str]] = {}
    for side in ("server", "driver"):
        spent = raw.usage.get(side, {}).get("cpu_ns")
        if spent is not None and items:
            out[f"{side}_cpu_us"] = (spent / items / 1_000, "us")
            if raw.window_ns > 0:
                out[f"{side}_cpu_pct"] = (100 * spent / raw.window_ns, "%")
        switches = (("voluntary_switches", "switches"), ("involuntary_switches", "switches"))
        used = raw.usage.get(side, {})
        for name, unit in (*switches, ("peak_rss_bytes", "bytes")):
            if name in used:
                out[f"{side}_{name}"] = (used[name], unit)
        if items and all(name in used for name, _ in switches):
            out[f"{side}_switches"] = (sum(used[name] for name, _ in switches) / items, "switches")
    for name in ("wire_in_bytes", "wire_out_bytes"):
        if items and name in raw.usage.get("driver", {}):
            out[name] = (raw.usage["driver"][name] / items, "bytes")
    return out
