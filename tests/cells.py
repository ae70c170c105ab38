"""Checked cells for tests: the options in conf/, small counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from runner.config import Cell, check
from runner.process import Process

CONF = Path(__file__).parent.parent / "conf"
FEW = {
    "request_response": {"count": 20, "warmup": 5},
    "stream": {"count": 200, "warmup": 20},
    "hello": {"requests": 60, "warmup": 6},
    "call_overhead": {"count": 20, "warmup": 5},
    "stream_overhead": {"count": 200, "warmup": 20},
    "payload": {"loops": 50},
    "upload": {"records": 2500, "warmup": 100},
    "download": {"records": 2500, "warmup": 100},
    "backpressure": {"quiet_s": [0.1, 0.2], "settle_s": 6.0},
}


def option(group: str, name: str, **knobs: Any) -> dict[str, Any]:
    """conf/<group>/<name>.yaml, with `knobs` over it."""
    read: dict[str, Any] = yaml.safe_load((CONF / group / f"{name}.yaml").read_text())
    assert set(knobs) <= set(read), f"{knobs} over {read}"
    return {**read, **knobs}


def config(
    operation: str = "request_response", protocol: str = "loopback", codec: str = "default", **parts: Any
) -> dict[str, Any]:
    """A composed configuration. `parts`: operation_, protocol_, load_, limits_ (knobs) and plain keys."""
    plain: dict[str, Any] = yaml.safe_load((CONF / "config.yaml").read_text())
    composed = {key: value for key, value in plain.items() if key not in ("defaults", "hydra")}
    composed |= {
        "scenario": operation,
        "operation": option("operation", operation, **{**FEW[operation], **parts.pop("operation_", {})}),
        "protocol": option("protocol", protocol, **parts.pop("protocol_", {})),
        "codec": option("codec", codec),
        "load": option("load", "closed", **parts.pop("load_", {})),
        "storage": option("storage", "sqlite"),
        "limits": {**composed["limits"], "max_waited_pct": 10_000, **parts.pop("limits_", {})},
    }
    return {**composed, **parts}


def cell(*names: str, **parts: Any) -> Cell:
    """A checked cell. Fails the test that asks for an impossible one."""
    checked, problems = check(config(*names, **parts))
    assert problems == []
    assert checked is not None
    return checked


def instead_of(side: str, script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Process]:
    """Launch as usual, but `side` runs `script` instead."""
    (tmp_path / "stand_in.py").write_text(script)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def launch(name: str, module: str, setup: dict[str, Any]) -> Process:
        return Process(name, "stand_in" if name == side else module, setup)

    return launch
