"""Which attachments a draw writes when output locations are mapped to others."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import drawing
from tests.support.drawing import WHOLE_COLOR, blend, declares, draw, seen
from tests.support.streams import Stream
from vkharness.spec.enums import VK_ATTACHMENT_UNUSED, VkStructureType
from vkharness.trace.calls import Call

COLOR_READ = "COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_READ"
COLOR_WRITE = "COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE"
UNUSED = VK_ATTACHMENT_UNUSED


def locations_info(locations: list[int] | None) -> dict[str, Any]:
    return {"colorAttachmentCount": 2, "pColorAttachmentLocations": locations}


def set_locations(stream: Stream, locations: list[int] | None, suffix: str = "") -> None:
    info = {"pNext": None, **locations_info(locations)}
    name = f"vkCmdSetRenderingAttachmentLocations{suffix}"
    args = {"commandBuffer": stream.commands, "pLocationInfo": info}
    stream.blocks.append(Call(len(stream.blocks) + 1, name, args))


@pytest.mark.parametrize("suffix", ["", "KHR"])
@pytest.mark.parametrize(("locations", "written"), [([2, 0], [0, 1]), ([UNUSED, 1], []), ([1, 2], [1]), (None, [0])])
def test_locations_say_which_attachments_a_draw_writes(
    suffix: str, locations: list[int] | None, written: list[int]
) -> None:
    """Of a shader with outputs at the locations 0 and 2; they hold until rendering begins anew."""
    stream = Stream()
    targets = [drawing.color_target(stream) for _ in range(2)]
    made = drawing.pipeline(stream, declares(0, 2), vertex="fullscreen.vert", colors=[blend()] * 2)
    stream.begin()
    drawing.render(stream, *(view for _, view in targets))
    drawing.bind(stream, made)
    before = draw(stream)
    set_locations(stream, locations, suffix)
    mapped = draw(stream)
    stream.cmd("EndRendering")
    drawing.render(stream, *(view for _, view in targets))
    after = draw(stream)
    for index, found in ((before, [0]), (mapped, written), (after, [0])):
        assert seen(stream, index) == [(targets[at][0], COLOR_WRITE, WHOLE_COLOR) for at in found]


def test_a_pipeline_has_locations_of_its_own() -> None:
    stream = Stream()
    targets = [drawing.color_target(stream) for _ in range(2)]
    mapped = {"sType": VkStructureType.RENDERING_ATTACHMENT_LOCATION_INFO, "pNext": None} | locations_info([2, UNUSED])
    made = drawing.pipeline(stream, declares(0, 2), vertex="fullscreen.vert", colors=[blend()] * 2, pNext=mapped)
    stream.begin()
    drawing.render(stream, *(view for _, view in targets))
    drawing.bind(stream, made)
    assert seen(stream, draw(stream)) == [(targets[0][0], COLOR_WRITE, WHOLE_COLOR)]


def test_blending_reads_the_attachments_that_are_mapped() -> None:
    stream = Stream()
    targets = [drawing.color_target(stream) for _ in range(2)]
    blends = [blend(), blend(enable=True)]
    made = drawing.pipeline(stream, declares(0), vertex="fullscreen.vert", colors=blends)
    stream.begin()
    drawing.render(stream, *(view for _, view in targets))
    drawing.bind(stream, made)
    set_locations(stream, [UNUSED, 0])
    image = targets[1][0]
    assert seen(stream, draw(stream)) == [(image, COLOR_READ, WHOLE_COLOR), (image, COLOR_WRITE, WHOLE_COLOR)]
