"""Texels in memory as values of shaders, and back ("Format Conversion", "Fixed-Point Data Conversions")."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vkharness.computed.clear_values import components
from vkharness.findings import UserError
from vkharness.shader.execution.float_bits import InexactBits, settled
from vkharness.shader.execution.normalized_values import float_to_normalized, normalized_to_float
from vkharness.spec.enums import VkImageAspect
from vkharness.spec.formats import Format

ONE = 0x3F800000
CHANNELS = "RGBA"
BESIDE_DEPTH = InexactBits.of(0, 1e9, "what a shader reads beside depth differs from driver to driver")
"""Green and blue: 0 by "Component Substitution", if depth counts as red; lavapipe gives the depth again."""


def texel_value(format_: Format, aspect: int, data: bytes) -> tuple[int, int, int, int]:
    """The bits of the four components that a shader gets. Raises `UserError` for a format that is not followed."""
    if aspect == VkImageAspect.STENCIL:
        return (data[0], 0, 0, 1)
    if aspect == VkImageAspect.DEPTH:
        value = int.from_bytes(data, "little")
        beside = BESIDE_DEPTH if value else 0
        return (normalized_to_float(value, 0xFFFF) if len(data) == 2 else value, beside, beside, ONE)
    parts, kind = _parts(format_)
    found, at = {"R": 0, "G": 0, "B": 0, "A": 1 if kind.endswith("INT") else ONE}, 0
    for channel, bits in parts:
        found[channel] = _loaded(int.from_bytes(data[at : at + bits // 8], "little"), bits, kind)
        at += bits // 8
    return (found["R"], found["G"], found["B"], found["A"])


def stored_components(format_: Format, value: Sequence[int]) -> list[tuple[str, bytes]]:
    """(channel, bytes) of each component of a colour that a shader or blending gives, in the order of memory. Raises
    `UserError` where they are not the same everywhere."""
    parts, kind = _parts(format_)
    return [(channel, _stored(value[CHANNELS.index(channel)], bits, kind)) for channel, bits in parts]


def _parts(format_: Format) -> tuple[list[tuple[str, int]], str]:
    named = components(format_.name)
    if named is None:
        raise UserError(f"texels of {format_.name} are not followed")
    return named


def _loaded(value: int, bits: int, kind: str) -> int:
    if bits > 32:
        raise UserError(f"components of {bits} bits are not followed")
    if kind == "UINT" or (kind == "SFLOAT" and bits == 32):
        return value & 0xFFFFFFFF
    negative = kind[0] == "S" and value >> (bits - 1)
    number = value - (1 << bits) if negative else value
    if kind == "SINT":
        return number & 0xFFFFFFFF
    if kind == "SFLOAT" and bits == 16:
        return int(np.array([value], np.uint16).view(np.float16).astype(np.float32).view(np.uint32)[0])
    if kind == "SFLOAT":
        raise UserError(f"components of {bits} bits are not followed")
    most = (1 << (bits - 1)) - 1 if kind == "SNORM" else (1 << bits) - 1
    return normalized_to_float(max(number, -most), most)


def _stored(value: int, bits: int, kind: str) -> bytes:
    if kind in ("UINT", "SINT"):
        number = value - (1 << 32) if kind == "SINT" and value >> 31 else value
        low = -(1 << (bits - 1)) if kind == "SINT" else 0
        if bits > 32 or not low <= number < low + (1 << bits):
            raise UserError(f"{number} does not fit into {bits} bits")
        return (number & ((1 << bits) - 1)).to_bytes(bits // 8, "little")
    if kind == "SFLOAT":
        found = np.array([settled(value)], np.uint32).view(np.float32)
        half = found.astype(np.float16)
        if bits == 16 and half.astype(np.float32).view(np.uint32)[0] == value:
            return half.tobytes()
        if bits != 32:
            raise UserError(f"a float is not exact in {bits} bits")
        return found.tobytes()
    most = (1 << (bits - 1)) - 1 if kind == "SNORM" else (1 << bits) - 1
    number = float_to_normalized(value, most, -most if kind == "SNORM" else 0)
    return (number & ((1 << bits) - 1)).to_bytes(bits // 8, "little")
