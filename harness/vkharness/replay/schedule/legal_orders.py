"""Which orders of a recorded stream are legal: the linear extensions of the execution dependency order.

Theory of operation
===================

A driver may run commands in any order that their dependencies allow. A replay that runs a stream in another legal
order shows what such a driver would compute. When a verdict is clean, every legal order must leave the same bytes;
that is how the suite attacks clean verdicts.

The pieces that change places are *units* (`units`): a command with the state that it needs, a whole render pass
instance, a call of the host. The order among units comes from the model:

* Unit B must run after unit A if the model orders any operation of B after any operation of A.

In a trace without conflicts, two accesses of one memory of which one writes are always ordered. So all pairs that
could change a result keep their order, and every order that respects the rule leaves the same bytes.

Operations that keep their order although the model has no edge for them
------------------------------------------------------------------------
The model exempts some pairs from conflicts whose results still depend on the order. They keep it:

* layout transitions of one queue, which execute in submission order ("Image Layout Transitions");
* atomics of one memory, and markers: any order is legal, but the values they return and leave tell which one it was;
* all uses of one query pool: a query sees the reset before it, and a copy sees the queries before it ("Queries").

The host
--------
* The host's own calls keep their order, and what is submitted after a call stays after it.
* A command may move past a later call of the host when the host has not waited for the command, and when the model
  has a node for the call or the call leaves alone what the command uses.
* Whatever the model has no node for never moves: it is a wall between what is before and after it.

How an order is made
--------------------
`LegalOrders.extension` keeps the set of units that may come next and asks a strategy to choose one. Every legal order
can come out, and none other: submission order is always one of them, so no unit waits for ever. Strategies are in
`replay/outcomes/`, one a module.

A worked example
----------------
Two fills, a barrier, a copy of each. The tests' builder makes the stream. A strategy that always takes the last of the
units that may come next gives the order that is furthest from submission order.

>>> from vkharness.model import judge
>>> from vkharness.replay.schedule.steps import flatten
>>> from vkharness.replay.schedule.units import units_of
>>> from tests.support.streams import Stream
>>> stream = Stream()
>>> a, b, c, d = (stream.buffer(16) for each in range(4))
>>> begun, fills = stream.begin(), (stream.fill(a, 1), stream.fill(b, 2))
>>> barrier, copies = stream.barrier(), (stream.copy(a, c, 16), stream.copy(b, d, 16))
>>> submitted = stream.submit()
>>> orders = LegalOrders(units_of(flatten(stream.blocks)), judge(stream.blocks))
>>> order = orders.extension(lambda ready: ready[-1])
>>> ran = [orders.units[each].steps[0].block.index for each in order if orders.acts(each)]
>>> ran == [*reversed(fills), *reversed(copies)]
True

The fills changed places, and so did the copies. No copy came before a fill.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from sortedcontainers import SortedList

from vkharness.findings import Place
from vkharness.model import Opinion
from vkharness.model.node_numbers import EMPTY, NodeNumbers
from vkharness.model.order import ACTION, HOST, PRESENT, TRANSITION
from vkharness.replay.schedule.steps import Identity
from vkharness.replay.schedule.units import Unit
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Call, reading
from vkharness.trace.effects import Access, Recorded, StreamEvent

PERFORMED = (ACTION, TRANSITION, HOST, PRESENT)
"""Kinds of nodes that stand for work that runs. The other kinds only order such work."""

LEAVES_ALONE = (
    "vkCreate",
    "vkAllocate",
    "vkGet",
    "vkEnumerate",
    "vkBind",
    "vkBegin",
    "vkEnd",
    "vkMap",
    "vkUnmap",
    "vkFlush",
    "vkWait",
    "vkQueue",
    "vkDevice",
    "vkSignal",
    "vkSetEvent",
    "vkResetEvent",
    "vkResetFences",
    "vkResetCommand",
    "vkFreeCommandBuffers",
    "vkUpdateDescriptorSets",
)
"""Beginnings of the names of host calls that change nothing which earlier commands use, so that those may run later.

