"""Figures from elsewhere: conf/published/<name>.yaml, checked when read."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, TypeVar

import msgspec

from runner.report.read import ReportError

T = TypeVar("T")


class Figure(msgspec.Struct, forbid_unknown_fields=True):
    """One protocol's printed numbers; those that were not printed are None."""

    protocol: str
    p50_us: float | None = None
    p99_us: float | None = None
    mean_us: float | None = None
    calls_per_s: float | None = None
    seconds: float | None = None
    messages_per_s: float | None = None
    us_per_message: float | None = None

    def value(self, metric: str) -> float | None:
        """`tail_ratio` is p99 / p50; the others are fields."""
        if metric == "tail_ratio":
            return self.p99_us / self.p50_us if self.p99_us and self.p50_us else None
        found = getattr(self, metric)
        return None if found is None else float(found)


class Reading(msgspec.Struct, forbid_unknown_fields=True):
    """What the source concludes of two protocols: which has the higher value, None for neither.

    `across`: the ratio over several of its runs; `about`: a ratio that was only read off a chart; `note`: more of
    the reading, in a few words; `under`: the conditions that it is of, where these are not all those of the timing.
    """

    metric: str
    pair: tuple[str, str]
    higher: str | None
    across: tuple[float, float] | None = None
    about: float | None = None
    note: str = ""
    under: dict[str, list[Any]] = {}


class Timing(msgspec.Struct, forbid_unknown_fields=True):
    """Printed timings and what was read from them.

    `under`: condition of a row -> the values for which they can be quoted; without it, one connection, quotes, and
    a closed loop (runner.report.compare).
    """

    conditions: str
    figures: list[Figure] = []
    readings: list[Reading] = []
    under: dict[str, list[Any]] = {}

    def value(self, protocol: str, metric: str) -> float | None:
        """The first figure of `protocol`."""
        return next((f.value(metric) for f in self.figures if f.protocol == protocol), None)


class Made(msgspec.Struct, forbid_unknown_fields=True):
    """Messages made for a reader that had gone quiet, by quiet period in s."""

    protocol: str
    producer: str
    produced: dict[float, int]

    def shape(self, asked: int) -> str:
        """demand (exactly what was asked), rising or flat; "" where a single point does not tell."""
        counts = [self.produced[quiet] for quiet in sorted(self.produced)]
        if set(counts) == {asked}:
            return "demand"
        if len(counts) < 2:
            return ""
        return "rising" if counts[-1] > counts[-2] else "flat"


class Quiet(msgspec.Struct, forbid_unknown_fields=True):
    """Printed back-pressure counts."""

    asked: int
    figures: list[Made]
    open: str = ""


class Moved(msgspec.Struct, forbid_unknown_fields=True):
    """One printed transfer of `records` in one direction. `out_of`: what it ran out of, where it did not end.

    `over`: the printed seconds are a lower bound.
    """

    protocol: str
    codec: str
    shape: str
    records: int
    sender: str = "awaited"
    seconds: float | None = None
    payload_bytes: float | None = None
    over: bool = False
    out_of: str = ""


class Share(msgspec.Struct, forbid_unknown_fields=True):
    """Bytes of one codec as a share of another's, over the printed sizes."""

    pair: tuple[str, str]
    across: tuple[float, float]


class Transfer(msgspec.Struct, forbid_unknown_fields=True):
    """Printed transfers. Those with the same number of records are compared, each with the one before it."""

    conditions: str
    figures: list[Moved]
    share: Share | None = None


class Published(msgspec.Struct, forbid_unknown_fields=True):
    """One source."""

    title: str
    source: str
    date: str
    machine: str
    versions: dict[str, str]
    payload: dict[str, dict[str, int]] = {}
    request_response: Timing | None = None
    stream: Timing | None = None
    hello: Timing | None = None
    upload: Transfer | None = None
    download: Transfer | None = None
    backpressure: Quiet | None = None
    name: str = ""

    def provenance(self) -> str:
        """One sentence: who, when, on what."""
        versions = ", ".join(f"{what} {version}" for what, version in self.versions.items())
        return f"{self.name}: {self.title}, {self.source}, {self.date}; {versions}; {self.machine}"


def load(names: str = "all", folder: Traversable | None = None) -> list[Published]:
    """`all`, `none`, or one name of conf/published/. Raises ReportError."""
    folder = folder or files("conf") / "published"
    found = {path.name.removesuffix(".yaml"): path for path in folder.iterdir() if path.name.endswith(".yaml")}
    if names == "none":
        return []
    if names != "all" and names not in found:
        raise ReportError(f"published {names}: there is none; give none, all or one of: {', '.join(sorted(found))}")
    wanted = sorted(found) if names == "all" else [names]
    read = {name: decoded(found[name], Published, f"conf/published/{name}.yaml") for name in wanted}
    return [msgspec.structs.replace(read[name], name=name) for name in wanted]


def decoded(path: Traversable, kind: type[T], shown: str) -> T:
    """The YAML file as `kind`. Raises ReportError with the place of the mistake."""
    try:
        return msgspec.yaml.decode(path.read_bytes(), type=kind)
    except (msgspec.DecodeError, OSError) as error:
        raise ReportError(f"{shown}: {' '.join(str(error).split())}") from error
