"""Conditions about load and store operations of attachments that several subpasses use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from harness.layer.chains import dependencies_of
from harness.layer.conditions import QUEUE_FLAGS, condition
from harness.layer.parse import plain_command
from harness.layer.rendering_conditions import BEGINS, ENDS, NEXT, makes_available
from harness.layer.stream import TRANSITION, Stream
from harness.layer.subject import Subject
from harness.spec.scopes import ACCESS_KIND, ACCESS_KINDS, execution_scope_dst
from harness.trace.calls import Call
from harness.trace.effects import (
    EXTERNAL,
    Access,
    AttachmentUsers,
    Dependency,
    PassEnd,
    SubpassBegin,
    SubpassDependency,
)


@condition
def operates_for_other_subpasses(subject: Subject) -> bool:
    """One of the two accesses is a load or store operation of the image that the layer names, in an attachment that
    several subpasses use. A dependency between the other access and another of these subpasses orders the two.

    The other access is outside of the instance, or it is none of an attachment: loads come before such ones, and stores
    after them.
    """
    image = subject.stream.viewed(subject.message.resource) if subject.message is not None else 0
    for second, before in subject.seconds:
        calls = [*before, second]
        begun = [at for at, call in enumerate(calls) if call.name.startswith(BEGINS)]
        for at, call in enumerate(calls):
            for access, others in _operations(subject.stream, call):
                inside = calls[max(each for each in begun if each <= at) :]
                orders = _orders(subject, calls[: -len(inside)], inside, call, ACCESS_KINDS[access.access_kind].name)
                given = dependencies_of(inside[0], subject.stream) if image in (0, access.resource) else ()
                if any(each.src != each.dst and orders(each, others) for each in given):
                    return True
    return False


def _orders(
    subject: Subject, before: Sequence[Call], inside: Sequence[Call], call: Call, name: str
) -> Callable[[SubpassDependency, set[int]], bool]:
    """Whether a dependency of one of these subpasses orders the two accesses, of which an operation of `call` is one.
    `inside` has the commands from the begin of its instance to the second access."""
    second, named = inside[-1], plain_command(call.name) == subject.key[2]
    if call is second and name == subject.key[3]:
        outside = any(plain_command(each.name) == subject.key[2] for each in before)
        if outside or "_ATTACHMENT_" not in subject.key[4]:
            return lambda each, others: (
                each.dst in others and (each.src == EXTERNAL) == outside and _reaches(each.dependency, name)
            )
    if named and name == subject.key[4]:
        leads = _leads_to_the_second(subject, inside, inside.index(call))
        return lambda each, others: each.src in others and leads(each) and makes_available(each.dependency, name)
    return lambda each, others: False


def _leads_to_the_second(subject: Subject, inside: Sequence[Call], at: int) -> Callable[[SubpassDependency], bool]:
    """Which dependencies lead from an operation at `at` to the second access, the last of `inside`."""
    second = inside[-1]
    if any(call.name.startswith(ENDS) for call in inside[at:-1]):
        return lambda each: each.dst == EXTERNAL
    if subject.key[3] == TRANSITION:
        effects = subject.stream.facts(second).effects
        moved = [each for one in effects if isinstance(one, SubpassBegin | PassEnd) for each in one.transitions]
        left = {subpass for each in moved for subpass in each.leaves}
        return lambda each: each.src in left
    now = sum(call.name.startswith(NEXT) for call in inside)
    return lambda each: "_ATTACHMENT_" not in subject.key[3] and each.dst == now


def _operations(stream: Stream, call: Call) -> Iterator[tuple[Access, set[int]]]:
    """The load and store operations of a command, with those subpasses beside their own that use the attachment."""
    subpass: int | None = None
    users: tuple[int, ...] = ()
    waiting: list[tuple[Access, tuple[int, ...]]] = []
    for effect in stream.facts(call).effects:
        if isinstance(effect, AttachmentUsers):
            users = effect.subpasses
        elif isinstance(effect, SubpassBegin):
            subpass = effect.index
            yield from ((access, set(several) - {subpass - 1}) for access, several in waiting)
            waiting.clear()
        elif isinstance(effect, Access) and users:
            waiting.append((effect, users))
    # Behind the begin of a subpass stand its loads; without one, at the end of the instance, the stores of the last.
    yield from ((access, set(several) - {max(several) if subpass is None else subpass}) for access, several in waiting)


def _reaches(given: Dependency, access: str) -> bool:
    """Whether a dependency has an access in its second synchronization scope."""
    return bool(execution_scope_dst(given.dst_stages, QUEUE_FLAGS) & ACCESS_KIND[access].stage)
