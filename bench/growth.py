"""Does a round of work cost the same late as early, in one process whose resources are never destroyed?

    .venv/bin/python bench/growth.py [--rounds 2000] [--seed 1]
    .venv/bin/python bench/growth.py --session [--frames 10000]

A round makes buffers, an image, a render pass, a framebuffer and descriptor sets, records 40 commands over them with
barriers between, submits them to one of two queues and now and then waits: for its fence, for a value of a timeline, or
for the queue. In the second row the host waits for nothing, ever. "growth" is the median CPU time of the last 20 rounds
divided by that of rounds 20 to 40. "steps" are states met by changes over everything, in a round of either part.
"awake" and "asleep" are the states that a change maps at once, and later if ever
(`vkharness.syncval.context`). The memory is what the process has more at the end than after round
40: nothing that was made is destroyed.

With `--session` a program draws frames on a driver under a live session: two frames in flight, each with a fence, a
command buffer that is recorded anew, descriptors that are written anew, an upload by the host and a result that it
reads. What Python allocated (tracemalloc) and what the process has are printed on the way: neither may grow.
"""

from __future__ import annotations

import gc
import os
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import click
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import vkharness
from tests.support.rounds import WAITS, Rounds
from vkharness.check import Analysis
from vkharness.device.drivers import environment, find_driver
from vkharness.fuzz.process_memory import resident_bytes
from vkharness.report.console import terminal
from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer, RigDescriptorSet
from vkharness.rig.render_passes import RigAttachment, RigSubpass
from vkharness.rig.rig import Rig

EARLY = 40
"""The round at which memory is first measured."""


def follow(rounds: int, seed: int, waits: tuple[str, ...], tell: Callable[[str], None]) -> tuple[str, ...]:
    """Judges all rounds; the cells of its row."""
    stream, mirror = Rounds(seed, waits), Analysis()
    context = mirror._validator._context
    costs, steps, memory = list[float](), list[int](), list[float]()
    for number in range(1, rounds + 1):
        blocks, before = stream.round(), context.store.sizes().steps
        start = time.thread_time()
        for block in blocks:
            mirror.step(block)
        costs.append(time.thread_time() - start)
        steps.append(context.store.sizes().steps - before)
        if number in (EARLY, rounds):
            gc.collect()
            memory.append(_resident())
        if number % 20 == 0:
            tell(
                f"{number}: {1e3 * median(costs[-20:]):.1f} ms, {median(steps[-20:]):.0f} steps, {_resident():.0f} MiB"
            )
    first, last = slice(EARLY - 20, EARLY), slice(-20, None)
    return (
        f"{median(costs[last]) / median(costs[first]):.2f}",
        f"{1e3 * median(costs[first]):.0f}",
        f"{median(steps[first]):.0f}, {median(steps[last]):.0f}",
        f"{context.ranges:,}",
        f"{context.store.sizes().awake}",
        f"{context.store.sizes().sleeping:,}",
        f"{memory[1] - memory[0]:.0f}",
    )


@contextmanager
def live_rig() -> Iterator[tuple[vkharness.Session, Rig]]:
    """A device in a live session, which has to find everything clean."""
    with vkharness.attach() as session, Rig() as rig:
        yield session, rig
        rig.wait()
        if session.verdict != "clean":
            raise click.ClickException(f"the session says {session.verdict}: {session.findings[:1]}")


def live(frames: int) -> Table:
    """Draws frames in this process, and measures after each tenth of them."""
    table = Table("frames", "Python's KiB", "MiB of the process", box=None)
    with live_rig() as (_, rig):
        drawn = Frames(rig)
        tracemalloc.start()
        for number in range(1, frames + 1):
            drawn.frame(number)
            if number % (frames // 10) == 0:
                gc.collect()
                table.add_row(f"{number:,}", f"{tracemalloc.get_traced_memory()[0] / 1024:,.0f}", f"{_resident():.0f}")
    return table


class Frames:
    """A program with two frames in flight."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._image = rig.target()
        with rig.commands() as commands:
            commands.transition(self._image)
        rig.submit(commands)
        rig.wait()
        self._pass = rig.render_pass(
            [RigAttachment(load="CLEAR", initial="GENERAL", final="GENERAL")], [RigSubpass([(0, "GENERAL")])]
        )
        self._frame = rig.framebuffer(self._pass, [rig.view(self._image)])
        self._pipeline = rig.compute("copy_words")
        self._slots = [self._slot() for _ in range(2)]

    def _slot(self) -> tuple[Any, Commands, list[RigBuffer], RigDescriptorSet]:
        buffers = [self._rig.buffer(1024) for _ in range(4)]
        with self._rig.commands() as commands:
            pass
        return self._rig.fence(), commands, buffers, self._rig.descriptors(self._pipeline, b0=buffers[0], b1=buffers[1])

    def frame(self, number: int) -> None:
        """One frame: upload, dispatch, render pass, copy, and the host reads what the frame before the last made."""
        rig = self._rig
        fence, commands, buffers, held = self._slots[number % 2]
        if number > 2:
            rig.wait(fence)
            rig.reset_fence(fence)
            rig.host_read(buffers[3])
        rig.host_write(buffers[0], number.to_bytes(4, "little") * 64)
        rig.update(held, b0=buffers[0], b1=buffers[1 + number // 2 % 2])
        with rig.commands(commands):
            commands.barrier("", "ALL_COMMANDS/MEMORY_WRITE", "ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE")
            commands.bind(self._pipeline, held)
            commands.dispatch()
            commands.barrier("", "COMPUTE_SHADER/SHADER_WRITE", "COPY/TRANSFER_READ")
            commands.begin_pass(self._pass, self._frame, clear=[0])
            commands.end_pass()
            commands.copy(buffers[1 + number // 2 % 2], buffers[3], (0, 0, 256))
            commands.barrier("", "COPY/TRANSFER_WRITE", "HOST/HOST_READ")
        rig.submit(commands, fence=fence)


def _resident() -> float:
    """MiB of this process."""
    return resident_bytes() / (1 << 20)


@click.command(help=(__doc__ or "").splitlines()[0])
@click.option("--rounds", default=2_000, show_default=True, type=click.IntRange(60))
@click.option("--seed", default=1, show_default=True)
@click.option("--session", is_flag=True, help="Draw frames on a driver under a live session instead.")
@click.option("--frames", default=10_000, show_default=True, type=click.IntRange(10))
@click.option("--device", default="lavapipe", show_default=True, help="The driver of that session.")
@click.option("--verbose", is_flag=True, help="Say on the way what rounds cost.")
def main(rounds: int, seed: int, session: bool, frames: int, device: str, verbose: bool) -> None:
    """Both rows; or the table of a session."""
    if session:
        os.environ.update(environment(find_driver(device)))
        terminal().print(live(frames))
        return
    table = Table("the host waits", "growth", "ms a round", "steps", "ranges", "awake", "asleep", "MiB more", box=None)
    tell: Callable[[str], None] = partial(click.echo, err=True) if verbose else lambda text: None
    for name, waits in {"now and then": WAITS, "never": ("none",)}.items():
        table.add_row(name, *follow(rounds, seed, waits, tell))
    terminal().print(table)


if __name__ == "__main__":
    main()