vkUpdateDescriptorSets is an exception for commands that use the updated sets: `_updated` and `_bound` keep their order.
"""

Choose = Callable[[Sequence[int]], int]
"""Picks the next unit from those that may come next, given as ascending places in submission order."""


class LegalOrders:
    """The order that units must keep. A unit is named by its place in submission order."""

    def __init__(self, units: Sequence[Unit], opinion: Opinion) -> None:
        self.units = units
        self._holds: list[NodeNumbers] = []
        """For each unit, the set of nodes that it performs."""
        self._needs: list[NodeNumbers] = []
        """For each unit, the set of nodes of earlier units that must come before it."""
        self._performs: dict[int, int] = {}
        """For each node, the unit that performs it."""
        self._after: list[set[int]] = [set() for _ in units]
        """For each unit, the units that it must follow although the model has no edge between them."""
        self._follow_nodes(opinion)
        self._keep_the_host()
        self._keep_what_is_exempt(opinion)

    def _follow_nodes(self, opinion: Opinion) -> None:
        order = opinion.order
        at: dict[Identity, list[int]] = {}
        for index, node in enumerate(order.nodes):
            if node.kind in PERFORMED:
                at.setdefault(_identity(node.place), []).append(index)
        known = EMPTY
        for number, unit in enumerate(self.units):
            before, performed = EMPTY, list[int]()
            for index in (each for identity in unit.identities for each in at.get(identity, ())):
                before |= order.by_region[index]
                performed.append(index)
                self._performs[index] = number
            own = NodeNumbers.of(performed)
            self._holds.append(own)
            self._needs.append((before & known) - own)
            known |= own

    def _keep_the_host(self) -> None:
        """Keeps the order around calls of the host.

        * The host's own calls keep their order, and what is submitted after a call stays after it.
        * A command may move past a later call if the model has a node for the call, or the call leaves alone what
          commands use.
        * A unit without a node, whose effects are not known, is a wall: nothing moves past it.
        """
        wall, host = -1, -1
        users: dict[int, list[int]] = {}
        for number, unit in enumerate(self.units):
            after = self._after[number]
            after.update(each for each in (wall, host) if each >= 0)
            for each in _updated(unit):
                after.update(users.get(each, ()))
            for each in _bound(unit):
                users.setdefault(each, []).append(number)
            if unit.host:
                host = number
            if self._is_wall(number):
                after.update(range(wall + 1, number))
                wall = number

    def _is_wall(self, number: int) -> bool:
        unit = self.units[number]
        if self._holds[number]:
            return unit.host and len(unit.steps) > 1
        if unit.host:
            return not unit.steps[0].name.startswith(LEAVES_ALONE)
        return not any(_pools(unit))

    def _keep_what_is_exempt(self, opinion: Opinion) -> None:
        exempt = _exempt(opinion.events)
        last: dict[object, int] = {}
        for number, unit in enumerate(self.units):
            keys: set[object] = set(_pools(unit))
            for identity in unit.identities:
                keys |= exempt.get(identity.call, set())
            for node in self._holds[number]:
                if opinion.order.nodes[node].kind == TRANSITION:
                    keys.add(("queue", opinion.order.nodes[node].place.queue))
            for key in keys:
                if key in last:
                    self._after[number].add(last[key])
                last[key] = number

    def acts(self, number: int) -> bool:
        """Whether a unit reaches memory: a command does, and a call of the host that reads or writes."""
        return bool(self._holds[number]) or not self.units[number].host

    def extension(self, choose: Choose) -> list[int]:
        """A legal order, as places in submission order. `choose` picks each next unit. Every legal order
        can come out."""
        waits = [len(after) for after in self._after]
        followers: list[list[int]] = [[] for _ in self.units]
        for number, after in enumerate(self._after):
            for each in after:
                followers[each].append(number)
        parked: dict[int, list[int]] = {}
        ready: SortedList[int] = SortedList()
        done, order = EMPTY, list[int]()

        def settle(number: int) -> None:
            """Ready, or parked with the last of the units that it needs, which often needs the others."""
            missing = self._needs[number] - done
            if missing:
                parked.setdefault(self._performs[next(reversed(missing))], []).append(number)
            else:
                ready.add(number)

        for number, count in enumerate(waits):
            if not count:
                settle(number)
        while ready:
            chosen = choose(ready)
            ready.remove(chosen)
            order.append(chosen)
            done |= self._holds[chosen]
            for each in followers[chosen]:
                waits[each] -= 1
                if not waits[each]:
                    settle(each)
            for each in parked.pop(chosen, ()):
                settle(each)
        assert len(order) == len(self.units), "submission order is legal, so no unit can wait for ever"
        return order


def _identity(place: Place) -> Identity:
    return Identity(place.submit or 0, place.batch, place.position, place.call, place.executed_by or (0, 0))


def _updated(unit: Unit) -> Iterator[int]:
    """The descriptor sets that a host call updates."""
    block = unit.steps[0].block
    if unit.host and isinstance(block, Call) and block.name == "vkUpdateDescriptorSets":
        with reading(block):
            for name in ("pDescriptorWrites", "pDescriptorCopies"):
                yield from (each["dstSet"] for each in block.args.get(name) or ())


def _bound(unit: Unit) -> Iterator[int]:
    """The descriptor sets that a unit may use."""
    for step in (*unit.before, *unit.steps):
        if isinstance(step.block, Call) and main_name(step.block.name) == "vkCmdBindDescriptorSets":
            yield from step.block.args.get("pDescriptorSets") or ()


def _pools(unit: Unit) -> Iterator[object]:
    """The query pools that a unit uses."""
    for step in unit.steps:
        if isinstance(step.block, Call) and not unit.host and step.block.args.get("queryPool"):
            yield ("query pool", step.block.args["queryPool"])


def _exempt(events: Iterable[StreamEvent]) -> dict[int, set[object]]:
    """For each command, the memory in which it makes atomic accesses or puts markers."""
    found: dict[int, set[object]] = {}
    for each in events:
        if isinstance(each, Recorded):
            for effect in each.command.effects:
                if isinstance(effect, Access) and (effect.atomic or effect.marker):
                    spaces = (effect.space, *(alias.space for alias in effect.aliases))
                    found.setdefault(each.command.call, set()).update(("space", space) for space in spaces)
    return found
