"""Accesses that `vkharness.commands` declares for each execution of a command. Observations are compared with them.

Addresses are those of the effects: bytes of a memory object for buffers, texel blocks of an image.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from vkharness.commands.interpret import Interpreter
from vkharness.commands.object_state import ObjectState
from vkharness.replay.observation.shader_bindings import Bound, bound
from vkharness.replay.schedule.render_pass_effects import transitions_of
from vkharness.replay.schedule.steps import Step, StepKind
from vkharness.spans import Span, merge
from vkharness.spec.command_classes import RUNS_SHADERS
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.trace.attachment_operations import AttachmentOperation
from vkharness.trace.calls import Block, Call, reading
from vkharness.trace.effects import (
    Access,
    Barrier,
    Command,
    Effect,
    Execute,
    RangeBarrier,
    Recorded,
    StreamEvent,
    Submitted,
    Unmodelled,
    UnmodelledCall,
    WaitEvents,
)
from vkharness.trace.sparse_effects import BindingUse

ExecutionKey = tuple[int, int, int, int, tuple[int, int]]
"""Submit, batch, position, call, and `executed_by`, as in `vkharness.replay.schedule.steps.Identity`."""
PLAIN = ("TRANSFER_READ", "COLOR_ATTACHMENT_READ", "DEPTH_STENCIL_ATTACHMENT_READ")
"""Ends of the names of access kinds that take values as they are."""
COUNTS = ("INDIRECT_COMMAND_READ", "INDEX_READ")
"""The same for those that say how much a command does."""
BySpace = dict[int, list[Span]]
"""Spans by address space."""


@dataclass(slots=True)
class Declared:
    """The declared accesses of one command, or of several together."""

    reads: BySpace = field(default_factory=dict)
    writes: BySpace = field(default_factory=dict)
    named_writes: BySpace = field(default_factory=dict)
    """The part of `writes` in the resources that are named, and not in others that share their memory."""
    plain_reads: BySpace = field(default_factory=dict)
    """The part of `reads` that takes values as they are: of transfers and attachments. Others steer what happens."""
    counts: BySpace = field(default_factory=dict)
    """The part of `reads` that says how much a command does: indices and indirect parameters."""
    shader_writes: BySpace = field(default_factory=dict)
    """The part of `writes` that shaders make. They may read the same bytes, which no effect says."""
    colors: BySpace = field(default_factory=dict)
    """The part of `reads` and `writes` that are accesses of colour attachments."""
    resolves: BySpace = field(default_factory=dict)
    """The part of `writes` that resolve operations at the end of rendering make."""
    bindings: BySpace = field(default_factory=dict)
    """Addresses of sparse resources, bound to memory or not, by resource."""
    anything: bool = False
    """Whether a part of the command is not modelled, so that it may access anything."""

    def add(self, effect: Effect) -> None:
        """Takes in one effect."""
        if isinstance(effect, Access):
            self._access(effect)
        elif isinstance(effect, Barrier):
            self._transitions(effect.ranges)
        elif isinstance(effect, WaitEvents):
            self._transitions(each for barrier in effect.barriers for each in barrier.ranges)
        elif isinstance(effect, BindingUse):
            _put(self.bindings, effect.resource, effect.spans)
        elif isinstance(effect, Unmodelled):
            self.anything = True
        for each in transitions_of(effect):
            _put(self.reads, each.space, each.spans)
            _put(self.writes, each.space, each.spans)
            _put(self.named_writes, each.space, each.spans)

    def merge(self, other: Declared) -> None:
        """Takes in all of another one."""
        for mine, theirs in (
            (self.reads, other.reads),
            (self.writes, other.writes),
            (self.named_writes, other.named_writes),
            (self.plain_reads, other.plain_reads),
            (self.counts, other.counts),
            (self.shader_writes, other.shader_writes),
            (self.resolves, other.resolves),
            (self.colors, other.colors),
            (self.bindings, other.bindings),
        ):
            for space, spans in theirs.items():
                _put(mine, space, spans)
        self.anything = self.anything or other.anything

    def _access(self, access: Access) -> None:
        kind = ACCESS_KINDS[access.access_kind]
        targets = [self.writes] if kind.write else [self.reads]
        if access.atomic:
            targets = [self.reads, self.writes, self.shader_writes]
        elif kind.write and "SHADER" in kind.name:
            targets.append(self.shader_writes)
        elif kind.name.endswith(PLAIN):
            targets.append(self.plain_reads)
        elif kind.name.endswith(COUNTS):
            targets.append(self.counts)
        elif access.operation is AttachmentOperation.RESOLVE_WRITE:
            targets.append(self.resolves)
        if kind.name.endswith(("COLOR_ATTACHMENT_READ", "COLOR_ATTACHMENT_WRITE")):
            targets.append(self.colors)
        if kind.write or access.atomic:
            _put(self.named_writes, access.space, access.spans)
        for target in targets:
            _put(target, access.space, access.spans)
            for alias in access.aliases:
                _put(target, alias.space, alias.spans)

    def _transitions(self, ranges: Iterable[RangeBarrier]) -> None:
        for each in ranges:
            if each.transition:
                _put(self.named_writes, each.space, each.spans)
                for target in (self.reads, self.writes):
                    _put(target, each.space, each.spans)
                    for alias in each.aliases:
                        _put(target, alias.space, alias.spans)


def _put(target: BySpace, space: int, spans: Iterable[Span]) -> None:
    target[space] = list(merge([*target.get(space, ()), *spans]))


class DeclaredAccesses:
    """The declared accesses of a whole trace, by execution."""

    def __init__(self, blocks: list[Block]) -> None:
        self._commands: dict[ExecutionKey, Command] = {}
        self.places: dict[int, tuple[int, int]] = {}
        """Buffer to the space of its addresses and where it begins there."""
        self.bound: dict[int, Bound] = {}
        """Shaders, descriptors and push constants with which commands that run shaders were recorded, by call."""
        self.shared: set[int] = set()
        """Resources that share memory with an image."""
        self.unmodelled: set[str] = set()
        """Calls outside command buffers, or parts of them, that are not modelled, in words."""
        interpreter = Interpreter(bounds=True)
        for block in blocks:
            with reading(block):
                for event in interpreter.step(block):
                    self._follow(event)
                    if isinstance(event, Recorded) and event.command.name.startswith(RUNS_SHADERS):
                        command, late = event.command, event.command.late is not None
                        self.bound[command.call] = bound(interpreter.objects, event.command_buffer, command.name, late)
                if isinstance(block, Call) and block.name.startswith("vkBind"):
                    self._bound(interpreter.objects, block)

    @classmethod
    def of_events(cls, events: Iterable[StreamEvent]) -> DeclaredAccesses:
        """Those that stream events tell, which somebody has interpreted already: without `places`, `bound` and
        `shared`. Accesses that follow from unknown contents are missing where the interpreter left them out."""
        found = cls([])
        for event in events:
            found._follow(event)
        return found

    def _follow(self, event: StreamEvent) -> None:
        if isinstance(event, Submitted):
            self._submitted(event)
        elif isinstance(event, UnmodelledCall):
            self.unmodelled.add(event.what)

    def _bound(self, objects: ObjectState, call: Call) -> None:
        for info in call.args.get("pBindInfos", [call.args]) or ():
            buffer = objects.buffer(info.get("buffer", 0))
            if buffer is not None:
                self.places[buffer.id] = (buffer.space, buffer.offset)
        self.shared |= objects.aliasing.overlapping

    def _submitted(self, event: Submitted) -> None:
        for batch in event.batches:
            for position, (_, commands) in enumerate(batch.buffers):
                for execution, command in _executions((event.call, batch.batch, position), commands):
                    self._commands[execution] = command

    def of(self, step: Step) -> Declared:
        """The accesses of one step; none for a step that no submit executes."""
        where = step.identity
        found = Declared()
        command = self._commands.get((where.submit, where.batch, where.position, where.call, where.executed_by))
        if command is not None and step.kind is not StepKind.BEGIN:
            for effect in command.effects:
                found.add(effect)
        return found


def _executions(where: tuple[int, int, int], commands: Iterable[Command]) -> Iterator[tuple[ExecutionKey, Command]]:
    for command in commands:
        yield (*where, command.call, (0, 0)), command
        for effect in command.effects:
            if isinstance(effect, Execute):
                for place, (_, inner) in enumerate(effect.buffers):
                    for each in inner:
                        yield (*where, each.call, (command.call, place)), each
