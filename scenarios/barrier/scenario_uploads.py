"""A pattern that a dispatch writes and a copy turns into a picture: what half a barrier does can be looked at."""

from vkharness.suite import Rig, read_after_write, scenario

SIDE = 128
WORDS = SIDE * SIDE
READ_TOO_EARLY = [read_after_write("vkCmdCopyBufferToImage", "vkCmdDispatch")]


@scenario(
    without={"pattern before upload": READ_TOO_EARLY},
    weakened={"pattern before upload / upper half": READ_TOO_EARLY},
    rule="read-after-write,a-ranged-barrier-covers-its-range",
)
def scenario_upload_of_a_dispatched_pattern(rig: Rig) -> None:
    """A buffer barrier makes exactly its range visible to the copy: the rest of the picture may be anything."""
    buffer, image = rig.buffer(4 * WORDS), rig.image(extent=(SIDE, SIDE, 1))
    write = rig.compute("fill_words")
    written = rig.descriptors(write, b0=buffer)
    with rig.submission() as commands:
        commands.transition(image)
        commands.bind(write, written)
        commands.push_constants(write, 0xFF802000)
        commands.dispatch(WORDS // 64)
        commands.barrier(
            "pattern before upload",
            "COMPUTE_SHADER/SHADER_STORAGE_WRITE",
            "COPY/TRANSFER_READ",
            buffer=buffer,
            weaker={"upper half": {"size": 2 * WORDS}},
        )
        commands.buffer_to_image(buffer, image)
