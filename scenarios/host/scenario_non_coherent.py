"""Memory that is not HOST_COHERENT: a flush carries what the host wrote to the device, an invalidate brings the rest.

Buffers have four atoms of nonCoherentAtomSize bytes each.
"""

from vkharness.rig.core import RigBuffer
from vkharness.spec.enums import VK_WHOLE_SIZE
from vkharness.suite import Rig, read_after_write, scenario, write_after_read

COPY_OF_HOST_WRITE = [read_after_write("vkCmdCopyBuffer", "host write")]
UNSEEN = [read_after_write("host read", "vkCmdFillBuffer")]
TO_HOST = "HOST/HOST_READ"
FILLED = "CLEAR/TRANSFER_WRITE"


def _words(value: int, size: int) -> bytes:
    """Words that differ, and that nothing else leaves."""
    return b"".join((value + at).to_bytes(4, "little") for at in range(size // 4))


def _written(rig: Rig, value: int) -> RigBuffer:
    """A buffer of four atoms that the host has written and not flushed."""
    a = rig.non_coherent(4 * rig.atom)
    rig.host_write(a, _words(value, a.size))
    return a


def _copied(rig: Rig, *several: RigBuffer) -> None:
    """Submits a copy of each of these buffers to another one."""
    with rig.submission() as commands:
        for source in several:
            commands.copy(source, rig.buffer(source.size))


def _filled(rig: Rig, target: RigBuffer, value: int) -> None:
    """Submits a fill with the dependency to the host, and waits for it."""
    with rig.submission() as commands:
        commands.barrier("", FILLED, FILLED)
        commands.fill(target, value)
        commands.barrier("", FILLED, TO_HOST)
    rig.wait()


@scenario(
    without={"flush": COPY_OF_HOST_WRITE},
    weakened={
        "flush / all but the last atom": COPY_OF_HOST_WRITE,
        "flush / all but the first atom": COPY_OF_HOST_WRITE,
        "flush / to the end": [],
    },
    rule="a-flush-says-that-the-host-wrote,a-submit-shows-host-writes-to-the-device",
)
def scenario_flush_before_a_copy(rig: Rig) -> None:
    """Host writes are available to a submit once they were flushed, byte by byte."""
    a = _written(rig, 0x10101010)
    less = a.size - rig.atom
    weaker = {
        "all but the last atom": ((a, 0, less),),
        "all but the first atom": ((a, rig.atom, less),),
        "to the end": ((a, 0, VK_WHOLE_SIZE),),
    }
    rig.flush("flush", (a, 0, a.size), weaker=weaker)
    _copied(rig, a)


@scenario(
    without={"flush": [read_after_write("vkCmdDispatch", "host write")]},
    rule="a-flush-says-that-the-host-wrote,a-submit-shows-host-writes-to-the-device",
)
def scenario_flush_before_a_dispatch(rig: Rig) -> None:
    """Parameters of a shader, of which the host changes a few words each time."""
    a, b, c = rig.non_coherent(4 * rig.atom), rig.buffer(), rig.buffer()
    pipeline = rig.compute("copy_words")
    for target, value in ((b, 0x20202020), (c, 0x30303030)):
        rig.host_write(a, _words(value, 64), 0)
        rig.flush("flush" if target is c else "", (a, 0, rig.atom))
        with rig.submission() as commands:
            commands.bind(pipeline, rig.descriptors(pipeline, b0=a, b1=target))
            commands.dispatch()
        rig.wait()


@scenario(
    without={"flush": COPY_OF_HOST_WRITE},
    weakened={"flush / the first alone": COPY_OF_HOST_WRITE, "flush / the second alone": COPY_OF_HOST_WRITE},
    rule="a-flush-says-that-the-host-wrote",
)
def scenario_one_flush_of_two_buffers(rig: Rig) -> None:
    """A flush has several ranges, of one memory object or several."""
    a, b = _written(rig, 0x40404040), _written(rig, 0x50505050)
    parts = (a, 0, a.size), (b, 0, b.size)
    rig.flush("flush", *parts, weaker={"the first alone": parts[:1], "the second alone": parts[1:]})
    _copied(rig, a, b)


@scenario(
    without={"flush": COPY_OF_HOST_WRITE},
    weakened={"flush / from the start": COPY_OF_HOST_WRITE},
    rule="a-flush-says-that-the-host-wrote",
)
def scenario_flush_of_a_part(rig: Rig) -> None:
    """A flush is about the bytes from its offset on, and only about them."""
    a, b = rig.non_coherent(4 * rig.atom), rig.buffer(4 * rig.atom)
    half = 2 * rig.atom
    rig.host_write(a, _words(0x60606060, half), half)
    rig.flush("flush", (a, half, half), weaker={"from the start": ((a, 0, half),)})
    with rig.submission() as commands:
        commands.copy(a, b, (half, 0, half))


@scenario(
    without={"second flush": COPY_OF_HOST_WRITE},
    rule="a-flush-says-that-the-host-wrote,a-host-write-waits-for-the-device",
)
def scenario_ring_of_uploads(rig: Rig) -> None:
    """Uploads through a ring of two halves: each is flushed on its own, and written again once its copy is over."""
    ring = rig.non_coherent(4 * rig.atom)
    half = 2 * rig.atom
    for number in range(3):
        at = half * (number % 2)
        rig.host_write(ring, _words(0x1000 * (number + 1), half), at)
        rig.flush("second flush" if number == 1 else "", (ring, at, half))
        with rig.commands() as commands:
            commands.copy(ring, rig.buffer(half), (at, 0, half))
        rig.submit(commands)
        if number == 1:
            rig.wait()


@scenario(
    without={
        "invalidate": UNSEEN,
        "to the host": [read_after_write("vkInvalidateMappedMemoryRanges", "vkCmdFillBuffer")],
        "wait": [read_after_write("vkInvalidateMappedMemoryRanges", "vkCmdFillBuffer"), *UNSEEN],
    },
    weakened={
        "invalidate / all but the last atom": UNSEEN,
        "invalidate / all but the first atom": UNSEEN,
        "invalidate / to the end": [],
    },
    rule="a-host-read-needs-a-dependency-and-a-wait,an-invalidate-says-that-the-host-reads",
)
def scenario_invalidate_before_a_read(rig: Rig) -> None:
    """The host sees what the device wrote after a dependency to the host, a wait and an invalidate, in this order."""
    a = rig.non_coherent(4 * rig.atom)
    less = a.size - rig.atom
    with rig.submission() as commands:
        commands.fill(a, 0x11111111)
        commands.barrier("to the host", FILLED, TO_HOST)
    rig.host_wait("wait", "queue")
    weaker = {
        "all but the last atom": ((a, 0, less),),
        "all but the first atom": ((a, rig.atom, less),),
        "to the end": ((a, 0, VK_WHOLE_SIZE),),
    }
    rig.invalidate("invalidate", (a, 0, a.size), weaker=weaker)
    rig.host_read(a)


@scenario(
    without={"invalidate": UNSEEN},
    weakened={"invalidate / the first alone": UNSEEN, "invalidate / the second alone": UNSEEN},
    rule="an-invalidate-says-that-the-host-reads",
)
def scenario_one_invalidate_of_two_buffers(rig: Rig) -> None:
    """An invalidate has several ranges."""
    a, b = rig.non_coherent(4 * rig.atom), rig.non_coherent(4 * rig.atom)
    _filled(rig, a, 0x22222222)
    _filled(rig, b, 0x33333333)
    parts = (a, 0, a.size), (b, 0, b.size)
    rig.invalidate("invalidate", *parts, weaker={"the first alone": parts[:1], "the second alone": parts[1:]})
    rig.host_read(a)
    rig.host_read(b)


@scenario(
    without={"invalidate": UNSEEN},
    weakened={"invalidate / from the start": UNSEEN},
    rule="an-invalidate-says-that-the-host-reads",
)
def scenario_invalidate_of_a_part(rig: Rig) -> None:
    """An invalidate is about the bytes from its offset on."""
    a = rig.non_coherent(4 * rig.atom)
    half = 2 * rig.atom
    _filled(rig, a, 0x44444444)
    rig.invalidate("invalidate", (a, half, half), weaker={"from the start": ((a, 0, half),)})
    rig.host_read(a, half, half)


@scenario(
    without={"second invalidate": UNSEEN},
    weakened={"second invalidate / of the other buffer": UNSEEN},
    rule="an-invalidate-says-that-the-host-reads",
)
def scenario_each_read_back_has_its_invalidate(rig: Rig) -> None:
    """An invalidate after an earlier submit makes nothing of a later one visible to the host."""
    a, b = rig.non_coherent(4 * rig.atom), rig.non_coherent(4 * rig.atom)
    _filled(rig, a, 0x55555555)
    rig.invalidate("", (a, 0, a.size))
    rig.host_read(a)
    _filled(rig, a, 0x66666666)
    rig.invalidate("second invalidate", (a, 0, a.size), weaker={"of the other buffer": ((b, 0, b.size),)})
    rig.host_read(a)


@scenario(
    weakened={"written atom / that of the copy": [write_after_read("host write", "vkCmdCopyBuffer")]},
    rule="host-accesses-conflict-byte-by-byte,a-flush-says-that-the-host-wrote",
)
def scenario_host_writes_beside_what_the_device_copies(rig: Rig) -> None:
    """While the device reads one atom, the host may write and flush another one."""
    a = _written(rig, 0x77777777)
    half = 2 * rig.atom
    rig.flush("", (a, 0, a.size))
    with rig.submission() as commands:
        commands.copy(a, rig.buffer(rig.atom), (rig.atom, 0, rig.atom))
    at = rig.choose("written atom", half, {"that of the copy": rig.atom})
    rig.host_write(a, _words(0x70707070, rig.atom), at)
    rig.flush("", (a, at, rig.atom))
    with rig.submission() as commands:
        commands.copy(a, rig.buffer(rig.atom), (half, 0, rig.atom))
