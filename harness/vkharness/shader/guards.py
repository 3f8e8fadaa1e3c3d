"""Under which conditions each block of a function runs, from its control flow graph.

A block with one predecessor that branches on a condition runs only if the condition has the value of its edge. Beside
that, a block runs only if its immediate dominator does. It runs for sure when that one does if it postdominates it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vkharness.shader.opcodes import Op
from vkharness.shader.spirv import Instruction

MOST_STEPS = 1 << 20
"""The work that the dominators of one function may take. A function that needs more has no guards."""
MOST_ABOVE = 256
"""How far up a block's dominators are looked for."""
MOST_CONDITIONS = 16
EXIT = 0
"""The block after all that leave the function. No label has this id."""

Condition = tuple[int, bool]
"""The id of a boolean, and the value that it must have."""


class Guard(NamedTuple):
    """The conditions under which a block runs."""

    conditions: tuple[Condition, ...] = ()
    """Outermost first. All hold."""
    certain: bool = False
    """Whether the block runs once the function runs and the conditions hold."""


class Guards:
    """The blocks of one function."""

    def __init__(self, body: Sequence[Instruction]) -> None:
        self._edges: dict[int, tuple[int, ...]] = {}
        self._branches: dict[int, tuple[int, int, int]] = {}
        """(condition, target if true, target if false) of blocks that end in OpBranchConditional."""
        self._read(body)
        self._dominator = dominators(self._edges, next(iter(self._edges), EXIT))
        backwards = _reversed(self._edges)
        self._predecessors = {block: set(backwards.get(block, ())) for block in self._edges}
        self._postdominator = dominators(backwards, EXIT)
        self._guards: dict[int, Guard] = {}

    def _read(self, body: Sequence[Instruction]) -> None:
        block = EXIT
        for op, operands in body:
            if op == Op.Label:
                block = operands[0]
                self._edges[block] = (EXIT,)
            elif op == Op.Branch:
                self._edges[block] = operands[:1]
            elif op == Op.BranchConditional:
                self._edges[block] = operands[1:3]
                self._branches[block] = (operands[0], operands[1], operands[2])
            elif op == Op.Switch:
                # A literal may have the number of a block. One edge too many costs precision and nothing else.
                self._edges[block] = operands[1:]
        for block, targets in self._edges.items():
            self._edges[block] = tuple(each for each in targets if each in self._edges or each == EXIT)

    def dominates(self, first: int, second: int) -> bool:
        """Whether every way to the second block leads through the first one, or both are one."""
        return _above(self._dominator, first, second)

    def meeting(self, block: int) -> int:
        """The first block after this one that all ways from it lead through; EXIT for the end of the function."""
        return self._postdominator.get(block, EXIT)

    def of(self, block: int) -> Guard:
        """The guard of a block. A block that is not known has one that says nothing."""
        if block not in self._dominator:
            return Guard()
        waiting = [block]
        while self._dominator[waiting[-1]] != waiting[-1] and waiting[-1] not in self._guards:
            waiting.append(self._dominator[waiting[-1]])
        guard = self._guards.setdefault(waiting.pop(), Guard((), True))
        for each in reversed(waiting):
            guard = self._guards[each] = self._inside(guard, each)
        return guard

    def _inside(self, outer: Guard, block: int) -> Guard:
        """The guard of a block whose immediate dominator has the guard `outer`."""
        above = self._dominator[block]
        if self._predecessors.get(block) == {above} and above in self._branches:
            condition, yes, no = self._branches[above]
            if yes != no:
                if len(outer.conditions) >= MOST_CONDITIONS:
                    return Guard(outer.conditions, False)
                return Guard((*outer.conditions, (condition, block == yes)), outer.certain)
        return Guard(outer.conditions, outer.certain and _above(self._postdominator, block, above))


def _reversed(edges: Mapping[int, Sequence[int]]) -> dict[int, list[int]]:
    backwards: dict[int, list[int]] = {}
    for block, targets in edges.items():
        for each in targets:
            backwards.setdefault(each, []).append(block)
    return backwards


def _above(parents: Mapping[int, int], ancestor: int, block: int) -> bool:
    for _ in range(MOST_ABOVE):
        if block == ancestor:
            return True
        block = parents.get(block, EXIT)
    return False


def dominators(edges: Mapping[int, Sequence[int]], root: int) -> dict[int, int]:
    """The immediate dominator of each block that the root reaches; the root has itself. Empty for too large a graph.

    Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm".
    """
    order = _postorder(edges, root)
    number = {block: at for at, block in enumerate(order)}
    backwards = _reversed({block: edges.get(block, ()) for block in order})
    found = {root: root}
    work = MOST_STEPS
    changed = True
    while changed:
        changed = False
        for block in reversed(order[:-1]):
            known = [each for each in backwards[block] if each in found]
            meet = known[0]
            work -= len(backwards[block])
            for each in known[1:]:
                while meet != each:
                    if number[meet] < number[each]:
                        meet = found[meet]
                    else:
                        each = found[each]
                    work -= 1
                    if work < 0:
                        return {}
            if found.get(block) != meet:
                found[block] = meet
                changed = True
    return found


def _postorder(edges: Mapping[int, Sequence[int]], root: int) -> list[int]:
    order: list[int] = []
    seen = {root}
    stack = [(root, iter(edges.get(root, ())))]
    while stack:
        block, targets = stack[-1]
        for each in targets:
            if each not in seen:
                seen.add(each)
                stack.append((each, iter(edges.get(each, ()))))
                break
        else:
            order.append(block)
            stack.pop()
    return order
