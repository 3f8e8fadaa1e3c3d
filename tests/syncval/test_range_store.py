"""The native store of ranges against the one in Python, step by step: the same entries, states and order of slots."""

from __future__ import annotations

import gc
import sys
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from vkharness import native
from vkharness.spec.masks import scope
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.syncval import slots
from vkharness.syncval.access import AccessRequest, after_access
from vkharness.syncval.barrier import after_barrier, after_set, expand
from vkharness.syncval.command_forms import FormStep, FormStepKind
from vkharness.syncval.completion import after_completion
from vkharness.syncval.entries import RangeEntry
from vkharness.syncval.layout_transition import after_transition
from vkharness.syncval.range_store import (
    ALWAYS,
    BY_CLOCK,
    NO_RACE,
    Cover,
    NativeRangeStore,
    PythonRangeStore,
    RangeStore,
    automaton,
    live,
)
from vkharness.syncval.state import EMPTY, Change, Question, State
from vkharness.trace.effects import Dependency

pytestmark = pytest.mark.skipif(native.core is None, reason=f"in use: {native.in_use}")
SIZE, QUEUES, SPACES = 24, (1, 2), (1, -7)
KINDS = [
    ACCESS_KIND[f"SYNC_{name}"].index
    for name in (
        "COPY_TRANSFER_READ",
        "COPY_TRANSFER_WRITE",
        "CLEAR_TRANSFER_WRITE",
        "COMPUTE_SHADER_SHADER_STORAGE_READ",
        "COMPUTE_SHADER_SHADER_STORAGE_WRITE",
        "VERTEX_SHADER_UNIFORM_READ",
    )
]
SCOPES = [
    expand(Dependency(*scope(source), *scope(target)), 0x7FFFFFFF)
    for source in ("COPY/TRANSFER_WRITE", "COPY", "ALL_COMMANDS/MEMORY_WRITE")
    for target in ("COPY/TRANSFER_READ", "COMPUTE_SHADER/SHADER_READ|SHADER_WRITE", "ALL_COMMANDS/MEMORY_READ")
]
queues, spaces, kinds, scopes = map(st.sampled_from, (QUEUES, SPACES, KINDS, SCOPES))
spans = st.tuples(st.integers(0, SIZE - 1), st.integers(1, 6)).map(lambda it: (it[0], it[0] + it[1]))
rows = st.builds(
    lambda begin, width, gap, number: tuple((at, at + width) for at in range(begin, SIZE, width + gap)[:number]),
    *(st.integers(0, SIZE - 1), st.integers(1, 3), st.integers(0, 3), st.integers(1, 6)),
)
some_spans = st.lists(spans, min_size=1, max_size=3).map(tuple) | rows


OF_ALL = AccessRequest(KINDS[1], 1, 1)


COMMANDS = [
    (1, ((0, 4),), KINDS[1], (0, 4)),
    (1, ((0, 4), (8, 12), (16, 20)), KINDS[0], (0, 12)),
    (1, ((2, 6),), KINDS[4], (6, 8)),
    (-7, ((0, 3), (4, 7), (8, 11)), KINDS[1], (0, 24)),
    (-7, ((0, 24),), KINDS[3], (4, 7)),
]
"""Commands that come again: a space, and the spans of an access of a kind; and a range that is then synchronized."""


class Plan:
    """The place in which a native store keeps data of a command."""

    effects = ()

    def __init__(self) -> None:
        self.engine: Any = None


def core() -> Any:
    assert native.core is not None
    return native.core


def barrier(dependency: Any, viewer: int) -> Change:
    return Change(((dependency,), viewer), lambda state: after_barrier(state, (dependency,), viewer))


