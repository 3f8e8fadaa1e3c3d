"""Secondary command buffers run from a primary one (specification: "Secondary Command Buffer Execution")."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from vkharness.commands.contents.content_steps import RunsSecondaries, Step
from vkharness.commands.drawing.transform_feedback import under_condition
from vkharness.commands.handlers import command
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.commands.rendering.attachment_access import inherited
from vkharness.commands.rendering.dynamic_rendering import inherited_clears
from vkharness.trace.effects import Command, Effect, Execute, Unmodelled
from vkharness.trace.inherited import InheritedTargets
from vkharness.trace.work_budget import A_COMMAND, spend


@command("vkCmdExecuteCommands")
def execute_commands(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Runs the commands that the secondaries hold now, since recording one again would make this command buffer
    invalid.

    A secondary inherits no bindings, and afterwards nothing is bound in the primary.
    """
    held: list[tuple[int, Sequence[Command]]] = []
    steps: list[tuple[Step, ...]] = []
    for id in args["pCommandBuffers"] or ():
        secondary = objects.get(CommandBuffer, id)
        if secondary is None:
            yield Unmodelled("a secondary command buffer whose recording was not seen")
        else:
            buffer.has_late = buffer.has_late or secondary.has_late
            buffer.inside += secondary.weight
            spend(A_COMMAND * secondary.weight, "steps of executed commands")
            commands: Sequence[Command] = secondary.commands.snapshot()
            made = chain.from_iterable(plan.effects for plan in secondary.commands.plans)
            if any(isinstance(effect, InheritedTargets) for effect in made):
                # Clears are told apart from draws by their effect, and come first.
                commands = inherited(objects, inherited_clears(commands, buffer.rendering), buffer.rendering)
            held.append((id, under_condition(commands, buffer.condition) if buffer.condition else commands))
            steps.append(tuple(secondary.steps.all()))
            buffer.depends |= secondary.depends
    if objects.debug.has_labels:
        objects.debug.executes(buffer.id, (id for id, _ in held))
    buffer.unbind()
    if held:
        buffer.steps.append(RunsSecondaries(len(buffer.commands), tuple(steps)))
        yield Execute(tuple(held))
