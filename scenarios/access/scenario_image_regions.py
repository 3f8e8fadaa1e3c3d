"""Which texels transfer commands touch: boxes, mip levels, array layers, slices and blocks."""

from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

CLEAR, COPY, COPY2, BLIT = "vkCmdClearColorImage", "vkCmdCopyImage", "vkCmdCopyImage2", "vkCmdBlitImage"
UPLOAD, DOWNLOAD = "vkCmdCopyBufferToImage", "vkCmdCopyImageToBuffer"


@scenario(
    weakened={
        "column / one to the left": [write_after_write(COPY, UPLOAD)],
        "column / the same half": [write_after_write(COPY, UPLOAD)],
    },
    rule="only-shared-bytes-conflict,image-regions-are-exact",
)
def scenario_left_and_right_halves_are_apart(rig: Rig) -> None:
    """Writes of the left and the right half of an image interleave in memory but share no texel."""
    data, a, b = rig.buffer(1024, data=bytes(i % 241 for i in range(1024))), rig.image(), rig.image()
    column = rig.choose("column", 8, {"one to the left": 7, "the same half": 0})
    with rig.submission() as commands:
        commands.transition(a, b)
        commands.buffer_to_image(data, b, {"extent": (8, 16, 1)})
        commands.copy_image(a, b, {"extent": (8, 16, 1)}, {"offset": (column, 0, 0)})


@scenario(
    weakened={
        "regions / second in the cleared corner": [write_after_read(UPLOAD, COPY2)],
        "regions / both": [write_after_read(UPLOAD, COPY2)],
    },
    rule="image-regions-are-exact",
)
def scenario_two_boxes_leave_the_rest_alone(rig: Rig) -> None:
    """A copy of two boxes reads those, and an upload between them needs nothing."""
    data, a, b = rig.buffer(1024, data=bytes(i % 239 for i in range(1024))), rig.image(), rig.image()
    size = {"extent": (4, 4, 1)}
    whole = [{"offset": (0, 0, 0), **size}, {"offset": (12, 12, 0), **size}]
    read = rig.choose(
        "regions",
        whole,
        {
            "second in the cleared corner": [whole[0], {"offset": (9, 9, 0), **size}],
            "both": [{"offset": (4, 5, 0), **size}, {"offset": (5, 9, 0), **size}],
        },
    )
    with rig.submission() as commands:
        commands.transition(a, b)
        commands.copy_image(a, b, read, whole, v2=True)
        commands.buffer_to_image(data, a, {"offset": (4, 4, 0), "extent": (8, 8, 1)})


@scenario(
    without={"level before blit": [read_after_write(BLIT, COPY)]},
    weakened={
        "level before blit / the level below": [read_after_write(BLIT, COPY)],
        "level before blit / the level above": [read_after_write(BLIT, COPY)],
    },
    rule="mip-levels-and-layers-are-apart,a-ranged-barrier-covers-its-range",
)
def scenario_mip_levels_are_apart(rig: Rig) -> None:
    """Each step of mip generation depends on the level it reads only: a barrier may name that level alone."""
    a, b = rig.image(extent=(32, 32, 1), mips=3), rig.image()
    with rig.submission() as commands:
        commands.transition(a, b)
        commands.copy_image(b, a, {}, {"mip": 1})
        commands.barrier(
            "level before blit",
            "COPY/TRANSFER_WRITE",
            "BLIT/TRANSFER_READ",
            image=a,
            mips=(1, 1),
            weaker={"the level below": {"mips": (2, 1)}, "the level above": {"mips": (0, 1)}},
        )
        commands.blit(a, a, {"mip": 1}, {"mip": 2})


@scenario(
    weakened={"filter / linear": [read_after_write(BLIT, UPLOAD)], "filter / linear, both halves": []},
    rule="a-filter-may-read-beside-the-region-of-a-blit",
)
def scenario_magnified_blit_reads_beside_its_region(rig: Rig) -> None:
    """A linear filter that magnifies the left half may read the first column of the right one, the nearest never."""
    data, a, b = rig.buffer(1024, data=bytes(i % 241 for i in range(1024))), rig.image(), rig.image()
    linear = rig.choose("filter", 0, {"linear": 1, "linear, both halves": 2})
    right = {"extent": (8, 16, 1), "offset": (8, 0, 0)}
    with rig.submission() as commands:
        commands.transition(a, b)
        commands.buffer_to_image(data, a, right)
        wide = 8 if linear == 2 else 16
        commands.blit(a, b, {"extent": (8, 16, 1)}, {"extent": (wide, 16, 1)}, linear=bool(linear))


@scenario(
    without={"layers before download": [read_after_write(DOWNLOAD, CLEAR)]},
    weakened={
        "layers before download / one of the two": [read_after_write(DOWNLOAD, CLEAR)],
        "layers before download / the layers before": [read_after_write(DOWNLOAD, CLEAR)],
    },
    rule="mip-levels-and-layers-are-apart,a-ranged-barrier-covers-its-range",
)
def scenario_array_layers_are_apart(rig: Rig) -> None:
    """A barrier over the layers that are read is enough, though others were written too."""
    a, data = rig.image(extent=(8, 8, 1), layers=4), rig.buffer(512)
    with rig.submission() as commands:
        commands.transition(a)
        commands.clear_color(a, 0x31415926)
        commands.barrier(
            "layers before download",
            "CLEAR/TRANSFER_WRITE",
            "COPY/TRANSFER_READ",
            image=a,
            layers=(2, 2),
            weaker={"one of the two": {"layers": (2, 1)}, "the layers before": {"layers": (0, 2)}},
        )
        commands.image_to_buffer(a, data, {"layer": 2, "layers": 2})