class Stores(RuleBasedStateMachine):
    """Every step goes to both forms."""

    limit = 1 << 15

    def __init__(self) -> None:
        super().__init__()
        self.automaton = automaton(self.limit)
        self.stores: list[RangeStore] = [PythonRangeStore(), NativeRangeStore(self.automaton)]
        self.batches: list[int] = []
        self.queue_of: dict[int, int] = {}
        self.plans: dict[Any, Plan] = {}
        self.number = 0
        self.open(1)

    @rule(queue=queues)
    def open(self, queue: int) -> None:
        """A batch comes."""
        self.number += 1
        self.batches.append(self.number)
        self.queue_of[self.number] = queue
        for store in self.stores:
            store.add_batch(self.number, queue, (self.number, 0), False)

    def place(self, batch: int) -> int:
        return self.batches[batch % len(self.batches)] << 32 | batch % 5

    @rule(space=spaces, several=some_spans, kind=kinds, queue=queues, batch=st.integers(0, 9), racing=st.booleans())
    def access(self, space: int, several: Any, kind: int, queue: int, batch: int, racing: bool) -> None:
        """An access meets the same in both forms."""
        request, place = AccessRequest(kind, queue, queue), self.place(batch)
        met = [store.apply(space, several, request, place, ALWAYS if racing else NO_RACE) for store in self.stores]
        assert met[0] == met[1]
        for *_, entry in [] if racing else met[1]:
            assert after_access(entry.state, request).hazard

    @rule(which=st.integers(0, len(COMMANDS) - 1), dependency=scopes, moved=st.booleans(), batch=st.integers(0, 9))
    @precondition(lambda self: self.limit > 1)  # forms hold numbers of states
    def repeat(self, which: int, dependency: Any, moved: bool, batch: int) -> None:
        """A form remembers where it found its ranges. They may be elsewhere now, or their space may be gone."""
        space, several, kind, (begin, end) = COMMANDS[which]
        request, place, at = AccessRequest(kind, 1, 1), self.place(batch), COMMANDS
        after, change = after_transition((dependency,), 1, 1), barrier(dependency, 1)
        cover = Cover(space, begin, end, None, after) if moved else Cover(space, begin, end, change, None)
        asked = Question(("written", 1), lambda state: state.write is not None)
        steps = (
            FormStep(FormStepKind.APPLY, space, several, request, NO_RACE),
            FormStep(FormStepKind.TRANSITION, space, several, asked, NO_RACE),
            FormStep(FormStepKind.SYNCHRONIZE, 0, (cover,), None, NO_RACE),
        )
        python, native_one = self.stores
        plan = self.plans.setdefault((which, dependency, moved), Plan())
        run = native_one.run([plan], 0, 1, place, at, 0, True)  # type: ignore[list-item]
        if not run.stopped:
            plan.engine = native_one.form(plan.engine, at, at, steps)
            run = native_one.run([plan], 0, 1, place, at, 0, True)  # type: ignore[list-item]
        met = [(0, each) for each in python.apply(space, several, request, place, NO_RACE)]
        assert isinstance(python, PythonRangeStore)
        for low, high, entry in (each for span in several for each in python.pieces(space, *span)):
            now = live(entry, python._over, python._reads_are_over)
            met += [(1, (low, high, now))] if asked(now.state) else []
        python.synchronize(None, place, [cover])
        assert (run.stopped, run.met) == (1, met)

    @rule(space=spaces, several=some_spans, kind=kinds, batch=st.integers(0, 9), upto=st.integers(0, 9))
    def racing_access(self, space: int, several: Any, kind: int, batch: int, upto: int) -> None:
        """By the clock, the native form leaves out what cannot race."""
        request, place = AccessRequest(kind, 1, 1), self.place(batch)
        for store in self.stores:
            store.set_clock(1, {2: (upto, 0)})
        before, after = (store.apply(space, several, request, place, BY_CLOCK) for store in self.stores)
        late = [
            each
            for each in before
            if after_access(each[2].state, request).hazard
            or any(number >> 32 in self.racing(upto) for number in each[2].places)
        ]
        assert after == late

    def racing(self, upto: int) -> set[int]:
        return {number for number in self.of_second if number > upto}

    @property
    def of_second(self) -> set[int]:
        return {number for number in self.batches if self.queue_of[number] == 2}

    @rule(dependency=scopes, viewer=queues)
    def change_everything(self, dependency: Any, viewer: int) -> None:
        for store in self.stores:
            store.map(barrier(dependency, viewer))

    @rule(token=st.integers(1, 3), viewer=queues)
    def set_event(self, token: int, viewer: int) -> None:
        change = Change(("test", token, viewer), lambda state: after_set(state, token, 1 << 32, 0, viewer))
        for store in self.stores:
            store.map(change)

    @rule(token=st.integers(1, 3), viewer=queues)
    def complete(self, token: int, viewer: int) -> None:
        """Reads are over that only a token tells of."""
        for store in self.stores:
            store.let_reads_be_over()
            store.map(Change(("complete", token, viewer), lambda state: after_completion(state, token, viewer)))

    @rule(
        everything=st.none() | scopes,
        ranged=st.lists(st.tuples(spaces, spans, scopes, st.booleans()), max_size=3),
        viewer=queues,
        batch=st.integers(0, 9),
    )
    def synchronize(self, everything: Any, ranged: list[Any], viewer: int, batch: int) -> None:
        change = barrier(everything, viewer) if everything else None
        covers = [
            Cover(space, span[0], span[1], None, after_transition((each,), viewer, viewer))
            if moved
            else Cover(space, span[0], span[1], barrier(each, viewer), None)
            for space, span, each, moved in ranged
            if not any(space == other and span != at for other, at, *_ in ranged)
        ]
        for store in self.stores:
            store.synchronize(change, self.place(batch), covers)

    @rule(batch=st.integers(0, 9))
    def finish(self, batch: int) -> None:
        for store in self.stores:
            store.finish_batch(self.place(batch) >> 32)

    @rule()
    def keep(self) -> None:
        """Batches that no range refers to go."""
        numbers = {number >> 32 for number in self.stores[0].place_numbers()} | {self.number}
        self.batches = [number for number in self.batches if number in numbers]
        for store in self.stores:
            store.keep_batches(sorted(numbers))

    @rule(space=spaces, span=spans, space2=spaces, at=st.integers(0, SIZE), joined=st.booleans())
    def copy_entry(self, space: int, span: Any, space2: int, at: int, joined: bool) -> None:
        for store in self.stores:
            held = store.pieces(space, *span)
            for begin, end, entry in held[:1]:
                (store.assign if joined else store.put)(space2, at, at + end - begin, entry)

    @rule(space=spaces, span=spans)
    def erase(self, space: int, span: Any) -> None:
        for store in self.stores:
            store.erase(space, *span)

    @rule(space=spaces, writes=st.booleans())
    def forget_over(self, space: int, writes: bool) -> None:
        """Drops ranges that are over, and nothing else."""
        python, core = self.stores
        over = [each for each in python.everything(space) if all(map(python.is_finished, each[2].places))]
        gone = [each for each in over if writes or each[2].write is None]
        left = [each for each in python.everything(space) if each not in gone]
        assert python.forget_over(space, writes) == core.forget_over(space, writes) == bool(left)
        assert python.everything(space) == left

    @rule(space=spaces)
    @precondition(lambda self: self.number % 3 == 0)
    def drop(self, space: int) -> None:
        for store in self.stores:
            store.drop(space)

    @rule(space=spaces, span=spans)
    def look(self, space: int, span: Any) -> None:
        """To look wakes what sleeps."""
        found = [store.pieces(space, *span) for store in self.stores]
        assert found[0] == found[1]
        assert all(one[2].state is other[2].state for one, other in zip(*found, strict=True))

    @invariant()
    def both_hold_the_same(self) -> None:
        python, core = self.stores
        assert python.ranges() == core.ranges()
        assert python.sizes() == core.sizes()
        assert python.states() == core.states()
        assert sorted(python.place_numbers()) == sorted(core.place_numbers())
        for space in SPACES:
            assert python.everything(space) == core.everything(space)
            assert python.has(space) == core.has(space)
        for store in self.stores:
            store._check()


