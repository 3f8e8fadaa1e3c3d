"""Descriptor set layouts, pools and sets, and the descriptors written into sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from vkharness.commands.handlers import call
from vkharness.commands.object_state import ObjectState
from vkharness.spec.enums import VkDescriptorSetLayoutCreate, VkDescriptorType, VkStructureType
from vkharness.trace.calls import Call
from vkharness.trace.chain import chained
from vkharness.trace.effects import StreamEvent
from vkharness.trace.resources import (
    DYNAMIC_TYPES,
    Binding,
    Buffer,
    BufferView,
    Descriptor,
    DescriptorSet,
    Image,
    ImageView,
    PipelineLayout,
    SetLayout,
)
from vkharness.trace.work_budget import spend

IMAGE_TYPES = (
    VkDescriptorType.COMBINED_IMAGE_SAMPLER,
    VkDescriptorType.SAMPLED_IMAGE,
    VkDescriptorType.STORAGE_IMAGE,
    VkDescriptorType.INPUT_ATTACHMENT,
    VkDescriptorType.SAMPLE_WEIGHT_IMAGE_QCOM,
    VkDescriptorType.BLOCK_MATCH_IMAGE_QCOM,
)
BUFFER_TYPES = (VkDescriptorType.UNIFORM_BUFFER, VkDescriptorType.STORAGE_BUFFER, *DYNAMIC_TYPES)
TEXEL_TYPES = (VkDescriptorType.UNIFORM_TEXEL_BUFFER, VkDescriptorType.STORAGE_TEXEL_BUFFER)
NO_MEMORY_TYPES = (VkDescriptorType.SAMPLER, VkDescriptorType.INLINE_UNIFORM_BLOCK, VkDescriptorType.MUTABLE_EXT)
"""The types of descriptors that refer to no memory, or that no descriptor has."""
UNFOLLOWED_TYPES = (
    VkDescriptorType.ACCELERATION_STRUCTURE_NV,
    VkDescriptorType.TENSOR_ARM,
    VkDescriptorType.PARTITIONED_ACCELERATION_STRUCTURE_NV,
)
"""The types of descriptors of which nobody here knows what they refer to: a shader that uses one is not modelled."""
MOST_UNFOLLOWED = 4096
"""The most descriptors of such a type that one write gives."""
UNKNOWN = -1
"""The type of a descriptor in memory of which nobody knows what it is."""


@call("vkCreateDescriptorSetLayout")
def create_set_layout(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Keeps the bindings by number."""
    info = call.args["pCreateInfo"]
    extra = chained(info, VkStructureType.DESCRIPTOR_SET_LAYOUT_BINDING_FLAGS_CREATE_INFO)
    flags = (extra or {}).get("pBindingFlags") or []
    mutable = (chained(info, VkStructureType.MUTABLE_DESCRIPTOR_TYPE_CREATE_INFO_EXT) or {}).get(
        "pMutableDescriptorTypeLists"
    ) or []
    bindings = {
        each["binding"]: Binding(
            each["binding"],
            each["descriptorType"],
            each["descriptorCount"],
            flags[at] if at < len(flags) else 0,
            tuple(mutable[at]["pDescriptorTypes"] or ()) if at < len(mutable) else (),
        )
        for at, each in enumerate(info["pBindings"] or ())
    }
    objects.add(
        SetLayout(call.args["pSetLayout"], bindings, bool(info["flags"] & VkDescriptorSetLayoutCreate.PUSH_DESCRIPTOR))
    )
    return ()


