"""Writes of descriptors through update templates.

They are like other writes if the trace holds the data in the template's shape (`vkharness.trace.templates`). Otherwise
they are reported as not modelled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from vkharness.commands.drawing.bind import push_descriptor_set
from vkharness.commands.drawing.descriptors import update_sets
from vkharness.commands.handlers import call, command
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.trace.calls import Call
from vkharness.trace.effects import Effect, StreamEvent, Unmodelled, UnmodelledCall
from vkharness.trace.templates import PUSH, PUSH_2, PUSH_INFO, UPDATE, plain_arguments


@call(UPDATE)
def update_with_template(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Writes the descriptors of a set."""
    args = plain_arguments(call.args)
    return (UnmodelledCall(call.name),) if args is None else update_sets(objects, replace(call, args=args))


@command(PUSH, PUSH_2)
def push_with_template(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Writes descriptors into the command buffer. Both forms push to the bind point of the template."""
    plain = plain_arguments(args)
    return (
        (Unmodelled(PUSH_2 if PUSH_INFO in args else PUSH),)
        if plain is None
        else push_descriptor_set(objects, buffer, plain)
    )
