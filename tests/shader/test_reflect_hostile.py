"""Modules that are truncated, corrupt or made to hurt: each gives an answer or one clear line, with bounded work."""

from __future__ import annotations

import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.spirv_text import module
from vkharness.findings import UserError
from vkharness.shader import reflect as room
from vkharness.shader.library import load, names
from vkharness.shader.reflect import ReflectedEntryPoint
from vkharness.shader.spirv import MAXIMUM_BYTES

MODULES = [load(name) for name in names()]
HEADER = struct.pack("<5I", 0x07230203, 0x10300, 0, 100, 0)


def words(*instructions: tuple[int, ...]) -> bytes:
    """Instructions (opcode, operands …) after a header."""
    return HEADER + b"".join(
        struct.pack(f"<{len(operands) + 1}I", (len(operands) + 1) << 16 | op, *operands)
        for op, *operands in instructions
    )


def reflect_or_refuse(code: bytes, specialization: dict[int, bytes] | None = None) -> ReflectedEntryPoint | str:
    """The answer, or the line of the refusal. Anything else that is raised fails the test."""
    try:
        return room._reflect(code, "main", specialization or {}, 0)
    except UserError as error:
        assert len(str(error).splitlines()) == 1
        return str(error)


@given(st.sampled_from(MODULES), st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(1, 255)), max_size=8))
def test_changed_bytes_are_answered_or_refused(code: bytes, changes: list[tuple[int, int]]) -> None:
    changed = bytearray(code)
    for at, bits in changes:
        changed[at % len(code)] ^= bits
    reflect_or_refuse(bytes(changed))


@given(st.sampled_from(MODULES), st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 60)), max_size=6))
def test_exchanged_ids_are_answered_or_refused(code: bytes, changes: list[tuple[int, int]]) -> None:
    """Words after the header replaced by small numbers: forward references, wrong types, cycles."""
    changed = bytearray(code)
    for at, id in changes:
        place = 20 + at % (len(code) // 4 - 5) * 4
        changed[place : place + 4] = id.to_bytes(4, "little")
    reflect_or_refuse(bytes(changed))


def test_every_truncation_is_answered_or_refused() -> None:
    code = load("early_tests")
    refused = [reflect_or_refuse(code[:end]) for end in range(len(code))]
    assert all(isinstance(answer, str) for answer in refused), "the function's end is missing in each"


def test_shuffled_instructions_are_answered_or_refused() -> None:
    dice = random.Random(20)
    code = load("sampled_separate")
    instructions, at = [], 20
    while at < len(code):
        size = 4 * int.from_bytes(code[at + 2 : at + 4], "little")
        instructions.append(code[at : at + size])
        at += size
    for _ in range(300):
        left, right = dice.randrange(len(instructions)), dice.randrange(len(instructions))
        instructions[left], instructions[right] = instructions[right], instructions[left]
        reflect_or_refuse(code[:20] + b"".join(instructions))


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (b"", "not SPIR-V: 0 bytes are not a header of 5 words and whole words"),
        (HEADER[:-1], "not SPIR-V: 19 bytes"),
        (b"\x7fELF" * 6, "not SPIR-V: the first word is 0x464c457f"),
        (HEADER, "has no entry point 'main' for this stage; it has none"),
        (HEADER + bytes(4), "word 5: an instruction of zero words"),
        (HEADER + struct.pack("<I", 9 << 16 | 3), "truncated: word 5 begins 9 words, 1 are left"),
        (words((30,)), "word 5: OpTypeStruct with only 0 operands"),
        (words((54, 1, 2, 0, 3)), "ends inside the function %2"),
        (words((54, 1, 2, 0, 3), (54, 1, 4, 0, 3)), "a function inside the function %2"),
        (words((54, 1, 2, 0, 3), (56,), (54, 1, 2, 0, 3), (56,)), "declares the function %2 twice"),
    ],
    ids=["empty", "short", "elf", "bare", "zero words", "cut", "operands", "open", "nested", "twice"],
)
def test_what_is_no_module_is_named(code: bytes, line: str) -> None:
    answer = reflect_or_refuse(code)
    assert isinstance(answer, str)
    assert line in answer


ENTRY = (15, 5, 1, 0x6E69616D, 0)
"""OpEntryPoint GLCompute %1 "main"."""
BODY = ((54, 2, 1, 0, 3), (248, 4), (253,), (56,))


