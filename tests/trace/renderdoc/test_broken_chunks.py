"""Chunks of captures that lack values or have others than RenderDoc writes cost their call, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.renderdoc_captures import PRESENT, RELY, SHAPES, changed, copied, read
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


def test_a_queue_without_its_family_makes_the_verdict_unknown(tmp_path: Path) -> None:
    family = '<uint name="queueFamilyIndex" typename="uint32_t" width="4" important="true">0</uint>'
    blocks = read(changed(tmp_path, RELY, (family, "")))[0]
    assert all(each.args["queue"] for each in blocks if isinstance(each, Call) and each.name == "vkQueueSubmit")
    (told,) = unread(blocks)
    assert told.startswith("vkGetDeviceQueue: ") and told.endswith("it lacks values that RenderDoc writes")
    assert any(each.startswith("vkGetDeviceQueue") for each in Analysis().follow(blocks).unmodelled)


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


def images(several: list[tuple[int, int, int]]) -> bytes:
    """Chunks for the images of swapchains: each with swapchain, index and image."""
    chunk = '<chunk name="vkGetSwapchainImagesKHR"><ResourceId>10</ResourceId><ResourceId>{}</ResourceId>'
    chunk += "<uint>{}</uint><ResourceId>{}</ResourceId></chunk>"
    return "".join(chunk.format(*each) for each in several).encode()


def with_images(folder: Path, several: bytes) -> list[Block]:
    """The blocks of a capture whose chunks for images of swapchains are others."""
    pattern = re.compile(rb'(<chunk [^>]*name="vkGetSwapchainImagesKHR".*?</chunk>\s*)+', re.DOTALL)
    return read(copied(folder, PRESENT, lambda data: pattern.sub(lambda _: several, data, count=1)))[0]


def told_images(blocks: list[Block]) -> list[list[int]]:
    """The images of each call that asks for them."""
    called = [each for each in blocks if isinstance(each, Call) and each.name == "vkGetSwapchainImagesKHR"]
    called = [each for each in called if not each.unread]
    return [each.args["pSwapchainImages"] for each in called]


@pytest.mark.parametrize(
    ("several", "count", "place"),
    [
        ([(127, index, 129 + index) for index in range(4)], 4, 0),
        ([(127, index, 129 + index) for index in (3, 2, 1, 0)], 4, 0),
        ([(127, 2, 129), (127, 1, 130)], 3, 2),
        ([(127, 3, 129)], 4, 3),
        ([(127, 0, 129), (127, 1, 130), (127, 0, 129)], 2, 0),
    ],
)
def test_images_of_a_swapchain_lie_at_their_index(
    several: list[tuple[int, int, int]], count: int, place: int, tmp_path: Path
) -> None:
    """Whatever the order of their chunks is, and where the frame does not use all of them. It uses 129 first."""
    blocks = with_images(tmp_path, images(several))
    (found,) = told_images(blocks)
    used = next(each for each in blocks if isinstance(each, Call) and each.name == "vkCmdPipelineBarrier")
    assert len({*found}) == count
    assert found[place] == used.args["pImageMemoryBarriers"][0]["image"]


def test_each_swapchain_has_its_own_images(tmp_path: Path) -> None:
    blocks = with_images(tmp_path, images([(127, 0, 129), (7000, 0, 131), (127, 1, 130)]))
    assert [len(each) for each in told_images(blocks)] == [2, 1]


def test_a_chunk_of_renderdocs_own_ends_the_images(tmp_path: Path) -> None:
    one, own = images([(127, 0, 129)]), b'<chunk name="Internal::Other"></chunk>'
    assert [len(each) for each in told_images(with_images(tmp_path, one + own + one))] == [1, 1]


def test_images_at_the_end_of_a_capture_are_told(tmp_path: Path) -> None:
    last = images([(127, 0, 129)]) + b"</chunks></rdc>"
    assert [len(each) for each in told_images(with_images(tmp_path, last))] == [1]


def test_an_index_that_no_swapchain_has_costs_its_chunk(tmp_path: Path) -> None:
    blocks = with_images(tmp_path, images([(127, 0, 129), (127, 4_000_000_000, 130)]))
    assert [len(each) for each in told_images(blocks)] == [1]
    (told,) = unread(blocks)
    assert told.startswith("vkGetSwapchainImagesKHR: ") and told.endswith("image '4000000000' of a swapchain")


@pytest.mark.parametrize(
    "several",
    [
        b"",
        images([(127, 1, 130)]),
        images([(127, 99, 129)]),
        images([(127, 0, 129)]).replace(b"<ResourceId>129</ResourceId>", b""),
    ],
)
def test_an_image_of_a_swapchain_whose_chunk_is_lost_is_never_clean(several: bytes, tmp_path: Path) -> None:
    blocks = with_images(tmp_path, several)
    analysis = Analysis().follow(blocks)
    assert analysis.verdict == "unknown"
    assert any(re.search(r"VkImage \d+, which no call made,", each) for each in analysis.unmodelled)
