"""Everything that a run left, each buffer and image subresource as an array, and how two runs differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from vkharness.findings import Box, FailedCallError, UserError
from vkharness.replay.contents.contents import Contents
from vkharness.replay.contents.fetch import Fetcher
from vkharness.replay.objects.creation import ImageResource
from vkharness.replay.schedule.layouts import Subresource
from vkharness.replay.schedule.screens import in_trace, is_screen

Bytes = npt.NDArray[np.uint8]
WORD = 4
Key = tuple[int, Subresource | None]
"""Names one surface: a resource, and the (aspect, mip, layer) of an image. A host read has its negative block index."""


@dataclass(frozen=True, slots=True)
class Surface:
    """One buffer or one image subresource as observed, or what the host saw where it read.

    `resource` is an id (also a screen's, see `screens`) or the negative block index of a host read. `data` is (bytes,)
    for a buffer or a host read and (depth, height, width, bytes) in texel blocks for an image. Multisampled images have
    their samples in place of depth and each texel as fetched: four 32-bit words of a colour, one of depth or stencil.
    """

    resource: int
    subresource: Subresource | None
    data: Bytes
    format: str = ""
    samples: int = 1

    @property
    def kind(self) -> str:
        """'buffer', 'image', 'screen of image' or 'host read'."""
        if self.subresource is not None:
            return "screen of image" if is_screen(self.resource) else "image"
        return "buffer" if self.resource > 0 else "host read"


@dataclass(slots=True)
class Outputs:
    """Everything that was observed after one run, and a reason for each surface that was not."""

    surfaces: dict[Key, Surface] = field(default_factory=dict)
    unobserved: dict[int, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class OutputDifference:
    """The difference between two observations of one surface.

    `first` is (byte offset,) of the first wrong word of a buffer, or (x, y, z) of the first wrong texel block of an
    image; z counts the samples of a multisampled image. `count` of `total` words or blocks differ. Values are
    hexadecimal.
    """

    resource: int
    kind: str
    subresource: Subresource | None
    count: int
    total: int
    first: tuple[int, ...]
    expected: str
    observed: str

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form, with the members' names."""
        return {
            "resource": in_trace(self.resource),
            "kind": self.kind,
            "subresource": None
            if self.subresource is None
            else dict(zip(("aspect", "mip", "layer"), self.subresource, strict=True)),
            "count": self.count,
            "total": self.total,
            "first": list(self.first),
            "expected": self.expected,
            "observed": self.observed,
        }


def observe(contents: Contents, notes: list[str]) -> Outputs:
    """Reads back every buffer and image of a replay. `Outputs.unobserved` has the reason for each that
    cannot be read."""
    outputs = Outputs(notes=list(notes))
    for buffer in contents.resources.buffers.values():
        if buffer.bound:
            data = contents.read_buffer(buffer.id, 0, buffer.size)
            outputs.surfaces[buffer.id, None] = Surface(buffer.id, None, data)
    for index, seen in contents.resources.host_reads.items():
        outputs.surfaces[-index, None] = Surface(-index, None, np.frombuffer(seen, np.uint8))
    fetcher = Fetcher(contents)
    try:
        for image in contents.resources.images.values():
            if image.bound:
                _observe_image(contents, fetcher, image, outputs)
    finally:
        fetcher.close()
    return outputs


def _observe_image(contents: Contents, fetcher: Fetcher, image: ImageResource, outputs: Outputs) -> None:
    boxes = list(_live_boxes(contents, image))
    if not boxes:
        outputs.unobserved[image.id] = "it never left its initial layout, so it holds nothing defined"
        return
    try:
        if image.image.samples > 1:
            for box in boxes:
                data = fetcher.fetch(image, box.aspect, box.layer)
                _add(outputs, image, box, data)
            return
        reason = contents.why_unreadable(image.id)
        if reason:
            raise UserError(reason)
        for box, data in zip(boxes, contents.read_boxes(image.id, boxes), strict=True):
            _add(outputs, image, box, data)
    except FailedCallError:
        raise  # the driver fails: what else it gives is worth nothing
    except UserError as error:
        outputs.unobserved[image.id] = str(error)


def _add(outputs: Outputs, image: ImageResource, box: Box, data: Bytes) -> None:
    key = (box.aspect, box.mip, box.layer)
    surface = Surface(image.id, key, data, image.image.format.name, image.image.samples)
    outputs.surfaces[image.id, key] = surface


def _live_boxes(contents: Contents, image: ImageResource) -> Iterator[Box]:
    """Whole subresources that have contents."""
    for aspect, mip, layer in contents.layouts.subresources(image.id):
        box = Box(aspect, mip, layer, (0, 0, 0), image.image.texels(aspect, mip))
        if contents.readable(image.id, box):
            yield box


def compare(expected: Outputs, observed: Outputs) -> list[OutputDifference]:
    """All differences between two runs, by resource and subresource. A surface that only one run has
    is a difference."""
    found = []
    for key in sorted(expected.surfaces.keys() | observed.surfaces.keys(), key=repr):
        before, after = expected.surfaces.get(key), observed.surfaces.get(key)
        if before is None or after is None:
            there = before or after
            assert there is not None
            size = int(np.prod(there.data.shape[:-1] or there.data.shape))
            seen = ("nothing", "something") if before is None else ("something", "nothing")
            found.append(OutputDifference(key[0], there.kind, key[1], size, size, (0,), *seen))
            continue
        difference = _difference(before, after)
        if difference is not None:
            found.append(difference)
    return found


def _difference(before: Surface, after: Surface) -> OutputDifference | None:
    first, second = units(before), units(after)
    wrong = np.any(first != second, axis=-1)
    count = int(np.count_nonzero(wrong))
    if not count:
        return None
    at = int(np.argmax(wrong.ravel()))
    where = np.unravel_index(at, wrong.shape)
    place: tuple[int, ...] = (at * WORD,) if before.subresource is None else tuple(int(i) for i in reversed(where))
    return OutputDifference(
        before.resource,
        before.kind,
        before.subresource,
        count,
        int(wrong.size),
        place,
        first[where].tobytes().hex(),
        second[where].tobytes().hex(),
    )


def units(surface: Surface) -> Bytes:
    """The data with one compared unit (a word, or a texel block) along the last axis."""
    if surface.subresource is not None:
        return surface.data
    padded = np.pad(surface.data, (0, -len(surface.data) % WORD))
    return padded.reshape(-1, WORD)
