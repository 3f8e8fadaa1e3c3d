"""Objects with initial data: staged over a transfer queue, or written where they lie; memory that is used again."""

from typing import Any

from vkharness.device.headless import DeviceQueue
from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer, RigImage
from vkharness.rig.memory_allocator import MemoryAllocator, MemoryDomain
from vkharness.rig.queues import SemaphoreUse
from vkharness.suite import Rig, race, read_after_write, scenario, write_after_read, write_after_write

COPY, UPLOAD, DOWNLOAD = "vkCmdCopyBuffer", "vkCmdCopyBufferToImage", "vkCmdCopyImageToBuffer"
DISPATCH, BARRIER, FILL, CLEAR = "vkCmdDispatch", "vkCmdPipelineBarrier2", "vkCmdFillBuffer", "vkCmdClearColorImage"
WRITTEN, COPIED = "COPY/TRANSFER_WRITE", "COPY/TRANSFER_READ"
RAMP = bytes(range(256))


def _staged(rig: Rig, allocator: MemoryAllocator, data: bytes, queue: DeviceQueue) -> tuple[RigBuffer, Commands]:
    """A buffer near the device, and the recorded copy of its initial data from a staging buffer."""
    staging, made = allocator.buffer(len(data), MemoryDomain.HOST, data=data), allocator.buffer(len(data))
    with rig.commands(queue=queue) as commands:
        commands.copy(staging, made)
    return made, commands


@scenario(
    without={"the semaphore": [race("READ_RACING_WRITE", DISPATCH, COPY)]},
    weakened={
        "the semaphore / at vertex input": [read_after_write(DISPATCH, COPY)],
        "the semaphore / at everything": [],
    },
    queues=["TRANSFER"],
    rule="a-semaphore-is-a-memory-dependency,a-wait-orders-its-stages",
)
def scenario_buffer_with_initial_data(rig: Rig) -> None:
    """A buffer that is uploaded over the transfer queue can be used when its usage's stages wait for a semaphore."""
    allocator, uploaded = MemoryAllocator(rig), rig.semaphore()
    source, upload = _staged(rig, allocator, RAMP, rig.queues[1])
    rig.submit(upload, signals=[SemaphoreUse(uploaded)], sync2=True)
    target, copy = allocator.buffer(256), rig.compute("copy_words")
    with rig.commands() as work:
        work.bind(copy, rig.descriptors(copy, b0=source, b1=target))
        work.dispatch()
    weaker = {"at vertex input": {"stages": "VERTEX_INPUT"}, "at everything": {"stages": "ALL_COMMANDS"}}
    rig.submit(work, waits=rig.operation("the semaphore", uploaded, "COMPUTE_SHADER", weaker=weaker), sync2=True)


@scenario(
    without={
        "to be written": [write_after_write(UPLOAD, BARRIER)],
        "the semaphore": [race("WRITE_RACING_WRITE", BARRIER, BARRIER)],
        "the release": [race("ownership-not-released", BARRIER, UPLOAD)],
        "the acquire": [race("ownership-not-acquired", DISPATCH, BARRIER)],
    },
    queues=["TRANSFER"],
    rule="contents-must-be-transferred-to-another-family,a-semaphore-orders-the-halves-of-a-transfer",
)
def scenario_image_with_initial_data(rig: Rig) -> None:
    """An image that the transfer queue fills goes to the graphics family: release, semaphore, acquire, then sampling.

    The one transition to the layout of sampling is in both halves."""
    allocator, uploaded = MemoryAllocator(rig), rig.semaphore()
    main, transfer = rig.queues
    staging = allocator.buffer(1024, MemoryDomain.HOST, data=RAMP * 4)
    image = allocator.image(exclusive=True)
    both: dict[str, Any] = {"image": image, "families": (transfer.family, main.family)}
    both |= {"old": "TRANSFER_DST_OPTIMAL", "new": "SHADER_READ_ONLY_OPTIMAL"}
    with rig.commands(queue=transfer) as upload:
        upload.transition(image, dst="COPY/TRANSFER_READ", new="TRANSFER_DST_OPTIMAL")
        upload.barrier("to be written", "ALL_COMMANDS", WRITTEN)
        upload.buffer_to_image(staging, image, at="TRANSFER_DST_OPTIMAL")
        upload.barrier("the release", WRITTEN, "NONE", **both)
    rig.submit(upload, signals=[SemaphoreUse(uploaded)], sync2=True)
    sample, result = rig.compute("sample_2d"), allocator.buffer(1024)
    at = rig.vk.VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL
    held = rig.descriptors(sample, b0=(rig.view(image), rig.sampler(), at), b1=result)
    with rig.commands() as work:
        work.barrier("the acquire", "NONE", "COMPUTE_SHADER/SHADER_SAMPLED_READ", **both)
        work.bind(sample, held)
        work.dispatch()
    rig.submit(work, waits=rig.operation("the semaphore", uploaded), sync2=True)


