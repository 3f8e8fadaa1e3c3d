"""Whether a wait for an event includes the operation that signaled it (rules.md#a-wait-must-match-its-set).

A wait that does not match still waits. It has nothing of the signal in its first scope, so that it orders no memory.
"""

from __future__ import annotations

from collections.abc import Iterable

from vkharness.findings import Hazard
from vkharness.spec.enums import VkPipelineStage2
from vkharness.spec.scopes import execution_scope_src
from vkharness.syncval.event_state import ExecutedOperation, union_of
from vkharness.trace.effects import Barrier, Dependency

HOST = VkPipelineStage2.HOST
ALL = VkPipelineStage2.ALL_COMMANDS | VkPipelineStage2.BOTTOM_OF_PIPE
"""Each of the two, in a first scope, stands for all earlier commands."""


def dependencies_of(barrier: Barrier) -> list[Dependency]:
    """All dependencies of a barrier, over everything and over ranges."""
    return [*barrier.globals, *(each.dependency for each in barrier.ranges)]


def is_included(signal: ExecutedOperation, barrier: Barrier, sync2: bool, queue: int, queue_flags: int) -> bool:
    """Whether the first scope of a wait has a signal. Rules: rules.md#a-wait-must-match-its-set,
    rules.md#events-stay-on-their-queue, rules.md#the-host-may-set-and-reset-events."""
    asked = {each.src_stages for each in dependencies_of(barrier)}
    if signal.on_host:
        return asked == {HOST} if sync2 else bool(union_of(asked) & HOST)
    if (signal.place.queue or 0) != queue or signal.sync2 != sync2 or signal.barrier is None:
        return False
    if sync2:
        return _match(signal.barrier, barrier)
    # The last stage of the set is a stage of the wait, or before one: so are all its stages then.
    latest = union_of(asked)
    earlier = execution_scope_src(latest, queue_flags)
    return bool(latest & ALL) or not execution_scope_src(signal.stages, queue_flags) & ~earlier


def fault(signal: ExecutedOperation, barrier: Barrier, sync2: bool, queue: int) -> Hazard | None:
    """The rule of valid usage that a wait for a signal breaks; None for none.

    Rules: rules.md#a-wait-must-match-its-set, rules.md#events-stay-on-their-queue.
    """
    asked = {each.src_stages for each in dependencies_of(barrier)}
    if signal.on_host:
        if sync2:
            return None if asked == {HOST} else Hazard.WAIT2_DEPENDENCY_DIFFERS
        return None if union_of(asked) & HOST else Hazard.WAIT_STAGES_DIFFER
    if (signal.place.queue or 0) != queue:
        return Hazard.WAIT_ON_ANOTHER_QUEUE
    if signal.sync2 != sync2 or signal.barrier is None:
        return Hazard.WAIT2_FOR_FIRST_FORM if sync2 else Hazard.WAIT_FOR_SECOND_FORM
    if sync2:
        return None if _match(signal.barrier, barrier) else Hazard.WAIT2_DEPENDENCY_DIFFERS
    return Hazard.WAIT_STAGES_DIFFER if signal.stages & ~union_of(asked) else None


def has_other_stages(signals: Iterable[ExecutedOperation], barrier: Barrier) -> bool:
    """Whether vkCmdWaitEvents names stages that none of the signals has."""
    named = union_of(each.src_stages for each in barrier.globals)
    return bool(named & ~union_of(HOST if each.on_host else each.stages for each in signals))


def _match(one: Barrier, other: Barrier) -> bool:
    """Whether two VkDependencyInfo of a set and a wait are the same, or asymmetric with the same source stages."""
    if one.asymmetric and other.asymmetric:
        stages = (union_of(each.src_stages for each in dependencies_of(barrier)) for barrier in (one, other))
        return next(stages) == next(stages)
    return _content(one) == _content(other)


def _content(barrier: Barrier) -> tuple[object, ...]:
    """A barrier without what aliases its resources had when it was recorded."""
    ranges = tuple(
        (r.dependency, r.resource, r.spans, r.old_layout, r.new_layout, r.src_family, r.dst_family)
        for r in barrier.ranges
    )
    return frozenset(barrier.globals), ranges, barrier.by_region, barrier.asymmetric
