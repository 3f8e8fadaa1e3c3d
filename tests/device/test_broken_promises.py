"""Broken promises: the table, and that each driver does the wrong that it is there for, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.fault_drivers import built
from tests.support.promise_streams import STREAMS
from vkharness.device.drivers import Driver
from vkharness.device.faults import broken_promises
from vkharness.device.faults.broken_promises import BREAKS, BROKEN_DRIVERS, FAMILIES, SHADOWS, BrokenDriver
from vkharness.device.process import Died, Worker
from vkharness.findings import UserError

LOOK = "tests.support.promise_streams:look"
OLD, NEW, DRAWN = [0x04030201] * 4, [0x0D0C0B0A] * 4, [0xFFFF0000] * 4
LOST = [0x669933CC] * 4
"""A colour that nobody asked for: 0.8, 0.2, 0.6 and 0.4 of 255."""
COUNTED, SEVENS = [1, 2, 3, 4], [7] * 4
SUBMITTED_FIRST = "queues, submitted first"
KEPT_IMAGE = [0x40302010] * 4
FLUSHED, INVALIDATED = "host memory, flushed", "host memory, invalidated"
HALF = [DRAWN[0], OLD[0], DRAWN[0], OLD[0]]
KEPT = {
    **{name: SEVENS for name in STREAMS if name.startswith("fill")},
    **{name: SEVENS for name in STREAMS if name.startswith("event reset")},
    "update": [5, 6, 7, 8],
    **{name: [6, 7, 8, 4] for name in ("copies", "copies 2")},
    "part": [7, 7, 3, 4],
    "clear": NEW,
    **{name: [5, 6, 7, 8] for name in ("upload", "upload 2", "blit", "blit 2")},
    **dict.fromkeys(("download", "download 2"), OLD),
    **{name: NEW for name in STREAMS if name.startswith(("resolve", "CLEAR"))},
    **{name: OLD for name in STREAMS if name.startswith(("LOAD", "transition"))},
    "secondaries": [6] * 4,
    "external": OLD,
    **dict.fromkeys(("drawn", "drawn indexed"), DRAWN),
    **dict.fromkeys(("scissor", "scissor, dynamic"), HALF),
    **{name: [5, 69] for name in ("dispatch", "indirect, fill", "indirect, update")},
    "pushed": [9, 73],
    "bound": [5, 6, 7, 8],
    **{name: [0] for name in ("query", "query, host")},
    **{name: [7, 8] for name in STREAMS if name.startswith("waited")},
    **{name: SEVENS for name in STREAMS if name.startswith("queues")},
    **{name: SEVENS for name in STREAMS if name.startswith("host writes")},
    "queues, transfer of an image": KEPT_IMAGE,
    FLUSHED: [0, 6, 7, 8, 5, 6, 7, 8],
    INVALIDATED: [0, 7, 7, 7, *SEVENS],
}
"""Words that each stream leaves where every promise is kept, by hand."""


def streams(beginning: str, found: list[int]) -> dict[str, list[int]]:
    """Each stream whose name begins so, with what it leaves."""
    return {name: found for name in STREAMS if name.startswith(beginning)}


def fills_elsewhere(found: list[int]) -> dict[str, list[int]]:
    """Each stream with fills on other queues that are submitted before the copy, with what it leaves."""
    return {name: found for how in ("one", "two", "timeline") for name in streams(f"queues, {how}", found)}


BROKEN = {
    "fill-past-a-barrier": streams("fill", COUNTED) | {"external": DRAWN},
    "fill-of-a-wrong-value": streams("fill", [6] * 4) | {"part": [6, 6, 3, 4]},
    "update-past-a-barrier": {"update": COUNTED, "indirect, update": [5, 1]},
    "copy-past-a-barrier": streams("copies", [2, 3, 4, 4]),
    "clear-past-a-barrier": {"clear": OLD},
    "update-last-byte-wrong": {"update": [5, 6, 7, 8 | 1 << 24]},
    "fill-word-short": streams("fill", [7, 7, 7, 4]) | {"part": [7, 2, 3, 4]},
    "fill-word-too-many": {"part": [7, 7, 7, 4], "fill": SEVENS},
    "copy-word-short": streams("copies", [6, 7, 3, 4]),
    "copy-from-wrong-offset": streams("copies", [5, 6, 7, 4]),
    "upload-row-short": streams("upload", [5, 6, *OLD[:2]]),
    "download-row-short": streams("download", [*OLD[:2], 3, 4]),
    "clear-wrong-component": {"clear": [0x0D0C0B00] * 4},
    "blit-half-region": streams("blit", [5, 5, 7, 7]),
    "resolve-skipped": streams("resolve", OLD),
    "clear-op-loads": streams("CLEAR", OLD) | streams("LOAD", OLD),
    "load-op-clears": streams("LOAD", LOST) | streams("CLEAR", NEW),
    "store-op-discards": streams("LOAD", LOST) | streams("CLEAR", LOST),
    "transition-loses-contents": streams("transition", LOST),
    "secondaries-reversed": {"secondaries": [5] * 4},
    "several-barriers-ignored": {"fill, two barriers": COUNTED, "fill": SEVENS, "fill, buffer barrier": SEVENS},
    "global-barrier-ignored": {"fill": COUNTED, "fill 1": COUNTED, "fill, buffer barrier": SEVENS},
    "buffer-barrier-ignored": {"fill": SEVENS, "fill, buffer barrier": COUNTED, "fill, two barriers": COUNTED},
    "event-wait-ignored": streams("fill, event", COUNTED) | {"fill": SEVENS},
    "event-reset-ignored": streams("event reset", [5] * 4) | streams("fill, event", SEVENS) | {"fill": SEVENS},
    "external-dependency-ignored": {"external": DRAWN, "fill": SEVENS},
    "indirect-read-early": streams("indirect", [5, 1]) | {"external": OLD, "update": KEPT["update"]},
    "push-constants-stale": {"pushed": [5, 69], "dispatch": [5, 69]},
    "descriptor-set-stale": {"bound": COUNTED, "dispatch": [5, 69]},
    "dispatch-group-short": {"dispatch": [5, 1]},
    "draw-vertex-short": streams("drawn", OLD),
    "scissor-ignored": streams("scissor", DRAWN),
    "query-reset-ignored": streams("query", [1]),
    "fence-early": {"waited, all": [1, 7], "waited, status": [7, 8], "waited, queue": [7, 8]},
    "fence-status-early": {"waited, status": [1, 7], "waited, all": [7, 8]},
    "counter-early": {"waited, counter": [1, 7], "waited, timeline": [7, 8]},
    "queue-wait-idle-early": {"waited, queue": [1, 7], "waited, all": [7, 8]},
    "device-wait-idle-early": {"waited, device": [1, 7], "waited, queue": [7, 8]},
    "timeline-wait-early": {"waited, timeline": [1, 7], "waited, all": [7, 8]},
    "semaphore-wait-ignored": fills_elsewhere(COUNTED) | {SUBMITTED_FIRST: SEVENS, "waited, timeline": [7, 8]},
    "one-semaphore-enough": fills_elsewhere(SEVENS) | {"queues, two": COUNTED},
    "timeline-value-less": fills_elsewhere(SEVENS) | streams("queues, timeline", COUNTED),
    "semaphore-signal-early": fills_elsewhere(COUNTED) | {"waited, all": [7, 8]},
    "late-signal-ignored": {"queues, late signal": COUNTED, SUBMITTED_FIRST: COUNTED, "queues, timeline": SEVENS},
    "acquire-loses-contents": {
        **streams("queues, transfer", [0x3F4CCCCD] * 4),
        "queues, transfer of an image": LOST,
        "queues, one": SEVENS,
    },
    "release-makes-nothing-available": {
        **dict.fromkeys(("queues, transfer", "queues, transfer 1"), COUNTED),
        "queues, transfer of an image": KEPT_IMAGE,
        "queues, one": SEVENS,
    },
    "copy-sees-old-bytes": {**streams("fill", COUNTED), "update": COUNTED, "copies": KEPT["copies"]},
    "host-writes-late": {**streams("host writes", [5] * 4), "waited, all": [7, 8]},
    "flush-ignored": {FLUSHED: [0] * 8, INVALIDATED: KEPT[INVALIDATED]},
    "flush-atom-short": {FLUSHED: [0, 6, 7, 0, 5, 6, 7, 0], INVALIDATED: KEPT[INVALIDATED]},
    "flush-from-start": {FLUSHED: [5, 6, 7, 0, 5, 6, 7, 8], INVALIDATED: KEPT[INVALIDATED]},
    "flush-one-range": {FLUSHED: [0, 6, 7, 8, *[0] * 4], INVALIDATED: KEPT[INVALIDATED]},
    "invalidate-ignored": {INVALIDATED: [0] * 8, FLUSHED: KEPT[FLUSHED]},
    "invalidate-atom-short": {INVALIDATED: [0, 7, 7, 0, 7, 7, 7, 0], FLUSHED: KEPT[FLUSHED]},
    "invalidate-from-start": {INVALIDATED: [7, 7, 7, 0, *SEVENS], FLUSHED: KEPT[FLUSHED]},
    "invalidate-one-range": {INVALIDATED: [0, 7, 7, 7, *[0] * 4], FLUSHED: KEPT[FLUSHED]},
    "invalidate-stale": {INVALIDATED: [0] * 8, FLUSHED: KEPT[FLUSHED]},
}
"""Words that streams leave where a promise is broken. Those with their words of `KEPT` show what it does not touch."""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    return built(tmp_path_factory.mktemp("promises"))


def looked(driver: Driver, variables: dict[str, str], names: list[str]) -> dict[str, list[int]]:
    with Worker(driver, packages=["tests"], variables=variables) as worker:
        found = worker.call(LOOK, {"names": names})
    assert not isinstance(found, Died), found
    return found


def test_the_streams_leave_what_is_promised_where_no_promise_is_broken(driver: Driver) -> None:
    plain = [name for name in STREAMS if not name.startswith(("queues", "host memory"))]
    assert looked(driver, {}, plain) == {name: KEPT[name] for name in plain}
    assert looked(driver, {FAMILIES: "1", SHADOWS: "1"}, [*STREAMS]) == KEPT


@pytest.mark.parametrize("promise", BROKEN_DRIVERS, ids=lambda each: each.name)
def test_a_broken_promise_shows(driver: Driver, promise: BrokenDriver) -> None:
    wrong = BROKEN[promise.name]
    assert any(KEPT[name] != found for name, found in wrong.items())
    variables = {BREAKS: promise.name} | ({promise.needs: "1"} if promise.needs else {})
    assert looked(driver, variables, [*wrong]) == wrong


def test_the_earliest_batch_goes_first_where_that_is_asked_for(driver: Driver) -> None:
    several = [SUBMITTED_FIRST, "queues, one"]
    assert looked(driver, {FAMILIES: "earliest"}, several) == dict.fromkeys(several, SEVENS)
    found = looked(driver, {FAMILIES: "earliest", BREAKS: "semaphore-wait-ignored"}, several)
    assert found == {SUBMITTED_FIRST: COUNTED, "queues, one": SEVENS}


def test_each_batch_of_a_queue_that_is_held_back_comes_behind_all_that_does_not_wait_for_it(driver: Driver) -> None:
    """The latest order lets the fill overtake the copy, since the copy's queue still waits when the fill may go."""
    race = ["queues, behind a wait"]
    for order, left in (("1", SEVENS), ("earliest", SEVENS), ("held-2", COUNTED), ("held-0", SEVENS)):
        assert looked(driver, {FAMILIES: order}, race) == {race[0]: left}, order
    queues = [name for name in STREAMS if name.startswith("queues")]
    for held in range(3):
        assert looked(driver, {FAMILIES: f"held-{held}"}, queues) == {name: KEPT[name] for name in queues}


