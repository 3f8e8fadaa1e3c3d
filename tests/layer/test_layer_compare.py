"""Comparing findings with messages, the expected differences and the conditions that tie them to the stream."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from harness.findings import Finding, Hazard, Place, UserError
from harness.layer import compare as comparing
from harness.layer.compare import Comparison
from harness.layer.conditions import CONDITIONS
from harness.layer.known_differences import FILE, SIDES, known_differences, load
from harness.layer.manifest import Version
from harness.layer.parse import LayerMessage
from harness.spec.enums import VkPipelineStage2
from harness.trace.calls import Block, Call

OLD, TODAY = (1, 3, 239), (1, 4, 360)
RAW, WAR, WAW = "READ_AFTER_WRITE", "WRITE_AFTER_READ", "WRITE_AFTER_WRITE"
COPY_READ, COPY_WRITE, CLEAR_WRITE = "SYNC_COPY_TRANSFER_READ", "SYNC_COPY_TRANSFER_WRITE", "SYNC_CLEAR_TRANSFER_WRITE"
STORAGE_WRITE = "SYNC_COMPUTE_SHADER_SHADER_STORAGE_WRITE"
ILT = "SYNC_IMAGE_LAYOUT_TRANSITION"
TRANSFER = VkPipelineStage2.ALL_TRANSFER
ALL_COMMANDS = VkPipelineStage2.ALL_COMMANDS
COPY = VkPipelineStage2.COPY
CLEAR = VkPipelineStage2.CLEAR
CB, A, B, IMAGE = 100, 201, 202, 301


def finding(
    hazard: str,
    command: tuple[str, str, int],
    prior: tuple[str, str, int],
    submit: int | None = None,
    resource: int = A,
) -> Finding:
    """`command` and `prior` are (name, access, block index)."""
    place = Place(command[2], command[0], None, CB, submit)
    prior_place = Place(prior[2], prior[0], None, CB)
    return Finding(Hazard(hazard), command[1], prior[1], place, prior_place, resource, "VkBuffer")


def message(
    hazard: str,
    command: tuple[str, str],
    prior: tuple[str, str],
    call: int | None = None,
    seq_no: int | None = None,
    submit: tuple[int, int] | None = None,
) -> LayerMessage:
    """`submit` is (entry, recorded_seq_no) of a message at submit."""
    return LayerMessage(
        "SYNC-HAZARD-" + hazard.replace("_", "-"), hazard, command[0], command[1], prior[1], prior[0], (), seq_no, "",
        "submit" if submit else "record", call=call,
        entry=submit[0] if submit else None, recorded_seq_no=submit[1] if submit else None,
    )  # fmt: skip


WHOLE = {"aspectMask": 1, "baseMipLevel": 0, "levelCount": 1, "baseArrayLayer": 0, "layerCount": 1}


class Tape:
    """Builds a trace: memory with the buffers A, B and the image before block 1, then one call a line from block 1 on,
    which begins the command buffer."""

    def __init__(self, tiling: int = 0) -> None:
        extent = {"width": 4, "height": 4, "depth": 1}
        image = {"imageType": 1, "format": 37, "extent": extent, "mipLevels": 1, "arrayLayers": 1, "samples": 1}
        setup: list[tuple[str, dict[str, Any]]] = []
        for memory in (11, 12, 13):
            setup.append(
                (
                    "vkAllocateMemory",
                    {"device": 1, "pAllocateInfo": {"allocationSize": 256, "memoryTypeIndex": 0}, "pMemory": memory},
                )
            )
        for memory, buffer in ((11, A), (12, B)):
            setup.append(("vkCreateBuffer", {"pCreateInfo": {"size": 256}, "pBuffer": buffer}))
            setup.append(("vkBindBufferMemory", {"buffer": buffer, "memory": memory, "memoryOffset": 0}))
        setup.append(("vkCreateImage", {"pCreateInfo": image | {"tiling": tiling, "flags": 0}, "pImage": IMAGE}))
        setup.append(("vkBindImageMemory", {"image": IMAGE, "memory": 13, "memoryOffset": 0}))
        self.blocks = [Call(at - len(setup), name, args) for at, (name, args) in enumerate(setup, 1)]
        self.at = 0
        self.begin()

    def add(self, name: str, **args: Any) -> Tape:
        return self.other(name, commandBuffer=CB, **args)

    def other(self, name: str, **args: Any) -> Tape:
        self.at += 1
        self.blocks.append(Call(self.at, name, args))
        return self

    def begin(self) -> Tape:
        return self.add("vkBeginCommandBuffer")

    def fill(self, buffer: int = A, offset: int = 0, size: int = 64) -> Tape:
        return self.add("vkCmdFillBuffer", dstBuffer=buffer, dstOffset=offset, size=size)

    def copy(self, source: int = A, target: int = B) -> Tape:
        region = {"srcOffset": 0, "dstOffset": 0, "size": 64}
        return self.add("vkCmdCopyBuffer", srcBuffer=source, dstBuffer=target, pRegions=[region])

    def dispatch(self, name: str = "vkCmdDispatch") -> Tape:
        return self.add(name, groupCountX=1, groupCountY=1, groupCountZ=1)

    def clear(self) -> Tape:
        return self.add("vkCmdClearColorImage", image=IMAGE, pRanges=[WHOLE])

    def copy_from_image(self) -> Tape:
        return self.add("vkCmdCopyImage", srcImage=IMAGE, dstImage=0, pRegions=None)

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
        empty = {"pMemoryBarriers": None, "pBufferMemoryBarriers": None, "pImageMemoryBarriers": None}
        return self.add("vkCmdPipelineBarrier2", pDependencyInfo=empty | lists)

    def submit(self) -> Tape:
        none = dict.fromkeys(("pWaitSemaphores", "pWaitDstStageMask", "pSignalSemaphores"))
        batch = {"pCommandBuffers": [CB], **none}
        return self.other("vkQueueSubmit", queue=1, fence=0, pSubmits=[batch])


def _masks(masks: tuple[int, ...]) -> dict[str, Any]:
    names = ("srcStageMask", "srcAccessMask", "dstStageMask", "dstAccessMask")
    return dict(zip(names, masks, strict=True))


def compare(
    findings: list[Finding], messages: list[LayerMessage], version: Version, blocks: Iterable[Block] = ()
) -> Comparison:
    return comparing.compare(findings, messages, known_differences(version), blocks)


def used(comparison: Comparison) -> list[str]:
    return sorted(comparison.used)


def test_equal_keys_agree_however_often_they_are_said() -> None:
    ours = [finding(RAW, ("vkCmdCopyBuffer2KHR", COPY_READ, 3), ("vkCmdCopyImage", COPY_WRITE, 2))] * 2
    theirs = [message(RAW, ("vkCmdCopyBuffer2", COPY_READ), ("vkCmdCopyImage", COPY_WRITE))] * 3
    result = compare(ours, theirs, TODAY)
    assert (result.agreed, result.agrees, result.expected) == (1, True, [])


def test_what_is_left_is_a_disagreement_on_either_side() -> None:
    ours = [finding(RAW, ("vkCmdCopyBuffer", COPY_READ, 3), ("vkCmdCopyImage", COPY_WRITE, 2))]
    theirs = [message(WAW, ("vkCmdCopyBuffer", COPY_WRITE), ("vkCmdCopyImage", COPY_WRITE))]
    result = compare(ours, theirs, TODAY)
    assert [subject.side for subject in result.disagreements] == ["ours-only", "layer-only"]
    assert not result.agrees
    assert result.lines() == [
        "ours-only at record (block 3): READ_AFTER_WRITE vkCmdCopyBuffer SYNC_COPY_TRANSFER_READ after vkCmdCopyImage "
        "SYNC_COPY_TRANSFER_WRITE",
        "layer-only at record: WRITE_AFTER_WRITE vkCmdCopyBuffer SYNC_COPY_TRANSFER_WRITE after vkCmdCopyImage "
        "SYNC_COPY_TRANSFER_WRITE",
    ]


def test_calls_are_compared_apart_when_messages_are_attributed() -> None:
    key = (("vkCmdCopyBuffer", COPY_WRITE), ("vkCmdCopyBuffer", COPY_WRITE))
    ours = [finding(WAW, (*key[0], 3), (*key[1], 2)), finding(WAW, (*key[0], 4), (*key[1], 3))]
    assert compare(ours, [message(WAW, *key, call=3), message(WAW, *key, call=4)], TODAY).agreed == 2
    result = compare(ours, [message(WAW, *key, call=3)], TODAY)
    assert [subject.call for subject in result.disagreements] == [4]
    assert compare(ours, [message(WAW, *key)], TODAY).agrees, "without attribution the key is enough"


def test_record_and_submit_are_apart() -> None:
    key = (("vkCmdCopyBuffer", COPY_WRITE), ("vkCmdCopyBuffer", COPY_WRITE))
    ours = [finding(WAW, (*key[0], 3), (*key[1], 2), submit=9)]
    assert len(compare(ours, [message(WAW, *key)], TODAY).disagreements) == 2
    assert compare(ours, [message(WAW, *key, call=9, submit=(0, 1))], TODAY).agrees


def test_an_unnamed_access_matches_any() -> None:
    ours = [finding(WAW, ("vkCmdCopyBuffer", COPY_WRITE, 3), ("vkCmdFillBuffer", CLEAR_WRITE, 2), submit=9)]
    theirs = [message(WAW, ("vkCmdCopyBuffer", ""), ("vkCmdFillBuffer", CLEAR_WRITE), submit=(0, 1))]
    result = compare(ours, theirs, TODAY)
    assert (result.agreed, result.agrees) == (1, True)
    other = [message(WAW, ("vkCmdCopyBuffer", ""), ("vkCmdFillBuffer", COPY_WRITE), submit=(0, 1))]
    assert len(compare(ours, other, TODAY).disagreements) == 2


def test_fills_are_copies_for_the_old_layer_only() -> None:
    ours = [finding(WAW, ("vkCmdFillBuffer", CLEAR_WRITE, 3), ("vkCmdUpdateBuffer", CLEAR_WRITE, 2))]
    theirs = [message(WAW, ("vkCmdFillBuffer", COPY_WRITE), ("vkCmdUpdateBuffer", COPY_WRITE))]
    assert compare(ours, theirs, OLD).agrees
    assert not compare(ours, theirs, TODAY).agrees
    image = [finding(WAW, ("vkCmdClearColorImage", CLEAR_WRITE, 3), ("vkCmdClearColorImage", CLEAR_WRITE, 2))]
    cleared = [message(WAW, ("vkCmdClearColorImage", CLEAR_WRITE), ("vkCmdClearColorImage", CLEAR_WRITE))]
    assert compare(image, cleared, OLD).agrees, "clears of images are at CLEAR for both"


def test_silent_by_design() -> None:
    ours = [finding(RAW, ("x", "SYNC_HOST_HOST_READ", 3), ("y", COPY_WRITE, 2))]
    result = compare(ours, [], OLD)
    assert result.agrees and result.used == {"silent-by-design": 1}
    assert result.expected[0].reason.startswith("the Khronos layer does not track host accesses")


def test_copy_or_clear_named_alone() -> None:
    ours = [finding(RAW, ("vkCmdCopyBuffer", COPY_READ, 4), ("vkCmdFillBuffer", CLEAR_WRITE, 2))]
    named = Tape().fill().barrier(COPY, 0x1000, COPY, 0x800).copy()
    assert used(compare(ours, [], OLD, named.blocks)) == ["fills-and-updates-beside-copies"]
    for stages in (TRANSFER, COPY | CLEAR, ALL_COMMANDS | COPY):
        blocks = Tape().fill().barrier(stages, 0x1000, stages, 0x800).copy().blocks
        assert not compare(ours, [], OLD, blocks).agrees
    assert not compare(ours, [], OLD).agrees, "unknown stream"
    assert not compare(ours, [], TODAY, named.blocks).agrees


def test_sync2_ranged_barriers() -> None:
    theirs = [message(WAR, ("vkCmdCopyBuffer", COPY_WRITE), ("vkCmdCopyBuffer", COPY_READ), call=4, seq_no=1)]
    tape = Tape().copy().ranged(TRANSFER, 0x1000, TRANSFER, 0x800).copy(B, A)
    assert used(compare([], theirs, OLD, tape.blocks)) == ["sync2-barriers-order-only-their-resource"]
    assert not compare([], theirs, OLD, Tape().copy().barrier(0x1000, 0, 0x1000, 0).copy(B, A).blocks).agrees
    assert not compare([], theirs, (1, 4, 326), tape.blocks).agrees
    before = Tape().ranged(TRANSFER, 0, TRANSFER, 0).copy().copy(B, A)
    late = [message(WAR, ("vkCmdCopyBuffer", COPY_WRITE), ("vkCmdCopyBuffer", COPY_READ), call=4, seq_no=2)]
    assert not compare([], late, OLD, before.blocks).agrees, "the barrier lies before both"
    raw = [message(RAW, ("vkCmdCopyBuffer", COPY_READ), ("vkCmdCopyBuffer", COPY_WRITE), call=4, seq_no=1)]
    assert not compare([], raw, OLD, tape.blocks).agrees, "one execution dependency makes no write visible"


def test_sync2_ranged_barrier_after_an_earlier_read() -> None:
    raw = [message(RAW, ("vkCmdCopyBuffer", COPY_READ), ("vkCmdFillBuffer", COPY_WRITE), call=5, seq_no=1)]
    tape = Tape().fill().copy(A, 0).ranged(TRANSFER, 0, TRANSFER, 0).copy(A, 0)
    assert used(compare([], raw, OLD, tape.blocks)) == ["sync2-barriers-order-only-their-resource"]
    unread = Tape().fill().copy(B, 0).ranged(TRANSFER, 0, TRANSFER, 0).copy(A, 0)
    assert not compare([], raw, OLD, unread.blocks).agrees


def test_transitions() -> None:
    waw = [message(WAW, ("vkCmdPipelineBarrier2", ILT), ("vkCmdClearColorImage", CLEAR_WRITE), call=4, seq_no=1)]
    tape = Tape().clear().barrier(TRANSFER, 0x1000, TRANSFER, 0).transition(TRANSFER, 0, TRANSFER, 0x800)
    assert used(compare([], waw, OLD, tape.blocks)) == ["transition-of-available-write"]
    tape = Tape().clear().barrier(TRANSFER, 0, TRANSFER, 0).transition(TRANSFER, 0, TRANSFER, 0x800)
    assert not compare([], waw, OLD, tape.blocks).agrees, "the barrier makes nothing available"
    war = [message(WAR, ("vkCmdPipelineBarrier2", ILT), ("vkCmdCopyImage", COPY_READ), call=4, seq_no=1)]
    for destination, agrees in ((ALL_COMMANDS, True), (1, True), (TRANSFER, False)):
        tape = Tape().copy_from_image().barrier(TRANSFER, 0, destination, 0).transition(0, 0, TRANSFER, 0x800)
        assert compare([], war, OLD, tape.blocks).agrees is agrees


def test_all_commands_after_a_transition() -> None:
    theirs = [message(WAW, ("vkCmdClearColorImage", CLEAR_WRITE), ("vkCmdPipelineBarrier2", ILT), call=4, seq_no=1)]
    for source, agrees in ((ALL_COMMANDS, True), (TRANSFER, False)):
        tape = Tape().transition(0, 0, 0, 0).barrier(source, 0x1000, TRANSFER, 0x1000).clear()
        assert compare([], theirs, OLD, tape.blocks).agrees is agrees
    for accesses, cited in ((0, True), (0x1000, True), (0x10000, False), (0x18000, False)):
        tape = Tape().transition(0, 0, 0, 0).barrier(ALL_COMMANDS, accesses, TRANSFER, 0x1000).clear()
        assert compare([], theirs, TODAY, tape.blocks).agrees is cited, "MEMORY_WRITE holds the transition's write"


def test_barriers_beside_a_transition() -> None:
    ours = [finding(WAW, ("vkCmdClearColorImage", CLEAR_WRITE, 3), ("vkCmdPipelineBarrier2", ILT, 2))]
    both = Tape().transition(TRANSFER, 0, TRANSFER, 0x800, beside=(TRANSFER, 0, TRANSFER, 0x1000)).clear()
    assert used(compare(ours, [], TODAY, both.blocks)) == ["barriers-beside-a-transition"]
    alone = Tape().transition(TRANSFER, 0, TRANSFER, 0x800).clear()
    assert not compare(ours, [], TODAY, alone.blocks).agrees


def test_another_of_several_reads_is_named() -> None:
    fill, copy, image = ("vkCmdFillBuffer", CLEAR_WRITE), ("vkCmdCopyBuffer", COPY_READ), ("vkCmdCopyImage", COPY_READ)
    tape = Tape().fill().copy().submit().submit()
    theirs = [message(WAR, fill, image, call=5, submit=(0, 1))]
    ours = [finding(WAR, (*fill, 2), (*copy, 3), submit=5)]
    agreeing = message(WAR, fill, copy, call=5, submit=(0, 1))
    version = (1, 4, 364)
    assert used(compare(ours, [agreeing, *theirs], version, tape.blocks)) == ["another-of-several-reads"]
    other = [finding(WAW, (*fill, 2), (*copy, 3), submit=5)]
    assert not compare(other, theirs, version, tape.blocks).agrees, "we found no read before it"


def test_descriptor_writes_twice_are_dropped_at_record_only() -> None:
    key = (("vkCmdDispatch", STORAGE_WRITE, 3), ("vkCmdDispatch", STORAGE_WRITE, 2))
    tape = Tape().dispatch().dispatch().submit()
    assert used(compare([finding(WAW, *key)], [], OLD, tape.blocks)) == ["same-descriptor-write-twice"]
    assert not compare([finding(WAW, *key, submit=4)], [], OLD, tape.blocks).agrees
    assert not compare([finding(WAW, *key)], [], (1, 4, 348), tape.blocks).agrees


def test_commands_without_hooks() -> None:
    ours = [finding(RAW, ("vkCmdDispatchBaseKHR", STORAGE_WRITE, 3), ("vkCmdFillBuffer", CLEAR_WRITE, 2))]
    tape = Tape().fill().dispatch("vkCmdDispatchBaseKHR")
    assert used(compare(ours, [], OLD, tape.blocks)) == ["commands-passed-over"]
    assert not compare(ours, [], TODAY, tape.blocks).agrees
    ours = [finding(RAW, ("vkCmdDispatch", STORAGE_WRITE, 3), ("vkCmdFillBuffer", CLEAR_WRITE, 2))]
    assert not compare(ours, [], OLD, Tape().fill().dispatch().blocks).agrees


def test_one_hazard_a_region() -> None:
    ours = [
        finding(RAW, ("vkCmdCopyBuffer", COPY_READ, 4), ("vkCmdCopyBuffer", COPY_WRITE, 2)),
        finding(RAW, ("vkCmdCopyBuffer", COPY_READ, 4), ("vkCmdCopyImageToBuffer", COPY_WRITE, 3)),
    ]
    theirs = [message(RAW, ("vkCmdCopyBuffer", COPY_READ), ("vkCmdCopyBuffer", COPY_WRITE), call=4)]
    assert used(compare(ours, theirs, OLD)) == ["one-hazard-a-region"]
    theirs = [message(WAW, ("vkCmdCopyBuffer", COPY_WRITE), ("vkCmdCopyBuffer", COPY_WRITE), call=4)]
    assert len(compare(ours, theirs, OLD).disagreements) == 3


def test_one_hazard_a_segment() -> None:
    """fill B; fill A; barrier; fill B at 64: the first two are one segment, cut by the barrier."""
    tape = Tape().fill(B).fill(A).barrier(TRANSFER, 0, TRANSFER, 0).fill(B, 64).submit()
    prior = ("vkCmdCopyImageToBuffer", COPY_WRITE, 0)
    said = message(WAW, ("vkCmdFillBuffer", COPY_WRITE), prior[:2], tape.at, 1, (0, 2))
    same = finding(WAW, ("vkCmdFillBuffer", CLEAR_WRITE, 3), prior, tape.at)
    silent = finding(WAR, ("vkCmdFillBuffer", CLEAR_WRITE, 2), prior, tape.at, B)
    assert used(compare([same, silent], [said], OLD, tape.blocks)) == ["one-hazard-a-segment"]
    elsewhere = finding(WAR, ("vkCmdFillBuffer", CLEAR_WRITE, 5), prior, tape.at, B)
    differing = message(RAW, ("vkCmdFillBuffer", "SYNC_COPY_TRANSFER_READ"), prior[:2], tape.at, 1, (0, 2))
    result = compare([elsewhere], [differing], OLD, tape.blocks)
    assert [subject.side for subject in result.disagreements] == ["ours-only", "layer-only"], "another segment"


def test_we_report_a_pair_once() -> None:
    key = (("vkCmdCopyBuffer", COPY_WRITE), ("vkCmdCopyBuffer", COPY_WRITE))
    ours = [finding(WAW, (*key[0], 2), (*key[1], 2), submit=4)]
    said = [message(WAW, *key, call=call, submit=(0, 1)) for call in (4, 5)]
    assert compare(ours, said, TODAY).used == {"pair-reported-once": 1}
    late = [message(WAW, *key, call=3, submit=(0, 1)), said[0]]
    assert [subject.call for subject in compare(ours, late, TODAY).disagreements] == [3]


def test_overlapping_regions_are_tracked_in_order() -> None:
    """Reads A at 32 to 64, then at 0 to 128: past 64 the second read is lost."""
    tape = Tape()
    regions = [{"srcOffset": 32, "dstOffset": 0, "size": 32}, {"srcOffset": 0, "dstOffset": 64, "size": 128}]
    tape.add("vkCmdCopyBuffer", srcBuffer=A, dstBuffer=0, pRegions=regions).fill(A, 64, 64)
    ours = [finding(WAR, ("vkCmdFillBuffer", CLEAR_WRITE, 3), ("vkCmdCopyBuffer", COPY_READ, 2))]
    for place, agrees in (((64, 64), True), ((0, 64), False)):
        ours[0].ranges = (place,)
        assert compare(ours, [], OLD, tape.blocks).agrees is agrees


def test_reads_forgotten_at_submit() -> None:
    tape = Tape().fill().submit().begin().copy().submit().begin().fill().submit()
    war = [finding(WAR, ("vkCmdFillBuffer", CLEAR_WRITE, 8), ("vkCmdCopyBuffer", COPY_READ, 5), submit=9)]
    war[0].prior = Place(5, "vkCmdCopyBuffer", None, CB, 6)
    assert used(compare(war, [], OLD, tape.blocks)) == ["reads-forgotten-at-submit"]
    waw = [message(WAW, ("vkCmdFillBuffer", COPY_WRITE), ("vkCmdFillBuffer", COPY_WRITE), 9, 1, (0, 1))]
    assert used(compare([], waw, OLD, tape.blocks)) == ["older-write-after-forgotten-read"]
    unread = Tape().fill().submit().begin().copy(B, 0).submit().begin().fill().submit()
    assert not compare([], waw, OLD, unread.blocks).agrees, "the resource was not read"


def test_a_write_hides_the_read_of_its_segment() -> None:
    ours = [finding(RAW, ("vkCmdCopyBuffer", COPY_READ, 2), ("vkCmdFillBuffer", CLEAR_WRITE, 0), submit=4)]
    tape = Tape().copy().fill().submit()
    assert used(compare(ours, [], OLD, tape.blocks)) == ["write-hides-read-of-its-segment"]
    assert not compare(ours, [], OLD, Tape().copy().fill(B).submit().blocks).agrees
    apart = Tape().copy().barrier(TRANSFER, 0, TRANSFER, 0).fill().submit()
    ours[0].place = Place(2, "vkCmdCopyBuffer", None, CB, 5)
    assert not compare(ours, [], OLD, apart.blocks).agrees, "another segment"


def test_only_the_first_read() -> None:
    ours = [finding(RAW, ("vkCmdCopyBuffer", COPY_READ, 3), ("vkCmdFillBuffer", CLEAR_WRITE, 0), submit=4)]
    assert used(compare(ours, [], OLD, Tape().copy().copy().submit().blocks)) == ["only-the-first-read"]
    assert not compare(ours, [], OLD, Tape().copy(B, 0).copy().submit().blocks).agrees


def test_optimal_images_hide_buffers() -> None:
    ours = [finding(WAW, ("vkCmdFillBuffer", CLEAR_WRITE, 2), ("vkCmdCopyBuffer", COPY_WRITE, 0), submit=4)]
    assert used(compare(ours, [], OLD, Tape(0).fill().clear().submit().blocks)) == ["optimal-images-hide-buffers"]
    assert not compare(ours, [], OLD, Tape(1).fill().clear().submit().blocks).agrees
    apart = Tape(0).clear().barrier(TRANSFER, 0, TRANSFER, 0).fill().submit()
    ours = [finding(WAW, ("vkCmdFillBuffer", CLEAR_WRITE, 4), ("vkCmdCopyBuffer", COPY_WRITE, 0), submit=5)]
    assert not compare(ours, [], OLD, apart.blocks).agrees, "another segment"


@pytest.mark.parametrize(
    ("first", "hazardous", "agrees"),
    [
        ((A, 0, 64), (64, 64), True),
        ((A, 0, 64), (32, 32), False),  # that part was tracked
        ((A, 64, 128), (64, 64), False),  # ends before the last tracked address
        ((A, 192, 64), (64, 64), False),
        ((B, 0, 64), (64, 64), False),  # B lies in memory allocated later
    ],
)
def test_beyond_tracked_memory(first: tuple[int, int, int], hazardous: tuple[int, int], agrees: bool) -> None:
    """A fill of A's bytes 0 to 128 after another one; the layer misses what that lost."""
    tape = Tape().fill(*first).fill(A, 0, 128).fill(A, 64, 64)
    ours = [finding(WAW, ("vkCmdFillBuffer", CLEAR_WRITE, 4), ("vkCmdFillBuffer", CLEAR_WRITE, 3))]
    ours[0].ranges = (hazardous,)
    result = compare(ours, [], OLD, tape.blocks)
    assert result.agrees is agrees
    assert used(result) == (["beyond-tracked-memory"] if agrees else [])
    assert not compare(ours, [], (1, 3, 261), tape.blocks).agrees


