"""Plays the steps of random streams whose shaders reach single texels, mip levels and layers, or words in loops."""

from __future__ import annotations

from typing import Any

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigPipeline
from vkharness.rig.rig import Rig
from vkharness.spec.enums import VkImageLayout

WORDS = 64
"""Of each buffer."""


class TexelPlayer:
    """The part of `StepPlayer` for these."""

    rig: Rig
    buffers: list[Any]
    images: list[Any]
    sampler: Any
    pipelines: dict[tuple[str, bool, int], Any]

    def _pipeline(self, shader: str) -> RigPipeline:
        key = (shader, False, 0)
        if key not in self.pipelines:
            self.pipelines[key] = self.rig.compute(shader)
        made: RigPipeline = self.pipelines[key]
        return made

    def _store_texels(
        self, commands: Commands, image: int, mip: int, layer: int, flat: bool, at: tuple[int, int], groups: int
    ) -> None:
        """Stores to tiles of 4 by 4 texels of one level and layer: through a view of that layer (`flat`) or of both."""
        pipeline = self._pipeline("store_tile_2d" if flat else "store_layer_2d")
        layers = (layer, 1) if flat else (0, 2)
        view = self.rig.view(self.images[image], mips=(mip, 1), layers=layers)
        commands.bind(pipeline, self.rig.descriptors(pipeline, b0=(view, None, VkImageLayout.GENERAL)))
        commands.push_constants(pipeline, *([each & 0xFFFFFFFF for each in at] if flat else [layer]), 7)
        commands.dispatch(groups)

    def _fetch_level(self, commands: Commands, image: int, level: int, layer: int, buffer: int) -> None:
        """Fetches texels of one level, through a view of both, into the first words of a buffer."""
        pipeline = self._pipeline("fetch_level_2d")
        view = self.rig.view(self.images[image], mips=(0, 2), layers=(layer, 1))
        source = (view, self.sampler, VkImageLayout.GENERAL)
        commands.bind(pipeline, self.rig.descriptors(pipeline, b0=source, b1=self.buffers[buffer]))
        commands.push_constants(pipeline, level)
        commands.dispatch()

    def _stride_words(self, commands: Commands, buffer: int, first: int, count: int, groups: int, how: str) -> None:
        """Stores to words in turns, which "push" constants or a block that the host wrote say (`how`)."""
        if how == "push":
            pipeline = self._pipeline("stride_words")
            held, pushed = {"b0": self.buffers[buffer]}, [first, min(count, (WORDS - first) // 2), 7]
        else:
            pipeline = self._pipeline("uniform_stride")
            block = b"".join(each.to_bytes(4, "little") for each in (first, count)).ljust(64, b"\0")
            numbers = self.rig.buffer(data=block)
            held, pushed = {"b0": self.buffers[buffer], "b1": numbers}, [7]
        commands.bind(pipeline, self.rig.descriptors(pipeline, **held))
        commands.push_constants(pipeline, *pushed)
        commands.dispatch(groups)
