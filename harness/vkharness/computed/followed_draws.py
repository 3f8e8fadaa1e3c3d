"""Results of draws: their vertex and fragment shaders are executed, and their primitives are rasterized.

Followed are points and triangles whose vertices are not divided by w, with the fixed state that `draw_state` and
`fragment_targets` know. What may be written, and is not certain, becomes unknown. `UserError` says why a draw is not
followed at all; nothing is changed then.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vkharness.computed.attachment_texels import area_texels
from vkharness.computed.covered_pixels import (
    Coverage,
    WindowVertex,
    covered_by_points,
    covered_by_triangles,
    is_clockwise,
    window_vertex,
)
from vkharness.computed.draw_state import DrawStates, FixedState
from vkharness.computed.drawn_vertices import attributes, draws_of, vertex_numbers
from vkharness.computed.executed_shaders import BoundShaderResources, keep_written
from vkharness.computed.followed_transfers import KnownContents
from vkharness.computed.fragment_targets import ColorTarget, FragmentTargets, TexelPlane
from vkharness.computed.known_cells import Bytes, Cells, Mask
from vkharness.computed.render_pass_instances import RenderingInstance
from vkharness.findings import UserError
from vkharness.replay.observation.shader_bindings import Bound
from vkharness.shader.execution.float_bits import InexactBits, from_bits, settled
from vkharness.shader.execution.stage_invocations import Bits, StageInvocations, StageSlot
from vkharness.shader.opcodes import ExecutionMode
from vkharness.spec.enums import VkCullMode, VkPrimitiveTopology, VkShaderStage
from vkharness.spec.formats import Format
from vkharness.trace.calls import Call
from vkharness.trace.rendering_state import Area, Attachment
from vkharness.trace.resources import Stage

POSITION, POINT_SIZE = StageSlot(True, 0), StageSlot(True, 1)
FRAG_COORD, FRAG_DEPTH = StageSlot(True, 15), StageSlot(True, 22)
VERTEX_INDEX, INSTANCE_INDEX, VIEW_INDEX = StageSlot(True, 42), StageSlot(True, 43), StageSlot(True, 4440)
UNIT_SIZE: Bits = (0x3F800000,)
MOST_INSTRUCTIONS = 1 << 20
"""Of all invocations of one stage of a draw."""
MOST_PIXELS = 1 << 14
"""Of the area of one layer in which a draw may write."""
MOST_PRIMITIVES = 1 << 8
Vertex = Mapping[StageSlot, Bits]
Order = Callable[[Sequence[int]], Sequence[int]]


class PlacedPrimitive(NamedTuple):
    """A point or a triangle: the outputs of its vertices, and where these lie."""

    vertices: tuple[Vertex, ...]
    corners: tuple[WindowVertex, ...]


class FollowedDraws:
    """Follows draws inside of render pass instances."""

    def __init__(self, contents: KnownContents, states: DrawStates) -> None:
        self._contents, self._states = contents, states

    def follow(
        self, call: Call, bound: Bound | None, now: RenderingInstance, format_of: Callable[[Attachment], Format | None]
    ) -> None:
        """Follows one draw with what was `bound` when it was recorded."""
        if bound is None or bound.reason or bound.late or now.unfollowed:
            raise UserError("what it is executed with is not known")
        stages = {each.stage: each for each in bound.stages}
        if VkShaderStage.VERTEX not in stages or len(stages) != len(stages.keys() & {1, 16}):
            raise UserError("its stages are not followed")
        fixed = self._states.fixed()
        run = _Draw(self._contents, bound, stages, fixed, now)
        resources = BoundShaderResources(self._contents, bound)
        outputs = run.stage(VkShaderStage.VERTEX, resources).captured if self._states.current.feedback.active else []
        if outputs and fixed.topology != VkPrimitiveTopology.POINT_LIST:
            raise UserError("transform feedback of others than points is not followed")
        views = list(now.layers) if now.has_views else [0]
        captured: list[Vertex] = []
        drawn = {view: list(self._primitives(call, run, resources, view, list, captured)) for view in views}
        last = resources
        if resources.has_written:
            if VkShaderStage.FRAGMENT in stages and not fixed.discard and not run.shader_alone:
                raise UserError("shaders that write memory in one stage and reach it in another are not followed")
            last = BoundShaderResources(self._contents, bound)
            for view in views:
                list(self._primitives(call, run, last, view, _backwards, []))
        if not fixed.discard:
            self._rasterize(run, drawn, format_of)
        keep_written(self._contents, resources, last)
        if self._states.current.feedback.active:
            self._states.current.feedback.capture(self._contents, captured, outputs)

    def _primitives(
        self, call: Call, run: _Draw, resources: BoundShaderResources, view: int, order: Order, vertices: list[Vertex]
    ) -> Iterator[PlacedPrimitive]:
        """The primitives of a draw, whose vertices are shaded in an order; `vertices` get all of them."""
        shader = run.stage(VkShaderStage.VERTEX, resources)
        if shader.has_atomics:
            raise UserError("atomics in vertices are not followed, which may be shaded more than once")
        draws, indexed = draws_of(self._contents, call)
        for draw in draws:
            numbers = vertex_numbers(self._contents, self._states.current, draw, indexed)
            for instance in order(range(draw.instances)):
                shaded: dict[int, Vertex] = {}
                for number in order(list(dict.fromkeys(numbers))):
                    where = (draw.first_instance, instance)
                    inputs = attributes(self._contents, self._states.current, run.fixed, number, where)
                    inputs |= {VERTEX_INDEX: (number,), INSTANCE_INDEX: (sum(where),), VIEW_INDEX: (view,)}
                    shaded[number] = shader.run(inputs)
                vertices += [shaded[number] for number in numbers]
                if not run.fixed.discard:
                    yield from _assembled([shaded[number] for number in numbers], run.fixed)

    def _rasterize(
        self,
        run: _Draw,
        drawn: Mapping[int, Sequence[PlacedPrimitive]],
        format_of: Callable[[Attachment], Format | None],
    ) -> None:
        targets = {view: self._targets(run, view, format_of) for view in drawn}
        before = [(cells, cells.data.copy(), cells.known.copy()) for cells in _cells(targets.values())]
        try:
            first = last = self._shade(run, drawn, targets, list)
            if first.has_written:
                after = [(cells, cells.data.copy(), cells.known.copy()) for cells, _, _ in before]
                _restore(before)
                last = self._shade(run, drawn, targets, _backwards)
                _restore(after)
        except UserError:
            _restore(before)
            raise
        keep_written(self._contents, first, last)

    def _targets(self, run: _Draw, view: int, format_of: Callable[[Attachment], Format | None]) -> FragmentTargets:
        now, colors = run.now, {}
        for location, attachment in enumerate(now.colors):
            blend = run.fixed.blends[location] if location < len(run.fixed.blends) else None
            plane = self._plane(run, attachment, view)
            if attachment is not None and plane is not None and blend is not None:
                colors[location] = ColorTarget(plane, format_of(attachment), blend)
        depth, stencil = self._plane(run, now.depth, view), self._plane(run, now.stencil, view)
        return FragmentTargets(run.fixed, colors, depth, stencil, self._contents.doubts)

    def _plane(self, run: _Draw, attachment: Attachment | None, view: int) -> TexelPlane | None:
        if attachment is None:
            return None
        found = list(area_texels(self._contents, attachment, (view,), run.now.area))
        if len(found) != 1:
            raise UserError("an attachment is not followed")
        aspect, cells, box = found[0]
        return TexelPlane(cells, box[0].start, (attachment.image.id, aspect) not in run.now.undefined)

    def _shade(
        self,
        run: _Draw,
        drawn: Mapping[int, Sequence[PlacedPrimitive]],
        targets: Mapping[int, FragmentTargets],
        order: Order,
    ) -> BoundShaderResources:
        """Shades all fragments in an order."""
        resources = BoundShaderResources(self._contents, run.bound)
        shader = run.stage(VkShaderStage.FRAGMENT, resources) if VkShaderStage.FRAGMENT in run.stages else None
        for view, primitives in drawn.items():
            area = run.area(targets[view])
            found = _coverage(primitives, area, run.fixed.samples)
            fragments = _Fragments(run, shader, targets[view], area, view)
            shown = [at for at, each in enumerate(primitives) if not run.is_culled(each)]
            several = np.sum([found[at].covered for at in shown], axis=0) if shown else np.zeros(1)
            if fragments.are_read and several.max(initial=0) > 1:
                raise UserError("fragments that read what others of the draw have written are not followed")
            for at in order(shown):
                fragments.shade(primitives[at], found[at], order)
        return resources


@dataclass(frozen=True, slots=True)
class _Draw:
    """One draw: what it is executed with."""

    contents: KnownContents
    bound: Bound
    stages: Mapping[int, Stage]
    fixed: FixedState
    now: RenderingInstance

    def stage(self, which: int, resources: BoundShaderResources) -> StageInvocations:
        """A stage of the pipeline, ready to be executed."""
        held = self.stages[which]
        limit = self.contents.instructions.part(MOST_INSTRUCTIONS)
        return StageInvocations(held.code, held.entry, which, resources, held.specialization, limit)

    @property
    def shader_alone(self) -> bool:
        """Whether the fragment shader reaches no memory."""
        resources = BoundShaderResources(self.contents, self.bound)
        return self.stage(VkShaderStage.FRAGMENT, resources).depends_on_inputs_alone

    def is_culled(self, primitive: PlacedPrimitive) -> bool:
        """Whether no fragment is made of a triangle because of its face, or because it has no area."""
        if len(primitive.corners) != 3:
            return False
        return is_clockwise(primitive.corners) is None or bool(
            self.fixed.cull & (VkCullMode.FRONT if self.is_front(primitive) else VkCullMode.BACK)
        )

    def is_front(self, primitive: PlacedPrimitive) -> bool:
        """Whether a primitive shows its front face."""
        if len(primitive.corners) != 3:
            return True
        return bool(is_clockwise(primitive.corners)) == bool(self.fixed.front_face)

    def area(self, targets: FragmentTargets) -> Area:
        """The part of the render area in which fragments may be: inside of scissor and viewport."""
        viewport, clip = self.fixed.viewport, self.fixed.scissor
        x, y, width, height = viewport["x"], viewport["y"], viewport["width"], viewport["height"]
        if not all(float(each).is_integer() for each in (x, y, width, height)):
            raise UserError("a viewport that ends inside of pixels is not followed")
        begin, extent = clip["offset"], clip["extent"]
        boxes = [
            (self.now.area[0], self.now.area[1], self.now.area[2], self.now.area[3]),
            (begin["x"], begin["y"], extent["width"], extent["height"]),
            (int(x), int(min(y, y + height)), int(width), int(abs(height))),
        ]
        planes = [*(each.plane for each in targets.colors.values()), targets.depth, targets.stencil]
        boxes += [(0, 0, each.cells.known.shape[2], each.cells.known.shape[1]) for each in planes if each is not None]
        left, top = max(box[0] for box in boxes), max(box[1] for box in boxes)
        right, bottom = min(box[0] + box[2] for box in boxes), min(box[1] + box[3] for box in boxes)
        found = (left, top, max(0, right - left), max(0, bottom - top))
        if found[2] * found[3] > MOST_PIXELS:
            raise UserError(f"more than {MOST_PIXELS} pixels are not followed")
        return found


class _Fragments:
    """The fragments of one layer of a draw."""

    def __init__(
        self, run: _Draw, shader: StageInvocations | None, targets: FragmentTargets, area: Area, view: int
    ) -> None:
        self._run, self._shader, self._targets, self._area, self._view = run, shader, targets, area, view
        self._early = shader is not None and ExecutionMode.EarlyFragmentTests in shader.modes
        self._same: dict[tuple[Bits | None, ...], Vertex] = {}
        self._stores = shader is not None and shader.may_store
        self._repeats = shader is not None and shader.repeats

    @property
    def are_read(self) -> bool:
        """Whether fragments may read what others have written."""
        return self._shader is not None and not self._shader.depends_on_inputs_alone

    def shade(self, primitive: PlacedPrimitive, coverage: Coverage, order: Order) -> None:
        """Shades the pixels of a primitive in an order, and writes what comes of it."""
        left, top = self._area[:2]
        if self._stores and coverage.open.any():
            raise UserError("a shader that stores, of which it is open where it is executed, is not followed")
        front = self._run.is_front(primitive)
        varying = _constant(primitive.vertices)
        z = _depth(primitive.corners)
        if coverage.open.any():
            self._run.contents.doubts["whether a primitive covers a pixel at its edge is left open"] = None
        for row, column in zip(*coverage.open.nonzero(), strict=True):
            self._targets.forget(left + int(column), top + int(row))
        pixels = [(left + int(column), top + int(row)) for row, column in zip(*coverage.covered.nonzero(), strict=True)]
        for at in order(range(len(pixels))):
            self._fragment(*pixels[at], z, varying, front)

    def _fragment(self, x: int, y: int, z: int, varying: Vertex, front: bool) -> None:
        exact = None if isinstance(z, InexactBits) else float(from_bits(z, 32))
        if self._shader is None:
            if self._targets.test(x, y, exact, front) is not False:
                self._targets.write(x, y, None)
            return
        if self._early:
            passed = self._targets.test(x, y, exact, front)
            if passed is None and self._stores:
                raise UserError("whether a fragment that stores passes its tests is not known")
            outputs = None if passed is False else self._outputs(x, y, z, varying)
        else:
            outputs = self._outputs(x, y, z, varying)
            if outputs is not None and FRAG_DEPTH in outputs:
                exact = float(from_bits(settled(outputs[FRAG_DEPTH][0]), 32))
            elif outputs is None and self._shader.writes_depth:
                exact = None
            passed = self._targets.test(x, y, exact, front)
        if passed is not False:
            colors = {slot.number: value for slot, value in (outputs or {}).items() if not slot.is_built_in}
            self._targets.write(x, y, None if passed is None or outputs is None else colors)

    def _outputs(self, x: int, y: int, z: int, varying: Vertex) -> Vertex | None:
        """Runs the shader for one fragment and returns its outputs; None where they are not known."""
        shader = self._shader
        assert shader is not None, "asked before"
        inputs = {**varying, VIEW_INDEX: (self._view,), FRAG_COORD: (_bits(x + 0.5), _bits(y + 0.5), z, _bits(1.0))}
        key = tuple(inputs.get(slot) for slot in shader.inputs.values())
        if self._repeats and key in self._same:
            return self._same[key]
        try:
            found = self._same[key] = shader.run(inputs, (x, y))
        except UserError as error:
            if self._stores:
                raise
            self._run.contents.doubts[str(error)] = None
            return None
        return found


def _backwards(several: Sequence[int]) -> Sequence[int]:
    return several[::-1]


def _bits(number: float) -> int:
    return int.from_bytes(struct.pack("<f", number), "little")


def _depth(corners: Sequence[WindowVertex]) -> int:
    """The bits of the depth of a primitive: `InexactBits` where it differs from fragment to fragment."""
    first = corners[0].z
    if first is not None and all(each.z == first for each in corners):
        bits = _bits(first)
        if from_bits(bits, 32) == first:
            return bits
    return InexactBits.of(_bits(0.5), 0.5, "the depth of a fragment is not exact")


def _constant(vertices: Sequence[Vertex]) -> Vertex:
    """The outputs by location that are the same at all vertices, so that nothing is interpolated."""
    return {
        slot: value
        for slot, value in vertices[0].items()
        if not slot.is_built_in
        and all(each.get(slot) == value for each in vertices)
        and not any(isinstance(bits, InexactBits) for bits in value)
    }


def _assembled(vertices: Sequence[Vertex], fixed: FixedState) -> Iterator[PlacedPrimitive]:
    """Primitives of one instance ("PlacedPrimitive Topologies"). Raises `UserError` for those that are not followed."""
    for each in vertices:
        if POSITION not in each or any(slot.is_built_in and slot not in (POSITION, POINT_SIZE) for slot in each):
            raise UserError("a vertex without a position, or with further built-in outputs, is not followed")
    count = len(vertices)
    if fixed.topology == VkPrimitiveTopology.POINT_LIST:
        groups: list[tuple[int, ...]] = [(at,) for at in range(count)]
    elif fixed.topology == VkPrimitiveTopology.TRIANGLE_LIST:
        groups = [(at, at + 1, at + 2) for at in range(0, count - 2, 3)]
    elif fixed.topology == VkPrimitiveTopology.TRIANGLE_STRIP:
        groups = [(at, at + 1 + at % 2, at + 2 - at % 2) for at in range(count - 2)]
    elif fixed.topology == VkPrimitiveTopology.TRIANGLE_FAN:
        groups = [(at + 1, at + 2, 0) for at in range(count - 2)]
    else:
        raise UserError("lines are not followed")
    if len(groups) > MOST_PRIMITIVES:
        raise UserError(f"more than {MOST_PRIMITIVES} primitives are not followed")
    placed = [window_vertex(each[POSITION], fixed.viewport) for each in vertices]
    for group in groups:
        yield PlacedPrimitive(tuple(vertices[at] for at in group), tuple(placed[at] for at in group))


def _coverage(primitives: Sequence[PlacedPrimitive], area: Area, samples: int) -> list[Coverage]:
    if primitives and len(primitives[0].corners) == 3:
        triangles = [(each.corners[0], each.corners[1], each.corners[2]) for each in primitives]
        return covered_by_triangles(triangles, area, samples)
    sizes = [settled(each.vertices[0].get(POINT_SIZE, UNIT_SIZE)[0]) for each in primitives]
    points = [(each.corners[0], float(from_bits(size, 32))) for each, size in zip(primitives, sizes, strict=True)]
    return covered_by_points(points, area, samples)


def _cells(several: Iterable[FragmentTargets]) -> list[Cells]:
    """All texels that draws may write, each once."""
    found: dict[int, Cells] = {}
    for each in several:
        for plane in (*(color.plane for color in each.colors.values()), each.depth, each.stencil):
            if plane is not None:
                found[id(plane.cells)] = plane.cells
    return list(found.values())


def _restore(several: Sequence[tuple[Cells, Bytes, Mask]]) -> None:
    for cells, data, known in several:
        cells.data[...] = data
        cells.known[...] = known
