"""Constants of a module, specialization constants included, as far as array lengths and indices need them.

A value is an int (signed when its type is), a tuple of values for a composite, or None when it is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from vkharness.findings import UserError
from vkharness.shader.opcodes import Decoration, Op
from vkharness.shader.spirv import Instruction, Module
from vkharness.shader.types import Type, Types

Value: TypeAlias = "int | tuple[Value, ...] | None"

CONSTANTS = frozenset(
    {
        Op.ConstantTrue,
        Op.ConstantFalse,
        Op.Constant,
        Op.ConstantComposite,
        Op.ConstantNull,
        Op.SpecConstantTrue,
        Op.SpecConstantFalse,
        Op.SpecConstant,
        Op.SpecConstantComposite,
        Op.SpecConstantOp,
    }
)


class Constants:
    """The constants of one module under one specialization, filled in order of declaration."""

    def __init__(self, module: Module, types: Types, specialization: Mapping[int, bytes]) -> None:
        self._module = module
        self._types = types
        self._specialization = specialization
        self._values: dict[int, Value] = {}
        self._type_of: dict[int, Type] = {}

    def integer(self, id: int) -> int | None:
        """The value of a scalar constant; None for anything else."""
        value = self._values.get(id)
        return value if isinstance(value, int) else None

    def integers(self, id: int) -> tuple[int | None, ...]:
        """The values of a composite constant of scalars; () for anything else."""
        value = self._values.get(id)
        return tuple(part if isinstance(part, int) else None for part in value) if isinstance(value, tuple) else ()

    def type_of(self, id: int) -> Type | None:
        """The type of a constant; None for an id that is none."""
        return self._type_of.get(id)

    def declare(self, instruction: Instruction) -> None:
        """Add the constant that one instruction of `CONSTANTS` declares."""
        op, operands = instruction
        type, id = self._types[operands[0]], operands[1]
        self._type_of[id] = type
        if op in (Op.SpecConstant, Op.SpecConstantTrue, Op.SpecConstantFalse):
            spec_id = self._module.decorations.get(id, {}).get(Decoration.SpecId)
            given = None if spec_id is None else self._specialization.get(spec_id)
            if given is not None:
                self._values[id] = _specialized(type, spec_id or 0, given)
                return
        self._values[id] = self._value(op, type, operands)

    def _value(self, op: int, type: Type, operands: tuple[int, ...]) -> Value:
        if op in (Op.ConstantTrue, Op.SpecConstantTrue):
            return 1
        if op in (Op.ConstantFalse, Op.SpecConstantFalse):
            return 0
        if op in (Op.Constant, Op.SpecConstant):
            bits = operands[2] | (operands[3] << 32 if len(operands) > 3 else 0)
            return _wrap(bits, type) if type.op == Op.TypeInt else None
        if op == Op.ConstantNull:
            return 0 if type.op in (Op.TypeInt, Op.TypeBool) else None
        if op in (Op.ConstantComposite, Op.SpecConstantComposite):
            return tuple(self._values.get(part) for part in operands[2:])
        return self._operation(operands[2], type, operands[3:])

    def _operation(self, op: int, type: Type, operands: tuple[int, ...]) -> Value:
        """OpSpecConstantOp on scalars; None for what array indices do not need."""
        if op == Op.CompositeExtract and operands:
            value = self._values.get(operands[0])
            for index in operands[1:]:
                value = value[index] if isinstance(value, tuple) and index < len(value) else None
            return value
        values = [self.integer(id) for id in operands]
        if type.op not in (Op.TypeInt, Op.TypeBool) or None in values:
            return None
        known = [value for value in values if value is not None]
        try:
            result = _OPERATIONS[op](self._type_of[operands[0]], *known)
        except (KeyError, TypeError, ZeroDivisionError):
            return None
        return _wrap(result, type) if type.op == Op.TypeInt else result & 1


def _wrap(value: int, type: Type) -> int:
    return _signed(value, type) if type.signed else _unsigned(value, type)


def _specialized(type: Type, spec_id: int, given: bytes) -> Value:
    """The value of VkSpecializationInfo.pData: a VkBool32 for a boolean, else the constant's own width."""
    size = 4 if type.op == Op.TypeBool else type.size
    if size != len(given):
        raise UserError(f"specialization constant {spec_id} has {size} bytes in the shader, {len(given)} are given")
    bits = int.from_bytes(given, "little")
    if type.op == Op.TypeBool:
        return int(bits != 0)
    return _wrap(bits, type) if type.op == Op.TypeInt else None


