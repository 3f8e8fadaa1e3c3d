"""Store operations NONE, which are like DONT_CARE when the render pass instance wrote to their attachment.

Specification: VK_ATTACHMENT_STORE_OP_NONE; rules.md#store-operation-none-after-a-write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vkharness.commands.object_state import CommandBuffer
from vkharness.spans import overlap
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.trace.attachment_operations import RasterizationOrder
from vkharness.trace.effects import Access, Effect, Execute, Unmodelled
from vkharness.trace.rendering_state import RenderingState


def begin(buffer: CommandBuffer, resumes: bool = False) -> None:
    """Notes where a render pass instance begins among the commands. One that resumes goes on with an earlier part."""
    if not resumes:
        buffer.instance_from = len(buffer.commands)
    elif not buffer.suspended:
        buffer.instance_from = None
    buffer.suspended = False


def stores(buffer: CommandBuffer, ended: RenderingState) -> Iterator[Effect]:
    """The writes of the store operations NONE at the end of a subpass, or of an instance of dynamic rendering."""
    if not ended.stores_if_written:
        return
    commands = buffer.commands[buffer.instance_from or 0 :]
    made = [each for command in commands for each in _attachment_writes(command.effects)]
    made += _attachment_writes(ended.at_end)
    for stored in ended.stores_if_written:
        store = next(each for each in stored if isinstance(each, Access))
        if any(each.space == store.space and overlap(each.spans, store.spans) for each in made):
            yield from stored
        elif buffer.instance_from is None:
            yield Unmodelled("a store operation NONE of rendering that another command buffer suspended")


def _attachment_writes(effects: Iterable[Effect]) -> Iterator[Access]:
    for effect in effects:
        if isinstance(effect, Access):
            if effect.order != RasterizationOrder.NONE and ACCESS_KINDS[effect.access_kind].write:
                yield effect
        elif isinstance(effect, Execute):
            for _, commands in effect.buffers:
                for command in commands:
                    yield from _attachment_writes(command.effects)
