"""Structs that a capture does not encode member by member: unions, and what depends on a member before them."""

from __future__ import annotations

from typing import Any

from vkharness.spec import _generated as tables
from vkharness.trace.gfxr import encoded_values as wire
from vkharness.trace.gfxr.decoders import chain, members_of, plain, special, wire_struct
from vkharness.trace.gfxr.encoded_values import Decoder
from vkharness.trace.lines import Corrupt

_ENUM, _U32, _U64 = wire.number("i"), wire.number("I"), wire.number("Q")
_WORDS = wire.numbers("I")


@special("VkClearColorValue")
def _clear_color() -> Decoder:
    def decode(data: bytes, at: int) -> tuple[Any, int]:
        words, at = _WORDS(data, at)
        if words is None or len(words) != 4:
            raise Corrupt("VkClearColorValue without its four words")
        return {"uint32": words}, at

    return decode


@special("VkClearValue")
def _clear_value() -> Decoder:
    color = _clear_color()

    def decode(data: bytes, at: int) -> tuple[Any, int]:
        value, at = color(data, at)
        return {"color": value}, at

    return decode


def _in_union(member: str) -> Decoder:
    """A union of which the capture holds this 64-bit member."""

    def decode(data: bytes, at: int) -> tuple[Any, int]:
        value, at = _U64(data, at)
        return {member: value}, at

    return decode


@special("VkPipelineExecutableStatisticValueKHR")
def _statistic() -> Decoder:
    return _in_union("u64")


@special("VkDeviceOrHostAddressKHR", "VkDeviceOrHostAddressConstKHR")
def _address() -> Decoder:
    return _in_union("deviceAddress")


def _selected(name: str, union: str, choices: dict[int, tuple[str, Decoder]]) -> Decoder:
    """A struct whose union holds the member that the enum before it selects; `choices` has them by the enum's value."""
    members = members_of(name) or ()
    place = next(i for i, member in enumerate(members) if member[0] == union)
    selector = members[place - 1][0]
    before = plain(name, members[:place])
    after = plain(name, members[place + 1 :]) if members[place + 1 :] else None

    def decode(data: bytes, at: int) -> tuple[Any, int]:
        value, at = before(data, at)
        value[union] = {}
        choice = choices.get(value[selector])
        if choice is not None:
            held, at = choice[1](data, at)
            value[union] = {choice[0]: held}
        if after is not None:
            rest, at = after(data, at)
            value.update(rest)
        return value, at

    return decode


@special("VkAccelerationStructureGeometryKHR")
def _geometry() -> Decoder:
    kinds = members_of("VkAccelerationStructureGeometryDataKHR") or ()
    choices = {i: (kind[0], wire_struct(kind[1])) for i, kind in enumerate(kinds)}
    return _selected("VkAccelerationStructureGeometryKHR", "geometry", choices)


@special("VkAccelerationStructureMotionInstanceNV")
def _motion_instance() -> Decoder:
    members = members_of("VkAccelerationStructureMotionInstanceNV") or ()
    kinds = members_of("VkAccelerationStructureMotionInstanceDataNV") or ()
    choices = {i: (kind[0], wire_struct(kind[1])) for i, kind in enumerate(kinds)}
    head = plain("VkAccelerationStructureMotionInstanceNV", members[:2])

    def decode(data: bytes, at: int) -> tuple[Any, int]:
        value, at = head(data, at)
        value["data"] = {}
        if value["type"] in choices:
            name, held = choices[value["type"]]
            made, at = held(data, at)
            value["data"] = {name: made}
        return value, at

    return decode


@special("VkPerformanceValueINTEL")
def _performance_value() -> Decoder:
    kind = tables.ENUMS["VkPerformanceValueTypeINTEL"]["VK_PERFORMANCE_VALUE_TYPE_STRING_INTEL"]

    def decode(data: bytes, at: int) -> tuple[Any, int]:
        selected, at = _ENUM(data, at)
        value, at = (wire.text if selected == kind else _U64)(data, at)
        return {"type": selected, "data": {"valueString" if selected == kind else "value64": value}}, at

    return decode


@special("VkPushDescriptorSetWithTemplateInfoKHR", "VkPushDescriptorSetWithTemplateInfo")
def _push_template() -> Decoder:
    """Without its data, which follows the struct."""
    name = "VkPushDescriptorSetWithTemplateInfoKHR"
    members = members_of(tables.TYPE_ALIASES.get(name, name)) or ()
    head = plain(name, members[:-1])

    def decode(data: bytes, at: int) -> tuple[Any, int]:
        value, at = head(data, at)
        value["pData"] = None
        return value, at

    return decode


