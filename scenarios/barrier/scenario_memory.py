"""Parts of a memory dependency: execution, availability, visibility, in the right direction, over the right bytes."""

from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED, VK_WHOLE_SIZE
from vkharness.suite import Rig, read_after_write, scenario, write_after_read

FILL, UPDATE, COPY, COPY2 = "vkCmdFillBuffer", "vkCmdUpdateBuffer", "vkCmdCopyBuffer", "vkCmdCopyBuffer2"
BYTES, OTHERS = bytes(range(256)), bytes(255 - i for i in range(256))


@scenario(
    without={"between": [read_after_write(COPY, COPY), write_after_read(COPY, COPY)]},
    weakened={
        "between / execution only": [read_after_write(COPY, COPY)],
        "between / read to write": [read_after_write(COPY, COPY)],
        "between / from clears": [read_after_write(COPY, COPY), write_after_read(COPY, COPY)],
    },
    rule="read-after-write,write-after-read",
)
def scenario_execution_orders_writes_after_reads_only(rig: Rig) -> None:
    """After a copy from a to b, a copy back reads b and writes a: execution is enough for a, not for b."""
    a, b = rig.buffer(data=BYTES), rig.buffer(data=OTHERS)
    with rig.submission() as commands:
        commands.copy(a, b, (0, 0, 128))
        commands.barrier(
            "between",
            "ALL_TRANSFER/TRANSFER_WRITE",
            "ALL_TRANSFER/TRANSFER_READ",
            sync2=False,
            weaker={
                "execution only": {"src": "ALL_TRANSFER", "dst": "ALL_TRANSFER"},
                "read to write": {"src": "ALL_TRANSFER/TRANSFER_READ", "dst": "ALL_TRANSFER/TRANSFER_WRITE"},
                "from clears": {"src": "CLEAR/TRANSFER_WRITE", "sync2": True},
            },
        )
        commands.copy(b, a, (64, 0, 128))


@scenario(
    without={"on b": [read_after_write(COPY, COPY), write_after_read(COPY, COPY)]},
    weakened={"on b / read to write": [read_after_write(COPY, COPY)]},
    rule="every-barrier-orders-execution",
)
def scenario_buffer_barrier_orders_execution_on_other_buffers(rig: Rig) -> None:
    """A buffer barrier of vkCmdPipelineBarrier that names b is an execution dependency for a as well."""
    a, b = rig.buffer(data=BYTES), rig.buffer(data=OTHERS)
    with rig.submission() as commands:
        commands.copy(a, b, (0, 0, 128))
        commands.barrier(
            "on b",
            "ALL_TRANSFER/TRANSFER_WRITE",
            "ALL_TRANSFER/TRANSFER_READ",
            buffer=b,
            sync2=False,
            weaker={"read to write": {"src": "ALL_TRANSFER/TRANSFER_READ", "dst": "ALL_TRANSFER/TRANSFER_WRITE"}},
        )
        commands.copy(b, a, (64, 0, 128))


@scenario(
    without={"on b": [read_after_write(COPY2, COPY2), write_after_read(COPY2, COPY2)]},
    weakened={
        "on b / read to write": [read_after_write(COPY2, COPY2)],
        "on b / from blits": [read_after_write(COPY2, COPY2), write_after_read(COPY2, COPY2)],
    },
    rule="every-barrier-orders-execution",
)
def scenario_buffer_barrier2_orders_execution_on_other_buffers(rig: Rig) -> None:
    """The same holds for vkCmdPipelineBarrier2, between the stages of each barrier."""
    a, b = rig.buffer(data=BYTES), rig.buffer(data=OTHERS)
    with rig.submission() as commands:
        commands.copy(a, b, (0, 0, 128), v2=True)
        commands.barrier(
            "on b",
            "COPY/TRANSFER_WRITE",
            "COPY/TRANSFER_READ",
            buffer=b,
            weaker={
                "read to write": {"src": "COPY/TRANSFER_READ", "dst": "COPY/TRANSFER_WRITE"},
                "from blits": {"src": "BLIT/TRANSFER_WRITE"},
            },
        )
        commands.copy(b, a, (64, 0, 128), v2=True)


@scenario(
    without={"on the image": [write_after_read(FILL, "vkCmdCopyBufferToImage")]},
    weakened={"on the image / into copies": [write_after_read(FILL, "vkCmdCopyBufferToImage")]},
    rule="every-barrier-orders-execution",
)
def scenario_image_barrier_orders_execution_on_buffers(rig: Rig) -> None:
    """The image barrier after an upload lets the staging buffer be filled again: no barrier on the buffer is needed."""
    data, a = rig.buffer(1024, data=BYTES * 4), rig.image()
    with rig.submission() as commands:
        commands.transition(a)
        commands.buffer_to_image(data, a)
        commands.barrier(
            "on the image",
            "COPY/TRANSFER_WRITE",
            "CLEAR/TRANSFER_WRITE",
            image=a,
            weaker={"into copies": {"dst": "COPY/TRANSFER_WRITE"}},
        )
        commands.fill(data, 0x80818283)


