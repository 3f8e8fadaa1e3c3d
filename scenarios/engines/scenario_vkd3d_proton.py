"""Frames as vkd3d-proton makes them: indirect execution, descriptor heaps, groups of resolves, blits to a swapchain."""

import struct
from typing import Any

from vkharness.rig.queues import SemaphoreUse
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.rig.requirements import PRESENTS
from vkharness.rig.swapchains import SHOWN
from vkharness.suite import Rig, race, read_after_write, scenario, write_after_read, write_after_write

BARRIER, BLIT, COPY, DISPATCH = "vkCmdPipelineBarrier2", "vkCmdBlitImage2", "vkCmdCopyBuffer", "vkCmdDispatch"
DRAW, INDIRECT, END = "vkCmdDraw", "vkCmdDispatchIndirect", "vkCmdEndRendering"
ACQUIRE, PRESENT, RESOLVE = "vkAcquireNextImageKHR", "vkQueuePresentKHR", "vkCmdResolveImage2"
COLOR, SOURCE, TARGET = "COLOR_ATTACHMENT_OPTIMAL", "TRANSFER_SRC_OPTIMAL", "TRANSFER_DST_OPTIMAL"
OUTPUT = "COLOR_ATTACHMENT_OUTPUT"
DRAWN, BLENDED = f"{OUTPUT}/COLOR_ATTACHMENT_WRITE", f"{OUTPUT}/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE"
STORED, LOADED = "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "COMPUTE_SHADER/SHADER_STORAGE_READ"
WORDS = bytes(range(256))


@scenario(
    without={"patched before executed": [read_after_write(INDIRECT, DISPATCH), read_after_write(DISPATCH, DISPATCH)]},
    weakened={
        "patched before executed / arguments alone": [read_after_write(DISPATCH, DISPATCH)],
        "patched before executed / constants alone": [read_after_write(INDIRECT, DISPATCH)],
    },
    rule="indirect-parameters-are-read-first,each-descriptor-type-has-its-access",
)
def scenario_indirect_execution(rig: Rig) -> None:
    """A dispatch patches the arguments and the root constants of commands. One barrier shows both: to the indirect
    stage, and to uniform reads of the shaders."""
    arguments, constants, out = rig.buffer(), rig.buffer(), rig.buffer()
    patch, fill, uniform = rig.compute("indirect_args"), rig.compute("fill_words"), rig.compute("sum_uniform")
    with rig.submission() as commands:
        commands.run(patch, 1, 1, 1, b0=arguments)
        commands.run(fill, 5, b0=constants)
        commands.barrier(
            "patched before executed",
            STORED,
            "DRAW_INDIRECT|COMPUTE_SHADER/INDIRECT_COMMAND_READ|UNIFORM_READ",
            weaker={
                "arguments alone": {"dst": "DRAW_INDIRECT/INDIRECT_COMMAND_READ"},
                "constants alone": {"dst": "COMPUTE_SHADER/UNIFORM_READ"},
            },
        )
        commands.bind(fill, rig.descriptors(fill, b0=out))
        commands.push_constants(fill, 9)
        commands.dispatch_indirect(arguments)
        commands.barrier("", STORED, STORED)
        commands.run(uniform, b0=constants, b1=out)


@scenario(
    without={
        "first view before second": [read_after_write(DISPATCH, DISPATCH)],
        "the fence of the list": [write_after_read("host write", DISPATCH)],
    },
    needs=["VK_EXT_descriptor_buffer"],
    rule="descriptors-in-memory,a-host-write-waits-for-the-device",
)
def scenario_descriptor_heap(rig: Rig) -> None:
    """Views lie side by side in one heap, and tables are offsets into it. The host writes new views over those of an
    earlier list when its fence is signaled."""
    copy = rig.described_compute("copy_words")
    a, b, c, done = rig.buffer(data=WORDS), rig.buffer(), rig.buffer(), rig.fence()
    size = rig.described_size(copy)
    heap = rig.buffer(2 * size)
    tables = [{"b0": a, "b1": b}, {"b0": b, "b1": c}]
    for number, table in enumerate(tables):
        for at, each in table.items():
            place = size * number + rig.descriptor_place(copy, at)
            rig.host_write(heap, rig.descriptor(copy, int(at[1:]), each), place)
    with rig.commands() as commands:
        commands.bind_described(copy, heap)
        commands.dispatch()
        commands.barrier("first view before second", STORED, LOADED)
        commands.bind_described(copy, heap, size)
        commands.dispatch()
    rig.submit(commands, fence=done)
    rig.host_wait("the fence of the list", "all", done)
    rig.host_write(heap, rig.descriptor(copy, 0, c), size + rig.descriptor_place(copy, "b0"))


