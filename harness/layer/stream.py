"""A recorded stream as the conditions of expected differences look at it: which commands lie between two accesses.

A condition explains a difference that two judges already have; it does not judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.commands.interpret import Interpreter
from harness.findings import Finding
from harness.layer.messages import SUBMIT, LayerMessage, plain_command
from harness.spans import Span
from harness.spec.scopes import SYNC
from harness.trace.calls import Block, Call
from harness.trace.effects import Access, Barrier, Effect, PassEnd, Recorded, SubpassBegin, WaitEvents

OURS = "ours-only"
LAYER = "layer-only"
EXECUTE = "vkCmdExecuteCommands"

SYNC_OPERATIONS = (
    "vkCmdPipelineBarrier", "vkCmdSetEvent", "vkCmdResetEvent", "vkCmdWaitEvents", "vkCmdBeginRenderPass",
    "vkCmdNextSubpass", "vkCmdEndRenderPass",
)  # fmt: skip
"""Beginnings of the commands at which 1.3.239 cuts a command buffer into segments when it is submitted."""

NUMBERED = (
    *SYNC_OPERATIONS, "vkCmdBlitImage", "vkCmdClearColorImage", "vkCmdClearDepthStencilImage", "vkCmdCopy",
    "vkCmdDispatch", "vkCmdDraw", "vkCmdFillBuffer", "vkCmdResolveImage", "vkCmdUpdateBuffer", "vkCmdWriteBufferMarker",
)  # fmt: skip
"""Beginnings of the commands that `seq_no` counts."""

UNHOOKED_BEFORE: tuple[tuple[str, tuple[int, int, int]], ...] = (
    ("vkCmdDispatchBase", (1, 4, 321)),
    ("vkCmdClearAttachments", (1, 3, 246)),
    ("vkCmdBeginRendering", (1, 3, 271)),
    ("vkCmdEndRendering", (1, 3, 271)),
    ("vkCmdDrawIndirectByteCount", (1, 4, 360)),
    ("vkCmdDrawMeshTasks", (1, 4, 360)),
    ("vkCmdDrawMulti", (1, 4, 360)),
)
"""Commands that older layers pass over, with the version from which they see them: SYNC_RULES 8; where that gives a
span of years, the first of upstream's SDK tags whose sources have the hook."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A key that one judge has and the other lacks, with everything that both said in the same API call."""

    side: str
    """`ours-only` or `layer-only`."""
    key: tuple[str, str, str, str, str]
    kind: str
    """`record` or `submit`."""
    call: int | None
    """Block index of the API call in which it was said, None when nobody attributed it."""
    finding: Finding | None
    message: LayerMessage | None
    findings: tuple[Finding, ...] = ()
    messages: tuple[LayerMessage, ...] = ()
    said_before: bool = False
    """We said the same in an earlier API call."""
    of_command: tuple[Finding, ...] = ()
    """All that we said of the finding's own command, whenever we said it; for a message, of all commands so called."""


@dataclass(frozen=True, slots=True)
class Scope:
    """One barrier of a barrier command. `what` is `memory`, `buffer` or `image`."""

    call: Call
    what: str
    src_stages: int
    src_accesses: int
    dst_stages: int
    dst_accesses: int
    transition: bool
    sync2: bool
    resource: int = 0
    """The buffer or image, 0 for a global barrier."""


@dataclass(frozen=True, slots=True)
class Touch:
    """Part of one resource that a command reads or writes; `spans` are addresses of `space`, as in `effects.Access`."""

    resource: int
    space: int
    spans: tuple[Span, ...]
    write: bool
    stage: int = 0
    """VkPipelineStageFlagBits2, 0 for a layout transition."""
    atomic: bool = False
    silent: bool = False
    """Layers do not record it."""


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """Where the old layer puts a resource: one map for linear memory and one for images with optimal tiling, in each
    by the order in which memory was allocated, then by the offset in it."""

    linear: bool
    memory: int
    offset: int


@dataclass(frozen=True, slots=True)
class Step:
    """A command where it was recorded, or one execution of it."""

    execution: int
    """Number of the executed command buffer; 0 while recording."""
    place: tuple[int, int, int] | None
    """(submit, batch, position) of the executed command buffer; None while recording."""
    call: Call


