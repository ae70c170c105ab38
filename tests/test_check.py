"""`bakeoff check`: every broken rule is listed, nothing passes for want of data, mistakes are one line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.__main__ import main
from tests.golden_db import ENVIRONMENT, backpressure_run, golden, latency_run, stream_run
from tests.words import Bakeoff

EXAMPLE = Path(__file__).parent.parent / "conf" / "thresholds" / "example.yaml"
FIVE = (0.98, 0.99, 1.0, 1.01, 1.02)
FORMS = "write it as p99_us < 2000, p50_us ratio < 1.10 with 95 %, or bounded_by = demand"
Check = Callable[..., list[str]]


@pytest.fixture
def bakeoff(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bakeoff:
    return Bakeoff(capsys, monkeypatch, tmp_path)


@pytest.fixture
def check(bakeoff: Bakeoff) -> Check:
    """The lines under the head for a file with these rules, and the exit code that must come."""

    def lines(rules: str, *argv: str, code: int = 0) -> list[str]:
        (bakeoff.folder / "t.yaml").write_text(f"rules:\n{rules}\n", encoding="utf-8")
        return bakeoff.lines("check", "t.yaml", *argv, code=code)[1:]

    return lines


def calls(p50_us: float, protocol: str = "grpc", factors: tuple[float, ...] = FIVE, **changes: Any) -> list[Any]:
    return [latency_run(protocol, i, p50_us * factor, **changes) for i, factor in enumerate(factors)]


def test_every_rule_of_a_golden_sweep_is_judged_and_every_broken_one_listed(bakeoff: Bakeoff, check: Check) -> None:
    golden(bakeoff.path)
    rules = """
  - p99_us < 2000
  - {rule: p99_us < 600, where: {protocol: [grpc, rsocket]}, name: quick}
  - {rule: messages_per_s >= 50000, where: {protocol: websocket}}
  - {rule: bounded_by = demand, where: {producer: credited}}
  - {rule: bounded_by = demand, where: {producer: gated}}"""

    assert check(rules, code=1) == [
        "holds   p99_us < 2000: 7 cells",
        "broken  quick: p99_us < 600 (where protocol=grpc,rsocket)",
        "          request_response grpc: 600 (median of 3 runs)",
        "holds   messages_per_s >= 50000 (where protocol=websocket): 2 cells",
        "holds   bounded_by = demand (where producer=credited): 3 cells",
        "broken  bounded_by = demand (where producer=gated)",
        "          backpressure grpc producer=gated consumer=pull: buffers in 1 of 1 run",
        "          backpressure grpc producer=gated consumer=eager: nothing in 1 of 1 run",
        "2 of 5 rules broken",
    ]


def test_the_shipped_example_is_understood_and_holds_for_a_good_sweep(bakeoff: Bakeoff) -> None:
    credited = [backpressure_run("grpc", 0, [100, 100, 100], producer="credited")]
    bakeoff.write([*calls(300), stream_run("tcp", 0, 1000), *credited])

    assert bakeoff.lines("check", str(EXAMPLE))[-1] == "all of 4 rules hold"


def test_a_rule_that_matches_nothing_is_broken(bakeoff: Bakeoff, check: Check) -> None:
    bakeoff.write(calls(300))
    rules = """
  - {rule: p99_us < 2000, where: {protocol: grcp}}
  - {rule: p99_us < 2000, where: {protocl: grpc}}
  - p9_us < 2000
  - bounded_by = demand"""

    assert check(rules, code=1) == [
        "broken  p99_us < 2000 (where protocol=grcp)",
        "          no run matches protocol=grcp; protocol there: grpc",
        "broken  p99_us < 2000 (where protocl=grpc)",
        "          no run matches protocl=grpc; no run has protocl; did you mean protocol?",
        "broken  p9_us < 2000",
        "          no run has p9_us; did you mean p99_us?",
        "broken  bounded_by = demand",
        "          no run has bounded_by",
        "4 of 4 rules broken",
    ]


def test_settings_and_columns_may_be_compared_with_numbers(bakeoff: Bakeoff, check: Check) -> None:
    bakeoff.write(calls(300, connections=16, config={"load": {"connections": 16}}))
    rules = "  - connections < 16\n  - load.connections <= 16\n  - connections = 1.6e1\n  - loop < 5\n  - cpus != 3"

    assert check(rules, code=1) == [
        "broken  connections < 16",
        "          request_response grpc: 16 in 5 of 5 runs",
        "holds   load.connections <= 16: 1 cell",
        "holds   connections = 1.6e1: 1 cell",
        "broken  loop < 5",
        "          request_response grpc: uvloop in 5 of 5 runs",
        "holds   cpus != 3: 1 cell",
        "2 of 5 rules broken",
    ]


def test_what_was_not_measured_or_went_wrong_does_not_pass(bakeoff: Bakeoff, check: Check) -> None:
    few = [latency_run("rsocket", 0, 300, p99_us=None)]
    failed = [latency_run("websocket", 0, verdict="failed", reason="the server exited with 1")]
    unsupported = [latency_run("tcp", 0, verdict="unsupported", reason="too long")]
    bakeoff.write([*calls(300), *few, *failed, *unsupported])

    assert check("  - p99_us < 2000\n  - verdict != failed", code=1) == [
        "broken  p99_us < 2000",
        "          request_response rsocket: p99_us was not measured",
        "          request_response websocket: no good run, 1 failed: the server exited with 1",
        "broken  verdict != failed",
        "          request_response websocket: failed in 1 of 1 run",
        "2 of 2 rules broken",
    ]


def test_a_ratio_is_taken_against_the_same_cell_of_the_baseline(bakeoff: Bakeoff, check: Check) -> None:
    bakeoff.write([*calls(300), *calls(50, "tcp")], 1)
    bakeoff.write([*calls(360), *calls(50, "tcp"), *calls(120, "websocket")], 2)
    rules = "  - {rule: p50_us ratio < 1.10, where: {protocol: [grpc, tcp]}}\n  - p50_us ratio <= 1.25"

    assert check(rules, "--baseline", "last~1", code=1)[1:] == [
        "broken  p50_us ratio < 1.10 (where protocol=grpc,tcp)",
        "          request_response grpc: 1.200 [1.165, 1.236]",
        "broken  p50_us ratio <= 1.25",
        "          request_response websocket: the baseline has no such cell",
        "2 of 2 rules broken",
    ]


def test_with_95_percent_all_of_the_interval_must_be_within(bakeoff: Bakeoff, check: Check) -> None:
    bakeoff.write(calls(300), 1)
    bakeoff.write(calls(326), 2)

    assert check("  - p50_us ratio < 1.10", "--baseline", "last~1")[-1] == "all of 1 rule hold"
    lines = check("  - p50_us ratio < 1.10 with 95 %", "--baseline", "last~1", code=1)
    assert lines[2] == "          request_response grpc: 1.087 [1.055, 1.120]"
    assert check("  - p50_us ratio < 1.13 with 95 %", "--baseline", "last~1")[-1] == "all of 1 rule hold"


def test_without_an_interval_95_percent_cannot_be_promised(bakeoff: Bakeoff, check: Check) -> None:
    bakeoff.write(calls(300), 1)
    bakeoff.write(calls(300, factors=(1.0, 1.0)), 2)

    lines = check("  - p50_us ratio < 1.10 with 95 %", "--baseline", "last~1", code=1)
    assert lines[2] == (
        "          request_response grpc: an interval needs 5 good runs on each side, "
        "there are 5 in the baseline and 2 in this sweep"
    )


def test_another_database_may_be_the_baseline_and_another_machine_is_named(bakeoff: Bakeoff, check: Check) -> None:
    other = {**ENVIRONMENT, "hostname": "other"}
    bakeoff.write([replace(run, environment=other) for run in calls(300)], 1, path=bakeoff.folder / "released.db")
    bakeoff.write(calls(300), 1)

    assert check("  - p50_us ratio < 1.05 with 95 %", "--baseline", "released.db")[1:] == [
        "the environment is not the same: hostname other -> golden",
        "holds   p50_us ratio < 1.05 with 95 %: 1 cell",
        "all of 1 rule hold",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rules: [", "line 1: expected the node content, but found '<stream end>'; it is not YAML"),
        ("", "expected a list of rules under the key 'rules'"),
        ("rules: []", "expected a list of rules under the key 'rules'"),
        ("rule: [a < 1]\nrules: [a < 1]", "rule: no such key; did you mean rules? (it takes: rules)"),
        ("rules: [5]", f"rule 1: expected text or keys, got 5; {FORMS}"),
        ("rules: [a < 1, p99_us 2000]", f"rule 2: 'p99_us 2000' is not understood; {FORMS}"),
        (
            "rules: [{rule: a < 1, were: {protocol: grpc}}]",
            "rule 1: were: no such key; did you mean where? (a rule takes: rule, where, name)",
        ),
        ("rules: [{where: {protocol: grpc}}]", f"rule 1: rule: missing; {FORMS}"),
        (
            "rules: [{rule: a < 1, where: grpc}]",
            "rule 1: where: expected keys, got grpc; write where: {protocol: grpc}",
        ),
        ("rules: [a < fast]", "rule 1: 'a < fast': 'fast' is no number; words are compared with = or !="),
        (
            "rules: [a < 1 with 95 %]",
            "rule 1: 'a < 1 with 95 %': only a ratio has an interval; leave out 'with 95 %'",
        ),
        (
            "rules: [a ratio < 1 with 99 %]",
            "rule 1: 'a ratio < 1 with 99 %': intervals are of 95 %; write 'with 95 %'",
        ),
        ("rules: [a ratio < 1]", "rule 1: 'a ratio < 1' needs a baseline; add --baseline last~1"),
    ],
)
def test_a_mistake_in_the_file_is_one_line_with_its_place(bakeoff: Bakeoff, text: str, said: str) -> None:
    bakeoff.write(calls(300))
    (bakeoff.folder / "t.yaml").write_text(text)

    assert bakeoff.refused("check", "t.yaml") == f"t.yaml: {said}"


def test_mistakes_on_the_command_line_are_one_line(bakeoff: Bakeoff) -> None:
    assert bakeoff.refused("check", "no.yaml") == "no.yaml: there is no such file"
    assert bakeoff.refused("check", str(EXAMPLE)) == "results.db not found; run bakeoff first"
    bakeoff.write(calls(300))
    assert bakeoff.refused("check", str(EXAMPLE), "--sweep", "X").startswith("sweep X: there is no such sweep")


def test_a_service_that_became_slower_breaks_the_gate(bakeoff: Bakeoff, capsys: pytest.CaptureFixture[str]) -> None:
    """Two real sweeps, waiting 20 and 24 ms per call."""
    for service_time_ms in (20, 24):
        line = f"protocol=tcp operation.service_time_ms={service_time_ms} operation.count=15 operation.warmup=2"
        assert main([*line.split(), "repeats=2"]) == 0
    capsys.readouterr()
    (bakeoff.folder / "t.yaml").write_text("rules:\n  - p50_us ratio < 1.05\n  - p50_us > 20000\n")
    lines = bakeoff.lines("check", "t.yaml", "--baseline", "last~1", code=1)

    assert lines[2] == "broken  p50_us ratio < 1.05"
    assert lines[3].endswith("; not the same: operation.service_time_ms 20 -> 24")
    assert lines[4:] == ["holds   p50_us > 20000: 1 cell", "1 of 2 rules broken"]
