"""Litmus tests of the memory model as text, and how both judges are asked about one.

An operation is a line of words: `write x`, `read x`, `atomic update f`, `fence`, `barrier`; behind them the scope
(`subgroup`, `group`, `device`), `release`, `acquire`, `ordered` (both), the storage classes of the semantics
(`+buffers`, `+images`), `make-available` and `make-visible`. Locations in small letters are of buffers, in capitals of
images; `x'` is `x` by another descriptor. A plain access with a scope makes itself available to it, or visible from it;
one with `private` is private.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tests.races.memory_model import Execution, Operation
from vkharness.races.knowledge import DispatchLayout, Invocation, ScopeReach, Semantics, Storage, meet
from vkharness.races.shared_words import Atomic, Instruction, SharedWords, Word

LAYOUT = DispatchLayout(4, 2)
"""Work groups of two subgroups of two."""
SCOPES = {"subgroup": ScopeReach.SUBGROUP, "group": ScopeReach.GROUP, "device": ScopeReach.ALL}
SEMANTICS = {
    "release": Semantics.RELEASE, "acquire": Semantics.ACQUIRE, "ordered": Semantics.ACQUIRE_RELEASE,
    "+buffers": Semantics.BUFFERS, "+images": Semantics.IMAGES, "make-available": Semantics.MAKE_AVAILABLE,
    "make-visible": Semantics.MAKE_VISIBLE,
}  # fmt: skip
CLASSES = (Storage.BUFFER, Storage.IMAGE)
Program = Mapping[int, Sequence[str]]
"""Operations by the number of the invocation. One work group runs after the other, and the invocations of one in this
order, each to its next control barrier."""


def operation(invocation: int, text: str, barriers: int = 0) -> Operation:
    """One operation; `barriers`: how many control barriers the invocation has passed."""
    words = text.split()
    scope = next((reach for name, reach in SCOPES.items() if name in words), ScopeReach.SELF)
    semantics = Semantics(0)
    for word in words:
        semantics |= SEMANTICS.get(word, Semantics(0))
    if words[0] in ("fence", "barrier"):
        control = barriers if words[0] == "barrier" else -1
        return Operation(invocation, scope=scope, semantics=semantics, control=control)
    atomic = words[0] == "atomic"
    verb, name = words[atomic : atomic + 2]
    reads, writes = verb in ("read", "update"), verb in ("write", "update")
    location, storage = 1 + ord(name[0]), Storage.IMAGE if name[0].isupper() else Storage.BUFFER
    own = ScopeReach.SELF if atomic else scope
    return Operation(
        invocation, location, 1000 * location + len(name), storage, reads, writes, atomic, scope, semantics,
        own if writes else ScopeReach.SELF, own if reads else ScopeReach.SELF, "private" in words,
    )  # fmt: skip


def executed(program: Program) -> list[Operation]:
    """The operations in the order in which they are executed."""
    return [each for group in (0, 1) for each in _executed_group(program, group)]


def _executed_group(program: Program, group: int) -> Iterator[Operation]:
    left = {number: [*lines] for number, lines in program.items() if LAYOUT.home(number).group == group}
    passed = 0
    while any(left.values()):
        for number, lines in left.items():
            while lines and not lines[0].startswith("barrier"):
                yield operation(number, lines.pop(0))
        for number, lines in left.items():
            if lines:
                yield operation(number, lines.pop(0), passed)
        passed += 1


def by_the_model(operations: Sequence[Operation]) -> set[int]:
    """Locations at which the relations of the specification see a race of two invocations."""
    pairs = ((operations[one], operations[other]) for one, other in Execution(operations, LAYOUT).races())
    return {one.location for one, other in pairs if one.invocation != other.invocation}


def by_the_judge(operations: Sequence[Operation]) -> set[int]:
    """Locations at which `vkharness.races` sees one."""
    places, found = SharedWords(), set()
    invocations = {each.invocation: Invocation(each.invocation, LAYOUT) for each in operations}
    at = 0
    while at < len(operations):
        each = operations[at]
        by = invocations[each.invocation]
        if each.control >= 0:
            at += len(group := [*_meeting(operations[at:])])
            meet([invocations[one] for one in group], each.scope, each.semantics, each.scope, CLASSES, False)
            continue
        if each.location < 0:
            by.fence(each.semantics, each.scope)
        else:
            by.access(each.storage)
            pairs = places.access(Word(0, each.location), (0, 4), _instruction(at, each), by, 0, each.reference)
            found |= {each.location for _ in pairs}
        at += 1
    return found


def _meeting(operations: Sequence[Operation]) -> Iterator[int]:
    """The invocations that meet at the first of these, a control barrier."""
    first = operations[0]
    for each in operations:
        together = first.scope.joins(*(LAYOUT.home(one.invocation) for one in (first, each)))
        if each.control != first.control or not together:
            return
        yield each.invocation


def _instruction(number: int, each: Operation) -> Instruction:
    atomic = Atomic(each.scope, each.semantics) if each.atomic else None
    available, visible = (each.scope, each.scope) if each.atomic else (each.available, each.visible)
    return Instruction(
        number, each.storage, each.reference, None, each.reads, each.writes, atomic, not each.private, available,
        visible, each.reference,
    )  # fmt: skip
