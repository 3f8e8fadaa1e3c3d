"""Semaphores in the validator beyond the sequences of `test_queues`, and the order in which held batches run."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.effects import ALL_COMMANDS, READ_A, WRITE_A, WRITE_B, access, at
from tests.support.judged import Device
from vkharness.replay.schedule.batch_scheduler import all_run, runnable
from vkharness.replay.schedule.steps import flatten
from vkharness.spec.enums import VkPipelineStage2
from vkharness.syncval.journal import LENGTH, Log
from vkharness.syncval.race import NEVER
from vkharness.trace.calls import Block, Call
from vkharness.trace.effects import SemaphoreCreated
from vkharness.trace.pending_batches import PendingBatch, PendingBatches

TIMELINE = 7
COPY, VERTEX = VkPipelineStage2.COPY, VkPipelineStage2.VERTEX_SHADER


def test_a_wait_leaves_out_what_its_queue_did_after_the_signal() -> None:
    device = Device()
    device.validator.consume(SemaphoreCreated(TIMELINE, 0))
    device.submit(1, WRITE_B, signals=at(TIMELINE, ALL_COMMANDS, 1))
    device.submit(1, WRITE_A)
    assert device.submit(1, WRITE_A, waits=at(TIMELINE, ALL_COMMANDS, 1)) == ["WRITE_AFTER_WRITE"]
    assert device.submit(1, WRITE_B, waits=at(TIMELINE, ALL_COMMANDS, 1)) == []


def test_an_early_wait_gives_nothing_to_what_a_later_one_orders() -> None:
    device = Device()
    device.submit(1, WRITE_B, signals=at(8))
    device.submit(1, WRITE_A, signals=at(9))
    device.submit(2, waits=at(8))
    assert device.submit(2, READ_A, waits=at(9, VERTEX)) == ["READ_AFTER_WRITE"]
    assert device.submit(2, access("COPY_TRANSFER_READ", 101)) == []


def test_reads_after_the_signal_stay_unordered() -> None:
    device = Device()
    device.validator.consume(SemaphoreCreated(TIMELINE, 0))
    device.submit(1, READ_A, signals=at(TIMELINE, ALL_COMMANDS, 1))
    device.submit(1, access("BLIT_TRANSFER_READ", 100))
    assert device.submit(1, WRITE_A, waits=at(TIMELINE, ALL_COMMANDS, 1)) == ["WRITE_AFTER_READ"]


def test_batches_are_held_in_the_order_of_their_queue() -> None:
    releases: PendingBatches[str] = PendingBatches()
    releases.create(TIMELINE, 0)
    waits = ((TIMELINE, 2),)
    assert list(
        releases.submit(1, [PendingBatch((), (), "a"), PendingBatch(waits, (), "b"), PendingBatch((), (), "c")])
    ) == ["a"]
    assert list(releases.submit(2, [PendingBatch(((TIMELINE, 1),), waits, "d")])) == []
    assert [each.item for each in releases.held] == ["b", "c", "d"]
    assert list(releases.signal(TIMELINE, 1)) == ["d", "b", "c"]
    assert releases.held == []


def test_a_binary_semaphore_holds_nothing() -> None:
    releases: PendingBatches[str] = PendingBatches()
    releases.create(5, None)
    assert list(releases.submit(1, [PendingBatch(((5, 0),), (), "a")])) == ["a"]


def calls(blocks: Iterable[Block]) -> list[Call]:
    """The submissions among blocks."""
    return [each for each in blocks if isinstance(each, Call) and "fence" in each.args]


def submit(index: int, queue: int, fence: int, *batches: tuple[int, int]) -> Call:
    """A vkQueueSubmit2 of batches that wait for and signal values of one timeline (0: neither)."""
    operation = {"semaphore": TIMELINE, "stageMask": ALL_COMMANDS}
    infos = [
        {
            "pCommandBufferInfos": [],
            "pWaitSemaphoreInfos": [operation | {"value": wait}] if wait else [],
            "pSignalSemaphoreInfos": [operation | {"value": signal}] if signal else [],
        }
        for wait, signal in batches
    ]
    args = {"queue": queue, "submitCount": len(infos), "pSubmits": infos, "fence": fence}
    return Call(index, "vkQueueSubmit2", args, 0)


def test_a_submit_is_cut_where_one_queue_has_to_wait() -> None:
    kind = {"sType": 1000207002, "semaphoreType": 1, "initialValue": 0}
    made = Call(1, "vkCreateSemaphore", {"pCreateInfo": {"pNext": kind}, "pSemaphore": TIMELINE}, 0)
    blocks: list[Block] = [made, submit(2, 1, 50, (0, 0), (1, 2), (0, 0)), submit(3, 2, 51), submit(4, 2, 0, (0, 1))]
    order = [(call.index, call.args["submitCount"], call.args["fence"]) for call in calls(runnable(blocks))]
    assert order == [(2, 1, 0), (3, 0, 51), (4, 1, 0), (2, 2, 50)]


def bind(index: int, *batches: tuple[int, int]) -> Call:
    """A vkQueueBindSparse of batches that wait for and signal values of one timeline (0: neither)."""
    infos = [
        {
            "pWaitSemaphores": [TIMELINE] * bool(wait),
            "pSignalSemaphores": [TIMELINE] * bool(signal),
            "pNext": {"sType": 1000207003, "pWaitSemaphoreValues": [wait], "pSignalSemaphoreValues": [signal]},
        }
        for wait, signal in batches
    ]
    return Call(
        index, "vkQueueBindSparse", {"queue": 1, "bindInfoCount": len(infos), "pBindInfo": infos, "fence": 60}, 0
    )


def test_a_bind_waits_and_signals_as_a_submit_does() -> None:
    kind = {"sType": 1000207002, "semaphoreType": 1, "initialValue": 0}
    made = Call(1, "vkCreateSemaphore", {"pCreateInfo": {"pNext": kind}, "pSemaphore": TIMELINE}, 0)
    before: list[Block] = [made, bind(2, (0, 1)), submit(3, 1, 0, (1, 2)), bind(4, (2, 0))]
    assert all_run(before) and list(runnable(before)) == before
    late: list[Block] = [made, bind(2, (0, 0), (2, 3), (0, 0)), submit(3, 2, 0, (0, 2)), submit(4, 2, 0, (3, 0))]
    order = [(call.index, len(call.args.get("pBindInfo", ())), call.args["fence"]) for call in calls(runnable(late))]
    assert order == [(2, 1, 0), (3, 0, 0), (2, 2, 60), (4, 0, 0)]
    assert [step.block.index for step in flatten(late)] == [1, 2, 2, 2]
    assert not all_run([made, bind(2, (1, 2)), submit(3, 1, 0, (2, 0))])


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("accesses", [3, LENGTH + 10])
def test_what_came_after_a_signal_is_found_however_long_ago_that_was(accesses: int, together: bool) -> None:
    """The journal names it, or is too short and every range is visited."""
    device = Device()
    device.validator.consume(SemaphoreCreated(TIMELINE, 0))
    device.submit(1, WRITE_B, signals=at(TIMELINE, ALL_COMMANDS, 1))
    device.submit(1, WRITE_A)
    others = [access("COPY_TRANSFER_WRITE", 1000 + number) for number in range(accesses)]
    for batch in [others] if together else [[each] for each in others]:
        device.submit(1, *batch)
    assert device.submit(1, WRITE_A, waits=at(TIMELINE, ALL_COMMANDS, 1)) == ["WRITE_AFTER_WRITE"]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, LENGTH // 2)), max_size=12))
def test_a_log_has_all_that_came_after_what_it_let_go_of(batches: list[tuple[int, int]]) -> None:
    """Batches of some accesses each; now and then the host learns that the earlier ones are complete."""
    log, everything, retired = Log(NEVER), [], NEVER
    for number, (event, accesses) in enumerate(batches):
        retired = (number - 1, 0) if event == 2 else retired
        for each in range(accesses):
            log.add((number, 0), each, (), retired)
            everything.append(((number, 0), (each, ())))
    assert log.size == sum(map(len, log.batches.values())) <= LENGTH
    for tag in [NEVER, *((number, 0) for number in range(len(batches)))]:
        if tag >= max(log.since, retired):
            assert list(log.after(tag)) == [each for when, each in everything if when > tag]


def test_what_a_queue_learnt_after_its_signal_is_left_out() -> None:
    device = Device()
    device.submit(2, WRITE_A, signals=at(8))
    device.submit(1, WRITE_B, signals=at(9))
    device.submit(1, waits=at(8))
    device.submit(3, waits=at(9))
    assert device.submit(3, READ_A) == ["READ_RACING_WRITE"]
    device.submit(1, signals=at(10, VERTEX))
    assert device.submit(3, READ_A, waits=at(10, VERTEX)) == ["READ_AFTER_WRITE"]
