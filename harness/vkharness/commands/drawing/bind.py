"""State that later commands read: pipelines, descriptor sets, push descriptors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vkharness.commands.drawing.bind_points import points_of
from vkharness.commands.drawing.descriptor_heaps import map_bindings
from vkharness.commands.drawing.descriptors import layout_of, write_descriptor
from vkharness.commands.handlers import command
from vkharness.commands.object_state import NOTHING, BoundSet, CommandBuffer, ObjectState
from vkharness.trace.effects import Effect
from vkharness.trace.group_effects import DeviceMask
from vkharness.trace.resources import DescriptorSet, Pipeline


@command("vkCmdSetDeviceMask")
def set_device_mask(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """The physical devices that execute what comes next, where there are several.

    Rule: rules.md#each-physical-device-executes-its-own-commands.
    """
    return NOTHING if objects.groups is None else (DeviceMask(args["deviceMask"]),)


@command("vkCmdBindPipeline")
def bind_pipeline(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Remembers the pipeline for its bind point."""
    pipeline = objects.get(Pipeline, args["pipeline"])
    if pipeline is not None:
        buffer.pipelines[args["pipelineBindPoint"]] = pipeline
        map_bindings(objects, buffer, args["pipelineBindPoint"], pipeline)
    return NOTHING


@command("vkCmdBindDescriptorSets")
def bind_descriptor_sets(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Binds descriptor sets to one bind point."""
    _bind_sets(objects, buffer, args["pipelineBindPoint"], args)
    return NOTHING


@command("vkCmdBindDescriptorSets2KHR")
def bind_descriptor_sets2(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Binds descriptor sets to every bind point that runs some of the stages."""
    info = args["pBindDescriptorSetsInfo"]
    for point in points_of(info["stageFlags"]):
        _bind_sets(objects, buffer, point, info)
    return NOTHING


def _bind_sets(objects: ObjectState, buffer: CommandBuffer, point: int, args: dict[str, Any]) -> None:
    bound = buffer.sets.setdefault(point, {})
    for index, each in bound_sets(objects, args):
        if each is None:
            bound.pop(index, None)
        else:
            bound[index] = each


def bound_sets(objects: ObjectState, args: dict[str, Any]) -> list[tuple[int, BoundSet | None]]:
    """By set index, what a command binds; None for a set that is not known. Dynamic offsets are consumed in the order
    of set, binding and array element."""
    offsets, taken = tuple(args["pDynamicOffsets"] or ()), 0
    found: list[tuple[int, BoundSet | None]] = []
    for index, id in enumerate(args["pDescriptorSets"] or (), args["firstSet"]):
        held = objects.get(DescriptorSet, id)
        if held is None:
            found.append((index, None))
            continue
        end = taken + len(held.layout.dynamic)
        found.append((index, BoundSet(held, offsets[taken:end])))
        taken = end
    return found


@command("vkCmdPushDescriptorSet")
def push_descriptor_set(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Pushes descriptors to one bind point."""
    _push_set(objects, buffer, args["pipelineBindPoint"], args)
    return NOTHING


@command("vkCmdPushDescriptorSet2KHR")
def push_descriptor_set2(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Pushes descriptors to every bind point that runs some of the stages."""
    info = args["pPushDescriptorSetInfo"]
    for point in points_of(info["stageFlags"]):
        _push_set(objects, buffer, point, info)
    return NOTHING


def _push_set(objects: ObjectState, buffer: CommandBuffer, point: int, args: dict[str, Any]) -> None:
    """Writes descriptors into the command buffer. Descriptors pushed to the same set before stay."""
    layout = layout_of(objects, args)
    index = args["set"]
    if layout is None or index >= len(layout.sets):
        return
    set_layout = layout.sets[index]
    if set_layout is None:
        return
    bound = buffer.sets.setdefault(point, {})
    before = bound.get(index)
    kept = before.set.slots if before is not None and before.set.id == 0 and before.set.layout is set_layout else {}
    pushed = DescriptorSet(0, set_layout, dict(kept))
    for write in args["pDescriptorWrites"] or ():
        write_descriptor(objects, pushed, write)
    bound[index] = BoundSet(pushed)
