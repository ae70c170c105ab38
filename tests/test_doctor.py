"""`bakeoff doctor`: what each check says of a made-up machine, and what follows from it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.__main__ import main
from runner.doctor import clock, command, interpreter, load, network, processor, room
from runner.doctor.finding import Finding, Sight

GOOD = {
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: Test CPU 3000\n",
    "proc/stat": "cpu  100 0 0 900 0 0 0 0 0 0\ncpu0 50 0 0 450\ncpu1 50 0 0 450\nctxt 1\n",
    "proc/loadavg": "0.10 0.20 0.30 1/100 4242\n",
    "proc/meminfo": "MemTotal: 9000000 kB\nMemAvailable:    8000000 kB\n",
    "proc/self/timerslack_ns": "50000\n",
    "proc/self/cgroup": "0::/\n",
    "proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
    "proc/sys/net/ipv4/tcp_wmem": "4096\t16384\t4194304\n",
    "proc/sys/net/core/somaxconn": "4096\n",
    "sys/fs/cgroup/cpu.max": "max 100000\n",
    "sys/fs/cgroup/memory.max": "max\n",
    "sys/devices/system/cpu/smt/active": "0\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "1\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
}
CONSTRAINTS = "uvloop==0.23.0\ngrpcio==1.85.3\nnumpy==2.0.0\n"
VERSIONS = {"uvloop": "0.23.0", "grpcio": "1.85.3", "numpy": "1.0"}
PYTHON: dict[str, Any] = {
    "dev_mode": False,
    "debug_build": False,
    "build": "pgo lto",
    "gc_enabled": True,
    "installed": VERSIONS.get,
}


def put(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def ticking(step_ns: int = 50) -> Any:
    return itertools.count(0, step_ns).__next__


@pytest.fixture
def sight(tmp_path: Path) -> Sight:
    """A quiet machine with two cores, on which everything is well."""
    put(tmp_path, GOOD)

    def a_second_passes(seconds: float) -> None:
        put(tmp_path, {"proc/stat": "cpu  102 0 0 1098 0 0 0 0 0 0\ncpu0 51\ncpu1 51\n"})

    return Sight(tmp_path, {}, ticking(), a_second_passes, [0, 1], [0, 1], 2048, tmp_path / "results.db")


@pytest.fixture
def constraints(tmp_path: Path) -> Path:
    put(tmp_path, {"constraints.txt": CONSTRAINTS})
    return tmp_path / "constraints.txt"


def everything(sight: Sight, constraints: Path) -> list[Finding]:
    return [
        *processor.findings(sight),
        *load.findings(sight),
        *clock.findings(sight),
        *network.findings(sight, 1024),
        *room.findings(sight, 10**10),
        *interpreter.findings(sight, constraints=constraints, **PYTHON),
    ]


def named(findings: list[Finding], name: str) -> Finding:
    (found,) = (finding for finding in findings if finding.name == name)
    return found


def test_on_a_machine_on_which_all_is_well_every_check_is_fit(sight: Sight, constraints: Path) -> None:
    found = everything(sight, constraints)

    assert {finding.level for finding in found} == {"fit"}
    assert {finding.name: finding.found for finding in found} == {
        "CPU": "Test CPU 3000",
        "CPUs we may use": "2 of 2",
        "cores we may use": "2",
        "CPU quota": "none",
        "SMT": "off",
        "governor": "performance",
        "turbo": "off",
        "load average": "0.1 on 2 CPUs",
        "CPU used by others": "1 % of all CPUs",
        "steal": "0.0 %",
        "clock source": "tsc",
        "clock resolution": "50 ns",
        "clock reading": "50 ns each",
        "timer slack": "50000 ns",
        "tcp_rmem": "4096 131072 6291456",
        "tcp_wmem": "4096 16384 4194304",
        "somaxconn": "4096",
        "open files": "1024 at most",
        "proxies": "none set",
        "free memory": "7,812 MB",
        "memory limit": "none",
        "free disk": "9,536 MB",
        "Python": named(found, "Python").found,
        "debug modes": "none",
        "garbage collector": "on; bakeoff freezes what is there after the warm-up",
        "uvloop": "0.23.0",
        "library versions": named(found, "library versions").found,
    }


def test_what_a_machine_does_not_tell_is_not_guessed(sight: Sight, tmp_path: Path) -> None:
    silent = replace(sight, root=tmp_path / "nowhere", nap=lambda _: None, database=None)
    found = everything(silent, tmp_path / "no-such-file")

    assert {finding.name for finding in found if finding.level == "not told"} == {
        *("CPU", "CPU quota", "SMT", "governor", "turbo", "load average", "CPU used by others", "steal"),
        *("clock source", "timer slack", "tcp_rmem", "tcp_wmem", "somaxconn", "free memory", "memory limit"),
        "library versions",
    }
    assert {finding.found for finding in found if finding.level == "not told"} == {""}


@pytest.mark.parametrize(
    ("file", "text", "name", "level", "found"),
    [
        ("proc/loadavg", "2.50 1 1 1/1 1", "load average", "unfit", "2.5 on 2 CPUs"),
        ("proc/loadavg", "1.50 1 1 1/1 1", "load average", "note", "1.5 on 2 CPUs"),
        ("sys/fs/cgroup/cpu.max", "150000 100000", "CPU quota", "unfit", "1.5 CPUs"),
        ("sys/fs/cgroup/cpu.max", "200000 100000", "CPU quota", "fit", "2 CPUs"),
        ("sys/devices/system/cpu/smt/active", "1", "SMT", "note", "on"),
        (
            "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
            "powersave",
            "governor",
            "note",
            "performance, powersave",
        ),
        ("sys/devices/system/cpu/intel_pstate/no_turbo", "0", "turbo", "note", "on"),
        (
            "sys/devices/system/clocksource/clocksource0/current_clocksource",
            "hpet",
            "clock source",
            "note",
            "hpet",
        ),
        ("proc/self/timerslack_ns", "1000000", "timer slack", "note", "1000000 ns"),
        ("proc/sys/net/ipv4/tcp_rmem", "4096 8192 6291456", "tcp_rmem", "note", "4096 8192 6291456"),
        ("proc/sys/net/core/somaxconn", "128", "somaxconn", "note", "128"),
        ("proc/meminfo", "MemAvailable: 2097152 kB", "free memory", "note", "2,048 MB"),
        ("sys/fs/cgroup/memory.max", str(512 * 2**20), "memory limit", "note", "512 MB"),
    ],
)
def test_one_thing_that_is_not_well_is_the_only_one_named(
    sight: Sight, constraints: Path, file: str, text: str, name: str, level: str, found: str
) -> None:
    put(sight.root, {file: text})
    findings = everything(sight, constraints)
    seen = named(findings, name)

    assert (seen.level, seen.found) == (level, found)
    assert {finding.name for finding in findings if finding.level != "fit"} <= {name}
    assert bool(seen.wanted) is bool(seen.remedy) is (level != "fit")
    assert "\n" not in seen.remedy


def test_the_remedy_is_a_command_with_the_values_of_this_machine(sight: Sight) -> None:
    put(sight.root, {"proc/sys/net/ipv4/tcp_wmem": "1 2 3", "proc/meminfo": "MemAvailable: 1048576 kB"})

    assert named(network.findings(sight), "tcp_wmem").remedy == 'sudo sysctl -w net.ipv4.tcp_wmem="4096 16384 3"'
    assert named(room.findings(sight), "free memory").remedy.startswith("limits.max_rss_mb=512, ")


@pytest.mark.parametrize(
    ("stat", "name", "level", "found"),
    [
        ("cpu  120 0 0 1080 0 0 0 0", "CPU used by others", "note", "10 % of all CPUs"),
        ("cpu  200 0 0 1000 0 0 0 0", "CPU used by others", "unfit", "50 % of all CPUs"),
        ("cpu  100 0 0 1098 0 0 0 2", "steal", "note", "1.0 %"),
        ("cpu  100 0 0 1080 0 0 0 20", "steal", "unfit", "10.0 %"),
    ],
)
def test_a_second_of_looking_finds_who_else_is_there(
    sight: Sight, stat: str, name: str, level: str, found: str
) -> None:
    naps = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        put(sight.root, {"proc/stat": stat})

    seen = named(load.findings(replace(sight, nap=nap)), name)

    assert (seen.level, seen.found, naps) == (level, found, [1.0])


@pytest.mark.parametrize(
    ("step_ns", "resolution", "reading"),
    [(1_000, "fit", "note"), (1_001, "unfit", "note"), (500, "fit", "fit"), (0, "unfit", "fit")],
)
def test_a_coarse_clock_is_unfit_and_a_dear_one_is_noted(
    sight: Sight, step_ns: int, resolution: str, reading: str
) -> None:
    found = clock.findings(replace(sight, clock=ticking(step_ns)))

    assert named(found, "clock resolution").level == resolution
    assert named(found, "clock reading").level == reading


def test_one_cpu_is_unfit_and_two_threads_of_one_core_are_noted(sight: Sight) -> None:
    one = processor.findings(replace(sight, cpus=[1], cores=[1]))
    siblings = processor.findings(replace(sight, cores=[0]))

    assert named(one, "CPUs we may use").level == "unfit"
    assert named(one, "CPUs we may use").found == "1 of 2"
    assert (named(siblings, "CPUs we may use").level, named(siblings, "cores we may use").level) == ("fit", "note")


def test_limits_of_the_older_control_groups_are_read_too(sight: Sight) -> None:
    put(
        sight.root,
        {
            "proc/self/cgroup": "4:memory:/pod/box\n1:cpu,cpuacct:/pod/box\n",
            "sys/fs/cgroup/cpu,cpuacct/pod/box/cpu.cfs_quota_us": "-1",
            "sys/fs/cgroup/cpu,cpuacct/pod/box/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/cpu,cpuacct/pod/cpu.cfs_quota_us": "50000",
            "sys/fs/cgroup/cpu,cpuacct/pod/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/memory/pod/box/memory.limit_in_bytes": str(100 * 2**20),
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
        },
    )

    assert named(processor.findings(sight), "CPU quota").found == "0.5 CPUs"  # that of the group above
    assert named(room.findings(sight), "memory limit").found == "100 MB"


def test_too_few_open_files_for_three_hundred_connections_are_noted(sight: Sight) -> None:
    found = {limit: named(network.findings(sight, limit), "open files").level for limit in (128, 349, 350)}

    assert found == {128: "note", 349: "note", 350: "fit"}


def test_proxies_are_ignored_and_it_is_said(sight: Sight) -> None:
    behind = replace(sight, environ={"HTTPS_PROXY": "http://proxy:3128", "http_proxy": ""})
    seen = named(network.findings(behind), "proxies")

    assert (seen.level, seen.found) == ("fit", "HTTPS_PROXY: ignored, every protocol connects directly")


@pytest.mark.parametrize(
    ("environ", "changes", "name"),
    [
        ({"PYTHONASYNCIODEBUG": "1"}, {}, "PYTHONASYNCIODEBUG"),
        ({"PYTHONDEVMODE": "1"}, {"dev_mode": True}, "PYTHONDEVMODE"),
        ({}, {"dev_mode": True}, "python -X dev"),
        ({"PYTHONTRACEMALLOC": "1"}, {}, "PYTHONTRACEMALLOC"),
        ({"GRPC_VERBOSITY": "debug"}, {}, "GRPC_VERBOSITY"),
        ({"GRPC_TRACE": "all"}, {}, "GRPC_TRACE"),
        ({}, {"debug_build": True}, "Python"),
    ],
)
def test_whatever_debugs_is_unfit(
    sight: Sight, constraints: Path, environ: dict[str, str], changes: dict[str, Any], name: str
) -> None:
    found = interpreter.findings(replace(sight, environ=environ), constraints=constraints, **{**PYTHON, **changes})

    assert [finding.name for finding in found if finding.level == "unfit"] == [name]


def test_another_build_collector_or_version_is_noted(sight: Sight, constraints: Path) -> None:
    other = {**VERSIONS, "grpcio": "1.60.0", "uvloop": None}
    changes = {**PYTHON, "build": "plain", "gc_enabled": False, "installed": other.get}
    found = interpreter.findings(sight, constraints=constraints, **changes)

    assert {finding.name: finding.level for finding in found} == {
        "Python": "note",
        "debug modes": "fit",
        "garbage collector": "note",
        "uvloop": "note",
        "library versions": "note",
    }
    # numpy is loaded by no measured process.
    seen = named(found, "library versions").found
    assert set(seen.split("; ")) == {"grpcio 1.60.0, not 1.85.3", "uvloop absent, not 0.23.0"}


@pytest.fixture
def made_up(sight: Sight, constraints: Path, monkeypatch: pytest.MonkeyPatch) -> Sight:
    """The machine that the command sees."""
    monkeypatch.setattr(command, "Sight", lambda **_: sight)
    python = lambda sight: interpreter.findings(sight, constraints=constraints, **PYTHON)  # noqa: E731
    groups = {
        **command.GROUPS,
        "Python": python,
        "network": lambda sight: network.findings(sight, 1024),
        "room": lambda sight: room.findings(sight, 10**10),
    }
    monkeypatch.setattr(command, "GROUPS", groups)
    return sight


def test_the_exit_code_is_zero_where_all_is_fit(made_up: Sight, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    out, err = capsys.readouterr()

    assert (out.splitlines()[-1], err) == ("fit to measure (0 notes, 0 not told)", "")
    assert "fit       governor            performance" in out.splitlines()


def test_notes_alone_are_fit(made_up: Sight, capsys: pytest.CaptureFixture[str]) -> None:
    put(made_up.root, {"sys/devices/system/cpu/smt/active": "1"})
    (made_up.root / "sys/devices/system/cpu/intel_pstate/no_turbo").unlink()

    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "fit to measure (1 note, 1 not told)"
    at = lines.index("note      SMT                 on")
    assert lines[at + 2].strip() == "remedy: echo off | sudo tee /sys/devices/system/cpu/smt/control"
    assert "not told  turbo" in lines


def test_the_exit_code_is_one_where_measurements_would_be_wrong(
    made_up: Sight, capsys: pytest.CaptureFixture[str]
) -> None:
    put(made_up.root, {"proc/loadavg": "9 9 9 1/1 1", "sys/fs/cgroup/cpu.max": "50000 100000"})

    assert main(["doctor"]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "not fit to measure: CPU quota and load average (0 notes, 0 not told)"


def test_machines_read_the_same(made_up: Sight, capsys: pytest.CaptureFixture[str]) -> None:
    put(made_up.root, {"proc/loadavg": "9 9 9 1/1 1"})

    assert main(["doctor", "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["fit"] is False
    (seen,) = (check for check in told["checks"] if check["name"] == "load average")
    assert seen == {
        "group": "load",
        "name": "load average",
        "level": "unfit",
        "found": "9 on 2 CPUs",
        "wanted": "below 0.5",
        "remedy": "stop other programs, and wait a minute: it is an average",
    }


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--formt", "json"], "--formt: not understood; did you mean '--format'? (bakeoff doctor --help)"),
        (["--format", "xml"], "argument --format: invalid choice: 'xml'"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_two(
    made_up: Sight, capsys: pytest.CaptureFixture[str], argv: list[str], said: str
) -> None:
    assert main(["doctor", *argv]) == 2
    out, err = capsys.readouterr()

    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"bakeoff doctor: {said}")


def test_the_memory_that_is_asked_for_is_that_of_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    assert command._max_rss_mb() == 2048
