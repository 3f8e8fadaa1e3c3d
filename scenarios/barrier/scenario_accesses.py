"""Access masks: what a shader's reads and writes are called, and what each name covers."""

from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

FILL, COPY, DISPATCH, CLEAR = "vkCmdFillBuffer", "vkCmdCopyBuffer", "vkCmdDispatch", "vkCmdClearColorImage"


@scenario(
    without={"fill before dispatch": [read_after_write(DISPATCH, FILL)]},
    weakened={
        "fill before dispatch / shader read": [read_after_write(DISPATCH, FILL)],
        "fill before dispatch / storage read": [read_after_write(DISPATCH, FILL)],
        "fill before dispatch / memory read": [],
    },
    rule="shader-read-and-shader-write",
)
def scenario_shader_read_does_not_cover_uniform_buffers(rig: Rig) -> None:
    """SHADER_READ is sampled and storage reads; a uniform buffer is read with UNIFORM_READ."""
    source, out = rig.buffer(256), rig.buffer(256)
    total = rig.compute("sum_uniform")
    held = rig.descriptors(total, b0=source, b1=out)
    with rig.submission() as commands:
        commands.fill(source, 0x00C0FFEE)
        commands.barrier(
            "fill before dispatch",
            "ALL_TRANSFER/TRANSFER_WRITE",
            "COMPUTE_SHADER/UNIFORM_READ",
            weaker={
                "shader read": {"dst": "COMPUTE_SHADER/SHADER_READ"},
                "storage read": {"dst": "COMPUTE_SHADER/SHADER_STORAGE_READ"},
                "memory read": {"dst": "COMPUTE_SHADER/MEMORY_READ"},
            },
        )
        commands.bind(total, held)
        commands.dispatch()


@scenario(
    without={"fill before dispatch": [read_after_write(DISPATCH, FILL)]},
    weakened={
        "fill before dispatch / uniform read": [read_after_write(DISPATCH, FILL)],
        "fill before dispatch / sampled read": [read_after_write(DISPATCH, FILL)],
        "fill before dispatch / fragment shader": [read_after_write(DISPATCH, FILL)],
        "fill before dispatch / storage read": [],
    },
    rule="shader-read-and-shader-write",
)
def scenario_shader_read_covers_storage_buffers(rig: Rig) -> None:
    """A storage buffer is read with SHADER_STORAGE_READ, which SHADER_READ holds, at the stage of its shader."""
    source, out = rig.buffer(256), rig.buffer(256)
    words = rig.compute("copy_words")
    held = rig.descriptors(words, b0=source, b1=out)
    with rig.submission() as commands:
        commands.fill(source, 0x0D15EA5E)
        commands.barrier(
            "fill before dispatch",
            "CLEAR/TRANSFER_WRITE",
            "COMPUTE_SHADER/SHADER_READ",
            weaker={
                "uniform read": {"dst": "COMPUTE_SHADER/UNIFORM_READ"},
                "sampled read": {"dst": "COMPUTE_SHADER/SHADER_SAMPLED_READ"},
                "fragment shader": {"dst": "FRAGMENT_SHADER/SHADER_READ"},
                "storage read": {"dst": "COMPUTE_SHADER/SHADER_STORAGE_READ"},
            },
        )
        commands.bind(words, held)
        commands.dispatch()


