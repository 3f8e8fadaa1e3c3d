"""Shaders that spin: valid, with each store behind the spin, and of the same results."""

from __future__ import annotations

import pytest

from tests.support.spirv_text import complaint
from vkharness.shader.assembler import Assembler
from vkharness.shader.library import load, names
from vkharness.shader.opcodes import Op
from vkharness.shader.spin import SEEDS, spinning
from vkharness.shader.spirv import SpirvError, parse

SPUN = [name for name in names() if name.endswith((".comp", ".vert", ".frag"))]


@pytest.mark.parametrize("at_entry", [False, True])
@pytest.mark.parametrize("name", SPUN)
def test_a_module_that_spins_is_valid_and_otherwise_the_same(name: str, at_entry: bool) -> None:
    made = spinning(load(name), at_entry)
    assert complaint(made, "vulkan1.3") == ""
    (before,), (after,) = parse(load(name)).entry_points, parse(made).entry_points
    assert (before.model, before.name, before.function) == (after.model, after.name, after.function)
    assert after.interface[: len(before.interface)] == before.interface and len(after.interface) <= 2 + len(
        before.interface
    )
    added = [op for op, _ in Assembler(made).functions]
    for op, _ in Assembler(load(name)).functions:
        added.remove(op)
    calls = added.count(Op.FunctionCall)
    assert calls == added.count(Op.Select) + at_entry >= 1, "each spin decides what is stored"


@pytest.mark.parametrize("at_entry", [False, True])
def test_the_spin_comes_before_what_others_see_and_at_the_entry_before_all(at_entry: bool) -> None:
    """`copy_words` has a variable of its function: what is stored there stays as it is."""
    recorded = Assembler(load("copy_words"))
    own = {operands[1] for op, operands in recorded.functions if op == Op.Variable}
    stores = [operands for op, operands in recorded.functions if op == Op.Store]
    inner = [each for each in stores if each[0] in own]
    assert inner and len(inner) < len(stores)
    made = Assembler(spinning(load("copy_words"), at_entry)).functions
    assert [each for each in inner if (Op.Store, each) not in made] == []
    calls = [at for at, (op, _) in enumerate(made) if op == Op.FunctionCall]
    seen = [at for at, (op, operands) in enumerate(made) if op == Op.Store and operands[0] not in own]
    assert calls[0] < seen[0]
    assert (calls[0] < next(at for at, (op, _) in enumerate(made) if op == Op.Load)) is at_entry


def test_what_cannot_spin_is_refused() -> None:
    others = [name for name in names() if name not in SPUN]
    assert others, "there are shaders of other stages"
    for name in others:
        with pytest.raises(SpirvError, match="not one entry point"):
            spinning(load(name))
    asm = Assembler(load("copy_words"))
    asm.functions = [each for each in asm.functions if each[0] != Op.Store]
    with pytest.raises(SpirvError, match="nothing is stored"):
        spinning(asm.assemble())
    with pytest.raises(SpirvError):
        spinning(load("copy_words")[:-4])


def test_the_built_in_that_a_module_has_is_the_seed() -> None:
    """Two inputs of one entry point cannot be the same built-in."""
    for name in SPUN:
        module = parse(spinning(load(name)))
        (point,) = module.entry_points
        seeds = [each for each in point.interface if module.decorations.get(each, {}).get(11) == SEEDS[point.model]]
        assert len(seeds) == 1
