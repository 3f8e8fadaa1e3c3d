"""Descriptors written through update templates: the same as without, where the trace holds what the template made of
its data (`harness.trace.templates`); named otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from harness.commands.bind import push_descriptor_set
from harness.commands.descriptors import update_sets
from harness.commands.objects import CommandBuffer, Objects
from harness.commands.registry import call, command
from harness.trace.calls import Call
from harness.trace.effects import Effect, Ignored, Occurrence, Unmodelled
from harness.trace.templates import PUSH, UPDATE, plain_arguments


@call(UPDATE)
def update_with_template(objects: Objects, call: Call) -> Iterable[Occurrence]:
    """Writes a descriptor set."""
    args = plain_arguments(call.args)
    return (Ignored(call.name),) if args is None else update_sets(objects, replace(call, args=args))


@command(PUSH)
def push_with_template(objects: Objects, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Writes descriptors into the command buffer."""
    plain = plain_arguments(args)
    return (Unmodelled(PUSH),) if plain is None else push_descriptor_set(objects, buffer, plain)
