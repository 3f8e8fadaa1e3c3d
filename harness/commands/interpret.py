"""From calls to occurrences: keeps the objects and asks the registered handlers what each call does."""

from __future__ import annotations

from collections.abc import Iterable

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
    mapped,
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
from harness.commands.registry import ACTS_THOUGH, CALLS, COMMANDS
from harness.trace.calls import Block, Call, HostRead, HostWrite
from harness.trace.effects import Command, Effect, Ignored, Occurrence, Recorded, Unmodelled


class Interpreter:
    """Turns a stream of blocks into occurrences. One object follows one program."""

    def __init__(self) -> None:
        self.objects = Objects()

    def step(self, block: Block) -> Iterable[Occurrence]:
        """What one block does; failed calls do nothing. Cost: one dictionary look-up for calls without a handler."""
        if isinstance(block, HostWrite):
            return mapped.host_write(self.objects, block)
        if isinstance(block, HostRead):
            return mapped.host_read(self.objects, block)
        if not block.succeeded and block.result not in ACTS_THOUGH.get(block.name, ()):
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
        if self.objects.aliasing:
            effects = self.objects.aliasing.widen(effects)
        command = Command(call.index, call.name, call.site, effects)
        buffer.commands.append(command)
        return (Recorded(buffer.id, command, buffer.queue_flags),)


_LABELS = ("LabelEXT",)
