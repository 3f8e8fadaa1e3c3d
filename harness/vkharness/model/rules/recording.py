"""Command buffers that are recorded and never executed. They are judged alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vkharness.model.command_buffer_run import CommandBufferRun
from vkharness.model.opinion import Conflict
from vkharness.model.past_access import is_write
from vkharness.model.program import Program
from vkharness.trace.effects import Access, Command, CommandBufferReset, Execute, Recorded, Submitted
from vkharness.trace.open_commands import is_open, may_access


def recorded(program: Program, effect: Recorded) -> None:
    """A recorded command is kept until its command buffer is executed, since its conflicts depend on where that
    happens."""
    program.unexecuted.setdefault(effect.command_buffer, []).append(effect)


def begun(program: Program, effect: CommandBufferReset) -> None:
    """A command buffer that is reset or begun again loses its commands. They are judged now if they were never
    executed.
    Rule: rules.md#recording-replaces-what-was-recorded.
    """
    held = program.unexecuted.pop(effect.command_buffer, None)
    if held:
        alone(program, effect.command_buffer, held)


def alone(program: Program, buffer: int, held: list[Recorded]) -> None:
    """Judges the commands of one command buffer as if an idle device executed them.

    Conflicts among them remain whatever comes before, so that this is the least that can happen to them. But contents
    of memory may decide what a command between the two accesses, and that may change a conflict: with a read between
    two writes, the second one needs an order after the read alone.
    Rules: rules.md#hazards-are-found-while-recording, rules.md#most-recent-access.
    """
    by_itself = Program(program.rules)
    commands: list[Command] = [each.command for each in held]
    nowhere = Submitted(0, "", None, 0, held[0].queue_flags, (), 0)
    for _ in CommandBufferRun(by_itself, nowhere, by_itself.queue(0).stream).buffer(buffer, commands, 0, 0):
        pass
    undecided = list(_undecided(commands))
    program.opinion.conflicts += [
        each
        for each in by_itself.opinion.conflicts
        if not any(_lies_between(command, access, each) for command, access in undecided)
    ]
    program.opinion.remarks += by_itself.opinion.remarks


def _undecided(commands: Iterable[Command]) -> Iterator[tuple[int, Access]]:
    """Yields the accesses that commands may make as contents decide, with the calls that record the commands."""
    for command in commands:
        if is_open(command):
            yield from ((command.call, access) for access in may_access(command))
        for effect in command.effects:
            if isinstance(effect, Execute):
                for _, held in effect.buffers:
                    yield from ((command.call, access) for _, access in _undecided(held))


def _lies_between(call: int, access: Access, conflict: Conflict) -> bool:
    prior, current = conflict.prior, conflict.current
    writes = prior.write and current.write
    if conflict.resource != access.resource or not (writes or is_write(access)):
        return False
    first, second = (each.place.executed_by or (each.call,) for each in (prior, current))
    shared = (begin < end and start < until for begin, until in conflict.spans for start, end in access.spans)
    return first[0] < call < second[0] and any(shared)


def finish(program: Program) -> None:
    """Ends the trace. Work that still waits for a semaphore is not executed. Waits for events end."""
    program.release(program.queues.values())
    for buffer, held in program.unexecuted.items():
        alone(program, buffer, held)
    program.unexecuted.clear()
