"""Events, each with one named dependency.

The dependency orders the commands after the wait behind the commands before the set. A twin that leaves the dependency
out records the set and no wait. A twin that weakens it gives both halves the weaker scopes. No wait for an event that
was never set is submitted, since a driver would hang.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vkharness.findings import UserError
from vkharness.rig.barriers import BarrierCommands
from vkharness.rig.core import RigDevice, RigEvent
from vkharness.spec.enums import VkPipelineStage2
from vkharness.spec.masks import scope

SET, RESET, WAIT = "set", "reset", "wait"
"""The operations of a command buffer on an event."""


class RigEvents(RigDevice):
    """Events of one device, and the host's operations on them."""

    def event(
        self,
        name: str,
        src: str,
        dst: str,
        *,
        sync2: bool = True,
        weaker: Mapping[str, Mapping[str, Any]] | None = None,
        **options: Any,
    ) -> RigEvent:
        """An unsignaled event with one dependency. Arguments are those of `Commands.barrier`.

        `{"several": [...]}` stands for several barriers. An event without a name belongs to the scenario and stays in
        every twin.
        """
        written = {"src": src, "dst": dst, **options}
        amended = self.amend(name, written, weaker or {}) if name else written
        handle = self.own("Event", self.vk.vkCreateEvent(self.device, self.vk.VkEventCreateInfo(), None))
        several = None if amended is None else amended.get("several", [amended])
        return RigEvent(handle, sync2, written.get("several", [written]), several)

    def host_set_event(self, event: RigEvent) -> None:
        """vkSetEvent."""
        self.vk.vkSetEvent(self.device, event.handle)
        event.signaled = True

    def host_polls_event(self, name: str, event: RigEvent) -> None:
        """vkGetEventStatus until the event is signaled, unless a twin leaves that out."""
        if self.amend(name, {}, {}) is None:
            return
        signaled = False
        while not signaled:
            try:
                self.vk.vkGetEventStatus(self.device, event.handle)
            except self.vk.VkEventSet:
                signaled = True
            except self.vk.VkEventReset:
                pass

    def host_reset_event(self, event: RigEvent) -> None:
        """vkResetEvent."""
        self.vk.vkResetEvent(self.device, event.handle)
        event.signaled = False


class EventCommands(BarrierCommands):
    """Commands that set, reset and wait for events."""

    def set_event(self, event: RigEvent) -> None:
        """vkCmdSetEvent(2)."""
        vk, several = self.vk, event.dependency or event.written
        if event.sync2:
            vk.vkCmdSetEvent2(self.handle, event.handle, self.dependency_info(several))
        else:
            vk.vkCmdSetEvent(self.handle, event.handle, _stages(several, "src"))
        self.event_operations.append((SET, event))

    def reset_event(self, event: RigEvent, stages: str, *, sync2: bool | None = None) -> None:
        """vkCmdResetEvent(2) after `stages`."""
        sync2 = event.sync2 if sync2 is None else sync2
        reset = self.vk.vkCmdResetEvent2 if sync2 else self.vk.vkCmdResetEvent
        reset(self.handle, event.handle, scope(stages)[0])
        self.event_operations.append((RESET, event))

    def wait_events(self, *events: RigEvent) -> None:
        """vkCmdWaitEvents(2) for events that are equal in `sync2`, without those whose dependency a twin leaves out."""
        waited = [each for each in events if each.dependency is not None]
        if waited:
            self._wait_events(waited, [each.dependency or () for each in waited], waited[0].sync2)

    def wait_otherwise(self, event: RigEvent, src: str, dst: str, *, sync2: bool) -> None:
        """A wait with a dependency and in a form of its own, whatever the set of the event has."""
        self._wait_events([event], [({"src": src, "dst": dst},)], sync2)

    def _wait_events(
        self, waited: Sequence[RigEvent], dependencies: Sequence[Sequence[Mapping[str, Any]]], sync2: bool
    ) -> None:
        vk, handles = self.vk, [each.handle for each in waited]
        if sync2:
            infos = [self.dependency_info(several) for several in dependencies]
            vk.vkCmdWaitEvents2(self.handle, len(handles), handles, infos)
        else:
            together = [barrier for several in dependencies for barrier in several]
            before, after = _stages(together, "src"), _stages(together, "dst")
            vk.vkCmdWaitEvents(self.handle, len(handles), handles, before, after, *self.counted_barriers(together))
        self.event_operations += [(WAIT, each) for each in waited]


def apply_event_operations(operations: Iterable[tuple[str, RigEvent]]) -> None:
    """Applies a submit's operations on events to their `signaled`. Raises `UserError` for a wait that
    would never end."""
    for what, event in operations:
        if what == WAIT and not event.signaled:
            raise UserError("a submit waits for an event that nothing before it sets: it would never end")
        if what != WAIT:
            event.signaled = what == SET


def _stages(several: Sequence[Mapping[str, Any]], side: str) -> int:
    """The stages of one side of all barriers together, since vkCmdWaitEvents has one mask for all."""
    mask = 0
    for each in several:
        mask |= scope(each[side])[0]
    return mask or VkPipelineStage2.ALL_COMMANDS
