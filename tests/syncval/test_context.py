"""`Context` with its shared slots against one state an address: the same rules must give the same hazards."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from vkharness.findings import Place
from vkharness.spec.masks import scope
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.syncval.access import AccessRequest, after_access
from vkharness.syncval.barrier import Scope, after_barrier, expand
from vkharness.syncval.context import Context
from vkharness.syncval.entries import RangeScope
from vkharness.syncval.layout_transition import after_transition
from vkharness.syncval.state import EMPTY, State
from vkharness.trace.effects import Access, Dependency

SIZE = 12
QUEUE = 1
SYNCS = [
    ACCESS_KIND[name].index
    for name in (
        "SYNC_COPY_TRANSFER_READ",
        "SYNC_COPY_TRANSFER_WRITE",
        "SYNC_CLEAR_TRANSFER_WRITE",
        "SYNC_COMPUTE_SHADER_SHADER_STORAGE_READ",
        "SYNC_COMPUTE_SHADER_SHADER_STORAGE_WRITE",
    )
]
SCOPES = [
    expand(Dependency(*scope(src), *scope(dst)), 0x7FFFFFFF)
    for src in ("COPY/TRANSFER_WRITE", "COPY", "COMPUTE_SHADER/SHADER_WRITE", "ALL_COMMANDS/MEMORY_WRITE", "CLEAR")
    for dst in ("COPY/TRANSFER_READ", "COMPUTE_SHADER/SHADER_READ|SHADER_WRITE", "CLEAR/TRANSFER_WRITE", "COPY")
]
ends = st.tuples(st.integers(0, SIZE - 1), st.integers(1, SIZE))
spans = ends.map(lambda p: (min(p[0], p[1] - 1), max(p[0] + 1, p[1])))
spaces = st.integers(1, 2)
accesses = st.tuples(st.just("access"), spaces, spans, st.sampled_from(SYNCS))
ranged = st.lists(st.tuples(spaces, spans, st.sampled_from(SCOPES), st.booleans()), max_size=3)
barriers = st.tuples(st.just("barrier"), st.lists(st.sampled_from(SCOPES), max_size=2), ranged)
steps = st.lists(st.one_of(accesses, barriers), max_size=25)


class Cells:
    """One state an address; a barrier visits every address."""

    def __init__(self) -> None:
        self.states: dict[tuple[int, int], State] = {(space, at): EMPTY for space in (1, 2) for at in range(SIZE)}

    def access(self, space: int, span: tuple[int, int], access_kind: int) -> set[tuple[int, str]]:
        hazards: set[tuple[int, str]] = set()
        for at in range(*span):
            outcome = after_access(self.states[space, at], AccessRequest(access_kind, QUEUE, QUEUE))
            if outcome.hazard:
                hazards.add((at, outcome.hazard))
            self.states[space, at] = outcome.state
        return hazards

    def barrier(self, everything: tuple[Scope, ...], ranges: list[RangeScope]) -> None:
        for (space, at), state in self.states.items():
            mine = [each for each in ranges if each.space == space and each.span[0] <= at < each.span[1]]
            scopes = tuple(each.scope for each in mine)
            moving = tuple(each.scope for each in mine if each.moved)
            if moving:
                self.states[space, at] = after_transition(moving, QUEUE, QUEUE)
            elif scopes or everything:
                self.states[space, at] = after_barrier(state, scopes + everything, QUEUE)


@settings(max_examples=300, deadline=None)
@given(steps)
def test_slots_never_change_what_is_found(program: list[tuple]) -> None:  # type: ignore[type-arg]
    context, cells = Context(QUEUE), Cells()
    for number, step in enumerate(program):
        place = context.places.single(Place(number, "vkCmdX", None, submit=1))
        if step[0] == "access":
            _, space, span, access_kind = step
            access = Access(access_kind, space, (span,), space)
            found = {(at, hit.hazard) for hit in context.check(access) for at in range(*hit.span)}
            context.apply(access, place)
            assert found == cells.access(space, span, access_kind)
        else:
            everything = tuple(step[1])
            ranges = [RangeScope(*each) for each in step[2]]
            context.barrier(everything, ranges, place)
            cells.barrier(everything, ranges)
        context._check()


def test_a_barrier_over_everything_visits_no_range() -> None:
    context = Context(QUEUE)
    write = SYNCS[1]
    for number in range(500):
        place = context.places.single(Place(number, "vkCmdX", None, submit=1))
        context.apply(Access(write, 1, ((4 * number, 4 * number + 2),), 1), place)
    assert context.ranges == 500
    assert context.store.sizes().awake == 1
    context.barrier((SCOPES[0],), [], context.places.single(Place(500, "vkCmdPipelineBarrier", None, submit=1)))
    assert context.store.sizes().awake == 1
    assert not list(context.check(Access(SYNCS[0], 1, ((0, 2000),), 1)))


def test_what_the_host_waited_for_no_longer_conflicts() -> None:
    context = Context(QUEUE)
    context.apply(
        Access(SYNCS[1], 1, ((0, 8),), 1), context.places.single(Place(1, "vkCmdCopyBuffer", None, submit=10))
    )
    context.apply(
        Access(SYNCS[1], 1, ((4, 8),), 1), context.places.single(Place(2, "vkCmdCopyBuffer", None, submit=20))
    )
    context.retire(0, (10, 0))
    hazards = list(context.check(Access(SYNCS[1], 1, ((0, 8),), 1)))
    assert [hit.span for hit in hazards] == [(4, 8)]
    context.retire(0, (20, 0))
    assert not list(context.check(Access(SYNCS[1], 1, ((0, 8),), 1)))
    context.sweep_retired()
    assert context.ranges == 0
