"""From calls to stream events: keeps the objects, and asks the registered handlers for the effects of each call."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable

from harness import commands
from harness.commands.contents.content_steps import ANYTHING, WritesLate
from harness.commands.handlers import ACTS_THOUGH, CALLS, COMMANDS
from harness.commands.object_state import CommandBuffer, ObjectState
from harness.commands.resources import host_access
from harness.findings import UserError
from harness.spec.command_classes import CONDITIONAL, is_debug, is_recorded
from harness.trace import work_budget
from harness.trace.calls import Block, Call, HostWrite, block_name
from harness.trace.effects import Command, Effect, Recorded, StreamEvent, Unmodelled, UnmodelledCall
from harness.trace.work_budget import A_CALL, UNITS, OverBudget

# A module registers its handlers when it is imported, so that a new one needs no entry in a list.
for _module in pkgutil.walk_packages(commands.__path__, f"{commands.__name__}."):
    importlib.import_module(_module.name)

MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, UserError, ValueError)
"""What reading a call raises when its values do not fit its command."""
MOST_SAID = 200
"""Characters of the reason why a call cannot be followed."""


class Interpreter:
    """Turns a stream of blocks into stream events. One object follows one program."""

    def __init__(self, bounds: bool = False, assumed_rewrites: bool | None = None) -> None:
        """`bounds`: what could be reached at most counts as accessed where contents of memory are unknown.
        `assumed_rewrites`: see `ObjectState.assumed_rewrites`."""
        work_budget.begin_stream()
        self.objects = ObjectState()
        self.objects.contents.bounds = bounds
        self.objects.assumed_rewrites = assumed_rewrites

    def step(self, block: Block) -> Iterable[StreamEvent]:
        """The stream events of one block. Failed calls have none. Calls without a handler cost
        one dictionary look-up.

        A call with values that mean nothing, as hostile traces have them, is named as not modelled. Raises OverBudget
        when a call asks for more work than its stream may.
        """
        UNITS.left += A_CALL
        try:
            if self.objects.payloads.standing_for:
                block = self.objects.payloads.resolved(block)
            if not isinstance(block, Call):
                if isinstance(block, HostWrite):
                    return tuple(host_access.host_write(self.objects, block))
                return tuple(host_access.host_read(self.objects, block))
            if block.result and not block.succeeded and block.result not in ACTS_THOUGH.get(block.name, ()):
                return ()
            if block.unread and "commandBuffer" not in block.args:
                return self._unread(block)
            if block.name in COMMANDS:
                return self._record(block)
            handler = CALLS.get(block.name)
            if handler is not None and not block.unread:
                return tuple(handler(self.objects, block))
            if is_recorded(block.name):
                return self._record(block)
            if block.name.startswith("vkQueue") and not is_debug(block.name):
                self.objects.contents.memory.forget_all()
                return (UnmodelledCall(block.name),)
            return ()
        except OverBudget as error:
            where = f"{UNITS.source}: block" if UNITS.source else "block"
            raise OverBudget(f"{where} {block.index}: {block_name(block)}: {error}") from None
        except MALFORMED as error:
            name, why = block_name(block), f"block {block.index}: {type(error).__name__}: {error}"
            return self._unread(Call(block.index, name, {}, unread=why[:MOST_SAID]))

    def _unread(self, call: Call) -> Iterable[StreamEvent]:
        """A call that the trace's reader could not read: nobody knows what it changed."""
        if is_debug(call.name):
            return ()
        self.objects.contents.memory.forget_all()
        return (UnmodelledCall(f"{call.name} ({call.unread})"),)

    def _record(self, call: Call) -> tuple[StreamEvent, ...]:
        name, args = call.name, call.args
        buffer = self.objects.get(CommandBuffer, args["commandBuffer"])
        if buffer is None:
            buffer = CommandBuffer(args["commandBuffer"], 0)
            self.objects.add(buffer)
        handler = COMMANDS.get(name)
        steps = buffer.steps
        known = len(steps)
        effects: tuple[Effect, ...]
        if call.unread:
            effects = (Unmodelled(f"{name} ({call.unread})"),)
        else:
            effects = (Unmodelled(name),) if handler is None else tuple(handler(self.objects, buffer, args))
        deferred, buffer.deferred = buffer.deferred, None
        if buffer.condition and name.startswith(CONDITIONAL):
            effects = buffer.condition + effects
            if deferred is not None and deferred.sure is not None:
                deferred.sure += len(buffer.condition)
        late = buffer.late
        if not effects and late is None:
            if len(steps) > known:
                del steps[known:]
            return ()
        aliasing = bool(self.objects.aliasing)
        if aliasing:
            effects = self.objects.aliasing.widen(effects)
        sure = None
        if deferred is not None:
            sure = deferred.sure if deferred.idle else len(effects) - deferred.open if deferred.open else None
        elif self.objects.sparse.resources:
            effects, sure = self.objects.sparse.open_last(effects)
        command = Command(call.index, name, call.site, effects, sure, undecided=deferred)
        if deferred is not None and deferred.writes is not None:
            steps.append(WritesLate(len(buffer.commands), deferred.writes))
        elif aliasing or not ((deferred is None and len(steps) > known) or name.startswith("vkCmdDraw")):
            steps.append(command)
        if late is not None:
            command.late, buffer.late, buffer.has_late = late, None, True
            if late.writes:
                buffer.overwrite(ANYTHING)
            steps.append(WritesLate(len(buffer.commands)))
            buffer.depends = True
        buffer.commands.append(command)
        return (Recorded(buffer.id, command, buffer.queue_flags),)
