"""Push constants that the state of a command buffer leaves open, as no access depends on them.

Most programs push other words before each draw, and most of these words are colors or matrices. While no pipeline is
bound whose accesses depend on pushed words, a push is no part of the state (`vkharness.commands.said_states`), but that
it sets these bytes is: the command buffer has them. The native core notes them there itself once `OpenConstants` stands
for pushes of so many bytes to this offset.
"""

from __future__ import annotations

from typing import Any

from vkharness.commands.drawing.shaders import stage_uses
from vkharness.commands.known_saying import OpenSaying
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.commands.said_state import Parts
from vkharness.spec.enums import VkPipelineBindPoint

PUSHES = "vkCmdPushConstants"
"""The command whose sayings may be `OpenConstants` together."""
NUMBERS = ("offset", "size")
"""Its members that say which bytes it pushes."""


class OpenConstants(OpenSaying):
    """Stands for all pushes of so many bytes to one offset."""

    __slots__ = ("offset",)

    def __init__(self, buffer: CommandBuffer, offset: int, era: int) -> None:
        super().__init__(PUSHES, {}, buffer, era)
        self.offset = offset

    def bring(self, buffer: CommandBuffer) -> None:
        """Pushes the bytes that the command buffer has."""
        buffer.constants.write(self.offset, buffer.pushed[self])


class OpenPushes:
    """Pushes that states leave open. The command buffer has what stands for them, and goes with it."""

    def __init__(self, objects: ObjectState) -> None:
        self._objects = objects

    def push(self, buffer: CommandBuffer, args: dict[str, Any], era: int) -> OpenConstants | None:
        """Notes what is pushed; what stands for that in states. None where accesses may depend on it."""
        data, bound = args.get("pValues"), [each for each in buffer.pipelines.values() if each.stages]
        if not isinstance(data, bytes) or not bound or buffer.pushes_count:
            return None
        if any(stage_uses(self._objects, each).pushed for each in bound):
            return None
        known = (
            each for each, held in buffer.pushed.items() if len(held) == len(data) and isinstance(each, OpenConstants)
        )
        found = next((each for each in known if (each.offset, each.era) == (args["offset"], era)), None)
        if found is None:
            buffer.pushed = {each: held for each, held in buffer.pushed.items() if getattr(each, "era", era) == era}
            found = OpenConstants(buffer, args["offset"], era)
        buffer.pushed[found] = data
        return found

    def count(self, buffer: CommandBuffer, name: str, held: Parts) -> bool:
        """Whether what a command does that reads state depends on what is left open. From then on nothing is left open
        in this command buffer."""
        if not any(type(each) is OpenConstants for each in held.values()):
            return False
        point = VkPipelineBindPoint.COMPUTE if name.startswith("vkCmdDispatch") else VkPipelineBindPoint.GRAPHICS
        pipeline = buffer.pipelines.get(point)
        if pipeline is None or not pipeline.stages or not stage_uses(self._objects, pipeline).pushed:
            return False
        buffer.pushes_count = True
        return True
