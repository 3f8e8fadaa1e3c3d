"""Frames as wgpu makes them: transitions by usage, submits in strict order, belts of staging memory, mapped results."""

import struct

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer
from vkharness.rig.queues import SemaphoreUse
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.rig.requirements import PRESENTS
from vkharness.rig.swapchains import SHOWN
from vkharness.suite import Rig, race, read_after_write, scenario, write_after_read, write_after_write

BARRIER, COPY, DISPATCH, DRAW = "vkCmdPipelineBarrier", "vkCmdCopyBuffer", "vkCmdDispatch", "vkCmdDraw"
PRESENT, RESULTS, FILL = "vkQueuePresentKHR", "vkCmdCopyQueryPoolResults", "vkCmdFillBuffer"
TOP, BOTTOM = "TOP_OF_PIPE", "BOTTOM_OF_PIPE"
SHADERS = "VERTEX_SHADER|FRAGMENT_SHADER|COMPUTE_SHADER"
COPIED_FROM, COPIED_TO = "ALL_TRANSFER/TRANSFER_READ", "ALL_TRANSFER/TRANSFER_WRITE"
UNIFORM, STORAGE = f"{SHADERS}/UNIFORM_READ", f"{SHADERS}/SHADER_READ|SHADER_WRITE"
TARGET = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE"
MAPPED = "HOST/HOST_READ"
COLOR = "COLOR_ATTACHMENT_OPTIMAL"
RED, BLUE = struct.pack("<4f", 1, 0, 0, 1), struct.pack("<4f", 0, 0.25, 1, 1)


def _becomes(commands: Commands, name: str, buffer: RigBuffer, before: str, after: str) -> None:
    """A buffer that changes its usage."""
    commands.barrier(name, before, after, buffer=buffer, sync2=False)


@scenario(
    without={
        "the surface": [race("WRITE_AFTER_PRESENT", BARRIER, PRESENT)],
        "the present": [race("PRESENT_AFTER_WRITE", PRESENT, BARRIER)],
    },
    weakened={"the surface / at attachments alone": [write_after_read(BARRIER, "vkAcquireNextImageKHR")]},
    needs=PRESENTS,
    rule="an-acquired-image-waits-for-its-semaphore,none-before-a-transition-is-the-top-of-the-pipe",
)
def scenario_texture_of_a_surface(rig: Rig) -> None:
    """An acquired texture has no usage before: its transition begins at the top of the pipe. That is in order since the
    submit waits for the acquire there, which holds back everything."""
    chain, acquired, rendered = rig.shown_swapchain(), rig.semaphore(), rig.semaphore()
    index = rig.acquire(chain, acquired)
    image = chain.images[index]
    draw = rig.drawing_to(image)
    with rig.commands() as frame:
        frame.transition(image, src=TOP, dst=TARGET, new=COLOR, sync2=False)
        frame.render(draw, RenderingAttachment(rig.view(image), layout=COLOR))
        frame.transition(image, src=TARGET, dst=BOTTOM, old=COLOR, new=SHOWN, sync2=False)
    weaker = {"at attachments alone": {"stages": "COLOR_ATTACHMENT_OUTPUT"}}
    waits = rig.operation("the surface", acquired, TOP, weaker=weaker)
    rig.submit(frame, waits=waits, signals=[SemaphoreUse(rendered)])
    if not waits:
        rig.submit(waits=[SemaphoreUse(acquired)])
    rig.present((chain, index), waits=[each.semaphore for each in rig.operation("the present", rendered)])


