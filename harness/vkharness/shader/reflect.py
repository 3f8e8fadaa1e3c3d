"""Which resources an entry point statically uses, and how: what a dispatch or draw reads and writes (rules.md#shaders).

`reflect` is the room's one door. It reads the SPIR-V of a pipeline stage with its specialization, and answers with
plain data. Answers are kept, so that asking again at every dispatch costs a look-up.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from threading import Lock

from vkharness.shader.accesses import (
    MOST_LOCATIONS,
    READ,
    READ_MODIFY_WRITE,
    WRITE,
    DescriptorAccess,
    Range,
    ShaderAccesses,
)
from vkharness.shader.flow import follow
from vkharness.shader.lanes.needed_code import NeededCode, needed_code
from vkharness.shader.narrowing import Narrowing, narrowing
from vkharness.shader.opcodes import BUILT_IN_WORKGROUP_SIZE, STAGES, Decoration, ExecutionMode, Op
from vkharness.shader.reach import LoadedPlace, ShaderTouch, loaded_place
from vkharness.shader.spirv import EntryPoint, Module, SpirvError, parse
from vkharness.shader.values import LOADED, ValueNode
from vkharness.shader.variables import (
    BUFFERS,
    IMAGES,
    OUTPUT,
    PUSH_CONSTANTS,
    RESOURCES,
    Declarations,
    Variable,
    declare,
)
from vkharness.spec.enums import VkShaderStage

CACHED_ENTRIES = 1024
FRONT_ENTRIES = 256
FRONT_BYTES = 256 << 10
"""Modules up to this size are also kept by their bytes object, whose hash Python computes once."""


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """One statically used resource variable; descriptors of one array that are used differently give a Use each.

    A Use that neither reads nor writes is only asked for its size, or is a sampler.
    """

    set: int
    binding: int
    kind: str
    """'uniform_buffer', 'storage_buffer', 'sampled_image', 'storage_image', 'sampler', 'combined',
    'uniform_texel_buffer', 'storage_texel_buffer', 'input_attachment' or 'acceleration_structure'."""
    reads: bool
    writes: bool
    atomics: bool
    """An atomic that reads, modifies and writes is among the accesses; `reads` and `writes` are then both true."""
    plain_writes: bool
    """A store, an image write or OpAtomicStore is among the accesses."""
    elements: tuple[int, ...] | None
    """Flattened indices in the array of descriptors; (0,) for no array; None when an index is no constant."""
    array_size: int
    """Flattened; 1 for no array, 0 for a runtime array."""
    read_ranges: tuple[Range, ...] | None
    """(offset, size) in bytes from the start of the block, joined and in order; () when nothing is read. A
    dynamic index into an array of known length covers that array. None: anywhere in the bound range. For buffer blocks
    only; None for all other kinds."""
    write_ranges: tuple[Range, ...] | None
    input_attachment_index: int | None
    """Of element 0; element n reads index + n."""
    touches: tuple[ShaderTouch, ...] = field(default=(), compare=False)
    """The accesses one by one, which `reach.Evaluation` narrows for a dispatch. They lie in the ranges above."""


@dataclass(frozen=True, slots=True)
class ReflectedEntryPoint:
    """One entry point."""

    name: str
    stage: int
    """VkShaderStageFlagBits."""
    uses: tuple[ResourceUse, ...]
    """In order of set, binding and elements."""
    push_constants: bool
    outputs: frozenset[int]
    """Locations that a fragment shader writes."""
    local_size: tuple[int, int, int] | None
    """Workgroup size of a compute, task or mesh shader; None for other stages or when it is not known."""
    declared_outputs: frozenset[int]
    """Locations for which a fragment shader declares an output, whether it writes it or not."""
    modes: frozenset[int]
    """Execution modes; `ExecutionMode` names those that matter."""
    unmodelled: tuple[str, ...]
    """Ways to reach memory that are not followed (addresses, instructions not known): the uses may not be all."""
    nodes: tuple[ValueNode, ...] = field(default=(), compare=False)
    """The expressions that the touches name."""
    addressed: tuple[ShaderTouch, ...] = field(default=(), compare=False)
    """Accesses through device addresses."""
    varies: bool = False
    """Whether what is accessed depends on the dispatch, so that `Evaluation` says more than the ranges."""
    pushed: tuple[tuple[int, int], ...] = ()
    """(offset, size) in bytes of the push constants on which it depends."""
    loaded: tuple[LoadedPlace, ...] = ()
    """The members of blocks in memory on which it depends. The shader does not write them through their block."""
    push_bytes: int = 0
    """The end of its push constant block in bytes; 0 where it uses none."""
    code: NeededCode | None = field(default=None, compare=False, repr=False)
    """The instructions that decide which memory the entry point accesses, to be executed; None where that tells no more
    than `Evaluation` does, or where they are too many."""


_cache: OrderedDict[tuple[bytes, str, int, tuple[tuple[int, bytes], ...]], ReflectedEntryPoint] = OrderedDict()
_lock = Lock()


def reflect(
    code: bytes, entry: str, specialization: Mapping[int, bytes] | None = None, stage: int = 0
) -> ReflectedEntryPoint:
    """Gives the resources, push constants and built-ins that the entry point `entry` of a SPIR-V module uses.

    `specialization` maps constant ids to their bytes (VkSpecializationInfo). `stage`, one VkShaderStageFlagBits,
    chooses among entry points of one name; 0 takes the only one. Raises UserError, one line, when the bytes are no
    SPIR-V, have no such entry point, or are not well formed where it matters.
    """
    given = tuple(sorted(specialization.items())) if specialization else ()
    return (_by_bytes if len(code) <= FRONT_BYTES else _by_digest)(bytes(code), entry, stage, given)


def _by_digest(code: bytes, entry: str, stage: int, given: tuple[tuple[int, bytes], ...]) -> ReflectedEntryPoint:
    key = (hashlib.sha256(code).digest(), entry, stage, given)
    with _lock:
        known = _cache.get(key)
        if known is not None:
            _cache.move_to_end(key)
            return known
    made = _reflect(code, entry, dict(given), stage)
    with _lock:
        _cache[key] = made
        while len(_cache) > CACHED_ENTRIES:
            _cache.popitem(last=False)
    return made


_by_bytes = lru_cache(FRONT_ENTRIES)(_by_digest)


def _reflect(code: bytes, name: str, specialization: dict[int, bytes], stage: int) -> ReflectedEntryPoint:
    module = parse(code)
    point = find_entry_point(module, name, stage)
    declarations = declare(module, specialization)
    modes = module.modes.get(point.function, {})
    local_size = workgroup_size(declarations, modes)
    accesses, nodes, order = follow(declarations, point.function, local_size)
    narrowed = narrowing(accesses, nodes)
    needed = _code(declarations, point, order, narrowed)
    invocations = needed is not None and STAGES[point.model] in (VkShaderStage.COMPUTE, VkShaderStage.VERTEX)
    referenced = [declarations.variables[id] for id in accesses.referenced]
    resources = [variable for variable in referenced if variable.kind in RESOURCES]
    uses = [use for variable in resources for use in _uses(declarations, accesses, variable, narrowed)]
    uses.sort(key=lambda use: (use.set, use.binding, use.elements or (), use.kind))
    return ReflectedEntryPoint(
        name=name,
        stage=STAGES[point.model],
        uses=tuple(uses),
        push_constants=any(variable.kind == PUSH_CONSTANTS for variable in referenced),
        outputs=frozenset(accesses.outputs) if STAGES[point.model] == VkShaderStage.FRAGMENT else frozenset(),
        local_size=local_size,
        declared_outputs=_declared_outputs(declarations, point),
        modes=frozenset(modes),
        unmodelled=tuple(accesses.unmodelled),
        nodes=narrowed.nodes,
        addressed=narrowed.addressed,
        varies=narrowed.varies or invocations,
        pushed=tuple(sorted({*narrowed.pushed, *(needed.pushed if needed else ())})),
        loaded=tuple(sorted({*narrowed.loaded, *(_loaded(nodes, needed) if needed else ())})),
        code=needed,
        push_bytes=max(
            (_block_size(declarations, each) for each in referenced if each.kind == PUSH_CONSTANTS), default=0
        ),
    )


def _code(declarations: Declarations, point: EntryPoint, order: list[int], narrowed: Narrowing) -> NeededCode | None:
    """The needed code of an entry point that reaches images, or bytes that vary between its invocations."""
    kinds = {declarations.variables[variable].kind for variable, touches in narrowed.touches.items() if touches}
    every = [touch for touches in narrowed.touches.values() for touch in touches]
    by_invocation = STAGES[point.model] in (VkShaderStage.COMPUTE, VkShaderStage.VERTEX)
    if not kinds & IMAGES and not (by_invocation and any(each.varies for each in every)):
        return None
    try:
        return needed_code(declarations, point.function, order)
    except (LookupError, TypeError, ValueError):
        return None  # the module is not valid; what it uses is known without


def _loaded(nodes: list[ValueNode], code: NeededCode) -> set[LoadedPlace]:
    """The members of blocks that the code needs."""
    return {loaded_place(node) for node in nodes if node.op == LOADED and node.args[3] in code.uses}


def _block_size(declarations: Declarations, variable: Variable) -> int:
    return declarations.types[variable.type].size or 0


def _declared_outputs(declarations: Declarations, point: EntryPoint) -> frozenset[int]:
    """The locations of the outputs in a fragment shader's interface (specification: "Fragment Output Interface")."""
    found: set[int] = set()
    for id in point.interface if STAGES[point.model] == VkShaderStage.FRAGMENT else ():
        variable, location = declarations.variables.get(id), declarations.decorations(id).get(Decoration.Location)
        if variable is not None and variable.kind == OUTPUT and location is not None:
            found.update(range(location, location + min(variable.array_size, MOST_LOCATIONS)))
    return frozenset(found)


