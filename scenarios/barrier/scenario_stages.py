"""Stage masks: single stages, meta stages, the ends of the pipe, and what is logically earlier or later."""

from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

FILL, UPDATE, COPY = "vkCmdFillBuffer", "vkCmdUpdateBuffer", "vkCmdCopyBuffer"
BLIT, CLEAR, DOWNLOAD = "vkCmdBlitImage", "vkCmdClearColorImage", "vkCmdCopyImageToBuffer"
DISPATCH, INDIRECT = "vkCmdDispatch", "vkCmdDispatchIndirect"
ONE_GROUP = b"\1\0\0\0" * 3


@scenario(
    without={"fill before copy": [read_after_write(COPY, FILL)], "clear before blit": [read_after_write(BLIT, CLEAR)]},
    weakened={
        "fill before copy / copies only": [read_after_write(COPY, FILL)],
        "clear before blit / blits only": [read_after_write(BLIT, CLEAR)],
    },
    rule="stage-names-that-stand-for-several-stages",
)
def scenario_all_transfer_is_every_transfer_stage(rig: Rig) -> None:
    """ALL_TRANSFER covers a fill (CLEAR), a copy and a blit alike; each of its parts covers itself alone."""
    a, b = rig.buffer(), rig.buffer()
    c, d = rig.image(), rig.image(extent=(8, 8, 1))
    with rig.submission() as commands:
        commands.transition(c, d)
        commands.fill(a, 0x33445566)
        commands.clear_color(c, 0x66554433)
        commands.barrier(
            "fill before copy",
            "ALL_TRANSFER/TRANSFER_WRITE",
            "ALL_TRANSFER/TRANSFER_READ",
            buffer=a,
            weaker={"copies only": {"src": "COPY/TRANSFER_WRITE", "dst": "COPY/TRANSFER_READ"}},
        )
        commands.barrier(
            "clear before blit",
            "ALL_TRANSFER/TRANSFER_WRITE",
            "ALL_TRANSFER/TRANSFER_READ",
            image=c,
            weaker={"blits only": {"src": "BLIT/TRANSFER_WRITE", "dst": "BLIT/TRANSFER_READ"}},
        )
        commands.copy(a, b)
        commands.blit(c, d)


@scenario(
    without={"everything": [read_after_write(COPY, FILL)]},
    weakened={
        "everything / writes to writes": [read_after_write(COPY, FILL)],
        "everything / reads to reads": [read_after_write(COPY, FILL)],
        "everything / without memory": [read_after_write(COPY, FILL)],
        "everything / all of graphics": [read_after_write(COPY, FILL)],
    },
    rule="all-commands-is-everything,memory-read-and-memory-write",
)
def scenario_all_commands_with_memory_write_and_read(rig: Rig) -> None:
    """ALL_COMMANDS with MEMORY_WRITE and MEMORY_READ covers any write before any read, and needs both."""
    a, b = rig.buffer(), rig.buffer()
    with rig.submission() as commands:
        commands.fill(a, 0x44444444)
        commands.barrier(
            "everything",
            "ALL_COMMANDS/MEMORY_WRITE",
            "ALL_COMMANDS/MEMORY_READ",
            weaker={
                "writes to writes": {"dst": "ALL_COMMANDS/MEMORY_WRITE"},
                "reads to reads": {"src": "ALL_COMMANDS/MEMORY_READ"},
                "without memory": {"src": "ALL_COMMANDS", "dst": "ALL_COMMANDS"},
                "all of graphics": {"src": "ALL_GRAPHICS/MEMORY_WRITE", "dst": "ALL_GRAPHICS/MEMORY_READ"},
            },
        )
        commands.copy(a, b)