@special("VkMemoryToImageCopyEXT", "VkImageToMemoryCopyEXT", "VkMemoryToImageCopy", "VkImageToMemoryCopy")
def _host_copy() -> Decoder:
    """The two structs have the same members. The bytes at the host's address are in the capture, and not used."""
    name = "VkMemoryToImageCopyEXT"
    members = members_of(tables.TYPE_ALIASES.get(name, name)) or ()
    head, tail = (plain(name, part) for part in (members[:2], members[3:]))
    blob = wire.discarded(wire.blob(1))

    def decode(data: bytes, at: int) -> tuple[Any, int]:
        value, at = head(data, at)
        value["pHostPointer"], at = blob(data, at)
        rest, at = tail(data, at)
        return value | rest, at

    return decode


@special("VkIndirectExecutionSetCreateInfoEXT")
def _execution_set() -> Decoder:
    kinds = (
        ("pPipelineInfo", "VkIndirectExecutionSetPipelineInfoEXT"),
        ("pShaderInfo", "VkIndirectExecutionSetShaderInfoEXT"),
    )
    choices = {i: (name, wire.one_of(wire.array(wire_struct(kind)))) for i, (name, kind) in enumerate(kinds)}
    return _selected("VkIndirectExecutionSetCreateInfoEXT", "info", choices)


@special("VkIndirectCommandsLayoutTokenEXT")
def _commands_token() -> Decoder:
    def pointer(kind: str) -> Decoder:
        return wire.one_of(wire.array(wire_struct(f"VkIndirectCommands{kind}TokenEXT")))

    choices = {
        0: ("pExecutionSet", pointer("ExecutionSet")),
        1: ("pPushConstant", pointer("PushConstant")),
        2: ("pPushConstant", pointer("PushConstant")),
        3: ("pIndexBuffer", pointer("IndexBuffer")),
        4: ("pVertexBuffer", pointer("VertexBuffer")),
    }
    members = members_of("VkIndirectCommandsLayoutTokenEXT") or ()
    head = plain("VkIndirectCommandsLayoutTokenEXT", members[:3])

    def decode(data: bytes, at: int) -> tuple[Any, int]:
        value, at = head(data, at)
        value["data"] = {}
        if value["type"] in choices:
            name, held = choices[value["type"]]
            made, at = held(data, at)
            value["data"] = {name: made}
        value["offset"], at = _U32(data, at)
        return value, at

    return decode


@special("VkLayerSettingEXT")
def _layer_setting() -> Decoder:
    kinds = [wire.numbers(code) for code in "IiqIQfd"] + [wire.array(wire.text)]

    def decode(data: bytes, at: int) -> tuple[Any, int]:
        layer, at = wire.text(data, at)
        setting, at = wire.text(data, at)
        kind, at = _ENUM(data, at)
        count, at = _U32(data, at)
        if not 0 <= kind < len(kinds):
            raise Corrupt(f"VkLayerSettingEXT of the type {kind}")
        _, at = kinds[kind](data, at)
        return {"pLayerName": layer, "pSettingName": setting, "type": kind, "valueCount": count, "pValues": None}, at

    return decode


@special("VkDescriptorGetInfoEXT")
def _descriptor_info() -> Decoder:
    image = wire.one_of(wire.array(wire_struct("VkDescriptorImageInfo")))
    address = wire.one_of(wire.array(wire_struct("VkDescriptorAddressInfoEXT")))
    types = tables.ENUMS["VkDescriptorType"]
    choices: dict[int, tuple[str, Decoder]] = {
        types[f"VK_DESCRIPTOR_TYPE_{kind}"]: (name, held)
        for kind, name, held in (
            ("SAMPLER", "pSampler", wire.one_of(wire.numbers("Q"))),
            ("COMBINED_IMAGE_SAMPLER", "pCombinedImageSampler", image),
            ("INPUT_ATTACHMENT", "pInputAttachmentImage", image),
            ("SAMPLED_IMAGE", "pSampledImage", image),
            ("STORAGE_IMAGE", "pStorageImage", image),
            ("UNIFORM_TEXEL_BUFFER", "pUniformTexelBuffer", address),
            ("STORAGE_TEXEL_BUFFER", "pStorageTexelBuffer", address),
            ("UNIFORM_BUFFER", "pUniformBuffer", address),
            ("STORAGE_BUFFER", "pStorageBuffer", address),
            ("ACCELERATION_STRUCTURE_KHR", "accelerationStructure", _U64),
        )
    }
    return _selected("VkDescriptorGetInfoEXT", "data", choices)


@special("VkDataGraphPipelineConstantARM")
def _graph_constant() -> Decoder:
    """The data is there only beside a description of a tensor in the chain."""
    blob = wire.blob(1)
    tensor = next(value for value, name in tables.STYPES.items() if name == "VkTensorDescriptionARM")

    def decode(data: bytes, at: int) -> tuple[Any, int]:
        stype, at = _ENUM(data, at)
        following, at = chain(data, at)
        identity, at = _U32(data, at)
        held, link = None, following
        while link is not None and link["sType"] != tensor:
            link = link["pNext"]
        if link is not None:
            held, at = blob(data, at)
        return {"sType": stype, "pNext": following, "id": identity, "pConstantData": held}, at

    return decode
