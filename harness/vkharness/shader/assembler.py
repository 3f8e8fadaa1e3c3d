"""Writes SPIR-V: a module taken apart into sections, to which instructions are added, and put together again."""

from __future__ import annotations

import struct

from vkharness.shader.opcodes import Op
from vkharness.shader.spirv import MAGIC, Instruction, read

ANNOTATIONS = frozenset({Op.Decorate, Op.MemberDecorate, Op.GroupDecorate, Op.GroupMemberDecorate, Op.DecorateId, 73})


class Assembler:
    """A module in sections, in the order that the SPIR-V specification gives ("Logical Layout of a Module")."""

    def __init__(self, code: bytes) -> None:
        """Raises SpirvError for what is no module."""
        header, instructions = read(code)
        self.version = header[1]
        self._generator, self._bound = header[2], header[3]
        self.capabilities: list[Instruction] = []
        self.extensions: list[Instruction] = []
        self.preamble: list[Instruction] = []
        """From the imports of instruction sets to the debug information."""
        self.annotations: list[Instruction] = []
        self.declarations: list[Instruction] = []
        """Types, constants and variables."""
        self.functions: list[Instruction] = []
        for each in instructions:
            self._section(each[0]).append(each)

    def _section(self, op: int) -> list[Instruction]:
        if self.functions or op == Op.Function:
            return self.functions
        if op == Op.Capability:
            return self.capabilities
        if op == Op.Extension:
            return self.extensions
        if op in ANNOTATIONS:
            return self.annotations
        return self.declarations if self.declarations or op >= Op.TypeVoid else self.preamble

    def id(self) -> int:
        """A fresh id."""
        self._bound += 1
        return self._bound - 1

    def declare(self, op: int, *operands: int) -> int:
        """Adds a type, whose id is its first operand; the id."""
        made = self.id()
        self.declarations.append((op, (made, *operands)))
        return made

    def type(self, op: int, *operands: int) -> int:
        """The type with these operands, added where the module has none. Not for types that carry decorations."""
        for other, held in self.declarations:
            if other == op and held[1:] == operands:
                return held[0]
        return self.declare(op, *operands)

    def constant(self, type: int, value: int) -> int:
        """A 32-bit constant."""
        made = self.id()
        self.declarations.append((Op.Constant, (type, made, value & 0xFFFFFFFF)))
        return made

    def assemble(self) -> bytes:
        """The module's bytes."""
        words = [MAGIC, self.version, self._generator, self._bound, 0]
        sections = (self.capabilities, self.extensions, self.preamble, self.annotations, self.declarations)
        for section in (*sections, self.functions):
            for op, operands in section:
                words.append((len(operands) + 1) << 16 | op)
                words.extend(operands)
        return struct.pack(f"<{len(words)}I", *words)


def text(value: str) -> tuple[int, ...]:
    """A literal string as operand words."""
    data = value.encode() + b"\0"
    data += b"\0" * (-len(data) % 4)
    return struct.unpack(f"<{len(data) // 4}I", data)
