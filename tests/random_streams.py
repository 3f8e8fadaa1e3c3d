"""Random streams of transfer commands, dispatches, barriers and submits, judged by syncval and the Khronos layer.

    .venv/bin/python -m tests.random_streams --first 0 --count 2000 [--device lavapipe]

A stream is a list of plain steps made from a seed alone, so that a seed is a reproduction. `play` records it on a
device through a `Rig`; `judge` does so under the mirror and the layer in one process and compares them call by call.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import click
from rich.console import Console
from rich.progress import track

import harness
from harness.device.drivers import find_driver
from harness.device.process import Died, Worker
from harness.device.rig import Rig
from harness.device.rig_commands import Commands
from harness.layer.compare import compare
from harness.layer.witness import LayerWitness

Step = tuple[Any, ...]

TRANSFER_SCOPES = [
    "COPY/TRANSFER_READ", "COPY/TRANSFER_WRITE", "COPY", "CLEAR/TRANSFER_WRITE", "CLEAR", "BLIT/TRANSFER_READ",
    "BLIT/TRANSFER_WRITE", "ALL_TRANSFER/TRANSFER_READ|TRANSFER_WRITE", "ALL_TRANSFER/TRANSFER_WRITE", "ALL_TRANSFER",
    "RESOLVE/TRANSFER_READ|TRANSFER_WRITE",
]  # fmt: skip
SHADER_SCOPES = [
    "COMPUTE_SHADER/SHADER_READ", "COMPUTE_SHADER/SHADER_WRITE", "COMPUTE_SHADER/SHADER_STORAGE_READ|SHADER_STORAGE_WRITE",
    "COMPUTE_SHADER/UNIFORM_READ", "COMPUTE_SHADER/SHADER_SAMPLED_READ", "COMPUTE_SHADER",
    "DRAW_INDIRECT/INDIRECT_COMMAND_READ",
]  # fmt: skip
WIDE_SCOPES = [
    "ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE", "ALL_COMMANDS/MEMORY_WRITE", "ALL_COMMANDS/MEMORY_READ", "ALL_COMMANDS",
    "TOP_OF_PIPE", "BOTTOM_OF_PIPE", "ALL_TRANSFER|COMPUTE_SHADER/MEMORY_READ|MEMORY_WRITE",
]  # fmt: skip
SCOPES = TRANSFER_SCOPES + SHADER_SCOPES + WIDE_SCOPES
FORM1 = [text for text in SCOPES if not text.split("/")[0] in {"COPY", "CLEAR", "BLIT", "RESOLVE"}]
FORM1 = [text for text in FORM1 if "STORAGE" not in text and "SAMPLED" not in text]
SHADERS = ("copy_words", "scale_words", "atomic_add", "sum_uniform", "image_store_2d", "image_load_2d", "sample_2d")
BUFFERS = 4


def make(seed: int, length: int = 14) -> list[Step]:
    """The steps of a seed: recording steps, and ("submit", which command buffers), ("idle",), ("next",)."""
    rng = random.Random(seed)
    steps: list[Step] = []
    buffers = 1
    for _ in range(length):
        kind = rng.choices(
            ["transfer", "image", "dispatch", "barrier", "next", "submit", "idle"], [8, 5, 4, 9, 1, 2, 0.5]
        )[0]
        if kind == "next":
            buffers += 1
        steps.append(_MAKERS[kind](rng, buffers))
    return [*steps, ("submit", tuple(range(buffers)))]


def _transfer(rng: random.Random, _: int) -> Step:
    one, other = rng.sample(range(BUFFERS), 2)
    begin, size = 4 * rng.randrange(16), 4 * rng.randrange(1, 33)
    choices = [
        ("fill", one, begin, size),
        ("update", one, begin, size),
        ("copy", one, other, [(begin, 4 * rng.randrange(16), size)], rng.choice((1, 2))),
        ("copy", one, other, [(0, 128, 64), (64, 0, 64)], rng.choice((1, 2))),
    ]
    return rng.choice(choices)


def _part(rng: random.Random) -> dict[str, Any]:
    mip = rng.randrange(2)
    size = 8 >> mip
    x, y = rng.randrange(size), rng.randrange(size)
    extent = (rng.randrange(1, size - x + 1), rng.randrange(1, size - y + 1), 1)
    return {"mip": mip, "layer": rng.randrange(2), "offset": (x, y, 0), "extent": extent}


def _image(rng: random.Random, _: int) -> Step:
    one, other, part = rng.randrange(2), rng.randrange(BUFFERS), _part(rng)
    first = rng.randrange(2)
    whole = {"mips": (first, rng.randrange(1, 3 - first)), "layers": (0, rng.randrange(1, 3))}
    small = {**_part(rng), "extent": (1, 1, 1)}
    choices = [
        ("buffer_to_image", other, one, part, rng.choice((1, 2))),
        ("image_to_buffer", one, other, part, rng.choice((1, 2))),
        ("clear_color", one, whole),
        ("copy_image", one, 1 - one, {**part, "extent": (1, 1, 1)}, small, rng.choice((1, 2))),
        ("blit", one, 1 - one, part, _part(rng), rng.choice((1, 2))),
        ("clear_depth_stencil", rng.choice((2, 4, 6))),
    ]
    return rng.choice(choices)


def _dispatch(rng: random.Random, _: int) -> Step:
    first, second = rng.sample(range(BUFFERS), 2)
    return ("dispatch", rng.choice(SHADERS), first, second, rng.choice((0, 0, 128)), rng.randrange(2))


def _barrier(rng: random.Random, _: int) -> Step:
    form = rng.choice((1, 2))
    scopes = SCOPES if form == 2 else FORM1
    several = []
    for _ in range(rng.choice((1, 1, 1, 1, 2))):
        each: dict[str, Any] = {"src": rng.choice(scopes), "dst": rng.choice(scopes), "form": form}
        kind = rng.choice(("memory", "memory", "buffer", "image", "transition"))
        if kind == "buffer":
            each |= {
                "buffer": rng.randrange(BUFFERS),
                "offset": 4 * rng.randrange(16),
                "size": 4 * rng.randrange(1, 33),
            }
        elif kind in ("image", "transition"):
            first = rng.randrange(2)
            each |= {"image": rng.randrange(2), "mips": (first, rng.randrange(1, 3 - first)), "layers": (0, 2)}
            each |= {"old": "UNDEFINED"} if kind == "transition" else {}
        several.append(each)
    if form == 1:  # one pair of stage masks for the whole command
        stages = [several[0][side].split("/")[0] for side in ("src", "dst")]
        several = [each for each in several if [each[s].split("/")[0] for s in ("src", "dst")] == stages]
    return ("barriers", several)


_MAKERS: dict[str, Callable[[random.Random, int], Step]] = {
    "transfer": _transfer,
    "image": _image,
    "dispatch": _dispatch,
    "barrier": _barrier,
    "next": lambda rng, buffers: ("next",),
    "submit": lambda rng, buffers: ("submit", tuple(rng.choices(range(buffers), k=rng.choice((1, 1, 2))))),
    "idle": lambda rng, buffers: ("idle",),
}


class Player:
    """Records steps on a rig. Command buffers end when the next begins or at their first submit."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        shared = rig.memory(4096)
        self.buffers = [rig.buffer(256), rig.buffer(256), rig.buffer(256, shared), rig.buffer(256, shared, 1024)]
        self.images = [rig.image(extent=(8, 8, 1), mips=2, layers=2) for _ in range(2)]
        self.depth = rig.image("VK_FORMAT_D32_SFLOAT_S8_UINT", (8, 8, 1))
        self.views = [rig.view(image) for image in self.images]
        self.sampler = rig.sampler()
        self.pipelines: dict[str, Any] = {}
        self.recorded: list[Commands] = []
        self._open: Any = None
        self._settle_layouts()

    def _settle_layouts(self) -> None:
        with self.rig.commands() as commands:
            for image in (*self.images, self.depth):
                commands.transition(image)
        self.rig.submit(commands)
        self.rig.wait()

    def play(self, steps: list[Step]) -> None:
        """Plays a whole stream."""
        for name, *rest in steps:
            if name == "next":
                self._end()
            elif name == "idle":
                self.rig.wait()
            elif name == "submit":
                self._end()
                chosen = [self.recorded[at] for at in rest[0] if at < len(self.recorded)]
                if chosen:
                    self.rig.submit(*chosen, form=1 + len(chosen) % 2)
            else:
                getattr(self, f"_{name}")(self._current(), *rest)
        self._end()

    def _current(self) -> Commands:
        if self._open is None:
            self._open = self.rig.commands()
            self.recorded.append(self._open.__enter__())
        return self.recorded[-1]

    def _end(self) -> None:
        if self._open is not None:
            self._open.__exit__(None, None, None)
            self._open = None

    def _fill(self, commands: Commands, at: int, begin: int, size: int) -> None:
        commands.fill(self.buffers[at], 0xABCD, begin, size)

    def _update(self, commands: Commands, at: int, begin: int, size: int) -> None:
        commands.update(self.buffers[at], bytes(size), begin)

    def _copy(self, commands: Commands, one: int, other: int, regions: list[Any], form: int) -> None:
        commands.copy(self.buffers[one], self.buffers[other], *regions, form=form)

    def _buffer_to_image(self, commands: Commands, buffer: int, image: int, part: Any, form: int) -> None:
        commands.buffer_to_image(self.buffers[buffer], self.images[image], part, form=form)

    def _image_to_buffer(self, commands: Commands, image: int, buffer: int, part: Any, form: int) -> None:
        commands.image_to_buffer(self.images[image], self.buffers[buffer], part, form=form)

    def _clear_color(self, commands: Commands, image: int, whole: dict[str, Any]) -> None:
        commands.clear_color(self.images[image], **whole)

    def _clear_depth_stencil(self, commands: Commands, aspects: int) -> None:
        commands.clear_depth_stencil(self.depth, aspects=aspects)

    def _copy_image(self, commands: Commands, one: int, other: int, read: Any, write: Any, form: int) -> None:
        commands.copy_image(self.images[one], self.images[other], read, write, form=form)

    def _blit(self, commands: Commands, one: int, other: int, read: Any, write: Any, form: int) -> None:
        commands.blit(self.images[one], self.images[other], read, write, form=form)

    def _barriers(self, commands: Commands, several: list[dict[str, Any]]) -> None:
        named = [
            {
                **each,
                **({"buffer": self.buffers[each["buffer"]]} if "buffer" in each else {}),
                **({"image": self.images[each["image"]]} if "image" in each else {}),
            }
            for each in several
        ]
        commands.barriers("", *named)

    def _dispatch(self, commands: Commands, shader: str, first: int, second: int, offset: int, image: int) -> None:
        one, other = (self.buffers[first], offset, 128), (self.buffers[second], 0, 128)
        view = (self.views[image], None, 1)
        sampled = (self.views[image], self.sampler, 1)
        kinds, held = {
            "copy_words": (("STORAGE_BUFFER", "STORAGE_BUFFER"), (one, other)),
            "scale_words": (("STORAGE_BUFFER",), (one,)),
            "atomic_add": (("STORAGE_BUFFER",), (one,)),
            "sum_uniform": (("UNIFORM_BUFFER", "STORAGE_BUFFER"), (one, other)),
            "image_store_2d": (("STORAGE_IMAGE",), (view,)),
            "image_load_2d": (("STORAGE_IMAGE", "STORAGE_BUFFER"), (view, other)),
            "sample_2d": (("COMBINED_IMAGE_SAMPLER", "STORAGE_BUFFER"), (sampled, other)),
        }[shader]
        if shader not in self.pipelines:
            self.pipelines[shader] = self.rig.compute(shader, dict(enumerate(kinds)), push_bytes=16)
        pipeline = self.pipelines[shader]
        commands.bind(pipeline, self.rig.descriptors(pipeline, **{f"b{at}": each for at, each in enumerate(held)}))
        commands.push_constants(pipeline, 8, 8, 1, 0)
        commands.dispatch()


