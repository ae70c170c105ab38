"""Shared by all tests: databases, and that a logged error fails its test, unless that says that it expects one."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import KINDS, Database, empty_database

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


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """An empty database, of each kind; its folder is the current one."""
    monkeypatch.chdir(tmp_path)
    with empty_database(request.param, tmp_path) as made:
        yield made


@pytest.fixture
def postgresql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """An empty database on a PostgreSQL server; the current folder is empty too."""
    monkeypatch.chdir(tmp_path)
    with empty_database("postgresql", tmp_path) as made:
        yield made
