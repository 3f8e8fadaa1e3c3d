"""Captures of transform feedback, held against those of lavapipe, and against values worked out by hand."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

import pytest

import vkharness
from vkharness.computed.expected_bytes import compute
from vkharness.replay.outcomes.jobs import run_serial
from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer, RigPipeline
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.rig.rig import Rig
from vkharness.spec.enums import VkPrimitiveTopology

OLD = 0x77777777
EXTENSION = "VK_EXT_transform_feedback"
Draws = Callable[[Commands, RigPipeline, RigBuffer, RigBuffer], object]


def captured(
    draws: Draws, topology: int = VkPrimitiveTopology.POINT_LIST, counter: int = OLD
) -> list[list[int | None]]:
    """The words of the buffer that is captured to and of a counter, None where they are not known. All that is known
    is what lavapipe leaves."""
    with vkharness.attach(keep_trace=True) as session, Rig((EXTENSION,), None) as rig:
        image, pipeline = rig.target(), rig.graphics("gradient", "feedback_words", topology=topology)
        target = rig.buffer(32, data=struct.pack("<8I", *[OLD] * 8))
        counted = rig.buffer(16, data=struct.pack("<4I", *[counter] * 4))
        with rig.submission() as commands:
            commands.transition(image)
            commands.begin_rendering(RenderingAttachment(rig.view(image)))
            commands.bind(pipeline)
            commands.push_constants(pipeline, 0x100)
            draws(commands, pipeline, target, counted)
            commands.end_rendering()
        rig.wait()
        ids = [session.id_of("VkBuffer", each.handle) for each in (target, counted)]
    blocks = session.blocks or []
    computed, serial = compute(blocks), run_serial(blocks, "lavapipe")
    found = []
    for id in ids:
        assert id is not None
        beside = computed.beside(serial).surfaces[id, None].data
        assert beside.tolist() == serial.surfaces[id, None].data.tolist()
        cells = computed.cells[id, None]
        words = cells.data.view("<u4").tolist()
        found.append([word if cells.known[4 * at] else None for at, word in enumerate(words)])
    return found


def from_(first: int, count: int) -> Iterator[int]:
    return iter(range(0x100 + first, 0x100 + first + count))


@pytest.mark.driver
def test_points_are_captured_one_after_the_other() -> None:
    def draws(commands: Commands, pipeline: RigPipeline, target: RigBuffer, counter: RigBuffer) -> None:
        commands.bind_feedback(target, 4)
        commands.begin_feedback()
        commands.draw(2)
        commands.draw(3)
        commands.end_feedback(counter)

    words, counts = captured(draws)
    assert words == [OLD, *from_(0, 2), *from_(0, 3), OLD, OLD]
    assert counts[:2] == [20, OLD]


@pytest.mark.driver
def test_what_finds_no_room_is_not_captured() -> None:
    def draws(commands: Commands, pipeline: RigPipeline, target: RigBuffer, counter: RigBuffer) -> None:
        commands.bind_feedback(target, 8, 12)
        commands.begin_feedback()
        commands.draw(5)
        commands.end_feedback()

    assert captured(draws)[0] == [OLD, OLD, *from_(0, 3), OLD, OLD, OLD]


@pytest.mark.driver
def test_a_counter_says_where_it_goes_on() -> None:
    def draws(commands: Commands, pipeline: RigPipeline, target: RigBuffer, counter: RigBuffer) -> None:
        commands.bind_feedback(target)
        commands.begin_feedback(counter)
        commands.draw(2)
        commands.end_feedback(counter, 4)

    words, counts = captured(draws, counter=12)
    assert (words, counts) == ([OLD, OLD, OLD, *from_(0, 2), OLD, OLD, OLD], [12, 20, 12, 12])


@pytest.mark.driver
def test_a_draw_has_as_many_vertices_as_a_counter_says() -> None:
    def draws(commands: Commands, pipeline: RigPipeline, target: RigBuffer, counter: RigBuffer) -> None:
        commands.bind_feedback(target)
        commands.begin_feedback()
        commands.draw_byte_count(counter)
        commands.end_feedback()

    assert captured(draws, counter=15)[0] == [*from_(0, 3), *[OLD] * 5]


@pytest.mark.driver
def test_with_which_vertex_a_triangle_begins_is_open() -> None:
    def draws(commands: Commands, pipeline: RigPipeline, target: RigBuffer, counter: RigBuffer) -> None:
        commands.bind_feedback(target, 16)
        commands.begin_feedback()
        commands.draw(3)
        commands.end_feedback(counter)

    words, counts = captured(draws, VkPrimitiveTopology.TRIANGLE_LIST)
    assert (words, counts) == ([OLD] * 4 + [None] * 4, [None, OLD, OLD, OLD])


@pytest.mark.driver
def test_what_is_drawn_without_feedback_is_not_captured() -> None:
    def draws(commands: Commands, pipeline: RigPipeline, target: RigBuffer, counter: RigBuffer) -> None:
        commands.bind_feedback(target)
        commands.draw(4)

    assert captured(draws)[0] == [OLD] * 8
