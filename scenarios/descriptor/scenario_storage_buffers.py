"""Dispatches that access storage buffers: what a statically used variable does is what the dispatch does."""

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer, RigPipeline
from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

RAW = read_after_write("vkCmdDispatch", "vkCmdDispatch")
WAR = write_after_read("vkCmdDispatch", "vkCmdDispatch")
WAW = write_after_write("vkCmdDispatch", "vkCmdDispatch")
COMPUTE = "COMPUTE_SHADER"
WRITE, READ = "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "COMPUTE_SHADER/SHADER_STORAGE_READ"


def _fill(rig: Rig, shader: str = "fill_words") -> RigPipeline:
    return rig.compute(shader)


def _copy(rig: Rig, shader: str = "copy_words") -> RigPipeline:
    return rig.compute(shader)


def _fill_with(commands: Commands, pipeline: RigPipeline, target: RigBuffer, value: int) -> None:
    commands.bind(pipeline, commands.rig.descriptors(pipeline, b0=target))
    commands.push_constants(pipeline, value)
    commands.dispatch()


def _copy_with(commands: Commands, pipeline: RigPipeline, source: RigBuffer, target: RigBuffer) -> None:
    commands.bind(pipeline, commands.rig.descriptors(pipeline, b0=source, b1=target))
    commands.dispatch()


@scenario(
    without={"writes before reads": [RAW]},
    weakened={
        "writes before reads / execution only": [RAW],
        "writes before reads / for uniform reads": [RAW],
        "writes before reads / for sampled reads": [RAW],
        "writes before reads / for another stage": [RAW],
    },
    rule="read-after-write,each-shader-stage-accesses-for-itself",
)
def scenario_dispatch_reads_what_a_dispatch_wrote(rig: Rig) -> None:
    """A storage buffer written by one dispatch and read by the next needs a memory dependency to storage reads."""
    a, b = rig.buffer(), rig.buffer()
    fill, copy = _fill(rig), _copy(rig)
    with rig.submission() as commands:
        _fill_with(commands, fill, a, 0x100)
        commands.barrier(
            "writes before reads",
            WRITE,
            READ,
            weaker={
                "execution only": {"src": COMPUTE, "dst": COMPUTE},
                "for uniform reads": {"dst": "COMPUTE_SHADER/UNIFORM_READ"},
                "for sampled reads": {"dst": "COMPUTE_SHADER/SHADER_SAMPLED_READ"},
                "for another stage": {"dst": "FRAGMENT_SHADER/SHADER_READ"},
            },
        )
        _copy_with(commands, copy, a, b)


@scenario(
    weakened={"masks / nothing written": [RAW], "masks / nothing read": [RAW]}, rule="shader-read-and-shader-write"
)
def scenario_shader_read_and_write_stand_for_storage(rig: Rig) -> None:
    """SHADER_WRITE and SHADER_READ, as the first form of the command has them, cover storage buffers."""
    a, b = rig.buffer(), rig.buffer()
    fill, copy = _fill(rig), _copy(rig)
    with rig.submission() as commands:
        _fill_with(commands, fill, a, 0x200)
        commands.barrier(
            "masks",
            "COMPUTE_SHADER/SHADER_WRITE",
            "COMPUTE_SHADER/SHADER_READ",
            sync2=False,
            weaker={"nothing written": {"src": "COMPUTE_SHADER/SHADER_READ"}, "nothing read": {"dst": COMPUTE}},
        )
        _copy_with(commands, copy, a, b)


@scenario(
    without={"reads before writes": [WAR]},
    weakened={"reads before writes / for another stage": [WAR]},
    rule="write-after-read",
)
def scenario_dispatch_writes_what_a_dispatch_read(rig: Rig) -> None:
    """A storage buffer read by one dispatch and written by the next needs an execution dependency, and no more."""
    a, b = rig.buffer(), rig.buffer()
    fill, copy = _fill(rig), _copy(rig)
    with rig.submission() as commands:
        _copy_with(commands, copy, a, b)
        commands.barrier(
            "reads before writes", COMPUTE, COMPUTE, sync2=False, weaker={"for another stage": {"dst": "ALL_TRANSFER"}}
        )
        _fill_with(commands, fill, a, 0x300)


@scenario(
    without={"first before second": [WAW]},
    weakened={"first before second / execution only": [WAW], "first before second / another buffer": [WAW]},
    rule="write-after-write,asking-for-a-size-reads-nothing",
)
def scenario_dispatch_writes_what_a_dispatch_wrote(rig: Rig) -> None:
    """Two dispatches that write one storage buffer need a memory dependency, whatever their push constants are."""
    a, other = rig.buffer(), rig.buffer()
    fill = _fill(rig)
    with rig.submission() as commands:
        _fill_with(commands, fill, a, 0x400)
        commands.barrier(
            "first before second",
            WRITE,
            WRITE,
            buffer=a,
            weaker={"execution only": {"src": COMPUTE, "dst": COMPUTE}, "another buffer": {"buffer": other}},
        )
        _fill_with(commands, fill, a, 0x500)


