"""Cost that the mirror and the Khronos layer add to one call: microseconds and their ratio, in one run.

    .venv/bin/python bench/mirror_cost.py [--device lavapipe] [--json FILE]

Each of three child processes (bare, mirror, layer) records the same streams with the calls' arguments already built.
"Added" is its time for a call less the bare time; times are CPU time of the calling thread. R is the number of ranges
that the command buffer has accessed before: 4-byte fills of every other word of one buffer. Along a line, the ratio
says how many layers the mirror costs, and the mirror's own figures say whether a call costs more when more is tracked.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click
from rich.table import Table

import vkharness
from vkharness.device.drivers import find_driver
from vkharness.device.process import Died, Worker
from vkharness.findings import UserError
from vkharness.layer.listen import LayerListener
from vkharness.report.console import terminal
from vkharness.rig.rig import Rig
from vkharness.spec.enums import VkStructureType

RANGES = (100, 1_000, 10_000)
CONFIGURATIONS = ("bare", "mirror", "layer")
ROUNDS = 7
SHAPES = (
    "fill", "copy", "dispatch", "global barrier", "two global barriers", "16 barriers in turn", "buffer barrier",
    "image barrier", "layout transition", "execution barrier", "submit per command",
)  # fmt: skip


def measure(configuration: str, ranges: int) -> dict[str, Any]:
    """Microseconds a call, by shape, in this process."""
    with ExitStack() as stack:
        witness = stack.enter_context(LayerListener.open()) if configuration == "layer" else None
        if configuration == "mirror":
            stack.enter_context(vkharness.attach())
        rig = stack.enter_context(Rig((), witness))
        return {shape: _time(rig, shape, ranges) for shape in SHAPES}


@contextmanager
def _scene(rig: Rig, ranges: int) -> Iterator[tuple[Any, Any, Any]]:
    """A command buffer in recording in which `ranges` ranges are tracked."""
    tracked, other = rig.buffer(max(1024, 8 * ranges)), rig.buffer(16384)
    with rig.commands() as commands:
        for at in range(ranges):
            rig.vk.lib.vkCmdFillBuffer(commands.handle, tracked.handle, 8 * at, 4, at)
        yield commands, tracked, other


def _time(rig: Rig, shape: str, ranges: int) -> float:
    """The median over rounds of the time of one call, in microseconds."""
    times = []
    for _ in range(ROUNDS):
        with _scene(rig, ranges) as (commands, tracked, other):
            if shape == "submit per command":
                calls = None
            else:
                calls, count = _calls(rig, shape, commands, tracked, other)
                start = time.thread_time()
                for index in range(count):
                    calls[index % len(calls)]()
                times.append((time.thread_time() - start) / count * 1e6)
        if calls is None:
            start = time.thread_time()
            rig.submit(commands)
            times.append((time.thread_time() - start) / ranges * 1e6)
            rig.wait()
    return statistics.median(times)


def _calls(rig: Rig, shape: str, commands: Any, tracked: Any, other: Any) -> tuple[list[Callable[[], Any]], int]:
    """Ready calls of one shape, and how many to make."""
    lib, ffi, handle = rig.vk.lib, rig.vk.ffi, commands.handle
    if shape == "fill":
        return [_fill(lib, handle, other.handle, 64 * at) for at in range(200)], 200
    if shape == "copy":
        places = [{"srcOffset": 0, "dstOffset": 64 + 64 * at, "size": 64} for at in range(200)]
        regions = [ffi.new("VkBufferCopy[]", [place]) for place in places]
        return [_copy(lib, handle, other.handle, region) for region in regions], 200
    if shape == "dispatch":
        pipeline = rig.compute("copy_words", {0: "STORAGE_BUFFER", 1: "STORAGE_BUFFER"}, push_bytes=8)
        commands.bind(pipeline, rig.descriptors(pipeline, b0=(other, 0, 1024), b1=(other, 1024, 1024)))
        commands.push_constants(pipeline, 1, 1)
        return [lambda: lib.vkCmdDispatch(handle, 1, 1, 1)], 100
    return _barriers(rig, shape, handle, tracked), 160


def _fill(lib: Any, handle: Any, buffer: Any, offset: int) -> Callable[[], Any]:
    return lambda: lib.vkCmdFillBuffer(handle, buffer, offset, 64, 1)


def _copy(lib: Any, handle: Any, buffer: Any, region: Any) -> Callable[[], Any]:
    return lambda: lib.vkCmdCopyBuffer(handle, buffer, buffer, 1, region)


def _barriers(rig: Rig, shape: str, handle: Any, tracked: Any) -> list[Callable[[], Any]]:
    lib, ffi = rig.vk.lib, rig.vk.ffi
    null = ffi.NULL
    keep: list[Any] = []

    def call(src: int, dst: int, memory: Any = null, buffer: Any = null, image: Any = null) -> Callable[[], Any]:
        keep.extend((memory, buffer, image))
        counts = [0 if each == null else len(each) for each in (memory, buffer, image)]
        return lambda: (lib.vkCmdPipelineBarrier(
            handle, src, dst, 0, counts[0], memory, counts[1], buffer, counts[2], image), keep)  # fmt: skip

    def memory(*pairs: tuple[int, int]) -> Any:
        return ffi.new(
            "VkMemoryBarrier[]",
            [{"sType": VkStructureType.MEMORY_BARRIER, "srcAccessMask": s, "dstAccessMask": d} for s, d in pairs],
        )

    transfer, compute = 0x1000, 0x800
    if shape == "global barrier":
        return [call(transfer, transfer, memory((0x1000, 0x800)))]
    if shape == "two global barriers":
        return [call(transfer, transfer, memory((0x1000, 0x800), (0x1000, 0x1000)))]
    if shape == "16 barriers in turn":
        return [call(transfer, transfer | compute << (at & 1), memory((0x1000, 1 << at))) for at in range(16)]
    if shape == "execution barrier":
        return [call(transfer, compute)]
    families = {"srcQueueFamilyIndex": 0xFFFFFFFF, "dstQueueFamilyIndex": 0xFFFFFFFF}
    masks = {"srcAccessMask": 0x1000, "dstAccessMask": 0x800}
    if shape == "buffer barrier":
        part = {
            "sType": VkStructureType.BUFFER_MEMORY_BARRIER,
            **masks,
            **families,
            "buffer": tracked.handle,
            "offset": 0,
            "size": 4,
        }
        return [call(transfer, transfer, null, ffi.new("VkBufferMemoryBarrier[]", [part]))]
    image = rig.image()
    whole = {"aspectMask": 1, "levelCount": 1, "layerCount": 1}
    layouts = (1, 1) if shape == "image barrier" else (0, 1)
    kind = {"sType": VkStructureType.IMAGE_MEMORY_BARRIER, "oldLayout": layouts[0], "newLayout": layouts[1]}
    part = {**kind, **masks, **families, "image": image.handle, "subresourceRange": whole}
    return [call(transfer, transfer, null, null, ffi.new("VkImageMemoryBarrier[]", [part]))]


@click.command()
@click.option("--device", default="lavapipe", help="driver to record on")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="also write the figures here")
def main(device: str, json_file: Path | None) -> None:
    """Runs the three configurations and prints the table."""
    figures: dict[str, dict[int, dict[str, float]]] = {}
    console = terminal()
    with console.status("measuring") if console.is_terminal else ExitStack():
        for configuration in CONFIGURATIONS:
            figures[configuration] = {}
            for ranges in RANGES:
                with Worker(find_driver(device), packages=("bench",)) as worker:
                    answer = worker.call(
                        "bench.mirror_cost:measure", {"configuration": configuration, "ranges": ranges}
                    )
                if isinstance(answer, Died):
                    raise UserError(f"{configuration} with {ranges} ranges: the process was {answer.reason}")
                figures[configuration][ranges] = answer
    console.print(_table(figures))
    if json_file:
        json_file.write_text(json.dumps(figures, indent=1))


def _table(figures: dict[str, dict[int, dict[str, float]]]) -> Table:
    table = Table(title="microseconds added to a call: mirror / layer = ratio", box=None)
    table.add_column("call")
    table.add_column("bare", justify="right")
    for ranges in RANGES:
        table.add_column(f"R = {ranges:,}", justify="right")
    for shape in SHAPES:
        cells = [shape, f"{figures['bare'][RANGES[0]][shape]:.1f}"]
        for ranges in RANGES:
            bare = figures["bare"][ranges][shape]
            mirror, layer = (figures[name][ranges][shape] - bare for name in ("mirror", "layer"))
            ratio = f"{mirror / layer:.1f}" if layer > 0 else "-"
            cells.append(f"{mirror:.1f} / {layer:.1f} = {ratio}")
        table.add_row(*cells)
    return table


if __name__ == "__main__":
    main()