def _unsigned(value: int, type: Type) -> int:
    return value & ((1 << type.width) - 1)


def _signed(value: int, type: Type) -> int:
    value = _unsigned(value, type)
    return value - (1 << type.width) if type.width and value >> (type.width - 1) else value


def _quotient(a: int, b: int) -> int:
    """Division that rounds towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _shift(type: Type, amount: int) -> int:
    """A shift by the width or more has no defined result: KeyError makes the constant unknown."""
    if not 0 <= amount < type.width:
        raise KeyError(amount)
    return amount


_Operation = Callable[..., int]
"""(type of the first operand, values) -> result, of which the result type keeps the low bits."""


def _on_unsigned(function: Callable[[int, int], int]) -> _Operation:
    return lambda type, a, b: int(function(_unsigned(a, type), _unsigned(b, type)))


def _on_signed(function: Callable[[int, int], int]) -> _Operation:
    return lambda type, a, b: int(function(_signed(a, type), _signed(b, type)))


_OPERATIONS: dict[int, _Operation] = {
    Op.UConvert: lambda type, a: _unsigned(a, type),
    Op.SConvert: lambda type, a: _signed(a, type),
    Op.SNegate: lambda _, a: -a,
    Op.Not: lambda _, a: ~a,
    Op.IAdd: lambda _, a, b: a + b,
    Op.ISub: lambda _, a, b: a - b,
    Op.IMul: lambda _, a, b: a * b,
    Op.UDiv: _on_unsigned(lambda a, b: a // b),
    Op.UMod: _on_unsigned(lambda a, b: a % b),
    Op.SDiv: _on_signed(_quotient),
    Op.SRem: _on_signed(lambda a, b: a - b * _quotient(a, b)),
    Op.SMod: _on_signed(lambda a, b: a % b),
    Op.ShiftLeftLogical: lambda type, a, b: a << _shift(type, b),
    Op.ShiftRightLogical: lambda type, a, b: _unsigned(a, type) >> _shift(type, b),
    Op.ShiftRightArithmetic: lambda type, a, b: _signed(a, type) >> _shift(type, b),
    Op.BitwiseOr: lambda _, a, b: a | b,
    Op.BitwiseXor: lambda _, a, b: a ^ b,
    Op.BitwiseAnd: lambda _, a, b: a & b,
    Op.LogicalNot: lambda _, a: int(not a),
    Op.LogicalOr: lambda _, a, b: a | b,
    Op.LogicalAnd: lambda _, a, b: a & b,
    Op.LogicalEqual: lambda _, a, b: int(a == b),
    Op.LogicalNotEqual: lambda _, a, b: int(a != b),
    Op.IEqual: _on_unsigned(lambda a, b: a == b),
    Op.INotEqual: _on_unsigned(lambda a, b: a != b),
    Op.SGreaterThan: _on_signed(lambda a, b: a > b),
    Op.SGreaterThanEqual: _on_signed(lambda a, b: a >= b),
    Op.SLessThan: _on_signed(lambda a, b: a < b),
    Op.SLessThanEqual: _on_signed(lambda a, b: a <= b),
    Op.UGreaterThan: _on_unsigned(lambda a, b: a > b),
    Op.UGreaterThanEqual: _on_unsigned(lambda a, b: a >= b),
    Op.ULessThan: _on_unsigned(lambda a, b: a < b),
    Op.ULessThanEqual: _on_unsigned(lambda a, b: a <= b),
    Op.Select: lambda _, condition, a, b: a if condition else b,
}
