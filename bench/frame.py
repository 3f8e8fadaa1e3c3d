"""What the mirror adds to a frame, beside what each Khronos layer adds: microseconds a command and ratios, in one run.

    .venv/bin/python bench/frame.py [--device lavapipe] [--rounds 9] [--json FILE]

A frame is 2,000 commands over 200 buffers, 200 of them barriers, recorded anew each round, submitted once and waited
for. All frames of a stream are alike, but for "copies, fresh offsets": there each frame copies other bytes, so that
nothing helps that is known of the last one. Each configuration (bare, mirror, every layer that is installed) runs it in
a process of its own, with arguments already built, through the package's own functions and once through its `lib`.
Times are CPU time of the calling thread, the least of all rounds; "added" is a configuration's time less the bare time.
The last column is what counts on any machine: how many times as much as each layer the mirror adds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import click
from rich.progress import track
from rich.table import Table

import harness
from harness.device.drivers import find_driver
from harness.device.process import Died, Worker
from harness.findings import UserError
from harness.layer.listen import LayerListener
from harness.layer.manifest import find_layers
from harness.report.console import terminal
from harness.rig.core import RigBuffer
from harness.rig.render_passes import RigAttachment, RigSubpass
from harness.rig.rig import Rig
from harness.spec.enums import VkPipelineBindPoint, VkStructureType

GROUPS = 200
"""Groups of ten commands; the last of each is a barrier. Each writes one buffer of its own."""
WARM_UP = 2
"""Frames that are not measured."""
COPY_READ, COPY_WRITE = (0x1_0000_0000, 0x800), (0x1_0000_0000, 0x1000)
SHADER_READ, SHADER_WRITE = (0x800, 0x2_0000_0000), (0x800, 0x4_0000_0000)
COLOR = (0x400, 0x180)
"""(VkPipelineStageFlagBits2, VkAccessFlagBits2) of each side of the barriers."""
BUFFER_BYTES = 4096
COMPUTE, GRAPHICS = VkPipelineBindPoint.COMPUTE, VkPipelineBindPoint.GRAPHICS

Recorded = tuple[str, tuple[Any, ...]]
"""One command without its command buffer: name and arguments."""
Figures = dict[str, dict[str, float]]
"""Microseconds a command by stream, of "record" and "submit"."""


def measure(configuration: str, rounds: int) -> Figures:
    """Every stream in this process. `configuration` is bare, mirror, or the version of a layer."""
    with ExitStack() as stack:
        witness = session = None
        if configuration == "mirror":
            session = stack.enter_context(harness.attach())
        elif configuration != "bare":
            witness = stack.enter_context(LayerListener.open(configuration))
        rig = stack.enter_context(Rig((), witness))
        figures = {}
        for name, make in STREAMS.items():
            commands = make(rig)
            figures[name] = recorded_and_submitted(rig, rig.vk, commands, rounds)
        fresh = copies(rig, WARM_UP + rounds)
        figures["copies, fresh offsets"] = recorded_and_submitted(rig, rig.vk, fresh, rounds)
        figures["copies, through lib"] = recorded_and_submitted(rig, rig.vk.lib, copies(rig), rounds)
        if session is not None and session.verdict != "clean":
            raise UserError(f"the mirror says {session.verdict}: {[f.message for f in session.findings[:1]]}")
        if witness is not None and witness.take(0):
            raise UserError(f"the layer {configuration} says: {witness.messages[0]}")
    return figures


def recorded_and_submitted(rig: Rig, functions: Any, frames: list[list[Recorded]], rounds: int) -> dict[str, float]:
    """Records and submits frames, one after the other, over and over; the least time a command of each part."""
    made = [[(getattr(functions, name), arguments) for name, arguments in recorded] for recorded in frames]
    times: dict[str, list[float]] = {"record": [], "submit": []}
    commands = None
    for calls in islice(cycle(made), WARM_UP + rounds):
        with rig.commands(commands) as commands:
            handle = commands.handle
            start = time.thread_time()
            for function, rest in calls:
                function(handle, *rest)
            times["record"].append(time.thread_time() - start)
        start = time.thread_time()
        rig.submit(commands)
        times["submit"].append(time.thread_time() - start)
        rig.wait()
    return {part: min(each[WARM_UP:]) / len(calls) * 1e6 for part, each in times.items()}


# -- the streams -------------------------------------------------------------------------------------------------------


def copies(rig: Rig, different: int = 1) -> list[list[Recorded]]:
    """Nine copies from the nine buffers before it into one buffer, and a barrier over it: so many different frames."""
    buffers = _buffers(rig)
    return [_copies(rig, buffers, 4 * at) for at in range(different)]


def _copies(rig: Rig, buffers: list[RigBuffer], start: int) -> list[Recorded]:
    made: list[Recorded] = []
    for at, target in enumerate(buffers):
        for part in range(9):
            sizes = {"srcOffset": start, "dstOffset": start + part * 256, "size": 256}
            region = rig.vk.ffi.new("VkBufferCopy[]", [sizes])
            made.append(("vkCmdCopyBuffer", (buffers[at - 1 - part].handle, target.handle, 1, region)))
        made.append(_barrier(rig, COPY_WRITE, COPY_READ, COPY_WRITE, target))
    return made


def dispatches(rig: Rig) -> list[list[Recorded]]:
    """Three dispatches that read the buffer before and write parts of one buffer, each bound anew; a barrier."""
    pipeline = rig.compute("copy_words", {0: "STORAGE_BUFFER_DYNAMIC", 1: "STORAGE_BUFFER_DYNAMIC"}, push_bytes=8)
    ffi, buffers = rig.vk.ffi, _buffers(rig)
    words = ffi.new("uint32_t[]", [64, 1])
    made: list[Recorded] = []
    for at, target in enumerate(buffers):
        held = rig.descriptors(pipeline, b0=(buffers[at - 1], 0, 256), b1=(target, 0, 256))
        sets = ffi.new("VkDescriptorSet[]", [held.handle])
        for part in range(3):
            offsets = ffi.new("uint32_t[]", [256 * part, 256 * part])
            bound = (COMPUTE, pipeline.layout, 0, 1, sets, 2, offsets)
            made.append(("vkCmdBindDescriptorSets", bound))
            made.append(("vkCmdPushConstants", (pipeline.layout, pipeline.shape.push_stages, 0, 8, words)))
            made.append(("vkCmdDispatch", (1, 1, 1)))
        made.append(_barrier(rig, SHADER_WRITE, SHADER_READ, SHADER_WRITE, target))
    return [[("vkCmdBindPipeline", (COMPUTE, pipeline.handle)), *made]]


def draws(rig: Rig) -> list[list[Recorded]]:
    """A render pass with three draws, each with a vertex buffer of its own, and a barrier over its target."""
    ffi, buffers, image = rig.vk.ffi, _buffers(rig), rig.target()
    with rig.commands() as first:
        first.transition(image)
    rig.submit(first)
    rig.wait()
    made_pass = rig.render_pass(
        [RigAttachment(load="LOAD", initial="GENERAL", final="GENERAL")], [RigSubpass([(0, "GENERAL")])]
    )
    frame = rig.framebuffer(made_pass, [rig.view(image)])
    pipeline = rig.graphics(
        "constant_color", "vertex_position", render_pass=made_pass,
        vertex_buffers=[(8, 0)], attributes=[(0, 0, "VK_FORMAT_R32G32_SFLOAT", 0)],
    )  # fmt: skip
    area = {"extent": {"width": 16, "height": 16}}
    info = {
        "sType": VkStructureType.RENDER_PASS_BEGIN_INFO,
        "renderPass": made_pass.handle,
        "framebuffer": frame.handle,
        "renderArea": area,
    }
    begin = ffi.new("VkRenderPassBeginInfo *", info)
    made: list[Recorded] = []
    for at in range(GROUPS):
        made.append(("vkCmdBeginRenderPass", (begin, 0)))
        made.append(("vkCmdBindPipeline", (GRAPHICS, pipeline.handle)))
        for part in range(3):
            vertices = ffi.new("VkBuffer[]", [buffers[at - part].handle])
            made.append(("vkCmdBindVertexBuffers", (0, 1, vertices, ffi.new("VkDeviceSize[]", [0]))))
            made.append(("vkCmdDraw", (3, 1, 0, 0)))
        made.append(("vkCmdEndRenderPass", ()))
        made.append(_barrier(rig, COLOR, COLOR))
    return [made]


def _buffers(rig: Rig) -> list[RigBuffer]:
    return [rig.buffer(BUFFER_BYTES) for _ in range(GROUPS)]


def _barrier(
    rig: Rig,
    src: tuple[int, int],
    dst: tuple[int, int],
    more: tuple[int, int] = (0, 0),
    buffer: RigBuffer | None = None,
) -> Recorded:
    """vkCmdPipelineBarrier2: one barrier over all memory, or one over a buffer beside an execution dependency."""
    ffi = rig.vk.ffi
    stages = {"srcStageMask": src[0], "dstStageMask": dst[0] | more[0]}
    accesses = {"srcAccessMask": src[1], "dstAccessMask": dst[1] | more[1]}
    whole = {"sType": VkStructureType.MEMORY_BARRIER_2, **stages, **(accesses if buffer is None else {})}
    lists = [ffi.new("VkMemoryBarrier2[]", [whole])]
    members = {"sType": VkStructureType.DEPENDENCY_INFO, "memoryBarrierCount": 1, "pMemoryBarriers": lists[0]}
    if buffer is not None:
        ignored = {"srcQueueFamilyIndex": 0xFFFFFFFF, "dstQueueFamilyIndex": 0xFFFFFFFF}
        part = {
            "sType": VkStructureType.BUFFER_MEMORY_BARRIER_2,
            "buffer": buffer.handle,
            "offset": 0,
            "size": BUFFER_BYTES,
        }
        lists.append(ffi.new("VkBufferMemoryBarrier2[]", [{**part, **stages, **accesses, **ignored}]))
        members |= {"bufferMemoryBarrierCount": 1, "pBufferMemoryBarriers": lists[1]}
    info = ffi.new("VkDependencyInfo *", members)
    _KEPT.extend(lists)
    return "vkCmdPipelineBarrier2", (info,)


_KEPT: list[Any] = []
"""What structs point to must live as long as they do."""
STREAMS: dict[str, Callable[[Rig], list[list[Recorded]]]] = {"copies": copies, "dispatches": dispatches, "draws": draws}


# -- the table ---------------------------------------------------------------------------------------------------------


@click.command()
@click.option("--device", default="lavapipe", help="driver to record on")
@click.option("--rounds", default=9, help="frames that are measured")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="also write the figures here")
def main(device: str, rounds: int, json_file: Path | None) -> None:
    """Runs every configuration and prints the table."""
    layers = sorted({layer.version_text for layer in find_layers()})
    figures: dict[str, Figures] = {}
    console = terminal()
    names = ("bare", "mirror", *layers)
    for name in track(names, "measuring", console=console, transient=True, disable=not console.is_terminal):
        figures[name] = measured("bench.frame:measure", device, name, rounds)
    console.print(_table(figures, layers))
    if json_file:
        json_file.write_text(json.dumps(figures, indent=1))


def measured(job: str, device: str, configuration: str, rounds: int) -> Figures:
    """What a fresh process measures; a ClickException, which is shown as one line, when it cannot."""
    try:
        with Worker(find_driver(device), packages=("bench",)) as worker:
            answer = worker.call(job, {"configuration": configuration, "rounds": rounds})
    except UserError as error:
        raise click.ClickException(f"{configuration}: {error}") from None
    if isinstance(answer, Died):
        raise click.ClickException(f"{configuration}: the process {answer.reason}")
    return answer


def _table(figures: dict[str, Figures], layers: list[str]) -> Table:
    """Microseconds a command: bare, and what each configuration adds while recording and at submit."""
    table = Table(title="microseconds a command: bare, then added (record + submit)", box=None)
    table.add_column("frame")
    table.add_column("bare", justify="right")
    for name in ("mirror", *(f"layer {version}" for version in layers), "mirror / layer"):
        table.add_column(name, justify="right")
    for stream, bare in figures["bare"].items():
        added = {name: [of[stream][part] - bare[part] for part in ("record", "submit")] for name, of in figures.items()}
        totals = [sum(added[version]) for version in layers]
        ratios = ", ".join(f"{sum(added['mirror']) / total:.1f}" if total > 0 else "-" for total in totals)
        cells = [
            f"{sum(added[name]):.1f} ({added[name][0]:.1f} + {added[name][1]:.1f})" for name in ("mirror", *layers)
        ]
        table.add_row(stream, f"{bare['record']:.1f} + {bare['submit']:.1f}", *cells, ratios)
    return table


if __name__ == "__main__":
    main()
