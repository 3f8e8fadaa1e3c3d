"""Random programs that record nearly the same in each frame: what is known of commands that were said before.

Each frame records a few command buffers again, with small changes: other offsets, descriptor sets that are fresh,
written anew or freed, objects that go and whose handles others get, buffers that share memory, secondary command
buffers. Nobody checks that a program is valid. It runs on a driver that does nothing (`front_programs`).
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hunts.front_programs import FIRST
from vkharness.fuzz.filled_calls import arguments, struct
from vkharness.shader.library import load
from vkharness.spec.enums import VkAccess2, VkDescriptorType, VkPipelineBindPoint, VkPipelineStage2, VkShaderStage
from vkharness.spec.shapes import signature

WHOLE = 0xFFFFFFFFFFFFFFFF
FAR = (WHOLE, 1 << 63, 1 << 61, (1 << 61) - 1, 1 << 40, 0)
"""Sizes and offsets that lie in no buffer."""
READ_WRITE = VkAccess2.MEMORY_READ | VkAccess2.MEMORY_WRITE
STORAGE, DYNAMIC = VkDescriptorType.STORAGE_BUFFER, VkDescriptorType.STORAGE_BUFFER_DYNAMIC
LAYOUTS = ((STORAGE, STORAGE), (DYNAMIC, STORAGE), (DYNAMIC, DYNAMIC), (STORAGE, STORAGE))
"""Types of the descriptors of sets. Those of the last one may be written after they are bound."""
COMPUTE = VkPipelineBindPoint.COMPUTE
Set = tuple[int, tuple[int, ...]]
"""An id, and the types of its descriptors."""


class FrameObjects:
    """The objects of one seed's program, and what happens to them between commands."""

    buffer_size = 1024
    """Bytes of a buffer."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.calls: list[dict[str, Any]] = []
        self.objects: dict[int, tuple[str, int]] = {}
        """By id, the type of a handle, and the raw handle."""
        self._free: defaultdict[str, list[int]] = defaultdict(list)
        self._reuses = self._random.random() < 0.7
        self._commands = 0
        """The command buffer that is recorded."""
        self._begin()

    def _begin(self) -> None:
        """Makes the objects."""
        self._device = self._made("vkCreateDevice", physicalDevice=0, pCreateInfo=struct("VkDeviceCreateInfo"))
        self._queue = self._made("vkGetDeviceQueue", device=self._device)
        self._pool = self._create("vkCreateCommandPool", "VkCommandPoolCreateInfo", flags=2)
        self._memories = [self._memory(4 * self.buffer_size) for _ in range(2)]
        self._buffers = [self._buffer() for _ in range(self._random.randrange(2, 6))]
        self._modules = [self._module("copy_words")]
        self._make_layouts()
        pushed = [struct("VkPushConstantRange", stageFlags=VkShaderStage.COMPUTE, size=8)]
        layouts = {"pSetLayouts": [self._layouts[0][1]] * 2, "pPushConstantRanges": pushed}
        self._layout = self._create("vkCreatePipelineLayout", "VkPipelineLayoutCreateInfo", **layouts)
        self._pipelines = [self._pipeline() for _ in range(2)]
        self._set_pool = self._create("vkCreateDescriptorPool", "VkDescriptorPoolCreateInfo", flags=3)
        self._sets: list[Set] = []
        self._sets = [self._set() for _ in range(self._random.randrange(1, 5))]
        self._primaries = [self._command_buffer(0) for _ in range(self._random.randrange(1, 4))]
        self._secondaries = [self._command_buffer(1) for _ in range(2)]

    def _make_layouts(self) -> None:
        self._layouts: list[tuple[tuple[int, ...], int]] = []
        for types in LAYOUTS:
            self._layouts.append((types, self._set_layout(types, types is LAYOUTS[-1])))

    # -- objects

    def _call(self, name: str, **values: Any) -> None:
        self.calls.append({"name": name, "args": arguments(name, **values)})

    def _made(self, name: str, several: bool = False, **values: Any) -> int:
        """Makes an object; its id."""
        shape = signature(name)
        assert shape is not None
        made, kind = len(self.objects) + 1, shape.params[-1].type
        free = self._free[kind]
        raw = free.pop() if free and self._reuses else FIRST + 16 * made
        self.objects[made] = kind, raw
        self._call(name, **values, **{shape.params[-1].name: [made] if several else made})
        return made

    def _create(self, name: str, info: str, **members: Any) -> int:
        return self._made(name, device=self._device, pCreateInfo=struct(info, **members))

    def _gone(self, name: str, id: int, **values: Any) -> None:
        kind, raw = self.objects[id]
        self._call(name, device=self._device, **values)
        self._free[kind].append(raw)

    def _memory(self, size: int) -> int:
        info = struct("VkMemoryAllocateInfo", allocationSize=size)
        return self._made("vkAllocateMemory", device=self._device, pAllocateInfo=info)

    def _buffer(self) -> int:
        """Some share memory."""
        made = self._create("vkCreateBuffer", "VkBufferCreateInfo", size=self.buffer_size, usage=0x1FF)
        if self._random.random() < 0.5:
            self._call("vkBindBufferMemory", device=self._device, buffer=made, memory=self._memory(self.buffer_size))
        else:
            self._rebind(made)
        return made

    def _rebind(self, buffer: int) -> None:
        place = {
            "memory": self._random.choice(self._memories),
            "memoryOffset": self._random.choice((0, 256, 512, 1024)),
        }
        self._call("vkBindBufferMemory", device=self._device, buffer=buffer, **place)

    def _module(self, shader: str) -> int:
        code = load(shader)
        return self._create("vkCreateShaderModule", "VkShaderModuleCreateInfo", codeSize=len(code), pCode=code)

    def _set_layout(self, types: tuple[int, ...], late: bool) -> int:
        each = {"descriptorCount": 1, "stageFlags": VkShaderStage.ALL}
        binding = partial(struct, "VkDescriptorSetLayoutBinding", **each)
        bindings = [binding(binding=at, descriptorType=kind) for at, kind in enumerate(types)]
        flags = struct("VkDescriptorSetLayoutBindingFlagsCreateInfo", pBindingFlags=[1] * len(types)) if late else None
        members = {"flags": 2 * late, "pNext": flags, "pBindings": bindings}
        return self._create("vkCreateDescriptorSetLayout", "VkDescriptorSetLayoutCreateInfo", **members)

    def _pipeline(self) -> int:
        module = self._random.choice(self._modules)
        stage = struct("VkPipelineShaderStageCreateInfo", stage=VkShaderStage.COMPUTE, module=module, pName="main")
        info = struct("VkComputePipelineCreateInfo", stage=stage, layout=self._layout)
        return self._made("vkCreateComputePipelines", several=True, device=self._device, pCreateInfos=[info])

    def _set(self) -> Set:
        types, layout = self._some_layout()
        info = struct("VkDescriptorSetAllocateInfo", descriptorPool=self._set_pool, pSetLayouts=[layout])
        made = self._made("vkAllocateDescriptorSets", several=True, device=self._device, pAllocateInfo=info), types
        if self._random.random() < 0.95:
            self._write(made)
        return made

    def _some_layout(self) -> tuple[tuple[int, ...], int]:
        return self._random.choice(self._layouts[: self._random.choice((2, 2, len(self._layouts)))])

    def _write(self, held: Set) -> None:
        """Writes most descriptors of a set, or copies one of another set."""
        chosen, writes, copies = self._random, [], []
        for at, kind in enumerate(held[1]):
            place = {"dstSet": held[0], "dstBinding": at, "descriptorCount": 1, "descriptorType": kind}
            described = self._described(kind)
            if chosen.random() < 0.9:
                writes.append(struct("VkWriteDescriptorSet", **place, **described))
        if self._sets and chosen.random() < 0.1:
            source, target = chosen.choice(self._sets)[0], held[0]
            copies = [struct("VkCopyDescriptorSet", srcSet=source, dstSet=target, descriptorCount=1)]
        self._call("vkUpdateDescriptorSets", device=self._device, pDescriptorWrites=writes, pDescriptorCopies=copies)

    def _described(self, kind: int) -> dict[str, Any]:
        """Returns the members of a write for a descriptor of this type."""
        chosen = self._random
        members = {"offset": self._described_from(), "range": chosen.choice((256, 256, 64, WHOLE))}
        return {"pBufferInfo": [struct("VkDescriptorBufferInfo", buffer=chosen.choice(self._buffers), **members)]}

    def _described_from(self) -> int:
        """Where the memory of a descriptor begins in its buffer."""
        return self._random.choice((0, 0, 256))

    def _command_buffer(self, level: int) -> int:
        info = struct("VkCommandBufferAllocateInfo", commandPool=self._pool, commandBufferCount=1, level=level)
        return self._made("vkAllocateCommandBuffers", several=True, device=self._device, pAllocateInfo=info)

    # -- what happens to objects between commands

    def _disturb(self) -> None:
        chosen = self._random
        what = chosen.randrange(9)
        if what < 3:
            self._write(chosen.choice(self._sets))
        elif what == 3:
            gone = self._sets.pop(chosen.randrange(len(self._sets)))
            place = {"descriptorPool": self._set_pool, "descriptorSetCount": 1, "pDescriptorSets": [gone[0]]}
            self._gone("vkFreeDescriptorSets", gone[0], **place)
            self._sets.append(self._set() if chosen.random() < 0.9 else gone)
        elif what == 4:
            buffer = self._buffers.pop(chosen.randrange(len(self._buffers)))
            self._gone("vkDestroyBuffer", buffer, buffer=buffer)
            self._buffers.append(self._buffer())
        elif what == 5:
            self._rebind(chosen.choice(self._buffers))
        elif what == 6:
            pipeline = self._pipelines.pop(0)
            self._gone("vkDestroyPipeline", pipeline, pipeline=pipeline)
            self._pipelines.append(self._pipeline())
        elif what == 7:
            at = chosen.randrange(len(self._primaries))
            if (freed := self._primaries[at]) != self._commands:
                self._gone("vkFreeCommandBuffers", freed, commandPool=self._pool, pCommandBuffers=[freed])
                self._primaries[at] = self._command_buffer(0)
        else:
            several = self._primaries + self._secondaries
            self._call("vkResetCommandBuffer", commandBuffer=chosen.choice(several))


class FrameStream(FrameObjects):
    """The calls of one seed's program."""

    sizes: tuple[int, ...] = (4, 16, 64, 128, 256, FrameObjects.buffer_size)
    """Of what commands access."""
    lengths = range(4, 15)
    """Commands of a command buffer."""
    frame_counts: tuple[int, ...] = (4, 8, 16)
    changes: tuple[float, ...] = (0, 0.02, 0.05, 0.2)
    freshness: tuple[float, ...] = (0, 0, 0.3, 1)

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._chosen = self._random
        """The random numbers by which the values of a command are chosen."""
        self._changes = self._random.choice(self.changes)
        """How often a command is left out, or an object changes behind it."""
        self._fresh = self._random.choice(self.freshness)
        """How often a command says other values than in the frame before."""
        self._far = self._random.choice((0, 0, 0.02))
        self._operations: list[Callable[[], None]] = [
            self._bind, self._bind, self._bind_two, self._push, self._dispatch, self._dispatch, self._indirect,
            self._copy, self._copy, self._copy2, self._fill, self._update, self._barrier, self._barrier,
            self._buffer_barrier, self._bind_pipeline, self._execute,
        ]  # fmt: skip
        self._operations += self._random.choice(([], [self._copy, self._fill] * 4, [self._bind, self._dispatch] * 5))
        self._operations += self._more()
        self._frames()

    def _more(self) -> list[Callable[[], None]]:
        """Further commands."""
        return []

    # -- commands, with values that are mostly those of the frame before

    def _command(self, name: str, **values: Any) -> None:
        self._call(f"vkCmd{name}", commandBuffer=self._commands, **values)

    def _offset(self) -> int:
        return self._chosen.choice(FAR) if self._chosen.random() < self._far else self._near()

    def _near(self) -> int:
        """An offset that lies in a buffer, or at its end."""
        return self._chosen.choice((0, 0, 16, 64, 256, 512, 1000, self.buffer_size))

    def _size(self) -> int:
        return self._chosen.choice(FAR) if self._chosen.random() < self._far else self._chosen.choice(self.sizes)

    def _some_buffer(self) -> int:
        return self._chosen.choice(self._buffers)

    def _bind(self) -> None:
        if self._fresh and self._chosen.random() < 0.3:
            self._sets = [*self._sets[-4:], self._set()]
            held = self._sets[-1]
        else:
            held = self._chosen.choice(self._sets)
        self._bind_sets([held], 0 if self._chosen.random() < 0.95 else 1)

    def _bind_two(self) -> None:
        self._bind_sets([self._chosen.choice(self._sets) for _ in range(2)], 0)

    def _bind_sets(self, several: Sequence[Set], first: int, point: int = COMPUTE) -> None:
        dynamic = sum(kind == DYNAMIC for _, types in several for kind in types)
        dynamic = dynamic if self._random.random() > 0.02 else self._random.randrange(4)
        offsets = [self._dynamic_offset() for _ in range(dynamic)]
        sets = {"firstSet": first, "pDescriptorSets": [id for id, _ in several], "pDynamicOffsets": offsets}
        self._command("BindDescriptorSets", pipelineBindPoint=point, layout=self._layout, **sets)

    def _dynamic_offset(self) -> int:
        return self._chosen.choice((0, 256))

    def _bind_pipeline(self) -> None:
        self._command("BindPipeline", pipelineBindPoint=COMPUTE, pipeline=self._chosen.choice(self._pipelines))

    def _push(self) -> None:
        data = self._words(self._chosen.choice((1, 2)))
        place = {"offset": self._chosen.choice((0, 4)) if len(data) == 4 else 0, "size": len(data)}
        self._command("PushConstants", layout=self._layout, stageFlags=VkShaderStage.COMPUTE, pValues=data, **place)

    def _words(self, count: int) -> bytes:
        return b"".join(self._chosen.randrange(3).to_bytes(4, "little") for _ in range(count))

    def _dispatch(self) -> None:
        self._command("Dispatch", groupCountX=self._chosen.choice((1, 1, 2, 0)), groupCountY=1, groupCountZ=1)

    def _indirect(self) -> None:
        self._command("DispatchIndirect", buffer=self._some_buffer(), offset=self._offset())

    def _regions(self, kind: str) -> list[dict[str, Any]]:
        return [
            struct(kind, srcOffset=self._offset(), dstOffset=self._offset(), size=self._size())
            for _ in range(self._chosen.choice((1, 1, 1, 0, 2, 4)))
        ]

    def _copy(self) -> None:
        between = {"srcBuffer": self._some_buffer(), "dstBuffer": self._some_buffer()}
        self._command("CopyBuffer", **between, pRegions=self._regions("VkBufferCopy"))

    def _copy2(self) -> None:
        between = {"srcBuffer": self._some_buffer(), "dstBuffer": self._some_buffer()}
        info = struct("VkCopyBufferInfo2", **between, pRegions=self._regions("VkBufferCopy2"))
        self._command("CopyBuffer2", pCopyBufferInfo=info)

    def _fill(self) -> None:
        size = self._chosen.choice((self._size(), WHOLE))
        place = {"dstBuffer": self._some_buffer(), "dstOffset": self._offset(), "size": size}
        self._command("FillBuffer", **place, data=self._chosen.randrange(3))

    def _update(self) -> None:
        data = self._words(self._chosen.choice((1, 4, 16)))
        place = {"dstBuffer": self._some_buffer(), "dstOffset": self._offset()}
        self._command("UpdateBuffer", **place, dataSize=len(data), pData=data)

    def _barrier(self) -> None:
        stages = [VkPipelineStage2.ALL_COMMANDS, VkPipelineStage2.ALL_TRANSFER, VkPipelineStage2.COMPUTE_SHADER]
        scope = {"srcStageMask": self._chosen.choice(stages), "dstStageMask": self._chosen.choice(stages)}
        access = {f"{side}AccessMask": self._chosen.choice((READ_WRITE, 0x1000, 0x860, 0)) for side in ("src", "dst")}
        self._command("PipelineBarrier", **scope, pMemoryBarriers=[struct("VkMemoryBarrier", **access)])

    def _buffer_barrier(self) -> None:
        stages = dict.fromkeys(("srcStageMask", "dstStageMask"), VkPipelineStage2.ALL_COMMANDS)
        scope = dict.fromkeys(("srcAccessMask", "dstAccessMask"), READ_WRITE)
        scope |= dict.fromkeys(("srcQueueFamilyIndex", "dstQueueFamilyIndex"), 0xFFFFFFFF)
        several = [
            struct("VkBufferMemoryBarrier", **scope, buffer=self._some_buffer(), offset=self._offset(), size=size)
            for size in self._chosen.choices((self._size(), WHOLE), k=self._chosen.choice((1, 2)))
        ]
        self._command("PipelineBarrier", **stages, pBufferMemoryBarriers=several)

    def _execute(self) -> None:
        if self._commands in self._primaries:
            several = [self._chosen.choice(self._secondaries) for _ in range(self._chosen.choice((1, 1, 2)))]
            self._command("ExecuteCommands", pCommandBuffers=several)

    # -- frames

    def _frames(self) -> None:
        chosen = self._random
        templates = [self._template(chosen.choice(self.lengths)) for _ in self._primaries]
        inner = [self._template(chosen.randrange(1, 6)) for _ in self._secondaries]
        for frame in range(chosen.choice(self.frame_counts)):
            for at, secondary in enumerate(self._secondaries):
                if not frame or chosen.random() < 0.3:
                    self._record(secondary, inner[at])
            for at, primary in enumerate(list(self._primaries)):
                if not frame or chosen.random() < 0.9:
                    self._record(primary, [(self._bind_pipeline, 0), *templates[at]])
                if chosen.random() < self._changes:
                    templates[at][chosen.randrange(len(templates[at]))] = self._template(1)[0]
            self._submit()

    def _template(self, count: int) -> list[tuple[Callable[[], None], float]]:
        """Commands, each with the seed of what it says."""
        return [(self._random.choice(self._operations), self._random.random()) for _ in range(count)]

    def _record(self, commands: int, template: Sequence[tuple[Callable[[], None], float]]) -> None:
        chosen, self._commands = self._random, commands
        inherited = struct("VkCommandBufferInheritanceInfo") if commands in self._secondaries else None
        info = struct("VkCommandBufferBeginInfo", flags=chosen.choice((0, 0, 4)), pInheritanceInfo=inherited)
        self._call("vkBeginCommandBuffer", commandBuffer=commands, pBeginInfo=info)
        for operation, seed in template:
            self._chosen = chosen if chosen.random() < self._fresh else random.Random(seed)
            if chosen.random() > self._changes / 2:
                operation()
            if chosen.random() < self._changes / 3:
                self._disturb()
        self._chosen = chosen
        if chosen.random() > 0.01:
            self._call("vkEndCommandBuffer", commandBuffer=commands)

    def _submit(self) -> None:
        for _ in range(self._random.choice((1,) * 19 + (2,))):
            info = struct("VkSubmitInfo", pCommandBuffers=self._random.sample(self._primaries, len(self._primaries)))
            self._call("vkQueueSubmit", queue=self._queue, pSubmits=[info])
        if self._random.random() < 0.4:
            self._call("vkQueueWaitIdle", queue=self._queue)
