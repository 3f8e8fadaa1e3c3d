"""Comparing findings with messages; what the conditions of known differences take for an explanation, and what not."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from inspect import signature
from typing import Any

import pytest

from tests.support import passes, streams
from vkharness.findings import Finding, Hazard, Place
from vkharness.layer import compare as comparing
from vkharness.layer.compare import Comparison
from vkharness.layer.conditions import CONDITIONS
from vkharness.layer.known_differences import known_differences, load, marks
from vkharness.layer.manifest import Version
from vkharness.layer.parse import LayerMessage
from vkharness.layer.stream import Stream
from vkharness.layer.subject import Subject
from vkharness.trace.calls import Block, Call

VERSION = r"\d+\.\d+\.\d+"
VERSIONS = f"all|>={VERSION}(,<{VERSION})?|<{VERSION}"
"""What the known differences say of versions."""
OLD, TODAY = (1, 3, 239), (1, 4, 364)
RAW, WAR, WAW = "READ_AFTER_WRITE", "WRITE_AFTER_READ", "WRITE_AFTER_WRITE"
FILL, COPY, IMAGE_COPY, CLEAR = "vkCmdFillBuffer", "vkCmdCopyBuffer", "vkCmdCopyImage", "vkCmdClearColorImage"
READ, WRITE, CLEARED = "SYNC_COPY_TRANSFER_READ", "SYNC_COPY_TRANSFER_WRITE", "SYNC_CLEAR_TRANSFER_WRITE"
STORED, MOVED = "SYNC_COMPUTE_SHADER_SHADER_STORAGE_WRITE", "SYNC_IMAGE_LAYOUT_TRANSITION"
BARRIER = "vkCmdPipelineBarrier2"
TRANSFER, ALL, COPIES, CLEARS = 0x1000, 0x10000, 1 << 32, 1 << 35
CB, A, B, IMAGE = 100, 201, 202, 301
WHOLE = {"aspectMask": 1, "baseMipLevel": 0, "levelCount": 1, "baseArrayLayer": 0, "layerCount": 1}

Access = tuple[str, str, int]
"""(command, access, block index)"""


def ours(
    hazard: str, second: Access, first: Access, submit: int | None = None, at: tuple[int, int] | None = None
) -> Finding:
    """`at` is a range of buffer A."""
    place, prior = Place(second[2], second[0], None, CB, submit), Place(first[2], first[0], None, CB)
    return Finding(Hazard(hazard), second[1], first[1], place, prior, A, "VkBuffer", (at,) if at else ())


def theirs(
    hazard: str, second: Access, first: Access, seq_no: int | None = None, submit: tuple[int, int] | None = None
) -> LayerMessage:
    """Said in the second command's call, or at a submit: (entry, recorded_seq_no)."""
    entry, recorded = submit or (None, None)
    said = LayerMessage("", hazard, second[0], "", "submit" if submit else "record", second[1], first[1], first[0])
    said = said.during(second[2]) if second[2] else said
    return replace(said, seq_no=seq_no, entry=entry, recorded_seq_no=recorded)


