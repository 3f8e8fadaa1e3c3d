"""Render pass instances in parts: where they are cut, what the parts load and store, and what they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.support import drawing, passes
from tests.support.passes import (
    CLEAR,
    COLOR_LAYOUT,
    DISCARD,
    DONT_CARE,
    LOAD,
    NONE_LOAD,
    NONE_STORE,
    READ_ONLY,
    STORE,
    attached,
    depends,
    described,
    rect,
    refer,
    subpass,
)
from tests.support.streams import COLOR, Stream, struct
from vkharness.device.drivers import find_driver
from vkharness.device.process import Worker
from vkharness.findings import Box, Finding, Hazard, Place
from vkharness.replay.outcomes.witness import UncutError, as_shown, find_ends
from vkharness.replay.schedule.cut_instances import CutSteps
from vkharness.replay.schedule.render_pass_effects import RenderPassEffects
from vkharness.replay.schedule.steps import Step, flatten
from vkharness.trace.calls import Call

SIZE = (8, 8)
AREA = rect(SIZE)
OUTPUT = "SYNC_COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_"
WRITE, READ, MOVED = f"{OUTPUT}WRITE", "SYNC_FRAGMENT_SHADER_INPUT_ATTACHMENT_READ", "SYNC_IMAGE_LAYOUT_TRANSITION"
UNUSED = 0xFFFFFFFF


def target(stream: Stream) -> tuple[int, int]:
    """(image, view) of a colour attachment."""
    image = stream.image((*SIZE, 1))
    return image, passes.view(stream, image)


def clear(stream: Stream, attachment: int = 0) -> int:
    return passes.clear_attachments(stream, [(COLOR, attachment)], [(AREA, 0, 1)])


def found(stream: Stream, image: int, prior: tuple[int, str], current: tuple[int, str]) -> Finding:
    """A hazard on an image between two calls, each with its access."""
    (before, prior_access), (call, access) = prior, current
    names = {block.index: block.name for block in stream.blocks if isinstance(block, Call)}
    place, first = (Place(each, names[each], None) for each in (call, before))
    return Finding(Hazard.READ_AFTER_WRITE, access, prior_access, place, first, image, "VkImage")


def cut(stream: Stream, image: int, prior: tuple[int, str], current: tuple[int, str]) -> CutSteps:
    """The steps of a stream whose instance is cut between two accesses, which a cut then separates."""
    stream.submit()
    steps, finding = flatten(stream.blocks), found(stream, image, prior, current)
    with pytest.raises(UncutError):
        find_ends(steps, finding)
    made = as_shown(steps, finding)
    find_ends(made.steps, made.finding)
    return made


def words(steps: Sequence[Step]) -> list[str]:
    """The rendering of some steps, each instance as 'begin inner end'."""
    short = {"vkCmdClearAttachments": "clear", "vkCmdDraw": "draw", "vkCmdBindPipeline": "bind"}
    made: list[str] = []
    for step in steps:
        if step.name.startswith("vkCmdBeginRender"):
            made.append("begin")
            assert not step.inside and not step.in_pass
        elif step.in_pass and made:
            word = "end" if step.name.startswith("vkCmdEndRender") else short.get(step.name, step.name)
            made[-1] += f" {word}"
    return made


def calls(steps: Sequence[Step], name: str) -> list[dict[str, Any]]:
    """The arguments of the calls that begin so, in their order."""
    return [step.block.args for step in steps if isinstance(step.block, Call) and step.name.startswith(name)]


def stored(made: CutSteps, image: int) -> list[Box]:
    """What the part of the later access stores of an image."""
    ends = find_ends(made.steps, made.finding)
    return RenderPassEffects(made.steps).stored(image, ends.before, ends.after)


def test_dynamic_rendering_is_cut_around_both_accesses() -> None:
    stream = Stream()
    (image, view), (other, other_view) = target(stream), target(stream)
    resolved = attached(view, CLEAR, DISCARD, resolveMode=2, resolveImageView=other_view)
    stream.begin()
    passes.begin_rendering(stream, AREA, [resolved, attached(0)])
    first, between, last = (clear(stream) for _ in range(3))
    stream.cmd("EndRendering")
    made = cut(stream, image, (first, WRITE), (last, WRITE))
    assert words(made.steps) == ["begin end", "begin clear end", "begin clear end", "begin clear end", "begin end"]
    infos = [each["pRenderingInfo"]["pColorAttachments"] for each in calls(made.steps, "vkCmdBeginRendering")]
    told = [(info[0]["loadOp"], info[0]["storeOp"], info[0]["resolveMode"]) for info in infos]
    kept = (LOAD, STORE, 0)
    assert told == [(CLEAR, STORE, 0), kept, kept, kept, (LOAD, DISCARD, 2)]
    assert {info[1]["loadOp"] for info in infos} == {CLEAR}, "what has no view has no operations"
    named = [step.block.index for step in made.steps if step.name == "vkCmdClearAttachments"]
    assert named == [first, between, last] and other
    assert stored(made, image) == [], "a draw stores nothing"


def test_the_load_and_the_store_operation_are_parts_of_their_own() -> None:
    stream = Stream()
    image, view = target(stream)
    stream.begin()
    begun = passes.begin_rendering(stream, AREA, [attached(view)])
    clear(stream)
    ended = stream.cmd("EndRendering")
    made = cut(stream, image, (begun, WRITE), (ended, WRITE))
    assert words(made.steps) == ["begin end", "begin clear end", "begin end"]
    named = [step.block.index for step in made.steps if step.name.startswith(("vkCmdBegin", "vkCmdEndR"))]
    assert (named[0], named[-1]) == (begun, ended) and set(named[1:-1]) == {0}
    assert stored(made, image) != [], "the end of the instance does"


def test_state_of_the_instance_is_set_again_in_each_part() -> None:
    stream = Stream()
    image, view = target(stream)
    stream.begin()
    passes.begin_rendering(stream, AREA, [attached(view)])
    locations = struct("VkRenderingAttachmentLocationInfo", pColorAttachmentLocations=[0])
    stream.cmd("SetRenderingAttachmentLocations", pLocationInfo=locations)
    first, last = clear(stream), clear(stream)
    stream.cmd("EndRendering")
    made = cut(stream, image, (first, WRITE), (last, WRITE))
    set_again = "vkCmdSetRenderingAttachmentLocations"
    alone, drawn = f"begin {set_again} end", f"begin {set_again} clear end"
    assert words(made.steps) == [alone, drawn, drawn, alone]


def deferred(stream: Stream, form: int = 2) -> tuple[int, int, int, list[int]]:
    """Two subpasses, of which the second reads as input what the first one writes, with a pipeline each: the image, the
    render pass, the framebuffer and the pipelines."""
    (image, view), (_, shown) = target(stream), target(stream)
    attachments = [described(store=DISCARD), described(initial=0, final=READ_ONLY)]
    several = [subpass([refer(0)]), subpass([refer(1)], inputs=[refer(0, READ_ONLY, COLOR)], preserve=[])]
    inside = depends(1, 1, (0x400, 0x100, 0x80, 0x10))
    passed = passes.render_pass(stream, attachments, several, [depends(0, 1, (0, 0, 0, 0)), inside], form)
    frame = passes.framebuffer(stream, passed, [view, shown], SIZE)
    pipelines = [drawing.pipeline(stream, renderPass=passed, subpass=each, flags=4) for each in (0, 1)]
    return image, passed, frame, pipelines


@pytest.mark.parametrize("form", [1, 2])
def test_each_part_of_several_subpasses_has_a_render_pass_of_one(form: int) -> None:
    stream = Stream()
    image, passed, frame, (surfaces, light) = deferred(stream, form)
    stream.begin()
    drawing.bind(stream, surfaces)
    passes.begin_pass(stream, passed, frame, AREA)
    written = drawing.draw(stream)
    passes.next_subpass(stream)
    drawing.bind(stream, light)
    read = drawing.draw(stream)
    passes.end_pass(stream)
    made = cut(stream, image, (written, WRITE), (read, READ))
    alone, drawn = "begin end", "begin draw end"
    assert words(made.steps) == [alone, drawn, alone, "begin bind end", drawn, alone]
    begun = [each["pRenderPassBegin"] for each in calls(made.steps, "vkCmdBeginRenderPass")]
    created = {each["pRenderPass"]: each["pCreateInfo"] for each in calls(made.steps, "vkCreateRenderPass")}
    infos = [created[each["renderPass"]] for each in begun]
    assert passed in created and passed not in [each["renderPass"] for each in begun]
    assert [len(info["pSubpasses"]) for info in infos] == [1] * 6
    assert [len(info["pDependencies"]) for info in infos] == [0, 0, 0, 1, 1, 1], "what a barrier inside needs stays"
    keys = ("initialLayout", "loadOp", "storeOp", "finalLayout")
    surface, picture = ([tuple(info["pAttachments"][at][key] for key in keys) for info in infos] for at in (0, 1))
    written_again = (COLOR_LAYOUT, LOAD, STORE, COLOR_LAYOUT)
    assert surface == [
        (0, CLEAR, STORE, COLOR_LAYOUT),
        written_again,
        written_again,
        (COLOR_LAYOUT, LOAD, STORE, READ_ONLY),
        (READ_ONLY, LOAD, STORE, READ_ONLY),
        (READ_ONLY, LOAD, DISCARD, COLOR_LAYOUT),
    ]
    assert picture[:3] == [(0, DONT_CARE, STORE, COLOR_LAYOUT), *[(COLOR_LAYOUT, DONT_CARE, STORE, COLOR_LAYOUT)] * 2]
    assert picture[3:] == [
        (COLOR_LAYOUT, CLEAR, STORE, COLOR_LAYOUT),
        written_again,
        (COLOR_LAYOUT, LOAD, STORE, READ_ONLY),
    ]


def test_pipelines_and_framebuffers_are_those_of_the_parts() -> None:
    stream = Stream()
    image, passed, frame, (surfaces, light) = deferred(stream)
    stream.begin()
    drawing.bind(stream, surfaces)
    passes.begin_pass(stream, passed, frame, AREA)
    written = drawing.draw(stream)
    following = passes.next_subpass(stream)
    drawing.bind(stream, light)
    drawing.draw(stream)
    passes.end_pass(stream)
    made = cut(stream, image, (written, WRITE), (following, MOVED))
    assert light not in [each["pipeline"] for each in calls(made.steps, "vkCmdBindPipeline")][1:-1]
    pipelines = {each["pPipelines"][0]: each["pCreateInfos"][0] for each in calls(made.steps, "vkCreateGraphics")}
    bound = [each["pipeline"] for each in calls(made.steps, "vkCmdBindPipeline")]
    assert bound[0] == surfaces and bound[-1] == light, "outside of the parts it is as it was"
    stand_ins = bound[1:-1]
    assert {pipelines[each]["subpass"] for each in stand_ins} == {0} and surfaces not in stand_ins
    assert {pipelines[each]["flags"] for each in stand_ins} == {0}, "no derivative"
    frames = {each["pFramebuffer"]: each["pCreateInfo"] for each in calls(made.steps, "vkCreateFramebuffer")}
    for each in calls(made.steps, "vkCmdBeginRenderPass"):
        of_part = frames[each["pRenderPassBegin"]["framebuffer"]]
        assert of_part["pAttachments"] == frames[frame]["pAttachments"]
    moved = next(step for step in made.steps if step.block.index == following)
    assert moved.name == "vkCmdBeginRenderPass2", "the transition is that of the part that begins"


def test_state_that_was_set_since_a_bind_is_set_again_behind_its_stand_in() -> None:
    """A pipeline has state of its own, which would stand in the place of what was set."""
    stream = Stream()
    image, passed, frame, (surfaces, _) = deferred(stream)
    stream.begin()
    drawing.bind(stream, surfaces)
    stream.cmd("SetLineWidth", lineWidth=2.0)
    passes.begin_pass(stream, passed, frame, AREA)
    written = drawing.draw(stream)
    stream.cmd("SetDepthBounds", minDepthBounds=0.0, maxDepthBounds=0.5)
    following = passes.next_subpass(stream)
    passes.end_pass(stream)
    made = cut(stream, image, (written, WRITE), (following, MOVED))
    short = {"vkCmdBindPipeline": "bind", "vkCmdSetLineWidth": "width", "vkCmdSetDepthBounds": "bounds"}
    outside = [short[step.name] for step in made.steps if step.name in short]
    assert outside == ["bind", "width", "bind", "width", "bounds", "bind", "width", "bounds"]


def test_objects_of_an_earlier_compatible_render_pass_stand_for_themselves() -> None:
    stream = Stream()
    image, passed, frame, (surfaces, _) = deferred(stream)
    passed_on = [each for each in stream.blocks if isinstance(each, Call) and each.name == "vkCreateRenderPass2"]
    info = passed_on[0].args["pCreateInfo"]
    later = stream.make("vkCreateRenderPass2", "pRenderPass", info)
    stream.begin()
    drawing.bind(stream, surfaces)
    passes.begin_pass(stream, later, frame, AREA)
    written = drawing.draw(stream)
    following = passes.next_subpass(stream)
    passes.end_pass(stream)
    made = cut(stream, image, (written, WRITE), (following, MOVED))
    created: set[int] = set()
    for step in made.steps:
        if isinstance(step.block, Call) and step.name.startswith("vkCreateRenderPass"):
            created.add(step.block.args["pRenderPass"])
        elif isinstance(step.block, Call) and step.name == "vkCreateFramebuffer":
            assert step.block.args["pCreateInfo"]["renderPass"] in created
    assert passed in created


def test_a_pipeline_with_which_nothing_is_drawn_is_left_alone() -> None:
    stream = Stream()
    image, passed, frame, _ = deferred(stream)
    other = drawing.pipeline(stream, formats=[37])
    stream.begin()
    drawing.bind(stream, other)
    passes.begin_pass(stream, passed, frame, AREA)
    first, last = clear(stream), clear(stream)
    passes.next_subpass(stream)
    passes.end_pass(stream)
    made = cut(stream, image, (first, WRITE), (last, WRITE))
    assert [each["pipeline"] for each in calls(made.steps, "vkCmdBindPipeline")] == [other]


def test_one_subpass_needs_no_other_framebuffer_and_no_other_pipeline() -> None:
    stream = Stream()
    image, view = target(stream)
    outside = depends(0xFFFFFFFF, 0, (0x400, 0, 0x400, 0x100))
    passed = passes.render_pass(stream, [described()], [subpass([refer(0)])], [outside])
    frame = passes.framebuffer(stream, passed, [view], SIZE)
    made_with = drawing.pipeline(stream, renderPass=passed)
    stream.begin()
    passes.begin_pass(stream, passed, frame, AREA)
    drawing.bind(stream, made_with)
    first, last = drawing.draw(stream), drawing.draw(stream)
    passes.end_pass(stream)
    made = cut(stream, image, (first, WRITE), (last, WRITE))
    assert {each["pipeline"] for each in calls(made.steps, "vkCmdBindPipeline")} == {made_with}
    assert {each["pRenderPassBegin"]["framebuffer"] for each in calls(made.steps, "vkCmdBegin")} == {frame}
    created = [each["pCreateInfo"] for each in calls(made.steps, "vkCreateRenderPass")]
    assert [len(info["pDependencies"]) for info in created] == [1] * 5, "dependencies are part of what is compatible"


def test_a_resolve_and_the_transition_after_it_are_parted() -> None:
    """One vkCmdNextSubpass does both."""
    stream = Stream()
    (_, view), (image, resolved) = target(stream), target(stream)
    several = [subpass([refer(0)], resolves=[refer(1)]), subpass([refer(0)], inputs=[refer(1, READ_ONLY, COLOR)])]
    attachments = [described(samples=4), described(load=DONT_CARE)]
    passed = passes.render_pass(stream, attachments, several)
    frame = passes.framebuffer(stream, passed, [view, resolved], SIZE)
    stream.begin()
    passes.begin_pass(stream, passed, frame, AREA)
    clear(stream)
    following = passes.next_subpass(stream)
    passes.end_pass(stream)
    made = cut(stream, image, (following, WRITE), (following, MOVED))
    ends = find_ends(made.steps, made.finding)
    assert made.steps[ends.prior].name == "vkCmdEndRenderPass2"
    assert made.steps[ends.current].name == "vkCmdBeginRenderPass2"
    created = {each["pRenderPass"]: each["pCreateInfo"] for each in calls(made.steps, "vkCreateRenderPass")}
    begun = [created[each["pRenderPassBegin"]["renderPass"]] for each in calls(made.steps, "vkCmdBeginRenderPass")]
    assert [bool(info["pSubpasses"][0]["pResolveAttachments"]) for info in begun] == [False, True, False, False]


def _suspended(stream: Stream, view: int) -> None:
    passes.begin_rendering(stream, AREA, [attached(view)], flags=2)


def _chained(stream: Stream, view: int) -> None:
    info = struct(
        "VkRenderingInfo",
        pNext=struct("VkRenderingFragmentShadingRateAttachmentInfoKHR"),
        renderArea=AREA,
        layerCount=1,
        pColorAttachments=[attached(view)],
    )
    stream.cmd("BeginRendering", pRenderingInfo=info)


def _asked(stream: Stream, view: int) -> None:
    passes.begin_rendering(stream, AREA, [attached(view)])
    pool = struct("VkQueryPoolCreateInfo", queryCount=1)
    stream.cmd("BeginQuery", queryPool=stream.make("vkCreateQueryPool", "pQueryPool", pool), query=0, flags=0)


def _resolved(stream: Stream, view: int) -> None:
    passes.begin_rendering(stream, AREA, [attached(view)])
    stream.cmd("BeginCustomResolveEXT", pBeginCustomResolveInfo=struct("VkBeginCustomResolveInfoEXT"))


def _unloaded(stream: Stream, view: int) -> None:
    passes.begin_rendering(stream, AREA, [attached(view, NONE_LOAD, STORE)])


@pytest.mark.parametrize("begun", [_suspended, _chained, _asked, _resolved, _unloaded])
def test_what_cannot_be_cut_is_told(begun: Any) -> None:
    stream = Stream()
    image, view = target(stream)
    stream.begin()
    begun(stream, view)
    first, last = clear(stream), clear(stream)
    stream.cmd("EndRendering")
    stream.submit()
    finding = found(stream, image, (first, WRITE), (last, WRITE))
    with pytest.raises(UncutError, match="in one render pass instance or query, which cannot be cut"):
        as_shown(flatten(stream.blocks), finding)


def test_what_is_neither_loaded_nor_stored_is_left_so_in_each_part() -> None:
    stream = Stream()
    (image, view), (_, other_view) = target(stream), target(stream)
    stream.begin()
    passes.begin_rendering(stream, AREA, [attached(view), attached(other_view, NONE_LOAD, NONE_STORE)])
    first, last = clear(stream), clear(stream)
    stream.cmd("EndRendering")
    made = cut(stream, image, (first, WRITE), (last, WRITE))
    infos = [each["pRenderingInfo"]["pColorAttachments"][1] for each in calls(made.steps, "vkCmdBeginRendering")]
    assert {(each["loadOp"], each["storeOp"]) for each in infos} == {(NONE_LOAD, NONE_STORE)}


STENCIL_ALONE = {**refer(0), "pNext": struct("VkAttachmentReferenceStencilLayout", stencilLayout=1)}


@pytest.mark.parametrize("named", [[STENCIL_ALONE], [refer(7), refer(UNUSED)]], ids=["layout of stencil", "not there"])
def test_attachments_whose_layout_is_not_followed_cut_nothing(named: list[dict[str, Any]]) -> None:
    stream = Stream()
    image, view = target(stream)
    passed = passes.render_pass(stream, [described()], [subpass(named)])
    frame = passes.framebuffer(stream, passed, [view], SIZE)
    stream.begin()
    passes.begin_pass(stream, passed, frame, AREA)
    first, last = clear(stream), clear(stream)
    passes.end_pass(stream)
    stream.submit()
    with pytest.raises(UncutError):
        as_shown(flatten(stream.blocks), found(stream, image, (first, WRITE), (last, WRITE)))


def test_two_accesses_of_one_draw_are_not_parted() -> None:
    stream = Stream()
    image, view = target(stream)
    stream.begin()
    passes.begin_rendering(stream, AREA, [attached(view)])
    both = clear(stream)
    stream.cmd("EndRendering")
    stream.submit()
    with pytest.raises(UncutError):
        as_shown(flatten(stream.blocks), found(stream, image, (both, WRITE), (both, WRITE)))


def test_cut_instances_leave_the_bytes_of_whole_ones() -> None:
    cuts = 0
    with Worker(find_driver("lavapipe"), packages=("tests",)) as worker:
        for seed in range(8):
            answer = worker.call("tests.support.cut_jobs:differences_of_cuts", {"seed": seed, "device": "lavapipe"})
            assert isinstance(answer, dict) and answer["different"] == [], (seed, answer)
            cuts += answer["cuts"]
    assert cuts > 8
