"""The contents of all resources of a replay at one moment: read, filled with other values, put back, compared.

A surface is a buffer or one subresource of an image. Its contents are an array of (addresses, bytes): one byte an
address of a buffer, one texel block an address of an image, in the order of `vkharness.trace.resources.Image`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vkharness.findings import Box
from vkharness.replay.contents.contents import Bytes, Contents, StagingImage
from vkharness.replay.contents.fetch import Fetcher
from vkharness.replay.objects.creation import ImageResource
from vkharness.replay.objects.recorder import ImageTransition
from vkharness.replay.outcomes.executor import Scene
from vkharness.replay.schedule.layouts import PREINITIALIZED, TRANSFER_DST, UNDEFINED, Subresource
from vkharness.spans import Span

Mask = npt.NDArray[np.bool_]
Key = tuple[int, Subresource | None]
"""A resource, and the (aspect, mip, layer) of an image."""
Snapshot = dict[Key, Bytes]
Tracked = dict[int, dict[Subresource, int]]
"""The layouts of all subresources, by image."""
MOST_BYTES = 256 << 20
"""The most bytes of a snapshot, of which several are held at once."""
OTHER = 0x55
"""Mask that a filling XORs with the true contents to get other bytes."""
CLEARED = 0x33
"""The value that a multisampled image is cleared to as a filling."""


@dataclass(frozen=True, slots=True)
class SurfacePlace:
    """Where one surface lies: its resource's first address for it, how many there are, and its box in an image."""

    resource: int
    first: int
    count: int
    box: Box | None = None
    samples: int = 1

    @property
    def span(self) -> Span:
        """Addresses in the resource."""
        return (self.first, self.first + self.count)


