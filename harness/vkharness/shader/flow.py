"""Follows pointers and handles through the call tree of an entry point to the instructions that use them.

Branches are not analysed: every instruction of a function that the call tree contains counts ("Static Use" in the
Shaders chapter of the Vulkan specification). Where a value may refer to several resources (select, phi, function
parameters) each counts. An instruction that the reader does not know counts as a read and a write of each resource
that it names, and is reported as unmodelled; so is memory reached through addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vkharness.shader.accesses import READ, READ_MODIFY_WRITE, WRITE, Conditions, ShaderAccesses
from vkharness.shader.guards import Guards
from vkharness.shader.opcodes import MATCHES_IMAGES, Op, StorageClass, is_plain, op_name
from vkharness.shader.pointers import EXACT, Ref, any_element, step, widen
from vkharness.shader.spirv import Instruction, SpirvError
from vkharness.shader.values import ValueNode, Values
from vkharness.shader.variables import (
    ADDRESS,
    BUFFERS,
    HOLDER,
    RESOURCES,
    UNKNOWN,
    Declarations,
    Variable,
    make_variable,
)

Operands = tuple[int, ...]
Size = tuple[int, int, int]
Refs = tuple[Ref, ...]

BASE_WORK = 200_000
WORK_PER_INSTRUCTION = 16
MODF, FREXP = 35, 51
"""The instructions of GLSL.std.450 that store through a pointer operand."""


def follow(
    declarations: Declarations, function: int, local_size: Size | None
) -> tuple[ShaderAccesses, list[ValueNode], list[int]]:
    """Gives the accesses in the call tree of one function, the nodes that they name, and the ids of its functions.

    Raises SpirvError for recursion or a missing function.
    """
    flow = _Flow(declarations, function, local_size)
    return flow.run(), flow.values.nodes, flow.order


class _Flow:
    def __init__(self, declarations: Declarations, function: int, local_size: Size | None) -> None:
        self.declarations = declarations
        self.types = declarations.types
        self.accesses = ShaderAccesses(declarations)
        self.functions = declarations.module.functions
        self.order = call_order(declarations, function)
        self.variables = dict(declarations.variables)
        # Ids are unique in a module, so one map serves all functions; a parameter collects what all callers pass.
        self.refs: dict[int, Refs] = {
            variable.id: (Ref(variable.id, 0, variable.type, False, 0, EXACT, 0),)
            for variable in declarations.variables.values()
        }
        self.held: dict[int, Refs] = {}
        self.returned: dict[int, Refs] = {}
        self.function = self.entry = function
        self.block = self.number = 0
        self.values = Values(declarations, local_size)
        self.guards = {id: Guards(self.functions[id].body) for id in self.order}
        for id in self.order:
            self.values.read(self.functions[id], self.guards[id])
        self.kept: dict[tuple[int, int], tuple[Conditions, bool]] = {}
        self.again = False
        self.work = BASE_WORK + WORK_PER_INSTRUCTION * sum(len(self.functions[id].body) for id in self.order)
        self.physical = {
            operands[0]
            for op, operands in declarations.module.declarations
            if op == Op.TypePointer and operands[1] == StorageClass.PhysicalStorageBuffer
        }

    def run(self) -> ShaderAccesses:
        """Callers come before callees, so one round does unless a pointer is returned, stored, or meets a phi."""
        self.again = True
        while self.again:
            self.again = False
            self.accesses.touches.clear()
            for function in self.order:
                self.function = function
                for number, (op, operands) in enumerate(self.functions[function].body):
                    self.number = number
                    if op == Op.Label:
                        self.block = operands[0]
                    self._instruction(op, operands)
        return self.accesses

    def _instruction(self, op: int, operands: Operands) -> None:
        self._spend(1)
        handler = HANDLERS.get(op)
        if handler is not None:
            handler(self, op, operands)
        elif not is_plain(op):
            self._caution(op_name(op), operands)
        if self.physical and len(operands) > 1 and operands[0] in self.physical and op not in PASSES_POINTERS:
            self._addressed(op, operands)

    def _addressed(self, op: int, operands: Operands) -> None:
        """A pointer to memory behind a device address. It is not followed when its value comes from no known place."""
        if self.refs.get(operands[1]):
            return
        if op == Op.Load and any(self.variables[ref.variable].kind == HOLDER for ref in self.of(operands[2])):
            return
        node = self.values.address(operands[1])
        if node is None and op in (Op.Bitcast, Op.ConvertUToPtr):
            node = self.values.address(operands[2])
        if node is None:
            self._note("PhysicalStorageBuffer")
            return
        type = self.types[operands[0]].element
        made = Variable(-1 - node, ADDRESS, type, 1, False)
        self.variables[made.id] = made
        self.refs[operands[1]] = (Ref(made.id, node, type, True, 0, EXACT, 0),)

    def _spend(self, steps: int) -> None:
        self.work -= steps
        if self.work < 0:
            raise SpirvError("SPIR-V passes pointers around in too many ways to follow")

    def _note(self, what: str) -> None:
        self.accesses.unmodelled[what] = None

    def of(self, id: int) -> Refs:
        """Gives the references (into variables) that the pointer or handle `id` may be; () for a plain value."""
        refs = self.refs.get(id, ())
        if refs and id in self.declarations.variables:
            self.accesses.referenced.add(id)
            if self.variables[id].kind == UNKNOWN:
                self._note("resource of an unknown type")
        self._spend(len(refs))
        return refs

    def _grow(self, held: dict[int, Refs], key: int, refs: Iterable[Ref]) -> bool:
        """Add to a set of references; True when it grew."""
        before = held.get(key, ())
        after = tuple(dict.fromkeys((*before, *refs)))
        self._spend(len(after))
        held[key] = after
        return len(after) > len(before)

    def _use(self, refs: Refs, flags: int) -> None:
        conditions, certain = self._guard()
        self.accesses.site = self.function, self.number
        for ref in refs:
            self.accesses.add(self.variables[ref.variable], ref, flags, conditions, certain and len(refs) == 1)

    def _guard(self) -> tuple[Conditions, bool]:
        """Gives the conditions under which this instruction runs, and whether it runs for sure where they hold."""
        found = self.kept.get((self.function, self.block))
        if found is None:
            guard = self.guards[self.function].of(self.block)
            nodes = [(self.values.node(id), wanted) for id, wanted in guard.conditions]
            known = tuple((node, wanted) for node, wanted in nodes if node is not None)
            certain = guard.certain and len(known) == len(nodes) and self.function == self.entry
            found = self.kept[self.function, self.block] = known, certain
        return found

    def _caution(self, what: str, operands: Operands) -> None:
        """Take each operand that refers to a resource as read and written anywhere."""
        for id in operands:
            refs = self.of(id)
            if any(self.variables[ref.variable].kind in REACHED for ref in refs):
                self._note(what)
                self._use(tuple(map(widen, refs)), READ | WRITE)

    def variable(self, op: int, operands: Operands) -> None:
        """A variable of the function's own matters only when it holds handles or pointers."""
        made = make_variable(self.declarations, operands)
        if made is not None and made.kind == HOLDER:
            self.variables[made.id] = made
            self.refs[made.id] = (Ref(made.id, 0, made.type, False, 0, EXACT, 0),)

    def chain(self, op: int, operands: Operands) -> None:
        """An access chain: one step an index."""
        refs, first = self.of(operands[2]), 3
        if not refs:
            return
        if op in (Op.PtrAccessChain, Op.InBoundsPtrAccessChain):
            refs, first = tuple(any_element(ref, self.types) for ref in refs), 4
        for id in operands[first:]:
            index = self.declarations.constants.integer(id)
            self._spend(len(refs))
            node = None if index is not None else self.values.node(id)
            refs = tuple(dict.fromkeys(step(ref, index, self.types, node) for ref in refs))
        self.refs[operands[1]] = refs

    def load(self, op: int, operands: Operands) -> None:
        """Reads a block; of a handle, only hands it on."""
        loaded: list[Ref] = []
        for ref in self.of(operands[2]):
            variable = self.variables[ref.variable]
            if variable.kind in BUFFERS or variable.kind == ADDRESS:
                self._use((ref,), READ)
            elif variable.kind == HOLDER:
                loaded.extend(self.held.get(variable.id, ()))
            elif variable.kind in RESOURCES:
                self.accesses.touch(variable, ref)
                loaded.append(ref)
        if loaded:
            self._grow(self.refs, operands[1], loaded)

    def store(self, op: int, operands: Operands) -> None:
        """Writes a block or an output; a handle or pointer stored in private memory is followed there."""
        targets, values = self.of(operands[0]), self.of(operands[1])
        self._use(targets, WRITE)
        holders = [ref.variable for ref in targets if self.variables[ref.variable].kind == HOLDER]
        for holder in holders:
            self.again |= self._grow(self.held, holder, values)
        if values and not holders:
            self._caution("a pointer stored to memory", operands[1:2])

    def copy(self, op: int, operands: Operands) -> None:
        """OpCopyMemory reads one side and writes the other."""
        targets, sources = self.of(operands[0]), self.of(operands[1])
        if op == Op.CopyMemorySized:
            targets, sources = tuple(map(widen, targets)), tuple(map(widen, sources))
        self._use(sources, READ)
        self._use(targets, WRITE)
        held = [ref for source in sources for ref in self.held.get(source.variable, ())]
        for target in targets:
            if held and self.variables[target.variable].kind == HOLDER:
                self.again |= self._grow(self.held, target.variable, held)

    def phi(self, op: int, operands: Operands) -> None:
        """A pointer that may go round a loop and move on the way: anywhere in its block."""
        refs = [widen(ref) for id in operands[2::2] for ref in self.of(id)]
        if refs:
            self.again |= self._grow(self.refs, operands[1], refs)

    def call(self, op: int, operands: Operands) -> None:
        """Arguments to parameters, and what the callee returned so far to the result."""
        parameters = self.functions[operands[2]].parameters
        for parameter, id in zip(parameters, operands[3:], strict=False):
            refs = self.of(id)
            if refs:
                self._grow(self.refs, parameter, refs)
        if operands[2] in self.returned:
            self._grow(self.refs, operands[1], self.returned[operands[2]])

    def return_value(self, op: int, operands: Operands) -> None:
        """Adds a returned pointer or handle to those of its function. They reach its callers in the next round."""
        refs = self.of(operands[0])
        if refs:
            self.again |= self._grow(self.returned, self.function, refs)

    def extended(self, op: int, operands: Operands) -> None:
        """OpExtInst: debug information touches nothing; modf and frexp store through a pointer."""
        name = self.declarations.module.instruction_sets.get(operands[2], "")
        if name == "GLSL.std.450":
            if operands[3] in (MODF, FREXP):
                self._use(tuple(ref for id in operands[5:6] for ref in self.of(id)), WRITE)
        elif not name.startswith(("NonSemantic.", "OpenCL.DebugInfo")):
            self._caution(f"OpExtInst of {name}", operands[4:])

    def address(self, op: int, operands: Operands) -> None:
        """A resource made from a number."""
        self._note(op_name(op))


