"""A finding in words, made from its data alone: what would prevent it, and one sentence for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from vkharness.findings import Box, DependencySoFar, Explanation, Finding, Hazard, HostStep, OwnershipFamilies
from vkharness.queue_ids import queue_and_device
from vkharness.report.nearest_text import nearest_text
from vkharness.report.printable import quoted
from vkharness.spec import names
from vkharness.spec.scopes import ACCESS_KIND, IMAGE_LAYOUT_TRANSITION, OWNERSHIP_TRANSFER
from vkharness.trace.effects import FAMILIES_OUTSIDE

NO_NAMES: Mapping[int, str] = MappingProxyType({})
ACQUIRE = "SYNC_PRESENT_ENGINE_SYNCVAL_PRESENT_ACQUIRE_READ_SYNCVAL"
PRESENT = "SYNC_PRESENT_ENGINE_SYNCVAL_PRESENT_PRESENTED_SYNCVAL"
HOST_WRITE = "SYNC_HOST_HOST_WRITE"

_PSEUDO = {IMAGE_LAYOUT_TRANSITION.name: "the layout transition", OWNERSHIP_TRANSFER.name: "the ownership transfer"}
"""Kinds of access that belong to no pipeline stage."""
NO_ACCESS = "what the command waits for or signals"
"""Of a finding about an event, of which a broken trace may say nothing more."""

_HOST = "VK_PIPELINE_STAGE_2_HOST_BIT/VK_ACCESS_2_HOST_READ_BIT"
_WAIT = "a wait of the host (a fence, a timeline's value, idle) that covers {prior}"
_HOST_STEPS = {
    HostStep.WAIT_TO_WRITE: _WAIT,
    HostStep.WAIT_TO_READ: f"{_WAIT}, and a memory dependency before it to {_HOST}",
    HostStep.DEPENDENCY: f"a memory dependency from the write to {_HOST} that the host waits for; a wait alone makes "
    "no write visible to the host",
    HostStep.DEPENDENCY_TO_WRITE: f"a memory dependency from the write to {_HOST}, or HOST_WRITE_BIT there, that the "
    "host waits for; a wait alone leaves the write in the memory domain of the device",
    HostStep.EARLIER_SUBMIT: "{prior} in an earlier submit, for which the host can wait; its own submit waits for an "
    "event that the host has yet to set",
    HostStep.INVALIDATE: "vkInvalidateMappedMemoryRanges after the wait; the memory is not HOST_COHERENT",
}

_BETWEEN = {
    Hazard.SET_EVENT_AFTER_RESET: "the reset and the set",
    Hazard.SET_EVENT2_AFTER_RESET: "the reset and the set",
    Hazard.SET_EVENT2_KHR_AFTER_RESET: "the reset and the set",
    Hazard.SET_EVENT_AFTER_SET: "the set and the set",
    Hazard.SET_EVENT2_AFTER_SET: "the set and the set",
    Hazard.SET_EVENT2_KHR_AFTER_SET: "the set and the set",
    Hazard.SET_EVENT_AFTER_WAIT: "the wait and the set",
    Hazard.SET_EVENT2_AFTER_WAIT: "the wait and the set",
    Hazard.SET_EVENT2_KHR_AFTER_WAIT: "the wait and the set",
    Hazard.RESET_EVENT_AFTER_SET: "the set and the reset",
    Hazard.RESET_EVENT_AFTER_WAIT: "the wait and the reset",
    Hazard.HOST_RESET_AFTER_WAIT: "the wait and the reset by the host, such as a fence that the host waits for "
    "(VUID-vkResetEvent-event-03821, VUID-vkResetEvent-event-03822)",
    Hazard.WAIT_FOR_UNORDERED_SET: "the set that it waits for and the operation before",
    Hazard.WAIT_AFTER_RESET: "the reset and the wait",
    Hazard.SPARSE_BINDING_RACE: "the binding operation and the other, by a semaphore or the fence of the earlier one",
}
"""For each hazard of an event or of sparse memory, the two operations that nothing orders."""

_USAGE = {
    Hazard.WAIT_STAGES_DIFFER: "the stages of the sets, and no others, in srcStageMask of the wait "
    "(VUID-vkCmdWaitEvents-srcStageMask-01158)",
    Hazard.WAIT_FOR_SECOND_FORM: "a wait of the second form, as the set is (VUID-vkCmdWaitEvents-pEvents-03847)",
    Hazard.WAIT2_FOR_FIRST_FORM: "a wait of the first form, as the set is (VUID-vkCmdWaitEvents2-pEvents-03837)",
    Hazard.WAIT2_DEPENDENCY_DIFFERS: "the same VkDependencyInfo in the set and the wait, or HOST alone in its first "
    "scopes where the host sets the event (VUID-vkCmdWaitEvents2-pEvents-10788, "
    "VUID-vkCmdWaitEvents2-pEvents-03839)",
    Hazard.WAIT_ON_ANOTHER_QUEUE: 'a semaphore, since events do not order commands of different queues ("Events")',
    Hazard.QUERY_UNORDERED: "an order between the two: a semaphore between queues, or a wait of the host before "
    "vkResetQueryPool (VUID-vkResetQueryPool-firstQuery-02741)",
    Hazard.QUERY_NOT_RESET: "a reset of the query between the two (VUID-vkCmdBeginQuery-None-00807, "
    "VUID-vkCmdWriteTimestamp2-None-03864, VUID-vkCmdWriteTimestamp-None-00830)",
    Hazard.QUERY_NOT_AWAITED: "VK_QUERY_RESULT_WAIT_BIT, or an execution dependency from ALL_COMMANDS to COPY between "
    "the two (VUID-vkCmdCopyQueryPoolResults-None-08752)",
    Hazard.QUERY_WITHOUT_RESULT: "the end of the query, or a timestamp, before its results are asked for "
    "(VUID-vkCmdCopyQueryPoolResults-None-08752, VUID-vkGetQueryPoolResults-None-09401)",
    Hazard.PRESERVED_AND_USED: "each attachment of a subpass either used or preserved "
    "(VUID-VkSubpassDescription-pPreserveAttachments-00854, "
    "VUID-VkSubpassDescription2-pPreserveAttachments-03074)",
    Hazard.SPARSE_NOT_BOUND: "memory bound to all of a resource that has no sparse residency, before its first use "
    '("Sparse Buffers and Fully-Resident Images")',
    Hazard.LATE_HOST_SET: 'vkSetEvent before the submit of the wait (VUID-vkSetEvent-event-09543, "Queue Forward '
    'Progress"); work that has to wait for the host waits for a timeline semaphore that vkSignalSemaphore signals, and '
    "then has a memory dependency from HOST and HOST_WRITE",
}
"""For each broken rule of valid usage, what it asks for, with its VUID."""

_OF_OBJECTS = {
    Hazard.SEMAPHORE_IN_USE: "an order that puts the end of the wait before it ({vuid})",
    Hazard.SEMAPHORE_SIGNALED: "a wait for the semaphore between the two signals ({vuid})",
    Hazard.SEMAPHORE_UNSIGNALED: "a signal of the semaphore that is submitted before the wait ({vuid})",
    Hazard.FENCE_SIGNALED: "vkResetFences between the two ({vuid})",
    Hazard.FENCE_IN_USE: "a wait of the host for what signals the fence ({vuid})",
}
"""For each use of a semaphore or a fence, what it asks for."""

_DONE_TO_OBJECTS = {
    Hazard.SEMAPHORE_IN_USE: "uses {what} again, and the wait of {prior} for it may not have ended",
    Hazard.SEMAPHORE_SIGNALED: "signals {what}, which {prior} signaled, and nothing has waited since",
    Hazard.SEMAPHORE_UNSIGNALED: "waits for {what}, which nothing was submitted to signal since {prior}",
    Hazard.FENCE_SIGNALED: "is given {what}, which is still signaled by {prior}",
    Hazard.FENCE_IN_USE: "uses {what} again, and {prior} may not have signaled it",
}
"""The same in a sentence about the call."""

_OF_PRESENTS = (
    "a wait, before it, for an acquire that gives an image of this present, or of a later one of its queue, "
    "again; or a wait of the host for the present's fence (VK_KHR_swapchain_maintenance1) or for its queue ({vuid})"
)

_OF_BARRIERS = {
    Hazard.VISIBLE_BEFORE_AVAILABLE: "the write of {prior} in the first access scope, here or before: "
    "a barrier makes visible what is available",
    Hazard.BARRIER_RACING_WRITE: "an execution dependency between {prior} and the barrier, or a range without what it "
    "writes",
}
"""For each remark on a barrier that names a range, what it asks for."""

_OWNERSHIP = {
    Hazard.OWNERSHIP_NOT_TRANSFERRED: "needs the contents of {what}, which belong to queue family {family} by {prior}",
    Hazard.OWNERSHIP_NOT_ACQUIRED: "needs the contents of {what}, which {prior} released and nothing acquired",
    Hazard.OWNERSHIP_NOT_RELEASED: "acquires {what}, which was not released, or has been used since (last owner: "
    "{prior})",
    Hazard.OWNERSHIP_MISMATCH: "acquires {what} by another barrier than {prior} released it",
    Hazard.OWNERSHIP_WITHOUT_CONTENTS: "needs or acquires {what} after {prior}, and no transfer fits; nobody wrote its "
    "contents",
}


def explain(finding: Finding) -> Explanation:
    """Names the dependency that would prevent the finding, in the specification's terms, and tells what happened."""
    lack = _missing(finding)
    nearest = nearest_text(finding.nearest) if finding.nearest is not None else ""
    return Explanation(lack, f"{_sentence(finding)}. Missing: {lack}.", nearest)


