"""The command line: mistakes before anything starts, sweeps with a fake engine, exit codes."""

from __future__ import annotations

import os
import pickle
import resource
import shlex
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from runner import engine
from runner.__main__ import main
from runner.config import Cell
from runner.job import Job, SweepResult, held_back
from runner.options import CONF
from runner.report import command
from runner.store import RunRecord, StoreError, Unstorable, Verdict, new_id
from runner.store.open import Store

CHILD_S = 30.0  # a bound, not an expectation


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where bakeoff is started; empty."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HYDRA_FULL_ERROR", raising=False)
    return tmp_path


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str], folder: Path) -> Callable[..., list[str]]:
    """The lines that a mistaken command line is answered with."""

    def lines(*argv: str) -> list[str]:
        before = sorted(folder.iterdir())
        assert main(argv) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert sorted(folder.iterdir()) == before, "nothing is created"
        assert "HYDRA_FULL_ERROR" not in os.environ
        return [line.removeprefix("bakeoff: ") for line in err.splitlines()]

    return lines


TAKES = "(operation request_response takes: count, warmup, size_bytes, service_time_ms, service_work)"


def options(group: str, *more: str) -> str:
    """The names of a group's options, as messages list them."""
    return ", ".join(sorted([*more, *(path.stem for path in (CONF / group).glob("*.yaml"))]))


WIRES = ", ".join(sorted(path.stem for path in (CONF / "protocol").glob("*.yaml")))
SERVED = WIRES.replace("loopback, ", "")
PROTOCOLS = f"(there are: {WIRES})"
COUNT = "operation.count: expected a whole number, 1 or more, got"


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("protocol=grcp", f"protocol: no option 'grcp'; did you mean 'grpc'? {PROTOCOLS}"),
        ("load=x", "load: no option 'x' (there are: closed, constant, poisson)"),
        ("operation.cuont=5", f"operation.cuont: no such key; did you mean 'count'? {TAKES}"),
        ("+operation.cuont=5", f"operation.cuont: no such key; did you mean 'count'? {TAKES}"),
        ("++operation.cuont=5", f"operation.cuont: no such key; did you mean 'count'? {TAKES}"),
        ("operation.count=012", f'{COUNT} "012" (a leading 0 means octal in YAML; write 12)'),
        ("operation.count='5'", f'{COUNT} "5" (leave out the quotes)'),
        ("operation.count=true", f"{COUNT} true"),
        ("operation.count=10.5", f"{COUNT} 10.5"),
        ("operation.count=0", f"{COUNT} 0"),
        ("~operation.count", "operation.count: missing; give a whole number, 1 or more"),
        ("tls=true", "tls: not supported yet; leave it false"),
        ("limits=5", "limits: expected keys, got 5"),
        ("operation=5", "protocol=loopback operation=5: Config group override must be a string or a list. Got int"),
        (
            "operation=stream,request_response",
            "operation: a scenario chooses it; use scenario=stream",
        ),
        ("+operation.count=5", "operation.count: there already; leave out the +"),
        ("protocol=tcp,", "protocol=tcp,: a comma with nothing after it; add a value or leave it out"),
        ("seed=1,2", "seed: one sweep has one seed; give one value"),
        ("fail_fast=true,false", "fail_fast: one sweep has one fail_fast; give one value"),
        ("seed=interval(1,5)", "seed=interval(1,5): this has no countable values; list them: seed=1,2"),
        ("protocol=glob(x*)", "nothing to run: a glob on the command line matches nothing"),
        ("report=nowhere/r.txt", "report: there is no folder {folder}/nowhere; create it or give another file"),
        (
            "report=/proc/r.txt",
            "report: cannot write /proc/r.txt: No such file or directory; give another file",
        ),
        ("report=.", "report: . is a folder; give the name of a file in it"),
    ],
)
def test_a_mistake_in_a_cell_is_one_line_and_nothing_is_started(
    refused: Callable[..., list[str]], folder: Path, override: str, said: str
) -> None:
    assert refused("protocol=loopback", override) == [said.replace("{folder}", str(folder))]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "label=a=b",
            "label=a=b: a value with = , or the like needs quotes inside the shell's; write 'label=\"a=b\"' "
            "(mismatched input '=' expecting <EOF>)",
        ),
        (
            "operation.quiet_s=[1,2",
            "operation.quiet_s=[1,2: a bracket or quote is not closed (no viable alternative at input '[1,2')",
        ),
        ("reprot", "reprot: expected key=value (bakeoff --help lists what there is); did you mean 'report'?"),
        (
            "suite=artcle",
            f"suite: no option 'artcle'; did you mean 'article'? (there are: {options('suite')})",
        ),
        (
            "suite=article,backpressure_full",
            "suite=article,backpressure_full: one suite at a time; start bakeoff once for each",
        ),
        ("hydra/launcher=none", "hydra/launcher: no option 'none' (there are: basic)"),
        ("hydra.sweper=1", "hydra.sweper: no such key (bakeoff --cfg job lists what there is)"),
        ("hydra.mode=RUN", "hydra.mode: every run is a sweep here; leave it out"),
        ("hydra.sweep.dir=foo", "hydra.sweep.dir: bakeoff keeps nothing there; leave it out"),
        ("hydra/sweeper=basic", "hydra/sweeper: bakeoff plans its sweeps itself; leave it out"),
        ("--confg-dir x", "--confg-dir: no such option; did you mean '--config-dir'? (bakeoff --help lists them)"),
        (
            "--cfg jobs",
            "argument --cfg/-c: invalid choice: 'jobs' (choose from 'job', 'hydra', 'all') "
            "(bakeoff --help lists the options)",
        ),
        ("--config-dir nowhere", "--config-dir: there is no folder nowhere"),
        (
            "--cfg job operation.cuont=5",
            "operation.cuont: no such key; did you mean 'operation.count'? (bakeoff --cfg job lists what there is)",
        ),
        (
            "--cfg job protocol=tcp,grpc",
            "protocol=tcp,grpc: several values, and only a run can take them; give one",
        ),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line(
    refused: Callable[..., list[str]], words: str, said: str
) -> None:
    assert refused(*words.split()) == [said]