REACHED = RESOURCES | {ADDRESS}
PASSES_POINTERS = frozenset(
    {
        Op.AccessChain, Op.InBoundsAccessChain, Op.PtrAccessChain, Op.InBoundsPtrAccessChain, Op.Undef, Op.Variable,
        Op.Phi, Op.Select, Op.CopyObject, Op.FunctionParameter, Op.FunctionCall,
    }
)  # fmt: skip
"""Instructions that make pointers from pointers alone."""

Handler = Callable[[_Flow, int, Operands], None]


def _moving(first: int, last: int | None) -> Handler:
    """The result refers to whatever the operands [first:last] refer to."""

    def handler(flow: _Flow, op: int, operands: Operands) -> None:
        refs = [ref for id in operands[first:last] for ref in flow.of(id)]
        if refs:
            flow._grow(flow.refs, operands[1], refs)

    return handler


def _using(place: int, flags: int, anywhere: bool = False) -> Handler:
    """The instruction accesses what the operand at `place` refers to."""

    def handler(flow: _Flow, op: int, operands: Operands) -> None:
        refs = flow.of(operands[place])
        flow._use(tuple(map(widen, refs)) if anywhere else refs, flags)

    return handler


def _matching(flow: _Flow, op: int, operands: Operands) -> None:
    """The instruction reads an image, and one with weights or that it is compared with."""
    for place in (2,) if op == Op.ImageBoxFilterQCOM else (2, 4):
        flow._use(flow.of(operands[place]), READ)


