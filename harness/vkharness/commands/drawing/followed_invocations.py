"""Memory that the invocations of a dispatch or draw reach, found by executing the code that decides it.

Rules: rules.md#texels-that-a-shader-reaches, rules.md#loops-that-the-dispatch-decides.

Results are kept beside the code of the entry point. A stream that uses one is charged the work that it took, so that
the limit of a stream does not depend on others.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from vkharness.commands.drawing.invocations import Invocations, built_ins
from vkharness.spec.enums import VkShaderStage
from vkharness.trace.work_budget import spare, spend

if TYPE_CHECKING:
    from vkharness.shader.lanes.walk import Walked
    from vkharness.shader.reach import KnownInputs
    from vkharness.shader.reflect import ReflectedEntryPoint

MOST_LANES = 1 << 20
"""The most invocations that are followed one by one."""
MOST_KEPT = 32
"""The most answers that are kept of one entry point."""
STEPS_A_UNIT = 1 << 9
Size = Callable[[int, int, int, int], tuple[int, int, int] | None]
"""(set, binding, element, mip level) -> the extent of a view."""
Levels = Callable[[float], tuple[int | None, ...]]


COMPUTE, VERTEX = VkShaderStage.COMPUTE, VkShaderStage.VERTEX


class Followed(NamedTuple):
    """The memory that an entry point reaches in a dispatch or draw, and the answers on which this depends."""

    walked: Walked | None
    """None where following it was too much work."""
    complete: bool
    """Whether each invocation was followed. Otherwise one stood for all, of which little is known."""
    steps: int
    questions: tuple[tuple[int, tuple[int, ...], Any], ...]
    """(which of the functions was asked, what, the answer): lengths and sizes on which this depends."""


class StageInputs(NamedTuple):
    """The known inputs of one stage of a dispatch or draw."""

    run: Invocations
    known: KnownInputs
    size: Size
    levels: Levels
    samplers: int
    """A number that tells `levels` apart."""


def followed(entry: ReflectedEntryPoint, stage: StageInputs) -> Followed | None:
    """Finds the memory that the invocations of an entry point reach; None where that is not known."""
    code, known, run = entry.code, stage.known, stage.run
    if code is None:
        return None
    shape = (run.groups, run.vertices, run.instances) if entry.stage in (COMPUTE, VERTEX) else ()
    pushed = [known.push(*place) for place in code.pushed]
    key = (shape, stage.samplers, *pushed, *(known.loaded.get(place) for place in entry.loaded))
    several: list[Followed] = code.kept.get(key, [])
    asked = (known.length, stage.size)
    most = spare() * STEPS_A_UNIT
    found = next(
        (one for one in several if all(asked[which](*what) == told for which, what, told in one.questions)), None
    )
    if found is None:
        found = _follow(entry, stage, most)
        if found is not None:
            code.kept[key] = [*several, found][-MOST_KEPT:]
            while len(code.kept) > MOST_KEPT:
                del code.kept[next(iter(code.kept))]
    if found is None or found.steps > most:
        spend(most // STEPS_A_UNIT, "invocations of shaders")
        return None
    spend(found.steps // STEPS_A_UNIT, "invocations of shaders")
    return found if found.walked is not None else None


def _follow(entry: ReflectedEntryPoint, stage: StageInputs, most: int) -> Followed | None:
    """The same, found out anew; None where `most` steps are too few."""
    from vkharness.shader.lanes.inputs import Inputs
    from vkharness.shader.lanes.walk import MOST_STEPS, walk

    assert entry.code is not None
    questions: dict[tuple[int, tuple[int, ...]], Any] = {}
    loaded = {
        (place.set, place.binding, place.offset, place.size): value for place, value in stage.known.loaded.items()
    }

    def asking(which: int, function: Callable[..., Any]) -> Callable[..., Any]:
        def ask(*what: int) -> Any:
            answer = questions[which, what] = function(*what)
            return answer

        return ask

    def read(*place: int) -> int | None:
        return loaded.get((place[0], place[1], place[2], place[3]))

    asked = asking(0, stage.known.length), asking(1, stage.size)
    steps = 0
    for lanes, known in ((_lanes(entry, stage.run), True), ((1, _the_same(entry, stage.run)), False)):
        if lanes is not None:
            limit = min(MOST_STEPS, most - steps)
            inputs = Inputs(lanes[0], lanes[1], stage.known.push, read, asked[0], asked[1], stage.levels, known)
            answer = walk(entry.code, inputs, limit)
            steps += answer if isinstance(answer, int) else answer.steps
            told = tuple((which, what, answer) for (which, what), answer in questions.items())
            if not isinstance(answer, int):
                return Followed(answer, known, steps, told)
            if limit < MOST_STEPS and steps >= limit:
                return None
    return Followed(None, False, steps, tuple((which, what, said) for (which, what), said in questions.items()))


def _the_same(entry: ReflectedEntryPoint, run: Invocations) -> dict[tuple[int, int], int]:
    """Built-in inputs that are the same in all invocations."""
    return {place: first for place, (first, last) in built_ins(run, entry)[0].items() if first == last}


def _lanes(entry: ReflectedEntryPoint, run: Invocations) -> tuple[int, dict[tuple[int, int], Any]] | None:
    """How many invocations there are, and their built-in inputs; None where that is not known, or too many."""
    import numpy as np

    from vkharness.shader import values

    if entry.stage == VERTEX and run.vertices is not None and run.instances is not None:
        ranges = [run.vertices, run.instances]
        axes = [(values.VERTEX_INDEX, 0), (values.INSTANCE_INDEX, 0)]
    elif entry.stage == COMPUTE and run.groups is not None and entry.local_size is not None:
        ranges = [*((0, size - 1) for size in entry.local_size), *run.groups]
        axes = [(built_in, axis) for built_in in (values.LOCAL_INVOCATION_ID, values.WORKGROUP_ID) for axis in range(3)]
    else:
        return None
    counts = [last - first + 1 for first, last in ranges]
    lanes = prod(counts)
    if min(counts) < 1 or lanes > MOST_LANES:
        return None
    left, found = np.arange(lanes, dtype=np.int64), dict[tuple[int, int], Any]()
    for place, (first, _), count in zip(axes, ranges, counts, strict=True):
        found[place] = first if count == 1 else left % count + first
        left = left // count
    if entry.stage == COMPUTE:
        _more_inputs(entry, run, found)
    return lanes, found


def _more_inputs(entry: ReflectedEntryPoint, run: Invocations, found: dict[tuple[int, int], Any]) -> None:
    """Those of a dispatch that follow from others."""
    from vkharness.shader import values

    assert run.groups is not None and entry.local_size is not None
    local = [found[values.LOCAL_INVOCATION_ID, axis] for axis in range(3)]
    width, height, _ = entry.local_size
    found[values.LOCAL_INVOCATION_INDEX, 0] = local[0] + local[1] * width + local[2] * width * height
    for axis, ((first, last), size) in enumerate(zip(run.groups, entry.local_size, strict=True)):
        found[values.NUM_WORKGROUPS, axis] = last - first + 1
        found[values.GLOBAL_INVOCATION_ID, axis] = found[values.WORKGROUP_ID, axis] * size + local[axis]
