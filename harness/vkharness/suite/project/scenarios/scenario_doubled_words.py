"""Dependencies that a dispatch needs to read a buffer that a fill wrote."""

from pathlib import Path

from vkharness.suite import Rig, read_after_write, scenario

SHADERS = Path(__file__).resolve().parent / "shaders"


@scenario(without={"fill before dispatch": [read_after_write("vkCmdDispatch", "vkCmdFillBuffer")]})
def scenario_dispatch_reads_a_filled_buffer(rig: Rig) -> None:
    """A dispatch that reads what a fill wrote needs a memory dependency. Its twin goes without it."""
    source, target = rig.buffer(), rig.buffer()
    double = rig.compute(SHADERS / "double_words.comp")
    held = rig.descriptors(double, b0=source, b1=target)
    with rig.submission() as commands:
        commands.fill(source, 0x11223344)
        commands.barrier("fill before dispatch", "CLEAR/TRANSFER_WRITE", "COMPUTE_SHADER/SHADER_STORAGE_READ")
        commands.bind(double, held)
        commands.dispatch()
