"""The server process: `python -m runner.server`, steered over stdin and stdout (runner.control).

Setup: {"config", "run", "cpus"}. Events: `ready` with host, port and the run's nonce; `failed` with a reason.
Questions: `counters`, `usage`, `settle` (garbage collected and frozen, then usage). Told: `stop`.
"""

from __future__ import annotations

import asyncio
import gc
import time
from typing import Any

from adapters.api import Address, AddressInUse, Served
from runner.blocking import BlockingService, served_by
from runner.control import Control, run_as_process
from runner.host import pin, process_facts, reset_high_water, rss_bytes, run_loop, usage
from runner.quotes import quote
from runner.service import Service
from runner.tcp import tcp_queues


def settle() -> dict[str, int]:
    """After warm-up: what lives now will live; the collector need not look at it again. Peak memory is counted from
    here. Returns usage().
    """
    gc.collect()
    gc.freeze()
    reset_high_water()
    return usage()


def server_counters(service: Service | BlockingService, served: Served) -> dict[str, Any]:
    """What the server has made and where it is. None for what cannot be seen. Called from any thread."""
    queues = tcp_queues(served.address.port, local=True)
    backlog = served.backlog()
    return {
        "t_ns": time.perf_counter_ns(),
        "cpu_ns": time.process_time_ns(),
        "produced": service.produced,
        "hellos": service.hellos,
        "peak_in_flight": getattr(service, "peak_in_flight", None),
        "taken_ns": list(getattr(service, "taken_ns", ())),
        "outbound": service.outbound,
        "backlog_messages": None if backlog is None else backlog.messages,
        "backlog_bytes": None if backlog is None else backlog.size_bytes,
        "rss_bytes": rss_bytes(),
        "send_queue_bytes": None if queues is None else sum(queue.send_queue_bytes for queue in queues),
        "peers": None if queues is None else len(queues),
    }


async def _serve(setup: dict[str, Any], control: Control) -> None:
    from runner.config import check  # after pinning: what it imports may start threads

    cell, problems = check(setup["config"])
    if cell is None:
        control.say("failed", reason="; ".join(problems))
        return
    operation = cell.operation
    service = served_by(cell.adapter, operation, setup["run"])
    address, bare = Address(cell.host, cell.port), cell.adapter.hand_written()
    if operation.hand_written and bare is not None:
        serving = bare(cell.adapter.codec, quote).serve(address)
    else:
        serving = cell.adapter.serve(service, address)
    try:
        async with serving as served:
            stop = control.expect("stop")
            control.answer("counters", lambda: server_counters(service, served))
            control.answer("usage", usage)
            control.answer("settle", settle)
            control.listen()
            host, port = served.address
            control.say("ready", host=host, port=port, run=setup["run"], **process_facts())
            await asyncio.wrap_future(stop)
    except AddressInUse as exc:
        control.say("failed", reason=f"{exc}; choose another port, or port=0 for any free one")
    except OSError as exc:
        reason = f"cannot listen at host={cell.host} port={cell.port}: {exc.strerror or exc}"
        control.say("failed", reason=reason)


def main(control: Control) -> None:
    """Serve until stopped or until stdin ends."""
    setup = control.setup()
    pin(setup["cpus"])
    run_loop(_serve(setup, control), setup["config"].get("loop", "uvloop"))


if __name__ == "__main__":
    run_as_process(main)
