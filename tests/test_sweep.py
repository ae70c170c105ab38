"""Planning: which cells, each checked, in which order."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins

from runner import application
from runner.mistakes import Refused
from runner.options import CONF
from runner.sweep import PlannedCell, combinations, expand, merged, order, suite_lines, turns

PARSER = OverridesParser.create()
Planned = Callable[..., list[PlannedCell]]
_PLANNED: dict[tuple[str, ...], list[PlannedCell]] = {}  # composing a suite takes seconds


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Planned:
    """The cells of a command line. Nothing is launched."""
    application.find_plugins()
    Plugins.instance()
    cells: list[PlannedCell] = []

    def instead(job: Any, found: Sequence[PlannedCell], launch: Any, batch: int) -> None:
        cells[:] = found

    def plan(*argv: str) -> list[PlannedCell]:
        if argv not in _PLANNED:
            assert application.run(argv) == 0
            _PLANNED[argv] = list(cells)
        return _PLANNED[argv]

    monkeypatch.setattr(sys.modules["hydra_plugins.bakeoff_sweeper"], "run_sweep", instead)
    monkeypatch.chdir(tmp_path)
    return plan


def of(text: str) -> list[Any]:
    return PARSER.parse_overrides(text.split())


def test_combinations_are_a_product_in_the_order_of_the_command_line() -> None:
    assert combinations(of("protocol=tcp,grpc operation.count=choice(1,2) label=x")) == [
        ("protocol=tcp", "operation.count=1", "label=x"),
        ("protocol=tcp", "operation.count=2", "label=x"),
        ("protocol=grpc", "operation.count=1", "label=x"),
        ("protocol=grpc", "operation.count=2", "label=x"),
    ]


def test_a_range_is_expanded() -> None:
    assert combinations(of("load.connections=range(1,4)")) == [(f"load.connections={n}",) for n in (1, 2, 3)]


def test_of_two_overrides_of_one_key_the_later_wins() -> None:
    assert combinations(of("seed=1 label=a seed=2,3")) == [("seed=2", "label=a"), ("seed=3", "label=a")]


def test_a_sweep_without_countable_values_is_refused() -> None:
    with pytest.raises(Refused, match="this has no countable values; list them: seed=1,2"):
        combinations(of("seed=interval(1,5)"))


def test_no_overrides_are_one_cell() -> None:
    assert combinations([]) == [()]


@pytest.mark.parametrize(
    ("line", "cli", "expected"),
    [
        ("scenario=stream operation.count=5", "operation.count=7", "scenario=stream operation.count=7"),
        ("scenario=stream protocol=tcp,grpc", "protocol=rsocket", "scenario=stream protocol=rsocket"),
        # Knobs of an option that the command line has replaced are gone with it.
        ("protocol=grpc protocol.bdp_probe=false", "protocol=tcp", "protocol=tcp"),
        (
            "protocol=grpc protocol.bdp_probe=false",
            "protocol.bdp_probe=true",
            "protocol=grpc protocol.bdp_probe=true",
        ),
        ("scenario=payload", "repeats=5", "scenario=payload repeats=5"),
        ("scenario=payload repeats=1", "repeats=5 label=x", "scenario=payload repeats=1 label=x"),
    ],
)
def test_the_command_line_wins_over_a_suites_line_except_for_its_repeats(
    line: str, cli: str, expected: str
) -> None:
    assert [override.input_line for override in merged(of(line), of(cli))] == expected.split()


def test_every_line_of_a_suite_is_expanded_with_what_chose_the_suite() -> None:
    found = expand(
        ["scenario=stream protocol=tcp,grpc", "scenario=payload"], ["suite=x"], ["operation.count=5"], PARSER
    )

    assert [combination.overrides for combination in found] == [
        ("suite=x", "scenario=stream", "protocol=tcp", "operation.count=5"),
        ("suite=x", "scenario=stream", "protocol=grpc", "operation.count=5"),
        ("suite=x", "scenario=payload", "operation.count=5"),
    ]
    assert {combination.optional for combination in found} == {frozenset({"operation.count"})}


def test_outside_a_suite_no_key_is_optional() -> None:
    assert [c.optional for c in expand(None, [], ["operation.count=5,6"], PARSER)] == [frozenset()] * 2


@pytest.mark.parametrize("sweeps", [[], {"a": 1}, "scenario=stream", [["scenario=stream"]]])
def test_a_suite_is_a_list_of_lines(sweeps: Any) -> None:
    with pytest.raises(Refused, match=r"hydra\.sweeper\.sweeps: expected a list of lines"):
        suite_lines(sweeps)


def test_every_repeat_of_all_cells_comes_before_the_next() -> None:
    turns_ = order([3, 1, 2], seed=7)

    blocks = {
        repeat: sorted(cell for cell, _ in block) for repeat, block in groupby(turns_, key=lambda turn: turn[1])
    }
    assert blocks == {1: [0, 1, 2], 2: [0, 2], 3: [0]}
    assert len(turns_) == 6


def test_the_order_depends_on_the_seed_and_on_nothing_else() -> None:
    assert order([2] * 20, seed=4711) == order([2] * 20, seed=4711)
    assert order([2] * 20, seed=4711) != order([2] * 20, seed=4712)
    # As random.Random(1) shuffles six cells: a stored seed means the same order on every machine.
    assert [cell for cell, _ in order([2] * 6, seed=1)] == [2, 3, 5, 0, 4, 1, 0, 1, 2, 4, 5, 3]


def test_each_repeat_is_shuffled_anew() -> None:
    first, second = order([2] * 20, seed=1)[:20], order([2] * 20, seed=1)[20:]

    assert [cell for cell, _ in first] != [cell for cell, _ in second]


def test_nothing_wanted_is_no_turn() -> None:
    assert order([], seed=1) == []


def test_a_sweep_is_every_combination(planned: Planned) -> None:
    cells = planned("-m", "protocol=tcp,loopback", "scenario=request_response,stream", "codec=json,cbor")

    assert [(c.cell.protocol, c.cell.operation.name, c.cell.codec) for c in cells] == [
        (protocol, operation, codec)
        for protocol in ("tcp", "loopback")
        for operation in ("request_response", "stream")
        for codec in ("json", "cbor")
    ]


def test_a_key_that_only_the_swept_scenarios_have_is_theirs(planned: Planned) -> None:
    """The default scenario has no consumer; no cell uses it."""
    cells = planned("scenario=stream,backpressure", "operation.consumer=eager", "protocol=loopback")

    assert [c.cell.config["operation"]["consumer"] for c in cells] == ["eager", "eager"]


def test_the_operation_that_the_scenario_chooses_may_be_said_too(planned: Planned) -> None:
    cells = planned("scenario=stream", "operation=stream", "operation.consumer=eager", "protocol=loopback")

    assert [(c.cell.scenario, c.cell.operation.name) for c in cells] == [("stream", "stream")]


def test_a_glob_chooses_options(planned: Planned) -> None:
    assert [c.cell.protocol for c in planned("protocol=glob(*oop*)")] == ["loopback"]


def test_axes_may_also_come_from_the_sweepers_params(planned: Planned) -> None:
    cells = planned('hydra.sweeper.params={codec:"json,cbor"}', "protocol=loopback")

    assert [c.cell.codec for c in cells] == ["json", "cbor"]


def test_one_cell_asked_for_twice_is_run_once(planned: Planned) -> None:
    cells = planned("protocol=loopback", "codec=default,json", "operation.count=10,1e1")

    assert [(c.cell.codec, c.repeats) for c in cells] == [("json", 1)]


def test_a_turn_carries_its_place_in_the_plan(planned: Planned) -> None:
    cells = planned("protocol=loopback", "codec=json,cbor", "repeats=2")
    all_turns = turns(cells, 1, "SWEEP")

    assert sorted(map(str, all_turns)) == [
        "loopback request_response codec=cbor repeat 1",
        "loopback request_response codec=cbor repeat 2",
        "loopback request_response codec=json repeat 1",
        "loopback request_response codec=json repeat 2",
    ]
    assert all_turns[2].overrides[-4:] == ("seed=1", "plan.sweep_id='SWEEP'", "plan.position=3", "plan.repeat=2")


def test_the_article_is_the_articles_comparison(planned: Planned) -> None:
    cells = planned("suite=article")
    told = Counter((c.cell.operation.name, c.repeats) for c in cells)

    assert told == {
        ("payload", 1): 5,
        ("request_response", 3): 7,  # the floor with three codecs, four protocols
        ("stream", 3): 11,  # and sse, another engine, an eager reader, and pages
        ("backpressure", 1): 14,
    }
    assert {c.cell.codec for c in cells if c.cell.operation.name == "payload"} == {
        "protobuf",
        "json",
        "cbor",
        "cbor_definite",
        "msgpack",
    }
    for operation in ("request_response", "stream"):
        used = {(c.cell.protocol, c.cell.codec) for c in cells if c.cell.operation.name == operation}
        assert used == {
            *(("tcp", codec) for codec in ("protobuf", "json", "cbor")),
            ("grpc", "protobuf"),
            ("rsocket", "cbor"),
            ("websocket", "json"),
            ("http", "json"),
            *([("sse", "json")] if operation == "stream" else []),
        }
    assert {
        (c.cell.protocol, knobs["producer"], knobs["consumer"], c.cell.variant)
        for c in cells
        if c.cell.operation.name == "backpressure"
        for knobs in [c.cell.config["operation"]]
    } == {
        *((protocol, "awaited", "pull", "") for protocol in ("grpc", "rsocket", "websocket", "http", "sse")),
        ("http", "paged", "pull", ""),
        *((protocol, "push", "pull", "") for protocol in ("grpc", "websocket")),
        *(("grpc", "gated", consumer, "") for consumer in ("pull", "eager")),
        *((protocol, "credited", "pull", "") for protocol in ("grpc", "rsocket", "websocket")),
        ("grpc", "awaited", "pull", "bdp_probe=false lookahead_bytes=4096"),
    }
    assert {(c.cell.suite, c.cell.report) for c in cells} == {("article", "report.txt")}


def test_every_way_to_produce_and_consume_is_in_the_full_suite(planned: Planned) -> None:
    cells = planned("suite=backpressure_full")

    knobs = {
        (c.cell.protocol, *(c.cell.config["operation"][key] for key in ("producer", "consumer"))) for c in cells
    }
    assert len(cells) == len(knobs) == 3 * 4 * 2
    assert {c.repeats for c in cells} == {1}


SUITE = """# @package _global_
suite: small
repeats: 3
hydra:
  sweeper:
    sweeps:
      - scenario=stream protocol=loopback codec=json
      - scenario=backpressure protocol=loopback repeats=1
      - scenario=payload codec=json,cbor operation.loops=10 repeats=1
