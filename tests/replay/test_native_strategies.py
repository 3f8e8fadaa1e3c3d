"""Strategies for runs as recorded: what they make of a stream, and that clean streams leave the same under each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.support.drivers_here import on_each_driver
from tests.support.streams import ALL_COMMANDS, Stream, struct, two_buffers, words
from vkharness.device.drivers import find_driver
from vkharness.device.process import Worker
from vkharness.findings import UserError
from vkharness.replay.contents.observe import Outputs, Surface
from vkharness.replay.native_strategies import large_ranges, table
from vkharness.replay.native_strategies.changed_stream import ChangedStream
from vkharness.replay.native_strategies.execution_relation import BatchGraph
from vkharness.replay.native_strategies.instances import INSTANCES, with_instances
from vkharness.replay.native_strategies.large_ranges import FACTOR, with_large_ranges
from vkharness.replay.native_strategies.spinning_shaders import with_spinning_shaders
from vkharness.replay.native_strategies.submit_orders import with_other_order
from vkharness.replay.native_strategies.table import STRATEGIES, NativeRuns, NativeStrategy
from vkharness.replay.outcomes.jobs import run_serial
from vkharness.trace.calls import Block, Call, HostRead, HostWrite
from vkharness.trace.first_bytes import pattern_of

SIZE = 256


def dispatches(barriers: bool = True) -> tuple[Stream, list[int], int]:
    """A fill, two dispatches that copy on and a read of the host; the buffers, and the memory of the last."""
    stream = Stream()
    memory = stream.memory(SIZE)
    a, b = stream.buffer(SIZE), stream.buffer(SIZE)
    c = stream.buffer(SIZE, memory)
    first, second = stream.compute("copy_words_plain", [a, b]), stream.compute("copy_words_plain", [b, c])
    stream.begin()
    stream.fill(a, 0x01020304)
    for each in (first, second):
        if barriers:
            stream.barrier()
        each.run()
    stream.submit()
    stream.blocks.append(HostRead(len(stream.blocks) + 1, memory, 0, SIZE))
    return stream, [a, b, c], memory


def names_of(blocks: list[Block]) -> list[str]:
    return [each.name for each in blocks if isinstance(each, Call)]


def held_under(strategy: str, device: str) -> dict[str, Any]:
    """In a process of the driver: whether each of three runs left the serial bytes, and those of the last buffer."""
    stream, (_, _, c), _ = dispatches()
    serial = run_serial(stream.blocks, device)
    runs = NativeRuns(stream.blocks, device, serial)
    wrong = [runs.run(strategy, number) for number in range(3)]
    return {"wrong": [each is not None for each in wrong], "bytes": serial.surfaces[c, None].data.tobytes().hex()}


@on_each_driver
@pytest.mark.parametrize("strategy", [each for each in STRATEGIES if each not in ("late", "orders")])
def test_a_clean_stream_leaves_the_same_under_each_strategy(strategy: str, driver: str) -> None:
    with Worker(find_driver(driver), packages=["tests"]) as worker:
        found = worker.call(f"{__name__}:held_under", {"strategy": strategy, "device": driver})
    assert found == {"wrong": [False] * 3, "bytes": "04030201" * (SIZE // 4)}


def test_instances_submit_all_before_the_first_waits() -> None:
    stream, buffers, _ = dispatches()
    made = with_instances(stream.blocks, 0).blocks
    names = names_of(made)
    assert names.count("vkQueueSubmit") == INSTANCES and names.count("vkCreateDevice") == 1
    submits = [at for at, name in enumerate(names) if name == "vkQueueSubmit"]
    assert submits == list(range(submits[0], submits[0] + INSTANCES)), "nothing comes between"
    assert names.index("vkQueueWaitIdle") > submits[-1]
    created = [each.args["pBuffer"] for each in made if isinstance(each, Call) and each.name == "vkCreateBuffer"]
    assert len(set(created)) == INSTANCES * len(buffers)
    assert {pattern_of(each) for each in created} == {pattern_of(each) for each in buffers}


def run_instances(device: str) -> dict[str, Any]:
    """In a process of the driver: the parts of what eight instances leave, of which one has another fill."""
    stream, (_, _, c), _ = dispatches()
    changed = with_instances(stream.blocks, 0)
    fills = [at for at, each in enumerate(changed.blocks) if isinstance(each, Call) and each.name == "vkCmdFillBuffer"]
    other = changed.blocks[fills[5]]
    assert isinstance(other, Call)
    changed.blocks[fills[5]] = replace(other, args={**other.args, "data": 0})
    parts = changed.parts(run_serial(changed.blocks, device))
    reads = [key for part in parts for key in part.surfaces if key[0] < 0]
    return {"zero": [not part.surfaces[c, None].data.any() for part in parts], "reads": [key[0] for key in reads]}


@on_each_driver
def test_the_outputs_of_each_instance_are_told_apart(driver: str) -> None:
    with Worker(find_driver(driver), packages=["tests"]) as worker:
        found = worker.call(f"{__name__}:run_instances", {"device": driver})
    stream, _, _ = dispatches()
    assert found == {"zero": [at == 5 for at in range(INSTANCES)], "reads": [-stream.blocks[-1].index] * INSTANCES}


def test_streams_that_cannot_run_beside_themselves_say_why() -> None:
    stream, _, _ = dispatches()
    stream.call("vkGetBufferDeviceAddress", device=stream.device)
    with pytest.raises(UserError, match="its shaders may hold addresses"):
        with_instances(stream.blocks, 0)
    waiting, _, _ = dispatches()
    semaphore = waiting.timeline()
    waiting.begin()
    waiting.end()
    waiting.submit_in_turn(semaphore, 1)
    waiting.submit_in_turn(semaphore, 0)
    with pytest.raises(UserError, match="submits work before"):
        with_instances(waiting.blocks, 0)


def bound(blocks: list[Block]) -> list[int]:
    return [each.args["pipeline"] for each in blocks if isinstance(each, Call) and each.name == "vkCmdBindPipeline"]


@pytest.mark.parametrize("number", [0, 1, 2, 7])
def test_the_last_commands_have_the_shaders_as_recorded(number: int) -> None:
    """Run 0 spins everywhere. There are two dispatches, and one of them always spins."""
    stream, _, _ = dispatches()
    recorded = bound(stream.blocks)
    made = with_spinning_shaders(stream.blocks, number).blocks
    spun = [pipeline not in recorded for pipeline in bound(made) if pipeline]
    assert spun[:1] == [True]
    dispatched, last = [], 0
    for block in made:
        if isinstance(block, Call) and block.name == "vkCmdBindPipeline":
            last = block.args["pipeline"]
        elif isinstance(block, Call) and block.name == "vkCmdDispatch":
            dispatched.append(last not in recorded)
    assert dispatched == ([True, True] if number == 0 else [True, False])
    kept = [each for each in made if isinstance(each, Call) and each.name == "vkCreateShaderModule"]
    assert len(kept) == 4, "two as recorded, and two that spin"


def test_one_pipeline_that_two_dispatches_share_is_bound_again() -> None:
    stream, a, b = two_buffers(SIZE)
    both = stream.compute("copy_words_plain", [a, b])
    stream.begin()
    both.run()
    stream.barrier()
    stream.cmd("Dispatch", groupCountX=1, groupCountY=1, groupCountZ=1)
    stream.submit()
    names = [name for name in names_of(with_spinning_shaders(stream.blocks, 1).blocks) if name.startswith("vkCmd")]
    assert names[-2:] == ["vkCmdBindPipeline", "vkCmdDispatch"] and names.count("vkCmdBindPipeline") == 2


def test_a_stream_without_shaders_does_not_spin() -> None:
    stream, a, b = two_buffers()
    stream.begin()
    stream.copy(a, b, 16)
    stream.submit()
    with pytest.raises(UserError, match="no shader of this stream"):
        with_spinning_shaders(stream.blocks, 0)


def test_what_a_change_does_by_right_is_no_corruption(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run counts as corrupt when it differs from the serial run of the stream, and from that of what was changed."""
    stream, _, _ = dispatches()
    changed = ChangedStream(list(stream.blocks))

    def outputs(value: int) -> Outputs:
        return Outputs({(1, None): Surface(1, None, np.full(4, value, np.uint8))})

    def wrong(observed: int, serial_of_changed: int) -> bool:
        strategy = NativeStrategy("", lambda blocks, number: changed, lambda blocks, device, number: outputs(observed))
        monkeypatch.setattr(table, "STRATEGIES", {"x": strategy})
        monkeypatch.setattr(table, "run_serial", lambda blocks, device: outputs(serial_of_changed))
        return NativeRuns(stream.blocks, "none", outputs(1)).run("x", 0) is not None

    assert [wrong(1, 9), wrong(2, 2), wrong(2, 1), wrong(2, 3)] == [False, False, True, True]


