"""A process that writes each kind of file, and is killed before each of its operations on them, one after the other.

`python -m tests.support.killed_writers FOLDER` prints how many operations there were, how many were half done, and what
is wrong, a line each. It has a process of its own, since who traces may have no other children.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from hunts.kills.tracing import Ending, Operation, Tracees, run_traced
from vkharness.findings import UserError
from vkharness.planned_file import Known, PlannedFile, PlannedWork
from vkharness.results.read_results import read_results
from vkharness.results.result_file import ResultFile
from vkharness.results.result_lines import RunEnd, RunHeader
from vkharness.trace.calls import CUT_OFF, HostRead, block_name
from vkharness.trace.codec import TraceWriter, load
from vkharness.whole_file import write_whole

WORK = PlannedWork("vkharness test", 1, "test")
TEXT = "what a file has, " * 8
ROOT = Path(__file__).resolve().parents[2]


def write_all(generation: int) -> None:
    """Writes each kind of file into the current folder. The generation is in what is written."""
    write_whole(Path("text.json"), json.dumps([generation, TEXT]))
    with TraceWriter(Path("t.jsonl")) as writer:
        for index in range(1, 4):
            writer.write(HostRead(index, 5, generation, 256))
    results = ResultFile(Path("results.jsonl"))
    results.begin(RunHeader(str(generation), "", ""))
    results.resume(TEXT)
    results.end(RunEnd(generation, 0.5, 0))
    with PlannedFile(Path("planned.jsonl"), WORK, {"a": 1}, lambda known: None) as file:
        file.append({"generation": generation})


def faults(folder: Path) -> Iterator[str]:
    """Yields the faults in the files of a writer that was killed, and of which an earlier one came to its end."""
    number, text = json.loads((folder / "text.json").read_text())
    if number not in (1, 2) or text != TEXT:
        yield "text.json is not whole"
    blocks = load(folder / "t.jsonl")
    if block_name(blocks[-1]) == CUT_OFF or len(blocks) != 3:
        yield "t.jsonl is not whole"
    results = read_results(folder / "results.jsonl")
    if results.header.harness == "1" and results.end is None:
        yield "results.jsonl is neither that of the earlier run nor that of the later one"
    known: list[Any] = []
    with PlannedFile(folder / "planned.jsonl", WORK, {"a": 1}, known.append):
        if not isinstance(known[0], Known) or {"generation": 1} not in known[0].lines:
            yield "planned.jsonl has lost what was done"
    for part in folder.glob("t.jsonl.partial-*"):
        with suppress(UserError):  # nothing of it was on the disk
            written = load(part)
            if block_name(written[-1]) != CUT_OFF and len(written) != 3:
                yield "a part of a trace is taken for a whole one"


def left_over(folder: Path) -> set[str]:
    """Files that no writer wants."""
    return {path.name for path in folder.iterdir()} - {"text.json", "t.jsonl", "results.jsonl", "planned.jsonl"}


def killed_at(number: int, half: bool, folder: Path) -> Ending:
    """The end of a second writer in a folder that is killed there. A number of 0 lets it run to its end."""

    def at(operation: Operation, tracees: Tracees) -> bool:
        if operation.number != number:
            return False
        if half and operation.name == "write":
            tracees.write_half()
        tracees.kill(tracees.root)
        return True

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.chdir(folder)
    write_all(1)
    command = [sys.executable, "-c", "from tests.support.killed_writers import write_all; write_all(2)"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/harness", "PYTHONDONTWRITEBYTECODE": "1"}
    return run_traced(command, folder, environment, folder.with_name("said.txt"), at, 10.0)


def main(folder: Path) -> None:
    """Kills the writer at each point."""
    operations = killed_at(0, False, folder).operations
    halves = 0
    for operation in operations:
        half = operation.name == "write"
        halves += half
        ending = killed_at(operation.number, half, folder)
        found = [*faults(folder), *(f"left: {each}" for each in ending.orphans)]
        write_all(3)
        found += [f"{name} is there for ever" for name in left_over(folder)]
        for each in found:
            print(f"{operation.name} {operation.path}: {each}")
    print(len(operations), "operations,", halves, "half done")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
