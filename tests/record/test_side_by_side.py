"""Random programs run bare, with the native core and in Python alone: all three see the same."""

from __future__ import annotations

import pytest

from tests.record.random_programs import ENDS, HEAD, PARTS, Ran, SideBySide, Way, build_driver, program
from vkharness.native import core

pytestmark = pytest.mark.driver
FIRST, PROGRAMS = 5000, 6
"""Others than those of hunts, which begin at 0."""


@pytest.mark.skipif(core is None, reason="there is no native core to hold against Python")
def test_random_programs_see_the_same_in_all_ways() -> None:
    with SideBySide() as ways:
        found = {seed: ways.differences(seed) for seed in range(FIRST, FIRST + PROGRAMS)}
    assert {seed: each for seed, each in found.items() if each} == {}


def test_every_part_is_a_program_that_says_what_it_saw(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each alone, as written: nothing else would be noticed by a program that fails at its first line."""
    for source in (*PARTS.values(), *ENDS):
        compile(HEAD + source.format(n=1), "part", "exec")
    way = Way("core", build_driver(tmp_path_factory.mktemp("driver")))
    try:
        way.start(FIRST)
        ran = way.ran()
    finally:
        way.close()
    assert isinstance(ran, Ran) and ran.faults == [] and any(ran.heard) and program(FIRST) == program(FIRST)
