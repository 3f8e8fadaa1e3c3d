"""A recorded stream as the conditions of known differences look at it: its calls, and what each command touches.

A condition explains a difference that two judges already have; it does not judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import NamedTuple

from vkharness.commands.interpret import Interpreter
from vkharness.layer.touches import Facts, Touch, common, facts_of, touches_of, with_effects
from vkharness.spec.command_classes import is_recorded, is_submit
from vkharness.spec.enums import VkCommandBufferUsage, VkImageCreate
from vkharness.trace.calls import Block, Call
from vkharness.trace.effects import Command, Execute, Recorded, Submitted
from vkharness.trace.host_effects import HostWaitedSemaphores
from vkharness.trace.open_commands import may_access
from vkharness.trace.shared_payloads import memory_import
from vkharness.trace.submits import batches

BEGIN, EXECUTE, CLEAR_ATTACHMENTS = "vkBeginCommandBuffer", "vkCmdExecuteCommands", "vkCmdClearAttachments"
SYNC_OPERATIONS = (
    "vkCmdPipelineBarrier", "vkCmdSetEvent", "vkCmdResetEvent", "vkCmdWaitEvents", "vkCmdBeginRenderPass",
    "vkCmdNextSubpass", "vkCmdEndRenderPass")  # fmt: skip
"""Beginnings of the commands at which 1.3.239 cuts a command buffer into segments when it is submitted."""

NUMBERED = (
    *SYNC_OPERATIONS, "vkCmdBlitImage", "vkCmdClearColorImage", "vkCmdClearDepthStencilImage", "vkCmdCopy",
    "vkCmdDispatch", "vkCmdDraw", "vkCmdFillBuffer", "vkCmdResolveImage", "vkCmdUpdateBuffer", "vkCmdWriteBufferMarker",
)  # fmt: skip
"""Beginnings of the commands that `seq_no` counts. (1.3.239 passes over `vkCmdDispatchBase`.)"""

NUMBERED_TODAY = ("vkCmdBeginRendering", "vkCmdEndRendering", CLEAR_ATTACHMENTS, EXECUTE)

SHADED = ("vkCmdDraw", "vkCmdDispatch")
SPARSE_MAKERS = {"vkCreateBuffer": "pBuffer", "vkCreateImage": "pImage"}
SPARSE_BINDING = VkImageCreate.SPARSE_BINDING  # one value in VkImageCreateFlags and VkBufferCreateFlags
KNOWN_ANYWAY = (*SHADED, "vkCmdBeginRendering")
"""Beginnings of the commands of which something is known although they access nothing."""

Executed = tuple[int, int, int]
"""(submit, batch, position) of a command buffer that is executed."""


class Address(NamedTuple):
    """Where 1.3.239 puts a resource: one map for linear memory and one for images with optimal tiling, in each by the
    order in which memory was allocated, then by the offset in it."""

    linear: bool
    memory: int
    offset: int


class Stream:
    """The calls of a trace, indexed. Building, and each question about a command buffer, is linear in the trace."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        self.blocks = list(blocks)  # in order of their indices
        self.calls = [block for block in self.blocks if isinstance(block, Call)]
        views = (call.args for call in self.calls if call.name == "vkCreateImageView")
        self._views: dict[int, int] = {args["pView"]: args["pCreateInfo"]["image"] for args in views}
        self._imports = any(call.name == "vkAllocateMemory" and memory_import(call) for call in self.calls)
        self._shared: dict[int, int] = {}
        self._sparse: set[int] | None = None
        self._by_index = {call.index: call for call in self.calls}
        self._interpreter = Interpreter(bounds=True)
        self.objects = self._interpreter.objects
        """The objects that exist at the end of the trace; filled when a command is first asked about."""
        self._facts: dict[int, Facts] | None = None
        self._executed: dict[tuple[Executed, int], Facts] = {}
        self._idle: dict[int, Facts] = {}
        self._idle_anyway: set[int] = set()  # where we judge them late, whatever is asked
        self._is_late: bool | None = None
        self.execution: Executed | None = None
        """The execution in which commands are looked at; None for where they are recorded."""
        self.recorded_touches: dict[tuple[Executed | None, int], Sequence[Touch]] = {}
        """By execution and block index, the touches that today's layer records, as far as somebody asked
        (`silence.recorded_touches`)."""
        self._seen: dict[int, Sequence[Touch]] = {}
        self.earlier: Sequence[Sequence[Touch]] = ()
        """Accesses of the commands in earlier command buffers, where the commands of one execution are looked at."""
        self._recorded: dict[tuple[int, int], list[Call]] = {}
        self._inherits: dict[int, bool] = {}
        self._values: list[tuple[int, Submitted | HostWaitedSemaphores]] = []
        self._settled: dict[int, Sequence[Touch]] = {}
        self._addresses: dict[int, Address] | None = None
        self.second_opinion: tuple[frozenset[tuple[int, str, int, str]], ...] = ()  # see `order_conditions`

    def at(self, index: int | None) -> Call | None:
        """The call with that block index."""
        return None if index is None else self._by_index.get(index)

    def viewed(self, id: int) -> int:
        """The image of an image view, and the one that stands for images with one payload; any other id as it is."""
        image = self._views.get(id, id)
        return self.standing_for.get(image, image)

    @property
    def standing_for(self) -> dict[int, int]:
        """Objects that share a payload with another one, which stands for them in findings."""
        if self._imports:
            self._facts = self._facts or self._interpret()
        return self._shared

    def is_sparse(self, resource: int) -> bool:
        """True for a buffer or image that was made to be bound by vkQueueBindSparse."""
        if self._sparse is None:
            made = [(call, SPARSE_MAKERS[call.name]) for call in self.calls if call.name in SPARSE_MAKERS]
            self._sparse = {
                call.args[key] for call, key in made if call.args["pCreateInfo"].get("flags", 0) & SPARSE_BINDING
            }
        return resource in self._sparse

    def recorded(self, command_buffer: int, before: int) -> list[Call]:
        """Commands in that command buffer since it was last begun before block index `before`; those of secondaries
        after the vkCmdExecuteCommands that runs them."""
        known = self._recorded.get((command_buffer, before))
        if known is not None:
            return known
        commands: list[Call] = []
        for call in self.calls:
            if call.index >= before:
                break
            if call.args.get("commandBuffer") != command_buffer:
                continue
            if call.name == BEGIN:
                commands = []
            elif is_recorded(call.name):
                commands += [call, *self.secondaries(call)]
        self._recorded[command_buffer, before] = commands
        return commands

    def numbers_of(self, index: int) -> set[int]:
        """The numbers that a command can have in its command buffer, as `seq_no` counts in one version or another;
        none for another call."""
        call = self.at(index)
        if call is None or not is_recorded(call.name):
            return set()
        buffer = call.args["commandBuffer"]
        own = [each for each in self.recorded(buffer, index + 1) if each.args["commandBuffer"] == buffer]
        return {sum(map(is_numbered, own)), sum(map(is_numbered_today, own))}

    def secondaries(self, call: Call) -> list[Call]:
        """The commands that a vkCmdExecuteCommands runs; none for other commands."""
        buffers = (call.args["pCommandBuffers"] or ()) if call.name == EXECUTE else ()
        return [command for buffer in buffers for command in self.recorded(buffer, call.index)]

    def inherits(self, index: int) -> bool:
        """True for a command of a secondary command buffer that continues a render pass instance."""
        if index not in self._inherits:
            self._inherits[index] = self._is_inheriting(index)
        return self._inherits[index]

    def _is_inheriting(self, index: int) -> bool:
        buffer = self._by_index[index].args.get("commandBuffer") if index in self._by_index else None
        begun = [call for call in self.calls if call.name == BEGIN and call.index < index]
        infos = [call.args.get("pBeginInfo") or {} for call in begun if call.args["commandBuffer"] == buffer]
        return bool(infos and infos[-1].get("flags", 0) & VkCommandBufferUsage.RENDER_PASS_CONTINUE)

    def executed(self, submit: Call | None) -> list[list[int]]:
        """Command buffers of each batch of one vkQueueSubmit*; those of a vkCmdExecuteCommands as one batch."""
        if submit is not None and submit.name == EXECUTE:
            return [list(submit.args["pCommandBuffers"] or ())]
        return [list(batch.command_buffers) for batch in batches(submit.args)] if submit is not None else []

    def executions(self, limit: int) -> Iterator[tuple[int, Executed, list[Call]]]:
        """Every execution of a command buffer up to block index `limit`: its number, its place and its commands."""
        number = 0
        for call in self.calls:
            if call.index > limit:
                return
            if is_submit(call.name):
                for batch, command_buffers in enumerate(self.executed(call)):
                    for position, command_buffer in enumerate(command_buffers):
                        number += 1
                        yield number, (call.index, batch, position), self.recorded(command_buffer, call.index)

    def facts(self, call: Call) -> Facts:
        """Gives the facts of a vkCmd*, in the execution looked at, if any. The first call interprets the trace."""
        if self._facts is None:
            self._facts = self._interpret()
        executed = self._executed.get((self.execution, call.index)) if self.execution else None
        late = call.index in self._idle_anyway if self._is_late is None else self._is_late
        idle = self._idle.get(call.index) if late else None
        return executed or idle or self._facts.get(call.index, Facts())

    def found(self, *, late: bool) -> Stream:
        """This stream as it is where a recording is judged when it is submitted (`late`), or while it is recorded."""
        other = copy(self)
        other._is_late, other.recorded_touches = late, {}
        return other

    def as_executed(self, execution: Executed | None, earlier: Sequence[Sequence[Touch]] = ()) -> Stream:
        """This stream with what its commands do in that execution, where that follows from contents of memory; with
        what they do where they are recorded for None. `earlier` is kept."""
        self._facts = self._facts or self._interpret()
        seen = copy(self)
        seen.execution, seen.earlier = execution, earlier
        return seen

    def seen_as(self, seen: dict[int, Sequence[Touch]]) -> Stream:
        """This stream with other touches of commands, by their block indices."""
        other = copy(self)
        other._seen, other.recorded_touches = seen, {}
        return other

    def _interpret(self) -> dict[int, Facts]:
        interpreter, found = self._interpreter, dict[int, Facts]()
        executed: list[tuple[Executed, Command]] = []
        for block in self.blocks:
            events = interpreter.step(block)
            if self._imports:  # a payload is forgotten with the last object that has it
                self._shared.update(interpreter.objects.payloads.standing_for)
            if not events and isinstance(block, Call) and block.name.startswith(KNOWN_ANYWAY):  # it accesses nothing
                found[block.index] = facts_of(interpreter.objects, block, ())
            for event in events:
                if isinstance(event, Recorded) and isinstance(block, Call):
                    made, step = event.command, event.command.undecided
                    facts = facts_of(interpreter.objects, block, made.effects[: made.sure], made.effects)
                    facts = with_effects(facts, made)
                    loads = bool(step and step.loads_values)
                    found[block.index] = facts._replace(loads=loads, is_open=bool(may_access(made)))
                    # Where a secondary is executed, the attachments are known that its commands access.
                    buffers = (held for each in made.effects if isinstance(each, Execute) for held in each.buffers)
                    for command in (command for _, commands in buffers for command in commands):
                        found[command.call] = with_effects(found[command.call], command)
                elif isinstance(event, Submitted | HostWaitedSemaphores):
                    self._values.append((block.index, event))
                if isinstance(event, Submitted):
                    executed += _by_contents(found, event)
                    self._settle(found, event)
        self._leave_idle(found, executed)
        self._executed = _at_execution(found, executed)
        return found

    def is_settled(self, call: int) -> bool:
        """Whether values that its shaders load decide what a recorded dispatch or draw accesses."""
        self._facts = self._facts or self._interpret()
        return call in self._settled

    def settled(self, call: Call) -> Sequence[Touch]:
        """The accesses of such a dispatch or draw, by those values."""
        sure = self._settled.get(call.index) if self.is_settled(call.index) else None
        return [each for each in self.touches(call) if each not in sure] if sure is not None else []

    def _leave_idle(self, found: dict[int, Facts], executed: Sequence[tuple[Executed, Command]]) -> None:
        """Takes an indirect command that runs nothing wherever it is executed for idle where it is recorded, too: for
        all, if it comes after one of which contents of memory decide whether it accesses the same addresses; else for
        what was found late."""
        made: dict[int, set[Touch]] = {}
        for _, command in executed:
            made.setdefault(command.call, set()).update(touches_of(command.effects))
        for index, touches in made.items():
            call, known = self._by_index[index], found[index]
            if all("_INDIRECT_COMMAND_" in each.access for each in touches):
                left = tuple(each for each in known.touches if each not in touches)
                sure = tuple(each for each in known.touches if each in touches)
                before = (found.get(each.index) for each in self.recorded(call.args["commandBuffer"], index))
                late = any(each.is_open and common((*each.touches, *each.left_out), left) for each in before if each)
                self._idle[index] = known._replace(touches=sure, left_out=(*known.left_out, *left))
                self._idle_anyway.update([index] if late else [])

    def _settle(self, found: dict[int, Facts], submitted: Submitted) -> None:
        """Gives commands that loaded values decide what they touch when they are executed first."""
        for _, command in _executions(submitted):
            known = found.get(command.call, Facts())
            touches = tuple(touches_of(command.effects)) if known.left_out and known.loads else ()
            if any("_SHADER_" in each.access for each in touches):  # it ran
                found[command.call] = known._replace(effects=command.effects, touches=touches, left_out=())
                self._settled[command.call] = known.touches

    def values_between(self, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Values of timeline semaphores in block indices [begin, end), in order: (the stages for which a submit signals
        it, 0 where the host waited for it; semaphore; value)."""
        self._facts = self._facts or self._interpret()
        for at, event in self._values:
            if not begin <= at < end:
                continue
            if isinstance(event, HostWaitedSemaphores):
                yield from ((0, semaphore, value) for semaphore, value in event.values)
            else:
                signals = (each for batch in event.batches for each in batch.signals)
                yield from ((each.stages, each.semaphore, each.value) for each in signals if each.stages)

    def touches(self, call: Call) -> Sequence[Touch]:
        """Gives the reads and writes of a vkCmd*, layout transitions included."""
        seen = self._seen.get(call.index)
        return self.facts(call).touches if seen is None else seen

    def reads(self, call: Call) -> set[int]:
        """Resources that the command reads."""
        return {touch.resource for touch in self.touches(call) if not touch.write}

    def writes(self, call: Call) -> set[int]:
        """Resources that the command writes, or whose layout it changes."""
        return {touch.resource for touch in self.touches(call) if touch.write}

    def address_of(self, resource: int) -> Address:
        """Where 1.3.239 puts a buffer or image."""
        if self._addresses is None:
            self._addresses = self._place()
        return self._addresses.get(resource, Address(True, 0, 0))

    def _place(self) -> dict[int, Address]:
        made = [call for call in self.calls if call.succeeded]
        allocated = {call.args["pMemory"]: call.index for call in made if call.name == "vkAllocateMemory"}
        images = [call.args for call in made if call.name == "vkCreateImage"]
        optimal = {args["pImage"] for args in images if not args["pCreateInfo"]["tiling"]}
        found: dict[int, Address] = {}
        for call in self.calls:
            if call.name.startswith(("vkBindBufferMemory", "vkBindImageMemory")):
                for bind in call.args.get("pBindInfos") or [call.args]:
                    resource = bind.get("buffer", bind.get("image", 0))
                    memory = allocated.get(bind["memory"], 0)
                    found[resource] = Address(resource not in optimal, memory, bind["memoryOffset"])
        return found


def is_sync_operation(call: Call) -> bool:
    """True for the commands at which a submitted command buffer is cut."""
    return call.name.startswith(SYNC_OPERATIONS)


def is_numbered(call: Call) -> bool:
    """True for commands that `seq_no` counts."""
    return call.name.startswith(NUMBERED) and not call.name.startswith("vkCmdDispatchBase")


def is_numbered_today(call: Call) -> bool:
    """The same for today's layer."""
    return call.name.startswith((*NUMBERED, *NUMBERED_TODAY))


def _by_contents(found: dict[int, Facts], submitted: Submitted) -> Iterator[tuple[Executed, Command]]:
    """The indirect commands of a submit and those that load values, those of secondaries too, each with its
    execution."""
    for execution, command in _executions(submitted):
        loads = command.call in found and found[command.call].loads
        if command.name.startswith(SHADED) and ("Ind" in command.name or loads):
            yield execution, command


def _executions(submitted: Submitted) -> Iterator[tuple[Executed, Command]]:
    """The commands of a submit, those of secondaries too, each with its execution."""
    for number, batch in enumerate(submitted.batches):
        for position, (_, commands) in enumerate(batch.buffers):
            several = [commands]
            while several:
                for command in several.pop():
                    yield (submitted.call, number, position), command
                    several += [
                        inner for each in command.effects if isinstance(each, Execute) for _, inner in each.buffers
                    ]


def _at_execution(
    recorded: dict[int, Facts], executed: Sequence[tuple[Executed, Command]]
) -> dict[tuple[Executed, int], Facts]:
    """The facts of commands in their executions. What they touch elsewhere and not there is left out there."""
    touched = [(execution, command.call, tuple(touches_of(command.effects))) for execution, command in executed]
    every: dict[int, dict[Touch, None]] = {}
    for _, call, touches in touched:
        known = recorded[call]
        every.setdefault(call, dict.fromkeys((*known.touches, *known.left_out))).update(dict.fromkeys(touches))
    return {
        (execution, call): recorded[call]._replace(
            touches=touches, left_out=tuple(each for each in every[call] if each not in touches)
        )
        for execution, call, touches in touched
    }
