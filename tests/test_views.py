"""The views: their columns are a promise, their values are what was saved."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from runner import host
from runner.store.conditions import CONDITIONS
from runner.store.record import RunRecord
from runner.store.views import COLUMNS, VIEWS
from tests import golden_db
from tests.golden_db import backpressure_run, golden, latency_run, payload_run, stream_run, write_sweep
from tests.golden_open_loop import open_run
from tests.golden_saturation import saturation_run
from tests.golden_transfers import OUT_OF_MEMORY, bulk_run, hello_run

CELL = "run_id sweep_id suite scenario label protocol engine codec variant placement repeat verdict"
RESOURCES = "server_peak_rss_bytes driver_peak_rss_bytes server_switches driver_switches"
PROMISED = {
    "runs": "run_id sweep_id suite scenario label operation protocol engine codec variant repeat verdict reason"
    " started_at duration_s",
    "payload": "run_id sweep_id codec message size_bytes hex encode_ns decode_ns representable",
    "latency": f"{CELL} connections arrival rate_per_s size_bytes n errors p50_us p90_us p99_us p999_us mean_us"
    " max_us calls_per_s response_p50_us response_p90_us response_p99_us response_p999_us response_mean_us"
    " response_max_us requested_per_s sent_per_s achieved_per_s dropped schedule_delay_p50_us"
    f" schedule_delay_p99_us server_cpu_us driver_cpu_us {RESOURCES} payload_bytes"
    " wire_in_bytes wire_out_bytes connect_ms first_call_ms",
    "stream": f"{CELL} producer consumer streams messages seconds messages_per_s us_per_message first_ms"
    " first_max_ms fastest_ms slowest_ms gap_p99_us client_held_max server_cpu_us driver_cpu_us"
    f" {RESOURCES} payload_bytes wire_in_bytes wire_out_bytes bound connect_ms"
    " first_call_ms",
    "checks": f"{CELL} operation name value unit least most passed weight reason",
    "overhead": f"{CELL} operation driven_by p50_us us_per_message fixed_s",
    "saturation": f"{CELL} connections arrival slo_p99_ms sustained_per_s broken_per_s saturated"
    " saturated_at_per_s steps"
    " rate_per_s achieved_per_s response_p50_us response_p99_us errors dropped schedule_delay_p99_us"
    " server_cpu_pct driver_cpu_pct kept",
    "backpressure": f"{CELL} producer consumer asked quiet_s produced bounded_by bound_reason plateau_messages"
    " plateau_bytes plateau_after_s surplus_server surplus_client surplus_kernel surplus_unaccounted"
    " server_rss_growth_bytes driver_rss_growth_bytes server_peak_rss_bytes driver_peak_rss_bytes",
    "hello": f"{CELL} model workers connections connections_opened service_time_ms service_work n errors"
    " requests_per_s requests_per_server_cpu_s mean_us p50_us p75_us p90_us p99_us p999_us max_us server_cpu_us"
    f" driver_cpu_us server_cpu_pct driver_cpu_pct loop_lag_p90_us {RESOURCES} wire_in_bytes wire_out_bytes"
    " crosscheck_requests_per_s crosscheck_tool law connect_ms first_call_ms",
    "bulk": f"{CELL} operation shape batch sender producer records messages seconds records_per_s payload_bytes"
    " bytes_per_record first_ms buffered_max service_time_ms ahead_max ahead_max_bytes driver_rss_growth_bytes"
    f" server_rss_growth_bytes server_cpu_us driver_cpu_us {RESOURCES} wire_in_bytes wire_out_bytes checksum",
}
OPEN_LOOP = [
    "rate_per_s",
    "response_p50_us",
    "response_p90_us",
    "response_p99_us",
    "response_p999_us",
    "response_mean_us",
    "response_max_us",
    "requested_per_s",
    "sent_per_s",
    "achieved_per_s",
    "dropped",
    "schedule_delay_p50_us",
    "schedule_delay_p99_us",
]
UNITS = {"_us": "µs", "us_per_message": "µs", "_ms": "ms", "_ns": "ns", "_per_s": "per second", "_bytes": "bytes"}
SECONDS = ["duration_s", "seconds", "quiet_s", "plateau_after_s"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.db"


@pytest.fixture(scope="module")
def article(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """The golden database, as anybody with SQLite sees it."""
    with closing(sqlite3.connect(golden(tmp_path_factory.mktemp("golden") / "results.db"))) as connection:
        yield connection


def read(path: Path, view: str) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(f"SELECT * FROM {view}")]


def one(path: Path, view: str, record: RunRecord) -> dict[str, Any]:
    write_sweep(path, [record])
    (row,) = read(path, view)
    return row


# Columns


@pytest.mark.parametrize("view", PROMISED)
def test_a_view_has_exactly_the_promised_columns_in_order(article: sqlite3.Connection, view: str) -> None:
    cursor = article.execute(f"SELECT * FROM {view}")
    assert [column[0] for column in cursor.description] == PROMISED[view].split()


@pytest.mark.parametrize("view", VIEWS)
def test_the_documentation_names_the_columns_that_are_there(article: sqlite3.Connection, view: str) -> None:
    cursor = article.execute(f"SELECT * FROM {view}")
    assert [column[0] for column in cursor.description] == [name for name, _ in COLUMNS[view]]
    assert all(meaning for _, meaning in COLUMNS[view])


def test_the_promised_views_are_there_and_no_others(article: sqlite3.Connection) -> None:
    there = {name for (name,) in article.execute("SELECT name FROM sqlite_master WHERE type = 'view'")}
    assert there == set(VIEWS) == set(COLUMNS) == {*PROMISED, "conditions"}


def test_a_unit_in_a_columns_name_is_the_unit_in_its_documentation() -> None:
    columns = [column for view in PROMISED for column in COLUMNS[view]]
    for ending, unit in UNITS.items():
        named = [meaning for name, meaning in columns if name.endswith(ending)]
        assert named, ending
        assert [meaning for meaning in named if unit not in meaning] == []
    assert all(meaning.startswith(("s ", "s,")) for name, meaning in columns if name in SECONDS)


# Values


def test_runs_lists_every_run_of_every_verdict(path: Path) -> None:
    write_sweep(
        path,
        [
            latency_run("grpc", 0, 300.0, label="a", variant="bdp_probe=false", duration_s=1.25),
            stream_run("rsocket", 1, engine="coalescing", verdict="failed", reason="server exited with 1"),
        ],
        7,
    )
    assert read(path, "runs") == [
        {
            "run_id": "01KG0000000000000000070000",
            "sweep_id": "01KG0000000000000000000007",
            "suite": "article",
            "scenario": "request_response",
            "label": "a",
            "operation": "request_response",
            "protocol": "grpc",
            "engine": "aio",
            "codec": "protobuf",
            "variant": "bdp_probe=false",
            "repeat": 0,
            "verdict": "ok",
            "reason": "",
            "started_at": "2026-03-01T19:00:00.000000Z",
            "duration_s": 1.25,
        },
        {
            "run_id": "01KG0000000000000000070001",
            "sweep_id": "01KG0000000000000000000007",
            "suite": "article",
            "scenario": "stream",
            "label": "",
            "operation": "stream",
            "protocol": "rsocket",
            "engine": "coalescing",
            "codec": "cbor",
            "variant": "",
            "repeat": 1,
            "verdict": "failed",
            "reason": "server exited with 1",
            "started_at": "2026-03-01T19:00:02.000000Z",
            "duration_s": 2.0,
        },
    ]


def test_payload_has_whole_bytes_and_unrounded_times(path: Path) -> None:
    row = one(path, "payload", payload_run("json", encode_ns=411.5, decode_ns=1 / 3))
    assert row == {
        "run_id": "01KG0000000000000000010000",
        "sweep_id": "01KG0000000000000000000001",
        "codec": "json",
        "message": "quote",
        "size_bytes": 83,
        "hex": b'{"symbol":"AAPL","seq":42,"bid":100.42,"ask":100.44,"epochMicros":1772000000000000}'.hex(),
        "encode_ns": 411.5,
        "decode_ns": 1 / 3,
        "representable": "yes",
    }
    assert isinstance(row["size_bytes"], int)


def test_payload_shows_what_a_codec_cannot_carry_and_leaves_out_what_was_not_measured(path: Path) -> None:
    nothing: dict[str, Any] = dict.fromkeys(["size_bytes", "hex", "encode_ns", "decode_ns"])
    write_sweep(
        path,
        [
            payload_run("protobuf", **nothing, message="int65", representable="no"),
            payload_run("json", **nothing, representable=None, verdict="failed", reason="driver exited with 1"),
            payload_run("cbor", **nothing, representable=None, verdict="interrupted", reason="stopped by Ctrl-C"),
        ],
    )
    (row,) = read(path, "payload")
    assert {name: row[name] for name in ("codec", "message", "representable", *nothing)} == {
        "codec": "protobuf",
        "message": "int65",
        "representable": "no",
        **nothing,
    }


def test_latency_has_a_runs_numbers_as_they_were_saved(path: Path) -> None:
    record = latency_run(
        "websocket",
        2,
        p50_us=122.8,
        n=4998,
        errors=2,
        p90_us=150.25,
        p99_us=1893.9,
        p999_us=2000.0,
        mean_us=184.8,
        max_us=4000.125,
        calls_per_s=5410.0,
        server_cpu_us=40.5,
        driver_cpu_us=61 / 3,
        wire_in_bytes=37.25,
        wire_out_bytes=19.5,
        connections=8,
        size_bytes=16,
        label="after",
        placement="same",
        verdict="void",
    )
    row = one(path, "latency", record)
    assert row == {
        "run_id": "01KG0000000000000000010000",
        "sweep_id": "01KG0000000000000000000001",
        "suite": "article",
        "scenario": "request_response",
        "label": "after",
        "protocol": "websocket",
        "engine": "asyncio",
        "codec": "json",
        "variant": "",
        "placement": "same",
        "repeat": 2,
        "verdict": "void",
        "connections": 8,
        "size_bytes": 16,
        "n": 4998,
        "errors": 2,
        "p50_us": 122.8,
        "p90_us": 150.25,
        "p99_us": 1893.9,
        "p999_us": 2000.0,
        "mean_us": 184.8,
        "max_us": 4000.125,
        "calls_per_s": 5410.0,
        "server_cpu_us": 40.5,
        "driver_cpu_us": 61 / 3,
        **golden_db.RESOURCES,
        "payload_bytes": 35.0,
        "wire_in_bytes": 37.25,
        "wire_out_bytes": 19.5,
        **golden_db.CONNECTING,
        "arrival": "closed",
        **dict.fromkeys(OPEN_LOOP),
    }
    counts = {name for name, value in row.items() if isinstance(value, int)}
    assert counts - set(golden_db.RESOURCES) == {"repeat", "connections", "size_bytes", "n", "errors"}


def test_latency_of_an_open_loop_has_response_time_rates_and_lateness_beside_service_time(path: Path) -> None:
    row = one(path, "latency", open_run("grpc", 0, 300.0, rate=0.5, arrival="poisson", dropped=7))

    assert (row["arrival"], row["rate_per_s"], row["p50_us"], row["response_p50_us"]) == (
        "poisson",
        0.5,
        300.0,
        600.0,
    )
    assert (row["requested_per_s"], row["sent_per_s"], row["achieved_per_s"]) == (0.5, 0.5, 0.5)
    assert (row["schedule_delay_p50_us"], row["schedule_delay_p99_us"], row["dropped"]) == (50.0, 100.0, 7)
    assert (row["response_max_us"], row["calls_per_s"]) == (2e6, None)


def test_a_percentile_without_enough_samples_is_null(path: Path) -> None:
    row = one(path, "latency", latency_run("grpc", 0, 300.0, n=50, p99_us=None, p999_us=None))
    assert (row["n"], row["p50_us"], row["p99_us"], row["p999_us"]) == (50, 300.0, None, None)


def test_a_failed_call_run_is_listed_with_nulls(path: Path) -> None:
    row = one(path, "latency", latency_run("grpc", 1, verdict="failed", reason="the server exited with 1"))
    assert (row["protocol"], row["repeat"], row["verdict"]) == ("grpc", 1, "failed")
    assert (row["n"], row["p50_us"], row["calls_per_s"]) == (None, None, None)


def test_stream_has_a_runs_numbers_as_they_were_saved(path: Path) -> None:
    record = stream_run(
        "rsocket",
        1,
        messages_per_s=55_580.5,
        engine="coalescing",
        consumer="eager",
        producer="push",
        seconds=0.9,
        us_per_message=17.99,
        first_ms=1.75,
        first_max_ms=2.5,
        fastest_ms=880.5,
        slowest_ms=900.0,
        connections=16,
        gap_p99_us=70.25,
        client_held_max=None,
        server_cpu_us=8.5,
        driver_cpu_us=12.0,
        wire_in_bytes=38.125,
        wire_out_bytes=None,
        bound="server",
        codec="protobuf",
    )
    row = one(path, "stream", record)
    assert row == {
        "run_id": "01KG0000000000000000010000",
        "sweep_id": "01KG0000000000000000000001",
        "suite": "article",
        "scenario": "stream",
        "label": "",
        "protocol": "rsocket",
        "engine": "coalescing",
        "codec": "protobuf",
        "variant": "",
        "placement": "split",
        "repeat": 1,
        "verdict": "ok",
        "producer": "push",
        "consumer": "eager",
        "streams": 16,
        "messages": 50_000,
        "seconds": 0.9,
        "messages_per_s": 55_580.5,
        "us_per_message": 17.99,
        "first_ms": 1.75,
        "first_max_ms": 2.5,
        "fastest_ms": 880.5,
        "slowest_ms": 900.0,
        "gap_p99_us": 70.25,
        "client_held_max": None,
        "server_cpu_us": 8.5,
        "driver_cpu_us": 12.0,
        **golden_db.RESOURCES,
        "payload_bytes": 36.1,
        "wire_in_bytes": 38.125,
        "wire_out_bytes": None,
        "bound": "server",
        **golden_db.CONNECTING,
    }
    assert isinstance(row["driver_cpu_us"], float)  # so that a division in SQL is one


def test_backpressure_has_a_row_per_quiet_period(path: Path) -> None:
    record = backpressure_run(
        "grpc",
        0,
        [11_204, 41_300, None],
        quiet_s=[0.5, 2, 10],
        producer="gated",
        consumer="eager",
        bounded_by="buffers",
        bound_reason="unchanged for 1 s",
        plateau_messages=41_200,
        plateau_bytes=1_442_000,
        plateau_after_s=4.25,
        surplus_server=200,
        surplus_client=40_000,
        surplus_kernel=999.5,
        surplus_unaccounted=-0.5,
        server_rss_growth_bytes=-4096,
        driver_rss_growth_bytes=8192,
        server_peak_rss_bytes=45_000_000,
        variant="lookahead_bytes=4096",
    )
    write_sweep(path, [record])
    rows = read(path, "backpressure")
    assert [(row.pop("quiet_s"), row.pop("produced")) for row in rows] == [
        (0.5, 11_204),
        (2.0, 41_300),
        (10.0, None),
    ]
    assert rows[0] == rows[1] == rows[2]
    assert rows[0] == {
        "run_id": "01KG0000000000000000010000",
        "sweep_id": "01KG0000000000000000000001",
        "suite": "article",
        "scenario": "backpressure",
        "label": "",
        "protocol": "grpc",
        "engine": "aio",
        "codec": "protobuf",
        "variant": "lookahead_bytes=4096",
        "placement": "split",
        "repeat": 0,
        "verdict": "ok",
        "producer": "gated",
        "consumer": "eager",
        "asked": 100,
        "bounded_by": "buffers",
        "bound_reason": "unchanged for 1 s",
        "plateau_messages": 41_200,
        "plateau_bytes": 1_442_000,
        "plateau_after_s": 4.25,
        "surplus_server": 200,
        "surplus_client": 40_000,
        "surplus_kernel": 999.5,
        "surplus_unaccounted": -0.5,
        "server_rss_growth_bytes": -4096,
        "driver_rss_growth_bytes": 8192,
        "server_peak_rss_bytes": 45_000_000,
        "driver_peak_rss_bytes": None,
    }
    assert isinstance(rows[0]["plateau_bytes"], int)


def test_an_unbounded_run_has_no_plateau(path: Path) -> None:
    write_sweep(path, [backpressure_run("grpc", 0, [5, 6, 7], producer="push", bounded_by="nothing")])
    plateaus = [(row["plateau_messages"], row["plateau_bytes"]) for row in read(path, "backpressure")]
    assert plateaus == [(None, None)] * 3


def test_a_backpressure_run_that_failed_is_one_row_without_a_quiet_period(path: Path) -> None:
    row = one(path, "backpressure", backpressure_run("grpc", verdict="failed", reason="connection lost"))
    assert (row["verdict"], row["quiet_s"], row["produced"], row["asked"]) == ("failed", None, None, 100)


def test_other_series_do_not_multiply_the_rows_of_backpressure(path: Path) -> None:
    series = {
        "produced": [(0, 1.0), (50, 2.0)],
        "produced_at_quiet": [(10**9, 100.0)],
        "server_rss_bytes": [(0, 1.0)],
    }
    row = one(path, "backpressure", backpressure_run("rsocket", series=series))
    assert (row["quiet_s"], row["produced"]) == (1.0, 100)


# Hello and bulk


def test_hello_has_what_was_asked_and_what_the_server_counted(path: Path) -> None:
    wire = {"wire_in_bytes": 105.5, "wire_out_bytes": 40.0}
    record = hello_run(
        "http_threads",
        0,
        5_000,
        connections=300,
        service_time_ms=100,
        connections_opened=299,
        loop_lag_p90_us=75.5,
        law="198 of at most 200",
        crosscheck_tool="wrk",
        crosscheck_requests_per_s=5_100.5,
        **wire,
    )
    row = one(path, "hello", record)
    assert {name: row[name] for name in PROMISED["hello"].split() if name not in CELL.split()} == {
        "model": "threads",
        "workers": 64,
        "connections": 300,
        "connections_opened": 299,
        "service_time_ms": 100,
        "service_work": "wait",
        "n": 20_000,
        "errors": 0,
        "requests_per_s": 5_000.0,
        "requests_per_server_cpu_s": 5_000.0,
        "mean_us": 60_000.0,
        "p50_us": 54_000.0,
        "p75_us": pytest.approx(66_000.0),
        "p90_us": 78_000.0,
        "p99_us": 120_000.0,
        "p999_us": 240_000.0,
        "max_us": 600_000.0,
        "server_cpu_us": 200.0,
        "driver_cpu_us": 100.0,
        "server_cpu_pct": 100.0,
        "driver_cpu_pct": 50.0,
        "loop_lag_p90_us": 75.5,
        **golden_db.RESOURCES,
        "server_peak_rss_bytes": 60_000_000,
        **wire,
        "crosscheck_requests_per_s": 5_100.5,
        "crosscheck_tool": "wrk",
        "law": "198 of at most 200",
        **golden_db.CONNECTING,
    }
    assert isinstance(row["connections_opened"], int)


def test_an_event_loop_has_no_workers(path: Path) -> None:
    row = one(path, "hello", hello_run("http", 0, 10_000))
    assert (row["model"], row["workers"], row["crosscheck_tool"]) == ("event loop", None, None)


def test_bulk_holds_both_directions(path: Path) -> None:
    write_sweep(
        path,
        [
            bulk_run(
                "upload", "grpc", 0, 0.5, sender="push", shape="per_record", records=10_000, buffered_max=9_000
            ),
            bulk_run("download", "http", 0, 1.0, shape="single"),
            hello_run("http", 0, 10_000),
        ],
    )
    up, down = read(path, "bulk")
    assert {name: up[name] for name in PROMISED["bulk"].split() if name not in CELL.split()} == {
        "operation": "upload",
        "shape": "per_record",
        "batch": 1_000,
        "sender": "push",
        "producer": None,
        "records": 10_000,
        "messages": 10_000,
        "seconds": 0.5,
        "records_per_s": 20_000.0,
        "payload_bytes": 1_000_000,
        "bytes_per_record": 100.0,
        "first_ms": None,
        "buffered_max": 9_000,
        **dict.fromkeys(("service_time_ms", "ahead_max", "ahead_max_bytes")),
        "driver_rss_growth_bytes": 2_000_000,
        "server_rss_growth_bytes": 2_000_000,
        "server_cpu_us": 25.0,
        "driver_cpu_us": 40.0,
        **golden_db.RESOURCES,
        **dict.fromkeys(("wire_in_bytes", "wire_out_bytes")),
        "checksum": "5f3a",
    }
    assert (down["operation"], down["sender"], down["producer"]) == ("download", None, "awaited")
    assert (down["first_ms"], down["driver_rss_growth_bytes"]) == (1_000.0, 80_000_000)


def test_a_bulk_run_that_was_ended_for_memory_is_there_with_its_knobs(path: Path) -> None:
    row = one(path, "bulk", OUT_OF_MEMORY)
    assert (row["verdict"], row["shape"], row["sender"], row["records"]) == ("void", "per_record", "push", None)


# Saturation


def test_saturation_has_a_row_for_each_rate_that_was_tried(path: Path) -> None:
    write_sweep(path, [saturation_run("grpc", 0, 2_000.0)])
    rows = read(path, "saturation")

    assert [(row["rate_per_s"], row["kept"]) for row in rows] == [(1000, 1), (2000, 1), (4000, 0), (4000, 0)]
    assert {(row["sustained_per_s"], row["broken_per_s"], row["saturated"]) for row in rows} == {
        (2000.0, 4000.0, "server")
    }
    last = rows[-1]
    assert (last["achieved_per_s"], last["response_p50_us"], last["response_p99_us"]) == (
        2000.0,
        260_000.0,
        495_000.0,
    )
    assert (last["errors"], last["dropped"], last["schedule_delay_p99_us"]) == (0, 70, None)
    assert (last["server_cpu_pct"], last["driver_cpu_pct"]) == (99.0, 80.0)
    assert (last["arrival"], last["slo_p99_ms"], last["steps"]) == ("constant", 10.0, 4)


def test_a_failed_search_is_listed_with_nulls(path: Path) -> None:
    row = one(path, "saturation", saturation_run("grpc", 1, verdict="failed", reason="the server exited with 1"))

    assert (row["verdict"], row["sustained_per_s"], row["rate_per_s"]) == ("failed", None, None)


# Conditions


def test_conditions_has_a_column_for_every_condition_of_run_and_machine(path: Path) -> None:
    row = one(path, "conditions", latency_run("grpc", 0, 300.0, variant="bdp_probe=false", connections=4))
    expected = {
        **golden_db.ENVIRONMENT,
        **golden_db.CONDITIONS,
        "server_cpus": "[0]",
        "driver_cpus": "[1]",
        "multiplex": 0,
        "in_process": 0,
    }
    cell = {"protocol": "grpc", "engine": "aio", "codec": "protobuf", "variant": "bdp_probe=false"}
    assert row == {
        "run_id": "01KG0000000000000000010000",
        **expected,
        **cell,
        "placement": "same",
        "connections": 4,
        **dict.fromkeys(("rate_per_s", "max_in_flight", "arrival_seed")),  # NULL in a closed loop
        **dict.fromkeys(("load_average", "load_average_after", "steal_pct")),  # not told
        **dict.fromkeys(("model", "workers", "waitress")),  # as of runs before there were such
        "knobs": "{}",
        "other_facts": "{}",
    }


def test_conditions_shows_the_knobs_in_force_and_whatever_has_no_column(path: Path) -> None:
    knobs = {"protocol.bdp_probe": False, "protocol.lookahead_bytes": None}
    conditions = {"loop": "asyncio", "new": 14, **knobs}
    facts = {"python": "3.13", "moon": ["full"], "hydra-core": "1.3.8"}
    row = one(path, "conditions", latency_run("grpc", 0, 300.0, conditions=conditions, environment=facts))
    assert (row["loop"], row["python"], row["gc"], row["grpcio"]) == ("asyncio", "3.13", None, None)
    assert json.loads(row["knobs"]) == {"new": 14, **knobs}
    assert json.loads(row["other_facts"]) == {"moon": ["full"], "hydra-core": "1.3.8"}


def test_conditions_lists_failed_runs_too(article: sqlite3.Connection) -> None:
    runs = article.execute("SELECT run_id FROM runs ORDER BY run_id").fetchall()
    assert article.execute("SELECT run_id FROM conditions ORDER BY run_id").fetchall() == runs


def test_every_fact_about_the_machine_has_a_column() -> None:
    libraries = set(host.dependencies("bakeoff"))
    assert set(host.environment()) - libraries <= set(CONDITIONS)
    assert {"grpcio", "rsocket", "websockets", "protobuf", "cbor2", "msgspec", "uvloop"} <= set(CONDITIONS)


# The usual questions


def test_the_payload_sizes_are_one_select(article: sqlite3.Connection) -> None:
    rows = article.execute("SELECT DISTINCT codec, size_bytes FROM payload ORDER BY size_bytes").fetchall()
    assert rows == [("protobuf", 35), ("msgpack", 65), ("cbor_definite", 66), ("cbor", 67), ("json", 83)]


def test_what_was_produced_for_a_quiet_reader_is_one_select(article: sqlite3.Connection) -> None:
    rows = article.execute(
        "SELECT protocol, producer, quiet_s, produced, bounded_by FROM backpressure"
        " WHERE consumer = 'pull' AND variant = '' AND producer IN ('awaited', 'push') ORDER BY 1, 2, 3"
    ).fetchall()
    assert rows == [
        ("grpc", "awaited", 0.5, 10_000, "buffers"),
        ("grpc", "awaited", 1.0, 20_000, "buffers"),
        ("grpc", "awaited", 2.0, 40_000, "buffers"),
        ("grpc", "push", 0.5, 300_000, "nothing"),
        ("grpc", "push", 1.0, 600_000, "nothing"),
        ("grpc", "push", 2.0, None, "nothing"),
        *(("http", "awaited", quiet_s, 44_000, "buffers") for quiet_s in (0.5, 1.0, 2.0)),
        ("rsocket", "awaited", 0.5, 100, "demand"),
        ("rsocket", "awaited", 1.0, 100, "demand"),
        ("rsocket", "awaited", 2.0, 100, "demand"),
        *(("sse", "awaited", quiet_s, 41_000, "buffers") for quiet_s in (0.5, 1.0, 2.0)),
        ("websocket", "awaited", 0.5, 60_100, "buffers"),
        ("websocket", "awaited", 1.0, 60_100, "buffers"),
        ("websocket", "awaited", 2.0, 60_100, "buffers"),
        ("websocket", "push", 0.5, 350_000, "nothing"),
        ("websocket", "push", 1.0, 700_000, "nothing"),
        ("websocket", "push", 2.0, 1_400_000, "nothing"),
    ]


def test_each_sweep_can_be_told_apart(article: sqlite3.Connection) -> None:
    rows = article.execute("SELECT sweep_id, suite, count(*) FROM runs GROUP BY sweep_id").fetchall()
    assert rows == [("01KG0000000000000000000001", None, 2), ("01KG0000000000000000000002", "article", 77)]


def test_the_golden_article_has_each_verdict(article: sqlite3.Connection) -> None:
    rows = article.execute("SELECT verdict, count(*) FROM runs WHERE suite = 'article' GROUP BY 1").fetchall()
    assert dict(rows) == {"ok": 73, "void": 1, "failed": 1, "interrupted": 1, "unsupported": 1}