class Stream:
    """The calls of a trace, indexed. Building is linear in the trace, each question in one command buffer."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        """`blocks` in order of their indices."""
        self.calls = [block for block in blocks if isinstance(block, Call)]
        self._by_index = {call.index: call for call in self.calls}
        self._touches: dict[int, tuple[Touch, ...]] | None = None
        self._addresses: dict[int, Address] | None = None

    def at(self, index: int | None) -> Call | None:
        """The call with that block index."""
        return None if index is None else self._by_index.get(index)

    def recorded(self, command_buffer: int, before: int) -> list[Call]:
        """Commands in that command buffer since it was last begun before block index `before`; those of secondaries
        after the vkCmdExecuteCommands that runs them."""
        commands: list[Call] = []
        for call in self.calls:
            if call.index >= before:
                break
            if call.args.get("commandBuffer") != command_buffer:
                continue
            if call.name == "vkBeginCommandBuffer":
                commands = []
            elif call.name.startswith("vkCmd"):
                commands.append(call)
                commands += self._secondaries(call)
        return commands

    def _secondaries(self, call: Call) -> list[Call]:
        """The commands that a vkCmdExecuteCommands runs; none for other commands."""
        if call.name != EXECUTE:
            return []
        buffers = call.args["pCommandBuffers"] or ()
        return [command for buffer in buffers for command in self.recorded(buffer, call.index)]

    def touches(self, call: Call) -> tuple[Touch, ...]:
        """What that vkCmd* reads and writes, layout transitions included. The first question interprets the trace."""
        if self._touches is None:
            self._touches = self._interpret()
        return self._touches.get(call.index, ())

    def reads(self, call: Call) -> set[int]:
        """Resources that the command reads."""
        return {touch.resource for touch in self.touches(call) if not touch.write}

    def writes(self, call: Call) -> set[int]:
        """Resources that the command writes, or whose layout it changes."""
        return {touch.resource for touch in self.touches(call) if touch.write}

    def address_of(self, resource: int) -> Address:
        """Where the layer puts a buffer or image."""
        if self._addresses is None:
            self._addresses = self._place()
        return self._addresses.get(resource, Address(True, 0, 0))

    def _interpret(self) -> dict[int, tuple[Touch, ...]]:
        interpreter = Interpreter()
        found: dict[int, tuple[Touch, ...]] = {}
        for call in self.calls:
            for stream_event in interpreter.step(call):
                if isinstance(stream_event, Recorded):
                    found[stream_event.command.call] = tuple(_touches(stream_event.command.effects))
        return found

    def _place(self) -> dict[int, Address]:
        allocated = {c.args["pMemory"]: c.index for c in self.calls if c.name == "vkAllocateMemory" and c.succeeded}
        optimal = {
            c.args["pImage"]
            for c in self.calls
            if c.name == "vkCreateImage" and c.succeeded and not c.args["pCreateInfo"]["tiling"]
        }
        found: dict[int, Address] = {}
        for call in self.calls:
            if call.name.startswith(("vkBindBufferMemory", "vkBindImageMemory")):
                for bind in call.args.get("pBindInfos") or [call.args]:
                    resource = bind.get("buffer", bind.get("image", 0))
                    memory = allocated.get(bind["memory"], 0)
                    found[resource] = Address(resource not in optimal, memory, bind["memoryOffset"])
        return found

    def executed(self, submit: Call | None) -> list[list[int]]:
        """Command buffers of each batch of one vkQueueSubmit*; those of a vkCmdExecuteCommands as one batch."""
        if submit is not None and submit.name == EXECUTE:
            return [list(submit.args["pCommandBuffers"] or ())]
        batches: list[list[int]] = []
        for batch in (submit.args.get("pSubmits") if submit else None) or ():
            infos = batch.get("pCommandBufferInfos")
            plain = batch.get("pCommandBuffers")
            batches.append([info["commandBuffer"] for info in infos] if infos is not None else list(plain or ()))
        return batches

    def command(self, subject: Subject) -> Call | None:
        """The vkCmd* call of the second access, None when it cannot be told."""
        if subject.finding is not None:
            return self.at(subject.finding.place.call)
        message, submit = subject.message, self.at(subject.call)
        if message is None or submit is None or message.kind != SUBMIT:
            return submit
        for batch in self.executed(submit):
            if message.entry is not None and message.entry < len(batch) and message.recorded_seq_no:
                numbered = [call for call in self.recorded(batch[message.entry], submit.index) if is_numbered(call)]
                position = message.recorded_seq_no - 1
                if position < len(numbered) and numbered[position].name == message.command:
                    return numbered[position]
        return None

    def seconds(self, subject: Subject) -> list[tuple[Call, list[Call]]]:
        """What the second command can be, each with the commands before it. Which one it is, today's layer does not say
        at submit: then all of its name that the submit executes."""
        own = self.command(subject)
        if own is not None and "commandBuffer" in own.args:
            return [(own, [step.call for step in self.steps(subject)])]
        before: list[Call] = []
        found: list[tuple[Call, list[Call]]] = []
        for _, place, commands in self._executions(subject.call or 0):
            for call in commands:
                if place[0] == subject.call and plain_command(call.name) == subject.key[1]:
                    found.append((call, list(before)))
                before.append(call)
        return found

    def segment(self, subject: Subject) -> list[Call]:
        """The commands of the piece between two synchronization commands that holds the second access, the closing
        one included."""
        command = self.command(subject)
        if command is None:
            return []
        before = subject.call if subject.kind == SUBMIT and subject.call is not None else command.index + 1
        piece: list[Call] = []
        for call in self.recorded(command.args["commandBuffer"], before):
            piece.append(call)
            if is_sync_operation(call):
                if command in piece:
                    return piece
                piece = []
        return piece

    def window(self, subject: Subject) -> list[Call]:
        """The commands between the two accesses, as recorded or, at submit, as executed; both excluded. When the first
        access cannot be told: all commands before the second one."""
        steps = self.steps(subject)
        return [step.call for step in steps[self.prior_position(subject, steps) + 1 :]]

    def steps(self, subject: Subject) -> list[Step]:
        """Commands before the second access: of its command buffer, or at submit of every execution so far."""
        own = self.command(subject)
        if own is None or "commandBuffer" not in own.args:
            return []
        if subject.kind != SUBMIT:
            return [Step(0, None, call) for call in self.recorded(own.args["commandBuffer"], own.index)]
        executing = self.at(subject.call)
        if executing is not None and executing.name == EXECUTE:
            primary = self.recorded(executing.args["commandBuffer"], executing.index)
            return [Step(0, None, call) for call in _until(primary + self._secondaries(executing), own)]
        steps: list[Step] = []
        before = steps
        for number, place, commands in self._executions(subject.call or 0):
            if self.is_own(subject, place):
                # A message does not name its batch: all that may lie before its command, up to the last it can mean.
                before = steps + [Step(number, place, call) for call in _until(commands, own)]
            steps += [Step(number, place, call) for call in commands]
        return before

    def prior_position(self, subject: Subject, steps: Sequence[Step]) -> int:
        """Position in `steps` of the latest step that can be the first access, -1 when there is none."""
        prior = subject.finding.prior if subject.finding is not None else None
        number = subject.message.seq_no if subject.message is not None else None
        for position in range(len(steps) - 1, -1, -1):
            step = steps[position]
            if prior is not None:
                place = (prior.submit, prior.batch, prior.position)
                if step.call.index == prior.call and step.place in (None, place):
                    return position
            elif (
                number
                and plain_command(step.call.name) == subject.key[2]
                and not (step.place and self.is_own(subject, step.place))
                and self._number(step.call) == number
            ):
                return position
        return -1

    def _number(self, call: Call) -> int:
        """The layer's `seq_no` of a recorded command."""
        commands = self.recorded(call.args["commandBuffer"], call.index + 1)
        return sum(is_numbered(each) for each in commands)

    def is_own(self, subject: Subject, place: tuple[int, int, int]) -> bool:
        """True when the second access belongs to that execution. (A message does not name its batch.)"""
        if subject.finding is not None:
            own = subject.finding.place
            return place == (own.submit, own.batch, own.position)
        return subject.message is not None and (place[0], place[2]) == (subject.call, subject.message.entry)

    def _executions(self, limit: int) -> Iterator[tuple[int, tuple[int, int, int], list[Call]]]:
        number = 0
        for call in self.calls:
            if call.index > limit:
                return
            if call.name.startswith("vkQueueSubmit"):
                for batch, command_buffers in enumerate(self.executed(call)):
                    for position, command_buffer in enumerate(command_buffers):
                        number += 1
                        yield number, (call.index, batch, position), self.recorded(command_buffer, call.index)


