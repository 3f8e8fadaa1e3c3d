"""Draws over vertex buffers at offsets that nobody has bound before do what they do call by call."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from hunts.front_programs import FIRST, CallProgram, told_of_program
from tests.support import drawing, passes
from tests.support.drawing import attribute, binding, vertex_input
from tests.support.streams import Stream, struct
from vkharness import native
from vkharness.spec.enums import VK_WHOLE_SIZE
from vkharness.trace.calls import Call
from vkharness.trace.references import references

pytestmark = [pytest.mark.driver, pytest.mark.skipif(native.core is None, reason=f"in use: {native.in_use}")]

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
            self._render()
            drawing.bind(stream, chosen.choice(self._made))
            for _ in range(30):
                self._bind()
                self._happens()
                if chosen.random() < 0.1:
                    drawing.bind(stream, chosen.choice(self._made))
                for _ in range(chosen.randrange(3)):
                    drawing.draw(stream, chosen.choice((3, 20)), first=chosen.choice((0, 0, 1)))
            stream.cmd("EndRendering")
            stream.submit()

    def _render(self) -> None:
        drawing.render(self.stream)

    def _happens(self) -> None:
        """An action between a bind and the draws behind it."""

    def _bind(self) -> None:
        chosen = self._random
        offset = chosen.choice((0, 4 * chosen.randrange(90), 4 * chosen.randrange(90)))
        several = [chosen.choice(self._buffers) for _ in range(chosen.choice((1, 1, 2)))]
        drawing.bind_vertices(self.stream, *several, first=chosen.choice((0, 0, 1)), offset=offset)


def told_of(program: FreshVertices, keeps_trace: bool) -> list[str]:
    """The findings of a program that makes these calls of `lib`."""
    made = [each for each in program.stream.blocks if isinstance(each, Call)]
    named = {each.id: (each.type, FIRST + 16 * each.id) for call in made for each in references(call)}
    calls = CallProgram([{"name": each.name, "args": each.args} for each in made], named, 0, 0, keeps_trace)
    lines = told_of_program([(0, number) for number in range(len(made))], lambda _: calls)
    return [line for line in lines if not line.startswith("Call(")]


def findings_of_both(program: FreshVertices, seed: int) -> int:
    """How many findings a program has. They must be the same in the log and where each call is heard of."""
    in_log = told_of(program, False)
    assert in_log == told_of(program, True), f"seed {seed}"
    return len(in_log)


def test_fresh_vertices_are_read_as_where_each_call_is_heard_of() -> None:
    findings = 0
    for seed in range(3):
        program = FreshVertices(seed)
        program.frames(12)
        findings += findings_of_both(program, seed)
    assert findings > 100


RATES = {"goes": 0.01, "is_made_anew": 0.01, "executes": 0.03}
"""How often what ends all that is known happens, so that something is known before."""


class Eventful(FreshVertices):
    """The same, where one kind of thing happens now and then while vertex buffers are open."""

    def __init__(self, seed: int, kind: str) -> None:
        super().__init__(seed)
        stream, kinds = self.stream, dict[str, Callable[[], None]]()
        for each in (self.goes, self.is_made_anew, self.far, self.none, self.bind2, self.executes, self.instances):
            kinds[each.__name__] = each
        kinds |= {"sets": self.sets, "aliases": self.aliases}
        self._happening, self._is_with_sets = kinds[kind], kind == "sets"
        self._rate = RATES.get(kind, 0.3)
        self._memory = stream.memory()
        self._view = drawing.color_target(stream)[1]
        primary = stream.commands
        self._secondary = stream.begin(1)
        drawing.bind_vertices(stream, self._buffers[0], offset=8)
        stream.end()
        stream.commands = primary
        if self._is_with_sets:
            self._bound = [drawing.descriptors(stream, (7, each)) for each in self._buffers]
            self._made += [
                drawing.pipeline(stream, "stored_word_color.frag", input=TWO, layout=self._bound[0][1])
                for _ in range(2)
            ]
        if kind == "aliases":
            self._buffers = [stream.buffer(256, self._memory, at) for at in (0, 64, 128)]

    def _render(self) -> None:
        attached = [passes.attached(self._view, 0, 0)] if self._is_with_sets else []
        passes.begin_rendering(self.stream, passes.rect(drawing.SIZE), attached)

    def _happens(self) -> None:
        if self._random.random() < self._rate:
            self._happening()

    def goes(self) -> None:
        """A buffer goes, and another comes that is bound from then on."""
        at = self._random.randrange(3)
        self.stream.call("vkDestroyBuffer", device=self.stream.device, buffer=self._buffers[at])
        if self._random.random() < 0.5:
            drawing.draw(self.stream)
        self._buffers[at] = self.stream.buffer(self._random.choice((64, 300)), self._memory, 256 * at)

    def is_made_anew(self) -> None:
        """A buffer goes, and another gets its id."""
        stream, gone = self.stream, self._random.choice(self._buffers)
        stream.call("vkDestroyBuffer", device=stream.device, buffer=gone)
        info = struct("VkBufferCreateInfo", size=self._random.choice((64, 300)), usage=0x80)
        stream.call("vkCreateBuffer", device=stream.device, pCreateInfo=info, pBuffer=gone)
        place = {"memory": self._memory, "memoryOffset": self._random.choice((0, 64))}
        stream.call("vkBindBufferMemory", device=stream.device, buffer=gone, **place)

    def far(self) -> None:
        """No vertex lies behind the offset, or hardly any."""
        size = self._random.choice((248, 252, 256, 260, 1 << 40, 1 << 63, VK_WHOLE_SIZE - 8, VK_WHOLE_SIZE))
        drawing.bind_vertices(self.stream, self._random.choice(self._buffers), offset=size)

    def none(self) -> None:
        """There is no buffer, in all bindings or in one."""
        several = self._random.choice(([0], [0, self._buffers[0]], [self._buffers[1], 0]))
        drawing.bind_vertices(self.stream, *several, offset=4 * self._random.randrange(90))

    def bind2(self) -> None:
        """Another command binds some, with a size or a stride or not."""
        chosen = self._random
        more = {"pSizes": chosen.choice((None, [24])), "pStrides": chosen.choice((None, None, [12]))}
        bound = {"pBuffers": [chosen.choice(self._buffers)], "pOffsets": [8 * chosen.randrange(20)]}
        self.stream.cmd("BindVertexBuffers2", firstBinding=chosen.randrange(2), bindingCount=1, **bound, **more)

    def executes(self) -> None:
        """Behind secondary command buffers, no state is known."""
        self.stream.cmd("ExecuteCommands", pCommandBuffers=[self._secondary])
        if self._random.random() < 0.7:
            drawing.bind(self.stream, self._random.choice(self._made))

    def instances(self) -> None:
        """Several instances are drawn, from any one on."""
        drawing.draw(self.stream, 3, self._random.choice((0, 2, 20)), first_instance=self._random.choice((0, 1, 7)))

    def sets(self) -> None:
        """Sets are bound, too, and the pipelines that use them; some are written."""
        stream, (held, layout) = self.stream, self._random.choice(self._bound)
        stream.cmd("BindDescriptorSets", layout=layout, pDescriptorSets=[held])
        if self._random.random() < 0.1:
            info = [struct("VkDescriptorBufferInfo", buffer=self._random.choice(self._buffers), range=VK_WHOLE_SIZE)]
            write = struct("VkWriteDescriptorSet", dstSet=held, descriptorCount=1, descriptorType=7, pBufferInfo=info)
            stream.call("vkUpdateDescriptorSets", device=stream.device, pDescriptorWrites=[write])
        drawing.bind(stream, self._random.choice(self._made[2:]))
        drawing.draw(stream)

    def aliases(self) -> None:
        """Buffers share memory: one is bound at the place of another."""
        first, second, _ = self._random.sample(self._buffers, 3)
        offset = 4 * self._random.randrange(16)
        self.stream.cmd("BindVertexBuffers", pBuffers=[first, second], pOffsets=[offset, offset + 64])
        drawing.draw(self.stream)


KINDS = ("goes", "is_made_anew", "far", "none", "bind2", "executes", "instances", "sets", "aliases")


@pytest.mark.parametrize("kind", KINDS)
def test_what_happens_while_vertices_are_open_is_seen(kind: str) -> None:
    findings = 0
    for seed in range(2):
        program = Eventful(seed, kind)
        program.frames(16)
        findings += findings_of_both(program, seed)
    assert findings > 20, findings