@scenario(
    without={"fill before the store": [write_after_write("vkCmdDispatch", "vkCmdFillBuffer")]},
    weakened={"fill before the store / for reads": [write_after_write("vkCmdDispatch", "vkCmdFillBuffer")]},
    rule="a-written-variable-counts-as-written",
)
def scenario_writeonly_block_after_a_fill(rig: Rig) -> None:
    """A block declared writeonly is written, not read: what it lacks after a fill is write after write."""
    a = rig.buffer()
    fill = _fill(rig, "fill_words_writeonly")
    with rig.submission() as commands:
        commands.fill(a, 0x600)
        commands.barrier(
            "fill before the store", "ALL_TRANSFER/TRANSFER_WRITE", WRITE, weaker={"for reads": {"dst": READ}}
        )
        _fill_with(commands, fill, a, 0x700)


@scenario(
    without={"fill before the change": [write_after_write("vkCmdDispatch", "vkCmdFillBuffer")]},
    weakened={"fill before the change / for reads": [write_after_write("vkCmdDispatch", "vkCmdFillBuffer")]},
    rule="a-written-variable-counts-as-written",
)
def scenario_block_changed_in_place_after_a_fill(rig: Rig) -> None:
    """A block that is loaded and stored counts as written, and a dependency to storage writes is due."""
    a = rig.buffer()
    scale = _fill(rig, "scale_words")
    with rig.submission() as commands:
        commands.fill(a, 7)
        commands.barrier(
            "fill before the change",
            "CLEAR|COPY/TRANSFER_WRITE",
            "COMPUTE_SHADER/SHADER_STORAGE_READ|SHADER_STORAGE_WRITE",
            weaker={"for reads": {"dst": READ}},
        )
        _fill_with(commands, scale, a, 3)


@scenario(
    weakened={"separate targets / one target": [WAW]},
    rule="reads-do-not-conflict,static-use-decides,a-written-variable-counts-as-written",
)
def scenario_two_dispatches_load_one_writable_block(rig: Rig) -> None:
    """A block's declaration does not matter, only the accesses of the shader: two loads do not conflict."""
    source, first, second = rig.buffer(data=bytes(range(256))), rig.buffer(), rig.buffer()
    copy, reverse = _copy(rig, "copy_words_plain"), _copy(rig, "reverse_words")
    with rig.submission() as commands:
        _copy_with(commands, copy, source, first)
        _copy_with(commands, reverse, source, rig.choose("separate targets", second, {"one target": first}))


@scenario(
    without={"fills before sum": [read_after_write("vkCmdDispatch", "vkCmdFillBuffer")]},
    weakened={"fills before sum / left alone": [read_after_write("vkCmdDispatch", "vkCmdFillBuffer")]},
    rule="read-after-write",
)
def scenario_each_binding_needs_its_dependency(rig: Rig) -> None:
    """A dispatch that reads two buffers needs both to be made visible."""
    left, right, target = rig.buffer(), rig.buffer(), rig.buffer()
    add = rig.compute("add_words")
    with rig.submission() as commands:
        commands.fill(left, 5)
        commands.fill(right, 0x50)
        commands.barrier(
            "fills before sum", "ALL_TRANSFER/TRANSFER_WRITE", READ, weaker={"left alone": {"buffer": left}}
        )
        commands.bind(add, rig.descriptors(add, b0=left, b1=right, b2=target))
        commands.dispatch()


@scenario(
    without={
        "copy before dispatch": [read_after_write("vkCmdDispatch", "vkCmdCopyBuffer")],
        "dispatch before copy": [read_after_write("vkCmdCopyBuffer", "vkCmdDispatch")],
    },
    weakened={"dispatch before copy / execution only": [read_after_write("vkCmdCopyBuffer", "vkCmdDispatch")]},
    rule="read-after-write,each-shader-stage-accesses-for-itself",
)
def scenario_copies_around_a_dispatch(rig: Rig) -> None:
    """Shaders and transfers do not order one another, in either direction."""
    source, a, b, target = (rig.buffer() for _ in range(4))
    rig.host_write(source, bytes(range(1, 129)) * 2)
    copy = _copy(rig)
    with rig.submission() as commands:
        commands.copy(source, a)
        commands.barrier("copy before dispatch", "COPY/TRANSFER_WRITE", READ)
        _copy_with(commands, copy, a, b)
        commands.barrier(
            "dispatch before copy",
            WRITE,
            "COPY/TRANSFER_READ",
            weaker={"execution only": {"src": COMPUTE, "dst": "COPY"}},
        )
        commands.copy(b, target)
