"""Semaphores as objects, and timeline semaphores as the host sees them (specification: "Semaphores").

The waits and signals of batches are part of the submit (`submit.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vkharness.commands.handlers import call, folded
from vkharness.commands.object_state import ObjectState
from vkharness.findings import Place
from vkharness.spec.enums import VkResult, VkSemaphoreType, VkSemaphoreWait, VkStructureType
from vkharness.trace.calls import Call
from vkharness.trace.chain import chained
from vkharness.trace.effects import Destroyed, SemaphoreCreated, StreamEvent
from vkharness.trace.host_effects import HostSignaled, HostWaitedSemaphores


@call("vkCreateSemaphore")
def create_semaphore(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Adds a semaphore. It is binary unless the chain says that it is a timeline with an initial value."""
    initial = initial_value(call.args["pCreateInfo"])
    objects.contents.semaphore(call.args["pSemaphore"], initial)
    if initial is not None:
        objects.payloads.timelines.add(call.args["pSemaphore"])
    yield SemaphoreCreated(call.args["pSemaphore"], initial, by=Place(call.index, call.name, call.site))


def initial_value(info: dict[str, Any]) -> int | None:
    """The initial value of the timeline that a VkSemaphoreCreateInfo makes; None for a binary semaphore."""
    kind = chained(info, VkStructureType.SEMAPHORE_TYPE_CREATE_INFO)
    return kind["initialValue"] if kind is not None and kind["semaphoreType"] == VkSemaphoreType.TIMELINE else None


@call("vkDestroySemaphore")
def destroy_semaphore(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Removes a semaphore."""
    objects.contents.semaphore_destroyed(call.args["semaphore"])
    objects.payloads.timelines.discard(call.args["semaphore"])
    return (Destroyed(call.args["semaphore"], by=Place(call.index, call.name, call.site)),)


@call("vkSignalSemaphore")
def signal_semaphore(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """The host signals a timeline semaphore."""
    info = call.args["pSignalInfo"]
    objects.contents.signal(info["semaphore"], info["value"])
    yield HostSignaled(info["semaphore"], info["value"])


@call("vkLatencySleepNV", "vkLatencySleepLegacyNV")
def latency_sleep(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """The driver signals a timeline at a time of its own, for the host to wait for.

    As with a signal of the host, no work of the device comes before it. Specification: "vkLatencySleepNV"."""
    info = folded(call.args, "pSleepInfo")
    objects.contents.signal(info["signalSemaphore"], info["value"])
    yield HostSignaled(info["signalSemaphore"], info["value"])


@call("vkWaitSemaphores")
def wait_semaphores(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """A successful wait for all semaphores, or for a single one, covers them. A wait for any of several covers none for
    certain."""
    info = call.args["pWaitInfo"]
    values = tuple(zip(info["pSemaphores"] or (), info["pValues"] or (), strict=False))
    if call.result == VkResult.SUCCESS and (len(values) == 1 or not info["flags"] & VkSemaphoreWait.ANY):
        yield HostWaitedSemaphores(values)


@call("vkGetSemaphoreCounterValue")
def get_counter_value(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Reading a value is equivalent to a wait for it."""
    if call.result == VkResult.SUCCESS and call.args["pValue"] is not None:
        yield HostWaitedSemaphores(((call.args["semaphore"], call.args["pValue"]),))
