"""Command buffers that are recorded and never executed. They are judged alone."""

from __future__ import annotations

from harness.model.command_buffer_run import CommandBufferRun
from harness.model.program import Program
from harness.trace.effects import Command, CommandBufferReset, Recorded, Submitted


def recorded(program: Program, effect: Recorded) -> None:
    """A recorded command is kept until its command buffer is executed, since its conflicts depend on where that
    happens."""
    program.unexecuted.setdefault(effect.command_buffer, []).append(effect)


def begun(program: Program, effect: CommandBufferReset) -> None:
    """A command buffer that is reset or begun again loses its commands. They are judged now if they were never
    executed."""
    held = program.unexecuted.pop(effect.command_buffer, None)
    if held:
        alone(program, effect.command_buffer, held)


def alone(program: Program, buffer: int, held: list[Recorded]) -> None:
    """Judges the commands of one command buffer as if an idle device executed them.

    Conflicts among them remain whatever comes before, so that this is the least that can happen to them.
    """
    by_itself = Program(program.rules)
    commands: list[Command] = [each.command for each in held]
    nowhere = Submitted(0, "", None, 0, held[0].queue_flags, (), 0)
    for _ in CommandBufferRun(by_itself, nowhere, by_itself.queue(0).stream).buffer(buffer, commands, 0, 0):
        pass
    program.opinion.conflicts += by_itself.opinion.conflicts


def finish(program: Program) -> None:
    """Ends the trace. Work that still waits for a semaphore is not executed. Waits for events end."""
    program.release(program.queues.values())
    for buffer, held in program.unexecuted.items():
        alone(program, buffer, held)
    program.unexecuted.clear()