def test_a_value_is_quoted_as_the_message_says(capsys: pytest.CaptureFixture[str]) -> None:
    (argument,) = shlex.split("""'label="a=b"'""")

    assert main(["--cfg", "job", "-p", "label", argument]) == 0
    assert capsys.readouterr().out == "a=b\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", f"serve: say which protocol: protocol=NAME, one of {SERVED}"),
        ("tcp", "tcp: expected key=value; did you mean protocol=tcp?"),
        ("tpc", "tpc: expected key=value; did you mean protocol=tcp?"),
        ("7000 protocol=tcp", "7000: expected key=value (bakeoff serve --help)"),
        (
            "protocol=loopback",
            f"protocol: loopback has no wire to serve on; choose one of {SERVED}",
        ),
        ("protocol=tcp,grpc", "protocol=tcp,grpc: give one value"),
        ("protocol=tcp --fast", "--fast: no such option (bakeoff serve --help)"),
        ("protocol=tcp load=x", "load: no option 'x' (there are: closed, constant, poisson)"),
        (
            "protocol=tcp operation.producr=push",
            "operation.producr: no such key; did you mean 'producer'? "
            "(operation backpressure takes: asked, quiet_s, settle_s, producer, consumer, mark, page)",
        ),
        ("protocol=tcp --config-dir nowhere", "--config-dir: there is no folder nowhere"),
    ],
)
def test_a_mistake_after_serve_is_one_line(refused: Callable[..., list[str]], words: str, said: str) -> None:
    assert refused("serve", *words.split()) == [said]


def test_the_mistakes_of_all_cells_come_out_at_once_each_once(refused: Callable[..., list[str]]) -> None:
    assert refused("protocol=grcp,loopback", "operation.count=0,5", "operation.warmup=x", "codec=json,cbor") == [
        f"protocol: no option 'grcp'; did you mean 'grpc'? {PROTOCOLS}",
        "operation.count: expected a whole number, 1 or more, got 0",
        'operation.warmup: expected a whole number, 0 or more, got "x"',
    ]


def test_a_list_written_as_a_sweep_is_one_mistake(refused: Callable[..., list[str]]) -> None:
    assert refused("scenario=backpressure", "protocol=loopback", "operation.quiet_s=0.5,1") == [
        "operation.quiet_s: expected a list of 1 or more, each a number, 0 or more; write operation.quiet_s=[0.5,1]"
    ]


