"""The integers and booleans of a shader as expressions of what a dispatch decides (`reach` evaluates them).

An expression is a node of a graph in which equal nodes are one: an operation of SPIR-V on other nodes, or a leaf. The
leaves are constants, built-in inputs, push constants, members of blocks that the shader does not write, lengths of
runtime arrays, and unknown values. An unknown value
stands for whatever one instruction gives, so that a condition on it also holds where it is used.

A variable of a function that is stored to once has the value that was stored, where that store dominates the load.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from vkharness.shader.guards import Guards
from vkharness.shader.opcodes import Decoration, Op, StorageClass
from vkharness.shader.spirv import Function, Instruction
from vkharness.shader.types import ARRAYS, Type
from vkharness.shader.variables import BUFFERS, UNIFORM_BUFFER, Declarations

CONSTANT, BUILT_IN, PUSH, LOADED, LENGTH, UNKNOWN, UNSIGNED_MIN, SIGNED_MIN, UNSIGNED_MAX, SIGNED_MAX = range(-10, 0)
"""Operations of nodes that are no instruction of SPIR-V. Those up to UNKNOWN have no nodes as arguments."""
NUM_WORKGROUPS, WORKGROUP_ID, LOCAL_INVOCATION_ID, GLOBAL_INVOCATION_ID, LOCAL_INVOCATION_INDEX = 24, 26, 27, 28, 29
VERTEX_INDEX, INSTANCE_INDEX = 42, 43
"""Built-in inputs (SPIR-V specification, section 3.21)."""
BUILT_INS = frozenset(range(NUM_WORKGROUPS, LOCAL_INVOCATION_INDEX + 1)) - {25} | {VERTEX_INDEX, INSTANCE_INDEX}

OPERATIONS = frozenset(
    {
        Op.UConvert, Op.SConvert, Op.Bitcast, Op.SNegate, Op.IAdd, Op.ISub, Op.IMul, Op.UDiv, Op.SDiv, Op.UMod, Op.SRem,
        Op.SMod, Op.LogicalEqual, Op.LogicalNotEqual, Op.LogicalAnd, Op.LogicalOr, Op.LogicalNot, Op.Select, Op.IEqual,
        Op.INotEqual, Op.UGreaterThan, Op.SGreaterThan, Op.UGreaterThanEqual, Op.SGreaterThanEqual, Op.ULessThan,
        Op.SLessThan, Op.ULessThanEqual, Op.SLessThanEqual, Op.ShiftRightLogical, Op.ShiftRightArithmetic,
        Op.ShiftLeftLogical, Op.BitwiseOr, Op.BitwiseXor, Op.BitwiseAnd, Op.Not, Op.ConvertPtrToU, Op.ConvertUToPtr,
    }
)  # fmt: skip
"""Instructions that become nodes, component by component."""
EXTENDED: dict[int, tuple[int, ...]] = {38: (UNSIGNED_MIN,), 39: (SIGNED_MIN,), 41: (UNSIGNED_MAX,), 42: (SIGNED_MAX,)}
EXTENDED |= {44: (UNSIGNED_MAX, UNSIGNED_MIN), 45: (SIGNED_MAX, SIGNED_MIN)}
"""The same for minimum, maximum and clamp of GLSL.std.450. A clamp is a maximum and then a minimum."""
ANYTHING = frozenset({Op.Phi, Op.Load, Op.FunctionCall, Op.FunctionParameter, Op.CompositeExtract})
"""Instructions whose result is an unknown value if it is a boolean and nothing else is known of it. An integer always
is one; a comparison of numbers that are no integers is left out, since nothing narrows by it."""

FAR = 1 << 32
"""No constant index of a runtime array is as large."""

Value: TypeAlias = "int | tuple[Value | None, ...]"
"""A node, or the parts of a composite. None where nothing is known of a part."""


class ValueNode(NamedTuple):
    """One expression. `width` is in bits, 0 for a boolean."""

    op: int
    width: int
    signed: bool
    args: tuple[int, ...]


def arguments(node: ValueNode) -> tuple[int, ...]:
    """The nodes that a node is made of."""
    return node.args if node.op > UNKNOWN else ()


class Pointer(NamedTuple):
    """A pointer into a variable, by constant indices; None for an index that is no constant."""

    root: int
    path: tuple[int | None, ...] = ()


class Values:
    """The nodes of one entry point. Functions are read callers first."""

    def __init__(self, declarations: Declarations, local_size: tuple[int, int, int] | None) -> None:
        self.nodes: list[ValueNode] = []
        self._declarations = declarations
        self._types = declarations.types
        self._local_size = local_size
        self._numbers: dict[ValueNode, int] = {}
        self._values: dict[int, Value] = {}
        self._pointers: dict[int, Pointer] = {}
        self._stored: dict[int, tuple[Value, int]] = {}
        """(value, block) of each function variable that was stored to so far, if only once."""
        self._once: set[int] = set()
        self._variables: dict[int, tuple[int, int]] = {}
        """(pointee type, storage class) of module-scope variables."""
        for op, operands in declarations.module.declarations:
            if op == Op.Variable and self._types[operands[0]].op == Op.TypePointer:
                self._variables[operands[1]] = (self._types[operands[0]].element, operands[2])
                self._pointers[operands[1]] = Pointer(operands[1])
        self._extended = {id for id, name in declarations.module.instruction_sets.items() if name == "GLSL.std.450"}

    def node(self, id: int) -> int | None:
        """The node of a scalar; None for anything else."""
        value = self._value(id)
        return value if isinstance(value, int) else None

    def address(self, id: int) -> int | None:
        """The node of a device address: an integer of 64 bits, or two of 32 with the low half first."""
        value = self._value(id)
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], int) and isinstance(value[1], int):
            low, high = (self._make(Op.UConvert, 64, False, (part,)) for part in (value[0], value[1]))
            shifted = self._make(Op.ShiftLeftLogical, 64, False, (high, self._make(CONSTANT, 64, False, (32,))))
            return self._make(Op.IAdd, 64, False, (low, shifted))
        return value if isinstance(value, int) and self.nodes[value].width == 64 else None

    def read(self, function: Function, guards: Guards) -> None:
        """Makes the nodes of one function."""
        self._once = _stored_once(function.body)
        block = 0
        branches: dict[int, tuple[int, ...]] = {}
        for op, operands in function.body:
            if op == Op.Label:
                block = operands[0]
            elif op == Op.BranchConditional:
                branches[block] = operands
            elif op == Op.Store:
                self._store(operands, block)
            elif op == Op.Variable:
                self._pointers[operands[1]] = Pointer(operands[1])
                if len(operands) > 3 and operands[1] in self._once:
                    self._keep(operands[1], self._value(operands[3]), block)
            elif op in (Op.AccessChain, Op.InBoundsAccessChain):
                held = self._pointers.get(operands[2])
                if held is not None:
                    indices = tuple(map(self._declarations.constants.integer, operands[3:]))
                    self._pointers[operands[1]] = Pointer(held.root, held.path + indices)
            elif len(operands) > 1:
                made = self._result(op, operands, block, guards, branches)
                if made is not None:
                    self._values[operands[1]] = made

    def _store(self, operands: tuple[int, ...], block: int) -> None:
        if operands[0] in self._once:
            self._keep(operands[0], self._value(operands[1]), block)

    def _keep(self, variable: int, value: Value | None, block: int) -> None:
        if value is not None:
            self._stored[variable] = value, block

    def _result(
        self, op: int, operands: tuple[int, ...], block: int, guards: Guards, branches: dict[int, tuple[int, ...]]
    ) -> Value | None:
        """Gives the value of one instruction's result; None where it is not followed."""
        if operands[0] not in self._types:
            return None
        type = self._types[operands[0]]
        found: Value | None = None
        if op in OPERATIONS:
            found = self._operation(op, type, [self._value(id) for id in operands[2:]])
        elif op == Op.Load:
            found = self._load(operands, block, guards)
        elif op in (Op.CopyObject, Op.CopyLogical):
            found = self._value(operands[2])
        elif op == Op.CompositeExtract:
            found = _part(self._value(operands[2]), operands[3:])
        elif op == Op.CompositeConstruct:
            found = self._construct(type, operands[2:])
        elif op == Op.VectorShuffle:
            found = self._shuffle(operands)
        elif op == Op.ArrayLength:
            found = self._length(operands)
        elif op == Op.ExtInst and operands[2] in self._extended:
            found = self._extend(type, operands)
        elif op == Op.Phi and type.op == Op.TypeBool:
            found = self._short_circuit(operands, branches)
        tested = type.op == Op.TypeBool and (op in OPERATIONS or op in ANYTHING)
        if found is None and (tested or type.op == Op.TypeInt):
            found = self._make(UNKNOWN, type.width, type.signed, (operands[1],))
        return found

    def _make(self, op: int, width: int, signed: bool, args: tuple[int, ...]) -> int:
        node = ValueNode(int(op), width, signed, args)
        number = self._numbers.get(node)
        if number is None:
            number = self._numbers[node] = len(self.nodes)
            self.nodes.append(node)
        return number

    def _value(self, id: int) -> Value | None:
        value = self._values.get(id)
        if value is None:
            constants = self._declarations.constants
            type = constants.type_of(id)
            if type is None:
                return None
            whole = constants.integer(id)
            if whole is not None:
                value = self._constant(type, whole)
            elif type.op == Op.TypeVector:
                element = self._types[type.element]
                value = tuple(
                    None if each is None else self._constant(element, each) for each in constants.integers(id)
                )
            if value is not None:
                self._values[id] = value
        return value

    def _constant(self, type: Type, value: int) -> int:
        return self._make(CONSTANT, type.width, type.signed, (value,))

    def _operation(self, op: int, type: Type, args: list[Value | None]) -> Value | None:
        """A node, or one for each component of a vector."""
        if any(isinstance(each, tuple) for each in args):
            size = max(len(each) for each in args if isinstance(each, tuple))
            if type.op != Op.TypeVector or size != type.count:
                return None  # a bit cast between vectors of different lengths
            element = self._types[type.element]
            rows = [each if isinstance(each, tuple) else (each,) * size for each in args]
            if any(len(row) != size for row in rows):
                return None
            return tuple(self._operation(op, element, [row[at] for row in rows]) for at in range(size))
        pointer = type.op == Op.TypePointer and type.storage_class == StorageClass.PhysicalStorageBuffer
        if None in args or not (pointer or type.op in (Op.TypeInt, Op.TypeBool)):
            return None
        known = tuple(each for each in args if isinstance(each, int))
        if op in (Op.Bitcast, Op.ConvertPtrToU, Op.ConvertUToPtr):
            width = 64 if pointer else type.width
            return self._make(Op.Bitcast, width, type.signed, known) if self.nodes[known[0]].width == width else None
        return self._make(op, type.width, type.signed, known)

    def _extend(self, type: Type, operands: tuple[int, ...]) -> Value | None:
        args = [self._value(id) for id in operands[4:]]
        steps = EXTENDED.get(operands[3], ())
        if len(args) != len(steps) + 1 or type.op != Op.TypeInt or not all(isinstance(each, int) for each in args):
            return None
        made = args[0]
        for step, other in zip(steps, args[1:], strict=True):
            made = self._operation(step, type, [made, other])
        return made

    def _construct(self, type: Type, ids: tuple[int, ...]) -> Value | None:
        parts: list[Value | None] = []
        for each in map(self._value, ids):
            parts.extend(each if isinstance(each, tuple) and type.op == Op.TypeVector else (each,))
        return tuple(parts) if type.op != Op.TypeVector or len(parts) == type.count else None

    def _shuffle(self, operands: tuple[int, ...]) -> Value | None:
        left, right = self._value(operands[2]), self._value(operands[3])
        if not isinstance(left, tuple) or not isinstance(right, tuple):
            return None
        both = left + right
        return tuple(both[at] if at < len(both) else None for at in operands[4:])

    def _short_circuit(self, operands: tuple[int, ...], branches: dict[int, tuple[int, ...]]) -> Value | None:
        """`a && b` and `a || b` as branches: a block that computes b, and a phi of that and of what skipped it."""
        if len(operands) != 6:
            return None
        for skipped, above, computed, inside in (operands[2:], (*operands[4:], *operands[2:4])):
            branch = branches.get(above)
            condition, first, second = (self.node(id) for id in (branch[0] if branch else 0, skipped, computed))
            if branch is None or branch[1] != inside or None in (condition, first, second):
                continue
            assert condition is not None and first is not None and second is not None
            if first == condition or self.nodes[first] == ValueNode(CONSTANT, 0, False, (0,)):
                return self._make(Op.LogicalAnd, 0, False, (condition, second))
            if self.nodes[condition] == ValueNode(Op.LogicalNot, 0, False, (first,)):
                return self._make(Op.LogicalOr, 0, False, (first, second))
        return None

    def _load(self, operands: tuple[int, ...], block: int, guards: Guards) -> Value | None:
        pointer = self._pointers.get(operands[2])
        if pointer is None or None in pointer.path:
            return None
        path = tuple(each for each in pointer.path if each is not None)
        if pointer.root in self._stored:
            value, stored = self._stored[pointer.root]
            return _part(value, path) if guards.dominates(stored, block) else None
        type, storage = self._variables.get(pointer.root, (0, -1))
        if storage == StorageClass.Input:
            built_in = self._declarations.decorations(pointer.root).get(Decoration.BuiltIn)
            return _part(self._built_in(built_in, self._types[type]), path) if built_in in BUILT_INS else None
        if storage == StorageClass.PushConstant:
            return self._placed(PUSH, (), type, path, ())
        place = self._only_read(pointer.root, type, path)
        return None if place is None else self._placed(LOADED, place, type, path, (operands[1],))

    def _only_read(self, root: int, type: int, path: tuple[int, ...]) -> tuple[int, int] | None:
        """(set, binding) of a block that is no array of blocks, for a member that the shader does not write."""
        kind = self._declarations.variables[root].kind if root in self._declarations.variables else ""
        decorations = self._declarations.decorations(root)
        if kind not in BUFFERS or Decoration.Binding not in decorations or not path:
            return None
        if self._types[type].op != Op.TypeStruct:
            return None
        members = self._declarations.module.member_decorations
        if kind != UNIFORM_BUFFER and Decoration.NonWritable not in (*decorations, *members.get((type, path[0]), ())):
            return None
        return decorations.get(Decoration.DescriptorSet, 0), decorations[Decoration.Binding]

    def _built_in(self, built_in: int | None, type: Type) -> Value:
        if built_in == LOCAL_INVOCATION_INDEX:
            return self._local_index()
        of = self._types[type.element] if type.op == Op.TypeVector else type
        axes = [self._make(BUILT_IN, of.width, of.signed, (built_in or 0, axis)) for axis in range(type.count or 1)]
        return tuple(axes) if type.op == Op.TypeVector else axes[0]

    def _local_index(self) -> int:
        """LocalInvocationIndex as the specification defines it by LocalInvocationId."""
        if self._local_size is None:
            return self._make(UNKNOWN, 32, False, (LOCAL_INVOCATION_INDEX,))
        x, y, _ = self._local_size
        made = self._make(BUILT_IN, 32, False, (LOCAL_INVOCATION_ID, 0))
        for axis, size in ((1, x), (2, x * y)):
            by = self._make(CONSTANT, 32, False, (size,))
            part = self._make(Op.IMul, 32, False, (self._make(BUILT_IN, 32, False, (LOCAL_INVOCATION_ID, axis)), by))
            made = self._make(Op.IAdd, 32, False, (made, part))
        return made

    def _placed(
        self, op: int, place: tuple[int, ...], type: int, path: tuple[int, ...], load: tuple[int, ...]
    ) -> Value | None:
        """Gives the value of a member of the push constants or of a block, with leaves (*place, offset, *load); None
        where its offset is not known."""
        offset = 0
        for index in path:
            held = self._types[type]
            if held.op == Op.TypeStruct and 0 <= index < len(held.members):
                member = held.members[index]
                if member.offset is None:
                    return None
                offset, type = offset + member.offset, member.type
            elif held.op == Op.TypeVector or held.op in ARRAYS:
                stride = held.stride if held.op in ARRAYS else self._types[held.element].size
                count = FAR if held.op == Op.TypeRuntimeArray else held.count or 0
                if stride is None or not 0 <= index < count:
                    return None
                offset, type = offset + index * stride, held.element
            else:
                return None
        return self._leaf(self._types[type], lambda at: (op, (*place, offset + at, *load)), 0)

    def _leaf(self, type: Type, named: Callable[[int], tuple[int, tuple[int, ...]]], at: int) -> Value | None:
        """A scalar, a device address or a vector in memory; `named` gives the leaf some bytes on."""
        if type.op == Op.TypeVector:
            element = self._types[type.element]
            return tuple(self._leaf(element, named, each * (element.size or 0)) for each in range(type.count or 0))
        op, args = named(at)
        if type.op == Op.TypePointer and type.storage_class == StorageClass.PhysicalStorageBuffer:
            return self._make(op, 64, False, args)
        return self._make(op, type.width, type.signed, args) if type.op == Op.TypeInt else None

    def _length(self, operands: tuple[int, ...]) -> Value | None:
        """OpArrayLength of a block that is named directly."""
        pointer = self._pointers.get(operands[2])
        if pointer is None or len(pointer.path) > 1 or None in pointer.path:
            return None
        decorations = self._declarations.decorations(pointer.root)
        block = self._types[self._types.inside_arrays(self._variables.get(pointer.root, (operands[0], 0))[0])[0]]
        if Decoration.Binding not in decorations or operands[3] >= len(block.members):
            return None
        member = block.members[operands[3]]
        stride = self._types[member.type].stride
        if member.offset is None or not stride:
            return None
        place = (decorations.get(Decoration.DescriptorSet, 0), decorations[Decoration.Binding], *(pointer.path or (0,)))
        type = self._types[operands[0]]
        args = tuple(each for each in (*place, member.offset, stride) if each is not None)
        return self._make(LENGTH, type.width, type.signed, args)


def _part(value: Value | None, path: tuple[int, ...]) -> Value | None:
    for index in path:
        if not isinstance(value, tuple) or not 0 <= index < len(value):
            return None
        value = value[index]
    return value


def _stored_once(body: list[Instruction]) -> set[int]:
    """Variables of a function that are stored to once as a whole, and otherwise only loaded from."""
    stores: dict[int, int] = {}
    chains: dict[int, int] = {}
    """The variable into which each access chain points."""
    lost: set[int] = set()
    for op, operands in body:
        if op == Op.Variable:
            stores[operands[1]] = int(len(operands) > 3)
        elif op == Op.Store:
            lost.update(chains.get(id, id) for id in operands[1:2])
            if operands[0] in chains:
                lost.add(chains[operands[0]])
            elif operands[0] in stores:
                stores[operands[0]] += 1
        elif op in (Op.AccessChain, Op.InBoundsAccessChain):
            root = chains.get(operands[2], operands[2])
            if root in stores:
                chains[operands[1]] = root
        elif op != Op.Load:
            lost.update(chains.get(id, id) for id in operands)
    return {id for id, count in stores.items() if count == 1} - lost
