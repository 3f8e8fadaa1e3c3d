"""Graphs of tensors as ggml's Vulkan backend runs them: chains of dispatches, and one global barrier where two meet."""

from vkharness.rig.command_buffers import Commands
from vkharness.rig.queues import SemaphoreUse
from vkharness.suite import Rig, race, read_after_write, scenario, write_after_read, write_after_write

DISPATCH, COPY = "vkCmdDispatch", "vkCmdCopyBuffer"
BOTH = "COMPUTE_SHADER|ALL_TRANSFER/SHADER_READ|SHADER_WRITE|TRANSFER_READ|TRANSFER_WRITE"
"""Both sides of each barrier: the stages of the queue, and all that dispatches and copies do."""
WORDS = bytes(range(256))


def _sync(commands: Commands, name: str) -> None:
    """The backend's one barrier."""
    commands.barrier(name, BOTH, BOTH, sync2=False)


@scenario(
    without={
        "product before sum": [read_after_write(DISPATCH, DISPATCH)],
        "sum before scale": [write_after_write(DISPATCH, DISPATCH)],
        "scale before the copy": [read_after_write(COPY, DISPATCH)],
        "to the host": [read_after_write("host read", COPY)],
        "the fence": [read_after_write("host read", COPY)],
    },
    rule="read-after-write,a-host-read-needs-a-dependency-and-a-wait",
)
def scenario_graph_of_dispatches(rig: Rig) -> None:
    """Nodes that depend on nothing new run side by side; a node whose input was just written has a barrier before it.

    The host reads the result in memory that the backend copied it to, when the fence of the graph is signaled."""
    add, scale = rig.compute("add_words"), rig.compute("scale_words")
    weights, x = rig.buffer(data=WORDS), rig.buffer(data=WORDS[::-1])
    left, right, summed, pinned = (rig.buffer() for _ in range(4))
    done = rig.fence()
    with rig.commands() as graph:
        graph.run(add, b0=weights, b1=x, b2=left)
        graph.run(add, b0=weights, b1=weights, b2=right)
        _sync(graph, "product before sum")
        graph.run(add, b0=left, b1=right, b2=summed)
        _sync(graph, "sum before scale")
        graph.run(scale, 3, b0=summed)
        _sync(graph, "scale before the copy")
        graph.copy(summed, pinned)
        graph.barrier("to the host", "ALL_TRANSFER/TRANSFER_WRITE", "HOST/HOST_READ", sync2=False)
    rig.submit(graph, fence=done)
    rig.host_wait("the fence", "all", done)
    rig.host_read(pinned)


@scenario(
    without={
        "parts before the reduction": [read_after_write(DISPATCH, DISPATCH)],
        "reduction before the next parts": [write_after_read(DISPATCH, DISPATCH)],
    },
    rule="write-after-read,a-barrier-covers-what-came-before-it",
)
def scenario_product_in_parts(rig: Rig) -> None:
    """A product that is split leaves its parts in scratch memory, and a reduction adds them. The next product uses the
    same scratch memory: only its first use after the reduction needs a barrier."""
    add, fill = rig.compute("add_words"), rig.compute("fill_words")
    scratch, first, second = rig.buffer(512), rig.buffer(), rig.buffer()
    halves = (scratch, 0, 256), (scratch, 256, 256)
    with rig.submission() as graph:
        for value, half in enumerate(halves):
            graph.run(fill, 16 * value, b0=half)
        _sync(graph, "parts before the reduction")
        graph.run(add, b0=halves[0], b1=halves[1], b2=first)
        _sync(graph, "reduction before the next parts")
        for value, half in enumerate(halves):
            graph.run(fill, 256 + value, b0=half)
        _sync(graph, "")
        graph.run(add, b0=halves[0], b1=halves[1], b2=second)


@scenario(
    without={
        "uploaded before the graph": [race("READ_RACING_WRITE", DISPATCH, COPY)],
        "the graph before the host": [read_after_write("host read", COPY)],
    },
    weakened={"uploaded before the graph / at the copies": [read_after_write(DISPATCH, COPY)]},
    queues=["TRANSFER"],
    rule="a-semaphore-is-a-memory-dependency,queues-without-a-semaphore-race",
)
def scenario_upload_on_a_transfer_queue(rig: Rig) -> None:
    """A tensor is set on the transfer queue, and the graph waits for a value of its timeline. Buffers are shared by the
    families, so that nobody has to give them away."""
    staging, tensor, result, pinned = rig.buffer(data=WORDS), rig.buffer(), rig.buffer(), rig.buffer()
    add, sent, done = rig.compute("add_words"), rig.timeline(), rig.timeline()
    compute, transfer = rig.queues
    with rig.commands(queue=transfer) as upload:
        upload.copy(staging, tensor)
    rig.submit(upload, signals=[SemaphoreUse(sent, value=1)])
    with rig.commands(queue=compute) as graph:
        graph.run(add, b0=tensor, b1=tensor, b2=result)
        _sync(graph, "")
        graph.copy(result, pinned)
        graph.barrier("", "ALL_TRANSFER/TRANSFER_WRITE", "HOST/HOST_READ", sync2=False)
    waits = rig.operation(
        "uploaded before the graph", sent, "COMPUTE_SHADER", 1, weaker={"at the copies": {"stages": "ALL_TRANSFER"}}
    )
    rig.submit(graph, waits=waits, signals=[SemaphoreUse(done, value=1)])
    rig.host_wait_timeline("the graph before the host", (done, 1))
    rig.host_read(pinned)


@scenario(
    without={"copied before the graph": [read_after_write(DISPATCH, COPY)]},
    weakened={"copied before the graph / of transfers alone": [read_after_write(DISPATCH, COPY)]},
    rule="a-set-and-its-wait-are-one-dependency,events-cross-command-buffers",
)
def scenario_event_of_a_scheduler(rig: Rig) -> None:
    """A scheduler records an event behind the copy of an input, and makes the graph of a later submit wait for it. Work
    between the two goes on."""
    staging, x, other, result = rig.buffer(data=WORDS), rig.buffer(), rig.buffer(data=WORDS), rig.buffer()
    add, scale = rig.compute("add_words"), rig.compute("scale_words")
    event = rig.event(
        "copied before the graph",
        BOTH,
        BOTH,
        sync2=False,
        weaker={"of transfers alone": {"dst": "ALL_TRANSFER/TRANSFER_READ"}},
    )
    with rig.submission() as copies:
        copies.copy(staging, x)
        copies.set_event(event)
    with rig.submission() as between:
        between.run(scale, 5, b0=other)
    with rig.submission() as graph:
        graph.wait_events(event)
        graph.run(add, b0=x, b1=x, b2=result)
