"""Affine forms against counting, and expressions evaluated for a dispatch against every invocation of it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator

import pytest

from vkharness.shader import values
from vkharness.shader.accesses import WRITE
from vkharness.shader.affine import Box, Form, add, interval, reached, scale, symbol, within
from vkharness.shader.opcodes import Op
from vkharness.shader.reach import Evaluation, KnownInputs, ShaderTouch
from vkharness.shader.values import ValueNode

SEEDS = range(20)


def points(box: Box) -> Iterator[dict[int, int]]:
    for chosen in itertools.product(*(range(low, high + 1) for low, high in box.values())):
        yield dict(zip(box, chosen, strict=True))


def value(form: Form, point: dict[int, int]) -> int:
    return form.constant + sum(point[id] * coefficient for id, coefficient in form.terms)


def random_box(dice: random.Random) -> Box:
    box = {}
    for id in range(dice.randrange(1, 4)):
        low = dice.randrange(-4, 5)
        box[id] = (low, low + dice.randrange(6))
    return box


def random_form(dice: random.Random, box: Box) -> Form:
    form = Form(dice.randrange(-9, 10))
    for id in box:
        form = add(form, symbol(id), dice.randrange(-9, 10))
    return scale(form, dice.choice((1, 1, 2, -3)))


@pytest.mark.parametrize("seed", SEEDS)
def test_forms_say_what_counting_says(seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(40):
        box = random_box(dice)
        form = random_form(dice, box)
        counted = [value(form, point) for point in points(box)]
        assert interval(form, box) == (min(counted), max(counted))
        size = dice.randrange(1, 6)
        spans, exact = reached(form, box, size)
        touched = {byte for each in counted for byte in range(each, each + size)}
        covered = {byte for low, high in spans for byte in range(low, high)}
        assert touched <= covered and (not exact or touched == covered), (form, box, size)
        low = dice.randrange(-30, 30)
        high = low + dice.randrange(20)
        narrowed, same = within(form, box, low, high)
        allowed = [point for point in points(box) if low <= value(form, point) <= high]
        kept = list(points(narrowed)) if narrowed is not None else []
        assert all(point in kept for point in allowed) and (not same or len(kept) == len(allowed)), (
            form,
            box,
            low,
            high,
        )


def test_many_rows_are_answered_with_their_hull() -> None:
    assert reached(Form(0, ((1, 1000),)), {1: (0, 999)}, 4) == ([(0, 999_004)], False)


# -- expressions

WIDTH = 32
AXES = range(3)
LOCAL, GROUPS, BASE = (3, 2, 1), (2, 2, 1), (1, 0, 0)
ARITHMETIC = (
    Op.IAdd, Op.ISub, Op.IMul, Op.UDiv, Op.UMod, Op.SDiv, Op.SRem, Op.SMod, Op.ShiftLeftLogical, Op.ShiftRightLogical,
    Op.BitwiseAnd, Op.BitwiseOr, Op.BitwiseXor, values.UNSIGNED_MIN, values.UNSIGNED_MAX, values.SIGNED_MIN,
)  # fmt: skip
COMPARISONS = (Op.ULessThan, Op.SLessThan, Op.UGreaterThanEqual, Op.IEqual, Op.INotEqual, Op.SGreaterThan)
PUSHED = {0: 5, 4: 2, 8: 0xFFFFFFFF}


def random_nodes(dice: random.Random) -> tuple[list[ValueNode], list[int], list[int]]:
    """(nodes, those that are integers, those that are booleans)."""
    nodes: list[ValueNode] = []
    for built_in in (values.WORKGROUP_ID, values.LOCAL_INVOCATION_ID, values.GLOBAL_INVOCATION_ID):
        nodes += [ValueNode(values.BUILT_IN, WIDTH, False, (built_in, axis)) for axis in AXES]
    nodes += [ValueNode(values.PUSH, WIDTH, False, (offset,)) for offset in PUSHED]
    nodes += [ValueNode(values.CONSTANT, WIDTH, False, (dice.choice((0, 1, 2, 3, 4, 7, 16, 33)),)) for _ in range(4)]
    integers = list(range(len(nodes)))
    booleans: list[int] = []
    for _ in range(dice.randrange(3, 12)):
        kind = dice.randrange(8)
        pick = [dice.choice(integers[-6:] if dice.random() < 0.5 else integers) for _ in range(2)]
        if kind < 5:
            node = ValueNode(dice.choice(ARITHMETIC), WIDTH, dice.random() < 0.2, (pick[0], pick[1]))
            integers.append(len(nodes))
        elif kind == 5 or len(booleans) < 2:
            node = ValueNode(dice.choice(COMPARISONS), 0, False, (pick[0], pick[1]))
            booleans.append(len(nodes))
        elif kind == 6:
            chosen = (dice.choice(booleans), dice.choice(booleans))
            node = ValueNode(dice.choice((Op.LogicalAnd, Op.LogicalOr)), 0, False, chosen)
            booleans.append(len(nodes))
        else:
            node = ValueNode(Op.Select, WIDTH, False, (dice.choice(booleans), pick[0], pick[1]))
            integers.append(len(nodes))
        nodes.append(node)
    return nodes, integers, booleans


def signed(bits: int) -> int:
    return bits - (1 << WIDTH) if bits >> (WIDTH - 1) else bits


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def run(nodes: list[ValueNode], ids: dict[int, tuple[int, int, int]]) -> list[int | None]:
    """The value of each node as a device computes it, in two's complement; None for a result that is not defined."""
    found: list[int | None] = []
    for node in nodes:
        if node.op == values.BUILT_IN:
            found.append(ids[node.args[0]][node.args[1]])
        elif node.op == values.PUSH:
            found.append(PUSHED[node.args[0]])
        elif node.op == values.CONSTANT:
            found.append(node.args[0])
        else:
            args = [found[each] for each in node.args]
            found.append(None if None in args else one(node.op, [each for each in args if each is not None]))
    return found


