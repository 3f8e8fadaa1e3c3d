"""Dependencies that part a finding from others: what else is wrong with a small stream is put right.

Some findings cannot be left out, since they are between commands that the wanted one needs. A full barrier before the
later command of such a finding mends it, or a dependency of the render pass. Where that mends the wanted finding, too,
a barrier that waits for the earlier access alone may do. The barrier gets the number of a call that was left out, or
else a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from vkharness.reduction.oracle import Identity
from vkharness.reduction.structure import Structure
from vkharness.spec.enums import VK_WHOLE_SIZE, VkAccess2, VkPipelineStage2, VkStructureType
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.spec.shapes import main_name
from vkharness.trace.barrier_calls import BarrierCommand, BarrierEntry, BufferPart, Masks, form_of, full_barrier
from vkharness.trace.calls import Block, Call
from vkharness.trace.effects import EXTERNAL

_OF_NO_COMMAND = 1 << 64
"""Stages from here on are ours: layout transitions, the presentation engine."""
_EVERYTHING = VkAccess2.MEMORY_READ | VkAccess2.MEMORY_WRITE


def with_barriers(blocks: Sequence[Block], calls: Sequence[int]) -> Iterator[list[Block]]:
    """The stream with a full barrier before one of these commands, or before the render pass instance that it is in."""
    structure = Structure(blocks)
    for call in dict.fromkeys(calls):
        if call in structure.recording_of:
            yield _with_barrier(blocks, structure, call, full_barrier(0, 0))


def with_narrow_barriers(blocks: Sequence[Block], others: Iterable[Identity]) -> Iterator[list[Block]]:
    """The stream with a barrier before the later command of one of these findings that waits for its earlier access
    alone, limited to the resource where that is a buffer."""
    structure = Structure(blocks)
    buffers = {block.args["pBuffer"] for block in blocks if isinstance(block, Call) and block.name == "vkCreateBuffer"}
    for _, _, prior_access, call, _, resource in sorted(others):
        kind = ACCESS_KIND.get(prior_access)
        if kind is not None and 0 < kind.stage < _OF_NO_COMMAND and call in structure.recording_of:
            masks = Masks(kind.stage, kind.access, VkPipelineStage2.ALL_COMMANDS, _EVERYTHING)
            part = BufferPart(resource, 0, VK_WHOLE_SIZE) if resource in buffers else None
            barrier = BarrierCommand(0, (BarrierEntry(masks, part),)).call(form_of(blocks))
            yield _with_barrier(blocks, structure, call, barrier)


def _with_barrier(blocks: Sequence[Block], structure: Structure, call: int, barrier: Call) -> list[Block]:
    """The stream with a barrier before a command, or before the render pass instance that it is in."""
    buffer = structure.recordings[structure.recording_of[call]].buffer
    before = structure.instance_of(call)
    free = before - 1 > structure.order[structure.order.index(before) - 1]
    index = before - 1 if free else max(structure.order) + 1
    made = replace(barrier, index=index, args={**barrier.args, "commandBuffer": buffer})
    position = _position(blocks, before)
    return [*blocks[:position], made, *blocks[position:]]


def _position(blocks: Sequence[Block], index: int) -> int:
    return next(at for at, block in enumerate(blocks) if block.index == index)


def with_subpass_dependencies(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """The stream with one more dependency in one render pass, between two of its subpasses or with commands outside."""
    for at, block in enumerate(blocks):
        if isinstance(block, Call) and block.name.startswith("vkCreateRenderPass"):
            info = block.args["pCreateInfo"]
            inside = range(len(info["pSubpasses"] or ()))
            pairs = [(EXTERNAL, each) for each in inside] + [(each, EXTERNAL) for each in inside]
            for source, target in pairs + [(one, other) for one in inside for other in inside if one < other]:
                dependencies = [*(info["pDependencies"] or ()), _dependency(source, target, _is_2(block))]
                more = {**info, "pDependencies": dependencies, "dependencyCount": len(dependencies)}
                yield [*blocks[:at], replace(block, args={**block.args, "pCreateInfo": more}), *blocks[at + 1 :]]


def _is_2(call: Call) -> bool:
    return main_name(call.name) == "vkCreateRenderPass2"


def _dependency(source: int, target: int, second_form: bool) -> dict[str, Any]:
    """VkSubpassDependency(2) from everything that draws to everything that draws."""
    made: dict[str, Any] = {
        "srcSubpass": source % (1 << 32),
        "dstSubpass": target % (1 << 32),
        "srcStageMask": VkPipelineStage2.ALL_GRAPHICS,
        "dstStageMask": VkPipelineStage2.ALL_GRAPHICS,
        "srcAccessMask": _EVERYTHING,
        "dstAccessMask": _EVERYTHING,
        "dependencyFlags": 0,
    }
    if second_form:
        made |= {"sType": VkStructureType.SUBPASS_DEPENDENCY_2, "pNext": None, "viewOffset": 0}
    return made
