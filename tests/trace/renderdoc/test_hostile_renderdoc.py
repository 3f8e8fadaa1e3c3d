"""Captures of RenderDoc that are broken, or ask for more than they are: one line each, and never more memory."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.renderdoc_captures import RELY, SHAPES, changed, copied, read, with_layouts
from vkharness.check import Analysis
from vkharness.findings import UserError
from vkharness.spec.enums import VkImageLayout
from vkharness.trace import expanded_room
from vkharness.trace.calls import CUT_OFF, Block, Call
from vkharness.trace.codec import load
from vkharness.trace.initial_contents import FIRST_ID
from vkharness.trace.renderdoc import frame_start
from vkharness.trace.work_budget import A_BLOCK, OverBudget

HEAD = b'<?xml version="1.0"?>\n<rdc>'
ENTITIES = b'<?xml version="1.0"?>\n<!DOCTYPE rdc [<!ENTITY a "aaaaaaaaaa">]>\n<rdc>&a;</rdc>'


def unread(path: Path) -> list[str]:
    return [f"{each.name}: {each.unread}" for each in load(path) if isinstance(each, Call) and each.unread]


def test_a_document_type_is_refused(tmp_path: Path) -> None:
    text = SHAPES.read_bytes()
    inside = text.replace(b"<rdc>", b"<rdc>\n<!DOCTYPE rdc [<!ENTITY a 'b'>]>", 1)
    for data in (inside, text.replace(b"\n<rdc>", ENTITIES[21:], 1)):
        with pytest.raises(UserError):
            load(copied(tmp_path, SHAPES, lambda _, data=data: data))  # type: ignore[misc]  # the data of this round


def test_a_capture_of_another_api_is_refused(tmp_path: Path) -> None:
    path = changed(tmp_path, SHAPES, ('<driver id="8">Vulkan</driver>', '<driver id="2">D3D12</driver>'))
    with pytest.raises(UserError, match=r"a capture of 'D3D12', and not of Vulkan$"):
        load(path)


def test_what_is_cut_off_is_said(tmp_path: Path) -> None:
    path = copied(tmp_path, SHAPES, lambda data: data[: data.index(b'name="vkCmdCopyBuffer"')])
    blocks, notes = read(path)
    assert isinstance(blocks[-1], Call) and blocks[-1].name == CUT_OFF
    assert any("ends in the middle: line" in note for note in notes)
    assert Analysis().follow(blocks).verdict == "unknown"


@pytest.mark.parametrize("data", [HEAD, HEAD + b"</rdc>", HEAD + b"<chunks></chunks></rdc>", HEAD + b"<a>" * 70])
def test_a_file_without_a_call_is_refused(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing to read"):
        load(copied(tmp_path, SHAPES, lambda _: data))


def test_a_tag_or_text_without_end_is_given_up(tmp_path: Path) -> None:
    for filler, told in (
        (b"<a b='" + b"x" * (3 << 20), "a tag of more than"),
        (b"x" * (17 << 20), "a text of more than"),
    ):
        with pytest.raises(UserError, match=told):
            load(copied(tmp_path, SHAPES, lambda _, filler=filler: HEAD + filler))  # type: ignore[misc]  # of this round


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('<uint name="x" typename="uint32_t" width="4" important="true">1</uint>', "", "vkCmdDispatch: block"),
        (
            '"fillSize" typename="uint64_t" width="8">256<',
            '"fillSize" typename="uint64_t" width="8">many<',
            "vkCmdFill",
        ),
        ('typename="VkPipelineBindPoint" string="VK_PIPELINE_BIND_POINT_COMPUTE">1<', "><", "vkCmdBind"),
        ('byteLength="8"', 'byteLength="9"', "000006 of many_shapes.zip has 8 bytes where the capture says 9"),
        ('byteLength="8">6<', 'byteLength="8">7000<', "'7000' is no file of many_shapes.zip"),
        ('byteLength="8">6<', 'byteLength="8">../x<', "'../x' is no file of many_shapes.zip"),
    ],
)
def test_a_value_that_cannot_be_understood_costs_its_call(old: str, new: str, told: str, tmp_path: Path) -> None:
    found = unread(changed(tmp_path, SHAPES, (old, new)))
    assert found and told in found[0]


def test_bytes_that_expand_out_of_proportion_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expanded_room, "AT_FIRST", 1 << 15)
    monkeypatch.setattr(expanded_room, "A_BYTE", 0)
    with pytest.raises(
        OverBudget, match=r"many_shapes\.zip\.xml: block 24: out of proportion to the size of its stream"
    ):
        load(SHAPES)


@pytest.mark.parametrize("keep", [0, 10, 21, 22, 400])
def test_a_broken_zip_is_named_and_the_calls_are_read(keep: int, tmp_path: Path) -> None:
    path = changed(tmp_path, RELY)
    archive = path.with_suffix("")
    archive.write_bytes(archive.read_bytes()[:keep])
    blocks, notes = read(path)
    assert any("frames_that_rely.zip cannot be read: " in note for note in notes)
    assert len(blocks) > 40


def test_a_zip_that_is_a_link_out_of_the_folder_is_not_opened(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    path = changed(inside, RELY)
    path.with_suffix("").rename(tmp_path / "elsewhere.zip")
    path.with_suffix("").symlink_to(tmp_path / "elsewhere.zip")
    _, notes = read(path)
    assert any("a link out of the folder" in note for note in notes)


OF_THE_IMAGE = struct.pack("<QIIIIIIIIIIQ", 136, 2, 2, 1, 16, 16, 1, 37, 1, 0, 0, 1)
"""What the capture says of its one image before the image's parts, of which there is one."""
IN_A_LAYOUT = struct.pack("<12I", 1, 0, 2, 0, 2, 0, 1, 0, 0, 6, 6, 3)


