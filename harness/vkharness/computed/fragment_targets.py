"""Operations of fragments on attachments: depth and stencil tests, colour writes ("Fragment Operations", "Blending").

A value that is not known makes unknown what depends on it, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from vkharness.computed.draw_state import FixedState
from vkharness.computed.known_cells import Cells
from vkharness.computed.texel_values import CHANNELS, stored_components, texel_value
from vkharness.findings import UserError
from vkharness.spec.enums import VkBlendFactor, VkBlendOp, VkCompareOp, VkImageAspect, VkStencilOp
from vkharness.spec.formats import Format

Number = float | int
COMPARISONS: dict[int, Callable[[Number, Number], bool]] = {
    VkCompareOp.LESS: lambda new, old: new < old,
    VkCompareOp.EQUAL: lambda new, old: new == old,
    VkCompareOp.LESS_OR_EQUAL: lambda new, old: new <= old,
    VkCompareOp.GREATER: lambda new, old: new > old,
    VkCompareOp.NOT_EQUAL: lambda new, old: new != old,
    VkCompareOp.GREATER_OR_EQUAL: lambda new, old: new >= old,
}
STENCIL_BITS = 0xFF
NEAR = 1e-3
"""How far from a value of a 16-bit depth, in its steps, a depth is taken for it."""
FACTORS = (VkBlendFactor.ZERO, VkBlendFactor.ONE)
MOST_OF_BYTE = 0xFF


class TexelPlane(NamedTuple):
    """One layer of one aspect of an attachment."""

    cells: Cells
    z: int
    readable: bool
    """Whether its contents are defined inside of the render pass instance."""

    def known(self, x: int, y: int) -> bool:
        """Whether a texel is known."""
        return self.readable and bool(self.cells.known[self.z, y, x])

    def texel(self, x: int, y: int) -> bytes:
        """The bytes of a texel."""
        data: bytes = self.cells.data[self.z, y, x].tobytes()
        return data

    def put(self, x: int, y: int, data: bytes | None) -> None:
        """Replaces a texel; None for what is not known."""
        self.cells.known[self.z, y, x] = data is not None
        if data is not None:
            self.cells.data[self.z, y, x] = np.frombuffer(data, np.uint8)


class ColorTarget(NamedTuple):
    """A colour attachment of a draw; `format` is None where it is not known."""

    plane: TexelPlane
    format: Format | None
    blend: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class FragmentTargets:
    """The attachments of one layer that a draw reads and writes, with its fixed state."""

    fixed: FixedState
    colors: Mapping[int, ColorTarget]
    depth: TexelPlane | None
    stencil: TexelPlane | None
    doubts: dict[str, None] = field(default_factory=dict)
    """Why colours are not known, each reason once."""

    def test(self, x: int, y: int, z: float | None, is_front: bool) -> bool | None:
        """The stencil and the depth test of one fragment, and what they write; None where the outcome is not known.
        `z` is its depth, None where that is not exact."""
        stencil = self.stencil if self.fixed.stencil_test else None
        face = self.fixed.faces[0 if is_front else 1]
        passed = self._stencil_passes(stencil, x, y, face)
        deep = self._depth_passes(x, y, z)
        both = None if passed is None or deep is None else passed and deep
        if passed is False or deep is False:
            both = False
        if stencil is not None:
            operation = None
            if passed is False:
                operation = face["failOp"]
            elif passed and deep is not None:
                operation = face["passOp"] if deep else face["depthFailOp"]
            _stencil_write(stencil, x, y, face, operation)
        if self.depth is not None and self.fixed.depth_test and self.fixed.depth_write and both is not False:
            self.depth.put(x, y, _depth_bytes(self.depth, z) if both else None)
        return both

    def _stencil_passes(self, stencil: TexelPlane | None, x: int, y: int, face: Mapping[str, int]) -> bool | None:
        if stencil is None:
            return True
        mask = face["compareMask"] & STENCIL_BITS
        stored = stencil.texel(x, y)[0] & mask if stencil.known(x, y) else None
        return _compared(face["compareOp"], face["reference"] & mask, stored)

    def _depth_passes(self, x: int, y: int, z: float | None) -> bool | None:
        if self.depth is None or not self.fixed.depth_test:
            return True
        new = _depth_bytes(self.depth, z)
        if not self.depth.known(x, y) or new is None:
            return _compared(self.fixed.depth_compare, 0, None)
        return _compared(self.fixed.depth_compare, _depth_of(new), _depth_of(self.depth.texel(x, y)))

    def write(self, x: int, y: int, outputs: Mapping[int, Sequence[int]] | None) -> None:
        """Writes the colours of a fragment by location; None where they, or whether it is written, are not known."""
        for location, target in self.colors.items():
            mask = target.blend["colorWriteMask"]
            if mask:
                value = None if outputs is None else outputs.get(location)
                target.plane.put(x, y, None if value is None else self._color(target, mask, (x, y), value))

    def _color(self, target: ColorTarget, mask: int, at: tuple[int, int], value: Sequence[int]) -> bytes | None:
        try:
            return _color(target, mask, *at, value)
        except UserError as error:
            self.doubts[str(error)] = None
            return None

    def forget(self, x: int, y: int) -> None:
        """A fragment that may be there or not."""
        self.write(x, y, None)
        if self.depth is not None and self.fixed.depth_test and self.fixed.depth_write:
            self.depth.put(x, y, None)
        if self.stencil is not None and self.fixed.stencil_test:
            self.stencil.put(x, y, None)


def _compared(operation: int, new: Number, old: Number | None) -> bool | None:
    if operation in (VkCompareOp.NEVER, VkCompareOp.ALWAYS):
        return operation == VkCompareOp.ALWAYS
    return None if old is None else COMPARISONS[operation](new, old)


def _stencil_write(stencil: TexelPlane, x: int, y: int, face: Mapping[str, int], operation: int | None) -> None:
    """Performs an operation; None for one that is not known."""
    mask = face["writeMask"] & STENCIL_BITS
    if not mask or operation == VkStencilOp.KEEP:
        return
    stored = stencil.texel(x, y)[0] if stencil.known(x, y) else None
    reference = face["reference"] & STENCIL_BITS
    if operation in (VkStencilOp.ZERO, VkStencilOp.REPLACE) and mask == STENCIL_BITS:
        stored = stored or 0
    if stored is None or operation is None:
        stencil.put(x, y, None)
        return
    made = {
        VkStencilOp.ZERO: 0,
        VkStencilOp.REPLACE: reference,
        VkStencilOp.INCREMENT_AND_CLAMP: min(stored + 1, STENCIL_BITS),
        VkStencilOp.DECREMENT_AND_CLAMP: max(stored - 1, 0),
        VkStencilOp.INVERT: ~stored & STENCIL_BITS,
        VkStencilOp.INCREMENT_AND_WRAP: stored + 1 & STENCIL_BITS,
        VkStencilOp.DECREMENT_AND_WRAP: stored - 1 & STENCIL_BITS,
    }[operation]
    stencil.put(x, y, bytes([stored & ~mask | made & mask]))


def _depth_bytes(plane: TexelPlane, z: float | None) -> bytes | None:
    """A depth in the format of the attachment; None where it is not exact."""
    if z is None:
        return None
    if plane.cells.data.shape[-1] == 2:
        steps = min(max(z, 0.0), 1.0) * 0xFFFF
        return round(steps).to_bytes(2, "little") if abs(steps - round(steps)) <= NEAR else None
    made = np.array([z], np.float32)
    return made.tobytes() if float(made[0]) == z else None


def _depth_of(data: bytes) -> Number:
    if len(data) == 2:
        return int.from_bytes(data, "little")
    return float(np.frombuffer(data, np.float32)[0])


def _color(target: ColorTarget, mask: int, x: int, y: int, value: Sequence[int]) -> bytes:
    """The bytes of a texel after a fragment wrote it. Raises `UserError` where they are not known."""
    if target.format is None:
        raise UserError("the format of an attachment is not known")
    known, held = target.plane.known(x, y), target.plane.texel(x, y)
    missing = texel_value(target.format, VkImageAspect.COLOR, held)[len(value) :] if len(value) < len(CHANNELS) else ()
    parts = stored_components(target.format, [*value, *missing])
    made, at = b"", 0
    for channel, data in parts:
        old = held[at : at + len(data)]
        at += len(data)
        if not mask >> CHANNELS.index(channel) & 1:
            if not known:
                raise UserError("a component that is kept is not known")
            made += old
        else:
            made += _blended(target, channel, data, old, known) if target.blend["blendEnable"] else data
    return made


def _blended(target: ColorTarget, channel: str, new: bytes, old: bytes, known: bool) -> bytes:
    """One component: a sum of source and destination, each whole or not at all, of normalized bytes. Raises
    `UserError` for others."""
    part = "Alpha" if channel == "A" else "Color"
    source, destination = target.blend[f"src{part}BlendFactor"], target.blend[f"dst{part}BlendFactor"]
    operation = target.blend["alphaBlendOp" if channel == "A" else "colorBlendOp"]
    is_bytes = target.format is not None and target.format.name.endswith("8_UNORM") and len(new) == 1
    if operation != VkBlendOp.ADD or source not in FACTORS or destination not in FACTORS or not is_bytes:
        raise UserError("blending of this sort is not followed")
    if destination and not known:
        raise UserError("a component that is blended with is not known")
    return bytes([min(MOST_OF_BYTE, (new[0] if source else 0) + (old[0] if destination else 0))])
