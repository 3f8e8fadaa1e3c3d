"""Long programs: what the mirror keeps does not grow with what they did, and a call costs the same late as early.

Sizes are entries in containers, costs are function calls, so that nothing depends on the machine.
"""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import pytest

import vkharness
from tests.support.streams import ALL_COMMANDS, TRANSFER, Stream, struct
from vkharness.check import Analysis
from vkharness.commands.contents import at_submit
from vkharness.commands.recently_used import RecentlyUsed
from vkharness.device.drivers import environment, find_driver
from vkharness.groups import MOST_ALIKE, MOST_RESOURCES, groups_of
from vkharness.late_analysis import LateAnalysis
from vkharness.rig.rig import Rig
from vkharness.syncval import state
from vkharness.trace.calls import Block, Call

CONTAINERS = (dict, list, set, frozenset, tuple, deque)
NOT_OURS = (type, ModuleType, BuiltinFunctionType, str, bytes, int, float)


def entries(*roots: object) -> int:
    """How many entries the containers hold that can be reached from objects. Functions lead to what they enclose."""
    seen: set[int] = set()
    found, left = 0, list(roots)
    while left:
        thing = left.pop()
        if id(thing) in seen or isinstance(thing, NOT_OURS):
            continue
        seen.add(id(thing))
        if isinstance(thing, FunctionType):
            left += [cell.cell_contents for cell in thing.__closure__ or ()]
            continue
        if isinstance(thing, CONTAINERS):
            found += len(thing)
        left += gc.get_referents(thing) if not isinstance(thing, MethodType) else [thing.__self__]
    return found


def kept(mirror: Analysis) -> int:
    """Everything that the mirror keeps, and all states that there are."""
    return entries(mirror, *states())


def states() -> list[state.State]:
    gc.collect()  # states whose results lead to one another
    return list(state.INTERNED)


@pytest.fixture(autouse=True)
def nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes of contents that nobody asks for wait up to a bound; here they are made at once."""
    monkeypatch.setattr(at_submit, "MOST_WAITING", 0)


def calls_of(work: Callable[[], object]) -> int:
    """How many functions of Python something calls."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def new_blocks(stream: Stream) -> list[Block]:
    """Takes the blocks that were added since the last call out of the stream."""
    taken = list(stream.blocks)
    stream.blocks.clear()
    return taken


class Numbered(Stream):
    """A stream whose blocks are taken away as they come, and numbered on."""

    def __init__(self) -> None:
        self._taken = 0
        super().__init__()

    def take(self) -> Iterator[Block]:
        """The blocks since the last call."""
        for block in new_blocks(self):
            self._taken += 1
            block.index = self._taken
            yield block


@cache
def zero(name: str) -> dict[str, Any]:
    """A struct of zeros, to copy."""
    return struct(name)


def submit(stream: Stream, semaphore: int, value: int, stages: int, fence: int = 0) -> None:
    """vkQueueSubmit2 with one batch: waits for a value of a timeline, then signals the next."""
    operation = {**zero("VkSemaphoreSubmitInfo"), "semaphore": semaphore, "stageMask": stages}
    batch = {
        **zero("VkSubmitInfo2"),
        "waitSemaphoreInfoCount": 1,
        "pWaitSemaphoreInfos": [{**operation, "value": value}],
        "commandBufferInfoCount": 1,
        "pCommandBufferInfos": [{**zero("VkCommandBufferSubmitInfo"), "commandBuffer": stream.commands}],
        "signalSemaphoreInfoCount": 1,
        "pSignalSemaphoreInfos": [{**operation, "value": value + 1}],
    }
    stream.call("vkQueueSubmit2", queue=stream.queue, pSubmits=[batch], fence=fence)


@pytest.mark.parametrize(("queues", "stages"), [(1, ALL_COMMANDS), (2, ALL_COMMANDS), (2, TRANSFER)])
def test_a_chain_of_submits_through_one_timeline_stays_linear_and_bounded(queues: int, stages: int) -> None:
    """30,000 submits, each after the one before, on one queue or on two in turn. Signals of few stages mark what came
    before them."""
    stream, mirror = Numbered(), Analysis()
    semaphore, buffer = stream.timeline(), stream.buffer(4096)
    places = [stream.queue]
    if queues == 2:
        places.append(stream.id())
        stream.call("vkGetDeviceQueue", device=stream.device, pQueue=places[1])
    stream.begin()
    stream.fill(buffer, 1)
    stream.end()
    mirror.follow(stream.take())

    def follow(first: int, count: int) -> int:
        for value in range(first, first + count):
            stream.queue = places[value % queues]
            submit(stream, semaphore, value, stages)
        mirror.follow(stream.take())
        return kept(mirror)

    sizes, costs = [follow(0, 1_000)], [calls_of(lambda: follow(1_000, 100))]
    sizes.append(follow(1_100, 28_800))
    costs.append(calls_of(lambda: follow(29_900, 100)))
    assert mirror.verdict == "clean"
    assert sizes[1] <= sizes[0]
    assert costs[1] <= 1.01 * costs[0], "a submit costs more than it did"