SLEEPY = [(32, 32, 1024), (1, 1, 1), (2, 3, 4), (3, 1000, 5), (1, 0, 10_000)]
"""AWAKE, STEPS and KEPT: as they are, and smaller ones, so that slots sleep."""


@pytest.mark.parametrize("limits", SLEEPY)
@pytest.mark.parametrize("limit", [1, 1 << 15])
def test_the_native_store_does_what_the_one_in_python_does(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int, int], limit: int
) -> None:
    """With a limit of one state, numbers of states and all answers are given up again and again."""
    for name, value in zip(("AWAKE", "STEPS", "KEPT"), limits, strict=True):
        monkeypatch.setattr(slots, name, value)
    monkeypatch.setattr(slots, "NEW_STEP", 1)
    machine = type("Machine", (Stores,), {"limit": limit})
    steps = settings(max_examples=15, stateful_step_count=30, deadline=None)
    run_state_machine_as_test(machine, settings=steps)


def test_a_span_behind_others_in_one_piece_may_be_a_piece() -> None:
    """It stays one, though its neighbour is then equal: the spans before it lie in another piece."""
    machine = Stores()
    machine.access(1, ((6, 8),), KINDS[0], 1, 1, False)
    machine.access(1, ((5, 7),), KINDS[3], 1, 1, False)
    machine.access(1, ((0, 6),), KINDS[2], 1, 1, False)
    machine.access(1, ((1, 2), (3, 4), (7, 8)), KINDS[3], 1, 1, False)
    machine.both_hold_the_same()
    assert machine.stores[1].everything(1)[-1][:2] == (7, 8)


