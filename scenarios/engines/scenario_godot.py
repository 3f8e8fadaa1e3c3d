"""Frames as Godot's render graph makes them: commands sorted into levels, with one group of barriers before each."""

import struct

from vkharness.rig.core import RigImage
from vkharness.rig.queues import SemaphoreUse
from vkharness.rig.render_passes import RigAttachment, RigSubpass, RigSubpassDependency
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.rig.requirements import PRESENTS
from vkharness.rig.swapchains import SHOWN
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL, VkDependency
from vkharness.spec.formats import format_of
from vkharness.suite import Rig, race, read_after_write, scenario, write_after_read, write_after_write

BARRIER, COPY, DISPATCH, DRAW = "vkCmdPipelineBarrier", "vkCmdCopyBuffer", "vkCmdDispatch", "vkCmdDraw"
BEGIN, NEXT, PRESENT = "vkCmdBeginRenderPass2", "vkCmdNextSubpass2", "vkQueuePresentKHR"
COLOR, READ_ONLY = "COLOR_ATTACHMENT_OPTIMAL", "SHADER_READ_ONLY_OPTIMAL"
OUTPUT = "COLOR_ATTACHMENT_OUTPUT"
DRAWN = f"{OUTPUT}/COLOR_ATTACHMENT_WRITE"
STORED, LOADED = "COMPUTE_SHADER/SHADER_WRITE", "COMPUTE_SHADER/SHADER_READ"
DRAWS = "VERTEX_INPUT|VERTEX_SHADER|FRAGMENT_SHADER/VERTEX_ATTRIBUTE_READ|INDEX_READ|UNIFORM_READ|SHADER_READ"
WORDS = bytes(range(256))
RED, BLUE = struct.pack("<4f", 1, 0, 0, 1), struct.pack("<4f", 0, 0.25, 1, 1)
GREEN = struct.pack("<4f", 0.25, 1, 0, 1)


def _read(rig: Rig, image: RigImage, at: str = "GENERAL", mip: int = 0) -> tuple[object, object, int]:
    """A descriptor of one mip level, for samplers and storage images."""
    return rig.view(image, mips=(mip, 1)), rig.sampler(), getattr(rig.vk, f"VK_IMAGE_LAYOUT_{at}")


@scenario(
    without={"before the second level": [read_after_write(DISPATCH, COPY), write_after_write(DISPATCH, COPY)]},
    weakened={
        "before the second level / for draws": [read_after_write(DISPATCH, COPY), write_after_write(DISPATCH, COPY)],
        "before the third level / of copies": [read_after_write(DRAW, DISPATCH)],
    },
    rule="a-barrier-covers-what-came-before-it,reads-do-not-conflict",
)
def scenario_levels_of_a_render_graph(rig: Rig) -> None:
    """Commands of one level touch nothing that another one of it writes. Before each level stands one group of
    barriers, for all that its commands need of the levels before."""
    staging, params, particles, image = rig.buffer(data=WORDS), rig.buffer(), rig.buffer(), rig.target()
    copy, scale, draw = rig.compute("copy_words"), rig.compute("scale_words"), rig.graphics("stored_word_color")
    lists = rig.buffer()
    with rig.submission() as frame:
        frame.transition(image, dst=DRAWN, new=COLOR, sync2=False)
        frame.copy(staging, params)
        frame.copy(staging, particles)
        frame.barrier(
            "before the second level",
            "ALL_TRANSFER/TRANSFER_WRITE",
            "COMPUTE_SHADER/SHADER_READ|SHADER_WRITE",
            sync2=False,
            weaker={"for draws": {"dst": DRAWS}},
        )
        frame.run(scale, 3, b0=particles)
        frame.run(copy, b0=params, b1=lists)
        weaker = {"of copies": {"src": "ALL_TRANSFER/TRANSFER_WRITE"}}
        frame.barrier("before the third level", STORED, DRAWS, sync2=False, weaker=weaker)
        frame.render(draw, RenderingAttachment(rig.view(image), layout=COLOR), b0=particles)


