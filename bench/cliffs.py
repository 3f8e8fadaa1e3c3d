"""With which exponent does the cost grow with what a program has more of?

    .venv/bin/python bench/cliffs.py [--only SHAPE]... [--job JOB]... [--limit 20]

1 is in proportion, 2 with the square, 0 not at all. Each shape repeats one thing; each job runs in a process of its own
with so many, twice and four times as many, twice each; the lesser time counts. The exponent is that of the last
doubling. "*" stands for a job that ended at the limit of seconds of the processor.

The first lines are about traces: `check` (syncval, with what interprets the calls), the model alone, `advise`,
`explain` and `graph`. The last ones are about a live session on a driver: what submits of one command cost beside so
many mapped bytes or mappings, and what so many objects or submits cost. What grows with time, where nothing is more,
is in `bench/growth.py`.
"""

from __future__ import annotations

import math
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.growth import live_rig
from tests.support.streams import ALL_COMMANDS, DST, READ_WRITE, Stream, struct
from vkharness.advising.advise import advise
from vkharness.check import Analysis
from vkharness.device.drivers import environment, find_driver
from vkharness.model import judge, judge_stream_events
from vkharness.model.explanation import explain_pairs
from vkharness.report.graph import draw, summary
from vkharness.rig.rig import Rig
from vkharness.trace.calls import Block
from vkharness.trace.effects import StreamEvent
from vkharness.trace.work_budget import share

NOISE = 0.02
"""Seconds in which nothing is said about growth."""
TIMES = 2
"""Runs of which the least counts."""

# -- traces ------------------------------------------------------------------------------------------------------------


def events(stream: Stream, count: int) -> None:
    """A fill and the set of an event each, and then a wait for each."""
    dependency = struct("VkDependencyInfo", pMemoryBarriers=[_everything()])
    stream.begin()
    buffer = stream.buffer(4 * count)
    made = [stream.make("vkCreateEvent", "pEvent", struct("VkEventCreateInfo")) for _ in range(count)]
    for at, event in enumerate(made):
        stream.fill(buffer, 1, 4 * at, 4)
        stream.cmd("SetEvent2", event=event, pDependencyInfo=dependency)
    for at, event in enumerate(made):
        stream.cmd("WaitEvents2", pEvents=[event], pDependencyInfos=[dependency])
        stream.fill(buffer, 2, 4 * at, 4)
    stream.submit()


