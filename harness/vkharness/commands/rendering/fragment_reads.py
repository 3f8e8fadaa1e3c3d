"""Attachments that are read as fragments are made: fragment shading rates and fragment density maps.

Specification: "Attachment Fragment Shading Rate", "Fragment Density Map Operations";
rules.md#shading-rates-and-density-maps-are-read-by-draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from vkharness.spec.scopes import ACCESS_KIND
from vkharness.trace.effects import Access
from vkharness.trace.rendering_state import Area, Attachment

RATE_READ = ACCESS_KIND["SYNC_FRAGMENT_SHADING_RATE_ATTACHMENT_FRAGMENT_SHADING_RATE_ATTACHMENT_READ"].index
DENSITY_READ = ACCESS_KIND["SYNC_FRAGMENT_DENSITY_PROCESS_EXT_FRAGMENT_DENSITY_MAP_READ_EXT"].index
DYNAMIC = 1
"""VK_IMAGE_VIEW_CREATE_FRAGMENT_DENSITY_MAP_DYNAMIC_BIT_EXT."""
READ_BY_THE_HOST = "a fragment density map that the host reads while commands are recorded"

Texel = tuple[int, int]
"""The pixels of the framebuffer for which one texel of a shading rate attachment stands: width and height."""


def rate_reads(attachment: Attachment, texel: Texel, layers: Sequence[int], area: Area) -> Iterator[Access]:
    """The read of the texels that stand for pixels of the render area. A single layer stands for all."""
    x, y, width, height = area
    across, down = (max(1, each) for each in texel)
    left, top = x // across, y // down
    size = (-(-(x + width) // across) - left, -(-(y + height) // down) - top)
    yield from _read(attachment, RATE_READ, layers, (left, top, *size) if width and height else (0, 0, 0, 0))


def density_reads(attachment: Attachment, layers: Sequence[int]) -> Iterator[Access]:
    """The read of a map that the device reads. "Additional density map texels" may be fetched, so that all count."""
    yield from _read(attachment, DENSITY_READ, layers, None)


def _read(attachment: Attachment, access_kind: int, layers: Sequence[int], area: Area | None) -> Iterable[Access]:
    chosen: Sequence[int] = layers if len(attachment.view.layers) > 1 else range(1)
    spans = attachment.spans(chosen, area)
    image = attachment.image.id
    return (Access(access_kind, image, spans, image),) if spans else ()
