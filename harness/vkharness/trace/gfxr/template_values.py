"""The data of descriptor update templates: a capture keeps what the template reads, sorted by kind.

First come three counts: images, buffers, texel buffer views. Then these follow, each kind in the order of the
template's entries. Of other kinds, a count and the descriptor type come before their data; the count of an inline
uniform block is in bytes. Normal form is what `vkharness.trace.templates` describes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from vkharness.spec import _generated as tables
from vkharness.spec.enums import VkDescriptorType, VkDescriptorUpdateTemplateType, VkStructureType
from vkharness.spec.followed import BUFFERS, IMAGES, TEXEL_BUFFERS
from vkharness.spec.shapes import main_name
from vkharness.trace.gfxr import encoded_values as wire
from vkharness.trace.gfxr.decoders import plain, wire_struct
from vkharness.trace.gfxr.encoded_values import Decoder
from vkharness.trace.lines import Corrupt
from vkharness.trace.templates import BIND_POINT, PUSH, PUSH_2, PUSH_INFO, UPDATE, WRITES

_IMAGE, _BUFFER = wire_struct("VkDescriptorImageInfo"), wire_struct("VkDescriptorBufferInfo")
_VIEW, _BYTE = wire.number("Q"), wire.number("B")
_HEAD = struct.Struct("<QQQ")
_OTHER = struct.Struct("<QI")

Data = dict[str, list[Any]]
"""Kind to its values in order: "images", "buffers", "views", "structures" and "bytes"."""


def parameters(name: str) -> Decoder | None:
    """The decoder of a call that applies a template, with `Data` as its `pData`; None for any other call."""
    main = main_name(name)
    if main not in (UPDATE, PUSH, PUSH_2):
        return None
    rows = tables.COMMANDS[main][1]
    if main == PUSH_2:
        return _then_data(plain(name, rows, False))
    return _then_data(plain(name, rows[:-1], False))


def _then_data(before: Decoder) -> Decoder:
    def decode(data: bytes, at: int) -> tuple[Any, int]:
        args, at = before(data, at)
        args["pData"], at = _data(data, at)
        return args, at

    return decode


def _data(data: bytes, at: int) -> tuple[Data | None, int]:
    count, at = wire.pointer(data, at)
    if count == wire.NONE:
        return None, at
    images, buffers, views = _HEAD.unpack_from(data, at)
    at += _HEAD.size
    found: Data = {"structures": [], "bytes": []}
    for kind, element, number, size in (
        ("images", _IMAGE, images, 20),
        ("buffers", _BUFFER, buffers, 24),
        ("views", _VIEW, views, 8),
    ):
        found[kind], at = _many(element, data, at, number, size)
    while len(data) - at >= _OTHER.size:
        number, descriptor = _OTHER.unpack_from(data, at)
        at += _OTHER.size
        if descriptor == VkDescriptorType.ACCELERATION_STRUCTURE_KHR:
            found["structures"], at = _many(_VIEW, data, at, number, 8)
        elif descriptor == VkDescriptorType.INLINE_UNIFORM_BLOCK:
            found["bytes"], at = _many(_BYTE, data, at, number, 1)
        elif number:
            raise Corrupt(f"data of a descriptor update template of the descriptor type {descriptor}")
    return found, len(data)  # some captures end in a count without anything after it


def _many(element: Decoder, data: bytes, at: int, count: int, size: int) -> tuple[list[Any], int]:
    wire.span(data, at, count, size)
    values = []
    for _ in range(count):
        value, at = element(data, at)
        values.append(value)
    return values, at


def first_form(name: str, args: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """A call that pushes descriptors with vkCmdPushDescriptorSetWithTemplate2 as the same call of the first form; every
    other call as it is."""
    info = args.get(PUSH_INFO)
    if info is None:
        return name, args
    parts = {key: info[key] for key in ("descriptorUpdateTemplate", "layout", "set")}
    return PUSH, {"commandBuffer": args["commandBuffer"], **parts, "pData": args["pData"]}


class UpdateTemplates:
    """The templates of one capture, by id."""

    def __init__(self) -> None:
        self._infos: dict[int, dict[str, Any]] = {}

    def created(self, args: dict[str, Any]) -> None:
        """Takes the arguments of a vkCreateDescriptorUpdateTemplate that succeeded."""
        if args["pDescriptorUpdateTemplate"] and args["pCreateInfo"]:
            self._infos[args["pDescriptorUpdateTemplate"]] = args["pCreateInfo"]

    def destroyed(self, args: dict[str, Any]) -> None:
        """Forgets a template."""
        self._infos.pop(args["descriptorUpdateTemplate"], None)

    def applied(self, args: dict[str, Any]) -> None:
        """Puts the writes that a template makes of its data into the arguments of a call that applies it.

        Raises Corrupt when the data is not what the template reads.
        """
        info = self._infos.get(args["descriptorUpdateTemplate"])
        data, args["pData"] = args["pData"], None
        if info is None or data is None:
            return
        values = {kind: iter(each) for kind, each in data.items()}
        target = args.get("descriptorSet", 0)
        writes = [_write(target, entry, values) for entry in info["pDescriptorUpdateEntries"] or ()]
        if info["templateType"] == VkDescriptorUpdateTemplateType.PUSH_DESCRIPTORS:
            args[BIND_POINT] = info["pipelineBindPoint"]
        args[WRITES] = writes


def _write(target: int, entry: dict[str, Any], values: dict[str, Iterator[Any]]) -> dict[str, Any]:
    kind, count = entry["descriptorType"], entry["descriptorCount"]

    def take(name: str) -> list[Any]:
        taken = list(islice(values[name], count))
        if len(taken) != count:
            raise Corrupt("less data than the descriptor update template reads")
        return taken

    return {
        "sType": VkStructureType.WRITE_DESCRIPTOR_SET,
        "pNext": _chained(kind, count, take),
        "dstSet": target,
        "dstBinding": entry["dstBinding"],
        "dstArrayElement": entry["dstArrayElement"],
        "descriptorCount": count,
        "descriptorType": kind,
        "pImageInfo": take("images") if kind in IMAGES else None,
        "pBufferInfo": take("buffers") if kind in BUFFERS else None,
        "pTexelBufferView": take("views") if kind in TEXEL_BUFFERS else None,
    }


def _chained(kind: int, count: int, take: Callable[[str], list[Any]]) -> dict[str, Any] | None:
    if kind == VkDescriptorType.INLINE_UNIFORM_BLOCK:
        stype = VkStructureType.WRITE_DESCRIPTOR_SET_INLINE_UNIFORM_BLOCK
        return {"sType": stype, "pNext": None, "dataSize": count, "pData": bytes(take("bytes"))}
    if kind == VkDescriptorType.ACCELERATION_STRUCTURE_KHR:
        stype = VkStructureType.WRITE_DESCRIPTOR_SET_ACCELERATION_STRUCTURE_KHR
        handles = take("structures")
        return {"sType": stype, "pNext": None, "accelerationStructureCount": count, "pAccelerationStructures": handles}
    return None
