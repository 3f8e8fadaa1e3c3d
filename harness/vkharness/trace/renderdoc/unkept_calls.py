"""What a capture of RenderDoc does not keep and its frame relies on, as calls that are made up.

- The state of a fence where the frame begins: all queues were idle, so it is signaled, unless the frame submits with it
  before it resets it.
- The value of a timeline there: one less than the first that the frame signals.
- A binary semaphore that was signaled before the frame: an empty batch signals it, where the frame begins.
- vkAcquireNextImageKHR: before each present of the frame its image was acquired. Where one semaphore that nothing in
  the capture signals is waited for since the present before, the acquire signaled it, and stands in front of that wait.
  Where there is none, or several, nobody knows: the acquire comes first, with a fence that the host waits for, and
  orders everything.
- What a poll of a fence or an event returned: the fence was signaled if a submission was to signal it, the event was
  set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from vkharness.spec.enums import VkResult, VkSemaphoreType, VkStructureType
from vkharness.trace.calls import Block, Call
from vkharness.trace.chain import chained, rebuilt
from vkharness.trace.submits import batches

FIRST_FENCE = 1 << 46
"""The ids of fences that are made up."""
_SIGNALED = 1
"""VK_FENCE_CREATE_SIGNALED_BIT"""
_FOREVER = (1 << 64) - 1
_SUBMITS = ("vkQueueSubmit", "vkQueueSubmit2", "vkQueueSubmit2KHR", "vkQueueBindSparse")
_PRESENT = "vkQueuePresentKHR"


class _Wait(NamedTuple):
    """A wait for a semaphore that nothing signals: the position of its call, the semaphore."""

    position: int
    semaphore: int


@dataclass(slots=True)
class _Acquire:
    """An acquire that was not kept: of the image of a present, before the call at a position."""

    position: int
    swapchain: int
    image: int
    semaphore: int = 0


@dataclass(slots=True)
class _Uses:
    """How the frame uses fences and semaphores."""

    fences: dict[int, bool] = field(default_factory=dict)
    """Whether each was signaled where the frame began."""
    first_signals: dict[int, int] = field(default_factory=dict)
    last_waits: dict[int, int] = field(default_factory=dict)
    """Of timelines: the first value that is signaled, the last one that is waited for."""
    signaled: set[int] = field(default_factory=set)
    """Semaphores that a batch signals."""


class UnkeptCalls:
    """Completes the blocks of one capture, of which those from `begin` on are the frame's."""

    def __init__(self, blocks: list[Block], begin: int) -> None:
        self._blocks, self._begin = blocks, begin
        self._device = next((each.args["pDevice"] for each in self._named("vkCreateDevice")), 0)
        self._timelines = {each.args["pSemaphore"] for each in self._named("vkCreateSemaphore") if _is_timeline(each)}
        self._uses = _Uses()
        self.acquires: list[_Acquire] = []
        self.signals = 0
        """Signals from before the frame that were made up."""

    def whole(self) -> list[Block]:
        """The blocks with those that were not kept."""
        self._find_uses()
        unsignaled = self._find_unsignaled()
        self._find_acquires(unsignaled)
        added: dict[int, list[Call]] = {}
        acquired = {(each.position, each.semaphore) for each in self.acquires if each.semaphore}
        begun: set[int] = set()
        for wait in unsignaled:
            if wait not in acquired:
                at = wait.position if wait.semaphore in begun else self._begin
                begun.add(wait.semaphore)
                added.setdefault(at, []).append(self._signal(at, wait))
                self.signals += 1
        for number, each in enumerate(self.acquires):
            added.setdefault(each.position, []).extend(self._acquired(each, number))
        return [made for at, block in enumerate(self._blocks) for made in (*added.get(at, ()), self._settled(block))]

    def _named(self, name: str) -> Iterator[Call]:
        return (each for each in self._blocks if isinstance(each, Call) and each.name == name and not each.unread)

    def _frame(self) -> Iterator[tuple[int, Call]]:
        for at in range(self._begin, len(self._blocks)):
            block = self._blocks[at]
            if isinstance(block, Call) and not block.unread:
                yield at, block

    def _find_uses(self) -> None:
        uses, pending = self._uses, set()
        for _, call in self._frame():
            args = call.args
            if call.name in _SUBMITS:
                uses.fences.setdefault(args["fence"], False)
                pending.add(args["fence"])
                for batch in batches(args):
                    for each in batch.signals:
                        self._signals(each.semaphore, each.value or 0)
                    for each in batch.waits:
                        self._waits(each.semaphore, each.value or 0)
            elif call.name in ("vkWaitForFences", "vkResetFences"):
                for fence in args["pFences"] or ():
                    uses.fences.setdefault(fence, True)
                    pending.discard(fence)
            elif call.name == "vkGetFenceStatus" and args["fence"] not in pending:
                call.result = VkResult.NOT_READY
            elif call.name == "vkGetEventStatus":
                call.result = VkResult.EVENT_SET
            elif call.name == "vkSignalSemaphore":
                self._signals(args["pSignalInfo"]["semaphore"], args["pSignalInfo"]["value"])
            elif call.name == "vkWaitSemaphores":
                for semaphore, value in zip(
                    args["pWaitInfo"]["pSemaphores"], args["pWaitInfo"]["pValues"], strict=False
                ):
                    self._waits(semaphore, value)

    def _signals(self, semaphore: int, value: int) -> None:
        self._uses.signaled.add(semaphore)
        if semaphore in self._timelines:
            self._uses.first_signals.setdefault(semaphore, value)

    def _waits(self, semaphore: int, value: int) -> None:
        if semaphore in self._timelines:
            self._uses.last_waits[semaphore] = max(value, self._uses.last_waits.get(semaphore, 0))

    def _find_unsignaled(self) -> list[_Wait]:
        """The waits of the frame for binary semaphores that nothing in it has signaled."""
        pending: set[int] = set()
        found = []
        for at, call in self._frame():
            for waits, signals in _operations(call):
                for semaphore in waits:
                    if semaphore in self._timelines:
                        continue
                    if semaphore not in pending:
                        found.append(_Wait(at, semaphore))
                    pending.discard(semaphore)
                pending.update(signals)
        return found

    def _find_acquires(self, unsignaled: list[_Wait]) -> None:
        since = self._begin
        for at, call in self._frame():
            if call.name != _PRESENT:
                continue
            info = call.args["pPresentInfo"]
            shown = list(zip(info["pSwapchains"] or (), info["pImageIndices"] or (), strict=False))
            own = {wait for wait in unsignaled if since <= wait.position < at}
            own = {wait for wait in own if wait.semaphore not in self._uses.signaled}
            (wait,) = own if len(own) == 1 and len(shown) == 1 else (_Wait(since, 0),)
            self.acquires += (_Acquire(wait.position, *each, wait.semaphore) for each in shown)
            since = at + 1

    def _signal(self, at: int, wait: _Wait) -> Call:
        call = self._blocks[wait.position]
        assert isinstance(call, Call)
        batch: dict[str, Any] = {
            "sType": VkStructureType.SUBMIT_INFO,
            "pNext": None,
            "waitSemaphoreCount": 0,
            "pWaitSemaphores": None,
            "pWaitDstStageMask": None,
            "commandBufferCount": 0,
            "pCommandBuffers": None,
            "signalSemaphoreCount": 1,
            "pSignalSemaphores": [wait.semaphore],
        }
        args = {"queue": call.args["queue"], "submitCount": 1, "pSubmits": [batch], "fence": 0}
        return Call(self._blocks[at].index, "vkQueueSubmit", args, 0)

    def _acquired(self, acquire: _Acquire, number: int) -> Iterator[Call]:
        """The acquire of an image; without a semaphore, with a fence that the host waits for."""
        index = self._blocks[acquire.position].index
        fence = 0 if acquire.semaphore else FIRST_FENCE + number
        if fence:
            create = {"sType": VkStructureType.FENCE_CREATE_INFO, "pNext": None, "flags": 0}
            made = {"device": self._device, "pCreateInfo": create, "pAllocator": None, "pFence": fence}
            yield Call(index, "vkCreateFence", made, 0)
        args = {"device": self._device, "swapchain": acquire.swapchain, "timeout": _FOREVER}
        args |= {"semaphore": acquire.semaphore, "fence": fence, "pImageIndex": acquire.image}
        yield Call(index, "vkAcquireNextImageKHR", args, 0)
        if fence:
            waited = {"fenceCount": 1, "pFences": [fence], "waitAll": 1, "timeout": _FOREVER}
            yield Call(index, "vkWaitForFences", {"device": self._device, **waited}, 0)

    def _settled(self, block: Block) -> Block:
        """A call that makes a fence or a timeline, in the state that it has where the frame begins."""
        if not isinstance(block, Call) or block.unread:
            return block
        info = block.args.get("pCreateInfo")
        if block.name == "vkCreateFence" and info:
            signaled = self._uses.fences.get(block.args["pFence"], False)
            return replace(block, args={**block.args, "pCreateInfo": {**info, "flags": _SIGNALED * signaled}})
        if info and block.name == "vkCreateSemaphore" and block.args["pSemaphore"] in self._timelines:
            value = self._first_value(block.args["pSemaphore"])

            def begun(link: dict[str, Any]) -> dict[str, Any]:
                is_type = link["sType"] == VkStructureType.SEMAPHORE_TYPE_CREATE_INFO
                return {**link, "initialValue": max(value, link["initialValue"])} if is_type else link

            return replace(block, args={**block.args, "pCreateInfo": {**info, "pNext": rebuilt(info, begun)}})
        return block

    def _first_value(self, semaphore: int) -> int:
        signal = self._uses.first_signals.get(semaphore)
        return self._uses.last_waits.get(semaphore, 0) if signal is None else max(signal - 1, 0)


def _operations(call: Call) -> Iterator[tuple[Iterable[int], Iterable[int]]]:
    """The semaphores that each batch of a call waits for, and those that it signals."""
    if call.name in _SUBMITS:
        for batch in batches(call.args):
            yield [each.semaphore for each in batch.waits], [each.semaphore for each in batch.signals]
    elif call.name == _PRESENT:
        yield call.args["pPresentInfo"]["pWaitSemaphores"] or (), ()


def _is_timeline(call: Call) -> bool:
    kind = chained(call.args["pCreateInfo"], VkStructureType.SEMAPHORE_TYPE_CREATE_INFO)
    return kind is not None and kind["semaphoreType"] == VkSemaphoreType.TIMELINE
