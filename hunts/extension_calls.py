"""Hostile calls of the native core: programs of a seed that nobody would write, for what C++ must survive.

A program makes one object of the core and calls its methods: with integers of any size, with objects that have no
business there, and with objects and functions that run Python in the middle of a call: they call the same object again,
raise, or come to their end. Some programs do so in several threads. Whatever is raised is an answer. What counts as a
fault is an object that is broken afterwards, an answer that no call may have (SystemError), and what is still alive
when nobody can reach it. Who runs the programs sees where the process dies (`extension_hunt`).
"""

from __future__ import annotations

import gc
import random
import sys
import threading
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from hunts.hostile_commands import HostileCommands
from hunts.hostile_draws import HostileDraws
from hunts.hostile_moves import HostileMoves
from hunts.hostile_sets import INTO, HostileSets
from vkharness import native
from vkharness.commands.buffer_transfers import FLAT
from vkharness.syncval.access import AccessRequest, after_access
from vkharness.syncval.command_forms import FormStepKind
from vkharness.syncval.entries import RangeEntry
from vkharness.syncval.places import COMMAND_BITS
from vkharness.syncval.range_store import Cover, FormsRun, StoreSizes
from vkharness.syncval.state import EMPTY, Change, Question
from vkharness.trace.effects import Access

MOST_CALLS = 40
THREADS = 4
RE_ENTRIES = 60
"""Calls at most that a program makes from within calls."""
EDGES = [0, 1, 31, 32, 62, 63, 64, 126, 127, 128, 200, 4000]
"""Powers of two at which integers change their form somewhere."""


class NativeType(NamedTuple):
    """A type of the core, and how its objects are used."""

    make: Callable[[HostileProgram], Any]
    methods: tuple[tuple[str, str], ...]
    """A method with its parameters, a letter each: `HostileProgram.ARGUMENTS` says what each stands for."""
    keeps_rules: bool = True
    """Whether it keeps its own rules whatever it is given, so that `_check` never raises."""


def native_types() -> dict[str, NativeType]:
    """Returns the types that are called, by name. Empty without a native core."""
    if native.core is None:
        return {}
    spans = (("exact", "aa"), ("set_exact", "aav"), ("put", "aav"), ("pieces", "aa"), ("erase", "aa"))
    more = (("assign", "aav"), ("assign", "aav"), ("update", "aaf"), ("__len__", ""), ("__iter__", ""))
    store = (
        ("add_batch", "natn"), ("finish_batch", "n"), ("is_finished", "p"), ("keep_batches", "N"), ("sizes", ""),
        ("let_reads_be_over", ""), ("ranges", ""), ("states", ""), ("has", "s"), ("place_numbers", ""), ("spaces", ""),
        ("pieces", "saa"), ("everything", "s"), ("put", "saae"), ("assign", "saae"), ("erase", "saa"), ("drop", "s"),
        ("map", "c"), ("set_clock", "am"), ("apply", "sSrpk"), ("apply", "sSrpk"), ("synchronize", "cpC"),
        ("synchronize", "cpC"), ("form", "gwwq"), ("form", "gwwq"), ("run", "Pnnpwnk"), ("run", "Pnnpwnk"),
    )  # fmt: skip
    return {
        "SpanMap": NativeType(lambda program: native.core.SpanMap(), spans + more),  # type: ignore[union-attr]
        "RangeStore": NativeType(_range_store, store, keeps_rules=False),
        "FlatPlans": NativeType(
            HostileCommands.made,
            (
                ("record", "vnnyd"),
                ("record", "vnnyd"),
                ("plan", "DLAW"),
                ("forget", "n"),
                ("like", "v"),
                ("learn", "vnv"),
            ),
        ),
        "BoundSets": NativeType(
            lambda program: program.sets.made(), (("bind", "biKzB"), ("bind", "biKzB"), ("plan", "Tb"), ("write", "zU"))
        ),
        "MovedPlan": NativeType(lambda program: program.moves.made(), (("plan", "M"),)),
        "ContentDraws": NativeType(
            lambda program: program.draws.made(),
            (("hull", "hnI"), ("idles", "hI"), ("plans", "HnhI"), ("plans", "HnhI")),
        ),
    }


