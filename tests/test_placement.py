"""Where the two processes run."""

from __future__ import annotations

import pytest

from runner.placement import place


@pytest.mark.parametrize(
    ("wanted", "one_core", "cpus", "expected"),
    [
        ("auto", True, [0, 1], ("same", [1], [1])),
        ("auto", True, [0, 1, 2, 3], ("split", [2], [3])),
        ("auto", False, [0, 1], ("split", [0], [1])),
        ("split", True, [4, 9], ("split", [4], [9])),
        ("split", False, [3], ("same", [3], [3])),  # one CPU cannot be split, and the label says so
        ("same", False, [0, 1], ("same", [1], [1])),
        ("free", True, [0, 1], ("free", None, None)),
    ],
)
def test_place(wanted: str, one_core: bool, cpus: list[int], expected: tuple[object, ...]) -> None:
    assert tuple(place(wanted, one_core, cpus)) == expected
