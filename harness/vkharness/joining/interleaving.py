"""In which order the calls of two processes are put.

Each process keeps its order. A call waits for what it needs from the other process: an import for its export, a wait
for the signal that it meets. A binary semaphore is signaled again when the signal before was waited for. Apart from
that the order is free, as nothing in the traces says more.

In the joined trace both processes know of the work for which the host of one waits, since it has one host. So waits of
the host come as late as they can: then they order as little as possible of the other process.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from vkharness.spec.command_classes import HOST_POLLS, HOST_WAITS, QUEUE_WORK
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call
from vkharness.trace.submits import batches


class Signals:
    """How often each binary payload was signaled and waited for so far, which value each timeline has, and which fences
    have a signal."""

    def __init__(self, same: Mapping[int, int], timelines: Collection[int]) -> None:
        """`same` has the object of which each imported one has the payload for good. `timelines` are no binary
        semaphores."""
        self._same = same
        self._shared = {*same, *same.values()}
        self._timelines = timelines
        self._made: dict[int, int] = {}
        self._met: dict[int, int] = {}
        self._reached: dict[int, int] = {}
        self._fences: set[int] = set()

    def is_shared(self, semaphore: int) -> bool:
        """Whether both processes have the payload of a binary semaphore."""
        return semaphore in self._shared and semaphore not in self._timelines

    def pending(self, semaphore: int) -> int:
        """Signals of a payload that nobody waited for."""
        payload = self._same.get(semaphore, semaphore)
        return self._made.get(payload, 0) - self._met.get(payload, 0)

    def follow(self, call: Call) -> None:
        """Takes the next call of the joined trace that succeeded."""
        name, args = main_name(call.name), call.args
        if name in QUEUE_WORK:
            for batch in batches(args):
                for operations, counted in ((batch.waits, self._met), (batch.signals, self._made)):
                    for each in operations:
                        payload = self._same.get(each.semaphore, each.semaphore)
                        counted[payload] = counted.get(payload, 0) + 1
                for each in batch.signals:
                    self._reach(each.semaphore, each.value)
            self._fences.add(self._same.get(args.get("fence", 0), args.get("fence", 0)))
        elif name == "vkSignalSemaphore":
            self._reach(args["pSignalInfo"]["semaphore"], args["pSignalInfo"]["value"])
        elif name == "vkResetFences":
            self._fences.difference_update(self._same.get(each, each) for each in args["pFences"] or ())

    def _reach(self, semaphore: int, value: int) -> None:
        payload = self._same.get(semaphore, semaphore)
        self._reached[payload] = max(value, self._reached.get(payload, 0))

    def is_early(self, call: Call) -> bool:
        """Whether the host waits for a shared value or fence that nothing has signaled so far."""
        name, args = main_name(call.name), call.args
        if name == "vkWaitForFences":
            fences = [each for each in args["pFences"] or () if each in self._shared]
        else:
            fences = [args["fence"]] if args.get("fence") in self._shared else []
        values = [(args["semaphore"], args["pValue"])] if name == "vkGetSemaphoreCounterValue" else []
        if name == "vkWaitSemaphores":
            info = args["pWaitInfo"]
            values = list(zip(info["pSemaphores"] or (), info["pValues"] or (), strict=False))
        return any(self._same.get(each, each) not in self._fences for each in fences) or any(
            self._reached.get(self._same.get(each, each), 0) < (value or 0)
            for each, value in values
            if each in self._shared
        )


class Side:
    """One process: its calls, and how far they are taken."""

    def __init__(self, blocks: Sequence[Block], needs: Mapping[int, tuple[int, int]]) -> None:
        self.blocks, self.needs = blocks, needs
        self.at = 0
        self.work = [
            at for at, each in enumerate(blocks) if isinstance(each, Call) and main_name(each.name) in QUEUE_WORK
        ]
        self._next_work = 0

    @property
    def is_over(self) -> bool:
        """Whether all its calls are taken."""
        return self.at >= len(self.blocks)

    def next_submit(self) -> Call | None:
        """The next call that waits for semaphores or signals them; None behind the last one."""
        while self._next_work < len(self.work) and self.work[self._next_work] < self.at:
            self._next_work += 1
        if self._next_work == len(self.work):
            return None
        call = self.blocks[self.work[self._next_work]]
        return call if isinstance(call, Call) else None


def interleaved(
    traces: Sequence[Sequence[Block]],
    needs: Sequence[Mapping[int, tuple[int, int]]],
    same: Mapping[int, int],
    timelines: Collection[int],
) -> list[Block]:
    """The blocks of two traces in one order.

    `needs` has, for the imports of each trace, the export: its trace and its block. `same` has the exported semaphore
    or fence of each imported one.
    """
    sides = [Side(blocks, needed) for blocks, needed in zip(traces, needs, strict=True)]
    signals, taken = Signals(same, timelines), [0, 0]
    made: list[Block] = []
    current = 0
    while not all(side.is_over for side in sides):
        ranked = sorted(
            ((*_rank(sides[at], signals, taken), at != current), at) for at in (0, 1) if not sides[at].is_over
        )
        current = ranked[0][1]
        side = sides[current]
        block = side.blocks[side.at]
        side.at += 1
        taken[current] = block.index
        if isinstance(block, Call) and block.succeeded:
            signals.follow(block)
        made.append(block)
    return made


def _rank(side: Side, signals: Signals, taken: Sequence[int]) -> tuple[int, int]:
    """How bad it is to take the next block of a side now: what it needs is missing, or it can wait."""
    block = side.blocks[side.at]
    if not isinstance(block, Call):
        return (0, 0)
    needed = side.needs.get(block.index)
    if needed is not None and taken[needed[0]] < needed[1]:
        return (3, 0)
    name = main_name(block.name)
    if name in QUEUE_WORK:
        return (_missing(block, signals), 0)
    if name in HOST_WAITS or name in HOST_POLLS:
        if block.result == 0 and signals.is_early(block):
            return (3, 0)
        following = side.next_submit()
        return (0, 1 + (0 if following is None else _missing(following, signals)))
    return (0, 0)


def _missing(call: Call, signals: Signals) -> int:
    """2 where a wait has no signal yet, 1 where a signal would be the second one that nobody waited for, else 0."""
    signaled: dict[int, int] = {}
    worst = 0
    for batch in batches(call.args):
        for wait in batch.waits:
            if signals.is_shared(wait.semaphore):
                left = signals.pending(wait.semaphore) + signaled.get(wait.semaphore, 0)
                worst = max(worst, 0 if left > 0 else 2)
        for signal in batch.signals:
            if signals.is_shared(signal.semaphore):
                worst = max(worst, 1 if signals.pending(signal.semaphore) > 0 else 0)
                signaled[signal.semaphore] = signaled.get(signal.semaphore, 0) + 1
    return worst
