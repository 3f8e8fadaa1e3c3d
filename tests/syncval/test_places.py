"""Place numbers: each stands for the execution of one command, and nothing is kept to which no range refers."""

from __future__ import annotations

from tests.support.rounds import WAITS, Rounds
from vkharness.check import Analysis
from vkharness.findings import Place
from vkharness.syncval.entries import RangeEntry
from vkharness.syncval.places import PlaceTable
from vkharness.syncval.range_store import PythonRangeStore
from vkharness.syncval.state import EMPTY
from vkharness.trace.effects import Command


def commands(*calls: int) -> tuple[Command, ...]:
    return tuple(Command(call, f"vkCmd{call}", f"app.py:{call}", ()) for call in calls)


def test_secondaries_stand_where_they_are_executed() -> None:
    """A primary of two commands runs two secondaries between them, one of which runs another."""
    places = PlaceTable(PythonRangeStore())
    batch = places.open(9, (50, 1))
    primary, first, inner, second = commands(1, 2), commands(11), commands(21, 22), commands(31)
    found = []

    def run(several: tuple[Command, ...], executed: dict[int, list[tuple[int, tuple[Command, ...]]]]) -> None:
        for command in several:
            number = batch.next
            found.append(number)
            batch.next += 1
            secondaries = executed.get(command.call, [])
            for position, (buffer, inside) in enumerate(secondaries):
                batch.execute(buffer, position, inside, number)
                run(inside, executed)
            if secondaries:
                batch.resume(number)

    batch.enter(100, 0, ())
    batch.enter(101, 1, primary)
    run(primary, {1: [(102, first), (103, second)], 11: [(104, inner)]})
    batch.enter(101, 2, primary)
    run(primary, {})
    seen = [places.place(number) for number in found]
    inside = {11: (102, (1, 0)), 21: (104, (11, 0)), 22: (104, (11, 0)), 31: (103, (1, 1))}
    assert [each.call for each in seen] == [1, 11, 21, 22, 31, 2, 1, 2]
    for at, each in enumerate(seen):
        buffer, executed_by = inside.get(each.call, (101, None))
        position = 1 if at < 6 else 2
        name, site = f"vkCmd{each.call}", f"app.py:{each.call}"
        assert each == Place(each.call, name, site, buffer, 50, 1, position, 9, executed_by)


def test_batches_stay_while_a_range_refers_to_them() -> None:
    store, numbers = PythonRangeStore(), list[int]()
    places = PlaceTable(store)
    for submit in range(1, 9):
        batch = places.open(submit % 2, (submit, 0))
        batch.enter(1, 0, commands(*range(100 * submit, 100 * submit + 50)))
        numbers.append(batch.next + 7)
        store.put(1, submit, submit + 1, RangeEntry(EMPTY, None, (batch.next + 7,)))
        batch.next += 50
    places.retire(1, (3, 0))
    assert [store.is_finished(number) for number in numbers] == [True, False, True, *[False] * 5]
    before = [places.place(number) for number in numbers]
    places.keep(numbers[1:4])
    assert len(places) == 5, "three that are referred to, and the last of each queue"
    assert [places.place(number) for number in numbers[1:4]] == before[1:4]
    assert places.place(numbers[7] + 1).call == before[7].call + 1, "the last one may go on"
    places.retire(0, (8, 0))
    assert [store.is_finished(number) for number in numbers[1:4]] == [True, True, True]
    places.keep([])
    assert len(places) == 2


def test_a_program_that_goes_on_keeps_few_batches() -> None:
    """Each frame overwrites what the frame before wrote. The host waits now and then, or never."""
    for waits in (WAITS, ("none",)):
        stream, mirror = Rounds(3, waits, commands=4), Analysis()
        context = mirror._validator._context
        for _ in range(60):
            for block in stream.round():
                mirror.step(block)
        referred = {number >> 32 for number in context.store.place_numbers()}
        assert len(context.places) <= 2 * len(referred) + context.ranges // 16 + 8
        context._check()