def pair_text(finding: Finding) -> str:
    """The hazard and the two accesses: what a line of a disagreement says."""
    place, prior = finding.place, finding.prior
    return (
        f"{finding.hazard}: {place.command} {finding.access} (call {place.call}) after "
        f"{prior.command} {finding.prior_access} (call {prior.call})"
    )


def named(id: int, names_by_id: Mapping[int, str]) -> str:
    """An object with its debug name: `12 "shadow map"`, or `12` where it has none."""
    name = names_by_id.get(id)
    return f"{id} {quoted((name,))}" if name else str(id)


def labelled(command: str, labels: Sequence[str]) -> str:
    """A command with the label regions around it: `vkCmdDraw in "main pass / opaque"`."""
    return f"{command} in {quoted(labels)}" if labels else command


def resource_text(finding: Finding) -> str:
    """A resource and the touched part of it: `VkBuffer 7 [0, 256)`, `VkImage 9 "shadow map" (depth, mip 1,
    layer 0)`."""
    return part_text(finding.resource, finding.resource_type, finding.ranges, finding.boxes, finding.names)


def part_text(
    resource: int,
    type: str,
    ranges: Sequence[tuple[int, int]],
    boxes: Sequence[Box],
    names_by_id: Mapping[int, str] = NO_NAMES,
) -> str:
    """As `resource_text`, from the resource, its type, the touched part in (offset, size) or in boxes, and names."""
    part = touched_text(ranges, boxes)
    return f"{type} {named(resource, names_by_id)}{f' {part}' if part else ''}"


