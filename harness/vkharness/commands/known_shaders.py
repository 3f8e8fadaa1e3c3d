"""Facts about the shaders of one program, by the values that decide them: no more than a frame or two need.

Keys are values that never change their meaning: ids, which are never used again, numbers of contents
(`drawing.set_contents`), push constants, addresses. So nothing has to be forgotten when an object goes.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from vkharness.commands.recently_used import RecentlyUsed
from vkharness.commands.resources.sampler_levels import SamplerLevels
from vkharness.trace.effects import EffectPlan
from vkharness.trace.resources import Pipeline, ShaderObject

MOST_CONTENTS = 1 << 12
MOST_PLANS = 1 << 12
MOST_REACHES = 1 << 10
"""How many are remembered at least; at most twice as many are."""


class KnownShaders:
    """The tables of one program."""

    __slots__ = (
        "_next",
        "_numbers",
        "cleared",
        "contents",
        "drawn",
        "linked",
        "plans",
        "reaches",
        "samplers",
        "source",
        "stores",
    )

    def __init__(self) -> None:
        self._numbers: RecentlyUsed[Hashable, int] = RecentlyUsed(MOST_REACHES)
        self._next = 0
        self.cleared = 0
        """How often everything was forgotten."""
        self.contents: RecentlyUsed[Hashable, Any] = RecentlyUsed(MOST_CONTENTS)
        """The resources to which descriptor sets refer (`drawing.set_contents.SetContents`), by their values."""
        self.plans: RecentlyUsed[Hashable, Any] = RecentlyUsed(MOST_PLANS)
        """Tables of the accesses of a pipeline's shaders (`drawing.plans_by_sets.PlansBySets`), by all on which these
        depend beside the resources of descriptor sets."""
        self.source: tuple[EffectPlan, Any] | None = None
        """The last plan of these, and its table, if what is known of commands and what sets refer to decide it."""
        self.drawn: Any = None
        """The last draw of which what the sets refer to decides nothing but what its shaders access
        (`drawing.plans_by_sets.Drawn`)."""
        self.reaches: RecentlyUsed[Hashable, Any] = RecentlyUsed(MOST_REACHES)
        """The same for memory of which the sizes are known (`drawing.shader_memory.ReachedAnywhere`)."""
        self.stores = False
        """Whether shaders of a dispatch or draw store to memory."""
        self.samplers = SamplerLevels()
        """Which mip levels samplers choose."""
        self.linked: dict[tuple[tuple[int, ShaderObject], ...], Pipeline] = {}
        """Objects in the place of a pipeline where shader objects are bound, by (VkShaderStageFlagBits, object) of each
        (`drawing.shader_objects`)."""

    def fresh(self) -> int:
        """A number that was never given."""
        self._next += 1
        return self._next

    def number(self, value: Hashable) -> int:
        """The same number for equal values."""
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = self.fresh()
        return number

    def clear(self) -> None:
        """Forgets everything. Numbers stay unique."""
        self.cleared += 1
        self._numbers.clear()
        self.contents.clear()
        self.plans.clear()
        self.source = self.drawn = None
        self.reaches.clear()
        self.linked.clear()
