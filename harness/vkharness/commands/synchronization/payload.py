"""Payloads of semaphores, fences and memory that leave the trace and come back (specification: "Importing Semaphore
Payloads", "Importing Fence Payloads"). Imports of memory are part of its allocation (`resources/memory.py`)."""

from __future__ import annotations

from collections.abc import Iterable

from vkharness.commands.handlers import call
from vkharness.commands.object_state import ObjectState
from vkharness.spec.command_classes import EXPORTS, IMPORTS
from vkharness.trace.calls import Call
from vkharness.trace.effects import PayloadShared, SemaphoreCreated, StreamEvent


@call(*EXPORTS)
def export_payload(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """A payload becomes known to whoever gets the handle."""
    return _followed(objects, objects.payloads.exported(call))


@call(*IMPORTS)
def import_payload(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """A semaphore or a fence gets the payload of another one, for good or until the next wait or reset."""
    return _followed(objects, objects.payloads.imported(call))


def _followed(objects: ObjectState, events: Iterable[StreamEvent]) -> Iterable[StreamEvent]:
    for each in events:
        if isinstance(each, SemaphoreCreated):
            objects.contents.semaphore(each.semaphore, each.initial)
        elif isinstance(each, PayloadShared):
            objects.contents.share(each.payload, each.outside)
        yield each
