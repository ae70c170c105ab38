"""Facts about this process and machine."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runner.host import (
    available_cpus,
    cores,
    dependencies,
    environment,
    process_facts,
    reset_high_water,
    run_loop,
    usage,
    version,
)


def test_two_hardware_threads_of_one_core_are_one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    siblings = {0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3"}
    monkeypatch.setattr("runner.host.available_cpus", lambda: [0, 1, 2, 3])
    monkeypatch.setattr(Path, "read_text", lambda path: siblings[int(path.parts[5].removeprefix("cpu"))] + "\n")

    assert cores() == [0, 2]


def test_where_the_topology_cannot_be_read_every_cpu_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(path: Path) -> str:
        raise FileNotFoundError(path)

    monkeypatch.setattr("runner.host.available_cpus", lambda: [0, 1])
    monkeypatch.setattr(Path, "read_text", unreadable)

    assert cores() == [0, 1]


def test_usage_only_rises() -> None:
    before = usage()
    sum(range(100_000))
    after = usage()

    known = {"cpu_ns", "voluntary_switches", "involuntary_switches", "peak_rss_bytes"}
    assert known <= set(before) <= {*known, "waited_ns", "high_water_bytes"}  # Linux tells the last two
    assert all(after[name] >= before[name] for name in before)
    assert after["cpu_ns"] > before["cpu_ns"]


def test_the_peak_of_a_small_process_is_not_that_of_the_one_that_started_it() -> None:
    held = b"x" * 300_000_000
    script = "from runner.host import usage; print(usage()['peak_rss_bytes'])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)

    assert usage()["peak_rss_bytes"] > len(held)
    assert 5_000_000 < int(done.stdout) < 150_000_000


def test_the_peak_is_kept_when_the_high_water_is_reset() -> None:
    held = b"x" * 100_000_000
    peak = usage()["peak_rss_bytes"]
    del held
    reset_high_water()

    assert usage()["peak_rss_bytes"] >= peak


def test_the_versions_of_everything_we_need_are_recorded() -> None:
    facts = environment()

    assert {"grpcio", "rsocket", "websockets", "protobuf", "cbor2", "msgspec", "uvloop"} <= set(facts)
    assert facts["websockets"] == version("websockets")
    assert "pytest" not in dependencies("bakeoff")
    assert facts["cpus"] == len(available_cpus())


def test_what_changes_from_one_moment_to_the_next_is_no_part_of_the_environment() -> None:
    environment.cache_clear()
    before = environment()
    environment.cache_clear()

    assert environment() == before
    assert [name for name in before if re.search("mhz|load|steal|free|available|uptime", name)] == []
    wanted = {"governor", "turbo", "smt", "clock_source", "cpu_quota_pct", "memory_limit_bytes", "somaxconn"}
    assert {*wanted, "tcp_rmem", "python_build", "hostname"} <= set(before)


def test_what_is_not_installed_has_no_version() -> None:
    assert version("no-such-distribution") is None
    assert dependencies("no-such-distribution") == []


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_the_loop_that_is_named_is_the_loop_that_runs(loop: str) -> None:
    seen: dict[str, Any] = {}

    async def main() -> None:
        seen.update(process_facts())

    run_loop(main(), loop)

    assert seen["loop"] == loop
    assert seen["asyncio_debug"] is False


def test_an_unknown_loop_is_refused() -> None:
    async def main() -> None:
        raise AssertionError("must not run")

    coroutine = main()
    with pytest.raises(ValueError, match="loop: 'trio' is neither uvloop nor asyncio"):
        run_loop(coroutine, "trio")
    coroutine.close()


def test_debug_logging_of_a_library_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> bool:
        return bool(process_facts()["debug_logging"])

    monkeypatch.delenv("GRPC_TRACE", raising=False)
    monkeypatch.delenv("GRPC_VERBOSITY", raising=False)
    assert asyncio.run(main()) is False
    monkeypatch.setenv("GRPC_VERBOSITY", "debug")
    assert asyncio.run(main()) is True
