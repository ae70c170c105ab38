"""Another tool's word: wrk or h2load against the same server, after our own window, from the same CPUs."""

from __future__ import annotations

import re
import shutil
import subprocess

SECONDS = 3  # wrk counts time, not requests
TIMEOUT_S = 60.0
RATES = {
    "wrk": re.compile(r"Requests/sec:\s*([\d.]+)"),
    "h2load": re.compile(r"finished in [^,]+, ([\d.]+) req/s"),
}
WRONG = {  # what they say of answers that were none; both end with 0 all the same
    "wrk": re.compile(r"(?:Non-2xx|Socket errors).*"),
    "h2load": re.compile(r"[1-9]\d* (?:failed|errored|timeout)"),
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
    # All its threads from the start: setting the affinity of a running process would miss those it has already.
    if cpus and (taskset := shutil.which("taskset")):
        command = [taskset, "--cpu-list", ",".join(map(str, cpus)), *command]
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        return {"crosscheck_tool": f"none: {tool} failed ({type(exc).__name__})"}
    found = RATES[tool].search(done.stdout)
    if done.returncode or found is None:
        return {"crosscheck_tool": f"none: {tool} failed (exit code {done.returncode})"}
    if wrong := WRONG[tool].search(done.stdout):
        return {"crosscheck_tool": f"none: not every request of {tool} was answered ({wrong[0].strip()})"}
    return {"crosscheck_tool": tool, "crosscheck_requests_per_s": found[1]}
