"""Bytes that follow from values which a shader loads from memory: ranges in uniform blocks."""

from vkharness.rig.core import RigBuffer
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.suite import Rig, read_after_write, scenario, write_after_write

FILL, UNIFORM = "ALL_TRANSFER/TRANSFER_WRITE", "COMPUTE_SHADER/UNIFORM_READ"
AFTER_FILL = write_after_write("vkCmdDispatch", "vkCmdFillBuffer")
DRAW = "vkCmdDraw"
ADDRESSES = ("VK_KHR_buffer_device_address",)
WAW = write_after_write("vkCmdDispatch", "vkCmdDispatch")


def _uniforms(rig: Rig, *words: int) -> RigBuffer:
    return rig.buffer(data=b"".join(word.to_bytes(4, "little") for word in (*words, *[0] * (16 - len(words)))))


@scenario(
    weakened={"filled / the last word": [AFTER_FILL], "filled / the first word": [AFTER_FILL]},
    rule="values-that-a-shader-loads",
)
def scenario_range_from_a_uniform_block(rig: Rig) -> None:
    """An offset and a count that the host wrote to a uniform block say which words are stored to."""
    a, numbers = rig.buffer(512), _uniforms(rig, 10, 40)
    pipeline = rig.compute("uniform_range")
    words = rig.choose("filled", (0, 10), {"the last word": (49, 1), "the first word": (10, 1)})
    with rig.submission() as commands:
        commands.fill(a, 0x22, 4 * words[0], 4 * words[1])
        commands.fill(a, 0x33, 4 * 50)
        commands.bind(pipeline, rig.descriptors(pipeline, b0=a, b1=numbers))
        commands.push_constants(pipeline, 0x400)
        commands.dispatch()


@scenario(
    without={"fill before the loads": [read_after_write("vkCmdDispatch", "vkCmdFillBuffer")]},
    weakened={"first word / of the first half": [WAW]},
    rule="values-that-a-shader-loads",
)
def scenario_ranges_that_a_fill_decides(rig: Rig) -> None:
    """A number that a fill wrote to a uniform block counts for the dispatch that loads it after that."""
    a, first, second = rig.buffer(512), _uniforms(rig, 0, 64), _uniforms(rig, 32, 64)
    pipeline = rig.compute("uniform_range")
    word = rig.choose("first word", 64, {"of the first half": 63})
    with rig.submission() as commands:
        commands.fill(second, word, 0, 4)
        commands.barrier("fill before the loads", FILL, UNIFORM)
        for numbers, value in ((first, 0x500), (second, 0x600)):
            commands.bind(pipeline, rig.descriptors(pipeline, b0=a, b1=numbers))
            commands.push_constants(pipeline, value)
            commands.dispatch()


@scenario(weakened={"rewritten / to the first half": [AFTER_FILL]}, rule="values-that-a-shader-loads")
def scenario_uniforms_rewritten_before_the_submit(rig: Rig) -> None:
    """A host write to a uniform block before the submit counts, and not the contents during the recording."""
    a, numbers = rig.buffer(512), _uniforms(rig, 0, 64)
    pipeline = rig.compute("uniform_range")
    first = rig.choose("rewritten", 64, {"to the first half": 63})
    with rig.submission() as commands:
        commands.fill(a, 0x22, 0, 256)
        commands.bind(pipeline, rig.descriptors(pipeline, b0=a, b1=numbers))
        commands.push_constants(pipeline, 0x400)
        commands.dispatch()
        rig.host_write(numbers, first.to_bytes(4, "little"))


@scenario(
    without={"fill before the stores": [AFTER_FILL]},
    needs=ADDRESSES,
    rule="values-that-a-shader-loads,addresses-lead-to-their-buffer",
)
def scenario_an_address_in_a_uniform_block(rig: Rig) -> None:
    """A shader stores to the buffer whose device address the host wrote to a uniform block."""
    a, b = rig.buffer(), rig.buffer()
    where = _uniforms(rig, *rig.address(a))
    pipeline = rig.compute("uniform_address")
    with rig.submission() as commands:
        commands.fill(a, 0x22)
        commands.fill(b, 0x33)
        commands.barrier("fill before the stores", FILL, "COMPUTE_SHADER/SHADER_STORAGE_WRITE")
        commands.bind(pipeline, rig.descriptors(pipeline, b0=where))
        commands.push_constants(pipeline, 0x400)
        commands.dispatch()


@scenario(
    without={"address before its load": [read_after_write("vkCmdDispatch", "vkCmdUpdateBuffer")]},
    needs=ADDRESSES,
    rule="values-that-a-shader-loads",
)
def scenario_an_address_that_an_update_wrote(rig: Rig) -> None:
    """A device address that an update wrote to a uniform block leads to its buffer; an older one leads elsewhere."""
    a, b = rig.buffer(), rig.buffer()
    where = _uniforms(rig, *rig.address(b))
    pipeline = rig.compute("uniform_address")
    with rig.submission() as commands:
        commands.update(where, b"".join(word.to_bytes(4, "little") for word in rig.address(a)))
        commands.barrier("address before its load", FILL, UNIFORM)
        commands.bind(pipeline, rig.descriptors(pipeline, b0=where))
        commands.push_constants(pipeline, 0x400)
        commands.dispatch()


@scenario(
    without={"number before its load": [read_after_write(DRAW, "vkCmdUpdateBuffer")]},
    weakened={"filled / the word": [write_after_write(DRAW, "vkCmdFillBuffer")]},
    rule="values-that-a-shader-loads",
)
def scenario_word_that_a_draw_stores(rig: Rig) -> None:
    """A draw stores to the word that a uniform block names, and to no other of the storage buffer."""
    a, number, image = rig.buffer(512), _uniforms(rig, 9), rig.target()
    pipeline = rig.graphics("uniform_word")
    word = rig.choose("filled", 9, {"the word": 10})
    with rig.submission() as commands:
        commands.fill(a, 0x33, 4 * word, 4)
        commands.update(number, (10).to_bytes(4, "little"))
        commands.barrier("number before its load", FILL, "FRAGMENT_SHADER/UNIFORM_READ")
        commands.transition(image)
        commands.begin_rendering(RenderingAttachment(rig.view(image)))
        commands.bind(pipeline, rig.descriptors(pipeline, b0=a, b1=number))
        commands.draw()
        commands.end_rendering()


@scenario(
    weakened={"filled / the first word": [write_after_write("vkCmdDispatchIndirect", "vkCmdFillBuffer")]},
    rule="values-that-a-shader-loads",
)
def scenario_range_of_an_indirect_dispatch(rig: Rig) -> None:
    """The same of a dispatch whose numbers of workgroups lie in a buffer."""
    a, numbers, groups = rig.buffer(512), _uniforms(rig, 10, 40), _uniforms(rig, 1, 1, 1)
    pipeline = rig.compute("uniform_range")
    words = rig.choose("filled", (0, 10), {"the first word": (10, 1)})
    with rig.submission() as commands:
        commands.fill(a, 0x22, 4 * words[0], 4 * words[1])
        commands.bind(pipeline, rig.descriptors(pipeline, b0=a, b1=numbers))
        commands.push_constants(pipeline, 0x400)
        commands.dispatch_indirect(groups)
