"""Reads of mapped memory: what the device wrote must be complete, and made visible to the host by a dependency."""

import vkharness
from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer
from vkharness.rig.queues import SemaphoreUse
from vkharness.suite import Rig, read_after_write, scenario, write_after_read

FILL, COPY, DISPATCH, READ, INVALIDATE = (
    "vkCmdFillBuffer",
    "vkCmdCopyBuffer",
    "vkCmdDispatch",
    "host read",
    "vkInvalidateMappedMemoryRanges",
)
UNSEEN = [read_after_write(READ, FILL)]
FILLED, COPIED, TO_HOST = "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_WRITE", "HOST/HOST_READ"


def _filled(rig: Rig, target: RigBuffer, value: int) -> Commands:
    """A recorded fill after others, with the dependency to the host."""
    with rig.commands() as commands:
        commands.barrier("", FILLED, FILLED)
        commands.fill(target, value)
        commands.barrier("", FILLED, TO_HOST)
    return commands


@scenario(
    without={"to the host": UNSEEN, "the wait": UNSEEN},
    weakened={
        "to the host / execution only": UNSEEN,
        "to the host / for host writes": UNSEEN,
        "to the host / for every command": UNSEEN,
        "to the host / after copies": UNSEEN,
        "to the host / every access of the host": [],
        "to the host / after everything": [],
        "the wait / earlier fence": UNSEEN,
        "the wait / any of two": UNSEEN,
        "the wait / status": [],
        "the wait / device": [],
    },
    rule="a-host-read-needs-a-dependency-and-a-wait",
)
def scenario_host_reads_what_a_fill_wrote(rig: Rig) -> None:
    """A read-back needs both: a memory dependency to HOST_READ, and a wait of the host that covers it."""
    a = rig.buffer()
    earlier, fence = rig.fence(), rig.fence()
    rig.submit_batches(fence=earlier)
    with rig.commands() as commands:
        commands.fill(a, 0x11223344)
        commands.barrier(
            "to the host",
            FILLED,
            TO_HOST,
            weaker={
                "execution only": {"src": "CLEAR", "dst": "HOST"},
                "for host writes": {"dst": "HOST/HOST_WRITE"},
                "for every command": {"dst": "ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE"},
                "after copies": {"src": COPIED},
                "every access of the host": {"dst": "HOST/MEMORY_READ|MEMORY_WRITE"},
                "after everything": {"src": "ALL_COMMANDS/MEMORY_WRITE"},
            },
        )
    rig.submit(commands, fence=fence)
    rig.host_wait(
        "the wait",
        "all",
        fence,
        weaker={
            "earlier fence": {"fences": (earlier,)},
            "any of two": {"how": "any", "fences": (earlier, fence)},
            "status": {"how": "status"},
            "device": {"how": "device"},
        },
    )
    rig.host_read(a)


@scenario(
    without={"to the host": [read_after_write(READ, DISPATCH)], "the wait": [read_after_write(READ, DISPATCH)]},
    weakened={
        "to the host / after uniform reads": [read_after_write(READ, DISPATCH)],
        "to the host / of the other half": [read_after_write(READ, DISPATCH)],
        "to the host / of the buffer alone": [],
    },
    rule="a-host-read-needs-a-dependency-and-a-wait",
)
def scenario_host_reads_what_a_shader_computed(rig: Rig) -> None:
    """The result of a dispatch, in the first form of the barrier."""
    a = rig.buffer()
    pipeline = rig.compute("fill_words")
    with rig.submission() as commands:
        commands.bind(pipeline, rig.descriptors(pipeline, b0=a))
        commands.push_constants(pipeline, 0x700)
        commands.dispatch()
        commands.barrier(
            "to the host",
            "COMPUTE_SHADER/SHADER_WRITE",
            TO_HOST,
            sync2=False,
            weaker={
                "after uniform reads": {"src": "COMPUTE_SHADER/UNIFORM_READ"},
                "of the other half": {"buffer": a, "offset": 128, "size": 128},
                "of the buffer alone": {"buffer": a},
            },
        )
    rig.host_wait("the wait", "queue")
    rig.host_read(a, 0, 128)


