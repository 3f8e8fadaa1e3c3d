"""Atomics: read-modify-write operations do not conflict with one another, but with everything else."""

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigPipeline
from vkharness.spec.enums import VkImageLayout
from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

RAW = read_after_write("vkCmdDispatch", "vkCmdDispatch")
WAR = write_after_read("vkCmdDispatch", "vkCmdDispatch")
WAW = write_after_write("vkCmdDispatch", "vkCmdDispatch")
WRITE, READ = "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "COMPUTE_SHADER/SHADER_STORAGE_READ"
BOTH = "COMPUTE_SHADER/SHADER_STORAGE_READ|SHADER_STORAGE_WRITE"
GENERAL = VkImageLayout.GENERAL


def _pipeline(rig: Rig, shader: str) -> RigPipeline:
    return rig.compute(shader)


def _run(commands: Commands, pipeline: RigPipeline, value: int | None, **held: object) -> None:
    commands.bind(pipeline, commands.rig.descriptors(pipeline, **held))
    if value is not None:
        commands.push_constants(pipeline, value)
    commands.dispatch()


@scenario(
    without={"fill before the adds": [read_after_write("vkCmdDispatch", "vkCmdFillBuffer")]},
    weakened={"fill before the adds / execution only": [read_after_write("vkCmdDispatch", "vkCmdFillBuffer")]},
    rule="atomics-do-not-conflict-with-one-another,atomics-read-and-write",
)
def scenario_atomic_adds_of_two_dispatches(rig: Rig) -> None:
    """Two dispatches that add atomically to the same words need nothing between them, but all before them."""
    a = rig.buffer()
    add = _pipeline(rig, "atomic_add")
    with rig.submission() as commands:
        commands.fill(a, 1)
        commands.barrier(
            "fill before the adds",
            "ALL_TRANSFER/TRANSFER_WRITE",
            BOTH,
            weaker={"execution only": {"src": "ALL_TRANSFER", "dst": "COMPUTE_SHADER"}},
        )
        _run(commands, add, 10, b0=a)
        _run(commands, add, 100, b0=a)


@scenario(
    without={"fill": [read_after_write("vkCmdDispatch", "vkCmdFillBuffer")]},
    rule="atomics-do-not-conflict-with-one-another",
)
def scenario_atomic_adds_of_two_submits(rig: Rig) -> None:
    """Nor do two submits that add atomically."""
    a = rig.buffer()
    add = _pipeline(rig, "atomic_add")
    with rig.commands() as first:
        first.fill(a, 2)
    with rig.commands() as second:
        second.barrier("fill", "ALL_TRANSFER/TRANSFER_WRITE", "COMPUTE_SHADER/SHADER_READ|SHADER_WRITE", sync2=False)
        _run(second, add, 20, b0=a)
    with rig.commands() as third:
        _run(third, add, 200, b0=a)
    for each in (first, second, third):
        rig.submit(each)


@scenario(
    without={"adds before the copy": [read_after_write("vkCmdCopyBuffer", "vkCmdDispatch")]},
    rule="atomics-read-and-write",
)
def scenario_copy_of_atomically_added_words(rig: Rig) -> None:
    """A copy reads words that atomics wrote: a memory dependency from storage writes is due."""
    a, b = rig.buffer(), rig.buffer()
    add = _pipeline(rig, "atomic_add")
    with rig.submission() as commands:
        _run(commands, add, 30, b0=a)
        commands.barrier("adds before the copy", WRITE, "COPY/TRANSFER_READ")
        commands.copy(a, b)


@scenario(without={"adds before the stores": [WAW]}, rule="atomics-read-and-write")
def scenario_plain_stores_after_atomics(rig: Rig) -> None:
    """A plain store conflicts with atomics of the same words."""
    a = rig.buffer()
    add, fill = _pipeline(rig, "atomic_add"), _pipeline(rig, "fill_words")
    with rig.submission() as commands:
        _run(commands, add, 40, b0=a)
        commands.barrier("adds before the stores", WRITE, WRITE)
        _run(commands, fill, 50, b0=a)


@scenario(
    without={"stores before the adds": [RAW]},
    weakened={"stores before the adds / for sampled reads": [RAW]},
    rule="atomics-read-and-write",
)
def scenario_atomics_after_plain_stores(rig: Rig) -> None:
    """An atomic reads what a plain store wrote."""
    a = rig.buffer()
    add, fill = _pipeline(rig, "atomic_add"), _pipeline(rig, "fill_words")
    with rig.submission() as commands:
        _run(commands, fill, 60, b0=a)
        commands.barrier(
            "stores before the adds",
            WRITE,
            BOTH,
            weaker={"for sampled reads": {"dst": "COMPUTE_SHADER/SHADER_SAMPLED_READ"}},
        )
        _run(commands, add, 70, b0=a)


@scenario(without={"loads before the adds": [WAR]}, rule="atomics-read-and-write")
def scenario_atomics_after_plain_loads(rig: Rig) -> None:
    """A plain load that must not see what a later atomic writes needs an execution dependency."""
    a, b = rig.buffer(), rig.buffer()
    add = _pipeline(rig, "atomic_add")
    copy = rig.compute("copy_words")
    with rig.submission() as commands:
        _run(commands, copy, None, b0=a, b1=b)
        commands.barrier("loads before the adds", "COMPUTE_SHADER", "COMPUTE_SHADER")
        _run(commands, add, 80, b0=a)


@scenario(without={"once before twice": [WAW]}, rule="atomics-read-and-write")
def scenario_atomic_stores_of_two_dispatches(rig: Rig) -> None:
    """Atomic stores are ordered as little as plain ones: which value stays is open."""
    a = rig.buffer()
    store = _pipeline(rig, "atomic_store")
    with rig.submission() as commands:
        _run(commands, store, 0x90, b0=a)
        commands.barrier("once before twice", WRITE, WRITE)
        _run(commands, store, 0x900, b0=a)


@scenario(without={"store before load": [RAW]}, weakened={"targets / one": [WAW]}, rule="atomics-read-and-write")
def scenario_atomic_loads(rig: Rig) -> None:
    """Atomic loads are reads: they need what was stored to be visible, and do not conflict with one another."""
    a, b, c = rig.buffer(), rig.buffer(), rig.buffer()
    store = _pipeline(rig, "atomic_store")
    load = rig.compute("atomic_load")
    reverse = rig.compute("reverse_words")
    with rig.submission() as commands:
        _run(commands, store, 0xA0, b0=a)
        commands.barrier("store before load", WRITE, READ)
        _run(commands, load, None, b0=a, b1=b)
        _run(commands, reverse, None, b0=a, b1=rig.choose("targets", c, {"one": b}))


@scenario(
    without={"clear before the adds": [read_after_write("vkCmdDispatch", "vkCmdClearColorImage")]},
    rule="atomics-do-not-conflict-with-one-another,atomics-read-and-write",
)
def scenario_image_atomics(rig: Rig) -> None:
    """Atomic additions to the texels of one image by two dispatches do not conflict."""
    image = rig.image("VK_FORMAT_R32_UINT", (8, 8, 1))
    add = rig.compute("image_atomic_add")
    held = (rig.view(image), None, GENERAL)
    with rig.submission() as commands:
        commands.transition(image)
        commands.clear_color(image)
        commands.barrier("clear before the adds", "CLEAR/TRANSFER_WRITE", BOTH, image=image)
        _run(commands, add, 3, b0=held)
        _run(commands, add, 4, b0=held)
