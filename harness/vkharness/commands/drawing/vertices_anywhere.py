"""Effects of draws that read vertices which may lie anywhere.

A program that streams binds its vertex buffers at another offset for each draw. What such a draw reads lies as far
behind the offset as before. So the reads are held as bytes from there (`ReachedAnywhere`), where no end of a buffer
clips them, and no two bindings read one buffer, whose reads are one access.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile

from vkharness.commands.drawing.plans_by_sets import VERTICES, Drawn
from vkharness.commands.drawing.set_contents import VERTICES_PLACE, contents_of, least_bytes
from vkharness.commands.drawing.shader_memory import MovableAccess, ReachedAnywhere
from vkharness.commands.drawing.vertex import VERTEX_READ
from vkharness.commands.object_state import BoundSet, ObjectState
from vkharness.trace.effects import Access, Effect, EffectPlan

NO_SHADERS = ReachedAnywhere((), (), (), (), 0, None)


def reached_behind_vertices(
    objects: ObjectState, bound: Mapping[int, BoundSet], plan: EffectPlan, used: tuple[int, ...]
) -> ReachedAnywhere | None:
    """Gives the effects of a draw with other vertex buffers, and other sets where its shaders use some. `plan` has its
    effects with those that are `bound`, and `used` the indices of both. None where more decides the effects."""
    vertices = tuple(takewhile(_reads_vertices, plan.effects))
    shaders, behind = NO_SHADERS, plan.effects[len(vertices) :]
    if used and used[0] >= 0:
        drawn: Drawn | None = objects.shaders.drawn
        if drawn is None or drawn.effects != plan.effects or drawn.before != vertices:
            return None
        found = drawn.shaders.reaches.get(drawn.shaders.shapes(objects, bound))
        if found is None or found.before or found.behind:
            return None
        shaders, behind = found, drawn.behind
    reads = _from_offsets(objects, [(index, bound[index]) for index in used if index <= VERTICES], vertices)
    return None if reads is None else shaders.behind_vertices(reads, behind)


def _reads_vertices(effect: Effect) -> bool:
    return isinstance(effect, Access) and effect.access_kind == VERTEX_READ


def _from_offsets(
    objects: ObjectState, bound: Sequence[tuple[int, BoundSet]], vertices: tuple[Effect, ...]
) -> tuple[MovableAccess, ...] | None:
    """Reads of vertices as bytes from the offsets at which the buffers are bound, of which each is read."""
    places, reads = {}, []
    for index, each in bound:
        for memory in contents_of(objects, each.set).memories.values():
            places[memory.resource] = index, memory
    if not len(places) == len(bound) == len(vertices):
        return None
    for read in vertices:
        assert isinstance(read, Access)
        if read.resource not in places:
            return None
        index, memory = places[read.resource]
        begin, end = memory.begin, read.spans[-1][1]
        if read.spans[0][0] < begin or end >= memory.end or end - begin > least_bytes(memory):
            return None
        bytes = tuple([(low - begin, high - begin) for low, high in read.spans])
        reads.append((read.access_kind, (index, VERTICES_PLACE, -1), bytes, read.atomic, read.certainty))
    return tuple(reads)
