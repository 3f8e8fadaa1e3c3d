"""Flags of effects: each is set by its name, and says what the call said. A flag of its neighbour stays away."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields, is_dataclass

import pytest

from tests.support import passes
from tests.support.interpreted import InterpretedStream, effects_of
from tests.support.passes import described, refer, subpass
from tests.support.render_effects import AREA, target
from tests.support.streams import Stream, struct
from vkharness.check import Analysis
from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED, VkAccess2, VkDependency, VkPipelineStage2
from vkharness.trace import (
    effects,
    group_effects,
    host_effects,
    inherited,
    query_effects,
    sparse_effects,
    usage_effects,
)
from vkharness.trace.effects import Barrier, PassBegin, RangeBarrier, SetEvent, WaitEvents

CLEAR, COPY = VkPipelineStage2.CLEAR, VkPipelineStage2.COPY
WRITE, READ = VkAccess2.TRANSFER_WRITE, VkAccess2.TRANSFER_READ
MODULES = (effects, group_effects, host_effects, inherited, query_effects, usage_effects, sparse_effects)
MADE = [
    each
    for module in MODULES
    for each in vars(module).values()
    if inspect.isclass(each) and is_dataclass(each) and each.__module__ == module.__name__
]
BARRIER_FLAGS: dict[int, set[str]] = {
    VkDependency.BY_REGION: {"by_region"},
    VkDependency.VIEW_LOCAL: {"by_view"},
    VkDependency.ASYMMETRIC_EVENT_KHR: {"asymmetric"},
    VkDependency.DEVICE_GROUP: {"device_group"},
}


@pytest.mark.parametrize("effect", MADE, ids=lambda each: each.__name__)
def test_flags_and_defaults_are_given_by_name(effect: type) -> None:
    """A field that is put between others takes no argument of theirs."""
    for each in fields(effect):
        optional = each.default is not MISSING
        assert each.kw_only or not (optional or each.type == "bool"), each.name


def set_flags(effect: object) -> set[str]:
    """The names of the flags that are set."""
    return {each.name for each in fields(effect) if getattr(effect, each.name) is True}  # type: ignore[arg-type]


def info(flags: int) -> dict[str, object]:
    barrier = struct("VkMemoryBarrier2", srcStageMask=0x80, dstStageMask=0x80)
    return struct("VkDependencyInfo", dependencyFlags=flags, pMemoryBarriers=[barrier])


@pytest.mark.parametrize("flag", BARRIER_FLAGS)
@pytest.mark.parametrize("form", [1, 2])
def test_pipeline_barrier(flag: int, form: int) -> None:
    stream = Stream()
    _, view = target(stream, array=2)
    passed = passes.render_pass(stream, [described()], [subpass([refer(0)], views=0b11)])
    frame = passes.framebuffer(stream, passed, [view], (8, 8))
    stream.begin()
    passes.begin_pass(stream, passed, frame, AREA)
    if form == 1:
        at = stream.cmd("PipelineBarrier", srcStageMask=0x80, dstStageMask=0x80, dependencyFlags=flag)
    else:
        at = stream.cmd("PipelineBarrier2", pDependencyInfo=info(flag))
    (barrier,) = effects_of(stream)[at]
    assert isinstance(barrier, Barrier) and set_flags(barrier) == BARRIER_FLAGS[flag]


@pytest.mark.parametrize("flag", [0, VkDependency.ASYMMETRIC_EVENT_KHR])
def test_event_of_the_second_form(stream: InterpretedStream, flag: int) -> None:
    (made,) = stream.effects("SetEvent2", event=90, pDependencyInfo=info(flag))
    (waited,) = stream.effects("WaitEvents2", pEvents=[90], pDependencyInfos=[info(flag)])
    assert isinstance(made, SetEvent) and isinstance(waited, WaitEvents)
    expected = {"asymmetric"} if flag else set()
    assert set_flags(made.barrier) == set_flags(waited.barriers[0]) == expected
    assert set_flags(made) == set_flags(waited) == {"sync2"}


@pytest.mark.parametrize("flag", [0, VkDependency.QUEUE_FAMILY_OWNERSHIP_TRANSFER_USE_ALL_STAGES_KHR])
@pytest.mark.parametrize("layouts", [(1, 1), (1, 5)])
def test_barrier_of_an_image(stream: InterpretedStream, flag: int, layouts: tuple[int, int]) -> None:
    image = stream.image((8, 8, 1))
    part = struct("VkImageSubresourceRange", aspectMask=1, levelCount=1, layerCount=1)
    moved = struct(
        "VkImageMemoryBarrier2", image=image, oldLayout=layouts[0], newLayout=layouts[1], subresourceRange=part,
        srcQueueFamilyIndex=0, dstQueueFamilyIndex=1 if flag else VK_QUEUE_FAMILY_IGNORED,
    )  # fmt: skip
    given = struct("VkDependencyInfo", dependencyFlags=flag, pImageMemoryBarriers=[moved])
    (barrier,) = stream.effects("PipelineBarrier2", pDependencyInfo=given)
    assert isinstance(barrier, Barrier) and set_flags(barrier) == set()
    (ranged,) = barrier.ranges
    assert isinstance(ranged, RangeBarrier)
    assert set_flags(ranged) == {
        name for name, given in (("all_stages", flag), ("transition", layouts[0] != layouts[1])) if given
    }
    assert (ranged.old_layout, ranged.new_layout) == layouts


@pytest.mark.parametrize("flag", [0, VkDependency.BY_REGION, VkDependency.DEVICE_GROUP])
def test_subpass_dependency(flag: int) -> None:
    stream = Stream()
    _, view = target(stream)
    several = [subpass([refer(0)]), subpass([refer(0)])]
    given = [{**passes.depends(0, 1, (0x80, 0, 0x80, 0)), "dependencyFlags": flag}]
    passed = passes.render_pass(stream, [described()], several, given)
    frame = passes.framebuffer(stream, passed, [view], (8, 8))
    stream.begin()
    at = passes.begin_pass(stream, passed, frame, AREA)
    start = effects_of(stream)[at][0]
    assert isinstance(start, PassBegin)
    (between,) = [each for each in start.dependencies if (each.src, each.dst) == (0, 1)]
    assert set_flags(between) == BARRIER_FLAGS.get(flag, set()) and between.views is None


@pytest.mark.parametrize(("flag", "found"), [(0, 2), (VkDependency.ASYMMETRIC_EVENT_KHR, 0)])
def test_calls_of_an_asymmetric_event_are_a_dependency(flag: int, found: int) -> None:
    """Rule: rules.md#a-wait-must-match-its-set."""
    stream = Stream()
    a, b = stream.buffer(16), stream.buffer(16)
    before = struct("VkMemoryBarrier2", srcStageMask=CLEAR)
    whole = struct("VkMemoryBarrier2", srcStageMask=CLEAR, srcAccessMask=WRITE, dstStageMask=COPY, dstAccessMask=READ)
    given, waited = (
        struct("VkDependencyInfo", dependencyFlags=flag, pMemoryBarriers=[each]) for each in (before, whole)
    )
    stream.begin()
    stream.fill(a, 7)
    stream.cmd("SetEvent2", event=90, pDependencyInfo=given)
    stream.cmd("WaitEvents2", pEvents=[90], pDependencyInfos=[waited])
    stream.copy(a, b, 16)
    stream.submit()
    analysis = Analysis().follow(stream.blocks)
    assert len(analysis.findings) == found
