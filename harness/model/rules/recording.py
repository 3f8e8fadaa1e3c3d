"""Command buffers that are recorded and never executed: judged by themselves, as they are wrong wherever they run."""

from __future__ import annotations

from harness.model.command_buffer_run import CommandBufferRun
from harness.model.program import Program
from harness.trace.effects import Command, CommandBufferReset, Recorded, Submitted


def recorded(program: Program, effect: Recorded) -> None:
    """A command is kept until its command buffer is executed: where that happens decides what it conflicts with."""
    program.unexecuted.setdefault(effect.command_buffer, []).append(effect)


def begun(program: Program, effect: CommandBufferReset) -> None:
    """What a command buffer held is gone."""
    held = program.unexecuted.pop(effect.command_buffer, None)
    if held:
        alone(program, effect.command_buffer, held)


def alone(program: Program, buffer: int, held: list[Recorded]) -> None:
    """Commands of one command buffer conflict with one another whatever comes before: execution on an idle device is
    the least that can happen to them."""
    by_itself = Program(program.rules)
    commands: list[Command] = [each.command for each in held]
    nowhere = Submitted(0, "", None, 0, held[0].queue_flags, (), 0)
    CommandBufferRun(by_itself, nowhere, by_itself.queue(0).stream).buffer(buffer, commands, 0, 0)
    program.opinion.conflicts += by_itself.opinion.conflicts


def finish(program: Program) -> None:
    """The trace ends; what still waits for a signal is never executed, as far as it shows."""
    for buffer, held in program.unexecuted.items():
        alone(program, buffer, held)
    program.unexecuted.clear()
