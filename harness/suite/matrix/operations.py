"""The operations of the matrix: each reads or writes one part of a resource, at one stage, with one access.

An operation is a function that readies what it needs beside the part (recorded before the pair and waited for, so that
two operations meet in the part alone) and answers with what records it. A write writes `value`, or what follows from
it: small words, since they may be parameters of an indirect command next. Adding one is adding one decorated function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.rig.command_buffers import Commands
from harness.rig.core import RigImage
from harness.rig.rendering_attachments import RenderingAttachment
from harness.spec.enums import VkImageLayout, VkPrimitiveTopology
from harness.suite.matrix.resource_kinds import BUFFER, BYTES, DEPTH, EXTENT, IMAGE, ResourcePart

Record = Callable[[Commands], None]
Prepare = Callable[[Commands, ResourcePart, int], Record]

COLOR_WRITE, COLOR_READ = (f"COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_{access}" for access in ("WRITE", "READ"))
DEPTH_WRITE, DEPTH_READ = (
    f"EARLY_FRAGMENT_TESTS|LATE_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_{access}" for access in ("WRITE", "READ")
)


@dataclass(frozen=True, slots=True)
class MatrixOperation:
    """One operation. `scope` is the stage and access with which it meets the part, `other_access` another one that is
    legal at that stage and does not cover it (empty: there is none), `command` the vkCmd* that makes the access, `last`
    the one that makes it last."""

    name: str
    kinds: tuple[str, ...]
    scope: str
    command: str
    last: str
    prepare: Prepare
    other_access: str
    attachment: bool
    """Accesses of attachments are in rasterization order among themselves."""
    observable: bool
    """Whether the bytes that it reads reach memory, so that a wrong read can be shown."""

    @property
    def writes(self) -> bool:
        """Whether its access is a write."""
        return self.scope.endswith("WRITE")

    @property
    def stages(self) -> str:
        """The stages of its scope."""
        return self.scope.partition("/")[0]


OPERATIONS: dict[str, MatrixOperation] = {}


def operation(
    *kinds: str,
    scope: str,
    command: str,
    last: str = "",
    other: str = "",
    attachment: bool = False,
    observable: bool = True,
) -> Callable[[Prepare], Prepare]:
    """Registers an operation under its function's name, underscores as spaces."""

    def register(function: Prepare) -> Prepare:
        name = function.__name__.replace("_", " ")
        OPERATIONS[name] = MatrixOperation(
            name, kinds, scope, command, last or command, function, other, attachment, observable
        )
        return function

    return register


# -- transfer ----------------------------------------------------------------------------------------------------------


@operation(BUFFER, scope="CLEAR/TRANSFER_WRITE", command="vkCmdFillBuffer")
def fill(_: Commands, part: ResourcePart, value: int) -> Record:
    """vkCmdFillBuffer."""
    return lambda commands: commands.fill(part.buffer, value, part.offset, BYTES)


