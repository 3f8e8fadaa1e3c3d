"""Views of rendering: what the layer takes the attachment accesses of a command buffer for (`view_conditions`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness.layer.rendering_conditions import lost_pieces
from harness.layer.stream import CLEAR_ATTACHMENTS, RenderedPart, Stream, Touch
from harness.layer.view_conditions import Seen, recorded, view
from harness.spans import merge, overlap, subtract
from harness.spec.command_classes import ENDS_RENDERING, NEXT_SUBPASS
from harness.spec.scopes import ACCESS_KINDS
from harness.trace.calls import Call
from harness.trace.effects import Access, AttachmentOperation

OPERATIONS = (AttachmentOperation.LOAD, AttachmentOperation.STORE)


def _rendered(stream: Stream, calls: Sequence[Call]) -> Iterator[tuple[Call, Seen, tuple[RenderedPart, ...]]]:
    """Each call with its touches and the attachments of the render pass instance to which it belongs."""
    attached: tuple[RenderedPart, ...] = ()
    for call, touches in zip(calls, recorded(stream, calls), strict=True):
        attached = stream.facts(call).attached or attached
        yield call, touches, attached
        attached = () if call.name.startswith(ENDS_RENDERING) else attached


@view
def clears_of_whole_attachments(stream: Stream, calls: Sequence[Call]) -> Iterator[Seen]:
    """A clear of rectangles is one of all layers of the attachment."""
    for call, touches, attached in _rendered(stream, calls):
        widened = call.name == CLEAR_ATTACHMENTS
        yield [_widened(touch, attached) if widened else touch for touch in touches]


@view
def operations_on_all_layers(stream: Stream, calls: Sequence[Call]) -> Iterator[Seen]:
    """What load and store operations write to some layers of an attachment's view, they write to all."""
    for call, touches, attached in _rendered(stream, calls):
        made = [
            each for each in stream.facts(call).effects if isinstance(each, Access) and each.operation in OPERATIONS
        ]
        writing = {(each.space, each.spans) for each in made if ACCESS_KINDS[each.access_kind].write}
        yield [_widened(touch, attached) if (touch.space, touch.spans) in writing else touch for touch in touches]


def _widened(touch: Touch, attached: Sequence[RenderedPart]) -> Touch:
    wholes = [part.whole for part in attached if part.space == touch.space and overlap(touch.spans, part.whole)]
    return replace(touch, spans=tuple(merge([*touch.spans, *(span for whole in wholes for span in whole)])))


@view
def operations_in_the_area(stream: Stream, calls: Sequence[Call], resolves: bool = False) -> Iterator[Seen]:
    """Load and store operations, or resolves alone, write the render area alone."""
    chosen = (AttachmentOperation.RESOLVE_WRITE,) if resolves else OPERATIONS
    for call, touches, attached in _rendered(stream, calls):
        made = [each for each in stream.facts(call).effects if isinstance(each, Access) and each.operation in chosen]
        spaces = {each.space for each in made if ACCESS_KINDS[each.access_kind].write}
        yield [_narrowed(touch, attached) if touch.space in spaces else touch for touch in touches]


def _narrowed(touch: Touch, attached: Sequence[RenderedPart]) -> Touch:
    parts = [part for part in attached if part.space == touch.space and overlap(touch.spans, part.whole)]
    if not touch.write or not parts or "_ATTACHMENT_" not in touch.access:
        return touch
    return replace(touch, spans=tuple(merge([span for part in parts for span in overlap(touch.spans, part.area)])))


@view
def nothing_stored_by_none(stream: Stream, calls: Sequence[Call]) -> Iterator[Seen]:
    """A store operation NONE writes nothing, whatever the render pass instance wrote."""
    unstored: tuple[Touch, ...] = ()
    for call, touches in zip(calls, recorded(stream, calls), strict=True):
        unstored = stream.facts(call).if_written if stream.facts(call).attached else unstored
        ends = call.name.startswith((NEXT_SUBPASS, ENDS_RENDERING))
        yield [touch for touch in touches if not ends or touch not in unstored]


@view
def resolves_unstored(stream: Stream, calls: Sequence[Call]) -> Iterator[Seen]:
    """What a subpass resolved to is not stored."""
    for call, touches in zip(calls, recorded(stream, calls), strict=True):
        made = [each for each in stream.facts(call).effects if isinstance(each, Access)]
        resolved = {each.space for each in made if each.operation == AttachmentOperation.RESOLVE_WRITE}
        stored = {
            (each.space, ACCESS_KINDS[each.access_kind].name)
            for each in made
            if each.operation == AttachmentOperation.STORE and each.space in resolved
        }
        kept = {
            (each.space, ACCESS_KINDS[each.access_kind].name)
            for each in made
            if each.operation == AttachmentOperation.RESOLVE_WRITE
        }
        yield [touch for touch in touches if (touch.space, touch.access) not in stored - kept]


@view
def later_layers_uncleared(stream: Stream, calls: Sequence[Call]) -> Iterator[Seen]:
    """Inside a render pass a clear through a view that begins at another layer than the first is nothing."""
    for call, touches in zip(calls, recorded(stream, calls), strict=True):
        yield [] if call.name == CLEAR_ATTACHMENTS and stream.facts(call).later_layer else touches


@view
def first_pieces(stream: Stream, calls: Sequence[Call]) -> Iterator[Seen]:
    """The first access in a subpass to a range that earlier commands have cut is kept for its first piece alone."""
    lost: dict[tuple[int, int, str], list[Touch]] = {}
    for _, call, rest in lost_pieces(calls[:-1], stream):
        lost.setdefault((call.index, rest.space, rest.access), []).append(rest)
    for call, touches in zip(calls, recorded(stream, calls), strict=True):
        yield [
            replace(touch, spans=tuple(subtract(touch.spans, [span for each in gone for span in each.spans])))
            if (gone := lost.get((call.index, touch.space, touch.access)))
            else touch
            for touch in touches
        ]
