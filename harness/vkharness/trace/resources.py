"""Vulkan objects as plain data by id, and the address arithmetic of buffers and images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from vkharness.findings import Box
from vkharness.spans import Span, merge
from vkharness.spec.enums import (
    VK_REMAINING_ARRAY_LAYERS,
    VkDescriptorType,
    VkImageAspect,
    VkImageTiling,
    VkImageType,
    VkSharingMode,
    VkStructureType,
)
from vkharness.spec.formats import Format, format_of, is_format
from vkharness.trace.chain import chained
from vkharness.trace.work_budget import spend

PLANES = VkImageAspect.PLANE_0 | VkImageAspect.PLANE_1 | VkImageAspect.PLANE_2
Extent = tuple[int, int, int]
A_BOX = 15
"""Units of work that a box of texels takes."""


@dataclass(slots=True)
class Memory:
    """A VkDeviceMemory; `size` in bytes."""

    id: int
    size: int
    host_visible: bool = True
    coherent: bool = True
    """Whether the memory is HOST_COHERENT or not HOST_VISIBLE. Memory of an unknown type counts as both."""
    non_coherent_atom_size: int = 1
    """nonCoherentAtomSize in bytes for memory that is not coherent."""
    buffer_image_granularity: int = 1
    """bufferImageGranularity in bytes."""


def buffer_usage(info: dict[str, Any]) -> int:
    """The usage of a VkBufferCreateInfo: that of VkBufferUsageFlags2CreateInfo in its chain takes the place of its own,
    whose bits are the lower ones (specification: "VkBufferCreateInfo")."""
    wider = chained(info, VkStructureType.BUFFER_USAGE_FLAGS_2_CREATE_INFO)
    return int((info if wider is None else wider).get("usage", 0))


def effective_image_info(info: dict[str, Any]) -> dict[str, Any]:
    """A VkImageCreateInfo with the flags and the usage that count: those of structs in its chain take the place of its
    own, whose bits are the lower ones (specification: "VkImageCreateInfo")."""
    flags = chained(info, VkStructureType.IMAGE_CREATE_FLAGS_2_CREATE_INFO_KHR)
    usage = chained(info, VkStructureType.IMAGE_USAGE_FLAGS_2_CREATE_INFO_KHR)
    if flags is None and usage is None:
        return info
    return {**info, "flags": (flags or info)["flags"], "usage": (usage or info)["usage"]}


@dataclass(slots=True)
class Buffer:
    """A VkBuffer. Its addresses are in the space of its memory, or in a space of its own before it is bound."""

    id: int
    size: int
    memory: int | None = None
    offset: int = 0
    concurrent: bool = False
    """Whether the sharing mode is VK_SHARING_MODE_CONCURRENT."""
    usage: int = 0
    """VkBufferUsageFlags2."""
    info: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def space(self) -> int:
        """The id that owns the addresses of `span`."""
        return self.id if self.memory is None else self.memory

    def span(self, offset: int, size: int) -> Span:
        """Bytes [offset, offset + size) of the buffer as addresses, clipped to it; WHOLE_SIZE means the rest."""
        limit = self.size
        begin = offset if offset < limit else limit
        end = begin + size if size < limit - begin else limit
        return (self.offset + begin, self.offset + end)


@dataclass(slots=True)
class AspectRewrites:
    """Whether writes to one aspect of depth/stencil attachments may rewrite the other on a device: those of load
    operations, and those of store and resolve operations. None where the trace does not say."""

    by_loads: bool | None = None
    by_stores: bool | None = None
    in_doubt: bool = False
    """Whether such a write was met, and the trace does not say."""


@dataclass
class Image:
    """A VkImage with an idealized address space, in texel blocks, ordered aspect, mip level, layer, z, y, x."""

    id: int
    type: int
    format_value: int
    extent: Extent
    mips: int
    layers: int
    samples: int = 1
    info: dict[str, Any] = field(default_factory=dict, repr=False)
    memory: int | None = None
    offset: int = 0
    bytes: int = 0
    """The size of its memory from VkMemoryRequirements; 0 when the program never asked."""
    plane_bytes: dict[int, int] = field(default_factory=dict, repr=False)
    """The same of each plane of a disjoint image, by its aspect."""
    rewrites: AspectRewrites = field(default_factory=AspectRewrites, repr=False)
    by_slice: bool | None = False
    """Whether the array layers of an image memory barrier are slices of this 3D image; None when that is not known."""

    @classmethod
    def created(cls, id: int, info: dict[str, Any]) -> Image:
        """The image of a VkImageCreateInfo, without memory. Raises `KeyError` where a member is missing."""
        info = effective_image_info(info)
        extent = info["extent"]
        return cls(
            id=id,
            type=info["imageType"],
            format_value=info["format"],
            extent=(extent["width"], extent["height"], extent["depth"]),
            mips=info["mipLevels"],
            layers=info["arrayLayers"],
            samples=info["samples"],
            info=info,
        )

    @cached_property
    def facts(self) -> tuple[Any, ...]:
        """All that decides which addresses a part of it has, and which families may own it."""
        shape = (self.type, self.format_value, self.extent, self.mips, self.layers, self.samples)
        return (self.id, *shape, self.by_slice, self.concurrent)

    @property
    def concurrent(self) -> bool:
        """Whether the sharing mode is VK_SHARING_MODE_CONCURRENT."""
        return self.info.get("sharingMode") == VkSharingMode.CONCURRENT

    @property
    def is_one_linear(self) -> bool:
        """Whether it is one subresource with linear tiling, of which the host may read the texels in memory."""
        return self.info.get("tiling") == VkImageTiling.LINEAR and self.mips == self.layers == 1

    @property
    def whole(self) -> Span:
        """All addresses of the image."""
        if not self._levels:
            return (0, 0)
        _, _, at, blocks = self._levels[-1]
        return (0, at + blocks[0] * blocks[1] * blocks[2] * self.layers)

    @cached_property
    def format(self) -> Format:
        """Facts of the format (UserError when there is no such format)."""
        return format_of(self.format_value)

    @cached_property
    def aspects(self) -> tuple[int, ...]:
        """The single aspect bits that the image has, lowest first."""
        return self.format.aspect_list()

    @cached_property
    def _levels(self) -> list[tuple[int, int, int, Extent]]:
        """(aspect, mip, first address, blocks (w, h, d)) of every level, in address order."""
        levels = []
        at = 0
        for aspect in self.aspects:
            for mip in range(self.mips):
                blocks = self.blocks(aspect, mip)
                levels.append((aspect, mip, at, blocks))
                at += blocks[0] * blocks[1] * blocks[2] * self.layers
        return levels

    @cached_property
    def _level_index(self) -> dict[tuple[int, int], tuple[int, Extent]]:
        return {(aspect, mip): (at, blocks) for aspect, mip, at, blocks in self._levels}

    def level(self, aspect: int, mip: int) -> tuple[int, Extent]:
        """The first address of one mip level of one aspect, and its extent in blocks. Raises KeyError."""
        return self._level_index[aspect, mip]

    def texels(self, aspect: int, mip: int) -> Extent:
        """Extent of one mip level of one aspect, in texels of that aspect's plane."""
        depth = self.extent[2] if self.type == VkImageType.TYPE_3D else 1
        width, height, depth = (max(1, size >> mip) for size in (self.extent[0], self.extent[1], depth))
        return self.format.aspect_extent(aspect, (width, height, depth))

    def block_extent(self, aspect: int) -> Extent:
        """Texels in a block of this aspect."""
        return (1, 1, 1) if aspect & PLANES else self.format.block_extent

    def blocks(self, aspect: int, mip: int) -> Extent:
        """Extent of one mip level in blocks."""
        texels, block = self.texels(aspect, mip), self.block_extent(aspect)
        return (-(-texels[0] // block[0]), -(-texels[1] // block[1]), -(-texels[2] // block[2]))

    def split_aspects(self, mask: int) -> list[int]:
        """The image's aspects that a VkImageAspectFlags names; COLOR names every plane of a multi-planar format."""
        if mask & VkImageAspect.COLOR and self.format.aspects & PLANES:
            mask |= PLANES
        return [aspect for aspect in self.aspects if aspect & mask]

    def level_range(self, base: int, count: int) -> range:
        """Mip levels, clipped to the image."""
        end = self.mips if count == VK_REMAINING_ARRAY_LAYERS else min(self.mips, base + count)
        return range(min(base, end), end)

    def layer_range(self, base: int, count: int) -> range:
        """Array layers, clipped to the image."""
        end = self.layers if count == VK_REMAINING_ARRAY_LAYERS else min(self.layers, base + count)
        return range(min(base, end), end)

    def subresources(self, aspects: int, base_mip: int, mips: int, base_layer: int, layers: int) -> tuple[Span, ...]:
        """Addresses of whole subresources (VkImageSubresourceRange)."""
        chosen = self.layer_range(base_layer, layers)
        spans = []
        for aspect in self.split_aspects(aspects):
            for mip in self.level_range(base_mip, mips):
                at, (width, height, depth) = self._level_index[aspect, mip]
                layer = width * height * depth
                spans.append((at + chosen.start * layer, at + chosen.stop * layer))
        return tuple(merge(spans))

    def barrier_spans(self, aspects: int, base_mip: int, mips: int, base_layer: int, layers: int) -> tuple[Span, ...]:
        """Addresses of the VkImageSubresourceRange of an image memory barrier or layout transition.

        With maintenance9 its array layers are slices of a 3D image (specification: VkImageMemoryBarrier2).
        """
        if not self.by_slice:
            return self.subresources(aspects, base_mip, mips, base_layer, layers)
        spans: list[Span] = []
        for mip in self.level_range(base_mip, mips):
            width, height, depth = self.texels(self.aspects[0], mip)
            count = depth - base_layer if layers == VK_REMAINING_ARRAY_LAYERS else layers
            spans += self.region(aspects, mip, (0,), (0, 0, base_layer), (width, height, max(0, count)))
        return tuple(merge(spans))

    def region(self, aspects: int, mip: int, layers: Sequence[int], offset: Extent, extent: Extent) -> tuple[Span, ...]:
        """Addresses of a box of texels in one mip level; whole blocks, clipped to the level."""
        spans: list[Span] = []
        for aspect in self.split_aspects(aspects):
            if (aspect, mip) not in self._level_index:
                continue
            at, (width, height, depth) = self._level_index[aspect, mip]
            block = self.block_extent(aspect)
            x, y, z = (offset[i] // block[i] for i in range(3))
            right = min(width, -(-(offset[0] + extent[0]) // block[0]))
            bottom = min(height, -(-(offset[1] + extent[1]) // block[1]))
            back = min(depth, -(-(offset[2] + extent[2]) // block[2]))
            spend(len(layers), "layers of an image")
            for layer in layers:
                base = at + layer * width * height * depth
                spans.extend(_box_spans(base, (width, height), (x, y, z), (right, bottom, back)))
        return tuple(merge(spans))

    def boxes(self, span: Span) -> list[Box]:
        """The texel boxes that cover a span of addresses, at least one for each subresource. It is the inverse of
        `region`."""
        found = []
        for aspect, mip, at, (width, height, depth) in self._levels:
            size = width * height * depth
            layers = range(max(0, (span[0] - at) // size), min(self.layers, -(-(span[1] - at) // size)))
            spend(A_BOX * len(layers), "layers of an image")
            for layer in layers:
                base = at + layer * size
                begin, end = max(span[0], base) - base, min(span[1], base + size) - base
                if begin < end:
                    found.append(self._box(aspect, mip, layer, (width, height), begin, end))
        return found

    def _box(self, aspect: int, mip: int, layer: int, blocks: tuple[int, int], begin: int, end: int) -> Box:
        """The smallest box around blocks [begin, end) of one subresource, in texels."""
        width, plane = blocks[0], blocks[0] * blocks[1]
        last = end - 1
        z0, z1 = begin // plane, last // plane
        y0, y1 = (begin % plane // width, last % plane // width) if z0 == z1 else (0, blocks[1] - 1)
        x0, x1 = (begin % width, last % width) if z0 == z1 and y0 == y1 else (0, width - 1)
        block, texels = self.block_extent(aspect), self.texels(aspect, mip)
        low = (x0 * block[0], y0 * block[1], z0 * block[2])
        high = tuple(min(texels[i], (last + 1) * block[i]) for i, last in enumerate((x1, y1, z1)))
        return Box(aspect, mip, layer, low, (high[0] - low[0], high[1] - low[1], high[2] - low[2]))


def _box_spans(base: int, size: tuple[int, int], low: Extent, high: Extent) -> list[Span]:
    """Spans of blocks [low, high) in a (width, height, …) grid that begins at `base`."""
    width, plane = size[0], size[0] * size[1]
    if low[0] == 0 and high[0] == width and low[1] == 0 and high[1] == size[1]:
        return [(base + low[2] * plane, base + high[2] * plane)]
    if low[0] == 0 and high[0] == width:
        spend(high[2] - low[2], "slices of an image")
        return [(base + z * plane + low[1] * width, base + z * plane + high[1] * width) for z in range(low[2], high[2])]
    spend(max(0, high[2] - low[2]) * max(0, high[1] - low[1]), "rows of an image")
    return [
        (base + z * plane + y * width + low[0], base + z * plane + y * width + high[0])
        for z in range(low[2], high[2])
        for y in range(low[1], high[1])
    ]


def describe(
    resource: Image | Buffer | None, spans: Sequence[Span]
) -> tuple[str, tuple[tuple[int, int], ...], tuple[Box, ...]]:
    """The type of a resource and the meaning of its addresses: boxes of an image, or (offset, size) in bytes.

    None stands for a memory object. An image of a format that nobody knows has no boxes.
    """
    if isinstance(resource, Image):
        known = spans if is_format(resource.format_value) else ()
        return "VkImage", (), tuple(box for span in known for box in resource.boxes(span))
    start = resource.offset if resource is not None else 0
    ranges = tuple((begin - start, end - begin) for begin, end in spans)
    return "VkBuffer" if resource is not None else "VkDeviceMemory", ranges, ()


@dataclass(slots=True)
class BufferView:
    """A VkBufferView: bytes [offset, offset + size) of a buffer."""

    id: int
    buffer: int
    offset: int
    size: int


@dataclass(slots=True)
class ImageView:
    """A VkImageView: the addresses of its subresource range, normalized.

    `layers` counts slices of the (first) mip level when `sliced`: a 2D view of a 3D image, or some slices of one.
    `flags` are VkImageViewCreateFlags.
    """

    id: int
    image: int
    spans: tuple[Span, ...]
    aspects: int = 0
    mips: range = range(0)
    layers: range = range(0)
    sliced: bool = False
    flags: int = 0
    least: int = 0
    """The mip level below which no sample reads, though it is one of `mips` (VkImageViewMinLodCreateInfoEXT)."""
    stored: ImageView | None = None
    """The view as a storage image, where that has fewer slices of a 3D image (VkImageViewSlicedCreateInfoEXT)."""
    areas: dict[Any, tuple[Span, ...]] = field(default_factory=dict, repr=False, compare=False)
    """Addresses of areas of it that were asked for before."""


@dataclass(slots=True)
class Binding:
    """One binding of a VkDescriptorSetLayout; `count` is 0 for a reserved binding."""

    binding: int
    type: int
    count: int
    flags: int = 0
    """VkDescriptorBindingFlags."""
    types: tuple[int, ...] = ()
    """The VkDescriptorTypes that its descriptors may have, where it is mutable (VK_DESCRIPTOR_TYPE_MUTABLE_EXT)."""

    @property
    def late(self) -> bool:
        """Whether it may be written after it is bound, until the submit."""
        return bool(self.flags & UPDATE_AFTER_BIND)


UPDATE_AFTER_BIND = 1
"""VK_DESCRIPTOR_BINDING_UPDATE_AFTER_BIND_BIT."""
DYNAMIC_TYPES = (VkDescriptorType.UNIFORM_BUFFER_DYNAMIC, VkDescriptorType.STORAGE_BUFFER_DYNAMIC)


@dataclass(slots=True)
class SetLayout:
    """A VkDescriptorSetLayout, by binding number."""

    id: int
    bindings: dict[int, Binding]
    push: bool = False
    types: frozenset[int] = frozenset()
    """The VkDescriptorTypes of its bindings."""
    has_inputs: bool = False
    """Whether it has input attachments, which mean what the render pass instance makes of them."""
    has_structures: bool = False
    """Whether it has acceleration structures, which mean all memory that they were built from."""
    late: bool = False
    """Whether it has bindings that may be written after they are bound."""
    _dynamic: dict[tuple[int, int], int] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.types = frozenset(one.type for one in self.bindings.values())
        self.has_inputs = VkDescriptorType.INPUT_ATTACHMENT in self.types
        self.has_structures = VkDescriptorType.ACCELERATION_STRUCTURE_KHR in self.types
        self.late = any(one.late for one in self.bindings.values())

    @property
    def dynamic(self) -> dict[tuple[int, int], int]:
        """(binding, array element) of every descriptor with a dynamic offset, in order, with its number."""
        if self._dynamic is None:
            held = sorted((one for one in self.bindings.values() if one.type in DYNAMIC_TYPES), key=_binding_of)
            spend(sum(one.count for one in held), "descriptors")
            places = ((one.binding, element) for one in held for element in range(one.count))
            self._dynamic = {place: number for number, place in enumerate(places)}
        return self._dynamic


def _binding_of(binding: Binding) -> int:
    return binding.binding


class Descriptor(NamedTuple):
    """The object behind one array element of one binding. For buffers `size` and `offset` are bytes. That of a texel
    buffer is a view without them, and a buffer with them."""

    type: int
    resource: int
    offset: int = 0
    size: int = 0


@dataclass(slots=True)
class DescriptorSet:
    """A VkDescriptorSet: descriptors by (binding, array element)."""

    id: int
    layout: SetLayout
    slots: dict[tuple[int, int], Descriptor] = field(default_factory=dict)
    contents: Any = None
    """(`ObjectState.moved`, what it referred to then (`vkharness.commands.drawing.set_contents.SetContents`)); None
    after it was written."""


@dataclass(slots=True)
class DescriptorsInMemory(DescriptorSet):
    """A set of which the descriptors lie in a buffer, from an offset in it on. `slots` has them once memory was asked
    (`is_read`), as it is when a command is executed."""

    buffer: int = 0
    """The id of the buffer; 0 where nobody knows which one it is."""
    offset: int = 0
    is_read: bool = False


class HeapIndex(NamedTuple):
    """How a mapping finds the place of a descriptor in a heap, in bytes."""

    offset: int = 0
    stride: int = 0
    """From one binding or array element to the next."""
    push: int | None = None
    """Where an index lies in push data; None for no such index."""
    index_stride: int = 0
    shift: int = 0
    mask: int = 0xFFFFFFFF
    """The bits of the word of push data that are the index."""


PUSH_DATA, PUSH_ADDRESS = 5, 6
"""VK_DESCRIPTOR_MAPPING_SOURCE_PUSH_DATA_EXT and VK_DESCRIPTOR_MAPPING_SOURCE_PUSH_ADDRESS_EXT. In a `HeapMapping` of
these, `resource` has the offset in push data."""


class HeapMapping(NamedTuple):
    """A VkDescriptorSetAndBindingMappingEXT whose source is followed."""

    set: int
    first: int
    bindings: int
    """How many, from the first."""
    mask: int
    """VkSpirvResourceTypeFlagsEXT."""
    source: int
    """VkDescriptorMappingSourceEXT."""
    resource: HeapIndex
    sampler: HeapIndex = HeapIndex()
    """That of the sampler of a combined image sampler."""
    embedded: bool = False
    """Whether samplers lie in no heap."""
    packed: HeapIndex | None = None
    """That of the image of a combined image sampler, where it is another one than `resource`."""


class HeapPlace(NamedTuple):
    """Where the descriptors of a binding begin in a heap, the bytes from one to the next, and what they may be."""

    first: int
    stride: int
    binding: Binding


@dataclass(slots=True)
class MappedDescriptors(DescriptorsInMemory):
    """A set of mapped bindings: `buffer` and `offset` are those of the resource heap."""

    sampler_buffer: int = 0
    sampler_offset: int = 0
    places: dict[int, HeapPlace] = field(default_factory=dict)
    """By binding, for what lies in the resource heap."""
    samplers: dict[int, HeapPlace] = field(default_factory=dict)
    fixed: dict[int, Descriptor] = field(default_factory=dict)
    """By binding, what lies in no heap."""
    reserved: tuple[tuple[str, int, int, int], ...] = ()
    """The ranges that the implementation has for itself: the name of the heap, the buffer, the offset there, bytes."""


@dataclass(slots=True)
class PipelineLayout:
    """A VkPipelineLayout: its set layouts in order (None where the handle is null)."""

    id: int
    sets: tuple[SetLayout | None, ...]


@dataclass(slots=True)
class ShaderModule:
    """A VkShaderModule and its SPIR-V."""

    id: int
    code: bytes


@dataclass(slots=True)
class Stage:
    """One shader stage of a pipeline: SPIR-V, entry point and specialization (constant id -> bytes)."""

    stage: int
    code: bytes
    entry: str
    specialization: dict[int, bytes]
    is_mapped: bool = False
    """Whether its bindings lie in descriptor heaps."""
    mappings: tuple[HeapMapping, ...] = ()
    """Where, as far as that is followed."""


@dataclass(frozen=True, slots=True, eq=False)
class ShaderObject:
    """A VkShaderEXT: its stage with the SPIR-V, or the reason why that is not known."""

    id: int
    stage: Stage | None
    unmodelled: str = ""


@dataclass(slots=True)
class Pipeline:
    """A VkPipeline: its bind point (VkPipelineBindPoint), layout and stages. Or shader objects that are bound together,
    which stand in the place of one."""

    id: int
    bind_point: int
    layout: PipelineLayout | None
    stages: tuple[Stage, ...]
    unmodelled: str = field(default="", kw_only=True)
    """The reason why commands with it cannot be judged; empty when they can."""
    objects: dict[int, ShaderObject] = field(default_factory=dict, kw_only=True)
    """The shader objects, by VkShaderStageFlagBits; none for a VkPipeline."""
