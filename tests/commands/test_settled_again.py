"""Command buffers that are executed as they were before come to what their steps come to, whatever memory holds."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial

import pytest

from tests.support import drawing
from tests.support.ring import BYTES, Ring
from tests.support.streams import Stream, struct, words
from vkharness.check import Analysis
from vkharness.commands.contents.at_submit import MemoryContents
from vkharness.commands.contents.known_memory import AskedMemory, KnownMemory
from vkharness.commands.contents.settled_again import LastSettled
from vkharness.spans import Span
from vkharness.trace.calls import Block

BEGIN = struct("VkCommandBufferBeginInfo")
PART = 128
"""Bytes of the parts of buffers that commands write or read."""


def settled(monkeypatch: pytest.MonkeyPatch, blocks: Sequence[Block], always: bool = False) -> tuple[list[object], int]:
    """Judges a stream, and counts how often the steps of a command buffer ran over memory, as they do `always` where
    nothing is known of the last time."""
    runs = 0
    real = MemoryContents._settle

    def counted(*given: object) -> object:
        nonlocal runs
        runs += 1
        return real(*given)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(MemoryContents, "_settle", counted)
        if always:
            patch.setattr(LastSettled, "is_as_before", lambda *given: False)
        analysis = Analysis().follow(blocks)
    told = [f"{each.hazard} {each.message} {each.place} {each.prior} {each.ranges}" for each in analysis.findings]
    return [*told, dict(analysis.unjudged.left_out), analysis.unmodelled], runs


class Frames(Ring):
    """Frames that record nearly the same: draws by indices and parameters, behind writes of these. Between two frames
    the host writes some of them. Some command buffers are submitted twice."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = self._chosen = random.Random(seed)
        self._changes, self._fresh = self._random.choice((0, 0, 0.1)), self._random.choice((0, 0.2))
        if self._random.random() < 0.8:
            for memory in (self.index_memory, self.parameter_memory):
                self.host_write(memory, 0, words(*(each % 7 for each in range(BYTES // 4))))
        self._several = self.vertices, self.buffer(BYTES)
        kept = (self.vertices, self.vertices, self.indices, self.parameters)
        self._sets = [drawing.descriptors(self, (7, each)) for each in kept]
        layout = self._sets[0][1]
        self._storing = drawing.pipeline(self, "store_words.frag", vertex="fullscreen.vert", layout=layout)
        made = [(self.begin(), self._template()) for _ in range(2)]
        for _ in range(12):
            for self.commands, template in made:
                self._record(template)
            for _ in range(self._random.choice((1, 1, 2))):
                self._host()
                self.submit(*(each for each, _ in self._random.sample(made, 2)))

    def _template(self) -> list[tuple[Callable[[], None], float]]:
        chosen = self._random
        every = [self._update, self._fill, self._copy, self._copy_vertices, self._barrier]
        writes = chosen.choice((chosen.sample(every, 3), [self._store, self._barrier]))
        draws = chosen.sample([self._indexed, self._indexed, self._indirect, self._counted], 2)
        several = [*writes, *(draws * 4)]
        return [(chosen.choice(several), chosen.random()) for _ in range(chosen.randrange(1, 9))]

    def _record(self, template: list[tuple[Callable[[], None], float]]) -> None:
        self.call("vkBeginCommandBuffer", commandBuffer=self.commands, pBeginInfo=BEGIN)
        for operation, seed in template:
            self._chosen = self._random if self._random.random() < self._fresh else random.Random(seed)
            self.vertices = self._several[self._random.random() < self._changes]
            if self._random.random() >= self._changes:
                operation()
        self.end()

    def _host(self) -> None:
        chosen = self._random
        if chosen.random() < 0.3:
            memory, at = chosen.choice((self.index_memory, self.parameter_memory)), 4 * chosen.randrange(8)
            self.host_write(memory, at, words(*(chosen.randrange(7) for _ in range(chosen.randrange(1, 8)))))

    def _target(self) -> int:
        return self._chosen.choice((self.indices, self.parameters, self.vertices))

    def _update(self) -> None:
        """The bytes differ where the frame is otherwise the same."""
        data = words(*(self._random.randrange(7) for _ in range(4)))
        place = {"dstBuffer": self._target(), "dstOffset": self._chosen.choice((0, 16, PART))}
        self.cmd("UpdateBuffer", **place, dataSize=len(data), pData=data)

    def _fill(self) -> None:
        self.fill(self._target(), self._random.randrange(4), PART)

    def _copy(self) -> None:
        self.copy(self._chosen.choice((self.source, self.indices)), self._target(), PART, to=PART)

    def _copy_vertices(self) -> None:
        self.copy(self.source, self.vertices, 16)

    def _barrier(self) -> None:
        self.barrier()

    def _indexed(self) -> None:
        self.draws(indexCount=self._chosen.choice((3, 6)), firstIndex=self._chosen.choice((0, 3)), instanceCount=1)

    def _indirect(self) -> None:
        name = self._chosen.choice(("DrawIndirect", "DrawIndexedIndirect"))
        place = {"buffer": self.parameters, "offset": self._chosen.choice((0, 20))}
        self.draws(name, **place, drawCount=self._chosen.choice((1, 2)), stride=20)

    def _store(self) -> None:
        """A draw that stores words to a buffer."""
        drawing.render(self)
        drawing.bind(self, self._storing)
        held, layout = self._chosen.choice(self._sets)
        self.cmd("BindDescriptorSets", layout=layout, pDescriptorSets=[held], pDynamicOffsets=[])
        self.cmd("Draw", vertexCount=3, instanceCount=1)
        self.cmd("EndRendering")

    def _counted(self) -> None:
        place = {"buffer": self.parameters, "offset": 20, "countBuffer": self.parameters, "countBufferOffset": 0}
        self.draws("DrawIndexedIndirectCount", **place, maxDrawCount=self._chosen.choice((1, 3)), stride=20)


def test_random_frames_come_to_what_their_steps_come_to(monkeypatch: pytest.MonkeyPatch, fresh_seed: int) -> None:
    runs = always = findings = 0
    for seed in (*range(60), *range(fresh_seed, fresh_seed + 20)):
        blocks = Frames(seed).blocks
        told, count = settled(monkeypatch, blocks)
        wanted, most = settled(monkeypatch, blocks, always=True)
        assert told == wanted, f"seed {seed}"
        runs, always, findings = runs + count, always + most, findings + len(wanted)
    assert runs < 0.8 * always and findings > 400, (runs, always, findings)


def frames(ring: Ring, count: int, record: Callable[[int], object]) -> Stream:
    """Frames that are recorded into one command buffer, and submitted."""
    ring.begin()
    for number in range(count):
        ring.call("vkBeginCommandBuffer", commandBuffer=ring.commands, pBeginInfo=BEGIN)
        record(number)
        ring.submit()
    return ring


def test_the_steps_run_again_when_indices_are_others_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = Ring()
    ring.host_write(ring.index_memory, 0, words(0, 1, 2))

    def record(number: int) -> None:
        if number in (4, 5):
            ring.host_write(ring.index_memory, 4, words(63 if number == 4 else 1))
        ring.copy(ring.source, ring.vertices, 8, to=63 * 8)
        ring.draws(indexCount=3, instanceCount=1)
        ring.barrier()

    blocks = frames(ring, 8, record).blocks
    told, runs = settled(monkeypatch, blocks)
    wanted, always = settled(monkeypatch, blocks, always=True)
    assert told == wanted and sum("READ_AFTER_WRITE" in str(each) for each in told) == 1
    assert (runs, always) == (4, 8), "the first two frames, and those with other indices"


def test_bytes_that_a_command_buffer_writes_itself_are_looked_at_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = Ring()

    def record(number: int) -> None:
        data = words(0, 63 if number == 5 else 1, 2)
        ring.cmd("UpdateBuffer", dstBuffer=ring.indices, dataSize=len(data), pData=data)
        ring.barrier()
        ring.copy(ring.source, ring.vertices, 8, to=63 * 8)
        ring.draws(indexCount=3, instanceCount=1)
        ring.barrier()

    blocks = frames(ring, 8, record).blocks
    told, runs = settled(monkeypatch, blocks)
    assert (told, runs) == settled(monkeypatch, blocks, always=True)
    assert sum("READ_AFTER_WRITE" in str(each) for each in told) == 1


def test_what_is_asked_and_what_is_written_are_held_against_one_another() -> None:
    memory = KnownMemory()
    memory.write(1, 0, words(*range(4)))
    first = partial(memory.read, 1, (0, 4))
    several: list[tuple[list[Callable[[], object]], list[tuple[int, Span]] | None]] = [
        ([first], [(1, (0, 4))]),
        ([first, partial(memory.pieces, 1, (4, 8))], [(1, (0, 8))]),
        ([first, partial(memory.forget, 1, (4, 8))], [(1, (0, 4))]),
        ([first, partial(memory.fill, 1, (0, 4), 0)], None),
        ([partial(memory.copy, (1, 0), (1, 8), 4), partial(memory.read, 1, (4, 12))], None),
        ([partial(memory.read, 1, (0, 32))], None),
        ([partial(memory.read, 2, (0, 4))], None),
        ([first, memory.forget_all], None),
    ]
    for asks, expected in several:
        memory.asked = asked = AskedMemory()
        for each in asks:
            each()
        memory.asked = None
        assert asked.decided() == expected
        memory.write(1, 0, words(*range(4)))
