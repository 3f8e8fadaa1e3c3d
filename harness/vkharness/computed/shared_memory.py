"""Images that share memory with other resources: what a write to one leaves undefined there ("Memory Aliasing").

Where the texels of an image lie in its memory is not known here. A write to any of it leaves undefined all bytes that
buffers have there, and a write to one of these bytes all of the image. Two images that were created alike with
VK_IMAGE_CREATE_ALIAS_BIT, and are bound alike, hold the same texels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from vkharness.computed.followed_transfers import KnownContents
from vkharness.spans import Span
from vkharness.spec.enums import VkImageCreate, VkImageTiling
from vkharness.trace.resources import Buffer, Image

ENDLESS = 1 << 64
"""The size of an image of which the program never asked the size."""


class PlacedImage(NamedTuple):
    """An image, its bytes in its memory, and the same rounded to pages that it shares with no linear resource."""

    image: Image
    bytes: Span
    pages: Span

    @property
    def is_linear(self) -> bool:
        """Whether its tiling is linear, so that other linear resources may interpret its memory alike."""
        return bool(self.image.info.get("tiling") == VkImageTiling.LINEAR)

    def meets(self, other: PlacedImage) -> bool:
        """Whether the two overlap in memory."""
        if self.image.memory != other.image.memory:
            return False
        if self.is_linear == other.is_linear:
            return _meet(self.bytes, other.bytes)
        return _meet(self.pages, other.pages)


class SharedMemory:
    """The images of a trace that overlap other resources, as a replay binds them: all at once."""

    def __init__(self, contents: KnownContents, buffers: Iterable[Buffer], images: Iterable[Image], page: int) -> None:
        """`page` is bufferImageGranularity. Notes in `contents` which images hold the same texels."""
        self._contents = contents
        placed = [_placed(image, page) for image in images if image.memory is not None]
        self._placed = {each.image.id: each for each in placed}
        self._in_memory: dict[int, list[PlacedImage]] = {}
        """The same by memory object."""
        self._shares = False
        for several, has_buffers in _together(placed, buffers):
            self._shares = self._shares or len(several) + has_buffers > 1
            for at, each in enumerate(several):
                self._in_memory.setdefault(each.image.memory or 0, []).append(each)
                alike = next((other for other in several[:at] if _are_alike(each.image, other.image)), None)
                if alike is not None:
                    contents.names[each.image.id] = contents.name(alike.image.id)
        for each in self._placed.values():
            self._leave_bytes(each)

    def __bool__(self) -> bool:
        """Whether any image may share memory. Otherwise writes of the host alone have to be told."""
        return self._shares

    def wrote(self, space: int, spans: Iterable[Span]) -> None:
        """A write to bytes of a memory object, or to an image."""
        written = self._placed.get(space)
        if written is None:
            for each in self._in_memory.get(space, ()):
                if any(_meet(span, each.pages) for span in spans):
                    self._leave_texels(each, each.is_linear)
            return
        self._leave_bytes(written)
        name = self._contents.name(space)
        for each in self._in_memory[written.image.memory or 0]:
            if each.meets(written) and self._contents.name(each.image.id) != name:
                self._leave_texels(each, each.is_linear and written.is_linear)

    def _leave_bytes(self, placed: PlacedImage) -> None:
        """The bytes of buffers in the memory of an image are not what they were."""
        cells = self._contents.memory.get(placed.image.memory or 0)
        if cells is not None:
            begin, end = placed.pages
            cells.known[begin:end] = self._contents.takes_undefined and not placed.is_linear

    def _leave_texels(self, placed: PlacedImage, is_defined: bool) -> None:
        """The texels of an image are not what they were; `is_defined`: the specification says what they are."""
        for cells in self._contents.texels_of(placed.image.id):
            cells.known[...] = self._contents.takes_undefined and not is_defined


def _together(placed: Iterable[PlacedImage], buffers: Iterable[Buffer]) -> Iterator[tuple[Sequence[PlacedImage], bool]]:
    """Images that may overlap, directly or through others, and whether buffers are among these."""
    everything: list[tuple[int, Span, PlacedImage | None]] = [
        (each.image.memory or 0, each.pages, each) for each in placed
    ]
    everything += [(each.space, (each.offset, each.offset + each.size), None) for each in buffers]
    several: list[PlacedImage] = []
    has_buffers, last = False, (0, 0)
    for memory, (begin, end), image in sorted(everything, key=lambda each: each[:2]):
        if (memory, begin) >= last:
            yield several, has_buffers
            several, has_buffers, last = [], False, (memory, end)
        last = max(last, (memory, end))
        has_buffers = has_buffers or image is None
        several += [image] if image is not None else []
    yield several, has_buffers


def _placed(image: Image, page: int) -> PlacedImage:
    begin, end = image.offset, image.offset + (image.bytes or ENDLESS)
    if image.info.get("tiling") == VkImageTiling.LINEAR:
        return PlacedImage(image, (begin, end), (begin, end))
    return PlacedImage(image, (begin, end), (begin // page * page, -(-end // page) * page))


def _are_alike(one: Image, other: Image) -> bool:
    same = (one.memory, one.offset, one.info) == (other.memory, other.offset, other.info)
    return same and bool(one.info.get("flags", 0) & VkImageCreate.ALIAS)


def _meet(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]
