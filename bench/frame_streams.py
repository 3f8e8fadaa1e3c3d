"""The frames that `bench/frame.py` and `bench/frame_parts.py` record: about 2,000 commands, 200 of them barriers.

A stream makes its frames before anything is timed, with arguments already built. Frames of one stream are alike, but
for those called fresh: there each frame has other offsets or other descriptor sets, so that nothing helps that is known
of the last one. Resources of a stream are its own, and each group of ten commands or so writes one of 200 buffers, or
one image.
"""

from __future__ import annotations

import struct as packing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from vkharness.rig.core import RigBuffer, RigDescriptorSet, RigImage, RigPipeline
from vkharness.rig.descriptor_sets import descriptor_write
from vkharness.rig.render_passes import RigAttachment, RigSubpass, RigSubpassDependency
from vkharness.rig.rig import Rig
from vkharness.spec.enums import (
    VK_QUEUE_FAMILY_IGNORED,
    VkImageLayout,
    VkIndexType,
    VkPipelineBindPoint,
    VkStructureType,
)

GROUPS = 200
"""Groups of commands; the last of each is a barrier. Each writes one buffer of its own."""
COPY_READ, COPY_WRITE = (0x1_0000_0000, 0x800), (0x1_0000_0000, 0x1000)
SHADER_READ, SHADER_WRITE = (0x800, 0x2_0000_0000), (0x800, 0x4_0000_0000)
SAMPLED_READ = (0x800, 0x1_0000_0000)
COLOR = (0x400, 0x180)
UPDATE_WRITE, INDEX_READ = (0x1000, 0x1000), (0x10_0000_0000, 0x2)
"""(VkPipelineStageFlagBits2, VkAccessFlagBits2) of each side of the barriers."""
BUFFER_BYTES = 4096
UNIFORM_BYTES = 256
"""From one uniform block to the next: no driver asks for more."""
COMPUTE, GRAPHICS = VkPipelineBindPoint.COMPUTE, VkPipelineBindPoint.GRAPHICS
VERTEX_BYTES = 8
"""Of a vertex, which is a position."""
SIDE = 16
"""Texels of a side of each image."""

Recorded = tuple[str, tuple[Any, ...]]
"""One call without its first argument, which is the command buffer, or the device where its name is no vkCmd."""
Frame = list[list[Recorded]]
"""Commands that one frame records for each of its queues. Each queue after the first waits for the one before."""


@dataclass(frozen=True)
class FrameStream:
    """A kind of frame."""

    make: Callable[[Rig, int], list[Frame]]
    """Makes resources on a rig, and so many frames over them."""
    fresh: bool = False
    """Whether it makes as many frames as are recorded, each of them different."""
    queues: tuple[str, ...] = ()
    """Queues beside the first, by kind (`vkharness.rig.requirements.QUEUE_KINDS`)."""


# -- copies ------------------------------------------------------------------------------------------------------------


def copies(rig: Rig, frames: int) -> list[Frame]:
    """Nine copies from the nine buffers before it into one buffer, and a barrier over it."""
    buffers = _buffers(rig)
    return [[_copies(rig, buffers, buffers, 4 * at)] for at in range(frames)]


def two_queues(rig: Rig, frames: int) -> list[Frame]:
    """The same in two halves: the second queue waits for the first by a semaphore, and reads what that has written."""
    buffers = _buffers(rig)
    half = GROUPS // 2
    return [[_copies(rig, buffers[:half], buffers[:half], 0), _copies(rig, buffers, buffers[half:], 0)]] * frames


def _copies(rig: Rig, sources: list[RigBuffer], targets: list[RigBuffer], start: int) -> list[Recorded]:
    made: list[Recorded] = []
    first = len(sources) - len(targets)
    for at, target in enumerate(targets, first):
        for part in range(9):
            sizes = {"srcOffset": start, "dstOffset": start + part * 256, "size": 256}
            region = rig.vk.ffi.new("VkBufferCopy[]", [sizes])
            made.append(("vkCmdCopyBuffer", (sources[at - 1 - part].handle, target.handle, 1, region)))
        made.append(_barrier(rig, COPY_WRITE, COPY_READ, COPY_WRITE, target))
    return made


# -- dispatches --------------------------------------------------------------------------------------------------------


