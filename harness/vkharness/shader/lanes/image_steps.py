"""Instructions on images, executed for many invocations at once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from vkharness.shader.lanes.integer_operations import signed
from vkharness.shader.lanes.lane_steps import LaneSteps
from vkharness.shader.lanes.lane_values import LaneState
from vkharness.shader.lanes.needed_code import SAMPLES
from vkharness.shader.lanes.pointed_places import ImageHandle, PointedPlace, Texel
from vkharness.shader.lanes.reached_places import Partly, texel_numbers
from vkharness.shader.opcodes import Op
from vkharness.shader.types import Type

ONE, TWO, THREE, CUBE, BUFFER = 0, 1, 2, 3, 5
"""Dim of an image type (SPIR-V specification, section 3.8)."""
BIAS, LOD, GRAD, CONST_OFFSET, OFFSET, CONST_OFFSETS = 0x1, 0x2, 0x4, 0x8, 0x10, 0x20
"""Image operands (section 3.14), in the order in which their ids follow."""
EXPLICIT = frozenset({Op.ImageSampleExplicitLod, 90, 92, 94})
"""Samples whose level of detail is given; 90 and 94 compare, 92 and 94 divide."""
DIVIDED = range(91, 95)
"""Samples at projected coordinates."""
COMPARED = frozenset({89, 90, 93, 94, 97})
"""Samples and gathers with a reference after the coordinates."""
GATHERS = frozenset({96, 97})
COORDINATE_BITS = 32


class ImageSteps(LaneSteps):
    """An execution that follows images, too."""

    def _step(self, op: int, operands: tuple[int, ...], state: LaneState) -> None:
        if op == Op.ImageWrite:
            self._texel(operands[0], operands[1], operands[3:], state)
        elif op in (Op.ImageFetch, Op.ImageRead):
            self._texel(operands[2], operands[3], operands[4:], state)
        elif op in SAMPLES:
            self._sample(op, operands, state)
        else:
            super()._step(op, operands, state)

    def _result(self, op: int, operands: tuple[int, ...], state: LaneState) -> Any:
        if op in (Op.SampledImage, Op.Image):
            return self._get(state, operands[2])
        if op == Op.ImageTexelPointer:
            place = self._get(state, operands[2])
            image = ImageHandle(place.variable, place.element) if isinstance(place, PointedPlace) else None
            return Texel(image, self._get(state, operands[3]))
        if op in (Op.ImageQuerySize, Op.ImageQuerySizeLod):
            return self._size(op, operands, state)
        return super()._result(op, operands, state)

    def _image_type(self, image: ImageHandle) -> Type:
        type = self._types[self._code.variables[image.variable].type]
        while type.op in (Op.TypeArray, Op.TypeRuntimeArray):
            type = self._types[type.element]
        return type

    def _size(self, op: int, operands: tuple[int, ...], state: LaneState) -> Any:
        image, type = self._get(state, operands[2]), self._types[operands[0]]
        level = self._get(state, operands[3]) if op == Op.ImageQuerySizeLod else 0
        if not isinstance(image, ImageHandle) or not isinstance(image.element, int) or not isinstance(level, int):
            return None
        where, of = self._code.places.get(image.variable), self._image_type(image)
        found = None if where is None else self._inputs.size(*where, image.element, level)
        if found is None or of.dim == BUFFER:
            return None
        width, height, third = found
        parts: tuple[Any, ...] = (width,) if of.dim == ONE else (width, height)
        if of.dim == THREE:
            parts += (third,)
        elif of.arrayed:
            parts += (third // 6 if of.dim == CUBE else third,)
        count = type.count or 1
        return None if len(parts) != count else parts if type.op == Op.TypeVector else parts[0]

    def _texel(self, image: int, coordinates: int, rest: tuple[int, ...], state: LaneState) -> None:
        """A texel at integers."""
        mask, ids = (rest[0], list(rest[1:])) if rest else (0, [])
        level: Any = 0
        if mask & LOD:
            level = self._get(state, ids.pop(0)) if ids and not mask & BIAS else None
        place = self._get(state, coordinates)
        if mask & (GRAD | CONST_OFFSETS | BIAS):
            place = None
        elif mask & (CONST_OFFSET | OFFSET):
            place = self._moved(place, self._get(state, ids.pop(0)) if ids else None)
        self._reach_at(self._get(state, image), place, level)

    def _moved(self, place: Any, by: Any) -> Any:
        """Coordinates with an offset, which the layer does not have."""
        if place is None or by is None:
            return None
        own, more = (each if isinstance(each, tuple) else (each,) for each in (place, by))
        made = tuple(
            None if one is None or two is None else (one + two) & (1 << COORDINATE_BITS) - 1
            for one, two in zip(own, more, strict=False)
        )
        return (*made, *own[len(made) :])

    def _reach_texel(self, texel: Texel) -> None:
        self._reach_at(texel.image, texel.coordinates, 0)

    def _reach_at(self, image: Any, coordinates: Any, level: Any) -> None:
        if not isinstance(image, ImageHandle):
            self._reach_unknown()
            return
        type, gathered = self._image_type(image), self._at(image.variable)
        parts = [_whole(each) for each in (coordinates if isinstance(coordinates, tuple) else (coordinates,))]
        x, y, layer = _axes(type, parts)
        level = None if isinstance(level, float | tuple) else _whole(level)
        if image.element is None:
            gathered.unknown = True
        elif all(each is not None for each in (x, y, layer, level)):
            elements = image.element
            if not isinstance(elements, int):
                gathered.unknown = True  # of which descriptors, `reach` tells
                return
            gathered.texels.setdefault((elements, self._sure), []).append(np.unique(texel_numbers(x, y, layer, level)))
        else:
            self._partly(image, level, layer)

    def _partly(self, image: ImageHandle, *subresource: Any) -> None:
        """Texels that are not known of a level and a layer."""
        gathered = self._at(image.variable)
        if not isinstance(image.element, int):
            gathered.unknown = True
            return
        level, layer = subresource
        choices = [
            [each] if each is None or isinstance(each, int) else np.unique(each).tolist() for each in (level, layer)
        ]
        found = gathered.partly.setdefault(image.element, set())
        found.update(Partly(one, two) for one in choices[0][:65] for two in choices[1][:65])

    def _sample(self, op: int, operands: tuple[int, ...], state: LaneState) -> None:
        """A sample or gather at floats: which layer and mip levels it may read."""
        image, place = self._get(state, operands[2]), self._get(state, operands[3])
        state.values[operands[1]] = None
        if not isinstance(image, ImageHandle):
            self._reach_unknown()
            return
        rest = operands[5 if op in COMPARED or op in GATHERS else 4 :]
        type, lod = self._image_type(image), None
        if op in EXPLICIT and rest and rest[0] & LOD and len(rest) > 1:
            lod = self._get(state, rest[1])
        layer = None
        if type.arrayed and op not in DIVIDED and isinstance(place, tuple) and type.dim in (ONE, TWO):
            at = 1 if type.dim == ONE else 2
            number = place[at] if len(place) > at else None
            layer = _nearest(number) if isinstance(number, float) else None
        elif not type.arrayed and type.dim in (ONE, TWO):
            layer = 0
        self._sampled(image, layer, lod)

    def _sampled(self, image: ImageHandle, layer: int | None, lod: Any) -> None:
        """Adds an access of the mip levels that samplers may choose for a level of detail (`Inputs.levels`)."""
        levels = self._inputs.levels(lod) if isinstance(lod, float) else (None,)
        for level in levels:
            self._partly(image, level, layer)


def _axes(type: Type, parts: list[Any]) -> tuple[Any, Any, Any]:
    """(x, y, layer or slice) of integer coordinates; None where they are not known."""
    parts += [None] * (3 - len(parts))
    if type.dim == ONE:
        return parts[0], 0, parts[1] if type.arrayed else 0
    if type.dim in (THREE, CUBE) or type.arrayed:
        return parts[0], parts[1], parts[2]
    return parts[0], (0 if type.dim == BUFFER else parts[1]), 0


def _whole(value: Any) -> Any:
    """An integer coordinate as a signed number."""
    return None if value is None or isinstance(value, float) else signed(value, COORDINATE_BITS)


def _nearest(number: float) -> int | None:
    """The layer of a coordinate: RNE(number), which is not below 0 ("(u,v,w,a) to (i,j,k,l,n) Transformation")."""
    return max(0, min(round(number), 1 << 14)) if math.isfinite(number) else None
