"""Parts of a stream that belong together: recordings and what executes them, waits and signals, passes, frames.

One pass over the stream finds it. Blocks are named by their index.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from vkharness.reduction.paths import Path
from vkharness.spec.command_classes import (
    ACQUIRES,
    BEGINS_RENDERING,
    ENDS_RENDERING,
    HOST_POLLS,
    HOST_WAITS,
    PRESENT,
    QUEUE_WORK,
    is_debug,
    is_recorded,
    is_submit,
    nesting,
)
from vkharness.spec.enums import VkRendering, VkStructureType
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call, reading
from vkharness.trace.chain import chained
from vkharness.trace.references import HandleReference, references

HOST_SIGNALS = frozenset({"vkSignalSemaphore", "vkSetEvent", "vkResetEvent"})
BRACKETS = frozenset({"vkBeginCommandBuffer", "vkEndCommandBuffer"})
_NOT_READY = frozenset({1, 2})
"""VK_NOT_READY and VK_TIMEOUT: a wait or a poll that learned nothing."""


@dataclass(slots=True)
class RecordedBuffer:
    """One recording of a command buffer: the calls from vkBeginCommandBuffer to vkEndCommandBuffer, by index."""

    begin: int
    buffer: int
    commands: list[int] = field(default_factory=list)
    end: int | None = None
    closes: dict[int, int] = field(default_factory=dict)
    """The command that begins something to the one that ends it: render pass instances, queries, conditions."""


class Structure:
    """A stream and what belongs together in it."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = {block.index: block for block in blocks if _says_something(block)}
        self.order = list(self.blocks)
        """The indices in the order of the stream."""
        self.references: dict[int, list[HandleReference]] = {}
        self.maker: dict[int, int] = {}
        """The object to the block that made it first."""
        self.recordings: dict[int, RecordedBuffer] = {}
        """By the block that begins them."""
        self.recording_of: dict[int, int] = {}
        """Each command, and the end, to the begin of their recording."""
        self.executed: dict[Path, int] = {}
        """Each place where a command buffer is executed (by a submit or a primary) to the begin of its recording."""
        self.partners: dict[Path, Path] = {}
        """Each wait for a semaphore to the signal that it waits for; a timeline's signal may have several waits."""
        self.binary: dict[Path, Path] = {}
        """Each signal of a binary semaphore to its wait."""
        self.presented: dict[int, Path] = {}
        """Each acquire of an image to the element of a present that gives the image back."""
        self._now: dict[int, int] = {}
        self._open: dict[int, list[int]] = defaultdict(list)
        self._pending: dict[int, Path] = {}
        self._values: dict[int, list[tuple[int, Path]]] = defaultdict(list)
        self._acquired: dict[tuple[int, int], int] = {}
        self._late: list[tuple[Path, int, int]] = []
        for block in self.blocks.values():
            with reading(block):
                self._follow(block)
        for path, semaphore, value in self._late:
            self._wait_for_value(path, semaphore, value)

    def call(self, index: int) -> Call:
        """The block as a call. Raises TypeError for a write or read of the host."""
        block = self.blocks[index]
        if not isinstance(block, Call):
            raise TypeError(f"block {index} is no call")
        return block

    def _follow(self, block: Block) -> None:
        if not isinstance(block, Call):
            self.references[block.index] = [HandleReference("VkDeviceMemory", block.memory, False)]
            return
        self.references[block.index] = list(references(block))
        for each in self.references[block.index]:
            if each.made:
                self.maker.setdefault(each.id, block.index)
        name = main_name(block.name)
        if name == "vkBeginCommandBuffer":
            buffer = block.args["commandBuffer"]
            self.recordings[block.index] = RecordedBuffer(block.index, buffer)
            self._now[buffer] = block.index
            self._open[buffer] = []
        elif is_recorded(name) or name == "vkEndCommandBuffer":
            self._record(block)
        elif name in QUEUE_WORK:
            self._submit(block)
        elif name in ACQUIRES:
            self._acquire(block)
        elif name == PRESENT:
            self._present(block)
        elif name in ("vkWaitSemaphores", "vkSignalSemaphore", "vkGetSemaphoreCounterValue"):
            self._follow_host(name, block)

    def _record(self, block: Call) -> None:
        buffer = block.args["commandBuffer"]
        begin = self._now.get(buffer)
        if begin is None:
            return
        recording = self.recordings[begin]
        self.recording_of[block.index] = begin
        if block.name == "vkEndCommandBuffer":
            recording.end = block.index
            return
        recording.commands.append(block.index)
        step = nesting(block.name)
        if step > 0:
            self._open[buffer].append(block.index)
        elif step < 0 and self._open[buffer]:
            recording.closes[self._open[buffer].pop()] = block.index
        if block.name == "vkCmdExecuteCommands":
            for at, secondary in enumerate(block.args["pCommandBuffers"] or ()):
                if secondary in self._now:
                    self.executed[(block.index, "pCommandBuffers", at)] = self._now[secondary]

    def _submit(self, block: Call) -> None:
        for path, buffer in command_buffers(block):
            if buffer in self._now:
                self.executed[path] = self._now[buffer]
        waits, signals = semaphore_operations(block)
        for path, semaphore, value in waits:
            self._wait(path, semaphore, value)
        for path, semaphore, value in signals:
            self._signal(path, semaphore, value)

    def _signal(self, path: Path, semaphore: int, value: int) -> None:
        if value:
            self._values[semaphore].append((value, path))
        else:
            self._pending[semaphore] = path

    def _wait(self, path: Path, semaphore: int, value: int) -> None:
        if value:
            self._late.append((path, semaphore, value))
        elif (signal := self._pending.pop(semaphore, None)) is not None:
            self.partners[path] = signal
            self.binary[signal] = path

    def _wait_for_value(self, path: Path, semaphore: int, value: int) -> None:
        signal = next((each for reached, each in self._values[semaphore] if reached >= value), None)
        if signal is not None:
            self.partners[path] = signal

    def _acquire(self, block: Call) -> None:
        info = block.args.get("pAcquireInfo") or block.args
        self._acquired[info["swapchain"], block.args["pImageIndex"]] = block.index
        if info["semaphore"]:
            self._signal((block.index, "semaphore"), info["semaphore"], 0)

    def _present(self, block: Call) -> None:
        info = block.args["pPresentInfo"]
        for at, semaphore in enumerate(info["pWaitSemaphores"] or ()):
            self._wait((block.index, "pPresentInfo", "pWaitSemaphores", at), semaphore, 0)
        for at, image in enumerate(zip(info["pSwapchains"] or (), info["pImageIndices"] or (), strict=False)):
            acquire = self._acquired.pop(image, None)
            if acquire is not None:
                self.presented[acquire] = (block.index, "pPresentInfo", "pSwapchains", at)

    def _follow_host(self, name: str, block: Call) -> None:
        if name == "vkSignalSemaphore":
            info = block.args["pSignalInfo"]
            self._signal((block.index,), info["semaphore"], info["value"])
        elif name == "vkWaitSemaphores":
            info = block.args["pWaitInfo"]
            for at, (semaphore, value) in enumerate(
                zip(info["pSemaphores"] or (), info["pValues"] or (), strict=False)
            ):
                if value:
                    self._late.append(((block.index, "pWaitInfo", "pSemaphores", at), semaphore, value))
        elif block.args.get("pValue"):
            self._late.append(((block.index,), block.args["semaphore"], block.args["pValue"]))

    def enclosing(self, index: int) -> list[int]:
        """The begins and ends of what is open around a command, outermost first."""
        recording = self.recordings[self.recording_of[index]]
        pairs = [(open_at, close) for open_at, close in recording.closes.items() if open_at <= index <= close]
        return [each for pair in sorted(pairs) for each in pair]

    def passes(self, recording: RecordedBuffer) -> dict[int, int]:
        """The begins of render pass instances to their ends."""
        return {
            begin: end
            for begin, end in recording.closes.items()
            if main_name(self.call(begin).name).startswith(BEGINS_RENDERING)
            and main_name(self.call(end).name).startswith(ENDS_RENDERING)
        }

    def resumed(self, recording: RecordedBuffer) -> dict[int, int]:
        """The begins of instances that resume another one of the same recording to the begin of that one."""
        found: dict[int, int] = {}
        suspended = None
        for begin in sorted(self.passes(recording)):
            flags = (self.call(begin).args.get("pRenderingInfo") or {}).get("flags", 0)
            if flags & VkRendering.RESUMING and suspended is not None:
                found[begin] = suspended
            suspended = begin if flags & VkRendering.SUSPENDING else None
        return found

    def instance_of(self, index: int) -> int:
        """The begin of the render pass instance that a command is in, of its first part if it was suspended; or else
        the command itself."""
        begin = self.recording_of.get(index)
        if begin is None:
            return index
        recording = self.recordings[begin]
        found = next((at for at, close in self.passes(recording).items() if at <= index <= close), index)
        resumed = self.resumed(recording)
        while found in resumed:
            found = resumed[found]
        return found


