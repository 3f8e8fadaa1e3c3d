"""Random programs that record nearly the same in each frame, of more kinds of objects than those of `frame_programs`.

Shaders of all kinds of buffers, arrays and storage images, over sets that often do not fit them; draws; images that are
moved between layouts, copied and cleared, and that go with their views, so that others get their handles; sets that
are written by templates.
"""

from __future__ import annotations

import struct as packing
from collections.abc import Callable
from typing import Any

from hunts.frame_programs import DYNAMIC, READ_WRITE, STORAGE, WHOLE, FrameStream, Set
from vkharness.fuzz.filled_calls import struct
from vkharness.spec.enums import (
    VkDescriptorType,
    VkDynamicState,
    VkFormat,
    VkImageLayout,
    VkPipelineBindPoint,
    VkPipelineStage2,
    VkShaderStage,
)

UNIFORM, IMAGE = VkDescriptorType.UNIFORM_BUFFER, VkDescriptorType.STORAGE_IMAGE
MORE_LAYOUTS = ((STORAGE,) * 3, (UNIFORM, STORAGE), (IMAGE, IMAGE), (IMAGE, STORAGE), (DYNAMIC, STORAGE, DYNAMIC))
SHADERS = {
    "add_words": (STORAGE,) * 3, "array_constant_copy": (STORAGE, STORAGE), "array_dynamic_index": (STORAGE, STORAGE),
    "atomic_add": (DYNAMIC, STORAGE), "branch_on_a_word": (STORAGE, STORAGE), "copy_two_sets": (STORAGE, STORAGE),
    "copy_words": (DYNAMIC, DYNAMIC), "count_and_store": (STORAGE, STORAGE), "half_range_copy": (DYNAMIC, STORAGE),
    "image_copy_2d": (IMAGE, IMAGE), "image_invert_2d": (IMAGE, STORAGE), "image_load_2d": (IMAGE, STORAGE),
    "length_only": (STORAGE, STORAGE), "sum_uniform": (UNIFORM, STORAGE),
}  # fmt: skip
"""With the types of descriptors that most sets have where such a shader is used."""
DRAWING = (
    ("fullscreen", "uniform_color"), ("vertex_position", "stored_word_color"), ("fullscreen", "store_words.frag"),
    ("point_by_stored_word.vert", "uniform_word_color"), ("vertex_position", "constant_color"),
    ("vertex_position", "store_words.frag"), ("vertex_position", "store_texels.frag"),
)  # fmt: skip
"""Vertex and fragment shaders of graphics pipelines."""
EDGE = 4
"""Texels of an image, in each direction."""
LAYOUTS_OF_IMAGES = (
    VkImageLayout.UNDEFINED, VkImageLayout.GENERAL, VkImageLayout.TRANSFER_SRC_OPTIMAL,
    VkImageLayout.TRANSFER_DST_OPTIMAL,
)  # fmt: skip
RGBA8 = VkFormat.R8G8B8A8_UNORM
GRAPHICS = VkPipelineBindPoint.GRAPHICS
LAYERS = 2


