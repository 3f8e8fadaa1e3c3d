"""Writes of attachment operations to one aspect that may rewrite the other, by what the trace says of the device."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import drawing, passes
from tests.support.drawing import DEPTH_SPANS, STENCIL_SPANS
from tests.support.streams import Stream, struct
from vkharness.check import Analysis, advise_where_in_doubt
from vkharness.findings import Hazard
from vkharness.spec.enums import VkStructureType
from vkharness.trace.calls import SEPARATE_ASPECTS

EARLY, LATE = (f"{stage}_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT" for stage in ("EARLY", "LATE"))
ENABLED = {"sType": VkStructureType.PHYSICAL_DEVICE_MAINTENANCE_7_FEATURES_KHR, "pNext": None, "maintenance7": 1}


def device(stream: Stream, separate: int | None, chain: dict[str, Any] | None = None) -> None:
    """A device of which the trace tells the property, or does not (None)."""
    stream.device = stream.id()
    info = struct("VkDeviceCreateInfo", pNext=chain)
    more = {} if separate is None else {SEPARATE_ASPECTS: separate}
    stream.call("vkCreateDevice", physicalDevice=0, pCreateInfo=info, pDevice=stream.device)
    stream.blocks[-1].args.update(more)  # type: ignore[union-attr]


def render_depth(stream: Stream, load: int, store: int, stencil: bool = False) -> tuple[int, int, int]:
    """(image, begin, end) of rendering with depth attached, and perhaps stencil."""
    image, view = drawing.depth_target(stream)
    stream.begin()
    depth = passes.attached(view, load, store)
    begun = passes.begin_rendering(stream, passes.rect((8, 8)), [], depth, depth if stencil else None)
    return image, begun, stream.cmd("EndRendering")


@pytest.mark.parametrize(
    ("separate", "chain", "loads", "stores"),
    [
        (0, None, True, True),
        (0, ENABLED, True, True),
        (1, None, True, False),
        (1, ENABLED, False, False),
        (None, None, False, False),
    ],
)
def test_the_device_says_whether_the_other_aspect_is_rewritten(
    separate: int | None, chain: dict[str, Any] | None, loads: bool, stores: bool
) -> None:
    stream = Stream()
    device(stream, separate, chain)
    image, begun, ended = render_depth(stream, passes.CLEAR, passes.STORE)
    for command, kind, rewrites in ((begun, EARLY, loads), (ended, LATE, stores)):
        own = [(image, f"{kind}_WRITE", DEPTH_SPANS)]
        other = [(image, f"{kind}_{each}", STENCIL_SPANS) for each in ("READ", "WRITE")]
        assert drawing.seen(stream, command) == [*own, *(other if rewrites else [])]


def test_reads_and_what_is_written_anyway_rewrite_nothing() -> None:
    stream = Stream()
    device(stream, 0)
    image, begun, ended = render_depth(stream, passes.LOAD, passes.STORE, stencil=True)
    assert [each[1] for each in drawing.seen(stream, begun)] == [f"{EARLY}_READ"] * 2
    both = [(image, f"{LATE}_WRITE", spans) for spans in (DEPTH_SPANS, STENCIL_SPANS)]
    assert drawing.seen(stream, ended) == both


@pytest.mark.parametrize(
    ("separate", "hazards", "verdict"),
    [(0, [Hazard.WRITE_AFTER_WRITE], "hazards"), (1, [], "clean"), (None, [Hazard.REWRITES_OTHER_ASPECT], "clean")],
)
def test_where_the_trace_does_not_say_the_hazard_is_advice(
    separate: int | None, hazards: list[Hazard], verdict: str
) -> None:
    stream = Stream()
    device(stream, separate, ENABLED)
    image, _, _ = render_depth(stream, passes.LOAD, passes.STORE)
    part = {"aspectMask": 4, "baseMipLevel": 0, "levelCount": 1, "baseArrayLayer": 0, "layerCount": 1}
    stream.cmd("ClearDepthStencilImage", image=image, imageLayout=1, pRanges=[part])
    stream.submit()
    analysis = Analysis().follow(stream.blocks)
    if analysis.in_doubt:
        advise_where_in_doubt(analysis, stream.blocks)
    assert [each.hazard for each in analysis.findings] == hazards
    assert analysis.verdict == verdict
    assert all("separateDepthStencilAttachmentAccess" in each.missing for each in analysis.findings if each.advice)
