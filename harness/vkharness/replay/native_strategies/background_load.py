"""Work of our own that keeps queues busy while a stream runs: fills and copies of large buffers.

A load on all queues makes what runs beside each other slower. A load on one queue makes what runs there late, so that
other queues overtake it unless they wait: if nothing orders two queues, one of the two is seen to be late.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from vkharness.findings import UserError
from vkharness.replay.contents.observe import Outputs, observe
from vkharness.replay.native_strategies.phases import submits
from vkharness.replay.objects.allocations import choose_type
from vkharness.replay.objects.queue_mapping import trace_queues
from vkharness.replay.objects.target import ReplayDevice, ReplayTarget
from vkharness.replay.outcomes.executor import open_scene
from vkharness.replay.outcomes.native_run import execute_native
from vkharness.replay.schedule.replayable import replayable
from vkharness.spec.command_classes import HOST_WAITS, is_submit
from vkharness.spec.enums import VkAccess2, VkBufferUsage, VkPipelineStage2, VkQueueFlag, VkStructureType
from vkharness.spec.shapes import main_name, new_struct
from vkharness.trace.calls import Block, Call, reading

SIZE = 32 << 20
"""Bytes of each of the two buffers of a load."""
ROUNDS, ROUNDS_OF_A_CPU = 32, 1
"""A fill and a copy each. A device that is a CPU runs what it is given in order: more would show nothing more."""
FOREVER = 0xFFFFFFFFFFFFFFFF


def run_with_late_queue(blocks: list[Block], device: str, number: int) -> Outputs:
    """Runs a trace as recorded, as `run_native` does, with a load before the submits to one of its queues. The run of a
    number from 0 on takes the next queue. Raises `UserError` when it cannot run, or has one queue on this device."""
    blocks = replayable(blocks)
    with open_scene(blocks, device, native=True) as scene, ExitStack() as stack:
        mapping, places = scene.contents.resources.mapping, trace_queues(blocks).of_queue
        submitted = [each for each in blocks if isinstance(each, Call) and submits(each)]
        for each in submitted:
            with reading(each):
                if each.args["queue"] not in places:
                    raise UserError(f"block {each.index}: {each.name} to a queue that the trace does not obtain")
        queues = list(dict.fromkeys(mapping.queue(places[each.args["queue"]]) for each in submitted))
        if len(queues) < 2 or not mapping.keeps_queues_apart:
            raise UserError("as recorded only: all its work is on one queue")
        late = queues[number % len(queues)]
        load = stack.enter_context(QueueLoad(scene.device, scene.device.queue_at(late), late[0]))

        def before(block: Block) -> None:
            if isinstance(block, Call) and submits(block) and mapping.queue(places[block.args["queue"]]) == late:
                load.start()

        execute_native(scene, before)
        return observe(scene.contents, scene.notes)


def run_with_load(blocks: list[Block], device: str, number: int = 0) -> Outputs:
    """Runs a trace as recorded, as `run_native` does, with a load on its queue before the first submit and after each
    wait of the host, and on a queue of each other family before each submit. The `number` of the run changes nothing.
    Raises `UserError` when it cannot run."""
    blocks = replayable(blocks)
    with open_scene(blocks, device, native=True) as scene, ExitStack() as stack:
        own = stack.enter_context(QueueLoad(scene.device, scene.device.queue, scene.device.family))
        others = _loads_beside(scene.device.target)
        for each in others:
            stack.callback(each.wait)
        idle = True

        def before(block: Block) -> None:
            nonlocal idle
            if not isinstance(block, Call):
                return
            idle = idle or main_name(block.name) in HOST_WAITS
            if is_submit(block.name):
                for each in (*others, own) if idle else others:
                    each.start()
                idle = False

        execute_native(scene, before)
        return observe(scene.contents, scene.notes)


class QueueLoad:
    """A command buffer with a load for one queue. Use it as a context manager, or for the life of the process."""

    def __init__(self, device: ReplayDevice, queue: Any, family: int) -> None:
        self._device, self._queue = device, queue
        self._ffi = device.target.ffi
        self._made: list[tuple[str, Any]] = []
        self._pending = False
        self._fence = self._create("VkFence", new_struct(self._ffi, "VkFenceCreateInfo"))
        self._buffers = [self._buffer(), self._buffer()]
        pool = self._create("VkCommandPool", new_struct(self._ffi, "VkCommandPoolCreateInfo", queueFamilyIndex=family))
        info = new_struct(self._ffi, "VkCommandBufferAllocateInfo", commandPool=pool, commandBufferCount=1)
        self._commands = self._ffi.new("VkCommandBuffer *")
        self._check("vkAllocateCommandBuffers", device.handle, info, self._commands)
        self._record(self._commands[0])

    def __enter__(self) -> QueueLoad:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.wait()
        for name, handle in reversed(self._made):
            destroy = "vkFreeMemory" if name == "VkDeviceMemory" else f"vkDestroy{name[2:]}"
            self._device.function(destroy)(self._device.handle, handle, self._ffi.NULL)

    def start(self) -> None:
        """Submits the load, unless it still runs."""
        if self._pending:
            if self._device.function("vkGetFenceStatus")(self._device.handle, self._fence) != 0:
                return
            self.wait()
        info = new_struct(self._ffi, "VkSubmitInfo", commandBufferCount=1, pCommandBuffers=self._commands)
        self._check("vkQueueSubmit", self._queue, 1, info, self._fence)
        self._pending = True

    def wait(self) -> None:
        """Waits until the load has run."""
        if self._pending:
            fences = self._ffi.new("VkFence[1]", [self._fence])
            self._check("vkWaitForFences", self._device.handle, 1, fences, 1, FOREVER)
            self._check("vkResetFences", self._device.handle, 1, fences)
            self._pending = False

    def _record(self, commands: Any) -> None:
        ffi, function = self._ffi, self._device.function
        memory = VkAccess2.MEMORY_READ | VkAccess2.MEMORY_WRITE
        barrier = new_struct(ffi, "VkMemoryBarrier", srcAccessMask=memory, dstAccessMask=memory)
        region = ffi.new("VkBufferCopy *", {"size": SIZE})
        stages = VkPipelineStage2.ALL_COMMANDS
        self._check("vkBeginCommandBuffer", commands, new_struct(ffi, "VkCommandBufferBeginInfo"))
        for number in range(ROUNDS_OF_A_CPU if _is_cpu(self._device.target) else ROUNDS):
            function("vkCmdFillBuffer")(commands, self._buffers[0], 0, SIZE, number)
            function("vkCmdPipelineBarrier")(commands, stages, stages, 0, 1, barrier, 0, ffi.NULL, 0, ffi.NULL)
            function("vkCmdCopyBuffer")(commands, *self._buffers, 1, region)
            function("vkCmdPipelineBarrier")(commands, stages, stages, 0, 1, barrier, 0, ffi.NULL, 0, ffi.NULL)
        self._check("vkEndCommandBuffer", commands)

    def _buffer(self) -> Any:
        ffi, device = self._ffi, self._device
        usage = VkBufferUsage.TRANSFER_SRC | VkBufferUsage.TRANSFER_DST
        made = self._create("VkBuffer", new_struct(ffi, "VkBufferCreateInfo", size=SIZE, usage=usage))
        needs = ffi.new("VkMemoryRequirements *")
        device.function("vkGetBufferMemoryRequirements")(device.handle, made, needs)
        index = choose_type(device.target.memory_types, int(needs.memoryTypeBits), False)
        info = new_struct(ffi, "VkMemoryAllocateInfo", allocationSize=needs.size, memoryTypeIndex=index)
        memory = self._create("VkDeviceMemory", info, "vkAllocateMemory")
        self._check("vkBindBufferMemory", device.handle, made, memory, 0)
        return made

    def _create(self, kind: str, info: Any, name: str = "") -> Any:
        out = self._ffi.new(f"{kind} *")
        self._check(name or f"vkCreate{kind[2:]}", self._device.handle, info, self._ffi.NULL, out)
        self._made.append((kind, out[0]))
        return out[0]

    def _check(self, name: str, *arguments: Any) -> None:
        self._device.check(self._device.function(name)(*arguments), f"{name} (load)")


def _is_cpu(target: ReplayTarget) -> bool:
    """Whether the device is a software driver."""
    properties = target.ffi.new("VkPhysicalDeviceProperties *")
    target.lib.vkGetPhysicalDeviceProperties(target.physical, properties)
    names = target.ffi.typeof("VkPhysicalDeviceType").elements
    return bool(names.get(properties.deviceType) == "VK_PHYSICAL_DEVICE_TYPE_CPU")


_beside: dict[str, list[QueueLoad]] = {}
"""Loads on queues beside that of a replay, by target. They live as long as the process, as targets do."""


def _loads_beside(target: ReplayTarget) -> list[QueueLoad]:
    """A load for a queue of each family, on a VkDevice of their own. Raises `UserError` when the driver refuses."""
    if target.name not in _beside:
        _beside[target.name] = list(_new_loads(target))
    return _beside[target.name]


def _new_loads(target: ReplayTarget) -> Iterator[QueueLoad]:
    ffi, families = target.ffi, list(_families(target))
    priority = ffi.new("float[1]", [1.0])
    infos = ffi.new("VkDeviceQueueCreateInfo[]", len(families))
    for info, family in zip(infos, families, strict=True):
        info.sType, info.queueFamilyIndex = VkStructureType.DEVICE_QUEUE_CREATE_INFO, family
        info.queueCount, info.pQueuePriorities = 1, priority
    made = new_struct(ffi, "VkDeviceCreateInfo", queueCreateInfoCount=len(families), pQueueCreateInfos=infos)
    out = ffi.new("VkDevice *")
    result = target.lib.vkCreateDevice(target.physical, made, ffi.NULL, out)
    if result < 0:
        raise UserError(f"vkCreateDevice (load) failed on {target.name}: {target.result_name(result)}")
    device = ReplayDevice(target, out[0], ffi.NULL, families[0])
    for family in families:
        queue = ffi.new("VkQueue *")
        device.function("vkGetDeviceQueue")(out[0], family, 0, queue)
        yield QueueLoad(device, queue[0], family)


def _families(target: ReplayTarget) -> Iterator[int]:
    """Families whose queues take fills and copies."""
    ffi, found = target.ffi, target.ffi.new("uint32_t *")
    target.lib.vkGetPhysicalDeviceQueueFamilyProperties(target.physical, found, ffi.NULL)
    families = ffi.new("VkQueueFamilyProperties[]", found[0])
    target.lib.vkGetPhysicalDeviceQueueFamilyProperties(target.physical, found, families)
    for at in range(found[0]):
        if families[at].queueFlags & (VkQueueFlag.GRAPHICS | VkQueueFlag.COMPUTE | VkQueueFlag.TRANSFER):
            yield at
