"""Captures of RenderDoc: what is found in them is what is found in the programs that they were made of."""

from __future__ import annotations

import os
import select
from collections import Counter
from pathlib import Path

import pytest

from tests.support.capture_files import CAPTURE
from tests.support.renderdoc_captures import DATA, PRESENT, RELY, SHAPES, changed, read
from vkharness.check import Analysis
from vkharness.computed.expected_bytes import compute
from vkharness.findings import UserError
from vkharness.spec.enums import VkImageLayout
from vkharness.trace.calls import Block, Call, HostWrite
from vkharness.trace.codec import load, read_header
from vkharness.trace.initial_contents import FIRST_ID
from vkharness.trace.renderdoc import conversion

TOO_EARLY = (
    '<enum name="srcStageMask" typename="VkPipelineStageFlags" string="VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT">1</enum>',
    '<enum name="srcStageMask" typename="VkPipelineStageFlags">4096</enum>',
)
"""The stage that does not wait for the acquire, and the one that does."""


def hazards(blocks: list[Block]) -> Counter[tuple[str, str, str]]:
    found = Analysis().follow(blocks).findings
    return Counter((str(each.hazard), each.place.command, each.prior.command) for each in found)


def calls(blocks: list[Block], name: str) -> list[Call]:
    return [each for each in blocks if isinstance(each, Call) and each.name == name]


def test_the_hazards_are_those_of_another_tools_capture_of_the_same_program() -> None:
    blocks, _ = read(SHAPES)
    of_gfxreconstruct = hazards(load(CAPTURE))
    assert hazards(blocks) == of_gfxreconstruct and len(of_gfxreconstruct) > 2
    analysis = Analysis().follow(blocks)
    assert not analysis.unmodelled and analysis.verdict == "hazards"


def test_calls_have_the_parameters_that_vulkan_names() -> None:
    blocks, _ = read(SHAPES)
    (update,) = calls(blocks, "vkCmdUpdateBuffer")
    assert update.args["pData"] == b"abcdefg\0" and update.args["dataSize"] == 8
    (barrier,) = calls(blocks, "vkCmdPipelineBarrier2")
    (image,) = barrier.args["pDependencyInfo"]["pImageMemoryBarriers"]
    assert image["srcQueueFamilyIndex"] == 0xFFFFFFFF
    assert [each.args["pAllocateInfo"]["commandBufferCount"] for each in calls(blocks, "vkAllocateCommandBuffers")] == [
        1,
        1,
    ]
    (module,) = calls(blocks, "vkCreateShaderModule")
    assert module.args["pCreateInfo"]["pCode"][:4] == b"\x03\x02\x23\x07"


def test_each_call_has_a_number_of_its_own() -> None:
    for capture in (SHAPES, PRESENT, RELY):
        blocks, _ = read(capture)
        assert [each.index for each in blocks] == list(range(1, len(blocks) + 1))


def test_what_the_host_wrote_are_the_bytes_that_changed() -> None:
    blocks, _ = read(RELY)
    (written,) = [each for each in blocks if isinstance(each, HostWrite) and not each.initial]
    assert (written.offset, written.data) == (0, b"\3\3\3\3")
    before = [each for each in blocks if isinstance(each, HostWrite) and each.memory == written.memory and each.initial]
    assert [each.data[:4] for each in before] == [b"\2\2\2\2"]


def test_a_frame_knows_what_the_one_before_left() -> None:
    """The image that an earlier frame cleared is read through the descriptors that were written then."""
    blocks, _ = read(RELY)
    assert Analysis().follow(blocks).verdict == "clean"
    layouts = [each.args["pImageMemoryBarriers"][0]["newLayout"] for each in calls(blocks, "vkCmdPipelineBarrier")[:2]]
    assert layouts == [VkImageLayout.TRANSFER_DST_OPTIMAL, VkImageLayout.TRANSFER_SRC_OPTIMAL]
    clear = bytes([51, 102, 153, 204])
    copied = [each.data for each in blocks if isinstance(each, HostWrite) and each.memory >= FIRST_ID]
    assert copied == [clear * 640]
    (create,) = calls(blocks, "vkCreateFence")
    assert create.args["pCreateInfo"]["flags"] == 1
    timeline = calls(blocks, "vkCreateSemaphore")[0].args["pCreateInfo"]["pNext"]
    assert timeline["initialValue"] == 3


