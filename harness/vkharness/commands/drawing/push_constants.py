"""Push constants: the bytes that shaders get from the command buffer (specification: "Push Constant Updates")."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vkharness.commands.handlers import command, folded
from vkharness.commands.object_state import NOTHING, CommandBuffer, ObjectState
from vkharness.trace.effects import Effect


@command("vkCmdPushConstants", "vkCmdPushConstants2KHR")
def push_constants(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Remembers the bytes, which are no memory. All stages that share a byte must be given it at once."""
    given = folded(args, "pPushConstantsInfo")
    data = given.get("pValues")
    if isinstance(data, bytes):
        buffer.constants.write(given["offset"], data)
    return NOTHING