def dispatches(rig: Rig, frames: int) -> list[Frame]:
    """Three dispatches that read the buffer before and write parts of one buffer, each bound anew; a barrier."""
    made = _Dispatches(rig)
    return [[made.frame(made.sets())]] * frames


def fresh_sets(rig: Rig, frames: int) -> list[Frame]:
    """The same with descriptor sets that no frame before has bound."""
    made = _Dispatches(rig)
    return [[made.frame(made.sets())] for _ in range(frames)]


def sets_written_anew(rig: Rig, frames: int) -> list[Frame]:
    """The same, where each frame writes the set of a group before the group binds it, with another part of memory."""
    made = _Dispatches(rig)
    sets = made.sets()
    return [[made.frame(sets, 16 * (at + 1))] for at in range(frames)]


def sets_over_other_buffers(rig: Rig, frames: int) -> list[Frame]:
    """The same, where each frame writes the sets to read other buffers than any frame before."""
    made = _Dispatches(rig)
    sets = made.sets()
    return [[made.frame(sets, 0, at + 2)] for at in range(frames)]


class _Dispatches:
    """Frames of dispatches over one pipeline and 200 buffers."""

    def __init__(self, rig: Rig) -> None:
        kinds = {0: "STORAGE_BUFFER_DYNAMIC", 1: "STORAGE_BUFFER_DYNAMIC"}
        self._rig, self._buffers = rig, _buffers(rig)
        self._pipeline = rig.compute("copy_words", kinds, push_bytes=8)

    def _bindings(self, at: int, start: int, back: int = 1) -> tuple[tuple[RigBuffer, int, int], ...]:
        return (self._buffers[at - back], start, 256), (self._buffers[at], start, 256)

    def sets(self) -> list[RigDescriptorSet]:
        """One for each group."""
        several = (self._bindings(at, 0) for at in range(GROUPS))
        return [self._rig.descriptors(self._pipeline, b0=source, b1=target) for source, target in several]

    def frame(self, sets: list[RigDescriptorSet], start: int | None = None, back: int = 1) -> list[Recorded]:
        """A frame that binds these. With `start` each is written before, to begin there, and to read the buffer so many
        groups `back`."""
        ffi, pipeline = self._rig.vk.ffi, self._pipeline
        words = ffi.new("uint32_t[]", [64, 1])
        made: list[Recorded] = [("vkCmdBindPipeline", (COMPUTE, pipeline.handle))]
        for at, held in enumerate(sets):
            if start is not None:
                made.append(self._written(held, self._bindings(at, start, back)))
            handles = ffi.new("VkDescriptorSet[]", [held.handle])
            for part in range(3):
                offsets = ffi.new("uint32_t[]", [256 * part, 256 * part])
                made.append(("vkCmdBindDescriptorSets", (COMPUTE, pipeline.layout, 0, 1, handles, 2, offsets)))
                made.append(("vkCmdPushConstants", (pipeline.layout, pipeline.shape.push_stages, 0, 8, words)))
                made.append(("vkCmdDispatch", (1, 1, 1)))
            made.append(_barrier(self._rig, SHADER_WRITE, SHADER_READ, SHADER_WRITE, self._buffers[at]))
        return made

    def _written(self, held: RigDescriptorSet, bindings: Sequence[tuple[RigBuffer, int, int]]) -> Recorded:
        vk, ffi = self._rig.vk, self._rig.vk.ffi
        writes = [descriptor_write(vk, held.layout, at, each, held.handle) for at, each in enumerate(bindings)]
        structs = _kept(ffi.new("VkWriteDescriptorSet[]", writes))
        _kept(writes)
        return "vkUpdateDescriptorSets", (len(writes), structs, 0, ffi.NULL)


# -- textures ----------------------------------------------------------------------------------------------------------


