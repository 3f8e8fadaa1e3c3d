"""Draws over vertex buffers at offsets that nobody has bound before do what they do call by call."""

from __future__ import annotations

import random

import pytest

from harness.check import Analysis
from harness.trace.effects import Effect
from tests.support import drawing
from tests.support.drawing import attribute, binding, vertex_input
from tests.support.said_calls import Listener
from tests.support.said_jobs import call_by_call
from tests.support.streams import Stream, struct

TWO = vertex_input([binding(0), binding(1, 16, per_instance=True)], [attribute(0), attribute(1, 8, location=1)])


class FreshVertices:
    """A random program that writes three buffers, which lie one behind another, and draws from two of them, or from
    one in two bindings, at offsets that are fresh or not, up to the ends of the buffers and behind them."""

    def __init__(self, seed: int) -> None:
        self._random, self.stream = random.Random(seed), Stream()
        memory, sizes = self.stream.memory(), (256, 300, 4096)
        self._buffers = [self.stream.buffer(size, memory, sum(sizes[:at])) for at, size in enumerate(sizes)]
        one = vertex_input([binding()], [attribute()])
        self._made = [drawing.pipeline(self.stream, None, input=each, colors=None, discard=True) for each in (one, TWO)]
        self.stream.begin()

    def frames(self, count: int) -> None:
        stream, chosen = self.stream, self._random
        for _ in range(count):
            stream.call(
                "vkBeginCommandBuffer", commandBuffer=stream.commands, pBeginInfo=struct("VkCommandBufferBeginInfo")
            )
            target = chosen.choice(self._buffers)
            stream.fill(target, 64, chosen.choice((0, 32, 128)), 64)
            drawing.render(stream)
            drawing.bind(stream, chosen.choice(self._made))
            for _ in range(30):
                self._bind()
                if chosen.random() < 0.1:
                    drawing.bind(stream, chosen.choice(self._made))
                for _ in range(chosen.randrange(3)):
                    drawing.draw(stream, chosen.choice((3, 20)), first=chosen.choice((0, 0, 1)))
            stream.cmd("EndRendering")
            stream.submit()

    def _bind(self) -> None:
        chosen = self._random
        offset = chosen.choice((0, 4 * chosen.randrange(90), 4 * chosen.randrange(90)))
        several = [chosen.choice(self._buffers) for _ in range(chosen.choice((1, 1, 2)))]
        drawing.bind_vertices(self.stream, *several, first=chosen.choice((0, 0, 1)), offset=offset)


def effects_of_the_last_frame(analysis: Analysis, commands: int) -> list[tuple[Effect, ...]]:
    recorded = analysis._interpreter.objects.by_id[commands].commands
    return [tuple(plan.effects) for plan in recorded.plans]


@pytest.mark.parametrize("one_by_one", [False, True])
def test_fresh_vertices_are_read_as_call_by_call(one_by_one: bool) -> None:
    findings = 0
    for seed in range(30):
        program = FreshVertices(seed)
        program.frames(12)
        listener = Listener(one_by_one)
        by_saying, by_call = listener.listen(program.stream.blocks), call_by_call(program.stream.blocks)
        told = [[f"{each.message} {each.place} {each.prior}" for each in one.findings] for one in (by_saying, by_call)]
        assert told[0] == told[1], f"seed {seed}"
        last = [effects_of_the_last_frame(one, program.stream.commands) for one in (listener.analysis, by_call)]
        assert last[0] == last[1], f"seed {seed}"
        findings += len(told[0])
    assert findings > 100
