"""Conditions about render pass instances, subpasses and secondary command buffers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

from vkharness.commands.rendering.render_pass_plan import READ_ONLY, READ_ONLY_STENCIL, subpasses_of
from vkharness.findings import Finding, Hazard
from vkharness.layer.barrier_scopes import barrier_scopes
from vkharness.layer.chains import GRAPHICS, GRAPHICS_FIRST, GRAPHICS_SECOND, candidates, is_led, local_dependencies
from vkharness.layer.conditions import QUEUE_FLAGS, condition, is_about, stages_after
from vkharness.layer.order_conditions import is_in_conflict
from vkharness.layer.parse import plain_command
from vkharness.layer.stream import Stream, is_sync_operation
from vkharness.layer.subject import OURS, Subject, dependencies_of
from vkharness.layer.touches import TRANSITION, Touch, common
from vkharness.layer.view_conditions import seen_as
from vkharness.spans import Span
from vkharness.spec.command_classes import is_submit
from vkharness.spec.scopes import (
    ACCESS_KIND,
    ACCESS_KINDS,
    WHOLE_FIRST,
    WHOLE_SECOND,
    execution_scope_dst,
    execution_scope_src,
)
from vkharness.trace.attachment_operations import AttachmentOperation
from vkharness.trace.calls import Call
from vkharness.trace.effects import EXTERNAL, Access, Barrier, Dependency, PassBegin, PassEnd, SubpassBegin
from vkharness.trace.view_pairs import ViewPairs

BEGINS, NEXT, ENDS = "vkCmdBeginRenderPass", "vkCmdNextSubpass", "vkCmdEndRender"
BEGAN = (BEGINS, "vkCmdBeginRendering")

INPUT_READ = "SYNC_FRAGMENT_SHADER_INPUT_ATTACHMENT_READ"


@condition
def in_one_instance(subject: Subject) -> bool:
    """Both accesses are in one render pass instance."""
    own, first = subject.command, subject.first
    if own is None or first is None or first.index > own.index:
        return False
    commands = subject.stream.recorded(own.args["commandBuffer"], own.index)
    return not any(call.name.startswith(ENDS) for call in commands if call.index >= first.index)


@condition
def unled_in_one_instance(subject: Subject) -> bool:
    """Both accesses are in one render pass instance, and no dependencies lead from one to the other."""
    return in_one_instance(subject) and not _is_led_at_all(subject)


def _is_unled(subject: Subject, finding: Finding) -> bool:
    """Whether no dependencies lead from our first access to the second, or the second judge has them in conflict."""
    led = (is_led(subject, steps, at, mine, passes=True, surely=True) for steps, at, mine in candidates(subject))
    return not any(led) or is_in_conflict(finding, subject.stream)


@condition
def in_two_subpasses(subject: Subject) -> bool:
    """Our two accesses are made by rendering, in two subpasses or two render pass instances of one queue. No
    dependencies lead from one to the other. In one instance, the first is no load and the second no store operation."""
    finding, first, own = subject.finding, subject.first, subject.command
    if finding is None or first is None or own is None or finding.place.queue != finding.prior.queue:
        return False
    if not _is_unled(subject, finding):
        return False
    here, before = finding.place, finding.prior
    if (here.submit, here.batch, here.position) != (before.submit, before.batch, before.position):
        return True
    if not in_one_instance(subject):
        return True
    between = [call for call in (first, *subject.window, own) if call.name.startswith(NEXT)]
    return bool(between) and not _comes_first_or_last(subject.stream, finding, first, own)


@condition
def found_after_a_read_in_order(subject: Subject) -> bool:
    """We found that this command writes what the layer names after an attachment access in another subpass, before the
    read that the layer names."""
    message, stream = subject.message, subject.stream
    image = stream.viewed(message.resource) if message is not None else 0
    for steps, at, _ in candidates(subject):
        for found in subject.all_findings:
            own = steps[-1]
            place = (found.place.submit, found.place.batch, found.place.position)
            same = (found.place.call, found.hazard, found.access) == (own.call.index, subject.key[0], subject.key[3])
            if not same or own.place not in (None, place) or image not in (0, found.resource):
                continue
            alone = replace(subject, side=OURS, finding=found, message=None)
            earlier = any(step.call.index == found.prior.call for step in steps[:at])
            if earlier and "_ATTACHMENT_" in found.prior_access and in_two_subpasses(alone):
                return True
    return False


@condition
def read_and_written(subject: Subject) -> bool:
    """The first command writes the attachment that it reads, and no dependencies lead from it to the second access."""
    finding, first = subject.finding, subject.first
    if finding is None or first is None:
        return False
    if not _is_unled(subject, finding):
        return False
    touches = [each for each in subject.stream.touches(first) if each.resource == finding.resource]
    return any(each.write and "_ATTACHMENT_" in each.access for each in touches)


@condition
def found_after_an_own_read(subject: Subject) -> bool:
    """We found that the second access writes after what the first command reads as an input attachment of the image."""
    message, stream = subject.message, subject.stream
    image = stream.viewed(message.resource) if message is not None else 0
    return any(
        (each.hazard, each.access, each.prior_access) == (Hazard.WRITE_AFTER_READ, subject.key[3], INPUT_READ)
        and (plain_command(each.place.command), plain_command(each.prior.command)) == subject.key[1:3]
        and image in (0, each.resource)
        and (message is None or message.seq_no in (None, *stream.numbers_of(each.prior.call)))
        for each in subject.findings
    )


def _comes_first_or_last(stream: Stream, finding: Finding, first: Call, own: Call) -> bool:
    """Whether the first access can only be that of a load operation, or the second one only that of a store."""
    known = ((first, finding.prior_access, AttachmentOperation.LOAD), (own, finding.access, AttachmentOperation.STORE))
    return any(
        _operates(stream, call, operation, access, finding.resource)
        and not any(
            _operates(stream, call, other, access, finding.resource)
            for other in AttachmentOperation
            if other != operation
        )
        for call, access, operation in known
    )


@condition
def ordered_in_its_instance(subject: Subject) -> bool:
    """In one render pass instance, the second access belongs to a store operation, or the first one to a load
    operation, of the image that the layer names. Of a command of a secondary the layer does not say which one it is."""
    image = subject.stream.viewed(subject.message.resource) if subject.message is not None else 0
    own = subject.command
    seconds = subject.seconds if own is None else [(own, subject.before)]
    return bool(seconds) and all(_is_ordered(subject, second, before, image) for second, before in seconds)


def _is_ordered(subject: Subject, second: Call, before: Sequence[Call], image: int) -> bool:
    stream = subject.stream
    if _operates(stream, second, AttachmentOperation.STORE, subject.key[3], image):
        return True
    begun = [at for at, call in enumerate(before) if call.name.startswith(BEGAN)]
    inside = before[begun[-1] :] if begun else []
    named = [call for call in inside if plain_command(call.name) == subject.key[2]]
    return any(_operates(stream, call, AttachmentOperation.LOAD, subject.key[4], image) for call in named)


def _operates(stream: Stream, call: Call, operation: AttachmentOperation, access: str, image: int) -> bool:
    """Whether a command makes such an access for an operation of the image (0: of any)."""
    return any(
        isinstance(each, Access)
        and each.operation == operation
        and ACCESS_KINDS[each.access_kind].name == access
        and image in (0, each.resource)
        for each in stream.facts(call).effects
    )


@condition
def loaded_before(subject: Subject) -> bool:
    """A load operation of its render pass instance read what a resolve reads, and we found that it reads what the first
    access wrote; or what an input attachment reads, and no command so called as the first one came since."""
    return any(_is_loaded(subject, second, before) for second, before in subject.seconds)


def _is_loaded(subject: Subject, second: Call, before: Sequence[Call]) -> bool:
    stream, message = subject.stream, subject.message
    begun = max((at for at, call in enumerate(before) if call.name.startswith(BEGAN)), default=None)
    if begun is None or message is None:
        return False
    image, access, inside = stream.viewed(message.resource), subject.key[3], before[begun:]
    if "_INPUT_ATTACHMENT_" in access:
        loads = (each for call in inside for each in stream.facts(call).effects if isinstance(each, Access))
        loaded = any(each.operation == AttachmentOperation.LOAD and image in (0, each.resource) for each in loads)
        return loaded and not any(plain_command(call.name) == subject.key[2] for call in inside)
    if not _operates(stream, second, AttachmentOperation.RESOLVE_READ, access, image):
        return False
    found = (each for each in subject.all_findings if each.hazard == Hazard.READ_AFTER_WRITE)
    return any(
        (each.access, each.prior_access) == subject.key[3:]
        and image in (0, each.resource)
        and any(each.place.call == call.index for call in inside)
        and (message.seq_no in (None, *stream.numbers_of(each.prior.call)) or _is_stored_by_none(subject, each))
        for each in found
    )


def _is_stored_by_none(subject: Subject, finding: Finding) -> bool:
    """Whether the first access of another finding of ours is that of a store operation NONE, and the layer names what
    was written before it."""
    alone = replace(subject, side=OURS, call=finding.place.call, finding=finding, message=None)
    return seen_as(alone, "nothing_stored_by_none")


@condition
def resolved_before_it_is_stored(subject: Subject) -> bool:
    """The second command resolves the image that the layer names before it stores it: what the resolve reads is held
    against the first access."""
    own, message, stream = subject.command, subject.message, subject.stream
    if own is None or message is None:
        return False
    image = stream.viewed(message.resource)
    resolved = {
        each.resource
        for each in stream.facts(own).effects
        if isinstance(each, Access) and each.operation is AttachmentOperation.RESOLVE_READ
    }
    return any(
        image in (0, each) and _operates(stream, own, AttachmentOperation.STORE, subject.key[3], each)
        for each in resolved
    )


@condition
def raster_ordered(subject: Subject) -> bool:
    """The second access is made by a pipeline with rasterization order attachment access."""
    image = subject.stream.viewed(subject.message.resource) if subject.message is not None else 0
    return any(
        _operates(subject.stream, second, AttachmentOperation.RASTER_ORDERED, subject.key[3], image)
        for second, _ in subject.seconds
    )


@condition
def moved_between_read_only_layouts(subject: Subject) -> bool:
    """One of the two accesses is a transition at a next subpass, in a render pass of which two subpasses use the image
    that the layer names in different read-only layouts."""
    stream = subject.stream
    image = stream.viewed(subject.message.resource) if subject.message is not None else 0
    which = 1 if subject.key[3] == TRANSITION else 2
    if not subject.key[which].startswith(NEXT):
        return False
    begun = [call for second, before in subject.seconds for call in (*before, second) if call.name.startswith(BEGINS)]
    return any(image in (0, moved) for call in begun for moved in _moved_read_only(stream, call))


def _moved_read_only(stream: Stream, begin: Call) -> Iterator[int]:
    """The images that two subpasses use in different read-only layouts."""
    info = begin.args["pRenderPassBegin"]
    made = {call.args.get("pRenderPass"): call for call in stream.calls if call.name.startswith("vkCreateRenderPass")}
    frames = {call.args["pFramebuffer"]: call for call in stream.calls if call.name == "vkCreateFramebuffer"}
    if info["renderPass"] not in made or info["framebuffer"] not in frames:
        return
    views = frames[info["framebuffer"]].args["pCreateInfo"]["pAttachments"] or ()
    layouts: dict[int, set[int]] = {}
    for subpass in subpasses_of(made[info["renderPass"]].args["pCreateInfo"]):
        for each in subpass.references:
            layouts.setdefault(each.attachment, set()).update(
                layout for layout in (each.layout, each.stencil_layout) if layout in READ_ONLY | READ_ONLY_STENCIL
            )
    yield from (stream.viewed(views[at]) for at, several in layouts.items() if len(several) > 1 and at < len(views))


@condition
def moved_once_for_several(subject: Subject) -> bool:
    """The second command is in a subpass that enters the layout of an earlier subpass' transition of the image that the
    layer names, or ends that render pass instance, and the first access is made in the same instance. One of the two
    accesses is such a transition, or no dependency leads into the second subpass."""
    stream = subject.stream
    found, message = subject.finding, subject.message
    image = stream.viewed(message.resource) if message is not None else found.resource if found is not None else 0
    for steps in subject.occurrences:
        second = steps[-1].call
        begun = max((at for at, step in enumerate(steps[:-1]) if step.call.name.startswith(BEGINS)), default=None)
        if begun is None or not any(map(subject.may_be_first, steps[begun:])):
            continue
        inside = [step.call for step in steps[begun:]]
        now = sum(call.name.startswith(NEXT) for call in inside)
        known = TRANSITION in subject.key[3:] or all(each.dst != now for each in dependencies_of(inside[0], stream))
        entered = [each for call in inside for each in stream.facts(call).effects if isinstance(each, SubpassBegin)]
        moved = [each for effect in entered for each in effect.transitions if image in (0, each.resource)]
        if known and any(now in each.later or (each.later and second.name.startswith(ENDS)) for each in moved):
            return True
    return False


@condition
def told_of_a_later_move(subject: Subject) -> bool:
    """Our first access is a transition into a layout that later subpasses enter, too. The layer says the same of
    another command that enters one."""
    numbers = subject.stream.numbers_of(subject.first.index) if subject.first is not None else set()
    return moved_once_for_several(subject) and any(
        (each.hazard, each.access, each.prior_access) == (subject.key[0], *subject.key[3:])
        and each.seq_no not in (None, *numbers)
        and is_about(each, subject)
        for each in subject.messages
    )


@condition
def moved_without_a_dependency(subject: Subject) -> bool:
    """The second command is in a subpass that moves the image that the layer names out of the layout of earlier
    subpasses, and no dependency leads from any of these into it. The first access is made in the same instance."""
    stream = subject.stream
    image = stream.viewed(subject.message.resource) if subject.message is not None else 0
    for steps in subject.occurrences:
        begun = max((at for at, step in enumerate(steps[:-1]) if step.call.name.startswith(BEGINS)), default=None)
        if begun is None or not any(map(subject.may_be_first, steps[begun:])):
            continue
        inside = [step.call for step in steps[begun:]]
        now = sum(call.name.startswith(NEXT) for call in inside)
        led = {each.src for each in dependencies_of(inside[0], stream) if each.dst == now}
        entered = [each for call in inside for each in stream.facts(call).effects if isinstance(each, SubpassBegin)]
        moved = [each for effect in entered if effect.index == now for each in effect.transitions]
        if any(image in (0, each.resource) and each.leaves and not led & set(each.leaves) for each in moved):
            return True
    return False


@condition
def ordered_by_region_alone(subject: Subject) -> bool:
    """A by-region or view-local dependency between the two, of a render pass or a barrier, has the stage of the first
    access in its first scope and that of the second one in its second scope. The first access may be the transition of
    the barrier."""
    own, stream = subject.command, subject.stream
    stages = [ACCESS_KIND[name].stage for name in subject.key[3:] if name in ACCESS_KIND]
    if own is None or len(stages) < 2:
        return False
    for call in subject.before:
        for effect in stream.facts(call).effects:
            moves = isinstance(effect, Barrier) and any(each.transition for each in effect.ranges)
            own_access = ACCESS_KIND[TRANSITION].stage if moves else 0
            for each in local_dependencies(effect):
                source = execution_scope_src(each.src_stages, QUEUE_FLAGS) | own_access
                if source & stages[1] and execution_scope_dst(each.dst_stages, QUEUE_FLAGS) & stages[0]:
                    return True
    return False


@condition
def depends_on_another_view(subject: Subject) -> bool:
    """A view-local dependency of the render pass with the stages of both accesses is between no views of both of its
    subpasses."""
    stages = [ACCESS_KIND[name].stage for name in subject.key[3:] if name in ACCESS_KIND]
    effects = (effect for call in subject.before for effect in subject.stream.facts(call).effects)
    several = [each for effect in effects if isinstance(effect, PassBegin) for each in effect.dependencies]
    return len(stages) == 2 and any(
        execution_scope_src(each.dependency.src_stages, QUEUE_FLAGS) & stages[1]
        and execution_scope_dst(each.dependency.dst_stages, QUEUE_FLAGS) & stages[0]
        for each in several
        if each.views is not None
        and not any(each.views.src >> at + each.views.offset & 1 for at in _views_of(each.views))
    )


def _views_of(views: ViewPairs) -> Iterator[int]:
    """The views of the destination with which one of the source may have to do."""
    return (at for at in range(32) if views.dst >> at & 1 and 0 <= at + views.offset < 32)


# --- subpasses -------------------------------------------------------------------------------------------------------


@condition
def ordered_by_all_commands_of_a_pass(subject: Subject) -> bool:
    """A subpass dependency from or to what is outside leads from the first access to the second one, and has
    ALL_COMMANDS on its outer side, where the access, or a barrier that hands it on, has none of the graphics stages."""
    if subject.position < 0 or subject.command is None:
        return False
    calls = [*subject.before, subject.command]
    begun: Call | None = None
    at = 0
    for position, call in enumerate(calls):
        if call.name.startswith(BEGINS):
            begun, at = call, position
        if begun is None or position < subject.position:
            continue
        given = dependencies_of(begun, subject.stream)
        if at > subject.position and any(
            each.src == EXTERNAL and _comes_from_elsewhere(subject, each.dependency, calls[subject.position + 1 : at])
            for each in given
        ):
            return True
        if call.name.startswith("vkCmdEndRenderPass"):
            if any(
                each.dst == EXTERNAL and _goes_elsewhere(subject, each.dependency, calls[position + 1 :])
                for each in given
            ):
                return True
            begun = None
    return False


def _comes_from_elsewhere(subject: Subject, given: Dependency, between: Sequence[Call]) -> bool:
    """Whether ALL_COMMANDS before a pass holds the first access, or what comes after it, and ALL_GRAPHICS would not."""
    stage, mine = _stage(subject.key[4]), _stage(subject.key[3])
    if not given.src_stages & WHOLE_FIRST or (mine and not execution_scope_dst(given.dst_stages, QUEUE_FLAGS) & mine):
        return False
    return not stage & GRAPHICS_FIRST or bool(stages_after(stage, between) & ~GRAPHICS_FIRST)


def _goes_elsewhere(subject: Subject, given: Dependency, after: Sequence[Call]) -> bool:
    """Whether ALL_COMMANDS after a pass holds the second access, which may be a transition, or what comes before it;
    ALL_GRAPHICS would not."""
    stage, mine = _stage(subject.key[4]), _stage(subject.key[3])
    if not given.dst_stages & WHOLE_SECOND or (
        stage and not execution_scope_src(given.src_stages, QUEUE_FLAGS) & stage
    ):
        return False
    chained = (execution_scope_src(each.src_stages, QUEUE_FLAGS) for call in after for each in barrier_scopes(call))
    held = bool(mine and not mine & GRAPHICS) or (subject.key[3] == TRANSITION and not _is_led_at_all(subject))
    return held or any(not each & GRAPHICS_SECOND for each in chained)


def _is_led_at_all(subject: Subject) -> bool:
    return any(is_led(subject, steps, at, mine, passes=True) for steps, at, mine in candidates(subject))


def _stage(access: str) -> int:
    """The stage of an access; 0 for a layout transition."""
    return ACCESS_KIND[access].stage if access in ACCESS_KIND and access != TRANSITION else 0


@condition
def moved_beside_an_alias(subject: Subject) -> bool:
    """Our second access is the transition of an attachment away from its initial layout, behind a use of another one
    on the same memory. Our first access is made in the same instance."""
    finding, own = subject.finding, subject.command
    if finding is None or own is None or not in_one_instance(subject):
        return False
    effects = subject.stream.facts(own).effects
    moved = (each for one in effects if isinstance(one, SubpassBegin | PassEnd) for each in one.transitions)
    return any(each.resource == finding.resource and EXTERNAL in each.leaves for each in moved)


def lost_pieces(calls: Sequence[Call], stream: Stream) -> Iterator[tuple[int, Call, Touch]]:
    """Accesses in subpasses of which only the first piece is kept, with the rest: (position at which the subpass is
    entered, command, the rest). Loads come with the command that enters."""
    entered: int | None = None
    touched: list[Touch] = []
    waiting: list[Touch] = []
    cuts: dict[int, set[int]] = {}
    _cut(cuts, [touch for touches in stream.earlier for touch in touches])
    for position, call in enumerate(calls):
        for enters, several in enumerate(_around_entry(call, stream)):
            if enters and call.name.startswith((BEGINS, NEXT)):
                _cut(cuts, waiting)
                entered, touched = position, []
            for touch in several:
                rest = tuple(_rest(touch, cuts.get(touch.space, set())))
                if entered is not None and touch.access != TRANSITION and rest and not common([touch], touched):
                    yield entered, call, replace(touch, spans=rest)
                touched.append(touch)
                waiting.append(touch)
        if call.name.startswith("vkCmdEndRenderPass"):
            entered = None
        if entered is None:
            _cut(cuts, waiting)


def _around_entry(call: Call, stream: Stream) -> tuple[list[Touch], list[Touch]]:
    """Gives the accesses of a command in two parts: those that resolve and store the subpass which it leaves, and the
    others."""
    left: set[tuple[int, str]] = set()
    effects = stream.facts(call).effects if call.name.startswith(NEXT) else ()
    for effect in takewhile(lambda each: not isinstance(each, SubpassBegin), effects):
        if isinstance(effect, Access):
            left.add((effect.space, ACCESS_KINDS[effect.access_kind].name))
    touches = stream.touches(call)
    ends = [touch for touch in touches if (touch.space, touch.access) in left]
    return ends, [touch for touch in touches if touch not in ends]


def _cut(cuts: dict[int, set[int]], touches: list[Touch]) -> None:
    for touch in touches:
        cuts.setdefault(touch.space, set()).update(end for span in touch.spans for end in span)
    touches.clear()


def _rest(touch: Touch, cuts: set[int]) -> Iterator[Span]:
    for begin, end in touch.spans:
        inside = [cut for cut in cuts if begin < cut < end]
        if inside:
            yield min(inside), end


# --- secondary command buffers ---------------------------------------------------------------------------------------


@condition
def barrier_in_secondary(subject: Subject) -> bool:
    """At a submit: a primary of it executes a secondary that holds a synchronization command."""
    submit, stream = subject.stream.at(subject.call), subject.stream
    if submit is None or not is_submit(submit.name):
        return False
    return any(
        is_sync_operation(command) and command.args["commandBuffer"] != primary
        for batch in stream.executed(submit)
        for primary in batch
        for command in stream.recorded(primary, submit.index)
    )
