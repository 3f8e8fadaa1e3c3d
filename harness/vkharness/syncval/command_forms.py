"""Operations of a command on the native range store, computed once: one native call then executes many commands.

Theory of operation
===================

A command with plain effects (`PLAIN`) changes the states of ranges and nothing else. Which operations of the store that
takes follows from its effects and from where it stands: whose command it is, what kind of queue executes it, whether
other queues may race with it, and what came before it in its render pass instance. All of that but the effects is its
*standpoint*. It does not follow from what the store holds. So the operations are found out once for each effect plan
and each standpoint: `FormMaker` runs the code of `Execution` over a context that only takes note of them. What it noted
is a *form*, with the standpoint of the command behind it. The store keeps forms in `EffectPlan.engine`, and
`RangeStore.run` executes the forms of one command after another. Where a command only accesses memory, and never twice
at one address, it makes the form itself: a program that says something new each time needs such forms anew, too.

Standpoints are compared by identity. Outside of render pass instances equal ones are one object (`outside`). Inside an
instance each command that changes what the instance knows leads to a standpoint of its own, again one object for equal
ones.

What Python decides
-------------------
A form has no rule. Its requests, questions and changes are asked of Python by the store's automaton, once for each
state. Where a range has a hazard, or may race, the store executes the whole command, stops behind it and says what each
of these ranges held before. The rule that finds the hazard is then asked for it in Python, as without forms.

Some commands have no form, and `Execution` runs them one by one: those with other effects; those that make something
visible to the host, since that leaves a token of their batch; those with aliases, since what is met through an alias is
forgotten; halves of ownership transfers. What a command that synchronizes does to operations on events and queries,
where any go on, is done behind the call: nothing that has a form asks for it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from vkharness.spans import Span
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.syncval.access import AccessRequest, requested
from vkharness.syncval.barrier import HOST_ACCESSES, Scope
from vkharness.syncval.context import Context
from vkharness.syncval.entries import DetectedHazard
from vkharness.syncval.execution import Execution
from vkharness.syncval.layout_transition import Sources, shown_as_well, shown_to, transition_hazard
from vkharness.syncval.pass_execution import InstanceExecution
from vkharness.syncval.race import NEVER, NO_RACING_WORK, RacingWork, race
from vkharness.syncval.range_store import BY_CLOCK, NO_RACE, WRITES_BY_CLOCK, Cover
from vkharness.syncval.state import LAYOUT_TRANSITION, Change, Question, State
from vkharness.trace import effects
from vkharness.trace.attachment_operations import RasterizationOrder
from vkharness.trace.effects import Access, Alias, Command, EffectPlan
from vkharness.trace.query_effects import UseQueries

OF_INSTANCES = (
    effects.RenderingBegin, effects.PassBegin, effects.SubpassBegin, effects.AttachmentUsers, effects.PassEnd,
)  # fmt: skip
"""Effects that change what is known of a render pass instance."""
PLAIN = (effects.Access, effects.Barrier, UseQueries, *OF_INSTANCES)
"""Effects that follow from memory alone, and act on nothing else that a form could say: what is done to queries is
looked at behind the call, and not while commands are recorded."""
MOST_NOTED = 256
"""The most commands that met something of which the steps are remembered."""
OTHER_QUEUES = RacingWork(0, {}, frozenset())
"""Stands for other queues' work while forms are made: which of it races depends on the batch."""


def is_plain(plan: EffectPlan) -> bool:
    """Whether all effects of a plan are plain. It is found out once."""
    plain = plan.is_plain
    if plain is None:
        plain = plan.is_plain = all(type(effect) in PLAIN for effect in plan.effects)
    return plain


def is_simple(plan: EffectPlan) -> bool:
    """Whether a plan has simple effects alone (`EffectPlan.is_simple`). It is found out once."""
    simple = plan.is_simple
    if simple is None:
        simple = plan.is_simple = all(map(_is_simple, plan.effects))
    return simple


def _begins_instance(plan: EffectPlan) -> bool:
    """Whether a render pass instance begins. No program may begin one inside of another: then what is outside of it is
    a subpass, which no standpoint says."""
    return any(type(effect) is effects.PassBegin for effect in plan.effects)


def _is_simple(effect: effects.Effect) -> bool:
    if type(effect) is effects.Access:
        return effect.order == RasterizationOrder.NONE and not effect.aliases
    if type(effect) is UseQueries:
        return True
    return type(effect) is effects.Barrier and not any(
        each.transition or each.src_family != each.dst_family or each.aliases for each in effect.ranges
    )


# -- what races ------------------------------------------------------------------------------------------------------


class _NoBatches:
    """Says of each batch that it was submitted before every other one."""

    tag = NEVER

    def batch(self, number: int) -> _NoBatches:
        """See `race.Batches`."""
        return self


