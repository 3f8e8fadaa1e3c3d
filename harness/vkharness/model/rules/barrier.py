"""Pipeline barriers, and what they share with every other dependency: two scopes with a transition between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

from vkharness.model.command_buffer_run import CommandBufferRun, InstanceStreams
from vkharness.model.command_streams import CommandStream
from vkharness.model.memory import MemoryOperation
from vkharness.model.opinion import ModelAccess
from vkharness.model.order import BY_REGION, DST, IN_ALL_COMMANDS, NOTHING, SRC, THROUGH, TRANSITION, Node, NodeSet
from vkharness.model.past_access import LAYOUT_TRANSITION
from vkharness.model.stages import (
    ACCESS_KIND,
    ACCESS_KINDS,
    BESIDE_STAGES,
    BOTTOM,
    EVERY_STAGE,
    FRAMEBUFFER_SPACE,
    SYNCHRONIZATION,
    TOP,
    TRANSFER_OF_OWNERSHIP,
    access_scope,
    concrete,
    first_scope,
    second_scope,
)
from vkharness.model.stages import TRANSITION as TRANSITION_STAGE
from vkharness.spans import Span
from vkharness.spec import names
from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED, VkImageLayout
from vkharness.trace.effects import Access, Barrier, Dependency, RangeBarrier

TRANSFER = ACCESS_KIND["SYNC_QUEUE_FAMILY_OWNERSHIP_TRANSFER"].index
RELEASE, ACQUIRE = "ownership release", "ownership acquire"


@dataclass(frozen=True, slots=True)
class FirstScope:
    """The streams that a first scope looks back at, and the nodes that it comes after in any case."""

    streams: tuple[tuple[tuple[CommandStream, int], ...], ...]
    """Streams as they were, each limited to some stages. Of several alternatives the scope holds what all have in
    common."""
    after: NodeSet = NOTHING
    begins: CommandStream | None = None
    """The stream in which transitions begin, if that is not the only stream."""
    waited: NodeSet = NOTHING
    """The nodes that second scopes come after as well."""
    by_region: bool = False
    """VK_DEPENDENCY_BY_REGION_BIT: the dependency is framebuffer-local if its stages are."""
    by_view: bool = False
    """VK_DEPENDENCY_VIEW_LOCAL_BIT between several views: the dependency holds inside each view."""

    def holds(self, stages: int) -> NodeSet:
        """The nodes that a first scope of these stages holds."""
        nodes = self.after
        for several in self.streams:
            nodes |= reduce(and_, (stream.holds(stages & limit) for stream, limit in several))
        return nodes

    def before(self, stage: int) -> NodeSet:
        """The nodes that a transition comes after, apart from its first scope."""
        return (self.begins or self.streams[0][0][0]).before(stage)


@dataclass(slots=True)
class OpenDependency:
    """A dependency whose first scope is known, and whose second scope is not open yet."""

    dependency: Dependency
    source: int
    scope: FirstScope
    ranged: RangeBarrier | None = None
    between: NodeSet = NOTHING
    """The transitions between its two scopes."""
    through: NodeSet = NOTHING
    """Operations before those transitions by other dependencies."""
    earlier: NodeSet = NOTHING
    """Operations before all that the command itself performs in no stage."""
    transfers: str = ""
    """Its half of an ownership transfer: RELEASE, ACQUIRE, or empty."""


def pipeline_barrier(run: CommandBufferRun, barrier: Barrier) -> None:
    """Each dependency of a barrier has a first scope over earlier commands of the command stream and a second over
    later ones.

    Inside a subpass both are limited to the subpass. Dependencies of one command do not chain with one another: every
    first scope is taken before any second one is open. Specification: "Pipeline Barriers", "Image Memory Barriers".
    """
    streams = tuple(((each, EVERY_STAGE),) for each in (run.stream, *around(run, run.instance)))
    scope = FirstScope(streams, by_region=barrier.by_region, by_view=barrier.by_view)
    apply(run, [(barrier, scope)], "first scope of a barrier")


def apply(run: CommandBufferRun, barriers: Sequence[tuple[Barrier, FirstScope]], rule: str) -> None:
    """Takes all first scopes, makes the transitions, and then opens all second scopes.

    Rules: rules.md#barriers-of-one-command-are-independent, rules.md#barriers-of-one-command-add-up.
    """
    pending_dependencies = []
    for barrier, scope in barriers:
        pending_dependencies += [open_scope(run, each, scope, rule) for each in barrier.globals]
        pending_dependencies += [open_scope(run, each.dependency, scope, rule, each) for each in barrier.ranges]
    for pending in pending_dependencies:
        transition(run, pending)
    streams = run.stream, *around(run, run.instance)
    made = [each for pending in pending_dependencies for each in close_scope(run, pending, *streams)]
    run.program.caches.made_visible(made, run.place, run.program.accesses, run.execution)


def around(run: CommandBufferRun, instance: InstanceStreams | None) -> list[CommandStream]:
    """Returns the command streams in the scopes of a dependency inside of a render pass instance beside its subpasses:
    none by the specification's rules, the one outside of the instance by others (`RuleTable.beyond_subpasses`)."""
    return [instance.outer] if instance is not None and run.program.rules.beyond_subpasses else []


