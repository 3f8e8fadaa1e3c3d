"""Races between invocations: right and wrong shaders, on a stream that runs two work groups of them."""

from __future__ import annotations

from collections import ChainMap
from pathlib import Path

import pytest

from tests.races.shader_pairs import HEAD, PAIRS, WIDTH
from tests.support.compiled_glsl import GLSLANG, LINES, compile_functions
from tests.support.streams import Stream
from vkharness.races.dispatch_races import RacesFound, find_races
from vkharness.races.knowledge import Storage

pytestmark = pytest.mark.skipif(GLSLANG is None, reason="there is no glslangValidator here")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all shaders, compiled with their lines."""
    folder = tmp_path_factory.mktemp("races")
    for extensions in {pair.extensions for pair in PAIRS.values()}:
        bodies = [pair.bodies(name) for name, pair in PAIRS.items() if pair.extensions == extensions]
        head = HEAD.replace("= 64", "= 16").format(extensions=LINES + WIDTH.format(16, 4) + extensions, body="")
        compile_functions(folder, head, dict(ChainMap(*bodies)))
    return folder


def judged(shader: Path, groups: int = 2) -> RacesFound:
    stream = Stream()
    a, b = stream.buffer(1024), stream.buffer(1024)
    stream.begin()
    stream.fill(a, 0x11111111)
    stream.fill(b, 0x22222222)
    stream.compute(shader, [a, b]).run(groups=groups)
    stream.submit()
    return find_races(stream.blocks)


@pytest.mark.parametrize("name", PAIRS)
def test_what_is_ordered_is_no_race(compiled: Path, name: str) -> None:
    found = judged(compiled / f"{name}_True.spv")
    assert (found.races, found.unjudged, found.judged) == ([], {}, 1)


@pytest.mark.parametrize("name", PAIRS)
def test_a_mistake_is_named(compiled: Path, name: str) -> None:
    found = judged(compiled / f"{name}_False.spv")
    assert not found.unjudged
    assert any(PAIRS[name].why in each.why for each in found.races), found.races


def test_a_race_is_told_with_its_lines_and_what_it_costs(compiled: Path) -> None:
    found = judged(compiled / "neighbour_False.spv", groups=1)
    (race,) = found.races
    assert (race.storage, race.variable, race.places) == (Storage.SHARED, "s", 16)
    assert {each.kind for each in (race.first, race.second)} == {"write", "read"}
    assert {each.line for each in (race.first, race.second)} == {("neighbour_False.comp", 11)}
    assert race.first.group == race.second.group == (0, 0, 0) and race.first.invocation != race.second.invocation
    assert found.differing[race.call] > 12


def test_memory_of_groups_is_their_own(compiled: Path) -> None:
    """Shared memory of one work group is no place of another one."""
    assert not judged(compiled / "neighbour_True.spv", groups=4).races


@pytest.mark.parametrize(
    ("name", "barrier"),
    [("neighbour", "barrier()"), ("reduction", "barrier()"), ("buffer_in_a_group", "memoryBarrierBuffer(); barrier()")],
)
def test_the_barrier_that_is_missing_is_found(compiled: Path, name: str, barrier: str) -> None:
    races = judged(compiled / f"{name}_False.spv").races
    assert {each.mend for each in races} == {f"{barrier} before {name}_False.comp:11"}


@pytest.mark.parametrize("name", ["divergent", "counter", "other_group", "same_value"])
def test_no_barrier_orders_what_is_wrong_otherwise(compiled: Path, name: str) -> None:
    assert not any(each.mend for each in judged(compiled / f"{name}_False.spv").races)
