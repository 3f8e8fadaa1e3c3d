"""Random programs that build, copy and traverse acceleration structures, against a list of what each step touches."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.commands.test_structures_of_instances import COPY_INFO, judged, traversed
from tests.support.rays import BOTTOM, TOP, Scene
from tests.support.streams import struct

STEPS = 8
PROGRAMS = 6


class Program:
    """Steps on three bottom level structures and two top level ones. Full barriers stand between some of them.

    `expected` says whether a step touches what an earlier one touched, one of them writes, and no barrier is between.
    It knows what each top level structure was built of, and asks nobody.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.scene = rng, Scene()
        self.bottoms = [self.scene.one, self.scene.two, self.scene.add(BOTTOM)]
        self.tops = [self.scene.top, self.scene.add(TOP)]
        self.leads: dict[int, set[int]] = {}
        self.built: set[int] = set()
        self.read: set[int] = set()
        self.written: set[int] = set()
        self.expected = False
        self.slot = 0

    def touch(self, reads: set[int], writes: set[int]) -> None:
        """One step."""
        self.expected |= bool(reads & self.written or writes & (self.read | self.written))
        self.read |= reads
        self.written |= writes

    def barrier(self) -> None:
        """Everything before is over and seen."""
        self.scene.barrier()
        self.read, self.written = set(), set()

    def step(self) -> None:
        """Any step that may be next."""
        if self.rng.random() < 0.6:
            self.barrier()
        choices = [self.build_bottom, self.build_top, self.build_unknown]
        choices += [self.copy_top, self.trace] if self.leads else []
        self.rng.choice(choices)()

    def build_bottom(self) -> None:
        """One or two of them, in one call."""
        chosen = self.rng.sample(self.bottoms, self.rng.choice([1, 1, 2]))
        self.scene.bottom(*chosen)
        self.built |= set(chosen)
        self.touch(set(), set(chosen))

    def instances(self) -> tuple[int, set[int]]:
        """Where the host writes instances, and which structures they name."""
        self.slot += 4096
        named = self.rng.sample(self.bottoms, self.rng.choice([0, 1, 2]))
        for number, each in enumerate(named):
            self.scene.instance(number, each, self.slot)
        return self.slot, set(named)

    def build_top(self) -> None:
        """Of known instances, directly or with ranges in memory; anew or as an update."""
        top, (offset, named) = self.rng.choice(self.tops), self.instances()
        again = top in self.leads and self.rng.random() < 0.3
        update: dict[str, Any] = {"mode": 1, "srcAccelerationStructure": top} if again else {}
        self.scene.build_top(len(named), offset=offset, dstAccelerationStructure=top, **update)
        self.leads[top] = named
        self.touch(named, {top})

    def build_unknown(self) -> None:
        """Of instances that nobody wrote: any that is built."""
        top = self.rng.choice(self.tops)
        self.scene.build_top(1, offset=60000, dstAccelerationStructure=top)
        self.leads[top] = set(self.built)
        self.touch(set(self.built), {top})

    def copy_top(self) -> None:
        """One to the other."""
        source = self.rng.choice(sorted(self.leads))
        (target,) = set(self.tops) - {source}
        self.scene.cmd("CopyAccelerationStructureKHR", pInfo=struct(COPY_INFO, src=source, dst=target))
        self.leads[target] = set(self.leads[source])
        self.touch({source}, {target})

    def trace(self) -> None:
        """A dispatch through one."""
        top = self.rng.choice(sorted(self.leads))
        traversed(self.scene, top)
        self.touch({top, *self.leads[top]}, set())


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(PROGRAMS):
        program = Program(rng)
        for _ in range(STEPS):
            program.step()
        program.scene.submit()
        assert bool(judged(program.scene)) == program.expected
