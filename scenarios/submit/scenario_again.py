"""Command buffers that are submitted again, recorded again, or never submitted."""

from vkharness.rig.core import RigPipeline
from vkharness.spec.enums import VkCommandBufferUsage
from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

RAW = read_after_write("vkCmdCopyBuffer", "vkCmdFillBuffer")
WAR = write_after_read("vkCmdFillBuffer", "vkCmdCopyBuffer")
COPY_WAW = write_after_write("vkCmdCopyBuffer", "vkCmdCopyBuffer")
DISPATCH_WAW = write_after_write("vkCmdDispatch", "vkCmdDispatch")
WRITE, READ = "ALL_TRANSFER/TRANSFER_WRITE", "ALL_TRANSFER/TRANSFER_READ"


def _scale(rig: Rig) -> RigPipeline:
    return rig.compute("scale_words")


@scenario(
    without={"earlier execution": [DISPATCH_WAW]},
    weakened={"earlier execution / execution only": [DISPATCH_WAW]},
    rule="each-execution-counts",
)
def scenario_command_buffer_submitted_twice(rig: Rig) -> None:
    """A command buffer conflicts with its own earlier execution as with any other command buffer."""
    a = rig.buffer(data=bytes(range(256)))
    pipeline = _scale(rig)
    descriptors = rig.descriptors(pipeline, b0=a)
    with rig.submission() as commands:
        commands.barrier(
            "earlier execution",
            "COMPUTE_SHADER/SHADER_WRITE",
            "COMPUTE_SHADER/SHADER_READ|SHADER_WRITE",
            weaker={"execution only": {"src": "COMPUTE_SHADER", "dst": "COMPUTE_SHADER"}},
        )
        commands.bind(pipeline, descriptors)
        commands.push_constants(pipeline, 3)
        commands.dispatch()
    rig.submit(commands)


@scenario(
    without={"inside": [WAR], "earlier execution": [RAW, COPY_WAW]},
    weakened={"earlier execution / for reads only": [COPY_WAW], "earlier execution / for writes only": [RAW]},
    rule="each-execution-counts",
)
def scenario_command_buffer_twice_in_one_batch(rig: Rig) -> None:
    """Submitted twice in one batch, the first command meets the last ones of the execution before."""
    a, b = rig.buffer(), rig.buffer()
    with rig.commands() as commands:
        commands.barrier(
            "earlier execution",
            WRITE,
            "ALL_TRANSFER/TRANSFER_READ|TRANSFER_WRITE",
            weaker={"for reads only": {"dst": READ}, "for writes only": {"dst": WRITE}},
        )
        commands.copy(a, b)
        commands.barrier("inside", "ALL_TRANSFER", "ALL_TRANSFER", sync2=False)
        commands.fill(a, 0x13131313)
    rig.submit(commands, commands)


@scenario(without={"earlier execution": [DISPATCH_WAW]}, rule="each-execution-counts")
def scenario_command_buffer_in_two_batches(rig: Rig) -> None:
    """The same command buffer in two batches of one submit is two executions, too."""
    a = rig.buffer(data=bytes(range(256)))
    pipeline = _scale(rig)
    descriptors = rig.descriptors(pipeline, b0=a)
    with rig.commands() as commands:
        commands.bind(pipeline, descriptors)
        commands.push_constants(pipeline, 5)
        commands.dispatch()
        commands.barrier(
            "earlier execution",
            "COMPUTE_SHADER/SHADER_STORAGE_WRITE",
            "COMPUTE_SHADER/SHADER_STORAGE_READ|SHADER_STORAGE_WRITE",
        )
    rig.submit_batches([commands], [commands], sync2=True)


@scenario(without={"recorded again": [RAW]}, rule="recording-replaces-what-was-recorded")
def scenario_commands_recorded_over_never_happen(rig: Rig) -> None:
    """vkBeginCommandBuffer discards what was recorded before: a fill that is never executed conflicts with nothing."""
    a, b, c = rig.buffer(), rig.buffer(), rig.buffer()
    with rig.commands() as first:
        first.fill(a, 0x24242424)
    if rig.choose("recorded again", True, {}):
        with rig.commands(first):
            first.fill(c, 0x35353535)
    with rig.commands() as second:
        second.copy(a, b)
    rig.submit(first)
    rig.submit(second)