def _range_store(program: HostileProgram) -> Any:
    """A store whose rules are mostly syncval's, and whose automaton and slots give up early."""
    pick = program.chosen

    def rule(state: Any, request: Any) -> Any:
        if pick.random() < 0.1:
            return program.value() if program.again() else after_access(EMPTY, request)._replace(gone=(7,), position=3)
        return after_access(state, request)

    automaton = native.core.Automaton(rule, pick.choice((1, 3, 1000)), Access)  # type: ignore[union-attr]
    limits = tuple(pick.choice((1, 2, 8, 1 << 20)) for _ in range(4))
    return native.core.RangeStore(automaton, RangeEntry, StoreSizes, FormsRun, EMPTY, limits)  # type: ignore[union-attr]


class HostileProgram:
    """The program of one seed. `calls` is how many it made in the end, `fault` what came of it, empty for nothing.
    Its calls are others in each run where it is `threaded`, and where what its rules were asked is remembered."""

    def __init__(self, seed: int) -> None:
        self.chosen = random.Random(seed)
        chosen = sorted(native_types().items())
        self.name, self._type = chosen[seed % len(chosen)]
        self.threaded = self.chosen.random() < 0.05
        self._left = RE_ENTRIES
        self._running: list[Any] = []
        self.calls = 0
        self.fault = ""
        self._changing: list[Any] = []
        self._plans = [HostilePlan(self) for _ in range(3)]
        self._standpoints = [HostileStandpoint(self) for _ in range(2)]
        self.flat: HostileCommands = HostileCommands(self)
        self.sets = HostileSets(self)
        self.moves = HostileMoves(self)
        self.draws = HostileDraws(self)
        self._is_calling = False
        self._object: Any = None
        self._object = self._type.make(self)

    def run(self) -> None:
        """Makes all calls and looks at what is left."""
        count = self.chosen.randrange(1, MOST_CALLS)
        if self.threaded:
            threads = [threading.Thread(target=self._calls, args=(count,)) for _ in range(THREADS)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
        else:
            self._calls(count)
        self._left = 0
        self._inspect()
        self._running.clear()
        self._changing = []
        self._plans.clear()
        self._standpoints.clear()
        self.sets.states.clear()
        self.sets.kept.clear()
        self.flat.kinds.clear()
        self._object = None

    def _calls(self, count: int) -> None:
        for _ in range(count):
            self.call()

    def call(self) -> None:
        """One hostile call; what it raises is dropped."""
        name, parameters = self.chosen.choice(self._type.methods)
        before = self._is_calling
        try:
            arguments = [self._argument(each) for each in parameters]  # that raises while another thread calls
            if self.chosen.random() < 0.02:
                arguments = arguments[1:] if arguments and self.chosen.random() < 0.5 else [*arguments, None]
            self.calls += 1
            self._is_calling = True
            answer = getattr(self._object, name)(*arguments)
            if name == "form":
                self.chosen.choice(self._plans).forms = answer
            elif name == "bind":
                self.sets.kept[:] = [None, answer]
            elif name == "plan" and type(answer) is native.core.FlatPlan:  # type: ignore[union-attr]
                self.flat.look_at(answer)
            elif name == "__iter__":
                self._running.append(answer)
            elif self._running and self.chosen.random() < 0.5:
                next(self._running[-1], None)
        except SystemError as error:
            self.fault = self.fault or f"{name}: {error}"
        except Exception:
            return
        finally:
            self._is_calling = before

    def again(self) -> Any:
        """Answers of hostile objects to any question: another call, an exception, any value."""
        if not self._is_calling:
            return True
        if self._left > 0 and self.chosen.random() < 0.5:
            self._left -= 1
            self._changing.clear()
            self.call()
        if self.chosen.random() < 0.15:
            raise self.chosen.choice((ValueError, KeyError, MemoryError, RecursionError, StopIteration))("hostile")
        return self.chosen.choice((True, False, None, NotImplemented, 1))

    def _argument(self, kind: str) -> Any:
        if self.chosen.random() < 0.03:
            return self.chosen.choice((None, "8", 1.5, float("nan"), b"", (), Hostile(self), self._object, type))
        return self.ARGUMENTS[kind](self)

    def _several(self, made: Callable[[], Any]) -> Any:
        """A list or a tuple, which somebody may change in the middle of a call."""
        found = [made() for _ in range(self.chosen.choice((0, 1, 1, 2, 5)))]
        self._changing = found
        return found if self.chosen.random() < 0.7 else tuple(found)

    def _number(self) -> Any:
        """A small number of a batch, mostly."""
        return self.chosen.randrange(6) if self.chosen.random() < 0.9 else self.address()

    def _place(self) -> Any:
        return self.chosen.randrange(6) << COMMAND_BITS | self.chosen.randrange(4)

    def _space(self) -> Any:
        return self.chosen.randrange(3) if self.chosen.random() < 0.95 else Hostile(self)

    def _request(self) -> Any:
        pick = self.chosen
        return AccessRequest(pick.randrange(8), pick.randrange(3), pick.randrange(3), pick.random() < 0.2)

    def _state(self) -> Any:
        """A state that some accesses lead to."""
        state = EMPTY
        for _ in range(self.chosen.randrange(3)):
            state = after_access(state, self._request()).state
        return state

    def _entry(self) -> Any:
        state = self._state()
        reads = tuple(self._place() for _ in state.reads)
        return RangeEntry(state, None if state.write is None else self._place(), reads)

    def _change(self) -> Any:
        """Returns the function with which a store maps states: mostly a change as syncval makes them."""
        to = self._state()
        if self.chosen.random() < 0.3:
            return None

        def rule(state: Any) -> Any:
            self.again()
            return to if state.write is None and not state.reads else state

        return Change(("hostile", self.chosen.randrange(50)), rule)

    def _cover(self) -> Any:
        begin = self.chosen.randrange(60)
        change = self._change()
        return Cover(self._space(), begin, begin + self.chosen.randrange(30), change, self._state())

    def _question(self) -> Any:
        """Returns the question that a store asks of states: mostly one as syncval makes them."""
        if self.chosen.random() < 0.1:
            return Hostile(self)
        return Question(("hostile", self.chosen.randrange(9)), lambda state: self.again())

    def _steps(self) -> Any:
        """Those of a form."""
        if self.chosen.random() < 0.1:
            return None
        return tuple(self._step() for _ in range(self.chosen.randrange(4)))

    def _step(self) -> Any:
        kind = self.chosen.choice(tuple(FormStepKind))
        racing = self.chosen.choice((0, 1, 2, 3, 4, self._question()))
        if kind is FormStepKind.SYNCHRONIZE:
            return kind, 0, tuple(self._cover() for _ in range(self.chosen.randrange(3))), self._change(), 0
        spans = tuple((self.address(), self.address()) for _ in range(self.chosen.randrange(3)))
        rule = {FormStepKind.TRANSITION: self._question, FormStepKind.SHOW: self._change}.get(kind, self._request)
        return kind, self._space(), spans, rule(), racing

    def access(self) -> Any:
        """An access, or something else."""
        if self.chosen.random() < 0.1:
            return self.value()
        spans = self.ARGUMENTS["S"](self)
        made = Access(self.chosen.randrange(8), self._space(), spans, 0, atomic=self.chosen.random() < 0.2)
        if self.chosen.random() < 0.1:
            setattr(made, self.chosen.choice(Access.__slots__), self.value())
        return made

    def asked(self) -> Any:
        """Returns the answer of a standpoint."""
        if self.chosen.random() < 0.2:
            return self.again()
        return self._request(), self.chosen.choice((0, 1, 2, 3, 4, self._question()))

    def _forms(self) -> Any:
        return self.chosen.choice(self._plans).forms if self.chosen.random() < 0.5 else None

    def odd(self, usual: Any) -> Any:
        """A value, or seldom anything."""
        return self.value() if self.chosen.random() < 0.05 else usual

    def _several_plans(self) -> Any:
        """Plans, which somebody may change in the middle of a call."""
        self._changing = found = self.chosen.choices(self._plans, k=self.chosen.randrange(6))
        if self.chosen.random() < 0.5:
            makers = self.chosen.choices((self.flat.plan, self.sets.flat_plan), k=3)
            found += [plan for make in makers if (plan := make()) is not None]
            self.chosen.shuffle(found)
        return found

    ARGUMENTS: ClassVar[dict[str, Callable[[HostileProgram], Any]]] = {
        "a": lambda self: self.address(),
        "v": lambda self: self.value(),
        "f": lambda self: self._function,
        "n": lambda self: self._number(),
        "N": lambda self: self._several(self._number),
        "t": lambda self: (self._number(), self._number()),
        "p": lambda self: self._place(),
        "s": lambda self: self._space(),
        "S": lambda self: self._several(lambda: (self.address(), self.address())),
        "r": lambda self: self._request(),
        "e": lambda self: self._entry(),
        "c": lambda self: self._change(),
        "C": lambda self: self._several(self._cover),
        "k": lambda self: self.chosen.choice((0, 1, 2, 0, 1, 2, 3, 4, 5, -1, 1 << 40)),
        "q": lambda self: self._steps(),
        "g": lambda self: self._forms(),
        "w": lambda self: self.chosen.choice(self._standpoints),
        "P": lambda self: self._several_plans(),
        "y": lambda self: self.chosen.choice((*FLAT, "vkCmdCopy")),
        "d": lambda self: self.flat.arguments(),
        "D": lambda self: self.flat.kind(),
        "L": lambda self: tuple(self.flat.place(number) for number in range(self.chosen.choice((1, 2, 2, 3)))),
        "A": lambda self: tuple(self.odd(self.address()) for _ in range(self.chosen.choice((2, 3, 3, 6)))),
        "W": lambda self: self.odd(bytes(self.chosen.randrange(400))),
        "b": lambda self: self.chosen.choice(self.sets.states),
        "i": lambda self: self.odd(INTO),
        "K": lambda self: self.chosen.choice(self.sets.kept),
        "z": lambda self: self.sets.name(),
        "B": lambda self: self.sets.bind(),
        "U": lambda self: self.sets.writes(),
        "T": lambda self: self.sets.plans(),
        "M": lambda self: self.moves.numbers(),
        "h": lambda self: self.draws.numbers(),
        "H": lambda self: self.draws.plans(),
        "I": lambda self: self.draws.several(),
        "m": lambda self: {self._space(): (self._number(), self._number()) for _ in range(3)},
    }
    """The arguments that a letter stands for."""

    def address(self) -> Any:
        """An integer of any size, mostly a small one."""
        if self.chosen.random() < 0.02:
            return Hostile(self)
        if self.chosen.random() < 0.8:
            return self.chosen.randrange(64)
        return self.chosen.choice((1, -1)) * (1 << self.chosen.choice(EDGES)) + self.chosen.randrange(-2, 3)

    def value(self) -> Any:
        """Anything that an object may be given to keep."""
        return Hostile(self) if self.chosen.random() < 0.5 else self.chosen.choice((None, 0, False, 1, 1.0, "a", ()))

    def _function(self, *_: Any) -> Any:
        self.again()
        return self.value()

    def _inspect(self) -> None:
        """Whether the object still keeps its own rules."""
        try:
            if self._type.keeps_rules and hasattr(self._object, "_check"):
                self._object._check()
        except Exception as error:
            self.fault = self.fault or f"broken: {str(error).splitlines()[0]}"


class Hostile:
    """A value that runs Python whenever it can."""

    alive = 0
    """How many there are in this process."""

    def __init__(self, program: HostileProgram) -> None:
        self._program = program
        Hostile.alive += 1

    def __eq__(self, other: object) -> bool:
        return self._program.again()  # type: ignore[no-any-return]

    def __hash__(self) -> int:
        return hash(self._program.again())

    def __index__(self) -> int:
        found = self._program.again()
        return int(found) if type(found) is bool else found

    def __bool__(self) -> bool:
        return self._program.again()  # type: ignore[no-any-return]

    def __call__(self, *_: Any) -> Any:  # noqa: D102 (as the others)
        return self._program.again()

    def __del__(self) -> None:
        Hostile.alive -= 1
        try:
            self._program.again()
        except Exception:
            return


class HostilePlan:
    """A plan that runs Python when its forms are asked for."""

    def __init__(self, program: HostileProgram) -> None:
        self._program = program
        self.forms: Any = None

    @property
    def engine(self) -> Any:
        """The attribute as a store reads it."""
        if self._program.chosen.random() < 0.1:
            self._program.again()
        return self.forms

    @engine.setter
    def engine(self, forms: Any) -> None:
        """Takes the value that a store writes."""
        if self._program.chosen.random() < 0.1:
            self._program.again()
        self.forms = forms

    @property
    def effects(self) -> Any:
        """Accesses, mostly."""
        program, pick = self._program, self._program.chosen
        if pick.random() < 0.1:
            return program.value()
        return tuple(program.access() for _ in range(pick.randrange(4)))


class HostileStandpoint(Hostile):
    """A standpoint that runs Python when it is asked what an access asks."""

    def asks(self, _: Any) -> Any:
        """A request and what it races with."""
        return self._program.asked()


def run_programs(first: int, count: int) -> dict[str, Any]:
    """A job: runs the programs of seeds; how many calls they made, and the faults as (seed, what it is)."""
    calls, faults = 0, []
    sys.setswitchinterval(1e-5)
    for seed in range(first, first + count):
        before = Hostile.alive
        program = HostileProgram(seed)
        program.run()
        calls += program.calls
        name, fault = program.name, program.fault
        del program
        if Hostile.alive != before:
            gc.collect()
        if Hostile.alive > before:
            fault = fault or f"{Hostile.alive - before} values are never given up"
        if fault:
            faults.append((seed, f"{name}: {fault}"))
    return {"calls": calls, "faults": faults}