class Tape:
    """Builds a trace: memory with the buffers A, B and the image before block 1, then one call a line from block 1 on,
    which begins the command buffer."""

    def __init__(self, tiling: int = 0) -> None:
        extent = {"width": 4, "height": 4, "depth": 1}
        image = {"imageType": 1, "format": 37, "extent": extent, "mipLevels": 1, "arrayLayers": 1, "samples": 1}
        allocation = {"allocationSize": 256, "memoryTypeIndex": 0}
        setup: list[tuple[str, dict[str, Any]]] = [
            *(("vkAllocateMemory", {"device": 1, "pAllocateInfo": allocation, "pMemory": at}) for at in (11, 12, 13)),
            *(("vkCreateBuffer", {"pCreateInfo": {"size": 256, "usage": 0}, "pBuffer": buffer}) for buffer in (A, B)),
            ("vkCreateImage", {"device": 1, "pCreateInfo": image | {"tiling": tiling, "flags": 0}, "pImage": IMAGE}),
            *(("vkBindBufferMemory", {"buffer": b, "memory": m, "memoryOffset": 0}) for b, m in ((A, 11), (B, 12))),
            ("vkBindImageMemory", {"image": IMAGE, "memory": 13, "memoryOffset": 0}),
        ]
        self.blocks: list[Block] = [Call(at - len(setup), name, args) for at, (name, args) in enumerate(setup, 1)]
        self.at = 0
        self.add("vkBeginCommandBuffer")

    def add(self, name: str, **args: Any) -> Tape:
        self.at += 1
        self.blocks.append(Call(self.at, name, {"commandBuffer": CB} | args))
        return self

    def fill(self, buffer: int = A, offset: int = 0, size: int = 64) -> Tape:
        return self.add(FILL, dstBuffer=buffer, dstOffset=offset, size=size)

    def copy(self, source: int = A, target: int = B, *regions: tuple[int, int, int]) -> Tape:
        made = [{"srcOffset": a, "dstOffset": b, "size": c} for a, b, c in regions or ((0, 0, 64),)]
        return self.add(COPY, srcBuffer=source, dstBuffer=target, pRegions=made)

    def clear(self) -> Tape:
        return self.add(CLEAR, image=IMAGE, pRanges=[WHOLE])

    def copy_from_image(self) -> Tape:
        return self.add(IMAGE_COPY, srcImage=IMAGE, dstImage=0, pRegions=None)

    def barrier(self, *masks: int) -> Tape:
        return self._barrier2(pMemoryBarriers=[_masks(masks)])

    def ranged(self, *masks: int) -> Tape:
        return self._barrier2(pBufferMemoryBarriers=[_masks(masks) | {"buffer": B, "offset": 0, "size": 64}])

    def transition(self, *masks: int, beside: tuple[int, ...] = ()) -> Tape:
        """`beside`: a global barrier of the same command."""
        image = {"image": IMAGE, "oldLayout": 1, "newLayout": 6, "subresourceRange": WHOLE}
        memory = [_masks(beside)] if beside else None
        return self._barrier2(pImageMemoryBarriers=[_masks(masks) | image], pMemoryBarriers=memory)

    def _barrier2(self, **lists: Any) -> Tape:
        empty = {
            "dependencyFlags": 0,
            "pMemoryBarriers": None,
            "pBufferMemoryBarriers": None,
            "pImageMemoryBarriers": None,
        }
        return self.add(BARRIER, pDependencyInfo=empty | lists)

    def submit(self) -> Tape:
        none = dict.fromkeys(("pWaitSemaphores", "pWaitDstStageMask", "pSignalSemaphores"))
        return self.add(
            "vkQueueSubmit", commandBuffer=0, queue=1, fence=0, pSubmits=[{"pCommandBuffers": [CB], **none}]
        )

    def begin(self) -> Tape:
        return self.add("vkBeginCommandBuffer")


def _masks(masks: tuple[int, ...]) -> dict[str, Any]:
    names = ("srcStageMask", "srcAccessMask", "dstStageMask", "dstAccessMask")
    return dict(zip(names, masks, strict=True))


def compare(said: Iterable[Finding | LayerMessage], version: Version = TODAY, tape: Tape | None = None) -> Comparison:
    findings = [each for each in said if isinstance(each, Finding)]
    messages = [each for each in said if isinstance(each, LayerMessage)]
    return comparing.compare(findings, messages, known_differences(version), tape.blocks if tape else ())


COPIED = (COPY, WRITE, 3), (COPY, WRITE, 2)


def test_equal_keys_agree_however_often_they_are_said() -> None:
    found = ours(RAW, ("vkCmdCopyBuffer2KHR", READ, 3), (IMAGE_COPY, WRITE, 2))
    said = theirs(RAW, ("vkCmdCopyBuffer2", READ, 0), (IMAGE_COPY, WRITE, 0))
    result = compare([found, found, said, said, said])
    assert (result.agreed, result.agrees, result.expected) == (1, True, [])