"""


@pytest.fixture
def small(tmp_path: Path) -> tuple[str, str, str]:
    """A suite of the user's own, as a command line."""
    (tmp_path / "mine" / "suite").mkdir(parents=True)
    (tmp_path / "mine" / "suite" / "small.yaml").write_text(SUITE)
    return "--config-dir", "mine", "suite=small"


def test_a_suite_need_not_be_rectangular(planned: Planned, small: Sequence[str]) -> None:
    cells = planned(*small, "repeats=5")

    assert [(c.cell.operation.name, c.cell.codec, c.repeats) for c in cells] == [
        ("stream", "json", 5),
        ("backpressure", "json", 1),
        ("payload", "json", 1),
        ("payload", "cbor", 1),
    ]
    assert {c.cell.suite for c in cells} == {"small"}


def test_a_key_goes_to_the_sweeps_of_a_suite_that_have_it(planned: Planned, small: Sequence[str]) -> None:
    cells = planned(*small, "operation.count=5", "operation.asked=7", "operation.loops=9")

    assert [[o for o in c.overrides if o.startswith("operation.")] for c in cells] == [
        ["operation.count=5"],
        ["operation.asked=7"],
        ["operation.loops=9"],
        ["operation.loops=9"],
    ]


def test_a_key_that_no_sweep_of_a_suite_has_is_a_mistake(
    planned: Planned, small: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert application.run([*small, "operation.askd=7", "operation.consumer=eager"]) == 2
    assert capsys.readouterr().err == (
        "bakeoff: operation.askd: no such key; did you mean 'asked'? "
        "(no sweep of this suite has it; operation takes: count, warmup, consumer, producer, streams, page, asked, "
        "quiet_s, settle_s, mark, message, loops)\n"
    )


@pytest.mark.parametrize(
    "file", sorted([*CONF.glob("scenario/*.yaml"), *CONF.glob("suite/*.yaml")]), ids=lambda f: f.stem
)
def test_the_command_in_a_file_is_one_that_works(planned: Planned, file: Path) -> None:
    """The package line comes first because Hydra reads it only there; then the question, then the command."""
    package, question, command = file.read_text().splitlines()[:3]
    program, *argv = command.removeprefix("# ").split()

    assert package == "# @package _global_"
    assert question.endswith(("?", "."))
    assert program == "bakeoff"
    assert {getattr(c.cell, file.parent.name) for c in planned(*argv)} == {file.stem}
