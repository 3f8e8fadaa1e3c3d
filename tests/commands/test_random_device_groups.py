"""Random programs on devices of several physical devices: both judges find the same.

A program that keeps to one physical device is judged as on a device of that one alone.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.support.device_groups import CLEAR, COPY, READ, SEVERAL, SINGLE, WRITE, GroupStream, judged, of_buffer
from tests.support.streams import ALL_COMMANDS
from vkharness.check import Analysis
from vkharness.spec.enums import VkPipelineStage2

SIZE = 16
ENDS = (VkPipelineStage2.NONE, VkPipelineStage2.TOP_OF_PIPE, VkPipelineStage2.BOTTOM_OF_PIPE)
STAGES = (CLEAR, COPY, CLEAR | COPY, ALL_COMMANDS, VkPipelineStage2.ALL_TRANSFER, *ENDS)
ACCESSES = (0, READ, WRITE, READ | WRITE)


def program(seed: int, size: int, masks: list[int], submits: int = 4) -> GroupStream:
    """A program that fills and copies few buffers on the physical devices of these masks."""
    random = Random(seed)
    stream = GroupStream(size)
    queues = [stream.queue, stream.id()]
    stream.call("vkGetDeviceQueue", device=stream.device, pQueue=queues[1])
    buffers = [_buffer(random, stream, size) for _ in range(3)]
    signaled: list[int] = []
    for _ in range(submits):
        stream.begin()
        for _ in range(random.randrange(1, 7)):
            _command(random, stream, buffers, masks)
        wait = (signaled.pop(), _one_of(random, masks)) if signaled and random.random() < 0.7 else None
        signal = None
        if random.random() < 0.6:
            signal = stream.semaphore(), _one_of(random, masks)
            signaled.append(signal[0])
        stream.execute(random.choice(masks), wait=wait, signal=signal, queue=random.choice(queues))
        if random.random() < 0.1:
            stream.call("vkQueueWaitIdle", queue=random.choice(queues))
    return stream


def _buffer(random: Random, stream: GroupStream, size: int) -> int:
    kind, random = random.choice((SINGLE, SEVERAL)), Random(random.random())
    indices = [random.randrange(size) for _ in range(size)] if kind == SEVERAL and random.random() < 0.4 else None
    return stream.bound(stream.allocate(kind), indices, SIZE)


def _one_of(random: Random, masks: list[int]) -> int:
    mask = random.choice(masks)
    return random.choice([each for each in range(mask.bit_length()) if mask >> each & 1])


def _command(random: Random, stream: GroupStream, buffers: list[int], masks: list[int]) -> None:
    stream.mask(random.choice(masks))
    match random.randrange(5):
        case 0 | 1:
            stream.fill(random.choice(buffers), 7, 0, random.choice((8, SIZE)))
        case 2:
            source, target = random.sample(buffers, 2)
            stream.copy(source, target, random.choice((8, SIZE)))
        case _:
            given = {
                "srcStageMask": random.choice(STAGES), "srcAccessMask": random.choice(ACCESSES),
                "dstStageMask": random.choice(STAGES), "dstAccessMask": random.choice(ACCESSES),
            }  # fmt: skip
            across = random.random() < 0.7
            if random.random() < 0.3:
                barriers = [of_buffer(random.choice(buffers), given)]
                stream.order({}, across=across, pBufferMemoryBarriers=barriers)
            else:
                stream.order(given, across=across)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("part", range(4))
def test_both_judges_agree(size: int, part: int) -> None:
    found = 0
    for seed in range(part * 25, part * 25 + 25):
        found += len(judged(program(seed, size, list(range(1, 1 << size))))[0])
    assert found


@pytest.mark.parametrize("part", range(2))
def test_one_physical_device_of_several_is_as_one_alone(part: int) -> None:
    """Where all is executed by device index zero, with instances of its own, nothing else matters. What is found while
    commands are recorded is found for one physical device alone."""
    pairs = set()
    for seed in range(part * 25, part * 25 + 25):
        found = []
        for size in (1, 2):
            analysis = Analysis().follow(program(seed, size, [1]).blocks)
            found.append({(each.prior.call, each.place.call, each.hazard) for each in analysis.findings})
        assert found[1] <= found[0] and bool(found[0]) == bool(found[1]), seed
        pairs |= found[1]
    assert pairs
