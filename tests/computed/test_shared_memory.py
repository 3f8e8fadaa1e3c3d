"""Contents of images and buffers that share memory, after a write to one of them."""

from __future__ import annotations

import pytest

from tests.support.streams import COLOR, DST, GENERAL, UNDEFINED, Stream, layers, words
from vkharness.computed.expected_bytes import ComputedBytes, compute
from vkharness.fuzz.filled_calls import struct
from vkharness.spec.enums import VkImageCreate, VkImageLayout, VkImageTiling
from vkharness.trace.calls import Call

SIZE = (4, 4, 1)
BYTES = 64
ONE = [1.0, 0.0, 0.0, 1.0]
TEXEL = bytes([0xFF, 0, 0, 0xFF])
SURFACE = (COLOR, 0, 0)


class Shared:
    """An image in the middle of a memory object of which a buffer is all, and a buffer elsewhere."""

    def __init__(self, flags: int = 0) -> None:
        self.stream = Stream()
        self.memory = self.stream.memory(3 * BYTES)
        self.buffer = self.stream.buffer(3 * BYTES, self.memory)
        self.image = self.image_at(BYTES, flags)
        self.out = self.stream.buffer(BYTES)
        self.stream.begin()

    def image_at(self, offset: int, flags: int = 0) -> int:
        """A further image in the same memory."""
        return self.stream.image(SIZE, memory=self.memory, offset=offset, bytes=BYTES, flags=flags)

    def cleared(self, image: int = 0) -> None:
        """Clears an image, by default the first one."""
        self.stream.transition(image or self.image, UNDEFINED, DST)
        self.stream.clear(image or self.image, ONE)

    def found(self) -> ComputedBytes:
        """Submits, and returns the computed bytes."""
        self.stream.submit()
        return compute(self.stream.blocks)


def known(found: ComputedBytes, buffer: int) -> list[bool]:
    """For each third of a buffer, whether it is known."""
    flags = found.cells[buffer, None].known
    thirds = [set(flags[at : at + BYTES].tolist()) for at in range(0, 3 * BYTES, BYTES)]
    assert all(len(each) == 1 for each in thirds)
    return [each.pop() for each in thirds]


def test_a_write_to_an_image_leaves_undefined_the_bytes_of_its_memory_alone() -> None:
    shared = Shared()
    shared.stream.fill(shared.buffer, 7)
    shared.cleared()
    found = shared.found()
    assert known(found, shared.buffer) == [True, False, True]
    assert found.undefined[shared.buffer, None].sum() == BYTES
    assert found.cells[shared.image, SURFACE].data.tobytes() == TEXEL * 16
    assert found.cells[shared.image, SURFACE].known.all()


def test_what_is_read_from_bytes_that_an_image_had_is_undefined_too() -> None:
    shared = Shared()
    shared.cleared()
    shared.stream.copy(shared.buffer, shared.out, BYTES, from_=BYTES)
    found = shared.found()
    assert not found.cells[shared.out, None].known.any()
    assert found.undefined[shared.out, None].all()


@pytest.mark.parametrize(
    ("offset", "size", "stays"), [(BYTES, 4, False), (2 * BYTES - 4, 4, False), (0, BYTES, True), (2 * BYTES, 4, True)]
)
def test_a_write_to_bytes_leaves_undefined_the_image_that_lies_there(offset: int, size: int, stays: bool) -> None:
    shared = Shared()
    shared.cleared()
    shared.stream.fill(shared.buffer, 7, offset, size)
    found = shared.found()
    assert found.cells[shared.image, SURFACE].known.all() == stays
    assert found.undefined[shared.image, SURFACE].all() != stays


def test_bytes_are_known_again_once_they_are_written() -> None:
    shared = Shared()
    shared.cleared()
    shared.stream.fill(shared.buffer, 7)
    assert known(shared.found(), shared.buffer) == [True, True, True]


def test_a_transition_alone_leaves_undefined_what_shares_the_memory() -> None:
    shared = Shared()
    shared.stream.transition(shared.image, UNDEFINED, DST)
    shared.stream.fill(shared.buffer, 7)
    shared.stream.transition(shared.image, DST, GENERAL)
    assert known(shared.found(), shared.buffer) == [True, False, True]


def test_a_write_of_the_host_leaves_an_image_undefined() -> None:
    shared = Shared()
    shared.cleared()
    shared.stream.submit()
    shared.stream.host_write(shared.memory, 2 * BYTES - 4, words(1))
    found = compute(shared.stream.blocks)
    assert not found.cells[shared.image, SURFACE].known.any()


