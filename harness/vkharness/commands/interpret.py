"""From calls to stream events: keeps the objects, and asks the registered handlers for the effects of each call."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, NamedTuple, Protocol

from vkharness import commands
from vkharness.commands.buffer_transfers import FLAT, LEARNED, new_flat_plans
from vkharness.commands.contents.content_steps import ANYTHING, Deferred, WritesLate
from vkharness.commands.coverage import HARMLESS, touches_nothing
from vkharness.commands.drawing.numbered_draws import NUMBERED
from vkharness.commands.drawing.plans_by_sets import PlansBySets
from vkharness.commands.drawing.state_parts import new_bound_sets
from vkharness.commands.drawing.traversal import defer_traversal, traverses
from vkharness.commands.group_commands import masked_begin, with_area
from vkharness.commands.handlers import ACTS_THOUGH, BY_ARGUMENTS, CALLS, COMMANDS, CallHandler
from vkharness.commands.object_state import NOTHING, CommandBuffer, ObjectState
from vkharness.commands.open_numbers import OPEN
from vkharness.commands.resources import host_access
from vkharness.commands.said_state import KnownSaying, SaidState
from vkharness.commands.said_states import (
    BINDS_SETS,
    HandledCommand,
    KnownBind,
    KnownDeferred,
    SaidStates,
    keeps_state,
    resources,
)
from vkharness.commands.synchronization.unseen_semaphores import with_unseen
from vkharness.commands.unmade_objects import unmade_by_call, unmade_by_command
from vkharness.spec.command_classes import CONDITIONAL, is_debug, is_recorded
from vkharness.spec.enums import VkResult
from vkharness.trace import work_budget
from vkharness.trace.calls import MALFORMED, Block, Call, HostWrite, block_name, unread_call
from vkharness.trace.effects import (
    NOTHING_OPEN,
    PLANS,
    Effect,
    EffectPlan,
    OpenEffects,
    Recorded,
    StreamEvent,
    Unmodelled,
    UnmodelledCall,
)
from vkharness.trace.host_effects import DeviceLost
from vkharness.trace.recorded_commands import Line
from vkharness.trace.unknown_values import unknown_values
from vkharness.trace.work_budget import UNITS, OverBudget, require_rest

# A module registers its handlers when it is imported, so that a new one needs no entry in a list.
for _module in pkgutil.walk_packages(commands.__path__, f"{commands.__name__}."):
    importlib.import_module(_module.name)

MOST_SAID = 200
"""Characters of the reason why a call cannot be followed."""


MOST_LINES = 1 << 14
"""The most lines of a program that are kept once for all commands that they record."""


class Saying(Protocol):
    """A command and its arguments by value: one object for all calls that say the same."""

    name: str
    args: dict[str, Any]
    kept: Any
    """The interpreter's record of the command, such as a `RepeatedCommand` or a `KnownSaying`; None at first."""


MAY_BE_KNOWN = frozenset({*FLAT, *LEARNED, *NUMBERED, *BINDS_SETS, *OPEN})
"""The commands of which it may be known what they do though none said the same before."""
BY_STATE = frozenset({*NUMBERED, *BINDS_SETS, *OPEN})
"""Those of them of which nothing is known but in a state (`SaidState`)."""


def may_repeat(said: Saying) -> bool:
    """Whether it may be known what a call does that says this, though none said it before."""
    return said.kept is not None or said.name in MAY_BE_KNOWN


