"""Plans of a command, by the resources to which the descriptor sets refer that its shaders use.

All else that decides a plan is the same for all plans of a table: who has the table says what that is. The native core
looks plans up here, too (`BoundSets`), and makes the keys as `PlansBySets.key` does.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Literal, NamedTuple

from vkharness.commands.drawing.set_contents import contents_of
from vkharness.commands.drawing.shader_memory import ReachedAnywhere
from vkharness.commands.object_state import BoundSet, CommandBuffer, ObjectState
from vkharness.trace.effects import Effect, EffectPlan

MOST_PLANS = 1 << 11
MOST_REACHES = 1 << 6
"""How many are remembered of one table at most."""


class PlansBySets(dict[tuple[Hashable, ...], Any]):
    """Plans by the contents and the dynamic offsets of sets; None for contents with which there are no effects. Of
    draws that differ in numbers alone it has a `MovedPlan`, or how often it was asked in vain.

    `reaches` has what is accessed of memory that may lie anywhere, by the shapes of the sets (`SetContents.shape`),
    None where nothing is bound. With that a plan is known of memory in other places, too.
    """

    __slots__ = ("point", "reaches", "used")

    def __init__(self, point: int, used: tuple[int, ...]) -> None:
        """`point` is a VkPipelineBindPoint, `used` the indices of the sets that decide."""
        super().__init__()
        self.point, self.used = point, used
        self.reaches: dict[tuple[Hashable, ...], ReachedAnywhere] = {}

    def key(self, objects: ObjectState, sets: Mapping[int, BoundSet]) -> tuple[Hashable, ...]:
        """The number of what each set refers to now, behind it its dynamic offsets; None and none where nothing is
        bound."""
        parts: list[Hashable] = []
        for index in self.used:
            bound = sets.get(index)
            if bound is None:
                parts += (None, ())
                continue
            held, dynamic = bound
            known = held.contents
            contents = contents_of(objects, held) if known is None or known[0] != objects.moved else known[1]
            parts += (contents.number, dynamic)
        return tuple(parts)

    def shapes(self, objects: ObjectState, sets: Mapping[int, BoundSet]) -> tuple[Hashable, ...]:
        """The shape of what each set refers to now; None where nothing is bound, or more is to be told of a set."""
        bound = [sets.get(index) for index in self.used]
        return tuple([None if each is None else contents_of(objects, each.set).shape for each in bound])

    def reach(self, shapes: tuple[Hashable, ...], reached: ReachedAnywhere) -> None:
        """Remembers what is accessed of memory of these shapes."""
        if len(self.reaches) >= MOST_REACHES:
            self.reaches.clear()
        self.reaches[shapes] = reached

    def reach_within(self, drawn: Drawn, objects: ObjectState, sets: Mapping[int, BoundSet]) -> None:
        """Remembers the same of a draw with these sets."""
        shapes = self.shapes(objects, sets)
        found = drawn.shaders.reaches.get(shapes)
        if found is not None and shapes not in self.reaches:
            self.reach(shapes, found.within(drawn.before, drawn.behind))

    def keep(self, key: tuple[Hashable, ...], plan: Any) -> None:
        """Remembers a plan."""
        if len(self) >= MOST_PLANS:
            self.clear()
        self[key] = plan

    def of(self, objects: ObjectState, buffer: CommandBuffer) -> EffectPlan | Literal[False] | None:
        """The plan with the sets that are bound now. False where it is not known."""
        found: EffectPlan | Literal[False] | None = self.get(self.key(objects, buffer.sets.get(self.point, {})), False)
        return found

    def told(self, objects: ObjectState, buffer: CommandBuffer) -> set[int]:
        """The resources of which the key tells, so that no plan is found by it any more when one of them goes."""
        bound = buffer.sets.get(self.point, {})
        sets = [bound[index].set for index in self.used if index in bound]
        return {part.resource for each in sets for part in contents_of(objects, each).memories.values()}


class Drawn(NamedTuple):
    """A draw of which the resources of its descriptor sets decide the accesses of its shaders, and nothing else."""

    effects: tuple[Effect, ...]
    shaders: PlansBySets
    """The accesses of its shaders, by the resources of its sets."""
    before: tuple[Effect, ...]
    """The effects before that, of vertices."""
    behind: tuple[Effect, ...]
    """The effects after that, of attachments."""