@pytest.mark.parametrize(
    ("declarations", "line"),
    [
        ([(30, 10, 10)], "uses the type %10, which is not declared before"),
        ([(30, 10, 11), (30, 11, 10)], "uses the type %11, which is not declared before"),
        ([(39, 10, 5349), (28, 10, 10, 10)], "declares the type %10 twice"),
        ([(21, 10, 32, 0), (21, 10, 64, 0)], "declares the type %10 twice"),
        ([(21, 10, 0xFFFFFFFF, 0)], "a scalar of 4294967295 bits"),
        ([(21, 10, 32, 0), (23, 11, 10, 0xFFFFFFFF)], "a vector or matrix of 4294967295 components"),
        ([(21, 10, 32, 0), (23, 11, 10, 1)], "a vector or matrix of 1 components"),
        ([(43, 99, 10, 0)], "uses the type %99, which is not declared before"),
        ([(59, 98, 10, 12)], "uses the type %98, which is not declared before"),
    ],
)
def test_declarations_out_of_order_are_named(declarations: list[tuple[int, ...]], line: str) -> None:
    answer = reflect_or_refuse(words(ENTRY, *declarations, *BODY))
    assert isinstance(answer, str)
    assert line in answer


def test_a_missing_function_is_named() -> None:
    assert reflect_or_refuse(words(ENTRY)) == "SPIR-V calls the function %1, which it does not define"


def test_recursion_is_refused() -> None:
    calls = ((54, 2, 1, 0, 3), (57, 2, 5, 7), (56,), (54, 2, 7, 0, 3), (57, 2, 6, 1), (56,))
    assert reflect_or_refuse(words(ENTRY, *calls)) == "SPIR-V function %1 calls itself"


def test_a_structure_index_past_its_members_is_refused() -> None:
    code = module("%word_a = OpAccessChain %word_pointer %a %four %zero\nOpStore %word_a %one")
    assert reflect_or_refuse(code) == "SPIR-V indexes a structure of 1 members by 4"


def test_an_index_into_a_scalar_is_refused() -> None:
    answer = reflect_or_refuse(module("%word_a = OpAccessChain %word_pointer %a %zero %zero %zero"))
    assert isinstance(answer, str)
    assert "which has no parts" in answer


def test_a_resource_without_a_binding_is_refused() -> None:
    code = bytearray(module("%v = OpArrayLength %uint %a 0"))
    place = code.index(struct.pack("<2I", 33, 0))
    code[place] = 0x19
    answer = reflect_or_refuse(bytes(code))
    assert isinstance(answer, str)
    assert "has no DescriptorSet or no Binding" in answer


def test_a_module_over_the_limit_is_refused_unread() -> None:
    assert "is over the limit" in str(reflect_or_refuse(bytes(MAXIMUM_BYTES + 4)))


def test_nested_arrays_make_no_huge_numbers() -> None:
    arrays = [(28, 11 + depth, 10 + depth, 9) for depth in range(4000)]
    scalars = [(21, 8, 64, 0), (43, 8, 9, 0xFFFFFFFF, 0x7FFFFFFF), (26, 10)]
    pointer = [(32, 6000, 0, 4010), (59, 6000, 6001, 0)]
    places = [(71, 6001, 33, 0), (71, 6001, 34, 0)]
    body = ((54, 2, 1, 0, 3), (248, 4), (61, 4010, 6002, 6001), (253,), (56,))
    entry = reflect_or_refuse(words(ENTRY, *places, *scalars, *arrays, *pointer, *body))
    assert isinstance(entry, ReflectedEntryPoint)
    assert [(use.kind, use.elements, use.array_size) for use in entry.uses] == [("sampler", None, 1 << 64)]


def test_pointers_passed_around_in_too_many_ways_are_refused() -> None:
    """Each select doubles the ways; the sets are kept small, and what cannot be is refused."""
    lines = ["%p0_0 = OpAccessChain %word_pointer %a %zero %zero"]
    values = []
    for index in range(3000):
        lines.append(f"%c{index} = OpAccessChain %word_pointer %a %zero %k{index}")
        values.append(f"%k{index} = OpConstant %uint {index + 10}")
    lines += ["%s0 = OpSelect %word_pointer %true %c0 %c1"]
    lines += [f"%s{n} = OpSelect %word_pointer %true %s{n - 1} %c{n + 1}" for n in range(1, 2999)]
    answer = reflect_or_refuse(module("\n".join(lines), declarations="\n".join(values)))
    assert answer == "SPIR-V passes pointers around in too many ways to follow"