def _until(commands: list[Call], own: Call) -> list[Call]:
    """The commands before the (first) place where that one runs; before it in the trace when it does not run here."""
    for position, command in enumerate(commands):
        if command is own:
            return commands[:position]
    return [command for command in commands if command.index < own.index]


def is_sync_operation(call: Call) -> bool:
    """True for the commands at which a submitted command buffer is cut."""
    return call.name.startswith(SYNC_OPERATIONS)


def is_numbered(call: Call) -> bool:
    """True for commands that `seq_no` counts (1.3.239: `vkCmdDispatchBase` is passed over)."""
    return call.name.startswith(NUMBERED) and not call.name.startswith("vkCmdDispatchBase")


def common(one: Iterable[Touch], other: Iterable[Touch]) -> list[Touch]:
    """The parts of `one` whose addresses are in `other` too."""
    others = list(other)
    found: list[Touch] = []
    for touch in one:
        spans = tuple(
            (max(begin, start), min(end, until))
            for mate in others
            if mate.space == touch.space
            for begin, end in touch.spans
            for start, until in mate.spans
            if begin < until and start < end
        )
        if spans:
            found.append(replace(touch, spans=spans))
    return found


def scopes(call: Call) -> Iterator[Scope]:
    """The barriers of a vkCmdPipelineBarrier or vkCmdWaitEvents in any spelling; nothing for other commands."""
    if call.name.startswith("vkCmdPipelineBarrier"):
        yield from _scopes_of(call, call.args.get("pDependencyInfo") or call.args)
    elif call.name.startswith("vkCmdWaitEvents"):
        for info in call.args.get("pDependencyInfos") or (call.args,):
            yield from _scopes_of(call, info)


