"""Instructions on values, pointers and buffers, executed for many invocations at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from vkharness.shader.lanes.inputs import Inputs
from vkharness.shader.lanes.integer_operations import EXTENDED, OPERATIONS, applied, selected, signed
from vkharness.shader.lanes.lane_values import LaneState
from vkharness.shader.lanes.needed_code import ATOMICS, CHAINS, NO_RESULT, STORES, NeededCode, as_float
from vkharness.shader.lanes.pointed_places import ImageHandle, PointedPlace, Texel, loaded_part, stepped, stored_part
from vkharness.shader.lanes.reached_places import Gathered
from vkharness.shader.opcodes import Op
from vkharness.shader.types import Type
from vkharness.shader.variables import BUFFERS

FURTHEST = 1 << 48
"""No offset in a buffer is as large."""
POINTER_ATOMICS = frozenset({Op.AtomicStore, Op.AtomicFlagClear})
"""Atomics whose first operand is the pointer."""


class LaneSteps:
    """One execution. What is not followed has the value None, and what is reached through it is noted as unknown."""

    def __init__(self, code: NeededCode, inputs: Inputs) -> None:
        self._code, self._inputs = code, inputs
        self._types = code.types
        self._site, self._sure = (0, 0), False
        self.found: dict[tuple[int, int, int], Gathered] = {}

    def _get(self, state: LaneState, id: int) -> Any:
        """The value of an id, None where it is not known."""
        if id in state.values:
            return state.values[id]
        if id in self._code.constants:
            return self._code.constants[id]
        variable = self._code.variables.get(id)
        if variable is not None:
            return PointedPlace(id, 0, False, 0, variable.type)
        if id in state.memory or id in self._code.push_constants:
            pointee = self._types[self._code.types_of[id]].element
            path = None if id in self._code.push_constants else ()
            return PointedPlace(id, 0, True, 0, pointee, 0, path)
        return None

    def _step(self, op: int, operands: tuple[int, ...], state: LaneState) -> None:
        """One instruction."""
        if op in STORES or op in POINTER_ATOMICS:
            self._store(op, operands, state)
        elif op not in NO_RESULT and operands[0] in self._types:
            state.values[operands[1]] = self._result(op, operands, state)

    def _result(self, op: int, operands: tuple[int, ...], state: LaneState) -> Any:
        type = self._types[operands[0]]
        if op in OPERATIONS:
            return self._operation(op, type, operands[2:], state)
        if op == Op.Load:
            return self._load(self._get(state, operands[2]), operands, state)
        if op in CHAINS:
            return self._chain(operands, state)
        if op == Op.Variable:
            state.memory[operands[1]] = self._get(state, operands[3]) if len(operands) > 3 else None
            return PointedPlace(operands[1], 0, True, 0, type.element, 0, ())
        if op in ATOMICS:
            self._atomic(self._get(state, operands[2]))
            return None
        if op in (Op.CopyObject, Op.CopyLogical):
            return self._get(state, operands[2])
        if op in (Op.ConvertUToF, Op.ConvertSToF):
            return self._to_float(op, operands[2], state)
        if op == Op.ArrayLength:
            return self._length(operands, state)
        return self._composite(op, type, operands, state)

    # Values

    def _composite(self, op: int, type: Type, operands: tuple[int, ...], state: LaneState) -> Any:
        values = [self._get(state, each) for each in operands[2:4]]
        if op == Op.CompositeExtract:
            return loaded_part(values[0], operands[3:])
        if op == Op.CompositeConstruct:
            return self._construct(type, operands[2:], state)
        if op == Op.CompositeInsert:
            return stored_part(values[1], operands[0], operands[4:], values[0], self._types)
        if op == Op.VectorShuffle:
            return self._shuffle(operands, values, state)
        if op == Op.VectorExtractDynamic:
            return loaded_part(values[0], (values[1],))
        if op == Op.Select:
            return self._select(operands, state)
        if op in (Op.Any, Op.All):
            return self._any_all(op, values[0])
        if op == Op.ExtInst and operands[2] in self._code.extended and operands[3] in EXTENDED:
            return self._operation(operands[3], type, operands[4:], state, extended=True)
        return None

    def _width(self, id: int) -> int:
        """Bits of a scalar, or of the components of a vector; 0 for booleans, -1 for what is no number."""
        type = self._types.get(self._code.types_of.get(id, 0))
        return -1 if type is None else self._bits(type)

    def _bits(self, type: Type) -> int:
        if type.op == Op.TypeVector:
            return self._bits(self._types[type.element])
        return type.width if type.op == Op.TypeInt else 0 if type.op == Op.TypeBool else -1

    def _operation(self, op: int, type: Type, ids: tuple[int, ...], state: LaneState, extended: bool = False) -> Any:
        widths = self._width(ids[0]), self._bits(type)
        if min(widths) < 0 or (op == Op.Bitcast and not extended and widths[0] != widths[1]):
            return None
        function = (EXTENDED if extended else OPERATIONS)[op]
        values, code = [self._get(state, each) for each in ids], -1 if extended else op
        if type.op != Op.TypeVector:
            return applied(code, function, widths, values)
        count = type.count or 0
        rows = [each if isinstance(each, tuple) else (None,) * count for each in values]
        if any(len(row) != count for row in rows):
            return None
        return tuple(applied(code, function, widths, [row[at] for row in rows]) for at in range(count))

    def _to_float(self, op: int, id: int, state: LaneState) -> Any:
        """A number as a float, where the conversion is exact."""
        value, width = self._get(state, id), self._width(id)
        if not isinstance(value, int) or width <= 0:
            return None
        number = signed(value, width) if op == Op.ConvertSToF else value
        return float(number) if abs(number) < 1 << 24 else None

    def _construct(self, type: Type, ids: tuple[int, ...], state: LaneState) -> Any:
        parts: list[Any] = []
        for id in ids:
            value, held = self._get(state, id), self._types.get(self._code.types_of.get(id, 0))
            if type.op == Op.TypeVector and held is not None and held.op == Op.TypeVector:
                parts += value if isinstance(value, tuple) else (None,) * (held.count or 0)
            else:
                parts.append(value)
        return tuple(parts)

    def _shuffle(self, operands: tuple[int, ...], values: list[Any], state: LaneState) -> Any:
        both: list[Any] = []
        for id, value in zip(operands[2:4], values, strict=True):
            held = self._types.get(self._code.types_of.get(id, 0))
            both += value if isinstance(value, tuple) else (None,) * ((held and held.count) or 0)
        return tuple(both[at] if at < len(both) else None for at in operands[4:])

    def _select(self, operands: tuple[int, ...], state: LaneState) -> Any:
        condition, yes, no = (self._get(state, each) for each in operands[2:5])
        if isinstance(yes, tuple) and isinstance(no, tuple) and type(yes) is type(no) is tuple:
            conditions = condition if isinstance(condition, tuple) else (condition,) * len(yes)
            return tuple(selected(*each) for each in zip(conditions, yes, no, strict=False))
        return None if isinstance(condition, tuple) else selected(condition, yes, no)

    def _any_all(self, op: int, value: Any) -> Any:
        made: Any = op == Op.All
        combine = Op.LogicalAnd if op == Op.All else Op.LogicalOr
        for each in value if isinstance(value, tuple) else (None,):
            made = applied(combine, OPERATIONS[combine], (0, 0), [made, each])
        return made

    # Memory

    def _chain(self, operands: tuple[int, ...], state: LaneState) -> Any:
        place: Any = self._get(state, operands[2])
        for id in operands[3:]:
            if not isinstance(place, PointedPlace):
                return None
            index, width = self._get(state, id), self._width(id)
            if index is not None and width > 0:
                index = signed(index, width)
            known = isinstance(index, int | np.ndarray)
            made = stepped(place, index if known else None, self._types)
            if made is None and place.variable in self._code.variables:
                element = place.element if place.inside else None
                return place._replace(offset=None, element=element, type=self._types[operands[0]].element)
            place = made
        return place

    def _load(self, place: Any, operands: tuple[int, ...], state: LaneState) -> Any:
        if not isinstance(place, PointedPlace):
            self._reach_unknown()
            return None
        if place.path is not None:
            return loaded_part(state.memory.get(place.variable), place.path)
        type = self._types[place.type]
        if place.variable in self._code.push_constants:
            return self._leaves(place, type, self._pushed)
        variable = self._code.variables.get(place.variable)
        if variable is None:
            return None
        if variable.kind not in BUFFERS:
            return ImageHandle(place.variable, place.element)
        self._reach(place)
        where = self._code.places.get(place.variable)
        if where is None or place.element != 0 or variable.is_array or operands[1] not in self._code.uses:
            return None
        return self._leaves(place, type, lambda offset, size: self._inputs.loaded(*where, offset, size))

    def _pushed(self, offset: int, size: int) -> int | None:
        return self._inputs.push(offset, size) if (offset, size) in self._code.pushed else None

    def _leaves(self, place: PointedPlace, type: Type, read: Any) -> Any:
        """The scalar or vector at a place of known contents."""
        if not isinstance(place.offset, int):
            return None
        if type.op == Op.TypeVector:
            element = self._types[type.element]
            step = element.size or 0
            return tuple(
                self._leaves(place._replace(offset=place.offset + at * step), element, read)
                for at in range(type.count or 0)
            )
        if type.op not in (Op.TypeInt, Op.TypeFloat) or not type.width:
            return None
        bits = read(place.offset, type.width // 8)
        if bits is None or type.op == Op.TypeInt:
            return bits
        return as_float(bits) if type.width == 32 else None

    def _store(self, op: int, operands: tuple[int, ...], state: LaneState) -> None:
        place = self._get(state, operands[0])
        value = self._get(state, operands[1]) if op == Op.Store else None
        if op in (Op.CopyMemory, Op.CopyMemorySized):
            source = self._get(state, operands[1])
            if op == Op.CopyMemorySized or (isinstance(source, PointedPlace) and _is_same(source, place)):
                self._reach_unknown()
            else:
                value = self._load(source, (0, 0), state)
        if not isinstance(place, PointedPlace):
            if isinstance(place, Texel):
                self._atomic(place)
                return
            self._reach_unknown()
            state.memory = dict.fromkeys(state.memory)  # it may have been any of them
        elif place.path is not None:
            held = state.memory.get(place.variable)
            root = self._types[self._code.types_of[place.variable]].element
            state.memory[place.variable] = stored_part(held, root, place.path, value, self._types)
        elif place.variable in self._code.variables:
            self._reach(place)

    def _atomic(self, place: Any) -> None:
        if isinstance(place, Texel):
            self._reach_texel(place)
        elif not isinstance(place, PointedPlace):
            self._reach_unknown()
        elif place.path is None and place.variable in self._code.variables:
            self._reach(place)

    def _reach_texel(self, texel: Texel) -> None:
        raise NotImplementedError

    def _length(self, operands: tuple[int, ...], state: LaneState) -> Any:
        place = self._get(state, operands[2])
        if not isinstance(place, PointedPlace) or not isinstance(place.element, int) or place.inside:
            return None
        members = self._types[place.type].members
        where = self._code.places.get(place.variable)
        if where is None or operands[3] >= len(members):
            return None
        member = members[operands[3]]
        size, stride = self._inputs.length(*where, place.element), self._types[member.type].stride
        if size is None or member.offset is None or not stride:
            return None
        return max(0, size - member.offset) // stride

    # Memory that is reached

    def _at(self, variable: int) -> Gathered:
        return self.found.setdefault((*self._site, variable), Gathered())

    def _reach_unknown(self) -> None:
        """An access that may be of any variable."""
        self._at(0).unknown = True

    def _reach(self, place: PointedPlace) -> None:
        """An access of a buffer."""
        gathered = self._at(place.variable)
        type = self._types[place.type]
        size = type.size
        if type.op == Op.TypeMatrix and place.matrix > 0:
            size = place.matrix * (type.count or 0)
        if size is None or place.offset is None or place.element is None or gathered.unknown:
            gathered.unknown = True
            return
        for element, offsets in self._by_element(place.element, place.offset):
            if not len(offsets) or int(offsets.min()) < 0 or int(offsets.max()) > FURTHEST:
                gathered.unknown = gathered.unknown or len(offsets) > 0
            else:
                gathered.offsets.setdefault((element, size, self._sure), []).append(offsets)

    def _by_element(self, element: Any, *columns: Any) -> list[tuple[int, Any]]:
        """One column, for each descriptor that is chosen."""
        (column,) = columns
        spread = np.atleast_1d(np.asarray(column, np.int64))
        if isinstance(element, int):
            return [(element, np.unique(spread))]
        elements = np.asarray(element, np.int64)
        spread = np.broadcast_to(spread, elements.shape)
        return [(int(each), np.unique(spread[elements == each])) for each in np.unique(elements)]


def _is_same(one: PointedPlace, other: Any) -> bool:
    return isinstance(other, PointedPlace) and one.variable == other.variable
