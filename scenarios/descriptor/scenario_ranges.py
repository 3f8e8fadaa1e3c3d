"""Which bytes a descriptor means: offset, range, dynamic offset, copies of descriptors, arrays, pushed descriptors."""

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer, RigPipeline
from vkharness.spec.enums import VK_WHOLE_SIZE
from vkharness.suite import Rig, read_after_write, scenario, write_after_write

WAW = write_after_write("vkCmdDispatch", "vkCmdDispatch")
AFTER_FILL = write_after_write("vkCmdDispatch", "vkCmdFillBuffer")
FROM_FILL = read_after_write("vkCmdDispatch", "vkCmdFillBuffer")


def _fill(rig: Rig, kind: str = "STORAGE_BUFFER", push: bool = False) -> RigPipeline:
    return rig.compute("fill_words", {0: kind}, push=push)


def _run(commands: Commands, pipeline: RigPipeline, value: int, *held: RigBuffer | tuple[RigBuffer, int, int]) -> None:
    sets = {f"b{at}": each for at, each in enumerate(held)}
    commands.bind(pipeline, commands.rig.descriptors(pipeline, **sets))
    commands.push_constants(pipeline, value)
    commands.dispatch()


@scenario(
    weakened={"second range / the first": [WAW], "second range / all": [WAW]}, rule="a-descriptor-means-its-range"
)
def scenario_disjoint_ranges_of_one_buffer(rig: Rig) -> None:
    """Two dispatches whose descriptors cover different bytes of one buffer do not conflict."""
    a = rig.buffer(512)
    fill = _fill(rig)
    part = rig.choose("second range", (256, 256), {"the first": (0, 256), "all": (0, VK_WHOLE_SIZE)})
    with rig.submission() as commands:
        _run(commands, fill, 0x100, (a, 0, 256))
        _run(commands, fill, 0x200, (a, *part))


@scenario(weakened={"filled / the rest": [AFTER_FILL]}, rule="a-descriptor-means-its-range")
def scenario_whole_size_is_the_rest_of_the_buffer(rig: Rig) -> None:
    """VK_WHOLE_SIZE in a descriptor reaches from its offset to the end of the buffer."""
    a = rig.buffer(512)
    fill = _fill(rig)
    with rig.submission() as commands:
        commands.fill(a, 0x77, *rig.choose("filled", (0, 256), {"the rest": (508, 4)}))
        _run(commands, fill, 0x300, (a, 256, VK_WHOLE_SIZE))


@scenario(
    without={"all of it": [FROM_FILL]},
    weakened={"all of it / too little": [FROM_FILL]},
    rule="a-ranged-barrier-covers-its-range,a-descriptor-means-its-range",
)
def scenario_barrier_over_the_range_of_a_descriptor(rig: Rig) -> None:
    """A buffer barrier must cover the bytes of the descriptor, not those of the buffer."""
    a, b = rig.buffer(1024), rig.buffer()
    copy = rig.compute("copy_words")
    with rig.submission() as commands:
        commands.fill(a, 0x88)
        commands.barrier(
            "all of it",
            "ALL_TRANSFER/TRANSFER_WRITE",
            "COMPUTE_SHADER/SHADER_STORAGE_READ",
            buffer=a,
            offset=256,
            size=256,
            weaker={"too little": {"size": 128}},
        )
        commands.bind(copy, rig.descriptors(copy, b0=(a, 256, 256), b1=b))
        commands.dispatch()


@scenario(weakened={"second offset / the first": [WAW]}, rule="a-descriptor-means-its-range")
def scenario_dynamic_offsets(rig: Rig) -> None:
    """One set bound with two dynamic offsets means two ranges."""
    a = rig.buffer(512)
    fill = _fill(rig, "STORAGE_BUFFER_DYNAMIC")
    descriptors = rig.descriptors(fill, b0=(a, 0, 256))
    with rig.submission() as commands:
        commands.push_constants(fill, 0x400)
        commands.bind(fill, descriptors, (0,))
        commands.dispatch()
        commands.bind(fill, descriptors, (rig.choose("second offset", 256, {"the first": 0}),))
        commands.push_constants(fill, 0x500)
        commands.dispatch()


@scenario(weakened={"offset / of the filled bytes": [FROM_FILL]}, rule="a-descriptor-means-its-range")
def scenario_dynamic_offset_of_a_uniform_buffer(rig: Rig) -> None:
    """The dynamic offset of a uniform buffer is added to the offset that was written into the set."""
    a, b = rig.buffer(1024), rig.buffer()
    pipeline = rig.compute("sum_uniform", {0: "UNIFORM_BUFFER_DYNAMIC"})
    descriptors = rig.descriptors(pipeline, b0=(a, 256, 256), b1=b)
    with rig.submission() as commands:
        commands.fill(a, 0x99, 512, 256)
        commands.bind(pipeline, descriptors, (rig.choose("offset", 512, {"of the filled bytes": 256}),))
        commands.dispatch()


