"""check(): every mistake in one sentence, all of them at once, and nothing refused that is right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adapters.api import Adapter, Codec
from adapters.loopback import Loopback
from runner import yaml_files
from runner.config import check
from runner.fields import ConstantLoad
from runner.mistakes import Refused
from runner.options import CONF, GROUPS, option, options
from tests.cells import cell, config
from tests.cells import option as option_with

COUNT = "expected a whole number, 1 or more, got"
QUIET = "expected a list of 1 or more, each a number, 0 or more, got"


def problems(*names: str, **parts: Any) -> list[str]:
    """What check() says of a configuration that cannot be run."""
    checked, found = check(config(*names, **parts))
    assert (checked is None) == bool(found)
    return found


@pytest.mark.parametrize("value", [5, 5.0, 1_000, 1e3])
def test_a_count_may_be_written_as_any_whole_number(value: float) -> None:
    checked = cell(operation_={"count": value})

    assert checked.operation.count == value  # type: ignore[attr-defined]
    assert repr(checked.config["operation"]["count"]) == repr(int(value))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("012", f'{COUNT} "012" (a leading 0 means octal in YAML; write 12)'),
        (10.5, f"{COUNT} 10.5"),
        (True, f"{COUNT} true"),
        ("5", f'{COUNT} "5" (leave out the quotes)'),
        ("many", f'{COUNT} "many"'),
        (0, f"{COUNT} 0"),
        (-5, f"{COUNT} -5"),
        (None, f"{COUNT} null"),
        ([5], f"{COUNT} [5]"),
        (float("nan"), f"{COUNT} nan"),
        (float("inf"), f"{COUNT} inf"),
        ("???", "missing; give a whole number, 1 or more"),
    ],
)
def test_what_is_no_count_is_refused(value: Any, said: str) -> None:
    assert problems(operation_={"count": value}) == [f"operation.count: {said}"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], f"{QUIET} []"),
        ([-1], f"{QUIET} [-1]"),
        (0.5, f"{QUIET} 0.5 (write [0.5])"),
        (float("nan"), f"{QUIET} nan"),
        (-1, f"{QUIET} -1"),
        (["0.5"], f'{QUIET} ["0.5"]'),
        ([0.5, True], f"{QUIET} [0.5, true]"),
        ([0.5, float("inf")], f"{QUIET} [0.5, Infinity]"),
    ],
)
def test_quiet_periods_are_a_list_of_finite_times(value: Any, said: str) -> None:
    assert problems("backpressure", operation_={"quiet_s": value}) == [f"operation.quiet_s: {said}"]


@pytest.mark.parametrize("value", [[1, 0.5], [1, 1]])
def test_quiet_periods_increase(value: list[float]) -> None:
    (problem,) = problems("backpressure", operation_={"quiet_s": value})

    assert problem.startswith("operation.quiet_s: periods must increase")


def test_quiet_periods_may_start_at_zero() -> None:
    assert cell("backpressure", operation_={"quiet_s": [0, 1]}).config["operation"]["quiet_s"] == [0.0, 1.0]


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"loop": "uvlop"}, """loop: expected one of uvloop, asyncio, got "uvlop"; did you mean 'uvloop'?"""),
        ({"tls": True}, "tls: not supported yet; leave it false"),
        ({"tls": "yes"}, 'tls: expected true or false, got "yes" (write true)'),
        ({"port": 70_000}, "port: expected a whole number from 0 to 65535, got 70000"),
        ({"host": "example"}, 'host: expected an address such as 127.0.0.1 or ::1, got "example"'),
        ({"label": 5}, """label: expected text, got 5 (write '"5"')"""),
        ({"report": ""}, 'report: expected a file name or null, got ""'),
        ({"seed": -1}, "seed: expected a whole number, 0 or more; or null, got -1"),
        ({"repeats": 0}, f"repeats: {COUNT} 0"),
        ({"limits_": {"call_s": 0}}, "limits.call_s: expected a number above 0, got 0"),
        ({"limits_": {"call_s": float("nan")}}, "limits.call_s: expected a number above 0, got nan"),
        ({"load_": {"connections": True}}, f"load.connections: {COUNT} true"),
        (
            {"operation_": {"size_bytes": "none"}},
            'operation.size_bytes: expected a whole number, 0 or more; or null, got "none" (write null)',
        ),
        ({"limits": 5}, "limits: expected keys, got 5"),
    ],
)
def test_a_wrong_value_is_named_with_what_would_fit(parts: dict[str, Any], said: str) -> None:
    assert problems(**parts) == [said]


@pytest.mark.parametrize(
    ("section", "key", "said"),
    [
        (
            "operation",
            "cuont",
            "operation.cuont: no such key; did you mean 'count'? "
            "(operation request_response takes: count, warmup, size_bytes, service_time_ms, service_work)",
        ),
        ("protocol", "credit", "protocol.credit: no such key (protocol loopback takes: nothing)"),
        ("codec", "definite", "codec.definite: no such key (codec json takes: nothing)"),
        (
            "load",
            "conections",
            "load.conections: no such key; did you mean 'connections'? "
            "(load closed takes: arrival, connections, multiplex, placement)",
        ),
        ("storage", "uri", "storage.uri: no such key; did you mean 'url'? (storage takes: url, busy_s)"),
        (
            "record",
            "samples",
            "record.samples: no such key; did you mean 'samples_max'? (record takes: samples_max)",
        ),
        ("plan", "x", "plan.x: no such key (plan takes: sweep_id, position, repeat)"),
    ],
)
def test_an_unknown_key_of_a_section_names_the_near_one(section: str, key: str, said: str) -> None:
    composed = config()
    composed[section] = {**composed[section], key: 1}

    assert check(composed) == (None, [said])


@pytest.mark.parametrize(
    ("key", "near"), [("protcol", "protocol"), ("repeat", "repeats"), ("connections", "load.connections")]
)
def test_an_unknown_key_at_the_top_names_the_near_one_wherever_it_is(key: str, near: str) -> None:
    (problem,) = problems(**{key: 1})

    assert problem.startswith(f"{key}: no such key; did you mean '{near}'? (the top level takes: scenario, ")


def test_a_missing_key_says_what_to_give() -> None:
    composed = config()
    del composed["operation"]["count"], composed["repeats"], composed["load"]

    assert check(composed)[1] == [
        "repeats: missing; give a whole number, 1 or more",
        "operation.count: missing; give a whole number, 1 or more",
        "load: missing",
    ]


def test_all_problems_come_out_at_once() -> None:
    found = problems("stream", "tcp", operation_={"count": 0}, load_={"multiplex": 1}, loop="x", tls=True, port=-1)

    assert [problem.partition(":")[0] for problem in found] == ["port", "loop", "operation.count", "load.multiplex"]


def test_a_class_that_is_not_there_is_named() -> None:
    composed = config()
    composed["protocol"]["_target_"] = "adapters.nowhere.Nowhere"

    assert check(composed) == (
        None,
        ["protocol._target_: cannot import adapters.nowhere.Nowhere: No module named 'adapters.nowhere'"],
    )


@pytest.mark.parametrize("target", ["???", 5, "Loopback"])
def test_a_class_needs_a_dotted_name(target: Any) -> None:
    composed = config()
    composed["protocol"]["_target_"] = target

    (problem,) = check(composed)[1]
    assert problem == f"protocol._target_: expected the dotted name of a class, got {json.dumps(target)}"


def test_a_class_of_another_kind_is_refused() -> None:
    composed = config()
    composed["codec"] = {"name": "json", "_target_": "adapters.loopback.Loopback"}

    assert check(composed) == (None, ["codec._target_: adapters.loopback.Loopback is no Codec"])


def test_multiplexing_needs_an_adapter_that_does() -> None:
    assert problems("request_response", "tcp", load_={"multiplex": True}) == [
        "load.multiplex: tcp carries one call at a time on a connection; leave it false and raise load.connections"
    ]
    assert problems("stream", "websocket", load_={"multiplex": True}) == [
        "load.multiplex: websocket carries one call at a time on a connection; leave it false and raise "
        "operation.streams"
    ]
    assert cell("request_response", "loopback", load_={"multiplex": True}).load.multiplex


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        ("stream", "opens one for each of operation.streams"),
        ("backpressure", "measures one connection"),
        ("payload", "needs no connection"),
    ],
)
def test_connections_that_nothing_would_look_at_are_refused(operation: str, why: str) -> None:
    assert problems(operation, load_={"connections": 4}) == [f"load.connections: {operation} {why}; leave it 1"]
    assert cell("request_response", load_={"connections": 4}).load.connections == 4


def test_a_shape_or_size_that_an_adapter_lacks_is_no_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is stored as `unsupported`: a fact, with a row of its own."""
    monkeypatch.setattr(Loopback, "shapes", frozenset())

    assert cell(operation_={"size_bytes": 10**9}).adapter.shapes == frozenset()


