"""Cost that the mirror and each Khronos layer add to a frame: microseconds a command and ratios, in one run.

    .venv/bin/python bench/frame.py [--only STREAM]... [--way package|lib] [--no-layers] [--rounds 9] [--json FILE]

A frame is some 2,000 commands, 200 of them barriers, recorded anew each round, submitted once and waited for;
`bench/frame_streams.py` says what is in it. Each configuration (bare, mirror, every layer that is installed) runs it in
a process of its own, with arguments already built: through the package's own functions, and through its `lib`. Each
way has a device of its own. Times are CPU time of the calling thread, the least of all rounds; "added" is a
configuration's time less the bare time. The last column is what counts on any machine: how many times as much as the
mirror today's layer adds. It has "none" where the mirror adds nothing.

A driver that has one queue runs two as one (`harness/vkharness/device/queue_emulation.py`). The mirror sees two then,
and a layer one. `--only` and `--way` choose rows, and `--no-layers` leaves the layers out, so that a row costs seconds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import click
from rich.progress import track
from rich.table import Table

import vkharness
from bench.frame_streams import STREAMS, Frame, FrameStream, first_arguments
from vkharness.device.drivers import find_driver
from vkharness.device.process import Died, Worker
from vkharness.device.queue_emulation import logical_queues
from vkharness.findings import UserError
from vkharness.layer.listen import LayerListener
from vkharness.layer.manifest import find_layers
from vkharness.report.console import terminal
from vkharness.rig.queues import SemaphoreUse
from vkharness.rig.requirements import queue_masks
from vkharness.rig.rig import Rig

WARM_UP = 2
"""Frames that are not measured."""
WAYS = {"package": "", "lib": ", through lib"}
"""How a program calls: through the package's functions, or through its `lib`; with what is said of it in the table."""

Figures = dict[str, dict[str, float]]
"""Microseconds a command by stream and way, of "record" and "submit"."""


def measure(configuration: str, rounds: int, streams: Sequence[str], ways: Sequence[str]) -> Figures:
    """Streams in this process. `configuration` is bare, mirror, or the version of a layer."""
    return {
        name + WAYS[way]: _measure(configuration, rounds, STREAMS[name], way == "lib")
        for name in streams
        for way in ways
    }


def _measure(configuration: str, rounds: int, stream: FrameStream, through_lib: bool) -> dict[str, float]:
    with ExitStack() as stack:
        witness = session = None
        stack.enter_context(logical_queues(queue_masks(stream.queues)))
        if configuration == "mirror":
            session = stack.enter_context(vkharness.attach())
        elif configuration != "bare":
            witness = stack.enter_context(LayerListener.open(configuration))
        rig = stack.enter_context(Rig((), witness, queues=stream.queues))
        figures = recorded_and_submitted(rig, rig.vk.lib if through_lib else rig.vk, stream, rounds)
        if session is not None and session.verdict != "clean":
            raise UserError(f"the mirror says {session.verdict}: {[f.message for f in session.findings[:1]]}")
        if witness is not None and witness.take(0):
            raise UserError(f"the layer {configuration} says: {witness.messages[0]}")
    return figures


def recorded_and_submitted(rig: Rig, functions: Any, stream: FrameStream, rounds: int) -> dict[str, float]:
    """Records and submits the frames of a stream, one after the other; the least time a command of each part."""
    buffers = [_begun(rig, queue) for queue in rig.queues[: 1 + len(stream.queues)]]
    frames = stream.make(rig, WARM_UP + rounds if stream.fresh else 1)
    made = [_functions(rig, functions, buffers, frame) for frame in frames]
    orders = [rig.semaphore() for _ in stream.queues]
    times: dict[str, list[float]] = {"record": [], "submit": []}
    for frame in islice(cycle(made), WARM_UP + rounds):
        spent = 0.0
        for commands, calls in zip(buffers, frame, strict=True):
            start = time.thread_time()
            with rig.commands(commands):
                for function, arguments in calls:
                    function(*arguments)
            spent += time.thread_time() - start
        times["record"].append(spent)
        start = time.thread_time()
        for at, commands in enumerate(buffers):
            waits, signals = orders[at - 1 : at] if at else [], orders[at : at + 1]
            rig.submit(commands, waits=list(map(SemaphoreUse, waits)), signals=list(map(SemaphoreUse, signals)))
        times["submit"].append(time.thread_time() - start)
        rig.vk.vkDeviceWaitIdle(rig.device)
    count = sum(map(len, frame))
    return {part: min(each[WARM_UP:]) / count * 1e6 for part, each in times.items()}


