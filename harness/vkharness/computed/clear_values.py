"""The bytes of one texel that a clear value gives, where the specification leaves no choice ("Clear Values",
"Numeric Representation and Computation")."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from vkharness.computed.known_cells import Bytes
from vkharness.spec.formats import Format

_COMPONENTS = re.compile(r"VK_FORMAT_((?:[RGBA](?:8|16|32|64))+)_(UINT|SINT|SFLOAT|UNORM|SNORM)")
_COMPONENT = re.compile(r"([RGBA])(\d+)")


def components(name: str) -> tuple[list[tuple[str, int]], str] | None:
    """(channel, bits) of each component in the order of memory, and their numeric type; None for a format that is
    packed or of another sort."""
    named = _COMPONENTS.fullmatch(name)
    return None if named is None else ([(each, int(bits)) for each, bits in _COMPONENT.findall(named[1])], named[2])


def cleared_color(format_: Format, words: Sequence[int]) -> Bytes | None:
    """The bytes of a texel that a VkClearColorValue with these four 32-bit words gives; None where the format is
    packed, or the value is not exactly representable, so that drivers may round."""
    named = components(format_.name)
    if named is None:
        return None
    values = {channel: np.array([words["RGBA".index(channel)]], np.uint32) for channel in "RGBA"}
    parts = [_component(values[channel], bits, named[1]) for channel, bits in named[0]]
    return None if any(part is None for part in parts) else np.concatenate([part for part in parts if part is not None])


def cleared_depth(format_: Format, depth: float) -> Bytes | None:
    """The bytes of the depth aspect; None where they are not exact."""
    bits = np.array([depth], np.float32).view(np.uint32)
    if format_.name.startswith("VK_FORMAT_D32_SFLOAT"):
        return bits.view(np.uint8)
    return _component(bits, 16, "UNORM") if format_.name.startswith("VK_FORMAT_D16_UNORM") else None


def _component(word: np.ndarray[tuple[int], np.dtype[np.uint32]], bits: int, kind: str) -> Bytes | None:
    """One component in memory. An integer that does not fit is undefined; a float must be exact."""
    if kind in ("UINT", "SINT"):
        value = int(word.view(np.int32)[0]) if kind == "SINT" else int(word[0])
        low = -(1 << (bits - 1)) if kind == "SINT" else 0
        if bits > 32 or not low <= value < low + (1 << bits):
            return None
        return np.frombuffer((value & ((1 << bits) - 1)).to_bytes(bits // 8, "little"), np.uint8)
    value32 = float(word.view(np.float32)[0])
    if kind == "SFLOAT":
        if bits == 32:
            return word.view(np.uint8)
        half = np.array([value32], np.float16) if bits == 16 and abs(value32) < 65504 else None
        return half.view(np.uint8) if half is not None and float(half[0]) == value32 else None
    if value32 != value32 or bits > 16:
        return None
    most = (1 << (bits - 1)) - 1 if kind == "SNORM" else (1 << bits) - 1
    exact = max(-1.0 if kind == "SNORM" else 0.0, min(1.0, value32)) * most
    if abs(exact - round(exact)) > 1e-3:
        return None  # between two values: either is allowed
    return np.frombuffer((round(exact) & ((1 << bits) - 1)).to_bytes(bits // 8, "little"), np.uint8)
