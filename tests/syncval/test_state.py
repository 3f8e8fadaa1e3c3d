"""The state machine, rule by rule, in a micro-language: `W copy`, `B copy/write > copy/read`, `R copy`."""

from __future__ import annotations

import pytest

from vkharness.findings import Hazard
from vkharness.spec.masks import scope
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.syncval import state
from vkharness.syncval.access import AccessRequest, after_access
from vkharness.syncval.barrier import Scope, after_barrier, expand
from vkharness.syncval.layout_transition import after_transition, transition_hazard
from vkharness.syncval.state import EMPTY, State
from vkharness.trace.effects import Dependency

ACCESS = {
    "copy_read": "SYNC_COPY_TRANSFER_READ",
    "copy_write": "SYNC_COPY_TRANSFER_WRITE",
    "clear_write": "SYNC_CLEAR_TRANSFER_WRITE",
    "blit_read": "SYNC_BLIT_TRANSFER_READ",
    "compute_read": "SYNC_COMPUTE_SHADER_SHADER_STORAGE_READ",
    "compute_write": "SYNC_COMPUTE_SHADER_SHADER_STORAGE_WRITE",
    "uniform_read": "SYNC_COMPUTE_SHADER_UNIFORM_READ",
    "vertex_read": "SYNC_VERTEX_SHADER_SHADER_SAMPLED_READ",
    "fragment_read": "SYNC_FRAGMENT_SHADER_SHADER_SAMPLED_READ",
}
QUEUE = 1


def barrier(*several: str) -> tuple[Scope, ...]:
    return tuple(
        expand(Dependency(*scope(one.split(" > ")[0]), *scope(one.split(" > ")[1])), 0x7FFFFFFF) for one in several
    )


def run(*steps: str) -> list[str | None]:
    """The hazard (or None) of each access; a step with ' > ' is a barrier command, ' ; ' separates its barriers."""
    state: State = EMPTY
    met: list[str | None] = []
    for step in steps:
        if step.startswith("transition "):
            moving = barrier(step.removeprefix("transition "))
            met.append(transition_hazard(state, ((QUEUE, moving),), QUEUE)[0])
            state = after_transition(moving, QUEUE, QUEUE)
        elif " > " in step:
            state = after_barrier(state, barrier(*step.split(" ; ")), QUEUE)
        else:
            name, _, atomic = step.partition(" ")
            outcome = after_access(
                state, AccessRequest(ACCESS_KIND[ACCESS[name]].index, QUEUE, QUEUE, atomic == "atomic")
            )
            met.append(outcome.hazard)
            state = outcome.state
        state._check()
    return met


RAW, WAR, WAW = Hazard.READ_AFTER_WRITE, Hazard.WRITE_AFTER_READ, Hazard.WRITE_AFTER_WRITE

