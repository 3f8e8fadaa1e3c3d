"""Calls of a capture that cannot be read: each costs itself and nothing else.

What many queries returned is neither judged nor needed to go on, so such a query is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache

from vkharness.spec import _generated as tables
from vkharness.spec.command_classes import ANSWERED
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Call, unread_call

MOST_NAMED = 20
"""Calls of one command that are named with their block; the others are only counted."""
_QUERIES = ("vkGet", "vkEnumerate")
"""How the names of calls begin that only ask, where no judge needs the answer and nothing is made or handed out."""
_HANDS_OUT = ("vkGetMemory", "vkGetSemaphore", "vkGetFence")
"""How the names of those begin that may export a payload."""
_IN_COMMAND_BUFFER = ("vkCmd", "vkBeginCommandBuffer", "vkEndCommandBuffer")


@cache
def only_asks(name: str) -> bool:
    """Whether no judge misses a call of this name. Of a name that the registry does not have nobody can say so."""
    command = tables.COMMANDS.get(name) or tables.COMMANDS.get(tables.COMMAND_ALIASES.get(name, name))
    if command is None or not name.startswith(_QUERIES) or name.startswith(_HANDS_OUT) or main_name(name) in ANSWERED:
        return False
    return not any(member[2] and not member[3] and member[1] in tables.HANDLES for member in command[1])


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
