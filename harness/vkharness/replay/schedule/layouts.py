"""The layout of each image subresource while steps run, and the layout transitions that commands contain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from vkharness.spec.enums import VkImageLayout
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Call
from vkharness.trace.resources import Image

UNDEFINED = VkImageLayout.UNDEFINED
GENERAL = VkImageLayout.GENERAL
TRANSFER_SRC = VkImageLayout.TRANSFER_SRC_OPTIMAL
TRANSFER_DST = VkImageLayout.TRANSFER_DST_OPTIMAL
PREINITIALIZED = VkImageLayout.PREINITIALIZED
"""VkImageLayout values that the executor itself needs."""

HOST_TRANSITION = "vkTransitionImageLayoutEXT"

Subresource = tuple[int, int, int]
"""(aspect bit, mip level, array layer)."""


@dataclass(frozen=True, slots=True)
class RecordedTransition:
    """The layout part of one image memory barrier. `range` is a VkImageSubresourceRange in normal form."""

    image: int
    range: dict[str, int]
    old: int
    new: int
    families: tuple[int, int]

    @property
    def span(self) -> tuple[int, int, int, int, int]:
        """(aspects, base mip, mips, base layer, layers)."""
        where = self.range
        levels = (where["baseMipLevel"], where["levelCount"])
        return (where["aspectMask"], *levels, where["baseArrayLayer"], where["layerCount"])


@dataclass(slots=True)
class Layouts:
    """The layout of every subresource of every image of a trace, by image id."""

    images: dict[int, Image] = field(default_factory=dict)
    _now: dict[int, dict[Subresource, int]] = field(default_factory=dict)

    def add(self, image: Image, initial: int) -> None:
        """Starts tracking an image in its initial layout."""
        self.images[image.id] = image
        self._now[image.id] = {
            (aspect, mip, layer): initial
            for aspect in image.aspects
            for mip in range(image.mips)
            for layer in range(image.layers)
        }

    def of(self, image: int, subresource: Subresource) -> int:
        """The current VkImageLayout."""
        return self._now[image][subresource]

    def subresources(self, image: int) -> list[Subresource]:
        """All subresources of an image, by aspect, mip level, layer."""
        return list(self._now[image])

    def covered(self, transition: RecordedTransition) -> list[Subresource]:
        """The subresources that a transition names, clipped to the image."""
        image, where = self.images[transition.image], transition.range
        return [
            (aspect, mip, layer)
            for aspect in image.split_aspects(where["aspectMask"])
            for mip in image.level_range(where["baseMipLevel"], where["levelCount"])
            for layer in image.layer_range(where["baseArrayLayer"], where["layerCount"])
        ]

    def apply(self, transition: RecordedTransition) -> None:
        """Moves the subresources that a transition names to its new layout."""
        now = self._now.get(transition.image)
        if now is not None:
            now.update(dict.fromkeys(self.covered(transition), transition.new))

    def put(self, image: int, subresources: list[Subresource], layout: int) -> None:
        """Sets the layout of subresources, for example after a render pass."""
        self._now[image].update(dict.fromkeys(subresources, layout))


def transitions(call: Call) -> Iterator[RecordedTransition]:
    """The image barriers of a command, or the transitions that the host makes.

    Transitions of an event happen at the wait, so that setting an event has none.
    """
    name, args = main_name(call.name), call.args
    barriers: list[dict[str, Any]] = []
    if name in ("vkCmdPipelineBarrier", "vkCmdWaitEvents"):
        barriers = args.get("pImageMemoryBarriers") or []
    elif name == "vkCmdPipelineBarrier2":
        barriers = (args.get("pDependencyInfo") or {}).get("pImageMemoryBarriers") or []
    elif name == "vkCmdWaitEvents2":
        infos = args.get("pDependencyInfos") or []
        barriers = [barrier for info in infos for barrier in info.get("pImageMemoryBarriers") or []]
    elif name == HOST_TRANSITION:
        barriers = args.get("pTransitions") or []
    for barrier in barriers:
        yield RecordedTransition(
            barrier["image"],
            barrier["subresourceRange"],
            barrier["oldLayout"],
            barrier["newLayout"],
            (barrier.get("srcQueueFamilyIndex", 0), barrier.get("dstQueueFamilyIndex", 0)),
        )
