"""Uniform buffers and texel buffers: each descriptor type has an access of its own."""

from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

FROM_FILL = read_after_write("vkCmdDispatch", "vkCmdFillBuffer")
FROM_UPDATE = read_after_write("vkCmdDispatch", "vkCmdUpdateBuffer")
COMPUTE = "COMPUTE_SHADER"
UINT = "VK_FORMAT_R32_UINT"
WRITTEN = "ALL_TRANSFER/TRANSFER_WRITE"


@scenario(
    without={"update before dispatch": [FROM_UPDATE]},
    weakened={
        "update before dispatch / as a shader read": [FROM_UPDATE],
        "update before dispatch / as a storage read": [FROM_UPDATE],
        "update before dispatch / for vertex shaders": [FROM_UPDATE],
        "update before dispatch / as any read": [],
    },
    rule="memory-read-and-memory-write,shader-read-and-shader-write,each-descriptor-type-has-its-access",
)
def scenario_uniform_buffer_after_an_update(rig: Rig) -> None:
    """Uniform buffers are read by UNIFORM_READ, which SHADER_READ is not (MEMORY_READ is)."""
    a, b = rig.buffer(), rig.buffer()
    pipeline = rig.compute("sum_uniform")
    with rig.submission() as commands:
        commands.update(a, bytes(range(256)))
        commands.barrier(
            "update before dispatch",
            WRITTEN,
            "COMPUTE_SHADER/UNIFORM_READ",
            weaker={
                "as a shader read": {"dst": "COMPUTE_SHADER/SHADER_READ"},
                "as a storage read": {"dst": "COMPUTE_SHADER/SHADER_STORAGE_READ"},
                "for vertex shaders": {"dst": "VERTEX_SHADER/UNIFORM_READ"},
                "as any read": {"dst": "COMPUTE_SHADER/MEMORY_READ"},
            },
        )
        commands.bind(pipeline, rig.descriptors(pipeline, b0=a, b1=b))
        commands.dispatch()


@scenario(
    without={"dispatch before update": [write_after_read("vkCmdUpdateBuffer", "vkCmdDispatch")]},
    weakened={
        "dispatch before update / of fragment shaders": [write_after_read("vkCmdUpdateBuffer", "vkCmdDispatch")],
        "dispatch before update / of all graphics": [write_after_read("vkCmdUpdateBuffer", "vkCmdDispatch")],
    },
    rule="write-after-read",
)
def scenario_uniform_buffer_updated_after_use(rig: Rig) -> None:
    """A uniform buffer that is overwritten after a dispatch read it: the classic write after read."""
    a, b = rig.buffer(), rig.buffer()
    pipeline = rig.compute("sum_uniform")
    with rig.submission() as commands:
        commands.bind(pipeline, rig.descriptors(pipeline, b0=a, b1=b))
        commands.dispatch()
        commands.barrier(
            "dispatch before update",
            COMPUTE,
            "ALL_TRANSFER",
            sync2=False,
            weaker={"of fragment shaders": {"src": "FRAGMENT_SHADER"}, "of all graphics": {"src": "ALL_GRAPHICS"}},
        )
        commands.update(a, bytes(range(64)), 64)


@scenario(
    weakened={"written bytes / of the block": [FROM_UPDATE]},
    rule="only-shared-bytes-conflict,a-descriptor-means-its-range",
)
def scenario_uniform_blocks_side_by_side(rig: Rig) -> None:
    """A dispatch that reads one block of a buffer does not care who writes the next one."""
    a, b = rig.buffer(1024), rig.buffer()
    pipeline = rig.compute("sum_uniform")
    with rig.submission() as commands:
        commands.update(a, bytes(range(100, 200)), rig.choose("written bytes", 512, {"of the block": 480}))
        commands.bind(pipeline, rig.descriptors(pipeline, b0=(a, 256, 256), b1=b))
        commands.dispatch()


@scenario(
    without={"fill before fetch": [FROM_FILL]},
    weakened={
        "fill before fetch / as a storage read": [FROM_FILL],
        "fill before fetch / as a uniform read": [FROM_FILL],
        "fill before fetch / as a shader read": [],
    },
    rule="each-descriptor-type-has-its-access",
)
def scenario_uniform_texel_buffer(rig: Rig) -> None:
    """Fetching from a uniform texel buffer is a sampled read."""
    a, b = rig.buffer(), rig.buffer()
    pipeline = rig.compute("texel_fetch_buffer")
    with rig.submission() as commands:
        commands.fill(a, 0x12345678)
        commands.barrier(
            "fill before fetch",
            WRITTEN,
            "COMPUTE_SHADER/SHADER_SAMPLED_READ",
            weaker={
                "as a storage read": {"dst": "COMPUTE_SHADER/SHADER_STORAGE_READ"},
                "as a uniform read": {"dst": "COMPUTE_SHADER/UNIFORM_READ"},
                "as a shader read": {"dst": "COMPUTE_SHADER/SHADER_READ"},
            },
        )
        commands.bind(pipeline, rig.descriptors(pipeline, b0=rig.buffer_view(a, UINT), b1=b))
        commands.dispatch()


@scenario(
    without={"store before load": [read_after_write("vkCmdDispatch", "vkCmdDispatch")]},
    weakened={"store before load / as a sampled read": [read_after_write("vkCmdDispatch", "vkCmdDispatch")]},
    rule="each-descriptor-type-has-its-access",
)
def scenario_storage_texel_buffer(rig: Rig) -> None:
    """Stores and loads of a storage texel buffer are storage accesses of the buffer behind the view."""
    a, b = rig.buffer(), rig.buffer()
    view = rig.buffer_view(a, UINT)
    store = rig.compute("texel_store_buffer")
    load = rig.compute("texel_load_buffer")
    with rig.submission() as commands:
        commands.bind(store, rig.descriptors(store, b0=view))
        commands.push_constants(store, 0x1111)
        commands.dispatch()
        commands.barrier(
            "store before load",
            "COMPUTE_SHADER/SHADER_STORAGE_WRITE",
            "COMPUTE_SHADER/SHADER_STORAGE_READ",
            weaker={"as a sampled read": {"dst": "COMPUTE_SHADER/SHADER_SAMPLED_READ"}},
        )
        commands.bind(load, rig.descriptors(load, b0=view, b1=b))
        commands.dispatch()


@scenario(
    weakened={"filled / inside the view": [write_after_write("vkCmdDispatch", "vkCmdFillBuffer")]},
    rule="a-descriptor-means-its-range",
)
def scenario_texel_view_of_part_of_a_buffer(rig: Rig) -> None:
    """A texel view covers its own offset and range of the buffer."""
    a = rig.buffer(512)
    view = rig.buffer_view(a, UINT, 256, 128)
    store = rig.compute("texel_store_buffer")
    with rig.submission() as commands:
        for at, size in rig.choose("filled", ((0, 256), (384, 128)), {"inside the view": ((380, 4),)}):
            commands.fill(a, 0x2222, at, size)
        commands.bind(store, rig.descriptors(store, b0=view))
        commands.push_constants(store, 0x3333)
        commands.dispatch()
