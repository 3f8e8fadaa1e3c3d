"""Cost of `vkharness check` of a long trace: seconds by part, microseconds a command, and memory, in one run.

    .venv/bin/python bench/check_cost.py [--commands 1000000] [--submits 100000] [--only STREAM]...

The traces are made here. "frames" has frames of 2,000 commands (copies, dispatches, draws, a barrier in ten), each
submitted and waited for, with two command buffers in turn; all frames are alike. "fresh frames" has other offsets in
each frame, so that nothing helps that is known of the last one. "one submit" has the commands of "frames" in one
command buffer, submitted once. "timeline" has submits of one command buffer of three commands, each of which waits for
the one before it through one timeline semaphore; in "timeline, waited" the host waits for each third.

Each part is measured in a process of its own, which does it and all before it: read lines; parse them as JSON; make
calls of lines (parsed where needed, with everything that is checked); interpret; judge. Times are CPU time, the part's
own: what the process took less what the process of the part before took. "MiB" is the most that the last process had,
less what it had before the trace. "growth" is the time a command of the whole trace divided by that of a
trace of a tenth of the length.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click
from rich.progress import track
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.drawing import pipeline
from tests.support.passes import attached, begin_rendering, rect, view
from tests.support.streams import IMAGE_USAGE, R8G8B8A8, Stream, struct
from vkharness.check import Analysis, TraceSayings
from vkharness.commands.handlers import COMMANDS
from vkharness.commands.interpret import Interpreter
from vkharness.rare_collections import rare_collections
from vkharness.report.console import terminal
from vkharness.trace.calls import Call
from vkharness.trace.codec import read_trace, save
from vkharness.trace.lines import open_trace, read_objects

FRAME = 2_000
"""Commands of a frame, without those that begin and end something."""
GROUP = 10
BUFFERS = 200
BYTES = 1 << 20
PARTS = ("read lines", "parse", "calls", "interpret", "judge")
BEFORE = {"parse": "read lines", "calls": "read lines", "interpret": "calls", "judge": "interpret"}
"""The part that each part does before. Calls are made of lines: one that came before is not parsed again."""
FRESH = 7_770_777
"""Stands in a template for an offset that differs from frame to frame."""
OFFSETS = 64
"""Frames after which the offsets come again. Their lines are more than the reader keeps."""
TURNS = 2
"""Command buffers that frames take in turn."""


# -- the traces --------------------------------------------------------------------------------------------------------


class Template:
    """The lines of blocks, to be written again under other indices."""

    def __init__(self, stream: Stream, path: Path) -> None:
        save(path, stream.blocks)
        lines = path.read_bytes().splitlines()[1:-1]
        self.rests = [line[line.index(b",") :] + b"\n" for line in lines]
        stream.blocks.clear()


class Writer:
    """Writes one trace of templates."""

    def __init__(self, path: Path) -> None:
        save(path, ())
        self._start, self._end, _ = path.read_bytes().split(b"\n")
        self._file = path.open("wb")
        self._file.write(self._start + b"\n")
        self.index = 0

    def write(self, rests: Iterable[bytes]) -> None:
        """Lines with the next indices."""
        lines = bytearray()
        for rest in rests:
            self.index += 1
            lines += b'{"index":%d' % self.index
            lines += rest
        self._file.write(lines)

    def close(self) -> None:
        """Ends the trace."""
        self._file.write(self._end + b"\n")
        self._file.close()


class Frames:
    """A program that draws frames: what it makes first, and one frame for each of its command buffers."""

    def __init__(self, offset: int) -> None:
        self.stream = stream = Stream()
        self._offset = offset
        self._buffers = [stream.buffer(BYTES) for _ in range(BUFFERS)]
        source, *targets = [stream.buffer(BYTES) for _ in range(3)]
        self._works = [stream.compute("copy_words", [source, target], bytes(8)) for target in targets]
        self._draw = pipeline(stream, formats=[R8G8B8A8], vertex="fullscreen.vert")
        self._view = view(stream, stream.image((8, 8, 1), usage=IMAGE_USAGE | 0x10))
        self.command_buffers = [self._empty() for _ in range(TURNS)]

    def _empty(self) -> int:
        made = self.stream.begin()
        self.stream.end()
        return made

    def begin(self, turn: int) -> None:
        """Records a command buffer anew."""
        self.stream.commands = self.command_buffers[turn]
        info = struct("VkCommandBufferBeginInfo")
        self.stream.call("vkBeginCommandBuffer", commandBuffer=self.stream.commands, pBeginInfo=info)

    def record(self) -> None:
        """The commands of one frame: groups of copies, of dispatches, of draws."""
        works = (self._copies, self._dispatches, self._draws)
        for group in range(FRAME // GROUP):
            works[group % len(works)](group)
            self.stream.barrier()

    def _copies(self, group: int) -> None:
        target = self._buffers[group]
        for part in range(GROUP - 1):
            offset = self._offset + 256 * part
            self.stream.copy(self._buffers[group - 1 - part], target, 256, self._offset, BYTES // 2 + offset % 4096)

    def _dispatches(self, group: int) -> None:
        for work in self._works:
            work.run()
        self.stream.fill(self._buffers[group], 1, self._offset, 256)

    def _draws(self, group: int) -> None:
        stream = self.stream
        begin_rendering(stream, rect((8, 8)), [attached(self._view, load=1)])
        stream.cmd("BindPipeline", pipelineBindPoint=0, pipeline=self._draw)
        for _ in range(GROUP - 4):
            stream.cmd("Draw", vertexCount=3, instanceCount=1)
        stream.cmd("EndRendering")


def frames(path: Path, commands: int, fresh: bool = False, together: bool = False) -> int:
    """A trace of frames; how many commands it has."""
    program = Frames(FRESH if fresh else 0)
    stream = program.stream
    writer, count = Writer(path), max(1, commands // FRAME)
    writer.write(Template(stream, path.with_suffix(".part")).rests)
    made: list[list[bytes]] = []
    for turn in range(TURNS):
        program.begin(turn)
        begin = Template(stream, path.with_suffix(".part")).rests
        program.record()
        body = Template(stream, path.with_suffix(".part")).rests
        stream.submit(stream.commands) if together else (stream.end(), stream.submit(stream.commands))
        made += [begin, body, Template(stream, path.with_suffix(".part")).rests]
    if together:
        stream.commands = program.command_buffers[0]
        stream.end()
        closing = Template(stream, path.with_suffix(".part")).rests
        writer.write(made[0])
        for _ in range(count):
            writer.write(made[1])
        writer.write([*closing, *made[2]])
    for frame in range(0 if together else count):
        for rests in made[3 * (frame % TURNS) : 3 * (frame % TURNS) + 3]:
            offset = b"%d" % (4 * (frame % OFFSETS))
            writer.write([each.replace(b"%d" % FRESH, offset) for each in rests] if fresh else rests)
    writer.close()
    return count * FRAME


def timeline(path: Path, submits: int, waited: bool) -> int:
    """A trace of submits, each of which waits for the one before it by a value of one semaphore."""
    stream = Stream()
    buffers = [stream.buffer(256) for _ in range(2)]
    semaphore = stream.timeline()
    stream.begin()
    stream.copy(buffers[0], buffers[1], 256)
    stream.barrier()
    stream.copy(buffers[1], buffers[0], 256)
    stream.end()
    writer = Writer(path)
    writer.write(Template(stream, path.with_suffix(".part")).rests)
    stream.submit_in_turn(semaphore, FRESH)
    submit = Template(stream, path.with_suffix(".part")).rests
    info = struct("VkSemaphoreWaitInfo", pSemaphores=[semaphore], pValues=[FRESH])
    stream.call("vkWaitSemaphores", device=stream.device, pWaitInfo=info)
    waited_for = stream.blocks[-1]
    assert isinstance(waited_for, Call)
    waited_for.result = 0
    wait = Template(stream, path.with_suffix(".part")).rests
    for value in range(submits):
        for rests in (submit, wait) if waited and value % 3 == 0 else (submit,):
            numbers = (b"%d" % (FRESH + 1), b"%d" % (value + 1)), (b"%d" % FRESH, b"%d" % value)
            writer.write([each.replace(*numbers[0]).replace(*numbers[1]) for each in rests])
    writer.close()
    return submits


STREAMS: dict[str, Callable[[Path, int], int]] = {
    "frames": frames,
    "fresh frames": lambda path, commands: frames(path, commands, fresh=True),
    "one submit": lambda path, commands: frames(path, commands, together=True),
    "timeline": lambda path, submits: timeline(path, submits, False),
    "timeline, waited": lambda path, submits: timeline(path, submits, True),
}
"""Each makes a trace of about so many commands or submits, and returns how many it has."""


# -- the parts ---------------------------------------------------------------------------------------------------------


def _lines(path: Path) -> Iterator[Any]:
    with open_trace(path) as file:
        yield from file


def _interpreted(path: Path) -> Iterator[Any]:
    interpreter, sayings = Interpreter(), TraceSayings()
    for block in read_trace(path):
        if not isinstance(block, Call) or block.name not in COMMANDS:
            yield interpreter.step(block)
            continue
        said = sayings.of(block)
        if interpreter.repeat(block.index, said, block.site) is False:
            interpreter.record(block.index, block.name, block.args, block.site, said)
        yield said


def _judged(path: Path) -> Iterator[Any]:
    analysis = Analysis().follow(read_trace(path))
    yield analysis
    assert analysis.verdict == "clean", [each.message for each in analysis.findings[:2]] or analysis.unmodelled


WORKS: dict[str, Callable[[Path], Iterator[Any]]] = dict(
    zip(PARTS, (_lines, lambda path: read_objects(path, []), read_trace, _interpreted, _judged), strict=True)
)


def run_part(path: Path, part: str) -> None:
    """Does one part and all before it in this process; prints its seconds and MiB as JSON."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    with rare_collections():
        for _ in WORKS[part](path):
            pass
    seconds = time.process_time() - start
    print(json.dumps([seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024]))


