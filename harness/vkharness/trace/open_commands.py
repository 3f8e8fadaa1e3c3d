"""Commands of which it is open, while they are recorded, what they access when they are executed."""

from __future__ import annotations

from vkharness.trace.effects import Access, Command


def is_open(command: Command) -> bool:
    """Whether contents of memory, or descriptors that may still be written, decide a part of what it accesses. What is
    foreseen to run nothing is taken to run nothing."""
    if command.undecided is not None and command.undecided.idle:
        return False
    return command.undecided is not None or command.late is not None


def may_access(command: Command) -> tuple[Access, ...]:
    """Returns the accesses that a command may make when it is executed, beside those that are judged while it is
    recorded; none if it is not open."""
    if not is_open(command):
        return ()
    made = () if command.sure is None else command.effects[command.sure :]
    late = () if command.late is None else command.late()
    more = () if command.undecided is None else command.undecided.most()
    return tuple(each for each in (*made, *late, *more) if isinstance(each, Access))
