"""Pictures of what a hazard did: expected, observed and difference side by side as files, their values, a JSON record.

Small surfaces are enlarged by whole factors with hard edges, so that one wrong texel can be seen. Files appear whole
or not at all.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image as Picture
from PIL import ImageDraw, ImageFont
from PIL.PngImagePlugin import PngInfo

from vkharness.replay.contents.observe import OutputDifference, Outputs, Surface, units
from vkharness.replay.schedule.screens import in_trace, is_screen
from vkharness.report.surface_values import VALUES, save_values
from vkharness.report.texels import Pixels, as_grid, to_pixels
from vkharness.report.text import size_text
from vkharness.whole_file import replacing

SIDE = 384
"""Pixels that the longer side of a picture has at least, unless the surface is larger."""
LIMIT = 2048
"""Texels of a side that are drawn; larger surfaces are drawn around the first difference."""
MAX_PICTURES = 16
"""Surfaces drawn for one record; the record lists all differences."""
MAX_SLICES = 16
"""Depth slices, or samples, that are drawn."""
GAP = 4
"""Pixels between slices."""
FRAME = 17
"""Pixels that the frame around the first wrong texel encloses at least."""
BACKGROUND = (40, 40, 40)
LEADING = 2
"""Pixels between the rows of a caption."""
TEXT = (230, 230, 230)
MARK = (255, 0, 255)
WRONG = (255, 64, 32)


def write_pictures(
    folder: Path,
    expected: Outputs,
    observed: Outputs,
    differences: Sequence[OutputDifference],
    record: Mapping[str, Any],
) -> list[Path]:
    """Writes `<surface>-{expected,observed,difference}.png` for each difference, all values, and `record.json`; their
    paths.

    The record holds `record`, the differences and the names of the pictures; `values.npz` holds the bytes. The record's
    `caption` stands below each picture, under the resource with its size and format, and is its description (PNG's
    keyword `Description`). Raises OSError when the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    entries: list[dict[str, Any]] = []
    values: dict[str, tuple[Surface, Surface]] = {}
    for difference in differences:
        entry: dict[str, Any] = difference.to_dict()
        key = (difference.resource, difference.subresource)
        before, after = expected.surfaces.get(key), observed.surfaces.get(key)
        if before is not None and after is not None and len(entries) < MAX_PICTURES:
            paths = _write_triple(folder, before, after, str(record.get("caption", "")))
            entry["pictures"] = [path.name for path in paths]
            entry |= {"surface": surface_name(before), "format": before.format, "samples": before.samples}
            values[surface_name(before)] = before, after
            written.extend(paths)
        entries.append(entry)
    if values:
        with replacing(folder / VALUES) as part:
            save_values(part, values)
        written.append(folder / VALUES)
    path = folder / "record.json"
    with replacing(path) as part:
        part.write_text(json.dumps({**record, "differences": entries}, indent=2) + "\n", encoding="utf-8")
    return [*written, path]


def _write_triple(folder: Path, before: Surface, after: Surface, caption: str) -> list[Path]:
    name = surface_name(before)
    paths = []
    for kind, picture in zip(("expected", "observed", "difference"), triple(before, after), strict=True):
        path = folder / f"{name}-{kind}.png"
        lines = [f"{kind}: {surface_text(before)}", *([caption] if caption else [])]
        _save(path, captioned(picture, lines), f"{kind}: {caption}" if caption else kind)
        paths.append(path)
    return paths


def surface_name(surface: Surface) -> str:
    """'buffer-7', 'image-9-color-mip0-layer1', or 'screen-of-image-9'."""
    if surface.subresource is None:
        return f"buffer-{surface.resource}"
    if is_screen(surface.resource):
        return f"screen-of-image-{in_trace(surface.resource)}"
    aspect, mip, layer = surface.subresource
    names = {1: "color", 2: "depth", 4: "stencil", 0x10: "plane0", 0x20: "plane1", 0x40: "plane2"}
    return f"image-{surface.resource}-{names.get(aspect, hex(aspect))}-mip{mip}-layer{layer}"


def surface_text(surface: Surface) -> str:
    """'image-9-color-mip0-layer1, 64 x 64, VK_FORMAT_R8G8B8A8_UNORM', or 'buffer-7, 256 bytes'."""
    if surface.subresource is None:
        return f"{surface_name(surface)}, {size_text(surface.data.size)}"
    depth, height, width = surface.data.shape[:3]
    deep = f" x {depth}" if depth > 1 and surface.samples == 1 else ""
    samples = f", {surface.samples} samples" if surface.samples > 1 else ""
    return f"{surface_name(surface)}, {width} x {height}{deep}{samples}, {surface.format}"


def captioned(picture: Picture.Image, lines: Sequence[str]) -> Picture.Image:
    """The picture with lines of text below it, wrapped to its width."""
    columns = max(20, int((picture.width - 2 * GAP) / _font().getlength("m")))
    rows = [row for line in lines for row in wrap(line, columns)]
    high = _lettering("").height
    made = Picture.new("RGB", (picture.width, picture.height + len(rows) * high + 2 * GAP), BACKGROUND)
    made.paste(picture, (0, 0))
    for number, row in enumerate(rows):
        made.paste(_lettering(row), (GAP, picture.height + GAP + number * high))
    return made