def test_what_is_left_is_a_disagreement_on_either_side() -> None:
    result = compare([ours(RAW, (COPY, READ, 3), (IMAGE_COPY, WRITE, 2)), theirs(WAW, (COPY, WRITE, 0), COPIED[1])])
    assert not result.agrees
    assert result.lines() == [
        f"ours-only at record (block 3): {RAW} {COPY} {READ} after {IMAGE_COPY} {WRITE}",
        f"layer-only at record: {WAW} {COPY} {WRITE} after {COPY} {WRITE}",
    ]


def test_calls_and_submits_are_compared_apart() -> None:
    found = [ours(WAW, (COPY, WRITE, at), COPIED[1]) for at in (3, 4)]
    said = [theirs(WAW, (COPY, WRITE, at), COPIED[1]) for at in (3, 4)]
    assert compare([*found, *said]).agreed == 2
    assert [subject.call for subject in compare([*found, said[0]]).disagreements] == [4]
    assert compare([*found, theirs(WAW, (COPY, WRITE, 0), COPIED[1])]).agrees, "without attribution the key is enough"
    executed = ours(WAW, *COPIED, submit=9)
    assert len(compare([executed, theirs(WAW, (COPY, WRITE, 0), COPIED[1])]).disagreements) == 2
    assert compare([executed, theirs(WAW, (COPY, WRITE, 9), COPIED[1], submit=(0, 1))]).agrees


@pytest.mark.parametrize(("prior", "agrees"), [(CLEARED, True), (WRITE, False)])
def test_an_unnamed_access_matches_any(prior: str, agrees: bool) -> None:
    said = theirs(WAW, (COPY, "", 0), (FILL, prior, 0), submit=(0, 1))
    assert compare([ours(WAW, COPIED[0], (FILL, CLEARED, 2), submit=9), said]).agrees is agrees


def test_silent_by_design() -> None:
    result = compare([ours(RAW, ("x", "SYNC_HOST_HOST_READ", 3), ("y", WRITE, 2))])
    assert result.agrees and result.used == {"silent-by-design": 1}
    assert result.expected[0].reason.startswith("the Khronos layer does not track host accesses")


FILLED = (FILL, CLEARED, 2)
BESIDE_COPIES = ours(RAW, (COPY, READ, 4), FILLED)
SWAPPED = theirs(WAR, (COPY, WRITE, 4), (COPY, READ, 2), 1)
WRITTEN_AGAIN = theirs(WAW, (BARRIER, MOVED, 4), (CLEAR, CLEARED, 2), 1)
READ_BEFORE = theirs(WAR, (BARRIER, MOVED, 4), (IMAGE_COPY, READ, 2), 1)
CLEARED_AFTER = theirs(WAW, (CLEAR, CLEARED, 4), (BARRIER, MOVED, 2), 1)
OLDER = (COPY, WRITE, 0)
RESUBMITTED = theirs(WAW, (FILL, WRITE, 9), (FILL, WRITE, 2), 1, (0, 1))
ELSEWHERE = ours(RAW, (COPY, READ, 2), (FILL, CLEARED, 0), 4)


def tracked(first: tuple[int, int, int]) -> Tape:
    return Tape().fill(*first).fill(A, 0, 128).fill(A, 64, 64)


def lost(at: tuple[int, int]) -> Finding:
    return ours(WAW, (FILL, CLEARED, 4), (FILL, CLEARED, 3), None, at)


