"""Commands of which it is open, while they are recorded, what they access: contents of memory decide.

A read between two writes changes what the second one needs (rules.md#most-recent-access), and a write takes the place
of an earlier one. So what may lie on both sides of such an access is judged when the commands are executed.
"""

from __future__ import annotations

from vkharness.findings import Hazard, Place
from vkharness.spans import merge, overlap
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.syncval.entries import DetectedHazard
from vkharness.trace.effects import Access, Command, Execute
from vkharness.trace.open_commands import is_open, may_access
from vkharness.trace.recorded_commands import CommandColumns

ORDERED = (Hazard.READ_AFTER_WRITE, Hazard.WRITE_AFTER_READ, Hazard.WRITE_AFTER_WRITE)
"""The hazards of one queue, which an access between the two changes."""


class OpenCommands:
    """Those of one recording."""

    def __init__(self) -> None:
        self._held: list[tuple[int, Command]] = []
        """With the calls that record or execute them."""
        self._unseen: list[tuple[CommandColumns, int, int]] = []
        """Recorded commands from one place to another that nobody has looked at yet: most recordings meet nothing."""

    def add(self, call: int, command: Command) -> None:
        """A command is executed as a part of a secondary at this call."""
        self._held.append((call, command))

    def recorded(self, commands: CommandColumns, begin: int, end: int) -> None:
        """Commands were recorded, from one place to another."""
        if begin < end and commands.open_ones:
            self._unseen.append((commands, begin, end))

    def _look(self) -> None:
        for commands, begin, end in self._unseen:
            for place in commands.open_from(begin):
                if place < end and is_open(command := commands[place]):
                    self.add(command.call, command)
        self._unseen.clear()

    def executed(self, call: int, effect: Execute) -> None:
        """Secondary command buffers are executed."""
        for _, commands in effect.buffers:
            for command in commands:
                if is_open(command):
                    self.add(call, command)

    def decided(self, hazards: list[DetectedHazard], place: Place) -> list[DetectedHazard]:
        """The hazards of a command at this place without those that such a command may change."""
        if not hazards:
            return hazards
        self._look()
        return [each for each in hazards if not self._may_change(each, place)]

    def _may_change(self, detected: DetectedHazard, place: Place) -> bool:
        if detected.hazard not in ORDERED:
            return False
        first, second = _call(detected.prior), _call(place)
        return any(
            first <= call <= second
            and command.call not in (detected.prior.call, place.call)
            and any(_changes(access, detected) for access in may_access(command))
            for call, command in self._held
        )


def _changes(access: Access, detected: DetectedHazard) -> bool:
    """Whether an access between the two could change a hazard: a read only one between two writes."""
    matters = detected.hazard is Hazard.WRITE_AFTER_WRITE or access.atomic or ACCESS_KINDS[access.access_kind].write
    return matters and access.resource == detected.resource and bool(overlap(merge(access.spans), [detected.span]))


def _call(place: Place) -> int:
    """The call at which the primary does this."""
    return place.executed_by[0] if place.executed_by is not None else place.call
