"""The judge: replays every command's effects, in submission order, over one context for the device.

While a command buffer is recorded the same rules run over a context of its own, for early findings; a pair that was
reported there is not reported again when the command buffer is submitted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from vkharness.findings import Finding, Place
from vkharness.spans import Span
from vkharness.syncval.context import Context
from vkharness.syncval.event import Events
from vkharness.syncval.evidence import Describe, Reporter
from vkharness.syncval.execution import Execution, Result
from vkharness.syncval.formed_execution import make_execution
from vkharness.syncval.host import Host
from vkharness.syncval.object_usage import ObjectUsage
from vkharness.syncval.ownership import Ownership
from vkharness.syncval.places import PlacedBatch
from vkharness.syncval.present import Presentation
from vkharness.syncval.query import QueryOperations
from vkharness.syncval.queue import Batch, Queues
from vkharness.syncval.repeated_recordings import RecordingJudge
from vkharness.syncval.sparse_bindings import SparseBindings, space_of
from vkharness.syncval.unseen_writes import BuffersOf, UnseenWrites
from vkharness.trace import effects, host_effects, ownership_effects, query_effects
from vkharness.trace.effects import Command
from vkharness.trace.recorded_commands import RecordedCommands
from vkharness.trace.sparse_effects import BIND_SPARSE
from vkharness.trace.work_budget import begin_stream

WAITING = (effects.WaitEvents, effects.Execute)
"""Effects that may wait for an event."""


class Validator:
    """Consumes stream events, answers with findings. `unmodelled` counts what it cannot judge, by name.

    `is_host_visible` tells of a space whether it is memory that the host can map, `buffers_of` which buffers are on it.
    """

    def __init__(
        self,
        describe: Describe,
        is_host_visible: Callable[[int], bool] = lambda space: True,
        buffers_of: BuffersOf = lambda memory: [],
    ) -> None:
        begin_stream()
        self.unmodelled: dict[str, int] = {}
        self.before_finding: Callable[[], None] = lambda: None
        """Called before a finding is made of what is executed: it judges the recordings that wait."""
        self.submits = 0
        """Submits to queues so far."""
        self._context = Context(0)
        self._events = Events(self._context)
        self._queries = QueryOperations(self._events.order)
        self._queues = Queues(self._context, self._events.order)
        self._events.hear_of = self._queues.hear_of
        self._presentation = Presentation(self._context, self._queues)
        self._usage = ObjectUsage()
        self._executions: dict[int, Execution] = {}
        self._left: dict[int, Unexecuted] = {}
        """By queue, what was not executed of its paused batch."""
        self._report = Reporter(describe)
        self._recordings = RecordingJudge(self._report, self._count)
        self._ownership = Ownership(describe)
        self._bindings = SparseBindings(self._context, describe, self._queues.bind_batches.given_to)
        self._host = Host(self._context, self._report, is_host_visible, self._queues.paused)
        self.unseen = UnseenWrites(self._context, self._host.is_unseen, buffers_of)

    def consume(self, stream_event: effects.StreamEvent) -> list[Finding]:
        """Follows one stream event; the findings are those it causes."""
        match stream_event:
            case effects.Recorded():
                return self._recordings.record(stream_event)
            case effects.Submitted():
                if stream_event.name != BIND_SPARSE:
                    self.submits += 1
                    self._host.submitted()
                used = list(self._used(self._usage.submit(stream_event)))
                return used + list(self._judged(self._queues.submit(stream_event)))
            case effects.Acquired() | effects.FenceReset() | effects.Destroyed():
                return list(self._used(self._given_or_gone(stream_event)))
            case host_effects.HostWrote():
                self._ownership.wrote(stream_event.memory, (stream_event.span,))
                return list(self._host.wrote(stream_event, self._queues.holds_back))
            case host_effects.HostDeclaredRead():
                return list(self._host.read(stream_event))
            case host_effects.HostInvalidated():
                return list(self._host.invalidated(stream_event))
            case effects.Presented():
                return list(self._presented(stream_event))
            case host_effects.HostAccess():
                if stream_event.write:
                    self._ownership.wrote(stream_event.space, stream_event.spans)
                return list(self._host.accessed(stream_event))
            case effects.HostWaited():
                return list(self._host_waited(stream_event))
            case host_effects.HostWaitedSemaphores():
                return list(self._host_waited_semaphores(stream_event))
            case host_effects.HostSetEvent():
                return list(self._host_set(stream_event))
            case host_effects.HostSawEvent():
                self._events.host_saw(stream_event)
            case query_effects.HostQueries():
                return list(self._report.events(self._queries.host(stream_event), set()))
            case effects.PayloadShared():
                self._ownership.active = True
                if stream_event.outside:
                    self._usage.share(stream_event.payload)
                return list(self._judged(self._queues.share(stream_event.payload, stream_event.outside)))
            case host_effects.HostSignaled():
                self._usage.host_signal(stream_event)
                return list(self._judged(self._queues.host_signal(stream_event.semaphore, stream_event.value)))
            case _:
                self._follow(stream_event)
        return []

    def judge_recording(self, command_buffer: int, commands: RecordedCommands, queue_flags: int) -> list[Finding]:
        """Judges what was recorded into a command buffer since that was done last; see `RecordingJudge.judge`. Who
        calls this gives no `Recorded`."""
        return self._recordings.judge(command_buffer, commands, queue_flags)

    def let_wait(self, command_buffer: int, commands: RecordedCommands, queue_flags: int) -> bool:
        """Whether a command buffer that is ended need not be judged until it is executed; see `RecordingJudge.wait`."""
        return self._recordings.wait(command_buffer, commands, queue_flags)

    def waits(self, command_buffer: int) -> bool:
        """Whether a command buffer was let wait, and neither judged nor executed without a conflict since."""
        return self._recordings.waits(command_buffer)

    def end_recording(self, command_buffer: int) -> None:
        """A command buffer is ended, and all of its commands are judged."""
        self._recordings.end(command_buffer)

    def _follow(self, stream_event: effects.StreamEvent) -> None:
        """StreamEvents that cause no finding by themselves."""
        match stream_event:
            case host_effects.HostFlushed():
                self._host.flushed(stream_event, self._queues.holds_back)
            case effects.SemaphoreCreated():
                self._queues.create(stream_event.semaphore, stream_event.initial)
                self._usage.create(stream_event)
            case host_effects.FenceCreated():
                self._usage.create_fence(stream_event)
            case host_effects.DeviceLost():
                self._usage.is_lost = True
            case host_effects.SignalMoved():
                self._queues.move(stream_event.source, stream_event.target)
                self._usage.move(stream_event.source, stream_event.target)
            case host_effects.UnseenSemaphore():
                self._usage.share(stream_event.semaphore)
            case effects.QueueObtained():
                self._ownership.obtained(stream_event.queue, stream_event.family)
            case ownership_effects.SharedResource():
                self._ownership.share(stream_event)
            case effects.CommandBufferReset():
                self._recordings.reset(stream_event.command_buffer, stream_event.freed)
            case host_effects.MemoryMapped():
                self.unseen.mapped(stream_event)
            case host_effects.MemoryUnmapped():
                self.unseen.unmapped(stream_event.memory)
            case effects.UnmodelledCall():
                self._count(stream_event.what)
            case _:
                self._count(type(stream_event).__name__)

    def _given_or_gone(
        self, stream_event: effects.Acquired | effects.FenceReset | effects.Destroyed
    ) -> Iterator[Finding]:
        match stream_event:
            case effects.Acquired():
                self._presentation.acquire(stream_event)
                yield from self._usage.acquire(stream_event)
            case effects.FenceReset():
                for fence in stream_event.fences:
                    self._queues.forget_fence(fence)
                    self._presentation.forget_fence(fence)
                yield from self._usage.reset(stream_event)
            case effects.Destroyed():
                self._forget(stream_event)
                yield from self._usage.destroyed(stream_event)

    def _forget(self, gone: effects.Destroyed) -> None:
        self.unseen.destroyed(gone)
        self._context.forget(gone.space, gone.span, submitted=True)
        self._recordings.forget(gone.space, gone.span)
        self._context.forget(space_of(gone.resource), None)
        self._queues.destroy(gone.space)
        self._presentation.forget(gone.space)
        self._ownership.forget(gone)

    def written(self, memory: int, begin: int, end: int) -> list[Span]:
        """Addresses of a memory object that submitted work writes and that the host does not know to be complete."""
        return [span for span, entry in self._context.unfinished(memory, begin, end) if entry.write is not None]

    def _count(self, what: str) -> None:
        self.unmodelled[what] = self.unmodelled.get(what, 0) + 1

    # -- submission ----------------------------------------------------------------------------------------------------

    def _judged(self, batches: Iterator[Batch]) -> Iterator[Finding]:
        """Judges batches, and then those that waited for an event which is signaled now."""
        for batch in batches:
            yield from self._run(batch)
        while (queue := self._events.can_go_on()) is not None:
            for batch in self._queues.resume(queue):
                yield from self._run(batch)
        if self._context.defers and not self._queues.holds_back:
            self._queues.host.settle()

    def _used(self, found: Iterable[Finding]) -> Iterator[Finding]:
        """Findings about semaphores and fences."""
        several = [] if self._usage.is_lost else list(found)
        if several:
            self.before_finding()
        return self._report.events(several, set())

    def _run(self, batch: Batch) -> Iterator[Finding]:
        """Judges a batch with its waits and signals, unless it stops at a wait for an event."""
        if batch.submit.queue not in self._left:
            yield from self._used(self._usage.begin(batch))
        if batch.submission.binds is not None:
            yield from self._report.events(list(self._bindings.change(batch)), set())
        else:
            yield from self._run_commands(batch)
        if batch.submit.queue not in self._left:
            yield from self._used(self._usage.end(batch))

    def _run_commands(self, batch: Batch) -> Iterator[Finding]:
        """Judges the commands of a batch, up to one that waits for an event which nothing has signaled.

        Rule: rules.md#the-host-sets-an-event-before-the-submit.
        """
        queue, family = batch.submit.queue, batch.submit.family
        self._host.begin(queue, batch.tag, batch.known)
        execution = self._executions.get(queue)
        if execution is None:
            execution = make_execution(self._context, self._events, self._queries, self._bindings)
            self._executions[queue] = execution
            execution.family = family
            self._ownership.obtained(queue, family)
        left, places = self._left.pop(queue, None), self._context.places
        if left is None:
            execution.batch = places.open(queue, batch.tag)
            left = Unexecuted(batch, execution.batch)
        flags = batch.submit.queue_flags
        while left.has_more():
            begin, number = left.at, execution.batch.next
            left.at, results = execution.run_ahead(left.commands, begin, left.end, flags)
            if left.at == begin:
                command = left.commands[begin]
                waits = bool(command.effects) and type(command.effects[0]) in WAITING
                if waits and self._events.blocks(command, places.place(number)):
                    self._left[queue] = left
                    self._queues.pause(batch)
                    return
                left.at += 1
                results = execution.run(command, flags)
            at = begin
            for result in results:  # of secondaries, whose commands have place numbers of their own, what runs them
                before, at = at, min(begin + result.number - number, left.at - 1)
                yield from self._followed(execution, left, before, at, number + before - begin)
                yield from self._submitted(result, left.buffer)
            yield from self._followed(execution, left, at, left.at, number + at - begin)
            if left.at == left.end:
                self._recordings.executed(left.buffer, left.commands, flags)

    def _followed(self, execution: Execution, left: Unexecuted, begin: int, end: int, number: int) -> Iterator[Finding]:
        """Yields the findings about queue family ownership of resources that commands use; `number` is the place number
        of the first command."""
        owners, places = self._ownership, self._context.places
        if not (owners.active or execution.transfers):
            owners.is_blind = owners.is_blind or begin < end
            return
        for at in owners.unsettled(left.commands, begin, end):
            found = list(owners.follow(left.commands[at], places.place(number + at - begin), execution.family))
            if found:
                self.before_finding()
            yield from self._report.events(found, self._recordings.reported(left.buffer))

    def _submitted(self, result: Result, buffer: int) -> Iterator[Finding]:
        """The findings of what a command met that a command buffer executes."""
        self.before_finding()
        known = self._recordings.reported(buffer)
        yield from self._report.events(result.findings, known)
        yield from self._report.submitted(result.hazards, result.place, known)

    def _released(self, queues: Iterable[int]) -> Iterator[Finding]:
        """Waits for events end on these queues, as the host or the end of the stream tells, whatever signaled them."""
        for queue in list(queues):
            self._events.released.add(queue)
        yield from self._judged(iter(()))
        self._events.released.clear()

    def finish(self) -> list[Finding]:
        """Ends the stream: judges what waits for events that nothing signaled."""
        return list(self._released(self._queues.paused))

    def _presented(self, stream_event: effects.Presented) -> Iterator[Finding]:
        if self._ownership.active:
            place = Place(stream_event.call, stream_event.name, stream_event.site, queue=stream_event.queue)
            yield from self._report.events(list(self._ownership.present(stream_event, place)), set())
        yield from self._used(self._usage.present(stream_event))
        for hazards, place in self._presentation.present(stream_event):
            yield from self._report.findings(hazards, place)

    # -- the host ------------------------------------------------------------------------------------------------------

    def _host_waited(self, stream_event: effects.HostWaited) -> Iterator[Finding]:
        """Work that the host has waited for no longer conflicts with anything (rules.md#fence-and-host-wait)."""
        if stream_event.fences:
            yield from self._released(self._queues.behind(stream_event.fences))
        else:
            yield from self._released(each for each in self._queues.paused if stream_event.queue in (0, each))
        for fence in stream_event.fences:
            self._queues.wait_fence(fence)
            self._presentation.wait_fence(fence)
        if not stream_event.fences:
            self._queues.wait_idle(stream_event.queue)
        self._usage.waited(stream_event)
        self._host.waited()

    def _host_waited_semaphores(self, stream_event: host_effects.HostWaitedSemaphores) -> Iterator[Finding]:
        if not all(self._queues.semaphores.reaches(*each) for each in stream_event.values):
            yield from self._released(self._queues.paused)
        for semaphore, value in stream_event.values:
            self._queues.wait_semaphore(semaphore, value)
        self._usage.waited_semaphores(stream_event)
        self._host.waited()

    def _host_set(self, stream_event: host_effects.HostSetEvent) -> Iterator[Finding]:
        yield from self._report.events(self._events.host(stream_event), set())
        yield from self._judged(iter(()))


class Unexecuted:
    """The commands of a batch that are still to be executed."""

    def __init__(self, batch: Batch, placed: PlacedBatch) -> None:
        """`placed` is told of command buffers as they come."""
        self._buffers = deque(enumerate(batch.submission.buffers))
        self._placed = placed
        self.buffer = 0
        """The command buffer of the next command."""
        self.commands: Sequence[Command] = ()
        """Its commands."""
        self.at = self.end = 0
        """The place of the next command among them, and behind the last one."""

    def has_more(self) -> bool:
        """Whether there is a next command."""
        while self.at >= self.end:
            if not self._buffers:
                return False
            position, (self.buffer, self.commands) = self._buffers.popleft()
            self._placed.enter(self.buffer, position, self.commands)
            self.at, self.end = 0, len(self.commands)
        return True
