"""The resources of the matrix: a part that both operations access, another part, and something unrelated.

The last two are there so that a barrier can name the wrong one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.rig.core import RigBuffer, RigImage
from harness.rig.rig import Rig

BUFFER, IMAGE, DEPTH = "buffer", "image", "depth"
"""Kinds of resources: operations say which ones they work on."""
EXTENT = (16, 16, 1)
DEPTH_FORMAT = "VK_FORMAT_D32_SFLOAT"
BYTES = 256
"""The size in bytes of the part of a buffer that operations access."""


@dataclass(slots=True)
class ResourcePart:
    """Bytes of a buffer, or one subresource of an image, that both operations of a pair access."""

    rig: Rig
    resource: RigBuffer | RigImage
    offset: int = 0
    mip: int = 0
    layer: int = 0

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
    def region(self) -> dict[str, Any]:
        """The subresource as copies take it."""
        return {"mip": self.mip, "layer": self.layer}

    @property
    def subresources(self) -> dict[str, Any]:
        """The subresource as clears and barriers take it."""
        return {"mips": (self.mip, 1), "layers": (self.layer, 1)}

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the subresource in texels."""
        return max(1, self.image.extent[0] >> self.mip), max(1, self.image.extent[1] >> self.mip)

    def view(self) -> Any:
        """An image view of the subresource."""
        return self.rig.view(self.image, aspect=self.image.aspects, mips=(self.mip, 1), layers=(self.layer, 1))

    def barrier(self) -> dict[str, Any]:
        """Options of a barrier over exactly this part."""
        if isinstance(self.resource, RigBuffer):
            return {"buffer": self.resource, "offset": self.offset, "size": BYTES}
        return {"image": self.resource, **self.subresources}


@dataclass(frozen=True, slots=True)
class ResourceKind:
    """A kind of resource. `make` gives the part that is accessed; `elsewhere` another part of the same resource, when
    it has one."""

    name: str
    kind: str
    make: Callable[[Rig], ResourcePart]
    elsewhere: Callable[[ResourcePart], dict[str, Any]] | None = None

    def half(self, part: ResourcePart) -> dict[str, Any] | None:
        """Options of a barrier over the second half of the part: parameters of indirect commands are in the first."""
        if self.kind != BUFFER:
            return None
        return {"buffer": part.buffer, "offset": part.offset + BYTES // 2, "size": BYTES // 2}

    def unrelated(self, rig: Rig) -> dict[str, Any]:
        """Options of a barrier over something else of this kind."""
        return RESOURCES[self.name].make(rig).barrier()


def _color(rig: Rig, mips: int = 1, layers: int = 1) -> RigImage:
    """Every operation on colour images can use it."""
    return rig.image(extent=EXTENT, usage=0x1F, mips=mips, layers=layers)


def _depth(rig: Rig) -> RigImage:
    return rig.image(DEPTH_FORMAT, EXTENT, usage=0x27)


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
        ResourceKind("image", IMAGE, lambda rig: ResourcePart(rig, _color(rig))),
        ResourceKind(
            "mip level",
            IMAGE,
            lambda rig: ResourcePart(rig, _color(rig, mips=3), mip=1),
            lambda part: {"image": part.image, "mips": (0, 1)},
        ),
        ResourceKind(
            "array layer",
            IMAGE,
            lambda rig: ResourcePart(rig, _color(rig, layers=3), layer=1),
            lambda part: {"image": part.image, "layers": (2, 1)},
        ),
        ResourceKind("depth image", DEPTH, lambda rig: ResourcePart(rig, _depth(rig))),
    )
}
