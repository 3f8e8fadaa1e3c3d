"""Named predicates of `differences.toml`: is the stream such that this difference explains this disagreement?

Each takes the disagreement (`Subject`), the stream before it and the layer's version. A condition that needs the stream
is false when the stream is not known, so that an unexplained disagreement stays one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from harness.findings import Finding, Hazard, Place
from harness.layer.manifest import Version
from harness.layer.messages import RECORD, LayerMessage, plain_command
from harness.layer.ordering import ordered_by_another_resource
from harness.layer.stream import (
    LAYER,
    UNHOOKED_BEFORE,
    Scope,
    Step,
    Stream,
    Subject,
    Touch,
    common,
    scopes,
)
from harness.layer.tracked import lost_parts
from harness.spec.scopes import ALL_COMMANDS, MEMORY_WRITE, TOP_OF_PIPE

Condition = Callable[[Subject, Stream, Version], bool]

ALL_TRANSFER = 0x1000
COPY = 1 << 32
CLEAR = 1 << 35
SHADER_READ = 0x20

CONDITIONS: dict[str, Condition] = {}


def condition(function: Condition) -> Condition:
    """Registers a predicate under its own name, by which `differences.toml` refers to it."""
    CONDITIONS[function.__name__] = function
    return function


def scopes_between(subject: Subject, stream: Stream) -> list[Scope]:
    """Barriers between the two accesses; when the second one cannot be told, all of the stream before."""
    known = stream.command(subject)
    if known is None or "commandBuffer" not in known.args:
        return [scope for call in stream.calls if call.index < (subject.call or 0) for scope in scopes(call)]
    return [scope for call in stream.window(subject) for scope in scopes(call)]


# --- barriers --------------------------------------------------------------------------------------------------------


@condition
def copy_or_clear_named_alone(subject: Subject, stream: Stream, _: Version) -> bool:
    """Some barrier between the two names one of the stages COPY and CLEAR in a mask, and not the other: a fill is at
    COPY for the old layer and at CLEAR for us, and this barrier treats them differently."""

    def parts_them(stages: int) -> bool:
        both = COPY | CLEAR
        return stages & both not in (0, both) and not stages & (ALL_TRANSFER | ALL_COMMANDS)

    own = stream.command(subject)
    mine = list(scopes(own)) if own is not None else []
    return any(
        parts_them(scope.src_stages) or parts_them(scope.dst_stages) for scope in scopes_between(subject, stream) + mine
    )


@condition
def sync2_buffer_barrier_exec_dep(subject: Subject, stream: Stream, _: Version) -> bool:
    """Only a synchronization2 buffer or image barrier of another resource orders the two, or carries the write on to a
    barrier that covers it, or orders the second after an earlier read: the old layer takes its execution dependency
    for that resource alone."""
    own = stream.command(subject)
    return own is not None and ordered_by_another_resource(subject, stream, own, stream.window(subject))


@condition
def shader_read_before_uniform(subject: Subject, stream: Stream, _: Version) -> bool:
    """A barrier between the two makes SHADER_READ visible, which used to include UNIFORM_READ."""
    return any(scope.dst_accesses & SHADER_READ for scope in scopes_between(subject, stream))


# --- layout transitions ----------------------------------------------------------------------------------------------


@condition
def all_commands_after_transition(subject: Subject, stream: Stream, _: Version) -> bool:
    """After the transition came a barrier from ALL_COMMANDS: today it covers the transition's write."""
    return any(scope.src_stages & ALL_COMMANDS for scope in scopes_between(subject, stream))


@condition
def all_commands_without_memory_write(subject: Subject, stream: Stream, _: Version) -> bool:
    """After the transition came a barrier from ALL_COMMANDS whose first access scope lacks MEMORY_WRITE."""
    return any(
        scope.src_stages & ALL_COMMANDS and not scope.src_accesses & MEMORY_WRITE
        for scope in scopes_between(subject, stream)
    )


@condition
def transition_of_available_write(subject: Subject, stream: Stream, _: Version) -> bool:
    """The write was made available by a barrier before the one that transitions the layout."""
    own = stream.command(subject)
    here = own is not None and any(scope.transition for scope in scopes(own))
    return here and any(scope.src_accesses for scope in scopes_between(subject, stream))


@condition
def transition_after_top_of_pipe(subject: Subject, stream: Stream, _: Version) -> bool:
    """The transition's source is NONE, and a barrier before it has TOP_OF_PIPE (also as ALL_COMMANDS) as destination:
    today NONE chains with it."""
    own = stream.command(subject)
    none = own is not None and any(scope.transition and scope.src_stages == 0 for scope in scopes(own))
    return none and any(scope.dst_stages & (TOP_OF_PIPE | ALL_COMMANDS) for scope in scopes_between(subject, stream))


