"""Layouts that replays follow through render passes: each aspect and layer in its own."""

from __future__ import annotations

from tests.support import passes
from tests.support.passes import DEPTH_LAYOUT, READ_ONLY, described, rect, refer, subpass
from tests.support.streams import COLOR, D32_S8, DEPTH, R8G8B8A8, STENCIL, Stream
from vkharness.replay.schedule.layouts import Layouts
from vkharness.replay.schedule.render_pass_layouts import Passes
from vkharness.trace.calls import Call
from vkharness.trace.resources import Image


def follow(stream: Stream, image: Image) -> Layouts:
    """The layouts after everything in a stream has run in the order of its blocks."""
    layouts = Layouts()
    layouts.add(image, 0)
    followed = Passes(layouts)
    for block in stream.blocks:
        if isinstance(block, Call) and block.name.startswith("vkCmd"):
            followed.after(block)
        else:
            followed.note(block)
    return layouts


def test_stencil_ends_in_a_layout_of_its_own() -> None:
    stream = Stream()
    image = stream.image((8, 8, 1), D32_S8)
    view = passes.view(stream, image, D32_S8, aspects=DEPTH)
    made = [described(D32_S8, final=DEPTH_LAYOUT, stencil_layouts=(0, READ_ONLY))]
    passed = passes.render_pass(stream, made, [subpass(depth=refer(0, DEPTH_LAYOUT))])
    frame = passes.framebuffer(stream, passed, [view], (8, 8))
    stream.begin()
    passes.begin_pass(stream, passed, frame, rect((8, 8)))
    passes.end_pass(stream)
    layouts = follow(stream, Image(image, 1, D32_S8, (8, 8, 1), 1, 1))
    assert layouts.of(image, (DEPTH, 0, 0)) == DEPTH_LAYOUT
    assert layouts.of(image, (STENCIL, 0, 0)) == READ_ONLY


def test_only_the_framebuffers_layers_move() -> None:
    stream = Stream()
    image = stream.image((8, 8, 1), mips=2, array=4)
    view = passes.view(stream, image, mip=1, layers=(1, 3))
    passed = passes.render_pass(stream, [described(final=READ_ONLY)], [subpass([refer(0)])])
    frame = passes.framebuffer(stream, passed, [view], (4, 4), layers=2)
    stream.begin()
    passes.begin_pass(stream, passed, frame, rect((1, 1)))
    passes.end_pass(stream)
    layouts = follow(stream, Image(image, 1, R8G8B8A8, (8, 8, 1), 2, 4))
    moved = [where for where in layouts.subresources(image) if layouts.of(image, where) == READ_ONLY]
    assert moved == [(COLOR, 1, 1), (COLOR, 1, 2)]
