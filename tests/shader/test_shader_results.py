"""The project's compute shaders do on real drivers what their first lines say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.drivers_here import FOUND, NAMES
from vkharness.device.drivers import find_driver
from vkharness.device.process import Worker
from vkharness.shader.library import load
from vkharness.shader.reflect import reflect

FILL = [0xFFFFFFFF] * 64
COUNT = list(range(64))
SQUARES = [i * i for i in range(64)]
SEVENTH = [7 + i for i in range(64)]

RESULTS: list[tuple[str, str, list[list[int] | None], list[int], list[list[int]]]] = [
    ("fill_words", "s", [None], [7], [SEVENTH]),
    ("fill_words_writeonly", "s", [None], [7], [SEVENTH]),
    ("branch_not_taken", "s", [None], [0, 7], [FILL]),
    ("branch_not_taken", "s", [None], [1, 7], [SEVENTH]),
    ("branch_on_a_word", "ss", [None, SQUARES], [7], [FILL, SQUARES]),
    ("branch_on_a_word", "ss", [None, [1] * 64], [7], [SEVENTH, [1] * 64]),
    ("limited_words", "s", [None], [10, 40, 7], [FILL[:10] + SEVENTH[:40] + FILL[50:]]),
    ("tile_words", "s", [None], [0, 8, 7], [SEVENTH]),
    ("stride_words", "s", [None], [1, 3, 7], [[FILL[0], 7, FILL[0], 8, FILL[0], 9, *FILL[6:]]]),
    (
        "uniform_stride",
        "su",
        [None, [3, 20, *[0] * 62]],
        [7],
        [FILL[:3] + SEVENTH[:20] + FILL[23:], [3, 20, *[0] * 62]],
    ),
    ("count_and_store", "s", [SQUARES], [4, 7], [[16, *SQUARES[1:5], *SEVENTH[:16], *SQUARES[21:]]]),
    ("copy_words", "ss", [SQUARES, None], [], [SQUARES, SQUARES]),
    ("copy_words_plain", "ss", [SQUARES, None], [], [SQUARES, SQUARES]),
    ("reverse_words", "ss", [SQUARES, None], [], [SQUARES, SQUARES[::-1]]),
    ("add_words", "sss", [SQUARES, COUNT, None], [], [SQUARES, COUNT, [i * i + i for i in range(64)]]),
    ("scale_words", "s", [SQUARES], [3], [[3 * i * i for i in range(64)]]),
    ("sum_uniform", "us", [SQUARES, None], [], [SQUARES, [i * i + i for i in range(64)]]),
    ("atomic_add", "s", [SQUARES], [5], [[i * i + 5 for i in range(64)]]),
    ("atomic_exchange", "ss", [SQUARES, None], [5], [[5] * 64, SQUARES]),
    ("atomic_store", "s", [None], [7], [SEVENTH]),
    ("atomic_load", "ss", [SQUARES, None], [], [SQUARES, SQUARES]),
    ("texel_fetch_buffer", "ts", [SQUARES, None], [], [SQUARES, SQUARES]),
    ("texel_store_buffer", "w", [None], [7], [SEVENTH]),
    ("texel_load_buffer", "ws", [SQUARES, None], [], [SQUARES, SQUARES]),
    ("array_constant_index", "a", [None] * 4, [7], [FILL, FILL, SEVENTH, FILL]),
    ("array_constant_copy", "a", [SQUARES, None, None, None], [], [SQUARES, FILL, FILL, SQUARES]),
    ("array_specialized_index", "a", [None] * 4, [7], [FILL, FILL, FILL, SEVENTH]),
    ("array_dynamic_index", "a", [None] * 4, [1, 7], [FILL, SEVENTH, FILL, FILL]),
    ("length_only", "ss", [SQUARES, None], [], [SQUARES, [64] * 64]),
    ("unused_binding", "sss", [None] * 3, [7], [FILL, SEVENTH, FILL]),
    ("half_range", "s", [None], [7], [SEVENTH[:16] + FILL[16:]]),
    ("half_range_high", "s", [None], [7], [FILL[:16] + SEVENTH[:16] + FILL[32:]]),
    ("half_range_copy", "s", [SQUARES], [], [SQUARES[:16] * 2 + SQUARES[32:]]),
    ("push_constant_copy", "s", [None], [3, 1, 4, 1], [[3, 1, 4, 1] * 16]),
    ("indirect_args", "s", [None], [9, 8, 7], [[9, 8, 7, *FILL[3:]]]),
]
"""Shader, kinds of its bindings, words before, push constants, words after. Specialization constant 0 is 3."""


@pytest.fixture(scope="module", params=NAMES)
def worker(request: pytest.FixtureRequest) -> Iterator[Worker]:
    if request.param not in FOUND:
        pytest.skip(f"{request.param} is not installed; ci/setup installs it")
    with Worker(find_driver(request.param), packages=["tests"]) as running:
        yield running


@pytest.mark.parametrize(("shader", "kinds", "before", "push", "after"), RESULTS, ids=[row[0] for row in RESULTS])
def test_a_shader_does_what_it_says(
    worker: Worker, shader: str, kinds: str, before: Any, push: Any, after: Any
) -> None:
    constants = [3] if shader == "array_specialized_index" else []
    arguments = {"shader": shader, "kinds": kinds, "held": before, "push": push, "constants": constants}
    assert worker.call("tests.support.shader_jobs:dispatch", arguments) == {"words": after}


@pytest.mark.parametrize(("shader", "kinds", "before", "push", "after"), RESULTS, ids=[row[0] for row in RESULTS])
def test_words_change_only_where_the_use_says_so(shader: str, kinds: str, before: Any, push: Any, after: Any) -> None:
    """Every changed word of the table above lies in the write ranges of a Use of that buffer."""
    specialization = {0: b"\x03\0\0\0"} if shader == "array_specialized_index" else {}
    places = [(at, each) for at, kind in enumerate(kinds) for each in range(4 if kind == "a" else 1)]
    for place, old, new in zip(places, before, after, strict=True):
        changed = {4 * at for at, pair in enumerate(zip(old or FILL, new, strict=True)) if pair[0] != pair[1]}
        written: set[int] = set()
        for use in reflect(load(shader), "main", specialization).uses:
            if use.binding == place[0] and use.writes and place[1] in (use.elements or range(4)):
                for offset, size in use.write_ranges or ((0, 256),):
                    written.update(range(offset, offset + size))
        assert changed <= written


def test_images_are_stored_loaded_and_sampled(worker: Worker) -> None:
    stored = [(0x11223344 + i * 0x01030507) & 0xFFFFFFFF for i in range(64)]
    inverted = [word ^ 0xFFFFFFFF for word in stored]
    found = worker.call("tests.support.shader_jobs:images", {"value": 0x11223344})
    assert found == {"stored": stored, "loaded": inverted, "sampled": inverted, "separate": inverted, "size": [8] * 64}
