"""Plans that move with numbers of commands, as hostile calls of the native core have them: see `extension_calls`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hunts.hostile_commands import MakesCalls
from vkharness import native
from vkharness.commands.contents.content_steps import NOTHING
from vkharness.trace.effects import Access
from vkharness.trace.resources import Buffer

TRIES = 20
"""How often a plan of odd parts is tried before one of usual parts is made."""
STEPS = (0, 1, 4, 16)
"""Bytes by which 1 more of a number moves something."""
FAR_STEPS = ((1 << 28) - 1, 1 << 28, 1 << 62)
NEAR, FAR = ((1 << 6) - 1, (1 << 32) - 1), (1 << 32, (1 << 62) - 1)
"""The most that a number may be: those of `FAR` take no step of more than 1 byte."""
SPACE, IMAGE = 9, 2
"""Where buffers lie, and what is written by accesses of images."""

Odd = Callable[[Any], Any]
"""Gives a value back, or seldom any other."""


class HostileMoves:
    """The plan of one program that moves, and the numbers that commands say for it."""

    def __init__(self, program: MakesCalls) -> None:
        self._program = program
        self._numbers = 0
        """How many numbers the plan takes."""

    def made(self) -> Any:
        """A `MovedPlan` of one to three memories, most of which are moved as no command moves them."""
        for attempt in range(TRIES):
            odd = self._program.odd if attempt + 1 < TRIES else usual
            with contextlib.suppress(TypeError, ValueError):
                return self._plan(odd)
        raise AssertionError("a plan of usual parts is refused")

    def numbers(self) -> Any:
        """The numbers of a command, mostly as many as the plan takes."""
        odd, pick = self._program.odd, self._program.chosen
        count = self._numbers if pick.random() < 0.9 else pick.randrange(6)
        return odd(tuple(odd(self._program.address()) for _ in range(count)))

    def _plan(self, odd: Odd) -> Any:
        pick, isusual = self._program.chosen, odd is usual
        memories, self._numbers = pick.randrange(1, 4), pick.randrange(4)
        writes = [pick.choice((0, 1, IMAGE)) for _ in range(memories)]
        reach = self._reach(writes, odd)
        spaces = [odd(at if kind == IMAGE else SPACE) for at, kind in enumerate(writes)]  # an image is its own space
        words = tuple(odd((odd(at), space, odd(100 * at), 0)) for at, space in enumerate(spaces))
        steps, most = (STEPS, NEAR) if isusual else (STEPS + FAR_STEPS, NEAR + FAR)
        numbers = tuple(odd((pick.randrange(20), odd(0), pick.choice(most))) for _ in range(self._numbers))
        terms = []
        for number in range(self._numbers):
            begin = pick.choice(steps)
            end = begin if isusual else pick.choice((begin, *steps))
            terms.append(odd((odd(pick.randrange(memories)), odd(number), begin, end)))
        limits = tuple(odd((odd(pick.randrange(memories)), 1 << pick.randrange(40))) for _ in range(pick.randrange(3)))
        by_id = {
            at: odd(Buffer(at, odd(1 << pick.randrange(40)), odd(None), odd(0))) for at in range(pick.randrange(20))
        }
        several = range(pick.randrange(3)) if self._numbers else ()
        numbered = [(odd(pick.randrange(memories)), odd(pick.randrange(self._numbers)), odd(0)) for _ in several]
        buffers = odd(by_id), Buffer, odd(tuple(odd(each) for each in numbered))
        given = odd(words), odd(numbers), odd(tuple(terms)), odd(limits), odd(())
        return native.core.MovedPlan(reach, *given, *buffers)  # type: ignore[union-attr]

    def _reach(self, writes: list[int], odd: Odd) -> Any:
        """The common form of plans that access each memory once, or seldom more."""
        program, pick = self._program, self._program.chosen
        accesses = [Access(pick.randrange(8), 0, (), 0, atomic=pick.random() < 0.2) for _ in writes]
        parts = [(odd(each), odd(at), odd(writes[at]), odd(((0, 4),))) for at, each in enumerate(accesses)]
        if odd is not usual and pick.random() < 0.2:
            parts.append((accesses[0], 0, 0, ((8, 12), (16, 20))))

        def unfold(numbers: Any) -> Any:
            effects = tuple(replace(each, space=numbers[1], spans=((numbers[2], numbers[2] + 1),)) for each in accesses)
            return program.value() if program.again() is False else (effects, NOTHING)

        return native.core.FlatReach(unfold, odd(len(writes)), tuple(parts))  # type: ignore[union-attr]


def usual(value: Any) -> Any:
    """Gives the value back."""
    return value
