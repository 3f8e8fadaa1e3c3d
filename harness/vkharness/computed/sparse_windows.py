"""Sparse resources: windows on the memory that vkQueueBindSparse gives them ("Sparse Resources").

The bytes of a sparse buffer and the texels of a sparse image are cells of their own, which commands read and write as
those of any resource. After each command, what it changed goes to the memory that is bound there, and from there to
each other place that has it. Contents stay with the memory when bindings change. What has no memory reads as
zeros on a device with residencyNonResidentStrict, and as anything on another one ("Accessing Unbound Regions").
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from vkharness.computed.followed_transfers import Box, KnownContents, SubresourceKey
from vkharness.computed.known_cells import Bytes, Cells, Mask
from vkharness.findings import UserError
from vkharness.replay.objects.sparse_binds import sparse_binds
from vkharness.spans import Span, SpanMap, subtract
from vkharness.spec.enums import VkImageCreate
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Call, reading
from vkharness.trace.resources import Buffer, Image
from vkharness.trace.sparse_effects import BIND_SPARSE

METADATA = 1
"""VK_SPARSE_MEMORY_BIND_METADATA_BIT."""
MOST_WORK = 1 << 32
"""Bytes that all commands of a trace may move between windows and memory."""
A_PIECE = 64
"""Cost of a look at a piece of a window, in such bytes."""
BySpace = Mapping[int, Iterable[Span]]
View = tuple[Bytes, Mask]


class InterpretedBytes(NamedTuple):
    """Bytes of a memory object, and how they are interpreted: what is bound there alike holds the same."""

    memory: int
    bytes: Span
    kind: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class WindowPiece:
    """A part of a window, and the memory that is bound to it."""

    window: Cells
    box: tuple[slice, ...]
    held: Cells
    held_box: tuple[slice, ...]
    memory: int
    bytes: Span

    @property
    def shown(self) -> View:
        """Data and known flags of the window."""
        return self.window.data[self.box], self.window.known[self.box]

    @property
    def kept(self) -> View:
        """Data and known flags of the memory."""
        return self.held.data[self.held_box], self.held.known[self.held_box]

    def changes(self) -> Mask:
        """Where the window is no longer what the memory holds."""
        (data, known), (other, kept) = self.shown, self.kept
        unlike = data != other
        if unlike.ndim > known.ndim:
            unlike = unlike.any(axis=-1)
        changes: Mask = (known != kept) | (known & unlike)
        return changes

    def store(self, where: Mask) -> None:
        """Takes units of the window over into the memory."""
        for target, source in zip(self.kept, self.shown, strict=True):
            target[where] = source[where]

    def load(self) -> None:
        """Shows what the memory holds."""
        for target, source in zip(self.shown, self.kept, strict=True):
            target[...] = source


class BoundBytes(NamedTuple):
    """Memory of bytes of a buffer: the memory object, and what to add to an offset for that of the memory."""

    memory: int
    shift: int


class SparseWindows:
    """The sparse buffers and images of a trace, while its steps are followed."""

    def __init__(self, contents: KnownContents, sparse: Container[int], reads_zeros: bool) -> None:
        """Those of `contents` that are `sparse`; each buffer of these has cells in a space of its own. `reads_zeros`:
        residencyNonResidentStrict."""
        self._contents = contents
        self._empty = reads_zeros or contents.takes_undefined
        """Whether what has no memory is known."""
        self._buffers: dict[int, tuple[Buffer, SpanMap[BoundBytes]]] = {
            id: (each, SpanMap()) for id, each in contents.buffers.items() if id in sparse
        }
        self._images: dict[int, Image] = {id: each for id, each in contents.images.items() if id in sparse}
        self._pieces: dict[SubresourceKey, dict[tuple[Span, Span, Span], WindowPiece]] = {}
        self._has_memory: dict[SubresourceKey, Mask] = {}
        """Which texels have memory, by subresource."""
        self._blocks: dict[tuple[int, Span], Cells] = {}
        """Texels that memory holds."""
        self._shapes: dict[int, tuple[int, int, int]] = {}
        """Texels of a sparse block of images: width, height, depth."""
        self._tails: dict[int, int] = {}
        """The first mip level of the mip tail of images."""
        self._used: set[int] = set()
        self._left = MOST_WORK
        for buffer, _ in self._buffers.values():
            self._discard(buffer.id, ((0, buffer.size),))

    def __bool__(self) -> bool:
        """Whether there is any sparse resource."""
        return bool(self._buffers or self._images)

    def prepare(self, calls: Iterable[Call], others: set[int], charge: Callable[[int], None]) -> None:
        """Makes the memory that the calls of a trace bind. `others` are memory objects that are bound in other ways,
        and `charge` is told of the bytes that are made.

        Raises `UserError` for memory that is interpreted in several ways: its bytes do not follow from the trace.
        """
        calls = [*calls]
        for call in calls:
            if main_name(call.name).startswith("vkGetImageSparseMemoryRequirements"):
                with reading(call):
                    self._note_blocks(call)
        for image in self._images.values():
            for aspect in image.aspects:
                for mip in range(image.mips):
                    self._prepare_texels(image, aspect, mip, charge)
            self._discard(image.id, (image.whole,))
        places: list[InterpretedBytes] = []
        for call in calls:
            if call.name == BIND_SPARSE:
                with reading(call):
                    places += (place for bind in sparse_binds(call) if (place := self._place(*bind)) is not None)
        _refuse_several_kinds(places, others)
        for memory, (_, end), kind in places:
            if not kind:
                held = self._contents.memory.setdefault(memory, Cells.of_memory(0))
                size = len(held.data)
                charge(max(0, end - size))
                held.grow(end)
                held.known[size:] = self._contents.takes_undefined

    def _prepare_texels(self, image: Image, aspect: int, mip: int, charge: Callable[[int], None]) -> None:
        width, height, depth = image.blocks(aspect, mip)
        for layer in range(image.layers):
            charge(width * height * depth * image.format.aspect_bytes(aspect))
            cells = self._contents.subresource(image.id, aspect, mip, layer)
            if cells is not None:
                self._has_memory[image.id, aspect, mip, layer] = np.zeros(cells.known.shape, np.bool_)

    def _note_blocks(self, call: Call) -> None:
        """Remembers the blocks of an image, and where its mip tail begins."""
        image = (call.args.get("pInfo") or call.args).get("image", 0)
        for each in call.args.get("pSparseMemoryRequirements") or ():
            answer = each.get("memoryRequirements", each)
            width, height, depth = answer["formatProperties"]["imageGranularity"].values()
            first = answer["imageMipTailFirstLod"] if answer["imageMipTailSize"] else 0
            self._shapes.setdefault(image, (max(1, width), max(1, height), max(1, depth)))
            self._tails[image] = min(first, self._tails.get(image, first))

    def _place(self, resource: int, bind: dict[str, Any]) -> InterpretedBytes | None:
        """Where the memory of a bind lies. Metadata and what is not followed have none."""
        memory, at, image = bind["memory"], bind["memoryOffset"], self._images.get(resource)
        if not memory or bind["flags"] & METADATA:
            return None
        if resource in self._buffers:
            begin, end = _clipped(bind, self._buffers[resource][0].size)
            return InterpretedBytes(
                memory, (begin - bind["resourceOffset"] + at, end - bind["resourceOffset"] + at), ()
            )
        if image is None:
            return None
        if "subresource" not in bind:
            return InterpretedBytes(memory, (at, at + bind["size"]), (resource, bind["resourceOffset"]))
        extent = bind["extent"]
        shape = (image.format_value, image.type, image.samples, *extent.values(), bind["subresource"]["aspectMask"])
        aliased = image.info["flags"] & VkImageCreate.SPARSE_ALIASED
        where = () if aliased else (resource, *bind["subresource"].values(), *bind["offset"].values())
        if resource not in self._shapes:
            raise UserError("the program never asked for the sparse blocks of an image: its bytes are not computed")
        size = image.format.aspect_bytes(shape[-1]) * image.samples
        for texels, of in zip(extent.values(), self._shapes[resource], strict=True):
            size *= -(-texels // of) * of
        return InterpretedBytes(memory, (at, at + size), (*shape, *where))

    # -- binding -------------------------------------------------------------------------------------------------------

    def bind(self, call: Call) -> None:
        """The binding operations of a vkQueueBindSparse, one after the other."""
        for resource, bind in sparse_binds(call):
            if resource in self._buffers:
                self._bind_bytes(resource, bind)
            elif resource in self._images and "subresource" in bind:
                self._bind_texels(resource, bind)
            elif resource in self._images:
                self._bind_opaque(resource, bind)

    def _bind_bytes(self, buffer: int, bind: dict[str, Any]) -> None:
        held, bound = self._buffers[buffer]
        begin, end = _clipped(bind, held.size)
        if begin >= end:
            return
        if bind["memory"]:
            bound.assign(begin, end, BoundBytes(bind["memory"], bind["memoryOffset"] - bind["resourceOffset"]))
            for piece in self._of_buffer(buffer, ((begin, end),)):
                piece.load()
        else:
            bound.erase(begin, end)
            self._discard(buffer, ((begin, end),))

    def _bind_texels(self, image: int, bind: dict[str, Any]) -> None:
        part, offset, extent = bind["subresource"], bind["offset"], bind["extent"]
        key = (image, part["aspectMask"], part["mipLevel"], part["arrayLayer"])
        if key not in self._has_memory:
            return
        window, pieces = self._contents.texels[key], self._pieces.setdefault(key, {})
        sizes = zip("zyx", ("depth", "height", "width"), window.known.shape, strict=True)
        z, y, x = ((min(offset[at], most), min(offset[at] + extent[size], most)) for at, size, most in sizes)
        box: Box = (slice(*z), slice(*y), slice(*x))
        for other in [each for each in pieces if all(map(_meet, each, (z, y, x)))]:
            if other != (z, y, x):
                raise UserError("sparse memory is bound to parts of what was bound as one")
            del pieces[other]
        self._has_memory[key][box] = bool(bind["memory"])
        place = self._place(image, bind)
        if place is None:
            self._discard_texels(key)
            return
        shape = window.known[box].shape
        if (place.memory, place.bytes) not in self._blocks:
            fresh = Cells.of_texels((shape[2], shape[1], shape[0]), window.data.shape[-1])
            fresh.known[...] = self._contents.takes_undefined
            self._blocks[place.memory, place.bytes] = fresh
        block = self._blocks[place.memory, place.bytes]
        everything = (slice(None), slice(None), slice(None))
        if block.known.shape != shape:
            raise UserError("sparse memory is bound to blocks at the edge of an image, and to others")
        pieces[z, y, x] = piece = WindowPiece(window, box, block, everything, place.memory, place.bytes)
        piece.load()

    def _bind_opaque(self, image: int, bind: dict[str, Any]) -> None:
        """Where texels lie in such memory is not known: they are what nobody knows, or undefined before the first use
        of the image."""
        is_metadata = bool(bind["flags"] & METADATA)
        for key, has_memory in self._has_memory.items():
            if key[0] == image and (is_metadata or key[2] >= self._tails.get(image, 0)):
                cells = self._contents.texels[key]
                if not is_metadata:
                    has_memory[...] = True
                cells.known[...] = self._contents.takes_undefined and image not in self._used

    # -- what commands do ----------------------------------------------------------------------------------------------

    def after(self, uses: BySpace, runs_shaders: bool) -> str:
        """A command has accessed these addresses of resources: what it wrote goes to memory, and to other windows.

        Answers with the reason where the command may have left something else; empty where it may not."""
        pieces: list[WindowPiece] = []
        discarded = False
        for id, spans in uses.items():
            self._used.add(id)
            pieces += self._of(id, spans)
            discarded = self._discard(id, spans) or discarded
        changed = [(each, where) for each in pieces if (where := each.changes()).any()]
        for each, where in changed:
            each.store(where)
        for each, _ in changed:
            self.load(each.memory, (each.bytes,))
        if any(_is_shared(each, pieces) for each, _ in changed):
            return "it writes sparse memory that it accesses at two places"
        return "it may read what it writes where no memory is bound" if discarded and runs_shaders else ""

    def forget_all(self) -> None:
        """Nothing of what memory holds of images is known any more."""
        for block in self._blocks.values():
            block.known[...] = False

    def load(self, memory: int, spans: Iterable[Span]) -> None:
        """Bytes of a memory object have changed: all windows on them show that."""
        for span in spans:
            for id, (_, bound) in self._buffers.items():
                for begin, end, held in bound:
                    low, high = max(begin, span[0] - held.shift), min(end, span[1] - held.shift)
                    self._spend(0)
                    if held.memory == memory and low < high:
                        for piece in self._of_buffer(id, ((low, high),)):
                            piece.load()
            for pieces in self._pieces.values():
                for piece in pieces.values():
                    self._spend(0)
                    if piece.memory == memory and _meet(piece.bytes, span):
                        piece.load()

    def _of(self, id: int, spans: Iterable[Span]) -> Iterator[WindowPiece]:
        """The parts of a window with memory that these addresses reach."""
        if id in self._buffers:
            yield from self._of_buffer(id, spans)
        elif id in self._images:
            found = {}
            for box in (box for span in spans for box in self._images[id].boxes(span)):
                (x, y, z), (width, height, depth) = box.offset, box.extent
                reached = (z, z + depth), (y, y + height), (x, x + width)
                for where, piece in self._pieces.get((id, box.aspect, box.mip, box.layer), {}).items():
                    self._spend(0)
                    if all(map(_meet, where, reached)):
                        found[box.aspect, box.mip, box.layer, where] = piece
            for piece in found.values():
                self._spend(piece.window.data[piece.box].size)
                yield piece

    def _of_buffer(self, buffer: int, spans: Iterable[Span]) -> Iterator[WindowPiece]:
        window = self._contents.memory[buffer]
        for span in spans:
            for begin, end, (memory, shift) in self._buffers[buffer][1].pieces(*span):
                self._spend(end - begin)
                held, there = self._contents.memory[memory], (begin + shift, end + shift)
                yield WindowPiece(window, (slice(begin, end),), held, (slice(*there),), memory, there)

    def _discard(self, id: int, spans: Iterable[Span]) -> bool:
        """Gives these addresses the contents that they have without memory. Returns whether that changes anything."""
        changed = False
        if id in self._buffers:
            window, bound = self._contents.memory[id], self._buffers[id][1]
            for span in spans:
                for begin, end in subtract([span], [each[:2] for each in bound.pieces(*span)]):
                    data, known = window.data[begin:end], window.known[begin:end]
                    changed = changed or bool(data.any() or (known != self._empty).any())
                    data[...], known[...] = 0, self._empty
                    self._spend(end - begin)
        elif id in self._images:
            boxes = (box for span in spans for box in self._images[id].boxes(span))
            for key in {(id, box.aspect, box.mip, box.layer): None for box in boxes}:
                changed = self._discard_texels(key) or changed
        return changed

    def _discard_texels(self, key: SubresourceKey) -> bool:
        cells, absent = self._contents.texels.get(key), ~self._has_memory.get(key, np.ones(0, np.bool_))
        if cells is None or not absent.any():
            return False
        self._spend(cells.data.size)
        changed = bool(cells.data[absent].any() or (cells.known[absent] != self._empty).any())
        cells.data[absent], cells.known[absent] = 0, self._empty
        return changed

    def _spend(self, bytes: int) -> None:
        self._left -= A_PIECE + bytes
        if self._left < 0:
            raise UserError("its commands use too much sparse memory: its bytes are not computed")


def _refuse_several_kinds(places: Iterable[InterpretedBytes], others: set[int]) -> None:
    """Memory is interpreted in one way: as bytes of buffers, or by images that bind the same bytes alike."""
    last: InterpretedBytes | None = None
    for place in sorted(places, key=lambda each: (each.memory, each.bytes)):
        if place.memory in others:
            raise UserError("sparse memory is bound to other resources, too: its bytes are not computed")
        if last is not None and last.memory == place.memory and place.bytes[0] < last.bytes[1]:
            if place.kind != last.kind or (place.kind and place.bytes != last.bytes):
                raise UserError("sparse memory is interpreted in several ways: its bytes are not computed")
            place = place._replace(bytes=(place.bytes[0], max(place.bytes[1], last.bytes[1])))
        last = place


def _is_shared(piece: WindowPiece, others: Iterable[WindowPiece]) -> bool:
    """Whether another piece has bytes of the same memory."""
    return any(each is not piece and each.memory == piece.memory and _meet(each.bytes, piece.bytes) for each in others)


def _clipped(bind: dict[str, Any], size: int) -> Span:
    """The bytes of a buffer that a VkSparseMemoryBind names."""
    return min(bind["resourceOffset"], size), min(bind["resourceOffset"] + bind["size"], size)


def _meet(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]