def test_the_file_is_sound() -> None:
    entries = load(FILE)
    assert {entry.condition for entry in entries if entry.condition} == set(CONDITIONS), "each condition is used"
    for entry in entries:
        assert entry.reason.endswith(".") and entry.rule and set(entry.sides) <= set(SIDES)
        assert entry.condition or "hazards" in entry.globs or "access-rename" in entry.sides, entry.id
    old, today = ({entry.id for entry in known_differences(version)} for version in (OLD, TODAY))
    assert "fills-and-updates-are-copies" in old - today
    assert "arrays-skipped" in today - old


GOOD = '[x]\nrule = "r"\nreason = "y"\nsides = ["ours-only"]\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (GOOD.replace("ours-only", "both"), "unknown side 'both'"),
        (GOOD + 'condition = "moon"', "unknown condition 'moon'"),
        (GOOD + 'condition = "called_before"', "missing a required argument: 'calls'"),
        (GOOD + 'condition = "atomic_access"\nwith = { moon = 1 }', "unexpected keyword argument 'moon'"),
        (GOOD + 'colour = "red"', "unknown key 'colour'"),
        (GOOD + 'hazards = "all"', "must be a list of strings"),
        (GOOD + 'before = "soon"', "soon"),
        (GOOD.replace('reason = "y"', ""), "'reason' is missing"),
        (GOOD.replace("ours-only", "access-rename"), "needs `commands`, `from` and `to`"),
        ("difference = 1", "must be a table"),
        ("[[", "known_differences.toml"),
    ],
)
def test_a_wrong_file_is_one_clear_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "known_differences.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=r"known_differences\.toml") as caught:
        load(path)
    assert says in str(caught.value) and "\n" not in str(caught.value)