def one(op: int, args: list[int]) -> int | None:
    a, b = args[0], args[1]
    sa, sb = signed(a), signed(b)
    if op in (Op.UDiv, Op.UMod, Op.SDiv, Op.SRem, Op.SMod) and b == 0:
        return None
    if op in (Op.ShiftLeftLogical, Op.ShiftRightLogical) and b >= WIDTH:
        return None
    results: dict[int, Callable[[], int]] = {
        Op.IAdd: lambda: a + b, Op.ISub: lambda: a - b, Op.IMul: lambda: a * b, Op.UDiv: lambda: a // b,
        Op.UMod: lambda: a % b, Op.SDiv: lambda: truncated(sa, sb), Op.SRem: lambda: sa - sb * truncated(sa, sb),
        Op.SMod: lambda: sa % sb,
        Op.ShiftLeftLogical: lambda: a << b, Op.ShiftRightLogical: lambda: a >> b, Op.BitwiseAnd: lambda: a & b,
        Op.BitwiseOr: lambda: a | b, Op.BitwiseXor: lambda: a ^ b, values.UNSIGNED_MIN: lambda: min(a, b),
        values.UNSIGNED_MAX: lambda: max(a, b), values.SIGNED_MIN: lambda: min(sa, sb), Op.ULessThan: lambda: a < b,
        Op.SLessThan: lambda: sa < sb, Op.UGreaterThanEqual: lambda: a >= b, Op.SGreaterThan: lambda: sa > sb,
        Op.IEqual: lambda: a == b, Op.INotEqual: lambda: a != b, Op.LogicalAnd: lambda: a & b,
        Op.LogicalOr: lambda: a | b, Op.Select: lambda: args[1] if a else args[2],
    }  # fmt: skip
    return int(results[op]()) % (1 << WIDTH)


