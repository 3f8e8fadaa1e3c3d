"""Queue family ownership: what one family wrote reaches another by a release, a semaphore and an acquire."""

from typing import Any

from vkharness.rig.queues import SemaphoreUse
from vkharness.suite import Rig, race, scenario, write_after_write

BARRIER, COPY, FILL = "vkCmdPipelineBarrier2", "vkCmdCopyBuffer", "vkCmdFillBuffer"
CLEAR, TO_BUFFER = "vkCmdClearColorImage", "vkCmdCopyImageToBuffer"


def _transfer(rig: Rig, **options: Any) -> dict[str, Any]:
    """Options of both halves of a transfer from the first queue's family to the second's."""
    first, second = rig.queues[:2]
    return {"families": (first.family, second.family), **options}


@scenario(
    without={
        "release": [race("ownership-not-released", BARRIER, FILL)],
        "acquire": [race("ownership-not-acquired", COPY, BARRIER)],
        "semaphore": [race("WRITE_RACING_WRITE", BARRIER, BARRIER)],
    },
    weakened={
        "semaphore / at copies": [write_after_write(BARRIER, BARRIER)],
        "signal / of copies and clears": [write_after_write(BARRIER, BARRIER)],
    },
    queues=["TRANSFER"],
    rule="what-was-released-must-be-acquired,an-acquire-needs-its-release,a-semaphore-orders-the-halves-of-a-transfer,the-halves-of-a-transfer-have-no-stage",
)
def scenario_buffer_goes_to_another_family(rig: Rig) -> None:
    """An exclusive buffer is released by one family and acquired by the other, a semaphore between.

    The stages that the acquire names do not count: only ALL_COMMANDS waits for it and is waited for by it."""
    a, b, s = rig.buffer(exclusive=True), rig.buffer(), rig.semaphore()
    _, other = rig.queues
    both = _transfer(rig, buffer=a)
    with rig.commands() as first:
        first.fill(a, 0x11111111)
        first.barrier("release", "CLEAR/TRANSFER_WRITE", "COPY", **both)
    with rig.commands(queue=other) as second:
        second.barrier("acquire", "COPY", "COPY/TRANSFER_READ", **both)
        second.copy(a, b)
    signals = rig.operation("signal", s, weaker={"of copies and clears": {"stages": "COPY|CLEAR"}})
    rig.submit(first, signals=signals, sync2=True)
    rig.submit(second, waits=rig.operation("semaphore", s, weaker={"at copies": {"stages": "COPY"}}), sync2=True)


@scenario(
    without={
        "release": [race("ownership-not-released", BARRIER, CLEAR)],
        "acquire": [race("ownership-not-acquired", TO_BUFFER, BARRIER)],
        "semaphore": [race("WRITE_RACING_WRITE", BARRIER, BARRIER)],
    },
    weakened={"acquire / to another layout": [race("ownership-mismatch", BARRIER, BARRIER)]},
    queues=["TRANSFER"],
    rule="what-was-released-must-be-acquired,both-halves-of-a-transfer-agree,a-semaphore-orders-the-halves-of-a-transfer",
)
def scenario_image_goes_to_another_family(rig: Rig) -> None:
    """Both halves of an image's transfer name its one layout transition."""
    image, b, s = rig.image(exclusive=True), rig.buffer(16 * 16 * 4), rig.semaphore()
    _, other = rig.queues
    both = _transfer(rig, image=image, old="TRANSFER_DST_OPTIMAL", new="TRANSFER_SRC_OPTIMAL")
    with rig.commands() as first:
        first.transition(image, new="TRANSFER_DST_OPTIMAL")
        first.clear_color(image, at="TRANSFER_DST_OPTIMAL")
        first.barrier("release", "CLEAR/TRANSFER_WRITE", "NONE", **both)
    with rig.commands(queue=other) as second:
        weaker = {"to another layout": {"new": "GENERAL"}}
        second.barrier("acquire", "NONE", "COPY/TRANSFER_READ", **both, weaker=weaker)
        second.image_to_buffer(image, b, at="TRANSFER_SRC_OPTIMAL")
    rig.submit(first, signals=[SemaphoreUse(s)], sync2=True)
    rig.submit(second, waits=rig.operation("semaphore", s), sync2=True)


@scenario(
    weakened={"range / less is acquired": [race("ownership-mismatch", BARRIER, BARRIER)]},
    queues=["TRANSFER"],
    rule="both-halves-of-a-transfer-agree",
)
def scenario_half_a_buffer_goes_to_another_family(rig: Rig) -> None:
    """Bytes of a buffer may go to another family while the rest stays; both halves name the same bytes."""
    a, b, s = rig.buffer(exclusive=True), rig.buffer(), rig.semaphore()
    _, other = rig.queues
    size = rig.choose("range", 128, {"less is acquired": 64})
    with rig.commands() as first:
        first.fill(a, 0x11111111)
        first.barrier("", "CLEAR/TRANSFER_WRITE", "NONE", **_transfer(rig, buffer=a, offset=0, size=128))
    with rig.commands(queue=other) as second:
        second.barrier("", "NONE", "COPY/TRANSFER_READ", **_transfer(rig, buffer=a, offset=0, size=size))
        second.copy(a, b, (0, 0, 64))
    rig.submit(first, signals=[SemaphoreUse(s)], sync2=True)
    rig.submit(second, waits=[SemaphoreUse(s)], sync2=True)