@cache
def _font() -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default()


@lru_cache(512)
def _lettering(row: str) -> Picture.Image:
    """One row of a caption. The three pictures of a surface share most rows."""
    high = math.ceil(_font().getbbox("Ag")[3]) + LEADING
    made = Picture.new("RGB", (math.ceil(_font().getlength(row)) + 1, high), BACKGROUND)
    ImageDraw.Draw(made).text((0, 0), row, fill=TEXT, font=_font())
    return made


def triple(before: Surface, after: Surface) -> tuple[Picture.Image, Picture.Image, Picture.Image]:
    """(expected, observed, difference) with the first wrong texel framed in the last two."""
    wrong = wrong_texels(before, after)
    z, y, x = (int(at) for at in np.unravel_index(int(np.argmax(wrong.ravel())), wrong.shape))
    window = (_around(z, wrong.shape[0], MAX_SLICES), _around(y, wrong.shape[1]), _around(x, wrong.shape[2]))
    wrong = wrong[window]
    expected, observed = to_pixels(before, before, after)[window], to_pixels(after, before, after)[window]
    faded = (expected // 3).astype(np.uint8)
    difference = np.where(wrong[..., np.newaxis], np.array(WRONG, np.uint8), faded)
    sheet = Sheet.fitting(wrong.shape)
    pictures = [sheet.draw(pixels) for pixels in (expected, observed, difference)]
    if wrong.any():
        first = (z - window[0].start, y - window[1].start, x - window[2].start)
        for picture in pictures[1:]:
            sheet.frame(picture, first)
    return (pictures[0], pictures[1], pictures[2])


def wrong_texels(before: Surface, after: Surface) -> npt.NDArray[np.bool_]:
    """Which pixels of the drawn form differ: (slices, height, width)."""
    wrong = np.any(units(before) != units(after), axis=-1)
    return as_grid(wrong) if before.subresource is None else wrong


def _around(at: int, size: int, limit: int = LIMIT) -> slice:
    """At most `limit` of `size` texels, with `at` among them."""
    start = min(max(0, at - limit // 2), max(0, size - limit))
    return slice(start, min(size, start + limit))


@dataclass(frozen=True, slots=True)
class Sheet:
    """Slices of (height, width) texels in rows of `columns`, each texel `factor` pixels wide, GAP pixels apart."""

    slices: int
    height: int
    width: int
    columns: int
    factor: int

    @classmethod
    def fitting(cls, shape: tuple[int, ...]) -> Sheet:
        """A near square sheet of at least SIDE pixels."""
        slices, height, width = shape
        columns = max(1, min(slices, round(math.sqrt(slices * height / width))))
        rows = -(-slices // columns)
        factor = max(1, -(-SIDE // max(columns * width, rows * height)))
        return cls(slices, height, width, columns, factor)

    def corner(self, at: tuple[int, int, int]) -> tuple[int, int]:
        """(x, y) in pixels of the upper left corner of texel (slice, y, x)."""
        row, column = divmod(at[0], self.columns)
        x = column * (self.width * self.factor + GAP) + at[2] * self.factor
        return (x, row * (self.height * self.factor + GAP) + at[1] * self.factor)

    def draw(self, pixels: Pixels) -> Picture.Image:
        """(slices, height, width, 3) as one picture."""
        rows = -(-self.slices // self.columns)
        size = (self.columns * (self.width * self.factor + GAP) - GAP, rows * (self.height * self.factor + GAP) - GAP)
        picture = Picture.new("RGB", size, BACKGROUND)
        for index, texels in enumerate(pixels):
            small = Picture.fromarray(np.ascontiguousarray(texels))
            large = small.resize((self.width * self.factor, self.height * self.factor), Picture.Resampling.NEAREST)
            picture.paste(large, self.corner((index, 0, 0)))
        return picture

    def frame(self, picture: Picture.Image, at: tuple[int, int, int]) -> None:
        """A frame around one texel that leaves the texel free and can be seen from afar."""
        x, y = self.corner(at)
        gap = max(1, (FRAME - self.factor) // 2)
        box = [x - gap, y - gap, x + self.factor - 1 + gap, y + self.factor - 1 + gap]
        if self.factor >= FRAME:
            box = [max(0, box[0]), max(0, box[1]), min(picture.width - 1, box[2]), min(picture.height - 1, box[3])]
        ImageDraw.Draw(picture).rectangle(box, outline=MARK, width=3)


def _save(path: Path, picture: Picture.Image, description: str) -> None:
    text = PngInfo()
    text.add_itxt("Description", description)
    with replacing(path) as part:
        # The usual level takes half as long again, for a sixth fewer bytes.
        picture.save(part, format="PNG", pnginfo=text, compress_level=3)
