"""The range of a layout transition: whole subresources of the levels, layers and aspects that it names."""

from vkharness.spec.enums import VK_REMAINING_ARRAY_LAYERS, VkImageAspect
from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

BARRIER2 = "vkCmdPipelineBarrier2"
UPLOAD, DOWNLOAD, COPY = "vkCmdCopyBufferToImage", "vkCmdCopyImageToBuffer", "vkCmdCopyImage"
CLEAR, BLIT, CLEAR_DEPTH = "vkCmdClearColorImage", "vkCmdBlitImage", "vkCmdClearDepthStencilImage"
SRC, DST = "TRANSFER_SRC_OPTIMAL", "TRANSFER_DST_OPTIMAL"
TEXELS = bytes(i % 241 for i in range(1024))
DEPTH, STENCIL = VkImageAspect.DEPTH, VkImageAspect.STENCIL
REMAINING = VK_REMAINING_ARRAY_LAYERS


@scenario(
    weakened={
        "level 0 to source / with level 1": [write_after_write(BARRIER2, UPLOAD)],
        "level 0 to source / all that remain": [write_after_write(BARRIER2, UPLOAD)],
    },
    rule="a-transition-covers-whole-subresources",
)
def scenario_transition_of_another_mip_level(rig: Rig) -> None:
    """A transition of level 0 does not wait for a write of level 1, unless its range holds that level."""
    data, out, a = rig.buffer(256, data=TEXELS[:256]), rig.buffer(1024), rig.image(mips=3)
    with rig.submission() as commands:
        commands.transition(a)
        commands.buffer_to_image(data, a, {"mip": 1})
        commands.barrier(
            "level 0 to source",
            "NONE",
            "COPY/TRANSFER_READ",
            image=a,
            mips=(0, 1),
            new=SRC,
            weaker={"with level 1": {"mips": (0, 2)}, "all that remain": {"mips": (0, REMAINING)}},
        )
        commands.image_to_buffer(a, out, {"mip": 0}, at=SRC)


@scenario(
    weakened={
        "layers to destination / and the last": [write_after_read(BARRIER2, COPY)],
        "layers to destination / all that remain": [write_after_read(BARRIER2, COPY)],
    },
    rule="a-transition-is-a-write,a-transition-covers-whole-subresources",
)
def scenario_transition_of_other_array_layers(rig: Rig) -> None:
    """A transition of the first two layers does not wait for a read of the third."""
    a, b = rig.image(layers=3), rig.image()
    with rig.submission() as commands:
        commands.transition(a, b)
        commands.copy_image(a, b, {"layer": 2}, {})
        commands.barrier(
            "layers to destination",
            "NONE",
            "CLEAR/TRANSFER_WRITE",
            image=a,
            layers=(0, 2),
            new=DST,
            weaker={"and the last": {"layers": (0, 3)}, "all that remain": {"layers": (0, REMAINING)}},
        )
        commands.clear_color(a, 0x55443322, at=DST, layers=(0, 2))


@scenario(
    weakened={"depth to source / both aspects": [write_after_write(BARRIER2, CLEAR_DEPTH)]},
    rule="a-transition-covers-whole-subresources",
)
def scenario_transition_of_the_other_aspect(rig: Rig) -> None:
    """A transition of depth alone does not wait for a clear of stencil."""
    a, out = rig.image("VK_FORMAT_D32_SFLOAT_S8_UINT", (8, 8, 1)), rig.buffer(256)
    with rig.submission() as commands:
        commands.transition(a)
        commands.clear_depth_stencil(a, stencil=0x5C, aspects=STENCIL)
        commands.barrier(
            "depth to source",
            "NONE",
            "COPY/TRANSFER_READ",
            image=a,
            aspects=DEPTH,
            new=SRC,
            weaker={"both aspects": {"aspects": DEPTH | STENCIL}},
        )
        commands.image_to_buffer(a, out, {"aspect": DEPTH}, at=SRC)


@scenario(
    weakened={
        "to source / from none": [write_after_write(BARRIER2, UPLOAD)],
        "to source / to none": [read_after_write(DOWNLOAD, BARRIER2)],
    },
    rule="every-reading-stage-counts,a-transition-covers-whole-subresources",
)
def scenario_transition_writes_every_slice(rig: Rig) -> None:
    """A transition of a 3D image writes all of it: it waits for an upload of one slice and is waited for by others."""
    data, out, a = rig.buffer(256, data=TEXELS[:256]), rig.buffer(256), rig.image(extent=(8, 8, 8))
    with rig.submission() as commands:
        commands.transition(a)
        commands.buffer_to_image(data, a, {"offset": (0, 0, 5), "extent": (8, 8, 1)})
        commands.barrier(
            "to source",
            "COPY/TRANSFER_WRITE",
            "COPY/TRANSFER_READ",
            image=a,
            new=SRC,
            weaker={"from none": {"src": "NONE"}, "to none": {"dst": "NONE"}},
        )
        commands.image_to_buffer(a, out, {"offset": (0, 0, 2), "extent": (8, 8, 1)}, at=SRC)


