"""Tells which findings count with `--strict` alone. They are hazards by the letter of the specification that the
Khronos layer does not report, and that hardly anybody would mend.

What a finding says does not decide it. So the recorded commands around its two accesses are looked at: whether a render
pass instance ends between them, and which dependencies with VK_SUBPASS_EXTERNAL the render pass has. Where the commands
are gone, or too many lie between, the finding counts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.findings import Finding, Hazard, Place
from vkharness.needed_scopes import ALL_QUEUES, covers_destination_stages, covers_source_stages, has_accesses, needed
from vkharness.spec.enums import VkPipelineStage2
from vkharness.spec.scopes import (
    ACCESS_KINDS,
    IMAGE_LAYOUT_TRANSITION,
    OWNERSHIP_TRANSFER,
    WHOLE_FIRST,
    WHOLE_SECOND,
    expand_stages,
)
from vkharness.trace.barrier_calls import Masks
from vkharness.trace.effects import (
    EXTERNAL,
    Access,
    AttachmentUsers,
    Command,
    PassBegin,
    PassEnd,
    SubpassBegin,
    SubpassDependency,
)
from vkharness.trace.recorded_commands import RecordedCommands
from vkharness.trace.work_budget import spend
from vkharness.uncounted import Uncounted

BEGINS, ENDS = "vkCmdBeginRender", "vkCmdEndRender"
"""How the names of commands begin that begin and end an instance, of a render pass or of dynamic rendering."""
BEGINS_PASS, NEXT = "vkCmdBeginRenderPass", "vkCmdNextSubpass"
"""The same of those that begin an instance of a render pass and go to its next subpass."""
MOST_COMMANDS = 1 << 12
"""Commands that are looked at for one access."""
NOTHING_RECORDED = RecordedCommands()
ON_ONE_QUEUE = (Hazard.READ_AFTER_WRITE, Hazard.WRITE_AFTER_READ, Hazard.WRITE_AFTER_WRITE)
KINDS = {
    **dict.fromkeys((f"SYNC_COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_{each}" for each in ("READ", "WRITE")), "colour"),
    **dict.fromkeys(
        (
            f"SYNC_{tests}_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_{each}"
            for tests in ("EARLY", "LATE")
            for each in ("READ", "WRITE")
        ),
        "depth/stencil",
    ),
}
"""By the name of an access in rasterization order, which kind of attachment it is of."""

GRAPHICS = {kind.name for kind in ACCESS_KINDS if kind.stage & expand_stages(VkPipelineStage2.ALL_GRAPHICS, ALL_QUEUES)}
"""Accesses of the stages that ALL_GRAPHICS stands for."""
BESIDE_STAGES = {IMAGE_LAYOUT_TRANSITION.name, OWNERSHIP_TRANSFER.name}
"""Accesses of no stage. Layers tell what neither reading of ALL_COMMANDS orders before one outside of a pass."""
OBJECTS_A_UNIT = 16
"""Objects that are looked at in a unit of work."""


def uncounted(finding: Finding, objects: ObjectState) -> Uncounted | None:
    """Why a finding counts with `--strict` alone; None where it counts. `objects` are the live ones."""
    if finding.hazard not in ON_ONE_QUEUE or finding.through or finding.place.queue != finding.prior.queue:
        return None
    kind = KINDS.get(finding.access)
    if kind is not None and kind == KINDS.get(finding.prior_access):
        return Uncounted.TWO_INSTANCES if _are_two_instances(finding.prior, finding.place, objects) else None
    return Uncounted.ALL_COMMANDS if _is_held_by_all_commands(finding, objects) else None


def _are_two_instances(prior: Place, place: Place, objects: ObjectState) -> bool:
    """Whether the render pass instance of the earlier access ends before the later one."""
    if (prior.submit, prior.batch, prior.position) != (place.submit, place.batch, place.position):
        return True
    if prior.executed_by == place.executed_by:
        return _is_between(_commands(prior, objects), prior.call, place.call)
    # A secondary command buffer may end the instance of the one, or begin that of the other.
    if prior.executed_by and _is_between(_commands(prior, objects), prior.call, None):
        return True
    if place.executed_by and _is_between(_commands(place, objects), None, place.call):
        return True
    first, last = (each.executed_by[0] if each.executed_by else each.call for each in (prior, place))
    primary = _primary(prior, place, objects)
    # A secondary in a secondary says which call of that executed it, and not when the primary did.
    return _holds_call(primary, first) and _holds_call(primary, last) and _is_between(primary, first, last)


def _is_between(commands: RecordedCommands, first: int | None, last: int | None) -> bool:
    """Whether an instance ends or begins between two calls, or between one of them and that end of a recording."""
    begin = 0 if first is None else _place_of(commands, first)
    end = len(commands) if last is None else _place_of(commands, last + 1)
    # A command that begins or ends an instance and does nothing by that is not among them.
    names = [name for name, _ in commands.lines[begin : min(end, begin + MOST_COMMANDS)]]
    after, before = names[first is not None :], names if last is None else names[:-1]
    return any(each.startswith(BEGINS) for each in after) or any(each.startswith(ENDS) for each in before)


def _primary(prior: Place, place: Place, objects: ObjectState) -> RecordedCommands:
    """The recording that executes the one of two places, or both."""
    if prior.executed_by is None or place.executed_by is None:
        return _commands(place if place.executed_by is None else prior, objects)
    spend(len(objects.by_id) // OBJECTS_A_UNIT, "command buffers that are looked for")
    recordings = (each.commands for each in objects.every(CommandBuffer))
    return next((each for each in recordings if _holds_call(each, prior.executed_by[0])), NOTHING_RECORDED)


def _holds_call(commands: RecordedCommands, call: int) -> bool:
    return call in commands.calls[(at := _place_of(commands, call)) : at + 1]


def _is_held_by_all_commands(finding: Finding, objects: ObjectState) -> bool:
    """Whether a dependency with VK_SUBPASS_EXTERNAL would order the two accesses, if its ALL_COMMANDS were all."""
    wanted = needed(finding)
    leaves, enters = (each not in GRAPHICS | BESIDE_STAGES for each in (finding.access, finding.prior_access))
    behind = _dependencies(finding.prior, finding.prior_access, finding.resource, objects) if leaves else ()
    before = _dependencies(finding.place, finding.access, finding.resource, objects) if enters else ()
    return any(
        each.src in users
        and each.dst == EXTERNAL
        and each.dependency.dst_stages & WHOLE_SECOND
        and _holds(each, wanted)
        for each, users in behind
    ) or any(
        each.src == EXTERNAL and each.dst in users and each.dependency.src_stages & WHOLE_FIRST and _holds(each, wanted)
        for each, users in before
    )


def _holds(given: SubpassDependency, wanted: Masks) -> bool:
    masks = Masks(*given.dependency)
    return (
        not (given.by_region or given.device_group or given.views is not None)
        and covers_source_stages(masks, wanted)
        and covers_destination_stages(masks, wanted)
        and has_accesses(masks.src_accesses, wanted.src_accesses)
        and has_accesses(masks.dst_accesses, wanted.dst_accesses)
    )


def _dependencies(
    place: Place, access: str, resource: int, objects: ObjectState
) -> Iterator[tuple[SubpassDependency, frozenset[int]]]:
    """The dependencies of the render pass of an access, with the subpasses in whose scopes the access is; nothing for
    an access outside of render passes and for one in a secondary command buffer."""
    if access not in GRAPHICS and access != IMAGE_LAYOUT_TRANSITION.name:
        return
    commands = _commands(place, objects)
    at = _place_of(commands, place.call)
    if place.executed_by or not _holds_call(commands, place.call):
        return
    subpass = 0
    for position in range(at, max(-1, at - MOST_COMMANDS), -1):
        name, _ = commands.lines[position]
        subpass += position < at and name.startswith(NEXT)
        if name.startswith(BEGINS_PASS):
            users = frozenset(_users(commands[at], access, resource, subpass))
            begun = (each for each in commands[position].effects if isinstance(each, PassBegin))
            yield from ((each, users) for pass_begin in begun for each in pass_begin.dependencies)
        if name.startswith((BEGINS_PASS, ENDS)) and position < at:
            return


def _users(command: Command, access: str, resource: int, subpass: int) -> Iterator[int]:
    """The subpasses whose dependencies hold such an access of a command, which is recorded in a subpass: of load, store
    and resolve operations and of transitions, those that use the attachment."""
    operating: tuple[int, ...] = ()
    for effect in command.effects:
        if isinstance(effect, AttachmentUsers):
            operating = effect.subpasses
        elif isinstance(effect, Access) and effect.resource == resource:
            yield from (operating or (subpass,)) if ACCESS_KINDS[effect.access_kind].name == access else ()
        elif isinstance(effect, SubpassBegin | PassEnd):
            subpass = effect.index if isinstance(effect, SubpassBegin) else subpass
            moved = access == IMAGE_LAYOUT_TRANSITION.name
            yield from (
                user for each in effect.transitions if moved and each.resource == resource for user in each.users
            )


def _commands(place: Place, objects: ObjectState) -> RecordedCommands:
    buffer = objects.get(CommandBuffer, place.command_buffer or 0)
    return NOTHING_RECORDED if buffer is None else buffer.commands


def _place_of(commands: RecordedCommands, call: int) -> int:
    """How many commands were recorded before a call."""
    return bisect_left(commands.calls, call)