def test_a_database_that_cannot_be_written_is_a_mistake(refused: Callable[..., list[str]], folder: Path) -> None:
    (folder / "results.db").write_text("not a database, but a text of some length" * 5)

    assert refused("protocol=loopback") == ["storage.url: results.db: it is not a database; give another file"]


def test_mistakes_in_users_files_carry_file_and_line(refused: Callable[..., list[str]], folder: Path) -> None:
    (folder / "scenario").mkdir()
    (folder / "scenario" / "mine.yaml").write_text(
        "# @package _global_\nscenario: mine\noperation:\n  count: 012\n"
    )
    (folder / "scenario" / "yours.yaml").write_text("scenario: [1\n")
    (folder / "scenario" / "stream.yaml").write_text("# @package _global_\nscenario: stream\n")
    ours = Path(__file__).parent.parent / "conf" / "scenario" / "stream.yaml"

    assert refused("--config-dir", str(folder), "scenario=mine") == [
        f"{folder}/scenario/mine.yaml:4: 012 is octal in YAML, because of the leading 0; write 12",
        f"{folder}/scenario/stream.yaml: would not be used, because {ours} has the same place and name; "
        "rename yours, say to scenario/my_stream.yaml",
        f"{folder}/scenario/yours.yaml:2: did not find expected ',' or ']'; close the bracket",
    ]


def test_a_users_file_found_by_hydras_searchpath_is_looked_at_too(
    refused: Callable[..., list[str]], folder: Path
) -> None:
    (folder / "load").mkdir()
    (folder / "load" / "mine.yaml").write_text("connections: 010\n")

    assert refused(f"hydra.searchpath=[file://{folder}]", "protocol=loopback") == [
        f"{folder}/load/mine.yaml:1: 010 is octal in YAML, because of the leading 0; write 10"
    ]


def test_an_unknown_key_in_a_users_file_names_the_near_one(refused: Callable[..., list[str]], folder: Path) -> None:
    (folder / "scenario").mkdir()
    (folder / "scenario" / "mine.yaml").write_text("# @package _global_\nscenario: mine\noperation:\n  cuont: 5\n")

    assert refused("-cd", str(folder), "scenario=mine", "protocol=loopback") == [
        f"operation.cuont: no such key; did you mean 'count'? {TAKES}"
    ]


def test_a_traceback_is_shown_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")

    with pytest.raises(Exception, match="no option 'grcp'"):
        main(["protocol=grcp"])


