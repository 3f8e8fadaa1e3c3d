"""From calls to occurrences: keeps the objects and asks the registered handlers what each call does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

# Importing a family registers its handlers.
from harness.commands import (  # noqa: F401
    acceleration,
    barrier,
    bind,
    clear,
    compute,
    coverage,
    descriptors,
    draw,
    dynamic_state,
    event,
    feedback,
    graphics,
    host_copy,
    memory,
    pipelines,
    presentation,
    query,
    recording,
    rendering,
    renderpass,
    secondary,
    semaphore,
    structures,
    submit,
    templates,
    transfer,
    vertex,
)
from harness.commands.objects import CommandBuffer, Objects
from harness.commands.registry import CALLS, COMMANDS
from harness.trace.calls import Block, Call, HostWrite
from harness.trace.effects import Command, Effect, HostWrote, Ignored, Occurrence, Recorded, Unmodelled
from harness.trace.resources import Memory


class Interpreter:
    """Turns a stream of blocks into occurrences. One object follows one program."""

    def __init__(self) -> None:
        self.objects = Objects()

    def step(self, block: Block) -> Iterable[Occurrence]:
        """What one block does; failed calls do nothing. Cost: one dictionary look-up for calls without a handler."""
        if isinstance(block, HostWrite):
            return self._host_write(block)
        if not block.succeeded:
            return ()
        handler = CALLS.get(block.name)
        if handler is not None:
            return handler(self.objects, block)
        if block.name.startswith("vkCmd"):
            return self._record(block)
        if block.name.startswith("vkQueue") and not block.name.endswith(_LABELS):
            return (Ignored(block.name),)
        return ()

    def _record(self, call: Call) -> tuple[Occurrence, ...]:
        args = call.args
        buffer = self.objects.get(CommandBuffer, args["commandBuffer"])
        if buffer is None:
            buffer = CommandBuffer(args["commandBuffer"], 0)
            self.objects.add(buffer)
        handler = COMMANDS.get(call.name)
        effects: tuple[Effect, ...]
        effects = (Unmodelled(call.name),) if handler is None else tuple(handler(self.objects, buffer, args))
        if not effects:
            return ()
        command = Command(call.index, call.name, call.site, effects)
        buffer.commands.append(command)
        return (Recorded(buffer.id, command, buffer.queue_flags),)

    def _host_write(self, write: HostWrite) -> Iterator[Occurrence]:
        held = self.objects.get(Memory, write.memory)
        size = held.size if held is not None else write.offset + len(write.data)
        end = min(size, write.offset + len(write.data))
        if write.offset < end:
            yield HostWrote(write.index, write.site, write.memory, (write.offset, end))


_LABELS = ("LabelEXT",)