def measured(path: Path, part: str) -> tuple[float, float]:
    """Seconds and MiB of one part in a process of its own."""
    command = [sys.executable, __file__, "--part", part, str(path)]
    seconds, memory = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return seconds, memory


@click.command()
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option("--part", type=click.Choice(PARTS), hidden=True)
@click.option("--commands", default=1_000_000, show_default=True)
@click.option("--submits", default=100_000, show_default=True)
@click.option("--only", multiple=True, type=click.Choice(list(STREAMS)))
def main(path: Path | None, part: str | None, commands: int, submits: int, only: tuple[str, ...]) -> None:
    """Prints the table."""
    if path is not None and part is not None:
        run_part(path, part)
        return
    table = Table("stream", "commands", *(f"{each} s" for each in PARTS), "us a command", "MiB", "growth", box=None)
    with tempfile.TemporaryDirectory() as folder:
        whole, tenth = Path(folder) / "trace.jsonl", Path(folder) / "tenth.jsonl"
        names = only or tuple(STREAMS)
        tasks = [(name, part) for name in names for part in (*PARTS, "tenth")]
        seconds: dict[str, float] = {}
        for name, each in track(tasks, "parts", console=terminal(stderr=True), transient=True):
            wanted = submits if name.startswith("timeline") else commands
            if each == PARTS[0]:
                seconds, made = {}, STREAMS[name](whole, wanted)
            if each != "tenth":
                seconds[each], memory = measured(whole, each)
                continue
            fewer = STREAMS[name](tenth, wanted // 10)
            whole_time = seconds[PARTS[-1]]
            growth = whole_time / made / (measured(tenth, PARTS[-1])[0] / fewer)
            own = [took - seconds.get(BEFORE.get(part, ""), 0.0) for part, took in seconds.items()]
            cells = [f"{made:,}", *(f"{took:.1f}" for took in own), f"{1e6 * whole_time / made:.1f}"]
            table.add_row(name, *cells, f"{memory:.0f}", f"{growth:.2f}")
    terminal().print(table)


if __name__ == "__main__":
    main()