def textures(rig: Rig, frames: int) -> list[Frame]:
    """Five copies into the parts of an image with two mips, two layout transitions, and two dispatches that sample it
    and the image before."""
    buffers, sample, sampler = _buffers(rig), rig.compute("sample_2d"), rig.sampler()
    images = [rig.image(extent=(SIDE, SIDE, 1), mips=2) for _ in range(GROUPS)]
    with rig.commands() as first:
        first.transition(*images, new="SHADER_READ_ONLY_OPTIMAL")
    rig.submit(first)
    rig.wait()
    views = [(rig.view(each, mips=(0, 2)), sampler, VkImageLayout.SHADER_READ_ONLY_OPTIMAL) for each in images]
    made = [_image_barrier(rig, None, images[0])]
    for at, image in enumerate(images):
        made += _uploads(rig, buffers[at], image)
        made.append(_image_barrier(rig, image, images[at + 1] if at + 1 < GROUPS else None))
        if at == 0:
            made.append(("vkCmdBindPipeline", (COMPUTE, sample.handle)))
        for part in (0, 1):
            held = rig.descriptors(sample, b0=views[at - part if at else 0], b1=(buffers[at], 1024 * part, 1024))
            made += [_bound(rig, COMPUTE, sample, held), ("vkCmdDispatch", (4, 1, 1))]
    return [[made]] * frames


