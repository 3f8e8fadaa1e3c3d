"""The lines of a results file as data. Files come from anywhere: each `from_dict` checks every member that it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from vkharness.results.states import RESULTS, RowState

FORMAT = "vkharness results"
VERSION = 1
FILE_NAME = "results.jsonl"


class MalformedLineError(ValueError):
    """A line is not what the schema says; the message says which member and what it should be."""


@dataclass(frozen=True, slots=True)
class DeviceIdentity:
    """One driver of a run, as the driver itself says."""

    device: str
    """The name of the device in the ids of rows."""
    name: str
    api_version: str
    driver_version: str
    """The driver's own words for its version."""
    uuid: str
    """driverUUID of VkPhysicalDeviceIDProperties in hexadecimal digits; empty where the driver has none."""
    manifest: str
    library: str


@dataclass(frozen=True, slots=True)
class LayerIdentity:
    """One Khronos layer that was asked in a run."""

    version: str
    manifest: str
    library: str


@dataclass(frozen=True, slots=True)
class RunHeader:
    """The first line: what ran, on what, and with which options."""

    harness: str
    python: str
    started: str
    """ISO 8601, in UTC."""
    devices: tuple[DeviceIdentity, ...] = ()
    layers: tuple[LayerIdentity, ...] = ()
    loader: str | None = None
    seed: int | None = None
    shard: tuple[int, int] | None = None
    """(K, N): this run is the K-th of N parts."""
    options: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The line, JSON-able."""
        return {"kind": "run", "format": FORMAT, "version": VERSION, **asdict(self)}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> RunHeader:
        """Raises `MalformedLineError`."""
        if value.get("format") != FORMAT:
            raise MalformedLineError(f"'format' is not {FORMAT!r}: not a results file")
        version = member(value, "version", int)
        if version != VERSION:
            raise MalformedLineError(f"version {version} of the format; this harness reads version {VERSION}")
        shard = member(value, "shard", list, None)
        if shard is not None and (len(shard) != 2 or not all(type(each) is int for each in shard)):
            raise MalformedLineError("'shard' is not a list of two numbers")
        return cls(
            member(value, "harness", str),
            member(value, "python", str),
            member(value, "started", str),
            tuple(_texts(DeviceIdentity, each) for each in _objects(value, "devices")),
            tuple(_texts(LayerIdentity, each) for each in _objects(value, "layers")),
            member(value, "loader", str, None),
            member(value, "seed", int, None),
            None if shard is None else (shard[0], shard[1]),
            member(value, "options", dict, {}),
        )


@dataclass(frozen=True, slots=True)
class ClaimText:
    """The scenario of a row, as far as a reader must know it."""

    title: str
    """The first line of its docstring."""
    doc: str
    file: str
    """Relative to the folder from which the suite ran, where it lies below that."""
    line: int
    """The line of the function, from 1."""
    family: str
    """The folder of the scenario."""
    rule: str = ""
    """Anchors in docs/rules.md, separated by commas."""
    twin: str = "whole"
    """`whole`, `without` or `weakened`."""
    dependency: str = ""
    """The dependency that the twin is about."""
    weakness: str = ""


@dataclass(frozen=True, slots=True)
class RowResult:
    """One row: a variant of a scenario on a device, when all attempts at it are done."""

    nodeid: str
    """The id of the row for pytest, which also selects it."""
    row: dict[str, Any]
    """Every judge's verdict, as `vkharness.suite.row.Row.to_dict` gives it. Paths are relative to the file's folder."""
    result: RowState
    """State of the row by itself; one of `RESULTS`."""
    state: RowState
    """The result held against the baseline; without one it is the result."""
    seconds: float
    """The wall-clock time of all attempts."""
    claim: ClaimText
    attempts: tuple[RowState, ...]
    """The result of each attempt; more than one only where retries were asked for."""
    retried: str = ""
    """Why the first attempt did not pass, where there were several."""

    @property
    def attempt_seconds(self) -> float:
        """The wall-clock time of one attempt, on average."""
        return self.seconds / max(1, len(self.attempts))

    def to_dict(self) -> dict[str, Any]:
        """The line, JSON-able."""
        return {"kind": "row", **asdict(self)}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> RowResult:
        """Raises `MalformedLineError`."""
        row = member(value, "row", dict)
        _check_row(row)
        result = _state(member(value, "result", str))
        if result not in RESULTS:
            raise MalformedLineError(f"'result' is '{result}', which holds a row against a baseline")
        seconds = value.get("seconds")
        if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 <= seconds < float("inf"):
            raise MalformedLineError("'seconds' is not a number from 0 on")
        claim = member(value, "claim", dict)
        return cls(
            member(value, "nodeid", str),
            row,
            result,
            _state(member(value, "state", str)),
            float(seconds),
            ClaimText(
                **{key: member(claim, key, str) for key in ("title", "doc", "file", "family")},
                line=member(claim, "line", int),
                **{key: member(claim, key, str, "") for key in ("rule", "twin", "dependency", "weakness")},
            ),
            tuple(_state(each) for each in _list_of(str, value, "attempts")),
            member(value, "retried", str, ""),
        )


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The last line of a run that came to its end."""

    rows: int
    seconds: float
    exit: int
    """The exit code of pytest."""

    def to_dict(self) -> dict[str, Any]:
        """The line, JSON-able."""
        return {"kind": "end", **asdict(self)}


