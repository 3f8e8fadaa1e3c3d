"""Why pairs of accesses are in order: the argument of the model, as data and in words."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.commands.test_debug_info import name, region
from tests.replay.test_witness_presentation import GREEN, RED, Presenter
from tests.support.streams import two_buffers
from vkharness.cli.explain import explain
from vkharness.fuzz import random_text
from vkharness.model import judge_stream_events
from vkharness.model.explanation import PairExplanation, explain_pairs, explain_stream_pairs
from vkharness.model.pairs import Exemption
from vkharness.report.explanations import explanation_text
from vkharness.spans import merge
from vkharness.text_form import stream_text

SPLIT = """
submit q1
    CLEAR_TRANSFER_WRITE a
    barrier CLEAR/TRANSFER_WRITE > COPY
    barrier COPY > COPY/TRANSFER_READ
    COPY_TRANSFER_READ a
"""
OVERWRITTEN = f"{SPLIT}    barrier COPY > CLEAR\n    CLEAR_TRANSFER_WRITE a\n"


def pairs_of(text: str, limit: int = 1000) -> list[PairExplanation]:
    return explain_stream_pairs(stream_text.parse(text), limit)[0]


def call_at(pair: PairExplanation, node: int | None) -> int:
    assert node is not None
    return pair.order.nodes[node].place.call


def test_a_split_barrier_is_available_by_the_first_half_and_visible_by_the_second() -> None:
    (pair,) = pairs_of(SPLIT)
    (passage,) = pair.passages
    assert (call_at(pair, passage.flush), call_at(pair, passage.invalidate)) == (2, 3)
    assert "available by vkCmdbarrier (call 2, submit 5), visible by vkCmdbarrier (call 3, submit 5)" in (
        explanation_text(pair)
    )


def test_parts_of_a_range_pass_by_their_own_barriers() -> None:
    (pair,) = pairs_of(
        "submit q1\n    CLEAR_TRANSFER_WRITE a\n    barrier a[0:32] CLEAR/TRANSFER_WRITE > COPY/TRANSFER_READ\n"
        "    barrier a[32:64] CLEAR/TRANSFER_WRITE > COPY/TRANSFER_READ\n    COPY_TRANSFER_READ a\n"
    )
    assert [(each.spans, call_at(pair, each.flush)) for each in pair.passages] == [(((0, 32),), 2), (((32, 64),), 3)]
    assert "[32, 64): available by vkCmdbarrier (call 3" in explanation_text(pair)


def test_a_flush_makes_a_host_write_available_to_the_host_and_a_submit_to_the_device() -> None:
    (pair,) = pairs_of("host writes n incoherent\nhost flushes n\nsubmit q1\n    COPY_TRANSFER_READ n\n")
    (passage,) = pair.passages
    assert [call_at(pair, each) for each in (passage.flush, passage.taken_on, passage.invalidate)] == [2, 4, 4]
    assert (
        "available to the host by vkFlushMappedMemoryRanges (call 2), to the device by vkQueueSubmit2 (call 4), visible"
    ) in explanation_text(pair)


def test_barriers_take_on_what_was_flushed_after_their_submit_each_in_its_range() -> None:
    (pair,) = pairs_of(
        "semaphore t1 = 0\nsubmit q1 wait t1=1@ALL_COMMANDS\n    barrier n[0:32] HOST/HOST_WRITE > COPY/TRANSFER_READ\n"
        "    barrier n[32:64] HOST/HOST_WRITE > COPY/TRANSFER_READ\n    COPY_TRANSFER_READ n\n"
        "host writes n incoherent\nhost flushes n[0:16]\nhost flushes n[16:64]\nhost signals t1=1\n"
    )
    assert {each.spans: (call_at(pair, each.flush), call_at(pair, each.taken_on)) for each in pair.passages} == {
        ((0, 16),): (6, 1),
        ((16, 32),): (7, 1),
        ((32, 64),): (7, 2),
    }


def test_what_is_visible_to_host_reads_is_available_to_host_writes() -> None:
    (pair,) = pairs_of(
        "submit q1 fence f1\n    CLEAR_TRANSFER_WRITE n\n    barrier CLEAR/TRANSFER_WRITE > HOST/HOST_READ\n"
        "host waits f1\nhost writes n\n"
    )
    assert [(each.spans, call_at(pair, each.flush), call_at(pair, each.invalidate)) for each in pair.passages] == [
        (((0, 64),), 2, 2)
    ]


def test_a_write_after_a_read_needs_order_alone() -> None:
    pair = pairs_of(OVERWRITTEN)[-1]
    assert not pair.prior.write
    assert [edge.rule for edge in pair.path] == [
        "first scope of a barrier",
        "from the first scope to the second",
        "second synchronization scope",
    ]
    assert pair.passages == ()
    assert "vkCmdbarrier (call 5, submit 7): first scope of a barrier, from" in explanation_text(pair)


def test_a_write_after_a_read_that_saw_the_earlier_write() -> None:
    pair = pairs_of(OVERWRITTEN)[1]
    assert (pair.prior.call, pair.current.call) == (1, 6)
    assert [each.reader and each.reader.call for each in pair.passages] == [4]
    assert "ordered after a read that saw the write: vkCmdCOPY_TRANSFER_READ" in explanation_text(pair)


def test_a_pair_without_order_is_a_conflict() -> None:
    (pair,) = pairs_of("submit q1\n    CLEAR_TRANSFER_WRITE a\n    COPY_TRANSFER_READ a\n")
    text = explanation_text(pair)
    assert "CONFLICT unordered" in text
    assert "missing a memory dependency from VK_PIPELINE_STAGE_2_CLEAR_BIT" in text
    assert "ordered vk" not in text


def test_rasterization_order_needs_no_dependency() -> None:
    color = "COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE a color"
    (pair,) = pairs_of(f"submit q1\n    pass 1\n    subpass 0\n    {color}\n    {color}\n    end\n")
    assert pair.exemption is Exemption.RASTERIZATION
    assert "fine    attachment accesses of one subpass" in explanation_text(pair)


def test_the_last_pairs_are_kept_and_two_calls_choose() -> None:
    stream = stream_text.parse(OVERWRITTEN)
    kept, left_out, unmodelled = explain_stream_pairs(stream, 1)
    assert ([each.prior.call for each in kept], left_out, unmodelled) == ([4], 2, {})
    chosen, left_out, _ = explain_stream_pairs(stream, 9, (6, 1))
    assert ([(each.prior.call, each.current.call) for each in chosen], left_out) == ([(1, 6)], 0)


@pytest.mark.parametrize("seed", range(40))
def test_each_pair_that_the_judge_accepts_has_a_whole_argument(seed: int) -> None:
    stream = stream_text.parse(random_text.make(random.Random(seed).choice))
    for pair in explain_stream_pairs(stream, 1000)[0]:
        assert explanation_text(pair)
        if pair.conflict is not None:
            assert pair.conflict in judge_stream_events(stream).everything
        elif pair.exemption is None:
            assert pair.path or pair.loads
            covered = merge([span for each in pair.passages for span in each.spans])
            assert not pair.prior.write or covered == list(pair.spans)


def test_the_command_says_when_there_is_no_pair_and_what_has_no_rule(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    header = {"header": {"source-path": "", "gfxrecon-version": "1"}}
    call = {"index": 1, "function": {"name": "vkQueueSomething", "return": "VK_SUCCESS", "args": {}}}
    trace.write_text(f"{json.dumps(header)}\n{json.dumps(call)}\n")
    result = CliRunner().invoke(explain, [str(trace)])
    assert result.exit_code == 0, result.output
    missing, none = result.output.splitlines()
    assert missing == "not modelled, so pairs may be missing: vkQueueSomething"
    assert none.startswith("no pair of accesses")


def test_names_and_labels_are_in_the_words() -> None:
    stream, a, b = two_buffers(256)
    name(stream, a, "particles")
    stream.begin()
    with region(stream, "upload"):
        stream.fill(a, 7)
        stream.copy(a, b, 256)
    stream.submit()
    (pair,), _, _ = explain_pairs(stream.blocks, 10)
    text = explanation_text(pair).splitlines()
    assert text[0] == f'VkBuffer {a} "particles" [0, 256)'
    assert text[1].startswith('  first   vkCmdFillBuffer SYNC_CLEAR_TRANSFER_WRITE in "upload" (call')


def test_frames_are_in_the_words() -> None:
    presenter = Presenter()
    for colour in (RED, GREEN):
        presenter.frame(colour)
    pairs, _, _ = explain_pairs(presenter.blocks, 100)
    text = "\n".join(map(explanation_text, pairs))
    assert re.search(r"  first   vkQueuePresentKHR .*, frame 1\)", text)
    assert re.search(r"  then    vkCmdPipelineBarrier .*, frame 2\)", text)
