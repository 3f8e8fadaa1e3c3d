"""Copies whose regions lie in memory, named by addresses (VK_KHR_copy_memory_indirect; specification: "Copying Data
Between Memory Regions", "Indirect Copies").

The parameters are read with INDIRECT_COMMAND_READ at COPY_INDIRECT. What they hold when the copy is executed decides
the rest. Rules: rules.md#indirect-parameters-are-read-first, rules.md#contents-decide-what-a-draw-reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from struct import Struct
from typing import Any, NamedTuple

from vkharness.commands.contents.content_steps import Deferred, Outcome, Overwritten, overwritten
from vkharness.commands.contents.known_memory import KnownMemory
from vkharness.commands.handlers import command
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.commands.resources.acceleration_structures import addressed
from vkharness.commands.transfer import COPY_READ, COPY_WRITE, boxes_of, buffer_access, image_access, rows_of
from vkharness.findings import Certainty
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.trace.effects import Effect, Unmodelled
from vkharness.trace.resources import Image
from vkharness.trace.work_budget import spend

PARAMETERS = ACCESS_KIND["SYNC_COPY_INDIRECT_INDIRECT_COMMAND_READ"].index
BETWEEN_MEMORY, TO_IMAGE = Struct("<3Q"), Struct("<Q2I4I3i3I")
"""A VkCopyMemoryIndirectCommandKHR, and a VkCopyMemoryToImageIndirectCommandKHR."""
UNKNOWN = Unmodelled("copies by addresses in memory whose bytes are unknown")
Args = dict[str, Any]


class Copies(NamedTuple):
    """Where the parameters lie, how many there are, and the image and its subresources that they write, if any."""

    address: int
    number: int
    stride: int
    image: int = 0
    layers: tuple[Args, ...] = ()

    @property
    def form(self) -> Struct:
        """That of one parameter."""
        return TO_IMAGE if self.image else BETWEEN_MEMORY


@dataclass(slots=True)
class IndirectCopies(Deferred):
    """Copies of which the contents of memory decide all but the read of their parameters."""

    objects: ObjectState = field(compare=False, repr=False)
    copies: Copies
    recorded: int
    """How many effects the command has while it is recorded."""

    def outcome(self, memory: KnownMemory) -> Outcome:
        """All accesses."""
        return Outcome(tuple(_effects(self.objects, self.copies, memory)), replaced=self.recorded)


def _effects(objects: ObjectState, copies: Copies, memory: KnownMemory | None) -> Iterator[Effect]:
    """Yields the accesses of copies with these contents of memory; `memory` is None while they are recorded."""
    size = copies.form.size
    spend(copies.number, "indirect copies")
    starts = range(copies.address, copies.address + copies.number * copies.stride, copies.stride)
    whole = (copies.address, (copies.number - 1) * copies.stride + size)
    for place in (whole,) if copies.stride == size else ((at, size) for at in starts):
        yield from addressed(objects, PARAMETERS, *place)
    for which, at in enumerate(starts):
        found = objects.addresses.find(at, size)
        data = None
        if found is not None and memory is not None:
            data = memory.read(found[0].space, found[0].span(found[1], size))
        values = None if data is None or len(data) != size else copies.form.unpack(data)
        if values is None:
            yield from _unknown(objects, copies, which)
        elif copies.image:
            yield from _to_image(objects, copies.image, values)
        elif values[2]:
            yield from addressed(objects, COPY_READ, values[0], values[2])
            yield from addressed(objects, COPY_WRITE, values[1], values[2])


def _to_image(objects: ObjectState, id: int, values: tuple[int, ...]) -> Iterator[Effect]:
    """A copy of rows at an address to a box of an image."""
    image, found = objects.image(id), objects.addresses.find(values[0])
    layers = dict(zip(("aspectMask", "mipLevel", "baseArrayLayer", "layerCount"), values[3:7], strict=True))
    region: Args = {
        "bufferRowLength": values[1],
        "bufferImageHeight": values[2],
        "imageSubresource": layers,
        "imageOffset": dict(zip("xyz", values[7:10], strict=True)),
        "imageExtent": dict(zip(("width", "height", "depth"), values[10:13], strict=True)),
    }
    if found is None:
        yield from addressed(objects, COPY_READ, values[0], 1)  # names it
    else:
        buffer, offset = found
        yield from buffer_access(COPY_READ, buffer, rows_of(buffer, image, [region | {"bufferOffset": offset}]))
    yield from image_access(COPY_WRITE, image, boxes_of(image, [region]))


def _unknown(objects: ObjectState, copies: Copies, number: int) -> Iterator[Effect]:
    """A copy by unknown parameters: the subresource that it writes is known, if any."""
    yield replace(UNKNOWN, open=True)
    image = objects.image(copies.image)
    if image is not None and number < len(copies.layers):
        yield from image_access(COPY_WRITE, image, _whole(image, copies.layers[number]), Certainty.DECLARED)


def _whole(image: Image, part: Args) -> list[tuple[int, int]]:
    return list(image.subresources(part["aspectMask"], part["mipLevel"], 1, part["baseArrayLayer"], part["layerCount"]))


def _recorded(objects: ObjectState, buffer: CommandBuffer, copies: Copies) -> Iterable[Effect]:
    if not copies.number or not copies.stride:
        return ()
    effects = tuple(_effects(objects, copies, None))
    writes = overwritten(effects) or Overwritten(())
    buffer.defer(IndirectCopies(objects, copies, len(effects), writes=writes), objects.contents)
    return effects


@command("vkCmdCopyMemoryIndirectKHR", "vkCmdCopyMemoryIndirectNV")
def copy_memory(objects: ObjectState, buffer: CommandBuffer, args: Args) -> Iterable[Effect]:
    """Copies between ranges of memory."""
    return _recorded(objects, buffer, _copies(args, args.get("pCopyMemoryIndirectInfo")))


@command("vkCmdCopyMemoryToImageIndirectKHR", "vkCmdCopyMemoryToImageIndirectNV")
def copy_to_image(objects: ObjectState, buffer: CommandBuffer, args: Args) -> Iterable[Effect]:
    """Copies from memory to boxes of an image."""
    info = args.get("pCopyMemoryToImageIndirectInfo")
    given = args if info is None else info
    copies = _copies(args, info)
    return _recorded(
        objects, buffer, copies._replace(image=given["dstImage"], layers=tuple(given["pImageSubresources"] or ()))
    )


def _copies(args: Args, info: Args | None) -> Copies:
    """Where the parameters are, in either form of the command."""
    if info is None:
        return Copies(args["copyBufferAddress"], args["copyCount"], args["stride"])
    return Copies(info["copyAddressRange"]["address"], info["copyCount"], info["copyAddressRange"]["stride"])
