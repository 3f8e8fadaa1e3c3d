"""Flat plans: the native core keeps the numbers of copies, fills and updates, and says what the handlers say."""

from __future__ import annotations

import ctypes
import gc
import operator
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkharness import native
from vkharness.commands.buffer_transfers import COPY, FILL, UPDATE, FlatCommand, kind_of, new_flat_plans
from vkharness.commands.contents.content_steps import Foresight, Steps, content_steps, held_bytes
from vkharness.commands.contents.known_memory import KnownMemory
from vkharness.commands.handlers import COMMANDS
from vkharness.commands.interpret import RepeatedCommand
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.syncval.execution import if_apart
from vkharness.trace.effects import Access, Command, EffectPlan
from vkharness.trace.recorded_commands import RecordedCommands
from vkharness.trace.resources import Buffer

pytestmark = pytest.mark.skipif(native.core is None, reason=f"in use: {native.in_use}")
SMALL = st.integers(0, 40)
NUMBERS = st.one_of(SMALL, st.sampled_from([-1, (1 << 61) - 1, 1 << 61, (1 << 64) - 1]))
REGIONS = st.lists(st.fixed_dictionaries(dict.fromkeys(("srcOffset", "dstOffset", "size"), NUMBERS)), max_size=3)
APART = st.lists(st.integers(0, 3), min_size=1, max_size=4).map(
    lambda places: [{"srcOffset": 8 * at, "dstOffset": 4 * at, "size": 4} for at in places]
)
"""Regions of which some are equal, and some touch in the target."""
BUFFERS = st.builds(
    Buffer, st.just(0), st.integers(0, 60), st.sampled_from([None, 9]), st.sampled_from([0, 16, 64, 1 << 62])
)
INTO = 5
HERE = CommandBuffer(INTO, 0)


def copies(regions: list[dict[str, int]], target: int, two: bool) -> tuple[str, dict[str, Any]]:
    args = {"srcBuffer": 1, "dstBuffer": target, "pRegions": regions}
    if two:
        return "vkCmdCopyBuffer2", {"commandBuffer": INTO, "pCopyBufferInfo": args}
    return "vkCmdCopyBuffer", {"commandBuffer": INTO, **args}


def fills(offset: int, size: int, word: int) -> tuple[str, dict[str, Any]]:
    return "vkCmdFillBuffer", {"commandBuffer": INTO, "dstBuffer": 2, "dstOffset": offset, "size": size, "data": word}


def updates(offset: int, size: int, data: bytes) -> tuple[str, dict[str, Any]]:
    where = {"commandBuffer": INTO, "dstBuffer": 2, "dstOffset": offset}
    return "vkCmdUpdateBuffer", where | {"dataSize": size, "pData": data}


CALLS = st.one_of(
    st.builds(copies, st.one_of(REGIONS, APART), st.sampled_from([1, 2, 3]), st.booleans()),
    st.builds(fills, NUMBERS, NUMBERS, NUMBERS),
    st.builds(updates, NUMBERS, SMALL, st.binary(max_size=44)),
)


def state(*buffers: Buffer) -> ObjectState:
    objects = ObjectState()
    for number, each in enumerate(buffers, 1):
        objects.add(Buffer(number, each.size, each.memory, each.offset))
    return objects


def native_state(*buffers: Buffer) -> tuple[ObjectState, Any]:
    objects = state(*buffers)
    return objects, new_flat_plans(objects, RepeatedCommand)


def handled(objects: ObjectState, name: str, args: dict[str, Any]) -> Any:
    made = COMMANDS[name](objects, HERE, args)
    return made if not isinstance(made, tuple) else EffectPlan(made)


def told(plan: Any) -> tuple[Any, ...]:
    assert all(type(each) is Access for each in plan.effects)
    apart = if_apart(Command(0, "", None, plan))
    return repr(plan), plan.effects, list(plan), plan.writes, type(plan.writes), hash(plan), apart


def is_flat(plan: object) -> bool:
    assert native.core is not None
    return type(plan) is native.core.FlatPlan


