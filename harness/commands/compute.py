"""Dispatches: the accesses of the bound compute shader (rules.md#shaders)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness.commands.drawing.invocations import UNKNOWN_INVOCATIONS, dispatched
from harness.commands.drawing.shaders import shader_effects
from harness.commands.handlers import command
from harness.commands.object_state import CommandBuffer, ObjectState
from harness.commands.transfer import buffer_access
from harness.spec.enums import VkPipelineBindPoint
from harness.spec.scopes import ACCESS_KIND
from harness.trace.effects import Effect

INDIRECT_READ = ACCESS_KIND["SYNC_DRAW_INDIRECT_INDIRECT_COMMAND_READ"].index
DISPATCH_INDIRECT_BYTES = 12
NO_BASE = (0, 0, 0)


@command("vkCmdDispatch", "vkCmdDispatchBase")
def dispatch(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """The shader's accesses. A dispatch without workgroups runs nothing."""
    x, y, z = args["groupCountX"], args["groupCountY"], args["groupCountZ"]
    if not (x and y and z):
        return ()
    based = "baseGroupX" in args
    base = (args["baseGroupX"], args["baseGroupY"], args["baseGroupZ"]) if based else NO_BASE
    return shader_effects(objects, buffer, VkPipelineBindPoint.COMPUTE, dispatched(base, (x, y, z)))


@command("vkCmdDispatchIndirect")
def dispatch_indirect(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads one VkDispatchIndirectCommand, then runs the shader."""
    source = objects.buffer(args["buffer"])
    if source is not None:
        yield from buffer_access(INDIRECT_READ, source, [source.span(args["offset"], DISPATCH_INDIRECT_BYTES)])
    yield from shader_effects(objects, buffer, VkPipelineBindPoint.COMPUTE, UNKNOWN_INVOCATIONS)
