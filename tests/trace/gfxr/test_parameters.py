"""Every command of the header, encoded as a capture has it and read again."""

from __future__ import annotations

import struct

import pytest

from tests.support.capture_encoder import encodable, members
from tests.support.normal_form import Generator
from vkharness.spec import _generated as tables
from vkharness.spec.enums import VkDescriptorType, VkDescriptorUpdateTemplateType, VkPipelineBindPoint
from vkharness.trace.gfxr.call_ids import call_names
from vkharness.trace.gfxr.encoded_values import Decoder
from vkharness.trace.gfxr.parameters import command_decoder
from vkharness.trace.gfxr.template_values import UpdateTemplates, first_form
from vkharness.trace.lines import Corrupt
from vkharness.trace.templates import BIND_POINT, WRITES

OWN_FORM = {
    "vkCmdPushDescriptorSetWithTemplate",
    "vkCmdPushDescriptorSetWithTemplate2KHR",
    "vkCmdPushDescriptorSetWithTemplateKHR",
    "vkUpdateDescriptorSetWithTemplate",
    "vkUpdateDescriptorSetWithTemplateKHR",
    "vkCopyImageToMemoryEXT",
    "vkCopyMemoryToImageEXT",
    "vkGetDescriptorEXT",
    "vkGetMemoryRemoteAddressNV",
}
"""Commands that a capture does not encode parameter by parameter, or with types of other headers."""
COMMANDS = sorted(name for name in tables.COMMANDS.keys() - OWN_FORM if encodable(tables.COMMANDS[name][1]))


def reader_of(name: str) -> Decoder:
    made = command_decoder(name)
    assert made is not None
    return made.parameters


@pytest.mark.parametrize("seed", range(3))
def test_every_command_is_read_as_it_was_encoded(seed: int) -> None:
    print(f"seed {seed}")
    made = Generator(seed)
    assert len(COMMANDS) > 800
    for name in COMMANDS:
        data, expected = members(tables.COMMANDS[name][1], made.call(name).args, False)
        assert (name, *reader_of(name)(data, 0)) == (name, expected, len(data))


@pytest.mark.parametrize("name", COMMANDS[::40])
def test_a_command_that_is_cut_off_anywhere_is_an_error_of_one_kind(name: str) -> None:
    data, _ = members(tables.COMMANDS[name][1], Generator(1).call(name).args, False)
    for end in range(len(data)):
        with pytest.raises((Corrupt, struct.error)):
            reader_of(name)(data[:end], 0)


def test_the_handles_of_acceleration_structures_are_there() -> None:
    """gfxrecon-convert 0.9.18 writes null for them."""
    name = "vkCmdBuildAccelerationStructuresKHR"
    made = Generator(5)
    info = made.struct("VkAccelerationStructureBuildGeometryInfoKHR", 2)
    info |= {"srcAccelerationStructure": 41, "dstAccelerationStructure": 42, "pNext": None}
    args = {"commandBuffer": 3, "infoCount": 1, "pInfos": [info], "ppBuildRangeInfos": None}
    data, _ = members(tables.COMMANDS[name][1], args, False)
    read, _ = reader_of(name)(data, 0)
    assert read["pInfos"][0]["srcAccelerationStructure"] == 41
    assert read["pInfos"][0]["dstAccelerationStructure"] == 42


def test_every_command_that_a_capture_can_hold_has_a_number() -> None:
    named = {tables.COMMAND_ALIASES.get(name, name) for name in call_names().values()}
    without = {name for name in COMMANDS if tables.COMMAND_ALIASES.get(name, name) not in named}
    # The layer does not pass these on, or does not support their extension.
    reasons = ["NVX", "CudaModule", "CudaFunction", "CudaLaunch", "AMDX", "FUCHSIA", "QNX", "Metal", "HUAWEI"]
    reasons += ["ShaderInstrumentation", "Heap", "PushDataEXT", "LegacyNV", "OHOS", "SEC", "SamplerDescriptors"]
    reasons += ["CustomBorderColor", "ExternalComputeQueue"]
    for reason in reasons:
        without = {name for name in without if reason not in name}
    assert all(name.startswith(("vkGet", "vkCmd", "vkCreate", "vkDestroy", "vkExport")) for name in without), without
    assert len(without) < 20, without


