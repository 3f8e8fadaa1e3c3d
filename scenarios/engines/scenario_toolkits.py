"""Frames of toolkits and smaller engines: SDL's GPU interface, Dear ImGui, Skia, zink, Bevy, libplacebo."""

import struct

from vkharness.rig.core import RigImage
from vkharness.rig.graphics_pipelines import POSITIONS
from vkharness.rig.queues import SemaphoreUse
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.rig.requirements import PRESENTS
from vkharness.rig.swapchains import SHOWN
from vkharness.spec.enums import VkCompareOp
from vkharness.suite import Rig, race, read_after_write, scenario, write_after_read, write_after_write

BARRIER, BARRIER_1, COPY, DISPATCH = "vkCmdPipelineBarrier2", "vkCmdPipelineBarrier", "vkCmdCopyBuffer", "vkCmdDispatch"
LOADS = "vkCmdBeginRendering"
DRAW, INDEXED, END, PRESENT = "vkCmdDraw", "vkCmdDrawIndexed", "vkCmdEndRendering", "vkQueuePresentKHR"
UPLOAD, DOWNLOAD = "vkCmdCopyBufferToImage", "vkCmdCopyImageToBuffer"
COLOR, READ_ONLY, TARGET = "COLOR_ATTACHMENT_OPTIMAL", "SHADER_READ_ONLY_OPTIMAL", "TRANSFER_DST_OPTIMAL"
OUTPUT = "COLOR_ATTACHMENT_OUTPUT"
DRAWN = f"{OUTPUT}/COLOR_ATTACHMENT_WRITE"
WRITTEN = "ALL_TRANSFER/TRANSFER_WRITE"
SAMPLED = "FRAGMENT_SHADER/SHADER_READ"
STORED, LOADED = "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "COMPUTE_SHADER/SHADER_STORAGE_READ"
WORDS = bytes(range(256))
TRIANGLE, SMALL = struct.pack("<6f", -1, -1, 3, -1, -1, 3), struct.pack("<6f", -1, -1, 0, -1, -1, 0)


def _sampled(rig: Rig, image: RigImage, at: str = READ_ONLY) -> tuple[object, object, int]:
    return rig.view(image), rig.sampler(), getattr(rig.vk, f"VK_IMAGE_LAYOUT_{at}")


@scenario(
    without={"the fence of the download": [read_after_write("host read", DOWNLOAD)]},
    weakened={
        "to its usual use / of shaders": [write_after_write(BARRIER_1, UPLOAD)],
        "from its usual use / of vertices": [write_after_read(BARRIER_1, DRAW)],
        "the transfer buffer / not cycled": [write_after_read("host write", UPLOAD)],
    },
    rule="a-transition-is-a-write,a-host-write-waits-for-the-device",
)
def scenario_textures_with_a_usual_use(rig: Rig) -> None:
    """SDL leaves a texture in the layout of its usual use between passes: a copy pass moves it out of there and back.
    A transfer buffer that is still in use is cycled, which gives the program another one behind the same name."""
    texture, shown, out, done = rig.image(), rig.target(), rig.buffer(1024), rig.fence()
    transfers, sample = [rig.buffer(1024, data=WORDS) for _ in range(2)], rig.graphics("sample_color")
    chosen = transfers[rig.choose("the transfer buffer", 1, {"not cycled": 0})]
    uploads = [transfers[0], chosen]
    for number, source in enumerate(uploads):
        if number:
            rig.host_write(source, WORDS[::-1])
        with rig.commands() as frame:
            before, layout = (SAMPLED, READ_ONLY) if number else ("TOP_OF_PIPE", "UNDEFINED")
            frame.barrier(
                "from its usual use" if number else "",
                before,
                WRITTEN,
                image=texture,
                old=layout,
                new=TARGET,
                sync2=False,
                weaker={"of vertices": {"src": "VERTEX_SHADER"}},
            )
            frame.buffer_to_image(source, texture, at=TARGET)
            frame.barrier(
                "" if number else "to its usual use",
                WRITTEN,
                SAMPLED,
                image=texture,
                old=TARGET,
                new=READ_ONLY,
                sync2=False,
                weaker={"of shaders": {"src": "FRAGMENT_SHADER"}},
            )
            frame.transition(shown, src="ALL_TRANSFER|COLOR_ATTACHMENT_OUTPUT", dst=DRAWN, new=COLOR, sync2=False)
            frame.render(sample, RenderingAttachment(rig.view(shown), layout=COLOR), b0=_sampled(rig, texture))
            frame.transition(
                shown, src=DRAWN, dst="ALL_TRANSFER/TRANSFER_READ", old=COLOR, new="TRANSFER_SRC_OPTIMAL", sync2=False
            )
            frame.barrier("", "ALL_TRANSFER/TRANSFER_WRITE", WRITTEN, sync2=False)
            frame.image_to_buffer(shown, out, at="TRANSFER_SRC_OPTIMAL")
            frame.barrier("", WRITTEN, "HOST/HOST_READ", sync2=False)
        rig.submit(frame, fence=done if number else None)
    rig.host_wait("the fence of the download", "all", done)
    rig.host_read(out)


