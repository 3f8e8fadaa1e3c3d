"""Instrumented shaders: they run as before, and note each access with its descriptor, offset and kind."""

from __future__ import annotations

import pytest

from tests.support.drivers_here import on_each_driver
from tests.support.streams import Stream, two_buffers, words
from vkharness.findings import UserError
from vkharness.replay.observation.experiments import Budget
from vkharness.replay.observation.observing import BYTES, observe_trace
from vkharness.shader.accesses import READ, READ_MODIFY_WRITE, WRITE
from vkharness.shader.assembler import Assembler, text
from vkharness.shader.instrument import ADDRESSES, ANYWHERE, TEXEL, instrument
from vkharness.shader.library import load, names
from vkharness.shader.opcodes import Op
from vkharness.shader.reflect import reflect
from vkharness.shader.spirv import SpirvError, parse, read
from vkharness.trace.observations import ALL, Observation

ADDRESS, CAPACITY = 0x1234_5678_9ABC, 1000
WITH_ADDRESSES = [name for name in names() if (Op.Capability, (ADDRESSES,)) in Assembler(load(name)).capabilities]
"""Shaders that reach memory by device addresses, of which no descriptor is known."""


@pytest.mark.parametrize("name", names())
def test_what_is_taken_apart_is_put_together_again(name: str) -> None:
    code = load(name)
    assert Assembler(code).assemble() == code


WITH_RAYS = ["trace_ray.comp"]
"""Shaders that trace rays."""


@pytest.mark.parametrize("name", WITH_RAYS)
def test_rays_are_not_followed(name: str) -> None:
    with pytest.raises(SpirvError, match="OpRayQueryInitializeKHR of a resource"):
        instrument(load(name), ADDRESS, CAPACITY, 7)


@pytest.mark.parametrize("name", [name for name in names() if name not in (*WITH_ADDRESSES, *WITH_RAYS)])
def test_every_use_of_a_resource_has_a_site(name: str) -> None:
    """The sites of a module are what reflection says, and each id is defined once."""
    made = instrument(load(name), ADDRESS, CAPACITY, 7)
    (point,) = parse(load(name)).entry_points
    uses = reflect(load(name), point.name).uses
    for flag, wanted in ((READ, "reads"), (WRITE, "writes")):
        noted = {(site.set, site.binding) for site in made.sites if site.flags & (flag | READ_MODIFY_WRITE)}
        assert noted == {(use.set, use.binding) for use in uses if getattr(use, wanted)}
    header, instructions = read(made.code)
    results = [operands[1] for op, operands in instructions if op in (Op.Constant, Op.FunctionCall, Op.IAdd, Op.IMul)]
    results += [operands[0] for op, operands in instructions if op == Op.Label]
    assert len(results) == len(set(results)) and max(results) < header[3]
    assert parse(made.code).entry_points == [point]


@pytest.mark.parametrize("name", WITH_ADDRESSES)
def test_addresses_are_not_followed(name: str) -> None:
    with pytest.raises(SpirvError, match=r"a pointer of which the resource is not known|of a resource"):
        instrument(load(name), ADDRESS, CAPACITY, 0)


def test_forms_of_notes() -> None:
    forms = {name: instrument(load(name), ADDRESS, CAPACITY, 0).sites[0] for name in ("image_atomic_add", "sample_2d")}
    assert (forms["image_atomic_add"].form, forms["image_atomic_add"].flags) == (TEXEL, READ_MODIFY_WRITE)
    assert forms["sample_2d"].form == ANYWHERE


def test_what_is_not_followed_is_not_instrumented() -> None:
    """A pointer that is chosen at run time: the resource is not known where it is used."""
    asm = Assembler(load("copy_words"))
    chains = {operands[1]: operands for op, operands in asm.functions if op == Op.AccessChain}
    stored = [(at, operands) for at, (op, operands) in enumerate(asm.functions) if op == Op.Store]
    at, chain = next((at, chains[operands[0]]) for at, operands in stored if operands[0] in chains)
    condition = asm.id()
    asm.declarations.append((Op.ConstantTrue, (asm.type(Op.TypeBool), condition)))
    asm.functions.insert(at, (Op.Select, (chain[0], asm.id(), condition, chain[1], chain[1])))
    with pytest.raises(SpirvError, match="OpSelect of a resource"):
        instrument(asm.assemble(), ADDRESS, CAPACITY, 0)


@pytest.mark.parametrize("code", [b"", b"x" * 20, load("copy_words")[:-4]])
def test_what_is_no_module_is_refused(code: bytes) -> None:
    with pytest.raises(UserError):
        instrument(code, ADDRESS, CAPACITY, 0)


def test_literal_strings_are_padded() -> None:
    assert text("abc") == (0x00636261,)
    assert text("abcd") == (0x64636261, 0)


def observed(stream: Stream, driver: str) -> list[Observation]:
    return [each for each in observe_trace(stream.blocks, driver, Budget(BYTES, 0)) if isinstance(each, Observation)]


@on_each_driver
def test_shaders_note_what_they_access(driver: str) -> None:
    """The dispatch is declared to access all of the buffers: what it reads is no constant. It has 64 invocations."""
    stream, a, b = two_buffers(1024)
    copy, double = stream.compute("copy_words", [a, b]), stream.compute("scale_words", [b], words(2))
    stream.begin()
    copy.run()
    double.run()
    stream.submit()
    copied, doubled = observed(stream, driver)
    assert copied.shaders == doubled.shaders == ALL
    assert (copied.shader_reads, copied.shader_writes) == ({a: ((0, 256),)}, {b: ((0, 256),)})
    assert doubled.shader_reads == doubled.shader_writes == {b: ((0, 256),)}
    assert copied.reads == {a: ((0, 256),)}
    assert not copied.undeclared_reads and not copied.undeclared_writes


@on_each_driver
def test_a_store_of_what_is_there_is_noted(driver: str) -> None:
    """Two fillings show no write of a shader that adds nothing; its notes do."""
    stream, a, _ = two_buffers(256)
    add = stream.compute("scale_words", [a], words(1))
    stream.begin()
    add.run()
    stream.submit()
    (scaled,) = observed(stream, driver)
    assert scaled.writes == scaled.reads == {a: ((0, 256),)}
