"""Makes a shader note what it accesses: before each load, store and atomic of a resource it notes where.

A note is five words in a buffer of ours: the number of the instruction, the element of the array of descriptors, and
the byte offset in the block, or up to three coordinates of a texel. The buffer is reached by its device address, which
stands in the module as a constant, so that neither the pipeline's layout nor its descriptors change.

Otherwise the module does the same as before. A shader that reaches memory in a way that is not followed here is not
instrumented: half of the notes would be worse than none.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from vkharness.shader.accesses import READ, READ_MODIFY_WRITE, WRITE
from vkharness.shader.assembler import Assembler, text
from vkharness.shader.opcodes import Decoration, Op, StorageClass, is_plain, op_name
from vkharness.shader.spirv import Instruction, SpirvError, parse
from vkharness.shader.types import ARRAYS, Type
from vkharness.shader.variables import BUFFERS, HOLDER, RESOURCES, SAMPLER, UNKNOWN, Declarations, Variable, declare

WORDS = 5
"""Words of a note."""
HEADER = 16
"""Bytes before the first note: the number of words that were noted."""
ADDRESSES, PHYSICAL_64, VULKAN_MODEL = 5347, 5348, 3
"""PhysicalStorageBufferAddresses, PhysicalStorageBuffer64, and the Vulkan memory model."""
EXTENSION = "SPV_KHR_physical_storage_buffer"
DEVICE, QUEUE_FAMILY = 1, 5
"""Scopes of atomics."""
ALIGNED = 2
"""A memory operand."""
BYTES, TEXEL, ANYWHERE = "bytes", "texel", "anywhere"
"""The meaning of the last three words of a note: an offset in bytes, coordinates, or nothing."""

SAMPLES = frozenset({*range(Op.ImageSampleImplicitLod, Op.ImageFetch), 96, 97})
TEXELS = {Op.ImageFetch: (2, READ), Op.ImageRead: (2, READ), Op.ImageWrite: (0, WRITE)}
"""Instructions on one texel: the operand that is the image, before its coordinates, and the access."""
POINTERS = {
    Op.Load: ((2, READ),),
    Op.Store: ((0, WRITE),),
    Op.CopyMemory: ((0, WRITE), (1, READ)),
    Op.AtomicLoad: ((2, READ),),
    Op.AtomicStore: ((0, WRITE),),
    Op.AtomicFMinEXT: ((2, READ_MODIFY_WRITE),),
    Op.AtomicFMaxEXT: ((2, READ_MODIFY_WRITE),),
    Op.AtomicFAddEXT: ((2, READ_MODIFY_WRITE),),
} | dict.fromkeys(range(Op.AtomicExchange, Op.AtomicXor + 1), ((2, READ_MODIFY_WRITE),))
"""Instructions that access what a pointer operand points to."""
CHAINS = (Op.AccessChain, Op.InBoundsAccessChain)
MEMORY = frozenset(
    {
        StorageClass.UniformConstant,
        StorageClass.Uniform,
        StorageClass.StorageBuffer,
        StorageClass.Image,
        StorageClass.PhysicalStorageBuffer,
    }
)
"""Storage classes of pointers to memory of resources."""


@dataclass(frozen=True, slots=True)
class AccessSite:
    """One instruction that accesses a resource. Its number is its place in `Instrumented.sites`, plus `first`."""

    set: int
    binding: int
    kind: str
    """As in `vkharness.shader.reflect.ResourceUse`."""
    flags: int
    """READ, WRITE or READ_MODIFY_WRITE."""
    form: str
    size: int
    """Bytes that it accesses, for `BYTES`."""


@dataclass(frozen=True, slots=True)
class Instrumented:
    """A module that notes its accesses."""

    code: bytes
    sites: tuple[AccessSite, ...]


def instrument(code: bytes, address: int, capacity: int, first: int) -> Instrumented:
    """The module with notes into the buffer at a device address.

    `capacity` is the number of words that the buffer has room for behind its `HEADER`; more notes are only counted.
    `first` is the number of the first site. Raises SpirvError for a module that cannot be followed.
    """
    try:
        return _Instrumenter(code, address, capacity, first).run()
    except (LookupError, ValueError, TypeError, ArithmeticError, AttributeError, struct.error) as error:
        raise SpirvError(f"SPIR-V that is not well formed: {type(error).__name__}: {error}") from None


@dataclass(frozen=True, slots=True)
class _Place:
    """The target of a pointer or handle: a variable, and the ids of the indices into it."""

    variable: Variable
    indices: tuple[int, ...] = ()
    coordinate: int = 0
    """The id of the coordinates, for a pointer to a texel."""


class _Instrumenter:
    def __init__(self, code: bytes, address: int, capacity: int, first: int) -> None:
        self._declared: Declarations = declare(parse(code), {})
        self._asm = Assembler(code)
        self._first = first
        self._sites: list[AccessSite] = []
        self._places: dict[int, _Place] = {
            id: _Place(variable) for id, variable in self._declared.variables.items() if variable.kind in RESOURCES
        }
        if any(each.kind in (UNKNOWN, HOLDER) for each in self._declared.variables.values()):
            raise SpirvError("a variable that holds pointers or handles")
        self._type_of = {
            operands[1]: operands[0] for op, operands in self._asm.declarations if Op.ConstantTrue <= op <= Op.Variable
        }
        self._uint = self._asm.type(Op.TypeInt, 32, 0)
        self._constants: dict[int, int] = {}
        self._notes = _NoteFunction(self._asm, self._uint, address, capacity)

    def run(self) -> Instrumented:
        """Notes before each access, and the function that they call."""
        functions, self._asm.functions = self._asm.functions, []
        for op, operands in functions:
            if len(operands) > 1 and operands[0] in self._declared.types:
                self._type_of[operands[1]] = operands[0]
            self._instruction(op, operands)
            self._asm.functions.append((op, operands))
        self._notes.define()
        return Instrumented(self._asm.assemble(), tuple(self._sites))

    def _instruction(self, op: int, operands: tuple[int, ...]) -> None:
        if op in CHAINS and operands[2] in self._places:
            base = self._places[operands[2]]
            self._places[operands[1]] = _Place(base.variable, (*base.indices, *operands[3:]))
        elif op in (Op.CopyObject, Op.Image, Op.SampledImage) and operands[2] in self._places:
            self._places[operands[1]] = self._places[operands[2]]
        elif op == Op.ImageTexelPointer and operands[2] in self._places:
            base = self._places[operands[2]]
            self._places[operands[1]] = _Place(base.variable, base.indices, operands[3])
        elif op in POINTERS:
            for at, flags in POINTERS[op]:
                self._pointer(operands, at, flags)
        elif op in TEXELS:
            at, flags = TEXELS[Op(op)]
            self._texel(self._image(op, operands[at]), operands[at + 1], flags)
        elif op in SAMPLES:
            self._note(self._image(op, operands[2]), READ, ANYWHERE, 0, ())
        elif op != Op.ArrayLength and not is_plain(op):
            self._refuse(op, operands)

    def _refuse(self, op: int, operands: tuple[int, ...]) -> None:
        """Raises SpirvError when an instruction that is not followed could reach a resource."""
        if op in (Op.Variable, Op.Function, Op.FunctionEnd, Op.Label, Op.Phi, Op.ExtInst) and not (
            set(operands) & self._places.keys()
        ):
            return
        if set(operands) & self._places.keys() or (op in CHAINS and self._in_memory(operands[0])):
            raise SpirvError(f"{op_name(op)} of a resource")

    def _in_memory(self, type: int) -> bool:
        types = self._declared.types
        return type in types and types[type].op == Op.TypePointer and types[type].storage_class in MEMORY

    def _pointer(self, operands: tuple[int, ...], at: int, flags: int) -> None:
        id = operands[at]
        place = self._places.get(id)
        if place is None:
            if self._in_memory(self._type_of.get(id, 0)):
                raise SpirvError("a pointer of which the resource is not known")
            return
        if place.coordinate:
            self._texel(place, place.coordinate, flags)
        elif place.variable.kind in BUFFERS:
            self._block(place, flags)
        elif flags == READ:
            self._places[operands[1]] = place  # a handle
        else:
            raise SpirvError("a write of a handle")

    def _image(self, op: int, id: int) -> _Place:
        if id not in self._places:
            raise SpirvError(f"{op_name(op)} of an image that is not known")
        return self._places[id]

    def _texel(self, place: _Place, coordinate: int, flags: int) -> None:
        type = self._declared.types[self._type_of[coordinate]]
        count = type.count or 1 if type.op == Op.TypeVector else 1
        scalar = type.element if type.op == Op.TypeVector else type.id
        words = []
        for at in range(min(3, count)):
            part = coordinate
            if type.op == Op.TypeVector:
                part = self._emit(Op.CompositeExtract, scalar, coordinate, at)
            words.append(self._unsigned(part, scalar))
        self._note(place, flags, TEXEL, 0, tuple(words))

    def _block(self, place: _Place, flags: int) -> None:
        """Notes the byte offset that the indices of an access chain lead to."""
        types = self._declared.types
        matrix, fixed = 0, 0
        dynamic: list[int] = []
        indices = list(place.indices)[self._depth(place.variable) :]
        type = types[types.inside_arrays(place.variable.type)[0]]
        for index in indices:
            if type.op == Op.TypeStruct:
                number = self._declared.constants.integer(index)
                if number is None or not 0 <= number < len(type.members):
                    raise SpirvError("an index of a structure that is no constant")
                member = type.members[number]
                if member.offset is None:
                    raise SpirvError("a structure without offsets")
                fixed, matrix, type = fixed + member.offset, member.matrix, types[member.type]
                continue
            stride, matrix = self._stride(type, matrix)
            dynamic.append(self._times(self._unsigned(index, self._type_of[index]), stride))
            type = types[type.element]
        size = types.size(type.id, matrix)
        if type.op == Op.TypeVector and matrix < 0:
            size = -matrix * ((type.count or 1) - 1) + (types[type.element].size or 0)
        if size is None:
            raise SpirvError("an access of unknown size")
        offset = self._constant(fixed)
        for part in dynamic:
            offset = self._emit(Op.IAdd, self._uint, offset, part)
        self._note(place, flags, BYTES, size, (offset,))

    def _stride(self, type: Type, matrix: int) -> tuple[int, int]:
        """Bytes from one part of an array, matrix or vector to the next, and the matrix layout inside of the part."""
        types = self._declared.types
        scalar = types[type.element].size
        if type.op in ARRAYS and type.stride is not None:
            return type.stride, matrix
        if type.op == Op.TypeMatrix and matrix > 0:
            return matrix, 0
        if type.op == Op.TypeMatrix and matrix < 0:
            component = types[types[type.element].element].size
            if component is not None:
                return component, matrix
        if type.op == Op.TypeVector and scalar is not None:
            return (-matrix if matrix < 0 else scalar), 0
        raise SpirvError("an index into a type without layout")

    def _depth(self, variable: Variable) -> int:
        """The number of indices that choose a descriptor."""
        types, id, depth = self._declared.types, variable.type, 0
        while types[id].op in ARRAYS:
            id, depth = types[id].element, depth + 1
        return depth

    def _element(self, place: _Place) -> int:
        """The id of the flattened index in the array of descriptors."""
        types, id = self._declared.types, place.variable.type
        element = self._constant(0)
        for index in place.indices[: self._depth(place.variable)]:
            if types[id].count:
                element = self._times(element, types[id].count or 0)
            element = self._emit(Op.IAdd, self._uint, element, self._unsigned(index, self._type_of[index]))
            id = types[id].element
        return element

    def _unsigned(self, id: int, type: int) -> int:
        held = self._declared.types[type]
        if held.op != Op.TypeInt or held.width != 32:
            raise SpirvError("an index that has not 32 bits")
        return self._emit(Op.Bitcast, self._uint, id) if held.signed else id

    def _times(self, id: int, factor: int) -> int:
        return self._emit(Op.IMul, self._uint, id, self._constant(factor))

    def _constant(self, value: int) -> int:
        if value not in self._constants:
            self._constants[value] = self._asm.constant(self._uint, value)
        return self._constants[value]

    def _emit(self, op: int, type: int, *operands: int) -> int:
        made = self._asm.id()
        self._asm.functions.append((op, (type, made, *operands)))
        return made

    def _note(self, place: _Place, flags: int, form: str, size: int, words: tuple[int, ...]) -> None:
        if place.variable.kind == SAMPLER:
            return
        decorations = self._declared.decorations(place.variable.id)
        if Decoration.DescriptorSet not in decorations or Decoration.Binding not in decorations:
            raise SpirvError("a resource without DescriptorSet or Binding")
        number = self._first + len(self._sites)
        where = (decorations[Decoration.DescriptorSet], decorations[Decoration.Binding])
        self._sites.append(AccessSite(*where, place.variable.kind, flags, form, size))
        arguments = (self._constant(number), self._element(place), *words)
        padding = (self._constant(0),) * (WORDS - len(arguments))
        self._asm.functions.append(self._notes.call((*arguments, *padding)))


class _NoteFunction:
    """The function that writes one note, and what it needs."""

    def __init__(self, asm: Assembler, uint: int, address: int, capacity: int) -> None:
        self._asm, self._uint, self._capacity = asm, uint, capacity
        self._id = asm.id()
        asm.capabilities.append((Op.Capability, (ADDRESSES,)))
        if not any(operands == text(EXTENSION) for _, operands in asm.extensions):
            asm.extensions.append((Op.Extension, text(EXTENSION)))
        at = next((at for at, (op, _) in enumerate(asm.preamble) if op == Op.MemoryModel), None)
        if at is None or len(asm.preamble[at][1]) < 2:
            raise SpirvError("SPIR-V without a memory model")
        model = asm.preamble[at][1][1]
        asm.preamble[at] = (Op.MemoryModel, (PHYSICAL_64, model))
        self._scope = asm.constant(uint, QUEUE_FAMILY if model == VULKAN_MODEL else DEVICE)
        self._void = asm.type(Op.TypeVoid)
        self._bool = asm.type(Op.TypeBool)
        self._function = asm.type(Op.TypeFunction, self._void, *[uint] * WORDS)
        words = asm.declare(Op.TypeRuntimeArray, uint)
        block = asm.declare(Op.TypeStruct, uint, words)
        asm.annotations += [
            (Op.Decorate, (words, Decoration.ArrayStride, 4)),
            (Op.Decorate, (block, Decoration.Block)),
            (Op.MemberDecorate, (block, 0, Decoration.Offset, 0)),
            (Op.MemberDecorate, (block, 1, Decoration.Offset, HEADER)),
        ]
        self._to_block = asm.declare(Op.TypePointer, StorageClass.PhysicalStorageBuffer, block)
        self._to_word = asm.declare(Op.TypePointer, StorageClass.PhysicalStorageBuffer, uint)
        pair = asm.type(Op.TypeVector, uint, 2)
        halves = (asm.constant(uint, address), asm.constant(uint, address >> 32))
        self._address = asm.id()
        asm.declarations.append((Op.ConstantComposite, (pair, self._address, *halves)))
        numbers = (0, 1, WORDS, max(0, capacity - WORDS), *range(2, WORDS))
        self._numbers = {number: asm.constant(uint, number) for number in dict.fromkeys(numbers)}

    def call(self, arguments: tuple[int, ...]) -> Instruction:
        """One call of it."""
        return (Op.FunctionCall, (self._void, self._asm.id(), self._id, *arguments))

    def define(self) -> None:
        """Adds the function: it takes the next words of the buffer, and writes there where there is room."""
        asm, number = self._asm, self._numbers
        ids = [asm.id() for _ in range(8)]
        block, count, begin, fits, entry, write, end, _ = ids
        parameters = [asm.id() for _ in range(WORDS)]
        made: list[Instruction] = [(Op.Function, (self._void, self._id, 0, self._function))]
        made += [(Op.FunctionParameter, (self._uint, each)) for each in parameters]
        made += [
            (Op.Label, (entry,)),
            (Op.Bitcast, (self._to_block, block, self._address)),
            (Op.AccessChain, (self._to_word, count, block, number[0])),
            (Op.AtomicIAdd, (self._uint, begin, count, self._scope, number[0], number[WORDS])),
            (Op.ULessThanEqual, (self._bool, fits, begin, number[max(0, self._capacity - WORDS)])),
            (Op.SelectionMerge, (end, 0)),
            (Op.BranchConditional, (fits, write, end)),
            (Op.Label, (write,)),
        ]
        for at, each in enumerate(parameters):
            place, pointer = asm.id(), asm.id()
            made += [
                (Op.IAdd, (self._uint, place, begin, number[at])),
                (Op.AccessChain, (self._to_word, pointer, block, number[1], place)),
                (Op.Store, (pointer, each, ALIGNED, 4)),
            ]
        made += [(Op.Branch, (end,)), (Op.Label, (end,)), (Op.Return, ()), (Op.FunctionEnd, ())]
        asm.functions += made
