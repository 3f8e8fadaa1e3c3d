"""Draws of which contents decide, as hostile calls of the native core have them: see `extension_calls`."""

from __future__ import annotations

import contextlib
import struct
from typing import Any

from hunts.hostile_commands import MakesCalls
from hunts.hostile_moves import SPACE, TRIES, Odd, usual
from vkharness import native
from vkharness.commands.drawing.vertex import VERTEX_READ
from vkharness.commands.flat_reaches import Writes, moved_plan, reach_behind
from vkharness.findings import Certainty
from vkharness.trace.effects import Access

BASE, LIMIT = 100, 400
"""Where the indices and the numbers of draws lie."""
FAR = (1 << 31, 1 << 34, (1 << 63) - 1, (1 << 64) - 1)


class HostileDraws:
    """The draws of one program, whose vertices lie in one or two buffers."""

    def __init__(self, program: MakesCalls) -> None:
        self._program = program
        self._plans: list[Any] = []
        """Flat plans of draws, to which reads of vertices come."""
        self._width = 5
        """Numbers of a command."""

    def made(self) -> Any:
        """A `ContentDraws`, whose sources are seldom such as no draw has."""
        for attempt in range(TRIES):
            odd = self._program.odd if attempt + 1 < TRIES else usual
            with contextlib.suppress(TypeError, ValueError):
                return self._draws(odd)
        raise AssertionError("draws of usual parts are refused")

    def plans(self) -> Any:
        """The plans of a command buffer, most of which are flat."""
        odd = self._program.odd
        plans = self._plans or [self._plan(at) for at in range(2)]
        self._plans = plans
        return odd([odd(self._program.chosen.choice(plans)) for _ in range(self._program.chosen.randrange(6))])

    def numbers(self) -> Any:
        """The numbers of some draws, as bytes."""
        pick, odd = self._program.chosen, self._program.odd
        said = [pick.choice(FAR) if pick.random() < 0.02 else pick.randrange(12)
                for _ in range(self._width * pick.randrange(5))]  # fmt: skip
        made = struct.pack(f"={len(said)}Q", *said)
        return odd(made if pick.random() < 0.95 else made[:-1])

    def several(self) -> Any:
        """Known bytes of all memories, or of some."""
        return self._program.odd([self.pieces() for _ in range(self._program.chosen.choice((3, 3, 3, 1, 4)))])

    def pieces(self) -> Any:
        """Known bytes of a memory, in order."""
        pick, odd, found = self._program.chosen, self._program.odd, []
        begin = BASE - pick.randrange(8)
        for _ in range(pick.choice((0, 1, 1, 1, 2))):
            end = begin + pick.randrange(1, 400)
            chunk = HostileChunk(self._program, end - begin)
            found.append(odd((odd(begin), odd(end), odd((odd(chunk), odd(begin - pick.choice((0, 0, 1))))))))
            begin = end
        return odd(found)

    def _draws(self, odd: Odd) -> Any:
        pick = self._program.chosen

        def behind(plan: Any, *reads: Any) -> Any:
            if pick.random() < 0.3 and self._program.again() is False:
                return self._program.value()
            return odd(reach_behind(((VERTEX_READ, Certainty.EXACT),) * sum(reads), plan.parts))

        def buffer(base: int) -> Any:
            return odd((odd(pick.randrange(3)), odd(SPACE), odd(base), odd(LIMIT)))

        layout = pick.randrange(4)
        parameters, counter = (buffer(BASE), pick.choice(((), buffer(BASE)))) if layout else ((), ())
        self._width = (5 if not layout else 2 if counter else 1) + (is_open := pick.randrange(2))
        index = odd(pick.choice((1, 2, 4))), odd(pick.randrange(2))
        sources = []
        for _ in range(pick.choice((0, 1, 1, 2))):
            where = odd(pick.randrange(3)), odd(SPACE), odd(1000 * pick.randrange(1, 4)), odd(9000)
            what = odd(pick.choice((0, 1, 16))), odd(pick.randrange(3)), odd(pick.randrange(4, 9))
            sources.append(odd((*where, *what, odd(pick.randrange(3)), odd(int(pick.random() < 0.3)))))
        given = odd(layout), odd(parameters), odd(counter), buffer(BASE), odd(index), odd(tuple(sources))
        return native.core.ContentDraws(odd(behind), *given, odd(is_open))  # type: ignore[union-attr]

    @staticmethod
    def _plan(at: int) -> Any:
        """The flat plan of a draw that accesses something else than vertices."""
        part = Access(at, 0, (), 0), 0, Writes.NOTHING, ((0, 4),)
        words = ((7, SPACE, 20_000 + 100 * at, 0),)
        return moved_plan([part], words, ((0, 0, 0),), (), ()).plan((0,))


class HostileChunk:
    """Bytes of memory, mostly small numbers, that run Python when somebody asks for them."""

    def __init__(self, program: MakesCalls, size: int) -> None:
        self._program, self._size = program, size

    @property
    def repeats(self) -> Any:
        """Whether one word repeats, mostly not."""
        pick = self._program.chosen
        return self._program.again() if pick.random() < 0.1 else pick.random() < 0.1

    @property
    def data(self) -> Any:
        """The bytes, seldom fewer than there should be."""
        pick = self._program.chosen
        if pick.random() < 0.1:
            return self._program.again()
        if pick.random() < 0.3:
            made = struct.pack("<I", pick.randrange(3)) * (self._size // 4 + 1)
            return made[: self._size]
        made = bytes(pick.choices(pick.choice(((0,), (1, 0, 0, 0), (255,), (0, 1), (0, 0, 1, 2, 255))), k=self._size))
        return self._program.odd(made if pick.random() < 0.9 else made[: pick.randrange(8)])
