"""The Python that measures: its build, its debugging aids, its collector, and the versions of the libraries."""

from __future__ import annotations

import gc
import platform
import re
import sys
from collections.abc import Callable
from pathlib import Path

from runner import machine
from runner.doctor.finding import Finding, Sight, fit, judged, not_told
from runner.host import SUPERVISOR_ONLY, dependencies, version

CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"
_SLOW = {
    "PYTHONDEVMODE": "development mode",
    "PYTHONASYNCIODEBUG": "asyncio's debug mode",
    "PYTHONTRACEMALLOC": "tracing of every allocation",
    "GRPC_TRACE": "gRPC's tracing",
}


def findings(
    sight: Sight,
    *,
    dev_mode: bool = sys.flags.dev_mode,
    debug_build: bool = hasattr(sys, "gettotalrefcount"),
    build: str | None = None,
    gc_enabled: bool | None = None,
    installed: Callable[[str], str | None] = version,
    constraints: Path = CONSTRAINTS,
) -> list[Finding]:
    """Build, debugging, garbage collector, uvloop and versions. What is not given is asked of this interpreter."""
    return [
        _build(debug_build, machine.python_build() if build is None else build),
        *_debugging(sight, dev_mode),
        _collector(gc.isenabled() if gc_enabled is None else gc_enabled),
        _uvloop(installed),
        _versions(installed, constraints),
    ]


def _build(debug: bool, build: str | None) -> Finding:
    name, python = "Python", f"{platform.python_implementation()} {platform.python_version()}"
    if debug:
        return Finding(name, "unfit", f"{python}, a debugging build", "a release build", "another interpreter")
    if build is None:
        return fit(name, f"{python}, its build is not told")
    wanted = "pgo lto, as distributions build it: others' numbers come from such a one"
    remedy = "a Python configured with --enable-optimizations --with-lto"
    return judged(name, f"{python}, built {build}", {"pgo", "lto"} <= set(build.split()), "note", wanted, remedy)


def _debugging(sight: Sight, dev_mode: bool) -> list[Finding]:
    on = [name for name in _SLOW if sight.environ.get(name) and sight.environ[name] != "0"]
    found = [
        Finding(name, "unfit", f"set: {_SLOW[name]}", "not set: it is what is measured then", f"unset {name}")
        for name in on
    ]
    if dev_mode and "PYTHONDEVMODE" not in on:
        found.append(
            Finding("python -X dev", "unfit", "on", "off: it is what is measured then", "leave out -X dev")
        )
    if sight.environ.get("GRPC_VERBOSITY", "").upper() == "DEBUG":
        found.append(Finding("GRPC_VERBOSITY", "unfit", "DEBUG", "not set", "unset GRPC_VERBOSITY"))
    return found or [fit("debug modes", "none")]


def _collector(enabled: bool) -> Finding:
    said = "on; bakeoff freezes what is there after the warm-up" if enabled else "off"
    wanted, remedy = "on, as in a service", "start bakeoff from a plain shell"
    return judged("garbage collector", said, enabled, "note", wanted, remedy)


def _uvloop(installed: Callable[[str], str | None]) -> Finding:
    found = installed("uvloop")
    return judged(
        "uvloop", found or "absent", found is not None, "note", "installed", "pip install uvloop, or loop=asyncio"
    )


def _versions(installed: Callable[[str], str | None], constraints: Path) -> Finding:
    name = "library versions"
    try:
        lines = constraints.read_text(encoding="utf-8").splitlines()
    except OSError:
        return not_told(name)
    pinned = {match[1].lower(): match[2] for line in lines if (match := re.match(r"([\w.-]+)==([^\s;]+)", line))}
    other = []
    for library in dependencies("bakeoff"):
        found = installed(library)
        if library in pinned and library not in SUPERVISOR_ONLY and found != pinned[library]:
            other.append(f"{library} {found or 'absent'}, not {pinned[library]}")
    wanted, remedy = "those of constraints.txt", "pip install -c constraints.txt -e ."
    return judged(name, "; ".join(other) or "those of constraints.txt", not other, "note", wanted, remedy)