@call("vkCreatePipelineLayout")
def create_pipeline_layout(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Keeps the set layouts in order."""
    objects.add(made_layout(objects, call.args["pPipelineLayout"], call.args["pCreateInfo"]))
    return ()


def made_layout(objects: ObjectState, id: int, info: dict[str, Any]) -> PipelineLayout:
    """The layout of a VkPipelineLayoutCreateInfo."""
    return PipelineLayout(id, tuple(objects.get(SetLayout, each) for each in info["pSetLayouts"] or ()))


def layout_of(objects: ObjectState, info: dict[str, Any]) -> PipelineLayout | None:
    """The layout that a command names, or describes in its chain (dynamicPipelineLayout); None for an unknown one."""
    described = None if info["layout"] else chained(info, VkStructureType.PIPELINE_LAYOUT_CREATE_INFO)
    return objects.get(PipelineLayout, info["layout"]) if described is None else made_layout(objects, 0, described)


@call("vkAllocateDescriptorSets")
def allocate_sets(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Adds new, empty sets."""
    info = call.args["pAllocateInfo"]
    members = objects.children.setdefault(info["descriptorPool"], set())
    for id, layout_id in zip(call.args["pDescriptorSets"] or (), info["pSetLayouts"] or (), strict=False):
        layout = objects.get(SetLayout, layout_id)
        if layout is not None:
            objects.add(DescriptorSet(id, layout))
            members.add(id)
    return ()


@call("vkFreeDescriptorSets")
def free_sets(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Removes sets."""
    members = objects.children.get(call.args["descriptorPool"], set())
    for id in call.args["pDescriptorSets"] or ():
        objects.remove(id)
        members.discard(id)
    return ()


@call("vkResetDescriptorPool", "vkDestroyDescriptorPool")
def empty_pool(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Removes all sets of a pool that is reset or destroyed."""
    for id in objects.children.pop(call.args["descriptorPool"], ()):
        objects.remove(id)
    return ()


@call("vkUpdateDescriptorSets")
def update_sets(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Applies writes and then copies, in the order that the specification gives ("vkUpdateDescriptorSets")."""
    for write in call.args["pDescriptorWrites"] or ():
        target = objects.get(DescriptorSet, write["dstSet"])
        if target is not None:
            write_descriptor(objects, target, write)
    for copy in call.args["pDescriptorCopies"] or ():
        _copy(objects, copy)
    return ()


def _copy(objects: ObjectState, copy: dict[str, Any]) -> None:
    source = objects.get(DescriptorSet, copy["srcSet"])
    target = objects.get(DescriptorSet, copy["dstSet"])
    if source is None or target is None:
        return
    count = copy["descriptorCount"]
    spend(min(count, sum(each.count for each in source.layout.bindings.values())), "descriptors to copy")
    read = elements(source.layout, copy["srcBinding"], copy["srcArrayElement"], count)
    target.contents = None
    for origin, place in zip(
        read, elements(target.layout, copy["dstBinding"], copy["dstArrayElement"], count), strict=False
    ):
        held = source.slots.get(origin)
        if held is not None:
            target.slots[place] = held


def elements(layout: SetLayout, binding: int, element: int, count: int) -> Iterator[tuple[int, int]]:
    """`count` consecutive (binding, element) pairs. The next binding follows after the end of a binding."""
    for number in sorted(each for each in layout.bindings if each >= binding):
        first = element if number == binding else 0
        chosen = range(first, min(layout.bindings[number].count, first + count))
        for each in chosen:
            yield (number, each)
        count -= len(chosen)


def write_descriptor(objects: ObjectState, target: DescriptorSet, write: dict[str, Any]) -> None:
    """Applies one VkWriteDescriptorSet."""
    target.contents = None
    kind, count = write["descriptorType"], write["descriptorCount"]
    binding, element = write["dstBinding"], write["dstArrayElement"]
    held = target.layout.bindings.get(binding)
    places: Iterable[tuple[int, int]]
    if count == 1 and held is not None and element < held.count:
        places = ((binding, element),)
    else:
        places = elements(target.layout, binding, element, count)
    if kind in IMAGE_TYPES:
        found = [Descriptor(kind, each["imageView"]) for each in write["pImageInfo"] or ()]
        objects.note_missing(ImageView, (each.resource for each in found))
    elif kind in BUFFER_TYPES:
        found = [Descriptor(kind, each["buffer"], each["offset"], each["range"]) for each in write["pBufferInfo"] or ()]
        objects.note_missing(Buffer, (each.resource for each in found))
    elif kind in TEXEL_TYPES:
        found = [Descriptor(kind, each) for each in write["pTexelBufferView"] or ()]
        objects.note_missing(BufferView, (each.resource for each in found))
    elif kind == VkDescriptorType.ACCELERATION_STRUCTURE_KHR:
        listed = chained(write, VkStructureType.WRITE_DESCRIPTOR_SET_ACCELERATION_STRUCTURE_KHR) or {}
        found = [Descriptor(kind, each) for each in listed.get("pAccelerationStructures") or ()]
    elif kind in UNFOLLOWED_TYPES:
        found = [Descriptor(kind, 0)] * min(count, MOST_UNFOLLOWED)
    else:
        found = []
    for place, descriptor in zip(places, found, strict=False):
        target.slots[place] = descriptor


def viewed(objects: ObjectState, held: Descriptor) -> tuple[Image, ImageView] | None:
    """The image of a descriptor, and the view as descriptors of its type see it; None where they are not known."""
    view = objects.get(ImageView, held.resource)
    image = None if view is None else objects.image(view.image)
    if view is None or image is None:
        return None
    return image, view.stored if view.stored is not None and held.type == VkDescriptorType.STORAGE_IMAGE else view