def find_entry_point(module: Module, name: str, stage: int) -> EntryPoint:
    """The entry point of this name for `stage` (VkShaderStageFlagBits, 0 for the only one). Raises SpirvError."""
    named = [point for point in module.entry_points if point.name == name]
    found = [point for point in named if STAGES.get(point.model, 0) & (stage or ~0)]
    if len(found) == 1:
        return found[0]
    if found:
        raise SpirvError(f"SPIR-V has {len(found)} entry points {name!r}; the stage must choose one")
    names = ", ".join(sorted(repr(point.name) for point in module.entry_points)[:8])
    raise SpirvError(f"SPIR-V has no entry point {name!r} for this stage; it has {names or 'none'}")


def _uses(
    declarations: Declarations, accesses: ShaderAccesses, variable: Variable, narrowed: Narrowing
) -> list[ResourceUse]:
    decorations = declarations.decorations(variable.id)
    if Decoration.DescriptorSet not in decorations or Decoration.Binding not in decorations:
        raise SpirvError(f"SPIR-V uses the resource %{variable.id}, which has no DescriptorSet or no Binding")
    # A variable that is named but never reached (passed on and not used) touches nothing.
    by_element = accesses.of.get(variable.id) or {None if variable.is_array else 0: DescriptorAccess()}
    if None in by_element:
        joined = DescriptorAccess()
        for access in by_element.values():
            joined.merge(access)
        by_element = {None: joined}
    uses: dict[ResourceUse, list[int]] = {}
    for element, access in by_element.items():
        _restrict(declarations, variable, access)
        use = _use(variable, access, decorations)
        uses.setdefault(use, []).extend([] if element is None else [element])
    return [_with_elements(use, elements, narrowed.touches.get(variable.id)) for use, elements in uses.items()]


