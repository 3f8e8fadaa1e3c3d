"""Host writes to mapped memory: what is submitted later sees them, what is submitted already must be waited for."""

from vkharness.rig.core import RigBuffer
from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

COPIED = write_after_read("host write", "vkCmdCopyBuffer")
DISPATCHED = write_after_read("host write", "vkCmdDispatch")
OLD, NEW = bytes(range(256)), bytes(range(255, -1, -1))


def _copy_of(rig: Rig, a: RigBuffer, b: RigBuffer) -> None:
    """Submits a copy of one buffer to another."""
    with rig.submission() as commands:
        commands.copy(a, b)


@scenario(weakened={"host write / after the submit": [COPIED]}, rule="a-submit-shows-host-writes-to-the-device")
def scenario_host_writes_before_a_submit_are_visible(rig: Rig) -> None:
    """A submit makes earlier host writes available and visible: no barrier is due. Later ones race with its reads."""
    a, b = rig.buffer(), rig.buffer()
    late = rig.choose("host write", False, {"after the submit": True})
    if not late:
        rig.host_write(a, NEW)
    _copy_of(rig, a, b)
    if late:
        rig.host_write(a, NEW)


@scenario(
    weakened={"host write / after the submit": [DISPATCHED]},
    rule="a-submit-shows-host-writes-to-the-device,a-host-write-waits-for-the-device",
)
def scenario_host_writes_of_a_uniform_block(rig: Rig) -> None:
    """Parameters written by the host, read by a shader: the usual case of a write too early or too late."""
    a, b = rig.buffer(), rig.buffer()
    pipeline = rig.compute("sum_uniform")
    rig.host_write(a, OLD)
    with rig.commands() as commands:
        commands.bind(pipeline, rig.descriptors(pipeline, b0=a, b1=b))
        commands.dispatch()
    if rig.choose("host write", True, {"after the submit": False}):
        rig.host_write(a, NEW, 0)
        rig.submit(commands)
    else:
        rig.submit(commands)
        rig.host_write(a, NEW, 0)


@scenario(
    weakened={"host write / after the submit": [write_after_read("host write", "vkCmdDispatchIndirect")]},
    rule="a-submit-shows-host-writes-to-the-device,a-host-write-waits-for-the-device",
)
def scenario_host_writes_of_indirect_parameters(rig: Rig) -> None:
    """The parameters of an indirect dispatch are read when it executes, not when it is submitted."""
    parameters, a = rig.buffer(64), rig.buffer()
    pipeline = rig.compute("fill_words")
    rig.host_write(parameters, bytes((1, 0, 0, 0)) * 3)
    with rig.commands() as commands:
        commands.bind(pipeline, rig.descriptors(pipeline, b0=a))
        commands.push_constants(pipeline, 0x100)
        commands.dispatch_indirect(parameters)
    late = rig.choose("host write", False, {"after the submit": True})
    if late:
        rig.submit(commands)
    rig.host_write(parameters, bytes(4))
    if not late:
        rig.submit(commands)


@scenario(weakened={"written bytes / of the copy": [COPIED]}, rule="host-accesses-conflict-byte-by-byte")
def scenario_host_writes_beside_what_the_device_reads(rig: Rig) -> None:
    """While a copy of half a buffer is pending, the host may write the other half."""
    a, b = rig.buffer(), rig.buffer()
    with rig.commands() as commands:
        commands.copy(a, b, (0, 0, 128), v2=True)
    rig.submit(commands, sync2=True)
    if rig.choose("written bytes", True, {"of the copy": False}):
        rig.host_write(a, NEW[:128], 128)
    else:
        with rig.submission() as other:
            other.copy(a, b, (128, 128, 128))
        rig.host_write(a, NEW[:128], 128)


@scenario(weakened={"host write / of what is read": [COPIED]}, rule="host-accesses-conflict-byte-by-byte")
def scenario_host_writes_beside_what_the_device_writes(rig: Rig) -> None:
    """Device writes to mapped memory are no host writes: only what the host itself changes is judged."""
    memory = rig.memory(1024)
    a, b = rig.buffer(256, memory), rig.buffer(256, memory, 512)
    mapped = rig.vk.vkMapMemory(rig.device, memory, 0, 1024, 0)
    mapped[:256] = OLD
    _copy_of(rig, a, b)
    at = rig.choose("host write", 256, {"of what is read": 0})
    mapped[at : at + 256] = NEW
    rig.submit_batches()
    rig.wait()
    rig.vk.vkUnmapMemory(rig.device, memory)


@scenario(without={"first wait": [COPIED]}, rule="a-host-write-waits-for-the-device")
def scenario_persistent_mapping(rig: Rig) -> None:
    """Memory that stays mapped: each rewrite waits for the work that reads the bytes of before."""
    a, b, c = rig.buffer(), rig.buffer(), rig.buffer()
    mapped = rig.vk.vkMapMemory(rig.device, a.memory, 0, a.size, 0)
    mapped[:] = OLD
    _copy_of(rig, a, b)
    rig.host_wait("first wait", "queue")
    mapped[:] = NEW
    _copy_of(rig, a, c)
    rig.wait()
    rig.vk.vkUnmapMemory(rig.device, a.memory)


