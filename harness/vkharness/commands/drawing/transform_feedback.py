"""Accesses of transform feedback and conditional rendering beside those of draws.

Specification: "Transform Feedback", "Conditional Rendering". The Khronos layer records none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from vkharness.commands.drawing.vertex import access_of, bound_span
from vkharness.commands.handlers import command
from vkharness.commands.object_state import NOTHING, CommandBuffer, ObjectState
from vkharness.spans import Span
from vkharness.spec.command_classes import CONDITIONAL
from vkharness.spec.enums import VK_WHOLE_SIZE
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.trace.attachment_operations import RasterizationOrder
from vkharness.trace.effects import Command, Effect, Unmodelled
from vkharness.trace.graphics_state import BoundBuffer
from vkharness.trace.resources import Buffer

COUNTER_READ = ACCESS_KIND["SYNC_TRANSFORM_FEEDBACK_EXT_TRANSFORM_FEEDBACK_COUNTER_READ_EXT"].index
COUNTER_WRITE = ACCESS_KIND["SYNC_TRANSFORM_FEEDBACK_EXT_TRANSFORM_FEEDBACK_COUNTER_WRITE_EXT"].index
FEEDBACK_WRITE = ACCESS_KIND["SYNC_TRANSFORM_FEEDBACK_EXT_TRANSFORM_FEEDBACK_WRITE_EXT"].index
CONDITION_READ = ACCESS_KIND["SYNC_CONDITIONAL_RENDERING_EXT_CONDITIONAL_RENDERING_READ_EXT"].index
COUNTER_BYTES, CONDITION_BYTES = 4, 4


@command("vkCmdBindTransformFeedbackBuffersEXT")
def bind_feedback_buffers(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Remembers the ranges to which transform feedback writes."""
    sizes, offsets = args["pSizes"], args["pOffsets"] or ()
    for at, (id, offset) in enumerate(zip(args["pBuffers"] or (), offsets, strict=False)):
        bound = BoundBuffer(id, offset, sizes[at] if sizes else VK_WHOLE_SIZE)
        buffer.drawing.feedback.buffers[args["firstBinding"] + at] = bound
    objects.note_missing(Buffer, args["pBuffers"] or ())
    return NOTHING


@command("vkCmdBeginTransformFeedbackEXT")
def begin_feedback(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads the counters, which say where writing goes on. A buffer without a counter is written from its start."""
    feedback = buffer.drawing.feedback
    counters = _counters(args)
    feedback.active, feedback.written = True, False
    feedback.resumed = frozenset(counters)
    buffer.drawing.last_draw = None  # which contents settled alone
    yield from _counter_effects(objects, counters, COUNTER_READ)


@command("vkCmdEndTransformFeedbackEXT")
def end_feedback(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Writes the counters."""
    buffer.drawing.feedback.active = False
    yield from _counter_effects(objects, _counters(args), COUNTER_WRITE)


def _counters(args: dict[str, Any]) -> dict[int, BoundBuffer]:
    """The counters by binding, without null handles."""
    buffers = args["pCounterBuffers"] or ()
    offsets = args["pCounterBufferOffsets"] or [0] * len(buffers)
    pairs = enumerate(zip(buffers, offsets, strict=False), args["firstCounterBuffer"])
    return {binding: BoundBuffer(id, offset, COUNTER_BYTES) for binding, (id, offset) in pairs if id}


def _counter_effects(objects: ObjectState, counters: dict[int, BoundBuffer], access_kind: int) -> Iterator[Effect]:
    """Accesses of counters, which the end of feedback makes after its begin.

    Rule: rules.md#feedback-ends-after-it-began.
    """
    for id, spans in _spans(objects, counters.values()).items():
        held = objects.buffer(id)
        if held is not None:
            order = RasterizationOrder.FEEDBACK
            yield from (replace(each, order=order) for each in access_of(held, access_kind, spans))


def _spans(objects: ObjectState, bound: Iterable[BoundBuffer]) -> dict[int, list[Span]]:
    """The addresses of bound ranges, by buffer."""
    found: dict[int, list[Span]] = {}
    for each in bound:
        held = objects.buffer(each.buffer)
        if held is not None:
            found.setdefault(held.id, []).append(bound_span(held, each.offset, each.size, 0, None))
    return found


def feedback_effects(objects: ObjectState, buffer: CommandBuffer) -> Iterator[Effect]:
    """The writes of a draw by transform feedback: the whole bound ranges, once between a begin and its end.

    Where feedback resumes after a counter, earlier bytes are not written again, and only the device knows how many
    these are. Such writes are reported as not modelled.
    """
    feedback = buffer.drawing.feedback
    if not feedback.active or feedback.written:
        return
    feedback.written = True
    if feedback.resumed & feedback.buffers.keys():
        yield Unmodelled("transform feedback that goes on after a counter")
    fresh = [bound for binding, bound in feedback.buffers.items() if binding not in feedback.resumed]
    for id, spans in _spans(objects, fresh).items():
        held = objects.buffer(id)
        if held is not None:
            yield from access_of(held, FEEDBACK_WRITE, spans)


@command("vkCmdBeginConditionalRenderingEXT")
def begin_condition(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads the condition, and so does every command that it decides about. These count as if the condition held.

    "Some implementations may latch the value of the predicate upon beginning conditional rendering while others may
    read it before every rendering command."
    """
    info = args["pConditionalRenderingBegin"]
    held = objects.buffer(info["buffer"])
    if held is not None:
        buffer.condition = tuple(access_of(held, CONDITION_READ, [held.span(info["offset"], CONDITION_BYTES)]))
    return buffer.condition


@command("vkCmdEndConditionalRenderingEXT")
def end_condition(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """A command with no effect on memory."""
    buffer.condition = ()
    return NOTHING


def under_condition(commands: Iterable[Command], condition: tuple[Effect, ...]) -> tuple[Command, ...]:
    """The commands of a secondary, of which each reads the condition of the primary that executes it."""
    return tuple(
        each.with_effects(condition + each.effects) if each.name.startswith(CONDITIONAL) else each for each in commands
    )