@scenario(without={"reset": [RAW]}, rule="recording-replaces-what-was-recorded")
def scenario_commands_reset_never_happen(rig: Rig) -> None:
    """After vkResetCommandBuffer the commands are gone, and one that is not begun again is not submitted."""
    a, b = rig.buffer(), rig.buffer()
    with rig.commands() as first:
        first.fill(a, 0x46464646)
    kept = [first]
    if rig.choose("reset", True, {}):
        rig.vk.vkResetCommandBuffer(first.handle, 0)
        kept = []
    with rig.commands() as second:
        second.copy(a, b)
    rig.submit_batches([*kept, second])


@scenario(without={"pool reset": [RAW]}, rule="recording-replaces-what-was-recorded")
def scenario_commands_of_a_reset_pool_never_happen(rig: Rig) -> None:
    """vkResetCommandPool takes every command buffer of the pool back to the initial state."""
    a, b, c = rig.buffer(), rig.buffer(), rig.buffer()
    with rig.commands() as first:
        first.fill(a, 0x57575757)
    if rig.choose("pool reset", True, {}):
        rig.vk.vkResetCommandPool(rig.device, rig.gpu.command_pool, 0)
        with rig.commands(first):
            first.fill(c, 0x68686868)
    with rig.commands() as second:
        second.copy(a, b)
    rig.submit(first)
    rig.submit(second)


@scenario(
    without={"the wait": [RAW, COPY_WAW]},
    rule="recording-replaces-what-was-recorded,a-fence-covers-everything-before-it",
)
def scenario_command_buffer_recorded_again_after_a_wait(rig: Rig) -> None:
    """Waited for, an execution conflicts with nothing; its command buffer may be submitted again with no barrier."""
    a, b = rig.buffer(), rig.buffer()
    with rig.submission() as commands:
        commands.copy(a, b)
        commands.barrier("", "ALL_TRANSFER", "ALL_TRANSFER")
        commands.fill(a, 0x79797979)
    rig.host_wait("the wait", "queue")
    rig.submit(commands)


@scenario(without={"between": [RAW]}, rule="submission-order-is-no-dependency")
def scenario_one_time_submits_conflict_like_others(rig: Rig) -> None:
    """A command buffer that is submitted once is ordered no better."""
    a, b = rig.buffer(), rig.buffer()
    with rig.commands(flags=VkCommandBufferUsage.ONE_TIME_SUBMIT) as first:
        first.fill(a, 0x1A1A1A1A)
    with rig.commands(flags=VkCommandBufferUsage.ONE_TIME_SUBMIT) as second:
        second.barrier("between", WRITE, READ)
        second.copy(a, b)
    rig.submit(first)
    rig.submit(second)


@scenario(without={"inside": [RAW]}, rule="hazards-are-found-while-recording")
def scenario_hazard_that_is_only_recorded(rig: Rig) -> None:
    """A hazard inside a command buffer is one while it is recorded: that it is never submitted excuses nothing."""
    a, b = rig.buffer(), rig.buffer()
    with rig.commands() as commands:
        commands.fill(a, 0x2B2B2B2B)
        commands.barrier("inside", WRITE, READ)
        commands.copy(a, b)


@scenario(
    without={"inside": [RAW], "between": [write_after_read("vkCmdFillBuffer", "vkCmdCopyBuffer")]},
    rule="hazards-are-found-while-recording",
)
def scenario_hazards_while_recording_and_at_submit(rig: Rig) -> None:
    """A dependency inside a command buffer is judged while recording, one between executions at submit."""
    a, b, c = rig.buffer(), rig.buffer(), rig.buffer()
    with rig.commands() as first:
        first.fill(c, 0x3C3C3C3C)
        first.barrier("inside", WRITE, READ)
        first.copy(c, b, (0, 0, 128))
        first.copy(a, b, (128, 128, 128))
    with rig.commands() as second:
        second.barrier("between", "COPY", "CLEAR")
        second.fill(a, 0x4D4D4D4D)
    rig.submit(first, second)