@scenario(
    without={"the frame before": [write_after_read("host write", INDEXED)]},
    weakened={"the vertices / of one frame": [write_after_read("host write", INDEXED)]},
    rule="a-host-write-waits-for-the-device,indices-are-read-by-index-input",
)
def scenario_vertices_that_the_host_writes(rig: Rig) -> None:
    """A user interface writes its vertices and indices for each frame to the buffers of that frame in flight."""
    image, draw = rig.target(), rig.graphics(**POSITIONS)
    vertices, indices = [rig.buffer(24) for _ in range(2)], [rig.buffer(12) for _ in range(2)]
    fences = [rig.fence() for _ in range(3)]
    for number in range(3):
        turn = number % 2
        if number == 2:
            rig.host_wait("the frame before", "all", fences[0])
        if number == 1:
            turn = rig.choose("the vertices", 1, {"of one frame": 0})
        rig.host_write(vertices[turn], TRIANGLE if number else SMALL)
        rig.host_write(indices[turn], struct.pack("<3I", 0, 1, 2))
        with rig.commands() as frame:
            frame.transition(image, src=DRAWN, dst=DRAWN, new=COLOR)
            frame.begin_rendering(RenderingAttachment(rig.view(image), layout=COLOR))
            frame.bind(draw)
            frame.bind_vertices(vertices[turn])
            frame.bind_indices(indices[turn])
            frame.draw_indexed()
            frame.end_rendering()
        rig.submit(frame, fence=fences[number])


@scenario(
    without={
        "the window": [race("WRITE_AFTER_PRESENT", BARRIER, PRESENT)],
        "the other window": [race("WRITE_AFTER_PRESENT", BARRIER, PRESENT)],
        "both windows": [race("PRESENT_AFTER_WRITE", PRESENT, BARRIER)],
    },
    needs=PRESENTS,
    rule="an-acquire-stands-for-its-own-image,a-present-waits-for-the-frame",
)
def scenario_windows_beside_the_first(rig: Rig) -> None:
    """Each window has a swapchain, and its frame waits for an acquire of its own. One present shows both."""
    chains = [rig.shown_swapchain() for _ in range(2)]
    rendered, shown = [rig.semaphore() for _ in chains], []
    for name, chain, done in zip(("the window", "the other window"), chains, rendered, strict=True):
        acquired = rig.semaphore()
        index = rig.acquire(chain, acquired)
        image = chain.images[index]
        with rig.commands() as frame:
            frame.transition(image, src=OUTPUT, dst=DRAWN, new=COLOR)
            frame.render(rig.drawing_to(image), RenderingAttachment(rig.view(image), layout=COLOR))
            frame.transition(image, src=DRAWN, dst="NONE", old=COLOR, new=SHOWN)
        waits = rig.operation(name, acquired, OUTPUT)
        rig.submit(frame, waits=waits, signals=[SemaphoreUse(done)], sync2=True)
        if not waits:
            rig.submit(waits=[SemaphoreUse(acquired)])
        shown.append((chain, index))
    waited = rig.choose("both windows", rendered, {})
    rig.present(*shown, waits=waited or [])


