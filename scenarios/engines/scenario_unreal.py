"""Frames as Unreal's renderer makes them: split transitions, asynchronous compute, culling on the device, queries."""

import struct

from vkharness.rig.core import RigImage
from vkharness.rig.graphics_pipelines import POSITIONS
from vkharness.rig.queues import SemaphoreUse
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.suite import Rig, race, read_after_write, scenario, write_after_write

DISPATCH, DRAW, COUNTED, FILL = "vkCmdDispatch", "vkCmdDraw", "vkCmdDrawIndexedIndirectCount", "vkCmdFillBuffer"
WAIT, END = "vkCmdWaitEvents2", "vkCmdEndRendering"
RESULTS = "vkCmdCopyQueryPoolResults"
COLOR, READ_ONLY = "COLOR_ATTACHMENT_OPTIMAL", "SHADER_READ_ONLY_OPTIMAL"
DRAWN = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE"
SAMPLED = "FRAGMENT_SHADER/SHADER_SAMPLED_READ"
STORED, LOADED = "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "COMPUTE_SHADER/SHADER_STORAGE_READ"
ARGUMENTS = "DRAW_INDIRECT/INDIRECT_COMMAND_READ"
TRIANGLE = struct.pack("<6f", -1, -1, 3, -1, -1, 3)


def _read(rig: Rig, image: RigImage, at: str = "GENERAL", mip: int = 0) -> tuple[object, object, int]:
    """A descriptor of one mip level, for samplers and storage images."""
    return rig.view(image, mips=(mip, 1)), rig.sampler(), getattr(rig.vk, f"VK_IMAGE_LAYOUT_{at}")


@scenario(
    weakened={
        "shadows before lighting / of the depth tests": [write_after_write(WAIT, END)],
        "shadows before lighting / for compute": [read_after_write(DRAW, WAIT)],
    },
    rule="a-set-and-its-wait-are-one-dependency,a-transition-at-a-wait-happens-at-the-wait",
)
def scenario_split_transition(rig: Rig) -> None:
    """A transition begins where the shadows are done and ends where lighting samples them; another pass is drawn
    between the two halves."""
    shadows, scene, lit = rig.target(), rig.target(), rig.target()
    draw, light = rig.graphics(), rig.graphics("sample_color")
    split = rig.event(
        "shadows before lighting",
        DRAWN,
        SAMPLED,
        image=shadows,
        old=COLOR,
        new=READ_ONLY,
        weaker={
            "of the depth tests": {"src": "LATE_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_WRITE"},
            "for compute": {"dst": "COMPUTE_SHADER/SHADER_SAMPLED_READ"},
        },
    )
    with rig.submission() as frame:
        frame.transition(shadows, scene, lit, dst=DRAWN, new=COLOR)
        frame.render(draw, RenderingAttachment(rig.view(shadows), layout=COLOR))
        frame.set_event(split)
        frame.render(draw, RenderingAttachment(rig.view(scene), layout=COLOR))
        frame.wait_events(split)
        frame.render(light, RenderingAttachment(rig.view(lit), layout=COLOR), b0=_read(rig, shadows, READ_ONLY))


@scenario(
    without={
        "rendered before occlusion": [race("READ_RACING_WRITE", DISPATCH, END)],
        "occlusion before lighting": [race("READ_RACING_WRITE", DRAW, DISPATCH)],
    },
    weakened={"occlusion before lighting / at the end of the pass": [read_after_write(DRAW, DISPATCH)]},
    queues=["COMPUTE"],
    rule="queues-without-a-semaphore-race,a-wait-orders-its-stages",
)
def scenario_asynchronous_compute(rig: Rig) -> None:
    """Occlusion is computed on a second queue from what the first one rendered, while the first one goes on; lighting
    waits for both."""
    normals, shadows, lit, occlusion = rig.target(), rig.target(), rig.target(), rig.buffer(1024)
    draw, light, ambient = rig.graphics(), rig.graphics("stored_word_color"), rig.compute("sample_2d")
    graphics, compute = rig.queues
    rendered, computed = rig.timeline(), rig.timeline()
    with rig.commands() as base:
        base.transition(normals, shadows, lit, dst=DRAWN)
        base.render(draw, RenderingAttachment(rig.view(normals)))
    rig.submit(base, signals=[SemaphoreUse(rendered, value=1)], sync2=True)
    with rig.commands(queue=compute) as second:
        second.run(ambient, groups=(4, 1, 1), b0=_read(rig, normals), b1=occlusion)
    waits = rig.operation("rendered before occlusion", rendered, "COMPUTE_SHADER", 1)
    rig.submit(second, waits=waits, signals=[SemaphoreUse(computed, value=1)], sync2=True)
    with rig.commands(queue=graphics) as first:
        first.render(draw, RenderingAttachment(rig.view(shadows)))
    rig.submit(first, sync2=True)
    with rig.commands(queue=graphics) as last:
        last.render(light, RenderingAttachment(rig.view(lit)), b0=occlusion)
    late = {"at the end of the pass": {"stages": "COLOR_ATTACHMENT_OUTPUT"}}
    waits = rig.operation("occlusion before lighting", computed, "FRAGMENT_SHADER", 1, weaker=late)
    rig.submit(last, waits=waits, sync2=True)


