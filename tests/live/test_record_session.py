"""Records of another process as calls: the calls and findings of the trace, one rule for host writes, and what is no
stream at all."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.support.written_streams import NO_MEMORY, CallRecord, MirrorStream, buffer_calls, copy_calls, submit_args
from vkharness.check import Analysis
from vkharness.findings import Finding, UserError
from vkharness.live.line_tables import LineTables
from vkharness.live.native_sites import NativeSites
from vkharness.live.process_judge import ProcessJudge, judge_folder
from vkharness.live.record_session import RecordSession
from vkharness.live.records import Kind
from vkharness.trace.calls import Block, Call, HostWrite
from vkharness.trace.codec import load

pytestmark = pytest.mark.driver  # the package's C declarations come with its import, which opens the loader
DATA = Path(__file__).parents[1] / "data"
TRACES = [path for folder in ("queues", "sparse", "structures", "joining") for path in (DATA / folder).glob("*.jsonl")]
TRACES.append(DATA / "formats" / "trace" / "version-2.jsonl")
IDS = 1 << 10
"""Ids of objects are below: those of the two streams may differ."""


def judged(folder: Path) -> tuple[RecordSession, list[Block], Analysis]:
    kept: list[Block] = []
    analysis = Analysis()
    return judge_folder(folder, analysis, NativeSites(LineTables()), kept.append), kept, analysis


def natively(folder: Path) -> tuple[RecordSession, Analysis]:
    """The same where nobody wants to hear of each call: the native core takes most."""
    analysis = Analysis()
    return judge_folder(folder, analysis, NativeSites(LineTables())), analysis


def told(found: Finding, blocks: list[Block]) -> tuple[Any, ...]:
    """What a finding says, its calls by their places in the stream."""
    places = {block.index: at for at, block in enumerate(blocks)}
    calls = places[found.place.call], places.get(found.prior.call)
    return found.hazard, found.access, found.prior_access, calls, found.ranges, found.boxes


def same(one: Any, two: Any) -> bool:
    """Whether two values are the same but for the ids of objects."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(same, one, two))
    return bool(one == two or (type(one) is type(two) is int and 0 < one < IDS and 0 < two < IDS))


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_a_stream_gives_the_calls_and_findings_of_the_trace(path: Path, tmp_path: Path) -> None:
    blocks = load(path)
    stream = MirrorStream(tmp_path)
    for block in blocks:
        stream.block(block)
    session, kept, analysis = judged(tmp_path)
    assert len(kept) == len(blocks)
    for one, two in zip(blocks, kept, strict=True):
        if isinstance(one, Call) and isinstance(two, Call):
            assert (one.name, one.result, one.thread) == (two.name, two.result, two.thread) and not two.unread
            assert same(one.args, two.args), one.name
        else:
            assert isinstance(one, HostWrite) and isinstance(two, HostWrite)
            assert (one.offset, one.data) == (two.offset, two.data)
    expected = Analysis().follow(blocks)
    assert (session.verdict, session.unmodelled) == (expected.verdict, expected.unmodelled)
    assert [told(each, kept) for each in analysis.findings] == [told(each, blocks) for each in expected.findings]
    assert not session.internal_errors and not session.cut_chains
    quick, alone = natively(tmp_path)
    assert (quick.verdict, quick.unmodelled) == (expected.verdict, expected.unmodelled)
    assert [told(each, kept) for each in alone.findings] == [told(each, blocks) for each in expected.findings]
    assert stream.segments > 1, "the test is of several segments"


# What the host wrote, and calls that wait for their result.


