"""Memory, buffers, images and their views: creation, binding, destruction."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

from vkharness.commands.handlers import call
from vkharness.commands.object_state import ObjectState
from vkharness.commands.resources import kept_contents
from vkharness.commands.resources.host_access import heap_flags, new_memory
from vkharness.findings import Place
from vkharness.spec.enums import (
    VK_REMAINING_3D_SLICES_EXT,
    VK_WHOLE_SIZE,
    VkImageCreate,
    VkImageType,
    VkMemoryHeap,
    VkSharingMode,
    VkStructureType,
)
from vkharness.trace.calls import UNSEEN_WRITES, Call
from vkharness.trace.chain import chained
from vkharness.trace.effects import Destroyed, StreamEvent, UnmodelledCall
from vkharness.trace.ownership_effects import SharedResource
from vkharness.trace.resources import Buffer, BufferView, Image, ImageView, Memory, ShaderModule, buffer_usage

FLAT_VIEW_TYPES = (1, 5)
"""VK_IMAGE_VIEW_TYPE_2D and _2D_ARRAY."""


@call("vkAllocateMemory")
def allocate_memory(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Adds a memory object, which is a new address space."""
    info = call.args["pAllocateInfo"]
    objects.add(new_memory(objects, call.args["device"], call.args["pMemory"], info))
    if call.args.get(UNSEEN_WRITES):
        objects.contents.leave_to_host(call.args["pMemory"])
    if objects.groups is not None:
        flags = heap_flags(objects, call.args["device"], info)
        several = None if flags is None else bool(flags & VkMemoryHeap.MULTI_INSTANCE)
        given = call.args["device"], call.args["pMemory"], info, several
        yield from map(UnmodelledCall, objects.groups.allocate(*given))
    if info.get("pNext") is not None:
        yield from objects.aliasing.imported.allocated(call.args["pMemory"], info)
        yield from objects.payloads.memory_imported(call)


