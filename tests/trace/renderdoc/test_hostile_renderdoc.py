"""Captures of RenderDoc that are broken, or ask for more than they are: one line each, and never more memory."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

from tests.support.renderdoc_captures import RELY, SHAPES, changed, copied, read
from vkharness.check import Analysis
from vkharness.findings import UserError
from vkharness.trace import expanded_room
from vkharness.trace.calls import CUT_OFF, Call
from vkharness.trace.codec import load
from vkharness.trace.work_budget import OverBudget

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


def test_layouts_in_another_form_are_left_out(tmp_path: Path) -> None:
    path = changed(tmp_path, RELY)
    archive = path.with_suffix("")
    with zipfile.ZipFile(archive) as opened:
        files = {each.filename: opened.read(each) for each in opened.infolist()}
    text = path.read_text(encoding="utf-8")
    number = re.search(r'Beginning of Capture.*?<buffer byteLength="\d+">(\d+)<', text, re.DOTALL)
    assert number is not None
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in files.items():
            made.writestr(name, data[:-4] + b"\1\0\0\0" if name == f"{int(number[1]):06}" else data)
    blocks, notes = read(path)
    assert any("layouts" in note for note in notes)
    assert Analysis().follow(blocks).verdict == "clean"