def parts(data: bytes, several: list[bytes]) -> bytes:
    """Layouts of images, in which those of the image are others."""
    assert OF_THE_IMAGE + IN_A_LAYOUT in data
    return data.replace(
        OF_THE_IMAGE + IN_A_LAYOUT, OF_THE_IMAGE[:-8] + len(several).to_bytes(8, "little") + b"".join(several)
    )


def transitions(blocks: list[Block]) -> list[list[dict[str, Any]]]:
    """The barriers of images that each call before the frame has."""
    made = [each for each in blocks if isinstance(each, Call) and each.name == "vkCmdPipelineBarrier"]
    return [each.args["pImageMemoryBarriers"] for each in made if each.args["commandBuffer"] >= FIRST_ID]


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:-4] + b"\1\0\0\0",
        lambda data: data[:-1],
        lambda data: data + b"\0",
        lambda data: parts(data, [IN_A_LAYOUT] * 17),
        lambda data: parts(data, [IN_A_LAYOUT] * 5),
        lambda data: data.replace(OF_THE_IMAGE, OF_THE_IMAGE[:-8] + b"\xff" * 8),
    ],
)
def test_layouts_in_another_form_are_left_out(change: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """The image then has its contents, in the layout of the copy, and not the one that the capture says."""
    first = transitions(load(RELY))
    assert [[each["newLayout"] for each in several] for several in first] == [
        [VkImageLayout.TRANSFER_DST_OPTIMAL],
        [VkImageLayout.TRANSFER_SRC_OPTIMAL],
    ]
    blocks, notes = read(with_layouts(tmp_path, RELY, change))
    assert any("layouts that could not be read" in note for note in notes)
    left = {each["newLayout"] for several in transitions(blocks) for each in several}
    assert left == {VkImageLayout.TRANSFER_DST_OPTIMAL}


def test_all_parts_of_an_image_are_laid_out_by_one_call(tmp_path: Path) -> None:
    words = struct.unpack("<12I", IN_A_LAYOUT)
    several = [struct.pack("<12I", 1, level, 1, layer, 1, *words[5:]) for level in range(2) for layer in range(2)]
    blocks, _ = read(with_layouts(tmp_path, RELY, lambda data: parts(data, several)))
    _, after = transitions(blocks)
    places = [(each["subresourceRange"]["baseMipLevel"], each["subresourceRange"]["baseArrayLayer"]) for each in after]
    assert places == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert Analysis().follow(blocks).verdict == "clean"


def test_each_part_of_an_image_is_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, str]] = []
    monkeypatch.setattr(frame_start, "spend_reading", lambda *each: asked.append(each))
    load(with_layouts(tmp_path, RELY, lambda data: parts(data, [IN_A_LAYOUT] * 4)))
    assert (4 * A_BLOCK, "parts of images") in asked


@pytest.mark.parametrize(("member", "count"), [("arrayLayers", "4294967295"), ("mipLevels", "4294967295")])
def test_an_image_of_more_levels_than_it_has_contents_has_none(member: str, count: str, tmp_path: Path) -> None:
    path = changed(
        tmp_path,
        RELY,
        (
            f'name="{member}" typename="uint32_t" width="4">2<',
            f'name="{member}" typename="uint32_t" width="4">{count}<',
        ),
    )
    blocks, _ = read(path)
    assert not [each for each in blocks if isinstance(each, Call) and each.name == "vkCmdCopyBufferToImage"]