@scenario(
    without={"to the host": UNSEEN, "the wait": UNSEEN},
    weakened={"the wait / for the fill alone": UNSEEN},
    rule="a-host-read-needs-a-dependency-and-a-wait",
)
def scenario_wait_covers_the_dependency_to_the_host(rig: Rig) -> None:
    """The dependency may come in a later submit; the wait must cover that one, and not only the write."""
    a = rig.buffer()
    filled, visible = rig.fence(), rig.fence()
    with rig.commands() as fill:
        fill.fill(a, 0x21212121)
    rig.submit(fill, fence=filled)
    with rig.commands() as later:
        later.barrier("to the host", FILLED, TO_HOST)
    rig.submit(later, fence=visible, sync2=True)
    rig.host_wait("the wait", "all", visible, weaker={"for the fill alone": {"fences": (filled,)}})
    rig.host_read(a)


@scenario(
    without={"to the host": UNSEEN},
    weakened={"to the host / after nothing": [], "to the host / after shaders": [], "to the host / top of pipe": []},
    rule="a-host-read-needs-a-dependency-and-a-wait",
)
def scenario_dependency_to_the_host_after_a_wait(rig: Rig) -> None:
    """A write that was waited for long ago can still be made visible to the host, by a submit of a barrier alone: the
    wait made it available, and it comes before every stage of the submit."""
    a = rig.buffer()
    with rig.submission() as fill:
        fill.fill(a, 0x31313131)
    rig.wait()
    with rig.submission() as later:
        later.barrier(
            "to the host",
            FILLED,
            TO_HOST,
            weaker={
                "after nothing": {"src": "NONE"},
                "after shaders": {"src": "COMPUTE_SHADER"},
                "top of pipe": {"src": "TOP_OF_PIPE"},
            },
        )
    rig.wait()
    rig.host_read(a)


@scenario(
    without={"to the host": UNSEEN},
    weakened={"to the host / for copies": UNSEEN},
    rule="a-dependency-to-the-host-is-about-all-memory",
)
def scenario_dependency_to_the_host_of_another_buffer(rig: Rig) -> None:
    """A buffer barrier to the host shows it all that is available, whatever buffer it names."""
    a, b = rig.buffer(), rig.buffer()
    with rig.submission() as fill:
        fill.fill(a, 0x51515151)
    rig.wait()
    with rig.submission() as later:
        later.barrier("to the host", FILLED, TO_HOST, buffer=b, weaker={"for copies": {"dst": "COPY/TRANSFER_READ"}})
    rig.wait()
    rig.host_read(a)


@scenario(
    without={"fill before copy": [read_after_write(COPY, FILL), *UNSEEN], "to the host": UNSEEN},
    weakened={"to the host / after shaders": UNSEEN, "to the host / execution of copies": []},
    rule="a-host-read-needs-a-dependency-and-a-wait",
)
def scenario_dependency_to_the_host_through_a_chain(rig: Rig) -> None:
    """A write that one barrier made available reaches the host by a second one from where the first one ended."""
    a, b = rig.buffer(), rig.buffer()
    with rig.submission() as commands:
        commands.fill(a, 0x41414141)
        commands.barrier("fill before copy", FILLED, "COPY/TRANSFER_READ")
        commands.copy(a, b)
        commands.barrier(
            "to the host",
            "COPY/TRANSFER_READ",
            TO_HOST,
            weaker={"after shaders": {"src": "COMPUTE_SHADER/SHADER_READ"}, "execution of copies": {"src": "COPY"}},
        )
    rig.wait()
    rig.host_read(a)


