"""The choosing table: every rule, what decides before speed, and that numbers and nothing else decide the picks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runner.report import needs
from runner.report.choosing import ADVICE, Choice, choose
from runner.report.context import Context
from runner.report.needs import Choosing, Need, PublishedPick, Rule
from runner.report.published import Published
from runner.report.read import ReportError, open_report, sweeps
from runner.store import RunRecord
from tests.golden_db import article_runs, backpressure_run, latency_run, payload_run, stream_run, write_sweep
from tests.reports import Reporter

FASTEST = Rule(operation="request_response", lowest="p50_us")
QUIET = Rule(operation="backpressure", where={"consumer": "pull"}, fewest_produced=True, bounded_by="demand")


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Reporter:
    return Reporter(capsys, monkeypatch, tmp_path)


def chosen(
    folder: Path, runs: list[RunRecord], rule: Rule, published: PublishedPick | None = None, **need: Any
) -> list[Choice]:
    """What the rule says of a sweep of these runs."""
    path = folder / "results.db"
    write_sweep(path, runs)
    costs = {"grpc": "a schema", "websocket": "all of it"}
    rules = Choosing("tcp", ["tcp", "loopback"], costs, [Need("a thing", rule, published=published, **need)])
    sources = [Published("t", "s", "d", "m", {}, name="elsewhere")]
    with open_report(str(path)) as connection:
        return choose(Context(sweeps(connection)[-1], rules, sources))


def calls(protocol: str, *p50_us: float, **changes: Any) -> list[RunRecord]:
    return [latency_run(protocol, repeat, value, **changes) for repeat, value in enumerate(p50_us)]


def test_the_lowest_is_picked_with_its_numbers(tmp_path: Path) -> None:
    runs = [*calls("tcp", 50, 50), *calls("grpc", 300, 310), *calls("websocket", 120, 122)]

    [choice] = chosen(tmp_path, runs, FASTEST)

    assert choice == Choice(
        "a thing",
        "websocket",
        ["websocket"],
        "p50 121 [120, 122] µs against 305 (grpc)",
        "all of it",
        "",
        "2/2 runs",
    )


def test_the_highest_is_picked(tmp_path: Path) -> None:
    runs = [stream_run("grpc", r, 40_000) for r in range(2)] + [stream_run("rsocket", r, 50_000) for r in range(2)]

    [choice] = chosen(tmp_path, runs, Rule(operation="stream", highest="messages_per_s"))

    assert (choice.pick, choice.because) == ("rsocket", "50,000 messages/s against 40,000 (grpc)")


def test_the_smallest_is_exact_and_needs_one_run(tmp_path: Path) -> None:
    runs = [payload_run("json"), payload_run("protobuf"), payload_run("cbor")]

    [choice] = chosen(tmp_path, runs, Rule(operation="payload", of="codec", smallest="size_bytes"))

    assert (choice.pick, choice.because) == ("protobuf", "35 bytes against 67 (cbor), 83 (json)")
    assert choice.support == "1/1 run"


def test_equal_sizes_are_a_tie(tmp_path: Path) -> None:
    runs = [payload_run("json", size_bytes=10), payload_run("cbor", size_bytes=10)]

    [choice] = chosen(tmp_path, runs, Rule(operation="payload", of="codec", smallest="size_bytes"))

    assert choice.pick == "no clear difference: cbor or json"


def test_what_cannot_be_told_apart_is_a_tie_with_both_costs(tmp_path: Path) -> None:
    runs = [*calls("grpc", 120, 126), *calls("websocket", 119, 125), *calls("rsocket", 300, 301)]

    [choice] = chosen(tmp_path, runs, FASTEST, PublishedPick("grpc", "elsewhere"))

    assert choice.pick == "no clear difference: websocket or grpc"
    assert choice.because == (
        "p50 122 [119, 125] µs (websocket) against 123 [120, 126] (grpc, 0.99x [0.94, 1.04]), "
        "300 [300, 301] (rsocket)"
    )
    assert choice.cost == "websocket: all of it; grpc: a schema"
    assert choice.published == "grpc: one of ours"
    assert choice.support == ""


def test_one_run_each_picks_nothing_by_speed(tmp_path: Path) -> None:
    [choice] = chosen(tmp_path, [*calls("grpc", 300), *calls("websocket", 120)], FASTEST)

    assert (choice.pick, choice.picks) == ("-", [])
    assert choice.because == "n=1, nothing is claimed; seen: p50 120 µs (websocket), 300 (grpc)"


def test_a_single_candidate_is_no_choice(tmp_path: Path) -> None:
    [choice] = chosen(tmp_path, [*calls("tcp", 50, 50), *calls("grpc", 300, 310)], FASTEST)

    assert (choice.pick, choice.because) == ("-", "only grpc was measured: p50 305 [300, 310] µs")


def test_what_was_not_measured_is_said(tmp_path: Path) -> None:
    [choice] = chosen(tmp_path, calls("grpc", 300), QUIET, PublishedPick("rsocket", "elsewhere"))

    assert (choice.pick, choice.because, choice.published) == ("-", "not measured here", "rsocket")


def test_neither_the_floor_nor_loopback_is_ever_picked(tmp_path: Path) -> None:
    runs = [*calls("loopback", 1, 1), *calls("tcp", 50, 50), *calls("grpc", 300, 310), *calls("rsocket", 400, 410)]

    [choice] = chosen(tmp_path, runs, FASTEST)

    assert choice.pick == "grpc"
    assert "tcp" not in choice.because


def test_errors_decide_before_speed(tmp_path: Path) -> None:
    runs = [*calls("grpc", 300, 310), *calls("rsocket", 400, 410), *calls("websocket", 120, 122, errors=2)]

    [choice] = chosen(tmp_path, runs, FASTEST)

    assert choice.pick == "grpc"
    assert choice.because.endswith("behind for errors: websocket (4 errors)")


def test_a_failed_run_decides_before_speed(tmp_path: Path) -> None:
    failed = latency_run("websocket", 2, verdict="failed", reason="crashed")
    runs = [*calls("grpc", 300, 310), *calls("rsocket", 400, 410), *calls("websocket", 120, 122), failed]

    [choice] = chosen(tmp_path, runs, FASTEST)

    assert choice.pick == "grpc"
    assert choice.because.endswith("behind for errors: websocket (1 failed)")


def test_void_runs_are_left_out_and_more_of_them_than_good_ones_decide(tmp_path: Path) -> None:
    void = {"verdict": "void", "reason": "driver CPU 97 %"}
    few = [*calls("websocket", 120, 122), latency_run("websocket", 2, 9_999, **void)]
    many = [*calls("rsocket", 90, 91), *(latency_run("rsocket", repeat, 90, **void) for repeat in (2, 3, 4))]

    [choice] = chosen(tmp_path, [*calls("grpc", 300, 310, 305), *few, *many], FASTEST)

    assert choice.pick == "websocket"
    assert choice.because == "p50 121 [120, 122] µs against 305 (grpc); behind for errors: rsocket (3 void)"
    assert choice.support == "2/3 runs"


def test_whoever_has_no_good_run_is_out(tmp_path: Path) -> None:
    void = calls("websocket", 120, 122, verdict="void", reason="wrong count")

    [choice] = chosen(tmp_path, [*calls("grpc", 300, 310), *calls("rsocket", 400, 410), *void], FASTEST)

    assert choice.because == "p50 305 [300, 310] µs against 405 (rsocket); no good run: websocket (2 void)"


def test_nobody_with_a_good_run_is_no_pick(tmp_path: Path) -> None:
    [choice] = chosen(tmp_path, calls("grpc", 300, 310, verdict="void", reason="wrong count"), FASTEST)

    assert (choice.pick, choice.because) == ("-", "no good run: grpc (2 void)")


def test_if_all_have_errors_they_are_ranked_all_the_same(tmp_path: Path) -> None:
    runs = [*calls("grpc", 300, 310, errors=1), *calls("websocket", 120, 122, errors=1)]

    [choice] = chosen(tmp_path, runs, FASTEST)

    assert choice.pick == "websocket"


def test_support_counts_the_repeats_in_which_the_pick_led(tmp_path: Path) -> None:
    runs = [*calls("grpc", *[200] * 8, 90), *calls("websocket", *[100] * 9)]

    [choice] = chosen(tmp_path, runs, FASTEST)

    assert (choice.pick, choice.support) == ("websocket", "8/9 runs")


def test_bounded_by_demand_is_picked_from_counts_alone(tmp_path: Path) -> None:
    runs = [backpressure_run("rsocket", 0, [100, 100, 100]), backpressure_run("grpc", 0, [10_000, 20_000, 40_000])]

    [choice] = chosen(tmp_path, runs, QUIET)

    assert choice.pick == "rsocket"
    assert choice.because == (
        "made exactly the 100 asked for, at every quiet period; made by the others: grpc 40,000 once flat"
    )
    assert choice.support == "1/1 run"


def test_what_the_others_made_is_the_final_count_or_the_last_one_seen(tmp_path: Path) -> None:
    runs = [
        backpressure_run("rsocket", 0, [100, 100, 100]),
        backpressure_run("grpc", 0, [201, 201, 201], variant="bdp_probe=false lookahead_bytes=4096"),
        backpressure_run("grpc", 0, [10_000, 20_000, 40_000], plateau_messages=102_210),
        backpressure_run("websocket", 0, [10_000, 20_000, 40_000], bounded_by="nothing"),
    ]

    [choice] = chosen(tmp_path, runs, QUIET)

    assert choice.because.endswith(
        "made by the others: grpc 102,310 once flat; "
        "grpc (bdp_probe=false lookahead_bytes=4096): 201 once flat; websocket 40,000 at 2 s, still rising"
    )


def test_one_run_that_was_not_bounded_by_demand_is_enough_to_lose(tmp_path: Path) -> None:
    runs = [backpressure_run("rsocket", 0, [100, 100, 100]), backpressure_run("rsocket", 1, [100, 100, 164])]
    runs += [backpressure_run("grpc", repeat, [100, 100, 100]) for repeat in range(2)]

    [choice] = chosen(tmp_path, runs, QUIET)

    assert choice.pick == "grpc"


def test_if_none_is_bounded_by_demand_the_fewest_wins_and_that_is_said(tmp_path: Path) -> None:
    runs = [backpressure_run("websocket", repeat, [60_000, 60_100, 60_100]) for repeat in range(2)]
    runs += [backpressure_run("grpc", repeat, [10_000, 20_000, 40_000]) for repeat in range(2)]

    [choice] = chosen(tmp_path, runs, QUIET)

    assert choice.pick == "grpc"
    assert choice.because == (
        "none was bounded by demand: grpc by buffers, websocket by buffers; "
        "made 40,000 at 2 s against 60,100 (websocket)"
    )


def test_counts_are_compared_at_the_last_period_that_all_reached(tmp_path: Path) -> None:
    runs = [backpressure_run("grpc", r, [300, 900, None], bounded_by="nothing") for r in range(2)]
    runs += [backpressure_run("websocket", r, [200, 1000, 1000]) for r in range(2)]

    [choice] = chosen(tmp_path, runs, Rule(operation="backpressure", fewest_produced=True))

    assert (choice.pick, choice.because) == ("grpc", "made 900 at 1 s against 1,000 (websocket)")


def test_a_producer_can_be_what_is_picked(tmp_path: Path) -> None:
    runs = [
        backpressure_run("grpc", 0, [100, 100, 100], producer="credited"),
        backpressure_run("grpc", 0, [10_000, 20_000, 40_000]),
        backpressure_run("rsocket", 0, [100, 100, 100]),
    ]
    rule = Rule(operation="backpressure", where={"protocol": "grpc"}, of="producer", bounded_by="demand")

    [choice] = chosen(tmp_path, runs, rule)

    assert (choice.pick, choice.picks) == ("credited", ["credited"])


def test_several_conditions_give_an_answer_each(tmp_path: Path) -> None:
    runs = [*calls("grpc", 300, 300), *calls("websocket", 120, 120)]
    runs += [*calls("grpc", 900, 900, connections=10), *calls("websocket", 1200, 1200, connections=10)]

    found = chosen(tmp_path, runs, FASTEST)

    assert [(choice.need, choice.pick) for choice in found] == [
        ("a thing (1 connection)", "websocket"),
        ("a thing (10 connections)", "grpc"),
    ]


def test_where_takes_a_list_of_which_any_will_do(tmp_path: Path) -> None:
    runs = [*calls("grpc", 300, 300), *calls("rsocket", 200, 200), *calls("websocket", 120, 120)]
    rule = Rule(operation="request_response", where={"protocol": ["grpc", "rsocket"]}, lowest="p50_us")

    [choice] = chosen(tmp_path, runs, rule)

    assert choice.pick == "rsocket"


def test_engines_and_codecs_are_named_where_there_are_several(tmp_path: Path) -> None:
    runs = [*calls("rsocket", 300, 300), *calls("rsocket", 200, 200, engine="coalescing"), *calls("grpc", 400, 400)]

    [choice] = chosen(tmp_path, runs, FASTEST)

    assert (choice.pick, choice.because) == (
        "rsocket coalescing",
        "p50 200 µs against 300 (rsocket stock), 400 (grpc)",
    )


ONLY_HTTP = Rule(operation="request_response", among=["http"], lowest="p50_us")


def test_where_the_need_leaves_one_it_is_picked_and_what_that_costs_is_measured(tmp_path: Path) -> None:
    runs = [*calls("http", 180, 182), *calls("grpc", 300, 302), *calls("websocket", 100, 100)]

    [choice] = chosen(tmp_path, runs, ONLY_HTTP, PublishedPick("REST", "elsewhere", means="http"))

    assert (choice.pick, choice.published, choice.support) == ("http", "REST: agrees", "2/2 runs")
    assert choice.because == (
        "p50 181 [180, 182] µs; 1.81x [1.80, 1.82] the p50 of the best of the rest, websocket with 100 µs"
    )


def test_where_the_need_leaves_one_that_is_the_best_of_all_the_ratio_says_so(tmp_path: Path) -> None:
    [choice] = chosen(tmp_path, [*calls("http", 50, 50), *calls("grpc", 100, 100)], ONLY_HTTP)

    assert choice.because == "p50 50 µs; 0.50x the p50 of the best of the rest, grpc with 100 µs"


def test_where_the_need_leaves_several_the_numbers_decide_between_them(tmp_path: Path) -> None:
    rule = Rule(operation="stream", among=["sse", "http"], highest="messages_per_s")
    rates = {"sse": 50_000, "http": 40_000, "websocket": 100_000, "grpc": 20_000}
    runs = [stream_run(name, repeat, rate) for name, rate in rates.items() for repeat in range(2)]
    rates |= {"sse": 30_000}
    swapped = [stream_run(name, repeat, rate) for name, rate in rates.items() for repeat in range(2)]

    (tmp_path / "other").mkdir()
    [choice] = chosen(tmp_path, runs, rule)
    [other] = chosen(tmp_path / "other", swapped, rule)

    assert (choice.pick, other.pick) == ("sse", "http")
    assert choice.because == (
        "50,000 messages/s against 40,000 (http); "
        "0.50x the rate of the best of the rest, websocket with 100,000 messages/s"
    )


def test_where_what_the_need_leaves_was_not_measured_nothing_is_picked(tmp_path: Path) -> None:
    [choice] = chosen(tmp_path, [*calls("grpc", 300, 310)], ONLY_HTTP, PublishedPick("REST", "elsewhere", "http"))

    assert (choice.pick, choice.because, choice.published) == ("-", "not measured here", "REST")


def test_with_one_run_no_ratio_to_the_rest_is_claimed(tmp_path: Path) -> None:
    [choice] = chosen(tmp_path, [*calls("http", 180), *calls("websocket", 100)], ONLY_HTTP)

    assert choice.because == ("p50 180 µs; n=1, no ratio is claimed to the best of the rest, websocket with 100 µs")


def test_whoever_made_errors_is_not_the_best_of_the_rest(tmp_path: Path) -> None:
    runs = [*calls("http", 180, 180), *calls("websocket", 100, 100, errors=1), *calls("grpc", 360, 360)]

    [choice] = chosen(tmp_path, runs, ONLY_HTTP)

    assert choice.because == "p50 180 µs; 0.50x the p50 of the best of the rest, grpc with 360 µs"


def pages(rate: float, *, made: int = 100) -> list[RunRecord]:
    return [
        backpressure_run("http", 0, [made] * 3, producer="paged"),
        backpressure_run("http", 0, [44_000] * 3),
        *(stream_run("http", repeat, rate, producer="paged") for repeat in range(2)),
        *(stream_run("http", repeat, 50_000) for repeat in range(2)),
        *(stream_run("sse", repeat, 70_000) for repeat in range(2)),
    ]


def test_what_another_operation_measured_of_the_pick_is_said_beside(tmp_path: Path) -> None:
    rule = next(need.rule for need in needs.load().needs if "really a batch" in need.need)

    [choice] = chosen(tmp_path, pages(100_000), rule, PublishedPick("paged HTTP", "elsewhere", "paged"))

    assert (choice.pick, choice.published) == ("paged", "paged HTTP: agrees")
    assert choice.because == (
        "made exactly the 100 asked for, at every quiet period; made by the others: awaited 44,000 once flat; "
        "100,000 messages/s against 50,000 (awaited, 2.00x)"
    )


def test_pages_that_are_made_unasked_are_not_picked(tmp_path: Path) -> None:
    rule = next(need.rule for need in needs.load().needs if "really a batch" in need.need)

    [choice] = chosen(tmp_path, pages(100_000, made=900), rule, PublishedPick("paged HTTP", "elsewhere", "paged"))

    assert (choice.pick, choice.published) == ("-", "paged HTTP")
    assert choice.because.startswith("none was bounded by demand: ")


def test_a_published_pick_that_is_ours_too_agrees(tmp_path: Path) -> None:
    runs = [*calls("grpc", 300, 310), *calls("websocket", 120, 122)]

    [choice] = chosen(tmp_path, runs, FASTEST, PublishedPick("websocket", "elsewhere"))

    assert choice.published == "websocket: agrees"


def test_a_published_pick_that_differs_says_so(tmp_path: Path) -> None:
    runs = [*calls("grpc", 300, 310), *calls("websocket", 120, 122)]

    [choice] = chosen(tmp_path, runs, FASTEST, PublishedPick("grpc", "elsewhere"))

    assert choice.published == "grpc: differs"


def test_a_published_pick_of_a_source_that_is_not_shown_is_not_shown(tmp_path: Path) -> None:
    runs = [*calls("grpc", 300, 310), *calls("websocket", 120, 122)]

    [choice] = chosen(tmp_path, runs, FASTEST, PublishedPick("grpc", "nowhere"))

    assert choice.published == ""


def test_advice_is_marked_as_not_measured(tmp_path: Path) -> None:
    rule = Rule(qualitative=True)

    [choice] = chosen(tmp_path, calls("grpc", 300), rule, pick="SSE", because="plain HTTP", cost="one way")

    assert (choice.pick, choice.because, choice.cost, choice.support) == ("SSE", "plain HTTP", "one way", ADVICE)


def test_an_unknown_word_in_where_is_refused_by_name(tmp_path: Path) -> None:
    rule = Rule(operation="request_response", where={"colour": "red"}, lowest="p50_us")

    with pytest.raises(ReportError, match=r"need 'a thing': where: colour is not known for request_response"):
        chosen(tmp_path, calls("grpc", 300), rule)


def test_swapping_the_numbers_of_two_protocols_swaps_pick_and_sentence(report: Reporter) -> None:
    first = report.write([*calls("grpc", 300, 310), *calls("rsocket", 500, 510), *calls("websocket", 120, 122)], 1)
    second = report.write([*calls("grpc", 120, 122), *calls("rsocket", 500, 510), *calls("websocket", 300, 310)], 2)

    def latency(sweep: str) -> dict[str, str]:
        rows = report.rows("choosing", "--sweep", sweep)
        return next(row for row in rows if row["need"].startswith("lowest median latency"))

    before, after = latency(first), latency(second)

    assert (before["pick"], after["pick"]) == ("websocket", "grpc")
    assert before["because"] == "p50 121 [120, 122] µs against 305 (grpc), 505 (rsocket)"
    assert after["because"] == "p50 121 [120, 122] µs against 305 (websocket), 505 (rsocket)"
    assert (before["published_pick"], after["published_pick"]) == ("websocket: agrees", "websocket: differs")
    assert before["cost"] != after["cost"]
    before_notes = report.notes("request_response", "--sweep", first)
    after_notes = report.notes("request_response", "--sweep", second)
    assert any("websocket against grpc" in n and "websocket is faster" in n and "agrees" in n for n in before_notes)
    assert any("websocket against grpc" in n and "grpc is faster" in n and "differs" in n for n in after_notes)


def test_swapping_what_was_produced_swaps_the_pick_for_a_slow_consumer(report: Reporter) -> None:
    exact, many = [100, 100, 100], [10_000, 20_000, 40_000]
    first = report.write([backpressure_run("rsocket", 0, exact), backpressure_run("grpc", 0, many)], 1)
    second = report.write([backpressure_run("rsocket", 0, many), backpressure_run("grpc", 0, exact)], 2)

    picks = [report.rows("choosing", "--sweep", sweep)[0]["pick"] for sweep in (first, second)]

    assert picks == ["rsocket", "grpc"]


def test_the_table_is_printed_by_itself_only_when_something_can_be_chosen(report: Reporter) -> None:
    report.write(calls("grpc", 300))

    assert "CHOOSING" not in report()
    assert "CHOOSING" in report("choosing")

    report.write([*calls("grpc", 300, 300), *calls("websocket", 120, 120)], 2)

    assert "CHOOSING" in report()


def test_every_need_of_the_project_is_answered_from_the_article(report: Reporter) -> None:
    report.write(article_runs())

    rows = report.rows("choosing")

    assert len(rows) >= len(needs.load().needs)
    assert [row["need"] for row in rows if not row["pick"] or row["pick"] == "-"] == []
    assert {row["confidence"] for row in rows if row["because"] == "not measured here"} == set()


def test_the_floor_of_the_project_is_among_what_is_never_picked() -> None:
    rules = needs.load()

    assert rules.floor in rules.left_out


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{lowest: p50_us}", "`operation` is missing"),
        ("{operation: stream}", "give lowest, highest, smallest, fewest_produced or bounded_by"),
        ("{operation: stream, lowest: a, highest: b}", "give one of lowest and highest"),
        ("{operation: stream, lowset: a}", "lowset"),
        ("{qualitative: true}", "a qualitative rule needs `pick` and `because`"),
        ("{qualitative: true, operation: stream}", "a qualitative rule measures nothing"),
        ("{operation: stream, lowest: a, of: colour}", "colour"),
        ("{operation: stream, bounded_by: demand, among: [sse]}", "`among` is for lowest and highest"),
        ("{qualitative: true, among: [sse]}", "a qualitative rule measures nothing"),
        ("{operation: stream, lowest: a, beside: {operation: stream}}", "metric"),
    ],
)
def test_a_mistake_in_the_rules_is_one_line_that_names_it(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "choosing.yaml"
    file.write_text(f"floor: tcp\nleft_out: []\ncosts: {{}}\nneeds:\n  - need: speed\n    rule: {text}\n")

    with pytest.raises(ReportError) as refused:
        needs.load(file)

    assert str(refused.value).startswith("conf/choosing.yaml: ")
    assert problem in str(refused.value)
    assert "\n" not in str(refused.value)
