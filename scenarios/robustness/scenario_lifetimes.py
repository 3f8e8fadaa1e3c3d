"""Objects that come and go: what is destroyed takes its accesses along, and a handle that returns is another object."""

from vkharness.rig.core import RigBuffer
from vkharness.rig.rig import Rig
from vkharness.suite import read_after_write, scenario, write_after_write

FILL, COPY, DISPATCH = "vkCmdFillBuffer", "vkCmdCopyBuffer", "vkCmdDispatch"
FILLED, READ = "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ"


@scenario(
    without={"fill before copy": [read_after_write(COPY, FILL)]}, rule="destroyed-resources-take-their-accesses-along"
)
def scenario_handles_used_again_are_other_buffers(rig: Rig) -> None:
    """Buffers are made and destroyed until handles return; hazards are those of the buffers that live."""
    memory, out = rig.memory(1 << 16), rig.buffer()
    for number in range(8):
        with rig.submission() as commands:
            passing = rig.buffer(256, memory, 4096 * number)
            commands.fill(passing, number)
        rig.wait()
        rig.destroy(passing.handle)
    a = rig.buffer(256, memory, 0)
    with rig.submission() as commands:
        commands.fill(a, 0x2C2C2C2C)
        commands.barrier("fill before copy", FILLED, READ)
        commands.copy(a, out)


@scenario(
    weakened={"offset / of the first": [write_after_write(FILL, FILL)]},
    rule="buffers-conflict-where-they-share-memory,destroyed-resources-take-their-accesses-along",
)
def scenario_two_buffers_of_one_memory(rig: Rig) -> None:
    """Two buffers on one memory object conflict exactly where they overlap."""
    memory = rig.memory(1 << 12)
    offset = rig.choose("offset", 1024, {"of the first": 0})
    first, second = rig.buffer(256, memory, 0), rig.buffer(256, memory, offset)
    with rig.submission() as commands:
        commands.fill(first, 0x3C3C3C3C)
        commands.fill(second, 0x4C4C4C4C)


@scenario(expects=[], rule="the-last-write-of-a-descriptor-counts")
def scenario_descriptors_written_over_before_use(rig: Rig) -> None:
    """The contents of a set at its use count: a descriptor that was written over is forgotten."""
    a, b, out = rig.buffer(), rig.buffer(), rig.buffer()
    pipeline = rig.compute("fill_words")
    bound = rig.descriptors(pipeline, b0=a)
    rig.update(bound, b0=b)
    _destroyed(rig, a)
    with rig.submission() as commands:
        commands.bind(pipeline, bound)
        commands.push_constants(pipeline, 11)
        commands.dispatch()
        commands.barrier("", "COMPUTE_SHADER/SHADER_STORAGE_WRITE", READ)
        commands.copy(b, out)


def _destroyed(rig: Rig, buffer: RigBuffer) -> None:
    """Destroys a buffer, and makes another one that may get its handle."""
    rig.destroy(buffer.handle)
    rig.buffer()
