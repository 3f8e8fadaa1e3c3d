"""Writes the tables of the layer as C++: `python layer_tables.py FILE`. It needs only Python and this source tree.

What a pointer leads to is decided here by the rules that `vkharness.record.decode` and `forward` follow for Python
programs: the same tables, guards and lengths. `table_types.hpp` says what the rows mean.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from vkharness.mirror_layer.c_layouts import is_number, layout_of, size_and_alignment
from vkharness.spec._generated import COMMAND_ALIASES, COMMANDS, EXTENDED, HANDLES, SELECTIONS, STRUCTS, STYPES, UNIONS
from vkharness.spec.command_classes import (
    DESTROYERS,
    EXPORTS,
    HOST_POLLS,
    HOST_PUBLISHES,
    HOST_WAITS,
    IMPORTS,
    QUEUE_WORK,
)
from vkharness.spec.enums import VkDescriptorType
from vkharness.spec.followed import BUFFERS, GUARDS, IMAGES, NEVER_FOLLOWED, STRIDES, TEXEL_BUFFERS
from vkharness.spec.shapes import Member, Signature, is_callback, main_name, members, resolve, signature

UNCHANGED = frozenset({"vkGetInstanceProcAddr", "vkGetDeviceProcAddr"})
"""Commands that the layer answers itself."""
GEOMETRIES = "VkAccelerationStructureBuildGeometryInfoKHR"
TEMPLATE_KINDS = {
    **dict.fromkeys(IMAGES, "VkDescriptorImageInfo"),
    **dict.fromkeys(BUFFERS, "VkDescriptorBufferInfo"),
    **dict.fromkeys(TEXEL_BUFFERS, "VkBufferView"),
    VkDescriptorType.ACCELERATION_STRUCTURE_KHR: "VkAccelerationStructureKHR",
}
"""Descriptor type to what the memory of an update template holds for each descriptor."""
INLINE_BYTES = VkDescriptorType.INLINE_UNIFORM_BLOCK
"""The descriptor type whose count is bytes."""
OFFSETS = (
    ("VkImportMemoryFdInfoKHR", "fd"),
    ("VkMemoryAllocateInfo", "allocationSize"),
    ("VkMemoryMapInfoKHR", "memory"),
    ("VkMemoryMapInfoKHR", "offset"),
    ("VkMemoryMapInfoKHR", "size"),
    ("VkMemoryUnmapInfoKHR", "memory"),
    ("VkDescriptorUpdateTemplateCreateInfo", "descriptorUpdateEntryCount"),
    ("VkDescriptorUpdateTemplateCreateInfo", "pDescriptorUpdateEntries"),
    ("VkDescriptorUpdateTemplateEntry", "descriptorCount"),
    ("VkDescriptorUpdateTemplateEntry", "descriptorType"),
    ("VkDescriptorUpdateTemplateEntry", "offset"),
    ("VkDescriptorUpdateTemplateEntry", "stride"),
    ("VkPhysicalDeviceMaintenance7PropertiesKHR", "separateDepthStencilAttachmentAccess"),
    ("VkExtensionProperties", "extensionName"),
)
"""Places that the layer itself reads."""
SIZES = (
    "VkDescriptorUpdateTemplateEntry", "VkPhysicalDeviceMaintenance7PropertiesKHR", "VkPhysicalDeviceProperties2",
    "VkExtensionProperties",
)  # fmt: skip


@dataclass(frozen=True)
class PointerRow:
    """One `Pointer` of table_types.hpp."""

    at: int
    what: str = "NOTHING"
    element: int = 0
    counted: str = "ONE"
    count_at: int = 0
    count_size: int = 0
    number: int = 0
    guard: tuple[int, tuple[int, ...]] | None = None
    in_union: bool = False
    is_output: bool = False

    def moved(self, start: int) -> PointerRow:
        """The row where the struct begins at `start` in another one."""
        guard = None if self.guard is None else (self.guard[0] + start, self.guard[1])
        is_counted = self.counted in ("BY_NUMBER", "CEIL")
        return replace(
            self, at=self.at + start, count_at=self.count_at + start if is_counted else self.count_at, guard=guard
        )

    def text(self, guard: int) -> str:
        """The initializer, with the number of its guard."""
        flags = f"{int(self.in_union)}, {int(self.is_output)}"
        numbers = f"{self.at}, {self.element}, {self.count_at}, {self.number}, {guard}"
        return f"{{{numbers}, What::{self.what}, Counted::{self.counted}, {self.count_size}, {flags}}}"


class Tables:
    """All rows, in the order of their numbers."""

    def __init__(self) -> None:
        self.pointers: list[PointerRow] = []
        self.structs: dict[str, int] = {}
        self.struct_rows: list[str] = []
        self.guards: list[str] = ["{0, 0, 0}"]
        self.guard_values: list[int] = []
        self.names = sorted({*COMMANDS, *COMMAND_ALIASES} - UNCHANGED)
        self.numbers = {name: number for number, name in enumerate(self.names)}
        for name in STRUCTS:
            self.structs[name] = len(self.structs)
        for name in STRUCTS:
            self._struct(name)
        self.commands = [self._command(name) for name in self.names]

    def _struct(self, name: str) -> None:
        first = len(self.pointers)
        self.pointers += self.rows_of(name)
        self.struct_rows.append(f"{{{layout_of(name).size}, {first}, {len(self.pointers) - first}}}")

    def rows_of(self, name: str) -> list[PointerRow]:
        """The pointers in a struct, with those of the structs in it. Which one of a union means anything is known where
        the union is, so that alone it has none."""
        found: list[PointerRow] = []
        for member in () if name in UNIONS else members(name) or ():
            if member.pointer:
                found.append(self._of_member(name, member))
            elif resolve(member.type) in STRUCTS:
                place, size = layout_of(name).places[member.name], layout_of(member.type).size
                for start in range(place.offset, place.offset + place.size, size):
                    found += self._nested(name, member, start)
        return found

    def _nested(self, owner: str, member: Member, start: int) -> list[PointerRow]:
        name = resolve(member.type)
        if name not in UNIONS:
            return [row.moved(start) for row in self.rows_of(name)]
        if member.selector is None or name not in SELECTIONS:
            return []
        selector = layout_of(owner).places[member.selector].offset
        found = []
        for each in members(name) or ():
            rows = [self._row(each, 0, None)] if each.pointer else self.rows_of(resolve(each.type))
            values = SELECTIONS[name].get(each.name, ())
            for row in rows if values else ():
                if row.guard is not None:
                    raise LookupError(f"{name}.{each.name}: no way to ask two guards of one pointer")
                if row.what != "NOTHING":
                    found.append(replace(row.moved(start), guard=(selector, tuple(values)), in_union=True))
        return found

    def guard_of(self, row: PointerRow) -> int:
        """The number of a row's guard, 0 for none."""
        if row.guard is None:
            return 0
        at, values = row.guard
        self.guards.append(f"{{{at}, {len(self.guard_values)}, {len(values)}}}")
        self.guard_values += values
        return len(self.guards) - 1

    def _of_member(self, owner: str, member: Member) -> PointerRow:
        places = layout_of(owner).places
        at = places[member.name].offset
        if member.name == "pNext":
            return PointerRow(at, "CHAIN")
        if owner.startswith("VkPushDescriptorSetWithTemplateInfo") and member.name == "pData":
            return PointerRow(at, "TEMPLATED", 0, "BY_NUMBER", places["descriptorUpdateTemplate"].offset, 8)
        row = self._row(member, at, owner)
        guard = GUARDS.get((owner, member.name))
        if guard is None or row.what == "NOTHING":
            return row
        return replace(row, guard=(places[guard[0]].offset, tuple(map(int, guard[1]))))

    def _row(self, member: Member, at: int, owner: str | None) -> PointerRow:
        """The row of a member; of a member of a union where `owner` is None, which has no length."""
        counted = PointerRow(at)
        length = member.length
        if isinstance(length, int):
            counted = PointerRow(at, counted="FIXED", number=length)
        elif length is not None and owner is not None:
            name = length if isinstance(length, str) else str(length[1])
            kind = "CEIL" if not isinstance(length, str) and length[0] == "ceil_div" else "BY_NUMBER"
            place = layout_of(owner).places[name]
            number = int(length[-1]) if kind == "CEIL" else 0
            counted = PointerRow(at, counted=kind, count_at=place.offset, count_size=place.size, number=number)
        return self._leads(counted, member)

    def _leads(self, row: PointerRow, member: Member) -> PointerRow:
        """What the pointer leads to, as `decode` says it. The length is in the row."""
        name = resolve(member.type)
        has_length = row.counted != "ONE"
        nothing = PointerRow(row.at, is_output=row.is_output)
        if member.name in NEVER_FOLLOWED or is_callback(name) or name == "VkAllocationCallbacks":
            return nothing
        if name == "char" and member.pointer == 2:
            return replace(row, what="TEXTS") if has_length else nothing
        if name == "char":
            is_text = member.terminated or not has_length
            return replace(row, what="TEXT") if is_text else replace(row, what="PLAIN", element=1)
        if name == "void" and member.pointer == 2:
            return replace(row, what="PLAIN", element=8) if not (member.const or has_length) else nothing
        if name == "void" or (isinstance(member.length, tuple) and member.length[0] == "bytes"):
            return replace(row, what="PLAIN", element=1) if has_length else nothing
        if name in STRUCTS:
            return self._structs(row, member, name, has_length)
        if member.pointer > 1 or not (name in HANDLES or is_number(name)):
            return nothing
        return replace(row, what="PLAIN", element=size_and_alignment(name)[0])

    def _structs(self, row: PointerRow, member: Member, name: str, has_length: bool) -> PointerRow:
        if member.pointer == 2:
            return replace(row, what="STRUCT_LIST", element=self.structs[name]) if has_length else PointerRow(row.at)
        return replace(row, what="STRUCTS", element=self.structs[name])

    def _command(self, name: str) -> str:
        shape = signature(name)
        if shape is None:
            raise LookupError(name)
        first = len(self.pointers)
        for place, param in enumerate(shape.params):
            if param.pointer or param.dims:
                self.pointers.append(self._of_parameter(name, shape, place, param))
        main = self.numbers[main_name(name)]
        pointers = f"{first}, {len(self.pointers) - first}"
        stub = f"stub_of<{', '.join([str(self.numbers[name]), _returned(shape), *map(_passed, shape.params)])}>()"
        return f'{{"{name}", {main}, {len(shape.params)}, {_flags(name, shape)}, {pointers}, {stub}}}'

    def _of_parameter(self, name: str, shape: Signature, place: int, param: Member) -> PointerRow:
        index = {each.name: at for at, each in enumerate(shape.params)}
        output = bool(param.pointer) and not param.const
        if param.dims:
            return PointerRow(place, "PLAIN", size_and_alignment(param.type)[0], "FIXED", number=param.dims[0])
        if param.name == "pData" and "WithTemplate" in name:
            return PointerRow(place, "TEMPLATED", 0, "BY_NUMBER", index["descriptorUpdateTemplate"], 8)
        row = self._counted(PointerRow(place, is_output=output), shape, index, param)
        if param.name in ("ppBuildRangeInfos", "ppMaxPrimitiveCounts"):
            element = size_and_alignment(param.type)[0]
            return replace(row, what="GEOMETRIES", element=element, number=index["pInfos"])
        of, stride = STRIDES.get(name, ("", ""))
        if of == param.name:
            return replace(row, what="STRIDED", element=layout_of(param.type).size, number=index[stride])
        return self._leads(row, param)

    def _counted(self, row: PointerRow, shape: Signature, index: dict[str, int], param: Member) -> PointerRow:
        length = param.length
        if length is None:
            return row
        if isinstance(length, int):
            return replace(row, counted="FIXED", number=length)
        if not isinstance(length, str) and length[0] == "path":
            owner = index[length[1]]
            place = layout_of(shape.params[owner].type).places[str(length[-1])]
            return replace(row, counted="PATH", count_at=owner, number=place.offset, count_size=place.size)
        sibling = index[length if isinstance(length, str) else str(length[1])]
        kind = "BY_NUMBER"
        if not isinstance(length, str) and length[0] == "ceil_div":
            kind, row = "CEIL", replace(row, number=int(length[-1]))
        if shape.params[sibling].pointer:
            kind = "THROUGH"
        size = size_and_alignment(shape.params[sibling].type)[0]
        return replace(row, counted=kind, count_at=sibling, count_size=size)


