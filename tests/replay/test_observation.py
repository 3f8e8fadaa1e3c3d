"""Observing commands on drivers: what they write and read is found by experiment, and held against what is declared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.drivers_here import on_each_driver
from tests.support.streams import GENERAL, UNDEFINED, Stream, layers, struct, two_buffers, words
from vkharness.commands.handlers import COMMANDS
from vkharness.replay.observation import snapshots
from vkharness.replay.observation.declared import DeclaredAccesses
from vkharness.replay.observation.experiments import Budget, Experimenter, is_observed
from vkharness.replay.observation.observing import BYTES, RUNS, observe_trace
from vkharness.replay.outcomes.executor import open_scene
from vkharness.replay.schedule.steps import flatten
from vkharness.replay.schedule.units import units_of
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.trace.effects import Access
from vkharness.trace.observations import Observation

pytestmark = on_each_driver


def observed(stream: Stream, driver: str, budget: int = BYTES) -> list[Observation]:
    found = observe_trace(stream.blocks, driver, Budget(budget, RUNS))
    return [each for each in found if isinstance(each, Observation)]


def test_a_write_of_equal_values_is_seen(driver: str) -> None:
    stream, a, b = two_buffers()
    stream.begin()
    stream.fill(a, 7)
    stream.fill(a, 7)
    stream.copy(a, b, 8, to=4)
    stream.submit()
    first, second, copy = observed(stream, driver)
    assert first.writes == second.writes == {a: ((0, 16),)}
    assert (copy.reads, copy.writes) == ({a: ((0, 8),)}, {b: ((4, 12),)})
    assert not any(each.undeclared_writes or each.undeclared_reads for each in (first, second, copy))


def test_experiments_leave_the_stream_as_it_is(driver: str) -> None:
    """A shader that doubles its words runs several times in experiments, and once for all that comes after."""
    stream, a, b = two_buffers()
    double = stream.compute("scale_words", [a], words(2))
    stream.begin()
    stream.fill(a, 3)
    double.run()
    double.run()
    stream.copy(a, b, 16)
    stream.submit()
    with open_scene(stream.blocks, driver) as scene:
        experimenter = Experimenter(scene, DeclaredAccesses(stream.blocks), Budget(BYTES, RUNS))
        for unit in units_of(flatten(stream.blocks)):
            if is_observed(unit):
                experimenter.observe(unit)
            else:
                experimenter.run(unit)
        left = scene.contents.read_buffer(b, 0, 16)
        experimenter.snapshots.close()
    assert left.tobytes() == words(12, 12, 12, 12)


def test_images_from_the_undefined_layout_on(driver: str) -> None:
    stream = Stream()
    image, buffer = stream.image((4, 4, 1)), stream.buffer(64)
    stream.begin()
    stream.transition(image, UNDEFINED, GENERAL)
    region = struct(
        "VkBufferImageCopy",
        imageSubresource=layers(),
        imageOffset={"x": 1, "y": 2, "z": 0},
        imageExtent={"width": 2, "height": 2, "depth": 1},
    )
    stream.cmd(
        "CopyBufferToImage", srcBuffer=buffer, dstImage=image, dstImageLayout=GENERAL, regionCount=1, pRegions=[region]
    )
    stream.submit()
    (copy,) = observed(stream, driver)
    assert copy.writes == {image: ((9, 11), (13, 15))}
    assert copy.undeclared_writes == copy.undeclared_reads == {}


@contextmanager
def undeclared(name: str, write: bool) -> Iterator[None]:
    """Lets a command declare its writes, or its reads, no longer."""
    handler = COMMANDS[name]

    def fewer(*arguments: object) -> list[object]:
        effects = handler(*arguments)  # type: ignore[arg-type]
        return [e for e in effects if not (isinstance(e, Access) and ACCESS_KINDS[e.access_kind].write is write)]

    COMMANDS[name] = fewer  # type: ignore[assignment]
    try:
        yield
    finally:
        COMMANDS[name] = handler


@pytest.mark.parametrize("write", [True, False])
def test_what_is_not_declared_is_a_violation(driver: str, write: bool) -> None:
    stream, a, b = two_buffers()
    stream.begin()
    stream.copy(a, b, 8)
    stream.submit()
    with undeclared("vkCmdCopyBuffer", write):
        (copy,) = observed(stream, driver)
    assert copy.undeclared_writes == ({b: ((0, 8),)} if write else {})
    assert copy.undeclared_reads.keys() == (set() if write else {a})


def test_a_spent_budget_leaves_the_rest_unobserved(driver: str) -> None:
    stream, a, b = two_buffers()
    stream.begin()
    stream.fill(a, 7)
    stream.copy(a, b, 8)
    stream.submit()
    first, second = observed(stream, driver, budget=1)
    assert first.writes and (second.writes, second.problem) == ({}, "the budget is spent")


def test_reads_are_found_by_changing_what_is_declared(driver: str) -> None:
    """The whole of a storage buffer is declared as read and written; the shader reads all of one and writes another."""
    stream, a, b = two_buffers(64)
    copy, double = stream.compute("copy_words", [a, b]), stream.compute("scale_words", [a], words(2))
    stream.begin()
    stream.fill(a, 5)
    copy.run()
    double.run()
    stream.submit()
    fill, copied, doubled = observed(stream, driver)
    assert fill.reads == {}
    assert (copied.reads, copied.writes) == ({a: ((0, 64),)}, {b: ((0, 64),)})
    assert (doubled.reads, doubled.writes) == ({a: ((0, 64),)}, {a: ((0, 64),)})


def test_a_trace_that_is_too_large_is_observed_in_part(driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that reaches what is not observed runs once, and says so; the others are observed."""
    stream, a, b = two_buffers(64)
    large = stream.buffer(1 << 16)
    stream.begin()
    stream.fill(large, 3)
    stream.copy(large, a, 64)
    stream.copy(a, b, 64)
    stream.submit()
    monkeypatch.setattr(snapshots, "MOST_BYTES", 1 << 12)
    filled, copied, again = observed(stream, driver)
    reason = f"resource {large} is not observed: all resources together hold more than 0 MiB"
    assert (filled.writes, filled.notes) == ({}, (reason,))
    assert copied.notes == (reason,)
    assert (again.reads, again.writes, again.notes) == ({a: ((0, 64),)}, {b: ((0, 64),)}, ())
