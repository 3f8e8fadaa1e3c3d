"""Pictures of a row, from its records and values: surfaces with a caption each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vkharness.report.printable import quoted
from vkharness.report.surface_values import VALUES, drawing_of, load_values

MOST_BYTES = 8 << 20
"""Of a record that is read."""
ASPECTS = {1: "colour", 2: "depth", 4: "stencil", 0x10: "plane 0", 0x20: "plane 1", 0x40: "plane 2"}


def pictures_of(
    folder: Path, names: Mapping[str, str], surfaces: dict[str, dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Each record in `folder` (of one execution) as `{"caption", "outcome", "moment", "finding", "surfaces"}`.

    A surface is `{"caption", "what", "drawing"}`; its drawing is a key of `surfaces`, where drawings are added: many
    rows have the same. `names` are debug names by id. Yields nothing where there is no record.
    """
    record = _record(folder / "record.json")
    if record is None:
        return
    shown = []
    for entry in record.get("differences") or ():
        if not isinstance(entry, dict):
            continue
        try:
            said = {"caption": difference_text(entry), "what": what_text(entry, names)}
        except (KeyError, TypeError, ValueError, IndexError):
            continue  # not a difference as we write them
        pair = load_values(folder / VALUES, entry) if "surface" in entry else None
        if pair is not None:
            drawing = drawing_of(*pair)
            key = hashlib.sha256(json.dumps(drawing).encode()).hexdigest()[:16]
            surfaces[key] = drawing
            said |= {"drawing": key, "what": what_text(entry, names, size_text(*pair[0].data.shape))}
        shown.append(said)
    finding = record.get("finding")
    yield {
        "caption": str(record.get("caption", "")),
        "outcome": str(record.get("outcome", "")),
        "moment": str(record.get("moment", "")),
        "finding": [finding.get("prior_call"), finding.get("call")] if isinstance(finding, dict) else None,
        "surfaces": shown,
    }


def _record(path: Path) -> dict[str, Any] | None:
    try:
        if path.stat().st_size > MOST_BYTES:
            return None
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def what_text(entry: Mapping[str, Any], names: Mapping[str, str], size: str = "") -> str:
    """`buffer 7 "positions", 1,024 bytes`; `image 9, VK_FORMAT_R8G8B8A8_UNORM, 16 x 16, mip 0, layer 0, colour`."""
    name = names.get(str(entry["resource"]), "")
    words = [f"{entry['kind']} {entry['resource']}" + (f" {quoted((name,))}" if name else "")]
    part = entry["subresource"]
    words += [str(entry.get("format") or ""), size]
    if part is not None:
        aspect = ASPECTS.get(part["aspect"], hex(part["aspect"]))
        words += [f"mip {part['mip']}", f"layer {part['layer']}", aspect]
        words += [f"{entry['samples']} samples"] if entry.get("samples", 1) > 1 else []
    return ", ".join(each for each in words if each)


def size_text(*shape: int) -> str:
    """`1,024 bytes` of a buffer; `16 x 16` or `16 x 16 x 4` texels of an image, from (depth, height, width, bytes)."""
    if len(shape) == 1:
        return f"{shape[0]:,} bytes"
    depth, height, width, _ = shape
    return f"{width} x {height}" + (f" x {depth}" if depth > 1 else "")


def difference_text(entry: Mapping[str, Any]) -> str:
    """`256 words, 64 differ, first at byte 16: 11111111 expected, aeaeaeae observed`."""
    is_image = entry["subresource"] is not None
    unit = "texel" if is_image else "word"
    first = [int(each) for each in entry["first"]]
    where = f"({', '.join(map(str, first if first[-1] else first[:2]))})" if is_image else f"byte {first[0]}"
    total, count = int(entry["total"]), int(entry["count"])
    return (
        f"{total:,} {unit}{'s' if total != 1 else ''}, {count:,} differ{'s' if count == 1 else ''}, first at {where}: "
        f"{entry['expected']} expected, {entry['observed']} observed"
    )
