"""Names that a program gives its objects and its work: debug names, label regions, frames (VK_EXT_debug_utils).

Nothing of it decides whether there is a hazard. Calls that name things are noted when they come, and a finding asks for
the names, the labels and the frames of its two places when it is made. So commands cost nothing more with labels around
them, and a program without labels pays nothing.

Specification: "Debugging", VK_EXT_debug_utils, VK_EXT_debug_marker, VK_EXT_frame_boundary.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from vkharness.findings import Finding, Place
from vkharness.spec.enums import VkFrameBoundary, VkStructureType
from vkharness.trace.calls import Call
from vkharness.trace.chain import chained

Stack = tuple[str, ...]
"""Open label regions, the outermost first; a label that was inserted last is behind them."""
Moment = tuple[int, int, int]
"""When labels change, in stream order: the call for a command buffer; submit, batch and position for a queue."""

EXTENSION = "VK_EXT_frame_boundary"
LONGEST = 1024
"""The most characters of a name or label that are kept."""
MOST_NAMES = 1 << 18
"""The most names that are kept; the oldest ones go first. Those of destroyed objects stay: a finding may come late."""
DEEPEST = 32
"""The most open regions whose labels are kept. Deeper ones are counted."""
MOST_CHANGES = 1 << 18
"""The most changes of labels that are kept, over all command buffers and queues; the oldest ones go first."""
MOST_STACKS = 1 << 12
"""The most stacks of labels that are shared between changes."""


def _ends_frame(info: dict[str, Any]) -> bool:
    boundary = chained(info, VkStructureType.FRAME_BOUNDARY_EXT) if info.get("pNext") else None
    return boundary is not None and bool((boundary.get("flags") or 0) & VkFrameBoundary.FRAME_END)


@dataclass(slots=True)
class LabelHistory:
    """The label regions of one command buffer or queue, as they changed."""

    stack: Stack = ()
    inserted: str = ""
    """The label that was inserted last, if no region began or ended since."""
    deeper: int = 0
    """Open regions beyond `DEEPEST`."""
    closed: int = 0
    """Regions of earlier command buffers that this one ends."""
    moments: list[Moment] = field(default_factory=list)
    states: list[tuple[int, Stack]] = field(default_factory=list)
    """(`closed`, labels) from each moment on."""

    def begin(self, label: str) -> None:
        """vkCmdBeginDebugUtilsLabelEXT, vkQueueBeginDebugUtilsLabelEXT."""
        self.inserted = ""
        if len(self.stack) < DEEPEST:
            self.stack += (label[:LONGEST],)
        else:
            self.deeper += 1

    def insert(self, label: str) -> None:
        """vkCmdInsertDebugUtilsLabelEXT, vkQueueInsertDebugUtilsLabelEXT."""
        self.inserted = label[:LONGEST]

    def end(self) -> None:
        """vkCmdEndDebugUtilsLabelEXT, vkQueueEndDebugUtilsLabelEXT."""
        self.inserted = ""
        if self.deeper:
            self.deeper -= 1
        elif self.stack:
            self.stack = self.stack[:-1]
        else:
            self.closed += 1

    def reset(self) -> None:
        """The command buffer is begun anew."""
        self.stack, self.inserted, self.deeper, self.closed = (), "", 0, 0

    def at(self, moment: Moment) -> tuple[int, Stack]:
        """(`closed`, labels) at a moment."""
        at = bisect_right(self.moments, moment) - 1
        return self.states[at] if at >= 0 else (0, ())


@dataclass(slots=True)
class Frames:
    """Which frame a call belongs to. A present ends a frame, or a VkFrameBoundaryEXT in the chain of a submit."""

    ends: list[int] = field(default_factory=list)
    """The calls that end a frame."""
    begin: int | None = None
    """The call from which there are frames: the first swapchain, or the device with VK_EXT_frame_boundary."""
    has_boundaries: bool = False
    """Whether a device has VK_EXT_frame_boundary."""
    ended_by_submit: bool = False
    """Whether a submit ended a frame. Presents then end none by themselves."""
    last_submit: int = 0
    """The call of the last submit."""

    def may_begin(self, call: int) -> None:
        """From here on there are frames."""
        if self.begin is None:
            self.begin = call

    def device_created(self, call: Call) -> None:
        """A device that has VK_EXT_frame_boundary tells of its frames."""
        if EXTENSION in (call.args["pCreateInfo"].get("ppEnabledExtensionNames") or ()):
            self.has_boundaries = True
            self.may_begin(call.index)

    def submitted(self, call: Call) -> None:
        """A submit may end a frame."""
        self.last_submit = call.index
        if not self.has_boundaries:
            return
        infos = call.args.get("pSubmits") or ()
        if any(_ends_frame(info) for info in infos):
            self.ended_by_submit = True
            self.ends.append(call.index)

    def presented(self, call: Call) -> None:
        """A present ends a frame, unless submits do."""
        if not self.ended_by_submit or _ends_frame(call.args["pPresentInfo"]):
            self.ends.append(call.index)

    def of(self, call: int) -> int | None:
        """The frame of a call, from 1; None before the first one."""
        return None if self.begin is None or call < self.begin else bisect_left(self.ends, call) + 1


class DebugInfo:
    """The names, labels and frames of one program."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        """By id of the object."""
        self.frames = Frames()
        self.has_labels = False
        """Whether there was a label. Command buffers and submits are followed from then on."""
        self._labels: dict[int, LabelHistory] = {}
        """By command buffer or queue, the one that began last at the end."""
        self._changes = 0
        self._stacks: dict[Stack, Stack] = {}
        self._executed: dict[int, dict[int, Stack]] = {}
        """By secondary command buffer: the primaries that execute it, with their labels there."""

    def name(self, id: int, name: str | None) -> None:
        """Names an object; no name or an empty one takes the name away."""
        if name and id:
            self.names[id] = name[:LONGEST]
            if len(self.names) > MOST_NAMES:
                del self.names[next(iter(self.names))]
        else:
            self.names.pop(id, None)

    def labels_of(self, owner: int) -> LabelHistory:
        """The labels of a command buffer or a queue, for a change."""
        self.has_labels = True
        history = self._labels.get(owner)
        if history is None:
            history = self._labels[owner] = LabelHistory()
        return history

    def changed(self, history: LabelHistory, moment: Moment) -> None:
        """Notes the labels from a moment on."""
        stack = (*history.stack, history.inserted) if history.inserted else history.stack
        if len(self._stacks) >= MOST_STACKS:
            self._stacks.clear()
        history.moments.append(moment)
        history.states.append((history.closed, self._stacks.setdefault(stack, stack)))
        self._changes += 1
        if self._changes > MOST_CHANGES:
            self._forget_oldest()

    def begun(self, command_buffer: int, call: int) -> None:
        """A command buffer is recorded anew, without labels."""
        history = self._labels.pop(command_buffer, None)
        if history is not None:
            self._labels[command_buffer] = history
            if history.states[-1] != (0, ()):
                history.reset()
                self.changed(history, (call, 0, 0))
        self._executed.pop(command_buffer, None)

    def executes(self, primary: int, secondaries: Iterable[int]) -> None:
        """A primary command buffer executes secondary ones inside of its regions."""
        history = self._labels.get(primary)
        if history is not None:
            for each in secondaries:
                self._executed.setdefault(each, {})[primary] = history.states[-1][1]

    def submitted(self, queue: int, call: int, batches: Iterable[Iterable[int]]) -> None:
        """Regions that a command buffer leaves open go on behind it on the queue, and it may end earlier ones."""
        for batch, command_buffers in enumerate(batches):
            for position, each in enumerate(command_buffers):
                own = self._labels.get(each)
                if own is not None and (own.closed or own.stack):
                    history = self.labels_of(queue)
                    for _ in range(min(own.closed, DEEPEST)):
                        history.end()
                    for label in own.stack:
                        history.begin(label)
                    history.closed = 0
                    self.changed(history, (call, batch, position + 1))

    def annotate(self, finding: Finding, begun_after: int) -> None:
        """Writes into a finding what the program calls its objects and its places. `begun_after`: the call of the last
        submit before the recording of its later access was begun."""
        place, prior = finding.place, finding.prior
        if self.names:
            ids = (
                finding.resource,
                finding.through,
                place.command_buffer,
                prior.command_buffer,
                place.queue,
                prior.queue,
            )
            finding.names = {id: self.names[id] for id in ids if id in self.names}
        if self.has_labels:
            finding.labels, finding.prior_labels = self.labels_at(place), self.labels_at(prior)
        finding.frame, finding.prior_frame = (self.frames.of(each.submit or each.call) for each in (place, prior))
        finding.period = place.submit or begun_after

    def labels_at(self, place: Place) -> Stack:
        """The label regions around a place: of its queue, of the primary command buffer, of its command buffer."""
        closed, labels = self._within(place)
        queue = self._labels.get(place.queue or 0) if place.submit else None
        if queue is None:
            return labels
        _, around = queue.at((place.submit or 0, place.batch, place.position))
        return (*around[: max(0, len(around) - closed)], *labels)

    def _within(self, place: Place) -> tuple[int, Stack]:
        own = self._labels.get(place.command_buffer or 0)
        closed, labels = own.at((place.call, 0, 0)) if own is not None else (0, ())
        if place.executed_by is None:
            return closed, labels
        return closed, (*self._around(place), *labels)

    def _around(self, place: Place) -> Stack:
        """The labels of the primary command buffer that executes the secondary one of a place."""
        assert place.executed_by is not None
        moment = (place.executed_by[0], 0, 0)
        primaries = self._executed.get(place.command_buffer or 0, {})
        known = ((self._labels.get(primary), noted) for primary, noted in primaries.items())
        return next((noted for each, noted in known if each is not None and each.at(moment)[1] == noted), ())

    def _forget_oldest(self) -> None:
        owner, history = next(iter(self._labels.items()))
        gone = max(1, len(history.moments) // 2)
        del history.moments[:gone], history.states[:gone]
        self._changes -= gone
        del self._labels[owner]
        if history.moments:
            self._labels[owner] = history