def test_help_names_the_words_every_group_and_every_option(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    (folder / "scenario").mkdir()
    (folder / "scenario" / "mine.yaml").write_text("# @package _global_\nscenario: mine\n")
    assert main(["--help", "--config-dir", str(folder)]) == 0
    text = capsys.readouterr().out

    assert "bakeoff report" in text
    assert "bakeoff serve protocol=" in text
    for line in (
        f"scenario   the question: {options('scenario', 'mine')}\n",
        f"suite      several sweeps that belong together: {options('suite')}\n",
        f"protocol   over which wire: {WIRES}\n",
        "codec      message <-> bytes: cbor, cbor_definite, default, json, msgpack, protobuf (default: ",
        f"operation  what is measured; a scenario chooses it: {options('operation')}\n",
    ):
        assert " ".join(line.split()) in " ".join(text.split())  # long lists are wrapped


def test_the_composed_configuration_can_be_shown(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert main(["--cfg", "job", "scenario=stream", "operation.count=7", "-p", "operation"]) == 0

    assert capsys.readouterr().out.splitlines()[:4] == [
        "# @package operation",
        "name: stream",
        "_target_: runner.operations.stream.Stream",
        "count: 7",
    ]
    assert list(folder.iterdir()) == []


def test_the_version_is_ours(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("bakeoff 0.")


def test_options_may_stand_between_overrides(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenario=stream", "--cfg", "job", "operation.count=7", "-p", "operation.count"]) == 0
    assert capsys.readouterr().out == "7\n"


def record(cell: Cell, verdict: Verdict, reason: str, **plan: Any) -> RunRecord:
    return RunRecord(
        run_id=new_id(),
        scenario=cell.scenario,
        label=cell.label,
        operation=cell.operation.name,
        protocol=cell.protocol,
        engine=cell.adapter.engine,
        codec=cell.codec,
        variant=cell.variant,
        placement="free",
        connections=1,
        verdict=verdict,
        reason=reason,
        started_at=datetime.now(UTC),
        duration_s=0.1,
        config=cell.config,
        **plan,
    )


class Engine:
    """Stands in for runner.engine.run: `script` says what to do with each run; default: it is ok."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, int]] = []
        self.script: dict[int, Callable[[], tuple[Verdict, str]]] = {}
        self.plans: list[dict[str, Any]] = []

    def run(self, cell: Cell, **plan: Any) -> RunRecord:
        self.ran.append((cell.codec, plan["repeat"]))
        self.plans.append(plan)
        verdict, reason = self.script.get(plan["position"], lambda: ("ok", ""))()
        return record(cell, verdict, reason, **plan)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    fake = Engine()
    monkeypatch.setattr(engine, "run", fake.run)
    monkeypatch.setattr(command, "sweep_report", lambda url, sweep_id: f"the report of {url}\n")
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    yield fake
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers


def stored(sql: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect("results.db")
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


SWEEP = ("protocol=loopback", "codec=json,cbor,msgpack", "repeats=2", "seed=4")


def test_a_sweep_is_run_saved_and_reported(fake: Engine, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SWEEP, "report=out.txt"]) == 0

    assert capsys.readouterr() == ("the report of sqlite:///results.db\n", "")
    assert (folder / "out.txt").read_text() == "the report of sqlite:///results.db\n"
    assert sorted(path.name for path in folder.iterdir()) == ["out.txt", "results.db"]
    assert [repeat for _, repeat in fake.ran] == [1, 1, 1, 2, 2, 2]
    assert sorted(fake.ran[:3]) == [("cbor", 1), ("json", 1), ("msgpack", 1)]
    assert [plan["position"] for plan in fake.plans] == [1, 2, 3, 4, 5, 6]
    assert {plan["sweep_id"] for plan in fake.plans} == {
        sweep_id for (sweep_id,) in stored("select sweep_id from sweep")
    }
    assert stored("select count(*), min(verdict) from run") == [(6, "ok")]
    ((command, seed, planned, suite, ended),) = stored("select command, seed, planned, suite, ended_at from sweep")
    assert (command, seed, planned, suite) == (f"bakeoff {' '.join(SWEEP)} report=out.txt", 4, 6, None)
    assert ended is not None


def test_a_run_can_be_repeated_from_its_overrides(fake: Engine) -> None:
    main(["protocol=loopback", 'label="a=b, c"', "codec=json,cbor", "seed=4"])

    assert sorted(plan["overrides"] for plan in fake.plans) == [
        ["protocol=loopback", 'label="a=b, c"', f"codec={codec}", "seed=4"] for codec in ("cbor", "json")
    ]


def test_a_job_can_be_sent_to_another_process() -> None:
    """By a Hydra launcher that runs several at once; there it opens the database itself."""
    job = Job(["protocol=tcp"])
    job.database = "/somewhere/results.db"
    job.result = SweepResult("s", "sqlite:///results.db", None, 1)
    sent = pickle.loads(pickle.dumps(job))

    assert (sent.overrides, sent.database, sent.store, sent.result) == (job.overrides, job.database, None, None)


def test_a_seed_that_was_not_given_is_drawn_and_stored(fake: Engine) -> None:
    main(["protocol=loopback"])
    main(["protocol=loopback"])

    seeds = [seed for (seed,) in stored("select seed from sweep")]
    assert len(seeds) == 2
    assert [plan["overrides"][-1] for plan in fake.plans] == [f"seed={seed}" for seed in seeds]


def test_runs_may_be_launched_in_batches(fake: Engine) -> None:
    assert main([*SWEEP, "hydra.sweeper.max_batch_size=4"]) == 0
    assert len(fake.ran) == 6


def test_a_failed_run_stops_no_other_and_is_named(fake: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    fake.script[2] = lambda: ("failed", "server exited with 3 before it was ready: no luck")

    assert main(SWEEP) == 1
    codec = fake.ran[1][0]
    out, err = capsys.readouterr()
    assert out == "the report of sqlite:///results.db\n"
    assert err == (
        f"failed: loopback request_response codec={codec} repeat 1: "
        "server exited with 3 before it was ready: no luck\n"
    )
    assert stored("select verdict, count(*) from run group by 1 order by 1") == [("failed", 1), ("ok", 5)]


def test_a_run_of_a_single_cell_is_named_without_its_overrides(
    fake: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.script[1] = lambda: ("failed", "why")

    assert main(["protocol=loopback", "codec=json"]) == 1
    assert capsys.readouterr().err == "failed: loopback request_response repeat 1: why\n"


@pytest.mark.parametrize("verdict", ["void", "unsupported"])
def test_void_and_unsupported_runs_are_no_failures(fake: Engine, verdict: Verdict) -> None:
    fake.script[1] = lambda: (verdict, "a reason")

    assert main(["protocol=loopback", "repeats=2"]) == 0


def test_a_run_that_was_ended_at_the_memory_ceiling_is_no_failure(fake: Engine) -> None:
    fake.script[1] = lambda: ("void", "memory: the driver passed limits.max_rss_mb (3,072)")

    assert main(["protocol=loopback"]) == 0


def test_a_sweep_of_unsupported_runs_alone_measured_nothing(
    fake: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.script = {1: lambda: ("unsupported", "no such stream"), 2: lambda: ("unsupported", "another reason")}

    assert main(["protocol=loopback", "repeats=2"]) == 1
    assert capsys.readouterr().err == "no run was good: no such stream\n"


def test_connections_that_the_system_would_not_open_are_refused_before_anything_starts(
    fake: Engine, refused: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (128, 4096))

    assert refused("protocol=tcp", "load.connections=2,300") == [
        "load.connections: 300 connections need about 350 open files in each process, the limit is 128; "
        "raise it (ulimit -n 350) or ask for fewer"
    ]
    assert main(["protocol=tcp", "load.connections=78"]) == 0
    assert main(["protocol=loopback", "load.connections=300"]) == 0


def test_a_report_that_is_there_already_is_not_touched_before_the_end(fake: Engine, folder: Path) -> None:
    (folder / "out.txt").write_text("of yesterday")
    seen: list[str] = []

    def look() -> tuple[Verdict, str]:
        seen.append((folder / "out.txt").read_text())
        return "ok", ""

    fake.script[1] = look

    assert main(["protocol=loopback", "report=out.txt"]) == 0
    assert seen == ["of yesterday"]
    assert (folder / "out.txt").read_text() == "the report of sqlite:///results.db\n"


def test_fail_fast_stops_after_the_first_failed_run(fake: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    fake.script[2] = lambda: ("failed", "why")

    assert main([*SWEEP, "fail_fast=true"]) == 1
    assert len(fake.ran) == 2
    assert capsys.readouterr().err.splitlines()[-1] == "fail_fast: 4 of 6 runs were not started"


def test_ctrl_c_stores_the_run_in_progress_and_starts_no_other(
    fake: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.script[2] = lambda: ("interrupted", "stopped by Ctrl-C")

    assert main(SWEEP) == 130
    assert stored("select position, verdict from run order by 1") == [(1, "ok"), (2, "interrupted")]
    assert stored("select ended_at is not null from sweep") == [(1,)]
    assert capsys.readouterr().err == "interrupted: 4 of 6 runs were not started; the others are saved\n"


def test_ctrl_c_between_two_runs_keeps_what_is_finished(fake: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    def press() -> tuple[Verdict, str]:
        raise KeyboardInterrupt

    fake.script[3] = press

    assert main(SWEEP) == 130
    assert stored("select count(*) from run") == [(2,)]
    assert capsys.readouterr().err == "interrupted: 4 of 6 runs were not started; the others are saved\n"


def test_sigterm_ends_a_sweep_as_ctrl_c_does(fake: Engine) -> None:
    def end() -> tuple[Verdict, str]:
        os.kill(os.getpid(), signal.SIGTERM)
        return "ok", ""

    fake.script[2] = end

    assert main(SWEEP) == 130
    assert stored("select count(*) from run") == [(1,)]


def test_ctrl_c_while_a_run_is_saved_waits_until_it_is(fake: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    save = Store.save_run

    def pressed(self: Store, run: RunRecord) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        save(self, run)

    monkeypatch.setattr(Store, "save_run", pressed)

    assert main(SWEEP) == 130
    assert stored("select count(*), min(verdict) from run") == [(1, "ok")]


def test_a_hasty_second_ctrl_c_is_part_of_the_first_and_a_patient_one_is_not_held_back() -> None:
    noted: list[str] = []

    def press_three_times() -> None:
        with held_back() as held:
            os.kill(os.getpid(), signal.SIGINT)
            noted.append("first")
            assert held.pressed_at is not None
            held.pressed_at += 60  # however slow this machine is
            os.kill(os.getpid(), signal.SIGINT)
            noted.append("hasty")
            held.pressed_at -= 120
            os.kill(os.getpid(), signal.SIGINT)
            noted.append("patient")

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        press_three_times()
    assert noted == ["first", "hasty"]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_run_that_could_not_be_saved_is_a_failure_with_its_way_out(
    fake: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def locked(self: Store, run: RunRecord) -> None:
        raise StoreError("results.db: it is locked; the run is kept in elsewhere.json")

    monkeypatch.setattr(Store, "save_run", locked)

    assert main(["protocol=loopback"]) == 1
    assert capsys.readouterr().err == (
        "failed: loopback request_response repeat 1: it ended ok and was not saved: "
        "results.db: it is locked; the run is kept in elsewhere.json\n"
    )


def test_numbers_that_no_database_keeps_are_a_failed_run_that_can_be_seen(
    fake: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    saved: list[RunRecord] = []
    save = Store.save_run

    def strict(self: Store, run: RunRecord) -> None:
        if run.measurements:
            raise Unstorable("p50_us: NaN cannot be stored")
        saved.append(run)
        save(self, run)

    monkeypatch.setattr(Store, "save_run", strict)
    monkeypatch.setattr(
        engine, "run", lambda *a, **k: replace(fake.run(*a, **k), measurements={"p50_us": (1.0, "us")})
    )

    assert main(["protocol=loopback"]) == 1
    assert [(run.verdict, run.reason) for run in saved] == [("failed", "p50_us: NaN cannot be stored")]
    assert "repeat 1: p50_us: NaN cannot be stored" in capsys.readouterr().err


def test_a_defect_of_ours_costs_one_run(fake: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    def defect() -> tuple[Verdict, str]:
        raise ZeroDivisionError("division by zero")

    fake.script[1] = defect

    assert main(["protocol=loopback", "repeats=2"]) == 1
    assert len(fake.ran) == 2
    assert capsys.readouterr().err == (
        "failed: loopback request_response repeat 1: not saved, a defect of bakeoff: "
        "ZeroDivisionError: division by zero\n"
    )


def test_a_report_that_cannot_be_made_is_said_and_the_runs_are_kept(
    fake: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(url: str, sweep_id: str) -> str:
        raise StoreError("results.db not found")

    monkeypatch.setattr(command, "sweep_report", fail)

    assert main(["protocol=loopback"]) == 1
    assert capsys.readouterr().err == "the report could not be given: results.db not found\n"
    assert stored("select count(*) from run") == [(1,)]


def test_report_is_given_the_words_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "main", len)

    assert main(["report", "--all", "stream"]) == len(["--all", "stream"])


def bakeoff(*argv: str) -> list[str]:
    return [sys.executable, "-m", "runner", *argv]


def test_one_run_in_real_processes_prints_its_table(folder: Path) -> None:
    done = subprocess.run(
        bakeoff("protocol=loopback", "operation.count=200", "operation.warmup=20"),
        capture_output=True,
        text=True,
        timeout=CHILD_S,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "REQUEST/RESPONSE" in done.stdout
    assert [path.name for path in folder.iterdir()] == ["results.db"]


def test_the_words_are_recognised_before_hydra_is_imported() -> None:
    script = (
        "import sys; from runner.__main__ import main; main(['report', '--help']); main(['serve', '--help']); "
        "sys.exit('hydra' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=CHILD_S, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "usage: bakeoff serve" in done.stdout
