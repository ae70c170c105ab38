"""The quiet reader: the driver half over a peer that is called directly, and the ledger with exact numbers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest

from adapters.api import CallFailed, Message, Method
from adapters.codecs import CODECS
from adapters.messages import METHODS
from runner.operations.api import Raw
from runner.operations.backpressure import Backpressure
from runner.service import Service
from tests.drives import OpenGate, drive_over


def operation(**knobs: Any) -> Backpressure:
    return Backpressure(
        **{
            "name": "backpressure",
            "asked": 100,
            "quiet_s": [0.5, 1.0],
            "settle_s": 5.0,
            "producer": "awaited",
            "consumer": "pull",
            "mark": 64,
            "page": 1000,
            **knobs,
        }
    )


async def quiet_after(op: Backpressure, turns: int = 300) -> tuple[Service, Any]:
    """Run the driver half; the quiet period lasts `turns` turns of the loop. Returns the service and the drive."""
    service = Service(producer=op.producer_style(), mark=op.gate_mark())
    noted: dict[str, int] = {}

    async def turn() -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        noted.update(produced=service.produced, inbox=len(drive.inbox), outbound=service.outbound)

    drive = drive_over([service], gate=OpenGate(turn))
    await op.drive(drive)
    assert drive.raw.errors == {}
    assert drive.consumed == op.asked
    return service, noted


@pytest.mark.parametrize("producer", ["awaited", "credited"])
async def test_a_reader_that_asks_for_nothing_gets_nothing_made(producer: str) -> None:
    _, noted = await quiet_after(operation(producer=producer))

    assert noted == {"produced": 100, "inbox": 0, "outbound": 0}


async def test_push_makes_on_and_on() -> None:
    _, noted = await quiet_after(operation(producer="push"))

    assert noted["produced"] > 10_000
    assert noted["outbound"] == noted["produced"] - 100


async def test_gated_stops_at_its_mark() -> None:
    _, noted = await quiet_after(operation(producer="gated", mark=10))

    assert noted == {"produced": 110, "inbox": 0, "outbound": 10}


async def test_an_eager_reader_defeats_every_bound_but_credit() -> None:
    _, eager = await quiet_after(operation(consumer="eager"))
    _, credited = await quiet_after(operation(consumer="eager", producer="credited"))

    assert eager["produced"] > 1_000
    assert eager["inbox"] == eager["produced"] - 100
    assert credited == {"produced": 100, "inbox": 0, "outbound": 0}


async def test_a_stream_that_fails_before_all_that_was_asked_for_is_there_fails_the_run_with_its_error() -> None:
    class Dry(Service):
        def server_stream(self, method: Method, request: Message) -> AsyncGenerator[Message, None]:
            return self._dry(super().server_stream(method, request))

        async def _dry(self, items: AsyncGenerator[Message, None]) -> AsyncGenerator[Message, None]:
            async with aclosing(items):
                for _ in range(50):
                    yield await anext(items)
            raise CallFailed("resource_exhausted", "no more")

    gate = OpenGate()
    with pytest.raises(CallFailed, match="resource_exhausted: no more"):
        await operation().drive(drive_over([Dry()], gate=gate))
    assert gate.steps == ["ready"]  # it never went quiet


@pytest.mark.parametrize(
    ("producer", "method", "credit"),
    [
        ("awaited", "quotes.unbounded", 100),
        ("push", "quotes.unbounded", 100),
        ("gated", "quotes.unbounded.ready", 100),
        ("credited", "quotes.credited", None),
    ],
)
def test_which_method_and_which_connection_credit(producer: str, method: str, credit: int | None) -> None:
    op = operation(producer=producer)

    assert METHODS[method] in op.methods()
    assert op.credit() == credit


@pytest.mark.parametrize(
    ("quiet_s", "problem"),
    [
        ([0.5, 0.5], "quiet_s: periods must increase, got [0.5, 0.5]; write them in order, each once"),
        ([1.0, 0.5], "quiet_s: periods must increase, got [1.0, 0.5]; write them in order, each once"),
        ([0.5, float("inf")], "quiet_s: every period must be a finite number of seconds"),
    ],
)
def test_quiet_periods_must_rise(quiet_s: list[float], problem: str) -> None:
    assert operation(quiet_s=quiet_s).problems() == [problem]


def ledger(bounded_by: str = "buffers", **counts: int) -> dict[str, tuple[float, str]]:
    """The measurements of a run that ended with these counters. JSON quotes are 83 or so bytes, frames 2."""
    raw = Raw(facts={"bounded_by": bounded_by, "bound_reason": "test"})
    raw.counts = {
        "produced": 100,
        "consumed": 100,
        "inbox": 0,
        "outbound": 0,
        "backlog_messages": 0,
        "backlog_bytes": 0,
        "send_queue_bytes": 0,
        "receive_queue_bytes": 0,
        "plateau_after_ns": 0,
        **counts,
    }
    return operation().summarize(raw, CODECS["json"](), {"frame_bytes": 2}).measurements


def places(found: dict[str, tuple[float, str]]) -> list[float]:
    return [found[f"surplus_{place}"][0] for place in ("server", "client", "kernel", "unaccounted")]


def test_no_surplus_is_nowhere() -> None:
    found = ledger("demand", held=0)

    assert places(found) == [0, 0, 0, 0]
    assert found["plateau_messages"] == (0, "messages")
    assert found["plateau_bytes"] == (0, "bytes")


def test_our_own_buffers_are_exact() -> None:
    assert places(ledger(produced=1100, outbound=700, inbox=290, held=10)) == [700, 300, 0, 0]


def test_bytes_in_sockets_become_messages_by_their_mean_size() -> None:
    mean = operation().mean_bytes(CODECS["json"](), 1100) + 2
    found = ledger(produced=1100, send_queue_bytes=round(600 * mean), receive_queue_bytes=round(400 * mean), held=0)

    assert places(found) == [0, 0, 1000, 0]


def test_a_library_that_hides_its_queue_is_charged_with_what_it_read_and_kept() -> None:
    mean = operation().mean_bytes(CODECS["json"](), 1100) + 2

    assert places(ledger(produced=1100, read_bytes=round(1050 * mean))) == [0, 950, 0, 50]


def test_what_does_not_add_up_is_unaccounted() -> None:
    assert places(ledger(produced=1100, held=0)) == [0, 0, 0, 1000]
    assert places(ledger(produced=1100, outbound=1003, held=0)) == [1003, 0, 0, -3]


def test_a_plateau_is_given_in_messages_bytes_and_seconds() -> None:
    found = ledger(produced=110, outbound=10, held=0, plateau_after_ns=1_500_000_000)
    sizes = [len(CODECS["json"]().encode(q)) for q in _quotes(100, 110)]

    assert found["plateau_messages"] == (10, "messages")
    assert found["plateau_bytes"] == (sum(sizes), "bytes")
    assert found["plateau_after_s"] == (1.5, "s")


def test_what_nothing_bounds_has_no_plateau() -> None:
    assert not [name for name in ledger("nothing", produced=5000, outbound=4900, held=0) if "plateau" in name]


def test_a_watch_that_did_not_finish_is_void() -> None:
    summary = operation().summarize(Raw(), CODECS["json"](), {"frame_bytes": 2})

    assert summary.void == ["the watch did not finish"]


def test_a_watch_that_could_not_tell_is_void_and_gives_no_bound() -> None:
    raw = Raw(facts={"bounded_by": "", "bound_reason": "too few answers to tell: 5 in the last 1 s"})
    raw.counts = {"produced": 5000}
    summary = operation().summarize(raw, CODECS["json"](), {"frame_bytes": 2})

    assert summary.void == ["too few answers to tell: 5 in the last 1 s"]
    assert "bounded_by" not in summary.findings
    assert "plateau_messages" not in summary.measurements


def _quotes(start: int, end: int) -> list[Any]:
    from runner.quotes import quote

    return [quote("AAPL", seq) for seq in range(start, end)]