@pytest.mark.parametrize("seen", ["in flight", "before the wait", "behind the wait", "with the next submit"])
def test_what_the_device_wrote_is_never_the_hosts(tmp_path: Path, seen: str) -> None:
    """The copy's bytes come into mapped memory at any time from the submit on, and the stream tells them then."""
    stream = MirrorStream(tmp_path)
    buffer_calls(stream)
    stream.data(4, 0, b"\1" * 4096)
    copy_calls(stream)
    stream.call("vkQueueSubmit", submit_args(), 0)
    if seen in ("in flight", "before the wait"):
        stream.data(4, 4096, b"\1" * (2048 if seen == "in flight" else 4096))
    if seen == "in flight":
        stream.call("vkGetFenceStatus", {"device": 2, "fence": 0}, 1)
        stream.data(4, 4096 + 2048, b"\1" * 2048)
    if seen == "with the next submit":
        stream.data(4, 4096, b"\1" * 4096)
        stream.call("vkQueueSubmit", {"queue": 3, "submitCount": 0, "pSubmits": None, "fence": 0}, 0)
    if seen == "behind the wait":
        stream.data(4, 4096, b"\1" * 4096)
    stream.call("vkQueueWaitIdle", {"queue": 3}, 0)
    stream.call("vkQueueSubmit", {"queue": 3, "submitCount": 0, "pSubmits": None, "fence": 0}, 0)
    session, kept, _ = judged(tmp_path)
    assert session.verdict == "clean", session.findings
    writes = [block for block in kept if isinstance(block, HostWrite)]
    assert sum(len(each.data) for each in writes if each.offset == 0) >= 4096
    assert all(each.offset + len(each.data) <= 4096 or not any(each.data[4096:]) for each in writes)


def test_what_the_host_wrote_too_early_is_a_race(tmp_path: Path) -> None:
    stream = MirrorStream(tmp_path)
    buffer_calls(stream)
    stream.data(4, 0, b"\1" * 4096)
    copy_calls(stream)
    stream.call("vkQueueSubmit", submit_args(), 0)
    stream.data(4, 16, b"\2" * 8)
    stream.call("vkQueueSubmit", {"queue": 3, "submitCount": 0, "pSubmits": None, "fence": 0}, 0)
    session, _, analysis = judged(tmp_path)
    assert session.verdict == "hazards"
    assert [(each.hazard, each.ranges) for each in analysis.findings] == [("WRITE_AFTER_READ", ((16, 8),))]


def test_a_call_is_taken_where_it_begins_once_its_result_is_known(tmp_path: Path) -> None:
    """The wait of one thread returns while the submit of another one has not: the submit comes first all the same."""
    stream = MirrorStream(tmp_path, process=0)
    buffer_calls(stream)
    copy_calls(stream)
    stream.call("vkQueueSubmit", submit_args(), 0)
    kept: list[Block] = []
    judge = ProcessJudge(tmp_path, Analysis(), NativeSites(LineTables()), live=True, sink=kept.append)
    begun = stream.enter("vkQueueSubmit", submit_args(), thread=1)
    stream.call("vkQueueWaitIdle", {"queue": 3}, 0, thread=2)
    while judge.advance(3):
        pass
    assert isinstance(kept[-1], Call) and kept[-1].name == "vkQueueSubmit" and kept[-1].thread == 0
    stream.returned(begun, 0, thread=1)
    while judge.advance(3):
        pass
    judge.finish()
    last = [(each.name, each.thread) for each in kept[-2:] if isinstance(each, Call)]
    assert last == [("vkQueueSubmit", 1), ("vkQueueWaitIdle", 2)]
    assert not list(tmp_path.glob("segment*")), "what is consumed is removed"
    assert (tmp_path / "control").read_bytes()[68:72] == b"\1\0\0\0", "nobody comes again"


def test_a_process_that_ends_in_a_call_is_cut_off_there(tmp_path: Path) -> None:
    stream = MirrorStream(tmp_path)
    buffer_calls(stream)
    copy_calls(stream)
    stream.call("vkQueueWaitIdle", {"queue": 3}, 0)
    stream._numbers["vkQueueSubmit"] = 77
    stream.record(Kind.COMMAND, b"vkQueueSubmit\0", 77)
    stream.enter("vkQueueSubmit", submit_args())
    session, kept, _ = judged(tmp_path)
    assert session.verdict == "unknown"
    assert isinstance(kept[-1], Call) and "the process ended in vkQueueSubmit" in kept[-1].unread