def test_the_order_of_batches_is_found_out_once_for_all_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, _, _ = dispatches()
    made: list[int] = []

    class Counted(BatchGraph):
        def __init__(self, blocks: Iterable[Block]) -> None:
            made.append(1)
            super().__init__(blocks)

    same = Outputs({(1, None): Surface(1, None, np.full(4, 1, np.uint8))})
    monkeypatch.setattr(table, "BatchGraph", Counted)
    monkeypatch.setattr(table, "STRATEGIES", {"x": NativeStrategy("", run=lambda blocks, device, number: same)})
    runs = NativeRuns(stream.blocks, "none", same)
    assert [runs.run("x", number) for number in range(3)] == [None] * 3
    assert made == [1]


def two_queues(*, timeline: bool = False, waits: bool = True) -> Stream:
    """A fill on one queue and a copy of it on another, with a semaphore between; then a fill of another buffer."""
    stream, a, b = two_buffers(SIZE)
    other = stream.id()
    stream.call("vkGetDeviceQueue", device=stream.device, queueFamilyIndex=0, queueIndex=1, pQueue=other)
    info = struct("VkSemaphoreCreateInfo")
    semaphore = stream.timeline() if timeline else stream.make("vkCreateSemaphore", "pSemaphore", info)
    c = stream.buffer(SIZE)
    several = []
    for value, filled in ((1, a), (0, b), (2, c)):
        several.append(stream.begin())
        stream.fill(filled, value) if value else stream.copy(a, b, SIZE)
        stream.end()
    values = {"pNext": struct("VkTimelineSemaphoreSubmitInfo", pWaitSemaphoreValues=[1], pSignalSemaphoreValues=[1])}
    more = values if timeline else {}
    signal = struct("VkSubmitInfo", pCommandBuffers=several[:1], pSignalSemaphores=[semaphore], **more)
    stages = {"pWaitSemaphores": [semaphore], "pWaitDstStageMask": [ALL_COMMANDS]} if waits else {}
    wait = struct("VkSubmitInfo", pCommandBuffers=several[1:2], **stages, **more)
    last = struct("VkSubmitInfo", pCommandBuffers=several[2:])
    for queue, batch in ((stream.queue, signal), (other, wait), (stream.queue, last)):
        stream.call("vkQueueSubmit", queue=queue, pSubmits=[batch])
    stream.call("vkDeviceWaitIdle", device=stream.device)
    return stream


