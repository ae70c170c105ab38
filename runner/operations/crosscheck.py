"""Another tool's word: wrk or h2load against the same server, after our own window, from the same CPUs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

SECONDS = 3  # wrk counts time, not requests
TIMEOUT_S = 60.0
RATES = {
    "wrk": re.compile(r"Requests/sec:\s*([\d.]+)"),
    "h2load": re.compile(r"finished in [^,]+, ([\d.]+) req/s"),
}
NEITHER = "none: neither wrk nor h2load is on PATH"


def crosscheck(url: str | None, connections: int, requests: int, cpus: list[int] | None) -> dict[str, str]:
    """crosscheck_tool and, where it worked, crosscheck_requests_per_s. `url`: None where the server is not asked by
    HTTP. `cpus`: those of our own driver.
    """
    if url is None:
        return {"crosscheck_tool": "none: the tools speak HTTP only"}
    for tool, command in _commands(url, connections, requests).items():
        if path := shutil.which(tool):
            return _run(tool, [path, *command], cpus)
    return {"crosscheck_tool": NEITHER}


def _commands(url: str, connections: int, requests: int) -> dict[str, list[str]]:
    total = max(requests, connections)
    return {
        "wrk": ["--threads", "1", "--connections", str(connections), "--duration", f"{SECONDS}s", url],
        "h2load": ["--h1", "--threads=1", f"--clients={connections}", f"--requests={total}", url],
    }


def _run(tool: str, command: list[str], cpus: list[int] | None) -> dict[str, str]:
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
            if cpus and hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(child.pid, cpus)
            try:
                said, _ = child.communicate(timeout=TIMEOUT_S)
            except BaseException:
                child.kill()
                raise
    except (OSError, subprocess.TimeoutExpired) as exc:
        return {"crosscheck_tool": f"none: {tool} failed ({type(exc).__name__})"}
    found = RATES[tool].search(said)
    if child.returncode or found is None:
        return {"crosscheck_tool": f"none: {tool} failed (exit code {child.returncode})"}
    return {"crosscheck_tool": tool, "crosscheck_requests_per_s": found[1]}
