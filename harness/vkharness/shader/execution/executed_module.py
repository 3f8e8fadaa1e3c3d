"""A module that is made ready to be executed: its code, its constants and the resources behind its variables."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from vkharness.shader.execution.function_reader import FunctionReader
from vkharness.shader.execution.outside import (
    AddressMemory,
    Allowance,
    BufferTable,
    ImageTable,
    NotInterpreted,
    ShaderResources,
)
from vkharness.shader.execution.stored_values import StoredValues, constant_values
from vkharness.shader.flow import call_order
from vkharness.shader.opcodes import Decoration, Op, StorageClass
from vkharness.shader.reflect import find_entry_point
from vkharness.shader.spirv import parse
from vkharness.shader.variables import declare

MALFORMED = (
    ArithmeticError, AttributeError, LookupError, RecursionError, StopIteration, TypeError, ValueError, struct.error,
)  # fmt: skip
"""Exceptions that Python raises while it reads or runs a module that is not valid."""


@contextmanager
def refusing_malformed() -> Iterator[None]:
    """Raises NotInterpreted, one line, in place of what Python raises for a module that is not valid."""
    try:
        yield
    except MALFORMED as error:
        raise NotInterpreted(f"the shader is not well formed: {type(error).__name__}: {error}") from error


class ExecutedModule:
    """One entry point of a module, for one command. It raises NotInterpreted for what is not known."""

    values_type = StoredValues
    reader_type: Callable[..., FunctionReader] = FunctionReader

    def __init__(
        self,
        code: bytes,
        entry: str,
        stage: int,
        resources: ShaderResources,
        specialization: Mapping[int, bytes],
        limit: int | Allowance,
    ) -> None:
        module = parse(code)
        point = find_entry_point(module, entry, stage)
        self.modes = module.modes.get(point.function, {})
        self.declarations = declare(module, specialization)
        self.entry, self.resources = point.function, resources
        self.allowance = limit if isinstance(limit, Allowance) else Allowance(limit)
        addresses = AddressMemory(resources)
        self.stored = self.values_type(self.declarations, addresses)
        self.constants = constant_values(self.declarations, self.stored, specialization)
        self.reader = self.reader_type(self.declarations, self.stored, self.constants, addresses)
        for id in call_order(self.declarations, self.entry):
            self.reader.read(module.functions[id])
        used = {id for code in self.reader.codes.values() for _, id in code.variables}
        self.initial = {
            operands[1]: self.constants.get(operands[3])
            for op, operands in module.declarations
            if op == Op.Variable and operands[1] in used and len(operands) > 3
        }
        self.by_class: dict[int, list[int]] = {}
        for id in sorted(used):
            self.by_class.setdefault(self.reader.storage[id].storage_class, []).append(id)
        self.private = self.by_class.get(StorageClass.Private, [])
        self.bound: dict[int, Any] = {}
        for storage_class in (StorageClass.StorageBuffer, StorageClass.Uniform):
            self.bound |= {id: (self._buffers(id), 0, 0) for id in self.by_class.get(storage_class, [])}
        self.bound |= {id: (self._images(id), 0, 0) for id in self.by_class.get(StorageClass.UniformConstant, [])}
        for id in self.by_class.get(StorageClass.PushConstant, []):
            self.bound[id] = (resources.push_constants, 0, 0)

    def _place(self, id: int) -> tuple[int, int]:
        held = self.declarations.decorations(id)
        return held[Decoration.DescriptorSet], held[Decoration.Binding]

    def _buffers(self, id: int) -> BufferTable:
        return BufferTable(self.resources, *self._place(id), self.declarations.variables[id].array_size)

    def _images(self, id: int) -> ImageTable:
        return ImageTable(self.resources, *self._place(id))

    def cells(self, variables: list[int]) -> dict[int, Any]:
        """Fresh memory for variables without a layout."""
        made = {}
        for id in variables:
            type = self.reader.storage[id].element
            count = self.stored.cells(type)
            self.allowance.spend(count)
            cells: list[Any] = [None] * count
            if id in self.initial:
                self.stored.writer(type, False)(cells, 0, 0, self.initial[id])
            made[id] = (cells, 0, 0)
        return made
