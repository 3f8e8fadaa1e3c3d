"""Secondary command buffers outside render pass instances: their commands stand where they are executed."""

from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

FILL, COPY, DISPATCH = "vkCmdFillBuffer", "vkCmdCopyBuffer", "vkCmdDispatch"
FILLED, READ, WRITTEN = "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ", "COPY/TRANSFER_WRITE"
STORED, LOADED = "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "COMPUTE_SHADER/SHADER_STORAGE_READ"
LATE = [read_after_write(COPY, FILL)]


@scenario(
    without={"fill before copy": LATE},
    weakened={"fill before copy / execution only": LATE},
    rule="secondaries-stand-where-they-are-executed,barriers-cross-command-buffer-levels",
)
def scenario_primary_reads_what_a_secondary_wrote(rig: Rig) -> None:
    """A barrier of the primary orders its own commands after those of a secondary."""
    a, b = rig.buffer(), rig.buffer()
    with rig.secondary() as fills:
        fills.fill(a, 0x1A1A1A1A)
    with rig.submission() as commands:
        commands.execute(fills)
        commands.barrier("fill before copy", FILLED, READ, weaker={"execution only": {"src": "CLEAR", "dst": "COPY"}})
        commands.copy(a, b)


@scenario(
    without={"fill before copy": LATE},
    weakened={"fill before copy / to compute": LATE},
    rule="secondaries-stand-where-they-are-executed,barriers-cross-command-buffer-levels",
)
def scenario_secondary_reads_what_the_primary_wrote(rig: Rig) -> None:
    """A barrier inside the secondary orders its commands after those of the primary."""
    a, b = rig.buffer(), rig.buffer()
    with rig.secondary() as copies:
        copies.barrier("fill before copy", FILLED, READ, weaker={"to compute": {"dst": LOADED}})
        copies.copy(a, b)
    with rig.submission() as commands:
        commands.fill(a, 0x2A2A2A2A)
        commands.execute(copies)


@scenario(without={"fill before copy": LATE}, rule="barriers-cross-command-buffer-levels")
def scenario_barrier_at_the_end_of_a_secondary(rig: Rig) -> None:
    """A barrier in a secondary covers what the primary records after it."""
    a, b = rig.buffer(), rig.buffer()
    with rig.secondary() as fills:
        fills.fill(a, 0x3A3A3A3A)
        fills.barrier("fill before copy", FILLED, READ)
    with rig.submission() as commands:
        commands.execute(fills)
        commands.copy(a, b)


@scenario(without={"fill before copy": LATE}, rule="barriers-cross-command-buffer-levels")
def scenario_secondary_that_is_only_a_barrier(rig: Rig) -> None:
    """A secondary with nothing but a barrier orders the primary's commands around it."""
    a, b = rig.buffer(), rig.buffer()
    with rig.secondary() as barriers:
        barriers.barrier("fill before copy", FILLED, READ)
    with rig.submission() as commands:
        commands.fill(a, 0x4A4A4A4A)
        commands.execute(barriers)
        commands.copy(a, b)


@scenario(
    without={"copy before fill": [write_after_read(FILL, COPY)]},
    weakened={"copy before fill / after clears": [write_after_read(FILL, COPY)]},
    rule="submission-order-is-no-dependency,secondaries-stand-where-they-are-executed",
)
def scenario_secondaries_of_one_execute_conflict(rig: Rig) -> None:
    """Secondaries executed by one command are in submission order, which orders nothing by itself."""
    a, b = rig.buffer(), rig.buffer()
    with rig.secondary() as copies:
        copies.copy(a, b)
    with rig.secondary() as fills:
        fills.barrier("copy before fill", "COPY", "CLEAR", weaker={"after clears": {"src": "CLEAR"}})
        fills.fill(a, 0x5A5A5A5A)
    with rig.submission() as commands:
        commands.execute(copies, fills)


@scenario(
    weakened={"order / copy first": [write_after_read(FILL, COPY)]}, rule="secondaries-stand-where-they-are-executed"
)
def scenario_order_of_secondaries(rig: Rig) -> None:
    """Secondaries run in the order in which they are listed."""
    a, b = rig.buffer(), rig.buffer()
    with rig.secondary() as copies:
        copies.copy(a, b)
    with rig.secondary() as fills:
        fills.fill(a, 0x6A6A6A6A)
        fills.barrier("", FILLED, READ)
    last = rig.choose("order", copies, {"copy first": fills})
    first = fills if last is copies else copies
    with rig.submission() as commands:
        commands.execute(first, last)


@scenario(
    without={"dispatch before copy": [read_after_write(COPY, DISPATCH)]},
    weakened={"dispatch before copy / execution only": [read_after_write(COPY, DISPATCH)]},
    rule="secondaries-stand-where-they-are-executed,each-shader-stage-accesses-for-itself",
)
def scenario_dispatch_in_a_secondary(rig: Rig) -> None:
    """Stores of the shaders of a secondary are writes like any other."""
    a, b = rig.buffer(), rig.buffer()
    pipeline = rig.compute("fill_words")
    stored = rig.descriptors(pipeline, b0=a)
    with rig.secondary() as dispatches:
        dispatches.bind(pipeline, stored)
        dispatches.push_constants(pipeline, 7)
        dispatches.dispatch()
    with rig.submission() as commands:
        commands.execute(dispatches)
        commands.barrier(
            "dispatch before copy", STORED, READ, weaker={"execution only": {"src": "COMPUTE_SHADER", "dst": "COPY"}}
        )
        commands.copy(a, b)


@scenario(
    weakened={"bound by the secondary / the filled buffer": [write_after_write(DISPATCH, FILL)]},
    rule="secondaries-inherit-no-bound-state",
)
def scenario_bound_state_is_not_inherited(rig: Rig) -> None:
    """A secondary binds its own descriptors; what the primary had bound has nothing to do with it."""
    a, b, c = rig.buffer(), rig.buffer(), rig.buffer()
    pipeline = rig.compute("fill_words")
    bound = rig.choose("bound by the secondary", b, {"the filled buffer": a})
    of_primary, of_secondary = rig.descriptors(pipeline, b0=c), rig.descriptors(pipeline, b0=bound)
    with rig.secondary() as dispatches:
        dispatches.bind(pipeline, of_secondary)
        dispatches.push_constants(pipeline, 7)
        dispatches.dispatch()
    with rig.submission() as commands:
        commands.bind(pipeline, of_primary)
        commands.push_constants(pipeline, 7)
        commands.fill(a, 0x7A7A7A7A)
        commands.execute(dispatches)
        commands.bind(pipeline, of_primary)
        commands.push_constants(pipeline, 7)
        commands.dispatch()
