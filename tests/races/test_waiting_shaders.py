"""Shaders that run long, or wait for one another: what two orders leave different is what no order decides."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.races.shader_pairs import HEAD
from tests.races.test_shader_pairs import judged
from tests.support.compiled_glsl import GLSLANG, compile_all
from vkharness.races import dispatch_races

pytestmark = pytest.mark.skipif(GLSLANG is None, reason="there is no glslangValidator here")


class Case(NamedTuple):
    """A shader of work groups of four, and how many bytes the two orders leave different."""

    body: str
    differing: int
    groups: int = 1
    functions: str = ""


MOST = 1 << 16
"""Instructions that each of these takes at most."""
LONG = "for (uint i = 0u; i < {}; i++) k += a[15];"
APPENDED = "a[2u + atomicAdd(a[0], 1u) - 0x11111111u] = g;"
COUNTED = "uint i = 0u; bool more() { i++; return i < 300u; }"
CASES = {
    "longer_by_number": Case(f"uint k = 0u; {LONG.format('l * 300u')} {APPENDED}", 4),
    "the_last_is_long": Case(f"uint k = 0u; if (l == 3u) {LONG.format('900u')} {APPENDED}", 4),
    "the_last_group_is_long": Case(f"uint k = 0u; if (n == 1u) {LONG.format('300u')} if (l == 0u) {APPENDED}", 2, 2),
    "a_function_counts": Case(f"if (l == 3u) while (more()); {APPENDED}", 4, 1, COUNTED),
    "one_waits_in_a_group": Case(
        "s[l] = 0u; barrier(); if (n == 1u) { if (l == 3u || l == 0u) while (atomicAdd(s[1], 0u) == 0u) ;"
        f" if (l == 1u) atomicExchange(s[1], 1u); }} barrier(); if (l == 0u) {APPENDED}",
        2,
        2,
    ),
    "a_group_waits": Case(f"if (n == 1u) while (atomicAdd(a[0], 0u) == 0x11111111u) ; if (l == 0u) {APPENDED}", 0, 2),
    "who_waits_goes_on_in_the_order": Case(
        f"if (l == 3u) atomicExchange(a[1], 7u); else while (atomicAdd(a[1], 0u) != 7u) ; if (l < 2u) {APPENDED}", 2
    ),
    "look_back": Case(
        "if (l == 0u) { uint sum = n; if (n > 0u) { while (atomicAdd(a[n - 1u], 0u) != 1u) ; memoryBarrierBuffer();"
        " sum += b[n - 1u]; } b[n] = sum; memoryBarrierBuffer(); atomicExchange(a[n], 1u); }",
        0,
        64,
    ),
}


def source(case: Case) -> str:
    text = HEAD.format(extensions="", body=case.body).replace("local_size_x = 64", "local_size_x = 4")
    return text.replace("void main", f"{case.functions}\nvoid main")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("waits")
    compile_all(folder, {name: source(case) for name, case in CASES.items()})
    return folder


@pytest.mark.parametrize("name", CASES)
def test_only_who_waits_leaves_its_place_in_the_order(
    compiled: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch_races, "MOST_INSTRUCTIONS", MOST)
    found = judged(compiled / f"{name}.spv", CASES[name].groups)
    assert (found.unjudged, found.judged) == ({}, 1)
    assert sum(found.differing.values()) == CASES[name].differing, found.differing
