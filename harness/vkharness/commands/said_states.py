"""Known effects of commands in the state of a command buffer, by the arguments of the commands that have set it.

A frame binds and draws what the frame before it did. The effects of a draw follow from its arguments and from the
state of its command buffer, and that state follows from what the commands said that set it: the last ones of each
*part*, such as the pipeline of a bind point, or a range of push constants (`SETS`). So a `SaidState` stands for the
state of one command buffer after such commands. Its items say what a command does that says this in that state, and in
which state it leaves the command buffer. Whoever follows them (`Interpreter.repeat_next`, natively) runs no handler at
all. The members of `CommandBuffer` are behind then, and are brought up to the state before a handler looks at them
(`settle`).

Which descriptor sets are bound is no part of that state: a program may take fresh sets in each frame, or write the
same ones anew. The members of the command buffer always have the sets that are bound, and `KnownBind` says what a bind
puts there. What a dispatch or a draw does in a state is known by what the sets refer to that its shaders use
(`PlansBySets`). Commands of which no access depends on the numbers, or in a known way, leave these open in the state in
the same way (`vkharness.commands.open_numbers`).

An item is kept for a command that is met in its state for the second time. It depends on objects beside the state: on
those that the sayings name, and on the resources of its plan. When one of them goes, nothing is known any more. What
contents of memory or later writes of descriptors decide is never known, nor what is not modelled. That the vertices of
an indexed draw follow from its indices, and all of an indirect command from its parameters, is known (`KnownDeferred`).
Which ones these are is asked at each submit, and whether parameters are foreseen that run nothing, at each command.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import takewhile
from typing import Any, NamedTuple

from vkharness.commands.contents.content_steps import NOTHING, Deferred, OpenStep, written
from vkharness.commands.drawing.numbered_draws import NUMBERED, moved_draw, numbered_steps
from vkharness.commands.drawing.plans_by_sets import PlansBySets
from vkharness.commands.drawing.shaders import stage_uses
from vkharness.commands.drawing.vertex import VERTEX_READ
from vkharness.commands.handlers import COMMANDS
from vkharness.commands.object_state import BoundSet, CommandBuffer, ObjectState
from vkharness.commands.open_numbers import OPEN, VERTICES, OpenNumbers, Sets, leave_open, opened_places, words_count
from vkharness.commands.said_state import KnownSaying, Parts, SaidState
from vkharness.spec._generated import COMMAND_ALIASES
from vkharness.spec.enums import VkPipelineBindPoint
from vkharness.trace.effects import Access, Barrier, Effect, EffectPlan, SetEvent, Unmodelled, WaitEvents
from vkharness.trace.query_effects import UseQueries
from vkharness.trace.render_passes import Framebuffer
from vkharness.trace.rendering_state import RenderingState
from vkharness.trace.resources import DescriptorSet

MOST_KNOWN = 1 << 15
"""The most commands that are known, each in one state."""
MOST_PARTS = 256
"""The most parts of a state that is known: one call may set tens of thousands, and each state has all of its own."""
MOST_TRIES = 8
"""Of how many draws that differ in numbers alone it is asked at most what others of them do."""
RENDERING = "rendering"
"""The part of the render pass instance. It holds the sayings of its begin and of each next subpass."""


class KnownDeferred(NamedTuple):
    """The plan of a command, and the deferred step by which contents of memory decide the rest."""

    does: EffectPlan | PlansBySets
    deferred: Any
    """An `OpenStep`; the `NumberedSteps` of draws that differ in numbers alone."""


class HandledCommand(NamedTuple):
    """The result of recording a command."""

    plan: EffectPlan | None
    """None where it has no effects."""
    is_plain: bool
    """Whether the plan says all that the command does, but for the state that it sets, and for `deferred`."""
    rendering: RenderingState | None
    """The render pass instance before it."""
    deferred: Deferred | None
    """The only step by which contents of memory decide the rest; None without one."""


Does = EffectPlan | PlansBySets | KnownDeferred | OpenNumbers | None
"""The plan of a command, or its plans by what is bound, and its deferred step; None where it has no effects. What
stands for it where the command buffer has what it sets."""


class KnownBind(NamedTuple):
    """A bind of descriptor sets that mean no more than the resources to which they refer (`state_parts.tells_all`)."""

    buffer: CommandBuffer
    point: int
    """VkPipelineBindPoint."""
    sets: tuple[tuple[int, int, BoundSet], ...]
    """Set index, id, and what is bound."""


# -- what commands set -------------------------------------------------------------------------------------------------

Setter = Callable[[dict[str, Any]], Iterable[Hashable] | None]
"""By its arguments, the parts of the state that a command sets, each as a whole. None where more decides that."""
SETS: dict[str, Setter] = {}
"""The commands whose state is told by what they say (`vkharness.commands.drawing.state_parts`)."""
LASTS: dict[str, Callable[[ObjectState, dict[str, Any]], bool]] = {}
"""Of those, the commands of which something must hold, so that what they set follows from what they say and stays."""
BINDS_SETS: dict[str, Callable[[ObjectState, dict[str, Any]], KnownBind | None]] = {}
"""The commands that bind descriptor sets, and what each does; None where a set tells more or less."""
PUSHES: dict[str, Callable[[ObjectState, dict[str, Any]], tuple[Hashable, bool]]] = {}
"""The commands that push descriptors: into which place, and whether these mean no more than what they refer to."""
BEGIN = frozenset({"vkCmdBeginRenderPass", "vkCmdBeginRenderPass2", "vkCmdBeginRendering"})
NEXT = frozenset({"vkCmdNextSubpass", "vkCmdNextSubpass2"})
END = frozenset({"vkCmdEndRenderPass", "vkCmdEndRenderPass2", "vkCmdEndRendering"})
READS = frozenset(
    f"vkCmd{name}" for name in (
        "BeginQuery", "ClearAttachments", "Dispatch", "DispatchBase", "DispatchIndirect", "Draw", "DrawIndexed",
        "DrawIndexedIndirect", "DrawIndexedIndirectCount", "DrawIndirect", "DrawIndirectCount", "DrawMultiEXT",
        "DrawMultiIndexedEXT", "EndQuery", "WriteTimestamp", "WriteTimestamp2",
    )
)  # fmt: skip
"""The commands that read state and set none."""
DRAWS = ("vkCmdDraw", "vkCmdDispatchIndirect")
"""How commands begin of which `KnownShaders.drawn` tells what they do beside what their shaders do."""
KEEPS_STATE = frozenset(f"vkCmd{name}DebugUtilsLabelEXT" for name in ("Begin", "End", "Insert"))
"""The commands that set nothing that another command reads."""


class SaidStates:
    """The states of all command buffers of one program."""

    def __init__(self, objects: ObjectState) -> None:
        self._objects = objects
        self._era = 0
        """How often everything that was known has ended."""
        self._once = KnownSaying("", {}, None, 0)
        """Stands for what was said once since then."""
        self._states: dict[Hashable, SaidState] = {}
        self._known = 0
        self._used: set[int] = set()
        """The buffers and images of plans that are known, and what sayings that are known name."""
        self._behind: dict[int, CommandBuffer] = {}
        """Command buffers whose members may be behind their state, by id."""

    def of(self, buffer: CommandBuffer) -> SaidState | None:
        """The state of a command buffer, if anything is known in it."""
        state = buffer.said
        if state is None:
            if buffer.parts is None or not self._hold(buffer.parts):
                return None
            state = buffer.said = buffer.settled = self._states.get((buffer.id, *buffer.parts.items()))
        return state if state is not None and state.era == self._era and buffer.inheritance is None else None

    def advance(self, buffer: CommandBuffer, state: SaidState | None) -> None:
        """The command buffer is in this state now, and its members may be behind: they are where the native core has
        noted numbers that are open, which leaves `settled` None."""
        if state is not None and (state is not buffer.said or buffer.settled is None):
            buffer.said = state
            self._behind[buffer.id] = buffer

    def settle(self, buffer: CommandBuffer) -> None:
        """Brings the members of a command buffer up to its state."""
        state = buffer.said
        self._behind.pop(buffer.id, None)
        if state is None or state is buffer.settled:
            return
        before, after = _items(buffer.settled), _items(state)
        same = sum(1 for _ in takewhile(_are_one, zip(before, after, strict=False)))
        if not {part for part, _ in before[same:]} <= {part for part, _ in after[same:]}:
            same = 0
        if not same:
            buffer.forget_said()
        done = set[KnownSaying]()
        for _, each in after[same:]:  # what is behind a part may have set it before
            if isinstance(each, OpenNumbers):
                each.bring(self._objects, buffer)
            elif each not in done:
                COMMANDS[each.name](self._objects, buffer, each.args)
            done.add(each)
        buffer.rendering = state.rendering
        buffer.settled = state

    def note(self, buffer: CommandBuffer, name: str, args: dict[str, Any], said: Any, found: HandledCommand) -> None:
        """A handler was asked for a command. `said` is its saying, None where nobody knows it."""
        name = COMMAND_ALIASES.get(name, name)
        held = buffer.parts if buffer.said is None else self._held(buffer)
        if held is None or name in KEEPS_STATE:
            return
        is_known = said is not None and found.is_plain
        if name in READS and (not is_known or None in held.values()):
            return
        if name in READS and words_count(self._objects, buffer, name, held):
            self.forget()
            self.lose(buffer)
            return
        if name in PUSHES:
            _note_push(self, buffer, held, PUSHES[name](self._objects, args), found.plan is not None)
            return
        if name in BINDS_SETS:
            self._note_bind(buffer, held, name, args, said)
            return
        is_open = is_known and name in OPEN
        if (
            is_open
            and OPEN[name].sets is Sets.OPEN
            and self._note_open(buffer, held, name, args, said, found.rendering)
        ):
            return
        saying = None
        if is_known and said.kept is None:
            said.kept = self._once
        elif is_known:
            saying = self._saying(buffer, name, args, said, found.plan)
        if saying is None and is_open and self._note_open(buffer, held, name, args, said, found.rendering):
            return
        is_like_others = is_known and name in NUMBERED
        before = None
        if saying is not None or is_like_others:
            before = buffer.said or self._state(buffer, held, found.rendering)
        like = _like_others(self._objects, buffer, name, before, said, found) if is_like_others else None
        if like is not None and found.plan is not None:
            self._keep(before, like.key, like.does, before)
            self._used.update(_needed(self._objects, buffer, like.does, found.plan, like.buffers))
            found = found._replace(plan=like.plan)
        if name in READS:
            self._keep_read(buffer, name, before, saying, found)
            return
        parts = _set(buffer, held, name, args, saying)
        self._leave(buffer, before, saying, found.plan, parts)

    def _leave(
        self, buffer: CommandBuffer, before: SaidState | None, saying: Any, does: Does, parts: Parts | None
    ) -> None:
        """A command that says this, and does this, has left a command buffer in the state of these parts."""
        after = None if parts is None else self._state(buffer, parts, buffer.rendering)
        self._keep(before, saying, does, after)
        buffer.said = buffer.settled = after
        buffer.parts = parts

    def _note_bind(self, buffer: CommandBuffer, held: Parts, name: str, args: dict[str, Any], said: Any) -> None:
        """Sets were bound."""
        bind = BINDS_SETS[name](self._objects, args)
        if bind is not None and said is not None:
            said.kept = bind
        _note_places(buffer, held, SETS[name](args) or (), bind is not None)

    def _note_open(
        self,
        buffer: CommandBuffer,
        held: Parts,
        name: str,
        args: dict[str, Any],
        said: Any,
        rendering: RenderingState | None,
    ) -> bool:
        """A command of `OPEN` set state. Whether that leaves its numbers open."""
        flat = self._objects.plans.flat
        like = None if flat is None else flat.like(said)
        opened = None if like is None else leave_open(self._objects, buffer, name, args, like, self._era)
        if opened is None or like is None:
            return False
        before = buffer.said or self._state(buffer, held, rendering)
        self._used.update(_named(self._objects, {**args, OPEN[name].buffers: None}))
        self._leave(buffer, before, like[0], opened, _set(buffer, held, name, args, opened))
        return True

    def bind(self, said: Any) -> bool:
        """Binds sets as a saying says. False where it is not known what that does: `record` finds it out."""
        objects, bind = self._objects, said.kept
        if bind is None:
            bind = BINDS_SETS[said.name](objects, said.args)
        if bind is None or self.of(bind.buffer) is None:
            return False
        if any(objects.get(DescriptorSet, id) is not each.set for _, id, each in bind.sets):
            return False
        said.kept = bind
        places = bind.buffer.sets.setdefault(bind.point, {})
        for index, _, each in bind.sets:  # what was found of a bound set holds until it is bound again
            places[index] = BoundSet(*each)
        return True

    def lose(self, buffer: CommandBuffer) -> None:
        """Nobody knows what has set the state of a command buffer."""
        self.settle(buffer)
        buffer.said = buffer.settled = buffer.parts = None

    def changed(self, id: int) -> None:
        """An object of this id is about to come, to go, or to be bound to memory."""
        if id in self._used:
            self.forget()

    def gone(self, thing: Any) -> None:
        """An object is about to go. A set that is bound is looked at whenever it counts."""
        if not isinstance(thing, DescriptorSet):
            self.changed(thing.id)

    def forget(self) -> None:
        """Nothing is known any more."""
        for buffer in list(self._behind.values()):
            self.settle(buffer)
        self._era += 1
        self._once = KnownSaying("", {}, None, self._era)
        self._known = 0
        self._states.clear()
        self._used.clear()

    def _held(self, buffer: CommandBuffer) -> Parts | None:
        """The parts of the state of a command buffer; None where these do not tell it."""
        state = buffer.said
        if state is None:
            return buffer.parts
        if state.era == self._era:
            return state.parts
        buffer.said = buffer.settled = None
        buffer.parts = dict.fromkeys(state.parts)
        return buffer.parts

    def _state(self, buffer: CommandBuffer, parts: Parts, rendering: RenderingState | None) -> SaidState | None:
        """The state that parts tell, if all of them are known, with this render pass instance."""
        if buffer.inheritance is not None or not self._hold(parts):
            return None
        key = (buffer.id, *parts.items())
        found = self._states.get(key)
        if found is None:
            if len(self._states) >= MOST_KNOWN:
                self.forget()
                return None
            found = self._states[key] = SaidState(dict(parts), rendering, self._era)
        return found

    def _hold(self, parts: Parts) -> bool:
        """Whether what is known of all sayings holds."""
        return None not in parts.values() and all(_holds(each, self._era) for each in parts.values())

    def _saying(
        self, buffer: CommandBuffer, name: str, args: dict[str, Any], said: Any, plan: EffectPlan | None
    ) -> KnownSaying | None:
        """Gives the object for a saying from the second time on that it is met; None before."""
        kept = said.kept
        if kept is self._once:
            if not (_is_modelled(plan) and (name not in LASTS or LASTS[name](self._objects, args))):
                return None
            made = said.kept = KnownSaying(name, args, buffer, self._era)
            self._used.update(_named(self._objects, args))
            return made
        if type(kept) is KnownSaying and kept.buffer is buffer and kept.era == self._era:
            return kept if _is_modelled(plan) else None
        said.kept = self._once
        return None

    def _keep_read(
        self, buffer: CommandBuffer, name: str, before: SaidState | None, saying: Any, found: HandledCommand
    ) -> None:
        """Keeps the plan of a command in a state that it leaves as it is, if its saying and the state are known."""
        if saying is None or before is None:
            return
        plan, deferred = found.plan, found.deferred
        if opened_places(buffer, before.parts, name).binds:
            return
        point, used = _sets_of_shaders(self._objects, buffer, name)
        if not used:
            self._keep(before, saying, plan if plan is None else _deferring(plan, deferred), before)
        elif plan is not None:
            table = self._plans_by_sets(buffer, before, saying, found, PlansBySets(point, used))
            sets, drawn = buffer.sets.get(point, {}), self._objects.shaders.drawn
            table.keep(table.key(self._objects, sets), plan)
            if drawn is not None and name.startswith(DRAWS) and drawn.effects == plan.effects:
                table.reach_within(drawn, self._objects, sets)

    def _plans_by_sets(
        self, buffer: CommandBuffer, before: SaidState, saying: Any, recording: HandledCommand, new: PlansBySets
    ) -> PlansBySets:
        """The table in which a state has what a command does there: that of its shaders where nothing else decides
        it."""
        found, plan, deferred = before.get(saying), recording.plan, recording.deferred
        assert plan is not None
        known = None if found is None else found[0].does if type(found[0]) is KnownDeferred else found[0]
        source: tuple[EffectPlan, PlansBySets] | None = self._objects.shaders.source
        if source is not None and source[0] is plan:
            new = source[1]
        elif isinstance(known, PlansBySets):
            new = known
        if known is not new:
            self._keep(before, saying, _deferring(new, deferred), before)
        if source is None or source[1] is not new:
            self._used.update(_needed(self._objects, buffer, new, plan))
        return new

    def _keep(self, before: SaidState | None, saying: Any, does: Does, after: SaidState | None) -> None:
        """Keeps the plan of a command in a state, if its saying and the states before and after it are known."""
        if saying is None or after is None or before is None:
            return
        if self._known >= MOST_KNOWN:
            self.forget()
            return
        self._known += saying not in before
        before[saying] = (does, after)
        if type(does) is KnownDeferred:
            self._used.update(does.deferred.step.resources())
            does = does.does
        if type(does) is EffectPlan:
            self._used.update(resources(does))


def _note_places(buffer: CommandBuffer, held: Parts, places: Iterable[Hashable], is_known: bool) -> None:
    """Something was bound in places for sets. One of which it is not known that it means no more than what it
    refers to is a part of the state that nobody knows."""
    if is_known and held.keys().isdisjoint(places):
        return
    parts = {part: each for part, each in held.items() if part not in places}
    parts |= {} if is_known else dict.fromkeys(places)
    buffer.parts = None if len(parts) > MOST_PARTS else parts
    buffer.said = buffer.settled = None


def _note_push(
    states: SaidStates, buffer: CommandBuffer, held: Parts, pushed: tuple[Hashable, bool], has_effects: bool
) -> None:
    """Descriptors were pushed into a place."""
    place, is_known = pushed
    if has_effects or not is_known:
        states.settle(buffer)
    _note_places(buffer, held, (place,), is_known and not has_effects)


def keeps_state(objects: ObjectState, buffer: CommandBuffer, name: str, args: dict[str, Any]) -> bool:
    """Whether a command changes nothing but the descriptor sets that are bound, which no state has, so that the members
    of its command buffer may stay behind their state."""
    pushes = PUSHES.get(COMMAND_ALIASES.get(name, name))
    if buffer.said is None or pushes is None:
        return False
    place, is_known = pushes(objects, args)
    return is_known and place not in buffer.said.parts


def _needed(
    objects: ObjectState, buffer: CommandBuffer, does: Any, plan: EffectPlan, opened: set[int] | None = None
) -> Iterator[int]:
    """The resources of a plan that is known, without those by which it is found: nothing is known when one goes. Of
    those `opened` it finds the vertices."""
    if opened:
        plan = EffectPlan(tuple([each for each in plan.effects if not _reads_vertices(each, opened)]))
    table = does.does if type(does) is KnownDeferred else does
    told = table.told(objects, buffer) if type(table) is PlansBySets else ()
    return (each for each in resources(plan) if each not in told)


def _reads_vertices(effect: Effect, buffers: set[int]) -> bool:
    return isinstance(effect, Access) and effect.access_kind == VERTEX_READ and effect.resource in buffers


def _set(
    buffer: CommandBuffer, held: Parts, name: str, args: dict[str, Any], saying: KnownSaying | None
) -> Parts | None:
    """The parts after a command that sets some; None for one that may set anything, and where there are too many."""
    if name in BEGIN or name in NEXT or name in END:
        return _rendered(buffer, held, name, saying)
    setter = SETS.get(name)
    sets = None if setter is None else setter(args)
    if sets is None:
        return None
    parts = dict(held) if buffer.said is not None else held
    for part in sets:
        parts.pop(part, None)
        parts[part] = saying
    return None if len(parts) > MOST_PARTS else parts


def _holds(saying: Any, era: int) -> bool:
    """Whether what was known in an era of a saying, or of several, is known still."""
    if type(saying) is tuple:
        return all(_holds(each, era) for each in saying)
    return saying is not None and saying.era == era


def _named(objects: ObjectState, args: Any) -> Iterator[int]:
    """The objects that these arguments may name: nothing is known any more when one goes. Any integer may be an id."""
    if isinstance(args, int):
        yield args
        framebuffer = objects.get(Framebuffer, args)
        yield from () if framebuffer is None else framebuffer.views or ()
    elif isinstance(args, dict | list | tuple):
        for each in args.values() if isinstance(args, dict) else args:
            yield from _named(objects, each)


def _rendered(buffer: CommandBuffer, held: Parts, name: str, saying: KnownSaying | None) -> Parts | None:
    """The parts after a command of a render pass instance. What suspended rendering or a store operation NONE does
    depends on more than the state."""
    parts, rendering = dict(held), buffer.rendering
    before = parts.pop(RENDERING, None)
    if buffer.suspended or buffer.instance_from is None:
        return None
    if name in END or rendering is None:
        return parts if rendering is None else None
    several: RenderingState | None = rendering
    while several is not None:
        if several.stores_if_written or several.suspends:
            return None
        several = several.following
    first = () if name in BEGIN else before
    parts[RENDERING] = None if saying is None or first is None else (*first, saying)
    return parts


class LikeOthers(NamedTuple):
    """The entry of a state for draws that differ from one in numbers alone."""

    key: Any
    does: Any
    plan: EffectPlan
    """Of that one: as the others have it, where it is known what they do."""
    buffers: set[int]
    """Those of which others may read the vertices of other ones."""


def _like_others(
    objects: ObjectState, buffer: CommandBuffer, name: str, before: SaidState | None, said: Any, found: HandledCommand
) -> LikeOthers | None:
    """Makes the entry of a state for draws like one with these effects, if it has none yet. None where there can be
    none."""
    plan, flat = found.plan, objects.plans.flat
    like = None if before is None or plan is None or flat is None else flat.like(said)
    if like is None or before is None or plan is None:
        return None
    opened = opened_places(buffer, before.parts, name)
    if found.deferred is not None and any(each.name == VERTICES for each in opened.binds):
        return None
    key, numbers = like
    numbers = (*numbers, *opened.numbers)
    steps = numbered_steps(found.deferred, numbers, bool(opened.binds))
    if (steps is None) != (found.deferred is None):
        return None
    point, used = _sets_of_shaders(objects, buffer, name)
    known = before.get(key)
    does: Any = PlansBySets(point, used) if known is None else known[0]
    if type(does) is KnownDeferred:
        does, steps = does
    by_sets = does.key(objects, buffer.sets.get(point, {})) if used else None
    moved: Any = does.get(by_sets, 0) if used else 0 if known is None else does
    if type(moved) is int and moved < MOST_TRIES:
        asked = objects, buffer, name, numbers, plan, found.deferred, opened
        tried = moved_draw(*asked) if _is_modelled(plan) else None
        moved = moved + 1 if tried is None else tried  # one of other numbers may be like others
        if used:
            does.keep(by_sets, moved)
    does = does if used else moved
    # What a plan writes is looked at each time, and kept with this plan alone.
    is_shared = type(moved) is not int and (plan.writes or written(plan)) is NOTHING
    own = moved.plan(numbers) if is_shared else None
    return LikeOthers(key, does if steps is None else KnownDeferred(does, steps), own or plan, opened.buffers)


def _deferring(does: EffectPlan | PlansBySets, deferred: Deferred | None) -> Does:
    return does if deferred is None else KnownDeferred(does, OpenStep.of(deferred))


def _sets_of_shaders(objects: ObjectState, buffer: CommandBuffer, name: str) -> tuple[int, tuple[int, ...]]:
    """The bind point of a command that reads state, and the indices of the sets that decide what it does."""
    point = VkPipelineBindPoint.COMPUTE if name.startswith("vkCmdDispatch") else VkPipelineBindPoint.GRAPHICS
    pipeline = buffer.pipelines.get(point) if name.startswith(("vkCmdDispatch", "vkCmdDraw")) else None
    return point, stage_uses(objects, pipeline).sets if pipeline is not None and pipeline.stages else ()


def _items(state: SaidState | None) -> list[tuple[Any, Any]]:
    """The parts of a state that are bound or set."""
    return [] if state is None else [item for item in state.parts.items() if item[0] != RENDERING]


def _are_one(pair: tuple[tuple[Any, Any], tuple[Any, Any]]) -> bool:
    """Whether two parts are the same one, and the same saying has set both."""
    (part, each), (other, saying) = pair
    return each is saying and part == other and not isinstance(each, OpenNumbers)


def _is_modelled(plan: EffectPlan | None) -> bool:
    return plan is None or not any(isinstance(effect, Unmodelled) for effect in plan.effects)


def resources(plan: EffectPlan) -> Iterable[int]:
    """The buffers and images that accesses and barriers are of, those of events among them, and query pools."""
    for effect in plan.effects:
        barriers: tuple[Barrier, ...] = ()
        if isinstance(effect, Access):
            yield effect.resource
        elif isinstance(effect, UseQueries):
            yield effect.pool
        elif isinstance(effect, Barrier):
            barriers = (effect,)
        elif isinstance(effect, SetEvent):
            barriers = (effect.barrier,)
        elif isinstance(effect, WaitEvents):
            barriers = effect.barriers
        yield from (each.resource for barrier in barriers for each in barrier.ranges)