SEQUENCES = [
    (["copy_write", "copy_read"], [None, RAW]),
    (["copy_write", "copy_write"], [None, WAW]),
    (["copy_read", "copy_write"], [None, WAR]),
    (["copy_read", "copy_read"], [None, None]),
    (["copy_write", "COPY/TRANSFER_WRITE > COPY/TRANSFER_READ", "copy_read"], [None, None]),
    (["copy_write", "COPY > COPY", "copy_read"], [None, RAW]),
    (["copy_read", "COPY > COPY", "copy_write"], [None, None]),
    (["copy_write", "COPY/TRANSFER_WRITE > COPY/TRANSFER_READ", "copy_write"], [None, WAW]),
    # availability and visibility in two commands: the second needs no source access, only the stage that chains
    (["copy_write", "COPY/TRANSFER_WRITE > COPY", "COPY > COPY/TRANSFER_WRITE", "copy_write"], [None, None]),
    (["copy_write", "COPY/TRANSFER_WRITE > COPY", "CLEAR > COPY/TRANSFER_WRITE", "copy_write"], [None, WAW]),
    # barriers of one command do not chain, those of two commands do
    (["copy_read", "COPY > COMPUTE_SHADER ; COMPUTE_SHADER > CLEAR", "clear_write"], [None, WAR]),
    (["copy_read", "COPY > COMPUTE_SHADER", "COMPUTE_SHADER > CLEAR", "clear_write"], [None, None]),
    # an execution dependency carries a write that an earlier one made available
    (
        ["copy_write", "COPY/TRANSFER_WRITE > COMPUTE_SHADER", "COMPUTE_SHADER > BLIT/TRANSFER_READ", "blit_read"],
        [None] * 2,
    ),
    (["copy_write", "COPY > COMPUTE_SHADER", "COMPUTE_SHADER > BLIT/TRANSFER_READ", "blit_read"], [None, RAW]),
    # rules.md#most-recent-access: W M R0 R1 E R2 R3
    (["copy_write", "COPY/TRANSFER_WRITE > BLIT/TRANSFER_READ", "blit_read", "copy_read"], [None, None, RAW]),
    (
        ["copy_write", "COPY/TRANSFER_WRITE > BLIT/TRANSFER_READ", "blit_read", "BLIT > COPY", "copy_read"],
        [None, None, RAW],
    ),
    (
        [
            "copy_write",
            "COPY/TRANSFER_WRITE > BLIT/TRANSFER_READ",
            "blit_read",
            "BLIT > COPY/TRANSFER_READ",
            "copy_read",
        ],
        [None, None, None],
    ),
    (
        ["copy_write", "COPY/TRANSFER_WRITE > BLIT/TRANSFER_READ", "blit_read", "BLIT > COPY", "compute_read"],
        [None, None, RAW],
    ),
    # W0 M R E W1: the write is held against the read alone
    (
        ["copy_write", "COPY/TRANSFER_WRITE > BLIT/TRANSFER_READ", "blit_read", "BLIT > CLEAR", "clear_write"],
        [None, None, None],
    ),
    (["copy_write", "COPY/TRANSFER_WRITE > BLIT/TRANSFER_READ", "blit_read", "clear_write"], [None, None, WAR]),
    # scopes: execution reaches to earlier and later stages, access does not
    (["copy_write", "COPY/TRANSFER_WRITE > VERTEX_SHADER/SHADER_READ", "vertex_read"], [None, None]),
    (["copy_write", "COPY/TRANSFER_WRITE > VERTEX_SHADER/SHADER_READ", "fragment_read"], [None, RAW]),
    (["vertex_read", "FRAGMENT_SHADER > COPY", "copy_write"], [None, None]),
    (["fragment_read", "VERTEX_SHADER > COPY", "copy_write"], [None, WAR]),
    (["copy_write", "ALL_TRANSFER/TRANSFER_WRITE > COMPUTE_SHADER/SHADER_READ", "uniform_read"], [None, RAW]),
    (["copy_write", "ALL_TRANSFER/TRANSFER_WRITE > COMPUTE_SHADER/SHADER_READ", "compute_read"], [None, None]),
    (["copy_write", "COPY/MEMORY_WRITE > COMPUTE_SHADER/MEMORY_READ", "uniform_read"], [None, None]),
    (["clear_write", "COPY/TRANSFER_WRITE > COPY/TRANSFER_READ", "copy_read"], [None, RAW]),
    (["copy_write", "TOP_OF_PIPE > COPY/TRANSFER_READ", "copy_read"], [None, RAW]),
    (["copy_read", "BOTTOM_OF_PIPE > TOP_OF_PIPE", "copy_write"], [None, None]),
    (["copy_read", "TOP_OF_PIPE > COPY", "copy_write"], [None, WAR]),
    # layout transitions
    (["transition NONE > COPY/TRANSFER_WRITE", "copy_write"], [None, None]),
    (["transition NONE > COPY/TRANSFER_READ", "copy_write"], [None, WAW]),
    (["transition NONE > COPY/TRANSFER_WRITE", "copy_read"], [None, RAW]),
    (["copy_write", "transition NONE > COPY/TRANSFER_READ"], [None, WAW]),
    (["copy_write", "transition COPY > COPY/TRANSFER_READ"], [None, WAW]),
    (["copy_write", "transition COPY/TRANSFER_WRITE > COPY/TRANSFER_READ", "copy_read"], [None, None, None]),
    (["copy_write", "COPY/TRANSFER_WRITE > COPY", "transition COPY > COPY/TRANSFER_READ", "copy_read"], [None] * 3),
    (["copy_read", "transition NONE > COPY/TRANSFER_WRITE", "copy_write"], [None, WAR, None]),
    (["copy_read", "transition COPY > COPY/TRANSFER_WRITE", "copy_write"], [None, None, None]),
    (["transition NONE > COPY", "transition NONE > BLIT/TRANSFER_READ", "blit_read"], [None, None, None]),
    (["copy_read", "COPY > ALL_COMMANDS", "transition NONE > COPY/TRANSFER_WRITE"], [None, None]),
    (["copy_read", "COPY > COLOR_ATTACHMENT_OUTPUT", "transition NONE > COPY/TRANSFER_WRITE"], [None, WAR]),
    # atomics
    (["compute_read atomic", "compute_read atomic"], [None, None]),
    (["compute_write", "compute_read atomic"], [None, RAW]),
    (["compute_read", "compute_read atomic"], [None, WAR]),
    (["compute_read atomic", "compute_read"], [None, RAW]),
    (["compute_read atomic", "compute_write"], [None, WAW]),
]


