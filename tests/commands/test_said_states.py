"""Commands in states that others have set do the same as call by call."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.support import passes
from tests.support.bound_sets import DYNAMIC, STORAGE, TwoBuffers
from tests.support.said_calls import Listener
from tests.support.said_jobs import call_by_call
from tests.support.streams import Stream, struct
from vkharness.commands import interpret
from vkharness.commands.drawing.numbered_draws import NUMBERED, SEVERAL
from vkharness.commands.object_state import CommandBuffer
from vkharness.commands.open_numbers import OPEN
from vkharness.commands.said_states import (
    BEGIN,
    BINDS_SETS,
    END,
    KEEPS_STATE,
    LASTS,
    MOST_PARTS,
    NEXT,
    PUSHES,
    READS,
    SETS,
)
from vkharness.device.drivers import find_driver
from vkharness.device.process import Died, Worker
from vkharness.findings import Finding
from vkharness.native import core
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call

SEEDS = (11, 48, 56, *range(24))
JOB = "tests.support.said_jobs:judge_program"
AT = 0x7F00_0000_1000
"""A device address."""


def test_random_programs_do_what_they_do_call_by_call() -> None:
    counts = Counter[str]()
    with Worker(find_driver("lavapipe"), packages=("tests",)) as worker:
        for seed in SEEDS:
            told = worker.call(JOB, {"seed": seed})
            assert not isinstance(told, Died)
            assert told["by saying"] == told["by call"], f"seed {seed}"
            counts.update(known=told["known"], heard=told["heard"], findings=len(told["by call"]))
    assert counts["known"] > counts["heard"] / 4 and counts["findings"] > 10 * len(SEEDS)


# -- sets that refer to what others referred to


class FreshSets:
    """A program that dispatches with sets over three buffers, each with one of a few contents. It is a random one: sets
    are fresh or bound again, written while they are bound, and freed."""

    def __init__(self, seed: int) -> None:
        self._random, self._two = random.Random(seed), TwoBuffers(DYNAMIC, STORAGE)
        self._buffers = [self._two.stream.buffer(1024) for _ in range(2)]
        self._kept = [self._set() for _ in range(3)]

    def blocks(self, frames: int) -> list[Block]:
        """Some frames, each recorded into the same command buffer and submitted."""
        stream, commands = self._two.stream, self._two.stream.commands
        for _ in range(frames):
            begin = struct("VkCommandBufferBeginInfo")
            stream.call("vkBeginCommandBuffer", commandBuffer=commands, pBeginInfo=begin)
            stream.cmd("BindPipeline", pipelineBindPoint=1, pipeline=self._two.pipeline)
            for _ in range(self._random.randrange(2, 9)):
                self._step()
            stream.submit()
        return stream.blocks

    def _step(self) -> None:
        stream, chosen = self._two.stream, self._random
        what = chosen.random()
        if what < 0.1:
            self._two.write(chosen.choice(self._kept), *self._contents())
        elif what < 0.15:
            gone = self._kept.pop(chosen.randrange(3))
            args = {"descriptorPool": self._two.pool, "descriptorSetCount": 1, "pDescriptorSets": [gone]}
            stream.call("vkFreeDescriptorSets", device=stream.device, **args)
            self._kept.append(gone if chosen.random() < 0.2 else self._set())
        elif what < 0.3:
            stream.barrier()
        if what > 0.2:
            held = chosen.choice(self._kept) if what < 0.4 else self._set()
            self._kept = [*self._kept[1:], held] if what > 0.8 else self._kept
            self._two.bind(held, chosen.choice((0, 256)))
        for _ in range(chosen.randrange(3)):
            self._two.push(chosen.randrange(2))
            stream.cmd("Dispatch", groupCountX=1, groupCountY=1, groupCountZ=1)

    def _set(self) -> int:
        return self._two.made(*self._contents())

    def _contents(self) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        one, other = self._random.sample(self._buffers, 2)
        return (one, 0, 256), (other, 0, 256)


@pytest.mark.parametrize("one_by_one", [False, True])
def test_fresh_sets_do_what_they_do_call_by_call(one_by_one: bool) -> None:
    known = findings = 0
    for seed in range(12):
        blocks = FreshSets(seed).blocks(24)
        listener = Listener(one_by_one)
        by_saying, by_call = listener.listen(blocks), call_by_call(blocks)
        for each in (by_saying, by_call):
            each.finish()
        assert list(map(told, by_saying.findings)) == list(map(told, by_call.findings)), f"seed {seed}"
        assert by_saying.unmodelled == by_call.unmodelled
        known, findings = known + listener.known, findings + len(by_call.findings)
    natively = core is not None or one_by_one  # in Python alone nobody knows of several commands what binds do
    assert known > (3000 if natively else 1500) and findings > 1000, (known, findings)


def test_no_table_has_an_alias() -> None:
    """Commands are looked up under their main names."""
    tables = (SETS, LASTS, BINDS_SETS, PUSHES, BEGIN, NEXT, END, READS, KEEPS_STATE, NUMBERED, SEVERAL, OPEN)
    assert PUSHES and not [name for table in tables for name in table if main_name(name) != name]


class PushedSets(FreshSets):
    """Its sets are pushed now and then."""

    def _step(self) -> None:
        if self._random.random() < 0.5:
            written = [
                struct("VkWriteDescriptorSet", dstBinding=at, descriptorCount=1, descriptorType=STORAGE)
                | {"pBufferInfo": [struct("VkDescriptorBufferInfo", buffer=buffer, offset=start, range=size)]}
                for at, (buffer, start, size) in enumerate(self._contents())
            ]
            place = {"pipelineBindPoint": 1, "layout": self._two.layout, "set": 0}
            name = self._random.choice(("PushDescriptorSet", "PushDescriptorSetKHR"))
            self._two.stream.cmd(name, **place, pDescriptorWrites=written)
            self._two.push(0)
            self._two.stream.cmd("Dispatch", groupCountX=1, groupCountY=1, groupCountZ=1)
        super()._step()


def test_pushed_sets_do_what_they_do_call_by_call() -> None:
    known = findings = 0
    for seed in range(4):
        blocks = PushedSets(seed).blocks(24)
        listener = Listener(True)
        by_saying, by_call = listener.listen(blocks), call_by_call(blocks)
        for each in (by_saying, by_call):
            each.finish()
        assert list(map(told, by_saying.findings)) == list(map(told, by_call.findings)), f"seed {seed}"
        known, findings = known + listener.known, findings + len(by_call.findings)
    assert known > 500 and findings > 300, (known, findings)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("SetColorWriteMaskEXT", lambda count: {"firstAttachment": 0, "pColorWriteMasks": [15] * count}),
        ("BindVertexBuffers", lambda count: {"firstBinding": 0, "pBuffers": [0] * count, "pOffsets": [0] * count}),
        (
            "SetVertexInputEXT",
            lambda count: {
                "pVertexBindingDescriptions": [
                    struct("VkVertexInputBindingDescription2EXT", binding=at, stride=4, divisor=1)
                    for at in range(count)
                ],
                "pVertexAttributeDescriptions": [
                    struct("VkVertexInputAttributeDescription2EXT", location=at, binding=at, format=103)
                    for at in range(count)
                ],
            },
        ),
    ],
)
def test_no_state_has_many_parts(name: str, args: Callable[[int], dict[str, Any]]) -> None:
    known = {}
    for count in (8, 2 * MOST_PARTS):
        stream = Stream()
        stream.begin()
        for _ in range(3):
            stream.cmd(name, **args(count))
        for at in range(3 * 8):
            stream.cmd("SetCullMode", cullMode=at % 4)
            stream.cmd("SetPrimitiveTopology", primitiveTopology=at % 3)
        analysis = Listener(False).listen(stream.blocks)
        known[count] = len(analysis._interpreter._states._states)
    assert known[8] > 8 and known[2 * MOST_PARTS] <= 1, known


def test_a_state_that_cannot_be_left_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a malformed command raises, wherever that is, leaves nothing known behind."""
    stream = Stream()
    stream.begin()
    for _ in range(4):
        stream.cmd("SetCullMode", cullMode=1)
    listener = Listener(False)
    analysis = listener.listen(stream.blocks)
    buffer = next(iter(analysis._interpreter.objects.every(CommandBuffer)))
    assert buffer.parts is not None
    buffer.settled = None
    monkeypatch.setattr(interpret, "keeps_state", lambda *_: int("none"))
    with pytest.raises(ValueError, match="none"):
        analysis._interpreter._record(99, "vkCmdSetCullMode", {"commandBuffer": buffer.id, "cullMode": 1}, None)
    assert buffer.parts is None and buffer.said is None