@call("vkFreeMemory")
def free_memory(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Removes a memory object with all its addresses."""
    objects.aliasing.free(call.args["memory"])
    objects.aliasing.imported.freed(call.args["memory"])
    objects.contents.memory.forget_space(call.args["memory"])
    objects.remove(call.args["memory"])
    return (Destroyed(call.args["memory"]),)


@call("vkCreateBuffer")
def create_buffer(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Adds a buffer. It has addresses of its own until it is bound."""
    info = call.args["pCreateInfo"]
    concurrent = info.get("sharingMode") == VkSharingMode.CONCURRENT
    buffer = Buffer(call.args["pBuffer"], info["size"], concurrent=concurrent, usage=buffer_usage(info), info=info)
    objects.add(buffer)
    _if_sparse(objects, call, buffer, info.get("flags", 0))
    if buffer.concurrent:
        return (SharedResource(buffer.id),)
    return kept_contents.of_buffer(objects, call.args["device"], buffer.id)


MOST_TEXELS = (1 << 32) ** 3
"""No image has more: three counts of 32 bits, since one of a 3D image has one layer and every other one slice.
VUID-VkImageCreateInfo-imageType-00956, -00957 and -00961. So addresses of images are below 2^128."""


def _if_sparse(objects: ObjectState, call: Call, thing: Buffer | Image, flags: int) -> None:
    """The bits of VkBufferCreateFlags and VkImageCreateFlags have one value."""
    if flags & VkImageCreate.SPARSE_BINDING:
        made = Place(call.index, call.name, call.site)
        objects.sparse.add(thing, bool(flags & VkImageCreate.SPARSE_RESIDENCY), made)


@call("vkCreateImage")
def create_image(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Adds an image. It keeps its own idealized addresses, bound or not."""
    image = Image.created(call.args["pImage"], call.args["pCreateInfo"])
    info = image.info
    if prod(image.extent) * image.layers > MOST_TEXELS:
        raise ValueError(f"{image.layers} layers of {' x '.join(map(str, image.extent))} texels")
    if image.mips > max(1, *image.extent).bit_length():  # VUID-VkImageCreateInfo-mipLevels-00958
        raise ValueError(f"{image.mips} mip levels of an image of {' x '.join(map(str, image.extent))} texels")
    image.rewrites = objects.aspect_rewrites.get(call.args["device"], image.rewrites)
    if image.type == VkImageType.TYPE_3D and info["flags"] & VkImageCreate.CREATE_2D_ARRAY_COMPATIBLE:
        image.by_slice = objects.barriers_by_slice.get(call.args["device"], False)
    _told(objects, image, call.args["pCreateInfo"])
    objects.add(image)
    _if_sparse(objects, call, image, info["flags"])
    if image.by_slice is None:
        yield UnmodelledCall("barriers of slices of a 3D image, which maintenance9 allows")
    if image.concurrent:
        yield SharedResource(image.id)
    else:
        yield from kept_contents.of_image(objects, call.args["device"], image.id, info)


@call("vkGetImageMemoryRequirements", "vkGetImageMemoryRequirements2")
def image_memory_requirements(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Remembers the memory size of an image, or of a plane."""
    info, answer = call.args.get("pInfo"), call.args["pMemoryRequirements"]
    image = objects.image(call.args["image"] if info is None else info["image"])
    if image is not None and answer:
        plane = chained(info, VkStructureType.IMAGE_PLANE_MEMORY_REQUIREMENTS_INFO)
        requirements = answer.get("memoryRequirements", answer)
        if plane is not None:
            image.plane_bytes[plane["planeAspect"]] = requirements["size"]
            return ()
        image.bytes = requirements["size"]
        if image.id in objects.sparse.resources:
            objects.sparse.resources[image.id].block_bytes = max(1, requirements["alignment"])
    return ()


@call("vkGetDeviceImageMemoryRequirements")
def requirements_of_an_image_to_be(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Remembers the memory size of images that are created so, or of a plane of them."""
    info, answer = call.args["pInfo"], call.args["pMemoryRequirements"]
    if info["pCreateInfo"] and answer:
        plane = info["planeAspect"] if info["pCreateInfo"]["flags"] & VkImageCreate.DISJOINT else 0
        objects.aliasing.told[f"{plane} {info['pCreateInfo']}"] = answer["memoryRequirements"]["size"]
    return ()


def _told(objects: ObjectState, image: Image, info: dict[str, Any]) -> None:
    """Gives an image the sizes that were told of such ones."""
    told = objects.aliasing.told
    if len(told):
        image.bytes = told.get(f"0 {info}") or 0
        planes = {aspect: told.get(f"{aspect} {info}") or 0 for aspect in image.aspects}
        image.plane_bytes = {aspect: size for aspect, size in planes.items() if size}


@call("vkBindBufferMemory", "vkBindImageMemory")
def bind_memory(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Binds one resource, which fixes its addresses."""
    args = call.args
    resource = args.get("buffer") or args.get("image") or 0
    _bind(objects, resource, args["memory"], args["memoryOffset"])
    if objects.groups is not None:
        yield from map(UnmodelledCall, objects.groups.bind(resource, args["memory"]))


@call("vkBindBufferMemory2", "vkBindImageMemory2")
def bind_memories(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Binds several resources, which fixes their addresses."""
    for info in call.args["pBindInfos"] or ():
        plane = chained(info, VkStructureType.BIND_IMAGE_PLANE_MEMORY_INFO)
        resource = info.get("buffer") or info.get("image") or 0
        _bind(objects, resource, info["memory"], info["memoryOffset"], plane["planeAspect"] if plane else 0)
        if objects.groups is not None:
            yield from map(UnmodelledCall, objects.groups.bind(resource, info["memory"], info))
        if chained(info, VkStructureType.BIND_IMAGE_MEMORY_SWAPCHAIN_INFO_KHR) is not None:
            yield UnmodelledCall("an image on the memory of a swapchain")


def _bind(objects: ObjectState, resource: int, memory: int, offset: int, plane: int = 0) -> None:
    bound = objects.buffer(resource) or objects.image(resource)
    if bound is not None:
        bound.memory, bound.offset = memory, offset
        objects.changed(resource)
        if objects.payloads.bound(resource, memory, offset, bound.info):
            return
        held = objects.get(Memory, memory)
        objects.aliasing.bind(bound, held.buffer_image_granularity if held is not None else 1, plane)
        objects.move()


@call("vkDestroyBuffer")
def destroy_buffer(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Removes a buffer. Its accesses no longer matter: memory that is used again starts afresh."""
    objects.aliasing.remove(call.args["buffer"])
    objects.sparse.remove(call.args["buffer"])
    objects.contents.memory.forget_space(call.args["buffer"])
    buffer = objects.remove(call.args["buffer"])
    if not isinstance(buffer, Buffer):
        return ()
    if buffer.memory is not None:
        objects.payloads.resource_destroyed(buffer.id, buffer.memory, buffer.offset)
    return (Destroyed(buffer.space, span=buffer.span(0, VK_WHOLE_SIZE), resource=buffer.id),)


@call("vkDestroyImage")
def destroy_image(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Removes an image with its address space."""
    objects.aliasing.remove(call.args["image"])
    objects.sparse.remove(call.args["image"])
    image = objects.remove(call.args["image"])
    if isinstance(image, Image) and image.memory is not None:
        objects.payloads.resource_destroyed(image.id, image.memory, image.offset)
    return (Destroyed(call.args["image"], resource=call.args["image"]),)


@call("vkCreateBufferView")
def create_buffer_view(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Adds a view of bytes."""
    info = call.args["pCreateInfo"]
    objects.add(BufferView(call.args["pView"], info["buffer"], info["offset"], info["range"]))
    return ()


@call("vkCreateImageView")
def create_image_view(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Adds a view of subresources, or of slices of a 3D image (specification: "Image Views", 2D views of 3D images)."""
    made_view(objects, call.args["pView"], call.args["pCreateInfo"])
    return ()


def made_view(objects: ObjectState, id: int, info: dict[str, Any]) -> None:
    """Adds the view that a VkImageViewCreateInfo says, by this id."""
    image = objects.image(info["image"])
    least = chained(info, VkStructureType.IMAGE_VIEW_MIN_LOD_CREATE_INFO_EXT)
    if least is not None:
        objects.shaders.samplers.forget()
    if image is not None:
        part = info["subresourceRange"]
        aspects, mips = part["aspectMask"], image.level_range(part["baseMipLevel"], part["levelCount"])
        is_deep = image.type == VkImageType.TYPE_3D and len(mips) > 0
        if is_deep and info["viewType"] in FLAT_VIEW_TYPES:
            view = _slices(image, id, info, mips, part["baseArrayLayer"], part["layerCount"])
        else:
            layers = image.layer_range(part["baseArrayLayer"], part["layerCount"])
            first = mips.start if least is None else min(max(mips.start, int(least["minLod"])), mips.stop)
            spans = image.subresources(aspects, first, mips.stop - first, layers.start, len(layers))
            view = ImageView(id, image.id, spans, aspects, mips, layers, False, info["flags"], first)
        some = chained(info, VkStructureType.IMAGE_VIEW_SLICED_CREATE_INFO_EXT)
        if is_deep and some is not None:
            view.stored = _slices(image, id, info, mips, some["sliceOffset"], some["sliceCount"])
        objects.add(view)


def _slices(image: Image, id: int, info: dict[str, Any], mips: range, first: int, count: int) -> ImageView:
    """A view of some slices of a 3D image."""
    aspects = info["subresourceRange"]["aspectMask"]
    width, height, depth = image.texels(image.aspects[0], mips.start)
    end = depth if count == VK_REMAINING_3D_SLICES_EXT else min(depth, first + count)
    layers = range(min(first, end), end)
    spans = image.region(aspects, mips.start, (0,), (0, 0, layers.start), (width, height, len(layers)))
    return ImageView(id, image.id, spans, aspects, mips, layers, True, info["flags"])


@call("vkCreateShaderModule")
def create_shader_module(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Keeps the SPIR-V."""
    objects.add(ShaderModule(call.args["pShaderModule"], call.args["pCreateInfo"]["pCode"]))
    return ()


_DESTROYERS = {
    "vkDestroyBufferView": "bufferView",
    "vkDestroyImageView": "imageView",
    "vkDestroyShaderModule": "shaderModule",
    "vkDestroyPipeline": "pipeline",
    "vkDestroyPipelineLayout": "pipelineLayout",
    "vkDestroyDescriptorSetLayout": "descriptorSetLayout",
}


@call(*_DESTROYERS)
def destroy_plain(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Removes an object without addresses. Commands that were recorded with it stay as they are."""
    for name in _DESTROYERS.values():
        if name in call.args:
            objects.remove(call.args[name])
    return ()
