"""vkCmdPipelineBarrier and vkCmdPipelineBarrier2 as one kind of data, and back into calls of either form.

Specification: "vkCmdPipelineBarrier", "vkCmdPipelineBarrier2", "VkDependencyInfo".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import Any

from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED, VkAccess2, VkPipelineStage2, VkStructureType
from vkharness.spec.first_form import first_form_accesses, first_form_stages
from vkharness.trace.calls import Call

FIRST = "vkCmdPipelineBarrier"
SECOND = "vkCmdPipelineBarrier2"
LISTS = ("Memory", "BufferMemory", "ImageMemory")
_STYPES = {
    "MemoryBarrier": VkStructureType.MEMORY_BARRIER,
    "BufferMemoryBarrier": VkStructureType.BUFFER_MEMORY_BARRIER,
    "ImageMemoryBarrier": VkStructureType.IMAGE_MEMORY_BARRIER,
    "MemoryBarrier2": VkStructureType.MEMORY_BARRIER_2,
    "BufferMemoryBarrier2": VkStructureType.BUFFER_MEMORY_BARRIER_2,
    "ImageMemoryBarrier2": VkStructureType.IMAGE_MEMORY_BARRIER_2,
}


@dataclass(frozen=True, slots=True)
class Masks:
    """The scopes of a dependency: VkPipelineStageFlags2 and VkAccessFlags2."""

    src_stages: int = 0
    src_accesses: int = 0
    dst_stages: int = 0
    dst_accesses: int = 0

    def __or__(self, other: Masks) -> Masks:
        mine: tuple[int, ...] = astuple(self)
        return Masks(*(one | another for one, another in zip(mine, astuple(other), strict=True)))

    @property
    def is_memory(self) -> bool:
        """Whether it is a memory dependency, and not only one of execution."""
        return bool(self.src_accesses or self.dst_accesses)

    @property
    def first_form(self) -> Masks:
        """The smallest masks of the first form that hold these."""
        return Masks(
            first_form_stages(self.src_stages),
            first_form_accesses(self.src_accesses),
            first_form_stages(self.dst_stages),
            first_form_accesses(self.dst_accesses),
        )


@dataclass(frozen=True, slots=True)
class BufferPart:
    """Bytes of a buffer."""

    buffer: int
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class ImagePart:
    """Subresources of an image, and the layouts of a barrier for them."""

    image: int
    aspects: int
    mips: tuple[int, int]
    layers: tuple[int, int]
    """First and count, as `mips`."""
    old_layout: int
    new_layout: int


@dataclass(frozen=True, slots=True)
class BarrierEntry:
    """One VkMemoryBarrier2, VkBufferMemoryBarrier2 or VkImageMemoryBarrier2; `families` from and to, of a transfer of
    ownership."""

    masks: Masks
    part: BufferPart | ImagePart | None = None
    families: tuple[int, int] = (VK_QUEUE_FAMILY_IGNORED, VK_QUEUE_FAMILY_IGNORED)

    @property
    def kind(self) -> str:
        """Which list of the call holds it: an element of LISTS."""
        return "BufferMemory" if isinstance(self.part, BufferPart) else "ImageMemory" if self.part else "Memory"


@dataclass(frozen=True, slots=True)
class BarrierCommand:
    """The barriers of one command."""

    command_buffer: int
    entries: tuple[BarrierEntry, ...]
    flags: int = 0

    @classmethod
    def of(cls, call: Call) -> BarrierCommand:
        """From a call of either form. Chained structs are dropped."""
        args = call.args
        info = args.get("pDependencyInfo") or args
        common = None if "pDependencyInfo" in args else (args["srcStageMask"], args["dstStageMask"])
        entries = [_entry(kind, each, common) for kind in LISTS for each in info.get(f"p{kind}Barriers") or ()]
        if common is not None and not entries:
            entries = [BarrierEntry(Masks(common[0], 0, common[1], 0))]
        return cls(args["commandBuffer"], tuple(entries), info.get("dependencyFlags", 0))

    def call(self, name: str) -> Call:
        """The call: one of the second form for a name that has a 2, else one of the first."""
        return Call(0, name, self._second() if "2" in name else self._first())

    def _second(self) -> dict[str, Any]:
        info: dict[str, Any] = {"sType": VkStructureType.DEPENDENCY_INFO, "pNext": None, "dependencyFlags": self.flags}
        for kind in LISTS:
            held = [_struct(each, f"{kind}Barrier2", each.masks) for each in self.entries if each.kind == kind]
            info |= _counted(kind, held)
        return {"commandBuffer": self.command_buffer, "pDependencyInfo": info}

    def _first(self) -> dict[str, Any]:
        union = Masks()
        for each in self.entries:
            union |= each.masks.first_form
        args: dict[str, Any] = {
            "commandBuffer": self.command_buffer,
            "srcStageMask": union.src_stages or VkPipelineStage2.TOP_OF_PIPE,
            "dstStageMask": union.dst_stages or VkPipelineStage2.BOTTOM_OF_PIPE,
            "dependencyFlags": self.flags,
        }
        for kind in LISTS:
            held = [each for each in self.entries if each.kind == kind and (each.part or each.masks.is_memory)]
            args |= _counted(kind, [_struct(each, f"{kind}Barrier", each.masks.first_form) for each in held])
        return args


def is_barrier(call: Call) -> bool:
    """Whether a call is a pipeline barrier of either form."""
    return call.name.removesuffix("KHR") in (FIRST, SECOND)


def _entry(kind: str, each: dict[str, Any], common: tuple[int, int] | None) -> BarrierEntry:
    src, dst = common or (each["srcStageMask"], each["dstStageMask"])
    part: BufferPart | ImagePart | None = None
    if kind == "BufferMemory":
        part = BufferPart(each["buffer"], each["offset"], each["size"])
    elif kind == "ImageMemory":
        where = each["subresourceRange"]
        part = ImagePart(
            each["image"],
            where["aspectMask"],
            (where["baseMipLevel"], where["levelCount"]),
            (where["baseArrayLayer"], where["layerCount"]),
            each["oldLayout"],
            each["newLayout"],
        )
    families = (
        each.get("srcQueueFamilyIndex", VK_QUEUE_FAMILY_IGNORED),
        each.get("dstQueueFamilyIndex", VK_QUEUE_FAMILY_IGNORED),
    )
    return BarrierEntry(Masks(src, each["srcAccessMask"], dst, each["dstAccessMask"]), part, families)


def _counted(kind: str, held: list[dict[str, Any]]) -> dict[str, Any]:
    count = "memory" if kind == "Memory" else f"{kind[0].lower()}{kind[1:]}"
    return {f"{count}BarrierCount": len(held), f"p{kind}Barriers": held or None}


def _struct(entry: BarrierEntry, struct: str, masks: Masks) -> dict[str, Any]:
    made: dict[str, Any] = {"sType": _STYPES[struct], "pNext": None}
    second = struct.endswith("2")
    made |= {"srcStageMask": masks.src_stages} if second else {}
    made["srcAccessMask"] = masks.src_accesses
    made |= {"dstStageMask": masks.dst_stages} if second else {}
    made["dstAccessMask"] = masks.dst_accesses
    part = entry.part
    if isinstance(part, ImagePart):
        made |= {"oldLayout": part.old_layout, "newLayout": part.new_layout}
    if part is not None:
        made |= {"srcQueueFamilyIndex": entry.families[0], "dstQueueFamilyIndex": entry.families[1]}
    if isinstance(part, BufferPart):
        made |= {"buffer": part.buffer, "offset": part.offset, "size": part.size}
    elif isinstance(part, ImagePart):
        where = {
            "aspectMask": part.aspects,
            "baseMipLevel": part.mips[0],
            "levelCount": part.mips[1],
            "baseArrayLayer": part.layers[0],
            "layerCount": part.layers[1],
        }
        made |= {"image": part.image, "subresourceRange": where}
    return made


def form_of(calls: Iterable[object]) -> str:
    """The name of the pipeline barrier that a program can use: of the second form where it uses that form anywhere."""
    second = {"vkCmdPipelineBarrier2", "vkQueueSubmit2", "vkCmdSetEvent2", "vkCmdWaitEvents2", "vkCmdWriteTimestamp2"}
    for call in calls:
        if isinstance(call, Call) and call.name.removesuffix("KHR") in second:
            return f"{SECOND}KHR" if call.name.endswith("KHR") else SECOND
    return FIRST


def full_barrier(index: int, command_buffer: int) -> Call:
    """A vkCmdPipelineBarrier between everything before it and everything after it."""
    everything = VkAccess2.MEMORY_READ | VkAccess2.MEMORY_WRITE
    full = {
        "sType": VkStructureType.MEMORY_BARRIER,
        "pNext": None,
        "srcAccessMask": everything,
        "dstAccessMask": everything,
    }
    args = {
        "commandBuffer": command_buffer,
        "srcStageMask": VkPipelineStage2.ALL_COMMANDS,
        "dstStageMask": VkPipelineStage2.ALL_COMMANDS,
        "dependencyFlags": 0,
        "memoryBarrierCount": 1,
        "pMemoryBarriers": [full],
        "bufferMemoryBarrierCount": 0,
        "pBufferMemoryBarriers": None,
        "imageMemoryBarrierCount": 0,
        "pImageMemoryBarriers": None,
    }
    return Call(index, FIRST, args)