def recorded_frame(rig: Rig, commands: Any, calls: Sequence[tuple[str, tuple[Any, ...]]]) -> None:
    """Records the calls of one queue through `lib`, submits them and waits."""
    made = _functions(rig, rig.vk.lib, [commands], [list(calls)])
    with rig.commands(commands):
        for function, arguments in made[0]:
            function(*arguments)
    rig.submit(commands)
    rig.wait()


def _begun(rig: Rig, queue: Any) -> Any:
    """An empty command buffer."""
    with rig.commands(queue=queue) as commands:
        return commands


def _functions(rig: Rig, functions: Any, buffers: Sequence[Any], frame: Frame) -> list[list[tuple[Any, Any]]]:
    """The calls of a frame, by queue, with the functions that make them."""
    return [
        [(getattr(functions, name), arguments) for name, arguments in first_arguments(rig, commands.handle, calls)]
        for commands, calls in zip(buffers, frame, strict=True)
    ]


# -- the table ---------------------------------------------------------------------------------------------------------


@click.command()
@click.option("--device", default="lavapipe", help="driver to record on")
@click.option("--rounds", default=9, help="frames that are measured")
@click.option("--only", "streams", multiple=True, type=click.Choice(list(STREAMS)), help="this stream only")
@click.option("--way", "ways", multiple=True, type=click.Choice(list(WAYS)), help="this way of calling only")
@click.option("--layers/--no-layers", default=True, help="measure the Khronos layers, too")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="also write the figures here")
def main(
    device: str, rounds: int, streams: tuple[str, ...], ways: tuple[str, ...], layers: bool, json_file: Path | None
) -> None:
    """Runs every configuration and prints the table."""
    found = sorted({(layer.version, layer.version_text) for layer in find_layers()}) if layers else []
    versions = [text for _, text in found]
    figures: dict[str, Figures] = {}
    console = terminal()
    chosen = {"rounds": rounds, "streams": streams or tuple(STREAMS), "ways": ways or tuple(WAYS)}
    names = ("bare", "mirror", *versions)
    for name in track(names, "measuring", console=console, transient=True, disable=not console.is_terminal):
        figures[name] = measured("bench.frame:measure", device, name, **chosen)
    console.print(_table(figures, versions))
    if json_file:
        json_file.write_text(json.dumps(figures, indent=1))


def measured(job: str, device: str, configuration: str, **more: Any) -> Figures:
    """Returns the figures of a fresh process. A failure is a ClickException, which is shown as one line."""
    try:
        with Worker(find_driver(device), packages=("bench",)) as worker:
            answer = worker.call(job, {"configuration": configuration, **more})
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
    for name in ("mirror", *(f"layer {version}" for version in layers), "times ahead"):
        table.add_column(name, justify="right")
    for stream, bare in figures["bare"].items():
        added = {name: [of[stream][part] - bare[part] for part in ("record", "submit")] for name, of in figures.items()}
        mirror, today = sum(added["mirror"]), sum(added[layers[-1]]) if layers else 0.0
        ahead = "-" if today <= 0 else "none" if mirror <= 0 else f"{today / mirror:.2f}"
        cells = [
            f"{sum(added[name]):.1f} ({added[name][0]:.1f} + {added[name][1]:.1f})" for name in ("mirror", *layers)
        ]
        table.add_row(stream, f"{bare['record']:.1f} + {bare['submit']:.1f}", *cells, ahead)
    return table


if __name__ == "__main__":
    main()
