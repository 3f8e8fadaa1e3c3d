"""The binary form of SPIR-V, read into a Module: no meaning yet, only instructions sorted by what they declare.

Any input is accepted or refused with one UserError; time and memory grow linearly with the size of the input.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

from vkharness.findings import UserError
from vkharness.shader.opcodes import MINIMUM_OPERANDS, Decoration, Op, op_name

MAGIC = 0x07230203
HEADER_WORDS = 5
MAXIMUM_BYTES = 16 << 20
KEPT = frozenset(int(decoration) for decoration in Decoration)

Instruction = tuple[int, tuple[int, ...]]
"""Opcode and operand words."""

Decorations = dict[int, int]
"""Decoration -> its first operand, 0 for one without operands."""


class SpirvError(UserError):
    """This is not a SPIR-V module, or not one that Vulkan takes. One line."""


@dataclass(slots=True)
class Function:
    """One function: ids of its parameters and the instructions of its blocks."""

    id: int
    parameters: list[int] = field(default_factory=list)
    body: list[Instruction] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """One OpEntryPoint."""

    model: int
    function: int
    name: str
    interface: tuple[int, ...] = ()
    """Ids of the variables that the entry point declares as its own: all inputs and outputs."""


@dataclass(slots=True)
class Module:
    """A parsed module."""

    instruction_sets: dict[int, str] = field(default_factory=dict)
    """Names of imported extended instruction sets by id."""
    entry_points: list[EntryPoint] = field(default_factory=list)
    modes: dict[int, dict[int, tuple[int, ...]]] = field(default_factory=dict)
    """Function id -> execution mode -> its operands."""
    decorations: dict[int, Decorations] = field(default_factory=dict)
    member_decorations: dict[tuple[int, int], Decorations] = field(default_factory=dict)
    declarations: list[Instruction] = field(default_factory=list)
    """Types, constants and module-scope variables in order."""
    functions: dict[int, Function] = field(default_factory=dict)


def read(code: bytes) -> tuple[tuple[int, ...], list[Instruction]]:
    """The header's words and all instructions in order. Raises SpirvError as `parse` does."""
    words = _words(code)
    return tuple(words[:HEADER_WORDS]), list(_instructions(words))


def parse(code: bytes) -> Module:
    """Read a module of either byte order. Raises SpirvError when it is not one, is truncated, or is over 16 MiB."""
    module = Module()
    groups: list[Instruction] = []
    function: Function | None = None
    for op, operands in _instructions(_words(code)):
        if function is not None:
            function = _inside(function, op, operands)
        elif op == Op.Function:
            if operands[1] in module.functions:
                raise SpirvError(f"SPIR-V declares the function %{operands[1]} twice")
            function = module.functions[operands[1]] = Function(operands[1])
        elif op in (Op.GroupDecorate, Op.GroupMemberDecorate):
            groups.append((op, operands))
        else:
            _outside(module, op, operands)
    if function is not None:
        raise SpirvError(f"SPIR-V ends inside the function %{function.id}")
    for op, operands in groups:
        _apply_group(module, op, operands)
    return module


def _words(code: bytes) -> array[int]:
    if len(code) > MAXIMUM_BYTES:
        raise SpirvError(f"SPIR-V of {len(code)} bytes is over the limit of {MAXIMUM_BYTES}")
    if len(code) % 4 or len(code) < 4 * HEADER_WORDS:
        raise SpirvError(f"not SPIR-V: {len(code)} bytes are not a header of {HEADER_WORDS} words and whole words")
    words = array("I")
    words.frombytes(code)
    if words[0] != MAGIC:
        words.byteswap()
    if words[0] != MAGIC:
        raise SpirvError(f"not SPIR-V: the first word is 0x{int.from_bytes(code[:4], sys.byteorder):08x}")
    return words


def _instructions(words: array[int]) -> Iterator[Instruction]:
    at, end = HEADER_WORDS, len(words)
    while at < end:
        count, op = words[at] >> 16, words[at] & 0xFFFF
        if count == 0:
            raise SpirvError(f"SPIR-V word {at}: an instruction of zero words")
        if at + count > end:
            raise SpirvError(f"SPIR-V is truncated: word {at} begins {count} words, {end - at} are left")
        if count - 1 < MINIMUM_OPERANDS.get(op, 0):
            raise SpirvError(f"SPIR-V word {at}: {op_name(op)} with only {count - 1} operands")
        yield op, tuple(words[at + 1 : at + count])
        at += count


def _inside(function: Function, op: int, operands: tuple[int, ...]) -> Function | None:
    """One instruction between OpFunction and OpFunctionEnd; the function that goes on after it."""
    if op == Op.FunctionEnd:
        return None
    if op == Op.Function:
        raise SpirvError(f"SPIR-V declares a function inside the function %{function.id}")
    if op == Op.FunctionParameter:
        function.parameters.append(operands[1])
    function.body.append((op, operands))
    return function


def _outside(module: Module, op: int, operands: tuple[int, ...]) -> None:
    if op in (Op.Decorate, Op.DecorateId):
        _decorate(module.decorations.setdefault(operands[0], {}), operands[1:])
    elif op == Op.MemberDecorate:
        _decorate(module.member_decorations.setdefault((operands[0], operands[1]), {}), operands[2:])
    elif op == Op.EntryPoint:
        name = literal_text(operands[2:])
        words = len(name.encode()) // 4 + 1
        module.entry_points.append(EntryPoint(operands[0], operands[1], name, operands[2 + words :]))
    elif op in (Op.ExecutionMode, Op.ExecutionModeId):
        module.modes.setdefault(operands[0], {})[operands[1]] = operands[2:]
    elif op == Op.ExtInstImport:
        module.instruction_sets[operands[0]] = literal_text(operands[1:])
    elif op >= Op.TypeVoid:
        module.declarations.append((op, operands))


def _decorate(held: Decorations, operands: tuple[int, ...]) -> None:
    if operands[0] in KEPT:
        held[operands[0]] = operands[1] if len(operands) > 1 else 0


def _apply_group(module: Module, op: int, operands: tuple[int, ...]) -> None:
    # A group holds at most one of each kept decoration, so this stays linear in the number of targets.
    group = module.decorations.get(operands[0], {})
    if op == Op.GroupDecorate:
        for target in operands[1:]:
            module.decorations.setdefault(target, {}).update(group)
    else:
        for target, member in zip(operands[1::2], operands[2::2], strict=False):
            module.member_decorations.setdefault((target, member), {}).update(group)


def literal_text(words: tuple[int, ...]) -> str:
    """A nul-terminated UTF-8 literal, low-order byte first; what follows its end is not looked at."""
    data = bytearray()
    for word in words:
        data += word.to_bytes(4, "little")
        if 0 in data[-4:]:
            break
    return bytes(data).split(b"\0", 1)[0].decode("utf-8", "replace")
