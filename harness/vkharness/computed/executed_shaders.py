"""Contents of buffers after dispatches: their shaders are executed on the host (`vkharness.shader.execution`).

The invocations of a dispatch run in two orders, first to last and last to first. Bytes that these leave different are
unknown: the specification allows either ("Shader Invocation Order"). A byte that was not known and is read ends the
execution, and so does all that the specification leaves open. Nothing is changed then, and the reason is raised as
`UserError`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from vkharness.computed.followed_transfers import KnownContents, SubresourceKey
from vkharness.computed.known_cells import Cells
from vkharness.computed.many_invocations import WORD, Numbers, execute_many
from vkharness.computed.shader_images import BoundImage, BoundTexelBuffer, TexelCopy
from vkharness.findings import UserError
from vkharness.replay.observation.shader_bindings import Bound, Target
from vkharness.shader.execution.outside import ShaderImage, ShaderMemory
from vkharness.shader.execution.work_groups import BOTH_ORDERS, Order, Size, execute_dispatch
from vkharness.spec.enums import VkShaderStage
from vkharness.spec.formats import format_of

IDENTITY_OF_R = 3
"""VK_COMPONENT_SWIZZLE_R; G, B and A follow."""
MOST_INSTRUCTIONS = 1 << 20
"""Of one dispatch, in each of its orders."""
MOST_TOGETHER = 1 << 26
"""Instructions of a dispatch that is executed at once."""
TOGETHER = 64
"""Such instructions that take less than the time of one of an invocation alone, and count as one of the trace."""
MOST_WORDS = 1 << 24
"""Of a memory object that such a dispatch reaches."""
KNOWN_WORD = 0x01010101
"""Four flags."""


def execute(contents: KnownContents, bound: Bound, groups: Size, base: Size) -> None:
    """Follows one dispatch with what was `bound` when it was recorded. Raises `UserError` where it cannot."""
    require_compute(bound)
    if 0 in groups or _executed_at_once(contents, bound, groups, base):
        return
    first, last = (_execution(contents, bound, (groups, base), order) for order in BOTH_ORDERS)
    keep_written(contents, first, last)


def require_compute(bound: Bound) -> None:
    """Raises `UserError` where what is bound is no one compute shader whose descriptors are known."""
    if bound.reason or bound.late or len(bound.stages) != 1 or bound.stages[0].stage != VkShaderStage.COMPUTE:
        raise UserError(bound.reason or "its descriptors may be written after it was recorded")


def _executed_at_once(contents: KnownContents, bound: Bound, groups: Size, base: Size) -> bool:
    """Executes a dispatch whose invocations keep to words of their own; false where it is none."""
    stage, resources = bound.stages[0], BoundShaderResources(contents, bound)
    try:
        limit = contents.instructions.part(MOST_TOGETHER, TOGETHER)
        execute_many(stage.code, stage.entry, groups, base, resources, stage.specialization, limit)
    except UserError:
        return False
    keep_written(contents, resources, resources)
    return True


def keep_written(contents: KnownContents, first: BoundShaderResources, last: BoundShaderResources) -> None:
    """Takes over what two executions of one command have written, one in each order."""
    for space in first.memory.keys() | last.memory.keys():
        one, other = first.space(space), last.space(space)
        cells = contents.memory[space]
        written = _flags(one.written) | _flags(other.written)
        data = np.frombuffer(one.data, np.uint8)
        cells.data[written] = data[written]
        cells.known[written] = (data == np.frombuffer(other.data, np.uint8))[written]
    for key in first.texels.keys() | last.texels.keys():
        image, other_image = first.copy_of(*key), last.copy_of(*key)
        changed = image.written | other_image.written
        texels = contents.texels[key]
        texels.data[changed] = image.cells.data[changed]
        texels.known[changed] = (image.cells.data == other_image.cells.data).all(axis=-1)[changed]


def differing_bytes(first: BoundShaderResources, last: BoundShaderResources) -> int:
    """How many bytes two executions leave different."""
    count = 0
    for space in first.memory.keys() & last.memory.keys():
        one, other = (np.frombuffer(each.memory[space].data, np.uint8) for each in (first, last))
        count += int(np.count_nonzero(one != other))
    for key in first.texels.keys() & last.texels.keys():
        count += int(np.count_nonzero(first.texels[key].cells.data != last.texels[key].cells.data))
    return count


def _flags(held: bytearray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.frombuffer(held, np.bool_)


def _execution(contents: KnownContents, bound: Bound, extent: tuple[Size, Size], order: Order) -> BoundShaderResources:
    stage, resources = bound.stages[0], BoundShaderResources(contents, bound)
    limit = contents.instructions.part(MOST_INSTRUCTIONS)
    execute_dispatch(stage.code, stage.entry, *extent, resources, stage.specialization, limit, order)
    return resources


@dataclass(frozen=True)
class _Copy:
    """A copy of the bytes of one memory object, with a flag for each byte: known, and written by this execution."""

    data: bytearray
    known: bytearray
    written: bytearray

    @cached_property
    def words(self) -> _Words:
        """The same as words."""
        return _Words(self)


class _Words:
    """The words of a memory object, and which invocations have read and written each: the number of one and 1, 0 for
    none, -1 for several."""

    def __init__(self, held: _Copy) -> None:
        count = len(held.data) // WORD
        if count > MOST_WORDS:
            raise UserError(f"more than {MOST_WORDS} words are not followed at once")
        data, known, written = (np.frombuffer(each, "<u4", count) for each in (held.data, held.known, held.written))
        self._data, self._known, self._written = data, known, written
        self._reader, self._writer = np.zeros(count, np.int64), np.zeros(count, np.int64)

    def read(self, at: Numbers, invocations: Numbers) -> Numbers:
        """Known words that no other invocation has written."""
        if (self._known[at] != KNOWN_WORD).any():
            raise UserError("the shader reads bytes that are not known")
        own = invocations.astype(np.int64) + 1
        self._refuse_others(self._writer[at], own)
        before = self._reader[at]
        self._reader[at] = np.where((before == 0) | (before == own), own, -1)
        self._reader[at[self._reader[at] != own]] = -1
        return self._data[at].astype(np.uint64)

    def write(self, at: Numbers, words: Numbers, invocations: Numbers) -> None:
        """Words that no other invocation reaches."""
        own = invocations.astype(np.int64) + 1
        self._refuse_others(self._writer[at], own)
        self._refuse_others(self._reader[at], own)
        self._writer[at] = own
        self._refuse_others(self._writer[at], own)
        self._data[at] = words
        self._known[at] = self._written[at] = KNOWN_WORD

    def _refuse_others(self, reached: npt.NDArray[np.int64], own: npt.NDArray[np.int64]) -> None:
        if ((reached != 0) & (reached != own)).any():
            raise UserError("invocations reach words of one another")


class BoundShaderResources:
    """Memory and texels that one execution of a command reads and writes; it implements `ShaderResources`."""

    def __init__(self, contents: KnownContents, bound: Bound) -> None:
        self._contents, self._bound = contents, bound
        self.memory: dict[int, _Copy] = {}
        self.texels: dict[SubresourceKey, TexelCopy] = {}

    @property
    def push_constants(self) -> ShaderMemory:
        """Those that were pushed before the command."""
        return _Pushed(self._bound)

    def space(self, space: int) -> _Copy:
        """The copy of a memory object."""
        if space not in self.memory:
            cells = self._contents.memory.get(space)
            if cells is None:
                raise UserError("the shader reaches memory whose bytes are not followed")
            self.memory[space] = _Copy(
                bytearray(cells.data.tobytes()), bytearray(cells.known.tobytes()), bytearray(len(cells.data))
            )
        return self.memory[space]

    def buffer(self, set: int, binding: int, element: int) -> ShaderMemory:
        """The range of a buffer descriptor."""
        target = self._bound.targets.get((set, binding, element))
        found = None if target is None or not target.is_block else self._range(target)
        if found is None:
            raise UserError(f"no followed buffer is bound to set {set}, binding {binding}, element {element}")
        return found

    def _range(self, target: Target) -> _Range | None:
        """The bytes behind a descriptor; None where its buffer is not followed."""
        held, (begin, end) = self._contents.buffers.get(target.resource), target.spans[0]
        return None if held is None else _Range(self.space(held.space), held.offset + begin, end - begin)

    @property
    def has_written(self) -> bool:
        """Whether anything was written."""
        in_memory = any(1 in each.written for each in self.memory.values())
        return in_memory or any(bool(each.written.any()) for each in self.texels.values())

    def image(self, set: int, binding: int, element: int) -> ShaderImage:
        """The view of an image descriptor, or the texels of a texel buffer."""
        target = self._bound.targets.get((set, binding, element))
        texels = None if target is None else self._contents.views.get(target.texels)
        memory = None if target is None or texels is None else self._range(target)
        if texels is not None and memory is not None:
            return BoundTexelBuffer(memory, format_of(texels["format"]))
        if target is None or target.image is None or target.view is None:
            raise UserError(f"no followed image is bound to set {set}, binding {binding}, element {element}")
        info = self._contents.views.get(target.view.id)
        if info is None or not _is_plain(info["components"]):
            raise UserError("an image view that swizzles components is not followed")
        samplers = () if info["pNext"] else tuple(self._contents.samplers)
        return BoundImage(
            target.image, target.view, info["viewType"], format_of(info["format"]), self.copy_of, samplers
        )

    def copy_of(self, image: int, aspect: int, mip: int, layer: int) -> TexelCopy:
        """The copy of the texels of a subresource."""
        key = (self._contents.name(image), aspect, mip, layer)
        if key not in self.texels:
            cells = self._contents.subresource(*key)
            if cells is None:
                raise UserError("the shader reaches an image whose texels are not followed")
            copy = Cells(cells.data.copy(), cells.known.copy())
            self.texels[key] = TexelCopy(copy, np.zeros_like(cells.known))
        return self.texels[key]

    def address(self, pointer: int) -> tuple[ShaderMemory, int]:
        """The buffer of which the trace was told that it has this address."""
        for begin, buffer in self._contents.addresses.items():
            held = self._contents.buffers.get(buffer)
            if held is not None and begin <= pointer < begin + held.size:
                return _Range(self.space(held.space), held.offset, held.size), pointer - begin
        raise UserError(f"no followed buffer has the device address 0x{pointer:x}")


def _is_plain(components: dict[str, int]) -> bool:
    """Whether a VkComponentMapping leaves components where they are."""
    return all(components[each] in (0, at) for at, each in enumerate("rgba", IDENTITY_OF_R))


@dataclass(frozen=True, slots=True)
class _Range:
    """A part of a memory object; it implements `ShaderMemory`."""

    held: _Copy
    begin: int
    size: int

    def read(self, offset: int, size: int) -> bytes:
        """Known bytes. Raises `UserError` where one is not."""
        at = self.begin + offset
        if self.held.known.count(1, at, at + size) != size:
            raise UserError("the shader reads bytes that are not known")
        return bytes(self.held.data[at : at + size])

    def write(self, offset: int, data: bytes) -> None:
        """Bytes that are known from now on."""
        at, size = self.begin + offset, len(data)
        self.held.data[at : at + size] = data
        self.held.known[at : at + size] = self.held.written[at : at + size] = b"\1" * size

    def located(self, offset: int) -> tuple[int, int]:
        """A name of the copy, and the byte's number in the memory object."""
        return id(self.held), self.begin + offset

    def gather(self, offsets: Numbers, invocations: Numbers) -> Numbers:
        """Known words, each for one invocation."""
        return self.held.words.read(self._places(offsets), invocations)

    def scatter(self, offsets: Numbers, words: Numbers, invocations: Numbers) -> None:
        """Words, each of one invocation, that are known from now on."""
        self.held.words.write(self._places(offsets), words, invocations)

    def _places(self, offsets: Numbers) -> Numbers:
        if (offsets + WORD > self.size).any() or (offsets >= self.size).any():
            raise UserError("the shader reaches words outside of its buffer")
        if self.begin % WORD or (offsets % WORD).any():
            raise UserError("words that are not aligned are not followed at once")
        return (offsets + self.begin) // WORD


@dataclass(frozen=True, slots=True)
class _Pushed:
    """Push constants; it implements `ShaderMemory`."""

    bound: Bound
    size: int = 1 << 16

    def read(self, offset: int, size: int) -> bytes:
        """Bytes that were pushed. Raises `UserError` where one was not."""
        value = self.bound.constants.read(offset, size)
        if value is None:
            raise UserError("the shader reads push constants that were not pushed")
        return value.to_bytes(size, "little")

    def gather(self, offsets: Numbers, invocations: Numbers) -> int:
        """The word that all invocations read. Raises `UserError` where they read several."""
        if (offsets != offsets[0]).any():
            raise UserError("push constants that differ from invocation to invocation are not followed")
        return int.from_bytes(self.read(int(offsets[0]), WORD), "little")

    def located(self, offset: int) -> tuple[int, int]:
        """Push constants are nobody's memory."""
        return 0, offset

    def write(self, offset: int, data: bytes) -> None:
        """Raises `UserError`: no shader may do so."""
        raise UserError(f"the shader writes {len(data)} bytes of push constants at {offset}")