def _use(variable: Variable, access: DescriptorAccess, decorations: Mapping[int, int]) -> ResourceUse:
    block = variable.kind in BUFFERS
    return ResourceUse(
        set=decorations[Decoration.DescriptorSet],
        binding=decorations[Decoration.Binding],
        kind=variable.kind,
        reads=access.reads,
        writes=access.writes,
        atomics=access.atomics,
        plain_writes=access.plain_writes,
        elements=None,
        array_size=variable.array_size,
        read_ranges=_joined(access.read_ranges) if block else None,
        write_ranges=_joined(access.write_ranges) if block else None,
        input_attachment_index=decorations.get(Decoration.InputAttachmentIndex),
    )


def _with_elements(use: ResourceUse, elements: list[int], touches: tuple[ShaderTouch, ...] | None) -> ResourceUse:
    chosen = tuple(sorted(elements)) or None
    if touches is None:
        own = _as_touches(use)
    else:
        own = tuple(touch for touch in map(partial(_allowed, use), touches) if touch.flags)
    if chosen is not None:
        own = tuple(touch for touch in own if touch.element is None or touch.element in chosen)
    return replace(use, elements=chosen, touches=own)


def _allowed(use: ResourceUse, touch: ShaderTouch) -> ShaderTouch:
    """A touch without what NonWritable or NonReadable exclude."""
    reads, writes = touch.flags & (READ | READ_MODIFY_WRITE), touch.flags & (WRITE | READ_MODIFY_WRITE)
    if touch.flags & READ_MODIFY_WRITE and not use.atomics:
        return touch._replace(flags=(READ if use.reads else 0) | (WRITE if use.writes else 0))
    return touch._replace(flags=touch.flags if (reads and use.reads) or (writes and use.writes) else 0)