T = TRANSFER
NO_GROUPS = dict.fromkeys(("groupCountX", "groupCountY", "groupCountZ"), 0)
DISPATCHED = ("vkCmdDispatch", STORED, 3), ("vkCmdDispatch", STORED, 2)
FROM_NONE = "transition-after-barrier"
# fmt: off
CASES: list[tuple[Finding | LayerMessage, Version, Tape | None, str]] = [
    *((BESIDE_COPIES, OLD, Tape().fill().barrier(stages, 0x1000, stages, 0x800).copy(), entry)
      for stages, entry in ((COPIES, "fills-and-updates-are-copies"), (T, ""), (COPIES | CLEARS, ""),
                            (ALL | COPIES, ""))),
    (BESIDE_COPIES, OLD, None, ""),
    (BESIDE_COPIES, TODAY, Tape().fill().barrier(COPIES, 0x1000, COPIES, 0x800).copy(), ""),
    (SWAPPED, OLD, Tape().copy().ranged(T, 0x1000, T, 0x800).copy(B, A),
     "sync2-barriers-order-only-their-resource"),
    (SWAPPED, OLD, Tape().copy().barrier(0x1000, 0, 0x1000, 0).copy(B, A), ""),
    (SWAPPED, (1, 4, 326), Tape().copy().ranged(T, 0x1000, T, 0x800).copy(B, A), ""),
    (theirs(WAR, (COPY, WRITE, 4), (COPY, READ, 3), 2), OLD, Tape().ranged(T, 0, T, 0).copy().copy(B, A), ""),
    (theirs(RAW, (COPY, READ, 4), (COPY, WRITE, 2), 1), OLD, Tape().copy().ranged(T, 0, T, 0).copy(B, A), ""),
    *((theirs(RAW, (COPY, READ, 5), (FILL, WRITE, 2), 1), OLD,
       Tape().fill().copy(source, 0).ranged(T, 0, T, 0).copy(A, 0), entry)
      for source, entry in ((A, "sync2-barriers-order-only-their-resource"), (B, ""))),
    *((WRITTEN_AGAIN, OLD, Tape().clear().barrier(T, made, T, 0).transition(T, 0, T, 0x800), entry)
      for made, entry in ((0x1000, "transition-after-barrier"), (0, ""))),
    *((READ_BEFORE, OLD, Tape().copy_from_image().barrier(T, 0, to, 0).transition(0, 0, T, 0x800), entry)
      for to, entry in ((ALL, FROM_NONE), (1, FROM_NONE), (T, ""))),
    *((CLEARED_AFTER, OLD, Tape().transition(0, 0, 0, 0).barrier(source, 0x1000, T, 0x1000).clear(), entry)
      for source, entry in ((ALL, "all-commands-leaves-out-transitions"), (T, ""))),
    *((CLEARED_AFTER, TODAY, Tape().transition(0, 0, 0, 0).barrier(ALL, accesses, T, 0x1000).clear(), entry)
      for accesses, entry in ((0x1000, "all-commands-needs-the-write-of-a-transition"), (0x10000, ""), (0x18000, ""))),
    *((ours(WAW, (CLEAR, CLEARED, 3), (BARRIER, MOVED, 2)), TODAY,
       Tape().transition(T, 0, T, 0x800, beside=beside).clear(), entry)
      for beside, entry in (((T, 0, T, 0x1000), "barriers-beside-a-transition"), ((), ""))),
    (ours(WAW, *DISPATCHED), OLD, None, "same-descriptor-write-twice"),
    (ours(WAW, *DISPATCHED, 4), OLD, None, ""),
    (ours(WAW, *DISPATCHED), (1, 4, 348), None, ""),
    (ours(RAW, ("vkCmdDispatch", STORED, 3), FILLED), OLD, Tape().fill().add("vkCmdDispatch", **NO_GROUPS), ""),
    (lost((64, 64)), OLD, tracked((A, 0, 64)), "beyond-tracked-memory"),
    (lost((64, 64)), (1, 3, 261), tracked((A, 0, 64)), ""),
    (lost((32, 32)), OLD, tracked((A, 0, 64)), ""),  # that part was tracked
    (lost((64, 64)), OLD, tracked((A, 64, 128)), ""),  # it ends before the last tracked address
    (lost((64, 64)), OLD, tracked((B, 0, 64)), ""),  # B lies in memory allocated later
    *((ours(WAR, (FILL, CLEARED, 3), (COPY, READ, 2), None, at), OLD,
       Tape().copy(A, 0, (32, 0, 32), (0, 64, 128)).fill(A, 64, 64), entry)
      for at, entry in (((64, 64), "beyond-tracked-memory"), ((0, 64), ""))),
    *((RESUBMITTED, OLD, Tape().fill().submit().begin().copy(source, 0).submit().begin().fill().submit(), entry)
      for source, entry in ((A, "reads-forgotten-at-submit"), (B, ""))),
    (ELSEWHERE, OLD, Tape().copy().fill().submit(), "only-the-first-read"),
    (ELSEWHERE, OLD, Tape().copy().fill(B).submit(), ""),
    *((ours(RAW, (COPY, READ, 3), (FILL, CLEARED, 0), 4), OLD, Tape().copy(source, 0).copy().submit(), entry)
      for source, entry in ((A, "only-the-first-read"), (B, ""))),
    *((ours(WAW, (FILL, CLEARED, 2), OLDER, 4), OLD, Tape(tiling).fill().clear().submit(), entry)
      for tiling, entry in ((0, "optimal-images-hide-buffers"), (1, ""))),
    (ours(WAW, (FILL, CLEARED, 4), OLDER, 5), OLD, Tape().clear().barrier(T, 0, T, 0).fill().submit(), ""),
]
# fmt: on


