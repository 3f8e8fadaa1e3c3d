"""The judge: replays every command's effects, in submission order, over one context for the device (SYNC_RULES 4.3).

While a command buffer is recorded the same rules run over a context of its own, for early findings; a pair that was
reported there is not reported again when the command buffer is submitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from harness.findings import Finding, Place
from harness.spans import Span
from harness.syncval.context import Context
from harness.syncval.evidence import Describe, Reporter
from harness.syncval.execution import Execution
from harness.syncval.host import Host
from harness.syncval.ownership import Ownership
from harness.syncval.present import Presentation
from harness.syncval.queue import Batch, Queues
from harness.trace.effects import (
    Access,
    Acquired,
    Begun,
    Concurrent,
    Destroyed,
    Execute,
    FenceReset,
    HostAccess,
    HostFlushed,
    HostInvalidated,
    HostRead,
    HostSetEvent,
    HostSignaled,
    HostWaited,
    HostWaitedSemaphores,
    HostWrote,
    Ignored,
    Occurrence,
    Presented,
    QueueObtained,
    Recorded,
    SemaphoreCreated,
    Submitted,
    Unmodelled,
)


@dataclass(slots=True)
class Recording:
    """A command buffer being recorded: its own execution and what was already reported in it."""

    execution: Execution
    reported: set[tuple[Any, ...]] = field(default_factory=set)


class Validator:
    """Consumes occurrences, answers with findings. `unmodelled` counts what it cannot judge, by name.

    `make_context` makes the context of the device's queues, and of a recording; `make_execution` what runs commands
    over one. Other judges put in theirs. `is_host_visible` tells of a space whether it is memory that the host can map.
    """

    def __init__(
        self,
        describe: Describe,
        make_context: Callable[[int], Context] = Context,
        make_execution: Callable[[Context], Execution] = Execution,
        is_host_visible: Callable[[int], bool] = lambda space: True,
    ) -> None:
        self.unmodelled: dict[str, int] = {}
        self._make_context = make_context
        self._make_execution = make_execution
        self._context = make_context(0)
        self._queues = Queues(self._context)
        self._presentation = Presentation(self._context, self._queues)
        self._executions: dict[int, Execution] = {}
        self._recordings: dict[int, Recording] = {}
        self._report = Reporter(describe)
        self._ownership = Ownership(describe)
        self._host = Host(self._context, self._report, is_host_visible)

    def consume(self, occurrence: Occurrence) -> list[Finding]:
        """Follows one occurrence; the findings are those it causes."""
        match occurrence:
            case Recorded():
                return list(self._recorded(occurrence))
            case Submitted():
                self._host.submitted()
                return list(self._judged(self._queues.submit(occurrence)))
            case HostWrote():
                return list(self._host.wrote(occurrence, self._queues.holds_back))
            case HostRead():
                return list(self._host.read(occurrence))
            case HostInvalidated():
                return list(self._host.invalidated(occurrence))
            case Presented():
                return list(self._presented(occurrence))
            case HostAccess():
                return list(self._host.accessed(occurrence))
            case HostSignaled():
                return list(self._judged(self._queues.host_signal(occurrence.semaphore, occurrence.value)))
            case _:
                self._follow(occurrence)
        return []

    def _follow(self, occurrence: Occurrence) -> None:
        """Occurrences that cause no finding by themselves."""
        match occurrence:
            case HostWaited():
                self._host_waited(occurrence)
            case HostWaitedSemaphores():
                for semaphore, value in occurrence.values:
                    self._queues.wait_semaphore(semaphore, value)
                self._host.waited()
            case HostFlushed():
                self._host.flushed(occurrence)
            case Acquired():
                self._presentation.acquire(occurrence)
            case SemaphoreCreated():
                self._queues.create(occurrence.semaphore, occurrence.initial)
            case HostSetEvent():
                for execution in self._executions.values():
                    execution.events.host(occurrence.event)
            case QueueObtained():
                self._ownership.obtained(occurrence.queue, occurrence.family)
            case Concurrent():
                self._ownership.share(occurrence.resource)
            case Begun():
                self._recordings.pop(occurrence.command_buffer, None)
            case FenceReset():
                for fence in occurrence.fences:
                    self._queues.forget_fence(fence)
                    self._presentation.forget_fence(fence)
            case Destroyed():
                for context in self._contexts():
                    context.forget(occurrence.space, occurrence.span)
                self._queues.destroy(occurrence.space)
                self._presentation.forget(occurrence.space)
                self._ownership.forget(occurrence)
            case Ignored():
                self._count(occurrence.what)
            case _:
                self._count(type(occurrence).__name__)

    def written(self, memory: int, begin: int, end: int) -> list[Span]:
        """Addresses of a memory object that submitted work writes and that the host does not know to be complete."""
        return [span for span, entry in self._context.unfinished(memory, begin, end) if entry.write is not None]

    def _contexts(self) -> Iterable[Context]:
        yield self._context
        for recording in self._recordings.values():
            yield recording.execution.context

    def _count(self, what: str) -> None:
        self.unmodelled[what] = self.unmodelled.get(what, 0) + 1

    # -- recording and submission -------------------------------------------------------------------------------------

    def _recorded(self, occurrence: Recorded) -> Iterable[Finding]:
        command = occurrence.command
        recording = self._recordings.get(occurrence.command_buffer)
        if recording is None:
            execution = self._make_execution(self._make_context(0))
            recording = self._recordings[occurrence.command_buffer] = Recording(execution)
        for effect in command.effects:
            if isinstance(effect, Access):
                continue
            if isinstance(effect, Unmodelled):
                self._count(effect.what)
            elif isinstance(effect, Execute):
                # What was found in a secondary is not found again where it is executed.
                held = (self._recordings.get(buffer) for buffer, _ in effect.buffers)
                recording.reported.update(*(each.reported for each in held if each is not None))
        place = Place(command.call, command.name, command.site, occurrence.command_buffer)
        found: list[Finding] = []
        for result in recording.execution.run(command, place, occurrence.queue_flags):
            found += self._report.recorded_events(result.findings, recording.reported)
            found += self._report.recorded(result.hits, result.place, recording.reported)
        return found

    def _judged(self, batches: Iterator[Batch]) -> Iterator[Finding]:
        for batch in batches:
            queue, family = batch.submit.queue, batch.submit.family
            self._host.begin(queue, batch.tag)
            execution = self._executions.get(queue)
            if execution is None:
                execution = self._executions[queue] = self._make_execution(self._context)
                execution.family = family
                self._ownership.obtained(queue, family)
            for tag, stages in batch.after:
                execution.events.after_signal(tag, stages)
            for position, (buffer, commands) in enumerate(batch.submission.buffers):
                recording = self._recordings.get(buffer)
                known = recording.reported if recording is not None else set()
                submit, number = batch.tag
                for command in commands:
                    place = Place(command.call, command.name, command.site, buffer, submit, number, position, queue)
                    for result in execution.run(command, place, batch.submit.queue_flags):
                        yield from self._report.events(result.findings, known)
                        yield from self._report.submitted(result.hits, result.place, known)
                    if self._ownership.active or execution.transfers:
                        yield from self._report.events(list(self._ownership.follow(command, place, family)), known)

    def _presented(self, occurrence: Presented) -> Iterator[Finding]:
        if self._ownership.active:
            place = Place(occurrence.call, occurrence.name, occurrence.site, queue=occurrence.queue)
            yield from self._report.events(list(self._ownership.present(occurrence, place)), set())
        for hits, place in self._presentation.present(occurrence):
            for finding, _ in self._report.findings(hits, place):
                yield finding

    # -- the host ------------------------------------------------------------------------------------------------------

    def _host_waited(self, occurrence: HostWaited) -> None:
        """Work that the host has waited for no longer conflicts with anything (SYNC_RULES 2.11, host waits)."""
        for fence in occurrence.fences:
            self._queues.wait_fence(fence)
            self._presentation.wait_fence(fence)
        if not occurrence.fences:
            self._queues.wait_idle(occurrence.queue)
        self._host.waited()
