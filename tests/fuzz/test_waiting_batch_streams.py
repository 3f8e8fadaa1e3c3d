"""Batches that wait for a signal, and what the host learns meanwhile: what each stream must give, for both judges."""

from __future__ import annotations

import pytest

from harness.fuzz.agreement_fuzz import judge

BY_FENCE = """
    semaphore t1 = 0
    submit q1 fence f1
        COPY_TRANSFER_WRITE a
    submit q2 wait t1=1@{stage}
        COPY_TRANSFER_WRITE a
    host waits f1
    host signals t1=1
"""
THROUGH_ANOTHER_SUBMIT = """
    semaphore t1 = 0
    submit q1 fence f1
        COPY_TRANSFER_WRITE a
    submit q2 wait t1=1@{stage}
        COPY_TRANSFER_READ a
    host waits f1
    submit q3 signal t1=1@ALL_COMMANDS
        COPY_TRANSFER_READ a
"""
BY_A_NARROW_SIGNAL = """
    semaphore t1 = 0
    semaphore t2 = 0
    submit q1 signal t2=1@COPY
        COPY_TRANSFER_READ a
    submit q2 wait t1=1@{stage}
        COPY_TRANSFER_WRITE a
    host waits t2=1
    submit q3
        COPY_TRANSFER_READ b
    host signals t1=1
"""
LATE_HOST_READ = """
    semaphore t1 = 0
    submit q1 wait t1=1@{stage}
        COPY_TRANSFER_WRITE a
    host reads a
    submit q2
        COPY_TRANSFER_READ b
    host signals t1=1
"""
LATE_HOST_SET = """
    submit q1 fence f1
        COPY_TRANSFER_READ a
    submit q2
        wait e HOST > {stage}
        COPY_TRANSFER_WRITE a
    host waits f1
    host sets e
"""
HANDED_ON = [
    pytest.param(BY_FENCE, "WRITE_AFTER_WRITE", id="by a fence"),
    pytest.param(THROUGH_ANOTHER_SUBMIT, "READ_AFTER_WRITE", id="through another submit"),
    pytest.param(BY_A_NARROW_SIGNAL, "WRITE_AFTER_READ", id="by a signal of copies"),
    pytest.param(LATE_HOST_READ, "WRITE_AFTER_READ", id="the host's own read"),
    pytest.param(LATE_HOST_SET, "WRITE_AFTER_READ", id="by an event that the host sets late"),
]


@pytest.mark.parametrize(("text", "hazard"), HANDED_ON)
def test_what_the_host_learns_reaches_the_stages_of_the_wait(text: str, hazard: str) -> None:
    found, agreement = judge(text.format(stage="COPY"))
    assert ([each.hazard for each in found if not each.advice], agreement.disagreements) == ([], ())
    found, agreement = judge(text.format(stage="COMPUTE_SHADER"))
    assert ([each.hazard for each in found if not each.advice], agreement.disagreements) == ([hazard], ())


SHOWN = """
    semaphore t1 = 0
    submit q1 signal t1=1@COPY
        COPY_TRANSFER_WRITE n
        {barrier}
    host waits t1=1
    host writes n incoherent
"""


@pytest.mark.parametrize(
    ("barrier", "hazards"),
    [
        ("barrier COPY/TRANSFER_WRITE > COPY|HOST/HOST_READ", []),
        ("barrier COPY/TRANSFER_WRITE > BLIT|HOST/HOST_READ; barrier BLIT > COPY", []),
        ("barrier COPY/TRANSFER_WRITE > HOST/HOST_READ", ["WRITE_AFTER_WRITE"]),
        ("barrier COPY/TRANSFER_WRITE > BLIT|HOST/HOST_READ", ["WRITE_AFTER_WRITE"]),
    ],
)
def test_a_signal_after_a_dependency_to_the_host_tells_that_it_is_complete(barrier: str, hazards: list[str]) -> None:
    found, agreement = judge(SHOWN.format(barrier=barrier.replace("; ", "\n        ")))
    assert ([each.hazard for each in found], agreement.disagreements) == (hazards, ())


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


def test_what_was_kept_for_a_batch_is_forgotten_when_no_batch_waits() -> None:
    found, agreement = judge(
        f"""{BY_FENCE.format(stage="COPY")}
    host writes b
    host reads b
    submit q3
        COPY_TRANSFER_WRITE b
    """
    )
    assert (found, agreement.disagreements) == ([], ())
