"""Dispatches of one queue, and what a pipeline barrier or an event orders of them ("In-queue execution barriers").

The dispatches before a dependency load from a buffer and those after it store to the buffer: execution is enough.
"""

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer, RigPipeline
from vkharness.suite import Rig, read_after_write, scenario, write_after_read

DISPATCH, COPY = "vkCmdDispatch", "vkCmdCopyBuffer"
COMPUTE = "COMPUTE_SHADER"
WORDS = bytes(range(256)) * 3
TOO_EARLY = [write_after_read(DISPATCH, DISPATCH)]


def loader(rig: Rig) -> RigPipeline:
    """A pipeline that copies words from binding 0 to binding 1."""
    return rig.compute("copy_words", {0: "STORAGE_BUFFER", 1: "STORAGE_BUFFER"})


def storer(rig: Rig) -> RigPipeline:
    """A pipeline that stores words to binding 0."""
    return rig.compute("fill_words", {0: "STORAGE_BUFFER"}, push_bytes=4)


def load(commands: Commands, pipeline: RigPipeline, *, words: RigBuffer, to: RigBuffer) -> None:
    """A dispatch that copies words from one buffer to another one."""
    commands.bind(pipeline, commands.rig.descriptors(pipeline, b0=words, b1=to))
    commands.dispatch()


def store(commands: Commands, pipeline: RigPipeline, value: int, to: RigBuffer | tuple[RigBuffer, int, int]) -> None:
    """A dispatch that stores words to a buffer or to a range of one."""
    commands.bind(pipeline, commands.rig.descriptors(pipeline, b0=to))
    commands.push_constants(pipeline, value)
    commands.dispatch()


@scenario(
    without={"the barrier": TOO_EARLY},
    weakened={
        "the barrier / from transfers": TOO_EARLY,
        "the barrier / to transfers": TOO_EARLY,
        "the barrier / from the top": TOO_EARLY,
        "the barrier / to the bottom": TOO_EARLY,
    },
    rule="a-barrier-covers-what-came-before-it,write-after-read",
)
def scenario_three_dispatches_before_three(rig: Rig) -> None:
    """A barrier from COMPUTE to COMPUTE keeps each of three dispatches before each of the three after it; the three on
    one side of it are in no order."""
    words, results = rig.buffer(768, data=WORDS), [rig.buffer() for _ in range(3)]
    loads, stores = loader(rig), storer(rig)
    with rig.submission() as commands:
        for result in results:
            load(commands, loads, words=words, to=result)
        commands.barrier(
            "the barrier",
            COMPUTE,
            COMPUTE,
            sync2=False,
            weaker={
                "from transfers": {"src": "ALL_TRANSFER"},
                "to transfers": {"dst": "ALL_TRANSFER"},
                "from the top": {"src": "TOP_OF_PIPE"},
                "to the bottom": {"dst": "BOTTOM_OF_PIPE"},
            },
        )
        for number in range(3):
            store(commands, stores, 0x1000 * number, (words, 256 * number, 256))


@scenario(
    without={"for compute": TOO_EARLY, "for the copy": [write_after_read(DISPATCH, COPY)]},
    weakened={"for compute / from nothing": TOO_EARLY},
    rule="barriers-reach-over-submits,submission-order-is-no-dependency",
)
def scenario_four_commands_in_four_submits(rig: Rig) -> None:
    """A first scope of COMPUTE_SHADER is the dispatches of all earlier submits, and not the copy among them."""
    words, copied = rig.buffer(data=WORDS[:256]), rig.buffer(data=WORDS[:256])
    results = [rig.buffer() for _ in range(3)]
    loads, stores = loader(rig), storer(rig)
    with rig.submission() as commands:
        load(commands, loads, words=words, to=results[0])
    with rig.submission() as commands:
        commands.copy(copied, results[1])
    with rig.submission() as commands:
        load(commands, loads, words=words, to=results[2])
    with rig.submission() as commands:
        commands.barrier("for compute", COMPUTE, COMPUTE, weaker={"from nothing": {"src": "NONE"}})
        store(commands, stores, 0x1000, words)
        commands.barrier("for the copy", "COPY", COMPUTE)
        store(commands, stores, 0x2000, copied)


@scenario(
    without={"the event": [read_after_write(DISPATCH, DISPATCH)], "for the one between": TOO_EARLY},
    weakened={
        "the event / execution only": [read_after_write(DISPATCH, DISPATCH)],
        "the event / from transfers": [read_after_write(DISPATCH, DISPATCH)],
    },
    rule="a-set-and-its-wait-are-one-dependency,a-set-fixes-the-first-scope",
)
def scenario_dispatch_between_a_set_and_its_wait(rig: Rig) -> None:
    """An event orders the dispatches before its set and those after its wait. The dispatch between them is in neither
    scope: a barrier keeps it before a later one."""
    sums = [rig.buffer() for _ in range(2)]
    other, results = rig.buffer(data=WORDS[:256]), [rig.buffer() for _ in range(2)]
    loads, stores = loader(rig), storer(rig)
    event = rig.event(
        "the event",
        f"{COMPUTE}/SHADER_WRITE",
        f"{COMPUTE}/SHADER_READ",
        sync2=False,
        weaker={
            "execution only": {"src": COMPUTE, "dst": COMPUTE},
            "from transfers": {"src": "ALL_TRANSFER/TRANSFER_WRITE"},
        },
    )
    with rig.submission() as commands:
        store(commands, stores, 0x1000, sums[0])
        store(commands, stores, 0x2000, sums[1])
        commands.set_event(event)
        load(commands, loads, words=other, to=results[0])
        commands.wait_events(event)
        load(commands, loads, words=sums[0], to=results[1])
        commands.barrier("for the one between", COMPUTE, COMPUTE)
        store(commands, stores, 0x3000, other)


