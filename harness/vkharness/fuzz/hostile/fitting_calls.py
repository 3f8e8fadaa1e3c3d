"""The writer of a trace of calls that fit one another, and the ids of the objects in it."""

from __future__ import annotations

import random
from typing import Any

from vkharness.fuzz.filled_calls import arguments, struct
from vkharness.fuzz.hostile.call_streams import HEADER, add_call
from vkharness.spec._generated import COMMANDS
from vkharness.spec.enums import VkFormat, VkImageAspect

PHYSICAL, DEVICE, QUEUES, POOL, MEMORY = 1, 2, (3, 4), 5, 6
PRIMARIES, SECONDARIES = (10, 11, 12), (13, 14)
BUFFERS, IMAGES, VIEWS = (20, 21), (22, 23, 24), (25, 26, 27)
PASS, FRAMEBUFFER, EVENTS, QUERIES = 30, 31, (32, 33), 34
SEMAPHORES, TIMELINE, FENCE = (40, 41), 42, 43
FORMAT = VkFormat.R8G8B8A8_UNORM
ALL, READ_WRITE = 0x10000, 0x18000
SIZE, SIDE = 65536, 8
RANGE = {"aspectMask": VkImageAspect.COLOR, "baseMipLevel": 0, "levelCount": 1, "baseArrayLayer": 0, "layerCount": 1}
LAYERS = {"aspectMask": VkImageAspect.COLOR, "mipLevel": 0, "baseArrayLayer": 0, "layerCount": 1}
EXTENT = {"width": SIDE, "height": SIDE, "depth": 1}
AREA = {"offset": {"x": 0, "y": 0}, "extent": {"width": SIDE, "height": SIDE}}


class Calls:
    """Writes the lines of a trace, in the order in which its methods are called."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._lines: list[dict[str, Any]] = [HEADER]
        self._recorded: int | None = None
        """The command buffer that calls go to that belong together."""

    def _call(self, name: str, **values: Any) -> None:
        fails = COMMANDS[name][0] != "void"
        result = self._rng.choice((0, 0, 0, 0, 0, 0, 0, 0, 0, -1)) if fails else None
        add_call(self._lines, name, arguments(name, **values), result)

    def _record(self, name: str, **values: Any) -> None:
        self._call(name, commandBuffer=self._buffer(), **values)

    def _buffer(self) -> int:
        """A command buffer: mostly the same one."""
        if self._recorded is not None:
            return self._recorded
        return self._rng.choice((PRIMARIES[0], PRIMARIES[0], PRIMARIES[0], *PRIMARIES, *SECONDARIES))

    def _some(self, several: tuple[int, ...]) -> list[int]:
        return self._rng.choices(several, k=self._rng.randint(0, 2))

    def _create(self, name: str, of: str, info: dict[str, Any] | None = None, **made: int) -> None:
        self._call(name, device=DEVICE, pCreateInfo=struct(of, **(info or {})), **made)
