"""Command streams: sequences in which commands come one after another (a queue, a subpass of a render pass instance).

A stream knows two sets of nodes for each stage. A new operation in the stage is ordered after `reached`. A new first
scope with the stage holds `issued`: earlier operations in the stage, and earlier second scopes with the stage. The
latter is how dependencies chain.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from operator import or_

from vkharness.model.order import NOTHING, NodeSet


class StageSets:
    """A set of nodes for each stage. Stages with the same set are kept together: most dependencies name many."""

    __slots__ = ("_parts",)

    def __init__(self, other: StageSets | None = None) -> None:
        """The sets of another table, or empty ones."""
        self._parts: list[tuple[int, NodeSet]] = [(-1, NOTHING)] if other is None else other._parts
        """Stages, each in one part, and their set."""

    def add(self, stages: int, nodes: NodeSet) -> None:
        """Adds nodes to the sets of these stages."""
        parts = []
        for together, held in self._parts:
            inside = together & stages
            if inside != together:
                parts.append((together & ~stages, held))
            if inside:
                parts.append((inside, held | nodes))
        self._parts = parts

    def add_all(self, other: StageSets) -> None:
        """Adds the nodes of another table, each to its stages."""
        for together, nodes in other._parts:
            if nodes:
                self.add(together, nodes)

    def of(self, stages: int) -> NodeSet:
        """The nodes of any of these stages."""
        return reduce(or_, (nodes for together, nodes in self._parts if together & stages), NOTHING)

    def clear(self) -> None:
        """Empties all sets."""
        self._parts = [(-1, NOTHING)]


@dataclass(slots=True)
class CommandStream:
    """One sequence of commands."""

    id: int
    reached: StageSets = field(default_factory=StageSets)
    issued: StageSets = field(default_factory=StageSets)
    everything: NodeSet = NOTHING
    instance: int = 0
    """The number of the last instance of dynamic rendering that began here."""

    def inner(self, id: int) -> CommandStream:
        """The stream of a new subpass. Earlier barriers reach into it. Its first scopes hold nothing from outside."""
        return CommandStream(id, StageSets(self.reached), StageSets(self.reached))

    def leave(self, inner: CommandStream) -> None:
        """Adds the operations of a finished subpass to the earlier operations of this stream."""
        self.issued.add_all(inner.issued)
        self.everything |= inner.everything

    def snapshot(self) -> CommandStream:
        """A copy of the stream as it is now."""
        return CommandStream(self.id, StageSets(self.reached), StageSets(self.issued), self.everything)

    def before(self, stages: int) -> NodeSet:
        """The nodes that an operation in these stages is ordered after."""
        return self.reached.of(stages)

    def holds(self, stages: int) -> NodeSet:
        """The nodes that a first scope of these stages holds."""
        return self.issued.of(stages)

    def issue(self, stages: int, node: NodeSet) -> None:
        """Notes an operation in these stages."""
        self.everything |= node
        self.issued.add(stages, node)

    def reach(self, stages: int, node: NodeSet) -> None:
        """Notes a second scope: later operations in these stages come after it, and first scopes with them chain with
        it.
        Rules: rules.md#a-chain-needs-stages-that-meet, rules.md#waits-and-barriers-chain.
        """
        self.everything |= node
        self.reached.add(stages, node)
        self.issued.add(stages, node)