def signals(stream: Stream, count: int) -> None:
    """Submits that each signal a semaphore, and then another queue that waits for each."""
    other = stream.id()
    stream.call("vkGetDeviceQueue", device=stream.device, queueFamilyIndex=1, pQueue=other)
    made = [stream.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo")) for _ in range(count)]
    for semaphore in made:
        _fill_of_its_own(stream)
        _submitted(stream, stream.queue, signals=[semaphore])
    for semaphore in made:
        _fill_of_its_own(stream)
        _submitted(stream, other, waits=[semaphore])


def submits(stream: Stream, count: int) -> None:
    """Submits of a barrier and a fill each, for which nobody waits."""
    buffer = stream.buffer(256)
    for _ in range(count):
        stream.begin()
        stream.barrier()
        stream.fill(buffer, 1)
        stream.submit(wait=False)


def secondaries(stream: Stream, count: int) -> None:
    """Secondary command buffers of a barrier and a fill each, that one primary executes."""
    buffer, made = stream.buffer(256), []
    for _ in range(count):
        made.append(stream.begin(1))
        stream.barrier()
        stream.fill(buffer, 1)
        stream.end()
    stream.begin()
    for each in made:
        stream.cmd("ExecuteCommands", pCommandBuffers=[each])
    stream.submit()


def objects(stream: Stream, count: int) -> None:
    """Buffers that are filled and never destroyed."""
    made = [stream.buffer(256) for _ in range(count)]
    stream.begin()
    for each in made:
        stream.fill(each, 1)
    stream.submit()


def subresources(stream: Stream, count: int) -> None:
    """Layers of one image, each made ready and cleared."""
    image = stream.image((4, 4, 1), array=count)
    stream.begin()
    stream.transition(image, 0, DST)
    for layer in range(count):
        stream.clear(image, (0, 0, 0, 0), layer=layer)
    stream.transition(image, DST, DST)
    stream.submit()


def queues(stream: Stream, count: int) -> None:
    """Queues, each of which waits for the one before by a semaphore and fills the same buffer."""
    buffer, before = stream.buffer(256), list[int]()
    for at in range(count):
        queue, signaled = stream.id(), stream.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo"))
        stream.call("vkGetDeviceQueue", device=stream.device, queueFamilyIndex=1, queueIndex=at, pQueue=queue)
        stream.begin()
        stream.fill(buffer, 1)
        stream.end()
        _submitted(stream, queue, before, [signaled])
        before = [signaled]


def findings(stream: Stream, count: int) -> None:
    """Pairs of fills of the same bytes, each pair a hazard of its own."""
    buffer = stream.buffer(4 * count)
    stream.begin()
    for at in range(count):
        stream.fill(buffer, 1, 4 * at, 4)
        stream.fill(buffer, 2, 4 * at, 4)
    stream.submit()


def _everything() -> dict[str, Any]:
    masks = {"srcStageMask": ALL_COMMANDS, "dstStageMask": ALL_COMMANDS}
    return struct("VkMemoryBarrier2", **masks, srcAccessMask=READ_WRITE, dstAccessMask=READ_WRITE)


def _fill_of_its_own(stream: Stream) -> None:
    buffer = stream.buffer(256)
    stream.begin()
    stream.fill(buffer, 1)
    stream.end()


def _submitted(stream: Stream, queue: int, waits: list[int] | None = None, signals: list[int] | None = None) -> None:
    """vkQueueSubmit of the current commands."""
    more = {"pWaitSemaphores": waits or [], "pWaitDstStageMask": [ALL_COMMANDS] * len(waits or [])}
    batch = struct("VkSubmitInfo", pCommandBuffers=[stream.commands], pSignalSemaphores=signals or [], **more)
    stream.call("vkQueueSubmit", queue=queue, pSubmits=[batch])


SHAPES: dict[str, tuple[Callable[[Stream, int], None], int]] = {
    "events": (events, 50),
    "signals": (signals, 100),
    "submits": (submits, 500),
    "secondaries": (secondaries, 500),
    "objects": (objects, 1000),
    "subresources": (subresources, 500),
    "queues": (queues, 50),
    "findings": (findings, 200),
}
"""Functions that make something repeat, and how often it does in the smallest trace."""


def _check(blocks: list[Block]) -> Callable[[], object]:
    return lambda: Analysis().follow(blocks)


def _model(blocks: list[Block]) -> Callable[[], object]:
    heard: list[StreamEvent] = Analysis(keep_events=True).follow(blocks).events
    return lambda: judge_stream_events(heard)


def _graph(blocks: list[Block]) -> Callable[[], object]:
    def drawn() -> None:
        opinion = judge(blocks)
        conflicts = opinion.everything
        draw(opinion, conflicts[0] if conflicts else None, 24)
        for _ in summary(opinion, conflicts, {}):
            pass

    return drawn


JOBS: dict[str, Callable[[list[Block]], Callable[[], object]]] = {
    "check": _check,
    "model": _model,
    "advise": lambda blocks: lambda: advise(blocks, 1e6),
    "explain": lambda blocks: lambda: explain_pairs(blocks, 20),
    "graph": _graph,
}
"""Each takes a trace, and answers with what is timed."""


def _trace_cost(shape: str, job: str, count: int) -> float:
    stream = Stream()
    SHAPES[shape][0](stream, count)
    share(1e9)
    work = JOBS[job](stream.blocks)
    start = time.process_time()
    work()
    return time.process_time() - start


# -- live sessions -----------------------------------------------------------------------------------------------------

REPEATS = 20
"""Submits of which the mean is a cost."""


def mapped_bytes(rig: Rig, count: int) -> Callable[[], object]:
    """MiB of one mapping, which were written before (the rig clears memory), beside submits of one fill. The first of
    them learns what is mapped, and is not counted."""
    size = count << 20
    memory = rig.memory(size)
    rig.vk.vkMapMemory(rig.device, memory, 0, size, 0)
    _submits(rig, 1)()
    return _submits(rig, REPEATS)


def mapped_again(rig: Rig, count: int) -> Callable[[], object]:
    """MiB of memory that is mapped, written in one place and unmapped again and again, beside submits of one fill."""
    size, submit = count << 20, _submits(rig, 1)
    memory = rig.memory(size)

    def work() -> None:
        for at in range(REPEATS):
            rig.vk.vkMapMemory(rig.device, memory, 0, size, 0)[at] = b"\1"
            rig.vk.vkUnmapMemory(rig.device, memory)
            submit()

    return work


def mappings(rig: Rig, count: int) -> Callable[[], object]:
    """Mappings of 4 KiB each, beside submits of one fill, as above."""
    for _ in range(count):
        rig.vk.vkMapMemory(rig.device, rig.memory(4096), 0, 4096, 0)
    _submits(rig, 1)()
    return _submits(rig, REPEATS)


def live_submits(rig: Rig, count: int) -> Callable[[], object]:
    """Submits of one fill."""
    return _submits(rig, count)


def live_objects(rig: Rig, count: int) -> Callable[[], object]:
    """Buffers that are made, and never destroyed."""
    return lambda: [rig.buffer(256) for _ in range(count)]


def _submits(rig: Rig, count: int) -> Callable[[], object]:
    target = rig.buffer(256)

    def work() -> None:
        for _ in range(count):
            with rig.commands() as commands:
                commands.fill(target, 1)
            rig.submit(commands)
            rig.wait()

    return work


LIVE: dict[str, tuple[Callable[[Rig, int], Callable[[], object]], int]] = {
    "mapped MiB": (mapped_bytes, 64),
    "mapped again": (mapped_again, 16),
    "mappings": (mappings, 1000),
    "live submits": (live_submits, 200),
    "live objects": (live_objects, 500),
}
"""Functions that give a program something, and how much of it in the smallest run."""


def _live_cost(shape: str, count: int) -> float:
    with live_rig() as (_, rig):
        work = LIVE[shape][0](rig, count)
        start = time.thread_time()
        work()
        return time.thread_time() - start


# -- the tables --------------------------------------------------------------------------------------------------------


def costs(limit: int, job: Callable[..., float], *which: Any, count: int) -> Iterator[float | None]:
    """Seconds for a count, twice and four times as much; None for those that came to no end."""
    for times in (1, 2, 4):
        found = [_in_a_process(limit, job, *which, times * count) for _ in range(TIMES)]
        ended = [each for each in found if each is not None]
        yield min(ended, default=None)
        if not ended:
            return


def _in_a_process(limit: int, job: Callable[..., float], *arguments: Any) -> float | None:
    context = get_context("fork")
    ours, theirs = context.Pipe(duplex=False)

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        theirs.send(job(*arguments))

    process = context.Process(target=work)
    process.start()
    theirs.close()
    try:
        return float(ours.recv())
    except EOFError:
        return None
    finally:
        process.join()


def exponent(seconds: list[float | None]) -> str:
    """Returns the exponent of growth over the last doubling; "*" where a time is missing."""
    last = seconds[-1]
    if last is None or seconds[-2] is None:
        return "*"
    return f"{max(0.0, math.log2(max(last, NOISE) / max(seconds[-2], NOISE))):.1f}"


def _cell(seconds: list[float | None]) -> str:
    said = " ".join("*" if each is None else f"{each:.2f}" for each in seconds)
    return f"^{exponent(seconds)} ({said})"


@click.command(help=(__doc__ or "").splitlines()[0])
@click.option("--only", "shapes", multiple=True, type=click.Choice([*SHAPES, *LIVE]), help="This shape only.")
@click.option("--job", "jobs", multiple=True, type=click.Choice(list(JOBS)), help="This job only, of traces.")
@click.option("--limit", default=20, show_default=True, help="Seconds of the processor for one cost.")
@click.option("--device", default="lavapipe", show_default=True, help="The driver of live sessions.")
def main(shapes: tuple[str, ...], jobs: tuple[str, ...], limit: int, device: str) -> None:
    """Both tables, line by line."""
    os.environ.update(environment(find_driver(device)))
    chosen, asked = shapes or (*SHAPES, *LIVE), jobs or tuple(JOBS)
    for shape in chosen:
        if shape in SHAPES:
            base = SHAPES[shape][1]
            for job in asked:
                found = list(costs(limit, _trace_cost, shape, job, count=base))
                click.echo(f"{shape:14} {base:5} {job:8} {_cell(found)}")
        else:
            base = LIVE[shape][1]
            click.echo(f"{shape:14} {base:5} {'session':8} {_cell(list(costs(limit, _live_cost, shape, count=base)))}")


if __name__ == "__main__":
    main()
