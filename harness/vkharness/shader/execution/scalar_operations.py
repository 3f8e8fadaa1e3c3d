"""Results of operations on scalars: bits of integers and floats as non-negative ints, booleans as bools.

Each entry of a table makes the operation for the width of its result and of its first operand, in bits. What the
specifications of SPIR-V and Vulkan do not define raises NotInterpreted when it happens.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction

from vkharness.shader.execution.float_bits import error_of, from_bits, result_bits, settled
from vkharness.shader.execution.outside import NotInterpreted
from vkharness.shader.opcodes import Op

Scalar = Callable[..., int]
Maker = Callable[[int, int], Scalar]
"""(width of the result, width of the first operand) -> the operation."""


def signed(value: int, width: int) -> int:
    """The number in two's complement that these bits are."""
    return value - (1 << width) if value >> (width - 1) else value


def _wrapping(function: Callable[..., int]) -> Maker:
    """An operation on bits of which the result keeps the low ones."""

    def make(width: int, _: int) -> Scalar:
        mask = (1 << width) - 1
        return lambda *values: function(*values) & mask

    return make


def _on_signed(function: Callable[..., int]) -> Maker:
    def make(width: int, operand: int) -> Scalar:
        mask = (1 << width) - 1
        return lambda *values: function(*(signed(value, operand) for value in values)) & mask

    return make


def _comparing(function: Callable[[int, int], bool], negative: bool = False) -> Maker:
    def make(_: int, operand: int) -> Scalar:
        if not negative:
            return function
        return lambda a, b: function(signed(a, operand), signed(b, operand))

    return make


def _divisor(b: int) -> int:
    if b == 0:
        raise NotInterpreted("a division by zero is not defined")
    return b


def _divide(width: int, _: int) -> Scalar:
    mask, lowest = (1 << width) - 1, 1 << (width - 1)

    def function(a: int, b: int) -> int:
        if a == lowest and b == mask:
            raise NotInterpreted("a signed division that overflows is not defined")
        one, two = signed(a, width), _divisor(signed(b, width))
        return abs(one) // abs(two) * (1 if (one < 0) == (two < 0) else -1) & mask

    return function


def _remainder(a: int, b: int) -> int:
    if a < 0 or b < 0:
        raise NotInterpreted("a signed remainder with a negative operand is not defined")
    return a % _divisor(b)


def _shifting(function: Callable[[int, int], int], negative: bool = False) -> Maker:
    def make(width: int, _: int) -> Scalar:
        mask = (1 << width) - 1

        def shift(a: int, amount: int) -> int:
            if amount >= width:
                raise NotInterpreted(f"a shift of {width} bits by {amount} is not defined")
            return function(signed(a, width) if negative else a, amount) & mask

        return shift

    return make


def _field(width: int, offset: int, count: int) -> int:
    """The mask of a bit field, not shifted."""
    if offset + count > width:
        raise NotInterpreted(f"a bit field of {count} bits at {offset} of {width} is not defined")
    return (1 << count) - 1


def _insert(width: int, _: int) -> Scalar:
    def function(base: int, new: int, offset: int, count: int) -> int:
        mask = _field(width, offset, count)
        return (base & ~(mask << offset)) | ((new & mask) << offset)

    return function


def _extract(negative: bool) -> Maker:
    def make(width: int, _: int) -> Scalar:
        def function(base: int, offset: int, count: int) -> int:
            found = base >> offset & _field(width, offset, count)
            return signed(found, count) & (1 << width) - 1 if negative and count else found

        return function

    return make


def _reverse(width: int, _: int) -> Scalar:
    return lambda value: int(f"{value:0{width}b}"[::-1], 2)


Errors = Callable[[Sequence[Fraction], Sequence[float]], float]
"""(operands, how far each may be off) -> how far the result may be off because of that."""


def _added(_: Sequence[Fraction], errors: Sequence[float]) -> float:
    return sum(errors)


def _multiplied(numbers: Sequence[Fraction], errors: Sequence[float]) -> float:
    (one, two), (first, second) = numbers, errors
    return abs(float(one)) * second + abs(float(two)) * first + first * second


def _float(function: Callable[..., Fraction], errors_of: Errors = _added, is_sum: bool = True) -> Maker:
    def make(width: int, operand: int) -> Scalar:
        def apply(*values: int) -> int:
            numbers = [from_bits(value, operand) for value in values]
            errors = [error_of(value) for value in values]
            error = errors_of(numbers, errors) if any(errors) else 0.0
            return result_bits(function(*numbers), width, error, is_sum)

        return apply

    return make


