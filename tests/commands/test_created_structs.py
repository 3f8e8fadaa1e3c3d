"""Structs in the chains of calls that make objects: those that decide where an access is, and those that make a verdict
unknown. Written from the text of the specification: few drivers here have the extensions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import drawing
from tests.support.glsl_dispatch import Bound, GlslDispatch
from tests.support.interpreted import InterpretedStream
from tests.support.streams import GENERAL, UNDEFINED, extent, layers, struct
from tests.syncval.test_growth import calls_of
from vkharness.agreement import agreement
from vkharness.check import Analysis
from vkharness.commands.resources.aliasing import MOST_TOLD
from vkharness.commands.resources.imported_memory import ImportedMemory
from vkharness.spec.enums import VK_REMAINING_3D_SLICES_EXT, VkDescriptorType, VkFormat, VkImageAspect, VkImageCreate

STORES = """
layout(binding = 0, rgba8) writeonly uniform image3D target;
void main() { imageStore(target, ivec3(0, 0, 1), vec4(1)); }
"""
LOADS = """
layout(binding = 0) uniform sampler3D source;
layout(binding = 1) buffer Target { vec4 value; };
void main() { value = textureLod(source, vec3(0.5), 0); }
"""
SAMPLES = """
layout(binding = 0) uniform sampler2D source;
layout(binding = 1) buffer Target { vec4 value; };
void main() { value = textureLod(source, vec2(0.5), 0); }
"""
NV12 = VkFormat.G8_B8R8_2PLANE_420_UNORM
COMBINED, STORAGE_IMAGE, STORAGE = (
    VkDescriptorType.COMBINED_IMAGE_SAMPLER,
    VkDescriptorType.STORAGE_IMAGE,
    VkDescriptorType.STORAGE_BUFFER,
)


def verdict(stream: InterpretedStream) -> str:
    """The verdict of a stream of which both judges say the same."""
    assert agreement(stream.blocks).disagreements == ()
    return Analysis().follow(stream.blocks).verdict


def viewed(stream: InterpretedStream, image: int, kind: int, levels: int, chain: dict[str, Any]) -> int:
    """A view of an image with a struct in its chain."""
    part = struct("VkImageSubresourceRange", aspectMask=1, levelCount=levels, layerCount=1)
    info = struct("VkImageViewCreateInfo", image=image, viewType=kind, format=37, subresourceRange=part, pNext=chain)
    return stream.make("vkCreateImageView", "pView", info)


def download(stream: InterpretedStream, image: int, slice: int = 0, mip: int = 0) -> None:
    """Copies a texel of a slice."""
    region = struct(
        "VkBufferImageCopy",
        imageSubresource=layers(mip=mip),
        imageOffset={"x": 0, "y": 0, "z": slice},
        imageExtent=extent((1, 1, 1)),
    )
    target = stream.buffer(64)
    stream.cmd("CopyImageToBuffer", srcImage=image, srcImageLayout=GENERAL, dstBuffer=target, pRegions=[region])


@pytest.mark.parametrize(("slice", "found"), [(1, "clean"), (3, "hazards")])
@pytest.mark.parametrize("count", [2, VK_REMAINING_3D_SLICES_EXT])
def test_a_storage_image_has_the_slices_of_its_view(
    stream: InterpretedStream, tmp_path: Path, count: int, slice: int, found: str
) -> None:
    """ "Shader accesses using a Z coordinate of 0 will access the depth slice corresponding to sliceOffset"."""
    image = stream.image((8, 8, 8), kind=2)
    chain = struct("VkImageViewSlicedCreateInfoEXT", sliceOffset=2, sliceCount=count)
    shader = GlslDispatch(stream, tmp_path, STORES, [Bound(STORAGE_IMAGE, viewed(stream, image, 2, 1, chain))])
    stream.begin()
    stream.transition(image, UNDEFINED, GENERAL)
    shader.record((1, 1, 1))
    download(stream, image, slice)
    stream.submit()
    assert verdict(stream) == found


def test_other_descriptors_see_all_slices(stream: InterpretedStream, tmp_path: Path) -> None:
    """ "For access using any other descriptor type, the contents [...] are ignored"."""
    image = stream.image((8, 8, 8), kind=2)
    seen = viewed(stream, image, 2, 1, struct("VkImageViewSlicedCreateInfoEXT", sliceOffset=2, sliceCount=2))
    bound = [Bound(COMBINED, seen), Bound(STORAGE, stream.buffer(64))]
    shader = GlslDispatch(stream, tmp_path, LOADS, bound)
    stream.begin()
    stream.transition(image, UNDEFINED, GENERAL)
    stream.clear(image, (1, 1, 1, 1), layout=GENERAL)
    shader.record((1, 1, 1))
    stream.submit()
    assert verdict(stream) == "hazards"


@pytest.mark.parametrize(("least", "found"), [(0.9, "hazards"), (1.0, "clean"), (1.5, "clean")])
def test_no_sample_reads_below_the_least_level(
    stream: InterpretedStream, tmp_path: Path, least: float, found: str
) -> None:
    """An implementation may take the whole part of minLod."""
    image = stream.image((8, 8, 1), mips=3)
    seen = viewed(stream, image, 1, 3, struct("VkImageViewMinLodCreateInfoEXT", minLod=least))
    bound = [Bound(COMBINED, seen), Bound(STORAGE, stream.buffer(64))]
    shader = GlslDispatch(stream, tmp_path, SAMPLES, bound)
    stream.begin()
    stream.transition(image, UNDEFINED, GENERAL)
    stream.clear(image, (1, 1, 1, 1), mip=0, layout=GENERAL)
    shader.record((1, 1, 1))
    stream.submit()
    assert verdict(stream) == found


@pytest.mark.parametrize(("layer", "found"), [(1, "clean"), (0, "hazards")])
def test_flags_of_an_image_may_lie_in_its_chain(stream: InterpretedStream, layer: int, found: str) -> None:
    """Two images with the alias bit, of the same memory, are one: other layers are apart."""
    memory = stream.memory()
    chain = struct("VkImageCreateFlags2CreateInfoKHR", flags=VkImageCreate.ALIAS)
    first, second = (stream.image((8, 8, 1), array=2, memory=memory, pNext=chain) for _ in range(2))
    stream.begin()
    stream.transition(first, UNDEFINED, GENERAL)
    stream.clear(first, (1, 1, 1, 1), layout=GENERAL)
    stream.image_to_buffer(second, stream.buffer(256), (8, 8, 1), layers(layer=layer), layout=GENERAL)
    stream.submit()
    assert verdict(stream) == found


@pytest.mark.parametrize(("plane", "found"), [(0, "clean"), (1, "hazards")])
@pytest.mark.parametrize("barrier", [False, True])
def test_planes_of_a_disjoint_image_overlap_what_is_on_their_memory(
    stream: InterpretedStream, plane: int, found: str, barrier: bool
) -> None:
    """Plane 1 is written, and the buffer on the memory of a plane is read."""
    image = stream.image((8, 8, 1), NV12, flags=VkImageCreate.DISJOINT)
    memories = stream.memory(4096), stream.memory(4096)
    aspects = VkImageAspect.PLANE_0, VkImageAspect.PLANE_1
    binds = [
        struct(
            "VkBindImageMemoryInfo",
            image=image,
            memory=memory,
            pNext=struct("VkBindImagePlaneMemoryInfo", planeAspect=aspect),
        )
        for memory, aspect in zip(memories, aspects, strict=True)
    ]
    stream.call("vkBindImageMemory2", device=stream.device, pBindInfos=binds)
    shared = stream.buffer(4096, memories[plane])
    region = struct("VkBufferImageCopy", imageSubresource=layers(aspects[1]), imageExtent=extent((4, 4, 1)))
    source, target = stream.buffer(64), stream.buffer(64)
    stream.begin()
    stream.transition(image, UNDEFINED, GENERAL)
    stream.barrier()
    stream.cmd("CopyBufferToImage", srcBuffer=source, dstImage=image, dstImageLayout=GENERAL, pRegions=[region])
    if barrier:
        stream.barrier()
    stream.copy(shared, target, 64)
    stream.submit()
    assert verdict(stream) == ("clean" if barrier else found)


def imported(stream: InterpretedStream, name: str, **said: Any) -> int:
    """Memory of 4,096 bytes that is imported."""
    made, chain = stream.id(), struct(name, handleType=said.pop("handleType", 0x80), **said)
    info = struct("VkMemoryAllocateInfo", allocationSize=4096, pNext=chain)
    stream.call("vkAllocateMemory", device=stream.device, pAllocateInfo=info, pMemory=made)
    return made


HOST, WINDOWS = "VkImportMemoryHostPointerInfoEXT", "VkImportMemoryWin32HandleInfoKHR"


@pytest.mark.parametrize(
    ("name", "member", "first", "second", "found"),
    [
        (HOST, "pHostPointer", 0x10000, 0x10000, "unknown"),
        (HOST, "pHostPointer", 0x10000, 0x10FFF, "unknown"),
        (HOST, "pHostPointer", 0x10000, 0x11000, "clean"),
        (HOST, "pHostPointer", None, 0x11000, "clean"),
        (WINDOWS, "handle", 0x44, 0x44, "unknown"),
        (WINDOWS, "handle", 0x44, 0x45, "clean"),
        (WINDOWS, "handle", 0, 0x45, "clean"),
    ],
)
def test_memory_that_may_be_the_same_makes_the_verdict_unknown(
    stream: InterpretedStream, name: str, member: str, first: int | None, second: int, found: str
) -> None:
    source, other = (stream.buffer(256, imported(stream, name, **{member: each})) for each in (first, second))
    stream.begin()
    stream.fill(source, 1)
    stream.copy(other, stream.buffer(256), 256)
    stream.submit()
    assert verdict(stream) == found


def test_memory_that_was_freed_is_no_other_one(stream: InterpretedStream) -> None:
    gone = imported(stream, HOST, pHostPointer=0x10000)
    stream.call("vkFreeMemory", device=stream.device, memory=gone)
    imported(stream, HOST, pHostPointer=0x10000)
    assert verdict(stream) == "clean"


def test_each_byte_of_the_host_counts_how_often_it_is_imported() -> None:
    imports = ImportedMemory()

    def known(memory: int, address: int) -> bool:
        chain = struct(HOST, handleType=0x80, pHostPointer=address)
        return bool([*imports.allocated(memory, struct("VkMemoryAllocateInfo", allocationSize=4096, pNext=chain))])

    assert [known(1, 0x10000), known(2, 0x10800)] == [False, True]
    imports.freed(1)
    assert not known(3, 0xF800), "the second half is of the one that was freed"
    assert known(4, 0x11000)
    for memory in (2, 3, 4):
        imports.freed(memory)
    assert not known(5, 0x10800)


def test_an_import_costs_the_same_beside_many() -> None:
    """Those of pointers, and those of handles."""
    imports = ImportedMemory()

    def take(memory: int) -> None:
        for name, said in ((HOST, {"pHostPointer": 8192 * memory}), (WINDOWS, {"handle": memory})):
            chain = struct(name, handleType=0x80, **said)
            info = struct("VkMemoryAllocateInfo", allocationSize=4096, pNext=chain)
            assert [*imports.allocated(memory, info)] == []

    costs = []
    for memory in range(1, 1_001):
        cost = calls_of(lambda memory=memory: take(memory))  # type: ignore[misc]
        costs.append(cost)
    assert costs[999] <= 2 * costs[1]


def test_sizes_of_images_that_nobody_makes_are_forgotten(stream: InterpretedStream) -> None:
    analysis = Analysis()
    for width in range(1, 4 * MOST_TOLD):
        asked = struct(
            "VkDeviceImageMemoryRequirements", pCreateInfo=struct("VkImageCreateInfo", extent=extent((width, 1, 1)))
        )
        answer = struct("VkMemoryRequirements2", memoryRequirements=struct("VkMemoryRequirements", size=width))
        stream.call("vkGetDeviceImageMemoryRequirements", device=stream.device, pInfo=asked, pMemoryRequirements=answer)
    analysis.follow(stream.blocks)
    assert MOST_TOLD <= len(analysis._interpreter.objects.aliasing.told) <= 2 * MOST_TOLD


@pytest.mark.parametrize(("enabled", "found"), [(1, "unknown"), (0, "clean")])
def test_coverage_that_takes_the_place_of_a_colour_is_named(
    stream: InterpretedStream, enabled: int, found: str
) -> None:
    """A draw writes the attachment then, though its shader has no output."""
    image, seen = drawing.color_target(stream)
    made = drawing.pipeline(stream, drawing.declares(), vertex="fullscreen.vert")
    stream.begin()
    stream.transition(image, UNDEFINED, GENERAL)
    drawing.render(stream, seen)
    drawing.bind(stream, made)
    stream.cmd("SetCoverageToColorEnableNV", coverageToColorEnable=enabled)
    drawing.draw(stream)
    stream.cmd("EndRendering")
    stream.image_to_buffer(image, stream.buffer(256), (8, 8, 1), layout=GENERAL)
    stream.submit()
    assert verdict(stream) == found


@pytest.mark.parametrize("plane", [0, VkImageAspect.PLANE_1])
@pytest.mark.parametrize("asks", ["before", "after", "never"])
def test_the_size_that_a_device_tells_counts(stream: InterpretedStream, asks: str, plane: int) -> None:
    """The buffer lies behind the texels, and in the bytes that the device says the image takes."""
    form = NV12 if plane else VkFormat.R8G8B8A8_UNORM
    flags = VkImageCreate.DISJOINT if plane else 0
    told = struct("VkMemoryRequirements2", memoryRequirements=struct("VkMemoryRequirements", size=4096, alignment=1))
    info = struct(
        "VkImageCreateInfo",
        flags=flags,
        imageType=1,
        format=form,
        extent=extent((8, 8, 1)),
        mipLevels=1,
        arrayLayers=1,
        samples=1,
    )
    if asks == "before":
        asked = struct("VkDeviceImageMemoryRequirements", pCreateInfo=info, planeAspect=plane)
        name = "vkGetDeviceImageMemoryRequirements"
        stream.call(name, device=stream.device, pInfo=asked, pMemoryRequirements=told)
    image, memory = stream.make("vkCreateImage", "pImage", info), stream.memory(8192)
    if asks == "after":
        of_plane = struct("VkImagePlaneMemoryRequirementsInfo", planeAspect=plane) if plane else None
        asked = struct("VkImageMemoryRequirementsInfo2", image=image, pNext=of_plane)
        name = "vkGetImageMemoryRequirements2"
        stream.call(name, device=stream.device, pInfo=asked, pMemoryRequirements=told)
    of_plane = struct("VkBindImagePlaneMemoryInfo", planeAspect=plane) if plane else None
    bind = struct("VkBindImageMemoryInfo", image=image, memory=memory, pNext=of_plane)
    stream.call("vkBindImageMemory2", device=stream.device, pBindInfos=[bind])
    region = struct("VkBufferImageCopy", imageSubresource=layers(plane or 1), imageExtent=extent((4, 4, 1)))
    source = stream.buffer(64)
    stream.begin()
    stream.transition(image, UNDEFINED, GENERAL)
    stream.cmd("CopyBufferToImage", srcBuffer=source, dstImage=image, dstImageLayout=GENERAL, pRegions=[region])
    stream.fill(stream.buffer(256, memory, 1024), 1)
    stream.submit()
    assert verdict(stream) == ("clean" if asks == "never" else "hazards")
