"""Random streams of transfer commands, dispatches, barriers and submits, judged by syncval and the Khronos layer.

    .venv/bin/python -m tests.random_streams --first 0 --count 2000 [--device lavapipe] [--layer today]
    .venv/bin/python -m tests.random_streams --shrink 4711

`random_steps` says what a seed means. `Player` records it on a device, `judge` does so under the mirror and the layer
in one process and compares them call by call, twice: our findings with the layer's messages, where a difference must
be one of `differences.toml`; and what the layer must say by its own rules and its own way of reporting, predicted from
syncval (`todays_layer`, `older_layer`), where no difference is allowed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import click
from rich.console import Console
from rich.progress import track

import harness
from harness.check import Mirror
from harness.device.drivers import find_driver
from harness.device.process import Died, Worker
from harness.device.rig import Rig
from harness.device.rig_commands import Commands
from harness.findings import WRITE_AFTER_READ, Finding, UserError
from harness.layer.compare import compare
from harness.layer.manifest import Version, find_layer
from harness.layer.messages import LayerMessage, plain_command
from harness.layer.witness import LayerWitness
from harness.trace.calls import Block
from tests import older_layer, todays_layer
from tests.random_steps import Step, make, shrink

PUSH_DESCRIPTORS = "VK_KHR_push_descriptor"
DISPATCH_BASE = 0x10
"""VK_PIPELINE_CREATE_DISPATCH_BASE_BIT"""
PREDICTIONS: dict[Version, Callable[[Iterable[Block]], list[Finding]]] = {
    (1, 3, 239): older_layer.predict,
    (1, 4, 364): todays_layer.predict,
}


class Player:
    """Records steps on a rig. Command buffers end when the next begins or at their first submit."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        shared = rig.memory(4096)
        self.buffers = [rig.buffer(256), rig.buffer(256), rig.buffer(256, shared), rig.buffer(256, shared, 1024)]
        self.images = [rig.image(extent=(8, 8, 1), mips=2, layers=2) for _ in range(2)]
        self.depth = rig.image("VK_FORMAT_D32_SFLOAT_S8_UINT", (8, 8, 1))
        self.samples = rig.image(extent=(8, 8, 1), samples=4)
        self.counts = rig.buffer(64)
        self.fences: list[Any] = [rig.fence(), rig.fence()]
        self.pending: set[int] = set()
        self.views = [rig.view(image) for image in self.images]
        self.sampler = rig.sampler()
        self.pipelines: dict[tuple[str, bool, int], Any] = {}
        self.recorded: list[Commands] = []
        self._open: Any = None
        self._settle_layouts()

    def _settle_layouts(self) -> None:
        with self.rig.commands() as commands:
            for image in (*self.images, self.depth, self.samples):
                commands.transition(image)
            commands.fill(self.counts, 0)  # no groups: memory as it comes could hold any number
        self.rig.submit(commands)
        self.rig.wait()

    def play(self, steps: Sequence[Step]) -> None:
        """Plays a whole stream."""
        for name, *rest in steps:
            if name == "next":
                self._end()
            elif name == "idle":
                self.rig.wait()
            elif name == "wait":
                self._wait(*rest)
            elif name == "submit":
                self._submit(*rest)
            else:
                getattr(self, f"_{name}")(self._current(), *rest)
        self._end()

    def _submit(self, batches: list[list[int]], fence: int | None) -> None:
        self._end()
        held = [[self.recorded[at] for at in batch if at < len(self.recorded)] for batch in batches]
        chosen = [batch for batch in held if batch]
        free = fence is not None and fence not in self.pending
        if chosen:
            self.rig.submit_batches(
                *chosen, fence=self.fences[fence] if free and fence is not None else None, form=1 + len(chosen[0]) % 2
            )
            self.pending |= {fence} if free and fence is not None else set()

    def _wait(self, fence: int) -> None:
        if fence in self.pending:
            self.rig.wait(self.fences[fence])
            self.rig.reset_fence(self.fences[fence])
            self.pending.discard(fence)

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

    def _resolve(self, commands: Commands, image: int, read: Any, write: Any, form: int) -> None:
        commands.resolve(self.samples, self.images[image], read, write, form=form)

    def _clear_samples(self, commands: Commands) -> None:
        commands.clear_color(self.samples)

    def _depth_to_buffer(self, commands: Commands, buffer: int, aspect: int, part: Any, form: int) -> None:
        commands.image_to_buffer(self.depth, self.buffers[buffer], {**part, "aspect": aspect}, form=form)

    def _buffer_to_stencil(self, commands: Commands, buffer: int, part: Any, form: int) -> None:
        commands.buffer_to_image(self.buffers[buffer], self.depth, {**part, "aspect": 4}, form=form)

    def _write_counts(self, commands: Commands, begin: int, size: int, how: str) -> None:
        if how == "fill":
            commands.fill(self.counts, 0, begin, size)
        else:
            commands.update(self.counts, bytes(size), begin)

    def _read_counts(self, commands: Commands, begin: int, buffer: int, form: int) -> None:
        commands.copy(self.counts, self.buffers[buffer], (begin, 0, 12), form=form)

    def _barriers(self, commands: Commands, several: list[dict[str, Any]]) -> None:
        images = [*self.images, self.depth]
        named = [
            {
                **each,
                **({"buffer": self.buffers[each["buffer"]]} if "buffer" in each else {}),
                **({"image": images[each["image"]]} if "image" in each else {}),
            }
            for each in several
        ]
        commands.barriers("", *named)

    def _indirect(self, commands: Commands, begin: int, buffer: int) -> None:
        self._bind(commands, "scale_words", buffer, buffer, 0, 0, "plain")
        commands.dispatch_indirect(self.counts, begin)

    def _dispatch(
        self, commands: Commands, shader: str, first: int, second: int, offset: int, image: int, how: str
    ) -> None:
        self._bind(commands, shader, first, second, offset, image, how)
        if how == "base":
            commands.dispatch_base((0, 0, 0), (1, 1, 1))
        else:
            commands.dispatch()

    def _bind(
        self, commands: Commands, shader: str, first: int, second: int, offset: int, image: int, how: str
    ) -> None:
        one, other = (self.buffers[first], offset, 128), (self.buffers[second], 0, 128)
        view = (self.views[image], None, 1)
        sampled = (self.views[image], self.sampler, 1)
        storage = "STORAGE_BUFFER"
        kinds, held = {
            "copy_words": ((storage, storage), (one, other)),
            "scale_words": ((storage,), (one,)),
            "fill_words_writeonly": ((storage,), (one,)),
            "atomic_add": ((storage,), (one,)),
            "length_only": ((storage, storage), (one, other)),
            "sum_uniform": (("UNIFORM_BUFFER", storage), (one, other)),
            "image_store_2d": (("STORAGE_IMAGE",), (view,)),
            "image_load_2d": (("STORAGE_IMAGE", storage), (view, other)),
            "sample_2d": (("COMBINED_IMAGE_SAMPLER", storage), (sampled, other)),
        }[shader]
        push = how == "push" and PUSH_DESCRIPTORS in self.rig.gpu.device_extensions
        flags = DISPATCH_BASE if how == "base" else 0
        key = (shader, push, flags)
        if key not in self.pipelines:
            types = dict(enumerate(kinds))
            self.pipelines[key] = self.rig.compute(shader, types, push_bytes=16, push=push, flags=flags)
        pipeline = self.pipelines[key]
        named = {f"b{at}": each for at, each in enumerate(held)}
        commands.bind(pipeline, None if push else self.rig.descriptors(pipeline, **named))
        if push:
            commands.push_descriptors(pipeline, **named)
        commands.push_constants(pipeline, 8, 8, 1, 0)


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