def _says_something(block: Block) -> bool:
    """Whether a block is worth keeping: the call did not fail, is no label, and learned something if it asked."""
    if not isinstance(block, Call):
        return True
    if not block.succeeded or (is_debug(block.name) and "ObjectName" not in block.name):
        return False
    asks = main_name(block.name) in HOST_WAITS | HOST_POLLS
    return not (asks and block.result in _NOT_READY)


def is_work(block: Block) -> bool:
    """Whether a block is of what the program does, not of the objects with which it does it."""
    if not isinstance(block, Call):
        return False
    name = main_name(block.name)
    return (
        (is_recorded(name) and not is_debug(name))
        or name in BRACKETS | QUEUE_WORK | ACQUIRES | HOST_WAITS | HOST_POLLS | HOST_SIGNALS
        or name in (PRESENT, "vkResetFences")
        or (name.startswith("vkGet") and name.endswith("DeviceAddress"))
    )


def command_buffers(call: Call) -> Iterator[tuple[Path, int]]:
    """The places of a submit that name command buffers, with their ids."""
    if not is_submit(call.name):
        return
    for at, batch in enumerate(call.args["pSubmits"] or ()):
        if "pCommandBufferInfos" in batch:
            for place, info in enumerate(batch["pCommandBufferInfos"] or ()):
                yield (call.index, "pSubmits", at, "pCommandBufferInfos", place), info["commandBuffer"]
        else:
            for place, buffer in enumerate(batch["pCommandBuffers"] or ()):
                yield (call.index, "pSubmits", at, "pCommandBuffers", place), buffer


_Operation = tuple[Path, int, int]
"""The place of a wait or signal, its semaphore, and its value, which is 0 for a binary semaphore."""


def semaphore_operations(call: Call) -> tuple[list[_Operation], list[_Operation]]:
    """The waits and the signals of a submit."""
    key = "pBindInfo" if "pBindInfo" in call.args else "pSubmits"
    waits: list[_Operation] = []
    signals: list[_Operation] = []
    for at, batch in enumerate(call.args[key] or ()):
        for found, side in ((waits, "Wait"), (signals, "Signal")):
            second = batch.get(f"p{side}SemaphoreInfos")
            values = (chained(batch, VkStructureType.TIMELINE_SEMAPHORE_SUBMIT_INFO) or {}).get(
                f"p{side}SemaphoreValues"
            ) or ()
            for place, info in enumerate(second or ()):
                path: Path = (call.index, key, at, f"p{side}SemaphoreInfos", place)
                found.append((path, info["semaphore"], info["value"]))
            for place, semaphore in enumerate(batch.get(f"p{side}Semaphores") or ()):
                path = (call.index, key, at, f"p{side}Semaphores", place)
                found.append((path, semaphore, values[place] if place < len(values) else 0))
    return waits, signals
