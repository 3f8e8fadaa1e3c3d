"""Runs invocations of vertex and fragment shaders on the host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from vkharness.shader.execution.executed_module import ExecutedModule, refusing_malformed
from vkharness.shader.execution.function_code import PAUSE, run_function
from vkharness.shader.execution.outside import Allowance, ImageTable, NotInterpreted, ShaderImage, ShaderResources
from vkharness.shader.opcodes import DIM_SUBPASS_DATA, Decoration, ExecutionMode, Op, StorageClass
from vkharness.shader.types import Type, Types

Bits = tuple[int, ...]
"""The bits of the components of a scalar or vector."""
FRAG_DEPTH, BITS = 22, 32
ATOMICS = range(Op.AtomicLoad, Op.AtomicXor + 1)


class StageSlot(NamedTuple):
    """Names an input or output: a BuiltIn of SPIR-V, or a location."""

    is_built_in: bool
    number: int


class CapturedOutput(NamedTuple):
    """An output that transform feedback captures: where a vertex has it in the buffer, in bytes, and its size."""

    slot: StageSlot
    buffer: int
    stride: int
    offset: int
    words: int


class StageInvocations(ExecutedModule):
    """One stage of a draw. Each method raises NotInterpreted, one line, for what is not known or not defined."""

    def __init__(
        self,
        code: bytes,
        entry: str,
        stage: int,
        resources: ShaderResources,
        specialization: Mapping[int, bytes],
        limit: int | Allowance,
    ) -> None:
        """As `execute_dispatch`; `stage` is a VkShaderStageFlagBits, and `limit` holds for all invocations together."""
        with refusing_malformed():
            super().__init__(code, entry, stage, resources, specialization, limit)
            self.inputs = {id: self._slot(id) for id in self.by_class.get(StorageClass.Input, [])}
            self._subpass = [id for id in self.by_class.get(StorageClass.UniformConstant, []) if self._is_subpass(id)]
            self._outputs = self.by_class.get(StorageClass.Output, [])

    @property
    def depends_on_inputs_alone(self) -> bool:
        """Whether invocations with equal inputs do the same: they reach no resources beside push constants."""
        free = {StorageClass.Input, StorageClass.Output, StorageClass.Private, StorageClass.PushConstant}
        return self.by_class.keys() <= free and not any(
            pointer.storage_class == StorageClass.PhysicalStorageBuffer for pointer in self._pointers()
        )

    @property
    def repeats(self) -> bool:
        """Whether invocations of one draw with equal inputs give equal outputs: they write nothing that others may
        read, and reach no input attachment."""
        return self.depends_on_inputs_alone or not (self.may_store or self._subpass)

    @property
    def has_atomics(self) -> bool:
        """Whether it has atomic instructions, of which the number of executions matters."""
        functions = self.declarations.module.functions.values()
        return any(op in ATOMICS for function in functions for op, _ in function.body)

    @property
    def may_store(self) -> bool:
        """Whether it may write memory or texels."""
        stores = {StorageClass.StorageBuffer, StorageClass.PhysicalStorageBuffer}
        functions = self.declarations.module.functions.values()
        writes = any(op == Op.ImageWrite for function in functions for op, _ in function.body)
        return writes or self.has_atomics or any(pointer.storage_class in stores for pointer in self._pointers())

    @property
    def writes_depth(self) -> bool:
        """Whether the depth of a fragment may come from the shader."""
        return any(self.declarations.decorations(id).get(Decoration.BuiltIn) == FRAG_DEPTH for id in self._outputs)

    @property
    def captured(self) -> list[CapturedOutput]:
        """The outputs that transform feedback captures. Raises NotInterpreted for others than variables of 32 bits."""
        found, types, module = [], self.declarations.types, self.declarations.module
        for id in self._outputs if ExecutionMode.Xfb in self.modes else ():
            held, type = self.declarations.decorations(id), types[self.reader.storage[id].element]
            members = [module.member_decorations.get((type.id, at), {}) for at in range(len(type.members))]
            if any(Decoration.Offset in each for each in members):
                raise NotInterpreted("blocks that transform feedback captures are not followed")
            if Decoration.Offset not in held or type.op == Op.TypeStruct:
                continue
            if _component(types, type).width != BITS or held.keys() & {Decoration.Component, Decoration.Stream}:
                raise NotInterpreted("an output of a sort that transform feedback captures is not followed")
            stride, words = held[Decoration.XfbStride], self.stored.cells(type.id)
            found.append(
                CapturedOutput(self._slot(id), held[Decoration.XfbBuffer], stride, held[Decoration.Offset], words)
            )
        return found

    def run(self, inputs: Mapping[StageSlot, Bits], pixel: tuple[int, int] = (0, 0)) -> dict[StageSlot, Bits]:
        """One invocation: the outputs that it writes, each whole. `pixel` is where its input attachments are read."""
        with refusing_malformed():
            own = self.cells([*self.private, *self._outputs])
            for id, slot in self.inputs.items():
                given = inputs.get(slot)
                count = self.stored.cells(self.reader.storage[id].element)
                cells: Sequence[int | None] = [None] * count if given is None else given[:count]
                own[id] = (list(cells), 0, 0)
            for id in self._subpass:
                own[id] = (_AtPixel(self.bound[id][0], pixel), 0, 0)
            state = _State(self, own)
            if any(place != PAUSE for place in run_function(self.reader.codes[self.entry], (), state)):
                raise NotInterpreted("a control barrier in this stage is not interpreted")
            return dict(self._written(own))

    def _pointers(self) -> Iterator[Any]:
        types = self.declarations.types
        for op, operands in self.declarations.module.declarations:
            if op == Op.TypePointer:
                yield types[operands[0]]

    def _slot(self, id: int) -> StageSlot:
        held = self.declarations.decorations(id)
        if Decoration.BuiltIn in held:
            return StageSlot(True, held[Decoration.BuiltIn])
        return StageSlot(False, held[Decoration.Location])

    def _is_subpass(self, id: int) -> bool:
        types = self.declarations.types
        return types[types.inside_arrays(self.reader.storage[id].element)[0]].dim == DIM_SUBPASS_DATA

    def _written(self, own: Mapping[int, Any]) -> Iterator[tuple[StageSlot, Bits]]:
        for id in self._outputs:
            cells, type = own[id][0], self.declarations.types[self.reader.storage[id].element]
            if type.op != Op.TypeStruct:
                if any(each is not None for each in cells):
                    yield self._slot(id), _whole(cells)
                continue
            for index in range(len(type.members)):
                member, at = self.stored.member(type, index)
                part = cells[at : at + self.stored.cells(member.type)]
                if any(each is not None for each in part):
                    held = self.declarations.module.member_decorations[type.id, index]
                    yield StageSlot(True, held[Decoration.BuiltIn]), _whole(part)


def _component(types: Types, type: Type) -> Type:
    """The scalar that a vector, a matrix or an array is made of."""
    while type.op in (Op.TypeVector, Op.TypeMatrix, Op.TypeArray):
        type = types[type.element]
    return type


def _whole(cells: Sequence[int | None]) -> Bits:
    found = tuple(each for each in cells if each is not None)
    if len(found) != len(cells):
        raise NotInterpreted("the shader leaves a component of an output undefined")
    return found


class _State:
    """One invocation; it implements function_code.RunningState."""

    def __init__(self, stage: StageInvocations, own: Mapping[int, Any]) -> None:
        self._own, self._shared = own, stage.bound
        self.spend = stage.allowance.spend

    def pointer(self, variable: int) -> Any:
        """The pointer that a module-scope variable is."""
        return self._own[variable] if variable in self._own else self._shared[variable]


class _AtPixel:
    """The input attachments of one variable, whose coordinates count from a pixel; stands for an `ImageTable`."""

    def __init__(self, table: ImageTable, pixel: tuple[int, int]) -> None:
        self._table, self._pixel = table, pixel

    def image(self, element: int) -> ShaderImage:
        """The image of one descriptor."""
        return _Moved(self._table.image(element), self._pixel)


class _Moved:
    """An image whose coordinates count from a pixel; it implements `ShaderImage`."""

    def __init__(self, image: ShaderImage, pixel: tuple[int, int]) -> None:
        self.texel_bytes = image.texel_bytes
        self._image, self._pixel = image, pixel

    def size(self, level: int) -> tuple[int, ...]:
        """That of the image."""
        return self._image.size(level)

    def read(self, coordinates: tuple[int, ...], at: int) -> tuple[int, int, int, int]:
        """The texel at a distance from the pixel."""
        x, y = (one + two for one, two in zip(coordinates, self._pixel, strict=True))
        return self._image.read((x, y), at)

    def located(self, coordinates: tuple[int, ...], at: int) -> tuple[int, Any]:
        """That of the texel at a distance from the pixel."""
        x, y = (one + two for one, two in zip(coordinates, self._pixel, strict=True))
        return self._image.located((x, y), at)

    def sample(self, coordinates: tuple[int, ...], lod: int | None) -> tuple[int, int, int, int]:
        """Raises NotInterpreted: no shader may do so."""
        raise NotInterpreted(f"the shader samples an input attachment at {coordinates}, {lod}")

    def write(self, coordinates: tuple[int, ...], texel: tuple[int, ...]) -> None:
        """Raises NotInterpreted: no shader may do so."""
        raise NotInterpreted(f"the shader writes an input attachment at {coordinates}")