def test_what_is_cut_is_joined_to_what_a_barrier_does_not_change() -> None:
    """That is no longer a piece when its own turn comes, and is joined to what is behind it."""
    machine = Stores()
    for begin, end, number in ((4, 8, 2), (8, 12, 3), (8, 12, 2), (0, 4, 1)):
        for store in machine.stores:
            store.put(1, begin, end, RangeEntry(numbered(number), 1, ()))
    for store in machine.stores:
        store.map(Change("all become one", lambda state: numbered(1)))
        store.synchronize(None, 1, [Cover(1, 2, 12, Change("nothing changes", lambda state: state), None)])
    machine.both_hold_the_same()
    assert [each[:2] for each in machine.stores[1].everything(1)] == [(0, 2), (2, 12)]


@pytest.mark.parametrize("span", [(0, 1), (0, 2), (1, 4)], ids=["a part", "all", "more"])
def test_a_barrier_that_changes_nothing_where_slots_go_to_sleep(
    monkeypatch: pytest.MonkeyPatch, span: tuple[int, int]
) -> None:
    """The range of a barrier over everything and over a range gets a slot that is awake, whatever it was before."""
    for name in ("AWAKE", "STEPS", "KEPT", "NEW_STEP"):
        monkeypatch.setattr(slots, name, 1)
    for first in SCOPES:
        for second in SCOPES:
            machine = Stores()
            machine.racing_access(-7, ((0, 2),), KINDS[0], 0, 0)
            machine.change_everything(first, 1)
            machine.racing_access(1, ((0, 1),), KINDS[0], 0, 0)
            machine.synchronize(second, [(-7, span, second, False)], 1, 0)
            machine.both_hold_the_same()


def numbered(number: int) -> State:
    """One of any number of states."""
    return after_access(EMPTY, AccessRequest(KINDS[1], 100 + number, 100 + number)).state


def test_numbers_of_states_are_used_again() -> None:
    """A program with ten thousand states, a few of which are in use at once, needs few numbers."""
    known = automaton(64)
    store = NativeRangeStore(known)
    most = 0
    for number in range(10_000):
        request = AccessRequest(KINDS[1], number, number)
        store.apply(number % 8, ((0, 4),), request, number, NO_RACE)
        if number % 7 == 0:
            store.map(barrier(SCOPES[number % 9], number))
        most = max(most, *known.sizes()[:2])
    assert most < 64 * 32
    assert store.ranges() == 8
    for space in range(8):
        ((_, _, entry),) = store.pieces(space, 0, 4)
        assert entry.write == 9_992 + space
        assert entry.state.write is not None
        assert entry.state.write.queue == entry.write
    store._check()


def test_a_rule_is_asked_once() -> None:
    known = automaton(1 << 15)
    store = NativeRangeStore(known)
    asked = []
    for round in range(4):
        for at in range(50):
            store.apply(1, ((4 * at, 4 * at + 4),), AccessRequest(KINDS[at % 2], 1, 1), round, NO_RACE)
        store.map(barrier(SCOPES[0], 1))
        asked.append(known.sizes()[2])
    assert asked[-1] < 12
    assert asked[-1] == asked[-2]


def test_a_rule_that_fails_or_comes_back_leaves_the_store_whole() -> None:
    store: RangeStore = NativeRangeStore()
    store.apply(1, ((0, 4), (8, 12)), AccessRequest(KINDS[1], 1, 1), 5, NO_RACE)
    before = store.pieces(1, 0, 100)

    def fails(state: State) -> State:
        raise KeyboardInterrupt

    def comes_back(state: State) -> State:
        store.drop(1)
        return state

    with pytest.raises(KeyboardInterrupt):
        store.map(Change("it fails", fails))
    with pytest.raises(RuntimeError, match="in use"):
        store.map(Change("it comes back", comes_back))
    with pytest.raises(AttributeError):
        store.apply(1, ((2, 10),), "no request", 5, NO_RACE)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        store.put(1, 0, 4, RangeEntry("no state", None, ("no", "places")))  # type: ignore[arg-type]
    assert store.pieces(1, 0, 100) == before
    store._check()


