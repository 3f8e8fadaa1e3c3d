"""Small streams about events, with what both judges find: one for each rule that was once judged otherwise."""

from __future__ import annotations

import pytest

from harness.fuzz.agreement_fuzz import judge

RAW = "READ_AFTER_WRITE"

STREAMS = {
    "a wait of the first form with all stages of the set": (
        """
        submit q1
            COPY_TRANSFER_WRITE a
            set1 e1 COPY
            wait1 e1 COPY/TRANSFER_WRITE > COPY/TRANSFER_READ
            COPY_TRANSFER_READ a
        """,
        [],
    ),
    "a wait of the first form with more stages": (
        """
        submit q1
            COPY_TRANSFER_WRITE a
            set1 e1 COPY
            wait1 e1 COPY|CLEAR/TRANSFER_WRITE > COPY/TRANSFER_READ
            COPY_TRANSFER_READ a
        """,
        ["vkCmdWaitEvents-stages-differ"],
    ),
    "a wait of the first form with other stages": (
        """
        submit q1
            COPY_TRANSFER_WRITE a
            set1 e1 COPY
            wait1 e1 CLEAR/TRANSFER_WRITE > COPY/TRANSFER_READ
            COPY_TRANSFER_READ a
        """,
        ["vkCmdWaitEvents-stages-differ", RAW],
    ),
    "a wait with a logically later stage includes the set, and none of its accesses": (
        """
        submit q1
            COPY_TRANSFER_READ b
            VERTEX_SHADER_SHADER_STORAGE_READ a
            VERTEX_SHADER_SHADER_STORAGE_WRITE b[32:64]
            set1 e1 VERTEX_SHADER
            wait1 e1 FRAGMENT_SHADER/MEMORY_WRITE > COPY/TRANSFER_READ|TRANSFER_WRITE
            COPY_TRANSFER_WRITE a
            COPY_TRANSFER_READ b[32:64]
        """,
        ["WRITE_AFTER_READ", "vkCmdWaitEvents-stages-differ", RAW],
    ),
    "a wait with a logically earlier stage does not include the set": (
        """
        submit q1
            VERTEX_SHADER_SHADER_STORAGE_READ a
            set1 e1 FRAGMENT_SHADER
            wait1 e1 VERTEX_SHADER > COPY
            COPY_TRANSFER_WRITE a
        """,
        ["vkCmdWaitEvents-stages-differ", "WRITE_AFTER_READ"],
    ),
    "a set of the first form and a wait of the second": (
        """
        submit q1
            COPY_TRANSFER_WRITE a
            set1 e1 COPY
            wait e1 COPY/TRANSFER_WRITE > COPY/TRANSFER_READ
            COPY_TRANSFER_READ a
        """,
        ["vkCmdWaitEvents2-first-form-set", RAW],
    ),
    "a set of the second form and a wait of the first": (
        """
        submit q1
            COPY_TRANSFER_WRITE a
            set e1 COPY/TRANSFER_WRITE > COPY/TRANSFER_READ
            wait1 e1 COPY/TRANSFER_WRITE > COPY/TRANSFER_READ
            COPY_TRANSFER_READ a
        """,
        ["vkCmdWaitEvents-second-form-set", RAW],
    ),
    "a set and a wait of the second form with different dependencies": (
        """
        submit q1
            COPY_TRANSFER_WRITE a
            set e1 COPY/TRANSFER_WRITE > COPY/TRANSFER_READ
            wait e1 COPY/TRANSFER_WRITE > COPY|CLEAR/TRANSFER_READ
            COPY_TRANSFER_READ a
        """,
        ["vkCmdWaitEvents2-dependency-differs", RAW],
    ),
    "an event that was set on another queue": (
        """
        submit q1 signal s1@ALL_COMMANDS
            CLEAR_TRANSFER_WRITE a
            set e1 CLEAR/TRANSFER_WRITE > COPY/TRANSFER_READ
        submit q2 wait s1@CLEAR
            wait e1 CLEAR/TRANSFER_WRITE > COPY/TRANSFER_READ
            COPY_TRANSFER_READ a
        """,
        ["vkCmdWaitEvents-another-queue", RAW],
    ),
    "a second set of a signaled event covers nothing new": (
        """
        submit q1
            COPY_TRANSFER_WRITE a
            set1 e1 COPY
            barrier ALL_COMMANDS > ALL_COMMANDS
            COPY_TRANSFER_WRITE b
            set1 e1 COPY
            wait1 e1 COPY/TRANSFER_WRITE > COPY/TRANSFER_READ
            COPY_TRANSFER_READ a
            COPY_TRANSFER_READ b
        """,
        [RAW],
    ),
    "a second set of a signaled event after a wait covers nothing new": (
        """
        submit q1
            set e1 COPY/TRANSFER_WRITE > COPY/TRANSFER_READ
            wait e1 COPY/TRANSFER_WRITE > COPY/TRANSFER_READ
        submit q1
            COPY_TRANSFER_WRITE a
            set e1 COPY/TRANSFER_WRITE > COPY/TRANSFER_READ
            wait e1 COPY/TRANSFER_WRITE > COPY/TRANSFER_READ
            COPY_TRANSFER_READ a
        """,
        [RAW],
    ),
    "two unordered sets cover what came before both in common stages": (
        """
        submit q1
            CLEAR_TRANSFER_WRITE a
            COPY_TRANSFER_WRITE b
            set1 e1 CLEAR
            set1 e1 CLEAR|COPY
            wait1 e1 CLEAR|COPY/TRANSFER_WRITE > COPY/TRANSFER_READ
            COPY_TRANSFER_READ a
            COPY_TRANSFER_READ b
        """,
        ["vkCmdSetEvent-set-race", "vkCmdWaitEvents-unsynchronized-setops", RAW],
    ),
    "two unordered sets do not cover what came between them": (
        """
        submit q1
            set1 e1 CLEAR
            CLEAR_TRANSFER_WRITE a
            set1 e1 CLEAR
            wait1 e1 CLEAR/TRANSFER_WRITE > COPY/TRANSFER_READ
            COPY_TRANSFER_READ a
        """,
        ["vkCmdSetEvent-set-race", "vkCmdWaitEvents-unsynchronized-setops", RAW],
    ),
    "a wait that no dependency orders after a reset": (
        """
        submit q1
            CLEAR_TRANSFER_WRITE a
            set1 e1 CLEAR
            barrier ALL_COMMANDS > COPY
            reset e1 COPY
            wait1 e1 CLEAR/TRANSFER_WRITE > COPY/TRANSFER_READ
            COPY_TRANSFER_READ a
        """,
        ["vkCmdWaitEvents-reset-race"],
    ),
    "a set between a reset and a wait, ordered after the reset": (
        """
        submit q1
            set1 e1 CLEAR
            barrier ALL_COMMANDS > COPY
            reset e1 COPY
            barrier ALL_COMMANDS > CLEAR
            CLEAR_TRANSFER_WRITE a
            set1 e1 CLEAR
            wait1 e1 CLEAR/TRANSFER_WRITE > COPY/TRANSFER_READ
            COPY_TRANSFER_READ a
        """,
        [],
    ),
    "a set that either of two orders makes effective": (
        """
        submit q1
            set1 e1 CLEAR
            reset e1 CLEAR
            CLEAR_TRANSFER_WRITE a
            set1 e1 ALL_COMMANDS
            wait1 e1 ALL_COMMANDS/TRANSFER_WRITE > COPY/TRANSFER_READ
            COPY_TRANSFER_READ a
        """,
        ["vkCmdResetEvent-set-race", "vkCmdWaitEvents-stages-differ", RAW],
    ),
    "operations on one event chain through a wait for another": (
        """
        submit q1
            set1 e1 COPY
            set1 e2 ALL_COMMANDS
            wait1 e2 ALL_COMMANDS > CLEAR
            set1 e1 CLEAR
        """,
        [],
    ),
    "operations on events chain through a semaphore of another queue": (
        """
        submit q1 signal s1@ALL_COMMANDS
            set1 e1 COPY
        submit q2 wait s1@COPY
            reset e1 COPY
        """,
        [],
    ),
    "operations on events of two queues with no semaphore": (
        """
        submit q1
            set1 e1 COPY
        submit q2
            reset e1 COPY
        """,
        ["vkCmdResetEvent-set-race"],
    ),
    "a late set by the host orders what it wrote before": (
        """
        submit q1
            wait1 e1 HOST/HOST_WRITE > COPY/TRANSFER_READ
            COPY_TRANSFER_READ a
        host writes a
        host sets e1
        """,
        ["vkSetEvent-pending-wait"],
    ),
    "a late set without HOST_WRITE in the wait makes nothing available": (
        """
        submit q1
            wait1 e1 HOST > COPY/TRANSFER_READ
            COPY_TRANSFER_READ a
        host writes a
        host sets e1
        """,
        ["vkSetEvent-pending-wait", RAW],
    ),
    "a late set and a read in no stage of the wait": (
        """
        submit q1
            wait1 e1 HOST/HOST_WRITE > CLEAR/TRANSFER_READ
            COPY_TRANSFER_READ a
        host writes a
        host sets e1
        """,
        ["vkSetEvent-pending-wait", RAW],
    ),
    "a late write after a read in front of the wait": (
        """
        submit q1
            COPY_TRANSFER_READ a
            wait1 e1 HOST/HOST_WRITE > COPY/TRANSFER_READ
            COPY_TRANSFER_READ a
        host writes a
        host sets e1
        """,
        ["vkSetEvent-pending-wait", "WRITE_AFTER_READ"],
    ),
    "the host reads before a late set, the device writes after the wait": (
        """
        submit q1
            wait1 e1 HOST/HOST_WRITE > COPY/TRANSFER_WRITE
            COPY_TRANSFER_WRITE a
        host reads a
        host sets e1
        """,
        ["vkSetEvent-pending-wait"],
    ),
    "a flushed write before a late set": (
        """
        submit q1
            wait e1 HOST/HOST_WRITE > COPY/TRANSFER_READ
            COPY_TRANSFER_READ a
        host writes a incoherent
        host flushes a
        host sets e1
        """,
        ["vkSetEvent-pending-wait"],
    ),
    "a write that is not flushed before a late set": (
        """
        submit q1
            wait e1 HOST/HOST_WRITE > COPY/TRANSFER_READ
            COPY_TRANSFER_READ a
        host writes a incoherent
        host sets e1
        """,
        ["vkSetEvent-pending-wait", RAW],
    ),
    "a wait for an event that nothing sets orders nothing": (
        """
        submit q1
            COPY_TRANSFER_WRITE a
            wait e1 COPY/TRANSFER_WRITE > COPY/TRANSFER_READ
            COPY_TRANSFER_READ a
        """,
        [RAW],
    ),
    "a host wait tells that a wait for an event has ended": (
        """
        submit q1
            wait e1 HOST/HOST_WRITE > COPY/TRANSFER_READ
            COPY_TRANSFER_WRITE a
        submit q1
            COPY_TRANSFER_READ a
        host waits
        """,
        [RAW],
    ),
    "a late write and a timeline semaphore alone": (
        """
        semaphore t1 = 0
        submit q1 wait t1=1@COPY
            COPY_TRANSFER_READ a
        host writes a
        host signals t1=1
        """,
        [RAW],
    ),
    "a late write, a timeline semaphore and a barrier from HOST": (
        """
        semaphore t1 = 0
        submit q1 wait t1=1@COPY
            barrier HOST/HOST_WRITE > COPY/TRANSFER_READ
            COPY_TRANSFER_READ a
        host writes a
        host signals t1=1
        """,
        [],
    ),
    "a late write, a timeline semaphore and a barrier from HOST without HOST_WRITE": (
        """
        semaphore t1 = 0
        submit q1 wait t1=1@COPY
            barrier HOST > COPY/TRANSFER_READ
            COPY_TRANSFER_READ a
        host writes a
        host signals t1=1
        """,
        [RAW],
    ),
    "a write after the signal of a timeline semaphore": (
        """
        semaphore t1 = 0
        submit q1 wait t1=1@COPY
            barrier HOST/HOST_WRITE > COPY/TRANSFER_READ
            COPY_TRANSFER_READ a
        host signals t1=1
        host writes a
        """,
        ["WRITE_AFTER_READ"],
    ),
    "each event of a wait of the second form has a second scope of its own": (
        """
        submit q1
            set e1 COPY > CLEAR
            set e2 COPY > COPY
            wait e1 COPY > CLEAR & e2 COPY > COPY
            set e1 COPY > CLEAR
        """,
        ["vkCmdSetEvent2-wait"],
    ),
    "a reset after a wait that may not have seen the set": (
        """
        submit q1
            reset e1 CLEAR
            set1 e1 COPY
            wait1 e1 COPY > COPY
            reset e1 CLEAR
        """,
        [
            "vkCmdSetEvent-reset-race",
            "vkCmdWaitEvents-unsynchronized-setops",
            "vkCmdResetEvent-wait-race",
            "vkCmdResetEvent-set-race",
        ],
    ),
    "a reset by the host before the signal that a set waits for": (
        """
        semaphore t1 = 0
        submit q1 wait t1=1@ALL_COMMANDS
            set1 e1 ALL_COMMANDS
        host resets e1
        host signals t1=1
        """,
        [],
    ),
    "a batch that waits for a binary semaphore of one that waits for an event": (
        """
        submit q1 signal s1@ALL_COMMANDS
            wait1 e1 HOST > COPY
            COPY_TRANSFER_WRITE a
        submit q2 wait s1@COPY
            COPY_TRANSFER_READ a
        host sets e1
        """,
        ["vkSetEvent-pending-wait"],
    ),
}


@pytest.mark.parametrize(("text", "expected"), STREAMS.values(), ids=list(STREAMS))
def test_both_judges_find_the_same(text: str, expected: list[str]) -> None:
    findings, agreement = judge(text)
    assert agreement.disagreements == ()
    assert sorted(each.hazard for each in findings) == sorted(expected)