@condition
def several_barriers_with_transition(subject: Subject, stream: Stream, _: Version) -> bool:
    """One command carries a transition and at least one other barrier; the old layer lets the others of that command
    act on the transition itself."""
    own = stream.command(subject)
    first = stream.at(subject.finding.prior.call) if subject.finding is not None else None
    calls = [call for call in (first, *stream.window(subject), own) if call is not None]
    groups = [list(scopes(call)) for call in calls]
    return any(len(group) > 1 and any(scope.transition for scope in group) for group in groups)


@condition
def transition_beside_other_barriers(subject: Subject, stream: Stream, _: Version) -> bool:
    """The first access is a transition whose command carries another barrier too."""
    command = stream.at(subject.finding.prior.call) if subject.finding is not None else None
    group = list(scopes(command)) if command is not None else []
    return len(group) > 1 and any(scope.transition for scope in group)


# --- commands and shaders --------------------------------------------------------------------------------------------


@condition
def unhooked_command(subject: Subject, stream: Stream, version: Version) -> bool:
    """One of the two commands, or one before the second that touches what it touches, is passed over by this layer, so
    that for it the accesses of that command never happened."""
    unseen = tuple(name for name, since in UNHOOKED_BEFORE if version < since)
    own = stream.command(subject)
    if not unseen or own is None:
        return False
    if subject.key[1].startswith(unseen) or subject.key[2].startswith(unseen):
        return True
    touched = stream.touches(own)
    passed = (step.call for step in stream.steps(subject) if step.call.name.startswith(unseen))
    return any(common(stream.touches(call), touched) for call in passed)


@condition
def atomic_access(subject: Subject, stream: Stream, _: Version) -> bool:
    """One of the two commands, or one between them, updates atomically what the second one touches. Which one the
    second is, today's layer does not say at submit: then any of its name in that submit, and all commands before."""
    own = stream.command(subject)
    if own is not None and "commandBuffer" in own.args:
        steps = stream.steps(subject)
        # What a message counts commands by differs between versions; only our own first command is sure. It is not the
        # layer's where that took an older atomic for the first of the reads since.
        sure = subject.finding is not None and not _reported_against_read(subject)
        first = stream.prior_position(subject, steps) if sure else 0
        between = [step.call for step in steps[max(0, first) :]]
        seconds = [own]
    else:
        submitted = [held for batch in stream.executed(stream.at(subject.call)) for held in batch]
        commands = [call for held in submitted for call in stream.recorded(held, subject.call or 0)]
        seconds = [call for call in commands if plain_command(call.name) == subject.key[1]]
        between = [call for call in stream.calls if call.index < (subject.call or 0)]
    return any(
        touch.atomic and common([touch], stream.touches(second))
        for second in seconds
        for call in (*between, second)
        for touch in stream.touches(call)
    )


def _reported_against_read(subject: Subject) -> bool:
    """The layer reported the same access as a write after a shader's read, which an atomic is to it."""
    return any(
        (each.hazard, plain_command(each.command), each.access)
        == (Hazard.WRITE_AFTER_READ, subject.key[1], subject.key[3])
        and each.prior_access.endswith("_SHADER_STORAGE_READ")
        for each in subject.messages
    )


@condition
def descriptor_array(subject: Subject, stream: Stream, _: Version) -> bool:
    """The stream has a descriptor binding with more than one element."""
    layouts = (call.args.get("pCreateInfo") for call in stream.calls if call.name == "vkCreateDescriptorSetLayout")
    bindings = (binding for layout in layouts if layout for binding in layout.get("pBindings") or ())
    return any(binding["descriptorCount"] > 1 for binding in bindings)


@condition
def resource_destroyed(subject: Subject, stream: Stream, _: Version) -> bool:
    """A buffer or image was destroyed before; the old layer keeps its accesses for whatever comes to lie there."""
    limit = subject.call if subject.call is not None else float("inf")
    return any(call.name in ("vkDestroyBuffer", "vkDestroyImage") and call.index < limit for call in stream.calls)


@condition
def semaphore_between(subject: Subject, stream: Stream, _: Version) -> bool:
    """Some submit so far waits for a semaphore."""
    limit = subject.call if subject.call is not None else float("inf")
    submits = (c for c in stream.calls if c.name.startswith("vkQueueSubmit") and c.index <= limit)
    batches = (batch for call in submits for batch in call.args.get("pSubmits") or ())
    return any(batch.get("pWaitSemaphores") or batch.get("pWaitSemaphoreInfos") for batch in batches)


