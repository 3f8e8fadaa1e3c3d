"""The host beside the device over plain stream events: what it may write, what it sees, flushes and invalidates."""

from __future__ import annotations

import pytest

from tests.support.effects import (
    ALL_FLAGS,
    IMAGE,
    READ_A,
    WRITE_A,
    WRITE_B,
    A,
    B,
    access,
    at,
    barrier,
    commands,
    dependency,
)
from tests.support.judged import Device, kinds
from vkharness.findings import Finding, Hazard, HostStep
from vkharness.layer.silence import reason_for_silence
from vkharness.layer.stream import Stream
from vkharness.report.sentences import explain
from vkharness.trace import effects, host_effects

TO_HOST = barrier("COPY/TRANSFER_WRITE", "HOST/HOST_READ")
RAW, WAR, WAW = "READ_AFTER_WRITE", "WRITE_AFTER_READ", "WRITE_AFTER_WRITE"
LOST = Hazard.UNFLUSHED_WRITE
ATOM = 64


class Machine(Device):
    """A device with a host whose memory is coherent or not."""

    def __init__(self, coherent: bool = True, non_coherent_atom_size: int = 1) -> None:
        super().__init__()
        self.coherent, self.non_coherent_atom_size = coherent, non_coherent_atom_size

    def findings_of_read(self, begin: int = 0, end: int = 64, memory: int = A) -> list[Finding]:
        read = host_effects.HostDeclaredRead(
            next(self.calls),
            None,
            memory,
            (begin, end),
            coherent=self.coherent,
            non_coherent_atom_size=self.non_coherent_atom_size,
        )
        return self.validator.consume(read)

    def reads(self, begin: int = 0, end: int = 64, memory: int = A) -> list[str]:
        return kinds(self.findings_of_read(begin, end, memory))

    def findings_of_write(self, begin: int = 0, end: int = 64) -> list[Finding]:
        wrote = host_effects.HostWrote(
            next(self.calls),
            None,
            A,
            (begin, end),
            coherent=self.coherent,
            non_coherent_atom_size=self.non_coherent_atom_size,
        )
        return self.validator.consume(wrote)

    def writes(self, begin: int = 0, end: int = 64) -> list[str]:
        return kinds(self.findings_of_write(begin, end))

    def flushes(self, begin: int = 0, end: int = 64) -> None:
        assert self.validator.consume(host_effects.HostFlushed(next(self.calls), None, A, (begin, end))) == []

    def invalidates(self, begin: int = 0, end: int = 64) -> list[str]:
        return self.take(host_effects.HostInvalidated(next(self.calls), None, A, (begin, end)))

    def waits(self, fence: int = 0, queue: int = 0) -> None:
        assert self.validator.consume(effects.HostWaited(fences=(fence,) if fence else (), queue=queue)) == []


def test_a_read_needs_a_dependency_to_the_host_and_a_wait() -> None:
    machine = Machine()
    machine.finish(1, WRITE_A, TO_HOST)
    assert machine.reads() == []


@pytest.mark.parametrize(
    "between",
    [
        (),
        (barrier("COPY/TRANSFER_WRITE", "COPY/TRANSFER_READ"),),
        (barrier("COPY/TRANSFER_WRITE", "ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE"),),
        (barrier("COPY/TRANSFER_WRITE", "HOST/HOST_WRITE"),),
        (barrier("COPY", "HOST/HOST_READ"),),
        (barrier("COMPUTE_SHADER/SHADER_WRITE", "HOST/HOST_READ"),),
        (barrier("COPY/TRANSFER_WRITE", "COMPUTE_SHADER/SHADER_READ"), barrier("COPY", "HOST/HOST_READ")),
    ],
)
def test_a_wait_alone_makes_nothing_visible_to_the_host(between: tuple[effects.Effect, ...]) -> None:
    machine = Machine()
    machine.finish(1, WRITE_A, *between)
    (finding,) = machine.findings_of_read()
    assert (finding.hazard, finding.access, finding.prior_access) == (
        RAW,
        "SYNC_HOST_HOST_READ",
        "SYNC_COPY_TRANSFER_WRITE",
    )
    assert "HOST_BIT/VK_ACCESS_2_HOST_READ_BIT" in explain(finding).missing
    assert reason_for_silence(finding, Stream([])).startswith("host accesses")


