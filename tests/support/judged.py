"""Plain stream events for a judge of their own: batches of effects on queues of families, and what is found."""

from __future__ import annotations

from itertools import count
from typing import Any

from tests.support.effects import Effects, access, submitted
from vkharness.findings import Finding
from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED
from vkharness.spec.masks import scope
from vkharness.syncval.evidence import Description
from vkharness.syncval.validator import Validator
from vkharness.trace.effects import (
    Access,
    Acquired,
    HostWaited,
    Presented,
    QueueObtained,
    SemaphoreOperation,
    StreamEvent,
)


def read(space: int, begin: int = 0, end: int = 64) -> Access:
    """A copy's read."""
    return access("COPY_TRANSFER_READ", space, begin, end)


def write(space: int, begin: int = 0, end: int = 64) -> Access:
    """A copy's write."""
    return access("COPY_TRANSFER_WRITE", space, begin, end)


def operation(semaphore: int, stages: str = "ALL_COMMANDS", value: int = 0) -> SemaphoreOperation:
    """A wait for a semaphore, or a signal of it."""
    return SemaphoreOperation(semaphore, scope(stages)[0], value=value)


def kinds(findings: list[Finding]) -> list[str]:
    """Returns the hazards of findings, in order."""
    return [finding.hazard for finding in findings]


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
        return kinds(self.found)

    def submit(self, queue: int, *effects: Effects, **more: Any) -> list[str]:
        """One batch of one command buffer, one command for each of `effects`; `more` as for `submitted`."""
        family = self.families.get(queue, VK_QUEUE_FAMILY_IGNORED)
        return self.take(submitted(self.calls, queue, effects, family=family, **more))

    def finish(self, queue: int, *effects: Effects, fence: int = 0, **more: Any) -> None:
        """A submit and a host wait for its fence, or for the whole device when it has none."""
        self.submit(queue, *effects, fence=fence, **more)
        assert self.wait(*([fence] if fence else [])) == []

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
        return self.take(HostWaited(fences=fences, queue=queue))
