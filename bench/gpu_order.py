"""Which pairs of commands does a device put in order by itself, though nothing tells it to?

    .venv/bin/python bench/gpu_order.py [--device NAME] [--runs 20] [--words 262144]

The earlier command of a pair writes a buffer, and the later one reads it into another, without a barrier or semaphore
between. Before each run the buffer has old words; the run is stale when one of them comes out at the end. The programs
call the driver through the `vulkan` package and nothing else of vkharness, so that a pair that is never stale is put in
order by the device or its driver, and not by a harness.

The columns say where both run: in one command buffer, in two submits to one queue, on two queues of one family, and on
queues of two families, named by their flags (G, C and T for graphics, compute and transfer). `late wait`: the second
batch waits for a semaphore of the first at BOTTOM_OF_PIPE, which its command need not wait for. `behind a wait`: each
queue has another batch before that of the pair, and the one on the second queue waits for a semaphore of the one on
the first; the pair has none. The later command begins once the semaphore has reached its queue, and the earlier one
may be over by then. A pair that a queue cannot run, and a queue that the device lacks, is `-`, with a line that says
so. `slow` dispatches and draws spin before they store (`vkharness.shader.spin`).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import click
import vulkan as vk
from rich.table import Table

from vkharness.device.drivers import environment, find_driver
from vkharness.findings import UserError
from vkharness.report.console import terminal
from vkharness.shader.library import load
from vkharness.shader.spin import spinning

OLD, NEW = 0x11111111, 0x22222222
GRAPHICS, COMPUTE, TRANSFER = vk.VK_QUEUE_GRAPHICS_BIT, vk.VK_QUEUE_COMPUTE_BIT, vk.VK_QUEUE_TRANSFER_BIT
DRAWN_WORDS, DRAWN = 64, 16
"""Words that a draw writes, and the width and height of what it covers."""
LETTERS = ((GRAPHICS, "G"), (COMPUTE, "C"), (TRANSFER, "T"))


class Queue(NamedTuple):
    """A VkQueue with its family."""

    handle: Any
    family: int
    flags: int
    pool: Any


class Kernel(NamedTuple):
    """A pipeline with its layout and descriptor set."""

    pipeline: Any
    layout: Any
    set: Any


class Operation(NamedTuple):
    """One command of a pair: the VkQueueFlags any of which it needs, what records it, and how many words it reaches."""

    flags: int
    record: Callable[[Any], None]
    words: int


class Device:
    """A VkDevice with up to two queues of each family, and the buffers of all pairs."""

    def __init__(self, words: int) -> None:
        app = vk.VkApplicationInfo(apiVersion=vk.VK_MAKE_VERSION(1, 3, 0))
        self.instance = vk.vkCreateInstance(vk.VkInstanceCreateInfo(pApplicationInfo=app), None)
        self.physical = vk.vkEnumeratePhysicalDevices(self.instance)[0]
        self.name = vk.vkGetPhysicalDeviceProperties(self.physical).deviceName
        self.words = words
        memory = vk.vkGetPhysicalDeviceMemoryProperties(self.physical)  # its arrays live as long as it does
        self._memories = [memory.memoryTypes[at].propertyFlags for at in range(memory.memoryTypeCount)]
        found = vk.vkGetPhysicalDeviceQueueFamilyProperties(self.physical)
        self._families = {
            at: min(2, each.queueCount)
            for at, each in enumerate(found)
            if each.queueFlags & (GRAPHICS | COMPUTE | TRANSFER)
        }
        infos = [
            vk.VkDeviceQueueCreateInfo(queueFamilyIndex=at, pQueuePriorities=[1.0] * count)
            for at, count in self._families.items()
        ]
        has = vk.vkGetPhysicalDeviceFeatures(self.physical)
        self.draws = bool(has.fragmentStoresAndAtomics)
        features = vk.VkPhysicalDeviceFeatures(fragmentStoresAndAtomics=has.fragmentStoresAndAtomics)
        made = vk.VkDeviceCreateInfo(pQueueCreateInfos=infos, pEnabledFeatures=[features])
        self.handle = vk.vkCreateDevice(self.physical, made, None)
        self.queues = [
            Queue(vk.vkGetDeviceQueue(self.handle, at, index), at, found[at].queueFlags, self._pool(at))
            for at, count in self._families.items()
            for index in range(count)
        ]
        self.source, self.middle, self.result, self.seen = (self._buffer(each) for each in (False, False, False, True))

    def _pool(self, family: int) -> Any:
        return vk.vkCreateCommandPool(self.handle, vk.VkCommandPoolCreateInfo(queueFamilyIndex=family), None)

    def _buffer(self, visible: bool) -> Any:
        """A buffer that all families share; `visible` to the host, and mapped."""
        usage = vk.VK_BUFFER_USAGE_TRANSFER_SRC_BIT | vk.VK_BUFFER_USAGE_TRANSFER_DST_BIT
        usage |= vk.VK_BUFFER_USAGE_STORAGE_BUFFER_BIT
        several = len(self._families) > 1
        sharing = {"sharingMode": int(several), "pQueueFamilyIndices": list(self._families) if several else []}
        buffer = vk.vkCreateBuffer(
            self.handle, vk.VkBufferCreateInfo(size=4 * self.words, usage=usage, **sharing), None
        )
        needs = vk.vkGetBufferMemoryRequirements(self.handle, buffer)
        wanted = vk.VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
        if visible:
            wanted = vk.VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | vk.VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
        kinds = [at for at, each in enumerate(self._memories) if each & wanted == wanted]
        kind = next(at for at in kinds if needs.memoryTypeBits >> at & 1)
        info = vk.VkMemoryAllocateInfo(allocationSize=needs.size, memoryTypeIndex=kind)
        memory = vk.vkAllocateMemory(self.handle, info, None)
        if visible:
            self.mapped = vk.vkMapMemory(self.handle, memory, 0, needs.size, 0)
        vk.vkBindBufferMemory(self.handle, buffer, memory, 0)
        return buffer

    def record(self, queue: Queue, *parts: Callable[[Any], None]) -> Any:
        """A command buffer for a queue, with nothing between its parts."""
        allocate = vk.VkCommandBufferAllocateInfo(commandPool=queue.pool, commandBufferCount=1)
        commands = vk.vkAllocateCommandBuffers(self.handle, allocate)[0]
        vk.vkBeginCommandBuffer(commands, vk.VkCommandBufferBeginInfo())
        for part in parts:
            part(commands)
        vk.vkEndCommandBuffer(commands)
        return commands

    def module(self, code: bytes) -> Any:
        """A VkShaderModule."""
        info = vk.VkShaderModuleCreateInfo(codeSize=len(code), pCode=code)
        return vk.vkCreateShaderModule(self.handle, info, None)

    def layout(self, stage: int, *buffers: Any) -> tuple[Any, Any]:
        """A pipeline layout with storage buffers from binding 0 on and one pushed word, and a descriptor set for it."""
        kind = vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER
        bindings = [
            vk.VkDescriptorSetLayoutBinding(binding=at, descriptorType=kind, descriptorCount=1, stageFlags=stage)
            for at in range(len(buffers))
        ]
        shape = vk.vkCreateDescriptorSetLayout(
            self.handle, vk.VkDescriptorSetLayoutCreateInfo(pBindings=bindings), None
        )
        pushed = vk.VkPushConstantRange(stageFlags=stage, offset=0, size=4)
        info = vk.VkPipelineLayoutCreateInfo(pSetLayouts=[shape], pPushConstantRanges=[pushed])
        layout = vk.vkCreatePipelineLayout(self.handle, info, None)
        sizes = [vk.VkDescriptorPoolSize(type=kind, descriptorCount=len(buffers))]
        pool = vk.vkCreateDescriptorPool(self.handle, vk.VkDescriptorPoolCreateInfo(maxSets=1, pPoolSizes=sizes), None)
        allocate = vk.VkDescriptorSetAllocateInfo(descriptorPool=pool, pSetLayouts=[shape])
        made = vk.vkAllocateDescriptorSets(self.handle, allocate)[0]
        for at, buffer in enumerate(buffers):
            infos = [vk.VkDescriptorBufferInfo(buffer=buffer, offset=0, range=4 * self.words)]
            write = vk.VkWriteDescriptorSet(dstSet=made, dstBinding=at, descriptorType=kind, pBufferInfo=infos)
            vk.vkUpdateDescriptorSets(self.handle, 1, [write], 0, None)
        return layout, made

    def kernel(self, code: bytes, *buffers: Any) -> Kernel:
        """A compute pipeline over storage buffers."""
        layout, made = self.layout(vk.VK_SHADER_STAGE_COMPUTE_BIT, *buffers)
        stage = stage_of(vk.VK_SHADER_STAGE_COMPUTE_BIT, self.module(code))
        info = vk.VkComputePipelineCreateInfo(stage=stage, layout=layout)
        return Kernel(vk.vkCreateComputePipelines(self.handle, None, 1, [info], None)[0], layout, made)


NAME = vk.ffi.new("char[]", b"main")


def stage_of(stage: int, module: Any) -> Any:
    """A VkPipelineShaderStageCreateInfo."""
    return vk.VkPipelineShaderStageCreateInfo(stage=stage, module=module, pName=NAME)


class Drawing:
    """A triangle of which each fragment stores NEW in one of the first words of the buffer; there is no attachment."""

    def __init__(self, device: Device, code: bytes) -> None:
        self._layout, self._set = device.layout(vk.VK_SHADER_STAGE_FRAGMENT_BIT, device.middle)
        subpass = vk.VkSubpassDescription(pipelineBindPoint=vk.VK_PIPELINE_BIND_POINT_GRAPHICS)
        self._pass = vk.vkCreateRenderPass(device.handle, vk.VkRenderPassCreateInfo(pSubpasses=[subpass]), None)
        size = {"width": DRAWN, "height": DRAWN}
        info = vk.VkFramebufferCreateInfo(renderPass=self._pass, layers=1, **size)
        self._frame = vk.vkCreateFramebuffer(device.handle, info, None)
        self._area = vk.VkRect2D(vk.VkOffset2D(0, 0), vk.VkExtent2D(DRAWN, DRAWN))
        self._pipeline = self._made(device, code)

    def _made(self, device: Device, code: bytes) -> Any:
        stages = [
            stage_of(vk.VK_SHADER_STAGE_VERTEX_BIT, device.module(load("fullscreen"))),
            stage_of(vk.VK_SHADER_STAGE_FRAGMENT_BIT, device.module(code)),
        ]
        viewport = vk.VkViewport(0, 0, DRAWN, DRAWN, 0, 1)
        info = vk.VkGraphicsPipelineCreateInfo(
            pStages=stages,
            pVertexInputState=vk.VkPipelineVertexInputStateCreateInfo(),
            pInputAssemblyState=vk.VkPipelineInputAssemblyStateCreateInfo(
                topology=vk.VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST
            ),
            pViewportState=vk.VkPipelineViewportStateCreateInfo(pViewports=[viewport], pScissors=[self._area]),
            pRasterizationState=vk.VkPipelineRasterizationStateCreateInfo(lineWidth=1.0),
            pMultisampleState=vk.VkPipelineMultisampleStateCreateInfo(rasterizationSamples=vk.VK_SAMPLE_COUNT_1_BIT),
            layout=self._layout,
            renderPass=self._pass,
        )
        return vk.vkCreateGraphicsPipelines(device.handle, None, 1, [info], None)[0]

    def record(self, commands: Any) -> None:
        """Records it, as a render pass of its own."""
        begin = vk.VkRenderPassBeginInfo(renderPass=self._pass, framebuffer=self._frame, renderArea=self._area)
        vk.vkCmdBeginRenderPass(commands, begin, vk.VK_SUBPASS_CONTENTS_INLINE)
        point = vk.VK_PIPELINE_BIND_POINT_GRAPHICS
        vk.vkCmdBindPipeline(commands, point, self._pipeline)
        vk.vkCmdBindDescriptorSets(commands, point, self._layout, 0, 1, [self._set], 0, None)
        word = vk.ffi.new("uint32_t *", NEW)
        vk.vkCmdPushConstants(commands, self._layout, vk.VK_SHADER_STAGE_FRAGMENT_BIT, 0, 4, word)
        vk.vkCmdDraw(commands, 3, 1, 0, 0)
        vk.vkCmdEndRenderPass(commands)


def dispatch(device: Device, code: bytes, source: Any, target: Any) -> Operation:
    """Copies all words by a dispatch."""
    kernel, point = device.kernel(code, source, target), vk.VK_PIPELINE_BIND_POINT_COMPUTE

    def record(commands: Any) -> None:
        vk.vkCmdBindPipeline(commands, point, kernel.pipeline)
        vk.vkCmdBindDescriptorSets(commands, point, kernel.layout, 0, 1, [kernel.set], 0, None)
        vk.vkCmdDispatch(commands, -(-device.words // 64), 1, 1)

    return Operation(COMPUTE, record, device.words)


def copy(device: Device, source: Any, target: Any) -> Operation:
    """Copies all words by a copy."""
    region = vk.VkBufferCopy(srcOffset=0, dstOffset=0, size=4 * device.words)
    return Operation(
        GRAPHICS | COMPUTE | TRANSFER,
        lambda commands: vk.vkCmdCopyBuffer(commands, source, target, 1, [region]),
        device.words,
    )


def fill(device: Device, target: Any, value: int) -> Operation:
    """Fills all words."""
    return Operation(
        GRAPHICS | COMPUTE | TRANSFER,
        lambda commands: vk.vkCmdFillBuffer(commands, target, 0, 4 * device.words, value),
        device.words,
    )


def operations(device: Device) -> tuple[dict[str, Operation], dict[str, Operation]]:
    """Returns the operations that write NEW into the middle buffer, and those that read it into the result, by name."""
    plain = load("copy_words_plain")
    writers = {
        "fill": fill(device, device.middle, NEW),
        "copy": copy(device, device.source, device.middle),
        "dispatch": dispatch(device, plain, device.source, device.middle),
        "slow dispatch": dispatch(device, spinning(plain), device.source, device.middle),
    }
    if device.draws and any(each.flags & GRAPHICS for each in device.queues):
        for name, code in (("draw", load("store_words.frag")), ("slow draw", spinning(load("store_words.frag")))):
            writers[name] = Operation(GRAPHICS, Drawing(device, code).record, DRAWN_WORDS)
    readers = {
        "copy": copy(device, device.middle, device.result),
        "dispatch": dispatch(device, plain, device.middle, device.result),
    }
    return writers, readers


class Place(NamedTuple):
    """Where the two commands of a pair run: its name, and the queue of each."""

    name: str
    first: Queue
    second: Queue
    signals: bool = False
    """Whether the second batch waits for a semaphore of the first at BOTTOM_OF_PIPE, so that its command need not."""
    behind: bool = False
    """Whether each batch stands behind one more on its queue, and that of the second queue waits for the other one."""


def places(device: Device) -> Iterator[Place]:
    """All places of pairs."""
    first = next(each for each in device.queues if each.flags & COMPUTE)
    yield Place("one command buffer", first, first)
    yield Place("two submits", first, first)
    same = [each for each in device.queues if each.family == first.family]
    if len(same) > 1:
        yield Place("two queues", same[0], same[1])
    else:
        terminal().print(f"- two queues: family {first.family} of {device.name} has one queue")
    others = {each.family: each for each in device.queues if each.family != first.family}
    if not others:
        terminal().print(f"- two families: {device.name} has one family")
    for other in others.values():
        there = f"{letters(first)}{first.family} to {letters(other)}{other.family}"
        yield Place(there, first, other)
        yield Place(f"{letters(other)}{other.family} to {letters(first)}{first.family}", other, first)
        yield Place(f"{there}, late wait", first, other, signals=True)
        yield Place(f"{there}, behind a wait", first, other, behind=True)


def letters(queue: Queue) -> str:
    """The flags of a queue's family."""
    return "".join(letter for flag, letter in LETTERS if queue.flags & flag)


