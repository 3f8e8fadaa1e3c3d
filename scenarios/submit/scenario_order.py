"""Submission order on one queue starts commands in order and is no dependency by itself."""

from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

RAW = read_after_write("vkCmdCopyBuffer", "vkCmdFillBuffer")
RAW2 = read_after_write("vkCmdCopyBuffer2", "vkCmdFillBuffer")
WAR = write_after_read("vkCmdFillBuffer", "vkCmdCopyBuffer")
WAW = write_after_write("vkCmdFillBuffer", "vkCmdFillBuffer")


@scenario(
    without={"between the submits": [WAW]},
    weakened={"between the submits / execution only": [WAW], "between the submits / wrong source": [WAW]},
    rule="submission-order-is-no-dependency",
)
def scenario_two_submits_write_one_buffer(rig: Rig) -> None:
    """Submission order is no memory dependency: a second submit that writes the same buffer needs a barrier."""
    a = rig.buffer()
    with rig.commands() as first:
        first.fill(a, 0x11111111)
    with rig.commands() as second:
        second.barrier(
            "between the submits",
            "CLEAR/TRANSFER_WRITE",
            "CLEAR/TRANSFER_WRITE",
            weaker={
                "execution only": {"src": "CLEAR", "dst": "CLEAR"},
                "wrong source": {"src": "COMPUTE_SHADER/SHADER_WRITE"},
            },
        )
        second.fill(a, 0x22222222)
    rig.submit(first)
    rig.submit(second)


@scenario(
    without={"at the end": [RAW2]},
    weakened={"at the end / wrong stage": [RAW2], "at the end / available only": [RAW2]},
    rule="barriers-reach-over-submits",
)
def scenario_barrier_at_the_end_of_the_first_submit(rig: Rig) -> None:
    """The second scope of a barrier includes commands of later submits."""
    a, b = rig.buffer(), rig.buffer()
    with rig.commands() as first:
        first.fill(a, 0x33333333)
        first.barrier(
            "at the end",
            "ALL_TRANSFER/TRANSFER_WRITE",
            "ALL_TRANSFER/TRANSFER_READ",
            sync2=False,
            weaker={"wrong stage": {"dst": "COMPUTE_SHADER/SHADER_READ"}, "available only": {"dst": "ALL_TRANSFER"}},
        )
    with rig.commands() as second:
        second.copy(a, b, v2=True)
    rig.submit(first, sync2=True)
    rig.submit(second, sync2=True)


@scenario(
    without={"at the start": [WAR]},
    weakened={"at the start / wrong source": [WAR], "at the start / wrong destination": [WAR]},
    rule="write-after-read,barriers-reach-over-submits",
)
def scenario_execution_dependency_at_the_start_of_the_second_submit(rig: Rig) -> None:
    """The first scope of a barrier includes commands of earlier submits; after a read no memory dependency is due."""
    a, b = rig.buffer(), rig.buffer()
    with rig.commands() as first:
        first.copy(a, b)
    with rig.commands() as second:
        second.barrier(
            "at the start",
            "ALL_TRANSFER",
            "ALL_TRANSFER",
            weaker={"wrong source": {"src": "COMPUTE_SHADER"}, "wrong destination": {"dst": "COMPUTE_SHADER"}},
        )
        second.fill(a, 0x44444444)
    rig.submit(first)
    rig.submit(second)


@scenario(without={"in the middle": [RAW]}, rule="barriers-reach-over-submits")
def scenario_barrier_in_the_middle_of_a_later_submit(rig: Rig) -> None:
    """A barrier covers every earlier submit of its queue, not just the one before, wherever it stands."""
    a, b, c, d = (rig.buffer() for _ in range(4))
    with rig.commands() as first:
        first.fill(a, 0x55555555)
    with rig.commands() as second:
        second.fill(c, 0x66666666)
    with rig.commands() as third:
        third.fill(d, 0x77777777)
        third.barrier("in the middle", "ALL_TRANSFER/MEMORY_WRITE", "ALL_TRANSFER/MEMORY_READ")
        third.copy(a, b)
    for each in (first, second, third):
        rig.submit(each)


