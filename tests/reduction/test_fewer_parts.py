"""Reduction leaves out descriptors that no shader uses, and parts of render passes, and what is left can run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.drawing import bind, bind_vertices, blend, color_target, depth_target, draw, pipeline
from tests.support.passes import (
    WHITE,
    attached,
    begin_pass,
    begin_rendering,
    depends,
    described,
    end_pass,
    framebuffer,
    next_subpass,
    rect,
    refer,
    render_pass,
    subpass,
    view,
)
from tests.support.streams import DEPTH, GENERAL, R8G8B8A8, STENCIL, UNDEFINED, Stream, struct
from vkharness.check import Analysis
from vkharness.device.drivers import find_driver
from vkharness.device.process import Worker
from vkharness.reduction.reduce import Reduction, reduce
from vkharness.reduction.rendering_parts import fewer_rendering_attachments
from vkharness.spec.enums import VK_ATTACHMENT_UNUSED, VkRendering
from vkharness.trace.calls import Call
from vkharness.trace.codec import save

SIZE = (8, 8)
COLOR_OUTPUT, COLOR_WRITE = 0x400, 0x100


def reduced(stream: Stream) -> Reduction:
    """The stream reduced to its first finding."""
    return reduce(stream.blocks, next(each for each in Analysis().follow(stream.blocks).findings if each.counts))


def calls(small: Reduction, name: str) -> list[dict[str, Any]]:
    """The arguments of the calls whose names begin so."""
    return [block.args for block in small.blocks if isinstance(block, Call) and block.name.startswith(name)]


def can_run(small: Reduction, folder: Path) -> bool:
    """Whether lavapipe runs what is left."""
    save(folder / "small.jsonl", small.blocks)
    arguments = {"trace": str(folder / "small.jsonl"), "mode": "serial", "device": "lavapipe"}
    with Worker(find_driver("lavapipe")) as worker:
        answer = worker.call("vkharness.judged_replay:replay_job", arguments)
    return isinstance(answer, dict) and bool(answer["surfaces"])


def test_a_descriptor_that_no_shader_uses_goes_with_its_buffer(tmp_path: Path) -> None:
    stream = Stream()
    a, b, unused = (stream.buffer(64) for _ in range(3))
    dispatch = stream.compute("copy_words", [a, b])
    for block in stream.blocks:
        assert isinstance(block, Call)
        if block.name == "vkCreateDescriptorSetLayout":
            several = block.args["pCreateInfo"]["pBindings"]
            several.append({**several[0], "binding": 2})
            block.args["pCreateInfo"]["bindingCount"] = 3
        elif block.name == "vkUpdateDescriptorSets":
            writes = block.args["pDescriptorWrites"]
            more = {**writes[0], "dstBinding": 2, "pBufferInfo": [{**writes[0]["pBufferInfo"][0], "buffer": unused}]}
            block.args["pDescriptorWrites"] = [more, *writes]
            block.args["descriptorWriteCount"] = 3
    stream.begin()
    stream.fill(a, 7)
    dispatch.run()
    stream.submit()
    small = reduced(stream)
    [update] = calls(small, "vkUpdateDescriptorSets")
    assert [each["dstBinding"] for each in update["pDescriptorWrites"]] == [0, 1], "the shader writes to the second one"
    assert [each["pBuffer"] for each in calls(small, "vkCreateBuffer")] == [a, b]
    assert can_run(small, tmp_path)


def test_two_descriptors_of_one_buffer_stay_where_the_shader_uses_both() -> None:
    stream = Stream()
    a, b = stream.buffer(64), stream.buffer(64)
    dispatch = stream.compute("add_words", [a, a, b])
    stream.begin()
    stream.fill(b, 7)
    dispatch.run()
    stream.submit()
    update = [each for call in calls(reduced(stream), "vkUpdateDescriptorSets") for each in call["pDescriptorWrites"]]
    assert [each["dstBinding"] for each in update] == [0, 1, 2], "the judge sees one access of `a` either way"


def test_each_query_whose_result_a_copy_waits_for_stays_written() -> None:
    stream = Stream()
    results = stream.buffer(64)
    info = struct("VkQueryPoolCreateInfo", queryType=0, queryCount=4)
    pool = stream.make("vkCreateQueryPool", "pQueryPool", info)
    stream.begin()
    stream.cmd("ResetQueryPool", queryPool=pool, firstQuery=0, queryCount=4)
    for query in range(3):
        stream.cmd("BeginQuery", queryPool=pool, query=query, flags=0)
        stream.cmd("EndQuery", queryPool=pool, query=query)
    stream.fill(results, 7)
    ask = {"dstBuffer": results, "dstOffset": 0, "stride": 8, "flags": 3}
    stream.cmd("CopyQueryPoolResults", queryPool=pool, firstQuery=0, queryCount=2, **ask)
    stream.submit()
    assert [each["query"] for each in calls(reduced(stream), "vkCmdEndQuery")] == [0, 1], "or a replay waits for ever"


def passes(form: int, kept: int) -> tuple[Stream, list[int]]:
    """Two subpasses, of which the first one uses both attachments and the second one only the second. A copy reads
    the attachment `kept` with no dependency behind the instance."""
    stream = Stream()
    images = [stream.image((*SIZE, 1)) for _ in range(2)]
    out = stream.buffer(1024)
    masks = (COLOR_OUTPUT, COLOR_WRITE, COLOR_OUTPUT, COLOR_WRITE)
    subpasses = [subpass([refer(0), refer(1)]), subpass([refer(1)])]
    made = render_pass(stream, [described(final=GENERAL)] * 2, subpasses, [depends(0, 1, masks)], form)
    frame = framebuffer(stream, made, [view(stream, each) for each in images], SIZE)
    stream.begin()
    begin_pass(stream, made, frame, rect(SIZE), [WHITE, WHITE], form)
    if form == 2:
        next_subpass(stream)
        end_pass(stream)
    else:
        stream.cmd("NextSubpass", contents=0)
        stream.cmd("EndRenderPass")
    stream.image_to_buffer(images[kept], out, (*SIZE, 1), layout=GENERAL)
    stream.submit()
    return stream, images


@pytest.mark.parametrize("form", [1, 2])
@pytest.mark.parametrize("kept", [0, 1])
def test_one_subpass_and_one_attachment_are_left(form: int, kept: int, tmp_path: Path) -> None:
    stream, images = passes(form, kept)
    small = reduced(stream)
    [made] = calls(small, "vkCreateRenderPass")
    info = made["pCreateInfo"]
    assert (info["attachmentCount"], info["subpassCount"], info["dependencyCount"]) == (1, 1, 0)
    [left] = info["pSubpasses"]
    assert 0 in [each["attachment"] for each in left["pColorAttachments"]]
    assert {each["attachment"] for each in left["pColorAttachments"]} <= {0, VK_ATTACHMENT_UNUSED}
    [frame] = calls(small, "vkCreateFramebuffer")
    assert len(frame["pCreateInfo"]["pAttachments"]) == 1
    assert [each["pImage"] for each in calls(small, "vkCreateImage") if "pImage" in each] == [images[kept]]
    assert not calls(small, "vkCmdNextSubpass")
    assert can_run(small, tmp_path)


def test_a_subpass_in_which_something_is_needed_stays() -> None:
    """The finding is between two clears in two subpasses."""
    stream = Stream()
    image = stream.image((*SIZE, 1))
    made = render_pass(stream, [described(final=GENERAL)], [subpass([refer(0)]), subpass(), subpass([refer(0)])])
    frame = framebuffer(stream, made, [view(stream, image)], SIZE)
    cleared = [{"aspectMask": 1, "colorAttachment": 0, "clearValue": WHITE}]
    where = [{"rect": rect(SIZE), "baseArrayLayer": 0, "layerCount": 1}]
    stream.begin()
    begin_pass(stream, made, frame, rect(SIZE), [WHITE])
    stream.cmd("ClearAttachments", pAttachments=cleared, pRects=where)
    next_subpass(stream)
    next_subpass(stream)
    stream.cmd("ClearAttachments", pAttachments=cleared, pRects=where)
    end_pass(stream)
    stream.submit()
    findings = Analysis().follow(stream.blocks).findings
    wanted = next(each for each in findings if each.place.command == each.prior.command == "vkCmdClearAttachments")
    small = reduce(stream.blocks, wanted)
    [left] = calls(small, "vkCreateRenderPass")
    assert (left["pCreateInfo"]["subpassCount"], left["pCreateInfo"]["attachmentCount"]) == (2, 1)
    assert len(calls(small, "vkCmdNextSubpass")) == 1 and len(calls(small, "vkCmdClearAttachments")) == 2


def test_attachments_of_dynamic_rendering_that_the_finding_does_not_need_are_left_out(tmp_path: Path) -> None:
    """The finding is a copy from the first of two colours, beside a resolve, depth and stencil."""
    stream = Stream()
    (kept, seen), (resolved, other), (depth, depths) = color_target(stream), color_target(stream), depth_target(stream)
    many, out = stream.image((*SIZE, 1), samples=4), stream.buffer(1024)
    stream.begin()
    for image in (kept, resolved, many):
        stream.transition(image, UNDEFINED, GENERAL)
    stream.transition(depth, UNDEFINED, GENERAL, DEPTH | STENCIL)
    target = {"resolveMode": 2, "resolveImageView": other, "resolveImageLayout": GENERAL}
    colors = [attached(seen), attached(view(stream, many), **target)]
    begin_rendering(stream, rect(SIZE), colors, attached(depths), attached(depths))
    stream.cmd("EndRendering")
    stream.image_to_buffer(kept, out, (*SIZE, 1), layout=GENERAL)
    stream.submit()
    small = reduced(stream)
    [begun] = calls(small, "vkCmdBeginRendering")
    info = begun["pRenderingInfo"]
    assert [each["imageView"] for each in info["pColorAttachments"]] == [seen]
    assert (info["colorAttachmentCount"], info["pDepthAttachment"], info["pStencilAttachment"]) == (1, None, None)
    assert [each["pImage"] for each in calls(small, "vkCreateImage") if "pImage" in each] == [kept]
    assert can_run(small, tmp_path)


def test_pipelines_lose_the_format_of_an_attachment_that_is_left_out() -> None:
    stream = Stream()
    (dropped, one), (kept, other) = color_target(stream), color_target(stream)
    out = stream.buffer(1024)
    drawn = pipeline(stream, colors=[blend(), blend()], formats=[R8G8B8A8, R8G8B8A8])
    vertices = stream.buffer(64)
    stream.begin()
    for image in (dropped, kept):
        stream.transition(image, UNDEFINED, GENERAL)
    begin_rendering(stream, rect(SIZE), [attached(one), attached(other)])
    bind(stream, drawn)
    bind_vertices(stream, vertices)
    draw(stream)
    stream.cmd("EndRendering")
    stream.image_to_buffer(kept, out, (*SIZE, 1), layout=GENERAL)
    stream.submit()
    findings = Analysis().follow(stream.blocks).findings
    small = reduce(stream.blocks, next(each for each in findings if each.place.command == "vkCmdCopyImageToBuffer"))
    [begun] = calls(small, "vkCmdBeginRendering")
    assert [each["imageView"] for each in begun["pRenderingInfo"]["pColorAttachments"]] == [0, other]
    several = fewer_rendering_attachments(stream.blocks)
    formats = [
        block.args["pCreateInfos"][0]["pNext"]["pColorAttachmentFormats"]
        for edited in several
        for block in edited
        if isinstance(block, Call) and block.name == "vkCreateGraphicsPipelines"
    ]
    assert formats == [[0, R8G8B8A8], [R8G8B8A8, 0]]


def test_parts_of_a_suspended_instance_lose_the_same_attachments() -> None:
    stream = Stream()
    _, seen = color_target(stream)
    stream.begin()
    for flags in (VkRendering.SUSPENDING, VkRendering.RESUMING):
        begin_rendering(stream, rect(SIZE), [attached(seen)], flags=flags)
        stream.cmd("EndRendering")
    [edited] = fewer_rendering_attachments(stream.blocks)
    begun = [each.args for each in edited if isinstance(each, Call) and each.name == "vkCmdBeginRendering"]
    assert [each["pRenderingInfo"]["colorAttachmentCount"] for each in begun] == [0, 0]
