"""VK_EXT_descriptor_buffer: the descriptors come from memory, and the read of that memory is an access of its own."""

from vkharness.suite import Rig, read_after_write, scenario, write_after_read

NEEDS = ("VK_EXT_descriptor_buffer",)
WRITE = "COMPUTE_SHADER/SHADER_STORAGE_WRITE"
DESCRIPTORS = "COMPUTE_SHADER/DESCRIPTOR_BUFFER_READ"


@scenario(
    without={"dispatch before copy": [read_after_write("vkCmdCopyBuffer", "vkCmdDispatch")]},
    needs=NEEDS,
    rule="descriptors-in-memory",
)
def scenario_a_descriptor_that_the_host_wrote(rig: Rig) -> None:
    """A dispatch writes the buffer of which the host wrote the descriptor."""
    a, out = rig.buffer(), rig.buffer()
    fill = rig.described_compute("fill_words")
    held = rig.described_set(fill, b0=a)
    with rig.submission() as commands:
        commands.bind_described(fill, held)
        commands.push_constants(fill, 0x11)
        commands.dispatch()
        commands.barrier("dispatch before copy", WRITE, "COPY/TRANSFER_READ")
        commands.copy(a, out)


@scenario(
    without={"copied before read": [read_after_write("vkCmdDispatch", "vkCmdCopyBuffer")]},
    weakened={"copied before read / for storage reads": [read_after_write("vkCmdDispatch", "vkCmdCopyBuffer")]},
    needs=NEEDS,
    rule="descriptors-in-memory",
)
def scenario_descriptors_that_a_copy_brought(rig: Rig) -> None:
    """Descriptors that a command wrote must be visible to reads of descriptor buffers in the stages of the shaders."""
    a, b = rig.buffer(), rig.buffer()
    fill = rig.described_compute("fill_words")
    staging, held = rig.described_set(fill, b0=b), rig.described_set(fill, b0=a)
    with rig.submission() as commands:
        commands.copy(staging, held)
        commands.barrier(
            "copied before read",
            "COPY/TRANSFER_WRITE",
            DESCRIPTORS,
            weaker={"for storage reads": {"dst": "COMPUTE_SHADER/SHADER_STORAGE_READ"}},
        )
        commands.bind_described(fill, held)
        commands.push_constants(fill, 0x22)
        commands.dispatch()


@scenario(
    without={"read before overwritten": [write_after_read("vkCmdCopyBuffer", "vkCmdDispatch")]},
    needs=NEEDS,
    rule="descriptors-in-memory",
)
def scenario_descriptors_that_are_overwritten(rig: Rig) -> None:
    """A write over descriptors must come after the shaders that read them."""
    a, b = rig.buffer(), rig.buffer()
    fill = rig.described_compute("fill_words")
    staging, held = rig.described_set(fill, b0=b), rig.described_set(fill, b0=a)
    with rig.submission() as commands:
        commands.bind_described(fill, held)
        commands.push_constants(fill, 0x33)
        commands.dispatch()
        commands.barrier("read before overwritten", DESCRIPTORS, "COPY/TRANSFER_WRITE")
        commands.copy(staging, held)