class Snapshots:
    """Takes snapshots of the resources of a scene, and puts them back. Use it with the device idle."""

    def __init__(self, scene: Scene, left_out: set[int]) -> None:
        self._scene = scene
        self._contents: Contents = scene.contents
        self._fetcher = Fetcher(scene.contents)
        self.surfaces: dict[Key, SurfacePlace] = {}
        self.unobserved: dict[int, str] = {}
        """Why a resource is not observed, by resource."""
        resources = scene.contents.resources
        for buffer in resources.buffers.values():
            if buffer.id in left_out:
                self.unobserved[buffer.id] = "it shares memory with an image"
            elif buffer.bound:
                self.surfaces[buffer.id, None] = SurfacePlace(buffer.id, 0, buffer.size)
        for image in resources.images.values():
            if image.bound:
                self._add_image(image, image.id in left_out)
        self.bytes = self._bounded()
        """The bytes of one snapshot."""

    def _bounded(self) -> int:
        """Leaves out the largest resources while a snapshot would be too large. The bytes of one that is left."""
        sizes: dict[int, int] = {}
        for place in self.surfaces.values():
            sizes[place.resource] = sizes.get(place.resource, 0) + self._size(place)
        total = sum(sizes.values())
        for resource in sorted(sizes, key=lambda each: -sizes[each]):
            if total <= MOST_BYTES:
                break
            total -= sizes[resource]
            self.unobserved[resource] = f"all resources together hold more than {MOST_BYTES >> 20} MiB"
            self.surfaces = {key: place for key, place in self.surfaces.items() if place.resource != resource}
        return total

    def close(self) -> None:
        """Destroys what reading multisampled images needs."""
        self._fetcher.close()

    def _add_image(self, image: ImageResource, shared: bool) -> None:
        reason = "it shares memory with another resource" if shared else self._contents.why_unreadable(image.id)
        if image.image.samples > 1 and not reason:
            reason = "" if image.usage & 4 else "its samples cannot be read"
        if image.initial == PREINITIALIZED:
            reason = "it begins in the PREINITIALIZED layout, which cannot be restored"
        if reason:
            self.unobserved[image.id] = reason
            return
        for aspect, mip, layer in self._contents.layouts.subresources(image.id):
            texels = image.image.texels(aspect, mip)
            ((begin, end),) = image.image.region(aspect, mip, [layer], (0, 0, 0), texels)
            box = Box(aspect, mip, layer, (0, 0, 0), texels)
            self.surfaces[image.id, (aspect, mip, layer)] = SurfacePlace(
                image.id, begin, end - begin, box, image.image.samples
            )

    def _size(self, surface: SurfacePlace) -> int:
        if surface.box is None:
            return surface.count
        image = self._contents.resources.images[surface.resource].image
        return surface.count * image.format.aspect_bytes(surface.box.aspect) * surface.samples

    # Layouts

    def layouts(self) -> Tracked:
        """The layouts as they are now."""
        layouts = self._contents.layouts
        return {
            image: {each: layouts.of(image, each) for each in layouts.subresources(image)} for image in layouts.images
        }

    def restore_layouts(self, wanted: Tracked) -> None:
        """Moves every subresource back to the layout that it had. One that was UNDEFINED may be in any."""
        layouts, changes = self._contents.layouts, []
        for image, each in wanted.items():
            resource = self._contents.resources.images[image]
            moved: dict[tuple[int, int, int, int], int] = {}
            for (aspect, mip, layer), layout in each.items():
                now = layouts.of(image, (aspect, mip, layer))
                if now != layout:
                    layouts.put(image, [(aspect, mip, layer)], layout)
                    if layout not in (UNDEFINED, PREINITIALIZED):
                        key = (mip, layer, now, layout)
                        moved[key] = moved.get(key, 0) | aspect
            for (mip, layer, now, layout), aspects in moved.items():
                named = aspects if aspects & 6 else 1
                changes.append(ImageTransition(resource.raw, (named, mip, 1, layer, 1), now, layout))
        if changes:
            self._scene.recorder.full_barrier()
            self._scene.recorder.change_layouts(changes)
            self._scene.recorder.full_barrier()
        self._scene.recorder.finish()

    def _define(self) -> Tracked:
        """Brings what has no contents yet into a layout in which it can be read. The layouts as they were."""
        held, layouts = self.layouts(), self._contents.layouts
        changes = []
        for image in {surface.resource for surface in self.surfaces.values() if surface.box is not None}:
            resource = self._contents.resources.images[image]
            for (mip, layer), aspects in _undefined(held[image]).items():
                named = aspects if aspects & 6 else 1
                changes.append(ImageTransition(resource.raw, (named, mip, 1, layer, 1), UNDEFINED, TRANSFER_DST))
            layouts.put(image, [each for each, now in held[image].items() if now == UNDEFINED], TRANSFER_DST)
        if changes:
            self._scene.recorder.change_layouts(changes)
            self._scene.recorder.full_barrier()
        return held

    def _undefine(self, held: Tracked) -> None:
        layouts = self._contents.layouts
        for image, each in held.items():
            layouts.put(image, [where for where, now in each.items() if now == UNDEFINED], UNDEFINED)

    # Contents

    def read(self) -> Snapshot:
        """The contents of every surface."""
        held = self._define()
        try:
            return dict(self._read())
        finally:
            self._undefine(held)

    def _read(self) -> Iterator[tuple[Key, Bytes]]:
        images: dict[int, list[Key]] = {}
        for key, surface in self.surfaces.items():
            if surface.box is None:
                yield key, self._contents.read_buffer(surface.resource, 0, surface.count).reshape(-1, 1)
            elif surface.samples > 1:
                image = self._contents.resources.images[surface.resource]
                data = self._fetcher.fetch(image, surface.box.aspect, surface.box.layer)
                yield key, np.moveaxis(data, 0, 2).reshape(surface.count, -1)
            else:
                images.setdefault(surface.resource, []).append(key)
        for image_id, keys in images.items():
            boxes = [box for key in keys if (box := self.surfaces[key].box) is not None]
            for key, data in zip(keys, self._contents.read_boxes(image_id, boxes), strict=True):
                yield key, data.reshape(self.surfaces[key].count, -1)

    def save_samples(self, keys: set[int]) -> dict[Key, StagingImage]:
        """Copies of multisampled images, which a snapshot cannot put back."""
        held, saved = self._define(), {}
        for key, surface in self.surfaces.items():
            if surface.samples > 1 and surface.box is not None and surface.resource in keys:
                twin = self._contents.read_box(surface.resource, surface.box)
                assert isinstance(twin, StagingImage)
                saved[key] = twin
        self._undefine(held)
        return saved

    def put(self, wanted: Mapping[Key, Bytes], now: Mapping[Key, Bytes], saved: Mapping[Key, StagingImage]) -> None:
        """Puts back the surfaces of which the contents differ from `now`; multisampled ones from `saved`, or, where
        there is no copy, with a filling."""
        held = self._define()
        for key, data in wanted.items():
            surface = self.surfaces[key]
            if data is now[key] or np.array_equal(data, now[key]):
                continue
            if surface.box is None:
                self._contents.write_buffer(surface.resource, 0, data.ravel())
            elif surface.samples > 1:
                if key in saved:
                    self._contents.write_box(surface.resource, surface.box, saved[key])
                else:
                    self._contents.clear_box(surface.resource, surface.box, CLEARED)
            else:
                self._contents.write_box(surface.resource, surface.box, self._boxed(surface, data))
        self._undefine(held)

    def _boxed(self, surface: SurfacePlace, data: Bytes) -> Bytes:
        assert surface.box is not None
        image = self._contents.resources.images[surface.resource].image
        width, height, depth = image.blocks(surface.box.aspect, surface.box.mip)
        return np.ascontiguousarray(data.reshape(depth, height, width, -1))


def _undefined(layouts: Mapping[Subresource, int]) -> dict[tuple[int, int], int]:
    """(mip, layer) to the aspects without contents."""
    found: dict[tuple[int, int], int] = {}
    for (aspect, mip, layer), layout in layouts.items():
        if layout == UNDEFINED:
            found[mip, layer] = found.get((mip, layer), 0) | aspect
    return found


def filled(data: Bytes, kept: Mask) -> Bytes:
    """The contents with every byte changed except at the addresses of `kept`."""
    other: Bytes = data ^ np.uint8(OTHER)
    other[kept] = data[kept]
    return other


def mask_of(surface: SurfacePlace, spans: list[Span]) -> Mask:
    """The addresses of a surface that lie in spans of its resource."""
    mask = np.zeros(surface.count, np.bool_)
    for begin, end in spans:
        mask[max(0, begin - surface.first) : max(0, end - surface.first)] = True
    return mask


def spans_of(surface: SurfacePlace, mask: Mask) -> list[Span]:
    """The inverse of `mask_of`."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(np.int8)))
    return [(surface.first + int(begin), surface.first + int(end)) for begin, end in edges.reshape(-1, 2)]
