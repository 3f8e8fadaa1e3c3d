"""Where a program that waits for its verdicts is to stop, for a debugger that runs it."""

from __future__ import annotations

from collections.abc import Callable

from vkharness.findings import Finding
from vkharness.live.records import Kind, Record
from vkharness.trace.calls import Block


class Stops:
    """Says of the records of one process in which the program stops: in the call of a finding, and in a call by its
    number. The layer compares the number of the record that completes a call, and only the call's own thread stops."""

    def __init__(self, is_reason: Callable[[Finding], bool], block: int | None) -> None:
        """`is_reason` says of a finding whether it is one to stop; `block` is the number of a call, or of a write of
        the host, which stops in the call that publishes it."""
        self._is_reason, self._block = is_reason, block
        self._is_wanted = False
        self._threads: set[int] = set()
        """Threads that stop in the call that they make now."""

    def keeping(self, sink: Callable[[Block], None] | None) -> Callable[[Block], None]:
        """A sink that sees each block, and hands it on. No call of a stream with a sink waits to be judged."""

        def keep(block: Block) -> None:
            self._is_wanted |= block.index == self._block
            if sink is not None:
                sink(block)

        return keep

    def found(self, finding: Finding) -> None:
        """There is a finding in the record that is taken."""
        self._is_wanted |= self._is_reason(finding)

    def completes(self, record: Record) -> bool:
        """Whether a record that was taken completes a call in which the program stops."""
        if self._is_wanted:
            self._is_wanted = False
            self._threads.add(record.thread)
        if record.kind not in (Kind.CALL, Kind.RETURN) or record.thread not in self._threads:
            return False
        self._threads.remove(record.thread)
        return True
