"""StreamEvents written by hand for tests of the model: commands by their effects, submits, and what the host does."""

from __future__ import annotations

from itertools import count

from harness.model import Opinion, judge_stream_events
from harness.model.stages import ACCESS_KIND
from harness.spec.enums import VK_QUEUE_FAMILY_IGNORED, VkPipelineStage2
from harness.spec.masks import scope
from harness.trace.effects import (
    Access,
    Barrier,
    Command,
    Dependency,
    Effect,
    HostDeclaredRead,
    HostFlushed,
    HostInvalidated,
    HostWaited,
    HostWrote,
    RangeBarrier,
    SemaphoreOperation,
    StreamEvent,
    Submission,
    Submitted,
)

ALL_FLAGS = 0x7FFFFFFF
ALL = VkPipelineStage2.ALL_COMMANDS
TRANSFER = VkPipelineStage2.ALL_TRANSFER
COPY_STAGE = VkPipelineStage2.COPY
COMPUTE = VkPipelineStage2.COMPUTE_SHADER
BOTTOM = VkPipelineStage2.BOTTOM_OF_PIPE
A, B, IMAGE = 100, 101, 102

Step = Effect | tuple[Effect, ...]


def access(name: str, space: int = A, begin: int = 0, end: int = 64, **more: object) -> Access:
    return Access(ACCESS_KIND[f"SYNC_{name}"].index, space, ((begin, end),), space, **more)  # type: ignore[arg-type]


def dependency(src: str, dst: str) -> Dependency:
    return Dependency(*scope(src), *scope(dst))


def barrier(*pairs: tuple[str, str]) -> Barrier:
    """One command with a global dependency for each (source, destination)."""
    return Barrier(tuple(dependency(src, dst) for src, dst in pairs))


def ranged(src: str, dst: str, space: int, begin: int = 0, end: int = 64, move: bool = False) -> Barrier:
    """A buffer barrier, or a layout transition, as the commands make it: its execution dependency is for everything."""
    given = dependency(src, dst)
    execution = Dependency(given.src_stages, 0, given.dst_stages, 0)
    part = RangeBarrier(given, space, ((begin, end),), space, move, 6 if move else 0, 7 if move else 0)
    return Barrier((execution,), (part,))


def at(semaphore: int, stages: int = ALL, value: int = 0) -> tuple[SemaphoreOperation, ...]:
    """One wait or signal."""
    return (SemaphoreOperation(semaphore, stages, value),)


READ, WRITE = access("COPY_TRANSFER_READ"), access("COPY_TRANSFER_WRITE")
FILL = access("CLEAR_TRANSFER_WRITE")
FILL_TO_COPY = barrier(("CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ"))


class Stream:
    """StreamEvents in the order in which methods are called."""

    def __init__(self) -> None:
        self.stream_events: list[StreamEvent] = []
        self._calls = count(1)

    def add(self, *stream_events: StreamEvent) -> Stream:
        """Any."""
        self.stream_events += stream_events
        return self

    def commands(self, *steps: Step) -> tuple[Command, ...]:
        """One command for each step; those with barriers and accesses have names that say so."""
        made = []
        for step in steps:
            effects = step if isinstance(step, tuple) else (step,)
            name = "vkCmd" + type(effects[0]).__name__
            made.append(Command(next(self._calls), name, None, effects))
        return tuple(made)

    def submit(
        self,
        *steps: Step,
        queue: int = 1,
        waits: tuple[SemaphoreOperation, ...] = (),
        signals: tuple[SemaphoreOperation, ...] = (),
        fence: int = 0,
        flags: int = ALL_FLAGS,
        family: int = VK_QUEUE_FAMILY_IGNORED,
    ) -> Stream:
        """A submit of one batch with one command buffer."""
        batch = Submission(0, ((next(self._calls) + 1000, self.commands(*steps)),), waits, signals)
        call = next(self._calls)
        return self.add(Submitted(call, "vkQueueSubmit2", None, queue, flags, (batch,), fence, family))

    def host_write(
        self, space: int = A, begin: int = 0, end: int = 64, coherent: bool = True, non_coherent_atom_size: int = 1
    ) -> Stream:
        """The host writes bytes of a memory object."""
        return self.add(HostWrote(next(self._calls), None, space, (begin, end), coherent, non_coherent_atom_size))

    def host_read(self, begin: int = 0, end: int = 64, coherent: bool = True) -> Stream:
        """The host reads bytes of `A`."""
        return self.add(HostDeclaredRead(next(self._calls), None, A, (begin, end), coherent))

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


def run(*steps: Step) -> list[str]:
    """The kinds of conflict of one submit of these commands."""
    return Stream().submit(*steps).kinds()