@pytest.mark.parametrize(("said", "version", "tape", "entry"), CASES)
def test_what_explains_a_disagreement(
    said: Finding | LayerMessage, version: Version, tape: Tape | None, entry: str
) -> None:
    """No entry: it stays one."""
    assert list(compare([said], version, tape).used) == ([entry] if entry else [])


@pytest.mark.parametrize(("begun", "explained"), [("vkCmdBeginRenderPass2", True), ("vkCmdNextSubpass2", False)])
def test_a_secondary_draws_after_the_load_operation_of_its_primary(begun: str, explained: bool) -> None:
    """A layer says so of some recordings only, depending on addresses, and does not number the draw."""
    stream = streams.Stream()
    size = (4, 4)
    image = stream.image((*size, 1))
    seen = passes.view(stream, image)
    made = passes.render_pass(stream, [passes.described()], [passes.subpass([passes.refer(0)]), passes.subpass()])
    frame = passes.framebuffer(stream, made, [seen], size)
    secondary = stream.begin(level=1)
    stream.cmd("Draw", vertexCount=3, instanceCount=1)
    stream.end()
    stream.begin()
    passes.begin_pass(stream, made, frame, passes.rect(size))
    passes.next_subpass(stream)
    executed = stream.cmd("ExecuteCommands", commandBufferCount=1, pCommandBuffers=[secondary])
    read = ("vkCmdDraw", "SYNC_FRAGMENT_SHADER_INPUT_ATTACHMENT_READ", executed)
    loaded = (begun, "SYNC_COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE", 0)
    said = replace(theirs("READ_RACING_WRITE", read, loaded, 1), kind="submit", entry=0, resource=image)
    result = comparing.compare([], [said], known_differences(TODAY), stream.blocks)
    assert result.used == ({"loads-and-stores-race": 1} if explained else {})


def test_one_hazard_a_region_and_a_segment() -> None:
    blitted = ("vkCmdBlitImage", WRITE, 3)
    found = [ours(RAW, (COPY, READ, 4), (COPY, WRITE, 2), at=(0, 8)), ours(RAW, (COPY, READ, 4), blitted, at=(8, 8))]
    same, other = theirs(RAW, (COPY, READ, 4), (COPY, WRITE, 0)), theirs(WAW, (COPY, WRITE, 4), (COPY, WRITE, 0))
    assert list(compare([*found, same]).used) == ["one-hazard-a-region"]
    higher = theirs(RAW, (COPY, READ, 4), blitted)
    assert len(compare([*found, higher]).disagreements) == 1, "it would have named the lower one"
    assert len(compare([*found, other]).disagreements) == 3
    tape = Tape().fill(B).fill(A).barrier(TRANSFER, 0, TRANSFER, 0).fill(B, 64).submit()
    said = theirs(WAW, (FILL, WRITE, tape.at), OLDER, 1, (0, 2))
    for at, left in ((2, 0), (5, 1)):  # before and after the barrier, at which a segment ends
        hidden = ours(WAR, (FILL, CLEARED, at), OLDER, tape.at)
        result = compare([ours(WAW, (FILL, CLEARED, 3), OLDER, tape.at), hidden, said], OLD, tape)
        assert len(result.disagreements) == left