class ShaderFrames(FrameStream):
    """The calls of one seed's program."""

    draws: tuple[int, ...] = (1, 1, 2, 3)
    """Of a render pass instance."""
    dynamic_states: tuple[list[int], ...] = ([], [], [VkDynamicState.VERTEX_INPUT_BINDING_STRIDE])
    """Of pipelines."""
    _images: list[tuple[int, int]]
    """Each with its view."""

    def _begin(self) -> None:
        self._templates: dict[tuple[int, ...], int] = {}
        super()._begin()

        self._graphics = [self._graphics_pipeline() for _ in range(2)]

    # -- objects

    def _make_layouts(self) -> None:
        super()._make_layouts()
        self._layouts += [(types, self._set_layout(types, False)) for types in MORE_LAYOUTS]
        self._images = [self._image() for _ in range(2)]
        self._shaders = self._random.sample(list(SHADERS), 3)
        self._modules = [self._module(name) for name in self._shaders]

    def _image(self) -> tuple[int, int]:
        """An image and a view of it."""
        extent = {"width": EDGE, "height": EDGE, "depth": 1}
        size = {"extent": extent, "mipLevels": 1, "arrayLayers": LAYERS, "samples": 1}
        image = self._create("vkCreateImage", "VkImageCreateInfo", imageType=1, format=RGBA8, usage=0x1F, **size)
        memory = self._image_memory()
        self._call("vkBindImageMemory", device=self._device, image=image, memory=memory)
        return image, self._view(image)

    def _image_memory(self) -> int:
        """Where buffers may lie, too."""
        return self._random.choice((*self._memories, self._memory(4096)))

    def _view(self, image: int) -> int:
        layer = self._random.randrange(LAYERS)
        members = {"image": image, "viewType": 1, "format": RGBA8, "subresourceRange": self._subresources(layer, 1)}
        return self._create("vkCreateImageView", "VkImageViewCreateInfo", **members)

    @staticmethod
    def _subresources(layer: int, count: int) -> dict[str, Any]:
        members = {"aspectMask": 1, "levelCount": 1, "baseArrayLayer": layer, "layerCount": count}
        return struct("VkImageSubresourceRange", **members)

    def _some_layout(self) -> tuple[tuple[int, ...], int]:
        wanted = SHADERS[self._random.choice(self._shaders)]
        fit = [each for each in self._layouts if each[0] == wanted]
        return fit[0] if self._random.random() < 0.8 else super()._some_layout()

    def _graphics_pipeline(self) -> int:
        stages = [
            struct("VkPipelineShaderStageCreateInfo", stage=stage, module=self._module(shader), pName="main")
            for stage, shader in zip(
                (VkShaderStage.VERTEX, VkShaderStage.FRAGMENT), self._random.choice(DRAWING), strict=True
            )
        ]
        read = self._random.choice(((0,), (0,), (1,), (0, 1), (1, 0)))
        blended = struct(
            "VkPipelineColorBlendAttachmentState", colorWriteMask=0xF, blendEnable=self._random.randrange(2)
        )
        states = {
            "pVertexInputState": struct(
                "VkPipelineVertexInputStateCreateInfo",
                pVertexBindingDescriptions=[
                    {
                        "binding": each,
                        "stride": self._random.choice((8, 8, 12, 0)),
                        "inputRate": self._random.randrange(2),
                    }
                    for each in read
                ],
                pVertexAttributeDescriptions=[
                    {"location": at, "binding": each, "format": VkFormat.R32G32_SFLOAT, "offset": 0}
                    for at, each in enumerate(read)
                ],
            ),
            "pInputAssemblyState": struct("VkPipelineInputAssemblyStateCreateInfo", topology=3),
            "pRasterizationState": struct("VkPipelineRasterizationStateCreateInfo"),
            "pColorBlendState": struct("VkPipelineColorBlendStateCreateInfo", pAttachments=[blended]),
            "pDynamicState": struct(
                "VkPipelineDynamicStateCreateInfo", pDynamicStates=self._random.choice(self.dynamic_states)
            ),
        }
        formats = struct("VkPipelineRenderingCreateInfo", pColorAttachmentFormats=[RGBA8])
        info = struct("VkGraphicsPipelineCreateInfo", pNext=formats, pStages=stages, layout=self._layout, **states)
        return self._made("vkCreateGraphicsPipelines", several=True, device=self._device, pCreateInfos=[info])

    def _write(self, held: Set) -> None:
        if self._random.random() < 0.15 and IMAGE not in held[1]:
            self._write_by_template(held)
        else:
            super()._write(held)

    def _described(self, kind: int) -> dict[str, Any]:
        if kind != IMAGE:
            return super()._described(kind)
        view = self._random.choice(self._images)[1]
        info = struct("VkDescriptorImageInfo", imageView=view, imageLayout=self._random.choice((1, 1, 1, 6)))
        return {"pImageInfo": [info]}

    def _write_by_template(self, held: Set) -> None:
        template = self._templates.get(held[1])
        if template is None:
            layout = next(each for types, each in self._layouts if types == held[1])
            entries = [
                struct("VkDescriptorUpdateTemplateEntry", dstBinding=at, descriptorCount=1, descriptorType=kind)
                | {"offset": 24 * at, "stride": 24}
                for at, kind in enumerate(held[1])
            ]
            members = {"descriptorSetLayout": layout, "pDescriptorUpdateEntries": entries}
            template = self._create(
                "vkCreateDescriptorUpdateTemplate", "VkDescriptorUpdateTemplateCreateInfo", **members
            )
            self._templates[held[1]] = template
        data = b"".join(
            packing.pack(
                "<3Q", self.objects[self._random.choice(self._buffers)][1], 0, self._random.choice((64, WHOLE))
            )
            for _ in held[1]
        )
        written = {"descriptorSet": held[0], "descriptorUpdateTemplate": template, "pData": data}
        self._call("vkUpdateDescriptorSetWithTemplate", device=self._device, **written)

    def _disturb(self) -> None:
        what = self._random.randrange(6)
        if what == 0:
            at = self._random.randrange(len(self._images))
            image, view = self._images[at]
            self._gone("vkDestroyImageView", view, imageView=view)
            self._images[at] = image, self._view(image)
        elif what == 1:
            image, view = self._images.pop(0)
            if self._random.random() < 0.8:
                self._gone("vkDestroyImageView", view, imageView=view)
            self._gone("vkDestroyImage", image, image=image)
            self._images.append(self._image())
        else:
            super()._disturb()

    # -- commands

    def _more(self) -> list[Callable[[], None]]:
        mine = [
            self._image_barrier,
            self._image_barrier,
            self._image_barrier,
            self._upload,
            self._copy_image,
            self._clear,
        ]
        return mine * self._random.choice((0, 1, 3)) + [self._render] * self._random.choice((0, 1, 5))

    def _image_barrier(self) -> None:
        stages = dict.fromkeys(("srcStageMask", "dstStageMask"), VkPipelineStage2.ALL_COMMANDS)
        several = [self._transition() for _ in range(self._chosen.choice((1, 1, 2, 3)))]
        self._command("PipelineBarrier", **stages, pImageMemoryBarriers=several)

    def _transition(self) -> dict[str, Any]:
        chosen = self._chosen
        old, new = chosen.choice(LAYOUTS_OF_IMAGES), chosen.choice(LAYOUTS_OF_IMAGES[1:])
        layer = chosen.randrange(LAYERS)
        place = self._subresources(layer, chosen.choice((1, LAYERS - layer, 0xFFFFFFFF)))
        scope = {"srcAccessMask": chosen.choice((READ_WRITE, 0)), "dstAccessMask": chosen.choice((READ_WRITE, 0x800))}
        scope |= dict.fromkeys(("srcQueueFamilyIndex", "dstQueueFamilyIndex"), 0xFFFFFFFF)
        image = chosen.choice(self._images)[0]
        moved = {"image": image, "oldLayout": old, "newLayout": new, "subresourceRange": place}
        return struct("VkImageMemoryBarrier", **scope, **moved)

    def _render(self) -> None:
        """A render pass instance with a few draws, often behind an update of what may be indices."""
        if self._chosen.random() < 0.4:
            self._update()
        extent = {"extent": {"width": EDGE, "height": self._chosen.choice((EDGE, 2))}}
        attached = {
            "imageView": self._chosen.choice(self._images)[1],
            "imageLayout": 1,
            "loadOp": self._chosen.randrange(3),
        }
        colors = [struct("VkRenderingAttachmentInfo", **attached)]
        area = struct("VkRect2D", **extent)
        info = struct("VkRenderingInfo", renderArea=area, layerCount=1, pColorAttachments=colors)
        self._command("BeginRendering", pRenderingInfo=info)
        self._command("BindPipeline", pipelineBindPoint=GRAPHICS, pipeline=self._chosen.choice(self._graphics))
        for _ in range(self._chosen.choice(self.draws)):
            binds = (self._bind_drawn, self._bind_vertices, self._bind_vertices, self._bind_indices, self._push)
            self._chosen.choice(binds)()
            self._draw()
        self._command("EndRendering")

    def _draw(self) -> None:
        first, count = self._chosen.choice((0, 0, 4)), {"instanceCount": self._chosen.choice((1, 1, 2))}
        what = self._chosen.random()
        if what < 0.4:
            self._command("Draw", vertexCount=3, firstVertex=first, **count)
        elif what < 0.7:
            self._command("DrawIndexed", indexCount=3, firstIndex=first, **count)
        else:
            self._draw_indirect()

    def _draw_indirect(self) -> None:
        """Programs update and fill buffers with small numbers: often those of draws that draw nothing."""
        chosen = self._chosen
        place = {"buffer": self._some_buffer(), "offset": chosen.choice((0, 0, 16, 256)), "stride": 20}
        indexed, count = chosen.choice(("", "Indexed")), chosen.choice((1, 1, 2, 0))
        if chosen.random() < 0.7:
            self._command(f"Draw{indexed}Indirect", **place, drawCount=count)
        else:
            counter = {"countBuffer": self._some_buffer(), "countBufferOffset": chosen.choice((0, 16))}
            self._command(f"Draw{indexed}IndirectCount", **place, **counter, maxDrawCount=count)

    def _bind_drawn(self) -> None:
        self._bind_sets([self._chosen.choice(self._sets)], 0, GRAPHICS)

    def _bind_vertices(self) -> None:
        """At offsets that are mostly fresh; now and then there is no buffer, or no vertex behind the offset."""
        chosen, first, count = self._chosen, self._chosen.choice((0, 0, 1)), self._chosen.choice((1, 1, 2))
        buffers = [0 if chosen.random() < 0.03 else self._some_buffer() for _ in range(count)]
        offsets = [chosen.choice((0, 256, 8 * chosen.randrange(128), self._offset())) for _ in range(count)]
        bound = {"firstBinding": first, "bindingCount": count, "pBuffers": buffers, "pOffsets": offsets}
        if chosen.random() < 0.9:
            self._command("BindVertexBuffers", **bound)
        else:
            bound |= {"pSizes": chosen.choice((None, [64] * count)), "pStrides": chosen.choice((None, [16] * count))}
            self._command("BindVertexBuffers2", **bound)

    def _bind_indices(self) -> None:
        """Programs update and fill buffers with small numbers: those of vertices, most often."""
        place = {"offset": self._first_index(), "indexType": self._chosen.randrange(2)}
        self._command("BindIndexBuffer", buffer=self._some_buffer(), **place)

    def _first_index(self) -> int:
        return self._chosen.choice((0, 0, 16, 256))

    def _layer(self) -> dict[str, Any]:
        layer = self._chosen.randrange(LAYERS)
        return struct("VkImageSubresourceLayers", aspectMask=1, baseArrayLayer=layer, layerCount=1)

    def _rectangle(self) -> dict[str, dict[str, int]]:
        x, y = (self._chosen.choice((0, 0, 1, 2)) for _ in range(2))
        extent = {"width": self._chosen.choice((1, EDGE - x)), "height": self._chosen.choice((1, EDGE - y)), "depth": 1}
        return {"imageOffset": {"x": x, "y": y, "z": 0}, "imageExtent": extent}

    def _upload(self) -> None:
        regions = [
            struct(
                "VkBufferImageCopy", bufferOffset=self._offset(), imageSubresource=self._layer(), **self._rectangle()
            )
            for _ in range(self._chosen.choice((1, 1, 2)))
        ]
        image, buffer = self._chosen.choice(self._images)[0], self._some_buffer()
        if self._chosen.random() < 0.5:
            ends = {"srcBuffer": buffer, "dstImage": image, "dstImageLayout": 7}
            self._command("CopyBufferToImage", **ends, pRegions=regions)
        else:
            ends = {"dstBuffer": buffer, "srcImage": image, "srcImageLayout": 6}
            self._command("CopyImageToBuffer", **ends, pRegions=regions)

    def _copy_image(self) -> None:
        source, target = (self._chosen.choice(self._images)[0] for _ in range(2))
        rectangle = self._rectangle()
        place = {"srcOffset": rectangle["imageOffset"], "dstOffset": {"x": 0, "y": 0, "z": 0}}
        ends = {"srcSubresource": self._layer(), "dstSubresource": self._layer(), "extent": rectangle["imageExtent"]}
        region = struct("VkImageCopy", **place, **ends)
        images = {"srcImage": source, "srcImageLayout": 6, "dstImage": target, "dstImageLayout": 7}
        self._command("CopyImage", **images, pRegions=[region])

    def _clear(self) -> None:
        color = {"uint32": [self._chosen.randrange(2)] * 4}
        place = {"image": self._chosen.choice(self._images)[0], "imageLayout": 7, "pColor": color}
        self._command("ClearColorImage", **place, pRanges=[self._subresources(0, self._chosen.choice((1, LAYERS)))])
