"""Named predicates of `known_differences.toml`: is the stream such that this difference explains this disagreement?

Each takes the disagreement (`Subject`) and the arguments that the entry gives. A condition that needs the stream is
false when the stream is not known, so that an unexplained disagreement stays one. Masks are written as in `spec.masks`:
`COPY|CLEAR/TRANSFER_WRITE`, accesses alone as `NONE/TRANSFER_WRITE`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from vkharness.findings import Finding, Hazard
from vkharness.layer.barrier_scopes import BarrierScope, barrier_scopes
from vkharness.layer.parse import RECORD, SUBMIT, LayerMessage, plain_command
from vkharness.layer.subject import Subject, scopes_of
from vkharness.layer.touches import apart, common
from vkharness.spans import ENDLESS, Span
from vkharness.spec.enums import VkPipelineStage2, VkQueueFlag
from vkharness.spec.masks import scope
from vkharness.spec.scopes import ACCESS_KIND, access_scope, execution_scope_dst, execution_scope_src
from vkharness.trace.calls import Call
from vkharness.trace.effects import Dependency

Condition = Callable[..., bool]

CONDITIONS: dict[str, Condition] = {}
ANY = ("*",)
EVERYTHING = (1 << 64) - 1
QUEUE_FLAGS = VkQueueFlag.GRAPHICS | VkQueueFlag.COMPUTE | VkQueueFlag.TRANSFER
"""A meta stage stands for everything that such a queue can do."""


def condition(function: Condition) -> Condition:
    """Registers a predicate under its own name, by which `known_differences.toml` refers to it."""
    CONDITIONS[function.__name__] = function
    return function


def matches(name: str, globs: Sequence[str]) -> bool:
    """True when some glob matches."""
    return any(fnmatchcase(name, glob) for glob in globs)


@condition
def called_before(subject: Subject, calls: Sequence[str], key: str = "", above: int = 0) -> bool:
    """The stream has such a call by then; with `key`, one with a greater number under this name in its arguments."""
    return any(
        call.index <= subject.limit and matches(call.name, calls) and (not key or _holds(call.args, key, above))
        for call in subject.stream.calls
    )


def _holds(value: Any, key: str, above: int, under: bool = False) -> bool:
    if isinstance(value, dict):
        return any(_holds(each, key, above, under or fnmatchcase(name, key)) for name, each in value.items())
    if isinstance(value, list | tuple):
        return any(_holds(each, key, above, under) for each in value)
    return under and isinstance(value, int) and value > above


# --- barriers --------------------------------------------------------------------------------------------------------


@condition
def barrier_between(subject: Subject, src: str = "NONE", dst: str = "NONE") -> bool:
    """A barrier between the two has one of each of these masks."""
    wanted = (*scope(src), *scope(dst))
    return any(
        all(not mask or mask & own for mask, own in zip(wanted, each[1:5], strict=True)) for each in subject.barriers
    )


@condition
def barrier_names_one_of(subject: Subject, pair: str, unless: str = "NONE") -> bool:
    """A barrier or subpass dependency between the two, or a barrier of the second command's own, names one of a pair in
    a mask, not the other, and nothing of `unless`, which stands for both."""
    stages, accesses = scope(pair)
    both, all_of = stages | accesses, scope(unless)[0]
    several: list[BarrierScope | Dependency] = [*subject.barriers, *subject.subpass_dependencies]
    several += barrier_scopes(subject.command) if subject.command is not None else ()
    return any(
        mask & both not in (0, both) and not mask & all_of
        for each in several
        for mask in ((each.src_stages, each.dst_stages) if stages else (each.src_accesses, each.dst_accesses))
    )


@condition
def atomic_after_a_read(subject: Subject) -> bool:
    """The second command changes the resource by atomics, and we found what it writes there after a read of it."""
    resource = subject.stream.viewed(subject.message.resource) if subject.message is not None else 0
    return any(
        found.hazard is Hazard.WRITE_AFTER_READ
        and resource in (0, found.through or found.resource)
        and any(touch.atomic for touch in subject.stream.touches(own) if touch.resource == found.resource)
        for found in subject.of_command
        if (own := subject.stream.at(found.place.call)) is not None
    )


@condition
def transition_after_barrier(subject: Subject) -> bool:
    """The second access is a transition. Between the two, a barrier has accesses in its first scope, and the first
    access is a write; or one has TOP_OF_PIPE in its second scope, and the transition's first scope has no stage."""
    moves = [each for each in barrier_scopes(subject.command) if each.transition] if subject.command is not None else []
    if moves and subject.key[0] == Hazard.WRITE_AFTER_WRITE and any(each.src_accesses for each in subject.barriers):
        return True
    top = VkPipelineStage2.TOP_OF_PIPE | VkPipelineStage2.ALL_COMMANDS
    return any(not each.src_stages for each in moves) and any(each.dst_stages & top for each in subject.barriers)


