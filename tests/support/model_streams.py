"""StreamEvents written by hand for tests of the model: commands by their effects, submits, and what the host does."""

from __future__ import annotations

from itertools import count
from typing import Any

from tests.support.effects import A, Effects, access, barrier, commands, submitted
from vkharness.model import Opinion, judge_stream_events
from vkharness.spec.enums import VkPipelineStage2
from vkharness.trace.effects import Command, HostWaited, StreamEvent
from vkharness.trace.host_effects import HostDeclaredRead, HostFlushed, HostInvalidated, HostWrote

TRANSFER = VkPipelineStage2.ALL_TRANSFER
COPY_STAGE = VkPipelineStage2.COPY
COMPUTE = VkPipelineStage2.COMPUTE_SHADER
BOTTOM = VkPipelineStage2.BOTTOM_OF_PIPE

READ, WRITE = access("COPY_TRANSFER_READ"), access("COPY_TRANSFER_WRITE")
FILL = access("CLEAR_TRANSFER_WRITE")
FILL_TO_COPY = barrier("CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ")


class Stream:
    """StreamEvents in the order in which methods are called."""

    def __init__(self) -> None:
        self.stream_events: list[StreamEvent] = []
        self._calls = count(1)

    def add(self, *stream_events: StreamEvent) -> Stream:
        """Any."""
        self.stream_events += stream_events
        return self

    def commands(self, *steps: Effects) -> tuple[Command, ...]:
        """One command for each step."""
        return commands(self._calls, *steps)

    def submit(self, *steps: Effects, queue: int = 1, **more: Any) -> Stream:
        """A submit of one batch with one command buffer; `more` as for `submitted`."""
        return self.add(submitted(self._calls, queue, steps, **more))

    def host_write(
        self, space: int = A, begin: int = 0, end: int = 64, coherent: bool = True, non_coherent_atom_size: int = 1
    ) -> Stream:
        """The host writes bytes of a memory object."""
        return self.add(
            HostWrote(
                next(self._calls),
                None,
                space,
                (begin, end),
                coherent=coherent,
                non_coherent_atom_size=non_coherent_atom_size,
            )
        )

    def host_read(self, begin: int = 0, end: int = 64, coherent: bool = True) -> Stream:
        """The host reads bytes of `A`."""
        return self.add(HostDeclaredRead(next(self._calls), None, A, (begin, end), coherent=coherent))

    def flush(self, begin: int = 0, end: int = 64) -> Stream:
        """vkFlushMappedMemoryRanges of `A`."""
        return self.add(HostFlushed(next(self._calls), None, A, (begin, end)))

    def invalidate(self, begin: int = 0, end: int = 64) -> Stream:
        """vkInvalidateMappedMemoryRanges of `A`."""
        return self.add(HostInvalidated(next(self._calls), None, A, (begin, end)))

    def wait(self, fence: int = 0) -> Stream:
        """The host waits for a fence, or for everything."""
        return self.add(HostWaited(fences=(fence,)) if fence else HostWaited())

    def judge(self) -> Opinion:
        """The model's opinion."""
        return judge_stream_events(self.stream_events)

    def kinds(self) -> list[str]:
        """The kinds of conflict, in order."""
        return [each.kind for each in self.judge().conflicts]


def run(*steps: Effects) -> list[str]:
    """The kinds of conflict of one submit of these commands."""
    return Stream().submit(*steps).kinds()
