"""Shaders with one place in which the order of accesses is easily taken for another one, and their races."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.races.shader_pairs import FENCED, HEAD, MODEL, SCOPES
from tests.races.test_shader_pairs import judged
from tests.support.compiled_glsl import GLSLANG, compile_all
from vkharness.races import dispatch_races
from vkharness.races.knowledge import DispatchLayout, Invocation, ScopeReach, Semantics, Storage
from vkharness.races.shared_words import Atomic, Instruction, SharedWords, Word
from vkharness.shader.execution.outside import NotInterpreted

pytestmark = pytest.mark.skipif(GLSLANG is None, reason="there is no glslangValidator here")
SENT = "if (g == 0u) {{ b[1] = 7u; {} atomicExchange(a[0], 1u); }}"
RECEIVED = "if (g == 64u && atomicAdd(a[0], 0u) == 1u) {{ {} b[2] = b[1]; }}"
CONTROL = "controlBarrier(gl_ScopeWorkgroup, {}, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease);"

SUBGROUPS = "#extension GL_KHR_shader_subgroup_basic : require\n"
BYTES = """#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(std430, set = 0, binding = 0) buffer Third { uint8_t c[]; };
"""


class Case(NamedTuple):
    """A shader, whether it has races, and of how many work groups."""

    body: str
    races: bool
    groups: int = 2
    extensions: str = ""


CASES = {
    "atomics_around_a_read": Case("if (l == 0u) { atomicAdd(a[0], 1u); b[n] = a[0]; atomicAdd(a[0], 1u); }", True),
    "one_more_atomic": Case(
        "atomicAdd(a[0], 1u); barrier(); if (l == 0u) { atomicAdd(a[0], 1u); b[0] = a[0]; }", True, 1
    ),
    "one_more_atomic_in_order": Case(
        f"atomicAdd(a[0], 1u); {FENCED} if (l == 0u) {{ atomicAdd(a[0], 1u); b[0] = a[0]; }}", False, 1
    ),
    "many_reads": Case(
        "uint v = 0u; if (l == 0u) for (uint i = 0u; i < 64u; i++) v += a[0]; memoryBarrierBuffer(); barrier();"
        " v += a[0]; barrier(); if (l == 0u) a[0] = v;",
        True,
        1,
    ),
    "fence_of_the_group": Case(SENT.format("groupMemoryBarrier();") + RECEIVED.format("groupMemoryBarrier();"), True),
    "fence_of_the_receiving_group": Case(
        SENT.format("memoryBarrierBuffer();") + RECEIVED.format("groupMemoryBarrier();"), True
    ),
    "barrier_of_a_subgroup": Case(f"s[l] = g; {CONTROL.format('gl_ScopeSubgroup')} b[g] = s[l ^ 1u];", True, 1, SCOPES),
    "barrier_of_the_group": Case(
        f"s[l] = g; {CONTROL.format('gl_ScopeWorkgroup')} b[g] = s[l ^ 1u];", False, 1, SCOPES
    ),
    "fence_of_another_class": Case(
        "if (l == 0u) { s[1] = 7u; memoryBarrierShared(); atomicExchange(a[0], 1u); }"
        " if (l == 1u && atomicAdd(a[0], 0u) == 1u) { memoryBarrierShared(); b[0] = s[1]; }",
        True,
        1,
    ),
    "fence_of_both_classes": Case(
        "if (l == 0u) { s[1] = 7u; memoryBarrier(); atomicExchange(a[0], 1u); }"
        " if (l == 1u && atomicAdd(a[0], 0u) == 1u) { memoryBarrier(); b[0] = s[1]; }",
        False,
        1,
    ),
    "fence_before_another_class": Case(
        "b[g] = g; memoryBarrierBuffer(); s[l] = 1u; barrier(); a[g] = b[g ^ 1u];", False, 1
    ),
    "fence_of_one": Case(
        "if (l == 0u) { b[0] = g; memoryBarrierBuffer(); } barrier(); if (l > 0u) a[g] = b[0];", False, 1
    ),
    "fence_of_a_subgroup": Case(
        "b[g] = g; subgroupMemoryBarrierBuffer(); barrier(); a[g] = b[g ^ 1u];", True, 1, SUBGROUPS
    ),
    "fence_of_a_subgroup_and_the_group": Case(
        "b[g] = g; memoryBarrierBuffer(); subgroupMemoryBarrierBuffer(); barrier(); a[g] = b[g ^ 1u];",
        False,
        1,
        SUBGROUPS,
    ),
    "bytes_beside_the_own_one": Case(
        "c[l] = uint8_t(l); barrier(); uint v = uint(c[l]); b[l] = v + uint(c[l ^ 1u]);", True, 1, BYTES
    ),
    "barrier_that_releases_to_atomics": Case(
        "if (n == 0u) { b[l] = g; controlBarrier(gl_ScopeWorkgroup, gl_ScopeDevice, gl_StorageSemanticsBuffer,"
        " gl_SemanticsAcquireRelease); } if (g == 0u) atomicExchange(a[0], 1u);"
        " if (g == 64u && atomicAdd(a[0], 0u) == 1u) { memoryBarrierBuffer(); a[9] = b[5]; }",
        False,
        2,
        SCOPES,
    ),
}


def compiled(folder: Path, source: str) -> Path:
    compile_all(folder, {"shader": source})
    return folder / "shader.spv"


@pytest.mark.parametrize("name", CASES)
def test_an_order_is_taken_for_what_it_is(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    found = judged(compiled(tmp_path, HEAD.format(extensions=case.extensions, body=case.body)), case.groups)
    assert (bool(found.races), found.unjudged, found.judged) == (case.races, {}, 1), found.races


def test_the_mend_of_the_vulkan_memory_model_is_what_was_tried(tmp_path: Path) -> None:
    source = HEAD.format(extensions=MODEL, body="b[g] = g; barrier(); a[g] = b[g ^ 1u];")
    source = source.replace(") buffer", ") workgroupcoherent buffer")
    (race,) = judged(compiled(tmp_path, source), 1).races
    assert race.mend.startswith("controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup, gl_StorageSemanticsBuffer, ")


def test_a_barrier_is_tried_before_an_atomic(tmp_path: Path) -> None:
    body = "s[l] = 0u; atomicAdd(s[l ^ 1u], 1u); b[g] = l;"
    (race,) = judged(compiled(tmp_path, HEAD.format(extensions="", body=body)), 1).races
    assert race.mend == "barrier() before shader.comp:11"


def test_a_work_group_that_is_too_large_is_refused_before_it_is_made(tmp_path: Path) -> None:
    source = HEAD.format(extensions="", body="a[0] = 1u;")
    source = source.replace("local_size_x = 64", "local_size_x = 1024, local_size_y = 1024, local_size_z = 64")
    assert sum(judged(compiled(tmp_path, source), 1).unjudged.values()) == 1


def test_mends_have_one_allowance_in_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shader = compiled(tmp_path, HEAD.format(extensions="", body="s[l] = g; b[g] = s[l ^ 1u];"))
    assert not judged(shader, 1).unmended
    monkeypatch.setattr(dispatch_races, "MOST_IN_MENDS", 100)
    found = judged(shader, 1)
    assert found.unmended and not found.races[0].mend


def test_relaxed_atomics_pass_nothing_on_and_cost_no_more_each_time() -> None:
    words, spent = SharedWords(), [0]

    def spend(amount: int) -> None:
        spent[0] += amount

    relaxed = Instruction(1, Storage.BUFFER, 1, writes=True, atomic=Atomic(ScopeReach.ALL, Semantics(0)))
    for number in range(256):
        one = Invocation(number, DispatchLayout(64), spend)
        one.access(Storage.BUFFER)
        assert not [*words.access(Word(0, 0), (0, 4), relaxed, one, 0, 0)]
    assert spent[0] == 256


def test_each_word_counts_as_an_instruction() -> None:
    def refuse(amount: int) -> None:
        raise NotInterpreted(f"{amount}")

    with pytest.raises(NotInterpreted):
        Invocation(0, DispatchLayout(1), refuse).access(Storage.BUFFER)