def stale_runs(device: Device, place: Place, writer: Operation, reader: Operation, runs: int) -> int | None:
    """In how many runs an old word came out; None where a queue cannot run its command."""
    first, second = place.first, place.second
    if not (first.flags & writer.flags and second.flags & reader.flags):
        return None
    own = next(each for each in device.queues if each.flags & COMPUTE)
    before = device.record(own, *(fill(device, to, value).record for to, value in device_start(device)))
    after = device.record(own, copy(device, device.result, device.seen).record)
    if place.name == "one command buffer":
        submits = [submit(first, device.record(first, writer.record, reader.record))]
    else:
        parts = device.record(first, writer.record), device.record(second, reader.record)
        submits = handed_over(device, place, *parts) if place.signals else [*map(submit, (first, second), parts)]
    if place.behind:
        others = (device.record(queue, fill(device, device.seen, 0).record) for queue in (first, second))
        submits = [*handed_over(device, place, *others), *submits]
    stale = 0
    for _ in range(runs):
        run(device, own, before)
        for queue, info in submits:
            vk.vkQueueSubmit(queue.handle, 1, [info], None)
        vk.vkDeviceWaitIdle(device.handle)
        run(device, own, after)
        seen = struct.unpack(f"<{writer.words}I", bytes(device.mapped[: 4 * writer.words]))
        stale += any(word != NEW for word in seen)
    return stale


