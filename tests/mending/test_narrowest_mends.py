"""Mends that edit what is there where an insertion would order more: aliases, halves of transfers, store operations."""

from __future__ import annotations

from typing import Any

import pytest

from tests.commands.test_aliasing import Aliased
from tests.support import drawing, passes
from tests.support.passes import CLEAR, LOAD, NONE_STORE, STORE, rect
from tests.support.streams import COLOR, D32_S8, DEPTH, DST, GENERAL, SRC, STENCIL, UNDEFINED, Stream, layers, struct
from vkharness.check import Analysis
from vkharness.mending.mend import Mending, mend
from vkharness.mending.proof import judge
from vkharness.mending.store_operations import with_no_store
from vkharness.spec.enums import VkDependency, VkImageLayout, VkPipelineStage2
from vkharness.spec.masks import scope
from vkharness.trace.calls import Call
from vkharness.trace.edits import Edit, EditedTrace

IGNORED = 0xFFFFFFFF
TRANSFER = VkPipelineStage2.ALL_TRANSFER
D32 = 126
READ_ONLY = VkImageLayout.DEPTH_STENCIL_READ_ONLY_OPTIMAL


def mended(stream: Stream) -> Mending:
    """The stream mended: clean for both judges."""
    found = mend(stream.blocks)
    assert found.complete, [each.reason for each in found.groups]
    assert judge(found.trace).findings == judge(found.applied).findings == []
    return found


def ways(found: Mending) -> list[str]:
    return [each.how for each in found.groups]


def edits(found: Mending) -> dict[str, Edit]:
    """The edits by the name of the call as it was; what is inserted has none."""
    return {f"{'edited' if each.before else 'inserted'} {each.after.name}": each for each in found.applied.edits()}


def transition(
    stream: Stream, image: int, layouts: tuple[int, int], src: str, dst: str, families: tuple[int, int] | None = None
) -> int:
    (src_stages, src_access), (dst_stages, dst_access) = scope(src), scope(dst)
    first, last = families or (IGNORED, IGNORED)
    held = struct(
        "VkImageMemoryBarrier",
        srcAccessMask=src_access,
        dstAccessMask=dst_access,
        oldLayout=layouts[0],
        newLayout=layouts[1],
        srcQueueFamilyIndex=first,
        dstQueueFamilyIndex=last,
        image=image,
        subresourceRange=struct("VkImageSubresourceRange", aspectMask=COLOR, levelCount=1, layerCount=1),
    )
    return stream.cmd("PipelineBarrier", srcStageMask=src_stages, dstStageMask=dst_stages, pImageMemoryBarriers=[held])


# -- aliases -----------------------------------------------------------------------------------------------------------


def test_the_transition_of_an_alias_gets_the_stage_that_it_lacks() -> None:
    stream = Aliased()
    one, other, out = stream.placed_image(), stream.placed_image(), stream.buffer(64)
    stream.begin()
    transition(stream, one, (UNDEFINED, SRC), "TOP_OF_PIPE", "ALL_TRANSFER/TRANSFER_READ")
    stream.image_to_buffer(one, out, (4, 4, 1))
    later = transition(stream, other, (UNDEFINED, DST), "TOP_OF_PIPE", "ALL_TRANSFER/TRANSFER_WRITE")
    stream.clear(other, (1, 1, 1, 1))
    stream.submit()
    found = mended(stream)
    [edit] = found.trace.edits()
    assert ways(found) == ["transition"]
    assert edit.before is not None and edit.before.index == later
    assert edit.after.args["srcStageMask"] == TRANSFER


# -- transfers of ownership --------------------------------------------------------------------------------------------


