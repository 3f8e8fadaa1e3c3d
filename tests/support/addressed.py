"""Traces with buffers whose device addresses are known, for `tests.support.streams.Stream`."""

from __future__ import annotations

from typing import Any

from tests.support.streams import ALL_COMMANDS, READ_WRITE, Stream, struct
from vkharness.commands.interpret import Interpreter
from vkharness.trace.calls import Call
from vkharness.trace.effects import Effect, Submitted

SIZE = 256
"""Bytes of each buffer."""


class Scene(Stream):
    """A trace with buffers whose addresses are known, each on memory of its own, and an image."""

    def __init__(self) -> None:
        super().__init__()
        self.memories = [self.memory(SIZE) for _ in range(4)]
        self.buffers = [self.buffer(SIZE, memory) for memory in self.memories]
        self.addresses = {id: 0x10000 * (at + 1) for at, id in enumerate(self.buffers)}
        for id, address in self.addresses.items():
            at = self.call("vkGetBufferDeviceAddress", pInfo=struct("VkBufferDeviceAddressInfo", buffer=id))
            block = self.blocks[at - 1]
            assert isinstance(block, Call)
            block.result = address
        self.held = self.image((8, 8, 1))
        info = struct("VkQueryPoolCreateInfo", queryType=0, queryCount=4)
        self.queries = self.make("vkCreateQueryPool", "pQueryPool", info)

    def range(self, which: int, offset: int, size: int, stride: int | None = None) -> dict[str, Any]:
        """A range of device addresses."""
        made = {"address": self.addresses[self.buffers[which]] + offset, "size": size}
        return made if stride is None else made | {"stride": stride}

    def indirect(self, *, kind: str, offset: int = 16, size: int = 64, **more: Any) -> dict[str, Any]:
        """The struct of an indirect command."""
        return struct(kind, addressRange=self.range(0, offset, size, None if "Dispatch" in kind else 20), **more)


def barrier(stream: Stream) -> None:
    """A full memory barrier."""
    full = struct(
        "VkMemoryBarrier2", srcStageMask=ALL_COMMANDS, srcAccessMask=READ_WRITE, dstStageMask=ALL_COMMANDS,
        dstAccessMask=READ_WRITE,
    )  # fmt: skip
    stream.cmd("PipelineBarrier2", pDependencyInfo=struct("VkDependencyInfo", pMemoryBarriers=[full]))


def executed(stream: Stream) -> list[tuple[Effect, ...]]:
    """The effects of each command as it is executed."""
    interpreter = Interpreter()
    events = [event for block in stream.blocks for event in interpreter.step(block)]
    batches = [batch for event in events if isinstance(event, Submitted) for batch in event.batches]
    return [each.effects for batch in batches for _, held in batch.buffers for each in held]
