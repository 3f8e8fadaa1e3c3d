"""Push constants on which no access depends are noted by the native core, and judged as where each call is heard of."""

from __future__ import annotations

from typing import Any

import pytest

from hunts.frame_programs import COMPUTE, STORAGE
from hunts.shader_frames import ShaderFrames
from tests.record.test_open_vertices_natively import counted_records, told
from vkharness import native
from vkharness.commands.open_constants import PUSHES
from vkharness.fuzz.filled_calls import struct
from vkharness.spec.enums import VkShaderStage

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
