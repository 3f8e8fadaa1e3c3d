"""Ownership that goes to what is outside of the instance, and comes back (specification: "Queue Family Ownership
Transfer", VK_QUEUE_FAMILY_EXTERNAL)."""

from vkharness.spec.enums import VK_QUEUE_FAMILY_EXTERNAL
from vkharness.suite import Rig, race, scenario, write_after_write

BARRIER, COPY, FILL = "vkCmdPipelineBarrier2", "vkCmdCopyBuffer", "vkCmdFillBuffer"


@scenario(
    without={"acquire": [race("ownership-not-acquired", COPY, BARRIER)]},
    weakened={"release / execution only": [write_after_write(BARRIER, FILL)]},
    rule="what-was-released-must-be-acquired,external-queues-own-what-they-are-given",
)
def scenario_buffer_comes_back_from_outside(rig: Rig) -> None:
    """A buffer that was released to an external queue belongs to nobody here until it is acquired; all writes must be
    available before it is released."""
    a, b, family = rig.buffer(exclusive=True), rig.buffer(), rig.queues[0].family
    with rig.submission() as first:
        first.fill(a, 0x11223344)
        first.barrier(
            "release",
            "CLEAR/TRANSFER_WRITE",
            "NONE",
            buffer=a,
            families=(family, VK_QUEUE_FAMILY_EXTERNAL),
            weaker={"execution only": {"src": "CLEAR"}},
        )
    rig.wait()
    with rig.submission() as second:
        second.barrier("acquire", "NONE", "COPY/TRANSFER_READ", buffer=a, families=(VK_QUEUE_FAMILY_EXTERNAL, family))
        second.copy(a, b)
