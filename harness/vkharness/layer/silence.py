"""Accesses that the Khronos layer does not record, by design and in every version, so that it reports no hazard.

A table of (commands, accesses, of whom) -> reason. What a command means is not changed by it: the table is looked up
where a finding is compared with what the layer said.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from fnmatch import fnmatchcase

from vkharness.findings import Finding, Hazard
from vkharness.layer.stream import Stream
from vkharness.layer.touches import Touch
from vkharness.trace.calls import Call


class Only(Enum):
    """Of which accesses a line of the table holds."""

    ALL = auto()
    INSTANCES = auto()
    """Reads of vertex buffers that are bound at instance rate alone."""
    INHERITED = auto()
    """Those of a secondary command buffer that continues a render pass instance."""
    ATOMIC = auto()
    """Those of atomic updates."""


class Table:
    """Lines of commands, accesses, of which of them, and a reason."""

    def __init__(self, *lines: tuple[str, str, Only, str]) -> None:
        self._lines = lines
        self._of: dict[tuple[str, str], list[tuple[Only, str]]] = {}

    def of(self, command: str, access: str) -> list[tuple[Only, str]]:
        """Of which accesses of that kind a line holds, and its reason."""
        if (command, access) not in self._of:
            self._of[command, access] = [
                (only, reason)
                for commands, accesses, only, reason in self._lines
                if fnmatchcase(access, accesses) and fnmatchcase(command, commands)
            ]
        return self._of[command, access]


SILENCES = Table(
    ("*", "SYNC_HOST_*", Only.ALL, "host accesses (a documented limitation)"),
    ("*", "SYNC_QUEUE_FAMILY_OWNERSHIP_TRANSFER", Only.ALL, "queue family ownership"),
    ("vkCmdDraw*Indirect*", "SYNC_INDEX_INPUT_*", Only.ALL, "the indices of indirect draws"),
    ("vkCmdDraw*", "SYNC_*_COLOR_ATTACHMENT_READ", Only.ALL, "what blending and logical operations read"),
    ("vkCmdDraw*", "SYNC_*_DEPTH_STENCIL_ATTACHMENT_READ", Only.ALL, "what depth and stencil tests read"),
    ("*", "SYNC_*_SHADER_STORAGE_WRITE", Only.ATOMIC, "what atomic updates write"),
    ("*", "SYNC_TRANSFORM_FEEDBACK_*", Only.ALL, "transform feedback"),
    ("*", "SYNC_CONDITIONAL_RENDERING_*", Only.ALL, "what conditional rendering reads"),
    ("*", "SYNC_*_ATTACHMENT_*", Only.INHERITED, "what secondary command buffers do to attachments"),
)
"""Accesses that the layer does not track."""
VERTICES = Table(
    ("vkCmdDraw*Ind*", "SYNC_VERTEX_ATTRIBUTE_INPUT_*", Only.ALL, "the vertex buffers of indexed and indirect draws"),
    ("vkCmdDraw*", "SYNC_VERTEX_ATTRIBUTE_INPUT_*", Only.INSTANCES, "vertex buffers of instance rate"),
)
"""Accesses that it does not track from 1.4.348 on. Older versions take whole vertex buffers, and instance rate for
vertex rate: see `whole-vertex-buffers` and `vertices-unseen` in known_differences.toml."""
ALIASES = "other resources in the same memory, but for images created alike with VK_IMAGE_CREATE_ALIAS_BIT"


def reason_for_silence(finding: Finding, stream: Stream) -> str:
    """Names the untracked accesses or resources that keep the layer from reporting a finding; empty where none do."""
    if finding.hazard.is_ownership:
        return "queue family ownership"
    if finding.hazard.is_object_usage:
        return "uses of semaphores and fences"
    if finding.hazard is Hazard.SPARSE_BINDING_RACE or stream.is_sparse(finding.resource):
        return "resources with sparse memory"
    if reason := _of_either(finding, stream, SILENCES):
        return reason
    own = stream.at(finding.place.call)
    aliases = [alias for alias in stream.facts(own).aliases if not alias.alike] if own is not None else []
    if own is not None and finding.resource in {alias.resource for alias in aliases}:
        return "" if finding.resource in {touch.resource for touch in stream.touches(own)} else ALIASES
    return ""


def hides_vertices(finding: Finding, stream: Stream) -> bool:
    """Whether one of the two accesses reads vertices that layers from 1.4.348 on do not record."""
    return bool(_of_either(finding, stream, VERTICES))


def is_unrecorded(call: Call, touch: Touch, stream: Stream) -> bool:
    """True for a touch of a recorded command that today's layer does not record."""
    return bool(
        _reason(call.name, touch.access, call, touch.resource, stream, SILENCES)
        or _reason(call.name, touch.access, call, touch.resource, stream, VERTICES)
    )


def recorded_touches(call: Call, stream: Stream) -> Sequence[Touch]:
    """Gives those accesses of a recorded command that today's layer records at least in part."""
    known = stream.recorded_touches.get((stream.execution, call.index))
    if known is None:
        known = [touch for touch in stream.touches(call) if not is_unrecorded(call, touch, stream)]
        stream.recorded_touches[stream.execution, call.index] = known
    return known


def _of_either(finding: Finding, stream: Stream, table: Table) -> str:
    for place, access in ((finding.place, finding.access), (finding.prior, finding.prior_access)):
        if reason := _reason(place.command, access, stream.at(place.call), finding.resource, stream, table):
            return reason
    return ""


def _reason(command: str, access: str, call: Call | None, resource: int, stream: Stream, table: Table) -> str:
    """The reason of the first line of a table that holds of an access of a call to a resource; else nothing."""
    lines = table.of(command, access)
    return next((reason for only, reason in lines if _is_of(only, call, resource, stream)), "")


def _is_of(only: Only, call: Call | None, resource: int, stream: Stream) -> bool:
    if only is Only.ALL or call is None:
        return only is Only.ALL
    if only is Only.INSTANCES:
        return resource in stream.facts(call).instanced
    if only is Only.INHERITED:
        return stream.inherits(call.index)
    return any(touch.atomic for touch in stream.touches(call) if touch.resource == resource)
