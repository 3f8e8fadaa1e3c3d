"""Fragment shading rate attachments and fragment density maps: what draws read of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import drawing, passes
from tests.support.streams import GENERAL, Stream, struct
from vkharness.agreement import agreement
from vkharness.check import Analysis
from vkharness.spec.enums import VkFormat
from vkharness.trace.calls import Call

RATE_READ = "FRAGMENT_SHADING_RATE_ATTACHMENT_FRAGMENT_SHADING_RATE_ATTACHMENT_READ"
DENSITY_READ = "FRAGMENT_DENSITY_PROCESS_EXT_FRAGMENT_DENSITY_MAP_READ_EXT"
R8, RG8 = VkFormat.R8_UINT, VkFormat.R8G8_UNORM
RATE_STAGE, RATE_ACCESS = 0x400000, 0x800000


def rate_target(stream: Stream, layers: int = 1) -> tuple[int, int]:
    """(image, view) of 4 by 4 texels, each for 2 by 2 pixels."""
    image = stream.image((4, 4, 1), R8, array=layers)
    return image, passes.view(stream, image, R8, layers=(0, layers))


def density_target(stream: Stream, flags: int = 1) -> tuple[int, int]:
    """(image, view) of a map of 4 by 4 texels. `flags` are those of the view, 1 for a map that the device reads."""
    image = stream.image((4, 4, 1), RG8)
    view = passes.view(stream, image, RG8)
    made = next(each for each in reversed(stream.blocks) if isinstance(each, Call) and "ImageView" in each.name)
    made.args["pCreateInfo"]["flags"] = flags
    return image, view


def with_rate(view: int, texel: int = 2) -> dict[str, Any]:
    """VkRenderingFragmentShadingRateAttachmentInfoKHR."""
    size = {"width": texel, "height": texel}
    return struct(
        "VkRenderingFragmentShadingRateAttachmentInfoKHR",
        imageView=view,
        imageLayout=GENERAL,
        shadingRateAttachmentTexelSize=size,
    )


def with_density(view: int) -> dict[str, Any]:
    """VkRenderingFragmentDensityMapAttachmentInfoEXT."""
    return struct("VkRenderingFragmentDensityMapAttachmentInfoEXT", imageView=view, imageLayout=GENERAL)


def rendering(stream: Stream, chain: dict[str, Any], area: dict[str, Any] | None = None, **pipeline: Any) -> None:
    """Begins commands in rendering with this chain, with a pipeline."""
    made = drawing.pipeline(stream, **pipeline)
    _, view = drawing.color_target(stream)
    stream.begin()
    drawing.render(stream, view, area=area)
    begun = stream.blocks[-1]
    assert isinstance(begun, Call)
    begun.args["pRenderingInfo"]["pNext"] = chain
    drawing.bind(stream, made)


class TestShadingRates:
    def test_a_draw_reads_the_texels_of_the_render_area(self) -> None:
        stream = Stream()
        image, view = rate_target(stream)
        rendering(stream, with_rate(view), passes.rect((3, 2), (1, 2)))
        found = drawing.seen(stream, drawing.draw(stream))
        assert [each for each in found if each[0] == image] == [(image, RATE_READ, ((4, 6),))]

    def test_a_draw_that_makes_no_fragments_reads_nothing(self) -> None:
        stream = Stream()
        image, view = rate_target(stream)
        rendering(stream, with_rate(view), discard=True)
        assert image not in {each for each, _, _ in drawing.seen(stream, drawing.draw(stream))}

    def test_a_draw_that_writes_nothing_reads_the_rate(self) -> None:
        stream = Stream()
        image, view = rate_target(stream)
        rendering(stream, with_rate(view), colors=[drawing.blend(write=0)])
        assert drawing.seen(stream, drawing.draw(stream)) == [(image, RATE_READ, ((0, 16),))]

    def test_the_clear_of_attachments_reads_no_rate(self) -> None:
        stream = Stream()
        image, view = rate_target(stream)
        rendering(stream, with_rate(view))
        clear = struct("VkClearAttachment", aspectMask=1)
        region = {"rect": passes.rect((8, 8)), "baseArrayLayer": 0, "layerCount": 1}
        at = stream.cmd("ClearAttachments", pAttachments=[clear], pRects=[region])
        assert image not in {each for each, _, _ in drawing.seen(stream, at)}

    @pytest.mark.parametrize(
        ("masks", "expected"), [((RATE_STAGE, RATE_ACCESS), []), ((0x80, 0x20), ["READ_AFTER_WRITE"])]
    )
    def test_what_writes_the_rate_comes_before(self, masks: tuple[int, int], expected: list[str]) -> None:
        stream = Stream()
        image, view = rate_target(stream)
        made = drawing.pipeline(stream)
        _, color = drawing.color_target(stream)
        stream.begin()
        place = struct("VkImageSubresourceRange", aspectMask=1, levelCount=1, layerCount=1)
        stream.cmd("ClearColorImage", image=image, imageLayout=GENERAL, pRanges=[place])
        barrier = struct(
            "VkMemoryBarrier2", srcStageMask=0x1000, srcAccessMask=0x1000, dstStageMask=masks[0], dstAccessMask=masks[1]
        )
        stream.cmd("PipelineBarrier2", pDependencyInfo=struct("VkDependencyInfo", pMemoryBarriers=[barrier]))
        drawing.render(stream, color)
        begun = stream.blocks[-1]
        assert isinstance(begun, Call)
        begun.args["pRenderingInfo"]["pNext"] = with_rate(view)
        drawing.bind(stream, made)
        drawing.draw(stream)
        stream.cmd("EndRendering")
        stream.submit()
        mirror = Analysis().follow(stream.blocks)
        assert [each.hazard for each in mirror.findings] == expected and not mirror.unmodelled
        assert agreement(stream.blocks).disagreements == ()

    @pytest.mark.parametrize("count", [1, 2])
    def test_a_subpass_reads_its_rate_and_neither_loads_nor_stores_it(self, count: int) -> None:
        """A single layer stands for all of them."""
        stream = Stream()
        image, view = rate_target(stream, count)
        color, color_view = drawing.color_target(stream, 2)
        held = struct(
            "VkFragmentShadingRateAttachmentInfoKHR",
            pFragmentShadingRateAttachment=passes.refer(1, GENERAL),
            shadingRateAttachmentTexelSize={"width": 2, "height": 2},
        )
        subpass = passes.subpass([passes.refer(0)])
        subpass["pNext"] = held
        described = [passes.described(), passes.described(R8, initial=GENERAL, final=GENERAL)]
        passed = passes.render_pass(stream, described, [subpass])
        frame = passes.framebuffer(stream, passed, [color_view, view], drawing.SIZE, 2)
        made = drawing.pipeline(stream)
        stream.begin()
        begin = passes.begin_pass(stream, passed, frame, passes.rect(drawing.SIZE))
        drawing.bind(stream, made)
        at = drawing.draw(stream)
        end = passes.end_pass(stream)
        assert [each for each in drawing.seen(stream, at) if each[0] == image] == [
            (image, RATE_READ, ((0, 16 * count),))
        ]
        for command in (begin, end):
            assert image not in {each for each, _, _ in drawing.seen(stream, command)}
        assert color in {each for each, _, _ in drawing.seen(stream, begin)}


class TestDensityMaps:
    def test_a_draw_reads_a_dynamic_map_as_a_whole(self) -> None:
        stream = Stream()
        image, view = density_target(stream)
        rendering(stream, with_density(view), passes.rect((2, 2)))
        found = drawing.seen(stream, drawing.draw(stream))
        assert [each for each in found if each[0] == image] == [(image, DENSITY_READ, ((0, 16),))]

    def test_a_map_that_the_host_reads_is_named(self) -> None:
        stream = Stream()
        _, view = density_target(stream, flags=0)
        rendering(stream, with_density(view))
        at = len(stream.blocks) - 1
        assert drawing.unmodelled(stream, at) == [
            "a fragment density map that the host reads while commands are recorded"
        ]

    @pytest.mark.parametrize("flags", [0, 1])
    def test_the_map_of_a_render_pass(self, flags: int) -> None:
        stream = Stream()
        image, view = density_target(stream, flags)
        _, color = drawing.color_target(stream)
        reference = {"attachment": 1, "layout": GENERAL}
        described = [passes.described(), passes.described(RG8, initial=GENERAL, final=GENERAL)]
        passed = passes.render_pass(stream, described, [passes.subpass([passes.refer(0)])])
        created = next(each for each in reversed(stream.blocks) if isinstance(each, Call) and "RenderPass" in each.name)
        created.args["pCreateInfo"]["pNext"] = struct(
            "VkRenderPassFragmentDensityMapCreateInfoEXT", fragmentDensityMapAttachment=reference
        )
        frame = passes.framebuffer(stream, passed, [color, view], drawing.SIZE)
        made = drawing.pipeline(stream)
        stream.begin()
        begin = passes.begin_pass(stream, passed, frame, passes.rect(drawing.SIZE))
        drawing.bind(stream, made)
        at = drawing.draw(stream)
        assert [each for each in drawing.seen(stream, at) if each[0] == image] == [(image, DENSITY_READ, ((0, 16),))]
        assert len(drawing.unmodelled(stream, begin)) == 1 - flags


def test_a_secondary_reads_the_rate_of_the_instance_that_executes_it() -> None:
    stream = Stream()
    image, view = rate_target(stream)
    made = drawing.pipeline(stream, colors=[drawing.blend(write=0)])
    inner = stream.begin(level=1)
    begun = stream.blocks[-1]
    assert isinstance(begun, Call)
    begun.args["pBeginInfo"]["flags"] = 2
    begun.args["pBeginInfo"]["pInheritanceInfo"]["pNext"] = struct(
        "VkCommandBufferInheritanceRenderingInfo", pColorAttachmentFormats=[37]
    )
    drawing.bind(stream, made)
    at = drawing.draw(stream)
    stream.end()
    rendering(stream, with_rate(view))
    stream.cmd("ExecuteCommands", pCommandBuffers=[inner])
    stream.cmd("EndRendering")
    place = struct("VkImageSubresourceRange", aspectMask=1, levelCount=1, layerCount=1)
    stream.cmd("ClearColorImage", image=image, imageLayout=GENERAL, pRanges=[place])
    stream.submit()
    (found,) = Analysis().follow(stream.blocks).findings
    assert (found.hazard, found.prior.call, found.prior_access) == ("WRITE_AFTER_READ", at, f"SYNC_{RATE_READ}")