@pytest.mark.parametrize(
    "between",
    [
        (barrier("ALL_COMMANDS/MEMORY_WRITE", "HOST/MEMORY_READ"),),
        (barrier("COPY/TRANSFER_WRITE", "COMPUTE_SHADER/SHADER_READ"), barrier("COMPUTE_SHADER", "HOST/HOST_READ")),
        (barrier("COPY/TRANSFER_WRITE", "COPY"), barrier("COPY", "HOST/HOST_READ")),
    ],
)
def test_dependencies_to_the_host_chain_like_others(between: tuple[effects.Effect, ...]) -> None:
    machine = Machine()
    machine.finish(1, WRITE_A, *between)
    assert machine.reads() == []


def test_a_read_before_the_wait_is_a_hazard_whatever_the_barriers() -> None:
    machine = Machine()
    machine.submit(1, WRITE_A, TO_HOST)
    (finding,) = machine.findings_of_read()
    assert finding.hazard == RAW
    assert explain(finding).missing.startswith("a wait of the host")


def test_the_wait_must_cover_the_dependency_too() -> None:
    machine = Machine()
    machine.submit(1, WRITE_A, fence=5)
    machine.submit(1, TO_HOST, fence=6)
    machine.waits(5)
    assert machine.reads() == [RAW]
    machine = Machine()
    machine.submit(1, WRITE_A, fence=5)
    machine.submit(1, TO_HOST, fence=6)
    machine.waits(5)
    machine.waits(6)
    assert machine.reads() == []


def test_frames_in_flight_each_with_its_fence() -> None:
    """The usual ring: the wait for one frame says nothing of the next, whose dependency is pending."""
    machine = Machine()
    machine.submit(1, WRITE_A, TO_HOST, fence=5)
    machine.submit(1, WRITE_B, TO_HOST, fence=6)
    machine.waits(5)
    assert machine.reads(memory=A) == []
    assert machine.reads(memory=B) == [RAW]
    machine.waits(6)
    assert machine.reads(memory=B) == []


def test_a_dependency_may_come_after_the_wait_for_the_write() -> None:
    machine = Machine()
    machine.finish(1, WRITE_A, fence=5)
    machine.finish(1, READ_A, TO_HOST, fence=6)
    assert machine.reads() == []


@pytest.mark.parametrize("queue", [1, 2])
@pytest.mark.parametrize("touched", [False, True])
@pytest.mark.parametrize(
    ("source", "seen"),
    [("COPY", True), ("COMPUTE_SHADER/SHADER_READ", True), ("TOP_OF_PIPE", True), ("HOST", True), ("NONE", True)],
)
def test_what_was_waited_for_comes_before_any_later_dependency(
    source: str, seen: bool, touched: bool, queue: int
) -> None:
    """The fence made it available, and the submit comes after it: the first scope need not hold it once more."""
    machine = Machine()
    machine.finish(1, WRITE_A, fence=5)
    if touched:
        machine.submit(1, READ_A, fence=7)
    machine.finish(queue, barrier(source, "HOST/HOST_READ"), fence=6)
    assert machine.reads() == ([] if seen else [RAW])


def test_only_what_was_complete_by_then() -> None:
    machine = Machine()
    machine.finish(1, WRITE_A, fence=5)
    machine.finish(1, WRITE_B, barrier("COMPUTE_SHADER", "HOST/HOST_READ"))
    assert machine.reads(memory=A) == []
    assert machine.reads(memory=B) == [RAW]


def test_a_dependency_over_some_bytes_shows_what_is_available() -> None:
    """Rule: rules.md#a-dependency-to-the-host-is-about-all-memory."""
    machine = Machine()
    machine.finish(1, WRITE_A)
    part = effects.RangeBarrier(dependency("COMPUTE_SHADER", "HOST/HOST_READ"), A, ((0, 32),), A)
    machine.finish(1, effects.Barrier((), ranges=(part,)))
    assert machine.reads(0, 64) == []


def test_a_dependency_over_some_bytes_makes_no_others_available() -> None:
    machine = Machine()
    part = effects.RangeBarrier(dependency("COPY/TRANSFER_WRITE", "HOST/HOST_READ"), A, ((0, 32),), A)
    machine.finish(1, WRITE_A, effects.Barrier((), ranges=(part,)))
    assert machine.reads(0, 32) == []
    assert machine.reads(32, 64) == [RAW]