@scenario(
    without={"wait of the frame": UNSEEN},
    weakened={"wait of the frame / of the frame before": UNSEEN, "frames / one": UNSEEN},
    rule="a-host-read-needs-a-dependency-and-a-wait",
)
def scenario_read_back_of_frames_in_flight(rig: Rig) -> None:
    """Two frames in flight: the one that is read is waited for, the next one is pending beside it."""
    frames = rig.choose("frames", 2, {"one": 1})
    results = rig.buffer(512)
    fences = [rig.fence() for _ in range(3)]
    rig.submit_batches(fence=fences[0])
    for number in (0, 1):
        with rig.commands() as commands:
            commands.barrier("", FILLED, FILLED)
            commands.fill(results, 0x50505050 + number, 256 * (number % frames), 256)
            commands.barrier("", FILLED, TO_HOST)
        rig.submit(commands, fence=fences[number + 1])
    rig.host_wait("wait of the frame", "all", fences[1], weaker={"of the frame before": {"fences": (fences[0],)}})
    rig.host_read(results, 0, 256)
    rig.wait()


@scenario(
    without={"to the host": [read_after_write(READ, "vkCmdCopyImageToBuffer")]},
    weakened={
        "to the host / after clears": [read_after_write(READ, "vkCmdCopyImageToBuffer")],
        "to the host / after transfers": [],
    },
    rule="a-host-read-needs-a-dependency-and-a-wait",
)
def scenario_host_reads_a_picture(rig: Rig) -> None:
    """A screenshot: an image is copied to a buffer, and the buffer is read."""
    image, target = rig.image(extent=(8, 8, 1)), rig.buffer()
    with rig.submission() as commands:
        commands.transition(image)
        commands.clear_color(image)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, target)
        commands.barrier(
            "to the host",
            COPIED,
            TO_HOST,
            weaker={"after clears": {"src": FILLED}, "after transfers": {"src": "ALL_TRANSFER/TRANSFER_WRITE"}},
        )
    rig.wait()
    rig.host_read(target)


@scenario(
    without={"the wait": UNSEEN},
    weakened={"the wait / for a value before": UNSEEN, "the wait / by the counter": []},
    rule="a-host-wait-for-a-value-is-a-fence,a-host-read-needs-a-dependency-and-a-wait",
)
def scenario_host_reads_after_a_value(rig: Rig) -> None:
    """A value of a timeline is as good as a fence."""
    a, timeline = rig.buffer(), rig.timeline()
    rig.submit(signals=[SemaphoreUse(timeline, value=1)], sync2=True)
    rig.submit(_filled(rig, a, 0x61616161), signals=[SemaphoreUse(timeline, value=2)], sync2=True)
    rig.host_wait_timeline(
        "the wait",
        (timeline, 2),
        weaker={"for a value before": {"values": ((timeline, 1),)}, "by the counter": {"how": "counter"}},
    )
    rig.host_read(a)


@scenario(weakened={"read bytes / of the fill": UNSEEN}, rule="host-accesses-conflict-byte-by-byte")
def scenario_host_reads_beside_what_the_device_writes(rig: Rig) -> None:
    """While half of a buffer is being filled, the host may read the other half, and what is only read."""
    a, b = rig.buffer(), rig.buffer()
    rig.host_write(a, bytes(range(256)))
    with rig.submission() as commands:
        commands.fill(b, 0x71717171, 0, 128)
        commands.copy(a, b, (128, 128, 64))
    rig.host_read(a)
    if rig.choose("read bytes", True, {"of the fill": False}):
        rig.host_read(b, 192, 64)
    else:
        rig.host_read(b, 0, 128)


@scenario(weakened={"host read / after the submit": UNSEEN}, rule="a-submit-shows-host-writes-to-the-device")
def scenario_host_reads_before_a_submit(rig: Rig) -> None:
    """A read that was made before a submit needs no dependency with what the submit writes."""
    a = rig.buffer()
    late = rig.choose("host read", False, {"after the submit": True})
    if not late:
        rig.host_read(a)
    rig.submit(_filled(rig, a, 0x81818181))
    if late:
        rig.host_read(a)


