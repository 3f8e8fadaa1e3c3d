"""Floating-point numbers as bits, and results that every implementation must give.

Vulkan ("Precision and Operation of SPIR-V Instructions") leaves the direction of rounding open, lets denormalized
values be flushed and does not promise infinities, NaN and signs of zero. So only exact results between normal numbers
count; multiplying and adding in one step gives them, too. Others are `InexactBits`, with a bound of their error: what
is computed with them has one, too, and they may not be taken for bits.
"""

from __future__ import annotations

import struct
from fractions import Fraction

from vkharness.shader.execution.outside import NotInterpreted

_FORMATS = {16: "<e", 32: "<f", 64: "<d"}
_SMALLEST = {16: 2.0**-14, 32: 2.0**-126, 64: 2.0**-1022}
"""The smallest normal number by width."""

_STEP = {16: 2.0**-10, 32: 2.0**-23, 64: 2.0**-52}
"""The distance of two numbers, for the larger ones of one exponent, by width and in parts of the number."""


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


class InexactBits(int):
    """The bits of a float, of which implementations may give another one: by at most `error`, or with the other sign of
    a zero."""

    error: float
    reason: str

    @classmethod
    def of(cls, bits: int, error: float, reason: str) -> InexactBits:
        """These bits, and why they are not the only ones."""
        made = cls(bits)
        made.error, made.reason = error, reason
        return made


def error_of(bits: int) -> float:
    """How far the number may be from that of these bits."""
    return bits.error if isinstance(bits, InexactBits) else 0.0


def settled(bits: int) -> int:
    """Bits that every implementation gives. Raises NotInterpreted for others."""
    if isinstance(bits, InexactBits):
        raise NotInterpreted(bits.reason)
    return bits


def result_bits(number: Fraction, width: int, error: float = 0.0, is_sum: bool = True) -> int:
    """The bits of a result that may be off by `error`: `InexactBits` where it may, where it is not representable, and
    for the zero of arithmetic (`is_sum`), whose sign is left open. Raises NotInterpreted where it is too large or
    denormalized."""
    try:
        data = struct.pack(_FORMATS[width], float(number))
    except OverflowError:
        raise NotInterpreted(f"a floating-point result is too large for {width} bits") from None
    held: float = struct.unpack(_FORMATS[width], data)[0]
    if held - held != 0:
        raise NotInterpreted(f"a floating-point result is too large for {width} bits")
    if (held or number) and abs(held) < _SMALLEST[width]:
        raise NotInterpreted("a denormalized number may be flushed to zero")
    bits = int.from_bytes(data, "little")
    if Fraction(held) != number:
        error += abs(held) * _STEP[width]
    if error:
        reason = f"a floating-point result is not exact in {width} bits; its rounding is not defined"
        return InexactBits.of(bits, error, reason)
    if not number and is_sum:
        return InexactBits.of(bits, 0.0, "the sign of a zero in floating-point arithmetic is not defined")
    return bits
