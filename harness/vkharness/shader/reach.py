"""Which bytes the accesses of an entry point reach in one dispatch or draw: expressions become affine forms.

`KnownInputs` says what is known of the dispatch. What is not known there makes an answer wider, never narrower.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from vkharness.shader import affine, values
from vkharness.shader.affine import Box, Form, add, interval, reached, symbol, within
from vkharness.shader.opcodes import Op
from vkharness.shader.values import ValueNode
from vkharness.spans import Span

OPEN = 1 << 65
"""More than any buffer or address: the size of a span that has no known end."""
FAR = 1 << 80
"""More than any difference of two values."""
MOST_TERMS = 8
MOST_CONDITIONS = 256
"""How many conditions one evaluation looks at before it takes them for unknown."""

Term = tuple[int | None, int, int]
"""(node of an index, None if it is not known; bytes from one element to the next; elements, 0 for a runtime array)."""


class LoadedPlace(NamedTuple):
    """A member of a block: where it lies from the start of the block, and its bytes."""

    set: int
    binding: int
    offset: int
    size: int


def loaded_place(node: ValueNode) -> LoadedPlace:
    """Gives the place in memory of a node that loads a member of a block."""
    set, binding, offset, _ = node.args
    return LoadedPlace(set, binding, offset, node.width // 8)


def pointer_places(nodes: Sequence[ValueNode], touches: Sequence[ShaderTouch]) -> set[LoadedPlace]:
    """The members of blocks that are device addresses: accesses go through them, or through what is added to them."""
    found, left = set[LoadedPlace](), {touch.base for touch in touches if touch.base is not None}
    seen = set[int]()
    while left:
        number = left.pop()
        seen.add(number)
        node = nodes[number]
        if node.op == values.LOADED and node.width == 64:
            found.add(loaded_place(node))
        elif node.op >= 0:
            left.update(each for each in node.args if each not in seen)
    return found


class ShaderTouch(NamedTuple):
    """The accesses of instructions that reach memory in the same way, under the same conditions."""

    flags: int
    """READ, WRITE or READ_MODIFY_WRITE of `accesses`."""
    element: int | None
    """Flattened index in the array of descriptors; None for `chosen`."""
    chosen: int | None
    """The node of the index in the array of descriptors; None for any element."""
    offset: int
    size: int | None
    """Bytes from the start of the block, or from the address `base`. A size of None stands for all that follow."""
    terms: tuple[Term, ...] = ()
    """The bytes that indices add to `offset`."""
    covers: bool = False
    """Whether `size` is more than one access touches."""
    conditions: tuple[tuple[int, bool], ...] = ()
    """Nodes of booleans, and the values that they must have."""
    certain: bool = False
    """Whether the instruction runs in every invocation in which the conditions hold."""
    base: int | None = None
    """The node of the device address that it goes through; None for a descriptor."""
    sites: tuple[tuple[int, int, int], ...] = ()
    """The instructions that it stands for: a function, a number in it, and the variable that is accessed."""

    @property
    def varies(self) -> bool:
        """Whether what is touched depends on the dispatch."""
        return bool(self.terms or self.conditions) or self.chosen is not None or self.base is not None


class Reach(NamedTuple):
    """The memory that a ShaderTouch may access in one dispatch or draw. It accesses nothing else."""

    spans: tuple[Span, ...]
    """From the start of the block, or device addresses; none when the device address is not known."""
    elements: Span | None
    """The first and the last descriptor of the array; None for any."""
    exact: bool
    """Whether every byte of the spans is touched for sure."""
    clipped: bool = False
    """Whether what lies past the end of the memory is not touched, since an index that is not known stays inside."""
    address: int | None = None
    """The lowest device address to which the indices are added."""


@dataclass(frozen=True, slots=True)
class KnownInputs:
    """Inputs of one dispatch or draw, as far as they are known."""

    built_ins: Mapping[tuple[int, int], Span]
    """(built-in, component) -> its least and its greatest value."""
    complete: bool
    """Whether each built-in takes every value of its range."""
    push: Callable[[int, int], int | None]
    """(offset, size) in bytes -> the unsigned value of push constants; None when they are not known."""
    length: Callable[[int, int, int], int | None]
    """(set, binding, element) -> the bytes of the range of a buffer descriptor; None when it is not known."""
    loaded: Mapping[LoadedPlace, int] = field(default_factory=dict)
    """The unsigned values of members of blocks that are known, all through the command."""


class Evaluation:
    """The nodes of one entry point in one setting."""

    def __init__(self, nodes: Sequence[ValueNode], setting: KnownInputs) -> None:
        self._nodes = nodes
        self._setting = setting
        self._box: Box = {}
        self._forms: list[Form] = []
        self._left = MOST_CONDITIONS
        for number, node in enumerate(nodes):
            form = self._form(number, node) if node.width else None
            known = form is not None and len(form.terms) <= MOST_TERMS
            self._forms.append(_wrapped(form, node) if form is not None and known else self._any(number, node))

    def reach(self, touch: ShaderTouch) -> Reach | None:
        """Gives the memory that a touch may access; None when no invocation makes the access."""
        self._left = MOST_CONDITIONS
        box: Box | None = self._box
        exact = touch.certain and self._setting.complete and not touch.covers
        for condition, wanted in touch.conditions:
            box, same = self._where(box, condition, wanted)
            exact = exact and same
            if box is None:
                return None
        assert box is not None
        elements = (touch.element, touch.element) if touch.element is not None else self._elements(touch, box)
        one = elements is not None and elements[0] == elements[1]
        exact = exact and (one or touch.base is not None)
        form, box, known = self._place(touch, box)
        if form is None:
            return Reach((), elements, False)
        low = interval(form, box)[0]
        address = None if touch.base is None else interval(self._forms[touch.base], box)[0]
        if touch.size is None or known is None:
            return Reach(((low, low + OPEN),), elements, False, True, address)
        spans, full = reached(form, box, touch.size)
        exact = exact and full and known and self._independent(form, box)
        return Reach(tuple(spans), elements, exact, touch.covers or not known, address)

    def _elements(self, touch: ShaderTouch, box: Box) -> Span | None:
        if touch.chosen is None:
            return None
        bounds = interval(self._forms[touch.chosen], box)
        return bounds if _fits(bounds, self._nodes[touch.chosen].width - 1, False) else None

    def _place(self, touch: ShaderTouch, box: Box) -> tuple[Form | None, Box, bool | None]:
        """(first byte, box with a symbol for each index that is not known, whether all indices are known).

        None in place of the latter when an index of a runtime array is not known, and no form for an unknown address.
        """
        form, known = Form(touch.offset), True
        if touch.base is not None:
            base = self._forms[touch.base]
            if not _fits(interval(base, box), 64, False) or self._opaque(base):
                return None, box, False
            form = add(base, form)
        for node, stride, count in touch.terms:
            index = None if node is None else self._forms[node]
            bounds = (-1, -1) if index is None else interval(index, box)
            narrow = node is None or not _fits(bounds, self._nodes[node].width - 1, False)
            if index is None or narrow or (count and bounds[1] >= count):
                if not count:
                    return form, box, None
                known, number = False, -1 - len(box)
                box = {**box, number: (0, count - 1)}
                index = symbol(number)
            form = add(form, index, stride)
        return form, box, known

    def _opaque(self, form: Form) -> bool:
        return any(self._nodes[id].op != values.BUILT_IN for id, _ in form.terms)

    def _independent(self, form: Form, box: Box) -> bool:
        """Whether every point of the box belongs to an invocation, as far as the form and the conditions ask for it."""
        used = {id for id, _ in form.terms} | {id for id, bounds in box.items() if bounds != self._box.get(id)}
        if any(self._nodes[id].op != values.BUILT_IN for id in used):
            return False
        inputs = {(self._nodes[id].args[0], self._nodes[id].args[1]) for id in used}
        if not inputs <= self._setting.built_ins.keys():
            return False
        parts = (values.WORKGROUP_ID, values.LOCAL_INVOCATION_ID)
        return not any((values.GLOBAL_INVOCATION_ID, axis) in inputs for built_in, axis in inputs if built_in in parts)

    # -- integers

    def _any(self, number: int, node: ValueNode, low: int | None = None, high: int | None = None) -> Form:
        """A symbol for a value of which only the least and greatest value are known, or those of its type."""
        first, last = _range(node.width, node.signed)
        self._box[number] = (first if low is None else low, last if high is None else high)
        return symbol(number)

    def _form(self, number: int, node: ValueNode) -> Form | None:
        """The value of a node; None when nothing is known."""
        if node.op < 0:
            return self._leaf(number, node)
        arguments = [self._forms[each] for each in node.args]
        if node.op in (Op.IAdd, Op.ISub):
            return add(arguments[0], arguments[1], 1 if node.op == Op.IAdd else -1)
        if node.op == Op.SNegate:
            return affine.scale(arguments[0], -1)
        if node.op == Op.Not:
            return add(Form(-1), arguments[0], -1)
        if node.op == Op.IMul and not (arguments[0].terms and arguments[1].terms):
            factor, other = arguments if not arguments[0].terms else reversed(arguments)
            return affine.scale(other, factor.constant)
        if node.op == Op.ShiftLeftLogical:
            by = arguments[1]
            return affine.scale(arguments[0], 1 << by.constant) if self._shifts(by, node) else None
        if node.op in (Op.Bitcast, Op.UConvert, Op.SConvert):
            return self._converted(node, arguments[0])
        if node.op == Op.Select:
            return self._selected(number, node)
        return self._bounded(number, node)

    def _shifts(self, by: Form, node: ValueNode) -> bool:
        """Whether the amount of a shift is a number with a defined result."""
        return not by.terms and 0 <= by.constant < node.width

    def _leaf(self, number: int, node: ValueNode) -> Form | None:
        if node.op == values.CONSTANT:
            return Form(node.args[0])
        if node.op == values.BUILT_IN:
            bounds = self._setting.built_ins.get((node.args[0], node.args[1]))
            if bounds is None or not _fits(bounds, node.width, node.signed):
                return None
            return Form(bounds[0]) if bounds[0] == bounds[1] else self._any(number, node, *bounds)
        if node.op == values.PUSH:
            pushed = self._setting.push(node.args[0], node.width // 8)
            return None if pushed is None else Form(pushed)
        if node.op == values.LOADED:
            loaded = self._setting.loaded.get(loaded_place(node))
            return None if loaded is None else Form(loaded)
        if node.op == values.LENGTH:
            set, binding, element, offset, stride = node.args
            size = self._setting.length(set, binding, element)
            return None if size is None else Form(max(0, size - offset) // stride)
        if node.op == values.UNKNOWN:
            return None
        return self._bounded(number, node)

    def _converted(self, node: ValueNode, form: Form) -> Form | None:
        """A value in a type of another width. Only a wider type shows whether the narrower one wrapped."""
        source = self._nodes[node.args[0]]
        signed = node.op == Op.SConvert
        if node.width <= source.width or _fits(interval(form, self._box), source.width, signed):
            return form
        return None

    def _selected(self, number: int, node: ValueNode) -> Form | None:
        condition, yes, no = node.args
        if self._where(self._box, condition, False)[0] is None:
            return self._forms[yes]
        if self._where(self._box, condition, True)[0] is None:
            return self._forms[no]
        both = [interval(self._forms[each], self._box) for each in (yes, no)]
        return self._any(number, node, min(low for low, _ in both), max(high for _, high in both))

    def _bounds(self, argument: int, node: ValueNode) -> Span | None:
        """The bounds of an argument that is no number below 0 and did not wrap; None if it may be one."""
        width = self._nodes[argument].width
        if not width:
            return None
        bounds = interval(self._forms[argument], self._box)
        return bounds if _fits(bounds, width - (node.op in SIGNED), False) else None

    def _bounded(self, number: int, node: ValueNode) -> Form | None:
        """A value of which only bounds are known, from the bounds of arguments that are not negative."""
        found = BOUNDS.get(node.op)
        left, right = (self._bounds(each, node) for each in node.args[:2]) if found else (None, None)
        if found is None or left is None or right is None:
            return self._clipped(number, node, left, right)
        if node.op in REMAINDERS and left[1] < right[0]:
            return self._forms[node.args[0]]
        if node.op in SHIFTS and right[1] >= node.width:
            return None
        if node.op in EXTREMES and (left[1] <= right[0] or right[1] <= left[0]):
            lower = left[1] <= right[0]
            return self._forms[node.args[0 if lower == (node.op in LEAST) else 1]]
        bounds = found(left, right)
        if bounds is None:
            return None
        return Form(bounds[0]) if bounds[0] == bounds[1] else self._any(number, node, *bounds)

    def _clipped(self, number: int, node: ValueNode, left: Span | None, right: Span | None) -> Form | None:
        """Bounds the result of an operation of which one argument may have any value: a remainder by its divisor, `&`
        by its mask. None for other operations.

        OpSMod has the sign of its divisor and OpSRem that of the dividend, which may be negative.
        """
        if node.op == Op.BitwiseAnd and (left or right):
            return self._any(number, node, 0, min(each[1] for each in (left, right) if each is not None))
        if node.op in (Op.UMod, Op.SMod) and right is not None and right[0] > 0:
            return self._any(number, node, 0, right[1] - 1)
        return None

    # -- conditions

    def _where(self, box: Box | None, condition: int, wanted: bool) -> tuple[Box | None, bool]:
        """The part of a box in which a condition has a value, as `affine.within` gives it."""
        self._left -= 1
        if box is None or self._left < 0:
            return box, box is None
        node = self._nodes[condition]
        if node.op == values.CONSTANT:
            return (box, True) if bool(node.args[0]) == wanted else (None, True)
        if node.op == Op.LogicalNot:
            return self._where(box, node.args[0], not wanted)
        if node.op in (Op.LogicalAnd, Op.LogicalOr):
            return self._where_both(box, node, wanted)
        relation = RELATIONS.get(node.op)
        if relation is None:
            return box, False
        kind, signed = relation
        kind = kind if wanted else NEGATED[kind]
        left, right = (self._forms[each] for each in node.args)
        width = self._nodes[node.args[0]].width
        readings = (False, True) if signed is None else (signed,)
        bounds = [interval(each, box) for each in (left, right)]
        if not any(all(_fits(each, width, reading) for each in bounds) for reading in readings):
            return box, False
        return _related(kind, add(left, right, -1), box)

    def _where_both(self, box: Box, node: ValueNode, wanted: bool) -> tuple[Box | None, bool]:
        first, second = node.args
        deciding = node.op == Op.LogicalOr
        if wanted != deciding:  # both have the wanted value
            narrowed, same = self._where(box, first, wanted)
            narrowed, also = self._where(narrowed, second, wanted)
            return narrowed, narrowed is None or (same and also)
        for one, other in ((first, second), (second, first)):
            if self._where(box, one, wanted)[0] is None:
                return self._where(box, other, wanted)
            if self._where(box, one, not wanted)[0] is None:
                return box, True
        return box, False


def _related(kind: str, difference: Form, box: Box) -> tuple[Box | None, bool]:
    """Where a difference is below 0, and so on."""
    if kind != "!=":
        low, high = {"<": (-FAR, -1), "<=": (-FAR, 0), ">": (1, FAR), ">=": (0, FAR), "==": (0, 0)}[kind]
        return within(difference, box, low, high)
    least, greatest = interval(difference, box)
    if least > 0 or greatest < 0:
        return box, True
    if least == greatest:
        return None, True
    if least == 0 or greatest == 0:
        return within(difference, box, *((1, FAR) if least == 0 else (-FAR, -1)))
    return box, False


def _range(width: int, signed: bool) -> Span:
    """The least and the greatest value of a type."""
    half = 1 << max(0, width - 1)
    return (-half, half - 1) if signed else (0, 2 * half - 1)


def _fits(bounds: Span, width: int, signed: bool) -> bool:
    first, last = _range(width, signed)
    return first <= bounds[0] and bounds[1] <= last


def _wrapped(form: Form, node: ValueNode) -> Form:
    """The same value with numbers of a bounded size: a coefficient may change by a multiple of 2**width."""
    first, last = _range(node.width, node.signed)
    if not form.terms:
        return form if first <= form.constant <= last else Form((form.constant - first) % (last - first + 1) + first)
    limit = 1 << node.width
    if abs(form.constant) <= limit and all(abs(each) <= limit for _, each in form.terms):
        return form
    half = limit >> 1
    terms = ((id, (each + half) % limit - half) for id, each in form.terms)
    return Form((form.constant + half) % limit - half, tuple((id, each) for id, each in terms if each))


def _quotient(left: Span, right: Span) -> Span | None:
    return (left[0] // right[1], left[1] // right[0]) if right[0] > 0 else None


def _remainder(left: Span, right: Span) -> Span | None:
    if right[0] <= 0:
        return None
    return (left[0] % right[0],) * 2 if left[0] == left[1] and right[0] == right[1] else (0, min(left[1], right[1] - 1))


def _shifted(left: Span, right: Span) -> Span:
    return left[0] >> right[1], left[1] >> right[0]


def _or(left: Span, right: Span) -> Span:
    if left[0] == left[1] and right[0] == right[1]:
        return (left[0] | right[0],) * 2
    return max(left[0], right[0]), (1 << max(left[1].bit_length(), right[1].bit_length())) - 1


def _xor(left: Span, right: Span) -> Span:
    if left[0] == left[1] and right[0] == right[1]:
        return (left[0] ^ right[0],) * 2
    return 0, (1 << max(left[1].bit_length(), right[1].bit_length())) - 1


def _and(left: Span, right: Span) -> Span:
    return (left[0] & right[0],) * 2 if left[0] == left[1] and right[0] == right[1] else (0, min(left[1], right[1]))


BOUNDS: dict[int, Callable[[Span, Span], Span | None]] = {
    Op.UDiv: _quotient,
    Op.SDiv: _quotient,
    Op.UMod: _remainder,
    Op.SRem: _remainder,
    Op.SMod: _remainder,
    Op.ShiftRightLogical: _shifted,
    Op.ShiftRightArithmetic: _shifted,
    Op.BitwiseOr: _or,
    Op.BitwiseXor: _xor,
    Op.BitwiseAnd: _and,
    Op.IMul: lambda left, right: (left[0] * right[0], left[1] * right[1]),
    values.UNSIGNED_MIN: lambda left, right: (min(left[0], right[0]), min(left[1], right[1])),
    values.SIGNED_MIN: lambda left, right: (min(left[0], right[0]), min(left[1], right[1])),
    values.UNSIGNED_MAX: lambda left, right: (max(left[0], right[0]), max(left[1], right[1])),
    values.SIGNED_MAX: lambda left, right: (max(left[0], right[0]), max(left[1], right[1])),
}
"""Bounds of a result from bounds of two arguments that are not negative."""
REMAINDERS = frozenset({Op.UMod, Op.SRem, Op.SMod})
SHIFTS = frozenset({Op.ShiftRightLogical, Op.ShiftRightArithmetic})
LEAST = frozenset({values.UNSIGNED_MIN, values.SIGNED_MIN})
EXTREMES = LEAST | {values.UNSIGNED_MAX, values.SIGNED_MAX}
SIGNED = frozenset({Op.SDiv, Op.SRem, Op.SMod, Op.ShiftRightArithmetic, values.SIGNED_MIN, values.SIGNED_MAX})
"""Operations that take their arguments as signed."""
RELATIONS: dict[int, tuple[str, bool | None]] = {
    Op.IEqual: ("==", None),
    Op.INotEqual: ("!=", None),
    Op.UGreaterThan: (">", False),
    Op.SGreaterThan: (">", True),
    Op.UGreaterThanEqual: (">=", False),
    Op.SGreaterThanEqual: (">=", True),
    Op.ULessThan: ("<", False),
    Op.SLessThan: ("<", True),
    Op.ULessThanEqual: ("<=", False),
    Op.SLessThanEqual: ("<=", True),
}
"""Comparisons, and whether they take their arguments as signed; None where that does not matter."""
NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
