"""What executing a command buffer may write, in bytes of memory objects.

It is taken from the arguments of calls: destination ranges of transfers, and for everything that runs shaders the
storage buffers and images of the descriptor sets bound in the command buffer. That is more than what is really
written, on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from harness.record.mapped_memory import Range
from harness.spec._generated import TASKS
from harness.spec.enums import VK_WHOLE_SIZE, VkBufferUsage, VkDescriptorType, VkImageUsage
from harness.spec.shapes import main_name

ENDLESS = 1 << 62
"""End of what reaches to the end of its memory, as far as we know: images."""
SHADER_WRITABLE = 0x800 | 0x1000 | 0x20000 | 0x100000
"""Buffer usages that shaders or fixed functions may write with no descriptor: transform feedback (both), device
address, acceleration structure storage."""
STORAGE = VkBufferUsage.STORAGE_TEXEL_BUFFER | VkBufferUsage.STORAGE_BUFFER
"""Storage texel buffer (and storage image), storage buffer. For images the second bit is an attachment usage."""
ATTACHMENT = VkImageUsage.COLOR_ATTACHMENT | VkImageUsage.DEPTH_STENCIL_ATTACHMENT
"""Image usages written with no descriptor: colour and depth/stencil attachment."""


@dataclass(slots=True)
class BoundResource:
    """A buffer or image and where it is bound; size 0 means to the end of the memory."""

    size: int
    usage: int
    memory: int = 0
    offset: int = 0

    def range(self, offset: int = 0, size: int = VK_WHOLE_SIZE) -> tuple[int, Range]:
        """(memory, bytes) of a part of the resource."""
        start = self.offset + offset
        limit = self.offset + self.size if self.size else ENDLESS
        return self.memory, (start, limit if size == VK_WHOLE_SIZE else min(start + size, limit))


@dataclass(slots=True)
class Writes:
    """Resources, descriptor sets and command buffers, as far as needed to say what executing one may write."""

    resources: dict[int, BoundResource] = field(default_factory=dict)
    views: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """View id to (resource, offset, size)."""
    sets: dict[int, dict[tuple[int, int], tuple[int, int, int]]] = field(default_factory=dict)
    """Descriptor set to its storage descriptors: (binding, element) to (resource, offset, size)."""
    commands: dict[int, list[tuple[str, dict[str, Any]]]] = field(default_factory=dict)
    """Command buffer to its calls that may write or bind, in order."""
    pools: dict[int, set[int]] = field(default_factory=dict)
    """Command pool to its command buffers, descriptor pool to its sets."""
    opaque: set[int] = field(default_factory=set)
    """Descriptor sets written through unknown templates: they may hold any storage resource."""

    def watcher(self, name: str) -> Callable[[dict[str, Any]], None] | None:
        """What to do with the arguments of a successful call of `name`; None when nothing."""
        method = _WATCHED.get(main_name(name))
        return None if method is None else lambda args: method(self, args)

    def recorder(self, name: str) -> Callable[[dict[str, Any], int | None], None] | None:
        """What to do with the arguments of a vkCmd*; None when it can neither write nor bind. Needs no lock."""
        if not name.startswith("vkCmd") or not _may_write(name):
            return None
        commands = self.commands

        def note(args: dict[str, Any], result: int | None) -> None:
            commands.setdefault(args["commandBuffer"], []).append((name, args))

        return note

    def writes_of(self, command_buffer: int) -> Iterator[tuple[int, Range]]:
        """(memory, bytes) that executing a command buffer may write, as its descriptor sets are now."""
        bound: dict[int, None] = {}
        shaders = opaque = False
        for name, args in self.commands.get(command_buffer, ()):
            command = main_name(name)
            if command == "vkCmdBindDescriptorSets":
                bound.update(dict.fromkeys(args["pDescriptorSets"] or ()))
            elif command == "vkCmdPushDescriptorSetKHR":
                for _, place in self._storage_of(args["pDescriptorWrites"] or ()):
                    yield from self._bound_range(*place)
            elif command in _TEMPLATES:
                opaque = opaque or "writes" not in args
                for _, place in self._storage_of(args.get("writes") or ()):
                    yield from self._bound_range(*place)
            elif command == "vkCmdExecuteCommands":
                for secondary in args["pCommandBuffers"] or ():
                    yield from self.writes_of(secondary)
            elif command in _TRANSFERS:
                yield from self._transfer(command, args)
            else:
                shaders = True
        if shaders:
            yield from self._shader_writes(bound, opaque or not self.opaque.isdisjoint(bound))

    def _shader_writes(self, bound: Iterable[int], opaque: bool) -> Iterator[tuple[int, Range]]:
        for descriptor_set in bound:
            for place in self.sets.get(descriptor_set, {}).values():
                yield from self._bound_range(*place)
        for resource in self.resources.values():
            anywhere = (SHADER_WRITABLE if resource.size else ATTACHMENT) | (STORAGE if opaque else 0)
            if resource.memory and resource.usage & anywhere:
                yield resource.range()

    def _bound_range(self, resource: int, offset: int, size: int) -> Iterator[tuple[int, Range]]:
        found = self.resources.get(resource)
        if found is not None and found.memory:
            yield found.range(offset, size)

    def _transfer(self, command: str, args: dict[str, Any]) -> Iterator[tuple[int, Range]]:
        info = args[f"p{command[5:-1]}Info"] or {} if command.endswith("2") else args
        target = info.get("dstBuffer") or info.get("dstImage") or args.get("image") or 0
        size = info.get("size", info.get("dataSize", VK_WHOLE_SIZE)) if command in _SIZED else VK_WHOLE_SIZE
        if info.get("dstBuffer") and "pRegions" in info:
            for region in info["pRegions"] or ():
                if "bufferOffset" in region:
                    yield from self._bound_range(target, region["bufferOffset"], VK_WHOLE_SIZE)
                else:
                    yield from self._bound_range(target, region["dstOffset"], region["size"])
        else:
            yield from self._bound_range(target, info.get("dstOffset", 0), size)

    def _storage_of(self, writes: Iterable[dict[str, Any]]) -> Iterator[tuple[tuple[int, int], tuple[int, int, int]]]:
        """((binding, element), (resource, offset, size)) of each storage descriptor in VkWriteDescriptorSet structs."""
        for write in writes:
            kind, binding, first = write["descriptorType"], write["dstBinding"], write["dstArrayElement"]
            if kind in (VkDescriptorType.STORAGE_BUFFER, VkDescriptorType.STORAGE_BUFFER_DYNAMIC):
                places = [(b["buffer"], b["offset"], b["range"]) for b in write["pBufferInfo"] or ()]
                if kind == VkDescriptorType.STORAGE_BUFFER_DYNAMIC:
                    places = [(buffer, offset, VK_WHOLE_SIZE) for buffer, offset, _ in places]
            elif kind == VkDescriptorType.STORAGE_TEXEL_BUFFER:
                places = [self.views.get(view, (0, 0, 0)) for view in write["pTexelBufferView"] or ()]
            elif kind == VkDescriptorType.STORAGE_IMAGE:
                places = [self.views.get(image["imageView"], (0, 0, 0)) for image in write["pImageInfo"] or ()]
            else:
                continue
            for i, place in enumerate(places):
                yield (binding, first + i), place

    # What calls change. Each takes the arguments of one successful call.

    def created(self, args: dict[str, Any]) -> None:
        """vkCreateBuffer, vkCreateImage."""
        info = args["pCreateInfo"]
        self.resources[args.get("pBuffer") or args.get("pImage") or 0] = BoundResource(
            info.get("size", 0), info["usage"]
        )

    def bound(self, args: dict[str, Any]) -> None:
        """vkBind*Memory and vkBind*Memory2."""
        for bind in args["pBindInfos"] or () if "pBindInfos" in args else (args,):
            resource = self.resources.get(bind.get("buffer") or bind.get("image") or 0)
            if resource is not None:
                resource.memory, resource.offset = bind["memory"], bind["memoryOffset"]

    def viewed(self, args: dict[str, Any]) -> None:
        """vkCreateBufferView, vkCreateImageView."""
        info = args["pCreateInfo"]
        place = (info.get("buffer") or info.get("image") or 0, info.get("offset", 0), info.get("range", VK_WHOLE_SIZE))
        self.views[args["pView"]] = place

    def updated(self, args: dict[str, Any]) -> None:
        """vkUpdateDescriptorSets."""
        for write in args["pDescriptorWrites"] or ():
            entries = self.sets.setdefault(write["dstSet"], {})
            for i in range(write["descriptorCount"]):
                entries.pop((write["dstBinding"], write["dstArrayElement"] + i), None)
            entries.update(self._storage_of((write,)))
        for copy in args["pDescriptorCopies"] or ():
            source, target = self.sets.get(copy["srcSet"], {}), self.sets.setdefault(copy["dstSet"], {})
            for i in range(copy["descriptorCount"]):
                place = source.get((copy["srcBinding"], copy["srcArrayElement"] + i))
                if place is not None:
                    target[copy["dstBinding"], copy["dstArrayElement"] + i] = place

    def templated(self, args: dict[str, Any]) -> None:
        """vkUpdateDescriptorSetWithTemplate."""
        if "writes" in args:
            self.updated({"pDescriptorWrites": args["writes"], "pDescriptorCopies": None})
        else:
            self.opaque.add(args["descriptorSet"])

    def forgotten(self, args: dict[str, Any]) -> None:
        """vkDestroyBuffer, vkDestroyImage and their views."""
        for name in ("buffer", "image"):
            self.resources.pop(args.get(name, 0), None)
        self.views.pop(args.get("bufferView", args.get("imageView", 0)), None)

    def allocated(self, args: dict[str, Any]) -> None:
        """vkAllocateCommandBuffers."""
        self.pools.setdefault(args["pAllocateInfo"]["commandPool"], set()).update(args["pCommandBuffers"] or ())

    def sets_allocated(self, args: dict[str, Any]) -> None:
        """vkAllocateDescriptorSets."""
        self.pools.setdefault(args["pAllocateInfo"]["descriptorPool"], set()).update(args["pDescriptorSets"] or ())

    def reset(self, args: dict[str, Any]) -> None:
        """vkBeginCommandBuffer, vkResetCommandBuffer."""
        self.commands.pop(args["commandBuffer"], None)

    def pool_reset(self, args: dict[str, Any]) -> None:
        """vkResetCommandPool: its command buffers stay."""
        for command_buffer in self.pools.get(args["commandPool"], ()):
            self.commands.pop(command_buffer, None)

    def pool_emptied(self, args: dict[str, Any]) -> None:
        """vkDestroyCommandPool, vkResetDescriptorPool, vkDestroyDescriptorPool."""
        self._free(self.pools.pop(args.get("commandPool") or args.get("descriptorPool") or 0, ()))

    def freed(self, args: dict[str, Any]) -> None:
        """vkFreeCommandBuffers, vkFreeDescriptorSets."""
        gone = args.get("pCommandBuffers") or args.get("pDescriptorSets") or ()
        self.pools.get(args.get("commandPool") or args.get("descriptorPool") or 0, set()).difference_update(gone)
        self._free(gone)

    def _free(self, gone: Iterable[int]) -> None:
        for id in gone:
            self.commands.pop(id, None)
            self.sets.pop(id, None)
            self.opaque.discard(id)


_WATCHED: dict[str, Callable[[Writes, dict[str, Any]], None]] = {
    "vkCreateBuffer": Writes.created,
    "vkCreateImage": Writes.created,
    "vkBindBufferMemory": Writes.bound,
    "vkBindImageMemory": Writes.bound,
    "vkBindBufferMemory2": Writes.bound,
    "vkBindImageMemory2": Writes.bound,
    "vkCreateBufferView": Writes.viewed,
    "vkCreateImageView": Writes.viewed,
    "vkUpdateDescriptorSets": Writes.updated,
    "vkUpdateDescriptorSetWithTemplate": Writes.templated,
    "vkDestroyBuffer": Writes.forgotten,
    "vkDestroyImage": Writes.forgotten,
    "vkDestroyBufferView": Writes.forgotten,
    "vkDestroyImageView": Writes.forgotten,
    "vkAllocateCommandBuffers": Writes.allocated,
    "vkBeginCommandBuffer": Writes.reset,
    "vkResetCommandBuffer": Writes.reset,
    "vkResetCommandPool": Writes.pool_reset,
    "vkDestroyCommandPool": Writes.pool_emptied,
    "vkFreeCommandBuffers": Writes.freed,
    "vkAllocateDescriptorSets": Writes.sets_allocated,
    "vkResetDescriptorPool": Writes.pool_emptied,
    "vkDestroyDescriptorPool": Writes.pool_emptied,
    "vkFreeDescriptorSets": Writes.freed,
}
_SIZED = frozenset({"vkCmdFillBuffer", "vkCmdUpdateBuffer"})
_TRANSFERS = _SIZED | {
    "vkCmdCopyBuffer",
    "vkCmdCopyBuffer2",
    "vkCmdCopyImage",
    "vkCmdCopyImage2",
    "vkCmdCopyBufferToImage",
    "vkCmdCopyBufferToImage2",
    "vkCmdCopyImageToBuffer",
    "vkCmdCopyImageToBuffer2",
    "vkCmdBlitImage",
    "vkCmdBlitImage2",
    "vkCmdResolveImage",
    "vkCmdResolveImage2",
    "vkCmdClearColorImage",
    "vkCmdClearDepthStencilImage",
    "vkCmdCopyQueryPoolResults",
}
_TEMPLATES = frozenset({"vkCmdPushDescriptorSetWithTemplateKHR"})
_BINDS = _TEMPLATES | {"vkCmdBindDescriptorSets", "vkCmdPushDescriptorSetKHR", "vkCmdExecuteCommands"}


def _may_write(name: str) -> bool:
    """Whether a vkCmd* may write a resource or binds what others write; unknown commands may."""
    command = main_name(name)
    tasks = TASKS.get(name) or TASKS.get(command) or ("action",)
    return command in _BINDS or "action" in tasks or command.startswith(("vkCmdBeginRender", "vkCmdBuild"))
