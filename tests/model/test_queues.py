"""The model: semaphores, timelines, events, presentation and queue family ownership, rule by rule."""

from __future__ import annotations

import pytest

from tests.support.effects import ALL_FLAGS, IMAGE, A, access, at, barrier, dependency, ranged
from tests.support.model_streams import BOTTOM, COMPUTE, COPY_STAGE, FILL, READ, TRANSFER, WRITE, Stream, run
from vkharness.spec.enums import VkPipelineStage2
from vkharness.trace.effects import (
    Access,
    Acquired,
    Barrier,
    Dependency,
    Presented,
    RangeBarrier,
    Recorded,
    ResetEvent,
    SemaphoreCreated,
    SetEvent,
    WaitEvents,
)
from vkharness.trace.host_effects import HostSetEvent, HostSignaled, HostWaitedSemaphores
from vkharness.trace.ownership_effects import SharedResource

TIMELINE = SemaphoreCreated(7, 0)
WRITTEN, VISIBLE = "COPY/TRANSFER_WRITE", "COPY/TRANSFER_READ"


# -- semaphores --------------------------------------------------------------------------------------------------------


def test_queues_are_unordered() -> None:
    assert Stream().submit(WRITE).submit(READ, queue=2).kinds() == ["unordered"]
    assert Stream().submit(READ).submit(READ, queue=2).kinds() == []


def test_a_semaphore_makes_available_and_visible() -> None:
    assert Stream().submit(WRITE, signals=at(7)).submit(READ, queue=2, waits=at(7, TRANSFER)).kinds() == []
    assert Stream().submit(WRITE, signals=at(7)).submit(WRITE, waits=at(7)).kinds() == []


def test_the_stages_of_a_wait_and_of_a_signal_limit_their_scopes() -> None:
    assert Stream().submit(WRITE, signals=at(7)).submit(READ, queue=2, waits=at(7, COMPUTE)).kinds() == ["unordered"]
    assert Stream().submit(WRITE, signals=at(7)).submit(READ, queue=2, waits=at(7, BOTTOM)).kinds() == ["unordered"]
    assert Stream().submit(WRITE, signals=at(7, COMPUTE)).submit(READ, queue=2, waits=at(7)).kinds() == ["unordered"]


def test_a_wait_chains_with_a_barrier_of_its_stage() -> None:
    chained = barrier("COMPUTE_SHADER", VISIBLE)
    stream = Stream().submit(WRITE, signals=at(7)).submit(chained, READ, queue=2, waits=at(7, COMPUTE))
    assert stream.kinds() == []


def test_visibility_on_one_queue_says_nothing_of_another() -> None:
    """A barrier's second scope is on its own queue; the semaphore has another stage in its own."""
    away = barrier("COPY/TRANSFER_WRITE", "ALL_COMMANDS/MEMORY_READ")
    stream = Stream().submit(WRITE, away, signals=at(7))
    assert stream.submit(barrier("COMPUTE_SHADER", "COPY"), READ, queue=2, waits=at(7, COMPUTE)).kinds() == [
        "invisible"
    ]


def test_signals_of_one_queue_are_in_order() -> None:
    stream = Stream().submit(WRITE, signals=at(7, COPY_STAGE)).submit(signals=at(8, COMPUTE))
    assert stream.submit(READ, queue=2, waits=at(8)).kinds() == []


def test_semaphores_carry_on_what_their_queue_waited_for() -> None:
    stream = Stream().submit(WRITE, signals=at(7)).submit(queue=2, waits=at(7), signals=at(8))
    assert stream.submit(READ, queue=3, waits=at(8)).kinds() == []


def test_a_binary_wait_takes_its_signal() -> None:
    stream = Stream().submit(WRITE, signals=at(7)).submit(queue=2, waits=at(7))
    assert stream.submit(READ, queue=3, waits=at(7)).kinds() == ["usage", "unordered"]


def test_a_timeline_wait_may_come_before_its_signal() -> None:
    stream = Stream().add(TIMELINE).submit(READ, waits=at(7, TRANSFER, 2))
    assert stream.submit(WRITE, queue=2, signals=at(7, value=2)).kinds() == []
    other = Stream().add(TIMELINE).submit(READ, waits=at(7, TRANSFER, 2))
    assert other.submit(WRITE, queue=2, signals=at(7, value=1)).kinds() == []  # never executed


def test_a_timeline_wait_is_after_the_first_signal_that_reaches_it() -> None:
    stream = Stream().add(TIMELINE).submit(signals=at(7, value=1)).submit(WRITE, signals=at(7, value=2))
    assert stream.submit(READ, queue=2, waits=at(7, value=1)).kinds() == ["unordered"]
    stream = Stream().add(TIMELINE).submit(signals=at(7, value=1)).submit(WRITE, signals=at(7, value=2))
    assert stream.submit(READ, queue=2, waits=at(7, value=2)).kinds() == []


def test_the_initial_value_was_signaled_by_nobody() -> None:
    stream = Stream().add(SemaphoreCreated(7, 3)).submit(WRITE)
    assert stream.submit(READ, queue=2, waits=at(7, value=3)).kinds() == ["unordered"]


