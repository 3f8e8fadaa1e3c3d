"""Events.

An event carries one named dependency: what the wait orders after what came before the set. A twin that leaves the
dependency out records the set and no wait; one that weakens it gives both halves the weaker scopes. Nothing that waits
for an event which nobody set is ever submitted: a driver would hang.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.findings import UserError
from harness.rig.barriers import BarrierCommands
from harness.rig.core import RigDevice, RigEvent
from harness.spec.enums import VkPipelineStage2
from harness.spec.masks import scope

SET, RESET, WAIT = "set", "reset", "wait"
"""What a command buffer does to an event."""


class RigEvents(RigDevice):
    """Events of one device, and what the host does to them."""

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
        """An unsignaled event with one dependency; arguments as for `Commands.barrier`, where `{"several": [...]}`
        stands for several barriers. Without a name it belongs to the scene."""
        written = {"src": src, "dst": dst, **options}
        amended = self.amend(name, written, weaker or {}) if name else written
        handle = self.own("Event", self.vk.vkCreateEvent(self.device, self.vk.VkEventCreateInfo(), None))
        several = None if amended is None else amended.get("several", [amended])
        return RigEvent(handle, sync2, written.get("several", [written]), several)

    def host_set_event(self, event: RigEvent) -> None:
        """vkSetEvent."""
        self.vk.vkSetEvent(self.device, event.handle)
        event.signaled = True

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
        """vkCmdWaitEvents(2) for events of one form, without those whose dependency a twin leaves out."""
        vk = self.vk
        waited = [each for each in events if each.dependency is not None]
        if not waited:
            return
        handles = [each.handle for each in waited]
        dependencies = [each.dependency or () for each in waited]
        if waited[0].sync2:
            infos = [self.dependency_info(several) for several in dependencies]
            vk.vkCmdWaitEvents2(self.handle, len(handles), handles, infos)
        else:
            together = [barrier for several in dependencies for barrier in several]
            before, after = _stages(together, "src"), _stages(together, "dst")
            vk.vkCmdWaitEvents(self.handle, len(handles), handles, before, after, *self.counted_barriers(together))
        self.event_operations += [(WAIT, each) for each in waited]


def apply_event_operations(operations: Iterable[tuple[str, RigEvent]]) -> None:
    """Applies what a submit does to events to their `signaled`. UserError for a wait that would never end."""
    for what, event in operations:
        if what == WAIT and not event.signaled:
            raise UserError("a submit waits for an event that nothing before it sets: it would never end")
        if what != WAIT:
            event.signaled = what == SET


def _stages(several: Sequence[Mapping[str, Any]], side: str) -> int:
    """The stages of one side of all barriers together: the first form has one mask for them."""
    mask = 0
    for each in several:
        mask |= scope(each[side])[0]
    return mask or VkPipelineStage2.ALL_COMMANDS
