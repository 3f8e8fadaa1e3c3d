"""Events: set, reset and waited for on the device, and set and reset by the host.

Specification: "Events"; rules.md#event.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from vkharness.commands.handlers import call, command
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.commands.synchronization.barrier import (
    dependency_info,
    follow_from_arguments,
    make_barrier,
    unknown_ranges,
)
from vkharness.spec.enums import VkResult
from vkharness.trace.calls import Call
from vkharness.trace.effects import Barrier, Dependency, Effect, ResetEvent, SetEvent, StreamEvent, WaitEvents
from vkharness.trace.host_effects import HostSawEvent, HostSetEvent


@command("vkCmdSetEvent", by_arguments=True)
def set_event(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """vkCmdSetEvent gives only the source stages. Everything else comes with the wait."""
    before = Barrier((Dependency(args["stageMask"], 0, 0, 0),))
    return objects.plans.of((SetEvent(args["event"], before, sync2=False),))


@command("vkCmdSetEvent2", by_arguments=True)
def set_event2(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """vkCmdSetEvent2 gives the whole dependency, which the wait repeats."""
    info = args["pDependencyInfo"]
    made = SetEvent(args["event"], dependency_info(objects, info), sync2=True)
    return _planned(objects, [info], (made, *unknown_ranges(objects, info)))


@command("vkCmdResetEvent", "vkCmdResetEvent2", by_arguments=True)
def reset_event(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Resets an event after one stage mask, which both forms give."""
    return objects.plans.of((ResetEvent(args["event"], args["stageMask"]),))


@command("vkCmdWaitEvents", by_arguments=True)
def wait_events(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """vkCmdWaitEvents gives one pair of stage masks and one set of barriers for all events together."""
    src, dst = args["srcStageMask"], args["dstStageMask"]
    barrier = make_barrier(objects, args, lambda _: (src, dst), execution=(src, dst))
    return _planned(objects, [args], (WaitEvents(tuple(args["pEvents"] or ()), (barrier,), sync2=False),))


@command("vkCmdWaitEvents2", by_arguments=True)
def wait_events2(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """vkCmdWaitEvents2 gives a dependency for each event. Where a program gives none, there is none."""
    events, infos = tuple(args["pEvents"] or ()), args["pDependencyInfos"] or ()
    given = tuple(dependency_info(objects, info) for info in infos)
    made = WaitEvents(events, (*given, *[Barrier(())] * (len(events) - len(given))), sync2=True)
    unknown = [each for info in infos for each in unknown_ranges(objects, info)]
    return _planned(objects, infos, (made, *unknown))


def _planned(objects: ObjectState, infos: Sequence[dict[str, Any]], effects: tuple[Effect, ...]) -> Iterable[Effect]:
    """The plan of effects, where these follow from the arguments alone."""
    return objects.plans.of(effects) if follow_from_arguments(objects, infos) else effects


@call("vkSetEvent")
def host_set_event(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """The host sets an event. This makes no dependency on device work."""
    yield HostSetEvent(call.args["event"], signaled=True, call=call.index, site=call.site)


@call("vkResetEvent")
def host_reset_event(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """The host resets an event. Sets that are complete do not count any more."""
    yield HostSetEvent(call.args["event"], signaled=False, call=call.index, site=call.site)


@call("vkGetEventStatus")
def event_status(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """The host reads that an event is signaled. That it is not says nothing: a set may come at any time."""
    if call.result == VkResult.EVENT_SET:
        yield HostSawEvent(call.args["event"])


@call("vkDestroyEvent")
def destroy_event(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """The host destroys an event. No operation on it counts any more."""
    if call.args["event"]:
        yield HostSetEvent(call.args["event"], signaled=False)
