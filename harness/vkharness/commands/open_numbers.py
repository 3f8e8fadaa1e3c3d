"""Numbers of commands that the state of a command buffer leaves open.

Most programs push other words before each draw, and most of these words are colors or matrices. A stencil mask decides
no access but by being zero, or whole. And where an index buffer is bound moves what draws read of it, and nothing else
(`vkharness.commands.drawing.numbered_draws`). So a command of `OPEN` sets its part of the state
(`vkharness.commands.said_states`) whatever its numbers are: the command buffer has these. The native core notes them
there itself once an `OpenNumbers` stands for such commands.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

from vkharness.commands.drawing.shaders import stage_uses
from vkharness.commands.handlers import COMMANDS
from vkharness.commands.known_saying import OpenSaying
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.commands.said_state import Parts
from vkharness.spec.command_classes import DRAWS_INDEXED
from vkharness.spec.enums import VkPipelineBindPoint

PUSHES = "vkCmdPushConstants"
INDICES = "vkCmdBindIndexBuffer"


class Sets(IntEnum):
    """Whether a command sets state that leaves its numbers open; ONCE: unless each recording says the same."""

    NOTHING = 0
    OPEN = 1
    ONCE = 2


class OpenCommand(NamedTuple):
    """A command that sets state, and the members of its arguments that the state leaves open."""

    numbers: tuple[str, ...]
    data: str = ""
    """Bytes of which the last number says how many there are: they are open, and the numbers are not."""
    apart: tuple[int, ...] = ()
    """The last bytes of numbers that mean something else than all others."""
    sets: Sets = Sets.OPEN
    is_open: Callable[[ObjectState, CommandBuffer], bool] = lambda objects, buffer: True
    """Whether no access depends on them otherwise than `numbered_draws` knows."""


def _no_access_reads_words(objects: ObjectState, buffer: CommandBuffer) -> bool:
    bound = [each for each in buffer.pipelines.values() if each.stages]
    return bool(bound) and not buffer.pushes_count and not any(stage_uses(objects, each).pushed for each in bound)


OPEN = {
    PUSHES: OpenCommand(("offset", "size"), data="pValues", is_open=_no_access_reads_words),
    INDICES: OpenCommand(("offset",), sets=Sets.ONCE),
    "vkCmdSetStencilCompareMask": OpenCommand(("compareMask",), apart=(0,)),
    "vkCmdSetStencilWriteMask": OpenCommand(("writeMask",), apart=(0, 0xFF)),
}
"""The commands whose sayings may be `OpenNumbers` together."""


class OpenNumbers(OpenSaying):
    """Stands for all commands that say the same as one beside their numbers, or data."""

    __slots__ = ("like",)

    def __init__(self, name: str, args: dict[str, Any], buffer: CommandBuffer, like: bytes, era: int) -> None:
        super().__init__(name, args, buffer, era)
        self.like = like
        """What they have in common, as the native core has it."""

    def numbers(self, buffer: CommandBuffer) -> tuple[int, ...]:
        """The numbers that the command buffer has."""
        count = len(OPEN[self.name].numbers)
        return struct.unpack_from(f"={count}Q", buffer.left_open[self])

    def bring(self, objects: ObjectState, buffer: CommandBuffer) -> None:
        """Sets what the command with the numbers, or data, that the command buffer has does."""
        what, numbers = OPEN[self.name], self.numbers(buffer)
        said: dict[str, Any] = dict(zip(what.numbers, numbers, strict=True))
        if what.data:
            begin = 8 * len(numbers)
            said = {what.data: buffer.left_open[self][begin : begin + numbers[-1]]}
        COMMANDS[self.name](objects, buffer, self.args | said)


def leave_open(
    objects: ObjectState,
    buffer: CommandBuffer,
    name: str,
    args: dict[str, Any],
    like: tuple[bytes, tuple[int, ...]],
    era: int,
) -> OpenNumbers | None:
    """Notes what a command of `OPEN` says; what stands for it in states. None where accesses may depend on it. `like`
    has what it has in common with others, and its numbers, behind them words of its data (`FlatPlans.like`)."""
    what, (common, numbers) = OPEN[name], like
    if not what.is_open(objects, buffer):
        return None
    known = (each for each in buffer.left_open if isinstance(each, OpenNumbers))
    found = next((each for each in known if (each.like, each.era) == (common, era)), None)
    if found is None:
        held = buffer.left_open.items()
        buffer.left_open = {each: kept for each, kept in held if getattr(each, "era", era) == era}
        found = OpenNumbers(name, args, buffer, common, era)
    buffer.left_open[found] = struct.pack(f"={len(numbers)}Q", *numbers)
    return found


def opened_indices(parts: Parts, name: str) -> tuple[OpenNumbers, ...]:
    """The bind of the index buffer that an indexed draw reads, if its state leaves open where that is."""
    bound = parts.get("indices") if name.startswith(DRAWS_INDEXED) else None
    return (bound,) if type(bound) is OpenNumbers else ()


def words_count(objects: ObjectState, buffer: CommandBuffer, name: str, held: Parts) -> bool:
    """Whether what a command does that reads state depends on pushed words that are left open. From then on none are in
    this command buffer."""
    if not any(type(each) is OpenNumbers and each.name == PUSHES for each in held.values()):
        return False
    point = VkPipelineBindPoint.COMPUTE if name.startswith("vkCmdDispatch") else VkPipelineBindPoint.GRAPHICS
    pipeline = buffer.pipelines.get(point)
    if pipeline is None or not pipeline.stages or not stage_uses(objects, pipeline).pushed:
        return False
    buffer.pushes_count = True
    return True
