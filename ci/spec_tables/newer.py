"""Types and commands that the registry has and the binding's header lacks.

A capture may hold them, and whoever reads it must know how many bytes they take.
"""

from __future__ import annotations

from typing import Any

from .types import Types


class NewerTypes:
    """The rows that `Types` leaves out, in the same form."""

    def __init__(self, types: Types) -> None:
        self.types = types
        self.registry = types.registry

    def structs(self) -> dict[str, tuple[Any, ...]]:
        """Struct or union to its members."""
        known = self.types.structs()
        rows = (row for row in self.registry.structs.values() if self.types.main.get(row.name) not in known)
        return {row.name: tuple(self.types.member(member) for member in row.members) for row in rows}

    def stypes(self) -> dict[int, str]:
        """Value of VkStructureType to a struct of `structs`."""
        values = {field.name: field.value for field in self.registry.enums["VkStructureType"].fields}
        rows = (self.registry.structs[name] for name in self.structs())
        return dict(sorted((values[row.sType], row.name) for row in rows if row.sType in values))

    def commands(self) -> dict[str, tuple[Any, ...]]:
        """Command to (return type, parameters, None), for those that the header has under no name."""
        rows = (row for row in self.registry.commands.values() if row.name not in self.types.main_command)
        return {
            row.name: (row.returnType, tuple(self.types.member(param) for param in row.params), None) for row in rows
        }

    def numbers(self) -> dict[str, str]:
        """Handle, enum, flags or typedef of a number to the C type of its value."""
        found = {row.name: "uint64_t" for row in self.registry.handles.values()}
        found |= {row.name: "int32_t" for row in self.registry.enums.values()}
        for row in (*self.registry.bitmasks.values(), *self.registry.flags.values()):
            found[row.name] = f"uint{row.bitWidth}_t"
        return {name: code for name, code in found.items() if name not in self.types.main}
