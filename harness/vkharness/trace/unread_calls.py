"""Calls of a capture that cannot be read: each costs itself and nothing else.

What most queries returned is neither judged nor needed to go on, so such a query is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from vkharness.trace.calls import Call, unread_call

MOST_NAMED = 20
"""Calls of one command that are named with their block; the others are only counted."""
_QUERIES = ("vkGet", "vkEnumerate")
"""How the names of calls begin that only ask, but for those of `_FOLLOWED`."""
_FOLLOWED = ("vkGetDeviceQueue", "vkGetDeviceQueue2", "vkGetQueryPoolResults", "vkGetSwapchainImagesKHR")
"""Those that give an object or read results. What others return says at most that the device was ahead of the host."""
_IN_COMMAND_BUFFER = ("vkCmd", "vkBeginCommandBuffer", "vkEndCommandBuffer")


def only_asks(name: str) -> bool:
    """Whether no judge misses a call of this name."""
    return name.startswith(_QUERIES) and name not in _FOLLOWED


class UnreadCalls:
    """The calls of one capture that could not be read."""

    def __init__(self) -> None:
        self._commands: Counter[str] = Counter()
        self._queries: Counter[str] = Counter()

    def call(self, index: int, name: str, first: int | None, why: str, thread: int = 0) -> Call | None:
        """The call of block `index`, with the reason; None if that only asks. `first` is the handle that it names."""
        if only_asks(name):
            self._queries[name] += 1
            return None
        self._commands[name] += 1
        where = f"block {index}: {why}" if self._commands[name] <= MOST_NAMED else "further calls"
        known = first is not None and name.startswith(_IN_COMMAND_BUFFER)
        return unread_call(index, name, where, first if known else None, thread=thread)

    def remarks(self) -> Iterator[str]:
        """One line for each query that was left out."""
        for name, count in sorted(self._queries.items()):
            yield f"{count} queries passed over that cannot be read: {name}"