def handed_over(half: str) -> Stream:
    """An image that queue family 0 clears and family 1 copies, after a layout transition there. `half` is the half of a
    transfer that the stream has: the release, with other layouts than the transition; the acquire; or none."""
    stream = Stream()
    other, pool = stream.id(), stream.id()
    stream.call("vkGetDeviceQueue", device=stream.device, queueFamilyIndex=1, queueIndex=0, pQueue=other)
    info = struct("VkCommandPoolCreateInfo", queueFamilyIndex=1)
    stream.call("vkCreateCommandPool", device=stream.device, pCreateInfo=info, pCommandPool=pool)
    image, out = stream.image((4, 4, 1)), stream.buffer(64)
    semaphore = stream.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo"))
    writes, reads, both = "ALL_TRANSFER/TRANSFER_WRITE", "ALL_TRANSFER/TRANSFER_READ", (0, 1)
    first = stream.begin()
    transition(stream, image, (UNDEFINED, DST), "TOP_OF_PIPE", writes)
    stream.clear(image, (1, 1, 1, 1))
    if half == "release":
        transition(stream, image, (DST, DST), writes, "BOTTOM_OF_PIPE", both)
    stream.end()
    stream.pool = pool
    second = stream.begin()
    transition(stream, image, (DST, SRC), "ALL_TRANSFER", reads, both if half == "acquire" else None)
    stream.image_to_buffer(image, out, (4, 4, 1))
    stream.end()
    signals = struct("VkSubmitInfo", pCommandBuffers=[first], pSignalSemaphores=[semaphore])
    stream.call("vkQueueSubmit", queue=stream.queue, pSubmits=[signals])
    waits: dict[str, Any] = {"pWaitSemaphores": [semaphore], "pWaitDstStageMask": [TRANSFER]}
    stream.call("vkQueueSubmit", queue=other, pSubmits=[struct("VkSubmitInfo", pCommandBuffers=[second], **waits)])
    return stream


def halves(found: Mending) -> list[dict[str, int]]:
    """The image barriers of changed barriers, in the order of the trace."""
    calls = [each.after for each in found.applied.edits() if each.after.name == "vkCmdPipelineBarrier"]
    return [barrier for call in calls for barrier in call.args["pImageMemoryBarriers"]]


def test_a_transition_becomes_the_acquire_and_a_release_is_inserted() -> None:
    found = mended(handed_over("none"))
    assert ways(found) == ["transfer", "wait"]
    assert sorted(edits(found)) == [
        "edited vkCmdPipelineBarrier",
        "edited vkQueueSubmit",
        "inserted vkCmdPipelineBarrier",
    ]
    release, acquire = halves(found)
    for half in (release, acquire):
        assert (half["srcQueueFamilyIndex"], half["dstQueueFamilyIndex"]) == (0, 1)
        assert (half["oldLayout"], half["newLayout"]) == (DST, SRC)


def test_an_acquire_before_a_transition_chains_with_it() -> None:
    found = mended(handed_over("release"))
    assert ways(found) == ["transfer"]
    assert sorted(edits(found)) == ["edited vkQueueSubmit", "inserted vkCmdPipelineBarrier"]
    [acquire] = halves(found)
    assert (acquire["srcQueueFamilyIndex"], acquire["oldLayout"], acquire["newLayout"]) == (0, DST, DST)


def test_a_missing_release_has_the_layouts_of_the_acquire() -> None:
    found = mended(handed_over("acquire"))
    assert sorted(edits(found)) == ["edited vkQueueSubmit", "inserted vkCmdPipelineBarrier"]
    [release] = halves(found)
    assert (release["dstQueueFamilyIndex"], release["oldLayout"], release["newLayout"]) == (1, DST, SRC)


# -- store operations --------------------------------------------------------------------------------------------------


def depth_read(stream: Stream, image: int, layout: int, form: str, load: int = LOAD) -> None:
    """An instance of a render pass, or of dynamic rendering, with a depth attachment that it loads and stores."""
    view = passes.view(stream, image, D32, aspects=DEPTH)
    if form == "dynamic":
        stream.begin()
        attached = passes.attached(view, load, STORE, imageLayout=layout)
        passes.begin_rendering(stream, rect((8, 8)), depth=attached)
        stream.cmd("EndRendering")
        return
    described = passes.described(D32, load, STORE, layout, layout)
    made = passes.render_pass(stream, [described], [passes.subpass([], depth=passes.refer(0, layout))])
    frame = passes.framebuffer(stream, made, [view], (8, 8))
    stream.begin()
    passes.begin_pass(stream, made, frame, rect((8, 8)))
    passes.end_pass(stream)