@given(BUFFERS, BUFFERS, CALLS)
def test_it_is_what_the_handler_finds(one: Buffer, other: Buffer, call: tuple[str, dict[str, Any]]) -> None:
    (objects, plans), (name, args) = native_state(one, other), call
    assert plans.record(HERE, INTO, objects.changes, name, args) is None
    plan, reference = handled(objects, name, args), handled(state(one, other), name, args)
    assert told(plan) == told(reference) and type(reference) is EffectPlan
    assert plan == reference and reference == plan
    found = plans.record(HERE, INTO, objects.changes, name, args)
    if found is None:
        return
    assert is_flat(found.plan) and type(found) is RepeatedCommand and found[:2] == (objects.changes, HERE)
    assert told(found.plan) == told(reference) and found.plan.is_plain and found.plan.engine is False
    target = args.get("pCopyBufferInfo", args)["dstBuffer"]
    assert target in objects.said
    objects.changed(target)
    assert plans.record(HERE, INTO, objects.changes, name, args) is None


@given(BUFFERS, CALLS, CALLS)
def test_plans_are_equal_if_their_effects_are(one: Buffer, first: Any, second: Any) -> None:
    objects, _ = native_state(one, one)
    plans = [handled(objects, *each) for each in (first, second)]
    reference = [handled(state(one, one), *each) for each in (first, second)]
    for mine in plans:
        for several in (plans, reference):
            same = [mine.effects == each.effects for each in several]
            assert [mine == each for each in several] == same == [not operator.ne(mine, each) for each in several]


@pytest.mark.parametrize("call", [
    copies([{"srcOffset": 0, "dstOffset": 8, "size": 8}], 2, two=False),
    copies([{"srcOffset": 0, "dstOffset": 8, "size": 8}, {"srcOffset": 32, "dstOffset": 16, "size": 4}], 2, two=True),
    fills(4, 8, 0xFFFFFFFF),
    updates(0, 9, b"123456789"),
])  # fmt: skip
def test_plain_commands_have_one_flat_plan_if_they_say_the_same(call: tuple[str, dict[str, Any]]) -> None:
    (objects, plans), (name, args) = native_state(Buffer(0, 64), Buffer(0, 64)), call
    once, first = handled(objects, name, args), handled(objects, name, args)
    assert is_flat(once) and once == first is handled(objects, name, args)
    assert first is plans.record(HERE, INTO, objects.changes, name, args).plan
    elsewhere, _ = native_state(Buffer(0, 64), Buffer(0, 64))
    assert handled(elsewhere, name, args) is not first == handled(elsewhere, name, args)
    assert sys.getsizeof(first) <= 104 and not gc.is_tracked(first)


def test_whole_size_is_flat_once_python_has_said_what_it_is() -> None:
    objects, plans = native_state(Buffer(0, 64), Buffer(0, 30, 9, 16))
    name, args = fills(4, (1 << 64) - 1, 7)
    plan = handled(objects, name, args)
    assert is_flat(plan) and plan.effects[0].spans == ((20, 44),)
    assert plans.record(HERE, INTO, objects.changes, name, args) is None


def test_owners_are_kept_and_collected() -> None:
    objects, _ = native_state(Buffer(0, 64), Buffer(0, 64))
    plan = handled(objects, *fills(0, 4, 1))
    assert plan.owners is None
    plan.owners = ring = [plan]
    assert plan.owners is ring and gc.is_tracked(plan)
    del plan.owners
    assert plan.owners is None
    with pytest.raises(AttributeError):
        plan.effects = ()
    with pytest.raises(TypeError):
        sorted([plan, handled(objects, *fills(0, 8, 1))])


def test_what_is_not_plain_is_left_to_python() -> None:
    objects, plans = native_state(Buffer(0, 16), Buffer(0, 16))
    region = {"srcOffset": 0, "dstOffset": 0, "size": 8}
    name, args = copies([region], 2, two=False)
    handled(objects, name, args)
    for other in ("vkCmdCopyBufferToImage", "vkCmdCopyBuff", "", "vkCmdCopyImage", "\ud800", 3):
        assert _refused(plans, INTO, other, args)
    two = copies([region], 2, two=True)[1]
    assert plans.record(None, INTO, 0, "vkCmdCopyBuffer2KHR", two) is not None
    hostile: list[Any] = [
        None, {}, [None], [{}], [region | {"size": True}], [region | {"size": -1}], (region,), [region, None],
        [region | {"size": 0}], [region, region | {"size": 0}], [region | {"dstOffset": 9}],
    ]  # fmt: skip
    for each in hostile:
        assert _refused(plans, INTO, name, args | {"pRegions": each})
    for key in ("srcBuffer", "dstBuffer", "commandBuffer"):
        for value in ("1", 3, None):
            assert _refused(plans, INTO, name, args | {key: value})
        assert _refused(plans, INTO, name, args | {key: []})
    assert _refused(plans, 6, name, args) and _refused(plans, INTO, name, [])
    objects.changes += 1
    for place in ((1, 9), (1, 9, 0, "16"), [1, 9, 0, 16], (1, 9, -1, 16), (2, 9, 0, 16)):
        objects.plans.places[1] = place  # type: ignore[assignment]
        assert _refused(plans, INTO, name, args, objects.changes)


