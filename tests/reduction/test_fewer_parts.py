"""Reduction leaves out descriptors that no shader uses, and parts of render passes, and what is left can run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.check import Analysis
from harness.device.drivers import find_driver
from harness.device.process import Worker
from harness.reduction.reduce import Reduction, reduce
from harness.spec.enums import VK_ATTACHMENT_UNUSED
from harness.trace.calls import Call
from harness.trace.codec import save
from tests.support.passes import (
    WHITE,
    begin_pass,
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
from tests.support.streams import GENERAL, Stream

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
        answer = worker.call("harness.report.replays:replay_job", arguments)
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