@condition
def timeline_semaphore(subject: Subject, stream: Stream, _: Version) -> bool:
    """The stream has a semaphore of type VK_SEMAPHORE_TYPE_TIMELINE."""
    infos = (call.args.get("pCreateInfo") for call in stream.calls if call.name == "vkCreateSemaphore")
    for info in infos:
        following = (info or {}).get("pNext")
        while isinstance(following, dict):
            if following.get("semaphoreType") == 1:
                return True
            following = following.get("pNext")
    return False


@condition
def beyond_tracked_memory(subject: Subject, stream: Stream, _: Version) -> bool:
    """Of the access that the layer must know to see this hazard, it lost just the hazardous part: while recording that
    of the first command, at submit that of either. What it says instead is about an older access of a lost part."""
    finding = subject.finding
    if finding is None:
        return _touches_lost_parts(subject, stream)
    places = (finding.prior,) if subject.kind == RECORD else (finding.prior, finding.place)
    return any(_is_lost(place, finding, stream) for place in places)


def _touches_lost_parts(subject: Subject, stream: Stream) -> bool:
    own = stream.command(subject)
    if own is None or "commandBuffer" not in own.args:
        return False
    touched = {touch.resource: touch for touch in stream.touches(own)}
    before = subject.call if subject.kind != RECORD and subject.call is not None else own.index
    return any(
        begin < lost.span[1] and lost.span[0] < end
        for lost in lost_parts(stream, stream.recorded(own.args["commandBuffer"], before))
        if lost.resource in touched
        for begin, end in touched[lost.resource].spans
    )


def _is_lost(place: Place, finding: Finding, stream: Stream) -> bool:
    command = stream.at(place.call)
    if command is None or "commandBuffer" not in command.args:
        return False
    before = command.index + 1 if place.submit is None else place.submit
    commands = [c for c in stream.recorded(command.args["commandBuffer"], before) if c.index <= command.index]
    lost = [
        part.span
        for part in lost_parts(stream, commands)
        if part.resource == finding.resource and part.call == command.index
    ]
    if not finding.ranges:
        return bool(lost)
    base = stream.address_of(finding.resource).offset
    return all(
        any(begin < base + offset + size and base + offset < end for begin, end in lost)
        for offset, size in finding.ranges
    )


# --- how much the layer says -----------------------------------------------------------------------------------------


@condition
def reported_for_same_access(subject: Subject, _: Stream, __: Version) -> bool:
    """In the same call the layer reported this command's same access against another prior one: it says one hazard a
    region (or descriptor), that of the lowest address."""
    command, access = subject.key[1], subject.key[3]
    return any(
        message.call is not None and plain_command(message.command) == command and message.access == access
        for message in subject.messages
    )


def _lowest(finding: Finding) -> tuple[int, ...]:
    """The lowest address of a finding: an offset in a buffer, or where the first box of an image begins."""
    boxes = ((box.aspect, box.mip, box.layer, box.offset[2], box.offset[1], box.offset[0]) for box in finding.boxes)
    return min(boxes, default=()) or min(((offset,) for offset, _ in finding.ranges), default=())


def _lower_ones(subject: Subject) -> list[Finding]:
    """Our other findings of the same access of the same command and resource that begin at a lower address, or that
    belong to another region of a copy. The boxes of images may be wider than the hazard."""
    own = subject.finding
    if own is None:
        return []
    regions = any(len(each.ranges) > 1 for each in (own, *subject.of_command))
    return [
        each
        for each in subject.of_command
        if each is not own
        and (each.access, each.resource) == (own.access, own.resource)
        and (regions or _lowest(each) < _lowest(own) or (own.boxes and _lowest(each) == _lowest(own)))
    ]


@condition
def lower_address_found(subject: Subject, _: Stream, __: Version) -> bool:
    """We found another hazard of the same access at a lower address, in this execution of the command, or while it was
    recorded: the layer keeps to the lowest of a region, whether it says that one now or has said it."""
    return bool(_lower_ones(subject))


@condition
def equal_shader_writes_lower(subject: Subject, _: Stream, __: Version) -> bool:
    """At a lower address of the same descriptor two shader writes conflict, which the layer keeps to itself."""
    return any(
        each.hazard == "WRITE_AFTER_WRITE" and each.access == each.prior_access and "SHADER_STORAGE" in each.access
        for each in _lower_ones(subject)
    )


@condition
def found_after_another_read(subject: Subject, _: Stream, __: Version) -> bool:
    """We found that a command of this name and access writes after another read: of several reads one is named."""
    hazard, _command, _prior_command, access, _prior_access = subject.key
    return any(
        (each.hazard, each.access) == (hazard, access) and each.key != subject.key for each in subject.of_command
    )


@condition
def reported_by_us_before(subject: Subject, _: Stream, __: Version) -> bool:
    """We said it in an earlier call."""
    return subject.said_before