class SaidCalls(Protocol):
    """Calls that say what others may have said, in order (`vkharness.record.native_log.WaitingCalls`)."""

    @property
    def said(self) -> Saying | None:
        """That of the next one; None where there is none."""

    def __len__(self) -> int:
        """How many there are."""

    def repeated(
        self,
        buffer: object,
        changes: int,
        state: SaidState | None,
        line_of: Callable[[str, str | None], Line],
        flat: Any,
        sets: Any,
    ) -> tuple[bytes, list[Line], list[EffectPlan], SaidState | None, list[tuple[int, Any, bytes]]]:
        """Takes the next calls that repeat a command in this command buffer, which is in this state, or have a flat
        plan (`buffer_transfers.new_flat_plans`), or bind sets (`state_parts.new_bound_sets`): the columns of
        `RecordedCommands`, the state after them, and what contents decide of those at some places: an `OpenStep`; or
        the `NumberedSteps` of some that follow one another, with their numbers."""


class RepeatedCommand(NamedTuple):
    """The plan of a recorded command, for later calls with the same name and arguments."""

    changes: int
    """`ObjectState.changes` when that was found out."""
    buffer: CommandBuffer
    plan: EffectPlan


class Interpreter:
    """Turns a stream of blocks into stream events. One object follows one program."""

    def __init__(self, bounds: bool = False, assumed_rewrites: bool | None = None, possible: bool = False) -> None:
        """`bounds`: what could be reached at most counts as accessed where contents of memory are unknown. `possible`:
        it is among the accesses, and counts as left out.
        `assumed_rewrites`: see `ObjectState.assumed_rewrites`."""
        work_budget.begin_stream()
        self.objects = ObjectState()
        self._states = self.objects.watcher = SaidStates(self.objects)
        self._flat = new_flat_plans(self.objects, RepeatedCommand)
        self._sets = new_bound_sets(self.objects)
        self._lines: dict[tuple[str, str | int], Line] = {}
        self.objects.contents.bounds, self.objects.contents.possible = bounds, possible
        self.objects.assumed_rewrites = assumed_rewrites

    def step(self, block: Block) -> Iterable[StreamEvent]:
        """The stream events of one block. Failed calls have none. Calls without a handler cost
        one dictionary look-up.

        A call with values that mean nothing, as hostile traces have them, is named as not modelled. Raises OverBudget
        when a call asks for more work than its stream may.
        """
        UNITS.left += UNITS.a_call
        try:
            require_rest()
            if self.objects.payloads.standing_for:
                block = self.objects.payloads.resolved(block)
            if not isinstance(block, Call):
                if isinstance(block, HostWrite):
                    return tuple(host_access.host_write(self.objects, block))
                return tuple(host_access.host_read(self.objects, block))
            if block.result and not block.succeeded and block.result not in ACTS_THOUGH.get(block.name, ()):
                return (DeviceLost(),) if block.result == VkResult.ERROR_DEVICE_LOST else ()
            if block.unread and "commandBuffer" not in block.args:
                return self._unread(block)
            if block.name in COMMANDS:
                return self._recorded(block)
            handler = CALLS.get(block.name)
            if handler is not None and not block.unread:
                return _followed(self.objects, block, handler)
            if is_recorded(block.name):
                return self._recorded(block)
            if touches_nothing(block.name):
                return ()
            self.objects.contents.forget_all()
            return (UnmodelledCall(block.name),)
        except Exception as error:
            return self.failed(block, error)

    def failed(self, block: Block, error: Exception) -> Iterable[StreamEvent]:
        """The events of a block whose reading raised an error. Raises errors that its values are not to blame for."""
        if isinstance(error, OverBudget):
            raise error.at(block.index, block_name(block)) from None
        if not isinstance(error, MALFORMED):
            raise error
        name, why = block_name(block), f"block {block.index}: {type(error).__name__}: {error}"
        return self._unread(unread_call(block.index, name, why[:MOST_SAID]))

    def record(
        self, index: int, name: str, args: dict[str, Any], site: str | None, said: Saying | None = None
    ) -> CommandBuffer | None:
        """Records one of `COMMANDS`, as `step` does with a call that returned nothing; the command buffer of which it
        is the last command then. None if it does nothing. What raises is for `failed` to say. Who says the same as
        `said` does the same, if that follows from what it says, or from its state."""
        UNITS.left += UNITS.a_call
        if self.objects.payloads.standing_for:
            block = self.objects.payloads.resolved(Call(index, name, args, None, site))
            assert isinstance(block, Call)
            args, said = block.args, None
        return self._record(index, name, args, site, said=said)

    def _unread(self, call: Call) -> Iterable[StreamEvent]:
        """A call that the trace's reader could not read: nobody knows what it changed."""
        if is_debug(call.name):
            return ()
        self.objects.contents.forget_all()
        return (UnmodelledCall(f"{call.name} ({call.unread})"),)

    def repeat(self, index: int, said: Saying, site: str | None) -> CommandBuffer | Literal[False] | None:
        """Records a command that says what an earlier one said, where that, with the state of its command buffer,
        decides all that it does. What `record` gives; False where that must find out what the command does."""
        kept, objects = said.kept, self.objects
        if type(kept) is KnownBind or (kept is None and said.name in BINDS_SETS):
            return None if self.bind(said) else False
        if kept is None:
            kept = said.kept = self._found_flat(said)
        if kept is None or kept.buffer is None:
            return False
        buffer: CommandBuffer = kept.buffer
        state, plan = None, kept
        if type(kept) is RepeatedCommand:
            if kept.changes != objects.changes:
                return False
            plan = kept.plan
        else:
            state = self._states.of(buffer)
            known = None if state is None else state.get(kept)
            if known is None:
                return False
            plan, state = known
        if not self._repeats(buffer):
            return False
        deferred = None
        if type(plan) is KnownDeferred:
            plan, deferred = plan
        if type(plan) is PlansBySets:
            plan = False if objects.sparse.resources else plan.of(objects, buffer)
        if plan is False:
            return False
        UNITS.left += UNITS.a_call
        self._states.advance(buffer, state)
        if plan is None:
            return None
        buffer.commands.add(index, self._line(said.name, site), plan)
        if deferred is not None:
            buffer.defer_again([(len(buffer.commands) - 1, deferred, b"")], objects.contents)
        return buffer

    def _found_flat(self, said: Saying) -> RepeatedCommand | None:
        """Finds the flat plan of a command that no call said before; None where `record` must find its effects."""
        objects = self.objects
        if said.name not in FLAT or self._flat is None or objects.sparse.resources:
            return None
        buffer = objects.get(CommandBuffer, said.args["commandBuffer"])
        if buffer is None or not self._repeats(buffer):
            return None
        found: RepeatedCommand | None = self._flat.record(buffer, buffer.id, objects.changes, said.name, said.args)
        return found

    def bind(self, said: Saying) -> bool:
        """Whether a command binds descriptor sets and does nothing else. They are bound then."""
        try:
            buffer = self.objects.get(CommandBuffer, said.args["commandBuffer"])
            if buffer is None or not self._repeats(buffer) or not self._states.bind(said):
                return False
        except (OverBudget, *MALFORMED):  # `record` meets it again
            return False
        UNITS.left += UNITS.a_call
        return True

    def repeat_next(self, calls: SaidCalls) -> Iterator[CommandBuffer]:
        """Records the next calls as `repeat` does, up to the first of which `record` must find out what it does. The
        command buffers that got commands, in order."""
        objects = self.objects
        while (said := calls.said) is not None:
            kept, before = said.kept, len(calls)
            if kept is None and may_repeat(said):
                buffer = objects.get(CommandBuffer, said.args["commandBuffer"])
            else:
                buffer = None if kept is None else kept.buffer
            state = None if buffer is None else self._states.of(buffer)
            needs_state = type(kept) is KnownSaying or said.name in BY_STATE
            if buffer is None or (state is None and needs_state) or not self._repeats(buffer):
                return
            flat, sets = (None, None) if objects.sparse.resources else (self._flat, self._sets)
            given = buffer, objects.changes, state, self._line, flat, sets
            numbers, lines, plans, state, deferred = calls.repeated(*given)
            if before == len(calls):
                return
            UNITS.left += UNITS.a_call * (before - len(calls))
            self._states.advance(buffer, state)
            if plans:
                first = len(buffer.commands)
                buffer.commands.extend(numbers, lines, plans)
                if deferred:
                    buffer.defer_again([(first + at, each, of) for at, each, of in deferred], objects.contents)
                yield buffer

    def _repeats(self, buffer: CommandBuffer) -> bool:
        """Whether what a command does that is recorded there follows from what it says, if it did before."""
        objects = self.objects
        if objects.aliasing.overlaps or objects.payloads.standing_for or objects.groups is not None:
            return False
        if objects.get(CommandBuffer, buffer.id) is not buffer:
            return False
        has_noted = buffer.steps.last == len(buffer.commands.plans)
        return not (buffer.condition or buffer.deferred or buffer.late or has_noted)

    def _recorded(self, call: Call) -> Iterable[StreamEvent]:
        buffer = self._record(call.index, call.name, call.args, call.site, call.unread)
        return (
            ()
            if buffer is None or self.objects.groups is not None
            else (Recorded(buffer.id, buffer.commands[-1], buffer.queue_flags),)
        )

    def _record(
        self,
        index: int,
        name: str,
        args: dict[str, Any],
        site: str | None,
        unread: str = "",
        said: Saying | None = None,
    ) -> CommandBuffer | None:
        objects = self.objects
        buffer = objects.get(CommandBuffer, args["commandBuffer"])
        if buffer is None:
            buffer = CommandBuffer(args["commandBuffer"], 0)
            objects.add(buffer)
        states, commands = self._states, buffer.commands
        try:
            if buffer.said is not buffer.settled and not keeps_state(objects, buffer, name, args):
                states.settle(buffer)
            rendering, count, known = buffer.rendering, len(commands.plans), len(buffer.steps.noted)
            made = self._handled(index, name, buffer, args, site, unread)
        except Exception:
            states.lose(buffer)
            raise
        plan = commands.plans[-1] if len(commands.plans) > count else None
        is_whole = len(buffer.steps.noted) == known and not (commands.open_ones and count in commands.open_ones)
        deferred = _only_deferred(buffer, count, known)
        is_special = bool(buffer.condition or objects.sparse.resources or objects.aliasing.overlaps)
        is_plain = (is_whole or deferred is not None) and not is_special
        if name not in BY_ARGUMENTS:
            states.note(buffer, name, args, said, HandledCommand(plan, is_plain, rendering, deferred))
        elif said is not None and is_plain and isinstance(made, PLANS) and plan is not None:
            said.kept = RepeatedCommand(objects.changes, buffer, plan)
            objects.said.update(resources(plan))
            if name in LEARNED:
                LEARNED[name](objects, said, plan)
        return None if plan is None else buffer

    def _handled(
        self, index: int, name: str, buffer: CommandBuffer, args: dict[str, Any], site: str | None, unread: str
    ) -> Iterable[Effect]:
        """Adds a command to its command buffer, if it has effects. Returns the value of its handler."""
        objects, steps, commands = self.objects, buffer.steps, buffer.commands
        known = len(steps.noted)
        made = _made(objects, buffer, name, args, unread)
        if objects.contents.has_structures and isinstance(made, PLANS):
            made = made.effects if traverses(made.effects) else made
        is_special = bool(buffer.deferred or buffer.late or buffer.condition)
        if made is NOTHING and not is_special and len(steps.noted) == known:
            return made
        is_special = is_special or bool(objects.sparse.resources)
        line = self._line(name, site)
        if is_special or not isinstance(made, PLANS) or objects.aliasing.overlaps:
            found = self._with_effects(name, buffer, made, known)
            if found is not None:
                commands.add(index, line, *found)
        elif made.engine is False or made.effects:  # flat plans have effects, which nobody need make
            if steps.last == len(commands.plans) and len(steps.noted) == known:
                steps.append(None)
            commands.add(index, line, made)
        return made

    def _line(self, name: str, site: str | None) -> Line:
        """The same object for equal lines; sites with stacks, which the lines keep, are told apart by identity."""
        key = name, site if type(site) is str else id(site)
        found = self._lines.get(key)
        if found is not None:
            return found
        if len(self._lines) >= MOST_LINES:
            self._lines.clear()
        return self._lines.setdefault(key, (name, site))

    def _with_effects(
        self, name: str, buffer: CommandBuffer, made: Iterable[Effect], known: int
    ) -> tuple[EffectPlan, OpenEffects] | None:
        """The plan of a command of which the effects may be open, or more than its handler says; None if it has none.
        Its handler has added those of the steps that are behind the `known` ones."""
        effects, writes = (made.effects, made.writes) if isinstance(made, PLANS) else (tuple(made), None)
        steps, place = buffer.steps, len(buffer.commands)
        defer_traversal(self.objects, buffer, effects)
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
        elif (late is not None or steps.last == place) and (aliasing or len(steps.noted) == known):
            steps.append(None)
        if late is not None:
            buffer.has_late = True
            if late.writes:
                steps.append(ANYTHING)
            steps.append(WritesLate(place))
            buffer.depends = True
        return self.objects.plans.of(effects, writes), is_open


