"""From calls to stream events: keeps the objects, and asks the registered handlers for the effects of each call."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from harness import commands
from harness.commands.contents.content_steps import ANYTHING, WritesLate
from harness.commands.handlers import ACTS_THOUGH, BY_ARGUMENTS, CALLS, COMMANDS
from harness.commands.object_state import CommandBuffer, ObjectState
from harness.commands.resources import host_access
from harness.findings import UserError
from harness.spec.command_classes import CONDITIONAL, is_debug, is_recorded
from harness.trace import work_budget
from harness.trace.calls import Block, Call, HostWrite, block_name
from harness.trace.effects import (
    NOTHING_OPEN,
    Access,
    Barrier,
    Effect,
    EffectPlan,
    OpenEffects,
    Recorded,
    StreamEvent,
    Unmodelled,
    UnmodelledCall,
)
from harness.trace.recorded_commands import Line
from harness.trace.work_budget import A_CALL, UNITS, OverBudget

# A module registers its handlers when it is imported, so that a new one needs no entry in a list.
for _module in pkgutil.walk_packages(commands.__path__, f"{commands.__name__}."):
    importlib.import_module(_module.name)

MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, UserError, ValueError)
"""What reading a call raises when its values do not fit its command."""
MOST_SAID = 200
"""Characters of the reason why a call cannot be followed."""


MOST_LINES = 1 << 14
"""The most lines of a program that are kept once for all commands that they record."""


class Saying(Protocol):
    """A command and its arguments by value: one object for all calls that say the same."""

    name: str
    args: dict[str, Any]
    kept: Any
    """What the interpreter knows of the command; None at first."""


class SaidCalls(Protocol):
    """Calls that say what others may have said, in order (`harness.record.native_log.WaitingCalls`)."""

    @property
    def kept(self) -> Any:
        """That of the next one; None where there is none."""

    def repeated(
        self, buffer: object, changes: int, line_of: Callable[[str, str | None], Line]
    ) -> tuple[bytes, list[Line], list[EffectPlan]]:
        """Takes the next calls that repeat a command in this command buffer: the columns of `RecordedCommands`."""


class RepeatedCommand(NamedTuple):
    """What a command does, for those that say the same."""

    changes: int
    """`ObjectState.changes` when that was found out."""
    buffer: CommandBuffer
    plan: EffectPlan


class Interpreter:
    """Turns a stream of blocks into stream events. One object follows one program."""

    def __init__(self, bounds: bool = False, assumed_rewrites: bool | None = None) -> None:
        """`bounds`: what could be reached at most counts as accessed where contents of memory are unknown.
        `assumed_rewrites`: see `ObjectState.assumed_rewrites`."""
        work_budget.begin_stream()
        self.objects = ObjectState()
        self._lines: dict[Line, Line] = {}
        self._made: Iterable[Effect] = ()
        """What the handler of the last command gave."""
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
                return self._recorded(block)
            handler = CALLS.get(block.name)
            if handler is not None and not block.unread:
                return tuple(handler(self.objects, block))
            if is_recorded(block.name):
                return self._recorded(block)
            if block.name.startswith("vkQueue") and not is_debug(block.name):
                self.objects.contents.memory.forget_all()
                return (UnmodelledCall(block.name),)
            return ()
        except Exception as error:
            return self.failed(block, error)

    def failed(self, block: Block, error: Exception) -> Iterable[StreamEvent]:
        """What a block means that raised an error when it was read. Raises what is no fault of the block's values."""
        if isinstance(error, OverBudget):
            where = f"{UNITS.source}: block" if UNITS.source else "block"
            raise OverBudget(f"{where} {block.index}: {block_name(block)}: {error}") from None
        if not isinstance(error, MALFORMED):
            raise error
        name, why = block_name(block), f"block {block.index}: {type(error).__name__}: {error}"
        return self._unread(Call(block.index, name, {}, unread=why[:MOST_SAID]))

    def record(self, index: int, name: str, args: dict[str, Any], site: str | None) -> CommandBuffer | None:
        """Records one of `COMMANDS`, as `step` does with a call that returned nothing; the command buffer of which it
        is the last command then. None if it does nothing. What raises is for `failed` to say."""
        UNITS.left += A_CALL
        if self.objects.payloads.standing_for:
            block = self.objects.payloads.resolved(Call(index, name, args, None, site))
            assert isinstance(block, Call)
            args = block.args
        return self._record(index, name, args, site)

    def _unread(self, call: Call) -> Iterable[StreamEvent]:
        """A call that the trace's reader could not read: nobody knows what it changed."""
        if is_debug(call.name):
            return ()
        self.objects.contents.memory.forget_all()
        return (UnmodelledCall(f"{call.name} ({call.unread})"),)

    def repeat(self, index: int, said: Saying, site: str | None) -> CommandBuffer | None:
        """Records a command that says what an earlier one said, where that decides all that it does; the command buffer
        of which it is the last one then. None where `record` must find out what it does."""
        kept: RepeatedCommand | None = said.kept
        if kept is None or kept.changes != self.objects.changes or not self._repeats(kept.buffer):
            return None
        UNITS.left += A_CALL
        kept.buffer.commands.add(index, self._line(said.name, site), kept.plan)
        return kept.buffer

    def repeat_next(self, calls: SaidCalls) -> Iterator[CommandBuffer]:
        """Records the next calls as `repeat` does, up to the first that `record` must look at. The command buffers
        into which they are recorded, in order."""
        objects = self.objects
        while True:
            kept: RepeatedCommand | None = calls.kept
            if kept is None or kept.changes != objects.changes or not self._repeats(kept.buffer):
                return
            numbers, lines, plans = calls.repeated(kept.buffer, objects.changes, self._line)
            if not plans:
                return
            UNITS.left += A_CALL * len(plans)
            kept.buffer.commands.extend(numbers, lines, plans)
            yield kept.buffer

    def _repeats(self, buffer: CommandBuffer) -> bool:
        """Whether what a command does that is recorded there follows from what it says, if it did before."""
        objects = self.objects
        if objects.aliasing.overlaps or objects.payloads.standing_for:
            return False
        if objects.get(CommandBuffer, buffer.id) is not buffer:
            return False
        has_noted = buffer.steps.last == len(buffer.commands.plans)
        return not (buffer.condition or buffer.deferred or buffer.late or has_noted)

    def remember(self, said: Saying, buffer: CommandBuffer) -> None:
        """The last command, which says this, was recorded there: who says the same does the same, if that follows from
        what it says alone (`BY_ARGUMENTS`)."""
        plan, objects = self._made, self.objects
        self._made = ()
        widened = objects.sparse.resources or objects.aliasing.overlaps or objects.payloads.standing_for
        if said.name in BY_ARGUMENTS and type(plan) is EffectPlan and not widened and not buffer.condition:
            said.kept = RepeatedCommand(objects.changes, buffer, plan)
            objects.said.update(_resources(plan))

    def _recorded(self, call: Call) -> Iterable[StreamEvent]:
        buffer = self._record(call.index, call.name, call.args, call.site, call.unread)
        self._made = ()
        return () if buffer is None else (Recorded(buffer.id, buffer.commands[-1], buffer.queue_flags),)

    def _record(
        self, index: int, name: str, args: dict[str, Any], site: str | None, unread: str = ""
    ) -> CommandBuffer | None:
        objects = self.objects
        buffer = objects.get(CommandBuffer, args["commandBuffer"])
        if buffer is None:
            buffer = CommandBuffer(args["commandBuffer"], 0)
            objects.add(buffer)
        handler = COMMANDS.get(name)
        steps, commands = buffer.steps, buffer.commands
        known = len(steps.noted)
        made: Iterable[Effect]
        if unread:
            made = (Unmodelled(f"{name} ({unread})"),)
        elif handler is None:
            made = (Unmodelled(name),)
        else:
            made = handler(objects, buffer, args)
        self._made = made
        line = self._line(name, site)
        is_special = buffer.deferred or buffer.late or buffer.condition or objects.sparse.resources
        if is_special or type(made) is not EffectPlan or objects.aliasing.overlaps:
            found = self._with_effects(name, buffer, made, known)
            if found is None:
                return None
            commands.add(index, line, *found)
        elif made.effects:
            if steps.last == len(commands.plans) and len(steps.noted) == known:
                steps.append(None)
            commands.add(index, line, made)
        else:
            return None
        return buffer

    def _line(self, name: str, site: str | None) -> Line:
        """The same object for equal lines."""
        found = self._lines.get((name, site))
        if found is not None:
            return found
        if len(self._lines) >= MOST_LINES:
            self._lines.clear()
        line = self._lines[name, site] = (name, site)
        return line

    def _with_effects(
        self, name: str, buffer: CommandBuffer, made: Iterable[Effect], known: int
    ) -> tuple[EffectPlan, OpenEffects] | None:
        """The plan of a command of which the effects may be open, or more than its handler says; None if it has none.
        Its handler has added those of the steps that are behind the `known` ones."""
        effects, writes = (made.effects, made.writes) if isinstance(made, EffectPlan) else (tuple(made), None)
        steps, place = buffer.steps, len(buffer.commands)
        deferred, buffer.deferred = buffer.deferred, None
        if buffer.condition and name.startswith(CONDITIONAL):
            effects = buffer.condition + effects
            if deferred is not None and deferred.sure is not None:
                deferred.sure += len(buffer.condition)
        late, buffer.late = buffer.late, None
        if not effects and late is None:
            if len(steps.noted) > known:
                steps.cut(known)
            return None
        aliasing = bool(self.objects.aliasing)
        if aliasing:
            effects = self.objects.aliasing.widen(effects)
            if writes is not None:
                steps.append(writes)
                writes = None
        sure = None
        if deferred is not None:
            sure = deferred.sure if deferred.idle else len(effects) - deferred.open if deferred.open else None
        elif self.objects.sparse.resources:
            effects, sure = self.objects.sparse.open_last(effects)
        decided = sure is None and late is None and deferred is None
        is_open = NOTHING_OPEN if decided else OpenEffects(sure, late, deferred)
        if deferred is not None and deferred.writes is not None:
            steps.append(WritesLate(place, deferred.writes))
        elif (late is not None or steps.last == place) and (
            aliasing or not ((deferred is None and len(steps.noted) > known) or name.startswith("vkCmdDraw"))
        ):
            steps.append(None)
        if late is not None:
            buffer.has_late = True
            if late.writes:
                buffer.overwrite(ANYTHING)
            steps.append(WritesLate(place))
            buffer.depends = True
        return self.objects.plans.of(effects, writes), is_open


def _resources(plan: EffectPlan) -> Iterator[int]:
    """The buffers and images that accesses and barriers are of."""
    for effect in plan.effects:
        if isinstance(effect, Access):
            yield effect.resource
        elif isinstance(effect, Barrier):
            yield from (each.resource for each in effect.ranges)