def may_race(racing: RacingWork, access_kind: int, access: Access | None) -> Question | int:
    """Returns the test for races of an access at a range: the clock of the store (`BY_CLOCK`, `WRITES_BY_CLOCK`), a
    question about the state beside that, or none (`NO_RACE`)."""
    if racing is NO_RACING_WORK:
        return NO_RACE
    if not racing.subpasses:
        return BY_CLOCK if ACCESS_KINDS[access_kind].write else WRITES_BY_CLOCK
    order = None if access is None else (access.order, access.operation)
    key = ("may race", racing.queue, racing.subpasses, access_kind, order)
    return Question(key, lambda state: _races_inside(state, racing, access_kind, access))


def _races_inside(state: State, racing: RacingWork, access_kind: int, access: Access | None) -> bool:
    """Whether an access races with one of another subpass in a state. The clock says
    whether it does with one of another queue."""
    write, reads = None if state.write is None else 0, (0,) * len(state.reads)
    return race(state, write, reads, _NoBatches(), access_kind, racing, access) is not None


# -- standpoints -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Standpoint:
    """Where a command stands."""

    queue: int
    queue_flags: int
    family: int
    races: bool
    """Whether work of other queues may race with it."""
    is_closed: bool
    """Whether no access of the queue is `open` while no render pass instance goes on (`Context.begin_instance`)."""
    viewer: int
    racing: RacingWork
    """With `OTHER_QUEUES` for other queues' work."""
    instance: InstanceExecution | None = None
    """The render pass instance that goes on, as far as it is known before the command. Nobody changes it."""

    def asks(self, access: Access) -> tuple[AccessRequest, Question | int]:
        """Returns the request to the rules that an access makes, and the test for races with it (`may_race`)."""
        return requested(access, self.queue, self.viewer), may_race(self.racing, access.access_kind, access)

    def beside(self, parts: tuple[Any, ...]) -> tuple[FormStep, ...] | None:
        """The steps of one command that makes accesses of which some touch one address, or is a barrier: the parts of a
        `FlatReach`. The spaces are the numbers of the memories, and addresses count from the begin of each. None of one
        that has no form."""
        return _beside(self, parts)


@functools.lru_cache(maxsize=1 << 10)
def _beside(at: Standpoint, parts: tuple[Any, ...]) -> tuple[FormStep, ...] | None:
    made = [effects.moved_to(effect, each, bytes, each) for effect, each, _, bytes in parts]
    try:
        return tuple([each.step for each in FormMaker().made(at, EffectPlan(effects.joined_ranges(made)))[0]])
    except NoForm:
        return None


@functools.lru_cache(maxsize=1 << 12)
def outside(queue: int, queue_flags: int, family: int, races: bool, is_closed: bool) -> Standpoint:
    """The standpoint of commands outside of render pass instances."""
    racing = OTHER_QUEUES if races else NO_RACING_WORK
    return Standpoint(queue, queue_flags, family, races, is_closed, queue, racing)


_INSIDE: WeakValueDictionary[tuple[Any, ...], Standpoint] = WeakValueDictionary()


def _inside(at: Standpoint, context: NotingContext, instance: InstanceExecution) -> Standpoint:
    """The standpoint of the commands behind one that left an instance like this."""
    is_closed = at.queue in context.closed
    key = (at.queue, at.queue_flags, at.family, at.races, is_closed, context.viewer, context.racing.subpasses,
           instance.known)  # fmt: skip
    found = _INSIDE.get(key)
    if found is None:
        made = (at.queue, at.queue_flags, at.family, at.races, is_closed, context.viewer, context.racing)
        found = _INSIDE[key] = Standpoint(*made, instance)
    return found


# -- forms -------------------------------------------------------------------------------------------------------------


class FormStepKind(IntEnum):
    """`FormStep::Kind` of the native core."""

    APPLY = 0
    CHECK = 1
    QUIET = 2
    TRANSITION = 3
    SHOW = 4
    SYNCHRONIZE = 5


class FormStep(NamedTuple):
    """One operation of a form: see `RangeStoreType::form` of the native core."""

    kind: FormStepKind
    space: int
    spans: tuple[Any, ...]
    rule: Any
    racing: Question | int


class NotedStep(NamedTuple):
    """A step with what Python needs to say which hazard it met."""

    step: FormStep
    viewer: int
    racing: RacingWork
    access: Access | None = None
    sources: Sources | None = None


class NoForm(Exception):
    """A command has no form."""


