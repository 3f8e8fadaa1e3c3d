"""Semaphores over plain stream events: scopes, chains, values and racing transitions (rules.md#semaphore), beside
the sequences of `test_queues`."""

from __future__ import annotations

import pytest

from tests.support.effects import access, barrier, dependency
from tests.support.judged import Device, operation, read, write
from vkharness.trace.effects import Barrier, RangeBarrier, SemaphoreCreated
from vkharness.trace.host_effects import HostWaitedSemaphores

IMAGE, OTHER = 102, 103
G, C, T = 1, 2, 3
SEMAPHORE, SECOND = 9, 10
DRAWN = access("VERTEX_SHADER_SHADER_STORAGE_WRITE", IMAGE)
FILL = access("CLEAR_TRANSFER_WRITE", IMAGE)


def move(src: str, dst: str) -> Barrier:
    """A transition of the image from UNDEFINED."""
    return Barrier(
        (),
        ranges=(
            RangeBarrier(dependency(src, dst), IMAGE, ((0, 64),), IMAGE, transition=True, old_layout=0, new_layout=7),
        ),
    )


def timeline(initial: int = 0) -> Device:
    device = Device()
    device.take(SemaphoreCreated(SEMAPHORE, initial))
    return device


# -- scopes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("queue", [G, C])
def test_a_signal_covers_all_accesses_of_earlier_stages(queue: int) -> None:
    """FRAGMENT_SHADER holds what VERTEX_SHADER wrote; no access mask limits it."""
    for stage, met in (("FRAGMENT_SHADER", []), ("COMPUTE_SHADER", ["WRITE_AFTER_WRITE"])):
        device = Device()
        device.submit(G, DRAWN, signals=[operation(SEMAPHORE, stage)])
        assert device.submit(queue, write(IMAGE), waits=[operation(SEMAPHORE)]) == met


@pytest.mark.parametrize("queue", [G, C])
def test_a_wait_covers_all_accesses_of_later_stages(queue: int) -> None:
    for stage, met in (("VERTEX_SHADER", []), ("COMPUTE_SHADER", ["READ_AFTER_WRITE"])):
        device = Device()
        device.submit(G, write(IMAGE), signals=[operation(SEMAPHORE)])
        sampled = access("FRAGMENT_SHADER_SHADER_SAMPLED_READ", IMAGE)
        assert device.submit(queue, sampled, waits=[operation(SEMAPHORE, stage)]) == met


@pytest.mark.parametrize("queue", [G, C])
def test_the_bottom_signals_and_the_top_waits_for_everything(queue: int) -> None:
    device = Device()
    device.submit(G, DRAWN, signals=[operation(SEMAPHORE, "BOTTOM_OF_PIPE")])
    assert device.submit(queue, write(IMAGE), waits=[operation(SEMAPHORE, "TOP_OF_PIPE")]) == []


@pytest.mark.parametrize("queue", [G, C])
def test_a_signal_after_nothing_covers_nothing(queue: int) -> None:
    device = Device()
    device.submit(G, write(IMAGE), signals=[operation(SEMAPHORE, "NONE")])
    assert device.submit(queue, write(IMAGE), waits=[operation(SEMAPHORE)]) == ["WRITE_AFTER_WRITE"]


def test_a_wait_at_another_stage_than_the_write() -> None:
    device = Device()
    device.submit(G, FILL, signals=[operation(SEMAPHORE, "CLEAR")])
    assert device.submit(C, FILL, waits=[operation(SEMAPHORE, "VERTEX_SHADER")]) == ["WRITE_AFTER_WRITE"]


@pytest.mark.parametrize("queue", [G, C])
@pytest.mark.parametrize(("wait", "met"), [("ALL_COMMANDS", []), ("COPY", ["WRITE_AFTER_WRITE"])])
def test_a_transition_from_none_chains_with_a_wait_for_everything(queue: int, wait: str, met: list[str]) -> None:
    device = Device()
    device.submit(G, FILL, signals=[operation(SEMAPHORE)])
    assert device.submit(queue, move("NONE", "NONE"), waits=[operation(SEMAPHORE, wait)]) == met


def test_barriers_chain_after_a_wait() -> None:
    for src, met in (("COPY", []), ("BLIT", ["WRITE_AFTER_WRITE"])):
        device = Device()
        device.submit(G, FILL, signals=[operation(SEMAPHORE)])
        steps = barrier(src, "RESOLVE/TRANSFER_WRITE"), access("RESOLVE_TRANSFER_WRITE", IMAGE)
        assert device.submit(C, *steps, waits=[operation(SEMAPHORE, "COPY")]) == met


def test_a_binary_semaphore_is_used_again() -> None:
    device = Device()
    device.submit(G, write(IMAGE), signals=[operation(SEMAPHORE)])
    waits = signals = [operation(SEMAPHORE)]
    assert device.submit(C, write(IMAGE), waits=waits, signals=signals) == []
    assert device.submit(T, write(IMAGE), waits=waits) == []
    assert device.submit(G, write(IMAGE)) == ["WRITE_RACING_WRITE"]


