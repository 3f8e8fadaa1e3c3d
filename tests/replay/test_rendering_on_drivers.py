"""Rendering through the rig puts the right pixels into an image, and its replays put them there again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.drivers_here import FOUND, NAMES
from tests.support.graphics_jobs import HAZARDS, WAYS
from vkharness.device.drivers import find_driver
from vkharness.device.process import Worker

GRADIENT = [0xFF400000 | y << 8 | x for y in range(16) for x in range(16)]
INVERTED = [word ^ 0xFFFFFFFF for word in GRADIENT]
SQUARE = [4 <= x < 12 and 4 <= y < 12 for y in range(16) for x in range(16)]
SPECIAL = {
    "subpasses 1": INVERTED,
    "subpasses 2": INVERTED,
    "self-dependency": INVERTED,
    "multiview": [2 if inside else 1 for inside in SQUARE],
    "suspended": [2 if inside else 1 for inside in SQUARE],
    "clear": [2 if inside else 1 for inside in SQUARE],
    "depth and stencil": [word if inside else 1 for word, inside in zip(GRADIENT, SQUARE, strict=True)],
}


@pytest.fixture(scope="module", params=NAMES)
def worker(request: pytest.FixtureRequest) -> Iterator[tuple[Worker, str]]:
    if request.param not in FOUND:
        pytest.skip(f"{request.param} is not installed; ci/setup installs it")
    with Worker(find_driver(request.param), packages=["tests"]) as running:
        yield running, request.param


@pytest.mark.parametrize("how", WAYS)
def test_pixels_here_and_in_replays(worker: tuple[Worker, str], how: str) -> None:
    found = worker[0].call("tests.support.graphics_jobs:picture", {"how": how, "device": worker[1]})
    assert isinstance(found, dict), found
    if "missing" in found:
        pytest.skip(f"{worker[1]} has no {found['missing']}")
    expected = SPECIAL.get(how, GRADIENT)
    assert found == {"here": expected, "serial": expected, "native": expected}


ENDS = [(which, False) for which in HAZARDS] + [(which, True) for which in ("load", "clear", "store")]


@pytest.mark.parametrize(("which", "dynamic"), ENDS, ids=[f"{which}-{dynamic}" for which, dynamic in ENDS])
def test_a_hazard_with_one_end_in_a_pass_is_shown(worker: tuple[Worker, str], which: str, dynamic: bool) -> None:
    arguments = {"which": which, "dynamic": dynamic, "device": worker[1]}
    found = worker[0].call("tests.support.graphics_jobs:hazard_at_an_end", arguments)
    assert isinstance(found, dict), found
    assert found["shown"], found["reason"]


PAIRS = [("subpasses 2", "dynamic"), ("clear", "indexed"), ("suspended", "self-dependency")]


@pytest.mark.parametrize("how", PAIRS, ids=" and ".join)
def test_two_render_pass_instances_in_any_order(worker: tuple[Worker, str], how: tuple[str, str]) -> None:
    """They take the state that they need along, and leave the same pixels."""
    assert set(how) <= WAYS.keys()
    found = worker[0].call("tests.support.graphics_jobs:two_pictures", {"how": list(how), "device": worker[1]})
    assert isinstance(found, dict), found
    assert found["orders"] and all(order["moved"] for order in found["orders"])
    assert [order["differences"] for order in found["orders"]] == [[]] * len(found["orders"])
