"""A stream of transfers and dispatches over ranges that are a thousand times as large.

Every size and every offset grows alike, so that two ranges overlap where they did before. What shaders reach need not
grow with the number of their invocations: whether the stream is clean is judged again, and must not have changed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vkharness.findings import UserError
from vkharness.model import judge
from vkharness.replay.native_strategies.changed_stream import ChangedStream
from vkharness.spec.command_classes import is_debug, is_recorded
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call, HostRead, HostWrite

FACTOR = 1024
MOST_BYTES = 1 << 28
"""Bytes of all buffers of a stream that was made large."""
MOST_GROUPS = 65535
"""Work groups of a dispatch in one direction, which every device allows."""
WHOLE = 0xFFFFFFFFFFFFFFFF
REFUSED = {
    "vkCreateImage": "it has images",
    "vkQueueBindSparse": "it binds sparse memory",
    "vkGetBufferDeviceAddress": "its shaders may compute addresses",
    "vkCreateBufferView": "it has texel buffers",
    "vkCmdUpdateBuffer": "vkCmdUpdateBuffer takes 65536 bytes at most",
}
"""Calls of streams that cannot grow, with the reason."""
PLAIN_COMMANDS = (
    "vkCmdPipelineBarrier", "vkCmdBind", "vkCmdPushConstants", "vkCmdSetEvent", "vkCmdResetEvent", "vkCmdWaitEvents",
    "vkCmdExecuteCommands",
)  # fmt: skip
"""Beginnings of the names of commands whose ranges grow, if they have any, and that do nothing else."""
SIZES = frozenset({"size", "offset", "range", "srcOffset", "dstOffset", "memoryOffset", "allocationSize"})
SCALED = (
    "vkCreateBuffer", "vkAllocateMemory", "vkBindBufferMemory", "vkMapMemory", "vkUpdateDescriptorSets",
    "vkFlushMappedMemoryRanges", "vkInvalidateMappedMemoryRanges",
    "vkCmdFillBuffer", "vkCmdCopyBuffer", "vkCmdPipelineBarrier", "vkCmdWaitEvents", "vkCmdSetEvent2",
)  # fmt: skip
"""Beginnings of the names of calls in which members of these names are bytes of buffers or memory."""


def with_large_ranges(blocks: list[Block], number: int, factor: int = FACTOR) -> ChangedStream:
    """The stream with sizes and offsets `factor` times as large, dispatches with as many times the work groups.

    `number`, of the run, changes nothing. Raises `UserError` for a stream of another shape.
    """
    for block in blocks:
        _refuse(block, factor)
    made = [_large(block, factor) for block in blocks]
    if sum(map(_bytes, made)) > MOST_BYTES:
        raise UserError(f"as recorded only: its buffers would have more than {MOST_BYTES >> 20} MiB")
    if judge(made).clean != judge(blocks).clean:
        raise UserError("as recorded only: its shaders would reach other bytes of the larger ranges")
    return ChangedStream(made, is_other=True)


def _bytes(block: Block) -> int:
    """The size of the buffer that a block makes."""
    makes = isinstance(block, Call) and block.name == "vkCreateBuffer" and block.succeeded
    return int(block.args["pCreateInfo"]["size"]) if isinstance(block, Call) and makes else 0


def _refuse(block: Block, factor: int) -> None:
    if not isinstance(block, Call):
        return
    name = main_name(block.name)
    if name in REFUSED:
        raise UserError(f"as recorded only: {REFUSED[name]}")
    known = is_debug(name) or name.startswith((*PLAIN_COMMANDS, "vkCmdFillBuffer", "vkCmdCopyBuffer"))
    if is_recorded(name) and not (name == "vkCmdDispatch" or (known and not name.startswith("vkCmdCopyBufferTo"))):
        raise UserError(f"as recorded only: {name} does not grow with its buffers")
    if "WithTemplate" in name or name.startswith(("vkCmdBindVertex", "vkCmdBindIndex")):
        raise UserError(f"as recorded only: {name} does not grow with its buffers")
    if name == "vkCmdDispatch" and block.args["groupCountX"] * factor > MOST_GROUPS:
        raise UserError("as recorded only: a dispatch would have too many work groups")


def _large(block: Block, factor: int) -> Block:
    if isinstance(block, HostWrite):
        return replace(block, offset=block.offset * factor, data=block.data * factor)
    if isinstance(block, HostRead):
        return replace(block, offset=block.offset * factor, size=block.size * factor)
    name = main_name(block.name)
    if name == "vkCmdDispatch":
        return replace(block, args={**block.args, "groupCountX": block.args["groupCountX"] * factor})
    if name.startswith("vkCmdBindDescriptorSets") and block.args.get("pDynamicOffsets"):
        offsets = [each * factor for each in block.args["pDynamicOffsets"]]
        return replace(block, args={**block.args, "pDynamicOffsets": offsets})
    return replace(block, args=_grown(block.args, factor)) if name.startswith(SCALED) else block


def _grown(value: Any, factor: int) -> Any:
    if isinstance(value, list):
        return [_grown(each, factor) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: _size(each, factor) if key in SIZES else _grown(each, factor) for key, each in value.items()}


def _size(value: Any, factor: int) -> Any:
    return value * factor if isinstance(value, int) and value != WHOLE else value
