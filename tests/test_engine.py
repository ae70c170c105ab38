"""One run from cell to record: real processes with small counts, and processes that misbehave."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from runner.config import Cell
from runner.engine import run
from runner.process import Process
from runner.store.record import RunRecord
from tests.cells import cell, instead_of

ERROR_LOOP = "import sys, time\n"


def execute(target: Cell, launch: Any = Process) -> RunRecord:
    return run(target, sweep_id="S", repeat=2, position=3, overrides=["a=b"], launch=launch)


@pytest.mark.parametrize("protocol", ["loopback", "tcp"])
@pytest.mark.parametrize("operation", ["request_response", "stream", "backpressure"])
def test_a_good_run_is_ok_and_complete(operation: str, protocol: str) -> None:
    record = execute(cell(operation, protocol))

    assert (record.verdict, record.reason) == ("ok", "")
    assert (record.sweep_id, record.repeat, record.position, record.overrides) == ("S", 2, 3, ["a=b"])
    assert (record.operation, record.protocol) == (operation, protocol)
    assert record.errors == {}
    assert record.measurements["errors"][0] == 0
    assert record.started_at.tzinfo is UTC
    assert abs(datetime.now(UTC) - record.started_at) < timedelta(minutes=5)
    assert record.conditions["loop"] == "uvloop"
    assert record.conditions["peers_seen" if protocol == "tcp" else "in_process"] == 1
    assert ("connect_ms" in record.measurements) is ("first_call" in record.samples) is (protocol == "tcp")
    assert record.environment["python"] == ".".join(map(str, sys.version_info[:3]))


def test_every_call_of_a_run_is_in_its_samples() -> None:
    record = execute(cell("request_response", "tcp", load_={"connections": 3}))

    assert record.verdict == "ok"
    assert len(record.samples["latency"]) == 20
    assert record.measurements["n"] == (20, "calls")
    assert record.connections == 3
    assert record.conditions["peers_seen"] == 3
    for name in ("connect", "first_call"):
        assert len(record.samples[name]) == 3
        assert record.measurements[f"{name}_ms"] == (sorted(record.samples[name])[1] / 1e6, "ms")


@pytest.mark.parametrize(("work", "looked_at"), [("busy", "busy_pct"), ("wait", "driver_waited_pct")])
def test_a_core_that_a_busy_service_shares_with_the_driver_is_ours(work: str, looked_at: str) -> None:
    knobs = {"count": 30, "service_time_ms": 20.0, "service_work": work}
    record = execute(cell("request_response", "tcp", operation_=knobs, load_={"placement": "same"}))

    assert record.verdict == "ok"
    shares = {check.name for check in record.checks if check.name.endswith(("busy_pct", "waited_pct"))}
    assert looked_at in shares
    assert ("busy_pct" in shares) is (work == "busy")


def test_a_stream_is_charged_with_the_cpu_of_both_sides() -> None:
    record = execute(cell("stream", "tcp"))

    assert record.measurements["server_cpu_us"][0] > 0
    assert record.measurements["driver_cpu_us"][0] > 0
    assert record.findings["bound"] in ("server", "driver")


def test_payload_needs_no_server_and_gives_the_exact_bytes() -> None:
    record = execute(cell("payload", "loopback", "protobuf"))

    assert record.measurements["size_bytes"] == (35, "bytes")
    assert record.findings["hex"] == "0a044141504c102a197b14ae47e11a5940215c8fc2f5281c5940288080abb4fef39203"
    assert record.findings["representable"] == "yes"
    assert record.conditions["in_process"] is True


@pytest.mark.parametrize(
    ("message", "codec", "representable"),
    [
        ("not_a_number", "json", "no"),
        ("not_a_number", "cbor", "yes"),
        ("int65", "msgpack", "no"),
        ("int53", "json", "yes"),
    ],
)
def test_a_value_that_a_codec_cannot_carry_is_said_to_be_so(message: str, codec: str, representable: str) -> None:
    record = execute(cell("payload", "loopback", codec, operation_={"message": message}))

    assert record.verdict == ("ok" if representable == "yes" else "unsupported")
    assert ("is not representable: " in record.reason) is (representable == "no")
    assert record.findings["representable"] == representable
    assert ("size_bytes" in record.measurements) is (representable == "yes")


def test_a_body_over_the_limit_is_unsupported_before_anything_starts() -> None:
    def never(*_: Any) -> Process:
        raise AssertionError("nothing may start")

    target = cell("request_response", "tcp", operation_={"size_bytes": 2000}, limits_={"max_message_bytes": 1000})
    record = execute(target, launch=never)

    assert record.verdict == "unsupported"
    assert record.reason == "a message of 2,000 bytes is over the 1,000 that tcp carries"
    assert record.measurements == {}


def test_a_server_that_dies_at_birth_is_noticed_with_code_and_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = instead_of("server", "import sys\nsys.exit('no licence')", tmp_path, monkeypatch)
    record = execute(cell("stream", "tcp"), launch)

    assert (record.verdict, record.reason) == ("failed", "server exited with 1: no licence")
    assert record.measurements == {}


def test_a_server_that_is_never_ready_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launch = instead_of("server", "import time\ntime.sleep(60)", tmp_path, monkeypatch)
    monkeypatch.setattr("runner.process.STOP_S", 0.1)
    record = execute(cell("stream", "tcp", limits_={"start_s": 0.3}), launch)

    assert (record.verdict, record.reason) == (
        "failed",
        "the server was not ready within 0.3 s (limits.start_s); raise it, or ask for less",
    )


SLOW = """
import time
time.sleep(1.5)
from runner.control import run_as_process
from runner.server import main
run_as_process(main)
"""


def test_a_server_that_takes_its_time_is_waited_for_and_in_no_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = execute(cell("request_response", "tcp"), instead_of("server", SLOW, tmp_path, monkeypatch))

    assert record.verdict == "ok"
    assert record.duration_s > 1.5
    assert max(record.samples["latency"]) < 1_500_000_000


DIES = """
import os, threading
from runner.control import run_as_process
from runner import server, service
make = service.quote
def quote(symbol, seq):
    if seq == 150:
        print("out of quotes", file=__import__("sys").stderr, flush=True)
        os._exit(7)
    return make(symbol, seq)
