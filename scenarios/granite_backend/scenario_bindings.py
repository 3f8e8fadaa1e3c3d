"""Pipeline layouts by reflection, sets by frequency and sets by content: what is bound orders nothing."""

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer, RigPipeline
from vkharness.rig.descriptor_cache import DescriptorCache
from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

DISPATCH = "vkCmdDispatch"
STORED, LOADED = "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "COMPUTE_SHADER/SHADER_STORAGE_READ"


@scenario(
    weakened={"the second target / over the first": [write_after_write(DISPATCH, DISPATCH)]},
    rule="a-descriptor-means-its-range,write-after-write",
)
def scenario_sets_by_frequency(rig: Rig) -> None:
    """Constant resources are bound once, in a set of their own; the set that changes decides what conflicts."""
    source, target = rig.buffer(data=bytes(range(256))), rig.buffer(1024)
    copy = rig.compute("copy_two_sets")
    offsets = (0, rig.choose("the second target", 256, {"over the first": 64}))
    with rig.submission() as commands:
        commands.bind(copy, rig.numbered_set(copy, 0, b0=source))
        for offset in offsets:
            commands.bind_set(copy, rig.numbered_set(copy, 1, b0=(target, offset, 256)))
            commands.dispatch()


@scenario(
    without={
        "first before second": [read_after_write(DISPATCH, DISPATCH)],
        "second before third": [write_after_read(DISPATCH, DISPATCH)],
    },
    rule="write-after-read,the-last-write-of-a-descriptor-counts",
)
def scenario_sets_by_content(rig: Rig) -> None:
    """The same content gives the same set again, so that nothing is written to it. Its dispatches need their barriers
    all the same."""
    cache, copy, scale = DescriptorCache(rig), rig.compute("copy_words"), rig.compute("scale_words")
    a, b = rig.buffer(data=bytes(range(256))), rig.buffer()

    def run(commands: Commands, pipeline: RigPipeline, **held: RigBuffer) -> None:
        commands.bind(pipeline, cache.get(pipeline, **held))
        if pipeline is scale:
            commands.push_constants(scale, 3)
        commands.dispatch()

    with rig.submission() as commands:
        run(commands, scale, b0=a)
        commands.barrier("first before second", STORED, LOADED)
        run(commands, copy, b0=a, b1=b)
        commands.barrier("second before third", "COMPUTE_SHADER", "COMPUTE_SHADER")
        run(commands, scale, b0=a)
    assert (cache.made, cache.found) == (2, 1)
