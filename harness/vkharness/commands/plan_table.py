"""One plan for equal effects: commands that do the same again share what was made and found out before.

A handler that finds all that its effects depend on in a few values asks with these (`get`) before it makes any
effect. Addresses are such values beside ids: where a buffer lies changes when it is bound, and its id does not. So
nothing has to be forgotten when an object changes. The effects of all other commands are compared once they are made
(`of`).

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
