"""Reads and writes of buffers by transfer commands: which stage and access each one is."""

from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

FILL, UPDATE = "vkCmdFillBuffer", "vkCmdUpdateBuffer"
COPY, COPY2 = "vkCmdCopyBuffer", "vkCmdCopyBuffer2"


@scenario(
    without={"fill before copy": [read_after_write(COPY, FILL)]},
    weakened={"fill before copy / execution only": [read_after_write(COPY, FILL)]},
    rule="read-after-write",
)
def scenario_copy_reads_a_filled_buffer(rig: Rig) -> None:
    """A copy that reads what a fill wrote needs a memory dependency, not just an execution dependency."""
    a, b = rig.buffer(), rig.buffer()
    with rig.submission() as commands:
        commands.fill(a, 0x11223344)
        commands.barrier(
            "fill before copy",
            "CLEAR/TRANSFER_WRITE",
            "COPY/TRANSFER_READ",
            weaker={"execution only": {"src": "CLEAR", "dst": "COPY"}},
        )
        commands.copy(a, b)


@scenario(
    without={"update before copy": [read_after_write(COPY2, UPDATE)]},
    weakened={
        "update before copy / from the copy stage": [read_after_write(COPY2, UPDATE)],
        "update before copy / from reads": [read_after_write(COPY2, UPDATE)],
    },
    rule="fills-updates-and-clears-use-the-clear-stage",
)
def scenario_copy2_reads_an_updated_buffer(rig: Rig) -> None:
    """VK_PIPELINE_STAGE_2_CLEAR_BIT is where vkCmdUpdateBuffer writes; a dependency from COPY does not cover it."""
    a, b = rig.buffer(128), rig.buffer(128)
    with rig.submission() as commands:
        commands.update(a, bytes(range(1, 65)), 32)
        commands.barrier(
            "update before copy",
            "CLEAR/TRANSFER_WRITE",
            "COPY/TRANSFER_READ",
            weaker={
                "from the copy stage": {"src": "COPY/TRANSFER_WRITE"},
                "from reads": {"src": "ALL_TRANSFER/TRANSFER_READ"},
            },
        )
        commands.copy(a, b, (32, 0, 64), v2=True)


@scenario(
    without={"copy before fill": [write_after_read(FILL, COPY)]},
    weakened={
        "copy before fill / other direction": [write_after_read(FILL, COPY)],
        "copy before fill / from the blit stage": [write_after_read(FILL, COPY)],
    },
    rule="write-after-read",
)
def scenario_fill_overwrites_what_a_copy_read(rig: Rig) -> None:
    """An execution dependency is enough for a write after a read: nothing has to be made available or visible."""
    a, b = rig.buffer(data=bytes(range(256))), rig.buffer()
    with rig.submission() as commands:
        commands.copy(a, b)
        commands.barrier(
            "copy before fill",
            "COPY",
            "CLEAR",
            weaker={"other direction": {"src": "CLEAR", "dst": "COPY"}, "from the blit stage": {"src": "BLIT"}},
        )
        commands.fill(a, 0x55667788)


@scenario(
    without={"copy before update": [write_after_read(UPDATE, COPY2)]},
    weakened={"copy before update / to the copy stage": [write_after_read(UPDATE, COPY2)]},
    rule="copies-use-the-copy-stage,fills-updates-and-clears-use-the-clear-stage",
)
def scenario_update_overwrites_what_a_copy2_read(rig: Rig) -> None:
    """An update after a read waits in the CLEAR stage; an execution dependency into COPY does not hold it back."""
    a, b = rig.buffer(64, data=bytes(range(64))), rig.buffer(64)
    with rig.submission() as commands:
        commands.copy(a, b, v2=True)
        commands.barrier("copy before update", "COPY", "CLEAR", weaker={"to the copy stage": {"dst": "COPY"}})
        commands.update(a, bytes(range(100, 132)), 16)