@condition
def transition_beside_barriers(subject: Subject, anywhere: bool = False) -> bool:
    """The first access is a transition whose command carries another barrier too, with our second access in its second
    scope; `anywhere`: that command, the second one or one between them carries a transition and another barrier."""
    if anywhere:
        groups = [scopes_of([call]) for call in (subject.first, *subject.window, subject.command) if call is not None]
        return any(len(group) > 1 and any(each.transition for each in group) for group in groups)
    finding = subject.finding
    if finding is None or subject.first is None or finding.access not in ACCESS_KIND:
        return False
    return any(
        access_scope(each.dst_stages, each.dst_accesses, QUEUE_FLAGS) >> ACCESS_KIND[finding.access].index & 1
        for each in scopes_of([subject.first])
        if not (each.transition and each.resource == finding.resource)
    )


@condition
def ordered_by_another_resource(subject: Subject) -> bool:
    """Only synchronization2 barriers of other buffers or images order the second access after the first one, or carry
    the first write on to barriers that cover it, or order it after a read between that was reported already."""
    own, window, stream = subject.command, subject.window, subject.stream
    hazard, _, _, access, prior_access = subject.key
    if own is None:
        return False
    resources = subject.resources(writes=hazard.startswith("WRITE"))
    start = ACCESS_KIND[prior_access].stage if prior_access in ACCESS_KIND else 0
    waits = ACCESS_KIND[access].stage if access in ACCESS_KIND else 0
    if not waits:  # a layout transition has no stage; it waits where its barrier's first scope is
        for each in barrier_scopes(own):
            waits |= execution_scope_src(each.src_stages, QUEUE_FLAGS) if each.transition else 0

    def differs(stage: int, commands: Sequence[Call], mask: int) -> bool:
        # Barriers of the resource itself may cover another part of it: whether they order anything is left open.
        least = stages_after(stage, commands, resources) & stages_after(stage, commands, set())
        return bool(stages_after(stage, commands) & ~least & mask)

    if hazard == Hazard.WRITE_AFTER_READ:
        return differs(start, window, waits)
    # A longer chain of the write matters only if a barrier came after the one that extended it, the own one included.
    if len([call for call in (*window, own) if any(barrier_scopes(call))]) >= 2 and differs(start, window, EVERYTHING):
        return True
    return hazard == Hazard.READ_AFTER_WRITE and any(
        differs(touch.stage, window[position + 1 :], waits)
        for position, call in enumerate(window)
        for touch in stream.touches(call)
        if not touch.write and touch.resource in resources
    )


def stages_after(start: int, commands: Iterable[Call], of: set[int] | None = None) -> int:
    """Stages that wait for an access at stage `start` after these commands: 0 when no barrier orders anything.

    `of` are resources: with it, synchronization2 barriers of other buffers and images order nothing.
    """
    ordered = 0
    for call in commands:
        # Barriers of one command do not chain: each starts from what held before the command.
        before = start | ordered
        for each in barrier_scopes(call):
            if of is not None and each.sync2 and each.what != "memory" and each.resource not in of:
                continue
            if execution_scope_src(each.src_stages, QUEUE_FLAGS) & before:
                ordered |= execution_scope_dst(each.dst_stages, QUEUE_FLAGS)
    return ordered


# --- how much the layer says -----------------------------------------------------------------------------------------