def test_the_bytes_that_a_frame_leaves_are_computed() -> None:
    blocks, _ = read(RELY)
    buffers = [each.args["pBuffer"] for each in calls(blocks, "vkCreateBuffer") if each.args["pBuffer"] < FIRST_ID]
    cells = compute(blocks).cells
    target, copy = (cells[buffer, None] for buffer in buffers[1:])
    texels = bytes([51, 102, 153, 204]) * 64
    assert target.data.tobytes() == b"\3\3\3\3" + texels[4:] and target.known.all()
    assert copy.data.tobytes() == texels and copy.known.all()


def test_an_image_is_acquired_before_it_is_presented(tmp_path: Path) -> None:
    blocks, notes = read(PRESENT)
    assert hazards(blocks) == {("WRITE_AFTER_READ", "vkCmdPipelineBarrier", "vkAcquireNextImageKHR"): 3}
    assert len(calls(blocks, "vkAcquireNextImageKHR")) == 3
    assert any("made up, since RenderDoc keeps none: 3, of which 0" in note for note in notes)
    mended, _ = read(changed(tmp_path, PRESENT, TOO_EARLY))
    assert Analysis().follow(mended).verdict == "clean"


def test_without_the_zip_the_bytes_are_unknown(tmp_path: Path) -> None:
    path = changed(tmp_path, RELY)
    path.with_suffix("").unlink()
    blocks, notes = read(path)
    assert any("frames_that_rely.zip, which has the bytes, is not beside it" in note for note in notes)
    assert Analysis().follow(blocks).verdict == "unknown"


def test_a_file_has_no_header_of_ours() -> None:
    assert read_header(SHAPES) == {}


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A `renderdoccmd` that does what a script says, and nothing else on the path but a shell's."""
    tool = folder / "renderdoccmd"
    tool.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.defpath}")


def test_a_capture_as_it_is_is_converted_by_renderdocs_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capture = DATA / "two_submits.rdc"
    stem = SHAPES.with_suffix("").with_suffix("")
    install(tmp_path, monkeypatch, f'[ "$3" = {capture} ] && cp {stem}.zip.xml "$9" && cp {stem}.zip "${{9%.xml}}"')
    blocks, notes = read(capture)
    assert blocks == read(SHAPES)[0]
    assert all(note.startswith(f"{capture}: ") for note in notes)


def test_a_capture_that_renderdoc_cannot_convert_is_refused_in_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "echo first; echo it is broken >&2; exit 1")
    with pytest.raises(UserError, match=r"two_submits\.rdc: renderdoccmd cannot convert it: it is broken$"):
        load(DATA / "two_submits.rdc")


@pytest.mark.parametrize("says", ["", "head -c 20000000 /dev/zero; echo; "])
def test_what_a_failing_tool_has_made_is_not_read(says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stem = SHAPES.with_suffix("").with_suffix("")
    made = f'cp {stem}.zip.xml "$9"; cp {stem}.zip "${{9%.xml}}"'
    install(tmp_path, monkeypatch, f"{made}; {says}echo half of it is lost; exit 3")
    with pytest.raises(UserError, match=r"renderdoccmd cannot convert it: half of it is lost$"):
        load(DATA / "two_submits.rdc")


def test_a_tool_that_takes_too_long_is_killed_with_what_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of the pipe that all of them hold closes when the last one has ended."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    install(tmp_path, monkeypatch, f"exec 3>{pipe}; tail -f /dev/null >/dev/null 2>&1 & wait")
    monkeypatch.setattr(conversion, "SECONDS", 0.2)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(UserError, match="renderdoccmd gave no answer in"):
        load(DATA / "two_submits.rdc")
    os.set_blocking(reader, True)
    assert select.select([reader], [], [], 15)[0] and os.read(reader, 1) == b""
    os.close(reader)


def test_without_the_tool_a_line_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"run `renderdoccmd convert -f two_submits\.rdc -c zip\.xml") as error:
        load(DATA / "two_submits.rdc")
    assert "\n" not in str(error.value)
