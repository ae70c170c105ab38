"""A sweep, from its checked cells to its last row: database, runs one after the other, Ctrl-C."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

try:
    import resource
except ImportError:  # Windows, which has no such limit
    resource = None  # type: ignore[assignment]

from hydra.core.utils import JobReturn, JobStatus

from runner.config import Storage
from runner.job import Job, Outcome, SweepResult
from runner.mistakes import Refused
from runner.progress import SweepProgress
from runner.sweep import PlannedCell, Turn, turns

if TYPE_CHECKING:
    from runner.store import Store, SweepRecord

OTHER_FILES = 50  # a process without any connection: libraries, pipes, the loop's own
SEEDS = 1_000_000  # a drawn seed has at most six digits: people copy it


class Launch(Protocol):
    """A Hydra launcher's `launch`."""

    def __call__(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]: ...


def run_sweep(job: Job, cells: Sequence[PlannedCell], launch: Launch, batch: int) -> None:
    """Runs every repeat of every cell, `batch` at a time; `job.result` tells what came of it.

    The database is opened and the sweep is in it before anything starts. Raises Refused when that fails.
    """
    from runner.store import SweepRecord, new_id
    from runner.store.located import without_password

    first = cells[0].cell
    _refuse_report(first.report)
    _refuse_open_files(cells)
    seed = first.seed if first.config["seed"] is not None else secrets.randbelow(SEEDS)
    sweep_id = new_id()
    planned = turns(cells, seed, sweep_id)
    record = SweepRecord(
        sweep_id=sweep_id,
        suite=first.suite or None,
        command=without_password(job.command),
        seed=seed,
        planned=len(planned),
        started_at=datetime.now(UTC),
    )
    begun = time.monotonic()
    result = SweepResult(sweep_id, first.storage.url, first.report, len(planned))
    with _begun(first.storage, record) as store:
        job.store, job.database, job.result = store, store.url, result
        job.beside = store.path
        job.busy_s = first.storage.busy_s
        try:
            _run(planned, launch, batch, first.fail_fast, result)
        except KeyboardInterrupt:
            result.interrupted = True
        finally:
            job.store = None
            # Not the wall clock again: it may have been set back meanwhile.
            _end(store, result, record.started_at + timedelta(seconds=time.monotonic() - begun))


def _run(planned: Sequence[Turn], launch: Launch, batch: int, fail_fast: bool, result: SweepResult) -> None:
    with SweepProgress(len(planned)) as progress:
        for start in range(0, len(planned), batch):
            now = planned[start : start + batch]
            progress.starting(str(now[0]))
            jobs = launch([turn.overrides for turn in now], initial_job_idx=start)
            outcomes = [_outcome(job) for job in jobs]
            result.outcomes += [(str(turn), outcome) for turn, outcome in zip(now, outcomes, strict=True)]
            progress.ended(len(now))
            if any(outcome.stop for outcome in outcomes):
                result.interrupted = True
                return
            if fail_fast and result.failed():
                return


def _outcome(job: JobReturn) -> Outcome:
    """What the job returned, or the defect that it raised, as a failed run."""
    if job.status is JobStatus.COMPLETED:
        outcome = job.return_value
        assert isinstance(outcome, Outcome)
        return outcome
    error = job._return_value  # its public name prints and raises it
    return Outcome("failed", f"not saved, a defect of bakeoff: {type(error).__name__}: {error}")


def _refuse_report(report: str | None) -> None:
    """Raises Refused when the report could not be written at the end."""
    if report is None:
        return
    file = Path(report)
    if file.is_dir():
        raise Refused([f"report: {report} is a folder; give the name of a file in it"])
    if not file.absolute().parent.is_dir():
        raise Refused([f"report: there is no folder {file.absolute().parent}; create it or give another file"])
    try:
        _try_to_write(file)
    except OSError as exc:
        raise Refused([f"report: cannot write {report}: {exc.strerror or exc}; give another file"]) from exc


def _try_to_write(file: Path) -> None:
    """Leaves things as they are. Raises OSError. A pipe or device is not opened: that might wait for its reader."""
    if not file.exists():
        with file.open("x"):
            pass
        file.unlink()
    elif file.is_file():
        with file.open("a"):
            pass


def _refuse_open_files(cells: Sequence[PlannedCell]) -> None:
    """Raises Refused when the system would not let one process hold all connections of a cell."""
    if resource is None:
        return
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    wired = [planned.cell for planned in cells if not planned.cell.adapter.in_process]
    largest = max(wired, key=lambda cell: cell.connections_opened, default=None)
    most = largest.connections_opened if largest else 0
    needed = most + OTHER_FILES
    if largest and most > 1 and limit != resource.RLIM_INFINITY and needed > limit:
        raise Refused(
            [
                f"{largest.operation.connections_key}: {most} connections need about {needed} open files in each "
                f"process, the limit is {limit}; raise it (ulimit -n {needed}) or ask for fewer"
            ]
        )


@contextmanager
def _begun(storage: Storage, record: SweepRecord) -> Iterator[Store]:
    """The open database with the sweep in it. Raises Refused when it cannot be written."""
    from runner.store import StoreError, open_store

    try:
        store = open_store(storage.url, busy_s=storage.busy_s)
    except StoreError as exc:
        raise Refused([f"storage.url: {exc}"]) from exc
    with store:
        try:
            store.begin_sweep(record)
        except StoreError as exc:
            raise Refused([f"storage.url: {exc}"]) from exc
        yield store


def _end(store: Store, result: SweepResult, ended_at: datetime) -> None:
    from runner.store import StoreError

    try:
        store.end_sweep(result.sweep_id, ended_at)
    except StoreError as exc:
        result.trouble.append(f"the end of the sweep was not saved: {exc}")
