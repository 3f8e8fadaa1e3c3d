"""Sparse images, bound block by block."""

from vkharness.rig.queues import SemaphoreUse
from vkharness.rig.sparse import SparseBlock
from vkharness.suite import Rig, race, scenario, write_after_write

BIND, TO_BUFFER, TO_IMAGE = "vkQueueBindSparse", "vkCmdCopyImageToBuffer", "vkCmdCopyBufferToImage"
QUEUE = ["SPARSE_BINDING"]


@scenario(
    without={"the wait of the bind": [race("sparse-binding-race", BIND, TO_BUFFER)]},
    weakened={"the block / that nobody reads": []},
    queues=QUEUE,
    rule="a-binding-is-in-order-with-accesses-through-it",
)
def scenario_block_is_unbound_after_its_copy(rig: Rig) -> None:
    """A block of an image is unbound after the copy that reads it. The copy needs no order with other blocks."""
    image, b = rig.sparse_image(), rig.buffer(4 * 16 * 16)
    bound, copied = rig.fence(), rig.semaphore()
    memory = rig.sparse_memory(image, 2)
    blocks = SparseBlock(image, 0, memory), SparseBlock(image, 1, memory, 1)
    rig.bind_sparse(*blocks, fence=bound)
    rig.wait(bound)
    with rig.commands() as commands:
        commands.transition(image)
        commands.image_to_buffer(image, b, {"extent": (16, 16, 1)})
    rig.submit(commands, signals=[SemaphoreUse(copied)])
    block = rig.choose("the block", 0, {"that nobody reads": 1})
    waits = rig.operation("the wait of the bind", copied) if block == 0 else []
    rig.bind_sparse(SparseBlock(image, block), waits=waits)


@scenario(
    without={"first before second": [write_after_write(TO_IMAGE, TO_IMAGE)]},
    queues=QUEUE,
    rule="a-sparse-range-is-the-memory-bound-to-it",
)
def scenario_two_blocks_of_one_memory(rig: Rig) -> None:
    """Two blocks of an image on one memory overlap, whichever texels of them are written."""
    image, a, s = rig.sparse_image(), rig.buffer(2048, data=bytes(range(256)) * 8), rig.semaphore()
    memory = rig.sparse_memory(image)
    rig.bind_sparse(SparseBlock(image, 0, memory), SparseBlock(image, 1, memory), signals=[SemaphoreUse(s)])
    with rig.commands() as commands:
        commands.transition(image)
        commands.buffer_to_image(a, image, {"extent": (16, 16, 1)})
        commands.barrier("first before second", "COPY/TRANSFER_WRITE", "COPY/TRANSFER_WRITE")
        commands.buffer_to_image(a, image, {"offset": (128, 0, 0), "extent": (16, 16, 1), "buffer_offset": 64})
    rig.submit(commands, waits=[SemaphoreUse(s)])
