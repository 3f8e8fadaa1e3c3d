"""Barriers as named dependencies, which twins of a scenario leave out or weaken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vkharness.rig.core import RigCommandBuffer, RigImage, layout
from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED, VK_WHOLE_SIZE
from vkharness.spec.masks import scope

GENERAL = "GENERAL"


class BarrierCommands(RigCommandBuffer):
    """Commands of pipeline barriers."""

    def barrier(
        self, name: str, src: str, dst: str, *, weaker: Mapping[str, Mapping[str, Any]] | None = None, **options: Any
    ) -> None:
        """One named dependency, recorded as a command of its own unless a twin leaves it out.

        `src` and `dst` are scopes as text (`vkharness.spec.masks`). Options: `buffer` with `offset`, `size`; or `image`
        with `aspects`, `mips`, `layers`, `old`, `new` (layouts); `families` (from, to) of an ownership transfer of the
        resource; `sync2`, False for vkCmdPipelineBarrier; `flags` (VkDependencyFlags). Without a resource it is a
        global barrier; with no access masks and no resource, a pure execution dependency. `weaker` names sets of
        replaced options, for twins; `{"several": [...]}` there records those barriers, in one command, instead.
        """
        written = {"src": src, "dst": dst, **options}
        amended = self.rig.amend(name, written, weaker or {}) if name else written
        if amended is not None:
            self._record(amended.get("several", [amended]))

    def barriers(
        self, name: str, *several: Mapping[str, Any], weaker: Mapping[str, Sequence[Mapping[str, Any]]] | None = None
    ) -> None:
        """Several independent barriers in one command; a twin leaves out the command, or records those of `weaker`."""
        forms = {key: {"several": value} for key, value in (weaker or {}).items()}
        amended = self.rig.amend(name, {"several": several}, forms) if name else {"several": several}
        if amended is not None:
            self._record(amended["several"])

    def transition(
        self,
        *images: RigImage,
        src: str = "NONE",
        dst: str = "ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE",
        old: str = "UNDEFINED",
        new: str = GENERAL,
        **options: Any,
    ) -> None:
        """Records a layout transition of each image; they belong to the scenario and stay in every twin."""
        for image in images:
            self._record([{"src": src, "dst": dst, "image": image, "old": old, "new": new, **options}])

    def _record(self, several: Sequence[Mapping[str, Any]]) -> None:
        if several:
            (self._record2 if several[0].get("sync2", True) else self._record1)(several)

    def _record2(self, several: Sequence[Mapping[str, Any]]) -> None:
        self.vk.vkCmdPipelineBarrier2(self.handle, self.dependency_info(several))

    def dependency_info(self, several: Sequence[Mapping[str, Any]]) -> Any:
        """A VkDependencyInfo of barriers as `barrier` takes them."""
        vk = self.vk
        lists: dict[str, list[Any]] = {"Memory": [], "BufferMemory": [], "ImageMemory": []}
        for each in several:
            (src_stages, src_accesses), (dst_stages, dst_accesses) = scope(each["src"]), scope(each["dst"])
            masks = {
                "srcStageMask": src_stages,
                "srcAccessMask": src_accesses,
                "dstStageMask": dst_stages,
                "dstAccessMask": dst_accesses,
            }
            kind, more = self._target(each)
            lists[kind].append(getattr(vk, f"Vk{kind}Barrier2")(**masks, **more))
        return vk.VkDependencyInfo(
            dependencyFlags=several[0].get("flags", 0),
            memoryBarrierCount=len(lists["Memory"]),
            pMemoryBarriers=lists["Memory"],
            bufferMemoryBarrierCount=len(lists["BufferMemory"]),
            pBufferMemoryBarriers=lists["BufferMemory"],
            imageMemoryBarrierCount=len(lists["ImageMemory"]),
            pImageMemoryBarriers=lists["ImageMemory"],
        )

    def _record1(self, several: Sequence[Mapping[str, Any]]) -> None:
        src_stages, dst_stages = scope(several[0]["src"])[0], scope(several[0]["dst"])[0]
        flags = several[0].get("flags", 0)
        counted = self.counted_barriers(several)
        self.vk.vkCmdPipelineBarrier(self.handle, src_stages or 0x1, dst_stages or 0x2000, flags, *counted)

    def counted_barriers(self, several: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Count and array of the memory, buffer and image barriers, as vkCmdPipelineBarrier and vkCmdWaitEvents take
        them."""
        vk = self.vk
        lists: dict[str, list[Any]] = {"Memory": [], "BufferMemory": [], "ImageMemory": []}
        for each in several:
            masks = {"srcAccessMask": scope(each["src"])[1], "dstAccessMask": scope(each["dst"])[1]}
            kind, more = self._target(each)
            if kind != "Memory" or any(masks.values()):
                lists[kind].append(getattr(vk, f"Vk{kind}Barrier")(**masks, **more))
        return [part for each in lists.values() for part in (len(each), each)]

    def _target(self, each: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        buffer, image = each.get("buffer"), each.get("image")
        source, target = each.get("families", (VK_QUEUE_FAMILY_IGNORED, VK_QUEUE_FAMILY_IGNORED))
        families = {"srcQueueFamilyIndex": source, "dstQueueFamilyIndex": target}
        if buffer is not None:
            place = {"offset": each.get("offset", 0), "size": each.get("size", VK_WHOLE_SIZE)}
            return "BufferMemory", {"buffer": buffer.handle, **place, **families}
        if image is not None:
            layouts = {"oldLayout": layout(each.get("old", GENERAL)), "newLayout": layout(each.get("new", GENERAL))}
            part = image_range(self.vk, image, each)
            return "ImageMemory", {"image": image.handle, "subresourceRange": part, **layouts, **families}
        return "Memory", {}


def image_range(vk: Any, image: RigImage, part: Mapping[str, Any]) -> Any:
    """A VkImageSubresourceRange of `aspects`, and of `mips` and `layers` as (first, count). The default is
    all of them."""
    mips, layers = part.get("mips", (0, image.mips)), part.get("layers", (0, image.layers))
    return vk.VkImageSubresourceRange(
        aspectMask=part.get("aspects", image.aspects),
        baseMipLevel=mips[0],
        levelCount=mips[1],
        baseArrayLayer=layers[0],
        layerCount=layers[1],
    )
