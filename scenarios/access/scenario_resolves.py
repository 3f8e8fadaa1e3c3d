"""Multisample resolves outside render passes: reads and writes of the RESOLVE stage."""

from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

CLEAR, DOWNLOAD = "vkCmdClearColorImage", "vkCmdCopyImageToBuffer"
RESOLVE, RESOLVE2 = "vkCmdResolveImage", "vkCmdResolveImage2"


@scenario(
    without={"clear before resolve": [read_after_write(RESOLVE, CLEAR)]},
    weakened={
        "clear before resolve / to the copy stage": [read_after_write(RESOLVE, CLEAR)],
        "clear before resolve / execution only": [read_after_write(RESOLVE, CLEAR)],
    },
    rule="resolve-commands-use-the-resolve-stage",
)
def scenario_resolve_reads_a_cleared_image(rig: Rig) -> None:
    """A resolve reads its multisampled source in the RESOLVE stage."""
    many, one = rig.image(samples=4), rig.image()
    with rig.submission() as commands:
        commands.transition(many, one)
        commands.clear_color(many, 0x88776655)
        commands.barrier(
            "clear before resolve",
            "CLEAR/TRANSFER_WRITE",
            "RESOLVE/TRANSFER_READ",
            weaker={
                "to the copy stage": {"dst": "COPY/TRANSFER_READ"},
                "execution only": {"src": "CLEAR", "dst": "RESOLVE"},
            },
        )
        commands.resolve(many, one)


@scenario(
    without={"resolve before download": [read_after_write(DOWNLOAD, RESOLVE2)]},
    weakened={
        "resolve before download / from attachment output": [read_after_write(DOWNLOAD, RESOLVE2)],
        "resolve before download / layer 0": [read_after_write(DOWNLOAD, RESOLVE2)],
    },
    rule="resolve-commands-use-the-resolve-stage",
)
def scenario_download_reads_a_resolved_layer(rig: Rig) -> None:
    """A resolve command writes in the RESOLVE stage, unlike the resolve of a render pass (attachment output)."""
    many, one, data = rig.image(samples=4), rig.image(layers=2), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(many, one)
        commands.resolve(many, one, {}, {"layer": 1}, v2=True)
        commands.barrier(
            "resolve before download",
            "RESOLVE/TRANSFER_WRITE",
            "COPY/TRANSFER_READ",
            image=one,
            layers=(1, 1),
            weaker={
                "from attachment output": {"src": "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE"},
                "layer 0": {"layers": (0, 1)},
            },
        )
        commands.image_to_buffer(one, data, {"layer": 1})


@scenario(
    without={"resolve before clear": [write_after_read(CLEAR, RESOLVE)]},
    weakened={"resolve before clear / from the blit stage": [write_after_read(CLEAR, RESOLVE)]},
    rule="write-after-read,resolve-commands-use-the-resolve-stage",
)
def scenario_clear_overwrites_what_a_resolve_read(rig: Rig) -> None:
    """A clear of a multisampled image waits for the resolve that reads it."""
    many, one = rig.image(samples=4), rig.image()
    with rig.submission() as commands:
        commands.transition(many, one)
        commands.resolve(many, one)
        commands.barrier("resolve before clear", "RESOLVE", "CLEAR", weaker={"from the blit stage": {"src": "BLIT"}})
        commands.clear_color(many, 0x01800180)


@scenario(
    without={"resolve before resolve": [write_after_write(RESOLVE, RESOLVE2)]},
    weakened={"place / overlapping by a texel": [write_after_write(RESOLVE, RESOLVE2)], "place / apart": []},
    rule="resolve-commands-use-the-resolve-stage,image-regions-are-exact",
)
def scenario_resolves_of_overlapping_boxes_are_ordered(rig: Rig) -> None:
    """Two resolves into one image conflict where their boxes overlap."""
    first, second, one = rig.image(samples=4), rig.image(samples=4), rig.image()
    place = rig.choose("place", None, {"overlapping by a texel": 7, "apart": 8})
    box = {"extent": (8, 8, 1)}
    with rig.submission() as commands:
        for image in (first, second, one):
            commands.transition(image)
        commands.resolve(first, one, box, {}, v2=True)
        if place is None:
            commands.barrier("resolve before resolve", "RESOLVE/TRANSFER_WRITE", "RESOLVE/TRANSFER_WRITE")
        commands.resolve(second, one, box, {"offset": (place or 0, place or 0, 0)})
