"""Frames as Filament makes them: submits in one chain of semaphores, staged updates between passes, levels by blits,
secondary command buffers."""

import struct
from typing import Any

from vkharness.rig.core import COLOR_FORMAT, RigImage
from vkharness.rig.queues import SemaphoreUse
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.rig.requirements import PRESENTS
from vkharness.rig.swapchains import SHOWN
from vkharness.spec.enums import VkRendering
from vkharness.suite import Rig, race, read_after_write, scenario, write_after_read, write_after_write

BARRIER, BLIT, COPY, DRAW = "vkCmdPipelineBarrier", "vkCmdBlitImage", "vkCmdCopyBuffer", "vkCmdDraw"
CLEAR, PRESENT, END, DOWNLOAD = (
    "vkCmdClearColorImage",
    "vkQueuePresentKHR",
    "vkCmdEndRendering",
    "vkCmdCopyImageToBuffer",
)
COLOR, READ_ONLY, SOURCE, TARGET = (
    "COLOR_ATTACHMENT_OPTIMAL",
    "SHADER_READ_ONLY_OPTIMAL",
    "TRANSFER_SRC_OPTIMAL",
    "TRANSFER_DST_OPTIMAL",
)
DRAWN = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE"
UNIFORMS = "VERTEX_SHADER|FRAGMENT_SHADER/UNIFORM_READ"
WRITTEN = "ALL_TRANSFER/TRANSFER_WRITE"
WORDS = bytes(range(256))
RED, BLUE = struct.pack("<4f", 1, 0, 0, 1), struct.pack("<4f", 0, 0.25, 1, 1)


def _sampled(rig: Rig, image: RigImage, at: str = READ_ONLY) -> tuple[object, object, int]:
    return rig.view(image), rig.sampler(), getattr(rig.vk, f"VK_IMAGE_LAYOUT_{at}")


@scenario(
    without={
        "the submit before": [read_after_write(DRAW, COPY)],
        "the image": [race("WRITE_AFTER_PRESENT", BARRIER, PRESENT)],
        "the present": [race("PRESENT_AFTER_WRITE", PRESENT, BARRIER)],
    },
    needs=PRESENTS,
    rule="a-semaphore-is-a-memory-dependency,all-commands-is-everything",
)
def scenario_chain_of_submits(rig: Rig) -> None:
    """Each submit waits for the one before it and the last one for the acquired image, too, with all of its stages.
    Then nothing else orders what two submits do: no barrier stands between the upload and the draw, nor before the
    first transition of the image."""
    chain, staging, color = rig.shown_swapchain(), rig.buffer(16, data=BLUE), rig.buffer(16)
    acquired, uploaded, rendered = rig.semaphore(), rig.semaphore(), rig.semaphore()
    with rig.commands() as upload:
        upload.copy(staging, color)
    rig.submit(upload, signals=[SemaphoreUse(uploaded)])
    index = rig.acquire(chain, acquired)
    image = chain.images[index]
    draw = rig.drawing_to(image, "uniform_color")
    with rig.commands() as frame:
        frame.transition(image, src="TOP_OF_PIPE", dst=DRAWN, new=COLOR, sync2=False)
        frame.render(draw, RenderingAttachment(rig.view(image), layout=COLOR), b0=color)
        frame.transition(image, src=DRAWN, dst="BOTTOM_OF_PIPE", old=COLOR, new=SHOWN, sync2=False)
    waits = [*rig.operation("the submit before", uploaded), *rig.operation("the image", acquired)]
    rig.submit(frame, waits=waits, signals=[SemaphoreUse(rendered)])
    for each in {uploaded, acquired} - {used.semaphore for used in waits}:
        rig.submit(waits=[SemaphoreUse(each)])
    rig.present((chain, index), waits=[each.semaphore for each in rig.operation("the present", rendered)])


