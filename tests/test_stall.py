"""A real server that is frozen for two seconds (SIGSTOP): what each kind of loop makes of it.

Bounds are one-sided: the test froze the server itself, the machine may only make it worse.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from runner import engine
from runner.process import Process
from tests.cells import cell, option
from tests.reports import Reporter

FROZEN_S = 2.0
RATE = 200
CONNECTIONS = 2
LONG_NS = 500_000_000


class FrozenServer:
    """Launches as usual; freezes the server FROZEN_S long, a moment after the driver's window has opened."""

    def __init__(self) -> None:
        self._server: Process | None = None
        self._freezer = threading.Thread(target=self._freeze)

    def __call__(self, name: str, module: str, setup: dict[str, Any]) -> Process:
        child = Process(name, module, setup)
        if name == "server":
            self._server = child
        else:
            tell = child.tell

            def told(word: str, **fields: Any) -> None:
                tell(word, **fields)
                if word == "go":
                    self._freezer.start()

            child.tell = told  # type: ignore[method-assign]
        return child

    def _freeze(self) -> None:
        assert self._server is not None
        pid = self._server._child.pid
        time.sleep(0.1)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(FROZEN_S)
        os.kill(pid, signal.SIGCONT)

    def thawed(self) -> None:
        self._freezer.join()


def run(protocol: str, load: dict[str, Any], count: int, **operation: Any) -> Any:
    frozen = FrozenServer()
    wanted = cell("request_response", protocol, operation_={"count": count, "warmup": 20, **operation}, load=load)
    try:
        return engine.run(wanted, sweep_id="S", repeat=0, position=0, overrides=[], launch=frozen)
    finally:
        frozen.thawed()


@pytest.mark.parametrize("protocol", ["websocket", "grpc"])
@pytest.mark.parametrize("arrival", ["constant", "poisson"])
def test_in_an_open_loop_a_frozen_server_is_in_the_response_time_of_every_call_due_meanwhile(
    protocol: str, arrival: str
) -> None:
    load = option("load", arrival, rate=RATE, duration_s=3.5, connections=CONNECTIONS)
    record = run(protocol, load, 1)
    response, service = record.samples["response"], record.samples["latency"]

    assert record.verdict in ("ok", "void"), record.reason  # void where the rest of the machine delayed the driver
    assert max(response) >= 1.5e9
    assert record.measurements["response_max_us"][0] >= 1.5e6
    # Due in the first 1.5 s of the stall: each waited for more than 0.5 s. Half of them, for what Poisson varies.
    assert sum(value > LONG_NS for value in response) >= RATE * 1.5 / 2
    assert sum(value > LONG_NS for value in service) <= CONNECTIONS  # which is all that service time shows
    assert record.measurements["n"][0] + record.measurements["dropped"][0] == len(response)
    assert record.errors == {}


def test_in_a_closed_loop_a_frozen_server_is_one_slow_call_for_each_connection() -> None:
    record = run("tcp", option("load", "closed", connections=CONNECTIONS), 30_000)
    values = record.samples["latency"]

    assert max(values) >= 1.5e9
    assert 1 <= sum(value > LONG_NS for value in values) <= CONNECTIONS
    assert "response" not in record.samples


def test_a_stall_is_one_call_of_two_hundred_and_the_table_says_what_a_closed_loop_cannot_see(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    record = run("websocket", option("load", "closed", connections=1), 200, service_time_ms=5)
    values = record.samples["latency"]
    report = Reporter(capsys, monkeypatch, tmp_path)
    report.write([record])

    assert (len(values), record.errors) == (200, {})
    assert max(values) >= 1.9e9
    assert record.measurements["max_us"][0] >= 1.9e6
    assert record.measurements["p99_us"][0] < record.measurements["max_us"][0] / 2  # which knows nothing of it
    [table] = report.json("request_response")["sweeps"][0]["tables"]
    assert "closed loop" in table["conditions"]
    assert any("coordinated omission" in note and "load=constant" in note for note in table["notes"])
