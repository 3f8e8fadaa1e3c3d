"""How the executions of the two accesses of a hazard lie to each other on a device, apart from stages and barriers.

A run as recorded can show a hazard only where the device may run both accesses at once or in the other order. Many
devices put more in order than the specification asks of them: transfers of one queue, or the whole batch that waits for
a semaphore. `bench/gpu_order.py` shows with plain programs which. So hazards are counted by relation, and what a device
never shows of one relation is a limit of the device.

The batches of a trace form a graph: a batch comes after the one before it on its queue, after the batches whose signals
it waits for, and after those that the host waited for before it submitted it. Stages play no part in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import pairwise
from typing import Any

from vkharness.commands.synchronization.semaphore import initial_value
from vkharness.findings import Finding, UserError
from vkharness.replay.objects.queue_mapping import QueueMapping, TraceQueues
from vkharness.replay.objects.recreation import as_wait
from vkharness.spec.command_classes import QUEUE_WORK
from vkharness.spec.enums import VkResult, VkSemaphoreWait
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call, reading
from vkharness.trace.submits import SubmitBatch, batches

BatchPlace = tuple[int, int]
"""The block index of a submit, and which of its batches."""


class Relation(StrEnum):
    """From what devices put in order by themselves to what nothing can put in order."""

    HOST = "host"
    """One of both is an access of the host or of the presentation engine."""
    SUBMIT = "one submit"
    QUEUE = "one queue"
    """Two submits or batches of one queue."""
    FAMILY = "one family"
    """Two queues of one family of the device."""
    AFTER = "families in order"
    """Two families, and semaphores or the host put the batches in order, if not the two accesses."""
    APART = "families apart"
    """Two families, and nothing puts the batches in order."""

    @property
    def says(self) -> str:
        """The relation in a sentence."""
        return _SAYS[self]


_SAYS = {
    Relation.HOST: "One access is the host's or the presentation engine's.",
    Relation.SUBMIT: "Both accesses are in one submit.",
    Relation.QUEUE: "Both accesses are in submits or batches of one queue.",
    Relation.FAMILY: "The accesses are on two queues of one family.",
    Relation.AFTER: "The accesses are on two families, and one batch waits for the other by semaphores or by the host.",
    Relation.APART: "The accesses are on two families, and no batch waits for the other.",
}


def relation(
    graph: BatchGraph, queues: TraceQueues, findings: Iterable[Finding], mapping: QueueMapping
) -> Relation | None:
    """The relation of the hazards of a trace that devices put in order least, on a device with the queues of `mapping`.
    None without a hazard between two accesses, or where the trace obtains no queue of one."""
    found = {_one(graph, queues, mapping, each) for each in findings if each.hazard.is_between_accesses}
    return max((each for each in found if each is not None), key=list(Relation).index, default=None)


def _one(graph: BatchGraph, queues: TraceQueues, mapping: QueueMapping, finding: Finding) -> Relation | None:
    place, prior = finding.place, finding.prior
    if not (place.command.startswith("vkCmd") and prior.command.startswith("vkCmd")):
        return Relation.HOST
    if place.submit is None or prior.submit is None or place.submit == prior.submit:
        return Relation.SUBMIT
    there = [queues.of_queue.get(graph.queue(each)) for each in (place.submit, prior.submit)]
    if None in there:
        return None
    queue, other = (mapping.queue(each) for each in there if each is not None)
    if queue == other:
        return Relation.QUEUE
    if queue[0] == other[0]:
        return Relation.FAMILY
    waits = graph.in_order((prior.submit, prior.batch), (place.submit, place.batch))
    return Relation.AFTER if waits else Relation.APART


class EndlessRunError(UserError):
    """A stream that a device may never end, in an order that it may choose."""

    def __init__(self, reason: str) -> None:
        """`reason` says why, in words."""
        super().__init__(f"not run: {reason}, and what waits for it could wait for ever")


class BatchGraph:
    """Which batches of a trace cannot begin before which others are complete, stages apart.

    Raises `UserError` for a malformed call.
    """

    def __init__(self, blocks: Iterable[Block]) -> None:
        self._before: list[int] = [0]
        """For each node, the set of those before it, as bits. A node is a batch, or a step of the host: node 0 is the
        host at the beginning."""
        self._nodes: dict[BatchPlace, int] = {}
        self._queues: dict[int, int] = {}
        """The queue of each submit."""
        self._last: dict[int, int] = {}
        self._host = 0
        self._fences: dict[int, int] = {}
        self._binary: dict[int, int] = {}
        """Of each binary semaphore, the signal that no wait took yet."""
        self._taken: dict[int, int] = {}
        """Of each binary semaphore, the last wait."""
        self._again: list[tuple[int, int]] = []
        """The last wait for a binary semaphore and the next signal of it, which has to come later."""
        self._twice = False
        """Whether a binary semaphore is signaled again with no wait in between."""
        self._signals: dict[int, list[tuple[int, int]]] = {}
        """Of each timeline, the (value, node) of its signals."""
        self._awaited: list[tuple[int, int, int]] = []
        """(node, timeline, value) of the waits for timelines; the signal may come later in the trace."""
        self._host_waits: list[list[tuple[int, int]]] = []
        """Those of the host: for each, the values of which any ends it."""
        self._initial: dict[int, int] = {}
        """The values of timelines before any signal."""
        self._never = ""
        """The first wait for a binary semaphore that nothing signals, in words."""
        for block in blocks:
            if isinstance(block, Call) and block.succeeded:
                with reading(block):
                    self._take(as_wait(block))
        for node, semaphore, value in self._awaited:
            self._before[node] |= self._signaled(semaphore, value)
        self._close()

    def queue(self, submit: int) -> int:
        """The queue of the trace to which a submit goes."""
        return self._queues[submit]

    def in_order(self, one: BatchPlace, other: BatchPlace) -> bool:
        """Whether one of two batches waits for the other."""
        first, second = self._nodes[one], self._nodes[other]
        return bool(self._before[second] >> first & 1 or self._before[first] >> second & 1)

    def unsignaled(self) -> str:
        """The wait that nothing in the stream ends, in words; empty where there is none."""
        return self.hangs() or self._unended([each[1:]] for each in self._awaited)

    def hangs(self) -> str:
        """The same for what a replay would give to a driver. A batch that waits for a value of a timeline stays behind
        until something signals that."""
        return self._never or self._unended(self._host_waits)

    def _unended(self, waits: Iterable[list[tuple[int, int]]]) -> str:
        """The first of some waits, each for any of several values, of which none comes."""
        for values in waits:
            if not any(self._comes(*each) for each in values):
                semaphore, value = values[0]
                return f"nothing signals the value {value} of the semaphore {semaphore}"
        return ""

    def _comes(self, semaphore: int, value: int) -> bool:
        """Whether something signals a value, or it is there from the beginning."""
        return value <= self._initial.get(semaphore, 0) or bool(self._signaled(semaphore, value))

    def endless(self) -> str:
        """Why a batch may wait for ever on a device, in words; empty where none can. Two signals that nothing orders
        can come in the other order: then a timeline counts down, or a binary semaphore is signaled twice. Neither is
        valid. Specification: "Timeline Semaphores", VUID-vkQueueSubmit2-semaphore-03868."""
        if reason := self.unsignaled():
            return reason
        ordered = (sorted(each) for each in self._signals.values())
        if not all(self._before[later] >> node & 1 for each in ordered for (_, node), (_, later) in pairwise(each)):
            return "a timeline could count down"
        if self._twice or not all(node == later or self._before[later] >> node & 1 for node, later in self._again):
            return "a semaphore could be signaled twice before a wait"
        return ""

    def _take(self, call: Call) -> None:
        name, args = main_name(call.name), call.args
        if name in QUEUE_WORK:
            self._submit(call)
        elif name == "vkCreateSemaphore" and (value := initial_value(args["pCreateInfo"])) is not None:
            self._signals[args["pSemaphore"]] = []
            self._initial[args["pSemaphore"]] = value
        elif name == "vkSignalSemaphore":
            info = args["pSignalInfo"]
            self._signals.setdefault(info["semaphore"], []).append((info["value"], self._host_step(0)))
        elif name == "vkWaitSemaphores":
            self._host_wait(args["pWaitInfo"], call.result or VkResult.SUCCESS)
        elif name == "vkWaitForFences":
            self._host_step(sum(1 << self._fences[each] for each in {*args["pFences"]} & {*self._fences}))
        elif name == "vkQueueWaitIdle":
            self._host_step(1 << self._last.get(args["queue"], self._host))
        elif name == "vkDeviceWaitIdle":
            self._host_step((1 << len(self._before)) - 1)

    def _host_wait(self, info: dict[str, Any], result: int) -> None:
        """A wait of the host for values. One for any of several comes after none of them for certain, and one that
        timed out after nothing."""
        node = self._host_step(0)
        values = list(zip(info["pSemaphores"] or (), info["pValues"] or (), strict=True))
        if result != VkResult.SUCCESS or not values:
            return
        if len(values) > 1 and info["flags"] & VkSemaphoreWait.ANY:
            self._host_waits.append(values)
        else:
            self._awaited += [(node, *each) for each in values]
            self._host_waits += [[each] for each in values]

    def _host_step(self, after: int) -> int:
        """A step of the host after the steps before it and after a set of nodes."""
        self._before.append(after | 1 << self._host)
        self._host = len(self._before) - 1
        return self._host

    def _submit(self, call: Call) -> None:
        queue = call.args["queue"]
        self._queues[call.index] = queue
        for at, batch in enumerate(batches(call.args)):
            node = len(self._before)
            self._nodes[call.index, at] = node
            self._before.append(1 << self._host | sum(1 << each for each in self._waits(node, batch)))
            if queue in self._last:
                self._before[node] |= 1 << self._last[queue]
            self._last[queue] = node
            for signal in batch.signals:
                if signal.semaphore in self._signals:
                    self._signals[signal.semaphore].append((signal.value, node))
                else:
                    self._signal_binary(signal.semaphore, node)
        if call.args["fence"]:
            self._fences[call.args["fence"]] = self._last.get(queue, self._host)

    def _signal_binary(self, semaphore: int, node: int) -> None:
        if semaphore in self._binary:
            self._twice = True
        elif semaphore in self._taken:
            self._again.append((self._taken[semaphore], node))
        self._binary[semaphore] = node

    def _waits(self, node: int, batch: SubmitBatch) -> Iterator[int]:
        for wait in batch.waits:
            if wait.semaphore in self._signals:
                self._awaited.append((node, wait.semaphore, wait.value))
            elif wait.semaphore in self._binary:
                self._taken[wait.semaphore] = node
                yield self._binary.pop(wait.semaphore)
            elif not self._never:
                self._never = f"nothing signals the semaphore {wait.semaphore} before a wait for it"

    def _signaled(self, semaphore: int, value: int) -> int:
        """The node of the smallest signal that ends a wait for a value, as a set; empty where none does."""
        enough = [each for each in self._signals.get(semaphore, ()) if each[0] >= value]
        return 1 << min(enough)[1] if enough else 0

    def _close(self) -> None:
        """Lets each node hold what is before the nodes before it."""
        changed = True
        while changed:
            changed = False
            for node, before in enumerate(self._before):
                whole = before
                for each in _bits(before):
                    whole |= self._before[each]
                changed |= whole != before
                self._before[node] = whole


def _bits(value: int) -> Iterator[int]:
    while value:
        yield (value & -value).bit_length() - 1
        value &= value - 1
