"""What the kernel tells of the machine's settings: clock speed, clock, limits. Recorded with each run, and judged
by `bakeoff doctor`. What cannot be read is None, never a guess; nothing here changes from one moment to the next.

Every function takes the folder that holds proc and sys, which is / unless a test has made one.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path("/")
_CPUS = "sys/devices/system/cpu"
_UNLIMITED_BYTES = 2**62  # cgroup v1 says "no limit" as the most pages that there could be


class Limit(NamedTuple):
    """`told`: whether the kernel said anything. `value`: the least limit that holds for us, None for no limit."""

    told: bool
    value: int | None


def read(root: Path, path: str) -> str | None:
    """The text of a file below `root`, None where it cannot be read."""
    try:
        return (root / path).read_text().strip()
    except (OSError, ValueError):
        return None


def sysctl(name: str, root: Path = ROOT) -> str | None:
    """A setting of the kernel (`net/core/somaxconn`), its words apart by one space."""
    text = read(root, f"proc/sys/{name}")
    return None if text is None else " ".join(text.split())


def governor(root: Path = ROOT) -> str | None:
    """Who chooses the clock speed: performance, powersave, schedutil; several where the CPUs differ."""
    files = sorted((root / _CPUS).glob("cpu[0-9]*/cpufreq/scaling_governor"))
    found = {text for file in files if (text := read(file.parent, file.name))}
    return ", ".join(sorted(found)) or None


def turbo(root: Path = ROOT) -> str | None:
    """on or off: whether the clock may pass its nominal speed while the CPU is cool.

    Source: intel_pstate/no_turbo, or cpufreq/boost of the other drivers (Documentation/admin-guide/pm).
    """
    intel, other = read(root, f"{_CPUS}/intel_pstate/no_turbo"), read(root, f"{_CPUS}/cpufreq/boost")
    if intel in ("0", "1"):
        return "on" if intel == "0" else "off"
    return {"0": "off", "1": "on"}.get(other or "")


def smt(root: Path = ROOT) -> str | None:
    """on or off: whether two hardware threads share a core."""
    return {"0": "off", "1": "on"}.get(read(root, f"{_CPUS}/smt/active") or "")


def clock_source(root: Path = ROOT) -> str | None:
    """What the kernel reads the time from: tsc, kvm-clock, hpet."""
    return read(root, "sys/devices/system/clocksource/clocksource0/current_clocksource") or None


def cpu_quota_pct(root: Path = ROOT) -> Limit:
    """CPU time that our control groups may use, in % of one CPU.

    Source: cpu.max (Documentation/admin-guide/cgroup-v2.rst), or cpu.cfs_quota_us and cpu.cfs_period_us before it.
    """
    found: list[float | None] = []
    for folder in _groups(root, ""):
        words = (read(folder, "cpu.max") or "").split()
        if len(words) == 2:
            found.append(None if words[0] == "max" else 100 * int(words[0]) / int(words[1]))
    for folder in _groups(root, "cpu"):
        quota, period = read(folder, "cpu.cfs_quota_us"), read(folder, "cpu.cfs_period_us")
        if quota and period:
            found.append(None if int(quota) < 0 else 100 * int(quota) / int(period))
    return _least(found)


def memory_limit_bytes(root: Path = ROOT) -> Limit:
    """Memory that our control groups may use, in bytes. Source: memory.max, or memory.limit_in_bytes before it."""
    found: list[float | None] = []
    for folder in _groups(root, ""):
        if said := read(folder, "memory.max"):
            found.append(None if said == "max" else int(said))
    for folder in _groups(root, "memory"):
        if said := read(folder, "memory.limit_in_bytes"):
            found.append(None if int(said) >= _UNLIMITED_BYTES else int(said))
    return _least(found)


def _least(found: list[float | None]) -> Limit:
    limits = [value for value in found if value is not None]
    return Limit(bool(found), round(min(limits)) if limits else None)


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """The folders of our control group and of all above it. `controller`: "" for version 2, which has one tree."""
    for line in (read(root, "proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller not in controllers.split(","):
            continue
        tops = ("sys/fs/cgroup", "sys/fs/cgroup/unified") if not controller else (f"sys/fs/cgroup/{controllers}",)
        for top in tops:
            below = root / top / path.lstrip("/")
            # A container may see itself at the top, whatever its path outside is.
            for folder in (below, *below.parents):
                if folder.is_relative_to(root / top):
                    yield folder


def python_build(arguments: str | None = None, debug: bool | None = None) -> str | None:
    """How the interpreter was built: some of debug, pgo and lto; plain for none of them. None where not recorded.

    `arguments`, `debug`: what the build was configured with; by default what this interpreter says.
    """
    arguments = sysconfig.get_config_var("CONFIG_ARGS") if arguments is None else arguments
    debug = bool(sysconfig.get_config_var("Py_DEBUG")) if debug is None else debug
    if arguments is None:
        return "debug" if debug else None
    flags = {
        "debug": debug,
        "pgo": "--enable-optimizations" in arguments,
        "lto": "--with-lto" in arguments and "--with-lto=no" not in arguments,
    }
    return " ".join(name for name, on in flags.items() if on) or "plain"


def settings(root: Path = ROOT) -> dict[str, str | int | None]:
    """All of it, by the names of the columns of the view `conditions`."""
    backlog = sysctl("net/core/somaxconn", root)
    return {
        "governor": governor(root),
        "turbo": turbo(root),
        "smt": smt(root),
        "clock_source": clock_source(root),
        "cpu_quota_pct": cpu_quota_pct(root).value,
        "memory_limit_bytes": memory_limit_bytes(root).value,
        "tcp_rmem": sysctl("net/ipv4/tcp_rmem", root),
        "tcp_wmem": sysctl("net/ipv4/tcp_wmem", root),
        "somaxconn": int(backlog) if backlog and backlog.isdigit() else None,
        "python_build": python_build(),
    }
