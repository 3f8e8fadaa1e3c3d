"""Submissions that the host does not know to be done, and what they may write.

So that bytes the device wrote are not taken for host writes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from vkharness.record.mapped_memory import Range
from vkharness.trace.submits import batches

Ranges = dict[int, list[Range]]
"""Memory id to ranges of it."""


@dataclass(slots=True)
class UnfinishedSubmit:
    """One vkQueueSubmit*: its place in its queue, what it may write, and what tells the host that it is done."""

    queue: int
    serial: int
    writes: Ranges
    fence: int
    signals: list[tuple[int, int]]
    """(semaphore, value); value 0 for binary semaphores."""


@dataclass(slots=True)
class DeviceWork:
    """The submitted work that is not known to be complete, by queue and in order."""

    pending: list[UnfinishedSubmit] = field(default_factory=list)
    serial: int = 0

    def submit(self, args: dict[str, Any], may_write: Callable[[Iterable[int]], Ranges]) -> UnfinishedSubmit:
        """Takes a submission about to be forwarded: everything in it counts as pending from now on.

        `may_write` gives what executing command buffers may write.
        """
        self.serial += 1
        made = batches(args)
        signals = [(each.semaphore, each.value) for batch in made for each in batch.signals]
        writes = may_write(dict.fromkeys(id for batch in made for id in batch.command_buffers))
        submission = UnfinishedSubmit(args["queue"], self.serial, writes, args.get("fence") or 0, signals)
        self.pending.append(submission)
        return submission

    def cancel(self, submission: UnfinishedSubmit) -> None:
        """Forgets a submission that was refused."""
        self.pending = [one for one in self.pending if one is not submission]

    def finish(self, done: Callable[[UnfinishedSubmit], bool]) -> None:
        """Retires the submissions that `done` names, and earlier ones of their queues."""
        upto: dict[int, int] = {}
        for one in self.pending:
            if done(one):
                upto[one.queue] = max(one.serial, upto.get(one.queue, 0))
        self.pending = [one for one in self.pending if one.serial > upto.get(one.queue, 0)]

    def pending_writes(self, memories: Collection[int]) -> Ranges:
        """The ranges of some memory objects that work for which the host has not waited may write."""
        found: Ranges = {}
        for one in self.pending:
            fewer, more = sorted((one.writes, memories), key=len)
            for memory in fewer:
                if memory in more:
                    found.setdefault(memory, []).extend(one.writes[memory])
        return found
