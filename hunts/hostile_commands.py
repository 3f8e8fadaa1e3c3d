"""Copies, fills and updates as hostile calls of the native core have them: see `extension_calls`."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Protocol

from vkharness import native
from vkharness.commands.buffer_transfers import FLAT, FlatCommand, NumberRow, kind_of

NUMBERS = ("srcOffset", "dstOffset", "size", "dataSize", "data")


class MakesCalls(Protocol):
    """The part of `extension_calls.HostileProgram` that makes hostile calls."""

    chosen: random.Random
    flat: HostileCommands

    def address(self) -> Any:
        """An integer of any size, mostly a small one."""

    def value(self) -> Any:
        """Anything."""

    def odd(self, usual: Any) -> Any:
        """A value, or seldom anything."""

    def again(self) -> Any:
        """Another call, an exception, or any answer."""


class HostileCommands:
    """The commands of one program that may have flat plans."""

    def __init__(self, program: MakesCalls) -> None:
        self._program = program
        self.kinds: dict[FlatCommand, Any] = {}
        """The core's kinds of commands, whose effects the program says."""
        self._places: dict[Any, Any] = {}

    @staticmethod
    def made(program: MakesCalls) -> Any:
        """Makes the native object that makes flat plans; most of the few buffers that it knows can exist."""
        flat = program.flat
        places = flat._places = {number: flat.place(number) for number in range(4)}
        rows = tuple(
            NumberRow(name, flat.kind(what), info, what.buffers, what.regions, what.numbers, what.data)
            for name, (what, info) in FLAT.items()
        )
        said = {program.value()} if program.chosen.random() < 0.5 else set()
        return native.core.FlatPlans(places, said, tuple, rows)  # type: ignore[union-attr]

    def kind(self, what: FlatCommand | None = None) -> Any:
        """The kind of such commands, or of any. Now and then it answers with something else than their effects."""
        program = self._program
        chosen = program.chosen.choice([each for each, _ in FLAT.values()]) if what is None else what
        if chosen not in self.kinds:

            def unfold(places: Any, numbers: Any, data: Any) -> Any:
                if program.chosen.random() < 0.1:
                    self._places.clear()
                return program.value() if program.again() is False else chosen.unfold(places, numbers, data)

            self.kinds[chosen] = kind_of.__wrapped__(chosen._replace(unfold=unfold))
        return self.kinds[chosen]

    def place(self, number: int) -> Any:
        """Where a buffer lies, mostly."""
        program, pick = self._program, self._program.chosen
        return program.odd((number, program.odd(pick.randrange(2)), program.odd(pick.randrange(40)), program.address()))

    def arguments(self) -> Any:
        """Those of a command, mostly."""
        odd, pick = self._program.odd, self._program.chosen
        region = {name: odd(self._program.address()) for name in NUMBERS}
        regions = odd([odd(region) for _ in range(pick.choice((1, 1, 1, 0, 2)))])
        info = {name: odd(pick.randrange(5)) for name in ("srcBuffer", "dstBuffer")}
        info |= {"pRegions": regions, "pData": odd(bytes(pick.randrange(70)))} | region
        buffer = {"commandBuffer": odd(pick.randrange(6))}
        return buffer | info if pick.random() < 0.5 else buffer | {"pCopyBufferInfo": odd(info)}

    def plan(self) -> Any:
        """A flat plan, or None."""
        pick = self._program.chosen
        what = pick.choice([each for each, _ in FLAT.values()])
        places = tuple(self.place(pick.randrange(4)) for _ in what.buffers)
        numbers = tuple(pick.randrange(40) for _ in what.numbers * pick.choice((1, 1, 2)))
        return self.made(self._program).plan(self.kind(what), places, numbers, bytes(64))

    def look_at(self, plan: Any) -> None:
        """Asks a flat plan for something."""
        other = self.plan()
        plan.owners = self._program.odd(None)
        asks: tuple[Callable[[], Any], ...] = (
            lambda: plan.effects, lambda: plan.writes, lambda: plan == other, lambda: other != plan, lambda: hash(plan),
            lambda: list(plan), lambda: repr(plan), lambda: native.core.flat_writes([plan, other]),  # type: ignore[union-attr]
            lambda: native.core.flat_spaces([plan, other]),  # type: ignore[union-attr]
        )  # fmt: skip
        self._program.chosen.choice(asks)()
