"""Events: set, reset and waited for on the device, and set and reset by the host.

Specification: "Events"; rules.md#event.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vkharness.commands.handlers import call, command
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.commands.synchronization.barrier import dependency_info, make_barrier, unknown_ranges
from vkharness.spec.enums import VkResult
from vkharness.trace.calls import Call
from vkharness.trace.effects import Barrier, Dependency, Effect, ResetEvent, SetEvent, StreamEvent, WaitEvents
from vkharness.trace.host_effects import HostSawEvent, HostSetEvent


@command("vkCmdSetEvent")
def set_event(_: ObjectState, __: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """vkCmdSetEvent gives only the source stages. Everything else comes with the wait."""
    before = Barrier((Dependency(args["stageMask"], 0, 0, 0),))
    yield SetEvent(args["event"], before, sync2=False)


@command("vkCmdSetEvent2")
def set_event2(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """vkCmdSetEvent2 gives the whole dependency, which the wait repeats."""
    yield SetEvent(args["event"], dependency_info(objects, args["pDependencyInfo"]), sync2=True)
    yield from unknown_ranges(objects, args["pDependencyInfo"])


@command("vkCmdResetEvent", "vkCmdResetEvent2")
def reset_event(_: ObjectState, __: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Resets an event after one stage mask, which both forms give."""
    yield ResetEvent(args["event"], args["stageMask"])


@command("vkCmdWaitEvents")
def wait_events(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """vkCmdWaitEvents gives one pair of stage masks and one set of barriers for all events together."""
    src, dst = args["srcStageMask"], args["dstStageMask"]
    barrier = make_barrier(objects, args, lambda _: (src, dst), execution=(src, dst))
    yield WaitEvents(tuple(args["pEvents"] or ()), (barrier,), sync2=False)


@command("vkCmdWaitEvents2")
def wait_events2(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """vkCmdWaitEvents2 gives a dependency for each event. Where a program gives none, there is none."""
    events = tuple(args["pEvents"] or ())
    given = tuple(dependency_info(objects, info) for info in args["pDependencyInfos"] or ())
    yield WaitEvents(events, (*given, *[Barrier(())] * (len(events) - len(given))), sync2=True)
    for info in args["pDependencyInfos"] or ():
        yield from unknown_ranges(objects, info)


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
