"""Dynamic rendering that ends and begins anew, with a barrier between, where no barrier may stand inside.

Only local reads allow barriers inside an instance of dynamic rendering (VUID-vkCmdPipelineBarrier-None-09553). The
instance that begins anew loads what the first one stored.
"""

from __future__ import annotations

from collections.abc import Sequence

from vkharness.findings import Finding
from vkharness.mending.insertion import one_execution, with_barriers
from vkharness.mending.recordings import Instance, Recordings
from vkharness.trace.calls import Call
from vkharness.trace.edits import EditedTrace
from vkharness.trace.split_instances import attachments_of, can_be_split, infos_of_parts


def with_split_rendering(trace: EditedTrace, findings: Sequence[Finding]) -> EditedTrace | None:
    """Ends dynamic rendering before the later commands, and begins it anew; what is left then gets barriers."""
    recordings = Recordings(trace.blocks)
    sites = {each.place.call - 1: _instance(trace, recordings, each) for each in findings}
    if all(instance is None for instance in sites.values()):
        if not _is_split(trace):
            return None
        return with_barriers(trace, findings, ranged=True) or with_barriers(trace, findings, ranged=False)
    made = trace
    for position in sorted(sites, reverse=True):
        instance = sites[position]
        if instance is None or _has_begun(trace, instance, position):
            return None
        made = _split(made, instance, position)
    return made


def _instance(trace: EditedTrace, recordings: Recordings, finding: Finding) -> Instance | None:
    """The instance of dynamic rendering that holds both commands of a finding inside."""
    position = finding.place.call - 1
    recording = recordings.at(position)
    instance = recording.instance_at(position) if recording is not None else None
    if instance is None or instance.render_pass is not None or instance.suspends or instance.resumes:
        return None
    inside = instance.begin < finding.prior.call - 1 < position < instance.end
    whole = inside and all(map(can_be_split, attachments_of(trace.call(instance.begin).args["pRenderingInfo"])))
    return instance if whole and one_execution(finding) else None


def _is_split(trace: EditedTrace) -> bool:
    return any(edit.before is None and edit.after.name.startswith("vkCmdBeginRendering") for edit in trace.edits())


def _has_begun(trace: EditedTrace, instance: Instance, position: int) -> bool:
    """Whether a query or transform feedback began inside an instance, which must end inside it.

    vkCmdEndRendering "must not be recorded when transform feedback is active".
    """
    names = [block.name for block in trace.blocks[instance.begin : position] if isinstance(block, Call)]
    feedback = [
        name for name in names if "TransformFeedbackEXT" in name and name.startswith(("vkCmdBegin", "vkCmdEnd"))
    ]
    is_active = bool(feedback) and feedback[-1].startswith("vkCmdBegin")
    return is_active or any(name.startswith("vkCmdBeginQuery") for name in names)


def _split(trace: EditedTrace, instance: Instance, position: int) -> EditedTrace:
    begin = trace.call(instance.begin)
    info = begin.args["pRenderingInfo"]
    stored, loaded = infos_of_parts(info, 2)
    suffix = "KHR" if begin.name.endswith("KHR") else ""
    buffer = begin.args["commandBuffer"]
    calls = [
        Call(0, f"vkCmdEndRendering{suffix}", {"commandBuffer": buffer}),
        Call(0, begin.name, {"commandBuffer": buffer, "pRenderingInfo": loaded}),
    ]
    trace = trace.changed(instance.begin, {**begin.args, "pRenderingInfo": stored})
    return trace.inserted(position, calls)
