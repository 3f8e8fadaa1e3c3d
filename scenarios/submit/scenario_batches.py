"""Command buffers of a batch, batches of a submit, and the forms of vkQueueSubmit."""

from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

RAW = read_after_write("vkCmdCopyBuffer", "vkCmdFillBuffer")
RAW2 = read_after_write("vkCmdCopyBuffer2", "vkCmdFillBuffer")
WAR = write_after_read("vkCmdFillBuffer", "vkCmdCopyBuffer")
WAW = write_after_write("vkCmdFillBuffer", "vkCmdFillBuffer")
WRITE, READ = "ALL_TRANSFER/TRANSFER_WRITE", "ALL_TRANSFER/TRANSFER_READ"


@scenario(
    without={"between": [RAW]}, weakened={"between / execution only": [RAW]}, rule="submission-order-is-no-dependency"
)
def scenario_two_command_buffers_of_one_batch(rig: Rig) -> None:
    """Command buffers of one batch are ordered as little as those of two submits."""
    a, b = rig.buffer(), rig.buffer()
    with rig.commands() as first:
        first.fill(a, 0x01020304)
    with rig.commands() as second:
        second.barrier(
            "between", WRITE, READ, weaker={"execution only": {"src": "ALL_TRANSFER", "dst": "ALL_TRANSFER"}}
        )
        second.copy(a, b)
    rig.submit(first, second)


@scenario(without={"the third": [RAW]}, weakened={"the third / backwards": [RAW]}, rule="barriers-reach-over-submits")
def scenario_barrier_in_a_third_command_buffer(rig: Rig) -> None:
    """A command buffer that holds nothing but a barrier orders those before and after it."""
    a, b = rig.buffer(), rig.buffer()
    with rig.commands() as first:
        first.fill(a, 0x02030405)
    with rig.commands() as third:
        third.barrier("the third", WRITE, READ, sync2=False, weaker={"backwards": {"src": READ, "dst": WRITE}})
    with rig.commands() as second:
        second.copy(a, b)
    rig.submit(first, third, second, sync2=True)


@scenario(
    weakened={"barrier between / barrier last": [RAW], "barrier between / barrier first": [RAW]},
    rule="a-barrier-covers-what-came-before-it,submission-order-is-no-dependency",
)
def scenario_order_of_command_buffers_decides(rig: Rig) -> None:
    """A barrier orders what is submitted before it with what comes after, in whatever order it was recorded."""
    a, b = rig.buffer(), rig.buffer()
    with rig.commands() as barrier:
        barrier.barrier("", WRITE, READ)
    with rig.commands() as copies:
        copies.copy(a, b)
    with rig.commands() as fills:
        fills.fill(a, 0x03040506)
    orders = {"barrier last": (fills, copies, barrier), "barrier first": (barrier, fills, copies)}
    rig.submit(*rig.choose("barrier between", (fills, barrier, copies), orders))


@scenario(
    without={"between batches": [WAR]},
    weakened={"between batches / other stages": [WAR]},
    rule="submission-order-is-no-dependency",
)
def scenario_batches_of_one_submit(rig: Rig) -> None:
    """Batches of one submit begin in order and overlap all the same."""
    a, b = rig.buffer(), rig.buffer()
    with rig.commands() as first:
        first.copy(a, b)
    with rig.commands() as second:
        second.barrier("between batches", "COPY", "ALL_TRANSFER", weaker={"other stages": {"src": "COMPUTE_SHADER"}})
        second.fill(a, 0x04050607)
    rig.submit_batches([first], [second])


@scenario(without={"first and second": [WAW], "second and third": [RAW2]}, rule="submission-order-is-no-dependency")
def scenario_three_batches_of_several_command_buffers(rig: Rig) -> None:
    """With vkQueueSubmit2 too, each pair that conflicts needs its barrier, in whatever batch the two are."""
    a, b, c = rig.buffer(), rig.buffer(), rig.buffer()
    with rig.commands() as first:
        first.fill(a, 0x05060708)
    with rig.commands() as unrelated:
        unrelated.fill(c, 0x06070809)
    with rig.commands() as second:
        second.barrier("first and second", "CLEAR/TRANSFER_WRITE", "CLEAR/TRANSFER_WRITE", buffer=a)
        second.fill(a, 0x0708090A)
    with rig.commands() as third:
        third.barrier("second and third", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ", buffer=a)
        third.copy(a, b, v2=True)
    rig.submit_batches([first, unrelated], [second], [third], sync2=True)


@scenario(
    without={"between": [RAW]},
    weakened={"between / execution only": [RAW]},
    needs=("VK_KHR_synchronization2",),
    rule="both-forms-of-a-command-mean-the-same",
)
def scenario_extension_names_mean_the_same(rig: Rig) -> None:
    """The commands of VK_KHR_synchronization2 do what the core ones do."""
    vk = rig.vk
    a, b = rig.buffer(), rig.buffer()
    masks = {"srcStageMask": 1 << 35, "srcAccessMask": 0x1000, "dstStageMask": 1 << 32, "dstAccessMask": 0x800}
    with rig.commands() as first:
        first.fill(a, 0x08090A0B)
    with rig.commands() as second:
        chosen = rig.choose("between", masks, {"execution only": {**masks, "srcAccessMask": 0, "dstAccessMask": 0}})
        if chosen is not None:
            info = vk.VkDependencyInfo(pMemoryBarriers=[vk.VkMemoryBarrier2(**chosen)])
            rig.function("vkCmdPipelineBarrier2KHR")(second.handle, info)
        second.copy(a, b)
    submit = rig.function("vkQueueSubmit2KHR")
    for each in (first, second):
        infos = [vk.VkCommandBufferSubmitInfo(commandBuffer=each.handle)]
        submit(rig.queue, 1, [vk.VkSubmitInfo2(pCommandBufferInfos=infos)], None)


@scenario(without={"between": [WAW]}, rule="submission-order-is-no-dependency")
def scenario_empty_batches_order_nothing(rig: Rig) -> None:
    """A submit without batches, and a batch without command buffers, are no dependency."""
    a = rig.buffer()
    with rig.commands() as first:
        first.fill(a, 0x090A0B0C)
    with rig.commands() as second:
        second.barrier("between", WRITE, WRITE)
        second.fill(a, 0x0A0B0C0D)
    rig.submit(first)
    rig.submit_batches()
    rig.submit_batches([], [])
    rig.submit(second)
