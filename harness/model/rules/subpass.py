"""Render pass instances: subpasses, the dependencies between them, and automatic layout transitions.

Each subpass is a lane of its own: commands of different subpasses are in no submission order ("Implicit Synchronization
Guarantees"); barriers inside a subpass have scopes inside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.model.command_buffer_run import CommandBufferRun, InstanceStreams
from harness.model.command_streams import CommandStream
from harness.model.order import IN_ALL_COMMANDS, NOTHING, TRANSITION, Node, NodeSet
from harness.model.past_access import LAYOUT_TRANSITION
from harness.model.rule_table import effect
from harness.model.rules.barrier import FirstScope, OpenDependency, close_scope, open_scope
from harness.model.stages import ACCESS_KINDS, EVERY_STAGE
from harness.model.stages import TRANSITION as TRANSITION_STAGE
from harness.spec.enums import VkImageLayout
from harness.trace.effects import (
    EXTERNAL,
    Access,
    AutomaticTransition,
    PassBegin,
    PassEnd,
    SubpassBegin,
    SubpassDependency,
)


@effect(PassBegin)
def pass_begin(run: CommandBufferRun, effect: PassBegin) -> None:
    """A render pass instance begins: commands before it are what EXTERNAL is to its dependencies."""
    run.instance = InstanceStreams(run.lane, effect.dependencies, next(run.program.numbers))


@effect(SubpassBegin)
def subpass_begin(run: CommandBufferRun, effect: SubpassBegin) -> None:
    """A dependency into a subpass has in its first scope the commands of another subpass, or what came before the
    render pass instance; in its second scope the commands of the subpass.

    Automatic transitions into the subpass come between the two. A self-dependency orders nothing.
    Specification: "VkSubpassDependency", "Automatic Layout Transitions" ("Render Pass Creation").
    """
    instance = run.instance
    if instance is None:
        return
    lane = instance.outer.inner(next(run.program.numbers))
    instance.subpasses[effect.index] = lane
    given = [each for each in instance.dependencies if each.dst == effect.index and each.src != each.dst]
    halves = _open(run, instance, given)
    run.lane = lane
    transitions(run, effect.transitions, halves, instance)
    for half in halves:
        close_scope(run, half, lane)


@effect(PassEnd)
def pass_end(run: CommandBufferRun, effect: PassEnd) -> None:
    """A dependency from a subpass to EXTERNAL has in its second scope the commands after the render pass instance. The
    transition to the final layout comes between the scopes of those from the subpass that used the attachment last.

    Whatever happened in a subpass is earlier than all that follows. Specification: "VkSubpassDependency".
    """
    instance, run.instance = run.instance, None
    if instance is None:
        return
    outer = instance.outer
    by_subpass: dict[int, list[OpenDependency]] = {}
    for subpass in instance.subpasses:
        given = [each for each in instance.dependencies if (each.src, each.dst) == (subpass, EXTERNAL)]
        by_subpass[subpass] = _open(run, instance, given)
    run.lane = outer
    for lane in instance.subpasses.values():
        outer.leave(lane)
    for each, last in zip(effect.transitions, effect.last, strict=False):
        transitions(run, (each,), by_subpass.get(last, ()), instance)
    for halves in by_subpass.values():
        for half in halves:
            close_scope(run, half, outer)


def _open(
    run: CommandBufferRun, instance: InstanceStreams, dependencies: Iterable[SubpassDependency]
) -> list[OpenDependency]:
    """First scopes of dependencies: in the source subpass, or in what came before the render pass instance."""
    halves = []
    for each in dependencies:
        source: CommandStream | None = instance.outer if each.src == EXTERNAL else instance.subpasses.get(each.src)
        if source is not None:
            past = FirstScope((((source, EVERY_STAGE),),), by_region=each.by_region)
            halves.append(open_scope(run, each.dependency, past, "first scope of a subpass dependency"))
    return halves


def transitions(
    run: CommandBufferRun,
    changes: Sequence[AutomaticTransition],
    halves: Sequence[OpenDependency],
    instance: InstanceStreams,
) -> None:
    """Each automatic transition happens after what all the given dependencies make available, before what they make
    visible; with no dependency nothing orders it."""
    order, lane = run.program.order, run.lane
    sources = _fronts(run, [half.source for half in halves])
    for change in changes:
        label = f"layout transition by {run.command.name} ({run.command.call})"
        node = order.add(
            Node(TRANSITION, label, run.place, TRANSITION_STAGE),
            (sources, "a transition is after the first scopes"),
            (lane.before(TRANSITION_STAGE), IN_ALL_COMMANDS),
        )
        lane.issue(TRANSITION_STAGE, order.front(node))
        access = Access(LAYOUT_TRANSITION, change.space, change.spans, change.resource)
        where, number = (run.place, lane.id, run.execution), instance.number
        run.program.access(access, node, *where, automatic=True, instance=number, learned=run.learned)
        run.own(access, ACCESS_KINDS[LAYOUT_TRANSITION].name, node, change.old_layout != VkImageLayout.UNDEFINED)
        for half in halves:
            half.between |= NodeSet(1 << node, 1 << node, 1 << node)
            half.through |= order.front(node)


def _fronts(run: CommandBufferRun, nodes: Iterable[int]) -> NodeSet:
    front = NOTHING
    for node in nodes:
        front |= run.program.order.front(node)
    return front
