"""hello: exact counts on both sides, who was the limit, what a service time allows, and another tool's word."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from adapters.api import CallFailed, Message, Method
from runner.engine import run
from runner.operations.api import Raw
from runner.operations.crosscheck import NEITHER, crosscheck
from runner.operations.hello import Hello
from runner.service import Service
from runner.store.record import RunRecord
from tests.cells import cell
from tests.drives import run_over


def hello(**knobs: Any) -> Hello:
    given = {"requests": 100, "warmup": 10, "service_time_ms": 0.0, "service_work": "wait", "crosscheck": False}
    return Hello(name="hello", **{**given, **knobs})


def execute(protocol: str, **parts: Any) -> RunRecord:
    return run(cell("hello", protocol, **parts), sweep_id="S", repeat=1, position=1, overrides=[])


@pytest.mark.parametrize(("requests", "connections"), [(100, 3), (7, 3), (101, 25)])
async def test_the_number_of_requests_is_exact_and_shared_by_all_connections(
    requests: int, connections: int
) -> None:
    service = Service()
    drive, summary = await run_over(hello(requests=requests), [service] * connections)

    assert len(drive.raw.samples["latency"]) == requests
    assert service.hellos == requests + 10
    assert summary.measurements["n"] == (requests, "requests")


class Failing(Service):
    """Every fourth request fails."""

    async def unary(self, method: Method, request: Message) -> Message:
        reply = await super().unary(method, request)
        if method.name == "hello" and not self.hellos % 4:
            raise CallFailed("unavailable", "try again")
        return reply


async def test_what_failed_is_counted_by_kind_and_no_answer() -> None:
    drive, summary = await run_over(hello(warmup=0), [Failing()])

    assert drive.raw.errors == {"unavailable": 25}
    assert summary.measurements["n"] == (75, "requests")
    assert summary.measurements["errors"] == (25, "requests")
    assert any("25 of 100 failed" in reason for reason in summary.void)


@pytest.mark.parametrize(
    ("seen", "errors", "void"),
    [(110, {}, False), (109, {}, True), (330, {}, True), (108, {"timeout": 2}, False), (107, {"timeout": 2}, True)],
)
def test_the_servers_own_count_must_equal_ours(seen: int, errors: dict[str, int], void: bool) -> None:
    raw = Raw(samples={"latency": [1000] * (100 - sum(errors.values()))}, errors=errors, window_ns=100_000)
    raw.counts |= {"calls": 100, "hellos": seen}
    reasons = hello().summarize(raw, cell("hello", "http").adapter.codec, {"connections": 1}).void

    assert (
        any(reason.startswith(f"the server answered {seen} requests, 110 were made") for reason in reasons) is void
    )


@pytest.mark.parametrize(("placement", "void"), [("split", True), ("same", False)])
def test_a_driver_that_was_the_limit_makes_the_row_void(placement: str, void: bool) -> None:
    second = 1_000_000_000
    raw = Raw(samples={"latency": [10_000_000] * 100}, window_ns=second, counts={"calls": 100})
    raw.usage = {"driver": {"cpu_ns": 950_000_000}, "server": {"cpu_ns": 100_000_000}}
    conditions = {"connections": 1, "placement": placement}
    summary = hello().summarize(raw, cell("hello", "http").adapter.codec, conditions)

    assert ("driver CPU 95 %: the driver was the limit (over 90 % is void)" in summary.void) is void
    assert summary.measurements["requests_per_server_cpu_s"] == (1000.0, "1/s")


@pytest.mark.parametrize(("n", "word"), [(200, "holds"), (240, "does not hold")])
def test_the_law_of_a_pool_is_said_with_both_numbers(n: int, word: str) -> None:
    raw = Raw(samples={"latency": [1_500_000_000] * n}, window_ns=1_000_000_000, counts={"calls": n})
    conditions = {"connections": 300, "workers": 20, "model": "threads"}
    summary = hello(requests=n, service_time_ms=100.0).summarize(
        raw, cell("hello", "http").adapter.codec, conditions
    )

    assert summary.findings["law"] == f"{word}: {n}/s, at most 20 / 100 ms = 200/s"
    assert summary.measurements["workers"] == (20, "threads")
    assert summary.findings["model"] == "threads"


@pytest.mark.parametrize("protocol", ["http", "http_threads", "grpc", "grpc_threads"])
def test_hello_is_measured_over_real_connections(protocol: str) -> None:
    record = execute(protocol, load_={"connections": 7})

    assert (record.verdict, record.reason) == ("ok", "")
    assert record.measurements["n"] == (60, "requests")
    assert record.measurements["connections_opened"] == (7, "connections")
    [seen] = [check for check in record.checks if check.name == "requests_seen"]
    assert (seen.value, seen.least, seen.most) == (66, 66, 66)
    assert record.findings["model"] == ("threads" if "threads" in protocol else "event loop")


def test_three_hundred_connections_are_in_flight_together() -> None:
    """A pool that queued behind itself would take the requests in turns."""
    knobs = {"requests": 300, "warmup": 0, "service_time_ms": 500}
    record = execute("http", load_={"connections": 300}, operation_=knobs)

    assert (record.verdict, record.reason) == ("ok", "")
    assert record.measurements["connections_opened"] == (300, "connections")
    assert record.measurements["peak_in_flight"] == (300, "requests")
    assert record.measurements["n"] == (300, "requests")


def test_a_pool_of_workers_answers_so_many_at_once() -> None:
    knobs = {"requests": 60, "warmup": 0, "service_time_ms": 50}
    threads = execute("http_threads", protocol_={"workers": 5}, load_={"connections": 30}, operation_=knobs)
    loop = execute("http", load_={"connections": 30}, operation_=knobs)

    assert [record.verdict for record in (threads, loop)] == ["ok", "ok"]
    assert threads.measurements["peak_in_flight"] == (5, "requests")
    assert loop.measurements["peak_in_flight"] == (30, "requests")
    assert threads.findings["law"].startswith("holds: ")
    assert "at most 5 / 50 ms = 100/s" in threads.findings["law"]
    # 60 requests of 50 ms through 5 workers take 600 ms at the least.
    assert threads.measurements["requests_per_s"][0] <= 101


def test_more_connections_than_open_files_are_refused_up_front(tmp_path: Path) -> None:
    def few_files() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))

    command = [sys.executable, "-m", "runner", "scenario=hello", "load.connections=300", "operation.requests=300"]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    done = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, preexec_fn=few_files
    )

    assert done.returncode == 2
    assert "load.connections" in done.stderr
    assert "300" in done.stderr
    assert done.stderr.count("\n") == 1


def tool(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{script}\n")
    path.chmod(0o755)


def test_the_tool_that_is_installed_is_asked_with_as_many_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool(tmp_path, "wrk", "import sys; print(sys.argv[1:]); print('Requests/sec:  12345.67')")
    monkeypatch.setenv("PATH", str(tmp_path))

    assert crosscheck("http://127.0.0.1:1/", 25, 1000, None) == {
        "crosscheck_tool": "wrk",
        "crosscheck_requests_per_s": "12345.67",
    }


def test_the_other_tools_rate_is_read_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path, "h2load", "print('finished in 1.05s, 9876.50 req/s, 1.2MB/s')")
    monkeypatch.setenv("PATH", str(tmp_path))

    assert crosscheck("http://127.0.0.1:1/", 25, 1000, None) == {
        "crosscheck_tool": "h2load",
        "crosscheck_requests_per_s": "9876.50",
    }


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("raise SystemExit(3)", "none: wrk failed (exit code 3)"),
        ("print('hm')", "none: wrk failed (exit code 0)"),
        (
            "print('  Non-2xx or 3xx responses: 7\\nRequests/sec: 9.5')",
            "none: not every request of wrk was answered (Non-2xx or 3xx responses: 7)",
        ),
    ],
)
def test_a_tool_that_fails_is_said_and_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    tool(tmp_path, "wrk", script)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert crosscheck("http://127.0.0.1:1/", 1, 1, None) == {"crosscheck_tool": said}


def test_without_a_tool_or_without_http_nothing_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert crosscheck("http://127.0.0.1:1/", 1, 1, None) == {"crosscheck_tool": NEITHER}
    assert crosscheck(None, 1, 1, None) == {"crosscheck_tool": "none: the tools speak HTTP only"}
