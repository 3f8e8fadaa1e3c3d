"""A dispatch accesses what its sets refer to, whichever sets these are and wherever that lies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.bound_sets import DYNAMIC, STORAGE, TwoBuffers
from tests.support.interpreted import short
from tests.support.streams import struct
from vkharness.commands.drawing.shaders import ShaderRun
from vkharness.commands.recently_used import RecentlyUsed
from vkharness.spec.enums import VK_WHOLE_SIZE
from vkharness.trace.effects import Access, Effect


@pytest.fixture
def evaluations(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ShaderRun]]:
    """The runs of shaders that were evaluated."""
    found: list[ShaderRun] = []
    evaluated = ShaderRun._evaluated

    def counted(self: ShaderRun, *args: Any) -> Iterator[Effect]:
        found.append(self)
        return evaluated(self, *args)

    monkeypatch.setattr(ShaderRun, "_evaluated", counted)
    yield found


def test_sets_with_equal_contents_have_one_plan() -> None:
    two = TwoBuffers()
    ranges = ((two.stream.buffer(256), 0, 128), (two.stream.buffer(256), 64, 128))
    first = two.run(two.made(*ranges))
    assert two.run(two.made(*ranges)) is first
    assert two.run(two.made(*reversed(ranges))) != first


def test_dynamic_offsets_are_part_of_the_contents() -> None:
    two = TwoBuffers(DYNAMIC, STORAGE)
    read, written = two.stream.buffer(256), two.stream.buffer(256)
    ranges = ((read, 0, 64), (written, 32, 64))
    first = two.run(two.made(*ranges), 64)
    assert [each[1:] for each in short(first.effects)] == [(read, ((64, 128),)), (written, ((32, 96),))]
    other = two.made(*ranges)
    assert two.run(other, 64) is first
    assert two.run(other, 128) != first


def test_a_set_that_is_written_anew_has_other_contents() -> None:
    two = TwoBuffers()
    read, written = two.stream.buffer(256), two.stream.buffer(256)
    held = two.made((read, 0, 64), (written, 0, 64))
    first = two.run(held)
    two.write(held, (read, 128, 64))
    assert [each[1:] for each in short(two.run(held).effects)] == [(read, ((128, 192),)), (written, ((0, 64),))]
    two.write(held, (read, 0, 64))
    assert two.run(held) is first


def test_a_buffer_that_is_gone_is_accessed_no_more() -> None:
    two = TwoBuffers()
    read, written = two.stream.buffer(256), two.stream.buffer(256)
    held = two.made((read, 0, 64), (written, 0, 64))
    assert len(two.run(held).effects) == 2
    two.stream.call("vkDestroyBuffer", device=two.stream.device, buffer=read)
    assert [each[1] for each in short(two.run(held).effects)] == [written]


def test_a_buffer_that_is_bound_lies_elsewhere() -> None:
    two = TwoBuffers()
    info = struct("VkBufferCreateInfo", size=256, usage=0x20)
    read, written = two.stream.make("vkCreateBuffer", "pBuffer", info), two.stream.buffer(256)
    held = two.made((read, 0, 64), (written, 0, 64))

    def place() -> tuple[int, tuple[tuple[int, int], ...]]:
        access = two.run(held).effects[0]
        assert isinstance(access, Access)
        return access.space, access.spans

    assert place() == (read, ((0, 64),))
    memory, allocated = two.stream.id(), struct("VkMemoryAllocateInfo", allocationSize=4096)
    two.stream.call("vkAllocateMemory", device=two.stream.device, pAllocateInfo=allocated, pMemory=memory)
    two.stream.call("vkBindBufferMemory", device=two.stream.device, buffer=read, memory=memory, memoryOffset=1024)
    assert place() == (memory, ((1024, 1088),))


def test_memory_of_the_same_size_elsewhere_is_not_evaluated_again(evaluations: list[ShaderRun]) -> None:
    two = TwoBuffers()
    read, written = two.stream.buffer(512), two.stream.buffer(512)
    for at in range(4):
        effects = two.run(two.made((read, 64 * at, 64), (written, 32 * at, 64))).effects
        assert [each[2] for each in short(effects)] == [((64 * at, 64 * at + 64),), ((32 * at, 32 * at + 64),)]
    assert len(evaluations) == 1
    two.run(two.made((read, 0, 64), (written, 0, 60)))
    assert len(evaluations) == 2, "another size"


RANGES: dict[str, Callable[[int, int], tuple[tuple[int, int, int], ...]]] = {
    "apart": lambda one, other: ((one, 16, 64), (other, 4, 64)),
    "one buffer": lambda one, other: ((one, 0, 64), (one, 64, 64)),
    "the same bytes": lambda one, other: ((one, 32, 64), (one, 32, 64)),
    "bytes in common": lambda one, other: ((one, 32, 64), (one, 48, 64)),
    "a part": lambda one, other: ((one, 8, 16), (other, 4, 12)),
    "to the end": lambda one, other: ((one, 240, VK_WHOLE_SIZE), (other, 252, VK_WHOLE_SIZE)),
    "nothing": lambda one, other: ((one, 256, VK_WHOLE_SIZE), (other, 0, 64)),
}


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("name", RANGES)
def test_accesses_that_are_moved_are_those_that_are_evaluated(
    name: str, groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def effects(remembers: bool) -> tuple[Effect, ...]:
        two = TwoBuffers()
        ranges = RANGES[name](two.stream.buffer(256), two.stream.buffer(256))
        elsewhere = tuple(
            (two.stream.buffer(4096), 512 + 128 * at, min(each[2], 256 - each[1])) for at, each in enumerate(ranges)
        )
        with monkeypatch.context() as patched:
            if not remembers:
                patched.setattr(ShaderRun, "_moved", lambda *_: None)
            two.run(two.made(*elsewhere), groups=groups)
            return two.run(two.made(*ranges), groups=groups).effects

    assert effects(True) == effects(False)


def test_a_large_set_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vkharness.commands.drawing.set_contents.MOST_BY_VALUE", 1)
    two = TwoBuffers()
    ranges = ((two.stream.buffer(256), 0, 128), (two.stream.buffer(256), 64, 128))
    one = two.made(*ranges)
    first = two.run(one)
    assert two.run(one) is first
    assert two.run(two.made(*ranges)) is not first
    assert two.run(two.made(*ranges)) == first


def test_what_nobody_asks_for_is_forgotten() -> None:
    table = RecentlyUsed[int, int](4)
    for number in range(100):
        table[number] = number
        assert table.get(0) == 0, "asked for all the time"
        assert len(table) <= 8
    assert table.get(50) is None and table.get(99) == 99
    table.clear()
    assert len(table) == 0