@scenario(
    without={"compute to transfer": TOO_EARLY, "transfer to compute": TOO_EARLY},
    weakened={
        "compute to transfer / to the vertex shader": TOO_EARLY,
        "transfer to compute / from the vertex shader": TOO_EARLY,
        "transfer to compute / from the top": TOO_EARLY,
        "transfer to compute / from the bottom": [],
    },
    rule="a-chain-needs-stages-that-meet,ends-of-the-pipe-order-execution",
)
def scenario_chain_through_a_stage_without_work(rig: Rig) -> None:
    """COMPUTE to TRANSFER and TRANSFER to COMPUTE is COMPUTE to COMPUTE, though nothing is transferred."""
    words, results = rig.buffer(512, data=WORDS[:512]), [rig.buffer() for _ in range(2)]
    loads, stores = loader(rig), storer(rig)
    with rig.submission() as commands:
        for result in results:
            load(commands, loads, words=words, to=result)
        _links(commands)
        for number in range(2):
            store(commands, stores, 0x1000 * number, (words, 256 * number, 256))


@scenario(
    without={"compute to transfer": TOO_EARLY, "transfer to compute": TOO_EARLY}, rule="a-chain-needs-stages-that-meet"
)
def scenario_chain_through_a_transfer(rig: Rig) -> None:
    """A transfer between the two links changes nothing: it is after the dispatches before, and before those after."""
    words, results = rig.buffer(512, data=WORDS[:512]), [rig.buffer() for _ in range(2)]
    dummy, loads, stores = rig.buffer(), loader(rig), storer(rig)
    with rig.submission() as commands:
        for result in results:
            load(commands, loads, words=words, to=result)
        _links(commands, dummy)
        for number in range(2):
            store(commands, stores, 0x1000 * number, (words, 256 * number, 256))


def _links(commands: Commands, dummy: RigBuffer | None = None) -> None:
    """The two barriers of a chain, with a fill of a buffer that nothing else uses between them where one is given."""
    commands.barrier(
        "compute to transfer",
        COMPUTE,
        "ALL_TRANSFER",
        sync2=False,
        weaker={"to the vertex shader": {"dst": "VERTEX_SHADER"}},
    )
    if dummy is not None:
        commands.fill(dummy, 0)
    commands.barrier(
        "transfer to compute",
        "ALL_TRANSFER",
        COMPUTE,
        sync2=False,
        weaker={
            "from the vertex shader": {"src": "VERTEX_SHADER"},
            "from the top": {"src": "TOP_OF_PIPE"},
            "from the bottom": {"src": "BOTTOM_OF_PIPE"},
        },
    )


@scenario(
    without={
        "made available": [read_after_write(DISPATCH, DISPATCH)],
        "made visible": [read_after_write(DISPATCH, DISPATCH)],
    },
    weakened={
        "made available / no first access": [read_after_write(DISPATCH, DISPATCH)],
        "made available / to no stage": [read_after_write(DISPATCH, DISPATCH)],
        "made available / to the top": [],
        "made visible / no second access": [read_after_write(DISPATCH, DISPATCH)],
        "made visible / from no stage": [read_after_write(DISPATCH, DISPATCH)],
        "made visible / from the bottom": [],
        "made visible / with a read": [],
    },
    rule="availability-and-visibility-may-be-apart,a-chain-needs-stages-that-meet,ends-of-the-pipe-order-execution",
)
def scenario_memory_barrier_in_two_halves(rig: Rig) -> None:
    """One barrier makes what a dispatch stored available, a second one visible to another dispatch. They meet at the
    transfer stage; where one of them names no stage there, they do not meet."""
    words, result = rig.buffer(), rig.buffer()
    loads, stores = loader(rig), storer(rig)
    with rig.submission() as commands:
        store(commands, stores, 0x1000, words)
        commands.barrier(
            "made available",
            f"{COMPUTE}/SHADER_WRITE",
            "ALL_TRANSFER",
            weaker={
                "no first access": {"src": COMPUTE},
                "to no stage": {"dst": "NONE"},
                "to the top": {"dst": "TOP_OF_PIPE"},
            },
        )
        commands.barrier(
            "made visible",
            "ALL_TRANSFER",
            f"{COMPUTE}/SHADER_READ",
            weaker={
                "no second access": {"dst": COMPUTE},
                "from no stage": {"src": "NONE"},
                "from the bottom": {"src": "BOTTOM_OF_PIPE"},
                "with a read": {"src": "ALL_TRANSFER/TRANSFER_READ"},
            },
        )
        load(commands, loads, words=words, to=result)