def touched_text(ranges: Sequence[tuple[int, int]], boxes: Sequence[Box]) -> str:
    """Only the touched part: `[0, 256)`, `(depth, mip 1, layer 0) and 2 more`; empty where nobody says which."""
    text = ""
    if ranges:
        offset, size = ranges[0]
        text += f"[{offset}, {offset + size})"
    if boxes:
        box = boxes[0]
        aspect = names.flags_names("VkImageAspectFlags", box.aspect)
        text += f"{' ' if ranges else ''}({aspect}, mip {box.mip}, layer {box.layer})"
    more = len(ranges or boxes) - 1
    return f"{text} and {more} more" if more > 0 else text


def _missing(finding: Finding) -> str:
    hazard, gap = finding.hazard, finding.gap
    if hazard in _BETWEEN:
        return f"an execution dependency between {_BETWEEN[hazard]}"
    if hazard in _USAGE:
        return _USAGE[hazard]
    if hazard in _OF_OBJECTS:
        presents = hazard is Hazard.SEMAPHORE_IN_USE and finding.prior.command == "vkQueuePresentKHR"
        return (_OF_PRESENTS if presents else _OF_OBJECTS[hazard]).format(vuid=finding.vuid)
    if hazard is Hazard.REWRITES_OTHER_ASPECT:
        return "a dependency for both aspects, unless the device has separateDepthStencilAttachmentAccess"
    if hazard in _OF_BARRIERS:
        return _OF_BARRIERS[hazard].format(prior=finding.prior.command)
    if hazard is Hazard.UNFLUSHED_WRITE:
        return "vkFlushMappedMemoryRanges before the invalidate"
    if isinstance(gap, HostStep):
        return _HOST_STEPS[gap].format(prior=finding.prior.command)
    if isinstance(gap, OwnershipFamilies):
        return _transfer(hazard, gap)
    if finding.prior_access == HOST_WRITE:
        return "a submit after what the host wrote; before it vkFlushMappedMemoryRanges if memory is not HOST_COHERENT"
    if finding.access == PRESENT:
        return "a semaphore that the present waits for, signaled after the access"
    if finding.prior_access == PRESENT or (finding.prior_access == ACQUIRE and hazard.is_presentation):
        return "a wait, before the access, for the semaphore or the fence that an acquire of the image signals"
    devices = {queue_and_device(each.queue or 0)[1] for each in (finding.place, finding.prior)}
    if hazard.is_race and len(devices) > 1:
        return "a semaphore, or a barrier with VK_DEPENDENCY_DEVICE_GROUP_BIT, between the physical devices"
    if hazard.is_race:
        return "any order between the two: a semaphore between the queues, or a dependency between the subpasses"
    if hazard is Hazard.WRITE_AFTER_READ:
        wanted = f"an execution dependency from {_stage(finding.prior_access)} to {_stage(finding.access)}"
    else:
        wanted = f"a memory dependency from {_scope(finding.prior_access)} to {_scope(finding.access)}"
    return f"{wanted}; {_so_far(hazard, gap)}" if gap is not None else wanted


