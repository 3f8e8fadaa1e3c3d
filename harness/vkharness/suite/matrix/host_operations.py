"""Accesses of the host, and of the presentation engine."""

from __future__ import annotations

from vkharness.rig.command_buffers import Commands
from vkharness.rig.host_copies import copy_to_image, copy_to_memory
from vkharness.suite.matrix.operation_table import ENGINE, HOST, Record, operation
from vkharness.suite.matrix.resource_kinds import BUFFER, BYTES, HOST_IMAGE, SWAPCHAIN, ResourcePart

READ, WRITE = "HOST/HOST_READ", "HOST/HOST_WRITE"


@operation(BUFFER, scope=WRITE, command="host write", place=HOST)
def host_write(_: Commands, part: ResourcePart, value: int) -> Record:
    """The host writes mapped memory."""
    return lambda _: part.rig.host_write(part.buffer, value.to_bytes(4, "little") * (BYTES // 4), part.offset)


@operation(BUFFER, scope=READ, other="HOST_WRITE", command="host read", place=HOST)
def host_read(_: Commands, part: ResourcePart, __: int) -> Record:
    """The host reads mapped memory."""

    def act(_: None) -> None:
        part.rig.host_read(part.buffer, part.offset, BYTES)

    return act


@operation(HOST_IMAGE, scope=WRITE, command="vkCopyMemoryToImageEXT", observable=False, place=HOST)
def host_copy_to_image(_: Commands, part: ResourcePart, value: int) -> Record:
    """vkCopyMemoryToImage. A trace does not hold the memory that it reads, so that nothing of it is replayed."""
    width, height, _depth = part.extent
    data = value.to_bytes(4, "little") * (width * height)
    return lambda _: copy_to_image(part.rig, data, part.image)


@operation(HOST_IMAGE, scope=READ, other="HOST_WRITE", command="vkCopyImageToMemoryEXT", observable=False, place=HOST)
def host_copy_from_image(_: Commands, part: ResourcePart, __: int) -> Record:
    """vkCopyImageToMemory. A replay does not look at the memory that it writes."""

    def act(_: None) -> None:
        copy_to_memory(part.rig, part.image)

    return act


@operation(SWAPCHAIN, scope="NONE", command="vkQueuePresentKHR", place=ENGINE)
def present(_: Commands, part: ResourcePart, __: int) -> Record:
    """vkQueuePresentKHR, after which the presentation engine reads the image."""
    assert part.chain is not None
    chain = part.chain
    return lambda semaphores: part.rig.present(chain, waits=semaphores)
