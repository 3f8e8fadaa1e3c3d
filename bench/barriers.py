"""Does a barrier cost the same whatever is tracked: with 100, 10,000 and 1,000,000 ranges?

    .venv/bin/python bench/barriers.py [--most 1000000] [--rounds 15]

Syncval gets a stream of effects; there is no driver and no program. Half of the ranges are in one memory object and
half in one image, with gaps between; eight kinds of access left eight states. Then command buffers of 200 commands are
submitted, over and over: each accesses a range that is tracked, somewhere, and ("global") a barrier over everything
follows, or ("buffer") a barrier over that range, or ("image") a layout transition of it. A submit's commands are
prepared once, as those of a command buffer that is submitted again. Times are CPU time of a command, the least of all
rounds, in which all sizes take turns; behind each is how many times that of 100 ranges it is. "bytes a range" is what
the process grew by while the ranges came, in the memory that the system gave it.
"""

from __future__ import annotations

import gc
import random
import time
from itertools import count

import click
from rich.table import Table

from tests.support.effects import Effects, access, barrier, ranged, submitted
from vkharness.fuzz.process_memory import resident_bytes
from vkharness.report.console import terminal
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.syncval.evidence import Description
from vkharness.syncval.validator import Validator
from vkharness.trace.effects import Access

SIZES = (100, 10_000, 1_000_000)
MEMORY, IMAGE = 100, 101
"""The spaces."""
STRIDE, TAKEN = 64, 16
"""Addresses from one range to the next, and those that a range has."""
COMMANDS = 200
"""Of a submit that is measured."""
TOGETHER = 500
"""Ranges that one command accesses at most while the ranges come."""
KINDS = (
    "COPY_TRANSFER_WRITE", "COPY_TRANSFER_READ", "CLEAR_TRANSFER_WRITE", "COMPUTE_SHADER_SHADER_STORAGE_READ",
    "COMPUTE_SHADER_SHADER_STORAGE_WRITE", "FRAGMENT_SHADER_SHADER_STORAGE_WRITE", "VERTEX_SHADER_UNIFORM_READ",
    "BLIT_TRANSFER_WRITE",
)  # fmt: skip
EVERYTHING = ("ALL_COMMANDS/MEMORY_WRITE", "ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE")
COPIED = ("COPY/TRANSFER_WRITE", "COPY/TRANSFER_READ|TRANSFER_WRITE")


class Tracked:
    """A syncval that tracks so many ranges."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._calls = count(1)
        self._validator = Validator(lambda resource, spans: Description("VkBuffer", tuple(spans), ()))
        before = _resident()
        for space in (MEMORY, IMAGE):
            self._track(space, size // 2)
        self._take(barrier(*EVERYTHING))
        self.bytes_a_range = (_resident() - before) / size
        tracked = self._validator._context.ranges
        assert tracked == size, f"{tracked} ranges are tracked instead of {size}"
        chosen = random.Random(1)
        self._submits = {
            kind: submitted(self._calls, 1, [each for at in self._places(chosen) for each in self._commands(kind, at)])
            for kind in ("global", "buffer", "image")
        }
        for each in self._submits:
            self.seconds(each)

    def _track(self, space: int, count: int) -> None:
        together = min(TOGETHER, count // len(KINDS))
        for number, first in enumerate(range(0, count, together)):
            several = range(first, min(first + together, count))
            spans = tuple((at * STRIDE, at * STRIDE + TAKEN) for at in several)
            kind = ACCESS_KIND[f"SYNC_{KINDS[number % len(KINDS)]}"].index
            self._take(Access(kind, space, spans, space))

    def _take(self, *effects: Effects) -> None:
        self._judge(submitted(self._calls, 1, effects))

    def _judge(self, submit: object) -> None:
        found = self._validator.consume(submit)  # type: ignore[arg-type]
        assert not found, found[0].message

    def _places(self, chosen: random.Random) -> list[int]:
        """Numbers of ranges, none twice before each was chosen."""
        half = self.size // 2
        wanted = COMMANDS // 2
        return [at for _ in range(-(-wanted // half)) for at in chosen.sample(range(half), min(half, wanted))][:wanted]

    def _commands(self, kind: str, at: int) -> tuple[Effects, Effects]:
        space = IMAGE if kind == "image" else MEMORY
        begin, end = at * STRIDE, at * STRIDE + TAKEN
        made = barrier(*COPIED) if kind == "global" else ranged(*COPIED, space, begin, end, kind == "image")
        return access("COPY_TRANSFER_WRITE", space, begin, end), made

    def seconds(self, kind: str) -> float:
        """CPU time of a command of one more such submit."""
        start = time.thread_time()
        self._judge(self._submits[kind])
        return (time.thread_time() - start) / COMMANDS


def _resident() -> int:
    gc.collect()
    return resident_bytes()


@click.command(help=(__doc__ or "").splitlines()[0])
@click.option("--most", default=SIZES[-1], show_default=True, type=click.IntRange(SIZES[0]), help="Ranges at most.")
@click.option("--rounds", default=15, show_default=True, type=click.IntRange(1))
def main(most: int, rounds: int) -> None:
    """Measures all sizes, in turns."""
    kinds = ("global", "buffer", "image")
    title = "microseconds a command (times that of 100 ranges)"
    table = Table("ranges", *kinds, "bytes a range", title=title, box=None)
    several = [Tracked(size) for size in SIZES if size <= most]
    gc.disable()
    least = {(each.size, kind): float("inf") for each in several for kind in kinds}
    for _ in range(rounds):
        for each in several:
            for kind in kinds:
                least[each.size, kind] = min(least[each.size, kind], each.seconds(kind))
    for each in several:
        cells = [(least[each.size, kind], least[SIZES[0], kind]) for kind in kinds]
        told = [f"{1e6 * took:.2f} ({took / first:.2f})" for took, first in cells]
        table.add_row(f"{each.size:,}", *told, f"{each.bytes_a_range:,.0f}" if each.size >= 10_000 else "-")
    terminal().print(table)


if __name__ == "__main__":
    main()
