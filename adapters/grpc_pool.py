"""The pool of threads that serves gRPC calls: concurrent.futures' own, but that ending the process does not wait
for a thread that sleeps or computes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from typing import Any

_Task = tuple[Future[Any], Callable[[], Any]]


class Pool(Executor):
    """`workers` threads, all started at once; what finds none of them free waits its turn."""

    def __init__(self, workers: int) -> None:
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._workers = workers
        self._stopped = False
        for number in range(workers):
            threading.Thread(target=self._work, name=f"worker-{number}", daemon=True).start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """As Executor's. Raises RuntimeError after shutdown."""
        if self._stopped:
            raise RuntimeError("the pool has been shut down")
        future: Future[Any] = Future()
        self._tasks.put((future, lambda: fn(*args, **kwargs)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """No thread takes up anything new. Never waits."""
        self._stopped = True
        for _ in range(self._workers):
            self._tasks.put(None)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            future, call = task
            del task  # what a waiting thread refers to lives as long as it waits
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as exc:
                    future.set_exception(exc)
            del future, call
