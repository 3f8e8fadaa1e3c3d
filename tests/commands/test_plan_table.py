"""Commands that do the same have one plan, and what changes an object makes another one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.support.interpreted import InterpretedStream, short
from tests.support.streams import BUFFER_USAGE, struct
from vkharness.commands.contents.content_steps import Updated, written
from vkharness.trace.effects import Access, Command, EffectPlan, Recorded, Unmodelled


class PlannedStream(InterpretedStream):
    """A stream that says which plans its commands have."""

    def plan(self, record: Callable[[], object]) -> EffectPlan:
        """The plan of the one command that this records."""
        return self.commands_of(record)[0].plan

    def commands_of(self, record: Callable[[], object]) -> list[Command]:
        """The commands that this records."""
        self.did()
        record()
        return [each.command for each in self.did() if isinstance(each, Recorded)]

    def repeated(self, record: Callable[[], object]) -> EffectPlan:
        """The plan of a command that was recorded twice before."""
        kept = [self.plan(record) for _ in range(3)]
        assert kept[1] is kept[2] and kept[0] == kept[1]
        return kept[2]


def started() -> tuple[PlannedStream, int, int]:
    stream = PlannedStream()
    one, other = stream.buffer(64), stream.buffer(64)
    stream.begin()
    return stream, one, other


COMMANDS: dict[str, Callable[[PlannedStream, int, int], Any]] = {
    "copy": lambda stream, one, other: stream.copy(one, other, 8),
    "fill": lambda stream, one, other: stream.fill(one, 7),
    "update": lambda stream, one, other: stream.cmd("UpdateBuffer", dstBuffer=one, dataSize=4, pData=b"abcd"),
    "barrier": lambda stream, one, other: stream.barrier(),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_is_recorded_again_has_the_plan_that_it_had(name: str) -> None:
    stream, one, other = started()
    first = stream.repeated(lambda: COMMANDS[name](stream, one, other))
    stream.begin()
    assert stream.plan(lambda: COMMANDS[name](stream, one, other)) is first


def test_what_differs_has_plans_of_its_own() -> None:
    stream, one, other = started()
    plan = stream.repeated(lambda: stream.copy(one, other, 8))
    for record in (
        lambda: stream.copy(one, other, 4),
        lambda: stream.copy(one, other, 8, from_=4),
        lambda: stream.copy(one, other, 8, to=4),
        lambda: stream.copy(other, one, 8),
    ):
        assert stream.plan(record) != plan


def test_equal_effects_with_other_bytes_have_plans_of_their_own() -> None:
    stream, one, _ = started()
    plans = [
        stream.repeated(partial(stream.cmd, "UpdateBuffer", dstBuffer=one, dataSize=4, pData=b"%d" % (1000 + at)))
        for at in range(2)
    ]
    known = [written(plan) for plan in plans]
    assert [each.data for each in known if isinstance(each, Updated)] == [b"1000", b"1001"]


def test_a_plan_goes_with_the_last_command_that_has_it() -> None:
    stream, _, _ = started()
    stream.repeated(stream.barrier)
    table = stream.interpreter.objects.plans
    assert len(table) == 1
    stream.call("vkResetCommandBuffer", commandBuffer=stream.commands, flags=0)
    stream.did()
    assert len(table) == 0


def test_a_buffer_that_is_bound_elsewhere_is_read_there() -> None:
    stream, one, other = started()
    stream.repeated(lambda: stream.copy(one, other, 8))
    memory = stream.memory()
    stream.call("vkBindBufferMemory", device=stream.device, buffer=one, memory=memory, memoryOffset=16)
    read, write = stream.plan(lambda: stream.copy(one, other, 8)).effects
    assert isinstance(read, Access) and (read.space, read.spans) == (memory, ((16, 24),))
    assert isinstance(write, Access) and write.spans == ((0, 8),)


def test_a_buffer_that_is_destroyed_is_not_read() -> None:
    stream, one, other = started()
    stream.repeated(lambda: stream.copy(one, other, 8))
    stream.call("vkDestroyBuffer", device=stream.device, buffer=one)
    write, gone = stream.plan(lambda: stream.copy(one, other, 8)).effects
    assert short((write,)) == [("COPY_TRANSFER_WRITE", other, ((0, 8),))]
    assert gone == Unmodelled(f"vkCmdCopyBuffer (VkBuffer {one}, which no call made, or which is destroyed)")


def test_a_buffer_that_is_made_anew_under_one_id_has_its_own_size() -> None:
    """Ids are never used again, but by traces that somebody wrote."""
    stream, one, other = started()
    stream.repeated(lambda: stream.copy(one, other, 64))
    stream.call("vkDestroyBuffer", device=stream.device, buffer=one)
    info = struct("VkBufferCreateInfo", size=16, usage=BUFFER_USAGE)
    stream.call("vkCreateBuffer", device=stream.device, pCreateInfo=info, pBuffer=one)
    assert short(stream.plan(lambda: stream.copy(one, other, 64)).effects)[0] == ("COPY_TRANSFER_READ", one, ((0, 16),))


def test_an_alias_is_met_as_soon_as_it_is_bound() -> None:
    stream = PlannedStream()
    memory = stream.memory()
    one, other = stream.buffer(64, memory), stream.buffer(64)
    stream.begin()
    stream.repeated(lambda: stream.copy(one, other, 8))
    image = stream.image((4, 4, 1))
    stream.call("vkBindImageMemory", device=stream.device, image=image, memory=memory, memoryOffset=0)
    read = stream.plan(lambda: stream.copy(one, other, 8)).effects[0]
    assert isinstance(read, Access) and [alias.resource for alias in read.aliases] == [image]
    stream.call("vkDestroyImage", device=stream.device, image=image)
    read = stream.plan(lambda: stream.copy(one, other, 8)).effects[0]
    assert isinstance(read, Access) and not read.aliases


def test_a_dispatch_accesses_what_its_descriptors_hold_now() -> None:
    stream, one, other = started()
    shader = stream.compute("copy_words", [one, other], bytes(8))
    plan = stream.repeated(shader.run)
    third = stream.buffer(64)
    written_set = next(
        block.args["pDescriptorWrites"][0]["dstSet"]  # type: ignore[union-attr]
        for block in stream.blocks
        if getattr(block, "name", "") == "vkUpdateDescriptorSets"
    )
    write = struct(
        "VkWriteDescriptorSet",
        dstSet=written_set,
        descriptorCount=1,
        descriptorType=7,
        pBufferInfo=[struct("VkDescriptorBufferInfo", buffer=third, range=64)],
    )
    stream.call("vkUpdateDescriptorSets", device=stream.device, pDescriptorWrites=[write])
    found = stream.plan(shader.run)
    assert found != plan
    assert third in {effect.resource for effect in found.effects if isinstance(effect, Access)}


def test_a_sparse_buffer_is_open_until_the_submit() -> None:
    stream = PlannedStream()
    one = stream.buffer(64)
    stream.begin()
    fill = stream.repeated(lambda: stream.fill(one, 7))
    info = struct("VkBufferCreateInfo", size=1 << 16, usage=BUFFER_USAGE, flags=1)
    sparse = stream.make("vkCreateBuffer", "pBuffer", info)
    copy = stream.commands_of(lambda: stream.copy(one, sparse, 8))[0]
    assert copy.sure == 1
    again = stream.commands_of(lambda: stream.fill(one, 7))[0]
    assert again.plan == fill and again.sure is None