def use_buffer(stream: Stream) -> None:
    """Creates a buffer on memory of its own, uses it, waits and destroys both with the command buffer."""
    memory = stream.memory(64)
    buffer = stream.buffer(64, memory)
    commands = stream.begin()
    stream.fill(buffer, 1)
    stream.submit()
    stream.call("vkFreeCommandBuffers", commandPool=stream.pool, pCommandBuffers=[commands])
    stream.call("vkDestroyBuffer", device=stream.device, buffer=buffer)
    stream.call("vkFreeMemory", device=stream.device, memory=memory)


DESTROYED_BY = {
    "vkAllocateMemory": ("vkFreeMemory", "memory"),
    "vkCreateImageView": ("vkDestroyImageView", "imageView"),
    "vkCreateBufferView": ("vkDestroyBufferView", "bufferView"),
    "vkCreateComputePipelines": ("vkDestroyPipeline", "pipeline"),
    "vkCreateDescriptorSetLayout": ("vkDestroyDescriptorSetLayout", "descriptorSetLayout"),
}
"""Destroying calls of objects whose call and parameter do not follow from the name."""


def made_by(block: Block) -> tuple[str, dict[str, int]] | None:
    """The call that destroys what a call made, with the object as its argument."""
    assert isinstance(block, Call)
    kind = block.name.removeprefix("vkCreate")
    call, parameter = DESTROYED_BY.get(block.name, (f"vkDestroy{kind}", kind[0].lower() + kind[1:]))
    output = next((value for name, value in block.args.items() if name in OUTPUTS or name == f"p{kind}"), None)
    if output is None or not block.name.startswith(("vkCreate", "vkAllocateMemory")):
        return None
    return call, {parameter: output[0] if isinstance(output, list) else output}


OUTPUTS = ("pMemory", "pView", "pPipelines", "pSetLayout")


def use_everything(stream: Stream) -> None:
    """One of each kind of object that the mirror knows: created, used and destroyed, in the order of creation."""
    first = len(stream.blocks)
    image, buffers = stream.image((4, 4, 1)), [stream.buffer(256) for _ in range(2)]
    event, fence, semaphore, queries = (
        stream.make(f"vkCreate{kind}", f"p{kind}", struct(f"Vk{kind}CreateInfo", **more))
        for kind, more in (("Event", {}), ("Fence", {}), ("Semaphore", {}), ("QueryPool", {"queryCount": 2}))
    )
    part = struct("VkImageSubresourceRange", aspectMask=1, levelCount=1, layerCount=1)
    stream.make("vkCreateImageView", "pView", struct("VkImageViewCreateInfo", image=image, subresourceRange=part))
    stream.make("vkCreateBufferView", "pView", struct("VkBufferViewCreateInfo", buffer=buffers[0], range=256))
    shared, stream.pool = (
        stream.pool,
        stream.make("vkCreateCommandPool", "pCommandPool", struct("VkCommandPoolCreateInfo")),
    )
    shader = stream.compute("copy_words", buffers, bytes(8))
    stream.begin()
    shader.run()
    stream.cmd("ResetQueryPool", queryPool=queries, firstQuery=0, queryCount=2)
    stream.cmd("SetEvent", event=event, stageMask=ALL_COMMANDS)
    stream.barrier()
    stream.transition(image, 0, 1)
    stream.end()
    batch = struct("VkSubmitInfo", pCommandBuffers=[stream.commands], pSignalSemaphores=[semaphore])
    stream.call("vkQueueSubmit", queue=stream.queue, pSubmits=[batch], fence=fence)
    stream.call("vkWaitForFences", device=stream.device, pFences=[fence], waitAll=1)
    stream.blocks[-1].result = 0  # type: ignore[union-attr]
    for block in stream.blocks[first:]:
        found = made_by(block)
        if found is not None:
            stream.call(found[0], device=stream.device, **found[1])
    stream.pool = shared


