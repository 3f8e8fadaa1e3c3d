"""The instructions of an entry point that decide which memory it reaches: addresses, coordinates and branches.

It holds no module: what is kept of each function are its blocks with these instructions, so that many entry points can
be kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from vkharness.shader.guards import EXIT, Guards
from vkharness.shader.lanes.pointed_places import PointedPlace, leaves, stepped
from vkharness.shader.opcodes import Decoration, Op, StorageClass
from vkharness.shader.spirv import Function, Instruction
from vkharness.shader.types import Type
from vkharness.shader.variables import BUFFERS, SAMPLER, Declarations, Variable

MOST_KEPT = 1 << 14
"""Instructions of an entry point. One that needs more is not followed."""
KILL, TERMINATE = 252, 4416
LEAVES = frozenset({Op.Return, Op.ReturnValue, Op.Unreachable, KILL, TERMINATE})
STORES = frozenset({Op.Store, Op.CopyMemory, Op.CopyMemorySized})
SAMPLES = range(Op.ImageSampleImplicitLod, 98)
"""Samples and gathers; 98 is OpImageRead."""
ATOMICS = frozenset(range(Op.AtomicLoad, Op.AtomicXor + 1)) | {
    Op.AtomicFlagTestAndSet, Op.AtomicFlagClear, Op.AtomicFMinEXT, Op.AtomicFMaxEXT, Op.AtomicFAddEXT,
}  # fmt: skip
NO_RESULT = frozenset({Op.AtomicStore, Op.AtomicFlagClear, Op.ImageWrite}) | STORES
REACHING = frozenset({Op.Load, *STORES, *ATOMICS, Op.ImageFetch, Op.ImageRead, Op.ImageWrite, *SAMPLES})
"""Instructions that reach memory, or that may."""
CHAINS = frozenset({Op.AccessChain, Op.InBoundsAccessChain})
CHANGES = REACHING | {Op.FunctionCall, Op.Variable, Op.ImageTexelPointer} | CHAINS
"""Instructions that are always kept, beside branches."""

Site = tuple[int, int]
"""A function, and the number of an instruction in it."""


@dataclass(slots=True)
class NeededBlock:
    """One block."""

    steps: list[tuple[int, tuple[int, ...], int]] = field(default_factory=list)
    """(instruction, operands, its number in the function)."""
    phis: list[tuple[int, dict[int, int]]] = field(default_factory=list)
    """(id, by label of the block before the id of the value)."""
    leave: Instruction = (int(Op.Return), ())
    after: int = EXIT
    """The block in which all ways that leave this one meet again; EXIT for the end of the function."""


@dataclass(slots=True)
class NeededFunction:
    """One function."""

    parameters: list[int]
    entry: int = EXIT
    blocks: dict[int, NeededBlock] = field(default_factory=dict)


@dataclass(slots=True)
class NeededCode:
    """One entry point."""

    entry: int
    functions: dict[int, NeededFunction]
    types: dict[int, Type]
    types_of: dict[int, int]
    """The type of each id."""
    constants: dict[int, Any]
    """Integers and booleans as bits, floats as Python has them, composites as tuples."""
    variables: dict[int, Variable]
    """Resources."""
    places: dict[int, tuple[int, int]]
    """(set, binding) of resources."""
    inputs: dict[int, tuple[int, int]]
    """(built-in, components) of input variables."""
    own: dict[int, Any]
    """Private variables with what they hold at first."""
    push_constants: set[int]
    extended: set[int]
    """Ids of GLSL.std.450."""
    uses: frozenset[int]
    """The ids that decide something."""
    pushed: tuple[tuple[int, int], ...]
    """(offset, size) in bytes of the push constants that do."""
    kept: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)
    """A cache of results of executing it (`vkharness.commands.drawing.followed_invocations`)."""


def needed_code(declarations: Declarations, entry: int, order: Sequence[int]) -> NeededCode | None:
    """Gives the instructions of an entry point that decide which memory it accesses; None where they are too many.
    `order` are the ids of its functions."""
    bodies = {id: declarations.module.functions[id] for id in order}
    if sum(len(each.body) for each in bodies.values()) > 8 * MOST_KEPT:
        return None
    needed = _Need(bodies).found
    functions = {id: _function(each, needed) for id, each in bodies.items()}
    if sum(len(block.steps) for each in functions.values() for block in each.blocks.values()) > MOST_KEPT:
        return None
    return _Declared(declarations, bodies.values()).code(entry, functions, needed)


class _Need:
    """The ids that decide what is reached."""

    def __init__(self, functions: dict[int, Function]) -> None:
        self._made: dict[int, tuple[int, ...]] = {}
        """The operands of the instruction that makes an id."""
        self._base: dict[int, int] = {}
        """The id at the begin of the access chains and copies that lead to an id."""
        self._from: dict[int, list[int]] = {}
        """Other ids on which an id depends: values that are stored, passed and returned."""
        waiting: list[int] = []
        for id, function in functions.items():
            for op, operands in function.body:
                waiting += self._roots(op, operands)
                self._note(op, operands, id, functions)
        self.found: set[int] = set()
        while waiting:
            each = waiting.pop()
            if each not in self.found:
                self.found.add(each)
                waiting += (other for other in self._made.get(each, ()) if other in self._made or other in self._from)
                waiting += self._from.get(each, ())

    def _note(self, op: int, operands: tuple[int, ...], function: int, functions: dict[int, Function]) -> None:
        if op in STORES:
            self._from.setdefault(self._root(operands[0]), []).extend(operands[:2])
        elif op == Op.ReturnValue:
            self._from.setdefault(function, []).append(operands[0])
        elif op in NO_RESULT or len(operands) < 2 or op in (Op.Label, Op.Branch, Op.BranchConditional, Op.Switch):
            return
        else:
            self._made[operands[1]] = operands[2:]
            if op in CHAINS or op == Op.CopyObject:
                self._base[operands[1]] = self._root(operands[2])
        if op == Op.FunctionCall:
            called = functions.get(operands[2])
            for parameter, given in zip(called.parameters if called else (), operands[3:], strict=False):
                self._from.setdefault(parameter, []).append(given)
                self._from.setdefault(self._root(given), []).append(parameter)  # it may be stored to

    def _root(self, id: int) -> int:
        return self._base.get(id, id)

    def _roots(self, op: int, operands: tuple[int, ...]) -> tuple[int, ...]:
        """The ids that an instruction makes needed."""
        if op in (Op.BranchConditional, Op.Switch):
            return operands[:1]
        if op == Op.Load:
            return operands[2:3]
        if op in STORES:
            return operands[:2] if op != Op.Store else operands[:1]
        if op in ATOMICS:
            return operands[:1] if op in NO_RESULT else operands[2:3]
        if op == Op.ImageWrite:
            return (*operands[:2], *operands[4:])
        if op in REACHING:
            return operands[2:]
        return operands[2:4] if op == Op.ImageTexelPointer else ()


def _function(function: Function, needed: set[int]) -> NeededFunction:
    made = NeededFunction(function.parameters)
    guards = Guards(function.body)
    block = NeededBlock()
    for number, (op, operands) in enumerate(function.body):
        if op == Op.Label:
            block = made.blocks[operands[0]] = NeededBlock(after=guards.meeting(operands[0]))
            made.entry = made.entry or operands[0]
        elif op in LEAVES or op in (Op.Branch, Op.BranchConditional, Op.Switch):
            block.leave = (op, operands)
        elif op == Op.Phi:
            if operands[1] in needed:
                block.phis.append((operands[1], dict(zip(operands[3::2], operands[2::2], strict=False))))
        elif op in CHANGES or (len(operands) > 1 and op not in NO_RESULT and operands[1] in needed):
            block.steps.append((op, operands, number))
    return made


class _Declared:
    """The types, constants and variables of a module that the code names."""

    def __init__(self, declarations: Declarations, functions: Iterable[Function]) -> None:
        self._declarations = declarations
        self._types = declarations.types
        self._constants: dict[int, Any] = {}
        self._type_of: dict[int, int] = {}
        self._storage: dict[int, tuple[int, tuple[int, ...]]] = {}
        for op, operands in declarations.module.declarations:
            if op >= Op.ConstantTrue and len(operands) > 1:
                self._type_of[operands[1]] = operands[0]
                if op == Op.Variable:
                    self._storage[operands[1]] = (operands[2], operands)
                else:
                    self._constant(op, operands)
        for function in functions:
            for _, operands in function.body:
                if len(operands) > 1 and operands[0] in self._types:
                    self._type_of[operands[1]] = operands[0]

    def _constant(self, op: int, operands: tuple[int, ...]) -> None:
        if operands[0] not in self._types:
            return
        type = self._types[operands[0]]
        whole = self._declarations.constants.integer(operands[1])
        if whole is not None and type.op == Op.TypeBool:
            self._constants[operands[1]] = bool(whole)
        elif whole is not None:
            self._constants[operands[1]] = whole & (1 << type.width) - 1
        elif type.op == Op.TypeFloat and type.width == 32 and op == Op.Constant:
            self._constants[operands[1]] = as_float(operands[2])
        elif op in (Op.ConstantComposite, Op.SpecConstantComposite):
            self._constants[operands[1]] = tuple(self._constants.get(each) for each in operands[2:])

    def code(self, entry: int, functions: dict[int, NeededFunction], needed: set[int]) -> NeededCode:
        """All of it."""
        resources = {
            id: each
            for id, each in self._declarations.variables.items()
            if each.kind in BUFFERS or (each.kind != SAMPLER and self._is_image(each))
        }
        decorations = self._declarations.decorations
        return NeededCode(
            entry=entry,
            functions=functions,
            types=self._types.all(),
            types_of=self._type_of,
            constants=self._constants,
            variables=resources,
            places={
                id: (decorations(id)[Decoration.DescriptorSet], decorations(id)[Decoration.Binding])
                for id in resources
                if Decoration.DescriptorSet in decorations(id) and Decoration.Binding in decorations(id)
            },
            inputs=dict(self._inputs()),
            own={
                id: self._constants.get(operands[3]) if len(operands) > 3 else None
                for id, (storage, operands) in self._storage.items()
                if storage == StorageClass.Private
            },
            push_constants={id for id, (storage, _) in self._storage.items() if storage == StorageClass.PushConstant},
            extended={id for id, name in self._declarations.module.instruction_sets.items() if name == "GLSL.std.450"},
            uses=frozenset(needed),
            pushed=tuple(sorted(set(self._pushed(functions, needed)))),
        )

    def _pushed(self, functions: dict[int, NeededFunction], needed: set[int]) -> Iterator[tuple[int, int]]:
        """The numbers that needed loads read of push constants."""
        places: dict[int, PointedPlace | None] = {
            id: PointedPlace(id, 0, True, 0, self._types[operands[0]].element)
            for id, (storage, operands) in self._storage.items()
            if storage == StorageClass.PushConstant
        }
        types = self._types.all()
        for op, operands, _ in (
            step for each in functions.values() for block in each.blocks.values() for step in block.steps
        ):
            place = places.get(operands[2]) if len(operands) > 2 else None
            if place is not None and op in CHAINS:
                for id in operands[3:]:
                    index = self._constants.get(id)
                    place = None if place is None else stepped(place, index, types)
                places[operands[1]] = place
            elif place is not None and op == Op.Load and operands[1] in needed and place.offset is not None:
                yield from leaves(types[place.type], place.offset, types)

    def _is_image(self, variable: Variable) -> bool:
        return self._types[self._types.inside_arrays(variable.type)[0]].op in (Op.TypeImage, Op.TypeSampledImage)

    def _inputs(self) -> Iterator[tuple[int, tuple[int, int]]]:
        for id, (storage, operands) in self._storage.items():
            built_in = self._declarations.decorations(id).get(Decoration.BuiltIn)
            if storage == StorageClass.Input and built_in is not None:
                pointee = self._types[self._types[operands[0]].element]
                yield id, (built_in, (pointee.count or 1) if pointee.op == Op.TypeVector else 0)


def as_float(bits: int) -> float:
    """The 32-bit float of these bits."""
    import struct

    return float(struct.unpack("<f", (bits & 0xFFFFFFFF).to_bytes(4, "little"))[0])