def test_reads_of_the_device_do_not_hide_what_the_host_cannot_see() -> None:
    machine = Machine()
    machine.finish(1, WRITE_A, fence=5)
    machine.finish(1, READ_A, fence=6)
    assert machine.reads() == [RAW]


def test_a_later_write_needs_a_dependency_of_its_own() -> None:
    machine = Machine()
    machine.finish(1, WRITE_A, TO_HOST, barrier("COPY/TRANSFER_WRITE", "COPY/TRANSFER_WRITE"), WRITE_A)
    assert machine.reads() == [RAW]


def test_each_byte_counts_and_is_reported_once() -> None:
    machine = Machine()
    machine.finish(1, access("COPY_TRANSFER_WRITE", A, 0, 32), TO_HOST, access("COPY_TRANSFER_WRITE", A, 48, 64))
    assert machine.reads(0, 48) == []
    (finding,) = machine.findings_of_read(40, 64)
    assert finding.ranges == ((48, 64),)  # spans, as this device describes them
    assert machine.reads() == []


def test_another_queue_may_hold_the_dependency() -> None:
    machine = Machine()
    machine.submit(1, WRITE_A, signals=at(7))
    machine.finish(2, barrier("ALL_COMMANDS/MEMORY_WRITE", "HOST/HOST_READ"), waits=at(7), fence=5)
    assert machine.reads() == []


def test_a_render_pass_may_end_with_the_dependency() -> None:
    machine = Machine()
    begin, end = (
        effects.PassBegin(1, (effects.SubpassDependency(0, effects.EXTERNAL, TO_HOST.globals[0]),)),
        effects.PassEnd(),
    )
    machine.finish(1, begin, effects.SubpassBegin(0), WRITE_A, end, fence=5)
    assert machine.reads() == []


def test_a_wait_for_an_event_may_be_the_dependency() -> None:
    machine = Machine()
    machine.finish(
        1, WRITE_A, effects.SetEvent(9, TO_HOST, sync2=True), READ_A, effects.WaitEvents((9,), (TO_HOST,), sync2=True)
    )
    assert machine.reads() == []


def test_timelines_and_status_are_waits_like_others() -> None:
    machine = Machine()
    machine.validator.consume(effects.SemaphoreCreated(7, 0))
    machine.submit(1, WRITE_A, TO_HOST, signals=at(7, value=3))
    machine.validator.consume(host_effects.HostWaitedSemaphores(((7, 2),)))
    machine.validator.consume(host_effects.HostWaitedSemaphores(((7, 3),)))
    assert machine.reads() == []


def test_a_fence_that_was_reset_says_nothing() -> None:
    machine = Machine()
    machine.submit(1, WRITE_A, TO_HOST, fence=5)
    machine.validator.consume(effects.FenceReset((5,)))
    machine.waits(5)
    assert machine.reads() == [RAW]


def test_what_the_host_wrote_itself_it_sees() -> None:
    machine = Machine()
    machine.finish(1, WRITE_A)
    assert machine.writes(0, 32) == [WAW]
    (finding,) = machine.findings_of_read()
    assert finding.ranges == ((32, 64),)


def test_what_the_host_may_not_write() -> None:
    machine = Machine()
    machine.submit(1, READ_A, fence=5)
    assert machine.writes() == [WAR]
    machine.waits(5)
    assert machine.writes() == []
    machine.submit(1, WRITE_A, fence=6)
    assert machine.writes() == [WAW]
    machine.waits(6)
    (finding,) = machine.findings_of_write()
    assert finding.gap is HostStep.DEPENDENCY_TO_WRITE


@pytest.mark.parametrize(
    ("target", "met"),
    [("HOST/HOST_WRITE", []), ("HOST/HOST_READ", []), ("HOST", [WAW]), ("ALL_COMMANDS/MEMORY_WRITE", [WAW])],
)
@pytest.mark.parametrize("late", [False, True])
def test_a_dependency_brings_a_write_into_the_domain_of_the_host(target: str, met: list[str], late: bool) -> None:
    machine = Machine()
    made_available = barrier("ALL_COMMANDS/MEMORY_WRITE", target)
    if late:
        machine.finish(1, WRITE_A)
        machine.finish(1, made_available)
    else:
        machine.finish(1, WRITE_A, made_available)
    assert machine.writes() == met