def _is_shared(name: str) -> bool:
    """Whether a struct says of memory that is allocated that others have it, too."""
    return "VkMemoryAllocateInfo" in EXTENDED[name] and ("Import" in name or "Export" in name)


def _returned(shape: Signature) -> str:
    if shape.returns == "void":
        return "void"
    return {"VkResult": "std::int32_t"}.get(shape.returns, f"std::uint{8 * size_and_alignment(shape.returns)[0]}_t")


def _passed(param: Member) -> str:
    if param.pointer or param.dims:
        return "std::uint64_t"
    name = resolve(param.type)
    return name if name in ("float", "double") else f"std::uint{8 * size_and_alignment(name)[0]}_t"


def _flags(name: str, shape: Signature) -> str:
    main = main_name(name)
    first = shape.params[0]
    compared = QUEUE_WORK | HOST_PUBLISHES | HOST_WAITS | HOST_POLLS
    both = HOST_WAITS | HOST_POLLS | {"vkInvalidateMappedMemoryRanges"}
    is_first = main in QUEUE_WORK | HOST_PUBLISHES | {"vkResetDescriptorPool"} or name.startswith(DESTROYERS)
    said = {
        "FIRST": is_first,
        "FAILS": shape.returns == "VkResult",
        "VOID": shape.returns == "void",
        "LOOK_BEFORE": main in compared | both or main.startswith("vkUnmapMemory"),
        "LOOK_AFTER": main in both,
        "OF_INSTANCE": not first.pointer and resolve(first.type) == "VkInstance",
        "OF_PHYSICAL": not first.pointer and resolve(first.type) == "VkPhysicalDevice",
        "EXPORTS_FILE": main in EXPORTS and "Fd" in name,
        "IMPORTS_FILE": main in IMPORTS and "Fd" in name,
        "IS_GLOBAL": bool(first.pointer) or resolve(first.type) not in HANDLES,
    }
    return " | ".join(flag for flag, holds in said.items() if holds) or "0"