def submit(queue: Queue, commands: Any, **more: Any) -> tuple[Queue, Any]:
    """A queue, and a batch for it."""
    return queue, vk.VkSubmitInfo(pCommandBuffers=[commands], **more)


def handed_over(device: Device, place: Place, first: Any, second: Any) -> list[tuple[Queue, Any]]:
    """Two batches, of which the second waits for a semaphore of the first: at BOTTOM_OF_PIPE where the pair is meant,
    and before all of its commands where it stands before the pair."""
    semaphores = [vk.vkCreateSemaphore(device.handle, vk.VkSemaphoreCreateInfo(), None)]
    stages = vk.VK_PIPELINE_STAGE_ALL_COMMANDS_BIT if place.behind else vk.VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT
    return [
        submit(place.first, first, pSignalSemaphores=semaphores),
        submit(place.second, second, pWaitSemaphores=semaphores, pWaitDstStageMask=[stages]),
    ]


def device_start(device: Device) -> tuple[tuple[Any, int], ...]:
    """The buffers, with what they hold before each run."""
    return (device.source, NEW), (device.middle, OLD), (device.result, 0)


def run(device: Device, queue: Queue, commands: Any) -> None:
    """Runs one command buffer, and waits for it."""
    vk.vkQueueSubmit(queue.handle, 1, [vk.VkSubmitInfo(pCommandBuffers=[commands])], None)
    vk.vkDeviceWaitIdle(device.handle)


@click.command(help=(__doc__ or "").splitlines()[0])
@click.option("--device", "name", default="lavapipe", show_default=True, help="The driver, by name or manifest.")
@click.option("--runs", default=20, show_default=True, type=click.IntRange(1))
@click.option("--words", default=1 << 18, show_default=True, type=click.IntRange(DRAWN_WORDS), help="Of each buffer.")
def main(name: str, runs: int, words: int) -> None:
    """Makes all pairs in all places."""
    try:
        os.environ.update(environment(find_driver(name)))
    except UserError as error:
        raise click.ClickException(str(error)) from None
    device = Device(words)
    writers, readers = operations(device)
    if "draw" not in writers:
        terminal().print(f"- draws: {device.name} has no graphics queue, or no stores of fragment shaders")
    several = list(places(device))
    table = Table("pair", *(place.name for place in several), title=f"stale runs of {runs} on {device.name}", box=None)
    for before, writer in writers.items():
        for after, reader in readers.items():
            found = [stale_runs(device, place, writer, reader, runs) for place in several]
            table.add_row(f"{before}, {after}", *("-" if each is None else str(each) for each in found))
    terminal().print(table)


if __name__ == "__main__":
    main()
