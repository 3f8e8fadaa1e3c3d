"""Every type of descriptor of today's registry is followed, refers to no memory, or is named as not modelled."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.support.glsl_dispatch import Bound, GlslDispatch, view
from tests.support.interpreted import InterpretedStream
from tests.support.spirv_text import assemble
from tests.support.streams import Dispatch, Stream, struct
from vkharness.check import Analysis
from vkharness.commands.drawing.descriptors import (
    BUFFER_TYPES,
    IMAGE_TYPES,
    NO_MEMORY_TYPES,
    TEXEL_TYPES,
    UNFOLLOWED_TYPES,
)
from vkharness.shader.reflect import reflect
from vkharness.spec.enums import VkDescriptorType

TYPES = {value: name for name, value in vars(VkDescriptorType).items() if name.isupper()}

PROCESSING = """
OpCapability Shader
OpCapability {capability}
OpExtension "SPV_QCOM_image_processing"
{extension}
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main"
OpExecutionMode %main LocalSize 1 1 1
OpDecorate %first DescriptorSet 0
OpDecorate %first Binding 0
OpDecorate %second DescriptorSet 0
OpDecorate %second Binding 1
%void = OpTypeVoid
%float = OpTypeFloat 32
%uint = OpTypeInt 32 0
%vec2 = OpTypeVector %float 2
%vec4 = OpTypeVector %float 4
%uvec2 = OpTypeVector %uint 2
%function = OpTypeFunction %void
%image = OpTypeImage %float 2D 0 0 0 1 Unknown
%sampled = OpTypeSampledImage %image
%pointer = OpTypePointer UniformConstant %sampled
%first = OpVariable %pointer UniformConstant
%second = OpVariable %pointer UniformConstant
%at = OpConstantNull %vec2
%texel = OpConstantNull %uvec2
%main = OpFunction %void None %function
%entry = OpLabel
%one = OpLoad %sampled %first
%other = OpLoad %sampled %second
%color = {instruction}
OpReturn
OpFunctionEnd
"""
INSTRUCTIONS = {
    "OpImageSampleWeightedQCOM %vec4 %one %at %other": ("TextureSampleWeightedQCOM", 2),
    "OpImageBoxFilterQCOM %vec4 %one %at %at": ("TextureBoxFilterQCOM", 1),
    **{
        f"OpImageBlockMatch{kind}QCOM %vec4 %one %texel %other %texel %texel": (capability, 2)
        for kind, capability in {
            "SSD": "TextureBlockMatchQCOM",
            "SAD": "TextureBlockMatchQCOM",
            "WindowSSD": "TextureBlockMatch2QCOM",
            "WindowSAD": "TextureBlockMatch2QCOM",
            "GatherSSD": "TextureBlockMatch2QCOM",
            "GatherSAD": "TextureBlockMatch2QCOM",
        }.items()
    },
}


def test_each_type_is_in_one_table() -> None:
    tables = (*IMAGE_TYPES, *BUFFER_TYPES, *TEXEL_TYPES, *NO_MEMORY_TYPES, *UNFOLLOWED_TYPES)
    structures = (VkDescriptorType.ACCELERATION_STRUCTURE_KHR,)
    found = Counter((*tables, *structures))
    assert {TYPES[each]: count for each, count in found.items() if count > 1} == {}
    assert {name for value, name in TYPES.items() if value not in found} == set()


@pytest.mark.parametrize(("instruction", "needed"), INSTRUCTIONS.items())
def test_image_processing_reads_its_images(instruction: str, needed: tuple[str, int]) -> None:
    capability, images = needed
    extension = 'OpExtension "SPV_QCOM_image_processing2"' if "2QCOM" in capability else ""
    entry = reflect(
        assemble(PROCESSING.format(capability=capability, extension=extension, instruction=instruction)), "main"
    )
    assert entry.unmodelled == ()
    assert [use.binding for use in entry.uses if use.reads] == [*range(images)]
    assert not any(use.writes for use in entry.uses)


@pytest.mark.parametrize("type", [each for each in IMAGE_TYPES if TYPES[each].endswith("QCOM")])
def test_an_image_of_qcom_is_sampled(type: int, tmp_path: Path) -> None:
    stream = InterpretedStream()
    image = stream.image((4, 4, 1), usage=4)
    bound = [Bound(type, view(stream, image, 1, (0, 1), (0, 1)))]
    body = "layout(binding = 0) uniform sampler2D t; shared vec4 v; void main() { v = texelFetch(t, ivec2(0), 0); }"
    stream.begin()
    (found,) = GlslDispatch(stream, tmp_path, body, bound).reached(1)
    assert found[0] == "SAMPLED_READ" and found[1]


@pytest.mark.parametrize("type", [*UNFOLLOWED_TYPES, VkDescriptorType.STORAGE_BUFFER])
def test_a_shader_with_a_descriptor_that_is_not_followed_is_not_modelled(type: int) -> None:
    stream = Stream()
    dispatch = Dispatch(stream, "atomic_add", [stream.buffer(64)], b"")
    write = struct("VkWriteDescriptorSet", dstSet=dispatch.set, descriptorCount=1, descriptorType=type)
    whole = struct("VkDescriptorBufferInfo", buffer=stream.buffer(64), range=0xFFFFFFFFFFFFFFFF)
    stream.call("vkUpdateDescriptorSets", device=stream.device, pDescriptorWrites=[{**write, "pBufferInfo": [whole]}])
    stream.begin()
    dispatch.run()
    stream.submit()
    found = Analysis().follow(stream.blocks).unmodelled
    assert any("a descriptor of a tensor" in each for each in found) is (type in UNFOLLOWED_TYPES)
