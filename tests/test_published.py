"""Figures from elsewhere: what the file holds, and how the report says that ours agree with them or differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runner.report import published
from runner.report.published import Figure, Made
from runner.report.read import ReportError
from runner.store import RunRecord
from tests.golden_db import backpressure_run, latency_run, payload_run, stream_run
from tests.reports import Reporter

NAME = "spring_boot_2026"


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Reporter:
    return Reporter(capsys, monkeypatch, tmp_path)


def calls(protocol: str, *p50_us: float, **changes: Any) -> list[RunRecord]:
    return [latency_run(protocol, repeat, value, **changes) for repeat, value in enumerate(p50_us)]


def note(report: Reporter, table: str, beginning: str) -> str:
    return next(line for line in report.notes(table) if line.startswith(beginning))


def test_the_printed_figures_are_in_the_file() -> None:
    [source] = published.load(NAME)

    assert source.payload == {"quote": {"protobuf": 35, "json": 83, "cbor": 67}}
    assert source.request_response is not None
    assert source.request_response.value("grpc", "p50_us") == 302.0
    assert source.request_response.value("websocket", "tail_ratio") == pytest.approx(15.42, abs=0.01)
    assert source.stream is not None
    assert source.stream.value("rsocket", "messages_per_s") == 55_580
    assert source.backpressure is not None
    assert source.backpressure.figures[1].produced == {0.5: 103_425, 1.0: 449_318, 2.0: 1_208_219}


def test_provenance_says_who_when_and_on_what() -> None:
    [source] = published.load(NAME)

    said = source.provenance()

    for part in (NAME, "ankurm.com", "September 2026", "Spring Boot 4.1.1", "rsocket-java 1.1.5", "one process"):
        assert part in said


def test_all_none_or_one_can_be_asked_for(report: Reporter) -> None:
    report.write(calls("grpc", 300, 301))

    assert "published (spring_boot_2026)" in report("request_response")
    assert "published (spring_boot_2026)" in report("request_response", "--published", NAME)
    assert "published" not in report("request_response", "--published", "none")
    assert report.refused("--published", "nobody") == (
        f"bakeoff report: published nobody: there is none; give none, all or one of: "
        f"grpc_streaming_rest, {NAME}, spring_webflux"
    )


def test_figures_that_are_quoted_have_their_provenance_at_the_end(report: Reporter) -> None:
    report.write([*calls("grpc", 300, 301), payload_run("json")])

    assert any("ankurm.com" in line for line in report.json("payload")["notes"])


def test_sizes_are_equal_or_differ_by_name(report: Reporter) -> None:
    report.write([payload_run("protobuf"), payload_run("json"), payload_run("cbor")], 1)
    equal = report.notes("payload")
    report.write([payload_run("protobuf"), payload_run("json", size_bytes=85)], 2)

    assert f"published ({NAME}): protobuf 35, json 83, cbor 67 bytes: equal" in equal
    assert (
        f"published ({NAME}): protobuf 35, json 83, cbor 67 bytes: differs: json 85 here (cbor not measured here)"
        in report.notes("payload")
    )


def test_the_size_of_another_message_is_not_compared(report: Reporter) -> None:
    report.write([payload_run("protobuf", message="cjk", size_bytes=12_030)])

    assert not any("published" in line for line in report.notes("payload"))
    assert "ankurm.com" not in report("payload")


@pytest.mark.parametrize(
    ("grpc", "rsocket", "ours", "word"),
    [
        ((300, 305, 310), (295, 306, 312), "no clear difference", "agrees"),
        ((300, 305, 310), (200, 205, 210), "rsocket is faster", "differs"),
        ((200, 205, 210), (300, 305, 310), "grpc is faster", "differs"),
    ],
)
def test_a_published_tie_agrees_with_a_tie_only(
    report: Reporter, grpc: tuple[float, ...], rsocket: tuple[float, ...], ours: str, word: str
) -> None:
    report.write([*calls("grpc", *grpc), *calls("rsocket", *rsocket)])

    line = note(report, "request_response", "grpc against rsocket")

    assert f"]: {ours} (published 1.14x, no clear difference: {word})" in line


@pytest.mark.parametrize(
    ("websocket", "grpc", "ours", "word"),
    [
        (120, 300, "websocket is faster", "agrees"),
        (300, 120, "grpc is faster", "differs"),
        (300, 300, "no clear difference", "undecided here"),
    ],
)
def test_a_published_difference_agrees_with_the_same_one_only(
    report: Reporter, websocket: float, grpc: float, ours: str, word: str
) -> None:
    report.write([*calls("grpc", grpc, grpc), *calls("websocket", websocket, websocket)])

    line = note(report, "request_response", "websocket against grpc")

    assert line.endswith(f": {ours} (published 0.41x, websocket faster: {word})")


def test_a_published_ratio_within_our_bracket_is_undecided(report: Reporter) -> None:
    report.write([*calls("grpc", 340, 345, 350), *calls("rsocket", 300, 303, 306)])

    assert note(report, "request_response", "grpc against rsocket") == (
        "grpc against rsocket: 1.14x [1.11, 1.17]: rsocket is faster "
        "(published 1.14x, no clear difference: undecided here)"
    )


@pytest.mark.parametrize(
    "changes",
    [{"connections": 10}, {"size_bytes": 1024}],
    ids=["connections", "body"],
)
def test_figures_are_quoted_only_where_they_can_apply(report: Reporter, changes: dict[str, Any]) -> None:
    report.write([*calls("grpc", 300, 305, **changes), *calls("websocket", 120, 122, **changes)])

    printed = report("request_response")

    assert "websocket is faster" in printed
    assert "published" not in printed


def test_stream_figures_are_not_quoted_for_ten_connections(report: Reporter) -> None:
    report.write([stream_run("grpc", repeat, 40_000, connections=10) for repeat in range(2)])

    assert "published" not in report("stream")


def test_a_second_run_of_the_source_is_called_so(report: Reporter) -> None:
    report.write(calls("grpc", 300, 301))

    assert "websocket (second run) p50 124.0 µs, p99 1,448.0 µs" in report("request_response", "--format", "md")


def test_a_count_that_rose_as_published_and_then_stopped_differs(report: Reporter) -> None:
    stopped = backpressure_run("grpc", 0, [10_000, 20_000, 40_000], producer="gated", plateau_after_s=4.5)
    report.write([stopped])

    [row] = report.rows("backpressure")

    assert row["final_messages"] == "40000"
    assert note(report, "backpressure", "grpc gated").endswith(
        "still rising; differs: as published up to 2 s, but here it stopped at 40,000 messages after 4.5 s"
    )


def test_rows_that_differ_in_a_setting_are_told_apart_where_they_are_named(report: Reporter) -> None:
    gated: dict[str, Any] = {"producer": "gated", "bounded_by": "nothing"}
    report.write(
        [
            backpressure_run("grpc", 0, [9_000, 19_000, None], config={"operation": {"mark": mark}}, **gated)
            for mark in (64, 1024)
        ]
    )

    notes = report.notes("backpressure")

    assert "nothing: still rising at the end (grpc mark=1024, grpc mark=64)" in notes
    assert [line.partition("rising; ")[2] for line in notes if line.startswith("grpc gated")] == [
        f"mark={mark}: here still rising by then, in the end bounded by nothing: agrees" for mark in (1024, 64)
    ]


def test_tails_are_compared_by_their_values(report: Reporter) -> None:
    report.write([*calls("grpc", 300, 300), *calls("websocket", 100, 100, p99_us=1500)])

    assert note(report, "request_response", "websocket 15.0") == (
        "websocket 15.0 against grpc 2.0, 7.50x [7.50, 7.50]: grpc is steadier "
        "(published 15.4 against 3.3, grpc steadier: agrees)"
    )


def test_stream_ratios_carry_the_spread_of_the_source(report: Reporter) -> None:
    runs = [stream_run("grpc", repeat, 40_000) for repeat in range(2)]
    report.write([*runs, *(stream_run("websocket", repeat, 38_000) for repeat in range(2))])

    assert note(report, "stream", "websocket against grpc") == (
        "websocket against grpc: 0.95x [0.95, 0.95]: grpc is faster "
        "(published 1.60x, 1.6x to 2.4x over its runs, websocket faster: differs)"
    )


def test_one_run_each_agrees_with_nothing_and_differs_from_nothing(report: Reporter) -> None:
    report.write([*calls("grpc", 300), *calls("websocket", 120)])

    said = " ".join(report.notes("request_response"))

    assert "agrees" not in said
    assert "differs" not in said
    assert "grpc p50 302.0 µs, p99 994.7 µs" in said


def test_back_pressure_is_compared_by_shape(report: Reporter) -> None:
    report.write(
        [
            backpressure_run("rsocket", 0, [100, 100, 100]),
            backpressure_run("grpc", 0, [9_000, 9_000, 9_000], producer="push"),
            backpressure_run("websocket", 0, [9_000, 19_000, None], producer="push", bounded_by="nothing"),
            backpressure_run("grpc", 0, [10_000, 20_000, 40_000]),
        ]
    )

    rsocket = note(report, "backpressure", "rsocket awaited")
    grpc = note(report, "backpressure", "grpc push")
    websocket = note(report, "backpressure", "websocket push")

    assert rsocket.endswith("here exactly what was asked for by then, in the end bounded by demand: agrees")
    assert grpc.startswith("grpc push: 103,425 / 449,318 / 1,208,219 at 0.5 / 1 / 2 s (again: 1,346,233 at 2 s; ")
    assert grpc.endswith("still rising; here flat by then, in the end bounded by buffers (312 kB): differs")
    assert websocket.endswith("here still rising by then, in the end bounded by nothing: agrees")
    assert note(report, "backpressure", "grpc gated").endswith("still rising; not measured here")
    assert "with another producer, bounded here: grpc awaited by buffers (1.4 MB)" in report.notes("backpressure")


@pytest.mark.parametrize(
    ("produced", "shape"),
    [
        ({0.5: 100, 1: 100}, "demand"),
        ({0.5: 100, 1: 101}, "rising"),
        ({0.5: 50, 1: 200, 2: 200}, "flat"),
        ({2: 311_617}, ""),
        ({2: 100}, "demand"),
    ],
)
def test_the_shape_of_counts(produced: dict[float, int], shape: str) -> None:
    assert Made("grpc", "push", produced).shape(100) == shape


def test_what_was_not_printed_is_none() -> None:
    assert Figure("grpc", p50_us=1.0).value("p99_us") is None
    assert Figure("grpc", p50_us=1.0).value("tail_ratio") is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("title: [", "expected"),
        ("titel: x", "titel"),
        ("title: x", "source"),
    ],
)
def test_a_mistake_in_a_file_is_one_line_that_names_it(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "mine.yaml").write_text(text)

    with pytest.raises(ReportError) as refused:
        published.load("all", tmp_path)

    assert str(refused.value).startswith("conf/published/mine.yaml: ")
    assert problem in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_readings_of_charts_and_the_printed_transfers_are_in_their_files() -> None:
    [charts] = published.load("spring_webflux")
    [transfers] = published.load("grpc_streaming_rest")

    assert charts.hello is not None
    assert charts.hello.figures == []
    assert charts.hello.under["connections"] == [25, 100, 300]
    assert [r.under["connections"] for r in charts.hello.readings if r.metric == "p50_us"] == [[25], [300]]
    assert transfers.upload is not None
    assert [moved.seconds for moved in transfers.upload.figures[:2]] == [0.296, 1.08]
    assert transfers.download is not None
    assert [moved.payload_bytes for moved in transfers.download.figures] == [108e6, 213e6]