@pytest.mark.parametrize("form", ["dynamic", "render pass"])
def test_an_attachment_that_is_only_read_is_not_stored(form: str) -> None:
    stream = Stream()
    image, out = stream.image((8, 8, 1), D32), stream.buffer(256)
    depth_read(stream, image, READ_ONLY, form)
    stream.image_to_buffer(image, out, (8, 8, 1), layers(DEPTH), layout=GENERAL)
    stream.submit()
    assert [each.hazard for each in Analysis().follow(stream.blocks).findings] == ["READ_AFTER_WRITE"]
    found = mended(stream)
    [edit] = found.applied.edits()
    assert ways(found) == ["store operation"]
    if form == "dynamic":
        assert edit.after.args["pRenderingInfo"]["pDepthAttachment"]["storeOp"] == NONE_STORE
    else:
        assert edit.after.args["pCreateInfo"]["pAttachments"][0]["storeOp"] == NONE_STORE


def test_an_attachment_that_may_be_written_is_stored() -> None:
    stream = Stream()
    image, out = stream.image((8, 8, 1), D32), stream.buffer(256)
    depth_read(stream, image, VkImageLayout.DEPTH_STENCIL_ATTACHMENT_OPTIMAL, "dynamic")
    stream.image_to_buffer(image, out, (8, 8, 1), layers(DEPTH), layout=GENERAL)
    stream.submit()
    found = mended(stream)
    assert ways(found) == ["barrier"]


def stored(stream: Stream, image: int, out: int) -> EditedTrace | None:
    """The stream with no store, where a copy of depth behind it is no longer in order."""
    stream.image_to_buffer(image, out, (8, 8, 1), layers(DEPTH), layout=GENERAL)
    stream.submit()
    of_copy = Analysis().follow(stream.blocks).findings[-1]
    assert of_copy.place.command == "vkCmdCopyImageToBuffer"
    return with_no_store(EditedTrace.of(stream.blocks), [of_copy])


def stored_by_pass(stream: Stream, image: int, out: int, *subpasses: dict[str, Any]) -> EditedTrace | None:
    """The stream with no store of an image with depth and stencil, in a render pass that loads and stores both."""
    view = passes.view(stream, image, D32_S8, aspects=DEPTH | STENCIL)
    described = passes.described(D32_S8, LOAD, STORE, READ_ONLY, READ_ONLY, stencil=(LOAD, STORE))
    made = passes.render_pass(stream, [described], list(subpasses))
    frame = passes.framebuffer(stream, made, [view], (8, 8))
    stream.begin()
    passes.begin_pass(stream, made, frame, rect((8, 8)))
    for _ in subpasses[1:]:
        stream.cmd("NextSubpass")
    passes.end_pass(stream)
    return stored(stream, image, out)


@pytest.mark.parametrize("form", ["dynamic", "render pass"])
def test_an_attachment_that_is_cleared_is_stored(form: str) -> None:
    """The clear is a write, behind which NONE leaves nothing."""
    stream = Stream()
    image, out = stream.image((8, 8, 1), D32), stream.buffer(256)
    depth_read(stream, image, READ_ONLY, form, CLEAR)
    assert stored(stream, image, out) is None


def test_a_layout_that_is_read_only_for_stencil_alone_leaves_depth_stored() -> None:
    stream = Stream()
    image, out = stream.image((8, 8, 1), D32), stream.buffer(256)
    depth_read(stream, image, VkImageLayout.STENCIL_READ_ONLY_OPTIMAL, "dynamic")
    assert stored(stream, image, out) is None


@pytest.mark.parametrize(
    ("stencil", "operations"),
    [
        (VkImageLayout.STENCIL_ATTACHMENT_OPTIMAL, (NONE_STORE, STORE)),
        (VkImageLayout.STENCIL_READ_ONLY_OPTIMAL, (NONE_STORE, NONE_STORE)),
    ],
)
def test_stencil_that_may_be_written_is_stored(stencil: int, operations: tuple[int, int]) -> None:
    stream = Stream()
    image, out = stream.image((8, 8, 1), D32_S8), stream.buffer(256)
    refer = passes.refer(0, VkImageLayout.DEPTH_READ_ONLY_OPTIMAL)
    refer["pNext"] = struct("VkAttachmentReferenceStencilLayout", stencilLayout=stencil)
    found = stored_by_pass(stream, image, out, passes.subpass([], depth=refer))
    assert found is not None
    [edit] = found.edits()
    [described] = edit.after.args["pCreateInfo"]["pAttachments"]
    assert (described["storeOp"], described["stencilStoreOp"]) == operations


