"""The dependency that comes nearest to the one that a finding lacks, and what of it does not fit.

A barrier is often there and nearly right: it names another stage, covers 60 of 64 bytes, or lacks an access. So the
barriers between the two accesses are held against what the finding needs. The one that lacks least is named, and of
several the nearest to the later access: `vkharness mend` tries them in the same order.

Looked at are pipeline barriers and waits for events of the two command buffers. Dependencies of render passes,
semaphores and barriers in other command buffers are not.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.findings import Box, Finding, Lack, NearestDependency
from vkharness.needed_scopes import covers_destination_stages, covers_source_stages, has_accesses, needed
from vkharness.spans import Span, subtract
from vkharness.spec.shapes import main_name
from vkharness.trace.barrier_calls import Masks
from vkharness.trace.effects import Barrier, Command, Dependency, RangeBarrier, WaitEvents

NAMES = frozenset({"vkCmdPipelineBarrier", "vkCmdPipelineBarrier2", "vkCmdWaitEvents", "vkCmdWaitEvents2"})
MOST_LOOKED_AT = 1 << 9
"""Commands of a recording that are looked at for one finding."""

Parts = tuple[tuple[tuple[int, int], ...], tuple[Box, ...]]
Describe = Callable[[int, list[Span]], tuple[str, tuple[tuple[int, int], ...], tuple[Box, ...]]]
"""Tells type, (offset, size) in bytes and boxes of addresses of a resource."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One dependency of a barrier, and what it lacks."""

    command: Command
    dependency: Dependency
    lacks: tuple[Lack, ...]
    parts: Parts


def name_nearest(findings: Iterable[Finding], objects: ObjectState, describe: Describe) -> None:
    """Gives findings their nearest dependency, where there is one."""
    for each in findings:
        each.nearest = nearest_dependency(each, objects, describe)


def nearest_dependency(finding: Finding, objects: ObjectState, describe: Describe) -> NearestDependency | None:
    """The nearest dependency; None where none comes near, and for findings that no barrier mends. `objects` are the
    live ones."""
    wanted = needed(finding)
    if not finding.hazard.is_between_accesses or finding.hazard.is_race or finding.hazard.is_presentation:
        return None
    best: _Candidate | None = None
    buffers = (objects.get(CommandBuffer, each.command_buffer or 0) for each in (finding.place, finding.prior))
    late, early = (None if each is None else each.commands for each in buffers)
    for command in _between(finding, late, early):
        for each in _candidates(finding, command, wanted, describe):
            if best is None or len(each.lacks) < len(best.lacks):
                best = each
    if best is None:
        return None
    said = best.command
    return NearestDependency(said.name, said.call, said.site, best.lacks, *best.dependency, *best.parts)


def _between(finding: Finding, late: Sequence[Command] | None, early: Sequence[Command] | None) -> Iterator[Command]:
    """Barriers before the later and after the earlier access in their recordings, the nearest to the later one first.
    A recording that holds the command no more, since its command buffer was begun anew, has none."""
    first = None if early is None else _place_of(early, finding.prior.call)
    if late is not None and (last := _place_of(late, finding.place.call)) is not None:
        begin = first + 1 if late is early and first is not None and first < last else 0
        yield from _barriers(late, begin, last)
    if early is not None and early is not late and first is not None:
        yield from _barriers(early, first + 1, len(early))


def _place_of(commands: Sequence[Command], call: int) -> int | None:
    at = bisect_left(commands, call, key=lambda each: each.call)
    return at if at < len(commands) and commands[at].call == call else None


def _barriers(commands: Sequence[Command], begin: int, end: int) -> Iterator[Command]:
    for at in range(end - 1, max(begin, end - MOST_LOOKED_AT) - 1, -1):
        if main_name((command := commands[at]).name) in NAMES:
            yield command


def _candidates(finding: Finding, command: Command, wanted: Masks, describe: Describe) -> Iterator[_Candidate]:
    for barrier in _of(command):
        region = (Lack.REGION,) if barrier.by_region else ()
        for each in barrier.globals:
            # Beside barriers of memory, the stages of the command order execution alone, and that says nothing.
            if wanted.is_memory and not Masks(*each).is_memory and len(barrier.globals) + len(barrier.ranges) > 1:
                continue
            lacks = _lacks(each, wanted) + region
            if lacks and not {Lack.FIRST_STAGES, Lack.SECOND_STAGES} <= {*lacks}:
                yield _Candidate(command, each, lacks, ((), ()))
        for part in barrier.ranges:
            if part.resource in (finding.resource, finding.through) and part.src_family == part.dst_family:
                parts = _uncovered(finding, part, describe)
                lacks = _lacks(part.dependency, wanted) + ((Lack.RANGE,) if any(parts) else ()) + region
                if lacks:
                    yield _Candidate(command, part.dependency, lacks, parts)


def _of(command: Command) -> Iterator[Barrier]:
    for effect in command.effects:
        if isinstance(effect, Barrier):
            yield effect
        elif isinstance(effect, WaitEvents):
            yield from effect.barriers


def _lacks(dependency: Dependency, wanted: Masks) -> tuple[Lack, ...]:
    given = Masks(*dependency)
    checks = (
        (Lack.FIRST_STAGES, covers_source_stages(given, wanted)),
        (Lack.FIRST_ACCESSES, has_accesses(given.src_accesses, wanted.src_accesses)),
        (Lack.SECOND_STAGES, covers_destination_stages(given, wanted)),
        (Lack.SECOND_ACCESSES, has_accesses(given.dst_accesses, wanted.dst_accesses)),
    )
    return tuple(lack for lack, is_there in checks if not is_there)


def _uncovered(finding: Finding, part: RangeBarrier, describe: Describe) -> Parts:
    """The part of the finding's bytes, or of its subresources, that a barrier leaves out."""
    _, ranges, boxes = describe(part.resource, [*part.spans])
    touched = [(offset, offset + size) for offset, size in finding.ranges]
    left = subtract(touched, [(offset, offset + size) for offset, size in ranges])
    named = {(box.aspect, box.mip, box.layer) for box in boxes}
    outside = tuple(box for box in finding.boxes if (box.aspect, box.mip, box.layer) not in named)
    return tuple((begin, end - begin) for begin, end in left), outside
