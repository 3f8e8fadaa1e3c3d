"""Values of each parameter of a command, by its name and type in the registry: an ordinary one, and others.

A *parameter* is a scalar, a handle or a blob anywhere in the arguments of a command, named by the members on the way to
it: `pRegions.imageOffset.x`. `walk` finds them in the registry's structs. Nothing here knows a command: the rules say
what members of that name may be, so that a command that is added is measured without a line here.
"""

from __future__ import annotations

import re
import struct as packing
from collections.abc import Callable
from functools import cache
from typing import Any

from vkharness.fuzz.filled_calls import arguments, struct
from vkharness.replay.objects.encode import EncodedMember, members, parameters
from vkharness.spec._generated import ENUMS, UNIONS
from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED, VkAccess2, VkImageLayout, VkPipelineStage2

Value = Callable[[int], Any]
"""The ordinary value for 0, and further ones. Those of a parameter that can only be one thing are all alike."""
Ask = Callable[[str, str, EncodedMember], Any]
"""A function that a walk asks of each parameter, given its name, the struct or command that has it, and the member."""

ABSENT = frozenset({"pNext", "pStrides", "pDepthAttachment", "pStencilAttachment", "resolveImageView"})
"""Pointers and handles that an ordinary call leaves out."""
SAME = {"firstQuery": "query", "pEvents": "event"}
"""Other names of what calls that go together have in common."""
ALIKE = ("layerCount",)
"""Members that must be alike wherever a call has them."""
STAGES = tuple(getattr(VkPipelineStage2, name) for name in (
    "COMPUTE_SHADER", "FRAGMENT_SHADER", "VERTEX_SHADER", "DRAW_INDIRECT", "COLOR_ATTACHMENT_OUTPUT", "VERTEX_INPUT",
    "EARLY_FRAGMENT_TESTS", "LATE_FRAGMENT_TESTS",
))  # fmt: skip
ACCESSES = tuple(getattr(VkAccess2, name) for name in (
    "TRANSFER_READ", "SHADER_READ", "SHADER_WRITE", "COLOR_ATTACHMENT_READ", "COLOR_ATTACHMENT_WRITE", "INDEX_READ",
    "VERTEX_ATTRIBUTE_READ", "UNIFORM_READ",
))  # fmt: skip
"""Bits of masks that vary, beside those that the frames need."""


def _masks(whole: int, needed: int, bits: tuple[int, ...]) -> Value:
    return lambda at: whole if at == 0 else needed | sum(bit for place, bit in enumerate(bits) if at >> place & 1)


def _of(*values: Any) -> Value:
    return lambda at: values[at % len(values)]


def _steps(first: int, step: int, count: int = 1 << 30) -> Value:
    return lambda at: first + step * (at % count)


RULES: tuple[tuple[str, Value], ...] = (
    # numbers that addresses follow from
    (r"vkCmdPushConstants\.offset", _steps(0, 4, 4)),
    (r"vkCmdPushConstants\.size", _steps(4, 4, 4)),
    (r".*\.pDynamicOffsets", _steps(0, 256)),
    (r".*\.(\w*[oO]ffset|pOffsets) VkDeviceSize", _steps(0, 16)),
    (r".*\.(size|dataSize|pSizes) .*", _steps(16, 4, 1024)),
    (r".*\.(bufferRowLength|bufferImageHeight)", lambda at: at and 16 + at % 64),
    (r".*\.(firstVertex|vertexOffset|firstIndex|firstInstance)", _steps(0, 1)),
    (r".*\.(vertexCount|indexCount)", _steps(3, 1)),
    (r".*\.(instanceCount|groupCount[XYZ])", _steps(1, 1, 16)),
    (r".*\.baseGroup[XYZ]", _steps(0, 1, 16)),
    (r".*\.(drawCount|maxDrawCount)", _steps(1, 1, 4)),
    (r".*\.stride", _steps(20, 4, 64)),
    (r".*\.(firstBinding)", _steps(0, 1, 4)),
    (r".*\.(query|firstQuery)", _steps(0, 1, 16)),
    (r".*\.queryCount", _steps(1, 1, 16)),
    # texels: the images have 16 x 16, three levels of 4 and more, four layers
    (r"VkOffset[23]D\.[xy]", _steps(0, 1, 8)),
    (r"VkExtent[23]D\.(width|height)", _steps(1, 1, 8)),
    (r"VkExtent3D\.depth", _of(1)),
    (r"VkOffset3D\.z", _of(0)),
    (r"(VkRenderingInfo|VkClearRect)\.layerCount", _of(1)),
    (r"VkClearRect\.baseArrayLayer", _of(0)),
    (r".*\.(mipLevel|baseMipLevel)", _steps(0, 1, 3)),
    (r".*\.baseArrayLayer", _steps(0, 1, 4)),
    (r".*\.(levelCount|layerCount)", _steps(1, 1, 3)),
    (r"VkViewport\.(width|height)", lambda at: 16 + at / 1024),
    (r"VkViewport\.[xy]", lambda at: at / 1024),
    (r".*\.(maxDepth|maxDepthBounds)", lambda at: 1 - at % 997 / 1994),
    (r".*\.lineWidth", _of(1.0)),
    # scopes
    (r".*\.(pipelineStage|stage) .*", _of(*(0x1000, *STAGES))),
    (r".* VkPipelineStage.*", _masks(VkPipelineStage2.ALL_COMMANDS, 0x1000, STAGES)),
    (r".* VkAccess.*", _masks(VkAccess2.MEMORY_READ | VkAccess2.MEMORY_WRITE, 0x1000, ACCESSES)),
    (r".*\.oldLayout .*", _of(VkImageLayout.GENERAL, VkImageLayout.UNDEFINED)),
    (r".* VkImageLayout", _of(VkImageLayout.GENERAL)),
    (r".*QueueFamilyIndex .*", _of(VK_QUEUE_FAMILY_IGNORED)),
    (r".* VkDependencyFlags", _of(0, 1)),
    # what pipelines and passes fix
    (r"VkClearAttachment\.aspectMask .*", _of(1)),
    (r".* (VkShaderStageFlags|VkPipelineBindPoint)", _of(0)),
    (r".* VkPrimitiveTopology", _of(3, 4, 5)),
    (r".* VkIndexType", _of(1, 0)),
    (r".* VkQueryResultFlags", _of(0, 8)),
    (r".* VkCullModeFlags", _of(0, 1, 2)),
    (r".* VkStencilFaceFlags", _of(3, 1, 2)),
    (r".* (VkSubpassContents|VkRenderingFlags|VkResolveModeFlagBits|VkAttachmentStoreOp|VkQueryControlFlags)", _of(0)),
    (r".* VkAttachmentLoadOp", _of(0, 1)),
    (r".*\.(colorAttachment|firstSet|firstViewport|firstScissor|viewMask|stencil\w*Mask) .*", _of(0)),
    (r".*\.deviceMask .*", _of(1)),
    # what is left follows from the type
    (r".* VkBool32", _of(0, 1)),
    (r".* float", lambda at: at % 997 / 997),
    (r".* (u?int32_t|uint64_t|VkSampleMask)", _steps(0, 1)),
)
"""Values by `owner.member type`, of which the first rule counts that fits the beginning."""


