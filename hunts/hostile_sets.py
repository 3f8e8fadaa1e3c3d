"""Descriptor sets as hostile calls of the native core have them: see `extension_calls`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hunts.hostile_commands import MakesCalls
from vkharness import native
from vkharness.commands.contents.content_steps import NOTHING
from vkharness.commands.drawing.plans_by_sets import PlansBySets
from vkharness.commands.drawing.state_parts import new_bound_sets, written_infos
from vkharness.commands.object_state import BoundSet, CommandBuffer, ObjectState
from vkharness.commands.said_states import KnownBind
from vkharness.spec.enums import VkDescriptorType
from vkharness.trace.effects import Access, EffectPlan
from vkharness.trace.resources import Binding, Buffer, Descriptor, DescriptorSet, SetLayout

INTO = 1
"""The id of command buffers."""
NAMES = ("vkCmdBindDescriptorSets", "vkUpdateDescriptorSets")
TYPES = (VkDescriptorType.STORAGE_BUFFER, VkDescriptorType.UNIFORM_TEXEL_BUFFER, VkDescriptorType.STORAGE_IMAGE, 99)


class HostileSets:
    """The sets of one program: ids 0 to 3, over the buffers 4 and 5."""

    def __init__(self, program: MakesCalls) -> None:
        self._program = program
        self.kept: list[Any] = [None]
        """Results of the last bind."""
        self.states = [HostileState(program) for _ in range(2)]
        """Command buffers, or what has the state of all objects."""

    def made(self) -> Any:
        """Makes the native object that binds these sets, most of which exist."""
        program, pick, core = self._program, self._program.chosen, native.core
        assert core is not None
        by_id: dict[Any, Any] = {}

        def offsets_of(_: Any) -> Any:
            return pick.choice((-1, 0, 1, 2)) if pick.random() < 0.9 else program.again()

        def contents_of(_: Any, held: Any) -> Any:
            if pick.random() < 0.1:
                by_id.clear()
            memories = {program.odd((0, 0)): self._part() for _ in range(2)}
            found = (pick.randrange(3), program.odd(1), memories) if pick.random() < 0.9 else program.again()
            held.contents = (0, found)
            return found

        bindings = {at: Binding(at, TYPES[0], pick.randrange(3)) for at in range(2)}
        layouts = [SetLayout(program.odd(number), bindings) for number in (7, 8)]
        for number in range(4):
            by_id[number] = program.odd(DescriptorSet(number, pick.choice(layouts)))
        for number in (4, 5):
            numbers = (program.odd(abs(pick.randrange(40))) for _ in range(3))
            by_id[number] = program.odd(Buffer(program.odd(number), *numbers))
        writes = core.SetWrites(by_id, written_infos(), DescriptorSet, Descriptor)
        given = self.states[0], by_id, contents_of, Descriptor, Buffer(0, 0), pick.randrange(4), pick.choice((1, 8))
        contents = pick.choice((core.NumberedContents(*given), contents_of))
        types = KnownBind, BoundSet, DescriptorSet, PlansBySets
        several = self.states[1], by_id, offsets_of, contents, writes, *types, Access(0, 0, (), 0)
        with contextlib.suppress(TypeError):  # an access has no effects
            core.BoundSets(*several, several[-1], 1)
        return core.BoundSets(*several, EffectPlan(()), pick.randrange(4))

    def name(self) -> Any:
        """The name of a call, mostly."""
        return self._program.odd(self._program.chosen.choice(NAMES))

    def bind(self) -> Any:
        """The arguments of a bind, mostly."""
        odd, pick = self._program.odd, self._program.chosen
        numbers = {name: odd(pick.randrange(2)) for name in ("pipelineBindPoint", "firstSet")}
        sets = {"pDescriptorSets": odd([odd(pick.randrange(5)) for _ in range(pick.choice((0, 1, 1, 2)))])}
        offsets = [self._program.address() for _ in range(pick.randrange(3))]
        return {"commandBuffer": odd(INTO), "pDynamicOffsets": odd(pick.choice((None, offsets)))} | numbers | sets

    def writes(self) -> Any:
        """The arguments of writes, mostly."""
        odd, pick = self._program.odd, self._program.chosen
        several = [odd(self._write()) for _ in range(pick.choice((1, 1, 2)))]
        return {"pDescriptorWrites": odd(several), "pDescriptorCopies": odd(None)}

    def _write(self) -> Any:
        odd, pick = self._program.odd, self._program.chosen
        info = {"buffer": odd(4), "offset": odd(pick.randrange(40)), "range": self._program.address()}
        write: dict[str, Any] = {"dstSet": pick.randrange(5), "dstBinding": 0, "dstArrayElement": 0}
        write |= {"descriptorCount": 1, "descriptorType": int(pick.choice((TYPES[0], TYPES[0], *TYPES)))}
        write |= {"pBufferInfo": odd([odd(info)]), "pTexelBufferView": [odd(5)], "pImageInfo": [{"imageView": odd(5)}]}
        return {name: odd(value) for name, value in write.items()}

    def plans(self) -> Any:
        """Plans by the contents of sets."""
        program, pick = self._program, self._program.chosen
        plans = PlansBySets(pick.randrange(2), tuple(program.odd(at) for at in (0, 1, -1, -2)[: pick.randrange(5)]))
        for _ in range(pick.randrange(4)):
            plans[tuple(program.odd(each) for each in (0, ()) * len(plans.used))] = program.value()
        plans.reaches[(1,) * len(plans.used)] = program.odd(self._reached(plans.used))
        if pick.random() < 0.1:
            setattr(plans, pick.choice(("point", "used", "reaches")), program.value())
        return plans

    def _part(self) -> Any:
        """A part of memory."""
        begin, whole = self._program.address(), self._program.chosen.choice((None, None, ((0, 8),)))
        fields = (self._program.chosen.randrange(2), 9, begin, begin, 64, "", whole)
        return tuple(self._program.odd(each) for each in fields)

    def _reached(self, used: tuple[Any, ...]) -> Any:
        """Returns accesses of memory that may lie anywhere."""
        odd, pick = self._program.odd, self._program.chosen
        places = [(index, odd((0, 0)), odd(pick.choice((-1, 0, 1)))) for index in used]
        accesses = [(1, odd(each), odd(((0, self._program.address()),)), False, None) for each in places]
        behind = (Access(1, 9, ((70, 72),), 1),) * (pick.random() < 0.3)
        fields = ((), tuple(accesses), behind, tuple(places), len(used), self._flat_reach(places))
        return tuple(odd(each) for each in fields)

    def _flat_reach(self, places: list[Any]) -> Any:
        """Returns the common form of flat plans that access memory in these places, and the places, or None. Now and
        then its answer is something else than their effects."""
        program, pick = self._program, self._program.chosen
        accesses = [Access(pick.randrange(8), 0, (), 0, atomic=pick.random() < 0.2) for _ in range(pick.randrange(3))]
        spans = [tuple(program.odd((9 * at, 9 * at + pick.randrange(9))) for at in range(pick.choice((1, 1, 2))))
                 for _ in accesses]  # fmt: skip
        parts = [program.odd((program.odd(each), pick.randrange(-1, 3), pick.randrange(-1, 4), program.odd(bytes)))
                 for each, bytes in zip(accesses, spans, strict=True)]  # fmt: skip

        def unfold(numbers: Any) -> Any:
            effects = tuple(replace(each, space=numbers[1], spans=((numbers[2], numbers[2] + 1),)) for each in accesses)
            return program.value() if program.again() is False else (effects, NOTHING)

        if pick.random() < 0.5:
            places = [*places, program.odd((pick.randrange(3), program.odd(7), program.address()))]
        with contextlib.suppress(TypeError, ValueError):
            made = native.core.FlatReach(unfold, program.odd(len(places)), tuple(parts))  # type: ignore[union-attr]
            return program.odd(made), program.odd(tuple(places))
        return None

    def flat_plan(self) -> Any:
        """A flat plan of what shaders access, or None."""
        pick = self._program.chosen
        point, used = pick.randrange(2), (0, 1)[: pick.choice((1, 1, 2))]
        table, state = PlansBySets(point, used), ObjectState()
        table.reaches[(1,) * len(used)] = self._reached(used)
        buffer = CommandBuffer(INTO, 0)
        for index in used:
            held = DescriptorSet(index, SetLayout(0, {}))
            held.contents = (0, (index, 1, {(0, 0): self._part()}))
            buffer.sets.setdefault(point, {})[index] = BoundSet(held, (pick.randrange(9),))
        plan = new_bound_sets(state).plan(table, buffer)
        return plan if isinstance(plan, native.core.FlatPlan) else None  # type: ignore[union-attr]


class HostileState:
    """A state that runs Python when it is asked what is bound, what has moved, or for a number."""

    def __init__(self, program: MakesCalls) -> None:
        self._program = program
        self._sets: dict[Any, Any] = {}

    @property
    def sets(self) -> Any:
        """Mostly a dictionary of dictionaries."""
        program = self._program
        if program.chosen.random() < 0.1:
            program.again()
        if program.chosen.random() < 0.1:
            self._sets[program.chosen.randrange(2)] = program.value()
        return self._sets if program.chosen.random() < 0.95 else program.value()

    def _number(self) -> Any:
        pick = self._program.chosen
        return pick.choice((0, 0, 0, 1)) if pick.random() < 0.9 else self._program.again()

    moved = cleared = property(_number)
    fresh: Callable[[HostileState], Any] = _number
