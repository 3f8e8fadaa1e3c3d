"""Push constants on which no access depends are noted by the native core, and judged as where each call is heard of."""

from __future__ import annotations

from typing import Any

import pytest

from hunts.frame_programs import COMPUTE, STORAGE
from hunts.shader_frames import EDGE, GRAPHICS, ShaderFrames
from tests.record.test_open_vertices_natively import counted_records, told
from vkharness import native
from vkharness.commands.open_numbers import OPEN, PUSHES
from vkharness.fuzz.filled_calls import struct
from vkharness.spec.enums import VkDynamicState, VkFormat, VkShaderStage
from vkharness.trace.graphics_state import StencilFace

pytestmark = [pytest.mark.driver, pytest.mark.skipif(native.core is None, reason=f"in use: {native.in_use}")]


class Pushes(ShaderFrames):
    """A program that pushes other words before each dispatch, in ranges that overlap. Of one pipeline a pushed word
    says where it stores; of the other one no access depends on any."""

    changes = freshness = (0,)
    pipelines: tuple[int, ...] = (0,)
    """That is bound in the turns of a frame."""
    early = False
    """Whether words are pushed before the pipeline is bound."""

    def _make_layouts(self) -> None:
        super()._make_layouts()
        self._modules = [self._module(name) for name in ("add_words", "count_and_store")]

    def _frames(self) -> None:
        def pipeline(module: int) -> int:
            stage = struct("VkPipelineShaderStageCreateInfo", stage=VkShaderStage.COMPUTE, module=module, pName="main")
            info = struct("VkComputePipelineCreateInfo", stage=stage, layout=self._layout)
            return self._made("vkCreateComputePipelines", several=True, device=self._device, pCreateInfos=[info])

        self._held = [pipeline(each) for each in self._modules]
        self._sets = [self._set_of((STORAGE,) * 3) for _ in range(2)]
        for frame in range(8):
            self._frame = frame
            self._record(self._primaries[0], [(self._dispatched, 0)])
            self._submit()

    def _set_of(self, types: tuple[int, ...]) -> Any:
        layout = next(each for each in self._layouts if each[0] == types)
        self._some_layout = lambda: layout  # type: ignore[method-assign]
        return self._set()

    def _dispatched(self) -> None:
        for turn in range(16):
            pipeline = self._held[self.pipelines[turn * len(self.pipelines) // 16]]
            bind = {"pipelineBindPoint": COMPUTE, "pipeline": pipeline}
            if not self.early:
                self._command("BindPipeline", **bind)
            words = [(turn * 7 + self._frame) % 24, turn + self._frame]
            for offset, size in (((0, 8),), ((0, 8), (4, 4)), ((0, 4), (4, 4)))[turn % 3]:
                data = b"".join(each.to_bytes(4, "little") for each in words)[:size]
                words = [each + 1 for each in words]
                where = {"layout": self._layout, "stageFlags": VkShaderStage.COMPUTE, "offset": offset, "size": size}
                self._command("PushConstants", **where, pValues=data)
            if self.early:
                self._command("BindPipeline", **bind)
            self._bind_sets([self._sets[turn % 2]], 0)
            self._command("Dispatch", groupCountX=1, groupCountY=1, groupCountZ=1)
            if turn % 4 == 3:
                barrier = struct("VkMemoryBarrier", srcAccessMask=64, dstAccessMask=96)
                self._command("PipelineBarrier", srcStageMask=2048, dstStageMask=2048, pMemoryBarriers=[barrier])


class PushesThatCount(Pushes):
    pipelines = (1,)


class Both(Pushes):
    pipelines = (0, 1, 0)


class Early(Pushes):
    early = True
    pipelines = (0, 0, 1)


@pytest.mark.parametrize(("kind", "most"), [(Pushes, 0.4), (PushesThatCount, 1), (Both, 0.8), (Early, 1)])
def test_words_that_nobody_pushed_before_cost_no_handler(
    kind: type[Pushes], most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = counted_records(monkeypatch)
    stream = kind(1)
    in_log = told(stream, False)
    pushes = sum(each["name"] == PUSHES for each in stream.calls)
    assert pushes > 150 and 0 < counted[PUSHES] <= most * pushes, counted
    assert in_log == told(stream, True)
    assert any("vkCmdDispatch" in line for line in in_log), "words decide which dispatches meet"


class Masks(ShaderFrames):
    """A program that sets other stencil masks before each draw. Those of no bit, and write masks of all bits that there
    are, decide what the draw does; no dependency orders it."""

    changes = freshness = (0,)

    def _frames(self) -> None:
        self._made_stencil()
        self._masked = self._stenciled()
        for frame in range(8):
            self._frame = frame
            self._record(self._primaries[0], [(self._drawn, 0)])
            self._submit()

    def _made_stencil(self) -> None:
        extent = {"width": EDGE, "height": EDGE, "depth": 1}
        size = {"extent": extent, "mipLevels": 1, "arrayLayers": 1, "samples": 1}
        image = self._create(
            "vkCreateImage", "VkImageCreateInfo", imageType=1, format=VkFormat.S8_UINT, usage=0x20, **size
        )
        self._call("vkBindImageMemory", device=self._device, image=image, memory=self._memory(4096))
        place = self._subresources(0, 1) | {"aspectMask": 4}
        members = {"image": image, "viewType": 1, "format": VkFormat.S8_UINT, "subresourceRange": place}
        self._view_of_stencil = self._create("vkCreateImageView", "VkImageViewCreateInfo", **members)

    def _stenciled(self) -> int:
        face = struct("VkStencilOpState", passOp=2, compareOp=1)
        tests = struct("VkPipelineDepthStencilStateCreateInfo", stencilTestEnable=1, front=face, back=face)
        masks = [VkDynamicState.STENCIL_COMPARE_MASK, VkDynamicState.STENCIL_WRITE_MASK]
        stages = [
            struct("VkPipelineShaderStageCreateInfo", stage=stage, module=self._module(shader), pName="main")
            for stage, shader in ((VkShaderStage.VERTEX, "fullscreen"), (VkShaderStage.FRAGMENT, "constant_color"))
        ]
        states = {
            "pVertexInputState": struct("VkPipelineVertexInputStateCreateInfo"),
            "pInputAssemblyState": struct("VkPipelineInputAssemblyStateCreateInfo", topology=3),
            "pRasterizationState": struct("VkPipelineRasterizationStateCreateInfo"),
            "pDepthStencilState": tests,
            "pDynamicState": struct("VkPipelineDynamicStateCreateInfo", pDynamicStates=masks),
        }
        formats = struct("VkPipelineRenderingCreateInfo", stencilAttachmentFormat=VkFormat.S8_UINT)
        info = struct("VkGraphicsPipelineCreateInfo", pNext=formats, pStages=stages, layout=self._layout, **states)
        return self._made("vkCreateGraphicsPipelines", several=True, device=self._device, pCreateInfos=[info])

    def _drawn(self) -> None:
        attached = {"imageView": self._view_of_stencil, "imageLayout": 1, "loadOp": 0}
        stencil = struct("VkRenderingAttachmentInfo", **attached)
        area = struct("VkRect2D", extent={"width": EDGE, "height": EDGE})
        info = struct("VkRenderingInfo", renderArea=area, layerCount=1, pStencilAttachment=stencil)
        for turn in range(12):
            self._command("BeginRendering", pRenderingInfo=info)
            self._command("BindPipeline", pipelineBindPoint=GRAPHICS, pipeline=self._masked)
            for name in ("SetStencilCompareMask", "SetStencilWriteMask"):
                fresh = 1 + (16 * self._frame + turn) % 254
                mask = (fresh, 0x100, 0, fresh | 0x300, 0xFF, 0x7FF)[(turn + self._frame + len(name)) % 6]
                self._command(name, faceMask=3, **{f"{name[10].lower()}{name[11:]}": mask})
            self._command("Draw", vertexCount=3, instanceCount=1)
            self._command("EndRendering")


def test_masks_that_nobody_set_before_cost_no_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = counted_records(monkeypatch)
    stream = Masks(1)
    in_log = told(stream, False)
    masks = sum("Mask" in each["name"] for each in stream.calls)
    ran = sum(count for name, count in counted.items() if "Mask" in name)
    assert masks == 192 and ran < masks / 3, counted
    assert in_log == told(stream, True)
    for access in ("STENCIL_ATTACHMENT_READ", "STENCIL_ATTACHMENT_WRITE"):
        assert any(access in line for line in in_log), in_log


@pytest.mark.parametrize("member", ("compareMask", "writeMask"))
def test_masks_that_are_not_apart_mean_the_same(member: str) -> None:
    apart = OPEN[f"vkCmdSetStencil{member[0].upper()}{member[1:]}"].apart
    meanings: dict[int, set[Any]] = {}
    for mask in range(1 << 10):
        masks = {"compare_mask": 0xFF, "write_mask": 0xFF, f"{member[:-4]}_mask": mask}
        faces = [StencilFace(2, 1, 2, compare, **masks) for compare in (0, 1, 7)] + [StencilFace(passed=3, **masks)]
        meaning = [(each.reads({True, False}), frozenset(each.operations({True, False}))) for each in faces]
        last = mask & 0xFF
        meanings.setdefault(last if last in apart else -1, set()).add(tuple(meaning))
    assert all(len(each) == 1 for each in meanings.values()) and len(set(map(frozenset, meanings.values()))) > 1