@scenario(
    without={
        "cleared before culling": [write_after_write(DISPATCH, FILL)],
        "culling before drawing": [read_after_write(COUNTED, DISPATCH)],
    },
    weakened={
        "culling before drawing / for vertices": [read_after_write(COUNTED, DISPATCH)],
        "culling before drawing / execution only": [read_after_write(COUNTED, DISPATCH)],
    },
    needs=["VK_KHR_draw_indirect_count"],
    rule="indirect-parameters-are-read-first,what-may-be-read-makes-the-verdict-unknown",
)
def scenario_culling_on_the_device(rig: Rig) -> None:
    """Compute clears and writes the arguments and the count of the draws. Both are read by the indirect stage, and what
    the draws may read was there before."""
    arguments, count, indices, corners = rig.buffer(), rig.buffer(), rig.buffer(64), rig.buffer(24, data=TRIANGLE)
    rig.host_write(indices, struct.pack("<3I", 0, 1, 2))
    image = rig.target()
    cull, draw = rig.compute("indirect_args"), rig.graphics(**POSITIONS)
    with rig.submission() as frame:
        frame.transition(image, dst=DRAWN)
        frame.fill(count, 0)
        frame.fill(arguments, 0)
        frame.barrier("cleared before culling", "CLEAR/TRANSFER_WRITE", STORED)
        frame.run(cull, 3, 1, 0, b0=arguments)
        frame.run(cull, 1, 0, 0, b0=count)
        weaker = {
            "for vertices": {"dst": "VERTEX_INPUT/VERTEX_ATTRIBUTE_READ|INDEX_READ"},
            "execution only": {"src": "COMPUTE_SHADER", "dst": "DRAW_INDIRECT"},
        }
        frame.barrier("culling before drawing", STORED, ARGUMENTS, weaker=weaker)
        frame.begin_rendering(RenderingAttachment(rig.view(image)))
        frame.bind(draw)
        frame.bind_vertices(corners)
        frame.bind_indices(indices)
        frame.draw_indirect(arguments, indexed=True, counted=(count, 0))
        frame.end_rendering()


@scenario(
    without={
        "a level before the next": [read_after_write(DISPATCH, DISPATCH)],
        "all levels before culling": [read_after_write(DISPATCH, DISPATCH)],
    },
    rule="mip-levels-and-layers-are-apart,a-barrier-covers-what-came-before-it",
)
def scenario_pyramid_of_depth(rig: Rig) -> None:
    """Each level of a pyramid is computed from the level above it, with a barrier of one level between them; culling
    samples the whole pyramid."""
    pyramid = rig.image(mips=3)
    store, copy, load = rig.compute("image_store_2d"), rig.compute("image_copy_2d"), rig.compute("image_load_2d")
    out = rig.buffer(1024)
    with rig.submission() as frame:
        frame.transition(pyramid, dst=STORED)
        frame.run(store, 0x10203040, groups=(4, 1, 1), b0=_read(rig, pyramid))
        for mip in (1, 2):
            name = "a level before the next" if mip == 2 else ""
            frame.barrier(name, STORED, LOADED, image=pyramid, mips=(mip - 1, 1))
            frame.run(copy, b0=_read(rig, pyramid, mip=mip - 1), b1=_read(rig, pyramid, mip=mip))
        frame.barrier("all levels before culling", STORED, LOADED)
        for mip in (1, 2):
            frame.run(load, b0=_read(rig, pyramid, mip=mip), b1=(out, 256 * mip, 256))


@scenario(
    without={
        "results before the host": [read_after_write("host read", RESULTS)],
        "the frame before the host": [read_after_write("host read", RESULTS)],
    },
    rule="query-results-are-copied-in-the-copy-stage,a-host-read-needs-a-dependency-and-a-wait",
)
def scenario_occlusion_queries(rig: Rig) -> None:
    """Boxes are drawn in occlusion queries; their results are copied, and the host reads them a frame later."""
    image, results, draw = rig.target(), rig.buffer(64), rig.graphics()
    pools, done = [rig.queries(count=2) for _ in range(2)], rig.timeline()
    for number, pool in enumerate(pools, 1):
        with rig.commands() as frame:
            frame.transition(image, src=DRAWN, dst=DRAWN)
            frame.reset_queries(pool)
            frame.begin_rendering(RenderingAttachment(rig.view(image)))
            frame.bind(draw)
            frame.query(pool, 0, 1, inside=frame.draw)
            frame.end_rendering()
            frame.barrier("", "COPY/TRANSFER_WRITE", "COPY/TRANSFER_WRITE")
            frame.copy_results(pool, results, count=2)
            frame.barrier("results before the host" if number == 1 else "", "COPY/TRANSFER_WRITE", "HOST/HOST_READ")
        rig.submit(frame, signals=[SemaphoreUse(done, value=number)], sync2=True)
        if number == 1:
            rig.host_wait_timeline("the frame before the host", (done, 1))
            rig.host_read(results)
