"""Operations on the values of many invocations. Where a result is not defined, or not known, it is None.

The formulas are the same for Python's integers and for arrays of 64-bit integers, which wrap. So arrays have values of
at most 32 bits, and wider numbers are known where they are the same for all invocations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from vkharness.shader.opcodes import Op

WIDEST = 32
"""Bits of a value that differs between invocations."""
Function = Callable[..., Any]
"""(width of the operands, values...) -> the result, not yet cut to the width of its type."""


def signed(value: Any, width: int) -> Any:
    """The numbers in two's complement that these bits are."""
    half = 1 << width - 1
    return (value ^ half) - half


def _any(condition: Any) -> bool:
    return bool(np.any(condition))


def _divided(width: int, a: Any, b: Any) -> Any:
    return None if _any(b == 0) else a // b


def _signed_divided(width: int, a: Any, b: Any) -> Any:
    one, two = signed(a, width), signed(b, width)
    return None if _any(b == 0) else abs(one) // abs(two) * _sign(one) * _sign(two)


def _sign(value: Any) -> Any:
    return 1 - 2 * (value < 0)


def _remainder(width: int, a: Any, b: Any) -> Any:
    return None if _any(b == 0) else a % b


def _signed_remainder(width: int, a: Any, b: Any) -> Any:
    one, two = signed(a, width), signed(b, width)
    return None if _any((two <= 0) | (one < 0)) else one % two


def _modulus(width: int, a: Any, b: Any) -> Any:
    return None if _any(signed(b, width) <= 0) else signed(a, width) % signed(b, width)


def _shift(function: Callable[[Any, Any], Any], negative: bool = False) -> Function:
    def shifted(width: int, a: Any, by: Any) -> Any:
        return None if _any(by >= width) else function(signed(a, width) if negative else a, by)

    return shifted


def _on_signed(function: Callable[[Any, Any], Any]) -> Function:
    return lambda width, a, b: function(signed(a, width), signed(b, width))


def _plain(function: Callable[..., Any]) -> Function:
    return lambda _, *values: function(*values)


def _least(a: Any, b: Any) -> Any:
    return np.minimum(a, b) if _is_spread(a, b) else min(a, b)


def _greatest(a: Any, b: Any) -> Any:
    return np.maximum(a, b) if _is_spread(a, b) else max(a, b)


def _is_spread(*values: Any) -> bool:
    return any(isinstance(each, np.ndarray) for each in values)


def _field(width: int, base: Any, offset: Any, count: Any) -> Any:
    return None if _any(offset + count > width) else base >> offset & (1 << count) - 1


OPERATIONS: dict[int, Function] = {
    Op.UConvert: _plain(lambda a: a),
    Op.SConvert: lambda width, a: signed(a, width),
    Op.Bitcast: _plain(lambda a: a),
    Op.SNegate: _plain(lambda a: -a),
    Op.Not: _plain(lambda a: ~a),
    Op.IAdd: _plain(lambda a, b: a + b),
    Op.ISub: _plain(lambda a, b: a - b),
    Op.IMul: _plain(lambda a, b: a * b),
    Op.UDiv: _divided,
    Op.SDiv: _signed_divided,
    Op.UMod: _remainder,
    Op.SRem: _signed_remainder,
    Op.SMod: _modulus,
    Op.ShiftLeftLogical: _shift(lambda a, by: a << by),
    Op.ShiftRightLogical: _shift(lambda a, by: a >> by),
    Op.ShiftRightArithmetic: _shift(lambda a, by: a >> by, True),
    Op.BitwiseOr: _plain(lambda a, b: a | b),
    Op.BitwiseXor: _plain(lambda a, b: a ^ b),
    Op.BitwiseAnd: _plain(lambda a, b: a & b),
    Op.BitFieldUExtract: _field,
    Op.LogicalEqual: _plain(lambda a, b: a == b),
    Op.LogicalNotEqual: _plain(lambda a, b: a != b),
    Op.LogicalOr: _plain(lambda a, b: a | b),
    Op.LogicalAnd: _plain(lambda a, b: a & b),
    Op.LogicalNot: _plain(lambda a: a ^ True),
    Op.IEqual: _plain(lambda a, b: a == b),
    Op.INotEqual: _plain(lambda a, b: a != b),
    Op.UGreaterThan: _plain(lambda a, b: a > b),
    Op.UGreaterThanEqual: _plain(lambda a, b: a >= b),
    Op.ULessThan: _plain(lambda a, b: a < b),
    Op.ULessThanEqual: _plain(lambda a, b: a <= b),
    Op.SGreaterThan: _on_signed(lambda a, b: a > b),
    Op.SGreaterThanEqual: _on_signed(lambda a, b: a >= b),
    Op.SLessThan: _on_signed(lambda a, b: a < b),
    Op.SLessThanEqual: _on_signed(lambda a, b: a <= b),
}
"""By instruction of SPIR-V."""
EXTENDED: dict[int, Function] = {
    38: _plain(_least),
    39: _on_signed(_least),
    41: _plain(_greatest),
    42: _on_signed(_greatest),
    44: _plain(lambda a, low, high: _least(_greatest(a, low), high)),
    45: lambda width, a, low, high: _least(_greatest(signed(a, width), signed(low, width)), signed(high, width)),
}
"""Minimum, maximum and clamp of GLSL.std.450."""
DECIDED: dict[int, bool] = {Op.LogicalAnd: False, Op.LogicalOr: True}
"""The value of an operand that decides the result alone, by operation; the result is the same value."""


def applied(op: int, function: Function, widths: tuple[int, int], values: list[Any]) -> Any:
    """The result of an operation on scalars; `widths`: bits of the operands and of the result, 0 for booleans."""
    decided = DECIDED.get(op)
    if decided is not None and any(each is decided for each in values):
        return decided
    if any(each is None or isinstance(each, tuple | float) for each in values):
        return None
    if _is_spread(*values) and max(widths) > WIDEST:
        return None
    made = function(widths[0], *values)
    if made is None or widths[1] == 0:
        return _truth(made)
    return made & (1 << widths[1]) - 1


def _truth(value: Any) -> Any:
    return value if value is None or isinstance(value, np.ndarray) else bool(value)


def selected(condition: Any, yes: Any, no: Any) -> Any:
    """OpSelect of scalars."""
    if condition is None:
        return None
    if not isinstance(condition, np.ndarray):
        return yes if condition else no
    if any(each is None or isinstance(each, tuple | float) for each in (yes, no)):
        return None
    if any(not isinstance(each, np.ndarray) and each > 1 << WIDEST for each in (yes, no)):
        return None
    return np.where(condition, yes, no)
