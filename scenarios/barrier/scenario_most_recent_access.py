"""Which accesses a hazard is looked for between: the most recent ones."""

from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

FILL, COPY = "vkCmdFillBuffer", "vkCmdCopyBuffer"
CLEAR, COPY_IMAGE, DOWNLOAD, BLIT = (
    "vkCmdClearColorImage",
    "vkCmdCopyImage",
    "vkCmdCopyImageToBuffer",
    "vkCmdBlitImage",
)
DISPATCH = "vkCmdDispatch"


@scenario(
    without={
        "M": [read_after_write(each, CLEAR) for each in (COPY_IMAGE, DOWNLOAD, BLIT)],
        "E": [read_after_write(BLIT, CLEAR)],
        "for R3": [read_after_write(DISPATCH, CLEAR)],
    },
    weakened={
        "M / to resolves": [read_after_write(each, CLEAR) for each in (COPY_IMAGE, DOWNLOAD, BLIT)],
        "E / not after R1": [read_after_write(BLIT, CLEAR)],
        "E / to resolves": [read_after_write(BLIT, CLEAR)],
        "E / execution only": [read_after_write(BLIT, CLEAR)],
        "for R3 / execution only": [read_after_write(DISPATCH, CLEAR)],
    },
    rule="most-recent-access",
)
def scenario_reads_after_a_guarded_read(rig: Rig) -> None:
    """M makes W visible to R0 and R1. E chains with M and makes W visible to R2: to happen after R1 is not enough. R3
    is in the second scope of neither, so that it needs a dependency on W of its own."""
    a, b, c = rig.image(), rig.image(), rig.image(extent=(8, 8, 1))
    first, last = rig.buffer(1024), rig.buffer(1024)
    load = rig.compute("image_load_2d")
    held = rig.descriptors(load, b0=(rig.view(a), None, 1), b1=last)
    with rig.submission() as commands:
        for image in (a, b, c):
            commands.transition(image)
        commands.clear_color(a, 0x04080C10)  # W
        commands.barrier(
            "M", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ", weaker={"to resolves": {"dst": "RESOLVE/TRANSFER_READ"}}
        )
        commands.copy_image(a, b)  # R0
        commands.image_to_buffer(a, first)  # R1
        commands.barrier(
            "E",
            "COPY",
            "BLIT/TRANSFER_READ",
            weaker={
                "not after R1": {"src": "RESOLVE"},
                "to resolves": {"dst": "RESOLVE/TRANSFER_READ"},
                "execution only": {"dst": "BLIT"},
            },
        )
        commands.blit(a, c)  # R2
        commands.barrier(
            "for R3",
            "CLEAR/TRANSFER_WRITE",
            "COMPUTE_SHADER/SHADER_STORAGE_READ",
            weaker={"execution only": {"src": "CLEAR", "dst": "COMPUTE_SHADER"}},
        )
        commands.bind(load, held)
        commands.dispatch(4)  # R3


@scenario(
    without={
        "M": [read_after_write(COPY, FILL)],
        "E": [write_after_read(FILL, COPY)],
        "R": [write_after_write(FILL, FILL)],
    },
    weakened={"M / execution only": [read_after_write(COPY, FILL)], "E / from clears": [write_after_read(FILL, COPY)]},
    rule="most-recent-access",
)
def scenario_write_after_a_guarded_read(rig: Rig) -> None:
    """R is tested against W0, and W1 against R alone: as R saw W0, so does everything after it. With no R between,
    W1 is tested against W0 and E is not enough."""
    a, b = rig.buffer(), rig.buffer()
    with rig.submission() as commands:
        commands.fill(a, 0x01234567)  # W0
        commands.barrier(
            "M",
            "CLEAR/TRANSFER_WRITE",
            "COPY/TRANSFER_READ",
            weaker={"execution only": {"src": "CLEAR", "dst": "COPY"}},
        )
        if rig.choose("R", True, {}):
            commands.copy(a, b)
        commands.barrier("E", "COPY", "CLEAR", weaker={"from clears": {"src": "CLEAR"}})
        commands.fill(a, 0x89ABCDEF)  # W1


@scenario(
    without={
        "copy before fill": [write_after_read(FILL, COPY)],
        "dispatch before fill": [write_after_read(FILL, DISPATCH)],
    },
    weakened={"dispatch before fill / from copies": [write_after_read(FILL, DISPATCH)]},
    rule="every-reading-stage-counts",
)
def scenario_a_write_waits_for_every_reading_stage(rig: Rig) -> None:
    """Reads by two stages are two reasons to wait; ordering the write after one leaves the other."""
    a, b, c = rig.buffer(data=bytes(range(256))), rig.buffer(), rig.buffer()
    words = rig.compute("copy_words")
    held = rig.descriptors(words, b0=a, b1=c)
    with rig.submission() as commands:
        commands.copy(a, b)
        commands.bind(words, held)
        commands.dispatch()
        commands.barrier("copy before fill", "COPY", "CLEAR")
        commands.barrier("dispatch before fill", "COMPUTE_SHADER", "CLEAR", weaker={"from copies": {"src": "COPY"}})
        commands.fill(a, 0x70707070)
