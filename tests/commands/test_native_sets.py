"""The native core finds out the same about descriptor sets as Python."""

from __future__ import annotations

import gc
import random
from typing import Any

import pytest

from tests.support.streams import struct
from vkharness import native
from vkharness.commands.drawing.descriptors import update_sets
from vkharness.commands.drawing.set_contents import MOST_BY_VALUE, contents_of
from vkharness.commands.drawing.state_parts import new_bound_sets, written_infos
from vkharness.commands.object_state import ObjectState
from vkharness.device.drivers import find_driver
from vkharness.device.process import Died, Worker
from vkharness.spec.enums import VK_WHOLE_SIZE
from vkharness.trace.calls import Call
from vkharness.trace.resources import Binding, Buffer, Descriptor, DescriptorSet, SetLayout

pytestmark = pytest.mark.skipif(native.core is None, reason=f"in use: {native.in_use}")
TYPES = (6, 7, 8, 9, 4, 3, 1)
"""Buffers, a texel buffer, images."""
JOBS = "tests.support.set_jobs"
SIZES = (0, 1, 16, 48, 64, VK_WHOLE_SIZE)


def some_objects(chosen: random.Random) -> ObjectState:
    """A few buffers, bound and not, and sets of two layouts."""
    objects = ObjectState()
    for id in range(1, 5):
        objects.add(Buffer(id, 64, chosen.choice((None, 90, 91)), 32 * chosen.randrange(3)))
    layouts = [SetLayout(id, {at: Binding(at, 7, 2) for at in range(3)}) for id in (5, 6)]
    for each in (*layouts, *(DescriptorSet(id, chosen.choice(layouts)) for id in range(10, 14))):
        objects.add(each)
    return objects


def a_write(chosen: random.Random) -> dict[str, Any]:
    kind = chosen.choice((*TYPES, 7, 7, 7, 7))
    info = {"buffer": chosen.randrange(1, 6), "offset": chosen.choice((0, 16, 70)), "range": chosen.choice(SIZES)}
    return struct(
        "VkWriteDescriptorSet",
        dstSet=chosen.randrange(10, 15),
        dstBinding=chosen.randrange(4),
        dstArrayElement=chosen.choice((0, 0, 0, 1, 2)),
        descriptorCount=chosen.choice((1, 1, 1, 1, 2, 0)),
        descriptorType=kind,
        pBufferInfo=[struct("VkDescriptorBufferInfo", **info)] * chosen.choice((1, 1, 1, 2)) if kind >= 6 else None,
        pTexelBufferView=[chosen.randrange(5)] if kind == 4 else None,
        pImageInfo=[struct("VkDescriptorImageInfo", imageView=chosen.randrange(5))] if kind in (1, 3) else None,
    )


def test_writes_and_contents_of_random_sets_are_those_of_python() -> None:
    written = moved = 0
    for seed in range(60):
        chosen = random.Random(seed)
        by_python, by_core = (some_objects(random.Random(seed)) for _ in range(2))
        sets, asked = new_bound_sets(by_core), list[int]()
        contents = counting_contents(by_core, asked)
        numbers: dict[int, int] = {}
        for _ in range(40):
            args = {"pDescriptorWrites": [a_write(chosen) for _ in range(chosen.randrange(3))], "pDescriptorCopies": []}
            call = Call(1, "vkUpdateDescriptorSets", args)
            update_sets(by_python, call)
            if sets.write(call.name, args):
                written += 1
            else:
                update_sets(by_core, call)
            for id in range(10, 14):
                mine, other = by_core.get(DescriptorSet, id), by_python.get(DescriptorSet, id)
                assert mine is not None and other is not None and mine.slots == other.slots
                assert list(mine.slots) == list(other.slots)
                assert list(map(hash, mine.slots.values())) == list(map(hash, other.slots.values()))
                found, wanted = contents(by_core, mine), contents_of(by_python, other)
                assert found.memories == wanted.memories and list(found.memories) == list(wanted.memories)
                assert (found.shape is None) == (wanted.shape is None)
                assert mine.contents == (by_core.moved, found)
                moved += len(asked) == 0
                asked.clear()
                # The core may tell apart less than Python does: ranges that hold the same bytes are the same to it.
                assert numbers.setdefault(wanted.number, found.number) == found.number
    assert written > 500 and moved > 2000, (written, moved)


