"""Module-scope declarations given a meaning: types, constants, and the variables through which memory is reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vkharness.shader.constants import CONSTANTS, Constants
from vkharness.shader.opcodes import DIM_BUFFER, DIM_SUBPASS_DATA, Decoration, Op, StorageClass
from vkharness.shader.spirv import Decorations, Module
from vkharness.shader.types import Type, Types

UNIFORM_BUFFER = "uniform_buffer"
STORAGE_BUFFER = "storage_buffer"
SAMPLED_IMAGE = "sampled_image"
STORAGE_IMAGE = "storage_image"
SAMPLER = "sampler"
COMBINED = "combined"
UNIFORM_TEXEL_BUFFER = "uniform_texel_buffer"
STORAGE_TEXEL_BUFFER = "storage_texel_buffer"
INPUT_ATTACHMENT = "input_attachment"
ACCELERATION_STRUCTURE = "acceleration_structure"

BUFFERS = frozenset({UNIFORM_BUFFER, STORAGE_BUFFER})
WRITABLE = frozenset({STORAGE_BUFFER, STORAGE_IMAGE, STORAGE_TEXEL_BUFFER})
RESOURCES = BUFFERS | WRITABLE | {SAMPLED_IMAGE, SAMPLER, COMBINED}
RESOURCES |= {UNIFORM_TEXEL_BUFFER, INPUT_ATTACHMENT, ACCELERATION_STRUCTURE}
IMAGES = frozenset({SAMPLED_IMAGE, STORAGE_IMAGE, COMBINED})

PUSH_CONSTANTS = "push_constants"
OUTPUT = "output"
HOLDER = "holder"
"""Private or function memory that holds handles or pointers."""
ADDRESS = "address"
"""Memory behind a device address."""
UNKNOWN = "unknown"
"""A resource of a type that the reader does not know."""


INVOCATION_CLASSES = frozenset(
    {
        StorageClass.Input,
        StorageClass.CallableDataKHR,
        StorageClass.IncomingCallableDataKHR,
        StorageClass.RayPayloadKHR,
        StorageClass.HitAttributeKHR,
        StorageClass.IncomingRayPayloadKHR,
        StorageClass.HitObjectAttributeNV,
        StorageClass.TaskPayloadWorkgroupEXT,
    }
)
"""Storage classes that are no memory of a resource."""


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable. `type` is the pointee type, arrays included; `array_size` is flattened, 0 for a runtime array."""

    id: int
    kind: str
    type: int
    array_size: int
    is_array: bool


@dataclass(frozen=True, slots=True)
class Declarations:
    """Types, constants and variables that a module declares outside its functions."""

    types: Types
    constants: Constants
    variables: dict[int, Variable]
    module: Module

    def decorations(self, id: int) -> Decorations:
        """The kept decorations of one id."""
        return self.module.decorations.get(id, {})


def declare(module: Module, specialization: Mapping[int, bytes]) -> Declarations:
    """Read types, constants and variables in order. Raises UserError for a use before its declaration."""
    types = Types(module)
    constants = Constants(module, types, specialization)
    declarations = Declarations(types, constants, {}, module)
    for op, operands in module.declarations:
        if op in CONSTANTS:
            constants.declare((op, operands))
        elif op == Op.UntypedVariableKHR:
            declarations.variables[operands[1]] = Variable(operands[1], UNKNOWN, operands[0], 1, False)
        elif op == Op.Variable:
            variable = make_variable(declarations, operands)
            if variable is not None:
                declarations.variables[variable.id] = variable
        elif Op.TypeVoid <= op <= Op.TypeForwardPointer or op == Op.TypeAccelerationStructureKHR:
            length = constants.integer(operands[2]) if op == Op.TypeArray else None
            types.declare(op, operands, None if length is not None and length < 0 else length)
        elif operands:
            # Perhaps the type of an extension; when not, the note does no harm.
            types.add_unknown(operands[0])
    return declarations


def make_variable(declarations: Declarations, operands: tuple[int, ...]) -> Variable | None:
    """The variable that OpVariable declares; None for memory through which no resource is reached."""
    types = declarations.types
    pointee = types[operands[0]].element
    if types[operands[0]].op != Op.TypePointer or pointee not in types:
        return None
    inner, count = types.inside_arrays(pointee)
    kind = _kind(operands[2], types[pointee], types[inner], declarations.decorations(inner))
    return Variable(operands[1], kind, pointee, count, inner != pointee) if kind else None


def _kind(storage_class: int, pointee: Type, inner: Type, decorations: Decorations) -> str:
    if storage_class == StorageClass.StorageBuffer:
        return STORAGE_BUFFER
    if storage_class == StorageClass.Uniform:
        return STORAGE_BUFFER if Decoration.BufferBlock in decorations else UNIFORM_BUFFER
    if storage_class == StorageClass.UniformConstant:
        return _handle_kind(inner)
    if storage_class == StorageClass.PushConstant:
        return PUSH_CONSTANTS
    if storage_class == StorageClass.Output:
        return OUTPUT
    if storage_class in (StorageClass.Private, StorageClass.Function, StorageClass.Workgroup):
        return HOLDER if pointee.opaque else ""
    return "" if storage_class in INVOCATION_CLASSES else UNKNOWN


def _handle_kind(inner: Type) -> str:
    if inner.op == Op.TypeImage:
        if inner.dim == DIM_SUBPASS_DATA:
            return INPUT_ATTACHMENT
        if inner.dim == DIM_BUFFER:
            return STORAGE_TEXEL_BUFFER if inner.sampled == 2 else UNIFORM_TEXEL_BUFFER
        return STORAGE_IMAGE if inner.sampled == 2 else SAMPLED_IMAGE
    if inner.op == Op.TypeSampledImage:
        return UNIFORM_TEXEL_BUFFER if inner.dim == DIM_BUFFER else COMBINED
    if inner.op == Op.TypeSampler:
        return SAMPLER
    return ACCELERATION_STRUCTURE if inner.op == Op.TypeAccelerationStructureKHR else UNKNOWN
