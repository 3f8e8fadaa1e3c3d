"""Descriptors of an array, and device addresses, that lead to the same bytes: each is a reference of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.races.shader_pairs import HEAD, LOADED, MODEL, STORED
from tests.support.compiled_glsl import GLSLANG, LINES, compile_functions
from vkharness.races.knowledge import MissingOrder
from vkharness.races.noted_dispatch import NotedDispatch, run_noted
from vkharness.shader.execution.outside import ShaderMemory

pytestmark = pytest.mark.skipif(GLSLANG is None, reason="there is no glslangValidator here")
DECLARED = """#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
layout(std430, set = 0, binding = 2) devicecoherent buffer Third { uint e[]; } c[2];
layout(buffer_reference, std430) buffer Behind { devicecoherent uint e[]; };
#define d Behind(uvec2(n * 0u + 4096u, 0u))
"""
ADDRESS = 4096
PLACES = {"one": "c[0].e[0]", "other": "c[1].e[0]", "address": "d.e[0]"}


class Bytes:
    """A range of one memory object; it implements `ShaderMemory`."""

    size = 1024

    def __init__(self, name: int, held: bytearray) -> None:
        self._name, self._held = name, held

    def read(self, offset: int, size: int) -> bytes:
        return bytes(self._held[offset : offset + size])

    def write(self, offset: int, data: bytes) -> None:
        self._held[offset : offset + len(data)] = data

    def located(self, offset: int) -> tuple[int, int]:
        return self._name, offset


class Aliases:
    """Resources in which all elements of a binding, and an address, are of the same bytes."""

    push_constants: Any = None

    def __init__(self) -> None:
        self._held = {binding: bytearray(1024) for binding in range(3)}

    def buffer(self, set: int, binding: int, element: int) -> ShaderMemory:
        return Bytes(binding, self._held[binding])

    def address(self, pointer: int) -> tuple[ShaderMemory, int]:
        return self.buffer(0, 2, 0), pointer - ADDRESS

    def image(self, set: int, binding: int, element: int) -> Any:
        raise AssertionError


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("references")
    bodies = {
        f"{one}_{other}": f"if (g == 0u) {{ {PLACES[one]} = 7u; {STORED} }} if (g == 64u && {LOADED}) b[0] = {at};"
        for one in PLACES
        for other, at in PLACES.items()
    }
    compile_functions(folder, HEAD.format(extensions=LINES + MODEL + DECLARED, body=""), bodies)
    return folder


@pytest.mark.parametrize("one", PLACES)
@pytest.mark.parametrize("other", PLACES)
def test_a_message_is_received_through_the_reference_of_who_sent_it(compiled: Path, one: str, other: str) -> None:
    code = (compiled / f"{one}_{other}.spv").read_bytes()
    dispatch = NotedDispatch(code, "main", ((2, 1, 1), (0, 0, 0)), Aliases(), {}, 50_000)
    run_noted(dispatch, range)
    lacking = [pair.lacks for pair, _ in dispatch.notes.found.values()]
    assert lacking == ([] if one == other else [MissingOrder.REFERENCE])
