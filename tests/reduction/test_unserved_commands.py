"""What commands of a stream use without anything that gives it to them."""

from __future__ import annotations

import pytest

from tests.support.streams import Stream
from vkharness.reduction.shader_state import ShaderState, ShaderStates
from vkharness.reduction.unserved_commands import unwritten_descriptors
from vkharness.spec.enums import VkPipelineBindPoint

GRAPHICS, COMPUTE, RAYS = VkPipelineBindPoint.GRAPHICS, VkPipelineBindPoint.COMPUTE, VkPipelineBindPoint.RAY_TRACING_KHR


class NumberedBindings(ShaderStates):
    """Shaders of pipeline N use binding N of set 0."""

    def __init__(self) -> None:
        pass

    def of(self, pipeline: int) -> ShaderState:
        return ShaderState(frozenset({0}), False, frozenset({(0, pipeline)}))


@pytest.mark.parametrize(
    ("action", "point"), [("Draw", GRAPHICS), ("Dispatch", COMPUTE), ("TraceRaysKHR", RAYS), ("TraceRaysNV", RAYS)]
)
def test_an_action_uses_what_is_bound_at_its_own_bind_point(action: str, point: int) -> None:
    stream = Stream()
    stream.begin()
    for each in (GRAPHICS, COMPUTE, RAYS):
        stream.cmd("BindPipeline", pipelineBindPoint=each, pipeline=each % 7)
        stream.cmd("BindDescriptorSets", pipelineBindPoint=each, firstSet=0, pDescriptorSets=[100])
    acts = stream.cmd(action)
    assert unwritten_descriptors(stream.blocks, NumberedBindings()) == {(acts, 0, point % 7)}