@operation(BUFFER, scope="CLEAR/TRANSFER_WRITE", command="vkCmdUpdateBuffer")
def update(_: Commands, part: ResourcePart, value: int) -> Record:
    """vkCmdUpdateBuffer."""
    return lambda commands: commands.update(part.buffer, value.to_bytes(4, "little") * (BYTES // 4), part.offset)


@operation(BUFFER, scope="COPY/TRANSFER_WRITE", other="TRANSFER_READ", command="vkCmdCopyBuffer")
def copy_to_buffer(setup: Commands, part: ResourcePart, value: int) -> Record:
    """vkCmdCopyBuffer, the part as its target."""
    source = setup.rig.buffer(BYTES)
    setup.fill(source, value)
    return lambda commands: commands.copy(source, part.buffer, (0, part.offset, BYTES))


@operation(BUFFER, scope="COPY/TRANSFER_READ", other="TRANSFER_WRITE", command="vkCmdCopyBuffer")
def copy_from_buffer(setup: Commands, part: ResourcePart, __: int) -> Record:
    """vkCmdCopyBuffer, the part as its source."""
    target = setup.rig.buffer(BYTES)
    return lambda commands: commands.copy(part.buffer, target, (part.offset, 0, BYTES))


@operation(BUFFER, scope="COPY/TRANSFER_WRITE", other="TRANSFER_READ", command="vkCmdCopyImageToBuffer")
def download_to_buffer(setup: Commands, part: ResourcePart, value: int) -> Record:
    """vkCmdCopyImageToBuffer, the part as its target."""
    image, region = _ready_image(setup, value), {"extent": (8, 8, 1), "buffer_offset": part.offset}
    return lambda commands: commands.image_to_buffer(image, part.buffer, region)


@operation(BUFFER, scope="COPY/TRANSFER_READ", other="TRANSFER_WRITE", command="vkCmdCopyBufferToImage")
def upload_from_buffer(setup: Commands, part: ResourcePart, __: int) -> Record:
    """vkCmdCopyBufferToImage, the part as its source."""
    image, region = _ready_image(setup), {"extent": (8, 8, 1), "buffer_offset": part.offset}
    return lambda commands: commands.buffer_to_image(part.buffer, image, region)


@operation(IMAGE, scope="CLEAR/TRANSFER_WRITE", command="vkCmdClearColorImage")
def clear_color(_: Commands, part: ResourcePart, value: int) -> Record:
    """vkCmdClearColorImage."""
    return lambda commands: commands.clear_color(part.image, value, **part.subresources)


@operation(DEPTH, scope="CLEAR/TRANSFER_WRITE", command="vkCmdClearDepthStencilImage")
def clear_depth(_: Commands, part: ResourcePart, value: int) -> Record:
    """vkCmdClearDepthStencilImage."""
    return lambda commands: commands.clear_depth_stencil(part.image, value / 8)


@operation(IMAGE, DEPTH, scope="COPY/TRANSFER_WRITE", other="TRANSFER_READ", command="vkCmdCopyBufferToImage")
def upload_to_image(setup: Commands, part: ResourcePart, value: int) -> Record:
    """vkCmdCopyBufferToImage, the part as its target."""
    source = setup.rig.buffer(1024)
    setup.fill(source, value)
    return lambda commands: commands.buffer_to_image(source, part.image, part.region)


@operation(IMAGE, DEPTH, scope="COPY/TRANSFER_READ", other="TRANSFER_WRITE", command="vkCmdCopyImageToBuffer")
def download_from_image(setup: Commands, part: ResourcePart, __: int) -> Record:
    """vkCmdCopyImageToBuffer, the part as its source."""
    target = setup.rig.buffer(1024)
    return lambda commands: commands.image_to_buffer(part.image, target, part.region)


@operation(IMAGE, scope="COPY/TRANSFER_WRITE", other="TRANSFER_READ", command="vkCmdCopyImage")
def copy_to_image(setup: Commands, part: ResourcePart, value: int) -> Record:
    """vkCmdCopyImage, the part as its target."""
    source, read = _ready_image(setup, value), {"extent": (*part.size, 1)}
    return lambda commands: commands.copy_image(source, part.image, read, part.region)


@operation(IMAGE, scope="COPY/TRANSFER_READ", other="TRANSFER_WRITE", command="vkCmdCopyImage")
def copy_from_image(setup: Commands, part: ResourcePart, __: int) -> Record:
    """vkCmdCopyImage, the part as its source."""
    target = _ready_image(setup)
    return lambda commands: commands.copy_image(part.image, target, part.region, {})


@operation(IMAGE, scope="BLIT/TRANSFER_WRITE", other="TRANSFER_READ", command="vkCmdBlitImage")
def blit_to_image(setup: Commands, part: ResourcePart, value: int) -> Record:
    """vkCmdBlitImage, the part as its target."""
    source = _ready_image(setup, value)
    return lambda commands: commands.blit(source, part.image, {}, part.region)


@operation(IMAGE, scope="BLIT/TRANSFER_READ", other="TRANSFER_WRITE", command="vkCmdBlitImage")
def blit_from_image(setup: Commands, part: ResourcePart, __: int) -> Record:
    """vkCmdBlitImage, the part as its source."""
    target = _ready_image(setup)
    return lambda commands: commands.blit(part.image, target, part.region, {})


@operation(IMAGE, scope="RESOLVE/TRANSFER_WRITE", other="TRANSFER_READ", command="vkCmdResolveImage")
def resolve_to_image(setup: Commands, part: ResourcePart, value: int) -> Record:
    """vkCmdResolveImage of a multisample image, the part as its target."""
    source, read = _ready_image(setup, value, samples=4), {"extent": (*part.size, 1)}
    return lambda commands: commands.resolve(source, part.image, read, part.region)


# -- compute -----------------------------------------------------------------------------------------------------------


@operation(BUFFER, scope="COMPUTE_SHADER/SHADER_STORAGE_WRITE", other="SHADER_STORAGE_READ", command="vkCmdDispatch")
def store_to_buffer(setup: Commands, part: ResourcePart, value: int) -> Record:
    """A dispatch that stores to a storage buffer."""
    return _dispatch(setup, "fill_words_writeonly", {0: "STORAGE_BUFFER"}, value=value, b0=_bytes(part))


@operation(BUFFER, scope="COMPUTE_SHADER/SHADER_STORAGE_READ", other="UNIFORM_READ", command="vkCmdDispatch")
def load_from_buffer(setup: Commands, part: ResourcePart, __: int) -> Record:
    """A dispatch that loads from a storage buffer."""
    target = setup.rig.buffer(BYTES)
    return _dispatch(setup, "copy_words", {0: "STORAGE_BUFFER", 1: "STORAGE_BUFFER"}, b0=_bytes(part), b1=target)


@operation(BUFFER, scope="COMPUTE_SHADER/UNIFORM_READ", other="SHADER_STORAGE_READ", command="vkCmdDispatch")
def load_from_uniform_buffer(setup: Commands, part: ResourcePart, __: int) -> Record:
    """A dispatch that loads from a uniform buffer."""
    target = setup.rig.buffer(BYTES)
    return _dispatch(setup, "sum_uniform", {0: "UNIFORM_BUFFER", 1: "STORAGE_BUFFER"}, b0=_bytes(part), b1=target)


@operation(BUFFER, scope="DRAW_INDIRECT/INDIRECT_COMMAND_READ", command="vkCmdDispatchIndirect")
def dispatch_indirect(setup: Commands, part: ResourcePart, __: int) -> Record:
    """vkCmdDispatchIndirect, the part holding its parameters."""
    rig = setup.rig
    pipeline = rig.compute("fill_words", {0: "STORAGE_BUFFER"}, push_bytes=4)
    held = rig.descriptors(pipeline, b0=rig.buffer(BYTES))

    def record(commands: Commands) -> None:
        commands.bind(pipeline, held)
        commands.push_constants(pipeline, 1)
        commands.dispatch_indirect(part.buffer, part.offset)

    return record


@operation(IMAGE, scope="COMPUTE_SHADER/SHADER_STORAGE_WRITE", other="SHADER_STORAGE_READ", command="vkCmdDispatch")
def store_to_image(setup: Commands, part: ResourcePart, value: int) -> Record:
    """A dispatch that stores to a storage image."""
    return _dispatch(
        setup, "image_store_2d", {0: "STORAGE_IMAGE"}, value=value, b0=(part.view(), None, VkImageLayout.GENERAL)
    )


@operation(IMAGE, scope="COMPUTE_SHADER/SHADER_STORAGE_READ", other="SHADER_SAMPLED_READ", command="vkCmdDispatch")
def load_from_image(setup: Commands, part: ResourcePart, __: int) -> Record:
    """A dispatch that loads from a storage image."""
    held: dict[str, Any] = {"b0": (part.view(), None, VkImageLayout.GENERAL), "b1": setup.rig.buffer(BYTES)}
    return _dispatch(setup, "image_load_2d", {0: "STORAGE_IMAGE", 1: "STORAGE_BUFFER"}, **held)


@operation(IMAGE, scope="COMPUTE_SHADER/SHADER_SAMPLED_READ", other="SHADER_STORAGE_READ", command="vkCmdDispatch")
def sample_in_compute_shader(setup: Commands, part: ResourcePart, __: int) -> Record:
    """A dispatch that samples an image."""
    held: dict[str, Any] = {
        "b0": (part.view(), setup.rig.sampler(), VkImageLayout.GENERAL),
        "b1": setup.rig.buffer(BYTES),
    }
    return _dispatch(setup, "sample_2d", {0: "COMBINED_IMAGE_SAMPLER", 1: "STORAGE_BUFFER"}, **held)


# -- graphics ----------------------------------------------------------------------------------------------------------


@operation(BUFFER, scope="VERTEX_ATTRIBUTE_INPUT/VERTEX_ATTRIBUTE_READ", command="vkCmdDraw")
def read_vertices(setup: Commands, part: ResourcePart, __: int) -> Record:
    """vkCmdDraw, the part holding all its vertices."""
    pipeline = setup.rig.graphics(
        vertex="point_by_word",
        vertex_buffers=[(4, 0)],
        attributes=[(0, 0, "VK_FORMAT_R32_UINT", 0)],
        topology=VkPrimitiveTopology.POINT_LIST,
    )

    def draw(commands: Commands) -> None:
        commands.bind(pipeline)
        commands.bind_vertices((part.buffer, part.offset))
        commands.draw(BYTES // 4)

    return _rendered(setup, draw)


@operation(BUFFER, scope="INDEX_INPUT/INDEX_READ", command="vkCmdDrawIndexed")
def read_indices(setup: Commands, part: ResourcePart, __: int) -> Record:
    """vkCmdDrawIndexed, the part holding all its indices."""
    pipeline = setup.rig.graphics(vertex="point_by_index", topology=VkPrimitiveTopology.POINT_LIST)

    def draw(commands: Commands) -> None:
        commands.bind(pipeline)
        commands.bind_indices(part.buffer, part.offset)
        commands.draw_indexed(BYTES // 4)

    return _rendered(setup, draw)


@operation(BUFFER, scope="DRAW_INDIRECT/INDIRECT_COMMAND_READ", command="vkCmdDrawIndirect")
def draw_indirect(setup: Commands, part: ResourcePart, __: int) -> Record:
    """vkCmdDrawIndirect, the part holding its parameters."""
    pipeline = setup.rig.graphics()

    def draw(commands: Commands) -> None:
        commands.bind(pipeline)
        commands.draw_indirect(part.buffer, part.offset)

    return _rendered(setup, draw)


@operation(IMAGE, scope="FRAGMENT_SHADER/SHADER_SAMPLED_READ", other="SHADER_STORAGE_READ", command="vkCmdDraw")
def sample_in_fragment_shader(setup: Commands, part: ResourcePart, __: int) -> Record:
    """A draw whose fragment shader samples an image."""
    rig = setup.rig
    pipeline = rig.graphics("sample_color", bindings={0: "COMBINED_IMAGE_SAMPLER"})
    held = rig.descriptors(pipeline, b0=(part.view(), rig.sampler(), VkImageLayout.GENERAL))

    def draw(commands: Commands) -> None:
        commands.bind(pipeline, held)
        commands.draw()

    return _rendered(setup, draw)


@operation(
    IMAGE,
    scope=COLOR_WRITE,
    other="COLOR_ATTACHMENT_READ",
    command="vkCmdBeginRendering",
    last="vkCmdEndRendering",
    attachment=True,
)
def clear_color_attachment(_: Commands, part: ResourcePart, value: int) -> Record:
    """Dynamic rendering that clears a colour attachment and stores it."""
    return _attachment(part, "CLEAR", "STORE", value)


@operation(
    IMAGE,
    scope=COLOR_READ,
    other="COLOR_ATTACHMENT_WRITE",
    command="vkCmdBeginRendering",
    attachment=True,
    observable=False,
)
def load_color_attachment(_: Commands, part: ResourcePart, __: int) -> Record:
    """The load operation of a colour attachment, VK_ATTACHMENT_LOAD_OP_LOAD; nothing is stored."""
    return _attachment(part, "LOAD", "NONE", 0)


@operation(
    DEPTH,
    scope=DEPTH_WRITE,
    other="DEPTH_STENCIL_ATTACHMENT_READ",
    command="vkCmdBeginRendering",
    last="vkCmdEndRendering",
    attachment=True,
)
def clear_depth_attachment(_: Commands, part: ResourcePart, value: int) -> Record:
    """Dynamic rendering that clears a depth attachment and stores it."""
    return _attachment(part, "CLEAR", "STORE", value)


@operation(
    DEPTH,
    scope=DEPTH_READ,
    other="DEPTH_STENCIL_ATTACHMENT_WRITE",
    command="vkCmdBeginRendering",
    attachment=True,
    observable=False,
)
def load_depth_attachment(_: Commands, part: ResourcePart, __: int) -> Record:
    """The load operation of a depth attachment, VK_ATTACHMENT_LOAD_OP_LOAD; nothing is stored."""
    return _attachment(part, "LOAD", "NONE", 0)


def _attachment(part: ResourcePart, load: str, store: str, value: int) -> Record:
    color = part.image.aspects == 1
    held = RenderingAttachment(part.view(), load=load, store=store, clear=value if color else (value / 8, 0))

    def record(commands: Commands) -> None:
        area = (0, 0, *part.size)
        if color:
            commands.begin_rendering(held, area=area)
        else:
            commands.begin_rendering(depth=held, area=area)
        commands.end_rendering()

    return record


def _dispatch(
    setup: Commands, shader: str, bindings: dict[int, str], *, value: int | None = None, **held: Any
) -> Record:
    rig = setup.rig
    pipeline = rig.compute(shader, bindings, push_bytes=0 if value is None else 4)
    descriptors = rig.descriptors(pipeline, **held)

    def record(commands: Commands) -> None:
        commands.bind(pipeline, descriptors)
        if value is not None:
            commands.push_constants(pipeline, value)
        commands.dispatch(4)

    return record


def _rendered(setup: Commands, draw: Record) -> Record:
    """`draw` inside dynamic rendering to an attachment of the operation's own."""
    target = setup.rig.target()
    setup.transition(target)
    view = setup.rig.view(target)

    def record(commands: Commands) -> None:
        commands.begin_rendering(RenderingAttachment(view))
        draw(commands)
        commands.end_rendering()

    return record


def _bytes(part: ResourcePart) -> tuple[object, int, int]:
    return part.buffer, part.offset, BYTES


def _ready_image(setup: Commands, value: int = 1, samples: int = 1) -> RigImage:
    """An image of the operation's own, in the general layout, each texel the word `value`."""
    image = setup.rig.image(extent=EXTENT, samples=samples)
    setup.transition(image)
    setup.clear_color(image, value)
    return image
