"""The option files in conf/, read as data: one file per option, named for it, in a folder per group."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import conf

CONF = Path(conf.__file__).parent
GROUPS = ("scenario", "operation", "protocol", "codec", "load", "storage", "suite")


def option_file(group: str, name: str, folders: tuple[Path, ...] = (CONF,)) -> Path | None:
    """The file of an option in the first of `folders` that has it."""
    files = (folder / group / f"{name}.yaml" for folder in folders)
    return next((file for file in files if file.is_file()), None)


@cache
def option(group: str, name: str) -> dict[str, Any] | None:
    """The keys of one of our own options as its file gives them, not to be changed; None for no such file."""
    file = option_file(group, name)
    if file is None:
        return None
    import yaml  # here: only who chose a protocol with knobs pays for it

    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    return content if isinstance(content, dict) else {}


def options(group: str, folders: tuple[Path, ...] = (CONF,)) -> list[str]:
    """The names of the options of a group, sorted; only our own unless told of more folders."""
    return sorted(file.stem for folder in folders for file in (folder / group).glob("*.yaml"))


def known_keys() -> list[str]:
    """Every key that some configuration has: plain ones, groups, and "operation.count" of each option."""
    import yaml

    keys = list(GROUPS)
    for name, value in yaml.safe_load((CONF / "config.yaml").read_text(encoding="utf-8")).items():
        if name not in ("defaults", "hydra"):
            keys += [f"{name}.{key}" for key in value] if isinstance(value, dict) else [name]
    for group in GROUPS:
        for name in options(group):
            keys += [f"{group}.{key}" for key in option(group, name) or {}]
    return list(dict.fromkeys(keys))
