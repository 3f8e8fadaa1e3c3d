"""Fills, copies, clears, blits and resolves. Stages: specification, `VkPipelineStageFlagBits2`."""

from __future__ import annotations

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigImage
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.spec.enums import VkImageAspect, VkPrimitiveTopology
from vkharness.spec.names import value_name
from vkharness.suite.matrix.operation_table import Record, operation
from vkharness.suite.matrix.resource_kinds import (
    ASPECT,
    BUFFER,
    BYTES,
    DEPTH,
    EXTENT,
    FLOATS,
    HOST_IMAGE,
    IMAGE,
    IMAGE_BYTES,
    LINE,
    SAMPLES,
    STENCIL,
    SWAPCHAIN,
    VOLUME,
    WORDS,
    ResourcePart,
)

COLORS = (IMAGE, FLOATS, WORDS, LINE, VOLUME, HOST_IMAGE, SWAPCHAIN)
"""Colour images of one sample."""
BLITTED = (IMAGE, FLOATS, LINE, VOLUME, HOST_IMAGE, SWAPCHAIN)
COPY_WRITE, COPY_READ = "COPY/TRANSFER_WRITE", "COPY/TRANSFER_READ"
CLEAR_WRITE = "CLEAR/TRANSFER_WRITE"


@operation(BUFFER, scope=CLEAR_WRITE, command="vkCmdFillBuffer")
def fill(_: Commands, part: ResourcePart, value: int) -> Record:
    """vkCmdFillBuffer."""
    return lambda commands: commands.fill(part.buffer, value, part.offset, BYTES)


