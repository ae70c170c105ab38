"""Shared by all tests: a logged error fails the test that caused it, unless it says that it expects one."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "logs_errors: the test provokes an error that is logged")


@pytest.fixture(autouse=True)
def no_logged_errors(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """asyncio reports lost exceptions by logging them; nobody would read that."""
    yield
    if request.node.get_closest_marker("logs_errors") is None:
        records = caplog.get_records("call")  # .records is already that of the teardown
        errors = [record.getMessage() for record in records if record.levelno >= logging.ERROR]
        assert errors == []
