"""Pictures of what a hazard did: expected, observed and difference side by side as files, and a JSON record.

Small surfaces are enlarged by whole factors with hard edges, so that one wrong texel can be seen. Files appear whole
or not at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image as Picture
from PIL import ImageDraw

from harness.explore.observe import Difference, Outputs, Surface, units
from harness.report.texels import Pixels, to_pixels

SIDE = 384
"""Pixels that the longer side of a picture has at least, unless the surface is larger."""
LIMIT = 2048
"""Texels of a side that are drawn; larger surfaces are drawn around the first difference."""
MAX_PICTURES = 16
"""Surfaces drawn for one record; the record lists all differences."""
MARK = (255, 0, 255)
WRONG = (255, 64, 32)


def write_pictures(
    folder: Path,
    expected: Outputs,
    observed: Outputs,
    differences: Sequence[Difference],
    record: Mapping[str, Any],
) -> list[Path]:
    """Writes `<surface>-{expected,observed,difference}.png` for each difference, and `record.json`; their paths.

    The record holds `record`, the differences and the names of the pictures. Raises OSError when the folder cannot be
    written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    entries: list[dict[str, Any]] = []
    for difference in differences:
        entry: dict[str, Any] = difference.to_dict()
        key = (difference.resource, difference.subresource)
        before, after = expected.surfaces.get(key), observed.surfaces.get(key)
        if before is not None and after is not None and len(entries) < MAX_PICTURES:
            paths = _write_triple(folder, before, after)
            entry["pictures"] = [path.name for path in paths]
            written.extend(paths)
        entries.append(entry)
    path = folder / "record.json"
    _write_atomically(path, json.dumps({**record, "differences": entries}, indent=2).encode() + b"\n")
    return [*written, path]


def _write_triple(folder: Path, before: Surface, after: Surface) -> list[Path]:
    name = surface_name(before)
    paths = []
    for kind, picture in zip(("expected", "observed", "difference"), triple(before, after), strict=True):
        path = folder / f"{name}-{kind}.png"
        _save(path, picture)
        paths.append(path)
    return paths


def surface_name(surface: Surface) -> str:
    """'buffer-7', or 'image-9-color-mip0-layer1'."""
    if surface.subresource is None:
        return f"buffer-{surface.resource}"
    aspect, mip, layer = surface.subresource
    names = {1: "color", 2: "depth", 4: "stencil", 0x10: "plane0", 0x20: "plane1", 0x40: "plane2"}
    return f"image-{surface.resource}-{names.get(aspect, hex(aspect))}-mip{mip}-layer{layer}"


def triple(before: Surface, after: Surface) -> tuple[Picture.Image, Picture.Image, Picture.Image]:
    """(expected, observed, difference) with the first wrong texel marked in the last two."""
    expected, observed = to_pixels(before, before, after), to_pixels(after, before, after)
    wrong = wrong_texels(before, after)
    expected, observed, wrong = _window(expected, observed, wrong)
    faded = (expected // 3).astype(np.uint8)
    difference = np.where(wrong[..., np.newaxis], np.array(WRONG, np.uint8), faded)
    factor = max(1, -(-SIDE // max(wrong.shape)))
    pictures = [_enlarged(pixels, factor) for pixels in (expected, observed, difference)]
    if wrong.any():
        y, x = np.unravel_index(int(np.argmax(wrong.ravel())), wrong.shape)
        for picture in pictures[1:]:
            _mark(picture, int(x), int(y), factor)
    return (pictures[0], pictures[1], pictures[2])


def wrong_texels(before: Surface, after: Surface) -> npt.NDArray[np.bool_]:
    """Which pixels of the drawn form differ: (height, width), slices of depth (or samples) one below the other."""
    wrong = np.any(units(before) != units(after), axis=-1)
    if before.kind == "buffer":
        width = buffer_width(len(wrong))
        return np.pad(wrong, (0, -len(wrong) % width)).reshape(-1, width)
    flat: npt.NDArray[np.bool_] = wrong.reshape(-1, wrong.shape[-1])
    return flat


def buffer_width(words: int) -> int:
    """Words a row in the picture of a buffer: near square, a power of two."""
    width = 1
    while width * width < words:
        width *= 2
    return width


def _window(
    expected: Pixels, observed: Pixels, wrong: npt.NDArray[np.bool_]
) -> tuple[Pixels, Pixels, npt.NDArray[np.bool_]]:
    """At most LIMIT texels each way, around the first difference."""
    if max(wrong.shape) <= LIMIT:
        return expected, observed, wrong
    y, x = np.unravel_index(int(np.argmax(wrong.ravel())), wrong.shape)
    rows = slice(max(0, int(y) - LIMIT // 2), max(0, int(y) - LIMIT // 2) + LIMIT)
    columns = slice(max(0, int(x) - LIMIT // 2), max(0, int(x) - LIMIT // 2) + LIMIT)
    return expected[rows, columns], observed[rows, columns], wrong[rows, columns]


def _enlarged(pixels: Pixels, factor: int) -> Picture.Image:
    picture = Picture.fromarray(np.ascontiguousarray(pixels))
    return picture.resize((picture.width * factor, picture.height * factor), Picture.Resampling.NEAREST)


def _mark(picture: Picture.Image, x: int, y: int, factor: int) -> None:
    """A frame around one texel, wide enough to be seen around a single pixel."""
    margin = max(2, factor // 6)
    left, top = x * factor - margin, y * factor - margin
    right, bottom = (x + 1) * factor - 1 + margin, (y + 1) * factor - 1 + margin
    box = (max(0, left), max(0, top), min(picture.width - 1, right), min(picture.height - 1, bottom))
    ImageDraw.Draw(picture).rectangle(box, outline=MARK, width=margin)


def _save(path: Path, picture: Picture.Image) -> None:
    partial = path.with_name(f"{path.name}.partial-{os.getpid()}")
    try:
        picture.save(partial, format="PNG")
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _write_atomically(path: Path, data: bytes) -> None:
    partial = path.with_name(f"{path.name}.partial-{os.getpid()}")
    try:
        partial.write_bytes(data)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