@scenario(
    weakened={
        "drawn before uploaded / of vertices": [write_after_read(BARRIER_1, DRAW)],
        "uploaded before drawn / of nothing": [write_after_write(BARRIER_1, UPLOAD)],
    },
    rule="a-transition-covers-whole-subresources,a-transition-is-a-write",
)
def scenario_atlas_that_grows_in_a_frame(rig: Rig) -> None:
    """Skia adds glyphs to an atlas between two draws that sample it: one region is uploaded, the whole atlas moves."""
    atlas, shown, sample = rig.image(), [rig.target() for _ in range(2)], rig.graphics("sample_color")
    glyphs = rig.buffer(1024, data=WORDS * 4)
    with rig.submission() as frame:
        frame.transition(atlas, dst=WRITTEN, new=TARGET, sync2=False)
        frame.transition(*shown, dst=DRAWN, new=COLOR, sync2=False)
        frame.buffer_to_image(glyphs, atlas, at=TARGET)
        frame.barrier("", WRITTEN, SAMPLED, image=atlas, old=TARGET, new=READ_ONLY, sync2=False)
        frame.render(sample, RenderingAttachment(rig.view(shown[0]), layout=COLOR), b0=_sampled(rig, atlas))
        weaker = {"of vertices": {"src": "VERTEX_SHADER"}}
        to_write = {"image": atlas, "old": READ_ONLY, "new": TARGET, "sync2": False}
        frame.barrier("drawn before uploaded", "FRAGMENT_SHADER", WRITTEN, weaker=weaker, **to_write)
        frame.buffer_to_image(glyphs, atlas, {"offset": (8, 8, 0), "extent": (4, 4, 1)}, at=TARGET)
        weaker = {"of nothing": {"src": "ALL_TRANSFER"}}
        to_read = {"image": atlas, "old": TARGET, "new": READ_ONLY, "sync2": False}
        frame.barrier("uploaded before drawn", WRITTEN, SAMPLED, weaker=weaker, **to_read)
        frame.render(sample, RenderingAttachment(rig.view(shown[1]), layout=COLOR), b0=_sampled(rig, atlas))


@scenario(
    without={"ahead of the main commands": [read_after_write(DISPATCH, COPY)]},
    rule="barriers-reach-over-submits,submission-order-is-no-dependency",
)
def scenario_commands_moved_ahead(rig: Rig) -> None:
    """zink moves copies that meet nothing before them to a second command buffer, which the same submit executes first.
    The barrier behind them is at its end."""
    staging, words, out, other = rig.buffer(data=WORDS), rig.buffer(), rig.buffer(), rig.buffer()
    copy, fill = rig.compute("copy_words"), rig.compute("fill_words")
    with rig.commands() as main:
        main.run(fill, 3, b0=other)
        main.run(copy, b0=words, b1=out)
    with rig.commands() as ahead:
        ahead.copy(staging, words)
        ahead.barrier("ahead of the main commands", WRITTEN, "ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE")
    rig.submit(ahead, main, sync2=True)


