"""Streams so large that a GPU overlaps their commands: a missing barrier corrupts by itself (`--vk-native 8`)."""

from vkharness.suite import Rig, read_after_write, scenario

WORDS = 1 << 20
GROUPS = WORDS // 64
DISPATCH_TO_DISPATCH = {"src": "COMPUTE_SHADER", "dst": "COMPUTE_SHADER"}


@scenario(
    without={"written before read": [read_after_write("vkCmdDispatch", "vkCmdDispatch")]},
    weakened={"written before read / execution only": [read_after_write("vkCmdDispatch", "vkCmdDispatch")]},
    rule="read-after-write",
)
def scenario_dispatch_reads_a_million_written_words(rig: Rig) -> None:
    """A dispatch that reads what another wrote needs a memory dependency, however large the work."""
    source, target = rig.buffer(4 * WORDS), rig.buffer(4 * WORDS)
    write = rig.compute("fill_words")
    copy = rig.compute("copy_words")
    written, copied = rig.descriptors(write, b0=source), rig.descriptors(copy, b0=source, b1=target)
    with rig.submission() as commands:
        commands.bind(write, written)
        commands.push_constants(write, 0x01000000)
        commands.dispatch(GROUPS)
        commands.barrier(
            "written before read",
            "COMPUTE_SHADER/SHADER_STORAGE_WRITE",
            "COMPUTE_SHADER/SHADER_STORAGE_READ",
            weaker={"execution only": DISPATCH_TO_DISPATCH},
        )
        commands.bind(copy, copied)
        commands.dispatch(GROUPS)


@scenario(
    without={"written before copied": [read_after_write("vkCmdCopyBuffer", "vkCmdDispatch")]}, rule="read-after-write"
)
def scenario_copy_reads_a_million_written_words(rig: Rig) -> None:
    """A copy that reads what a dispatch wrote needs a memory dependency, however large the work."""
    source, target = rig.buffer(4 * WORDS), rig.buffer(4 * WORDS)
    write = rig.compute("fill_words")
    written = rig.descriptors(write, b0=source)
    with rig.submission() as commands:
        commands.bind(write, written)
        commands.push_constants(write, 0x01000000)
        commands.dispatch(GROUPS)
        commands.barrier("written before copied", "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "COPY/TRANSFER_READ")
        commands.copy(source, target)