@pytest.mark.parametrize(("steps", "expected"), SEQUENCES, ids=[" , ".join(steps) for steps, _ in SEQUENCES])
def test_a_sequence_meets_exactly_these_hazards(steps: list[str], expected: list[str | None]) -> None:
    assert run(*steps) == expected


def test_equal_histories_share_one_state() -> None:
    write = ACCESS_KIND["SYNC_COPY_TRANSFER_WRITE"].index
    assert (
        after_access(EMPTY, AccessRequest(write, QUEUE, QUEUE)).state
        is after_access(EMPTY, AccessRequest(write, QUEUE, QUEUE)).state
    )


def test_applying_a_barrier_twice_is_the_same_as_once() -> None:
    once = after_access(EMPTY, AccessRequest(ACCESS_KIND["SYNC_COPY_TRANSFER_WRITE"].index, QUEUE, QUEUE)).state
    scopes = barrier("COPY/TRANSFER_WRITE > COPY/TRANSFER_READ")
    after = after_barrier(once, scopes, QUEUE)
    assert after_barrier(after, scopes, QUEUE) is after


def written(queue: int) -> State:
    return after_access(EMPTY, AccessRequest(ACCESS_KIND["SYNC_COPY_TRANSFER_WRITE"].index, queue, queue)).state


@pytest.fixture
def few_states(monkeypatch: pytest.MonkeyPatch) -> state.InternedStates:
    """States forget what was made of them whenever there are more than eight."""
    few = state.InternedStates()
    few.limit = 8
    few._held[None, (), ()] = EMPTY
    monkeypatch.setattr(state, "INTERNED", few)
    monkeypatch.setattr(EMPTY, "results", {})
    return few


def test_states_that_nobody_has_do_not_live_on(few_states: state.InternedStates) -> None:
    for queue in range(1, 40):
        written(queue)
        assert len(EMPTY.results) <= len(few_states) <= 8
    assert EMPTY.results


def test_equal_states_are_one_for_as_long_as_somebody_has_it(few_states: state.InternedStates) -> None:
    """Whatever was forgotten meanwhile: what is joined to what would depend on that otherwise."""
    scopes = barrier("COPY/TRANSFER_WRITE > COPY/TRANSFER_READ")
    first = written(QUEUE)
    ordered = after_barrier(first, scopes, QUEUE)
    for queue in range(2, 40):
        after_barrier(written(queue), scopes, queue)
    assert not first.results
    assert written(QUEUE) is first
    assert after_barrier(first, scopes, QUEUE) is ordered


def test_all_states_that_somebody_has_are_kept(few_states: state.InternedStates) -> None:
    """More than the limit: then they forget when there are twice as many."""
    held = [written(queue) for queue in range(1, 40)]
    assert len(few_states) >= 39
    assert all(written(queue) is each for queue, each in enumerate(held, 1))
