"""Commands whose ranges are given by device addresses: each does what its first form does with a buffer and an offset.

Specification: "Device Address Ranges" (VK_KHR_device_address_commands). Rule:
rules.md#addresses-lead-to-their-buffer. An address that vkGetBufferDeviceAddress never returned is not modelled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from vkharness.commands.buffer_transfers import copy_buffer, fill_buffer, update_buffer
from vkharness.commands.compute import dispatch_indirect
from vkharness.commands.drawing import transform_feedback
from vkharness.commands.drawing.draw import draw_indirect_byte_count
from vkharness.commands.drawing.vertex import bind_index_buffer, bind_vertex_buffers
from vkharness.commands.handlers import COMMANDS, CommandHandler, command
from vkharness.commands.object_state import NOTHING, CommandBuffer, ObjectState
from vkharness.commands.resources.query import copy_query_pool_results, write_buffer_marker
from vkharness.commands.transfer import copy_buffer_to_image, copy_image_to_buffer
from vkharness.trace.effects import PLANS, Effect, Unmodelled

UNKNOWN_ADDRESS = "a device address of no known buffer"
Args = dict[str, Any]


class AddressedRange(NamedTuple):
    """A range of device addresses as a part of a buffer. All are 0 for the address 0, as for a null handle."""

    buffer: int
    offset: int
    size: int
    stride: int = 0


class NoBuffer(Exception):
    """An address leads to no buffer that is known."""


def range_of(objects: ObjectState, given: Args | None) -> AddressedRange:
    """A VkDeviceAddressRangeKHR or VkStridedDeviceAddressRangeKHR. Raises NoBuffer."""
    if given is None or not given["address"]:
        return AddressedRange(0, 0, 0)
    found = objects.addresses.find(given["address"], given["size"])
    if found is None:
        raise NoBuffer
    return AddressedRange(found[0].id, found[1], given["size"], given.get("stride", 0))


Plain = Callable[[ObjectState, Args], Args]
"""Gives the arguments of the first form. Raises NoBuffer."""


def _by_address(name: str, first: CommandHandler, plain: Plain) -> None:
    """Registers a command that does what the handler of its first form does with other arguments."""

    def handler(objects: ObjectState, buffer: CommandBuffer, args: Args) -> Iterable[Effect]:
        try:
            made = plain(objects, args)
        except NoBuffer:
            return (Unmodelled(UNKNOWN_ADDRESS),)
        return first(objects, buffer, made)

    command(name)(handler)


# -- draws and dispatches ----------------------------------------------------------------------------------------------


def _parameters(objects: ObjectState, args: Args) -> Args:
    """The parameters of an indirect command, with their number where that is in a buffer or in the call."""
    info = args["pInfo"]
    place = range_of(objects, info["addressRange"])
    made: Args = {"buffer": place.buffer, "offset": place.offset, "stride": place.stride}
    if "countAddressRange" in info:
        count = range_of(objects, info["countAddressRange"])
        made |= {"countBuffer": count.buffer, "countBufferOffset": count.offset, "maxDrawCount": info["maxDrawCount"]}
    elif "drawCount" in info:
        made["drawCount"] = info["drawCount"]
    return made


for _name, _first in (
    ("vkCmdDrawIndirect2KHR", "vkCmdDrawIndirect"),
    ("vkCmdDrawIndirectCount2KHR", "vkCmdDrawIndirectCount"),
    ("vkCmdDrawIndexedIndirect2KHR", "vkCmdDrawIndexedIndirect"),
    ("vkCmdDrawIndexedIndirectCount2KHR", "vkCmdDrawIndexedIndirectCount"),
    ("vkCmdDrawMeshTasksIndirect2EXT", "vkCmdDrawMeshTasksIndirectEXT"),
    ("vkCmdDrawMeshTasksIndirectCount2EXT", "vkCmdDrawMeshTasksIndirectCountEXT"),
):
    _by_address(_name, COMMANDS[_first], _parameters)
_by_address("vkCmdDispatchIndirect2KHR", dispatch_indirect, _parameters)


def _byte_count(objects: ObjectState, args: Args) -> Args:
    place = range_of(objects, (args["pCounterInfo"] or {}).get("addressRange"))
    return args | {"counterBuffer": place.buffer, "counterBufferOffset": place.offset}


def _condition(objects: ObjectState, args: Args) -> Args:
    place = range_of(objects, args["pConditionalRenderingBegin"]["addressRange"])
    return {"pConditionalRenderingBegin": {"buffer": place.buffer, "offset": place.offset}}


_by_address("vkCmdDrawIndirectByteCount2EXT", draw_indirect_byte_count, _byte_count)
_by_address("vkCmdBeginConditionalRendering2EXT", transform_feedback.begin_condition, _condition)

# -- bindings ----------------------------------------------------------------------------------------------------------


@command("vkCmdBindVertexBuffers3KHR")
def bind_vertex_buffers3(objects: ObjectState, buffer: CommandBuffer, args: Args) -> Iterable[Effect]:
    """Binds vertex buffers. Each binding says whether its stride counts."""
    for at, each in enumerate(args["pBindingInfos"] or (), args["firstBinding"]):
        try:
            place = range_of(objects, each["addressRange"])
        except NoBuffer:
            return (Unmodelled(UNKNOWN_ADDRESS),)
        made: Args = {"firstBinding": at, "pBuffers": [place.buffer], "pOffsets": [place.offset]}
        strides = [place.stride] if each["setStride"] else None
        bind_vertex_buffers(objects, buffer, made | {"pSizes": [place.size], "pStrides": strides})
    return NOTHING


def _indices(objects: ObjectState, args: Args) -> Args:
    info = args["pInfo"]
    place = range_of(objects, info["addressRange"])
    return {"buffer": place.buffer, "offset": place.offset, "size": place.size, "indexType": info["indexType"]}


def _feedback(objects: ObjectState, args: Args) -> Args:
    places = [range_of(objects, each["addressRange"]) for each in args["pBindingInfos"] or ()]
    return {
        "firstBinding": args["firstBinding"],
        "pBuffers": [each.buffer for each in places],
        "pOffsets": [each.offset for each in places],
        "pSizes": [each.size for each in places],
    }


def _counters(objects: ObjectState, args: Args) -> Args:
    places = [range_of(objects, each["addressRange"]) for each in args["pCounterInfos"] or ()]
    return {
        "firstCounterBuffer": args["firstCounterRange"],
        "pCounterBuffers": [each.buffer for each in places],
        "pCounterBufferOffsets": [each.offset for each in places],
    }


_by_address("vkCmdBindIndexBuffer3KHR", bind_index_buffer, _indices)
_by_address("vkCmdBindTransformFeedbackBuffers2EXT", transform_feedback.bind_feedback_buffers, _feedback)
_by_address("vkCmdBeginTransformFeedback2EXT", transform_feedback.begin_feedback, _counters)
_by_address("vkCmdEndTransformFeedback2EXT", transform_feedback.end_feedback, _counters)

# -- transfers ---------------------------------------------------------------------------------------------------------


def _written(objects: ObjectState, args: Args) -> Args:
    """The range that a fill, an update or a copy of query results writes."""
    place = range_of(objects, args["pDstRange"])
    made = args | {"dstBuffer": place.buffer, "dstOffset": place.offset, "size": place.size, "stride": place.stride}
    return made | {"flags": args.get("queryResultFlags", 0)}


def _marker(objects: ObjectState, args: Args) -> Args:
    place = range_of(objects, args["pInfo"]["dstRange"])
    return {"dstBuffer": place.buffer, "dstOffset": place.offset}


_by_address("vkCmdFillMemoryKHR", fill_buffer, _written)
_by_address("vkCmdUpdateMemoryKHR", update_buffer, _written)
_by_address("vkCmdCopyQueryPoolResultsToMemoryKHR", copy_query_pool_results, _written)
_by_address("vkCmdWriteMarkerToMemoryAMD", write_buffer_marker, _marker)


def _each(objects: ObjectState, buffer: CommandBuffer, first: CommandHandler, several: list[Args]) -> Iterable[Effect]:
    """Gives the effects of the first form with each of these arguments, in no order among themselves."""
    made = [first(objects, buffer, each) for each in several]
    if len(made) == 1:
        return made[0]
    for each in made:
        if isinstance(each, PLANS) and each.writes is not None:
            buffer.steps.append(each.writes)
    return tuple(effect for each in made for effect in each)


@command("vkCmdCopyMemoryKHR")
def copy_memory(objects: ObjectState, buffer: CommandBuffer, args: Args) -> Iterable[Effect]:
    """Reads and writes exactly the regions, which may lie in different buffers."""
    pairs: dict[tuple[int, int], list[Args]] = {}
    try:
        for each in args["pCopyMemoryInfo"]["pRegions"] or ():
            source, target = range_of(objects, each["srcRange"]), range_of(objects, each["dstRange"])
            region = {"srcOffset": source.offset, "dstOffset": target.offset, "size": min(source.size, target.size)}
            pairs.setdefault((source.buffer, target.buffer), []).append(region)
    except NoBuffer:
        return (Unmodelled(UNKNOWN_ADDRESS),)
    several = [
        {"srcBuffer": source, "dstBuffer": target, "pRegions": regions} for (source, target), regions in pairs.items()
    ]
    return _each(objects, buffer, copy_buffer, several)


def _image_copy(name: str, first: CommandHandler, image: str, memory: str) -> None:
    """Registers a copy between memory and an image, which the first form calls by these names."""

    def handler(objects: ObjectState, buffer: CommandBuffer, args: Args) -> Iterable[Effect]:
        info = args["pCopyMemoryInfo"]
        buffers: dict[int, list[Args]] = {}
        try:
            for each in info["pRegions"] or ():
                place = range_of(objects, each["addressRange"])
                rows = {"bufferRowLength": each["addressRowLength"], "bufferImageHeight": each["addressImageHeight"]}
                buffers.setdefault(place.buffer, []).append(each | rows | {"bufferOffset": place.offset})
        except NoBuffer:
            return (Unmodelled(UNKNOWN_ADDRESS),)
        several = [{image: info["image"], memory: id, "pRegions": regions} for id, regions in buffers.items()]
        return _each(objects, buffer, first, several)

    command(name)(handler)


_image_copy("vkCmdCopyMemoryToImageKHR", copy_buffer_to_image, "dstImage", "srcBuffer")
_image_copy("vkCmdCopyImageToMemoryKHR", copy_image_to_buffer, "srcImage", "dstBuffer")