def test_slots_that_sleep_miss_nothing_when_a_rule_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slots that are brought forward together, of which one fails on the way, are as far forward as they came."""
    for name, value in (("AWAKE", 1), ("STEPS", 1000), ("NEW_STEP", 1), ("KEPT", 3)):
        monkeypatch.setattr(slots, name, value)
    asleep, fails = numbered(1), list[bool]()

    def rule(state: State, token: int) -> State:
        if token == 3 and state.write == asleep.write and fails:
            fails.clear()
            raise KeyboardInterrupt
        return after_set(state, token, 1 << 32, 1 << KINDS[1], 101)

    def changed(store: RangeStore, token: int) -> None:
        store.map(Change(("one fails", token), lambda state: rule(state, token)))

    stores: list[RangeStore] = [NativeRangeStore(automaton(1 << 15)), PythonRangeStore()]
    for store in stores:
        fails[:] = [True] * (store is stores[0])
        for number in range(1, 4):
            store.put(1, 4 * number, 4 * number + 2, RangeEntry(numbered(number), 1, ()))
        for token in range(1, 12):
            with suppress(KeyboardInterrupt):
                changed(store, token)
            store._check()
        assert not fails
    found, expected = (store.pieces(1, 0, 100) for store in stores)
    assert found == expected
    assert len(found[0][2].state.views[0].write.tokens) == 11


class Remembered:
    """A state, a request or a change for a store, which refers to the store."""

    over = ()
    number = 1 << 20

    def __init__(self, store: RangeStore, mark: object) -> None:
        self.store, self.mark = store, mark

    def __call__(self, state: State) -> State:
        """As a change."""
        return state


def remember(store: RangeStore, what: str, mark: object) -> None:
    given: Any = Remembered(store, mark)
    match what:
        case "state":
            store.put(1, 0, 4, RangeEntry(given, None, ()))
        case "state that no range has":
            store.put(1, 0, 4, RangeEntry(given, None, ()))
            store.erase(1, 0, 4)
        case "request":
            store.apply(1, ((0, 4),), given, 1, NO_RACE)
        case "change":
            for number in range(6):  # some of them sleep then, and miss changes
                store.put(1, number, number + 1, RangeEntry(numbered(number), 1, ()))
                store.map(barrier(SCOPES[0], 1))
            store.map(given)
            assert store.sizes().kept > 1


@pytest.mark.parametrize("what", ["state", "state that no range has", "request", "change"])
def test_what_refers_to_its_store_is_garbage_with_it(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.setattr(slots, "AWAKE", 2)
    store = NativeRangeStore(core().Automaton(lambda state, request: after_access(EMPTY, OF_ALL), 1 << 15))
    mark = object()
    alone = sys.getrefcount(mark)
    remember(store, what, mark)
    gc.collect()
    assert sys.getrefcount(mark) > alone
    del store
    gc.collect()
    assert sys.getrefcount(mark) == alone


def test_the_collector_may_run_in_the_middle_of_a_call() -> None:
    def rule(state: State, request: AccessRequest) -> Any:
        gc.collect()
        return after_access(state, request)

    def change(state: State) -> State:
        gc.collect()
        return after_barrier(state, (SCOPES[0],), 1)

    stores: list[RangeStore] = [PythonRangeStore(), NativeRangeStore(core().Automaton(rule, 1))]
    for store in stores:
        store.apply(1, ((0, 4), (8, 12)), OF_ALL, 5, NO_RACE)
        store.map(Change("collecting", change))
        store.synchronize(None, 6, [Cover(1, 2, 10, Change("collecting", change), None)])
    assert stores[0].everything(1) == stores[1].everything(1)
    stores[1]._check()


def test_a_state_that_asks_for_its_own_number_has_one() -> None:
    """A state may be met again while it is looked at: in another thread, or by whatever it runs."""
    known = automaton(1 << 15)
    stores: list[RangeStore] = [NativeRangeStore(known), NativeRangeStore(known)]
    asked: list[Any] = []

    class Asking:
        @property
        def over(self) -> tuple[int, ...]:
            if not asked:
                asked.append(self)
                stores[1].put(1, 0, 4, RangeEntry(self, None, ()))  # type: ignore[arg-type]
            return ()

    state: Any = Asking()
    stores[0].put(1, 0, 4, RangeEntry(state, None, ()))
    stores[0].assign(1, 4, 8, RangeEntry(state, None, ()))
    assert asked
    assert known.sizes()[0] == 1
    assert stores[0].ranges() == 1