def test_what_a_constructor_finds_between_its_keys_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Adapter, *, codec: Codec, max_message_bytes: int) -> None:
        raise ValueError("this cannot be")

    monkeypatch.setattr(Loopback, "__init__", refuse)

    assert problems() == ["protocol: this cannot be"]


def test_a_knob_that_needs_another_is_named_as_on_the_command_line() -> None:
    assert problems("stream", "grpc", protocol_={"lookahead_bytes": 4096}) == [
        "protocol.lookahead_bytes: needs bdp_probe=false; add protocol.bdp_probe=false"
    ]
    (problem,) = problems("stream", "rsocket", protocol_={"credit": 0})
    assert problem.startswith("protocol.credit: ")


@pytest.mark.parametrize("protocol", options("protocol"))
def test_the_default_codec_is_the_protocols_own(protocol: str) -> None:
    checked = cell("request_response", protocol)

    assert checked.codec == checked.adapter.default_codec
    assert checked.config["codec"]["name"] == checked.codec
    assert checked.config["codec"]["_target_"].startswith("adapters.codecs.")


def test_a_default_codec_without_a_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Loopback, "default_codec", "xml")

    assert problems() == ["codec: conf/codec has no xml.yaml, the default of Loopback; name a codec"]


@pytest.mark.parametrize(
    ("protocol", "knobs", "variant"),
    [
        ("grpc", {}, ""),
        ("grpc", {"bdp_probe": False, "lookahead_bytes": 4096.0}, "bdp_probe=false lookahead_bytes=4096"),
        ("rsocket", {"engine": "coalescing"}, ""),
        ("rsocket", {"engine": "coalescing", "credit": 10}, "credit=10"),
        ("websocket", {"max_queue": 16}, ""),
    ],
)
def test_the_variant_names_the_knobs_that_differ_but_not_the_engine(
    protocol: str, knobs: dict[str, Any], variant: str
) -> None:
    assert cell("stream", protocol, protocol_=knobs).variant == variant


