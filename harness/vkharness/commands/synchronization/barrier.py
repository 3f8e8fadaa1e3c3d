"""Pipeline barriers of both forms (specification: "Pipeline Barriers"; rules.md#barrier)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from vkharness.commands.flat_reaches import FlatPart, Writes, moved_plan
from vkharness.commands.handlers import command
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED, VkDependency, VkStructureType
from vkharness.trace.chain import chained
from vkharness.trace.effects import FAMILIES_OUTSIDE, Barrier, Dependency, Effect, EffectPlan, RangeBarrier, Unmodelled
from vkharness.trace.resources import Buffer, Image


@command("vkCmdPipelineBarrier", by_arguments=True)
def pipeline_barrier(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """A barrier with one pair of stage masks. Its execution dependency holds whatever barriers are given."""
    src, dst = args["srcStageMask"], args["dstStageMask"]
    key = _key(objects, args, (src, dst))
    plan = None if key is None else objects.plans.get(key)
    if plan is not None:
        return plan
    made = (_in_views(buffer, args, make_barrier(objects, args, lambda _: (src, dst), execution=(src, dst))),)
    return made if key is None else objects.plans.keep(key, made)


@command("vkCmdPipelineBarrier2", by_arguments=True)
def pipeline_barrier2(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """A barrier with stage masks in each dependency. Each execution dependency covers every resource."""
    info = args["pDependencyInfo"]
    key = None if info.get("pNext") else _key(objects, info, None)
    plan = None if key is None else objects.plans.get(key)
    if plan is not None:
        return plan
    barrier = _in_views(buffer, info, dependency_info(objects, info))
    made: tuple[Effect, ...] = (barrier, *unknown_ranges(objects, info))
    return made if key is None else objects.plans.keep(key, made)


BARRIERS = {"vkCmdPipelineBarrier": "", "vkCmdPipelineBarrier2": "pDependencyInfo"}
"""Commands whose barriers of one range of a buffer differ in that alone, and the argument with the list of them."""
RANGE = ("offset", "size")
"""The members that say which range it is."""


def learn_barrier(objects: ObjectState, said: Any, plan: EffectPlan) -> bool:
    """Lets the native core know what barriers do that say the same as `said`, which has this plan, but for the range of
    their only buffer. Whether it knows that now."""
    effects, info = plan.effects, BARRIERS[said.name]
    given = (said.args[info] if info else said.args)["pBufferMemoryBarriers"] or []
    if objects.plans.flat is None or len(given) != 1 or len(effects) != 1 or not isinstance(effects[0], Barrier):
        return False
    barrier, buffer = effects[0], objects.buffer(given[0]["buffer"])
    if buffer is None or any(each.transition or each.aliases or not each.spans for each in barrier.ranges):
        return False
    if any(each.src_family != each.dst_family for each in barrier.ranges):
        return False
    offset, size = (given[0][each] for each in RANGE)
    begin, limit = buffer.offset + offset, buffer.offset + buffer.size
    parts: list[FlatPart] = []
    words: list[tuple[int, ...]] = []
    for at, each in enumerate(barrier.ranges):
        first, last = each.spans[0][0], each.spans[-1]
        like = replace(barrier, ranges=(replace(each, space=0, spans=(), resource=0),))
        is_moving = each.space == buffer.space
        bytes = ((0, 1),) if is_moving else tuple([(low - first, high - first) for low, high in each.spans])
        parts.append((like, at, Writes.ORDERS, bytes))
        words.append((each.resource, each.space, first, last[1] - first - 1 if is_moving else 0))
    moving = [at for at, each in enumerate(barrier.ranges) if each.space == buffer.space]
    if not size or len(moving) != 1 or barrier.ranges[moving[0]].spans != ((begin, begin + size),):
        return False
    at = moving[0]
    ranges = (offset, 0, limit), (size, 1, limit)
    moved = moved_plan(parts, tuple(words), ranges, ((at, 0, 1, 1), (at, 1, 0, 1)), ((at, limit),))
    learned: bool = moved is not None and objects.plans.flat.learn(said, objects.changes, moved)
    return learned


def follow_from_arguments(objects: ObjectState, infos: Iterable[dict[str, Any]]) -> bool:
    """Whether the barriers of VkDependencyInfo structs, or of a command with such lists, follow from what these say and
    from the resources that they name."""
    return all(not each.get("pNext") and _key(objects, {"dependencyFlags": 0, **each}, (0, 0)) for each in infos)


def _key(objects: ObjectState, lists: dict[str, Any], stages: tuple[int, int] | None) -> tuple[Any, ...] | None:
    """All that decides what a barrier does, so that an equal one has its plan. None where more decides it: the views of
    the subpass, or who has memory from outside. `stages` are those of the command, if it has them."""
    flags = lists["dependencyFlags"]
    if flags & VkDependency.VIEW_LOCAL:
        return None
    key: list[Any] = ["barrier", flags, stages]
    for name in ("pMemoryBarriers", "pBufferMemoryBarriers", "pImageMemoryBarriers"):
        key.append(name)
        for each in lists[name] or ():
            if stages is None:
                key += (each["srcStageMask"], each["dstStageMask"])
            key += (each["srcAccessMask"], each["dstAccessMask"])
            if name == "pMemoryBarriers":
                continue
            families = _named_families(each)
            if families[0] in FAMILIES_OUTSIDE or families[1] in FAMILIES_OUTSIDE:
                return None
            key += families
            part = _buffer_part(objects, each) if name == "pBufferMemoryBarriers" else _image_part(objects, each)
            if part is None:
                return None
            key += part
    return tuple(key)


def _buffer_part(objects: ObjectState, barrier: dict[str, Any]) -> tuple[Any, ...] | None:
    """Values that decide the range of a buffer barrier (neither masks nor families); None for an unknown buffer."""
    held = objects.buffer(barrier["buffer"])
    if held is None:
        return None
    return (held.id, held.space, held.offset, held.size, held.concurrent, barrier["offset"], barrier["size"])


def _image_part(objects: ObjectState, barrier: dict[str, Any]) -> tuple[Any, ...] | None:
    """Values that decide the range of an image barrier and its layout transition; None for an unknown image."""
    held, part = objects.image(barrier["image"]), barrier["subresourceRange"]
    if held is None:
        return None
    levels = (part["baseMipLevel"], part["levelCount"], part["baseArrayLayer"], part["layerCount"])
    return (*held.facts, barrier["oldLayout"], barrier["newLayout"], part["aspectMask"], *levels)


def _in_views(buffer: CommandBuffer, info: dict[str, Any], barrier: Barrier) -> Barrier:
    """A view-local barrier holds inside each view of the subpass around it. Of a secondary whose subpass is not known,
    the flag says that there are several.

    Rule: rules.md#view-local-dependencies-order-views.
    """
    if not info["dependencyFlags"] & VkDependency.VIEW_LOCAL:
        return barrier
    inside = buffer.rendering
    several = inside.view_mask.bit_count() > 1 if inside is not None else buffer.inheritance is not None
    return replace(barrier, by_view=True) if several else barrier


def dependency_info(objects: ObjectState, info: dict[str, Any]) -> Barrier:
    """A VkDependencyInfo as one barrier."""
    return make_barrier(objects, info, _own_stages)


def _memory_ranges(info: dict[str, Any]) -> list[dict[str, Any]]:
    """The barriers of ranges of device addresses that are chained to a VkDependencyInfo."""
    chain = chained(info, VkStructureType.MEMORY_RANGE_BARRIERS_INFO_KHR) or {}
    return chain.get("pMemoryRangeBarriers") or []


def unknown_ranges(objects: ObjectState, info: dict[str, Any]) -> tuple[Unmodelled, ...]:
    """Names the barriers of addresses that lead to no buffer: what they cover is not known."""
    places = (each["addressRange"] for each in _memory_ranges(info))
    lost = any(objects.addresses.find(each["address"], each["size"]) is None for each in places)
    return (Unmodelled("a barrier of device addresses of no known buffer"),) * lost


def _own_stages(barrier: dict[str, Any]) -> tuple[int, int]:
    return (barrier["srcStageMask"], barrier["dstStageMask"])


def make_barrier(
    objects: ObjectState, lists: dict[str, Any], stages: Any, execution: tuple[int, int] | None = None
) -> Barrier:
    """A barrier from the three lists of the API. `stages` gives the (source, destination) masks of one list entry.

    `execution` is the pair of the command, if it has one. Otherwise each list entry is an execution dependency of
    everything. A transfer of ownership is none: one of its scopes does not apply (`RangeBarrier.all_stages` apart).
    """
    flags = lists.get("dependencyFlags", 0)
    all_stages = bool(flags & VkDependency.QUEUE_FAMILY_OWNERSHIP_TRANSFER_USE_ALL_STAGES_KHR)
    everything: dict[Dependency, None] = {}
    for each in lists["pMemoryBarriers"] or ():
        everything[_dependency(stages(each), each)] = None
    if execution is not None:
        everything[Dependency(execution[0], 0, execution[1], 0)] = None
    ranges: list[RangeBarrier] = []
    several = (
        (lists["pBufferMemoryBarriers"], _buffer_barrier),
        (lists["pImageMemoryBarriers"], _image_barrier),
        (_memory_ranges(lists), _memory_range_barrier),
    )
    for given, make in several:
        for each in given or ():
            dependency = _dependency(stages(each), each)
            made = list(make(objects, dependency, each))
            made = [_traced(objects, part) for part in made]
            ranges += [replace(part, all_stages=True) for part in made] if all_stages else made
            if execution is None and (all_stages or all(part.src_family == part.dst_family for part in made)):
                everything[Dependency(dependency.src_stages, 0, dependency.dst_stages, 0)] = None
    return Barrier(
        tuple(everything),
        ranges=tuple(ranges),
        by_region=bool(flags & VkDependency.BY_REGION),
        asymmetric=bool(flags & VkDependency.ASYMMETRIC_EVENT_KHR),
        device_group=bool(flags & VkDependency.DEVICE_GROUP),
    )


def _dependency(stages: tuple[int, int], barrier: dict[str, Any]) -> Dependency:
    return Dependency(stages[0], barrier["srcAccessMask"], stages[1], barrier["dstAccessMask"])


def _buffer_barrier(objects: ObjectState, dependency: Dependency, barrier: dict[str, Any]) -> Iterable[RangeBarrier]:
    buffer = objects.buffer(barrier["buffer"])
    if buffer is None:
        return ()
    span = buffer.span(barrier["offset"], barrier["size"])
    src, dst = _families(barrier, buffer)
    return (RangeBarrier(dependency, buffer.space, (span,), buffer.id, src_family=src, dst_family=dst),)


def _memory_range_barrier(
    objects: ObjectState, dependency: Dependency, barrier: dict[str, Any]
) -> Iterable[RangeBarrier]:
    """A barrier of device addresses: that of the buffer that has them. It may transfer the range, if the buffer is
    exclusive."""
    place = barrier["addressRange"]
    found = objects.addresses.find(place["address"], place["size"])
    if found is None:
        return ()  # `unknown_ranges` names it
    named = {"buffer": found[0].id, "offset": found[1], "size": place["size"]}
    return _buffer_barrier(objects, dependency, barrier | named)


def _image_barrier(objects: ObjectState, dependency: Dependency, barrier: dict[str, Any]) -> Iterable[RangeBarrier]:
    image = objects.image(barrier["image"])
    if image is not None:
        part = barrier["subresourceRange"]
        spans = image.barrier_spans(
            part["aspectMask"], part["baseMipLevel"], part["levelCount"], part["baseArrayLayer"], part["layerCount"]
        )
        old, new = barrier["oldLayout"], barrier["newLayout"]
        src, dst = _families(barrier, image)
        yield RangeBarrier(
            dependency,
            image.id,
            spans,
            image.id,
            transition=old != new,
            old_layout=old,
            new_layout=new,
            src_family=src,
            dst_family=dst,
        )


def _traced(objects: ObjectState, part: RangeBarrier) -> RangeBarrier:
    """With a note if it is half of a transfer between objects of the trace that have their memory in common."""
    if part.src_family not in FAMILIES_OUTSIDE and part.dst_family not in FAMILIES_OUTSIDE:
        return part
    resource = objects.buffer(part.resource) or objects.image(part.resource)
    memory = 0 if resource is None else resource.memory or 0
    shared = objects.payloads.is_shared_here(memory) and not objects.payloads.is_outside(memory)
    return replace(part, is_traced=True) if shared else part


def _families(barrier: dict[str, Any], resource: Buffer | Image) -> tuple[int, int]:
    """The families of an ownership transfer.

    Equal families transfer nothing (VkBufferMemoryBarrier). A resource that all families share is only transferred from
    and to external families.
    """
    src, dst = _named_families(barrier)
    if src == dst:
        return (VK_QUEUE_FAMILY_IGNORED, VK_QUEUE_FAMILY_IGNORED)
    inside = src not in FAMILIES_OUTSIDE and dst not in FAMILIES_OUTSIDE
    if inside and (resource.concurrent or VK_QUEUE_FAMILY_IGNORED in (src, dst)):
        return (VK_QUEUE_FAMILY_IGNORED, VK_QUEUE_FAMILY_IGNORED)
    return (src, dst)


def _named_families(barrier: dict[str, Any]) -> tuple[int, int]:
    src = barrier.get("srcQueueFamilyIndex", VK_QUEUE_FAMILY_IGNORED) & VK_QUEUE_FAMILY_IGNORED
    dst = barrier.get("dstQueueFamilyIndex", VK_QUEUE_FAMILY_IGNORED) & VK_QUEUE_FAMILY_IGNORED
    return (src, dst)
