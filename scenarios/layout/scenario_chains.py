"""Layout transitions beside other dependencies: what chains into a transition, and out of it."""

from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

BARRIER2 = "vkCmdPipelineBarrier2"
UPLOAD, DOWNLOAD = "vkCmdCopyBufferToImage", "vkCmdCopyImageToBuffer"
CLEAR, BLIT = "vkCmdClearColorImage", "vkCmdBlitImage"
SRC, DST = "TRANSFER_SRC_OPTIMAL", "TRANSFER_DST_OPTIMAL"
TEXELS = bytes(i % 247 for i in range(1024))


@scenario(
    without={"made available": [write_after_write(BARRIER2, UPLOAD)]},
    weakened={
        "made available / execution only": [write_after_write(BARRIER2, UPLOAD)],
        "made available / to blits": [write_after_write(BARRIER2, UPLOAD)],
        "to source / from blits": [write_after_write(BARRIER2, UPLOAD)],
    },
    rule="available-writes-are-visible-to-a-transition",
)
def scenario_transition_of_an_available_write(rig: Rig) -> None:
    """A write that an earlier barrier made available needs no first access in the transition, only a chain to it."""
    data, out, a = rig.buffer(1024, data=TEXELS), rig.buffer(1024), rig.image()
    with rig.submission() as commands:
        commands.transition(a)
        commands.buffer_to_image(data, a)
        commands.barrier(
            "made available",
            "COPY/TRANSFER_WRITE",
            "COPY",
            weaker={"execution only": {"src": "COPY"}, "to blits": {"dst": "BLIT"}},
        )
        commands.barrier(
            "to source", "COPY", "COPY/TRANSFER_READ", image=a, new=SRC, weaker={"from blits": {"src": "BLIT"}}
        )
        commands.image_to_buffer(a, out, at=SRC)


@scenario(
    without={"before": [write_after_read(BARRIER2, DOWNLOAD)]},
    weakened={
        "before / to copies": [write_after_read(BARRIER2, DOWNLOAD)],
        "before / to the bottom": [write_after_read(BARRIER2, DOWNLOAD)],
        "before / to the top": [],
        "to destination / from the top": [],
    },
    rule="none-before-a-transition-is-the-top-of-the-pipe",
)
def scenario_transition_from_none_after_a_read(rig: Rig) -> None:
    """A transition from NONE chains with a barrier into ALL_COMMANDS, and with none into particular stages."""
    a, out = rig.image(), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(a)
        commands.image_to_buffer(a, out)
        commands.barrier(
            "before",
            "COPY",
            "ALL_COMMANDS",
            weaker={
                "to copies": {"dst": "COPY"},
                "to the bottom": {"dst": "BOTTOM_OF_PIPE"},
                "to the top": {"dst": "TOP_OF_PIPE"},
            },
        )
        commands.barrier(
            "to destination",
            "NONE",
            "CLEAR/TRANSFER_WRITE",
            image=a,
            new=DST,
            weaker={"from the top": {"src": "TOP_OF_PIPE"}},
        )
        commands.clear_color(a, 0x11335577, at=DST)


@scenario(
    without={"before": [write_after_write(BARRIER2, UPLOAD)]},
    weakened={
        "before / execution only": [write_after_write(BARRIER2, UPLOAD)],
        "before / to copies": [write_after_write(BARRIER2, UPLOAD)],
        "to source / from the top": [],
    },
    rule="none-before-a-transition-is-the-top-of-the-pipe,available-writes-are-visible-to-a-transition",
)
def scenario_transition_from_none_after_a_write(rig: Rig) -> None:
    """After a write the barrier before the transition must also make the write available."""
    data, out, a = rig.buffer(1024, data=TEXELS), rig.buffer(1024), rig.image()
    with rig.submission() as commands:
        commands.transition(a)
        commands.buffer_to_image(data, a)
        commands.barrier(
            "before",
            "COPY/TRANSFER_WRITE",
            "ALL_COMMANDS",
            weaker={"execution only": {"src": "COPY"}, "to copies": {"dst": "COPY"}},
        )
        commands.barrier(
            "to source", "NONE", "COPY/TRANSFER_READ", image=a, new=SRC, weaker={"from the top": {"src": "TOP_OF_PIPE"}}
        )
        commands.image_to_buffer(a, out, at=SRC)