def test_commands_with_very_many_numbers_are_left_to_python() -> None:
    objects, _ = native_state(Buffer(0, 1 << 20), Buffer(0, 1 << 20))
    for count, flat in ((64, True), (65, False)):
        regions = [{"srcOffset": 8 * at, "dstOffset": 8 * at, "size": 4} for at in reversed(range(count))]
        plan = handled(objects, *copies(regions, 2, two=False))
        assert is_flat(plan) == flat and plan.effects[0].spans == tuple((8 * at, 8 * at + 4) for at in range(count))
    for size, flat in ((65536, True), (1 << 17, False)):
        assert is_flat(handled(objects, *updates(0, size, bytes(size)))) == flat


def test_data_are_those_that_the_call_has() -> None:
    objects, plans = native_state(Buffer(0, 16), Buffer(0, 16))
    name, args = updates(0, 4, b"abcd")
    handled(objects, name, args)
    assert plans.record(None, INTO, 0, name, args | {"pData": b"abcdefgh"}).plan.writes.data == b"abcd"
    for data in (b"abc", None, [97, 98, 99, 100], "abcd", bytearray(b"abcd")):
        assert _refused(plans, INTO, name, args | {"pData": data})


def _refused(plans: Any, into: int, name: Any, args: Any, changes: int = 0) -> bool:
    try:
        return plans.record(None, into, changes, name, args) is None
    except (TypeError, UnicodeError):
        return True


def test_errors_of_who_says_what_it_does_are_raised_and_nothing_stays_alive() -> None:
    def failing(*_: object) -> Any:
        raise MemoryError("of the handler")

    assert native.core is not None
    what = FILL._replace(unfold=failing)
    for kind, error in ((kind_of(what), MemoryError), (_kind(FILL, lambda *_: (1, 2, 3)), TypeError)):
        plan = native.core.FlatPlans({}, set(), tuple, ()).plan(kind, ((1, 9, 0, 16),), (0, 4, 7), b"")
        for ask in (hash, repr, iter, lambda plan: plan.effects, lambda plan: plan.writes, lambda plan: plan.apart):
            with pytest.raises(error):
                ask(plan)
        near = native.core.FlatPlans({}, set(), tuple, ()).plan(kind, ((1, 9, 0, 16),), (0, 4, 8), b"")
        assert plan == near, "of one kind nobody is asked"
        other = native.core.FlatPlans({}, set(), tuple, ()).plan(_kind(FILL, failing), ((1, 9, 0, 16),), (4, 4, 7), b"")
        with pytest.raises(error):
            assert plan == other


def test_plans_that_are_garbage_may_be_asked_once_more() -> None:
    """The collector has cleared them, and has not yet ended what is asking."""
    assert native.core is not None
    kind, told = kind_of(FILL), list[Any]()

    def ask(plans: Any) -> Any:
        return plans.plan(kind, ((1, 9, 0, 16),), (0, 4, 7), b"")

    class Late:
        def __init__(self, plans: int) -> None:
            self.plans = plans

        def __del__(self) -> None:
            told.append(ask(ctypes.cast(self.plans, ctypes.py_object).value))

    class Garbage:
        def __init__(self, held: dict[Any, Any]) -> None:
            self.held = held

        def __del__(self) -> None:
            self.held["first"] = Late(id(self.held["plans"]))

    held: dict[Any, Any] = {"first": None}
    held["plans"] = native.core.FlatPlans(held, set(), tuple, ())
    held["garbage"] = Garbage(held)
    plan = [ask(held["plans"]) for _ in range(3)][-1]
    del held
    gc.collect()
    assert told == [plan]


def _kind(what: FlatCommand, unfold: Any, **more: Any) -> Any:
    row = {"words": len(what.numbers), "unit": what.unit, "data": bool(what.data), "parts": ((None, 0, 0, 1, True),)}
    assert native.core is not None
    return native.core.FlatKind(unfold, *(row | more).values())


