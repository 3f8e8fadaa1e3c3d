"""The buffers and images of a trace, with the memory that they are bound to."""

from __future__ import annotations

from typing import Any

from vkharness.spec.enums import VkImageCreate
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call, reading
from vkharness.trace.resources import Buffer, Image, buffer_usage

ASKS = ("vkGetImageMemoryRequirements", "vkGetImageMemoryRequirements2")

LIMITS = ("vkGetPhysicalDeviceProperties", "vkGetPhysicalDeviceProperties2")


def bound_resources(blocks: list[Block]) -> tuple[list[Buffer], list[Image], set[int]]:
    """(buffers that are bound to memory or sparse, all images, those of both that are sparse). Images of a swapchain
    and what is sparse have no memory."""
    found = _Found()
    for call in blocks:
        if isinstance(call, Call) and call.succeeded:
            with reading(call):
                found.follow(call)
    images = list(found.images.values())
    plain = {each.id for several in (found.buffers.values(), images) for each in several if each.memory is not None}
    buffers = [each for each in found.buffers.values() if each.id in plain | found.sparse]
    return buffers, images, found.sparse - plain


def page_size(blocks: list[Block]) -> int:
    """bufferImageGranularity in bytes, the largest of all devices of which the program asked; 1 where it did not."""
    asked = (each for each in blocks if isinstance(each, Call) and main_name(each.name) in LIMITS)
    found = [each.args["pProperties"] or {} for each in asked]
    limits = [each.get("properties", each).get("limits") or {} for each in found]
    sizes: list[int] = [each.get("bufferImageGranularity", 1) for each in limits]
    return max([1, *sizes])


def device_addresses(blocks: list[Block]) -> dict[int, int]:
    """Buffers by the device address of their first byte, as the program was told."""
    asked = (each for each in blocks if isinstance(each, Call) and main_name(each.name) == "vkGetBufferDeviceAddress")
    return {each.result: each.args["pInfo"]["buffer"] for each in asked if each.result}


class _Found:
    def __init__(self) -> None:
        self.buffers: dict[int, Buffer] = {}
        self.images: dict[int, Image] = {}
        self.sparse: set[int] = set()

    def follow(self, call: Call) -> None:
        """Takes a call in."""
        name, args = main_name(call.name), call.args
        if name == "vkCreateBuffer":
            info = args["pCreateInfo"]
            self.buffers[args["pBuffer"]] = Buffer(args["pBuffer"], info["size"], usage=buffer_usage(info))
            self._if_sparse(args["pBuffer"], info)
        elif name == "vkCreateImage":
            self.images[args["pImage"]] = Image.created(args["pImage"], args["pCreateInfo"])
            self._if_sparse(args["pImage"], args["pCreateInfo"])
        elif name in ASKS:
            self._size(args)
        elif name.startswith(("vkBindBufferMemory", "vkBindImageMemory")):
            for bind in args.get("pBindInfos", [args]) or ():
                held = self.buffers.get(bind.get("buffer", 0)) or self.images.get(bind.get("image", 0))
                if held is not None:
                    held.memory, held.offset = bind["memory"], bind["memoryOffset"]

    def _if_sparse(self, id: int, info: dict[str, Any]) -> None:
        if info["flags"] & VkImageCreate.SPARSE_BINDING:  # VkBufferCreateFlags have the same value
            self.sparse.add(id)

    def _size(self, args: dict[str, Any]) -> None:
        asked = args.get("pInfo") or args
        said = args.get("pMemoryRequirements") or {}
        image = self.images.get(asked.get("image", 0))
        if image is not None:
            image.bytes = (said.get("memoryRequirements") or said).get("size", 0)
