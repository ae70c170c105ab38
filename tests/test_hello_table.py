"""HELLO: who answers more requests, whether the laws hold, and what a source read off its charts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runner.store import RunRecord
from tests.golden_transfers import LIMITED, hello_run
from tests.reports import Reporter


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Reporter:
    return Reporter(capsys, monkeypatch, tmp_path)


def two(protocol: str, requests_per_s: float, **changes: Any) -> list[RunRecord]:
    return [hello_run(protocol, repeat, requests_per_s, **changes) for repeat in range(2)]


def note(report: Reporter, beginning: str) -> str:
    return next(line for line in report.notes("hello") if line.startswith(beginning))


def test_a_row_has_model_workers_connections_and_both_rates(report: Reporter) -> None:
    report.write([*two("http_threads", 5_000, connections=300), *two("http", 10_000, connections=300)])

    loop, threads = report.rows("hello")

    assert (loop["model"], loop["workers"], loop["requests_per_s"]) == ("event loop", "", "10000")
    assert (threads["model"], threads["workers"], threads["connections"]) == ("threads", "64", "300")
    assert (threads["n_requests"], threads["connections_opened"]) == ("20000", "300")
    assert threads["requests_per_server_cpu_s"] == "5000"
    assert threads["server_peak_rss_bytes"] == "60000000"


def test_a_run_that_opened_fewer_connections_shows_the_fewest(report: Reporter) -> None:
    few = hello_run("http", 1, 10_000, connections=300, connections_opened=123)
    report.write([hello_run("http", 0, 10_000, connections=300), few])

    [row] = report.rows("hello")

    assert (row["connections"], row["connections_opened"]) == ("300", "123")


def test_numbers_of_connections_are_never_compared_with_each_other(report: Reporter) -> None:
    report.write([*two("http", 10_000, connections=25), *two("http_threads", 5_000, connections=300)])

    assert not any(" against " in line for line in report.notes("hello"))


def test_a_service_time_is_a_condition(report: Reporter) -> None:
    report.write([*two("http", 2_900, service_time_ms=5), *two("http_threads", 5_000)])

    assert not any(" against " in line for line in report.notes("hello"))
    assert [row["service_time_ms"] for row in report.rows("hello")] == ["0", "5"]


def test_the_models_are_compared_at_the_same_connections(report: Reporter) -> None:
    report.write([*two("http", 10_000), *two("http_threads", 5_000)])

    assert note(report, "requests/s as a ratio") == "requests/s as a ratio, between protocols:"
    assert "http against http_threads: 2.00x [2.00, 2.00]: http is faster" in report.notes("hello")
    assert "http against http_threads: 2.00x [2.00, 2.00]: http is cheaper" in report.notes("hello")


def test_a_pool_of_another_size_is_compared_by_its_name(report: Reporter) -> None:
    report.write([*two("http", 10_000), *two("http_threads", 5_000, variant="workers=20", workers=20)])

    assert "http against http_threads (workers=20): 2.00x [2.00, 2.00]: http is faster" in report.notes("hello")


def test_native_and_pure_python_parsers_are_compared(report: Reporter) -> None:
    pure = {"engine": "uvicorn h11", "variant": "parser=h11"}
    report.write([*two("http", 10_000), *two("http", 2_500, **pure)])

    assert note(report, "http uvicorn httptools against") == (
        "http uvicorn httptools against http uvicorn h11 (parser=h11): 4.00x [4.00, 4.00]: "
        "http uvicorn httptools is faster"
    )


@pytest.mark.parametrize(
    ("run", "law"),
    [
        (
            hello_run("http_threads", 0, 198, connections=300, service_time_ms=100, workers=20),
            "http_threads (threads): at most 200 requests/s (20 workers / 100 ms), 198 here, 99 % of it: holds",
        ),
        (
            hello_run("http_threads", 0, 250, connections=300, service_time_ms=100, workers=20),
            "http_threads (threads): at most 200 requests/s (20 workers / 100 ms), 250 here, "
            "more than that: DOES NOT HOLD",
        ),
        (
            hello_run("http_threads", 0, 99, connections=10, service_time_ms=100, workers=20),
            "http_threads (threads): at most 100 requests/s (10 connections / 100 ms), 99 here, 99 % of it: holds",
        ),
        (
            hello_run("http", 0, 2_910, connections=300, service_time_ms=100),
            "http (event loop): at most 3,000 requests/s (300 connections / 100 ms), 2,910 here, 97 % of it: holds",
        ),
    ],
    ids=["kept", "broken", "fewer connections than workers", "event loop"],
)
def test_the_law_of_the_service_time(report: Reporter, run: RunRecord, law: str) -> None:
    report.write([run])

    notes = report.notes("hello")

    assert "law: rate <= workers / service time:" in notes
    assert law in notes


def test_a_busy_loop_serves_one_at_a_time(report: Reporter) -> None:
    run = hello_run("http", 0, 9.9, connections=300, service_time_ms=100)
    run.config["operation"]["service_work"] = "busy"
    report.write([run])

    assert "http (event loop): at most 10 requests/s (one busy loop / 100 ms), 10 here, 99 % of it: holds" in (
        report.notes("hello")
    )


def test_without_a_service_time_no_law_is_spoken_of(report: Reporter) -> None:
    report.write([hello_run("http", 0, 10_000)])

    assert not any(line.startswith("law") for line in report.notes("hello"))


def test_littles_law_names_the_row_that_breaks_it(report: Reporter) -> None:
    report.write([hello_run("http", 0, 10_000), hello_run("http_threads", 0, 5_000, mean_us=2_500)])

    assert [line for line in report.notes("hello") if line.startswith("Little")] == [
        "Little's law, requests in flight = rate x mean time: within 10 % of the connections in 1 rows "
        "(at worst 100.0 %)",
        "Little's law, requests in flight = rate x mean time: NOT within 10 % of the connections: "
        "http_threads (50 %)",
    ]


def test_both_rates_of_a_crosscheck_are_printed(report: Reporter) -> None:
    report.write([hello_run("http", 0, 9_000, crosscheck_requests_per_s=10_000.0, crosscheck_tool="wrk")])

    assert "http: wrk 10,000 requests/s, bakeoff 9,000 (0.90x of it)" in report.notes("hello")


def test_a_row_whose_driver_was_the_limit_is_shown_with_the_reason_and_in_no_ratio(report: Reporter) -> None:
    report.write([*two("http", 10_000), LIMITED])

    assert [row["verdict"] for row in report.rows("hello")] == ["ok", "void"]
    assert note(report, "void") == (
        "void, its numbers count for nothing: the driver was the limit: it used 97 % of a core: "
        "http_threads (1 run)"
    )
    assert not any(" against " in line for line in report.notes("hello", "--published", "none"))


def test_published_readings_agree_differ_or_are_undecided(report: Reporter) -> None:
    report.write(
        [
            *two("http", 10_000, connections=25),
            *two("http_threads", 5_000, connections=25),
            *two("http", 5_000, connections=100),
            *two("http_threads", 5_000, connections=100),
            *two("http", 2_500, connections=300),
            *two("http_threads", 5_000, connections=300),
        ]
    )

    assert note(report, "requests/s: ") == (
        "requests/s: about 2.0x, http faster; here http against http_threads "
        "2.00x [2.00, 2.00] at 25 connections: agrees; "
        "1.00x [1.00, 1.00] at 100 connections: undecided here; "
        "0.50x [0.50, 0.50] at 300 connections: differs"
    )
    assert note(report, "p50 at 25") == (
        "p50 at 25 connections: http faster; here http against http_threads 0.50x [0.50, 0.50] "
        "at 25 connections: agrees"
    )
    assert note(report, "p50 at 300") == (
        "p50 at 300 connections: http_threads faster; here http against http_threads 2.00x [2.00, 2.00] "
        "at 300 connections: agrees"
    )


@pytest.mark.parametrize(
    "changes", [{"connections": 10}, {"service_time_ms": 5}], ids=["connections", "service time"]
)
def test_readings_are_quoted_only_where_they_can_apply(report: Reporter, changes: dict[str, Any]) -> None:
    report.write([*two("http", 2_000, **changes), *two("http_threads", 1_000, **changes)])

    printed = report("hello")

    assert "http is faster" in printed
    assert "published" not in printed


def test_readings_of_a_pair_of_which_one_was_not_measured_are_not_quoted(report: Reporter) -> None:
    report.write([*two("http", 10_000), *two("grpc", 5_000)])

    assert "published" not in report("hello")


def test_single_runs_agree_with_nothing(report: Reporter) -> None:
    report.write([hello_run("http", 0, 10_000), hello_run("http_threads", 0, 5_000)])

    assert note(report, "requests/s: ") == "requests/s: about 2.0x, http faster; here nothing can be claimed"
    assert "agrees" not in report("hello")
