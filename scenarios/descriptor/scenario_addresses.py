"""Memory that shaders reach through device addresses."""

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer, RigPipeline
from vkharness.suite import Rig, read_after_write, scenario, write_after_write

ADDRESSES = ("VK_KHR_buffer_device_address",)
WRITE, READ = "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "COMPUTE_SHADER/SHADER_STORAGE_READ"


def _copy(rig: Rig) -> RigPipeline:
    return rig.compute("address_copy")


def _run(commands: Commands, pipeline: RigPipeline, source: RigBuffer, target: RigBuffer, count: int = 64) -> None:
    commands.bind(pipeline)
    commands.push_constants(pipeline, *commands.rig.address(source), *commands.rig.address(target), count)
    commands.dispatch()


@scenario(
    without={"fill before the loads": [read_after_write("vkCmdDispatch", "vkCmdFillBuffer")]},
    weakened={"fill before the loads / for writes": [read_after_write("vkCmdDispatch", "vkCmdFillBuffer")]},
    needs=ADDRESSES,
    rule="addresses-lead-to-their-buffer",
)
def scenario_loads_through_an_address(rig: Rig) -> None:
    """Data that a shader loads through a device address in its push constants must be visible to storage reads."""
    a, b = rig.buffer(), rig.buffer()
    pipeline = _copy(rig)
    with rig.submission() as commands:
        commands.fill(a, 0x11)
        commands.barrier(
            "fill before the loads", "ALL_TRANSFER/TRANSFER_WRITE", READ, weaker={"for writes": {"dst": WRITE}}
        )
        _run(commands, pipeline, a, b)


@scenario(
    without={"first before second": [read_after_write("vkCmdDispatch", "vkCmdDispatch")]},
    needs=ADDRESSES,
    rule="addresses-lead-to-their-buffer",
)
def scenario_stores_and_loads_through_addresses(rig: Rig) -> None:
    """A dispatch that loads what another one stored through the same address needs a memory dependency."""
    a, b, c = rig.buffer(data=bytes(range(256))), rig.buffer(), rig.buffer()
    pipeline = _copy(rig)
    with rig.submission() as commands:
        _run(commands, pipeline, a, b)
        commands.barrier("first before second", WRITE, READ)
        _run(commands, pipeline, b, c)


@scenario(
    weakened={"filled / what is stored to": [write_after_write("vkCmdDispatch", "vkCmdFillBuffer")]},
    needs=ADDRESSES,
    rule="addresses-lead-to-their-buffer,indices-that-the-dispatch-decides",
)
def scenario_part_of_a_buffer_behind_an_address(rig: Rig) -> None:
    """The invocations of the dispatch decide how far from the address on a shader reaches."""
    a, b = rig.buffer(), rig.buffer()
    pipeline = _copy(rig)
    with rig.submission() as commands:
        commands.fill(b, 0x22, rig.choose("filled", 64, {"what is stored to": 60}), 4)
        _run(commands, pipeline, a, b, 16)