def test_kinds_and_rows_that_do_not_fit_are_refused() -> None:
    assert native.core is not None
    part = (None, 0, 0, 1, True)
    wrong: list[dict[str, Any]] = [
        {"words": 0}, {"unit": 0}, {"parts": ()}, {"parts": (part,) * 3}, {"parts": (part[:4],)}, {"parts": (None,)},
        {"parts": ((None, 2, 0, 1, True),)}, {"parts": ((None, 0, 3, 1, True),)}, {"parts": ((None, 0, 0, -1, True),)},
        {"parts": [part]}, {"words": "3"},
    ]  # fmt: skip
    for each in wrong:
        with pytest.raises((TypeError, ValueError)):
            _kind(FILL, None, **each)
    row = ("vkCmdFillBuffer", kind_of(FILL), "", FILL.buffers, "", FILL.numbers, "")
    for rows in ((None,), (row[:6],), ((*row[:3], (), *row[4:]),), ((*row[:5], ("size",), ""),), [row]):
        with pytest.raises((TypeError, ValueError)):
            native.core.FlatPlans({}, set(), tuple, rows)
    with pytest.raises(TypeError):
        native.core.FlatPlans({}, set(), int, (row,))
    calls: list[Any] = [(None, (), (), b""), (kind_of(FILL), [], (), b""), (kind_of(UPDATE), (), (), "")]
    for each_call in calls:
        with pytest.raises(TypeError):
            native.core.FlatPlans({}, set(), tuple, ()).plan(*each_call)


def test_flat_writes_are_those_of_the_effects() -> None:
    objects, _ = native_state(Buffer(0, 64), Buffer(0, 64, 9, 16))
    calls = [
        copies([{"srcOffset": 0, "dstOffset": 8, "size": 8}, {"srcOffset": 32, "dstOffset": 0, "size": 4}], 2, True),
        fills(16, 4, 0),
        fills(16, 4, 1),
        updates(40, 3, b"abc"),
        updates(38, 2, b"de"),
    ]
    plans = [handled(objects, *each) for each in calls]
    other = EffectPlan(())
    assert native.core is not None
    assert all(map(is_flat, plans))
    assert native.core.flat_writes([*plans, other]) == ([other], {9: [(16, 20), (24, 36), (54, 59)]})
    with pytest.raises(TypeError):
        native.core.flat_writes(tuple(plans))


def test_plans_that_stand_for_what_they_write_change_contents_alike() -> None:
    objects, _ = native_state(Buffer(0, 64), Buffer(0, 64, 9, 16))
    regions = [{"srcOffset": 0, "dstOffset": 8, "size": 8}]
    calls = [fills(16, 8, 5), updates(40, 3, b"abc"), copies(regions, 2, False), fills(0, 4, 6)]
    plans = [handled(objects, *each) for each in calls]
    assert all(map(is_flat, plans))
    steps: list[Any] = content_steps([*plans, EffectPlan(())], 0, 9)
    assert all(map(is_flat, steps)) and [held_bytes(each) for each in steps] == [0, 3, 0, 0]
    assert [held_bytes(plan.writes) for plan in plans] == [0, 3, 0, 0]
    assert content_steps(plans, 1, 3) == steps[1:3]
    found: list[Any] = [KnownMemory(), KnownMemory()]
    for step, plan in zip(steps, plans, strict=True):
        step.apply(found[0])
        plan.writes.apply(found[1])
        spans = [(space, (at, at + 4)) for space in (1, 2, 9) for at in range(0, 80, 4)]
        assert [found[0].read(*each) for each in spans] == [found[1].read(*each) for each in spans]
        commands = RecordedCommands()
        commands.add(1, ("", None), plan)
        foreseen = Steps(commands).foresight(KnownMemory())
        assert foreseen is not None
        assert foreseen.read(9, (16, 20)) == Foresight(KnownMemory(), [plan.writes]).read(9, (16, 20))
    for wrong in (
        (plans, 0),
        (tuple(plans), 0, 1, None, None),
        (plans, -1, 1, None, None),
        (plans, 0, "1", None, None),
    ):
        with pytest.raises((TypeError, ValueError)):
            native.core.content_steps(*wrong)  # type: ignore[union-attr]
    with pytest.raises(AttributeError):
        steps[0].apply(None)


def test_a_copy_whose_ranges_may_touch_is_no_flat_plan() -> None:
    objects, _ = native_state(Buffer(0, 64), Buffer(0, 64))
    for to, flat in ((0, False), (7, False), (8, True)):
        plan = handled(objects, *copies([{"srcOffset": 0, "dstOffset": to, "size": 8}], 1, two=False))
        assert is_flat(plan) == flat and COPY.regions
