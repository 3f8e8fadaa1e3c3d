"""Flat plans of shaders: the native core keeps where memory lies, and says what Python says of memory there."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vkharness import native
from vkharness.commands.contents.content_steps import FLAT_PLANS, Overwritten, content_steps, overwritten
from vkharness.commands.drawing.plans_by_sets import PlansBySets
from vkharness.commands.drawing.set_contents import SetContents
from vkharness.commands.drawing.shader_memory import MemoryPart, ReachedAnywhere, UsedPlace
from vkharness.commands.drawing.state_parts import new_bound_sets
from vkharness.commands.flat_reaches import MOST_FLAT
from vkharness.commands.object_state import BoundSet, CommandBuffer, ObjectState
from vkharness.findings import Certainty
from vkharness.spans import Span, merge
from vkharness.spec.scopes import ACCESS_KIND, ACCESS_KINDS
from vkharness.syncval.execution import if_apart
from vkharness.trace.attachment_operations import RasterizationOrder
from vkharness.trace.effects import Access, Command, Effect, EffectPlan, Unmodelled
from vkharness.trace.resources import DescriptorSet, SetLayout

pytestmark = pytest.mark.skipif(native.core is None, reason=f"in use: {native.in_use}")
USED: tuple[UsedPlace, ...] = ((0, (0, 0), 0), (0, (1, 0), -1), (2, (0, 0), -1))
NAMES = ("COMPUTE_SHADER_SHADER_STORAGE_READ", "COMPUTE_SHADER_SHADER_STORAGE_WRITE", "FRAGMENT_SHADER_UNIFORM_READ")
KINDS = [ACCESS_KIND[f"SYNC_{name}"].index for name in NAMES]
SPANS = st.sampled_from([((0, 16),), ((4, 8), (12, 20)), ((0, 1 << 62),)])
ACCESSES = st.lists(
    st.builds(
        lambda kind, number, spans, atomic, sure: Access(kind, number, spans, number, atomic=atomic, certainty=sure),
        st.sampled_from(KINDS), st.integers(0, 2), SPANS, st.booleans(), st.sampled_from(list(Certainty)),
    ),
    max_size=4,
)  # fmt: skip
PARTS = st.builds(
    lambda resource, space, begin, room, whole: MemoryPart(
        resource, space or resource, begin, begin + 64, begin + 64 + room, "", whole
    ),
    st.integers(1, 4), st.sampled_from([None, 8, 9, 9, 9]), st.sampled_from([0, 16, 64, 128, (1 << 61) - 1, 1 << 61]),
    st.sampled_from([0, 256]), st.sampled_from([None, None, None, ((0, 32),)]),
)  # fmt: skip


def planned(reached: ReachedAnywhere, parts: list[MemoryPart], dynamic: int) -> tuple[Any, Any]:
    """Returns the core's plan for accesses of this memory, and Python's effects."""
    objects, buffer, table = ObjectState(), CommandBuffer(1, 0), PlansBySets(1, (0, 2))
    memories = [{USED[0][1]: parts[0], USED[1][1]: parts[1]}, {USED[2][1]: parts[2]}]
    for index, number in ((0, 0), (2, 1)):
        held = DescriptorSet(10 + index, SetLayout(5, {}))
        held.contents = (objects.moved, SetContents(number, 1, memories[number]))
        buffer.sets.setdefault(1, {})[index] = BoundSet(held, () if index else (dynamic,))
    table.reach((1, 1), reached)
    plan = new_bound_sets(objects).plan(table, buffer)
    assert plan is False or new_bound_sets(objects).plan(table, buffer) is plan
    return plan, reached.at({0: (memories[0], (dynamic,)), 2: (memories[1], ())})


def is_flat(plan: object) -> bool:
    return isinstance(plan, FLAT_PLANS)


FIXED = st.lists(
    st.builds(
        lambda kind, space, resource, begin, order: Access(
            kind, space, ((begin, begin + 8), (begin + 12, begin + 16)), resource, order=order
        ),
        st.sampled_from(KINDS), st.sampled_from([5, 9]), st.sampled_from([5, 5, 2]), st.sampled_from([0, 200, 1 << 61]),
        st.sampled_from(list(RasterizationOrder)),
    ),
    max_size=2,
).map(tuple)  # fmt: skip
"""Accesses of a draw that lie in one place; that of space and resource 5 is an image."""
READS: list[Effect] = [Access(KINDS[0], each, ((0, 16),), each) for each in (0, 1)]
ALIASES = [MemoryPart(each, 9, 0, 64, 64, "", None) for each in (1, 2, 3)]


@example(READS, (), (), ALIASES, 0)
@given(ACCESSES, FIXED, FIXED, st.lists(PARTS, min_size=3, max_size=3), st.sampled_from([0, 0, 16, 256, 512]))
def test_it_is_what_python_says(
    accesses: list[Effect],
    before: tuple[Effect, ...],
    behind: tuple[Effect, ...],
    parts: list[MemoryPart],
    dynamic: int,
) -> None:
    plan, effects = planned(ReachedAnywhere.of(accesses, USED).within(before, behind), parts, dynamic)
    if plan is False:
        return
    if plan is None:
        assert effects == ()
        return
    assert effects is not None and plan.effects == effects and list(plan) == list(effects)
    reference = EffectPlan(effects)
    assert plan == reference and reference == plan and hash(plan) == hash(reference) and repr(plan) == repr(reference)
    if not is_flat(plan):
        return
    assert plan.apart == if_apart(Command(0, "", None, reference))
    assert plan.apart in (False, effects)
    assert plan.is_plain and plan.engine is False
    steps = content_steps([plan], 0, 1)
    assert [getattr(step, "writes", step) for step in steps] == content_steps([reference], 0, 1)
    core: Any = native.core
    assert core.flat_spaces([reference, plan]) == ([reference], {each.space for each in effects})
    others, found = core.flat_writes([plan])
    written = overwritten(effects)
    assert all(each is plan for each in others)
    assert bool(others) == any(each.space == each.resource for each in effects)
    assert [(space, span) for space in sorted(found) for span in found[space]] == sorted(
        (space, span) for space, spans in _by_space(written).items() for span in merge(spans)
    )


def writes(access: Any) -> bool:
    return bool(access.atomic) or ACCESS_KINDS[access.access_kind].write


def _by_space(written: Overwritten | None) -> dict[int, list[Span]]:
    found: dict[int, list[Span]] = {}
    for space, span in (written.places or ()) if written is not None else ():
        found.setdefault(space, []).append(span)
    return found


def two(first: tuple[tuple[int, int], ...] = ((0, 16),)) -> list[Effect]:
    return [Access(KINDS[0], 0, first, 0), Access(KINDS[1], 2, ((0, 8),), 2)]


def test_plain_accesses_have_a_flat_plan() -> None:
    parts = [MemoryPart(each, 9, 64 * each, 64 * each + 64, 512, "", None) for each in (1, 2, 3)]
    reached = ReachedAnywhere.of(two(), USED)
    plan, _ = planned(reached, parts, 16)
    assert is_flat(plan) and [each.spans for each in plan.effects] == [((80, 96),), ((192, 200),)]
    assert not gc.is_tracked(plan)
    assert planned(reached, parts, 16)[0] == plan != planned(reached, parts, 32)[0]
    assert content_steps([planned(ReachedAnywhere.of(two()[:1], USED), parts, 0)[0]], 0, 1) == []


@pytest.mark.parametrize("accesses", [
    [], [*two(), Unmodelled("what")], two(((0, 1 << 62),)), two() * (MOST_FLAT // 2 + 1),
])  # fmt: skip
def test_what_is_rare_has_none(accesses: list[Effect]) -> None:
    assert ReachedAnywhere.of(accesses, USED).flat is None


@pytest.mark.parametrize("changes", [
    {"space": 1}, {"whole": ((0, 64),)}, {"begin": 180}, {"resource": 3}, {"begin": 1 << 61}, {"resource": -1},
])  # fmt: skip
def test_memory_without_an_owner_or_in_common_has_none(changes: dict[str, Any]) -> None:
    parts = [MemoryPart(each, 9, 64 * each, 64 * each + 64, 512, "", None) for each in (1, 2, 3)]
    reached = ReachedAnywhere.of(two(), USED)
    assert is_flat(planned(reached, parts, 0)[0])
    parts[0] = parts[0]._replace(**changes)
    assert not is_flat(planned(reached, parts, 0)[0])


def test_errors_of_python_are_raised() -> None:
    core: Any = native.core
    access, bytes = Access(KINDS[0], 0, (), 0), ((0, 4),)
    several: list[Any] = [
        (access, 1, 1, bytes),
        (access, 0, 4, bytes),
        (access, 0, 1, ()),
        (access, 0, 1, ((4, 4),)),
        None,
    ]
    several += [(access, 0, 1, ((0, 4), (4, 8))), (access, 0, 1, ((-4, 4),))]
    for wrong in ((), *((each,) for each in several)):
        with pytest.raises(ValueError, match="no such kind"):
            core.FlatReach(None, 1, wrong)
    parts = [MemoryPart(each, 9, 64 * each, 64 * each + 64, 512, "", None) for each in (1, 2, 3)]
    equal = EffectPlan(()).__eq__
    for unfold in (lambda numbers: None, lambda numbers: 1 / 0):
        made = ((access, 0, 0, ((0, 4),)), (access, 1, 1, ((0, 4),)))
        flat = core.FlatReach(unfold, 2, made), (USED[0], USED[2])
        plan, _ = planned(ReachedAnywhere.of(two(), USED)._replace(flat=flat), parts, 0)
        for ask in (lambda each: each.effects, hash, repr, list, lambda each: each.writes, equal):
            with pytest.raises((TypeError, ZeroDivisionError)):
                ask(plan)
