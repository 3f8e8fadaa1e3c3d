"""The judge: replays every command's effects, in submission order, over one context for the device (SYNC_RULES 4.3).

While a command buffer is recorded the same rules run over a context of its own, for early findings; a pair that was
reported there is not reported again when the command buffer is submitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from harness.findings import READ_AFTER_WRITE, WRITE_AFTER_READ, WRITE_AFTER_WRITE, Finding, Place
from harness.spans import Span
from harness.spec.scopes import BY_NAME
from harness.syncval.context import Context, Hit
from harness.syncval.evidence import Describe, Reporter
from harness.syncval.execution import Execution
from harness.syncval.present import Presentation
from harness.syncval.queue import Batch, Queues
from harness.trace.effects import (
    Acquired,
    Begun,
    Destroyed,
    FenceReset,
    HostAccess,
    HostSetEvent,
    HostSignaled,
    HostWaited,
    HostWaitedSemaphores,
    HostWrote,
    Ignored,
    Occurrence,
    Presented,
    Recorded,
    SemaphoreCreated,
    Submitted,
    Unmodelled,
)

HOST_READ = BY_NAME["SYNC_HOST_HOST_READ"].index
HOST_WRITE = BY_NAME["SYNC_HOST_HOST_WRITE"].index


@dataclass(slots=True)
class Recording:
    """A command buffer being recorded: its own execution and what was already reported in it."""

    execution: Execution
    reported: set[tuple[Any, ...]] = field(default_factory=set)


class Validator:
    """Consumes occurrences, answers with findings. `unmodelled` counts what it cannot judge, by name.

    `make_context` makes the context of the device's queues, and of a recording; `make_execution` what runs commands
    over one. Other judges put in theirs.
    """

    def __init__(
        self,
        describe: Describe,
        make_context: Callable[[int], Context] = Context,
        make_execution: Callable[[Context], Execution] = Execution,
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

    def consume(self, occurrence: Occurrence) -> list[Finding]:
        """Follows one occurrence; the findings are those it causes."""
        match occurrence:
            case Recorded():
                return list(self._recorded(occurrence))
            case Submitted():
                return list(self._judged(self._queues.submit(occurrence)))
            case HostWrote():
                return list(self._host_wrote(occurrence))
            case Presented():
                return [
                    finding
                    for hits, place in self._presentation.present(occurrence)
                    for finding, _ in self._report.findings(hits, place)
                ]
            case HostAccess():
                return list(self._host_accessed(occurrence))
            case HostSignaled():
                self._queues.host_signal(occurrence.semaphore, occurrence.value)
                return list(self._judged(self._queues.release()))
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
            case Acquired():
                self._presentation.acquire(occurrence)
            case SemaphoreCreated():
                self._queues.create(occurrence.semaphore, occurrence.initial)
            case HostSetEvent():
                for execution in self._executions.values():
                    execution.events.host(occurrence.event)
            case Begun():
                self._recordings.pop(occurrence.command_buffer, None)
            case FenceReset():
                for fence in occurrence.fences:
                    self._queues.forget_fence(fence)
            case Destroyed():
                for context in self._contexts():
                    context.forget(occurrence.space, occurrence.span)
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

    def _recorded(self, occurrence: Recorded) -> Iterator[Finding]:
        command = occurrence.command
        for effect in command.effects:
            if isinstance(effect, Unmodelled):
                self._count(effect.what)
        recording = self._recordings.get(occurrence.command_buffer)
        if recording is None:
            execution = self._make_execution(self._make_context(0))
            recording = self._recordings[occurrence.command_buffer] = Recording(execution)
        place = Place(command.call, command.name, command.site, occurrence.command_buffer)
        for result in recording.execution.run(command, place, occurrence.queue_flags):
            yield from self._report.recorded_events(result.findings, recording.reported)
            if result.hits:
                yield from self._report.recorded(result.hits, result.place, recording.reported)

    def _judged(self, batches: Iterator[Batch]) -> Iterator[Finding]:
        for batch in batches:
            queue = batch.submit.queue
            execution = self._executions.get(queue)
            if execution is None:
                execution = self._executions[queue] = self._make_execution(self._context)
            for position, (buffer, commands) in enumerate(batch.submission.buffers):
                recording = self._recordings.get(buffer)
                known = recording.reported if recording is not None else set()
                for command in commands:
                    place = Place(command.call, command.name, command.site, buffer, *batch.tag, position, queue)
                    for result in execution.run(command, place, batch.submit.queue_flags):
                        yield from self._report.events(result.findings, known)
                        if result.hits:
                            yield from self._report.submitted(result.hits, result.place, known)

    # -- the host ------------------------------------------------------------------------------------------------------

    def _host_waited(self, occurrence: HostWaited) -> None:
        """Work that the host has waited for no longer conflicts with anything (SYNC_RULES 2.11, host waits)."""
        for fence in occurrence.fences:
            self._queues.wait_fence(fence)
            self._presentation.wait_fence(fence)
        if not occurrence.fences:
            self._queues.wait_idle(occurrence.queue)

    def _host_wrote(self, occurrence: HostWrote) -> Iterator[Finding]:
        """Host writes are visible to all later submits; unfinished device work conflicts with them."""
        place = Place(occurrence.call, "host write", occurrence.site)
        return self._host_conflicts(place, occurrence.memory, occurrence.memory, (occurrence.span,), True)

    def _host_accessed(self, occurrence: HostAccess) -> Iterator[Finding]:
        """The call itself reads or writes on the host: only what the host has waited for is ordered before it."""
        place = Place(occurrence.call, occurrence.name, occurrence.site)
        spans = occurrence.spans
        return self._host_conflicts(place, occurrence.space, occurrence.resource, spans, occurrence.write)

    def _host_conflicts(
        self, place: Place, space: int, resource: int, spans: Iterable[Span], write: bool
    ) -> Iterator[Finding]:
        hits: list[Hit] = []
        for begin, end in spans:
            for span, entry in self._context.unfinished(space, begin, end):
                state = entry.slot.find().state
                if write and entry.reads:
                    hits.append(
                        Hit(WRITE_AFTER_READ, span, HOST_WRITE, entry.reads[0], state.reads[0].sync, state, resource)
                    )
                elif entry.write is not None and state.write is not None:
                    kind, sync = (WRITE_AFTER_WRITE, HOST_WRITE) if write else (READ_AFTER_WRITE, HOST_READ)
                    hits.append(Hit(kind, span, sync, entry.write, state.write.sync, state, resource))
        for finding, _ in self._report.findings(hits, place):
            finding.layer_silent = HOST_UNTRACKED
            yield finding


HOST_UNTRACKED = "the Khronos layer does not track host accesses (a limitation that it documents)"
