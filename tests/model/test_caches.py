"""Barriers that name a range in which a write is not available: remarks, not conflicts."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from tests.support.effects import A, B, Effects, access, barrier, ranged
from tests.support.model_streams import FILL, FILL_TO_COPY, READ, Stream
from tests.support.streams import Stream as Trace
from tests.support.streams import struct, two_buffers
from vkharness.agreement import ask_model
from vkharness.check import Analysis
from vkharness.cli.check import check
from vkharness.cli.explain import explain
from vkharness.cli.graph import graph
from vkharness.report.conflicts import missing_text
from vkharness.trace.codec import save
from vkharness.trace.effects import Barrier
from vkharness.verdicts import ModelAnswer

TRANSFER_WRITE, UNIFORM_READ, VERTEX = 0x1000, 0x8, 0x8
COPY_TO_READ = ("COPY/TRANSFER_WRITE", "COPY/TRANSFER_READ")
EXECUTED = ("CLEAR", "COMPUTE_SHADER/SHADER_READ")


def remarks(*steps: Effects) -> list[str]:
    return [each.kind for each in Stream().submit(*steps).judge().remarks]


def test_a_range_is_made_visible_before_it_is_available() -> None:
    """Whatever stage or access the barrier is for."""
    assert remarks(FILL, ranged(*EXECUTED, A)) == ["dirty-invalidate"]
    assert remarks(FILL, FILL_TO_COPY, READ) == []
    assert remarks(FILL, barrier("CLEAR/TRANSFER_WRITE", "BLIT"), ranged("BLIT", "COPY/TRANSFER_READ", A)) == []
    assert remarks(FILL, ranged("CLEAR/TRANSFER_WRITE", "BLIT", A, 0, 32), ranged("BLIT", "COPY/TRANSFER_READ", A)) == [
        "dirty-invalidate"
    ]


def test_a_write_races_with_the_barrier_of_its_range() -> None:
    assert remarks(FILL, ranged(*COPY_TO_READ, B)) == []
    assert remarks(FILL, ranged(*COPY_TO_READ, A, 32, 64)) == ["racing-invalidate"]
    assert remarks(ranged("NONE", "CLEAR/TRANSFER_WRITE", A), FILL) == []


def test_barriers_over_all_memory_name_no_range() -> None:
    assert remarks(FILL, barrier(*COPY_TO_READ)) == []
    assert remarks(FILL, barrier("CLEAR", "COMPUTE_SHADER", "CLEAR", "COMPUTE_SHADER/SHADER_READ")) == []


def test_barriers_of_one_command_stand_together() -> None:
    one, other = barrier("CLEAR/TRANSFER_WRITE", "BLIT/TRANSFER_READ"), ranged(*COPY_TO_READ, A)
    assert remarks(FILL, Barrier(one.globals, ranges=other.ranges)) == []


def test_what_a_later_write_replaced_is_not_looked_at() -> None:
    again = access("COPY_TRANSFER_WRITE")
    assert remarks(FILL, barrier("CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_WRITE"), again, ranged(*COPY_TO_READ, A)) == []


def test_remarks_are_no_conflicts() -> None:
    opinion = Stream().submit(FILL, ranged(*COPY_TO_READ, A), access("COPY_TRANSFER_READ", B)).judge()
    assert opinion.clean
    (remark,) = opinion.remarks
    assert remark.spans == ((0, 64),)
    assert missing_text(remark).startswith("an execution dependency")


def racing(times: int = 1) -> Trace:
    """A barrier of a buffer that does not wait for a fill of the buffer, some submits long."""
    stream, a, _ = two_buffers(64)
    for _ in range(times):
        stream.begin()
        stream.fill(a, 7)
        barrier = struct(
            "VkBufferMemoryBarrier", srcAccessMask=TRANSFER_WRITE, dstAccessMask=UNIFORM_READ, buffer=a, size=64
        )
        stream.cmd("PipelineBarrier", srcStageMask=VERTEX, dstStageMask=VERTEX, pBufferMemoryBarriers=[barrier])
        stream.submit()
    return stream


def test_they_are_advice_that_the_model_alone_finds() -> None:
    analysis = Analysis(keep_events=True).follow(racing().blocks)
    assert ask_model(analysis) is ModelAnswer.AGREES
    (advice,) = analysis.findings
    assert (advice.hazard, advice.advice, advice.judges) == ("barrier-racing-write", True, ("model",))
    assert analysis.verdict == "clean"


def test_each_command_says_them(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    save(trace, racing().blocks)
    checked = CliRunner().invoke(check, [str(trace)])
    assert checked.exit_code == 0 and "advice: barrier-racing-write" in checked.output
    drawn = CliRunner().invoke(graph, [str(trace), "--finding", "1", "-o", str(tmp_path / "order.dot")])
    first, second, *_ = drawn.output.splitlines()
    assert first == "no conflict: clean"
    assert second.startswith("1: racing-invalidate: vkCmdPipelineBarrier (call ") and second.endswith("finding 1")
    assert "missing" in (tmp_path / "order.dot").read_text()
    assert "advice   racing-invalidate" in CliRunner().invoke(explain, [str(trace)]).output
