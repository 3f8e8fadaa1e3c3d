"""Files and exit code of a command after a run, in a form in which two runs can be compared, and their faults."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hunts.kills.killed_commands import STREAMS, TEMPORARY, KilledCommand
from hunts.kills.left_streams import lines_of_stream
from vkharness.temporary import PREFIX

PARTIAL = ".partial"
"""In the names of files and folders that are being written."""
_GROWING = ("out.jsonl", "results/results.jsonl")
"""Files of commands that go on after a kill."""
_CHANGES = ("seconds", "slowest", "largest", "started", "lines", "python")
"""Members of their lines that differ from run to run."""
_OF_THE_RUN = ("run", "resume", "end")
"""Kinds of lines that are about the run, and not about what it has done."""
_CHANGING = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.+]\S+)?|\b\d+\.\d+(?:e-?\d+)?\b|(\bprocess[ \":]+)\d+|\b\d{14,15}\b"
    r'|(?<="ppData":)\d+'
)
"""Times, durations, numbers of processes, addresses: a program that is linked to a fixed place has short ones. A 0
stands for each of them, so that JSON is JSON still."""


class Left(NamedTuple):
    """The state that a command left."""

    code: int
    files: dict[str, str]
    """The content of each file by its path below the folder, without what differs from run to run."""
    lines: Counter[str]
    """Of files that grow: what is done."""
    temporary: int
    """Temporary folders of ours, also those beside what is written."""


def left_in(folder: Path, code: int, command: KilledCommand) -> Left:
    """Reads the state of a folder after a run with that exit code."""
    files, lines = {}, Counter[str]()
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if not path.is_file() or name.startswith((f"{TEMPORARY}/", PREFIX, ".")) or "__pycache__" in name:
            continue
        data = path.read_bytes()
        if command.writes_stream and name.startswith(f"{STREAMS}/"):
            continue
        if command.grows and name in _GROWING:
            files[name] = ""
            lines.update(_lines_of(data, folder))
        else:
            files[name] = _normal(data, folder)
    if command.writes_stream:
        lines.update(_normal(line.encode(), folder) for line in lines_of_stream(folder / STREAMS))
    places = (folder, folder / TEMPORARY)
    return Left(code, files, lines, sum(1 for place in places for _ in place.glob(f"{PREFIX}*")))


def _lines_of(data: bytes, folder: Path) -> Iterator[str]:
    """The whole lines of a file that grows; a last one that was cut off ends in no newline."""
    for line in data.split(b"\n")[:-1]:
        value = json.loads(line)
        if value.get("kind") not in _OF_THE_RUN and "plan" not in value:
            yield _normal(json.dumps(_stripped(value)).encode(), folder)


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _stripped(each) for key, each in value.items() if key not in _CHANGES}
    return [_stripped(each) for each in value] if isinstance(value, list) else value


def _normal(data: bytes, folder: Path) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data.hex()
    return _CHANGING.sub(lambda found: f"{found[1] or ''}0", text.replace(str(folder), "FOLDER"))


def faults_of_kill(left: Left, undisturbed: Left, before: dict[str, str], command: KilledCommand) -> Iterator[str]:
    """Yields the faults right after a kill: a file that is neither as it was nor whole, something done that is none.

    A file that is being written has a name of its own, and ends nowhere in particular.
    """
    for name, text in left.files.items():
        if PARTIAL not in name and text not in (undisturbed.files.get(name), before.get(name)):
            if name in undisturbed.files and not (command.tells and _is_whole(name, text)):
                yield f"{_kind(name)} is there and is not whole"
            elif name not in undisturbed.files and command.repeats:
                yield f"{_kind(name)} is there, which no run writes"
    for name in before.keys() - left.files.keys():
        yield f"{_kind(name)} is gone"
    for line in left.lines - undisturbed.lines if command.repeats else ():
        yield f"a line that no run writes: {line[:80]}"


def faults_of_next(left: Left, undisturbed: Left, killed: Left, command: KilledCommand) -> Iterator[str]:
    """Yields the faults after the run that goes on: it must leave the state of an undisturbed one, and nothing else."""
    if left.code not in (undisturbed.code, command.done):
        yield f"the next run ends with {left.code}, not with {undisturbed.code}"
    if left.temporary:
        yield "the next run leaves temporary folders"
    if killed.lines - left.lines:
        yield "the next run loses what was done"
    if not command.repeats:
        return
    if left.lines != undisturbed.lines:
        yield "the next run has done something else"
    for name in undisturbed.files.keys() | left.files.keys():
        if name not in left.files:
            yield f"the next run leaves no {_kind(name)}"
        elif PARTIAL in name:
            yield f"the next run leaves {_kind(name)}"
        elif left.files[name] != undisturbed.files.get(name):
            yield f"the next run leaves another {_kind(name)}"


def _is_whole(name: str, text: str) -> bool:
    """Whether a file of JSON, or of lines of JSON, has its end."""
    try:
        for each in text.splitlines() if name.endswith(".jsonl") else (text,):
            json.loads(each)
    except ValueError:
        return False
    return text.endswith("\n")


def _kind(name: str) -> str:
    """The name of a file without what differs from run to run."""
    return re.sub(r"(\.partial-)\S+|[0-9a-f]{16,}", r"\1*", name)
