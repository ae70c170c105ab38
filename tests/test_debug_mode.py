"""asyncio's debug mode slows async code a lot: it is said, stored with the run, and marks every comparison."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def bakeoff(folder: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "runner", *words]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **environ}, capture_output=True, text=True, timeout=100, check=False
    )


def test_a_run_in_asyncios_debug_mode_is_warned_of_kept_and_compared_with_nothing_silently(tmp_path: Path) -> None:
    run = ["protocol=tcp", "operation.count=50", "operation.warmup=5"]
    plain = bakeoff(tmp_path, *run, PYTHONASYNCIODEBUG="")
    debugging = bakeoff(tmp_path, *run, PYTHONASYNCIODEBUG="1")

    warning = "asyncio's debug mode was on: its timings compare with no others"
    assert (plain.returncode, warning in plain.stdout) == (0, False)
    assert warning in debugging.stdout.splitlines()
    assert "asyncio's debug mode was on: it is what is measured then" in " ".join(debugging.stdout.split())
    listed = bakeoff(tmp_path, "runs", "--all", "--format", "csv").stdout
    assert [line.count(",void,") for line in listed.splitlines()[1:]] in ([1, 0], [0, 1])
    # A void run stands against nothing.
    compared = bakeoff(tmp_path, "compare", "last~1", "last").stdout
    assert "left out of NEW: request_response tcp, 1 void" in compared
