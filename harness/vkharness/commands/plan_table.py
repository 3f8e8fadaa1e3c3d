"""One plan for equal effects: commands that do the same again share what was made and found out before.

A handler that finds all that its effects depend on in a few values asks with these (`get`) before it makes any
effect. Addresses are such values beside ids: where a buffer lies changes when it is bound, and its id does not. So
nothing has to be forgotten when an object changes. Effects that are remembered elsewhere are asked for as they are
(`joined`), and those of all other commands are compared once they are made (`of`).

A plan is kept when it is made for the second time, so that a program that never does the same twice pays little. It is
known for as long as any command has it, or an earlier recording that may be repeated
(`vkharness.syncval.repeated_recordings`).
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable
from typing import Any
from weakref import ref

from vkharness.trace.effects import Effect, EffectPlan

SEEN = 1 << 13
"""How many plans that were made once are remembered, by the hash of what they were made of."""
MOST_JOINED = 1 << 12
"""The most plans of joined effects that are remembered."""


class _KeptPlan(ref[EffectPlan]):
    """A plan that others keep, and what it was made of."""

    __slots__ = ("key", "number")
    key: Hashable
    number: int


class PlanTable:
    """The plans of one program."""

    def __init__(self) -> None:
        kept: dict[int, _KeptPlan] = {}

        def forget(gone: _KeptPlan) -> None:
            if kept.get(gone.number) is gone:
                del kept[gone.number]

        self._kept, self._forget = kept, forget
        self._seen = array("q", bytes(8 * SEEN))
        self._turn = False
        self.places: dict[int, tuple[int, int, int, int]] = {}
        """Where buffers are that copies, fills and updates named: id, space, first address and size, by id."""
        self._shares = True
        self.flat: Any = None
        """The maker of flat plans (`buffer_transfers.new_flat_plans`); None where there is none."""
        self._same: dict[tuple[Effect, ...], tuple[Effect, ...]] = {}
        self._joined: dict[tuple[int, ...], tuple[tuple[tuple[Effect, ...], ...], EffectPlan]] = {}

    def __len__(self) -> int:
        """The plans that are kept."""
        return len(self._kept)

    def get(self, key: Hashable) -> EffectPlan | None:
        """The plan that was kept under a key, if it still is there."""
        held = self._kept.get(hash(key)) if self._shares else None
        return held() if held is not None and held.key == key else None

    def keep(self, key: Hashable, effects: tuple[Effect, ...], writes: Any = None) -> EffectPlan:
        """Makes a plan of all the values of `key`: what made `effects` and `writes` depends on nothing else."""
        return self._keep(hash(key), key, effects, writes)

    def _keep(self, number: int, key: Hashable, effects: tuple[Effect, ...], writes: Any) -> EffectPlan:
        plan, seen = EffectPlan(effects, writes), self._seen
        first, second = number % SEEN, (number >> 20) % SEEN
        if seen[first] == number or seen[second] == number:
            held = self._kept[number] = _KeptPlan(plan, self._forget)
            held.key, held.number = key, number
        else:  # in turns, so that no two keys stand in each other's way for ever
            seen[first if self._turn else second] = number
            self._turn = not self._turn
        return plan

    def of(self, effects: tuple[Effect, ...], writes: Any = None) -> EffectPlan:
        """The plan of effects, which may be known."""
        if not self._shares:  # nobody asks for what is kept, and not all effects have a hash
            return EffectPlan(effects, writes)
        key = effects if writes is None else (effects, writes)
        try:
            found = self.get(key)
        except TypeError:  # an effect that holds commands or dictionaries has no hash
            return EffectPlan(effects, writes)
        return self.keep(key, effects, writes) if found is None else found

    def forget(self, buffer: int) -> None:
        """A buffer of this id, if it is one, lies where nobody knows from here on."""
        if self.places.pop(buffer, None) is not None and self.flat is not None:
            self.flat.forget(buffer)

    def share_nothing(self) -> None:
        """Each command has a plan of its own from here on, with the very data of its call and no equal one's."""
        self._shares, self.flat = False, None

    def joined(self, *parts: tuple[Effect, ...]) -> EffectPlan:
        """The plan of effects that follow one another. The same objects make the same plan, until `forget_joined`."""
        key = tuple(map(id, parts))
        found = self._joined.get(key)
        if found is None:
            if len(self._joined) >= MOST_JOINED:
                self._joined.clear()
            found = self._joined[key] = parts, self.of(sum(parts, ()))
        return found[1]

    def same(self, effects: tuple[Effect, ...]) -> tuple[Effect, ...]:
        """Equal effects as one object, until `forget_joined`."""
        if len(self._same) >= MOST_JOINED:
            self._same.clear()
        return self._same.setdefault(effects, effects)

    def forget_joined(self) -> None:
        """The effects that are remembered elsewhere are made anew from here on."""
        self._joined.clear()
        self._same.clear()