def test_no_frame_is_judged_behind_the_last_one(tmp_path: Path) -> None:
    stream = MirrorStream(tmp_path)
    buffer_calls(stream)
    info = {"sType": 1000001001, "pNext": None, "waitSemaphoreCount": 0, "swapchainCount": 0}
    for _ in range(4):
        stream.call("vkQueuePresentKHR", {"queue": 3, "pPresentInfo": info}, 0)
    stream.record(Kind.COMMAND, b"vkQueueSubmit\0", 77)
    stream._numbers["vkQueueSubmit"] = 77
    stream.enter("vkQueueSubmit", submit_args())
    kept: list[Block] = []
    judge = ProcessJudge(tmp_path, None, NativeSites(LineTables()), live=False, sink=kept.append, last_frame=2)
    while judge.advance(100):
        pass
    judge.finish()
    assert judge.is_enough and judge.session.frames == 2 and not judge.damage
    assert [each.name for each in kept if isinstance(each, Call)].count("vkQueuePresentKHR") == 2


# What cannot be read.


def test_pointers_that_led_nowhere_cost_what_they_led_to(tmp_path: Path) -> None:
    stream = MirrorStream(tmp_path)
    buffer_calls(stream)
    copy_calls(stream)
    data = bytearray(
        CallRecord("vkCmdCopyBuffer", {"commandBuffer": 8, "srcBuffer": 5, "dstBuffer": 6, "regionCount": 1}, None).data
    )
    data[16 + 8 * 4 : 24 + 8 * 4] = struct.pack("<Q", NO_MEMORY)
    stream.record(Kind.CALL, bytes(data), stream._numbers["vkCmdCopyBuffer"])
    session, kept, _ = judged(tmp_path)
    assert session.verdict == "unknown" and "vkCmdCopyBuffer" in str(session.unmodelled)
    assert isinstance(kept[-1], Call) and "pRegions leads to no memory" in kept[-1].unread


def test_what_the_layer_did_not_see_or_lost_is_named(tmp_path: Path) -> None:
    stream = MirrorStream(tmp_path)
    buffer_calls(stream)
    stream.record(Kind.UNSEEN, b"vkCmdFromTheFutureEXT\0")
    stream.record(Kind.LOST, b"vkCmdDraw no memory\0")
    session, kept, _ = judged(tmp_path)
    assert (
        session.verdict == "unknown" and len(session.unmodelled) == 2 and "vkCmdFromTheFutureEXT" in session.unmodelled
    )
    assert isinstance(kept[-1], Call) and "no memory" in kept[-1].unread


@pytest.mark.parametrize("seed", range(80))
def test_no_stream_makes_more_than_a_verdict(tmp_path: Path, seed: int) -> None:
    """Bytes of a whole stream are changed at random: each such stream is judged, and nothing is raised."""
    stream = MirrorStream(tmp_path)
    for block in load(DATA / "formats" / "trace" / "version-2.jsonl"):
        stream.block(block)
    rng = random.Random(seed)
    for path in sorted(tmp_path.glob("segment-*")):
        data = bytearray(path.read_bytes())
        used = len(data.rstrip(b"\0"))
        for _ in range(rng.choice((1, 5, 50))):
            at = rng.randrange(64 if seed % 4 else 0, used)
            data[at] = rng.choice((0, 1, 0xFF, 0x7F, rng.randrange(256)))
        path.write_bytes(data[: rng.choice((used, len(data), len(data)))])
    session, _, _ = judged(tmp_path)
    quick, _ = natively(tmp_path)
    assert session.verdict == quick.verdict
    assert not session.internal_errors and not quick.internal_errors
    if not seed % 2:  # what a viewport says is not looked at there
        assert session.unmodelled == quick.unmodelled


def test_a_machine_without_a_loader_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise OSError("Cannot find Vulkan SDK version")

    MirrorStream(tmp_path)
    monkeypatch.setattr("vkharness.record.struct_layout.package_ffi", missing)
    with pytest.raises(UserError, match=r"^the stream of a layer is read with .* the Vulkan loader: Cannot find"):
        judged(tmp_path)
