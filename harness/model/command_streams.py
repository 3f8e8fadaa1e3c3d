"""Command streams: sequences in which commands come one after another (a queue, a subpass of a render pass instance).

A stream knows two sets of nodes for each stage. A new operation in the stage is ordered after `reached`. A new first
scope with the stage holds `issued`: earlier operations in the stage, and earlier second scopes with the stage. The
latter is how dependencies chain.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.model.order import NOTHING, NodeSet
from harness.model.stages import bits


@dataclass(slots=True)
class CommandStream:
    """One sequence of commands."""

    id: int
    reached: dict[int, NodeSet] = field(default_factory=dict)
    issued: dict[int, NodeSet] = field(default_factory=dict)
    everything: NodeSet = NOTHING
    instance: int = 0
    """The number of the last instance of dynamic rendering that began here."""

    def inner(self, id: int) -> CommandStream:
        """The stream of a new subpass. Earlier barriers reach into it. Its first scopes hold nothing from outside."""
        return CommandStream(id, dict(self.reached), dict(self.reached))

    def leave(self, inner: CommandStream) -> None:
        """Adds the operations of a finished subpass to the earlier operations of this stream."""
        for stage, nodes in inner.issued.items():
            self.issued[stage] = self.issued.get(stage, NOTHING) | nodes
        self.everything |= inner.everything

    def snapshot(self) -> CommandStream:
        """A copy of the stream as it is now."""
        return CommandStream(self.id, dict(self.reached), dict(self.issued), self.everything)

    def before(self, stages: int) -> NodeSet:
        """The nodes that an operation in these stages is ordered after."""
        return _join(self.reached, stages)

    def holds(self, stages: int) -> NodeSet:
        """The nodes that a first scope of these stages holds."""
        return _join(self.issued, stages)

    def issue(self, stages: int, node: NodeSet) -> None:
        """Notes an operation in these stages."""
        self.everything |= node
        for stage in bits(stages):
            self.issued[stage] = self.issued.get(stage, NOTHING) | node

    def reach(self, stages: int, node: NodeSet) -> None:
        """Notes a second scope: later operations in these stages come after it, and first scopes with them chain with
        it.
        Rules: rules.md#a-chain-needs-stages-that-meet, rules.md#waits-and-barriers-chain.
        """
        self.everything |= node
        for stage in bits(stages):
            self.reached[stage] = self.reached.get(stage, NOTHING) | node
            self.issued[stage] = self.issued.get(stage, NOTHING) | node


def _join(table: dict[int, NodeSet], stages: int) -> NodeSet:
    direct = closed = by_region = across = 0
    for stage in bits(stages):
        nodes = table.get(stage)
        if nodes is not None:
            direct |= nodes.direct
            closed |= nodes.closed
            by_region |= nodes.by_region
            across |= nodes.across
    return NodeSet(direct, closed, by_region, across)
