"""Random programs that set in command buffers, frame after frame, what pipelines say else: vertex input and what is
written of colour attachments; that push descriptors, and draw several ranges at once."""

from __future__ import annotations

from collections.abc import Sequence

from hunts.frame_programs import COMPUTE, DYNAMIC, WHOLE, Set
from hunts.shader_frames import IMAGE, ShaderFrames
from vkharness.fuzz.filled_calls import struct
from vkharness.spec.enums import VkDynamicState, VkFormat


class StateFrames(ShaderFrames):
    """The calls of one seed's program."""

    draws: tuple[int, ...] = (1, 2, 4)
    dynamic_states = (
        [],
        [VkDynamicState.VERTEX_INPUT_BINDING_STRIDE],
        [VkDynamicState.VERTEX_INPUT_EXT],
        [VkDynamicState.VERTEX_INPUT_EXT, VkDynamicState.VERTEX_INPUT_BINDING_STRIDE],
        [VkDynamicState.VERTEX_INPUT_EXT, VkDynamicState.COLOR_WRITE_MASK_EXT],
        [VkDynamicState.COLOR_BLEND_ENABLE_EXT, VkDynamicState.COLOR_WRITE_ENABLE_EXT],
    )

    def _begin(self) -> None:
        self._pushed_layouts: dict[tuple[int, ...], int] = {}
        super()._begin()

    def _draw(self) -> None:
        chosen = self._chosen
        what, parts = chosen.random(), range(chosen.choice((1, 1, 1, 2, 0)))
        same = {"drawCount": len(parts), "instanceCount": chosen.choice((1, 1, 2))}
        if what < 0.25:
            super()._draw()
        elif what < 0.6:
            several = [{"firstVertex": self._first(), "vertexCount": chosen.choice((3, 3, 6))} for _ in parts]
            self._command("DrawMultiEXT", **same, pVertexInfo=several, stride=8, firstInstance=chosen.choice((0, 0, 1)))
        else:
            numbers = {"indexCount": 3, "vertexOffset": chosen.choice((0, 0, 2, -1))}
            several = [{"firstIndex": self._first(), **numbers} for _ in parts]
            given = chosen.choice((None, None, 1, chosen.randrange(9)))
            self._command("DrawMultiIndexedEXT", **same, pIndexInfo=several, stride=12, pVertexOffset=given)

    def _first(self) -> int:
        return self._chosen.choice((0, 0, 4, self._chosen.randrange(40)))

    def _bind_vertices(self) -> None:
        """Or something else that is set between draws."""
        chosen = self._chosen
        what = chosen.random()
        if what < 0.5:
            super()._bind_vertices()
        elif what < 0.75:
            self._set_vertex_input()
        elif what < 0.85:
            masks = [chosen.choice((0, 0xF, 3))]
            self._command("SetColorWriteMaskEXT", firstAttachment=0, attachmentCount=1, pColorWriteMasks=masks)
        elif what < 0.92:
            self._command("SetColorWriteEnableEXT", attachmentCount=1, pColorWriteEnables=[chosen.randrange(2)])
        else:
            enables = [chosen.randrange(2)]
            self._command("SetColorBlendEnableEXT", firstAttachment=0, attachmentCount=1, pColorBlendEnables=enables)

    def _set_vertex_input(self) -> None:
        chosen = self._chosen
        read = chosen.choice(((0,), (1,), (0, 1)))
        bindings = [
            struct(
                "VkVertexInputBindingDescription2EXT",
                binding=each,
                stride=chosen.choice((8, 12, 0)),
                inputRate=chosen.randrange(2),
                divisor=chosen.choice((1, 1, 2)),
            )
            for each in read
        ]
        attributes = [
            struct("VkVertexInputAttributeDescription2EXT", location=at, binding=each, format=VkFormat.R32G32_SFLOAT)
            for at, each in enumerate(read)
        ]
        counts = dict.fromkeys(("vertexBindingDescriptionCount", "vertexAttributeDescriptionCount"), len(read))
        given = {"pVertexBindingDescriptions": bindings, "pVertexAttributeDescriptions": attributes}
        self._command("SetVertexInputEXT", **counts, **given)

    def _bind_sets(self, several: Sequence[Set], first: int, point: int = COMPUTE) -> None:
        """Or pushes what such a set may hold."""
        types, chosen = several[0][1], self._chosen
        if chosen.random() < 0.5 or IMAGE in types or DYNAMIC in types:
            super()._bind_sets(several, first, point)
            return
        writes = [
            struct("VkWriteDescriptorSet", dstBinding=at, descriptorCount=1, descriptorType=kind)
            | {"pBufferInfo": [self._part()]}
            for at, kind in enumerate(types)
        ]
        layout = self._pushed_layouts.get(types)
        if layout is None:
            held = next(each for kinds, each in self._layouts if kinds == types)
            layout = self._create("vkCreatePipelineLayout", "VkPipelineLayoutCreateInfo", pSetLayouts=[held])
            self._pushed_layouts[types] = layout
        place = {"pipelineBindPoint": point, "layout": layout, "set": 0}
        name = chosen.choice(("PushDescriptorSetKHR", "PushDescriptorSet"))
        self._command(name, **place, descriptorWriteCount=len(writes), pDescriptorWrites=writes)

    def _part(self) -> dict[str, object]:
        chosen = self._chosen
        place = {"offset": chosen.choice((0, 0, 64)), "range": chosen.choice((64, WHOLE))}
        return struct("VkDescriptorBufferInfo", buffer=chosen.choice(self._buffers), **place)
