"""How late the driver's loop is: looked at on a clock of its own, kept, and a warning where it matters."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from adapters.api import Message, Method
from runner.drive import Drive
from runner.operations.api import Raw
from runner.operations.hello import Hello
from runner.operations.lag import EVERY_NS, LOOKS, lag_checks, lag_measurements, lag_noted
from runner.service import Service
from tests.drives import LIMITS, OpenGate, drive_over, load, run_over
from tests.golden_transfers import hello_run
from tests.reports import Reporter
from tests.virtual_time import VirtualTimer, clock, virtually

MS = 1_000_000
HELLO: dict[str, Any] = {"warmup": 0, "service_time_ms": 0.0, "service_work": "wait", "crosscheck": False}


def driven(timer: VirtualTimer | None, body_s: float) -> Drive:
    """A drive whose loop lag was noted for `body_s`."""

    async def body() -> Drive:
        drive = drive_over([Service()])
        drive.clock, drive.timer = clock, timer
        async with lag_noted(drive):
            await asyncio.sleep(body_s)
        return drive

    return virtually(body())


def test_the_loop_is_looked_at_every_five_milliseconds() -> None:
    assert EVERY_NS == 5 * MS
    assert driven(VirtualTimer(), 0.1023).raw.samples["loop_lag"] == [0] * 20


def test_lateness_is_from_when_the_look_was_due_and_the_next_is_due_after_it() -> None:
    lags = driven(VirtualTimer(late_ns=2 * MS), 0.0705).raw.samples["loop_lag"]

    assert lags == [2 * MS] * 10  # every 7 ms


def test_without_a_timer_that_sleeps_nothing_is_looked_at() -> None:
    assert "loop_lag" not in driven(None, 0.05).raw.samples
    spinning = VirtualTimer()
    spinning.name = "spin"
    assert "loop_lag" not in driven(spinning, 0.05).raw.samples


@pytest.mark.parametrize(
    ("lags", "latency_p90_us", "warned"),
    [
        ([0] * 17 + [6 * MS] * 3, 10_000.0, True),
        ([0] * 18 + [6 * MS] * 2, 10_000.0, False),  # a tenth of the looks: one hiccup of the machine
        ([5 * MS] * 20, 10_000.0, False),  # half
        ([1 * MS] * 20, 100.0, False),  # less than a millisecond is never held against it
    ],
)
def test_a_loop_that_is_late_by_more_than_half_the_latency_is_a_warning(
    lags: list[int], latency_p90_us: float, warned: bool
) -> None:
    [check] = lag_checks(Raw(samples={"loop_lag": lags}), latency_p90_us)

    assert (check.name, check.weight, check.passed) == ("loop_lag_p90_us", "warning", not warned)
    assert check.value == sorted(lags)[17] / 1_000


def test_too_few_looks_say_nothing() -> None:
    raw = Raw(samples={"loop_lag": [9 * MS] * (LOOKS - 1)})

    assert lag_measurements(raw) == {}
    assert lag_checks(raw, 1.0) == []
    assert lag_checks(Raw(samples={"loop_lag": [9 * MS] * LOOKS}), None) == []


class Slow(Service):
    """Answers after 10 ms."""

    async def unary(self, method: Method, request: Message) -> Message:
        await asyncio.sleep(0.010)
        return await super().unary(method, request)


def test_hello_keeps_it_and_is_warned_of_it() -> None:
    async def body() -> Drive:
        drive = Drive(
            peers=[Slow()],
            codec=drive_over([]).codec,
            load=load(),
            limits=LIMITS,
            gate=OpenGate(),
            clock=clock,
            timer=VirtualTimer(late_ns=6 * MS),
        )
        await Hello(name="hello", requests=40, **HELLO).drive(drive)
        return drive

    drive = virtually(body())
    summary = Hello(name="hello", requests=40, **HELLO).summarize(drive.raw, drive.codec, {"connections": 1})

    assert summary.measurements["loop_lag_p90_us"] == (6_000.0, "us")
    [check] = [check for check in summary.checks if check.name == "loop_lag_p90_us"]
    assert not check.passed
    assert summary.void == []
    assert check.reason == (
        "the driver's event loop was late by 6 ms (p90), where p90 of the latency is 10 ms: over 1 ms and over "
        "half of it, much of it is the driver's"
    )


async def test_a_hello_without_a_timer_has_no_lag() -> None:
    _, summary = await run_over(Hello(name="hello", requests=40, **HELLO), [Service()])

    assert "loop_lag_p90_us" not in summary.measurements


def test_the_table_names_the_rows_whose_latency_is_the_drivers_as_well(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reporter = Reporter(capsys, monkeypatch, tmp_path)
    late = {"loop_lag_p90_us": 40_000.0}  # of a p90 of 78 ms
    reporter.write(
        [*(hello_run("http", n, 5_000, **late) for n in range(2)), *(hello_run("grpc", n, 5_000) for n in range(2))]
    )
    notes = [note for note in reporter.notes("hello") if note.startswith("late: ")]

    assert len(notes) == 1
    assert "http" in notes[0]
    assert "grpc" not in notes[0]
