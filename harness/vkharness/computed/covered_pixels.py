"""Which pixels a primitive certainly covers, and of which that is open ("Rasterization").

Coordinates are rounded to a grid of at least 16 steps a pixel, and what lies just on an edge belongs to one of the two
primitives that share it. So a pixel is covered where its samples lie inside by more than that, or where two triangles
of one draw that share the edge cover it together; it is open where neither is certain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from vkharness.computed.known_cells import Mask
from vkharness.findings import UserError
from vkharness.shader.execution.float_bits import error_of, from_bits
from vkharness.trace.rendering_state import Area

GRID = 16
MARGIN = 1 / 8
"""In pixels, for a vertex that does not lie on the grid."""
Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


class WindowVertex(NamedTuple):
    """A vertex in framebuffer coordinates; `z` is None where it is not exact."""

    x: float
    y: float
    z: float | None
    on_grid: bool


class Coverage(NamedTuple):
    """The pixels of an area that a primitive covers, and those of which that is open, with shape (height, width)."""

    covered: Mask
    open: Mask


def window_vertex(position: Sequence[int], viewport: Mapping[str, float]) -> WindowVertex:
    """The vertex of a clip space position, as bits of four floats ("Controlling the Viewport"). Raises `UserError` for
    one that is divided by w, or is in front of the near plane or behind the far plane."""
    numbers, errors = [float(from_bits(each, 32)) for each in position], [error_of(each) for each in position]
    if numbers[3] != 1 or errors[3]:
        raise UserError("a vertex whose w is not 1 is not followed")
    if not -errors[2] <= numbers[2] <= 1 + errors[2]:
        raise UserError("a primitive that is clipped by depth is not followed")
    x = (numbers[0] + 1) * viewport["width"] / 2 + viewport["x"]
    y = (numbers[1] + 1) * viewport["height"] / 2 + viewport["y"]
    exact = not (errors[0] or errors[1]) and (x * GRID).is_integer() and (y * GRID).is_integer()
    if max(errors[0] * abs(viewport["width"]), errors[1] * abs(viewport["height"])) > MARGIN / 4:
        raise UserError("the place of a vertex is not known")
    low, high = viewport["minDepth"], viewport["maxDepth"]
    z = low + numbers[2] * (high - low) if not errors[2] else None
    return WindowVertex(x, y, z, exact)


def covered_by_points(vertices: Sequence[tuple[WindowVertex, float]], area: Area, samples: int) -> list[Coverage]:
    """The pixels of points, each with its size in pixels."""
    found = []
    for vertex, size in vertices:
        x, y = _grid(area)
        half = 0.0 if samples == 1 else 0.5
        far = np.maximum(np.abs(x + 0.5 - vertex.x), np.abs(y + 0.5 - vertex.y))
        margin = 0.0 if vertex.on_grid else MARGIN
        inside = far + half < size / 2 - margin if samples == 1 else far + half <= size / 2 - margin
        outside = far - half > size / 2 + margin
        found.append(Coverage(inside, ~inside & ~outside))
    return found


def covered_by_triangles(
    triangles: Sequence[tuple[WindowVertex, WindowVertex, WindowVertex]], area: Area, samples: int
) -> list[Coverage]:
    """The pixels of the triangles of one draw, in order."""
    found = [_Triangle(corners, area, samples) for corners in triangles]
    for at, one in enumerate(found):
        if one.open.any():
            for other in found[at + 1 :]:
                one.share(other)
    return [Coverage(each.covered, each.open) for each in found]


def is_clockwise(corners: Sequence[WindowVertex]) -> bool | None:
    """Whether the vertices turn clockwise as they are seen; None for a triangle without an area."""
    area = _doubled_area(corners)
    return None if not area else area > 0


def _doubled_area(corners: Sequence[WindowVertex]) -> float:
    (a, b, c) = corners
    return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x)


def _grid(area: Area) -> tuple[Floats, Floats]:
    x, y, width, height = area
    rows, columns = np.mgrid[y : y + height, x : x + width].astype(np.float64)
    return columns, rows


class _Triangle:
    """For each pixel of an area, on which side of each edge its samples lie."""

    def __init__(self, corners: Sequence[WindowVertex], area: Area, samples: int) -> None:
        turned = corners if _doubled_area(corners) > 0 else corners[::-1]
        x, y = _grid(area)
        self._edges = [(turned[at][:2], turned[(at + 1) % 3][:2]) for at in range(3)]
        exact = all(each.on_grid for each in corners)
        sides = [_side(edge, x, y, samples, exact) for edge in self._edges]
        inside = np.stack([side[0] for side in sides])
        outside: Mask = np.asarray(np.stack([side[1] for side in sides]).any(axis=0))
        if not _doubled_area(corners):
            outside = np.ones_like(inside[0])
        self.covered: Mask = np.asarray(inside.all(axis=0) & ~outside)
        self.open: Mask = ~self.covered & ~outside
        alone = (~inside).sum(axis=0) == 1
        self._only: list[Mask] = [self.open & alone & ~inside[at] for at in range(3)]

    def share(self, other: _Triangle) -> None:
        """Gives this triangle what both cover together at an edge that they share."""
        for at, (begin, end) in enumerate(self._edges):
            for there, edge in enumerate(other._edges):
                if edge == (end, begin):
                    both = self._only[at] & other._only[there] & self.open & other.open
                    self.covered |= both
                    self.open &= ~both
                    other.open &= ~both


def _side(
    edge: tuple[tuple[float, ...], tuple[float, ...]], x: Floats, y: Floats, samples: int, exact: bool
) -> tuple[Mask, Mask]:
    """The pixels of which all samples are inside of an edge, and those of which all are outside."""
    (ax, ay), (bx, by) = edge
    dx, dy = bx - ax, by - ay
    centre = dx * (y + 0.5 - ay) - dy * (x + 0.5 - ax)
    reach = 0.0 if samples == 1 else (abs(dx) + abs(dy)) / 2
    margin = 0.0 if exact else MARGIN * float(np.hypot(dx, dy))
    if samples == 1:
        return centre > margin, centre < -margin
    return centre - reach >= margin, centre + reach <= -margin