def open_rig(witness: LayerWitness) -> Rig:
    """A rig with push descriptors where the device has them."""
    try:
        return Rig((PUSH_DESCRIPTORS,), witness)
    except UserError:
        return Rig((), witness)


def judge(seed: int, layer: str = "today", steps: Sequence[Step] | None = None) -> dict[str, Any]:
    """Plays one seed (or the steps given) on this process' driver under both judges; JSON-able sums.

    `layer` as in `find_layer`.
    """
    with LayerWitness.open(find_layer(layer)) as witness:

        def attribute(block: Block) -> None:
            witness.take(block.index)

        with harness.attach(keep_trace=True, sink=attribute) as session, open_rig(witness) as rig:
            Player(rig).play(make(seed) if steps is None else steps)
    blocks = session.blocks or []
    version = witness.layer.version
    said = compare(session.findings, witness.messages, version, blocks)
    problems = said.lines() + session.internal_errors + [text for _, text in witness.other_messages]
    problems += [f"unmodelled: {name}" for name in session.unmodelled]
    if version in PREDICTIONS:
        problems += unlike(PREDICTIONS[version](blocks), witness.messages)
    if [each.key for each in Mirror().follow(blocks).findings] != [each.key for each in session.findings]:
        problems.append("the recorded stream is judged otherwise than the program")
    commands = sum(getattr(block, "name", "").startswith("vkCmd") for block in blocks)
    return {"calls": commands, "agreed": said.agreed, "expected": said.used, "disagreements": problems}


