"""Numbers of commands that the state of a command buffer leaves open.

Most programs push other words before each draw, and most of these words are colors or matrices. A stencil mask decides
no access but by being zero, or whole. And where index and vertex buffers are bound moves what draws read of them, and
nothing else (`vkharness.commands.drawing.numbered_draws`). So a command of `OPEN` sets its part of the state
(`vkharness.commands.said_states`) whatever its numbers are: the command buffer has these. The native core notes them
there itself once an `OpenNumbers` stands for such commands.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable
from enum import IntEnum
from typing import Any, NamedTuple

from vkharness.commands.drawing.dynamic_state import vertex_input
from vkharness.commands.drawing.shaders import stage_uses
from vkharness.commands.handlers import COMMANDS
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.commands.said_state import KnownSaying, Parts
from vkharness.spec.command_classes import DRAWS_INDEXED
from vkharness.spec.enums import VkPipelineBindPoint
from vkharness.trace.graphics_state import GraphicsPipeline

NUMBER_BYTES = 8
PUSHES = "vkCmdPushConstants"
INDICES = "vkCmdBindIndexBuffer"
VERTICES = "vkCmdBindVertexBuffers"
MOST_OPEN = 1 << 10
"""The most `OpenNumbers` of one command buffer: a program may bind fresh buffers in each frame."""


class Sets(IntEnum):
    """Whether a command sets state that leaves its numbers open; ONCE: unless each recording says the same."""

    NOTHING = 0
    OPEN = 1
    ONCE = 2


class OpenCommand(NamedTuple):
    """A command that sets state, and the members of its arguments that the state leaves open."""

    numbers: tuple[str, ...]
    several: str = ""
    """The list of numbers, which are all of them, but for the ids of as many buffers."""
    buffers: str = ""
    """The list of these."""
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
    VERTICES: OpenCommand((), several="pOffsets", buffers="pBuffers", sets=Sets.ONCE),
    "vkCmdSetStencilCompareMask": OpenCommand(("compareMask",), apart=(0,)),
    "vkCmdSetStencilWriteMask": OpenCommand(("writeMask",), apart=(0, 0xFF)),
}
"""The commands whose sayings may be `OpenNumbers` together."""


class OpenPart(NamedTuple):
    """What a number says of a part of the state."""

    part: Hashable
    is_buffer: bool = False
    """Whether it is the id of the buffer that is bound there, and not where in the buffer."""


class OpenNumbers(KnownSaying):
    """Stands for all commands that say the same as one beside their numbers, or data: the command buffer has these."""

    __slots__ = ("like",)

    def __init__(self, name: str, args: dict[str, Any], buffer: CommandBuffer, like: bytes, era: int) -> None:
        super().__init__(name, args, buffer, era)
        self.like = like
        """What they have in common, as the native core has it."""

    def numbers(self, buffer: CommandBuffer) -> tuple[int, ...]:
        """The numbers that the command buffer has."""
        held, what = buffer.left_open[self], OPEN[self.name]
        count = len(held) // NUMBER_BYTES if what.several else len(what.numbers)
        return struct.unpack_from(f"={count}Q", held)

    def says(self) -> tuple[OpenPart, ...]:
        """What each number of a bind says."""
        first = self.args.get("firstBinding")
        if first is None:
            return (OpenPart("indices"),)
        bindings = [("vertices", first + at) for at in range(len(self.args["pOffsets"]))]
        return tuple([OpenPart(each, is_buffer) for is_buffer in (True, False) for each in bindings])

    def bring(self, objects: ObjectState, buffer: CommandBuffer) -> None:
        """Sets what the command with the numbers, or data, that the command buffer has does."""
        what, numbers = OPEN[self.name], self.numbers(buffer)
        said: dict[str, Any] = dict(zip(what.numbers, numbers, strict=False))
        if what.several:
            half = len(numbers) // 2
            said = {what.buffers: list(numbers[:half]), what.several: list(numbers[half:])}
        if what.data:
            begin = NUMBER_BYTES * len(numbers)
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
        if len(buffer.left_open) >= MOST_OPEN:
            return None
        found = OpenNumbers(name, args, buffer, common, era)
    buffer.left_open[found] = struct.pack(f"={len(numbers)}Q", *numbers)
    return found


class OpenPlaces(NamedTuple):
    """The binds of the buffers that a draw reads of which its state leaves open where these are: those of vertex
    buffers, and behind them that of the index buffer."""

    binds: tuple[OpenNumbers, ...]
    numbers: tuple[int, ...]
    """All of them, as the command buffer has them."""
    said: tuple[OpenPart | None, ...]
    """What each says; None where another bind does so, or the draw reads nothing there."""

    @property
    def reads(self) -> set[Hashable]:
        """The parts of the state that are open."""
        return {each.part for each in self.said if each is not None}

    @property
    def buffers(self) -> set[int]:
        """The ids of the buffers that are open, too."""
        several = zip(self.said, self.numbers, strict=True)
        return {number for each, number in several if each is not None and each.is_buffer}


def opened_places(buffer: CommandBuffer, parts: Parts, name: str) -> OpenPlaces:
    """Those of a draw in a state; none of another command."""
    if not name.startswith("vkCmdDraw"):
        return OpenPlaces((), (), ())
    pipeline = buffer.pipelines.get(VkPipelineBindPoint.GRAPHICS)
    read: list[Hashable] = []
    if isinstance(pipeline, GraphicsPipeline):
        read += [("vertices", each.binding) for each in vertex_input(pipeline.state, buffer.drawing)]
    read += ["indices"] * name.startswith(DRAWS_INDEXED)
    bound = {part: parts.get(part) for part in read}
    binds = tuple(dict.fromkeys(each for each in bound.values() if type(each) is OpenNumbers))
    numbers = tuple([number for each in binds for number in each.numbers(buffer)])
    several = [(each, said) for each in binds for said in each.says()]
    return OpenPlaces(binds, numbers, tuple([said if bound.get(said.part) is each else None for each, said in several]))


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
