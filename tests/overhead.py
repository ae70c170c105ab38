"""What bakeoff itself costs: `python -m tests.overhead [--pairs 5] [PROTOCOL ...]`.

Runs a hand-written loop (tests.bare) and bakeoff's engine in turn, same library, event loop, codec, placement and
counts, fresh processes each; prints the ratio of every pair and its median. Not a test: no test asserts a time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys

from runner.engine import run
from runner.host import MALLOC, cores
from runner.placement import place
from tests.bare import CODEC
from tests.cells import cell

COUNTS = {"rr": (5000, 2000), "stream": (50_000, 2000)}
METRIC = {"rr": "p50_us", "stream": "messages_per_s"}


def bare(protocol: str, what: str) -> float:
    """One run of the hand-written loop."""
    count, warmup = COUNTS[what]
    spot = place("auto", what == "rr", cores())
    assert spot.server_cpus and spot.driver_cpus  # noqa: PT018 - not a test
    command = [sys.executable, "-m", "tests.bare", protocol]
    numbers = [what, str(count), str(warmup)]
    env = {**os.environ, **MALLOC}
    server = subprocess.Popen(
        [*command, "server", *numbers, str(spot.server_cpus[0])], stdout=subprocess.PIPE, env=env
    )
    try:
        assert server.stdout is not None
        port = server.stdout.readline().decode().strip()
        client = [*command, "client", *numbers, str(spot.driver_cpus[0]), port]
        done = subprocess.run(client, stdout=subprocess.PIPE, env=env, timeout=120, check=True)
        return float(json.loads(done.stdout)[METRIC[what]])
    finally:
        server.kill()
        server.wait()


def ours(protocol: str, what: str) -> float:
    """One run of the same exchange by the engine."""
    count, warmup = COUNTS[what]
    operation = "request_response" if what == "rr" else "stream"
    target = cell(operation, protocol, operation_={"count": count, "warmup": warmup})
    record = run(target, sweep_id="", repeat=1, position=1, overrides=[])
    assert record.verdict == "ok", record.reason
    return record.measurements[METRIC[what]][0]


def main() -> None:
    parser = argparse.ArgumentParser(description="bakeoff against hand-written loops, side by side")
    parser.add_argument("protocols", nargs="*", default=list(CODEC), help=f"of {', '.join(CODEC)}; all")
    parser.add_argument("--pairs", type=int, default=5)
    args = parser.parse_args()
    for what, metric in METRIC.items():
        for protocol in args.protocols:
            pairs = []
            for n in range(args.pairs):
                first, second = (bare, ours) if n % 2 else (ours, bare)  # who goes first takes turns
                values = {first.__name__: first(protocol, what), second.__name__: second(protocol, what)}
                pairs.append(values)
            ratios = [pair["ours"] / pair["bare"] for pair in pairs]
            print(
                f"{metric:15} {protocol:10} bakeoff / hand-written: median {statistics.median(ratios):.3f}x  "
                f"pairs {' '.join(f'{ratio:.3f}' for ratio in ratios)}  "
                f"(medians {statistics.median(p['ours'] for p in pairs):,.1f} / "
                f"{statistics.median(p['bare'] for p in pairs):,.1f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
