"""Reads and writes of the commands of a trace that were observed on a driver, and the file that holds them.

The file is JSON Lines: a header, then one object for each observed piece of the trace. It is read with bounded memory,
and every complaint is one line, `file:line: what`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vkharness.findings import UserError
from vkharness.spans import Span
from vkharness.trace.calls import Block, block_name
from vkharness.trace.lines import Corrupt, read_objects

VERSION = 1
ALL = "all"
"""`Observation.shaders` of a piece of which every shader noted every access."""
MOST_RECORDS = 1_000_000
"""The most lines of a file that are read."""
MOST_SPANS = 1 << 12
"""The most ranges of one resource that a line holds. More of them become one that covers all."""

Spans = dict[int, tuple[Span, ...]]
"""Ranges by resource: bytes from the start of a buffer, texel blocks of an image in the order of
`vkharness.trace.resources.Image`."""


@dataclass(frozen=True, slots=True)
class ObservedCommand:
    """One execution of a command, as in `vkharness.replay.schedule.steps.Identity`."""

    call: int
    name: str
    submit: int
    batch: int
    position: int
    executed_by: tuple[int, int] = (0, 0)


@dataclass(slots=True)
class Observation:
    """Observed accesses of one piece of a trace: a command, or a whole render pass instance or query.

    `writes` and `reads` hold at least what was seen; a piece that is partly not observed says so in `notes`.
    """

    commands: tuple[ObservedCommand, ...]
    writes: Spans = field(default_factory=dict)
    reads: Spans = field(default_factory=dict)
    shader_writes: Spans = field(default_factory=dict)
    shader_reads: Spans = field(default_factory=dict)
    """Reads that instrumented shaders noted; `shader_writes` are their writes."""
    undeclared_writes: Spans = field(default_factory=dict)
    """Written, though `vkharness.commands` declares no write of it."""
    undeclared_reads: Spans = field(default_factory=dict)
    figures: tuple[tuple[str, int, int, int, int], ...] = ()
    """For each command: its name, addresses declared as written, how many of them were written, and the same for
    reads."""
    notes: tuple[str, ...] = ()
    shaders: str = ""
    """`ALL` when the notes of the shaders tell all that they access, else why they do not; empty without shaders."""
    problem: str = ""
    """Why nothing was seen: the driver died, the budget was spent."""

    @property
    def name(self) -> str:
        """The command, or the first and the number of the others."""
        first = self.commands[0].name if self.commands else "?"
        return first if len(self.commands) < 2 else f"{first} and {len(self.commands) - 1} more"

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return {
            "commands": [
                {
                    "call": each.call,
                    "name": each.name,
                    "submit": each.submit,
                    "batch": each.batch,
                    "position": each.position,
                    "executed_by": list(each.executed_by),
                }
                for each in self.commands
            ],
            **{name: _ranges(getattr(self, name)) for name in RANGES},
            "figures": [list(each) for each in self.figures],
            "notes": list(self.notes),
            "shaders": self.shaders,
            "problem": self.problem,
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Observation:
        """The inverse of `to_dict`. Raises `Corrupt` for anything else."""
        try:
            return cls(
                tuple(_command(each) for each in value["commands"]),
                **{name: _spans(value.get(name, []) if name in LATER else value[name]) for name in RANGES},
                figures=tuple(_figure(each) for each in value["figures"]),
                notes=tuple(_text(each) for each in value["notes"]),
                shaders=_text(value.get("shaders", NOT_INSTRUMENTED)),
                problem=_text(value["problem"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise Corrupt(f"malformed ({type(error).__name__}: {error})") from None


RANGES = ("writes", "reads", "shader_writes", "shader_reads", "undeclared_writes", "undeclared_reads")
"""Members of an `Observation` that hold ranges."""
LATER = ("shader_writes", "shader_reads")
"""Those that the first files of version 1 lack."""
NOT_INSTRUMENTED = "the shaders were not instrumented"
"""`Observation.shaders` of a piece in such a file."""


def _ranges(spans: Spans) -> list[dict[str, Any]]:
    return [
        {"resource": resource, "ranges": [[begin, end - begin] for begin, end in few(each)]}
        for resource, each in spans.items()
    ]


def few(spans: Iterable[Span]) -> list[Span]:
    """The spans, or one that covers them all where there are too many."""
    held = list(spans)
    return held if len(held) <= MOST_SPANS else [(held[0][0], held[-1][1])]


def _spans(value: Any) -> Spans:
    found: Spans = {}
    for each in _list(value, MOST_RECORDS):
        ranges = [[_number(number) for number in _list(pair, 2)] for pair in _list(each["ranges"], MOST_SPANS)]
        found[_number(each["resource"])] = tuple((offset, offset + size) for offset, size in ranges)
    return found


def _command(value: Any) -> ObservedCommand:
    first, second = (_number(each) for each in _list(value["executed_by"], 2))
    numbers = [_number(value[name]) for name in ("submit", "batch", "position")]
    return ObservedCommand(
        _number(value["call"]), _text(value["name"]), numbers[0], numbers[1], numbers[2], (first, second)
    )


def _figure(value: Any) -> tuple[str, int, int, int, int]:
    name, *numbers = _list(value, 5)
    written, seen, read, noticed = (_number(each) for each in numbers)
    return _text(name), written, seen, read, noticed


def _list(value: Any, most: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > most:
        raise ValueError(f"expected a list of at most {most}")
    return value


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 64:
        raise ValueError(f"expected a number from 0 to 2^64, found {str(value)[:40]!r}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, found {type(value).__name__}")
    return value


class TraceDigest:
    """A digest over the names of all calls of a trace, which tells one trace from another."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def follow(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """The same blocks, each taken into the digest as it passes."""
        for block in blocks:
            self._hash.update(f"{block.index} {block_name(block)}\n".encode())
            yield block

    @property
    def text(self) -> str:
        """The digest of what passed so far."""
        return self._hash.hexdigest()[:32]


@dataclass(slots=True)
class Observations:
    """All observations of one trace on one device."""

    trace: str
    """The `TraceDigest` of the trace."""
    device: str
    pieces: list[Observation] = field(default_factory=list)

    def lines(self) -> Iterator[dict[str, Any]]:
        """The objects of the file, in order."""
        yield {"vkharness_observations": VERSION, "trace": self.trace, "device": self.device}
        for piece in self.pieces:
            yield piece.to_dict()


def read_observations(path: Path) -> Observations:
    """Reads a file of observations. Raises `UserError`, one line, for anything that is none."""
    found: Observations | None = None
    notes: list[str] = []
    for number, value in read_objects(path, notes):
        try:
            if found is None:
                found = _header(value)
            elif len(found.pieces) >= MOST_RECORDS:
                raise Corrupt(f"more than {MOST_RECORDS} lines")
            else:
                found.pieces.append(Observation.from_dict(value))
        except Corrupt as error:
            raise UserError(f"{path}:{number}: {error}") from None
    assert found is not None, "an empty file is refused before"
    if notes:
        raise UserError(f"{path}: the observations end in the middle of a line")
    return found


def _header(value: dict[str, Any]) -> Observations:
    if "vkharness_observations" not in value:
        raise Corrupt("no observations: `vkharness observe` writes them")
    if value["vkharness_observations"] != VERSION:
        raise Corrupt(f"observations of version {value['vkharness_observations']!r}, not {VERSION}")
    try:
        return Observations(_text(value["trace"]), _text(value["device"]))
    except (KeyError, TypeError) as error:
        raise Corrupt(f"malformed ({type(error).__name__}: {error})") from None