def test_an_option_of_the_users_own_varies_from_its_class() -> None:
    composed = config("stream", "grpc", protocol_={"bdp_probe": False})
    composed["protocol"]["name"] = "my_grpc"
    checked, _ = check(composed)

    assert checked is not None
    assert checked.variant == "bdp_probe=false"


def test_localhost_is_one_address() -> None:
    assert cell(host="localhost").host == "127.0.0.1"
    assert cell(host="::1").host == "::1"


def test_a_checked_configuration_survives_json_and_a_second_check() -> None:
    first = cell("backpressure", "websocket", operation_={"asked": 1e2})
    second, found = check(json.loads(json.dumps(first.config)))

    assert found == []
    assert second is not None
    assert (second.config, second.variant, second.codec) == (first.config, first.variant, first.codec)


@pytest.mark.parametrize(
    ("group", "name"), [(g, n) for g in ("operation", "protocol", "codec") for n in options(g)]
)
def test_every_option_of_ours_can_be_checked(group: str, name: str) -> None:
    composed = config()
    composed[group] = option(group, name)
    if name == "saturation":  # it needs an open loop, and begins at its rate
        composed["load"] = {**option_with("load", "constant"), "rate": composed[group]["start_rate"]}

    assert check(composed)[1] == []


def test_our_own_files_have_no_mistakes() -> None:
    yaml_files.refuse_bad_files()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("count: 012\n", "1: 012 is octal in YAML, because of the leading 0; write 12"),
        ("a:\n  quiet_s: [1, -007]\n", "2: -007 is octal in YAML, because of the leading 0; write -7"),
        ("port: 1:30\n", "1: 1:30 counts in sixties in YAML; write it as one number, or in quotes"),
        ("count: 5\nwarmup: 1\ncount: 6\n", "3: 'count' is here twice, first in line 1; keep one"),
        (
            "count: 5\n warmup: 1\n",
            "2: mapping values are not allowed in this context; check the indentation of line 2",
        ),
        ("a:\n\tb: 1\n", "2: found character that cannot start any token; indent with spaces, not tabs"),
        ("a: 1\n---\nb: 1\n", "2: but found another document; keep one document in the file"),
        ("a: *b\n", "1: found undefined alias; put the value in quotes"),
        ("a: @b\n", "1: found character that cannot start any token; put the value in quotes"),
        ("a: [1\n", "2: did not find expected ',' or ']'; close the bracket"),
        ("a: 'b\n", "2: found unexpected end of stream; close the quote"),
    ],
)
def test_a_file_that_means_something_else_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "load" / "mine.yaml"
    file.parent.mkdir()
    file.write_text(text)

    with pytest.raises(Refused) as refused:
        yaml_files.refuse_bad_files(tmp_path)
    assert refused.value.problems == [f"{file}:{said}"]


