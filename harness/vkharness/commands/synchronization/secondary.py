"""Secondary command buffers run from a primary one (specification: "Secondary Command Buffer Execution")."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
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
from vkharness.trace.rendering_state import RenderingState
from vkharness.trace.work_budget import A_COMMAND, spend

NOT_SEEN = "a secondary that draws, executed outside a render pass instance that was seen"


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
        if secondary is not None:
            buffer.has_late = buffer.has_late or secondary.has_late
            buffer.inside += secondary.weight
            spend(A_COMMAND * secondary.weight, "steps of executed commands")
            commands: Sequence[Command] = secondary.commands.snapshot()
            if _leaves_targets(secondary):
                if buffer.inheritance is not None:  # whoever executes this one knows the instance
                    buffer.leaves_targets = True
                elif buffer.rendering is None:
                    yield Unmodelled(NOT_SEEN)
                else:
                    commands = _in_instance(objects, commands, buffer.rendering)
            held.append((id, under_condition(commands, buffer.condition) if buffer.condition else commands))
            steps.append(tuple(secondary.steps.all()))
            buffer.depends |= secondary.depends
    if objects.debug.has_labels:
        objects.debug.executes(buffer.id, (id for id, _ in held))
    buffer.unbind()
    if held:
        buffer.steps.append(RunsSecondaries(len(buffer.commands), tuple(steps)))
        yield Execute(tuple(held))


def _leaves_targets(secondary: CommandBuffer) -> bool:
    """Whether commands of it, or of those that it executes, access the attachments of an instance that it inherits."""
    made = chain.from_iterable(plan.effects for plan in secondary.commands.plans)
    return secondary.leaves_targets or any(isinstance(effect, InheritedTargets) for effect in made)


def _in_instance(objects: ObjectState, commands: Sequence[Command], rendering: RenderingState) -> Sequence[Command]:
    """The commands of a secondary with the accesses of the render pass instance in which it is executed."""
    # Clears are told apart from draws by their effect, and come first.
    made = inherited(objects, inherited_clears(commands, rendering), rendering)
    return tuple(_inside(objects, each, rendering) for each in made)


def _inside(objects: ObjectState, command: Command, rendering: RenderingState) -> Command:
    if not any(isinstance(effect, Execute) for effect in command.effects):
        return command
    return command.with_effects(
        tuple(
            replace(effect, buffers=tuple((id, _in_instance(objects, held, rendering)) for id, held in effect.buffers))
            if isinstance(effect, Execute)
            else effect
            for effect in command.effects
        )
    )
