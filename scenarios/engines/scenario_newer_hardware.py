"""Frames with what newer hardware brings: rays, resources in tiles, predicates of the device, captured vertices."""

from vkharness.rig.queues import SemaphoreUse
from vkharness.rig.ray_structures import RAYS, TRIANGLE, bottom_level, build, instance, top_level
from vkharness.rig.sparse import SparseBlock
from vkharness.suite import Rig, race, read_after_write, scenario, write_after_read, write_after_write

BUILD, DISPATCH, COPY, UPLOAD = (
    "vkCmdBuildAccelerationStructuresKHR",
    "vkCmdDispatch",
    "vkCmdCopyBuffer",
    "vkCmdCopyBufferToImage",
)
BIND, TILES = "vkQueueBindSparse", "sparse-binding-race"
NOT_DECIDED = [read_after_write("vkCmdBeginConditionalRenderingEXT", DISPATCH), read_after_write(DISPATCH, DISPATCH)]
BUILDS = "ACCELERATION_STRUCTURE_BUILD"
BUILT = f"{BUILDS}/ACCELERATION_STRUCTURE_WRITE"
STORED, LOADED = "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "COMPUTE_SHADER/SHADER_STORAGE_READ"


@scenario(
    without={
        "written before built": [read_after_write(BUILD, DISPATCH)],
        "bottoms before the top": [read_after_write(BUILD, BUILD)],
        "the top before rays": [read_after_write(DISPATCH, BUILD)],
        "this frame before the next": [write_after_read(BUILD, DISPATCH), write_after_write(BUILD, BUILD)],
    },
    weakened={
        "written before built / of the structures": [read_after_write(BUILD, DISPATCH)],
        "the top before rays / for builds": [read_after_write(DISPATCH, BUILD)],
    },
    needs=RAYS,
    rule="a-build-accesses-its-inputs-its-structures-and-its-scratch-memory,a-top-level-build-reads-the-structures-of-its-instances,a-traversal-reads-what-its-structure-leads-to",
)
def scenario_structures_of_a_frame(rig: Rig) -> None:
    """A dispatch moves vertices, the bottom level structures of a frame are built in one call, then the top level one;
    rays go through it, and the next frame builds it again, with the same scratch memory."""
    moved, still = rig.buffer(64), rig.buffer(64, data=TRIANGLE)
    source, out = rig.buffer(64, data=TRIANGLE), rig.buffer()
    move, trace = rig.compute("copy_words"), rig.compute("trace_ray")
    bottoms = [bottom_level(rig, each) for each in (moved, still)]
    instances = rig.buffer(128, data=b"".join(instance(each, 2.0 * at) for at, each in enumerate(bottoms)))
    top = top_level(rig, instances, 2)
    with rig.submission() as frame:
        frame.run(move, b0=source, b1=moved)
        weaker = {"of the structures": {"dst": f"{BUILDS}/ACCELERATION_STRUCTURE_READ"}}
        frame.barrier("written before built", STORED, f"{BUILDS}/SHADER_READ", weaker=weaker)
        build(frame, *bottoms)
        frame.barrier("bottoms before the top", BUILT, f"{BUILDS}/ACCELERATION_STRUCTURE_READ")
        build(frame, top)
        rays = "COMPUTE_SHADER/ACCELERATION_STRUCTURE_READ"
        weaker = {"for builds": {"dst": f"{BUILDS}/ACCELERATION_STRUCTURE_READ"}}
        frame.barrier("the top before rays", BUILT, rays, weaker=weaker)
        frame.run(trace, b0=top.handle, b1=out)
    with rig.submission() as following:
        both = f"{BUILDS}/ACCELERATION_STRUCTURE_READ|ACCELERATION_STRUCTURE_WRITE"
        following.barrier("this frame before the next", f"COMPUTE_SHADER|{BUILT}", both)
        build(following, top)


@scenario(
    without={
        "the tile before its upload": [race(TILES, UPLOAD, BIND), race(TILES, BIND, BIND)],
        "the upload before the tile goes": [race(TILES, BIND, UPLOAD), race(TILES, BIND, BIND)],
    },
    queues=["SPARSE_BINDING"],
    rule="a-binding-is-in-order-with-accesses-through-it,a-sparse-bind-is-ordered-by-semaphores-and-fences",
)
def scenario_tiles_that_are_mapped(rig: Rig) -> None:
    """Tiles of a texture are mapped when they are needed and unmapped when they are not: a timeline orders the binds
    with the submits that use them, as one queue."""
    image, data, steps = rig.sparse_image(), rig.buffer(1024, data=bytes(range(256)) * 4), rig.timeline()
    memory = rig.sparse_memory(image, 2)
    rig.bind_sparse(*(SparseBlock(image, at, memory, at) for at in range(2)), signals=[SemaphoreUse(steps, value=1)])
    with rig.commands() as frame:
        frame.transition(image, dst="COPY/TRANSFER_WRITE")
        frame.buffer_to_image(data, image, {"extent": (16, 16, 1)})
    waits = rig.operation("the tile before its upload", steps, "ALL_COMMANDS", 1)
    rig.submit(frame, waits=waits, signals=[SemaphoreUse(steps, value=2)], sync2=True)
    rig.bind_sparse(SparseBlock(image, 0), waits=rig.operation("the upload before the tile goes", steps, value=2))


@scenario(
    without={"predicate before its use": NOT_DECIDED},
    weakened={"predicate before its use / for arguments": NOT_DECIDED},
    needs=["VK_EXT_conditional_rendering"],
    rule="a-condition-is-read-in-its-own-stage",
)
def scenario_predicate_of_the_device(rig: Rig) -> None:
    """A dispatch decides whether the next one runs: its result is the condition."""
    condition, out, fill = rig.buffer(64), rig.buffer(), rig.compute("fill_words")
    decide = rig.compute("indirect_args")
    with rig.submission() as frame:
        frame.run(decide, 1, 0, 0, b0=condition)
        read = "CONDITIONAL_RENDERING/CONDITIONAL_RENDERING_READ"
        weaker = {"for arguments": {"dst": "DRAW_INDIRECT/INDIRECT_COMMAND_READ"}}
        frame.barrier("predicate before its use", STORED, read, weaker=weaker)
        frame.bind(fill, rig.descriptors(fill, b0=out))
        frame.push_constants(fill, 0x21)
        frame.begin_condition(condition)
        frame.dispatch()
        frame.end_condition()
