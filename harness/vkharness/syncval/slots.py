"""Slots: the states that ranges share, those awake and those asleep (`context` has the theory)."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from itertools import islice, takewhile
from operator import itemgetter
from weakref import ref

from vkharness.syncval.state import Change, State

AWAKE = 32
"""Slots beyond which the oldest half goes to sleep."""
STEPS = 32
"""Steps by which sleeping slots are brought forward for each change that was kept for them."""
NEW_STEP = 64
"""How many steps it counts as when a state never met a change before, so that a rule has to work out what follows."""
KEPT = 1024
"""Changes that are kept before sleeping slots are brought forward."""


class Slot:
    """Holds the state of every range that points here, once `find` has brought it up to date.

    `elsewhere` is None while the slot is awake. It is the slot that this one was joined to, since both came to hold one
    state; or, while this one sleeps, the number of the change up to which its state goes.
    """

    __slots__ = ("__weakref__", "_slots", "elsewhere", "state")

    def __init__(self, state: State, slots: Slots | None = None) -> None:
        """Without `slots` no change reaches it: what is known of one range for a moment."""
        self.state, self._slots = state, slots
        self.elsewhere: Slot | int | None = None

    def find(self) -> Slot:
        """The slot that this one was joined to, or itself; awake."""
        root = self
        while isinstance(root.elsewhere, Slot):
            root = root.elsewhere
        if root.elsewhere is not None and root._slots is not None:
            root = root._slots.wake(root)
        at = self
        while at is not root and isinstance(at.elsewhere, Slot):
            at.elsewhere, at = root, at.elsewhere
        return root

    @property
    def sleeps(self) -> bool:
        """Whether changes reach it only when it is met."""
        root = self
        while isinstance(root.elsewhere, Slot):
            root = root.elsewhere
        return root.elsewhere is not None

    def peek(self) -> State:
        """The state as it is now; the slot may go on sleeping."""
        root = self
        while isinstance(root.elsewhere, Slot):
            root = root.elsewhere
        return root.state if root.elsewhere is None or root._slots is None else root._slots.current(root)


class Slots:
    """All slots of a context.

    Costs: a change O(AWAKE), whatever came before; amortized, the sleeping slots' share in it is O(STEPS). To wake a
    slot is O(changes since it went to sleep), of which each is one look-up where the state has met it before.
    """

    def __init__(self) -> None:
        self.awake: dict[State, ref[Slot]] = {}
        """By state; in the order in which they came or woke. One to which no range points goes with the next change."""
        self._changes: list[Change] = []
        """The changes that sleeping slots have missed, in order; the first one has the number `_first`."""
        self._first = 0
        self._asleep: deque[tuple[int, ref[Slot]]] = deque()
        """Those that went to sleep, in the order of the numbers up to which their states go. Some were woken since, and
        to some no range points any more."""
        self._kinds: dict[int, Change] = {}
        """By number, the changes that are kept: equal ones are one object."""
        self._limit = KEPT
        self._caught_up = 0
        """The number of the change at which sleeping slots were last brought forward."""
        self.steps = 0
        """How often a change met a state so far."""

    def __len__(self) -> int:
        return len(self.awake)

    @property
    def _next(self) -> int:
        return self._first + len(self._changes)

    @property
    def kept(self) -> int:
        """How many changes are kept for slots that sleep."""
        return len(self._changes)

    def get(self, state: State) -> Slot:
        """The slot that holds a state."""
        held = self.awake.get(state)
        slot = None if held is None else held()
        if slot is None:
            slot = Slot(state, self)
            self.awake[state] = ref(slot)
        return slot

    def map(self, change: Change) -> None:
        """Maps every state: those awake at once, the others when they are met. Visits no range."""
        used = {state: slot for state, each in self.awake.items() if (slot := each()) is not None}
        self.steps += len(used)
        self.awake = {state: ref(slot) for state, slot in _mapped(used, change).items()}
        if self._asleep:
            self._changes.append(self._kinds.setdefault(change.number, change))
            if len(self._changes) >= self._limit:
                self._catch_up()
        if len(self.awake) > AWAKE:
            self._to_sleep(len(self.awake) - AWAKE // 2)

    def _to_sleep(self, count: int) -> None:
        """The first `count` of those awake miss the changes that follow."""
        at = self._next
        for state in list(islice(self.awake, count)):
            held = self.awake.pop(state)
            slot = held()
            if slot is not None:
                slot.elsewhere = at
                self._asleep.append((at, held))

    def current(self, slot: Slot) -> State:
        """The state of a slot that sleeps, with the changes that it missed."""
        assert isinstance(slot.elsewhere, int)
        state = slot.state
        self.steps += self._next - slot.elsewhere
        for change in islice(self._changes, slot.elsewhere - self._first, None):
            state = state.results.get(change.number) or change(state)
        return state

    def wake(self, slot: Slot) -> Slot:
        """Brings the state of a slot up to date; another slot that holds this state already takes its place."""
        slot.state = state = self.current(slot)
        held = self.awake.get(state)
        other = None if held is None else held()
        if other is not None:
            slot.elsewhere = other
            return other
        slot.elsewhere = None
        self.awake[state] = ref(slot)
        return slot

    def sleeping(self) -> Iterator[tuple[int, Slot]]:
        """The slots that sleep and that a range may still point to, with the numbers up to which their states go."""
        for at, each in self._asleep:
            slot = each()
            if slot is not None and slot.elsewhere == at:
                yield at, slot

    def _catch_up(self) -> None:
        """Brings those that sleep longest forward, together, as far as the changes since the last time pay for it. Lets
        go of the changes that nobody misses any more."""
        steps = STEPS * (self._next - self._caught_up)
        left, together = deque(self.sleeping()), dict[State, Slot]()
        at = left[0][0] if left else self._next
        while at < self._next:
            while left and left[0][0] == at:
                _join(together, left.popleft()[1])
            if steps < 0:
                break
            change = self._changes[at - self._first]
            steps -= sum(1 if change.number in state.results else NEW_STEP for state in together)
            self.steps += len(together)
            together = _mapped(together, change)
            at += 1
        for slot in together.values():
            slot.elsewhere = at
        self._asleep = deque((at, ref(slot)) for slot in together.values())
        self._asleep.extend((number, ref(slot)) for number, slot in left)
        del self._changes[: at - self._first]
        self._kinds = {each.number: each for each in self._changes}
        self._first, self._caught_up = at, at + len(self._changes)
        self._limit = len(self._changes) + max(KEPT, len(self._changes))

    def _check(self) -> None:
        """Raises AssertionError when an invariant is broken."""
        for state, held in self.awake.items():
            state._check()
            slot = held()
            if slot is not None:
                assert slot.state is state and slot.elsewhere is None, "a slot with another state than it is kept by"
        numbers = [at for at, _ in self._asleep]
        assert numbers == sorted(numbers), "sleeping slots out of order"
        assert not numbers or (self._first <= numbers[0] and numbers[-1] <= self._next), "changes that are not kept"
        assert numbers or not self._changes, "changes that nobody misses"

    def _check_reachable(self, slot: Slot) -> None:
        """Raises AssertionError when changes do not reach a slot to which a range points."""
        while isinstance(slot.elsewhere, Slot):
            slot = slot.elsewhere
        if slot.elsewhere is None:
            held = self.awake.get(slot.state)
            assert held is not None and held() is slot, "a range points to a slot that changes do not reach"
        else:
            place = bisect_left(self._asleep, slot.elsewhere, key=itemgetter(0))
            same = takewhile(lambda each: each[0] == slot.elsewhere, islice(self._asleep, place, None))
            assert any(each() is slot for _, each in same), "a slot that sleeps and that nobody knows of"


def _mapped(slots: dict[State, Slot], change: Change) -> dict[State, Slot]:
    """Maps the states of several slots; those that come to hold one state are joined."""
    mapped: dict[State, Slot] = {}
    # Each render pass instance and each barrier over everything comes here: a look-up is written out.
    number = change.number
    for state, slot in slots.items():
        after = state.results.get(number) or change(state)
        other = mapped.get(after)
        if other is None:
            slot.state = after
            mapped[after] = slot
        else:
            slot.elsewhere = other
    return mapped


def _join(slots: dict[State, Slot], slot: Slot) -> None:
    other = slots.setdefault(slot.state, slot)
    if other is not slot:
        slot.elsewhere = other
