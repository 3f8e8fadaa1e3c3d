"""The vertices of draws: which there are, from indices and parameters in buffers, and what their attributes hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from vkharness.computed.draw_state import ExecutedDrawState, FixedState, VertexPlace
from vkharness.computed.followed_transfers import KnownContents
from vkharness.computed.texel_values import texel_value
from vkharness.findings import UserError
from vkharness.shader.execution.stage_invocations import Bits, StageSlot
from vkharness.spec.enums import VkImageAspect, VkIndexType
from vkharness.spec.formats import format_of
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Call

MOST_VERTICES = 1 << 12
"""Of one command, for all instances together."""
INDEX_BYTES = {VkIndexType.UINT16: 2, VkIndexType.UINT32: 4, VkIndexType.UINT8: 1}
SIGN = 1 << 31


class Draw(NamedTuple):
    """Vertices and instances; for indexed draws `first` counts indices, and `base` is added to each."""

    first: int
    vertices: int
    first_instance: int
    instances: int
    base: int = 0


def draws_of(contents: KnownContents, call: Call) -> tuple[list[Draw], bool]:
    """The draws of a command, and whether they are indexed. Raises `UserError` where they are not known."""
    name, args = main_name(call.name), call.args
    indexed = "Indexed" in name
    if name in ("vkCmdDraw", "vkCmdDrawIndexed"):
        found = [_direct(args, indexed)]
    elif name in ("vkCmdDrawIndirect", "vkCmdDrawIndexedIndirect"):
        found = list(_indirect(contents, args, args["drawCount"], indexed))
    elif name in ("vkCmdDrawIndirectCount", "vkCmdDrawIndexedIndirectCount"):
        count = _known(contents.word(args["countBuffer"], args["countBufferOffset"]))
        found = list(_indirect(contents, args, min(count, args["maxDrawCount"]), indexed))
    elif name in ("vkCmdDrawMultiEXT", "vkCmdDrawMultiIndexedEXT"):
        found = list(_several(args, indexed))
    elif name == "vkCmdDrawIndirectByteCountEXT":
        counted = _known(contents.word(args["counterBuffer"], args["counterBufferOffset"])) - args["counterOffset"]
        vertices = max(0, counted) // args["vertexStride"]
        found = [Draw(0, vertices, args["firstInstance"], args["instanceCount"])]
    else:
        raise UserError("a draw of this sort is not followed")
    if sum(each.vertices * each.instances for each in found) > MOST_VERTICES:
        raise UserError(f"more than {MOST_VERTICES} vertices are not followed")
    return found, indexed


def _direct(args: Mapping[str, Any], indexed: bool) -> Draw:
    instances = args["firstInstance"], args["instanceCount"]
    if indexed:
        return Draw(args["firstIndex"], args["indexCount"], *instances, args["vertexOffset"])
    return Draw(args["firstVertex"], args["vertexCount"], *instances)


def _several(args: Mapping[str, Any], indexed: bool) -> Iterator[Draw]:
    instances = args["firstInstance"], args["instanceCount"]
    if not indexed:
        for each in args["pVertexInfo"] or ():
            yield Draw(each["firstVertex"], each["vertexCount"], *instances)
        return
    for each in args["pIndexInfo"] or ():
        given = args["pVertexOffset"]
        base = each["vertexOffset"] if given is None else given[0] if isinstance(given, list | tuple) else given
        yield Draw(each["firstIndex"], each["indexCount"], *instances, base)


def _indirect(contents: KnownContents, args: Mapping[str, Any], count: int, indexed: bool) -> Iterator[Draw]:
    if count > MOST_VERTICES:
        raise UserError(f"more than {MOST_VERTICES} draws are not followed")
    for at in range(count):
        place = args["offset"] + at * args["stride"]
        words = [_known(contents.word(args["buffer"], place + 4 * word)) for word in range(4 + indexed)]
        if indexed:
            number, instances, first, base, first_instance = words
            yield Draw(first, number, first_instance, instances, base - 2 * SIGN if base & SIGN else base)
        else:
            yield Draw(words[2], words[0], words[3], words[1])


def _known(word: int | None) -> int:
    if word is None:
        raise UserError("its parameters are not known")
    return word


def vertex_numbers(contents: KnownContents, state: ExecutedDrawState, draw: Draw, indexed: bool) -> list[int]:
    """VertexIndex of each vertex of a draw."""
    if not indexed:
        return list(range(draw.first, draw.first + draw.vertices))
    bound = state.indices
    if bound is None or bound.kind not in INDEX_BYTES:
        raise UserError("its indices are not known")
    size = INDEX_BYTES[bound.kind]
    return [
        (int.from_bytes(_bytes(contents, bound, (draw.first + at) * size, size), "little") + draw.base) & 0xFFFFFFFF
        for at in range(draw.vertices)
    ]


def attributes(
    contents: KnownContents, state: ExecutedDrawState, fixed: FixedState, vertex: int, instance: tuple[int, int]
) -> dict[StageSlot, Bits]:
    """The attributes of one vertex by location; `instance` is the first of the draw, and how many are before this
    one."""
    found: dict[StageSlot, Bits] = {}
    given = fixed.info["pVertexInputState"] or {}
    bindings = {each["binding"]: each for each in given.get("pVertexBindingDescriptions") or ()}
    for each in given.get("pVertexAttributeDescriptions") or ():
        binding, bound = bindings[each["binding"]], state.vertices.get(each["binding"])
        if bound is None:
            raise UserError("a vertex buffer is not bound")
        element = sum(instance) if binding["inputRate"] else vertex
        form = format_of(each["format"])
        place = element * binding["stride"] + each["offset"]
        data = _bytes(contents, bound, place, form.block_bytes)
        found[StageSlot(False, each["location"])] = texel_value(form, VkImageAspect.COLOR, data)
    return found


def _bytes(contents: KnownContents, bound: VertexPlace, offset: int, size: int) -> bytes:
    held = contents.buffers.get(bound.buffer)
    if held is None or bound.offset + offset < 0 or bound.offset + offset + size > held.size:
        raise UserError("vertices or indices outside of a followed buffer are not known")
    cells = contents.memory[held.space].take(held.offset + bound.offset + offset, size)
    if not cells.known.all():
        raise UserError("vertices or indices are not known")
    return cells.data.tobytes()