def _float_divide(width: int, operand: int) -> Scalar:
    """The quotient may be off by 2.5 units in the last place, of which the largest is taken."""

    def divide(a: int, b: int) -> int:
        one, two = from_bits(a, operand), from_bits(b, operand)
        least = abs(float(two)) - error_of(b)
        if least <= 0:
            raise NotInterpreted("a division by zero is not defined")
        quotient = one / two
        inherited = (error_of(a) + abs(float(quotient)) * error_of(b)) / least
        return result_bits(quotient, width, inherited + 2.5 * 2.0**-22 * abs(float(quotient)))

    return divide


def _whole(function: Callable[[Fraction], int]) -> Maker:
    """A whole number, where the error of the operand leaves it no choice."""

    def make(width: int, operand: int) -> Scalar:
        return lambda bits: result_bits(Fraction(_chosen(function, bits, operand)), width)

    return make


def _chosen(function: Callable[[Fraction], int], bits: int, operand: int) -> int:
    number, error = from_bits(bits, operand), Fraction(error_of(bits))
    if function(number - error) != function(number + error):
        settled(bits)
    return function(number)


def _choosing(choose: Callable[..., int]) -> Maker:
    """Floats of which the result is one: the bits stay as they are."""

    def make(_: int, operand: int) -> Scalar:
        def apply(*values: int) -> int:
            if any(error_of(value) for value in values):
                _apart(values[0], values[1], operand)
            return choose(*values, key=lambda bits: from_bits(bits, operand))

        return apply

    return make


def _apart(a: int, b: int, operand: int) -> None:
    """Raises NotInterpreted where errors decide which of two floats is larger."""
    if abs(from_bits(a, operand) - from_bits(b, operand)) <= error_of(a) + error_of(b):
        settled(a)
        settled(b)


def _float_comparing(function: Callable[[Fraction, Fraction], bool]) -> Maker:
    def make(_: int, operand: int) -> Scalar:
        def compare(a: int, b: int) -> bool:
            if error_of(a) or error_of(b):
                _apart(a, b, operand)
            return function(from_bits(a, operand), from_bits(b, operand))

        return compare

    return make


def _to_integer(negative: bool) -> Maker:
    def make(width: int, operand: int) -> Scalar:
        low, high = (-1 << (width - 1), 1 << (width - 1)) if negative else (0, 1 << width)

        def function(bits: int) -> int:
            number = _chosen(math.trunc, bits, operand)
            if not low <= number < high:
                raise NotInterpreted(f"a conversion to an integer of {width} bits that does not fit is not defined")
            return number & (1 << width) - 1

        return function

    return make


def _clamped(low: int, high: int) -> None:
    if low > high:
        raise NotInterpreted("a clamp whose minimum is over its maximum is not defined")


def _clamp(a: int, low: int, high: int) -> int:
    _clamped(low, high)
    return min(max(a, low), high)


def _float_clamp(_: int, operand: int) -> Scalar:
    def function(a: int, low: int, high: int) -> int:
        for limit in (low, high):
            if error_of(a) or error_of(limit):
                _apart(a, limit, operand)
        numbers = {bits: from_bits(bits, operand) for bits in (a, low, high)}
        if numbers[low] > numbers[high]:
            _clamped(1, 0)
        return min(max(a, low, key=numbers.__getitem__), high, key=numbers.__getitem__)

    return function


def _absolute(a: int, width: int) -> int:
    if a == 1 << (width - 1):
        raise NotInterpreted("the absolute value of the lowest integer is not defined")
    return abs(signed(a, width))


def _highest_bit(a: int, width: int) -> int:
    return (a.bit_length() - 1) & (1 << width) - 1