@scenario(
    without={"fill before copy": [write_after_write(COPY, FILL)]},
    weakened={
        "fill before copy / execution only": [write_after_write(COPY, FILL)],
        "fill before copy / visible to reads only": [write_after_write(COPY, FILL)],
    },
    rule="write-after-write",
)
def scenario_copy_overwrites_a_filled_buffer(rig: Rig) -> None:
    """A write after a write needs a memory dependency whose second scope names the write access."""
    a, b = rig.buffer(data=bytes(range(256))), rig.buffer()
    with rig.submission() as commands:
        commands.fill(b, 0x01010101)
        commands.barrier(
            "fill before copy",
            "CLEAR/TRANSFER_WRITE",
            "COPY/TRANSFER_WRITE",
            weaker={
                "execution only": {"src": "CLEAR", "dst": "COPY"},
                "visible to reads only": {"dst": "COPY/TRANSFER_READ"},
            },
        )
        commands.copy(a, b)


@scenario(
    without={"copy before copy": [write_after_write(COPY2, COPY)]},
    weakened={
        "copy before copy / half of it": [write_after_write(COPY2, COPY)],
        "copy before copy / no first access": [write_after_write(COPY2, COPY)],
    },
    rule="write-after-write,buffer-regions-are-exact",
)
def scenario_copy2_overwrites_a_copy(rig: Rig) -> None:
    """Two copies into one buffer need a dependency over every byte that both write."""
    a, b, c = rig.buffer(data=bytes(range(256))), rig.buffer(data=bytes(255 - i for i in range(256))), rig.buffer()
    with rig.submission() as commands:
        commands.copy(a, c)
        commands.barrier(
            "copy before copy",
            "COPY/TRANSFER_WRITE",
            "COPY/TRANSFER_WRITE",
            buffer=c,
            weaker={"half of it": {"size": 128}, "no first access": {"src": "COPY"}},
        )
        commands.copy(b, c, v2=True)


@scenario(
    without={"update before update": [write_after_write(UPDATE, UPDATE)]},
    weakened={
        "update before update / copy stages": [write_after_write(UPDATE, UPDATE)],
        "update before update / other bytes": [write_after_write(UPDATE, UPDATE)],
    },
    rule="write-after-write,fills-updates-and-clears-use-the-clear-stage",
)
def scenario_update_overwrites_an_update(rig: Rig) -> None:
    """Commands of one kind are no exception: two updates of the same bytes need a dependency from CLEAR to CLEAR."""
    a = rig.buffer(128)
    with rig.submission() as commands:
        commands.update(a, bytes(range(1, 65)))
        commands.barrier(
            "update before update",
            "CLEAR/TRANSFER_WRITE",
            "CLEAR/TRANSFER_WRITE",
            buffer=a,
            offset=32,
            size=32,
            weaker={
                "copy stages": {"src": "COPY/TRANSFER_WRITE", "dst": "COPY/TRANSFER_WRITE"},
                "other bytes": {"offset": 0},
            },
        )
        commands.update(a, bytes(range(129, 161)), 32)


@scenario(
    without={"first copy before second": [read_after_write("vkCmdCopyBuffer2KHR", COPY)]},
    weakened={"first copy before second / bytes before": [read_after_write("vkCmdCopyBuffer2KHR", COPY)]},
    needs=("VK_KHR_copy_commands2",),
    rule="copies-use-the-copy-stage,both-forms-of-a-command-mean-the-same",
)
def scenario_copy2_khr_is_the_same_command(rig: Rig) -> None:
    """The extension's name for a copy within one buffer reads and writes as the core command does."""
    a = rig.buffer(256, data=bytes(range(256)))
    vk = rig.vk
    region = vk.VkBufferCopy2(srcOffset=128, dstOffset=192, size=64)
    info = vk.VkCopyBufferInfo2(srcBuffer=a.handle, dstBuffer=a.handle, regionCount=1, pRegions=[region])
    copy2 = rig.function("vkCmdCopyBuffer2KHR")
    with rig.submission() as commands:
        commands.copy(a, a, (0, 128, 64))
        commands.barrier(
            "first copy before second",
            "COPY/TRANSFER_WRITE",
            "COPY/TRANSFER_READ",
            buffer=a,
            offset=128,
            size=64,
            weaker={"bytes before": {"offset": 64}},
        )
        copy2(commands.handle, info)