def reason_of(row: Mapping[str, Any]) -> str:
    """Why a row (`Row.to_dict`) does not pass, in one line: of a traceback the last. Empty when it passes."""
    lines = row["problem"].strip().splitlines() or [""]
    return "; ".join(row["reasons"]) or lines[-1 if lines[0].startswith("Traceback") else 0]


def member(value: Mapping[str, Any], key: str, kind: type, *default: Any) -> Any:
    """`value[key]`, which is a `kind`, or the default where it is absent or null. Raises `MalformedLineError`."""
    found = value.get(key)
    if found is None and default:
        return default[0]
    if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
        raise MalformedLineError(f"{key!r} is not {_NAMES[kind]}")
    return found


_NAMES = {str: "a text", int: "a whole number", dict: "an object", list: "a list", float: "a number"}


def _list_of(kind: type, value: Mapping[str, Any], key: str) -> list[Any]:
    several = member(value, key, list)
    if not all(isinstance(each, kind) for each in several):
        raise MalformedLineError(f"a member of {key!r} is not {_NAMES[kind]}")
    return list(several)


def _objects(value: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    return _list_of(dict, value, key)


def _texts(kind: Any, value: dict[str, Any]) -> Any:
    return kind(**{key: member(value, key, str) for key in kind.__slots__})


def _state(text: str) -> RowState:
    try:
        return RowState(text)
    except ValueError:
        raise MalformedLineError(f"no state is called {text!r}") from None


ROW_TEXTS = ("scenario", "variant", "device", "model", "witness", "native", "problem", "status")
ROW_LISTS = ("expected", "syncval", "unmodelled", "messages", "artifacts", "reasons", "excused", "model_disagreements")


def _check_row(row: dict[str, Any]) -> None:
    for key in ROW_TEXTS:
        member(row, key, str)
    for key in ROW_LISTS:
        _list_of(str, row, key)
    layers = member(row, "layers", dict)
    if not all(isinstance(each, str) for each in layers.values()):
        raise MalformedLineError("a member of 'layers' is not a text")
    disagreements = member(row, "layer_disagreements", dict)
    for version in disagreements:
        _list_of(str, disagreements, version)
    verdicts = member(row, "verdicts", dict)
    left = member(verdicts, "bytes", dict, {})
    member(left, "broken", str, "")
    for key in ("commands", "unknown"):
        _list_of(str, left | {key: member(left, key, list, [])}, key)
    if left:
        _ = member(left, "known", int), member(left, "total", int)
    native = member(verdicts, "native", dict, None)
    if native is not None:
        member(native, "relation", str, "")
        strategies = _objects(native, "strategies") if "strategies" in native else []
        for each in (native, *strategies):
            if not 0 <= member(each, "corrupt", int) <= member(each, "times", int):
                raise MalformedLineError("'native' has more corrupt runs than runs")
        for each in strategies:
            _ = member(each, "strategy", str), member(each, "reason", str, "")
