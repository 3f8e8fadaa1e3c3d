"""Reads and writes of images by transfer commands: which stage and access each one is."""

from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

CLEAR, COPY, COPY2 = "vkCmdClearColorImage", "vkCmdCopyImage", "vkCmdCopyImage2"
BLIT, BLIT2 = "vkCmdBlitImage", "vkCmdBlitImage2"
UPLOAD, UPLOAD2 = "vkCmdCopyBufferToImage", "vkCmdCopyBufferToImage2"
DOWNLOAD, DOWNLOAD2 = "vkCmdCopyImageToBuffer", "vkCmdCopyImageToBuffer2"


@scenario(
    without={"clear before copy": [read_after_write(COPY, CLEAR)]},
    weakened={
        "clear before copy / execution only": [read_after_write(COPY, CLEAR)],
        "clear before copy / to the blit stage": [read_after_write(COPY, CLEAR)],
    },
    rule="read-after-write,fills-updates-and-clears-use-the-clear-stage",
)
def scenario_copy_reads_a_cleared_image(rig: Rig) -> None:
    """A clear writes in the CLEAR stage and a copy reads in the COPY stage."""
    a, b = rig.image(), rig.image()
    with rig.submission() as commands:
        commands.transition(a, b)
        commands.clear_color(a)
        commands.barrier(
            "clear before copy",
            "CLEAR/TRANSFER_WRITE",
            "COPY/TRANSFER_READ",
            weaker={
                "execution only": {"src": "CLEAR", "dst": "COPY"},
                "to the blit stage": {"dst": "BLIT/TRANSFER_READ"},
            },
        )
        commands.copy_image(a, b)


@scenario(
    without={"copy before blit": [read_after_write(BLIT2, COPY2)]},
    weakened={"copy before blit / to the copy stage": [read_after_write(BLIT2, COPY2)]},
    rule="blits-use-the-blit-stage",
)
def scenario_blit2_reads_a_copied_image(rig: Rig) -> None:
    """A blit reads in the BLIT stage: a dependency into COPY does not make a copied image visible to it."""
    a, b, c = rig.image(), rig.image(), rig.image(extent=(8, 8, 1))
    with rig.submission() as commands:
        for image in (a, b, c):
            commands.transition(image)
        commands.copy_image(a, b, v2=True)
        commands.barrier(
            "copy before blit",
            "COPY/TRANSFER_WRITE",
            "BLIT/TRANSFER_READ",
            image=b,
            weaker={"to the copy stage": {"dst": "COPY/TRANSFER_READ"}},
        )
        commands.blit(b, c, v2=True)


@scenario(
    without={"blit before clear": [write_after_read(CLEAR, BLIT)]},
    weakened={
        "blit before clear / from the copy stage": [write_after_read(CLEAR, BLIT)],
        "blit before clear / to the copy stage": [write_after_read(CLEAR, BLIT)],
    },
    rule="write-after-read,blits-use-the-blit-stage",
)
def scenario_clear_overwrites_what_a_blit_read(rig: Rig) -> None:
    """An execution dependency from BLIT to CLEAR lets a clear overwrite the source of a blit."""
    a, b = rig.image(), rig.image(extent=(32, 8, 1))
    with rig.submission() as commands:
        commands.transition(a, b)
        commands.blit(a, b)
        commands.barrier(
            "blit before clear",
            "BLIT",
            "CLEAR",
            weaker={"from the copy stage": {"src": "COPY"}, "to the copy stage": {"dst": "COPY"}},
        )
        commands.clear_color(a, 0xFF00FF00)


@scenario(
    without={"clear before blit": [write_after_write(BLIT, CLEAR)]},
    weakened={
        "clear before blit / visible to reads only": [write_after_write(BLIT, CLEAR)],
        "clear before blit / another image": [write_after_write(BLIT, CLEAR)],
    },
    rule="write-after-write,blits-use-the-blit-stage",
)
def scenario_flipped_blit_overwrites_a_cleared_image(rig: Rig) -> None:
    """A blit whose corners are given the other way round writes the same texels, and conflicts like any other."""
    a, b = rig.image(), rig.image()
    with rig.submission() as commands:
        commands.transition(a, b)
        commands.clear_color(b, 0x01020304)
        commands.barrier(
            "clear before blit",
            "CLEAR/TRANSFER_WRITE",
            "BLIT/TRANSFER_WRITE",
            image=b,
            weaker={"visible to reads only": {"dst": "BLIT/TRANSFER_READ"}, "another image": {"image": a}},
        )
        commands.blit(a, b, {}, {"flipped": True})