@scenario(
    without={
        "drawn before updated": [write_after_read(COPY, DRAW)],
        "updated before drawn": [read_after_write(DRAW, COPY)],
    },
    weakened={"updated before drawn / for storage": [read_after_write(DRAW, COPY)]},
    rule="write-after-read,each-descriptor-type-has-its-access",
)
def scenario_uniforms_between_passes(rig: Rig) -> None:
    """A uniform buffer is updated from a staging buffer between two passes of one command buffer that both read it."""
    stages, uniform = [rig.buffer(16, data=each) for each in (RED, BLUE)], rig.buffer(16)
    images, draw = [rig.target() for _ in range(2)], rig.graphics("uniform_color")
    with rig.submission() as frame:
        frame.transition(*images, dst=DRAWN, new=COLOR, sync2=False)
        for number, (stage, image) in enumerate(zip(stages, images, strict=True)):
            if number:
                frame.barrier("drawn before updated", UNIFORMS, WRITTEN, sync2=False)
            frame.copy(stage, uniform)
            weaker = {"for storage": {"dst": "VERTEX_SHADER|FRAGMENT_SHADER/SHADER_READ"}}
            name = "updated before drawn" if number else ""
            frame.barrier(name, WRITTEN, UNIFORMS, sync2=False, weaker=weaker)
            frame.render(draw, RenderingAttachment(rig.view(image), layout=COLOR), b0=uniform)


@scenario(
    weakened={
        "a level before the next / for shaders": [read_after_write(BLIT, BARRIER)],
        "all levels before sampling / of shaders": [write_after_write(BARRIER, BLIT)],
    },
    rule="blits-use-the-blit-stage,mip-levels-and-layers-are-apart",
)
def scenario_levels_by_blits(rig: Rig) -> None:
    """Each mip level is blitted from the one above it: level by level from a target of transfers to a source, and in
    the end all of them to what shaders sample."""
    texture, shown, staging = rig.image(mips=3), rig.target(), rig.buffer(1024, data=WORDS * 4)
    sample = rig.graphics("sample_color")
    with rig.submission() as frame:
        frame.transition(texture, dst=WRITTEN, new=TARGET, sync2=False)
        frame.transition(shown, dst=DRAWN, new=COLOR, sync2=False)
        frame.buffer_to_image(staging, texture, at=TARGET)
        for mip in (1, 2):
            frame.barrier(
                "a level before the next" if mip == 2 else "",
                WRITTEN,
                "ALL_TRANSFER/TRANSFER_READ",
                image=texture,
                mips=(mip - 1, 1),
                old=TARGET,
                new=SOURCE,
                sync2=False,
                weaker={"for shaders": {"dst": "FRAGMENT_SHADER/SHADER_READ"}},
            )
            frame.blit(texture, texture, {"mip": mip - 1}, {"mip": mip}, layouts=(SOURCE, TARGET))
        done: dict[str, Any] = {
            "dst": "FRAGMENT_SHADER/SHADER_READ",
            "image": texture,
            "new": READ_ONLY,
            "sync2": False,
        }
        frame.barrier("", src="ALL_TRANSFER", mips=(0, 2), old=SOURCE, **done)
        weaker = {"of shaders": {"src": "FRAGMENT_SHADER/SHADER_WRITE"}}
        frame.barrier("all levels before sampling", src=WRITTEN, mips=(2, 1), old=TARGET, weaker=weaker, **done)
        held = rig.view(texture, mips=(0, 3)), rig.sampler(), rig.vk.VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL
        frame.render(sample, RenderingAttachment(rig.view(shown), layout=COLOR), b0=held)


