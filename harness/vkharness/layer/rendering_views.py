"""Views of rendering: what the layer takes the attachment accesses of a command buffer for (`view_conditions`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from vkharness.layer.rendering_conditions import lost_pieces
from vkharness.layer.stream import CLEAR_ATTACHMENTS, Stream
from vkharness.layer.touches import TRANSITION, RenderedPart, Touch, common
from vkharness.layer.view_conditions import Seen, recorded, resolved_by, view
from vkharness.spans import merge, overlap, subtract
from vkharness.spec.command_classes import BEGINS_RENDERING, DRAWS, ENDS_RENDERING, NEXT_SUBPASS
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.trace.attachment_operations import AttachmentOperation
from vkharness.trace.calls import Call
from vkharness.trace.effects import Access

OPERATIONS = (AttachmentOperation.LOAD, AttachmentOperation.STORE)
ENTERS = ("vkCmdBeginRenderPass", NEXT_SUBPASS)


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
def draws_of_whole_attachments(stream: Stream, calls: Sequence[Call]) -> Iterator[Seen]:
    """A draw to an attachment to which its load operation wrote is one to all of it."""
    loaded: list[Touch] = []
    for call, touches, attached in _rendered(stream, calls):
        made = [each for each in stream.facts(call).effects if isinstance(each, Access) and not each.rewrite]
        wrote = {
            (each.space, each.spans)
            for each in made
            if each.operation == AttachmentOperation.LOAD and ACCESS_KINDS[each.access_kind].write
        }
        loaded = [] if call.name.startswith(BEGINS_RENDERING) else loaded
        loaded += [touch for touch in touches if touch.write and (touch.space, touch.spans) in wrote]
        draws = [touch for touch in touches if call.name.startswith(DRAWS) and touch.write and _is_attached(touch)]
        yield [_widened(touch, attached) if touch in draws and common([touch], loaded) else touch for touch in touches]


def _is_attached(touch: Touch) -> bool:
    return "_ATTACHMENT_" in touch.access


@view
def operations_on_all_layers(stream: Stream, calls: Sequence[Call]) -> Iterator[Seen]:
    """A load or store operation that writes to some layers of an attachment's view writes to all of them."""
    for call, touches, attached in _rendered(stream, calls):
        made = [
            each for each in stream.facts(call).effects if isinstance(each, Access) and each.operation in OPERATIONS
        ]
        writing = {(each.space, each.spans) for each in made if ACCESS_KINDS[each.access_kind].write}
        yield [_widened(touch, attached) if (touch.space, touch.spans) in writing else touch for touch in touches]


def _attachments_of(touch: Touch, attached: Sequence[RenderedPart]) -> list[RenderedPart]:
    return [part for part in attached if part.space == touch.space and overlap(touch.spans, part.whole)]


def _widened(touch: Touch, attached: Sequence[RenderedPart]) -> Touch:
    wholes = [part.whole for part in _attachments_of(touch, attached)]
    return replace(touch, spans=tuple(merge([*touch.spans, *(span for whole in wholes for span in whole)])))


@view
def operations_in_the_area(stream: Stream, calls: Sequence[Call]) -> Iterator[Seen]:
    """Load and store operations write the render area alone."""
    return _in_the_area(stream, calls, OPERATIONS)


@view
def resolves_in_the_area(stream: Stream, calls: Sequence[Call]) -> Iterator[Seen]:
    """Resolves write the render area alone."""
    return _in_the_area(stream, calls, (AttachmentOperation.RESOLVE_WRITE,))


def _in_the_area(stream: Stream, calls: Sequence[Call], chosen: Sequence[AttachmentOperation]) -> Iterator[Seen]:
    for call, touches, attached in _rendered(stream, calls):
        made = [each for each in stream.facts(call).effects if isinstance(each, Access) and each.operation in chosen]
        spaces = {each.space for each in made if ACCESS_KINDS[each.access_kind].write}
        yield [_narrowed(touch, attached) if touch.space in spaces else touch for touch in touches]


def _narrowed(touch: Touch, attached: Sequence[RenderedPart]) -> Touch:
    parts = _attachments_of(touch, attached)
    if not touch.write or not parts or not _is_attached(touch):
        return touch
    return replace(touch, spans=tuple(merge([span for part in parts for span in overlap(touch.spans, part.area)])))


@view
def nothing_stored_by_none(stream: Stream, calls: Sequence[Call]) -> Iterator[Seen]:
    """A store operation NONE writes nothing, whatever the render pass instance wrote."""
    unstored: tuple[Touch, ...] = ()
    for call, touches in zip(calls, recorded(stream, calls), strict=True):
        unstored = stream.facts(call).if_written if stream.facts(call).attached else unstored
        ends = call.name.startswith((NEXT_SUBPASS, ENDS_RENDERING))
        resolved = resolved_by(stream, call) if ends else ()
        gone = [touch for touch in unstored if ends and (touch.space, touch.access) not in resolved]
        yield [touch for touch in touches if touch not in gone]


@view
def resolves_unstored(stream: Stream, calls: Sequence[Call]) -> Iterator[Seen]:
    """A store operation writes nothing to an attachment to which the subpass resolves."""
    for call, touches in zip(calls, recorded(stream, calls), strict=True):
        made = [each for each in stream.facts(call).effects if isinstance(each, Access)]
        kept = resolved_by(stream, call)
        resolved = {space for space, _ in kept}
        stored = {
            (each.space, ACCESS_KINDS[each.access_kind].name)
            for each in made
            if each.operation == AttachmentOperation.STORE and each.space in resolved
        }
        yield [touch for touch in touches if (touch.space, touch.access) not in stored - kept]


@view
def later_layers_uncleared(stream: Stream, calls: Sequence[Call]) -> Iterator[Seen]:
    """Inside a render pass a clear through a view that begins at another layer than the first is nothing."""
    for call, touches, attached in _rendered(stream, calls):
        clears = call.name == CLEAR_ATTACHMENTS
        later = [part for part in attached if part.later_layer]
        yield [touch for touch in touches if not clears or not _attachments_of(touch, later)]


@view
def later_rows_outside(stream: Stream, calls: Sequence[Call]) -> Iterator[Seen]:
    """Rows of the last access but its first are looked up outside the subpass, where one access of the subpass in one
    piece covers them all, or a transition at its beginning."""
    entered = max((at for at, call in enumerate(calls[:-1]) if call.name.startswith(ENTERS)), default=len(calls))
    ended = any(call.name.startswith(ENDS_RENDERING) for call in calls[entered:-1])
    several = [touch for touch in stream.touches(calls[-1]) if len(touch.spans) > 1]
    for at, touches in enumerate(recorded(stream, calls)):
        inside = entered <= at < len(calls) - 1 and not ended
        own = at == len(calls) - 1
        yield [
            _first_row_alone(touch, several) if inside or (own and touch.access == TRANSITION) else touch
            for touch in touches
        ]


def _first_row_alone(touch: Touch, several: Sequence[Touch]) -> Touch:
    """A touch without the later rows of accesses that lie in one of its spans."""
    for each in several:
        begin, end = each.spans[0][0], each.spans[-1][1]
        if each.space == touch.space and any(low <= begin and end <= high for low, high in touch.spans):
            touch = replace(touch, spans=tuple(subtract(touch.spans, each.spans[1:])))
    return touch


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
