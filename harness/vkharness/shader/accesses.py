"""Accesses of a shader by descriptor: the record that following its instructions fills."""

from __future__ import annotations

from dataclasses import dataclass, field

from vkharness.shader.opcodes import Decoration
from vkharness.shader.pointers import Ref, extent
from vkharness.shader.reach import ShaderTouch
from vkharness.shader.types import ARRAYS, Types
from vkharness.shader.variables import ADDRESS, BUFFERS, OUTPUT, RESOURCES, SAMPLER, WRITABLE, Declarations, Variable

READ = 1
WRITE = 2
READ_MODIFY_WRITE = 4
"""An atomic that reads and writes."""

MOST_TOUCHES = 512
"""The most different accesses of one entry point that are told apart."""

Range = tuple[int, int]
"""(offset, size) in bytes from the start of the block."""

MOST_LOCATIONS = 256
"""Vulkan allows far fewer locations; the bound keeps a hostile array length from taking memory."""


Site = tuple[int, int]
"""A function, and the number of an instruction in it."""
Conditions = tuple[tuple[int, bool], ...]
"""Nodes of booleans, and the values that they must have."""


@dataclass(slots=True)
class DescriptorAccess:
    """Accesses of one descriptor. Ranges are None where they may be anywhere in the block."""

    reads: bool = False
    writes: bool = False
    plain_writes: bool = False
    atomics: bool = False
    read_ranges: set[Range] | None = field(default_factory=set)
    write_ranges: set[Range] | None = field(default_factory=set)

    def add(self, flags: int, range: Range | None) -> None:
        """Note one instruction's access."""
        if flags & (READ | READ_MODIFY_WRITE):
            self.reads = True
            self.read_ranges = _with(self.read_ranges, range)
        if flags & (WRITE | READ_MODIFY_WRITE):
            self.writes = True
            self.write_ranges = _with(self.write_ranges, range)
        self.plain_writes = self.plain_writes or bool(flags & WRITE)
        self.atomics = self.atomics or bool(flags & READ_MODIFY_WRITE)

    def merge(self, other: DescriptorAccess) -> None:
        """Note all that the other holds."""
        self.reads = self.reads or other.reads
        self.writes = self.writes or other.writes
        self.plain_writes = self.plain_writes or other.plain_writes
        self.atomics = self.atomics or other.atomics
        self.read_ranges = _union(self.read_ranges, other.read_ranges)
        self.write_ranges = _union(self.write_ranges, other.write_ranges)

    def forbid_reads(self) -> None:
        """NonReadable: there are none."""
        self.reads, self.atomics, self.read_ranges = False, False, set()

    def forbid_writes(self) -> None:
        """NonWritable: there are none."""
        self.writes, self.plain_writes, self.atomics, self.write_ranges = False, False, False, set()


class ShaderAccesses:
    """All that one entry point statically uses."""

    def __init__(self, declarations: Declarations) -> None:
        self._declarations = declarations
        self._types: Types = declarations.types
        self.of: dict[int, dict[int | None, DescriptorAccess]] = {}
        """Variable -> element of its array (None for any) -> accesses. A variable only asked for its size has none."""
        self.outputs: set[int] = set()
        """Locations that are written."""
        self.referenced: set[int] = set()
        """Module-scope variables that an instruction names."""
        self.touches: dict[int, dict[ShaderTouch, set[Site]]] = {}
        """Variable -> its accesses one by one, and the instructions that make them."""
        self.site: Site = (0, 0)
        """The instruction at hand."""
        self.too_many = False
        """Whether there are more than MOST_TOUCHES."""
        self.unmodelled: dict[str, None] = {}
        """Names of the ways to reach memory that are used and not followed, in order of appearance."""

    def touch(self, variable: Variable, ref: Ref) -> DescriptorAccess | None:
        """The record of the descriptor that `ref` means, made if need be; None when it is no descriptor."""
        if variable.kind not in RESOURCES:
            return None
        undecided = not ref.inside and self._types[ref.type].op in ARRAYS
        elements = self.of.setdefault(variable.id, {})
        return elements.setdefault(None if undecided else ref.element, DescriptorAccess())

    def add(self, variable: Variable, ref: Ref, flags: int, conditions: Conditions = (), certain: bool = False) -> None:
        """Note that an instruction reads or writes what `ref` means, where the conditions hold."""
        if variable.kind == OUTPUT and flags & WRITE:
            self._output(variable, ref)
        if variable.kind == ADDRESS and flags:
            self._keep(
                variable, self._touch(ref, flags)._replace(conditions=conditions, certain=certain, base=ref.element)
            )
        access = self.touch(variable, ref)
        if access is None or variable.kind == SAMPLER:
            return
        if variable.kind not in WRITABLE:
            flags = READ if flags & (READ | READ_MODIFY_WRITE) else 0
        access.add(flags, extent(ref, self._types) if variable.kind in BUFFERS else None)
        if flags:
            touch = self._touch(ref, flags) if variable.kind in BUFFERS else ShaderTouch(flags, None, None, 0, None)
            if ref.inside or self._types[ref.type].op not in ARRAYS:
                touch = touch._replace(element=ref.element, chosen=ref.chosen)
            self._keep(variable, touch._replace(conditions=conditions, certain=certain))

    def _touch(self, ref: Ref, flags: int) -> ShaderTouch:
        """The bytes of one access."""
        size = self._types.size(ref.type, ref.matrix)
        if ref.offset is not None and size is not None:
            return ShaderTouch(flags, None, None, ref.offset, size, ref.terms)
        offset, covered = extent(ref, self._types) or (0, None)
        return ShaderTouch(flags, None, None, offset, covered, covers=True)

    def _keep(self, variable: Variable, touch: ShaderTouch) -> None:
        kept = self.touches.setdefault(variable.id, {})
        self.too_many = self.too_many or sum(map(len, self.touches.values())) >= MOST_TOUCHES
        if not self.too_many:
            kept.setdefault(touch, set()).add(self.site)

    def _output(self, variable: Variable, ref: Ref) -> None:
        location = self._declarations.decorations(variable.id).get(Decoration.Location)
        if location is None:
            return
        whole = self._types[ref.type].op in ARRAYS or ref.element is None
        size = min(variable.array_size, MOST_LOCATIONS)
        self.outputs.update(range(location, location + size) if whole else (location + (ref.element or 0),))


def _with(ranges: set[Range] | None, range: Range | None) -> set[Range] | None:
    if ranges is None or range is None:
        return None
    ranges.add(range)
    return ranges


def _union(left: set[Range] | None, right: set[Range] | None) -> set[Range] | None:
    return None if left is None or right is None else left | right
