"""Weaker forms of a dependency: without one of its structs, with fewer bits, with a smaller range.

Each form is legal: accesses that no stage supports any more go with the stage, and a mask that must not be 0 is
TOP_OF_PIPE or BOTTOM_OF_PIPE ("vkCmdPipelineBarrier", "VkSubpassDependency").
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vkharness.advising.written import BARRIER, EVENTS, RENDER_PASS, SUBMIT
from vkharness.mending.pieces import ACCESSES, WAITS, masks_in, with_supported
from vkharness.mending.scope_sites import Path
from vkharness.needed_scopes import ALL_QUEUES
from vkharness.spec.enums import VkAccess2, VkPipelineStage2
from vkharness.spec.first_form import first_form_accesses, first_form_stages
from vkharness.spec.scopes import ACCESS_KINDS, ENDS, bits, expand_accesses, expand_stages
from vkharness.spec.shapes import main_name
from vkharness.trace.barrier_calls import LISTS
from vkharness.trace.edits import value_at, with_value

FIRST_FORMS = ("vkCmdPipelineBarrier", "vkCmdWaitEvents", "vkCreateRenderPass", "vkCreateRenderPass2")
"""Calls whose stage masks are of the first form, where no second form is chained."""
END = {"srcStageMask": VkPipelineStage2.TOP_OF_PIPE, "dstStageMask": VkPipelineStage2.BOTTOM_OF_PIPE}
MEMORY = VkAccess2.MEMORY_READ | VkAccess2.MEMORY_WRITE
Args = dict[str, Any]


def may_be_left_out(kind: str, args: Args) -> bool:
    """Whether a whole call may be left out: it makes no layout transition and transfers no ownership."""
    if kind not in (BARRIER, EVENTS):
        return False
    infos = [args.get("pDependencyInfo"), *(args.get("pDependencyInfos") or ()), args]
    structs = [each for info in infos if info for list_ in LISTS for each in info.get(f"p{list_}Barriers") or ()]
    return not any(_changes_more(each) for each in structs)


def _changes_more(struct: Args) -> bool:
    """Whether a barrier does more than to order: a transition, a transfer, or what a chained struct adds."""
    moved = struct.get("srcQueueFamilyIndex") != struct.get("dstQueueFamilyIndex")
    return moved or struct.get("oldLayout") != struct.get("newLayout") or struct.get("pNext") is not None


def without_structs(kind: str, args: Args) -> Iterator[tuple[Path, Args]]:
    """(path of the struct, arguments without it) of each barrier or dependency of a call, the last one first. One of a
    barrier command is kept, and so are a subpass's dependencies on itself: they let barriers stand inside."""
    if kind == RENDER_PASS:
        holder: Path = ("pCreateInfo",)
        lists, least = [("pDependencies", "dependencyCount")], 0
    elif kind == BARRIER:
        holder = ("pDependencyInfo",) if "pDependencyInfo" in args else ()
        lists = [(f"p{each}Barriers", f"{each[0].lower()}{each[1:]}BarrierCount") for each in LISTS]
        least = 1
    else:
        return
    held = value_at(args, holder)
    total = sum(len(held.get(name) or ()) for name, _ in lists)
    for name, count in lists:
        several = held.get(name) or []
        for at in range(len(several) - 1, -1, -1):
            each = several[at]
            own = "srcSubpass" in each and each["srcSubpass"] == each["dstSubpass"]
            if total > least and not own and ("srcSubpass" in each or not _changes_more(each)):
                left = [*several[:at], *several[at + 1 :]]
                yield (*holder, name, at), with_value(args, holder, {**held, name: left or None, count: len(left)})


def narrower(name: str, kind: str, args: Args, path: Path, used: int) -> Iterator[Args]:
    """The arguments with less in the mask at a path: what it names of the stages that are `used` in place of
    ALL_COMMANDS and its like, then without half of it, without each quarter and so on to each bit."""
    mask = value_at(args, path)
    member = str(path[-2] if path[-1:] and isinstance(path[-1], int) else path[-1])
    first = (main_name(name) in FIRST_FORMS and "pNext" not in path) or member == WAITS
    stages = member.endswith("StageMask") or member == "stageMask"
    if stages:
        whole = expand_stages(mask, ALL_QUEUES) & used & ~ENDS
        concrete = first_form_stages(whole) if first else whole
    else:
        whole = _concrete_accesses(mask)
        fitted = value_at(with_supported(with_value(args, path, whole), _stage_path(args, path)), path)
        concrete = first_form_accesses(fitted) & ~MEMORY if first else fitted
    if concrete and concrete != mask and mask & ~concrete:
        yield _fitted(args, path, concrete, kind)
    for left in _less(mask):
        if (left or kind != SUBMIT) and (made := _fitted(args, path, left, kind)) != args:
            yield made


def _concrete_accesses(mask: int) -> int:
    """The accesses for which MEMORY_READ, SHADER_READ and their like stand, without these."""
    every = expand_accesses(mask)
    for kind in ACCESS_KINDS[1:]:
        if mask & (VkAccess2.MEMORY_WRITE if kind.write else VkAccess2.MEMORY_READ):
            every |= kind.access
    return sum(bit for bit in bits(every & ~MEMORY) if expand_accesses(bit) == bit)


def _stage_path(args: Args, path: Path) -> Path:
    member = str(path[-1]).replace("AccessMask", "StageMask")
    return (*path[:-1], member) if member in value_at(args, path[:-1]) else (member,)


def _less(mask: int) -> Iterator[int]:
    """A mask without half of its bits, without each quarter, and so on."""
    several = list(bits(mask))
    size = len(several)
    while size > 1:
        size = (size + 1) // 2
        for at in range(0, len(several), size):
            yield mask & ~sum(several[at : at + size])
    if len(several) == 1:
        yield 0


def _fitted(args: Args, path: Path, mask: int, kind: str) -> Args:
    """Arguments with another mask, and without the accesses that it does not support."""
    member = str(path[-1])
    holder = value_at(args, path[:-1])
    if not mask and member in END and kind != SUBMIT:
        mask = END[member]
    made = with_value(args, path, mask)
    if member in ACCESSES and isinstance(holder, dict):
        made = with_supported(made, path)
    return made  # type: ignore[no-any-return]


def mask_paths(name: str, kind: str, args: Args, matched: bool = False) -> list[Path]:
    """The masks of a call that may be narrower. Those of vkCmdWaitEvents2, and the first stages of vkCmdWaitEvents,
    have to be as where the events are set: they may be where all of these are known (`matched`) and change alike. A
    subpass's dependency on itself is what barriers inside need."""
    if main_name(name) == "vkCmdWaitEvents2" and not matched:
        return []
    paths = [path for path in masks_in(args, ()) if matched or path[-1] != "srcStageMask" or kind != EVENTS]
    if kind == RENDER_PASS:
        paths = [path for path in paths if "pDependencies" in path and not _is_own(args, path)]
    ends = {END["srcStageMask"], END["dstStageMask"], 0}
    return [path for path in paths if value_at(args, path) not in ends]


def _is_own(args: Args, path: Path) -> bool:
    each = value_at(args, path[:3])
    return bool(each["srcSubpass"] == each["dstSubpass"])
