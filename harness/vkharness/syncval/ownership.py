"""Queue family ownership of exclusive resources (specification: "Resource Sharing Mode", "Queue Family Ownership
Transfer"). The Khronos layer's synchronization validation models none of it.

* A range, or image subresource, belongs to no family until a queue uses it, and then to that queue's family.
* Another family may take it by just using it, but then the contents are undefined. What overwrites (a write, a
  transition from VK_IMAGE_LAYOUT_UNDEFINED) therefore needs no transfer; what depends on the contents does: a read, an
  atomic, a transition from another layout, a release, a present.
* A release leaves the contents undefined to everybody until the acquire that matches it: same resource, families and
  layouts, exactly the same range. It may stay without one, if the contents are not needed any more.
* An acquire without a release, or after something else was done to the range, is wrong whatever comes after.
* Where nobody ever wrote the contents there is nothing to lose: such a finding is advice.
* Resources of VK_SHARING_MODE_CONCURRENT belong to all families, but are released and acquired like others to and from
  what is outside the instance (VK_QUEUE_FAMILY_EXTERNAL, _FOREIGN_EXT). What happens there is not seen: an acquire from
  there needs no release here.
* With maintenance9 some families keep the contents of a buffer or image that they just use.

Whether accesses and both halves come in order is not looked at here: `execution` has the halves as writes for that.
Host accesses neither need nor change ownership. Images that alias what is transferred are not followed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, NamedTuple

from vkharness.findings import Certainty, Finding, Hazard, OwnershipFamilies, Place
from vkharness.spans import ENDLESS, Span, SpanMap, merge
from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED, VkImageLayout
from vkharness.spec.scopes import ACCESS_KIND, ACCESS_KINDS, BOTTOM, TOP
from vkharness.syncval.barrier import Scope
from vkharness.syncval.evidence import Describe
from vkharness.syncval.state import LAYOUT_TRANSITION, OWNERSHIP_TRANSFER
from vkharness.trace import effects
from vkharness.trace.effects import Command
from vkharness.trace.ownership_effects import SharedResource
from vkharness.trace.recorded_commands import CommandColumns

ALL_FAMILIES = VK_QUEUE_FAMILY_IGNORED
"""The owner of what is shared by all families."""
PRESENT = ACCESS_KIND["SYNC_PRESENT_ENGINE_SYNCVAL_PRESENT_PRESENTED_SYNCVAL"].index
EVERYTHING: Span = (0, ENDLESS)


class OwnershipRole(Enum):
    """Which half of a queue family ownership transfer a barrier is to the queue that executes it."""

    NONE = 0
    RELEASE = 1
    ACQUIRE = 2


def half_of(barrier: effects.RangeBarrier, family: int) -> OwnershipRole:
    """Which half of a transfer a barrier is on a queue of this family; NONE when it is no transfer, or on neither."""
    if barrier.src_family == barrier.dst_family:
        return OwnershipRole.NONE
    if barrier.dst_family in effects.FAMILIES_OUTSIDE:
        return OwnershipRole.RELEASE
    if barrier.src_family in effects.FAMILIES_OUTSIDE:
        return OwnershipRole.ACQUIRE
    if family == VK_QUEUE_FAMILY_IGNORED:
        return OwnershipRole.NONE
    return (
        OwnershipRole.RELEASE
        if family == barrier.src_family
        else OwnershipRole.ACQUIRE
        if family == barrier.dst_family
        else OwnershipRole.NONE
    )


def of_half(scope: Scope, barrier: effects.RangeBarrier, family: int) -> Scope:
    """The part of a dependency that a barrier has on a queue of this family: all of it, unless it is a half of a
    transfer. A release makes nothing visible, an acquire nothing available.

    The second scope of a release and the first scope of an acquire do not apply, unless `all_stages` says that their
    stages count. Otherwise only ALL_COMMANDS comes after a release and before an acquire, and the half is not between
    two framebuffer-space stages, so that it holds everywhere.
    Rules: rules.md#the-halves-of-a-transfer-have-no-stage, rules.md#a-semaphore-orders-the-halves-of-a-transfer,
    rules.md#by-region-dependencies-order-attachments.
    """
    match half_of(barrier, family):
        case OwnershipRole.RELEASE:
            half = scope._replace(dst_accesses=0)
            return half if barrier.all_stages else half._replace(dst_stages=BOTTOM, local=False)
        case OwnershipRole.ACQUIRE:
            half = scope._replace(src_accesses=0)
            return half if barrier.all_stages else half._replace(src_stages=TOP, event=0, local=False)
    return scope


def written_by(barrier: effects.RangeBarrier, family: int) -> int | None:
    """As which access a barrier counts as a write on a queue of this family: a transition, or half of a transfer; None
    for neither."""
    if barrier.transition:
        return LAYOUT_TRANSITION
    return None if half_of(barrier, family) is OwnershipRole.NONE else OWNERSHIP_TRANSFER


class Owner(NamedTuple):
    """Who owns a range, by what, and how that was; `release` is what gave it away, if it was released since."""

    family: int
    place: Place
    access_kind: int
    release: effects.RangeBarrier | None = None

    def gives(self, family: int, acquirers: tuple[int, ...] = ()) -> bool:
        """Whether the contents are defined for a family: it owns them, or is one of the `acquirers` by owner, as masks.

        Rule: rules.md#contents-must-be-transferred-to-another-family.
        """
        if self.release is not None or self.family == family:
            return self.release is None
        return max(self.family, family) < len(acquirers) and bool(acquirers[self.family] & 1 << family)


class SettledCommands:
    """Plans of sequences of commands of which none had to be followed: programs execute the same ones in each frame."""

    MOST = 8
    """The most sequences."""
    FEW = 16
    """Commands that are sooner looked at than remembered."""

    def __init__(self) -> None:
        self._held: deque[tuple[object, list[effects.EffectPlan]]] = deque(maxlen=self.MOST)

    def has(self, known: object, plans: list[effects.EffectPlan]) -> bool:
        """Whether none of them has to be followed as long as this is `known`."""
        return any(one is known and held == plans for one, held in self._held)

    def add(self, known: object, plans: list[effects.EffectPlan]) -> None:
        """None of them had to be followed, and this was `known`."""
        if len(plans) > self.FEW:
            self._held.append((known, plans))


class Ownership:
    """Who owns what on a device. Does nothing (`active` is false) before queues of a second family are known, or
    something was released to or acquired from what is outside."""

    def __init__(self, describe: Describe) -> None:
        self._describe = describe
        self._families: dict[int, int] = {}
        self._shared: dict[int, tuple[int, ...] | None] = {}
        """`SharedResource.acquirers` by resource."""
        self._held: dict[int, SpanMap[Owner]] = {}
        self._written: dict[int, SpanMap[bool]] = {}
        self._known: object = object()
        """Another object whenever what is known here changes for commands that were `_settled`."""
        self._lately = SettledCommands()
        self.active = False
        self.is_blind = False
        """Whether it was not told of something that was executed, or written by the host: it may have contents."""

    def obtained(self, queue: int, family: int) -> None:
        """A queue is of a family."""
        if family != VK_QUEUE_FAMILY_IGNORED:
            self._families[queue] = family
            self.active = self.active or len(set(self._families.values())) > 1

    def share(self, made: SharedResource) -> None:
        """A resource belongs to all families, or needs no transfer between some."""
        self._shared[made.resource] = made.acquirers

    def forget(self, gone: effects.Destroyed) -> None:
        """A resource no longer exists."""
        if gone.resource in self._shared or gone.space in self._written:
            self._known = object()
        self._shared.pop(gone.resource, None)
        if gone.span is None:
            self._held.pop(gone.space, None)
        elif gone.space in self._held:
            self._held[gone.space].erase(*gone.span)
        if gone.span is None:
            self._written.pop(gone.space, None)
        elif gone.space in self._written:
            self._written[gone.space].erase(*gone.span)

    def wrote(self, space: int, spans: Iterable[Span]) -> None:
        """Somebody wrote contents there."""
        if self.active:
            written = self._written.setdefault(space, SpanMap())
            for span in spans:
                written.assign(*span, True)
        else:
            self.is_blind = True

    def unsettled(self, commands: Sequence[Command], begin: int, end: int) -> Iterator[int]:
        """The places of commands, from one on and up to another, that may change anything here, or meet anything."""
        known = self._known
        columns = commands.all_plans if isinstance(commands, CommandColumns) else None
        plans = [each.plan for each in commands[begin:end]] if columns is None else columns[begin:end]
        if self._lately.has(known, plans):
            return
        met = False
        for at, plan in enumerate(plans, begin):
            if plan.owners is not known:
                yield at
                known = self._known  # that command may have changed it
                met = True
        if not met:
            self._lately.add(known, plans)

    def _settled(self, command: Command) -> bool:
        """Whether a command that was followed changes and meets nothing if it is executed again: all that it uses is
        every family's, and nobody ever owned it."""
        used = list(map(_used, command.effects))
        several = [each for some in used for each in some or ()]
        is_own = any(self._shared.get(each.resource, ()) is not None or each.space in self._held for each in several)
        return None not in used and not is_own

    # -- what uses ranges ----------------------------------------------------------------------------------------------

    def follow(self, command: Command, place: Place, family: int) -> Iterator[Finding]:
        """One command that a queue of this family executes; the findings that it causes."""
        if family == VK_QUEUE_FAMILY_IGNORED:
            return
        for effect in command.effects:
            yield from self._effect(effect, place, family)
        if self.active and self._settled(command):
            command.plan.owners = self._known

    def _effect(self, effect: effects.Effect, place: Place, family: int) -> Iterator[Finding]:
        match effect:
            case effects.Access():
                plain = ACCESS_KINDS[effect.access_kind].write
                needed, writes = effect.atomic or not plain, effect.atomic or plain
                where = effect.resource, effect.space, effect.spans
                if effect.certainty is Certainty.BOUND and not writes:
                    yield from self._may_use(*where, effect.access_kind, place, family)
                else:
                    yield from self._use(*where, effect.access_kind, needed, place, family, writes)
                if writes:
                    self.wrote(effect.space, effect.spans)
                    for alias in effect.aliases:
                        self.wrote(alias.space, alias.spans)
            case effects.Barrier(ranges=ranges):
                yield from self._barriers(ranges, place, family)
            case effects.WaitEvents(barriers=barriers):
                for barrier in barriers:
                    yield from self._barriers(barrier.ranges, place, family)
            case effects.SubpassBegin(transitions=transitions) | effects.PassEnd(transitions=transitions):
                for each in transitions:
                    yield from self._transition(each, place, family)
            case effects.Execute(buffers=buffers):
                for buffer, commands in buffers:
                    for inner in commands:
                        there = replace(
                            place, call=inner.call, command=inner.name, site=inner.site, command_buffer=buffer
                        )
                        yield from self.follow(inner, there, family)

    def present(self, presented: effects.Presented, place: Place) -> Iterator[Finding]:
        """Presented images must belong to the family of the queue that presents them."""
        family = self._families.get(presented.queue)
        if family is None:
            return
        for _, image in presented.images:
            spans = tuple((begin, end) for begin, end, _ in self._pieces(image, EVERYTHING))
            yield from self._use(image, image, spans, PRESENT, True, place, family)

    def _barriers(self, ranges: Iterable[effects.RangeBarrier], place: Place, family: int) -> Iterator[Finding]:
        for each in ranges:
            match half_of(each, family):
                case OwnershipRole.RELEASE:
                    yield from self._release(each, place, family)
                case OwnershipRole.ACQUIRE:
                    yield from self._acquire(each, place, family)
                case OwnershipRole.NONE if each.transition:
                    yield from self._transition(each, place, family)

    def _transition(
        self, each: effects.RangeBarrier | effects.AutomaticTransition, place: Place, family: int
    ) -> Iterator[Finding]:
        needed = each.old_layout != VkImageLayout.UNDEFINED
        return self._use(each.resource, each.space, each.spans, LAYOUT_TRANSITION, needed, place, family)

    def _use(
        self,
        resource: int,
        space: int,
        spans: tuple[Span, ...],
        access_kind: int,
        needed: bool,
        place: Place,
        family: int,
        writes: bool = True,
    ) -> Iterator[Finding]:
        """A family uses ranges, which are its own from then on; `needed` says whether their contents matter.

        Rule: rules.md#overwriting-needs-no-transfer.
        """
        family = ALL_FAMILIES if self._shared.get(resource, ()) is None else family
        if family == ALL_FAMILIES and space not in self._held:
            return
        mine = Owner(family, place, access_kind)
        held = self._holding(space)
        others = []
        for span in spans:
            known = held.exact(*span)
            if known is None or not known.gives(family):
                others.append(span)
            elif writes:
                held.set_exact(*span, mine)
        if needed and others:
            yield from self._lost(resource, space, others, access_kind, place, family)
        for span in others:
            if not writes:  # whoever wrote the contents is told of, rather than who read them last
                held.update(*span, lambda _b, _e, known: known if known and known.gives(family) else mine)
            else:
                held.assign(*span, mine)

    def _may_use(
        self, resource: int, space: int, spans: tuple[Span, ...], access_kind: int, place: Place, family: int
    ) -> Iterator[Finding]:
        """A family may read ranges, as contents decide that nobody knows: it does not own them for that.

        Rule: rules.md#what-may-be-read-makes-the-verdict-unknown.
        """
        family = ALL_FAMILIES if self._shared.get(resource, ()) is None else family
        for found in self._lost(resource, space, spans, access_kind, place, family):
            yield replace(found, certainty=Certainty.BOUND)

    def _lost(
        self, resource: int, space: int, spans: Iterable[Span], access_kind: int, place: Place, family: int
    ) -> Iterator[Finding]:
        """Findings about contents that are undefined for a family: one for each thing that made them so.

        Rules: rules.md#contents-must-be-transferred-to-another-family, rules.md#what-was-released-must-be-acquired.
        """
        lost: dict[tuple[Hazard, int], list[tuple[Span, Owner]]] = {}
        for span in spans:
            for begin, end, owner in self._pieces(space, span):
                if not owner.gives(family, self._shared.get(resource) or ()):
                    name = Hazard.OWNERSHIP_NOT_TRANSFERRED if owner.release is None else Hazard.OWNERSHIP_NOT_ACQUIRED
                    lost.setdefault((name, id(owner.place)), []).append(((begin, end), owner))
        for (name, _), found in lost.items():
            owner = found[0][1]
            families = OwnershipFamilies(owner.family, owner.release.dst_family if owner.release else family)
            where = resource, space, [span for span, _ in found]
            yield self._finding(name, *where, access_kind, place, owner, families)

    def _holding(self, space: int) -> SpanMap[Owner]:
        held = self._held.get(space)
        if held is None:
            held = self._held[space] = SpanMap()
            self._known = object()
        return held

    # -- transfers -----------------------------------------------------------------------------------------------------

    def _release(self, barrier: effects.RangeBarrier, place: Place, family: int) -> Iterator[Finding]:
        yield from self._use(
            barrier.resource,
            barrier.space,
            barrier.spans,
            OWNERSHIP_TRANSFER,
            not (barrier.transition and barrier.old_layout == VkImageLayout.UNDEFINED),
            place,
            family,
        )
        held = self._holding(barrier.space)
        for span in barrier.spans:
            held.assign(*span, Owner(family, place, OWNERSHIP_TRANSFER, barrier))

    def _acquire(self, barrier: effects.RangeBarrier, place: Place, family: int) -> Iterator[Finding]:
        if barrier.src_family not in effects.FAMILIES_OUTSIDE or barrier.is_traced:
            yield from self._unmatched(barrier, place)
        else:
            self.wrote(barrier.space, barrier.spans)
        owner = ALL_FAMILIES if self._shared.get(barrier.resource, ()) is None else family
        held = self._holding(barrier.space)
        for span in barrier.spans:
            held.assign(*span, Owner(owner, place, OWNERSHIP_TRANSFER))

    def _unmatched(self, barrier: effects.RangeBarrier, place: Place) -> Iterator[Finding]:
        """Yields the findings of an acquire: each piece of its range must have come from one same release.

        Rules: rules.md#an-acquire-needs-its-release, rules.md#both-halves-of-a-transfer-agree,
        rules.md#a-transfer-between-two-programs-has-both-halves.
        """
        gaps: list[Span] = []
        other: tuple[list[Span], Owner | None] = ([], None)
        kept: tuple[list[Span], Owner | None] = ([], None)
        for begin, end in barrier.spans:
            at = begin
            for low, high, owner in self._pieces(barrier.space, (begin, end)):
                gaps += [(at, low)] if at < low else []
                at = high
                if owner.release is None:
                    kept = ([*kept[0], (low, high)], kept[1] or owner)
                elif _transfer(owner.release) != _transfer(barrier):
                    other = ([*other[0], (low, high)], other[1] or owner)
            gaps += [(at, end)] if at < end else []
        families = OwnershipFamilies(barrier.src_family, barrier.dst_family)
        found = []
        if gaps or kept[1] is not None:
            prior = kept[1] or Owner(ALL_FAMILIES, place, OWNERSHIP_TRANSFER)
            found.append((Hazard.OWNERSHIP_NOT_RELEASED, kept[0] + gaps, prior))
        if other[1] is not None:
            found.append((Hazard.OWNERSHIP_MISMATCH, other[0], other[1]))
        for hazard, spans, prior in found:
            where = barrier.resource, barrier.space, spans
            yield self._finding(hazard, *where, OWNERSHIP_TRANSFER, place, prior, families)

    def _pieces(self, space: int, span: Span) -> list[tuple[int, int, Owner]]:
        return self._held[space].pieces(*span) if space in self._held else []

    def _finding(
        self,
        hazard: Hazard,
        resource: int,
        space: int,
        spans: list[Span],
        access_kind: int,
        place: Place,
        owner: Owner,
        families: OwnershipFamilies,
    ) -> Finding:
        """Rule: rules.md#contents-that-nobody-wrote-are-not-lost."""
        written = self._written.get(space)
        if not self.is_blind and not (written and any(written.pieces(*span) for span in spans)):
            hazard = Hazard.OWNERSHIP_WITHOUT_CONTENTS
        seen = self._describe(resource, merge(spans))
        return Finding(
            hazard=hazard,
            access=ACCESS_KINDS[access_kind].name,
            prior_access=ACCESS_KINDS[owner.access_kind].name,
            place=place,
            prior=owner.place,
            resource=resource,
            resource_type=seen.type,
            ranges=seen.ranges,
            boxes=seen.boxes,
            gap=families,
        )


def _used(effect: effects.Effect) -> tuple[Any, ...] | None:
    """Returns the accesses and layout transitions of an effect; None where it may do more, such as change an owner."""
    match effect:
        case effects.Access():
            return (effect,)
        case effects.Barrier(ranges=ranges):
            transfers = any(each.src_family != each.dst_family for each in ranges)
            return None if transfers else tuple(each for each in ranges if each.transition)
        case effects.SubpassBegin(transitions=transitions) | effects.PassEnd(transitions=transitions):
            return transitions
        case effects.RenderingBegin() | effects.PassBegin() | effects.AttachmentUsers():
            return ()
    return None


def _transfer(barrier: effects.RangeBarrier) -> tuple[object, ...]:
    """Returns the values that must be equal in both halves of a transfer. The queue families are left out where one is
    outside of the program: to two programs, all families of the other one are outside."""
    families: tuple[int, ...] = (barrier.src_family, barrier.dst_family)
    if not {*families}.isdisjoint(effects.FAMILIES_OUTSIDE):
        families = ()
    return (barrier.resource, barrier.spans, *families, barrier.old_layout, barrier.new_layout)
