"""The memory of sparse resources in a replay: one allocation for each memory object, bound by vkQueueBindSparse alone.

Offsets of binds are those of the trace, so that the target must have the same sparse blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from vkharness.findings import UserError
from vkharness.replay.objects.allocations import AllocationGroup, Memories
from vkharness.replay.objects.encode import Handles
from vkharness.replay.objects.target import ReplayDevice
from vkharness.trace.calls import Block, Call


def refuse_without_sparse(device: ReplayDevice, call: Call) -> None:
    """Raises `UserError` when the target cannot bind sparse memory."""
    if not device.target.binds_sparse:
        where = f"block {call.index}: {call.name} makes a sparse resource"
        raise UserError(f"{where}, and {device.target.name} has no queue with sparse binding")


def sparse_binds(call: Call) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each bind of a vkQueueBindSparse, with its resource."""
    for info in call.args["pBindInfo"] or ():
        for several in (info["pBufferBinds"], info["pImageOpaqueBinds"], info["pImageBinds"]):
            for each in several or ():
                for bind in each["pBinds"] or ():
                    yield each.get("buffer") or each.get("image") or 0, bind


def allocate_sparse(
    memories: Memories,
    handles: Handles,
    requirements: Callable[[int], Any],
    blocks: Iterable[Block],
    calls: Iterable[Call],
    others: set[int],
) -> None:
    """Allocates the memory objects that vkQueueBindSparse names. Those in `others` are bound in other ways, too.

    `requirements` gives the VkMemoryRequirements of a resource on the target.
    """
    target = memories.device.target
    sizes = {
        block.args["pMemory"]: block.args["pAllocateInfo"]["allocationSize"]
        for block in blocks
        if isinstance(block, Call) and block.name == "vkAllocateMemory" and block.succeeded
    }
    bits: dict[int, int] = {}
    for call in calls:
        where = f"block {call.index}: {call.name}"
        for resource, bind in sparse_binds(call):
            needs = requirements(resource)
            if needs is None:
                raise UserError(f"{where} of object {resource}, which is no buffer or image")
            _refuse_other_blocks(target.name, where, bind, int(needs.alignment))
            memory = bind["memory"]
            if memory in others:
                raise UserError(f"{where} of memory {memory}, which is bound otherwise, too, and cannot be replayed")
            if memory:
                bits[memory] = bits.get(memory, 0xFFFFFFFF) & int(needs.memoryTypeBits)
    for memory, fitting in bits.items():
        if not fitting or sizes.get(memory, 0) <= 0:
            raise UserError(f"memory {memory} cannot be made for sparse resources on {target.name}")
        group = AllocationGroup({}, sizes[memory], fitting)
        (made,) = memories.allocate(memory, [group], False, 0)
        handles.add(memory, "VkDeviceMemory", int(target.ffi.cast("uintptr_t", made.raw)))


def _refuse_other_blocks(target: str, where: str, bind: dict[str, Any], block: int) -> None:
    offsets = (bind.get("resourceOffset", 0), bind["memoryOffset"] if bind["memory"] else 0)
    if any(each % block for each in offsets):
        raise UserError(f"{where}: sparse blocks have {block} bytes on {target}, and others here")


def in_submission_order(call: Call) -> dict[str, Any]:
    """The arguments of a vkQueueBindSparse without semaphores and fence, where the device is idle before and after."""
    none = {"waitSemaphoreCount": 0, "pWaitSemaphores": None, "signalSemaphoreCount": 0, "pSignalSemaphores": None}
    infos = [{**info, **none, "pNext": None} for info in call.args["pBindInfo"] or ()]
    return {**call.args, "pBindInfo": infos, "fence": 0}