def open_scope(
    run: CommandBufferRun, dependency: Dependency, scope: FirstScope, rule: str, ranged: RangeBarrier | None = None
) -> OpenDependency:
    """The first scope: operations in its stages, or logically earlier ones, are complete before the dependency.

    Writes in the first access scope are made available here. The acquire of an ownership transfer makes nothing
    available, and has no first scope unless its stages are to count. Specification: "Execution and Memory
    Dependencies", "Queue Family Ownership Transfer".
    Rules: rules.md#the-halves-of-a-transfer-have-no-stage, rules.md#a-barrier-covers-what-came-before-it.
    """
    transfers = part_of(run, ranged)
    applies = transfers != ACQUIRE or (ranged is not None and ranged.all_stages)
    stages = first_scope(dependency.src_stages, run.queue_flags) if applies else 0
    nodes, in_all_commands = scope.holds(stages & ~BESIDE_STAGES), scope.holds(stages & BESIDE_STAGES)
    label = f"{run.command.name} ({run.command.call}) from {names.stages(dependency.src_stages)}"
    source = run.program.order.add(
        Node(SRC, label, run.place, stages), (nodes, rule), (in_all_commands, IN_ALL_COMMANDS)
    )
    if transfers != ACQUIRE:
        flushes = access_scope(dependency.src_stages, dependency.src_accesses, run.queue_flags)
        for space, spans in reach_of(ranged):
            run.program.memory.add(
                MemoryOperation(source, nodes.direct | in_all_commands.direct, flushes, 0, space, spans)
            )
    return OpenDependency(
        dependency, source, scope, ranged, earlier=run.stream.before(SYNCHRONIZATION), transfers=transfers
    )


def reach_of(ranged: RangeBarrier | None) -> Iterator[tuple[int | None, tuple[Span, ...]]]:
    """The addresses of a dependency's memory operations: all memory, or one resource and its aliases.

    Rules: rules.md#a-ranged-barrier-covers-its-range, rules.md#a-barrier-for-one-alias-contains-the-overlap.
    """
    if ranged is None:
        yield None, ()
    else:
        yield ranged.space, ranged.spans
        yield from ((alias.space, alias.spans) for alias in ranged.aliases)


def transition(run: CommandBufferRun, pending: OpenDependency) -> None:
    """A layout transition reads and writes its whole range between the two scopes of its dependency.

    All that is available is visible to it, and what it writes is available. The same holds for both halves of a queue
    family ownership transfer. The transition of a transfer is given in both halves.

    ALL_COMMANDS holds transitions and transfers, too: they come after every earlier second scope with it, and every
    later first scope with it holds them. Specification: "Image Layout Transitions", "Queue Family Ownership Transfer".
    Rules: rules.md#a-transition-is-a-write, rules.md#accesses-wait-for-the-transition,
    rules.md#a-semaphore-orders-the-halves-of-a-transfer, rules.md#a-transition-chains-on.
    """
    ranged = pending.ranged
    if ranged is None or not (ranged.transition or pending.transfers):
        return
    order = run.program.order
    access_kind, stage, what = LAYOUT_TRANSITION, TRANSITION_STAGE, "layout transition"
    if pending.transfers:
        access_kind = access_kind if ranged.transition else TRANSFER
        stage, what = TRANSFER_OF_OWNERSHIP, pending.transfers
    node = order.add(
        Node(TRANSITION, f"{what} by {run.command.name} ({run.command.call})", run.place, stage),
        (order.set_of(pending.source), "a transition is after the first scope"),
        (pending.scope.before(stage), IN_ALL_COMMANDS),
    )
    pending.between = order.set_of(node)
    run.stream.issue(stage, pending.between)
    access = Access(access_kind, ranged.space, ranged.spans, ranged.resource, aliases=ranged.aliases)
    run.program.access(access, node, run.place, run.stream.id, run.execution, automatic=True)
    if not pending.transfers:
        run.own(access, ACCESS_KINDS[access_kind].name, node, ranged.old_layout != VkImageLayout.UNDEFINED)
        return
    use = ModelAccess(run.place, ACCESS_KINDS[TRANSFER].name, True, node)
    ownership = run.program.ownership
    transfer = ownership.release if pending.transfers == RELEASE else ownership.acquire
    run.program.lose(transfer(ranged, run.family, use), use, ranged.resource)