@scenario(
    weakened={"the data / after the submit": [write_after_read("host write", DISPATCH)]},
    rule="a-submit-shows-host-writes-to-the-device,a-host-write-waits-for-the-device",
)
def scenario_initial_data_without_staging(rig: Rig) -> None:
    """Where the host sees the memory near the device, initial data are written there: no staging buffer, no barrier."""
    allocator, copy = MemoryAllocator(rig), rig.compute("copy_words")
    source, target = allocator.buffer(256, MemoryDomain.LINKED_DEVICE_HOST), allocator.buffer(256)
    with rig.commands() as work:
        work.bind(copy, rig.descriptors(copy, b0=source, b1=target))
        work.dispatch()
    late = rig.choose("the data", False, {"after the submit": True})
    if not late:
        rig.host_write(source, RAMP)
    rig.submit(work)
    if late:
        rig.host_write(source, RAMP)


@scenario(
    without={"to the host": [read_after_write("host read", COPY)], "the wait": [read_after_write("host read", COPY)]},
    rule="a-host-read-needs-a-dependency-and-a-wait",
)
def scenario_read_back_to_cached_memory(rig: Rig) -> None:
    """Memory stays mapped for reading back; mapping it orders nothing, the barrier to the host and the wait do."""
    allocator = MemoryAllocator(rig)
    source = allocator.buffer(256, MemoryDomain.HOST, data=RAMP)
    result = allocator.buffer(256, MemoryDomain.CACHED_HOST)
    with rig.submission() as commands:
        commands.copy(source, result)
        commands.barrier("to the host", WRITTEN, "HOST/HOST_READ")
    rig.host_wait("the wait", "queue")
    rig.host_read(result)


@scenario(
    without={"old before new": [write_after_read(FILL, COPY)]},
    weakened={"the old buffer / kept": []},
    rule="buffers-conflict-where-they-share-memory",
)
def scenario_block_of_memory_given_again(rig: Rig) -> None:
    """A buddy allocator gives a block again at once: the new buffer's first use must come after the old one's last."""
    allocator, out = MemoryAllocator(rig), rig.buffer()
    old = allocator.buffer(256, dedicated=False)
    with rig.submission() as commands:
        commands.fill(old, 0x11111111)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", COPIED)
        commands.copy(old, out)
    if not rig.choose("the old buffer", False, {"kept": True}):
        allocator.give_back(old)
    new, more = allocator.buffer(200, dedicated=False), rig.buffer()
    with rig.submission() as commands:
        commands.barrier("old before new", "COPY", "CLEAR")
        commands.fill(new, 0x22222222)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", COPIED)
        commands.copy(new, more)


@scenario(
    without={"the old image": [write_after_read(BARRIER, DOWNLOAD)]},
    weakened={"memory / of its own": []},
    rule="an-image-overlaps-all-of-its-memory",
)
def scenario_image_in_a_block_given_again(rig: Rig) -> None:
    """An image in a block that another image had waits for it; one in dedicated memory waits for nothing."""
    allocator, out, more = MemoryAllocator(rig), rig.buffer(1024), rig.buffer(1024)
    first = allocator.image(dedicated=False)
    with rig.submission() as commands:
        commands.transition(first)
        commands.clear_color(first, 0x11111111)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", COPIED)
        commands.image_to_buffer(first, out)
    allocator.give_back(first)
    second: RigImage = allocator.image(dedicated=rig.choose("memory", False, {"of its own": True}))
    with rig.submission() as commands:
        commands.barrier("the old image", "COPY", "ALL_COMMANDS")
        commands.transition(second)
        commands.clear_color(second, 0x22222222)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", COPIED)
        commands.image_to_buffer(second, more)