@scenario(
    without={"stored before loaded": [read_after_write(DISPATCH, DISPATCH)]},
    weakened={"the element / of the other buffer": [write_after_write(DISPATCH, COPY)]},
    rule="each-array-element-is-an-access-of-its-own,any-element-of-an-array",
)
def scenario_array_of_all_buffers(rig: Rig) -> None:
    """A bindless renderer binds all of its buffers as one array; a push constant says which one a dispatch is about.
    The others may be in use at the same time."""
    buffers, staging, out = [rig.buffer() for _ in range(4)], rig.buffer(data=WORDS), rig.buffer()
    store, copy = rig.compute("array_dynamic_index"), rig.compute("copy_words")
    element = rig.choose("the element", 2, {"of the other buffer": 1})
    with rig.submission() as frame:
        frame.copy(staging, buffers[1])
        frame.run(store, element, 0x40, b0=buffers)
        frame.barrier("stored before loaded", STORED, LOADED)
        frame.run(copy, b0=buffers[2], b1=out)


@scenario(
    without={"depth before the main pass": [read_after_write(LOADS, END), read_after_write(DRAW, END)]},
    weakened={"depth before the main pass / for tests alone": [read_after_write(DRAW, END)]},
    rule="depth-and-stencil-tests-read,read-only-layouts-need-no-dependency",
)
def scenario_depth_before_the_main_pass(rig: Rig) -> None:
    """Depth is drawn first. The main pass loads it, tests against it and samples it in one layout for all of that."""
    form, equal = "VK_FORMAT_D32_SFLOAT", VkCompareOp.GREATER_OR_EQUAL
    depth, first, shown = rig.target(form), rig.target(), rig.target()
    prepass = rig.graphics("gradient", depth=form, depth_test=True, depth_write=True)
    main = rig.graphics("sample_color", depth=form, depth_test=True, depth_compare=equal)
    tests = "EARLY_FRAGMENT_TESTS|LATE_FRAGMENT_TESTS"
    written = f"{tests}/DEPTH_STENCIL_ATTACHMENT_READ|DEPTH_STENCIL_ATTACHMENT_WRITE"
    with rig.submission() as frame:
        frame.transition(depth, dst=written)
        frame.transition(first, shown, dst=DRAWN)
        view = rig.view(depth, aspect=2)
        frame.render(prepass, RenderingAttachment(rig.view(first)), depth=RenderingAttachment(view, clear=(1.0, 0)))
        read = f"{tests}|FRAGMENT_SHADER/DEPTH_STENCIL_ATTACHMENT_READ|SHADER_SAMPLED_READ"
        weaker = {"for tests alone": {"dst": f"{tests}/DEPTH_STENCIL_ATTACHMENT_READ"}}
        frame.barrier("depth before the main pass", written, read, weaker=weaker)
        frame.render(
            main,
            RenderingAttachment(rig.view(shown)),
            depth=RenderingAttachment(view, load="LOAD", store="NONE"),
            b0=(view, rig.sampler(), rig.vk.VK_IMAGE_LAYOUT_GENERAL),
        )


@scenario(
    without={"one pass before the next": [read_after_write(DISPATCH, DISPATCH)]},
    needs=["VK_KHR_push_descriptor"],
    rule="the-last-write-of-a-descriptor-counts,read-after-write",
)
def scenario_pushed_images_of_a_filter(rig: Rig) -> None:
    """libplacebo pushes the descriptors of each pass: the same binding means another image from one to the next."""
    images = [rig.image() for _ in range(3)]
    store, copy = rig.compute("image_store_2d", push=True), rig.compute("image_copy_2d", push=True)
    at = rig.vk.VK_IMAGE_LAYOUT_GENERAL
    held = [(rig.view(each), None, at) for each in images]
    with rig.submission() as frame:
        frame.transition(*images, dst=STORED)
        frame.bind(store)
        frame.push_descriptors(store, b0=held[0])
        frame.push_constants(store, 0x11223344)
        frame.dispatch(4)
        frame.barrier("", STORED, LOADED)
        frame.bind(copy)
        frame.push_descriptors(copy, b0=held[0], b1=held[1])
        frame.dispatch(4)
        frame.barrier("one pass before the next", STORED, LOADED)
        frame.push_descriptors(copy, b0=held[1], b1=held[2])
        frame.dispatch(4)
