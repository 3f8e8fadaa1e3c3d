"""Whether dependencies lead from one access to another: barriers, and those of render passes.

The layer hands an access on to a subpass, and from there to what follows, only where the subpass itself accesses the
same addresses. Elsewhere the dependencies of a pass from and to what is outside do nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from vkharness.findings import Hazard
from vkharness.layer.barrier_scopes import barrier_scopes
from vkharness.layer.conditions import QUEUE_FLAGS, condition
from vkharness.layer.event_conditions import is_set, is_set_elsewhere
from vkharness.layer.stream import Executed, Stream
from vkharness.layer.subject import ExecutedCommand, Subject, dependencies_of
from vkharness.layer.touches import TRANSITION, Touch, apart, common
from vkharness.spans import subtract
from vkharness.spec.command_classes import ENDS_RENDERING, NEXT_SUBPASS
from vkharness.spec.enums import VkAccess2, VkPipelineStage2
from vkharness.spec.scopes import (
    ACCESS_KIND,
    ACCESS_KINDS,
    BOTTOM,
    TOP,
    WHOLE_FIRST,
    WHOLE_SECOND,
    access_scope,
    execution_scope_dst,
    execution_scope_src,
    expand_stages,
)
from vkharness.trace.attachment_operations import AttachmentOperation
from vkharness.trace.calls import Call
from vkharness.trace.effects import (
    EXTERNAL,
    Access,
    Barrier,
    Dependency,
    Effect,
    PassBegin,
    RangeBarrier,
    SubpassDependency,
)
from vkharness.trace.submits import SubmitBatch, batches

BEGINS = "vkCmdBeginRenderPass"
ATTACHMENTS = ("_COLOR_ATTACHMENT_", "_DEPTH_STENCIL_ATTACHMENT_")
MEMORY = VkAccess2.MEMORY_READ | VkAccess2.MEMORY_WRITE
GRAPHICS = expand_stages(VkPipelineStage2.ALL_GRAPHICS, QUEUE_FLAGS)
GRAPHICS_FIRST = execution_scope_src(VkPipelineStage2.ALL_GRAPHICS, QUEUE_FLAGS)
GRAPHICS_SECOND = execution_scope_dst(VkPipelineStage2.ALL_GRAPHICS, QUEUE_FLAGS)
FRAMEBUFFER_SPACE = (
    VkPipelineStage2.FRAGMENT_SHADER
    | VkPipelineStage2.EARLY_FRAGMENT_TESTS
    | VkPipelineStage2.LATE_FRAGMENT_TESTS
    | VkPipelineStage2.COLOR_ATTACHMENT_OUTPUT
)


class Reached(NamedTuple):
    """The effect of the dependencies so far on one access: the stages that wait for it, and its availability and
    visibility if it is a write."""

    stages: int = 0
    """The stages that wait for it."""
    available: bool = False
    accesses: int = 0
    """The kinds of access to which it is visible, as bits of ACCESS_KINDS indices."""
    chain: int = 0
    """More stages with which later dependencies chain. No later command waits in them: they were of a subpass."""
    shown: int = 0
    """The stages that wait until it is available."""

    def joined(self, other: Reached) -> Reached:
        """Both together."""
        return Reached(
            self.stages | other.stages,
            self.available or other.available,
            self.accesses | other.accesses,
            self.chain | other.chain,
            self.shown | other.shown,
        )

    @property
    def chains(self) -> int:
        """The stages with which later dependencies chain."""
        return self.stages | self.chain


NOTHING = Reached()


class DependencyScopes(NamedTuple):
    """One dependency, as scopes: stages, and kinds of access as bits of ACCESS_KINDS indices."""

    src_stages: int
    src_accesses: int
    dst_stages: int
    dst_accesses: int

    def after(self, access: str, reached: Reached) -> Reached:
        """Gives the effect of this dependency on an access, given that of the dependencies before it. `access` is empty
        where the first scope cannot hold the access itself, so that only a chain can."""
        kind = ACCESS_KIND[access] if access else None
        if not self.holds(access, reached):
            return NOTHING
        chained = reached.available and bool((reached.shown | reached.chain | BOTTOM) & self.src_stages)
        available = chained or (kind is not None and bool(self.src_accesses >> kind.index & 1))
        if not available:
            return Reached(self.dst_stages)
        return Reached(self.dst_stages, True, self.dst_accesses, shown=self.dst_stages)

    def holds(self, access: str, reached: Reached) -> bool:
        """Whether its first scope holds that access, or what was done for it before."""
        stage = (BOTTOM if access == TRANSITION else ACCESS_KIND[access].stage) if access else 0
        return bool((stage | reached.chains) & self.src_stages)

    @property
    def given(self) -> Reached:
        """The effect of the dependency on the layout transition that it makes."""
        return Reached(self.dst_stages, True, self.dst_accesses, shown=self.dst_stages)


def link_of(given: Dependency, *, subpass: bool) -> DependencyScopes:
    """The scopes of a dependency. ALL_COMMANDS is ALL_GRAPHICS between subpasses."""
    src, src_accesses, dst, dst_accesses = given
    first, second = execution_scope_src(src, QUEUE_FLAGS), execution_scope_dst(dst, QUEUE_FLAGS)
    if subpass:
        first &= GRAPHICS_FIRST if src & WHOLE_FIRST else ~0
        second &= GRAPHICS_SECOND if dst & WHOLE_SECOND else ~0
    return DependencyScopes(
        first, access_scope(src, src_accesses, QUEUE_FLAGS), second, access_scope(dst, dst_accesses, QUEUE_FLAGS)
    )


@dataclass
class Walk:
    """Follows the effect of dependencies on one access, command after command."""

    access: str
    passes: bool = False
    """Whether dependencies from and to what is outside a render pass count, and what others lead to goes on behind it.
    Without, it is as for the layer, which hands on what a subpass accessed alone."""
    outer: Reached = NOTHING
    inside: dict[int, Reached] = field(default_factory=dict)
    given: Sequence[SubpassDependency] = ()
    subpass: int | None = None
    made_in: int | None = None
    """The subpass of this instance that made the access."""

    def begin(self, given: Sequence[SubpassDependency]) -> None:
        """A render pass instance begins."""
        self.given = [each for each in given if self.passes or EXTERNAL not in (each.src, each.dst)]
        self.inside, self.made_in = {}, None
        self.enter(0)

    def enter(self, subpass: int) -> None:
        """A subpass begins."""
        self.subpass = subpass
        reached = self.outer._replace(chain=0)  # no dependency from this subpass chains with what led into another
        for each in self.given:
            if each.dst == subpass != each.src:
                before = self.outer if each.src == EXTERNAL else self.inside.get(each.src, NOTHING)
                reached = reached.joined(link_of(each.dependency, subpass=True).after(self._held(each.src), before))
        self.inside[subpass] = reached

    def end(self) -> None:
        """The render pass instance ends."""
        reached = self.outer
        for subpass, before in self.inside.items():
            if not self.passes and self.made_in not in (None, subpass):
                continue
            reached = reached.joined(Reached(available=before.available, chain=before.chains))
            for each in self.given:
                if (each.src, each.dst) == (subpass, EXTERNAL):
                    reached = reached.joined(link_of(each.dependency, subpass=True).after(self._held(subpass), before))
        self.outer, self.subpass, self.given = reached, None, ()
        self.made_in = None

    def barriers(self, links: Iterable[DependencyScopes]) -> None:
        """The barriers of one command, outside render passes or in a subpass. They do not chain."""
        now = self.now
        held = self.access if self.subpass is None or self.made_in in (None, self.subpass) else ""
        reached = now
        for link in links:
            reached = reached.joined(link.after(held, now))
        self.put(reached)

    def put(self, reached: Reached) -> None:
        """Sets the effect of the dependencies so far, as it holds for the next command and those after it."""
        if self.subpass is None:
            self.outer = reached
        else:
            self.inside[self.subpass] = reached

    def _held(self, src: int) -> str:
        """The access, if commands outside (EXTERNAL) or those of a subpass hold it."""
        return self.access if src == (EXTERNAL if self.made_in is None else self.made_in) else ""

    @property
    def now(self) -> Reached:
        """The effect of the dependencies so far, as it holds for the next command."""
        return self.outer if self.subpass is None else self.inside[self.subpass]


def links_of(call: Call, stream: Stream, mine: Sequence[Touch]) -> Iterator[tuple[bool, DependencyScopes]]:
    """The barriers of a command, and whether each is a layout transition of these addresses. One that does not hold
    all of them orders execution alone."""
    for effect in stream.facts(call).effects:
        for barrier in (effect,) if isinstance(effect, Barrier) else getattr(effect, "barriers", ()):
            yield from ((False, link_of(each, subpass=False)) for each in barrier.globals)
            for part in barrier.ranges:
                if part.src_family != part.dst_family:
                    continue
                link, held = link_of(part.dependency, subpass=False), _holds(part, mine)
                yield part.transition and held, link if held else link._replace(src_accesses=0, dst_accesses=0)


def local_dependencies(effect: Effect) -> Iterator[Dependency]:
    """Those of the dependencies of a barrier or a render pass that hold by region or by view alone.

    Rules: rules.md#by-region-dependencies-order-attachments, rules.md#view-local-dependencies-order-views.
    """
    if isinstance(effect, PassBegin):
        given = [(each.dependency, each.by_region, each.views is not None) for each in effect.dependencies]
    elif isinstance(effect, Barrier):
        whole = (each for each in effect.ranges if each.all_stages or each.src_family == each.dst_family)
        several = (*effect.globals, *(each.dependency for each in whole))
        given = [(each, effect.by_region, effect.by_view) for each in several]
    else:
        return
    for dependency, by_region, by_view in given:
        sides = (dependency.src_stages & ~TOP, dependency.dst_stages & ~BOTTOM)
        if by_view or (by_region and all(side and not side & ~FRAMEBUFFER_SPACE for side in sides)):
            yield dependency


def _holds(part: RangeBarrier, mine: Sequence[Touch]) -> bool:
    return all(each.space == part.space and not subtract(each.spans, part.spans) for each in mine)


def is_led(
    subject: Subject,
    steps: Sequence[ExecutedCommand],
    first: int,
    mine: Sequence[Touch],
    *,
    passes: bool,
    surely: bool = False,
) -> bool:
    """Whether dependencies lead from the access of the step at position `first` to that of the last one. `mine` is
    where the two meet. `surely`: whichever access of a vkCmdNextSubpass* is meant, at the end of a subpass or at the
    beginning of the next."""
    if surely and steps[first].call.name.startswith(NEXT_SUBPASS):
        return False
    stream, access = subject.stream, subject.key[4]
    walk = Walk("", passes)
    for position, step in enumerate(steps[:-1]):
        made = position == first
        walk.access = access if position > first else ""
        walk.barriers(_waited(steps, position, stream))
        walk.access = access if position >= first else ""
        if not passes and step.place is None and is_set_elsewhere(step.call, stream):
            continue  # the layer takes nothing of such a wait
        if made and step.call.name.startswith(NEXT_SUBPASS) and ends_subpass(stream, step.call, access, mine):
            walk.made_in, made = walk.subpass, False
        take_step(walk, step.call, stream, mine, made)
        if made:
            walk.made_in = walk.subpass
    walk.barriers(_waited(steps, len(steps) - 1, stream))
    return reaches(walk, steps[-1].call, subject, mine, all if surely else any)


def _waited(steps: Sequence[ExecutedCommand], at: int, stream: Stream) -> Iterator[DependencyScopes]:
    """The waits for semaphores before the first step of a batch, for what the batch of the step before signals."""
    one, other = steps[max(0, at - 1)].place, steps[at].place
    if not one or not other or one[:2] == other[:2]:
        return
    signals, waits = _batch(one, stream).signals, _batch(other, stream).waits
    for wait in waits:
        for signal in signals:
            if signal.semaphore == wait.semaphore and signal.value >= wait.value:
                scopes = (signal.stages, MEMORY, wait.stages, MEMORY)
                yield link_of(Dependency(*scopes), subpass=False)


def _batch(place: Executed, stream: Stream) -> SubmitBatch:
    submit = stream.at(place[0])
    return batches(submit.args)[place[1]] if submit is not None else SubmitBatch((), (), ())


def ends_subpass(stream: Stream, call: Call, access: str, mine: Sequence[Touch]) -> bool:
    """Whether such an access belongs to an operation at the end of the subpass that a command leaves."""
    spaces = {each.space for each in mine}
    return any(
        isinstance(each, Access)
        and each.operation > AttachmentOperation.LOAD
        and ACCESS_KINDS[each.access_kind].name == access
        and each.space in spaces
        for each in stream.facts(call).effects
    )


def take_step(walk: Walk, call: Call, stream: Stream, mine: Sequence[Touch], made: bool) -> None:
    """One command; `made`: that of the first access, which its own dependencies do not hold but by its transition."""
    moves = made and walk.access == TRANSITION
    access, walk.access = walk.access, "" if made else walk.access
    if call.name.startswith(BEGINS):
        walk.begin(dependencies_of(call, stream))
    elif call.name.startswith(NEXT_SUBPASS) and walk.subpass is not None:
        walk.enter(walk.subpass + 1)
    elif call.name.startswith(ENDS_RENDERING) and walk.subpass is not None:
        given = [each for each in walk.given if each.dst == EXTERNAL]
        # The dependencies at this end hold the writes of store and resolve operations in their first scope.
        walk.access, walk.made_in = access, walk.subpass if made else walk.made_in
        walk.end()
        for each in given if moves else ():
            walk.put(walk.now.joined(link_of(each.dependency, subpass=True).given))
    elif made:
        for moving, link in links_of(call, stream, mine):
            walk.put(walk.now.joined(link.given) if moving and moves else walk.now)
    else:
        walk.barriers(link for _, link in links_of(call, stream, mine))
    if moves and walk.subpass is not None:
        for each in walk.given:
            if each.dst == walk.subpass != each.src:
                walk.put(walk.now.joined(link_of(each.dependency, subpass=True).given))
    walk.access = access


def reaches(
    walk: Walk, second: Call, subject: Subject, mine: Sequence[Touch], enough: Callable[[Iterable[bool]], bool]
) -> bool:
    """Whether what was done for the first access is enough for the second one."""
    if subject.key[3] == TRANSITION:
        several = _before_transition(walk, second, subject, mine)
        return any(is_enough(subject.key[0] == Hazard.WRITE_AFTER_READ, *each) for each in several)
    states = [walk.now]
    if second.name.startswith(BEGINS):
        walk.begin(dependencies_of(second, subject.stream))
        states = [walk.now]
    elif second.name.startswith(NEXT_SUBPASS) and walk.subpass is not None:
        walk.enter(walk.subpass + 1)
        states.append(walk.now)
    return enough(is_seen(subject.key[0] == Hazard.WRITE_AFTER_READ, subject.key[3], each) for each in states)


def is_seen(reads: bool, access: str, reached: Reached) -> bool:
    """Whether an access sees what was done for an earlier write, or comes after an earlier read."""
    kind = ACCESS_KIND.get(access)
    if kind is None:
        return False
    return bool(reached.stages & kind.stage) if reads else bool(reached.accesses >> kind.index & 1)


def _before_transition(
    walk: Walk, second: Call, subject: Subject, mine: Sequence[Touch]
) -> Iterator[tuple[DependencyScopes, str, Reached]]:
    """The dependencies before a transition, each with the first access if it may hold it, and what leads to it."""
    if second.name.startswith((BEGINS, NEXT_SUBPASS, ENDS_RENDERING)):
        given = walk.given or [each for each in dependencies_of(second, subject.stream) if walk.passes]
        into = 0 if second.name.startswith(BEGINS) else (walk.subpass or 0) + 1
        into = EXTERNAL if second.name.startswith(ENDS_RENDERING) else into
        for each in given:
            if each.dst == into != each.src:
                before = walk.outer if each.src == EXTERNAL else walk.inside.get(each.src, NOTHING)
                held = walk.access if each.src == (EXTERNAL if walk.made_in is None else walk.made_in) else ""
                yield link_of(each.dependency, subpass=True), held, before
        return
    for moving, link in links_of(second, subject.stream, mine):
        if moving:
            yield link, walk.access, walk.now


def is_enough(reads: bool, link: DependencyScopes, held: str, reached: Reached) -> bool:
    """Whether one dependency of a layout transition orders it after an earlier write, or an earlier read, by what it
    holds and by what was done before it. No stage performs a transition, so that an earlier dependency to ALL_COMMANDS
    holds it back, too (rules.md#none-before-a-transition-is-the-top-of-the-pipe)."""
    if reads:
        return link.holds(held, reached) or bool(reached.stages & TOP)
    return link.after(held, reached).available or bool(reached.shown & TOP)


def candidates(subject: Subject) -> Iterator[tuple[list[ExecutedCommand], int, list[Touch]]]:
    """Yields the candidates for the two accesses: the commands on the second one's queue up to it, the position of the
    first one among them, and the parts of the second access that meet it."""
    stream = subject.stream
    for steps in subject.occurrences:
        queue = _queue(steps[-1], stream)
        several = [step for step in steps if _queue(step, stream) == queue]
        touches = stream.as_executed(steps[-1].place).touches(steps[-1].call)
        mine = [each for each in map(subject.at_issue, touches) if each.spans]
        for position in range(len(several) - 2, -1, -1):
            step = several[position]
            if subject.may_be_first(step):
                touches = stream.as_executed(step.place).touches(step.call)
                named = [each for each in touches if subject.renamed(step.call.name, each.access) == subject.key[4]]
                if shared := common(mine, named):
                    yield several, position, shared
                    break


def _queue(step: ExecutedCommand, stream: Stream) -> int:
    submit = stream.at(step.place[0]) if step.place else None
    return submit.args["queue"] if submit is not None else 0


@condition
def chained_through_a_pass(subject: Subject) -> bool:
    """Dependencies of render passes from or to what is outside, or of a subpass that is not that of the first access,
    lead from the first access to the second one, by themselves or with barriers, and nothing else does. A pass between
    the two has such a subpass that does not access what the second command does."""
    for steps, position, mine in candidates(subject):
        calls = [step.call for step in steps]
        if (
            is_led(subject, steps, position, mine, passes=True)
            and not is_led(subject, steps, position, mine, passes=False)
            and any(_is_passed_by(subject, calls, begin) for begin in _begins(calls, position))
        ):
            return True
    return False


@condition
def ordered_after_a_read(subject: Subject) -> bool:
    """Another command between the two reads what the second one reads, or would with other parameters. Dependencies
    lead from it to the second, or both are accesses of one kind of attachment, which are in order for the layer."""
    for steps, position, mine in candidates(subject):
        for at in range(position + 1, len(steps) - 1):
            own = steps[at]
            stream = subject.stream.as_executed(own.place)
            for each in (*stream.touches(own.call), *stream.facts(own.call).left_out):
                if each.write or not (shared := common([each], mine)):
                    continue
                _, command, _, access, _ = subject.key
                if any(kind in access and kind in each.access for kind in ATTACHMENTS):
                    return True
                key = (Hazard.WRITE_AFTER_READ.value, command, own.call.name, access, each.access)
                if is_led(replace(subject, key=key), steps, at, shared, passes=True):
                    return True
    return False


@condition
def led_from_all_commands(subject: Subject) -> bool:
    """Dependencies lead from the first access to the second one. A barrier between the two waits for ALL_COMMANDS and
    does not name MEMORY_WRITE."""
    return any(
        is_led(subject, steps, position, mine, passes=True)
        and any(
            each.src_stages & VkPipelineStage2.ALL_COMMANDS and not each.src_accesses & VkAccess2.MEMORY_WRITE
            for step in steps[position + 1 :]
            for each in barrier_scopes(step.call)
        )
        for steps, position, mine in candidates(subject)
    )


@condition
def untouched_before_the_set(subject: Subject) -> bool:
    """The second command waits for events, and before the last set of them nothing touched what it shares with the
    first access."""
    for steps, _, shared in candidates(subject):
        events = set(steps[-1].call.args.get("pEvents") or ())
        sets = [at for at, step in enumerate(steps) if step.call.args.get("event") in events and is_set(step.call)]
        earlier = steps[: sets[-1]] if sets else []
        stream = subject.stream
        if sets and not any(common(shared, stream.as_executed(each.place).touches(each.call)) for each in earlier):
            return True
    return False


def _begins(calls: Sequence[Call], first: int) -> Iterator[int]:
    """The positions of the render pass instances that end after the first access and before the second one."""
    begun: int | None = None
    for at, call in enumerate(calls[:-1]):
        begun = at if call.name.startswith(BEGINS) else begun
        if call.name.startswith(ENDS_RENDERING) and begun is not None:
            if at > first:
                yield begun
            begun = None


def _is_passed_by(subject: Subject, calls: Sequence[Call], begin: int) -> bool:
    """Whether a subpass with a dependency from another one, or from or to what is outside, leaves out some of what the
    second does."""
    given = dependencies_of(calls[begin], subject.stream)
    passed = {each.src if each.dst == EXTERNAL else each.dst for each in given if each.src != each.dst}
    left = {each: [touch for touch in _at_issue(subject, calls[-1]) if touch.spans] for each in passed}
    for subpass, touch in _accesses(subject.stream, calls[begin:-1]):
        if subpass in left:
            left[subpass] = [part for each in left[subpass] if (part := apart(each, touch)).spans]
    return any(left.values())


def _at_issue(subject: Subject, second: Call) -> list[Touch]:
    return [subject.at_issue(touch) for touch in subject.stream.touches(second)]


def _accesses(stream: Stream, calls: Iterable[Call]) -> Iterator[tuple[int, Touch]]:
    """Yields the accesses of the commands of a render pass instance, each with the number of its subpass."""
    at = 0
    for call in calls:
        at += call.name.startswith(NEXT_SUBPASS)
        yield from ((at, touch) for touch in stream.touches(call))
        if call.name.startswith(ENDS_RENDERING):
            return