def _uploads(rig: Rig, source: RigBuffer, image: RigImage) -> list[Recorded]:
    """Copies of the second half of a buffer to the four quarters of an image and to its second mip."""
    half, made = SIDE // 2, []
    for part in range(5):
        region = {
            "bufferOffset": 2048 + 256 * part,
            "imageSubresource": {"aspectMask": 1, "mipLevel": part // 4, "layerCount": 1},
            "imageOffset": {"x": half * (part & 1), "y": half * (part >> 1 & 1)},
            "imageExtent": {"width": half, "height": half, "depth": 1},
        }
        regions = rig.vk.ffi.new("VkBufferImageCopy[]", [region])
        layout = VkImageLayout.TRANSFER_DST_OPTIMAL
        made.append(("vkCmdCopyBufferToImage", (source.handle, image.handle, layout, 1, regions)))
    return made


def _image_barrier(rig: Rig, written: RigImage | None, next_one: RigImage | None) -> Recorded:
    """The barrier after one image was written, which may be sampled then, and before the next one is written."""
    to_sample = {"oldLayout": VkImageLayout.TRANSFER_DST_OPTIMAL, "newLayout": VkImageLayout.SHADER_READ_ONLY_OPTIMAL}
    to_write = {"oldLayout": VkImageLayout.UNDEFINED, "newLayout": VkImageLayout.TRANSFER_DST_OPTIMAL}
    made = []
    for image, (src, dst), layouts in (
        (written, (COPY_WRITE, SAMPLED_READ), to_sample),
        (next_one, ((SAMPLED_READ[0], 0), COPY_WRITE), to_write),
    ):
        if image is not None:
            whole = {"aspectMask": 1, "levelCount": image.mips, "layerCount": 1}
            more = {"image": image.handle, "subresourceRange": whole, **layouts}
            made.append(_struct("IMAGE_MEMORY_BARRIER_2", _masks(src, dst), more, _NO_FAMILIES))
    images = _kept(rig.vk.ffi.new("VkImageMemoryBarrier2[]", made))
    return _dependency(rig, imageMemoryBarrierCount=len(made), pImageMemoryBarriers=images)


# -- draws -------------------------------------------------------------------------------------------------------------


def draws(rig: Rig, frames: int) -> list[Frame]:
    """A render pass with three draws, each with a vertex buffer of its own, and a barrier over its target."""
    return [[_Draws(rig, "constant_color").frame()]] * frames


def fresh_uniforms(rig: Rig, frames: int) -> list[Frame]:
    """The same, where each draw binds a descriptor set anew, to read a part of a uniform buffer that no draw before has
    read."""
    made = _Draws(rig, "uniform_color", bindings={0: "UNIFORM_BUFFER_DYNAMIC"})
    bytes = UNIFORM_BYTES * 3 * GROUPS
    held = rig.descriptors(made.pipeline, b0=(rig.buffer(bytes * frames), 0, 16))
    return [[made.frame(held, bytes * at)] for at in range(frames)]


def fresh_vertex_offsets(rig: Rig, frames: int) -> list[Frame]:
    """The same as `draws`, where each draw binds its vertex buffer with an offset that no draw before has bound."""
    made = _Draws(rig, "constant_color", VERTEX_BYTES * 3 * (frames + 1))
    return [[made.frame(first_vertex=VERTEX_BYTES * 3 * at)] for at in range(frames)]


def writing_draws(rig: Rig, frames: int) -> list[Frame]:
    """The same as `draws`, where the fragment shader of each draw writes a part of a storage buffer."""
    rig.require("fragmentStoresAndAtomics")
    made = _Draws(rig, "store_words.frag", bindings={0: "STORAGE_BUFFER_DYNAMIC"}, push_bytes=4)
    held = rig.descriptors(made.pipeline, b0=(rig.buffer(UNIFORM_BYTES * 3 * GROUPS), 0, UNIFORM_BYTES))
    word, pipeline = rig.vk.ffi.new("uint32_t[]", [7]), made.pipeline
    pushed = "vkCmdPushConstants", (pipeline.layout, pipeline.shape.push_stages, 0, 4, word)
    return [[[pushed, *made.frame(held)]]] * frames


def indexed_draws(rig: Rig, frames: int) -> list[Frame]:
    """The same as `draws`, where each draw reads its vertices through an index buffer."""
    made = _Draws(rig, "constant_color")
    indices = rig.buffer(BUFFER_BYTES)
    bound = "vkCmdBindIndexBuffer", (indices.handle, 0, VkIndexType.UINT32)
    found: list[Recorded] = []
    for name, arguments in made.frame():
        if name == "vkCmdDraw":
            found += [bound, ("vkCmdDrawIndexed", (3, 1, 0, 0, 0))]
        else:
            found.append((name, arguments))
    return [[found]] * frames


def indices_written_anew(rig: Rig, frames: int) -> list[Frame]:
    """The same as `indexed_draws`, where each frame writes the indices before it draws."""
    made = indexed_draws(rig, 1)[0][0]
    indices = next(arguments[0] for name, arguments in made if name == "vkCmdBindIndexBuffer")
    bytes = packing.pack("<3I", 0, 1, 2)
    update = "vkCmdUpdateBuffer", (indices, 0, len(bytes), rig.vk.ffi.new("char[]", bytes))
    return [[[update, _barrier(rig, UPDATE_WRITE, INDEX_READ), *made]]] * frames


def indirect_draws(rig: Rig, frames: int) -> list[Frame]:
    """The same as `draws`, where the parameters of each draw lie in a buffer that the host wrote once."""
    made = _Draws(rig, "constant_color")
    parameters = _parameters(rig, packing.pack("<4I", 3, 1, 0, 0))
    places = count(0, 16)
    found: list[Recorded] = []
    for name, arguments in made.frame():
        if name == "vkCmdDraw":
            name, arguments = "vkCmdDrawIndirect", (parameters.handle, next(places), 1, 16)
        found.append((name, arguments))
    return [[found]] * frames


def indirect_dispatches(rig: Rig, frames: int) -> list[Frame]:
    """The same as `dispatches`, where the numbers of workgroups lie in a buffer that the host wrote once."""
    made = _Dispatches(rig)
    parameters = _parameters(rig, packing.pack("<3I", 1, 1, 1))
    places = count(0, 12)
    found: list[Recorded] = []
    for name, arguments in made.frame(made.sets()):
        if name == "vkCmdDispatch":
            name, arguments = "vkCmdDispatchIndirect", (parameters.handle, next(places))
        found.append((name, arguments))
    return [[found]] * frames


def _parameters(rig: Rig, each: bytes) -> RigBuffer:
    """A buffer with the parameters of the commands of a frame."""
    return rig.buffer(len(each) * 3 * GROUPS, data=each * 3 * GROUPS)


class _Draws:
    """Frames of draws with one pipeline to one image."""

    def __init__(self, rig: Rig, fragment: str, bytes: int = BUFFER_BYTES, **more: Any) -> None:
        """`bytes` is the size of each vertex buffer."""
        self._rig, self._buffers = rig, _buffers(rig, bytes)
        made_pass = rig.render_pass([_LOADED], [RigSubpass([(0, "GENERAL")])])
        frame = rig.framebuffer(made_pass, [rig.view(_target(rig))])
        self.pipeline = rig.graphics(fragment, "vertex_position", render_pass=made_pass, **_VERTICES, **more)
        self._begin = _pass_begin(rig, made_pass.handle, frame.handle)

    def frame(
        self, held: RigDescriptorSet | None = None, start: int = 0, first_vertex: int | None = None
    ) -> list[Recorded]:
        """A frame. With a set each draw binds it, with the next dynamic offset from the first one on. `first_vertex` is
        the offset at which the first draw of each group binds its vertex buffer; the others bind the next vertices."""
        ffi, pipeline, rig = self._rig.vk.ffi, self.pipeline, self._rig
        made: list[Recorded] = []
        for at in range(GROUPS):
            made.append(("vkCmdBeginRenderPass", (self._begin, 0)))
            made.append(("vkCmdBindPipeline", (GRAPHICS, pipeline.handle)))
            for part in range(3):
                vertices = ffi.new("VkBuffer[]", [self._buffers[at - part].handle])
                offset = 0 if first_vertex is None else first_vertex + VERTEX_BYTES * part
                made.append(("vkCmdBindVertexBuffers", (0, 1, vertices, ffi.new("VkDeviceSize[]", [offset]))))
                if held is not None:
                    handles = ffi.new("VkDescriptorSet[]", [held.handle])
                    offsets = ffi.new("uint32_t[]", [start + UNIFORM_BYTES * (3 * at + part)])
                    made.append(("vkCmdBindDescriptorSets", (GRAPHICS, pipeline.layout, 0, 1, handles, 1, offsets)))
                made.append(("vkCmdDraw", (3, 1, 0, 0)))
            made.append(("vkCmdEndRenderPass", ()))
            made.append(_barrier(rig, COLOR, COLOR))
        return made


def subpasses(rig: Rig, frames: int) -> list[Frame]:
    """A render pass of three subpasses with a draw each, of which the second reads what the first has drawn."""
    source, image = _target(rig), _target(rig)
    written = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE"
    order = [
        RigSubpassDependency("", 0, 1, written, "FRAGMENT_SHADER/INPUT_ATTACHMENT_READ"),
        RigSubpassDependency("", 1, 2, written, written),
    ]
    uses = [RigSubpass([(0, "GENERAL")]), RigSubpass([(1, "GENERAL")], inputs=[(0, "GENERAL")])]
    made_pass = rig.render_pass([_LOADED] * 2, [*uses, RigSubpass([(1, "GENERAL")])], order)
    views = [rig.view(source), rig.view(image)]
    frame = rig.framebuffer(made_pass, views)
    pipelines = [
        rig.graphics(name, render_pass=made_pass, subpass=at)
        for at, name in enumerate(("constant_color", "invert_input", "constant_color"))
    ]
    held = rig.descriptors(pipelines[1], b0=(views[0], None, VkImageLayout.GENERAL))
    begin = _pass_begin(rig, made_pass.handle, frame.handle)
    made: list[Recorded] = []
    for _ in range(GROUPS):
        for at, pipeline in enumerate(pipelines):
            made.append(("vkCmdNextSubpass", (0,)) if at else ("vkCmdBeginRenderPass", (begin, 0)))
            made.append(("vkCmdBindPipeline", (GRAPHICS, pipeline.handle)))
            if at == 1:
                made.append(_bound(rig, GRAPHICS, pipeline, held))
            made.append(("vkCmdDraw", (3, 1, 0, 0)))
        made.append(("vkCmdEndRenderPass", ()))
        made.append(_barrier(rig, (COLOR[0] | 0x80, COLOR[1]), COLOR))
    return [[made]] * frames


_LOADED = RigAttachment(load="LOAD", initial="GENERAL", final="GENERAL")
_VERTICES: dict[str, Any] = {
    "vertex_buffers": [(VERTEX_BYTES, 0)],
    "attributes": [(0, 0, "VK_FORMAT_R32G32_SFLOAT", 0)],
}


def _target(rig: Rig) -> RigImage:
    """An image to render to, in layout GENERAL."""
    image = rig.target()
    with rig.commands() as first:
        first.transition(image)
    rig.submit(first)
    rig.wait()
    return image


def _pass_begin(rig: Rig, render_pass: Any, framebuffer: Any) -> Any:
    members = {"renderPass": render_pass, "framebuffer": framebuffer}
    area = {"renderArea": {"extent": {"width": SIDE, "height": SIDE}}}
    return rig.vk.ffi.new("VkRenderPassBeginInfo *", _struct("RENDER_PASS_BEGIN_INFO", members, area))


# -- what all streams use ----------------------------------------------------------------------------------------------


def _buffers(rig: Rig, bytes: int = BUFFER_BYTES) -> list[RigBuffer]:
    return [rig.buffer(bytes) for _ in range(GROUPS)]


def _bound(rig: Rig, point: int, pipeline: RigPipeline, held: RigDescriptorSet) -> Recorded:
    handles = rig.vk.ffi.new("VkDescriptorSet[]", [held.handle])
    return "vkCmdBindDescriptorSets", (point, pipeline.layout, 0, 1, handles, 0, rig.vk.ffi.NULL)


def _barrier(
    rig: Rig,
    src: tuple[int, int],
    dst: tuple[int, int],
    more: tuple[int, int] = (0, 0),
    buffer: RigBuffer | None = None,
) -> Recorded:
    """vkCmdPipelineBarrier2: one barrier over all memory, or one over a buffer beside an execution dependency."""
    masks = _masks(src, (dst[0] | more[0], dst[1] | more[1]))
    if buffer is None:
        whole = _kept(rig.vk.ffi.new("VkMemoryBarrier2[]", [_struct("MEMORY_BARRIER_2", masks)]))
        return _dependency(rig, memoryBarrierCount=1, pMemoryBarriers=whole)
    stages = {name: value for name, value in masks.items() if name.endswith("StageMask")}
    whole = _kept(rig.vk.ffi.new("VkMemoryBarrier2[]", [_struct("MEMORY_BARRIER_2", stages)]))
    part = {"buffer": buffer.handle, "offset": 0, "size": BUFFER_BYTES}
    struct = _struct("BUFFER_MEMORY_BARRIER_2", part, masks, _NO_FAMILIES)
    parts = _kept(rig.vk.ffi.new("VkBufferMemoryBarrier2[]", [struct]))
    ranged = {"bufferMemoryBarrierCount": 1, "pBufferMemoryBarriers": parts}
    return _dependency(rig, memoryBarrierCount=1, pMemoryBarriers=whole, **ranged)


_NO_FAMILIES = {"srcQueueFamilyIndex": VK_QUEUE_FAMILY_IGNORED, "dstQueueFamilyIndex": VK_QUEUE_FAMILY_IGNORED}


def _masks(src: tuple[int, int], dst: tuple[int, int]) -> dict[str, int]:
    return {"srcStageMask": src[0], "srcAccessMask": src[1], "dstStageMask": dst[0], "dstAccessMask": dst[1]}


def _dependency(rig: Rig, **members: Any) -> Recorded:
    return "vkCmdPipelineBarrier2", (rig.vk.ffi.new("VkDependencyInfo *", _struct("DEPENDENCY_INFO", members)),)


def _struct(kind: str, *members: dict[str, Any]) -> dict[str, Any]:
    """A struct as a dictionary, with its sType."""
    made = {"sType": getattr(VkStructureType, kind)}
    for each in members:
        made |= each
    return made


_KEPT: list[Any] = []


def _kept(held: Any) -> Any:
    """Keeps memory to which structs point: it must live as long as they do."""
    _KEPT.append(held)
    return held


STREAMS = {
    "copies": FrameStream(copies),
    "copies, fresh offsets": FrameStream(copies, fresh=True),
    "dispatches": FrameStream(dispatches),
    "dispatches, fresh sets": FrameStream(fresh_sets, fresh=True),
    "dispatches, sets written anew": FrameStream(sets_written_anew, fresh=True),
    "dispatches, sets over other buffers": FrameStream(sets_over_other_buffers, fresh=True),
    "draws": FrameStream(draws),
    "draws, fresh uniforms": FrameStream(fresh_uniforms, fresh=True),
    "draws, fresh vertex offsets": FrameStream(fresh_vertex_offsets, fresh=True),
    "draws, indexed": FrameStream(indexed_draws),
    "draws, indices written anew": FrameStream(indices_written_anew),
    "draws that write": FrameStream(writing_draws),
    "draws, indirect": FrameStream(indirect_draws),
    "dispatches, indirect": FrameStream(indirect_dispatches),
    "subpasses": FrameStream(subpasses),
    "textures": FrameStream(textures),
    "copies on two queues": FrameStream(two_queues, queues=("TRANSFER",)),
}
"""All kinds of frames by name."""
MAIN = ("copies", "dispatches", "draws")
"""Those of which `bench/frame_parts.py` shows the parts."""


def first_arguments(rig: Rig, handle: Any, calls: Sequence[Recorded]) -> list[Recorded]:
    """The calls with all their arguments."""
    return [(name, (handle if name.startswith("vkCmd") else rig.device, *rest)) for name, rest in calls]