def test_host_reads_bother_no_later_work() -> None:
    machine = Machine()
    assert machine.reads() == []
    assert machine.submit(1, WRITE_A) == []


def test_a_submit_makes_coherent_writes_visible_to_every_queue() -> None:
    machine = Machine()
    machine.writes()
    assert machine.submit(1, READ_A) == []
    machine = Machine()
    machine.submit(2, WRITE_B)
    machine.writes()
    assert machine.submit(1, READ_A, WRITE_B) == ["WRITE_RACING_WRITE"]  # of B alone


def test_writes_that_were_not_flushed_are_not_seen() -> None:
    machine = Machine(coherent=False)
    assert machine.writes() == []
    assert machine.submit(1, barrier("HOST/HOST_WRITE", "COPY/TRANSFER_READ"), READ_A) == [RAW]
    machine = Machine(coherent=False)
    machine.writes()
    machine.flushes()
    assert machine.submit(1, READ_A) == []


def test_a_flush_after_the_submit_is_too_late() -> None:
    machine = Machine(coherent=False)
    machine.writes()
    assert machine.submit(1, READ_A) == [RAW]
    machine.flushes()
    assert machine.submit(1, READ_A) == []


def test_each_byte_must_be_flushed() -> None:
    machine = Machine(coherent=False)
    machine.writes()
    machine.flushes(0, 32)
    assert machine.submit(1, access("COPY_TRANSFER_READ", A, 0, 32)) == []
    assert machine.submit(1, READ_A) == [RAW]


def test_the_device_must_not_write_over_what_was_not_flushed() -> None:
    machine = Machine(coherent=False)
    machine.writes()
    assert machine.submit(1, WRITE_A) == [WAW]


def test_unflushed_writes_race_with_no_queue() -> None:
    machine = Machine(coherent=False)
    machine.submit(2, WRITE_B)
    machine.writes()
    assert machine.submit(1, READ_A) == [RAW]


def test_unflushed_writes_say_what_is_missing() -> None:
    machine = Machine(coherent=False)
    machine.writes()
    batch = effects.Submission(0, ((1000, commands(machine.calls, READ_A)),))
    (finding,) = machine.validator.consume(effects.Submitted(99, "vkQueueSubmit", None, 1, ALL_FLAGS, (batch,), 0))
    assert (finding.prior.command, finding.prior_access) == ("host write", "SYNC_HOST_HOST_WRITE")
    assert "vkFlushMappedMemoryRanges" in explain(finding).missing
    assert reason_for_silence(finding, Stream([]))


def test_an_invalidate_after_the_wait_is_needed() -> None:
    machine = Machine(coherent=False)
    machine.finish(1, WRITE_A, TO_HOST)
    assert machine.invalidates(0, 32) == []
    (finding,) = machine.findings_of_read()
    assert (finding.hazard, finding.ranges) == (RAW, ((32, 64),))
    assert explain(finding).missing.startswith("vkInvalidateMappedMemoryRanges")


def test_an_invalidate_before_the_wait_does_nothing() -> None:
    machine = Machine(coherent=False)
    machine.submit(1, WRITE_A, TO_HOST)
    machine.invalidates()
    machine.waits()
    assert machine.reads() == [RAW]


def test_an_invalidate_is_no_dependency() -> None:
    machine = Machine(coherent=False)
    machine.finish(1, WRITE_A)
    machine.invalidates()
    assert machine.reads() == [RAW]


def test_an_invalidate_loses_what_was_not_flushed() -> None:
    machine = Machine(coherent=False)
    machine.writes(16, 32)
    (finding,) = machine.validator.consume(host_effects.HostInvalidated(9, None, A, (0, 64)))
    assert (finding.hazard, finding.vuid, finding.ranges) == (LOST, f"SYNC-{LOST}", ((16, 16),))
    assert machine.invalidates() == []
    machine.writes(16, 32)
    machine.flushes()
    assert machine.invalidates() == []