@condition
def segment_reported_already(subject: Subject, stream: Stream, _: Version) -> bool:
    """At this submit the layer reported another hazard of the same command buffer between the same two synchronization
    commands: it says one a segment."""
    if subject.finding is None:
        return False
    piece = {call.index: call for call in stream.segment(subject)}
    for message in subject.messages:
        place = subject.finding.place
        if message.entry != (place.executed_by[1] if place.executed_by and place.submit is None else place.position):
            continue
        said = stream.command(_as_subject(message, subject))
        if said is None:  # newer layers do not say where in its command buffer the command is
            said = next((call for call in piece.values() if call.name == message.command), None)
        if said is not None and said.index in piece:
            return True
    return False


def _as_subject(message: LayerMessage, subject: Subject) -> Subject:
    return Subject(LAYER, message.key, message.kind, subject.call, None, message)


@condition
def optimal_image_in_segment(subject: Subject, stream: Stream, _: Version) -> bool:
    """The hazard is in a buffer or linear image, and the same segment touches an image with optimal tiling, or lies
    between two touches of one: the result for optimal images replaces the one for linear memory."""
    own = stream.command(subject)
    if subject.finding is None or own is None or not stream.address_of(subject.finding.resource).linear:
        return False
    segment = stream.segment(subject)
    first, last = segment[0].index, segment[-1].index
    touched: dict[int, list[int]] = {}
    for call in stream.recorded(own.args["commandBuffer"], subject.call or last + 1):
        for touch in stream.touches(call):
            if not stream.address_of(touch.resource).linear:
                touched.setdefault(touch.resource, []).append(call.index)
    return any(min(calls) <= last and first <= max(calls) for calls in touched.values())


@condition
def written_later_in_segment(subject: Subject, stream: Stream, _: Version) -> bool:
    """The read's resource is written later in the same segment: the layer's verdict on that first write replaces the
    one on the read."""
    own = stream.command(subject)
    finding = subject.finding
    if own is None or finding is None:
        return False
    later = [call for call in stream.segment(subject) if call.index >= own.index]
    return any(finding.resource in stream.writes(call) for call in later)


@condition
def read_before_in_command_buffer(subject: Subject, stream: Stream, _: Version) -> bool:
    """An earlier command of the command buffer reads the resource: of the reads before the first write, the layer
    tests only the first."""
    own = stream.command(subject)
    if own is None or subject.finding is None or subject.call is None:
        return False
    earlier = [c for c in stream.recorded(own.args["commandBuffer"], subject.call) if c.index < own.index]
    return any(subject.finding.resource in stream.reads(call) for call in earlier)


@condition
def read_and_written_in_command_buffer(subject: Subject, stream: Stream, _: Version) -> bool:
    """The command buffer reads what the second command writes, before it does, and the first access is a write of
    another kind: such reads stand for earlier writes only if those are of the same kind as the second access."""
    own = stream.command(subject)
    if own is None or subject.call is None or subject.key[3] == subject.key[4]:
        return False
    target = [touch for touch in stream.touches(own) if touch.write]
    earlier = [call for call in stream.recorded(own.args["commandBuffer"], subject.call) if call.index < own.index]
    return any(not touch.write and common([touch], target) for call in earlier for touch in stream.touches(call))


@condition
def reads_forgotten(subject: Subject, stream: Stream, _: Version) -> bool:
    """An earlier command buffer only read a range that an even earlier one wrote: merging drops such reads. Then a WAR
    is not seen, or shows as WAW against the older write, which may also be no hazard at all."""
    own = stream.command(subject)
    steps = stream.steps(subject)
    prior = stream.prior_position(subject, steps)
    if own is None or prior < 0:
        return False
    target = [touch for touch in stream.touches(own) if touch.write]
    if subject.finding is not None:
        return _is_forgotten(prior, steps, target, stream)
    for position in range(prior + 1, len(steps)):
        place = steps[position].place
        if place and not stream.is_own(subject, place) and _is_forgotten(position, steps, target, stream):
            return True
    return False


def _is_forgotten(read: int, steps: Sequence[Step], target: Sequence[Touch], stream: Stream) -> bool:
    """True when step `read` reads some part of `target` that an earlier execution wrote and its own does not write."""
    step = steps[read]
    reads = common((touch for touch in stream.touches(step.call) if not touch.write), target)
    parts = [replace(touch, spans=(span,)) for touch in reads for span in touch.spans]
    return any(_is_written_before_only([part], step.execution, steps, stream) for part in parts)


def _is_written_before_only(part: list[Touch], execution: int, steps: Sequence[Step], stream: Stream) -> bool:
    writers = {
        each.execution
        for each in steps
        if each.execution <= execution and common(part, (t for t in stream.touches(each.call) if t.write))
    }
    return bool(writers) and execution not in writers
