"""The values of surfaces that differ, as a file of arrays, and as what a page draws and shows under the pointer.

A page gets a *palette*, the different values of both surfaces with their bytes, their colour and their number, and for
each texel the place of its value there. So no reader has to know a format.
"""

from __future__ import annotations

import base64
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vkharness.replay.contents.observe import Surface, units
from vkharness.report.texels import numbers_of, to_pixels

VALUES = "values.npz"
"""NumPy arrays `<surface>-expected` and `<surface>-observed`: (bytes,) of a buffer, (depth, height, width, bytes of a
texel) of an image."""
MOST_BYTES = 256 << 20
"""Of one file's arrays together; a larger one is not read."""
MOST_TEXELS, MOST_DIFFERENT = 1 << 18, 1 << 15
"""Of one surface, and different values among them; of more, the rows around the first difference are drawn."""
ROW_WORDS = (4, 8, 16, 32, 64)
"""How many words of a buffer a row of its picture has: the first with which it is no higher than wide."""


def save_values(path: Path, surfaces: Mapping[str, tuple[Surface, Surface]]) -> None:
    """Writes (expected, observed) of each surface by its name."""
    arrays: dict[str, npt.NDArray[np.uint8]] = {}
    for name, (before, after) in surfaces.items():
        arrays |= {f"{name}-expected": before.data, f"{name}-observed": after.data}
    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def load_values(path: Path, entry: Mapping[str, Any]) -> tuple[Surface, Surface] | None:
    """(expected, observed) of one difference of a record; None where the file has them not, or not as arrays of bytes
    of one shape."""
    try:
        with zipfile.ZipFile(path) as packed:
            if sum(each.file_size for each in packed.infolist()) > MOST_BYTES:
                return None
        with np.load(path, allow_pickle=False) as arrays:
            before, after = (arrays[f"{entry['surface']}-{which}"] for which in ("expected", "observed"))
        part = entry["subresource"]
        key = None if part is None else (int(part["aspect"]), int(part["mip"]), int(part["layer"]))
        named = (int(entry["resource"]), key)
        kind = (str(entry["format"]), int(entry["samples"]))
    except (OSError, KeyError, TypeError, ValueError, zipfile.BadZipFile, zlib.error):
        return None
    fits = before.dtype == after.dtype == np.uint8 and before.shape == after.shape
    if not fits or before.ndim != (1 if key is None else 4) or not before.size:
        return None
    return Surface(*named, before, *kind), Surface(*named, after, *kind)


def drawing_of(before: Surface, after: Surface) -> dict[str, Any]:
    """Returns the drawing of two surfaces that differ, for a page.

    `width`, `height`, `slices` in texels (words of a buffer); `palette`: `[bytes in hexadecimal, colour as #rrggbb,
    number or ""]` of each value; `expected` and `observed`: places in the palette as little-endian numbers of `bits`
    bits, slice by slice and row by row, compressed by zlib, in base64; `first`: the (slice, row) that the drawing
    begins with; `total`: texels of the whole surface; a place behind the end of a buffer is the palette's length.
    """
    one, other = _texels(before), _texels(after)
    most = MOST_TEXELS
    while True:
        shape, first, window = _window(before, one, other, most)
        flat = [each.reshape(-1, each.shape[-1])[window] for each in (one, other)]
        values, places = np.unique(np.concatenate(flat).view(_whole(flat[0])).ravel(), return_inverse=True)
        if len(values) <= MOST_DIFFERENT or shape[1] == 1:
            break
        most = shape[1] * shape[2] // 2
    bits = 8 if len(values) < 0x100 else 16 if len(values) < 0x1_0000 else 32
    raw = values.view(np.uint8).reshape(len(values), -1)
    drawn = [each.ravel() for each in np.split(places.ravel(), 2)]
    padding = shape[0] * shape[1] * shape[2] - len(drawn[0])
    return {
        "width": shape[2],
        "height": shape[1],
        "slices": shape[0],
        "first": list(first),
        "total": int(np.prod(one.shape[:-1])),
        "bits": bits,
        "palette": [list(each) for each in _palette(before, after, raw)],
        "expected": _packed(drawn[0], padding, len(values), bits),
        "observed": _packed(drawn[1], padding, len(values), bits),
    }


def _texels(surface: Surface) -> npt.NDArray[np.uint8]:
    """(words, 4) of a buffer, (slices, height, width, bytes) of an image."""
    return np.ascontiguousarray(units(surface))


def _whole(texels: npt.NDArray[np.uint8]) -> np.dtype[Any]:
    return np.dtype((np.void, texels.shape[-1]))


def _window(
    surface: Surface, one: npt.NDArray[np.uint8], other: npt.NDArray[np.uint8], most: int
) -> tuple[tuple[int, int, int], tuple[int, int], slice]:
    """((slices, rows, columns), (first slice, first row), the texels) to draw: about `most`."""
    if surface.subresource is None:
        width = next((each for each in ROW_WORDS if each * each >= len(one)), ROW_WORDS[-1])
        slices, height = 1, -(-len(one) // width)
    else:
        slices, height, width = one.shape[:3]
    rows = max(1, min(slices * height, most // width))
    if rows == slices * height:
        return (slices, height, width), (0, 0), slice(None)
    wrong = np.any(one != other, axis=-1).ravel()
    start = min(max(0, int(np.argmax(wrong)) // width - rows // 2), slices * height - rows)
    if slices > 1:  # never two slices at once: the picture has one height
        first, start = divmod(start, height)
        rows = min(rows, height - start)
        begin = first * height + start
        return (1, rows, width), (first, start), slice(begin * width, (begin + rows) * width)
    return (1, rows, width), (0, start), slice(start * width, (start + rows) * width)


def _palette(before: Surface, after: Surface, raw: npt.NDArray[np.uint8]) -> list[tuple[str, str, str]]:
    row = Surface(
        before.resource,
        before.subresource,
        raw.ravel() if before.subresource is None else raw.reshape(1, 1, *raw.shape),
        before.format,
        before.samples,
    )
    pixels = to_pixels(row, before, after).reshape(-1, 3)[: len(raw)]
    return [
        (bytes(value).hex(), f"#{bytes(pixel).hex()}", text)
        for value, pixel, text in zip(raw, pixels, numbers_of(row), strict=True)
    ]


def _packed(places: npt.NDArray[np.intp], padding: int, beyond: int, bits: int) -> str:
    filled = np.concatenate([places, np.full(padding, beyond)]).astype(f"<u{bits // 8}")
    return base64.b64encode(zlib.compress(filled.tobytes(), 9)).decode("ascii")
