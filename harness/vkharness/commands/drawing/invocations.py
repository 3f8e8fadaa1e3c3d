"""The known invocations of a dispatch or draw, for shaders whose accesses depend on them.

Specification: "Dispatching Commands", "Built-In Variables"; rules.md#indices-that-the-dispatch-decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from vkharness.spans import Span
from vkharness.spec.enums import VkShaderStage

if TYPE_CHECKING:
    from vkharness.shader.reflect import ReflectedEntryPoint


@dataclass(frozen=True, slots=True, eq=False)
class Invocations:
    """The first and the last of each kind; None where that is not known. Equal ones are one object while they are used,
    so that a look-up by them costs no comparison."""

    groups: tuple[Span, Span, Span] | None = None
    """Workgroups in each direction."""
    vertices: Span | None = None
    """Values of VertexIndex."""
    instances: Span | None = None
    """Values of InstanceIndex."""

    @property
    def known(self) -> tuple[bool, bool]:
        """Whether all invocations of a dispatch are known, and all of a draw."""
        return self.groups is not None, self.vertices is not None and self.instances is not None


UNKNOWN_INVOCATIONS = Invocations()


@lru_cache(4096)
def dispatched(base: tuple[int, int, int], count: tuple[int, int, int]) -> Invocations:
    """The invocations of a dispatch of `count` workgroups from `base` on."""
    groups = [(first, first + number - 1) for first, number in zip(base, count, strict=True)]
    return Invocations((groups[0], groups[1], groups[2]))


@lru_cache(4096)
def drawn(vertices: tuple[int, int | None], instances: tuple[int, int | None]) -> Invocations:
    """The invocations of a draw of vertices and instances [first, end). An end of None is not known."""
    return Invocations(None, _closed(*vertices), _closed(*instances))


def _closed(first: int, end: int | None) -> Span | None:
    return None if end is None else (first, end - 1)


def built_ins(run: Invocations, entry: ReflectedEntryPoint) -> tuple[dict[tuple[int, int], Span], bool]:
    """(least and greatest value of built-in inputs, by number and component; whether each value in between occurs)."""
    from vkharness.shader import values

    if entry.stage == VkShaderStage.VERTEX:
        found = {(values.VERTEX_INDEX, 0): run.vertices, (values.INSTANCE_INDEX, 0): run.instances}
        known = {place: span for place, span in found.items() if span is not None}
        return known, len(known) == len(found)
    if entry.stage != VkShaderStage.COMPUTE or entry.local_size is None:
        return {}, False
    ranges: dict[tuple[int, int], Span] = {}
    for axis, size in enumerate(entry.local_size):
        ranges[values.LOCAL_INVOCATION_ID, axis] = (0, size - 1)
        if run.groups is not None:
            first, last = run.groups[axis]
            ranges[values.WORKGROUP_ID, axis] = (first, last)
            ranges[values.NUM_WORKGROUPS, axis] = (last - first + 1,) * 2
            ranges[values.GLOBAL_INVOCATION_ID, axis] = (first * size, (last + 1) * size - 1)
    return ranges, run.groups is not None
