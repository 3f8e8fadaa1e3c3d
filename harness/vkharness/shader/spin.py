"""Makes a shader slow without changing what it leaves: invocations spin before they store.

The spin is a loop of dependent operations (xorshift32 by George Marsaglia) on a state that is never zero. What a shader
stores is what it would store, chosen by whether the state became zero. No compiler can know that it does not, so that
none can leave the loop out or store before it. An invocation spins once.
"""

from __future__ import annotations

import struct

from vkharness.shader.assembler import Assembler
from vkharness.shader.instrument import MEMORY
from vkharness.shader.opcodes import Decoration, Op, StorageClass
from vkharness.shader.spirv import Instruction, SpirvError, parse
from vkharness.shader.types import ANY, Type
from vkharness.shader.variables import Declarations, declare

ROUNDS = 8192
"""Rounds of six operations, each of which needs the one before: a tenth of a millisecond on a GPU."""
VERTEX, FRAGMENT, COMPUTE = 0, 4, 5
"""Execution models."""
SEEDS = {VERTEX: 42, FRAGMENT: 15, COMPUTE: 28}
"""The built-in input that the spin begins with, by execution model: VertexIndex, FragCoord, GlobalInvocationId."""
STORED: dict[int, tuple[int, int]] = {Op.Store: (0, 1), Op.ImageWrite: (0, 2), Op.AtomicStore: (0, 3)}
STORED |= dict.fromkeys((Op.AtomicExchange, *range(Op.AtomicIAdd, Op.AtomicXor + 1)), (2, 5))
"""Instructions that write to memory: the operands that say where, and what."""
VISIBLE = MEMORY | {StorageClass.Output}
"""Storage classes of what others see."""
WITH_ALL_VARIABLES = 1 << 16 | 4 << 8
"""The version of SPIR-V from which on entry points name all variables that they use."""
SCALARS = (Op.TypeInt, Op.TypeFloat)


def spinning(code: bytes, at_entry: bool = False) -> bytes:
    """The module, with a spin before the first store of each invocation; `at_entry`: before all that it does.

    Raises SpirvError for a module that has not one entry point of a vertex, fragment or compute shader, or that stores
    nothing that others see.
    """
    try:
        return _Spinner(code).run(at_entry)
    except (LookupError, ValueError, TypeError, AttributeError, struct.error) as error:
        raise SpirvError(f"SPIR-V that is not well formed: {type(error).__name__}: {error}") from None


