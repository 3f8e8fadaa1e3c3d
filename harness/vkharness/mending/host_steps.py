"""Steps that the host lacks: a wait, a dependency that makes a write visible to it, a flush or an invalidate.

A wait of the host is only for findings of the host: between commands, a barrier does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from vkharness.findings import Finding, Hazard, HostStep
from vkharness.mending.insertion import insert_entries, site_after
from vkharness.mending.recordings import Recordings
from vkharness.needed_scopes import scope_of
from vkharness.spec.enums import VK_WHOLE_SIZE, VkAccess2, VkPipelineStage2, VkStructureType
from vkharness.trace.barrier_calls import BarrierEntry, BufferPart, Masks
from vkharness.trace.calls import Call
from vkharness.trace.edits import EditedTrace
from vkharness.trace.ids import fresh_id

HOST_WRITE = "SYNC_HOST_HOST_WRITE"
WAITS = (HostStep.WAIT_TO_WRITE, HostStep.WAIT_TO_READ)
MAKES_VISIBLE = (HostStep.WAIT_TO_READ, HostStep.DEPENDENCY, HostStep.DEPENDENCY_TO_WRITE)
ATOM = 256
"""The largest nonCoherentAtomSize that a device may have, in bytes ("Limits")."""
FOREVER = (1 << 64) - 1


def with_host_steps(trace: EditedTrace, findings: Sequence[Finding]) -> EditedTrace | None:
    """Adds, for each finding, the step that is missing. None where one is not about the host, or cannot be mended."""
    made = trace
    for finding in sorted(findings, key=lambda each: -each.place.call):
        changed = _with_step(made, trace, finding)
        if changed is None:
            return None
        made = changed
    return made


def _with_step(trace: EditedTrace, before: EditedTrace, finding: Finding) -> EditedTrace | None:
    origin = before.origin(finding.place.call)
    position = trace.origins.index(origin)
    gap = finding.gap
    if gap in WAITS:
        waited = None
        if finding.prior.submit is not None:
            waited = _with_wait(trace, _at(trace, before, finding.prior.submit) - 1, position)
        if waited is None or gap is HostStep.WAIT_TO_WRITE:
            return waited
        trace = waited
    if gap in MAKES_VISIBLE:
        return _with_visibility(trace, before, finding)
    if gap is HostStep.INVALIDATE:
        return _with_ranges(trace, position, finding, "vkInvalidateMappedMemoryRanges")
    if finding.hazard is Hazard.UNFLUSHED_WRITE:
        return _with_ranges(trace, position, finding, "vkFlushMappedMemoryRanges")
    if finding.prior_access == HOST_WRITE and finding.place.submit is not None:
        submit, wrote = _at(trace, before, finding.place.submit), _at(trace, before, finding.prior.call)
        if wrote < submit:
            return _with_ranges(trace, submit - 1, finding, "vkFlushMappedMemoryRanges")
        # A write of the host after a submit reaches no command of it: the host may write once the command is done.
        return _with_wait(trace, submit - 1, wrote - 1)
    return None


def _with_wait(trace: EditedTrace, submit: int, position: int) -> EditedTrace | None:
    """With a wait for the fence of a submit before a position; the submit gets one if it has none."""
    call = trace.call(submit)
    device = trace.device
    fence = call.args.get("fence", 0)
    reset = any(
        isinstance(block, Call) and block.name == "vkResetFences" and fence in (block.args["pFences"] or ())
        for block in trace.blocks[submit:position]
    )
    if reset or "fence" not in call.args or submit >= position:
        return None
    if not fence:
        fence = fresh_id(trace.blocks)
        info = {"sType": VkStructureType.FENCE_CREATE_INFO, "pNext": None, "flags": 0}
        args = {"device": device, "pCreateInfo": info, "pAllocator": None, "pFence": fence}
        trace = trace.changed(submit, {**call.args, "fence": fence})
        trace = trace.inserted(submit, [Call(0, "vkCreateFence", args, 0)])
        position += 1
    wait = {"device": device, "fenceCount": 1, "pFences": [fence], "waitAll": 1, "timeout": FOREVER}
    return trace.inserted(position, [Call(0, "vkWaitForFences", wait, 0)])


def _with_visibility(trace: EditedTrace, before: EditedTrace, finding: Finding) -> EditedTrace | None:
    """With a barrier to the host after the earlier command, or after its render pass instance."""
    recordings = Recordings(trace.blocks)
    place = finding.prior
    executed_by = place.executed_by and (_at(trace, before, place.executed_by[0]), place.executed_by[1])
    following = site_after(recordings, replace(place, call=_at(trace, before, place.call), executed_by=executed_by))
    if following is None:
        return None
    stage, access = scope_of(finding.prior_access)
    target = VkAccess2.HOST_WRITE if finding.gap is HostStep.DEPENDENCY_TO_WRITE else VkAccess2.HOST_READ
    masks = Masks(stage or VkPipelineStage2.ALL_COMMANDS, access, VkPipelineStage2.HOST, target)
    parts: list[BufferPart | None] = [None]
    if finding.resource_type == "VkBuffer":
        parts = [BufferPart(finding.resource, offset, size) for offset, size in finding.ranges]
    return insert_entries(trace, recordings, following, [BarrierEntry(masks, part) for part in parts])


def _at(trace: EditedTrace, before: EditedTrace, index: int) -> int:
    """The index of a block of one trace in another one."""
    return trace.origins.index(before.origin(index)) + 1


def _with_ranges(trace: EditedTrace, position: int, finding: Finding, name: str) -> EditedTrace | None:
    """With a flush or an invalidate of the finding's bytes before a position."""
    found = _memory_of(trace, finding)
    if found is None:
        return None
    memory, base, total = found
    ranges = []
    for offset, size in finding.ranges:
        begin = (base + offset) // ATOM * ATOM
        end = -(-(base + offset + size) // ATOM) * ATOM
        length = VK_WHOLE_SIZE if end >= total else end - begin
        stype = VkStructureType.MAPPED_MEMORY_RANGE
        ranges.append({"sType": stype, "pNext": None, "memory": memory, "offset": begin, "size": length})
    args = {"device": trace.device, "memoryRangeCount": len(ranges), "pMemoryRanges": ranges}
    return trace.inserted(position, [Call(0, name, args, 0)])


def _memory_of(trace: EditedTrace, finding: Finding) -> tuple[int, int, int] | None:
    """The memory object of a finding's buffer, the offset in it, and the size of the memory, in bytes."""
    memory, base = finding.resource, 0
    if finding.resource_type == "VkBuffer":
        bound = next((each for each in _binds(trace) if each["buffer"] == finding.resource), None)
        if bound is None:
            return None
        memory, base = bound["memory"], bound["memoryOffset"]
    for block in trace.blocks:
        if isinstance(block, Call) and block.name == "vkAllocateMemory" and block.args["pMemory"] == memory:
            return memory, base, block.args["pAllocateInfo"]["allocationSize"]
    return None


def _binds(trace: EditedTrace) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for block in trace.blocks:
        if isinstance(block, Call) and block.name == "vkBindBufferMemory":
            found.append(block.args)
        elif isinstance(block, Call) and block.name.removesuffix("KHR") == "vkBindBufferMemory2":
            found += block.args["pBindInfos"] or ()
    return found