@scenario(
    weakened={
        "written before used / for storage": [read_after_write(DRAW, COPY)],
        "used before written / of vertices": [write_after_read(COPY, DRAW)],
    },
    without={"the belt": [write_after_read("host write", COPY)]},
    rule="a-ranged-barrier-covers-its-range,a-value-covers-what-its-signal-covers",
)
def scenario_writes_of_a_queue(rig: Rig) -> None:
    """Writes of the queue go through a belt of staging memory, ahead of the commands of their submit, in a command
    buffer of their own. A chunk of the belt is written again when the submit that used it has signaled its value."""
    belt, uniform, image = rig.buffer(32, data=RED + BLUE), rig.buffer(16), rig.target()
    draw, done = rig.graphics("uniform_color"), rig.timeline()
    for number in (1, 2):
        with rig.commands() as pending:
            before = UNIFORM if number > 1 else TOP
            pending.barrier(
                "used before written" if number > 1 else "",
                before,
                COPIED_TO,
                buffer=uniform,
                sync2=False,
                weaker={"of vertices": {"src": "VERTEX_SHADER/UNIFORM_READ"}},
            )
            pending.copy(belt, uniform, (16 * (number - 1), 0, 16))
        with rig.commands() as frame:
            frame.barrier(
                "written before used" if number == 1 else "",
                COPIED_TO,
                UNIFORM,
                buffer=uniform,
                sync2=False,
                weaker={"for storage": {"dst": STORAGE}},
            )
            frame.transition(image, src=TARGET, dst=TARGET, new=COLOR, sync2=False)
            frame.render(draw, RenderingAttachment(rig.view(image), layout=COLOR), b0=uniform)
        rig.submit(pending, frame, signals=[SemaphoreUse(done, value=number)])
    rig.host_wait_timeline("the belt", (done, 1))
    rig.host_write(belt, BLUE)


@scenario(
    without={
        "stored before copied": [read_after_write(COPY, DISPATCH)],
        "copied before mapped": [read_after_write("host read", COPY)],
        "the submit": [read_after_write("host read", COPY)],
    },
    rule="a-dependency-to-the-host-is-about-all-memory,a-host-read-needs-a-dependency-and-a-wait",
)
def scenario_results_that_are_mapped(rig: Rig) -> None:
    """A compute pass stores, a copy brings the results to a buffer that is mapped when the submit is complete."""
    words, results, fill, done = rig.buffer(), rig.buffer(), rig.compute("fill_words"), rig.timeline()
    with rig.commands() as commands:
        commands.run(fill, 0x20, b0=words)
        _becomes(commands, "stored before copied", words, STORAGE, COPIED_FROM)
        commands.copy(words, results)
        _becomes(commands, "copied before mapped", results, COPIED_TO, MAPPED)
    rig.submit(commands, signals=[SemaphoreUse(done, value=1)])
    rig.host_wait_timeline("the submit", (done, 1))
    rig.host_read(results)


@scenario(
    without={"cleared before resolved": [write_after_write(RESULTS, FILL)]},
    weakened={"resolved before read / for uniforms": [read_after_write(DISPATCH, RESULTS)]},
    rule="query-results-are-copied-in-the-copy-stage,write-after-write",
)
def scenario_resolved_queries(rig: Rig) -> None:
    """A query set is resolved into a buffer that was cleared when it was made, and a compute pass reads the results."""
    pool, results, out, image = rig.queries(count=2), rig.buffer(), rig.buffer(), rig.target()
    draw, copy = rig.graphics(), rig.compute("copy_words")
    with rig.submission() as commands:
        commands.fill(results, 0)
        commands.reset_queries(pool)
        commands.transition(image, src=TOP, dst=TARGET, new=COLOR, sync2=False)
        commands.begin_rendering(RenderingAttachment(rig.view(image), layout=COLOR))
        commands.bind(draw)
        commands.query(pool, 0, 1, inside=commands.draw)
        commands.end_rendering()
        _becomes(commands, "cleared before resolved", results, COPIED_TO, COPIED_TO)
        commands.copy_results(pool, results, count=2, stride=8, flags=["64"])
        commands.barrier(
            "resolved before read",
            COPIED_TO,
            STORAGE,
            buffer=results,
            sync2=False,
            weaker={"for uniforms": {"dst": UNIFORM}},
        )
        commands.run(copy, b0=(results, 0, 16), b1=out)
