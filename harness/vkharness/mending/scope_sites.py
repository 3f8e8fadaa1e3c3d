"""Scopes of dependencies as they stand in calls: where their masks are, and what becomes of them when they are widened.

A `ScopeSite` is one barrier of a command, one subpass dependency of a render pass, or the masks of vkCmdWaitEvents.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from vkharness.mending.needed_masks import joined_stages
from vkharness.needed_scopes import ALL_QUEUES, covers_destination_stages, covers_source_stages
from vkharness.spec.enums import VK_WHOLE_SIZE, VkStructureType
from vkharness.spec.scopes import access_scope, expand_accesses
from vkharness.spec.shapes import main_name
from vkharness.trace.barrier_calls import LISTS, Masks
from vkharness.trace.calls import Call
from vkharness.trace.chain import chained
from vkharness.trace.edits import value_at, with_value

Path = tuple[str | int, ...]
NAMES = ("srcStageMask", "srcAccessMask", "dstStageMask", "dstAccessMask")


@dataclass(frozen=True, slots=True)
class ScopeSite:
    """The masks of one dependency of a call, by the paths of the structs that hold them."""

    stages: Path
    """The struct with srcStageMask and dstStageMask."""
    accesses: Path | None
    """The struct with the access masks; None for the stage masks of a command alone."""
    second: bool
    """Whether the masks have 64 bits."""
    part: Path | None = None
    """The struct that names a buffer or an image, where one does."""

    def masks(self, args: dict[str, Any]) -> Masks:
        """As they are."""
        stages = value_at(args, self.stages)
        accesses = {} if self.accesses is None else value_at(args, self.accesses)
        src, dst = accesses.get("srcAccessMask", 0), accesses.get("dstAccessMask", 0)
        return Masks(stages["srcStageMask"], src, stages["dstStageMask"], dst)

    def with_masks(self, args: dict[str, Any], masks: Masks) -> dict[str, Any]:
        """Arguments in which the dependency has these masks."""
        made = self._with(args, self.stages, srcStageMask=masks.src_stages, dstStageMask=masks.dst_stages)
        if self.accesses is not None:
            made = self._with(made, self.accesses, srcAccessMask=masks.src_accesses, dstAccessMask=masks.dst_accesses)
        return made

    @staticmethod
    def _with(args: dict[str, Any], path: Path, **members: int) -> dict[str, Any]:
        made: dict[str, Any] = with_value(args, path, {**value_at(args, path), **members})
        return made

    def in_form(self, masks: Masks) -> Masks:
        """Masks in the form of the call."""
        return masks if self.second else masks.first_form

    def joined(self, args: dict[str, Any], more: Masks) -> Masks:
        """The masks with more bits, in the form of the call."""
        old, more = self.masks(args), self.in_form(more)
        accesses = more if self.accesses is not None else Masks()
        return Masks(
            joined_stages(old.src_stages, more.src_stages),
            old.src_accesses | accesses.src_accesses,
            joined_stages(old.dst_stages, more.dst_stages),
            old.dst_accesses | accesses.dst_accesses,
        )


def barrier_sites(call: Call) -> Iterator[ScopeSite]:
    """The dependencies of a pipeline barrier or of a wait for events."""
    name = main_name(call.name)
    if name in ("vkCmdPipelineBarrier", "vkCmdWaitEvents"):
        found = list(_listed(call.args, (), second=False))
        yield from found or [ScopeSite((), None, second=False)]
    elif name in ("vkCmdPipelineBarrier2", "vkCmdSetEvent2"):
        yield from _listed(call.args["pDependencyInfo"], ("pDependencyInfo",), second=True)
    elif name == "vkCmdWaitEvents2":
        for at, info in enumerate(call.args["pDependencyInfos"] or ()):
            yield from _listed(info, ("pDependencyInfos", at), second=True)


def _listed(holder: dict[str, Any], path: Path, second: bool) -> Iterator[ScopeSite]:
    for kind in LISTS:
        for at, _ in enumerate(holder.get(f"p{kind}Barriers") or ()):
            here = (*path, f"p{kind}Barriers", at)
            yield ScopeSite(here if second else path, here, second, None if kind == "Memory" else here)


def subpass_sites(call: Call) -> Iterator[tuple[int, int, ScopeSite]]:
    """(source, destination, masks) of each dependency of a vkCreateRenderPass or vkCreateRenderPass2."""
    for at, each in enumerate(call.args["pCreateInfo"]["pDependencies"] or ()):
        path: Path = ("pCreateInfo", "pDependencies", at)
        second = False
        if chained(each, VkStructureType.MEMORY_BARRIER_2) is not None:
            second, link = True, each["pNext"]
            path = (*path, "pNext")
            while link["sType"] != VkStructureType.MEMORY_BARRIER_2:
                path, link = (*path, "pNext"), link["pNext"]
        yield each["srcSubpass"], each["dstSubpass"], ScopeSite(path, path, second)


def covers_source(masks: Masks, wanted: Masks) -> bool:
    """Whether a first scope holds what another one names."""
    return covers_source_stages(masks, wanted) and _has(masks.src_stages, masks.src_accesses, wanted.src_accesses)


def covers_destination(masks: Masks, wanted: Masks) -> bool:
    """Whether a second scope holds what another one names."""
    return covers_destination_stages(masks, wanted) and _has(masks.dst_stages, masks.dst_accesses, wanted.dst_accesses)


def _has(stages: int, accesses: int, wanted: int) -> bool:
    if not wanted:
        return True
    every = access_scope(stages, wanted, ALL_QUEUES)
    return bool(every) and not every & ~access_scope(stages, expand_accesses(accesses), ALL_QUEUES)


def widened_part(args: dict[str, Any], path: Path, offset: int, size: int) -> dict[str, Any]:
    """Arguments in which a buffer barrier covers more bytes."""
    part = value_at(args, path)
    begin = min(part["offset"], offset)
    end = offset + size
    if part["size"] == VK_WHOLE_SIZE:
        made = {**part, "offset": begin}
    else:
        made = {**part, "offset": begin, "size": max(end, part["offset"] + part["size"]) - begin}
    widened: dict[str, Any] = with_value(args, path, made)
    return widened
