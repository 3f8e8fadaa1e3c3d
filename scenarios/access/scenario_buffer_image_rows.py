"""Which bytes of the buffer a buffer-image copy touches: rows and layers, without the gaps between them."""

from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

FILL, COPY = "vkCmdFillBuffer", "vkCmdCopyBuffer"
UPLOAD, UPLOAD2 = "vkCmdCopyBufferToImage", "vkCmdCopyBufferToImage2"
DOWNLOAD, DOWNLOAD2 = "vkCmdCopyImageToBuffer", "vkCmdCopyImageToBuffer2"


@scenario(
    weakened={
        "filled / the next row": [write_after_read(FILL, UPLOAD)],
        "filled / the last texel of a row": [write_after_read(FILL, UPLOAD)],
    },
    rule="buffer-image-copies-touch-rows-of-texels",
)
def scenario_gaps_after_rows_are_not_read(rig: Rig) -> None:
    """bufferRowLength 16 for rows of 8 texels leaves 32 bytes after each row, which the upload does not read."""
    data, a = rig.buffer(512, data=bytes(i % 227 for i in range(512))), rig.image(extent=(8, 8, 1))
    start = rig.choose("filled", 96, {"the next row": 128, "the last texel of a row": 92})
    with rig.submission() as commands:
        commands.transition(a)
        commands.buffer_to_image(data, a, {"row_length": 16})
        commands.fill(data, 0xEEEEEEEE, start, 32)


@scenario(
    weakened={
        "filled / the second layer": [write_after_write(FILL, DOWNLOAD2)],
        "filled / the end of the first layer": [write_after_write(FILL, DOWNLOAD2)],
    },
    rule="buffer-image-copies-touch-rows-of-texels",
)
def scenario_gaps_between_layers_are_not_written(rig: Rig) -> None:
    """bufferImageHeight 8 for layers of 4 rows leaves 64 bytes after each layer, which the download does not write."""
    data, a = rig.buffer(512), rig.image(extent=(4, 4, 1), layers=2)
    start = rig.choose("filled", 64, {"the second layer": 128, "the end of the first layer": 48})
    with rig.submission() as commands:
        commands.transition(a)
        commands.image_to_buffer(a, data, {"layers": 2, "image_height": 8}, v2=True)
        commands.fill(data, 0xEEEEEEEE, start, 64)


@scenario(
    without={"fill before upload": [read_after_write(UPLOAD, FILL)]},
    weakened={
        "fill before upload / bytes before": [read_after_write(UPLOAD, FILL)],
        "buffer offset / in the other half": [],
    },
    rule="buffer-image-copies-touch-rows-of-texels",
)
def scenario_upload_reads_from_its_buffer_offset(rig: Rig) -> None:
    """An upload reads from bufferOffset on; a barrier over those bytes is enough, and over others is none."""
    data, a = rig.buffer(512), rig.image(extent=(8, 8, 1))
    offset = rig.choose("buffer offset", 256, {"in the other half": 0})
    with rig.submission() as commands:
        commands.transition(a)
        commands.fill(data, 0xABCDEF01, 256, 256)
        if offset:
            commands.barrier(
                "fill before upload",
                "CLEAR/TRANSFER_WRITE",
                "COPY/TRANSFER_READ",
                buffer=data,
                offset=256,
                weaker={"bytes before": {"offset": 0, "size": 256}},
            )
        commands.buffer_to_image(data, a, {"buffer_offset": offset})


@scenario(
    weakened={
        "second region / over the first": [read_after_write(COPY, DOWNLOAD)],
        "second region / by a texel": [read_after_write(COPY, DOWNLOAD)],
    },
    rule="buffer-image-copies-touch-rows-of-texels",
)
def scenario_download_of_two_boxes_writes_two_ranges(rig: Rig) -> None:
    """Two regions of a download write two ranges; a copy from between them needs nothing."""
    data, out, a = rig.buffer(512), rig.buffer(512), rig.image()
    place = rig.choose("second region", 256, {"over the first": 96, "by a texel": 188})
    regions = [
        {"offset": (0, 0, 0), "extent": (4, 4, 1), "buffer_offset": 0},
        {"offset": (4, 4, 0), "extent": (4, 4, 1), "buffer_offset": place},
    ]
    with rig.submission() as commands:
        commands.transition(a)
        commands.image_to_buffer(a, data, regions)
        commands.copy(data, out, (64, 0, 128))


@scenario(
    without={"upload before download": [read_after_write(DOWNLOAD2, UPLOAD2)]},
    weakened={
        "upload before download / clear and blit": [read_after_write(DOWNLOAD2, UPLOAD2)],
        "upload before download / level 0": [read_after_write(DOWNLOAD2, UPLOAD2)],
    },
    rule="mip-levels-and-layers-are-apart",
)
def scenario_small_mip_level_goes_there_and_back(rig: Rig) -> None:
    """The last mip level of an image is one texel; an upload of it and a download of it meet there."""
    data, out, a = rig.buffer(64, data=bytes(range(64))), rig.buffer(64), rig.image(mips=5)
    with rig.submission() as commands:
        commands.transition(a)
        commands.buffer_to_image(data, a, {"mip": 4, "buffer_offset": 16}, v2=True)
        commands.barrier(
            "upload before download",
            "COPY/TRANSFER_WRITE",
            "COPY/TRANSFER_READ",
            image=a,
            mips=(4, 1),
            weaker={
                "clear and blit": {"src": "CLEAR|BLIT/TRANSFER_WRITE", "dst": "CLEAR|BLIT/TRANSFER_READ"},
                "level 0": {"mips": (0, 1)},
            },
        )
        commands.image_to_buffer(a, out, {"mip": 4}, v2=True)
