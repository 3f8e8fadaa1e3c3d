"""Type and command tables: handles, enums, flags, structs, commands. All of the registry, under the binding's names."""

from __future__ import annotations

import re
from typing import Any

from .header import Header

PLATFORM_TYPES = {
    "DWORD": "unsigned long",
    "VisualID": "unsigned long",
    "Window": "unsigned long",
    "xcb_visualid_t": "uint32_t",
    "xcb_window_t": "uint32_t",
}
BASE = {
    "VkBool32": "uint32_t",
    "VkDeviceAddress": "uint64_t",
    "VkDeviceSize": "uint64_t",
    "VkFlags": "uint32_t",
    "VkFlags64": "uint64_t",
    "VkSampleMask": "uint32_t",
}


class Types:
    """The type part of the registry, spelled with one header's names where that header has one."""

    def __init__(self, registry: Any, header: Header) -> None:
        self.registry = registry
        self.header = header
        self.main: dict[str, str] = {}
        for kind in (registry.structs, registry.handles, registry.enums, registry.bitmasks, registry.flags):
            for entry in kind.values():
                self._name(entry.name, entry.aliases, header.words)
        self.main_command: dict[str, str] = {}
        self._name_commands()
        self.constants = {name: int(row.value) for name, row in registry.constants.items() if row.type != "float"}

    def _name(self, name: str, aliases: list[str], known: frozenset[str]) -> None:
        """Pick the name under which the header has a type, the registry's own if it can, for all its names."""
        chosen = next((candidate for candidate in (name, *aliases) if candidate in known), name)
        for candidate in (name, *aliases):
            self.main[candidate] = chosen

    def _name_commands(self) -> None:
        groups: dict[str, list[str]] = {}
        for command in self.registry.commands.values():
            groups.setdefault(command.alias or command.name, [command.alias or command.name]).append(command.name)
        for group in groups.values():
            chosen = next((name for name in group if name in self.header.functions), group[0])
            for name in group:
                self.main_command[name] = chosen

    def type_aliases(self) -> dict[str, str]:
        """Other names of a type to the name that the tables use."""
        return {name: main for name, main in sorted(self.main.items()) if name != main}

    def command_aliases(self) -> dict[str, str]:
        """Other names of a command to the name that stands for the group."""
        return {name: main for name, main in sorted(self.main_command.items()) if name != main}

    def handles(self) -> dict[str, bool]:
        """Handle type to whether it is dispatchable."""
        return {self.main[row.name]: row.dispatchable for row in self.registry.handles.values()}

    def _enumerants(self, fields: list[Any], header_name: str) -> dict[str, int]:
        """Enumerants by value, the registry's names for one before names that it dropped since the header."""
        found: dict[str, int] = {}
        for field in sorted(fields, key=lambda field: int(field.value)):
            for name in (field.name, *sorted(field.aliases)):
                found[name] = field.value
        dropped = {
            name: value for name, value in self.header.enumerants.get(header_name, {}).items() if name not in found
        }
        return dict(sorted({**found, **dropped}.items(), key=lambda pair: pair[1])) if dropped else found

    def enums(self) -> dict[str, dict[str, int]]:
        """Enum type to its enumerants, ordered by value; of several names for a value the preferred one is first."""
        known = [(self.main[row.name], row) for row in self.registry.enums.values()]
        return {name: self._enumerants(row.fields, name) for name, row in known}

    def bitmasks(self) -> dict[str, dict[str, int]]:
        """Flags type and FlagBits type (both) to their enumerants."""
        masks = self.registry.bitmasks.values()
        bits = {row.name: self._enumerants(row.flags, self.main[row.name]) for row in masks}
        found = {self.main[name]: row for name, row in bits.items()}
        for flags in self.registry.flags.values():
            found[self.main[flags.name]] = bits.get(flags.bitmaskName or "", {})
        return found

    def flag_width(self) -> dict[str, int]:
        """Flags type and FlagBits type to the bits of their storage."""
        rows = (*self.registry.flags.values(), *self.registry.bitmasks.values())
        return {self.main[row.name]: row.bitWidth for row in rows}

    def base_types(self) -> dict[str, str]:
        """Typedef of a number to the C type under it."""
        flags = {name: f"uint{width}_t" for name, width in self.flag_width().items()}
        platform = {name: base for name, base in PLATFORM_TYPES.items() if name in self.header.words}
        return {**BASE, **flags, **platform}

    def stypes(self) -> dict[int, str]:
        """Value of VkStructureType to the struct that carries it."""
        values = {}
        for field in self.registry.enums["VkStructureType"].fields:
            for name in (field.name, *field.aliases):
                values[name] = field.value
        structs = (row for row in self.registry.structs.values() if row.sType)
        return dict(sorted((values[row.sType], self.main[row.name]) for row in structs))

    def structs(self) -> dict[str, tuple[Any, ...]]:
        """Struct or union to its members, checked against the header's own member list where it has one."""
        found = {}
        for row in self.registry.structs.values():
            name = self.main[row.name]
            by_name = {member.name: member for member in row.members}
            declared = self.header.members.get(name, tuple(by_name))
            missing = [member for member in declared if member not in by_name]
            if missing:
                raise SystemExit(f"gen_spec: {name} has members that the registry lacks: {', '.join(missing)}")
            found[name] = tuple(self.member(by_name[member]) for member in declared)
        return found

    def unions(self) -> list[str]:
        """Names in `structs` that are unions."""
        return sorted({self.main[row.name] for row in self.registry.structs.values() if row.union})

    def commands(self) -> dict[str, tuple[Any, ...]]:
        """Command to (return type, parameters, name it is an alias of or None)."""
        found = {}
        for row in self.registry.commands.values():
            main = self.main_command[row.name]
            params = tuple(self.member(param) for param in row.params)
            found[row.name] = (row.returnType, params, main if main != row.name else None)
        return found

    def tasks(self) -> dict[str, tuple[str, ...]]:
        """Command to the registry's tasks, for those that have one."""
        return {row.name: tuple(row.tasks) for row in self.registry.commands.values() if row.tasks}

    def needed(self) -> dict[str, tuple[str, ...]]:
        """Struct or command to those of its pointers that may not be null. One to elements may be where there are
        none."""
        found = {}
        structs = ((self.main[row.name], row.members) for row in self.registry.structs.values())
        commands = ((row.name, row.params) for row in self.registry.commands.values())
        for name, rows in (*structs, *commands):
            pointers = (row for row in rows if "*" in row.fullType and row.name != "pNext")
            names = tuple(row.name for row in pointers if not row.optional and not row.noAutoValidity)
            if names:
                found[name] = names
        return found

    def extended(self) -> dict[str, list[str]]:
        """Struct to the structs that it may extend, in their pNext chains."""
        found = {}
        for row in self.registry.structs.values():
            if row.extends:
                found[self.main[row.name]] = sorted({self.main[each] for each in row.extends})
        return found

    def selections(self) -> dict[str, dict[str, list[int]]]:
        """Union to its members, each with the values of the selecting enum for which it is the valid one."""
        values = {
            field_name: field.value
            for row in self.registry.enums.values()
            for field in row.fields
            for field_name in (field.name, *field.aliases)
        }
        found = {}
        for row in self.registry.structs.values():
            chosen = {each.name: [values[choice] for choice in each.selection or ()] for each in row.members}
            if row.union and any(chosen.values()):
                found[self.main[row.name]] = chosen
        return found

    def func_pointers(self) -> list[str]:
        """Names of the callback types."""
        return sorted(self.registry.funcPointers)

    def member(self, row: Any) -> tuple[Any, ...]:
        """A struct member or parameter as the tables' docstring describes it."""
        dims = tuple(self._constant(dim) for dim in row.fixedSizeArray)
        return (
            row.name,
            self.main.get(row.type, row.type),
            row.fullType.count("*"),
            row.const,
            None if dims else self._length(row.length),
            dims,
            row.nullTerminated,
            getattr(row, "bitFieldWidth", None) or 0,
            getattr(row, "selector", None),
            row.noAutoValidity,
        )

    def _constant(self, text: str) -> int:
        return int(text) if text.isdigit() else self.constants[text]

    def _length(self, text: str | None) -> Any:
        """A length in the form that the tables' docstring describes."""
        if text is None or text == "1":
            return None
        text = text.split(",")[0]
        if re.fullmatch(r"\w+", text):
            return text
        if found := re.fullmatch(r"(\w+)->(\w+)", text):
            return ("path", found[1], found[2])
        if found := re.fullmatch(r"\((\w+) \+ 31\) / 32", text):
            return ("ceil_div", found[1], 32)
        if found := re.fullmatch(r"(\w+) / 4", text):
            return ("bytes", found[1])
        if found := re.fullmatch(r"(\d+)\*(\w+)", text):
            return int(found[1]) * self._constant(found[2])
        raise SystemExit(f"gen_spec: a length that nothing here understands: {text}")


def formats(registry: Any) -> dict[int, tuple[Any, ...]]:
    """VkFormat value to (name, block bytes, block width, height, depth, aspects, planes), whole registry."""
    values = {field.name: field.value for field in registry.enums["VkFormat"].fields}
    found = {}
    for row in registry.formats.values():
        extent = tuple(int(part) for part in row.blockExtent) or (1, 1, 1)
        planes = tuple(
            (plane.index, plane.widthDivisor, plane.heightDivisor, registry.formats[plane.compatible].blockSize)
            for plane in row.planes
        )
        kinds = {component.type for component in row.components}
        aspects = (2 if "D" in kinds else 0) | (4 if "S" in kinds else 0) or 1
        if planes:
            aspects = sum(0x10 << plane[0] for plane in planes)
        found[values[row.name]] = (row.name, row.blockSize, *extent, aspects, planes)
    return dict(sorted(found.items()))