def _followed(objects: ObjectState, call: Call, handler: CallHandler) -> Iterable[StreamEvent]:
    """The events of a call, and that it has values that nobody knows, or names objects that no call made."""
    objects.missed.clear()
    events = tuple(handler(objects, call))
    if objects.groups is not None:
        events = tuple(each for event in events for each in objects.groups.followed(event))
    elif events:
        events = tuple(with_unseen(objects.payloads.seen_semaphores, events))
    is_harmless = call.name in HARMLESS or is_debug(call.name)
    unknown = "" if is_harmless else unknown_values(call.name, call.args) or unmade_by_call(objects, call)
    return (UnmodelledCall(f"{call.name} ({unknown})"), *events) if unknown else events


def _made(
    objects: ObjectState, buffer: CommandBuffer, name: str, args: dict[str, Any], unread: str
) -> Iterable[Effect]:
    """The effects of a command by its handler, and of what it has that nobody knows: values, and objects that no call
    made."""
    handler = COMMANDS.get(name)
    if unread or handler is None:
        return (Unmodelled(f"{name} ({unread})" if unread else name),)
    objects.missed.clear()
    if objects.groups is None:
        made = handler(objects, buffer, args)
    else:
        made = masked_begin(name, args, handler(objects, buffer, with_area(name, args)))
    made = made if isinstance(made, PLANS) else tuple(made)
    unknown = unknown_values(name, args) or unmade_by_command(objects, name, args)
    return _with_unknown(objects, made, Unmodelled(f"{name} ({unknown})")) if unknown else made


def _with_unknown(objects: ObjectState, made: Iterable[Effect], unknown: Unmodelled) -> Iterable[Effect]:
    """Adds to the effects of a command that some of its values are unknown."""
    if isinstance(made, PLANS):
        return objects.plans.of((*made.effects, unknown), made.writes)
    return (*made, unknown)


def _only_deferred(buffer: CommandBuffer, place: int, known: int) -> Deferred | None:
    """The deferred step of the command that was recorded at a place, if it is the only step that the command has noted
    behind the `known` ones, and follows from its state: not from values that shaders load."""
    noted = buffer.steps.noted
    if len(noted) != known + 1:
        return None
    at, step = noted[-1]
    is_open = buffer.commands.open_ones.get(place, NOTHING_OPEN)
    is_alone = at == place and is_open.late is None and is_open.undecided is step
    return step if is_alone and isinstance(step, Deferred) and step.writes is None else None