@scenario(
    without={
        "copied before the host": [read_after_write("host read", DOWNLOAD)],
        "the fence": [read_after_write("host read", DOWNLOAD)],
    },
    weakened={"drawn before copied / of nothing": [write_after_write(BARRIER, END)]},
    rule="a-host-read-needs-a-dependency-and-a-wait,a-transition-is-a-write",
)
def scenario_pixels_read_back(rig: Rig) -> None:
    """Pixels are read: the image moves to a source of transfers and back, and the host reads them after a fence."""
    image, pixels, draw, done = rig.target(), rig.buffer(1024), rig.graphics(), rig.fence()
    with rig.commands() as frame:
        frame.transition(image, dst=DRAWN, new=COLOR, sync2=False)
        frame.render(draw, RenderingAttachment(rig.view(image), layout=COLOR))
        frame.barrier(
            "drawn before copied",
            DRAWN,
            "ALL_TRANSFER/TRANSFER_READ",
            image=image,
            old=COLOR,
            new=SOURCE,
            sync2=False,
            weaker={"of nothing": {"src": "COLOR_ATTACHMENT_OUTPUT"}},
        )
        frame.image_to_buffer(image, pixels, at=SOURCE)
        frame.transition(image, src="ALL_TRANSFER", dst=DRAWN, old=SOURCE, new=COLOR, sync2=False)
        frame.barrier("copied before the host", WRITTEN, "HOST/HOST_READ", sync2=False)
    rig.submit(frame, fence=done)
    rig.host_wait("the fence", "all", done)
    rig.host_read(pixels)


@scenario(
    without={"shadows before the pass": [read_after_write(DRAW, END)]},
    weakened={"shadows before the pass / for vertices": [read_after_write(DRAW, END)]},
    rule="draws-of-a-secondary-use-the-attachments-of-the-primary,barriers-cross-command-buffer-levels",
)
def scenario_secondaries_of_a_pass(rig: Rig) -> None:
    """Threads record the draws of a pass in secondary command buffers. What they sample is ordered by the primary,
    before the pass."""
    shadows, scene = rig.target(), rig.target()
    draw, sample = rig.graphics(), rig.graphics("sample_color")
    held = rig.descriptors(sample, b0=_sampled(rig, shadows, "GENERAL"))
    recorded = []
    for pipeline, descriptors in ((draw, None), (sample, held)):
        with rig.secondary(colors=[COLOR_FORMAT]) as draws:
            draws.bind(pipeline, descriptors)
            draws.draw()
        recorded.append(draws)
    with rig.submission() as frame:
        frame.transition(shadows, scene, dst=DRAWN, sync2=False)
        frame.render(draw, RenderingAttachment(rig.view(shadows)))
        weaker = {"for vertices": {"dst": "VERTEX_SHADER/SHADER_READ"}}
        frame.barrier("shadows before the pass", DRAWN, "FRAGMENT_SHADER/SHADER_READ", sync2=False, weaker=weaker)
        flags = VkRendering.CONTENTS_SECONDARY_COMMAND_BUFFERS
        frame.begin_rendering(RenderingAttachment(rig.view(scene)), flags=flags)
        frame.execute(*recorded)
        frame.end_rendering()


@scenario(
    without={"resolved before sampled": [read_after_write(DRAW, END)]},
    weakened={"resolved before sampled / of resolve commands": [read_after_write(DRAW, END)]},
    rule="resolves-at-the-end-of-rendering-are-colour-accesses",
)
def scenario_samples_resolved_in_the_pass(rig: Rig) -> None:
    """A pass with several samples resolves them at its end, as an access of colour attachments, and drops them. The
    next pass samples what was resolved."""
    samples, scene, shown = rig.target(samples=4), rig.target(), rig.target()
    draw, sample = rig.graphics(samples=4), rig.graphics("sample_color")
    with rig.submission() as frame:
        frame.transition(samples, scene, shown, dst=DRAWN, sync2=False)
        kept = RenderingAttachment(rig.view(samples), store="DONT_CARE", resolve=rig.view(scene))
        frame.render(draw, kept)
        weaker = {"of resolve commands": {"src": WRITTEN}}
        frame.barrier("resolved before sampled", DRAWN, "FRAGMENT_SHADER/SHADER_READ", sync2=False, weaker=weaker)
        frame.render(sample, RenderingAttachment(rig.view(shown)), b0=_sampled(rig, scene, "GENERAL"))
