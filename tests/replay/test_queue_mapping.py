"""The queues of a device that stand for those of a trace, by the families that real devices have."""

from __future__ import annotations

import pytest

from tests.support.streams import Stream, struct
from vkharness.device.queue_emulation import FAMILIES
from vkharness.findings import UserError
from vkharness.replay.objects.queue_mapping import QueueFamily, QueueMapping, TraceQueues, map_queues, trace_queues
from vkharness.spec.enums import VK_QUEUE_FAMILY_EXTERNAL, VK_QUEUE_FAMILY_FOREIGN_EXT, VK_QUEUE_FAMILY_IGNORED

H200 = [(0xF, 16), (0xC, 2), (0xE, 8), (0x2C, 7), (0x4C, 1), (0x10C, 4)]
GEFORCE = [(0xF, 16), (0xC, 2), (0xE, 8)]
RADEON = [(0xF, 1), (0xE, 4), (0xC, 2)]
RADEON_WITHOUT_TRANSFER_BITS = [(0x3, 1), (0x2, 4)]
INTEL = [(0xF, 1), (0xE, 1), (0x24, 2)]
ADRENO = [(0x7, 3)]
SOFTWARE = [(0x7, 1)]


def mapped(
    places: list[tuple[int, int]], device: list[tuple[int, int]], own: int = 0, **more: set[int]
) -> QueueMapping:
    flags = {index: flags for index, (flags, _) in enumerate(FAMILIES)}
    wanted = TraceQueues(set(places), places[0], flags, more.get("sparse", set()))
    return map_queues(wanted, [QueueFamily(*each) for each in device], own)


@pytest.mark.parametrize(
    ("device", "families"),
    [
        (H200, {0: 0, 1: 2, 2: 1}),
        (GEFORCE, {0: 0, 1: 2, 2: 1}),
        (RADEON, {0: 0, 1: 1, 2: 2}),
        (RADEON_WITHOUT_TRANSFER_BITS, {0: 0, 1: 1, 2: 1}),
        (INTEL, {0: 0, 1: 1, 2: 2}),
        (ADRENO, {0: 0, 1: 0, 2: 0}),
        (SOFTWARE, {0: 0, 1: 0, 2: 0}),
    ],
)
def test_each_family_goes_to_the_one_with_the_fewest_surplus_flags(
    device: list[tuple[int, int]], families: dict[int, int]
) -> None:
    assert mapped([(0, 0), (1, 0), (2, 0)], device).families == families


def test_queues_are_given_out_in_order_and_shared_when_there_are_no_more() -> None:
    places = [(0, 0), (0, 3), (1, 0), (2, 1)]
    several = mapped(places, H200)
    assert several.queues == {(0, 0): (0, 0), (0, 3): (0, 1), (1, 0): (2, 0), (2, 1): (1, 0)}
    assert several.keeps_queues_apart
    assert several.counts == {0: 2, 2: 1, 1: 1}
    three = mapped(places, ADRENO)
    assert [three.queue(each) for each in places] == [(0, 0), (0, 1), (0, 2), (0, 0)]
    assert not three.keeps_queues_apart
    assert not three.leaves_family
    one = mapped(places, SOFTWARE)
    assert set(one.queues.values()) == {(0, 0)}
    assert one.counts == {0: 1}
    assert not one.keeps_queues_apart
    assert mapped([(0, 0)], SOFTWARE).keeps_queues_apart


def test_a_family_alone_takes_the_narrowest_that_has_its_flags() -> None:
    assert mapped([(2, 0)], H200).queues == {(2, 0): (1, 0)}
    assert mapped([(2, 0)], H200).counts == {0: 1, 1: 1}
    assert mapped([(2, 0)], H200).leaves_family


@pytest.mark.parametrize("device", [H200, GEFORCE, RADEON, INTEL])
def test_on_the_device_of_the_trace_everything_stands_for_itself(device: list[tuple[int, int]]) -> None:
    families = [QueueFamily(*each) for each in device]
    places = {(at, index) for at, (_, count) in enumerate(device) for index in range(count)}
    wanted = TraceQueues(places, (0, 0), {at: flags for at, (flags, _) in enumerate(device)})
    assert all(place == target for place, target in map_queues(wanted, families, 0).queues.items())


def test_queues_that_bind_sparse_memory_go_where_that_can_be_done() -> None:
    device = [(0xF, 1), (0x4, 1)]
    assert mapped([(0, 0), (2, 0)], device).queue((2, 0)) == (1, 0)
    assert mapped([(0, 0), (2, 0)], device, sparse={2}).queue((2, 0)) == (0, 0)


def test_what_the_trace_does_not_tell_goes_to_the_own_family() -> None:
    unknown = map_queues(TraceQueues({(0, 0), (5, 0)}, (5, 0)), [QueueFamily(*each) for each in H200], 0)
    assert unknown.queues == {(0, 0): (0, 0), (5, 0): (0, 1)}
    compute_only = mapped([(0, 0)], [(0xC, 1), (0xE, 2)], own=1)
    assert compute_only.queue((0, 0)) == (1, 0)


def test_indices_that_name_no_family_stay() -> None:
    mapping = mapped([(0, 0), (1, 0)], H200)
    for outside in (VK_QUEUE_FAMILY_IGNORED, VK_QUEUE_FAMILY_EXTERNAL, VK_QUEUE_FAMILY_FOREIGN_EXT):
        assert mapping.family(outside) == outside
    assert (mapping.family(1), mapping.family(17)) == (2, 0)


def test_the_trace_says_its_queues() -> None:
    stream = Stream()
    second = stream.id()
    families = [struct("VkQueueFamilyProperties", queueFlags=flags, queueCount=count) for flags, count in FAMILIES]
    stream.call("vkGetPhysicalDeviceQueueFamilyProperties", pQueueFamilyProperties=families)
    stream.call("vkGetPhysicalDeviceQueueFamilyProperties", pQueueFamilyProperties=None)
    other = [struct("VkQueueFamilyProperties", queueFlags=0x1F)]
    stream.call("vkGetPhysicalDeviceQueueFamilyProperties", physicalDevice=99, pQueueFamilyProperties=other)
    info = struct("VkDeviceQueueInfo2", queueFamilyIndex=2, queueIndex=1)
    stream.call("vkGetDeviceQueue2", device=stream.device, pQueueInfo=info, pQueue=second)
    stream.call("vkQueueBindSparse", queue=second)
    found = trace_queues(stream.blocks)
    assert found == TraceQueues(
        {(0, 0), (2, 1)}, (0, 0), {0: 7, 1: 6, 2: 4}, {2}, {stream.queue: (0, 0), second: (2, 1)}
    )


def test_a_handle_that_two_places_have_hides_neither() -> None:
    stream = Stream()
    stream.call("vkGetDeviceQueue", device=stream.device, pQueue=stream.queue, queueIndex=1)
    wanted = trace_queues(stream.blocks)
    assert wanted.places == {(0, 0), (0, 1)}
    assert map_queues(wanted, [QueueFamily(7, 2)], 0).first == (0, 0)


def test_a_malformed_place_is_one_line() -> None:
    stream = Stream()
    stream.call("vkGetDeviceQueue", device=stream.device, pQueue=stream.id(), queueIndex="first")
    with pytest.raises(UserError, match=r"block 4: vkGetDeviceQueue is malformed"):
        trace_queues(stream.blocks)
