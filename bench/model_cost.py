"""Cost of asking the model beside reading and judging a trace: `python bench/model_cost.py`.

The first table: streams of copies and barriers of growing length. The last column says how the model's time compares
with a whole `vkharness check` that asks only syncval, start of the process included.

The second table: microseconds of CPU a command of the model alone, in streams of 1,000, 10,000 and 40,000 commands.
"growth" is the last of them divided by the first, "KiB" is what the model has at the end, a command. "five submits"
are those of the first table. "one submit" has them in one command buffer, and nobody waits. "read often" has one buffer
that is written once, and read by every copy. "ranged" has barriers of buffers only. "timeline" has submits of one copy
and one barrier, each of which waits for the one before it; nobody else waits.
"""

from __future__ import annotations

import gc
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rich.progress import track
from rich.table import Table

from tests.support.streams import ALL_COMMANDS, READ_WRITE, Stream, struct
from vkharness.check import Analysis
from vkharness.commands.interpret import Interpreter
from vkharness.fuzz.process_memory import resident_bytes
from vkharness.model import judge_stream_events
from vkharness.report.console import terminal
from vkharness.trace.codec import load, save

LENGTHS = (100, 300, 1_000, 3_000)
LONG = (1_000, 10_000, 40_000)


def stream_of(commands: int, submits: int = 5) -> Stream:
    """Copies between buffers, each with a barrier behind it."""
    stream = Stream()
    buffers = [stream.buffer(256) for _ in range(20)]
    for _ in range(submits):
        made = stream.begin()
        for at in range(commands // submits // 2):
            stream.copy(buffers[at % 20], buffers[(at + 7) % 20], 256)
            stream.barrier()
        stream.end()
        stream.submit(made, wait=submits > 1)
    return stream


def read_often(commands: int) -> Stream:
    """One buffer is written once, and copied from all the time."""
    stream = Stream()
    source, *targets = [stream.buffer(256) for _ in range(20)]
    stream.begin()
    stream.fill(source, 1)
    for at in range(commands // 2):
        stream.barrier()
        stream.copy(source, targets[at % len(targets)], 256)
    stream.submit(wait=False)
    return stream


def ranged(commands: int) -> Stream:
    """Copies with a barrier of the buffer that the next one reads."""
    stream = Stream()
    buffers = [stream.buffer(256) for _ in range(20)]
    masks = {"srcStageMask": ALL_COMMANDS, "srcAccessMask": READ_WRITE, "dstStageMask": ALL_COMMANDS}
    families = {"srcQueueFamilyIndex": 0xFFFFFFFF, "dstQueueFamilyIndex": 0xFFFFFFFF}
    stream.begin()
    for at in range(commands // 2):
        stream.copy(buffers[at % 20], buffers[(at + 1) % 20], 256)
        part = struct(
            "VkBufferMemoryBarrier2",
            buffer=buffers[(at + 1) % 20],
            size=256,
            dstAccessMask=READ_WRITE,
            **masks,
            **families,
        )
        stream.cmd("PipelineBarrier2", pDependencyInfo=struct("VkDependencyInfo", pBufferMemoryBarriers=[part]))
    stream.submit(wait=False)
    return stream


def timeline(commands: int) -> Stream:
    """Submits of two commands, each after the one before it by a value of one semaphore."""
    stream = Stream()
    buffers = [stream.buffer(256) for _ in range(2)]
    semaphore = stream.timeline()
    stream.begin()
    stream.copy(buffers[0], buffers[1], 256)
    stream.barrier()
    stream.end()
    for value in range(commands // 2):
        stream.submit_in_turn(semaphore, value)
    return stream


SHAPES: dict[str, Callable[[int], Stream]] = {
    "five submits": stream_of,
    "one submit": lambda commands: stream_of(commands, 1),
    "read often": read_often,
    "ranged": ranged,
    "timeline": timeline,
}


def beside_a_check() -> None:
    """Prints the first table."""
    print("commands  nodes  read + syncval ms  model ms  model / whole check")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.jsonl"
        for commands in LENGTHS:
            save(path, stream_of(commands).blocks)
            start = time.perf_counter()
            analysis = Analysis(keep_events=True).follow(load(path))
            judged = time.perf_counter()
            opinion = judge_stream_events(analysis.events)
            asked = time.perf_counter()
            code = "from vkharness.cli import main; main()"
            command = [sys.executable, "-c", code, "check", "--model", "never", str(path)]
            subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
            whole = time.perf_counter() - asked
            columns = f"{1e3 * (judged - start):17.0f} {1e3 * (asked - judged):9.0f} {(asked - judged) / whole:20.2f}"
            print(f"{commands:8,} {len(opinion.order.nodes):6,} {columns}")


def alone(shape: str, commands: int) -> tuple[float, float]:
    """Seconds and bytes of the model for one stream, in a process that does nothing else."""
    interpreter = Interpreter()
    events = [each for block in SHAPES[shape](commands).blocks for each in interpreter.step(block)]
    gc.collect()
    before, start = resident_bytes(), time.thread_time()
    opinion = judge_stream_events(events)
    assert opinion.clean
    return time.thread_time() - start, resident_bytes() - before


def main() -> None:
    """Prints both tables."""
    beside_a_check()
    table = Table("us a command", *(f"{each:,}" for each in LONG), "growth", "KiB", box=None)
    rows: dict[str, list[float]] = {name: [] for name in SHAPES}
    tasks = [(name, length) for name in SHAPES for length in LONG]
    memory = 0.0
    for name, length in track(tasks, "streams", console=terminal(stderr=True), transient=True):
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            seconds, memory = process.submit(alone, name, length).result()
        rows[name].append(1e6 * seconds / length)
        if length == LONG[-1]:
            us = rows[name]
            table.add_row(
                name, *(f"{each:.0f}" for each in us), f"{us[-1] / us[0]:.2f}", f"{memory / 1024 / length:.1f}"
            )
    terminal().print(table)


if __name__ == "__main__":
    main()