@scenario(
    weakened={
        "to source / from none": [write_after_write(BARRIER2, UPLOAD)],
        "to source / to none": [read_after_write(DOWNLOAD, BARRIER2)],
    },
    rule="a-transition-is-a-write,a-transition-covers-whole-subresources",
)
def scenario_transition_writes_untouched_texels(rig: Rig) -> None:
    """A transition writes the whole level though the upload before it and the download after it share no texel."""
    data, out, a = rig.buffer(256, data=TEXELS[:256]), rig.buffer(256), rig.image()
    with rig.submission() as commands:
        commands.transition(a)
        commands.buffer_to_image(data, a, {"offset": (0, 0, 0), "extent": (4, 4, 1)})
        commands.barrier(
            "to source",
            "COPY/TRANSFER_WRITE",
            "COPY/TRANSFER_READ",
            image=a,
            new=SRC,
            weaker={"from none": {"src": "NONE"}, "to none": {"dst": "NONE"}},
        )
        commands.image_to_buffer(a, out, {"offset": (8, 8, 0), "extent": (8, 8, 1)}, at=SRC)


@scenario(
    weakened={
        "level to source / from none": [write_after_write(BARRIER2, CLEAR), write_after_write(BARRIER2, BLIT)],
        "level to source / to copies": [read_after_write(BLIT, BARRIER2)],
    },
    rule="a-transition-covers-whole-subresources",
)
def scenario_mip_chain_goes_level_by_level(rig: Rig) -> None:
    """Mip generation: each level is transitioned to a source when it is written, the others stay a destination."""
    a = rig.image(mips=3)
    written = ("CLEAR/TRANSFER_WRITE", "BLIT/TRANSFER_WRITE")
    with rig.submission() as commands:
        commands.transition(a, new=DST)
        commands.clear_color(a, 0x0C1B2A39, at=DST, mips=(0, 1))
        for level, src in enumerate(written):
            commands.barrier(
                "level to source",
                src,
                "BLIT/TRANSFER_READ",
                image=a,
                mips=(level, 1),
                old=DST,
                new=SRC,
                weaker={"from none": {"src": "NONE"}, "to copies": {"dst": "COPY/TRANSFER_READ"}},
            )
            commands.blit(a, a, {"mip": level}, {"mip": level + 1}, layouts=(SRC, DST))


@scenario(
    weakened={
        "both to sources / the second from none": [write_after_write(BARRIER2, CLEAR)],
        "both to sources / the second to none": [read_after_write(BLIT, BARRIER2)],
    },
    rule="barriers-of-one-command-add-up,a-transition-covers-whole-subresources",
)
def scenario_two_images_in_one_command(rig: Rig) -> None:
    """One command transitions two images, each between its own scopes."""
    a, b, c, d = rig.image(), rig.image(), rig.image(), rig.image(extent=(8, 8, 1))
    first = {"src": "CLEAR/TRANSFER_WRITE", "dst": "COPY/TRANSFER_READ", "image": a, "new": SRC}
    second = {"src": "CLEAR/TRANSFER_WRITE", "dst": "BLIT/TRANSFER_READ", "image": b, "new": SRC}
    with rig.submission() as commands:
        for image in (a, b, c, d):
            commands.transition(image)
        commands.clear_color(a, 0x10305070)
        commands.clear_color(b, 0x20406080)
        commands.barriers(
            "both to sources",
            first,
            second,
            weaker={
                "the second from none": [first, {**second, "src": "NONE"}],
                "the second to none": [first, {**second, "dst": "NONE"}],
            },
        )
        commands.copy_image(a, c, layouts=(SRC, "GENERAL"))
        commands.blit(b, d, layouts=(SRC, "GENERAL"))


@scenario(
    weakened={
        "to source / from none": [write_after_write(BARRIER2, UPLOAD)],
        "to source / to none": [read_after_write(DOWNLOAD, BARRIER2)],
    },
    rule="barriers-reach-over-submits",
)
def scenario_transition_in_a_later_submit(rig: Rig) -> None:
    """A transition at the start of the second submit stands between the upload of the first and the download of the
    third."""
    data, out, a = rig.buffer(1024, data=TEXELS), rig.buffer(1024), rig.image()
    with rig.commands() as first:
        first.transition(a, new=DST)
        first.buffer_to_image(data, a, at=DST)
    with rig.commands() as second:
        second.barrier(
            "to source",
            "COPY/TRANSFER_WRITE",
            "COPY/TRANSFER_READ",
            image=a,
            old=DST,
            new=SRC,
            weaker={"from none": {"src": "NONE"}, "to none": {"dst": "NONE"}},
        )
    with rig.commands() as third:
        third.image_to_buffer(a, out, at=SRC)
    rig.submit(first)
    rig.submit(second, sync2=True)
    rig.submit(third)