def applied(kind: int) -> UpdateTemplates:
    """A template 7 with an image, two uniform buffers, a texel buffer view and 4 bytes inline."""
    entries = [
        (0, 1, VkDescriptorType.SAMPLED_IMAGE),
        (1, 2, VkDescriptorType.UNIFORM_BUFFER),
        (2, 1, VkDescriptorType.STORAGE_TEXEL_BUFFER),
        (3, 4, VkDescriptorType.INLINE_UNIFORM_BLOCK),
    ]
    info = {
        "templateType": kind,
        "pipelineBindPoint": VkPipelineBindPoint.COMPUTE,
        "pDescriptorUpdateEntries": [
            {"dstBinding": binding, "dstArrayElement": 0, "descriptorCount": count, "descriptorType": descriptor}
            for binding, count, descriptor in entries
        ],
    }
    templates = UpdateTemplates()
    templates.created({"pDescriptorUpdateTemplate": 7, "pCreateInfo": info})
    return templates


DATA = (
    struct.pack("<IQQQQ", 0x02 | 0x20 | 0x40 | 0x80, 0x7F0000000000, 1, 2, 1)
    + struct.pack("<QQi", 0, 50, 5)
    + struct.pack("<QQQ", 60, 0, 16)
    + struct.pack("<QQQ", 61, 16, 16)
    + struct.pack("<Q", 70)
    + struct.pack("<QI", 4, VkDescriptorType.INLINE_UNIFORM_BLOCK)
    + b"abcd"
)


def test_the_data_of_a_template_becomes_writes() -> None:
    args, _ = reader_of("vkUpdateDescriptorSetWithTemplate")(struct.pack("<QQQ", 1, 9, 7) + DATA, 0)
    applied(VkDescriptorUpdateTemplateType.DESCRIPTOR_SET).applied(args)
    image, buffers, view, inline = args[WRITES]
    assert image["pImageInfo"] == [{"sampler": 0, "imageView": 50, "imageLayout": 5}]
    assert [each["buffer"] for each in buffers["pBufferInfo"]] == [60, 61]
    assert view["pTexelBufferView"] == [70]
    assert inline["pNext"]["pData"] == b"abcd"
    assert [each["dstSet"] for each in args[WRITES]] == [9] * 4 and args["pData"] is None


def test_both_forms_of_a_push_are_the_same_call() -> None:
    one = struct.pack("<QQQI", 3, 7, 8, 2) + DATA
    two = struct.pack("<QIQIIQQI", 3, 0x02 | 0x20 | 0x40 | 0x80, 1, 1000545005, 1, 7, 8, 2) + DATA
    read = []
    for name, data in (("vkCmdPushDescriptorSetWithTemplateKHR", one), ("vkCmdPushDescriptorSetWithTemplate2KHR", two)):
        args, at = reader_of(name)(data, 0)
        assert at == len(data)
        made, args = first_form(name, args)
        applied(VkDescriptorUpdateTemplateType.PUSH_DESCRIPTORS).applied(args)
        read.append((made, args))
    assert read[0] == read[1]
    assert read[0][1][BIND_POINT] == VkPipelineBindPoint.COMPUTE and len(read[0][1][WRITES]) == 4


def test_less_data_than_a_template_reads_is_refused() -> None:
    args, _ = reader_of("vkUpdateDescriptorSetWithTemplate")(struct.pack("<QQQ", 1, 9, 7) + DATA[:-16], 0)
    with pytest.raises(Corrupt, match="less data"):
        applied(VkDescriptorUpdateTemplateType.DESCRIPTOR_SET).applied(args)