def test_we_report_a_pair_once() -> None:
    tape = Tape().copy().copy().submit().submit().submit()
    found = ours(WAW, (COPY, WRITE, 2), (COPY, WRITE, 3), submit=5)
    said = {at: theirs(WAW, (COPY, WRITE, at), (COPY, WRITE, 3), submit=(0, 1)) for at in (4, 5, 6)}
    assert compare([found, said[5], said[6]], tape=tape).used == {"pair-reported-once": 1}
    assert [subject.call for subject in compare([found, said[4], said[5]], tape=tape).disagreements] == [4]


def test_we_report_another_pair_again() -> None:
    tape = Tape().copy().copy().submit().submit().submit()
    found = ours(WAW, (COPY, WRITE, 2), (COPY, WRITE, 3), submit=5)
    other = theirs(WAW, (COPY, WRITE, 6), (COPY, WRITE, 2), submit=(0, 2))
    said = theirs(WAW, (COPY, WRITE, 5), (COPY, WRITE, 3), submit=(0, 1))
    assert [subject.call for subject in compare([found, said, other], tape=tape).disagreements] == [6]


@pytest.mark.parametrize("text", ["", ">=1.3.1,", ",<1.3.1", ">=1.3.1<1.4.0"])
def test_what_says_nothing_of_versions(text: str) -> None:
    assert not re.fullmatch(VERSIONS, text)


def test_the_file_is_sound() -> None:
    entries = load()
    assert {entry.condition[0] for entry in entries} == {"", *CONDITIONS}, "each condition is used"
    subject = Subject("layer-only", ("", "", "", "", ""), "record", None, None, None, Stream([]))
    for entry in entries:
        condition, arguments = entry.condition
        assert entry.reason.endswith(".") and entry.rule
        assert condition or entry.rename or "hazards" in entry.match, entry.id
        assert entry.match.keys() <= marks(subject).keys(), entry.id
        assert not any(isinstance(globs, str) for globs in entry.match.values()), entry.id
        assert entry.side in ("ours-only", "layer-only", "both"), entry.id
        assert re.fullmatch(VERSIONS, entry.versions), entry.id
        assert len(entry.rename) in (0, 2), entry.id
        if condition:
            signature(CONDITIONS[condition]).bind(subject, **arguments)


@pytest.mark.parametrize(("size", "explained"), [(256, True), (1024, False), (64, False), (None, False)])
def test_a_barrier_of_the_bytes_that_are_accessed_is_too_small_for_the_layer(size: int | None, explained: bool) -> None:
    """It takes the whole range of both descriptors. Where that is ordered too, or less is, or all, something else is
    wrong with what it says."""
    stream = streams.Stream()
    held = stream.buffer(1024)
    first, second = (stream.compute(shader, [held], bytes(4)) for shader in ("fill_words", "atomic_add"))
    stream.begin()
    first.run()
    if size is not None:
        part = streams.struct(
            "VkBufferMemoryBarrier2", srcStageMask=0x800, srcAccessMask=1 << 34, dstStageMask=0x800,
            dstAccessMask=1 << 33, buffer=held, offset=0, size=size,
        )  # fmt: skip
        stream.cmd("PipelineBarrier2", pDependencyInfo=streams.struct("VkDependencyInfo", pBufferMemoryBarriers=[part]))
    at = second.run()
    stream.submit()
    read = STORED.replace("WRITE", "READ")
    said = LayerMessage(
        "SYNC-HAZARD-READ-AFTER-WRITE", RAW, "vkCmdDispatch", "", "record", read, STORED, "vkCmdDispatch"
    )
    said = replace(said, call=at, resource=held)
    found = comparing.compare([], [said], known_differences(TODAY), stream.blocks)
    ids = [each.difference.id for each in found.expected if each.difference]
    assert ("whole-ranges-of-descriptors" in "".join(ids)) == explained, found