Told = tuple[int | None, str, str, str, str, str]
"""(block index of the call in which it was said, hazard, command, access, prior command, prior access)"""


def unlike(predicted: Sequence[Finding], messages: Iterable[LayerMessage]) -> list[str]:
    """Where the layer says other than predicted, in words. Each distinct pair of accesses counts once a call.

    Which of several earlier reads a write at submit is said to conflict with is left open: the layer's order of them
    changes when a command buffer is submitted again.
    """
    ours = {_told(each.place.submit or each.place.call, each.key) for each in predicted}
    theirs = {_told(message.call, message.key) for message in messages}
    submits = {each.place.submit for each in predicted}
    return [
        f"{side} in block {told[0]}: {' '.join(told[1:4])} after {' '.join(told[4:])}"
        for side, one, other in (("predicted only", ours, theirs), ("not predicted", theirs, ours))
        for told in sorted(one - other, key=str)
        if not (told[0] in submits and told[1] == WRITE_AFTER_READ and told[:4] in {each[:4] for each in other})
    ]


def _told(call: int | None, key: tuple[str, str, str, str, str]) -> Told:
    hazard, command, prior_command, access, prior_access = key
    return call, hazard, plain_command(command), access, plain_command(prior_command), prior_access


def ask(worker: Worker, seed: int, layer: str, steps: Sequence[Step] | None = None) -> dict[str, Any]:
    """`judge` in the worker; a driver that died is a disagreement."""
    answer = worker.call("tests.random_streams:judge", {"seed": seed, "layer": layer, "steps": steps})
    if isinstance(answer, Died):
        return {"calls": 0, "agreed": 0, "expected": {}, "disagreements": [f"driver {answer.reason}"]}
    return answer


def run(first: int, count: int, device: str, layer: str = "today", progress: bool = False) -> Tally:
    """Judges `count` seeds in a worker process."""
    tally = Tally()
    seeds = range(first, first + count)
    with Worker(find_driver(device), packages=("tests",)) as worker:
        for seed in track(seeds, "streams") if progress else seeds:
            tally.add(seed, ask(worker, seed, layer))
    return tally


def smallest(seed: int, device: str, layer: str) -> tuple[list[Step], list[str]]:
    """The smallest stream left of a seed's that still disagrees, and its disagreements; empty when it agrees."""
    with Worker(find_driver(device), packages=("tests",)) as worker:
        disagreements = partial(_disagreements, worker, layer)
        steps = make(seed)
        if not disagreements(steps):
            return [], []
        left = shrink(steps, lambda rest: bool(disagreements(rest)))
        return left, disagreements(left)


def _disagreements(worker: Worker, layer: str, steps: Sequence[Step]) -> list[str]:
    found: list[str] = ask(worker, 0, layer, steps)["disagreements"]
    return found


@click.command()
@click.option("--first", default=0, help="first seed")
@click.option("--count", default=200, help="how many seeds")
@click.option("--device", default="lavapipe")
@click.option("--layer", default="today", help="version of the Khronos layer, `old` or `today`")
@click.option("--shrink", "seed", type=int, help="print the smallest stream left of this seed that disagrees")
def main(first: int, count: int, device: str, layer: str, seed: int | None) -> None:
    """Prints how far syncval and the layer agree."""
    console = Console(soft_wrap=True)
    if seed is None:
        console.print(str(run(first, count, device, layer, console.is_terminal)), markup=False, highlight=False)
        return
    steps, lines = smallest(seed, device, layer)
    for each in [*map(str, steps), *lines]:
        console.print(each, markup=False, highlight=False)


if __name__ == "__main__":
    main()
