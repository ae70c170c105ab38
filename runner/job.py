"""What Hydra launches: one run of one cell, executed and saved. Its launcher may do so in another process."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from runner.config import check
from runner.mistakes import Refused

if TYPE_CHECKING:
    from runner.store import Store
    from runner.store.record import RunRecord, Verdict


PATIENCE_S = 1.0  # two presses within this are one


@dataclass(frozen=True)
class Outcome:
    """How a run ended. `stop`: Ctrl-C was pressed, and nothing more is to be started."""

    verdict: Verdict
    reason: str
    stop: bool = False


@dataclass
class SweepResult:
    """What came of a sweep. `outcomes`: (title of the run, how it ended) in the order they were run."""

    sweep_id: str
    url: str
    report: str | None
    planned: int
    outcomes: list[tuple[str, Outcome]] = field(default_factory=list)
    interrupted: bool = False
    trouble: list[str] = field(default_factory=list)  # with the database, one line each

    def failed(self) -> list[tuple[str, Outcome]]:
        """The runs that make the exit code 1."""
        return [(title, outcome) for title, outcome in self.outcomes if outcome.verdict == "failed"]


class Job:
    """Hydra's task function, and the thread between the command line and its result.

    `overrides` is what the command line sets beside Hydra's own keys. It is kept from Hydra's first composition
    because a key may exist in some cells only; the sweeper applies it cell by cell. `result` is set by the
    sweeper. `database` is the absolute path, or the URL, that every process saves to; `beside` what files of
    unsaved runs are named after.
    """

    def __init__(self, overrides: list[str], command: str = "bakeoff") -> None:
        self.overrides = overrides
        self.command = command
        self.database: str | None = None
        self.beside = Path("results.db")
        self.busy_s = 10.0
        self.store: Store | None = None
        self.result: SweepResult | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "store": None, "result": None}  # another process opens the database itself

    def __call__(self, cfg: DictConfig) -> Outcome:
        """Run and save. A run that went wrong is an outcome; only a defect of the program raises."""
        from runner import engine

        cell, problems = check(plain(cfg))
        if cell is None:
            raise Refused(problems)
        plan = cell.config["plan"]
        task = HydraConfig.get().overrides.task
        record = engine.run(
            cell,
            sweep_id=plan["sweep_id"],
            repeat=plan["repeat"],
            position=plan["position"],
            overrides=[override for override in task if not override.startswith("plan.")],
        )
        with held_back() as held:
            verdict, reason = self._save(_shareable(record))
        return Outcome(verdict, reason, stop=held.pressed or record.verdict == "interrupted")

    def _save(self, record: RunRecord) -> tuple[Verdict, str]:
        from runner.store import StoreError, Unstorable

        try:
            self._write(record)
        except Unstorable as exc:
            # What was measured cannot be stored; that it was not must be seen all the same.
            bare = replace(
                record, verdict="failed", reason=str(exc), measurements={}, findings={}, samples={}, series={}
            )
            try:
                self._write(bare)
            except StoreError as again:
                return "failed", f"it ended {record.verdict} and was not saved: {again}"
            return "failed", str(exc)
        except StoreError as exc:
            return "failed", f"it ended {record.verdict} and was not saved: {exc}"
        return record.verdict, record.reason

    def _write(self, record: RunRecord) -> None:
        """One transaction. Raises StoreError, which names the file that the run was put into instead."""
        from runner.store import StoreError, open_store
        from runner.store.located import without_password
        from runner.store.save import keep

        if self.store is not None:
            self.store.save_run(record)
            return
        assert self.database is not None
        try:
            store = open_store(self.database, create=False, busy_s=self.busy_s)
        except StoreError as exc:
            kept = keep(self.beside, without_password(self.database), record, str(exc))
            raise StoreError(f"{exc}; {kept}") from exc
        with store:
            store.save_run(record)


def _shareable(record: RunRecord) -> RunRecord:
    """`record` without the password of the database: who may read results need not be able to write them."""
    from runner.store.located import without_password

    storage = {**record.config["storage"], "url": without_password(record.config["storage"]["url"])}
    overrides = [without_password(override) for override in record.overrides]
    return replace(record, overrides=overrides, config={**record.config, "storage": storage})


def plain(cfg: DictConfig) -> dict[str, Any]:
    """A composed configuration as a plain dict, without Hydra's own part."""
    keys = [str(key) for key in cfg if key != "hydra"]
    content = OmegaConf.to_container(OmegaConf.masked_copy(cfg, keys), resolve=True)
    assert isinstance(content, dict)
    return {str(key): value for key, value in content.items()}


class Held:
    """Whether Ctrl-C was pressed meanwhile, and when first (seconds, monotonic)."""

    pressed_at: float | None = None

    @property
    def pressed(self) -> bool:
        """At least once."""
        return self.pressed_at is not None


@contextmanager
def held_back() -> Iterator[Held]:
    """Inside, Ctrl-C is only noted, so that what is being written is written. Pressed again PATIENCE_S later, it
    raises: a hasty second press must not cost a finished run, and a locked database must not hold anybody.
    """
    held = Held()
    if threading.current_thread() is not threading.main_thread():  # signals go to the main thread anyway
        yield held
        return

    def note(signum: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if held.pressed_at is None:
            held.pressed_at = now
        elif now - held.pressed_at >= PATIENCE_S:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield held
    finally:
        signal.signal(signal.SIGINT, before if before is not None else signal.default_int_handler)
