"""Files that `pytest --vk-sync` keeps of tests that failed by a hazard: the trace, and pictures of its effect."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from vkharness.findings import Finding, UserError
from vkharness.trace.codec import TraceWriter

if TYPE_CHECKING:
    from vkharness.trace.calls import Block

MOST_TESTS, MOST_FINDINGS, SECONDS = 20, 16, 60.0
"""How many tests get pictures, how many findings of each are asked for them, and how long all of that may take."""


class FailedTest(NamedTuple):
    """A test that failed by hazards."""

    name: str
    """Its id."""
    findings: list[Finding]


class KeptTrace:
    """The trace of one process, on the disk from its first call on. It stays when a test failed by a hazard."""

    def __init__(self, path: Path | None) -> None:
        """None keeps nothing."""
        self.path = path
        self.blocks = 0
        self.failed: list[FailedTest] = []
        self._first = 1
        self._writer: TraceWriter | None = None
        self._is_over = path is None
        self._is_new = path is not None and not path.parent.exists()
        """Whether the folder was made for this run."""

    def write(self, block: Block) -> None:
        """Takes one block. Raises UserError where the folder takes no file."""
        self.blocks += 1
        if self._writer is None and self.path is not None and not self._is_over:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = TraceWriter(self.path)
        if self._writer is not None and not self._is_over:
            self._writer.write(block)

    def begin(self) -> None:
        """A test begins."""
        self._first = self.blocks + 1

    def keep(self, test: str, findings: Sequence[Finding]) -> str:
        """Keeps the trace, and says where the calls of the test that failed are in it."""
        if self._writer is None:
            return ""
        self.failed.append(FailedTest(test, [each for each in findings if each.counts]))
        shown = f"vkharness replay {self.path} --mode witness --artifacts DIR"
        return f"\ntrace: {self.path}, this test: calls {self._first} to {self.blocks}\nits pictures: {shown}"

    def close(self) -> None:
        """Puts the file in its place, or drops it. What is called from now on is in no trace."""
        if self._writer is not None and not self._is_over:
            if self.failed:
                self._writer.close()
            else:
                self._writer.abort()
        self._is_over = True

    def clear(self) -> None:
        """Removes the folder where the run made it and left nothing in it."""
        if self._is_new and self.path is not None:
            with suppress(OSError):
                self.path.parent.rmdir()

    def draw(self, devices: Sequence[str]) -> Iterator[str]:
        """Replays the closed trace for pictures of each test that failed, on the first of the drivers that a run on
        `devices` has; yields a line for each test."""
        if self.path is None or not self.failed:
            return
        from vkharness.device.drivers import chosen_drivers
        from vkharness.device.process import Worker

        try:
            driver = chosen_drivers(devices)[0]
        except UserError as error:
            yield f"no pictures of the tests that failed: {error}"
            return
        end = time.monotonic() + SECONDS
        folder, taken = self.path.with_suffix(""), set[str]()
        with Worker(driver) as worker:
            for number, (name, findings) in enumerate(self.failed, 1):
                worker.timeout = end - time.monotonic()
                if number > MOST_TESTS or worker.timeout <= 0:
                    yield f"{len(self.failed) - number + 1} more tests get no pictures; `vkharness replay` draws them"
                    return
                place = folder / _file_name(name, taken)
                job = {"trace": str(self.path), "mode": "witness", "device": driver.name, "artifacts": str(place)}
                yield f"{name}: {_pictures(worker, job, findings, place)}"


def _file_name(test: str, taken: set[str]) -> str:
    """A name for the folder of a test that no other test of this run has."""
    name = found = re.sub(r"[^\w.-]+", "-", test, flags=re.ASCII).strip("-")[-120:]
    while found in taken:
        found = f"{name}-{len(taken)}"
    taken.add(found)
    return found


def _pictures(worker: Any, job: dict[str, Any], findings: Sequence[Finding], place: Path) -> str:
    """Where the pictures of the first finding that changes bytes are, or why there are none."""
    from vkharness.device.process import Died, JobError

    left, reason = [each.to_dict() for each in islice(findings, MOST_FINDINGS)], "nothing to replay"
    while left:
        try:
            answer = worker.call("vkharness.judged_replay:replay_job", {**job, "finding": left})
        except (UserError, JobError) as error:
            return f"no pictures: {str(error).strip().splitlines()[-1]}"
        if isinstance(answer, Died):
            return f"no pictures: {job['device']} {answer.reason}"
        if answer["shown"]:
            return f"pictures in {place}"
        reason = answer["reason"]
        if not answer["tried"]:
            break
        del left[: answer["at"] + 1]
    return f"no pictures: {reason}"
