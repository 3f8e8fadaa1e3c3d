"""Normalized integers and floats, and which floats stand for one integer alone."""

from __future__ import annotations

import struct

import pytest

from vkharness.shader.execution.float_bits import InexactBits
from vkharness.shader.execution.normalized_values import (
    float_to_normalized,
    normalized_to_float,
    pack_unorm,
    unpack_unorm,
)
from vkharness.shader.execution.outside import NotInterpreted


def bits_of(number: float) -> int:
    return int.from_bytes(struct.pack("<f", number), "little")


def test_every_normalized_byte_comes_back() -> None:
    assert [float_to_normalized(normalized_to_float(value, 255), 255) for value in range(256)] == list(range(256))
    assert pack_unorm(unpack_unorm(0x80FF0103)) == 0x80FF0103


@pytest.mark.parametrize(("number", "value"), [(-3.0, 0), (7.0, 255), (0.2, 51)])
def test_floats_are_clamped_and_rounded(number: float, value: int) -> None:
    assert float_to_normalized(bits_of(number), 255) == value


def test_a_float_between_two_values_is_refused() -> None:
    with pytest.raises(NotInterpreted, match="between two normalized values"):
        float_to_normalized(bits_of(0.5), 255)
    with pytest.raises(NotInterpreted, match="between two normalized values"):
        float_to_normalized(InexactBits.of(bits_of(0.2), 0.001, ""), 255)
    assert float_to_normalized(bits_of(-2.0), 127, -127) == -127


@pytest.mark.parametrize("bits", [0, 1, 0x007FFFFF, 0x80000000, 0x80000001])
def test_zeros_and_denormalized_floats_are_zero(bits: int) -> None:
    assert float_to_normalized(bits, 255) == 0
    assert float_to_normalized(bits, 127, -127) == 0


def test_the_smallest_normal_float_is_zero_and_one_with_an_error_is_not_settled() -> None:
    assert float_to_normalized(0x00800000, 255) == 0
    with pytest.raises(NotInterpreted):
        float_to_normalized(InexactBits.of(0, 0.5, "not exact"), 255)
