"""Surfaces as RGB pixels: colours as they are where a format is plain, false colours for everything else."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from vkharness.replay.contents.observe import Surface, units

Pixels = npt.NDArray[np.uint8]
"""(slices, height, width, 3): depth slices, or samples, of an image; one slice for a buffer."""

_PLAIN = re.compile(r"VK_FORMAT_([RGBA0-9]+)_(UNORM|SRGB|SNORM|UINT|SINT|SFLOAT|USCALED|SSCALED)(_PACK\d+)?$")
_CHANNEL = re.compile(r"([RGBA])(\d+)")
_FLOATS = {16: np.float16, 32: np.float32, 64: np.float64}
_INTEGERS = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
NUMBERS = ("UINT", "SINT", "USCALED", "SSCALED")


def to_pixels(surface: Surface, *scale_by: Surface) -> Pixels:
    """RGB of a surface.

    `scale_by` are the surfaces whose range of values sets the brightness, so that a pair is drawn alike.
    """
    if surface.subresource is None:
        return false_colour(as_grid(units(surface)))
    flat = surface.data
    aspect = surface.subresource[0]
    if aspect == 2:
        return _grey(_depth(surface), [_depth(other) for other in scale_by])
    if aspect == 4:
        values = [_stencil(other) for other in (surface, *scale_by)]
        return _grey(values[0], values[1:])
    if surface.samples > 1:
        return _fetched(surface, flat)
    plain = _PLAIN.match(surface.format)
    channels = _CHANNEL.findall(plain[1]) if plain else []
    if plain and not plain[3] and len({bits for _, bits in channels}) == 1:
        return _channels(surface, flat, channels, plain[2], scale_by)
    if surface.format.startswith("VK_FORMAT_A8B8G8R8_UNORM"):
        return np.ascontiguousarray(flat[..., :3])
    return false_colour(flat)


def as_grid(words: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """One entry a word, (words, …), as one near square slice (1, height, width, …), filled up with zeros."""
    width = 1
    while width * width < len(words):
        width *= 2
    height = -(-len(words) // width)
    padded = np.zeros((height * width, *words.shape[1:]), words.dtype)
    padded[: len(words)] = words
    return padded.reshape(1, height, width, *words.shape[1:])


def false_colour(data: npt.NDArray[np.uint8]) -> Pixels:
    """A colour that tells byte strings apart: equal bytes give equal colours, near ones different colours."""
    mixed = np.full(data.shape[:-1], 2166136261, np.uint32)
    for index in range(data.shape[-1]):
        mixed = (mixed ^ data[..., index]) * np.uint32(16777619)
    mixed ^= mixed >> np.uint32(15)
    zero = ~np.any(data, axis=-1)
    pixels = np.stack([(mixed >> np.uint32(shift)).astype(np.uint8) for shift in (0, 8, 16)], axis=-1)
    # Never very dark: black is left for zero, which is common and worth telling at a glance.
    bright = (pixels // 4 * 3 + 64).astype(np.uint8)
    bright[zero] = 0
    return bright


def _channels(
    surface: Surface,
    flat: npt.NDArray[np.uint8],
    channels: list[tuple[str, str]],
    kind: str,
    scale_by: tuple[Surface, ...],
) -> Pixels:
    """Formats whose channels have one whole width each."""
    values = _values(flat, channels, kind)
    if kind in NUMBERS or kind == "SFLOAT":
        others = [_values(other.data, channels, kind) for other in scale_by] or [values]
        finite = np.concatenate([item[np.isfinite(item)].ravel() for item in others])
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
        if kind == "SFLOAT":
            low, high = min(low, 0.0), max(high, 1.0)
        values = (values - low) / (high - low if high > low else 1.0)
    rgb = np.zeros((*flat.shape[:-1], 3), np.float64)
    for index, (name, _) in enumerate(channels):
        if name in "RGB":
            rgb[..., "RGB".index(name)] = values[..., index]
    if len(channels) == 1:
        rgb[:] = values[..., :1]
    return _bytes(rgb)


def _values(flat: npt.NDArray[np.uint8], channels: list[tuple[str, str]], kind: str) -> npt.NDArray[np.float64]:
    bits = int(channels[0][1])
    data = np.ascontiguousarray(flat)
    if kind == "SFLOAT":
        return data.view(_FLOATS[bits]).astype(np.float64)
    values = data.view(_INTEGERS[bits])
    if kind in ("SINT", "SSCALED", "SNORM"):
        signed = values.view(values.dtype.str.replace("u", "i")).astype(np.float64)
        return (signed / 2.0 ** (bits - 1) + 1) / 2 if kind == "SNORM" else signed
    unsigned = values.astype(np.float64)
    return unsigned / (2.0**bits - 1) if kind in ("UNORM", "SRGB") else unsigned


def _depth(surface: Surface) -> npt.NDArray[np.float64]:
    flat = np.ascontiguousarray(surface.data)
    if surface.samples > 1 or "D32" in surface.format:
        return flat.view(np.float32)[..., 0].astype(np.float64)
    if "D16" in surface.format:
        return flat.view(np.uint16)[..., 0] / 65535.0
    return (flat.view(np.uint32)[..., 0] & 0xFFFFFF) / float(0xFFFFFF)


def _stencil(surface: Surface) -> npt.NDArray[np.float64]:
    return surface.data[..., 0].astype(np.float64)


def _grey(values: npt.NDArray[np.float64], others: list[npt.NDArray[np.float64]]) -> Pixels:
    """Black to white over the range of the values that are drawn together."""
    every = np.concatenate([item.ravel() for item in (others or [values])])
    every = every[np.isfinite(every)]
    low, high = (float(every.min()), float(every.max())) if every.size else (0.0, 1.0)
    scaled = (values - low) / (high - low if high > low else 1.0)
    return _bytes(np.repeat(scaled[..., np.newaxis], 3, axis=-1))


def _fetched(surface: Surface, flat: npt.NDArray[np.uint8]) -> Pixels:
    """Samples as the fetch shaders return them: four words a texel."""
    data = np.ascontiguousarray(flat)
    if "INT" in surface.format:
        return false_colour(data)
    return _bytes(data.view(np.float32)[..., :3].astype(np.float64))


def _bytes(values: npt.NDArray[np.float64]) -> Pixels:
    clean = np.nan_to_num(values, nan=0.0, posinf=1.0, neginf=0.0)
    return (np.clip(clean, 0.0, 1.0) * 255 + 0.5).astype(np.uint8)


def numbers_of(surface: Surface) -> list[str]:
    """Each texel (each word of a buffer) as the numbers that its format makes of it; empty where the format is not
    plain."""
    if surface.subresource is None:
        words = np.ascontiguousarray(units(surface)).view("<u4").ravel()
        return [f"0x{word:08x} = {word}" for word in words.tolist()]
    values = _numbers(surface)
    if values is None:
        return [""] * int(np.prod(surface.data.shape[:-1]))
    return [", ".join(f"{number:.5g}" for number in texel) for texel in values.reshape(-1, values.shape[-1]).tolist()]


def _numbers(surface: Surface) -> npt.NDArray[np.float64] | None:
    assert surface.subresource is not None
    if surface.subresource[0] == 2:
        return _depth(surface)[..., np.newaxis]
    if surface.subresource[0] == 4:
        return _stencil(surface)[..., np.newaxis]
    plain = _PLAIN.match(surface.format)
    channels = _CHANNEL.findall(plain[1]) if plain else []
    if surface.samples > 1 or not plain or plain[3] or len({bits for _, bits in channels}) != 1:
        return None
    return _values(surface.data, channels, plain[2])
