"""Facts about this process and this machine: what is recorded with each run. Linux answers most; elsewhere a
fact that cannot be read is None, never 0.
"""

from __future__ import annotations

import asyncio
import functools
import importlib.metadata
import logging
import os
import platform
import re
import resource
import sys
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from runner import machine

PAGE_BYTES = resource.getpagesize()

# What every measured process is started with: glibc gives asyncio's 256 KiB read buffers back to the kernel
# after every read (mmap, munmap) unless its thresholds are above that; it costs a third of a small message.
MALLOC = {"MALLOC_MMAP_THRESHOLD_": "4194304", "MALLOC_TRIM_THRESHOLD_": "16777216"}

# What no measured process loads (an import contract says so): another version of it changes no measurement.
SUPERVISOR_ONLY = frozenset(
    {"hydra-core", "omegaconf", "sqlalchemy", "tabulate", "hdrhistogram", "numpy", "rich", "wcwidth"}
)


def usage() -> dict[str, int]:
    """CPU time of all threads, context switches and peak memory of this process so far; the high water of its
    memory since reset_high_water.
    """
    spent = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "cpu_ns": time.process_time_ns(),
        "voluntary_switches": spent.ru_nvcsw,
        "involuntary_switches": spent.ru_nivcsw,
        "peak_rss_bytes": _peak_rss_bytes(spent.ru_maxrss),
        **_high_water(),
        **_waited(),
    }


def _waited() -> dict[str, int]:
    """waited_ns: how long this process's threads were runnable without a CPU so far. {} where that is not told.

    Source: the second number of /proc/<pid>/task/<tid>/schedstat (Linux, Documentation/scheduler/sched-stats.rst).
    """
    try:
        threads = [task / "schedstat" for task in Path("/proc/self/task").iterdir()]
        return {"waited_ns": sum(int(path.read_text().split()[1]) for path in threads)}
    except (OSError, IndexError, ValueError):
        return {}


def machine_ticks() -> tuple[int, int] | None:
    """CPU time of the whole machine so far, in ticks: stolen by its host, and in all. None where that is not told.

    Source: the first line of /proc/stat (proc(5)): user nice system idle iowait irq softirq steal.
    """
    try:
        ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        return ticks[7], sum(ticks)
    except (OSError, IndexError, ValueError):
        return None


def stolen(before: tuple[int, int] | None, after: tuple[int, int] | None) -> dict[str, int]:
    """steal_ppm: millionths of the machine's CPU time between two readings that its host took. {} if unknown."""
    if before is None or after is None or after[1] <= before[1]:
        return {}
    return {"steal_ppm": 1_000_000 * (after[0] - before[0]) // (after[1] - before[1])}


def load_average() -> float | None:
    """Processes that ran or wanted to, on average over the last minute."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def reset_high_water() -> None:
    """From here on, the high water of usage() is the most that this process holds from now on.

    The kernel keeps it (VmHWM, reset through clear_refs: proc(5)), so no peak between two looks is missed, and
    nothing runs in the measured process to look. Where it cannot be reset, usage() says nothing of it.
    """
    global _high_water_known, _peak_before_bytes
    try:
        _peak_before_bytes = max(_peak_before_bytes, _vm_hwm_bytes() or 0)
        Path("/proc/self/clear_refs").write_text("5")
        _high_water_known = True
    except OSError:
        _high_water_known = False


_high_water_known = False
_peak_before_bytes = 0  # the most that this process held before its high water was reset


def _high_water() -> dict[str, int]:
    known = _vm_hwm_bytes() if _high_water_known else None
    return {} if known is None else {"high_water_bytes": known}


def _vm_hwm_bytes() -> int | None:
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None


def _peak_rss_bytes(ru_maxrss: int) -> int:
    """The most that this process has held. Not ru_maxrss where there is better: it survives exec, so that a small
    child is said to have held what its parent did (getrusage(2)).
    """
    own = _vm_hwm_bytes()
    if own is not None:
        return max(own, _peak_before_bytes)
    return ru_maxrss * (1 if sys.platform == "darwin" else 1024)  # bytes there, KiB elsewhere


def rss_bytes(pid: int | str = "self") -> int | None:
    """Resident memory of a process now, of this one by default."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES
    except (OSError, IndexError, ValueError):
        return None


def available_cpus() -> list[int]:
    """The CPUs that this process may use, ascending."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def cores() -> list[int]:
    """One available CPU per physical core, ascending: two hardware threads of one core are not two cores.

    Source: topology/thread_siblings_list in /sys/devices/system/cpu; where that cannot be read, every CPU counts.
    """
    found: dict[str, int] = {}
    for cpu in available_cpus():
        try:
            path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
            found.setdefault(path.read_text().strip(), cpu)
        except OSError:
            found[str(cpu)] = cpu
    return sorted(found.values())


def pin(cpus: Sequence[int] | None) -> None:
    """Stay on `cpus`, threads that start later included; None leaves it to the scheduler."""
    if cpus and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cpus)


@functools.cache
def environment() -> dict[str, str | int | None]:
    """The machine and the versions: what must be equal for two rows to be comparable."""
    facts: dict[str, str | int | None] = {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "kernel": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "hostname": platform.node(),
        "cpu": _cpu_model(),
        "cpus": len(available_cpus()),
        "memory_bytes": _memory_bytes(),
        **machine.settings(),
        "python_debug": int(sys.flags.dev_mode or hasattr(sys, "gettotalrefcount")),
        "asyncio_debug": int(bool(os.environ.get("PYTHONASYNCIODEBUG")) or sys.flags.dev_mode),
    }
    for name in ("bakeoff", *dependencies("bakeoff")):
        if name not in SUPERVISOR_ONLY:
            facts[name] = version(name)
    return facts


def dependencies(distribution: str) -> list[str]:
    """The names of what a distribution needs at run time, extras left out; [] when it is not installed."""
    try:
        needed = importlib.metadata.requires(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return [re.split(r"[^\w.-]", line, maxsplit=1)[0].lower() for line in needed if "extra ==" not in line]


def version(distribution: str) -> str | None:
    """The installed version of a distribution, None when it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cpu_model() -> str | None:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or None


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * PAGE_BYTES
    except (ValueError, OSError):
        return None


def run_loop(main: Coroutine[Any, Any, None], loop: str) -> None:
    """Run `main` on the event loop that the configuration names. Raises ValueError for an unknown one."""
    if loop == "uvloop":
        import uvloop

        uvloop.run(main)
    elif loop == "asyncio":
        asyncio.run(main)
    else:
        raise ValueError(f"loop: {loop!r} is neither uvloop nor asyncio")


def process_facts() -> dict[str, str | bool]:
    """What a measured process says of itself once its loop runs."""
    loop = asyncio.get_running_loop()
    tracing = bool(os.environ.get("GRPC_TRACE")) or os.environ.get("GRPC_VERBOSITY", "").upper() == "DEBUG"
    return {
        "loop": "uvloop" if type(loop).__module__.startswith("uvloop") else "asyncio",
        "asyncio_debug": loop.get_debug(),
        "python_debug": bool(sys.flags.dev_mode) or hasattr(sys, "gettotalrefcount"),
        "debug_logging": tracing or logging.getLogger().isEnabledFor(logging.DEBUG),
    }