@scenario(
    without={"between": [WAW]},
    weakened={"second buffer / the first": [WAW]},
    needs=("VK_KHR_push_descriptor",),
    rule="the-last-write-of-a-descriptor-counts",
)
def scenario_pushed_descriptors(rig: Rig) -> None:
    """Descriptors that are pushed count like those of a set, as they are at the dispatch."""
    a, b = rig.buffer(), rig.buffer()
    fill = _fill(rig, push=True)
    with rig.submission() as commands:
        commands.bind(fill)
        for target, value in ((a, 0x600), (rig.choose("second buffer", b, {"the first": a}), 0x700)):
            commands.push_descriptors(fill, b0=target)
            commands.push_constants(fill, value)
            commands.dispatch()
        commands.barrier("between", "COMPUTE_SHADER/SHADER_WRITE", "COMPUTE_SHADER/SHADER_WRITE")
        commands.push_descriptors(fill, b0=a)
        commands.push_constants(fill, 0x800)
        commands.dispatch()


@scenario(without={"copied": [AFTER_FILL]}, rule="the-last-write-of-a-descriptor-counts")
def scenario_copied_descriptors(rig: Rig) -> None:
    """A descriptor copied from another set replaces what was there: the dispatch writes the copied one's buffer."""
    filled, other = rig.buffer(), rig.buffer()
    fill = _fill(rig)
    source, target = rig.descriptors(fill, b0=other), rig.descriptors(fill, b0=filled)
    if rig.choose("copied", True, {}):
        rig.copy_descriptors(source, target, ((0, 0), (0, 0), 1))
    with rig.submission() as commands:
        commands.fill(filled, 0xAA)
        commands.bind(fill, target)
        commands.push_constants(fill, 0x900)
        commands.dispatch()


@scenario(without={"written again": [AFTER_FILL]}, rule="the-last-write-of-a-descriptor-counts")
def scenario_descriptors_written_twice(rig: Rig) -> None:
    """The last write of a descriptor before it is bound is the one that counts."""
    filled, other = rig.buffer(), rig.buffer()
    fill = _fill(rig)
    held = rig.descriptors(fill, b0=filled)
    if rig.choose("written again", True, {}):
        rig.update(held, b0=other)
    with rig.submission() as commands:
        commands.fill(filled, 0xBB)
        commands.bind(fill, held)
        commands.push_constants(fill, 0xA00)
        commands.dispatch()


@scenario(weakened={"filled / the used element": [AFTER_FILL]}, rule="each-array-element-is-an-access-of-its-own")
def scenario_array_with_a_constant_index(rig: Rig) -> None:
    """Of an array of descriptors, the elements that the SPIR-V names by constants are accessed, and no others."""
    buffers = [rig.buffer() for _ in range(4)]
    pipeline = rig.compute("array_constant_index")
    descriptors = rig.descriptors(pipeline, b0=buffers)
    with rig.submission() as commands:
        for at in rig.choose("filled", (0, 1, 3), {"the used element": (0, 1, 2, 3)}):
            commands.fill(buffers[at], 0xCC)
        commands.bind(pipeline, descriptors)
        commands.push_constants(pipeline, 0xB00)
        commands.dispatch()


@scenario(
    without={"filled before": [FROM_FILL, AFTER_FILL]},
    weakened={"filled before / the source alone": [AFTER_FILL], "filled before / the target alone": [FROM_FILL]},
    rule="each-array-element-is-an-access-of-its-own",
)
def scenario_array_copied_from_one_element_to_another(rig: Rig) -> None:
    """One variable may read some elements of an array and write others."""
    buffers = [rig.buffer() for _ in range(4)]
    pipeline = rig.compute("array_constant_copy")
    with rig.submission() as commands:
        commands.fill(buffers[0], 0xDD)
        commands.fill(buffers[3], 0xEE)
        commands.barrier(
            "filled before",
            "ALL_TRANSFER/TRANSFER_WRITE",
            "COMPUTE_SHADER/SHADER_STORAGE_READ|SHADER_STORAGE_WRITE",
            weaker={"the source alone": {"buffer": buffers[0]}, "the target alone": {"buffer": buffers[3]}},
        )
        commands.bind(pipeline, rig.descriptors(pipeline, b0=buffers))
        commands.dispatch()


@scenario(
    weakened={"constant / of the filled element": [AFTER_FILL], "constant / default": []},
    rule="each-array-element-is-an-access-of-its-own",
)
def scenario_array_with_a_specialized_index(rig: Rig) -> None:
    """A specialization constant decides which element of an array the pipeline accesses."""
    buffers = [rig.buffer() for _ in range(4)]
    chosen = rig.choose("constant", (2,), {"of the filled element": (3,), "default": ()})
    pipeline = rig.compute("array_specialized_index", constants=chosen)
    with rig.submission() as commands:
        commands.fill(buffers[3], 0xFF)
        commands.bind(pipeline, rig.descriptors(pipeline, b0=buffers))
        commands.push_constants(pipeline, 0xC00)
        commands.dispatch()