@condition
def reported_for_same_command(subject: Subject) -> bool:
    """While recording, the layer reported this command's same access of this resource at a lower address of the region
    (or descriptor): it says one hazard of each. Or it reported another depth or stencil access of it, at the same
    stage."""
    finding, access = subject.finding, subject.key[3]
    if finding is None:
        return False
    said = [each for each in subject.messages if each.call and is_about(each, subject)]
    stage = access.partition("_DEPTH_STENCIL")[0] if "_FRAGMENT_TESTS_" in access else "none"
    if any(each.access.startswith(stage) and each.access != access for each in said):
        return True
    if subject.kind != RECORD:
        return False
    others = [each for each in _other_ones(subject) if each.place.submit is None]
    said = [each for each in said if each.access == access]
    told = [each for each in others if any(_says(message, each, subject) for message in said)]
    return _are_lower(told, finding, regions_of(subject))


def is_unknown(message: LayerMessage, subject: Subject) -> bool:
    """Whether a message about our finding's command is none of our findings of it."""
    return not any(_says(message, each, subject) for each in subject.of_command)


def is_about(message: LayerMessage, subject: Subject) -> bool:
    """Whether a message is about our finding's command and resource, and of a buffer about its bytes."""
    finding, resource = subject.finding, subject.stream.viewed(message.resource)
    if finding is None or plain_command(message.command) != subject.key[1]:
        return False
    if resource not in (0, finding.through or finding.resource):
        return False
    begin, size = message.bytes or (0, ENDLESS)
    return not finding.ranges or any(at < begin + size and begin < at + length for at, length in finding.ranges)


def _says(message: LayerMessage, found: Finding, subject: Subject) -> bool:
    """Whether a message about the same command has the key of another finding of it, and can mean its first access."""
    hazard, _, prior_command, access, prior_access = found.key
    renamed = subject.renamed
    key = (hazard, plain_command(prior_command), renamed(found.place.command, access))
    prior = renamed(prior_command, prior_access)
    told = (message.hazard, plain_command(message.prior_command), message.access)
    numbers = subject.stream.numbers_of(found.prior.call)
    return key == told and message.prior_access in ("", prior) and (not numbers or message.seq_no in (None, *numbers))


@condition
def lower_address_found(subject: Subject) -> bool:
    """We found another hazard of the same access at a lower address of the region, while the command was recorded, in
    this execution of it, or before so that the layer says it again: it keeps to the lowest of a region, whether it says
    that one now or has said it."""
    finding = subject.finding
    if finding is None:
        return False
    here = finding.place
    said = [each for each in subject.messages if each.entry in (None, here.position) and is_about(each, subject)]
    told = [
        each
        for each in _other_ones(subject)
        if each.place.submit is None
        or (each.place.submit, each.place.batch, each.place.position) == (here.submit, here.batch, here.position)
        or any(_says(message, each, subject) for message in said)
    ]
    return _are_lower(told, finding, regions_of(subject))


@condition
def same_shader_write(subject: Subject) -> bool:
    """A shader writes after the same access by a shader, or such a hazard of it is at a lower address."""
    hazard, _, _, _, prior_access = subject.key
    if hazard == Hazard.WRITE_AFTER_WRITE and matches(prior_access, ("SYNC_*_SHADER_STORAGE_WRITE",)):
        return True
    others = (each for each in _other_ones(subject) if each.hazard == Hazard.WRITE_AFTER_WRITE)
    lower = (each for each in others if subject.finding and _is_lower(each, subject.finding, regions_of(subject)))
    return any(each.access == each.prior_access and "SHADER_STORAGE" in each.access for each in lower)


def _other_ones(subject: Subject) -> list[Finding]:
    """Our other findings of the same access of the same command and resource."""
    own = subject.finding
    if own is None:
        return []
    alike = (each for each in subject.of_command if each is not own)
    return [each for each in alike if (each.access, each.resource) == (own.access, own.resource)]


def _are_lower(others: Sequence[Finding], own: Finding, regions: Sequence[Span]) -> bool:
    """Whether one of the others begins at a lower address, in each region that the finding is in. The boxes of images
    may be wider than the hazard."""
    here = [one for one in regions if any(at < one[1] and one[0] < at + size for at, size in own.ranges)]
    return (
        all(any(_is_lower(each, own, [one]) for each in others) for one in here)
        if here
        else any(_is_lower(each, own, regions) for each in others)
    )