@dataclass
class Tally:
    """Sums over streams."""

    streams: int = 0
    calls: int = 0
    agreed: int = 0
    expected: Counter[str] = field(default_factory=Counter)
    disagreements: dict[int, list[str]] = field(default_factory=dict)

    def add(self, seed: int, answer: dict[str, Any]) -> None:
        """Adds one stream's answer."""
        self.streams += 1
        self.calls += answer["calls"]
        self.agreed += answer["agreed"]
        self.expected.update(answer["expected"])
        if answer["disagreements"]:
            self.disagreements[seed] = answer["disagreements"]

    def __str__(self) -> str:
        lines = [
            f"{self.streams} streams, {self.calls} commands: {self.agreed} hazards agreed, "
            f"{sum(self.expected.values())} differ as cited, {len(self.disagreements)} streams disagree"
        ]
        lines += [f"  {count:6} {name}" for name, count in self.expected.most_common()]
        lines += [f"  seed {seed}: {text}" for seed, several in self.disagreements.items() for text in several]
        return "\n".join(lines)


def judge(seed: int, length: int = 14, layer: str = "old") -> dict[str, Any]:
    """Plays one seed on this process' driver under both judges; JSON-able sums. `layer` as in `find_layer`."""
    with LayerWitness.open(layer) as witness:
        with harness.attach(keep_trace=True, sink=lambda block: witness.take(block.index)) as session:
            with Rig((), witness) as rig:
                Player(rig).play(make(seed, length))
    blocks = session.blocks or []
    said = compare(session.findings, witness.messages, witness.layer.version, blocks)
    problems = said.lines() + session.internal_errors + [text for _, text in witness.other_messages]
    problems += [f"unmodelled: {name}" for name in session.unmodelled]
    commands = sum(getattr(block, "name", "").startswith("vkCmd") for block in blocks)
    return {"calls": commands, "agreed": said.agreed, "expected": said.used, "disagreements": problems}


def run(first: int, count: int, device: str, layer: str = "old", progress: bool = False) -> Tally:
    """Judges `count` seeds in a worker process."""
    tally = Tally()
    seeds = range(first, first + count)
    with Worker(find_driver(device), packages=("tests",)) as worker:
        for seed in track(seeds, "streams") if progress else seeds:
            answer = worker.call("tests.random_streams:judge", {"seed": seed, "layer": layer})
            if isinstance(answer, Died):
                answer = {"calls": 0, "agreed": 0, "expected": {}, "disagreements": [f"driver {answer.reason}"]}
            tally.add(seed, answer)
    return tally


@click.command()
@click.option("--first", default=0, help="first seed")
@click.option("--count", default=200, help="how many seeds")
@click.option("--device", default="lavapipe")
@click.option("--layer", default="old", help="version of the Khronos layer, `old` or `today`")
def main(first: int, count: int, device: str, layer: str) -> None:
    """Prints how far syncval and the layer agree."""
    console = Console()
    console.print(str(run(first, count, device, layer, console.is_terminal)), markup=False)


if __name__ == "__main__":
    main()