@scenario(
    without={"copy before fill": [write_after_read(FILL, COPY)]},
    weakened={
        "copy before fill / to the bottom": [write_after_read(FILL, COPY)],
        "copy before fill / from the top": [write_after_read(FILL, COPY)],
        "copy before fill / to none": [write_after_read(FILL, COPY)],
        "copy before fill / from none": [write_after_read(FILL, COPY)],
        "copy before fill / bottom to top": [],
    },
    rule="ends-of-the-pipe-order-execution",
)
def scenario_ends_of_the_pipe_order_execution(rig: Rig) -> None:
    """COPY to TOP_OF_PIPE orders every later command after copies; TOP_OF_PIPE or NONE as a first scope wait for
    nothing, BOTTOM_OF_PIPE or NONE as a second hold nothing back."""
    a, b = rig.buffer(data=bytes(range(256))), rig.buffer()
    with rig.submission() as commands:
        commands.copy(a, b)
        commands.barrier(
            "copy before fill",
            "COPY",
            "TOP_OF_PIPE",
            weaker={
                "to the bottom": {"dst": "BOTTOM_OF_PIPE"},
                "from the top": {"src": "TOP_OF_PIPE", "dst": "ALL_COMMANDS"},
                "to none": {"dst": "NONE"},
                "from none": {"src": "NONE", "dst": "ALL_COMMANDS"},
                "bottom to top": {"src": "BOTTOM_OF_PIPE"},
            },
        )
        commands.fill(a, 0x4B4B4B4B)


@scenario(
    without={"fill before copy": [read_after_write(COPY, FILL)]},
    weakened={
        "fill before copy / to the top": [read_after_write(COPY, FILL)],
        "fill before copy / from the bottom": [read_after_write(COPY, FILL)],
        "fill before copy / legacy bottom to top": [read_after_write(COPY, FILL)],
    },
    rule="ends-of-the-pipe-order-execution",
)
def scenario_ends_of_the_pipe_have_no_accesses(rig: Rig) -> None:
    """TOP_OF_PIPE and BOTTOM_OF_PIPE order execution and access no memory: they make no memory dependency."""
    a, b = rig.buffer(), rig.buffer()
    with rig.submission() as commands:
        commands.fill(a, 0x66778899)
        commands.barrier(
            "fill before copy",
            "ALL_TRANSFER/TRANSFER_WRITE",
            "ALL_TRANSFER/TRANSFER_READ",
            sync2=False,
            weaker={
                "to the top": {"dst": "TOP_OF_PIPE"},
                "from the bottom": {"src": "BOTTOM_OF_PIPE"},
                "legacy bottom to top": {"src": "BOTTOM_OF_PIPE", "dst": "TOP_OF_PIPE"},
            },
        )
        commands.copy(a, b)


@scenario(
    without={"dispatch before update": [write_after_read(UPDATE, INDIRECT)]},
    weakened={
        "dispatch before update / from copies": [write_after_read(UPDATE, INDIRECT)],
        "dispatch before update / from the vertex shader": [],
    },
    rule="execution-scopes-reach-other-stages",
)
def scenario_source_stages_reach_back(rig: Rig) -> None:
    """COMPUTE_SHADER as a first scope waits for the indirect command's read too: that stage is logically earlier."""
    words = rig.compute("fill_words")
    arguments, out = rig.buffer(64), rig.buffer()
    held = rig.descriptors(words, b0=out)
    rig.host_write(arguments, ONE_GROUP)
    with rig.submission() as commands:
        commands.bind(words, held)
        commands.push_constants(words, 7)
        commands.dispatch_indirect(arguments)
        commands.barrier(
            "dispatch before update",
            "COMPUTE_SHADER",
            "CLEAR",
            weaker={"from copies": {"src": "COPY"}, "from the vertex shader": {"src": "VERTEX_SHADER"}},
        )
        commands.update(arguments, b"\0\0\0\0" * 3)


