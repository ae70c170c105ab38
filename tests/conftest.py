"""Shared by all tests: a logged error fails the test that caused it, unless it says that it expects one."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

# grpc.aio has one poller for all loops of a process and wakes those of earlier tests, which are closed by now
# (grpc/grpc#25364). A program of ours has one loop per process.
GRPC_POLLER = "Exception in callback PollerCompletionQueue._handle_events"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "logs_errors: the test provokes an error that is logged")


@pytest.fixture(autouse=True)
def no_logged_errors(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """asyncio reports lost exceptions by logging them; nobody would read that."""
    yield
    if request.node.get_closest_marker("logs_errors") is None:
        records = caplog.get_records("call")  # .records is already that of the teardown
        errors = [record.getMessage() for record in records if record.levelno >= logging.ERROR]
        errors = [text for text in errors if not text.startswith(GRPC_POLLER)]
        assert errors == []