def test_an_attachment_that_a_later_subpass_resolves_into_is_stored() -> None:
    stream = Stream()
    image, out = stream.image((8, 8, 1), D32_S8), stream.buffer(256)
    target = passes.refer(0, VkImageLayout.DEPTH_STENCIL_ATTACHMENT_OPTIMAL)
    read = passes.subpass([], depth=passes.refer(0, READ_ONLY))
    assert stored_by_pass(stream, image, out, read, passes.subpass([], depth_resolve=(target, 1, 1))) is None


def fragments_read_what_fragments_stored(inside: bool) -> Stream:
    """Two draws with a by-region barrier between them, for a storage buffer; one render pass instance or two."""
    stream = Stream()
    _, view = drawing.color_target(stream)
    buffer = stream.buffer(256)
    stores = drawing.pipeline(stream, "store_words.frag", vertex="fullscreen.vert")
    reads = drawing.pipeline(stream, "stored_word_color.frag", vertex="fullscreen.vert")
    (src_stages, src_access), (dst_stages, dst_access) = (
        scope(each) for each in ("FRAGMENT_SHADER/SHADER_STORAGE_WRITE", "FRAGMENT_SHADER/SHADER_STORAGE_READ")
    )
    held = struct(
        "VkBufferMemoryBarrier2",
        srcStageMask=src_stages,
        srcAccessMask=src_access,
        dstStageMask=dst_stages,
        dstAccessMask=dst_access,
        srcQueueFamilyIndex=IGNORED,
        dstQueueFamilyIndex=IGNORED,
        buffer=buffer,
        offset=0,
        size=256,
    )
    info = struct("VkDependencyInfo", dependencyFlags=VkDependency.BY_REGION, pBufferMemoryBarriers=[held])
    stream.begin()
    drawing.bind_descriptors(stream, (7, buffer))
    drawing.render(stream, view)
    drawing.bind(stream, stores)
    drawing.draw(stream)
    if not inside:
        stream.cmd("EndRendering")
    stream.cmd("PipelineBarrier2", pDependencyInfo=info)
    if not inside:
        drawing.render(stream, view)
    drawing.bind(stream, reads)
    drawing.draw(stream)
    stream.cmd("EndRendering")
    stream.submit()
    return stream


def test_a_barrier_by_region_gets_to_hold_for_all_of_the_framebuffer() -> None:
    found = mended(fragments_read_what_fragments_stored(inside=False))
    edited = edits(found)
    assert set(edited) == {"edited vkCmdPipelineBarrier2"}
    assert edited["edited vkCmdPipelineBarrier2"].after.args["pDependencyInfo"]["dependencyFlags"] == 0


def test_a_barrier_inside_of_an_instance_keeps_its_region() -> None:
    stream = fragments_read_what_fragments_stored(inside=True)
    kept = [each for each in mend(stream.blocks).applied.blocks if isinstance(each, Call)]
    barriers = [each for each in kept if each.name == "vkCmdPipelineBarrier2"]
    assert VkDependency.BY_REGION in [each.args["pDependencyInfo"]["dependencyFlags"] for each in barriers]


def test_a_transition_by_region_gets_to_hold_for_all_of_the_framebuffer() -> None:
    stream = Stream()
    image, view = drawing.color_target(stream)
    _, other = drawing.color_target(stream)
    draws = drawing.pipeline(stream, vertex="fullscreen.vert")
    samples = drawing.pipeline(stream, "sample_color.frag", vertex="fullscreen.vert")
    stream.begin()
    drawing.bind_descriptors(stream, (1, view))
    drawing.render(stream, view)
    drawing.bind(stream, draws)
    drawing.draw(stream)
    stream.cmd("EndRendering")
    drawn, sampled = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE", "FRAGMENT_SHADER/SHADER_READ"
    transition(stream, image, (passes.COLOR_LAYOUT, GENERAL), drawn, sampled)
    barrier = stream.blocks[-1]
    assert isinstance(barrier, Call)
    barrier.args["dependencyFlags"] = VkDependency.BY_REGION
    drawing.render(stream, other)
    drawing.bind(stream, samples)
    drawing.draw(stream)
    stream.cmd("EndRendering")
    stream.submit()
    edited = edits(mended(stream))
    assert set(edited) == {"edited vkCmdPipelineBarrier"}
    assert edited["edited vkCmdPipelineBarrier"].after.args["dependencyFlags"] == 0
