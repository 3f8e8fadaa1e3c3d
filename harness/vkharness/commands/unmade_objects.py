"""Objects that a call names and that no call made: the trace begins too late, or lost the call.

Nobody knows what an access of such an object touches, so that the verdict is `unknown` and says which object that is. A
call is asked which objects it names. The commands behind it that use what it bound or wrote are not: a descriptor that
nobody uses may be of an object that is gone. Looking an object up costs nothing more where it is there: only a call
that missed one has its arguments walked.
"""

from __future__ import annotations

from typing import Any

from vkharness.commands.object_state import ObjectState
from vkharness.trace.calls import Call
from vkharness.trace.references import references

OF_COMMANDS = frozenset(
    {
        "VkAccelerationStructureKHR",
        "VkBuffer",
        "VkBufferView",
        "VkCommandBuffer",
        "VkDescriptorSet",
        "VkFramebuffer",
        "VkImage",
        "VkPipeline",
        "VkRenderPass",
        "VkShaderEXT",
    }
)
"""Types of objects by which commands access memory. Handlers name the attachments that were not seen."""
OF_CALLS = frozenset({"VkBuffer", "VkBufferView", "VkCommandBuffer", "VkImage", "VkImageView"})
"""The same of other calls: what is submitted, viewed and written to descriptor sets."""
ENDS = ("vkDestroy", "vkFree")
"""How the names of calls begin that need nothing of what they name."""


def unmade_by_command(objects: ObjectState, name: str, args: dict[str, Any]) -> str:
    """The first object of a command that is not there, in words; empty where its handler missed none."""
    return _unmade(objects, Call(0, name, args), OF_COMMANDS) if objects.missed else ""


def unmade_by_call(objects: ObjectState, call: Call) -> str:
    """The same of any other call."""
    if not objects.missed or call.name.startswith(ENDS):
        return ""
    return _unmade(objects, call, OF_CALLS)


def _unmade(objects: ObjectState, call: Call, types: frozenset[str]) -> str:
    missed = objects.missed - objects.by_id.keys()
    for each in references(call) if missed else ():
        if each.id in missed and each.type in types and not each.made:
            return f"{each.type} {each.id}, which no call made, or which is destroyed"
    return ""
