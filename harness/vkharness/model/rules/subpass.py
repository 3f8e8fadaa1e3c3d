"""Render pass instances: subpasses, the dependencies between them, and automatic layout transitions.

Each subpass has a command stream of its own, since commands of different subpasses are in no submission order
("Implicit Synchronization Guarantees"). Barriers inside a subpass have scopes inside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vkharness.model.command_buffer_run import CommandBufferRun, InstanceStreams
from vkharness.model.command_streams import CommandStream, StageSets
from vkharness.model.node_numbers import NodeNumbers
from vkharness.model.order import IN_ALL_COMMANDS, MEETING, NOTHING, TRANSITION, Node, NodeSet
from vkharness.model.past_access import LAYOUT_TRANSITION
from vkharness.model.rules.barrier import FirstScope, OpenDependency, around, close_scope, open_scope
from vkharness.model.stages import ACCESS_KINDS, BOTTOM, EVERY_STAGE, TOP, indices
from vkharness.model.stages import TRANSITION as TRANSITION_STAGE
from vkharness.spec.enums import VkImageLayout, VkPipelineStage2
from vkharness.trace.effects import (
    EXTERNAL,
    Access,
    AttachmentUsers,
    AutomaticTransition,
    Dependency,
    PassBegin,
    PassEnd,
    RenderingBegin,
    SubpassBegin,
    SubpassDependency,
)
from vkharness.trace.view_pairs import ViewPairs

OpenedDependency = tuple[SubpassDependency, OpenDependency]


def rendering_begin(run: CommandBufferRun, effect: RenderingBegin) -> None:
    """An instance of dynamic rendering begins. Rasterization order ends with the instance ("vkCmdEndRendering")."""
    run.stream.instance = next(run.program.numbers)


def pass_begin(run: CommandBufferRun, effect: PassBegin) -> None:
    """A render pass instance begins. VK_SUBPASS_EXTERNAL in its dependencies stands for the commands before it."""
    run.instance = InstanceStreams(run.stream, effect.dependencies, next(run.program.numbers))


def subpass_begin(run: CommandBufferRun, effect: SubpassBegin) -> None:
    """A dependency into a subpass has the commands of that subpass in its second scope.

    Its first scope holds the commands of the source subpass, or what came before the render pass instance. Automatic
    transitions into the subpass come before the second scopes of all of them. A self-dependency orders nothing.
    Specification: "VkSubpassDependency", "Automatic Layout Transitions" ("Render Pass Creation").
    Rules: rules.md#subpasses-without-a-path-race, rules.md#dependencies-meet-at-a-transition,
    rules.md#a-subpass-dependency-orders-two-subpasses, rules.md#external-dependencies-order-what-is-outside.
    """
    instance = run.instance
    if instance is None:
        return
    stream = instance.outer.inner(next(run.program.numbers))
    instance.subpasses[effect.index] = stream
    run.stream, instance.current = stream, effect.index
    into = _open(run, instance, [each for each in instance.dependencies if each.dst == effect.index])
    for change, node, at in instance.entered:
        if effect.index in change.later:
            _show(run, change, node, at, into)
    for change in effect.transitions:
        _transition(run, instance, change, effect.index, into, into)
    for _, pending in into:
        close_scope(run, pending, stream, *around(run, instance))


def attachment_users(run: CommandBufferRun, effect: AttachmentUsers) -> None:
    """Load, store and resolve operations are in the scopes of dependencies of every subpass that uses the attachment.

    They come after the dependencies into these subpasses, and what comes after a dependency from one of these comes
    after them. A dependency from the subpass in which they are performed, or from a later one, is not before them:
    loads come first. Dependencies chain through such an operation in its own stage. Specification:
    "VkSubpassDependency". Rule: rules.md#operations-are-in-the-scopes-of-all-who-use-the-attachment.
    """
    instance = run.instance
    if instance is None:
        return
    own = run.stream = instance.subpasses[instance.current]
    if not effect.subpasses:
        return
    stream = CommandStream(next(run.program.numbers), StageSets(own.reached))
    others = set(effect.subpasses) - {instance.current}
    into = _open(run, instance, [e for e in instance.dependencies if e.dst in others and e.src < instance.current])
    for change, node, at in instance.entered:
        _show(run, change, node, at, [each for each in into if each[0].dst == at or each[0].dst in change.later])
    for _, pending in into:
        close_scope(run, pending, stream)
    stream.issued.clear()
    instance.operations.append((effect.subpasses, stream))
    run.stream = stream


def pass_end(run: CommandBufferRun, effect: PassEnd) -> None:
    """A dependency from a subpass to VK_SUBPASS_EXTERNAL has the commands after the instance in its second scope.

    The transition to the final layout comes before the second scopes of those of them whose subpass uses the
    attachment. The operations of all subpasses are earlier than the commands that follow. Specification:
    "VkSubpassDependency", "Automatic Layout Transitions".
    Rules: rules.md#final-transitions-wait-for-the-store, rules.md#external-dependencies-order-what-is-outside.
    """
    instance, run.instance = run.instance, None
    if instance is None:
        return
    outer = run.stream = instance.outer
    moved = effect.transitions
    asked = [e for e in instance.dependencies if e.dst == EXTERNAL or any(_is_before(e, change) for change in moved)]
    opened = _open(run, instance, asked)
    out = [(each, pending) for each, pending in opened if each.dst == EXTERNAL]
    for stream in (*instance.subpasses.values(), *(each for _, each in instance.operations)):
        outer.leave(stream)
    for change in moved:
        shown_by = [each for each in out if each[0].src in change.users]
        _transition(run, instance, change, EXTERNAL, opened, shown_by)
    for _, pending in out:
        close_scope(run, pending, outer)
    for _, node, _ in instance.entered:
        outer.issue(TRANSITION_STAGE, run.program.order.set_of(node))


def _open(
    run: CommandBufferRun, instance: InstanceStreams, dependencies: Iterable[SubpassDependency]
) -> list[OpenedDependency]:
    """Takes first scopes of dependencies: in the source subpass, or in what came before the render pass instance."""
    opened = []
    for each in dependencies:
        source: CommandStream | None = instance.outer if each.src == EXTERNAL else instance.subpasses.get(each.src)
        pairs = _pairs_of(each.views) if each.views is not None else set[tuple[int, int]]()
        if each.views is not None and not pairs:
            continue
        if source is not None and each.src != each.dst:
            operations = (stream for users, stream in instance.operations if each.src in users)
            streams = tuple(((one, EVERY_STAGE),) for one in (source, *operations, *around(run, instance)))
            several = each.views is not None and len(pairs) < each.views.src.bit_count() * each.views.dst.bit_count()
            scope = FirstScope(streams, by_region=each.by_region, by_view=several)
            given = _of_graphics(each.dependency)
            opened.append((each, open_scope(run, given, scope, "first scope of a subpass dependency")))
    return opened


def _pairs_of(views: ViewPairs) -> set[tuple[int, int]]:
    """The views of both subpasses that a view-local dependency orders: "each view in the destination subpass depends on
    a single view in the source subpass", or on none. It is between all views only where each subpass has one.

    Specification: "VkRenderPassMultiviewCreateInfo". Rule: rules.md#view-local-dependencies-order-views.
    """
    sources = set(indices(views.src))
    return {(at + views.offset, at) for at in indices(views.dst) if at + views.offset in sources}


def _of_graphics(given: Dependency) -> Dependency:
    """A subpass dependency with ALL_GRAPHICS in place of ALL_COMMANDS, and of what is equivalent to that.

    Specification: "VkSubpassDependency" (srcStageMask, dstStageMask).
    Rule: rules.md#all-commands-between-subpasses-is-all-graphics.
    """
    src, dst = given.src_stages, given.dst_stages
    if src & (VkPipelineStage2.ALL_COMMANDS | BOTTOM):
        src = src & ~(VkPipelineStage2.ALL_COMMANDS | BOTTOM) | VkPipelineStage2.ALL_GRAPHICS
    if dst & (VkPipelineStage2.ALL_COMMANDS | TOP):
        dst = dst & ~(VkPipelineStage2.ALL_COMMANDS | TOP) | VkPipelineStage2.ALL_GRAPHICS
    return given._replace(src_stages=src, dst_stages=dst)


def _transition(
    run: CommandBufferRun,
    instance: InstanceStreams,
    change: AutomaticTransition,
    into: int,
    opened: Sequence[OpenedDependency],
    shown_by: Sequence[OpenedDependency],
) -> None:
    """An automatic transition comes after what the dependencies from the subpasses that it leaves make available,
    whatever subpass they lead to, and before what those in `shown_by` make visible.

    Away from initialLayout it comes after the dependencies from outside into subpasses that use the attachment. Without
    a dependency nothing orders it. Specification: "Automatic Layout Transitions" ("Render Pass Creation").
    Rules: rules.md#dependencies-meet-at-a-transition, rules.md#initial-transitions-wait-for-earlier-accesses.
    """
    order, stream = run.program.order, run.stream
    known = {id(each): pending for each, pending in opened}
    first = [each for each in instance.dependencies if _is_before(each, change)]
    first = run.program.rules.met(first, change, into, False)
    known |= {id(each): pending for each, pending in _open(run, instance, [e for e in first if id(e) not in known])}
    sources = _union_of(run, [known[id(each)].source for each in first if id(each) in known])
    label = f"layout transition by {run.command.name} ({run.command.call})"
    node = order.add(
        Node(TRANSITION, label, run.place, TRANSITION_STAGE),
        (sources, MEETING),
        (stream.before(TRANSITION_STAGE), IN_ALL_COMMANDS),
    )
    access = Access(LAYOUT_TRANSITION, change.space, change.spans, change.resource, aliases=change.aliases)
    where, number = (run.place, stream.id, run.execution), instance.number
    run.program.access(access, node, *where, automatic=True, instance=number)
    run.own(access, ACCESS_KINDS[LAYOUT_TRANSITION].name, node, change.old_layout != VkImageLayout.UNDEFINED)
    instance.entered.append((change, node, instance.current))
    _show(run, change, node, into, shown_by)


def _show(
    run: CommandBufferRun, change: AutomaticTransition, node: int, into: int, shown_by: Sequence[OpenedDependency]
) -> None:
    """A transition comes before what these dependencies make visible."""
    alone = NodeNumbers.one(node)
    met = list(map(id, run.program.rules.met([each for each, _ in shown_by], change, into, True)))
    for pending in (pending for each, pending in shown_by if id(each) in met):
        pending.between |= NodeSet(alone, alone, alone)
        pending.through |= run.program.order.set_of(node)


def _is_before(each: SubpassDependency, change: AutomaticTransition) -> bool:
    """Whether a transition comes after what a dependency makes available.

    Rule: rules.md#aliased-attachments-share-their-users.
    """
    if each.src != EXTERNAL:
        return each.src in change.leaves
    leaves_initial_layout = not change.leaves or EXTERNAL in change.leaves
    return leaves_initial_layout and each.dst in change.users


def _union_of(run: CommandBufferRun, nodes: Iterable[int]) -> NodeSet:
    union = NOTHING
    for node in nodes:
        union |= run.program.order.set_of(node)
    return union