@scenario(
    without={"the transfer worker": [race("READ_RACING_WRITE", DRAW, BARRIER)]},
    weakened={"the transfer worker / at attachments alone": [read_after_write(DRAW, BARRIER)]},
    queues=["TRANSFER"],
    rule="a-semaphore-is-a-memory-dependency,a-wait-orders-its-stages",
)
def scenario_transfer_worker(rig: Rig) -> None:
    """A worker uploads a texture on its own queue and leaves it as the frame samples it. The frame's submit waits for
    all workers that it depends on; families share the texture."""
    staging, texture, shown = rig.buffer(1024, data=WORDS), rig.image(), rig.target()
    sample, uploaded = rig.graphics("sample_color"), rig.semaphore()
    graphics, transfer = rig.queues
    written = "ALL_TRANSFER/TRANSFER_WRITE"
    with rig.commands(queue=transfer) as worker:
        worker.transition(texture, dst=written, new="TRANSFER_DST_OPTIMAL", sync2=False)
        worker.buffer_to_image(staging, texture, at="TRANSFER_DST_OPTIMAL")
        worker.transition(
            texture, src=written, dst="BOTTOM_OF_PIPE", old="TRANSFER_DST_OPTIMAL", new=READ_ONLY, sync2=False
        )
    rig.submit(worker, signals=[SemaphoreUse(uploaded)])
    with rig.commands(queue=graphics) as frame:
        frame.transition(shown, dst=DRAWN, new=COLOR, sync2=False)
        frame.render(sample, RenderingAttachment(rig.view(shown), layout=COLOR), b0=_read(rig, texture, READ_ONLY))
    late = {"at attachments alone": {"stages": OUTPUT}}
    waits = rig.operation("the transfer worker", uploaded, "ALL_COMMANDS", weaker=late)
    rig.submit(frame, waits=waits)


@scenario(
    without={"surfaces before tone mapping": [read_after_write(DRAW, NEXT)]},
    weakened={"surfaces before tone mapping / for samplers": [read_after_write(DRAW, NEXT)]},
    rule="a-subpass-dependency-orders-two-subpasses,input-attachments-are-read-by-the-shader",
)
def scenario_subpasses_of_a_mobile_renderer(rig: Rig) -> None:
    """The mobile renderer tone maps in a second subpass, which reads the first one's colour as an input attachment."""
    scene, shown, out = rig.target(), rig.target(), rig.buffer(1024)
    made = rig.render_pass(
        [RigAttachment(store="DONT_CARE"), RigAttachment(final="TRANSFER_SRC_OPTIMAL")],
        [RigSubpass([0]), RigSubpass([1], inputs=[0])],
        [
            RigSubpassDependency("", VK_SUBPASS_EXTERNAL, 0, OUTPUT, DRAWN),
            RigSubpassDependency("", VK_SUBPASS_EXTERNAL, 1, OUTPUT, DRAWN),
            RigSubpassDependency(
                "surfaces before tone mapping",
                0,
                1,
                DRAWN,
                "FRAGMENT_SHADER/INPUT_ATTACHMENT_READ",
                VkDependency.BY_REGION,
                weaker={"for samplers": {"after": "FRAGMENT_SHADER/SHADER_SAMPLED_READ"}},
            ),
            RigSubpassDependency("", 0, VK_SUBPASS_EXTERNAL, DRAWN, "BOTTOM_OF_PIPE"),
            RigSubpassDependency("", 1, VK_SUBPASS_EXTERNAL, DRAWN, "ALL_TRANSFER/TRANSFER_READ"),
        ],
    )
    views = [rig.view(scene), rig.view(shown)]
    draw, map_ = rig.graphics(render_pass=made), rig.graphics("invert_input", render_pass=made, subpass=1)
    inputs = rig.descriptors(map_, b0=(views[0], None, rig.vk.VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL))
    with rig.submission() as frame:
        frame.begin_pass(made, rig.framebuffer(made, views), v2=True)
        frame.bind(draw)
        frame.draw()
        frame.next_subpass(v2=True)
        frame.bind(map_, inputs)
        frame.draw()
        frame.end_pass(v2=True)
        frame.image_to_buffer(shown, out, at="TRANSFER_SRC_OPTIMAL")


