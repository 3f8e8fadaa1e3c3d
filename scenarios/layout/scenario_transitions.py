"""Layout transitions as writes: what they wait for, and what waits for them."""

from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

BARRIER, BARRIER2 = "vkCmdPipelineBarrier", "vkCmdPipelineBarrier2"
UPLOAD, DOWNLOAD = "vkCmdCopyBufferToImage", "vkCmdCopyImageToBuffer"
CLEAR, BLIT, DISPATCH = "vkCmdClearColorImage", "vkCmdBlitImage", "vkCmdDispatch"
SRC, DST = "TRANSFER_SRC_OPTIMAL", "TRANSFER_DST_OPTIMAL"
TEXELS = bytes(i % 253 for i in range(1024))


@scenario(
    weakened={
        "to source / from none": [write_after_write(BARRIER2, UPLOAD)],
        "to source / no first access": [write_after_write(BARRIER2, UPLOAD)],
        "to source / from clears": [write_after_write(BARRIER2, UPLOAD)],
        "to source / to none": [read_after_write(DOWNLOAD, BARRIER2)],
        "to source / no second access": [read_after_write(DOWNLOAD, BARRIER2)],
        "to source / to blits": [read_after_write(DOWNLOAD, BARRIER2)],
    },
    rule="a-transition-is-a-write,accesses-wait-for-the-transition",
)
def scenario_transition_between_a_write_and_a_read(rig: Rig) -> None:
    """A transition reads and writes the image between its scopes: the write before must be available to it, and the
    read after must be in its second scope."""
    data, out, a = rig.buffer(1024, data=TEXELS), rig.buffer(1024), rig.image()
    with rig.submission() as commands:
        commands.transition(a, new=DST)
        commands.buffer_to_image(data, a, at=DST)
        commands.barrier(
            "to source",
            "COPY/TRANSFER_WRITE",
            "COPY/TRANSFER_READ",
            image=a,
            old=DST,
            new=SRC,
            weaker={
                "from none": {"src": "NONE"},
                "no first access": {"src": "COPY"},
                "from clears": {"src": "CLEAR/TRANSFER_WRITE"},
                "to none": {"dst": "NONE"},
                "no second access": {"dst": "COPY"},
                "to blits": {"dst": "BLIT/TRANSFER_READ"},
            },
        )
        commands.image_to_buffer(a, out, at=SRC)


@scenario(
    weakened={
        "to source / from the top": [write_after_write(BARRIER, UPLOAD)],
        "to source / no first access": [write_after_write(BARRIER, UPLOAD)],
        "to source / to the bottom": [read_after_write(DOWNLOAD, BARRIER)],
        "to source / to shaders": [read_after_write(DOWNLOAD, BARRIER)],
    },
    rule="both-forms-of-a-command-mean-the-same,a-transition-is-a-write",
)
def scenario_transition_by_the_first_barrier_command(rig: Rig) -> None:
    """vkCmdPipelineBarrier transitions by the same rules, with the command's stages."""
    data, out, a = rig.buffer(1024, data=TEXELS), rig.buffer(1024), rig.image()
    with rig.submission() as commands:
        commands.transition(a, new=DST)
        commands.buffer_to_image(data, a, at=DST)
        commands.barrier(
            "to source",
            "ALL_TRANSFER/TRANSFER_WRITE",
            "ALL_TRANSFER/TRANSFER_READ",
            image=a,
            old=DST,
            new=SRC,
            sync2=False,
            weaker={
                "from the top": {"src": "TOP_OF_PIPE"},
                "no first access": {"src": "ALL_TRANSFER"},
                "to the bottom": {"dst": "BOTTOM_OF_PIPE"},
                "to shaders": {"dst": "COMPUTE_SHADER/SHADER_READ"},
            },
        )
        commands.image_to_buffer(a, out, at=SRC)


@scenario(
    weakened={
        "to destination / from none": [write_after_read(BARRIER2, DOWNLOAD)],
        "to destination / from blits": [write_after_read(BARRIER2, DOWNLOAD)],
        "to destination / to copies": [write_after_write(CLEAR, BARRIER2)],
        "to destination / to reads": [write_after_write(CLEAR, BARRIER2)],
        "to destination / with the read access": [],
    },
    rule="a-transition-is-a-write,accesses-wait-for-the-transition",
)
def scenario_transition_after_a_read(rig: Rig) -> None:
    """After a read, an execution dependency is enough for a transition; the write after it needs a memory one."""
    a, out = rig.image(), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(a)
        commands.image_to_buffer(a, out)
        commands.barrier(
            "to destination",
            "COPY",
            "CLEAR/TRANSFER_WRITE",
            image=a,
            new=DST,
            weaker={
                "from none": {"src": "NONE"},
                "from blits": {"src": "BLIT"},
                "to copies": {"dst": "COPY/TRANSFER_WRITE"},
                "to reads": {"dst": "ALL_TRANSFER/TRANSFER_READ"},
                "with the read access": {"src": "COPY/TRANSFER_READ"},
            },
        )
        commands.clear_color(a, 0x70605040, at=DST)