@scenario(
    without={"first wait": [COPIED]}, weakened={"frames / one": [COPIED]}, rule="a-host-write-waits-for-the-device"
)
def scenario_two_frames_in_flight(rig: Rig) -> None:
    """A staging buffer of two frames: the first half is written again when its frame's fence is signaled."""
    staging = rig.buffer(512)
    frames = rig.choose("frames", 2, {"one": 1})
    fences = [rig.fence() for _ in range(3)]
    targets = [rig.buffer() for _ in range(3)]
    for number, fence in enumerate(fences):
        at = 256 * (number % frames)
        if number == 2:
            rig.host_wait("first wait", "all", fences[0])
        rig.host_write(staging, bytes((number + 1,)) * 256, at)
        with rig.commands() as commands:
            commands.copy(staging, targets[number], (at, 0, 256))
        rig.submit(commands, fence=fence)


@scenario(without={"first wait": [COPIED]}, rule="a-flush-says-that-the-host-wrote")
def scenario_flushed_host_writes(rig: Rig) -> None:
    """Flushing mapped memory says when the host wrote: at the latest then the device must be done with the bytes."""
    vk = rig.vk
    a, b, c = rig.buffer(), rig.buffer(), rig.buffer()
    mapped = vk.vkMapMemory(rig.device, a.memory, 0, a.size, 0)
    everything = [vk.VkMappedMemoryRange(memory=a.memory, offset=0, size=0xFFFFFFFFFFFFFFFF)]
    mapped[:] = OLD
    vk.vkFlushMappedMemoryRanges(rig.device, 1, everything)
    _copy_of(rig, a, b)
    rig.host_wait("first wait", "device")
    mapped[:] = NEW
    vk.vkFlushMappedMemoryRanges(rig.device, 1, everything)
    _copy_of(rig, a, c)
    rig.wait()
    vk.vkUnmapMemory(rig.device, a.memory)


@scenario(
    without={
        "wait": [write_after_write("host write", "vkCmdFillBuffer")],
        "to the host": [write_after_write("host write", "vkCmdFillBuffer")],
    },
    weakened={
        "to the host / to its reads": [],
        "to the host / execution only": [write_after_write("host write", "vkCmdFillBuffer")],
    },
    rule="a-host-write-waits-for-the-device,a-host-write-needs-the-host-domain",
)
def scenario_host_writes_over_device_writes(rig: Rig) -> None:
    """A host write over bytes that the device is still writing loses one of the two. When the device has done with
    them, its write must also be available to the host, so that it cannot reach memory afterwards."""
    a = rig.buffer()
    with rig.submission() as commands:
        commands.fill(a, 0x11111111)
        commands.barrier(
            "to the host",
            "CLEAR/TRANSFER_WRITE",
            "HOST/HOST_WRITE",
            weaker={"to its reads": {"dst": "HOST/HOST_READ"}, "execution only": {"dst": "HOST"}},
        )
    rig.host_wait("wait", "queue")
    rig.host_write(a, NEW)


@scenario(
    without={"fill before copy": [read_after_write("vkCmdCopyBuffer", "vkCmdFillBuffer")]},
    weakened={
        "fill before copy / to the host": [read_after_write("vkCmdCopyBuffer", "vkCmdFillBuffer")],
        "fill before copy / from the host": [read_after_write("vkCmdCopyBuffer", "vkCmdFillBuffer")],
    },
    rule="the-host-stage-is-the-host-alone",
)
def scenario_host_stage_orders_no_commands(rig: Rig) -> None:
    """HOST in a barrier stands for the host's accesses: it makes device writes visible to no command."""
    a, b = rig.buffer(), rig.buffer()
    with rig.submission() as commands:
        commands.fill(a, 0x22222222)
        commands.barrier(
            "fill before copy",
            "CLEAR|COPY/TRANSFER_WRITE",
            "COPY/TRANSFER_READ",
            weaker={"to the host": {"dst": "HOST/HOST_READ"}, "from the host": {"src": "HOST/HOST_WRITE"}},
        )
        commands.copy(a, b)
        commands.barrier("", "COPY/TRANSFER_WRITE", "HOST/HOST_READ")


@scenario(
    weakened={"host write / after the submit": [COPIED]},
    rule="a-submit-shows-host-writes-to-the-device,the-host-stage-is-the-host-alone",
)
def scenario_barrier_from_the_host_stage(rig: Rig) -> None:
    """A barrier from HOST to COPY adds nothing to a host write before the submit and mends none after it."""
    a, b = rig.buffer(), rig.buffer()
    with rig.commands() as commands:
        commands.barrier("", "HOST/HOST_WRITE", "ALL_TRANSFER/TRANSFER_READ", sync2=False)
        commands.copy(a, b)
    if rig.choose("host write", True, {"after the submit": False}):
        rig.host_write(a, NEW)
        rig.submit(commands)
    else:
        rig.submit(commands)
        rig.host_write(a, NEW)
