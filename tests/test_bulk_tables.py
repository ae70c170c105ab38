"""UPLOAD and DOWNLOAD: what may be compared, what decides, and how ours stands beside what was printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runner.store import RunRecord
from tests.golden_transfers import OUT_OF_MEMORY, TOO_LARGE, bulk_run
from tests.reports import Reporter


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Reporter:
    return Reporter(capsys, monkeypatch, tmp_path)


def two(protocol: str, seconds: float, operation: str = "upload", **changes: Any) -> list[RunRecord]:
    return [bulk_run(operation, protocol, repeat, seconds, **changes) for repeat in range(2)]


def note(report: Reporter, table: str, beginning: str) -> str:
    return next(line for line in report.notes(table) if line.startswith(beginning))


def test_a_row_has_size_time_memory_and_messages(report: Reporter) -> None:
    report.write(two("grpc", 0.5, "download"))

    [row] = report.rows("download")

    assert (row["shape"], row["producer"], row["records"], row["batch"]) == ("batched", "awaited", "100000", "1000")
    assert (row["seconds"], row["records_per_s"], row["messages"]) == ("0.5", "200000", "100")
    assert (row["payload_bytes"], row["bytes_per_record"], row["first_ms"]) == ("10000000", "100", "5")
    assert (row["driver_rss_growth_bytes"], row["server_rss_growth_bytes"]) == ("2000000", "2000000")


def test_an_upload_has_no_first_batch(report: Reporter) -> None:
    report.write(two("grpc", 0.5))

    assert "first" not in report("upload")


def test_numbers_of_records_are_never_compared_with_each_other(report: Reporter) -> None:
    report.write([*two("grpc", 0.5, records=10_000), *two("http", 1.0, records=100_000)])

    assert not any(" against " in line for line in report.notes("upload", "--published", "none"))


def test_shapes_are_compared_within_a_protocol_and_protocols_within_a_shape(report: Reporter) -> None:
    report.write(
        [
            *two("grpc", 0.5),
            *two("grpc", 0.25, shape="single"),
            *two("http", 1.0),
            *two("http", 0.75, shape="single"),
        ]
    )

    notes = report.notes("upload", "--published", "none")

    assert (
        "seconds at 100,000 records as a ratio, each with its default codec, shape batched, sender awaited:"
        in notes
    )
    assert "grpc against http: 0.50x [0.50, 0.50]: grpc is faster" in notes
    assert "grpc against http: 0.33x [0.33, 0.33]: grpc is faster" in notes
    assert "grpc single against grpc batched: 0.50x [0.50, 0.50]: grpc single is faster" in notes
    assert not any(
        line.startswith(("grpc against http batched", "grpc single against http batched")) for line in notes
    )


def test_a_pair_is_said_once_and_by_all_that_tells_its_rows_from_the_others(report: Reporter) -> None:
    report.write(
        [
            *two("http", 1.0),
            *two("websocket", 0.5),
            *(run for shape in ("batched", "single") for run in two("grpc", 0.25, shape=shape)),
            *(run for shape in ("batched", "single") for run in two("grpc", 0.75, shape=shape, codec="json")),
        ]
    )

    notes = report.notes("upload", "--published", "none")

    assert notes.count("websocket against http: 0.50x [0.50, 0.50]: websocket is faster") == 1
    for shape in ("batched", "single"):
        line = (
            f"grpc protobuf {shape} against grpc json {shape}: 0.33x [0.33, 0.33]: grpc protobuf {shape} is faster"
        )
        assert notes.count(line) == 1


def test_one_record_a_message_is_compared_where_it_was_measured(report: Reporter) -> None:
    each = two("grpc", 1.0, shape="per_record", records=10_000)
    report.write([*two("grpc", 0.5), *two("grpc", 0.05, records=10_000), *each])

    notes = report.notes("upload", "--published", "none")

    at = notes.index("seconds at 10,000 records as a ratio, within one protocol:")
    assert notes[at + 1] == "grpc batched against grpc per_record: 0.05x [0.05, 0.05]: grpc batched is faster"


def decided(report: Reporter) -> list[str]:
    notes = report.notes("upload", "--published", "none")
    at = notes.index("what decides; ratios between rows that differ in this alone:")
    return notes[at + 1 : at + 4]


def test_what_decides_is_computed(report: Reporter) -> None:
    report.write(
        [
            *two("grpc", 0.5),
            *two("grpc", 0.4, shape="single"),
            *two("grpc", 0.6, codec="json"),
            *two("http", 1.5),
        ]
    )

    assert decided(report) == [
        "memory (growth of both sides' peak, under 1 MB counted as 1 MB) at 100,000 records: "
        "streaming against one body 0.06x, the codec 1.00x, the protocol 1.00x: streaming decides",
        "bytes per record at 100,000 records: "
        "the codec 2.00x, streaming against one body 1.00x, the protocol 1.00x: the codec decides",
        "seconds at 100,000 records: "
        "the protocol 2.50x, streaming against one body 1.25x, the codec 1.20x: the protocol decides",
    ]


def test_what_does_not_decide_is_said_just_as_well(report: Reporter) -> None:
    report.write(
        [
            *two("grpc", 0.5, driver_rss_growth_bytes=10_000_000),
            *two("grpc", 0.5, shape="single", driver_rss_growth_bytes=2_000_000, server_rss_growth_bytes=2_000_000),
            *two("http", 1.5, codec="protobuf", driver_rss_growth_bytes=58_000_000),
        ]
    )

    memory, size, _ = decided(report)

    assert memory.endswith("the protocol 5.00x, streaming against one body 3.00x: the protocol decides")
    assert size.endswith("1.00x: no clear difference by any")


def test_single_runs_decide_nothing_but_bytes(report: Reporter) -> None:
    report.write(
        [
            bulk_run("upload", "grpc", 0, 0.5),
            bulk_run("upload", "grpc", 0, 0.4, shape="single"),
            bulk_run("upload", "http", 0, 1.5),
        ]
    )

    memory, size, seconds = decided(report)

    assert memory.endswith(": nothing is claimed of single runs")
    assert size.endswith("the codec 2.00x, streaming against one body 1.00x: the codec decides")
    assert seconds.endswith(": nothing is claimed of single runs")


def test_memory_that_hardly_grew_counts_as_a_megabyte(report: Reporter) -> None:
    flat = {"driver_rss_growth_bytes": -4_096, "server_rss_growth_bytes": 0}
    report.write([*two("grpc", 0.5, **flat), *two("grpc", 0.4, shape="single")])

    memory, *_ = decided(report)

    assert "streaming against one body 0.01x" in memory  # 1 MB of 70 MB


def test_a_void_run_of_memory_is_shown_with_its_reason(report: Reporter) -> None:
    report.write([*two("grpc", 0.5), OUT_OF_MEMORY, TOO_LARGE])

    notes = report.notes("upload")

    assert (
        "void, its numbers count for nothing: memory: the driver passed limits.max_rss_mb (3,072): "
        "grpc per_record push, 1,000,000 records (1 run)"
    ) in notes
    assert (
        "unsupported: a message of 18,000,000 bytes is over the 16,777,215 that rsocket carries: "
        "rsocket single awaited, 100,000 records (1 run)"
    ) in notes
    assert {row["verdict"] for row in report.rows("upload")} == {"ok", "void", "unsupported"}


def test_rows_with_the_same_reason_are_named_in_one_sentence(report: Reporter) -> None:
    failed = {"verdict": "failed", "reason": "the server exited with 1", "shape": "single"}
    report.write(
        [*two("grpc", 0.5), bulk_run("upload", "http", **failed), bulk_run("upload", "websocket", **failed)]
    )

    assert note(report, "upload", "failed") == (
        "failed: the server exited with 1: http single awaited (1 run); websocket single awaited (1 run)"
    )


@pytest.mark.parametrize(
    ("http", "records", "said"),
    [
        (1.8, 1_000_000, "here 3.60x [3.60, 3.60] at 1,000,000 records: agrees"),
        (1.8, 100_000, "here 3.60x [3.60, 3.60] at 100,000 records: agrees"),
        (0.5, 1_000_000, "here 1.00x [1.00, 1.00] at 1,000,000 records: undecided here"),
        (0.25, 1_000_000, "here 0.50x [0.50, 0.50] at 1,000,000 records: differs"),
    ],
)
def test_a_printed_ratio_agrees_with_the_same_way_only(
    report: Reporter, http: float, records: int, said: str
) -> None:
    report.write([*two("grpc", 0.5, records=records), *two("http", http, records=records, shape="single")])

    assert note(report, "upload", "http single 1.080 s") == (
        f"http single 1.080 s against grpc batched 0.296 s at 1,000,000 records, 3.65x; {said}"
    )


def test_ours_at_the_printed_number_of_records_comes_before_larger_and_smaller_ones(report: Reporter) -> None:
    report.write(
        [
            *(run for n in (100_000, 1_000_000, 2_000_000) for run in two("grpc", 0.5, records=n)),
            *(run for n in (100_000, 2_000_000) for run in two("http", 5.0, records=n, shape="single")),
            *two("http", 1.0, records=1_000_000, shape="single"),
        ]
    )

    assert note(report, "upload", "http single").endswith("here 2.00x [2.00, 2.00] at 1,000,000 records: agrees")


def test_printed_bytes_agree_by_their_ratio(report: Reporter) -> None:
    runs = [*two("grpc", 0.5, "download"), *two("http", 1.0, "download", shape="single")]
    report.write(runs, 1)
    equal = report.notes("download")
    report.write([*runs[2:], *two("grpc", 0.5, "download", bytes_per_record=110.0)], 2)

    assert (
        "http single 213 MB against grpc batched 108 MB at 1,000,000 records, 1.97x; "
        "here 2.00x at 100,000 records: agrees"
    ) in equal
    assert "protobuf is 40 to 50 % of json in bytes; here 50.0 %: agrees" in equal
    assert "protobuf is 40 to 50 % of json in bytes; here 55.0 %: differs" in report.notes("download")


def test_what_ran_out_of_memory_there_agrees_where_ours_was_ended_for_it(report: Reporter) -> None:
    report.write([*two("grpc", 0.5), OUT_OF_MEMORY], 1)
    ended = note(report, "upload", "grpc per_record push ran")
    through = two("grpc", 60, shape="per_record", sender="push", records=1_000_000)
    report.write([*two("grpc", 0.5), *through], 2)
    went = note(report, "upload", "grpc per_record push ran")
    report.write(two("grpc", 0.5), 3)

    printed = "grpc per_record push ran out of memory at 1,000,000 records"
    assert ended == f"{printed}; here ended at the memory ceiling of 3,072 MB at 1,000,000 records: agrees"
    assert went == f"{printed}; here 1,000,000 records went through, and the sender grew by 2.0 MB: differs"
    assert note(report, "upload", "grpc per_record push ran") == f"{printed}; not measured here with as many"


def test_figures_are_quoted_only_beside_what_was_printed(report: Reporter) -> None:
    report.write([*two("websocket", 0.5), *two("rsocket", 1.0)])

    printed = report("upload")

    assert "rsocket" in printed
    assert "published" not in printed
