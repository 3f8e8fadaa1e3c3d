"""What no difference from the layer explains: a finding of ours about accesses that one plain dependency orders.

The conditions of known differences ask what the layer does with a stream. Before any is asked, two questions are about
us: does one barrier outside render passes name both accesses, and does the host wait for everything in between?
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harness.layer.conditions import QUEUE_FLAGS
from harness.layer.stream import BarrierScope, barrier_scopes
from harness.layer.subject import Subject
from harness.spec.command_classes import BEGINS_RENDERING, ENDS_RENDERING
from harness.spec.scopes import (
    ACCESS_KIND,
    IMAGE_LAYOUT_TRANSITION,
    access_scope,
    execution_scope_dst,
    execution_scope_src,
)

BARRIER = "vkCmdPipelineBarrier"


class Scopes(NamedTuple):
    """A first or a second scope of a dependency."""

    stages: int
    """The execution scope."""
    accesses: int
    """The access scope, as bits of kinds of access."""


MOVED = Scopes(0, 1 << IMAGE_LAYOUT_TRANSITION.index)
"""The part of its own barrier that a layout transition is."""
IDLE = ("vkDeviceWaitIdle", "vkQueueWaitIdle")


def is_plainly_in_order(subject: Subject) -> bool:
    """True when one barrier or one wait of the host orders the accesses of our finding."""
    finding = subject.finding
    if finding is None or not finding.hazard.is_between_accesses:
        return False
    return _host_waited(subject) or any(_cover(subject, *each) for each in _barriers(subject))


def _host_waited(subject: Subject) -> bool:
    """The host waits for the queue of the first access between the two submits."""
    first, second = subject.finding.prior, subject.finding.place  # type: ignore[union-attr]
    if first.submit is None or second.submit is None:
        return False
    return any(
        call.name in IDLE and call.args.get("queue", first.queue) == first.queue
        for call in subject.stream.calls
        if first.submit < call.index < second.submit
    )


def _barriers(subject: Subject) -> Iterator[tuple[Scopes, Scopes]]:
    """First and second scopes of the global barriers between the two accesses, on one queue and outside render pass
    instances; and of that which does one of the two, if it is a layout transition."""
    finding, steps, position = subject.finding, subject.steps, subject.position
    if finding is None or position < 0 or finding.prior.queue != finding.place.queue:
        return
    inside = False
    for at, step in enumerate(steps):
        name = step.call.name
        inside = name.startswith(BEGINS_RENDERING) or (inside and not name.startswith(ENDS_RENDERING))
        submit = subject.stream.at(step.place[0]) if step.place else None
        same_queue = submit is None or submit.args["queue"] == finding.place.queue
        if at > position and not inside and same_queue and name.startswith(BARRIER):
            yield from ((_first(each), _second(each)) for each in barrier_scopes(step.call) if not each.resource)
    for call in (subject.first, subject.command):
        if call is not None and call.name.startswith(BARRIER):
            for each in barrier_scopes(call):
                if each.transition and each.resource == finding.resource:
                    yield (MOVED, _second(each)) if call is subject.first else (_first(each), MOVED)


def _first(barrier: BarrierScope) -> Scopes:
    stages, accesses = barrier.src_stages, barrier.src_accesses
    return Scopes(execution_scope_src(stages, QUEUE_FLAGS), access_scope(stages, accesses, QUEUE_FLAGS))


def _second(barrier: BarrierScope) -> Scopes:
    stages, accesses = barrier.dst_stages, barrier.dst_accesses
    return Scopes(execution_scope_dst(stages, QUEUE_FLAGS), access_scope(stages, accesses, QUEUE_FLAGS))


def _cover(subject: Subject, first: Scopes, second: Scopes) -> bool:
    if subject.finding is None:
        return False
    one, other = ACCESS_KIND[subject.finding.prior_access], ACCESS_KIND[subject.finding.access]
    if subject.finding.hazard.prior_reads:
        return bool(first.stages & one.stage) and (second is MOVED or bool(second.stages & other.stage))
    return bool(first.accesses >> one.index & second.accesses >> other.index & 1)