@scenario(
    weakened={
        "to source / to copies": [read_after_write(BLIT, BARRIER2)],
        "between / a clear": [write_after_write(CLEAR, BARRIER2), write_after_write(BARRIER2, CLEAR)],
    },
    rule="transitions-of-one-queue-are-in-order",
)
def scenario_transition_after_a_transition(rig: Rig) -> None:
    """Transitions of one image are ordered among themselves, with empty scopes; an access between them is not."""
    a, b = rig.image(), rig.image(extent=(8, 8, 1))
    between = rig.choose("between", False, {"a clear": True})
    with rig.submission() as commands:
        commands.transition(a, b)
        commands.barrier("", "ALL_COMMANDS", "NONE", image=a, new=DST)
        if between:
            commands.clear_color(a, 0x13243546, at=DST)
        commands.barrier(
            "to source",
            "NONE",
            "BLIT/TRANSFER_READ",
            image=a,
            old=DST,
            new=SRC,
            weaker={"to copies": {"dst": "COPY/TRANSFER_READ"}},
        )
        commands.blit(a, b, layouts=(SRC, "GENERAL"))


@scenario(
    without={"after": [read_after_write(DOWNLOAD, BARRIER2)]},
    weakened={
        "after / from copies": [read_after_write(DOWNLOAD, BARRIER2)],
        "after / from none": [read_after_write(DOWNLOAD, BARRIER2)],
        "after / to blits": [read_after_write(DOWNLOAD, BARRIER2)],
        "after / without naming the write": [],
    },
    rule="all-commands-is-everything,a-transition-chains-on",
)
def scenario_all_commands_covers_a_transition(rig: Rig) -> None:
    """A transition into no scope is waited for by a barrier from ALL_COMMANDS, and by none from particular stages."""
    a, out = rig.image(), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(a)
        commands.clear_color(a, 0x21436587)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", "NONE", image=a, new=SRC)
        commands.barrier(
            "after",
            "ALL_COMMANDS/MEMORY_WRITE",
            "COPY/TRANSFER_READ",
            weaker={
                "from copies": {"src": "COPY/TRANSFER_WRITE"},
                "from none": {"src": "NONE"},
                "to blits": {"dst": "BLIT/TRANSFER_READ"},
                "without naming the write": {"src": "ALL_COMMANDS"},
            },
        )
        commands.image_to_buffer(a, out, at=SRC)


@scenario(
    without={"after": [read_after_write(BLIT, BARRIER2)]},
    weakened={
        "to source / to none": [read_after_write(BLIT, BARRIER2)],
        "after / from blits": [read_after_write(BLIT, BARRIER2)],
        "after / to copies": [read_after_write(BLIT, BARRIER2)],
    },
    rule="a-transition-chains-on",
)
def scenario_barrier_chains_from_a_transition(rig: Rig) -> None:
    """A barrier whose first stages meet the second stages of a transition passes the transition on."""
    a, b = rig.image(), rig.image(extent=(8, 8, 1))
    with rig.submission() as commands:
        commands.transition(a, b)
        commands.clear_color(a, 0x31537597)
        commands.barrier(
            "to source", "CLEAR/TRANSFER_WRITE", "COPY", image=a, new=SRC, weaker={"to none": {"dst": "NONE"}}
        )
        commands.barrier(
            "after",
            "COPY",
            "BLIT/TRANSFER_READ",
            weaker={"from blits": {"src": "BLIT"}, "to copies": {"dst": "COPY/TRANSFER_READ"}},
        )
        commands.blit(a, b, layouts=(SRC, "GENERAL"))


@scenario(
    weakened={"clear before transition / one command": [write_after_write(BARRIER2, CLEAR)]},
    rule="barriers-of-one-command-are-independent",
)
def scenario_transition_does_not_chain_inside_its_command(rig: Rig) -> None:
    """A global barrier of the same command does not make the write available to the transition; one before does."""
    a, out = rig.image(), rig.buffer(1024)
    available = {"src": "CLEAR/TRANSFER_WRITE", "dst": "BLIT"}
    moved = {"src": "BLIT", "dst": "COPY/TRANSFER_READ", "image": a, "old": "GENERAL", "new": SRC}
    with rig.submission() as commands:
        commands.transition(a)
        commands.clear_color(a, 0x42648608)
        commands.barriers("clear before transition", available, weaker={"one command": []})
        commands.barriers("clear before transition", moved, weaker={"one command": [available, moved]})
        commands.image_to_buffer(a, out, at=SRC)
