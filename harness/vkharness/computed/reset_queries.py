"""Queries that were reset, and what a copy says of them: they are not available ("Query Operation")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vkharness.computed.followed_transfers import KnownContents
from vkharness.spec.enums import VkQueryResult
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Call

RESETS = ("vkCmdResetQueryPool", "vkResetQueryPool")
COPY = "vkCmdCopyQueryPoolResults"
OPEN = VkQueryResult.WAIT | VkQueryResult.PARTIAL
"""Flags with which a copy of a query that is not available is not followed."""
ONE_RESULT = (0, 2)
"""VkQueryType of queries with one number: occlusion and timestamps."""


class ResetQueries:
    """The queries that are unavailable, since nothing came after their reset."""

    def __init__(self, contents: KnownContents) -> None:
        self._contents = contents
        self._types: dict[int, int] = {}
        self._reset: dict[int, set[int]] = {}

    def note(self, call: Call) -> None:
        """Takes a call of the host in."""
        if call.name == "vkCreateQueryPool":
            pool = call.args["pQueryPool"]
            self._types[pool] = call.args["pCreateInfo"]["queryType"]
            self._reset[pool] = set()
        elif main_name(call.name) in RESETS:
            self._note_reset(call.args)

    def follow(self, call: Call) -> bool:
        """Takes a command in; whether all that it writes is followed."""
        name, args = main_name(call.name), call.args
        if name in RESETS:
            self._note_reset(args)
            return True
        if name == COPY:
            return self._copy(args)
        if "queryPool" in args:  # of several views, a query is several
            self._reset.pop(args["queryPool"], None)
        return False

    def _note_reset(self, args: Mapping[str, Any]) -> None:
        first = args["firstQuery"]
        self._reset.setdefault(args["queryPool"], set()).update(range(first, first + args["queryCount"]))

    def _copy(self, args: Mapping[str, Any]) -> bool:
        pool, first, flags = args["queryPool"], args["firstQuery"], args["flags"]
        asked = range(first, first + args["queryCount"])
        one = self._types.get(pool) in ONE_RESULT and self._reset.get(pool, set()).issuperset(asked)
        held = self._contents.buffers.get(args["dstBuffer"])
        if not one or flags & OPEN or held is None or held.space not in self._contents.memory:
            return False
        cells, base, _ = self._contents.cells(args["dstBuffer"])
        size = 8 if flags & VkQueryResult.RESULT_64 else 4
        for number in range(len(asked)):
            place = base + args["dstOffset"] + number * args["stride"]
            cells.forget(place, place + size)
            if flags & VkQueryResult.WITH_AVAILABILITY:
                cells.put(place + size, np.zeros(size, np.uint8))
        return True
