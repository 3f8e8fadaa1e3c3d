"""Events in scenarios. `Rig` and `Commands` have these functions as their methods.

An event carries one named dependency: what the wait orders after what came before the set. A twin that leaves the
dependency out records the set and no wait; one that weakens it gives both halves the weaker scopes. Nothing that waits
for an event which nobody set is ever submitted: a driver would hang.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.findings import UserError
from harness.spec.enums import VkPipelineStage2
from harness.spec.masks import scope

if TYPE_CHECKING:
    from harness.rig.command_buffers import Commands
    from harness.rig.rig import Rig

SET, RESET, WAIT = "set", "reset", "wait"


@dataclass(slots=True, eq=False)
class RigEvent:
    """A VkEvent with the dependency that it carries: barriers as `Commands.barrier` takes them, None when a twin
    leaves them out. `form` is that of the commands that set it and wait for it."""

    handle: Any
    form: int
    written: Sequence[Mapping[str, Any]]
    dependency: Sequence[Mapping[str, Any]] | None
    signaled: bool = False
    """As the host and the submits so far leave it."""


Operation = tuple[str, RigEvent]
"""What a command buffer does to an event."""


def event(
    rig: Rig,
    name: str,
    src: str,
    dst: str,
    *,
    form: int = 2,
    weaker: Mapping[str, Mapping[str, Any]] | None = None,
    **options: Any,
) -> RigEvent:
    """An unsignaled event with one dependency; arguments as for `Commands.barrier`, where `{"several": [...]}` stands
    for several barriers. Without a name it belongs to the scene."""
    written = {"src": src, "dst": dst, **options}
    amended = rig.amend(name, written, weaker or {}) if name else written
    handle = rig._made("Event", rig.vk.vkCreateEvent(rig.device, rig.vk.VkEventCreateInfo(), None))
    several = None if amended is None else amended.get("several", [amended])
    return RigEvent(handle, form, written.get("several", [written]), several)


def host_set_event(rig: Rig, event: RigEvent) -> None:
    """vkSetEvent."""
    rig.vk.vkSetEvent(rig.device, event.handle)
    event.signaled = True


def host_reset_event(rig: Rig, event: RigEvent) -> None:
    """vkResetEvent."""
    rig.vk.vkResetEvent(rig.device, event.handle)
    event.signaled = False


def set_event(commands: Commands, event: RigEvent) -> None:
    """vkCmdSetEvent(2)."""
    vk, several = commands.vk, event.dependency or event.written
    if event.form == 2:
        vk.vkCmdSetEvent2(commands.handle, event.handle, commands.dependency_info(several))
    else:
        vk.vkCmdSetEvent(commands.handle, event.handle, _stages(several, "src"))
    commands.event_operations.append((SET, event))


def reset_event(commands: Commands, event: RigEvent, stages: str, *, form: int | None = None) -> None:
    """vkCmdResetEvent(2) after `stages`."""
    form = form or event.form
    reset = commands.vk.vkCmdResetEvent2 if form == 2 else commands.vk.vkCmdResetEvent
    reset(commands.handle, event.handle, scope(stages)[0])
    commands.event_operations.append((RESET, event))


def wait_events(commands: Commands, *events: RigEvent) -> None:
    """vkCmdWaitEvents(2) for events of one form, without those whose dependency a twin leaves out."""
    vk = commands.vk
    waited = [each for each in events if each.dependency is not None]
    if not waited:
        return
    handles = [each.handle for each in waited]
    dependencies = [each.dependency or () for each in waited]
    if waited[0].form == 2:
        infos = [commands.dependency_info(several) for several in dependencies]
        vk.vkCmdWaitEvents2(commands.handle, len(handles), handles, infos)
    else:
        together = [barrier for several in dependencies for barrier in several]
        before, after = _stages(together, "src"), _stages(together, "dst")
        vk.vkCmdWaitEvents(commands.handle, len(handles), handles, before, after, *commands.counted_barriers(together))
    commands.event_operations += [(WAIT, each) for each in waited]


def follow(operations: Iterable[Operation]) -> None:
    """Takes in what a submit does to events. UserError for a wait that would never end."""
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
