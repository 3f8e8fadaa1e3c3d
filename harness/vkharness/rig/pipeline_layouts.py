"""Pipeline layouts by reflection: sets, bindings and push constants are what the shaders of a pipeline say.

A shader names the set, the binding and the kind of each resource. So nobody writes them down a second time. What a
shader cannot say is given beside it: a type with a dynamic offset, a binding that no stage uses, and more bytes of push
constants than the block has.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_

from vkharness.rig.core import RigDevice, RigPipelineLayout, RigSetLayout
from vkharness.shader.reflect import ReflectedEntryPoint, ResourceUse
from vkharness.shader.variables import ACCELERATION_STRUCTURE, COMBINED
from vkharness.spec.names import enum_value

DESCRIBED = 16
"""VK_DESCRIPTOR_SET_LAYOUT_CREATE_DESCRIPTOR_BUFFER_BIT_EXT."""
Bindings = dict[int, list[int]]
"""[VkDescriptorType, count, VkShaderStageFlags] by binding."""


class PipelineLayouts(RigDevice):
    """Pipeline layouts of one device."""

    def pipeline_layout(
        self,
        stages: Mapping[int, ReflectedEntryPoint],
        given: Mapping[int, str] | None = None,
        push_bytes: int = 0,
        *,
        push: bool = False,
        described: bool = False,
    ) -> RigPipelineLayout:
        """The layout of a pipeline of reflected shaders, by VkShaderStageFlagBits.

        Each binding is seen by the stages that use it. `given` are descriptor types of set 0, named without
        VK_DESCRIPTOR_TYPE_; they replace those of the shaders, and all stages see a binding that none uses. A runtime
        array of descriptors has one. `push_bytes` are the least bytes of push constants; `push` makes set 0 a push
        descriptor set; sets that are `described` lie in descriptor buffers.
        """
        vk, everything = self.vk, reduce(or_, stages)
        sets = reflected_sets(stages)
        for at, kind in (given or {}).items():
            value = descriptor_type(kind)
            sets.setdefault(0, {}).setdefault(at, [value, 1, everything])[0] = value
        numbers = range(max(sets, default=0) + 1)
        layouts = tuple(
            self._set_layout(sets.get(number, {}), DESCRIBED * described | (push and number == 0)) for number in numbers
        )
        size = max([push_bytes, *(each.push_bytes for each in stages.values())])
        sees = reduce(or_, (stage for stage, each in stages.items() if each.push_constants), 0) or everything
        pushed = [vk.VkPushConstantRange(stageFlags=sees, offset=0, size=size)] if size else []
        info = vk.VkPipelineLayoutCreateInfo(
            setLayoutCount=len(layouts),
            pSetLayouts=[each.handle for each in layouts],
            pushConstantRangeCount=len(pushed),
            pPushConstantRanges=pushed,
        )
        handle = self.own("PipelineLayout", vk.vkCreatePipelineLayout(self.device, info, None))
        return RigPipelineLayout(handle, layouts, sees if size else 0, pushed)

    def _set_layout(self, bindings: Bindings, flags: int) -> RigSetLayout:
        vk = self.vk
        slots = [
            vk.VkDescriptorSetLayoutBinding(binding=at, descriptorType=kind, descriptorCount=count, stageFlags=stages)
            for at, (kind, count, stages) in sorted(bindings.items())
        ]
        info = vk.VkDescriptorSetLayoutCreateInfo(flags=flags, bindingCount=len(slots), pBindings=slots)
        handle = self.own("DescriptorSetLayout", vk.vkCreateDescriptorSetLayout(self.device, info, None))
        return RigSetLayout(handle, {at: (kind, count) for at, (kind, count, _) in bindings.items()})


def reflected_sets(stages: Mapping[int, ReflectedEntryPoint]) -> dict[int, Bindings]:
    """The bindings that shaders statically use, by set."""
    sets: dict[int, Bindings] = {}
    for stage, shader in stages.items():
        for use in shader.uses:
            bindings = sets.setdefault(use.set, {})
            known = bindings.setdefault(use.binding, [_type_of(use), use.array_size or 1, 0])
            known[2] |= stage
    return sets


def descriptor_type(name: str) -> int:
    """A VkDescriptorType, named without VK_DESCRIPTOR_TYPE_."""
    return enum_value("VkDescriptorType", f"VK_DESCRIPTOR_TYPE_{name}")


def _type_of(use: ResourceUse) -> int:
    names = {COMBINED: "COMBINED_IMAGE_SAMPLER", ACCELERATION_STRUCTURE: "ACCELERATION_STRUCTURE_KHR"}
    return descriptor_type(names.get(use.kind, use.kind.upper()))