@pytest.mark.parametrize(("use", "times"), [(use_buffer, 10_000), (use_everything, 300)])
def test_objects_that_come_and_go_leave_nothing(
    monkeypatch: pytest.MonkeyPatch, use: Callable[[Stream], None], times: int
) -> None:
    """Growth in what is kept after the first tenth is growth for ever. Tables that forget by themselves are full by
    then."""
    made = RecentlyUsed.__init__
    monkeypatch.setattr(RecentlyUsed, "__init__", lambda table, most: made(table, min(most, 8)))
    stream, mirror = Numbered(), Analysis()
    sizes = []
    for part in (times // 10, times - times // 10):
        for _ in range(part):
            use(stream)
            mirror.follow(stream.take())
        sizes.append(kept(mirror))
    assert mirror.verdict == "clean", mirror.unmodelled
    assert sizes[1] <= sizes[0]


def test_descriptors_that_are_written_anew_each_frame_leave_nothing() -> None:
    """Two buffers in turn in one set: what the shader accessed by the set as it was before is forgotten."""
    stream, mirror = Numbered(), Analysis()
    buffers = [stream.buffer(256) for _ in range(3)]
    shader, commands = stream.compute("copy_words", buffers[:2], bytes(8)), stream.begin()
    stream.end()
    sizes = []
    for frames in (20, 180):
        for number in range(frames):
            found = struct("VkDescriptorBufferInfo", buffer=buffers[1 + number % 2], range=256)
            write = {"dstSet": shader.set, "dstBinding": 1, "descriptorCount": 1, "descriptorType": 7}
            write = struct("VkWriteDescriptorSet", **write, pBufferInfo=[found])
            stream.call("vkUpdateDescriptorSets", device=stream.device, pDescriptorWrites=[write])
            stream.call("vkBeginCommandBuffer", commandBuffer=commands, pBeginInfo=zero("VkCommandBufferBeginInfo"))
            shader.run()
            stream.submit()
            mirror.follow(stream.take())
        sizes.append(kept(mirror))
    assert mirror.verdict == "clean", mirror.unmodelled
    assert sizes[1] <= sizes[0]


@pytest.mark.parametrize("is_late", [False, True])
def test_what_a_line_does_wrong_again_and_again_is_counted(is_late: bool) -> None:
    """Two fills of a frame that nothing orders, of a buffer in turn or of one that is made for the frame."""
    stream, mirror = Numbered(), (LateAnalysis if is_late else Analysis)(counts_repetitions=True)
    commands, sizes = stream.begin(), []
    stream.end()
    times = 2 * (MOST_RESOURCES + MOST_ALIKE)
    buffers = [stream.buffer(256) for _ in range(3)]
    for number in range(2 * times):
        stream.call("vkBeginCommandBuffer", commandBuffer=commands, pBeginInfo=zero("VkCommandBufferBeginInfo"))
        fresh = stream.buffer(256)
        for buffer in (buffers[number % 3], fresh):
            for line in (1, 2):
                stream.fill(buffer, line)
                last = stream.blocks[-1]
                assert isinstance(last, Call)
                last.site = f"app.py:{line + 2 * (buffer == fresh)}"
        stream.submit()
        stream.call("vkDestroyBuffer", device=stream.device, buffer=fresh)
        mirror.follow(stream.take())
        if number + 1 in (times, 2 * times):
            sizes.append(kept(mirror))
    one, other = groups_of(mirror.findings)
    assert (one.count, other.count) == (2 * times, 2 * times)
    assert len(one.recurring) == 3 and len(other.findings) == MOST_RESOURCES
    assert len(one.findings) == MOST_ALIKE
    assert sizes[1] <= sizes[0]


WAITS = (
    "vkWaitForFences",
    "vkGetFenceStatus",
    "vkQueueWaitIdle",
    "vkDeviceWaitIdle",
    "vkWaitSemaphores",
    "vkGetSemaphoreCounterValue",
)


@pytest.mark.parametrize("wait", WAITS)
def test_waits_of_the_host_free_what_they_cover(wait: str) -> None:
    """Each round leaves 1,100 ranges behind, in memory that the host cannot see."""
    stream, mirror = Numbered(), Analysis()
    types = struct("VkPhysicalDeviceMemoryProperties", memoryTypes=[struct("VkMemoryType", propertyFlags=1)])
    stream.call("vkGetPhysicalDeviceMemoryProperties", physicalDevice=0, pMemoryProperties=types)
    fence = stream.make("vkCreateFence", "pFence", struct("VkFenceCreateInfo"))
    buffer, semaphore = stream.buffer(8 * 10_000), stream.timeline()
    ranges = []
    for round in range(8):
        commands = stream.begin()
        for at in range(1_100):
            stream.fill(buffer, 1, 8 * (1_100 * round + at), 4)
        stream.end()
        submit(stream, semaphore, round, ALL_COMMANDS, fence)
        mirror.follow(stream.take())
        ranges.append(mirror._validator._context.ranges)
        wait_for(stream, wait, fence, semaphore, round + 1)
        stream.call("vkResetFences", device=stream.device, pFences=[fence])
        stream.call("vkFreeCommandBuffers", commandPool=stream.pool, pCommandBuffers=[commands])
        mirror.follow(stream.take())
        ranges.append(mirror._validator._context.ranges)
    assert mirror.verdict == "clean"
    assert ranges == [1_100, 0] * 8


def wait_for(stream: Stream, wait: str, fence: int, semaphore: int, value: int) -> None:
    """One successful call by which the host learns that the last submit is complete."""
    arguments: dict[str, dict[str, Any]] = {
        "vkWaitForFences": {"device": stream.device, "fenceCount": 1, "pFences": [fence], "waitAll": 1},
        "vkGetFenceStatus": {"device": stream.device, "fence": fence},
        "vkQueueWaitIdle": {"queue": stream.queue},
        "vkDeviceWaitIdle": {"device": stream.device},
        "vkWaitSemaphores": {"pWaitInfo": struct("VkSemaphoreWaitInfo", pSemaphores=[semaphore], pValues=[value])},
        "vkGetSemaphoreCounterValue": {"semaphore": semaphore, "pValue": value},
    }
    stream.call(wait, **arguments[wait])
    last = stream.blocks[-1]
    assert isinstance(last, Call)
    last.result = 0


def use_device(rig: Rig) -> None:
    """Creates, uses and destroys memory that the host writes, what is on it, and pools with what comes from them."""
    vk, device = rig.vk, rig.device
    needs = {"allocationSize": 4096, "memoryTypeIndex": rig.gpu.memory_type(0xFFFFFFFF, 0x6)}
    memory = vk.vkAllocateMemory(device, vk.VkMemoryAllocateInfo(**needs), None)
    buffer = vk.vkCreateBuffer(device, vk.VkBufferCreateInfo(size=4096, usage=0x22), None)
    vk.vkBindBufferMemory(device, buffer, memory, 0)
    vk.vkMapMemory(device, memory, 0, 4096, 0)[:4] = b"\1\2\3\4"
    vk.vkUnmapMemory(device, memory)
    pool = vk.vkCreateCommandPool(device, vk.VkCommandPoolCreateInfo(), None)
    size = vk.VkDescriptorPoolSize(type=7, descriptorCount=1)
    sets = vk.vkCreateDescriptorPool(device, vk.VkDescriptorPoolCreateInfo(maxSets=1, pPoolSizes=[size]), None)
    slot = vk.VkDescriptorSetLayoutBinding(descriptorType=7, descriptorCount=1, stageFlags=0x20)
    layout = vk.vkCreateDescriptorSetLayout(device, vk.VkDescriptorSetLayoutCreateInfo(pBindings=[slot]), None)
    info = vk.VkDescriptorSetAllocateInfo(descriptorPool=sets, pSetLayouts=[layout])
    held = vk.vkAllocateDescriptorSets(device, info)[0]
    part = vk.VkDescriptorBufferInfo(buffer=buffer, range=4096)
    write = vk.VkWriteDescriptorSet(dstSet=held, descriptorCount=1, descriptorType=7, pBufferInfo=[part])
    vk.vkUpdateDescriptorSets(device, 1, [write], 0, None)
    several = vk.VkCommandBufferAllocateInfo(commandPool=pool, commandBufferCount=1)
    commands = vk.vkAllocateCommandBuffers(device, several)[0]
    vk.vkBeginCommandBuffer(commands, vk.VkCommandBufferBeginInfo())
    vk.vkCmdFillBuffer(commands, buffer, 0, 4096, 1)
    vk.vkEndCommandBuffer(commands)
    vk.vkQueueSubmit(rig.queue, 1, [vk.VkSubmitInfo(pCommandBuffers=[commands])], None)
    vk.vkQueueWaitIdle(rig.queue)
    vk.vkDestroyCommandPool(device, pool, None)
    vk.vkDestroyDescriptorPool(device, sets, None)
    vk.vkDestroyDescriptorSetLayout(device, layout, None)
    vk.vkDestroyBuffer(device, buffer, None)
    vk.vkFreeMemory(device, memory, None)


def test_a_session_keeps_nothing_of_objects_that_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with the proxy, handles, mapped memory and host writes, on a device."""
    for name, value in environment(find_driver("lavapipe")).items():
        monkeypatch.setenv(name, value)
    sizes = []
    with vkharness.attach() as session, Rig() as rig:
        for times in (30, 170):
            for _ in range(times):
                use_device(rig)
            sizes.append(entries(session, *states()))
    assert session.verdict == "clean", session.internal_errors
    assert sizes[1] <= sizes[0]
