"""What copies do that nobody has recorded before: the native core finds what the handler finds."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import native
from harness.commands.interpret import RepeatedCommand
from harness.commands.object_state import CommandBuffer, ObjectState
from harness.commands.transfer import copy_buffer, new_copies
from harness.trace.effects import Access, EffectPlan
from harness.trace.resources import Buffer

pytestmark = pytest.mark.skipif(native.core is None, reason=f"in use: {native.in_use}")
NUMBERS = st.one_of(st.integers(0, 40), st.sampled_from([(1 << 61) - 1, 1 << 61, (1 << 64) - 1]))
REGIONS = st.fixed_dictionaries({"srcOffset": NUMBERS, "dstOffset": NUMBERS, "size": NUMBERS})
BUFFERS = st.builds(
    Buffer, st.just(0), st.integers(0, 40), st.sampled_from([None, 9]), st.sampled_from([0, 16, 1 << 62])
)
INTO = 5


def state(*buffers: Buffer) -> ObjectState:
    objects = ObjectState()
    for number, each in enumerate(buffers, 1):
        objects.add(Buffer(number, each.size, each.memory, each.offset))
    return objects


def a_copy(source: int, target: int, *regions: dict[str, int]) -> dict[str, Any]:
    return {"commandBuffer": INTO, "srcBuffer": source, "dstBuffer": target, "pRegions": list(regions)}


def told(plan: Any) -> tuple[Any, ...]:
    assert type(plan) is EffectPlan and all(type(each) is Access for each in plan.effects)
    return repr(plan.effects), plan.effects, plan.writes, type(plan.writes), hash(plan)


@given(BUFFERS, BUFFERS, st.lists(REGIONS, min_size=1, max_size=2), st.booleans(), st.sampled_from([1, 2, 3]))
def test_it_is_what_the_handler_finds(one: Buffer, other: Buffer, regions: Any, two: bool, target: int) -> None:
    objects, handler_alone = state(one, other), state(one, other)
    buffer, copies = CommandBuffer(INTO, 0), new_copies(objects, RepeatedCommand)
    args = a_copy(1, target, *regions)
    name, given = (
        ("vkCmdCopyBuffer2", {"commandBuffer": INTO, "pCopyBufferInfo": args}) if two else ("vkCmdCopyBuffer", args)
    )
    assert copies.record(buffer, INTO, 7, name, given) is None
    plan = copy_buffer(objects, buffer, given)
    found = copies.record(buffer, INTO, 7, name, given)
    offset = max(one.offset, (one if target == 1 else other).offset)
    fits = len(regions) == 1 and max(*regions[0].values(), offset) < 1 << 61
    if found is None:
        assert not fits or target == 3 or len(tuple(plan)) < 2
        return
    assert fits and type(found) is RepeatedCommand and found[:2] == (7, buffer) and target in objects.said
    again = copy_buffer(handler_alone, buffer, given)
    assert told(found.plan) == told(plan) == told(again)
    assert copies.record(buffer, INTO, 7, name, given).plan is not None
    objects.changed(target)
    assert copies.record(buffer, INTO, 7, name, given) is None


def test_equal_copies_of_command_buffers_have_one_plan() -> None:
    objects = state(Buffer(0, 16), Buffer(0, 16))
    copies, args = new_copies(objects, RepeatedCommand), a_copy(1, 2, {"srcOffset": 0, "dstOffset": 0, "size": 8})
    plans = [copy_buffer(objects, CommandBuffer(INTO, 0), args)]
    plans += [copies.record(None, INTO, 0, "vkCmdCopyBuffer", args).plan for _ in range(3)]
    plans.append(copy_buffer(objects, CommandBuffer(INTO, 0), args))
    assert plans[0] is not plans[1] is plans[2] is plans[3] is plans[4]


def test_what_is_no_copy_is_left_to_python() -> None:
    objects = state(Buffer(0, 16), Buffer(0, 16))
    copies, region = new_copies(objects, RepeatedCommand), {"srcOffset": 0, "dstOffset": 0, "size": 8}
    args = a_copy(1, 2, region)
    copy_buffer(objects, CommandBuffer(INTO, 0), args)
    for name in ("vkCmdCopyBufferToImage", "vkCmdCopyBuff", "", "vkCmdCopyImage", "\ud800", 3):
        assert _refused(copies, INTO, name, args)
    assert copies.record(None, INTO, 0, "vkCmdCopyBuffer2KHR", args) is not None
    hostile: list[Any] = [
        None,
        {},
        [region] * 2,
        [None],
        [{}],
        [region | {"size": True}],
        [region | {"size": -1}],
        (region,),
    ]
    for each in hostile:
        assert _refused(copies, INTO, "vkCmdCopyBuffer", args | {"pRegions": each})
    for key in ("srcBuffer", "dstBuffer", "commandBuffer"):
        for other in ("1", 3, None):
            assert _refused(copies, INTO, "vkCmdCopyBuffer", args | {key: other})
        assert _refused(copies, INTO, "vkCmdCopyBuffer", args | {key: []})
    assert _refused(copies, 6, "vkCmdCopyBuffer", args) and _refused(copies, INTO, "vkCmdCopyBuffer", [])
    for place in ((1, 9), (1, 9, 0, "16"), [1, 9, 0, 16], (1, 9, -1, 16)):
        objects.plans.places[1] = place  # type: ignore[assignment]
        assert _refused(copies, INTO, "vkCmdCopyBuffer", args)


def _refused(copies: Any, into: int, name: Any, args: Any) -> bool:
    try:
        return copies.record(None, into, 0, name, args) is None
    except (TypeError, UnicodeError):
        return True


def test_errors_of_the_plan_table_are_raised_and_nothing_stays_alive() -> None:
    def failing(*_: object) -> None:
        raise MemoryError("of the table")

    plan: Any = None
    accesses = (Access(0, 0, (), 0), Access(1, 0, (), 0))
    places = {1: (1, 9, 0, 16)}
    assert native.core is not None
    for made in (failing, lambda *given: given):
        copies = native.core.BufferCopies(places, set(), made, *accesses, tuple, tuple)
        try:
            plan = copies.record(
                None, INTO, 0, "vkCmdCopyBuffer", a_copy(1, 1, {"srcOffset": 0, "dstOffset": 8, "size": 8})
            )
        except MemoryError as error:
            assert str(error) == "of the table"
    assert plan[2][1] == (Access(0, 9, ((0, 8),), 1), Access(1, 9, ((8, 16),), 1)) and not any(
        map(gc.is_tracked, (plan[2][0], plan[2][1], *plan[2][1]))
    )
    several: list[tuple[Any, Any]] = [(0, 0), (Access(0, 0, (), 0), Buffer(1, 1)), (3, 3)]
    for wrong in several:
        with pytest.raises(TypeError):
            native.core.BufferCopies(places, set(), failing, *wrong, tuple, tuple)
    with pytest.raises(TypeError):
        native.core.BufferCopies(places, set(), failing, *accesses, int, tuple)
