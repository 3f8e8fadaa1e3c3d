"""The orders that a layer does not know excuse no finding that is left out where these orders do not lead."""

from __future__ import annotations

import pytest

from tests.layer.differing_rows import TODAY
from tests.layer.test_known_differences import (
    COLOR,
    DEPTH_READ,
    MOVED_COLOR,
    OUTPUT,
    attachment,
    barrier,
    copy,
    fill,
    render_pass,
    upload,
)
from vkharness.device.drivers import find_driver
from vkharness.device.process import Worker
from vkharness.fuzz.random_steps import Step
from vkharness.layer.manifest import find_layer
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL as EXTERNAL

STREAMS: dict[str, list[Step]] = {
    "no dependency": [fill(), copy(0, 1)],
    "a barrier to other accesses": [fill(), barrier("ALL_TRANSFER/TRANSFER_WRITE", "COMPUTE_SHADER"), copy(0, 1)],
    "dependencies from a final transition to others": [
        render_pass(
            [attachment(3, load="CLEAR", initial="UNDEFINED")], [{"colors": [MOVED_COLOR]}],
            (0, EXTERNAL, "VERTEX_INPUT/INDEX_READ", DEPTH_READ, 0),
            (0, EXTERNAL, f"{OUTPUT}/COLOR_ATTACHMENT_WRITE", "VERTEX_INPUT/INDEX_READ", 0),
        ),
        render_pass([attachment(3, load="DONT_CARE")], [{"colors": [COLOR]}], area=(0, 0, 4, 8)),
    ],
    "a transition that meets no dependency": [
        upload(0, 0, 0),
        render_pass(
            [attachment(0, load="CLEAR", initial="UNDEFINED")], [{"colors": [COLOR]}, {"colors": [MOVED_COLOR]}],
            (0, 1, "VERTEX_INPUT/INDEX_READ", "FRAGMENT_SHADER", 0),
        ),
    ],
}  # fmt: skip


@pytest.mark.skipif(find_layer(TODAY) is None, reason="the Khronos layer is not installed (ci/setup installs it)")
@pytest.mark.parametrize("name", STREAMS)
def test_a_finding_that_is_left_out_is_not_excused(name: str) -> None:
    with Worker(find_driver("lavapipe"), packages=("tests",)) as worker:
        job = {"layer": TODAY, "steps": STREAMS[name]}
        answer = worker.call("tests.support.layer_jobs:excuses_of_steps", job)
    assert isinstance(answer, dict), answer
    assert answer["agreed"] and not answer["left"], answer
    assert not answer["excused"], answer
