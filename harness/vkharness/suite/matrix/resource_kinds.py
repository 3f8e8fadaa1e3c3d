"""The resources of the matrix: a part that both operations access, another part, and something unrelated.

The last two are there so that a barrier can name the wrong one. Adding a resource is adding one entry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vkharness.rig.core import RigBuffer, RigImage
from vkharness.rig.requirements import PRESENTS
from vkharness.rig.rig import Rig
from vkharness.rig.swapchains import RigSwapchain
from vkharness.spec.enums import VkImageAspect, VkImageCreate, VkImageUsage

BUFFER, IMAGE, FLOATS, WORDS, LINE, VOLUME, SAMPLES = "buffer", "image", "floats", "words", "line", "volume", "samples"
DEPTH, STENCIL, ASPECT, HOST_IMAGE, SWAPCHAIN = "depth", "stencil", "aspect", "host image", "swapchain"
"""Kinds of resources: operations say which ones they work on. Images of kind IMAGE are two-dimensional and rgba8;
FLOATS have another format of floats or fractions, WORDS one of integers; a LINE has one dimension, a VOLUME three. An
ASPECT is depth or stencil of an image that has both. No attachment is one, since a load or store of one aspect may
write the other (rules.md#writes-to-one-aspect-may-rewrite-the-other)."""
EXTENT = (16, 16, 1)
BYTES = 256
"""The size in bytes of the part of a buffer that operations access."""
IMAGE_BYTES = 4096
"""At least the bytes of the texels of any part of an image."""
COLOR_USAGE, DEPTH_USAGE = 0x1F, 0x27
"""Transfers, sampling and attachments; for colour storage as well."""
ATTACHED_USAGE = COLOR_USAGE & ~VkImageUsage.STORAGE


@dataclass(slots=True)
class ResourcePart:
    """Bytes of a buffer, or one subresource of an image, that both operations of a pair access."""

    rig: Rig
    resource: RigBuffer | RigImage
    offset: int = 0
    mip: int = 0
    layer: int = 0
    aspects: int = 0
    """VkImageAspectFlags of the subresource; 0 for all that the image has."""
    samples: int = 1
    chain: tuple[RigSwapchain, int] | None = None
    """The swapchain and the index of its image."""

    @property
    def buffer(self) -> RigBuffer:
        """The buffer."""
        assert isinstance(self.resource, RigBuffer)
        return self.resource

    @property
    def image(self) -> RigImage:
        """The image."""
        assert isinstance(self.resource, RigImage)
        return self.resource

    @property
    def aspect(self) -> int:
        """VkImageAspectFlags of the subresource."""
        return self.aspects or self.image.aspects

    @property
    def region(self) -> dict[str, Any]:
        """The subresource as copies take it."""
        return {"mip": self.mip, "layer": self.layer, "aspect": self.aspect}

    @property
    def subresources(self) -> dict[str, Any]:
        """The subresource as clears and barriers take it."""
        return {"mips": (self.mip, 1), "layers": (self.layer, 1), "aspects": self.aspect}

    @property
    def extent(self) -> tuple[int, int, int]:
        """Width, height and depth of the subresource in texels."""
        width, height, depth = (max(1, each >> self.mip) for each in self.image.extent)
        return width, height, depth

    @property
    def area(self) -> tuple[int, int, int, int]:
        """The subresource as a render area."""
        return 0, 0, self.extent[0], self.extent[1]

    def view(self) -> Any:
        """An image view of the subresource."""
        return self.rig.view(self.image, aspect=self.aspect, mips=(self.mip, 1), layers=(self.layer, 1))

    def barrier(self) -> dict[str, Any]:
        """Options of a barrier over exactly this part."""
        if isinstance(self.resource, RigBuffer):
            return {"buffer": self.resource, "offset": self.offset, "size": BYTES}
        return {"image": self.resource, **self.subresources}


@dataclass(frozen=True, slots=True)
class ResourceKind:
    """A kind of resource. `make` gives the part that is accessed; `elsewhere` another part of the same resource, when
    it has one; `needs` are the extensions that it takes."""

    name: str
    kind: str
    make: Callable[[Rig], ResourcePart]
    elsewhere: Callable[[ResourcePart], dict[str, Any]] | None = None
    needs: tuple[str, ...] = ()

    def half(self, part: ResourcePart) -> dict[str, Any] | None:
        """Options of a barrier over the second half of the part: parameters of indirect commands are in the first."""
        if self.kind != BUFFER:
            return None
        return {"buffer": part.buffer, "offset": part.offset + BYTES // 2, "size": BYTES // 2}

    def unrelated(self, rig: Rig) -> dict[str, Any]:
        """Options of a barrier over something else of this kind."""
        return RESOURCES[self.name].make(rig).barrier()


def _bound_behind(rig: Rig) -> ResourcePart:
    """A buffer that does not begin where its memory does."""
    whole = rig.buffer(16 * BYTES)
    return ResourcePart(rig, rig.buffer(BYTES, whole.memory, 8 * BYTES))


def _color(format: str = "R8G8B8A8_UNORM", usage: int = COLOR_USAGE, **shape: Any) -> Callable[[Rig], ResourcePart]:
    shape = {"extent": EXTENT, **shape}
    samples = shape.get("samples", 1)
    return lambda rig: ResourcePart(rig, rig.image(f"VK_FORMAT_{format}", usage=usage, **shape), samples=samples)


def _within(mip: int = 0, layer: int = 0, flags: int = 0) -> Callable[[Rig], ResourcePart]:
    """A subresource of an image of three mip levels, or of six layers."""
    mips, layers = (3 if mip else 1), (6 if layer else 1)

    def make(rig: Rig) -> ResourcePart:
        image = rig.image(extent=EXTENT, usage=COLOR_USAGE, mips=mips, layers=layers, flags=flags)
        return ResourcePart(rig, image, mip=mip, layer=layer)

    return make


def _depth(format: str, aspects: int = 0) -> Callable[[Rig], ResourcePart]:
    return lambda rig: ResourcePart(rig, rig.image(f"VK_FORMAT_{format}", EXTENT, usage=DEPTH_USAGE), aspects=aspects)


def _other_aspect(part: ResourcePart) -> dict[str, Any]:
    return {"image": part.image, "aspects": part.image.aspects & ~part.aspect}


def _presentable(rig: Rig) -> ResourcePart:
    """An image of a swapchain, after the presentation engine is known to have left it."""
    chain, fence = rig.shown_swapchain(), rig.fence()
    index = rig.acquire(chain, fence=fence)
    rig.wait(fence)
    return ResourcePart(rig, chain.images[index], chain=(chain, index))


COPIED = VkImageUsage.HOST_TRANSFER | VkImageUsage.TRANSFER_SRC | VkImageUsage.TRANSFER_DST
RESOURCES: dict[str, ResourceKind] = {
    each.name: each
    for each in (
        ResourceKind("buffer", BUFFER, lambda rig: ResourcePart(rig, rig.buffer(BYTES))),
        ResourceKind(
            "range of a buffer",
            BUFFER,
            lambda rig: ResourcePart(rig, rig.buffer(4 * BYTES), offset=BYTES),
            lambda part: {"buffer": part.buffer, "offset": 2 * BYTES, "size": BYTES},
        ),
        ResourceKind("buffer behind another", BUFFER, _bound_behind),
        ResourceKind("image", IMAGE, _color()),
        ResourceKind("mip level", IMAGE, _within(mip=1), lambda part: {"image": part.image, "mips": (0, 1)}),
        ResourceKind("array layer", IMAGE, _within(layer=1), lambda part: {"image": part.image, "layers": (2, 1)}),
        ResourceKind(
            "face of a cube",
            IMAGE,
            _within(layer=4, flags=VkImageCreate.CUBE_COMPATIBLE),
            lambda part: {"image": part.image, "layers": (5, 1)},
        ),
        ResourceKind("one-channel image", FLOATS, _color("R8_UNORM", ATTACHED_USAGE)),
        ResourceKind("half-float image", FLOATS, _color("R16G16B16A16_SFLOAT", ATTACHED_USAGE)),
        ResourceKind("integer image", WORDS, _color("R32_UINT", ATTACHED_USAGE)),
        ResourceKind("1D image", LINE, _color(usage=ATTACHED_USAGE, extent=(16, 1, 1))),
        ResourceKind("3D image", VOLUME, _color(usage=ATTACHED_USAGE & 0xF, extent=(8, 8, 4))),
        ResourceKind("multisample image", SAMPLES, _color(usage=ATTACHED_USAGE, samples=4)),
        ResourceKind("host image", HOST_IMAGE, _color(usage=COPIED), needs=("VK_EXT_host_image_copy",)),
        ResourceKind("swapchain image", SWAPCHAIN, _presentable, needs=PRESENTS),
        ResourceKind("depth image", DEPTH, _depth("D32_SFLOAT")),
        ResourceKind("16-bit depth image", DEPTH, _depth("D16_UNORM")),
        ResourceKind("stencil image", STENCIL, _depth("S8_UINT")),
        ResourceKind("depth beside stencil", ASPECT, _depth("D32_SFLOAT_S8_UINT", VkImageAspect.DEPTH), _other_aspect),
        ResourceKind(
            "stencil beside depth", ASPECT, _depth("D32_SFLOAT_S8_UINT", VkImageAspect.STENCIL), _other_aspect
        ),
    )
}