class NotingContext(Context):
    """Takes note of what is done to the ranges, of which it knows nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[NotedStep] = []
        self.store: Any = NotingStore(self)

    def stand(self, at: Standpoint) -> None:
        """Executes what stands there next."""
        self.steps = []
        self.queue, self.viewer, self.racing = at.queue, at.viewer, at.racing
        self.closed = {at.queue} if at.is_closed else set()

    def note(self, step: FormStep, access: Access | None = None, sources: Sources | None = None) -> None:
        """Takes note of a step."""
        self.steps.append(NotedStep(step, self.viewer, self.racing, access, sources))

    def _note_access(self, kind: FormStepKind, access: Access) -> None:
        racing = may_race(self.racing, access.access_kind, access)
        self.note(FormStep(kind, access.space, access.spans, self.request(access), racing), access)

    def apply(self, access: Access, place: int, same_command: bool = False) -> list[DetectedHazard]:
        """Meets nothing."""
        self._note_access(FormStepKind.APPLY, access)
        return []

    def apply_checked(self, access: Access, place: int, same_command: bool = False) -> None:
        """Takes note of it."""
        request = self.request(access)._replace(same_command=same_command)
        self.note(FormStep(FormStepKind.QUIET, access.space, access.spans, request, NO_RACE))

    def check(self, access: Access) -> Iterator[DetectedHazard]:
        """Meets nothing."""
        self._note_access(FormStepKind.CHECK, access)
        return iter(())

    def through_aliases(self, access: Access) -> Iterator[DetectedHazard]:
        """Raises NoForm where there are aliases."""
        if access.aliases:
            raise NoForm
        return iter(())

    def report_alias_hazards(
        self, alias: Alias, through: int, hazards: list[DetectedHazard]
    ) -> Iterator[DetectedHazard]:
        """Raises NoForm."""
        raise NoForm

    def check_transition(
        self, space: int, spans: Iterable[Span], sources: Sources, resource: int, access_kind: int = LAYOUT_TRANSITION
    ) -> Iterator[DetectedHazard]:
        """Meets nothing."""
        queue = self.queue
        asked = Question(
            ("transition hazard", sources, queue, access_kind),
            lambda state: transition_hazard(state, sources, queue, access_kind)[0] is not None,
        )
        step = FormStep(FormStepKind.TRANSITION, space, tuple(spans), asked, may_race(self.racing, access_kind, None))
        self.note(step, Access(access_kind, space, (), resource), sources)
        return iter(())

    def show_transition(
        self, space: int, spans: Iterable[Span], maker: int, receivers: Sources, anew: bool = True
    ) -> None:
        """Takes note of it."""
        show = shown_to if anew else shown_as_well
        change = Change(("show", anew, maker, receivers), lambda state: show(state, maker, receivers))
        self.note(FormStep(FormStepKind.SHOW, space, tuple(spans), change, NO_RACE))

    def with_host_token(self, scope: Scope, everywhere: bool = True) -> Scope:
        """Raises NoForm where that would leave a token."""
        if scope.dst_accesses & HOST_ACCESSES and self.queue:
            raise NoForm
        return scope


class NotingStore:
    """Stands in for the store of a `NotingContext`: records changes as steps of a form and applies none."""

    def __init__(self, context: NotingContext) -> None:
        self._context = context

    def map(self, change: Change) -> None:
        """Takes note of it."""
        self._context.note(FormStep(FormStepKind.SYNCHRONIZE, 0, (), change, NO_RACE))

    def synchronize(self, everything: Change | None, place: int, covers: list[Cover]) -> None:
        """Takes note of it."""
        self._context.note(FormStep(FormStepKind.SYNCHRONIZE, 0, tuple(covers), everything, NO_RACE))


class FormMaker:
    """Finds out what commands do."""

    def __init__(self) -> None:
        self._context = NotingContext()
        self._execution = Execution(self._context)
        self._execution.batch = self._context.places.open(0, NEVER)
        self._noted: dict[int, tuple[EffectPlan, Standpoint, list[NotedStep]]] = {}
        """Recent results of `noted` by the identity of the plan; each with the plan and its standpoint."""

    def made(self, at: Standpoint, plan: EffectPlan) -> tuple[list[NotedStep], Standpoint]:
        """The steps of a command, and the standpoint of the one behind it. Raises NoForm."""
        context, execution = self._context, self._execution
        if not is_plain(plan) or (at.instance is not None and _begins_instance(plan)):
            raise NoForm
        context.stand(at)
        execution.family, execution.transfers = at.family, False
        execution.instance = None if at.instance is None else at.instance.copied(context, at.instance.racing)
        execution.run(Command(0, "", None, plan), at.queue_flags)
        if execution.transfers:
            raise NoForm
        return context.steps, self._behind(at, plan)

    def noted(self, at: Standpoint, plan: EffectPlan) -> list[NotedStep]:
        """The steps of a command that has a form. Programs that meet something tend to meet it again."""
        held = self._noted.get(id(plan))
        if held is None or held[0] is not plan or held[1] is not at:
            if len(self._noted) >= MOST_NOTED:
                self._noted.clear()
            held = self._noted[id(plan)] = plan, at, self.made(at, plan)[0]
        return held[2]

    def _behind(self, at: Standpoint, plan: EffectPlan) -> Standpoint:
        if not any(type(effect) in OF_INSTANCES for effect in plan.effects):
            return at
        if self._execution.instance is not None:
            return _inside(at, self._context, self._execution.instance)
        return outside(at.queue, at.queue_flags, at.family, at.races, at.queue in self._context.closed)
