"""Findings of ours that no difference from the layer explains: something plain orders their accesses.

The conditions of known differences ask what the layer does with a stream. Before any is asked, these questions are
about us: do barriers outside render passes lead from one access to the other, does the host wait for everything in
between, are both layout transitions of one queue, and does the order inside a render pass instance hold for them?
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vkharness.layer.chains import Walk, candidates, is_enough, is_seen, links_of, local_dependencies
from vkharness.layer.stream import Stream
from vkharness.layer.subject import ExecutedCommand, Subject
from vkharness.layer.touches import TRANSITION
from vkharness.spec.command_classes import BEGINS_RENDERING, ENDS_RENDERING, NEXT_SUBPASS, RENDERING
from vkharness.spec.enums import VkRendering
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.trace.attachment_operations import AttachmentOperation
from vkharness.trace.calls import Call
from vkharness.trace.effects import Access

BARRIER = "vkCmdPipelineBarrier"
IDLE = ("vkDeviceWaitIdle", "vkQueueWaitIdle")


def is_plainly_in_order(subject: Subject) -> bool:
    """True when one of these orders the accesses of our finding."""
    finding = subject.finding
    if finding is None or not finding.hazard.is_between_accesses:
        return False
    if _host_waited(subject) or _ordered_in_instance(subject):
        return True
    return _is_second_transition(subject) or _chained(subject)


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


def _ordered_in_instance(subject: Subject) -> bool:
    """Both are attachment accesses of one render pass instance: the first one belongs to a load operation, the second
    one to a store operation, or both to one subpass and one kind of attachment.

    Rule: rules.md#loads-come-first-and-stores-last, rules.md#attachment-accesses-are-in-rasterization-order.
    """
    finding, own, position = subject.finding, subject.command, subject.position
    if finding is None or own is None or position < 0 or finding.prior.executed_by != finding.place.executed_by:
        return False
    kinds = {_attachment_of(finding.access), _attachment_of(finding.prior_access)}
    steps = subject.occurrences[-1][position:]
    entered = [step.call for step in steps[1:-1]]
    if kinds == {""} or len(kinds) > 1 or steps[0].execution != steps[-1].execution:
        return False
    if any(call.name.startswith(BEGINS_RENDERING) and not _resumes(call) for call in entered):
        return False
    first = _operations(subject.stream, steps[0].call, finding.prior_access, finding.resource)
    last = _operations(subject.stream, own, finding.access, finding.resource)
    if (
        not first
        or not last
        or (own.name.startswith(BEGINS_RENDERING) or steps[0].call.name.startswith(ENDS_RENDERING))
    ):
        return False
    if first == {AttachmentOperation.LOAD} or last == {AttachmentOperation.STORE}:
        return True
    leaves = steps[0].call.name.startswith(NEXT_SUBPASS) and first != {AttachmentOperation.LOAD}
    enters = own.name.startswith(NEXT_SUBPASS) and AttachmentOperation.LOAD in last
    return not leaves and not enters and not any(call.name.startswith(NEXT_SUBPASS) for call in entered)


def _resumes(begin: Call) -> bool:
    return bool((begin.args.get("pRenderingInfo") or {}).get("flags", 0) & VkRendering.RESUMING)


def _attachment_of(access: str) -> str:
    """The kind of attachment that a fixed-function access is about; empty for any other access."""
    return next((kind for kind in ("_COLOR_ATTACHMENT_", "_DEPTH_STENCIL_ATTACHMENT_") if kind in access), "")


def _operations(stream: Stream, call: Call, access: str, resource: int) -> set[AttachmentOperation]:
    """The attachment operations of a command that access the resource so."""
    return {
        each.operation
        for each in stream.facts(call).effects
        if isinstance(each, Access) and (ACCESS_KINDS[each.access_kind].name, each.resource) == (access, resource)
    }


def _is_second_transition(subject: Subject) -> bool:
    """Both are layout transitions on one queue, and not of one render pass instance.

    Rule: rules.md#transitions-of-one-queue-are-in-order.
    """
    finding = subject.finding
    if finding is None or (finding.access, finding.prior_access) != (TRANSITION, TRANSITION):
        return False
    one, other = finding.prior, finding.place
    inside = one.command.startswith(RENDERING) and other.command.startswith(RENDERING)
    return one.queue == other.queue and not inside


def _chained(subject: Subject) -> bool:
    """Barriers outside render pass instances that hold all addresses lead from the first access to the second one, on
    one queue.

    Rule: rules.md#chain.
    """
    finding = subject.finding
    if finding is None or finding.prior.queue != finding.place.queue:
        return False
    moved, moves = finding.prior_access == TRANSITION, finding.access == TRANSITION
    for steps, position, mine in candidates(subject):
        first, second = steps[position].call, steps[-1].call
        walk = Walk(finding.prior_access)
        for moving, link in links_of(first, subject.stream, mine) if moved and _is_everywhere(first, subject) else ():
            walk.put(walk.now.joined(link.given) if moving else walk.now)
        for call in _barriers_outside(steps, position):
            if not _is_everywhere(call, subject):
                continue
            walk.barriers(link for _, link in links_of(call, subject.stream, mine))
        reads = finding.hazard.prior_reads
        if moves:
            barriers = links_of(second, subject.stream, mine) if second.name.startswith(BARRIER) else ()
            own = [link for moving, link in barriers if moving]
            if any(is_enough(reads, link, walk.access, walk.now) for link in own):
                return True
        elif is_seen(reads, finding.access, walk.now):
            return True
    return False


def _is_everywhere(call: Call, subject: Subject) -> bool:
    """Whether none of the dependencies of a barrier holds by region alone."""
    return not any(any(local_dependencies(effect)) for effect in subject.stream.facts(call).effects)


def _barriers_outside(steps: Sequence[ExecutedCommand], first: int) -> Iterator[Call]:
    """The barriers after the first access that are outside render pass instances."""
    inside = False
    for position, step in enumerate(steps[:-1]):
        name = step.call.name
        inside = name.startswith(BEGINS_RENDERING) or (inside and not name.startswith(ENDS_RENDERING))
        if position > first and not inside and name.startswith(BARRIER):
            yield step.call
