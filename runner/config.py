"""What a cell is, and everything that can be wrong with one: `check(config)`.

Works on the composed configuration as a plain dict, without Hydra, because the two measured processes call it too.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar

from adapters.api import Adapter, Codec
from runner.build import MISSING, build, keys_of, locate, read
from runner.fields import LOADS, Count, Deadline, Limits, Load, Natural, Port, Record
from runner.mistakes import no_such_key, shown
from runner.operations.api import Operation
from runner.options import option

T = TypeVar("T")
SECTIONS = ("operation", "protocol", "codec", "load", "storage", "limits", "record", "plan")
ENGINE = "engine"  # the knob that has a column of its own
_NOT_KNOBS = ("name", "_target_", ENGINE)


@dataclass(frozen=True, kw_only=True)
class Storage:
    """Where results go; a relative SQLite URL starts at the directory bakeoff is started in. `busy_s`: how long
    to wait for another program that is writing to the same database.
    """

    name: str
    url: str
    busy_s: Deadline


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Which run of the sweep this is, all null until the sweeper has filled it in."""

    sweep_id: str | None
    position: Count | None
    repeat: Count | None


@dataclass(frozen=True, kw_only=True)
class Plain:
    """The keys that stand alone, at the top."""

    scenario: str
    suite: str | None
    label: str
    repeats: Count
    seed: Natural | None
    host: str
    port: Port
    loop: Literal["uvloop", "asyncio"]
    tls: bool
    report: str | None
    fail_fast: bool


