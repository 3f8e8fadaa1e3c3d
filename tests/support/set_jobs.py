"""Jobs of a driver's process: random programs that write, make and bind descriptor sets while they record."""

from __future__ import annotations

import random
from typing import Any

import vkharness
from vkharness.native import core
from vkharness.rig.core import RigBuffer, RigDescriptorSet
from vkharness.rig.graphics_pipelines import POSITIONS
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.rig.rig import Rig

FRAMES, STEPS = 8, 40
KINDS = {0: "STORAGE_BUFFER_DYNAMIC", 1: "STORAGE_BUFFER_DYNAMIC"}


def judge_sets(seed: int, keep: bool) -> dict[str, Any]:
    """Judges the program of a seed. With a trace that is kept no call waits, and each is judged by itself."""
    return _judged(SetProgram, seed, keep)


def judge_draws(seed: int, keep: bool) -> dict[str, Any]:
    """The same of a program that draws."""
    return _judged(DrawProgram, seed, keep)


def _judged(program: type[SetProgram], seed: int, keep: bool) -> dict[str, Any]:
    with vkharness.attach(keep_trace=keep) as session, Rig(()) as rig:
        waits = session.log is not None
        assert waits == (core is not None and not keep)
        program(rig, seed).run()
    told = [f"{each.message} {each.place} {each.prior}" for each in session.findings]
    return {"told": [*told, f"{session.verdict} {session.unmodelled} {session.internal_errors}"]}


class SetProgram:
    """Frames of dispatches with one pipeline over a few buffers."""

    def __init__(self, rig: Rig, seed: int) -> None:
        self._rig, self._chosen = rig, random.Random(seed)
        self._buffers = [rig.buffer(1024) for _ in range(3)]
        self._pipeline = rig.compute("copy_words", KINDS, push_bytes=8)
        self._sets = [self._set() for _ in range(3)]

    def run(self) -> None:
        """Records and submits all frames."""
        rig = self._rig
        with rig.commands() as commands:
            pass
        for _ in range(FRAMES):
            with rig.commands(commands):
                commands.bind(self._pipeline)
                for _ in range(STEPS):
                    self._step(commands)
            rig.submit(commands)
            rig.wait()

    def _step(self, commands: Any) -> None:
        chosen = self._chosen
        what = chosen.random()
        if what < 0.15:
            self._write()
        elif what < 0.2:
            rig, (read, written) = self._rig, chosen.sample(self._sets, 2)
            rig.copy_descriptors(read, written, ((0, 0), (1, 0), 1))
        elif what < 0.35:
            self._sets[chosen.randrange(3)] = self._set()
        elif what < 0.45:
            commands.barrier("", "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "COMPUTE_SHADER/SHADER_STORAGE_READ")
        elif what < 0.7:
            offsets = (chosen.choice((0, 256)), chosen.choice((0, 256, 512)))
            commands.bind_set(self._pipeline, chosen.choice(self._sets), offsets)
        elif what < 0.8:
            commands.push_constants(self._pipeline, chosen.choice((16, 64)), 1)
        else:
            commands.dispatch()

    def _write(self) -> None:
        held = self._chosen.choice(self._sets)
        parts = self._parts()
        if self._chosen.random() < 0.3:
            del parts[self._chosen.choice(("b0", "b1"))]
        self._rig.update(held, **parts)

    def _set(self) -> RigDescriptorSet:
        return self._rig.descriptors(self._pipeline, **self._parts())

    def _parts(self) -> dict[str, tuple[RigBuffer, int, int]]:
        chosen = self._chosen
        read, written = chosen.sample(self._buffers, 2)
        return {"b0": (read, 256 * chosen.randrange(2), 256), "b1": (written, 256 * chosen.randrange(2), 256)}


class DrawProgram(SetProgram):
    """Frames of draws with two pipelines: one reads a uniform buffer and vertices, which other draws write. Some read
    these through indices, which fills write. There are a few kinds of frames, which differ in what sets refer to."""

    def __init__(self, rig: Rig, seed: int) -> None:
        super().__init__(rig, seed)
        self._seed, self._fresh = seed, random.Random(seed)
        color = rig.graphics("uniform_color", bindings={0: "UNIFORM_BUFFER_DYNAMIC"}, **POSITIONS)
        store = rig.graphics("store_words.frag", bindings={0: "STORAGE_BUFFER_DYNAMIC"}, push_bytes=4, colors=())
        self._pipelines = [color, store]
        self._held = [[rig.descriptors(each, b0=(at, 0, 256)) for at in self._buffers] for each in self._pipelines]
        self._view, self._indices = rig.view(rig.target()), rig.buffer(64)

    def run(self) -> None:
        """Records and submits all frames. Some draws are in one instance of dynamic rendering."""
        rig = self._rig
        with rig.commands() as commands:
            pass
        for _ in range(2 * FRAMES):
            chosen = self._chosen = random.Random(2 * self._seed + self._fresh.randrange(2))
            with rig.commands(commands):
                for _ in range(6):
                    if chosen.random() < 0.5:
                        commands.barrier("", *BARRIERS[chosen.random() < 0.5])
                    if chosen.random() < 0.1:
                        commands.fill(self._indices, chosen.randrange(8), 0, 4 * chosen.randrange(1, 16))
                        commands.barrier("", "CLEAR/TRANSFER_WRITE", chosen.choice(("INDEX_INPUT/INDEX_READ", "CLEAR")))
                    self._draw(commands, chosen.randrange(2))
            rig.submit(commands)
            rig.wait()

    def _draw(self, commands: Any, which: int) -> None:
        chosen, pipeline = self._chosen, self._pipelines[which]
        commands.begin_rendering(*(() if which else (RenderingAttachment(self._view, "LOAD"),)))
        commands.bind(pipeline)
        if which:
            commands.push_constants(pipeline, 1)
        for _ in range(chosen.randrange(1, 4)):
            held = self._held[which]
            if self._fresh.random() < 0.1:
                at = self._fresh.randrange(len(held))
                held[at] = self._rig.descriptors(pipeline, b0=(self._buffers[at], 256 * self._fresh.randrange(2), 256))
            commands.bind_set(pipeline, self._fresh.choice(held), (64 * self._fresh.randrange(8),))
            if not which:
                commands.bind_vertices((chosen.choice(self._buffers), 512 * chosen.randrange(2)))
            if chosen.random() < 0.6:
                commands.bind_indices(self._indices)
                commands.draw_indexed(chosen.choice((3, 6)), 1, 0, chosen.randrange(2))
            else:
                commands.draw(chosen.choice((3, 3, 6)))
        commands.end_rendering()


BARRIERS = (
    ("FRAGMENT_SHADER/SHADER_STORAGE_WRITE", "FRAGMENT_SHADER/UNIFORM_READ|SHADER_STORAGE_WRITE"),
    (
        "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE",
        "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE",
    ),
)
