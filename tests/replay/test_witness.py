"""Witnesses on real software drivers: the outcome that a missing dependency allows ends in the bytes it must end in."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.drivers_here import on_each_driver
from tests.support.streams import Stream, hazard, two_buffers, words
from vkharness.findings import UserError
from vkharness.replay.outcomes.jobs import WitnessResult, finding_from_dict, run_witness
from vkharness.trace.calls import UNSEEN_WRITES, Call
from vkharness.trace.first_bytes import pattern_of

pytestmark = on_each_driver
RAW, WAR, WAW = "READ_AFTER_WRITE", "WRITE_AFTER_READ", "WRITE_AFTER_WRITE"


def stale(buffer: int) -> int:
    """The word that a buffer holds before anything writes it."""
    return int.from_bytes(bytes([pattern_of(buffer)]) * 4, "little")


def expected_words(result: WitnessResult, buffer: int) -> list[int]:
    return [int(word) for word in result.expected.surfaces[buffer, None].data.view(np.uint32)]


def observed_words(result: WitnessResult, buffer: int) -> list[int]:
    assert result.observed is not None
    return [int(word) for word in result.observed.surfaces[buffer, None].data.view(np.uint32)]


class TestReadAfterWrite:
    def test_a_copy_reads_what_was_there_before_the_fill(self, driver: str) -> None:
        stream, a, b = two_buffers()
        stream.begin()
        prior = stream.fill(a, 7)
        current = stream.copy(a, b, 16)
        submit = stream.submit()
        result = run_witness(stream.blocks, hazard(stream, RAW, prior, current, a, ((0, 16),)), driver)
        assert result.shown and result.reason == "" and result.moment == "at the end"
        assert observed_words(result, a) == expected_words(result, a) == [7] * 4
        assert expected_words(result, b) == [7] * 4
        assert observed_words(result, b) == [stale(a)] * 4
        assert result.outcome_id == f"witness:{RAW}:{submit}/0.0/{prior}->{submit}/0.0/{current}"
        assert [(item.resource, item.count, item.first) for item in result.differences] == [(b, 4, (0,))]

    def test_only_the_range_of_the_finding_is_stale(self, driver: str) -> None:
        stream, a, b = two_buffers()
        stream.begin()
        prior = stream.fill(a, 7)
        current = stream.copy(a, b, 16)
        stream.submit()
        result = run_witness(stream.blocks, hazard(stream, RAW, prior, current, a, ((4, 8),)), driver)
        assert observed_words(result, b) == [7, stale(a), stale(a), 7]

    def test_between_submits(self, driver: str) -> None:
        stream, a, b = two_buffers()
        stream.begin()
        prior = stream.fill(a, 7)
        stream.submit()
        stream.begin()
        current = stream.copy(a, b, 16)
        stream.submit()
        result = run_witness(stream.blocks, hazard(stream, RAW, prior, current, a, ((0, 16),)), driver)
        assert observed_words(result, b) == [stale(a)] * 4

    def test_a_dispatch_keeps_what_it_wrote_over_what_it_read(self, driver: str) -> None:
        """scale_words reads and writes each word: from the stale value here, and its writes must stay."""
        stream = Stream()
        a = stream.buffer(16)
        double = stream.compute("scale_words", [a], words(2))
        stream.begin()
        stream.fill(a, 5)
        stream.barrier()
        prior = stream.fill(a, 7)
        current = double.run()
        stream.submit()
        result = run_witness(stream.blocks, hazard(stream, RAW, prior, current, a, ((0, 16),)), driver)
        assert expected_words(result, a) == [14] * 4
        assert observed_words(result, a) == [10] * 4

    def test_a_write_of_the_stale_value_is_still_a_write(self, driver: str) -> None:
        """The dispatch writes the very word that was there before the fill: put-back must not undo it."""
        stream, a, b = two_buffers()
        same = stream.compute("fill_words", [a], words(9))
        stream.begin()
        stream.fill(a, 9)
        stream.barrier()
        prior = stream.fill(a, 7)
        current = same.run()
        stream.barrier()
        stream.copy(a, b, 16)
        stream.submit()
        result = run_witness(stream.blocks, hazard(stream, RAW, prior, current, a, ((0, 16),)), driver)
        assert not result.shown
        assert "no outcome" in result.reason

    def test_state_set_before_a_cut_is_set_again(self, driver: str) -> None:
        """The dispatch after the probe needs the pipeline, the descriptors and the constants bound before it."""
        stream, a, b = two_buffers()
        copy = stream.compute("copy_words", [a, b])
        stream.begin()
        first = copy.run()
        stream.barrier()
        prior = stream.fill(a, 7)
        current = stream.cmd("Dispatch", groupCountX=1, groupCountY=1, groupCountZ=1)
        stream.submit()
        result = run_witness(stream.blocks, hazard(stream, RAW, prior, current, a, ((0, 16),)), driver)
        assert first < current
        assert expected_words(result, b) == [7] * 4
        assert observed_words(result, b) == [stale(a)] * 4

    def test_a_result_that_is_overwritten_later_is_shown_at_the_command(self, driver: str) -> None:
        stream, a, b = two_buffers()
        stream.begin()
        prior = stream.fill(a, 7)
        current = stream.copy(a, b, 16)
        stream.barrier()
        stream.fill(b, 1)
        stream.submit()
        result = run_witness(stream.blocks, hazard(stream, RAW, prior, current, a, ((0, 16),)), driver)
        assert result.shown
        assert result.moment == f"after block {current}"
        assert observed_words(result, b) == [stale(a)] * 4

    def test_equal_bytes_are_benign_here(self, driver: str) -> None:
        stream, a, b = two_buffers()
        stream.begin()
        stream.fill(a, 7)
        stream.barrier()
        prior = stream.fill(a, 7)
        current = stream.copy(a, b, 16)
        stream.submit()
        result = run_witness(stream.blocks, hazard(stream, RAW, prior, current, a, ((0, 16),)), driver)
        assert not result.shown and result.differences == []
        assert result.reason.endswith("changes what is observed: the write leaves the bytes that were there")
        assert result.tried == [result.outcome_id]


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("WRITE_RACING_READ", "the write leaves the bytes that are read"),
        ("WRITE_RACING_WRITE", "both writes leave the same bytes"),
    ],
)
def test_a_race_that_changes_no_byte_says_why(driver: str, kind: str, why: str) -> None:
    stream, a, b = two_buffers()
    stream.begin()
    prior = stream.copy(a, b, 16) if kind.endswith("READ") else stream.fill(a, stale(a))
    current = stream.fill(a, stale(a))
    stream.submit()
    result = run_witness(stream.blocks, hazard(stream, kind, prior, current, a, ((0, 16),)), driver)
    assert not result.shown
    assert result.reason == f"no outcome that the hazard allows changes what is observed: {why}"


def test_where_the_host_is_not_seen_the_bytes_give_no_reason(driver: str) -> None:
    stream, a, _ = two_buffers()
    memory = stream.memory(16)
    mapped = {"device": stream.device, "memory": memory, "offset": 0, "size": 16, "flags": 0, "ppData": 1}
    stream.blocks.append(Call(len(stream.blocks) + 1, "vkMapMemory", {**mapped, UNSEEN_WRITES: 1}, 0))
    stream.begin()
    prior, current = stream.fill(a, stale(a)), stream.fill(a, stale(a))
    stream.submit()
    result = run_witness(stream.blocks, hazard(stream, "WRITE_RACING_WRITE", prior, current, a, ((0, 16),)), driver)
    assert not result.shown
    assert result.reason.endswith("is observed, without what the host wrote to mapped memory: a dump lacks it")


class TestWriteAfterRead:
    def test_a_copy_reads_what_the_later_fill_writes(self, driver: str) -> None:
        stream, a, b = two_buffers()
        stream.begin()
        prior = stream.copy(a, b, 16)
        current = stream.fill(a, 7, offset=4, size=8)
        stream.submit()
        result = run_witness(stream.blocks, hazard(stream, WAR, prior, current, a, ((4, 8),)), driver)
        assert result.shown
        assert expected_words(result, b) == [stale(a)] * 4
        assert observed_words(result, b) == [stale(a), 7, 7, stale(a)]
        assert observed_words(result, a) == expected_words(result, a)

    def test_a_dispatch_that_reads_and_writes_keeps_its_writes(self, driver: str) -> None:
        stream, a, b = two_buffers()
        double = stream.compute("scale_words", [a], words(2))
        stream.begin()
        stream.fill(a, 5)
        stream.barrier()
        prior = double.run()
        stream.barrier()
        stream.copy(a, b, 16)
        stream.barrier()
        current = stream.fill(a, 7)
        stream.submit()
        result = run_witness(stream.blocks, hazard(stream, WAR, prior, current, a, ((0, 16),)), driver)
        assert observed_words(result, b) == [14] * 4
        assert observed_words(result, a) == [7] * 4

    def test_the_host_writes_what_a_pending_copy_reads(self, driver: str) -> None:
        stream = Stream()
        memory = stream.memory(16)
        a, b = stream.buffer(16, memory), stream.buffer(16)
        stream.host_write(memory, 0, words(1, 2, 3, 4))
        stream.begin()
        prior = stream.copy(a, b, 16)
        stream.submit()
        current = stream.host_write(memory, 4, words(9))
        result = run_witness(stream.blocks, hazard(stream, WAR, prior, current, a, ((4, 4),)), driver)
        assert expected_words(result, b) == [1, 2, 3, 4]
        assert observed_words(result, b) == [1, 9, 3, 4]
        assert observed_words(result, a) == [1, 9, 3, 4]

    def test_ranges_of_a_memory_object(self, driver: str) -> None:
        """A host hazard names the memory; its bytes are those of the buffer bound there."""
        stream = Stream()
        memory = stream.memory(512)
        a, b = stream.buffer(16, memory, offset=256), stream.buffer(16)
        stream.host_write(memory, 256, words(1, 2, 3, 4))
        stream.begin()
        prior = stream.copy(a, b, 16)
        stream.submit()
        current = stream.host_write(memory, 260, words(9))
        result = run_witness(stream.blocks, hazard(stream, WAR, prior, current, memory, ((260, 4),)), driver)
        assert observed_words(result, b) == [1, 9, 3, 4]


class TestWriteAfterWrite:
    def test_the_first_write_lands_last(self, driver: str) -> None:
        stream = Stream()
        a = stream.buffer(16)
        stream.begin()
        prior = stream.fill(a, 1, size=8)
        current = stream.fill(a, 2)
        stream.submit()
        result = run_witness(stream.blocks, hazard(stream, WAW, prior, current, a, ((0, 8),)), driver)
        assert expected_words(result, a) == [2] * 4
        assert observed_words(result, a) == [1, 1, 2, 2]

    def test_words_that_a_dispatch_did_not_write_stay(self, driver: str) -> None:
        """The finding covers the whole binding, but the shader writes only the words below a bound."""
        stream = Stream()
        a = stream.buffer(16)
        fill = stream.compute("fill_words", [a], words(100))
        stream.begin()
        stream.fill(a, 100, size=4)
        stream.barrier()
        prior = fill.run()
        stream.barrier()
        stream.fill(a, 50, offset=12, size=4)
        stream.barrier()
        current = stream.fill(a, 2)
        stream.submit()
        result = run_witness(stream.blocks, hazard(stream, WAW, prior, current, a, ((0, 16),)), driver)
        # Word 0 already held what the dispatch writes there: nothing says that it wrote, so it is left alone.
        assert observed_words(result, a) == [2, 101, 102, 103]

    def test_racing_names_mean_the_same_outcomes(self, driver: str) -> None:
        stream = Stream()
        a = stream.buffer(16)
        stream.begin()
        prior = stream.fill(a, 1)
        stream.submit()
        stream.begin()
        current = stream.fill(a, 2)
        stream.submit()
        found = hazard(stream, "WRITE_RACING_WRITE", prior, current, a, ((0, 16),))
        assert observed_words(run_witness(stream.blocks, found, driver), a) == [1] * 4


def test_executions_of_one_command_buffer_are_told_apart(driver: str) -> None:
    stream, a, b = two_buffers()
    double = stream.compute("scale_words", [a], words(2))
    stream.begin()
    stream.fill(a, 3)
    stream.submit()
    again = stream.begin()
    index = double.run()
    stream.end()
    submits = [stream.submit(again), stream.submit(again)]
    stream.begin()
    stream.copy(a, b, 16)
    stream.submit()
    finding = hazard(stream, RAW, index, index, a, ((0, 16),)).to_dict()
    finding.update(prior_submit=submits[0], submit=submits[1])
    result = run_witness(stream.blocks, finding_from_dict(finding), driver)
    assert expected_words(result, b) == [12] * 4
    assert observed_words(result, b) == [6] * 4
    assert result.outcome_id == f"witness:{RAW}:{submits[0]}/0.0/{index}->{submits[1]}/0.0/{index}"


def test_what_cannot_be_witnessed_says_why(driver: str) -> None:
    stream, a, b = two_buffers()
    stream.begin()
    prior, current = stream.fill(a, 7), stream.copy(a, b, 16)
    unused = stream.fill(b, 1)
    stream.end()
    finding = hazard(stream, RAW, prior, current, a)
    assert "never executes call" in run_witness(stream.blocks, finding, driver).reason
    stream.submit(stream.commands)
    backwards = run_witness(stream.blocks, hazard(stream, RAW, unused, prior, a), driver)
    assert not backwards.shown and "does not come before" in backwards.reason
    present = run_witness(stream.blocks, hazard(stream, "READ_AFTER_PRESENT", prior, current, a), driver)
    assert present.reason.startswith("both accesses only read")
    event = run_witness(stream.blocks, hazard(stream, "vkCmdWaitEvents-reset-race", prior, current, a), driver)
    assert event.reason == "no witness is defined for vkCmdWaitEvents-reset-race"


def test_a_finding_outside_the_trace_is_one_line(driver: str) -> None:
    stream, a, b = two_buffers()
    stream.begin()
    prior, current = stream.fill(a, 7), stream.copy(a, b, 16)
    stream.submit()
    with pytest.raises(UserError, match="resource 99, which is no bound buffer or image"):
        run_witness(stream.blocks, hazard(stream, RAW, prior, current, 99), driver)
    with pytest.raises(UserError, match="lie outside every buffer"):
        run_witness(stream.blocks, hazard(stream, RAW, prior, current, a, ((16, 4),)), driver)
    with pytest.raises(UserError, match="the finding is malformed"):
        finding_from_dict({"hazard": RAW})
