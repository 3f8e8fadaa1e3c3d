"""The samples of multisampled images as a shader fetches them, which is how they are observed ("Format Conversion").

A texel whose samples all hold the same is one texel in `Cells`. It is observed once for each sample: a colour as four
32-bit words, depth and stencil as one. What a normalized value becomes as a float need not be the nearest one, so that
the word of a run is right where it means the same normalized value.
"""

from __future__ import annotations

import numpy as np

from vkharness.computed.clear_values import components
from vkharness.computed.known_cells import Bytes, Cells
from vkharness.replay.contents.observe import Surface
from vkharness.spec.enums import VkImageAspect

WORD = 4
TOLERANCE = 1.0 / 64
"""Of a normalized value, in steps of its format: more than any conversion is off."""


def fetched(cells: Cells, surface: Surface) -> Cells | None:
    """The samples that a run must show where `cells` are known; None for a format whose conversion is not known.

    Shape (samples, height, width, bytes); the words of the run where these are right.
    """
    kinds = _words(cells, surface)
    samples, height, width, size = surface.data.shape
    if kinds is None or cells.known.shape != (1, height, width) or size != WORD * len(kinds):
        return None
    seen = np.ascontiguousarray(surface.data).view("<u4")
    words = np.stack([_word(*each, seen[..., at]) for at, each in enumerate(kinds)], axis=-1).astype("<u4")
    known = np.broadcast_to(cells.known, (samples, height, width))
    return Cells(np.ascontiguousarray(words).view(np.uint8), np.ascontiguousarray(known))


Raw = np.ndarray[tuple[int, ...], np.dtype[np.uint64]]


def _words(cells: Cells, surface: Surface) -> list[tuple[Raw, int, str]] | None:
    """(value in memory, bits, kind) of each fetched word."""
    assert surface.subresource is not None, "a buffer has no samples"
    aspect, name = surface.subresource[0], surface.format
    if aspect == VkImageAspect.STENCIL:
        return [(_raw(cells.data), 8, "UINT")]
    if aspect == VkImageAspect.DEPTH:
        return [
            (_raw(cells.data), 16, "UNORM") if name.startswith("VK_FORMAT_D16") else (_raw(cells.data), 32, "SFLOAT")
        ]
    named = components(name)
    if named is None:
        return None
    parts, kind = named
    at, found = 0, {}
    for channel, bits in parts:
        found[channel] = (_raw(cells.data[..., at : at + bits // 8]), bits, kind)
        at += bits // 8
    one = 1 if kind.endswith("INT") else 0x3F800000
    missing = {channel: (np.uint64(one if channel == "A" else 0), 32, "UINT") for channel in "RGBA"}
    chosen = [found.get(channel, missing[channel]) for channel in "RGBA"]
    return [(np.broadcast_to(raw, cells.known.shape), bits, kind) for raw, bits, kind in chosen]


def _raw(data: Bytes) -> Raw:
    """Little-endian bytes along the last axis as numbers."""
    weights = np.uint64(1) << (np.uint64(8) * np.arange(data.shape[-1], dtype=np.uint64))
    return np.asarray((data.astype(np.uint64) * weights).sum(axis=-1, dtype=np.uint64))


def _word(raw: Raw, bits: int, kind: str, seen: np.ndarray[tuple[int, ...], np.dtype[np.uint32]]) -> Bytes:
    """The word that a component gives, with the shape of `seen`."""
    if kind == "UINT" or (kind == "SFLOAT" and bits == 32):
        words = raw.astype(np.uint32)
    elif kind == "SINT":
        sign = np.uint64(1 << (bits - 1))
        words = ((raw ^ sign) - sign).astype(np.uint32)
    elif kind == "SFLOAT":
        words = raw.astype(np.uint16).view(np.float16).astype(np.float32).view(np.uint32)
    else:
        return _normalized(raw, bits, kind, seen)
    return np.broadcast_to(words, seen.shape)


def _normalized(raw: Raw, bits: int, kind: str, seen: np.ndarray[tuple[int, ...], np.dtype[np.uint32]]) -> Bytes:
    value = raw.astype(np.int64)
    if kind == "SNORM":
        value = np.maximum(np.where(value >> (bits - 1), value - (1 << bits), value), 1 - (1 << (bits - 1)))
    most = (1 << (bits - 1)) - 1 if kind == "SNORM" else (1 << bits) - 1
    expected = (value / most).astype(np.float32).view(np.uint32)
    with np.errstate(invalid="ignore"):
        right = np.abs(seen.view(np.float32).astype(np.float64) * most - value) < TOLERANCE
    return np.where(right, seen, np.broadcast_to(expected, seen.shape))