def told(finding: Finding) -> str:
    return f"{finding.message} {finding.place} {finding.prior}"


# -- objects that go


@pytest.mark.parametrize("goes", ["another view", "the view", "the view of the framebuffer", "the image"])
def test_what_is_known_ends_with_the_objects_that_sayings_name(goes: str) -> None:
    stream = Stream()
    image = stream.image((16, 16, 1))
    others = {"the view": passes.view(stream, image), "another view": passes.view(stream, image)}
    others["the view of the framebuffer"] = passes.view(stream, image)
    use = [passes.described(initial=1, final=1)]
    made = passes.render_pass(stream, use, [passes.subpass([passes.refer(0, 1)])])
    frame = passes.framebuffer(stream, made, [others["the view of the framebuffer"]], (16, 16))
    listener, known, heard = Listener(), list[int](), 0
    stream.begin()
    for number in range(8):
        if number == 6 and goes in others:
            stream.call("vkDestroyImageView", device=stream.device, imageView=others[goes])
        elif number == 6:
            stream.call("vkDestroyImage", device=stream.device, image=image)
        begin = struct("VkCommandBufferBeginInfo")
        stream.call("vkBeginCommandBuffer", commandBuffer=stream.commands, pBeginInfo=begin)
        passes.begin_rendering(stream, passes.rect((16, 16)), [passes.attached(others["the view"])])
        stream.cmd("EndRendering")
        passes.begin_pass(stream, made, frame, passes.rect((16, 16)))
        passes.end_pass(stream)
        stream.submit()
        listener.listen(stream.blocks[heard:])
        heard = len(stream.blocks)
        known.append(listener.known)
    new = [after - before for before, after in pairwise(known)]
    assert new[2:5] == [4, 4, 4]
    assert (new[5] == 4) == (goes == "another view")
    found, wanted = listener.analysis, call_by_call(stream.blocks)
    assert list(map(told, found.findings)) == list(map(told, wanted.findings))