HANDLERS: dict[int, Handler] = {
    Op.Variable: _Flow.variable,
    Op.AccessChain: _Flow.chain,
    Op.InBoundsAccessChain: _Flow.chain,
    Op.PtrAccessChain: _Flow.chain,
    Op.InBoundsPtrAccessChain: _Flow.chain,
    Op.Load: _Flow.load,
    Op.Store: _Flow.store,
    Op.CopyMemory: _Flow.copy,
    Op.CopyMemorySized: _Flow.copy,
    Op.Phi: _Flow.phi,
    Op.FunctionCall: _Flow.call,
    Op.ReturnValue: _Flow.return_value,
    Op.ExtInst: _Flow.extended,
    Op.ConvertUToAccelerationStructureKHR: _Flow.address,
    Op.CopyObject: _moving(2, 3),
    Op.CopyLogical: _moving(2, 3),
    Op.Bitcast: _moving(2, 3),
    Op.Image: _moving(2, 3),
    Op.SampledImage: _moving(2, 4),
    Op.ImageTexelPointer: _moving(2, 3),
    Op.Select: _moving(3, 5),
    Op.CompositeConstruct: _moving(2, None),
    Op.CompositeExtract: _moving(2, 3),
    Op.CompositeInsert: _moving(2, 4),
    Op.ArrayLength: _using(2, 0),
    Op.ImageWrite: _using(0, WRITE),
    Op.AtomicLoad: _using(2, READ),
    Op.AtomicStore: _using(0, WRITE),
    Op.AtomicFlagTestAndSet: _using(2, READ_MODIFY_WRITE),
    Op.AtomicFlagClear: _using(0, WRITE),
    Op.AtomicFMinEXT: _using(2, READ_MODIFY_WRITE),
    Op.AtomicFMaxEXT: _using(2, READ_MODIFY_WRITE),
    Op.AtomicFAddEXT: _using(2, READ_MODIFY_WRITE),
    Op.TraceRayKHR: _using(0, READ),
    Op.RayQueryInitializeKHR: _using(1, READ),
    Op.CooperativeMatrixLoadKHR: _using(2, READ, anywhere=True),
    Op.CooperativeMatrixStoreKHR: _using(0, WRITE, anywhere=True),
    Op.ImageSparseRead: _using(2, READ),
    Op.FragmentMaskFetchAMD: _using(2, READ),
    Op.FragmentFetchAMD: _using(2, READ),
}
HANDLERS |= {op: _using(2, READ) for op in range(Op.ImageSampleImplicitLod, Op.ImageRead + 1)}
HANDLERS |= {op: _using(2, READ) for op in range(Op.ImageSparseSampleImplicitLod, Op.ImageSparseDrefGather + 1)}
HANDLERS |= dict.fromkeys(MATCHES_IMAGES, _matching)
HANDLERS |= {op: _using(2, 0) for op in range(Op.ImageQueryFormat, Op.ImageQuerySamples + 1)}
HANDLERS |= {op: _using(2, READ_MODIFY_WRITE) for op in range(Op.AtomicExchange, Op.AtomicXor + 1)}


def call_order(declarations: Declarations, function: int) -> list[int]:
    """Functions of the call tree, callers first. Raises SpirvError for recursion, which Vulkan does not allow."""
    functions = declarations.module.functions
    finished: dict[int, None] = {}
    open_calls: set[int] = set()
    stack: list[tuple[int, bool]] = [(function, False)]
    while stack:
        id, leaving = stack.pop()
        if leaving:
            open_calls.discard(id)
            finished[id] = None
            continue
        if id in open_calls:
            raise SpirvError(f"SPIR-V function %{id} calls itself")
        if id in finished:
            continue
        if id not in functions:
            raise SpirvError(f"SPIR-V calls the function %{id}, which it does not define")
        open_calls.add(id)
        stack.append((id, True))
        stack.extend((callee, False) for callee in _callees(functions[id].body))
    return list(reversed(finished))


def _callees(body: list[Instruction]) -> dict[int, None]:
    return {operands[2]: None for op, operands in body if op == Op.FunctionCall}