def submitted(blocks: list[Block]) -> list[int]:
    """The command buffers in the order of their submits, as 0, 1 and 2."""
    calls = [each for each in blocks if isinstance(each, Call) and each.name == "vkQueueSubmit"]
    found = [each.args["pSubmits"][0]["pCommandBuffers"][0] for each in calls]
    return [sorted(found).index(each) for each in found]


@pytest.mark.parametrize(
    ("stream", "orders"),
    [
        (two_queues(), [[0, 2, 1]]),
        (two_queues(waits=False), [[0, 2, 1], [1, 0, 2]]),
        (two_queues(timeline=True), [[0, 2, 1], [1, 0, 2]]),
    ],
    ids=["binary semaphore", "no semaphore", "timeline"],
)
def test_submits_to_different_queues_change_places_as_far_as_semaphores_allow(
    stream: Stream, orders: list[list[int]]
) -> None:
    found = [submitted(with_other_order(stream.blocks, number).blocks) for number in range(4)]
    assert submitted(stream.blocks) == [0, 1, 2] and [0, 1, 2] not in found
    assert sorted(map(tuple, found)) == sorted(tuple(orders[at % len(orders)]) for at in range(4))
    for number in range(4):
        made = with_other_order(stream.blocks, number).blocks
        assert names_of(made)[-1] == "vkDeviceWaitIdle" and len(made) == len(stream.blocks)