@scenario(
    weakened={
        "discarding / from none": [write_after_write(BARRIER2, UPLOAD)],
        "discarding / no first access": [write_after_write(BARRIER2, UPLOAD)],
        "discarding / to none": [write_after_write(CLEAR, BARRIER2)],
    },
    rule="a-transition-from-undefined-is-still-a-write",
)
def scenario_undefined_discards_and_still_writes(rig: Rig) -> None:
    """A transition from UNDEFINED keeps nothing, but the memory is written: it waits like any other."""
    data, a = rig.buffer(1024, data=TEXELS), rig.image()
    with rig.submission() as commands:
        commands.transition(a)
        commands.buffer_to_image(data, a)
        commands.barrier(
            "discarding",
            "COPY/TRANSFER_WRITE",
            "CLEAR/TRANSFER_WRITE",
            image=a,
            old="UNDEFINED",
            new=DST,
            weaker={"from none": {"src": "NONE"}, "no first access": {"src": "COPY"}, "to none": {"dst": "NONE"}},
        )
        commands.clear_color(a, 0x01234567, at=DST)


@scenario(
    without={"same layout": []},
    weakened={"same layout / another layout": [write_after_read(BARRIER2, DOWNLOAD)]},
    rule="equal-layouts-are-no-transition",
)
def scenario_barrier_of_one_layout_writes_nothing(rig: Rig) -> None:
    """An image barrier with equal layouts waits for nothing by itself; with different ones it would be a write."""
    a, out = rig.image(), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(a)
        commands.image_to_buffer(a, out)
        commands.barrier("same layout", "NONE", "COPY/TRANSFER_READ", image=a, weaker={"another layout": {"new": SRC}})


@scenario(
    weakened={
        "to general / to fragments": [read_after_write(DISPATCH, BARRIER2)],
        "to general / to uniforms": [read_after_write(DISPATCH, BARRIER2)],
        "to general / to storage": [],
        "to general / from none": [write_after_write(BARRIER2, UPLOAD)],
    },
    rule="accesses-wait-for-the-transition",
)
def scenario_shader_reads_a_transitioned_image(rig: Rig) -> None:
    """The second scope of a transition must hold the shader's own read."""
    data, out, a = rig.buffer(1024, data=TEXELS), rig.buffer(1024), rig.image()
    load = rig.compute("image_load_2d")
    held = rig.descriptors(load, b0=(rig.view(a), None, 1), b1=out)
    with rig.submission() as commands:
        commands.transition(a, new=DST)
        commands.buffer_to_image(data, a, at=DST)
        commands.barrier(
            "to general",
            "COPY/TRANSFER_WRITE",
            "COMPUTE_SHADER/SHADER_READ",
            image=a,
            old=DST,
            weaker={
                "to fragments": {"dst": "FRAGMENT_SHADER/SHADER_READ"},
                "to uniforms": {"dst": "COMPUTE_SHADER/UNIFORM_READ"},
                "to storage": {"dst": "COMPUTE_SHADER/SHADER_STORAGE_READ"},
                "from none": {"src": "NONE"},
            },
        )
        commands.bind(load, held)
        commands.dispatch(4)


@scenario(
    weakened={
        "to general / to reads": [write_after_write(DISPATCH, BARRIER2)],
        "to general / to transfers": [write_after_write(DISPATCH, BARRIER2)],
        "to general / execution only": [write_after_write(DISPATCH, BARRIER2)],
    },
    rule="accesses-wait-for-the-transition,a-transition-from-undefined-is-still-a-write",
)
def scenario_shader_writes_a_fresh_image(rig: Rig) -> None:
    """The first transition of an image is a write too: the shader that fills the image must be in its scope."""
    a = rig.image()
    store = rig.compute("image_store_2d")
    held = rig.descriptors(store, b0=(rig.view(a), None, 1))
    with rig.submission() as commands:
        commands.barrier(
            "to general",
            "NONE",
            "COMPUTE_SHADER/SHADER_WRITE",
            image=a,
            old="UNDEFINED",
            weaker={
                "to reads": {"dst": "COMPUTE_SHADER/SHADER_READ"},
                "to transfers": {"dst": "ALL_TRANSFER/MEMORY_WRITE"},
                "execution only": {"dst": "COMPUTE_SHADER"},
            },
        )
        commands.bind(store, held)
        commands.push_constants(store, 0x01020304)
        commands.dispatch(4)