@operation(BUFFER, scope=CLEAR_WRITE, command="vkCmdUpdateBuffer")
def update(_: Commands, part: ResourcePart, value: int) -> Record:
    """vkCmdUpdateBuffer."""
    return lambda commands: commands.update(part.buffer, value.to_bytes(4, "little") * (BYTES // 4), part.offset)


@operation(BUFFER, scope=COPY_WRITE, other="TRANSFER_READ", command="vkCmdCopyBuffer")
def copy_to_buffer(setup: Commands, part: ResourcePart, value: int) -> Record:
    """vkCmdCopyBuffer, the part as its target."""
    source = setup.rig.buffer(BYTES)
    setup.fill(source, value)
    return lambda commands: commands.copy(source, part.buffer, (0, part.offset, BYTES))


@operation(BUFFER, scope=COPY_READ, other="TRANSFER_WRITE", command="vkCmdCopyBuffer")
def copy_from_buffer(setup: Commands, part: ResourcePart, __: int) -> Record:
    """vkCmdCopyBuffer, the part as its source."""
    target = setup.rig.buffer(BYTES)
    return lambda commands: commands.copy(part.buffer, target, (part.offset, 0, BYTES))


@operation(BUFFER, scope=COPY_WRITE, other="TRANSFER_READ", command="vkCmdCopyImageToBuffer")
def download_to_buffer(setup: Commands, part: ResourcePart, value: int) -> Record:
    """vkCmdCopyImageToBuffer, the part as its target."""
    image, region = ready_image(setup, value), {"extent": (8, 8, 1), "buffer_offset": part.offset}
    return lambda commands: commands.image_to_buffer(image, part.buffer, region)


@operation(BUFFER, scope=COPY_READ, other="TRANSFER_WRITE", command="vkCmdCopyBufferToImage")
def upload_from_buffer(setup: Commands, part: ResourcePart, __: int) -> Record:
    """vkCmdCopyBufferToImage, the part as its source."""
    image, region = ready_image(setup), {"extent": (8, 8, 1), "buffer_offset": part.offset}
    return lambda commands: commands.buffer_to_image(part.buffer, image, region)


@operation(BUFFER, scope=COPY_WRITE, other="TRANSFER_READ", command="vkCmdCopyQueryPoolResults")
def copy_query_results(setup: Commands, part: ResourcePart, value: int) -> Record:
    """vkCmdCopyQueryPoolResults of occlusion queries in which as many samples passed: the parameters of any draw."""
    rig, count = setup.rig, 5
    pool, target = rig.queries(count=count), rig.target()
    setup.transition(target)
    pipeline = rig.graphics(vertex="point_by_index", topology=VkPrimitiveTopology.POINT_LIST)
    setup.begin_rendering(RenderingAttachment(rig.view(target)))
    setup.bind(pipeline)
    setup.query(pool, *range(count), inside=lambda: setup.draw(value))
    setup.end_rendering()
    return lambda commands: commands.copy_results(pool, part.buffer, count=count, offset=part.offset)


@operation(*COLORS, SAMPLES, scope=CLEAR_WRITE, command="vkCmdClearColorImage")
def clear_color(_: Commands, part: ResourcePart, value: int) -> Record:
    """vkCmdClearColorImage."""
    return lambda commands: commands.clear_color(part.image, value, **part.subresources)


@operation(DEPTH, STENCIL, ASPECT, scope=CLEAR_WRITE, command="vkCmdClearDepthStencilImage")
def clear_depth_or_stencil(_: Commands, part: ResourcePart, value: int) -> Record:
    """vkCmdClearDepthStencilImage."""
    return lambda commands: commands.clear_depth_stencil(part.image, value / 8, value, **part.subresources)


@operation(*COLORS, DEPTH, STENCIL, ASPECT, scope=COPY_WRITE, other="TRANSFER_READ", command="vkCmdCopyBufferToImage")
def upload_to_image(setup: Commands, part: ResourcePart, value: int) -> Record:
    """vkCmdCopyBufferToImage, the part as its target."""
    source = setup.rig.buffer(IMAGE_BYTES)
    setup.fill(source, value)
    return lambda commands: commands.buffer_to_image(source, part.image, part.region)


@operation(*COLORS, DEPTH, STENCIL, ASPECT, scope=COPY_READ, other="TRANSFER_WRITE", command="vkCmdCopyImageToBuffer")
def download_from_image(setup: Commands, part: ResourcePart, __: int) -> Record:
    """vkCmdCopyImageToBuffer, the part as its source."""
    target = setup.rig.buffer(IMAGE_BYTES)
    return lambda commands: commands.image_to_buffer(part.image, target, part.region)


@operation(*COLORS, SAMPLES, DEPTH, STENCIL, ASPECT, scope=COPY_WRITE, other="TRANSFER_READ", command="vkCmdCopyImage")
def copy_to_image(setup: Commands, part: ResourcePart, value: int) -> Record:
    """vkCmdCopyImage, the part as its target."""
    source, read = image_like(setup, part, value), {"extent": part.extent, "aspect": part.aspect}
    return lambda commands: commands.copy_image(source, part.image, read, part.region)


@operation(*COLORS, SAMPLES, DEPTH, STENCIL, ASPECT, scope=COPY_READ, other="TRANSFER_WRITE", command="vkCmdCopyImage")
def copy_from_image(setup: Commands, part: ResourcePart, __: int) -> Record:
    """vkCmdCopyImage, the part as its source."""
    target = image_like(setup, part)
    return lambda commands: commands.copy_image(part.image, target, part.region, {"aspect": part.aspect})


@operation(*BLITTED, scope="BLIT/TRANSFER_WRITE", other="TRANSFER_READ", command="vkCmdBlitImage")
def blit_to_image(setup: Commands, part: ResourcePart, value: int) -> Record:
    """vkCmdBlitImage, the part as its target."""
    source = image_like(setup, part, value)
    return lambda commands: commands.blit(source, part.image, {}, part.region)


@operation(*BLITTED, scope="BLIT/TRANSFER_READ", other="TRANSFER_WRITE", command="vkCmdBlitImage")
def blit_from_image(setup: Commands, part: ResourcePart, __: int) -> Record:
    """vkCmdBlitImage, the part as its source."""
    target = image_like(setup, part)
    return lambda commands: commands.blit(part.image, target, part.region, {})


@operation(IMAGE, FLOATS, scope="RESOLVE/TRANSFER_WRITE", other="TRANSFER_READ", command="vkCmdResolveImage")
def resolve_to_image(setup: Commands, part: ResourcePart, value: int) -> Record:
    """vkCmdResolveImage of a multisample image, the part as its target."""
    source, read = image_like(setup, part, value, samples=4), {"extent": part.extent}
    return lambda commands: commands.resolve(source, part.image, read, part.region)


@operation(SAMPLES, scope="RESOLVE/TRANSFER_READ", other="TRANSFER_WRITE", command="vkCmdResolveImage")
def resolve_from_image(setup: Commands, part: ResourcePart, __: int) -> Record:
    """vkCmdResolveImage, the part as its source."""
    target = image_like(setup, part, samples=1)
    return lambda commands: commands.resolve(part.image, target, part.region, {})


def ready_image(setup: Commands, value: int = 1) -> RigImage:
    """An image of the operation's own, in the general layout, each texel the word `value`."""
    image = setup.rig.image(extent=EXTENT)
    setup.transition(image)
    setup.clear_color(image, value)
    return image


def image_like(setup: Commands, part: ResourcePart, value: int = 1, samples: int = 0) -> RigImage:
    """The same in the format and the dimensions of the part, with its samples unless `samples` says otherwise."""
    form = value_name("VkFormat", part.image.format)
    image = setup.rig.image(form, part.image.extent, samples=samples or part.samples, usage=0x3)
    setup.transition(image)
    if image.aspects & VkImageAspect.COLOR:
        setup.clear_color(image, value)
    else:
        setup.clear_depth_stencil(image, value / 8, value)
    return image
