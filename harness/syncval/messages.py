"""Findings in words, made from their data alone."""

from __future__ import annotations

from harness.findings import Box, Hazard, Place
from harness.spec import names
from harness.spec.scopes import ACCESS_KIND, ACCESS_KINDS
from harness.syncval.entries import DetectedHazard
from harness.syncval.state import LAYOUT_TRANSITION, OWNERSHIP_TRANSFER, View, union

_PSEUDO = {LAYOUT_TRANSITION: "the layout transition", OWNERSHIP_TRANSFER: "the ownership transfer"}
"""Accesses that belong to no stage."""

ACQUIRE = ACCESS_KIND["SYNC_PRESENT_ENGINE_SYNCVAL_PRESENT_ACQUIRE_READ_SYNCVAL"].index
PRESENT = ACCESS_KIND["SYNC_PRESENT_ENGINE_SYNCVAL_PRESENT_PRESENTED_SYNCVAL"].index
HOST_WRITE = ACCESS_KIND["SYNC_HOST_HOST_WRITE"].index


def missing(detected: DetectedHazard) -> str:
    """What would prevent the hazard, in the specification's terms, and what is there instead."""
    if detected.missing:
        return detected.missing
    if detected.prior_access_kind == HOST_WRITE:
        return "a submit after what the host wrote; before it vkFlushMappedMemoryRanges if memory is not HOST_COHERENT"
    if detected.access_kind == PRESENT:
        return "a semaphore that the present waits for, signaled after the access"
    if detected.prior_access_kind == PRESENT or (
        detected.prior_access_kind == ACQUIRE and detected.hazard.is_presentation
    ):
        return "a wait, before the access, for the semaphore or the fence that an acquire of the image signals"
    if detected.hazard.is_race:
        return "any order between the two: a semaphore between the queues, or a dependency between the subpasses"
    if detected.hazard == Hazard.WRITE_AFTER_READ:
        wanted = f"an execution dependency from {_stage(detected.prior_access_kind)} to {_stage(detected.access_kind)}"
    else:
        wanted = f"a memory dependency from {_scope(detected.prior_access_kind)} to {_scope(detected.access_kind)}"
    return f"{wanted}; {_present(detected.hazard, detected.state.view(detected.viewer))}"


def _present(hazard: Hazard, view: View) -> str:
    """What the barriers so far have done for the prior access."""
    if hazard == Hazard.WRITE_AFTER_READ:
        stages = union(ordering.barriers for ordering in view.reads)
        return f"so far only {names.stages(stages)} waits for the read" if stages else "nothing orders them"
    if not view.write.barriers:
        if view.write.chain:
            return "the write was made available, but visible to nothing"
        return "nothing makes the write available"
    return f"so far the write is visible only to {names.sync_accesses(view.write.barriers)}"


def _stage(access_kind: int) -> str:
    return _PSEUDO.get(access_kind) or names.stages(ACCESS_KINDS[access_kind].stage)


def _scope(access_kind: int) -> str:
    if access_kind in _PSEUDO:
        return _PSEUDO[access_kind]
    return f"{names.stages(ACCESS_KINDS[access_kind].stage)}/{names.accesses(ACCESS_KINDS[access_kind].access)}"


def resource(kind: str, id: int, ranges: tuple[tuple[int, int], ...], boxes: tuple[Box, ...]) -> str:
    """A resource and the touched part of it: `VkBuffer 7 [0, 256)`, `VkImage 9 (color, mip 1, layer 0)`."""
    text = f"{kind} {id}"
    if ranges:
        offset, size = ranges[0]
        text += f" [{offset}, {offset + size})"
    if boxes:
        box = boxes[0]
        aspect = names.flags_names("VkImageAspectFlags", box.aspect)
        text += f" ({aspect}, mip {box.mip}, layer {box.layer})"
    more = len(ranges or boxes) - 1
    return f"{text} and {more} more" if more > 0 else text


def sentence(detected: DetectedHazard, place: Place, what: str, lack: str) -> str:
    """One sentence for people: who does what to which resource after whom, and what is missing."""
    done = _verb(detected.access_kind, "transitions the layout of", "writes", "reads")
    before = _verb(detected.prior_access_kind, "transitioned the layout of", "wrote", "read")
    if detected.through:
        what += f" (through its alias {detected.through})"
    return f"{place.command} {done} {what}, which {detected.prior.command} {before}. Missing: {lack}."


def _verb(access_kind: int, transition: str, write: str, read: str) -> str:
    if access_kind == LAYOUT_TRANSITION:
        return transition
    if access_kind == OWNERSHIP_TRANSFER:
        return transition.replace("layout", "ownership").replace("transition", "transfer")
    return write if ACCESS_KINDS[access_kind].write else read