def _so_far(hazard: Hazard, gap: DependencySoFar) -> str:
    """A phrase for what the dependencies so far have done for the earlier access."""
    if hazard is Hazard.WRITE_AFTER_READ:
        waiting = names.stages(gap.waiting_stages)
        return f"so far only {waiting} waits for the read" if gap.waiting_stages else "nothing orders them"
    if gap.visible_to:
        return f"so far the write is visible only to {names.sync_accesses(gap.visible_to)}"
    if gap.available:
        return "the write was made available, but visible to nothing"
    return "nothing makes the write available"


def _transfer(hazard: Hazard, families: OwnershipFamilies) -> str:
    if hazard is Hazard.OWNERSHIP_NOT_TRANSFERRED:
        return f"a release by queue family {families.source} and an acquire by {families.destination}"
    if hazard is Hazard.OWNERSHIP_NOT_ACQUIRED:
        return f"the acquire by queue family {_family(families.destination)}"
    if hazard is Hazard.OWNERSHIP_NOT_RELEASED:
        return f"the release by queue family {_family(families.source)}"
    if hazard is Hazard.OWNERSHIP_WITHOUT_CONTENTS:
        return "both halves of a transfer, with the same resource, range, families and layouts, or neither of them"
    return "the same resource, range, families and layouts in both halves"


def _family(index: int) -> str:
    outside = dict(zip(FAMILIES_OUTSIDE, ("VK_QUEUE_FAMILY_EXTERNAL", "VK_QUEUE_FAMILY_FOREIGN_EXT"), strict=True))
    return outside.get(index, str(index))


def _sentence(finding: Finding) -> str:
    """Who does what to which resource after whom."""
    hazard = finding.hazard
    command = labelled(finding.place.command, finding.labels)
    prior = labelled(finding.prior.command, finding.prior_labels)
    if hazard in _BETWEEN:
        return f"{command} on {resource_text(finding)} is not ordered after {prior}"
    if hazard in _USAGE:
        return f"{command} for {resource_text(finding)} does not fit {prior}"
    if hazard in _OF_OBJECTS:
        return f"{command} {_DONE_TO_OBJECTS[hazard].format(what=resource_text(finding), prior=prior)}"
    if hazard in _OF_BARRIERS:
        when = "may overtake" if hazard is Hazard.BARRIER_RACING_WRITE else "has made nothing available of"
        return f"{command} makes {resource_text(finding)} visible and {when} what {prior} writes there"
    if hazard is Hazard.UNFLUSHED_WRITE:
        return f"{command} loses what the host wrote to {resource_text(finding)} and did not flush"
    if isinstance(finding.gap, OwnershipFamilies):
        owner = finding.gap.source
        what = f"{finding.resource_type} {named(finding.resource, finding.names)}"
        prior = "none" if finding.prior == finding.place else prior
        return f"{command} {_OWNERSHIP[hazard].format(what=what, prior=prior, family=owner)}"
    done = _verb(finding.access, "transitions the layout of", "writes", "reads")
    before = _verb(finding.prior_access, "transitioned the layout of", "wrote", "read")
    alias = f" (through its alias {named(finding.through, finding.names)})" if finding.through else ""
    return f"{command} {done} {resource_text(finding)}{alias}, which {prior} {before}"


def _stage(access: str) -> str:
    return _PSEUDO.get(access) or (names.stages(ACCESS_KIND[access].stage) if access else NO_ACCESS)


def _scope(access: str) -> str:
    if access in _PSEUDO:
        return _PSEUDO[access]
    if not access:
        return NO_ACCESS
    return f"{names.stages(ACCESS_KIND[access].stage)}/{names.accesses(ACCESS_KIND[access].access)}"


def _verb(access: str, transition: str, write: str, read: str) -> str:
    if access == IMAGE_LAYOUT_TRANSITION.name:
        return transition
    if access == OWNERSHIP_TRANSFER.name:
        return transition.replace("layout", "ownership").replace("transition", "transfer")
    return write if access and ACCESS_KIND[access].write else read