def _is_lower(one: Finding, own: Finding, regions: Sequence[Span]) -> bool:
    if own.place.command == one.prior.command == "vkCmdCopyQueryPoolResults":
        return True  # For the layer results leave no gaps: it may meet the earlier copy at any address of its own.
    if not regions or not own.ranges:
        return _lowest(one) < _lowest(own) or bool(own.boxes and _lowest(one) == _lowest(own))
    for begin, end in regions:
        mine = [at for at, size in own.ranges if at < end and begin < at + size]
        others = [at for at, size in one.ranges if at < end and begin < at + size]
        if mine and not (others and max(begin, min(others)) < max(begin, min(mine))):
            return False
    return True


def regions_of(subject: Subject) -> list[Span]:
    """The bytes of each region of a copy between buffers, as offsets in the finding's buffer; none for others."""
    own, finding = subject.command, subject.finding
    info = (own.args.get("pCopyBufferInfo") or own.args) if own is not None else {}
    if own is None or finding is None or "srcBuffer" not in info or "dstBuffer" not in info:
        return []
    member = "dstOffset" if ACCESS_KIND[finding.access].write else "srcOffset"
    return [(each[member], each[member] + each["size"]) for each in info["pRegions"] or ()]


def _lowest(finding: Finding) -> tuple[int, ...]:
    """The lowest address of a finding: an offset in a buffer, or where the first box of an image begins."""
    boxes = ((box.aspect, box.mip, box.layer, *reversed(box.offset)) for box in finding.boxes)
    return min(boxes, default=()) or min(((offset,) for offset, _ in finding.ranges), default=())


@condition
def found_after_another_read(subject: Subject) -> bool:
    """The other judge says that this command's same access writes after another read: of several reads one is named."""
    hazard, command, _, access, _ = subject.key
    if subject.finding is None:
        return any(
            (each.hazard, each.access) == (hazard, access) and each.key != subject.key for each in subject.of_command
        )
    return any(
        (each.hazard, plain_command(each.command), each.access) == (hazard, command, access)
        for each in subject.messages
    )


@condition
def found_after_another_read_of_its_stage(subject: Subject) -> bool:
    """The other judge says that this command writes the resource after another read by the same access."""
    hazard, _, prior_command, access, prior_access = subject.key
    if subject.finding is not None:
        return any(
            (each.hazard, each.access, each.prior_access) == (hazard, access, prior_access)
            and plain_command(each.prior_command) != prior_command
            and is_about(each, subject)
            for each in subject.messages
        )
    own, message = subject.command, subject.message
    resource = subject.stream.viewed(message.resource) if message is not None else 0
    return own is not None and any(
        (each.place.call, each.hazard, each.access, each.prior_access) == (own.index, hazard, access, prior_access)
        and resource in (0, each.resource)
        for each in subject.of_command
    )


@condition
def reported_by_us_before(subject: Subject, unseen: Sequence[str]) -> bool:
    """We said it in an earlier call, and the layer says it at a submit that executes the two commands again, or it is a
    rule of events. `unseen` are commands that some layer passes over."""
    if subject.kind != SUBMIT:
        return bool(subject.said_before) and matches(subject.key[0], ("vkCmd*Event*",))
    return any(_is_executed_again(subject, each, unseen) for each in subject.said_before)


def _is_executed_again(subject: Subject, found: Finding, unseen: Sequence[str]) -> bool:
    """Whether the last execution of the first command of a pair comes before one of the second one, with nothing else
    between that writes all that they share, but for commands that some layer passes over. It belongs to an earlier
    execution of their command buffer, unless we found the pair inside of one."""
    if not found.hazard.is_between_accesses:
        return True
    one, other = found.prior, found.place
    inside = (one.submit, one.batch, one.position) == (other.submit, other.batch, other.position)
    for steps in subject.occurrences:
        if steps[-1].call.index != found.place.call:
            continue
        touches = subject.stream.as_executed(steps[-1].place).touches(steps[-1].call)
        left = [each for each in map(subject.at_issue, touches) if each.spans]
        for step in reversed(steps[:-1]):
            made = subject.stream.as_executed(step.place).touches(step.call)
            again = inside or step.place is None or step.place != steps[-1].place
            if step.call.index == found.prior.call and again and common(left, made):
                return True
            for each in () if matches(step.call.name, unseen) else made:
                left = [apart(one, each) for one in left] if each.write else left
    return False