def test_one_queue_has_one_order() -> None:
    stream, _, _ = dispatches()
    with pytest.raises(UserError, match="no two submits to different queues"):
        with_other_order(stream.blocks, 0)


def held_in_orders(device: str) -> dict[str, Any]:
    """In a process of the driver: whether other orders of a stream whose copy waits for a timeline leave the same."""
    stream = two_queues(timeline=True)
    serial = run_serial(stream.blocks, device)
    runs = NativeRuns(stream.blocks, device, serial)
    return {"wrong": [runs.run("orders", each) is not None for each in range(2)]}


@on_each_driver
def test_a_clean_stream_leaves_the_same_in_other_orders(driver: str) -> None:
    with Worker(find_driver(driver), packages=["tests"]) as worker:
        assert worker.call(f"{__name__}:held_in_orders", {"device": driver}) == {"wrong": [False, False]}


def test_all_ranges_of_a_stream_grow_alike() -> None:
    stream, a, b = two_buffers(SIZE)
    memory = stream.memory(2 * SIZE)
    stream.buffer(SIZE, memory, SIZE)
    stream.host_write(memory, SIZE, b"abcd")
    stream.begin()
    stream.fill(a, 7)
    stream.barrier()
    stream.copy(a, b, 64, 16, 32)
    stream.submit()
    calls = {each.name: each.args for each in with_large_ranges(stream.blocks, 0).blocks if isinstance(each, Call)}
    assert calls["vkCreateBuffer"]["pCreateInfo"]["size"] == SIZE * FACTOR
    assert calls["vkBindBufferMemory"]["memoryOffset"] == SIZE * FACTOR
    assert calls["vkCmdFillBuffer"]["size"] == 0xFFFFFFFFFFFFFFFF, "to the end of the buffer stays so"
    (region,) = calls["vkCmdCopyBuffer"]["pRegions"]
    assert (region["srcOffset"], region["dstOffset"], region["size"]) == (16 * FACTOR, 32 * FACTOR, 64 * FACTOR)
    (write,) = [each for each in with_large_ranges(stream.blocks, 0).blocks if isinstance(each, HostWrite)]
    assert (write.offset, write.data) == (SIZE * FACTOR, b"abcd" * FACTOR)


def test_streams_that_cannot_grow_say_why() -> None:
    images = Stream()
    images.image((4, 4, 1))
    with pytest.raises(UserError, match="it has images"):
        with_large_ranges(images.blocks, 0)
    updates, a, _ = two_buffers()
    updates.begin()
    updates.cmd("UpdateBuffer", dstBuffer=a, dataSize=4, pData=b"abcd")
    with pytest.raises(UserError, match="65536 bytes at most"):
        with_large_ranges(updates.blocks, 0)
    huge = Stream()
    huge.buffer(1 << 20)
    with pytest.raises(UserError, match="more than 256 MiB"):
        with_large_ranges(huge.blocks, 0)


def test_shaders_that_would_reach_other_bytes_are_left_as_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream()
    a = stream.buffer(4 * SIZE)
    stored = stream.compute("fill_words", [a], words(5))
    stream.begin()
    stored.run()
    stream.submit()
    assert with_large_ranges(stream.blocks, 0).is_other
    clean = iter([False, True])
    monkeypatch.setattr(large_ranges, "judge", lambda blocks: SimpleNamespace(clean=next(clean)))
    with pytest.raises(UserError, match="would reach other bytes"):
        with_large_ranges(stream.blocks, 0)
