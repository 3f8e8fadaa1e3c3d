"""From calls to stream events: keeps the objects, and asks the registered handlers for the effects of each call."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable

from harness import commands
from harness.commands.handlers import ACTS_THOUGH, CALLS, COMMANDS
from harness.commands.object_state import CommandBuffer, ObjectState
from harness.commands.resources import host_access
from harness.spec.command_classes import CONDITIONAL, is_debug, is_recorded
from harness.trace.calls import Block, Call, HostRead, HostWrite
from harness.trace.effects import Command, Effect, Recorded, StreamEvent, Unmodelled, UnmodelledCall

# A module registers its handlers when it is imported, so that a new one needs no entry in a list.
for _module in pkgutil.walk_packages(commands.__path__, f"{commands.__name__}."):
    importlib.import_module(_module.name)


class Interpreter:
    """Turns a stream of blocks into stream events. One object follows one program."""

    def __init__(self) -> None:
        self.objects = ObjectState()

    def step(self, block: Block) -> Iterable[StreamEvent]:
        """The stream events of one block. Failed calls have none. Calls without a handler cost
        one dictionary look-up."""
        if isinstance(block, HostWrite):
            return host_access.host_write(self.objects, block)
        if isinstance(block, HostRead):
            return host_access.host_read(self.objects, block)
        if not block.succeeded and block.result not in ACTS_THOUGH.get(block.name, ()):
            return ()
        handler = CALLS.get(block.name)
        if handler is not None:
            return handler(self.objects, block)
        if is_recorded(block.name):
            return self._record(block)
        if block.name.startswith("vkQueue") and not is_debug(block.name):
            return (UnmodelledCall(block.name),)
        return ()

    def _record(self, call: Call) -> tuple[StreamEvent, ...]:
        args = call.args
        buffer = self.objects.get(CommandBuffer, args["commandBuffer"])
        if buffer is None:
            buffer = CommandBuffer(args["commandBuffer"], 0)
            self.objects.add(buffer)
        handler = COMMANDS.get(call.name)
        effects: tuple[Effect, ...]
        effects = (Unmodelled(call.name),) if handler is None else tuple(handler(self.objects, buffer, args))
        if buffer.condition and call.name.startswith(CONDITIONAL):
            effects = buffer.condition + effects
        late = buffer.late
        if not effects and late is None:
            return ()
        if self.objects.aliasing:
            effects = self.objects.aliasing.widen(effects)
        command = Command(call.index, call.name, call.site, effects)
        if late is not None:
            command.late, buffer.late, buffer.has_late = late, None, True
        buffer.commands.append(command)
        return (Recorded(buffer.id, command, buffer.queue_flags),)