def test_a_host_signal_orders_what_the_host_waited_for() -> None:
    stream = Stream().add(TIMELINE).submit(WRITE, fence=9).submit(READ, queue=2, waits=at(7, value=1)).wait(9)
    assert stream.add(HostSignaled(7, 1)).kinds() == []
    stream = Stream().add(TIMELINE).submit(WRITE).submit(READ, queue=2, waits=at(7, value=1))
    assert stream.add(HostSignaled(7, 1)).kinds() == ["unordered"]
    stream = Stream().add(TIMELINE).submit(READ, waits=at(7, value=1)).host_write()
    assert stream.add(HostSignaled(7, 1)).kinds() == ["unavailable"]  # written after the submit


def test_a_host_wait_for_a_value() -> None:
    stream = Stream().add(TIMELINE).submit(WRITE, signals=at(7, value=5)).add(HostWaitedSemaphores(((7, 4),)))
    assert stream.submit(READ, queue=2).kinds() == []
    stream = Stream().add(TIMELINE).submit(WRITE, signals=at(7, COMPUTE, 5)).add(HostWaitedSemaphores(((7, 4),)))
    assert stream.submit(READ, queue=2).kinds() == ["unordered"]


# -- events ------------------------------------------------------------------------------------------------------------


def set_event(src: str = WRITTEN, dst: str = VISIBLE) -> SetEvent:
    return SetEvent(50, barrier(src, dst), sync2=True)


def wait_events(src: str = WRITTEN, dst: str = VISIBLE, *moves: RangeBarrier) -> WaitEvents:
    return WaitEvents((50,), (Barrier((dependency(src, dst),), ranges=moves),), sync2=True)


def first_form(*stages: str) -> SetEvent:
    return SetEvent(50, Barrier((Dependency(dependency(stages[0], "NONE").src_stages, 0, 0, 0),)), sync2=False)


def test_an_event_has_what_came_before_its_set() -> None:
    assert run(WRITE, set_event(), wait_events(), READ) == []
    assert run(set_event(), WRITE, wait_events(), READ) == ["unordered"]
    assert run(WRITE, set_event(), READ) == ["unordered"]
    assert run(WRITE, set_event("COPY", "COPY"), wait_events("COPY", "COPY"), READ) == ["unavailable"]
    assert Stream().submit(WRITE, set_event()).submit(wait_events(), READ).kinds() == []


def test_the_first_form_takes_accesses_from_the_wait() -> None:
    wait = WaitEvents((50,), (barrier(WRITTEN, VISIBLE),), sync2=False)
    assert run(WRITE, first_form("COPY"), wait, READ) == []
    assert run(WRITE, first_form("COMPUTE_SHADER"), wait, READ) == ["event-usage", "unordered"]


def test_dependencies_of_the_second_form_stand_for_themselves() -> None:
    both = Barrier((dependency("COPY", "COMPUTE_SHADER"), dependency("COMPUTE_SHADER", "CLEAR")))
    assert run(READ, SetEvent(50, both, sync2=True), WaitEvents((50,), (both,), sync2=True), FILL) == ["unordered"]


def test_a_transition_of_the_second_form_may_happen_at_the_set() -> None:
    given = dependency("CLEAR/TRANSFER_WRITE", VISIBLE)
    move = RangeBarrier(given, IMAGE, ((0, 64),), IMAGE, transition=True, old_layout=6, new_layout=7)
    held = Barrier((given,), ranges=(move,))
    clear, read = access("CLEAR_TRANSFER_WRITE", IMAGE), access("COPY_TRANSFER_READ", IMAGE)
    assert run(clear, SetEvent(50, held, sync2=True), WaitEvents((50,), (held,), sync2=True), read) == []
    between = read, barrier("ALL_COMMANDS", "ALL_COMMANDS")
    assert run(SetEvent(50, held, sync2=True), *between, WaitEvents((50,), (held,), sync2=True)) == ["unordered"]


@pytest.mark.parametrize(
    ("first", "second", "ordering", "met"),
    [
        (set_event(), set_event(), None, ["event-unordered"]),
        (set_event(), ResetEvent(50, TRANSFER), None, ["event-unordered"]),
        (ResetEvent(50, TRANSFER), set_event(), None, ["event-unordered"]),
        (set_event(), ResetEvent(50, TRANSFER), ("COPY", "COPY"), ["event-unordered"]),
        (set_event(), ResetEvent(50, TRANSFER), ("ALL_COMMANDS", "COPY"), []),
        (set_event(), ResetEvent(50, TRANSFER), ("ALL_COMMANDS", "COMPUTE_SHADER"), ["event-unordered"]),
        (ResetEvent(50, TRANSFER), ResetEvent(50, TRANSFER), None, []),
    ],
)
def test_operations_on_an_event_need_an_order(
    first: SetEvent | ResetEvent, second: SetEvent | ResetEvent, ordering: tuple[str, str] | None, met: list[str]
) -> None:
    between = [] if ordering is None else [barrier(*ordering)]
    assert run(first, *between, second) == met