OPERATIONS: dict[int, Maker] = {
    Op.IAdd: _wrapping(operator.add),
    Op.ISub: _wrapping(operator.sub),
    Op.IMul: _wrapping(operator.mul),
    Op.SNegate: _wrapping(operator.neg),
    Op.Not: _wrapping(operator.invert),
    Op.BitwiseOr: _wrapping(operator.or_),
    Op.BitwiseXor: _wrapping(operator.xor),
    Op.BitwiseAnd: _wrapping(operator.and_),
    Op.UConvert: _wrapping(operator.pos),
    Op.SConvert: _on_signed(operator.pos),
    Op.UDiv: _wrapping(lambda a, b: a // _divisor(b)),
    Op.UMod: _wrapping(lambda a, b: a % _divisor(b)),
    Op.SDiv: _divide,
    Op.SRem: _on_signed(_remainder),
    Op.SMod: _on_signed(_remainder),
    Op.ShiftLeftLogical: _shifting(operator.lshift),
    Op.ShiftRightLogical: _shifting(operator.rshift),
    Op.ShiftRightArithmetic: _shifting(operator.rshift, negative=True),
    Op.BitFieldInsert: _insert,
    Op.BitFieldUExtract: _extract(negative=False),
    Op.BitFieldSExtract: _extract(negative=True),
    Op.BitReverse: _reverse,
    Op.BitCount: _wrapping(int.bit_count),
    Op.LogicalEqual: _comparing(operator.eq),
    Op.LogicalNotEqual: _comparing(operator.ne),
    Op.LogicalOr: _comparing(operator.or_),
    Op.LogicalAnd: _comparing(operator.and_),
    Op.LogicalNot: lambda _, __: operator.not_,
    Op.IEqual: _comparing(operator.eq),
    Op.INotEqual: _comparing(operator.ne),
    Op.UGreaterThan: _comparing(operator.gt),
    Op.UGreaterThanEqual: _comparing(operator.ge),
    Op.ULessThan: _comparing(operator.lt),
    Op.ULessThanEqual: _comparing(operator.le),
    Op.SGreaterThan: _comparing(operator.gt, negative=True),
    Op.SGreaterThanEqual: _comparing(operator.ge, negative=True),
    Op.SLessThan: _comparing(operator.lt, negative=True),
    Op.SLessThanEqual: _comparing(operator.le, negative=True),
    Op.FAdd: _float(operator.add),
    Op.FSub: _float(operator.sub),
    Op.FMul: _float(operator.mul, _multiplied),
    Op.FDiv: _float_divide,
    Op.VectorTimesScalar: _float(operator.mul, _multiplied),
    Op.FNegate: _float(operator.neg),
    Op.ConvertFToU: _to_integer(negative=False),
    Op.ConvertFToS: _to_integer(negative=True),
    Op.ConvertUToF: lambda width, _: lambda value: result_bits(Fraction(value), width, is_sum=False),
    Op.ConvertSToF: lambda width, of: lambda value: result_bits(Fraction(signed(value, of)), width, is_sum=False),
    Op.FConvert: _float(operator.pos, is_sum=False),
    Op.FOrdEqual: _float_comparing(operator.eq),
    Op.FOrdNotEqual: _float_comparing(operator.ne),
    Op.FOrdLessThan: _float_comparing(operator.lt),
    Op.FOrdLessThanEqual: _float_comparing(operator.le),
    Op.FOrdGreaterThan: _float_comparing(operator.gt),
    Op.FOrdGreaterThanEqual: _float_comparing(operator.ge),
}
OPERATIONS |= {op + 1: OPERATIONS[op] for op in range(Op.FOrdEqual, Op.FUnordGreaterThanEqual, 2)}
"""By instruction. Ordered and unordered comparisons differ for NaN alone, which is refused."""

EXTENDED: dict[int, Maker] = {
    3: _whole(math.trunc),
    4: _float(abs),
    5: lambda width, _: lambda a: _absolute(a, width),
    7: _on_signed(lambda a: (a > 0) - (a < 0)),
    8: _whole(math.floor),
    9: _whole(math.ceil),
    37: _choosing(min),
    38: _wrapping(min),
    39: _on_signed(min),
    40: _choosing(max),
    41: _wrapping(max),
    42: _on_signed(max),
    43: _float_clamp,
    44: _wrapping(_clamp),
    45: _on_signed(_clamp),
    73: _wrapping(lambda a: (a & -a).bit_length() - 1),
    74: lambda width, _: lambda a: _highest_bit(a ^ (1 << width) - 1 if a >> (width - 1) else a, width),
    75: lambda width, _: lambda a: _highest_bit(a, width),
}
"""By number in GLSL.std.450: Trunc, FAbs, SAbs, SSign, Floor, Ceil, FMin, UMin, SMin, FMax, UMax, SMax, FClamp, UClamp,
SClamp, FindILsb, FindSMsb, FindUMsb."""

ATOMICS: dict[int, Maker] = {
    Op.AtomicExchange: _wrapping(lambda _, value: value),
    Op.AtomicIIncrement: _wrapping(lambda old: old + 1),
    Op.AtomicIDecrement: _wrapping(lambda old: old - 1),
    Op.AtomicIAdd: _wrapping(operator.add),
    Op.AtomicISub: _wrapping(operator.sub),
    Op.AtomicSMin: _on_signed(min),
    Op.AtomicUMin: _wrapping(min),
    Op.AtomicSMax: _on_signed(max),
    Op.AtomicUMax: _wrapping(max),
    Op.AtomicAnd: _wrapping(operator.and_),
    Op.AtomicOr: _wrapping(operator.or_),
    Op.AtomicXor: _wrapping(operator.xor),
    Op.AtomicCompareExchange: lambda _, __: lambda old, value, comparator: value if old == comparator else old,
}
"""(old value, further operands) -> new value."""
