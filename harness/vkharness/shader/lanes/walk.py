"""Executes the needed code of an entry point for many invocations at once, and gathers what it reaches.

Invocations that take a branch differently go on apart, and together again in the block in which all ways meet. Where
the condition of a branch is not known all go both ways, and what they reach there is not sure. Where that happens again
and again, as in a loop that ends nobody knows when, only what was the same each time counts as known. So the walk ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vkharness.findings import UserError
from vkharness.shader.execution.executed_module import MALFORMED
from vkharness.shader.guards import EXIT
from vkharness.shader.lanes.image_steps import ImageSteps
from vkharness.shader.lanes.inputs import Inputs
from vkharness.shader.lanes.lane_values import Chosen, LaneState, is_covered, joined
from vkharness.shader.lanes.needed_code import KILL, TERMINATE, NeededBlock, NeededCode, NeededFunction
from vkharness.shader.lanes.reached_places import Gathered
from vkharness.shader.opcodes import Op

MOST_FORKS = 4
"""How often a branch that is not known is taken before what differs between the times counts as not known."""
MOST_DEPTH = 48
"""How deep branches may lie in one another, calls included."""
LEAST = 2048
"""An instruction counts as for this many invocations at least, since it costs something by itself."""
MOST_STEPS = 1 << 24
"""Instructions, each counted once for every invocation, of one entry point in one dispatch or draw."""
Targets = list[tuple[int, Chosen | None]]
"""Labels of blocks, and which invocations go there; None for all."""


class TooMuchWork(UserError):
    """More than may be executed, or too deep."""


@dataclass(slots=True)
class Walked:
    """The memory that an entry point accesses, and the steps that it took to find that."""

    found: dict[tuple[int, int, int], Gathered]
    """By function, number of the instruction in it, and variable."""
    steps: int


def walk(code: NeededCode, inputs: Inputs, most: int = MOST_STEPS) -> Walked | int:
    """Executes an entry point for a dispatch or draw, and gives the memory that it accesses. Where that would take more
    than `most` steps, or where the module is not valid, gives the number of steps taken."""
    run = _Walk(code, inputs, most)
    try:
        run.start()
    except (TooMuchWork, *MALFORMED):
        return run.steps
    return Walked(run.found, run.steps)


class _Walk(ImageSteps):
    def __init__(self, code: NeededCode, inputs: Inputs, most: int) -> None:
        super().__init__(code, inputs)
        self._most = most
        self.steps = 0
        self._depth = 0
        self._exits: list[LaneState] = []
        """Invocations that have left the function at hand."""

    def start(self) -> None:
        """Runs the entry point."""
        memory: dict[int, Any] = dict(self._code.own)
        for id, (built_in, count) in self._code.inputs.items():
            parts = tuple(self._inputs.built_ins.get((built_in, axis)) for axis in range(max(1, count)))
            memory[id] = parts if count else parts[0]
        lanes = np.arange(self._inputs.lanes, dtype=np.int64)
        entry = self._code.entry
        self._run(entry, self._code.functions[entry].entry, LaneState(lanes, {}, memory), EXIT, self._inputs.sure)

    def _spend(self, lanes: int) -> None:
        self.steps += max(LEAST, lanes)
        if self.steps > self._most:
            raise TooMuchWork("too many invocations")

    def _run(self, id: int, label: int, state: LaneState, stop: int, sure: bool) -> LaneState | None:
        """Runs from a block up to another one. Those who leave the function go to `_exits`."""
        function, arrived = self._code.functions[id], list[LaneState]()
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise TooMuchWork("branches too deep")
        forks: dict[int, tuple[int, LaneState]] = {}
        waiting = [(label, state, sure)]
        while waiting:
            label, state, sure = waiting.pop()
            going: LaneState | None = state
            while going is not None and label not in (stop, EXIT):
                label, going = self._next(id, function, label, going, (stop, sure, forks, waiting))
            if going is not None:
                (self._exits if label == EXIT else arrived).append(going)
        self._depth -= 1
        return joined(arrived) if arrived else None

    def _next(
        self,
        id: int,
        function: NeededFunction,
        label: int,
        state: LaneState,
        run: tuple[int, bool, dict[int, tuple[int, LaneState]], list[tuple[int, LaneState, bool]]],
    ) -> tuple[int, LaneState | None]:
        """Executes a block, and gives the next one and who goes there; None where nobody goes on as one."""
        stop, sure, forks, waiting = run
        block = function.blocks.get(label)
        if block is None:
            return EXIT, None
        left = self._block(id, block, state, sure)
        if left is None:
            return EXIT, None
        targets = self._targets(id, block, left)
        forked = len(targets) > 1 and targets[0][1] is None
        if forked:
            left = _widened(forks, label, left)
            if left is None:
                return EXIT, None
        ways = [self._taken(function, label, target, left, chosen) for target, chosen in targets]
        if len(ways) <= 1:
            return ways[0] if ways else (EXIT, None)
        if block.after in (stop, EXIT):
            waiting += [(target, part, sure and not forked) for target, part in ways]
            return EXIT, None
        met = [self._run(id, target, part, block.after, sure and not forked) for target, part in ways]
        kept = [each for each in met if each is not None]
        return block.after, joined(kept) if kept else None

    def _taken(
        self, function: NeededFunction, label: int, target: int, state: LaneState, chosen: Chosen | None
    ) -> tuple[int, LaneState]:
        """Some invocations go from one block to another, whose phis they settle on the way."""
        going = state.copy() if chosen is None else state.part(chosen)
        block = function.blocks.get(target)
        if block is not None and block.phis:
            going.values |= {
                id: self._get(going, sources[label]) if label in sources else None for id, sources in block.phis
            }
        return target, going

    def _targets(self, id: int, block: NeededBlock, state: LaneState) -> Targets:
        op, operands = block.leave
        if op == Op.Branch:
            return [(operands[0], None)]
        if op == Op.BranchConditional:
            condition = self._get(state, operands[0])
            return _split([(operands[1], condition), (operands[2], None)], state)
        if op == Op.Switch:
            return self._switch(operands, state)
        if op in (KILL, TERMINATE, Op.Unreachable):
            return []
        if op == Op.ReturnValue:
            state.values[-id] = self._get(state, operands[0])
        return [(EXIT, None)]

    def _switch(self, operands: tuple[int, ...], state: LaneState) -> Targets:
        selector = self._get(state, operands[0])
        type = self._code.types.get(self._code.types_of.get(operands[0], 0))
        words = 2 if type is not None and type.width == 64 else 1
        cases = []
        for at in range(2, len(operands) - words, words + 1):
            literal = sum(word << (32 * each) for each, word in enumerate(operands[at : at + words]))
            width = type.width if type is not None and type.width else 32
            met = None if selector is None else selector == (literal & (1 << width) - 1)
            cases.append((operands[at + words], met))
        if selector is None:
            return [(label, None) for label in dict.fromkeys([operands[1], *(each for each, _ in cases)])]
        return _split([*cases, (operands[1], None)], state)

    def _block(self, id: int, block: NeededBlock, state: LaneState, sure: bool) -> LaneState | None:
        """Executes a block; None where a call never returns."""
        going: LaneState | None = state
        for op, operands, number in block.steps:
            assert going is not None
            self._spend(len(going.lanes))
            if op == Op.FunctionCall:
                going = self._call(operands, going, sure)
                if going is None:
                    return None
            else:
                self._site, self._sure = (id, number), sure
                self._step(op, operands, going)
        self._spend(len(state.lanes))
        return going

    def _call(self, operands: tuple[int, ...], state: LaneState, sure: bool) -> LaneState | None:
        function, exits = self._code.functions[operands[2]], self._exits
        self._exits = []
        given = [self._get(state, each) for each in operands[3:]]
        state.values |= dict(zip(function.parameters, given, strict=False))
        arrived = self._run(operands[2], function.entry, state, EXIT, sure)
        assert arrived is None
        left, self._exits = self._exits, exits
        if not left:
            return None
        going = joined(left)
        going.values[operands[1]] = going.values.pop(-operands[2], None)
        return going


def _split(cases: list[tuple[int, Any]], state: LaneState) -> Targets:
    """Who goes where: each invocation to the first label whose condition holds, and to the last one otherwise. All go
    to all of them where a condition is not known."""
    count = len(state.lanes)
    left = np.ones(count, np.bool_)
    found: dict[int, Chosen] = {}
    for number, (label, condition) in enumerate(cases):
        last = number == len(cases) - 1
        if condition is None and not last:
            return [(each, None) for each in dict.fromkeys(label for label, _ in cases)]
        met = left if last else left & np.broadcast_to(np.asarray(condition, np.bool_), left.shape)
        if met.any():
            found[label] = found.get(label, np.zeros(count, np.bool_)) | met
        left = left & ~met
    if len(found) == 1:
        return [(next(iter(found)), None)]
    return list(found.items())


def _widened(forks: dict[int, tuple[int, LaneState]], label: int, state: LaneState) -> LaneState | None:
    """The state with which a branch that is not known is taken; None where it was taken so before."""
    times, before = forks.get(label, (0, state))
    if times >= MOST_FORKS:
        if is_covered(before, state):
            return None
        state = joined([before, state])
    forks[label] = times + 1, state.copy()
    return state