def _scopes_of(call: Call, info: dict[str, Any]) -> Iterator[Scope]:
    lists = (("memory", "pMemoryBarriers"), ("buffer", "pBufferMemoryBarriers"), ("image", "pImageMemoryBarriers"))
    count = 0
    for what, member in lists:
        for barrier in info.get(member) or ():
            count += 1
            yield Scope(
                call,
                what,
                barrier.get("srcStageMask", info.get("srcStageMask", 0)),
                barrier["srcAccessMask"],
                barrier.get("dstStageMask", info.get("dstStageMask", 0)),
                barrier["dstAccessMask"],
                what == "image" and barrier["oldLayout"] != barrier["newLayout"],
                info is not call.args,
                barrier.get(what, 0),
            )
    if count == 0 and info is call.args:
        yield Scope(call, "memory", info["srcStageMask"], 0, info["dstStageMask"], 0, False, False)


def _touches(effects: Iterable[Effect]) -> Iterator[Touch]:
    for effect in effects:
        if isinstance(effect, Access):
            sync = SYNC[effect.sync]
            silent = bool(effect.layer_silent)
            yield Touch(effect.resource, effect.space, effect.spans, sync.write, sync.stage, effect.atomic, silent)
        elif isinstance(effect, Barrier | WaitEvents):
            for barrier in (effect,) if isinstance(effect, Barrier) else effect.barriers:
                for part in barrier.ranges:
                    if part.transition:
                        yield Touch(part.resource, part.space, part.spans, True)
        elif isinstance(effect, SubpassBegin | PassEnd):
            for moved in effect.transitions:
                yield Touch(moved.resource, moved.space, moved.spans, True)
