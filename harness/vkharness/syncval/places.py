"""Who made an access, and when, as one number.

No rule asks which command made an access, and a program makes millions. So a range keeps a *place number* for each
access: the number of the batch that made it, and which command of the batch that was, in the order of execution, those
of secondary command buffers included. `PlaceTable` makes the `Place` of a number, where a finding names it.

A batch is what a queue executes at once. A recording counts as one, and so does each access of the host and of the
presentation engine. A batch is kept while a range refers to it: `keep` is told of all such numbers now and then. Of a
batch of which few commands are left, their places are kept instead of its commands.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from vkharness.findings import Place
from vkharness.syncval.race import NEVER, BatchIndex, batch_index_of
from vkharness.trace.effects import Command

COMMAND_BITS = 32
"""The lower bits of a place number: which command of the batch."""
COMMANDS = (1 << COMMAND_BITS) - 1
PLACES_A_BATCH = 16
"""How many place numbers may be visited for each batch that came, to find out which batches are still referred to."""


class Segment(NamedTuple):
    """Commands of one command buffer that a batch executed without a secondary command buffer between."""

    commands: Sequence[Command]
    offset: int
    """Where they begin in `commands`."""
    buffer: int
    position: int
    executed_by: tuple[int, int] | None


class PlacedBatch:
    """One batch: its queue, when it was submitted, and its commands as far as they were executed."""

    __slots__ = ("_kept", "_segments", "_starts", "first", "next", "queue", "submitted", "tag")

    def __init__(self, number: int, queue: int, tag: BatchIndex, submitted: bool) -> None:
        """`submitted`: not a recording, whose commands were not submitted."""
        self.first = self.next = number << COMMAND_BITS
        """The place numbers of its first command, and of the one that is executed next."""
        self.queue, self.tag, self.submitted = queue, tag, submitted
        self._starts: list[int] = []
        self._segments: list[Segment] = []
        self._kept: dict[int, Place] | None = None
        """The places that ranges refer to, once those are few."""

    @property
    def number(self) -> int:
        """Its own."""
        return self.first >> COMMAND_BITS

    def enter(
        self, buffer: int, position: int, commands: Sequence[Command], executed_by: tuple[int, int] | None = None
    ) -> None:
        """The commands of a command buffer come next, in order. `position` is that of the primary in the batch."""
        self._add(Segment(commands, 0, buffer, position, executed_by))

    def execute(self, buffer: int, position: int, commands: Sequence[Command], executed_by: int) -> None:
        """The commands of a secondary come next: that at `position` of those that the command `executed_by` (a place
        number) executes. `resume` follows."""
        outer, at = self._found(executed_by)
        self.enter(buffer, outer.position, commands, (outer.commands[at].call, position))

    def resume(self, number: int) -> None:
        """Goes on behind the command with this place number: the next command follows it."""
        outer, at = self._found(number)
        self._add(outer._replace(offset=at + 1))

    def _add(self, segment: Segment) -> None:
        if self._starts and self._starts[-1] == self.next:
            self._segments[-1] = segment
        else:
            self._starts.append(self.next)
            self._segments.append(segment)

    def _found(self, number: int) -> tuple[Segment, int]:
        """The segment with a command, and where the command is in the commands of that."""
        at = bisect_right(self._starts, number) - 1
        segment = self._segments[at]
        return segment, number - self._starts[at] + segment.offset

    def place(self, number: int) -> Place:
        """Where a command stands."""
        if self._kept is not None:
            return self._kept[number]
        segment, at = self._found(number)
        command = segment.commands[at]
        place = Place(command.call, command.name, command.site, segment.buffer, executed_by=segment.executed_by)
        if self.submitted:
            place.submit, place.batch = self.tag
            place.position, place.queue = segment.position, self.queue
        return place

    def is_complete(self, clock: Mapping[int, BatchIndex]) -> bool:
        """Whether it is complete where a clock says up to which batch of each queue that is so."""
        return self.tag <= clock.get(self.queue, NEVER)

    def keep(self, numbers: set[int]) -> None:
        """Lets go of its commands where few of them are still asked for."""
        if self._kept is not None:
            self._kept = {number: self._kept[number] for number in numbers}
        elif 4 * len(numbers) < self.next - self.first:
            self._kept = {number: self.place(number) for number in numbers}
            self._starts, self._segments = [], []

    @classmethod
    def of(cls, number: int, place: Place) -> PlacedBatch:
        """One access that no command made."""
        made = cls(number, place.queue or 0, batch_index_of(place), True)
        made._kept = {made.first: place}
        made.next += 1
        return made


class PlaceHolder(Protocol):
    """A holder of place numbers: `range_store.RangeStore`."""

    def add_batch(self, number: int, queue: int, tag: BatchIndex, over: bool) -> None:
        """A batch may be referred to; `over` where it is known to be complete."""

    def finish_batch(self, number: int) -> None:
        """A batch is over."""

    def keep_batches(self, numbers: Sequence[int]) -> None:
        """No other batch is referred to."""

    def place_numbers(self) -> list[int]:
        """Those that ranges refer to."""


class PlaceTable:
    """The batches of a context that ranges may refer to.

    >>> from vkharness.syncval.range_store import PythonRangeStore
    >>> places = PlaceTable(PythonRangeStore())
    >>> number = places.single(Place(7, "host write", None))
    >>> places.place(number).command
    'host write'
    """

    def __init__(self, holder: PlaceHolder) -> None:
        """`holder` has the ranges that refer to place numbers."""
        self._holder = holder
        self.retired: dict[int, BatchIndex] = {}
        """By queue: what was submitted up to this tag is known by the host to be complete, and to all that is
        judged from now on."""
        self._batches: dict[int, PlacedBatch] = {}
        self._pending: dict[int, deque[PlacedBatch]] = {}
        """By queue, those that are not over, in the order of their tags."""
        self._last: dict[int, PlacedBatch] = {}
        """By queue, the batch that it was given last."""
        self._number = 0
        self._limit = 0
        self._new = 0

    def __len__(self) -> int:
        return len(self._batches)

    def open(self, queue: int, tag: BatchIndex) -> PlacedBatch:
        """A batch that a queue executes next."""
        made = self._last[queue] = self._added(PlacedBatch(self._number, queue, tag, True))
        return made

    def recording(self, command_buffer: int, commands: Sequence[Command]) -> PlacedBatch:
        """The batch of a recording; `commands` may grow."""
        made = self._added(PlacedBatch(self._number, 0, (0, 0), False))
        made.enter(command_buffer, 0, commands)
        return made

    def single(self, place: Place) -> int:
        """The place number of an access that no command made."""
        return self._added(PlacedBatch.of(self._number, place)).first

    def _added(self, batch: PlacedBatch) -> PlacedBatch:
        if self._new > self._limit:
            self.keep(self._holder.place_numbers())
        self._batches[batch.number] = batch
        over = batch.is_complete(self.retired)
        self._holder.add_batch(batch.number, batch.queue, batch.tag, over)
        if not over:
            self._pending.setdefault(batch.queue, deque()).append(batch)
        self._number += 1
        self._new += 1
        return batch

    def batch(self, number: int) -> PlacedBatch:
        """The batch of a place number."""
        return self._batches[number >> COMMAND_BITS]

    def place(self, number: int) -> Place:
        """Returns the place of a place number: the command and where it was executed."""
        return self._batches[number >> COMMAND_BITS].place(number)

    def retire(self, queue: int, tag: BatchIndex) -> None:
        """Ends the batches that a queue was given up to this tag."""
        self.retired[queue] = tag
        pending = self._pending.get(queue)
        while pending and pending[0].tag <= tag:
            self._holder.finish_batch(pending.popleft().number)
        if pending is not None and not pending:
            del self._pending[queue]

    def keep(self, numbers: Iterable[int]) -> None:
        """Lets go of batches but those of these place numbers, the last one of each queue, which may be going on, and
        the last of all."""
        used: dict[int, set[int]] = {}
        asked_for = 0
        for number in numbers:
            asked_for += 1
            used.setdefault(number >> COMMAND_BITS, set()).add(number)
        goes_on = {batch.number for batch in self._last.values()} | {self._number - 1}
        for each, asked in used.items():
            if each not in goes_on:
                self._batches[each].keep(asked)
        self._batches = {each: batch for each, batch in self._batches.items() if each in used or each in goes_on}
        self._holder.keep_batches(list(self._batches))
        pending = {
            queue: deque(it for it in held if it.number in self._batches) for queue, held in self._pending.items()
        }
        self._pending = {queue: held for queue, held in pending.items() if held}
        self._new, self._limit = 0, asked_for // PLACES_A_BATCH