@scenario(
    weakened={"what / a copy of it": [race("ownership-not-transferred", COPY, FILL)]},
    queues=["TRANSFER"],
    rule="contents-must-be-transferred-to-another-family,overwriting-needs-no-transfer",
)
def scenario_contents_that_are_not_needed(rig: Rig) -> None:
    """A family that overwrites all of an exclusive buffer needs no transfer; one that reads it does."""
    a, b, s = rig.buffer(exclusive=True), rig.buffer(), rig.semaphore()
    _, other = rig.queues
    with rig.commands() as first:
        first.fill(a, 0x11111111)
    overwrites = rig.choose("what", True, {"a copy of it": False})
    with rig.commands(queue=other) as second:
        if overwrites:
            second.fill(a, 0x22222222)
        else:
            second.copy(a, b)
    rig.submit(first, signals=[SemaphoreUse(s)], sync2=True)
    rig.submit(second, waits=[SemaphoreUse(s, "ALL_TRANSFER")], sync2=True)


@scenario(
    weakened={"sharing / exclusive": [race("ownership-not-transferred", COPY, FILL)]},
    queues=["TRANSFER"],
    rule="contents-must-be-transferred-to-another-family",
)
def scenario_buffer_shared_by_families(rig: Rig) -> None:
    """A concurrent buffer belongs to all families: a semaphore is enough."""
    exclusive = rig.choose("sharing", False, {"exclusive": True})
    a, b, s = rig.buffer(exclusive=exclusive), rig.buffer(), rig.semaphore()
    _, other = rig.queues
    with rig.commands() as first:
        first.fill(a, 0x11111111)
    with rig.commands(queue=other) as second:
        second.copy(a, b)
    rig.submit(first, signals=[SemaphoreUse(s)], sync2=True)
    rig.submit(second, waits=[SemaphoreUse(s, "COPY")], sync2=True)


@scenario(
    without={
        "return": [race("ownership-not-released", BARRIER, FILL)],
        "take back": [race("ownership-not-acquired", COPY, BARRIER)],
    },
    queues=["COMPUTE"],
    rule="contents-must-be-transferred-to-another-family,what-was-released-must-be-acquired,an-acquire-needs-its-release",
)
def scenario_there_and_back(rig: Rig) -> None:
    """A buffer that another family works on comes back by a transfer of its own."""
    a, b, there, back = rig.buffer(exclusive=True), rig.buffer(), rig.semaphore(), rig.semaphore()
    main, other = rig.queues
    lent, returned = (main.family, other.family), (other.family, main.family)
    with rig.commands() as first:
        first.fill(a, 0x11111111)
        first.barrier("", "CLEAR/TRANSFER_WRITE", "NONE", buffer=a, families=lent)
    with rig.commands(queue=other) as second:
        second.barrier("", "NONE", "CLEAR/TRANSFER_WRITE", buffer=a, families=lent)
        second.fill(a, 0x22222222, 0, 128)
        second.barrier("return", "CLEAR/TRANSFER_WRITE", "NONE", buffer=a, families=returned)
    with rig.commands() as third:
        third.barrier("take back", "NONE", "COPY/TRANSFER_READ", buffer=a, families=returned)
        third.copy(a, b)
    rig.submit(first, signals=[SemaphoreUse(there)], sync2=True)
    rig.submit(second, waits=[SemaphoreUse(there)], signals=[SemaphoreUse(back)], sync2=True)
    rig.submit(third, waits=[SemaphoreUse(back)], sync2=True)


@scenario(
    expects=[race("ownership-without-contents", TO_BUFFER, BARRIER)],
    weakened={"what / cleared": [race("ownership-not-transferred", TO_BUFFER, CLEAR)]},
    queues=["TRANSFER"],
    rule="contents-that-nobody-wrote-are-not-lost",
)
def scenario_contents_that_nobody_wrote(rig: Rig) -> None:
    """A family reads an exclusive image that another one moved and nobody wrote: nothing is lost without a transfer."""
    image, b, s = rig.image(exclusive=True), rig.buffer(16 * 16 * 4), rig.semaphore()
    _, other = rig.queues
    with rig.commands() as first:
        first.transition(image)
        if rig.choose("what", False, {"cleared": True}):
            first.clear_color(image)
    with rig.commands(queue=other) as second:
        second.image_to_buffer(image, b)
    rig.submit(first, signals=[SemaphoreUse(s)], sync2=True)
    rig.submit(second, waits=[SemaphoreUse(s)], sync2=True)
