"""Conditions about load and store operations of attachments that several subpasses use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from vkharness.findings import Hazard
from vkharness.layer.chains import NOTHING, Reached, Walk, candidates, is_seen, link_of, reaches, take_step
from vkharness.layer.conditions import condition
from vkharness.layer.rendering_conditions import BEGINS, ENDS, NEXT, makes_available
from vkharness.layer.stream import TRANSITION, Stream, Touch
from vkharness.layer.subject import Subject, dependencies_of
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.trace.calls import Call
from vkharness.trace.effects import EXTERNAL, Access, AttachmentUsers, PassEnd, SubpassBegin, SubpassDependency


@condition
def operates_for_other_subpasses(subject: Subject) -> bool:
    """One of the two accesses is a load or store operation of the image that the layer names, in an attachment that
    several subpasses use. A dependency between the other access and another of these subpasses orders the two, alone
    or in a chain with the barriers outside of the instance.

    The other access is outside of the instance, or it is none of an attachment: loads come before such ones, and stores
    after them.
    """
    _, second_name, first_name, second_access, first_access = subject.key
    named = ((second_name, second_access), (first_name, first_access))
    if not any(name.startswith((BEGINS, NEXT, ENDS)) and "_ATTACHMENT_" in access for name, access in named):
        return False
    image = subject.stream.viewed(subject.message.resource) if subject.message is not None else 0
    for steps, first, mine in candidates(subject):
        calls = [step.call for step in steps]
        second = len(calls) - 1
        for access, at in ((subject.key[3], second), (subject.key[4], first)):
            begun = [position for position, call in enumerate(calls[: at + 1]) if call.name.startswith(BEGINS)]
            if not begun:
                continue
            pair = _Pair(subject, calls, first, mine, begun[-1])
            leads = pair.leads_in if at == second else pair.leads_out
            given = [each for each in dependencies_of(calls[begun[-1]], subject.stream) if each.src != each.dst]
            for others in _operations(subject.stream, calls[at], access, image):
                if any(leads(each, others) for each in given):
                    return True
    return False


class _Pair(NamedTuple):
    """The two accesses, of which one is an operation of the instance that begins at `begin`."""

    subject: Subject
    calls: Sequence[Call]
    """Up to the second access."""
    first: int
    """The position of the first access."""
    mine: Sequence[Touch]
    begin: int

    def leads_in(self, given: SubpassDependency, others: set[int]) -> bool:
        """Whether a dependency into one of these subpasses leads from the first access to the second, an operation."""
        key, outside = self.subject.key, self.first < self.begin
        if given.dst not in others or (given.src == EXTERNAL) != outside:
            return False
        if not outside and "_ATTACHMENT_" in key[4]:
            return False
        before = self._before_instance() if outside else NOTHING
        return self._is_seen(link_of(given.dependency, subpass=True).after(key[4], before))

    def leads_out(self, given: SubpassDependency, others: set[int]) -> bool:
        """Whether a dependency from one of these subpasses leads from the first access, an operation, to the second."""
        key, second, stream = self.subject.key, self.calls[-1], self.subject.stream
        if given.src not in others or not makes_available(given.dependency, key[4]):
            return False
        reached = link_of(given.dependency, subpass=True).after(key[4], NOTHING)
        ends = [at for at, call in enumerate(self.calls[:-1]) if at >= self.first and call.name.startswith(ENDS)]
        if ends:
            walk = Walk("", passes=True, outer=reached)
            for call in self.calls[ends[0] + 1 : -1]:
                take_step(walk, call, stream, self.mine, made=False)
            return given.dst == EXTERNAL and reaches(walk, second, self.subject, self.mine, any)
        if key[3] == TRANSITION:
            effects = stream.facts(second).effects
            moved = [each for one in effects if isinstance(one, SubpassBegin | PassEnd) for each in one.transitions]
            return any(given.src in each.leaves for each in moved)
        now = sum(call.name.startswith(NEXT) for call in self.calls[self.begin :])
        return "_ATTACHMENT_" not in key[3] and given.dst == now and self._is_seen(reached)

    def _is_seen(self, reached: Reached) -> bool:
        hazard, _, _, access, _ = self.subject.key
        return is_seen(hazard == Hazard.WRITE_AFTER_READ, access, reached)

    def _before_instance(self) -> Reached:
        """What dependencies did for the first access before the instance."""
        walk = Walk("", passes=True)
        for at, call in enumerate(self.calls[: self.begin]):
            walk.access = self.subject.key[4] if at >= self.first else ""
            take_step(walk, call, self.subject.stream, self.mine, made=at == self.first)
            walk.made_in = walk.subpass if at == self.first else walk.made_in
        return walk.outer


def _operations(stream: Stream, call: Call, named: str, image: int) -> Iterator[set[int]]:
    """For each load and store operation of a command that makes such an access of the image (0: of any): the subpasses
    beside its own that use the attachment."""
    subpass: int | None = None
    users: tuple[int, ...] = ()
    waiting: list[tuple[int, ...]] = []
    for effect in stream.facts(call).effects:
        if isinstance(effect, AttachmentUsers):
            users = effect.subpasses
        elif isinstance(effect, SubpassBegin):
            subpass = effect.index
            yield from (set(several) - {subpass - 1} for several in waiting)
            waiting.clear()
        elif isinstance(effect, Access) and users and image in (0, effect.resource):
            waiting += [users] * (ACCESS_KINDS[effect.access_kind].name == named)
    # Behind the begin of a subpass stand its loads; without one, at the end of the instance, the stores of the last.
    yield from (set(several) - {max(several) if subpass is None else subpass} for several in waiting)