# -- timelines ---------------------------------------------------------------------------------------------------------


def test_a_wait_takes_the_smallest_value_that_reaches() -> None:
    device = timeline()
    device.submit(G, write(IMAGE), signals=[operation(SEMAPHORE, value=2)])
    device.submit(G, write(OTHER), signals=[operation(SEMAPHORE, value=5)])
    assert device.submit(C, read(IMAGE), waits=[operation(SEMAPHORE, value=1)]) == []
    assert device.submit(C, read(OTHER)) == ["READ_RACING_WRITE"]
    assert device.submit(T, read(OTHER), waits=[operation(SEMAPHORE, value=3)]) == []


def test_one_signal_releases_several_queues() -> None:
    device = timeline()
    for queue in (C, T):
        assert device.submit(queue, read(IMAGE), waits=[operation(SEMAPHORE, value=1)]) == []
    assert device.submit(G, write(IMAGE), signals=[operation(SEMAPHORE, value=1)]) == []


def test_an_early_wait_at_another_stage_is_judged_when_it_is_signaled() -> None:
    device = timeline()
    assert device.submit(C, write(IMAGE), waits=[operation(SEMAPHORE, "VERTEX_SHADER", 1)]) == []
    assert device.submit(G, write(IMAGE), signals=[operation(SEMAPHORE, value=1)]) == ["WRITE_AFTER_WRITE"]


def test_what_the_host_knows_of_a_timeline_covers_no_more() -> None:
    device = timeline()
    device.submit(G, write(IMAGE), signals=[operation(SEMAPHORE, value=1)])
    device.submit(G, write(OTHER), signals=[operation(SEMAPHORE, value=2)])
    device.take(HostWaitedSemaphores(((SEMAPHORE, 1),)))
    assert device.submit(C, write(IMAGE)) == []
    assert device.submit(C, write(OTHER)) == ["WRITE_RACING_WRITE"]


def test_what_the_host_waited_for_takes_the_older_write_along() -> None:
    device = Device()
    device.submit(G, write(IMAGE), barrier("COPY/TRANSFER_WRITE", "COPY/TRANSFER_READ"))
    device.finish(G, read(IMAGE), fence=5)
    assert device.submit(C, write(IMAGE)) == []


# -- transitions -------------------------------------------------------------------------------------------------------


def test_transitions_race_across_queues() -> None:
    device = Device()
    whole = move("NONE", "NONE")
    device.submit(G, whole, signals=[operation(SEMAPHORE)])
    assert device.submit(C, whole, waits=[operation(SEMAPHORE)]) == []
    assert device.submit(G, whole) == ["WRITE_RACING_WRITE"]


# -- signals with narrow scopes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("queue", [G, C])
@pytest.mark.parametrize("value", [0, 1], ids=["binary", "timeline"])
def test_a_signal_covers_what_was_in_its_scope_then(queue: int, value: int) -> None:
    """A barrier after a narrow signal does not put a write in its scope."""
    device = Device()
    if value:
        device.take(SemaphoreCreated(9, 0))
    device.submit(G, write(IMAGE), write(OTHER, 0, 8), signals=[operation(9, "COMPUTE_SHADER", value)])
    device.submit(G, barrier("COPY/TRANSFER_WRITE", "COMPUTE_SHADER/SHADER_READ"))
    blit = access("BLIT_TRANSFER_READ", IMAGE)
    assert device.submit(queue, blit, waits=[operation(9, value=value)]) == ["READ_AFTER_WRITE"]


@pytest.mark.parametrize("queue", [G, C])
def test_a_narrow_signal_covers_what_a_barrier_put_there_before(queue: int) -> None:
    device = Device()
    ordered = barrier("COPY/TRANSFER_WRITE", "COMPUTE_SHADER/SHADER_READ")
    device.submit(G, write(IMAGE), ordered, signals=[operation(9, "COMPUTE_SHADER")])
    assert device.submit(queue, read(IMAGE), waits=[operation(9)]) == []


def test_narrow_signals_leave_one_mark_for_each_queue() -> None:
    """Work before signals of a queue comes before its later signals, too."""
    device = Device()
    for _ in range(50):
        device.submit(G, write(IMAGE), signals=[operation(9, "COPY")])
        assert device.submit(C, write(IMAGE), waits=[operation(9)], signals=[operation(10, "COPY")]) == []
        device.submit(G, waits=[operation(10)])
    states = device.validator._context.store.states()
    assert len(set().union(*(view.write.tokens for state in states for view in state.views))) <= 2


def test_what_is_transitioned_is_in_the_scope_of_everything_only() -> None:
    for stage, met in (("ALL_COMMANDS", []), ("COPY", ["WRITE_AFTER_WRITE"])):
        device = Device()
        device.submit(G, move("NONE", "NONE"), signals=[operation(9, stage)])
        assert device.submit(C, write(IMAGE), waits=[operation(9)]) == met
