"""Plain stream events for a judge of their own: batches of effects on queues of families, and what is found."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from harness.findings import Finding
from harness.spec.enums import VK_QUEUE_FAMILY_IGNORED, VkPipelineStage2
from harness.spec.masks import scope
from harness.spec.scopes import ACCESS_KIND
from harness.syncval.evidence import Description
from harness.syncval.validator import Validator
from harness.trace.effects import (
    Access,
    Acquired,
    Barrier,
    Command,
    Dependency,
    Effect,
    HostWaited,
    Presented,
    QueueObtained,
    SemaphoreOperation,
    StreamEvent,
    Submission,
    Submitted,
)

ALL_FLAGS = 0x7FFFFFFF
ALL_COMMANDS = VkPipelineStage2.ALL_COMMANDS
WHOLE = ((0, 64),)

Effects = Effect | tuple[Effect, ...]


def access(name: str, space: int, begin: int = 0, end: int = 64, **more: object) -> Access:
    """`COPY_TRANSFER_READ` of [begin, end) of a resource with a space of its own."""
    return Access(ACCESS_KIND[f"SYNC_{name}"].index, space, ((begin, end),), space, **more)  # type: ignore[arg-type]


def read(space: int, begin: int = 0, end: int = 64) -> Access:
    """A copy's read."""
    return access("COPY_TRANSFER_READ", space, begin, end)


def write(space: int, begin: int = 0, end: int = 64) -> Access:
    """A copy's write."""
    return access("COPY_TRANSFER_WRITE", space, begin, end)


def dependency(src: str, dst: str) -> Dependency:
    """From `STAGE/ACCESS` to `STAGE/ACCESS`."""
    return Dependency(*scope(src), *scope(dst))


def barrier(src: str, dst: str) -> Barrier:
    """A global one."""
    return Barrier((dependency(src, dst),))


def operation(semaphore: int, stages: str = "ALL_COMMANDS", value: int = 0) -> SemaphoreOperation:
    """A wait for a semaphore, or a signal of it."""
    return SemaphoreOperation(semaphore, scope(stages)[0], value)


class Device:
    """A validator and queues by number. `families` gives the queue family of each; without it nobody knows them."""

    def __init__(self, families: dict[int, int] | None = None) -> None:
        self.families = families or {}
        self.calls = count(1)
        self.found: list[Finding] = []
        """By the latest call."""
        self.validator = Validator(lambda resource, spans: Description("VkBuffer", tuple(spans), ()))
        for queue, family in self.families.items():
            self.validator.consume(QueueObtained(queue, family))

    def take(self, stream_event: StreamEvent) -> list[str]:
        """Any stream event; the kinds of what is found."""
        self.found = self.validator.consume(stream_event)
        return [finding.hazard for finding in self.found]

    def submit(
        self,
        queue: int,
        *effects: Effects,
        waits: Sequence[SemaphoreOperation] = (),
        signals: Sequence[SemaphoreOperation] = (),
        fence: int = 0,
    ) -> list[str]:
        """One batch of one command buffer, one command for each effect (or tuple of effects)."""
        commands = tuple(
            Command(next(self.calls), "vkCmdX", None, each if isinstance(each, tuple) else (each,)) for each in effects
        )
        batch = Submission(0, ((next(self.calls) + 1000, commands),), tuple(waits), tuple(signals))
        family = self.families.get(queue, VK_QUEUE_FAMILY_IGNORED)
        call = next(self.calls)
        return self.take(Submitted(call, "vkQueueSubmit2", None, queue, ALL_FLAGS, (batch,), fence, family))

    def acquire(self, image: int, semaphore: int = 0, fence: int = 0, swapchain: int = 1) -> list[str]:
        """vkAcquireNextImageKHR."""
        call = next(self.calls)
        return self.take(Acquired(call, "vkAcquireNextImageKHR", None, swapchain, image, semaphore, fence))

    def present(self, queue: int, *images: int, waits: tuple[int, ...] = (), swapchain: int = 1) -> list[str]:
        """vkQueuePresentKHR."""
        pairs = tuple((swapchain, image) for image in images)
        return self.take(Presented(next(self.calls), "vkQueuePresentKHR", None, queue, waits, pairs))

    def wait(self, *fences: int, queue: int = 0) -> list[str]:
        """A host wait for fences, or for a queue, or for everything."""
        return self.take(HostWaited(fences, queue))