def part_of(run: CommandBufferRun, ranged: RangeBarrier | None) -> str:
    """The half of a queue family ownership transfer that a barrier is on this queue, empty for none.

    It is a release where the family gives, and an acquire where it takes.
    """
    if ranged is None or ranged.src_family == ranged.dst_family or run.family == VK_QUEUE_FAMILY_IGNORED:
        return ""
    if ranged.src_family in (run.family, VK_QUEUE_FAMILY_IGNORED):
        return RELEASE
    return ACQUIRE if ranged.dst_family in (run.family, VK_QUEUE_FAMILY_IGNORED) else ""


def is_between_framebuffer_stages(dependency: Dependency, flags: int) -> bool:
    """Whether both masks name framebuffer-space stages and nothing else: "A dependency with non-framebuffer-space
    pipeline stages is neither framebuffer-global nor framebuffer-local", and one from or to no stage is between none.

    The ends of the pipe that stand for all commands are not of the framebuffer. The others name nothing.
    Specification: "Framebuffer Region Dependencies". Rule: rules.md#by-region-dependencies-order-attachments.
    """
    sides = (
        concrete(dependency.src_stages, flags) | dependency.src_stages & BOTTOM,
        concrete(dependency.dst_stages, flags) | dependency.dst_stages & TOP,
    )
    return all(named and not named & ~FRAMEBUFFER_SPACE for named in sides)


def close_scope(run: CommandBufferRun, pending: OpenDependency, *streams: CommandStream) -> list[MemoryOperation]:
    """The second scope: operations in its stages, or logically later ones, begin after the dependency. What it makes
    visible.

    Available writes are made visible to the second access scope here. The execution dependency always concerns all
    memory, while availability and visibility may be limited to a range. With BY_REGION, a dependency between
    framebuffer-space stages holds only within each region of the framebuffer. The release of an ownership transfer
    makes nothing visible, and has no second scope unless its stages are to count. An acquire whose stages do not count
    is from no stage, and holds everywhere.

    The dependency is itself an operation of a command: it comes after earlier second scopes with ALL_COMMANDS.
    Specification: "Execution and Memory Dependencies", "Framebuffer Region Dependencies", "Queue Family Ownership
    Transfer".
    Rules: rules.md#the-halves-of-a-transfer-have-no-stage, rules.md#all-commands-is-everything,
    rules.md#by-region-dependencies-order-attachments, rules.md#view-local-dependencies-order-views.
    """
    whole = not pending.transfers or (pending.ranged is not None and pending.ranged.all_stages)
    if pending.transfers == RELEASE and not whole:
        return []
    order, flags, dependency = run.program.order, run.queue_flags, pending.dependency
    by_region = pending.scope.by_region and is_between_framebuffer_stages(dependency, flags)
    local = whole and (pending.scope.by_view or by_region)
    stages = second_scope(dependency.dst_stages, flags)
    between = order.set_of(pending.source) | pending.between | pending.scope.waited
    label = f"{run.command.name} ({run.command.call}) to {names.stages(dependency.dst_stages)}"
    target = order.add(
        Node(DST, label, run.place, stages),
        (between, BY_REGION if local else "from the first scope to the second"),
        (pending.through, BY_REGION if local else THROUGH),
        (pending.earlier, IN_ALL_COMMANDS),
    )
    released, made = pending.transfers == RELEASE, list[MemoryOperation]()
    invalidates = 0 if released else access_scope(dependency.dst_stages, dependency.dst_accesses, flags)
    for space, spans in reach_of(pending.ranged):
        made.append(MemoryOperation(target, invalidates=invalidates, space=space, spans=spans))
        run.program.memory.add(made[-1])
    for stream in streams:
        stream.reach(stages, order.set_of(target))
        stream.issue(SYNCHRONIZATION, order.set_of(target))  # whatever the stages: ALL_COMMANDS has it
    return made