def written() -> str:
    """The whole file."""
    tables = Tables()
    lines = [
        "// Made by layer_tables.py from the tables of the registry.",
        "#ifndef VKHARNESS_GENERATED_HPP",
        "#define VKHARNESS_GENERATED_HPP",
        '#include "table_types.hpp"',
        "namespace vkharness::mirror {",
    ]
    names = ", ".join(f"{name} = {tables.numbers[name]}" for name in tables.names)
    lines += [
        f"struct Is {{ enum : std::uint16_t {{ {names} }}; }};",
        f"constexpr unsigned COMMANDS = {len(tables.names)};",
    ]
    for struct, member in OFFSETS:
        lines.append(f"constexpr std::uint32_t {struct}_{member} = {layout_of(struct).places[member].offset};")
    lines += [f"constexpr std::uint32_t size_of_{struct} = {layout_of(struct).size};" for struct in SIZES]
    place = layout_of(GEOMETRIES).places["geometryCount"].offset
    lines.append(f"constexpr std::uint32_t GEOMETRY_STRIDE = {layout_of(GEOMETRIES).size}, GEOMETRY_COUNT = {place};")
    fd = layout_of("VkImportSemaphoreFdInfoKHR").places["fd"].offset
    assert fd == layout_of("VkImportFenceFdInfoKHR").places["fd"].offset
    lines.append(f"constexpr std::uint32_t IMPORTED_FD = {fd};")
    types = {name: value for value, name in STYPES.items()}
    for struct in (
        "VkImportMemoryFdInfoKHR",
        "VkPhysicalDeviceMaintenance7PropertiesKHR",
        "VkPhysicalDeviceProperties2",
    ):
        lines.append(f"constexpr std::int32_t type_of_{struct} = {types[struct]};")
    kinds = ", ".join(f"{{{int(kind)}, {size_and_alignment(held)[0]}}}" for kind, held in TEMPLATE_KINDS.items())
    lines.append(f"constexpr TemplateKind TEMPLATE_KINDS[] = {{{kinds}}};")
    lines.append(f"constexpr std::int32_t INLINE_BYTES = {INLINE_BYTES};")
    pointers = [row.text(tables.guard_of(row)) for row in tables.pointers]
    shared = sorted(types[name] for name in EXTENDED if _is_shared(name))
    lines.append(f"constexpr std::int32_t SHARED_TYPES[] = {{{', '.join(map(str, shared))}}};")
    lines += _array("Guard", "GUARDS", tables.guards)
    lines += _array("std::int32_t", "GUARD_VALUES", map(str, tables.guard_values))
    lines += _array("Pointer", "POINTERS", pointers)
    lines += _array("Struct", "STRUCTS", tables.struct_rows)
    lines += _array(
        "StructType", "STRUCT_TYPES", (f"{{{value}, {tables.structs[STYPES[value]]}}}" for value in sorted(STYPES))
    )
    lines += ["}  // namespace vkharness::mirror", "#endif", "#ifdef VKHARNESS_STUBS", "namespace vkharness::mirror {"]
    lines += _array("Command", "COMMAND_TABLE", tables.commands, "extern const")
    lines += ["}  // namespace vkharness::mirror", "#endif"]
    return "\n".join(lines) + "\n"


def _array(kind: str, name: str, rows: Iterable[str], how: str = "constexpr") -> list[str]:
    return [f"{how} {kind} {name}[] = {{", *(f"    {row}," for row in rows), "};"]


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(written(), encoding="utf-8")
