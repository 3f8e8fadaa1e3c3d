"""The order in which one queue can run the batches that a trace submits to several queues.

A batch that waits for a timeline value runs when the value has been signaled (`vkharness.trace.pending_batches`). Every
other batch stands where it was submitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from vkharness.commands.synchronization.semaphore import initial_value
from vkharness.spec.command_classes import QUEUE_WORK
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call
from vkharness.trace.pending_batches import PendingBatch, PendingBatches, Values
from vkharness.trace.submits import Operations, SubmitBatch, batches, cut

Part = TypeVar("Part")


class BatchScheduler(Generic[Part]):
    """Follows the calls of one trace that concern semaphores, and says which parts of submissions can run."""

    def __init__(self) -> None:
        self._releases: PendingBatches[Part] = PendingBatches()

    def submit(self, call: Call, parts: Sequence[Part]) -> Iterator[Part]:
        """Takes a submission (a submit or a vkQueueBindSparse), with one part for each of its batches in order. Returns
        the parts of all batches that can run now."""
        made = batches(call.args) or [SubmitBatch((), (), ())]
        held = [PendingBatch(_values(b.waits), _values(b.signals), part) for b, part in zip(made, parts, strict=False)]
        return self._releases.submit(call.args["queue"], held)

    def stop(self, queue: int) -> None:
        """The part of a queue that was given last does not end yet."""
        self._releases.stop(queue)

    def go_on(self, queue: int) -> Iterator[Part]:
        """That part has ended. Returns the parts that can run now."""
        return self._releases.go_on(queue)

    def follow(self, call: Call) -> Iterator[Part]:
        """Takes any other call, which may make a semaphore or signal one from the host. Returns the parts that can run
        now."""
        name = main_name(call.name)
        if name == "vkCreateSemaphore":
            self._releases.create(call.args["pSemaphore"], initial_value(call.args["pCreateInfo"]))
        elif name == "vkSignalSemaphore":
            info = call.args["pSignalInfo"]
            return self._releases.signal(info["semaphore"], info["value"])
        return iter(())


def _values(operations: Operations) -> Values:
    return tuple((each.semaphore, each.value) for each in operations)


def runnable(blocks: Sequence[Block]) -> Iterator[Block]:
    """The blocks of a trace as one queue can run them. A submission is cut into several where its batches have to
    wait."""
    order: BatchScheduler[tuple[Call, int]] = BatchScheduler()
    for block in blocks:
        if not isinstance(block, Call) or not block.succeeded:
            yield block
        elif main_name(block.name) in QUEUE_WORK:
            yield from _joined(order.submit(block, [(block, index) for index in range(_count(block))]))
        else:
            yield block
            yield from _joined(order.follow(block))


def all_run(blocks: Sequence[Block]) -> bool:
    """Whether something signals each timeline value that a batch waits for, so that the queues come to an end."""
    return sum(count for _, count in submissions(runnable(blocks))) == sum(count for _, count in submissions(blocks))


def submissions(blocks: Iterable[Block]) -> Iterator[tuple[int, int]]:
    """The number of the block of each submission, with that of its batches; one without a batch counts as one."""
    for block in blocks:
        if isinstance(block, Call) and block.succeeded and main_name(block.name) in QUEUE_WORK:
            yield block.index, _count(block)


def _count(call: Call) -> int:
    return max(1, len(batches(call.args)))


def _joined(parts: Iterator[tuple[Call, int]]) -> Iterator[Call]:
    """Joins neighbouring batches of one submission into one."""
    runs: list[tuple[Call, list[int]]] = []
    for call, batch in parts:
        if runs and runs[-1][0] is call:
            runs[-1][1].append(batch)
        else:
            runs.append((call, [batch]))
    for call, several in runs:
        yield cut(call, several[0], several[-1] + 1)
