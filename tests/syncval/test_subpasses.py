"""Render pass instances judged: transitions that no dependency is about, and which subpasses race with which."""

from __future__ import annotations

import pytest

from tests.support import drawing, passes
from tests.support.passes import LOAD, NONE_STORE, READ_ONLY, depends, described, rect, refer, subpass
from tests.support.streams import COLOR, DEPTH, Stream, struct
from vkharness.check import Analysis
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL
from vkharness.spec.masks import scope

SIZE = (8, 8)
AREA = rect(SIZE)
AT = 1
WRITTEN = scope("COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE")
USED = scope("COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE")
COPIED = scope("COPY/TRANSFER_READ")


def target(stream: Stream) -> tuple[int, int]:
    """(image, view) of a colour attachment."""
    image = stream.image((*SIZE, 1))
    return image, passes.view(stream, image)


def moved(stream: Stream, image: int, src: str, dst: str, aspects: int = COLOR) -> None:
    """An image barrier that keeps the layout GENERAL."""
    before, after = scope(src), scope(dst)
    barrier = struct(
        "VkImageMemoryBarrier2",
        srcStageMask=before[0],
        srcAccessMask=before[1],
        dstStageMask=after[0],
        dstAccessMask=after[1],
        oldLayout=AT,
        newLayout=AT,
        image=image,
        subresourceRange=struct("VkImageSubresourceRange", aspectMask=aspects, levelCount=1, layerCount=1),
    )
    info = struct("VkDependencyInfo", pImageMemoryBarriers=[barrier])
    stream.cmd("PipelineBarrier2", pDependencyInfo=info)


def hazards(stream: Stream) -> list[tuple[str, str, str]]:
    found = Analysis().follow(stream.blocks).findings
    return [(each.hazard, each.place.command, each.prior.command) for each in found]


def clear(stream: Stream, *indices: int) -> int:
    """vkCmdClearAttachments of all of some colour attachments."""
    return passes.clear_attachments(stream, [(COLOR, each) for each in indices], [(AREA, 0, 1)])


@pytest.mark.parametrize(
    ("dst", "expected"), [("ALL_COMMANDS/MEMORY_READ", 0), ("COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_READ", 1)]
)
def test_unused_attachments_are_moved_after_what_comes_before_everything(dst: str, expected: int) -> None:
    """No subpass dependency is about them; NONE as a source stands for TOP_OF_PIPE
    (rules.md#none-before-a-transition-is-the-top-of-the-pipe)."""
    stream = Stream()
    (_, view), (other, other_view) = target(stream), target(stream)
    made = [described(), described(initial=AT, final=READ_ONLY)]
    passed = passes.render_pass(stream, made, [subpass([refer(0)])])
    frame = passes.framebuffer(stream, passed, [view, other_view], SIZE)
    stream.begin()
    stream.clear(other, (0, 0, 0, 0), layout=AT)
    moved(stream, other, "CLEAR/TRANSFER_WRITE", dst)
    passes.begin_pass(stream, passed, frame, AREA)
    passes.end_pass(stream)
    assert hazards(stream) == [("WRITE_AFTER_WRITE", "vkCmdEndRenderPass2", "vkCmdClearColorImage")] * expected


@pytest.mark.parametrize("shared", [False, True])
def test_a_final_transition_follows_the_store_which_follows_all_subpasses(shared: bool) -> None:
    """No dependency joins the subpasses. The store operation of the last one that uses attachment 0 "happens-after any
    recorded command which accesses the sample via that attachment"."""
    stream = Stream()
    (_, view), (_, other_view) = target(stream), target(stream)
    made = [described(load=LOAD, initial=AT, final=READ_ONLY), described(load=LOAD, initial=AT, final=AT)]
    second = [refer(0, AT), refer(1, AT)] if shared else [refer(1, AT)]
    leave = [depends(each, VK_SUBPASS_EXTERNAL, (*WRITTEN, *COPIED)) for each in (0, 1)]
    passed = passes.render_pass(stream, made, [subpass([refer(0, AT)]), subpass(second)], leave)
    frame = passes.framebuffer(stream, passed, [view, other_view], SIZE)
    stream.begin()
    passes.begin_pass(stream, passed, frame, AREA)
    clear(stream, 0)
    passes.next_subpass(stream)
    passes.end_pass(stream)
    assert hazards(stream) == []


@pytest.mark.parametrize(
    ("dst", "expected"),
    [
        ("EARLY_FRAGMENT_TESTS|LATE_FRAGMENT_TESTS", []),
        ("EARLY_FRAGMENT_TESTS", []),
        ("LATE_FRAGMENT_TESTS", ["vkCmdBeginRendering"]),
        ("COPY", ["vkCmdBeginRendering"]),
    ],
)
def test_what_is_visible_to_a_load_is_what_the_tests_read(dst: str, expected: list[str]) -> None:
    """The load operation reads in the early tests and "defines the initial values" for tests in either stage."""
    stream = Stream()
    image, view = drawing.depth_target(stream)
    made = drawing.pipeline(
        stream, None, vertex="fullscreen.vert", colors=None, depth_stencil=drawing.depth_tests(depth=True)
    )
    stream.begin()
    stream.clear_depth(image, 0.5, 0, DEPTH, layout=AT)
    accesses = "TRANSFER_READ" if dst == "COPY" else "DEPTH_STENCIL_ATTACHMENT_READ"
    moved(stream, image, "CLEAR/TRANSFER_WRITE", f"{dst}/{accesses}", DEPTH)
    passes.begin_rendering(stream, AREA, depth=passes.attached(view, LOAD, NONE_STORE))
    drawing.bind(stream, made)
    drawing.draw(stream)
    assert [command for _, command, _ in hazards(stream)] == expected
