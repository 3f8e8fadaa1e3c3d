"""Contents of buffers and images where a trimmed capture begins."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.support.capture_files import CAPTURE, INIT_BUFFER, INIT_IMAGE, META, put_together, take_apart
from tests.support.capture_files import Block as Raw
from vkharness.check import Analysis
from vkharness.spec.enums import VkImageLayout
from vkharness.trace.calls import Block, Call, HostWrite
from vkharness.trace.codec import load
from vkharness.trace.initial_contents import FIRST_ID

WHOLE = load(CAPTURE)


def handle(name: str, key: str, number: int = 0) -> int:
    """A handle out of the capture, from the call of this name and number."""
    made: int = [each for each in WHOLE if isinstance(each, Call) and each.name == name][number].args[key]
    return made


DEVICE, BUFFER = handle("vkCreateDevice", "pDevice"), handle("vkCreateBuffer", "pBuffer", 1)
IMAGE, MEMORY = handle("vkCreateImage", "pImage"), handle("vkAllocateMemory", "pMemory")
TEXELS = bytes(range(256)) + bytes(range(64))
"""Of an image of 8 x 8 texels of 4 bytes, and of its second mip."""


def for_buffer(data: bytes, size: int | None = None) -> Raw:
    said = len(data) if size is None else size
    return Raw(META, struct.pack("<IQQQQ", INIT_BUFFER, 1, DEVICE, BUFFER, said) + data, 36)


def for_image(data: bytes, layout: int, *levels: int) -> Raw:
    head = struct.pack("<IQQQQIII", INIT_IMAGE, 1, DEVICE, IMAGE, len(data), 1, layout, len(levels))
    return Raw(META, head + struct.pack(f"<{len(levels)}Q", *levels) + data, 48 + 8 * len(levels))


def started_with(tmp_path: Path, *contents: Raw) -> tuple[list[Block], list[str]]:
    """The capture with these blocks before its first command buffer begins."""
    raw = take_apart(CAPTURE)
    first = next(each.index for each in WHOLE if isinstance(each, Call) and each.name == "vkBeginCommandBuffer")
    notes: list[str] = []
    return load(put_together(tmp_path / "c.gfxr", [*raw[:first], *contents, *raw[first:]], 1), notes), notes


def test_the_contents_of_a_buffer_are_those_of_its_memory(tmp_path: Path) -> None:
    blocks, notes = started_with(tmp_path, for_buffer(b"x" * 256))
    assert notes == []
    (held,) = [each for each in blocks if isinstance(each, HostWrite) and each.data == b"x" * 256]
    assert (held.memory, held.offset, held.initial) == (MEMORY, 4096, True)


def test_the_contents_of_an_image_are_copied_into_its_levels(tmp_path: Path) -> None:
    blocks, notes = started_with(tmp_path, for_image(TEXELS, VkImageLayout.GENERAL, 256, 64))
    assert notes == []
    calls = [each for each in blocks if isinstance(each, Call)]
    made = [each for each in calls if each.args.get("commandBuffer", 0) >= FIRST_ID]
    (copy,) = [each for each in made if each.name == "vkCmdCopyBufferToImage"]
    assert copy.args["srcBuffer"] >= FIRST_ID
    assert [each["bufferOffset"] for each in copy.args["pRegions"]] == [0, 256]
    assert [each["imageExtent"]["width"] for each in copy.args["pRegions"]] == [8, 4]
    barriers = [each.args["pImageMemoryBarriers"][0] for each in made if each.name == "vkCmdPipelineBarrier"]
    assert barriers[-1]["newLayout"] == VkImageLayout.GENERAL
    before, after = Analysis().follow(WHOLE), Analysis().follow(blocks)
    assert len(before.findings) == len(after.findings) and after.unmodelled == {}


def test_an_image_without_bytes_has_its_layout(tmp_path: Path) -> None:
    blocks, notes = started_with(tmp_path, for_image(b"", VkImageLayout.GENERAL))
    assert notes == []
    made = [each.name for each in blocks if isinstance(each, Call) and each.index not in {b.index for b in WHOLE}]
    assert "vkCmdCopyBufferToImage" not in made
    (barrier,) = [each for each in blocks if isinstance(each, Call) and each.name == "vkCmdPipelineBarrier"][:1]
    assert barrier.args["pImageMemoryBarriers"][0]["image"] == IMAGE


@pytest.mark.parametrize("block", [for_buffer(b"x", 1 << 40), for_buffer(b"xx", 400), Raw(META, b"\x07\0\1\0", 4)])
def test_contents_that_are_not_there_are_passed_over(tmp_path: Path, block: Raw) -> None:
    raw = [*take_apart(CAPTURE), block]
    notes: list[str] = []
    assert load(put_together(tmp_path / "c.gfxr", raw), notes) == WHOLE
    assert len(notes) == 1 and "contents that could not be read" in notes[0]