def invocations() -> Iterator[dict[int, tuple[int, int, int]]]:
    for group in itertools.product(*(range(first, first + count) for first, count in zip(BASE, GROUPS, strict=True))):
        for local in itertools.product(*map(range, LOCAL)):
            whole = tuple(g * size + at for g, size, at in zip(group, LOCAL, local, strict=True))
            yield {
                values.WORKGROUP_ID: (group[0], group[1], group[2]),
                values.LOCAL_INVOCATION_ID: (local[0], local[1], local[2]),
                values.GLOBAL_INVOCATION_ID: (whole[0], whole[1], whole[2]),
            }


def known_inputs() -> KnownInputs:
    ranges = {}
    for axis, (first, count, size) in enumerate(zip(BASE, GROUPS, LOCAL, strict=True)):
        ranges[values.WORKGROUP_ID, axis] = (first, first + count - 1)
        ranges[values.LOCAL_INVOCATION_ID, axis] = (0, size - 1)
        ranges[values.GLOBAL_INVOCATION_ID, axis] = (first * size, (first + count) * size - 1)
    return KnownInputs(ranges, True, lambda offset, size: PUSHED.get(offset), lambda set, binding, element: None)


@pytest.mark.parametrize("seed", range(60))
def test_an_evaluation_covers_what_each_invocation_touches(seed: int) -> None:
    """Any expression, under any conditions: nothing is left out, and an exact answer has nothing else."""
    dice = random.Random(seed)
    exact = 0
    for _ in range(30):
        nodes, integers, booleans = random_nodes(dice)
        conditions = tuple((dice.choice(booleans), dice.random() < 0.7) for _ in range(dice.randrange(3)) if booleans)
        terms = ((dice.choice(integers), dice.choice((1, 4, 16)), dice.choice((0, 0, 9))),)
        touch = ShaderTouch(WRITE, 0, None, 8, 4, terms, conditions=conditions, certain=True)
        reach = Evaluation(nodes, known_inputs()).reach(touch)
        touched: set[int] = set()
        undefined = False
        for ids in invocations():
            found = run(nodes, ids)
            index = found[terms[0][0]]
            wanted = [(found[condition], value) for condition, value in conditions]
            if index is None or any(each is None for each, _ in wanted):
                undefined = True
                continue
            outside = index >= 1 << 31 or (terms[0][2] and index >= terms[0][2])
            if all(bool(each) == value for each, value in wanted) and not outside:
                touched |= set(range(8 + index * terms[0][1], 12 + index * terms[0][1]))
        if reach is None:
            assert not touched, (nodes, touch)
            continue
        spans = reach.spans
        assert all(any(low <= byte < high for low, high in spans) for byte in touched), (nodes, touch, spans)
        if reach.exact and not undefined:
            exact += 1
            assert sum(high - low for low, high in spans) == len(touched), (nodes, touch, spans)
    assert exact, "an answer that is never exact says little"


def test_a_remainder_and_a_mask_bound_any_number() -> None:
    """Also one that is negative or wraps. A remainder with the sign of the dividend is bounded by a dividend only."""

    def bounds(op: int, other: int, width: int = WIDTH) -> tuple[int, int] | None:
        nodes = [ValueNode(values.UNKNOWN, width, True, (1,)), ValueNode(values.CONSTANT, width, True, (other,))]
        nodes.append(ValueNode(op, width, True, (0, 1)))
        reach = Evaluation(nodes, known_inputs()).reach(ShaderTouch(WRITE, None, 2, 0, 4))
        assert reach is not None
        return reach.elements

    assert bounds(Op.SMod, 3) == (0, 2) and bounds(Op.UMod, 3) == (0, 2) and bounds(Op.BitwiseAnd, 6) == (0, 6)
    assert bounds(Op.SRem, 3) is None and bounds(Op.SMod, -3) is None and bounds(Op.BitwiseAnd, -2) is None
    assert bounds(Op.BitwiseOr, 3) is None and bounds(Op.SMod, 0) is None
