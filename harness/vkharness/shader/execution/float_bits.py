"""Floating-point numbers as bits, and results that every implementation must give.

Vulkan ("Precision and Operation of SPIR-V Instructions") leaves the direction of rounding open, lets denormalized
values be flushed and does not promise infinities, NaN and signs of zero. So only exact results between normal numbers
count; multiplying and adding in one step gives them, too.
"""

from __future__ import annotations

import struct
from fractions import Fraction

from vkharness.shader.execution.outside import NotInterpreted

_FORMATS = {16: "<e", 32: "<f", 64: "<d"}
_SMALLEST = {16: 2.0**-14, 32: 2.0**-126, 64: 2.0**-1022}
"""The smallest normal number by width."""


def from_bits(bits: int, width: int) -> Fraction:
    """The number. Raises NotInterpreted for one that implementations may change or ignore."""
    number: float = struct.unpack(_FORMATS[width], bits.to_bytes(width // 8, "little"))[0]
    if number - number != 0:
        raise NotInterpreted("an infinity or NaN in floating-point arithmetic is not defined")
    if number == 0 and bits:
        raise NotInterpreted("the sign of a zero in floating-point arithmetic is not defined")
    if number and abs(number) < _SMALLEST[width]:
        raise NotInterpreted("a denormalized number may be flushed to zero")
    return Fraction(number)


def converted_bits(number: Fraction, width: int) -> int:
    """The bits of the number. Raises NotInterpreted where it is not representable, or denormalized."""
    try:
        data = struct.pack(_FORMATS[width], float(number))
    except OverflowError:
        raise NotInterpreted(f"a floating-point result is too large for {width} bits") from None
    held: float = struct.unpack(_FORMATS[width], data)[0]
    if held - held != 0 or Fraction(held) != number:
        raise NotInterpreted(f"a floating-point result is not exact in {width} bits; its rounding is not defined")
    if held and abs(held) < _SMALLEST[width]:
        raise NotInterpreted("a denormalized number may be flushed to zero")
    return int.from_bytes(data, "little")


def result_bits(number: Fraction, width: int) -> int:
    """As `converted_bits`, of an arithmetic result. Raises NotInterpreted for zero, too: its sign is left open."""
    if not number:
        raise NotInterpreted("the sign of a zero in floating-point arithmetic is not defined")
    return converted_bits(number, width)
