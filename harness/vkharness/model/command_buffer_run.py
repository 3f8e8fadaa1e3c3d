"""The execution of the command buffers of one batch on one queue. The rules for effects act through it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from vkharness.findings import Certainty, Place
from vkharness.model.command_streams import CommandStream
from vkharness.model.opinion import ModelAccess
from vkharness.model.order import ACTION, Node
from vkharness.model.past_access import is_write
from vkharness.model.program import Program
from vkharness.model.stages import ACCESS_KINDS
from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED
from vkharness.trace.effects import Access, AutomaticTransition, Command, Submitted, SubpassDependency


@dataclass(slots=True)
class InstanceStreams:
    """A render pass instance in progress: the command stream around it, and one for each subpass that began."""

    outer: CommandStream
    dependencies: tuple[SubpassDependency, ...]
    number: int
    subpasses: dict[int, CommandStream] = field(default_factory=dict)
    entered: list[tuple[AutomaticTransition, int, int]] = field(default_factory=list)
    """The automatic transitions so far, with their nodes and the subpasses at whose begin they were made."""
    current: int = 0
    """The subpass that began last."""
    operations: list[tuple[tuple[int, ...], CommandStream]] = field(default_factory=list)
    """The load, store and resolve operations of attachments that several subpasses use, with these subpasses."""


class CommandBufferRun:
    """The position in an execution: queue, command buffer, command, and the render pass instance around it."""

    def __init__(self, program: Program, submitted: Submitted, stream: CommandStream) -> None:
        self.program = program
        self.submitted = submitted
        self.stream = stream
        self.instance: InstanceStreams | None = None
        self.command: Command = Command(submitted.call, submitted.name, submitted.site, ())
        self.execution = 0
        """Number of this execution of the command."""
        self._buffer = 0
        self._batch = self._position = 0
        self._executed_by: tuple[int, int] | None = None
        self._nodes: dict[tuple[int, int], int] = {}

    @property
    def queue_flags(self) -> int:
        """VkQueueFlags of the queue's family."""
        return self.submitted.queue_flags

    @property
    def family(self) -> int:
        """The queue's family; VK_QUEUE_FAMILY_IGNORED when it is not known."""
        return self.submitted.family

    @property
    def place(self) -> Place:
        """The command that is being executed."""
        return Place(
            self.command.call,
            self.command.name,
            self.command.site,
            self._buffer,
            self.submitted.call or None,
            self._batch,
            self._position,
            self.submitted.queue,
            executed_by=self._executed_by,
        )

    def buffer(self, id: int, commands: Iterable[Command], batch: int, position: int) -> Iterator[Command]:
        """Executes a command buffer, and yields each of its commands before it is executed."""
        self._buffer, self._batch, self._position = id, batch, position
        self.program.unexecuted.pop(id, None)
        for command in commands:
            self.command = command
            yield command
            self.commands((command,))

    def commands(self, commands: Iterable[Command]) -> None:
        """Executes commands in order. Each execution of a command gets a number of its own."""
        for command in commands:
            self.command = command
            self.begin_operation()
            for effect in command.effects[: command.sure]:
                rule = self.program.rules.effects.get(type(effect))
                if rule is not None:
                    rule(self, effect)

    def begin_operation(self) -> None:
        """Begins another operation of the command. It has nodes of its own, and may conflict with those before."""
        self.execution = next(self.program.numbers)
        self._nodes.clear()

    def secondary(self, id: int, commands: Iterable[Command], position: int) -> None:
        """Executes a secondary command buffer in place."""
        held = self._buffer, self.command, self._executed_by
        self._buffer, self._executed_by = id, (self.command.call, position)
        self.program.unexecuted.pop(id, None)
        self.commands(commands)
        self._buffer, self.command, self._executed_by = held

    def operation(self, stage: int) -> int:
        """The node of the command's work in a stage. It is made when it is first asked for."""
        key = (self.stream.id, stage)
        node = self._nodes.get(key)
        if node is None:
            order = self.program.order
            label = f"{self.command.name} ({self.command.call})"
            before = (self.stream.before(stage), "second synchronization scope")
            node = self._nodes[key] = order.add(Node(ACTION, label, self.place, stage), before)
            self.stream.issue(stage, order.set_of(node))
        return node

    def access(self, access: Access) -> None:
        """Makes an access of the command, at the node of the stage of its kind of access."""
        kind = ACCESS_KINDS[access.access_kind]
        node = self.operation(kind.stage)
        instance = self.instance.number if self.instance is not None else self.stream.instance
        where = self.place, self.stream.id, self.execution
        self.program.access(access, node, *where, instance=instance, within=self._within())
        self.own(access, kind.name, node, access.atomic or not kind.write)
        if is_write(access):
            self.program.ownership.wrote(access.space, access.spans)
            for alias in access.aliases:
                self.program.ownership.wrote(alias.space, alias.spans)

    def _within(self) -> int:
        """The stream of the subpass in which an operation is made that has a stream of its own; 0 for others."""
        around = None if self.instance is None else self.instance.subpasses.get(self.instance.current)
        return 0 if around is None or around is self.stream else around.id

    def own(self, access: Access, name: str, node: int, contents: bool) -> None:
        """Notes that the queue's family uses a resource; `contents` says whether the use depends on what the resource
        holds."""
        if self.family != VK_QUEUE_FAMILY_IGNORED:
            use = ModelAccess(self.place, name, is_write(access), node)
            where = (access.space, access.resource, access.spans)
            owners, may = self.program.ownership, access.certainty is Certainty.BOUND and not use.write
            losses = owners.may_use(*where, self.family) if may else owners.use(*where, self.family, use, contents)
            self.program.lose(losses, use, access.resource, Certainty.BOUND if may else Certainty.EXACT)
