"""Facts of Vulkan's registry (`vk.xml`) that fix an access, an order or a scope: one record for each name.

A record's text is made of attributes of the registry alone, so that its hash changes when one of them does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

Element = ElementTree.Element


class Record(NamedTuple):
    """A stage, an access, a command, a struct, a flag or a feature."""

    section: str
    """Its kind and its name, as `stage VK_PIPELINE_STAGE_2_COPY_BIT`."""
    text: str
    core: bool


CARRIERS = frozenset(
    [
        "VkSubmitInfo",
        "VkSubmitInfo2",
        "VkCommandBufferSubmitInfo",
        "VkBindSparseInfo",
        "VkPresentInfoKHR",
        "VkSwapchainCreateInfoKHR",
        "VkDependencyInfo",
        "VkBufferMemoryBarrier",
        "VkBufferMemoryBarrier2",
        "VkImageMemoryBarrier",
        "VkImageMemoryBarrier2",
        "VkMemoryRangeBarriersInfoKHR",
        "VkSubpassDependency2",
        "VkSubpassDescription2",
        "VkSubpassEndInfo",
        "VkRenderPassCreateInfo",
        "VkRenderPassCreateInfo2",
        "VkRenderPassBeginInfo",
        "VkRenderingInfo",
        "VkRenderingAttachmentInfo",
        "VkRenderingEndInfoKHR",
        "VkAttachmentDescription2",
        "VkAttachmentReference2",
        "VkFramebufferCreateInfo",
        "VkCommandBufferBeginInfo",
        "VkCommandBufferInheritanceInfo",
        "VkSemaphoreCreateInfo",
        "VkFenceCreateInfo",
        "VkEventCreateInfo",
        "VkQueryPoolCreateInfo",
        "VkDeviceQueueCreateInfo",
        "VkMemoryAllocateInfo",
        "VkMemoryMapInfo",
        "VkBindBufferMemoryInfo",
        "VkBindImageMemoryInfo",
        "VkBufferCreateInfo",
        "VkImageCreateInfo",
        "VkImageViewCreateInfo",
        "VkBufferViewCreateInfo",
        "VkBufferImageCopy2",
        "VkImageBlit2",
        "VkBlitImageInfo2",
        "VkResolveImageInfo2",
        "VkDeviceMemoryImageCopyKHR",
        "VkWriteDescriptorSet",
        "VkDescriptorSetLayoutCreateInfo",
        "VkBindDescriptorSetsInfo",
        "VkPushDescriptorSetInfo",
        "VkPushConstantsInfo",
        "VkAccelerationStructureGeometryKHR",
        "VkAccelerationStructureCreateInfoKHR",
        "VkAccelerationStructureGeometryTrianglesDataKHR",
        "VkGeneratedCommandsInfoEXT",
        "VkQueueFamilyProperties2",
        "VkPipelineColorBlendStateCreateInfo",
        "VkPipelineRasterizationStateCreateInfo",
    ]
)
"""Structs that say what is accessed, in which order or in which scope: what extends one may change that."""

ENUMS = frozenset(
    [
        "VkDependencyFlagBits",
        "VkSubmitFlagBits",
        "VkRenderingFlagBits",
        "VkRenderingAttachmentFlagBitsKHR",
        "VkAttachmentDescriptionFlagBits",
        "VkAttachmentLoadOp",
        "VkAttachmentStoreOp",
        "VkResolveModeFlagBits",
        "VkSubpassDescriptionFlagBits",
        "VkRenderPassCreateFlagBits",
        "VkFramebufferCreateFlagBits",
        "VkEventCreateFlagBits",
        "VkFenceCreateFlagBits",
        "VkSemaphoreType",
        "VkSemaphoreWaitFlagBits",
        "VkSemaphoreImportFlagBits",
        "VkFenceImportFlagBits",
        "VkCommandBufferUsageFlagBits",
        "VkSubpassContents",
        "VkQueueFlagBits",
        "VkSharingMode",
        "VkImageLayout",
        "VkImageCreateFlagBits",
        "VkBufferCreateFlagBits",
        "VkMemoryPropertyFlagBits",
        "VkMemoryMapFlagBits",
        "VkMemoryUnmapFlagBits",
        "VkHostImageCopyFlagBits",
        "VkSparseMemoryBindFlagBits",
        "VkQueryResultFlagBits",
        "VkQueryControlFlagBits",
        "VkQueryType",
        "VkConditionalRenderingFlagBitsEXT",
        "VkDescriptorType",
        "VkDescriptorBindingFlagBits",
        "VkPipelineColorBlendStateCreateFlagBits",
        "VkPipelineDepthStencilStateCreateFlagBits",
        "VkPresentModeKHR",
        "VkSwapchainCreateFlagBitsKHR",
        "VkAddressCommandFlagBitsKHR",
        "VkBuildAccelerationStructureModeKHR",
        "VkCopyAccelerationStructureModeKHR",
        "VkRasterizationOrderAMD",
    ]
)
"""Flags and choices that change an access, an order or a scope."""

HOST = re.compile(r"vk(?!Get|Enumerate|Create|Destroy|Cmd)")
STATUS = frozenset(["vkGetEventStatus", "vkGetFenceStatus", "vkGetSemaphoreCounterValue", "vkGetQueryPoolResults"])
BINDING = re.compile(r"vkCmd(?:Bind|Push|SetDescriptor|SetRendering)")


class Registry:
    """The records of one `vk.xml`. Raises ElementTree.ParseError for a file that is no XML."""

    def __init__(self, path: Path) -> None:
        self.root = ElementTree.parse(path).getroot()
        self.core = {
            str(each.get("name"))
            for feature in self.root.iter("feature")
            if "vulkan" in re.split(r"\W", str(feature.get("api"))) or "vulkanbase" in str(feature.get("api"))
            for block in feature.iter("require")
            for each in block
        }

    def version(self) -> str:
        """As `1.4.360`."""
        text = " ".join("".join(each.itertext()) for each in self.root.iter("type") if each.get("category") == "define")
        complete = re.search(r"VK_MAKE_API_VERSION\(0, (\d+), (\d+), VK_HEADER_VERSION\)", text)
        header = re.search(r"#define VK_HEADER_VERSION (\d+)", text)
        if complete is None or header is None:
            raise ValueError("the registry names no version")
        return f"{complete[1]}.{complete[2]}.{header[1]}"

    def records(self) -> Iterator[Record]:
        """All records, each name once."""
        seen = set()
        for made in (self._sync(), self._commands(), self._structs(), self._enums()):
            for record in made:
                if record.section not in seen:
                    seen.add(record.section)
                    yield record

    def _sync(self) -> Iterator[Record]:
        for kind in ("stage", "access"):
            for each in self.root.iter(f"sync{kind}"):
                parts = [f"{part.tag} {sorted(part.items())}" for part in each if part.tag != "comment"]
                name = str(each.get("name"))
                yield Record(f"{kind} {name}", "; ".join(parts), not re.search(r"_[A-Z]+$", name) or _plain(name))
        for each in self.root.iter("syncpipeline"):
            stages = [f"{part.text} {sorted(part.items())}" for part in each]
            yield Record(f"pipeline {each.get('name')}", "; ".join(stages), not each.get("depends"))

    def _commands(self) -> Iterator[Record]:
        for each in self.root.iter("command"):
            name = each.findtext("proto/name")
            if name is None or each.get("alias") or _other(each):
                continue
            tasks = str(each.get("tasks", ""))
            acts = bool(tasks) and tasks != "state"
            if acts or BINDING.match(name) or HOST.match(name) or name in STATUS:
                said = [f"{key} {each.get(key)}" for key in ("tasks", "queues", "renderpass") if each.get(key)]
                yield Record(f"command {name}", "; ".join(said), name in self.core)

    def _structs(self) -> Iterator[Record]:
        for each in self.root.iter("type"):
            extended = set(str(each.get("structextends", "")).split(","))
            name = str(each.get("name"))
            if each.get("alias") or _other(each) or each.get("category") != "struct":
                continue
            if "VkPhysicalDeviceFeatures2" in extended or name == "VkPhysicalDeviceFeatures":
                members = [str(member.findtext("name")) for member in each.iter("member")]
                yield Record(f"features {name}", " ".join(members), name in self.core)
            elif extended & CARRIERS:
                yield Record(f"struct {name}", " ".join(sorted(extended & CARRIERS)), name in self.core)

    def _enums(self) -> Iterator[Record]:
        for block in self.root.iter("enums"):
            owner = re.sub(r"2?(KHR)?$", "", str(block.get("name")))
            if str(block.get("name")) in ENUMS or (owner.endswith("FlagBits") and owner in ENUMS):
                core = str(block.get("name")) in self.core
                for each in block.iter("enum"):
                    if not each.get("alias") and not _other(each):
                        yield Record(f"flag {each.get('name')}", str(block.get("name")), core)
        for group in ("feature", "extension"):
            for place in self.root.iter(group):
                for each in place.iter("enum"):
                    if each.get("extends") in ENUMS and not each.get("alias") and not _other(place, each):
                        yield Record(f"flag {each.get('name')}", str(each.get("extends")), group == "feature")


def _other(*elements: Element) -> bool:
    """Whether they belong to another API than Vulkan alone, or to no API."""
    for each in elements:
        apis = str(each.get("supported") or each.get("api") or "vulkan")
        if "vulkan" not in apis.split(",") and "vulkanbase" not in apis.split(","):
            return True
    return False


def _plain(name: str) -> bool:
    """Whether a flag has no author's suffix."""
    return name.endswith(("_BIT", "_NONE", "_SHADERS_BIT"))
