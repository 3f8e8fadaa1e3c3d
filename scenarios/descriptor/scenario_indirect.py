"""Indirect dispatches: the command's own read of its parameters, apart from what its shader does."""

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer, RigPipeline
from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

ONE_GROUP = (1).to_bytes(4, "little") * 3
WRITTEN = "ALL_TRANSFER/TRANSFER_WRITE"
READ = "DRAW_INDIRECT/INDIRECT_COMMAND_READ"


def _target(rig: Rig, commands: Commands, target: RigBuffer, value: int) -> RigPipeline:
    pipeline = rig.compute("fill_words")
    commands.bind(pipeline, rig.descriptors(pipeline, b0=target))
    commands.push_constants(pipeline, value)
    return pipeline


@scenario(
    without={"update before use": [read_after_write("vkCmdDispatchIndirect", "vkCmdUpdateBuffer")]},
    weakened={
        "update before use / execution only": [read_after_write("vkCmdDispatchIndirect", "vkCmdUpdateBuffer")],
        "update before use / for the shader": [read_after_write("vkCmdDispatchIndirect", "vkCmdUpdateBuffer")],
        "update before use / wrong access": [read_after_write("vkCmdDispatchIndirect", "vkCmdUpdateBuffer")],
    },
    rule="indirect-parameters-are-read-first",
)
def scenario_parameters_from_an_update(rig: Rig) -> None:
    """The parameters are read at DRAW_INDIRECT: a dependency to the compute stage does not cover that."""
    parameters, a = rig.buffer(64), rig.buffer()
    with rig.submission() as commands:
        commands.update(parameters, ONE_GROUP)
        commands.barrier(
            "update before use",
            WRITTEN,
            READ,
            weaker={
                "execution only": {"src": "ALL_TRANSFER", "dst": "DRAW_INDIRECT"},
                "for the shader": {"dst": "COMPUTE_SHADER/SHADER_READ"},
                "wrong access": {"dst": "DRAW_INDIRECT|COMPUTE_SHADER/SHADER_READ"},
            },
        )
        _target(rig, commands, a, 0x100)
        commands.dispatch_indirect(parameters)


@scenario(
    without={"fill before use": [read_after_write("vkCmdDispatchIndirect", "vkCmdFillBuffer")]},
    weakened={"fill before use / too few bytes": [read_after_write("vkCmdDispatchIndirect", "vkCmdFillBuffer")]},
    rule="indirect-parameters-are-read-first",
)
def scenario_parameters_from_a_fill(rig: Rig) -> None:
    """All twelve bytes of the parameters must be visible, wherever in the buffer they are."""
    parameters, a = rig.buffer(64), rig.buffer()
    with rig.submission() as commands:
        commands.fill(parameters, 1)
        commands.barrier(
            "fill before use",
            WRITTEN,
            READ,
            buffer=parameters,
            offset=16,
            size=12,
            weaker={"too few bytes": {"size": 8}},
        )
        _target(rig, commands, a, 0x200)
        commands.dispatch_indirect(parameters, 16)


@scenario(
    without={"copy before use": [read_after_write("vkCmdDispatchIndirect", "vkCmdCopyBuffer")]},
    rule="indirect-parameters-are-read-first",
)
def scenario_parameters_from_a_copy(rig: Rig) -> None:
    """Parameters that a copy wrote, made visible by a barrier of the first form."""
    source, parameters, a = rig.buffer(64), rig.buffer(64), rig.buffer()
    rig.host_write(source, ONE_GROUP, 4)
    with rig.submission() as commands:
        commands.copy(source, parameters, (4, 20, 12))
        commands.barrier("copy before use", WRITTEN, READ, sync2=False)
        _target(rig, commands, a, 0x300)
        commands.dispatch_indirect(parameters, 20)


@scenario(
    without={"shader before use": [read_after_write("vkCmdDispatchIndirect", "vkCmdDispatch")]},
    weakened={"shader before use / to the shader": [read_after_write("vkCmdDispatchIndirect", "vkCmdDispatch")]},
    rule="indirect-parameters-are-read-first",
)
def scenario_parameters_from_a_shader(rig: Rig) -> None:
    """The usual way to let the device decide: one dispatch writes the parameters of the next."""
    parameters, a = rig.buffer(64), rig.buffer()
    deciding = rig.compute("indirect_args")
    with rig.submission() as commands:
        commands.bind(deciding, rig.descriptors(deciding, b0=parameters))
        commands.push_constants(deciding, 1, 1, 1)
        commands.dispatch()
        commands.barrier(
            "shader before use",
            "COMPUTE_SHADER/SHADER_STORAGE_WRITE",
            READ,
            weaker={"to the shader": {"dst": "COMPUTE_SHADER/SHADER_STORAGE_READ|SHADER_STORAGE_WRITE"}},
        )
        _target(rig, commands, a, 0x400)
        commands.dispatch_indirect(parameters)


@scenario(
    without={"use before fill": [write_after_read("vkCmdFillBuffer", "vkCmdDispatchIndirect")]},
    weakened={"use before fill / after earlier stages": [], "use before fill / after the shader alone": []},
    rule="execution-scopes-reach-other-stages,indirect-parameters-are-read-first",
)
def scenario_parameters_overwritten_after_use(rig: Rig) -> None:
    """Overwriting parameters waits for DRAW_INDIRECT, which comes before the compute stage: waiting for that does."""
    parameters, a = rig.buffer(64, data=ONE_GROUP), rig.buffer()
    with rig.submission() as commands:
        _target(rig, commands, a, 0x500)
        commands.dispatch_indirect(parameters)
        commands.barrier(
            "use before fill",
            "DRAW_INDIRECT",
            "CLEAR|COPY",
            weaker={
                "after earlier stages": {"src": "BOTTOM_OF_PIPE"},
                "after the shader alone": {"src": "COMPUTE_SHADER"},
            },
        )
        commands.fill(parameters, 0)


@scenario(
    weakened={"filled / the last parameter": [read_after_write("vkCmdDispatchIndirect", "vkCmdFillBuffer")]},
    rule="indirect-parameters-are-read-first",
)
def scenario_bytes_after_the_parameters(rig: Rig) -> None:
    """Bytes around the twelve may be written at the same time."""
    parameters, a = rig.buffer(64), rig.buffer()
    rig.host_write(parameters, ONE_GROUP, 16)
    with rig.submission() as commands:
        for offset, size in rig.choose("filled", ((0, 16), (28, 36)), {"the last parameter": ((24, 40),)}):
            commands.fill(parameters, 0, offset, size)
        _target(rig, commands, a, 0x600)
        commands.dispatch_indirect(parameters, 16)


@scenario(
    without={"fill before the shader": [write_after_write("vkCmdDispatchIndirect", "vkCmdFillBuffer")]},
    weakened={
        "fill before the shader / at the indirect stage": [
            write_after_write("vkCmdDispatchIndirect", "vkCmdFillBuffer")
        ]
    },
    rule="each-shader-stage-accesses-for-itself",
)
def scenario_shader_of_an_indirect_dispatch(rig: Rig) -> None:
    """The shader of an indirect dispatch accesses what it always does, at the compute stage."""
    parameters, a = rig.buffer(64, data=ONE_GROUP), rig.buffer()
    with rig.submission() as commands:
        commands.fill(a, 0x55)
        commands.barrier(
            "fill before the shader",
            WRITTEN,
            "COMPUTE_SHADER/SHADER_WRITE",
            weaker={"at the indirect stage": {"dst": READ}},
        )
        _target(rig, commands, a, 0x700)
        commands.dispatch_indirect(parameters)