def _as_touches(use: ResourceUse) -> tuple[ShaderTouch, ...]:
    """The ranges of a use as touches, where its accesses are not known one by one."""
    written = WRITE if use.plain_writes or not use.atomics else READ_MODIFY_WRITE
    made = []
    for flags, happens, ranges in ((READ, use.reads, use.read_ranges), (written, use.writes, use.write_ranges)):
        for offset, size in (ranges if ranges is not None else ((0, None),)) if happens else ():
            made.append(ShaderTouch(flags, None, None, offset, size, covers=True))
    return tuple(made)


def _restrict(declarations: Declarations, variable: Variable, access: DescriptorAccess) -> None:
    """NonWritable and NonReadable on the variable, or on every member of its block."""
    block = declarations.types[declarations.types.inside_arrays(variable.type)[0]]
    members = [declarations.module.member_decorations.get((block.id, at), {}) for at in range(len(block.members))]
    own = declarations.decorations(variable.id)

    def decorated(decoration: Decoration) -> bool:
        return decoration in own or (bool(members) and all(decoration in member for member in members))

    if decorated(Decoration.NonReadable):
        access.forbid_reads()
    if decorated(Decoration.NonWritable):
        access.forbid_writes()


def _joined(ranges: set[Range] | None) -> tuple[Range, ...] | None:
    if ranges is None:
        return None
    joined: list[Range] = []
    for offset, size in sorted(ranges):
        if joined and offset <= sum(joined[-1]):
            last, length = joined[-1]
            joined[-1] = (last, max(length, offset + size - last))
        else:
            joined.append((offset, size))
    return tuple(joined)


def workgroup_size(declarations: Declarations, modes: Mapping[int, tuple[int, ...]]) -> tuple[int, int, int] | None:
    """The constant decorated WorkgroupSize wins over LocalSizeId and LocalSize, as the specification says."""
    constants = declarations.constants
    size: tuple[int | None, ...] = modes.get(ExecutionMode.LocalSize, ())
    if ExecutionMode.LocalSizeId in modes:
        size = tuple(constants.integer(id) for id in modes[ExecutionMode.LocalSizeId])
    for op, operands in declarations.module.declarations:
        if op in (Op.ConstantComposite, Op.SpecConstantComposite):
            built_in = declarations.decorations(operands[1]).get(Decoration.BuiltIn)
            if built_in == BUILT_IN_WORKGROUP_SIZE:
                size = constants.integers(operands[1])
    known = [value for value in size if value is not None]
    return (known[0], known[1], known[2]) if len(known) == 3 else None
