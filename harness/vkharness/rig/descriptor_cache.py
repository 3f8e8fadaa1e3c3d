"""Descriptor sets found by their content: the same resources in the same layout give the same set.

A set that no frame asked for in a while is written again for other content. Nobody tracks when resources are destroyed:
a set is only found again for the same Python objects, which the cache keeps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vkharness.rig.core import RigDescriptorSet, RigPipeline
from vkharness.rig.descriptor_sets import DescriptorSets

UNUSED_FRAMES = 8
"""A set that so many frames did not ask for may be written again."""
Shape = tuple[tuple[int, tuple[int, int]], ...]
"""The bindings of a set layout. Layouts that are alike are compatible."""


@dataclass(slots=True)
class _KnownSet:
    """A set with what it holds, which stays alive so that its identity stays its own."""

    made: RigDescriptorSet
    held: dict[str, Any]
    frame: int


class DescriptorCache:
    """The descriptor sets of one device by content. A frame counter decides which are old."""

    def __init__(self, rig: DescriptorSets, unused_frames: int = UNUSED_FRAMES) -> None:
        self.rig, self.unused_frames = rig, unused_frames
        self._known: dict[tuple[Shape, Any], _KnownSet] = {}
        self._frame = 0
        self.made = self.written_again = self.found = 0
        """How many requests made a set, wrote an old one again, and found what they wanted."""

    def next_frame(self) -> None:
        """Begins a frame."""
        self._frame += 1

    def get(self, pipeline: RigPipeline, **held: Any) -> RigDescriptorSet:
        """Set 0 of a pipeline with this content (`DescriptorSets.descriptors`), made or written if need be."""
        shape = tuple(sorted(pipeline.shape.sets[0].types.items()))
        key = (shape, _identity(tuple(sorted(held.items()))))
        known = self._known.get(key)
        if known is not None:
            self.found += 1
        else:
            known = self._known[key] = self._provide(pipeline, shape, held)
        known.frame = self._frame
        return known.made

    def _provide(self, pipeline: RigPipeline, shape: Shape, held: dict[str, Any]) -> _KnownSet:
        old = next(
            (
                key
                for key, known in self._known.items()
                if key[0] == shape and self._frame - known.frame >= self.unused_frames
            ),
            None,
        )
        if old is None:
            self.made += 1
            return _KnownSet(self.rig.descriptors(pipeline, **held), held, self._frame)
        self.written_again += 1
        again = self._known.pop(old)
        self.rig.update(again.made, **held)
        return _KnownSet(again.made, held, self._frame)


def _identity(held: Any) -> Any:
    """A key for what a binding holds: numbers and names by value, objects by identity."""
    if isinstance(held, list | tuple):
        return tuple(_identity(each) for each in held)
    return held if isinstance(held, int | str) or held is None else id(held)