@scenario(
    without={"update before dispatch": [read_after_write(INDIRECT, UPDATE)]},
    weakened={
        "update before dispatch / to the shader": [read_after_write(INDIRECT, UPDATE)],
        "update before dispatch / to the top": [read_after_write(INDIRECT, UPDATE)],
        "update before dispatch / other bytes": [read_after_write(INDIRECT, UPDATE)],
    },
    rule="access-scopes-do-not-reach-other-stages",
)
def scenario_access_scopes_do_not_reach(rig: Rig) -> None:
    """Memory made visible to COMPUTE_SHADER with every access is not visible to the indirect command's read."""
    words = rig.compute("fill_words")
    arguments, out = rig.buffer(64), rig.buffer()
    held = rig.descriptors(words, b0=out)
    with rig.submission() as commands:
        commands.update(arguments, ONE_GROUP, 16)
        commands.barrier(
            "update before dispatch",
            "CLEAR/TRANSFER_WRITE",
            "DRAW_INDIRECT/INDIRECT_COMMAND_READ",
            buffer=arguments,
            offset=16,
            size=12,
            weaker={
                "to the shader": {"dst": "COMPUTE_SHADER/MEMORY_READ"},
                "to the top": {"dst": "TOP_OF_PIPE"},
                "other bytes": {"offset": 0, "size": 16},
            },
        )
        commands.bind(words, held)
        commands.push_constants(words, 9)
        commands.dispatch_indirect(arguments, 16)


@scenario(
    without={"fill before copy": [read_after_write(COPY, FILL)]},
    weakened={
        "fill before copy / from copies": [read_after_write(COPY, FILL)],
        "fill before copy / from the other stages": [read_after_write(COPY, FILL)],
    },
    rule="masks-name-stages-and-accesses-together",
)
def scenario_several_stages_and_accesses_in_one_mask(rig: Rig) -> None:
    """A mask of several stages with several accesses covers each legal pair, and no other stage."""
    a, b = rig.buffer(), rig.buffer()
    with rig.submission() as commands:
        commands.fill(a, 0x2468ACE0)
        commands.barrier(
            "fill before copy",
            "CLEAR|COMPUTE_SHADER|HOST/TRANSFER_WRITE|SHADER_WRITE|HOST_WRITE",
            "COPY|COMPUTE_SHADER|DRAW_INDIRECT/TRANSFER_READ|UNIFORM_READ|INDIRECT_COMMAND_READ",
            weaker={
                "from copies": {"src": "COPY|COMPUTE_SHADER/TRANSFER_WRITE|SHADER_WRITE"},
                "from the other stages": {"src": "COMPUTE_SHADER|HOST/SHADER_WRITE|HOST_WRITE"},
            },
        )
        commands.copy(a, b)


@scenario(
    without={"copy before dispatch": [write_after_write(DISPATCH, COPY)]},
    weakened={
        "copy before dispatch / to transfers": [write_after_write(DISPATCH, COPY)],
        "copy before dispatch / to reads": [write_after_write(DISPATCH, COPY)],
        "copy before dispatch / to vertex shaders": [write_after_write(DISPATCH, COPY)],
    },
    rule="masks-name-stages-and-accesses-together,shader-read-and-shader-write",
)
def scenario_shader_overwrites_a_copy(rig: Rig) -> None:
    """SHADER_WRITE at COMPUTE_SHADER covers the storage write of a compute shader, and of no other stage."""
    words = rig.compute("fill_words_writeonly")
    a, b = rig.buffer(data=bytes(range(256))), rig.buffer()
    held = rig.descriptors(words, b0=b)
    with rig.submission() as commands:
        commands.copy(a, b)
        commands.barrier(
            "copy before dispatch",
            "COPY/TRANSFER_WRITE",
            "COMPUTE_SHADER/SHADER_WRITE",
            weaker={
                "to transfers": {"dst": "ALL_TRANSFER/MEMORY_WRITE"},
                "to reads": {"dst": "COMPUTE_SHADER/SHADER_READ"},
                "to vertex shaders": {"dst": "VERTEX_SHADER/SHADER_WRITE"},
            },
        )
        commands.bind(words, held)
        commands.push_constants(words, 0x5000)
        commands.dispatch()
