"""Dispatches: the accesses of the bound compute shader (rules.md#shaders)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vkharness.commands.drawing.by_contents import MESH, IndirectDispatch, Parameters, parameters_of
from vkharness.commands.drawing.by_loads import by_loads
from vkharness.commands.drawing.invocations import UNKNOWN_INVOCATIONS, dispatched
from vkharness.commands.drawing.plans_by_sets import Drawn
from vkharness.commands.drawing.shaders import shader_effects, shader_plan
from vkharness.commands.handlers import command
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.spec.enums import VkPipelineBindPoint
from vkharness.trace.effects import Effect

NO_BASE = (0, 0, 0)


@command("vkCmdDispatch", "vkCmdDispatchBase")
def dispatch(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """The shader's accesses. A dispatch without workgroups runs nothing."""
    x, y, z = args["groupCountX"], args["groupCountY"], args["groupCountZ"]
    if not (x and y and z):
        return ()
    based = "baseGroupX" in args
    base = (args["baseGroupX"], args["baseGroupY"], args["baseGroupZ"]) if based else NO_BASE
    run = dispatched(base, (x, y, z))
    plan = shader_plan(objects, buffer, VkPipelineBindPoint.COMPUTE, run)
    effects = plan.effects
    found = by_loads(objects, buffer, VkPipelineBindPoint.COMPUTE, run, effects)
    return plan if found is effects else found


@command("vkCmdDispatchIndirect")
def dispatch_indirect(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads one VkDispatchIndirectCommand, then runs the shader."""
    return dispatch_by_parameters(objects, buffer, parameters_of(objects, args, 1, MESH))


def dispatch_by_parameters(
    objects: ObjectState, buffer: CommandBuffer, parameters: Parameters | None
) -> Iterable[Effect]:
    """Dispatches by numbers of workgroups in memory."""
    reads = () if parameters is None or parameters.counter is not None else parameters.reads(parameters.most)
    if parameters is not None:
        dispatch = IndirectDispatch(parameters, sure=len(reads))
        foreseen = buffer.steps.foresight(objects.contents.memory)
        dispatch.idle = foreseen is not None and dispatch.is_idle(foreseen)
        buffer.defer(dispatch, objects.contents)
    objects.shaders.source = objects.shaders.drawn = None
    effects = shader_effects(objects, buffer, VkPipelineBindPoint.COMPUTE, UNKNOWN_INVOCATIONS)
    source = objects.shaders.source
    found = by_loads(objects, buffer, VkPipelineBindPoint.COMPUTE, UNKNOWN_INVOCATIONS, effects)
    made = (*reads, *found)
    if source is not None and found is effects:
        objects.shaders.drawn = Drawn(made, source[1], reads, ())
    return made
