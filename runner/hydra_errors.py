"""What Hydra and OmegaConf raise, as lines for the person who typed the command."""

from __future__ import annotations

import re
import shlex

import yaml
from hydra.errors import CompactHydraException, HydraException, MissingConfigException, OverrideParseException
from omegaconf.errors import OmegaConfBaseException

from runner.mistakes import near, no_such_option
from runner.options import known_keys
from runner.yaml_files import yaml_problem

MISTAKES = (HydraException, OmegaConfBaseException, yaml.YAMLError)  # what a user's input can make them raise

_KEY = re.compile(r"Could not override '([^']+)'")
_THERE = re.compile(r"Could not append to config\. An item is already at '([^']+)'")
_NOISE = ("Error parsing override", "See https://")  # the lines around what a parser error says
_AMBIGUOUS = re.compile(r"(?:Ambiguous value for argument|Sweep parameters) '([^']+)'")


def unknown_key(exc: BaseException) -> str | None:
    """The key that an override set and that is not there, where that is what `exc` says."""
    found = _KEY.search(str(exc)) if isinstance(exc, CompactHydraException) else None
    return found[1] if found else None


def one_line(exc: BaseException) -> str:
    """Where, what, and the way out."""
    if isinstance(exc, OverrideParseException):
        return _unreadable(exc)
    if isinstance(exc, MissingConfigException) and exc.missing_cfg_file and exc.options is not None:
        group, _, option = exc.missing_cfg_file.rpartition("/")
        return no_such_option(group, option, exc.options)
    if isinstance(exc, yaml.YAMLError):
        return yaml_problem(exc, str(getattr(getattr(exc, "problem_mark", None), "name", "a YAML file")))
    if key := unknown_key(exc):
        return f"{key}: no such key{near(key, known_keys())} (bakeoff --cfg job lists what there is)"
    if there := _THERE.search(str(exc)):
        return f"{there[1]}: there already; leave out the +"
    if several := _AMBIGUOUS.search(str(exc)):
        return f"{several[1]}: several values, and only a run can take them; give one"
    texts = [str(exc), str(exc.__cause__ or "") if isinstance(exc.__cause__, OmegaConfBaseException) else ""]
    return ": ".join(_joined(text) for text in texts if text.strip()) or type(exc).__name__


def _unreadable(exc: OverrideParseException) -> str:
    key, equals, value = exc.override.partition("=")
    if not equals:
        return f"{exc.override}: expected key=value (bakeoff --help lists what there is)"
    said = next((line.strip() for line in str(exc).splitlines() if not line.startswith(_NOISE)), "")
    if value.rstrip().endswith(","):
        return f"{exc.override}: a comma with nothing after it; add a value or leave it out"
    brackets = [value.count(one) - value.count(other) for one, other in ("[]", "{}", "()")]
    quotes = value.count('"') % 2 or value.count("'") % 2
    if any(brackets) or quotes:
        return f"{exc.override}: a bracket or quote is not closed ({said})"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    way_out = shlex.quote(f'{key}="{escaped}"')
    return f"{exc.override}: a value with = , or the like needs quotes inside the shell's; write {way_out} ({said})"


def _joined(text: str) -> str:
    """The lines that say something, as one."""
    lines = [line.strip() for line in text.splitlines()]
    said = [line for line in lines if line and not line.startswith(("object_type=", "reference_type="))]
    return " ".join(said)
