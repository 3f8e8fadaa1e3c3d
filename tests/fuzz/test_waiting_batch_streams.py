"""Batches that wait for a signal, and what the host learns meanwhile: where both judges find it."""

from __future__ import annotations

from vkharness.fuzz.agreement_fuzz import judge


def test_the_signal_of_copies_comes_after_an_acquire_before_all_commands() -> None:
    found, agreement = judge(
        """
        semaphore t1 = 0
        queue q1 family 0
        queue q2 family 1
        submit q2 signal t1=1@COPY family 1
            execute COPY_TRANSFER_WRITE n / barrier n family 0->1 ALL_COMMANDS > ALL_COMMANDS|HOST/HOST_READ
        host waits q1
        host waits t1=1
        host writes n incoherent
        """
    )
    assert ([each.hazard for each in found], agreement.disagreements) == (
        ["WRITE_AFTER_WRITE", "ownership-not-released"],
        (),
    )
    assert {each.place.command for each in found} == {"vkCmdbarrier"}


def test_a_submit_shows_a_late_host_write_to_its_own_batches_alone() -> None:
    found, agreement = judge(
        """
        semaphore t1 = 0
        submit q1 wait t1=1@COPY
            COPY_TRANSFER_READ a
        host writes a
        submit q2
            COPY_TRANSFER_READ a
        host signals t1=1
        """
    )
    assert [(each.hazard, each.place.submit) for each in found] == [("READ_AFTER_WRITE", 2)]
    assert agreement.disagreements == ()
