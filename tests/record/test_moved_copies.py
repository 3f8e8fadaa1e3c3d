"""Copies between buffers and images that come with another `bufferOffset` each time: what the native core moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.native_commands import HANDLE, Recorder, direct, ffi, native_command, new_objects
from vkharness.check import TraceSaying
from vkharness.commands.buffer_transfers import learn_moved, new_flat_plans
from vkharness.commands.contents.content_steps import content_steps
from vkharness.commands.handlers import COMMANDS
from vkharness.commands.interpret import RepeatedCommand
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.native import core
from vkharness.record import native_log
from vkharness.record import struct_layout as layout
from vkharness.record.decode import Decoder
from vkharness.record.native_front import call_directly
from vkharness.spec.enums import VkFormat, VkImageType
from vkharness.trace.effects import Access, EffectPlan
from vkharness.trace.resources import Buffer, Image

pytestmark = pytest.mark.skipif(core is None, reason="what moves is known to the native core")
SIZE, BASE = 1024, 4096
BOTH = ("vkCmdCopyBufferToImage", "vkCmdCopyImageToBuffer")
FORMS = (*BOTH, *(f"{name}2" for name in BOTH))


@pytest.fixture(autouse=True)
def directly() -> Iterator[None]:
    call_directly(True)
    yield
    call_directly(False)


class Copies:
    """Calls of copies that are left in a log, and what states of objects make of them."""

    def __init__(self) -> None:
        self._recorder, handles = Recorder(), new_objects()
        order = native_log.CallOrder()
        order.let_wait(lambda: None)
        self._recorder.log = order.log
        into, self.buffer, image = (
            handles.create(kind, HANDLE, 0) for kind in ("VkCommandBuffer", "VkBuffer", "VkImage")
        )
        self._decoder, self.objects, self.reference = Decoder(handles), ObjectState(), ObjectState()
        for each in (self.objects, self.reference):
            each.add(Buffer(self.buffer, SIZE, 9, BASE))
            each.add(Image(image, VkImageType.TYPE_2D, VkFormat.R8G8B8A8_UNORM, (16, 16, 1), 3, 4, memory=8))
        self.into = CommandBuffer(into, 0)
        self._plans = new_flat_plans(self.objects, RepeatedCommand)

    def call(self, name: str, offset: int, width: int = 4, row: int = 8, count: int = 1) -> Any:
        """Calls that wait: one of a copy of 4 rows."""
        region = (offset, row, 0, (1, 1, 0, 1), (2, 3, 0), (width, 4, 1))
        into, buffer, image = (ffi.cast(kind, HANDLE) for kind in ("VkCommandBuffer", "VkBuffer", "VkImage"))
        ends = (image, 1, buffer) if "ImageToBuffer" in name else (buffer, image, 1)
        values: tuple[Any, ...]
        if name.endswith("2"):
            regions = ffi.new("VkBufferImageCopy2[]", [(0, ffi.NULL, *region)] * count)
            values = (
                ffi.new(
                    f"{name.replace('vkCmd', 'Vk').removesuffix('2')}Info2 *", (0, ffi.NULL, *ends, count, regions)
                ),
            )
        else:
            regions = ffi.new("VkBufferImageCopy[]", [region] * count)
            values = (*ends, count, regions)
        driver = ffi.callback(layout.prototype(name), lambda *args: None)
        direct(driver, native_command(name, driver, self._recorder, self._decoder))(into, *values)
        return self._recorder.log.take()

    def known(self, waiting: Any) -> list[EffectPlan]:
        """The plan of a call, if the native core knows it."""
        changes = self.objects.changes
        found: list[EffectPlan] = waiting.repeated(
            self.into, changes, None, lambda name, site: (name, site), self._plans, None
        )[2]
        return found

    def handled(self, said: Any) -> EffectPlan:
        """Returns the plan of the handler."""
        made = COMMANDS[said.name](self.reference, self.into, said.args)
        assert isinstance(made, EffectPlan)
        return made

    def learn(self, waiting: Any) -> bool:
        """Learns of a call. Its resources are those of which calls speak."""
        self.objects.said.add(self.buffer)
        return learn_moved(self.objects, waiting.said, self.handled(waiting.said))


@pytest.mark.parametrize("name", FORMS)
def test_what_a_copy_does_is_what_one_with_another_offset_did_elsewhere(name: str) -> None:
    copies, found = Copies(), 0
    assert copies.known(copies.call(name, 64)) == []
    assert copies.learn(copies.call(name, 64))
    for offset in (*range(0, SIZE + 64, 12), (1 << 62) + 4, (1 << 64) - 16):
        waiting = copies.call(name, offset)
        said, plans = waiting.said, copies.known(waiting)
        reaches = 3 * 8 * 4 + 4 * 4  # three rows of the pitch and what the last one has
        assert len(plans) == (offset + reaches <= SIZE), "what the end of the buffer cuts is Python's to say"
        for plan in plans:
            reference, found = copies.handled(said), found + 1
            assert tuple(plan) == tuple(reference) and plan == reference
            steps: list[Any] = content_steps([plan], 0, 1)
            assert [each.writes for each in steps] == content_steps([reference], 0, 1)
    assert found > 60


def test_copies_that_say_anything_else_are_not_known() -> None:
    for name in FORMS:
        copies = Copies()
        assert copies.learn(copies.call(name, 0))
        for other in (copies.call(name, 0, width=5), copies.call(name, 0, row=9), copies.call(name, 0, count=2)):
            assert copies.known(other) == []
        assert not copies.learn(copies.call(name, 0, count=2)), "two offsets move two ranges"
        others = [each for each in FORMS if each != name]
        assert all(copies.known(copies.call(each, 0)) == [] for each in others)
        assert len(copies.known(copies.call(name, 16))) == 1
        copies.objects.changed(copies.buffer)
        assert copies.known(copies.call(name, 16)) == [], "the buffer may lie elsewhere"


def test_nothing_is_learned_where_the_end_of_the_buffer_may_have_cut() -> None:
    for name in FORMS:
        copies = Copies()
        for offset in (SIZE - 112, SIZE - 111, SIZE - 8, SIZE + 8):
            assert not copies.learn(copies.call(name, offset))
        assert copies.known(copies.call(name, 0)) == []


def test_learning_takes_only_what_it_can_read() -> None:
    copies = Copies()
    said = copies.call(BOTH[0], 0).said
    assert copies.learn(copies.call(BOTH[0], 0))
    flat: Any = copies.objects.plans.flat
    assert not flat.learn(TraceSaying(said.name, said.args), 0, None), "of a trace nothing is known by bytes"
    for wrong in ((said, 0, None), (said, 0, flat), (said, None, None)):
        with pytest.raises((TypeError, ValueError)):
            flat.learn(*wrong)


def test_an_image_that_a_copy_reads_and_a_later_one_writes_is_written() -> None:
    """The bound on pending writes must not be too small: a plan of each kind stands for those over one image."""
    assert core is not None
    copies = Copies()
    plans: list[EffectPlan] = []
    for name in ("vkCmdCopyImageToBuffer", "vkCmdCopyBufferToImage"):
        assert copies.learn(copies.call(name, 0))
        for offset in (64, 128):
            plans += copies.known(copies.call(name, offset))
    assert len(plans) == 4
    others, _ = core.flat_writes(plans)
    kept, all_kinds = (
        {effect.access_kind for plan in some for effect in plan.effects if isinstance(effect, Access)}
        for some in (others, plans)
    )
    assert kept == all_kinds and len(others) == 2, "one of each kind"
