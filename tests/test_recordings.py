"""Command buffers are judged when they are ended: what is found, and when it comes up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.said_calls import Listener
from tests.support.streams import BUFFER_USAGE, Stream, struct, two_buffers
from vkharness.check import Analysis
from vkharness.findings import Finding
from vkharness.trace.calls import Block, Call
from vkharness.trace.codec import read_trace, save

DATA = Path(__file__).parent / "data"
TRACES = sorted(path for folder in ("sparse", "joining", "formats/trace") for path in (DATA / folder).glob("*.jsonl"))


def coming(blocks: list[Block], eager: bool = False) -> list[tuple[int, str]]:
    """The findings of a stream, each with the block with which it came up."""
    analysis = Analysis(eager=eager)
    found: list[tuple[int, str]] = []
    for block in blocks:
        found += [(block.index, each.hazard) for each in analysis.step(block)]
    found += [(0, each.hazard) for each in analysis.finish()]
    assert [hazard for _, hazard in found] == [each.hazard for each in analysis.findings]
    return found


def texts(found: list[Finding]) -> dict[int | None, list[str]]:
    """Texts of findings, in order, by the command buffer of the second access."""
    by_buffer: dict[int | None, list[str]] = defaultdict(list)
    for each in found:
        by_buffer[each.place.command_buffer].append(f"{each.message} {each.place} {each.prior} {each.names}")
    return by_buffer


def hazardous() -> tuple[Stream, int, int, int]:
    """A stream that records a read after a write; its buffers, and the call that reads."""
    stream, one, other = two_buffers()
    stream.begin()
    stream.fill(one, 7)
    return stream, one, other, stream.copy(one, other, 8)


def test_findings_come_with_the_end_of_the_command_buffer() -> None:
    stream, _, other, read = hazardous()
    stream.fill(other, 7)
    end = stream.end()
    expected = ["READ_AFTER_WRITE", "WRITE_AFTER_READ", "WRITE_AFTER_WRITE"]
    assert [hazard for _, hazard in coming(stream.blocks)] == [h for _, h in coming(stream.blocks, eager=True)]
    assert {at for at, _ in coming(stream.blocks)} == {end}
    assert coming(stream.blocks, eager=True)[0] == (read, expected[0])


def test_the_environment_says_so_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, eager in (("1", True), ("0", False), ("", False)):
        monkeypatch.setenv("VKHARNESS_EAGER", value)
        assert Analysis().is_eager is eager
        assert Analysis(eager=not eager).is_eager is not eager


def test_a_submit_judges_what_was_never_ended() -> None:
    stream, *_ = hazardous()
    submit = stream.submit(stream.commands, wait=False)
    assert (submit, "READ_AFTER_WRITE") in coming(stream.blocks)


def test_a_primary_that_executes_a_secondary_judges_it_first() -> None:
    stream, one, other = two_buffers()
    stream.begin(level=1)
    secondary = stream.commands
    stream.begin()
    primary, stream.commands = stream.commands, secondary
    stream.fill(one, 7)
    stream.copy(one, other, 8)
    stream.commands = primary
    execute = stream.cmd("ExecuteCommands", pCommandBuffers=[secondary])
    stream.end()
    assert coming(stream.blocks) == [(execute, "READ_AFTER_WRITE")], "once, though it is executed, too"


@pytest.mark.parametrize("ask", [lambda it: it.findings, lambda it: it.verdict, lambda it: it.unmodelled])
def test_who_asks_gets_what_is_known_so_far(ask: Callable[[Analysis], object]) -> None:
    stream, *_ = hazardous()
    analysis = Analysis()
    for block in stream.blocks:
        assert analysis.step(block) == []
    ask(analysis)
    assert [each.hazard for each in analysis.findings] == ["READ_AFTER_WRITE"]
    stream.end()
    assert [each.hazard for each in analysis.step(stream.blocks[-1])] == ["READ_AFTER_WRITE"], "given once"
    assert analysis.finish() == []


def test_to_ask_does_not_change_the_order_of_findings() -> None:
    stream, *_ = hazardous()
    first = stream.commands
    one, other = stream.buffer(16), stream.buffer(16)
    stream.begin()
    second, stream.commands = stream.commands, first
    stream.fill(one, 7)
    stream.fill(one, 8)
    stream.commands = second
    stream.fill(other, 7)
    stream.fill(other, 8)
    stream.end()
    stream.commands = first
    stream.end()
    asked, quiet = Analysis(), Analysis()
    for block in stream.blocks:
        assert asked.step(block) == quiet.step(block)
        assert len(asked.findings) <= 3
    assert texts(asked.findings) == texts(quiet.findings)
    assert [each.place.command_buffer for each in asked.findings] == [first, second, first]


def test_the_end_of_the_stream_judges_what_was_never_ended() -> None:
    stream, *_ = hazardous()
    assert coming(stream.blocks) == [(0, "READ_AFTER_WRITE")]
    stream.call("vkResetCommandBuffer", commandBuffer=stream.commands, flags=0)
    assert coming(stream.blocks) == [(len(stream.blocks), "READ_AFTER_WRITE")]


def change(stream: Stream, what: str, buffer: int) -> None:
    """Makes findings name a buffer otherwise."""
    if what == "destroyed":
        stream.call("vkDestroyBuffer", device=stream.device, buffer=buffer)
    elif what == "named":
        info = struct("VkDebugUtilsObjectNameInfoEXT", objectType=9, objectHandle=buffer, pObjectName="later")
        stream.call("vkSetDebugUtilsObjectNameEXT", device=stream.device, pNameInfo=info)
    else:
        stream.call("vkBindBufferMemory", device=stream.device, buffer=buffer, memory=stream.memory(), memoryOffset=64)


@pytest.mark.parametrize("what", ["destroyed", "named", "bound"])
def test_findings_name_objects_as_they_were(what: str) -> None:
    stream, one, other, _ = hazardous()
    change(stream, what, one)
    stream.fill(other, 7)
    stream.end()
    found = Analysis().follow(stream.blocks).findings
    assert len(found) > 1
    assert texts(found) == texts(Analysis(eager=True).follow(stream.blocks).findings)


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_traces_have_the_findings_that_they_have_call_by_call(path: Path) -> None:
    blocks = list(read_trace(path))
    late, eager = (Analysis(eager=each).follow(blocks) for each in (False, True))
    assert texts(late.findings) == texts(eager.findings)
    assert (late.verdict, late.unmodelled) == (eager.verdict, eager.unmodelled)


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_a_trace_that_is_followed_has_the_findings_of_its_steps(path: Path) -> None:
    analysis = Analysis()
    for block in read_trace(path):
        analysis.step(block)
    analysis.finish()
    assert texts(Analysis().follow(read_trace(path)).findings) == texts(analysis.findings)


def test_equal_lines_of_a_trace_do_the_same_until_their_buffer_is_another_one(tmp_path: Path) -> None:
    stream, one, other = two_buffers(64)
    stream.begin()
    for turn in range(4):
        if turn:
            stream.call(
                "vkBeginCommandBuffer", commandBuffer=stream.commands, pBeginInfo=struct("VkCommandBufferBeginInfo")
            )
        stream.fill(one, 7)
        if turn == 2:
            stream.call("vkDestroyBuffer", device=stream.device, buffer=other)
        stream.copy(one, other, 8)
        stream.submit()
    save(tmp_path / "trace.jsonl", stream.blocks)
    blocks = list(read_trace(tmp_path / "trace.jsonl"))
    copies = [block.args for block in blocks if isinstance(block, Call) and block.name == "vkCmdCopyBuffer"]
    assert all(each is copies[0] for each in copies)
    steps = Analysis()
    for block in blocks:
        steps.step(block)
    steps.finish()
    assert texts(Analysis().follow(blocks).findings) == texts(steps.findings)
    assert [each.hazard for each in steps.findings] == ["READ_AFTER_WRITE"] * 4
    named = f"vkCmdCopyBuffer (VkBuffer {other}, which no call made, or which is destroyed)"
    assert steps.unmodelled == {named: 2}  # the third and the fourth


def test_commands_without_a_call_are_judged_as_those_with_one() -> None:
    stream, *_ = hazardous()
    stream.cmd("SetLineWidth", lineWidth=1.0)
    stream.cmd("DecodeVideoKHR", pDecodeInfo=struct("VkVideoDecodeInfoKHR"))
    stream.end()
    analysis = Analysis()
    for block in stream.blocks:
        if isinstance(block, Call) and block.name in analysis.recorded_alone:
            analysis.record(block.index, block.name, block.args, block.site)
        else:
            analysis.step(block)
    whole = Analysis().follow(stream.blocks)
    assert texts(analysis.findings) == texts(whole.findings)
    assert analysis.unmodelled == whole.unmodelled != {}
    assert "vkCmdFillBuffer" in analysis.recorded_alone
    assert not Analysis(eager=True).recorded_alone


def test_a_command_that_cannot_be_read_is_not_modelled() -> None:
    stream = two_buffers()[0]
    stream.begin()
    analysis = Analysis()
    for block in stream.blocks:
        analysis.step(block)
    analysis.record(len(stream.blocks) + 1, "vkCmdCopyBuffer", {"commandBuffer": stream.commands}, None)
    what = f"vkCmdCopyBuffer (block {len(stream.blocks) + 1}: KeyError: 'pRegions')"
    assert (analysis.unmodelled, analysis.verdict) == ({what: 1}, "unknown")


def again(stream: Stream) -> None:
    """Begins the same command buffer once more."""
    info = struct("VkCommandBufferBeginInfo")
    stream.call("vkBeginCommandBuffer", commandBuffer=stream.commands, pBeginInfo=info)


def recorded_twice(change: Callable[[Stream, int, int], object]) -> tuple[Listener, Analysis]:
    """A program that records the same twice, with a change between; also as it is judged by calls."""
    stream, one, other = two_buffers()
    stream.begin()
    listener, heard = Listener(), 0
    for round in range(2):
        stream.fill(one, 7)
        stream.barrier()
        stream.copy(one, other, 8)
        stream.copy(one, other, 8)
        stream.end()
        listener.listen(stream.blocks[heard:])
        heard = len(stream.blocks)
        if not round:
            change(stream, one, other)
            again(stream)
    return listener, Analysis().follow(stream.blocks)


def aliased(stream: Stream, one: int) -> None:
    """An image on the memory of a buffer."""
    memory = next(block.args["memory"] for block in stream.blocks if block.name == "vkBindBufferMemory")  # type: ignore[union-attr]
    image = stream.image((4, 4, 1))
    stream.call("vkBindImageMemory", device=stream.device, image=image, memory=memory, memoryOffset=0)


def sparse(stream: Stream) -> None:
    """A buffer whose memory may change at any time."""
    stream.make("vkCreateBuffer", "pBuffer", struct("VkBufferCreateInfo", size=64, flags=1))


def made_anew(stream: Stream, one: int) -> None:
    """Another buffer under the id of an earlier one, as nobody but the author of a trace gives it."""
    change(stream, "destroyed", one)
    info = struct("VkBufferCreateInfo", size=4, usage=BUFFER_USAGE)
    stream.call("vkCreateBuffer", device=stream.device, pCreateInfo=info, pBuffer=one)


CHANGES: dict[str, tuple[int, Callable[[Stream, int, int], object]]] = {
    "nothing": (5, lambda stream, one, other: None),
    "another buffer": (5, lambda stream, one, other: stream.buffer(16)),
    "another buffer goes": (5, lambda stream, one, other: change(stream, "destroyed", stream.buffer(16))),
    "bound": (2, lambda stream, one, other: change(stream, "bound", one)),
    "destroyed": (1, lambda stream, one, other: change(stream, "destroyed", one)),
    "made anew": (2, lambda stream, one, other: made_anew(stream, one)),
    "aliased": (1, lambda stream, one, other: aliased(stream, one)),
    "sparse": (5, lambda stream, one, other: sparse(stream)),
}
"""How many commands are known by what they say, of those that are recorded before and after such a change."""


@pytest.mark.parametrize("what", CHANGES)
def test_what_is_said_again_does_the_same_until_an_object_changes(what: str) -> None:
    known, change = CHANGES[what]
    listener, whole = recorded_twice(change)
    assert texts(listener.analysis.findings) == texts(whole.findings) != {}
    assert listener.known == known
