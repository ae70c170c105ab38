"""Every protocol in real processes, with small counts: all codecs, all producers, sizes at the edges."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapters.api import Address, Shape
from adapters.codecs import CODECS
from adapters.messages import METHODS, Empty, StreamRequest
from runner.blocking import served_by
from runner.engine import run
from runner.quotes import quote
from runner.service import Service
from runner.store.record import RunRecord
from tests.cells import CONF, cell, config

PROTOCOLS = sorted(p.stem for p in (CONF / "protocol").glob("*.yaml") if p.stem != "loopback")
PROXIES = (
    "http_proxy",
    "https_proxy",
    "grpc_proxy",
    "all_proxy",
    "ws_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
)


def carries(protocol: str, shape: Shape) -> bool:
    return shape in cell("stream", protocol).adapter.shapes


def execute(*names: str, **parts: Any) -> RunRecord:
    return run(cell(*names, **parts), sweep_id="S", repeat=1, position=1, overrides=[])


@pytest.mark.parametrize("codec", sorted(CODECS))
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_codec_over_every_protocol(protocol: str, codec: str) -> None:
    record = execute("request_response", protocol, codec)

    assert (record.verdict, record.reason) == ("ok", "")
    assert record.codec == codec
    assert record.measurements["n"] == (20, "calls")
    assert record.conditions["peers_seen"] == 1


@pytest.mark.parametrize("consumer", ["pull", "eager"])
@pytest.mark.parametrize("producer", ["awaited", "push", "gated", "credited", "paged"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_producer_over_every_protocol(protocol: str, producer: str, consumer: str) -> None:
    record = execute("stream", protocol, operation_={"producer": producer, "consumer": consumer, "count": 1500})

    if producer == "credited" and not carries(protocol, Shape.BIDI_STREAM):
        assert record.verdict == "unsupported"
        assert record.reason == f"{protocol} cannot carry bidi_stream (quotes.credited)"
        return
    assert (record.verdict, record.reason) == ("ok", "")
    assert record.measurements["messages"] == (1500, "messages")
    assert record.errors == {}


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_bodies_of_no_and_one_byte_work_everywhere(protocol: str, size: int) -> None:
    record = execute("request_response", protocol, operation_={"size_bytes": size})

    assert (record.verdict, record.measurements["n"][0], record.errors) == ("ok", 20, {})


@pytest.mark.parametrize("size", [16_777_216, 17_000_000])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_large_body_arrives_whole_or_is_unsupported_never_a_fast_sample(protocol: str, size: int) -> None:
    record = execute("request_response", protocol, operation_={"size_bytes": size, "count": 10, "warmup": 0})

    if record.verdict == "unsupported":
        assert protocol == "rsocket"
        assert f"a message of {size:,} bytes is over the" in record.reason
        assert record.measurements == {}
    else:
        assert (record.verdict, record.errors) == ("ok", {})
        assert record.measurements["n"] == (10, "calls")
        assert record.measurements["size_bytes"] == (size, "bytes")


@pytest.mark.parametrize("size", [2**20 - 1, 2**20, 2**20 + 1, 4 * 2**20, 4 * 2**20 + 1])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_libraries_own_limits_are_lifted_on_both_ends(protocol: str, size: int) -> None:
    """Bare websockets stop at 1 MiB, bare gRPC at 4 MiB, each end on its own."""
    record = execute("request_response", protocol, operation_={"size_bytes": size, "count": 10, "warmup": 0})

    assert (record.verdict, record.reason, record.errors) == ("ok", "", {})


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_proxy_in_the_environment_is_nothing_to_us(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for no_proxy in (None, "localhost"):
        if no_proxy is not None:
            monkeypatch.setenv("no_proxy", no_proxy)
        record = execute("request_response", protocol)

        assert (record.verdict, record.measurements["n"][0]) == ("ok", 20)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_connections_are_counted_by_the_server(protocol: str) -> None:
    record = execute("request_response", protocol, load_={"connections": 5}, operation_={"count": 12})

    assert record.verdict == "ok"
    assert record.measurements["n"] == (12, "calls")
    assert record.conditions["peers_seen"] == 5


@pytest.mark.parametrize("protocol", ["grpc", "rsocket"])
def test_multiplexed_calls_share_one_connection(protocol: str) -> None:
    record = execute("request_response", protocol, load_={"connections": 5, "multiplex": True})

    assert record.verdict == "ok"
    assert record.measurements["n"] == (20, "calls")
    assert record.conditions["peers_seen"] == 1


@pytest.mark.parametrize(
    ("protocol", "multiplex", "connections"),
    [("grpc", True, 1), ("rsocket", True, 1), ("grpc", False, 4), ("websocket", False, 4)],
)
def test_streams_have_a_connection_each_or_one_for_all(protocol: str, multiplex: bool, connections: int) -> None:
    record = execute("stream", protocol, operation_={"streams": 4}, load_={"multiplex": multiplex})

    assert (record.verdict, record.reason) == ("ok", "")
    assert record.measurements["messages"] == (200, "messages")
    assert record.connections == 4
    assert record.conditions["peers_seen"] == connections
    assert record.measurements["fastest_ms"][0] <= record.measurements["slowest_ms"][0]
    assert record.measurements["first_ms"][0] <= record.measurements["first_max_ms"][0]


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_both_loops_are_run_and_recorded(protocol: str, loop: str) -> None:
    record = execute("stream", protocol, loop=loop)

    assert (record.verdict, record.conditions["loop"]) == ("ok", loop)


def produced(record: RunRecord) -> list[float | None]:
    return [value for _, value in record.series["produced_at_quiet"]]


def test_rsocket_makes_exactly_what_is_asked_for() -> None:
    record = execute("backpressure", "rsocket")

    assert produced(record) == [100, 100]
    assert record.findings["bounded_by"] == "demand"
    assert record.measurements["plateau_messages"] == (0, "messages")


@pytest.mark.parametrize("protocol", [p for p in PROTOCOLS if carries(p, Shape.BIDI_STREAM)])
def test_application_credit_is_exact_over_every_protocol(protocol: str) -> None:
    record = execute("backpressure", protocol, operation_={"producer": "credited"})

    assert produced(record) == [100, 100]
    assert record.findings["bounded_by"] == "demand"


@pytest.mark.parametrize("protocol", ["tcp", "websocket", "http", "sse"])
def test_a_quiet_reader_behind_kernel_buffers_bounds_the_writer_and_the_ledger_adds_up(protocol: str) -> None:
    record = execute("backpressure", protocol)
    found = {name: value for name, (value, _) in record.measurements.items()}
    final = record.series["produced"][-1][1] or 0

    assert record.findings["bounded_by"] == "buffers"
    assert found["plateau_messages"] == final - 100 > 1000
    places = [found[f"surplus_{place}"] for place in ("server", "client", "kernel", "unaccounted")]
    assert sum(places) == found["plateau_messages"]
    assert found["surplus_kernel"] > 0.8 * found["plateau_messages"]
    assert abs(found["surplus_unaccounted"]) < 0.05 * found["plateau_messages"]


def test_a_small_grpc_window_is_a_small_bound() -> None:
    record = execute("backpressure", "grpc", protocol_={"bdp_probe": False, "lookahead_bytes": 4096})

    assert record.findings["bounded_by"] == "buffers"
    assert 0 < record.measurements["plateau_messages"][0] <= 200
    assert record.variant == "bdp_probe=false lookahead_bytes=4096"


@pytest.mark.parametrize("protocol", ["grpc", "rsocket", "websocket", "http", "sse"])
def test_push_is_bounded_by_nothing_and_the_surplus_is_in_the_service(protocol: str) -> None:
    small = {"send_buffer_bytes": 4096, "receive_buffer_bytes": 4096} if protocol == "websocket" else {}
    record = execute("backpressure", protocol, operation_={"producer": "push", "settle_s": 0.5}, protocol_=small)

    assert record.verdict == "ok"
    assert record.findings["bounded_by"] == "nothing"
    assert record.findings["bound_reason"].startswith("still rising")
    assert "plateau_messages" not in record.measurements
    assert record.measurements["surplus_server"][0] > 1000


def test_the_memory_ceiling_is_a_finding_not_a_failure() -> None:
    record = execute(
        "backpressure", "websocket", operation_={"producer": "push", "settle_s": 60}, limits_={"max_rss_mb": 80}
    )

    assert record.verdict == "ok"
    assert record.findings["bounded_by"] == "nothing"
    assert record.findings["bound_reason"] == "the server reached the memory ceiling of 80 MB"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_slow_producer_is_not_held_back_until_all_is_there(protocol: str) -> None:
    """Five items 50 ms apart: the first must not wait for the last (the delay is the test's own)."""

    async def gaps() -> tuple[float, float]:
        target = cell("stream", protocol)
        adapter, service = target.adapter, served_by(target.adapter, target.operation, "R")
        clock = asyncio.get_running_loop().time
        async with asyncio.timeout(20), adapter.serve(service, Address("127.0.0.1", 0)) as server:
            async with adapter.connect(server.address) as peer:
                began = clock()
                stamps = [clock() async for _ in peer.server_stream(METHODS["quotes"], StreamRequest("A", 5, 50))]
        return stamps[0] - began, stamps[-1] - stamps[0]

    first_s, rest_s = asyncio.run(gaps())
    assert rest_s > 0.15  # four delays of 50 ms lie between the first and the last
    assert first_s < 0.05 + 4 * 0.05  # all of them together would come after the last


def test_configurations_for_tests_are_those_of_users() -> None:
    """What tests.cells composes by hand has exactly the keys of what Hydra composes from conf/."""
    top = yaml.safe_load((Path(CONF) / "config.yaml").read_text())
    keys = set(top) - {"defaults", "hydra"} | {"operation", "protocol", "codec", "load", "storage", "scenario"}

    assert set(config()) == keys


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_latency_is_of_the_message_not_of_the_session(protocol: str) -> None:
    """A server that takes 50 ms (the test's own delay) for each of 4 answers: each sample is one of them."""
    record = execute("request_response", protocol, operation_={"count": 4, "warmup": 0, "service_time_ms": 50})
    latencies = record.samples["latency"]

    assert len(latencies) == 4
    assert min(latencies) >= 49_000_000  # the loop's timers count in milliseconds
    # Launching, connecting and the first call are in none of them; the latter two are kept apart.
    assert sum(latencies) < record.duration_s * 1e9
    assert len(record.samples["connect"]) == len(record.samples["first_call"]) == 1
    assert record.measurements["connect_ms"] == (record.samples["connect"][0] / 1e6, "ms")


def test_a_grpc_run_works_after_grpc_was_used_in_this_process() -> None:
    """A forked child would hang at its first call; ours are started afresh."""

    async def use() -> None:
        adapter = cell("request_response", "grpc").adapter
        async with asyncio.timeout(20), adapter.serve(Service(run="here"), Address("127.0.0.1", 0)) as server:
            async with adapter.connect(server.address) as peer:
                assert (await peer.unary(METHODS["run"], Empty())).run == "here"

    asyncio.run(use())

    assert execute("request_response", "grpc").verdict == "ok"


@pytest.mark.parametrize("connections", [1, 25])
def test_seven_calls_are_seven_calls_on_any_number_of_connections(connections: int) -> None:
    record = execute(
        "request_response", "websocket", load_={"connections": connections}, operation_={"count": 7, "warmup": 0}
    )

    assert (record.verdict, record.reason) == ("void", "too few samples: 7; from 10 on, a run counts")
    assert record.measurements["n"] == (7, "calls")
    assert record.errors == {}


def test_debug_settings_are_stored_with_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONASYNCIODEBUG", "1")
    monkeypatch.setenv("GRPC_VERBOSITY", "DEBUG")
    record = execute("request_response", "tcp")

    assert record.conditions["asyncio_debug"] is True
    assert record.conditions["debug_logging"] is True
    assert record.conditions["python_debug"] is False


@pytest.mark.parametrize(("protocol", "least", "most"), [("websocket", 37, 39), ("grpc", 49, 51), ("tcp", 40, 42)])
def test_the_wire_takes_what_the_framing_says(protocol: str, least: float, most: float) -> None:
    """A WebSocket frame adds 2 bytes, gRPC 5 and an HTTP/2 frame 9, the bare wire 5; what acknowledges is small."""
    record = execute("stream", protocol, "protobuf", operation_={"count": 20_000, "warmup": 100})

    assert record.verdict == "ok", record.reason
    payload, wire = record.measurements["payload_bytes"][0], record.measurements["wire_in_bytes"][0]
    assert payload == sum(len(CODECS["protobuf"]().encode(quote("AAPL", seq))) for seq in range(20_000)) / 20_000
    assert least <= wire <= most
    assert record.measurements["wire_out_bytes"][0] < 5
