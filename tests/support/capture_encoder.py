"""Calls in normal form as a capture of GFXReconstruct encodes them, and what reading them must give.

It walks the same tables as the reader and shares no code with it. What a capture cannot hold is changed on the way: of
a union the one member that it holds, of a chain the structs with a known type, of a text what UTF-8 has.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Any

from vkharness.spec import _generated as tables

Encoded = tuple[bytes, Any]
"""The bytes of a value, and the value as it is read."""
NULL = struct.pack("<I", 1)
ADDRESS = struct.pack("<Q", 0x7FFF00001000)
C = {"uint8_t": "B", "uint16_t": "H", "uint32_t": "I", "uint64_t": "Q", "size_t": "Q", "unsigned long": "Q"}
C |= {"int32_t": "i", "int": "i", "int64_t": "q", "float": "f", "double": "d", "DWORD": "I"}
FOREIGN = ("HANDLE", "HINSTANCE", "HWND", "HMONITOR")


def code_of(base: str) -> str | None:
    if base in tables.HANDLES:
        return "Q"
    if base in tables.ENUMS or base.startswith("StdVideo"):
        return "i"
    return C.get(tables.BASETYPES.get(base, base))


def pointer(kind: int, count: int | None, data: bytes) -> bytes:
    """A pointer that is not null, to data; `count` elements unless it is a single value."""
    size = b"" if count is None else struct.pack("<Q", count)
    return struct.pack("<I", kind | 0x40 | 0x80) + ADDRESS + size + data


def text(value: str | None) -> Encoded:
    if value is None:
        return NULL, None
    data = value.encode("utf-8", "replace")
    return pointer(0x02 | 0x08, len(data), data), data.decode()


def members(listed: tuple[tables.Member, ...], values: dict[str, Any], in_struct: bool) -> Encoded:
    """Members or parameters, one after the other."""
    pieces, read = [], {}
    for each in listed:
        piece, read[each[0]] = member(each, values[each[0]], in_struct)
        pieces.append(piece)
    return b"".join(pieces), read


def structure(name: str, value: dict[str, Any]) -> Encoded:
    """A struct or union in line."""
    if name == "VkClearColorValue":
        return pointer(0x04, 4, struct.pack("<4I", *value["uint32"])), value
    if name == "VkClearValue":
        data, color = structure("VkClearColorValue", value["color"])
        return data, {"color": color}
    if name == "VkPerformanceValueINTEL":  # a number of 64 bits, where its type is no text
        return struct.pack("<iQ", 1, 9), {"type": 1, "data": {"value64": 9}}
    if name in tables.UNIONS:
        key = "u64" if "Statistic" in name else "deviceAddress"
        return struct.pack("<Q", 9), {key: 9}
    if name == "VkAccelerationStructureGeometryKHR":
        kind = 2  # instances, of which a struct of plain numbers tells all
        instances = {"sType": 1000150004, "pNext": None, "arrayOfPointers": 1, "data": {"deviceAddress": 9}}
        head, tail = tables.STRUCTS[name][:3], tables.STRUCTS[name][4:]
        before, first = members(head, {**value, "geometryType": kind}, True)
        inside, held = structure("VkAccelerationStructureGeometryInstancesDataKHR", instances)
        after, last = members(tail, value, True)
        return before + inside + after, {**first, "geometry": {"instances": held}, **last}
    if name == "VkShaderModuleCreateInfo" and value["pCode"] is not None:
        value = {**value, "codeSize": len(value["pCode"]) // 4 * 4}
    return members(tables.STRUCTS[name], value, True)


def chain(value: dict[str, Any] | None) -> Encoded:
    """A pNext chain."""
    while value is not None and (value["sType"] not in tables.STYPES or tables.STYPES[value["sType"]] in LEFT_OUT):
        value = value.get("pNext")
    if value is None:
        return NULL, None
    data, read = structure(tables.STYPES[value["sType"]], value)
    return pointer(0x02 | 0x20, None, data), read


def member(each: tables.Member, value: Any, in_struct: bool) -> Encoded:
    name, base, stars, _, length, _, terminated, bits, _, _ = each
    base = tables.TYPE_ALIASES.get(base, base)
    if name == "pNext":
        return chain(value)
    if terminated:
        if stars == 2 or (length is not None and stars):
            return several(0x04 | 0x08, value, text)
        return text(value)
    if base == "void" and stars == 1 and length is None:
        return struct.pack("<Q", 77), None
    if base == "void" and stars == 2:
        return (NULL, None) if value is None else (pointer(0x02, None, struct.pack("<Q", value)), value)
    if base == "void" or (isinstance(length, tuple) and length[0] == "bytes"):
        return blob(value, 1 if base == "void" else 4)
    code = code_of(base)
    pointed = stars and (base in FOREIGN or (stars == 2 and code is None and base not in tables.STRUCTS))
    if pointed or base in ("VkAllocationCallbacks", "LPCWSTR"):
        return NULL, None
    if code is None and base not in tables.STRUCTS:  # a callback, or something of a window system
        return struct.pack("<Q", 77), None
    if bits:
        return struct.pack("<I", value), value
    return elements(each, base, code, value, in_struct)


def elements(each: tables.Member, base: str, code: str | None, value: Any, in_struct: bool) -> Encoded:
    """Numbers and structs, alone, in arrays and behind pointers."""
    stars, length, dims = each[2], each[4], each[5]

    def one(item: Any) -> Encoded:
        return structure(base, item) if code is None else (struct.pack("<" + code, item), item)

    kind = 0x20 if code is None else 0
    if dims:
        flat = value
        for _ in dims[1:]:
            flat = [item for row in flat for item in row]
        data, read = several(0x04 | kind, flat, one)
        for bound in reversed(dims[1:]):
            read = [read[i : i + bound] for i in range(0, len(read), bound)]
        return data, read
    if stars == 2 and in_struct:
        return several(0x100 | kind, value, lambda item: alone(0x04 | kind, item, one))
    if stars == 2:
        listed = None if value is None else [[item] for item in value]
        return several(0x100 | kind, listed, lambda row: several(0x04 | kind, row, one))
    if not stars:
        return one(value)
    return several(0x04 | kind, value, one) if length is not None else single(0x02 | kind, value, one)


def several(kind: int, values: list[Any] | None, one: Any) -> Encoded:
    """A pointer to several values."""
    if values is None:
        return NULL, None
    made = [one(value) for value in values]
    return pointer(kind, len(values), b"".join(data for data, _ in made)), [read for _, read in made]


def alone(kind: int, value: Any, one: Any) -> Encoded:
    """A row of one value, which is read as the value."""
    data, read = several(kind, [value], one)
    return data, read[0]


def single(kind: int, value: Any, one: Any) -> Encoded:
    if value is None:
        return NULL, None
    data, read = one(value)
    return pointer(kind, None, data), read


def blob(value: bytes | None, size: int) -> Encoded:
    """Bytes, as so many elements of `size` bytes."""
    if value is None:
        return NULL, None
    value = value[: len(value) // size * size]
    return pointer(0x04, len(value) // size, value), value


OWN_FORM = {
    "VkDescriptorGetInfoEXT",
    "VkPerformanceValueINTEL",
    "VkAccelerationStructureMotionInstanceNV",
    "VkDataGraphPipelineConstantARM",
    "VkIndirectCommandsLayoutTokenEXT",
    "VkIndirectExecutionSetCreateInfoEXT",
    "VkLayerSettingsCreateInfoEXT",
    "VkPushDescriptorSetWithTemplateInfoKHR",
    "VkMemoryToImageCopyEXT",
    "VkImageToMemoryCopyEXT",
    "VkCopyMemoryToImageInfoEXT",
    "VkCopyImageToMemoryInfoEXT",
}
"""Structs that a capture encodes in ways of their own."""
UNIONS_HELD: tuple[str, ...] = ("VkClearColorValue", "VkClearValue", "VkPerformanceValueDataINTEL")
UNIONS_HELD += ("VkDeviceOrHostAddressKHR", "VkDeviceOrHostAddressConstKHR", "VkPipelineExecutableStatisticValueKHR")
UNIONS_HELD += ("VkAccelerationStructureGeometryDataKHR",)
NUMBERS = ("void", "char", "LPCWSTR", "VkAllocationCallbacks", *FOREIGN, *C)


def encodable(listed: tuple[tables.Member, ...]) -> bool:
    """Whether the functions above know the form of all members: those of other headers and most unions they do not."""
    return all(_is_encodable(each[0], tables.TYPE_ALIASES.get(each[1], each[1]), each[2]) for each in listed)


def _is_encodable(member: str, base: str, stars: int) -> bool:
    if base in (*UNIONS_HELD, *NUMBERS):
        return True
    if base in ("SECURITY_ATTRIBUTES", "VkAccelerationStructureMotionInstanceDataNV"):
        return False
    if base in tables.STRUCTS:
        return base not in OWN_FORM and base not in tables.UNIONS and (member == "pNext" or encodable_struct(base))
    known = any(base in table for table in (tables.HANDLES, tables.ENUMS, tables.BASETYPES, tables.FUNCPOINTERS))
    return known or (bool(stars) and not base.startswith(("StdVideo", "zx_")))


@cache
def encodable_struct(name: str) -> bool:
    """The same of a struct."""
    return encodable(tuple(each for each in tables.STRUCTS[name] if each[1] != name))


LEFT_OUT = frozenset(name for name in tables.STYPES.values() if name in OWN_FORM or not encodable_struct(name))
"""Structs that a capture encodes in ways of their own, and those with types of other headers."""
