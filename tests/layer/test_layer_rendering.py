"""What the Khronos layers say about render pass instances: the evidence for differences.toml, provoked on lavapipe.

The ids in brackets are entries of differences.toml.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.device.drivers import find_driver
from harness.device.process import Worker
from harness.layer.manifest import find_layer
from tests.support.drivers_here import FOUND

OLD, TODAY = "1.3.239", "1.4.364"
RAW, WAR, WAW = "READ_AFTER_WRITE", "WRITE_AFTER_READ", "WRITE_AFTER_WRITE"
BEGIN, NEXT, END, DRAW = "vkCmdBeginRenderPass", "vkCmdNextSubpass", "vkCmdEndRenderPass", "vkCmdDraw"
UPLOAD, DOWNLOAD = "vkCmdCopyBufferToImage", "vkCmdCopyImageToBuffer"

pytestmark = pytest.mark.skipif("lavapipe" not in FOUND, reason="lavapipe is not installed; ci/setup installs it")


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(find_driver("lavapipe"), packages=["tests"]) as running:
        yield running


def said(worker: Worker, how: str, layer: str) -> list[tuple[str, ...]]:
    """(hazard, command, prior command) of each message."""
    if find_layer(layer) is None:
        pytest.skip(f"evidence about the layer {layer}, which is not installed")
    found = worker.call("tests.support.rendering_layer_jobs:said", {"how": how, "layer": layer})
    assert isinstance(found, dict), found
    return [tuple(each[:3]) for each in found["said"]]


@pytest.mark.parametrize(
    ("how", "layer", "expected"),
    [
        # [transitions-between-subpasses]
        ("execution only", OLD, []),
        ("execution only", TODAY, [(WAW, NEXT, DRAW), (RAW, DRAW, NEXT)]),
        # [after-transitions-between-subpasses]
        ("not visible", OLD, []),
        ("not visible", TODAY, [(RAW, DRAW, NEXT)]),
        # [whole-attachments]
        ("parts", TODAY, [(WAW, "vkCmdBeginRendering", UPLOAD)]),
        ("layers", TODAY, [(RAW, DOWNLOAD, "vkCmdEndRendering")]),
        # [views-are-layers]
        ("views", OLD, [(RAW, DOWNLOAD, END)]),
        ("views", TODAY, []),
        # [draws-in-dynamic-rendering]
        ("draw in dynamic rendering", OLD, []),
        ("draw in dynamic rendering", TODAY, [(WAR, DRAW, DOWNLOAD)]),
        # [input-after-its-load]
        ("input after load", OLD, []),
        ("input after load", TODAY, []),
        # What both sides do alike: a store of NONE after a clear is a write, as with DONT_CARE.
        ("store none", TODAY, [(RAW, DOWNLOAD, "vkCmdEndRendering")]),
    ],
)
def test_what_the_layer_says(worker: Worker, how: str, layer: str, expected: list[tuple[str, ...]]) -> None:
    assert said(worker, how, layer) == expected


@pytest.mark.parametrize(
    ("how", "layer", "expected"),
    [
        ("own transition", OLD, (RAW, BEGIN, BEGIN)),
        ("own transition", TODAY, (RAW, BEGIN, BEGIN)),
        ("own store", OLD, (WAW, END, "")),  # the store may be that of another subpass
        ("own store", TODAY, (WAW, END, END)),
    ],
)
def test_hazards_inside_one_command(worker: Worker, how: str, layer: str, expected: tuple[str, ...]) -> None:
    """Neither version gives the prior command as a property or field then."""
    assert said(worker, how, layer) == [expected]
