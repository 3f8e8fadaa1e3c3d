"""Bytes that copies of query results write, where the specification leaves no choice ("Query Operation").

A query that was reset is not available. An occlusion query in which nothing was drawn counts no samples. With a draw in
it a result is an implementation's own ("Occlusion Queries"): fragments may be killed before they are counted, and
without VK_QUERY_CONTROL_PRECISE_BIT any number but zero will do. Timestamps are of no followed clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np

from vkharness.computed.followed_transfers import KnownContents
from vkharness.spec.enums import VkQueryResult, VkQueryType
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Call

RESETS = ("vkCmdResetQueryPool", "vkResetQueryPool")
BEGIN, END, COPY = "vkCmdBeginQuery", "vkCmdEndQuery", "vkCmdCopyQueryPoolResults"
OPEN = VkQueryResult.WAIT | VkQueryResult.PARTIAL
"""Flags with which a copy of a query that is not available is not followed."""
KNOWN_FLAGS = OPEN | VkQueryResult.RESULT_64 | VkQueryResult.WITH_AVAILABILITY
WITH_ONE_NUMBER = (VkQueryType.OCCLUSION, VkQueryType.TIMESTAMP)
MOST_VIEWS = 32
"""Queries that one begin may use, at most: one for each bit of a view mask."""


class _State(Enum):
    RESET = "reset"
    BEGUN = "begun, and nothing came since then"
    ZERO = "ended with a count of zero"


class KnownQueries:
    """The queries of which it is known what a copy says."""

    def __init__(self, contents: KnownContents) -> None:
        self._contents = contents
        self._types: dict[int, int] = {}
        self._states: dict[tuple[int, int], _State] = {}

    def note(self, call: Call) -> None:
        """Takes a call of the host in."""
        if call.name == "vkCreateQueryPool":
            self._types[call.args["pQueryPool"]] = call.args["pCreateInfo"]["queryType"]
        elif main_name(call.name) in RESETS:
            self._reset(call.args)

    def hear(self, call: Call) -> None:
        """Takes a command in that may be counted by the queries that are active."""
        name, args = main_name(call.name), call.args
        if name in RESETS or name == COPY:
            return
        if name == END:
            if self._states.get((args["queryPool"], args["query"])) is _State.BEGUN:
                self._states[args["queryPool"], args["query"]] = _State.ZERO
        elif name == BEGIN:
            self._begin(args["queryPool"], args["query"])
        elif "queryPool" in args:
            self._forget_pool(args["queryPool"])
        else:
            self._states = {at: state for at, state in self._states.items() if state is not _State.BEGUN}

    def follow(self, call: Call) -> bool:
        """Takes a command in that was heard; whether all that it writes is followed."""
        name = main_name(call.name)
        if name in RESETS:
            self._reset(call.args)
        return name in RESETS or (name == COPY and self._copy(call.args))

    def _reset(self, args: Mapping[str, Any]) -> None:
        first = args["firstQuery"]
        for query in range(first, first + args["queryCount"]):
            self._states[args["queryPool"], query] = _State.RESET

    def _begin(self, pool: int, query: int) -> None:
        """Of several views, a query is several that follow each other."""
        for each in range(query, query + MOST_VIEWS):
            self._states.pop((pool, each), None)
        if self._types.get(pool) == VkQueryType.OCCLUSION:
            self._states[pool, query] = _State.BEGUN

    def _forget_pool(self, pool: int) -> None:
        self._states = {at: state for at, state in self._states.items() if at[0] != pool}

    def _copy(self, args: Mapping[str, Any]) -> bool:
        pool, first, flags = args["queryPool"], args["firstQuery"], args["flags"]
        states = [self._states.get((pool, query)) for query in range(first, first + args["queryCount"])]
        size = 8 if flags & VkQueryResult.RESULT_64 else 4
        with_availability = bool(flags & VkQueryResult.WITH_AVAILABILITY)
        held = self._contents.buffers.get(args["dstBuffer"])
        if (
            self._types.get(pool) not in WITH_ONE_NUMBER
            or not {_State.RESET, _State.ZERO}.issuperset(states)
            or (_State.RESET in states and flags & OPEN)
            or flags & ~KNOWN_FLAGS
            or (len(states) > 1 and args["stride"] < size * (1 + with_availability))
            or held is None
            or held.space not in self._contents.memory
        ):
            return False
        cells, base, _ = self._contents.cells(args["dstBuffer"])
        for number, state in enumerate(states):
            place = base + args["dstOffset"] + number * args["stride"]
            cells.forget(place, place + size * (1 + with_availability))
            if state is _State.ZERO and flags & OPEN:
                cells.put(place, np.zeros(size, np.uint8))
            elif state is _State.RESET and with_availability:
                cells.put(place + size, np.zeros(size, np.uint8))
        return True
