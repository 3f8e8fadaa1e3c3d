"""Frame contexts: what a frame used may be used again, or given away, when the fences of that frame are signaled."""

from functools import partial

from vkharness.device.headless import DeviceQueue
from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer
from vkharness.rig.frame_contexts import FrameContexts
from vkharness.rig.memory_allocator import MemoryAllocator, MemoryDomain
from vkharness.suite import Rig, scenario, write_after_read

COPY = "vkCmdCopyBuffer"
WRITTEN_TOO_EARLY = [write_after_read("host write", COPY)]
WRITTEN = "COPY/TRANSFER_WRITE"


def _data(number: int) -> bytes:
    """Returns the data that frame `number` uploads."""
    return bytes([number + 1, number + 2]) * 128


def _staging(allocator: MemoryAllocator, number: int) -> RigBuffer:
    """A staging buffer for that, in a chunk of the allocator."""
    return allocator.buffer(256, MemoryDomain.HOST, data=_data(number), dedicated=False)


def _upload(
    rig: Rig, source: RigBuffer, target: RigBuffer, offset: int = 0, queue: DeviceQueue | None = None
) -> Commands:
    """A recorded copy of 256 bytes, after the copies of earlier frames."""
    with rig.commands(queue=queue) as commands:
        commands.barrier("", WRITTEN, WRITTEN)
        commands.copy(source, target, (offset, 0, 256))
    return commands


@scenario(
    without={"the fence of the frame": WRITTEN_TOO_EARLY},
    weakened={"contexts / one": [], "contexts / three": []},
    rule="a-host-write-waits-for-the-device,a-fence-covers-everything-before-it",
)
def scenario_scratch_memory_of_frames(rig: Rig) -> None:
    """Scratch memory of a frame is written again when that frame's fence is signaled.

    As many frames as there are contexts need no wait. One context is in order, and waits in each frame."""
    frames, target = FrameContexts(rig, rig.choose("contexts", 2, {"one": 1, "three": 3})), rig.buffer()
    for number in range(3):
        frames.begin("the fence of the frame")
        place = frames.scratch(_data(number))
        frames.submit(_upload(rig, place.buffer, target, place.offset))


@scenario(
    without={"the fence of the frame": WRITTEN_TOO_EARLY},
    weakened={"the deletion / at once": WRITTEN_TOO_EARLY},
    rule="a-host-write-waits-for-the-device,buffers-conflict-where-they-share-memory",
)
def scenario_deletion_waits_for_its_frame(rig: Rig) -> None:
    """Memory that a frame lets go stays with its frame context. Given back at once, the next buffer gets it too early.

    Three frames in two contexts: the third one gets the memory of the first."""
    frames, allocator, target = FrameContexts(rig), MemoryAllocator(rig), rig.buffer()
    late = rig.choose("the deletion", True, {"at once": False})
    for number in range(3):
        frame = frames.begin("the fence of the frame")
        staging = _staging(allocator, number)
        frames.submit(_upload(rig, staging, target))
        if late:
            frame.later(partial(allocator.give_back, staging))
        else:
            allocator.give_back(staging)


@scenario(
    without={"the fences of the frame": WRITTEN_TOO_EARLY},
    weakened={"the fences of the frame / the first alone": WRITTEN_TOO_EARLY},
    queues=["TRANSFER"],
    rule="a-fence-covers-what-its-queue-had-waited-for",
)
def scenario_frame_on_two_queues(rig: Rig) -> None:
    """A frame that submitted to two queues is complete when a fence of each is signaled."""
    frames, targets = FrameContexts(rig, 1), [rig.buffer() for _ in rig.queues]
    for number in range(2):
        frames.begin("the fences of the frame")
        for queue, target in zip(rig.queues, targets, strict=True):
            place = frames.scratch(_data(number))
            frames.submit(_upload(rig, place.buffer, target, place.offset, queue))


@scenario(without={"idle": WRITTEN_TOO_EARLY}, rule="an-idle-queue-is-complete")
def scenario_idle_device_deletes_everything(rig: Rig) -> None:
    """When the device is idle all frames are complete, and what they deferred can be done."""
    frames, allocator, target = FrameContexts(rig), MemoryAllocator(rig), rig.buffer()
    for number in range(2):
        frame = frames.begin()
        staging = _staging(allocator, number)
        frames.submit(_upload(rig, staging, target))
        frame.later(partial(allocator.give_back, staging))
    frames.wait_idle("idle")
    again = _staging(allocator, 7)
    frames.begin()
    frames.submit(_upload(rig, again, target))