@scenario(
    without={"update before copy": [read_after_write(COPY, UPDATE)]},
    weakened={
        "update before copy / other direction": [read_after_write(COPY, UPDATE)],
        "update before copy / access masks changed over": [read_after_write(COPY, UPDATE)],
        "update before copy / other buffer": [read_after_write(COPY, UPDATE)],
        "update before copy / first quarter": [read_after_write(COPY, UPDATE)],
    },
    rule="a-barrier-covers-what-came-before-it,a-ranged-barrier-covers-its-range",
)
def scenario_buffer_barrier_has_a_direction_and_a_range(rig: Rig) -> None:
    """A buffer barrier helps only from the write to the read, for the buffer and the bytes that it names."""
    a, b = rig.buffer(), rig.buffer()
    with rig.submission() as commands:
        commands.update(a, OTHERS)
        commands.barrier(
            "update before copy",
            "CLEAR/TRANSFER_WRITE",
            "COPY/TRANSFER_READ",
            buffer=a,
            weaker={
                "other direction": {"src": "COPY/TRANSFER_READ", "dst": "CLEAR/TRANSFER_WRITE"},
                "access masks changed over": {"src": "CLEAR/MEMORY_READ", "dst": "COPY/MEMORY_WRITE"},
                "other buffer": {"buffer": b},
                "first quarter": {"size": 64},
            },
        )
        commands.copy(a, b)


@scenario(
    without={"after": [read_after_write(COPY, FILL)]},
    weakened={"after / nothing of memory": [read_after_write(COPY, FILL)]},
    rule="a-barrier-covers-what-came-before-it",
)
def scenario_a_barrier_covers_what_was_recorded_before_it(rig: Rig) -> None:
    """The strongest barrier does nothing for a write that comes after it."""
    a, b = rig.buffer(), rig.buffer()
    everything = ("ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE", "ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE")
    with rig.submission() as commands:
        commands.barrier("", *everything)
        commands.fill(a, 0xFEDCBA98)
        commands.barrier(
            "after", *everything, weaker={"nothing of memory": {"src": "ALL_COMMANDS", "dst": "ALL_COMMANDS"}}
        )
        commands.copy(a, b)
        commands.barrier("", *everything)


@scenario(
    without={"both": [read_after_write(COPY, FILL), write_after_read(UPDATE, COPY2)]},
    weakened={
        "both / the first": [write_after_read(UPDATE, COPY2)],
        "both / the second": [read_after_write(COPY, FILL)],
        "both / the first twice": [write_after_read(UPDATE, COPY2)],
    },
    rule="barriers-of-one-command-add-up",
)
def scenario_barriers_of_one_command_add_up(rig: Rig) -> None:
    """One command with a dependency for each of two buffers serves both."""
    a, b, c, d = rig.buffer(), rig.buffer(), rig.buffer(data=BYTES), rig.buffer()
    first = {"src": "CLEAR/TRANSFER_WRITE", "dst": "COPY/TRANSFER_READ", "buffer": a}
    second = {"src": "COPY", "dst": "CLEAR"}
    with rig.submission() as commands:
        commands.fill(a, 0x19283746)
        commands.copy(c, d, v2=True)
        commands.barriers(
            "both",
            first,
            second,
            weaker={"the first": [first], "the second": [second], "the first twice": [first, first]},
        )
        commands.copy(a, b)
        commands.update(c, bytes(128))


@scenario(
    without={"fills before copies": [read_after_write(COPY, FILL)]},
    weakened={"fills before copies / one of two buffers": [read_after_write(COPY, FILL)]},
    needs=("VK_KHR_synchronization2",),
    rule="barriers-of-one-command-add-up,both-forms-of-a-command-mean-the-same",
)
def scenario_barrier2_khr_is_the_same_command(rig: Rig) -> None:
    """vkCmdPipelineBarrier2KHR makes two fills visible by two buffer barriers; by one of them, one fill."""
    a, b, c = rig.buffer(), rig.buffer(), rig.buffer(512)
    covered = rig.choose("fills before copies", (a, b), {"one of two buffers": (a,)})
    with rig.submission() as commands:
        commands.fill(a, 0x11111111)
        commands.fill(b, 0x22222222)
        if covered is not None:
            vk = rig.vk
            made = [
                vk.VkBufferMemoryBarrier2(
                    srcStageMask=vk.VK_PIPELINE_STAGE_2_CLEAR_BIT,
                    srcAccessMask=vk.VK_ACCESS_2_TRANSFER_WRITE_BIT,
                    dstStageMask=vk.VK_PIPELINE_STAGE_2_COPY_BIT,
                    dstAccessMask=vk.VK_ACCESS_2_TRANSFER_READ_BIT,
                    srcQueueFamilyIndex=VK_QUEUE_FAMILY_IGNORED,
                    dstQueueFamilyIndex=VK_QUEUE_FAMILY_IGNORED,
                    buffer=each.handle,
                    size=VK_WHOLE_SIZE,
                )
                for each in covered
            ]
            info = vk.VkDependencyInfo(bufferMemoryBarrierCount=len(made), pBufferMemoryBarriers=made)
            rig.function("vkCmdPipelineBarrier2KHR")(commands.handle, info)
        commands.copy(a, c)
        commands.copy(b, c, (0, 256, 256))