@scenario(
    without={"to the host": UNSEEN, "last wait": [write_after_read("host write", COPY)]},
    rule="a-host-write-waits-for-the-device,a-host-read-needs-a-dependency-and-a-wait",
)
def scenario_host_and_device_in_turns(rig: Rig) -> None:
    """The device writes, the host reads and writes, the device reads, the host writes again: each waits in turn."""
    a, b = rig.buffer(), rig.buffer()
    with rig.submission() as first:
        first.fill(a, 0x10203040)
        first.barrier("to the host", FILLED, TO_HOST)
    rig.wait()
    seen = rig.host_read(a)
    rig.host_write(a, seen[::-1])
    with rig.submission() as second:
        second.copy(a, b)
    rig.host_wait("last wait", "queue")
    rig.host_write(a, seen)


@scenario(
    without={"first wait": UNSEEN}, rule="a-host-write-waits-for-the-device,a-host-read-needs-a-dependency-and-a-wait"
)
def scenario_persistent_mapping_is_read(rig: Rig) -> None:
    """Memory that stays mapped: each read waits for the work that wrote the bytes."""
    a = rig.buffer()
    mapped = rig.vk.vkMapMemory(rig.device, a.memory, 0, a.size, 0)
    rig.submit(_filled(rig, a, 0x91919191))
    rig.host_wait("first wait", "queue")
    vkharness.host_read(mapped)
    rig.submit(_filled(rig, a, 0x92929292))
    rig.wait()
    vkharness.host_read(mapped, 64, 4)
    rig.vk.vkUnmapMemory(rig.device, a.memory)


@scenario(
    without={"to the host": [read_after_write(INVALIDATE, FILL)], "the wait": [read_after_write(INVALIDATE, FILL)]},
    weakened={"invalidated bytes / all": [read_after_write(INVALIDATE, FILL)]},
    rule="an-invalidate-says-that-the-host-reads",
)
def scenario_invalidate_says_that_the_host_reads(rig: Rig) -> None:
    """An invalidate comes after the wait and is no dependency itself: only what is visible to the host may be named."""
    vk, a = rig.vk, rig.buffer(512)
    with rig.submission() as commands:
        commands.fill(a, 0xA1A1A1A1, 0, 256)
        commands.barrier("to the host", FILLED, TO_HOST)
        commands.fill(a, 0xA2A2A2A2, 256, 256)
    rig.host_wait("the wait", "device")
    vk.vkMapMemory(rig.device, a.memory, 0, a.size, 0)
    size = rig.choose("invalidated bytes", 256, {"all": 512})
    vk.vkInvalidateMappedMemoryRanges(rig.device, 1, [vk.VkMappedMemoryRange(memory=a.memory, offset=0, size=size)])
    vk.vkUnmapMemory(rig.device, a.memory)


@scenario(
    without={"to the host": [read_after_write(READ, COPY)]},
    weakened={"to the host / after the fill": [read_after_write(READ, COPY)]},
    rule="most-recent-access,a-host-read-needs-a-dependency-and-a-wait",
)
def scenario_last_write_is_what_the_host_must_see(rig: Rig) -> None:
    """A dependency after an earlier write shows the host nothing of the last one."""
    a, b = rig.buffer(), rig.buffer()
    rig.host_write(b, bytes(range(256)))
    with rig.submission() as commands:
        commands.fill(a, 0xB1B1B1B1)
        commands.barrier("", FILLED, COPIED)
        commands.barrier("", FILLED, TO_HOST)
        commands.copy(b, a)
        commands.barrier("to the host", COPIED, TO_HOST, weaker={"after the fill": {"src": FILLED}})
    rig.wait()
    rig.host_read(a)