@scenario(
    without={"make available": [RAW], "make visible": [RAW]},
    rule="barriers-reach-over-submits,availability-and-visibility-may-be-apart",
)
def scenario_available_in_one_submit_visible_in_the_next(rig: Rig) -> None:
    """Two barriers in two submits chain: one makes the write available, the other makes it visible."""
    a, b = rig.buffer(), rig.buffer()
    with rig.commands() as first:
        first.fill(a, 0x12121212)
        first.barrier("make available", "ALL_TRANSFER/TRANSFER_WRITE", "ALL_TRANSFER")
    with rig.commands() as second:
        second.barrier("make visible", "ALL_TRANSFER", "ALL_TRANSFER/TRANSFER_READ")
        second.copy(a, b)
    rig.submit(first)
    rig.submit(second)


@scenario(
    without={"the whole buffer": [RAW]},
    weakened={"the whole buffer / lower half": [RAW], "the whole buffer / another buffer": [RAW]},
    rule="a-ranged-barrier-covers-its-range",
)
def scenario_buffer_barrier_between_submits_covers_its_range(rig: Rig) -> None:
    """Between submits, as inside one, a buffer barrier is a memory dependency for its range alone."""
    a, b, c = rig.buffer(), rig.buffer(), rig.buffer()
    with rig.commands() as first:
        first.fill(a, 0x23232323)
    with rig.commands() as second:
        second.barrier(
            "the whole buffer",
            "ALL_TRANSFER/TRANSFER_WRITE",
            "ALL_TRANSFER/TRANSFER_READ",
            buffer=a,
            weaker={"lower half": {"size": 128}, "another buffer": {"buffer": c}},
        )
        second.copy(a, b, (0, 0, 64), (128, 128, 64))
    rig.submit(first)
    rig.submit(second)


@scenario(
    weakened={"separate halves / same half": [write_after_write("vkCmdCopyBuffer", "vkCmdCopyBuffer")]},
    rule="reads-do-not-conflict,only-shared-bytes-conflict",
)
def scenario_submits_that_write_separate_halves(rig: Rig) -> None:
    """Two submits that write disjoint bytes of one buffer and read the same source need nothing between."""
    source, target = rig.buffer(data=bytes(range(256))), rig.buffer(512)
    with rig.commands() as first:
        first.copy(source, target, (0, 0, 128))
    with rig.commands() as second:
        second.copy(source, target, (128, rig.choose("separate halves", 256, {"same half": 64}), 128))
    rig.submit(first)
    rig.submit(second)


@scenario(weakened={"disjoint buffers / overlapping": [RAW]}, rule="buffers-conflict-where-they-share-memory")
def scenario_buffers_that_share_memory(rig: Rig) -> None:
    """Memory decides about conflicts: two buffers bound to overlapping bytes of one memory object conflict."""
    memory = rig.memory(4096)
    a = rig.buffer(256, memory, 0)
    c = rig.buffer(256, memory, rig.choose("disjoint buffers", 1024, {"overlapping": 0}))
    b = rig.buffer()
    with rig.commands() as first:
        first.fill(a, 0x34343434)
    with rig.commands() as second:
        second.copy(c, b)
    rig.submit(first)
    rig.submit(second)


@scenario(rule="destroyed-resources-take-their-accesses-along")
def scenario_buffer_made_again_on_the_same_memory(rig: Rig) -> None:
    """A buffer that is destroyed after a wait leaves nothing behind for another one on the same memory."""
    memory = rig.memory(4096)
    a = rig.buffer(256, memory)
    b = rig.buffer()
    with rig.submission() as first:
        first.fill(a, 0x45454545)
    rig.wait()
    rig.destroy(a.handle)
    again = rig.buffer(512, memory)
    with rig.submission() as second:
        second.copy(again, b)
