"""Chunks of captures that lack values or have others than RenderDoc writes cost their call, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.renderdoc_captures import RELY, SHAPES, changed, copied, read
from vkharness.check import Analysis
from vkharness.trace.calls import Block, Call, HostWrite

MEMORY = '<ResourceId name="memory" typename="VkDeviceMemory" width="8" important="true">128<'
COHERENT = '"Internal::Coherent Mapped Memory Write"'
DEVICE = '<ResourceId name="device">9</ResourceId>'
BYTES = '<buffer name="MapData" byteLength="256">7</buffer>'


def with_chunk(folder: Path, chunk: str) -> Path:
    """A capture that has one more chunk, where its frame begins."""
    return copied(
        folder,
        RELY,
        lambda data: re.sub(
            rb"(Beginning of Capture.*?</chunk>)",
            lambda found: found[1] + chunk.encode(),
            data,
            count=1,
            flags=re.DOTALL,
        ),
    )


def unread(blocks: list[Block]) -> list[str]:
    return [f"{each.name}: {each.unread}" for each in blocks if isinstance(each, Call) and each.unread]


def written(blocks: list[Block]) -> list[HostWrite]:
    """What the host wrote in the frame."""
    return [each for each in blocks if isinstance(each, HostWrite) and not each.initial]


@pytest.mark.parametrize("name", ["foo", "big5", "hex", "utf-7", "utf-16", "idna", "rot13"])
def test_a_capture_is_utf_8_whatever_it_declares(name: str, tmp_path: Path) -> None:
    declared = f'<?xml version="1.0" encoding="{name}"?>'
    assert read(changed(tmp_path, SHAPES, ('<?xml version="1.0"?>', declared)))[0] == read(SHAPES)[0]


@pytest.mark.parametrize("number", ["", "zz", "9" * 30])
def test_memory_that_is_no_number_has_no_bytes(number: str, tmp_path: Path) -> None:
    blocks, notes = read(changed(tmp_path, RELY, (MEMORY, MEMORY.replace("128", number))))
    assert not written(blocks) and any("Coherent Mapped Memory Write" in note for note in notes)


@pytest.mark.parametrize("number", ["", "zz"])
def test_an_object_whose_number_is_none_is_not_given_contents(number: str, tmp_path: Path) -> None:
    every = re.findall("<ResourceId [^>]*>128<", RELY.read_text(encoding="utf-8"))
    blocks, notes = read(changed(tmp_path, RELY, *((each, each.replace(">128<", f">{number}<")) for each in {*every})))
    assert unread(blocks) and any("is no number of an object" in note for note in notes)


@pytest.mark.parametrize(
    "name",
    [
        "vkSetDebugUtilsObjectNameEXT",
        "vkUpdateDescriptorSetWithTemplate",
        "vkEnumeratePhysicalDevices",
        "vkCreateFence",
    ],
)
def test_a_chunk_of_too_few_values_costs_its_call(name: str, tmp_path: Path) -> None:
    blocks, notes = read(with_chunk(tmp_path, f'<chunk name="{name}"><ResourceId>129</ResourceId></chunk>'))
    assert len(blocks) >= len(read(RELY)[0])
    passed_over = f"1 queries passed over that cannot be read: {name}"
    assert any("it lacks values" in told for told in unread(blocks)) or any(passed_over in note for note in notes)


def test_a_queue_without_its_family_is_no_queue(tmp_path: Path) -> None:
    family = '<uint name="queueFamilyIndex" typename="uint32_t" width="4" important="true">0</uint>'
    blocks, notes = read(changed(tmp_path, RELY, (family, "")))
    assert all(each.args["queue"] for each in blocks if isinstance(each, Call) and each.name == "vkQueueSubmit")
    assert not unread(blocks) and any("cannot be read: vkGetDeviceQueue" in note for note in notes)
    Analysis().follow(blocks)


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("vkUnmapMemory", '<ResourceId name="mem">128</ResourceId>'),
        ("vkUnmapMemory2KHR", '<struct><ResourceId name="memory">128</ResourceId></struct>'),
    ],
)
def test_an_unmap_ends_the_mapping_and_has_the_bytes(name: str, of: str, tmp_path: Path) -> None:
    members = '<enum name="sType">1000271001</enum><null name="pNext"/><uint name="flags">0</uint>'
    chunk = f'<chunk name="{name}">{DEVICE}{of.replace("<struct>", "<struct>" + members)}<uint>0</uint>{BYTES}</chunk>'
    blocks, notes = read(with_chunk(tmp_path, chunk))
    assert not unread(blocks) and not any("could not be read" in note for note in notes)
    assert written(blocks)[0].data == b"\3\3\3\3"
    maps = [each.name for each in blocks if isinstance(each, Call) and "apMemory" in each.name]
    assert maps[-3:] == ["vkMapMemory", name, "vkMapMemory"]


def test_the_bytes_of_the_host_are_those_of_a_buffer(tmp_path: Path) -> None:
    """A value behind them, as a later RenderDoc may write one, is not taken for them."""
    whole = re.compile(rb"(Coherent Mapped Memory Write.*?)(<buffer [^>]*>7</buffer>)", re.DOTALL)
    more = copied(tmp_path, RELY, lambda data: whole.sub(rb"\1\2<uint>5</uint>", data, count=1))
    assert written(read(more)[0]) == written(read(RELY)[0])
    none = copied(tmp_path, RELY, lambda data: whole.sub(rb"\1<uint>5</uint>", data, count=1))
    blocks, notes = read(none)
    assert not written(blocks) and any("it lacks the bytes that the host wrote" in note for note in notes)