class _Spinner:
    def __init__(self, code: bytes) -> None:
        module = parse(code)
        if len(module.entry_points) != 1 or module.entry_points[0].model not in SEEDS:
            raise SpirvError("not one entry point of a vertex, fragment or compute shader")
        (self._point,) = module.entry_points
        self._declared: Declarations = declare(module, {})
        self._asm = asm = Assembler(code)
        self._type_of = {
            operands[1]: operands[0] for op, operands in asm.declarations if Op.ConstantTrue <= op <= Op.Variable
        }
        self._uint, self._bool = asm.type(Op.TypeInt, 32, 0), asm.type(Op.TypeBool)
        self._nulls: dict[int, int] = {}
        self._state = asm.id()
        self._spin = asm.id()
        to_state = asm.type(Op.TypePointer, StorageClass.Private, self._uint)
        asm.declarations.append((Op.Variable, (to_state, self._state, StorageClass.Private, self._null(self._uint))))
        self._seed = self._built_in()
        self._name_variables()

    def run(self, at_entry: bool) -> bytes:
        """Spins, and the function that they call."""
        asm = self._asm
        functions, asm.functions = asm.functions, []
        spun = 0
        current, is_begun = 0, True
        for op, operands in functions:
            if len(operands) > 1 and operands[0] in self._declared.types:
                self._type_of[operands[1]] = operands[0]
            if op == Op.Function:
                current, is_begun = operands[1], False
            elif not is_begun and op not in (Op.FunctionParameter, Op.Label, Op.Variable, Op.Line, Op.NoLine):
                is_begun = True
                if at_entry and current == self._point.function:
                    self._call()
            made = self._stored(op, operands)
            spun += made is not None
            asm.functions.append((op, made or operands))
        if not spun:
            raise SpirvError("nothing is stored that others see")
        self._define()
        return asm.assemble()

    def _stored(self, op: int, operands: tuple[int, ...]) -> tuple[int, ...] | None:
        """The operands of an instruction that stores what is chosen after a spin; None for any other."""
        if op not in STORED:
            return None
        place, at = STORED[op]
        if op != Op.ImageWrite and self._pointee_class(operands[place]) not in VISIBLE:
            return None
        type = self._type_of.get(operands[at], 0)
        held = self._held(type)
        if held.op not in SCALARS and not (held.op == Op.TypeVector and self._scalar(held).op in SCALARS):
            return None
        chosen = self._choose(self._call(), type, held, operands[at])
        return (*operands[:at], chosen, *operands[at + 1 :])

    def _scalar(self, vector: Type) -> Type:
        return self._declared.types[vector.element]

    def _pointee_class(self, pointer: int) -> int:
        return self._held(self._type_of.get(pointer, 0)).storage_class

    def _held(self, type: int) -> Type:
        if type not in self._declared.types:
            return ANY
        return self._declared.types[type]

    def _call(self) -> int:
        """Calls the spin; the id of whether the state is zero."""
        return self._emit(Op.FunctionCall, self._bool, self._spin)

    def _choose(self, is_zero: int, type: int, held: Type, value: int) -> int:
        if held.op == Op.TypeVector:
            count = held.count or 0
            several = self._asm.type(Op.TypeVector, self._bool, count)
            is_zero = self._emit(Op.CompositeConstruct, several, *[is_zero] * count)
        return self._emit(Op.Select, type, is_zero, self._null(type), value)

    def _null(self, type: int) -> int:
        if type not in self._nulls:
            self._nulls[type] = self._asm.id()
            self._asm.declarations.append((Op.ConstantNull, (type, self._nulls[type])))
        return self._nulls[type]

    def _emit(self, op: int, type: int, *operands: int) -> int:
        made = self._asm.id()
        self._asm.functions.append((op, (type, made, *operands)))
        return made

    def _built_in(self) -> int:
        """The variable of the built-in input, added where the module has none."""
        asm, wanted = self._asm, SEEDS[self._point.model]
        for op, operands in asm.declarations:
            is_input = op == Op.Variable and operands[2] == StorageClass.Input
            if is_input and self._declared.decorations(operands[1]).get(Decoration.BuiltIn) == wanted:
                return operands[1]
        scalar = asm.type(Op.TypeFloat, 32) if self._point.model == FRAGMENT else self._uint
        count = {VERTEX: 1, FRAGMENT: 4, COMPUTE: 3}[self._point.model]
        type = asm.type(Op.TypeVector, scalar, count) if count > 1 else asm.type(Op.TypeInt, 32, 1)
        made = asm.id()
        pointer = asm.type(Op.TypePointer, StorageClass.Input, type)
        asm.declarations.append((Op.Variable, (pointer, made, StorageClass.Input)))
        asm.annotations.append((Op.Decorate, (made, Decoration.BuiltIn, wanted)))
        return made

    def _name_variables(self) -> None:
        """Adds the variables to the interface of the entry point, as far as its version of SPIR-V asks for."""
        asm = self._asm
        added = [self._seed] + ([self._state] if asm.version >= WITH_ALL_VARIABLES else [])
        new = tuple(each for each in added if each not in self._point.interface)
        asm.preamble[:] = [(op, (*held, *new) if op == Op.EntryPoint else held) for op, held in asm.preamble]

    def _first_word(self) -> list[Instruction]:
        """Instructions of which the last has the first word of the built-in input."""
        asm, made = self._asm, list[Instruction]()
        pointer = next(
            operands[0] for op, operands in asm.declarations if op == Op.Variable and operands[1] == self._seed
        )
        type = next(held[2] for op, held in asm.declarations if op == Op.TypePointer and held[0] == pointer)
        word = asm.id()
        made.append((Op.Load, (type, word, self._seed)))
        vector = next((held for op, held in asm.declarations if op == Op.TypeVector and held[0] == type), None)
        if vector is not None:
            type, whole, word = vector[1], word, asm.id()
            made.append((Op.CompositeExtract, (type, word, whole, 0)))
        if type != self._uint:
            whole, word = word, asm.id()
            made.append((Op.Bitcast, (self._uint, word, whole)))
        return made

    def _define(self) -> None:
        """Adds the function: it spins where this invocation has not, and returns whether the state is zero."""
        asm, uint = self._asm, self._uint
        zero, one, rounds = self._null(uint), asm.constant(uint, 1), asm.constant(uint, ROUNDS)
        entry, begin, loop, body, step, after, end = (asm.id() for _ in range(7))
        held, fresh, seed, state, number, goes_on, left, is_zero = (asm.id() for _ in range(8))
        made: list[Instruction] = [
            (Op.Function, (self._bool, self._spin, 0, asm.type(Op.TypeFunction, self._bool))),
            (Op.Label, (entry,)),
            (Op.Load, (uint, held, self._state)),
            (Op.IEqual, (self._bool, fresh, held, zero)),
            (Op.SelectionMerge, (end, 0)),
            (Op.BranchConditional, (fresh, begin, end)),
            (Op.Label, (begin,)),
            *(first := self._first_word()),
            (Op.BitwiseOr, (uint, seed, first[-1][1][1], one)),
            (Op.Branch, (loop,)),
            (Op.Label, (loop,)),
        ]
        rounds_made, last = self._round(state)
        following = asm.id()
        made += [
            (Op.Phi, (uint, state, seed, begin, last, step)),
            (Op.Phi, (uint, number, zero, begin, following, step)),
            (Op.ULessThan, (self._bool, goes_on, number, rounds)),
            (Op.LoopMerge, (after, step, 0)),
            (Op.BranchConditional, (goes_on, body, after)),
            (Op.Label, (body,)),
            *rounds_made,
            (Op.Branch, (step,)),
            (Op.Label, (step,)),
            (Op.IAdd, (uint, following, number, one)),
            (Op.Branch, (loop,)),
            (Op.Label, (after,)),
            (Op.Store, (self._state, state)),
            (Op.Branch, (end,)),
            (Op.Label, (end,)),
            (Op.Load, (uint, left, self._state)),
            (Op.IEqual, (self._bool, is_zero, left, zero)),
            (Op.ReturnValue, (is_zero,)),
            (Op.FunctionEnd, ()),
        ]
        asm.functions += made

    def _round(self, state: int) -> tuple[list[Instruction], int]:
        """One round on a state, and the id of the next one."""
        asm, made = self._asm, list[Instruction]()
        for shift, by in ((Op.ShiftLeftLogical, 13), (Op.ShiftRightLogical, 17), (Op.ShiftLeftLogical, 5)):
            moved, mixed = asm.id(), asm.id()
            made.append((shift, (self._uint, moved, state, asm.constant(self._uint, by))))
            made.append((Op.BitwiseXor, (self._uint, mixed, state, moved)))
            state = mixed
        return made, state