def counting_contents(objects: ObjectState, asked: list[int]) -> Any:
    def counted(objects: ObjectState, held: DescriptorSet) -> Any:
        asked.append(held.id)
        return contents_of(objects, held)

    core: Any = native.core
    given = (Descriptor, Buffer(0, 0), MOST_BY_VALUE, 64)
    return core.NumberedContents(objects.shaders, objects.by_id, counted, *given)


def test_nothing_is_known_when_ids_mean_something_else() -> None:
    objects = some_objects(random.Random(1))
    asked: list[int] = []
    contents, held = counting_contents(objects, asked), objects.get(DescriptorSet, 10)
    assert held is not None
    held.slots[0, 0] = Descriptor(7, 1, 0, 16)
    first = contents(objects, held)
    held.contents = None
    assert contents(objects, held) is first and asked == [10]
    objects.shaders.clear()
    held.contents = None
    assert contents(objects, held).number != first.number and asked == [10, 10]


def test_contents_elsewhere_are_numbers_until_somebody_asks() -> None:
    objects = some_objects(random.Random(1))
    asked: list[int] = []
    contents, held = counting_contents(objects, asked), objects.get(DescriptorSet, 10)
    assert held is not None
    made = []
    for offset in (0, 16, 32, 16):
        held.slots[0, 0] = Descriptor(7, 1, offset, 16)
        held.contents = None
        made.append(contents(objects, held))
    first, moved, other, again = made
    assert asked == [10] and moved is again and moved.number < 0 < first.number
    assert len({each.number for each in made}) == 3 and len({each.shape for each in made}) == 1
    assert not gc.is_tracked(moved)
    (part,), base = moved.memories.values(), objects.buffer(1)
    assert base is not None and (part.begin, part.end) == (base.offset + 16, base.offset + 32)
    assert moved.memories is moved.memories and gc.is_tracked(moved)
    assert other.memories.keys() == {(0, 0)}


def test_slots_that_change_meanwhile_are_no_shape() -> None:
    objects = some_objects(random.Random(1))

    def changing(objects: ObjectState, held: DescriptorSet) -> Any:
        found = contents_of(objects, held)
        held.slots[0, 1] = Descriptor(7, 2, 0, 16)
        return found

    core: Any = native.core
    contents = core.NumberedContents(objects.shaders, objects.by_id, changing, Descriptor, Buffer(0, 0), 8, 8)
    held = objects.get(DescriptorSet, 10)
    assert held is not None
    for offset in (0, 16):
        held.slots = {(0, 0): Descriptor(7, 1, offset, 16)}
        held.contents = None
        assert contents(objects, held).number > 0, "Python is asked again"


def test_errors_of_python_are_raised() -> None:
    def failing(*_: object) -> None:
        raise MemoryError("of contents")

    core: Any = native.core
    objects = some_objects(random.Random(1))
    given = (objects.shaders, objects.by_id, failing, Descriptor, Buffer(0, 0), 8, 8)
    with pytest.raises(MemoryError, match="of contents"):
        core.NumberedContents(*given)(objects, objects.get(DescriptorSet, 10))
    with pytest.raises(AttributeError):
        core.NumberedContents(*given)(objects, None)
    with pytest.raises(TypeError):
        core.NumberedContents(*given)(objects)
    for wrong in (3, Descriptor(0, 0)):
        with pytest.raises(TypeError):
            core.NumberedContents(*given[:4], wrong, 8, 8)
    with pytest.raises(TypeError):
        core.SetWrites(objects.by_id, written_infos(), DescriptorSet, int)


@pytest.mark.parametrize("job", ["judge_sets", "judge_draws"])
def test_random_programs_that_record_natively_are_judged_as_call_by_call(job: str) -> None:
    findings = 0
    with Worker(find_driver("lavapipe"), packages=("tests",)) as worker:
        for seed in range(12):
            kept, waited = (worker.call(f"{JOBS}:{job}", {"seed": seed, "keep": keep}) for keep in (True, False))
            assert not isinstance(kept, Died)
            assert kept == waited, f"seed {seed}"
            findings += len(kept["told"])
    assert findings > 200