@pytest.mark.parametrize(("offset", "stays"), [(BYTES, False), (BYTES + 32, False), (2 * BYTES, True), (0, True)])
def test_a_write_to_an_image_leaves_undefined_the_images_that_overlap_it(offset: int, stays: bool) -> None:
    shared = Shared()
    other = shared.image_at(offset)
    shared.cleared()
    shared.cleared(other)
    found = shared.found()
    assert found.cells[shared.image, SURFACE].known.all() == stays
    assert found.cells[other, SURFACE].known.all()


@pytest.mark.parametrize(("flags", "offset", "same"), [(1, 0, True), (0, 0, False), (1, 16, False)])
def test_images_that_were_created_alike_hold_the_same_texels(flags: int, offset: int, same: bool) -> None:
    alias = VkImageCreate.ALIAS * flags
    shared = Shared(alias)
    other = shared.image_at(BYTES + offset, alias)
    shared.stream.transition(other, UNDEFINED, DST)
    shared.cleared()
    shared.stream.image_to_buffer(other, shared.out, SIZE, layers())
    found = shared.found()
    assert found.cells[shared.out, None].known.all() == same
    assert found.cells[other, SURFACE].known.all() == same
    assert not same or found.cells[shared.out, None].data.tobytes() == TEXEL * 16


def test_an_image_that_was_destroyed_still_loses_its_texels() -> None:
    """A replay makes all objects of a trace at once, and observes each at the end."""
    shared = Shared()
    shared.cleared()
    shared.stream.submit()
    shared.stream.call("vkDestroyImage", device=shared.stream.device, image=shared.image)
    shared.stream.begin()
    shared.stream.fill(shared.buffer, 7)
    found = shared.found()
    assert not found.cells[shared.image, SURFACE].known.any()


def test_an_image_of_which_nobody_asked_the_size_may_reach_to_the_end() -> None:
    stream = Stream()
    memory = stream.memory()
    image, buffer = stream.image(SIZE, memory=memory), stream.buffer(16, memory, offset=1 << 16)
    stream.begin()
    stream.fill(buffer, 7)
    stream.transition(image, UNDEFINED, DST)
    stream.submit()
    assert not compute(stream.blocks).cells[buffer, None].known.any()


@pytest.mark.parametrize(("granularity", "stays"), [(1, True), (256, False)])
def test_a_buffer_in_a_page_of_an_image_is_left_undefined(granularity: int, stays: bool) -> None:
    shared = Shared()
    limits = struct("VkPhysicalDeviceLimits", bufferImageGranularity=granularity)
    properties = struct("VkPhysicalDeviceProperties", limits=limits)
    call = Call(len(shared.stream.blocks) + 1, "vkGetPhysicalDeviceProperties", {"pProperties": properties}, None)
    shared.stream.blocks.append(call)
    shared.stream.fill(shared.buffer, 7)
    shared.cleared()
    assert known(shared.found(), shared.buffer) == [stays, False, stays]


@pytest.mark.parametrize(("tiling", "is_defined"), [(VkImageTiling.LINEAR, True), (VkImageTiling.OPTIMAL, False)])
def test_an_image_is_not_known_after_the_host_wrote_its_memory(tiling: int, is_defined: bool) -> None:
    """Elsewhere in the memory, the host writes what belongs to nobody."""
    stream = Stream()
    memory = stream.memory(4 * BYTES)
    image = stream.image(SIZE, memory=memory, bytes=BYTES, tiling=tiling)
    stream.begin()
    stream.transition(image, UNDEFINED, DST)
    stream.clear(image, ONE)
    stream.submit()
    stream.host_write(memory, 2 * BYTES, words(1))
    assert compute(stream.blocks).cells[image, SURFACE].known.all()
    stream.host_write(memory, 0, words(1))
    computed = compute(stream.blocks)
    assert not computed.cells[image, SURFACE].known.any()
    assert computed.undefined[image, SURFACE].all() != is_defined


def test_what_the_host_wrote_before_is_not_undefined() -> None:
    stream = Stream()
    initial = VkImageLayout.PREINITIALIZED
    image = stream.image(SIZE, tiling=VkImageTiling.LINEAR, initialLayout=initial)
    out = stream.buffer(BYTES)
    stream.begin()
    stream.transition(image, initial, GENERAL)
    stream.image_to_buffer(image, out, SIZE, layers(), GENERAL)
    stream.submit()
    computed = compute(stream.blocks)
    assert not computed.cells[out, None].known.any()
    assert not computed.undefined[out, None].any()