def test_atoms_of_non_coherent_memory() -> None:
    """Device work on the same atom is as near as work on the same byte; what is only beside the read may be unseen."""
    machine = Machine(coherent=False, non_coherent_atom_size=ATOM)
    machine.submit(1, access("COPY_TRANSFER_READ", A, 32, 48), fence=5)
    assert machine.writes(0, 16) == [WAR]
    machine = Machine(coherent=False, non_coherent_atom_size=ATOM)
    machine.submit(1, access("COPY_TRANSFER_WRITE", A, 32, 48), fence=5)
    assert machine.reads(0, 16) == [RAW]
    machine.waits(5)
    assert machine.reads(0, 16) == []
    machine = Machine(non_coherent_atom_size=1)
    machine.submit(1, access("COPY_TRANSFER_READ", A, 32, 48))
    assert machine.writes(0, 16) == []


def test_what_the_host_waited_for_is_forgotten_once_it_is_seen() -> None:
    machine = Machine()
    for number in range(3000):
        machine.finish(1, access("COPY_TRANSFER_WRITE", A, 4 * number, 4 * number + 4), TO_HOST)
    assert machine.validator._context.ranges <= 1024
    machine = Machine()
    for number in range(1500):
        machine.finish(1, access("COPY_TRANSFER_WRITE", A, 4 * number, 4 * number + 4))
    assert machine.reads(0, 4) == [RAW]


def test_memory_that_the_host_cannot_map_is_forgotten() -> None:
    machine = Machine()
    machine.validator._context.must_remember = lambda write, state: False
    for number in range(3000):
        machine.finish(1, access("COPY_TRANSFER_WRITE", A, 4 * number, 4 * number + 4))
    assert machine.validator._context.ranges <= 1024


def host_copy(machine: Machine, write: bool) -> list[Finding]:
    """A copy of IMAGE by the host: from it, or to it."""
    name = "vkCopyMemoryToImageEXT" if write else "vkCopyImageToMemoryEXT"
    return machine.validator.consume(
        host_effects.HostAccess(next(machine.calls), name, None, IMAGE, ((0, 64),), IMAGE, write=write)
    )


CLEAR_IMAGE = access("CLEAR_TRANSFER_WRITE", IMAGE)


@pytest.mark.parametrize(
    ("source", "seen"), [("CLEAR/TRANSFER_WRITE", True), ("COPY/TRANSFER_WRITE", False), ("CLEAR", False)]
)
def test_copies_by_the_host_see_what_other_reads_of_it_see(source: str, seen: bool) -> None:
    machine = Machine()
    machine.submit(1, CLEAR_IMAGE, barrier(source, "HOST/HOST_READ"))
    assert kinds(host_copy(machine, False)) == [RAW]
    machine.waits()
    assert kinds(host_copy(machine, False)) == ([] if seen else [RAW])


@pytest.mark.parametrize("target", ["HOST/HOST_READ", "HOST/MEMORY_READ|MEMORY_WRITE", "HOST", "COPY/TRANSFER_READ"])
def test_a_transition_may_be_for_the_host(target: str) -> None:
    machine = Machine()
    moved = effects.RangeBarrier(dependency("CLEAR/TRANSFER_WRITE", target), IMAGE, ((0, 64),), IMAGE, transition=True)
    machine.finish(1, CLEAR_IMAGE, effects.Barrier((), ranges=(moved,)))
    found = host_copy(machine, False)
    assert kinds(found) == ([] if "READ" in target and "HOST" in target else [RAW])
    assert all(finding.prior_access == "SYNC_IMAGE_LAYOUT_TRANSITION" for finding in found)


def test_the_host_sees_what_it_copied_itself() -> None:
    machine = Machine()
    machine.finish(1, CLEAR_IMAGE, barrier("CLEAR/TRANSFER_WRITE", "HOST/HOST_WRITE"))
    assert host_copy(machine, True) == []
    assert host_copy(machine, False) == []


def test_a_submit_that_waits_sees_nothing_that_the_host_wrote_after_it() -> None:
    """The signal of the host makes nothing available, but a submit in between does."""
    machine = Machine()
    machine.validator.consume(effects.SemaphoreCreated(7, 0))
    assert machine.submit(1, READ_A, waits=at(7, value=1)) == []
    assert machine.writes() == []
    assert machine.take(host_effects.HostSignaled(7, 1)) == [RAW]
    machine = Machine()
    machine.validator.consume(effects.SemaphoreCreated(7, 0))
    assert machine.submit(1, READ_A, waits=at(7, value=1)) == []
    assert machine.writes() == []
    assert machine.submit(2, signals=at(7, value=1)) == []
