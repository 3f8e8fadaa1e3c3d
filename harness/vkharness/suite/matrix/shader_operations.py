"""Loads and stores of shaders in dispatches, and the indirect dispatch.

Stages and accesses: specification, "Access Types". A storage buffer, a storage image and a storage texel buffer are
accessed with SHADER_STORAGE_*, a sampled image and a uniform texel buffer with SHADER_SAMPLED_READ.
"""

from __future__ import annotations

from typing import Any

from vkharness.rig.command_buffers import Commands
from vkharness.spec.enums import VkImageLayout
from vkharness.suite.matrix.operation_table import Record, operation
from vkharness.suite.matrix.resource_kinds import BUFFER, BYTES, FLOATS, IMAGE, ResourcePart

STORE, LOAD = "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "COMPUTE_SHADER/SHADER_STORAGE_READ"
SAMPLE, UNIFORM = "COMPUTE_SHADER/SHADER_SAMPLED_READ", "COMPUTE_SHADER/UNIFORM_READ"
ARGUMENTS = "DRAW_INDIRECT/INDIRECT_COMMAND_READ"


@operation(BUFFER, scope=STORE, other="SHADER_STORAGE_READ", command="vkCmdDispatch")
def store_to_buffer(setup: Commands, part: ResourcePart, value: int) -> Record:
    """A dispatch that stores to a storage buffer."""
    return _dispatch(setup, "fill_words_writeonly", value=value, b0=part_bytes(part))


@operation(BUFFER, scope=STORE, other="SHADER_STORAGE_READ", command="vkCmdDispatchIndirect", variant=True)
def store_to_buffer_indirectly(setup: Commands, part: ResourcePart, value: int) -> Record:
    """An indirect dispatch that stores to a storage buffer."""
    return _dispatch(setup, "fill_words_writeonly", value=value, indirect=True, b0=part_bytes(part))


@operation(BUFFER, scope=STORE, other="SHADER_STORAGE_READ", command="vkCmdDispatch")
def store_to_texel_buffer(setup: Commands, part: ResourcePart, value: int) -> Record:
    """A dispatch that stores to a storage texel buffer."""
    return _dispatch(setup, "texel_store_buffer", value=value, b0=_texels(part))


@operation(BUFFER, scope=LOAD, other="UNIFORM_READ", command="vkCmdDispatch")
def load_from_buffer(setup: Commands, part: ResourcePart, __: int) -> Record:
    """A dispatch that loads from a storage buffer."""
    return _dispatch(setup, "copy_words", b0=part_bytes(part), b1=setup.rig.buffer(BYTES))


@operation(BUFFER, scope=LOAD, other="UNIFORM_READ", command="vkCmdDispatchIndirect", variant=True)
def load_from_buffer_indirectly(setup: Commands, part: ResourcePart, __: int) -> Record:
    """An indirect dispatch that loads from a storage buffer."""
    target = setup.rig.buffer(BYTES)
    return _dispatch(setup, "copy_words", indirect=True, b0=part_bytes(part), b1=target)


@operation(BUFFER, scope=UNIFORM, other="SHADER_STORAGE_READ", command="vkCmdDispatch")
def load_from_uniform_buffer(setup: Commands, part: ResourcePart, __: int) -> Record:
    """A dispatch that loads from a uniform buffer."""
    return _dispatch(setup, "sum_uniform", b0=part_bytes(part), b1=setup.rig.buffer(BYTES))


@operation(BUFFER, scope=LOAD, other="UNIFORM_READ", command="vkCmdDispatch")
def load_from_storage_texel_buffer(setup: Commands, part: ResourcePart, __: int) -> Record:
    """A dispatch that loads from a storage texel buffer."""
    return _dispatch(setup, "texel_load_buffer", b0=_texels(part), b1=setup.rig.buffer(BYTES))


@operation(BUFFER, scope=SAMPLE, other="SHADER_STORAGE_READ", command="vkCmdDispatch")
def fetch_from_uniform_texel_buffer(setup: Commands, part: ResourcePart, __: int) -> Record:
    """A dispatch that fetches from a uniform texel buffer."""
    return _dispatch(setup, "texel_fetch_buffer", b0=_texels(part), b1=setup.rig.buffer(BYTES))


@operation(BUFFER, scope=ARGUMENTS, command="vkCmdDispatchIndirect")
def dispatch_indirect(setup: Commands, part: ResourcePart, __: int) -> Record:
    """vkCmdDispatchIndirect, the part holding its parameters."""
    rig = setup.rig
    pipeline = rig.compute("fill_words")
    held = rig.descriptors(pipeline, b0=rig.buffer(BYTES))

    def record(commands: Commands) -> None:
        commands.bind(pipeline, held)
        commands.push_constants(pipeline, 1)
        commands.dispatch_indirect(part.buffer, part.offset)

    return record


@operation(IMAGE, scope=STORE, other="SHADER_STORAGE_READ", command="vkCmdDispatch")
def store_to_image(setup: Commands, part: ResourcePart, value: int) -> Record:
    """A dispatch that stores to a storage image."""
    return _dispatch(setup, "image_store_2d", value=value, b0=general(part))


@operation(IMAGE, scope=STORE, other="SHADER_STORAGE_READ", command="vkCmdDispatchIndirect", variant=True)
def store_to_image_indirectly(setup: Commands, part: ResourcePart, value: int) -> Record:
    """An indirect dispatch that stores to a storage image."""
    return _dispatch(setup, "image_store_2d", value=value, indirect=True, b0=general(part))


@operation(IMAGE, scope=LOAD, other="SHADER_SAMPLED_READ", command="vkCmdDispatch")
def load_from_image(setup: Commands, part: ResourcePart, __: int) -> Record:
    """A dispatch that loads from a storage image."""
    return _dispatch(setup, "image_load_2d", b0=general(part), b1=setup.rig.buffer(1024))


@operation(IMAGE, FLOATS, scope=SAMPLE, other="SHADER_STORAGE_READ", command="vkCmdDispatch")
def sample_in_compute_shader(setup: Commands, part: ResourcePart, __: int) -> Record:
    """A dispatch that samples an image."""
    return _dispatch(setup, "sample_2d", b0=sampled(part), b1=setup.rig.buffer(1024))


def part_bytes(part: ResourcePart) -> tuple[object, int, int]:
    """The part as a descriptor of a buffer takes it."""
    return part.buffer, part.offset, BYTES


def general(part: ResourcePart) -> tuple[Any, None, int]:
    """The part as a descriptor of a storage image takes it."""
    return part.view(), None, VkImageLayout.GENERAL


def sampled(part: ResourcePart) -> tuple[Any, Any, int]:
    """The part as a descriptor of a combined image sampler takes it."""
    return part.view(), part.rig.sampler(), VkImageLayout.GENERAL


def _texels(part: ResourcePart) -> Any:
    return part.rig.buffer_view(part.buffer, "VK_FORMAT_R32_UINT", part.offset, BYTES)


def _dispatch(setup: Commands, shader: str, *, value: int | None = None, indirect: bool = False, **held: Any) -> Record:
    rig = setup.rig
    pipeline = rig.compute(shader)
    descriptors = rig.descriptors(pipeline, **held)
    groups = rig.buffer(12, data=b"\4\0\0\0\1\0\0\0\1\0\0\0") if indirect else None

    def record(commands: Commands) -> None:
        commands.bind(pipeline, descriptors)
        if value is not None:
            commands.push_constants(pipeline, value)
        if groups is None:
            commands.dispatch(4)
        else:
            commands.dispatch_indirect(groups)

    return record
