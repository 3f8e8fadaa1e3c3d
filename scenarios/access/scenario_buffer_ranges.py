"""Which bytes transfer commands touch: neighbours never conflict, one shared byte does."""

from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

FILL, UPDATE = "vkCmdFillBuffer", "vkCmdUpdateBuffer"
COPY, COPY2 = "vkCmdCopyBuffer", "vkCmdCopyBuffer2"


@scenario(
    weakened={
        "halves / overlapping by a word": [read_after_write(COPY, FILL)],
        "halves / the same half": [read_after_write(COPY, FILL)],
    },
    rule="only-shared-bytes-conflict,buffer-regions-are-exact",
)
def scenario_disjoint_halves_need_nothing(rig: Rig) -> None:
    """A fill of one half and a copy from the other touch no common byte: no dependency is needed."""
    a, b = rig.buffer(), rig.buffer()
    start = rig.choose("halves", 128, {"overlapping by a word": 124, "the same half": 0})
    with rig.submission() as commands:
        commands.fill(a, 0x0A0B0C0D, 0, 128)
        commands.copy(a, b, (start, 0, 128))


@scenario(
    weakened={
        "gap / in the second region": [write_after_read(FILL, COPY2)],
        "gap / over the end of a region": [write_after_read(FILL, COPY2)],
    },
    rule="buffer-regions-are-exact",
)
def scenario_gaps_between_regions_are_not_read(rig: Rig) -> None:
    """A copy of several regions reads those and not what lies between them."""
    a, b = rig.buffer(data=bytes(range(256))), rig.buffer()
    place = rig.choose("gap", (32, 32), {"in the second region": (64, 32), "over the end of a region": (92, 36)})
    with rig.submission() as commands:
        commands.copy(a, b, (0, 0, 32), (64, 32, 32), (128, 64, 32), v2=True)
        commands.fill(a, 0xFFFFFFFF, *place)


@scenario(
    weakened={
        "third region / over the first fill": [write_after_write(COPY, FILL)],
        "third region / over both fills": [write_after_write(COPY, FILL)],
    },
    rule="buffer-regions-are-exact",
)
def scenario_regions_write_only_their_bytes(rig: Rig) -> None:
    """The regions of a copy weave between two filled ranges without a conflict."""
    a, b = rig.buffer(data=bytes(range(256))), rig.buffer()
    third = rig.choose(
        "third region", (96, 160, 32), {"over the first fill": (96, 40, 16), "over both fills": (96, 60, 40)}
    )
    with rig.submission() as commands:
        commands.fill(b, 0x77777777, 32, 32)
        commands.fill(b, 0x66666666, 96, 32)
        commands.copy(a, b, (0, 0, 32), (32, 64, 32), third)


@scenario(
    weakened={"tail / with the last filled word": [read_after_write(COPY, FILL)]}, rule="buffer-regions-are-exact"
)
def scenario_whole_size_fill_leaves_the_odd_tail(rig: Rig) -> None:
    """A fill of VK_WHOLE_SIZE does not write the last bytes of a buffer whose size is no multiple of four."""
    a, b = rig.buffer(66), rig.buffer(66)
    start = rig.choose("tail", 64, {"with the last filled word": 60})
    with rig.submission() as commands:
        commands.fill(a, 0x12345678)
        commands.copy(a, b, (start, 0, 66 - start))


@scenario(
    weakened={
        "offset of the second buffer / the same memory": [read_after_write(COPY, FILL)],
        "offset of the second buffer / half of the first": [read_after_write(COPY, FILL)],
    },
    rule="buffers-conflict-where-they-share-memory",
)
def scenario_buffers_of_one_memory_conflict_where_they_alias(rig: Rig) -> None:
    """Two buffers in one memory object conflict exactly where their bytes are the same memory."""
    memory = rig.memory(2048)
    place = rig.choose("offset of the second buffer", 1024, {"the same memory": 0, "half of the first": 256})
    first, second, out = rig.buffer(512, memory, 0), rig.buffer(512, memory, place), rig.buffer(512)
    with rig.submission() as commands:
        commands.fill(first, 0xCAFEF00D)
        commands.copy(second, out)


@scenario(
    without={"fill before update": [write_after_write(UPDATE, FILL)]},
    weakened={
        "fill before update / first half": [write_after_write(UPDATE, FILL)],
        "fill before update / all but a word": [write_after_write(UPDATE, FILL)],
    },
    rule="a-ranged-barrier-covers-its-range",
)
def scenario_buffer_barrier_covers_the_bytes_it_names(rig: Rig) -> None:
    """A buffer barrier over exactly the bytes written twice is enough; one word less is not."""
    a = rig.buffer()
    with rig.submission() as commands:
        commands.fill(a, 0x03030303)
        commands.barrier(
            "fill before update",
            "ALL_TRANSFER/TRANSFER_WRITE",
            "ALL_TRANSFER/TRANSFER_WRITE",
            buffer=a,
            offset=64,
            size=64,
            sync2=False,
            weaker={"first half": {"size": 32}, "all but a word": {"offset": 68, "size": 60}},
        )
        commands.update(a, bytes(range(64)), 64)


@scenario(
    without={
        "lower before copy": [read_after_write(COPY, FILL)],
        "upper before copy": [read_after_write(COPY, UPDATE)],
    },
    rule="only-shared-bytes-conflict,buffer-regions-are-exact",
)
def scenario_one_copy_reads_two_writes(rig: Rig) -> None:
    """A copy over two ranges with different histories needs a dependency on each."""
    a, b = rig.buffer(128), rig.buffer(128)
    with rig.submission() as commands:
        commands.fill(a, 0x21212121, 0, 64)
        commands.update(a, bytes(range(64, 128)), 64)
        commands.barrier("lower before copy", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ", buffer=a, size=64)
        commands.barrier("upper before copy", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ", buffer=a, offset=64)
        commands.copy(a, b)