def test_a_promise_that_nobody_knows_is_named(driver: Driver) -> None:
    with Worker(driver, packages=["tests"], variables={BREAKS: "no-such"}) as worker:
        with pytest.raises(UserError, match="vkCreateInstance failed"):
            worker.call(LOOK, {"names": ["fill"]})
        assert "fault driver: no promise is called no-such" in worker.printed


def test_the_table_says_what_is_broken_and_who_promised_it() -> None:
    names = [each.name for each in BROKEN_DRIVERS]
    assert len({*names}) == len(names) and {*names} == {*BROKEN}
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)+", name) for name in names)
    for each in BROKEN_DRIVERS:
        assert each.promise and "\n" not in each.promise and not each.promise.endswith(".")
        assert len(each.sentence.split()) > 4 and each.section[0].isupper()
        assert not re.search(r"pname:|fname:|ename:|<<", each.sentence)


def test_each_promise_has_its_part_of_the_driver() -> None:
    folder = Path(broken_promises.__file__).parent
    written = "".join(file.read_text() for file in folder.glob("*.h"))
    defined = re.findall(r"struct breaking breaks_(\w+) =", written)
    assert sorted(defined) == sorted(each.name.replace("-", "_") for each in BROKEN_DRIVERS)
    assert all(len(file.read_text().splitlines()) <= 600 for file in folder.glob("*.[ch]"))
