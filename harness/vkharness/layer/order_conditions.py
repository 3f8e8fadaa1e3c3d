"""Whether accesses are in order by what the layer does not know: the second judge is asked with rules left out.

The model keeps each edge of its order with its rule. Where two accesses conflict without some rules, and do not with
all of them, every argument for their order needs one of those rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import or_

from vkharness.commands.interpret import Interpreter
from vkharness.findings import Finding
from vkharness.layer.chains import candidates
from vkharness.layer.conditions import condition
from vkharness.layer.stream import Stream
from vkharness.layer.subject import Subject
from vkharness.layer.touches import TRANSITION
from vkharness.model import judge_stream_events
from vkharness.model.order import (
    DST,
    EVENT,
    IN_ALL_COMMANDS,
    MEETING,
    NOTHING,
    SRC,
    THROUGH,
    ExecutionOrder,
    Node,
    NodeSet,
)
from vkharness.model.order import TRANSITION as NODE_OF_TRANSITION
from vkharness.model.program import RuleTable
from vkharness.model.rules import RULES
from vkharness.spec.command_classes import RENDERING
from vkharness.trace.effects import EXTERNAL, AttachmentUsers, AutomaticTransition, StreamEvent, SubpassDependency

AccessPair = tuple[int, str, int, str]
"""Two accesses, each as (block index at which its command was recorded, name)."""


class _LayersOrder(ExecutionOrder):
    """An order in which dependencies are no operations that other dependencies hold."""

    unheld: tuple[str, ...] = (DST,)

    def add(self, node: Node, *after: tuple[NodeSet, str]) -> int:
        waits = node.kind == EVENT and not node.stages
        if waits or node.kind in (SRC, DST):
            after = tuple((self._accesses_of(*each), each[1]) for each in after)
        return super().add(node, *after)

    def _accesses_of(self, nodes: NodeSet, rule: str) -> NodeSet:
        if rule != IN_ALL_COMMANDS:
            return nodes
        return self._without(self.unheld, nodes)

    def _without(self, kinds: tuple[str, ...], nodes: NodeSet) -> NodeSet:
        kept = (self.set_of(each) for each in nodes.direct if self.nodes[each].kind not in kinds)
        return reduce(or_, kept, NOTHING)


class _NothingMeets(_LayersOrder):
    """The same, and nothing leads through an automatic transition from one dependency to another."""

    def add(self, node: Node, *after: tuple[NodeSet, str]) -> int:
        return super().add(node, *(each for each in after if each[1] not in (MEETING, THROUGH)))


class _NothingGoesOn(_LayersOrder):
    """The same, and what an automatic transition meets goes on to nothing through the transition."""

    unheld = (DST, NODE_OF_TRANSITION)

    def add(self, node: Node, *after: tuple[NodeSet, str]) -> int:
        if node.kind == DST and node.place.command.startswith(RENDERING):
            after = tuple((self._without(self.unheld[1:], each), rule) for each, rule in after if rule != THROUGH)
        return super().add(node, *after)


def _asked(
    dependencies: list[SubpassDependency], change: AutomaticTransition, into: int, shows: bool
) -> list[SubpassDependency]:
    """Those from the subpass that used the attachment last, or from outside, to the one that the transition enters. Of
    those to outside the first one alone shows what the transition wrote."""
    between = (max(change.leaves, default=EXTERNAL), into)
    several = [each for each in dependencies if (each.src, each.dst) == between]
    return several[:1] if shows and into == EXTERNAL else several


BETWEEN_TWO = replace(
    RULES,
    order=_LayersOrder,
    met=_asked,
    effects={effect: rule for effect, rule in RULES.effects.items() if effect is not AttachmentUsers},
)
"""The rules as layers have them. An automatic transition has to do with dependencies between two subpasses alone, that
which used the attachment last and that which uses it next, and so has a load or store operation with those of the
subpass in which it is performed."""
NOTHING_MEETS = replace(BETWEEN_TWO, order=_NothingMeets)
"""The same, and such dependencies do not chain with one another, either."""
NOTHING_GOES_ON = replace(BETWEEN_TWO, order=_NothingGoesOn)
"""The same of transitions at which the second access is no such transition itself."""


BEYOND_SUBPASSES = replace(
    RULES,
    beyond_subpasses=True,
    effects={effect: rule for effect, rule in RULES.effects.items() if effect is not AttachmentUsers},
)
"""The rules as layers have those of dependencies between subpasses and of barriers inside of one, which hold load
operations and whatever was before the instance, and of which what they show stays so behind it."""


def _conflicts(events: Sequence[StreamEvent], rules: RuleTable) -> frozenset[AccessPair]:
    return frozenset(
        (each.prior.call, each.prior.access, each.current.call, each.current.access)
        for each in judge_stream_events(events, rules=rules).conflicts
    )


def _second_opinion(stream: Stream) -> Sequence[frozenset[AccessPair]]:
    """The pairs of a stream that are in conflict; those that are in order by all rules, and not by those that layers
    have; and those in conflict that would be in order by others of theirs."""
    if not stream.second_opinion:
        interpreter = Interpreter()
        events = [event for block in stream.blocks for event in interpreter.step(block)]
        passes = {call.index for call in stream.calls if call.name.startswith(RENDERING)}
        moves = {each for each in _conflicts(events, BETWEEN_TWO) if _ends_at_a_pass(each, passes)}
        further = {each for each in _conflicts(events, NOTHING_GOES_ON) if _ends_at_a_pass(each, passes)}
        moves |= {each for each in further if each[1] != TRANSITION}
        rest = {each for each in _conflicts(events, NOTHING_MEETS) if not _ends_at_a_pass(each, passes)}
        found = _conflicts(events, RULES)
        stream.second_opinion = (found, frozenset(moves | rest) - found, found - _conflicts(events, BEYOND_SUBPASSES))
    return stream.second_opinion


def is_in_conflict(finding: Finding, stream: Stream) -> bool:
    """Whether the second judge, too, has these accesses of a finding in conflict."""
    prior, place = finding.prior, finding.place
    return (prior.call, finding.prior_access, place.call, finding.access) in _second_opinion(stream)[0]


def _ends_at_a_pass(pair: AccessPair, passes: set[int]) -> bool:
    """Whether the second access is an automatic transition, which has to do with dependencies itself."""
    _, _, call, access = pair
    return access == TRANSITION and call in passes


@condition
def in_order_by_more(subject: Subject) -> bool:
    """The two accesses are in order, and would not be by the rules that layers have."""
    steps = [(steps[at], steps[-1]) for steps, at, _ in candidates(subject)]
    # A transition, and what the same command does with the attachment:
    steps += [(steps[-1], steps[-1]) for steps in subject.occurrences if subject.may_be_first(steps[-1])]
    calls = {(first.call.index, second.call.index): (first.call.name, second.call.name) for first, second in steps}
    for prior, prior_access, call, access in _second_opinion(subject.stream)[1]:
        if names := calls.get((prior, call)):
            told = subject.renamed(names[0], prior_access), subject.renamed(names[1], access)
            if told == (subject.key[4], subject.key[3]):
                return True
    return False


@condition
def in_order_beyond_subpasses(subject: Subject) -> bool:
    """Our two accesses are in conflict, and would be in order if dependencies inside of a render pass instance held
    what is around its subpasses."""
    finding = subject.finding
    if finding is None:
        return False
    prior, place = finding.prior, finding.place
    pair = (prior.call, finding.prior_access, place.call, finding.access)
    return pair in _second_opinion(subject.stream)[2]