@scenario(
    without={"upload before blit": [read_after_write(BLIT, UPLOAD)]},
    weakened={"upload before blit / to the copy stage": [read_after_write(BLIT, UPLOAD)]},
    rule="read-after-write,blits-use-the-blit-stage",
)
def scenario_blit_scales_an_uploaded_image(rig: Rig) -> None:
    """A blit reads each texel of what was uploaded, here for four of its own."""
    data = rig.buffer(1024, data=bytes(i % 251 for i in range(1024)))
    a, b = rig.image(), rig.image(extent=(32, 32, 1))
    with rig.submission() as commands:
        commands.transition(a, b)
        commands.buffer_to_image(data, a)
        commands.barrier(
            "upload before blit",
            "COPY/TRANSFER_WRITE",
            "BLIT/TRANSFER_READ",
            image=a,
            weaker={"to the copy stage": {"dst": "COPY/TRANSFER_READ"}},
        )
        commands.blit(a, b)


@scenario(
    without={"upload before copy": [read_after_write(COPY, UPLOAD)]},
    weakened={"upload before copy / from the clear stage": [read_after_write(COPY, UPLOAD)]},
    rule="read-after-write,copies-use-the-copy-stage",
)
def scenario_copy_reads_an_uploaded_image(rig: Rig) -> None:
    """vkCmdCopyBufferToImage writes in the COPY stage."""
    data, a, b = rig.buffer(1024, data=bytes(i % 251 for i in range(1024))), rig.image(), rig.image()
    with rig.submission() as commands:
        commands.transition(a, b)
        commands.buffer_to_image(data, a)
        commands.barrier(
            "upload before copy",
            "ALL_TRANSFER/TRANSFER_WRITE",
            "ALL_TRANSFER/TRANSFER_READ",
            sync2=False,
            weaker={"from the clear stage": {"src": "CLEAR/TRANSFER_WRITE", "sync2": True}},
        )
        commands.copy_image(a, b)


@scenario(
    without={
        "clear before download": [read_after_write(DOWNLOAD2, CLEAR)],
        "download before fill": [write_after_write("vkCmdFillBuffer", DOWNLOAD2)],
    },
    weakened={"download before fill / from reads": [write_after_write("vkCmdFillBuffer", DOWNLOAD2)]},
    rule="read-after-write,copies-use-the-copy-stage",
)
def scenario_download2_reads_the_image_and_writes_the_buffer(rig: Rig) -> None:
    """vkCmdCopyImageToBuffer2 is a COPY read of the image and a COPY write of the buffer, each with its own need."""
    a, data = rig.image(), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(a)
        commands.clear_color(a, 0x0F1E2D3C)
        commands.barrier("clear before download", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ", image=a)
        commands.image_to_buffer(a, data, v2=True)
        commands.barrier(
            "download before fill",
            "COPY/TRANSFER_WRITE",
            "CLEAR/TRANSFER_WRITE",
            buffer=data,
            weaker={"from reads": {"src": "COPY/TRANSFER_READ"}},
        )
        commands.fill(data, 0x99999999, 0, 512)


@scenario(
    without={"copy before upload": [write_after_read(UPLOAD2, COPY2)]},
    weakened={"copy before upload / from the clear stage": [write_after_read(UPLOAD2, COPY2)]},
    rule="write-after-read",
)
def scenario_upload2_overwrites_what_a_copy2_read(rig: Rig) -> None:
    """An upload into the source of a copy needs an execution dependency, which an image barrier also gives."""
    data, a, b = rig.buffer(1024, data=bytes(i % 249 for i in range(1024))), rig.image(), rig.image()
    with rig.submission() as commands:
        commands.transition(a, b)
        commands.copy_image(a, b, v2=True)
        commands.barrier(
            "copy before upload", "COPY", "COPY", image=a, weaker={"from the clear stage": {"src": "CLEAR"}}
        )
        commands.buffer_to_image(data, a, v2=True)


@scenario(
    without={"clear before clear": [write_after_write(CLEAR, CLEAR)]},
    weakened={"clear before clear / execution only": [write_after_write(CLEAR, CLEAR)]},
    rule="write-after-write",
)
def scenario_clear_overwrites_a_clear(rig: Rig) -> None:
    """Two clears of one image are two writes; submission order alone orders nothing."""
    a = rig.image()
    with rig.submission() as commands:
        commands.transition(a)
        commands.clear_color(a, 0x10101010)
        commands.barrier(
            "clear before clear",
            "CLEAR/TRANSFER_WRITE",
            "CLEAR/TRANSFER_WRITE",
            weaker={"execution only": {"src": "CLEAR", "dst": "CLEAR"}},
        )
        commands.clear_color(a, 0x20304050)