@scenario(
    without={"one level of reduction": [read_after_write(DISPATCH, DISPATCH)]},
    weakened={
        "exposure before tone mapping / for vertices": [read_after_write(DRAW, BARRIER)],
        "exposure before tone mapping / of drawing": [write_after_write(BARRIER, DISPATCH)],
    },
    rule="a-transition-is-a-write,mip-levels-and-layers-are-apart",
)
def scenario_luminance_by_reduction(rig: Rig) -> None:
    """Luminance is reduced level by level; each level becomes a sampled image when it was stored to."""
    source, levels, shown = rig.target(), [rig.image(extent=(16 >> n, 16 >> n, 1)) for n in range(2)], rig.target()
    draw, reduce, sample = rig.graphics(), rig.compute("image_copy_2d"), rig.graphics("sample_color")
    store = rig.compute("image_store_2d")
    with rig.submission() as frame:
        frame.transition(source, shown, dst=DRAWN, sync2=False)
        frame.transition(*levels, dst=STORED, sync2=False)
        frame.render(draw, RenderingAttachment(rig.view(source)))
        frame.run(store, 0x11, groups=(4, 1, 1), b0=_read(rig, levels[0]))
        frame.barrier("one level of reduction", STORED, LOADED, sync2=False)
        frame.run(reduce, b0=_read(rig, levels[0]), b1=_read(rig, levels[1]))
        frame.barrier(
            "exposure before tone mapping",
            STORED,
            "FRAGMENT_SHADER/SHADER_READ",
            image=levels[1],
            new=READ_ONLY,
            sync2=False,
            weaker={"for vertices": {"dst": "VERTEX_SHADER/SHADER_READ"}, "of drawing": {"src": DRAWN}},
        )
        frame.render(
            sample, RenderingAttachment(rig.view(shown)), area=(0, 0, 8, 8), b0=_read(rig, levels[1], READ_ONLY)
        )


@scenario(
    without={
        "the frame two before": [write_after_read("host write", COPY)],
        "the image of the screen": [race("WRITE_AFTER_PRESENT", BEGIN, PRESENT)],
        "the present": [race("PRESENT_AFTER_WRITE", PRESENT, "vkCmdEndRenderPass2")],
    },
    needs=PRESENTS,
    rule="a-host-write-waits-for-the-device,initial-transitions-wait-for-earlier-accesses",
)
def scenario_staging_blocks_of_frames(rig: Rig) -> None:
    """Buffers are updated from staging blocks, which the host writes again when the frame two before is complete. The
    last pass moves the swapchain's image to its layouts itself."""
    chain = rig.shown_swapchain()
    image = chain.images[0]
    form, size = format_of(image.format).name, image.extent[:2]
    made = rig.render_pass(
        [RigAttachment(form, final=SHOWN)],
        [RigSubpass([0])],
        [RigSubpassDependency("", VK_SUBPASS_EXTERNAL, 0, OUTPUT, DRAWN)],
    )
    draw = rig.graphics("uniform_color", render_pass=made, extent=size)
    blocks, fences, uniform = [rig.buffer(16) for _ in range(2)], [rig.fence() for _ in range(2)], rig.buffer(16)
    held = rig.descriptors(draw, b0=uniform)
    for number in range(3):
        turn, last = number % 2, number == 2
        if last:
            rig.host_wait("the frame two before", "all", fences[turn])
            fences[turn] = rig.fence()
        rig.host_write(blocks[turn], (RED, BLUE, GREEN)[number])
        acquired, rendered = rig.semaphore(), rig.semaphore()
        index = rig.acquire(chain, acquired)
        with rig.commands() as frame:
            frame.barrier("", "FRAGMENT_SHADER", "ALL_TRANSFER", sync2=False)
            frame.barrier("", "ALL_TRANSFER/TRANSFER_WRITE", "ALL_TRANSFER/TRANSFER_WRITE", sync2=False)
            frame.copy(blocks[turn], uniform)
            frame.barrier("", "ALL_TRANSFER/TRANSFER_WRITE", DRAWS, sync2=False)
            frame.begin_pass(made, rig.framebuffer(made, [rig.view(chain.images[index])], size), v2=True)
            frame.bind(draw, held)
            frame.draw()
            frame.end_pass(v2=True)
        waits = [SemaphoreUse(acquired, OUTPUT)]
        if last:
            waits = rig.operation("the image of the screen", acquired, OUTPUT)
        rig.submit(frame, waits=waits, signals=[SemaphoreUse(rendered)], fence=fences[turn])
        if not waits:
            rig.submit(waits=[SemaphoreUse(acquired)])
        done = rig.operation("the present", rendered) if last else [SemaphoreUse(rendered)]
        rig.present((chain, index), waits=[each.semaphore for each in done])
