"""Random operations on a range store that holds up to thousands of ranges in one space, and all that it says of them.

The same program is played to a store of either form. Its accesses split ranges, cover them, join them, touch their
ends, come again exactly where they were and walk along as those of a ring buffer do. Barriers cover parts, recorded
commands come again behind all that, ranges are erased, and a space is forgotten. A native store executes recorded
commands by their forms, which remember where they found their ranges; one in Python does the same step by step.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from vkharness.spec.masks import scope
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.syncval.access import AccessRequest, after_access
from vkharness.syncval.barrier import after_barrier, expand
from vkharness.syncval.command_forms import FormStep, FormStepKind
from vkharness.syncval.layout_transition import after_transition
from vkharness.syncval.places import COMMAND_BITS
from vkharness.syncval.range_store import (
    ALWAYS,
    NO_RACE,
    Cover,
    MetSteps,
    Piece,
    PythonRangeStore,
    RangeStore,
    live,
    make_range_store,
)
from vkharness.syncval.state import Change, State
from vkharness.trace.effects import Dependency

Step = list[Any]
"""The name of a method of `RangePlayer`, and its arguments as JSON has them."""
SPACES = (1, 1, 1, 1, 1, 1, 1, -7)
"""Nearly all that happens is in one space."""
SIZES = (300, 3_000, 30_000)
"""Addresses of a space that a program uses."""
STEPS = (300, 900)
"""The fewest and the most steps of a program."""
LOOKS = 100
"""Steps from one look at all ranges to the next."""
COMMANDS = 3
"""Of a batch: few, so that neighbours are often of one command and equal."""
KINDS = [
    ACCESS_KIND[f"SYNC_{name}"].index
    for name in (
        "COPY_TRANSFER_READ", "COPY_TRANSFER_WRITE", "CLEAR_TRANSFER_WRITE", "COMPUTE_SHADER_SHADER_STORAGE_READ",
        "COMPUTE_SHADER_SHADER_STORAGE_WRITE", "VERTEX_SHADER_UNIFORM_READ",
    )
]  # fmt: skip
SCOPES = [
    expand(Dependency(*scope(source), *scope(target)), 0x7FFFFFFF)
    for source in ("COPY/TRANSFER_WRITE", "COPY", "ALL_COMMANDS/MEMORY_WRITE")
    for target in ("COPY/TRANSFER_READ", "COMPUTE_SHADER/SHADER_READ|SHADER_WRITE", "ALL_COMMANDS/MEMORY_READ")
]


# -- programs ----------------------------------------------------------------------------------------------------------


class RangeProgram:
    """Makes the steps of one seed."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._size = rng.choice(SIZES)
        self._walked = 0
        self._accesses: list[Step] = [["access", 1, [[0, 1]], 0, 1, 0, False]]
        """Some may come again."""
        self._recorded: list[Step] = []

    def steps(self) -> list[Step]:
        """All of them."""
        rng = self._rng
        habits: list[tuple[Callable[[], Step], float]] = [
            (self._anywhere, 6), (self._walk, 4), (self._rows, 3), (self._at_an_end, 4), (self._again, 2),
            (self._over_much, 0.2), (self._recorded_command, 4), (self._barrier, 2), (self._copy, 0.5),
            (lambda: ["change_everything", self._scope(), self._queue()], 1),
            (lambda: ["open_batch", self._queue()], 1),
            (lambda: ["finish_batch", rng.randrange(40)], 0.5),
            (lambda: ["keep_batches"], 0.1),
            (lambda: ["erase", self._space(), self._span()], 1),
            (lambda: ["forget_over", self._space(), rng.random() < 0.5], 0.1),
            (lambda: ["drop", rng.choice(SPACES)], 0.01),
            (lambda: ["look", self._space(), self._span()], 0.3),
        ]  # fmt: skip
        makers = [maker for maker, _ in habits]
        weights = [weight * rng.choice((0.2, 1, 1, 4)) for _, weight in habits]
        count = rng.randint(*STEPS)
        dense = [self._rows() for _ in range(rng.choice((0, 20, 100)))]
        return [["open_batch", 1], *dense, *(each() for each in rng.choices(makers, weights, k=count))]

    def _space(self) -> int:
        return self._rng.choice(SPACES)

    def _queue(self) -> int:
        return self._rng.choice((1, 1, 1, 2))

    def _scope(self) -> int:
        return self._rng.randrange(len(SCOPES))

    def _span(self, most: int = 24) -> list[int]:
        begin = self._rng.randrange(self._size)
        return [begin, begin + self._rng.randint(1, most)]

    def _access(self, spans: list[list[int]]) -> Step:
        rng = self._rng
        step = [
            "access",
            self._space(),
            spans,
            rng.randrange(len(KINDS)),
            self._queue(),
            self._place(),
            rng.random() < 0.2,
        ]
        self._accesses.append(step)
        return step

    def _place(self) -> int:
        """The number of a batch from the last one back, and of a command of it."""
        return self._rng.choice((0, 0, 0, 1, 5)) * COMMANDS + self._rng.randrange(COMMANDS)

    def _anywhere(self) -> Step:
        return self._access([self._span(self._rng.choice((1, 6, 24)))])

    def _walk(self) -> Step:
        """Behind where it ended last, as in a ring buffer."""
        begin = self._walked % self._size
        self._walked = begin + self._rng.choice((4, 4, 4, 7, 1))
        return self._access([[begin, self._walked]])

    def _rows(self) -> Step:
        """Spans that are apart, or touch, as the rows of an image."""
        rng = self._rng
        begin, width, gap = rng.randrange(self._size), rng.randint(1, 6), rng.randint(0, 5)
        number = rng.choice((2, 5, 40, 100))
        return self._access([[at, at + width] for at in range(begin, self._size + 1, width + gap)[:number]])

    def _at_an_end(self) -> Step:
        """Up to where something began or ended, or from there on."""
        end = self._rng.choice(self._rng.choice(self._rng.choice(self._accesses)[2]))
        width = self._rng.randint(1, 8)
        return self._access([self._rng.choice(([end - width, end], [end, end + width], [end - width, end + width]))])

    def _again(self) -> Step:
        """Exactly where something was, perhaps by somebody else."""
        old = self._rng.choice(self._accesses[-20:])
        return old if self._rng.random() < 0.3 else self._access(old[2])

    def _over_much(self) -> Step:
        return self._access([self._span(self._rng.choice((60, self._size // 4)))])

    def _recorded_command(self) -> Step:
        """One that comes again and again."""
        rng = self._rng
        if len(self._recorded) < 6 or rng.random() < 0.02:
            spans = rng.choice(self._accesses)[2]
            covered = [spans[0][0], rng.choice(spans)[1] + rng.choice((0, 0, 3))]
            number = len(self._recorded)
            made = ["recorded", number, self._space(), spans, rng.randrange(len(KINDS)), covered, self._scope()]
            self._recorded.append([*made, rng.random() < 0.2])
        return [*rng.choice(self._recorded), self._place()]

    def _barrier(self) -> Step:
        """Over parts, and sometimes over everything."""
        rng = self._rng
        covers: list[Step] = []
        for _ in range(rng.choice((1, 1, 2))):
            span = rng.choice((self._span(), self._span(self._size // 8), rng.choice(self._accesses)[2][0]))
            if not any(span[0] < end and begin < span[1] for begin, end, *_ in covers):
                covers.append([*span, self._scope(), rng.random() < 0.2])
        everything = self._scope() if rng.random() < 0.2 else None
        return ["barrier", self._space(), everything, covers, self._queue(), self._place()]

    def _copy(self) -> Step:
        """Copies the states of a range to another one."""
        joined = self._rng.random() < 0.5
        return ["copy", self._space(), self._span(), self._space(), self._rng.randrange(self._size), joined]


def ranges_of(seed: int) -> list[Step]:
    """The steps of a seed's program."""
    return RangeProgram(random.Random(seed)).steps()


# -- what a store says -------------------------------------------------------------------------------------------------


class _Over:
    """The batches that are over, to `live`."""

    def __init__(self, store: RangeStore) -> None:
        self._store = store

    def __contains__(self, number: object) -> bool:
        assert isinstance(number, int)
        return self._store.is_finished(number << COMMAND_BITS)


class _Plan:
    """The place in which a native store keeps data of a recorded command."""

    effects = ()

    def __init__(self) -> None:
        self.engine: Any = None


class RangePlayer:
    """Plays steps to a store. Each method says what came of its step."""

    def __init__(self, store: RangeStore) -> None:
        self.store = store
        self._batches: list[int] = []
        self._last = 0
        self._plans: dict[tuple[Any, ...], _Plan] = {}
        self._names: dict[State, str] = {}

    def play(self, step: Step) -> str:
        """Plays a step. Returns its result, and how much the store holds then."""
        name, *arguments = step
        said = getattr(self, f"_{name}")(*arguments)
        return f"{name}: {said or ''} {self.store.ranges()} ranges, {self.store.sizes()}"

    def contents(self) -> list[str]:
        """All ranges; those that sleep sleep on. Raises AssertionError when an invariant of the store is broken."""
        self.store._check()
        told = [f"{self.store.ranges()} ranges, {self.store.sizes()}, {len(self.store.place_numbers())} places"]
        told += [self._named(state) for state in self.store.states()]
        for space in sorted(set(SPACES)):
            for begin, end, entry, sleeps in self.store.everything(space):
                told.append(f"{space}: {self._told((begin, end, entry))}{' sleeps' * sleeps}")
        return told

    # -- steps ----------------------------------------------------------------------------------------------------

    def _open_batch(self, queue: int) -> None:
        self._last += 1
        self._batches.append(self._last)
        self.store.add_batch(self._last, queue, (self._last, 0), False)

    def _finish_batch(self, number: int) -> None:
        if self._batches:
            self.store.finish_batch(self._batches[number % len(self._batches)])

    def _keep_batches(self) -> None:
        held = {number >> COMMAND_BITS for number in self.store.place_numbers()}
        self._batches = [number for number in self._batches if number in held or number == self._last]
        self.store.keep_batches(self._batches)

    def _access(self, space: int, spans: list[list[int]], kind: int, queue: int, place: int, racing: bool) -> str:
        request = AccessRequest(KINDS[kind], queue, queue)
        met = self.store.apply(space, _spans(spans), request, self._place(place), ALWAYS if racing else NO_RACE)
        return ", ".join(map(self._told, met))

    def _recorded(
        self, number: int, space: int, spans: list[list[int]], kind: int, covered: list[int], scope: int, moved: bool,
        place: int,
    ) -> str:  # fmt: skip
        """Executes a recorded command: a check of its accesses, the accesses, and a barrier behind them."""
        request = AccessRequest(KINDS[kind], 1, 1)
        cover = self._cover(space, [*covered, scope, moved], 1)
        steps = (
            FormStep(FormStepKind.CHECK, space, _spans(spans), request, NO_RACE),
            FormStep(FormStepKind.APPLY, space, _spans(spans), request, NO_RACE),
            FormStep(FormStepKind.SYNCHRONIZE, 0, (cover,), None, NO_RACE),
        )
        execute = self._step_by_step if isinstance(self.store, PythonRangeStore) else self._by_form
        met = execute(number, steps, self._place(place))
        return ", ".join(f"step {at}: {self._told(piece)}" for at, piece in met)

    def _by_form(self, number: int, steps: tuple[FormStep, ...], place: int) -> MetSteps:
        plan, at = self._plans.setdefault((number,), _Plan()), SCOPES
        run = self.store.run([plan], 0, 1, place, at, 0, True)  # type: ignore[list-item]
        if not run.stopped:
            plan.engine = self.store.form(plan.engine, at, at, steps)
            run = self.store.run([plan], 0, 1, place, at, 0, True)  # type: ignore[list-item]
        assert run.stopped == 1, "a form was not executed"
        return run.met

    def _step_by_step(self, number: int, steps: tuple[FormStep, ...], place: int) -> MetSteps:
        check, apply, synchronize = steps
        met: MetSteps = []
        for low, high, entry in (each for span in check.spans for each in self.store.pieces(check.space, *span)):
            now = live(entry, _Over(self.store), False)
            if after_access(now.state, check.rule).hazard:
                met.append((0, (low, high, now)))
        met += [(1, each) for each in self.store.apply(apply.space, apply.spans, apply.rule, place, NO_RACE)]
        self.store.synchronize(None, place, list(synchronize.spans))
        return met

    def _barrier(self, space: int, everything: int | None, covers: list[list[Any]], queue: int, place: int) -> None:
        change = None if everything is None else _changed(everything, queue)
        self.store.synchronize(change, self._place(place), [self._cover(space, each, queue) for each in covers])

    def _change_everything(self, scope: int, queue: int) -> None:
        self.store.map(_changed(scope, queue))

    def _copy(self, space: int, span: list[int], to: int, at: int, joined: bool) -> None:
        for begin, end, entry in self.store.pieces(space, *span)[:1]:
            (self.store.assign if joined else self.store.put)(to, at, at + end - begin, entry)

    def _erase(self, space: int, span: list[int]) -> None:
        self.store.erase(space, *span)

    def _forget_over(self, space: int, writes: bool) -> str:
        return str(self.store.forget_over(space, writes))

    def _drop(self, space: int) -> None:
        self.store.drop(space)

    def _look(self, space: int, span: list[int]) -> str:
        return ", ".join(map(self._told, self.store.pieces(space, *span)))

    # -- parts of them --------------------------------------------------------------------------------------------

    def _place(self, place: int) -> int:
        back, command = divmod(place, COMMANDS)
        batch = self._batches[-1 - back % len(self._batches)] if self._batches else 0
        return batch << COMMAND_BITS | command

    def _cover(self, space: int, cover: list[Any], queue: int) -> Cover:
        begin, end, number, moved = cover
        after = after_transition((SCOPES[number],), queue, queue) if moved else None
        return Cover(space, begin, end, None if moved else _changed(number, queue), after)

    def _told(self, piece: Piece) -> str:
        begin, end, (state, write, reads) = piece
        return f"[{begin}, {end}) {self._named(state)} {write} {reads}"

    def _named(self, state: State) -> str:
        """A short name, with all that it stands for the first time."""
        name = self._names.get(state)
        if name is None:
            name = self._names[state] = f"s{len(self._names)}"
            return f"{name} = {state.write} {state.reads} {state.views}"
        return name


def _spans(spans: list[list[int]]) -> tuple[tuple[int, int], ...]:
    return tuple((begin, end) for begin, end in spans)


def _changed(number: int, queue: int) -> Change:
    dependency = SCOPES[number]
    return Change(((dependency,), queue), lambda state: after_barrier(state, (dependency,), queue))


def told_of_ranges(items: list[Step]) -> Iterator[str]:
    """Yields the answers to a program of a store in the form that is in use."""
    player = RangePlayer(make_range_store())
    for number, step in enumerate(items, 1):
        yield player.play(step)
        if number % LOOKS == 0:
            yield from player.contents()
    yield from player.contents()