@scenario(
    weakened={
        "cleared / the layer read": [write_after_read(CLEAR, COPY)],
        "cleared / from the layer before on": [write_after_read(CLEAR, COPY)],
    },
    rule="mip-levels-and-layers-are-apart",
)
def scenario_clear_of_other_layers_needs_nothing(rig: Rig) -> None:
    """A clear touches the layers of its ranges only."""
    a, b = rig.image(layers=4), rig.image()
    layers = rig.choose("cleared", (2, 2), {"the layer read": (1, 1), "from the layer before on": (0, 4)})
    with rig.submission() as commands:
        commands.transition(a, b)
        commands.copy_image(a, b, {"layer": 1})
        commands.clear_color(a, 0x27182818, layers=layers)


@scenario(
    weakened={
        "slice / one before": [read_after_write(COPY, UPLOAD)],
        "slice / the same": [read_after_write(COPY, UPLOAD)],
    },
    rule="image-regions-are-exact",
)
def scenario_slices_of_a_3d_image_are_apart(rig: Rig) -> None:
    """An upload of the first four slices and a copy of the last four share no texel."""
    data, a, b = rig.buffer(1024), rig.image(extent=(8, 8, 8)), rig.image(extent=(8, 8, 8))
    rig.host_write(data, bytes(i % 233 for i in range(1024)))
    start = rig.choose("slice", 4, {"one before": 3, "the same": 0})
    with rig.submission() as commands:
        commands.transition(a, b)
        commands.buffer_to_image(data, a, {"extent": (8, 8, 4)})
        commands.copy_image(a, b, {"offset": (0, 0, start), "extent": (8, 8, 4)}, {})


@scenario(
    weakened={
        "first slice / the last layer's": [write_after_write(COPY, UPLOAD)],
        "first slice / before": [write_after_write(COPY, UPLOAD)],
    },
    rule="image-regions-are-exact",
)
def scenario_layers_become_slices(rig: Rig) -> None:
    """A copy of three array layers into a 3D image writes three slices of it."""
    data, array, volume = rig.buffer(256), rig.image(extent=(8, 8, 1), layers=3), rig.image(extent=(8, 8, 8))
    rig.host_write(data, bytes(i % 229 for i in range(256)))
    start = rig.choose("first slice", 1, {"the last layer's": 2, "before": 3})
    with rig.submission() as commands:
        commands.transition(array, volume)
        commands.buffer_to_image(data, volume, {"offset": (0, 0, 4), "extent": (8, 8, 1)})
        commands.copy_image(array, volume, {"layers": 3, "extent": (8, 8, 3)}, {"offset": (0, 0, start)})


@scenario(
    weakened={
        "row of blocks / the one written": [read_after_write(DOWNLOAD, UPLOAD)],
        "row of blocks / its last texels": [read_after_write(DOWNLOAD, UPLOAD)],
    },
    rule="image-regions-are-exact",
)
def scenario_rows_of_compressed_blocks_are_apart(rig: Rig) -> None:
    """A compressed image is addressed in whole blocks: rows of blocks do not conflict."""
    data, out = rig.buffer(64), rig.buffer(64)
    a = rig.image("VK_FORMAT_BC1_RGB_UNORM_BLOCK", usage=0x3)
    rig.host_write(data, bytes(range(1, 65)))
    y, height = rig.choose("row of blocks", (12, 4), {"the one written": (8, 4), "its last texels": (4, 8)})
    with rig.submission() as commands:
        commands.transition(a)
        commands.buffer_to_image(data, a, {"offset": (0, 8, 0), "extent": (16, 4, 1)})
        commands.image_to_buffer(a, out, {"offset": (0, y, 0), "extent": (16, height, 1)})


@scenario(
    weakened={
        "read block / the one written": [read_after_write(COPY, UPLOAD)],
        "read block / a row of three": [read_after_write(COPY, UPLOAD)],
    },
    rule="image-regions-are-exact",
)
def scenario_compressed_blocks_of_one_row_are_apart(rig: Rig) -> None:
    """Neighbouring blocks do not conflict, also when they are copied as texels of an uncompressed format."""
    data = rig.buffer(64)
    a = rig.image("VK_FORMAT_BC1_RGB_UNORM_BLOCK", usage=0x3)
    b = rig.image("VK_FORMAT_R32G32_UINT", (4, 4, 1), usage=0x3)
    rig.host_write(data, bytes(range(1, 65)))
    x, width = rig.choose("read block", (8, 8), {"the one written": (4, 4), "a row of three": (4, 12)})
    with rig.submission() as commands:
        commands.transition(a, b)
        commands.buffer_to_image(data, a, {"offset": (4, 8, 0), "extent": (4, 4, 1)})
        commands.copy_image(a, b, {"offset": (x, 8, 0), "extent": (width, 4, 1)}, {"offset": (0, 1, 0)})
