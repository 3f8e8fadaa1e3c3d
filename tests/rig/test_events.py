"""The rig lets nothing wait for an event that nobody sets: a driver would hang."""

from __future__ import annotations

from typing import Any

import pytest

from vkharness.findings import UserError
from vkharness.rig.core import RigEvent
from vkharness.rig.events import RESET, SET, WAIT, EventCommands, RigEvents, apply_event_operations


def event() -> RigEvent:
    return RigEvent(object(), True, ({},), ({},))


@pytest.mark.parametrize("operations", [[WAIT], [SET, RESET, WAIT], [RESET, WAIT]], ids=" ".join)
def test_a_wait_that_would_never_end_is_refused(operations: list[str]) -> None:
    one = event()
    with pytest.raises(UserError, match="waits for an event that nothing before it sets"):
        apply_event_operations((what, one) for what in operations)


def test_what_is_set_stays_set_for_later_submits() -> None:
    one, other = event(), event()
    apply_event_operations([(SET, one), (WAIT, one)])
    apply_event_operations([(WAIT, one)])
    with pytest.raises(UserError):
        apply_event_operations([(WAIT, other)])


class _Rig:
    """Takes what the methods of `RigEvents` ask of a rig."""

    def __init__(self, amended: Any) -> None:
        self.amend = lambda name, written, weaker: amended
        self.vk = self
        self.device = None
        self.calls: list[str] = []

    def own(self, kind: str, handle: Any) -> Any:
        return handle

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **more: self.calls.append(name)


class _Commands:
    def __init__(self, rig: _Rig) -> None:
        self.rig, self.vk, self.handle = rig, rig, None
        self.event_operations: list[Any] = []

    def dependency_info(self, several: Any) -> Any:
        return several


def test_a_twin_that_leaves_the_dependency_out_sets_and_does_not_wait() -> None:
    rig: Any = _Rig(None)
    made = RigEvents.event(rig, "some", "COPY", "COPY")
    commands: Any = _Commands(rig)
    EventCommands.set_event(commands, made)
    EventCommands.wait_events(commands, made)
    assert [name for name in rig.calls if name.startswith("vkCmd")] == ["vkCmdSetEvent2"]
    assert [what for what, _ in commands.event_operations] == [SET]
