"""Hazards that count with `--strict` alone: which they are. Both judges find them as they find all others."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support import passes
from tests.support.passes import (
    CLEAR,
    DONT_CARE,
    LOAD,
    NONE_LOAD,
    NONE_STORE,
    STORE,
    attached,
    depends,
    described,
    refer,
    subpass,
)
from tests.support.render_effects import AREA, target
from tests.support.streams import COLOR, D32, DEPTH, Stream
from vkharness.agreement import compare
from vkharness.check import Analysis
from vkharness.cli import cli
from vkharness.findings import Finding, Hazard
from vkharness.late_analysis import LateAnalysis
from vkharness.model import judge_stream_events
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL, VkAccess2, VkPipelineStage2
from vkharness.trace.calls import Call
from vkharness.trace.codec import save
from vkharness.uncounted import Uncounted

GENERAL, SRC, DST, R8G8B8A8 = 1, 6, 7, 37
EXTERNAL = VK_SUBPASS_EXTERNAL
OUTPUT = (VkPipelineStage2.COLOR_ATTACHMENT_OUTPUT, VkAccess2.COLOR_ATTACHMENT_READ | VkAccess2.COLOR_ATTACHMENT_WRITE)
EVERYTHING = (VkPipelineStage2.ALL_COMMANDS, VkAccess2.MEMORY_READ | VkAccess2.MEMORY_WRITE)
HAZARDS = Path(__file__).parents[1] / "docs" / "hazards.md"


def judged(stream: Stream, hazard: Hazard) -> Finding:
    """The only finding of a stream, of which both judges say the same. Strictly it counts."""
    strict = Analysis(keep_events=True).follow(stream.blocks)
    assert compare(strict.findings, judge_stream_events(strict.events)).disagreements == ()
    mild = Analysis(strict=False).follow(stream.blocks)
    (found,), (same,), (late,) = (
        mild.findings,
        strict.findings,
        LateAnalysis(strict=False).follow(stream.blocks).findings,
    )
    assert late.uncounted == found.uncounted and found.key == same.key and found.hazard == hazard
    assert (strict.verdict, same.uncounted) == ("hazards", None)
    assert mild.verdict == ("clean" if found.uncounted else "hazards")
    return found


@pytest.mark.parametrize("several", [False, True], ids=["in one command buffer", "in two submits"])
@pytest.mark.parametrize("form", [R8G8B8A8, D32], ids=["colour", "depth"])
@pytest.mark.parametrize(
    ("first", "second", "hazard"),
    [
        ((CLEAR, STORE), (LOAD, STORE), Hazard.READ_AFTER_WRITE),
        ((CLEAR, STORE), (CLEAR, STORE), Hazard.WRITE_AFTER_WRITE),
        ((CLEAR, STORE), (DONT_CARE, STORE), Hazard.WRITE_AFTER_WRITE),
        ((LOAD, NONE_STORE), (CLEAR, STORE), Hazard.WRITE_AFTER_READ),
    ],
)
def test_two_instances_on_one_attachment(
    several: bool, form: int, first: tuple[int, int], second: tuple[int, int], hazard: Hazard
) -> None:
    stream = Stream()
    _, view = target(stream, form, aspects=DEPTH if form == D32 else COLOR)
    stream.begin()
    for load, store in (first, second):
        info = attached(view, load, store)
        passes.begin_rendering(stream, AREA, [] if form == D32 else [info], info if form == D32 else None)
        stream.cmd("EndRendering")
        if several and (load, store) == first:
            stream.submit(wait=False)
            stream.begin()
    stream.submit()
    assert judged(stream, hazard).uncounted is Uncounted.TWO_INSTANCES


@pytest.mark.parametrize("form", ["one of each", "one twice", "in two executions", "the second in the primary"])
def test_two_instances_that_begin_and_end_in_secondaries(form: str) -> None:
    stream = Stream()
    _, view = target(stream)
    several = [_secondary(stream, view) for _ in range(2)]
    stream.begin()
    if form == "in two executions":
        execute(stream, several[0])
        execute(stream, several[1])
    elif form == "the second in the primary":
        execute(stream, several[0])
        passes.begin_rendering(stream, AREA, [attached(view, LOAD)])
        stream.cmd("EndRendering")
    else:
        execute(stream, *(several if form == "one of each" else several[:1] * 2))
    stream.submit()
    assert judged(stream, Hazard.READ_AFTER_WRITE).uncounted is Uncounted.TWO_INSTANCES


def _secondary(stream: Stream, view: int) -> int:
    made = stream.begin(1)
    passes.begin_rendering(stream, AREA, [attached(view, LOAD)])
    stream.cmd("EndRendering")
    stream.end()
    return made


def last_call(stream: Stream) -> Call:
    call = stream.blocks[-1]
    assert isinstance(call, Call)
    return call


def execute(stream: Stream, *secondaries: int) -> None:
    stream.cmd("ExecuteCommands", pCommandBuffers=list(secondaries))


@pytest.mark.parametrize("instances", [1, 2])
def test_secondaries_inside_of_instances_of_the_primary(instances: int) -> None:
    stream = Stream()
    _, view = target(stream)
    attachment = described(load=NONE_LOAD, store=NONE_STORE, initial=GENERAL, final=GENERAL)
    used = subpass([refer(0, GENERAL)])
    order = (OUTPUT[0], 0, OUTPUT[0], 0)
    passed = passes.render_pass(stream, [attachment], [used, used], [depends(0, 1, order)])
    frame = passes.framebuffer(stream, passed, [view], (8, 8))
    several = []
    for each in range(2):
        several.append(stream.begin(1))
        inherited = {"renderPass": passed, "subpass": each if instances == 1 else 0, "framebuffer": frame}
        begin_info = last_call(stream).args["pBeginInfo"]
        begin_info.update(flags=2)
        begin_info["pInheritanceInfo"].update(inherited)
        passes.clear_attachments(stream, [(COLOR, 0)], [(AREA, 0, 1)])
        stream.end()
    stream.begin()
    passes.begin_pass(stream, passed, frame, AREA)
    execute(stream, several[0])
    passes.next_subpass(stream)
    if instances == 2:
        passes.end_pass(stream)
        passes.begin_pass(stream, passed, frame, AREA)
    execute(stream, several[1])
    if instances == 2:
        passes.next_subpass(stream)
    passes.end_pass(stream)
    stream.submit()
    found = judged(stream, Hazard.WRITE_AFTER_WRITE)
    assert found.uncounted is (Uncounted.TWO_INSTANCES if instances == 2 else None)


def test_two_subpasses_of_one_instance_count() -> None:
    stream = Stream()
    _, view = target(stream)
    attachment = described(initial=GENERAL, final=GENERAL)
    used = subpass([refer(0, GENERAL)])
    order = (OUTPUT[0], 0, OUTPUT[0], 0)
    passed = passes.render_pass(stream, [attachment], [used, used], [depends(0, 1, order)])
    stream.begin()
    passes.begin_pass(stream, passed, passes.framebuffer(stream, passed, [view], (8, 8)), AREA)
    passes.clear_attachments(stream, [(COLOR, 0)], [(AREA, 0, 1)])
    passes.next_subpass(stream)
    passes.clear_attachments(stream, [(COLOR, 0)], [(AREA, 0, 1)])
    passes.end_pass(stream)
    stream.submit()
    assert judged(stream, Hazard.WRITE_AFTER_WRITE).uncounted is None


OUT_OF = [
    ("all commands", (*OUTPUT, *EVERYTHING), Uncounted.ALL_COMMANDS),
    ("all commands, nothing visible", (*OUTPUT, EVERYTHING[0], 0), None),
    ("bottom of pipe", (*OUTPUT, VkPipelineStage2.BOTTOM_OF_PIPE, 0), None),
    ("all graphics", (*OUTPUT, VkPipelineStage2.ALL_GRAPHICS, EVERYTHING[1]), None),
    ("the implicit one", None, None),
]
OF_STORE = [
    ("nothing available", (OUTPUT[0], 0, *EVERYTHING), None),
    ("another first stage", (VkPipelineStage2.FRAGMENT_SHADER, OUTPUT[1], *EVERYTHING), None),
]


@pytest.mark.parametrize(
    ("masks", "final", "expected"),
    [
        *(pytest.param(masks, GENERAL, said, id=f"{name}, stored") for name, masks, said in OUT_OF + OF_STORE),
        *(pytest.param(masks, SRC, said, id=f"{name}, moved") for name, masks, said in OUT_OF),
    ],
)
def test_a_copy_behind_a_pass(masks: tuple[int, int, int, int] | None, final: int, expected: Uncounted | None) -> None:
    stream = Stream()
    image, view = target(stream)
    given = [] if masks is None else [depends(0, EXTERNAL, masks)]
    attachment = described(initial=GENERAL, final=final)
    passed = passes.render_pass(stream, [attachment], [subpass([refer(0, GENERAL)])], given)
    out = stream.buffer(256)
    stream.begin()
    passes.begin_pass(stream, passed, passes.framebuffer(stream, passed, [view], (8, 8)), AREA)
    passes.end_pass(stream)
    stream.image_to_buffer(image, out, (8, 8, 1), layout=final)
    stream.submit()
    assert judged(stream, Hazard.READ_AFTER_WRITE).uncounted is expected


@pytest.mark.parametrize("initial", [GENERAL, DST], ids=["loaded", "moved"])
@pytest.mark.parametrize(
    ("masks", "expected"),
    [
        pytest.param((*EVERYTHING, *OUTPUT), Uncounted.ALL_COMMANDS, id="all commands"),
        pytest.param((EVERYTHING[0], 0, *OUTPUT), None, id="all commands, nothing available"),
        pytest.param(None, None, id="the implicit one"),
    ],
)
def test_a_clear_before_a_pass(
    initial: int, masks: tuple[int, int, int, int] | None, expected: Uncounted | None
) -> None:
    stream = Stream()
    image, view = target(stream)
    given = [] if masks is None else [depends(EXTERNAL, 0, masks)]
    attachment = described(load=LOAD, initial=initial, final=GENERAL)
    passed = passes.render_pass(stream, [attachment], [subpass([refer(0, GENERAL)])], given)
    stream.begin()
    stream.clear(image, (0, 0, 0, 0), layout=initial)
    passes.begin_pass(stream, passed, passes.framebuffer(stream, passed, [view], (8, 8)), AREA)
    passes.end_pass(stream)
    stream.submit()
    moved = Hazard.READ_AFTER_WRITE if initial == GENERAL else Hazard.WRITE_AFTER_WRITE
    assert judged(stream, moved).uncounted is expected


def test_a_transition_outside_of_a_pass_counts() -> None:
    """Whatever ALL_COMMANDS stands for: a barrier from TOP_OF_PIPE waits for no dependency."""
    stream = Stream()
    image, view = target(stream)
    attachment = described(initial=GENERAL, final=GENERAL)
    given = [depends(0, EXTERNAL, (*OUTPUT, *EVERYTHING))]
    passed = passes.render_pass(stream, [attachment], [subpass([refer(0, GENERAL)])], given)
    stream.begin()
    passes.begin_pass(stream, passed, passes.framebuffer(stream, passed, [view], (8, 8)), AREA)
    passes.end_pass(stream)
    stream.transition(image, GENERAL, SRC)
    last_call(stream).args["srcStageMask"] = VkPipelineStage2.TOP_OF_PIPE
    stream.submit()
    assert judged(stream, Hazard.WRITE_AFTER_WRITE).uncounted is None


def test_the_initial_transition_of_the_next_instance_counts() -> None:
    stream = Stream()
    _, view = target(stream)
    attachment = described(initial=0, final=GENERAL)
    given = [depends(0, EXTERNAL, (*OUTPUT, *EVERYTHING))]
    passed = passes.render_pass(stream, [attachment], [subpass([refer(0, GENERAL)])], given)
    frame = passes.framebuffer(stream, passed, [view], (8, 8))
    stream.begin()
    for _ in range(2):
        passes.begin_pass(stream, passed, frame, AREA)
        passes.end_pass(stream)
    stream.submit()
    assert judged(stream, Hazard.WRITE_AFTER_WRITE).uncounted is None


def test_a_dependency_of_a_subpass_without_the_attachment_does_not_hold_it() -> None:
    stream = Stream()
    image, view = target(stream)
    attachment = described(initial=GENERAL, final=GENERAL)
    several = [subpass([refer(0, GENERAL)]), subpass()]
    given = [depends(1, EXTERNAL, (*OUTPUT, *EVERYTHING))]
    passed = passes.render_pass(stream, [attachment], several, given)
    out = stream.buffer(256)
    stream.begin()
    passes.begin_pass(stream, passed, passes.framebuffer(stream, passed, [view], (8, 8)), AREA)
    passes.next_subpass(stream)
    passes.end_pass(stream)
    stream.image_to_buffer(image, out, (8, 8, 1), layout=GENERAL)
    stream.submit()
    assert judged(stream, Hazard.READ_AFTER_WRITE).uncounted is None


def two_instances() -> Stream:
    """A load operation LOAD after a store operation STORE."""
    stream = Stream()
    _, view = target(stream)
    stream.begin()
    for load in (CLEAR, LOAD):
        passes.begin_rendering(stream, AREA, [attached(view, load)])
        stream.cmd("EndRendering")
    stream.submit()
    return stream


@pytest.mark.parametrize("strict", [False, True])
def test_check_lists_it_and_counts_it_with_strict(strict: bool, tmp_path: Path) -> None:
    trace, found, sarif = (tmp_path / name for name in ("trace.jsonl", "found.json", "found.sarif"))
    save(trace, two_instances().blocks)
    options = ["--json", str(found), "--sarif", str(sarif), *["--strict"] * strict]
    result = CliRunner().invoke(cli, ["check", str(trace), *options])
    assert result.exit_code == int(strict), result.output
    assert ("1. not counted (strict): READ_AFTER_WRITE on " in result.output) is not strict
    assert ("clean - no hazard\nnot counted (strict): 1 READ_AFTER_WRITE\n" in result.output) is not strict
    document = json.loads(found.read_text("utf-8"))
    (finding,), (group,) = document["findings"], document["groups"]
    assert (finding["uncounted"], group["counts"]) == ("" if strict else "attachment-of-two-instances", strict)
    (told,) = json.loads(sarif.read_text("utf-8"))["runs"][0]["results"]
    assert told["level"] == ("error" if strict else "note")


@pytest.mark.parametrize(("options", "changes"), [([], 0), (["--strict"], 1)])
def test_mend_orders_it_with_strict(options: list[str], changes: int, tmp_path: Path) -> None:
    trace, out = tmp_path / "trace.jsonl", tmp_path / "mends.json"
    save(trace, two_instances().blocks)
    result = CliRunner().invoke(cli, ["mend", str(trace), "--json", str(out), *options])
    assert result.exit_code == 0, result.output
    assert len(json.loads(out.read_text("utf-8"))["groups"]) == changes
    nothing = "nothing to mend: 1 finding counts with --strict alone\n"
    assert (result.output == nothing) is not bool(changes)
    refused = CliRunner().invoke(cli, ["mend", str(trace), "--finding", "1", *options]).exception
    assert ("counts for no verdict without --strict" in str(refused)) is not bool(changes)


def test_the_page_of_hazards_has_the_table() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| hazard that counts with `--strict` \|$", HAZARDS.read_text("utf-8"), re.M)
    assert rows == [each.value for each in Uncounted]
