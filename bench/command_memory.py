"""Memory of a recorded command: bytes a command, by part, and the growth of the process.

    .venv/bin/python bench/command_memory.py [--commands 1000000] [--buffers 50]

Command buffers get copies between 200 buffers with a barrier after nine of them, as in `bench/frame.py`: "alike" are
the same 2,000 commands again and again, and "fresh" copies begin at other bytes each time. All command buffers are
kept, ended and submitted once. Columns: what `vkharness.commands` keeps (commands, and plans with their effects), what
syncval keeps beside it, all of that as Python counts it, and how much more memory the process has. Each row is a
process of its own. No driver is needed.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import click
from rich.progress import track
from rich.table import Table

from vkharness.check import Analysis
from vkharness.fuzz.process_memory import resident_bytes
from vkharness.report.console import terminal
from vkharness.trace.calls import Call

BUFFERS = 200
BUFFER_BYTES = 1 << 20
PARTS = {
    "commands": ("harness/vkharness/trace/recorded_commands.py", "harness/vkharness/commands/interpret.py"),
    "plans": ("harness/vkharness/commands/", "harness/vkharness/trace/effects.py"),
    "syncval": ("harness/vkharness/syncval/", "harness/vkharness/spans.py", "harness/vkharness/native/"),
}
"""The files that allocate what belongs to a part; the first that fits counts."""
DEVICE, QUEUE, POOL, MEMORY = 1, 2, 3, 4
FIRST = 100
"""The id of the first buffer; command buffers follow the buffers."""


def calls(commands: int, command_buffers: int, fresh: bool) -> Iterator[Call]:
    """The calls of the program; what of the arguments does not matter is left out."""
    index = 0
    queued: list[tuple[str, dict[str, Any], int | None]] = []
    for at in range(BUFFERS):
        info = {"size": BUFFER_BYTES, "flags": 0}
        queued.append(("vkCreateBuffer", {"device": DEVICE, "pCreateInfo": info, "pBuffer": FIRST + at}, 0))
        place = {"device": DEVICE, "buffer": FIRST + at, "memory": MEMORY, "memoryOffset": at * BUFFER_BYTES}
        queued.append(("vkBindBufferMemory", place, 0))
    ids = [FIRST + BUFFERS + at for at in range(command_buffers)]
    info = {"commandPool": POOL, "level": 0}
    queued.append(("vkAllocateCommandBuffers", {"device": DEVICE, "pAllocateInfo": info, "pCommandBuffers": ids}, 0))
    for name, args, result in queued:
        yield Call(index := index + 1, name, args, result)
    share = commands // command_buffers
    for number, id in enumerate(ids):
        begin = {"flags": 0, "pNext": None, "pInheritanceInfo": None}
        yield Call(index := index + 1, "vkBeginCommandBuffer", {"commandBuffer": id, "pBeginInfo": begin}, 0)
        for at in range(share):
            yield _command(index := index + 1, id, at, number * share + at if fresh else 0)
        yield Call(index := index + 1, "vkEndCommandBuffer", {"commandBuffer": id}, 0)
        submit = {"pNext": None, "pCommandBuffers": [id], "pWaitSemaphores": [], "pSignalSemaphores": []}
        submit["pWaitDstStageMask"] = []
        yield Call(index := index + 1, "vkQueueSubmit", {"queue": QUEUE, "pSubmits": [submit], "fence": 0}, 0)
        yield Call(index := index + 1, "vkQueueWaitIdle", {"queue": QUEUE}, 0)


def _command(index: int, command_buffer: int, at: int, start: int) -> Call:
    """A copy, or every tenth time a barrier over the buffer that was written."""
    group, part = divmod(at, 10)
    target = FIRST + group % BUFFERS
    site = f"frame.py:{part}"
    if part == 9:
        masks = {"srcAccessMask": 0x1000, "dstAccessMask": 0x1800}
        barrier = {**masks, "buffer": target, "offset": 0, "size": BUFFER_BYTES}
        barrier |= {"srcQueueFamilyIndex": 0xFFFFFFFF, "dstQueueFamilyIndex": 0xFFFFFFFF}
        lists = {"pMemoryBarriers": None, "pBufferMemoryBarriers": [barrier], "pImageMemoryBarriers": None}
        stages = {"srcStageMask": 0x1000, "dstStageMask": 0x1000, "dependencyFlags": 0}
        return Call(index, "vkCmdPipelineBarrier", {"commandBuffer": command_buffer, **stages, **lists}, None, site)
    source = FIRST + (group - 1 - part) % BUFFERS
    region = {"srcOffset": 4 * (start % 1000), "dstOffset": part * 65536 + start // 1000 % 16384, "size": 256}
    where = {"srcBuffer": source, "dstBuffer": target, "pRegions": [region]}
    return Call(index, "vkCmdCopyBuffer", {"commandBuffer": command_buffer, **where}, None, site)


def measured(commands: int, command_buffers: int, fresh: bool, through: str, traced: bool) -> dict[str, float]:
    """Bytes a command, after everything was recorded: by part with `traced`, else how much the process grew."""
    for _ in Analysis().follow(calls(1000, 2, fresh)).findings:
        pass
    gc.collect()
    before = resident_bytes()
    if traced:
        tracemalloc.start()
    analysis = Analysis()
    for call in calls(commands, command_buffers, fresh):
        if through == "record" and call.name in analysis.recorded_alone:
            analysis.record(call.index, call.name, call.args, call.site)
        else:
            analysis.step(call)
    if analysis.verdict != "clean":
        raise click.ClickException(f"the mirror says {analysis.verdict}: {analysis.findings[:1]}")
    gc.collect()
    if not traced:
        return {"process": (resident_bytes() - before) / commands}
    found = dict.fromkeys(PARTS, 0.0)
    found["all"] = tracemalloc.get_traced_memory()[0] / commands
    for each in tracemalloc.take_snapshot().statistics("filename"):
        name = each.traceback[0].filename
        part = next((part for part, files in PARTS.items() if any(file in name for file in files)), None)
        if part is not None:
            found[part] += each.size / commands
    return found


@click.command(help=(__doc__ or "").splitlines()[0])
@click.option("--commands", default=1_000_000, help="commands that are recorded")
@click.option("--buffers", default=50, help="command buffers that get them")
def main(commands: int, buffers: int) -> None:
    """Runs every row and prints the table."""
    console = terminal()
    columns = (*PARTS, "all", "process")
    table = Table("commands", "through", *columns, title="bytes a recorded command", box=None)
    rows = [(fresh, through) for fresh in (False, True) for through in ("record", "check")]
    for fresh, through in track(rows, "measuring", console=console, transient=True, disable=not console.is_terminal):
        figures: dict[str, float] = {}
        for traced in (True, False):
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                figures |= pool.submit(measured, commands, buffers, fresh, through, traced).result()
        table.add_row("fresh" if fresh else "alike", through, *(f"{figures[each]:.0f}" for each in columns))
    console.print(table)


if __name__ == "__main__":
    main()