service.quote = quote
run_as_process(server.main)
"""


def test_a_server_that_dies_in_the_middle_is_the_cause_not_the_lost_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = execute(cell("stream", "tcp"), instead_of("server", DIES, tmp_path, monkeypatch))

    assert record.verdict == "failed"
    assert record.reason.startswith("server exited with 7: out of quotes")
    assert "\n" not in record.reason


def test_a_driver_that_dies_is_a_failed_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launch = instead_of("driver", "import os\nos.kill(os.getpid(), 9)", tmp_path, monkeypatch)
    record = execute(cell("stream", "tcp"), launch)

    assert (record.verdict, record.reason) == ("failed", "driver was killed by SIGKILL")


SHORT = """
from runner.control import run_as_process
from runner import server, service
from adapters.messages import Body
def echo(self, request):
    return Body(request.data[:-1])
service.Service._echo = echo
run_as_process(server.main)
"""


def test_answers_that_are_a_byte_short_are_errors_and_the_run_is_void(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = cell("request_response", "tcp", operation_={"size_bytes": 100})
    record = execute(target, instead_of("server", SHORT, tmp_path, monkeypatch))

    assert record.verdict == "void"
    assert record.errors == {"wrong_answer": 20}
    assert record.measurements["n"] == (0, "calls")
    assert "p50_us" not in record.measurements


STALE = """
from runner.control import run_as_process
from runner import server, service
class Stale(service.Service):
    def __init__(self, **knobs):
        super().__init__(**{**knobs, "run": "yesterday"})
service.Service = Stale
run_as_process(server.main)
"""


def test_a_server_of_another_run_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = execute(cell("stream", "tcp"), instead_of("server", STALE, tmp_path, monkeypatch))

    assert record.verdict == "failed"
    assert "the server belongs to run 'yesterday'" in record.reason


def test_a_taken_port_is_an_error_before_measuring_and_the_stranger_lives() -> None:
    stranger = subprocess.Popen(
        [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert stranger.stdout is not None
        with stranger.stdout:
            port = int(stranger.stdout.readline().split(b"port ")[1].split()[0])
            record = execute(cell("stream", "tcp", port=port))

            assert record.verdict == "failed"
            assert record.reason == (
                f"port {port} on 127.0.0.1 is taken by another process; "
                "choose another port, or port=0 for any free one"
            )
            assert record.measurements == {}
            assert stranger.poll() is None
            socket.create_connection(("127.0.0.1", port), 5).close()
    finally:
        stranger.terminate()
        stranger.wait(10)


def test_ctrl_c_gives_an_interrupted_run_and_no_children(monkeypatch: pytest.MonkeyPatch) -> None:
    children: list[Process] = []

    def launch(name: str, module: str, setup: dict[str, Any]) -> Process:
        children.append(Process(name, module, setup))
        if name == "driver":
            threading.Timer(0.2, lambda: os.kill(os.getpid(), 2)).start()
        return children[-1]

    record = execute(cell("backpressure", "tcp", operation_={"quiet_s": [30.0]}), launch)

    assert (record.verdict, record.reason) == ("interrupted", "stopped by Ctrl-C")
    assert len(children) == 2
    assert all(child.exited() for child in children)


def test_durations_do_not_follow_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that is set back an hour in the middle changes no duration."""

    class BackAnHour(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime(2020, 1, 1, tzinfo=UTC)

    monkeypatch.setattr("runner.engine.datetime", BackAnHour)
    record = execute(cell("payload"))

    assert record.started_at.year == 2020
    assert 0 < record.duration_s < 60


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1"])
def test_explicit_addresses_work_or_are_refused_plainly(host: str) -> None:
    record = execute(cell("request_response", "tcp", host=host))

    if record.verdict == "failed":
        assert host == "::1"
        assert "cannot listen at host=::1" in record.reason
    else:
        assert record.verdict == "ok"


def test_what_two_processes_got_of_the_core_they_share_is_recorded() -> None:
    record = execute(cell("request_response", "tcp", load_={"placement": "same"}))
    found = {name: value for name, (value, _) in record.measurements.items()}

    assert found["busy_pct"] == pytest.approx(found["server_cpu_pct"] + found["driver_cpu_pct"])
    assert "busy_pct" not in execute(cell("stream", "tcp", load_={"placement": "free"})).measurements
