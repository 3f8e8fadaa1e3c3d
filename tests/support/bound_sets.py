"""Descriptor sets that refer to two buffers, and dispatches with them: a stream, interpreted as it is written."""

from __future__ import annotations

from typing import Any

from tests.support.interpreted import InterpretedStream
from tests.support.streams import struct, words
from vkharness.trace.effects import EffectPlan, Recorded

STORAGE, DYNAMIC = 7, 9


class TwoBuffers:
    """A pipeline of `copy_words`, with sets that hold the buffer that is read and the one that is written."""

    def __init__(self, type: int = STORAGE, second: int | None = None) -> None:
        self.stream = InterpretedStream()
        used = self.stream.compute("copy_words", [self.stream.buffer(64), self.stream.buffer(64)])
        types = (type, type if second is None else second)
        bindings = [
            struct("VkDescriptorSetLayoutBinding", binding=at, descriptorType=each, descriptorCount=1, stageFlags=0x20)
            for at, each in enumerate(types)
        ]
        info = struct("VkDescriptorSetLayoutCreateInfo", pBindings=bindings)
        self._types = types
        self._layout, self._dispatch = self.stream.make("vkCreateDescriptorSetLayout", "pSetLayout", info), used
        self.pool = self.stream.make("vkCreateDescriptorPool", "pDescriptorPool", struct("VkDescriptorPoolCreateInfo"))
        self.pipeline, self.layout = used.pipeline, used.layout
        self.stream.begin()
        self.stream.cmd("BindPipeline", pipelineBindPoint=1, pipeline=used.pipeline)

    def made(self, *ranges: tuple[int, int, int]) -> int:
        """A fresh set with these (buffer, offset, range)."""
        id = self.stream.id()
        allocate = struct("VkDescriptorSetAllocateInfo", descriptorPool=self.pool, pSetLayouts=[self._layout])
        device = self.stream.device
        self.stream.call("vkAllocateDescriptorSets", device=device, pAllocateInfo=allocate, pDescriptorSets=[id])
        self.write(id, *ranges)
        return id

    def write(self, id: int, *ranges: tuple[int, int, int]) -> None:
        """Writes a set anew."""
        writes = [
            struct(
                "VkWriteDescriptorSet",
                dstSet=id,
                dstBinding=at,
                descriptorCount=1,
                descriptorType=self._types[at],
                pBufferInfo=[struct("VkDescriptorBufferInfo", buffer=buffer, offset=offset, range=size)],
            )
            for at, (buffer, offset, size) in enumerate(ranges)
        ]
        self.stream.call("vkUpdateDescriptorSets", device=self.stream.device, pDescriptorWrites=writes)

    def bind(self, id: int, *offsets: int) -> None:
        """Binds a set."""
        sets: dict[str, Any] = {"pDescriptorSets": [id], "pDynamicOffsets": list(offsets)}
        self.stream.cmd("BindDescriptorSets", pipelineBindPoint=1, layout=self.layout, **sets)

    def push(self, value: int) -> None:
        """Pushes a constant, which the shader does not use."""
        data, layout = words(value), self._dispatch.layout
        self.stream.cmd("PushConstants", layout=layout, stageFlags=0x20, offset=0, size=len(data), pValues=data)

    def run(self, id: int, *offsets: int, groups: int = 1) -> EffectPlan:
        """The plan of a dispatch with a set."""
        self.bind(id, *offsets)
        self.stream.did()
        self.stream.cmd("Dispatch", groupCountX=groups, groupCountY=1, groupCountZ=1)
        plans = [each.command.plan for each in self.stream.did() if isinstance(each, Recorded)]
        return plans[0] if plans else EffectPlan(())
