"""A stream whose shaders spin, so that what does not wait for them finds what was there before.

With slow shaders everywhere, a later command finds nothing that an earlier one stores at the end. A command that comes
too early is seen only where it is fast itself. So of each pipeline there are two, one with shaders that spin and one
as recorded, and the last commands take the latter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any

from vkharness.findings import UserError
from vkharness.replay.native_strategies.changed_stream import ChangedStream
from vkharness.shader.spin import spinning
from vkharness.shader.spirv import SpirvError
from vkharness.spec.command_classes import RUNS_SHADERS
from vkharness.spec.enums import VkPipelineBindPoint
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call
from vkharness.trace.chain import rebuilt
from vkharness.trace.ids import fresh_id

PIPELINES = ("vkCreateComputePipelines", "vkCreateGraphicsPipelines")
Bound = dict[tuple[int, int], int]
"""Pipeline by command buffer and VkPipelineBindPoint."""


def with_spinning_shaders(blocks: list[Block], number: int) -> ChangedStream:
    """The stream for the run of a number from 0 on. The run 0 spins in all commands before they store; the run N spins
    at the beginning of all but the last N.

    Raises `UserError` when no shader of the stream can spin.
    """
    runs = sum(_runs_shaders(each) for each in blocks)
    stream = _Spinning(blocks, max(0, min(number, runs - 1)), at_entry=number > 0)
    made = list(stream.blocks())
    if not stream.slow:
        raise UserError("no shader of this stream can be made to spin")
    return ChangedStream(made)


def _runs_shaders(block: Block) -> bool:
    return isinstance(block, Call) and block.name.startswith(RUNS_SHADERS)


class _Spinning:
    def __init__(self, blocks: list[Block], fast: int, at_entry: bool) -> None:
        self._given, self._at_entry = blocks, at_entry
        self._left = sum(map(_runs_shaders, blocks)) - fast
        """Commands that are still to be slow."""
        self._ids = count(fresh_id(blocks))
        self._modules: dict[int, int] = {}
        self.slow: dict[int, int] = {}
        """The slow one by pipeline of the trace."""
        self._wanted: Bound = {}
        self._bound: Bound = {}

    def blocks(self) -> Iterator[Block]:
        for block in self._given:
            if not isinstance(block, Call) or not block.succeeded or block.unread:
                yield block
                continue
            name = main_name(block.name)
            if name == "vkCmdBindPipeline":
                yield self._bind(block)
                continue
            if name == "vkCmdBindShadersEXT":  # shader objects stay as fast as they are
                self._unbind(block)
            if _runs_shaders(block):
                yield from self._fast(block)
            yield block
            if name == "vkCreateShaderModule":
                yield from self._module(block)
            elif name in PIPELINES:
                yield from self._pipelines(block)

    def _module(self, call: Call) -> Iterator[Call]:
        info = self._spun(call.args["pCreateInfo"])
        if info is not None:
            made = self._modules[call.args["pShaderModule"]] = next(self._ids)
            yield replace(call, args={**call.args, "pCreateInfo": info, "pShaderModule": made})

    def _spun(self, info: dict[str, Any]) -> dict[str, Any] | None:
        """A VkShaderModuleCreateInfo with a shader that spins; None where it cannot."""
        try:
            code = spinning(info["pCode"], self._at_entry)
        except SpirvError:
            return None
        return {**info, "pCode": code, "codeSize": len(code)}

    def _pipelines(self, call: Call) -> Iterator[Call]:
        infos = [self._pipeline(each) for each in call.args["pCreateInfos"]]
        if all(new is old for new, old in zip(infos, call.args["pCreateInfos"], strict=True)):
            return
        several = [next(self._ids) if each else 0 for each in call.args["pPipelines"]]
        self.slow.update(zip(call.args["pPipelines"], several, strict=True))
        yield replace(call, args={**call.args, "pCreateInfos": infos, "pPipelines": several})

    def _pipeline(self, info: dict[str, Any]) -> dict[str, Any]:
        if "pStages" in info:
            stages = [self._stage(each) for each in info["pStages"] or ()]
            same = all(new is old for new, old in zip(stages, info["pStages"] or (), strict=True))
            return info if same else {**info, "pStages": stages}
        stage = self._stage(info["stage"])
        return info if stage is info["stage"] else {**info, "stage": stage}

    def _stage(self, stage: dict[str, Any]) -> dict[str, Any]:
        if stage["module"]:
            slow = self._modules.get(stage["module"])
            return stage if slow is None else {**stage, "module": slow}
        chain = rebuilt(stage, lambda link: (self._spun(link) or link) if "pCode" in link else link)
        return stage if chain == stage["pNext"] else {**stage, "pNext": chain}

    def _bind(self, call: Call) -> Call:
        place = call.args["commandBuffer"], call.args["pipelineBindPoint"]
        self._wanted[place] = call.args["pipeline"]
        self._bound[place] = self._chosen(call.args["pipeline"])
        return replace(call, args={**call.args, "pipeline": self._bound[place]})

    def _unbind(self, call: Call) -> None:
        for point in (VkPipelineBindPoint.GRAPHICS, VkPipelineBindPoint.COMPUTE):
            self._wanted.pop((call.args["commandBuffer"], point), None)
            self._bound.pop((call.args["commandBuffer"], point), None)

    def _chosen(self, pipeline: int) -> int:
        return self.slow.get(pipeline, pipeline) if self._left > 0 else pipeline

    def _fast(self, call: Call) -> Iterable[Call]:
        """Yields the bind of the pipeline whose shaders a command should run; nothing where it is bound already."""
        compute = call.name.startswith("vkCmdDispatch")
        point = int(VkPipelineBindPoint.COMPUTE if compute else VkPipelineBindPoint.GRAPHICS)
        place = call.args["commandBuffer"], point
        wanted = self._chosen(self._wanted.get(place, 0))
        self._left -= 1
        if wanted == self._bound.get(place, 0):
            return
        self._bound[place] = wanted
        args = {"commandBuffer": place[0], "pipelineBindPoint": point, "pipeline": wanted}
        yield replace(call, name="vkCmdBindPipeline", args=args, result=None)
