"""Draws and indirect dispatches of which both loaded values and indices or parameters decide what they access."""

from __future__ import annotations

import pytest

from tests.commands.test_shader_memory import executed, ready, seen, update
from tests.support import drawing
from tests.support.drawing import attribute, binding, vertex_input
from tests.support.interpreted import InterpretedStream
from tests.support.ring import Ring
from tests.support.streams import Stream, struct, words
from vkharness.agreement import agreement
from vkharness.check import Analysis
from vkharness.findings import Certainty
from vkharness.spec.enums import VkIndexType
from vkharness.spec.masks import scope

EXACT, DECLARED = Certainty.EXACT, Certainty.DECLARED
STORE, LOAD = "FRAGMENT_SHADER_SHADER_STORAGE_WRITE", "FRAGMENT_SHADER_UNIFORM_READ"
VERTEX_READ = "VERTEX_ATTRIBUTE_INPUT_VERTEX_ATTRIBUTE_READ"


@pytest.mark.parametrize(("known", "stored"), [(True, (40, 44)), (False, (0, 512))])
@pytest.mark.parametrize("again", [False, True])
def test_indices_and_loaded_values_decide_together_what_a_draw_accesses(
    known: bool, stored: tuple[int, int], again: bool
) -> None:
    stream = Stream()
    image, view = drawing.color_target(stream)
    a, numbers, vertices, indices = (stream.buffer(size) for size in (512, 16, 256, 16))
    input = vertex_input([binding()], [attribute()])
    made = drawing.pipeline(stream, "uniform_word.frag", vertex="fullscreen.vert", input=input)
    stream.begin()
    for buffer, data in ((indices, words(2, 3, 4)), (numbers, words(10))):
        if known or buffer == indices:
            stream.cmd("UpdateBuffer", dstBuffer=buffer, dstOffset=0, dataSize=len(data), pData=data)
    drawing.render(stream, view)
    drawing.bind(stream, made)
    drawing.bind_descriptors(stream, (7, a), (6, numbers))
    drawing.bind_vertices(stream, vertices)
    drawing.bind_indices(stream, indices, kind=VkIndexType.UINT32)
    for _ in range(1 + again):  # the second draw takes what is bound from the first
        drawn = stream.cmd("DrawIndexed", indexCount=3, instanceCount=1, firstIndex=0, vertexOffset=0, firstInstance=0)
    found = [access for access, _ in drawing.executed(stream, drawn)]
    assert (vertices, VERTEX_READ, ((16, 40),)) in found
    assert (a, STORE, (stored,)) in found and (numbers, LOAD, ((0, 4),)) in found
    assert [each for each in found if each[0] == image and each[1].endswith("WRITE")]
    assert len(found) == len(set(found))


@pytest.mark.parametrize(("groups", "stored"), [(1, [(40, 200)]), (0, [])])
def test_an_indirect_dispatch_stores_where_loaded_values_say_if_it_runs(
    stream: InterpretedStream, groups: int, stored: list[tuple[int, int]]
) -> None:
    a, numbers, parameters = stream.buffer(512), stream.buffer(16), stream.buffer(16)
    update(stream, numbers, 10, 40)
    update(stream, parameters, groups, 1, 1)
    ready(stream, stream.compute("uniform_range", [a, numbers], b"1234"), 7)
    recorded = stream.effects("DispatchIndirect", buffer=parameters, offset=0)
    assert (DECLARED, ((0, 512),)) in [(each[3], each[2]) for each in seen(tuple(recorded)) if each[1] == a]
    effects, unmodelled = executed(stream)
    assert [span for each in seen(effects) if each[1] == a for span in each[2]] == stored and not unmodelled


def _barrier(stream: Stream, before: str, after: str) -> None:
    (src_stages, src_accesses), (dst_stages, dst_accesses) = scope(before), scope(after)
    masks = {"srcStageMask": src_stages, "srcAccessMask": src_accesses}
    masks |= {"dstStageMask": dst_stages, "dstAccessMask": dst_accesses}
    barrier = struct("VkMemoryBarrier2", **masks)
    stream.cmd("PipelineBarrier2", pDependencyInfo=struct("VkDependencyInfo", pMemoryBarriers=[barrier]))


@pytest.mark.parametrize("executed", [True, False])
@pytest.mark.parametrize(
    ("read_by", "offset", "hazards"),
    [
        ("VERTEX_ATTRIBUTE_INPUT", 0, []),
        ("VERTEX_ATTRIBUTE_INPUT", 128, ["WRITE_AFTER_WRITE"]),
        ("COMPUTE_SHADER", 0, ["WRITE_AFTER_READ"]),
    ],
)
def test_a_write_after_reads_that_contents_decide_is_judged_at_the_submit(
    executed: bool, read_by: str, offset: int, hazards: list[str]
) -> None:
    ring = Ring()
    ring.host_write(ring.index_memory, 0, words(0, 1, 2))
    ring.overwrites((0, 512))
    _barrier(ring, "COPY/TRANSFER_WRITE", "VERTEX_ATTRIBUTE_INPUT/VERTEX_ATTRIBUTE_READ")
    ring.draws(indexCount=3, instanceCount=1, firstIndex=0, vertexOffset=0, firstInstance=0)
    _barrier(ring, read_by, "COPY")
    ring.copy(ring.source, ring.vertices, 24, to=offset)
    if executed:
        ring.submit()
    found = Analysis().follow(ring.blocks).findings
    assert agreement(ring.blocks).disagreements == ()
    assert all(each.place.submit is not None for each in found)
    assert [each.hazard for each in found] == hazards * executed