@scenario(
    weakened={
        "rendered before resolved / of nothing": [write_after_write(BARRIER, END)],
        "resolved before sampled / for compute": [read_after_write(DRAW, BARRIER)],
    },
    rule="resolve-commands-use-the-resolve-stage,barriers-of-one-command-are-independent",
)
def scenario_resolves_of_a_pass(rig: Rig) -> None:
    """All resolves of a pass stand between two groups of transitions, of sources and targets together."""
    samples = [rig.target(samples=4) for _ in range(2)]
    resolved, shown = [rig.target() for _ in range(2)], rig.target()
    draw, sample = rig.graphics(colors=["VK_FORMAT_R8G8B8A8_UNORM"] * 2, samples=4), rig.graphics("sample_color")
    to_read, to_write = {"old": COLOR, "new": SOURCE}, {"old": "UNDEFINED", "new": TARGET}
    before = [{"src": DRAWN, "dst": "RESOLVE/TRANSFER_READ", "image": each, **to_read} for each in samples]
    before += [{"src": "NONE", "dst": "RESOLVE/TRANSFER_WRITE", "image": each, **to_write} for each in resolved]
    after: list[dict[str, Any]] = [
        {
            "src": "RESOLVE/TRANSFER_WRITE",
            "dst": "FRAGMENT_SHADER/SHADER_READ",
            "image": each,
            "old": TARGET,
            "new": "SHADER_READ_ONLY_OPTIMAL",
        }
        for each in resolved
    ]
    late = [{**each, "src": "NONE"} if each["src"] == DRAWN else each for each in before]
    elsewhere = [{**each, "dst": "COMPUTE_SHADER/SHADER_READ"} for each in after]
    with rig.submission() as commands:
        commands.transition(*samples, dst=DRAWN, new=COLOR)
        commands.transition(shown, dst=BLENDED)
        commands.render(draw, *(RenderingAttachment(rig.view(each), layout=COLOR) for each in samples))
        commands.barriers("rendered before resolved", *before, weaker={"of nothing": late})
        for read, written in zip(samples, resolved, strict=True):
            commands.resolve(read, written, layouts=(SOURCE, TARGET), v2=True)
        commands.barriers("resolved before sampled", *after, weaker={"for compute": elsewhere})
        for each in resolved:
            held = rig.view(each), rig.sampler(), rig.vk.VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL
            commands.render(sample, RenderingAttachment(rig.view(shown), load="LOAD"), b0=held)
            commands.barrier("", DRAWN, BLENDED)


@scenario(
    without={
        "the acquire": [race("WRITE_AFTER_PRESENT", BARRIER, PRESENT)],
        "the present": [race("PRESENT_AFTER_WRITE", PRESENT, BARRIER)],
    },
    weakened={"the acquire / at attachments alone": [write_after_read(BARRIER, ACQUIRE)]},
    needs=PRESENTS,
    rule="an-acquired-image-waits-for-its-semaphore,a-chain-needs-stages-that-meet",
)
def scenario_blit_to_the_swapchain(rig: Rig) -> None:
    """The program's back buffer is blitted to the acquired image. The acquire holds back blits and attachments, and the
    transitions of both images begin at blits."""
    chain, back = rig.shown_swapchain(), rig.target()
    draw, acquired, done = rig.graphics(), rig.semaphore(), rig.semaphore()
    with rig.submission() as commands:
        commands.transition(back, dst=DRAWN)
        commands.render(draw, RenderingAttachment(rig.view(back)))
        commands.barrier("", DRAWN, "ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE")
    index = rig.acquire(chain, acquired)
    image = chain.images[index]
    with rig.commands() as blit:
        blit.barriers(
            "",
            {"src": "BLIT", "dst": "BLIT/TRANSFER_WRITE", "image": image, "old": "UNDEFINED", "new": TARGET},
            {"src": "BLIT", "dst": "BLIT/TRANSFER_READ", "image": back, "old": "GENERAL", "new": SOURCE},
        )
        blit.blit(back, image, layouts=(SOURCE, TARGET), v2=True)
        blit.transition(image, src="BLIT/TRANSFER_WRITE", dst="NONE", old=TARGET, new=SHOWN)
    early = {"at attachments alone": {"stages": OUTPUT}}
    waits = rig.operation("the acquire", acquired, f"{OUTPUT}|BLIT", weaker=early)
    rig.submit(blit, waits=waits, signals=[SemaphoreUse(done)], sync2=True)
    if not waits:
        rig.submit(waits=[SemaphoreUse(acquired)])
    rig.present((chain, index), waits=[each.semaphore for each in rig.operation("the present", done)])


@scenario(
    without={
        "stored before loaded": [read_after_write(DISPATCH, DISPATCH)],
        "the table before its reads": [read_after_write(DISPATCH, COPY)],
    },
    needs=["VK_KHR_buffer_device_address"],
    rule="addresses-lead-to-their-buffer,values-that-a-shader-loads",
)
def scenario_addresses_of_a_root_table(rig: Rig) -> None:
    """Root descriptors are addresses in a table, which a copy brought. A shader that loads an address from there stores
    to the buffer behind it, and the next dispatch loads from that buffer."""
    target, other, out = rig.buffer(), rig.buffer(), rig.buffer()
    table = rig.buffer(data=struct.pack("<2I", *rig.address(other)))
    staging = rig.buffer(data=struct.pack("<2I", *rig.address(target)))
    store, copy = rig.compute("uniform_address"), rig.compute("copy_words")
    with rig.submission() as commands:
        commands.copy(staging, table)
        commands.barrier("the table before its reads", "COPY/TRANSFER_WRITE", "COMPUTE_SHADER/UNIFORM_READ")
        commands.run(store, 0x30, b0=table)
        commands.barrier("stored before loaded", STORED, LOADED)
        commands.run(copy, b0=target, b1=out)