def test_what_is_known_ends_when_an_address_stands_for_another_buffer() -> None:
    """Buffers on the same memory have one address, and it stands for the one that the program asked about last."""
    stream, listener, known, heard = Stream(), Listener(), list[int](), 0
    memory = stream.memory()
    large, small, apart = stream.buffer(1024, memory), stream.buffer(128, memory), stream.buffer(64)
    dispatch = stream.compute("address_copy", [], b"".join(each.to_bytes(8, "little") for each in (AT, AT + 64, 32)))
    asked = {0: (large, AT), 5: (apart, AT + (1 << 20)), 7: (small, AT)}
    stream.begin()
    for number in range(11):
        if number in asked:
            buffer, address = asked[number]
            stream.call("vkGetBufferDeviceAddress", device=stream.device, pInfo={"buffer": buffer})
            asking = stream.blocks[-1]
            assert isinstance(asking, Call)
            asking.result = address
        begin = struct("VkCommandBufferBeginInfo")
        stream.call("vkBeginCommandBuffer", commandBuffer=stream.commands, pBeginInfo=begin)
        dispatch.run()
        dispatch.run()
        stream.submit()
        listener.listen(stream.blocks[heard:])
        heard = len(stream.blocks)
        known.append(listener.known)
    found, wanted = listener.analysis, call_by_call(stream.blocks)
    assert list(map(told, found.findings)) == list(map(told, wanted.findings))
    assert {each.resource for each in found.findings} == {large, small}
    new = [after - before for before, after in pairwise(known)]
    assert new[4] == new[3] > 4, "the address of another buffer changes nothing"
    assert new[6] == 0
