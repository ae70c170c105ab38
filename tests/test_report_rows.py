"""Which runs make a row, which rows may be compared, and what the sentences under a table say of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.store import RunRecord
from tests.golden_db import CONDITIONS, ENVIRONMENT, backpressure_run, latency_run, payload_run, stream_run
from tests.reports import Reporter


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Reporter:
    return Reporter(capsys, monkeypatch, tmp_path)


def three(protocol: str, *p50_us: float, **changes: Any) -> list[RunRecord]:
    return [latency_run(protocol, repeat, value, **changes) for repeat, value in enumerate(p50_us)]


def ratios(report: Reporter) -> list[str]:
    return [note for note in report.notes("request_response", "--published", "none") if " against " in note]


def test_the_headline_is_the_median_over_runs_with_their_range(report: Reporter) -> None:
    report.write(three("grpc", 310, 290, 300))

    [row] = report.rows("request_response")

    assert (row["p50_us"], row["p50_us_low"], row["p50_us_high"], row["runs"]) == ("300", "290", "310", "3")
    assert row["tail_ratio"] == "2"
    assert "300 [290, 310]" in report("request_response")
    assert "[range of 3]" in report("request_response")


def test_five_runs_get_an_interval_that_says_so(report: Reporter) -> None:
    report.write(three("grpc", 300, 302, 304, 306, 308))

    assert "[interval of 5]" in report("request_response")


def test_void_runs_are_shown_apart_and_in_no_median(report: Reporter) -> None:
    report.write([*three("grpc", 300, 302), latency_run("grpc", 2, 900, verdict="void", reason="driver CPU 97 %")])

    good, void = report.rows("request_response")

    assert (good["verdict"], good["runs"], good["p50_us"]) == ("ok", "2", "301")
    assert (void["verdict"], void["runs"], void["p50_us"], void["floor_ratio"]) == ("void", "1", "900", "")
    text = report("request_response")
    assert "2 ok" in text
    assert "1 void" in text
    assert "900 n=1" in text
    assert text.rstrip().endswith("void: grpc request_response protobuf repeat 2 (driver CPU 97 %)")


def test_void_runs_are_in_no_ratio(report: Reporter) -> None:
    voided = three("websocket", 100, 101, 102, verdict="void", reason="errors")
    report.write([*three("grpc", 300, 301, 302), *voided])

    assert ratios(report) == []


def test_runs_that_all_failed_are_dashes_with_the_kinds_of_error(report: Reporter) -> None:
    broken: dict[str, Any] = {"verdict": "failed", "reason": "no answer", "errors": {"timeout": 4, "refused": 1}}
    report.write([latency_run("grpc", repeat, **broken) for repeat in range(2)])

    [row] = report.rows("request_response")
    [line] = [line for line in report.lines("request_response") if line.startswith("grpc")]

    assert {row[key] for key in ("p50_us", "p90_us", "p99_us", "mean_us", "calls_per_s", "tail_ratio")} == {""}
    assert (row["errors"], row["error_kinds"]) == ("10", "timeout 8, refused 2")
    assert line.split() == [
        "grpc",
        "aio",
        "2",
        "failed",
        *"--------",
        "10",
        "(timeout",
        "8,",
        "refused",
        "2)",
    ]


def test_a_run_without_a_sample_shows_n_0_and_dashes(report: Reporter) -> None:
    stopped = latency_run("rsocket", 0, n=0, errors=0, verdict="interrupted", reason="stopped by Ctrl-C")
    report.write([*three("grpc", 300, 301), stopped])

    rows = report.rows("request_response")

    assert [(row["protocol"], row["n_calls"], row["p50_us"]) for row in rows] == [
        ("grpc", "5000", "300.5"),
        ("rsocket", "0", ""),
    ]
    assert "NaN" not in report("request_response", "--format", "json")


def test_errors_stand_beside_the_latency_of_the_good_calls(report: Reporter) -> None:
    slow = {"n": 1250, "errors": 3750, "verdict": "void", "reason": "75 % failed"}
    report.write([latency_run("grpc", 0, 50_000, **slow)])

    [row] = report.rows("request_response")

    assert (row["p50_us"], row["n_calls"], row["errors"]) == ("50000", "1250", "3750")


def test_a_percentile_with_too_few_samples_is_a_dash(report: Reporter) -> None:
    report.write(three("grpc", 300, 301, n=50, p99_us=None, p999_us=None))

    [row] = report.rows("request_response")
    [line] = [line for line in report.lines("request_response") if line.startswith("grpc")]

    assert (row["p99_us"], row["p999_us"], row["tail_ratio"]) == ("", "", "")
    assert line.split()[5:7] == ["361", "-"]
    assert "p99 from 100 samples" in report("request_response")


def test_one_run_each_says_n_1_and_claims_no_ratio(report: Reporter) -> None:
    report.write([latency_run("tcp", 0, 50), latency_run("grpc", 0, 300), latency_run("websocket", 0, 120)])

    assert ratios(report) == []
    assert "no ratio is claimed where a side has only one good run (n=1)" in report.notes("request_response")
    assert "[n=1]" in report("request_response")
    assert {row["floor_ratio"] for row in report.rows("request_response")} == {""}


def test_a_clear_difference_names_the_faster_side_and_by_how_much(report: Reporter) -> None:
    report.write([*three("grpc", 300, 300, 300), *three("websocket", 120, 120, 120)])

    assert ratios(report) == ["websocket against grpc: 0.40x [0.40, 0.40]: websocket is faster"]


def test_ranges_that_touch_are_no_clear_difference(report: Reporter) -> None:
    report.write([*three("grpc", 280, 300, 320), *three("rsocket", 260, 280, 300)])

    assert ratios(report) == ["rsocket against grpc: 0.93x [0.81, 1.07]: no clear difference"]


def test_an_interval_within_five_per_cent_is_called_equivalent_and_a_wide_one_is_not(report: Reporter) -> None:
    near, far = (100, 101, 102, 101, 100), (70, 130, 100, 101, 99)
    report.write([*three("grpc", *near), *three("rsocket", *near), *three("websocket", *far)])

    assert ratios(report) == [
        "websocket against grpc: 0.99x [0.69, 1.29]: no clear difference",
        "grpc against rsocket: 1.00x [0.99, 1.01]: no clear difference, equivalent",
    ]
    assert "equivalent is what an interval within 5 % shows" in " ".join(report("request_response").split())


def test_a_multiple_of_the_floor_needs_the_same_codec(report: Reporter) -> None:
    report.write([*three("tcp", 50, 50), *three("grpc", 300, 300), *three("websocket", 120, 120)])

    found = {row["protocol"]: row["floor_ratio"] for row in report.rows("request_response")}

    assert found == {"tcp": "1", "grpc": "6", "websocket": ""}


def test_a_multiple_of_the_floor_has_its_bracket_and_the_floor_itself_none(report: Reporter) -> None:
    report.write([*three("tcp", 50, 52), *three("grpc", 300, 312)])

    rows = {row["protocol"]: row for row in report.rows("request_response")}

    assert [rows["tcp"][f"floor_ratio{end}"] for end in ("", "_low", "_high")] == ["1", "", ""]
    assert rows["grpc"]["floor_ratio"] == "6"
    assert float(rows["grpc"]["floor_ratio_low"]) == pytest.approx(300 / 52)
    assert float(rows["grpc"]["floor_ratio_high"]) == pytest.approx(312 / 50)
    assert "6.00 [5.77, 6.24]" in report("request_response")


def test_a_multiple_of_the_floor_needs_the_same_placement(report: Reporter) -> None:
    report.write([*three("tcp", 50, 50, placement="split"), *three("grpc", 300, 300, placement="same")])

    found = {row["protocol"]: (row["placement"], row["floor_ratio"]) for row in report.rows("request_response")}

    assert found == {"tcp": ("split", "1"), "grpc": ("same", "")}


@pytest.mark.parametrize(
    ("key", "changes"),
    [
        ("placement", {"placement": "free"}),
        ("connections", {"connections": 10}),
        ("loop", {"conditions": {**CONDITIONS, "loop": "asyncio"}}),
        ("size_bytes", {"size_bytes": 1024}),
        ("label", {"label": "before"}),
        ("environment", {"environment": {**ENVIRONMENT, "grpcio": "1.84.0"}}),
        ("asyncio_debug", {"environment": {**ENVIRONMENT, "asyncio_debug": 1}}),
        ("count", {"config": {"operation": {"count": 100}}}),
    ],
)
def test_rows_that_differ_in_a_condition_are_split_and_not_compared(
    report: Reporter, key: str, changes: dict[str, Any]
) -> None:
    plain = {"config": {"operation": {"count": 5000}}}
    report.write([*three("grpc", 300, 300, **plain), *three("websocket", 120, 120, **{**plain, **changes})])

    [table] = report.json("request_response")["sweeps"][0]["tables"]

    assert ratios(report) == []
    assert len({row[key] for row in table["rows"]}) == 2
    head = next(column["head"] for column in table["columns"] if column["key"] == key)
    assert head.split()[0] in report("request_response")


CONFIG: dict[str, Any] = {
    "operation": {"name": "any", "mark": 64, "quiet_s": [0.5, 1, 2], "settle_s": 20, "loops": 20000, "count": 5000},
    "load": {"name": "closed", "arrival": "closed", "think_s": 0},
    "limits": {"max_rss_mb": 2048, "call_s": 30},
    "record": {"samples_max": 10000},
    "host": "127.0.0.1",
    "port": 0,
    "seed": 1,
    "plan": {"sweep_id": "a", "position": 0, "repeat": 0},
}


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("operation.mark", (64, 1024)),
        ("operation.quiet_s", ([0.5, 1], [0.5, 2])),
        ("operation.loops", (10, 20)),
        ("operation.settle_s", (5, 20)),
        ("operation.added_later", (1, None)),
        ("load.think_s", (0, 1)),
        ("limits.call_s", (30, 60)),
        ("limits.max_rss_mb", (512, 2048)),
        ("record.samples_max", (10, 100)),
        ("host", ("127.0.0.1", "127.0.0.2")),
        ("port", (5001, 5002)),
    ],
)
@pytest.mark.parametrize("operation", ["backpressure", "request_response", "stream", "payload"])
def test_a_sweep_over_any_key_has_a_row_for_each_value(
    report: Reporter, operation: str, key: str, values: tuple[Any, Any]
) -> None:
    make: dict[str, Callable[[Any], RunRecord]] = {
        "backpressure": lambda config: backpressure_run("grpc", 0, [200, 200, 200], config=config),
        "request_response": lambda config: latency_run("grpc", 0, 300, config=config),
        "stream": lambda config: stream_run("grpc", 0, 40_000, config=config),
        "payload": lambda config: payload_run("json", 0, config=config),
    }
    section, _, name = key.rpartition(".")
    configs = []
    for value in values:
        given = {**CONFIG[section], name: value} if section else value
        configs.append({**CONFIG, section or name: given})
    report.write([make[operation](config) for config in configs])

    rows = report.rows(operation)

    assert [row["runs"] for row in rows] == ["1", "1"]
    assert len({tuple(row.values()) for row in rows}) == 2


def test_settings_that_differ_are_a_column_and_those_of_the_plan_are_not(report: Reporter) -> None:
    first = {**CONFIG, "operation": {**CONFIG["operation"], "mark": 1024}}
    second = {**CONFIG, "seed": 2, "plan": {"sweep_id": "a", "position": 1, "repeat": 1}}
    report.write([backpressure_run("grpc", i, [200] * 3, config=c) for i, c in enumerate((CONFIG, first, second))])

    assert {row["settings"]: row["runs"] for row in report.rows("backpressure")} == {
        "mark=1024": "1",
        "mark=64": "2",
    }
    assert "mark=1024" in report("backpressure")


def test_a_debug_mode_is_said_at_the_end(report: Reporter) -> None:
    report.write(three("grpc", 300, 301, environment={**ENVIRONMENT, "asyncio_debug": 1}))

    assert "asyncio's debug mode was on: its timings compare with no others" in report.lines("request_response")
    assert "asyncio debug mode on" in report("request_response")


def test_conditions_that_all_rows_share_are_said_once(report: Reporter) -> None:
    report.write(
        three(
            "grpc", 300, 301, config={"operation": {"count": 5000, "warmup": 2000}, "load": {"arrival": "closed"}}
        )
    )

    [table] = report.json("request_response")["sweeps"][0]["tables"]

    assert table["conditions"] == [
        "one quote per call",
        "closed loop",
        "1 connection",
        "5,000 calls",
        "2,000 warm-up calls dropped",
        "server and driver on one core",
        "loop uvloop",
        "gc frozen after warm-up",
        "codec protobuf",
        "2 repeats",
    ]


def test_an_empty_body_is_not_a_quote(report: Reporter) -> None:
    echo = {"config": {"operation": {"size_bytes": 0}}, "scenario": "echo"}
    report.write([*three("grpc", 300, 301), *three("grpc", 200, 201, **echo)])

    found = {row["size_bytes"]: row["p50_us"] for row in report.rows("request_response")}

    assert found == {"0": "300.5", "empty": "200.5"}


def test_engines_of_one_protocol_have_their_own_rows_and_names(report: Reporter) -> None:
    runs = [stream_run("rsocket", repeat, 50_000) for repeat in range(2)]
    runs += [stream_run("rsocket", repeat, 80_000, engine="coalescing") for repeat in range(2)]
    report.write(runs)

    assert [row["engine"] for row in report.rows("stream")] == ["coalescing", "stock"]
    assert (
        "rsocket coalescing against rsocket stock: 1.60x [1.60, 1.60]: rsocket coalescing is faster"
        in report.notes("stream")
    )


def test_a_protocol_is_compared_with_each_codec_that_others_have_too(report: Reporter) -> None:
    runs = [*three("grpc", 300, 300), *three("websocket", 120, 120)]
    runs += [*three("grpc", 330, 330, codec="json"), *three("websocket", 110, 110, codec="protobuf")]
    report.write(runs)

    notes = report.notes("request_response", "--published", "none")

    assert notes[:6] == [
        "p50 as a ratio, each with its default codec:",
        "websocket against grpc: 0.40x [0.40, 0.40]: websocket is faster",
        "p50 as a ratio, codec json:",
        "websocket against grpc: 0.36x [0.36, 0.36]: websocket is faster",
        "p50 as a ratio, codec protobuf:",
        "websocket against grpc: 0.37x [0.37, 0.37]: websocket is faster",
    ]


def test_codecs_of_one_protocol_are_compared_under_one_heading(report: Reporter) -> None:
    runs = [*three("grpc", 300, 300), *three("grpc", 330, 330, codec="msgpack")]
    runs += [*three("websocket", 120, 120), *three("websocket", 110, 110, codec="cbor")]
    report.write(runs)

    notes = report.notes("request_response", "--published", "none")

    assert notes[2:5] == [
        "p50 as a ratio, within one protocol:",
        "grpc protobuf against grpc msgpack: 0.91x [0.91, 0.91]: grpc protobuf is faster",
        "websocket cbor against websocket json: 0.92x [0.92, 0.92]: websocket cbor is faster",
    ]


def test_one_connection_is_not_compared_with_ten(report: Reporter) -> None:
    runs = []
    for connections, grpc, websocket in ((1, 300, 120), (10, 900, 1200)):
        runs += three("grpc", grpc, grpc, connections=connections)
        runs += three("websocket", websocket, websocket, connections=connections)
    report.write(runs)

    notes = report.notes("request_response", "--published", "none")

    assert notes[:4] == [
        "p50 as a ratio, each with its default codec, 1 connection:",
        "websocket against grpc: 0.40x [0.40, 0.40]: websocket is faster",
        "p50 as a ratio, each with its default codec, 10 connections:",
        "grpc against websocket: 0.75x [0.75, 0.75]: grpc is faster",
    ]


def test_an_unsupported_cell_is_a_dash_with_a_reason(report: Reporter) -> None:
    reason = "17,000,000 bytes in one message; rsocket carries at most 16,777,215"
    report.write([latency_run("rsocket", 0, verdict="unsupported", reason=reason)])

    [row] = report.rows("request_response")

    assert (row["verdict"], row["p50_us"]) == ("unsupported", "")
    [sweep] = report.json("request_response")["sweeps"]
    assert sweep["attention"] == [
        "1 row needs attention:",
        f"unsupported: rsocket request_response cbor repeat 0 ({reason})",
    ]


def test_memory_that_was_not_measured_is_not_zero(report: Reporter) -> None:
    report.write(
        [
            backpressure_run(
                "grpc", 0, [200, 200, 200], server_rss_growth_bytes=None, driver_peak_rss_bytes=5_000_000
            )
        ]
    )

    [row] = report.rows("backpressure")

    assert (row["server_peak_rss_bytes"], row["driver_peak_rss_bytes"]) == ("", "5000000")
    assert (row["server_rss_growth_bytes"], row["driver_rss_growth_bytes"]) == ("", "500000")
    assert "not measured" in report("backpressure")


def test_a_quiet_period_that_was_not_reached_is_a_dash(report: Reporter) -> None:
    push: dict[str, Any] = {
        "producer": "push",
        "bounded_by": "nothing",
        "bound_reason": "the server reached the memory ceiling",
    }
    report.write([backpressure_run("grpc", 0, [300_000, None, None], **push)])

    [row] = report.rows("backpressure")

    assert (row["produced_at_0.5_s_messages"], row["produced_at_2_s_messages"]) == ("300000", "")
    assert "nothing: the server reached the memory ceiling (grpc)" in report.notes("backpressure")


def test_the_surplus_is_shared_out_in_per_cent(report: Reporter) -> None:
    places: dict[str, Any] = {"surplus_server": 10, "surplus_client": 970, "surplus_kernel": 20}
    report.write([backpressure_run("grpc", 0, [1100, 1100, 1100], **places)])

    assert [row["surplus"] for row in report.rows("backpressure")] == ["97 % client, 2 % kernel, 1 % server"]


def test_what_the_ledger_cannot_place_is_unaccounted(report: Reporter) -> None:
    places: dict[str, Any] = {"surplus_client": 1100, "surplus_kernel": 0, "surplus_unaccounted": -100}
    report.write([backpressure_run("grpc", 0, [1100, 1100, 1100], **places)])

    assert [row["surplus"] for row in report.rows("backpressure")] == ["110 % client, -10 % unaccounted"]


def test_counts_of_several_runs_have_their_range(report: Reporter) -> None:
    report.write(
        [backpressure_run("grpc", repeat, [made] * 3) for repeat, made in enumerate((5_000, 5_200, 5_100))]
    )

    assert "5,100 [5,000, 5,200]" in report("backpressure")


def test_runs_that_disagree_about_the_bound_are_counted(report: Reporter) -> None:
    runs = [backpressure_run("grpc", repeat, [5_000, 5_000, 5_000]) for repeat in range(2)]
    report.write([*runs, backpressure_run("grpc", 2, [5_000, 6_000, 7_000], bounded_by="nothing")])

    assert "buffers (172 kB) 2/3, nothing 1/3" in report("backpressure")


def test_a_codec_that_cannot_carry_the_message_is_shown_whatever_the_verdict(report: Reporter) -> None:
    no = {"size_bytes": None, "hex": None, "encode_ns": None, "decode_ns": None, "representable": "no"}
    why: dict[str, Any] = {"verdict": "unsupported", "reason": "nan is not representable: JSON has no NaN"}
    refused = payload_run("json", 0, message="nan", **no, **why)
    refused.findings = {**refused.findings, "reason": "JSON has no NaN"}
    report.write([payload_run("cbor", 0, message="nan"), refused])

    rows = {row["codec"]: row for row in report.rows("payload")}
    [line] = [line for line in report.lines("payload") if line.startswith("json ") and "cannot" not in line]

    assert (rows["json"]["verdict"], rows["json"]["size_bytes"]) == ("unsupported", "")
    assert rows["cbor"]["size_ratio"] == "1"
    assert "not representable" in line
    assert "json cannot carry nan unchanged: JSON has no NaN" in report.notes("payload")


def test_rows_that_were_all_launched_on_a_busy_machine_are_not_named_one_by_one(report: Reporter) -> None:
    busy = {"conditions": {**CONDITIONS, "load_average": 7.5}}
    report.write([latency_run(name, 0, 300, **busy) for name in ("tcp", "grpc", "rsocket", "websocket")])

    assert [note for note in report.notes("request_response") if note.startswith("disturbed")] == [
        "disturbed: at launch the 1-minute load average was over the number of CPUs by more than 1: "
        "every row (up to 7.5)"
    ]


def test_a_row_that_was_launched_on_a_busy_machine_is_named(report: Reporter) -> None:
    busy, quiet = ({"conditions": {**CONDITIONS, "load_average": load}} for load in (3.25, 3.0))
    report.write(
        [
            latency_run("grpc", 0, 300, **quiet),
            latency_run("grpc", 1, 301, **busy),
            *three("websocket", 120, 121, **quiet),
            *three("rsocket", 290, 291),
        ]
    )

    assert [note for note in report.notes("request_response") if note.startswith("disturbed")] == [
        "disturbed: at launch the 1-minute load average was over the number of CPUs by more than 1: "
        "grpc (up to 3.2 in 1/2)"
    ]
    assert {row["protocol"]: row["runs"] for row in report.rows("request_response")}["grpc"] == "2"


def test_processes_that_did_not_get_their_core_are_named(report: Reporter) -> None:
    runs = [stream_run("grpc", r, 40_000, placement="same", busy_pct=71.0) for r in range(2)]
    runs += [stream_run("websocket", r, 60_000, placement="same", busy_pct=99.0) for r in range(2)]
    report.write(runs)

    assert [note for note in report.notes("stream") if note.startswith("disturbed")] == [
        "disturbed: both processes together got less of their core than 85 %, so that p99 and rates are not the "
        "protocol's alone: grpc (71 %)"
    ]


def test_nothing_is_said_of_disturbances_that_were_not_recorded(report: Reporter) -> None:
    report.write([*three("grpc", 300, 301), stream_run("grpc", 0, 40_000)])

    assert "disturbed" not in report()


def test_calls_that_share_a_connection_are_said_so(report: Reporter) -> None:
    shared = {"connections": 16, "conditions": {**CONDITIONS, "multiplex": True}}
    report.write(three("grpc", 300, 301, **shared))

    [table] = report.json("request_response")["sweeps"][0]["tables"]

    assert "16 calls at a time on 1 connection" in table["conditions"]
    assert not any("16 connections" in said for said in table["conditions"])


def test_a_floor_that_nothing_can_be_a_multiple_of_says_why(report: Reporter) -> None:
    report.write([*three("tcp", 50, 51), *three("websocket", 120, 121)], 1)
    report.write([*three("tcp", 50), *three("grpc", 300)], 2)
    report.write([*three("tcp", 50, 51), *three("grpc", 300, 301)], 3)

    found = [
        [note for note in report.notes("request_response", "--sweep", f"01KG{n:022d}") if "a dash, as" in note]
        for n in (1, 2, 3)
    ]

    assert found == [
        [
            "x floor: a dash, as it needs tcp with codec json under the same conditions, and 2 good runs of both",
        ],
        ["x floor: a dash, as it needs 2 good runs of the row and of tcp"],
        [],
    ]


def test_errors_are_a_column_of_the_text_only_where_there_are_any(report: Reporter) -> None:
    report.write([*three("grpc", 300, 301)], 1)
    report.write([*three("grpc", 300, 301, errors=1)], 2)

    clean, faulty = (report("request_response", "--sweep", f"01KG{n:022d}") for n in (1, 2))

    assert ("no errors in any run" in clean, "no errors in any run" in faulty) == (True, False)
    assert ("errors\n" in clean, "errors\n" in faulty) == (False, True)
    assert [row["errors"] for row in report.rows("request_response", "--sweep", f"01KG{1:022d}")] == ["0"]


def test_a_codec_that_cannot_carry_the_message_says_why(report: Reporter) -> None:
    no = {"size_bytes": None, "hex": None, "encode_ns": None, "decode_ns": None, "representable": "no"}
    nan = {"message": "nan"}
    refused = payload_run("json", 0, **nan, **no)
    refused.findings = {**refused.findings, "reason": "JSON has no NaN"}
    report.write([payload_run("cbor", 0, **nan), refused])

    rows = {row["codec"]: row for row in report.rows("payload")}

    assert (rows["json"]["size_bytes"], rows["json"]["size_ratio"], rows["cbor"]["size_ratio"]) == ("", "", "1")
    assert "not representable" in report("payload")
    assert "json cannot carry nan unchanged: JSON has no NaN" in report.notes("payload")


def test_a_message_of_no_bytes_divides_nothing(report: Reporter) -> None:
    report.write(
        [payload_run("protobuf", 0, message="zero", size_bytes=0, hex=""), payload_run("json", message="zero")]
    )

    assert [row["size_ratio"] for row in report.rows("payload")] == ["", ""]


def test_whether_field_names_are_kept_is_read_from_the_bytes(report: Reporter) -> None:
    report.write(
        [
            payload_run("json", hex=b'{"a":1,"bc":2}'.hex()),
            payload_run("msgpack", hex=b"\x82\xa1a\x01\xa2bc\x02".hex()),
            payload_run("protobuf", hex="08011002"),
        ]
    )

    assert {row["codec"]: row["keeps"] for row in report.rows("payload")} == {
        "json": "names",
        "msgpack": "names",
        "protobuf": "no names",
    }
