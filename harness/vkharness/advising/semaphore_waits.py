"""Waits of submits for semaphores, left out with the signals that nothing else waits for.

A wait is asked about only where that leaves the lifetimes of objects alone: a host that waits for the later batch may
rely on the earlier one being complete. On one queue a fence or a timeline says so without the semaphore, too ("Signal
Operation Order"). Of two queues the submit that signals has to have a fence of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from vkharness.advising.views import Edits
from vkharness.advising.written import SUBMIT, Written
from vkharness.reduction.paths import Path, without_elements
from vkharness.reduction.structure import Structure, semaphore_operations
from vkharness.spec.command_classes import is_submit
from vkharness.spec.enums import VkStructureType
from vkharness.trace.calls import Call
from vkharness.trace.chain import chained


class SemaphoreWaits:
    """The waits for semaphores of a trace whose blocks are numbered from 1, and what was left out of them."""

    def __init__(self, structure: Structure, origin: Callable[[int], int], index: Callable[[int], int]) -> None:
        """`origin` gives the index that a block has in the trace that was read, and `index` is its inverse."""
        self._structure = structure
        self._origin, self._index = origin, index
        self._cut: dict[Path, int] = {}

    def of(self, written: Written) -> list[Path]:
        """The places of the waits in the arguments of a submit, the last one first."""
        if written.kind != SUBMIT:
            return []
        waits, _ = semaphore_operations(written.call)
        return [path[1:] for path, _, _ in reversed(waits)]

    def without(self, written: Written, place: Path, now: Callable[[int], Call | None]) -> Edits | None:
        """The edits after which no submit waits there; None where a wait is for an acquire or for the host, or has to
        stay. `now` gives the calls as they are."""
        edits: dict[int, Call | None] = {}
        for path in self._pieces(written, place):
            if path is None or path[-1] >= self._cut.get(self._array(path), 1 << 30):  # type: ignore[operator]
                return None
            origin = self._origin(int(path[0]))
            call = edits.get(origin) or now(origin)
            if call is None or _is_of_a_group(call, path):
                return None
            edits[origin] = without_elements(call, [path])
        return edits

    def note(self, written: Written, place: Path) -> None:
        """Takes in that this wait was left out: only what stands before it keeps its place."""
        for path in self._pieces(written, place):
            if path is not None:
                self._cut[self._array(path)] = int(path[-1])

    @staticmethod
    def _array(path: Path) -> Path:
        return path[:-1]

    def signals(self, written: Written, place: Path) -> list[int]:
        """The calls whose signals go with the waits."""
        mine = set(written.origins)
        calls = (self._origin(int(path[0])) for path in self._pieces(written, place) if path is not None)
        return [each for each in dict.fromkeys(calls) if each not in mine]

    def _pieces(self, written: Written, place: Path) -> Iterator[Path | None]:
        """The waits, and the signals that go with them; None for one that has to stay."""
        for origin in written.origins:
            wait: Path = (self._index(origin), *place)
            signal = self._structure.partners.get(wait)
            yield wait if signal is not None and self._may_go(wait, signal) else None
            if signal is not None and self._structure.binary.get(signal) == wait:
                yield signal

    def _may_go(self, wait: Path, signal: Path) -> bool:
        early, late = self._structure.call(int(signal[0])), self._structure.call(int(wait[0]))
        if not (is_submit(early.name) and is_submit(late.name)):
            return False
        return early.args["queue"] == late.args["queue"] or bool(early.args["fence"])


def _is_of_a_group(call: Call, path: Path) -> bool:
    """Whether the semaphores of a batch have device indices beside them."""
    batch = call.args[str(path[1])][path[2]]
    return chained(batch, VkStructureType.DEVICE_GROUP_SUBMIT_INFO) is not None