PACKAGE = "# @package _global_\n"


@pytest.mark.parametrize(
    ("group", "text", "said"),
    [
        ("scenario", "scenario: mine\n", "the first line must be `# @package _global_`"),
        ("scenario", f"# A question?\n{PACKAGE}scenario: mine\n", "the first line must be `# @package _global_`"),
        ("scenario", PACKAGE, "it is empty; write scenario: mine, and the keys that belong to it"),
        ("scenario", f"{PACKAGE}repeats: 3\n", "it has no name; write scenario: mine"),
        ("scenario", f"{PACKAGE}scenario: stream\n", "says scenario: stream; write scenario: mine"),
        ("suite", f"{PACKAGE}suite: article\n", "says suite: article; write suite: mine"),
        ("load", "", "it is empty; write name: mine, and the keys that belong to it"),
        ("load", "- 1\n", "expected keys, got a list; write name: mine"),
        ("load", "words\n", "expected keys, got text; write name: mine"),
        (
            "protocol",
            "name: mine\n",
            "it has no _target_; write _target_: and the dotted name of a class, such as adapters.tcp.Tcp",
        ),
    ],
)
def test_a_file_that_lacks_what_its_group_needs_is_refused(
    tmp_path: Path, group: str, text: str, said: str
) -> None:
    file = tmp_path / group / "mine.yaml"
    file.parent.mkdir()
    file.write_text(text)

    with pytest.raises(Refused) as refused:
        yaml_files.refuse_bad_files(tmp_path)
    assert refused.value.problems == [f"{file}: {said}"]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("protocol/mine.yaml", "defaults:\n  - grpc\nname: mine\nbdp_probe: false\n"),
        ("scenario/mine.yaml", f"\n# @x y\n{PACKAGE}scenario: mine\n"),
        ("scenario/pieces/one.yaml", "asked: 5\n"),
    ],
)
def test_a_file_may_build_on_others_and_be_a_piece_of_others(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(text)

    yaml_files.refuse_bad_files(tmp_path)


@pytest.mark.parametrize(
    "text", ["a: '012'\n", "a: 0\n", "a: 0.5\n", "a: 0x1f\n", "a: 10\n", "a: 2026-12-01\n", ""]
)
def test_a_file_that_means_what_it_says_is_accepted(tmp_path: Path, text: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)

    assert yaml_files.file_problems(file) == []


def test_a_users_file_that_would_lose_to_ours_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "protocol" / "tcp.yaml"
    file.parent.mkdir()
    file.write_text("name: tcp\n_target_: adapters.tcp.Tcp\n")

    with pytest.raises(Refused) as refused:
        yaml_files.refuse_bad_files(tmp_path)
    ours = CONF / "protocol" / "tcp.yaml"
    assert refused.value.problems == [
        f"{file}: would not be used, because {ours} has the same place and name; "
        "rename yours, say to protocol/my_tcp.yaml"
    ]


def test_the_folder_of_our_own_options_is_no_clash() -> None:
    yaml_files.refuse_bad_files(CONF)


def test_files_that_are_no_options_are_not_judged(tmp_path: Path) -> None:
    (tmp_path / "compose.yaml").write_text("port: 012\n")

    yaml_files.refuse_bad_files(tmp_path)


def test_every_group_has_options() -> None:
    assert [group for group in GROUPS if not options(group)] == []


# Load


@pytest.mark.parametrize(
    ("name", "knobs", "said"),
    [
        ("closed", {"rate": 5}, "load.rate: load=closed has none; say load=constant or load=poisson"),
        ("closed", {"seed": 5}, "load.seed: load=closed has none; say load=poisson"),
        ("constant", {"seed": 5}, "load.seed: load=constant has none; say load=poisson"),
        ("closed", {"arrival": "poisson"}, "load.arrival: closed is closed; say load=poisson instead"),
        ("constant", {"rate": 0}, "load.rate: expected a number above 0, got 0"),
        ("constant", {"rate": None}, "load.rate: expected a number above 0, got null"),
        ("poisson", {"duration_s": 0}, "load.duration_s: expected a number above 0; or null, got 0"),
        ("poisson", {"seed": -1}, "load.seed: expected a whole number, 0 or more; or null, got -1"),
        ("constant", {"arrival": "burst"}, 'load.arrival: expected one of closed, constant, poisson, got "burst"'),
        (
            "constant",
            {"connections": 5, "max_in_flight": 2},
            "load.max_in_flight: 2 is less than load.connections (5), some of which would never be used; "
            "raise it or ask for fewer connections",
        ),
        (
            "constant",
            {"rate": 0.01},
            "load.rate: 20 calls at 0.01 a second take 2,000 s, limits.run_s is 300; "
            "raise limits.run_s or ask for less",
        ),
    ],
)
def test_a_load_is_refused_with_the_way_out(name: str, knobs: dict[str, Any], said: str) -> None:
    composed = config()
    composed["load"] = option_with("load", name) | knobs

    assert check(composed) == (None, [said])


@pytest.mark.parametrize("knobs", [{"rate": 0.5}, {"rate": 1e3, "duration_s": 10}, {"rate": 2, "connections": 16}])
def test_a_rate_is_taken_as_it_is(knobs: dict[str, Any]) -> None:
    composed = config()
    composed["load"] = option_with("load", "constant", **knobs)
    checked, problems = check(composed)

    assert problems == []
    assert checked is not None
    assert isinstance(checked.load, ConstantLoad)
    assert checked.load.rate == knobs["rate"]
    assert check(checked.config)[1] == []  # as the measured processes read it


@pytest.mark.parametrize("operation", ["stream", "backpressure", "payload"])
def test_an_operation_without_an_open_loop_says_so(operation: str) -> None:
    composed = config(operation)
    composed["load"] = option_with("load", "poisson")

    assert check(composed) == (None, [f"load.arrival: {operation} has no open loop; leave load=closed"])
