"""Facts about this process and machine."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from runner.host import (
    available_cpus,
    cores,
    dependencies,
    environment,
    process_facts,
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

    assert set(before) == {"waited_ns", "cpu_ns", "voluntary_switches", "involuntary_switches", "peak_rss_bytes"}
    assert all(after[name] >= before[name] for name in before)
    assert after["cpu_ns"] > before["cpu_ns"]


def test_the_versions_of_everything_we_need_are_recorded() -> None:
    facts = environment()

    assert {"grpcio", "rsocket", "websockets", "protobuf", "cbor2", "msgspec", "uvloop"} <= set(facts)
    assert facts["websockets"] == version("websockets")
    assert "pytest" not in dependencies("bakeoff")
    assert facts["cpus"] == len(available_cpus())


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
