"""Buffers and images of a trace on the target: made and bound before anything runs, and alive until the end.

All of them exist from the start, so that their first contents can be made known, and destroys wait for the end, so
that everything can be observed. Their usage gains the transfer bits that saving, restoring and observing need.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sortedcontainers import SortedSet

from vkharness.findings import UserError
from vkharness.replay.objects.allocations import Allocation, Memories, WantedResource, plan
from vkharness.replay.objects.encode import Encoder, Handles
from vkharness.replay.objects.queue_mapping import QueueMapping
from vkharness.replay.objects.sparse_binds import allocate_sparse, refuse_without_sparse
from vkharness.replay.objects.target import ReplayDevice
from vkharness.spec._generated import STYPES
from vkharness.spec.command_classes import is_debug
from vkharness.spec.enums import (
    VkBufferUsage,
    VkFormatFeature,
    VkImageAspect,
    VkImageCreate,
    VkImageTiling,
    VkImageUsage,
    VkSharingMode,
)
from vkharness.trace.calls import CUT_OFF, Block, Call, reading
from vkharness.trace.chain import rebuilt
from vkharness.trace.non_coherent import NonCoherent
from vkharness.trace.resources import Image, buffer_usage
from vkharness.trace.sparse_effects import BIND_SPARSE

SPARSE = VkImageCreate.SPARSE_BINDING | VkImageCreate.SPARSE_RESIDENCY | VkImageCreate.SPARSE_ALIASED
LEFT_OUT = frozenset(
    {
        "VkExternalMemoryBufferCreateInfo",
        "VkExternalMemoryImageCreateInfo",
        "VkExternalMemoryImageCreateInfoNV",
        "VkDedicatedAllocationBufferCreateInfoNV",
        "VkDedicatedAllocationImageCreateInfoNV",
    }
)
"""Structures of create infos about external memory, which a replay does not need."""


@dataclass(slots=True)
class BufferResource:
    """A VkBuffer on the target. `view` is its memory when the host can map it."""

    id: int
    raw: int
    size: int
    usage: int
    view: Any = None
    bound: bool = False
    exclusive: bool = True
    """Whether its contents belong to one queue family at a time (VK_SHARING_MODE_EXCLUSIVE)."""


@dataclass(slots=True)
class ImageResource:
    """A VkImage on the target. `usage` is its usage on the target, and `info` its create info in the trace."""

    id: int
    raw: int
    image: Image
    usage: int
    info: dict[str, Any]
    view: Any = None
    bound: bool = False

    @property
    def exclusive(self) -> bool:
        """Whether its contents belong to one queue family at a time (VK_SHARING_MODE_EXCLUSIVE)."""
        return int(self.info["sharingMode"]) == VkSharingMode.EXCLUSIVE

    @property
    def initial(self) -> int:
        """The VkImageLayout at creation."""
        return int(self.info["initialLayout"])


@dataclass(slots=True)
class _Bind:
    resource: int
    memory: int
    offset: int


@dataclass(slots=True)
class Resources:
    """All buffers and images of one replay, by id, and the memory under them."""

    device: ReplayDevice
    handles: Handles
    memories: Memories
    mapping: QueueMapping
    buffers: dict[int, BufferResource] = field(default_factory=dict)
    images: dict[int, ImageResource] = field(default_factory=dict)
    host_reads: dict[int, bytes] = field(default_factory=dict)
    """The bytes that each declared read of the host saw, by block index."""

    def sizes(self) -> dict[int, int]:
        """The size in bytes of each bound resource in the memory through which the host writes it."""
        found = {buffer.id: buffer.size for buffer in self.buffers.values()}
        found.update({image.id: len(image.view) for image in self.images.values() if image.view is not None})
        return found

    def requirements(self, resource: int) -> Any:
        """The VkMemoryRequirements of a buffer or image on the target; None when it is neither."""
        ffi, handle = self.device.target.ffi, self.device.handle
        found = ffi.new("VkMemoryRequirements *")
        if resource in self.buffers:
            raw = ffi.cast("VkBuffer", self.buffers[resource].raw)
            self.device.function("vkGetBufferMemoryRequirements")(handle, raw, found)
        elif resource in self.images:
            raw = ffi.cast("VkImage", self.images[resource].raw)
            self.device.function("vkGetImageMemoryRequirements")(handle, raw, found)
        return found if resource in self.buffers or resource in self.images else None

    def close(self) -> None:
        """Destroys everything."""
        ffi, handle = self.device.target.ffi, self.device.handle
        for image in self.images.values():
            self.device.function("vkDestroyImage")(handle, ffi.cast("VkImage", image.raw), ffi.NULL)
        for buffer in self.buffers.values():
            self.device.function("vkDestroyBuffer")(handle, ffi.cast("VkBuffer", buffer.raw), ffi.NULL)
        self.memories.close()


def create_resources(
    device: ReplayDevice, handles: Handles, blocks: list[Block], mapping: QueueMapping, coherent: bool = True
) -> Resources:
    """Makes and binds every buffer and image of a trace. `mapping` says which families use those that are shared.

    Without `coherent`, memory of buffers that was not HOST_COHERENT in the trace is not, where the target has such
    memory. Raises UserError, naming the block, for what the target cannot make.
    """
    resources = Resources(device, handles, Memories(device), mapping)
    try:
        _create_all(resources, blocks, coherent)
    except BaseException:
        resources.close()
        raise
    return resources


def refuse_unread(call: Call) -> None:
    """Raises `UserError` when the call could not be read."""
    if call.unread and not is_debug(call.name) and call.name != CUT_OFF:
        raise UserError(f"block {call.index}: {call.name} cannot be replayed: it could not be read ({call.unread})")


def _create_all(resources: Resources, blocks: list[Block], coherent: bool) -> None:
    binds: list[_Bind] = []
    sparse: list[Call] = []
    mapped: set[int] = set()
    original: dict[int, int] = {}
    non_coherent = NonCoherent()
    for block in blocks:
        with reading(block):
            if not isinstance(block, Call):
                mapped.add(block.memory)
                continue
            if not block.succeeded:
                continue
            refuse_unread(block)
            if not coherent:
                non_coherent.note(block)
            if block.name == "vkCreateBuffer":
                _create_buffer(resources, block)
            elif block.name == "vkCreateImage":
                _create_image(resources, block)
            elif block.name == BIND_SPARSE:
                sparse.append(block)
            elif block.name.startswith("vkBind"):
                binds.extend(_binds(block))
            elif block.name in ("vkMapMemory", "vkMapMemory2KHR"):
                mapped.add(block.args.get("memory") or (block.args.get("pMemoryMapInfo") or {}).get("memory", 0))
            elif "MemoryRequirements" in block.name:
                original.update(_original_size(block))
    _bind_all(resources, binds, mapped, original, non_coherent.memories)
    others = {bind.memory for bind in binds}
    allocate_sparse(resources.memories, resources.handles, resources.requirements, blocks, sparse, others)


def _create_buffer(resources: Resources, call: Call) -> None:
    info = dict(call.args["pCreateInfo"])
    if info["flags"] & SPARSE:
        refuse_without_sparse(resources.device, call)
    if info["size"] <= 0:
        raise UserError(f"block {call.index}: vkCreateBuffer of {info['size']} bytes")
    info["usage"] |= VkImageUsage.TRANSFER_SRC | VkImageUsage.TRANSFER_DST
    _share(info, resources.mapping)
    info["pNext"] = _chain(info, VkImageUsage.TRANSFER_SRC | VkImageUsage.TRANSFER_DST)
    raw = _create(resources, call, "pBuffer", info)
    identity = call.args["pBuffer"]
    resources.buffers[identity] = BufferResource(identity, raw, info["size"], buffer_usage(info))
    resources.buffers[identity].exclusive = info["sharingMode"] == VkSharingMode.EXCLUSIVE
    if info["flags"] & SPARSE:
        resources.handles.add(identity, "VkBuffer", raw)


def _create_image(resources: Resources, call: Call) -> None:
    info = dict(call.args["pCreateInfo"])
    if info["flags"] & VkImageCreate.DISJOINT:
        raise UserError(f"block {call.index}: vkCreateImage makes a disjoint image, which cannot be replayed")
    if info["flags"] & SPARSE:
        refuse_without_sparse(resources.device, call)
    _share(info, resources.mapping)
    identity = call.args["pImage"]
    image = Image.created(identity, info)
    if not _supported(resources.device, image, info, info["usage"] & ~VkImageUsage.TRANSIENT_ATTACHMENT):
        # Asked here because software drivers do not check: they crash, or make it anyway.
        what = f"{image.format.name} {image.extent}, {image.mips} mips, {image.layers} layers, {image.samples} samples"
        where = f"block {call.index}: vkCreateImage of object {identity}"
        raise UserError(
            f"{where}: {resources.device.target.name} does not support it ({what}, usage {info['usage']:#x})"
        )
    extra = _extra_usage(resources.device, image, info)
    info["usage"] = (info["usage"] & ~VkImageUsage.TRANSIENT_ATTACHMENT) | extra
    info["pNext"] = _chain(info, extra)
    raw = _create(resources, call, "pImage", info)
    resources.images[identity] = ImageResource(identity, raw, image, info["usage"], info)
    if info["flags"] & SPARSE:
        resources.handles.add(identity, "VkImage", raw)


def _create(resources: Resources, call: Call, output: str, info: dict[str, Any]) -> int:
    """Makes the object of a vkCreateBuffer or vkCreateImage; its raw handle."""
    device = resources.device
    ffi = device.target.ffi
    encoder = Encoder(ffi, resources.handles)
    where = f"block {call.index}"
    args = {**call.args, "pCreateInfo": info}
    encoded = encoder.call(call.name, args, where, {"device": device.handle})
    result = device.function(call.name)(*encoded.arguments)
    device.check(result, f"{where}: {call.name} of object {call.args[output]}")
    handle = encoded.outputs[output][0]
    return int(ffi.cast("uintptr_t", handle))


def _share(info: dict[str, Any], mapping: QueueMapping) -> None:
    """Names the device's families in a create info, and the replay's own among them, which fills and observes.

    Without two of them sharing has no meaning, and the resource is exclusive.
    """
    families: set[int] = set()
    if info["sharingMode"] == VkSharingMode.CONCURRENT:
        families = {mapping.family(each) for each in info["pQueueFamilyIndices"] or ()}
        families = families | {mapping.own[0]} if len(families) > 1 else set()
    mode = VkSharingMode.CONCURRENT if families else VkSharingMode.EXCLUSIVE
    info.update(sharingMode=mode, queueFamilyIndexCount=len(families), pQueueFamilyIndices=sorted(families) or None)


def _chain(info: dict[str, Any], extra: int) -> dict[str, Any] | None:
    """The pNext chain without what concerns external memory, with usage bits added where the chain repeats usage."""

    def change(link: dict[str, Any]) -> dict[str, Any] | None:
        name = STYPES.get(link.get("sType", -1), "")
        if name == "VkBufferUsageFlags2CreateInfoKHR":
            return {**link, "usage": link["usage"] | extra}
        if name == "VkImageStencilUsageCreateInfo":
            return {**link, "stencilUsage": (link["stencilUsage"] & ~VkImageUsage.TRANSIENT_ATTACHMENT) | extra}
        return None if name in LEFT_OUT else link

    return rebuilt(info, change)


def _extra_usage(device: ReplayDevice, image: Image, info: dict[str, Any]) -> int:
    """The additional usage bits that the target supports for such an image."""
    target = device.target
    found = target.ffi.new("VkFormatProperties *")
    target.lib.vkGetPhysicalDeviceFormatProperties(target.physical, info["format"], found)
    linear = info["tiling"] == VkImageTiling.LINEAR
    features = int(found.linearTilingFeatures if linear else found.optimalTilingFeatures)
    extra = VkImageUsage.TRANSFER_SRC if features & VkFormatFeature.TRANSFER_SRC else 0
    extra |= VkImageUsage.TRANSFER_DST if features & VkFormatFeature.TRANSFER_DST else 0
    needs_fetch = image.samples > 1 or image.format.aspects & (VkImageAspect.DEPTH | VkImageAspect.STENCIL)
    if needs_fetch and features & VkFormatFeature.SAMPLED_IMAGE:
        extra |= VkImageUsage.SAMPLED
    for bits in (extra, extra & ~VkImageUsage.SAMPLED):
        if _supported(device, image, info, (info["usage"] & ~VkImageUsage.TRANSIENT_ATTACHMENT) | bits):
            return bits
    return 0


def _supported(device: ReplayDevice, image: Image, info: dict[str, Any], usage: int) -> bool:
    target = device.target
    found = target.ffi.new("VkImageFormatProperties *")
    result = target.lib.vkGetPhysicalDeviceImageFormatProperties(
        target.physical, info["format"], info["imageType"], info["tiling"], usage, info["flags"], found
    )
    most = (found.maxExtent.width, found.maxExtent.height, found.maxExtent.depth)
    return (
        result == 0
        and bool(int(found.sampleCounts) & image.samples)
        and all(0 < size <= limit for size, limit in zip(image.extent, most, strict=True))
        and 0 < image.mips <= found.maxMipLevels
        and 0 < image.layers <= found.maxArrayLayers
    )


def _binds(call: Call) -> list[_Bind]:
    """The binds of any vkBindBufferMemory* or vkBindImageMemory*."""
    infos = call.args.get("pBindInfos", [call.args])
    found = []
    for info in infos or []:
        resource = info.get("buffer") or info.get("image")
        place = (resource, info.get("memory"), info.get("memoryOffset"))
        if not all(type(value) is int and value >= 0 for value in place):
            raise UserError(f"block {call.index}: {call.name} cannot be replayed")
        found.append(_Bind(resource, info["memory"], info["memoryOffset"]))
    return found


def _original_size(call: Call) -> dict[int, int]:
    """The size in bytes of a resource on the original device, from a query that the program made."""
    asked = call.args.get("pInfo") or call.args
    resource = asked.get("buffer") or asked.get("image")
    answer = call.args.get("pMemoryRequirements") or {}
    answer = answer.get("memoryRequirements", answer)
    return {resource: answer["size"]} if resource and "size" in answer else {}


def _bind_all(
    resources: Resources, binds: list[_Bind], mapped: set[int], original: dict[int, int], non_coherent: set[int]
) -> None:
    by_memory: dict[int, list[_Bind]] = {}
    for bind in binds:
        by_memory.setdefault(bind.memory, []).append(bind)
    for memory, group in by_memory.items():
        offsets = SortedSet(bind.offset for bind in group)
        wanted = [_wanted(resources, bind, offsets, original) for bind in group]
        flags = 2 if any(_uses_address(resources, bind.resource) for bind in group) else 0
        groups = plan(wanted, resources.device.target.granularity)
        coherent = memory not in non_coherent or any(bind.resource in resources.images for bind in group)
        for allocation in resources.memories.allocate(memory, groups, memory in mapped, flags, coherent):
            for resource, offset in allocation.group.offsets.items():
                _bind(resources, resource, allocation, offset)


def _uses_address(resources: Resources, resource: int) -> bool:
    return resource in resources.buffers and bool(
        resources.buffers[resource].usage & VkBufferUsage.SHADER_DEVICE_ADDRESS
    )


def _wanted(resources: Resources, bind: _Bind, offsets: SortedSet[int], original: dict[int, int]) -> WantedResource:
    found = resources.requirements(bind.resource)
    if found is not None and bind.resource in resources.buffers:
        was, linear = resources.buffers[bind.resource].size, True
    elif found is not None:
        image = resources.images[bind.resource]
        # Nothing said how large it was: up to the next resource, unless that one begins at the same place.
        behind = next(offsets.irange(bind.offset, inclusive=(False, True)), bind.offset + found.size)
        was = original.get(bind.resource, behind - bind.offset)
        linear = image.info["tiling"] == VkImageTiling.LINEAR
    else:
        raise UserError(f"object {bind.resource} is bound to memory {bind.memory} but is no buffer or image")
    return WantedResource(bind.resource, bind.offset, was, found.size, found.alignment, found.memoryTypeBits, linear)


def _bind(resources: Resources, resource: int, allocation: Allocation, offset: int) -> None:
    """Binds a resource, and lets commands name it. Drivers crash on the use of a resource without memory."""
    device = resources.device
    ffi = device.target.ffi
    if resource in resources.buffers:
        buffer = resources.buffers[resource]
        raw = ffi.cast("VkBuffer", buffer.raw)
        result = device.function("vkBindBufferMemory")(device.handle, raw, allocation.raw, offset)
        device.check(result, f"vkBindBufferMemory of buffer {resource}")
        if allocation.mapping is not None and allocation.coherent:
            buffer.view = memoryview(allocation.mapping)[offset : offset + buffer.size]
        buffer.bound = True
        resources.handles.add(resource, "VkBuffer", buffer.raw)
        return
    image = resources.images[resource]
    raw = ffi.cast("VkImage", image.raw)
    result = device.function("vkBindImageMemory")(device.handle, raw, allocation.raw, offset)
    device.check(result, f"vkBindImageMemory of image {resource}")
    if allocation.mapping is not None:
        found = ffi.new("VkMemoryRequirements *")
        device.function("vkGetImageMemoryRequirements")(device.handle, raw, found)
        image.view = memoryview(allocation.mapping)[offset : offset + found.size]
    image.bound = True
    resources.handles.add(resource, "VkImage", image.raw)
