"""The state of graphics pipelines and command buffers that decides which memory a draw touches.

Offsets, strides and sizes are bytes. Enumerants are kept as numbers. Specification: "Fixed-Function Vertex Processing",
"Fragment Operations", "The Framebuffer".
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from vkharness.spec.enums import (
    VK_WHOLE_SIZE,
    VkBlendFactor,
    VkBlendOp,
    VkCompareOp,
    VkCullMode,
    VkPrimitiveTopology,
    VkStencilOp,
)
from vkharness.trace.resources import Pipeline


@dataclass(frozen=True, slots=True)
class VertexBinding:
    """A vertex buffer binding that attributes use. They read bytes [low, high) of each element.

    `divisor` counts only for instance rate (0: one element for all instances).
    """

    binding: int
    stride: int
    low: int
    high: int
    per_instance: bool = False
    divisor: int = 1


ALL_STENCIL_BITS = 0xFF
"""Every stencil format has 8 bits."""


@dataclass(frozen=True, slots=True)
class StencilFace:
    """A VkStencilOpState without its reference."""

    fail: int = VkStencilOp.KEEP
    passed: int = VkStencilOp.KEEP
    depth_fail: int = VkStencilOp.KEEP
    compare: int = VkCompareOp.ALWAYS
    compare_mask: int = 0
    write_mask: int = 0

    def operations(self, depth: Set[bool]) -> set[int]:
        """The VkStencilOps that some outcome of the tests performs, without KEEP; none where nothing may be written.

        `depth` are the outcomes of the depth test.
        """
        outcomes = {self.fail} if self.compare != VkCompareOp.ALWAYS else set()
        if self.compare != VkCompareOp.NEVER:
            outcomes |= {self.passed if passes else self.depth_fail for passes in depth}
        return outcomes - {VkStencilOp.KEEP} if self.write_mask & ALL_STENCIL_BITS else set()

    def reads(self, depth: Set[bool]) -> bool:
        """Whether the outcome, or the new value, depends on the stored value.

        The new value is `(stored & ~write_mask) | (generated & write_mask)`.
        """
        if self.compare not in (VkCompareOp.NEVER, VkCompareOp.ALWAYS) and self.compare_mask & ALL_STENCIL_BITS:
            return True
        operations = self.operations(depth)
        in_part = self.write_mask & ALL_STENCIL_BITS != ALL_STENCIL_BITS
        return bool(operations) and (in_part or not operations <= {VkStencilOp.ZERO, VkStencilOp.REPLACE})


NO_FACE = StencilFace(compare=VkCompareOp.NEVER)
"""The state of a face of which there are no fragments."""


@dataclass(frozen=True, slots=True)
class DepthStencil:
    """VkPipelineDepthStencilStateCreateInfo."""

    depth_test: bool = False
    depth_write: bool = False
    depth_compare: int = VkCompareOp.NEVER
    depth_bounds: bool = False
    stencil_test: bool = False
    front: StencilFace = StencilFace()
    back: StencilFace = StencilFace()

    @property
    def _reaches_depth(self) -> bool:
        """Whether a fragment may pass the stencil test, which comes before the depth test."""
        return not self.stencil_test or any(face.compare != VkCompareOp.NEVER for face in (self.front, self.back))

    @property
    def _depth_outcomes(self) -> Set[bool]:
        if not self.depth_test or self.depth_compare == VkCompareOp.ALWAYS:
            return {True}
        return {False} if self.depth_compare == VkCompareOp.NEVER else {True, False}

    @property
    def may_pass(self) -> bool:
        """Whether a fragment may pass all tests. A fragment that fails one is discarded."""
        return self._reaches_depth and True in self._depth_outcomes

    @property
    def writes_depth(self) -> bool:
        """Whether fragments may write depth: none does whose comparison never evaluates to true."""
        return self.depth_test and self.depth_write and self.may_pass

    @property
    def reads_depth(self) -> bool:
        """Whether a test depends on the stored depth."""
        compares = self.depth_test and self.depth_compare not in (VkCompareOp.NEVER, VkCompareOp.ALWAYS)
        return self.depth_bounds or (compares and self._reaches_depth)

    @property
    def writes_stencil(self) -> bool:
        """Whether fragments of either face may write stencil."""
        return self.stencil_test and any(face.operations(self._depth_outcomes) for face in (self.front, self.back))

    @property
    def reads_stencil(self) -> bool:
        """Whether the test of either face depends on the stored stencil."""
        return self.stencil_test and any(face.reads(self._depth_outcomes) for face in (self.front, self.back))


Equation = tuple[int, int, int, int, int, int]
"""Source factor, destination factor and operation of colour, then the same of alpha."""
_STORED_FACTORS = (
    VkBlendFactor.DST_COLOR,
    VkBlendFactor.ONE_MINUS_DST_COLOR,
    VkBlendFactor.DST_ALPHA,
    VkBlendFactor.ONE_MINUS_DST_ALPHA,
    VkBlendFactor.SRC_ALPHA_SATURATE,
)
_FACTORED = (VkBlendOp.ADD, VkBlendOp.SUBTRACT, VkBlendOp.REVERSE_SUBTRACT)
"""Operations that use factors. MIN, MAX and the advanced operations use none."""


@dataclass(frozen=True, slots=True)
class ColorBlend:
    """A VkPipelineColorBlendAttachmentState, and whether colour writes are enabled for the attachment."""

    write_mask: int = 0xF
    blend: bool = False
    equation: Equation = (1, 0, 0, 1, 0, 0)
    write_enable: bool = True
    advanced: bool = False

    @property
    def writes(self) -> bool:
        """Whether any component is written."""
        return self.write_mask != 0 and self.write_enable

    @property
    def blend_reads(self) -> bool:
        """Whether blending depends on the stored value. It does not where only the source counts."""
        return self.blend and (self.advanced or _reads(*self.equation[:3]) or _reads(*self.equation[3:]))


def _reads(source: int, target: int, operation: int) -> bool:
    return operation not in _FACTORED or target != VkBlendFactor.ZERO or source in _STORED_FACTORS


LOGIC_OPS_THAT_IGNORE = frozenset((0, 3, 12, 15))
"""VkLogicOp CLEAR, COPY, COPY_INVERTED and SET, for which the stored value does not count."""


@dataclass(frozen=True, slots=True)
class GraphicsState:
    """State of a graphics pipeline. `dynamic` holds the VkDynamicState values whose static members do not count."""

    vertex_input: tuple[VertexBinding, ...] = ()
    restart: bool = False
    """primitiveRestartEnable."""
    discard: bool = False
    cull: int = VkCullMode.NONE
    topology: int = VkPrimitiveTopology.TRIANGLE_LIST
    depth_stencil: DepthStencil = DepthStencil()
    colors: tuple[ColorBlend, ...] = ()
    logic_enabled: bool = False
    logic_op: int = 0
    dynamic: frozenset[int] = frozenset()
    formats: tuple[int, ...] | None = None
    """Colour attachment formats for dynamic rendering; None for a render pass. VK_FORMAT_UNDEFINED is not drawn to."""
    raster_ordered: int = 0
    """The aspects with rasterization order attachment access, of colour, depth and stencil."""
    locations: tuple[int, ...] | None = None
    """The output location of each colour attachment, or VK_ATTACHMENT_UNUSED; None where these are their indices."""


@dataclass(frozen=True, slots=True)
class Targets:
    """The attachments of the render pass instance that a draw accesses.

    Colours are indices of attachments. Depth and stencil are kinds of access (indices into
    `vkharness.spec.scopes.ACCESS_KINDS`). Input attachments are image views.
    """

    written: tuple[int, ...] = ()
    blended: tuple[int, ...] = ()
    depth: tuple[int, ...] = ()
    stencil: tuple[int, ...] = ()
    inputs: tuple[int, ...] = ()
    raster_ordered: int = 0
    """The aspects with rasterization order attachment access."""
    rasterizes: bool = field(default=False, compare=False)
    """Whether fragments may be made."""
    by_attached: tuple[Targets, ...] = ()
    """Where the tests let no fragment pass: what counts instead, by the attachments that there are to test. These are
    none, depth, stencil, or both."""

    def attached(self, depth: bool, stencil: bool) -> Targets:
        """The targets where there is a depth attachment, or a stencil attachment: a test without one is skipped."""
        return self.by_attached[depth + 2 * stencil] if self.by_attached else self


@dataclass(slots=True)
class GraphicsPipeline(Pipeline):
    """A pipeline of the graphics bind point, or a library of parts of one (`parts`: VkGraphicsPipelineLibraryFlags)."""

    state: GraphicsState = GraphicsState()
    parts: int = 0


class BoundBuffer(NamedTuple):
    """A vertex or transform feedback buffer as bound."""

    buffer: int
    offset: int
    size: int = VK_WHOLE_SIZE


@dataclass(frozen=True, slots=True)
class BoundIndices:
    """An index buffer as bound; `index_bytes` is the size of one index, 0 for VK_INDEX_TYPE_NONE_KHR."""

    buffer: int
    offset: int
    size: int
    index_bytes: int


@dataclass(slots=True)
class Feedback:
    """Transform feedback: the bound buffers, and the state of the feedback in progress."""

    buffers: dict[int, BoundBuffer] = field(default_factory=dict)
    active: bool = False
    written: bool = False
    """Whether a draw has written since the begin. Draws append, so that the first stands for all of them."""
    resumed: frozenset[int] = frozenset()
    """Bindings whose writes resume where a counter says."""


@dataclass(slots=True)
class DrawState:
    """State that commands set in a command buffer for draws, except for pipelines and descriptor sets."""

    vertex_buffers: dict[int, BoundBuffer] = field(default_factory=dict)
    indices: BoundIndices | None = None
    dynamic: dict[tuple[int, int], Any] = field(default_factory=dict)
    """Values by VkDynamicState, and by face bit, attachment or binding (0 where there is one value)."""
    feedback: Feedback = field(default_factory=Feedback)
    targets: tuple[GraphicsPipeline, Targets] | None = None
    """The targets of the last draw, kept for the next draw; None after a change of dynamic state."""
    sources: tuple[GraphicsState, int, tuple[Any, ...]] | None = None
    """The vertex buffers of the last draw with its pipeline's state, and how often anything had moved; None after a
    change of the bindings."""
    last_draw: Any = None
    """The last draw with its effects (`draw.LastDraw`); None before the first."""
