"""Normalized integers as floats, and floats as normalized integers ("Fixed-Point Data Conversions")."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from vkharness.shader.execution.float_bits import error_of, from_bits, result_bits
from vkharness.shader.execution.outside import NotInterpreted

MARGIN = 1 / 256
"""How far from a normalized integer, in its steps, a float is taken for it. Both neighbours are allowed for one that is
not exact; rounding to the nearest is preferred, and no implementation is known that takes the other one here."""

_EXPONENT = 0x7F800000
"""The bits of a float that are zero in zeros and denormalized numbers."""


def normalized_to_float(value: int, most: int) -> int:
    """The bits of value / most; `most` is the integer that stands for 1."""
    exact = value in (0, most, -most)
    return result_bits(Fraction(value, most), 32, 0.0 if exact else 2.0**-22, is_sum=False)


def float_to_normalized(bits: int, most: int, low: int = 0) -> int:
    """The integer from `low` to `most` that a float becomes. Raises NotInterpreted where two are allowed."""
    return _normalized(bits, error_of(bits), most, low)


@lru_cache(1 << 12)
def _normalized(bits: int, error: float, most: int, low: int) -> int:
    """That of a float which may be off by `error`."""
    if not bits & _EXPONENT and not error:
        return 0  # a denormalized number may be flushed to zero, and either is next to 0
    number = min(max(from_bits(bits, 32) * most, Fraction(low)), Fraction(most))
    value = round(number)
    if abs(float(number - value)) + error * most > MARGIN:
        raise NotInterpreted("a float lies between two normalized values; its rounding is not defined")
    return value


def pack_unorm(vector: Sequence[int]) -> int:
    """packUnorm4x8."""
    return sum(float_to_normalized(bits, 255) << (8 * at) for at, bits in enumerate(vector))


def unpack_unorm(word: int) -> tuple[int, ...]:
    """unpackUnorm4x8."""
    return tuple(normalized_to_float(word >> (8 * at) & 255, 255) for at in range(4))