PLAIN = tuple(field.name for field in fields(Plain))


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A scenario with every swept dimension fixed, ready to run. `adapter` holds its codec.

    `suite` is "" outside one. `codec` is resolved, never "default". `seed` is 0 until one was drawn. `variant`
    names the knobs of protocol and codec that differ from their option files ("bdp_probe=false
    lookahead_bytes=4096"), without the engine. `config` is plain and JSON-able; `check` accepts it again.
    """

    scenario: str
    suite: str
    label: str
    operation: Operation
    protocol: str
    codec: str
    adapter: Adapter
    load: Load
    limits: Limits
    record: Record
    storage: Storage
    repeats: int
    seed: int
    host: str
    port: int
    loop: str
    report: str | None
    fail_fast: bool
    variant: str
    config: dict[str, Any]

    @property
    def at_a_time(self) -> int:
        """Calls or streams under way at once."""
        return self.operation.at_a_time(self.load)

    @property
    def connections_opened(self) -> int:
        """Connections that the driver opens."""
        return 1 if self.load.multiplex else self.at_a_time


def check(config: Mapping[str, Any]) -> tuple[Cell | None, list[str]]:
    """The cell that a composed configuration describes, or None and every problem, each in one sentence."""
    checking = _Checking(config)
    cell = checking.cell()
    return (None, checking.problems) if checking.problems else (cell, [])


def dotted_keys(config: Mapping[str, Any]) -> list[str]:
    """Every key below a section that a user may set: "operation.count"."""
    return [
        f"{name}.{key}"
        for name in SECTIONS
        if name != "plan" and isinstance(section := config.get(name), Mapping)
        for key in section
        if key not in ("name", "_target_")
    ]


class _Checking:
    """One look at one configuration: `problems` grows, `plain` collects the values as they were understood."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config
        self.problems: list[str] = []
        self.plain: dict[str, Any] = {}

    def cell(self) -> Cell | None:
        known = [*PLAIN, *SECTIONS]
        for name in self.config:
            if name not in known:
                self.problems.append(no_such_key(str(name), "the top level", known, dotted_keys(self.config)))
        top = self._top()
        operation = self._operation()
        limits = self._section("limits", Limits)
        adapter = self._adapter(limits)
        load = self._load()
        storage = self._section("storage", Storage)
        record = self._section("record", Record)
        self._section("plan", Plan)
        if load and adapter and load.multiplex and not adapter.multiplexes:
            self.problems.append(
                f"load.multiplex: {self.plain['protocol']['name']} carries one call at a time on a connection; "
                f"leave it false{self._instead(operation)}"
            )
        if load and operation and load.connections != 1:
            self._refuse_connections(operation)
        if load and operation and limits:
            self.problems += operation.load_problems(load, limits)
        if not (top and operation and adapter and load and limits and record and storage):
            return None
        return Cell(
            scenario=top.scenario,
            suite=top.suite or "",
            label=top.label,
            operation=operation,
            protocol=self.plain["protocol"]["name"],
            codec=self.plain["codec"]["name"],
            adapter=adapter,
            load=load,
            limits=limits,
            record=record,
            storage=storage,
            repeats=top.repeats,
            seed=top.seed or 0,
            host="127.0.0.1" if top.host == "localhost" else top.host,
            port=top.port,
            loop=top.loop,
            report=top.report,
            fail_fast=top.fail_fast,
            variant=" ".join(
                _differences("protocol", self.plain["protocol"], type(adapter))
                + _differences("codec", self.plain["codec"], type(adapter.codec))
            ),
            config={name: self.plain[name] for name in known},
        )

    @staticmethod
    def _instead(operation: Operation | None) -> str:
        if operation is None or operation.one_connection or not operation.needs_server:
            return ""
        return f" and raise {operation.connections_key}"

    def _refuse_connections(self, operation: Operation) -> None:
        """Notes a problem where more connections than one would be opened and never looked at."""
        if not operation.needs_server:
            self.problems.append(f"load.connections: {operation.name} needs no connection; leave it 1")
        elif operation.connections_key != "load.connections":
            self.problems.append(
                f"load.connections: {operation.name} opens one for each of {operation.connections_key}; leave it 1"
            )
        elif operation.one_connection:
            self.problems.append(f"load.connections: {operation.name} measures one connection; leave it 1")

    def _top(self) -> Plain | None:
        values = {name: self.config[name] for name in PLAIN if name in self.config}
        top = self._built("", "the top level", Plain, values)
        if top is None:
            return None
        self.plain |= self.plain.pop("")
        if top.tls:
            self.problems.append("tls: not supported yet; leave it false")
        if top.report == "":
            self.problems.append('report: expected a file name or null, got ""')
        if top.host != "localhost" and not _is_address(top.host):
            self.problems.append(f"host: expected an address such as 127.0.0.1 or ::1, got {shown(top.host)}")
        return top

    def _operation(self) -> Operation | None:
        section = self._keys("operation")
        kind = self._kind("operation", section, Operation)
        if kind is None:
            return None
        target = section.pop("_target_")
        operation = self._built("operation", f"operation {section.get('name', '')}", kind, section)
        if operation is not None:
            self.plain["operation"] = {"_target_": target, **self.plain["operation"]}
            self.problems += [f"operation.{problem}" for problem in operation.problems()]
        return operation

    def _load(self) -> Load | None:
        """The arrival decides which keys there are; an option file of ours decides the arrival."""
        section = self._keys("load")
        arrival, name = section.get("arrival"), section.get("name")
        if not isinstance(arrival, str) or arrival not in LOADS:
            known = {key for taker in LOADS.values() for key in keys_of(taker)} - keys_of(Load).keys()
            shared = {key: value for key, value in section.items() if key not in known}
            return self._built("load", "load", Load, shared) if section else None
        own = option("load", name) if isinstance(name, str) else None
        if own is not None and own["arrival"] != arrival:
            self.problems.append(f"load.arrival: {name} is {own['arrival']}; say load={arrival} instead")
            return None
        kind = LOADS[arrival]
        for key in sorted(section.keys() - keys_of(kind).keys()):
            takers = [other for other, taker in LOADS.items() if key in keys_of(taker)]
            if takers:
                self.problems.append(f"load.{key}: load={name} has none; say load={' or load='.join(takers)}")
                del section[key]
        return self._built("load", f"load {name}", kind, section)

    def _adapter(self, limits: Limits | None) -> Adapter | None:
        section = self._keys("protocol")
        kind = self._kind("protocol", section, Adapter)
        codec = self._codec(kind)
        if kind is None:
            return None
        given = {"codec": codec, "max_message_bytes": limits and limits.max_message_bytes}
        return self._unnamed("protocol", kind, section, given)

    def _codec(self, adapter: type[Adapter] | None) -> Codec | None:
        section = self._keys("codec")
        if section.get("name") == "default" and "_target_" not in section:
            if adapter is None:
                return None  # whose default, is not known
            own = option("codec", adapter.default_codec)
            if own is None:
                self.problems.append(
                    f"codec: conf/codec has no {adapter.default_codec}.yaml, the default of {adapter.__name__}; "
                    "name a codec"
                )
                return None
            section = {**own, **section, "name": own["name"]}
        kind = self._kind("codec", section, Codec)
        return self._unnamed("codec", kind, section, {}) if kind else None

    def _unnamed(self, group: str, kind: type[T], section: dict[str, Any], given: dict[str, Any]) -> T | None:
        """The object of a section whose class is told neither its name nor what is `given`."""
        target, name = section.pop("_target_"), section.pop("name", MISSING)
        if not isinstance(name, str) or name == MISSING:
            self.problems.append(f"{group}.name: missing; give the name of the option file")
        keys = {key: value for key, value in keys_of(kind).items() if key not in given}
        before = len(self.problems)
        values = read(group, f"{group} {name}", keys, section, self.problems)
        self.plain[group] = {"name": name, "_target_": target, **values.plain}
        if len(self.problems) > before or None in given.values():
            return None
        return build(group, kind, {**given, **values.arguments}, self.problems)

    def _section(self, name: str, kind: type[T]) -> T | None:
        section = self._keys(name)
        return self._built(name, name, kind, section) if section else None

    def _built(self, path: str, taker: str, kind: type[T], values: Mapping[str, Any]) -> T | None:
        before = len(self.problems)
        values_read = read(path, taker.strip(), keys_of(kind), values, self.problems)
        self.plain[path] = values_read.plain
        return None if len(self.problems) > before else build(path, kind, values_read.arguments, self.problems)

    def _keys(self, name: str) -> dict[str, Any]:
        """A copy of a section; empty, with a problem noted, where there is none."""
        section = self.config.get(name)
        if isinstance(section, Mapping):
            return dict(section)
        missing = name not in self.config
        self.problems.append(f"{name}: missing" if missing else f"{name}: expected keys, got {shown(section)}")
        return {}

    def _kind(self, group: str, section: Mapping[str, Any], base: type[Any]) -> type[Any] | None:
        if not section:
            return None
        return locate(f"{group}._target_", section.get("_target_", MISSING), base, self.problems)


def _is_address(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, ValueError):
            continue
        return True
    return False


def _differences(group: str, section: Mapping[str, Any], taker: type) -> list[str]:
    knobs = {name: value for name, value in section.items() if name not in _NOT_KNOBS}
    if not knobs:
        return []
    usual = option(group, section["name"])
    if usual is None:  # an option of the user's own: its class says what is usual
        usual = {name: key.default for name, key in keys_of(taker).items()}
    return [f"{name}={_bare(value)}" for name, value in knobs.items() if usual.get(name, MISSING) != value]


def _bare(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