@scenario(
    without={"clear before dispatch": [read_after_write(DISPATCH, CLEAR)]},
    weakened={
        "clear before dispatch / storage read": [read_after_write(DISPATCH, CLEAR)],
        "clear before dispatch / sampled read": [],
    },
    rule="shader-read-and-shader-write,each-descriptor-type-has-its-access",
)
def scenario_shader_read_covers_sampled_images(rig: Rig) -> None:
    """A combined image sampler is read with SHADER_SAMPLED_READ."""
    a, out = rig.image(), rig.buffer(1024)
    sample = rig.compute("sample_2d")
    held = rig.descriptors(sample, b0=(rig.view(a), rig.sampler(), 1), b1=out)
    with rig.submission() as commands:
        commands.transition(a)
        commands.clear_color(a, 0x7F3F1F0F)
        commands.barrier(
            "clear before dispatch",
            "CLEAR/TRANSFER_WRITE",
            "COMPUTE_SHADER/SHADER_READ",
            image=a,
            weaker={
                "storage read": {"dst": "COMPUTE_SHADER/SHADER_STORAGE_READ"},
                "sampled read": {"dst": "COMPUTE_SHADER/SHADER_SAMPLED_READ"},
            },
        )
        commands.bind(sample, held)
        commands.dispatch(4)


@scenario(
    without={
        "dispatch before copy": [read_after_write(COPY, DISPATCH)],
        "copy before dispatch": [write_after_read(DISPATCH, COPY)],
    },
    weakened={
        "dispatch before copy / from shader reads": [read_after_write(COPY, DISPATCH)],
        "dispatch before copy / from the top of the shader": [read_after_write(COPY, DISPATCH)],
        "dispatch before copy / storage write": [],
        "copy before dispatch / to indirect commands": [],
    },
    rule="execution-scopes-reach-other-stages,shader-read-and-shader-write",
)
def scenario_shader_write_covers_storage_buffers(rig: Rig) -> None:
    """A storage buffer is written with SHADER_STORAGE_WRITE, which SHADER_WRITE holds. A copy of it, then the next
    dispatch over it: the second dependency is of execution, and DRAW_INDIRECT reaches later stages such as compute."""
    target, out = rig.buffer(256), rig.buffer(256)
    words = rig.compute("fill_words_writeonly")
    held = rig.descriptors(words, b0=target)
    with rig.submission() as commands:
        commands.bind(words, held)
        commands.push_constants(words, 100)
        commands.dispatch()
        commands.barrier(
            "dispatch before copy",
            "COMPUTE_SHADER/SHADER_WRITE",
            "COPY/TRANSFER_READ",
            weaker={
                "from shader reads": {"src": "COMPUTE_SHADER/SHADER_READ"},
                "from the top of the shader": {"src": "COMPUTE_SHADER"},
                "storage write": {"src": "COMPUTE_SHADER/SHADER_STORAGE_WRITE"},
            },
        )
        commands.copy(target, out)
        commands.barrier(
            "copy before dispatch", "COPY", "COMPUTE_SHADER", weaker={"to indirect commands": {"dst": "DRAW_INDIRECT"}}
        )
        commands.push_constants(words, 5000)
        commands.dispatch()


@scenario(
    without={"between dispatches": [write_after_write(DISPATCH, DISPATCH)]},
    weakened={
        "between dispatches / to reads": [write_after_write(DISPATCH, DISPATCH)],
        "between dispatches / execution only": [write_after_write(DISPATCH, DISPATCH)],
    },
    rule="write-after-write",
)
def scenario_two_dispatches_write_one_buffer(rig: Rig) -> None:
    """Two compute writes of one range need a memory dependency from SHADER_WRITE to SHADER_WRITE."""
    target = rig.buffer(256)
    words = rig.compute("fill_words_writeonly")
    held = rig.descriptors(words, b0=target)
    with rig.submission() as commands:
        commands.bind(words, held)
        commands.push_constants(words, 0x11110000)
        commands.dispatch()
        commands.barrier(
            "between dispatches",
            "COMPUTE_SHADER/SHADER_WRITE",
            "COMPUTE_SHADER/SHADER_WRITE",
            buffer=target,
            sync2=False,
            weaker={
                "to reads": {"dst": "COMPUTE_SHADER/SHADER_READ"},
                "execution only": {"src": "COMPUTE_SHADER", "dst": "COMPUTE_SHADER"},
            },
        )
        commands.push_constants(words, 0x22220000)
        commands.dispatch()