@cache
def value_of(owner: str, member: EncodedMember) -> Value:
    """The values of a scalar."""
    name = f"{owner}.{member.name} {member.type}"
    for pattern, value in RULES:
        if re.match(pattern + r"(?![\w])", name):
            return value
    if member.type in ENUMS:
        return _of(*sorted({each for each in ENUMS[member.type].values() if each < 1000}))
    return _of(0)


# -- the walk ----------------------------------------------------------------------------------------------------------


def walk(command: str, ask: Ask) -> dict[str, Any]:
    """The arguments of a call in normal form: one element in each array, and in each parameter what `ask` answers."""
    listed = [each for each in parameters(command) if each.name != "commandBuffer"]
    return arguments(command, **_filled(command, "", listed, ask))


def _filled(owner: str, path: str, listed: list[EncodedMember], ask: Ask) -> dict[str, Any]:
    counts = {each.length for each in listed if isinstance(each.length, str) and each.kind != "void"}
    found: dict[str, Any] = {}
    for member in listed:
        if member.name in ABSENT or member.name in counts or member.name == "sType":
            continue
        if member.kind == "void" and isinstance(member.length, str):
            found[member.name] = _blob(ask(path + member.name, owner, member), found[member.length])
        elif member.kind != "void" and member.pointer < 2 and member.length != "null-terminated":
            found[member.name] = _member(owner, path + member.name, member, ask)
        if owner in UNIONS and found:
            break
    return found


def _blob(number: int, size: int) -> bytes:
    """Bytes that are others for another number."""
    return (packing.pack("<I", number) * (size // 4 + 1))[:size]


def _member(owner: str, path: str, member: EncodedMember, ask: Ask) -> Any:
    made: Any
    if member.kind in ("struct", "union"):
        inner = list(members(member.type))

        def one(place: int) -> Any:
            shifted: Ask = ask if not place else lambda *asked: _shifted(ask(*asked), place, asked[2])
            held = _filled(member.type, f"{path}.", inner, shifted)
            return held if member.kind == "union" else struct(member.type, **held)

    else:

        def one(place: int) -> Any:
            return ask(path, owner, member)

    if member.dims:
        return [one(place) for place in range(member.dims[0])]
    made = one(0)
    return [made] if member.pointer and member.length is not None else made


def _shifted(value: Any, place: int, member: EncodedMember) -> Any:
    """The values of a further element of a fixed-size array: another corner of a box, for instance."""
    return value + place if member.kind == "int" else value


def parameter_names(command: str) -> list[str]:
    """The parameters of a command that can be more than one thing, in order."""
    found: dict[str, bool] = {}

    def ask(path: str, owner: str, member: EncodedMember) -> Any:
        values = value_of(owner, member)
        varies = member.kind in ("handle", "void") or len({values(at) for at in range(9)}) > 1
        found[path] = found.get(path, False) or (varies and member.type != "VkPipelineLayout")
        return None if member.kind == "handle" else 0 if member.kind == "void" else values(0)

    walk(command, ask)
    several = {path.rpartition(".")[2] if path.endswith(ALIKE) else path: varies for path, varies in found.items()}
    return [path for path, varies in several.items() if varies]


def is_fresh(path: str, fresh: str | None) -> bool:
    """Whether the parameter at a path varies with the one that is to be fresh, in its call or in one that goes with
    it: the dependency of a wait for an event is that of the set, the first query of a reset that of what follows."""
    if fresh is None:
        return False
    path, fresh = (SAME.get(each, each) for each in (path, fresh))
    inner = fresh.partition(".")[2]
    return path == fresh or path.endswith(f".{fresh}") or (bool(inner) and path.partition(".")[2] == inner)