def test_a_reset_needs_an_order_after_the_wait() -> None:
    held = set_event("COPY", "COPY"), wait_events("COPY", "COPY")
    assert run(*held, ResetEvent(50, COPY_STAGE)) == []
    assert run(*held, ResetEvent(50, COMPUTE)) == ["event-unordered"] * 2  # after neither the set nor the wait


def test_a_wait_for_an_unordered_set() -> None:
    assert run(set_event(), set_event(), wait_events()) == ["event-unordered"] * 2


def test_the_host_sets_and_resets() -> None:
    stream = Stream().host_write().add(HostSetEvent(50, signaled=True))
    assert stream.submit(set_event()).add(HostSetEvent(50, signaled=False)).submit(set_event()).kinds() == []


# -- presentation ------------------------------------------------------------------------------------------------------

CLEAR = access("CLEAR_TRANSFER_WRITE", IMAGE)
CLEAR_STAGE = VkPipelineStage2.CLEAR


def present(*waits: int) -> Presented:
    return Presented(900, "vkQueuePresentKHR", None, 1, waits, ((60, IMAGE),))


def acquire(semaphore: int = 0, fence: int = 0) -> Acquired:
    return Acquired(901, "vkAcquireNextImageKHR", None, 60, IMAGE, semaphore, fence)


def test_presentation_waits_for_semaphores_or_the_host() -> None:
    assert Stream().submit(CLEAR, signals=at(7)).add(present(7)).kinds() == []
    assert Stream().submit(CLEAR).add(present()).kinds() == ["unordered"]
    assert Stream().submit(CLEAR).wait().add(present()).kinds() == []


def test_an_image_is_the_engine_s_until_its_acquire_is_waited_for() -> None:
    shown = Stream().submit(CLEAR, signals=at(7)).add(present(7))
    assert shown.submit(CLEAR).kinds() == ["unordered"]
    shown = Stream().submit(CLEAR, signals=at(7)).add(present(7), acquire(8))
    assert shown.submit(CLEAR, waits=at(8, CLEAR_STAGE)).kinds() == []
    shown = Stream().submit(CLEAR, signals=at(7)).add(present(7), acquire(8))
    assert set(shown.submit(CLEAR, waits=at(8, COMPUTE)).kinds()) == {"unordered"}
    shown = Stream().submit(CLEAR, signals=at(7)).add(present(7), acquire(0, 9)).wait(9)
    assert shown.submit(CLEAR).kinds() == []


def test_a_wait_for_a_queue_includes_no_presentation() -> None:
    shown = Stream().submit(CLEAR, signals=at(7)).add(present(7), acquire(8)).wait()
    assert set(shown.submit(CLEAR).kinds()) == {"unordered"}


# -- ownership ---------------------------------------------------------------------------------------------------------


def transfer(src: str = "NONE", dst: str = "NONE", families: tuple[int, int] = (0, 1), end: int = 64) -> Barrier:
    given, (source, target) = dependency(src, dst), families
    return Barrier((), ranges=(RangeBarrier(given, A, ((0, end),), A, src_family=source, dst_family=target),))


RELEASE, ACQUIRE = transfer(WRITTEN), transfer(dst=VISIBLE)


def handed_over(release: Barrier, acquired: Barrier, used: Access = READ, stages: int = 0x10000) -> list[str]:
    """Family 0 writes and releases; family 1 acquires and uses."""
    stream = Stream().submit(WRITE, release, signals=at(7), family=0)
    return stream.submit(acquired, used, queue=2, waits=at(7, stages), family=1).kinds()


def test_a_transfer_is_a_release_and_an_acquire_that_matches() -> None:
    assert handed_over(RELEASE, ACQUIRE) == []
    assert handed_over(barrier(), ACQUIRE) == ["ownership"]
    assert handed_over(RELEASE, barrier()) == ["ownership"]
    assert handed_over(RELEASE, transfer(dst=VISIBLE, end=32)) == ["ownership"] * 2  # the acquire, the read
    assert handed_over(barrier(), barrier()) == ["ownership"]
    assert handed_over(barrier(), barrier(), WRITE) == []  # whoever overwrites needs no contents


def test_both_halves_are_ordered_like_writes() -> None:
    assert handed_over(transfer("COPY"), ACQUIRE) == ["unavailable"]
    assert handed_over(RELEASE, transfer(dst="COPY")) == ["invisible"]
    assert "unordered" in handed_over(RELEASE, ACQUIRE, stages=COMPUTE)


def test_a_concurrent_resource_is_everybody_s() -> None:
    stream = Stream().add(SharedResource(A)).submit(WRITE, signals=at(7), family=0)
    assert stream.submit(READ, queue=2, waits=at(7), family=1).kinds() == []


# -- recorded and not executed -----------------------------------------------------------------------------------------


def test_commands_that_are_never_executed_are_judged_among_themselves() -> None:
    stream = Stream()
    recorded = [Recorded(5, each, ALL_FLAGS) for each in stream.commands(WRITE, READ)]
    opinion = stream.add(*recorded).judge()
    assert [(each.kind, each.current.submit) for each in opinion.conflicts] == [("unordered", None)]
    assert Stream().submit(ranged(WRITTEN, VISIBLE, A), READ).kinds() == []
